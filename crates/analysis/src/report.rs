// SPDX-License-Identifier: MIT OR Apache-2.0
//! What Floodline says about a machine: findings with evidence, what was ruled out, what could not be
//! checked. Plain data; `floodline-view` turns it into text or JSON and computes nothing.
//! The JSON form is a stable interface: fields are added, never renamed; `schema` names the version.

use floodline_record::gap::Gap;
pub use floodline_record::severity::Severity;
use serde::Serialize;

/// Version of the JSON form.
pub const SCHEMA: &str = "floodline.doctor/1";

/// The answer of `floodline doctor`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// The machine looked at.
    pub host: HostSummary,
    /// Seconds between the first and the last sample; 0 for a single look.
    pub window_s: f64,
    /// What was found, worst first.
    pub findings: Vec<Finding>,
    /// Rules that looked and found nothing, with the reading that says so.
    pub ruled_out: Vec<RuledOut>,
    /// Rules that could not look, and why.
    pub not_checked: Vec<NotChecked>,
    /// Everything that could not be read, whether or not a rule needed it.
    pub gaps: Vec<GapLine>,
    /// What to change, of all findings together; absent where no command helps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<Plan>,
    /// What people on the machine notice, whatever its cause.
    pub symptom: Symptom,
    /// What is missing of the observation, the whole recording where it was diagnosed in stretches.
    pub observation: Observation,
    /// Which stretch of a long recording this is the report of; absent where it is all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stretch: Option<Stretch>,
}

/// A stretch of a long recording: the worst of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stretch {
    /// Where it begins on the wall clock, nanoseconds since 1970 UTC.
    pub from_wall_ns: u64,
    /// Where it ends.
    pub to_wall_ns: u64,
    /// Seconds the whole recording covers.
    pub of_s: f64,
    /// Stretches the recording was diagnosed in.
    pub of_stretches: u64,
    /// Warnings and worse of the other stretches, worst first.
    pub others: Vec<OtherStretches>,
}

/// What a rule found in other stretches than the one reported.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OtherStretches {
    /// Name of the rule.
    pub rule: &'static str,
    /// The worst of its findings.
    pub severity: Severity,
    /// In how many stretches.
    pub stretches: u64,
    /// Where the first of them begins on the wall clock, nanoseconds since 1970 UTC.
    pub first_wall_ns: u64,
}

/// How complete an observation is.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Observation {
    /// Samples that were taken.
    pub samples: u64,
    /// Samples that were due and not taken: the recorder did not run in time.
    pub missing_samples: u64,
    /// Length of the longest hole, seconds; 0 where there is none.
    pub longest_hole_s: f64,
    /// The longest holes, in order of time.
    pub holes: Vec<HoleLine>,
    /// Whether a stall may have happened between two samples: the holes are long, or tasks waited for I/O during them.
    pub may_hide_stall: bool,
    /// Samples whose monotonic time is not behind that of the sample before.
    pub samples_back_in_time: u64,
    /// How often the wall clock was set, seen against the monotonic clock.
    pub wall_clock_jumps: u64,
    /// The largest of these jumps, seconds; negative where the clock was set back.
    pub largest_wall_clock_jump_s: Option<f64>,
    /// Where the wall clock stood behind it, nanoseconds since 1970 UTC.
    pub largest_wall_clock_jump_wall_ns: Option<u64>,
}

/// A stretch without the samples that were due in it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HoleLine {
    /// The sample before it on the wall clock, nanoseconds since 1970 UTC.
    pub from_wall_ns: u64,
    /// Seconds to the sample behind it.
    pub length_s: f64,
    /// Samples that were due in it.
    pub missing_samples: u64,
    /// Seconds of it in which a task waited for I/O, as the kernel counted.
    pub io_pressure_some_s: Option<f64>,
    /// Seconds of it in which a task waited for memory.
    pub memory_pressure_some_s: Option<f64>,
}

/// The machine in a few words.
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
    /// Whether the multi-generational LRU is on, which does not spare what `memory.low` protects as the older lists do.
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

/// What people on the machine notice while it is observed: waiting and busy devices, without a cause.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Symptom {
    /// When the observation began on the wall clock, nanoseconds since 1970 UTC.
    pub from_wall_ns: Option<u64>,
    /// Seconds of it in which tasks waited for I/O for a noticeable part of the time; 0 where they did not.
    pub waiting_s: f64,
    /// When the first such interval began on the wall clock, nanoseconds since 1970 UTC.
    pub waiting_from_wall_ns: Option<u64>,
    /// Share of these seconds in which at least one task waited for I/O: `/proc/pressure/io` `some`.
    pub io_some_share: Option<f64>,
    /// The largest share of any interval.
    pub io_some_share_max: Option<f64>,
    /// Smallest and largest share of CPU time that was idle with I/O outstanding, of these seconds' intervals.
    pub iowait_share: Option<(f64, f64)>,
    /// The busiest disk in these seconds, or in the whole observation where tasks did not wait.
    pub busiest: Option<BusyDisk>,
    /// The most dirty data of any sample, bytes.
    pub dirty_max_bytes: Option<u64>,
    /// Where background writeback starts, bytes.
    pub background_threshold_bytes: Option<u64>,
    /// Where writers begin to be paused, bytes: the freerun ceiling.
    pub freerun_ceiling_bytes: Option<u64>,
    /// The smallest hard threshold of a cgroup that has one of its own.
    pub tightest: Option<TightCgroup>,
}

