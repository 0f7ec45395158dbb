// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of how the answer of a twin is weighed beside that of arithmetic.

use super::*;
use floodline_record::version::KernelVersion;

/// A host that arithmetic has judged, and its answer after a twin.
pub(super) fn judged(verdict: Verdict, cause: Cause, severity: f64, margin: f64, answer: Answer) -> (Verdict, f64) {
    let mut row = Row { severity, margin: Some(margin), is_firm: cause == Cause::DirtyCliff, ..Row::default() };
    row.decide(verdict, cause, "So it is.".to_owned());
    weigh(answer, Wanted::Flagged, 60.0, &mut row);
    (row.verdict, row.severity)
}

/// A twin with a harm by each demand, a multiple of the recorded unwritten data, and an error of its back-test.
pub(super) fn twin(severity: f64, severity_max: f64, peak: f64, error: f64) -> Answer {
    Answer {
        severity,
        severity_max,
        of_first: severity,
        since_recorded: severity,
        recorded_stall_seconds: 0.0,
        relieves: false,
        without_assumed_syncs: None,
        is_demand_known: severity == severity_max,
        syncs_most: true,
        peak: Some(Peak { times: peak, weighed: peak }),
        is_between_samples: false,
        error: Some(error),
        // The figure that gets worse with the severity is stated.
        prediction: Prediction { rows: vec![wait("stall_seconds", 1.0, 1.0 + 6.0 * severity)], ..nothing_predicted() },
        dirties_again: false,
        slower: 1.0,
        longest_other: None,
        on_slowest_disks: None,
        on_slow_disks: None,
        writable_bytes: None,
        is_cut: false,
    }
}

pub(in crate::simulated) fn nothing_predicted() -> Prediction {
    Prediction { runs: 2, ..Prediction::new(Vec::new(), KernelVersion::new(6, 12, 0)) }
}

#[test]
fn arithmetic_and_a_twin_that_agree_need_no_more_than_what_is_noticed() {
    let check = |verdict, answer, expect| {
        assert_eq!(judged(verdict, Cause::CgroupLimit, 4.0, 0.3, answer).0, expect);
    };
    check(Verdict::Suffers, twin(1.2, 1.2, 1.0, 0.5), Verdict::Suffers);
    check(Verdict::Suffers, twin(0.9, 0.9, 1.0, 0.5), Verdict::Tight);
    check(Verdict::Tight, twin(4.9, 4.9, 1.0, 0.5), Verdict::Tight);
    check(Verdict::Tight, twin(5.1, 5.1, 1.0, 0.5), Verdict::Suffers);
}

#[test]
fn data_that_may_fit_below_its_limit_needs_a_twin_of_the_recording() {
    let check = |may_fit, severity, error, expect| {
        let mut row = Row { severity: 4.0, margin: Some(0.3), predicts_waits: true, may_fit, ..Row::default() };
        row.decide(Verdict::Suffers, Cause::CgroupLimit, "So it is.".to_owned());
        weigh(twin(severity, severity, 1.0, error), Wanted::Flagged, 60.0, &mut row);
        assert_eq!(row.verdict, expect, "{may_fit} {severity} {error}");
    };
    check(false, 1.2, 0.5, Verdict::Suffers);
    check(true, 1.2, 0.5, Verdict::Tight);
    check(true, 5.2, 0.5, Verdict::Suffers);
    check(true, 1.2, 0.1, Verdict::Suffers);
    // The mean of both is not that of two predictions of the same waits.
    check(false, 0.5, 0.1, Verdict::Suffers);
    check(true, 0.5, 0.1, Verdict::Tight);
}

#[test]
fn a_sync_of_all_that_was_never_written_decides_how_bad_that_is() {
    let check = |answer, expect| {
        assert_eq!(judged(Verdict::Suffers, Cause::NeverWritten, 2.0, 5.0, answer), (Verdict::Suffers, expect));
    };
    check(twin(7.5, 7.5, 1.0, 0.1), 7.5);
    check(Answer { without_assumed_syncs: Some(0.0), ..twin(7.5, 7.5, 1.0, 0.1) }, 7.5);
    check(twin(0.2, 0.2, 1.0, 0.1), 2.0);
    check(twin(7.5, 7.5, 1.0, 0.5), 2.0);
    check(twin(7.5, 7.5, 8.0, 0.1), 2.0);
}

