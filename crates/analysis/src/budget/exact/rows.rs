// SPDX-License-Identifier: MIT OR Apache-2.0
//! The hard threshold of every wb in one sample: as the kernel prints it, and as computed from counters. A wb's part of
//! its domain's completions is not visible: it is taken to be none or all where that is certain.

use crate::budget::domain;
use crate::budget::inputs::{Inputs, PageBound};
use floodline_kernel::{WbShare, wb_calc_thresh, wb_min_max_ratio};
use floodline_record::id::{Entity, EntityId};
use floodline_record::name::Name;
use floodline_record::sample::WbRow;
use floodline_record::units::{Bytes, Nanos};
use floodline_record::window::{Span, Window};
use std::collections::BTreeMap;

/// Pages of completions, as they weigh now, below which a part of them says nothing. When a period ends, the domain's
/// counter (lib/flex_proportions.c) loses half by an addition that a CPU holds back while it is below 32, and what it
/// held back before counts against that: with fewer than 64 pages left the domain reads up to half as many too much,
/// and a wb that has all of them gets 50 to 97 % of the threshold until the next period. As periods end at moments that
/// are not known here, what is left may be half of the weight.
const COMPLETIONS_MIN: f64 = 128.0;
/// How much larger the wb's part of the global threshold must be than its memcg's before the memcg's binds:
/// where a period ends is not known here.
const BINDS_CLEARLY: f64 = 2.0;
/// Part of the completions from which a wb is taken to have all of them.
const ALL_COMPLETIONS: f64 = 0.9999;

/// Completions of each wb as they weigh now, and the counter they were last read from.
pub(super) type Completions = BTreeMap<EntityId, (f64, u64)>;

/// One wb in one sample.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) label: String,
    pub(super) printed: u64,
    pub(super) computed: PageBound,
    /// Whether its part of the completions is known. If not, the computed threshold is a bound.
    pub(super) is_seen: bool,
    /// Whether nothing of the cgroup moved for long enough.
    pub(super) is_settled: bool,
}

/// Counters that must not change: pages dirtied, pages written, file pages, pages charged.
pub(super) type Still = (u64, u64, u64, u64);

/// Every wb of the latest sample whose threshold can be computed, and the number of the others.
pub(super) fn rows(
    inputs: &Inputs,
    avail: PageBound,
    global_thresh: PageBound,
    completions: &Completions,
) -> (BTreeMap<EntityId, (Row, Still)>, u64) {
    let window = inputs.window;
    let look = Look::of(window, completions);
    let by_ino: BTreeMap<u64, (&Name, EntityId)> = inputs
        .paths
        .iter()
        .filter_map(|(path, id)| match window.entities.get(id) {
            Some(Entity::Cgroup { ino: Some(ino), .. }) => Some((*ino, (path, *id))),
            _ => None,
        })
        .collect();
    let (mut rows, mut unseen) = (BTreeMap::new(), 0);
    for (id, span) in look.wbs() {
        let Some(Entity::Wb { bdi, cgroup_ino }) = window.entities.get(id) else { continue };
        let (Some((path, cgroup)), Some(printed)) = (by_ino.get(cgroup_ino), span.last.dirty_thresh) else { continue };
        let Some(budget) = domain::cgroup_of(inputs, avail, global_thresh, path, *cgroup) else { continue };
        let (Some(thresh), Some(dirty)) = (budget.domain.thresh, budget.domain.used()) else { continue };
        let Some(part) = look.part(inputs, *id, span, bdi, *cgroup_ino) else {
            unseen += 1;
            continue;
        };
        let thresh = PageBound { low: inputs.pages(thresh.low), high: inputs.pages(thresh.high) };
        let (computed, is_seen) = part.of(inputs, thresh, inputs.pages(dirty), global_thresh);
        let label = format!("{path} on {bdi}");
        let row = Row { label, printed: inputs.pages(printed), computed, is_seen, is_settled: false };
        let written = completions.get(id).map_or(0, |(_, written)| *written);
        rows.insert(*id, (row, still(inputs, span, written, *cgroup)));
    }
    (rows, unseen)
}

/// Counters that must not change for the row to be quiet.
fn still(inputs: &Inputs, span: &Span<WbRow>, written: u64, cgroup: EntityId) -> Still {
    let row = inputs.cgroup(cgroup);
    let pages = |bytes: Option<Bytes>| bytes.map_or(0, |bytes| inputs.pages(bytes));
    let file = row.map_or(0, |row| pages(row.inactive_file).saturating_add(pages(row.active_file)));
    (pages(span.last.dirtied), written, file, row.map_or(0, |row| pages(row.memory_current)))
}

/// The wbs of the latest sample, and their completions added up.
struct Look<'a> {
    window: &'a Window,
    latest: Option<Nanos>,
    completions: &'a Completions,
    /// Weight of all completions, and by cgroup.
    all: f64,
    of_cgroup: BTreeMap<u64, f64>,
}

