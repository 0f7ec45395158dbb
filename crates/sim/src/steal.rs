// SPDX-License-Identifier: MIT OR Apache-2.0
//! Steal time: the host takes a virtual CPU away in the middle of a call, for milliseconds or tenths of a second. An emulator
//! reports no steal time (`cpu_steal` is 0), so the guest counts it as CPU time of the thread that ran. The CPU time of a
//! recording is therefore a mean: most calls are faster, and a few contain a whole theft. The recorder shows both parts, as each
//! of its samples is the same work. `wake_ups.rs` has the other delay of such a guest, that of an idle CPU.

use floodline_record::units::Nanos;
use floodline_scenario::Random;

/// Fewest samples that show steal time.
const FEWEST: usize = 20;
/// Resolution of a process's CPU time: `USER_HZ` is 100.
const TICK: u64 = 10_000_000;
/// Shortest and longest plausible mean length of a theft.
const PLAUSIBLE: std::ops::RangeInclusive<u64> = 1_000_000..=500_000_000;
/// Largest plausible part of the CPU time, in hundredths: at most 90.
const MOST: u64 = 90;
/// ln 2, in units of 2^-32.
const LN_2: u64 = 2_977_044_472;

/// How often and for how long the host takes a virtual CPU away while a thread runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steal {
    /// Part of the threads' CPU time that is stolen, hundredths: at most 90.
    pub share: u64,
    /// Mean time that the CPU is away. The times are exponentially distributed.
    pub mean: Nanos,
}

impl Steal {
    /// Steal time of a guest by the CPU time of its recorder: the time of each sample of the workload, and the recorder's CPU
    /// time until then. The quarter of the samples that took the least CPU time shows the recorder's work. What the
    /// others take beyond it is stolen, and the variance shows the lengths: for thefts at random moments it is the mean stolen
    /// time of a sample times twice the mean length. Returns nothing if too few samples are left, if the recorder uses
    /// less than a tick for each, or if its CPU time varies by no more than ticks do.
    pub fn of(samples: &[(Nanos, Nanos)]) -> Option<Steal> {
        let gap = |pair: &[(Nanos, Nanos)]| pair[1].0.0.saturating_sub(pair[0].0.0);
        let mut gaps: Vec<u64> = samples.windows(2).map(gap).collect();
        gaps.sort_unstable();
        let period = gaps.get(gaps.len() / 2).copied().filter(|period| *period > 0)?;
        // A sample that came late covers more work than others, or less.
        let is_usual = |pair: &&[(Nanos, Nanos)]| gap(pair).abs_diff(period) <= period / 4;
        let used = |pair: &[(Nanos, Nanos)]| pair[1].1.0.saturating_sub(pair[0].1.0).min(period);
        let mut used: Vec<u64> = samples.windows(2).filter(is_usual).map(used).collect();
        if used.len() < FEWEST {
            return None;
        }
        used.sort_unstable();
        let mean = |of: &[u64]| of.iter().map(|used| u128::from(*used)).sum::<u128>() / of.len().max(1) as u128;
        let (usual, least) = (mean(&used), mean(&used[..used.len() / 4]));
        if usual < u128::from(TICK) {
            return None;
        }
        let squares = used.iter().map(|used| u128::from(*used).abs_diff(usual).pow(2)).sum::<u128>();
        // The difference of two times in whole ticks varies by a sixth of a tick's square.
        let variance = (squares / used.len() as u128).saturating_sub(u128::from(TICK).pow(2) / 6);
        let beyond = usual.saturating_sub(least);
        let length = u64::try_from(variance.checked_div(2 * beyond)?).unwrap_or(u64::MAX);
        let share = u64::try_from(beyond * 100 / usual).unwrap_or(MOST).min(MOST);
        (share > 0 && PLAUSIBLE.contains(&length)).then_some(Steal { share, mean: Nanos(length) })
    }
}

/// The steal time of a run.
#[derive(Debug)]
pub(crate) struct Clock {
    steal: Steal,
    random: Random,
    /// Work of the CPUs until the next theft, nanoseconds.
    until: u64,
}

impl Clock {
    pub(crate) fn new(steal: Steal, mut random: Random) -> Clock {
        let mean = Nanos(steal.mean.0.clamp(*PLAUSIBLE.start(), *PLAUSIBLE.end()));
        let steal = Steal { share: steal.share.clamp(1, MOST), mean };
        let until = exponential(&mut random, between(steal));
        Clock { steal, random, until }
    }

    /// Time that a piece of work takes, of which the mean is known: less than the mean, and the stolen time in between.
    pub(crate) fn stretch(&mut self, mean: u64) -> u64 {
        let mut left = mean.saturating_sub(percent(mean, self.steal.share));
        let mut takes = left;
        while left >= self.until {
            left -= self.until;
            self.until = exponential(&mut self.random, between(self.steal)).max(1);
            takes = takes.saturating_add(exponential(&mut self.random, self.steal.mean.0));
        }
        self.until -= left;
        takes
    }
}

