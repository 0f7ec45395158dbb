// SPDX-License-Identifier: MIT OR Apache-2.0
//! Completion proportions: a wb's part of the pages that finished writeback in a domain, halved every
//! 3 s of activity. The counters are per CPU: a wb that completes a few pages now and then seems to complete
//! none, and has no share, or keeps what is left of many. Mirrors lib/flex_proportions.c and wb_domain_writeout_add of
//! mm/page-writeback.c.

use super::algorithm::Algorithm;
use super::constants::{Build, FRAC};
use super::percpu_counter::{Cpu, PercpuCounter};

/// Completions of a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FpropGlobal {
    /// Decayed count of pages; starts at 1.
    pub events: PercpuCounter,
    /// Periods that have passed.
    pub period: u64,
    /// When the period ends, jiffies; 0 while the timer is off.
    pub deadline: u64,
    /// Where the latest request completed. They take turns: a request completes on the CPU that sent it, and tasks of one
    /// device are on several.
    pub cpu: Cpu,
}

impl Default for FpropGlobal {
    fn default() -> FpropGlobal {
        FpropGlobal { events: PercpuCounter::at(1), period: 0, deadline: 0, cpu: Cpu::default() }
    }
}

/// Completions of one wb in a domain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FpropLocal {
    /// Decayed count of pages, as of `period`.
    pub events: PercpuCounter,
    /// The domain's period it was last brought up to.
    pub period: u64,
}

/// Halves a count once for every period.
fn decay(events: u64, periods: u64) -> u64 {
    u32::try_from(periods).ok().and_then(|periods| events.checked_shr(periods)).unwrap_or(0)
}

fn signed(pages: u64) -> i64 {
    i64::try_from(pages).unwrap_or(i64::MAX)
}

impl FpropLocal {
    /// A wb that has completed `pages`, as the domain counts them now. None of them is held back by a CPU.
    pub fn starting(global: &FpropGlobal, pages: u64) -> FpropLocal {
        FpropLocal { events: PercpuCounter::at(signed(pages)), period: global.period }
    }

    /// Brings the count up to the domain's period, on the CPU of the domain's latest completion: what was added there is
    /// halved there, so that what a CPU holds back stays small.
    fn catch_up(&mut self, build: Build, global: &FpropGlobal) {
        let periods = global.period.saturating_sub(self.period);
        if periods == 0 {
            return;
        }
        self.period = global.period;
        if periods >= 64 {
            self.events = PercpuCounter::default();
            return;
        }
        // Few are added up exactly, many are read as they are.
        let seen = self.events.read();
        let seen = if seen < build.wb_stat_error() { self.events.sum() } else { seen };
        self.events.add(-signed(seen - decay(seen, periods)), global.cpu, build.wb_stat_batch());
    }

    /// What it counts once it is up to the domain's period.
    fn caught_up(mut self, build: Build, global: &FpropGlobal) -> u64 {
        self.catch_up(build, global);
        self.events.read()
    }

    /// Its part of the domain: numerator and denominator, which is not 0 nor less than the numerator.
    #[inline]
    pub fn fraction(&self, build: Build, global: &FpropGlobal) -> (u64, u64) {
        let numerator = if self.period == global.period { self.events.read() } else { self.caught_up(build, global) };
        let denominator = global.events.read();
        (numerator, if denominator <= numerator { numerator.max(1) } else { denominator })
    }
}

impl FpropGlobal {
    /// A domain of which `pages` have completed, at the start of a period. A domain never counts less than 1, and its timer is off
    /// then.
    pub fn starting(build: Build, pages: u64, period: u64, now: u64) -> FpropGlobal {
        let deadline = if pages > 1 { now.saturating_add(build.completions_period()) } else { 0 };
        FpropGlobal { events: PercpuCounter::at(signed(pages.max(1))), period, deadline, ..FpropGlobal::default() }
    }

    /// Counts `pages` that finished writeback in a wb. `max_frac` is the bdi's largest share in 1/1024:
    /// completions beyond it do not count. Kernels that count page by page
    /// ([`Algorithm::completions_by_folio`]) are given one page at a time.
    #[inline]
    pub fn add(
        &mut self,
        algorithm: &Algorithm,
        build: Build,
        wb: &mut FpropLocal,
        pages: u64,
        max_frac: u64,
        now: u64,
    ) {
        self.cpu = self.cpu.next(build.cpus());
        if wb.period != self.period {
            wb.catch_up(build, self);
        }
        let counted = match max_frac {
            FRAC.. => pages,
            _ => self.within(algorithm, build, wb, pages, max_frac),
        };
        wb.events.add(signed(counted), self.cpu, build.wb_stat_batch());
        self.events.add(signed(counted), self.cpu, build.percpu_batch());
        if self.deadline == 0 {
            self.deadline = now.saturating_add(build.completions_period());
        }
    }

