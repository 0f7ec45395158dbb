// SPDX-License-Identifier: MIT OR Apache-2.0
//! Predictions and real runs as tables of a page.

use super::pairs::Move;
use super::score::{self, Findings, Judged, Sum, Told, left_out, sum};
use floodline_record::human;
use floodline_twin::shown::FIGURES;
use std::fmt::Write;

/// A name of a kind of change, and which pairs are of it.
type Kind = (&'static str, fn(&Judged) -> bool);

/// Heads of the tables.
const KIND_HEAD: &str = "| change | changes | figures | refused | median error | direction right | stated direction right | inside the interval | findings right | likely and right | left open | likely but wrong | findings wrong |\n\
    |---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n";
const PAIR_HEAD: &str = "| scenario | kernel | change | back-test | figures | median error | direction right | stated direction right | inside the interval | found before | found after, predicted | uncertain | found after, real |\n\
    |---|---|---|---:|---:|---:|---:|---:|---:|---|---|---|---|\n";

/// Kinds of changes.
const KINDS: [Kind; 5] = [
    ("settings, nothing got worse", |one| one.kind == Move::Settings && !one.is_worse),
    ("settings, something got worse", |one| one.kind == Move::Settings && one.is_worse),
    ("another kernel", |one| one.kind == Move::Kernel),
    ("another cgroup mode", |one| one.kind == Move::Cgroups),
    ("another cgroup mode and kernel", |one| one.kind == Move::Both),
];

/// The page: by kind of change, by figure, then every pair.
pub(super) fn markdown((recordings, other_speed): (usize, usize), judged: &[Judged], repeats: &[Judged]) -> String {
    let figures: Vec<&Told> = judged.iter().flat_map(|one| &one.figures).collect();
    let refused: usize = judged.iter().map(|one| one.refused).sum();
    let floor = sum(repeats.iter().flat_map(|one| &one.figures));
    let mut text = format!(
        "{recordings} recordings make {} changes. {} figures are predicted and {refused} refused. {other_speed} more changes are \
         left out because the guest's CPUs were over 1.5 times slower in one of the recordings.\n\n",
        judged.len(),
        figures.len(),
    );
    text.push_str(KIND_HEAD);
    for (name, is_of) in KINDS {
        let of: Vec<&Judged> = judged.iter().filter(|one| is_of(one)).collect();
        kind(&mut text, name, &of);
    }
    kind(&mut text, "all", &judged.iter().collect::<Vec<_>>());
    likely(&mut text, judged);
    let _ = writeln!(
        text,
        "\nReal runs differ, too: {} pairs of recordings in which nothing changed differ by {} (median of their figures), and \
         the rules find the same in {} of them.\n",
        repeats.len(),
        share(floor.median),
        repeats.iter().filter(|one| one.is_finding_right()).count()
    );
    let (inside, all) = left_out(judged);
    let _ = writeln!(
        text,
        "The widths of the intervals are fixed. Chosen on these changes without a scenario, for each in turn, they hold {} of its \
         figures.\n",
        part(inside, all)
    );
    text.push_str("| figure | figures | median error | direction right | stated direction right | inside the interval | between repeats |\n");
    text.push_str("|---|---:|---:|---:|---:|---:|---:|\n");
    for named in FIGURES {
        let of = |told: &&Told| told.figure == named.name;
        let all = sum(figures.iter().copied().filter(of));
        if all.predicted > 0 {
            let between = sum(repeats.iter().flat_map(|one| &one.figures).filter(of));
            let _ = writeln!(text, "| {} | {} | {} |", named.label, cells(&all), share(between.median));
        }
    }
    text.push('\n');
    text.push_str(PAIR_HEAD);
    judged.iter().for_each(|one| pair(&mut text, one));
    text
}

/// One pair as a row.
fn pair(text: &mut String, one: &Judged) {
    let sum = sum(one.figures.iter());
    let name = match one.variant.as_str() {
        "incident" | "default" => one.scenario.clone(),
        variant => format!("{} {variant}", one.scenario),
    };
    let back_test = share(one.back_test_error);
    let (predicted, real) = (list(&one.predicted), list(&one.real));
    let uncertain: Vec<&str> = one.uncertain().collect();
    let uncertain = if uncertain.is_empty() { "–".to_owned() } else { list(&uncertain) };
    let real = if one.is_finding_right() { "the same".to_owned() } else { real };
    let _ = writeln!(
        text,
        "| {name} | {} | {} | {back_test} | {} | {} | {predicted} | {uncertain} | {real} |",
        one.kernel,
        one.change,
        cells(&sum),
        list(&one.before)
    );
}

/// The page of hosts on the model.
pub(super) fn of_model(judged: &[Judged]) -> String {
    let refused: usize = judged.iter().map(|one| one.refused).sum();
    let figures: usize = judged.iter().map(|one| one.figures.len()).sum();
    let mut text =
        format!("{} hosts. {figures} figures are predicted and {refused} refused.\n\n{KIND_HEAD}", judged.len());
    for (name, is_of) in KINDS {
        kind(&mut text, name, &judged.iter().filter(|one| is_of(one)).collect::<Vec<_>>());
    }
    kind(&mut text, "all", &judged.iter().collect::<Vec<_>>());
    likely(&mut text, judged);
    text.push('\n');
    text.push_str(PAIR_HEAD);
    judged.iter().for_each(|one| pair(&mut text, one));
    text
}

/// Right answers and all answers of each kind of doubt, a line each.
pub(super) fn odds(judged: &[Judged]) -> String {
    let line = |((reason, was_there, is_there), (right, answers))| {
        format!("(Reason::{reason:?}, {was_there}, {is_there}, ({right}, {answers})),\n")
    };
    let lines: String = score::odds(judged).into_iter().map(line).collect();
    let others: Vec<bool> = judged.iter().filter_map(Judged::is_no_other_right).collect();
    let right = others.iter().filter(|is_right| **is_right).count();
    format!("{lines}NO_OTHER: ({right}, {}),\n", others.len())
}

/// How many of the answers that were said to be likely are right, and how many should be by their odds.
fn likely(text: &mut String, judged: &[Judged]) {
    let share = |right: u32, answers: u32| f64::from(right) / f64::from(answers.max(1));
    let of_rules =
        judged.iter().flat_map(Judged::likely).map(|(one, is_right)| (share(one.right, one.answers), is_right));
    let of_others = |one: &Judged| {
        let odds = one.no_other.map(|one| share(one.right, one.answers));
        odds.zip(one.likely_no_other())
    };
    let all: Vec<(f64, bool)> = of_rules.chain(judged.iter().filter_map(of_others)).collect();
    let right = all.iter().filter(|(_, is_right)| *is_right).count();
    let expected: f64 = all.iter().map(|(share, _)| share).sum();
    let _ = writeln!(
        text,
        "\nOf the answers that are not certain, {} are said to be likely. {} are right; by the odds that were said, {expected:.1} \
         should be.",
        all.len(),
        part(right, all.len())
    );
}

fn kind(text: &mut String, name: &str, of: &[&Judged]) {
    let sum = sum(of.iter().flat_map(|one| &one.figures));
    let refused: usize = of.iter().map(|one| one.refused).sum();
    let findings = |verdict| part(of.iter().filter(|one| one.findings() == verdict).count(), of.len());
    if of.is_empty() {
        let _ = writeln!(text, "| {name} | 0 | – | – | – | – | – | – | – | – | – | – | – |");
        return;
    }
    let Sum { predicted, .. } = sum;
    let _ = writeln!(
        text,
        "| {name} | {} | {predicted} | {refused} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
        of.len(),
        share(sum.median),
        part(sum.right, sum.changed),
        part(sum.stated_right, sum.stated),
        part(sum.inside, sum.predicted),
        findings(Findings::Right),
        findings(Findings::Likely),
        findings(Findings::Open),
        findings(Findings::LikelyWrong),
        findings(Findings::Wrong)
    );
}

/// Number, median error, direction, stated direction, interval.
fn cells(sum: &Sum) -> String {
    format!(
        "{} | {} | {} | {} | {}",
        sum.predicted,
        share(sum.median),
        part(sum.right, sum.changed),
        part(sum.stated_right, sum.stated),
        part(sum.inside, sum.predicted)
    )
}

fn part(part: usize, of: usize) -> String {
    match of {
        0 => "–".to_owned(),
        of => format!("{part} of {of} ({})", human::percent(part as f64 / of as f64)),
    }
}

fn share(share: Option<f64>) -> String {
    share.map_or_else(|| "–".to_owned(), human::percent)
}

fn list(rules: &[&str]) -> String {
    if rules.is_empty() { "nothing".to_owned() } else { rules.join(", ") }
}
