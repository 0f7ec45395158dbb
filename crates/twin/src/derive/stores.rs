// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stores to mapped files. Counters show only those that found a clean page: a program that stores all the time to pages
//! that are dirty already looks idle until the flusher has cleaned them, and then seems to come in a burst.

use super::bursts::{Branch, Burst, arrivals};
use super::group::{Bin, Group, PAGE, Stored};
use super::machine::Place;
use crate::Recorded;
use crate::provenance::Notes;
use floodline_analysis::shown::behaviour;
use floodline_record::id::Entity;
use floodline_record::units::Bytes;
use floodline_scenario::{Barrier, ByteSize, Frequency, FsType, MmapStore, Step, Task, Write};

/// Share of the faults that read from a device where a mapped file is not in the page cache.
const MAJOR_SHARE: f64 = 0.05;
/// Bytes that are dirtied by a fault of a large folio, at least.
const LARGE_FAULT: f64 = 8192.0;
/// Bytes that are dirtied by a fault of a folio that no usual readahead makes, at least.
const BY_WRITE: f64 = 196_608.0;
/// Name of the barrier behind which mapped files are on the device.
pub(super) const PREPARED: &str = "prepared";
/// Share of the page cache that is dirty at most where stores reach all of a file.
const MOST_DIRTY: f64 = 0.7;
/// All of a file counts as dirty from this share on.
const ALL_DIRTY: f64 = 0.9;
/// Share of the time in which all of it must have been dirty to tell that stores go on unseen.
const ALL_DIRTY_TIME: f64 = 0.3;
/// Share of the time for which a program waits that does not store all the time.
const HELD_UP: f64 = 0.05;
/// How far the bytes of the intervals may be from those of a program that stores all the time.
const MISSED_MAX: f64 = 0.5;

/// Stores to a mapped file.
pub(super) struct Mapped {
    pub(super) branch: Branch,
    /// Size of the file.
    pub(super) bytes: u64,
    pub(super) cached: Cached,
    /// What they did in the recording.
    pub(super) stored: Stored,
}

/// Stores to a mapped file, if there are any.
pub(super) fn mapped(
    group: &Group,
    place: &Place,
    file: String,
    recorded: &Recorded,
    key: &str,
    notes: &mut Notes,
    (factor, at_once): (f64, u64),
) -> Option<Mapped> {
    let (window, total) = (&recorded.window, &group.total);
    if total.mapped < 4.0 * PAGE {
        return None;
    }
    let faults: f64 = group.bins.iter().filter(|bin| bin.mapped > 0.0).map(|bin| bin.faults).sum();
    let per_fault = total.mapped / faults.max(1.0);
    let major: f64 = group.bins.iter().filter(|bin| bin.mapped > 0.0).map(|bin| bin.major).sum();
    let may_be_large = place.fs_type != FsType::Ext4 || behaviour(window).is_some_and(|kernel| kernel.folios.ext4);
    let is_large = per_fault >= LARGE_FAULT && may_be_large;
    let cached = match (major >= MAJOR_SHARE * faults, is_large) {
        (true, _) => Cached::Not,
        (false, true) if per_fault >= BY_WRITE => Cached::InFoliosOfWrites,
        (false, true) => Cached::InFoliosOfReads,
        (false, false) => Cached::InPages,
    };
    let stores = (if is_large { faults.max(1.0) } else { total.mapped / PAGE }) * factor;
    // Few stores are single ones.
    let pages = if stores >= 20.0 * at_once as f64 { at_once } else { 1 };
    let per_store = total.mapped / stores * pages as f64;
    // The page cache of the cgroup holds the file; without one of its own it is a journal of the usual size.
    let cache = group.cgroup.and_then(|id| window.cgroups.get(&id)).and_then(|span| {
        let is_root = group.cgroup.is_some_and(
            |id| matches!(window.entities.get(&id), Some(Entity::Cgroup { path, .. }) if path.as_bytes() == b"/"),
        );
        span.max.file.filter(|_| !is_root)
    });
    let bytes = match cache {
        Some(cache) => {
            notes.derived(format!("{key}.steps.mmap_store.size"), "page cache of its cgroup");
            cache.0.clamp(1 << 20, 64 << 20)
        }
        None => {
            notes.assumed(format!("{key}.steps.mmap_store.size"), "8 MiB, as journald's files begin");
            8 << 20
        }
    };
    let bytes = bytes / 4096 * 4096;
    let rate = format!("{key}.steps.mmap_store.rate");
    // A budget that is smaller than the file keeps some of it clean all the time.
    let is_all_dirty = |most: f64| cache.is_none_or(|cache| most >= MOST_DIRTY * cache.0 as f64);
    let always = all_the_time(group, recorded, is_all_dirty);
    let goes_on = always.is_some();
    let bursts = match always {
        Some(burst) => {
            notes.derived(rate, "faults that dirtied, over the part that was clean: it stores all the time");
            vec![burst]
        }
        None => {
            notes.derived(rate, "faults that dirtied, over time");
            arrivals(&group.bins, |bin| bin.mapped, per_store)
        }
    };
    let step = move |count: u64, rate: Option<Frequency>| {
        let store = MmapStore {
            file: file.clone(),
            size: ByteSize(Bytes(bytes)),
            pages,
            rate,
            count: Some(count),
            ..MmapStore::default()
        };
        vec![Step::MmapStore(store)]
    };
    let branch = Branch { bursts, unit: per_store, step: Box::new(step) };
    Some(Mapped { branch, bytes, cached, stored: group.stored(goes_on) })
}

