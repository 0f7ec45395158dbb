// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stores to mapped files. Counters show only stores to clean pages: a program that stores all the time to pages that
//! are already dirty looks idle until the flusher has cleaned them, and then seems to come in a burst.

use super::bursts::{Branch, Burst, PASS, arrivals, frequency};
use super::group::{Bin, Group, PAGE, Stored};
use super::machine::Place;
use super::paged_in::{Counters, LARGE_WRITES, Made};
use super::touched::Touched;
use crate::Recorded;
use crate::provenance::Notes;
use floodline_analysis::shown::behaviour;
use floodline_kernel::Behaviour;
use floodline_record::id::Entity;
use floodline_record::units::{Bytes, Nanos};
use floodline_scenario::{ByteSize, Frequency, FsType, MmapStore, Step};

/// Share of faults with a read from a device from which a mapped file is not in the page cache.
const MAJOR_SHARE: f64 = 0.05;
/// Smallest number of bytes that such a fault reads. Before 6.0 a store that the kernel delayed counts as major and
/// reads nothing.
pub(super) const MAJOR_READ: f64 = PAGE / 2.0;
/// Largest mapped file outside of cgroups, bytes.
const FILE_MAX: u64 = 256 << 20;
/// Least part of what a program dirties that its stores must dirty, where a trace tells the size of its file.
const STORED_MIN: f64 = 0.8;
/// Stores that show by what they map, over those that dirtied, where they are believed.
const TOUCHES: f64 = 1.15;
/// Fewest bytes dirtied by a fault of a large folio.
const LARGE_FAULT: f64 = 8192.0;
/// Fewest bytes dirtied by a fault of a folio that no usual readahead makes.
pub(super) const BY_WRITE: f64 = 196_608.0;
/// Bytes of a folio that usual readahead makes.
const BY_READ: f64 = 131_072.0;
/// Bytes of a fault between a folio of four pages, which faults make, and those of readahead.
const BY_FAULT: f64 = 49_152.0;
/// Bytes of the largest folio.
const FOLIO_MAX: f64 = 2_097_152.0;
/// Intervals within which a program that stored before the recording stores again.
const AT_START: f64 = 2.0;
/// Name of the barrier behind which mapped files are on the device.
pub(super) const PREPARED: &str = "prepared";
/// Largest dirty share of the page cache where stores reach all of a file.
const MOST_DIRTY: f64 = 0.7;
/// Dirty share from which all of a file counts as dirty.
const ALL_DIRTY: f64 = 0.9;
/// Share of the time in which all of the file must have been dirty to show that stores continue unseen.
const ALL_DIRTY_TIME: f64 = 0.3;
/// Share of the time spent waiting by a program that does not store all the time.
const HELD_UP: f64 = 0.05;
/// Largest deviation of the intervals' bytes from those of a program that stores all the time.
const MISSED_MAX: f64 = 0.5;
/// Largest deviation where not all of it was dirty for long.
const MISSED_BY_DECAY: f64 = 0.25;
/// All stores, over those that were seen, at least.
const UNSEEN: f64 = 1.5;
/// Smallest part of a file that counts as clean: levels are read a moment after the counters.
const CLEAN_MIN: f64 = 0.004;
/// Fewest intervals and faults that show a decay, and the part of their differences that it explains.
const DECAY_BINS: f64 = 6.0;
const DECAY_FAULTS: f64 = 64.0;
const EXPLAINED: f64 = 0.6;

/// Stores to a mapped file.
pub(super) struct Mapped {
    pub(super) branch: Branch,
    /// Size of the file.
    pub(super) bytes: u64,
    pub(super) cached: Cached,
    /// Bytes of the calls that make it.
    pub(super) block: ByteSize,
    /// Bursts of stores before the recording, and the bytes that these leave dirty.
    pub(super) before: Option<(MmapStore, u64)>,
    /// Their recorded result, where that is to be fitted.
    pub(super) stored: Option<Stored>,
}

