// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shares with which a machine begins: the completions that its domains have counted before the workload. A booted kernel has
//! counted none. Mirrors the state of struct fprop_global and fprop_local_percpu in its wb_domain and bdi_writeback.

use crate::arena::{BdiId, BlockId, CgId, WbId};
use crate::world::World;
use floodline_kernel::{FpropGlobal, FpropLocal};
use floodline_scenario::{Scenario, Share};
use std::collections::BTreeMap;

/// The shares of a scenario, by wb.
#[derive(Debug, Default)]
pub(crate) struct Shares(Vec<(WbId, Share)>);

impl World {
    /// Keeps the shares of a scenario, and creates the wbs of cgroups that have one. Filesystems must be there: the share of a device is
    /// that of a btrfs on it.
    pub(crate) fn keep_shares(&mut self, scenario: &Scenario, devices: &BTreeMap<String, (BlockId, BdiId)>) {
        let mut shares = Vec::new();
        for (name, device) in &scenario.machine.devices {
            let Some((share, (block, _))) = device.share.zip(devices.get(name)) else { continue };
            let Some(bdi) = self.bdi_of_data(*block) else { continue };
            shares.push((self.bdis[bdi].root, share));
        }
        for copy in scenario.cgroup_copies() {
            let Some(cgroup) = self.cgroup_at(&copy.path) else { continue };
            for (name, share) in &copy.spec.share {
                let Some(bdi) = devices.get(name).and_then(|(block, _)| self.bdi_of_data(*block)) else { continue };
                let wb = self.wb_get(bdi, self.memcg(cgroup));
                shares.push((wb, *share));
            }
        }
        self.shares = Shares(shares);
    }

    /// Sets the completions to the shares of the scenario, if it has any. What the preparation of the workload has written
    /// does not count then.
    pub(crate) fn begin_with_shares(&mut self) {
        let Shares(shares) = std::mem::take(&mut self.shares);
        if !shares.is_empty() {
            self.set_shares(&shares);
        }
    }

    /// Sets the completions of all wbs: those that are named have these shares, others have none.
    pub(crate) fn set_shares(&mut self, shares: &[(WbId, Share)]) {
        let all = Share::together(shares.iter().map(|(_, share)| *share));
        let (build, now, period) = (self.build, self.jiffies(), self.domain.completions.period);
        self.domain.completions = FpropGlobal::starting(build, all, period, now);
        let mut pages: BTreeMap<WbId, u64> = BTreeMap::new();
        for (wb, share) in shares {
            *pages.entry(*wb).or_default() += share.among(all);
        }
        // A memcg's domain has counted the pages of its own wbs.
        let mut of_memcgs: BTreeMap<CgId, u64> = BTreeMap::new();
        for (wb, pages) in &pages {
            *of_memcgs.entry(self.wbs[*wb].memcg).or_default() += pages;
        }
        for id in self.cgroups.ids() {
            let pages = of_memcgs.get(&id).copied().unwrap_or(0);
            let domain = &mut self.cgroups[id].domain.completions;
            *domain = FpropGlobal::starting(build, pages, domain.period, now);
        }
        for wb in self.wbs.ids() {
            let pages = pages.get(&wb).copied().unwrap_or(0);
            let memcg = self.wbs[wb].memcg;
            self.wbs[wb].completions = FpropLocal::starting(&self.domain.completions, pages);
            self.wbs[wb].memcg_completions = FpropLocal::starting(&self.cgroups[memcg].domain.completions, pages);
        }
    }
}
