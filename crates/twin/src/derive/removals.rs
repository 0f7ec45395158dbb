// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files that a program writes in one go and removes later, such as a dump that is compressed, or the oldest of some segments. The
//! bytes that a removal drops are those of one of its bursts, or fewer where a part was written meanwhile.

use super::bursts::{Burst, Removed};
use super::group::{Bin, Group};
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

/// Part of the dropped bytes that must be those of whole files.
const DROPPED: f64 = 0.8;
/// Difference of two amounts that count as the same.
const SAME: f64 = 0.05;
/// Bytes from which a drop is one of a file.
const LEAST: f64 = 1_048_576.0;
/// Most files that are newer than the one that is removed.
const NEWER_MAX: usize = 8;

/// Stretches of writing that follow each other at once: a file.
struct Run {
    stretches: RangeInclusive<usize>,
    to: f64,
    amount: f64,
}

fn runs(bursts: &[Burst]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for (number, burst) in bursts.iter().enumerate() {
        match runs.last_mut() {
            Some(last) if burst.from - last.to < 1e-6 => {
                last.stretches = *last.stretches.start()..=number;
                (last.to, last.amount) = (burst.to, last.amount + burst.amount);
            }
            _ => runs.push(Run { stretches: number..=number, to: burst.to, amount: burst.amount }),
        }
    }
    runs
}

/// Number of stretches of intervals in which a program writes. There are fewer runs where bursts were merged over a rest.
fn stretches(bins: &[Bin]) -> usize {
    let active = || bins.iter().filter(|bin| bin.by_calls > 0.0);
    let is_apart = |(bin, next): &(&Bin, &Bin)| next.end - next.length - bin.end >= 1e-6;
    active().count().min(1) + active().zip(active().skip(1)).filter(is_apart).count()
}

/// Files that a program keeps, with how many newer ones it has when it removes one.
pub(super) struct Removals {
    pub(super) files: Vec<Removed>,
    pub(super) newer: usize,
}

/// The files of a program that it removes later, named after `file`. `bursts` are its bursts. `None` where its drops are not those of
/// whole files, where several processes write at a time, and where there are too many bursts to tell one file from the next.
pub(super) fn removals(group: &Group, bursts: &[Burst], file: &str) -> Option<Removals> {
    if group.concurrent() > 1 {
        return None;
    }
    let runs = runs(bursts);
    if runs.len() < stretches(&group.bins) {
        return None;
    }
    let drops = || group.bins.iter().filter(|bin| bin.cancelled >= LEAST);
    let begin = |run: &Run| bursts[*run.stretches.start()].from;
    // The file that a drop removes if `newer` ones were begun since.
    let of = |bin: &Bin, newer: usize| {
        let begun = runs.iter().take_while(|run| begin(run) < bin.end - 1e-6).count();
        let run = runs.get(begun.checked_sub(newer + 1)?)?;
        let is_whole = run.to <= bin.end - bin.length + 1e-6 && run.amount >= (1.0 - SAME) * bin.cancelled;
        is_whole.then_some(run)
    };
    // What the drops remove. A file is removed once: a second drop in its place is one of other files.
    let claims = |newer: usize| -> Vec<(&Bin, &Run)> {
        let mut claimed = BTreeSet::new();
        let first = |bin| of(bin, newer).filter(|run| claimed.insert(*run.stretches.start())).map(|run| (bin, run));
        drops().filter_map(first).collect()
    };
    // Of two files that explain a drop, that of its size does it better.
    let like = |(bin, run): &(&Bin, &Run)| bin.cancelled * (bin.cancelled / run.amount).min(1.0);
    let explained = |newer: usize| claims(newer).iter().map(like).sum::<f64>();
    let newer = (0..=NEWER_MAX).rev().max_by(|one, other| explained(*one).total_cmp(&explained(*other)))?;
    let claims = claims(newer);
    let dropped: f64 = claims.iter().map(|(bin, _)| bin.cancelled).sum();
    // A program that writes a file anew empties it first.
    let moment = |bin: &Bin| {
        let begun = runs.iter().map(begin).find(|at| *at >= bin.end - bin.length - 1e-6 && *at < bin.end - 1e-6);
        begun.unwrap_or(bin.end)
    };
    let name = |stretches: &RangeInclusive<usize>| format!("{file}-{}", stretches.start());
    let removed = |(bin, run): &(&Bin, &Run)| Removed {
        file: name(&run.stretches),
        stretches: run.stretches.clone(),
        at: Some(moment(bin)),
    };
    let mut files: Vec<Removed> = claims.iter().map(removed).collect();
    if files.is_empty() || dropped < DROPPED * group.total.cancelled {
        return None;
    }
    // Files like them that were written before they were removed, or that are removed after the recording.
    let is_removed = |run: &Run| files.iter().any(|one| one.stretches == run.stretches);
    let (removed, others): (Vec<&Run>, Vec<&Run>) = runs.iter().partition(|run| is_removed(run));
    let least = removed.iter().map(|run| run.amount).fold(f64::INFINITY, f64::min);
    let most = removed.iter().map(|run| run.amount).fold(0.0, f64::max);
    let is_alike = |run: &&Run| run.amount >= (1.0 - SAME) * least && run.amount <= (1.0 + SAME) * most;
    let alike = others.into_iter().filter(is_alike).map(|run| run.stretches.clone());
    files.extend(alike.map(|stretches| Removed { file: name(&stretches), stretches, at: None }));
    Some(Removals { files, newer })
}

