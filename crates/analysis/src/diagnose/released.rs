// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes that limits of cgroups release late. A limit of bytes (`io.max wbps`) holds a bio back until it allows all of its bytes,
//! seconds for a large one, and then the whole bio goes to the device at once. Its pages were under writeback all that time: the
//! flusher had sent them before. Other tasks wait behind such writes although the limit holds on average.

use super::burst::{self, Levels};
use super::derived::Derived;
use super::device::{Device, Interval};
use super::{cgroup, load};
use floodline_record::id::{DevId, Entity, EntityId};
use floodline_record::record::What;
use floodline_record::units::{Limit, Nanos};
use std::collections::BTreeMap;

/// Part of the bytes written in a stretch that limits must have held before, for the stretch to be theirs.
const MOSTLY: f64 = 0.5;

/// A stretch in which a device wrote what limits had held back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stretch {
    /// Its start.
    pub from: Nanos,
    /// Its end.
    pub to: Nanos,
    /// Its length, seconds.
    pub seconds: f64,
    /// Bytes written in it.
    pub bytes: f64,
}

/// What limits of cgroups released late to a device.
#[derive(Clone, Debug)]
pub struct Released {
    /// The device whose dirty pages they were.
    pub drain: EntityId,
    /// Cgroups with a limit of written bytes on it, the one that sent most first.
    pub cgroups: Vec<EntityId>,
    /// The device that the limit of the first one is for.
    pub limited: DevId,
    /// The stretches, in order of time.
    pub stretches: Vec<Stretch>,
}

impl Released {
    /// Sum of the stretches, seconds.
    pub fn seconds(&self) -> f64 {
        self.stretches.iter().map(|stretch| stretch.seconds).sum()
    }

    /// Whether a cgroup is one of those with a limit, or below it.
    pub fn holds(&self, derived: &Derived<'_>, id: EntityId) -> bool {
        let Some(path) = cgroup::path(derived.window, id).map(|path| path.as_bytes()) else { return false };
        self.cgroups.iter().any(|limited| {
            let above = cgroup::path(derived.window, *limited);
            let rest = above.and_then(|above| path.strip_prefix(above.as_bytes()));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
        })
    }

    /// Time within the stretches that a wait between two moments had, seconds.
    pub fn common_s(&self, since: Nanos, until: Nanos) -> f64 {
        let common = |stretch: &Stretch| until.0.min(stretch.to.0).saturating_sub(since.0.max(stretch.from.0));
        Nanos(self.stretches.iter().map(common).sum()).as_secs_f64()
    }

    /// Whether an interval is one of a stretch, or the one after: a write that completes in it waited in the stretch.
    fn covers(&self, interval: &Interval) -> bool {
        let length = (interval.seconds * 1e9) as u64;
        self.stretches.iter().any(|stretch| {
            interval.end > stretch.from && interval.end.0 <= stretch.to.0.saturating_add(length + 1_000_000)
        })
    }
}

/// What limits released late, by device.
pub fn released(derived: &Derived<'_>) -> Vec<Released> {
    derived.drains().iter().filter_map(|drain| of(derived, drain)).collect()
}

/// Whether a disk, or a device on it, wrote in an interval what limits released.
pub fn is_in(derived: &Derived<'_>, device: &Device<'_>, interval: &Interval) -> bool {
    on(derived, device).any(|released| released.covers(interval))
}

/// What limits released to a disk, or to devices that are on it.
pub fn on<'d>(derived: &'d Derived<'_>, device: &'d Device<'_>) -> impl Iterator<Item = &'d Released> {
    let is_it = |released: &Released| {
        let drain = derived.drains().iter().find(|drain| drain.id == released.drain);
        drain.is_some_and(|drain| drain.id == device.id || drain.bottoms().iter().any(|disk| disk.id == device.id))
    };
    derived.released().iter().filter(move |released| is_it(released))
}

