// SPDX-License-Identifier: MIT OR Apache-2.0
//! How many answers on findings that are not certain were right, by the reason for the doubt and by the answer. Counted on the
//! generated hosts of all lists up to the twenty-eighth; `floodline-dev predict-truth --odds` counts them again.

use floodline_analysis::prediction::Reason;

/// Of answers of a kind: the reason for the doubt, whether the finding was there before and is said to be there after the change,
/// those that were right, and all.
type Odds = (Reason, bool, bool, (u32, u32));

const ODDS: &[Odds] = &[
    (Reason::Unchecked, false, false, (1, 3)),
    (Reason::Unchecked, true, false, (2, 2)),
    (Reason::Runs, false, false, (12, 30)),
    (Reason::Runs, true, false, (11, 13)),
    (Reason::Runs, true, true, (11, 24)),
    (Reason::OneRun, false, false, (23, 31)),
    (Reason::Unshown, true, false, (18, 18)),
    (Reason::Unshown, true, true, (15, 23)),
    (Reason::OnlyTwin, false, false, (6, 7)),
    (Reason::OnlyTwin, false, true, (1, 1)),
    (Reason::Severity, false, false, (4, 9)),
    (Reason::Hidden, false, true, (8, 11)),
    (Reason::New, false, true, (39, 42)),
    (Reason::NewWarning, false, true, (19, 27)),
    (Reason::NoLonger, false, false, (6, 9)),
    (Reason::Waits, true, false, (23, 24)),
    (Reason::Assumed, false, false, (74, 78)),
    (Reason::Speed, false, false, (8, 11)),
    (Reason::Missed, false, false, (12, 12)),
    (Reason::Missed, true, false, (3, 3)),
    (Reason::Missed, true, true, (6, 7)),
];

/// Of predictions whose twin is not like its recording: those after which no finding came that they do not name, and all.
pub(super) const NO_OTHER: (u32, u32) = (40, 41);

/// Fewest answers that show how likely one of their kind is.
const ANSWERS_MIN: u32 = 6;

/// Right answers and all answers of a kind; no answers where too few are known.
pub(super) fn of(reason: Reason, was_there: bool, is_there: bool) -> (u32, u32) {
    let kind = (reason, was_there, is_there);
    let known = ODDS.iter().find(|(reason, was, is, _)| (*reason, *was, *is) == kind).map(|(.., odds)| *odds);
    known.filter(|(_, answers)| *answers >= ANSWERS_MIN).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_answer_is_right_more_often_than_it_was_given_and_few_answers_show_nothing() {
        assert!(ODDS.iter().all(|(.., (right, answers))| right <= answers && *answers > 0));
        for (number, (reason, was, is, _)) in ODDS.iter().enumerate() {
            let is_same = |(other, was_there, is_there, _): &Odds| (other, was_there, is_there) == (reason, was, is);
            assert_eq!(ODDS.iter().position(is_same), Some(number), "{reason:?} is there twice");
        }
        assert_eq!(of(Reason::Unchecked, true, false), (0, 0));
        assert_eq!(of(Reason::Waits, true, false), (23, 24));
    }
}