#[test]
fn harm_in_every_comparison_counts_where_arithmetic_has_no_answer() {
    let check = |cause, answer: Answer, expect| {
        let mut row = Row { margin: Some(4.0), ..Row::default() };
        row.decide(Verdict::NotKnown, cause, "Arithmetic has no answer.".to_owned());
        weigh(answer, Wanted::Flagged, 60.0, &mut row);
        assert_eq!(row.verdict == Verdict::Suffers, expect, "{}", row.finding);
        row
    };
    let missed = || twin(2.4, 2.6, 2.0, 0.7);
    let row = check(Cause::NotSimulated, missed(), true);
    assert_eq!((row.cause, row.confidence), (Cause::Simulated, Confidence::Low));
    assert!(row.finding.contains("at least 2.4 times what people notice"), "{}", row.finding);
    check(Cause::NoCgroups, missed(), false);
    check(Cause::NotSimulated, twin(1.9, 2.6, 2.0, 0.7), false);
    check(Cause::NotSimulated, Answer { since_recorded: 1.9, ..missed() }, false);
    check(Cause::NotSimulated, Answer { without_assumed_syncs: Some(1.9), ..missed() }, false);
    let better = Prediction { rows: vec![wait("stall_seconds", 16.0, 1.0)], ..nothing_predicted() };
    check(Cause::NotSimulated, Answer { prediction: better, ..missed() }, false);
}

#[test]
fn a_twin_that_holds_what_the_host_does_not_hold_does_not_count() {
    let check = |verdict, margin, peak, expect| {
        assert_eq!(judged(verdict, Cause::CgroupLimit, 2.0, margin, twin(6.0, 6.0, peak, 0.1)).0, expect);
    };
    check(Verdict::Suffers, 0.8, 8.0, Verdict::Tight);
    check(Verdict::Suffers, 0.8, 2.0, Verdict::Suffers);
    check(Verdict::Tight, 1.1, 1.9, Verdict::Tight);
    check(Verdict::Tight, 1.1, 1.2, Verdict::Suffers);
    check(Verdict::Tight, 1.9, 1.7, Verdict::Suffers);
}

#[test]
fn data_that_no_sample_shows_may_have_been_there_between_two() {
    let check = |is_between_samples, verdict, margin, peak, expect| {
        let answer = Answer { is_between_samples, ..twin(6.0, 6.0, peak, 0.1) };
        assert_eq!(judged(verdict, Cause::CgroupLimit, 2.0, margin, answer).0, expect);
    };
    check(true, Verdict::Suffers, 0.8, 8.0, Verdict::Suffers);
    check(false, Verdict::Suffers, 0.8, 8.0, Verdict::Tight);
    check(true, Verdict::Tight, 1.1, 1.9, Verdict::Suffers);
    check(false, Verdict::Tight, 1.1, 1.9, Verdict::Tight);
    // Such a twin clears nothing.
    let calm = |peak| Answer { is_between_samples: true, ..twin(0.0, 0.0, peak, 0.1) };
    assert_eq!(judged(Verdict::Tight, Cause::CgroupLimit, 0.5, 40.0, calm(8.0)).0, Verdict::Tight);
    assert_eq!(judged(Verdict::Tight, Cause::CgroupLimit, 0.5, 40.0, calm(1.2)).0, Verdict::Fine);
}

#[test]
fn more_data_than_recorded_does_not_matter_below_every_limit() {
    let check = |cause, margin, answer, expect| {
        let mut row = Row { margin: Some(margin), ..Row::default() };
        row.decide(Verdict::NotKnown, cause, "Arithmetic has no answer.".to_owned());
        weigh(answer, Wanted::Flagged, 60.0, &mut row);
        assert_eq!((row.verdict, row.confidence), (expect, Confidence::Low), "{}", row.finding);
        row.finding
    };
    let (suffers, not_known) = (Verdict::Suffers, Verdict::NotKnown);
    let told = check(Cause::NotSimulated, 34.0, twin(2.4, 2.6, 14.2, 0.1), suffers);
    assert!(told.contains("holds 14.2 times the recorded") && told.contains("at least 2.4 times"), "{told}");
    check(Cause::NotSimulated, 12.0, twin(2.4, 2.6, 14.2, 0.1), not_known);
    check(Cause::NotSimulated, 34.0, twin(1.9, 2.6, 14.2, 0.1), not_known);
    check(Cause::NotSimulated, 34.0, Answer { is_cut: true, ..twin(2.4, 2.6, 14.2, 0.1) }, not_known);
    check(Cause::NoCgroups, 34.0, twin(2.4, 2.6, 14.2, 0.1), not_known);
}