/// Part of a traced wait that was behind released writes, seconds.
pub fn common_s(derived: &Derived<'_>, since: Nanos, until: Nanos) -> f64 {
    derived.released().iter().map(|released| released.common_s(since, until)).fold(0.0, f64::max)
}

/// By process: traced slow waits for storage within the stretches, their sum and the longest, seconds.
pub fn waited(derived: &Derived<'_>, released: &Released) -> BTreeMap<u32, (f64, f64)> {
    let mut waited: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
    for event in &derived.window.events {
        if let What::SlowSync(wait) = &event.what {
            let common = released.common_s(Nanos(event.at.0.saturating_sub(wait.lasted.0)), event.at);
            let (total, longest) = waited.entry(wait.who.pid).or_default();
            (*total, *longest) = (*total + common, longest.max(common));
        }
    }
    waited
}

fn of(derived: &Derived<'_>, drain: &Device<'_>) -> Option<Released> {
    let senders = senders(derived, drain);
    let (first, limited) = senders.first().map(|(cgroup, dev, _)| (*cgroup, *dev))?;
    let intervals = drain.intervals();
    let levels = burst::under_writeback_of(derived, drain);
    let stretches: Vec<Stretch> = burst::full_runs(&intervals)
        .into_iter()
        .filter_map(|(start, end)| {
            let before = intervals.get(start.saturating_sub(2)..start).filter(|before| !before.is_empty())?;
            stretch(before, intervals.get(start..end)?, intervals.get(end), &levels)
        })
        .collect();
    let sent: f64 = senders.iter().map(|(_, _, bytes)| *bytes).sum();
    let written: f64 = stretches.iter().map(|stretch| stretch.bytes).sum();
    let mut cgroups: Vec<EntityId> = vec![first];
    for (cgroup, ..) in &senders {
        if !cgroups.contains(cgroup) {
            cgroups.push(*cgroup);
        }
    }
    (!stretches.is_empty() && sent >= MOSTLY * written).then_some(Released {
        drain: drain.id,
        cgroups,
        limited,
        stretches,
    })
}

/// The stretch of some full intervals, if the device wrote what had been under writeback while it had little to do.
fn stretch(before: &[Interval], during: &[Interval], after: Option<&Interval>, levels: &Levels) -> Option<Stretch> {
    let from = load::start(during.first()?);
    let last = during.last()?;
    let bytes: f64 = during.iter().map(|interval| interval.written_bytes).sum();
    // The limit may let the first of it go within the last interval before.
    let was_busy = before.iter().all(|interval| interval.utilisation.is_none_or(|busy| busy >= load::BUSY));
    // In the last sample before the stretch, the flusher may have sent what the device then writes.
    let held = levels.before(from)?;
    let left =
        [Some(last.end), after.map(|next| next.end)].into_iter().flatten().filter_map(|at| levels.at(at)).min()?;
    let gone = held.saturating_sub(left) as f64;
    (!was_busy && bytes > 0.0 && gone >= MOSTLY * bytes).then(|| Stretch {
        from,
        to: last.end,
        seconds: during.iter().map(|interval| interval.seconds).sum(),
        bytes,
    })
}

