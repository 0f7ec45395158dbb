// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files of a program that are dropped before they are written: after a moment, or by its next burst.

use super::bursts::{Branch, Burst, Removed, arrivals, bursts, size, time};
use super::group::{Bin, Group, PAGE};
use super::held::is_held;
use super::removals::{Removals, removals};
use crate::provenance::Notes;
use floodline_record::sample::{HostRow, SampleTime};
use floodline_record::units::Bytes;
use floodline_record::window::Window;
use floodline_scenario::{ByteSize, Frequency, Lasting, Order, Pace, Repeat, Step, Truncate, Write};

/// Share of the dirtied bytes that is dropped unwritten where files are short-lived.
const SHORT_LIVED: f64 = 0.2;
/// Life of a file that is dropped before it is written.
const LIFE_SECONDS: f64 = 2.0;

/// Share of the bytes that go to files which are dropped before they are written. A program that writes one file anew in each burst drops
/// all that is still unwritten of it, which can be less than a burst: all of its bytes go to that file. `of_one_file` has the levels of a
/// program for which that is possible.
pub(super) fn short_lived(group: &Group, of_one_file: Option<&Window>) -> f64 {
    let share = group.total.cancelled / group.total.by_calls.max(1.0);
    let is_one_file = || {
        let drops = |window| drops_whole_bursts(group, window) || drops_all(group, window);
        of_one_file.is_some_and(|window| is_dropped_by_the_next(group) && drops(window))
    };
    let is_removed = || of_one_file.is_some() && removed(group, &written(group, 1.0), "").is_some();
    match share >= SHORT_LIVED {
        true if is_removed() || is_one_file() => 1.0,
        true => share.min(1.0),
        false => 0.0,
    }
}

/// Files that are dropped before they are written. `share` is their part of the bytes.
pub(super) fn temporary(group: &Group, share: f64, file: String, key: &str, notes: &mut Notes) -> Option<Branch> {
    if share <= 0.0 {
        return None;
    }
    notes.derived(format!("{key}.steps.truncate"), "cancelled_write_bytes: dirty bytes that were dropped unwritten");
    let bursts = written(group, share);
    if let Some(removed) = removed(group, &bursts, &file).filter(|_| share >= 1.0) {
        notes.derived(
            format!("{key}.steps.write"),
            "each drop is as large as an earlier burst, so each burst has a file that is removed later",
        );
        return Some(Branch { removed, ..appended(group, bursts, file) });
    }
    if is_dropped_by_the_next(group) {
        notes.derived(format!("{key}.steps.truncate.size"), "each burst drops what the one before left unwritten");
        let begin = Some(Step::Truncate(Truncate { file: file.clone(), size: ByteSize(Bytes(0)) }));
        return Some(Branch { begin, ..appended(group, bursts, file) });
    }
    notes.assumed(format!("{key}.steps.repeat.every"), "life of a file that is dropped before it is written");
    let total = &group.total;
    let seconds: f64 = group.bins.iter().filter(|bin| bin.by_calls > 0.0).map(|bin| bin.length).sum();
    let rounds = (seconds / LIFE_SECONDS).max(1.0);
    let round = (total.by_calls * share / rounds / group.concurrent() as f64).max(PAGE);
    let bursts = arrivals(&group.bins, |bin| bin.by_calls * share, round);
    // A file lives longer than the burst that writes it.
    let bursts = bursts.into_iter().map(|burst| Burst { lasts: None, ..burst }).collect();
    let block = (total.wchar / total.calls.max(1.0)).clamp(512.0, 1_048_576.0);
    let step = move |count: u64, rate: Option<Frequency>| {
        let write = Write { file: file.clone(), block: size(block), total: Some(size(round)), ..Write::default() };
        let empty = Truncate { file: file.clone(), size: ByteSize(Bytes(0)) };
        let sleep = Step::Sleep(Lasting { lasting: time(LIFE_SECONDS / 2.0) });
        let every = rate.map(|rate| time(1.0 / rate.per_second()));
        vec![Step::Repeat(Repeat {
            times: Some(count),
            lasting: None,
            every,
            steps: vec![Step::Write(write), sleep, Step::Truncate(empty)],
        })]
    };
    Some(Branch::new(bursts, round, step))
}

/// Part of the dropped bytes that must go in intervals in which the program also writes.
const DROPPED_THERE: f64 = 0.8;
/// Fewest seconds without writes between two such intervals.
pub(super) const RESTS_MIN: f64 = 3.0;

/// Whether each burst of a program drops what the one before left: it writes the same file anew, or a new one in its place.
fn is_dropped_by_the_next(group: &Group) -> bool {
    let bursts = whole_bursts(group);
    let rests = || bursts.windows(2).map(|pair| pair[1].from - pair[0].to);
    let is_in_one = |bin: &&Bin| bursts.iter().skip(1).any(|burst| bin.end > burst.from && bin.end <= burst.to + 1e-6);
    let dropped: f64 = group.bins.iter().filter(is_in_one).map(|bin| bin.cancelled).sum();
    bursts.len() >= 2 && rests().all(|seconds| seconds >= RESTS_MIN) && dropped >= DROPPED_THERE * group.total.cancelled
}

