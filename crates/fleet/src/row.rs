// SPDX-License-Identifier: MIT OR Apache-2.0
//! Verdict on one host: a flat row for tables. Names and texts in it are escaped. Fields are added, never renamed;
//! units are in their names.

use crate::change::Change;
use floodline_record::text::Text;
use serde::{Deserialize, Serialize};

/// Version of the JSON form of a row.
pub const SCHEMA: &str = "floodline.preflight-row/1";

/// Effect of the change on a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The host waits or writes more, by enough to be noticed.
    Suffers,
    /// The host does not, but by a small margin.
    Tight,
    /// The host does not.
    Fine,
    /// The recording is not sufficient; the cause gives the reason.
    #[default]
    NotKnown,
}

impl Verdict {
    /// The word of the JSON form.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Suffers => "suffers",
            Verdict::Tight => "tight",
            Verdict::Fine => "fine",
            Verdict::NotKnown => "not_known",
        }
    }

    /// The verdict of a word.
    pub fn of(name: &str) -> Option<Verdict> {
        [Verdict::Suffers, Verdict::Tight, Verdict::Fine, Verdict::NotKnown].into_iter().find(|one| one.name() == name)
    }
}

/// Reliability of a verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// A guess: the twin misses its own recording by more than 25 %, or one sample decides.
    #[default]
    Low,
    /// Arithmetic over a recording.
    Medium,
    /// The twin reproduces the recording and agrees.
    High,
}

impl Confidence {
    /// The word of the JSON form.
    pub fn name(self) -> &'static str {
        match self {
            Confidence::Low => "low",
            Confidence::Medium => "medium",
            Confidence::High => "high",
        }
    }
}

