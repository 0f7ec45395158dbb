// SPDX-License-Identifier: MIT OR Apache-2.0
//! Did a change help, from blocks in which it was made and undone by turns on one host? A block has four periods, ABBA
//! or BAAB, and a coin decides which: what drifts evenly over a block is on both sides alike. Under the hypothesis that
//! nothing changed, each block's difference has either sign with equal probability. So the p-value is exact: the part of
//! all 2^n signs whose sum is as far from zero. It needs no assumption about the distribution of stalls. Pure.

use super::{ALPHA, Interval, Verdict, Why};

/// Fewest blocks: with five, the smallest p-value is 2 of 32, which is above 5 %.
pub const BLOCKS_MIN: usize = 6;
/// Most blocks: all signs of them are gone through.
pub const BLOCKS_MAX: usize = 16;
/// Stall that both sides get besides, in seconds of the mean: without it, a side without a stall would be infinitely good.
const PRIOR_S: f64 = 10.0;

/// What was seen in one block.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Block {
    /// While the old values were in force.
    pub without: Vec<Interval>,
    /// While the new values were in force.
    pub with: Vec<Interval>,
}

/// Verdict with its figures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// The verdict.
    pub verdict: Verdict,
    /// Stall seconds per hour of writing with the old values.
    pub without: Option<f64>,
    /// Stall seconds per hour of writing with the new values.
    pub with: Option<f64>,
    /// Ratio of new to old: lower end, estimate, upper end, at 95 %.
    pub ratio: Option<(f64, f64, f64)>,
    /// Two-sided p-value.
    pub p: Option<f64>,
    /// Blocks that had writing on both sides.
    pub blocks: usize,
}

/// Seconds of stall and of writing.
type Sums = (f64, f64);

fn sums(intervals: &[Interval]) -> Sums {
    let writing = intervals.iter().filter(|interval| interval.dirtied_bytes > 0.0);
    writing.fold((0.0, 0.0), |(stall, time), interval| (stall + interval.stall_s, time + interval.seconds))
}

/// Judges blocks of this length in seconds. `difference` is the largest one that counts as none: 0.2 for 20 %.
pub fn judge(blocks: &[Block], block_s: f64, difference: f64) -> Outcome {
    let sides: Vec<_> = blocks.iter().map(|block| (sums(&block.without), sums(&block.with))).collect();
    let sides: Vec<_> = sides.into_iter().filter(|(without, with)| without.1 > 0.0 && with.1 > 0.0).collect();
    let empty = |why, more: usize| Outcome {
        verdict: Verdict::NotEnough { why, minutes: Some(more.max(1) as f64 * block_s / 60.0) },
        without: None,
        with: None,
        ratio: None,
        p: None,
        blocks: sides.len(),
    };
    if sides.len() < BLOCKS_MIN {
        let why = if blocks.len() < BLOCKS_MIN { Why::Short } else { Why::Silent };
        return empty(why, BLOCKS_MIN - sides.len());
    }
    let (mut without, mut with) = ((0.0, 0.0), (0.0, 0.0));
    for (one, other) in &sides {
        without = (without.0 + one.0, without.1 + one.1);
        with = (with.0 + other.0, with.1 + other.1);
    }
    let mean = (without.0 + with.0) / (without.1 + with.1);
    if mean <= 0.0 {
        return empty(Why::NoStalls, sides.len());
    }
    let rate = |(stall, time): Sums| {
        let prior = PRIOR_S.min(time / 4.0);
        (stall + mean * prior) / (time + prior)
    };
    let logs: Vec<f64> = sides.iter().map(|(without, with)| (rate(*with) / rate(*without)).ln()).collect();
    let count = logs.len() as f64;
    let log = logs.iter().sum::<f64>() / count;
    let p = two_sided(&logs);
    let (low, high) = (end(&logs, log, -1.0), end(&logs, log, 1.0));
    let bound = difference.ln_1p();
    let verdict = match () {
        () if p <= ALPHA && log < 0.0 => Verdict::Helped,
        () if p <= ALPHA => Verdict::Harmed,
        // Two tests, each on its own side: the larger of both p-values counts.
        () if less(&logs, bound) <= ALPHA && less(&logs.iter().map(|log| -log).collect::<Vec<_>>(), bound) <= ALPHA => {
            Verdict::NoDifference
        }
        () => {
            let spread = (logs.iter().map(|one| (one - log).powi(2)).sum::<f64>() / (count - 1.0)).sqrt();
            let wanted = if log.abs() > bound { log.abs() } else { (bound - log.abs()).max(bound / 4.0) };
            let needed = (2.5 * spread / wanted).powi(2).max(count + 1.0);
            Verdict::NotEnough { why: Why::Varying, minutes: Some((needed - count).ceil() * block_s / 60.0) }
        }
    };
    let hourly = |(stall, time): Sums| Some(stall / time * 3600.0);
    Outcome {
        verdict,
        without: hourly(without),
        with: hourly(with),
        ratio: Some((low.exp(), log.exp(), high.exp())),
        p: Some(p),
        blocks: logs.len(),
    }
}

