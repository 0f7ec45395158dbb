// SPDX-License-Identifier: MIT OR Apache-2.0
//! How late a thread runs that another thread has woken: the time until an idle CPU has woken up. On hardware this takes
//! microseconds. The CPUs of an emulated guest are threads of a busy host and take milliseconds, sometimes tenths of a
//! second. The recorder of a run shows it: it sleeps until fixed moments and notes the moments at which it runs.

use floodline_record::sample::{HostRow, SampleTime};
use floodline_record::units::Nanos;

/// Fewest samples that tell how late threads usually are.
const FEWEST: usize = 20;
/// Neighbours of a sample, on each side, whose least delay counts as none.
const NEAR: usize = 8;

/// How late threads are up to a moment, from the moment before, both from the workload's start. A host is busy for some
/// time, so that all threads that are woken meanwhile are late, such as the five that one fsync needs after each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Late {
    until: u64,
    by: u64,
}

/// Delays of wake-ups.
#[derive(Debug, Default)]
pub(crate) struct WakeUps {
    /// In order of time.
    known: Vec<Late>,
    /// Start of the workload in the present run.
    pub(crate) began: Option<u64>,
}

impl WakeUps {
    pub(crate) fn new(known: Vec<Late>) -> WakeUps {
        WakeUps { known, began: None }
    }

    /// Delay of a wake-up now, nanoseconds: half of what the recorder shows, the mean of delays between none and that. The
    /// recorder is one thread at one moment; the five wake-ups that one fsync needs are not all as late. Of 69 longest syncs of
    /// recordings the model is within a quarter of 41 with the whole delay, of 49 with half of it, and within a factor of two
    /// of 60 and 62.
    pub(crate) fn late(&self, now: u64) -> u64 {
        let Some(since) = self.began.and_then(|began| now.checked_sub(began)).filter(|_| !self.known.is_empty()) else {
            return 0;
        };
        let next = self.known.partition_point(|late| late.until < since);
        self.known.get(next).map_or(0, |late| late.by / 2)
    }
}

/// Delays of a recorder's samples from `began` on: distance from the grid of moments at which it wanted to run, where the
/// earliest of the samples nearby, before or after it, are in time. While the CPUs were mostly busy, the recorder waited for the programs, so
/// such samples do not count. The usual delay is part of the CPU's speed, so only what exceeds it is a delay. Returns nothing
/// if too few samples are left.
pub(crate) fn delays(samples: &[(SampleTime, HostRow)], began: u64) -> Vec<Late> {
    let times: Vec<u64> = samples.iter().map(|(time, _)| time.monotonic.0).collect();
    let mut gaps: Vec<u64> = times.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
    gaps.sort_unstable();
    let Some(period) = gaps.get(gaps.len() / 2).copied().filter(|period| *period > 0) else { return Vec::new() };
    // Distance from a grid through the first sample, and the number of that grid. A sample that came a whole period late
    // is on the grid again. One that came early, as at the end of the workload, begins another grid.
    let mut off: Vec<(usize, i128)> = Vec::with_capacity(times.len());
    for pair in times.windows(2) {
        let (grid, before) = off.last().copied().unwrap_or((0, 0));
        let gap = pair[1].saturating_sub(pair[0]);
        let periods = gap.saturating_add(period / 2) / period;
        off.push(match periods {
            0 => (grid + 1, 0),
            _ => (grid, before + i128::from(gap) - i128::from(periods) * i128::from(period)),
        });
    }
    let is_counted = |at: usize| {
        let (before, after) = (&samples[at].1, &samples[at + 1].1);
        times[at + 1] >= began && idle_share(before, after).is_some_and(|share| share >= 0.5)
    };
    let late = |at: usize| {
        let (grid, own) = off[at];
        let least = |near: &[(usize, i128)]| near.iter().filter(|near| near.0 == grid).map(|near| near.1).min();
        let before = least(&off[at.saturating_sub(NEAR)..at]);
        let after = least(&off[(at + 1).min(off.len())..(at + NEAR + 1).min(off.len())]);
        // A grid that moves for good delays no sample.
        let least = before.into_iter().chain(after).max().unwrap_or(own);
        u64::try_from(own - least).unwrap_or(0)
    };
    let counted = (0..off.len()).filter(|at| is_counted(*at));
    let mut sorted: Vec<u64> = counted.map(late).collect();
    if sorted.len() < FEWEST {
        return Vec::new();
    }
    sorted.sort_unstable();
    let usual = sorted[sorted.len() / 2];
    let by = |at: usize| if is_counted(at) { late(at).saturating_sub(usual) } else { 0 };
    let all = (0..off.len()).filter(|at| times[at + 1] >= began);
    all.map(|at| Late { until: times[at + 1] - began, by: by(at) }).collect()
}

