// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of what becomes of findings, and of the doubts about them.

use super::*;
use crate::shown::Trial;

fn row(figure: &str, label: &str, unit: &'static str, now: f64, then: f64) -> Row {
    Row { least: 0.02, ..Row::new(figure, label, unit, now, then) }
}

fn found(seen: Vec<Seen>) -> Shown {
    Shown { said: Verdicts { seen, ..Verdicts::default() }, ..Shown::default() }
}

#[test]
fn a_finding_that_the_twin_lacks_stays_unless_what_it_rests_on_gets_better() {
    let wait = |then| row("durable.longest_wait_seconds", "longest fsync", "seconds", 2.0, then);
    assert!(lasts("fsync-behind-writeback", &[wait(2.0)]));
    assert!(lasts("fsync-behind-writeback", &[wait(3.0)]));
    assert!(!lasts("fsync-behind-writeback", &[wait(1.0)]));
    let unknown = Row { doubt: Some(Doubt::BackTest), ..wait(2.0) };
    assert!(lasts("fsync-behind-writeback", &[unknown]));
    assert!(!lasts("contradictory-dirty-settings", &[wait(2.0)]), "it rests on no figure");
}

#[test]
fn a_finding_that_only_the_twin_shows_appears_if_what_it_rests_on_gets_worse() {
    let wait = |then| row("durable.longest_wait_seconds", "longest fsync", "seconds", 0.6, then);
    assert!(worsens("fsync-behind-writeback", &[wait(8.0)]));
    assert!(!worsens("fsync-behind-writeback", &[wait(0.7)]));
    assert!(!worsens("fsync-behind-writeback", &[wait(0.1)]));
    assert!(!worsens("dirty-data-at-risk", &[wait(8.0)]), "it rests on another figure");
}

/// The doubts about findings of the recording, of the twin as it is, and of its changed runs, with the more likely answer.
fn doubts(
    (recorded, now, then): (Verdicts, Shown, Vec<Shown>),
    rows: &[Row],
    unknown_speed: Option<f64>,
) -> Vec<(&'static str, Reason, bool)> {
    let run = |seed| Run { demand: 0, is_changed: true, trial: Trial { seed, ..Trial::NOMINAL } };
    let results: Vec<(Run, Shown)> = then.into_iter().enumerate().map(|(at, one)| (run(at as u64), one)).collect();
    let none = Shown::default();
    let then = results.first().map_or(&none, |(_, one)| one).closely();
    let (changed, at_samples) = (changed(&results), at_samples(&results));
    let judged = Judged {
        recorded: &recorded,
        now: &now,
        then,
        changed,
        at_samples,
        usual: on_usual_disks(&results),
        rows,
        unknown_speed,
        slowest: Some(100e6),
        is_reliable: true,
        clears_strict: false,
    };
    judged.doubtful().into_iter().map(|one| (one.rule, one.reason, one.is_there)).collect()
}

fn seen(rule: &'static str) -> Vec<Seen> {
    vec![Seen { rule, severity: Severity::Critical }]
}

fn slight(rule: &'static str) -> Shown {
    Shown { said: Verdicts { slight: vec![rule], ..Verdicts::default() }, ..Shown::default() }
}

fn unchecked(rule: &'static str) -> Verdicts {
    Verdicts { unchecked: vec![rule], ..Verdicts::default() }
}

#[test]
fn a_finding_of_waits_vanishes_for_certain_only_where_a_wait_shrinks_clearly() {
    let wait = |high| Row { low: 0.1, high, ..row(LONGEST, "longest fsync", "seconds", 4.0, 0.4) };
    let check = |rule: &'static str, high: f64, expect: Option<Reason>| {
        let all = (found(seen(rule)).said, found(seen(rule)), vec![Shown::default()]);
        let told = doubts(all, &[wait(high)], None);
        assert_eq!(told.first().map(|(_, reason, _)| *reason), expect, "{rule} {high}");
    };
    check("fsync-behind-writeback", 1.5, None);
    check("fsync-behind-writeback", 8.0, Some(Reason::Waits));
    check("dirty-cliff", 8.0, None);
}

