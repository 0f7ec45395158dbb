// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks the arithmetic of cgroups' domains against throttling: the event of a paused writer contains the free-run
//! ceiling of its domain, to a page, on every kernel (`2 × setpoint − limit`, for the domain of `limit`). Where
//! thresholds of wbs are not printed, this is the only reading of a cgroup's domain.

use super::domain;
use super::inputs::{Inputs, PageBound};
use floodline_record::id::Entity;
use floodline_record::record::{Event, What};
use floodline_record::traced::throttle::{Domain, ThrottleState};
use floodline_record::units::Nanos;
use std::collections::{BTreeMap, VecDeque};

/// Largest age of the memcg statistics that the kernel computed with, and so of the samples that it may have computed
/// with: it folds them every two seconds at the latest.
const MEMORY: Nanos = Nanos(3 * Nanos::SECOND.0);
/// Precision of the ceiling, pages: setpoint is half of a sum.
const ROUNDING: u64 = 1;

/// Ceilings of one sample: the machine's, and those of cgroups by inode number.
#[derive(Clone, Debug)]
struct Ceilings {
    at: Nanos,
    global: u64,
    cgroups: BTreeMap<u64, (String, PageBound)>,
}

/// Number of judged pauses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Throttles {
    /// Events of tasks that were paused by a cgroup's limits.
    pub all: u64,
    /// Events within the range of the samples around them.
    pub within: u64,
    /// Events for which the samples around them agree on the ceiling.
    pub still: u64,
    /// Still events that are exact.
    pub exact: u64,
}

impl Throttles {
    /// Part of all that is within.
    pub fn within_share(&self) -> Option<f64> {
        share(self.within, self.all)
    }

    /// Part of the still ones that is exact.
    pub fn exact_share(&self) -> Option<f64> {
        share(self.exact, self.still)
    }
}

/// Part of a whole; `None` if there is no whole.
pub(super) fn share(part: u64, of: u64) -> Option<f64> {
    (of > 0).then(|| part as f64 / of as f64)
}

/// An event that differs from the arithmetic.
pub(super) struct Off {
    pub(super) at: Nanos,
    pub(super) cgroup: String,
    pub(super) printed: u64,
    pub(super) computed: PageBound,
}

/// Judges events as samples pass by.
#[derive(Debug, Default)]
pub(super) struct Witness {
    pub(super) found: Throttles,
    waiting: Vec<(Nanos, u64, Domain, ThrottleState)>,
    seen: VecDeque<Ceilings>,
}

impl Witness {
    /// Queues an event until the sample at its end and the one after that.
    pub(super) fn event(&mut self, event: &Event) {
        if let What::Throttled(pauses) = &event.what
            && let Some(longest) = pauses.longest
        {
            self.waiting.push((event.at, pauses.wb_cgroup_ino, pauses.domain, longest));
        }
    }

    /// Judges the queued events with a new sample, and returns those that differ.
    pub(super) fn sample(
        &mut self,
        at: Nanos,
        inputs: &Inputs,
        avail: PageBound,
        thresh: (PageBound, PageBound),
    ) -> Vec<Off> {
        let old = at.0.saturating_sub(MEMORY.0);
        while self.seen.front().is_some_and(|ceilings| ceilings.at.0 < old) {
            self.seen.pop_front();
        }
        self.seen.push_back(ceilings(at, inputs, avail, thresh));
        let (ready, waiting) = std::mem::take(&mut self.waiting).into_iter().partition(|(until, ..)| until.0 < at.0);
        self.waiting = waiting;
        let ready: Vec<(Nanos, u64, Domain, ThrottleState)> = ready;
        ready.into_iter().filter_map(|(until, ino, domain, state)| self.judge(until, ino, domain, &state)).collect()
    }

    fn judge(&mut self, at: Nanos, ino: u64, domain: Domain, state: &ThrottleState) -> Option<Off> {
        let printed = state.freerun_pages().0;
        let is_near = |ceiling: u64| printed.abs_diff(ceiling) <= ROUNDING;
        // Before 6.15 the event does not record its domain.
        let is_global = || self.seen.iter().any(|ceilings| is_near(ceilings.global));
        if !(domain == Domain::Memcg || (domain == Domain::Unknown && !is_global())) {
            return None;
        }
        let around: Vec<_> = self.seen.iter().filter_map(|ceilings| ceilings.cgroups.get(&ino)).collect();
        let (cgroup, _) = around.first()?;
        let low = around.iter().map(|(_, bound)| bound.low).min()?;
        let high = around.iter().map(|(_, bound)| bound.high).max()?;
        let is_within = (low.saturating_sub(ROUNDING)..=high.saturating_add(ROUNDING)).contains(&printed);
        let is_still = low == high;
        self.found.all += 1;
        self.found.within += u64::from(is_within);
        self.found.still += u64::from(is_still);
        self.found.exact += u64::from(is_still && is_within);
        (!is_within).then(|| Off { at, cgroup: cgroup.clone(), printed, computed: PageBound { low, high } })
    }
}

/// The ceilings by the readings of the latest sample.
fn ceilings(at: Nanos, inputs: &Inputs, avail: PageBound, (thresh, bg_thresh): (PageBound, PageBound)) -> Ceilings {
    let of = |path, id| -> Option<(u64, (String, PageBound))> {
        let Some(Entity::Cgroup { ino: Some(ino), .. }) = inputs.window.entities.get(&id) else { return None };
        let freerun = domain::cgroup_of(inputs, avail, thresh, path, id)?.domain.freerun?;
        let bound = PageBound { low: inputs.pages(freerun.low), high: inputs.pages(freerun.high) };
        Some((*ino, (format!("throttled in {path}"), bound)))
    };
    let cgroups = inputs.paths.iter().filter_map(|(path, id)| of(path, *id)).collect();
    Ceilings { at, global: thresh.low.midpoint(bg_thresh.low), cgroups }
}

#[cfg(test)]
mod tests {
    use super::Throttles;

    #[test]
    fn shares_are_parts_of_what_was_judged() {
        let found = Throttles { all: 8, within: 6, still: 4, exact: 1 };
        assert_eq!((found.within_share(), found.exact_share()), (Some(0.75), Some(0.25)));
        assert_eq!((Throttles::default().within_share(), Throttles::default().exact_share()), (None, None));
    }
}
