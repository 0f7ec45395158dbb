// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which findings the changed host has, where the twin and its recording differ in one: the figures that the finding rests
//! on decide. Also which of these answers are certain.

use super::Run;
use crate::shown::Shown;
use floodline_analysis::prediction::{Better, LONGEST, PEAK, Row, Seen};
use floodline_analysis::report::Severity;
use floodline_analysis::rule_figures::rests_on;

/// The figures that the findings of a rule rest on; `None` for a rule that judges no measured figure.
fn rows_of<'a>(rule: &str, rows: &'a [Row]) -> Option<impl Iterator<Item = &'a Row>> {
    let names = rests_on(rule);
    (!names.is_empty()).then(|| rows.iter().filter(|row| names.contains(&row.figure.as_str())))
}

/// Whether a finding that the twin does not show persists: no figure that it rests on improves.
pub(super) fn lasts(rule: &str, rows: &[Row]) -> bool {
    rows_of(rule, rows).is_some_and(|mut rows| !rows.any(Row::improves))
}

/// Whether a figure that a finding rests on is predicted.
fn rests(rule: &str, rows: &[Row]) -> bool {
    rows_of(rule, rows).is_some_and(|mut rows| rows.any(|row| row.doubt.is_none()))
}

/// Factor by which a figure must grow to be clearly worse.
const WORSE: f64 = 1.25;

/// Time to write the peak from which tasks notice it, seconds.
const NOTICED_S: f64 = 1.0;

/// Factor by which a figure must shrink to end a finding.
const ENDS: f64 = 2.0;

/// Whether a finding that only the twin shows appears: a figure that it rests on gets clearly worse.
pub(super) fn worsens(rule: &str, rows: &[Row]) -> bool {
    let worsens = |row: &Row| row.better == Better::Less && row.worsens() && row.then > WORSE * row.now;
    rows_of(rule, rows).is_some_and(|mut rows| rows.any(worsens))
}

/// What rules find: in the twin as it is, in the changed one, and in the recording.
pub(super) struct Judged<'a> {
    pub(super) now: &'a Shown,
    pub(super) then: &'a Shown,
    pub(super) recorded: &'a [Seen],
    pub(super) rows: &'a [Row],
    /// Whether the twin is like its recording.
    pub(super) is_reliable: bool,
    /// Speed of the slowest device that was never seen at its limit, bytes per second. `None` if each was. Such a device may be slower
    /// than its twin.
    pub(super) unknown_speed: Option<f64>,
}

