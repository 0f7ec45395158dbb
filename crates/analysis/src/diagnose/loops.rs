// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loop devices that write their image file through the page cache, and the bursts that they cause: what the loop device
//! reported as written is dirty in the image, and a flush of the loop device (fsync in the image) syncs the image. Then
//! all of it goes to the disk at once. No threshold is the cure where the disk takes less than two seconds for that.

use super::burst::{Burst, Trigger};
use super::derived::Derived;
use super::device::{self, Basis, Device, Interval, Speed};
use crate::advise::threshold;
use floodline_record::facts::Stack;
use floodline_record::name::Name;
use floodline_record::sample::BdiRow;
use floodline_record::units::Nanos;

/// Most images that are looked through, one in another.
const NESTED_MAX: usize = 8;
/// Part of a burst that the loop device must have reported as written before it.
const PILED_SHARE: f64 = 0.3;
/// Part of a burst that the loop device must have written in all until its end.
const MOST: f64 = 0.5;
/// Unwritten data of the filesystem on a loop device up to which its programs write past its page cache, bytes.
const LITTLE: u64 = 1 << 20;
/// Part of what was unwritten before a burst that loop devices had been given by then, from which none of it waited above them.
const NEARLY_ALL: f64 = 0.8;
/// Intervals after a burst in which its flush may complete: it ends with the last write of the burst.
const AFTER: usize = 2;

/// A loop device whose copies a burst wrote.
pub struct Image<'a> {
    /// Its name.
    pub name: &'a Name,
    /// Whether it flushed during the burst. If not, the age of the copies or a threshold, also a part of it, may have started the burst.
    pub has_flushed: bool,
}

/// Returns the loop devices whose flushes triggered a burst of a device, or that had cached all of it: each is buffered, its image
/// lies on the device, and most of what the burst wrote is what they had been given before, all of them together.
pub fn that_asked<'a>(derived: &Derived<'a>, device: &Device<'_>, burst: &Burst) -> Vec<Image<'a>> {
    let is_amount = burst.trigger == Trigger::Amount;
    let is_here =
        |one: &&Device<'a>| is_buffered(one) && holder(derived, one).is_some_and(|holder| is_same(&holder, device));
    let flushed =
        |one: &Device<'a>| Some((one.name, given(derived, one, burst).filter(|given| given.until_end > 0.0)?));
    let mut all: Vec<(&Name, Given)> = derived.devices().iter().filter(is_here).filter_map(flushed).collect();
    let sum = |all: &[(&Name, Given)], of: fn(&Given) -> f64| all.iter().map(|(_, given)| of(given)).sum::<f64>();
    let written = burst.rate * burst.seconds;
    // What is written for its age or its amount no flush asked for, and smaller thresholds would have cured a burst of more: `dirty-cliff`
    // says so.
    // But where the filesystems in the images keep nothing unwritten, and the loop devices had been given nearly all that is unwritten, it is
    // what they cached. Up to 6.9 the first is not counted in cgroups, so the second must hold as well.
    let speed = Speed { value: burst.rate, basis: Basis::Saturated };
    let is_asked = !(burst.is_traced && burst.trigger == Trigger::Age);
    let is_flushed = || is_asked && !is_amount && is_flushed_by(&all, written);
    // Where each of them flushed, what the burst wrote counts: a large folio is unwritten as a whole when a part of it was written.
    let is_second_copy = all.iter().all(|(_, given)| given.is_written_through)
        && (is_flushed()
            || (burst.age_s.is_some() || matches!(burst.trigger, Trigger::Amount | Trigger::Part))
                && sum(&all, |given| given.before) >= NEARLY_ALL * burst.dirty_before as f64);
    let is_short = || threshold::lets_pile_up(speed, burst.flushed());
    if !is_second_copy {
        // The rest was written because a threshold was reached.
        if is_amount || !(is_asked && is_short()) {
            return Vec::new();
        }
        // Without a flush, a loop device asked for nothing.
        all.retain(|(_, given)| given.has_flushed);
    }
    let is_theirs = sum(&all, |given| given.before) >= PILED_SHARE * written
        && sum(&all, |given| given.until_end) >= MOST * written;
    if !is_theirs {
        return Vec::new();
    }
    // A device with a small share was flushed by coincidence.
    let has_part = |(_, given): &&(&Name, Given)| given.until_end * all.len() as f64 >= MOST * written;
    let image = |(name, given): &(&'a Name, Given)| Image { name, has_flushed: given.has_flushed };
    all.iter().filter(has_part).map(image).collect()
}

/// Whether each of these loop devices flushed during a burst, and nearly all that it wrote is what they had been given.
fn is_flushed_by(all: &[(&Name, Given)], written: f64) -> bool {
    let until_end: f64 = all.iter().map(|(_, given)| given.until_end).sum();
    all.iter().all(|(_, given)| given.has_flushed) && until_end >= NEARLY_ALL * written
}

/// Whether buffered loop devices whose images lie on a device were given most of what it wrote in the window: what comes to it in
/// batches are then copies that wait in its page cache for a flush of the image.
pub fn fill<'a>(derived: &Derived<'a>, device: &Device<'_>) -> bool {
    let written = |one: &Device<'_>| one.span.growth.written.map_or(0.0, |bytes| bytes.0 as f64);
    let is_here =
        |one: &&Device<'a>| is_buffered(one) && holder(derived, one).is_some_and(|holder| is_same(&holder, device));
    let given: f64 = derived.devices().iter().filter(is_here).map(written).sum();
    given > 0.0 && given >= MOST * written(device)
}