    /// How many of `pages` count for a wb that may have no more than `max_frac`.
    fn within(&self, algorithm: &Algorithm, build: Build, wb: &FpropLocal, pages: u64, max_frac: u64) -> u64 {
        let (numerator, denominator) = wb.fraction(build, self);
        let have = u128::from(numerator) * u128::from(FRAC);
        let may = u128::from(denominator) * u128::from(max_frac);
        let rest = FRAC - max_frac;
        match may.checked_sub(have) {
            None => 0,
            Some(slack) if algorithm.completions_by_folio && slack < u128::from(pages) * u128::from(rest) => {
                u64::try_from(slack.div_ceil(u128::from(rest))).unwrap_or(u64::MAX)
            }
            Some(_) => pages,
        }
    }

    /// Ends the period whose deadline has passed, with all that were missed since. On an idle machine
    /// the kernel's timer may run late by any amount.
    #[inline]
    pub fn end_period(&mut self, build: Build, now: u64) {
        if self.deadline != 0 && now >= self.deadline {
            self.end_periods(build, now);
        }
    }

    fn end_periods(&mut self, build: Build, now: u64) {
        let events = self.events.sum();
        if events <= 1 {
            self.deadline = 0;
            return;
        }
        let length = build.completions_period();
        let missed = (now - self.deadline) / length;
        let rest = decay(events, missed.saturating_add(1));
        self.events.add(-signed(events - rest), self.cpu, build.percpu_batch());
        self.period = self.period.saturating_add(missed).saturating_add(1);
        self.deadline = self.deadline.saturating_add(missed.saturating_add(1).saturating_mul(length));
    }
}

