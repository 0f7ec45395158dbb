// SPDX-License-Identifier: MIT OR Apache-2.0
//! The readings that a finding of starved budgets rests on, row by row.

use super::activity::{self, Activity, Waiting};
use super::starved::Starved;
use super::storm;
use crate::budget::{Budgets, Setting};
use crate::diagnose::derived::Derived;
use crate::diagnose::{cgroup, throttle};
use crate::observer;
use crate::report::Evidence;
use floodline_kernel::FLUSH_TIME;
use floodline_record::units::Nanos;
use std::collections::BTreeSet;

pub(super) fn evidence(
    derived: &Derived<'_>,
    budgets: &Budgets,
    starved: &[Starved<'_>],
    worst: &Starved<'_>,
    did: &Activity<'_, '_>,
    waiting: &Waiting<'_>,
) -> Vec<Evidence> {
    let path = derived.label(worst.budget.cgroup);
    let domain = &worst.budget.domain;
    let mut rows = vec![
        Evidence::count("Cgroups with too small a budget", starved.len() as u64, "domain_dirty_limits()"),
        Evidence::bytes(format!("Hard threshold of {path}"), worst.thresh, "domain_dirty_limits()")
            .against(worst.needed as f64),
    ];
    // What was dirtied per fault stands below where it was measured.
    if did.faults == 0 && did.called.is_none() {
        let name = format!("Folio of its filesystem ({})", worst.fs_type);
        rows.push(Evidence::bytes(name, worst.folio, "readahead window"));
    }
    rows.extend(domain.available.map(|available| {
        Evidence::bytes(
            "Its dirtyable memory",
            available.high.0,
            "mdtc_calc_avail(): file + min(headroom, other clean)",
        )
    }));
    if let Some(Setting::Bytes { units: Some((low, high)), .. }) = domain.binding.as_ref().map(|b| b.setting) {
        let units = if low == high {
            format!("{high}/{}", budgets.page_size)
        } else {
            format!("{low} to {high}/{}", budgets.page_size)
        };
        rows.push(Evidence::text("Part of it that may be dirty", units, "⌈dirty_bytes ÷ dirtyable pages⌉"));
    }
    rows.push(Evidence::count("Of them over their threshold", waiting.over, "memory.stat file_dirty + file_writeback"));
    rows.extend(starved.iter().filter_map(|one| Some((one.peak?, one))).max_by_key(|(peak, _)| *peak).map(
        |(peak, one)| {
            Evidence::bytes(
                format!("Most dirty, {}", derived.label(one.budget.cgroup)),
                peak,
                "memory.stat file_dirty + file_writeback",
            )
            .against(one.thresh as f64)
        },
    ));
    if let Some(rate) = did.rate.filter(|rate| *rate > 0.0) {
        rows.push(
            Evidence::rate("Dirtied by their processes", rate, "/proc/PID/io write_bytes")
                .against(activity::HURTS_RATE),
        );
        let per_fault = (did.faults > 0 && did.called.is_none()).then(|| did.per_fault() as u64);
        rows.extend(per_fault.map(|bytes| {
            Evidence::bytes("Dirtied per page fault", bytes, "write_bytes ÷ (minflt + majflt)")
                .against(activity::FOLIO_PER_FAULT)
        }));
        let rewrites = (did.dirtied as f64 / activity::REWRITES).round();
        rows.push(match did.called {
            Some(cached) => Evidence::bytes("Page cache of them, at most", cached, "memory.stat file")
                .against((did.dirtied as f64 / storm::MANY_TIMES).round()),
            None => Evidence::bytes("They handed to write calls", did.handed, "/proc/PID/io wchar").against(rewrites),
        });
        // Written without a write call.
        rows.extend((did.called.is_none() && did.application > did.handed).then(|| {
            Evidence::bytes(
                "New in their page cache",
                did.new,
                "growth of memory.stat file, less /proc/PID/io read_bytes",
            )
            .against(rewrites)
        }));
        rows.push(Evidence::bytes("and dirtied", did.dirtied, "/proc/PID/io write_bytes"));
    }
    rows.extend(did.writers.first().and_then(|first| {
        Some(Evidence::bytes(
            format!("Most, {} dirtied", first.label()),
            first.dirtied_bytes?,
            "/proc/PID/io write_bytes",
        ))
    }));
    rows.extend(waiting.pressure.map(|share| {
        Evidence::share("Time with a task waiting, worst of them", share, "io.pressure some")
            .against(activity::HURTS_PRESSURE)
    }));
    let inos: BTreeSet<u64> = starved.iter().filter_map(|one| cgroup::ino(derived.window, one.budget.cgroup)).collect();
    rows.extend(throttle::evidence(derived.window, " for their data", |event| inos.contains(&event.wb_cgroup_ino)));
    rows.extend(waiting.busiest.map(|(utilisation, name)| {
        Evidence::share(format!("Busiest disk, {name}"), utilisation, "/proc/diskstats io_time")
            .against(activity::SATURATED)
    }));
    rows.extend(added_by_samples(derived, did).map(|distance| {
        Evidence::seconds("Time between two reads of memory.stat", distance.as_secs_f64(), "times of the samples")
            .against(FLUSH_TIME.as_secs_f64())
    }));
    rows
}

/// Returns the time between two reads of `memory.stat` if it is so short that they add to what these cgroups rewrite.
pub(super) fn added_by_samples(derived: &Derived<'_>, did: &Activity<'_, '_>) -> Option<Nanos> {
    observer::raises_storms(derived.window).filter(|_| did.is_amplified())
}
