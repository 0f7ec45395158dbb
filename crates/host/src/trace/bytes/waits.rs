// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waits for stable storage: the sums of one interval, and each long wait.

use super::super::layout::{self, FileKey, Operation as InProgram, SLOW, WAITED};
use super::super::layout::{SlowEntry, SlowKey, WaitedEntry, WaitedKey};
use super::super::load::Loaded;
use super::super::part::Turn;
use super::{Paths, device};
use floodline_record::gap::Cause;
use floodline_record::record::{Event, What};
use floodline_record::traced::waits::{Operation, SlowSync, Synced};
use floodline_record::traced::{File, Who};
use floodline_record::units::{Bytes, Nanos};
use rustix::time::ClockId;

fn operation(number: u32) -> Operation {
    match InProgram::of(number) {
        Some(InProgram::Fsync) => Operation::Fsync,
        Some(InProgram::Fdatasync) => Operation::Fdatasync,
        Some(InProgram::Range) => Operation::Range,
        Some(InProgram::Sync) => Operation::Sync,
        Some(InProgram::SyncFilesystem) | None => Operation::SyncFilesystem,
    }
}

pub(super) fn read(loaded: &Loaded, turn: &Turn<'_>, out: &mut Vec<Event>) -> Result<(), Cause> {
    WAITED.of(loaded)?.drain(turn.epoch, |key, entry| {
        out.push(turn.event(What::Synced(synced(&key, &entry, turn.since))));
    })?;
    let paths = Paths::of(loaded)?;
    // The programs' clock (CLOCK_MONOTONIC) stops while the machine is suspended; that of a recording does not.
    let asleep = super::super::now(ClockId::Boottime).0.saturating_sub(super::super::now(ClockId::Monotonic).0);
    let mut slow = Vec::new();
    SLOW.of(loaded)?.drain(turn.epoch, |key, entry| {
        slow.push(slow_sync(&key, &entry, asleep, |file| paths.file(file)));
    })?;
    slow.sort_by_key(|event| event.at);
    out.extend(slow);
    Ok(())
}

fn synced(key: &WaitedKey, entry: &WaitedEntry, since: Nanos) -> Synced {
    Synced {
        since,
        who: Who { pid: key.tgid, comm: layout::name(&entry.comm), cgroup_ino: key.cgroup_ino },
        operation: operation(key.operation),
        count: entry.count,
        total: Nanos(entry.total_ns),
        longest: Nanos(entry.longest_ns),
    }
}

fn slow_sync(key: &SlowKey, entry: &SlowEntry, asleep: u64, named: impl Fn(FileKey) -> File) -> Event {
    let (dev, ino) = (entry.dev, entry.ino);
    let what = SlowSync {
        who: Who { pid: entry.tgid, comm: layout::name(&entry.comm), cgroup_ino: entry.cgroup_ino },
        tid: Some(key.tid),
        operation: operation(entry.operation),
        lasted: Nanos(entry.lasted),
        device: (dev != 0).then(|| device(dev)),
        file: (ino != 0).then(|| named(FileKey { ino, dev, generation: entry.generation })),
        queued: (dev != 0).then_some(Bytes(entry.queued)),
        own: Bytes(entry.own),
    };
    Event { at: Nanos(key.since.saturating_add(entry.lasted).saturating_add(asleep)), what: What::SlowSync(what) }
}

#[cfg(test)]
mod tests {
    use super::super::super::specimen::Specimen;
    use super::super::{PART, known};
    use super::*;

    #[test]
    fn sums_are_read_from_where_the_program_put_them() {
        let (key, entry) = (Specimen::of(PART.object, "waited_key"), Specimen::of(PART.object, "waited_entry"));
        let expect = Synced {
            since: Nanos(7),
            who: Who { pid: key.number("tgid") as u32, comm: entry.name("comm"), cgroup_ino: key.number("cgroup_ino") },
            // The second field, and OPERATION_RANGE.
            operation: Operation::Range,
            count: entry.number("count"),
            total: Nanos(entry.number("total_ns")),
            longest: Nanos(entry.number("longest_ns")),
        };
        assert_eq!(synced(&key.read(), &entry.read(), Nanos(7)), expect);
    }

    #[test]
    fn a_long_wait_is_told_at_its_end_on_the_clock_of_the_samples() {
        let (key, entry) = (Specimen::of(PART.object, "slow_key"), Specimen::of(PART.object, "slow_entry"));
        let named = |file: FileKey| File { ino: file.ino, generation: known(file.generation), path: None };
        let event = slow_sync(&key.read(), &entry.read(), 1000, named);
        assert_eq!(event.at, Nanos(key.number("since") + entry.number("lasted") + 1000));
        let expect = SlowSync {
            who: Who {
                pid: entry.number("tgid") as u32,
                comm: entry.name("comm"),
                cgroup_ino: entry.number("cgroup_ino"),
            },
            tid: Some(key.number("tid") as u32),
            operation: operation(entry.number("operation") as u32),
            lasted: Nanos(entry.number("lasted")),
            device: Some(device(entry.number("dev") as u32)),
            file: Some(File {
                ino: entry.number("ino"),
                generation: known(entry.number("generation") as u32),
                path: None,
            }),
            queued: Some(Bytes(entry.number("queued"))),
            own: Bytes(entry.number("own")),
        };
        assert_eq!(event.what, What::SlowSync(expect));
    }
}