#[test]
fn where_syncs_are_not_measured_more_dirty_data_may_make_them_wait() {
    let peak = |then| row("host.unwritten_peak_bytes", "peak data at risk", "bytes", 30e6, then);
    let wait = |is_measured| Row { is_measured, ..row(LONGEST, "longest fsync", "seconds", 0.2, 0.2) };
    let check = |rows: &[Row], expect: &[&str]| {
        let told = doubts((Verdicts::default(), Shown::default(), Vec::new()), rows, None);
        let rules: Vec<&str> = told.iter().map(|(rule, ..)| *rule).collect();
        assert_eq!(rules, expect, "{rows:?}");
        assert!(told.iter().all(|(_, reason, is_there)| *reason == Reason::Assumed && !is_there));
    };
    check(&[wait(false), peak(600e6)], &COMES);
    let info = doubts((Verdicts::default(), Shown::default(), vec![slight(CLIFF)]), &[wait(false), peak(600e6)], None);
    assert_eq!(info, COMES.map(|rule| (rule, Reason::Assumed, false)), "an info of a run");
    check(&[wait(true), peak(600e6)], &[]);
    check(&[wait(false), peak(20e6)], &[]);
    check(&[peak(600e6)], &[]);
}

#[test]
fn where_a_disk_was_never_at_its_limit_more_dirty_data_may_make_tasks_wait() {
    let wait = |doubt| Row { doubt, ..row(LONGEST, "longest fsync", "seconds", 0.6, 0.6) };
    let peak = row("host.unwritten_peak_bytes", "peak data at risk", "bytes", 34e6, 398e6);
    let told = |speed: Option<f64>, doubt| {
        let rows = [wait(doubt), peak.clone()];
        doubts((Verdicts::default(), Shown::default(), Vec::new()), &rows, speed).len()
    };
    assert_eq!(told(Some(80e6), Some(Doubt::BackTest)), COMES.len());
    assert_eq!(told(None, None), 0, "each disk was at its limit");
    assert_eq!(told(Some(900e6), Some(Doubt::Demand)), 0, "it writes all of it in a moment");
    assert_eq!(told(Some(80e6), None), 0, "the wait is predicted");
}

#[test]
fn where_the_twin_misses_the_longest_sync_more_dirty_data_may_make_tasks_wait() {
    let wait = |doubt| Row { doubt, ..row(LONGEST, "longest fsync", "seconds", 0.35, 0.05) };
    let peak = |then| row("host.unwritten_peak_bytes", "peak data at risk", "bytes", 108e6, then);
    let told = |then, doubt, recorded: Shown| {
        doubts((recorded.said, Shown::default(), vec![Shown::default()]), &[wait(doubt), peak(then)], None)
    };
    let none = Shown::default;
    let missed = Some(Doubt::BackTest);
    let open = |rule| (rule, Reason::MissedWait, false);
    assert_eq!(told(417e6, missed, none()), COMES.map(open));
    assert_eq!(told(417e6, None, none()), [], "the wait is predicted");
    assert_eq!(told(90e6, missed, none()), [], "the disk writes all of it in a moment");
    let info = doubts((Verdicts::default(), Shown::default(), vec![slight(CLIFF)]), &[wait(missed), peak(417e6)], None);
    assert_eq!(info, COMES.map(open), "an info of a run");
    let known = told(417e6, missed, found(seen("fsync-behind-writeback")));
    assert_eq!(known.iter().filter(|(_, reason, _)| *reason == Reason::MissedWait).count(), 1, "{known:?}");
}

