// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares one prediction with the recording after the change, figure by figure, and sums up many.

use super::pairs::{Move, One};
use super::{Pair, Runs};
use floodline_analysis::prediction::{Doubtful, NoOther, Prediction, Reason, Row, Seen, Setting, differ};
use floodline_twin::predict::{Measured, spread};
use floodline_twin::shown::{self, Verdicts};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Share by which a figure must change to count as changed. It must also exceed the difference of nine of ten repeats.
const CHANGED_SHARE: f64 = 0.2;
/// Fewest repeats that show the spread of a figure.
const REPEATS_MIN: usize = 5;
/// Figures below this many least noticeable differences are negligible.
const NOTHING: f64 = 2.0;

/// One figure, predicted and real.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Told {
    pub(super) figure: String,
    pub(super) unit: &'static str,
    /// Value in the recording before the change.
    pub(super) now: f64,
    pub(super) predicted: f64,
    pub(super) low: f64,
    pub(super) high: f64,
    /// Value in the recording after the change.
    pub(super) real: f64,
    /// Difference as a share of the real value.
    pub(super) error: f64,
    /// Whether the direction is right; absent if the figure did not really change.
    pub(super) is_right: Option<bool>,
    /// Whether a direction that the prediction states without "maybe" is the real one; absent where it states none. A figure
    /// that really stays counts as wrong.
    pub(super) is_stated_right: Option<bool>,
    pub(super) is_inside: bool,
    /// Error of the back-test.
    pub(super) off_share: Option<f64>,
    pub(super) least: f64,
}

impl Told {
    /// Distance of the real value beyond the interval without its widening `spread`, as a logarithm; negative inside.
    fn beyond(&self, spread: f64) -> f64 {
        let low = ratio(self.least, self.real, self.low);
        let high = ratio(self.least, self.high, self.real);
        low.max(high) + spread
    }
}

/// A figure that the back-test missed: its present value, its two readings after the change, and its real value after it.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Missed {
    figure: String,
    now: f64,
    roughly: (f64, f64),
    real: f64,
}

/// Result of one prediction.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Judged {
    pub(super) scenario: String,
    pub(super) variant: String,
    pub(super) kernel: String,
    #[serde(skip)]
    pub(super) kind: Move,
    /// The change, in words of `--set`.
    pub(super) change: String,
    /// Whether waits, data at risk or bytes written really got worse.
    pub(super) is_worse: bool,
    pub(super) back_test_error: Option<f64>,
    pub(super) figures: Vec<Told>,
    /// Figures that the back-test missed, with the readings of the twin.
    pub(super) missed: Vec<Missed>,
    /// Figures that were refused because the back-test missed them, or because the demand is not known.
    pub(super) refused: usize,
    /// Rules with a finding before the change.
    pub(super) before: Vec<&'static str>,
    /// Rules with a finding in the recording that was predicted from, which may see less.
    #[serde(skip)]
    pub(super) recorded: Vec<&'static str>,
    /// Rules with a finding after the change: predicted, and real.
    pub(super) predicted: Vec<&'static str>,
    pub(super) real: Vec<&'static str>,
    /// Rules of which the prediction says that it is not certain, with the more likely answer and the share of such answers that were
    /// right.
    pub(super) doubtful: Vec<Doubtful>,
    /// The answer that no other finding comes; absent where that was said to be certain.
    pub(super) no_other: Option<NoOther>,
    /// Rules that the prediction could not judge.
    pub(super) unjudged: Vec<&'static str>,
    /// Reason why the findings are uncertain or wrong; empty without `--why`.
    #[serde(skip)]
    pub(super) why: String,
    /// The verdicts of the rules; absent without `--why`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) verdicts: Option<Explained>,
}

/// What the rules say of both recordings and of each run, and the figures of the prediction.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Explained {
    before: Verdicts,
    after: Verdicts,
    runs: Vec<Runs>,
    rows: Vec<Row>,
}

impl Explained {
    pub(super) fn of(prediction: &Prediction, runs: Vec<Runs>, measured: &Measured, after: &One) -> Explained {
        let after = shown::verdicts(&after.recorded.window);
        Explained { before: measured.said.clone(), after, runs, rows: prediction.rows.clone() }
    }
}

