// SPDX-License-Identifier: MIT OR Apache-2.0
//! The dirty domains as throttling and the flusher read them: thresholds and counts of the machine and of a memcg,
//! and a wb's part of them. Results needed at every stride are cached with their inputs. Mirrors
//! domain_dirty_limits, wb_dirty_limits and wb_over_bg_thresh of mm/page-writeback.c; the arithmetic is in
//! floodline-kernel.

use crate::arena::{CgId, WbId};
use crate::world::{PAGE, World};
use floodline_kernel::{
    BackgroundDomain, DirtyThrottleControl, DirtyTunables, DomainLimits, MdtcAvailInput, TaskClass, WbShare,
    domain_dirty_limits, mdtc_calc_avail, wb_bg_thresh, wb_calc_thresh, wb_over_bg_thresh,
};
use std::cell::Cell;

/// The thresholds of a domain computed last, with their inputs: settings and dirtyable pages, its own and for a
/// memcg's the machine's. The initial value is valid: settings of 0 and no page make thresholds of 0.
#[derive(Debug, Default)]
pub(crate) struct KnownLimits(Cell<(LimitsOf, DomainLimits)>);

type LimitsOf = (u64, Option<u64>, DirtyTunables);

/// The thresholds of a wb in the machine's domain computed last. The initial value matches no wb: the denominator
/// of completions is never 0.
#[derive(Debug, Default)]
pub(crate) struct KnownWbLimits(Cell<(WbLimitsOf, u64, u64)>);

/// Inputs of these thresholds, besides constants set by `add_block`: `min_ratio` and `max_ratio` of the bdi, the
/// sum of the former over all, and `strictlimit`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct WbLimitsOf {
    completions: (u64, u64),
    avg_write_bandwidth: u64,
    tot_write_bandwidth: u64,
    thresh: u64,
    bg_thresh: u64,
}

impl World {
    /// The machine's domain: thresholds and counts. With `counts_writeback`, pages under writeback count, as for
    /// throttling.
    pub(crate) fn gdtc(&self, counts_writeback: bool) -> DirtyThrottleControl {
        let limits = self.global_limits();
        let memory = &self.memory;
        DirtyThrottleControl {
            thresh: limits.thresh,
            bg_thresh: limits.bg_thresh,
            dirty: memory.nr_dirty + if counts_writeback { memory.nr_writeback } else { 0 },
            dirty_limit: self.domain.dirty_limit,
            ..DirtyThrottleControl::default()
        }
    }

    /// The machine's thresholds.
    fn global_limits(&self) -> DomainLimits {
        self.limits(&self.domain_limits, self.global_avail(), None)
    }

    /// Returns the thresholds of a domain, from the cache if the inputs are the same: they change much less often
    /// than callers read them.
    fn limits(&self, known: &KnownLimits, avail: u64, global_avail: Option<u64>) -> DomainLimits {
        let of = (avail, global_avail, self.settings.dirty);
        match known.0.get() {
            (known, limits) if known == of => limits,
            _ => self.new_limits(known, of),
        }
    }

    #[cold]
    fn new_limits(&self, known: &KnownLimits, of: LimitsOf) -> DomainLimits {
        let (avail, global_avail, dirty) = of;
        let limits =
            domain_dirty_limits(&self.behaviour.arithmetic, &dirty, PAGE, avail, global_avail, TaskClass::Normal);
        known.0.set((of, limits));
        limits
    }

    /// A memcg's domain.
    pub(crate) fn mdtc(
        &self,
        memcg: CgId,
        counts_writeback: bool,
        global: &DirtyThrottleControl,
    ) -> DirtyThrottleControl {
        let stats = self.wb_stats(memcg);
        let dirty = stats.dirty + if counts_writeback { stats.writeback } else { 0 };
        let input = MdtcAvailInput {
            file: stats.file,
            headroom: self.headroom(memcg),
            dirty,
            global_avail: self.global_avail(),
            global_dirty: global.dirty,
        };
        let avail = mdtc_calc_avail(&self.behaviour.arithmetic, &input);
        let limits = self.limits(&self.cgroups[memcg].domain_limits, avail, Some(input.global_avail));
        DirtyThrottleControl {
            thresh: limits.thresh,
            bg_thresh: limits.bg_thresh,
            dirty,
            dirty_limit: self.cgroups[memcg].domain.dirty_limit,
            ..DirtyThrottleControl::default()
        }
    }

