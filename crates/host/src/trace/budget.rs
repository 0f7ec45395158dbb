// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the tracer may cost, and what detail it gives up before it costs more: files first. A pure decision from
//! what an interval cost; measuring is in `run_time`, obeying in `bpf/bytes.bpf.c`.

use floodline_record::units::Nanos;

/// What is given up, level by level: mirrors `SHED_FILES` and its like in `bpf/bytes.bpf.c`. Each level gives up
/// those below it too.
const LEVELS: &[&str] = &["names of files", "bytes dirtied again", "bytes made dirty"];

/// Intervals of little cost after which a level is taken back. Doubled every time that this was too soon.
const CALM: u32 = 30;
const CALM_MAX: u32 = 960;
/// As long as nothing happens, one interval of so many is measured.
const MEASURED_OF: u32 = 8;

/// CPU time that the tracer may take, as a share of one core.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget(pub f64);

impl Budget {
    /// Three hundredths of one core, or one of all.
    pub fn of_cores(cores: usize) -> Budget {
        Budget((cores as f64 / 100.0).max(0.03))
    }
}

/// How much is given up at the moment.
#[derive(Debug)]
pub(super) struct Shedding {
    budget: Budget,
    level: u32,
    /// Intervals since the level changed, or since one cost much.
    calm: u32,
    /// Of so many the level is taken back.
    wanted: u32,
    /// Intervals until one is measured.
    unmeasured: u32,
}

impl Shedding {
    pub(super) fn new(budget: Budget) -> Shedding {
        Shedding { budget, level: 0, calm: 0, wanted: CALM, unmeasured: 0 }
    }

    /// The level, for the programs.
    pub(super) fn level(&self) -> u32 {
        self.level
    }

    /// What is given up, in words.
    pub(super) fn given_up(&self) -> Option<String> {
        let levels = LEVELS.get(..self.level as usize)?;
        (!levels.is_empty()).then(|| levels.join(", "))
    }

    /// Whether the interval that begins is to be measured.
    pub(super) fn is_measured(&self) -> bool {
        self.unmeasured == 0
    }

    /// Takes what an interval cost: the programs, where they were measured, and reading their tables.
    pub(super) fn spent(&mut self, programs: Option<Nanos>, reading: Nanos, interval: Nanos) {
        self.unmeasured = self.unmeasured.checked_sub(1).unwrap_or(MEASURED_OF - 1);
        let share = (programs.unwrap_or(Nanos(0)).0 + reading.0) as f64 / interval.0.max(1) as f64;
        let is_most = self.level as usize == LEVELS.len();
        if share > self.budget.0 / 4.0 {
            // Near the budget each interval is looked at.
            self.unmeasured = 0;
            self.calm = 0;
        } else {
            self.calm += 1;
        }
        // Before it is exceeded.
        if share > self.budget.0 * 0.75 && !is_most {
            if self.level > 0 || self.wanted > CALM {
                self.wanted = (self.wanted * 2).min(CALM_MAX);
            }
            self.level += 1;
        } else if self.level > 0 && self.calm >= self.wanted {
            self.level -= 1;
            self.calm = 0;
            // The next time that much is spent, this was too soon.
            self.wanted = (self.wanted * 2).min(CALM_MAX);
            self.unmeasured = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Microseconds of the programs in each of these seconds, and the level after each.
    fn check(steps: &[(u64, u32)]) {
        let mut shedding = Shedding::new(Budget(0.03));
        for (at, (spent_us, level)) in steps.iter().enumerate() {
            shedding.spent(Some(Nanos(spent_us * 1000)), Nanos(0), Nanos::SECOND);
            assert_eq!(shedding.level(), *level, "step {at}");
        }
    }

    #[test]
    fn detail_is_given_up_before_the_budget_is_exceeded_files_first() {
        check(&[(1_000, 0), (22_000, 0), (23_000, 1), (8_000, 1), (40_000, 2), (40_000, 3), (40_000, 3)]);
        let mut shedding = Shedding::new(Budget(0.0));
        assert_eq!(shedding.given_up(), None);
        let mut given_up = || {
            shedding.spent(None, Nanos(1), Nanos::SECOND);
            shedding.given_up().unwrap()
        };
        assert_eq!(given_up(), "names of files");
        assert_eq!(given_up(), "names of files, bytes dirtied again");
        assert_eq!(given_up(), "names of files, bytes dirtied again, bytes made dirty");
    }

    #[test]
    fn a_calm_time_brings_detail_back_one_level_at_a_time() {
        let mut steps = vec![(30_000, 1), (30_000, 2)];
        // The second level was needed at once, so that the first wait is longer.
        steps.extend([(100, 2)].repeat(59));
        steps.push((100, 1));
        steps.extend([(100, 1)].repeat(119));
        steps.extend([(100, 0), (100, 0)]);
        check(&steps);
    }

    #[test]
    fn without_events_one_interval_in_eight_is_measured_and_each_one_near_the_budget() {
        let mut shedding = Shedding::new(Budget(0.03));
        let mut measured = |spent: u64| {
            let is_measured = shedding.is_measured();
            shedding.spent(is_measured.then_some(Nanos(spent)), Nanos(0), Nanos::SECOND);
            is_measured
        };
        let quiet: Vec<bool> = (0..17).map(|_| measured(1000)).collect();
        assert_eq!(quiet.iter().filter(|one| **one).count(), 3, "{quiet:?}");
        (0..7).for_each(|_| assert!(!measured(1000)));
        assert!((0..9).all(|_| measured(10_000_000)));
    }

    #[test]
    fn large_machines_allow_for_more() {
        assert_eq!((Budget::of_cores(2), Budget::of_cores(64)), (Budget(0.03), Budget(0.64)));
    }
}
