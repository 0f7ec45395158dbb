// SPDX-License-Identifier: MIT OR Apache-2.0
//! Inode ownership: switches, foreign dirtying, flushes for another's sake, and the removals of cgroups that
//! set switching off. The sums are made in `bpf/switches.bpf.c`.

use super::drain::drain;
use super::fields::Fields;
use super::load::Loaded;
use super::part::{Need, Part, Reader, Table, Turn, Wanted, object};
use super::tracefs::Tracefs;
use super::tracepoint;
use floodline_record::gap::{Cause, Source};
use floodline_record::name::Name;
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
    tables: &[
        Table { name: "switches", key: 56, entry: 32 },
        Table { name: "foreign", key: 56, entry: 16 },
        Table { name: "foreign_flushes", key: 56, entry: 16 },
        Table { name: "removals", key: 16, entry: 136 },
    ],
    of_cgroup_writeback: true,
    reader: |tracefs| Box::new(Switches { has_queue: has_queue(tracefs) }),
};

struct Switches {
    /// Whether this kernel says how many inodes wait.
    has_queue: bool,
}

fn has_queue(tracefs: &Tracefs<'_>) -> bool {
    tracefs.format(tracepoint::INODE_SWITCH_WBS_QUEUE.names[0]).is_ok()
}

impl Reader for Switches {
    fn read(&mut self, loaded: &Loaded, turn: &Turn<'_>, out: &mut Vec<Event>) -> Result<(), Cause> {
        drain(&loaded.table("removals")?, turn.epoch, |key, entry| {
            let (at, removed) = removed(Fields(key), Fields(entry));
            out.push(Event { at, what: What::CgroupRemoved(removed) });
        })?;
        drain(&loaded.table("switches")?, turn.epoch, |key, entry| {
            let switched = switched(Pair::read(key), Fields(entry), turn.since, self.has_queue);
            out.push(turn.event(What::InodesSwitched(Box::new(switched))));
        })?;
        drain(&loaded.table("foreign")?, turn.epoch, |key, entry| {
            let dirtied = foreign_dirtied(Pair::read(key), Fields(entry), turn.since);
            out.push(turn.event(What::ForeignDirtied(Box::new(dirtied))));
        })?;
        drain(&loaded.table("foreign_flushes")?, turn.epoch, |key, entry| {
            let flushed = foreign_flushed(Pair::read(key), Fields(entry), turn.since);
            out.push(turn.event(What::ForeignFlushed(Box::new(flushed))));
        })
    }
}

/// Mirrors `struct pair_key`.
struct Pair {
    number: u32,
    one: u64,
    other: u64,
    bdi: Name,
}

impl Pair {
    fn read(key: &[u8]) -> Pair {
        let mut key = Fields(key);
        let _epoch = key.u32();
        Pair { number: key.u32(), one: key.u64(), other: key.u64(), bdi: key.name::<32>() }
    }
}

/// Mirrors `struct switch_entry`.
fn switched(pair: Pair, mut entry: Fields<'_>, since: Nanos, has_queue: bool) -> InodesSwitched {
    let (switched, queued) = (entry.u64(), entry.u64());
    InodesSwitched {
        since,
        bdi: pair.bdi,
        old_cgroup_ino: pair.one,
        new_cgroup_ino: pair.other,
        switched,
        queued: has_queue.then_some(queued),
        first_at: Nanos(entry.u64()),
        last_at: Nanos(entry.u64()),
    }
}

/// Mirrors `struct foreign_entry`.
fn foreign_dirtied(pair: Pair, mut entry: Fields<'_>, since: Nanos) -> ForeignDirtied {
    ForeignDirtied {
        since,
        bdi: pair.bdi,
        wb_cgroup_ino: pair.one,
        page_cgroup_ino: pair.other,
        folios: entry.u64(),
        last_ino: entry.u64(),
    }
}

fn foreign_flushed(pair: Pair, mut entry: Fields<'_>, since: Nanos) -> ForeignFlushed {
    ForeignFlushed { since, bdi: pair.bdi, cgroup_ino: pair.one, frn_memcg_id: pair.number, flushes: entry.u64() }
}

/// Mirrors `struct removal_key` and `struct removal_entry`.
fn removed(mut key: Fields<'_>, mut entry: Fields<'_>) -> (Nanos, CgroupRemoved) {
    let (_epoch, _unused) = (key.u32(), key.u32());
    let at = Nanos(entry.u64());
    (at, CgroupRemoved { cgroup_ino: key.u64(), path: entry.name::<128>() })
}

#[cfg(test)]
mod tests {
    use super::super::specimen::Specimen;
    use super::*;

    fn specimens(key: &str, entry: &str, tables: &[&str]) -> (Specimen, Specimen) {
        let (key, entry) = (Specimen::of(PART.object, key), Specimen::of(PART.object, entry));
        for table in PART.tables.iter().filter(|table| tables.contains(&table.name)) {
            assert_eq!((key.bytes.len(), entry.bytes.len()), (table.key, table.entry), "{}", table.name);
        }
        (key, entry)
    }

    #[test]
    fn every_field_is_read_from_where_the_program_put_it() {
        let (key, entry) = specimens("pair_key", "switch_entry", &["switches"]);
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
        assert_eq!(switched(Pair::read(&key.bytes), Fields(&entry.bytes), Nanos(7), true), expect);
        assert_eq!(switched(Pair::read(&key.bytes), Fields(&entry.bytes), Nanos(7), false).queued, None);

        let (key, entry) = specimens("pair_key", "foreign_entry", &["foreign", "foreign_flushes"]);
        let expect = ForeignDirtied {
            since: Nanos(7),
            bdi: key.name("bdi"),
            wb_cgroup_ino: one,
            page_cgroup_ino: other,
            folios: entry.number("count"),
            last_ino: entry.number("last_ino"),
        };
        assert_eq!(foreign_dirtied(Pair::read(&key.bytes), Fields(&entry.bytes), Nanos(7)), expect);
        let flushed = foreign_flushed(Pair::read(&key.bytes), Fields(&entry.bytes), Nanos(7));
        let number = key.number("number") as u32;
        assert_eq!((flushed.cgroup_ino, flushed.frn_memcg_id, flushed.flushes), (one, number, entry.number("count")));

        let (key, entry) = specimens("removal_key", "removal_entry", &["removals"]);
        let expect = CgroupRemoved { cgroup_ino: key.number("cgroup_ino"), path: entry.name("path") };
        assert_eq!(removed(Fields(&key.bytes), Fields(&entry.bytes)), (Nanos(entry.number("at_ns")), expect));
    }
}
