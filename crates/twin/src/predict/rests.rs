// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which findings the changed host has, where the twin and its recording differ in one: the figures that the finding rests
//! on decide. Also which of these answers are certain, and how likely the others are.

use super::row::SMALLEST_BUDGET;
use super::{Run, odds};
use crate::noticed::least;
use crate::shown::{Shown, Verdicts};
use floodline_analysis::prediction::{
    Better, Doubt, Doubtful, LONGEST, NoOther, PEAK, Reason, Row, Seen, WAITS, differ,
};
use floodline_analysis::report::Severity;
use floodline_analysis::rule_figures::{hurts_by, is_of_settings, is_of_waits, rests_on};

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

/// Factor by which the waits of all tasks must grow for a new finding of waits.
const LONGER: f64 = 1.5;

/// Time to write the peak from which tasks notice it, seconds.
const NOTICED_S: f64 = 1.0;

/// Number of changed runs from which one with a finding is one of several.
const SEVERAL: usize = 3;

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
    /// The same, as the recorder would see it.
    pub(super) at_samples: Vec<&'a Verdicts>,
    /// The changed twin on disks of a usual speed, where the recording may have such disks.
    pub(super) usual: Option<&'a Verdicts>,
    pub(super) rows: &'a [Row],
    /// Speed of the slowest device that was never seen at its limit, bytes per second. `None` if each was. Such a device may be slower
    /// than its twin.
    pub(super) unknown_speed: Option<f64>,
    /// Speed of the slowest device, bytes per second, where each device has one.
    pub(super) slowest: Option<f64>,
    /// Whether the back-test shows that the twin is like its recording.
    pub(super) is_reliable: bool,
    /// Whether the change leaves no device with a strict limit.
    pub(super) clears_strict: bool,
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
fn judged(results: &[(Run, Shown)]) -> impl Iterator<Item = &Shown> {
    let is_own = |run: &Run| run.demand != Run::ON_USUAL_DISKS;
    let is_judged =
        move |run: &Run, shown: &Shown| run.is_changed && is_own(run) && run.trial.diagnosed && !shown.is_cut;
    results.iter().filter(move |(run, shown)| is_judged(run, shown)).map(|(_, shown)| shown)
}

/// What the rules say of these runs, with samples that are close enough to each other.
pub(super) fn changed(results: &[(Run, Shown)]) -> Vec<&Verdicts> {
    judged(results).map(Shown::closely).collect()
}

/// What they say of these runs as the recorder would see them.
pub(super) fn at_samples(results: &[(Run, Shown)]) -> Vec<&Verdicts> {
    judged(results).map(|shown| &shown.said).collect()
}

/// What the rules say of the changed twin on disks of a usual speed. `None` without such a run, and where tasks would wait on these disks
/// before the change in another way than they do.
pub(super) fn on_usual_disks(results: &[(Run, Shown)]) -> Option<&Verdicts> {
    let of = |demand: usize, is_changed: bool| {
        let is_it = |run: &Run| run.demand == demand && run.is_changed == is_changed && run.trial.device_percent == 100;
        results.iter().find(|(run, shown)| is_it(run) && !shown.is_cut).map(|(_, shown)| shown)
    };
    let waits = |shown: &Shown| shown.figures.get(WAITS).copied().unwrap_or(0.0);
    let (own, usual) = (of(0, false)?, of(Run::ON_USUAL_DISKS, false)?);
    let is_alike = !differ(least(WAITS), waits(own), waits(usual));
    of(Run::ON_USUAL_DISKS, true).filter(|_| is_alike).map(Shown::closely)
}

