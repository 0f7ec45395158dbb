// SPDX-License-Identifier: MIT OR Apache-2.0
//! Devices that stood still, the lowest of each stack: a volume waits for the disks below it, and is told only where none of
//! these stood still. Does not cover why.

use crate::diagnose::derived::Derived;
use crate::diagnose::device::{self, Device, HARDLY, Standstill};

/// A device with the times in which it stood still, explained or not.
pub(super) struct Still<'a> {
    pub(super) device: Device<'a>,
    pub(super) times: Vec<Standstill>,
}

/// Every device whose requests in flight are counted. Devices that are built on others come after these, and have only the times in which
/// none of these stood still and the disks below had nothing to do.
pub(super) fn of<'a>(derived: &Derived<'a>) -> Vec<Still<'a>> {
    let counted = |device: &&Device<'_>| device.span.last.in_flight.is_some();
    let all = derived.disks().iter().filter(counted);
    let mut found: Vec<Still<'_>> = all.map(|disk| Still { device: *disk, times: disk.stood_still() }).collect();
    let mut layers: Vec<(Still<'_>, Vec<Device<'_>>)> = device::layers(derived.window)
        .into_iter()
        .filter(|layer| layer.span.last.in_flight.is_some())
        .map(|layer| Still { device: layer, times: layer.stood_still() })
        .filter(|still| !still.times.is_empty())
        .map(|still| {
            let below = still.device.below();
            (still, below)
        })
        // It is not known what lies below.
        .filter(|(_, below)| below.iter().any(Device::is_bottom))
        .collect();
    layers.sort_by_key(|(_, below)| below.len());
    for (Still { device: layer, mut times }, below) in layers {
        times.retain(|time| {
            let is_lower = |still: &&Still<'_>| below.iter().any(|lower| lower.id == still.device.id);
            let meets = |still: &Still<'_>| still.times.iter().any(|other| other.common_s(time.from, time.to) > 0.0);
            !found.iter().filter(is_lower).any(meets) && are_idle(&below, time)
        });
        found.push(Still { device: layer, times });
    }
    found
}

/// Whether the disks below a device completed hardly any of its usual requests while it stood still: they did nothing else for it.
fn are_idle(below: &[Device<'_>], time: &Standstill) -> bool {
    let completed = |disk: &Device<'_>| {
        let inside =
            disk.intervals().into_iter().filter(|interval| interval.end > time.from && interval.end <= time.to);
        inside.map(|interval| interval.reads + interval.writes).sum::<f64>()
    };
    let all: f64 = below.iter().filter(|device| device.is_bottom()).map(completed).sum();
    all <= HARDLY * time.usual().unwrap_or(0.0) * time.seconds()
}