macro_rules! causes {
    ($($(#[$doc:meta])* $name:ident = $word:literal, $title:literal;)+) => {
        /// Why a host has its verdict: what hosts are grouped by. The words are stable.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Cause {
            $($(#[$doc])* $name,)+
            /// The margin is wide.
            #[default]
            WideMargin,
        }

        impl Cause {
            /// Every cause.
            pub const ALL: &[Cause] = &[$(Cause::$name,)+ Cause::WideMargin];

            /// The stable word.
            pub fn name(self) -> &'static str {
                match self {
                    $(Cause::$name => $word,)+
                    Cause::WideMargin => "wide-margin",
                }
            }

            /// The group's heading for people.
            pub fn title(self) -> &'static str {
                match self {
                    $(Cause::$name => $title,)+
                    Cause::WideMargin => "no limit is near",
                }
            }
        }
    };
}

causes! {
    /// A cgroup holds more unwritten data than its limit after the change, or nearly as much.
    CgroupLimit = "cgroup-dirty-limit", "unwritten data of cgroups are above or near their new limits";
    /// A cgroup that writes gets a limit of a few folios.
    StarvedBudget = "starved-dirty-budget", "a dirty setting leaves cgroups a limit of a few folios";
    /// The machine holds more unwritten data than its limit after the change, or nearly as much.
    MachineLimit = "machine-dirty-limit", "unwritten data of the machine are above or near its new limit";
    /// More unwritten data can pile up than the disk writes in a few seconds.
    DirtyCliff = "dirty-cliff", "more unwritten data can pile up than the disk writes quickly";
    /// The new kernel moves inodes of removed cgroups at great cost.
    InodeSwitching = "inode-switch-storm", "the new kernel moves inodes of removed cgroups at great cost";
    /// After the change, unmounting an overlay syncs the filesystem below it.
    OverlaySync = "overlay-umount-flush", "after the change, unmounting an overlay syncs the filesystem below it";
    /// Limits of cgroups no longer hold buffered writes.
    LimitsLost = "cgroup-writeback-missing", "limits of cgroups no longer hold buffered writes";
    /// Two settings contradict each other after the change.
    Contradiction = "contradictory-dirty-settings", "dirty settings contradict each other";
    /// The programs do not fit into the memory.
    MemoryTooSmall = "memory-too-small", "the memory in use fills the new memory";
    /// Page cache that is read again no longer fits into memory.
    CacheTooSmall = "page-cache-too-small", "page cache that programs read again no longer fits";
    /// The twin waits or writes more after the change, and no limit explains it.
    Simulated = "simulated-harm", "in the simulation, tasks wait longer or disks write more";
    /// The host is sick before the change and no worse after it.
    SickAlready = "sick-already", "sick before the change and no worse after it";
    /// The host is sick before the change, and the twin is not after it.
    Cured = "cured", "sick before the change, and cured by it";
    /// The host is sick before the change, and less so after it.
    Helped = "helped", "sick before the change, and helped by it";
    /// A limit is near, now as after the change.
    SameLimit = "same-limit", "a limit is near, and the change does not make it smaller";
    /// The change is in force already, or the host has nothing that it changes.
    NoChange = "no-change", "the change is already in force, or does not apply to the host";
    /// The change ends periodic writeback.
    NeverWritten = "never-written", "the change ends periodic writeback: data may stay unwritten until a sync";
    /// The file could not be opened or read.
    FileUnreadable = "file-unreadable", "the file cannot be read";
    /// It is a pipe, a socket, a device or a folder.
    NotAFile = "not-a-file", "the path is a pipe, a socket, a device or a folder";
    /// The file has no bytes.
    FileEmpty = "file-empty", "the file is empty";
    /// The file is something else.
    NotARecording = "not-a-recording", "the file is not a recording";
    /// The file ends before its first sample does.
    Truncated = "truncated", "the recording ends before its first sample";
    /// Bytes of the file changed after they were written.
    Damaged = "damaged", "the recording is damaged";
    /// The file has a format of the future.
    NewerFormat = "newer-format", "the recording needs a newer floodline";
    /// The recording has no sample.
    NoSample = "no-sample", "the recording has no sample";
    /// The recording does not describe its machine.
    NoFacts = "no-facts", "the recording does not describe its machine";
    /// The kernel version of the host is not known.
    NoKernelVersion = "no-kernel-version", "the kernel version was not read";
    /// The settings of the host were not read.
    NoSettings = "no-settings", "the dirty settings were not read";
    /// The cgroups of the host were not read.
    NoCgroups = "no-cgroups", "the cgroups were not read";
    /// Only a simulation can answer, and the recording is too short for one.
    TooShort = "too-short", "the recording is too short for a simulation";
    /// Only a simulation can answer, and that of this host is not like its recording.
    UnlikeTwin = "unlike-twin", "only a simulation can answer, and its model is not like the host";
    /// Only a simulation can answer, and its answer depends on the limit of a disk that was never full in the recording.
    LimitNotSeen = "disk-limit-not-seen", "the answer depends on the limit of a disk that was never full";
    /// Two bounds of what programs want to write disagree, and the recording does not tell which is nearer.
    DemandNotKnown = "demand-not-known", "the answer depends on how much programs want to write, which was not traced";
    /// Only a simulation can answer, and the model of this host cannot make the change.
    NotModelled = "not-modelled", "only a simulation can answer, and it cannot make the change there";
    /// Only a simulation can answer, and none was made.
    NotSimulated = "not-simulated", "only a simulation can answer";
    /// The program failed on this file.
    Failed = "failed", "floodline failed on this file";
}

impl Cause {
    /// Whether nothing of the file could be read.
    pub fn is_unread(self) -> bool {
        matches!(self, Cause::FileUnreadable | Cause::NotAFile)
    }

    /// Whether the file itself, not its content, is the reason for no answer.
    pub fn is_of_file(self) -> bool {
        matches!(
            self,
            Cause::FileUnreadable
                | Cause::NotAFile
                | Cause::FileEmpty
                | Cause::NotARecording
                | Cause::Truncated
                | Cause::Damaged
                | Cause::NewerFormat
                | Cause::NoSample
        )
    }

    /// What to type next where the answer is not known.
    pub fn hint(self) -> &'static str {
        match self {
            Cause::FileUnreadable => "check the path; run as a user who may read the file, or copy the file again",
            Cause::NotAFile => "name a regular file; to save a pipe: cat PIPE > HOST.flr",
            Cause::FileEmpty | Cause::NoSample | Cause::Truncated => {
                "ssh HOST floodline record --for 60s -o - > HOST.flr"
            }
            Cause::NotARecording => "name recordings (.flr), such as 'fleet/*.flr', and unpack those that are packed",
            Cause::Damaged => "copy the file again in binary mode, or record again",
            Cause::NewerFormat => "use the floodline version that is named, or a later one",
            Cause::NoFacts | Cause::NoKernelVersion => "on the host: floodline record --for 60s -o host.flr",
            Cause::NoSettings | Cause::NoCgroups => "as root: sudo floodline record --for 60s -o host.flr",
            Cause::TooShort | Cause::NotSimulated => {
                "on the host: floodline record --for 60s -o host.flr; then without --tier 1"
            }
            Cause::DemandNotKnown => "on the host, as root: floodline record --for 60s --trace on -o host.flr",
            Cause::UnlikeTwin => "on the host: floodline record --for 5m --trace on -o host.flr",
            Cause::LimitNotSeen => "measure the disk: floodline record --for 60s -o host.flr during a large copy",
            Cause::NotModelled => "leave the host out, or name a setting that it has",
            Cause::Failed => "floodline doctor FILE shows whether other commands can read it",
            _ => "",
        }
    }
}