#[test]
fn a_multiple_of_little_data_is_told_as_it_is() {
    let answer = |weighed| Answer { peak: Some(Peak { times: 2000.0, weighed }), ..twin(2.4, 2.6, 57.2, 0.1) };
    let mut row = Row { margin: Some(3000.0), ..Row::default() };
    row.decide(Verdict::NotKnown, Cause::NotSimulated, "Arithmetic has no answer.".to_owned());
    weigh(answer(57.2), Wanted::Flagged, 60.0, &mut row);
    assert!(row.finding.contains("holds 2000.0 times the recorded unwritten data"), "{}", row.finding);
    let noted = |weighed| {
        let mut row = Row { margin: Some(0.3), ..Row::default() };
        row.decide(Verdict::Suffers, Cause::CgroupLimit, "It held much.".to_owned());
        weigh(answer(weighed), Wanted::Flagged, 60.0, &mut row);
        row.notes
    };
    assert_eq!(noted(57.2), ["The twin holds 2000.0 times the recorded unwritten data: it does not count."]);
    assert_eq!(noted(0.9), Vec::<String>::new(), "little data");
}

#[test]
fn less_data_at_risk_does_not_hide_pages_that_are_written_again() {
    let check = |row: prediction::Row, expect| {
        let prediction = Prediction { rows: vec![row], ..nothing_predicted() };
        let answer = Answer { dirties_again: true, prediction, ..twin(1.5, 1.5, 1.0, 0.1) };
        assert_eq!(judged(Verdict::Suffers, Cause::CgroupLimit, 1.1, 0.3, answer).0, expect);
    };
    check(
        prediction::Row::new("host.unwritten_peak_bytes", "peak data at risk", "bytes", 32e6, 12e6),
        Verdict::Suffers,
    );
    check(wait("stall_seconds", 62.0, 4.0), Verdict::Tight);
}

#[test]
fn a_threshold_that_grows_confirms_a_sync_that_no_recording_shows_with_medium_confidence() {
    let note = "The twin assumes a sync that no recording shows.";
    let check = |cause, without, answer: Answer, expect| {
        let mut row = Row { severity: 0.8, margin: Some(25.0), ..Row::default() };
        row.decide(Verdict::Tight, cause, "So it is.".to_owned());
        weigh(Answer { without_assumed_syncs: without, ..answer }, Wanted::Flagged, 60.0, &mut row);
        assert_eq!((row.verdict, row.confidence, row.notes.iter().any(|one| one == note)), expect, "{}", row.finding);
        row.severity
    };
    let (high, medium, low) = (Confidence::High, Confidence::Medium, Confidence::Low);
    let harms = || twin(2.4, 2.4, 1.0, 0.1);
    assert_eq!(check(Cause::DirtyCliff, Some(0.0), harms(), (Verdict::Suffers, medium, true)), 2.4);
    // Programs wait for long enough without that sync, or the recording shows the caller of each.
    check(Cause::DirtyCliff, Some(1.2), harms(), (Verdict::Suffers, high, false));
    check(Cause::DirtyCliff, None, harms(), (Verdict::Suffers, high, false));
    check(Cause::DirtyCliff, Some(0.0), twin(0.8, 0.8, 1.0, 0.1), (Verdict::Tight, high, false));
    check(Cause::DirtyCliff, Some(0.0), twin(2.4, 2.4, 1.0, 0.4), (Verdict::Tight, low, false));
    check(Cause::MachineLimit, Some(0.0), harms(), (Verdict::Tight, high, false));
}

#[test]
fn pages_that_a_new_kernel_has_written_again_are_harm_without_a_longer_wait() {
    let check = |gets_folios, error, expect| {
        let mut row = Row { margin: Some(3.0), gets_folios, ..Row::default() };
        row.decide(Verdict::Fine, Cause::WideMargin, "So it is.".to_owned());
        let more = prediction::Row::new("devices.written_bytes", "written to disks", "bytes", 60e6, 1.8e9);
        let prediction = Prediction { rows: vec![wait("stall_seconds", 0.0, 0.02), more], ..nothing_predicted() };
        let answer = Answer { dirties_again: true, prediction, ..twin(7.0, 7.0, 1.0, error) };
        weigh(answer, Wanted::Flagged, 60.0, &mut row);
        assert_eq!(row.verdict == Verdict::Suffers, expect, "{}", row.finding);
    };
    check(true, 0.04, true);
    check(false, 0.04, false);
    check(true, 0.4, false);
}

pub(in crate::simulated) fn wait(figure: &str, now: f64, then: f64) -> prediction::Row {
    prediction::Row { least: 0.1, ..prediction::Row::new(figure, figure, "seconds", now, then) }
}

