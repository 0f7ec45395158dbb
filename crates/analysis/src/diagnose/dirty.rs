// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine's dirty pages as rules see them: levels, thresholds, the rate at which pages are dirtied, and whether
//! any task can have been throttled. As in the kernel, background decisions compare dirty pages only, throttling
//! compares dirty and under writeback together. Mirrors the machine-wide part of `balance_dirty_pages()` and
//! `wb_over_bg_thresh()`.

use crate::budget::free_pages;
use crate::report::Evidence;
use floodline_record::facts::Mount;
use floodline_record::sample::HostRow;
use floodline_record::units::{Bytes, Nanos, Pages};
use floodline_record::window::Window;

/// Filesystems whose dirty pages go to no disk of this machine, become dirty a second time in another process, or are written by threads
/// that no cgroup is charged for.
const BEYOND_DISKS: [&str; 13] =
    ["nfs", "nfs4", "cifs", "smb3", "ceph", "9p", "fuse", "fuseblk", "virtiofs", "zfs", "lustre", "gpfs", "vboxsf"];

/// Whether what is written to a mount is not counted as writes of a disk for those who write.
pub fn is_beyond_disks(mount: &Mount) -> bool {
    let fs_type = mount.fs_type.as_str();
    !mount.has_option("ro") && (BEYOND_DISKS.contains(&fs_type) || fs_type.starts_with("fuse."))
}

/// Levels, thresholds and rates of a window, computed once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dirty {
    /// Background threshold: [`background_threshold`].
    pub background_threshold: Option<Bytes>,
    /// Hard threshold: [`hard_threshold`].
    pub hard_threshold: Option<Bytes>,
    /// Freerun ceiling: [`freerun_ceiling`].
    pub freerun_ceiling: Option<Bytes>,
    /// Dirty bytes at the end of the window: [`dirty_now`].
    pub now: Option<Bytes>,
    /// Largest level of dirty bytes: [`dirty_peak`].
    pub peak: Option<Bytes>,
    /// Most bytes of one sample that were dirty or under writeback.
    pub unwritten_peak: Option<Bytes>,
    /// Dirty bytes of each sample: [`dirty_series`].
    pub series: Vec<(Nanos, u64)>,
    /// Approximate dirtyable memory: [`dirtyable_roughly`].
    pub dirtyable_roughly: Option<Bytes>,
    /// Bytes dirtied per second: [`dirtying_rate`].
    pub dirtying_rate: Option<f64>,
    /// Bytes dirtied per second in the last third of the window: [`recent_dirtying_rate`].
    pub recent_dirtying_rate: Option<f64>,
    /// Bytes cleaned per second: [`cleaning_rate`].
    pub cleaning_rate: Option<f64>,
    /// Age at which dirty inodes are written: [`expiry_seconds`].
    pub expiry_seconds: Option<f64>,
    /// Whether the global domain can have throttled tasks: [`can_have_throttled`].
    pub can_have_throttled: Option<bool>,
    /// Share of the window with a task waiting for I/O: [`io_pressure_some`].
    pub io_pressure_some: Option<f64>,
}

impl Dirty {
    /// Computes the values from a window.
    pub fn of(window: &Window) -> Dirty {
        Dirty {
            background_threshold: background_threshold(window),
            hard_threshold: hard_threshold(window),
            freerun_ceiling: freerun_ceiling(window),
            now: dirty_now(window),
            peak: dirty_peak(window),
            unwritten_peak: window.host_series.iter().filter_map(|(_, row)| unwritten_of(window, row)).max(),
            series: dirty_series(window),
            dirtyable_roughly: dirtyable_roughly(window),
            dirtying_rate: dirtying_rate(window),
            recent_dirtying_rate: recent_dirtying_rate(window),
            cleaning_rate: cleaning_rate(window),
            expiry_seconds: expiry_seconds(window),
            can_have_throttled: can_have_throttled(window),
            io_pressure_some: io_pressure_some(window),
        }
    }