fn is_buffered(device: &Device<'_>) -> bool {
    matches!(device.facts.map(|facts| &facts.stack), Some(Stack::Loop { dio: Some(false), .. }))
}

fn is_same(holder: &Device<'_>, device: &Device<'_>) -> bool {
    holder.dev == device.dev || holder.bottoms().iter().any(|disk| disk.dev == device.dev)
}

/// The device that holds the image of a loop device, through images in images; any other device itself.
pub(super) fn holder<'a>(derived: &Derived<'a>, image: &Device<'a>) -> Option<Device<'a>> {
    let facts = derived.window.facts.as_ref()?;
    let mut at = *image;
    for _ in 0..NESTED_MAX {
        let Some(Stack::Loop { backing_file, .. }) = at.facts.map(|facts| &facts.stack) else { return Some(at) };
        let mount = derived.window.lookup().mount_of_file(facts, backing_file)?;
        at = device::of_mount(derived.window, mount)?;
    }
    None
}

/// The most that the filesystem on a device had dirty and under writeback in any sample, bytes. Both readings must be of one moment: the
/// maxima are not.
pub fn most_unwritten(device: &Device<'_>) -> Option<u64> {
    let unwritten = |(_, row): &(Nanos, BdiRow)| Some(row.reclaimable?.0.saturating_add(row.writeback?.0));
    device.bdi_series()?.iter().filter_map(unwritten).max()
}

/// Bytes that a loop device was given to write, of data no older than those of a burst.
struct Given {
    /// Before the burst.
    before: f64,
    /// Until its end.
    until_end: f64,
    /// Whether the filesystem on the loop device was seen to have next to nothing unwritten at any time.
    is_written_through: bool,
    /// Whether the loop device flushed during the burst.
    has_flushed: bool,
}

/// Returns the data that a loop device was given. `None` for a device that did not flush during the burst and that has unwritten data above
/// itself.
fn given(derived: &Derived<'_>, image: &Device<'_>, burst: &Burst) -> Option<Given> {
    let intervals = image.intervals();
    let last = intervals.partition_point(|interval| interval.end <= burst.to);
    let until = intervals.get((last + AFTER).min(intervals.len()).saturating_sub(1)).map_or(burst.to, |one| one.end);
    let within = |from: Nanos, to: Nanos| {
        intervals.iter().filter(move |interval: &&Interval| interval.end > from && interval.end <= to)
    };
    let flushes: f64 = within(burst.from, until).filter_map(|interval| interval.flushes).sum();
    // Older data are written for their age.
    let oldest = burst.age_s.or(derived.dirty.expiry_seconds).unwrap_or(0.0);
    let since = Nanos(burst.from.0.saturating_sub((oldest * 1e9) as u64));
    let given = |from: Nanos, to: Nanos| within(from, to).map(|interval| interval.written_bytes).sum::<f64>();
    let is_written_through = most_unwritten(image).is_some_and(|most| most < LITTLE);
    // Data that programs write through at once wait in the image alone, whatever starts their writeback.
    (flushes > 0.0 || is_written_through).then(|| Given {
        before: given(since, burst.from),
        until_end: given(since, burst.to),
        is_written_through,
        has_flushed: flushes > 0.0,
    })
}