/// A bdi's largest share in 1/1024, from its largest ratio.
#[inline]
pub fn max_frac(algorithm: &Algorithm, max_ratio: u64) -> u64 {
    match algorithm.ratio_full() {
        full if max_ratio == full => FRAC,
        full => super::product::mul_div(FRAC, max_ratio, full),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::linux;
    use proptest::prelude::*;

    const BUILD: Build = Build { hz: 250, cpus_possible: 1, page_size: 4096 };

    #[test]
    fn a_lone_wb_has_nearly_everything() {
        let (mut domain, mut wb) = (FpropGlobal::default(), FpropLocal::default());
        assert_eq!(wb.fraction(BUILD, &domain), (0, 1));
        domain.add(&linux(6, 10), BUILD, &mut wb, 3, FRAC, 1000);
        assert_eq!((wb.fraction(BUILD, &domain), domain.deadline), ((0, 1), 1750), "held back by the CPU");
        assert_eq!((wb.events.sum(), domain.events.sum()), (3, 4));
        // Low bits decide how it ends: here with nothing.
        domain.end_period(BUILD, 1750 + 750);
        assert_eq!((domain.events.sum(), wb.fraction(BUILD, &domain), domain.deadline), (1, (0, 1), 3250));
        domain.end_period(BUILD, 3250);
        assert_eq!(domain.deadline, 0);
    }

    #[test]
    fn a_share_that_was_there_before_is_halved_like_others() {
        let domain = FpropGlobal::starting(BUILD, 400, 7, 1000);
        let wb = FpropLocal::starting(&domain, 300);
        assert_eq!((wb.fraction(BUILD, &domain), domain.deadline), ((300, 400), 1750));
        let mut later = domain;
        later.end_period(BUILD, 1750);
        assert_eq!((wb.fraction(BUILD, &later), later.period), ((150, 200), 8));
        // A quiet domain that counts 1 stays as it is.
        let domain = FpropGlobal::starting(BUILD, 1, 7, 1000);
        let mut later = domain;
        later.end_period(BUILD, 1_000_000);
        assert_eq!((FpropLocal::starting(&domain, 1).fraction(BUILD, &later), later), ((1, 1), domain));
        assert_eq!(FpropGlobal::starting(BUILD, 0, 0, 9), FpropGlobal::default());
    }

    #[test]
    fn every_period_halves_the_past() {
        let (mut domain, mut wb, mut other) = (FpropGlobal::default(), FpropLocal::default(), FpropLocal::default());
        domain.add(&linux(6, 10), BUILD, &mut wb, 1000, FRAC, 1);
        domain.end_period(BUILD, 751);
        domain.add(&linux(6, 10), BUILD, &mut other, 500, FRAC, 760);
        assert_eq!((wb.fraction(BUILD, &domain), other.fraction(BUILD, &domain)), ((500, 1000), (500, 1000)));
        domain.end_period(BUILD, 750_000);
        assert_eq!((wb.fraction(BUILD, &domain), other.fraction(BUILD, &domain)), ((0, 1), (0, 1)));
    }

    #[test]
    fn completions_beyond_the_largest_share_do_not_count() {
        let max_frac = max_frac(&linux(6, 10), 10_000);
        assert_eq!(max_frac, 10);
        let (mut domain, mut wb, mut other) = (FpropGlobal::default(), FpropLocal::default(), FpropLocal::default());
        domain.add(&linux(6, 10), BUILD, &mut other, 1013, FRAC, 1);
        domain.add(&linux(6, 10), BUILD, &mut wb, 100_000, max_frac, 1);
        assert_eq!(wb.events.sum(), 10, "1014 * 10 / 1014 pages are just enough");
        domain.add(&linux(6, 10), BUILD, &mut wb, 1, max_frac, 1);
        assert_eq!(wb.events.sum(), 10);
        let mut page_by_page = FpropLocal::default();
        domain.add(&linux(5, 8), BUILD, &mut page_by_page, 1, max_frac, 1);
        assert_eq!(page_by_page.events.sum(), 1);
    }

    #[test]
    fn half_of_the_domain_is_all_that_half_a_share_may_have() {
        let counted = |pages| {
            let (mut domain, mut wb, mut other) =
                (FpropGlobal::default(), FpropLocal::default(), FpropLocal::default());
            domain.add(&linux(6, 10), BUILD, &mut other, 1000, FRAC, 1);
            domain.add(&linux(6, 10), BUILD, &mut wb, pages, FRAC / 2, 1);
            wb.events.sum()
        };
        // A new domain counts 1: (1001 × 512 − 0) / (1024 − 512).
        assert_eq!([10, 1000, 1001, 1002, 2000].map(counted), [10, 1000, 1001, 1001, 1001]);
    }

    #[test]
    fn few_completions_are_halved_exactly_and_many_as_they_are_read() {
        let after_a_period = |adds: &[u64]| {
            let (mut domain, mut wb) = (FpropGlobal::default(), FpropLocal::default());
            adds.iter().for_each(|pages| domain.add(&linux(6, 10), BUILD, &mut wb, *pages, FRAC, 1));
            domain.end_period(BUILD, 751);
            domain.add(&linux(6, 10), BUILD, &mut wb, 0, FRAC, 752);
            wb.events.sum()
        };
        // All of 7 is held back by the CPU and seen nevertheless.
        assert_eq!(after_a_period(&[7]), 3);
        // 8 are read, which is as much as the error may be: the 3 held back stay.
        assert_eq!(after_a_period(&[8, 3]), 7);
    }

    proptest! {
        #[test]
        fn fractions_are_at_most_one_and_add_up(adds in proptest::collection::vec((0usize..4, 0u64..10_000, 0u64..900), 1..40)) {
            let mut domain = FpropGlobal::default();
            let mut wbs = [FpropLocal::default(); 4];
            let mut now = 1;
            for (wb, pages, wait) in adds {
                now += wait;
                domain.end_period(BUILD, now);
                domain.add(&linux(6, 10), BUILD, &mut wbs[wb], pages, FRAC, now);
            }
            let mut sum = 0;
            for mut wb in wbs {
                wb.catch_up(BUILD, &domain);
                let (numerator, denominator) = wb.fraction(BUILD, &domain);
                prop_assert!(numerator <= denominator && denominator >= 1);
                sum += wb.events.sum();
            }
            // Each wb may be behind by what its CPU holds back.
            prop_assert!(sum <= domain.events.sum() + 4 * BUILD.wb_stat_error());
        }

        #[test]
        fn no_state_is_refused(events: i64, period: u64, deadline: u64, local: i64, at: u64, pages: u64, frac: u64, now: u64) {
            let mut domain = FpropGlobal { events: PercpuCounter::at(events), period, deadline, ..FpropGlobal::default() };
            let mut wb = FpropLocal { events: PercpuCounter::at(local), period: at };
            domain.add(&linux(6, 10), BUILD, &mut wb, pages, frac, now);
            domain.end_period(BUILD, now);
            let (numerator, denominator) = wb.fraction(BUILD, &domain);
            prop_assert!(denominator >= 1 && numerator <= denominator);
        }
    }
}