/// Stores that a task makes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Amount {
    /// Multiple of the first guess.
    pub(super) factor: f64,
    /// Number of stores in a burst.
    pub(super) at_once: u64,
    /// Time for which it stores before the recording begins, seconds.
    pub(super) before: f64,
}

/// Returns the stores to a mapped file, if there are any.
pub(super) fn mapped(
    group: &Group,
    place: &Place,
    file: String,
    recorded: &Recorded,
    key: &str,
    notes: &mut Notes,
    Amount { factor, at_once, before: run_in }: Amount,
) -> Option<Mapped> {
    let (window, total) = (&recorded.window, &group.total);
    if total.mapped < 4.0 * PAGE {
        return None;
    }
    let copies = group.concurrent().max(1);
    let touched = Touched::of(group, recorded);
    let cache = cache_of_cgroup(group, recorded);
    let bytes = size_of_file(group, cache, touched.as_ref(), key, notes);
    let pages_of_all = (bytes * copies) as f64 / PAGE;
    // Faults on other memory are counted too: only mapped files show stores.
    let touches = touched.and_then(|touched| touched.stores(&group.bins, pages_of_all, group.part_of_mapped));
    let bins = touches.as_deref().unwrap_or(&group.bins);
    let levels = Levels::of(group, recorded, cache.map(|cache| cache.0 as f64));
    let storing = || bins.iter().filter(|bin| bin.mapped > 0.0);
    let all_faults: f64 = storing().map(|bin| bin.faults).sum();
    let is_not_cached = is_read_by_faults(&group.bins);
    // A fault in a folio that is already dirty dirties nothing. Where most were, only the others show its size.
    let clean = |bin: &Bin| levels.as_ref().map_or(1.0, |levels| levels.clean(bin).0).clamp(CLEAN_MIN, 1.0);
    let in_clean: f64 = storing().map(|bin| bin.faults * clean(bin)).sum();
    let is_hidden = total.mapped < LARGE_FAULT * all_faults && total.mapped >= LARGE_FAULT * in_clean;
    let faults = match (is_hidden, touches.is_some()) {
        (true, false) => in_clean.max(total.mapped / BY_READ),
        (_, true) => in_clean.max(total.mapped / FOLIO_MAX),
        (false, false) => all_faults,
    }
    .max(1.0);
    let per_fault = total.mapped / faults;
    let makes_folios = makes_folios(recorded, place);
    let is_large = per_fault >= LARGE_FAULT && makes_folios;
    let per_clean_fault = total.mapped / in_clean.max(1.0);
    let shown = Folios { per_fault, per_clean_fault, is_large, is_hidden, makes_folios, is_not_cached };
    let counters = Counters::of(group, recorded);
    let made = counters.made(bytes as f64);
    let cached = shown.cached(made, behaviour(window), place.fs_type);
    let stores = (if is_large { faults } else { total.mapped / PAGE }) * factor;
    // Few stores are single ones.
    let pages = if stores >= 20.0 * at_once as f64 { at_once } else { 1 };
    let per_store = total.mapped / stores * pages as f64;
    let rate = format!("{key}.steps.mmap_store.rate");
    let is_held_up = total.waited.max(group.paused) > HELD_UP * window.seconds();
    let dirty_at_start = levels.as_ref().map_or(0.0, |levels| levels.at(0.0));
    let levels = levels.as_ref().filter(|levels| !is_held_up && levels.is_all_dirty());
    // Refills are more conclusive than a decay.
    let is_refilled = || bins.iter().any(|bin| levels.is_some_and(|levels| levels.clean(bin).1));
    let unfilled = levels.filter(|_| is_large && touches.is_none() && !is_refilled());
    let by_faults = unfilled.and_then(|levels| by_faults(bins, levels, pages_of_all));
    let by_faults = by_faults.map(|stores| Burst { amount: stores.amount * per_fault, ..stores });
    let all_stores: f64 = bins.iter().map(|bin| bin.faults).sum();
    let unseen = touches.as_ref().filter(|_| is_large && all_stores >= TOUCHES * all_faults);
    // Stores that dirtied hardly any bytes are not fitted to bytes.
    let is_fitted = (by_faults.is_none() && unseen.is_none()) || total.mapped >= bytes as f64;
    let always = by_faults.or_else(|| refilling(bins, levels?));
    let goes_on = always.is_some() || unseen.is_some();
    let bursts = match (unseen, always) {
        (Some(stores), _) => {
            notes.derived(rate, "pages that the program mapped, divided by the part that was not mapped yet");
            arrivals(stores, |bin| bin.faults * per_fault, per_store)
        }
        (None, Some(burst)) => {
            notes.derived(
                rate,
                "faults that dirtied, divided by the part that was clean: the program stores all the \
                                 time",
            );
            vec![burst]
        }
        (None, None) => {
            notes.derived(rate, "faults that dirtied, over time");
            arrivals(bins, |bin| bin.mapped, per_store)
        }
    };
    let mapping = MmapStore { file, size: ByteSize(Bytes(bytes)), pages, ..MmapStore::default() };
    // What is dirty in the cgroup is of all its groups, and each copy of the task has a file of its own.
    let part = group.part_of_mapped / copies as f64;
    let stores_at_start = bursts.first().is_some_and(|first| first.from <= AT_START * interval(bins));
    let dirty = if goes_on || stores_at_start { (dirty_at_start * part).min(bytes as f64) } else { 0.0 };
    let folio = match (is_large, is_hidden) {
        (true, true) if cached == Cached::InFoliosOfReads => BY_READ,
        (true, _) => per_fault.min(BY_READ),
        (false, _) => PAGE,
    };
    let at_once = pages as f64 * folio;
    let at_start = bursts.first().filter(|_| stores_at_start && run_in > 0.0);
    let before = match at_start {
        Some(first) => {
            let per_second = first.amount / per_store / copies as f64 / (first.to - first.from).max(1e-3);
            let count = Some((per_second * run_in).round().max(1.0) as u64);
            let stores = MmapStore { count, rate: Some(frequency(per_second)), ..mapping.clone() };
            Some((stores, dirty as u64))
        }
        None => (dirty >= PAGE).then(|| {
            // As many stores as leave that part of all places clean.
            let clean = (1.0 - dirty / bytes as f64).max(CLEAN_MIN);
            let count = Some((-clean.ln() * bytes as f64 / at_once).ceil().max(1.0) as u64);
            (MmapStore { count, ..mapping.clone() }, dirty as u64)
        }),
    };
    let step = move |count: u64, rate: Option<Frequency>| {
        vec![Step::MmapStore(MmapStore { rate, count: Some(count), ..mapping.clone() })]
    };
    let least_work = PASS * pages as f64 * PAGE / bytes as f64;
    let branch = Branch { least_work, ..Branch::new(bursts, per_store, step) };
    let block = shown.block(cached, made, counters.mean_call());
    // A twin is fitted to faults. What the mapped pages show are all stores, also those that cause none.
    let stored = match is_large {
        true => group.stored(bins, goes_on),
        false => group.stored(&group.bins, goes_on).of_single_pages(),
    };
    Some(Mapped { branch, bytes, cached, block, before, stored: is_fitted.then_some(stored) })
}

