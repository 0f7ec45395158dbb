// SPDX-License-Identifier: MIT OR Apache-2.0
//! The pace of a program that writes at one rate whenever it writes. Its bursts begin and end within an interval between two samples. The
//! intervals between the first and the last of a burst are full and show the rate, and the rate shows when the burst begins and ends.

use super::bursts::{BURST_MIN, Burst, FREE};
use super::group::Bin;

/// Fewest full intervals that show a pace.
const FULL_MIN: usize = 2;
/// Least rate of each of them, as a share of the largest one.
const ALIKE: f64 = 0.95;

/// The pace of a program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pace {
    per_second: f64,
}

/// The pace of a program, by the intervals in which it wrote all the time. `None` where these differ, and where another interval has more.
pub(super) fn pace(bins: &[Bin], amount: &impl Fn(&Bin) -> f64) -> Option<Pace> {
    let rate = |bin: &Bin| amount(bin) / bin.length;
    let is_full = |three: &&[Bin]| three.iter().all(|bin| amount(bin) > 0.0) && is_free(&three[1]);
    let full: Vec<&Bin> = bins.windows(3).filter(is_full).map(|three| &three[1]).collect();
    let (least, most) = full
        .iter()
        .fold((f64::INFINITY, 0.0), |(least, most): (f64, f64), bin| (least.min(rate(bin)), most.max(rate(bin))));
    let is_one = full.len() >= FULL_MIN && least >= ALIKE * most;
    let is_large = full.iter().all(|bin| amount(bin) >= BURST_MIN);
    let is_most = || bins.iter().all(|bin| ALIKE * rate(bin) <= most);
    (is_one && is_large && is_most()).then_some(Pace { per_second: most })
}

/// Whether a program was not held up in an interval.
fn is_free(bin: &Bin) -> bool {
    bin.waited < FREE * bin.length
}

impl Pace {
    /// An interval of a burst: it begins later in the first one, and ends earlier in the last one.
    pub(super) fn part(self, burst: Burst, bins: &[Bin], at: usize, amount: &impl Fn(&Bin) -> f64) -> Burst {
        let burst = Burst { lasts: None, ..burst };
        let seconds = burst.amount / self.per_second;
        if !is_free(&bins[at]) || seconds >= ALIKE * bins[at].length {
            return burst;
        }
        let is_active = |at: Option<usize>| at.and_then(|at| bins.get(at)).is_some_and(|bin| amount(bin) > 0.0);
        match (is_active(at.checked_sub(1)), is_active(Some(at + 1))) {
            (true, true) => burst,
            (false, true) => Burst { from: burst.to - seconds, ..burst },
            (_, false) => Burst { lasts: Some(seconds), ..burst },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::bursts::bursts;
    use super::*;

    /// Bytes of each second, in MB, and whether the program is held up in it.
    fn told(seconds: &[(f64, bool)]) -> Vec<(f64, f64, f64, Option<f64>)> {
        let bin = |(at, (megabytes, is_held)): (usize, &(f64, bool))| Bin {
            end: at as f64 + 1.0,
            length: 1.0,
            by_calls: megabytes * 1e6,
            waited: if *is_held { 0.9 } else { 0.0 },
            ..Bin::default()
        };
        let bins: Vec<Bin> = seconds.iter().enumerate().map(bin).collect();
        let round = |value: f64| (value * 1000.0).round() / 1000.0;
        let all = bursts(&bins, |bin| bin.by_calls);
        all.iter().map(|one| (round(one.from), one.to, one.amount / 1e6, one.lasts.map(round))).collect()
    }

    fn free(megabytes: &[f64]) -> Vec<(f64, f64, f64, Option<f64>)> {
        told(&megabytes.iter().map(|one| (*one, false)).collect::<Vec<_>>())
    }

    #[test]
    fn a_paced_burst_begins_and_ends_within_an_interval() {
        let bursts = free(&[0.0, 15.0, 60.0, 60.0, 60.0, 30.0, 0.0, 0.0, 60.0, 60.0, 60.0, 6.0, 0.0]);
        assert_eq!(bursts, [(1.75, 6.0, 225.0, Some(3.75)), (8.0, 12.0, 186.0, Some(3.1))]);
        // A burst of one interval is as fast.
        let short = free(&[60.0, 60.0, 60.0, 60.0, 0.0, 15.0, 0.0]);
        assert_eq!(short, [(0.0, 4.0, 240.0, None), (5.0, 6.0, 15.0, Some(0.25))]);
    }

    #[test]
    fn full_intervals_of_several_rates_or_of_little_show_no_pace() {
        assert_eq!(free(&[0.0, 15.0, 60.0, 50.0, 60.0, 0.0])[0], (1.0, 2.0, 15.0, None), "two rates");
        assert_eq!(free(&[0.0, 60.0, 60.0, 15.0])[1], (3.0, 4.0, 15.0, None), "one full interval");
        assert_eq!(free(&[0.0, 0.3, 1.0, 1.0, 1.0])[0], (1.0, 2.0, 0.3, None), "little");
        assert_eq!(free(&[15.0, 60.0, 60.0, 60.0, 90.0, 0.0])[0], (0.0, 1.0, 15.0, None), "faster in another one");
    }

    #[test]
    fn an_interval_in_which_the_program_is_held_up_shows_no_end() {
        let held = told(&[(60.0, false), (60.0, false), (60.0, false), (20.0, true), (0.0, false)]);
        assert_eq!(held, [(0.0, 3.0, 180.0, None), (3.0, 4.0, 20.0, None)]);
    }
}