/// Mean work between two thefts.
fn between(steal: Steal) -> u64 {
    (steal.mean.0 / steal.share).saturating_mul(100 - steal.share)
}

fn percent(of: u64, percent: u64) -> u64 {
    u64::try_from(u128::from(of) * u128::from(percent) / 100).unwrap_or(u64::MAX)
}

/// A number from the exponential distribution of this mean, the same on each machine: -ln of a random part of one, as the
/// part is `1 - x` halved some times.
fn exponential(random: &mut Random, mean: u64) -> u64 {
    let number = random.number();
    let halved = u64::from(number.leading_zeros());
    // Between a half and one, in units of 2^-32; so `x` is at most a half.
    let part = number.checked_shl(number.leading_zeros()).unwrap_or(u64::MAX) >> 32;
    let x = (1 << 32) - part;
    let (mut power, mut log) = (1 << 32, halved * LN_2);
    for step in 1..=24 {
        power = (power * x) >> 32;
        log += power / step;
    }
    u64::try_from((u128::from(mean) * u128::from(log)) >> 32).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Samples each half second of a recorder that works for `work` ms each time, on a CPU that is stolen.
    fn samples(work: u64, steal: Option<Steal>, count: u64) -> Vec<(Nanos, Nanos)> {
        let mut clock = steal.map(|steal| Clock::new(steal, Random::new(7)));
        let mut cpu = 0;
        let sample = |number: u64| {
            cpu += clock.as_mut().map_or(work * MS, |clock| clock.stretch(work * MS));
            (Nanos(500 * MS * number), Nanos(cpu / TICK * TICK))
        };
        (0..count).map(sample).collect()
    }

    #[test]
    fn the_recorder_shows_how_its_cpu_is_stolen() {
        let check = |share, mean| {
            let steal = Steal { share, mean: Nanos(mean * MS) };
            let found = Steal::of(&samples(50, Some(steal), 2_000));
            let is_near = |found: u64, told: u64| found * 10 >= told * 6 && found * 10 <= told * 14;
            let both = found.is_some_and(|found| is_near(found.share, share) && is_near(found.mean.0, mean * MS));
            assert!(both, "{share} % of {mean} ms: {found:?}");
        };
        check(50, 12);
        check(40, 30);
        check(60, 20);
        assert_eq!(Steal::of(&samples(50, None, 100)), None, "it takes the same time each time");
        assert_eq!(Steal::of(&samples(3, None, 100)), None, "less than a tick");
        let steal = Steal { share: 50, mean: Nanos(20 * MS) };
        assert_eq!(Steal::of(&samples(50, Some(steal), 15)), None, "too few");
        // A sample that came late says nothing, even with the CPU time of hours.
        let mut late = samples(50, Some(steal), 200);
        for (time, cpu) in &mut late[100..] {
            (time.0, cpu.0) = (time.0 + 3_000 * MS, cpu.0 + 9_000_000 * MS);
        }
        assert!(Steal::of(&late).is_some_and(|found| found.mean < Nanos(40 * MS)));
        let hostile = [(Nanos(u64::MAX), Nanos(0)), (Nanos(0), Nanos(u64::MAX))].repeat(50);
        assert_eq!((Steal::of(&hostile), Steal::of(&[])), (None, None));
    }

    #[test]
    fn most_work_is_faster_than_its_mean_and_some_contains_a_theft() {
        let mut clock = Clock::new(Steal { share: 50, mean: Nanos(20 * MS) }, Random::new(1));
        let mut took: Vec<u64> = (0..20_000).map(|_| clock.stretch(2 * MS)).collect();
        let mean = took.iter().sum::<u64>() / 20_000;
        took.sort_unstable();
        assert!((1_800_000..2_200_000).contains(&mean), "{mean}");
        assert_eq!(took[10_000], MS, "half of the mean");
        // One in twenty meets a theft, so one in a hundred meets one that only a fifth of them exceed: 1.6 times the mean.
        assert!((29 * MS..38 * MS).contains(&took[19_800]), "{}", took[19_800]);
    }

    #[test]
    fn the_lengths_are_exponential() {
        let mut random = Random::new(3);
        let mut drawn: Vec<u64> = (0..40_000).map(|_| exponential(&mut random, 1_000_000)).collect();
        drawn.sort_unstable();
        for (part, expect) in [(2, 693_147), (4, 287_682), (10, 105_361)] {
            let quantile = drawn[drawn.len() / part];
            assert!(quantile.abs_diff(expect) < 15_000, "{part}: {quantile}");
        }
        let longest = drawn[drawn.len() - 40];
        assert!(longest.abs_diff(6_907_755) < 500_000, "{longest}");
        assert_eq!(exponential(&mut random, 0), 0);
    }
}