/// What a prediction of findings turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Findings {
    /// All is certain and right.
    Right,
    /// All that was said is right, and some of it was said to be likely.
    Likely,
    /// All that was said is right, but something was left open.
    Open,
    /// All that was said to be certain is right, and something that was said to be likely is wrong.
    LikelyWrong,
    /// Something that was said to be certain is wrong.
    Wrong,
}

impl Judged {
    pub(super) fn order(&self) -> (Move, bool, &str, &str, &str, &str) {
        (self.kind, self.is_worse, &self.scenario, &self.variant, &self.kernel, &self.change)
    }

    /// Whether the most likely answer is right, certain or not.
    pub(super) fn is_finding_right(&self) -> bool {
        self.predicted == self.real
    }

    /// The verdict on the findings after the change.
    pub(super) fn findings(&self) -> Findings {
        let others = self.predicted.iter().copied().filter(|rule| !self.real.contains(rule));
        let missing = self.real.iter().copied().filter(|rule| !self.predicted.contains(rule));
        let is_certain = |rule: &&str| self.uncertain().all(|one| one != *rule);
        let is_judged = |rule: &&str| !self.unjudged.contains(rule);
        // Where no other finding likely comes, it is not certain that none does.
        let missing_for_sure = missing.clone().filter(|_| self.no_other.is_none());
        if others.clone().chain(missing_for_sure).any(|rule| is_certain(&rule) && is_judged(&rule)) {
            return Findings::Wrong;
        }
        let likely = || self.likely().map(|(_, is_right)| is_right).chain(self.likely_no_other());
        let is_any_open = self.doubtful.iter().any(|one| !one.is_likely)
            || self.no_other.is_some_and(|one| !one.is_likely)
            || others.chain(missing).any(|rule| is_certain(&rule) && !is_judged(&rule));
        match (likely().next().is_some(), is_any_open) {
            _ if likely().any(|is_right| !is_right) => Findings::LikelyWrong,
            (_, true) => Findings::Open,
            (true, false) => Findings::Likely,
            (false, false) => Findings::Right,
        }
    }

    /// Rules of which the prediction is not certain.
    pub(super) fn uncertain(&self) -> impl Iterator<Item = &'static str> {
        self.doubtful.iter().map(|one| one.rule)
    }

    /// Whether no finding came that the prediction does not name, if that was said.
    pub(super) fn is_no_other_right(&self) -> Option<bool> {
        let is_named = |rule: &str| self.uncertain().chain(self.unjudged.iter().copied()).any(|one| one == rule);
        let is_other = |rule: &str| !self.predicted.contains(&rule) && !is_named(rule);
        self.no_other.map(|_| !self.real.iter().any(|rule| is_other(rule)))
    }

    /// The same, if it was said to be likely.
    pub(super) fn likely_no_other(&self) -> Option<bool> {
        self.is_no_other_right().filter(|_| self.no_other.is_some_and(|one| one.is_likely))
    }

    /// The answers that were said to be likely, and whether each is right.
    pub(super) fn likely(&self) -> impl Iterator<Item = (&Doubtful, bool)> {
        let is_right = |one: &Doubtful| one.is_there == self.real.contains(&one.rule);
        self.doubtful.iter().filter(|one| one.is_likely).map(move |one| (one, is_right(one)))
    }
}

/// Figures for which more is worse: they decide whether a change did harm.
const HARMS: [&str; 3] = ["durable.longest_wait_seconds", "stall_seconds", "devices.written_bytes"];

/// Difference of each figure between repeats, as a logarithm: nine of ten differ by less.
pub(super) type Noise = BTreeMap<String, f64>;

pub(super) fn noise(repeats: &[Judged]) -> Noise {
    let mut by_figure: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for told in repeats.iter().flat_map(|one| &one.figures) {
        by_figure.entry(&told.figure).or_default().push(ratio(told.least, told.now, told.real).abs());
    }
    let quantile = |mut all: Vec<f64>| {
        all.sort_by(f64::total_cmp);
        all.get((all.len() * 9).div_ceil(10).saturating_sub(1)).copied()
    };
    let enough = by_figure.into_iter().filter(|(_, all)| all.len() >= REPEATS_MIN);
    enough.filter_map(|(figure, all)| Some((figure.to_owned(), quantile(all)?))).collect()
}

