// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page of two recordings, before and after: the figures that changed, what each shows, and the same curves of both
//! below each other.

use super::Page;
use super::figure::figure;
use super::host::{Host, axis, verdict};
use super::model::{Block, Cell, Section, Table, Verdict};
use super::packed::{Set, pack_all};
use crate::figures::short;
use floodline_analysis::compare::{Against, Comparison, Row};
use floodline_analysis::report::Severity;
use floodline_analysis::run::order::factor;
use floodline_record::human;
use floodline_scenario::Figure;

/// A change below this part counts as none.
const SAME: f64 = 0.05;

/// The page of two recordings.
pub fn compared(before: &Host<'_>, after: &Host<'_>, comparison: &Comparison) -> String {
    let mut page = Page::new(format!("Before and after: {} and {}", before.label, after.label));
    let sides = [("Before", before), ("After", after)];
    page.about = sides.iter().map(|(name, side)| format!("{name}: {}", side.label)).collect();
    let longer = comparison.against.iter().filter_map(crate::compare::longer).collect::<Vec<String>>().join(" ");
    let notes = comparison.against.iter().flat_map(|one| &one.notes);
    let mut both = but(changed(before, after), &longer);
    both.rows.extend(notes.map(|note| ("Warning", note.clone())));
    page.verdict = Some(both);
    let mut sections: Vec<Section> = comparison.against.iter().map(figures).collect();
    let sums = sides.iter().map(|(name, side)| {
        let of = verdict(side.report);
        Block::Text(format!("{name}, {}: {}", of.word, of.sentence))
    });
    sections.insert(0, Section::new("verdicts", "What each shows", sums.collect()));
    let mut sets = Vec::new();
    let mut figures = Vec::new();
    let plots = sides.map(|(_, side)| side.timeline.plots(side.window));
    let ids: Vec<&str> = plots[0].iter().map(|plot| plot.id).collect();
    let more = plots[1].iter().map(|plot| plot.id).filter(|id| !ids.contains(id)).collect::<Vec<&str>>();
    for id in ids.iter().chain(&more) {
        for (number, (name, side)) in sides.iter().enumerate() {
            let found = plots[number].iter().enumerate().find(|(_, plot)| plot.id == *id);
            let Some((at, plot)) = found else { continue };
            let prefix = format!("{}-plot-", name.to_lowercase());
            let mut drawn = figure(axis(side.timeline), plot, &prefix, format!("{number}.{at}"), &[]);
            drawn.title = format!("{name}: {}", drawn.title);
            figures.push(drawn);
        }
    }
    for ((_, side), plots) in sides.iter().zip(&plots) {
        sets.push(Set::new(axis(side.timeline), plots, &[], &[]));
    }
    if !figures.is_empty() {
        sections.push(Section::new("timeline", "Both over time", vec![Block::Plots(figures)]));
        page.data = pack_all(&sets);
    }
    page.sections = sections;
    page.html()
}

/// Whether what was found before is still found.
fn changed(before: &Host<'_>, after: &Host<'_>) -> Verdict {
    let rules = |host: &Host<'_>| -> Vec<&'static str> {
        let findings = host.report.findings.iter().filter(|finding| finding.severity >= Severity::Warning);
        let mut rules: Vec<&'static str> = findings.map(|finding| finding.rule).collect();
        rules.dedup();
        rules
    };
    let (old, new) = (rules(before), rules(after));
    let list = |rules: Vec<&&'static str>| rules.into_iter().copied().collect::<Vec<&str>>().join(", ");
    let gone = list(old.iter().filter(|rule| !new.contains(rule)).collect());
    let stays = list(old.iter().filter(|rule| new.contains(rule)).collect());
    let comes = list(new.iter().filter(|rule| !old.contains(rule)).collect());
    let (class, word, sentence) = match (gone.is_empty(), stays.is_empty(), comes.is_empty()) {
        (_, _, false) => ("warning", "new finding", "The second recording has a finding that the first has not."),
        (true, false, true) => ("warning", "unchanged", "Every finding of the first recording is in the second."),
        (false, false, true) => ("info", "better", "Some findings of the first recording are not in the second."),
        (false, true, true) => ("ok", "gone", "The findings of the first recording are not in the second."),
        (true, true, true) => ("ok", "calm", "Neither recording has a warning or worse."),
    };
    let mut rows = vec![("Gone", gone), ("Still found", stays), ("New", comes)];
    rows.retain(|(_, text)| !text.is_empty());
    Verdict { class, word: word.to_owned(), sentence: sentence.to_owned(), rows, commands: Vec::new() }
}

