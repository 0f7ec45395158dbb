// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the advice of `doctor` did to a scenario on a real kernel: before, after, and what the twin of the first
//! recording had predicted. As text, JSON and Markdown.

use serde::Serialize;
use std::fmt::Write as _;

/// Schema of the JSON form.
pub const SCHEMA: &str = "floodline.advised/1";

/// One scenario on one kernel.
#[derive(Clone, Debug, Serialize)]
pub struct Advised {
    /// Name of the scenario.
    pub scenario: String,
    /// Its variant.
    pub variant: String,
    /// Kernel.
    pub kernel: String,
    /// Rules that were found before, worst first.
    pub found_before: Vec<String>,
    /// What was changed, as `NAME=VALUE`; empty without a plan.
    pub changes: Vec<String>,
    /// What `doctor` says of the change: `now`, `candidate, not checked`, `withheld, harms` and so on.
    pub said: &'static str,
    /// Steps of the plan that no machine of the lab can take.
    pub not_taken: Vec<String>,
    /// Rules that were found after.
    pub found_after: Vec<String>,
    /// What people feel.
    pub figures: Vec<Row>,
    /// What the change did.
    pub verdict: Verdict,
    /// Why there is no prediction, or no second run.
    pub note: Option<String>,
}

/// One figure.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Name.
    pub name: String,
    /// Unit: `seconds` or `bytes`.
    pub unit: &'static str,
    /// In the first run.
    pub before: f64,
    /// In the run after the change.
    pub after: Option<f64>,
    /// What the twin predicted.
    pub predicted: Option<f64>,
}

/// What a change did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// No rule finds anything any more.
    Cured,
    /// A figure of harm is at most half of what it was.
    Helped,
    /// A figure of harm is lower by a sixth at least.
    Hardly,
    /// Nothing changed.
    Nothing,
    /// A figure of harm grew by more than a fifth, and by what people notice.
    Worse,
    /// There was nothing to change.
    NoPlan,
    /// The lab could not run the scenario, or could not make the change: the note says why.
    NotRun,
}

impl Verdict {
    /// The verdict in a table.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Cured => "cured",
            Verdict::Helped => "helped",
            Verdict::Hardly => "hardly",
            Verdict::Nothing => "nothing",
            Verdict::Worse => "worse",
            Verdict::NoPlan => "no plan",
            Verdict::NotRun => "not run",
        }
    }
}

/// Judges a change by what is found after it and by the waits, or by the bytes where no wait is long enough to be felt. Bytes
/// are worse only if all of them grew: more that is dirtied and written is rewriting, more that is only written is less at
/// risk.
pub fn verdict(figures: &[Row], is_found_after: bool) -> Verdict {
    let ratios = |unit| figures.iter().filter(move |row| row.unit == unit).filter_map(ratio);
    let waits: Vec<f64> = ratios("seconds").collect();
    let bytes: Vec<f64> = ratios("bytes").collect();
    let (felt, worst) = match waits.is_empty() {
        true => (&bytes, bytes.iter().copied().reduce(f64::min)),
        false => (&waits, waits.iter().copied().reduce(f64::max)),
    };
    let best = felt.iter().copied().reduce(f64::min).unwrap_or(1.0);
    let worst = worst.unwrap_or(1.0);
    match (is_found_after, best, worst) {
        (.., worst) if worst > 1.2 => Verdict::Worse,
        (false, ..) => Verdict::Cured,
        (_, best, _) if best <= 0.5 => Verdict::Helped,
        (_, best, _) if best <= 5.0 / 6.0 => Verdict::Hardly,
        _ => Verdict::Nothing,
    }
}

/// How much of a figure is left, unless it is too small to be felt. Growth by less than what is felt is none: no person notices that a sync
/// of 0.06 s takes 0.12 s.
fn ratio(row: &Row) -> Option<f64> {
    let least = if row.unit == "seconds" { 0.1 } else { 1e6 };
    let after = row.after?;
    let grown = (0.0..least).contains(&(after - row.before));
    let left = || if grown { 1.0 } else { after.max(least / 10.0) / row.before.max(least / 10.0) };
    (row.before.max(after) >= least).then(left)
}

fn amount(unit: &str, value: f64) -> String {
    match unit {
        "seconds" if value >= 10.0 => format!("{value:.0} s"),
        "seconds" => format!("{value:.2} s"),
        _ => format!("{:.0} MiB", value / f64::from(1 << 20)),
    }
}

/// For documentation: one line for each figure.
pub fn markdown(rows: &[Advised]) -> String {
    let mut out = String::from(
        "| scenario | kernel | found | change | figure | before | after | predicted | verdict |\n\
         |---|---|---|---|---|---:|---:|---:|---|\n",
    );
    for row in rows {
        let change = match (row.changes.is_empty(), row.said.starts_with("now")) {
            (true, _) => "–".to_owned(),
            (false, true) => row.changes.join(" "),
            (false, false) => format!("{}: {}", row.said, row.changes.join(" ")),
        };
        let found = row.found_before.first().map_or("–", String::as_str);
        let head = format!("{} {} | {} | {found} | {change}", row.scenario, row.variant, row.kernel);
        // A run that failed is told in its cell: an empty row would look like a host that needs no change.
        let why = row.note.as_deref().filter(|_| row.verdict == Verdict::NotRun);
        let word = why.map_or(row.verdict.word().to_owned(), |why| why.replace(['|', '\n'], " "));
        if row.figures.is_empty() {
            let _ = writeln!(out, "| {head} | | | | | {word} |");
        }
        for (number, figure) in row.figures.iter().enumerate() {
            let head = if number == 0 { head.as_str() } else { "| | |" };
            let verdict = if number == 0 { word.as_str() } else { "" };
            let of = |value: Option<f64>| value.map_or("–".to_owned(), |value| amount(figure.unit, value));
            let _ = writeln!(
                out,
                "| {head} | {} | {} | {} | {} | {verdict} |",
                figure.name,
                of(Some(figure.before)),
                of(figure.after),
                of(figure.predicted)
            );
        }
    }
    out
}

