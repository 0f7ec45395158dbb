// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which findings the changed host has, where the twin and its recording differ in one: the figures that the finding rests
//! on decide. Also which of these answers are certain, and how likely the others are.

use super::row::SMALLEST_BUDGET;
use super::{Run, odds};
use crate::shown::{Shown, Verdicts};
use floodline_analysis::prediction::{Better, Doubt, Doubtful, LONGEST, NoOther, PEAK, Reason, Row, Seen};
use floodline_analysis::report::Severity;
use floodline_analysis::rule_figures::{hurts_by, is_of_settings, rests_on};

/// The figures that the findings of a rule rest on; `None` for a rule that judges no measured figure.
fn rows_of<'a>(rule: &str, rows: &'a [Row]) -> Option<impl Iterator<Item = &'a Row>> {
    let names = rests_on(rule);
    (!names.is_empty()).then(|| rows.iter().filter(|row| names.contains(&row.figure.as_str())))
}

/// Whether a finding that the twin does not show persists: no figure that it rests on improves.
pub(super) fn lasts(rule: &str, rows: &[Row]) -> bool {
    rows_of(rule, rows).is_some_and(|mut rows| !rows.any(Row::improves))
}

/// Factor by which a figure must grow to be clearly worse, or shrink to be clearly better.
const WORSE: f64 = 1.25;

/// Time to write the peak from which tasks notice it, seconds.
const NOTICED_S: f64 = 1.0;

/// Factor by which a figure must shrink to end a finding.
const ENDS: f64 = 2.0;

/// Whether a finding that only the twin shows appears: a figure of the recording that it rests on gets clearly worse. A figure that
/// only the twin has says nothing more than its finding.
pub(super) fn worsens(rule: &str, rows: &[Row]) -> bool {
    let worsens =
        |row: &Row| row.is_measured && row.better == Better::Less && row.worsens() && row.then > WORSE * row.now;
    rows_of(rule, rows).is_some_and(|mut rows| rows.any(worsens))
}

/// What rules find: in the recording, in the twin as it is, and in each changed run.
pub(super) struct Judged<'a> {
    pub(super) recorded: &'a Verdicts,
    pub(super) now: &'a Shown,
    /// The changed twin.
    pub(super) then: &'a Verdicts,
    /// The changed twin again, with other seeds, bounds of the demand and speeds of the devices.
    pub(super) changed: Vec<&'a Verdicts>,
    pub(super) rows: &'a [Row],
    /// Speed of the slowest device that was never seen at its limit, bytes per second. `None` if each was. Such a device may be slower
    /// than its twin.
    pub(super) unknown_speed: Option<f64>,
    /// Whether the back-test shows that the twin is like its recording.
    pub(super) is_reliable: bool,
}

/// What becomes of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fate {
    /// Whether it is there after the change, by the more likely answer.
    pub(super) is_there: bool,
    /// Why that is not certain.
    pub(super) doubt: Option<Reason>,
}

const fn fate(is_there: bool, doubt: Option<Reason>) -> Fate {
    Fate { is_there, doubt }
}

/// The changed runs of which the rules judge something.
pub(super) fn changed(results: &[(Run, Shown)]) -> Vec<&Verdicts> {
    let is_judged = |run: &Run, shown: &Shown| run.is_changed && run.trial.diagnosed && !shown.is_cut;
    results.iter().filter(|(run, shown)| is_judged(run, shown)).map(|(_, shown)| shown.closely()).collect()
}

