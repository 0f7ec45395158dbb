// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fills the figures of a row from a prediction. Leaves out what is not predicted, as `floodline predict` does.

use crate::row::Row;
use floodline_analysis::prediction::{self, LONGEST, LONGEST_WRITE, Prediction, WAITS, WRITTEN};

/// Part above what disks can write from which a figure is one of a disk without a limit.
const BEYOND: f64 = 1.2;
/// Note of a row whose bytes no disk of the host can write.
const NOT_WRITABLE: &str = "In the simulation, more is written than the disks write in that time at the speed that the recording shows. The \
                            number is left out.";

/// Copies predicted figures. `writable` is what the disks can write in the time of the recording, as far as it shows, bytes.
pub(super) fn fill(prediction: &Prediction, writable: Option<f64>, row: &mut Row) {
    let of = |name: &str| prediction.rows.iter().find(|row| row.figure == name && row.doubt.is_none());
    if let Some(stall) = of(WAITS) {
        row.stall_now_seconds = Some(stall.now);
        row.stall_then_seconds = Some(then(stall));
        row.stall_then_low_seconds = Some(stall.low.min(then(stall)));
        row.stall_then_high_seconds = Some(stall.high.max(then(stall)));
    }
    let longest = longest(prediction).filter(|(now, _)| {
        // A sync that is not predicted may be the longest call, and so may a write call that is longer now.
        let is_longest = |wait: &prediction::Row| wait.figure == LONGEST || wait.now > *now;
        !kinds(prediction).any(|wait| wait.doubt.is_some() && is_longest(wait))
    });
    // Harm counts also where the recording shows no caller of the sync.
    let is_longest = |sync: &&prediction::Row| match longest {
        Some((_, then)) => sync.then > then,
        None => kinds(prediction).next().is_none(),
    };
    let harm = assumed(prediction).filter(|sync| sync.worsens()).filter(is_longest);
    let longest = harm.map(|sync| (sync.now, sync.then)).or(longest);
    row.longest_wait_now_seconds = longest.map(|(now, _)| now);
    row.longest_wait_then_seconds = longest.map(|(_, then)| then);
    let written = of(WRITTEN);
    row.written_now_bytes = written.map(|bytes| bytes.now);
    row.written_then_bytes = written.map(|bytes| bytes.then);
    let is_beyond = |then: f64| writable.is_some_and(|most| then > BEYOND * most);
    let more = written.filter(|bytes| bytes.then > BEYOND * bytes.now);
    if more.is_some_and(|bytes| is_beyond(bytes.then)) {
        row.written_then_bytes = None;
        row.notes.push(NOT_WRITABLE.to_owned());
    }
}

/// The longest sync and the longest write call. A sync for which the recording shows no caller is not one of this host.
fn kinds(prediction: &Prediction) -> impl Iterator<Item = &prediction::Row> {
    let is_kind = |row: &&prediction::Row| [LONGEST, LONGEST_WRITE].contains(&row.figure.as_str());
    prediction.rows.iter().filter(is_kind).filter(|row| !row.is_assumed())
}

/// The longest sync, if it is predicted and the recording shows no caller.
pub(super) fn assumed(prediction: &Prediction) -> Option<&prediction::Row> {
    prediction.rows.iter().find(|row| row.figure == LONGEST && row.is_assumed() && row.doubt.is_none())
}

/// The longest of the recorded calls that are predicted, before and after the change, seconds.
pub(super) fn longest(prediction: &Prediction) -> Option<(f64, f64)> {
    let waits = || kinds(prediction).filter(|wait| wait.doubt.is_none());
    waits().map(|wait| wait.now).reduce(f64::max).zip(waits().map(then).reduce(f64::max))
}

/// Names the calls of which the longest wait is taken.
pub(super) fn longest_name(prediction: &Prediction) -> &'static str {
    let is_there = |name: &str| kinds(prediction).any(|row| row.figure == name && row.doubt.is_none());
    match (is_there(LONGEST_WRITE), is_there(LONGEST)) {
        (true, false) => "the longest write call",
        (false, true) => "the longest sync",
        _ => "the longest write or sync",
    }
}

/// The present value is recorded, and the other one is the twin's: a difference that people do not notice is none.
fn then(row: &prediction::Row) -> f64 {
    if row.worsens() || row.improves() { row.then } else { row.now }
}

#[cfg(test)]
mod tests {
    use super::super::weigh::tests::{nothing_predicted, wait};
    use super::*;
    use floodline_analysis::prediction::Doubt;

    fn filled(rows: Vec<prediction::Row>, writable: Option<f64>) -> Row {
        let mut row = Row::default();
        fill(&Prediction { rows, ..nothing_predicted() }, writable, &mut row);
        row
    }

    #[test]
    fn the_longest_write_or_sync_is_left_out_where_the_sync_is_not_predicted() {
        let call = || wait(LONGEST_WRITE, 0.0005, 0.128);
        let sync = || wait(LONGEST, 4.08, 4.0);
        let longest = |rows| {
            let row = filled(rows, None);
            row.longest_wait_now_seconds.zip(row.longest_wait_then_seconds)
        };
        assert_eq!(longest(vec![call(), sync()]).map(|(now, _)| now), Some(4.08));
        let open = prediction::Row { doubt: Some(Doubt::BackTest), ..sync() };
        assert_eq!(longest(vec![call(), open.clone()]), None);
        let prediction = Prediction { rows: vec![call(), open], ..nothing_predicted() };
        assert_eq!(
            (super::longest(&prediction), longest_name(&prediction)),
            (Some((0.0005, 0.128)), "the longest write call")
        );
        // No program of the host syncs.
        let assumed = prediction::Row { is_measured: false, ..sync() };
        assert_eq!(longest(vec![call(), assumed.clone()]), Some((0.0005, 0.128)));
        let harm = prediction::Row { now: 0.5, then: 2.7, ..assumed };
        assert_eq!(longest(vec![call(), harm]), Some((0.5, 2.7)), "it may sync");
    }

    #[test]
    fn bytes_that_the_disks_cannot_write_are_left_out() {
        let written = |then| vec![prediction::Row { unit: "bytes", ..wait(WRITTEN, 1e9, then) }];
        let then = |then, writable| filled(written(then), writable).written_then_bytes;
        assert_eq!(then(3e9, Some(3.2e9)), Some(3e9));
        assert_eq!(then(70e9, Some(3.2e9)), None);
        assert_eq!(then(70e9, None), Some(70e9));
        // What was written can be written.
        assert_eq!(then(1.1e9, Some(0.5e9)), Some(1.1e9));
        let row = filled(written(70e9), Some(3.2e9));
        assert_eq!((row.written_now_bytes, row.notes.len()), (Some(1e9), 1));
    }
}