/// Length of the first interval between two samples.
fn interval(bins: &[Bin]) -> f64 {
    bins.first().map_or(0.0, |bin| bin.length)
}

/// Page cache of a group's cgroup, at its most. The root has that of all.
fn cache_of_cgroup(group: &Group, recorded: &Recorded) -> Option<Bytes> {
    let window = &recorded.window;
    let id = group.cgroup?;
    let is_root = matches!(window.entities.get(&id), Some(Entity::Cgroup { path, .. }) if path.as_bytes() == b"/");
    window.cgroups.get(&id)?.max.file.filter(|_| !is_root)
}

/// Size of the mapped file of each copy, in whole pages. The page cache of the cgroup holds it. Without a cgroup of its own it
/// is a journal of the usual size, unless the pages that its stores mapped tell.
fn size_of_file(group: &Group, cache: Option<Bytes>, touched: Option<&Touched>, key: &str, notes: &mut Notes) -> u64 {
    let copies = group.concurrent().max(1);
    let by_touch = || touched?.file(&group.bins, group.part_of_mapped);
    let size = format!("{key}.steps.mmap_store.size");
    let is_stored = group.total.mapped >= STORED_MIN * group.total.dirtied();
    if let Some(bytes) = group.files.filter(|_| is_stored) {
        notes.derived(size, "pages that were dirtied again, in the trace");
        return (bytes as u64).clamp(1 << 20, FILE_MAX) / 4096 * 4096;
    }
    let bytes = match cache {
        Some(cache) => {
            notes.derived(size, "page cache of its cgroup");
            (cache.0 / copies).clamp(1 << 20, 64 << 20)
        }
        None => match by_touch() {
            Some(bytes) => {
                notes.derived(size, "pages that its stores mapped, over its faults");
                (bytes as u64 / copies).clamp(1 << 20, FILE_MAX)
            }
            None => {
                notes.assumed(size, "8 MiB, as journald's files begin");
                8 << 20
            }
        },
    };
    bytes / 4096 * 4096
}