impl Judged<'_> {
    /// Whether the twin as it is has the finding of a rule: as the recorder would see it, or between its samples.
    pub(super) fn is_now(&self, rule: &str) -> bool {
        self.now.said.has(rule) || self.now.closely().has(rule)
    }

    /// Whether a finding that the recording does not have may be there already: the recording lacks an input, or the finding lies
    /// between the samples of its recorder.
    pub(super) fn is_hidden(&self, rule: &str) -> bool {
        let is_between = !self.now.said.has(rule) && self.now.closely().has(rule);
        !self.recorded.has(rule) && (self.recorded.lacks(rule) || is_between)
    }

    /// What becomes of the finding of a rule. Nothing is certain by figures that the twin misses.
    pub(super) fn fate(&self, rule: &str) -> Fate {
        let Fate { is_there, doubt } = self.fate_in_model(rule);
        fate(is_there, doubt.or_else(|| self.is_missed(rule, is_there).then_some(Reason::Missed)))
    }

    /// Whether the twin misses what an answer on the finding of a rule rests on. The figures of the rule decide where the recording has
    /// one of them: a twin that misses waits may still have the data at risk. Else the whole twin decides. Waits of syncs that the recording
    /// does not have are not missed, and a limit of a cgroup is arithmetic.
    fn is_missed(&self, rule: &str, is_there: bool) -> bool {
        if is_of_settings(rule) {
            return false;
        }
        let is_of_run = |row: &&Row| row.is_measured && row.figure != SMALLEST_BUDGET;
        let mut measured = rows_of(rule, self.rows).into_iter().flatten().filter(is_of_run).peekable();
        if measured.peek().is_none() {
            return !self.is_reliable;
        }
        // A finding that ends in every run of a twin that is like its recording ends.
        let counts = is_there || !self.is_reliable;
        counts && measured.all(|row| row.doubt == Some(Doubt::BackTest)) && !(is_there && self.is_milder(rule))
    }

    /// Whether the twin as it is hurts less than its recording, by the figure by which the finding of a rule hurts. What hurts in each run
    /// of such a twin hurts on the host.
    fn is_milder(&self, rule: &str) -> bool {
        let Some(name) = hurts_by(rule).filter(|_| self.is_reliable) else { return false };
        let now = self.now.figures.get(name);
        let is_less = |row: &Row| row.is_measured && now.is_some_and(|now| *now < row.now);
        self.rows.iter().any(|row| row.figure == name && is_less(row))
    }

    /// What becomes of the finding of a rule if the twin is like its recording.
    fn fate_in_model(&self, rule: &str) -> Fate {
        if self.changed.is_empty() {
            return fate(self.recorded.has(rule), Some(Reason::Unchecked));
        }
        let is_then = self.then.has(rule);
        let is_any = self.changed.iter().any(|said| said.has(rule));
        let is_unanimous = self.changed.iter().all(|said| said.has(rule) == is_then);
        let lacks = self.then.lacks(rule);
        match (self.recorded.has(rule), self.is_now(rule)) {
            // What no run of the model can judge stays, unless a figure says that it cannot be there.
            (true, false) if lacks => fate(lasts(rule, self.rows), Some(Reason::Unchecked)),
            (true, _) if lacks => fate(false, Some(Reason::Unchecked)),
            (true, true) if !is_unanimous => fate(is_then, Some(Reason::Runs)),
            // Which tasks wait is the part of the twin that is assumed most.
            (true, true) => {
                let is_open = !is_then && WAITS_ALONE.contains(&rule) && !ends(rule, self.rows);
                fate(is_then, is_open.then_some(Reason::Waits))
            }
            (true, false) if is_then && is_unanimous => fate(true, None),
            (true, false) if ends(rule, self.rows) => fate(false, None),
            // The twin has less of it than the host. If a run shows it nevertheless, the host has it.
            (true, false) => fate(is_any || self.stays_weaker(rule), Some(Reason::Unshown)),
            (false, is_now) => self.fate_of_new(rule, is_now, (is_then, is_any, is_unanimous)),
        }
    }

    /// Whether the twin has less than the finding of the recording, and the change ends none of it: the changed twin has it below a warning, as
    /// the twin as it is, or no run makes the calls by which it hurts. No figure of it gets clearly better.
    fn stays_weaker(&self, rule: &str) -> bool {
        let is_weaker = self.now.closely().is_slight(rule) && self.then.is_slight(rule);
        let is_unseen = hurts_by(rule).is_some_and(|name| self.rows.iter().all(|row| row.figure != name));
        let ends = |row: &Row| row.better == Better::Less && row.improves() && row.now > WORSE * row.then;
        (is_weaker || is_unseen) && !rows_of(rule, self.rows).is_some_and(|mut rows| rows.any(ends))
    }

    /// What becomes of the finding of a rule that the recording does not have.
    fn fate_of_new(&self, rule: &str, is_now: bool, (is_then, is_any, is_unanimous): (bool, bool, bool)) -> Fate {
        if self.then.lacks(rule) && (is_now || is_any || !self.recorded.lacks(rule)) {
            return fate(false, Some(Reason::Unchecked));
        }
        match (self.is_hidden(rule), is_now) {
            _ if !is_any => fate(false, None),
            (true, true) if is_unanimous => fate(is_then, Some(Reason::Hidden)),
            (true, _) if !is_unanimous => fate(is_then && self.recorded.lacks(rule), Some(Reason::Runs)),
            // A finding that the host does not have appears only if all runs have it.
            (_, false) if !is_unanimous => fate(false, Some(Reason::Runs)),
            (_, false) => fate(true, Some(Reason::New)),
            // The twin has one too many. It may have it after the change for the same reason.
            (_, true) if self.recorded.is_slight(rule) => fate(false, Some(Reason::Severity)),
            (_, true) => fate(is_unanimous && worsens(rule, self.rows), Some(Reason::OnlyTwin)),
        }
    }

    /// Every rule that finds something in the recording or in a run, and the severity that is known best.
    pub(super) fn all(&self) -> Vec<Seen> {
        let slight = self.changed.iter().flat_map(|said| &said.slight);
        let slight: Vec<Seen> = slight.map(|rule| Seen { rule, severity: Severity::Warning }).collect();
        let now = self.now.said.seen.iter().chain(&self.now.closely().seen);
        let then = self.then.seen.iter().chain(self.changed.iter().flat_map(|said| &said.seen));
        let mut all: Vec<Seen> = Vec::new();
        for seen in self.recorded.seen.iter().chain(now).chain(then).chain(&slight) {
            if all.iter().all(|known| known.rule != seen.rule) {
                all.push(seen.clone());
            }
        }
        all
    }

    /// The findings of which it is not certain whether they are there after the change, and how likely each answer is.
    pub(super) fn doubtful(&self) -> Vec<Doubtful> {
        let mut doubtful: Vec<Doubtful> = Vec::new();
        let all = self.all();
        for seen in &all {
            let Fate { is_there, doubt } = self.fate(seen.rule);
            doubtful.extend(doubt.map(|reason| self.answer(seen, is_there, reason)));
        }
        let warning = |rule| Seen { rule, severity: Severity::Warning };
        let is_known = |rule: &str| all.iter().any(|seen| seen.rule == rule);
        for rule in COMES.into_iter().filter(|rule| self.may_come() && !is_known(rule)) {
            doubtful.push(self.answer(&warning(rule), false, Reason::Assumed));
        }
        if self.is_at_unknown_speed() && doubtful.iter().all(|one| one.rule != AT_RISK) {
            doubtful.push(self.answer(&warning(AT_RISK), false, Reason::Speed));
        }
        doubtful
    }

    /// The answer that no other finding comes, where the twin is not like its recording.
    pub(super) fn no_other(&self) -> Option<NoOther> {
        let (right, answers) = odds::NO_OTHER;
        (!self.is_reliable).then(|| NoOther::new(right, answers))
    }

    fn answer(&self, seen: &Seen, is_there: bool, reason: Reason) -> Doubtful {
        let odds = odds::of(reason, self.recorded.has(seen.rule), is_there);
        Doubtful::new(seen, is_there, reason, odds)
    }

    /// Whether only the speed of a disk that was never at its limit tells how much the data at risk hurt: on a slower one they take
    /// longer to write.
    fn is_at_unknown_speed(&self) -> bool {
        let grows = |row: &Row| row.figure == PEAK && row.worsens() && row.then > WORSE * row.now;
        self.then.is_slight(AT_RISK) && self.unknown_speed.is_some() && self.rows.iter().any(grows)
    }
}