    /// The hard threshold as a row of evidence.
    pub fn hard_threshold_row(&self) -> Option<Evidence> {
        let row = |limit: Bytes| Evidence::bytes("Hard threshold in force", limit.0, "/proc/vmstat nr_dirty_threshold");
        self.hard_threshold.map(row)
    }

    /// The background threshold as a row of evidence, with `name` as its label.
    pub fn background_threshold_row(&self, name: &str) -> Option<Evidence> {
        let row = |limit: Bytes| Evidence::bytes(name, limit.0, "/proc/vmstat nr_dirty_background_threshold");
        self.background_threshold.map(row)
    }

    /// The time in which tasks waited for I/O as a row of evidence.
    pub fn io_pressure_row(&self) -> Option<Evidence> {
        let row = |share| Evidence::share("Time with a task waiting for I/O", share, "/proc/pressure/io some");
        self.io_pressure_some.map(row)
    }
}

/// Page size where the recording has no facts.
const USUAL_PAGE_SIZE: u64 = 4096;

/// The page size of the machine, bytes.
pub fn page_size(window: &Window) -> u64 {
    match window.facts.as_ref().map(|facts| facts.page_size) {
        Some(size) if size > 0 => size,
        _ => USUAL_PAGE_SIZE,
    }
}

/// The background threshold at the end of the window, as the kernel computed it.
pub fn background_threshold(window: &Window) -> Option<Bytes> {
    window.host.last.nr_dirty_background_threshold.map(|pages| pages.bytes(page_size(window)))
}

/// The hard threshold at the end of the window, as the kernel computed it.
pub fn hard_threshold(window: &Window) -> Option<Bytes> {
    window.host.last.nr_dirty_threshold.map(|pages| pages.bytes(page_size(window)))
}

/// Freerun ceiling, where throttling begins: half way between the two thresholds, not at `dirty_ratio`.
pub fn freerun_ceiling(window: &Window) -> Option<Bytes> {
    Some(Bytes(background_threshold(window)?.0.saturating_add(hard_threshold(window)?.0) / 2))
}

/// Dirty bytes at the end of the window.
pub fn dirty_now(window: &Window) -> Option<Bytes> {
    dirty_of(window, &window.host.last)
}

/// The most dirty bytes of any sample.
pub fn dirty_peak(window: &Window) -> Option<Bytes> {
    dirty_of(window, &window.host.max)
}

fn dirty_of(window: &Window, row: &HostRow) -> Option<Bytes> {
    level(window, row.nr_dirty, row.mem_dirty)
}

/// Bytes of one sample that are dirty or under writeback: neither is on the disk.
pub fn unwritten_of(window: &Window, row: &HostRow) -> Option<Bytes> {
    let dirty = dirty_of(window, row)?;
    let writeback = level(window, row.nr_writeback, row.mem_writeback);
    Some(Bytes(dirty.0.saturating_add(writeback.map_or(0, |bytes| bytes.0))))
}

/// A level by its count of pages, or else by meminfo. A level above the machine's memory is a wrapped counter, which
/// has a rule of its own.
fn level(window: &Window, pages: Option<Pages>, bytes: Option<Bytes>) -> Option<Bytes> {
    let memory = window.facts.as_ref().and_then(|facts| facts.mem_total).or(window.host.last.mem_total);
    let is_possible = |bytes: &Bytes| memory.is_none_or(|memory| *bytes <= memory);
    let counted = pages.map(|pages| pages.bytes(page_size(window)));
    counted.filter(is_possible).or(bytes.filter(is_possible))
}

/// Dirty bytes of each sample, in order of time.
pub fn dirty_series(window: &Window) -> Vec<(Nanos, u64)> {
    let dirty = |row: &HostRow| dirty_of(window, row).map(|bytes| bytes.0);
    window.host_series.iter().filter_map(|(at, row)| Some((at.monotonic, dirty(row)?))).collect()
}