#[test]
fn how_long_data_at_risk_take_to_write_is_open_where_a_disk_was_never_at_its_limit() {
    let peak = |then| row("host.unwritten_peak_bytes", "peak data at risk", "bytes", 34e6, then);
    let told = |then: f64, said: Shown, speed| {
        let all = (Verdicts::default(), Shown::default(), vec![said]);
        doubts(all, &[peak(then)], speed)
    };
    assert_eq!(told(900e6, slight(AT_RISK), Some(1e9)), [(AT_RISK, Reason::Speed, false)]);
    assert_eq!(told(900e6, slight(AT_RISK), None), [], "each disk was at its limit");
    assert_eq!(told(900e6, Shown::default(), Some(1e9)), [], "no run has it");
    assert_eq!(told(36e6, slight(AT_RISK), Some(1e9)), [], "hardly more is at risk");
}

const CLIFF: &str = "dirty-cliff";

fn with(is_there: bool) -> Shown {
    if is_there { found(seen(CLIFF)) } else { Shown::default() }
}

#[test]
fn a_finding_is_certain_where_the_twin_is_like_the_recording_and_all_runs_agree() {
    let check = |(recorded, now, then): (bool, bool, [bool; 2]), expect: Option<(Reason, bool)>| {
        let wait = row(LONGEST, "longest fsync", "seconds", 0.2, 0.2);
        let told = doubts((with(recorded).said, with(now), then.map(with).to_vec()), &[wait], None);
        let told = told.first().map(|(_, reason, is_there)| (*reason, *is_there));
        assert_eq!(told, expect, "{recorded} {now} {then:?}");
    };
    check((true, true, [true, true]), None);
    check((true, true, [false, false]), None);
    check((true, true, [true, false]), Some((Reason::Runs, true)));
    check((true, false, [true, true]), Some((Reason::Unshown, true)));
    check((true, false, [false, true]), Some((Reason::Unshown, true)));
    check((true, false, [false, false]), Some((Reason::Unshown, false)));
    check((false, true, [true, true]), Some((Reason::OnlyTwin, false)));
    check((false, true, [false, false]), None);
    check((false, false, [true, true]), Some((Reason::New, true)));
    check((false, false, [true, false]), Some((Reason::Runs, false)));
    check((false, false, [false, false]), None);
    // A warning is near the line of its rule.
    let warned = Shown {
        said: Verdicts { seen: vec![Seen { rule: CLIFF, severity: Severity::Warning }], ..Verdicts::default() },
        ..Shown::default()
    };
    let told = doubts((with(false).said, with(false), vec![warned.clone(), warned]), &[], None);
    assert_eq!(told, [(CLIFF, Reason::NewWarning, true)]);
}

#[test]
fn a_finding_that_a_run_shows_does_not_end_for_certain() {
    let peak = Row { low: 40e6, high: 130e6, ..row(PEAK, "peak data at risk", "bytes", 294e6, 91e6) };
    let told = |then: [bool; 2]| {
        let all = (with(true).said, with(false), then.map(with).to_vec());
        doubts(all, std::slice::from_ref(&peak), None).first().map(|(_, reason, is_there)| (*reason, *is_there))
    };
    assert_eq!(told([false, false]), None, "the data at risk shrink to less than half");
    assert_eq!(told([true, false]), Some((Reason::Unshown, true)));
}

#[test]
fn what_one_run_of_several_has_is_a_doubt_of_its_own() {
    let told = |then: &[bool]| {
        let then = then.iter().map(|one| with(*one)).collect();
        doubts((with(false).said, with(false), then), &[], None)
    };
    assert_eq!(told(&[false, true, false]), [(CLIFF, Reason::OneRun, false)]);
    assert_eq!(told(&[false, false, true, false]), [(CLIFF, Reason::OneRun, false)]);
    assert_eq!(told(&[false, true, true, false]), [(CLIFF, Reason::Runs, false)]);
    assert_eq!(told(&[false, true]), [(CLIFF, Reason::Runs, false)], "half of them");
}

