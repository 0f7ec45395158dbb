// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bytes made dirty. The programs' sums only grow, partly in a table and partly in what each CPU keeps to
//! itself; what they grew since the last reading is the interval's. One reading may miss what moves from a CPU
//! to the table at that moment: the next one makes up for it.

use super::super::drain::each_entry;
use super::super::fields::Fields;
use super::super::load::Loaded;
use super::super::part::Turn;
use super::largest::{Amount, ByFile, tell};
use super::{Paths, device};
use floodline_record::gap::Cause;
use floodline_record::name::Name;
use floodline_record::record::{Event, What};
use floodline_record::traced::bytes::Dirtied;
use floodline_record::traced::{File, Who};
use floodline_record::units::{Bytes, Pages};
use libbpf_rs::{Map, MapCore, MapFlags};
use std::collections::BTreeMap;

/// Entries of the table from which on idle ones are removed at once.
const CROWDED: usize = 4096;
/// Intervals after which an entry that did not grow is removed.
const IDLE_MAX: u32 = 60;
/// Bits of the table of places from which on it begins again: one eighth of `SEEN_WORDS` words.
const SEEN_MAX: u64 = (1 << 16) * 64 / 8;
const SEEN_BYTES: usize = (1 << 16) * 8;

/// Mirrors `struct dirtied_key`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    ino: u64,
    cgroup_ino: u64,
    dev: u32,
    tgid: u32,
    generation: u32,
}

impl Key {
    fn of(fields: &mut Fields<'_>) -> Key {
        let (ino, cgroup_ino, dev, tgid) = (fields.u64(), fields.u64(), fields.u32(), fields.u32());
        let (generation, _zero) = (fields.u32(), fields.u32());
        Key { ino, cgroup_ino, dev, tgid, generation }
    }

    fn bytes(&self) -> Vec<u8> {
        let numbers = [self.ino.to_ne_bytes(), self.cgroup_ino.to_ne_bytes()].concat();
        let rest = [self.dev, self.tgid, self.generation, 0].map(u32::to_ne_bytes).concat();
        [numbers, rest].concat()
    }
}

impl ByFile for Key {
    fn file(self) -> (u32, u64, u32) {
        (self.dev, self.ino, self.generation)
    }

    fn without_file(self) -> Key {
        Key { ino: 0, generation: 0, ..self }
    }
}

/// Pages, folios, and pages that were dirty before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sum {
    pages: u64,
    folios: u64,
    redirtied: u64,
}

impl Sum {
    fn of(fields: &mut Fields<'_>) -> Sum {
        Sum { pages: fields.u64(), folios: fields.u64(), redirtied: fields.u64() }
    }

    fn add(&mut self, other: Sum) {
        self.pages += other.pages;
        self.folios += other.folios;
        self.redirtied += other.redirtied;
    }

    /// What it grew to `now`, which is kept as the new mark; a reading below the mark is made up for later.
    fn advance(&mut self, now: Sum) -> Sum {
        let step = |mark: &mut u64, now: u64| {
            let step = now.saturating_sub(*mark);
            *mark = now.max(*mark);
            step
        };
        Sum {
            pages: step(&mut self.pages, now.pages),
            folios: step(&mut self.folios, now.folios),
            redirtied: step(&mut self.redirtied, now.redirtied),
        }
    }
}

impl Amount for (Name, Sum) {
    fn size(&self) -> u64 {
        self.1.pages
    }

    fn add(&mut self, (_, other): (Name, Sum)) {
        self.1.add(other);
    }
}

/// What is known of an entry of the programs' tables.
#[derive(Clone, Debug, Default)]
struct Known {
    mark: Sum,
    /// Intervals without growth.
    idle: u32,
}

/// What was read so far.
#[derive(Default)]
pub(super) struct DirtiedReader {
    known: BTreeMap<Key, Known>,
    /// Names of the processes that made something dirty: a file may be written long after its process has ended.
    comms: BTreeMap<u32, Name>,
}

/// Names of processes that are kept.
const COMMS: usize = 1 << 14;

impl DirtiedReader {
    pub(super) fn read(&mut self, loaded: &Loaded, turn: &Turn<'_>, out: &mut Vec<Event>) -> Result<(), Cause> {
        let failed =
            |error: libbpf_rs::Error| Cause::Refused { why: format!("a table cannot be read: {error}").into() };
        // Names that stand for themselves come first.
        let tables = [loaded.table("dirtied_unnamed")?, loaded.table("dirtied")?];
        let read = [entries(&tables[0])?, entries(&tables[1])?];
        // After the tables: what moves there meanwhile is in neither, and the next reading has it. The other way round it
        // would be in both, and would count twice where its process is never seen again.
        let kept = kept_by_cpus(&loaded.table("latest")?).map_err(failed)?;
        let mut rows = Vec::new();
        for (table, entries) in tables.iter().zip(read) {
            let crowded = entries.len() > CROWDED;
            for (key, sum, comm) in entries {
                if !self.known.contains_key(&key) && !comm.is_empty() {
                    self.learn(key.tgid, &comm);
                }
                let known = self.known.entry(key).or_default();
                let of_cpus = kept.get(&key).copied();
                let mut now = sum;
                now.add(of_cpus.unwrap_or_default());
                let mut grown = known.mark.advance(now);
                known.idle = if grown.pages > 0 { 0 } else { known.idle + 1 };
                // A CPU that still has it would find it gone. What is new may be kept by a CPU since it was looked there.
                let may_go = of_cpus.is_none() && known.idle > if crowded { 1 } else { IDLE_MAX };
                if may_go && let Some(last) = removed(table, &key) {
                    grown = known.mark.advance(last);
                    self.known.remove(&key);
                }
                if grown.pages > 0 {
                    let comm = self.name(key, comm);
                    rows.push((key, (comm, grown)));
                }
            }
        }
        tell(rows, &Paths::of(loaded)?, |key, (comm, sum), file| out.push(turn.event(row(key, comm, sum, file, turn))));
        begin_again_when_full(loaded).map_err(failed)
    }