/// Part of the CPU time between two samples in which no program ran.
fn idle_share(before: &HostRow, after: &HostRow) -> Option<f64> {
    let grown = |of: fn(&HostRow) -> Option<Nanos>| of(after)?.0.checked_sub(of(before)?.0);
    let idle = grown(|row| row.cpu_idle)?.saturating_add(grown(|row| row.cpu_iowait).unwrap_or(0));
    let busy = grown(|row| row.cpu_user)?.saturating_add(grown(|row| row.cpu_system)?);
    Some(idle as f64 / (idle.saturating_add(busy) as f64).max(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(late_millis: &[u64], busy: u64) -> Vec<(SampleTime, HostRow)> {
        let at = |number: usize, late: &u64| {
            let moment = 700 + 500 * number as u64;
            let row = HostRow {
                cpu_idle: Some(Nanos((10 - busy) * moment)),
                cpu_user: Some(Nanos(busy * moment)),
                cpu_system: Some(Nanos(0)),
                ..HostRow::default()
            };
            (SampleTime { monotonic: Nanos::from_millis(moment + late), wall: Nanos(0) }, row)
        };
        late_millis.iter().enumerate().map(|(number, late)| at(number, late)).collect()
    }

    #[test]
    fn the_recorder_shows_how_late_threads_wake_up() {
        let millis = |samples: &[(SampleTime, HostRow)], began: u64| -> Vec<u64> {
            delays(samples, began * 1_000_000).iter().map(|late| late.by / 1_000_000).collect()
        };
        let longest = |samples: &[(SampleTime, HostRow)]| millis(samples, 0).into_iter().max();
        let mut late = vec![0; 40];
        (late[10], late[11], late[20]) = (30, 4, 120);
        assert_eq!(millis(&samples(&late, 2), 0), late[1..]);
        assert_eq!(millis(&samples(&late, 2), 500 * 30 + 700).len(), 0, "too few of the workload");
        assert!(millis(&samples(&late, 8), 0).is_empty(), "the recorder waited for programs");
        // It missed a whole sample, and its grid moved once.
        let mut skipped = samples(&late, 2);
        skipped.remove(15);
        for (time, _) in &mut skipped[25..] {
            time.monotonic.0 += 200_000_000;
        }
        assert_eq!((millis(&skipped, 0).len(), longest(&skipped)), (38, Some(120)));
        // A sample between two others.
        let mut early = samples(&late, 2);
        early[35].0.monotonic = Nanos(early[34].0.monotonic.0 + 1_000_000);
        assert_eq!(longest(&early), Some(120));
        // Two of three samples are 2 ms late: that is usual.
        let mut usual: Vec<u64> = (0..40).map(|number| if number % 3 == 0 { 0 } else { 2 }).collect();
        usual[20] = 32;
        let found = millis(&samples(&usual, 2), 0);
        assert_eq!((found.iter().max(), found.iter().filter(|delay| **delay > 0).count()), (Some(&30), 1));
        assert!(delays(&[], 0).is_empty());
    }

    #[test]
    fn a_wake_up_is_half_as_late_as_the_recorder_was_at_that_time() {
        let mut wake_ups = WakeUps::new(vec![Late { until: 10, by: 0 }, Late { until: 20, by: 8 }]);
        assert_eq!(wake_ups.late(115), 0, "the workload has not begun");
        wake_ups.began = Some(100);
        assert_eq!([99, 110, 111, 120, 121].map(|now| wake_ups.late(now)), [0, 0, 4, 4, 0]);
        assert_eq!(WakeUps::default().late(115), 0);
    }
}
