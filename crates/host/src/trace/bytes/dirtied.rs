// SPDX-License-Identifier: MIT OR Apache-2.0
//! Dirtied bytes. The programs' sums only grow, partly in a table and partly in the entry of each CPU. Their growth
//! since the last reading belongs to the interval. A reading may miss sums that move from a CPU to the table at that
//! moment: the next reading includes them.

use super::super::layout::{self, DIRTIED, DIRTIED_UNNAMED, DirtiedEntry, DirtiedKey, LATEST, SEEN, SEEN_COUNT, Seen};
use super::super::layout::{Latest, Layout};
use super::super::load::Loaded;
use super::super::part::Turn;
use super::super::table::Open;
use super::largest::{Amount, tell};
use super::{Paths, device};
use floodline_record::gap::Cause;
use floodline_record::name::Name;
use floodline_record::record::{Event, What};
use floodline_record::traced::bytes::Dirtied;
use floodline_record::traced::{File, Who};
use floodline_record::units::{Bytes, Pages};
use std::collections::BTreeMap;

/// Number of entries in the table from which on idle entries are removed at once.
const CROWDED: usize = 4096;
/// Intervals after which an entry that did not grow is removed.
const IDLE_MAX: u32 = 60;
/// Number of set bits in `seen` from which on it is cleared: one eighth of all.
const SEEN_MAX: u64 = Seen::SIZE as u64;

/// Pages, folios, and pages that were dirty before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sum {
    pages: u64,
    folios: u64,
    redirtied: u64,
}

impl Sum {
    fn of(entry: &DirtiedEntry) -> Sum {
        Sum { pages: entry.pages, folios: entry.folios, redirtied: entry.redirtied }
    }

    fn of_cpu(latest: &Latest) -> Sum {
        Sum { pages: latest.pages, folios: latest.folios, redirtied: latest.redirtied }
    }

    fn add(&mut self, other: Sum) {
        self.pages += other.pages;
        self.folios += other.folios;
        self.redirtied += other.redirtied;
    }

    /// Returns the growth up to `now`, and keeps `now` as the new mark. A reading below the mark counts as no growth.
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

/// State of an entry of the programs' tables.
#[derive(Clone, Debug, Default)]
struct Known {
    mark: Sum,
    /// Intervals without growth.
    idle: u32,
}

/// Reads the tables of dirtied bytes, and keeps the marks between readings.
#[derive(Default)]
pub(super) struct DirtiedReader {
    known: BTreeMap<DirtiedKey, Known>,
    /// Names of the processes that dirtied pages: a file may be written long after its process has ended.
    comms: BTreeMap<u32, Name>,
}

/// Maximum number of process names that are kept.
const COMMS: usize = 1 << 14;

impl DirtiedReader {
    pub(super) fn read(&mut self, loaded: &Loaded, turn: &Turn<'_>, out: &mut Vec<Event>) -> Result<(), Cause> {
        // Entries without a file come first: they have the names of their processes.
        let tables = [DIRTIED_UNNAMED.of(loaded)?, DIRTIED.of(loaded)?];
        let read = [entries(&tables[0])?, entries(&tables[1])?];
        // After the tables: a sum that moves there meanwhile is in neither, and the next reading has it. In the other
        // order it would be in both, and would count twice if its process is never seen again.
        let kept = kept_by_cpus(&LATEST.of(loaded)?.of_cpus()?);
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
                // A CPU that still counts under this key would find its entry gone. A new entry may be in use by a CPU
                // whose sums were read before.
                let may_go = of_cpus.is_none() && known.idle > if crowded { 1 } else { IDLE_MAX };
                if may_go && let Some(last) = table.remove(&key) {
                    grown = known.mark.advance(Sum::of(&last));
                    self.known.remove(&key);
                }
                if grown.pages > 0 {
                    let comm = self.name(key, comm);
                    rows.push((key, (comm, grown)));
                }
            }
        }
        tell(rows, &Paths::of(loaded)?, |key, (comm, sum), file| out.push(turn.event(row(key, comm, sum, file, turn))));
        begin_again_when_full(loaded)
    }

    /// Returns the name of the process of an entry, and keeps it. An entry that was removed and made again has none:
    /// then the kept name.
    fn name(&mut self, key: DirtiedKey, comm: Name) -> Name {
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

    /// Returns the name of a process that dirtied pages, or an empty one if it is no longer known.
    pub(super) fn comm(&self, pid: u32) -> Name {
        self.comms.get(&pid).cloned().unwrap_or_default()
    }
}

fn row(key: DirtiedKey, comm: Name, sum: Sum, file: Option<File>, turn: &Turn<'_>) -> What {
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

/// Adds up the sums that the CPUs keep to themselves.
fn kept_by_cpus(of_cpus: &[Latest]) -> BTreeMap<DirtiedKey, Sum> {
    let mut kept: BTreeMap<DirtiedKey, Sum> = BTreeMap::new();
    for cpu in of_cpus {
        kept.entry(cpu.key).or_default().add(Sum::of_cpu(cpu));
    }
    kept
}

fn entries(table: &Open<'_, DirtiedKey, DirtiedEntry>) -> Result<Vec<(DirtiedKey, Sum, Name)>, Cause> {
    let mut entries = Vec::new();
    table.each(|key, entry| entries.push((key, Sum::of(&entry), layout::name(&entry.comm))))?;
    Ok(entries)
}

/// Clears `seen` before most of its answers are hash collisions.
fn begin_again_when_full(loaded: &Loaded) -> Result<(), Cause> {
    let (Ok(seen), Ok(count)) = (SEEN.of(loaded), SEEN_COUNT.of(loaded)) else { return Ok(()) };
    let of_cpus = count.of_cpus()?;
    if of_cpus.iter().map(|cpu| cpu.set).sum::<u64>() <= SEEN_MAX {
        return Ok(());
    }
    seen.clear()?;
    count.clear_of_cpus(of_cpus.len())
}

#[cfg(test)]
mod tests {
    use super::super::super::specimen::Specimen;
    use super::super::PART;
    use super::*;

    #[test]
    fn every_field_is_read_from_where_the_program_put_it() {
        let key = Specimen::of(PART.object, "dirtied_key");
        let expect = DirtiedKey {
            ino: key.number("ino"),
            cgroup_ino: key.number("cgroup_ino"),
            dev: key.number("dev") as u32,
            tgid: key.number("tgid") as u32,
            generation: key.number("generation") as u32,
            zero: key.number("zero") as u32,
        };
        assert_eq!((key.read::<DirtiedKey>(), layout::bytes(&expect)), (expect, key.bytes));
        let entry = Specimen::of(PART.object, "dirtied_entry");
        let (pages, folios) = (entry.number("pages"), entry.number("folios"));
        let read: DirtiedEntry = entry.read();
        assert_eq!(Sum::of(&read), Sum { pages, folios, redirtied: entry.number("redirtied") });
        assert_eq!(layout::name(&read.comm), entry.name("comm"));
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