/// Whether the kernel of the recording makes large folios for files of a place.
fn makes_folios(recorded: &Recorded, place: &Place) -> bool {
    behaviour(&recorded.window).is_some_and(|kernel| match place.fs_type {
        FsType::Ext4 => kernel.folios.ext4,
        _ => kernel.folios.xfs_by_readahead || kernel.folios.xfs_by_write,
    })
}

/// What the faults of a mapped file show of its folios.
struct Folios {
    /// Bytes dirtied by a fault.
    per_fault: f64,
    /// The same, without the faults in folios that were dirty already.
    per_clean_fault: f64,
    is_large: bool,
    /// Whether only the faults in clean folios show their size.
    is_hidden: bool,
    /// Whether the kernel makes large ones.
    makes_folios: bool,
    /// Whether faults read the file from the device.
    is_not_cached: bool,
}

impl Folios {
    /// Whether the faults agree with folios of large writes.
    fn shows_writes(&self) -> bool {
        self.is_hidden || self.per_clean_fault >= BY_WRITE
    }

    /// How the file came into the page cache.
    fn cached(&self, made: Made, kernel: Option<Behaviour>, fs_type: FsType) -> Cached {
        let writes_folios = kernel.is_some_and(|kernel| kernel.folios.xfs_by_write);
        let folios_by_faults = kernel.is_some_and(|kernel| kernel.folios.fault_makes_four) && made != Made::ByReads;
        match (self.is_not_cached, self.is_large) {
            (true, _) => Cached::Not,
            // Few faults in clean folios do not show their size well.
            (false, true) if self.is_hidden && made == Made::ByFaults && folios_by_faults => Cached::InFoliosOfFaults,
            (false, true) if self.is_hidden && made == Made::ByReads => Cached::InFoliosOfReads,
            (false, true) if self.shows_writes() && made == LARGE_WRITES && writes_folios => Cached::InFoliosOfWrites,
            (false, true) if self.per_fault >= BY_WRITE => Cached::InFoliosOfWrites,
            (false, true) if self.per_fault < BY_FAULT && folios_by_faults => Cached::InFoliosOfFaults,
            (false, true) => Cached::InFoliosOfReads,
            // Writes of this kernel make large folios, so it was written in small blocks.
            (false, false) if self.makes_folios && (writes_folios || fs_type == FsType::Ext4) => Cached::InPages,
            // This kernel does not show what another one would make of it: it is made again as it was.
            (false, false) => match made {
                Made::ByFaults => Cached::InFoliosOfFaults,
                Made::ByReads => Cached::InFoliosOfReads,
                Made::ByWrites { are_large: true } => Cached::InFoliosOfWrites,
                Made::ByWrites { are_large: false } => Cached::InPages,
                // Reads of this kernel make large folios, so it was written.
                Made::Unknown if self.makes_folios => Cached::InFoliosOfWrites,
                // It is read, as after a boot.
                Made::Unknown => Cached::InFoliosOfReads,
            },
        }
    }

