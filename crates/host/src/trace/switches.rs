// SPDX-License-Identifier: MIT OR Apache-2.0
//! Inode ownership: switches, foreign dirtying, flushes on behalf of another cgroup, and removals of cgroups, which
//! trigger switches. `bpf/switches.bpf.c` adds them up.

use super::layout::{self, FOREIGN, FOREIGN_FLUSHES, REMOVALS, SWITCHES, SWITCHES_TABLES};
use super::layout::{ForeignEntry, PairKey, RemovalEntry, RemovalKey, SwitchEntry};
use super::load::Loaded;
use super::part::{Need, Part, Reader, Turn, Wanted, object};
use super::tracefs::Tracefs;
use super::tracepoint;
use floodline_record::gap::{Cause, Source};
use floodline_record::record::{Event, What};
use floodline_record::traced::switches::{CgroupRemoved, ForeignDirtied, ForeignFlushed, InodesSwitched};
use floodline_record::units::Nanos;

/// The part.
pub(super) static PART: Part = Part {
    name: "switches",
    source: Source::TraceSwitches,
    object: object!("switches"),
    tracepoints: &[
        Wanted { tracepoint: &tracepoint::INODE_SWITCH_WBS, need: Need::Always },
        Wanted { tracepoint: &tracepoint::INODE_SWITCH_WBS_QUEUE, need: Need::Never },
        Wanted { tracepoint: &tracepoint::TRACK_FOREIGN_DIRTY, need: Need::Never },
        Wanted { tracepoint: &tracepoint::FLUSH_FOREIGN, need: Need::Never },
        Wanted { tracepoint: &tracepoint::CGROUP_RMDIR, need: Need::Never },
    ],
    functions: "",
    optional: (&[], ""),
    tables: SWITCHES_TABLES,
    of_cgroup_writeback: true,
    reader: |tracefs| Box::new(Switches { has_queue: has_queue(tracefs) }),
};

struct Switches {
    /// Whether this kernel has `inode_switch_wbs_queue`, which counts the inodes that wait.
    has_queue: bool,
}

fn has_queue(tracefs: &Tracefs<'_>) -> bool {
    tracefs.format(tracepoint::INODE_SWITCH_WBS_QUEUE.names[0]).is_ok()
}

impl Reader for Switches {
    fn read(&mut self, loaded: &Loaded, turn: &Turn<'_>, out: &mut Vec<Event>) -> Result<(), Cause> {
        REMOVALS.of(loaded)?.drain(turn.epoch, |key, entry| {
            let (at, removed) = removed(&key, &entry);
            out.push(Event { at, what: What::CgroupRemoved(removed) });
        })?;
        SWITCHES.of(loaded)?.drain(turn.epoch, |key, entry| {
            let switched = switched(&key, &entry, turn.since, self.has_queue);
            out.push(turn.event(What::InodesSwitched(Box::new(switched))));
        })?;
        FOREIGN.of(loaded)?.drain(turn.epoch, |key, entry| {
            let dirtied = foreign_dirtied(&key, &entry, turn.since);
            out.push(turn.event(What::ForeignDirtied(Box::new(dirtied))));
        })?;
        FOREIGN_FLUSHES.of(loaded)?.drain(turn.epoch, |key, entry| {
            let flushed = foreign_flushed(&key, &entry, turn.since);
            out.push(turn.event(What::ForeignFlushed(Box::new(flushed))));
        })
    }
}

fn switched(pair: &PairKey, entry: &SwitchEntry, since: Nanos, has_queue: bool) -> InodesSwitched {
    InodesSwitched {
        since,
        bdi: layout::name(&pair.bdi),
        old_cgroup_ino: pair.one,
        new_cgroup_ino: pair.other,
        switched: entry.switched,
        queued: has_queue.then_some(entry.queued),
        first_at: Nanos(entry.first_ns),
        last_at: Nanos(entry.last_ns),
    }
}

fn foreign_dirtied(pair: &PairKey, entry: &ForeignEntry, since: Nanos) -> ForeignDirtied {
    ForeignDirtied {
        since,
        bdi: layout::name(&pair.bdi),
        wb_cgroup_ino: pair.one,
        page_cgroup_ino: pair.other,
        folios: entry.count,
        last_ino: entry.last_ino,
    }
}

fn foreign_flushed(pair: &PairKey, entry: &ForeignEntry, since: Nanos) -> ForeignFlushed {
    let bdi = layout::name(&pair.bdi);
    ForeignFlushed { since, bdi, cgroup_ino: pair.one, frn_memcg_id: pair.number, flushes: entry.count }
}

fn removed(key: &RemovalKey, entry: &RemovalEntry) -> (Nanos, CgroupRemoved) {
    (Nanos(entry.at_ns), CgroupRemoved { cgroup_ino: key.cgroup_ino, path: layout::name(&entry.path) })
}

#[cfg(test)]
mod tests {
    use super::super::specimen::Specimen;
    use super::*;

    fn specimens(key: &str, entry: &str) -> (Specimen, Specimen) {
        (Specimen::of(PART.object, key), Specimen::of(PART.object, entry))
    }

    #[test]
    fn every_field_is_read_from_where_the_program_put_it() {
        let (key, entry) = specimens("pair_key", "switch_entry");
        let (one, other) = (key.number("one"), key.number("other"));
        let expect = InodesSwitched {
            since: Nanos(7),
            bdi: key.name("bdi"),
            old_cgroup_ino: one,
            new_cgroup_ino: other,
            switched: entry.number("switched"),
            queued: Some(entry.number("queued")),
            first_at: Nanos(entry.number("first_ns")),
            last_at: Nanos(entry.number("last_ns")),
        };
        assert_eq!(switched(&key.read(), &entry.read(), Nanos(7), true), expect);
        assert_eq!(switched(&key.read(), &entry.read(), Nanos(7), false).queued, None);

        let (key, entry) = specimens("pair_key", "foreign_entry");
        let expect = ForeignDirtied {
            since: Nanos(7),
            bdi: key.name("bdi"),
            wb_cgroup_ino: one,
            page_cgroup_ino: other,
            folios: entry.number("count"),
            last_ino: entry.number("last_ino"),
        };
        assert_eq!(foreign_dirtied(&key.read(), &entry.read(), Nanos(7)), expect);
        let flushed = foreign_flushed(&key.read(), &entry.read(), Nanos(7));
        let number = key.number("number") as u32;
        assert_eq!((flushed.cgroup_ino, flushed.frn_memcg_id, flushed.flushes), (one, number, entry.number("count")));

        let (key, entry) = specimens("removal_key", "removal_entry");
        let expect = CgroupRemoved { cgroup_ino: key.number("cgroup_ino"), path: entry.name("path") };
        assert_eq!(removed(&key.read(), &entry.read()), (Nanos(entry.number("at_ns")), expect));
    }
}
