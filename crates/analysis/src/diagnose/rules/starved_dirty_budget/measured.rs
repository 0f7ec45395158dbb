// SPDX-License-Identifier: MIT OR Apache-2.0
//! The two factors of starved budgets as a trace measures them: how often the same folios became dirty, and
//! how often the flusher ran and writers were paused because of the budget.

use super::starved::Starved;
use crate::diagnose::derived::Derived;
use crate::diagnose::dirtying::{self, Dirtying};
use crate::diagnose::flusher::{self, Rounds};
use crate::diagnose::{cgroup, throttle};
use crate::report::Evidence;
use floodline_record::human;
use std::collections::BTreeSet;

/// Share of what was dirtied that had been dirty before, from which that is amplification.
const AGAIN: f64 = 0.5;
/// Rounds of the flusher per second from which it is not the periodic one.
const OFTEN: f64 = 1.0;

/// What a trace saw of the starved cgroups.
pub(super) struct Measured<'a> {
    dirtying: Option<Dirtying<'a>>,
    background: Option<Rounds>,
    paused_s: Option<f64>,
    seconds: f64,
}

impl<'a> Measured<'a> {
    /// `None` when nothing was traced.
    pub(super) fn of(derived: &Derived<'a>, starved: &[Starved<'_>]) -> Option<Measured<'a>> {
        let inos: BTreeSet<u64> =
            starved.iter().filter_map(|one| cgroup::ino(derived.window, one.budget.cgroup)).collect();
        let is_theirs = |ino: u64| inos.contains(&ino);
        let dirtying = dirtying::dirtying(derived.window, |_, dirtied| is_theirs(dirtied.who.cgroup_ino));
        let reasons = flusher::by_reason(derived.window, |_, flushed| is_theirs(flushed.wb_cgroup_ino));
        let of_background = |reasons: Vec<(&str, Rounds)>| {
            let background = reasons.iter().find(|(reason, _)| *reason == "background");
            background.map_or_else(Rounds::default, |(_, rounds)| *rounds)
        };
        let pauses = throttle::by(derived.window, |event| is_theirs(event.wb_cgroup_ino).then_some(()));
        let total =
            |pauses: Vec<((), throttle::Pauses)>| pauses.first().map_or(0.0, |(_, sum)| sum.total.as_secs_f64());
        let measured = Measured {
            dirtying,
            background: reasons.map(of_background),
            paused_s: pauses.map(total),
            seconds: derived.seconds,
        };
        (measured.dirtying.is_some() || measured.background.is_some() || measured.paused_s.is_some())
            .then_some(measured)
    }

    /// How often each byte became dirty, where it was more than twice.
    pub(super) fn times(&self) -> Option<f64> {
        let share = self.dirtying.as_ref()?.redirtied_share().filter(|share| *share >= AGAIN)?;
        Some(1.0 / (1.0 - share).max(1e-3))
    }

    /// Rounds of the flusher per second because of the budget, where they are many.
    fn rounds_per_second(&self) -> Option<f64> {
        let rounds = self.background?.rounds as f64;
        (self.seconds > 0.0).then(|| rounds / self.seconds).filter(|rate| *rate >= OFTEN)
    }

    /// What confirms the finding; `None` when the trace shows neither factor.
    pub(super) fn sentence(&self) -> Option<String> {
        let mut parts = Vec::new();
        if let (Some(dirtying), Some(_)) = (&self.dirtying, self.times()) {
            let share = dirtying.redirtied_part().unwrap_or_default();
            let most = dirtying.most_by().zip(dirtying.most_in());
            let most = most.map(|(who, file)| format!(", the most by {who}, in {file}")).unwrap_or_default();
            let bytes = human::bytes(dirtying.bytes as f64);
            parts.push(format!("{share} of the {bytes} that their tasks dirtied had been dirty before{most}."));
        }
        if let Some(rate) = self.rounds_per_second() {
            let rate = human::number(rate);
            parts.push(format!("The flusher ran {rate} times a second for their background thresholds."));
        }
        if let Some(paused) = self.paused_s.filter(|paused| *paused > 0.0) {
            parts.push(format!("Their writers were paused for {} in dirty throttling.", human::seconds(paused)));
        }
        (!parts.is_empty()).then(|| parts.join(" "))
    }

    /// The same as readings.
    pub(super) fn evidence(&self) -> Vec<Evidence> {
        let mut rows: Vec<Evidence> =
            self.dirtying.iter().flat_map(|dirtying| dirtying.evidence("tasks of these cgroups")).collect();
        rows.extend(self.background.map(|background| {
            let name = "Rounds of the flusher for their background thresholds";
            Evidence::count(name, background.rounds, flusher::SOURCE).against((OFTEN * self.seconds).round())
        }));
        rows
    }
}
