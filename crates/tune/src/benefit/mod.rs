// SPDX-License-Identifier: MIT OR Apache-2.0
//! Did a change help? Two recordings are cut into batches of ten seconds. Batches of like load are compared, so that a
//! quiet hour does not pass for a cure. A stationary block bootstrap gives the error of the ratio, which respects that
//! stalls come in bursts. The result may be looked at early: each look has a part of the error to spend. Pure.

mod bootstrap;
mod quantile;
mod series;
pub mod switchback;
#[cfg(test)]
mod tests;

pub use series::{Interval, intervals};

use bootstrap::{freedom, standard_error};
use quantile::normal;

/// Length of a batch, in seconds. It is longer than most stalls.
const BATCH_S: f64 = 10.0;
/// Fewest batches on each side.
const BATCHES_MIN: usize = 10;
/// Fewest batches of a stratum on each side.
const STRATUM_MIN: usize = 3;
/// Loads whose ratio is below this are alike. A stall itself makes the load of its batch smaller by some percent.
const ALIKE: f64 = 1.25;
/// Share of batches that must find others of like load.
const MATCHED_MIN: f64 = 0.5;
/// Probability of a wrong verdict where nothing changed, over all looks.
const ALPHA: f64 = 0.05;
/// Length of the recording at the first look, in seconds. Each look has twice the length of the one before.
const FIRST_LOOK_S: f64 = 300.0;
/// A recording that lacks less than this part of a look counts as one.
const NEARLY: f64 = 0.97;

/// Answer to the question whether a change helped.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// Stalls became fewer.
    Helped,
    /// Any difference is smaller than the asked one.
    NoDifference,
    /// Stalls became more.
    Harmed,
    /// The recordings do not answer it.
    NotEnough {
        /// Why not.
        why: Why,
        /// Further minutes that the recording after the change needs; `None` if more time does not help.
        minutes: Option<f64>,
    },
}

/// Why recordings do not answer the question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The recording before the change is too short. A longer one after it does not mend that.
    ShortBefore,
    /// The recording after the change, or the trial, is too short.
    Short,
    /// Nothing was written on one side: silence is not success.
    Silent,
    /// The loads before and after are too different.
    OtherLoad,
    /// Tasks did not stall on either side.
    NoStalls,
    /// The stalls vary too much for this length.
    Varying,
}

/// Verdict with its figures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// Stall seconds per hour of writing before, at like load.
    pub before: Option<f64>,
    /// Stall seconds per hour of writing after, at like load.
    pub after: Option<f64>,
    /// Ratio of after to before: lower end, estimate, upper end. The interval holds at every look at once.
    pub ratio: Option<(f64, f64, f64)>,
    /// Share of batches that had others of like load.
    pub matched: f64,
}

/// Ten seconds, or a little more.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Batch {
    /// Bytes dirtied per second.
    load: f64,
    /// Share of time with a stall.
    stall: f64,
}

/// Which batches are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loads {
    /// Those of like load.
    Alike,
    /// All: for a change that itself makes the writes fewer, which then are no sign of a quiet hour.
    Any,
}

/// Compares two series. `difference` is the largest one that counts as none: 0.2 for 20 %.
pub fn judge(before: &[Interval], after: &[Interval], loads: Loads, difference: f64) -> Judgement {
    let empty = |why, minutes| Judgement {
        verdict: Verdict::NotEnough { why, minutes },
        before: None,
        after: None,
        ratio: None,
        matched: 0.0,
    };
    let before = batches(before, f64::INFINITY);
    if before.len() < BATCHES_MIN {
        return empty(Why::ShortBefore, None);
    }
    // What lies behind the last look belongs to the next one.
    let length: f64 = after.iter().map(|interval| interval.seconds).sum();
    let Some((look, look_s)) = look(length) else {
        return empty(Why::Short, Some((FIRST_LOOK_S - length) / 60.0));
    };
    let next_minutes = (look_s * 2.0 - length).max(60.0) / 60.0;
    let after = batches(after, look_s);
    let is_silent = |batches: &[Batch]| batches.iter().all(|batch| batch.load <= 0.0);
    if is_silent(&before) || is_silent(&after) {
        return empty(Why::Silent, Some(next_minutes));
    }
    let strata = match loads {
        Loads::Alike => Strata::of(&before, &after),
        Loads::Any => Strata { bounds: Vec::new() },
    };
    let Some(rates) = strata.rates(&before, &after) else { return empty(Why::OtherLoad, Some(next_minutes)) };
    let matched = strata.matched(&before, &after);
    if matched < MATCHED_MIN {
        return Judgement { matched, ..empty(Why::OtherLoad, Some(next_minutes)) };
    }
    if rates.0 + rates.1 <= 0.0 {
        return Judgement { matched, ..empty(Why::NoStalls, Some(next_minutes)) };
    }
    // One more batch with the mean of both sides: without it, a few seconds without a stall would prove everything.
    let prior = (rates.0 + rates.1) / 2.0;
    let least = before.len().min(after.len()) as f64;
    let estimate = |(before, after): (f64, f64)| ((after * least + prior) / (before * least + prior)).ln();
    let log = estimate(rates);
    let stalls = |batches: &[Batch]| batches.iter().map(|batch| batch.stall).collect::<Vec<_>>();
    let memory = bootstrap::memory([&stalls(&before), &stalls(&after)]);
    let error = standard_error(&before, &after, memory, |before, after| strata.rates(before, after).map(estimate));
    let alpha = ALPHA * share_of(look);
    let reach = quantile::student(normal(1.0 - alpha / 2.0), freedom(least, memory)) * error;
    let (low, high, bound) = (log - reach, log + reach, difference.ln_1p());
    let verdict = if high < 0.0 {
        Verdict::Helped
    } else if low > 0.0 {
        Verdict::Harmed
    } else if low > -bound && high < bound {
        Verdict::NoDifference
    } else {
        // The error falls with the root of the length.
        let wanted = if log.abs() > bound { log.abs() } else { (bound - log.abs()).max(bound / 4.0) };
        let minutes = length / 60.0 * ((reach / wanted).powi(2) - 1.0);
        Verdict::NotEnough { why: Why::Varying, minutes: Some(minutes.max(next_minutes)) }
    };
    let hourly = |share: f64| Some(share * 3600.0);
    let ratio = Some((low.exp(), log.exp(), high.exp()));
    Judgement { verdict, before: hourly(rates.0), after: hourly(rates.1), ratio, matched }
}

