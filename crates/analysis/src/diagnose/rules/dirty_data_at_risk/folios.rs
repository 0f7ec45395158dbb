// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much of the dirty folios is written. Since 6.6, filesystems that use iomap write only the dirty blocks of a large folio
//! (`iomap_writepage_map`), and the kernel counts whole folios.

use crate::diagnose::cycle;
use crate::diagnose::derived::Derived;
use crate::diagnose::dirty;
use crate::shown;
use floodline_record::facts::Mount;
use floodline_record::units::{Bytes, Nanos};

/// Part of the pages cleaned that disks wrote, below which pages count as dirty that are not written: folios, not compression.
const IN_PARTS: f64 = 0.25;
/// Cleaned data from which this part is known, bytes.
const CLEANED: u64 = 64 << 20;
/// Part of the dirty data up to which hardly any are left.
const GONE: f64 = 0.1;
/// Filesystems that keep a bit for each dirty block of a folio, on kernels that do.
const BY_BLOCKS: [&str; 2] = ["xfs", "gfs2"];

/// The greatest part of what was dirty at the most dirty moment that disks may have written, where folios are written in parts: all that
/// they wrote until nothing of it was left. Other folios may be cleaned again and again meanwhile.
pub(super) fn written_part(derived: &Derived<'_>, counted: u64) -> Option<f64> {
    if !derived.has_rates || !may_write_parts(derived) {
        return None;
    }
    let window = derived.window;
    let series = &window.host_series;
    let is_peak = |row| dirty::unwritten_of(window, row).is_some_and(|bytes| bytes.0 == counted);
    let first = series.iter().position(|(_, row)| is_peak(row))?;
    let written = |at: usize| series[at].1.nr_written;
    let cleaned = |at: usize| Some(written(at)?.0.checked_sub(written(first)?.0)?.saturating_mul(derived.page_size));
    let cycle_s = cycle::seconds(derived)?;
    let is_gone = |at: usize| {
        let (time, row) = &series[at];
        let passed_s = Nanos(time.monotonic.0.saturating_sub(series[first].0.monotonic.0)).as_secs_f64();
        let is_left = |bytes: Bytes| bytes.0 as f64 > GONE * counted as f64;
        passed_s >= cycle_s || dirty::unwritten_of(window, row).is_some_and(|bytes| !is_left(bytes))
    };
    let is_cleaned = |at: usize| cleaned(at).is_some_and(|bytes| bytes >= counted.max(CLEANED));
    let last = (first..series.len()).find(|at| is_cleaned(*at) && is_gone(*at))?;
    let (from, until) = (series[first].0.monotonic, series[last].0.monotonic);
    let within = |end: Nanos| end > from && end <= until;
    let disks = derived.disks();
    let intervals = disks.iter().flat_map(|disk| disk.intervals()).filter(|interval| within(interval.end));
    let on_disks: f64 = intervals.map(|interval| interval.written_bytes).sum();
    let is_in_parts = on_disks < IN_PARTS * cleaned(last)? as f64;
    let part = on_disks / counted.max(1) as f64;
    (is_in_parts && part < 1.0).then_some(part)
}

/// Whether a filesystem writes parts of folios, and nothing else lets disks write less than was cleaned: compression, or another
/// machine that takes the data.
fn may_write_parts(derived: &Derived<'_>) -> bool {
    let Some(facts) = &derived.window.facts else { return false };
    let is_written = |mount: &&Mount| !mount.has_option("ro");
    let compresses = |mount: &Mount| {
        let options = [&mount.options, &mount.super_options];
        options.iter().any(|options| options.to_string().split(',').any(|one| one.contains("compress")))
    };
    let by_blocks = |mount: &Mount| BY_BLOCKS.contains(&mount.fs_type.as_str());
    shown::behaviour(derived.window).is_some_and(|kernel| kernel.folios.iomap_dirty_blocks)
        && facts.mounts.iter().filter(is_written).any(by_blocks)
        && !facts.mounts.iter().filter(is_written).any(|mount| dirty::is_beyond_disks(mount) || compresses(mount))
}