/// Part of all signs whose sum counts against the one that was found. What differs by the last of three arguments only
/// differs by the order of the additions, and is equal.
fn part(values: &[f64], counts: impl Fn(f64, f64, f64) -> bool) -> f64 {
    let grain = 1e-9 * values.iter().map(|value| value.abs()).sum::<f64>();
    let found = values.iter().sum::<f64>();
    let all = 1_u32 << values.len();
    let sum = |signs: u32| {
        let signed = values.iter().enumerate().map(|(at, value)| if signs >> at & 1 == 1 { -value } else { *value });
        signed.sum::<f64>()
    };
    (0..all).filter(|signs| counts(sum(*signs), found, grain)).count() as f64 / f64::from(all)
}

/// Two-sided p-value against the hypothesis that the true value is 0.
fn two_sided(values: &[f64]) -> f64 {
    part(values, |sum, found, grain| sum.abs() >= found.abs() - grain)
}

/// p-value against the hypothesis that the true value is `bound` or more.
fn less(values: &[f64], bound: f64) -> f64 {
    let shifted: Vec<f64> = values.iter().map(|value| bound - value).collect();
    part(&shifted, |sum, found, grain| sum >= found - grain)
}

/// End of the 95 % interval on one side: the nearest shift that the test refuses.
fn end(values: &[f64], mean: f64, side: f64) -> f64 {
    let reach = values.iter().map(|value| (value - mean).abs()).fold(0.0, f64::max).max(1e-9);
    let is_refused = |shift: f64| {
        let shifted: Vec<f64> = values.iter().map(|value| value - shift).collect();
        two_sided(&shifted) <= ALPHA
    };
    let (mut inside, mut outside) = (0.0, reach * 2.0);
    for _ in 0..24 {
        let middle = (inside + outside) / 2.0;
        if is_refused(mean + side * middle) { outside = middle } else { inside = middle }
    }
    mean + side * outside
}

#[cfg(test)]
mod tests {
    use super::super::tests::{LOAD, LONG, RUNS, SHORT, host_with};
    use super::*;

    fn check(values: &[f64], expect: f64) {
        let found = two_sided(values);
        assert!((found - expect).abs() < 1e-12, "{values:?}: {found}");
    }

    #[test]
    fn the_p_value_is_the_part_of_all_signs() {
        check(&[1.0; 6], 2.0 / 64.0);
        check(&[-1.0; 6], 2.0 / 64.0);
        check(&[1.0, 1.0, 1.0, 1.0, 1.0, -0.5], 4.0 / 64.0);
        check(&[1.0, -1.0, 1.0, -1.0, 1.0, -1.0], 1.0);
        check(&[0.0; 6], 1.0);
        assert!((less(&[0.0; 6], 0.2) - 1.0 / 64.0).abs() < 1e-12);
        assert!((less(&[0.3; 6], 0.2) - 1.0).abs() < 1e-12);
    }

