// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the two sides of a guest say to each other: the job that the host puts into the image, and the
//! lines of status that come back while it runs. Both sides are this same program, so there are no versions.

use floodline_core::scenario::Scenario;
use floodline_core::units::{Bytes, Nanos};
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
    /// Time between two samples.
    pub every: Nanos,
}

/// Names of the ports of the guest, as QEMU and `/sys/class/virtio-ports/*/name` have them.
pub mod port {
    /// The recording, as it is written.
    pub const RECORDING: &str = "floodline.recording";
    /// Lines of [`super::Status`].
    pub const STATUS: &str = "floodline.status";
}

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
    /// The job is done and the recording is whole.
    Done,
}

impl Status {
    /// As a line, newline included.
    pub fn to_line(&self) -> String {
        // Texts and numbers only: this cannot fail.
        let mut line = serde_json::to_string(self).unwrap_or_default();
        line.push('\n');
        line
    }

    /// Reads a line; `None` when it is none.
    pub fn from_line(line: &str) -> Option<Status> {
        serde_json::from_str(line).ok()
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
        let file = floodline_core::scenario::ScenarioFile::parse(text).unwrap();
        let scenario = file.variants.into_values().next().unwrap();
        let disks = BTreeMap::from([("data".to_owned(), "disk0".to_owned())]);
        let job = Job { scenario, variant: "default".to_owned(), disks, programs: None, every: Nanos(500_000_000) };
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
        check(Status::Failed { stage: "mounting".to_owned(), cause: "two\nlines \u{1b}".to_owned() });
        check(Status::Done);
        assert_eq!(Status::from_line("[   1.0] Linux"), None);
    }
}