/// The rule whose severity rests on the time to write the data at risk.
const AT_RISK: &str = "dirty-data-at-risk";

/// Findings that rest on the waits of syncs more than on data.
const WAITS_ALONE: [&str; 2] = ["dominant-writer", "fsync-behind-writeback"];

/// Findings of syncs that wait, the wait itself, and the figure that decides how much a sync waits for.
const COMES: [&str; 2] = ["dirty-cliff", "fsync-behind-writeback"];

impl Judged<'_> {
    /// Whether findings of waits may come though no run shows them: more data become dirty, and the recording tells neither
    /// which programs sync nor how fast the disk is. A sync that has little to wait for now leaves no trace in the counters, and a
    /// disk that is never busy shows no limit.
    fn may_come(&self) -> bool {
        let row = |name: &str| self.rows.iter().find(|row| row.figure == name);
        let is_hidden = row(LONGEST).is_some_and(|row| !row.is_measured);
        let Some(peak) = row(PEAK).filter(|row| row.worsens() && row.then > WORSE * row.now) else { return false };
        let takes_long = self.unknown_speed.is_some_and(|speed| peak.then >= speed * NOTICED_S);
        is_hidden || (takes_long && row(LONGEST).is_none_or(|row| row.doubt.is_some()))
    }
}

/// Whether a figure that a finding rests on gets so much better, over its whole interval, that the finding ends, though the
/// twin does not show it.
fn ends(rule: &str, rows: &[Row]) -> bool {
    let ends =
        |row: &Row| row.better == Better::Less && row.improves() && row.is_certain() && row.now > ENDS * row.then;
    rows_of(rule, rows).is_some_and(|mut rows| rows.any(ends))
}

