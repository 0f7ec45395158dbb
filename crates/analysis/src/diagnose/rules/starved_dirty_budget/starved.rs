// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds cgroups whose budget is too small for their filesystem because of a machine-wide setting, and the processes
//! charged to them. Visits each cgroup once.

use crate::budget::{CgroupBudget, DomainBudget};
use crate::diagnose::cgroup::{self, DevicesWritten};
use crate::diagnose::derived::Derived;
use crate::diagnose::device;
use crate::diagnose::short_limit::FAIR_FRACTION;
use floodline_kernel::largest_folio;
use floodline_record::facts::Mount;
use floodline_record::id::{DevId, EntityId};
use std::collections::BTreeMap;

/// Fewest folios that a budget must hold: below this, folios are cleaned as soon as they are dirtied, for any writer.
const FOLIOS_NEEDED: u64 = 16;
/// Folios below which a budget may be too small; the sufficient number depends on the number of folios stored to.
const FOLIOS_ENOUGH: u64 = 64;
/// Smallest budget that any cgroup needs: two polling intervals of one writer, 2 × 32 pages.
const LEAST_NEEDED: u64 = 2 * (128 << 10);
/// A cgroup whose budget is too small for its filesystem.
pub(super) struct Starved<'a> {
    pub(super) budget: &'a CgroupBudget,
    /// Upper bound of its hard threshold, bytes.
    pub(super) thresh: u64,
    pub(super) needed: u64,
    /// Sufficient budget, with a margin, bytes.
    pub(super) wanted: u64,
    pub(super) folio: u64,
    pub(super) fs_type: &'a str,
    /// Most dirty and under writeback of any sample, bytes.
    pub(super) peak: Option<u64>,
}

/// Cgroups with little dirty memory because of a machine-wide setting.
#[derive(Default)]
pub(super) struct Candidates<'a> {
    /// Cgroups whose threshold is below the needs of any writer.
    pub(super) starved: Vec<Starved<'a>>,
    /// Cgroups whose threshold suffices for some writers only: their activity decides.
    pub(super) tight: Vec<Starved<'a>>,
}

/// The cgroups whose threshold is below some folios of their filesystem, because of a machine-wide setting. A cgroup that may
/// hold most of what the machine may is not starved by its share: its activity decides.
pub(super) fn candidates<'b, 'a: 'b>(
    derived: &Derived<'a>,
    machine: &DomainBudget,
    budgets: impl Iterator<Item = &'b CgroupBudget>,
) -> Candidates<'b> {
    let folios = Folios::of(derived);
    let is_most = |thresh: u64| machine.thresh.is_some_and(|machine| thresh > machine.high.0 / 2);
    let mut found = Candidates::default();
    for budget in budgets {
        let starved = of_cgroup(derived, &folios, budget, FOLIOS_NEEDED);
        if let Some(starved) = starved.filter(|starved| !is_most(starved.thresh)) {
            found.starved.push(starved);
        } else if let Some(tight) = of_cgroup(derived, &folios, budget, FOLIOS_ENOUGH) {
            found.tight.push(tight);
        }
    }
    found
}

fn of_cgroup<'a>(
    derived: &Derived<'_>,
    folios: &Folios<'_, 'a>,
    budget: &'a CgroupBudget,
    folios_needed: u64,
) -> Option<Starved<'a>> {
    let (thresh, available) = (budget.domain.thresh?.high.0, budget.domain.available?.high.0);
    let is_fair = thresh as f64 >= FAIR_FRACTION * available as f64;
    if is_fair || budget.domain.binding.as_ref().is_some_and(|binding| binding.global_is_less) {
        return None;
    }
    let (folio, fs_type) = folios.largest(budget.cgroup);
    let room_for = |folios: u64| folio.saturating_mul(folios).max(LEAST_NEEDED);
    let needed = room_for(folios_needed);
    let wanted = needed.max(room_for(FOLIOS_NEEDED).saturating_mul(2));
    let peak = derived.window.unwritten_max.get(&budget.cgroup).copied();
    (thresh < needed).then_some(Starved { budget, thresh, needed, wanted, folio, fs_type, peak })
}

/// A folio, bytes, and the filesystem that makes it.
type Folio<'a> = (u64, &'a str);

/// The largest folio that readahead makes on each device, because a store through a mapping dirties it
/// whole.
struct Folios<'d, 'a> {
    written: &'d DevicesWritten<'a>,
    /// By device, partitions included as the mounts name them.
    by_dev: BTreeMap<DevId, Folio<'a>>,
    /// Of any writable filesystem.
    of_any: Folio<'a>,
}

impl<'d, 'a> Folios<'d, 'a> {
    fn of(derived: &'d Derived<'a>) -> Folios<'d, 'a> {
        let kernel = derived.behaviour;
        let page_size = derived.page_size;
        let folio = |mount: &'a Mount| {
            let read_ahead = device::of_mount(derived.window, mount)?.bdi().and_then(|bdi| bdi.last.read_ahead);
            let folio = largest_folio(&mount.fs_type, kernel.as_ref(), read_ahead, page_size);
            Some((folio.map_or(page_size, |folio| folio.by_readahead.0), mount.fs_type.as_str()))
        };
        let mut by_dev: BTreeMap<DevId, Folio<'a>> = BTreeMap::new();
        let mounts = derived.window.facts.iter().flat_map(|facts| &facts.mounts);
        for (mount, found) in mounts.filter_map(|mount| Some((mount, folio(mount)?))) {
            let device = device::of_mount(derived.window, mount).map(|device| device.dev);
            for dev in [Some(mount.dev), device].into_iter().flatten() {
                let known = by_dev.entry(dev).or_insert(found);
                *known = found.max(*known);
            }
        }
        let of_any = cgroup::writable_mounts(derived.window).into_iter().filter_map(folio).max();
        let of_any = of_any.unwrap_or((page_size, "unknown"));
        Folios { written: derived.devices_written(), by_dev, of_any }
    }

    /// Of the filesystems that a cgroup writes to; of all writable ones where it was not seen to write.
    fn largest(&self, cgroup: EntityId) -> Folio<'a> {
        let written = self.written.numbers(cgroup).filter_map(|dev| self.by_dev.get(&dev).copied());
        written.max().unwrap_or(self.of_any)
    }
}