/// Logarithm of the ratio of two values; small ones count as the least difference that people notice.
pub(super) fn ratio(least: f64, one: f64, other: f64) -> f64 {
    ((other.max(0.0) + least) / (one.max(0.0) + least)).ln()
}

pub(super) fn judge(
    prediction: &Prediction,
    recorded: &Verdicts,
    (pair, all): (&Pair, &[One]),
    noise: &Noise,
) -> Judged {
    let (before, after) = (&all[pair.before], &all[pair.after]);
    let now = shown::of_recording(&before.recorded.window);
    let then = shown::of_recording(&after.recorded.window);
    let (mut figures, mut missed, mut refused) = (Vec::new(), Vec::new(), 0);
    for row in prediction.rows.iter().filter(|row| !row.figure.starts_with("program ")) {
        let Some((now, real)) = now.get(&row.figure).zip(then.get(&row.figure)) else { continue };
        if row.then.max(*real) <= NOTHING * row.least {
            continue;
        }
        match row.doubt {
            None => figures.push(told(row, *now, *real, noise)),
            Some(_) => {
                refused += 1;
                let (figure, now, real) = (row.figure.clone(), *now, *real);
                missed.extend(row.roughly.map(|roughly| Missed { figure, now, roughly, real }));
            }
        }
    }
    let is_more = |name: &&str| {
        let (now, then) = (now.get(*name).copied().unwrap_or(0.0), then.get(*name).copied().unwrap_or(0.0));
        let least = shown::figure(name).map_or(0.0, |named| named.least());
        then > now && has_changed(name, least, (now, then), noise)
    };
    let names = |seen: &[&Seen]| {
        let mut names: Vec<&'static str> = seen.iter().map(|seen| seen.rule).collect();
        names.sort_unstable();
        names
    };
    let found = |one: &One| names(&shown::seen(&one.recorded.window).iter().collect::<Vec<_>>());
    let predicted: Vec<&Seen> = prediction.stay.iter().chain(&prediction.lasting).chain(&prediction.appear).collect();
    Judged {
        scenario: before.scenario.clone(),
        variant: before.variant.clone(),
        kernel: before.kernel.to_string(),
        kind: pair.kind,
        change: words(pair),
        is_worse: HARMS.iter().any(is_more),
        back_test_error: prediction.back_test_error,
        figures,
        missed,
        refused,
        before: found(before),
        recorded: recorded.seen.iter().map(|seen| seen.rule).collect(),
        predicted: names(&predicted),
        real: found(after),
        doubtful: prediction.doubtful.clone(),
        no_other: prediction.no_other,
        unjudged: prediction.unjudged.clone(),
        why: String::new(),
        verdicts: None,
    }
}

/// The change in words of `--set`. Cgroups that get the same limit are counted.
fn words(pair: &Pair) -> String {
    let limit = |one: &Setting| {
        let knob = one.key.strip_prefix("machine.cgroups.")?.rsplit('.').next()?;
        Some((knob.to_owned(), one.value.clone()))
    };
    let alike = pair.settings.chunk_by(|one, other| limit(one).is_some() && limit(one) == limit(other));
    let told = alike.filter_map(|settings| {
        let first = settings.first()?;
        let more = settings.len() - 1;
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        Some(format!("{}={}{more}", first.key, first.value))
    });
    told.collect::<Vec<_>>().join(" ")
}

fn has_changed(figure: &str, least: f64, (now, real): (f64, f64), noise: &Noise) -> bool {
    differ(least, now, real)
        && (real - now).abs() > CHANGED_SHARE * now.abs()
        && noise.get(figure).is_none_or(|noise| ratio(least, now, real).abs() > *noise)
}

