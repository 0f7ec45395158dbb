// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tracer's CPU budget, and the detail that it drops before it exceeds the budget: files first. A pure decision
//! from the cost of an interval. The programs time some of their runs themselves (`RUN` in `bpf/floodline.bpf.h`), and
//! apply the decision in `bpf/bytes.bpf.c`. The kernel's own statistics (`BPF_ENABLE_STATS`) are not used: they cover
//! all programs of the host, need CAP_SYS_ADMIN, and patch the kernel's text.

use floodline_record::units::Nanos;

/// Detail that is dropped, by level: mirrors `SHED_FILES` and its like in `bpf/bytes.bpf.c`. Each level also drops the
/// detail of the levels below it.
const LEVELS: &[&str] = &["names of files", "bytes dirtied again", "bytes made dirty"];

/// Cheap intervals after which a level is restored. Doubled every time that this was too soon.
const CALM: u32 = 30;
const CALM_MAX: u32 = 960;
/// Cost of entering and leaving a program, nanoseconds: the clock within a program does not see it. An empty program on
/// `writeback_dirty_folio` takes 20 to 60 ns (`cargo bench -p floodline-host --bench trace`).
const ENTER_NS: u64 = 40;

/// Runs of programs since they were loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Runs {
    /// Number of runs.
    pub(super) runs: u64,
    /// Number of timed runs, one in `TIMED_OF`.
    pub(super) timed: u64,
    /// Sum of the times of these runs, nanoseconds.
    pub(super) timed_ns: u64,
}

impl Runs {
    /// Returns the sum with the runs of another part.
    pub(super) fn and(self, other: Runs) -> Runs {
        Runs {
            runs: self.runs.saturating_add(other.runs),
            timed: self.timed.saturating_add(other.timed),
            timed_ns: self.timed_ns.saturating_add(other.timed_ns),
        }
    }

    /// Returns the runs since an earlier reading.
    fn since(self, before: Runs) -> Runs {
        Runs {
            runs: self.runs.saturating_sub(before.runs),
            timed: self.timed.saturating_sub(before.timed),
            timed_ns: self.timed_ns.saturating_sub(before.timed_ns),
        }
    }

    /// Returns the time of all runs since `before`, estimated from the timed ones. If none was timed in this interval,
    /// the mean of all earlier timed runs stands for them.
    pub(super) fn cost(self, before: Runs) -> Nanos {
        let now = self.since(before);
        let of = if now.timed > 0 { now } else { self };
        let mean = of.timed_ns.checked_div(of.timed).unwrap_or(0);
        Nanos(now.runs.saturating_mul(mean.saturating_add(ENTER_NS)))
    }
}

/// CPU time that the tracer may take, as a share of one core.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget(pub f64);

impl Budget {
    /// Returns the larger of 3 % of one core and 1 % of all cores.
    pub fn of_cores(cores: usize) -> Budget {
        Budget((cores as f64 / 100.0).max(0.03))
    }
}

/// Current level of dropped detail.
#[derive(Debug)]
pub(super) struct Shedding {
    budget: Budget,
    level: u32,
    /// Intervals since the level was lowered, or since an expensive interval.
    calm: u32,
    /// Number of such intervals after which the level is lowered.
    wanted: u32,
}

impl Shedding {
    pub(super) fn new(budget: Budget) -> Shedding {
        Shedding { budget, level: 0, calm: 0, wanted: CALM }
    }

    /// Returns the level, for the programs.
    pub(super) fn level(&self) -> u32 {
        self.level
    }

    /// Describes the dropped detail.
    pub(super) fn given_up(&self) -> Option<String> {
        let levels = LEVELS.get(..self.level as usize)?;
        (!levels.is_empty()).then(|| levels.join(", "))
    }

    /// Adjusts the level to the cost of an interval: the programs, and reading their tables.
    pub(super) fn spent(&mut self, programs: Nanos, reading: Nanos, interval: Nanos) {
        let share = programs.0.saturating_add(reading.0) as f64 / interval.0.max(1) as f64;
        let is_most = self.level as usize == LEVELS.len();
        if share > self.budget.0 / 4.0 {
            self.calm = 0;
        } else {
            self.calm += 1;
        }
        // Drop detail before the budget is exceeded.
        if share > self.budget.0 * 0.75 && !is_most {
            if self.level > 0 || self.wanted > CALM {
                self.wanted = (self.wanted * 2).min(CALM_MAX);
            }
            self.level += 1;
        } else if self.level > 0 && self.calm >= self.wanted {
            self.level -= 1;
            self.calm = 0;
            // If the cost rises again, this was too soon.
            self.wanted = (self.wanted * 2).min(CALM_MAX);
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
            shedding.spent(Nanos(spent_us * 1000), Nanos(0), Nanos::SECOND);
            assert_eq!(shedding.level(), *level, "step {at}");
        }
    }

    #[test]
    fn detail_is_given_up_before_the_budget_is_exceeded_files_first() {
        check(&[(1_000, 0), (22_000, 0), (23_000, 1), (8_000, 1), (40_000, 2), (40_000, 3), (40_000, 3)]);
        let mut shedding = Shedding::new(Budget(0.0));
        assert_eq!(shedding.given_up(), None);
        let mut given_up = || {
            shedding.spent(Nanos(0), Nanos(1), Nanos::SECOND);
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
    fn runs_that_were_timed_stand_for_all() {
        let runs = |runs, timed, timed_ns| Runs { runs, timed, timed_ns };
        let before = runs(6400, 100, 20_000);
        let check = |now: Runs, expect| assert_eq!(now.cost(before), Nanos(expect));
        // Ten more were timed and took 300 ns each.
        check(runs(7040, 110, 23_000), 640 * (300 + ENTER_NS));
        // None was: those before took 200 ns.
        check(runs(6410, 100, 20_000), 10 * (200 + ENTER_NS));
        check(before, 0);
        assert_eq!(runs(5, 0, 0).cost(Runs::default()), Nanos(5 * ENTER_NS));
    }

    #[test]
    fn large_machines_allow_for_more() {
        assert_eq!((Budget::of_cores(2), Budget::of_cores(64)), (Budget(0.03), Budget(0.64)));
    }
}
