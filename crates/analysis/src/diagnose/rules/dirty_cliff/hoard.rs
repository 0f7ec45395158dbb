// SPDX-License-Identifier: MIT OR Apache-2.0
//! Data that will wait for one device when the flusher starts: their amount, and the time the device takes for them.

use crate::diagnose::burst::NOTICED_S;
use crate::diagnose::derived::Derived;
use crate::diagnose::device::{Device, Speed};
use crate::diagnose::strict;

/// Data that wait, or will wait, for one device.
pub(super) struct Hoard<'a> {
    pub(super) device: Device<'a>,
    pub(super) speed: Speed,
    /// In bytes where the device is limited by bandwidth.
    pub(super) bytes: f64,
    /// Mean size of its writes, where the device is limited by operations.
    pub(super) by_operations: Option<f64>,
    /// Time to write it.
    pub(super) seconds: f64,
}

/// Returns the device that needs the longest for its part of the data that pile up. `None` if no speed is known. Nothing piles up
/// for a device at its strict limit.
pub(super) fn hoard<'a>(derived: &Derived<'_>, drains: &[Device<'a>], most: f64) -> Option<Hoard<'a>> {
    let written = |device: &Device<'_>| device.span.growth.written.map(|bytes| bytes.0 as f64);
    let dirtied = |device: &Device<'_>| Some(device.bdi()?.growth.dirtied?.0 as f64);
    // A disk for which data pile up has written little of them. The kernel counts what was dirtied for each disk.
    let is_counted = drains.len() > 1 && drains.iter().all(|drain| dirtied(drain).is_some());
    let part = |device: &Device<'_>| if is_counted { dirtied(device) } else { written(device) }.unwrap_or(0.0);
    let total: f64 = drains.iter().map(part).sum();
    let share = |device: &Device<'_>| if total > 0.0 { part(device) / total } else { 1.0 / drains.len() as f64 };
    let of = |device: &Device<'a>| {
        let bytes = most * share(device);
        let by_bytes = device.write_bandwidth().filter(|speed| speed.basis.is_known());
        let by_operations = device.small_write_iops().filter(|speed| speed.basis.is_known()).zip(device.mean_write());
        let by_bytes = by_bytes.map(|speed| Hoard {
            device: *device,
            speed,
            bytes,
            by_operations: None,
            seconds: bytes / speed.value,
        });
        let by_operations = by_operations.map(|(speed, mean_write)| Hoard {
            device: *device,
            speed,
            bytes,
            by_operations: Some(mean_write),
            seconds: bytes / mean_write / speed.value,
        });
        // Small writes were seen to be the limit: they remain so, whatever the bandwidth.
        by_operations.or(by_bytes)
    };
    let piles_up = drains.iter().filter(|drain| !strict::holds(derived, drain));
    piles_up.filter_map(of).max_by(|one, other| one.seconds.total_cmp(&other.seconds))
}

/// For a rotating disk: the time that every disk of this kind needs at least.
pub(super) fn by_class<'a>(drains: &[Device<'a>], most: f64) -> Option<Hoard<'a>> {
    let device = *drains.first()?;
    let speed = device.fastest_of_its_kind()?;
    let seconds = most / speed.value;
    (seconds >= NOTICED_S).then_some(Hoard { device, speed, bytes: most, by_operations: None, seconds })
}
