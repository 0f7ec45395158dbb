// SPDX-License-Identifier: MIT OR Apache-2.0
//! The first sentence of a prediction: what gets better and what it costs. What the interval or the runs leave open is said
//! with "may" or "maybe".

use crate::backtest;
use floodline_analysis::judgement::Verdict;
use floodline_analysis::prediction::{Doubt, LEADS, Prediction, Reason, Row, Seen, Sure};
use floodline_record::human;

/// The first sentence. If the twin misses its own recording, or shows none of its findings, the sentence begins with that.
pub(crate) fn headline(prediction: &Prediction) -> String {
    if let Some(why) = prediction.beyond_the_end().filter(|_| !prediction.is_cut) {
        return format!("No verdict: {why}.");
    }
    let is_verdict = prediction.no_verdict(&prediction.found()).is_none();
    let effect = effect(prediction, is_verdict);
    let in_model = |why: &str| match prediction.only_longer() {
        Some(row) => format!("{why} By both estimates of the twin, tasks wait longer: {}.", row.roughly_said()),
        None => format!(
            "{why} In the model: {}{}",
            effect.chars().take(1).flat_map(char::to_lowercase).collect::<String>(),
            effect.chars().skip(1).collect::<String>()
        ),
    };
    let is_shown = !(prediction.vanish.is_empty() && prediction.stay.is_empty());
    match prediction.back_test_error {
        Some(error) if error > backtest::MISS_MAX => {
            in_model(&format!("Not reliable: the twin misses this recording by {} (median).", human::percent(error)))
        }
        _ if !is_shown && !prediction.not_reproduced.is_empty() => {
            in_model(&format!("No verdict: the twin does not show {}.", prediction.not_reproduced.join(", ")))
        }
        _ => match open(prediction) {
            Some(why) => in_model(&format!("No verdict: {why}.")),
            None if misses_all_waits(prediction) => {
                format!("{effect} No wait of the recording is predicted: the twin misses each of them.")
            }
            None => effect + &hidden(prediction),
        },
    }
}

/// Why the verdict is open though the twin is like its recording.
fn open(prediction: &Prediction) -> Option<String> {
    let found = prediction.found();
    let missed =
        prediction.missed_figure().or_else(|| prediction.unpredicted_wait(&found)).or_else(|| prediction.open_harm());
    missed.or_else(|| prediction.rests_on_unseen(&found)).or_else(|| prediction.of_sparse(&found))
}

/// Whether waits were recorded and the twin misses all of them. The median error of all figures may still be small, because recorded
/// bytes go into the twin as they are.
fn misses_all_waits(prediction: &Prediction) -> bool {
    let mut waits = prediction.rows.iter().filter(|row| row.unit == "seconds" && row.is_measured).peekable();
    let is_any_right = prediction.rows.iter().any(|row| row.doubt.is_none());
    is_any_right && waits.peek().is_some() && waits.all(|row| row.doubt == Some(Doubt::BackTest))
}

/// Names the findings of the recording on which the twin has no verdict: the twin does not show them, and no figure replaces them.
fn hidden(prediction: &Prediction) -> String {
    let is_told = |rule: &&str| prediction.lasting.iter().any(|seen| seen.rule == *rule);
    let hidden: Vec<&str> = prediction.not_reproduced.iter().copied().filter(|rule| !is_told(rule)).collect();
    match hidden.as_slice() {
        [] => String::new(),
        [one] => format!(" No verdict on {one}: the twin does not show it."),
        many => format!(" No verdict on {}: the twin does not show them.", many.join(", ")),
    }
}