/// Whether the bursts of a program drop all that the bursts before left unwritten. Of a burst, not more is left than is unwritten on the
/// machine when the next one begins.
fn drops_all(group: &Group, window: &Window) -> bool {
    let (mut left, mut dropped) = (0.0, 0.0);
    for pair in whole_bursts(group).windows(2) {
        let Some(unwritten) = unwritten(window, pair[1].from) else { return false };
        left += unwritten.min(pair[0].amount);
        dropped += dropped_in(group, &pair[1]);
    }
    left > 0.0 && dropped >= DROPPED_THERE * left
}

/// Part of a burst from which the next burst counts as dropping all of it. The second constant is the part of all dropped bytes that such
/// drops must have.
const WHOLE: f64 = 0.95;
const IN_WHOLE_DROPS: f64 = 0.8;

/// Whether each burst of a program drops the whole burst before it or nothing. A burst that was written before the next one leaves nothing
/// to drop. A program that keeps a part of each burst elsewhere never drops a whole one. Unlike [`drops_all`], this holds whatever other
/// programs leave unwritten.
fn drops_whole_bursts(group: &Group, window: &Window) -> bool {
    let whole = |pair: &[Burst]| {
        let dropped = dropped_in(group, &pair[1]);
        let is_left = unwritten(window, pair[1].from).is_some_and(|unwritten| unwritten >= WHOLE * dropped);
        if is_left && dropped >= WHOLE * pair[0].amount { dropped } else { 0.0 }
    };
    let whole: f64 = whole_bursts(group).windows(2).map(whole).sum();
    whole > 0.0 && whole >= IN_WHOLE_DROPS * group.total.cancelled
}

/// Bytes that a program drops unwritten while it writes a burst.
fn dropped_in(group: &Group, burst: &Burst) -> f64 {
    let is_in_it = |bin: &&Bin| bin.end > burst.from && bin.end <= burst.to + 1e-6;
    group.bins.iter().filter(is_in_it).map(|bin| bin.cancelled).sum()
}

/// What is unwritten on the machine at a time, in seconds since the recording began. `None` where no sample shows it.
fn unwritten(window: &Window, at: f64) -> Option<f64> {
    let page = window.facts.as_ref().map_or(PAGE, |facts| facts.page_size.max(1) as f64);
    let start = window.first_at?.monotonic.0;
    let is_before =
        |(time, _): &&(SampleTime, HostRow)| time.monotonic.0.saturating_sub(start) as f64 / 1e9 <= at + 1e-6;
    let (_, row) = window.host_series.iter().take_while(is_before).last()?;
    let writeback = row.nr_writeback.map_or(0, |pages| pages.0);
    Some(row.nr_dirty?.0.saturating_add(writeback) as f64 * page)
}

/// The bursts of a program, each from its first to its last interval. A time in which it is held up is within a burst.
pub(super) fn whole_bursts(group: &Group) -> Vec<Burst> {
    let mut found: Vec<Burst> = Vec::new();
    for bin in group.bins.iter().filter(|bin| bin.by_calls > 0.0) {
        let (from, amount) = (bin.end - bin.length, bin.by_calls);
        match found.last_mut() {
            Some(last) if from - last.to < 1e-6 || is_held(&group.bins, last.to, from) => {
                (last.to, last.amount) = (bin.end, last.amount + amount);
            }
            _ => found.push(Burst::new(from, bin.end, amount)),
        }
    }
    found
}

/// The files that a program removes later. `None` where each burst drops what the one before left.
fn removed(group: &Group, bursts: &[Burst], file: &str) -> Option<Vec<Removed>> {
    let Removals { files, newer } = removals(group, bursts, file)?;
    (newer != 1 || !is_dropped_by_the_next(group)).then_some(files)
}

/// The bursts with which a program writes a share of its bytes.
fn written(group: &Group, share: f64) -> Vec<Burst> {
    bursts(&group.bins, |bin| bin.by_calls * share)
}

/// A file to which each burst appends.
fn appended(group: &Group, bursts: Vec<Burst>, file: String) -> Branch {
    let total = &group.total;
    let block = (total.wchar / total.calls.max(1.0)).clamp(512.0, 1_048_576.0).round();
    let step = move |count: u64, rate: Option<Frequency>| {
        vec![Step::Write(Write {
            file: file.clone(),
            order: Order::Append,
            block: size(block),
            count: Some(count),
            rate: rate.map(Pace::Blocks),
            ..Write::default()
        })]
    };
    Branch::new(bursts, block, step)
}

#[cfg(test)]
mod tests {
    use super::super::group::sum;
    use super::*;
    use floodline_record::units::{Nanos, Pages};