/// A disk and how busy it was.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BusyDisk {
    /// Kernel name (escaped).
    pub name: String,
    /// Share of the time with a request in flight.
    pub busy_share: f64,
    /// Mean time of a write, queueing included, seconds.
    pub write_await_s: Option<f64>,
}

/// A cgroup and how much it may have dirty.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TightCgroup {
    /// Its label (escaped).
    pub name: String,
    /// Its hard threshold, bytes.
    pub thresh_bytes: u64,
    /// Cgroups with a threshold of their own.
    pub of: u64,
}

/// What a person reads first of a finding: few and plain words. The kernel's words are in the other fields.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Brief {
    /// Why it happens here, in at most three short sentences.
    pub because: String,
    /// Which processes, cgroups or devices it concerns; empty where that is the whole machine.
    pub who: String,
    /// What the change is expected to do.
    pub expect: String,
    /// What the change costs.
    pub costs: String,
}

/// What to change on this machine: the steps of all findings, merged.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Plan {
    /// Commands that act at once, for a shell of any user who may use sudo.
    pub now: Vec<String>,
    /// What they are expected to do.
    pub expect: Vec<String>,
    /// What they cost.
    pub costs: Vec<String>,
    /// Commands that put the old state back.
    pub undo: Vec<String>,
    /// Commands that make the change survive a reboot.
    pub keep: Vec<String>,
    /// Commands that take back what `keep` wrote. `undo` changes the running host only.
    pub undo_keep: Vec<String>,
    /// One command instead of `now` and `keep`: a guard undoes it unless it is confirmed. Empty if `apply` cannot make all of
    /// the change.
    pub guarded: Vec<String>,
    /// Files that set the same values at boot, a sentence each; empty where none is known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub at_boot: Vec<String>,
    /// What cannot be done by a command now, such as another kernel.
    pub later: Vec<String>,
    /// Steps of other findings that were left out, and why.
    pub conflicts: Vec<String>,
    /// Rules whose findings the plan answers.
    pub rules: Vec<&'static str>,
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// What the twin of the host showed; absent if the plan was not tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tried: Option<TriedPlan>,
    /// Why the plan rests on arithmetic alone; absent if the twin supports or refutes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arithmetic_only: Option<String>,
}

/// A plan as the twin of the host showed it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TriedPlan {
    /// `helps`, `does_not_help` or `harms`. Only a plan that helps keeps its commands.
    pub verdict: &'static str,
    /// Median error of the back-test, as a share.
    pub back_test_error: Option<f64>,
    /// Predicted figures.
    pub expected: Vec<crate::change::Expected>,
    /// Commands that are not advised, because the twin does not see them helping.
    pub withheld: Vec<String>,
}

/// One thing that is wrong.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Finding {
    /// Name of the rule.
    pub rule: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// One sentence that a tired person understands.
    pub summary: String,
    /// What a trace saw of it, and who did it to what, in a sentence; `None` where nothing traced it, or the
    /// trace does not show it: then it rests on files alone.
    pub confirmed: Option<String>,
    /// The readings it rests on.
    pub evidence: Vec<Evidence>,
    /// Why it happens, in terms of this machine.
    pub cause: String,
    /// The change that helps, in the order to make it.
    pub plan: Vec<Step>,
    /// What the change costs.
    pub trade_off: String,
    /// Disks it is about, by kernel name (escaped); empty where it is about the whole machine.
    pub devices: Vec<String>,
    /// The same in few and plain words, for the first screen.
    pub brief: Brief,
    /// The rule whose finding is the cause of this one; absent for causes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explained_by: Option<&'static str>,
}

/// One reading and what it is held against.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Evidence {
    /// What was measured.
    pub name: String,
    /// The value.
    pub value: Value,
    /// Unit of value and threshold: a suffix of [`floodline_record::units::Unit`], or `per_second`, `share` (of
    /// one), `factor`, `text`.
    pub unit: &'static str,
    /// What it is held against, where there is such a number.
    pub threshold: Option<Value>,
    /// File and key, or kernel formula, it comes from.
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
    /// What is written to or run, e.g. `/proc/sys/vm/dirty_ratio` or a command.
    pub write: String,
    /// The value.
    pub value: String,
    /// What puts the old state back.
    pub undo: String,
    /// The same as one command line of a root shell.
    pub command: String,
    /// Whether it acts now, keeps a change, or waits for a better moment.
    pub when: When,
}

/// When a step is taken.
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
}

/// A rule that found nothing.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RuledOut {
    /// Name of the rule.
    pub rule: &'static str,
    /// The reading that says so.
    pub reason: String,
}

/// A rule that could not look.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NotChecked {
    /// Name of the rule.
    pub rule: &'static str,
    /// What was missing.
    pub gaps: Vec<GapLine>,
}

/// A gap as it is shown.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GapLine {
    /// What should have been read.
    pub source: String,
    /// Why it was not.
    pub cause: String,
    /// The cause in one word ([`floodline_record::gap::Cause::kind`]), for metrics; not in the JSON form.
    #[serde(skip)]
    pub kind: &'static str,
    /// What cannot be said without it.
    pub lost: String,
}

impl From<&Gap> for GapLine {
    fn from(gap: &Gap) -> GapLine {
        let source = match &gap.detail {
            Some(detail) => format!("{} ({detail})", gap.source),
            None => gap.source.to_string(),
        };
        let cause = match gap.times {
            0 | 1 => gap.cause.to_string(),
            times => format!("{} ({times} times)", gap.cause),
        };
        GapLine { source, cause, kind: gap.cause.kind(), lost: gap.source.lost_without().to_owned() }
    }
}
