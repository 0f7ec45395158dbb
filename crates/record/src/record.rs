// SPDX-License-Identifier: MIT OR Apache-2.0
//! The stream everything is made of. A live host, a file, the simulator and a guest each produce
//! [`Record`]s in the same order rules; the encoder, the window and the exporters consume them and
//! cannot tell where they came from.
//!
//! Order: facts first; an entity before the first sample, event or gap that refers to it.

use crate::facts::HostFacts;
use crate::gap::Gap;
use crate::id::{Entity, EntityId};
use crate::sample::Sample;
use crate::text::Text;
use crate::traced::bytes::{Cancelled, Dirtied, Submitted};
use crate::traced::flusher::Flushed;
use crate::traced::switches::{CgroupRemoved, ForeignDirtied, ForeignFlushed, InodesSwitched};
use crate::traced::throttle::Throttled;
use crate::traced::waits::{SlowSync, Synced};
use crate::units::Nanos;
use serde::{Deserialize, Serialize};

/// One item of a recording.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// What the machine is. A later one replaces an earlier one.
    Facts(Box<HostFacts>),
    /// What an id stands for. A process that changed its name or cgroup is described again.
    Entity(EntityId, Entity),
    /// One sample of the machine.
    Sample(Box<Sample>),
    /// Something that happened at one moment.
    Event(Event),
    /// Something that was not read.
    Gap(Gap),
}

/// Something that happened at one moment. Closed: one can see everything that can happen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// When, on the monotonic clock of the samples.
    pub at: Nanos,
    /// What.
    #[serde(flatten)]
    pub what: What,
}

/// The kinds of events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "event")]
pub enum What {
    /// A remark of the person who made the recording.
    Note {
        /// The remark.
        text: Text,
    },
    /// The recorder missed its schedule: this many samples were skipped.
    Missed {
        /// Samples that were due and not taken.
        samples: u64,
    },
    /// The clock of a workload started: every setup is done.
    WorkloadStarted {
        /// Name of the scenario.
        scenario: Text,
        /// Name of the variant.
        variant: Text,
    },
    /// A workload ended: every task has ended or was stopped.
    WorkloadEnded,
    /// A task of a workload started.
    TaskStarted {
        /// Which task.
        #[serde(flatten)]
        task: TaskName,
        /// Its process, where it is one.
        pid: Option<u32>,
    },
    /// A task of a workload ended.
    TaskEnded {
        /// Which task.
        #[serde(flatten)]
        task: TaskName,
        /// The step that failed and why; `None` when nothing did.
        failure: Option<Text>,
    },
    /// One operation of a task took longer than the task's threshold. The time is that of its start.
    TaskStall {
        /// Which task.
        #[serde(flatten)]
        task: TaskName,
        /// The operation, e.g. `fsync`.
        operation: Text,
        /// How long it took.
        lasted: Nanos,
    },
    /// Everything a task did of one kind, measured by itself. The time is that of the end.
    TaskOperations {
        /// Which task.
        #[serde(flatten)]
        task: TaskName,
        /// The operation, e.g. `write`, `fsync`, `umount`.
        operation: Text,
        /// Since when it was measured.
        since: Nanos,
        /// How many.
        count: u64,
        /// Bytes that the task asked for in them.
        bytes: u64,
        /// How long they took.
        latency: Latency,
    },
    /// What the kernel counted for a task (`/proc/PID/io`, `/proc/PID/stat`) while it was measured. The time
    /// is that of the end.
    TaskIo {
        /// Which task.
        #[serde(flatten)]
        task: TaskName,
        /// Since when it was measured.
        since: Nanos,
        /// Growth of the counters.
        io: TaskIo,
    },
    /// How long a task slept in dirty throttling (`balance_dirty_pages`) while it was measured. No kernel counts it by
    /// itself: the model only. The time is that of the end.
    TaskThrottled {
        /// Which task.
        #[serde(flatten)]
        task: TaskName,
        /// Since when it was measured.
        since: Nanos,
        /// How long in all.
        slept: Nanos,
    },
    /// What a process made dirty.
    Dirtied(Dirtied),
    /// Dirty bytes that were dropped.
    Cancelled(Cancelled),
    /// What was queued at a block device.
    Submitted(Submitted),
    /// A long wait for stable storage.
    SlowSync(SlowSync),
    /// All waits for stable storage of a process.
    Synced(Synced),
    /// A tracer was attached to the kernel: from here on, what its parts did not see did not happen.
    TraceStarted {
        /// Names of the parts that work; each that does not is a gap.
        parts: Vec<Text>,
    },
    /// Pauses of a task in dirty throttling, added up.
    Throttled(Box<Throttled>),
    /// Rounds of the flusher for one wb and reason.
    Flushed(Box<Flushed>),
    /// Inodes moved from one wb to another.
    InodesSwitched(Box<InodesSwitched>),
    /// Folios dirtied in another cgroup's inodes.
    ForeignDirtied(Box<ForeignDirtied>),
    /// Flushes of a foreign wb.
    ForeignFlushed(Box<ForeignFlushed>),
    /// A cgroup was removed.
    CgroupRemoved(CgroupRemoved),
    /// A kind of event that this build does not know.
    #[serde(other)]
    Unknown,
}