    /// Bytes of the calls that make the file. `call` is the mean size of the write calls of its program, bytes.
    fn block(&self, cached: Cached, made: Made, call: Option<f64>) -> ByteSize {
        match (self.is_large, made == LARGE_WRITES, call) {
            (true, true, _) => cached.block_of(self.per_clean_fault),
            (true, false, _) => cached.block_of(self.per_fault),
            // This kernel does not show the size of folios. Calls of the recorded size let another kernel make folios that large.
            (false, true, Some(call)) => cached.block_of_calls(call),
            (false, ..) => cached.block(),
        }
    }
}

/// Whether most faults that count as major read from a device.
fn is_read_by_faults(bins: &[Bin]) -> bool {
    let storing = || bins.iter().filter(|bin| bin.mapped > 0.0);
    let faults: f64 = storing().map(|bin| bin.faults).sum();
    let major: f64 = storing().map(|bin| bin.major).sum();
    let read: f64 = storing().filter(|bin| bin.read >= MAJOR_READ * bin.major).map(|bin| bin.major).sum();
    major >= MAJOR_SHARE * faults && read >= 0.5 * major
}

/// What of a file is dirty, over time.
struct Levels<'a> {
    dirty: &'a [(Nanos, u64)],
    /// Monotonic nanoseconds at which the recording began.
    start: u64,
    /// Bytes of the file, and the most of them that were dirty.
    size: f64,
    most: f64,
    is_size_known: bool,
}

