// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much of the dirty folios is written. Since 6.6, filesystems that use iomap write only the dirty blocks of a large folio
//! (`iomap_writepage_map`), and the kernel counts whole folios.

use crate::diagnose::cycle;
use crate::diagnose::derived::Derived;
use crate::diagnose::dirty;
use floodline_record::facts::Mount;
use floodline_record::units::Nanos;
use floodline_record::version::Series;

/// Part of the pages cleaned that disks wrote, below which pages count as dirty that are not written: folios, not compression.
const IN_PARTS: f64 = 0.25;
/// Cleaned data from which this part is known, bytes.
const CLEANED: u64 = 64 << 20;
/// Filesystems that keep a bit for each dirty block of a folio, and the first kernel that does.
const BY_BLOCKS: [&str; 2] = ["xfs", "gfs2"];
const SINCE: Series = Series(6, 6);

/// The part that disks wrote of what was dirty at the most dirty moment, where folios are written in parts. It is measured
/// while as much was cleaned as was dirty then: data of another kind have another part.
pub(super) fn written_part(derived: &Derived<'_>, counted: u64) -> Option<f64> {
    if !derived.has_rates || !may_write_parts(derived) {
        return None;
    }
    let window = derived.window;
    let series = &window.host_series;
    let is_peak = |row| dirty::unwritten_of(window, row).is_some_and(|bytes| bytes.0 == counted);
    let first = series.iter().position(|(_, row)| is_peak(row))?;
    let written = |at: usize| series[at].1.nr_written;
    let cleaned = |at: usize| Some(written(at)?.0.checked_sub(written(first)?.0)? * derived.page_size);
    let least = counted.max(CLEANED);
    let last = (first..series.len()).find(|at| cleaned(*at).is_some_and(|bytes| bytes >= least))?;
    let (from, until) = (series[first].0.monotonic, series[last].0.monotonic);
    let within = |end: Nanos| end > from && end <= until;
    let disks = derived.disks();
    let intervals = disks.iter().flat_map(|disk| disk.intervals()).filter(|interval| within(interval.end));
    let on_disks: f64 = intervals.map(|interval| interval.written_bytes).sum();
    let part = on_disks / cleaned(last)? as f64;
    (part < IN_PARTS).then(|| part.max(handed_part(derived, counted))).filter(|part| *part < 1.0)
}

/// What was handed to write calls, as a part of what is counted: in an observation of less than a cycle, all of it may be dirty.
fn handed_part(derived: &Derived<'_>, counted: u64) -> f64 {
    if cycle::is_whole(derived) {
        return 0.0;
    }
    derived.writers().application_bytes() as f64 / counted.max(1) as f64
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
    facts.kernel.is_some_and(|kernel| kernel.series() >= SINCE)
        && facts.mounts.iter().filter(is_written).any(by_blocks)
        && !facts.mounts.iter().filter(is_written).any(|mount| dirty::is_beyond_disks(mount) || compresses(mount))
}
