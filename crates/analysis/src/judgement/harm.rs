// SPDX-License-Identifier: MIT OR Apache-2.0
//! What makes a change harm: a finding that hurts, a wait that grows, or data at risk. The first one is the reason that every command
//! names. Judges figures; runs nothing.

use super::{SHORTEST_FELT_S, WORSE, grows_by_half, ratio, ratio_to};
use crate::prediction::{LONGEST_WRITE, PEAK, Prediction, Row, Seen, WAITS};
use crate::rule_figures::{hurts_by, rests_on};

/// Part of a wait that is left from which it is much shorter.
const MUCH_SHORTER: f64 = 0.5;

/// The reason why a change harms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Harm<'a> {
    /// This finding appears and hurts.
    Finding(&'a Seen),
    /// This wait grows.
    Wait(&'a Row),
    /// This wait grows by both estimates of a twin that misses it ([`Row::roughly`]).
    RoughWait(&'a Row),
    /// Much more data are at risk, and no wait gets shorter for it.
    Risk(&'a Row),
}

impl Harm<'_> {
    /// The reason in a few words.
    pub fn told(self) -> String {
        match self {
            Harm::Finding(seen) => format!("{} would appear", seen.rule),
            Harm::Wait(row) | Harm::Risk(row) => row.reserved(),
            Harm::RoughWait(row) => format!("by both estimates {}", row.roughly_said()),
        }
    }
}

impl Prediction {
    /// Returns the reason why the change harms: a finding appears that hurts, a wait grows while nothing gets better, a wait grows by more
    /// than what tasks feel gets better, or much more data are at risk while nothing gets better. `None` where it does not harm.
    pub fn harm(&self) -> Option<Harm<'_>> {
        let is_any_better = self.leads().any(Row::improves);
        // Of waits that only the twin has, harm counts.
        let is_clear = |row: &Row| -row.gain() > self.error_of(row) || row.now <= row.least;
        let is_longer = |row: &&Row| self.is_wait_that_counts(row) && row.worsens() && is_clear(row);
        let longer = || self.felt().find(is_longer).filter(|_| !is_any_better).map(Harm::Wait);
        let outgrown = || {
            let (row, growth) = self.grown()?;
            let harm = if row.worsens_roughly() { Harm::RoughWait(row) } else { Harm::Wait(row) };
            (growth > WORSE && growth * self.best_felt() > 1.0).then_some(harm)
        };
        // More data at risk is the price of a wait that gets shorter, even if the twin misses that wait.
        let is_price = || self.leads().any(|row| row.is_wait() && row.improves_roughly());
        let risk = || {
            let is_harm = !is_any_better && self.is_much_more_at_risk() && !is_price();
            self.rows_of([PEAK]).next().filter(|_| is_harm).map(Harm::Risk)
        };
        self.hurting().map(Harm::Finding).or_else(longer).or_else(outgrown).or_else(risk)
    }

    /// Whether the change harms. Every command uses this judgement.
    pub fn harms(&self) -> bool {
        self.harm().is_some()
    }

    /// Returns why it is open whether a change harms by a wait that may grow: what it is for may be worth more. The wait that grows is not
    /// surely one of the recording, and the trial does not show what becomes of another wait of the recording, or shows that it gets much
    /// shorter, or lacks a finding of waits. `None` where the change surely harms, or does not harm.
    pub fn open_harm(&self) -> Option<String> {
        let longer = match self.harm()? {
            Harm::Wait(row) if !(row.is_measured && row.is_certain()) => row,
            // No single wait that gets shorter outweighs a total that grows by half.
            Harm::RoughWait(row) if row.figure == WAITS && grows_by_half(row) => return None,
            Harm::RoughWait(row) => row,
            Harm::Finding(_) | Harm::Wait(_) | Harm::Risk(_) => return None,
        };
        let condition = if longer.is_assumed() { ", if a program syncs," } else { "" };
        let said = format!("on the twin, {}{condition} may get longer", longer.named());
        let is_other =
            |row: &&Row| row.is_wait() && row.is_measured && row.now >= SHORTEST_FELT_S && row.figure != longer.figure;
        let others = || self.felt().filter(is_other);
        if let Some(row) = others().find(|row| row.improves() && row.then <= MUCH_SHORTER * row.now) {
            let verb = if row.is_certain() { "gets" } else { "may get" };
            return Some(format!("{said}, but {} {verb} much shorter", row.named()));
        }
        if let Some(row) = others().find(|row| row.doubt.is_some() && !row.worsens_roughly()) {
            return Some(format!("{said}, and it does not show whether {} gets shorter", row.named()));
        }
        let hidden = self.hidden_waits()?;
        Some(format!("{said}, and it does not show {hidden}"))
    }

    /// Whether a row is a wait of this host. A wait for syncs that the twin assumes is none: no program of the recording may have it, so
    /// it is a cost and no harm.
    pub(super) fn is_wait_that_counts(&self, row: &Row) -> bool {
        row.is_wait() && (self.shows_syncs || !row.is_assumed())
    }

    /// Whether a finding rests on waits for syncs that the twin assumes, and on no other wait.
    pub(super) fn is_of_assumed_wait(&self, seen: &Seen) -> bool {
        let hurts = |row: &&Row| hurts_by(seen.rule) == Some(row.figure.as_str());
        let row = self.rows.iter().find(hurts).filter(|row| row.is_wait() && !self.is_wait_that_counts(row));
        row.is_some() && !rests_on(seen.rule).contains(&LONGEST_WRITE)
    }

    /// Factor of the wait that grows most; 1 where none grows.
    pub(super) fn wait_growth(&self) -> f64 {
        self.grown().map_or(1.0, |(_, growth)| growth)
    }

    /// The wait that grows most, with its factor. Of a wait that the back-test misses, the smaller reading counts.
    fn grown(&self) -> Option<(&Row, f64)> {
        let growth = |row: &Row| match row.roughly.filter(|_| row.worsens_roughly()) {
            Some((least, _)) => ratio_to(row, least),
            None if row.worsens() => ratio(row),
            None => 1.0,
        };
        let waits = self.felt().filter(|row| self.is_wait_that_counts(row));
        let grown = waits.map(|row| (row, growth(row))).filter(|(_, growth)| *growth > 1.0);
        grown.reduce(|most, one| if one.1 > most.1 { one } else { most })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prediction::{DIRTIED, Doubt, LONGEST};
    use crate::report::Severity;
    use floodline_record::version::KernelVersion;

    fn wait(figure: &str, now: f64, then: f64) -> Row {
        Row { least: 0.02, ..Row::new(figure, figure, "seconds", now, then) }
    }

    fn bytes(figure: &str, now: f64, then: f64) -> Row {
        Row { least: 1e6, ..Row::new(figure, figure, "bytes", now, then) }
    }

    fn of(rows: Vec<Row>) -> Prediction {
        Prediction { rows, back_test_error: Some(0.1), ..Prediction::new(Vec::new(), KernelVersion::new(6, 12, 0)) }
    }

    fn check(prediction: &Prediction, expect: Option<&str>) {
        assert_eq!(prediction.harm().map(Harm::told).as_deref(), expect);
    }

    #[test]
    fn the_reason_names_what_harms() {
        let less = || bytes(DIRTIED, 15.3e9, 2.29e9);
        let missed = Row { doubt: Some(Doubt::BackTest), roughly: Some((9.0, 12.0)), ..wait(WAITS, 2.0, 9.0) };
        let rough = format!("by both estimates {WAITS}, added up, 2.00 s → 9.00 s to 12 s");
        check(&of(vec![less(), missed]), Some(&rough));
        let longer = wait(LONGEST, 1.0, 2.0);
        check(&of(vec![less(), longer]), Some(&format!("{LONGEST} 1.00 s → about 2.00 s")));
        let seen = Seen { rule: "starved-dirty-budget", severity: Severity::Critical };
        let finding = Prediction { appear: vec![seen], ..of(vec![less()]) };
        check(&finding, Some("starved-dirty-budget would appear"));
        check(&of(vec![bytes(PEAK, 1e7, 8e7)]), Some(&format!("{PEAK} 9.54 MiB → about 76.3 MiB")));
        check(&of(vec![less()]), None);
    }

    #[test]
    fn a_wait_for_syncs_that_the_twin_assumes_is_a_cost_and_no_harm() {
        let assumed = || Row { is_measured: false, ..wait(LONGEST, 0.028, 0.259) };
        let rows = || vec![assumed(), bytes(DIRTIED, 1.16e9, 6.7e7)];
        let after = |shows_syncs| Prediction { shows_syncs, ..of(rows()) };
        assert!(!after(false).harms());
        assert_eq!(after(false).losses().len(), 1, "it is a cost");
        assert!(after(true).harms(), "the recording shows the syncs");
        assert!(!of(vec![assumed()]).harms(), "nothing gets better either");
        let seen = |rule| Seen { rule, severity: Severity::Warning };
        let appears = |rule| Prediction { appear: vec![seen(rule)], ..after(false) };
        assert!(!appears("fsync-behind-writeback").harms(), "it is a finding of that wait");
        assert!(appears("starved-dirty-budget").harms());
        assert!(appears("dirty-cliff").harms(), "write calls wait too");
        assert!(Prediction { shows_syncs: true, ..appears("fsync-behind-writeback") }.harms());
    }

    #[test]
    fn harm_by_a_wait_that_may_grow_is_open_where_another_wait_may_get_shorter() {
        let sum = |then: f64, doubt| Row { doubt, ..wait(WAITS, 168.0, then) };
        let syncs = || Row { is_measured: false, low: 0.04, high: 35.0, ..wait(LONGEST, 0.002, 1.44) };
        let with = |row: Row, sum: Row| Prediction { shows_syncs: true, ..of(vec![row, sum]) };
        let open = |row: Row, sum: Row| with(row, sum).open_harm();
        let shorter = open(syncs(), sum(30.0, None)).expect("the total gets much shorter");
        assert!(shorter.contains("if a program syncs, may get longer, but the total of waits gets much"), "{shorter}");
        let unknown = open(syncs(), sum(30.0, Some(Doubt::BackTest))).expect("the total is not predicted");
        assert!(unknown.ends_with("it does not show whether the total of waits gets shorter"), "{unknown}");
        assert_eq!(open(syncs(), sum(160.0, None)), None, "hardly shorter");
        let both = Row { roughly: Some((200.0, 300.0)), ..sum(250.0, Some(Doubt::BackTest)) };
        assert_eq!(open(syncs(), both), None, "it gets longer too");
        let surely = Row { is_measured: true, low: 1.2, high: 1.6, ..wait(LONGEST, 0.12, 1.44) };
        assert!(with(surely.clone(), sum(150.0, None)).harms());
        assert_eq!(open(surely, sum(30.0, None)), None, "a recorded wait surely grows");
        let rough =
            || Row { roughly: Some((1.3, 2.6)), doubt: Some(Doubt::BackTest), ..wait(LONGEST_WRITE, 0.65, 2.0) };
        assert!(open(rough(), sum(30.0, Some(Doubt::BackTest))).is_some());
        let verdict = with(syncs(), sum(30.0, None)).no_verdict(&[]);
        assert!(verdict.is_some_and(|why| why.contains("much shorter")), "every command asks");
        let lacks = Prediction { not_reproduced: vec!["dirty-cliff"], shows_syncs: true, ..of(vec![syncs()]) };
        assert!(lacks.open_harm().is_some_and(|why| why.ends_with("it does not show dirty-cliff")));
    }
}