/// Dirtyable memory, roughly: free and file cache pages. The reserves of the zones, about one percent,
/// are not taken off; the exact figure is [`floodline_kernel`]'s.
pub fn dirtyable_roughly(window: &Window) -> Option<Bytes> {
    dirtyable_of(window, &window.host.last)
}

/// The same at one sample.
pub fn dirtyable_of(window: &Window, row: &HostRow) -> Option<Bytes> {
    let free = free_pages(row, page_size(window))?;
    let pages = free.0.saturating_add(row.nr_inactive_file?.0).saturating_add(row.nr_active_file?.0);
    Some(Pages(pages).bytes(page_size(window)))
}

/// Bytes dirtied per second, the whole machine, over the window. Whole folios, and again after each
/// cleaning: not application bytes.
pub fn dirtying_rate(window: &Window) -> Option<f64> {
    page_rate(window, window.host.growth.nr_dirtied)
}

/// Bytes dirtied per second by the whole machine, over the last third of the window.
pub fn recent_dirtying_rate(window: &Window) -> Option<f64> {
    let series = &window.host_series;
    let (last_at, last) = series.last()?;
    let start = Nanos(last_at.monotonic.0.saturating_sub((window.host.seconds() / 3.0 * 1e9) as u64));
    let (first_at, first) = series.get(series.partition_point(|(at, _)| at.monotonic < start).saturating_sub(1))?;
    let seconds = Nanos(last_at.monotonic.0.checked_sub(first_at.monotonic.0)?).as_secs_f64();
    let pages = last.nr_dirtied?.0.checked_sub(first.nr_dirtied?.0)?;
    (seconds > 0.0).then(|| Pages(pages).bytes(page_size(window)).0 as f64 / seconds)
}

/// Bytes whose writeback completed per second, the whole machine, over the window.
pub fn cleaning_rate(window: &Window) -> Option<f64> {
    page_rate(window, window.host.growth.nr_written)
}

fn page_rate(window: &Window, growth: Option<Pages>) -> Option<f64> {
    let seconds = window.host.seconds();
    growth.filter(|_| seconds > 0.0).map(|pages| pages.bytes(page_size(window)).0 as f64 / seconds)
}

/// Age at which dirty inodes are written, seconds; `None` when unknown, infinite when periodic
/// writeback is switched off, because expiry goes with it.
pub fn expiry_seconds(window: &Window) -> Option<f64> {
    let expire = window.host.last.dirty_expire_centisecs?;
    match window.host.last.dirty_writeback_centisecs {
        Some(interval) if interval.0 == 0 => Some(f64::INFINITY),
        _ => Some(expire.0 as f64 / 100.0),
    }
}

/// Whether some sample had the machine over its freerun ceiling, so that the global domain can have paused writers.
/// `Some(false)` does not cover cgroups, which have budgets of their own.
pub fn can_have_throttled(window: &Window) -> Option<bool> {
    let over = |row: &HostRow| {
        let ceiling = row.nr_dirty_threshold?.0.saturating_add(row.nr_dirty_background_threshold?.0) / 2;
        let dirty = row.nr_dirty?.0.saturating_add(row.nr_writeback?.0);
        Some(dirty > ceiling)
    };
    window
        .host_series
        .iter()
        .map(|(_, row)| over(row))
        .try_fold(false, |any, over| over.map(|over| any || over))
        .filter(|_| !window.host_series.is_empty())
}

/// The share of the window in which at least one task waited for I/O.
pub fn io_pressure_some(window: &Window) -> Option<f64> {
    time_share(window, window.host.growth.psi_io_some)
}

/// The share of a stretch of the window in which at least one task waited for I/O.
pub fn io_pressure_between(window: &Window, from: Nanos, to: Nanos) -> Option<f64> {
    let at = |moment: Nanos| {
        let after = window.host_series.partition_point(|(at, _)| at.monotonic <= moment);
        let (at, row) = window.host_series.get(after.checked_sub(1)?)?;
        Some((at.monotonic, row.psi_io_some?))
    };
    let ((start, before), (end, after)) = (at(from)?, at(to)?);
    let seconds = Nanos(end.0.checked_sub(start.0)?).as_secs_f64();
    let waited = Nanos(after.0.checked_sub(before.0)?).as_secs_f64();
    (seconds > 0.0).then(|| (waited / seconds).min(1.0))
}