impl Serialize for Cause {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// Severity of what is just noticeable.
const NOTICED: f64 = 1.0;
/// What the model calls its host: two recordings of it are of two hosts.
const MODEL: &str = "simulated";

/// Verdict on one host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Name of the host; of the file where the recording has none.
    pub host: String,
    /// The file.
    pub file: String,
    /// The answer.
    pub verdict: Verdict,
    /// Cause of the verdict.
    pub cause: Cause,
    /// Stable key of the finding, `CAUSE@HOST`: accepted findings are named by it.
    pub key: String,
    /// Whether the finding was accepted beforehand.
    pub accepted: bool,
    /// Whether a later recording of the same host counts instead.
    pub superseded: bool,
    /// One sentence.
    pub finding: String,
    /// What to type next; empty where nothing is to be done.
    pub hint: String,
    /// Severity: 1 is just noticeable, 10 is ten times that. 0 where nothing gets worse.
    #[serde(deserialize_with = "crate::packed::number")]
    pub severity: f64,
    /// Reliability of the verdict.
    pub confidence: Confidence,
    /// 1: arithmetic. 2: simulated on the twin.
    pub tier: u8,
    /// Whether the host was simulated as a control only.
    pub control: bool,
    /// Most unwritten data that fits below the limit, as a multiple of the largest amount seen. Below 1, writers are
    /// slowed.
    pub margin: Option<f64>,
    /// The cgroup that decides the margin; absent if that is the machine.
    pub worst_cgroup: Option<String>,
    /// Most unwritten data of that cgroup or machine in any sample, bytes.
    pub demand_bytes: Option<u64>,
    /// Its hard limit before the change, bytes; absent without one of its own.
    pub limit_now_bytes: Option<u64>,
    /// Its hard limit after the change, bytes.
    pub limit_then_bytes: Option<u64>,
    /// Cgroups whose margin is below 1.
    pub cgroups_over: u64,
    /// Cgroups that were read.
    pub cgroups: u64,
    /// Recorded or simulated time for which tasks waited before the change, all together, seconds.
    pub stall_now_seconds: Option<f64>,
    /// Predicted time for which tasks wait after the change, seconds.
    pub stall_then_seconds: Option<f64>,
    /// Lower end of the prediction.
    pub stall_then_low_seconds: Option<f64>,
    /// Upper end of the prediction.
    pub stall_then_high_seconds: Option<f64>,
    /// Longest wait of a write or sync call before the change, seconds.
    pub longest_wait_now_seconds: Option<f64>,
    /// Predicted longest wait after the change, seconds.
    pub longest_wait_then_seconds: Option<f64>,
    /// Bytes written to disks before the change.
    pub written_now_bytes: Option<f64>,
    /// Predicted bytes written to disks after the change.
    pub written_then_bytes: Option<f64>,
    /// Median error of the twin against its own recording, as a share.
    pub back_test_error: Option<f64>,
    /// Rule with a critical finding in the recording, before the change.
    pub sick_already: Option<String>,
    /// Kernel of the recording.
    pub kernel_now: Option<String>,
    /// Kernel after the change.
    pub kernel_then: Option<String>,
    /// Cgroup version of the recording: `none`, `v1`, `v2`, `hybrid`.
    pub cgroup_now: Option<String>,
    /// Cgroup version after the change.
    pub cgroup_then: Option<String>,
    /// Settings in files read at boot that differ from those of the running kernel.
    pub boot: Option<String>,
    /// Samples of the recording.
    pub samples: u64,
    /// Its length, seconds.
    #[serde(deserialize_with = "crate::packed::number")]
    pub seconds: f64,
    /// Time of its last sample, nanoseconds since 1970 UTC.
    pub recorded_wall_ns: Option<u64>,
    /// Whether the end of the file is missing: the rest was judged.
    pub cut: bool,
    /// Whether parts of the file are damaged: the rest was judged.
    pub damaged: bool,
    /// Notes to the verdict.
    pub notes: Vec<String>,
    /// Whether the recording names its host.
    #[serde(skip)]
    pub(crate) is_named: bool,
    /// Keys of the change that refer to something the host does not have.
    #[serde(skip)]
    pub(crate) absent: Vec<String>,
    /// Whether a calm twin does not clear the host: the cause of the suffering is not in a recording.
    #[serde(skip)]
    pub(crate) is_firm: bool,
    /// Whether arithmetic predicts how long writers wait, so that its severity has the unit of the twin's.
    #[serde(skip)]
    pub(crate) predicts_waits: bool,
    /// Whether the data fits below the smaller limits after all, if it arrives evenly between two samples.
    #[serde(skip)]
    pub(crate) may_fit: bool,
    /// Share of what became dirty that was removed before it was written.
    #[serde(skip)]
    pub(crate) removed_share: f64,
    /// Whether one sync waits for all that piled up behind a larger threshold.
    #[serde(skip)]
    pub(crate) waits_for_pile: bool,
    /// Whether a journal may have made all flushes of the disks.
    #[serde(skip)]
    pub(crate) syncs_rarely: bool,
    /// Whether data piles up because it gets older before the flusher writes it.
    #[serde(skip)]
    pub(crate) is_of_age: bool,
    /// Whether most stores into mapped files met pages that were dirty already, so that no counter shows their rate.
    #[serde(skip)]
    pub(crate) hides_stores: bool,
    /// Whether programs store into mapped files, which the new kernel puts into large folios: how much is then dirty depends on where
    /// they store, which arithmetic does not know.
    #[serde(skip)]
    pub(crate) gets_folios: bool,
    /// Whether the calls that brought such a file into the page cache decide whether it is in large folios then. No recording shows them.
    #[serde(skip)]
    pub(crate) folios_by_origin: bool,
    /// Settings that the boot applies.
    #[serde(skip)]
    pub(crate) boot_settings: Vec<(&'static str, u64)>,
}

/// The host named by a file: `host=NAME` in its path, else the file name without its extension.
fn of_file(file: &str) -> String {
    let named = file.rsplit('/').find_map(|part| part.strip_prefix("host="));
    let last = file.rsplit('/').next().unwrap_or(file);
    let name = named.unwrap_or_else(|| last.strip_suffix(".flr").unwrap_or(last));
    if name.is_empty() { file.to_owned() } else { name.to_owned() }
}

impl Row {
    /// The row of a file that cannot answer. `why` is a sentence.
    pub fn not_known(name: &str, change: &Change, cause: Cause, why: String) -> Row {
        let file = Text::new(name).to_string();
        let mut row = Row {
            host: of_file(&file),
            file,
            kernel_then: change.kernel_on(None).map(|kernel| kernel.to_string()),
            ..Row::default()
        };
        row.decide(Verdict::NotKnown, cause, why);
        row
    }