    /// Fills in a wb's dirty pages and thresholds in its domains.
    pub(crate) fn wb_dirty_limits(
        &self,
        wb: WbId,
        global: &mut DirtyThrottleControl,
        memcg: Option<&mut DirtyThrottleControl>,
    ) {
        let Some(m) = memcg else { return self.global_wb_dirty_limits(wb, global) };
        let share = self.wb_share(wb);
        self.wb_dirty_limits_in(wb, &share, global);
        self.wb_dirty_limits_in(wb, &self.memcg_share(wb, share), m);
    }

    /// Fills in those of the machine's domain only, from the cache if the inputs are the same: the tasks of a
    /// device check more often than these change.
    fn global_wb_dirty_limits(&self, wb: WbId, global: &mut DirtyThrottleControl) {
        if self.behaviour.arithmetic.share_floor {
            // The thresholds also depend on the domain's dirty pages.
            return self.wb_dirty_limits_in(wb, &self.wb_share(wb), global);
        }
        let w = &self.wbs[wb];
        let of = WbLimitsOf {
            completions: w.completions.fraction(self.build, &self.domain.completions),
            avg_write_bandwidth: w.bandwidth.avg_write_bandwidth,
            tot_write_bandwidth: self.bdis[w.bdi].tot_write_bandwidth,
            thresh: global.thresh,
            bg_thresh: global.bg_thresh,
        };
        match w.known_limits.0.get() {
            (known, wb_thresh, wb_bg_thresh) if known == of => {
                (global.wb_thresh, global.wb_bg_thresh) = (wb_thresh, wb_bg_thresh);
                global.wb_dirty = self.wb_dirty(wb, wb_thresh);
            }
            _ => {
                self.wb_dirty_limits_in(wb, &self.wb_share(wb), global);
                w.known_limits.0.set((of, global.wb_thresh, global.wb_bg_thresh));
            }
        }
    }

    fn wb_dirty_limits_in(&self, wb: WbId, share: &WbShare, dtc: &mut DirtyThrottleControl) {
        dtc.wb_thresh = wb_calc_thresh(&self.behaviour.arithmetic, share, dtc.thresh, dtc.dirty);
        dtc.wb_bg_thresh = wb_bg_thresh(dtc.wb_thresh, dtc.bg_thresh, dtc.thresh);
        dtc.wb_dirty = self.wb_dirty(wb, dtc.wb_thresh);
    }

    /// Whether there is background work for a wb.
    pub(crate) fn wb_over_bg_thresh(&self, wb: WbId) -> bool {
        let global = self.gdtc(false);
        if global.dirty > global.bg_thresh {
            // There is, with any share of the wb.
            return true;
        }
        let domain =
            |dtc: &DirtyThrottleControl, share| BackgroundDomain { dirty: dtc.dirty, bg_thresh: dtc.bg_thresh, share };
        let (memcg, share) = (self.wbs[wb].memcg, self.wb_share(wb));
        let m = (memcg != CgId::ROOT && self.behaviour.arithmetic.memcg_domain)
            .then(|| domain(&self.mdtc(memcg, false, &global), self.memcg_share(wb, share)));
        let reclaimable = |thresh| self.wb_reclaimable(wb, thresh);
        wb_over_bg_thresh(&self.behaviour.arithmetic, reclaimable, &domain(&global, share), m.as_ref())
    }

    /// The part of a wb in the threshold of its bdi in debugfs: its share in the machine's domain.
    pub(crate) fn bdi_thresh_shown(&self, wb: WbId) -> u64 {
        let mut global = self.gdtc(true);
        self.wb_dirty_limits(wb, &mut global, None);
        global.wb_thresh
    }

    /// The threshold of a wb in debugfs: the smaller of its shares.
    pub(crate) fn wb_thresh_shown(&self, wb: WbId) -> u64 {
        let mut global = self.gdtc(true);
        let memcg = self.wbs[wb].memcg;
        let has_memcg = memcg != CgId::ROOT && self.behaviour.arithmetic.memcg_domain;
        let mut m = has_memcg.then(|| self.mdtc(memcg, true, &global));
        self.wb_dirty_limits(wb, &mut global, m.as_mut());
        m.map_or(global.wb_thresh, |m| m.wb_thresh.min(global.wb_thresh))
    }
}