#[test]
fn a_longest_wait_that_is_not_predictable_is_not_shown() {
    let doubtful = |row| prediction::Row { doubt: Some(prediction::Doubt::BackTest), ..row };
    let check = |fsync: prediction::Row, write: prediction::Row, expect| {
        let mut row = Row::default();
        fill(&Prediction { rows: vec![fsync, write], ..nothing_predicted() }, None, &mut row);
        assert_eq!(row.longest_wait_now_seconds.zip(row.longest_wait_then_seconds), expect);
    };
    let fsync = || wait("durable.longest_wait_seconds", 6.17, 0.109);
    let write = || wait("longest_write_wait_seconds", 0.02, 0.216);
    check(fsync(), doubtful(write()), Some((6.17, 0.109)));
    // The longest call may be a sync.
    check(doubtful(fsync()), write(), None);
    // The longest of both, before and after.
    check(fsync(), write(), Some((6.17, 0.216)));
    check(doubtful(fsync()), doubtful(write()), None);
}

#[test]
fn a_sick_host_that_gets_better_does_not_suffer_from_a_cost_that_is_hardly_noticed() {
    let judged = |severity, sick: Option<&str>, cause, rows: Vec<prediction::Row>, expect| {
        let mut row = Row { sick_already: sick.map(str::to_owned), margin: Some(0.3), ..Row::default() };
        row.decide(Verdict::Suffers, cause, "It held much.".to_owned());
        let prediction = Prediction { rows, ..nothing_predicted() };
        weigh(Answer { prediction, ..twin(severity, severity, 1.0, 0.02) }, Wanted::Flagged, 60.0, &mut row);
        assert_eq!(row.verdict, expect, "{}", row.finding);
        row.finding
    };
    let check = |sick, cause, rows, expect| judged(0.9, sick, cause, rows, expect);
    let sick = Some("overlay-umount-flush");
    let umount = |then| wait("umount.longest_wait_seconds", 6.0, then);
    let stall = |then| wait("stall_seconds", 9.0, then);
    let limit = Cause::MachineLimit;
    let told = check(sick, limit, vec![umount(0.9), stall(13.0)], Verdict::Tight);
    assert!(told.starts_with("The host suffers now (overlay-umount-flush), and the change helps: umount"), "{told}");
    assert!(told.contains("It costs: stall_seconds 9.00 s → about 13 s."), "{told}");
    check(sick, limit, vec![umount(0.9), stall(5.0)], Verdict::Tight);
    // A cost that is noticed counts, whatever gets shorter beside it.
    let told = judged(1.1, sick, limit, vec![umount(0.9), stall(16.0)], Verdict::Suffers);
    assert!(told.contains("umount") && !told.contains("helps"), "{told}");
    judged(5.0, sick, limit, vec![umount(4.5), stall(730.0)], Verdict::Suffers);
    // No wait gets longer.
    let told = check(sick, limit, vec![umount(6.0), stall(5.0)], Verdict::Tight);
    assert!(told.contains("no task waits noticeably longer"), "{told}");
    judged(5.0, None, limit, vec![umount(0.9), stall(13.0)], Verdict::Suffers);
    judged(5.0, sick, Cause::StarvedBudget, vec![umount(0.9), stall(13.0)], Verdict::Suffers);
}

#[test]
fn a_host_suffers_only_by_figures_that_are_stated_and_get_worse() {
    let doubted =
        |now, then| prediction::Row { doubt: Some(prediction::Doubt::BackTest), ..wait("stall_seconds", now, then) };
    let check = |from, error, stall: prediction::Row, expect| {
        let mut row = Row { margin: Some(0.3), ..Row::default() };
        row.decide(from, Cause::MachineLimit, "By arithmetic.".to_owned());
        let prediction = Prediction { rows: vec![stall], ..nothing_predicted() };
        weigh(Answer { prediction, ..twin(60.0, 60.0, 1.0, error) }, Wanted::Flagged, 60.0, &mut row);
        assert_eq!((row.verdict, row.confidence), expect, "{}", row.finding);
        row
    };
    let (suffers, tight, fine) = (Verdict::Suffers, Verdict::Tight, Verdict::Fine);
    let (low, medium, high) = (Confidence::Low, Confidence::Medium, Confidence::High);
    let stall = |then| wait("stall_seconds", 62.0, then);
    for from in [suffers, tight, fine] {
        check(from, 0.1, stall(97.0), (suffers, high));
    }
    check(suffers, 0.1, stall(4.11), (tight, high));
    check(tight, 0.1, stall(4.11), (tight, high));
    check(suffers, 0.1, stall(62.5), (tight, high));
    check(fine, 0.1, stall(62.5), (fine, high));
    // The twin refuses the figure: arithmetic stands, and no figure does.
    let row = check(suffers, 0.1, doubted(62.0, 4.11), (suffers, medium));
    assert!(!row.finding.contains("62 s") && row.finding.contains("not predictable"), "{}", row.finding);
    assert_eq!((row.stall_now_seconds, row.stall_then_seconds), (None, None));
    check(fine, 0.1, doubted(62.0, 97.0), (tight, high));
    // A twin that misses its recording: the figure is marked.
    let row = check(suffers, 0.4, stall(97.0), (suffers, low));
    assert!(row.finding.contains("In a twin that misses this recording: tasks wait 62 s"), "{}", row.finding);
    let row = check(suffers, 0.4, stall(4.11), (suffers, low));
    assert!(!row.finding.contains("4.11"), "{}", row.finding);
    assert!(row.severity <= SEVERITY_MAX);
}

