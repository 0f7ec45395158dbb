// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of what no figure of a prediction shows: data that the twin leaves unwritten, calls that empty, remove or close a file, and disks
//! whose limit was not seen.

use super::tests::{judged, nothing_predicted, twin, wait};
use super::*;

#[test]
fn a_cliff_is_cleared_only_by_a_twin_that_has_what_was_held_back() {
    let check = |answer, expect| assert_eq!(judged(Verdict::Suffers, Cause::DirtyCliff, 3.0, 40.0, answer), expect);
    let with_syncs = |answer: Answer| {
        let rows = vec![wait("stall_seconds", 1.0, 2.0), wait("durable.longest_wait_seconds", 0.02, 0.03)];
        Answer { prediction: Prediction { rows, ..nothing_predicted() }, ..answer }
    };
    check(with_syncs(twin(0.2, 0.2, 1.0, 0.1)), (Verdict::Tight, 0.2));
    check(with_syncs(twin(0.8, 0.8, 1.0, 0.1)), (Verdict::Suffers, 3.0));
    check(with_syncs(twin(0.2, 0.2, 0.4, 0.1)), (Verdict::Suffers, 3.0));
    check(with_syncs(twin(0.2, 0.4, 1.0, 0.1)), (Verdict::Suffers, 3.0));
    check(with_syncs(twin(0.2, 1.4, 1.0, 0.1)), (Verdict::Suffers, 1.4));
    // What is written now stays unwritten at the end, so that a later sync waits for it.
    let pile = |then, dirtied_then| {
        let mut answer = with_syncs(twin(0.2, 0.2, 1.0, 0.1));
        let bytes = |figure, then| prediction::Row { unit: "bytes", ..wait(figure, 300e6, then) };
        answer.prediction.rows.extend([bytes(prediction::WRITTEN, then), bytes(DIRTIED, dirtied_then)]);
        answer
    };
    check(pile(30e6, 300e6), (Verdict::Suffers, 3.0));
    check(pile(200e6, 300e6), (Verdict::Tight, 0.2));
    check(pile(30e6, 40e6), (Verdict::Tight, 0.2));
    // Its syncs are those of another filesystem.
    check(Answer { syncs_most: false, ..with_syncs(twin(0.2, 0.2, 1.0, 0.1)) }, (Verdict::Suffers, 3.0));
    // In a twin without syncs, none can wait.
    check(twin(0.2, 0.2, 1.0, 0.1), (Verdict::Suffers, 3.0));
}

#[test]
fn older_data_harms_unless_no_more_of_it_piles_up_or_no_program_syncs() {
    let check = |peak_then, syncs_rarely, expect| {
        let row = Row { severity: 3.0, margin: Some(40.0), is_firm: true, is_of_age: true, ..Row::default() };
        let mut row = Row { syncs_rarely, ..row };
        row.decide(Verdict::Suffers, Cause::DirtyCliff, "It piles up.".to_owned());
        let rows = vec![prediction::Row { unit: "bytes", ..wait(prediction::PEAK, 100e6, peak_then) }];
        let answer = Answer { prediction: Prediction { rows, ..nothing_predicted() }, ..twin(0.0, 0.0, 1.0, 0.1) };
        weigh(answer, Wanted::Flagged, 60.0, &mut row);
        assert_eq!(row.verdict, expect, "{}", row.finding);
    };
    check(300e6, false, Verdict::Suffers);
    // Files that are written again, or removed, are no larger than before.
    check(120e6, false, Verdict::Tight);
    // A journal may have made all flushes.
    check(300e6, true, Verdict::Tight);
}

#[test]
fn a_call_that_no_prediction_has_is_harm_where_arithmetic_has_no_answer() {
    let check = |cause, severity, error, other, expect| {
        let mut row = Row { margin: Some(4.0), ..Row::default() };
        row.decide(Verdict::NotKnown, cause, "Arithmetic has no answer.".to_owned());
        let rows = vec![wait("stall_seconds", 7.0, 7.0)];
        let prediction = Prediction { rows, ..nothing_predicted() };
        let answer = twin(severity, severity, 1.0, error);
        weigh(Answer { prediction, longest_other: Some(other), ..answer }, Wanted::Flagged, 60.0, &mut row);
        assert_eq!(row.verdict, expect, "{}", row.finding);
        row.finding
    };
    let told = check(Cause::NotSimulated, 4.0, 0.1, (0.5, 6.0), Verdict::Suffers);
    assert_eq!(
        told,
        "In the simulation, the longest call that empties, removes or closes a file takes about 6.00 s instead of 500 ms."
    );
    // Too little for the only figure, and a figure that does not get noticeably longer.
    let told = check(Cause::NotSimulated, 1.5, 0.1, (0.5, 2.0), Verdict::Tight);
    assert!(told.contains("empties, removes or closes"), "{told}");
    check(Cause::NotSimulated, 4.0, 0.1, (6.0, 6.1), Verdict::Fine);
    // A twin that misses its recording clears no host.
    let told = check(Cause::NotSimulated, 1.5, 0.5, (0.5, 6.0), Verdict::NotKnown);
    assert!(told.contains("misses the recording, and in it a figure gets worse"), "{told}");
    check(Cause::NotSimulated, 0.9, 0.5, (0.5, 1.4), Verdict::Fine);
}

