// SPDX-License-Identifier: MIT OR Apache-2.0
//! Flusher rounds as rules see them: by the kernel's reason, from the events of a tracer.

use crate::report::Evidence;
use floodline_record::record::What;
use floodline_record::traced::flusher::Flushed;
use floodline_record::units::{Nanos, Pages};
use floodline_record::window::Window;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Source of the numbers, as evidence names it.
pub const SOURCE: &str = "trace of writeback_start and _written";

/// Rounds for one reason, added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rounds {
    /// Number of rounds.
    pub rounds: u64,
    /// Pages written; counted in folios by kernels up to 6.4.
    pub pages: Pages,
    /// Total time of the rounds.
    pub busy: Nanos,
}

/// Returns the wanted rounds by reason, those that took longest first; `None` when they were not traced. The closure
/// receives the end of the interval they were counted in.
pub fn by_reason(window: &Window, wanted: impl Fn(Nanos, &Flushed) -> bool) -> Option<Vec<(&str, Rounds)>> {
    let mut sums: BTreeMap<&str, Rounds> = BTreeMap::new();
    for event in &window.events {
        let What::Flushed(flushed) = &event.what else { continue };
        if !wanted(event.at, flushed) {
            continue;
        }
        let sum = sums.entry(&flushed.reason).or_default();
        sum.rounds = sum.rounds.saturating_add(flushed.rounds);
        sum.pages = Pages(sum.pages.0.saturating_add(flushed.pages.0));
        sum.busy = Nanos(sum.busy.0.saturating_add(flushed.busy_ns.0));
    }
    let mut sums: Vec<_> = sums.into_iter().filter(|(_, sum)| sum.rounds > 0).collect();
    sums.sort_by_key(|(_, sum)| Reverse((sum.busy, sum.pages, sum.rounds)));
    window.traced.contains("flusher").then_some(sums)
}

/// The reasons that took longest, as evidence about `whose` data.
pub fn evidence(whose: &str, reasons: &[(&str, Rounds)]) -> Vec<Evidence> {
    let row = |(reason, sum): &(&str, Rounds)| {
        Evidence::count(format!("Rounds of the flusher for {whose}, {reason}"), sum.rounds, SOURCE)
    };
    reasons.iter().take(2).map(row).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use floodline_testkit::Fixture;

    /// Device, cgroup, reason, rounds, milliseconds, as a tracer records them.
    pub(crate) fn flushed((bdi, wb_cgroup_ino, reason, rounds, ms): (&str, u64, &str, u64, u64)) -> What {
        What::Flushed(Box::new(Flushed {
            since: Nanos(0),
            bdi: bdi.into(),
            wb_cgroup_ino,
            reason: reason.into(),
            rounds,
            sync_rounds: 0,
            pages: Pages(rounds * 1024),
            busy_ns: Nanos::from_millis(ms),
            busy_ns_max: Nanos::from_millis(ms),
        }))
    }

    #[test]
    fn the_reason_that_took_longest_stands_first() {
        let events = vec![
            flushed(("8:0", 7, "background", 40, 100)),
            flushed(("8:0", 9, "background", 2, 10)),
            flushed(("8:0", 1, "periodic", 3, 4000)),
        ];
        let window = Fixture::healthy().traced(&["flusher"], events).window();
        let show = |reasons: Vec<(&str, Rounds)>| -> Vec<(String, u64)> {
            reasons.into_iter().map(|(reason, sum)| (reason.to_owned(), sum.rounds)).collect()
        };
        let all = by_reason(&window, |_, _| true).unwrap();
        assert_eq!(evidence("sda", &all)[0].name, "Rounds of the flusher for sda, periodic");
        assert_eq!(show(all), [("periodic".to_owned(), 3), ("background".to_owned(), 42)]);
        let of_one = by_reason(&window, |_, flushed| flushed.wb_cgroup_ino == 7).unwrap();
        assert_eq!(show(of_one), [("background".to_owned(), 40)]);
        assert_eq!(by_reason(&Fixture::healthy().window(), |_, _| true), None);
    }
}
