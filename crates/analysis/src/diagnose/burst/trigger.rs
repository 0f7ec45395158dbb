// SPDX-License-Identifier: MIT OR Apache-2.0
//! The trigger of a burst: the kernel's own word in a trace, otherwise what amount and age allow. Does not cover the extent of a burst.

use super::{
    FLUSHED_SHARE, FRESH_S, History, NEAR_EXPIRY, NEAR_THRESHOLD, NOTICED_S, Trigger, counts_all_wbs,
    has_cgroup_writeback,
};
use crate::budget::{CgroupBudget, ROOT_INO};
use crate::diagnose::derived::Derived;
use crate::diagnose::{cgroup, elsewhere, flusher, synced};
use floodline_record::traced::flusher::Flushed;
use floodline_record::units::{Bytes, Nanos, Pages};
use std::collections::BTreeSet;

/// Part of its own background threshold from which a cgroup may have reached it: samples miss the most of a burst.
const NEAR_OWN: f64 = 0.75;

impl History<'_, '_> {
    /// The device's own part of the background threshold at `time`: the same part as it has of the limit, which the kernel
    /// prints. `None` where the level is not the device's own.
    fn own_background(&self, time: Nanos) -> Option<Bytes> {
        let series = self.device.bdi_series().filter(|_| self.levels.is_own)?;
        let place = series.partition_point(|(at, _)| *at <= time).checked_sub(1)?;
        let own = series.get(place)?.1.dirty_thresh.filter(|own| own.0 > 0)?;
        let host = &self.derived.window.host_series;
        let place = host.partition_point(|(at, _)| at.monotonic <= time).checked_sub(1)?;
        let row = &host.get(place)?.1;
        let (limit, background) = (row.nr_dirty_threshold?.0, row.nr_dirty_background_threshold?.0);
        (limit > 0).then(|| Bytes((own.0 as f64 * background as f64 / limit as f64) as u64))
    }

    /// Whether the device's own part of the background threshold was reached before `time`, and not longer ago than the
    /// flusher needs to look at it.
    pub(super) fn has_reached_part(&self, time: Nanos) -> bool {
        let Some(part) = self.own_background(time) else { return false };
        let period = self.derived.window.host.last.dirty_writeback_centisecs;
        let Some(period_s) = period.map(|period| period.0 as f64 / 100.0).filter(|period| *period > 0.0) else {
            return false;
        };
        let until = self.sample_at(time).and_then(|at| self.levels.series.get(..=at)).unwrap_or_default();
        let is_over = |level: u64| level as f64 >= NEAR_THRESHOLD * part.0 as f64;
        let below = until.iter().rev().find(|(_, level)| !is_over(*level));
        let since_s = |(at, _): &(Nanos, u64)| Nanos(time.0.saturating_sub(at.0)).as_secs_f64();
        until.last().is_some_and(|(_, level)| is_over(*level))
            && below.is_some_and(|below| since_s(below) <= period_s + NOTICED_S)
    }

    /// Whether the flushers of some rounds looked at a part of the machine's threshold: the machine's dirty data were below the threshold
    /// all the time, and flushers of cgroups that reached their own thresholds wrote less than half of the pages. A disk has a part of the
    /// threshold, and on it each cgroup has.
    fn is_of_part(&self, queued_from: Nanos, to: Nanos, is_then: impl Fn(Nanos, &Flushed) -> bool) -> bool {
        let window = self.derived.window;
        let at_own_threshold = |budget: &&CgroupBudget| {
            let most = window.unwritten_max.get(&budget.cgroup).copied().unwrap_or(0) as f64;
            // Without a limit of memory its threshold is hardly smaller than the machine's.
            budget.headroom.is_some()
                && budget.domain.bg_thresh.is_some_and(|bound| most >= NEAR_OWN * bound.low.0 as f64)
        };
        let full = self.derived.budgets().cgroups.iter().filter(at_own_threshold);
        let full: BTreeSet<u64> = full.filter_map(|budget| cgroup::ino(window, budget.cgroup)).collect();
        let pages = |is_counted: &dyn Fn(&Flushed) -> bool| -> Option<u64> {
            let reasons = flusher::by_reason(window, |at, flushed| is_then(at, flushed) && is_counted(flushed))?;
            let of_amount = reasons.iter().filter(|(reason, _)| trigger_of(reason) == Some(Trigger::Amount));
            Some(of_amount.map(|(_, rounds)| rounds.pages.0).sum())
        };
        let is_full = |flushed: &Flushed| flushed.wb_cgroup_ino != ROOT_INO && full.contains(&flushed.wb_cgroup_ino);
        let by_full = pages(&is_full).zip(pages(&|_| true));
        let rows = window.host_series.iter().filter(|(at, _)| at.monotonic >= queued_from && at.monotonic <= to);
        let mut below = rows.map(|(_, row)| {
            let unwritten = row.nr_dirty?.0.saturating_add(row.nr_writeback.map_or(0, |pages| pages.0));
            Some((unwritten as f64) < NEAR_THRESHOLD * row.nr_dirty_background_threshold?.0 as f64)
        });
        by_full.is_some_and(|(full, all)| full.saturating_mul(2) < all) && below.all(|is_below| is_below == Some(true))
    }

