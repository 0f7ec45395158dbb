// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes without a write call: `splice` moves pages of a pipe into the page cache, and neither `wchar` nor `syscw` counts
//! it. In the counters it looks like stores to a mapping. Two things tell `splice` from stores: the page cache grows by what becomes
//! dirty, and each fault would have to dirty more than the largest folio that readahead makes.

use super::group::{Bin, Group};
use super::stores::BY_WRITE;
use crate::Recorded;
use floodline_analysis::diagnose::cgroup::cache_growth;
use floodline_record::id::EntityId;
use std::collections::BTreeMap;

/// Bytes of a pipe, which one call moves at most.
const PIPE: f64 = 65_536.0;
/// Share of the bytes that seem to be stored to mappings that must be new in the page cache.
const NEW: f64 = 0.5;

/// Counts the bytes of `splice` as those of write calls.
pub(super) fn take(groups: &mut [Group], recorded: &Recorded, page: f64) {
    let mut all: BTreeMap<Option<EntityId>, Bin> = BTreeMap::new();
    for group in groups.iter() {
        let sum = all.entry(group.cgroup).or_default();
        for bin in &group.bins {
            sum.mapped += bin.mapped;
            sum.by_calls += bin.by_calls;
            sum.read += bin.read;
        }
    }
    for group in groups {
        let sum = |of: fn(&Bin) -> f64| group.bins.iter().map(of).sum::<f64>();
        let (mapped, faults) = (sum(|bin| bin.mapped), sum(|bin| bin.faults));
        let of_all = all.get(&group.cgroup).copied().unwrap_or_default();
        let new = grown(group.cgroup, recorded, page) - of_all.read - of_all.by_calls;
        if mapped <= 0.0 || new < NEW * of_all.mapped || mapped < BY_WRITE * faults {
            continue;
        }
        for bin in &mut group.bins {
            bin.by_calls += bin.mapped;
            bin.wchar += bin.mapped;
            bin.calls += (bin.mapped / PIPE).ceil();
            bin.mapped = 0.0;
        }
    }
}

/// Growth of the page cache of a cgroup, or of the machine where no cgroup has a count of its own, bytes.
fn grown(cgroup: Option<EntityId>, recorded: &Recorded, page: f64) -> f64 {
    let window = &recorded.window;
    let of = |span| cache_growth(window, span, page as u64);
    let span = cgroup.and_then(|id| window.cgroups.get(&id));
    span.and_then(|span| of(Some(span))).or_else(|| of(None)).unwrap_or(0) as f64
}