/// The stores of a program that goes on while all that it stores to is dirty: bytes that they would dirty if they found
/// every page clean. `None` where its bytes are not those of such a program, or where few of its stores were unseen.
fn all_the_time(group: &Group, recorded: &Recorded, is_all_dirty: impl Fn(f64) -> bool) -> Option<Burst> {
    let levels = recorded.dirty.get(&group.cgroup?)?;
    let is_held_up = group.total.waited.max(group.paused) > HELD_UP * recorded.window.seconds();
    let start = recorded.window.first_at?.monotonic.0;
    let dirty_at = |seconds: f64| {
        let at = start.saturating_add((seconds * 1e9) as u64 + 1);
        levels[..levels.partition_point(|(time, _)| time.0 <= at)].last().map_or(0.0, |(_, bytes)| *bytes as f64)
    };
    let most = levels.iter().map(|(_, bytes)| *bytes).max()? as f64;
    if is_all_dirty(most) && !is_held_up { stores(&group.bins, dirty_at) } else { None }
}

fn stores(bins: &[Bin], dirty_at: impl Fn(f64) -> f64) -> Option<Burst> {
    let first = bins.iter().position(|bin| bin.mapped > 0.0)?;
    let bins = &bins[first..];
    let most = bins.iter().map(|bin| dirty_at(bin.end)).fold(0.0, f64::max);
    // The part that is clean, on average over an interval, and whether the flusher cleaned meanwhile.
    let clean = |bin: &Bin| {
        let (before, after) = (dirty_at(bin.end - bin.length), dirty_at(bin.end));
        (1.0 - (before + after) / 2.0 / most.max(1.0), after < 0.95 * before)
    };
    let seconds: f64 = bins.iter().map(|bin| bin.length).sum();
    let full: f64 = bins.iter().filter(|bin| clean(bin).0 <= 1.0 - ALL_DIRTY).map(|bin| bin.length).sum();
    let steady = || bins.iter().map(|bin| (bin, clean(bin))).filter(|(_, (_, is_cleaned))| !is_cleaned);
    let (bytes, open) = steady()
        .fold((0.0, 0.0), |(bytes, open), (bin, (part, _))| (bytes + bin.mapped, open + part.max(0.0) * bin.length));
    let rate = bytes / open;
    let missed: f64 = steady().map(|(bin, (part, _))| (bin.mapped - rate * part.max(0.0) * bin.length).abs()).sum();
    let seen: f64 = bins.iter().map(|bin| bin.mapped).sum();
    let goes_on = full >= ALL_DIRTY_TIME * seconds && missed <= MISSED_MAX * bytes && rate * seconds >= 1.5 * seen;
    let (from, to) = (bins[0].end - bins[0].length, bins[bins.len() - 1].end);
    (rate.is_finite() && goes_on).then_some(Burst { from, to, amount: rate * (to - from) })
}

