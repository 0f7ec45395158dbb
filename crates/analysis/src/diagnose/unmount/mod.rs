// SPDX-License-Identifier: MIT OR Apache-2.0
//! Unmounts of overlays: each filesystem that carries some, the data that an unmount would write there, and the
//! readings of one in progress. Provides readings for rules; findings about them come from `overlay-umount-flush`.

pub mod upper;
pub mod wait;

use super::burst::{self, Burst, NOTICED_S};
use super::derived::Derived;
use super::device::Device;
use upper::{Level, Upper};
use wait::Seen;

/// An unmount that is in progress, or that would take long enough to be noticed.
pub struct Unmount<'a> {
    /// The filesystem that it writes out.
    pub upper: Upper<'a>,
    /// Readings of it in progress.
    pub seen: Seen,
    /// A burst on that filesystem's device that only a request explains.
    pub asked: Option<Burst>,
    /// Reading from which the dirty bytes come.
    pub level: Level,
    /// Fewest bytes that it writes.
    pub dirty: u64,
    /// Source of that number.
    pub source: &'static str,
    /// Predicted duration, seconds; 0 where the speed of the device is not known.
    pub foretold_s: f64,
}

/// Readings on unmounts of overlays.
pub struct Unmounts<'a> {
    /// The filesystems that carry overlays.
    pub uppers: Vec<Upper<'a>>,
    /// The unmounts among them that matter.
    pub noticed: Vec<Unmount<'a>>,
}

impl<'a> Unmounts<'a> {
    /// Derives the unmounts of a window.
    pub fn of(derived: &Derived<'a>) -> Unmounts<'a> {
        let mut uppers = upper::uppers(derived);
        let is_known = |upper: &Upper<'_>| uppers.iter().any(|known| known.device.id == upper.device.id);
        let more: Vec<Upper<'_>> = upper::without_overlay(derived)
            .filter(|upper| !is_known(upper) && Seen::of(derived, upper).is_in_turn())
            .collect();
        uppers.extend(more);
        Unmounts { noticed: uppers.iter().filter_map(|upper| unmount(derived, *upper)).collect(), uppers }
    }

    /// Whether an unmount explains a burst on a device: one is seen waiting, or the burst was asked for where overlays
    /// are.
    pub fn explain(&self, device: &Device<'_>, burst: &Burst) -> bool {
        let carries = || self.uppers.iter().any(|upper| upper.device.id == device.id);
        let is_asked = !self.noticed.is_empty() && burst.may_be_asked();
        self.noticed.iter().any(|unmount| unmount.seen.is_happening()) || (is_asked && carries())
    }
}

fn unmount<'a>(derived: &Derived<'a>, upper: Upper<'a>) -> Option<Unmount<'a>> {
    let seen = Seen::of(derived, &upper);
    let asked = burst::longest(derived, &upper.device);
    let asked = asked.filter(|burst| burst.may_be_asked() && !seen.is_happening());
    let level = if seen.is_happening() { Level::Most } else { Level::Now };
    let ((least, most), source) = upper::dirty_of(derived, &upper.device, level, upper.is_one_drain)?;
    // The report on an unmount that is seen tells the most that it may have found. A forecast counts what is there at least.
    let dirty = if seen.is_happening() { most } else { least };
    let foretold_s = match upper.speed.filter(|speed| speed.basis.is_known()) {
        Some(speed) => dirty as f64 / speed.value,
        None => 0.0,
    };
    let matters = seen.is_happening() || asked.is_some() || foretold_s >= NOTICED_S;
    matters.then_some(Unmount { upper, seen, asked, level, dirty, source, foretold_s })
}
