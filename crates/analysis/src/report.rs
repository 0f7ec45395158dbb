// SPDX-License-Identifier: MIT OR Apache-2.0
//! Report on a machine: findings with evidence, rules that found nothing, rules that could not be checked. Plain data;
//! `floodline-view` turns it into text or JSON and computes nothing. The JSON form is a stable interface: fields are
//! added, never renamed; `schema` names the version.

use crate::knob_of::knob_of;
use floodline_record::gap::{Cause, Gap, Source};
pub use floodline_record::severity::Severity;
use floodline_record::units::Nanos;
use serde::Serialize;

/// Version of the JSON form.
pub const SCHEMA: &str = "floodline.doctor/1";

/// Output of `floodline doctor`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// The observed machine.
    pub host: HostSummary,
    /// Seconds between the first and the last sample; 0 for a single sample.
    pub window_s: f64,
    /// Findings, worst first.
    pub findings: Vec<Finding>,
    /// Rules that found nothing, with the reading that shows it.
    pub ruled_out: Vec<RuledOut>,
    /// Rules that could not be checked, and why.
    pub not_checked: Vec<NotChecked>,
    /// Number of rules that were not run, as others were asked for by name.
    #[serde(skip_serializing_if = "is_zero")]
    pub rules_not_run: usize,
    /// Everything that could not be read, whether or not a rule needed it.
    pub gaps: Vec<GapLine>,
    /// The change that covers all findings together; `null` where no command helps.
    pub plan: Option<Plan>,
    /// Symptoms that people on the machine notice, whatever their cause.
    pub symptom: Symptom,
    /// Waits that no rule explains; absent where a rule found something, or nothing was traced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unexplained: Option<Unexplained>,
    /// What the observation was too short to show, the most important first. A host without a finding is cleared only where this is empty.
    pub unseen: Vec<Unseen>,
    /// Gaps of the observation, those of the whole recording where it was diagnosed in stretches.
    pub observation: Observation,
    /// The stretch of a long recording that this report covers; absent where it covers all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stretch: Option<Stretch>,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// What an observation was too short to show.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Unseen {
    /// In a sentence.
    pub what: String,
    /// Length of an observation that shows it, seconds.
    pub look_s: u64,
}

/// Waits that no finding explains: in fsync and its like, of 100 ms and more, by a trace; or for I/O
/// for longer than the disks were busy.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Unexplained {
    /// The program that waited most, as `redis-server[812]`; empty where none is known.
    pub who: String,
    /// Other programs that waited long.
    pub more: u64,
    /// Sum of its waits, seconds; those of all programs where none is known.
    pub waited_s: f64,
    /// Its longest wait, seconds; absent where only sums are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub longest_s: Option<f64>,
    /// Part of the window with a task waiting for I/O, where the disks were not busy enough to be the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub io_some_share: Option<f64>,
}

/// The worst stretch of a long recording.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stretch {
    /// Start of the stretch on the wall clock, nanoseconds since 1970 UTC.
    pub from_wall_ns: u64,
    /// End of the stretch.
    pub to_wall_ns: u64,
    /// Seconds the whole recording covers.
    pub of_s: f64,
    /// Stretches the recording was diagnosed in.
    pub of_stretches: u64,
    /// Warnings and worse of the other stretches, worst first.
    pub others: Vec<OtherStretches>,
}

/// Findings of a rule in stretches other than the reported one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OtherStretches {
    /// Name of the rule.
    pub rule: &'static str,
    /// The worst of its findings.
    pub severity: Severity,
    /// Number of stretches.
    pub stretches: u64,
    /// Start of the first of them on the wall clock, nanoseconds since 1970 UTC.
    pub first_wall_ns: u64,
}

/// How complete an observation is.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Observation {
    /// Samples that were taken.
    pub samples: u64,
    /// Samples that were due but missed, because the recorder did not run in time.
    pub missing_samples: u64,
    /// Length of the longest hole, seconds; 0 where there is none.
    pub longest_hole_s: f64,
    /// The longest holes, in order of time.
    pub holes: Vec<HoleLine>,
    /// Whether a stall may have happened between two samples: the holes are long, or tasks waited for I/O during them.
    pub may_hide_stall: bool,
    /// Samples whose monotonic time is not after that of the sample before.
    pub samples_back_in_time: u64,
    /// Number of times the wall clock was set, relative to the monotonic clock.
    pub wall_clock_jumps: u64,
    /// The largest of these jumps, seconds; negative where the clock was set back.
    pub largest_wall_clock_jump_s: Option<f64>,
    /// Wall-clock time after this jump, nanoseconds since 1970 UTC.
    pub largest_wall_clock_jump_wall_ns: Option<u64>,
}

