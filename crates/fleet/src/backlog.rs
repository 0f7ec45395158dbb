// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether the data of a recording fits below smaller limits if it arrives evenly between two samples. Today it piles up until it
//! is old or until the machine's threshold; below a smaller limit the kernel writes it out sooner, so that the peak of a
//! recording tells little of the peak below that limit. It knows bytes and no tasks, so it is a lower bound of
//! the waits.

use crate::between::Between;
use floodline_record::sample::{HostRow, SampleTime};
use floodline_record::window::Window;

/// What arrived between two samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Arrival {
    /// Time between the samples.
    seconds: f64,
    /// Bytes dirtied.
    dirtied: f64,
    /// Bytes that were removed before they were written.
    removed: f64,
}

/// A limit that writers share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Limit {
    /// Part of the machine's dirtied bytes that arrives below it.
    pub(crate) share: f64,
    /// Bytes from which the kernel writes them out.
    pub(crate) background: f64,
    /// Bytes from which writers wait.
    pub(crate) freerun: f64,
}

/// Steps between two samples.
const STEPS: u32 = 10;

/// The arrivals of a window; empty where a counter is missing.
pub(crate) fn arrivals(window: &Window) -> Vec<Arrival> {
    let page = window.facts.as_ref().map_or(4096, |facts| facts.page_size.max(1)) as f64;
    let pairs = window.host_series.iter().zip(window.host_series.iter().skip(1));
    let between = |from: &SampleTime, to: &SampleTime| to.monotonic.0.checked_sub(from.monotonic.0);
    let arrivals = pairs.map(|((from, one), (to, next))| arrival(between(from, to)?, one, next, page));
    arrivals.collect::<Option<Vec<Arrival>>>().unwrap_or_default()
}

fn arrival(nanos: u64, one: &HostRow, next: &HostRow, page: f64) -> Option<Arrival> {
    let between = Between::of(one, next)?;
    let bytes = |pages: u64| pages as f64 * page;
    let (dirtied, removed) = (bytes(between.dirtied), bytes(between.removed()));
    Some(Arrival { seconds: nanos as f64 / 1e9, dirtied, removed })
}

/// Whether all that arrives fits below the limits. The disks divide their speed, in bytes per second, among the limits whose data
/// they write.
pub(crate) fn fits(arrivals: &[Arrival], limits: &[Limit], speed: f64) -> bool {
    let part = 1.0 / f64::from(STEPS);
    // A host can have hundreds of limits. Each step goes through all of them once, without a branch.
    let column = |of: fn(&Limit) -> f64| limits.iter().map(of).collect::<Vec<f64>>();
    let shares = column(|limit| limit.share);
    let backgrounds = column(|limit| limit.background);
    let freeruns = column(|limit| limit.freerun);
    let mut held = vec![0.0_f64; limits.len()];
    let mut written = backgrounds.iter().filter(|background| 0.0 > **background).count();
    for arrival in arrivals {
        for _ in 0..STEPS {
            let leaves = speed * arrival.seconds * part / written.max(1) as f64;
            let arrived = arrival.dirtied - arrival.removed;
            let mut is_over = false;
            written = 0;
            for (((held, share), background), freerun) in held.iter_mut().zip(&shares).zip(&backgrounds).zip(&freeruns)
            {
                let left = if *held > *background { leaves } else { 0.0 };
                *held = (*held + share * arrived * part - left).max(0.0);
                is_over |= *held > *freerun;
                written += usize::from(*held > *background);
            }
            if is_over {
                return false;
            }
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_record::units::Pages;

    #[test]
    fn what_is_written_out_sooner_does_not_pile_up() {
        let check = |dirtied, removed, limits: &[(f64, f64, f64)], speed, expect| {
            let arrivals = [Arrival { seconds: 1.0, dirtied, removed }; 30];
            let limit = |&(share, background, freerun): &(f64, f64, f64)| Limit { share, background, freerun };
            let limits: Vec<Limit> = limits.iter().map(limit).collect();
            assert_eq!(fits(&arrivals, &limits, speed), expect, "{dirtied} {removed} {limits:?} {speed}");
        };
        // In 30 s 300 bytes arrive, which no limit of 60 holds without the disk.
        check(10.0, 0.0, &[(1.0, 40.0, 60.0)], 11.0, true);
        check(10.0, 0.0, &[(1.0, 40.0, 60.0)], 8.0, false);
        check(10.0, 0.0, &[(1.0, 400.0, 60.0)], 11.0, false);
        // Two limits share the disk.
        check(10.0, 0.0, &[(0.5, 40.0, 60.0), (0.5, 40.0, 60.0)], 11.0, true);
        check(10.0, 0.0, &[(0.9, 40.0, 60.0), (0.9, 40.0, 60.0)], 11.0, false);
        // What is removed does not have to be written.
        check(10.0, 9.0, &[(1.0, 40.0, 60.0)], 0.0, true);
        check(10.0, 5.0, &[(1.0, 40.0, 60.0)], 0.0, false);
    }

    #[test]
    fn without_a_counter_nothing_is_known_of_arrivals() {
        let row = |dirtied, dirty| HostRow {
            nr_dirty: Some(Pages(dirty)),
            nr_writeback: Some(Pages(0)),
            nr_dirtied: Some(Pages(dirtied)),
            nr_written: Some(Pages(0)),
            ..HostRow::default()
        };
        let second = 1_000_000_000;
        let arrived = arrival(second, &row(10, 5), &row(30, 15), 10.0);
        assert_eq!(arrived, Some(Arrival { seconds: 1.0, dirtied: 200.0, removed: 100.0 }));
        assert_eq!(arrival(second, &row(30, 5), &row(10, 15), 10.0), None);
        assert_eq!(arrival(second, &row(30, 5), &HostRow::default(), 10.0), None);
    }
}