#[test]
fn a_row_does_not_say_that_no_wait_gets_longer_beside_one_that_does() {
    for from in [Verdict::Tight, Verdict::NotKnown, Verdict::Fine] {
        let mut row = Row { margin: Some(9.0), ..Row::default() };
        row.decide(from, Cause::NotSimulated, "By arithmetic.".to_owned());
        let prediction = Prediction { rows: vec![wait("stall_seconds", 5.63, 16.0)], ..nothing_predicted() };
        weigh(Answer { prediction, ..twin(0.1, 0.1, 1.0, 0.1) }, Wanted::Flagged, 48.0, &mut row);
        assert_eq!(row.verdict, Verdict::Tight, "{}", row.finding);
        assert!(row.finding.contains("5.63 s → about 16 s") && !row.finding.contains("no task"), "{}", row.finding);
    }
}

#[test]
fn a_twin_of_another_host_is_named_as_the_reason() {
    let mut row = Row::default();
    row.decide(Verdict::NotKnown, Cause::NotSimulated, "Arithmetic has no answer.".to_owned());
    weigh(twin(0.0, 0.0, 9.0, 0.1), Wanted::Flagged, 60.0, &mut row);
    assert_eq!((row.verdict, row.cause), (Verdict::NotKnown, Cause::UnlikeTwin));
    assert!(!row.hint.contains("--tier"), "{}", row.hint);
}

/// A host for which arithmetic predicts waits of this severity, after the answer of a twin.
fn with_predicted_waits(by_arithmetic: f64, answer: Answer) -> Row {
    let mut row = Row { severity: by_arithmetic, margin: Some(0.3), predicts_waits: true, ..Row::default() };
    row.decide(Verdict::Suffers, Cause::CgroupLimit, "By arithmetic.".to_owned());
    weigh(answer, Wanted::Flagged, 60.0, &mut row);
    row
}

#[test]
fn a_predicted_wait_stands_where_the_twin_is_that_of_another_host() {
    let check = |by_arithmetic, peak, expect| {
        let row = with_predicted_waits(by_arithmetic, twin(0.0, 0.0, peak, 0.75));
        assert_eq!((row.verdict, row.severity, row.confidence), expect, "{}", row.finding);
    };
    check(2.6, 3.1, (Verdict::Suffers, 2.6, Confidence::Medium));
    // Too short to be noticed.
    check(0.8, 3.1, (Verdict::Tight, 0.8, Confidence::Low));
    // A twin of this host that misses its recording.
    check(2.6, 2.9, (Verdict::Tight, 0.5, Confidence::Low));
}

#[test]
fn arithmetic_alone_decides_where_a_twin_that_misses_its_recording_predicts_no_wait() {
    let check = |by_arithmetic, may_fit, doubt, (error, recorded_stall_seconds), expect| {
        let stall = prediction::Row { doubt, ..wait("stall_seconds", 9.0, 9.0) };
        let prediction = Prediction { rows: vec![stall], ..nothing_predicted() };
        let answer = Answer { prediction, recorded_stall_seconds, ..twin(0.0, 0.0, 1.0, error) };
        let mut row =
            Row { severity: by_arithmetic, margin: Some(0.3), predicts_waits: true, may_fit, ..Row::default() };
        row.decide(Verdict::Suffers, Cause::MachineLimit, "By arithmetic.".to_owned());
        weigh(answer, Wanted::Flagged, 60.0, &mut row);
        assert_eq!((row.verdict, row.severity), expect, "{}", row.finding);
    };
    let missed = Some(prediction::Doubt::BackTest);
    check(7.0, false, missed, (0.98, 0.0), (Verdict::Suffers, 7.0));
    // The other answers are too weak alone: less harm, data that may fit, and waits that are there before the change.
    check(4.0, false, missed, (0.98, 0.0), (Verdict::Tight, 0.5));
    check(7.0, true, missed, (0.98, 0.0), (Verdict::Tight, 0.5));
    check(7.0, false, missed, (0.98, 18.0), (Verdict::Suffers, 4.0));
    check(7.0, false, missed, (0.98, 37.0), (Verdict::Tight, 0.5));
    // The twin predicts the waits.
    check(7.0, false, None, (0.98, 0.0), (Verdict::Tight, 0.5));
}

