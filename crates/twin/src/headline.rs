// SPDX-License-Identifier: MIT OR Apache-2.0
//! The first sentence of a prediction: what gets better and what it costs. What the interval or the runs leave open is said
//! with "may" or "maybe".

use crate::backtest;
use floodline_analysis::prediction::{Doubt, LEADS, Prediction, Row, Seen};
use floodline_record::human;

/// The first sentence. If the twin misses its own recording, the sentence begins with that.
pub(crate) fn headline(prediction: &Prediction) -> String {
    let effect = effect(prediction);
    match prediction.back_test_error {
        Some(error) if error > backtest::MISS_MAX => format!(
            "Not reliable: the twin misses this recording by {} (median). In the model: {}{}",
            human::percent(error),
            effect.chars().take(1).flat_map(char::to_lowercase).collect::<String>(),
            effect.chars().skip(1).collect::<String>()
        ),
        _ => effect,
    }
}

fn effect(prediction: &Prediction) -> String {
    let of = |name: &&str| prediction.rows.iter().find(|row| row.figure == **name);
    let mut better: Vec<Part> = prediction.leads().filter(|row| row.improves()).take(2).map(Part::of_row).collect();
    let is_certain = |seen: &Seen| prediction.uncertain.iter().all(|one| one.rule != seen.rule);
    let news = prediction.appear.iter().max_by_key(|seen| (is_certain(seen), seen.severity));
    let of_news = |seen: &Seen| Part { is_certain: is_certain(seen), text: format!("{} appears", seen.rule) };
    let mut worse: Vec<Part> = news.map(of_news).into_iter().collect();
    let does_harm_lead = prediction.harms();
    worse.extend(LEADS.iter().filter_map(of).filter(|row| row.worsens()).take(2).map(Part::of_row));
    let unclear = prediction.rows.iter().any(|row| row.doubt == Some(Doubt::Demand));
    let is_other = |row: &&Row| !LEADS.contains(&row.figure.as_str()) && !row.figure.starts_with("program ");
    let others = prediction.rows.iter().filter(is_other).filter(|row| row.worsens()).map(Part::of_row);
    let mut others: Vec<Part> = others.collect();
    // What is certain stands first.
    [&mut better, &mut worse, &mut others].into_iter().for_each(|parts| parts.sort_by_key(|part| !part.is_certain));
    match (better.is_empty(), worse.is_empty()) {
        (false, true) if !others.is_empty() => {
            format!("It {}. It {}.", Part::all(&better, HELPS), Part::all(&others, COSTS))
        }
        (false, true) => format!("It {}.", Part::all(&better, HELPS)),
        (false, false) if does_harm_lead => {
            format!("It {}. It {}.", Part::all(&worse, HARMS), Part::all(&better, LOWERS))
        }
        (false, false) => format!("It {}. It {}.", Part::all(&better, HELPS), Part::all(&worse, COSTS)),
        (true, false) => format!("It {}.", Part::all(&worse, HARMS)),
        (true, true) if unclear => {
            "It is not known in which direction it works: record with --trace on and predict again.".to_owned()
        }
        (true, true) if prediction.rows.iter().all(|row| row.doubt.is_some()) => {
            "Nothing can be predicted: the twin does not reproduce this recording.".to_owned()
        }
        (true, true) if !others.is_empty() => format!("It helps no task, and it {}.", Part::all(&others, COSTS)),
        (true, true) => "It changes nothing that people would notice here.".to_owned(),
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
    /// Whether the interval lies on one side of the present value, or all runs show the finding.
    is_certain: bool,
    text: String,
}

impl Part {
    fn of_row(row: &Row) -> Part {
        Part { is_certain: row.is_certain(), text: row.sentence() }
    }

    /// Effects behind their verb: certain ones first, "maybe" before the rest.
    fn all(parts: &[Part], (certain, maybe): Verb) -> String {
        let is_any = parts.iter().any(|part| part.is_certain);
        let text = |part: &Part| match is_any && !part.is_certain {
            true => format!("maybe {}", part.text),
            false => part.text.clone(),
        };
        let texts: Vec<String> = parts.iter().map(text).collect();
        format!("{}: {}", if is_any { certain } else { maybe }, texts.join("; "))
    }
}