fn time_share(window: &Window, growth: Option<Nanos>) -> Option<f64> {
    let seconds = window.host.seconds();
    growth.filter(|_| seconds > 0.0).map(|time| (time.as_secs_f64() / seconds).min(1.0))
}

/// The share of CPU time that was idle with a task asleep for I/O: throttling counts, and more idle
/// CPUs dilute it.
pub fn iowait_share(window: &Window) -> Option<f64> {
    let grown = &window.host.growth;
    let times = [Some(grown.cpu_user?), grown.cpu_system, grown.cpu_idle, grown.cpu_iowait, grown.cpu_steal];
    let total = times.iter().flatten().fold(0u64, |sum, time| sum.saturating_add(time.0));
    (total > 0).then(|| grown.cpu_iowait.map_or(0.0, |time| time.0 as f64) / total as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_record::units::Centisecs;
    use floodline_testkit::{Fixture, mib_pages, secs};

    #[test]
    fn background_compares_dirty_and_throttling_adds_writeback() {
        let fixture = |dirty: u64, writeback: u64| {
            Fixture::healthy().host(move |_, row| {
                row.nr_dirty_threshold = Some(Pages(2_000));
                row.nr_dirty_background_threshold = Some(Pages(1_000));
                row.nr_dirty = Some(Pages(dirty));
                row.nr_writeback = Some(Pages(writeback));
            })
        };
        let check = |dirty: u64, writeback: u64, expect: bool| {
            assert_eq!(can_have_throttled(&fixture(dirty, writeback).window()), Some(expect), "{dirty} {writeback}");
        };
        check(1_500, 0, false);
        check(1_501, 0, true);
        check(800, 701, true);
        assert_eq!(freerun_ceiling(&fixture(0, 0).window()), Some(Bytes(1_500 * 4096)));
    }

    #[test]
    fn rates_need_two_samples() {
        let fixture = || Fixture::healthy().host(|t, row| row.nr_dirtied = Some(mib_pages(10.0 * t)));
        assert_eq!(dirtying_rate(&fixture().window()), Some(10.0 * 1_048_576.0));
        assert_eq!(dirtying_rate(&fixture().one_look().window()), None);
    }

    #[test]
    fn more_dirty_than_memory_is_no_level() {
        let fixture = |pages: u64| Fixture::healthy().host(move |_, row| row.nr_dirty = Some(Pages(pages)));
        assert_eq!(dirty_now(&fixture(100).window()), Some(Bytes(409_600)));
        let meminfo = Fixture::healthy().window().host.last.mem_dirty;
        assert!(meminfo.is_some());
        assert_eq!(dirty_peak(&fixture(u64::MAX - 5).window()), meminfo);
    }

    #[test]
    fn expiry_ends_with_the_periodic_timer() {
        let off = Fixture::healthy().host(|_, row| row.dirty_writeback_centisecs = Some(Centisecs(0)));
        assert_eq!(expiry_seconds(&off.window()), Some(f64::INFINITY));
        assert_eq!(expiry_seconds(&Fixture::healthy().window()), Some(30.0));
    }

    #[test]
    fn pressure_is_told_for_a_part_of_the_window() {
        // Waiting only from second 5 on.
        let window = Fixture::healthy().host(|t, row| row.psi_io_some = Some(secs((t - 5.0).max(0.0)))).window();
        let at = |second: u64| Nanos((floodline_testkit::UPTIME as u64 + second) * 1_000_000_000);
        assert_eq!(io_pressure_between(&window, at(0), at(5)), Some(0.0));
        assert_eq!(io_pressure_between(&window, at(5), at(10)), Some(1.0));
        assert_eq!(io_pressure_some(&window), Some(0.5));
    }
}