#[cfg(test)]
mod tests {
    use super::super::bursts::bursts;
    use super::super::group::sum;
    use super::*;

    /// When each file was written and removed, and how many newer ones there were then.
    type Told = (Vec<(f64, Option<f64>)>, usize);

    /// The removals of a program that writes and drops these MB in its seconds.
    fn told(seconds: &[(usize, f64, f64)]) -> Option<Told> {
        let blank = |at: usize| Bin { end: at as f64 + 1.0, length: 1.0, active: 1, ..Bin::default() };
        let length = seconds.iter().map(|(at, ..)| at + 1).max().unwrap_or(0).max(80);
        let mut bins: Vec<Bin> = (0..length).map(blank).collect();
        for (at, written, dropped) in seconds {
            (bins[*at].by_calls, bins[*at].cancelled) = (written * 1e6, dropped * 1e6);
        }
        let group = Group { total: sum(&bins), bins, ..Group::default() };
        let bursts = bursts(&group.bins, |bin| bin.by_calls);
        let Removals { files, newer } = removals(&group, &bursts, "/data/f")?;
        Some((files.iter().map(|one| (bursts[*one.stretches.start()].from, one.at)).collect(), newer))
    }

    #[test]
    fn a_dump_is_removed_when_it_was_compressed() {
        // Of the first dump a part was written before.
        let dumps = [
            (3, 600.0, 0.0),
            (6, 12.0, 0.0),
            (7, 28.0, 0.0),
            (9, 0.0, 496.0),
            (39, 600.0, 0.0),
            (41, 12.0, 0.0),
            (42, 28.0, 600.0),
        ];
        assert_eq!(told(&dumps), Some((vec![(3.0, Some(10.0)), (39.0, Some(43.0))], 1)));
    }

    #[test]
    fn segments_are_removed_in_turn() {
        let segments = [(5, 17.0, 0.0), (17, 14.0, 0.0), (29, 20.0, 17.0), (41, 20.0, 14.0), (53, 20.0, 20.0)];
        assert_eq!(
            told(&segments),
            Some((vec![(5.0, Some(29.0)), (17.0, Some(41.0)), (29.0, Some(53.0)), (41.0, None), (53.0, None)], 2))
        );
        // The first was written before it was removed.
        let segments = [(5, 17.0, 0.0), (17, 14.0, 0.0), (29, 20.0, 0.0), (41, 20.0, 14.0)];
        assert_eq!(told(&segments), Some((vec![(17.0, Some(41.0))], 2)));
    }

    #[test]
    fn drops_of_other_amounts_are_not_of_whole_files() {
        assert_eq!(told(&[(5, 20.0, 0.0), (9, 0.0, 20.0)]), Some((vec![(5.0, Some(10.0))], 0)));
        assert_eq!(told(&[(5, 20.0, 0.0), (25, 20.0, 20.0), (45, 20.0, 20.0)]).map(|(_, newer)| newer), Some(1));
        // Files that live for a moment, more than one file, and hardly a part of one.
        assert_eq!(told(&[(5, 20.0, 20.0), (25, 20.0, 20.0)]), None);
        assert_eq!(told(&[(5, 20.0, 20.0)]), None);
        assert_eq!(told(&[(5, 20.0, 0.0), (25, 20.0, 0.0), (45, 0.0, 40.0)]), None);
        assert_eq!(told(&[(5, 20.0, 0.0), (25, 20.0, 0.5)]), None);
    }

    #[test]
    fn files_that_are_too_many_to_tell_apart_are_not_removed() {
        // A spool of 20 MB each five seconds. Each second one is removed three seconds later.
        let spool = |at: usize| [(5 * at, 20.0, 0.0), (5 * at + 3, 0.0, if at % 2 == 1 { 20.0 } else { 0.0 })];
        let spools = |count: usize| {
            let (files, newer) = told(&(0..count).flat_map(spool).collect::<Vec<_>>())?;
            Some((files.iter().filter(|(_, removed)| removed.is_some()).count(), newer))
        };
        assert_eq!((spools(120), spools(140)), (Some((60, 0)), None));
    }

    #[test]
    fn a_file_is_removed_once() {
        // Three files of 200 MB that were written in one go.
        let written: Vec<(usize, f64, f64)> = (5..11).map(|at| (at, 100.0, 0.0)).collect();
        let with = |drops: &[(usize, f64, f64)]| told(&[&written, drops].concat());
        assert_eq!(with(&[(18, 0.0, 600.0)]), Some((vec![(5.0, Some(19.0))], 0)));
        assert_eq!(with(&[(18, 0.0, 200.0), (38, 0.0, 200.0), (58, 0.0, 200.0)]), None);
        // Artefacts of a build that removes those of the build before one by one.
        let artefacts = [
            (2, 49.0, 0.0),
            (14, 48.0, 43.0),
            (29, 0.0, 13.0),
            (30, 49.0, 9.0),
            (43, 0.0, 14.0),
            (45, 0.0, 14.0),
            (47, 0.0, 12.0),
            (49, 28.0, 9.0),
        ];
        assert_eq!(told(&artefacts), None);
    }
}
