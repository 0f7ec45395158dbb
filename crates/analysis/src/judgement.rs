// SPDX-License-Identifier: MIT OR Apache-2.0
//! One judgement of a predicted change: whether it helps, does not help, or harms. `predict`, `doctor` and `advise` share
//! it, so that no command advises a change that another one warns of. Judges figures; runs nothing.

use crate::prediction::{DIRTIED, Doubt, LEADS, PEAK, Prediction, Row, Seen, Sure, Unseen, WAITS, differ};
use crate::report::Severity;
use crate::rule_figures::{hurts_by, is_of_waits};
use crate::tried::{MAY_HARM, word};
use floodline_record::human;

mod harm;
mod reserve;
mod why;

pub use self::harm::Harm;
pub use self::why::{BEYOND_BUDGET, missed, unpredicted};

/// What a change does to its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A figure gets better by more than the error of the twin, or the finding ends, and no wait takes that back.
    Helps,
    /// Nothing gets better by more than the error of the twin.
    DoesNotHelp,
    /// A wait grows, or a finding appears that hurts.
    Harms,
}

/// The word for a change of which the twin gives no verdict.
const NO_VERDICT: &str = "no_verdict";
/// Shortest wait that people notice, seconds.
pub(crate) const SHORTEST_FELT_S: f64 = 0.1;
/// Growth of a wait from which it is weighed against what gets better.
const WORSE: f64 = 1.5;
/// The smallest error of a twin.
const ERROR_MIN: f64 = 0.05;

/// The rule whose finding is the data at risk themselves.
pub(crate) const OF_RISK: &str = "dirty-data-at-risk";

impl Row {
    /// Part of the present value that the change takes away; negative where it adds.
    fn gain(&self) -> f64 {
        if self.now > 0.0 { (self.now - self.then) / self.now } else { 0.0 }
    }

    fn is_wait(&self) -> bool {
        self.unit == "seconds"
    }
}

impl Prediction {
    /// Judges the change. `rules` are those whose findings it is to end; empty where it is to end none.
    pub fn verdict(&self, rules: &[&str]) -> Verdict {
        if self.harms() {
            return Verdict::Harms;
        }
        let is_own = |rule: &str| rules.contains(&rule);
        let ended: Vec<&Seen> = self.vanish.iter().filter(|seen| is_own(seen.rule)).collect();
        let is_longer = self.wait_growth() * self.best_felt() > 1.0;
        // Less data at risk is no cure of waits.
        let is_for_waits = !rules.is_empty() && rules.iter().all(|rule| is_of_waits(rule));
        let is_cure = |row: &&Row| row.is_wait() || !is_for_waits;
        let better = self.leads().filter(|row| row.improves() && row.gain() > self.error_of(row)).filter(is_cure);
        let helps = better.count() > 0 && !is_longer;
        // A finding of waits may end while its wait stays as long: another rule then has it.
        let is_shorter = self.leads().any(|row| row.is_wait() && row.improves());
        let is_known = |seen: &Seen| self.hurt_by(seen.rule).is_some_and(|row| row.is_wait() && row.doubt.is_none());
        let is_cured = |seen: &Seen| !is_longer && (is_shorter || !is_known(seen));
        let ends = ended.iter().any(|seen| !is_of_waits(seen.rule) || is_cured(seen));
        if helps || ends { Verdict::Helps } else { Verdict::DoesNotHelp }
    }