#[test]
fn a_new_finding_of_waits_does_not_come_where_tasks_wait_no_longer() {
    let told = |then: f64, roughly, is_measured| {
        let waits = Row { roughly, is_measured, ..row(WAITS, "waits of all tasks", "seconds", 20.0, then) };
        doubts((with(false).said, with(false), vec![with(true)]), &[waits], None)
    };
    let (new, no_longer) = ([(CLIFF, Reason::New, true)], [(CLIFF, Reason::NoLonger, false)]);
    assert_eq!(told(21.0, None, true), no_longer);
    assert_eq!(told(45.0, None, true), new);
    assert_eq!(told(45.0, Some((19.0, 45.0)), true), no_longer, "one of two estimates");
    assert_eq!(told(45.0, Some((31.0, 45.0)), true), new);
    assert_eq!(told(21.0, None, false), new, "the recording does not have them");
    let rule = "starved-dirty-budget";
    let waits = row(WAITS, "waits of all tasks", "seconds", 20.0, 21.0);
    let all = (Verdicts::default(), Shown::default(), vec![found(seen(rule))]);
    assert_eq!(doubts(all, &[waits], None), [(rule, Reason::New, true)], "it does not hurt by waits alone");
}

#[test]
fn nothing_is_certain_by_a_twin_that_misses_its_recording() {
    let check = |is_reliable, (recorded, now, then): (bool, bool, bool), expect: Option<(Reason, bool)>| {
        let (recorded, now, then) = (with(recorded).said, with(now), with(then).said);
        let judged = Judged {
            recorded: &recorded,
            now: &now,
            then: &then,
            changed: vec![&then, &then],
            at_samples: vec![&then, &then],
            usual: None,
            rows: &[],
            unknown_speed: None,
            slowest: None,
            is_reliable,
            clears_strict: false,
        };
        let told = judged.doubtful().first().map(|one| (one.reason, one.is_there));
        assert_eq!(told, expect, "{recorded:?} {now:?} {then:?}");
        assert_eq!(judged.no_other().is_none(), is_reliable);
    };
    check(true, (true, true, true), None);
    check(false, (true, true, true), Some((Reason::Missed, true)));
    check(false, (true, true, false), Some((Reason::Missed, false)));
    check(false, (false, true, false), Some((Reason::Missed, false)));
    check(false, (false, false, true), Some((Reason::New, true)));
    check(false, (false, false, false), None);
}

#[test]
fn a_finding_stays_for_certain_only_by_a_figure_that_the_twin_does_not_miss() {
    let peak = |doubt| Row { doubt, ..row(PEAK, "peak data at risk", "bytes", 45e6, 45e6) };
    let told = |rows: &[Row], then| {
        let all = (with(true).said, with(true), vec![with(then)]);
        doubts(all, rows, None).first().map(|(_, reason, _)| *reason)
    };
    let missed = || peak(Some(Doubt::BackTest));
    assert_eq!(told(&[missed()], true), Some(Reason::Missed));
    assert_eq!(told(&[missed()], false), None, "it ends in every run");
    assert_eq!(told(&[peak(None)], true), None);
    let write = row("longest_write_wait_seconds", "longest write call", "seconds", 2.0, 2.0);
    assert_eq!(told(&[missed(), write.clone()], true), None);
    let assumed = Row { is_measured: false, ..write };
    assert_eq!(told(&[missed(), assumed.clone()], true), Some(Reason::Missed));
    assert_eq!(told(&[assumed], true), None, "the recording has no such wait");
}

/// The reason for the doubt about a finding by a twin that misses its recording.
fn doubt_of_unlike(rule: &'static str, rows: &[Row], (now, then): (bool, bool)) -> Option<Reason> {
    let with = |is_there: bool| if is_there { found(seen(rule)) } else { Shown::default() };
    let (now, then) = (with(now), with(then).said);
    let recorded = with(true).said;
    let changed = vec![&then, &then];
    let judged = Judged {
        recorded: &recorded,
        now: &now,
        then: &then,
        at_samples: changed.clone(),
        changed,
        usual: None,
        rows,
        unknown_speed: None,
        slowest: None,
        is_reliable: false,
        clears_strict: false,
    };
    judged.fate(rule).doubt
}