fn told(row: &Row, now: f64, real: f64, noise: &Noise) -> Told {
    let is_right = has_changed(&row.figure, row.least, (now, real), noise)
        .then(|| differ(row.least, now, row.then) && (row.then > now) == (real > now));
    let is_stated = row.is_certain() && (row.improves() || row.worsens());
    let is_stated_right = is_stated.then(|| differ(row.least, now, real) && (row.then > row.now) == (real > now));
    Told {
        figure: row.figure.clone(),
        unit: row.unit,
        now,
        predicted: row.then,
        low: row.low,
        high: row.high,
        real,
        error: (row.then - real).abs() / real.abs().max(row.least),
        is_right,
        is_stated_right,
        is_inside: row.low <= real && real <= row.high,
        off_share: row.off_share,
        least: row.least,
    }
}

/// Two runs of one case, as if one predicted the other: the accuracy of a perfect model.
pub(super) fn repeat(all: &[One], pair: &Pair) -> Judged {
    let (before, after) = (&all[pair.before], &all[pair.after]);
    let (now, then) = (shown::of_recording(&before.recorded.window), shown::of_recording(&after.recorded.window));
    let mut figures = Vec::new();
    for named in shown::FIGURES {
        let Some((now, real)) = now.get(named.name).zip(then.get(named.name)) else { continue };
        if now.max(*real) <= NOTHING * named.least() {
            continue;
        }
        figures.push(Told {
            figure: named.name.to_owned(),
            unit: named.unit,
            now: *now,
            predicted: *now,
            low: *now,
            high: *now,
            real: *real,
            error: (now - real).abs() / real.abs().max(named.least()),
            is_right: None,
            is_stated_right: None,
            is_inside: now == real,
            off_share: None,
            least: named.least(),
        });
    }
    let names = |one: &One| {
        let mut names: Vec<&'static str> = shown::seen(&one.recorded.window).iter().map(|seen| seen.rule).collect();
        names.sort_unstable();
        names
    };
    Judged {
        scenario: before.scenario.clone(),
        variant: before.variant.clone(),
        kernel: before.kernel.to_string(),
        kind: pair.kind,
        figures,
        before: names(before),
        predicted: names(before),
        real: names(after),
        ..Judged::default()
    }
}

/// Share of predictions that an interval is to hold.
const HELD: f64 = 0.9;

/// Widening that lets intervals hold nine of ten of these predictions: the smallest of the residuals that is at least
/// as large as nine of ten of them and one more.
fn wanted(mut beyond: Vec<f64>) -> Option<f64> {
    beyond.sort_by(f64::total_cmp);
    let at = ((beyond.len() + 1) as f64 * HELD).ceil() as usize;
    let value = *beyond.get(at.clamp(1, beyond.len().max(1)) - 1)?;
    Some((value.max(0.0) * 1000.0).ceil() / 1000.0)
}

/// The widths that these predictions require, by figure, and over all figures together.
pub(super) fn calibrated<'a>(judged: impl Iterator<Item = &'a Judged>) -> (Vec<(String, f64, usize)>, Option<f64>) {
    let mut by_figure: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for told in judged.flat_map(|one| &one.figures) {
        by_figure.entry(&told.figure).or_default().push(told.beyond(spread(&told.figure, told.off_share.is_some())));
    }
    let all: Vec<f64> = by_figure.values().flatten().copied().collect();
    let of = |(figure, beyond): (&str, Vec<f64>)| {
        let count = beyond.len();
        Some((figure.to_owned(), wanted(beyond)?, count))
    };
    (by_figure.into_iter().filter_map(of).collect(), wanted(all))
}

/// Figures inside intervals whose widths came from the other scenarios, and all figures: the accuracy on an unseen
/// scenario.
pub(super) fn left_out(judged: &[Judged]) -> (usize, usize) {
    let names: BTreeSet<&str> = judged.iter().map(|one| one.scenario.as_str()).collect();
    let (mut inside, mut all) = (0, 0);
    for name in names {
        let (of_it, others): (Vec<&Judged>, Vec<&Judged>) = judged.iter().partition(|one| one.scenario == name);
        let (widths, usual) = calibrated(others.into_iter());
        for told in of_it.iter().flat_map(|one| &one.figures) {
            let width = widths.iter().find(|(figure, ..)| *figure == told.figure).map(|(_, width, _)| *width);
            all += 1;
            inside += usize::from(
                told.beyond(spread(&told.figure, told.off_share.is_some())) <= width.or(usual).unwrap_or(0.0),
            );
        }
    }
    (inside, all)
}

