// SPDX-License-Identifier: MIT OR Apache-2.0
//! Time in waits for stable storage (fsync and its like), as rules see it: waits caused by a slow disk, not by dirty
//! throttling. From the events of a tracer.

use crate::ledger;
use crate::ledger::blame::Blame;
use crate::report::Evidence;
use floodline_record::human;
use floodline_record::record::What;
use floodline_record::traced::Who;
use floodline_record::traced::waits::Operation;
use floodline_record::units::Nanos;
use floodline_record::window::Window;

/// Source of the numbers, as evidence names it.
pub const SOURCE: &str = "trace of fsync, fdatasync, msync, sync, syncfs";

/// Waits, added up.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Waits {
    /// Number of waits.
    pub count: u64,
    /// Total time: tasks that wait at the same time count each.
    pub total: Nanos,
    /// The longest wait, with its task and its operation.
    pub longest: Option<(Nanos, Who, Operation)>,
}

/// Returns all waits that ended in the window; `None` when they were not traced. A sync inside another one, as of the
/// filesystem below an overlay, is part of the outer one.
pub fn waits(window: &Window) -> Option<Waits> {
    let mut waits = Waits::default();
    for event in &window.events {
        let What::Synced(synced) = &event.what else { continue };
        if synced.operation == Operation::SyncFilesystem {
            continue;
        }
        waits.count = waits.count.saturating_add(synced.count);
        waits.total = Nanos(waits.total.0.saturating_add(synced.total.0));
        if waits.longest.as_ref().is_none_or(|(longest, ..)| synced.longest > *longest) {
            waits.longest = Some((synced.longest, synced.who.clone(), synced.operation));
        }
    }
    window.traced.contains("bytes").then_some(waits)
}

impl Waits {
    /// The sum and the longest, as evidence.
    pub fn evidence(&self) -> Vec<Evidence> {
        let mut rows =
            vec![Evidence::seconds("Waited in fsync and its like, all tasks", self.total.as_secs_f64(), SOURCE)];
        rows.extend(self.longest.as_ref().map(|(longest, who, operation)| {
            let name = format!("Longest: {}[{}] in {}", who.comm, who.pid, operation.name());
            Evidence::seconds(name, longest.as_secs_f64(), SOURCE)
        }));
        rows
    }
}

/// The longest traced wait for one file while other files' data was queued, with the owner of that data.
pub fn behind_others(window: &Window) -> Option<String> {
    let is_for_others = |wait: &Blame| {
        let own = wait.file.as_ref().zip(wait.files.first()).is_some_and(|(own, most)| *own == most.name);
        matches!(wait.operation, Operation::Fsync | Operation::Fdatasync | Operation::Range) && !own
    };
    // The longest stands first.
    let wait = ledger::waits(window)?.into_iter().find(is_for_others)?;
    let most = wait.files.first()?;
    Some(format!(
        "{} waited {} in {} of {} while {} of {} were queued, {} of it {}.",
        wait.process,
        human::seconds(Nanos(wait.lasted_ns).as_secs_f64()),
        wait.operation.name(),
        wait.file.as_deref().unwrap_or("a file"),
        wait.queued_bytes.map_or_else(|| "data".to_owned(), |bytes| human::bytes(bytes as f64)),
        wait.filesystem.as_deref().unwrap_or("all filesystems"),
        human::percent(most.share),
        most.name
    ))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use floodline_record::id::DevId;
    use floodline_record::traced::waits::{SlowSync, Synced};
    use floodline_record::units::Bytes;
    use floodline_testkit::Fixture;

    /// Process, operation, count, milliseconds in all, longest, as a tracer records them.
    pub(crate) fn synced((pid, operation, count, ms, ms_max): (u32, Operation, u64, u64, u64)) -> What {
        What::Synced(Synced {
            since: Nanos(0),
            who: Who { pid, comm: "redis-server".into(), cgroup_ino: 1 },
            operation,
            count,
            total: Nanos::from_millis(ms),
            longest: Nanos::from_millis(ms_max),
        })
    }

    /// A tracer that records waits, and one long wait as it records it: process, operation, milliseconds, device.
    pub(crate) fn slow(
        (pid, operation, ms, device): (u32, Operation, u64, Option<DevId>),
    ) -> (&'static [&'static str], Vec<What>) {
        let lasted = Nanos::from_millis(ms);
        let who = Who { pid, comm: "redis-server".into(), cgroup_ino: 1 };
        let slow = SlowSync { who, tid: None, operation, lasted, device, file: None, queued: None, own: Bytes(0) };
        (&["throttle", "bytes"], vec![synced((pid, operation, 1, ms, ms)), What::SlowSync(slow)])
    }

    #[test]
    fn waits_are_added_up_and_the_longest_is_named() {
        let events = vec![
            synced((41, Operation::Fdatasync, 3, 600, 400)),
            synced((42, Operation::Fsync, 1, 900, 900)),
            synced((43, Operation::SyncFilesystem, 1, 5000, 5000)),
        ];
        let waits = waits(&Fixture::healthy().traced(&["bytes"], events).window()).unwrap();
        assert_eq!((waits.count, waits.total), (4, Nanos::from_millis(1500)));
        assert_eq!(waits.evidence()[1].name, "Longest: redis-server[42] in fsync");
    }

    #[test]
    fn without_a_tracer_nothing_is_said_and_with_one_nothing_is_zero() {
        assert_eq!(waits(&Fixture::healthy().window()), None);
        assert_eq!(waits(&Fixture::healthy().traced(&["bytes"], vec![]).window()), Some(Waits::default()));
    }
}