#[test]
fn a_finding_of_settings_alone_is_certain_whatever_the_twin_misses() {
    let rule = "contradictory-dirty-settings";
    assert_eq!(doubt_of_unlike(rule, &[], (true, false)), None);
    assert_eq!(doubt_of_unlike(rule, &[], (true, true)), None);
    let all = (Verdicts::default(), Shown::default(), vec![found(seen(rule))]);
    assert_eq!(doubts(all, &[], None), [], "settings of the change itself");
    assert_eq!(doubt_of_unlike(CLIFF, &[], (true, true)), Some(Reason::Missed));
}

#[test]
fn what_a_finding_rests_on_decides_where_a_twin_misses_other_figures() {
    let peak = |doubt| Row { doubt, ..row(PEAK, "peak data at risk", "bytes", 339e6, 32e6) };
    let wait = row(LONGEST, "longest fsync", "seconds", 4.1, 0.09);
    let wait = Row { doubt: Some(Doubt::BackTest), ..wait };
    let told = |rule, doubt, then| doubt_of_unlike(rule, &[wait.clone(), peak(doubt)], (true, then));
    assert_eq!(told(CLIFF, None, false), None, "its data are those of the recording");
    assert_eq!(told(CLIFF, Some(Doubt::BackTest), false), Some(Reason::Missed));
    assert_eq!(told("fsync-behind-writeback", None, true), Some(Reason::Missed), "it rests on the wait");
    let limit = row(SMALLEST_BUDGET, "smallest cgroup limit", "bytes", 1e6, 1e6);
    let missed = Some(Reason::Missed);
    assert_eq!(doubt_of_unlike("starved-dirty-budget", &[limit], (true, false)), missed, "no run decides a limit");
}

#[test]
fn what_hurts_in_a_twin_that_hurts_less_than_its_recording_hurts_on_the_host() {
    let wait = Row { doubt: Some(Doubt::BackTest), ..row(LONGEST, "longest fsync", "seconds", 9.3, 9.0) };
    let told = |now: f64, then: bool| {
        let figures = crate::shown::Figures::from([(LONGEST.to_owned(), now)]);
        let all = (with(true).said, Shown { figures, ..with(true) }, vec![with(then)]);
        doubts(all, std::slice::from_ref(&wait), None).first().map(|(_, reason, _)| *reason)
    };
    assert_eq!(told(4.6, true), None);
    assert_eq!(told(14.0, true), Some(Reason::Missed));
}

#[test]
fn a_finding_that_the_twin_has_below_a_warning_stays_unless_a_figure_of_it_gets_clearly_better() {
    let told = |now: Shown, then: Shown, rows: &[Row]| {
        let all = (with(true).said, now, vec![then]);
        doubts(all, rows, None).first().map(|(_, reason, is_there)| (*reason, *is_there))
    };
    let peak = |then| row(PEAK, "peak data at risk", "bytes", 135e6, then);
    let wait = row(LONGEST, "longest fsync", "seconds", 0.2, 0.2);
    let weaker = |then| told(slight(CLIFF), slight(CLIFF), &[wait.clone(), peak(then)]);
    assert_eq!(weaker(117e6), Some((Reason::Unshown, true)));
    assert_eq!(weaker(90e6), Some((Reason::Unshown, false)), "less is at risk");
    let gone = |rows: &[Row]| told(Shown::default(), Shown::default(), rows);
    assert_eq!(gone(&[wait.clone(), peak(135e6)]), Some((Reason::Unshown, false)), "no run has it");
    assert_eq!(gone(&[peak(135e6)]), Some((Reason::Unshown, true)), "no run syncs");
}

#[test]
fn a_finding_that_the_recording_has_as_an_info_is_a_doubt_about_severity() {
    let info = slight(CLIFF).said;
    let told = |now: bool, then| doubts((info.clone(), with(now), vec![with(then)]), &[], None);
    assert_eq!(told(true, true), [(CLIFF, Reason::Severity, false)]);
    assert_eq!(told(false, true), [(CLIFF, Reason::New, true)]);
    assert_eq!(told(true, false), []);
}