/// What gets better and what it costs. Only a verdict says that a change helps.
fn effect(prediction: &Prediction, is_verdict: bool) -> String {
    let is_known = |row: &&Row| !row.is_assumed();
    let improving = || prediction.leads().filter(|row| row.improves());
    let mut better: Vec<Part> = improving().filter(is_known).take(2).map(Part::of_row).collect();
    let assumed = improving().find(|row| row.is_assumed()).map(assumed).unwrap_or_default();
    let sure = |seen: &Seen| prediction.sure(seen.rule);
    let of_news = |seen: &Seen| Part { sure: sure(seen), text: format!("{} appears", seen.rule) };
    let news = prediction.appear.iter().max_by_key(|seen| (std::cmp::Reverse(sure(seen)), seen.severity));
    let news = prediction.hurting().or(news).map(of_news);
    let losses = prediction.losses();
    let is_lead =
        |row: &&&Row| LEADS.contains(&row.figure.as_str()) || (row.is_of_device() && !prediction.is_repeated(row));
    let mut worse: Vec<Part> = news.into_iter().collect();
    worse.extend(losses.iter().filter(is_lead).take(2).map(|row| Part::of_row(row)));
    // The wait that grows may be one that the back-test misses. It is never left to the table: people read this sentence first.
    if worse.is_empty() || !prediction.harms() {
        worse.extend(prediction.roughly_longer().map(Part::of_estimates));
    }
    // A program that surely writes more slowly is a cost as well, whatever gets better.
    let slowed = losses.iter().filter(|row| !is_lead(row)).take(1).map(|row| Part::of_row(row));
    let mut costs: Vec<Part> = slowed.collect();
    let unclear = prediction.rows.iter().any(|row| row.doubt == Some(Doubt::Demand));
    let is_other = |row: &&Row| !is_lead(&row) && !row.figure.starts_with("program ");
    let others = prediction.rows.iter().filter(is_other).filter(|row| row.worsens()).map(Part::of_row);
    match worse.is_empty() {
        true => costs.extend(others),
        false if !prediction.harms() => costs.extend(std::mem::take(&mut worse)),
        false => {}
    }
    // What is certain stands first.
    [&mut better, &mut worse, &mut costs].into_iter().for_each(|parts| parts.sort_by_key(|part| part.sure));
    let and = |parts: &[Part], verb| {
        if parts.is_empty() { String::new() } else { format!(" It {}.", Part::all(parts, verb)) }
    };
    let told = match (prediction.verdict(&prediction.found()), better.is_empty()) {
        (Verdict::Harms, _) => {
            format!("It {}.{}{}", Part::all(&worse, HARMS), and(&better, LOWERS), and(&costs, COSTS))
        }
        (Verdict::Helps, false) => {
            let verb = if is_verdict && helps_by_known(prediction) { HELPS } else { LOWERS };
            format!("It {}.{}", Part::all(&better, verb), and(&costs, COSTS))
        }
        (Verdict::DoesNotHelp, false) => {
            format!("{}{}{}", why_no_help(prediction), and(&better, LOWERS), and(&costs, COSTS))
        }
        (_, true) if unclear && costs.is_empty() => {
            "It is not known in which direction it works: record with --trace on and predict again.".to_owned()
        }
        (_, true) if prediction.rows.iter().all(|row| row.doubt.is_some()) => {
            "Nothing can be predicted: the twin does not reproduce this recording.".to_owned()
        }
        (Verdict::Helps, true) if prediction.vanish.is_empty() => {
            format!("No figure of the recording gets noticeably better.{}", and(&costs, COSTS))
        }
        (Verdict::Helps, true) => {
            let ended = prediction.vanish.first();
            let verb = match ended.map_or(Sure::Certain, sure) {
                Sure::Certain => "ends",
                Sure::Likely => "likely ends",
                Sure::Open => "may end",
            };
            format!("It {verb} {}.{}", ended.map_or("the finding", |seen| seen.rule), and(&costs, COSTS))
        }
        (_, true) if !costs.is_empty() && assumed.is_empty() => {
            format!("It helps no task, and it {}.", Part::all(&costs, COSTS))
        }
        (_, true) if !assumed.is_empty() => {
            format!("No figure of the recording gets noticeably better.{}", and(&costs, COSTS))
        }
        // What the twin misses may change.
        (_, true) if prediction.leads().any(|row| row.doubt.is_some()) => {
            "No predicted figure changes noticeably.".to_owned()
        }
        (_, true) => "It changes nothing that people would notice here.".to_owned(),
    };
    told + &unseen(prediction) + &assumed
}

/// Names a finding that no run of the twin can have.
fn unseen(prediction: &Prediction) -> String {
    let unseen = prediction.doubtful.iter().find(|one| one.reason == Reason::Inodes);
    unseen.map(|one| format!(" The change may bring {}, which the twin cannot show.", one.rule)).unwrap_or_default()
}

/// Whether the change helps by more than waits of syncs that the twin assumes.
fn helps_by_known(prediction: &Prediction) -> bool {
    let rows = prediction.rows.iter().filter(|row| !row.is_assumed()).cloned().collect();
    let known = Prediction { rows, ..prediction.clone() };
    known.verdict(&known.found()) == Verdict::Helps
}