/// How a mapped file is in the page cache when the recording begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cached {
    /// It is not: faults read it from the device.
    Not,
    /// As reads of 128 KiB made it.
    InFoliosOfReads,
    /// As writes of 1 MiB made it.
    InFoliosOfWrites,
    /// As small writes made it.
    InPages,
}

impl Cached {
    /// Whether it is read back from the device.
    pub(super) fn is_read(self) -> bool {
        matches!(self, Cached::Not | Cached::InFoliosOfReads)
    }

    /// Bytes of the calls that make it.
    pub(super) fn block(self) -> ByteSize {
        ByteSize(Bytes(match self {
            Cached::InPages => 4096,
            Cached::Not | Cached::InFoliosOfReads => 128 << 10,
            Cached::InFoliosOfWrites => 1 << 20,
        }))
    }
}

/// The task that writes mapped files and drops them from the page cache, so that reading them back makes large folios.
pub(super) fn prepare(files: Vec<(String, u64)>) -> Task {
    let mut setup: Vec<Step> = files
        .into_iter()
        .map(|(file, bytes)| {
            let total = Some(ByteSize(Bytes(bytes)));
            Step::Write(Write { file, block: ByteSize(Bytes(1 << 20)), total, ..Write::default() })
        })
        .collect();
    setup.extend([Step::Sync, Step::DropCaches, Step::Barrier(Barrier { name: PREPARED.to_owned() })]);
    Task { setup, ..Task::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Half seconds of a program that stores to 32 MiB, `rate` MiB/s while all are clean, and of the flusher, which cleans at
    /// these seconds; what is dirty at each.
    fn refills(rate: f64, cleaned_at: &[f64]) -> (Vec<Bin>, Vec<f64>) {
        let (mut bins, mut levels, mut dirty) = (Vec::new(), vec![0.0], 0.0_f64);
        for half in 1..=80 {
            let end = f64::from(half) / 2.0;
            if cleaned_at.iter().any(|at| (*at - end).abs() < 0.1) {
                dirty = 0.0;
            }
            let mapped = (32.0 - dirty) * (1.0 - (-rate * 0.5 / 32.0).exp());
            dirty += mapped;
            bins.push(Bin { end, length: 0.5, mapped: mapped * 1_048_576.0, ..Bin::default() });
            levels.push(dirty * 1_048_576.0);
        }
        (bins, levels)
    }

    #[test]
    fn a_program_that_stores_all_the_time_is_told_by_its_refills() {
        for rate in [8.0, 20.0, 60.0] {
            let (bins, levels) = refills(rate, &[5.5, 20.5]);
            let burst = stores(&bins, |at| levels[(at * 2.0).round() as usize]).expect("it goes on");
            let told = burst.amount / (burst.to - burst.from) / 1_048_576.0;
            assert!((told / rate - 1.0).abs() < 0.35, "{told} of {rate}");
        }
    }

    #[test]
    fn a_program_that_rests_while_pages_are_clean_comes_in_bursts() {
        let (mut bins, mut levels) = refills(20.0, &[5.5, 20.5]);
        // It stores again only at second 30, though all is clean from 20 on.
        for at in 40..60 {
            bins[at].mapped = 0.0;
            levels[at + 1] = 0.0;
        }
        bins[60].mapped = 32.0 * 1_048_576.0;
        assert!(stores(&bins, |at| levels[(at * 2.0).round() as usize]).is_none());
        // One that dirties new pages never fills anything.
        let (bins, _) = refills(20.0, &[]);
        assert!(stores(&bins[..10], |at| at * 1e6).is_none());
    }
}
