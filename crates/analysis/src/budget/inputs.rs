// SPDX-License-Identifier: MIT OR Apache-2.0
//! What budgets are computed from, out of a window: one reading of each input, in pages, with what was
//! not read as a gap. Decides nothing.

use super::Scope;
use crate::shown;
use floodline_kernel::{Algorithm, Behaviour, Build, DirtyTunables, ZoneReserve, totalreserve_pages};
use floodline_record::gap::{Cause, Gap, Source};
use floodline_record::id::{DevId, Entity, EntityId, Hierarchy};
use floodline_record::name::Name;
use floodline_record::sample::{CgroupLimitsRow, CgroupRow, HostRow};
use floodline_record::units::Bytes;
use floodline_record::window::Window;
use std::collections::BTreeMap;

/// Page size assumed where the recording does not say; then nothing is called exact.
const PAGE_SIZE_USUAL: u64 = 4096;

/// A number of pages that lies between two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PageBound {
    pub(super) low: u64,
    pub(super) high: u64,
}

impl PageBound {
    pub(super) fn exactly(pages: u64) -> PageBound {
        PageBound { low: pages, high: pages }
    }

    pub(super) fn is_exact(self) -> bool {
        self.low == self.high
    }
}

/// The readings that budgets depend on.
pub(super) struct Inputs<'a> {
    pub(super) window: &'a Window,
    pub(super) page_size: u64,
    pub(super) algorithm: Algorithm,
    pub(super) tunables: Option<DirtyTunables>,
    pub(super) scope: Scope,
    pub(super) wb_stat_error: Option<Bytes>,
    /// Reserve in free pages; `None` when zones were not read.
    pub(super) reserve: Option<u64>,
    /// Cgroups of the unified hierarchy by path.
    pub(super) paths: BTreeMap<Name, EntityId>,
    /// The devices each cgroup ever wrote to, by `io.stat`.
    pub(super) written: BTreeMap<EntityId, Vec<DevId>>,
    /// Bandwidth of all wbs of a bdi that have dirty inodes, together; `None` where one was not read.
    pub(super) busy_bandwidth: BTreeMap<&'a Name, Option<u64>>,
    /// Dirtyable memory of the machine where it is given, with what was not read for it.
    pub(super) dirtyable: Option<(PageBound, Vec<Gap>)>,
    /// What every number here suffers from: an unknown kernel or page size.
    pub(super) missing: Vec<Gap>,
}

impl<'a> Inputs<'a> {
    pub(super) fn of(window: &'a Window) -> Inputs<'a> {
        // A cgroup that the latest sample did not find is gone.
        let latest = window.cgroups.values().map(|span| span.last_at).max();
        let paths = window
            .cgroups
            .iter()
            .filter(|(_, span)| Some(span.last_at) == latest)
            .filter_map(|(id, _)| match window.entities.get(id) {
                Some(Entity::Cgroup { path, hierarchy: Hierarchy::V2, .. }) => Some((path.clone(), *id)),
                _ => None,
            })
            .collect();
        let (written, busy_bandwidth) = (written(window), busy_bandwidth(window));
        Inputs { paths, written, busy_bandwidth, ..Inputs::of_machine(window) }
    }

    /// The readings that the budget of the machine depends on, without those of cgroups.
    pub(super) fn of_machine(window: &'a Window) -> Inputs<'a> {
        let facts = window.facts.as_ref();
        let mut missing = Vec::new();
        let page_size = match facts.map_or(0, |facts| facts.page_size) {
            0 => {
                missing.push(Gap::detailed(Source::KernelConfig, Cause::NotFound, "page size"));
                PAGE_SIZE_USUAL
            }
            page_size => page_size,
        };
        let kernel = facts.and_then(|facts| facts.kernel);
        if kernel.is_none() {
            missing.push(gap(window, Source::KernelRelease, "version"));
        }
        let algorithm = shown::behaviour(window).unwrap_or_else(Behaviour::newest).arithmetic;
        let scope = match facts {
            _ if kernel.is_some() && !algorithm.memcg_domain => Scope::KernelTooOld,
            None => Scope::Unknown,
            Some(facts) if facts.cgroups.v2_controllers_unread => Scope::Unknown,
            Some(facts) if facts.cgroups.has_unified_writeback() => Scope::PerCgroup,
            Some(_) => Scope::NoUnifiedHierarchy,
        };
        let wb_stat_error = facts.and_then(|facts| facts.cpus_possible).map(|cpus| {
            // The tick rate has no part in it.
            let build = Build { hz: 0, cpus_possible: cpus.into(), page_size };
            Bytes(build.wb_stat_error().saturating_mul(page_size))
        });
        let tunables = tunables(&window.host.last);
        let reserve = reserve(window);
        Inputs {
            window,
            page_size,
            algorithm,
            tunables,
            scope,
            wb_stat_error,
            reserve,
            paths: BTreeMap::new(),
            written: BTreeMap::new(),
            busy_bandwidth: BTreeMap::new(),
            dirtyable: None,
            missing,
        }
    }

    pub(super) fn host(&self) -> &'a HostRow {
        &self.window.host.last
    }

    pub(super) fn cgroup(&self, id: EntityId) -> Option<&'a CgroupRow> {
        self.window.cgroups.get(&id).map(|span| &span.last)
    }