/// A wait for syncs that the recording does not have, behind all else: the twin assumes the syncs.
fn assumed(row: &Row) -> String {
    let text = Part::of_row(row).text;
    format!(" The recording shows no wait for a sync. The twin predicts: {text}.")
}

/// Why a change that makes a figure better is no help.
fn why_no_help(prediction: &Prediction) -> &'static str {
    let is_wait = |row: &&Row| row.unit == "seconds";
    if prediction.losses().into_iter().any(|row| is_wait(&row)) {
        "It does not help on the whole."
    } else if !prediction.leads().filter(is_wait).any(|row| row.improves() && !row.is_assumed()) {
        "It makes no wait shorter."
    } else {
        "It helps by less than the error of the twin."
    }
}

/// A verb where its first object is certain, and where none is.
type Verb = (&'static str, &'static str);

const HELPS: Verb = ("helps", "may help");
const HARMS: Verb = ("makes this host worse", "may make this host worse");
const LOWERS: Verb = ("lowers", "may lower");
const COSTS: Verb = ("costs", "may cost");

/// One effect in the first sentence.
struct Part {
    /// Certain where the interval lies on one side of the present value, or where nothing speaks against the finding.
    sure: Sure,
    text: String,
}

impl Part {
    fn of_row(row: &Row) -> Part {
        Part { sure: if row.is_certain() { Sure::Certain } else { Sure::Open }, text: row.sentence() }
    }

    /// A wait that the twin misses, by both of its estimates.
    fn of_estimates(row: &Row) -> Part {
        Part { sure: Sure::Open, text: row.roughly_said() }
    }

    /// Effects behind their verb: certain ones first, "likely" or "maybe" before the rest.
    fn all(parts: &[Part], (certain, maybe): Verb) -> String {
        let is_any = parts.iter().any(|part| part.sure == Sure::Certain);
        let text = |part: &Part| match part.sure {
            Sure::Likely => format!("likely {}", part.text),
            Sure::Open if is_any => format!("maybe {}", part.text),
            Sure::Certain | Sure::Open => part.text.clone(),
        };
        let texts: Vec<String> = parts.iter().map(text).collect();
        format!("{}: {}", if is_any { certain } else { maybe }, texts.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_analysis::prediction::{PEAK, WAITS};
    use floodline_record::version::KernelVersion;

    #[test]
    fn a_wait_that_the_twin_misses_and_that_makes_the_verdict_is_named() {
        let missed = Row {
            doubt: Some(Doubt::BackTest),
            off_share: Some(0.63),
            roughly: Some((61.0, 164.0)),
            least: 0.2,
            ..Row::new(WAITS, "waits of all tasks", "seconds", 36.0, 61.0)
        };
        let less =
            Row { least: 1e6, off_share: Some(0.02), ..Row::new(PEAK, "peak data at risk", "bytes", 1.3e9, 2.8e8) };
        let base = Prediction::new(Vec::new(), KernelVersion::new(6, 12, 0));
        let told = headline(&Prediction { rows: vec![missed, less], back_test_error: Some(0.03), ..base });
        assert!(
            told.starts_with("It may make this host worse: waits of all tasks, added up, 36 s → 61 s to"),
            "{told}"
        );
    }

    #[test]
    fn a_total_of_waits_that_may_grow_stands_beside_what_gets_better() {
        let rough = |least| Row {
            doubt: Some(Doubt::BackTest),
            off_share: Some(0.4),
            roughly: Some((least, 104.0)),
            least: 0.2,
            ..Row::new(WAITS, "waits of all tasks", "seconds", 33.0, 54.0)
        };
        let fsync = Row {
            off_share: Some(0.02),
            least: 0.02,
            low: 0.5,
            high: 3.0,
            ..Row::new("durable.longest_wait_seconds", "longest fsync", "seconds", 2.3, 0.96)
        };
        let risk =
            Row { least: 1e6, off_share: Some(0.02), ..Row::new(PEAK, "peak data at risk", "bytes", 1.3e9, 2.8e8) };
        let told = |least| {
            let base = Prediction::new(Vec::new(), KernelVersion::new(6, 12, 0));
            let rows = vec![fsync.clone(), rough(least), risk.clone()];
            headline(&Prediction { rows, back_test_error: Some(0.03), ..base })
        };
        let grows = told(38.0);
        assert!(grows.contains("waits of all tasks, added up, 33 s → 38 s to 104 s"), "{grows}");
        assert!(!told(20.0).contains("waits of all tasks"), "one estimate is shorter");
    }
}