#[test]
fn a_change_that_ends_a_sickness_is_said_to_cure_it() {
    let check = |relieves, vanish: &[&'static str], then, error, expect: (Cause, &str)| {
        let mut row = Row { sick_already: Some("dirty-cliff".to_owned()), margin: Some(9.0), ..Row::default() };
        row.decide(Verdict::Fine, Cause::SickAlready, "The host is sick before the change.".to_owned());
        let seen = |rule: &&'static str| prediction::Seen { rule, severity: Severity::Critical };
        let rows = vec![wait("stall_seconds", 80.0, then)];
        let prediction = Prediction { rows, vanish: vanish.iter().map(seen).collect(), ..nothing_predicted() };
        weigh(Answer { relieves, prediction, ..twin(0.0, 0.0, 1.0, error) }, Wanted::Flagged, 82.0, &mut row);
        assert_eq!((row.verdict, row.cause), (Verdict::Fine, expect.0), "{}", row.finding);
        assert!(row.finding.ends_with(expect.1), "{}", row.finding);
    };
    let cured = "the change cures it. Predicted: tasks wait 80 s → about 200 ms in 82 s.";
    check(true, &["dirty-cliff"], 0.2, 0.1, (Cause::Cured, cured));
    let helped = "the change helps. Predicted: tasks wait 80 s → about 50 s in 82 s.";
    check(false, &[], 50.0, 0.1, (Cause::Helped, helped));
    let same = "The host is sick before the change.";
    check(false, &[], 80.0, 0.1, (Cause::SickAlready, same));
    check(true, &["dirty-cliff"], 0.2, 0.5, (Cause::SickAlready, same));
}

#[test]
fn a_difference_that_people_do_not_notice_is_none_and_a_shorter_unmount_is_told() {
    let mut row = Row::default();
    let fsync = wait("durable.longest_wait_seconds", 0.00353, 0.00202);
    let unmount = wait("umount.longest_wait_seconds", 9.9, 5.3);
    let prediction = Prediction { rows: vec![fsync, unmount], ..nothing_predicted() };
    fill(&prediction, None, &mut row);
    assert_eq!((row.longest_wait_now_seconds, row.longest_wait_then_seconds), (Some(0.00353), Some(0.00353)));
    let told = effect("Predicted", &row, &prediction, 15.0);
    assert_eq!(told, "Predicted: umount.longest_wait_seconds 9.90 s → about 5.30 s.");
}

#[test]
fn data_that_is_removed_takes_a_part_of_a_predicted_wait() {
    let check = |removed_share, peak, expect| {
        let mut row = Row { severity: 4.0, margin: Some(0.3), predicts_waits: true, removed_share, ..Row::default() };
        row.decide(Verdict::Suffers, Cause::CgroupLimit, "So it is.".to_owned());
        weigh(twin(4.0, 4.0, peak, 0.5), Wanted::Flagged, 60.0, &mut row);
        assert_eq!((row.verdict, row.severity), expect, "{removed_share} {peak}");
    };
    check(0.0, 4.0, (Verdict::Suffers, 4.0));
    check(0.75, 4.0, (Verdict::Suffers, 2.0));
    // What is left is too short to be noticed.
    check(0.984375, 4.0, (Verdict::Tight, 0.5));
    // A twin of this host has what is removed.
    check(0.75, 1.0, (Verdict::Suffers, 4.0));
}