impl<'a> Look<'a> {
    fn of(window: &'a Window, completions: &'a Completions) -> Look<'a> {
        let mut of_cgroup: BTreeMap<u64, f64> = BTreeMap::new();
        for (id, (weight, _)) in completions {
            if let Some(Entity::Wb { cgroup_ino, .. }) = window.entities.get(id) {
                *of_cgroup.entry(*cgroup_ino).or_default() += weight;
            }
        }
        let latest = window.wbs.values().map(|span| span.last_at).max();
        Look { window, latest, completions, all: completions.values().map(|(weight, _)| weight).sum(), of_cgroup }
    }

    fn wbs(&self) -> impl Iterator<Item = (&'a EntityId, &'a Span<WbRow>)> {
        self.window.wbs.iter().filter(|(_, span)| Some(span.last_at) == self.latest)
    }

    /// Bandwidth of the wbs among which a device's ratios are divided: those that have dirty inodes (state bit 2).
    fn busy_bandwidth(&self, device: &Name) -> Option<u64> {
        let of_device = self
            .wbs()
            .filter(|(id, _)| matches!(self.window.entities.get(id), Some(Entity::Wb { bdi, .. }) if bdi == device));
        let busy = of_device.filter(|(_, span)| span.last.state.is_none_or(|state| state.0 & 4 != 0));
        busy.map(|(_, span)| span.last.write_bandwidth.map(|bandwidth| bandwidth.0)).sum()
    }

    /// A wb's part of the thresholds; `None` where its device's ratios or its bandwidth were not read.
    fn part(&self, inputs: &Inputs, id: EntityId, span: &Span<WbRow>, bdi: &Name, cgroup_ino: u64) -> Option<Part> {
        let (min_ratio_sum, max_ratio, strictlimit) = device(inputs, bdi)?;
        let bandwidth = span.last.write_bandwidth?.0;
        let is_capped = max_ratio < inputs.algorithm.ratio_full();
        let (min_ratio, max_ratio) =
            wb_min_max_ratio(&inputs.algorithm, min_ratio_sum, max_ratio, bandwidth, self.busy_bandwidth(bdi)?);
        let (weight, written) = self.completions.get(&id).copied().unwrap_or_default();
        let whole = self.of_cgroup.get(&cgroup_ino).copied().unwrap_or(0.0);
        let (numerator, is_seen) = match written {
            // Completions on a device with a largest share are not all counted.
            _ if is_capped => (1, false),
            // Without a floor, a part of zero gives zero for any threshold: such a row tests nothing.
            0 => (0, inputs.algorithm.share_floor),
            _ => (1, weight >= COMPLETIONS_MIN && weight >= whole * ALL_COMPLETIONS),
        };
        let unlimited = WbShare::unlimited(&inputs.algorithm, numerator, 1);
        let share = WbShare { min_ratio, max_ratio, strictlimit, min_ratio_sum, ..unlimited };
        Some(Part { share, is_seen, globally: weight / self.all.max(1.0) })
    }
}

/// A wb's part of its memcg's threshold and of the machine's.
struct Part {
    /// Its part of the memcg's completions: none or all.
    share: WbShare,
    /// Whether that part is certain.
    is_seen: bool,
    /// Part of the machine's completions, from 0 to 1.
    globally: f64,
}

impl Part {
    /// The wb's threshold out of its memcg's, and whether it is more than a bound.
    fn of(&self, inputs: &Inputs, thresh: PageBound, dirty: u64, global_thresh: PageBound) -> (PageBound, bool) {
        let at = |thresh: u64| wb_calc_thresh(&inputs.algorithm, &self.share, thresh, dirty);
        let computed = PageBound { low: at(thresh.low), high: at(thresh.high) };
        let (computed, is_seen) = if self.globally >= ALL_COMPLETIONS {
            let whole = WbShare { numerator: 1, ..self.share };
            // The kernel prints the global share regardless of the dirty pages.
            let of_global = |pages| wb_calc_thresh(&inputs.algorithm, &whole, pages, 0);
            let low = computed.low.min(of_global(global_thresh.low));
            (PageBound { low, high: computed.high.min(of_global(global_thresh.high)) }, self.is_seen)
        } else {
            let whole = global_thresh.low as f64;
            let of_global = match inputs.algorithm.share_floor {
                true => (self.globally * whole).max(whole / 8.0),
                false => self.globally * whole,
            };
            (computed, self.is_seen && of_global >= computed.high as f64 * BINDS_CLEARLY)
        };
        // An unknown part is at most all.
        (if is_seen { computed } else { PageBound { low: 0, ..computed } }, is_seen)
    }
}

/// Smallest and largest ratio of a device in the kernel's own units, and whether it is strict.
fn device(inputs: &Inputs, wanted: &Name) -> Option<(u64, u64, bool)> {
    let window = inputs.window;
    let row = window.bdis.iter().find_map(|(id, span)| match window.entities.get(id) {
        Some(Entity::Bdi { name }) if name == wanted => Some(&span.last),
        _ => None,
    })?;
    let full = inputs.algorithm.ratio_full();
    let units = |ppm: u64| u64::try_from(u128::from(ppm) * u128::from(full) / 1_000_000).unwrap_or(u64::MAX);
    // Older kernels print no strict_limit and have none.
    Some((units(row.min_ratio?.0), units(row.max_ratio?.0), row.strict_limit.is_some_and(|flag| flag.0 != 0)))
}