    /// The name of the process that an entry counts for, which is kept; an entry that came back has none.
    fn name(&mut self, key: Key, comm: Name) -> Name {
        if comm.is_empty() {
            return self.comm(key.tgid);
        }
        self.learn(key.tgid, &comm);
        comm
    }

    fn learn(&mut self, pid: u32, comm: &Name) {
        if self.comms.len() >= COMMS {
            self.comms.clear();
        }
        self.comms.insert(pid, comm.clone());
    }

    /// The name of a process that made something dirty; empty where it is not known any more.
    pub(super) fn comm(&self, pid: u32) -> Name {
        self.comms.get(&pid).cloned().unwrap_or_default()
    }
}

fn row(key: Key, comm: Name, sum: Sum, file: Option<File>, turn: &Turn<'_>) -> What {
    What::Dirtied(Dirtied {
        since: turn.since,
        who: Who { pid: key.tgid, comm, cgroup_ino: key.cgroup_ino },
        device: device(key.dev),
        file,
        bytes: bytes(sum.pages),
        folios: sum.folios,
        redirtied: bytes(sum.redirtied),
    })
}

pub(super) fn bytes(pages: u64) -> Bytes {
    Pages(pages).bytes(rustix::param::page_size() as u64)
}

/// Mirrors `struct latest` of every CPU: the key it is counted under stands after what tells it from the next.
fn kept_by_cpus(map: &Map<'_>) -> Result<BTreeMap<Key, Sum>, libbpf_rs::Error> {
    let mut kept: BTreeMap<Key, Sum> = BTreeMap::new();
    for cpu in map.lookup_percpu(&0u32.to_ne_bytes(), MapFlags::ANY)?.into_iter().flatten() {
        let mut fields = Fields(&cpu);
        let _asked = [(); 5].map(|()| fields.u64());
        let key = Key::of(&mut fields);
        let _owned = [(); 2].map(|()| fields.u64());
        kept.entry(key).or_default().add(Sum::of(&mut fields));
    }
    Ok(kept)
}

/// Mirrors `struct dirtied_entry`.
fn entries(map: &Map<'_>) -> Result<Vec<(Key, Sum, Name)>, Cause> {
    let mut entries = Vec::new();
    each_entry(map, |key, entry| {
        let mut fields = Fields(entry);
        let sum = Sum::of(&mut fields);
        entries.push((Key::of(&mut Fields(key)), sum, fields.name::<16>()));
    })?;
    Ok(entries)
}

/// Removes an entry: what it held at that moment. Kernels before 5.14 cannot do both at once; there a program that counts
/// between the two is not counted.
fn removed(table: &Map<'_>, key: &Key) -> Option<Sum> {
    let key = key.bytes();
    let entry = match table.lookup_and_delete(&key) {
        Ok(entry) => entry?,
        Err(_) => {
            let entry = table.lookup(&key, MapFlags::ANY).ok()??;
            table.delete(&key).ok()?;
            entry
        }
    };
    Some(Sum::of(&mut Fields(&entry)))
}

/// Empties the table of places before most of its answers are chance.
fn begin_again_when_full(loaded: &Loaded) -> Result<(), libbpf_rs::Error> {
    let (Ok(seen), Ok(count)) = (loaded.table("seen"), loaded.table("seen_count")) else { return Ok(()) };
    let first = 0u32.to_ne_bytes();
    let of_cpus = count.lookup_percpu(&first, MapFlags::ANY)?.unwrap_or_default();
    let set: u64 = of_cpus.iter().map(|cpu| Fields(cpu).u64()).sum();
    if set <= SEEN_MAX {
        return Ok(());
    }
    seen.update(&first, &vec![0; SEEN_BYTES], MapFlags::ANY)?;
    count.update_percpu(&first, &vec![vec![0; 8]; of_cpus.len()], MapFlags::ANY)
}

#[cfg(test)]
mod tests {
    use super::super::super::specimen::Specimen;
    use super::super::PART;
    use super::*;

    #[test]
    fn every_field_is_read_from_where_the_program_put_it() {
        let key = Specimen::of(PART.object, "dirtied_key");
        let expect = Key {
            ino: key.number("ino"),
            cgroup_ino: key.number("cgroup_ino"),
            dev: key.number("dev") as u32,
            tgid: key.number("tgid") as u32,
            generation: key.number("generation") as u32,
        };
        let zero = key.bytes.len() - 4;
        assert_eq!(Key::of(&mut Fields(&key.bytes)), expect);
        assert_eq!((&expect.bytes()[..zero], expect.bytes().len()), (&key.bytes[..zero], key.bytes.len()));
        let entry = Specimen::of(PART.object, "dirtied_entry");
        let (pages, folios) = (entry.number("pages"), entry.number("folios"));
        let mut fields = Fields(&entry.bytes);
        assert_eq!(Sum::of(&mut fields), Sum { pages, folios, redirtied: entry.number("redirtied") });
        assert_eq!(fields.name::<16>(), entry.name("comm"));
    }

    #[test]
    fn a_sum_that_was_seen_twice_for_a_moment_is_made_up_for() {
        let mut mark = Sum::default();
        let mut check = |now: u64, expect: u64| {
            let sum = Sum { pages: now, folios: now, redirtied: 0 };
            assert_eq!(mark.advance(sum), Sum { pages: expect, folios: expect, redirtied: 0 });
        };
        check(100, 100);
        check(170, 70);
        // 30 of them were counted twice.
        check(150, 0);
        check(200, 30);
    }
}
