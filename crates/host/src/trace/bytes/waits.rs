// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waits for stable storage: the sums of one interval, and the long ones by themselves.

use super::super::drain::drain;
use super::super::fields::Fields;
use super::super::load::Loaded;
use super::super::part::Turn;
use super::{Paths, device};
use floodline_record::gap::Cause;
use floodline_record::record::{Event, What};
use floodline_record::traced::waits::{Operation, SlowSync, Synced};
use floodline_record::traced::{File, Who};
use floodline_record::units::{Bytes, Nanos};
use rustix::time::ClockId;

/// Mirrors `enum operation`.
fn operation(number: u32) -> Operation {
    match number {
        0 => Operation::Fsync,
        1 => Operation::Fdatasync,
        2 => Operation::Range,
        3 => Operation::Sync,
        _ => Operation::SyncFilesystem,
    }
}

pub(super) fn read(loaded: &Loaded, turn: &Turn<'_>, out: &mut Vec<Event>) -> Result<(), Cause> {
    drain(&loaded.table("waited")?, turn.epoch, |key, entry| {
        out.push(turn.event(What::Synced(synced(Fields(key), Fields(entry), turn.since))));
    })?;
    let paths = Paths::of(loaded)?;
    // The programs' clock stands still while the machine sleeps; that of a recording does not.
    let asleep = super::super::now(ClockId::Boottime).0.saturating_sub(super::super::now(ClockId::Monotonic).0);
    let mut slow = Vec::new();
    drain(&loaded.table("slow")?, turn.epoch, |key, entry| {
        slow.push(slow_sync(Fields(key), Fields(entry), asleep, |dev, ino, generation| {
            paths.file(dev, ino, generation)
        }));
    })?;
    slow.sort_by_key(|event| event.at);
    out.extend(slow);
    Ok(())
}

/// Mirrors `struct waited_key` and `struct waited_entry`.
fn synced(mut key: Fields<'_>, mut entry: Fields<'_>, since: Nanos) -> Synced {
    let _epoch = key.u32();
    let (operation, cgroup_ino, pid) = (operation(key.u32()), key.u64(), key.u32());
    let (count, total, longest) = (entry.u64(), Nanos(entry.u64()), Nanos(entry.u64()));
    Synced { since, who: Who { pid, comm: entry.name::<16>(), cgroup_ino }, operation, count, total, longest }
}

/// Mirrors `struct slow_key` and `struct slow_entry`.
fn slow_sync(mut key: Fields<'_>, mut entry: Fields<'_>, asleep: u64, file: impl Fn(u32, u64, u32) -> File) -> Event {
    let (_epoch, tid, since) = (key.u32(), key.u32(), key.u64());
    let (lasted, queued, own) = (entry.u64(), Bytes(entry.u64()), Bytes(entry.u64()));
    let (ino, cgroup_ino, dev, pid) = (entry.u64(), entry.u64(), entry.u32(), entry.u32());
    let operation = operation(entry.u32());
    let generation = entry.u32();
    let what = SlowSync {
        who: Who { pid, comm: entry.name::<16>(), cgroup_ino },
        tid: Some(tid),
        operation,
        lasted: Nanos(lasted),
        device: (dev != 0).then(|| device(dev)),
        file: (ino != 0).then(|| file(dev, ino, generation)),
        queued: (dev != 0).then_some(queued),
        own,
    };
    Event { at: Nanos(since.saturating_add(lasted).saturating_add(asleep)), what: What::SlowSync(what) }
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
        assert_eq!(synced(Fields(&key.bytes), Fields(&entry.bytes), Nanos(7)), expect);
    }

    #[test]
    fn a_long_wait_is_told_at_its_end_on_the_clock_of_the_samples() {
        let (key, entry) = (Specimen::of(PART.object, "slow_key"), Specimen::of(PART.object, "slow_entry"));
        let named = |_, ino, generation| File { ino, generation: known(generation), path: None };
        let event = slow_sync(Fields(&key.bytes), Fields(&entry.bytes), 1000, named);
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
            file: Some(named(0, entry.number("ino"), entry.number("generation") as u32)),
            queued: Some(Bytes(entry.number("queued"))),
            own: Bytes(entry.number("own")),
        };
        assert_eq!(event.what, What::SlowSync(expect));
    }
}