    /// Whether a part of the background threshold may have been reached that no counter shows. Each disk has a part, and on it each
    /// cgroup has, which kernels up to 6.9 do not print. A
    /// trace of the flusher shows its reasons.
    pub(super) fn has_unknown_part(&self, time: Nanos) -> bool {
        let is_printed = self.own_background(time).is_some() && counts_all_wbs(self.derived);
        let has_whole = self.levels.is_own && !has_cgroup_writeback(self.derived);
        !is_printed && !has_whole && !self.derived.window.traced.contains("flusher")
    }

    /// Trigger of a burst of `written` bytes, as a trace recorded it.
    pub(super) fn traced_trigger(&self, queued_from: Nanos, to: Nanos, written: f64) -> Option<Trigger> {
        let is_its = self.device.bdi_names();
        let is_then = |at: Nanos, flushed: &Flushed| is_its(&flushed.bdi) && flushed.since < to && at > queued_from;
        let reasons = flusher::by_reason(self.derived.window, is_then)?;
        let least = Bytes((FLUSHED_SHARE * written) as u64).pages(self.derived.page_size);
        let named = named(&reasons, least).map(|trigger| match trigger {
            Trigger::Amount if self.is_of_part(queued_from, to, is_then) => Trigger::Part,
            other => other,
        });
        named.or_else(|| {
            // A task that syncs a file queues its pages itself.
            let filesystems = elsewhere::filesystems_on(self.derived, self.device);
            let askers = synced::askers(self.derived.window, &filesystems, queued_from, to);
            let own = Bytes(askers.iter().map(|asker| asker.bytes).sum::<f64>() as u64).pages(self.derived.page_size);
            let is_sync = |(reason, _): &&(&str, flusher::Rounds)| trigger_of(reason) == Some(Trigger::Asked);
            let synced: u64 = reasons.iter().filter(is_sync).map(|(_, rounds)| rounds.pages.0).sum();
            (own.0.saturating_add(synced) >= least.0.max(1)).then_some(Trigger::Asked)
        })
    }
}

/// Trigger of a burst by the kernel's own `wb_reason`: that of the flusher's rounds that took longest. `None` where the
/// flusher wrote less than half, or where no reason stands for a trigger: then each writer waits for its own data.
fn named(reasons: &[(&str, flusher::Rounds)], least: Pages) -> Option<Trigger> {
    let (reason, rounds) = reasons.first()?;
    trigger_of(reason).filter(|_| rounds.pages >= least)
}

/// Trigger that a `wb_reason` stands for.
pub(in crate::diagnose) fn trigger_of(reason: &str) -> Option<Trigger> {
    match reason {
        "background" => Some(Trigger::Amount),
        "periodic" => Some(Trigger::Age),
        "sync" | "fs_free_space" => Some(Trigger::Asked),
        _ => None,
    }
}

/// Trigger of a burst, from the amount of dirty data at its start and their age. The flusher looks at a device's own part of
/// the threshold once in a period only: fresh data that a sync asks for may exceed it.
pub(super) fn trigger(derived: &Derived<'_>, dirty_before: u64, age_s: Option<f64>, is_part: bool) -> Trigger {
    let is_there = |threshold: Bytes| dirty_before as f64 >= NEAR_THRESHOLD * threshold.0 as f64;
    if derived.dirty.background_threshold.is_some_and(is_there) {
        return Trigger::Amount;
    }
    match (age_s, derived.dirty.expiry_seconds) {
        (Some(age), Some(expiry)) if age >= NEAR_EXPIRY * expiry => Trigger::Age,
        (Some(age), _) if age >= FRESH_S && is_part => Trigger::Part,
        (Some(_), Some(_)) => Trigger::Asked,
        _ => Trigger::Unknown,
    }
}