/// Names one copy of a task of a workload.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TaskName {
    /// Name of the task in the scenario.
    pub task: Text,
    /// Number of the copy, from 0.
    pub copy: u32,
}

/// How long operations of one kind took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latency {
    /// Half of them took at most this.
    pub p50: Nanos,
    /// 90 % of them took at most this.
    pub p90: Nanos,
    /// 99 % of them took at most this.
    pub p99: Nanos,
    /// 99.9 % of them took at most this.
    pub p999: Nanos,
    /// The longest.
    pub max: Nanos,
    /// All of them together.
    pub total: Nanos,
}

/// Growth of a task's I/O counters; `None` is not read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskIo {
    /// Bytes read by read calls.
    pub rchar: Option<u64>,
    /// Bytes written by write calls.
    pub wchar: Option<u64>,
    /// Read calls.
    pub syscr: Option<u64>,
    /// Write calls.
    pub syscw: Option<u64>,
    /// Bytes fetched from devices.
    pub read_bytes: Option<u64>,
    /// Bytes dirtied: what became dirty because of this task.
    pub write_bytes: Option<u64>,
    /// Bytes of these that never reach a device, because the pages were truncated.
    pub cancelled_write_bytes: Option<u64>,
    /// Page faults without a read.
    pub minflt: Option<u64>,
    /// Page faults with a read.
    pub majflt: Option<u64>,
}

/// Consumes records.
pub trait Sink {
    /// Why it could not.
    type Error;
    /// Takes one record.
    fn record(&mut self, record: &Record) -> Result<(), Self::Error>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traced::throttle::Domain;