impl<'a> Levels<'a> {
    /// What is dirty in the cgroup of a group whose page cache has `cache` bytes.
    fn of(group: &Group, recorded: &'a Recorded, cache: Option<f64>) -> Option<Levels<'a>> {
        let dirty = recorded.dirty.get(&group.cgroup?)?;
        let start = recorded.window.first_at?.monotonic.0;
        let most = dirty.iter().map(|(_, bytes)| *bytes).max()? as f64;
        let size = cache.unwrap_or(most).max(most).max(1.0);
        Some(Levels { dirty, start, size, most, is_size_known: cache.is_some() })
    }

    /// Bytes that are dirty at a time, seconds since the recording began.
    fn at(&self, seconds: f64) -> f64 {
        let at = self.start.saturating_add((seconds * 1e9) as u64 + 1);
        self.dirty[..self.dirty.partition_point(|(time, _)| time.0 <= at)]
            .last()
            .map_or(0.0, |(_, bytes)| *bytes as f64)
    }

    /// The part that is clean, on average over an interval, and whether the flusher cleaned meanwhile.
    fn clean(&self, bin: &Bin) -> (f64, bool) {
        let (before, after) = (self.at(bin.end - bin.length), self.at(bin.end));
        ((1.0 - (before + after) / 2.0 / self.size).max(0.0), after < 0.95 * before)
    }

    /// Whether stores reach all of the file. A budget that is smaller than the file keeps some of it clean all the
    /// time.
    fn is_all_dirty(&self) -> bool {
        !self.is_size_known || self.most >= MOST_DIRTY * self.size
    }
}

/// The stores of a program that goes on while all that it stores to is dirty: bytes that they would dirty if they found
/// every page clean. `None` where its bytes are not those of such a program, or where few of its stores were unseen.
fn refilling(bins: &[Bin], levels: &Levels<'_>) -> Option<Burst> {
    let first = bins.iter().position(|bin| bin.mapped > 0.0)?;
    let bins = &bins[first..];
    let seconds: f64 = bins.iter().map(|bin| bin.length).sum();
    let full: f64 = bins.iter().filter(|bin| levels.clean(bin).0 <= 1.0 - ALL_DIRTY).map(|bin| bin.length).sum();
    let steady = || bins.iter().map(|bin| (bin, levels.clean(bin))).filter(|(_, (_, is_cleaned))| !is_cleaned);
    let (bytes, open) =
        steady().fold((0.0, 0.0), |(bytes, open), (bin, (part, _))| (bytes + bin.mapped, open + part * bin.length));
    let rate = bytes / open;
    let missed: f64 = steady().map(|(bin, (part, _))| (bin.mapped - rate * part * bin.length).abs()).sum();
    let seen: f64 = bins.iter().map(|bin| bin.mapped).sum();
    // It fills up, or slows down just as what is clean becomes less.
    let is_full = full >= ALL_DIRTY_TIME * seconds && missed <= MISSED_MAX * bytes;
    let goes_on = (is_full || missed <= MISSED_BY_DECAY * bytes) && rate * seconds >= UNSEEN * seen;
    let (from, to) = (bins[0].end - bins[0].length, bins[bins.len() - 1].end);
    (rate.is_finite() && goes_on).then_some(Burst::new(from, to, rate * (to - from)))
}

/// The same by faults, counted as stores: each page has its own first fault, whether its folio is dirty or not, so
/// faults become rarer as fewer of `pages` are left. Up to the time at which the flusher first cleaned.
fn by_faults(bins: &[Bin], levels: &Levels<'_>, pages: f64) -> Option<Burst> {
    let first = bins.iter().position(|bin| bin.mapped > 0.0)?;
    let bins = &bins[first..];
    let before = bins.iter().take_while(|bin| !levels.clean(bin).1);
    // Faults per second against all faults before: a line that falls by the rate of the stores over the pages.
    let mut all = 0.0;
    let points: Vec<(f64, f64)> = before
        .map(|bin| {
            let middle = all + bin.faults / 2.0;
            all += bin.faults;
            (middle, bin.faults / bin.length.max(1e-3))
        })
        .collect();
    let n = points.len() as f64;
    if n < DECAY_BINS || all < DECAY_FAULTS {
        return None;
    }
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / n;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let sum = |of: &dyn Fn(f64, f64) -> f64| points.iter().map(|point| of(point.0 - x, point.1 - y)).sum::<f64>();
    let (xx, xy, yy) = (sum(&|x, _| x * x), sum(&|x, y| x * y), sum(&|_, y| y * y));
    let explained = xy * xy / (xx * yy);
    let rate = -xy / xx * pages;
    let (from, to) = (bins[0].end - bins[0].length, bins[bins.len() - 1].end);
    let goes_on = explained >= EXPLAINED && rate * (to - from) >= UNSEEN * all;
    (rate.is_finite() && rate > 0.0 && goes_on).then_some(Burst::new(from, to, rate * (to - from)))
}

/// How a mapped file is in the page cache when the recording begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cached {
    /// It is not: faults read it from the device.
    Not,
    /// As reads of 128 KiB made it.
    InFoliosOfReads,
    /// As faults that read ahead made it.
    InFoliosOfFaults,
    /// As writes of 1 MiB made it.
    InFoliosOfWrites,
    /// As small writes made it.
    InPages,
}

impl Cached {
    /// Whether it is read back from the device.
    pub(super) fn is_read(self) -> bool {
        matches!(self, Cached::Not | Cached::InFoliosOfReads | Cached::InFoliosOfFaults)
    }