/// Cgroups with a limit of written bytes on a device or its disks, that device, and the bytes they sent to it, most first.
fn senders(derived: &Derived<'_>, drain: &Device<'_>) -> Vec<(EntityId, DevId, f64)> {
    let window = derived.window;
    let disks = drain.bottoms();
    let is_its = |dev: DevId| dev == drain.dev || disks.iter().any(|disk| disk.dev == dev);
    let mut senders: Vec<(EntityId, DevId, f64)> = window
        .cgroup_io
        .iter()
        .filter_map(|(id, span)| {
            let Some(Entity::CgroupIo { cgroup, dev }) = window.entities.get(id) else { return None };
            let is_limited = span.last.wbps_max.is_some_and(|limit| limit != Limit::MAX);
            let sent = span.growth.wbytes.map_or(0.0, |bytes| bytes.0 as f64);
            (is_limited && sent > 0.0 && is_its(window.lookup().whole(window, *dev))).then_some((*cgroup, *dev, sent))
        })
        .collect();
    senders.sort_by(|one, other| other.2.total_cmp(&one.2).then(one.0.cmp(&other.0)));
    senders
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::diagnose::burst;
    use floodline_record::units::{Bytes, Count, Limit};
    use floodline_testkit::{Fixture, mib, mib_pages, secs};

    /// A cgroup with a limit of 3 MB/s: 40 MiB are under writeback from second 4 on, and at second 16 the limit lets 16 MiB of them
    /// go, for which the disk needs 2 s. With `is_flushed`, the same data become writeback only then, as when the flusher sends them.
    pub(crate) fn box_at_its_limit(is_flushed: bool) -> Fixture {
        let written = |t: f64| 8.0 * (t - 16.0).clamp(0.0, 2.0);
        let busy = |t: f64| (t - 16.0).clamp(0.0, 2.0);
        Fixture::healthy()
            .every(0.5)
            .seconds(60)
            .host(move |t, row| {
                let (held, dirty) = if t < 4.0 {
                    (0.0, 0.0)
                } else if is_flushed && t < 16.0 {
                    (0.0, 40.0)
                } else {
                    (40.0 - written(t), 0.0)
                };
                (row.nr_dirty, row.nr_writeback) = (Some(mib_pages(dirty)), Some(mib_pages(held)));
                row.nr_written = Some(mib_pages(written(t)));
                row.psi_io_some = Some(secs(900.0 + busy(t)));
            })
            .disk("sda", move |t, row| {
                // A little is written all the time.
                row.written = Some(Bytes(mib(written(t)) + (1024.0 * t) as u64));
                row.writes = Some(Count((written(t) + 2.0 * t) as u64));
                row.write_time = Some(secs(busy(t)));
                row.io_time = Some(secs(busy(t)));
                row.weighted_io_time = Some(secs(8.0 * busy(t)));
            })
            .cgroup_io("/box", "sda", move |t, row| {
                row.wbytes = Some(Bytes(mib(written(t))));
                row.wbps_max = Some(Limit(3_000_000));
            })
            .cgroup("/shop", |_, _| {})
    }

    #[test]
    fn a_burst_that_was_under_writeback_before_is_that_of_the_limit() {
        let told = |fixture: &Fixture| {
            let window = fixture.window();
            let derived = Derived::of(&window);
            let of = derived.released().first().map(|one| (one.seconds(), one.cgroups.len()));
            let drain = derived.drains().iter().find(|drain| drain.name.as_bytes() == b"sda").copied();
            (of, drain.is_some_and(|drain| burst::longest(&derived, &drain).is_some()))
        };
        assert_eq!(told(&box_at_its_limit(false)), (Some((2.0, 1)), false));
        assert_eq!(told(&box_at_its_limit(true)), (None, true), "the flusher sent them then");
        let unlimited = box_at_its_limit(false).cgroup_io("/box", "sda", |_, row| row.wbps_max = Some(Limit::MAX));
        assert_eq!(told(&unlimited), (None, true), "no limit held them");
        let little = box_at_its_limit(false).cgroup_io("/box", "sda", |t, row| row.wbytes = Some(Bytes(mib(0.1 * t))));
        assert_eq!(told(&little).0, None, "others wrote them");
    }

    #[test]
    fn a_cgroup_below_a_limited_one_is_held_too() {
        let window = box_at_its_limit(false).cgroup("/box/inner", |_, _| {}).cgroup("/boxes", |_, _| {}).window();
        let derived = Derived::of(&window);
        let held = |path: &str| {
            let id = window
                .cgroups
                .keys()
                .find(|id| cgroup::path(&window, **id).is_some_and(|its| its.as_bytes() == path.as_bytes()));
            id.is_some_and(|id| derived.released()[0].holds(&derived, *id))
        };
        assert_eq!([held("/box/inner"), held("/boxes"), held("/shop")], [true, false, false]);
    }
}