    pub(super) fn limits(&self, id: EntityId) -> Option<&'a CgroupLimitsRow> {
        self.window.cgroup_limits.get(&id).map(|span| &span.last)
    }

    pub(super) fn pages(&self, bytes: Bytes) -> u64 {
        bytes.0 / self.page_size.max(1)
    }

    pub(super) fn bytes(&self, pages: u64) -> Bytes {
        Bytes(pages.saturating_mul(self.page_size))
    }

    pub(super) fn bound(&self, pages: PageBound) -> super::Bound {
        super::Bound { low: self.bytes(pages.low), high: self.bytes(pages.high) }
    }

    /// Dirty pages of the machine with those under writeback, as throttling counts them.
    pub(super) fn global_dirty(&self) -> Option<u64> {
        let host = self.host();
        // Unstable NFS pages were a count of their own until 5.8.
        let unstable = host.nr_unstable.map_or(0, |pages| pages.0);
        Some(host.nr_dirty?.0.saturating_add(host.nr_writeback?.0).saturating_add(unstable))
    }
}

fn written(window: &Window) -> BTreeMap<EntityId, Vec<DevId>> {
    let mut written: BTreeMap<EntityId, Vec<DevId>> = BTreeMap::new();
    for (id, _) in window.cgroup_io.iter().filter(|(_, span)| span.last.wbytes > Some(Bytes(0))) {
        if let Some(Entity::CgroupIo { cgroup, dev }) = window.entities.get(id) {
            written.entry(*cgroup).or_default().push(*dev);
        }
    }
    written
}

fn busy_bandwidth(window: &Window) -> BTreeMap<&Name, Option<u64>> {
    let mut busy: BTreeMap<&Name, Option<u64>> = BTreeMap::new();
    for (id, span) in &window.wbs {
        // State bit 2: has dirty inodes.
        if let Some(Entity::Wb { bdi, .. }) = window.entities.get(id)
            && span.last.state.is_some_and(|state| state.0 & 4 != 0)
        {
            let sum = busy.entry(bdi).or_insert(Some(0));
            *sum = sum.zip(span.last.write_bandwidth).map(|(sum, own)| sum.saturating_add(own.0));
        }
    }
    busy
}

/// Why a source was not read: its own gap where there is one, else that it was not there.
pub(super) fn gap(window: &Window, source: Source, detail: &str) -> Gap {
    let recorded = window.gaps_of(source).find(|gap| gap.entity.is_none()).map(|gap| gap.cause.clone());
    Gap::detailed(source, recorded.unwrap_or(Cause::NotFound), detail)
}

/// The tunables, where both pairs were read as far as they decide anything.
fn tunables(host: &HostRow) -> Option<DirtyTunables> {
    let pair = |bytes: Option<Bytes>, percent: Option<u64>| match bytes?.0 {
        0 => percent.map(|percent| (0, percent)),
        bytes => Some((bytes, 0)),
    };
    let (dirty_bytes, dirty_ratio) = pair(host.dirty_bytes, host.dirty_ratio.map(|percent| percent.0))?;
    let (dirty_background_bytes, dirty_background_ratio) =
        pair(host.dirty_background_bytes, host.dirty_background_ratio.map(|percent| percent.0))?;
    Some(DirtyTunables { dirty_ratio, dirty_background_ratio, dirty_bytes, dirty_background_bytes })
}

/// The reserve of all zones; `None` when they were not read or one lacks a number.
fn reserve(window: &Window) -> Option<u64> {
    if window.zones.is_empty() {
        return None;
    }
    let zones: Option<Vec<ZoneReserve>> = window
        .zones
        .values()
        .map(|span| {
            let zone = &span.last;
            let boost = zone.boost.map_or(0, |pages| pages.0);
            Some(ZoneReserve {
                managed: zone.managed?.0,
                high: zone.high?.0.saturating_sub(boost),
                protection_max: zone.protection_max?.0,
            })
        })
        .collect();
    zones.map(totalreserve_pages)
}