#[test]
fn two_predictions_of_longer_waits_decide_by_their_mean() {
    let check = |by_arithmetic, rows: Vec<prediction::Row>, error, expect| {
        let recorded_stall_seconds = rows[0].now;
        let prediction = Prediction { rows, ..nothing_predicted() };
        let answer = Answer { prediction, recorded_stall_seconds, ..twin(0.5, 0.5, 1.0, error) };
        let row = with_predicted_waits(by_arithmetic, answer);
        assert_eq!(row.verdict, expect, "{}", row.finding);
        row.severity
    };
    let stall = |now, then| vec![wait("stall_seconds", now, then)];
    let severity = check(4.5, stall(0.0, 3.0), 0.1, Verdict::Suffers);
    assert!((severity - 1.5).abs() < 1e-9, "{severity}");
    check(1.5, stall(0.0, 3.0), 0.1, Verdict::Tight);
    // Of the waits by arithmetic, tasks wait 18 s of 60 s before the change.
    check(4.5, stall(18.0, 24.0), 0.1, Verdict::Tight);
    check(4.5, stall(30.0, 38.0), 0.1, Verdict::Tight);
    // The twin predicts another wait only, and that gets longer as well.
    check(4.5, vec![wait("longest_write_wait_seconds", 0.1, 0.6)], 0.1, Verdict::Suffers);
    // The twin misses its recording.
    check(4.5, stall(0.0, 3.0), 0.4, Verdict::Tight);
}

#[test]
fn an_answer_that_depends_on_a_limit_that_no_sample_shows_is_not_known() {
    let check = |on_slowest_disks, severity: f64, expect| {
        let mut row = Row { margin: Some(4.0), ..Row::default() };
        row.decide(Verdict::NotKnown, Cause::NotSimulated, "Arithmetic has no answer.".to_owned());
        let prediction = Prediction { rows: vec![wait("stall_seconds", 1.0, 1.0)], ..nothing_predicted() };
        let calm = Answer { on_slowest_disks, prediction, ..twin(severity, severity, 1.0, 0.1) };
        weigh(calm, Wanted::Flagged, 60.0, &mut row);
        assert_eq!((row.verdict, row.cause), expect, "{}", row.finding);
        row
    };
    let fine = (Verdict::Fine, Cause::WideMargin);
    check(None, 0.0, fine);
    check(Some(1.9), 0.0, fine);
    let row = check(Some(6.4), 0.0, (Verdict::NotKnown, Cause::LimitNotSeen));
    assert!(
        row.finding.contains("On the faster disk of the twin they do not.") && row.hint.contains("record --for"),
        "{row:?}"
    );
}

#[test]
fn arithmetic_is_a_lower_bound_where_pages_are_dirtied_again() {
    let check = |by_arithmetic, dirties_again, expect: f64| {
        let answer = Answer { dirties_again, ..twin(9.0, 9.0, 1.0, 0.5) };
        let severity = with_predicted_waits(by_arithmetic, answer).severity;
        assert!((severity - expect).abs() < 1e-9, "{severity}");
    };
    check(4.0, false, 6.0);
    check(4.0, true, 9.0);
    // A bound that lies above the twin is none.
    check(16.0, true, 12.0);
}

#[test]
fn the_harm_of_a_twin_that_reproduces_the_recording_stands() {
    let check = |by_arithmetic, (least, most), error, expect: f64| {
        let severity = with_predicted_waits(by_arithmetic, twin(least, most, 1.0, error)).severity;
        assert!((severity - expect).abs() < 1e-9, "{severity}");
    };
    // Requests get smaller, or a limit of I/O begins to hold: arithmetic leaves that out.
    check(1.0, (9.0, 9.0), 0.2, 9.0);
    check(1.0, (9.0, 9.0), 0.3, 3.0);
    // Arithmetic chooses between two demands.
    check(4.0, (2.0, 9.0), 0.2, 4.0);
    check(16.0, (2.0, 9.0), 0.2, 9.0);
}

#[test]
fn a_disk_that_lends_speed_takes_longer_than_arithmetic_says() {
    let check = |slower, expect: f64| {
        let severity = with_predicted_waits(4.0, Answer { slower, ..twin(9.0, 9.0, 1.0, 0.5) }).severity;
        assert!((severity - expect).abs() < 1e-9, "{severity}");
    };
    check(1.0, 6.0);
    check(4.0, 12.0);
}

#[test]
fn a_twin_that_waits_before_the_change_as_well_hides_nothing() {
    let prediction = Prediction { rows: vec![wait("longest_write_wait_seconds", 0.0, 0.9)], ..nothing_predicted() };
    for (since_recorded, expect) in [(0.0, (Verdict::Tight, 0.0)), (1.5, (Verdict::Suffers, 1.5))] {
        let answer = Answer { since_recorded, prediction: prediction.clone(), ..twin(0.0, 0.0, 1.0, 0.1) };
        let row = with_predicted_waits(4.0, answer);
        assert_eq!((row.verdict, row.severity), expect, "{}", row.finding);
    }
}

