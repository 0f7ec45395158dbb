// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hosts on which the change, or the present settings, write data only after the end of the recorded time. The twins run on with the recorded
//! load again. Where that does not show the write, nothing clears such a host.

use super::Depth;
use crate::row::{Cause, Confidence, Row, Verdict};
use floodline_analysis::prediction::Prediction;
use floodline_sim::Progress;
use floodline_twin::predict::Run;
use floodline_twin::predict::horizon::Beyond;
use floodline_twin::shown::{self, Shown};
use floodline_twin::{Recorded, Twin};

/// Results of runs.
type Results = Vec<(Run, Shown)>;

/// The longer runs: with the waits that the recording has too, and with all waits of tasks. `None` where they do not show the write.
pub(super) fn runs(
    (recorded, twin): (&Recorded, &Twin),
    beyond: &Beyond,
    depth: Depth,
    go_on: &dyn Fn() -> bool,
) -> Option<(Results, Results)> {
    let question = beyond.longer.as_ref()?;
    let mut all = Results::new();
    for run in question.runs(true) {
        let may_go_on = |at: &Progress| at.events < depth.events_max && go_on();
        let changed = question.scenario(&run)?;
        all.push((run, shown::of_twin(twin, changed, run.trial, None, may_go_on).ok()?.0));
    }
    let by_tasks = beyond.per_recorded_time(all.clone())?;
    for (_, shown) in &mut all {
        shown.like(&recorded.window);
    }
    Some((beyond.per_recorded_time(all)?, by_tasks))
}

/// Why no run shows how the data are written, or else how the longer runs show it.
pub(super) fn unseen(prediction: &Prediction) -> (Option<String>, Option<String>) {
    (prediction.beyond_the_end(), prediction.horizon.as_ref().and_then(|horizon| horizon.note()))
}

/// Clears no host of whose data no run shows the write.
pub(super) fn leave_open(why: Option<String>, row: &mut Row) {
    let Some(why) = why else { return };
    let mut letters = why.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    let told = format!("{first}{}.", letters.as_str());
    row.confidence = Confidence::Low;
    match row.verdict {
        Verdict::Fine | Verdict::NotKnown => row.decide(Verdict::NotKnown, Cause::TooShort, told),
        Verdict::Tight | Verdict::Suffers => row.notes.push(told),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_whose_data_no_run_writes_is_not_cleared() {
        let decided = |verdict, cause, why: Option<&str>| {
            let mut row = Row { confidence: Confidence::High, ..Row::default() };
            row.decide(verdict, cause, "In the simulation the change cures it.".to_owned());
            leave_open(why.map(str::to_owned), &mut row);
            (row.verdict, row.cause, row.confidence, row.notes.len())
        };
        let why = Some("with the change, 445 MiB are still unwritten");
        let open = (Verdict::NotKnown, Cause::TooShort, Confidence::Low, 0);
        assert_eq!(decided(Verdict::Fine, Cause::WideMargin, why), open);
        let tight = (Verdict::Tight, Cause::Simulated, Confidence::Low, 1);
        assert_eq!(decided(Verdict::Tight, Cause::Simulated, why), tight);
        let kept = (Verdict::Fine, Cause::WideMargin, Confidence::High, 0);
        assert_eq!(decided(Verdict::Fine, Cause::WideMargin, None), kept);
    }
}