#[test]
fn pages_that_are_written_again_wait_for_a_disk_whose_limit_was_not_seen() {
    let check = |severity, dirties_again, on_slow_disks, expect| {
        let mut row = Row { margin: Some(40.0), gets_folios: true, ..Row::default() };
        row.decide(Verdict::Fine, Cause::WideMargin, "The smallest margin is 40.".to_owned());
        let answer = Answer { dirties_again, on_slow_disks, ..twin(severity, severity, 1.0, 0.1) };
        weigh(answer, Wanted::Flagged, 60.0, &mut row);
        assert_eq!((row.verdict, (10.0 * row.severity).round() / 10.0), expect, "{}", row.finding);
    };
    check(0.9, true, Some(10.0), (Verdict::Suffers, 3.0));
    check(0.9, true, None, (Verdict::Tight, 0.9));
    // No more than on the disk without a limit, and bytes that people do not notice on any disk.
    check(0.9, true, Some(0.3), (Verdict::Tight, 0.9));
    check(0.4, true, Some(10.0), (Verdict::Tight, 0.5));
}

#[test]
fn a_sick_host_has_no_answer_of_arithmetic_alone() {
    let check = |severity, expect| {
        let mut row = Row { sick_already: Some("dirty-cliff".to_owned()), margin: Some(4.0), ..Row::default() };
        row.decide(Verdict::NotKnown, Cause::NotSimulated, "Arithmetic has no answer.".to_owned());
        weigh(twin(severity, severity, 1.0, 0.1), Wanted::Flagged, 60.0, &mut row);
        assert_eq!((row.verdict, row.cause), expect, "{}", row.finding);
        row.finding
    };
    check(1.5, (Verdict::Suffers, Cause::Simulated));
    let told = check(0.0, (Verdict::Fine, Cause::SickAlready));
    assert!(told.starts_with("The host is sick before the change (dirty-cliff). In the simulation no task"), "{told}");
}

#[test]
fn a_wait_whose_direction_depends_on_the_demand_clears_no_host() {
    let check = |doubt, high, expect| {
        let mut row = Row { sick_already: Some("fsync-behind-writeback".to_owned()), ..Row::default() };
        row.decide(Verdict::Fine, Cause::SickAlready, "The change makes no limit smaller.".to_owned());
        let rows = vec![prediction::Row { doubt, high, ..wait("durable.longest_wait_seconds", 9.6, 9.6) }];
        let prediction = Prediction { rows, ..nothing_predicted() };
        weigh(Answer { prediction, ..twin(0.0, 0.0, 1.0, 0.1) }, Wanted::Flagged, 60.0, &mut row);
        assert_eq!((row.verdict, row.cause), expect, "{}", row.finding);
        row
    };
    let row = check(Some(Doubt::Demand), 20.0, (Verdict::NotKnown, Cause::DemandNotKnown));
    assert!(
        row.hint.contains("--trace on") && row.finding.starts_with("It is not known in which direction"),
        "{row:?}"
    );
    let fine = (Verdict::Fine, Cause::SickAlready);
    check(Some(Doubt::Demand), 9.7, fine);
    check(None, 20.0, fine);
}

#[test]
fn a_pile_is_the_price_of_a_change_that_ends_nearly_all_waits() {
    let check = |then, longest_then, expect| {
        // The finding that is named first rests on another wait.
        let sick = Some("fsync-behind-writeback".to_owned());
        let mut row = Row { severity: 5.0, margin: Some(1.6), is_firm: true, sick_already: sick, ..Row::default() };
        row.decide(Verdict::Suffers, Cause::DirtyCliff, "2 GiB can pile up.".to_owned());
        let rows = vec![wait("stall_seconds", 600.0, then), wait("durable.longest_wait_seconds", 3.0, longest_then)];
        let answer = Answer { prediction: Prediction { rows, ..nothing_predicted() }, ..twin(0.0, 0.0, 0.4, 0.1) };
        weigh(answer, Wanted::Flagged, 60.0, &mut row);
        assert_eq!((row.verdict, row.cause), (expect, Cause::DirtyCliff), "{}", row.finding);
        row.finding
    };
    let told = check(16.0, 3.0, Verdict::Tight);
    assert!(told.contains("the change helps: stall_seconds") && told.ends_with("2 GiB can pile up."), "{told}");
    check(300.0, 3.0, Verdict::Suffers);
    check(16.0, 9.0, Verdict::Suffers);
}