#[test]
fn a_sync_that_the_twin_assumes_is_no_evidence_by_itself() {
    let check = |from, without, expect| {
        let answer = Answer { without_assumed_syncs: without, ..twin(17.0, 17.0, 1.0, 0.0) };
        assert_eq!(judged(from, Cause::MachineLimit, 2.0, 3.0, answer).0, expect);
    };
    check(Verdict::Tight, Some(0.0), Verdict::Tight);
    check(Verdict::NotKnown, Some(0.0), Verdict::Tight);
    check(Verdict::NotKnown, Some(3.0), Verdict::Suffers);
    check(Verdict::NotKnown, None, Verdict::Suffers);
    check(Verdict::Suffers, Some(0.0), Verdict::Suffers);
}

#[test]
fn one_sync_that_waits_for_all_is_between_both_predictions() {
    let mut row = Row { severity: 8.0, margin: Some(40.0), is_firm: true, waits_for_pile: true, ..Row::default() };
    row.decide(Verdict::Suffers, Cause::DirtyCliff, "It piles up.".to_owned());
    weigh(twin(2.0, 2.0, 1.0, 0.1), Wanted::Flagged, 60.0, &mut row);
    assert_eq!((row.verdict, row.severity), (Verdict::Suffers, 4.0), "{}", row.finding);
}

#[test]
fn a_cliff_with_few_flushes_is_tight_where_the_recorded_waits_end() {
    let check = |relieves, syncs_rarely, error, expect| {
        let rows = vec![wait("stall_seconds", 12.0, 0.1)];
        let answer =
            Answer { relieves, prediction: Prediction { rows, ..nothing_predicted() }, ..twin(0.0, 0.0, 1.0, error) };
        let mut row = Row { severity: 8.0, margin: Some(7.0), is_firm: true, syncs_rarely, ..Row::default() };
        row.decide(Verdict::Suffers, Cause::DirtyCliff, "It piles up.".to_owned());
        weigh(answer, Wanted::Flagged, 60.0, &mut row);
        assert_eq!(row.verdict, expect, "{}", row.finding);
    };
    check(true, true, 0.02, Verdict::Tight);
    check(false, true, 0.02, Verdict::Suffers);
    // Many flushes are those of programs that sync.
    check(true, false, 0.02, Verdict::Suffers);
    check(true, true, 0.5, Verdict::Suffers);
}

#[test]
fn a_host_is_not_named_without_a_figure_that_changes() {
    let check = |severity, rows: Vec<prediction::Row>, expect: (Verdict, &str)| {
        let mut row = Row { margin: Some(3.0), ..Row::default() };
        row.decide(Verdict::NotKnown, Cause::NotSimulated, "Arithmetic has no answer.".to_owned());
        let prediction = Prediction { rows, ..nothing_predicted() };
        weigh(Answer { prediction, ..twin(severity, severity, 1.0, 0.1) }, Wanted::Flagged, 60.0, &mut row);
        assert!(row.verdict == expect.0 && row.finding.contains(expect.1), "{} {}", row.verdict.name(), row.finding);
    };
    let doubted = prediction::Row { doubt: Some(prediction::Doubt::BackTest), ..wait("stall_seconds", 9.0, 30.0) };
    check(0.7, vec![doubted.clone()], (Verdict::Fine, "No predicted figure changes noticeably"));
    check(4.0, vec![doubted], (Verdict::Tight, "not predictable"));
    // A wait that is longer by little is the reason where there is no other.
    check(
        1.5,
        vec![prediction::Row { least: 0.05, ..wait("durable.longest_wait_seconds", 0.44, 0.52) }],
        (Verdict::Suffers, "440 ms → about 520 ms"),
    );
}

#[test]
fn an_assumed_sync_that_waits_for_less_helps_nobody() {
    let shorter = || wait("durable.longest_wait_seconds", 8.0, 2.0);
    let answer = |without| {
        let prediction = Prediction { rows: vec![shorter()], ..nothing_predicted() };
        Answer { without_assumed_syncs: without, severity: 0.0, prediction, ..twin(0.0, 0.0, 1.0, 0.1) }
    };
    let check = |verdict, without, expect| {
        assert_eq!(judged(verdict, Cause::CgroupLimit, 4.0, 0.3, answer(without)).0, expect, "{without:?}");
    };
    // The program waits longer, and the sync that is assumed hides it.
    check(Verdict::Suffers, Some(2.4), Verdict::Suffers);
    check(Verdict::Suffers, Some(0.1), Verdict::Tight);
    // The sync of the recording is evidence.
    check(Verdict::Suffers, None, Verdict::Tight);
}
