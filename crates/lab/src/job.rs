// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the two sides of a guest say to each other: the job that the host puts into the image, and the
//! lines of status that come back while it runs. Both sides are this same program, so there are no versions.

use floodline_record::units::{Bytes, Nanos};
use floodline_scenario::Scenario;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a guest is to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// The variant to run.
    pub scenario: Scenario,
    /// Its name.
    pub variant: String,
    /// Serial numbers of the virtual disks by name of the device.
    pub disks: BTreeMap<String, String>,
    /// Serial number of the disk with real programs, where there is one.
    pub programs: Option<String>,
    /// Whether the guest runs a whole system with systemd, from a disk.
    pub has_system: bool,
    /// Time between two samples.
    pub every: Nanos,
    /// Whether the recorder traces the kernel too.
    pub trace: bool,
    /// What for.
    pub errand: Errand,
}

/// What the machine is built for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Errand {
    /// To run the workload and record.
    Run,
    /// For somebody to look around in.
    Shell(Shell),
}

/// What is started for somebody who looks around.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shell {
    /// Program and arguments; `None` is a shell at the terminal.
    pub command: Option<Vec<String>>,
    /// The terminal in front of it, where there is one.
    pub terminal: Option<Terminal>,
    /// Whether the scenario's workload runs beside it.
    pub with_workload: bool,
}

/// The terminal of the person on the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terminal {
    /// `TERM`.
    pub name: String,
    /// Lines.
    pub rows: u16,
    /// Characters per line.
    pub columns: u16,
}

/// Names of the ports of the guest, as QEMU and `/sys/class/virtio-ports/*/name` have them.
pub mod port {
    /// The recording, as it is written.
    pub const RECORDING: &str = "floodline.recording";
    /// Lines of [`super::Status`].
    pub const STATUS: &str = "floodline.status";
}

/// Longest line of status, bytes: one that is longer is no status.
pub const LINE_MAX: usize = 256 << 10;
/// Most characters of a text that is shown.
const SHOWN_MAX: usize = 1000;

/// One line of status.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "status")]
pub enum Status {
    /// The guest is up.
    Booted {
        /// What the kernel calls itself.
        release: String,
    },
    /// What it does now.
    Stage {
        /// In a few words.
        stage: String,
    },
    /// It is alive; told every second, whatever else goes on.
    Alive {
        /// Since boot.
        uptime: Nanos,
        /// Dirty memory.
        dirty: Option<Bytes>,
        /// Memory under writeback.
        writeback: Option<Bytes>,
    },
    /// It cannot go on.
    Failed {
        /// What it was doing.
        stage: String,
        /// Why it failed.
        cause: String,
    },
    /// The first sample is in the recording.
    Sampled,
    /// The clock of the workload has started.
    Started,
    /// The terminal is a shell's from now on.
    Console,
    /// Something that a command printed.
    Output {
        /// On standard error, not standard output.
        is_error: bool,
        /// Its bytes, each as the character of that number.
        text: String,
    },
    /// The shell or command has ended.
    Exited {
        /// Exit code; 128 and the number of the signal that killed it.
        code: u8,
    },
    /// The job is done and the recording is whole.
    Done,
}

impl Status {
    /// What a command printed.
    pub fn output(is_error: bool, bytes: &[u8]) -> Status {
        Status::Output { is_error, text: bytes.iter().map(|byte| char::from(*byte)).collect() }
    }

    /// The bytes of a text of [`Status::Output`].
    pub fn bytes(text: &str) -> Vec<u8> {
        text.chars().filter_map(|c| u8::try_from(c).ok()).collect()
    }

    /// As a line, newline included.
    pub fn to_line(&self) -> String {
        // Texts and numbers only: this cannot fail.
        let mut line = serde_json::to_string(self).unwrap_or_default();
        line.push('\n');
        line
    }

    /// Reads a line; `None` when it is none. The guest may run programs of strangers: texts that are shown lose their
    /// control characters, and have a length.
    pub fn from_line(line: &str) -> Option<Status> {
        let shown = |text: String| crate::tool::printable(&text.replace('\n', "; "), SHOWN_MAX);
        Some(match serde_json::from_str(line).ok()? {
            Status::Booted { release } => Status::Booted { release: shown(release) },
            Status::Stage { stage } => Status::Stage { stage: shown(stage) },
            Status::Failed { stage, cause } => Status::Failed { stage: shown(stage), cause: shown(cause) },
            // What a command printed is for the person who ran it, as it is.
            other => other,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_reads_back() {
        let text = "name = \"s\"\nsummary = \"s\"\n[machine]\nmemory = \"1 GiB\"\n\
                    sysctl.vm = { dirty_bytes = \"100 MiB\", dirty_expire_centisecs = 500 }\n\
                    [machine.cgroups.\"a{i}\"]\ninstances = 2\nmemory_max = \"max\"\n\
                    [workload]\nduration = \"1.5s\"\n[workload.tasks.t]\nsteps = [\"sync\", { sleep = { for = \"1s\" } }]\n";
        let file = floodline_scenario::ScenarioFile::parse(text).unwrap();
        let scenario = file.variants.into_values().next().unwrap();
        let disks = BTreeMap::from([("data".to_owned(), "disk0".to_owned())]);
        let shell = Shell { command: Some(vec!["true".to_owned()]), terminal: None, with_workload: false };
        let errand = Errand::Shell(shell);
        let every = Nanos(500_000_000);
        let job = Job {
            scenario,
            variant: "default".to_owned(),
            disks,
            programs: None,
            has_system: false,
            every,
            trace: false,
            errand,
        };
        let read: Job = serde_json::from_slice(&serde_json::to_vec(&job).unwrap()).unwrap();
        assert_eq!(read, job);
    }

    #[test]
    fn a_status_is_one_line_and_reads_back() {
        let check = |status: Status| {
            let line = status.to_line();
            assert_eq!(line.matches('\n').count(), 1, "{line}");
            assert_eq!(Status::from_line(&line), Some(status));
        };
        check(Status::Alive { uptime: Nanos(1), dirty: Some(Bytes(u64::MAX)), writeback: None });
        check(Status::Failed { stage: "mounting".to_owned(), cause: "one line".to_owned() });
        check(Status::Done);
        let bytes: Vec<u8> = (0..=255).collect();
        check(Status::output(true, &bytes));
        let Status::Output { text, .. } = Status::output(false, &bytes) else { panic!("output") };
        assert_eq!(Status::bytes(&text), bytes);
        assert_eq!(Status::from_line("[   1.0] Linux"), None);
    }

    #[test]
    fn a_text_of_the_guest_is_shown_without_control_characters_and_with_a_length() {
        let strange = "two\nlines \u{1b}[2J\u{9b}1m\u{202e}x\r\u{7}";
        let told = Status::Failed { stage: strange.to_owned(), cause: "x".repeat(100_000) };
        let Some(Status::Failed { stage, cause }) = Status::from_line(&told.to_line()) else { panic!("a failure") };
        assert_eq!((stage.as_str(), cause.len()), ("two; lines [2J1mx", SHOWN_MAX));
        for told in [Status::Stage { stage: strange.to_owned() }, Status::Booted { release: strange.to_owned() }] {
            let read = format!("{:?}", Status::from_line(&told.to_line()).unwrap());
            assert!(read.contains("two; lines [2J1mx"), "{read}");
        }
    }
}