impl Judged<'_> {
    /// The findings of which it is not certain whether they are there after the change.
    pub(super) fn uncertain(&self, results: &[(Run, Shown)], appear: &[Seen], lasting: &[Seen]) -> Vec<Seen> {
        let has = |seen: &[Seen], rule: &str| seen.iter().any(|one| one.rule == rule);
        let diagnosed: Vec<&Shown> = results
            .iter()
            .filter(|(run, shown)| run.is_changed && run.trial.diagnosed && !shown.is_cut)
            .map(|(_, shown)| shown)
            .collect();
        let mut uncertain: Vec<Seen> = Vec::new();
        let others = diagnosed.iter().flat_map(|shown| &shown.seen);
        let slight = diagnosed.iter().flat_map(|shown| &shown.slight);
        let slight: Vec<Seen> = slight.map(|rule| Seen { rule, severity: Severity::Warning }).collect();
        let all = self.recorded.iter().chain(&self.now.seen).chain(&self.then.seen).chain(others).chain(&slight);
        for seen in all {
            let rule = seen.rule;
            if has(&uncertain, rule) {
                continue;
            }
            let (is_now, is_then) = (has(&self.now.seen, rule), has(&self.then.seen, rule));
            let is_slight = |shown: &Shown| shown.slight.contains(&rule);
            let is_unanimous = !diagnosed.is_empty() && diagnosed.iter().all(|shown| has(&shown.seen, rule) == is_then);
            let is_certain = match (has(self.recorded, rule), is_now) {
                _ if self.then.unchecked.contains(&rule) => false,
                // It lacked an input before the change and lacks none after it: the rule says that nothing is there, as in the
                // recording. What it then finds may be there now.
                (false, _) if self.now.unchecked.contains(&rule) => is_unanimous && (!is_then || self.is_reliable),
                // Its severity comes from a twin that misses its recording.
                (false, _) if !self.is_reliable && !is_then && diagnosed.iter().any(|shown| is_slight(shown)) => false,
                // The twin is like the recording. Which tasks wait is the part of it that is assumed most.
                (true, true) => is_unanimous && (is_then || !WAITS_ALONE.contains(&rule) || ends(rule, self.rows)),
                (false, false) => is_unanimous,
                // It lacks the finding: the changed twin may lack it for the same reason.
                (true, false) => {
                    // A twin in which the finding is only an info does not show when it becomes a warning.
                    let stays = has(lasting, rule) && rests(rule, self.rows) && !is_slight(self.now);
                    (is_then && is_unanimous) || stays || ends(rule, self.rows)
                }
                // It has one too many.
                (false, true) => !is_then || has(appear, rule) || !worsens(rule, self.rows),
            };
            if !is_certain {
                uncertain.push(seen.clone());
            }
        }
        for rule in COMES.into_iter().filter(|_| self.may_come()) {
            let lists = [self.recorded, &self.now.seen, &self.then.seen, &uncertain];
            if !lists.into_iter().any(|seen| has(seen, rule)) {
                uncertain.push(Seen { rule, severity: Severity::Warning });
            }
        }
        uncertain
    }
}

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
    use floodline_analysis::prediction::Doubt;

    fn row(figure: &str, label: &str, unit: &'static str, now: f64, then: f64) -> Row {
        Row { least: 0.02, ..Row::new(figure, label, unit, now, then) }
    }

    #[test]
    fn a_finding_that_the_twin_lacks_stays_unless_what_it_rests_on_gets_better() {
        let wait = |then| row("durable.longest_wait_seconds", "longest fsync", "seconds", 2.0, then);
        assert!(lasts("fsync-behind-writeback", &[wait(2.0)]));
        assert!(lasts("fsync-behind-writeback", &[wait(3.0)]));
        assert!(!lasts("fsync-behind-writeback", &[wait(1.0)]));
        let unknown = Row { doubt: Some(Doubt::BackTest), ..wait(2.0) };
        assert!(lasts("fsync-behind-writeback", std::slice::from_ref(&unknown)));
        assert!(!rests("fsync-behind-writeback", &[unknown]), "no figure that it rests on is predicted");
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

    #[test]
    fn a_finding_of_waits_vanishes_for_certain_only_where_a_wait_shrinks_clearly() {
        let seen = |rule| Seen { rule, severity: Severity::Critical };
        let wait = |high| Row { low: 0.1, high, ..row(LONGEST, "longest fsync", "seconds", 4.0, 0.4) };
        let check = |rule: &'static str, high: f64, is_certain: bool| {
            let now = Shown { seen: vec![seen(rule)], ..Shown::default() };
            let then = Shown::default();
            let run = Run { demand: 0, is_changed: true, trial: Trial::NOMINAL };
            let (recorded, rows) = ([seen(rule)], [wait(high)]);
            let judged = Judged {
                now: &now,
                then: &then,
                recorded: &recorded,
                rows: &rows,
                is_reliable: true,
                unknown_speed: None,
            };
            assert_eq!(judged.uncertain(&[(run, then.clone())], &[], &[]).is_empty(), is_certain, "{rule} {high}");
        };
        check("fsync-behind-writeback", 1.5, true);
        check("fsync-behind-writeback", 8.0, false);
        check("dirty-cliff", 8.0, true);
    }

    #[test]
    fn where_syncs_are_not_measured_more_dirty_data_may_make_them_wait() {
        let peak = |then| row("host.unwritten_peak_bytes", "peak data at risk", "bytes", 30e6, then);
        let wait = |is_measured| Row { is_measured, ..row(LONGEST, "longest fsync", "seconds", 0.2, 0.2) };
        let check = |rows: &[Row], expect: &[&str]| {
            let (now, then) = (Shown::default(), Shown::default());
            let judged = Judged { now: &now, then: &then, recorded: &[], rows, is_reliable: true, unknown_speed: None };
            let told: Vec<&str> = judged.uncertain(&[], &[], &[]).iter().map(|seen| seen.rule).collect();
            assert_eq!(told, expect, "{rows:?}");
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
        let told = |unknown_speed: Option<f64>, doubt| {
            let (now, then) = (Shown::default(), Shown::default());
            let rows = [wait(doubt), peak.clone()];
            let judged =
                Judged { now: &now, then: &then, recorded: &[], rows: &rows, is_reliable: true, unknown_speed };
            judged.uncertain(&[], &[], &[]).len()
        };
        assert_eq!(told(Some(80e6), Some(Doubt::BackTest)), COMES.len());
        assert_eq!(told(None, Some(Doubt::BackTest)), 0, "each disk was at its limit");
        assert_eq!(told(Some(900e6), Some(Doubt::BackTest)), 0, "it writes all of it in a moment");
        assert_eq!(told(Some(80e6), None), 0, "the wait is predicted");
    }

    #[test]
    fn how_much_a_finding_hurts_is_uncertain_where_the_twin_tells_less_than_the_recording() {
        let found = || vec![Seen { rule: "dominant-writer", severity: Severity::Warning }];
        let slight = || Shown { slight: vec!["dominant-writer"], ..Shown::default() };
        let rows = [row(LONGEST, "longest fsync", "seconds", 0.6, 0.6)];
        let run = Run { demand: 0, is_changed: true, trial: Trial::NOMINAL };
        let told = |recorded: &[Seen], (now, then): (Shown, Shown), is_reliable| {
            let judged = Judged { now: &now, then: &then, recorded, rows: &rows, is_reliable, unknown_speed: None };
            judged.uncertain(&[(run, then.clone())], &[], recorded).len()
        };
        assert_eq!(
            told(&found(), (Shown::default(), Shown::default()), true),
            0,
            "no figure of it gets better: it stays"
        );
        assert_eq!(told(&found(), (slight(), slight()), true), 1);
        assert_eq!(told(&[], (Shown::default(), slight()), true), 0);
        assert_eq!(told(&[], (Shown::default(), slight()), false), 1, "severity comes from an unlike twin");
    }

    #[test]
    fn a_finding_is_certain_where_the_twin_is_like_the_recording_and_all_runs_agree() {
        let cliff = || vec![Seen { rule: "dirty-cliff", severity: Severity::Warning }];
        let with = |seen: Vec<Seen>| Shown { seen, ..Shown::default() };
        let run = |seed| Run { demand: 0, is_changed: true, trial: Trial { seed, ..Trial::NOMINAL } };
        let check = |(recorded, now, then): (Vec<Seen>, Vec<Seen>, [Vec<Seen>; 2]), expect: bool| {
            let [first, other] = then.map(with);
            let (now, results) = (with(now), [(run(0), first.clone()), (run(1), other)]);
            let judged = Judged {
                now: &now,
                then: &first,
                recorded: &recorded,
                rows: &[],
                is_reliable: true,
                unknown_speed: None,
            };
            assert_eq!(judged.uncertain(&results, &[], &[]).is_empty(), expect, "{recorded:?} {now:?} {results:?}");
        };
        check((cliff(), cliff(), [cliff(), cliff()]), true);
        check((cliff(), cliff(), [cliff(), Vec::new()]), false);
        check((Vec::new(), Vec::new(), [Vec::new(), cliff()]), false);
        check((cliff(), Vec::new(), [Vec::new(), Vec::new()]), false);
        check((Vec::new(), Vec::new(), [Vec::new(), Vec::new()]), true);
    }
}