#[cfg(test)]
mod tests {
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
        let changed = changed(&results);
        let judged = Judged { recorded: &recorded, now: &now, then, changed, rows, unknown_speed, is_reliable: true };
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
        assert_eq!(told(None, Some(Doubt::BackTest)), 0, "each disk was at its limit");
        assert_eq!(told(Some(900e6), Some(Doubt::BackTest)), 0, "it writes all of it in a moment");
        assert_eq!(told(Some(80e6), None), 0, "the wait is predicted");
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
        check((true, false, [true, true]), None);
        check((true, false, [false, true]), Some((Reason::Unshown, true)));
        check((true, false, [false, false]), Some((Reason::Unshown, false)));
        check((false, true, [true, true]), Some((Reason::OnlyTwin, false)));
        check((false, true, [false, false]), None);
        check((false, false, [true, true]), Some((Reason::New, true)));
        check((false, false, [true, false]), Some((Reason::Runs, false)));
        check((false, false, [false, false]), None);
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
                rows: &[],
                unknown_speed: None,
                is_reliable,
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
            changed,
            rows,
            unknown_speed: None,
            is_reliable: false,
        };
        judged.fate(rule).doubt
    }

    #[test]
    fn a_finding_of_settings_alone_is_certain_whatever_the_twin_misses() {
        let rule = "contradictory-dirty-settings";
        assert_eq!(doubt_of_unlike(rule, &[], (true, false)), None);
        assert_eq!(doubt_of_unlike(rule, &[], (true, true)), None);
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
        assert_eq!(told(found(), true, true), [], "it stays");
        assert_eq!(
            told(Verdicts::default(), true, true),
            [(CLIFF, Reason::Hidden, true)],
            "the recorder does not see it"
        );
    }
}