    /// Seconds of a program: bytes that it wrote and bytes that it dropped.
    fn group(seconds: &[(f64, f64)]) -> Group {
        let bin = |(at, (by_calls, cancelled)): (usize, &(f64, f64))| Bin {
            end: at as f64 + 1.0,
            length: 1.0,
            by_calls: *by_calls,
            wchar: *by_calls,
            calls: by_calls / 262_144.0,
            cancelled: *cancelled,
            ..Bin::default()
        };
        let bins: Vec<Bin> = seconds.iter().enumerate().map(bin).collect();
        Group { total: sum(&bins), bins, ..Group::default() }
    }

    fn is_dropped(dropped: f64, rest: usize) -> bool {
        let mut seconds = vec![(0.0, 0.0); 3 * (rest + 1)];
        for burst in 0..3 {
            seconds[burst * (rest + 1)] = (60e6, if burst > 0 { dropped } else { 0.0 });
        }
        seconds.push((0.0, 60e6 - dropped));
        is_dropped_by_the_next(&group(&seconds))
    }

    #[test]
    fn a_burst_that_drops_what_the_one_before_left_writes_it_anew() {
        assert!(is_dropped(60e6, 17));
        assert!(!is_dropped(20e6, 17), "most is dropped between the bursts");
        assert!(!is_dropped(60e6, 2), "too soon");
        assert!(!is_dropped_by_the_next(&group(&[(60e6, 60e6)])), "one burst");
    }

    #[test]
    fn a_file_that_is_written_anew_gets_all_bytes_though_a_part_was_written_before() {
        // Three bursts of 60 MB, 20 s apart. The first is written before the second begins, and the second is dropped by the third.
        let mut seconds = vec![(0.0, 0.0); 45];
        (seconds[1], seconds[21], seconds[41]) = ((60e6, 0.0), (60e6, 0.0), (60e6, 60e6));
        let group = group(&seconds);
        let share = |left: f64| {
            let mut window = Window { first_at: Some(SampleTime::default()), ..Window::default() };
            for second in 0..45_u64 {
                let held = if (22..42).contains(&second) { left } else { 0.0 };
                let time = SampleTime { monotonic: Nanos(second * 1_000_000_000), ..SampleTime::default() };
                let row = HostRow { nr_dirty: Some(Pages((held / PAGE) as u64)), ..HostRow::default() };
                window.host_series.push((time, row));
            }
            (short_lived(&group, Some(&window)) * 100.0).round()
        };
        assert_eq!(share(60e6), 100.0);
        assert_eq!(share(90e6), 100.0, "another program holds the rest");
        assert_eq!((short_lived(&group, None) * 100.0).round(), 33.0, "it has data that it keeps");
        // Nothing was left of it at that moment: other files were dropped.
        assert_eq!(share(0.0), 33.0);
        let unread = Window { first_at: Some(SampleTime::default()), ..Window::default() };
        assert_eq!((short_lived(&group, Some(&unread)) * 100.0).round(), 33.0, "no sample shows what was left");
    }

    #[test]
    fn a_program_that_drops_whole_bursts_has_one_file_whatever_others_leave_unwritten() {
        // Four bursts of 24 MB beside another program, whose 90 MB are always unwritten. The second burst was written before the third.
        let share = |dropped: [f64; 3]| {
            let mut seconds = vec![(0.0, 0.0); 32];
            seconds[1].0 = 24e6;
            for (at, dropped) in [8, 16, 24].into_iter().zip(dropped) {
                seconds[at] = (24e6, dropped);
            }
            let mut window = Window { first_at: Some(SampleTime::default()), ..Window::default() };
            for second in 0..32_u64 {
                let time = SampleTime { monotonic: Nanos(second * 1_000_000_000), ..SampleTime::default() };
                let row = HostRow { nr_dirty: Some(Pages((90e6 / PAGE) as u64)), ..HostRow::default() };
                window.host_series.push((time, row));
            }
            (short_lived(&group(&seconds), Some(&window)) * 100.0).round()
        };
        assert_eq!(share([24e6, 0.0, 24e6]), 100.0);
        assert_eq!(share([16e6, 16e6, 16e6]), 50.0, "a third of each burst is kept elsewhere");
    }

    #[test]
    fn each_later_burst_begins_with_an_empty_file() {
        let mut seconds = vec![(0.0, 0.0); 40];
        (seconds[3], seconds[20]) = ((60e6, 0.0), (60e6, 60e6));
        let branch = temporary(&group(&seconds), 1.0, "/a/f".to_owned(), "t", &mut Notes::default()).expect("a branch");
        let steps = branch.open(1.0);
        let is_truncate = |step: &&Step| matches!(step, Step::Truncate(_));
        let is_write = |step: &&Step| matches!(step, Step::Write(_));
        assert_eq!((steps.iter().filter(is_truncate).count(), steps.iter().filter(is_write).count()), (1, 2));
    }
}