/// For people.
pub fn text(rows: &[Advised]) -> String {
    let mut out = String::new();
    for row in rows {
        let _ = writeln!(out, "{} {} on {}: {}", row.scenario, row.variant, row.kernel, row.verdict.word());
        let list = |names: &[String]| if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
        let _ = writeln!(out, "  Found before  {}", list(&row.found_before));
        let _ = writeln!(out, "  Change        {}", list(&row.changes));
        let _ = writeln!(out, "  doctor says   {}", row.said);
        for step in &row.not_taken {
            let _ = writeln!(out, "  Not taken     {step}");
        }
        let _ = writeln!(out, "  Found after   {}", list(&row.found_after));
        for figure in &row.figures {
            let of = |value: Option<f64>| value.map_or("–".to_owned(), |value| amount(figure.unit, value));
            let (before, after, predicted) = (of(Some(figure.before)), of(figure.after), of(figure.predicted));
            let _ = writeln!(out, "  {:<32} {before:>9} -> {after:>9}   predicted {predicted:>9}", figure.name);
        }
        if let Some(note) = &row.note {
            let _ = writeln!(out, "  {note}");
        }
    }
    out
}

/// For programs.
///
/// # Errors
///
/// Memory only.
pub fn json(rows: &[Advised]) -> Result<String, serde_json::Error> {
    #[derive(Serialize)]
    struct Document<'a> {
        schema: &'static str,
        runs: &'a [Advised],
    }
    Ok(serde_json::to_string(&Document { schema: SCHEMA, runs: rows })? + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(unit: &'static str, before: f64, after: f64) -> Row {
        Row { name: "x".to_owned(), unit, before, after: Some(after), predicted: None }
    }

    #[test]
    fn a_change_is_judged_by_what_people_feel() {
        let judge = |before, after, found| verdict(&[row("seconds", before, after)], found);
        assert_eq!(judge(3.0, 0.2, false), Verdict::Cured);
        assert_eq!(judge(3.0, 1.2, true), Verdict::Helped);
        assert_eq!(judge(3.0, 2.2, true), Verdict::Hardly);
        assert_eq!(judge(3.0, 2.9, true), Verdict::Nothing);
        assert_eq!(judge(1.7, 4.3, true), Verdict::Worse);
        assert_eq!(judge(1.7, 4.3, false), Verdict::Worse, "waits that nothing names are harm too");
        assert_eq!(judge(0.002, 0.04, false), Verdict::Cured, "too short to be felt");
        assert_eq!(judge(0.06, 0.13, false), Verdict::Cured, "longer by less than what is felt");
        assert_eq!(judge(0.06, 0.18, false), Verdict::Worse);
        assert_eq!(judge(0.002, 0.04, true), Verdict::Nothing);
        let starved = [row("seconds", 0.06, 0.12), row("seconds", 786.0, 2.4)];
        assert_eq!(verdict(&starved, true), Verdict::Helped);
        let slower = [row("seconds", 4.6, 9.3), row("bytes", 8e8, 3e8)];
        assert_eq!(verdict(&slower, true), Verdict::Worse, "fewer bytes are no help to those who wait longer");
        assert_eq!(verdict(&[row("bytes", 2.2e9, 1.5e8)], true), Verdict::Helped);
        assert_eq!(
            verdict(&[row("bytes", 3e8, 3e8), row("bytes", 0.0, 2e8)], true),
            Verdict::Nothing,
            "written at last"
        );
        assert_eq!(verdict(&[row("bytes", 3e8, 9e8), row("bytes", 2e8, 8e8)], true), Verdict::Worse, "rewritten");
    }

    #[test]
    fn a_table_has_a_line_for_each_figure() {
        let advised = Advised {
            scenario: "dirty-cliff".to_owned(),
            variant: "incident".to_owned(),
            kernel: "6.12".to_owned(),
            found_before: vec!["dirty-cliff".to_owned()],
            changes: vec!["vm.dirty_bytes=1".to_owned()],
            said: "now",
            not_taken: Vec::new(),
            found_after: Vec::new(),
            figures: vec![row("seconds", 3.1, 0.3), row("bytes", 2e8, 3e7)],
            verdict: Verdict::Cured,
            note: None,
        };
        let table = markdown(std::slice::from_ref(&advised));
        assert_eq!(table.lines().count(), 4);
        assert!(table.lines().all(|line| line.matches('|').count() == 10), "{table}");
        let candidate = markdown(&[Advised { said: "candidate, not checked", ..advised.clone() }]);
        assert!(candidate.contains("| candidate, not checked: vm.dirty_bytes=1 |"), "{candidate}");
        let note = Some("Not run: the disk is full | really".to_owned());
        let failed = Advised { figures: Vec::new(), verdict: Verdict::NotRun, note, ..advised };
        let table = markdown(&[failed]);
        assert!(table.contains("the disk is full"), "{table}");
        assert!(table.lines().all(|line| line.matches('|').count() == 10), "{table}");
    }
}