    /// Bytes of the calls that make it, where a fault dirtied that many bytes: a call of their size makes folios of their size.
    fn block_of(self, per_fault: f64) -> ByteSize {
        match self {
            Cached::InFoliosOfWrites if per_fault < (1 << 20) as f64 => {
                let folio = (per_fault.max(BY_WRITE) as u64).next_power_of_two();
                ByteSize(Bytes(folio.min(1 << 20)))
            }
            _ => self.block(),
        }
    }

    /// Bytes of the calls that make it, where its program wrote it in calls of that size on average. The kernel makes the largest folio that
    /// a call fills, so the next smaller power of two makes the same folios.
    fn block_of_calls(self, call: f64) -> ByteSize {
        match self {
            Cached::InFoliosOfWrites => {
                let folio = 1_u64 << (call as u64).max(1).ilog2();
                ByteSize(Bytes(folio.clamp(PAGE as u64, 1 << 20)))
            }
            _ => self.block(),
        }
    }

    /// Bytes of the calls that make it.
    fn block(self) -> ByteSize {
        ByteSize(Bytes(match self {
            Cached::InPages => 4096,
            Cached::Not | Cached::InFoliosOfReads | Cached::InFoliosOfFaults => 128 << 10,
            Cached::InFoliosOfWrites => 1 << 20,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: f64 = 1_048_576.0;

    /// Half seconds of a program that stores to 32 MiB, `rate` MiB/s while all are clean, and of the flusher, which
    /// cleans at these seconds; what is dirty at each.
    fn refills(rate: f64, cleaned_at: &[f64]) -> (Vec<Bin>, Vec<(Nanos, u64)>) {
        let (mut bins, mut levels, mut dirty) = (Vec::new(), vec![(Nanos(0), 0)], 0.0_f64);
        for half in 1..=80 {
            let end = f64::from(half) / 2.0;
            if cleaned_at.iter().any(|at| (*at - end).abs() < 0.1) {
                dirty = 0.0;
            }
            let mapped = (32.0 - dirty) * (1.0 - (-rate * 0.5 / 32.0).exp());
            dirty += mapped;
            bins.push(Bin { end, length: 0.5, mapped: mapped * MIB, ..Bin::default() });
            levels.push((Nanos((end * 1e9) as u64), (dirty * MIB) as u64));
        }
        (bins, levels)
    }

    fn levels(dirty: &[(Nanos, u64)], size: Option<f64>) -> Levels<'_> {
        let most = dirty.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0) as f64;
        Levels { dirty, start: 0, size: size.unwrap_or(most).max(most), most, is_size_known: size.is_some() }
    }

    fn per_second(burst: Burst) -> f64 {
        burst.amount / (burst.to - burst.from)
    }

    #[test]
    fn a_file_of_single_pages_is_made_in_calls_that_are_no_larger_than_those_of_its_program() {
        let shown = |is_large: bool| Folios {
            per_fault: 300_000.0,
            per_clean_fault: 300_000.0,
            is_large,
            is_hidden: false,
            makes_folios: false,
            is_not_cached: false,
        };
        let in_folios = Cached::InFoliosOfWrites;
        let block = |call: f64| shown(false).block(in_folios, LARGE_WRITES, Some(call)).bytes();
        assert_eq!((block(65_536.0), block(70_000.0), block(300_000.0)), (64 << 10, 64 << 10, 256 << 10));
        assert_eq!((block(0.0), block(5000.0), block(9e6)), (4096, 4096, 1 << 20));
        let of = |cached, made| shown(false).block(cached, made, Some(300_000.0)).bytes();
        assert_eq!(of(in_folios, Made::Unknown), 1 << 20, "its program did not write it");
        assert_eq!(of(Cached::InPages, LARGE_WRITES), 4096, "small writes made it");
        // A fault that dirtied a large folio dirtied at least a part of it.
        assert_eq!(shown(true).block(in_folios, LARGE_WRITES, Some(65_536.0)).bytes(), 512 << 10);
    }

    #[test]
    fn faults_in_dirty_folios_do_not_hide_that_read_calls_made_them() {
        let kernel = Some(Behaviour::of(floodline_record::version::KernelVersion::new(6, 12, 117)));
        let shown = Folios {
            per_fault: 12_000.0,
            per_clean_fault: 12_000.0,
            is_large: true,
            is_hidden: false,
            makes_folios: true,
            is_not_cached: false,
        };
        let cached = |made| shown.cached(made, kernel, FsType::Xfs);
        assert_eq!(cached(Made::ByReads), Cached::InFoliosOfReads);
        assert_eq!(cached(Made::Unknown), Cached::InFoliosOfFaults);
    }

    #[test]
    fn a_program_that_stores_all_the_time_is_told_by_its_refills() {
        for rate in [8.0, 20.0, 60.0] {
            let (bins, dirty) = refills(rate, &[5.5, 20.5]);
            let told = per_second(refilling(&bins, &levels(&dirty, None)).expect("it goes on")) / MIB;
            assert!((told / rate - 1.0).abs() < 0.35, "{told} of {rate}");
        }
    }

    #[test]
    fn a_program_that_rests_while_pages_are_clean_comes_in_bursts() {
        let (mut bins, mut dirty) = refills(20.0, &[5.5, 20.5]);
        // It stores again only at second 30, though all is clean from 20 on.
        for at in 40..60 {
            bins[at].mapped = 0.0;
            dirty[at + 1].1 = 0;
        }
        bins[60].mapped = 32.0 * MIB;
        assert!(refilling(&bins, &levels(&dirty, None)).is_none());
        // One that dirties new pages never fills anything, and does not become slower.
        let bins: Vec<Bin> = (1..=10)
            .map(|half| Bin { end: f64::from(half) / 2.0, length: 0.5, mapped: 3.0 * MIB, ..Bin::default() })
            .collect();
        let grows: Vec<(Nanos, u64)> = (0..=10).map(|half| (Nanos(half * 500_000_000), half * (3 << 20))).collect();
        assert!(refilling(&bins, &levels(&grows, Some(32.0 * MIB))).is_none());
    }

    #[test]
    fn a_program_is_told_by_how_it_becomes_slower_before_all_is_dirty() {
        for rate in [2.0, 4.0] {
            let (bins, dirty) = refills(rate, &[]);
            let told = per_second(refilling(&bins, &levels(&dirty, Some(32.0 * MIB))).expect("it goes on")) / MIB;
            assert!((told / rate - 1.0).abs() < 0.1, "{told} of {rate}");
        }
    }

    #[test]
    fn where_all_is_dirty_from_the_start_the_decay_of_faults_tells() {
        // 100 stores a second to the 1024 pages of 4 MiB, all of whose folios were dirtied in the first second.
        let (mut bins, mut left) = (Vec::new(), 1024.0_f64);
        for second in 1..=24 {
            let faults = left * (1.0 - (-100.0 / 1024.0_f64).exp());
            left -= faults;
            let mapped = if second == 1 { 400_000.0 } else { 0.0 };
            bins.push(Bin { end: f64::from(second), length: 1.0, faults, mapped, ..Bin::default() });
        }
        let full = [(Nanos(0), 3_800_000), (Nanos(1_000_000_000), 4_190_000)];
        let told = per_second(by_faults(&bins, &levels(&full, Some(4.0 * MIB)), 1024.0).expect("it goes on"));
        assert!((told / 100.0 - 1.0).abs() < 0.1, "{told}");
        // Faults that do not become rarer are those of other memory.
        bins.iter_mut().for_each(|bin| bin.faults = 50.0);
        assert!(by_faults(&bins, &levels(&full, Some(4.0 * MIB)), 1024.0).is_none());
    }
}
