// SPDX-License-Identifier: MIT OR Apache-2.0
//! Candidates of `advise` on a large host. The first part of each run is simulated before any whole run. A candidate whose tasks wait
//! longer in that part than those of another one in all of its run is not simulated further: waits only add up. Its figures are
//! extrapolated, and it is never chosen. On a small host, each run is whole.

use super::{AS_IS, GoOn, Runner, Studied, ran};
use crate::advise::{Candidate, Search};
use crate::changed::Changed;
use crate::predict::Run;
use crate::shown::{Figures, Shown};
use floodline_analysis::advice::Goal;
use floodline_analysis::prediction::{DIRTIED, WAITS, WRITTEN};
use floodline_record::units::Nanos;
use floodline_scenario::{Scenario, Time};

/// Tasks times seconds from which on all whole runs together take too long.
const SIZE_MIN: f64 = 3_000.0;
/// Fewest candidates for which a part is simulated first.
const CANDIDATES_MIN: usize = 12;
/// Part of the time that is simulated first.
const PART: u64 = 4;
/// Waits of the first part, as a multiple of the shortest ones and beside a second, up to which the whole run is simulated at once.
const NEAR: f64 = 2.0;

/// A run of a candidate without a verdict of the rules.
const WHOLE: Run = Run { trial: Candidate::TRIAL, ..AS_IS };

/// Runs candidates. The search has the host as it is already. A setting under which the load cannot continue is left out.
pub(super) fn run(
    studied: &Studied,
    search: &Search<'_>,
    goal: Goal,
    candidates: Vec<Candidate>,
    go_on: GoOn<'_>,
    runner: &mut impl Runner,
) -> Vec<(Candidate, Shown)> {
    let (twin, window) = (&studied.twin, &studied.recorded.window);
    let whole = |changed: &Changed| ran((twin, window), changed, WHOLE, go_on).ok().map(|(shown, _)| shown);
    let size = twin.scenario.number_of_tasks() as f64 * twin.seconds;
    if goal != Goal::Latency || size < SIZE_MIN || candidates.len() < CANDIDATES_MIN {
        let shown = runner.each(&candidates, |one| whole(&one.changed));
        return candidates.into_iter().zip(shown).filter_map(|(one, shown)| Some((one, shown?))).collect();
    }
    let parts: Vec<Changed> = candidates.iter().map(|one| part_of(&one.changed)).collect();
    let parts = runner.each(&parts, whole);
    // A part that was not simulated to its end shows nothing.
    let parts: Vec<Option<Shown>> = parts.into_iter().map(|shown| shown.filter(|shown| !shown.is_cut)).collect();
    let waits: Vec<Option<f64>> = parts.iter().map(|shown| shown.as_ref().map(waits_of)).collect();
    let shortest = waits.iter().flatten().copied().fold(f64::INFINITY, f64::min);
    let mut results: Vec<Option<Shown>> = vec![None; candidates.len()];
    let is_near = |at: &usize| waits[*at].is_none_or(|waits| waits <= NEAR * shortest + 1.0);
    let (mut due, mut open): (Vec<usize>, Vec<usize>) =
        (0..candidates.len()).partition(|at| is_near(at) || candidates[*at].is_of_doctor());
    // The best whole run decides which of the others may still be better.
    let mut best = f64::INFINITY;
    while !due.is_empty() {
        let shown = runner.each(&due, |at| whole(&candidates[*at].changed));
        for (at, shown) in due.iter().zip(shown) {
            let allowed = shown.as_ref().filter(|shown| !shown.is_cut && search.stall_if_allowed(shown).is_some());
            best = allowed.map_or(best, |shown| best.min(waits_of(shown)));
            results[*at] = shown;
        }
        let may_be_better = |at: &usize| waits[*at].is_some_and(|waits| waits <= best) && go_on(0);
        (due, open) = open.into_iter().partition(may_be_better);
    }
    let rest = candidates.into_iter().zip(results).zip(parts);
    rest.filter_map(|((candidate, whole), part)| match (whole, part) {
        (Some(whole), _) => Some((candidate, whole)),
        (None, Some(part)) if waits_of(&part) > best => Some((candidate.extrapolated(), extrapolated(&part))),
        (None, _) => None,
    })
    .collect()
}

fn waits_of(shown: &Shown) -> f64 {
    shown.figures.get(WAITS).copied().unwrap_or(0.0)
}

/// A changed twin whose workload ends after the first part of the time.
fn part_of(changed: &Changed) -> Changed {
    let mut part = changed.clone();
    let Scenario { workload, .. } = &mut part.scenario;
    workload.duration = workload.duration.map(|Time(Nanos(nanos))| Time(Nanos(nanos / PART)));
    part
}

/// The figures of a whole run, from those of its first part.
fn extrapolated(part: &Shown) -> Shown {
    let mut figures: Figures = part.figures.clone();
    for name in [WAITS, WRITTEN, DIRTIED] {
        if let Some(value) = figures.get_mut(name) {
            *value *= PART as f64;
        }
    }
    let parts = vec![part.figures.clone(); crate::shown::PARTS];
    Shown { figures, parts, ..Shown::default() }
}