/// Right answers and all answers, by the reason for the doubt, by whether the finding was there before, and by whether it was said
/// to be there after.
pub(super) fn odds(judged: &[Judged]) -> BTreeMap<(Reason, bool, bool), (u32, u32)> {
    let mut odds: BTreeMap<(Reason, bool, bool), (u32, u32)> = BTreeMap::new();
    for one in judged {
        for doubtful in &one.doubtful {
            let was_there = one.recorded.contains(&doubtful.rule);
            let (right, answers) = odds.entry((doubtful.reason, was_there, doubtful.is_there)).or_default();
            *answers += 1;
            *right += u32::from(doubtful.is_there == one.real.contains(&doubtful.rule));
        }
    }
    odds
}

/// Sums over figures.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Sum {
    pub(super) predicted: usize,
    /// Median error; absent without figures.
    pub(super) median: Option<f64>,
    /// Figures that really changed, and those of them whose direction is right.
    pub(super) changed: usize,
    pub(super) right: usize,
    /// Directions that predictions state without "maybe", and those of them that are right.
    pub(super) stated: usize,
    pub(super) stated_right: usize,
    pub(super) inside: usize,
}

pub(super) fn sum<'a>(figures: impl Iterator<Item = &'a Told>) -> Sum {
    let mut sum = Sum::default();
    let mut errors = Vec::new();
    for told in figures {
        sum.predicted += 1;
        sum.changed += usize::from(told.is_right.is_some());
        sum.right += usize::from(told.is_right == Some(true));
        sum.stated += usize::from(told.is_stated_right.is_some());
        sum.stated_right += usize::from(told.is_stated_right == Some(true));
        sum.inside += usize::from(told.is_inside);
        errors.push(told.error);
    }
    errors.sort_by(f64::total_cmp);
    sum.median = match errors.len() {
        0 => None,
        n if n % 2 == 1 => Some(errors[n / 2]),
        n => Some((errors[n / 2 - 1] + errors[n / 2]) / 2.0),
    };
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_analysis::report::Severity;

    fn row(now: f64, then: f64) -> Row {
        Row {
            low: then * 0.8,
            high: then * 1.2,
            least: 0.2,
            ..Row::new("stall_seconds", "waiting", "seconds", now, then)
        }
    }

    #[test]
    fn a_direction_counts_where_the_figure_changed_by_more_than_it_does_by_itself() {
        let right = |real: f64, noise: f64| {
            told(&row(10.0, 5.0), 10.0, real, &Noise::from([("stall_seconds".to_owned(), noise)])).is_right
        };
        assert_eq!(right(5.0, 0.1), Some(true));
        assert_eq!(right(15.0, 0.1), Some(false));
        assert_eq!(right(15.0, 1.0), None);
        assert_eq!(right(9.0, 0.0), None);
    }

    #[test]
    fn a_stated_direction_is_wrong_where_nothing_changes() {
        let stated = |row: Row, real: f64| told(&row, 10.0, real, &Noise::new()).is_stated_right;
        assert_eq!(stated(row(10.0, 5.0), 7.0), Some(true));
        assert_eq!(stated(row(10.0, 5.0), 10.0), Some(false));
        assert_eq!(stated(row(10.0, 5.0), 15.0), Some(false));
        let maybe = Row { high: 12.0, ..row(10.0, 5.0) };
        assert_eq!(stated(maybe, 15.0), None);
    }

    #[test]
    fn widths_hold_nine_of_ten_whatever_they_were_before() {
        let residuals: Vec<f64> = (0..19).map(|n| f64::from(n) / 10.0 - 0.2).collect();
        assert_eq!(wanted(residuals), Some(1.5));
        assert_eq!(wanted(Vec::new()), None);
        assert_eq!(wanted(vec![-1.0; 5]), Some(0.0));
        let mut told = told(&row(10.0, 5.0), 10.0, 20.0, &Noise::new());
        let before = told.beyond(0.0);
        (told.low, told.high) = ((told.low + 0.2) / 2.0 - 0.2, (told.high + 0.2) * 2.0 - 0.2);
        assert!((told.beyond(2.0_f64.ln()) - before).abs() < 1e-9);
    }

    #[test]
    fn sums_have_the_median_and_what_is_inside() {
        let figures = [(5.0, 5.0), (5.0, 4.5), (5.0, 20.0)];
        let figures: Vec<Told> =
            figures.iter().map(|(then, real)| told(&row(10.0, *then), 10.0, *real, &Noise::new())).collect();
        let sum = sum(figures.iter());
        assert_eq!((sum.predicted, sum.inside, sum.changed, sum.right), (3, 2, 3, 2));
        assert!((sum.median.unwrap_or(0.0) - 0.111).abs() < 0.001, "{sum:?}");
    }

    fn of_findings(
        real: &[&'static str],
        predicted: &[&'static str],
        doubtful: &[(&'static str, bool, u32)],
    ) -> Judged {
        let seen = |rule| Seen { rule, severity: Severity::Warning };
        let doubtful = doubtful
            .iter()
            .map(|(rule, is_there, right)| Doubtful::new(&seen(rule), *is_there, Reason::Runs, (*right, 10)));
        Judged { predicted: predicted.to_vec(), real: real.to_vec(), doubtful: doubtful.collect(), ..Judged::default() }
    }

    #[test]
    fn a_likely_answer_is_held_against_the_truth_and_an_open_one_is_not() {
        let check =
            |real: &[&'static str], predicted: &[&'static str], doubtful: &[(&'static str, bool, u32)], expect| {
                assert_eq!(
                    of_findings(real, predicted, doubtful).findings(),
                    expect,
                    "{real:?} {predicted:?} {doubtful:?}"
                );
            };
        check(&["a"], &["a"], &[], Findings::Right);
        check(&["a"], &[], &[], Findings::Wrong);
        check(&["a"], &["a"], &[("a", true, 9)], Findings::Likely);
        check(&["a"], &["a"], &[("a", true, 5)], Findings::Open);
        check(&["a"], &["a"], &[("a", true, 9), ("b", false, 5)], Findings::Open);
        check(&["a"], &[], &[("a", false, 9)], Findings::LikelyWrong);
        check(&["a"], &[], &[("a", false, 9), ("b", false, 5)], Findings::LikelyWrong);
        check(&["a"], &[], &[("a", false, 5)], Findings::Open);
        check(&["a", "b"], &[], &[("a", false, 9)], Findings::Wrong);
    }

    #[test]
    fn a_finding_that_an_unlike_twin_does_not_name_is_no_certain_answer() {
        let check = |real: &[&'static str], right: u32, expect| {
            let no_other = Some(NoOther::new(right, 10));
            let judged = Judged { no_other, ..of_findings(real, &["a"], &[("a", true, 9)]) };
            assert_eq!(judged.findings(), expect, "{real:?} {right}");
        };
        check(&["a"], 9, Findings::Likely);
        check(&["a", "b"], 9, Findings::LikelyWrong);
        check(&["a"], 5, Findings::Open);
        check(&["a", "b"], 5, Findings::Open);
        let nothing = |real| Judged { no_other: Some(NoOther::new(9, 10)), ..of_findings(real, &[], &[]) };
        assert_eq!((nothing(&[]).findings(), nothing(&["b"]).findings()), (Findings::Likely, Findings::LikelyWrong));
    }

    #[test]
    fn odds_are_the_right_answers_of_all() {
        let judged = [
            of_findings(&["a"], &["a"], &[("a", true, 9)]),
            of_findings(&[], &["a"], &[("a", true, 9), ("b", false, 9)]),
        ];
        let odds: Vec<_> = odds(&judged).into_iter().collect();
        assert_eq!(odds, [((Reason::Runs, false, false), (1, 1)), ((Reason::Runs, false, true), (1, 2))]);
    }
}