/// Adds the sync that takes longer to a verdict: a finding that is gone does not outweigh it.
fn but(verdict: Verdict, longer: &str) -> Verdict {
    let Verdict { class, sentence, mut rows, .. } = verdict;
    let (class, sentence) = match (longer.is_empty(), class) {
        (true, _) => (class, sentence),
        (false, "ok" | "info") => ("info", format!("{sentence} But {longer}")),
        (false, _) => {
            rows.push(("Longer", longer.to_owned()));
            (class, sentence)
        }
    };
    Verdict { class, sentence, rows, ..verdict }
}

fn figures(against: &Against) -> Section {
    let mut rows: Vec<&Row> = against.figures.iter().collect();
    // Syncs that take longer stand first, because a program waits for each of them. Then come the figures that changed by the
    // largest factor: in percent, what falls to a hundredth changed less than what grows to three times. A figure that was zero
    // before changed most of all. Last are differences that are too small to notice.
    let weight = |row: &Row| match row.change {
        Some(_) => factor(row.base.mean, row.other.mean),
        None if row.difference != 0.0 => f64::INFINITY,
        None => 0.0,
    };
    let is_same = |row: &Row| row.change.map_or(row.difference == 0.0, |change| change.abs() < SAME);
    rows.sort_by(|a, b| b.is_changed().cmp(&a.is_changed()).then_with(|| weight(b).total_cmp(&weight(a))));
    let longer: Vec<&str> = against.longer_syncs().iter().map(|row| row.name.as_str()).collect();
    rows.sort_by_key(|row| longer.iter().position(|name| *name == row.name).unwrap_or(longer.len()));
    let same = rows.iter().filter(|row| is_same(row)).count();
    let mut table = Table::new(
        format!("Figures of {}: syncs that take longer, then those that changed most", against.label),
        &["Figure", "#before", "#after", "#change"],
    );
    for row in rows.into_iter().filter(|row| !is_same(row)) {
        let value = |value: f64| Cell::Number(short(Figure { value, unit: row.base.unit }));
        let change = match row.change {
            Some(change) if change > 0.0 => format!("+{}", human::percent(change)),
            Some(change) => human::percent(change),
            None => "from zero".to_owned(),
        };
        table.push(vec![
            Cell::Name(row.name.clone()),
            value(row.base.mean),
            value(row.other.mean),
            Cell::Number(change),
        ]);
    }
    if same > 0 {
        let figures = human::plural(same as u64, "figure", "figures");
        table
            .notes
            .push(format!("{figures} within {} of each other: floodline compare lists them.", human::percent(SAME)));
    }
    if !against.unmatched.is_empty() {
        table.notes.push(format!("In one of them only: {}.", against.unmatched.join(", ")));
    }
    Section::new("figures", "Figures", vec![Block::Table(table)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::tests::{against, row};

    #[test]
    fn what_is_cured_stands_above_what_grows_by_less_and_what_nobody_notices_is_last() {
        let row = |name: &str, a, b| row(name, "seconds", a, b);
        let figures = vec![
            row("tiny.write.p50_seconds", 3e-6, 1e-4),
            row("grown.write.max_seconds", 0.1, 0.4),
            row("cured.write.max_seconds", 9.0, 0.1),
            row("new.write.max_seconds", 0.0, 0.1),
            row("same.write.max_seconds", 1.0, 1.0001),
        ];
        let section = super::figures(&against(figures));
        let [Block::Table(table)] = section.blocks.as_slice() else { panic!("{section:?}") };
        let cells = |row: &crate::page::model::Row| match row.cells.as_slice() {
            [Cell::Name(name), .., Cell::Number(change)] => (name.clone(), change.clone()),
            other => panic!("{other:?}"),
        };
        let told: Vec<(String, String)> = table.rows.iter().map(cells).collect();
        let told: Vec<(&str, &str)> = told.iter().map(|(name, change)| (name.as_str(), change.as_str())).collect();
        assert_eq!(
            told,
            [
                ("new.write.max_seconds", "from zero"),
                ("cured.write.max_seconds", "-99 %"),
                ("grown.write.max_seconds", "+300 %"),
                ("tiny.write.p50_seconds", "+3233 %"),
            ]
        );
    }
}