    /// A host for one trial of blocks of ten minutes whose stalls have this share without and with a change. The stalls of
    /// both sides come from one host, so that a burst goes on over a switch. Their level drifts to the double.
    fn trial(memory: f64, seed: u64, blocks: usize, without: f64, with: f64) -> Vec<Block> {
        let host = host_with(memory, seed, blocks * 10, 1.0, LOAD);
        // The coin of a trial: a multiplier whose upper bits are as good as random.
        let coin = (seed + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        let period = |block: usize, quarter: usize| {
            let is_new = (quarter == 1 || quarter == 2) != (coin >> block & 1 == 1);
            let start = block * 600 + quarter * 150;
            let share = if is_new { with } else { without };
            let drift = |second: usize| 1.0 + second as f64 / (blocks * 600) as f64;
            let of = |(at, interval): (usize, &Interval)| {
                let stall_s = (interval.stall_s * share * drift(start + at)).min(1.0);
                Interval { stall_s, ..*interval }
            };
            // The first seconds after a switch are left out.
            (is_new, host[start..start + 150].iter().enumerate().skip(30).map(of).collect::<Vec<_>>())
        };
        (0..blocks)
            .map(|block| {
                let mut seen = Block::default();
                for (is_new, intervals) in (0..4).map(|quarter| period(block, quarter)) {
                    if is_new { &mut seen.with } else { &mut seen.without }.extend(intervals);
                }
                seen
            })
            .collect()
    }

    fn count(memory: f64, with: f64, verdict: Verdict) -> u64 {
        let judged = |seed: &u64| judge(&trial(memory, *seed, 6, 0.2, with), 600.0, 0.2).verdict == verdict;
        (0..RUNS).filter(judged).count() as u64
    }

    #[test]
    fn where_nothing_changed_a_twentieth_is_judged_at_most() {
        for memory in [SHORT, LONG] {
            let wrong = count(memory, 0.2, Verdict::Helped) + count(memory, 0.2, Verdict::Harmed);
            assert!(wrong <= RUNS / 20, "{memory}: {wrong} of {RUNS}");
        }
    }

    #[test]
    fn half_the_stalls_are_found_by_six_blocks_of_ten_minutes() {
        let helped = count(SHORT, 0.1, Verdict::Helped);
        assert!(helped >= RUNS * 9 / 10, "{helped} of {RUNS}");
        let harmed = count(SHORT, 0.4, Verdict::Harmed);
        assert!(harmed >= RUNS * 9 / 10, "{harmed} of {RUNS}");
    }

    #[test]
    fn silence_is_never_success() {
        let check = |blocks: &[Block], expect: Why| {
            let verdict = judge(blocks, 600.0, 0.2).verdict;
            assert!(
                matches!(verdict, Verdict::NotEnough { why, minutes: Some(minutes) } if why == expect && minutes > 0.0),
                "{verdict:?}"
            );
        };
        let busy = trial(SHORT, 1, 6, 0.2, 0.1);
        check(&busy[..5], Why::Short);
        check(&[], Why::Short);
        check(&trial(SHORT, 1, 6, 0.0, 0.0), Why::NoStalls);
        let mut silent = busy;
        for interval in &mut silent[3].with {
            interval.dirtied_bytes = 0.0;
        }
        check(&silent, Why::Silent);
    }

    #[test]
    fn the_interval_holds_the_estimate_and_a_long_trial_of_nothing_ends() {
        let outcome = judge(&trial(SHORT, 4, 16, 0.2, 0.2), 600.0, 0.4);
        let (low, ratio, high) = outcome.ratio.unwrap();
        assert!(low < ratio && ratio < high, "{outcome:?}");
        assert_eq!(outcome.verdict, Verdict::NoDifference, "{outcome:?}");
    }
}