impl Judged<'_> {
    /// Whether the twin as it is has the finding of a rule: as the recorder would see it, or between its samples.
    pub(super) fn is_now(&self, rule: &str) -> bool {
        self.now.said.has(rule) || self.now.closely().has(rule)
    }

    /// Whether a finding that the recording does not have may be there already: the recording lacks an input, or the finding lies
    /// between the samples of its recorder.
    pub(super) fn is_hidden(&self, rule: &str) -> bool {
        !self.recorded.has(rule) && (self.recorded.lacks(rule) || self.is_between(rule))
    }

    /// Whether the twin as it is has the finding of a rule only between the samples of its recorder.
    pub(super) fn is_between(&self, rule: &str) -> bool {
        !self.now.said.has(rule) && self.now.closely().has(rule)
    }

    /// What becomes of the finding of a rule. Nothing is certain by figures that the twin misses.
    pub(super) fn fate(&self, rule: &str) -> Fate {
        if self.clears_strict && rule == STRICT {
            return fate(false, None);
        }
        if let Some(is_there) = self.by_settings(rule) {
            return fate(is_there, None);
        }
        let Fate { is_there, doubt } = self.fate_in_model(rule);
        // The twin has no limit of such a disk. On one of a usual speed, the finding comes.
        if !is_there && !self.recorded.has(rule) && doubt.is_none() && self.usual.is_some_and(|said| said.has(rule)) {
            return fate(false, Some(Reason::Speed));
        }
        fate(is_there, doubt.or_else(|| self.is_missed(rule, is_there).then_some(Reason::Missed)))
    }

    /// Whether a finding of settings alone is there after the change. `None` for another finding, and where the runs or the recording do not
    /// have the settings.
    fn by_settings(&self, rule: &str) -> Option<bool> {
        let is_then = self.then.has(rule);
        let is_known = is_of_settings(rule) && !self.then.lacks(rule) && self.recorded.has(rule) == self.is_now(rule);
        let agree = !self.changed.is_empty() && self.changed.iter().all(|said| said.has(rule) == is_then);
        (is_known && agree).then_some(is_then)
    }

    /// Whether the twin misses what an answer on the finding of a rule rests on. The figures of the rule decide where the recording has
    /// one of them: a twin that misses waits may still have the data at risk. Else the whole twin decides. Waits of syncs that the recording
    /// does not have are not missed, and a limit of a cgroup is arithmetic.
    fn is_missed(&self, rule: &str, is_there: bool) -> bool {
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
            // The recorder saw it, but would not see it in each of these runs: what it saw may be another finding.
            (true, true) if is_then && !self.is_seen_always(rule) => fate(true, Some(Reason::Runs)),
            // Which tasks wait is the part of the twin that is assumed most.
            (true, true) => {
                let is_open = !is_then && WAITS_ALONE.contains(&rule) && !ends(rule, self.rows);
                fate(is_then, is_open.then_some(Reason::Waits))
            }
            (true, false) if !is_any && ends(rule, self.rows) => fate(false, None),
            // The twin has less of it than the host. If a run shows it nevertheless, the host has it.
            (true, false) => fate(is_any || self.stays_weaker(rule), Some(Reason::Unshown)),
            (false, is_now) => self.fate_of_new(rule, is_now, (is_then, is_any, is_unanimous)),
        }
    }

    /// Whether the recorder would see the finding of a rule in the twin as it is and in each changed run.
    fn is_seen_always(&self, rule: &str) -> bool {
        self.now.said.has(rule) && self.at_samples.iter().all(|said| said.has(rule))
    }

    /// Whether the twin has less than the finding of the recording, and the change ends none of it: the changed twin has it below a warning, as
    /// the twin as it is, or no run makes the calls by which it hurts. No figure of it gets clearly better.
    fn stays_weaker(&self, rule: &str) -> bool {
        let is_weaker = self.now.closely().is_slight(rule) && self.then.is_slight(rule);
        let is_unseen = hurts_by(rule).is_some_and(|name| self.rows.iter().all(|row| row.figure != name));
        let ends = |row: &Row| row.better == Better::Less && row.improves() && row.now > WORSE * row.then;
        (is_weaker || is_unseen) && !rows_of(rule, self.rows).is_some_and(|mut rows| rows.any(ends))
    }

    /// Why it is not certain that a finding does not come where some runs have it. One run of several is at the edge of what may be.
    fn some_runs(&self, rule: &str) -> Reason {
        let with = self.changed.iter().filter(|said| said.has(rule)).count();
        if with == 1 && self.changed.len() >= SEVERAL { Reason::OneRun } else { Reason::Runs }
    }

    /// What becomes of the finding of a rule that the recording does not have.
    fn fate_of_new(&self, rule: &str, is_now: bool, (is_then, is_any, is_unanimous): (bool, bool, bool)) -> Fate {
        if self.then.lacks(rule) && (is_now || is_any || !self.recorded.lacks(rule)) {
            return fate(false, Some(Reason::Unchecked));
        }
        match (self.is_hidden(rule), is_now) {
            _ if !is_any => fate(false, None),
            (true, true) if is_unanimous => fate(is_then, Some(Reason::Hidden)),
            // A finding that the host does not have, as far as is known, appears only if all runs have it.
            (true, _) | (_, false) if !is_unanimous => fate(false, Some(self.some_runs(rule))),
            (_, false) if is_of_waits(rule) && self.waits_no_longer() => fate(false, Some(Reason::NoLonger)),
            (_, false) if self.is_critical(rule) => fate(true, Some(Reason::New)),
            (_, false) => fate(true, Some(Reason::NewWarning)),
            // The twin has one too many. It may have it after the change for the same reason.
            (_, true) if self.recorded.is_slight(rule) => fate(false, Some(Reason::Severity)),
            (_, true) => fate(is_unanimous && worsens(rule, self.rows), Some(Reason::OnlyTwin)),
        }
    }

    /// Whether the recording has the waits of all tasks, and they do not get half as long again. The host has that much of waits without a
    /// finding. Where the twin misses them, both estimates count.
    fn waits_no_longer(&self) -> bool {
        let grows = |row: &Row| {
            let then = row.roughly.map_or(row.then, |(least, _)| least);
            then >= LONGER * row.now && differ(row.least, row.now, then)
        };
        self.rows.iter().any(|row| row.figure == WAITS && row.is_measured && !grows(row))
    }

    /// Whether the changed twin has the finding of a rule as critical.
    fn is_critical(&self, rule: &str) -> bool {
        self.then.seen.iter().any(|seen| seen.rule == rule && seen.severity == Severity::Critical)
    }

    /// Every rule that finds something in the recording or in a run, and the severity that is known best.
    pub(super) fn all(&self) -> Vec<Seen> {
        let slight = self.changed.iter().flat_map(|said| &said.slight);
        let slight: Vec<Seen> = slight.map(|rule| Seen { rule, severity: Severity::Warning }).collect();
        let now = self.now.said.seen.iter().chain(&self.now.closely().seen);
        let changed = self.changed.iter().copied().chain(self.usual);
        let then = self.then.seen.iter().chain(changed.flat_map(|said| &said.seen));
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
        // An info of a run is no answer where the wait is assumed or missed by which it would be more.
        let is_denied = |rule: &str| !self.recorded.has(rule) && self.fate(rule) == fate(false, None);
        let is_open = |rule: &str| !is_known(rule) || is_denied(rule);
        for rule in COMES.into_iter().filter(|rule| self.may_come() && is_open(rule)) {
            doubtful.push(self.answer(&warning(rule), false, Reason::Assumed));
        }
        for rule in COMES.into_iter().filter(|rule| self.misses_the_wait() && is_denied(rule)) {
            if doubtful.iter().all(|one| one.rule != rule) {
                doubtful.push(self.answer(&warning(rule), false, Reason::MissedWait));
            }
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

/// The rule of pauses that only a strict limit makes.
const STRICT: &str = "strictlimit-throttling";

/// Findings that rest on the waits of syncs more than on data.
const WAITS_ALONE: [&str; 2] = ["dominant-writer", "fsync-behind-writeback"];

/// Findings of syncs that wait, the wait itself, and the figure that decides how much a sync waits for.
const COMES: [&str; 2] = ["dirty-cliff", "fsync-behind-writeback"];

impl Judged<'_> {
    /// Whether more data become dirty than the slowest disk writes in a moment, and the twin misses the longest sync of the recording. No run
    /// then tells whether a sync waits for these data.
    fn misses_the_wait(&self) -> bool {
        let row = |name: &str| self.rows.iter().find(|row| row.figure == name);
        let is_missed = row(LONGEST).is_some_and(|row| row.is_measured && row.doubt == Some(Doubt::BackTest));
        let grows = |row: &Row| row.worsens() && row.then > WORSE * row.now;
        let takes_long = |row: &Row| self.slowest.is_some_and(|speed| row.then >= speed * NOTICED_S);
        is_missed && row(PEAK).is_some_and(|row| grows(row) && takes_long(row))
    }

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
mod tests;