    #[test]
    fn events_read_back_from_their_stable_form() {
        let check = |what: What, json: &str| {
            let event = Event { at: Nanos(7), what };
            assert_eq!(serde_json::to_string(&event).unwrap(), json);
            assert_eq!(serde_json::from_str::<Event>(json).unwrap(), event);
        };
        let task = || TaskName { task: "mail".into(), copy: 3 };
        check(
            What::WorkloadStarted { scenario: "slow-disk-journal".into(), variant: "incident".into() },
            r#"{"at":7,"event":"workload_started","scenario":"slow-disk-journal","variant":"incident"}"#,
        );
        check(What::WorkloadEnded, r#"{"at":7,"event":"workload_ended"}"#);
        check(
            What::TaskStarted { task: task(), pid: Some(41) },
            r#"{"at":7,"event":"task_started","task":"mail","copy":3,"pid":41}"#,
        );
        check(
            What::TaskEnded { task: task(), failure: Some("steps[0].write: no space left".into()) },
            r#"{"at":7,"event":"task_ended","task":"mail","copy":3,"failure":"steps[0].write: no space left"}"#,
        );
        check(
            What::TaskStall { task: task(), operation: "fsync".into(), lasted: Nanos(8_664_000_000) },
            r#"{"at":7,"event":"task_stall","task":"mail","copy":3,"operation":"fsync","lasted":8664000000}"#,
        );
        check(
            What::TaskOperations {
                task: task(),
                operation: "fsync".into(),
                since: Nanos(1),
                count: 2,
                bytes: 8192,
                latency: Latency { p50: Nanos(3), max: Nanos(4), total: Nanos(7), ..Latency::default() },
            },
            r#"{"at":7,"event":"task_operations","task":"mail","copy":3,"operation":"fsync","since":1,"count":2,"bytes":8192,"latency":{"p50":3,"p90":0,"p99":0,"p999":0,"max":4,"total":7}}"#,
        );
    }

    #[test]
    fn what_a_tracer_saw_reads_back() {
        use crate::name::Name;
        use crate::traced::{File, Who};
        use crate::units::Bytes;
        let who = Who { pid: 41, comm: Name::from("journald\n"), cgroup_ino: 77 };
        let device = "254:16".parse().unwrap();
        let file = File { ino: 131, generation: Some(7), path: Some(Name::from("/log/system.journal")) };
        let event = |what| serde_json::to_value(Event { at: Nanos(7), what }).unwrap();
        let dirtied = What::Dirtied(Dirtied {
            since: Nanos(5),
            who: who.clone(),
            device,
            file: Some(file),
            bytes: Bytes(69_632),
            folios: 2,
            redirtied: Bytes(4096),
        });
        let expect = serde_json::json!({
            "at": 7, "event": "dirtied", "since": 5, "pid": 41, "comm": "journald\\x0a", "cgroup_ino": 77,
            "device": "254:16", "file": {"ino": 131, "generation": 7, "path": "/log/system.journal"},
            "bytes": 69_632, "folios": 2, "redirtied": 4096,
        });
        assert_eq!(event(dirtied.clone()), expect);
        assert_eq!(serde_json::from_value::<Event>(expect).unwrap().what, dirtied);
        let cancelled =
            What::Cancelled(Cancelled { since: Nanos(5), who: who.clone(), device, file: None, bytes: Bytes(4096) });
        let expect = serde_json::json!({
            "at": 7, "event": "cancelled", "since": 5, "pid": 41, "comm": "journald\\x0a", "cgroup_ino": 77,
            "device": "254:16", "file": null, "bytes": 4096,
        });
        assert_eq!(event(cancelled.clone()), expect);
        assert_eq!(serde_json::from_value::<Event>(expect).unwrap().what, cancelled);
        let slow = What::SlowSync(SlowSync {
            who,
            tid: None,
            operation: crate::traced::waits::Operation::SyncFilesystem,
            lasted: Nanos(9_950_000_000),
            device: Some(device),
            file: None,
            queued: Some(Bytes(314_572_800)),
            own: Bytes(0),
        });
        assert_eq!(serde_json::from_value::<Event>(event(slow.clone())).unwrap().what, slow);
    }

    #[test]
    fn what_a_tracer_tells_reads_back() {
        let check = |what: What, json: &str| {
            let event = Event { at: Nanos(7), what };
            assert_eq!(serde_json::to_string(&event).unwrap(), json);
            assert_eq!(serde_json::from_str::<Event>(json).unwrap(), event);
        };
        check(
            What::TraceStarted { parts: vec!["throttle".into()] },
            r#"{"at":7,"event":"trace_started","parts":["throttle"]}"#,
        );
        let throttled = Throttled {
            since: Nanos(1),
            who: crate::traced::Who { pid: 2, comm: "dd".into(), cgroup_ino: 5 },
            tid: 3,
            bdi: "7:0".into(),
            wb_cgroup_ino: 41,
            domain: Domain::Memcg,
            pauses: 5,
            pause_ns: Nanos(28_000_000),
            pause_ns_max: Nanos(8_000_000),
            slept_ns: Some(Nanos(31_000_000)),
            slept_ns_max: None,
            unpaused: 11,
            longest: None,
        };
        check(
            What::Throttled(Box::new(throttled)),
            r#"{"at":7,"event":"throttled","since":1,"pid":2,"comm":"dd","cgroup_ino":5,"tid":3,"bdi":"7:0","wb_cgroup_ino":41,"domain":"memcg","pauses":5,"pause_ns":28000000,"pause_ns_max":8000000,"slept_ns":31000000,"unpaused":11}"#,
        );
    }

    #[test]
    fn an_event_of_a_newer_build_is_unknown_and_not_an_error() {
        let event: Event = serde_json::from_str(r#"{"at":7,"event":"eclipse","phase":"total"}"#).unwrap();
        assert_eq!(event, Event { at: Nanos(7), what: What::Unknown });
    }
}