/// A stretch without the samples that were due in it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HoleLine {
    /// Time of the sample before it on the wall clock, nanoseconds since 1970 UTC.
    pub from_wall_ns: u64,
    /// Seconds to the sample after it.
    pub length_s: f64,
    /// Samples that were due in it.
    pub missing_samples: u64,
    /// Seconds of it in which a task waited for I/O, as the kernel counted.
    pub io_pressure_some_s: Option<f64>,
    /// Seconds of it in which a task waited for memory.
    pub memory_pressure_some_s: Option<f64>,
}

/// Short description of the machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct HostSummary {
    /// Name (escaped).
    pub hostname: String,
    /// Kernel release.
    pub kernel: String,
    /// Total memory, bytes.
    pub mem_total_bytes: Option<u64>,
    /// Possible CPUs.
    pub cpus_possible: Option<u32>,
    /// Whether the multi-generational LRU is on. Unlike the older lists, it does not spare memory protected by
    /// `memory.low`.
    pub lru_gen: Option<bool>,
    /// Cgroup set-up: `none`, `v1`, `v2` or `hybrid`.
    pub cgroup_mode: String,
    /// Cgroups seen.
    pub cgroups: u64,
    /// Processes seen.
    pub processes: u64,
    /// Samples in the window.
    pub samples: u64,
}

/// Symptoms that people on the machine notice while it is observed: waiting and busy devices, without a cause.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Symptom {
    /// Start of the observation on the wall clock, nanoseconds since 1970 UTC.
    pub from_wall_ns: Option<u64>,
    /// Seconds in which tasks waited for I/O for a noticeable part of the time; 0 if there were none.
    pub waiting_s: f64,
    /// Start of the first such interval on the wall clock, nanoseconds since 1970 UTC.
    pub waiting_from_wall_ns: Option<u64>,
    /// Share of these seconds in which at least one task waited for I/O: `/proc/pressure/io` `some`.
    pub io_some_share: Option<f64>,
    /// The largest share of any interval.
    pub io_some_share_max: Option<f64>,
    /// Smallest and largest share of CPU time that was idle with I/O outstanding, of these seconds' intervals.
    pub iowait_share: Option<(f64, f64)>,
    /// The busiest disk in these seconds, or in the whole observation where tasks did not wait.
    pub busiest: Option<BusyDisk>,
    /// The program that waited most for I/O, as `redis-server[812]`; absent where none is known to have waited for long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waited_most: Option<String>,
    /// The most dirty data of any sample, bytes.
    pub dirty_max_bytes: Option<u64>,
    /// Most data of any sample that was dirty or under writeback, bytes. Neither is on the disk.
    pub unwritten_max_bytes: Option<u64>,
    /// Level at which background writeback starts, bytes.
    pub background_threshold_bytes: Option<u64>,
    /// Level at which writers begin to be paused, bytes: the freerun ceiling.
    pub freerun_ceiling_bytes: Option<u64>,
    /// The smallest hard threshold of a cgroup that has one of its own.
    pub tightest: Option<TightCgroup>,
}

/// A disk and its load.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BusyDisk {
    /// Kernel name (escaped).
    pub name: String,
    /// Share of the time with a request in flight.
    pub busy_share: f64,
    /// Mean time of a write, queueing included, seconds.
    pub write_await_s: Option<f64>,
    /// What most of its requests were: `reads`, `writeback`, or `waited_writes` (syncs and direct I/O); absent without requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load: Option<&'static str>,
}

/// A cgroup and its limit of dirty data.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TightCgroup {
    /// Its label (escaped).
    pub name: String,
    /// Its hard threshold, bytes.
    pub thresh_bytes: u64,
    /// Cgroups with a threshold of their own.
    pub of: u64,
}

/// First part of a finding that a person reads: few and plain words. The kernel's words are in the other fields.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Brief {
    /// Why it happens here, in at most three short sentences.
    pub because: String,
    /// Processes, cgroups or devices that it concerns; empty where that is the whole machine.
    pub who: String,
    /// Expected effect of the change.
    pub expect: String,
    /// Cost of the change.
    pub costs: String,
}

