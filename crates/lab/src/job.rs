// SPDX-License-Identifier: MIT OR Apache-2.0
//! The protocol between host and guest: the job that the host puts into the image, and the status lines
//! that the guest sends while it runs. Both sides are this same program, so the format has no versions.

use floodline_record::units::{Bytes, Nanos};
use floodline_scenario::Scenario;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The job of a guest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// The variant to run.
    pub scenario: Scenario,
    /// Its name.
    pub variant: String,
    /// Serial numbers of the virtual disks, by device name.
    pub disks: BTreeMap<String, String>,
    /// Serial number of the disk with real programs, if there is one.
    pub programs: Option<String>,
    /// Whether the guest boots a whole system with systemd from a disk.
    pub has_system: bool,
    /// Time between two samples.
    pub every: Nanos,
    /// Whether the recorder also traces the kernel.
    pub trace: bool,
    /// The purpose of the guest.
    pub errand: Errand,
}

/// The purpose of a guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Errand {
    /// Run the workload and record.
    Run,
    /// Run a shell or a command.
    Shell(Shell),
}

/// A shell session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shell {
    /// Program and arguments; `None` is a shell at the terminal.
    pub command: Option<Vec<String>>,
    /// The user's terminal, if there is one.
    pub terminal: Option<Terminal>,
    /// Whether the scenario's workload runs at the same time.
    pub with_workload: bool,
}

/// The user's terminal on the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terminal {
    /// `TERM`.
    pub name: String,
    /// Lines.
    pub rows: u16,
    /// Characters per line.
    pub columns: u16,
}

/// Names of the guest's virtio ports, as given to QEMU and listed in `/sys/class/virtio-ports/*/name`.
pub mod port {
    /// Port of the recording.
    pub const RECORDING: &str = "floodline.recording";
    /// Port of the [`super::Status`] lines.
    pub const STATUS: &str = "floodline.status";
}

/// Longest status line, bytes. Longer lines are invalid.
pub const LINE_MAX: usize = 256 << 10;
/// Most characters shown of a text.
const SHOWN_MAX: usize = 1000;

/// One status line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "status")]
pub enum Status {
    /// The guest is up.
    Booted {
        /// The kernel's `uname -r`.
        release: String,
    },
    /// The guest entered a stage.
    Stage {
        /// A few words that describe it.
        stage: String,
    },
    /// The heartbeat, sent every second.
    Alive {
        /// Time since boot.
        uptime: Nanos,
        /// `Dirty` of `/proc/meminfo`.
        dirty: Option<Bytes>,
        /// `Writeback` of `/proc/meminfo`.
        writeback: Option<Bytes>,
    },
    /// The guest cannot continue.
    Failed {
        /// The stage it failed in.
        stage: String,
        /// The cause.
        cause: String,
    },
    /// The first sample is in the recording.
    Sampled,
    /// The workload's clock has started.
    Started,
    /// From now on the terminal belongs to the shell.
    Console,
    /// Output of a command.
    Output {
        /// True for standard error, false for standard output.
        is_error: bool,
        /// The bytes, each as the character with that code.
        text: String,
    },
    /// The shell or command has ended.
    Exited {
        /// Exit code, or 128 plus the number of the signal that killed it.
        code: u8,
    },
    /// The job is done and the recording is complete.
    Done,
}

impl Status {
    /// A status with a command's output.
    pub fn output(is_error: bool, bytes: &[u8]) -> Status {
        Status::Output { is_error, text: bytes.iter().map(|byte| char::from(*byte)).collect() }
    }

    /// Returns the bytes of a [`Status::Output`] text.
    pub fn bytes(text: &str) -> Vec<u8> {
        text.chars().filter_map(|c| u8::try_from(c).ok()).collect()
    }

    /// Serialises the status as one line with its newline.
    pub fn to_line(&self) -> String {
        // The fields are texts and numbers, so this cannot fail.
        let mut line = serde_json::to_string(self).unwrap_or_default();
        line.push('\n');
        line
    }

    /// Parses a line. Returns `None` for an invalid line. The guest may run untrusted programs, so control characters
    /// are removed from texts that are shown, and their length is limited.
    pub fn from_line(line: &str) -> Option<Status> {
        let shown = |text: String| crate::tool::printable(&text.replace('\n', "; "), SHOWN_MAX);
        Some(match serde_json::from_str(line).ok()? {
            Status::Booted { release } => Status::Booted { release: shown(release) },
            Status::Stage { stage } => Status::Stage { stage: shown(stage) },
            Status::Failed { stage, cause } => Status::Failed { stage: shown(stage), cause: shown(cause) },
            // The output of the user's own command is passed on unchanged.
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
