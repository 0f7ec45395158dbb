// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether a program that moves nothing for a time is held up in a burst: by a limit, by a device, or by a call of its own. It waits for most
//! of that time, and then goes on at once. A program that rests neither waits nor runs.

use super::group::{Bin, Group, PAGE};
use super::replaced::Reclaimed;
use floodline_record::sample::HostRow;
use floodline_record::window::Window;

/// Least part of the time for which a program that is held up waits. The rest is in the calls before and after.
const WAITING: f64 = 2.0 / 3.0;
/// Part of the unwritten data that is left when a sync of all of it ends, at most.
const LEFT: f64 = 0.05;

/// Whether a program is held up between two stretches. `from` and `to` are seconds since the recording began. A program that reads meanwhile
/// waits for that. One that goes on when all data are written waits for a sync: a limit lets it go on before.
pub(super) fn is_held(bins: &[Bin], from: f64, to: f64) -> bool {
    let first = bins.partition_point(|bin| bin.end <= from + 1e-6);
    let between = &bins[first..];
    let between = &between[..between.partition_point(|bin| bin.end <= to + 1e-6)];
    waits(between) && !are_written(&bins[..first], between)
}

/// Whether a program waits for most of some intervals, and moves nothing.
fn waits(bins: &[Bin]) -> bool {
    let moves = |bin: &Bin| bin.dirtied() + bin.read + bin.cancelled > 0.0;
    let seconds: f64 = bins.iter().map(|bin| bin.length).sum();
    let waited: f64 = bins.iter().map(|bin| bin.waited / bin.active.max(1) as f64).sum();
    !bins.is_empty() && !bins.iter().any(moves) && waited >= WAITING * seconds
}

/// Whether all data that are unwritten before some intervals are written in them.
fn are_written(before: &[Bin], bins: &[Bin]) -> bool {
    let level = |bins: &[Bin]| bins.last().and_then(|bin| bin.unwritten);
    level(before).zip(level(bins)).is_some_and(|(before, after)| before > 0.0 && after <= LEFT * before)
}

/// Adds the levels of unwritten data to programs that wait without moving anything.
pub(super) fn add_levels(groups: &mut [Group], window: &Window) {
    let level = |row: &HostRow| Some((row.nr_dirty?.0.saturating_add(row.nr_writeback?.0)) as f64 * PAGE);
    let levels: Vec<Option<f64>> = window.host_series.iter().skip(1).map(|(_, row)| level(row)).collect();
    let is_waiting = |group: &Group| group.bins.iter().any(|bin| waits(std::slice::from_ref(bin)));
    let reclaimed = Reclaimed::of(window);
    let chosen = |group: &&mut Group| is_waiting(group) && !reclaimed.is_of(group, window);
    for group in groups.iter_mut().filter(chosen) {
        for (bin, level) in group.bins.iter_mut().zip(&levels) {
            bin.unwritten = *level;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_waits_between_two_stretches_is_held_up() {
        let bin = |end: f64, by_calls: f64, waited: f64| Bin {
            end,
            length: 1.0,
            by_calls,
            waited,
            active: u64::from(by_calls + waited > 0.0),
            ..Bin::default()
        };
        let bins =
            [bin(1.0, 60e6, 0.0), bin(2.0, 0.0, 0.9), bin(3.0, 0.0, 0.8), bin(4.0, 60e6, 0.2), bin(5.0, 0.0, 0.0)];
        assert!(is_held(&bins, 1.0, 3.0));
        assert!(!is_held(&bins, 4.0, 5.0), "it rests");
        assert!(!is_held(&bins, 1.0, 1.0), "nothing is between them");
        let change = |with: fn(&mut Bin)| {
            let mut bins = bins;
            with(&mut bins[1]);
            is_held(&bins, 1.0, 3.0)
        };
        assert!(!change(|bin| bin.waited = 0.2), "it waits for less than two thirds of the time");
        assert!(!change(|bin| bin.read = 65_536.0), "it waits for what it reads");
        assert!(!change(|bin| bin.active = 2), "one of its two processes waits");
        assert!(!change(|bin| bin.cancelled = 4096.0), "it removes a file");
        let left = |after: f64| {
            let mut bins = bins;
            (bins[0].unwritten, bins[2].unwritten) = (Some(60e6), Some(after));
            is_held(&bins, 1.0, 3.0)
        };
        assert!(left(12e6));
        assert!(!left(1e6), "it waits until all is written: a sync");
    }
}