/// Changes for this machine: the steps of all findings, merged.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Plan {
    /// Commands that act at once, for a shell of any user with sudo rights.
    pub now: Vec<String>,
    /// Their expected effect.
    pub expect: Vec<String>,
    /// Their cost.
    pub costs: Vec<String>,
    /// Commands that restore the old state.
    pub undo: Vec<String>,
    /// Commands that make the change survive a reboot.
    pub keep: Vec<String>,
    /// Commands that revert the files written by `keep`. `undo` changes the running host only.
    pub undo_keep: Vec<String>,
    /// One command instead of `now` and `keep`: a guard undoes it unless it is confirmed. Empty if `apply` cannot make
    /// the whole change.
    pub guarded: Vec<String>,
    /// Files that set the same values at boot, a sentence each; empty where none is known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub at_boot: Vec<String>,
    /// Changes that no command can make now, such as another kernel.
    pub later: Vec<String>,
    /// Expected effects of the findings whose change waits for later. They are in `expect` as well.
    #[serde(skip)]
    pub expect_later: Vec<String>,
    /// Steps of other findings that were left out, and why.
    pub conflicts: Vec<String>,
    /// Rules whose findings the plan addresses.
    pub rules: Vec<&'static str>,
    /// Whether the change of one of these findings [helps in part](Finding::helps_in_part).
    #[serde(skip)]
    pub helps_in_part: bool,
    /// Whether programs [dirty more than the disk writes](Finding::is_outrun), by any finding of the report.
    #[serde(skip)]
    pub is_outrun: bool,
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// Result of the twin of the host; absent if the plan was not tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tried: Option<TriedPlan>,
    /// Reason why the plan rests on arithmetic alone; absent if the twin supports or refutes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arithmetic_only: Option<String>,
    /// A change that was not shown to help here. `now` and the blocks that belong to it are then empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub candidate: Option<Candidate>,
    /// Steps from the old values to the new ones. Absent if there is no change of now, or if no twin was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ramp: Option<crate::change::Ramp>,
}

impl Plan {
    /// Whether the twin of the host shows that the plan helps.
    pub fn is_tried_to_help(&self) -> bool {
        self.tried.as_ref().is_some_and(|tried| tried.verdict == "helps")
    }
}

/// A change that was not shown to help on this host. It is to be measured first.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Candidate {
    /// Commands that make the change, for a shell of any user with sudo rights.
    pub commands: Vec<String>,
    /// Commands that restore the old state.
    pub undo: Vec<String>,
    /// The change as settings of `floodline apply` and `floodline predict`, `NAME=VALUE`. Empty if `apply` cannot make all of it.
    pub settings: Vec<String>,
    /// Reason why it is not advised yet.
    pub why: String,
    /// Commands that measure if it helps.
    pub measure: Vec<String>,
}

/// Result of a plan on the twin of the host.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TriedPlan {
    /// `helps`, `does_not_help`, `harms` or `may_harm`. Only a plan that helps keeps its commands, in `now` or as the candidate.
    pub verdict: &'static str,
    /// Median error of the back-test, as a share.
    pub back_test_error: Option<f64>,
    /// Predicted figures.
    pub expected: Vec<crate::change::Expected>,
    /// Commands that are not advised, because the twin shows no benefit from them.
    pub withheld: Vec<String>,
    /// Figures that get worse, the most important first, a text each.
    pub costs: Vec<String>,
    /// Rules whose findings end on the twin, surely or likely.
    #[serde(skip)]
    pub ended: Vec<&'static str>,
}

/// One detected problem.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Finding {
    /// Name of the rule.
    pub rule: &'static str,
    /// Its severity.
    pub severity: Severity,
    /// Summary in one sentence that a tired person understands.
    pub summary: String,
    /// Traced confirmation in a sentence, with the tasks and the data involved. `None` where it was not traced, or the
    /// trace does not show it: the finding then rests on files alone.
    pub confirmed: Option<String>,
    /// The readings that it rests on.
    pub evidence: Vec<Evidence>,
    /// Cause, in terms of this machine.
    pub cause: String,
    /// The change that helps, in the order of its steps. In a report that is [told](crate::told::told), those of them that the plan of the
    /// report has too.
    pub plan: Vec<Step>,
    /// Steps that the finding asks for and the plan of the report leaves out. Filled where the report is [told](crate::told::told).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
    /// Cost of the change.
    pub trade_off: String,
    /// Disks that it concerns, by kernel name (escaped); empty where it concerns the whole machine.
    pub devices: Vec<String>,
    /// Summary in few and plain words, for the first screen.
    pub brief: Brief,
    /// Seconds in which tasks waited because of it, where that is known: orders findings of one severity.
    #[serde(skip)]
    pub waited_s: Option<f64>,
    /// Whether arithmetic cannot show how much its change helps: the change only lets writers wait later, holds less than half of what is
    /// rewritten, or depends on a speed that was not seen: how long a sync waits for a burst below a higher limit, where the disk was never
    /// full.
    #[serde(skip)]
    pub helps_in_part: bool,
    /// Whether programs dirty more than the disk writes, so that it is full with any setting.
    #[serde(skip)]
    pub is_outrun: bool,
    /// Bytes a second to which a limit holds what it is about, where it counts bytes that are written.
    #[serde(skip)]
    pub held_to: Option<f64>,
    /// Bytes a second at which its burst was written.
    #[serde(skip)]
    pub written_at: Option<f64>,
    /// Starts and ends on the clock of the samples of the times in which it happened; empty where it is about the whole window.
    #[serde(skip)]
    pub spans: Vec<(Nanos, Nanos)>,
    /// The rule whose finding is the cause of this one; absent for causes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explained_by: Option<&'static str>,
}