#[test]
fn what_the_recording_could_not_check_may_be_there_already() {
    let told = |recorded, now, then: Vec<Shown>| doubts((recorded, with(now), then), &[], None);
    let twice = || vec![with(true), with(true)];
    assert_eq!(told(unchecked(CLIFF), true, twice()), [(CLIFF, Reason::Hidden, true)]);
    assert_eq!(told(unchecked(CLIFF), false, twice()), [(CLIFF, Reason::New, true)]);
    assert_eq!(told(unchecked(CLIFF), true, vec![with(false)]), []);
    let without = Shown { said: unchecked(CLIFF), ..Shown::default() };
    assert_eq!(told(unchecked(CLIFF), true, vec![without]), [(CLIFF, Reason::Unchecked, false)]);
}

#[test]
fn a_stall_between_two_samples_of_the_recorder_counts() {
    let coarse =
        |close: bool| Shown { said: unchecked(CLIFF), close: Some(Box::new(with(close).said)), ..Shown::default() };
    let told = |recorded, now, then| doubts((recorded, coarse(now), vec![coarse(then)]), &[], None);
    let found = || with(true).said;
    assert_eq!(told(found(), true, false), [], "it ends");
    assert_eq!(told(found(), true, true), [(CLIFF, Reason::Runs, true)], "the recorder would not see it again");
    let seen = || Shown { close: Some(Box::new(found())), ..with(true) };
    assert_eq!(doubts((found(), seen(), vec![seen()]), &[], None), [], "it stays");
    assert_eq!(told(Verdicts::default(), true, true), [(CLIFF, Reason::Hidden, true)], "the recorder does not see it");
}

#[test]
fn pauses_of_a_strict_limit_end_for_certain_with_the_last_one() {
    let recorded = Verdicts { seen: seen("strictlimit-throttling"), ..Verdicts::default() };
    let (now, then) = (Shown::default(), Verdicts { seen: seen("strictlimit-throttling"), ..Verdicts::default() });
    let told = |clears_strict| {
        let judged = Judged {
            recorded: &recorded,
            now: &now,
            then: &then,
            changed: vec![&now.said],
            at_samples: vec![&now.said],
            usual: None,
            rows: &[],
            unknown_speed: None,
            slowest: None,
            is_reliable: false,
            clears_strict,
        };
        (judged.fate("strictlimit-throttling").is_there, judged.doubtful().len())
    };
    assert_eq!(told(true), (false, 0), "it cannot stay");
    assert_eq!(told(false).1, 1, "another device has one");
}

#[test]
fn a_finding_that_only_disks_of_a_usual_speed_show_may_come() {
    let told = |waits: f64| {
        let on = |demand, is_changed| Run { demand, is_changed, trial: Trial::NOMINAL };
        let with = |waits: f64, shown: Shown| Shown { figures: [(WAITS.to_owned(), waits)].into(), ..shown };
        let results = vec![
            (on(0, false), with(0.1, Shown::default())),
            (on(0, true), with(0.1, Shown::default())),
            (on(Run::ON_USUAL_DISKS, false), with(waits, Shown::default())),
            (on(Run::ON_USUAL_DISKS, true), with(9.0, found(seen("fsync-behind-writeback")))),
        ];
        assert_eq!(changed(&results).len(), 1, "these disks are not those of the twin");
        let (recorded, now) = (Verdicts::default(), Shown::default());
        let judged = Judged {
            recorded: &recorded,
            now: &now,
            then: results[1].1.closely(),
            changed: changed(&results),
            at_samples: at_samples(&results),
            usual: on_usual_disks(&results),
            rows: &[],
            unknown_speed: None,
            slowest: None,
            is_reliable: true,
            clears_strict: false,
        };
        judged.doubtful().into_iter().map(|one| (one.rule, one.reason, one.is_there)).collect::<Vec<_>>()
    };
    assert_eq!(told(0.1), [("fsync-behind-writeback", Reason::Speed, false)]);
    assert_eq!(told(5.0), [], "the recording has no such disk: its tasks would have waited");
}
