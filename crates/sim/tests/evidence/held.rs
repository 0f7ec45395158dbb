// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers about writes that limits of cgroups let go late, and about waits in those times.

use super::number;
use super::raw::{Raw, over, seconds};
use super::trace::is_called;
use floodline_analysis::report::{Evidence, Finding};

impl Raw {
    /// Bytes per second of the disk when it is full.
    fn full_rate(&self) -> f64 {
        let rate = |at: usize| self.written(at, at + 1) / self.length(at);
        let full = self.intervals().filter(|at| self.is_saturated(*at) && self.written(*at, at + 1) > 0.0);
        let mut rates: Vec<f64> = full.map(rate).collect();
        rates.sort_by(f64::total_cmp);
        rates.get(rates.len() / 2).copied().unwrap_or_else(|| self.intervals().map(rate).fold(0.0, f64::max))
    }

    /// Stretches in which the disk wrote what had been under writeback before, by their first and last sample.
    fn let_go(&self) -> Vec<(usize, usize)> {
        let full = self.full_rate();
        let is_full = |at: &usize| {
            let is_fast = self.written(*at, at + 1) / self.length(*at) >= 0.4 * full;
            self.is_saturated(*at) || is_fast && self.queue(*at) >= 2.0 && self.busy(*at) >= 0.5
        };
        let level = |at: usize| {
            let row = &self.samples[at.min(self.samples.len() - 1)].host;
            row.nr_writeback.unwrap_or_default().0 as f64 * self.page()
        };
        let all: Vec<usize> = self.intervals().filter(is_full).collect();
        let runs = all.chunk_by(|one, next| one + 1 == *next).map(|run| (run[0], run[run.len() - 1] + 1));
        let was_held = |(from, to): &(usize, usize)| {
            let was_busy = (from.saturating_sub(2)..*from).all(|at| self.busy(at) >= 0.75);
            // In the sample at its start, the flusher may have sent what the disk then writes.
            let gone = level(from.saturating_sub(1)) - level(*to).min(level(to + 1));
            !was_busy && *from > 0 && gone >= 0.5 * self.written(*from, *to)
        };
        runs.filter(was_held).collect()
    }
}

/// Computes a number about writes that were held; `None` if it is about something else.
pub(crate) fn again(raw: &Raw, finding: &Finding, evidence: &Evidence) -> Option<f64> {
    let told = finding.evidence.iter().find(|one| one.name == "Bursts of held writes").and_then(number)?;
    let name = evidence.name.as_str();
    let runs = raw.let_go();
    let length = |(from, to): &(usize, usize)| seconds(&raw.samples[*from], &raw.samples[*to]);
    let all: f64 = runs.iter().map(length).sum();
    Some(match name {
        "Bursts of held writes" => all,
        "Written in the largest" => runs.iter().map(|(from, to)| raw.written(*from, *to)).fold(0.0, f64::max),
        "Length of the longest" => runs.iter().map(length).fold(0.0, f64::max),
        "Time in them with a task waiting" => over(runs.iter().map(|(from, to)| raw.pressed(*from, *to)).sum(), all),
        _ if evidence.source.contains("trace of") => {
            // The part of each long wait that is in these times.
            let label = name.strip_prefix("Waited, ")?;
            let times =
                runs.iter().map(|(from, to)| (raw.samples[*from].time.monotonic.0, raw.samples[*to].time.monotonic.0));
            let times: Vec<(u64, u64)> = times.collect();
            let waits = raw.slow_syncs().filter(|(_, wait)| is_called(&wait.who, label));
            let common = waits.map(|(end, wait)| {
                let began = end.0.saturating_sub(wait.lasted.0);
                times.iter().map(|(from, to)| end.0.min(*to).saturating_sub(began.max(*from))).sum::<u64>()
            });
            common.sum::<u64>() as f64 / 1e9
        }
        // No longer than these times.
        _ => super::again(raw, finding, evidence).filter(|_| name.starts_with("Waited, "))?.min(told),
    })
}