    /// Names the host by its recording. Rows of one named host are of one machine.
    pub(crate) fn name_host(&mut self, host: String) {
        self.is_named = !matches!(host.as_str(), "" | "localhost" | "localhost.localdomain" | "(none)" | MODEL);
        if self.is_named {
            self.host = host;
        }
    }

    /// Sets the answer with its key and hint.
    pub(crate) fn decide(&mut self, verdict: Verdict, cause: Cause, finding: String) {
        self.verdict = verdict;
        self.cause = cause;
        self.finding = Text::new(&finding).to_string();
        self.rename(self.host.clone());
        self.hint = if verdict == Verdict::NotKnown { cause.hint().to_owned() } else { String::new() };
    }

    /// Takes back that a host suffers if that is less than people notice: its margin is small then.
    pub(crate) fn settle(&mut self) {
        if self.verdict == Verdict::Suffers && self.severity < NOTICED {
            let finding = format!("{} This is less than people notice.", self.finding);
            self.decide(Verdict::Tight, self.cause, finding);
        }
    }

    /// Gives the host another name.
    pub(crate) fn rename(&mut self, host: String) {
        self.key = format!("{}@{host}", self.cause.name());
        self.host = host;
    }

    /// Whether a key of an accepted finding names this row: the whole key, or the cause for every host.
    pub fn is_named_by(&self, key: &str) -> bool {
        key == self.key || key == self.cause.name()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn words_of_causes_are_unique_and_unknown_ones_have_a_hint() {
        let words: BTreeSet<&str> = Cause::ALL.iter().map(|cause| cause.name()).collect();
        assert_eq!(words.len(), Cause::ALL.len());
        let row = Row::not_known("x\u{1b}[2J", &Change::default(), Cause::Damaged, "It is damaged.".to_owned());
        assert!(!row.hint.is_empty() && !row.file.contains('\u{1b}') && row.key.starts_with("damaged@x"), "{row:?}");
        assert_eq!([of_file("a/host=b/c.flr"), of_file("a/c.flr"), of_file("/"), of_file("")], ["b", "c", "/", ""]);
        assert!(row.is_named_by("damaged") && row.is_named_by(&row.key.clone()) && !row.is_named_by("damage"));
        let forged = Row::not_known("a\nhost SUFFERS.flr", &Change::default(), Cause::Damaged, "It\nis.".to_owned());
        let texts = [&forged.file, &forged.host, &forged.key, &forged.finding];
        assert!(texts.iter().all(|text| !text.contains('\n')) && forged.file.starts_with("a\\x0ahost"), "{forged:?}");
        for verdict in [Verdict::Suffers, Verdict::Tight, Verdict::Fine, Verdict::NotKnown] {
            assert_eq!(Verdict::of(verdict.name()), Some(verdict));
        }
    }

    #[test]
    fn a_host_suffers_only_from_what_is_noticed() {
        let settled = |verdict, severity| {
            let mut row = Row { severity, ..Row::default() };
            row.decide(verdict, Cause::CgroupLimit, "Writers will wait.".to_owned());
            row.settle();
            (row.verdict, row.key, row.finding)
        };
        let told = |finding: &str| finding.to_owned();
        let (verdict, key, finding) = settled(Verdict::Suffers, 0.6);
        assert_eq!((verdict, key.starts_with("cgroup-dirty-limit@")), (Verdict::Tight, true));
        assert_eq!(finding, told("Writers will wait. This is less than people notice."));
        assert_eq!(settled(Verdict::Suffers, 1.0).0, Verdict::Suffers);
        assert_eq!(settled(Verdict::Fine, 0.0).2, told("Writers will wait."));
    }
}