/// One reading and its reference value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Evidence {
    /// Name of the measured quantity.
    pub name: String,
    /// The value.
    pub value: Value,
    /// Unit of value and threshold: a suffix of [`floodline_record::units::Unit`], or `per_second`, `share` (of
    /// one), `factor`, `text`.
    pub unit: &'static str,
    /// Reference value, where there is one.
    pub threshold: Option<Value>,
    /// Source: file and key, or kernel formula.
    pub source: String,
}

/// A value in a report.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Value {
    /// A whole number.
    Integer(u64),
    /// A derived number.
    Decimal(f64),
    /// A word, a setting, a name (escaped).
    Text(String),
}

/// One step of a plan.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Step {
    /// Target of the step: a file, e.g. `/proc/sys/vm/dirty_ratio`, or a command.
    pub write: String,
    /// The value.
    pub value: String,
    /// Command that restores the old state.
    pub undo: String,
    /// The step as one command line of a root shell.
    pub command: String,
    /// Whether it acts now, keeps a change, or waits for a better moment.
    pub when: When,
}

/// A step that a finding asks for and that the plan of the report leaves out. It has no command, so that a report has one change only.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LeftOut {
    /// What the step sets, such as `vm.dirty_bytes=67108864`.
    pub change: String,
    /// Why the plan leaves it out, as half a sentence.
    pub why: String,
}

/// Time at which a step is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// It acts at once.
    #[default]
    Now,
    /// It keeps what another step changed.
    Keep,
    /// It needs a reboot, a package or a change of scripts.
    Later,
}

impl Step {
    /// The name of the sysctl it writes, such as `vm.dirty_bytes`.
    pub fn sysctl(&self) -> Option<String> {
        self.write.strip_prefix("/proc/sys/").map(|path| path.replace('/', "."))
    }

    /// The sysctl as `NAME=VALUE`.
    pub fn assignment(&self) -> Option<String> {
        self.sysctl().map(|name| format!("{name}={}", self.value))
    }

    /// What the step changes, for people and without a command: `vm.dirty_bytes=67108864`, or the text of a later change.
    pub fn named(&self) -> String {
        if self.when == When::Later {
            return self.command.trim_start_matches("# ").to_owned();
        }
        match knob_of(self) {
            Some((name, value)) => format!("{name}={value}"),
            None => format!("{}: {}", self.write, self.value.replace('\n', " ")),
        }
    }
}

/// A rule that found nothing.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RuledOut {
    /// Name of the rule.
    pub rule: &'static str,
    /// The reading that shows it.
    pub reason: String,
}

/// A rule that could not be checked.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NotChecked {
    /// Name of the rule.
    pub rule: &'static str,
    /// The missing input.
    pub gaps: Vec<GapLine>,
}

/// Source of a gap that damage of the recording made.
pub const OF_RECORDING: &str = "the recording";

/// A gap as shown in the report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GapLine {
    /// The source that should have been read.
    pub source: String,
    /// Reason why it was not read.
    pub cause: String,
    /// The cause in one word ([`floodline_record::gap::Cause::kind`]), for metrics; not in the JSON form.
    #[serde(skip)]
    pub kind: &'static str,
    /// Seconds that an observation that was too short needs; not in the JSON form.
    #[serde(skip)]
    pub need_s: Option<u64>,
    /// Conclusions that are not possible without it.
    pub lost: String,
}

impl From<&Gap> for GapLine {
    fn from(gap: &Gap) -> GapLine {
        let source = match &gap.detail {
            Some(detail) => format!("{} ({detail})", gap.source),
            None if gap.source == Source::Recording => OF_RECORDING.to_owned(),
            None => gap.source.to_string(),
        };
        let cause = match gap.times {
            0 | 1 => gap.cause.to_string(),
            times => format!("{} ({times} times)", gap.cause),
        };
        let need_s = match &gap.cause {
            Cause::TooShort { need } => {
                need.strip_prefix("--for ").and_then(|need| need.strip_suffix('s')).and_then(|need| need.parse().ok())
            }
            _ => None,
        };
        GapLine { source, cause, kind: gap.cause.kind(), need_s, lost: gap.source.lost_without().to_owned() }
    }
}
