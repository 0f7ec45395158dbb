// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a row says of a twin: its figures before and after the change, what is not predictable, and what a change costs that
//! helps a sick host.

use super::filled::{assumed, longest, longest_name};
use super::weigh::Relief;
use crate::row::Row;
use floodline_analysis::prediction::{self, DIRTIED, LONGEST, LONGEST_WRITE, Prediction, WAITS};
use floodline_record::human;

/// What a row says where the twin cannot tell how long tasks wait.
pub(super) const NOT_STATED: &str = "How much longer tasks wait is not predictable here.";

/// What a row says of a twin that misses its recording and waits longer in every comparison. `times` is the least harm of them.
pub(super) fn in_any(times: f64) -> String {
    format!(
        "The twin misses this recording. But in the twin, tasks wait longer after the change. They also wait longer than in the \
         recording. Each difference is at least {times:.1} times what people notice."
    )
}

/// What a row says of a twin that holds `peak` times the recorded unwritten data, meets no limit, and waits longer in every comparison.
pub(super) fn below_limits(times: f64, peak: f64) -> String {
    format!(
        "The twin holds {peak:.1} times the recorded unwritten data, which is below every limit. In the twin, tasks wait longer \
         after the change. They also wait longer than in the recording. Each difference is at least {times:.1} times what people \
         notice."
    )
}

/// What a row says if tasks wait longer only on slow disks that the recording allows.
pub(super) const LIMIT_NOT_SEEN: &str = "The answer depends on the limit of a disk that was never full in the recording. On a slow disk, \
                                         tasks wait longer after the change. On the faster disk of the twin they do not.";

/// What a row says if the two bounds of what programs want to write disagree.
pub(super) const DEMAND_NOT_KNOWN: &str = "It is not known in which direction the change works. The recording shows what programs wrote, and \
                                           not how much they would write without a pause. By the bounds of this demand, a wait gets longer or shorter.";

/// Note of a row whose severity rests on pages that are written again, on a disk of unknown limit.
pub(super) const BETWEEN_DISKS: &str = "A disk was never full in the recording. The severity is the geometric mean of that on a disk \
                                        without a limit and that on a slow disk.";

/// Sentence of a row if only a twin can answer, and the twin misses its recording and shows a worse figure that it cannot predict.
pub(super) const WORSE_IN_UNLIKE: &str =
    "Only a simulation can answer. The simulation of this host misses the recording, and in it a figure gets worse.";

/// Sentence of a row about a call that no prediction has, because the call empties, removes or closes a file.
pub(super) fn longer_call((now, then): (f64, f64)) -> String {
    let (now, then) = (human::seconds(now), human::seconds(then));
    format!(
        "In the simulation, the longest call that empties, removes or closes a file takes about {then} instead of {now}."
    )
}

/// What a row says of a twin in which no wait gets longer.
pub(super) fn calm(is_reliable: bool) -> &'static str {
    match is_reliable {
        true => "In the simulation no task waits noticeably longer.",
        false => "In a simulation that is not reliable here, no task waits noticeably longer.",
    }
}

impl Relief<'_> {
    pub(super) fn told(&self, row: &Row) -> String {
        let change = |wait: &prediction::Row| {
            format!("{} {} → about {}", wait.label, human::seconds(wait.now), human::seconds(wait.then))
        };
        let rule = row.sick_already.as_deref().unwrap_or_default();
        let costs = self.worse.map_or_else(String::new, |worse| format!(" It costs: {}.", change(worse)));
        format!("The host suffers now ({rule}), and the change helps: {}.{costs}", change(self.better))
    }
}

/// The figures in a sentence.
pub(super) fn effect(by: &str, row: &Row, prediction: &Prediction, seconds: f64) -> String {
    let mut told = changes(row, prediction, seconds);
    let is_gain = |row: &&prediction::Row| row.unit == "seconds" && row.improves() && !is_of_row(row);
    told.extend(prediction.leads().find(is_gain).map(prediction::Row::sentence));
    match (told.is_empty(), by) {
        (false, _) => format!("{by}: {}.", told.join("; ")),
        (true, _) if prediction.rows.iter().any(|row| row.doubt.is_some()) => {
            "No predicted figure changes noticeably.".to_owned()
        }
        (true, by) => format!("{by}: no figure changes noticeably."),
    }
}

/// Whether a figure is told from the row.
fn is_of_row(figure: &prediction::Row) -> bool {
    [WAITS, LONGEST, LONGEST_WRITE].contains(&figure.figure.as_str())
}

/// Figures that change, and the finding that appears, each as a phrase.
pub(super) fn changes(row: &Row, prediction: &Prediction, seconds: f64) -> Vec<String> {
    let mut told = Vec::new();
    if let Some((now, then)) =
        row.stall_now_seconds.zip(row.stall_then_seconds).filter(|(now, then)| (then - now).abs() > 0.05)
    {
        let (now, then) = (human::seconds(now), human::seconds(then));
        told.push(format!("tasks wait {now} → about {then} in {}", human::seconds(seconds)));
    }
    if let Some((now, then)) = longest(prediction).filter(|(now, then)| (then - now).abs() > 0.1) {
        let of = longest_name(prediction);
        told.push(format!("{of} {} → about {}", human::seconds(now), human::seconds(then)));
    }
    told.extend(assumed(prediction).filter(|sync| sync.worsens() || sync.improves()).map(prediction::Row::sentence));
    if let (Some(now), None) = (row.written_now_bytes, row.written_then_bytes) {
        told.push(format!("written to disks {} → as much as they can write", human::bytes(now)));
    }
    if let Some((now, then)) = row.written_now_bytes.zip(row.written_then_bytes)
        && (then > 1.2 * now || now > 1.2 * then)
    {
        told.push(format!("written to disks {} → about {}", human::bytes(now), human::bytes(then)));
    }
    // What is written was dirtied: where the disks cannot write it, neither number is that of this host.
    let is_beyond = row.written_now_bytes.is_some() && row.written_then_bytes.is_none();
    let is_told = |loss: &&&prediction::Row| !(is_of_row(loss) || is_beyond && loss.figure == DIRTIED);
    told.extend(prediction.losses().iter().filter(is_told).take(1).map(|loss| loss.sentence()));
    let seen = prediction.hurting().or(prediction.appear.first());
    told.extend(seen.map(|seen| format!("{} appears", seen.rule)));
    // A wait that grows by less is named where no other figure changes.
    if told.is_empty() {
        told.extend(prediction.losses().first().map(|loss| loss.sentence()));
    }
    told
}