    /// The judgement of all findings of the recording, in a word: `helps`, `does_not_help`, `harms`, `may_harm` or `no_verdict`.
    pub fn answer(&self) -> &'static str {
        let found = self.found();
        match self.no_verdict(&found) {
            None => word(self.verdict(&found)),
            Some(_) if self.only_longer().is_some() => MAY_HARM,
            Some(_) => NO_VERDICT,
        }
    }

    /// Error of the twin in a figure, as a share.
    pub fn error_of(&self, row: &Row) -> f64 {
        row.off_share.or(self.back_test_error).unwrap_or(0.0).max(ERROR_MIN)
    }

    /// Returns why a change that puts much more data at risk is for a person to weigh: no wait surely gets shorter for it. `None` where one
    /// does, and where no wait may get shorter: such a change is judged by [`Prediction::harms`].
    pub fn open_price(&self) -> Option<String> {
        let is_more = |row: &&Row| row.worsens() && row.then > WORSE * row.now;
        let risk = self.rows_of([PEAK]).find(is_more)?;
        let is_shorter = |row: &&Row| row.is_wait() && (row.improves() || row.improves_roughly());
        let shorter: Vec<&Row> = self.leads().filter(is_shorter).collect();
        let first = shorter.first().filter(|_| shorter.iter().all(|row| row.high > row.now))?;
        Some(format!("more data are at risk, {}, and {} may not get shorter", risk.sentence(), first.named()))
    }

    /// The worst finding that appears and hurts. A finding of waits does not hurt where a wait gets shorter and none gets
    /// longer: then it only names the waiting program.
    pub fn hurting(&self) -> Option<&Seen> {
        let shorter = self.leads().any(|row| row.is_wait() && row.improves());
        let longer = self.felt().any(|row| self.is_wait_that_counts(row) && row.worsens());
        // Other waits that get shorter do not outweigh a critical finding whose own wait is not predicted.
        let is_told = |seen: &Seen| {
            seen.severity < Severity::Critical || self.hurt_by(seen.rule).is_none_or(|row| row.doubt.is_none())
        };
        let is_harmless = |seen: &Seen| match seen.rule {
            _ if self.is_of_assumed_wait(seen) => true,
            OF_RISK => !self.is_much_more_at_risk(),
            rule => is_of_waits(rule) && shorter && !longer && is_told(seen),
        };
        self.appear.iter().filter(|seen| !is_harmless(seen)).max_by_key(|seen| seen.severity)
    }

    /// Whether so much more data are at risk that this is no price but harm: more than now, and more than the disks write in
    /// a few seconds.
    pub fn is_much_more_at_risk(&self) -> bool {
        let room = self.risk_room_bytes.unwrap_or(0.0);
        self.rows_of([PEAK]).any(|row| row.worsens() && row.then > room)
    }

    /// Figures that get worse, the most important first: what leads, then programs that surely write more slowly.
    pub fn losses(&self) -> Vec<&Row> {
        let mut losses: Vec<&Row> = self.felt().filter(|row| row.worsens()).collect();
        let is_slowed = |row: &&Row| row.figure.starts_with("program ") && row.worsens() && row.is_certain();
        let mut slowed: Vec<&Row> = self.rows.iter().filter(is_slowed).collect();
        slowed.sort_by(|one, other| (other.now - other.then).total_cmp(&(one.now - one.then)));
        losses.extend(slowed);
        losses
    }

    /// Returns the first wait that the back-test misses and that gets longer by both estimates of the twin ([`Row::roughly`]). `None` where
    /// a run was cut: its estimates are of another stretch.
    pub fn roughly_longer(&self) -> Option<&Row> {
        self.rows_of(LEADS).find(|row| row.is_wait() && row.worsens_roughly()).filter(|_| !self.is_cut)
    }

    /// Returns a wait that gets longer by both estimates of a twin that gives no verdict, where nothing says that another wait gets
    /// shorter. Of the longest syncs and totals of waits whose estimates agreed, 46 of 48 really moved that way (`docs/predict.md`).
    /// A total of waits that grows by half outweighs a single wait that gets shorter. `None` if the verdict is open only because of a limit
    /// that was not seen: without it, no wait may get longer.
    pub fn only_longer(&self) -> Option<&Row> {
        let waits = || self.rows_of(LEADS).filter(|row| row.is_wait());
        let shorter = |row: &Row| row.improves() || row.improves_roughly();
        if self.is_cut || !self.only_up_to.is_empty() {
            return None;
        }
        if waits().any(shorter) {
            return self
                .rows_of([WAITS])
                .find(|row| row.is_measured && row.now >= SHORTEST_FELT_S && grows_by_half(row));
        }
        waits().filter(|row| row.is_measured && row.now >= SHORTEST_FELT_S).find(|row| row.worsens_roughly())
    }

    /// Whether this change is better than another one on the same host: a wait is shorter, and none is longer, by more than people notice.
    /// Of a wait that the back-test misses, the longer reading counts.
    pub fn surpasses(&self, other: &Prediction) -> bool {
        let then = |row: &Row| row.roughly.map_or(row.then, |(_, most)| most);
        let of = |prediction: &Prediction, name: &str| {
            prediction.rows.iter().find(|row| row.figure == name).map(|row| (then(row), row.least))
        };
        let waits = LEADS.into_iter().filter(|name| self.rows_of([*name]).any(Row::is_wait));
        let pairs: Vec<_> = waits.filter_map(|name| of(self, name).zip(of(other, name))).collect();
        let is_less = |one: f64, than: f64, least: f64| one < than && differ(least, one, than);
        !self.harms()
            && pairs.iter().any(|((one, least), (than, _))| is_less(*one, *than, *least))
            && !pairs.iter().any(|((one, least), (than, _))| is_less(*than, *one, *least))
    }

    /// Whether the unchanged twin shows a finding of the recording, or the recording has none: only then does it tell
    /// whether the finding ends.
    pub fn shows(&self, rules: &[&str]) -> bool {
        let is_own = |seen: &Seen| rules.contains(&seen.rule);
        self.vanish.iter().chain(&self.stay).any(is_own)
    }

    /// Rules with findings in the recording. Every command judges a change by all of them, so that one change has one verdict.
    pub fn found(&self) -> Vec<&'static str> {
        let shown = self.vanish.iter().chain(&self.stay).map(|seen| seen.rule);
        shown.chain(self.not_reproduced.iter().copied()).collect()
    }

    /// Reason why the prediction gives no verdict on the findings of these rules. `None` where it gives one. `predict` begins with
    /// the reason, `doctor` prints such a change as arithmetic, and `advise` gives no verdict of its own.
    pub fn no_verdict(&self, rules: &[&str]) -> Option<String> {
        let certain = self.rows_of(LEADS).filter(|row| row.doubt.is_none() && row.is_measured).count();
        let ends = self.vanish.iter().any(|seen| rules.contains(&seen.rule));
        if self.is_cut {
            return Some(BEYOND_BUDGET.to_owned());
        }
        if let Some(why) = self.beyond_the_end() {
            return Some(why);
        }
        if !rules.is_empty() && !self.shows(rules) {
            return Some(self.with_sparse("the twin does not show the finding".to_owned()));
        }
        if !self.is_reliable() {
            return Some(self.with_sparse(missed(self.back_test_error)));
        }
        if certain == 0 && !ends {
            return Some(self.with_sparse(unpredicted(self.back_test_error, rules)));
        }
        let missed = self.missed_figure().map(|why| self.with_sparse(why));
        let missed = missed.or_else(|| self.unpredicted_wait(rules)).or_else(|| self.open_harm());
        missed.or_else(|| self.rests_on_unseen(rules)).or_else(|| self.of_sparse(rules))
    }

    /// Reason why the verdict is open where it is another one on a device without the limit that was not seen. Speeds in between were not
    /// tried.
    pub fn rests_on_unseen(&self, rules: &[&str]) -> Option<String> {
        let each = |one: &Unseen| format!("{} at {}", one.device, human::bytes_per_second(one.bytes_per_second));
        let (devices, rest) = match self.only_up_to.as_slice() {
            [] => return None,
            [one] => (each(one), "the speed that was seen; a faster disk may change that"),
            many => (
                many.iter().map(each).collect::<Vec<_>>().join(" and "),
                "the speeds that were seen; if one of them is faster, that may change",
            ),
        };
        let what = match self.verdict(rules) {
            Verdict::Helps => "helps",
            Verdict::DoesNotHelp => "does not help",
            Verdict::Harms => "harms",
        };
        Some(format!("on the twin it {what} with {devices}, {rest}"))
    }

    /// Reason why the prediction gives no verdict on the findings that the twin shows: it misses the figure by which each of them
    /// hurts. `None` where it predicts one of these figures, or where a finding certainly ends.
    pub fn missed_figure(&self) -> Option<String> {
        let is_sure = |seen: &Seen| self.sure(seen.rule) == Sure::Certain;
        let shown = self.vanish.iter().chain(&self.stay);
        let figures: Vec<Option<&Row>> = shown.map(|seen| self.hurt_by(seen.rule)).collect();
        let is_missed = |row: &Option<&Row>| row.is_some_and(|row| row.doubt == Some(Doubt::BackTest));
        if self.vanish.iter().any(is_sure) || !figures.iter().all(is_missed) {
            return None;
        }
        // Another wait gets shorter, and none that the recording has gets longer: that is a verdict whatever the missed figure does.
        let is_shorter = |row: &Row| row.is_wait() && row.is_measured && (row.improves() || row.improves_roughly());
        if self.leads().any(is_shorter) && self.may_lengthen().is_none() {
            return None;
        }
        let row = figures.into_iter().flatten().next()?;
        let off = row.off_share.map(|off| format!(" by {}", human::percent(off))).unwrap_or_default();
        Some(format!("the twin misses {}{off}", row.named()))
    }

    /// Reason why it is open whether a change helps of which nothing is predicted to get better: a wait of the recording is not predicted, and
    /// may get shorter. `None` where no such wait is felt.
    pub fn unpredicted_wait(&self, rules: &[&str]) -> Option<String> {
        let is_felt = |row: &&Row| row.is_wait() && row.is_measured && row.now >= SHORTEST_FELT_S;
        let may_be_shorter = |row: &&Row| row.improves_roughly() || row.doubt == Some(Doubt::Demand);
        let is_open = |row: &&Row| row.doubt.is_some() && may_be_shorter(row);
        let row = self.leads().filter(is_felt).find(is_open).filter(|_| self.verdict(rules) == Verdict::DoesNotHelp)?;
        Some(match row.doubt {
            Some(Doubt::Demand) => format!(
                "pauses were not traced, so the twin does not show whether {} gets shorter; record again with --trace on",
                row.named()
            ),
            _ => format!("the twin does not show whether {} gets shorter", row.named()),
        })
    }

    /// The figure by which the finding of a rule hurts, if the recording has it.
    pub fn hurt_by(&self, rule: &str) -> Option<&Row> {
        let figure = hurts_by(rule)?;
        self.rows.iter().find(|row| row.figure == figure && row.is_measured)
    }

    fn rows_of<const N: usize>(&self, names: [&'static str; N]) -> impl Iterator<Item = &Row> {
        names.into_iter().filter_map(|name| self.rows.iter().find(|row| row.figure == name))
    }

    /// What people feel: figures of the machine, and the waits on each disk. The longest wait of all disks hides what becomes of the others.
    fn felt(&self) -> impl Iterator<Item = &Row> {
        self.rows_of(LEADS).chain(self.on_devices())
    }

    /// How much is left of the figure that tasks feel and that gets better most; 1 where none does. Of a wait that the back-test misses,
    /// the longer reading counts.
    fn best_felt(&self) -> f64 {
        let is_felt = |row: &&Row| row.figure != PEAK && row.figure != DIRTIED;
        let left = |row: &Row| match row.roughly.filter(|_| row.is_wait() && row.improves_roughly()) {
            Some((_, most)) => ratio_to(row, most),
            None if row.improves() => ratio(row),
            None => 1.0,
        };
        self.leads().filter(is_felt).map(left).fold(1.0, f64::min)
    }
}