/// Part of the error that a look may spend. Most goes to the look at ten minutes, the usual length. The sum over all
/// looks is 1.
fn share_of(look: u32) -> f64 {
    match look {
        0 => 0.2,
        look => 0.4 * 0.5_f64.powi(i32::try_from(look - 1).unwrap_or(i32::MAX)),
    }
}

/// Number of the last look that a length reaches, from 0, and its length.
fn look(length: f64) -> Option<(u32, f64)> {
    let of = |look: u32| FIRST_LOOK_S * f64::from(1_u32 << look);
    (0..24).take_while(|look| length >= of(*look) * NEARLY).last().map(|look| (look, of(look)))
}

/// Batches of a series, of its first seconds.
fn batches(intervals: &[Interval], seconds: f64) -> Vec<Batch> {
    let mut batches = Vec::new();
    let (mut length, mut load, mut stall, mut total) = (0.0, 0.0, 0.0, 0.0);
    for interval in intervals {
        total += interval.seconds;
        if total > seconds * (2.0 - NEARLY) {
            break;
        }
        length += interval.seconds;
        load += interval.dirtied_bytes;
        stall += interval.stall_s;
        if length >= BATCH_S * NEARLY {
            batches.push(Batch { load: load / length, stall: (stall / length).min(1.0) });
            (length, load, stall) = (0.0, 0.0, 0.0);
        }
    }
    batches
}

/// Thirds of the load over both sides, as far as they differ, or one stratum for all.
struct Strata {
    bounds: Vec<f64>,
}

impl Strata {
    const COUNT: usize = 3;

    fn of(before: &[Batch], after: &[Batch]) -> Strata {
        let mut loads: Vec<f64> =
            before.iter().chain(after).map(|batch| batch.load).filter(|load| *load > 0.0).collect();
        loads.sort_by(f64::total_cmp);
        let end = |part: usize| loads.len() * part / Strata::COUNT;
        let mean = |loads: &[f64]| loads.iter().sum::<f64>() / loads.len().max(1) as f64;
        let (mut bounds, mut from) = (Vec::new(), 0);
        for part in 1..Strata::COUNT {
            let below = loads.get(from..end(part)).unwrap_or_default();
            let above = loads.get(end(part)..end(part + 1)).unwrap_or_default();
            if let (Some(bound), true) = (above.first(), mean(above) >= ALIKE * mean(below)) {
                bounds.push(*bound);
                from = end(part);
            }
        }
        Strata { bounds }
    }

    /// Stratum of a batch; `None` if nothing was written in it.
    fn place(&self, batch: &Batch) -> Option<usize> {
        (batch.load > 0.0).then(|| self.bounds.iter().filter(|bound| batch.load >= **bound).count())
    }

    /// Count and sum of stalls per stratum.
    fn sums(&self, batches: &[Batch]) -> [(usize, f64); Strata::COUNT] {
        let mut sums = [(0, 0.0); Strata::COUNT];
        for batch in batches {
            if let Some(sum) = self.place(batch).and_then(|at| sums.get_mut(at)) {
                sum.0 += 1;
                sum.1 += batch.stall;
            }
        }
        sums
    }

    /// Mean share of stalls before and after, over strata that both have, weighted alike. `None` if they share none.
    fn rates(&self, before: &[Batch], after: &[Batch]) -> Option<(f64, f64)> {
        let (mut weights, mut rates) = (0.0, (0.0, 0.0));
        for (before, after) in self.sums(before).into_iter().zip(self.sums(after)) {
            let count = before.0.min(after.0);
            if count >= STRATUM_MIN {
                let weight = count as f64;
                weights += weight;
                rates.0 += weight * before.1 / before.0 as f64;
                rates.1 += weight * after.1 / after.0 as f64;
            }
        }
        (weights > 0.0).then(|| (rates.0 / weights, rates.1 / weights))
    }

    /// Share of the batches that found others of like load.
    fn matched(&self, before: &[Batch], after: &[Batch]) -> f64 {
        let pairs = self.sums(before).into_iter().zip(self.sums(after));
        let counts = pairs.map(|(before, after)| before.0.min(after.0)).filter(|count| *count >= STRATUM_MIN);
        counts.sum::<usize>() as f64 / before.len().min(after.len()).max(1) as f64
    }
}