/// Whether a wait that the back-test misses grows by half or more by both estimates ([`Row::roughly`]).
fn grows_by_half(row: &Row) -> bool {
    row.worsens_roughly() && row.roughly.is_some_and(|(least, _)| ratio_to(row, least) >= WORSE)
}

fn ratio(row: &Row) -> f64 {
    ratio_to(row, row.then)
}

fn ratio_to(row: &Row, then: f64) -> f64 {
    let least = if row.is_wait() { SHORTEST_FELT_S } else { 1e6 };
    then.max(least) / row.now.max(least)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prediction::{Doubtful, Reason, WAITS};
    use floodline_record::version::KernelVersion;

    const MIB: f64 = 1_048_576.0;
    const FSYNC: &str = "durable.longest_wait_seconds";

    fn wait(figure: &str, now: f64, then: f64) -> Row {
        Row { off_share: Some(0.02), least: 0.02, ..Row::new(figure, figure, "seconds", now, then) }
    }

    fn risk(now: f64, then: f64) -> Row {
        Row { least: MIB, ..Row::new(PEAK, "peak data at risk", "bytes", now * MIB, then * MIB) }
    }

    fn of(rows: Vec<Row>) -> Prediction {
        let kernel = KernelVersion::new(6, 12, 0);
        Prediction { rows, back_test_error: Some(0.1), ..Prediction::new(Vec::new(), kernel) }
    }

    fn seen(rule: &'static str) -> Seen {
        Seen { rule, severity: Severity::Critical }
    }

    #[test]
    fn a_wait_that_gets_shorter_on_one_disk_helps_whatever_the_longest_wait_of_all_disks_is() {
        let longest = || wait(FSYNC, 8.9, 8.3);
        let on = |figure: &str, then: f64| wait(figure, 5.5, then);
        let first = |then| on("device.vda.longest_wait_seconds", then);
        let second = |then| on("device.vdb.longest_wait_seconds", then);
        let of_cliff = |rows| of(rows).verdict(&["dirty-cliff"]);
        assert_eq!(of_cliff(vec![longest()]), Verdict::Helps, "a little");
        let same = || wait(FSYNC, 8.9, 8.9);
        assert_eq!(of_cliff(vec![same()]), Verdict::DoesNotHelp);
        assert_eq!(of_cliff(vec![same(), first(0.4), second(5.5)]), Verdict::Helps);
        let traded = of(vec![same(), first(0.4), second(9.0)]);
        assert!(traded.reserve().is_some_and(|why| why.contains("device.vdb")), "{:?}", traded.reserve());
        assert_eq!(traded.losses().len(), 1);
        assert_eq!(of_cliff(vec![same(), first(5.5), second(9.0)]), Verdict::Harms);
        // A total that stays is no reserve where tasks wait less on one disk.
        let total = || Row { least: 0.2, ..wait(WAITS, 40.0, 39.5) };
        let waited = |disk: &str, now, then| wait(&format!("device.{disk}.waited_seconds"), now, then);
        let all = |then| of(vec![total(), first(0.4), waited("vda", 5.0, 0.5), waited("vdb", 35.0, then)]);
        assert_eq!(all(35.0).reserve(), None);
        assert!(all(39.0).reserve().is_some());
    }

    #[test]
    fn more_data_at_risk_are_a_price_while_the_disks_write_them_in_a_moment() {
        let lifted = |room| Prediction { risk_room_bytes: Some(room * MIB), ..of(vec![risk(7.7, 28.9)]) };
        assert_eq!(lifted(48.0).verdict(&["strictlimit-throttling"]), Verdict::DoesNotHelp);
        assert_eq!(lifted(16.0).verdict(&["strictlimit-throttling"]), Verdict::Harms);
        let helps = Prediction { rows: vec![wait(WAITS, 4.9, 0.0), risk(7.7, 28.9)], ..lifted(16.0) };
        assert_eq!(helps.verdict(&["strictlimit-throttling"]), Verdict::Helps, "waits get shorter for it");
    }

    #[test]
    fn more_data_at_risk_is_the_price_of_a_shorter_wait_even_if_the_twin_misses_it() {
        let missed =
            |roughly| Row { doubt: Some(Doubt::BackTest), off_share: Some(0.46), roughly, ..wait(WAITS, 77.9, 3.9) };
        let lifted =
            |roughly| Prediction { risk_room_bytes: Some(48.0 * MIB), ..of(vec![risk(128.0, 192.0), missed(roughly)]) };
        assert_eq!(lifted(Some((3.9, 5.6))).verdict(&[]), Verdict::DoesNotHelp);
        assert_eq!(lifted(Some((60.0, 95.0))).verdict(&[]), Verdict::Harms, "the two estimates disagree");
        assert_eq!(lifted(None).verdict(&[]), Verdict::Harms);
        // A sync that takes twice as long, but not for long, is outweighed by the total of waits, even if the twin misses it.
        let sync = Row { doubt: Some(Doubt::BackTest), roughly: Some((0.156, 0.268)), ..wait(FSYNC, 0.064, 0.268) };
        let starved = |roughly| of(vec![sync.clone(), missed(roughly)]);
        assert!(!starved(Some((3.9, 5.6))).harms());
        assert!(starved(Some((60.0, 95.0))).harms(), "the two estimates disagree");
        assert!(starved(None).harms());
        // Fewer bytes that are dirtied again are no wait.
        let dirtied = Row { doubt: Some(Doubt::BackTest), roughly: Some((3e6, 4e6)), ..risk(64.0, 3.0) };
        let dirtied = Row { figure: DIRTIED.to_owned(), ..dirtied };
        let rewritten = of(vec![risk(128.0, 192.0), dirtied]);
        assert_eq!(Prediction { risk_room_bytes: Some(48.0 * MIB), ..rewritten }.verdict(&[]), Verdict::Harms);
    }

    #[test]
    fn more_data_at_risk_for_a_wait_that_may_not_get_shorter_is_for_a_person_to_weigh() {
        let of = |then: f64, high: f64| of(vec![Row { high, ..wait(WAITS, 4.9, 3.0) }, risk(8.0, then)]).open_price();
        assert!(of(48.0, 6.2).is_some_and(|why| why.starts_with("more data are at risk")));
        assert_eq!(of(48.0, 4.0), None, "the wait surely gets shorter");
        assert_eq!(of(9.0, 6.2), None, "hardly more data");
    }

    #[test]
    fn a_new_finding_that_names_who_waits_is_no_harm_where_waits_get_shorter() {
        let after = |rows, rule| Prediction { appear: vec![seen(rule)], ..of(rows) };
        let shorter = || vec![wait(WAITS, 29.0, 25.0)];
        assert_eq!(after(shorter(), "dominant-writer").verdict(&[]), Verdict::Helps);
        assert_eq!(after(shorter(), "starved-dirty-budget").verdict(&[]), Verdict::Harms, "it hurts by rewriting");
        assert!(after(vec![wait(WAITS, 29.0, 29.0)], "dominant-writer").harms(), "nothing gets shorter");
        let mixed = vec![wait(WAITS, 29.0, 25.0), wait(FSYNC, 1.0, 1.3)];
        assert!(after(mixed, "dominant-writer").harms(), "one wait gets longer");
    }

    #[test]
    fn a_critical_finding_whose_wait_is_not_predicted_is_harm_though_other_waits_get_shorter() {
        let missed = Row { doubt: Some(Doubt::BackTest), off_share: Some(0.62), ..wait(FSYNC, 4.23, 26.0) };
        let cliff = |severity, rows| {
            let appear = vec![Seen { rule: "dirty-cliff", severity }];
            Prediction { appear, ..of(rows) }.verdict(&["starved-dirty-budget"])
        };
        let rows = || vec![missed.clone(), wait(WAITS, 80.0, 52.0)];
        assert_eq!(cliff(Severity::Critical, rows()), Verdict::Harms);
        assert_eq!(cliff(Severity::Warning, rows()), Verdict::Helps);
        let told = vec![wait(FSYNC, 4.23, 4.0), wait(WAITS, 80.0, 52.0)];
        assert_eq!(cliff(Severity::Critical, told), Verdict::Helps, "the wait is predicted");
    }

    #[test]
    fn a_wait_that_the_back_test_misses_and_that_grows_anyhow_is_weighed() {
        let grows = |least, most| {
            let missed = Row { doubt: Some(Doubt::BackTest), ..wait(WAITS, 2.1, 13.0) };
            of(vec![Row { roughly: Some((least, most)), ..missed }, wait(FSYNC, 5.0, 4.0)]).verdict(&[])
        };
        assert_eq!(grows(8.0, 13.0), Verdict::Harms);
        assert_eq!(grows(1.0, 13.0), Verdict::Helps, "it may get shorter");
    }

    #[test]
    fn a_wait_that_both_estimates_make_longer_speaks_against_a_change_unless_another_gets_shorter() {
        let missed = |figure, now, (least, most)| {
            let row = Row { doubt: Some(Doubt::BackTest), off_share: Some(0.45), ..wait(figure, now, least) };
            Row { roughly: Some((least, most)), ..row }
        };
        let longer = || missed(FSYNC, 6.3, (8.8, 16.0));
        let is_against = |rows: Vec<Row>| of(rows).only_longer().is_some();
        assert!(is_against(vec![longer(), risk(80.0, 30.0)]), "less data at risk is felt by no task");
        assert!(!is_against(vec![longer(), wait(WAITS, 20.0, 9.0)]));
        assert!(!is_against(vec![longer(), missed(WAITS, 20.0, (9.0, 12.0))]));
        let total = |least| vec![wait(FSYNC, 6.6, 3.9), missed(WAITS, 67.0, (least, 420.0))];
        assert!(is_against(total(113.0)), "a total that grows by half counts more than a single wait");
        assert!(!is_against(total(75.0)));
        assert!(!is_against(vec![missed(FSYNC, 6.3, (5.0, 16.0))]), "the estimates disagree");
        assert!(!is_against(vec![missed(FSYNC, 0.05, (0.2, 0.3))]), "hardly a wait");
        assert!(!is_against(vec![wait(FSYNC, 6.3, 8.8)]), "a predicted wait has a verdict");
        let cut = Prediction { is_cut: true, ..of(vec![longer()]) };
        assert!(cut.only_longer().is_none());
        let only_up_to = vec![Unseen { device: "vdb".to_owned(), bytes_per_second: 32.0 * MIB }];
        let up_to = Prediction { only_up_to, ..of(vec![longer()]) };
        assert!(up_to.only_longer().is_none(), "on a faster disk it may get shorter");
    }

    #[test]
    fn a_gain_below_the_error_of_the_twin_is_no_cure() {
        let with = |off, then| of(vec![Row { off_share: Some(off), ..wait(FSYNC, 5.0, then) }]);
        assert_eq!(with(0.02, 4.0).verdict(&["fsync-behind-writeback"]), Verdict::Helps);
        assert_eq!(with(0.24, 4.0).verdict(&["fsync-behind-writeback"]), Verdict::DoesNotHelp);
    }

    #[test]
    fn a_change_for_which_all_tasks_wait_longer_is_no_cure() {
        let rows = || vec![wait(FSYNC, 5.68, 5.05), wait(WAITS, 34.3, 41.8), risk(76.5, 30.1)];
        let rules = ["fsync-behind-writeback"];
        assert_eq!(of(rows()).verdict(&rules), Verdict::DoesNotHelp);
        let ends = Prediction { vanish: vec![seen(rules[0])], ..of(rows()) };
        assert_eq!(ends.verdict(&rules), Verdict::DoesNotHelp, "the finding ends, the waits do not");
        let much = of(vec![wait(FSYNC, 5.68, 0.5), wait(WAITS, 34.3, 41.8)]);
        assert_eq!(much.verdict(&rules), Verdict::Helps);
    }

    #[test]
    fn a_finding_of_waits_that_ends_is_a_cure_only_if_a_wait_gets_shorter() {
        let ends = |rows| Prediction { vanish: vec![seen("dirty-cliff")], ..of(rows) };
        let told = |rows| ends(rows).verdict(&["dirty-cliff", "fsync-behind-writeback"]);
        assert_eq!(told(vec![wait(FSYNC, 2.05, 2.11), risk(2000.0, 1000.0)]), Verdict::DoesNotHelp);
        assert_eq!(told(vec![wait(FSYNC, 2.05, 1.1), risk(2000.0, 1000.0)]), Verdict::Helps);
        assert_eq!(told(vec![risk(2000.0, 1000.0)]), Verdict::Helps, "the recording has no wait");
        let missed = Row { doubt: Some(Doubt::BackTest), ..wait(FSYNC, 2.05, 2.11) };
        assert_eq!(told(vec![missed, wait(WAITS, 9.0, 3.0)]), Verdict::Helps);
    }

    #[test]
    fn a_change_surpasses_another_if_a_wait_is_shorter_and_none_longer() {
        let joined = || of(vec![wait(FSYNC, 4.0, 0.29), wait(WAITS, 65.0, 9.8)]);
        assert!(of(vec![wait(FSYNC, 4.0, 0.09), wait(WAITS, 65.0, 4.8)]).surpasses(&joined()));
        assert!(!of(vec![wait(FSYNC, 4.0, 4.0), wait(WAITS, 65.0, 4.8)]).surpasses(&joined()), "fsync waits longer");
        assert!(!joined().surpasses(&joined()));
        let missed = Row { doubt: Some(Doubt::BackTest), roughly: Some((0.7, 4.8)), ..wait(WAITS, 65.0, 0.7) };
        let worse = Row { roughly: Some((0.5, 9.8)), ..missed.clone() };
        assert!(of(vec![missed.clone()]).surpasses(&of(vec![worse.clone()])));
        assert!(!of(vec![worse]).surpasses(&of(vec![missed])));
    }

    #[test]
    fn one_word_says_what_a_change_does() {
        let shown = |rows| Prediction { stay: vec![seen("dirty-cliff")], ..of(rows) };
        assert_eq!(shown(vec![wait(FSYNC, 4.0, 1.0)]).answer(), "helps");
        assert_eq!(shown(vec![wait(FSYNC, 4.0, 4.0)]).answer(), "does_not_help");
        assert_eq!(shown(vec![wait(FSYNC, 4.0, 9.0)]).answer(), "harms");
        let missed = Prediction { back_test_error: Some(0.6), ..shown(vec![wait(FSYNC, 4.0, 1.0)]) };
        assert_eq!(missed.answer(), "no_verdict");
        let both = Row { doubt: Some(Doubt::BackTest), roughly: Some((8.0, 9.0)), ..wait(FSYNC, 4.0, 9.0) };
        assert_eq!(shown(vec![both]).answer(), "may_harm");
    }

    #[test]
    fn less_data_at_risk_is_a_cure_of_what_is_at_risk_only() {
        let rows = || vec![risk(300.0, 30.0)];
        assert_eq!(of(rows()).verdict(&["fsync-behind-writeback"]), Verdict::DoesNotHelp);
        assert_eq!(of(rows()).verdict(&["dirty-data-at-risk"]), Verdict::Helps);
        assert_eq!(of(rows()).verdict(&[]), Verdict::Helps);
    }

    #[test]
    fn sure_losses_of_programs_are_losses() {
        let speed = |low: f64, high: f64| Row {
            better: crate::prediction::Better::More,
            low: low * MIB,
            high: high * MIB,
            ..Row::new("program tar", "throughput of tar", "bytes_per_second", 120.0 * MIB, 38.0 * MIB)
        };
        let names = |row| of(vec![row]).losses().iter().map(|row| row.figure.clone()).collect::<Vec<_>>();
        assert_eq!(names(speed(20.0, 60.0)), ["program tar"]);
        assert_eq!(names(speed(10.0, 150.0)), [""; 0], "it may be as fast as now");
    }

    #[test]
    fn a_verdict_that_rests_on_limits_that_were_never_seen_is_none() {
        let device = |name: &str| Unseen { device: name.to_owned(), bytes_per_second: 32.0 * MIB };
        let told = |devices: &[&str], then: f64| {
            let only_up_to = devices.iter().map(|name| device(name)).collect();
            let stay = vec![seen("dirty-cliff")];
            Prediction { only_up_to, stay, ..of(vec![wait(FSYNC, 1.0, then)]) }.no_verdict(&["dirty-cliff"])
        };
        assert_eq!(told(&[], 4.0), None);
        let one = told(&["vdb"], 4.0).unwrap_or_default();
        assert!(one.contains("it harms with vdb at 32.0 MiB/s, the speed that was seen"), "{one}");
        let two = told(&["vdb", "vdc"], 0.1).unwrap_or_default();
        assert!(two.contains("vdb at 32.0 MiB/s and vdc at 32.0 MiB/s") && two.contains("one of them"), "{two}");
    }

    #[test]
    fn a_change_that_may_shorten_a_wait_which_is_not_predicted_is_not_called_useless() {
        let rules = ["starved-dirty-budget"];
        let after = |now, doubt, roughly| {
            let wait = Row { doubt: Some(doubt), roughly, ..wait(WAITS, now, now) };
            let rows = vec![wait, risk(13.0, 50.0)];
            Prediction { stay: vec![seen(rules[0])], risk_room_bytes: Some(1e9), ..of(rows) }
        };
        let told = |prediction: &Prediction| prediction.no_verdict(&rules);
        let shorter = after(22.0, Doubt::BackTest, Some((3.0, 9.0)));
        assert_eq!(told(&shorter).as_deref(), Some("the twin does not show whether the total of waits gets shorter"));
        assert!(told(&after(22.0, Doubt::Demand, None)).is_some_and(|why| why.contains("--trace on")));
        assert_eq!(told(&after(22.0, Doubt::BackTest, Some((21.0, 24.0)))), None, "it stays");
        assert_eq!(told(&after(0.05, Doubt::BackTest, Some((0.0, 0.0)))), None, "it is not felt");
        let unshown = Row { is_measured: false, ..shorter.rows[0].clone() };
        let of_twin = Prediction { rows: vec![unshown, risk(13.0, 50.0)], ..shorter };
        assert_eq!(told(&of_twin), None, "only the twin has it");
    }

    #[test]
    fn a_twin_without_the_finding_or_unlike_its_recording_gives_no_verdict() {
        let rules = ["io-limit-throttling"];
        let told = |one: Prediction| one.no_verdict(&rules);
        let hidden = Prediction { not_reproduced: vec![rules[0]], ..of(vec![wait(WAITS, 34.0, 3.0)]) };
        assert_eq!(told(hidden.clone()).as_deref(), Some("the twin does not show the finding"));
        let shown = Prediction { stay: vec![seen(rules[0])], ..hidden };
        assert_eq!(told(shown.clone()), None);
        let missed = Prediction { back_test_error: Some(0.61), ..shown.clone() };
        assert_eq!(told(missed).as_deref(), Some("the twin misses this recording by 61 %"));
        let doubted = Row { doubt: Some(Doubt::BackTest), ..wait(WAITS, 34.0, 3.0) };
        let none = Prediction { rows: vec![doubted.clone()], back_test_error: Some(0.0), ..shown.clone() };
        let why = "the twin predicts no wait and no amount of data that the recording has";
        assert_eq!(told(none.clone()).as_deref(), Some(why), "the error of 0 % is no reason");
        let storm = Prediction { stay: vec![seen("inode-switch-storm")], ..none };
        let why = storm.no_verdict(&["inode-switch-storm"]);
        assert_eq!(why.as_deref(), Some("the twin has no inodes of removed cgroups"));
        // The data at risk are predicted, the waits are not.
        let others = vec![Row { off_share: Some(0.48), ..doubted }, risk(118.0, 9.7)];
        let of_others = Prediction { rows: others, ..shown };
        assert_eq!(
            told(of_others.clone()).as_deref(),
            Some("the twin misses the total of waits by 48 %"),
            "less data at risk is no verdict on waits"
        );
        let starved = Prediction { stay: vec![seen("starved-dirty-budget"), seen(rules[0])], ..of_others.clone() };
        assert_eq!(told(starved), None, "a finding of another kind is shown");
        let gone = Prediction { vanish: vec![seen(rules[0])], stay: Vec::new(), ..of_others };
        assert_eq!(told(gone.clone()), None, "the finding surely ends");
        let open = vec![Doubtful::new(&seen(rules[0]), false, Reason::Runs, (0, 0))];
        assert!(told(Prediction { doubtful: open, ..gone }).is_some(), "it may stay");
    }
}
