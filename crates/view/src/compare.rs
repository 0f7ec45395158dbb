// SPDX-License-Identifier: MIT OR Apache-2.0
//! A comparison of recordings as text and as JSON: a line per figure with both values and the difference,
//! a line per series.

use crate::figures::short;
use crate::layout::wrap;
use floodline_analysis::compare::{Against, Comparison, Row, Spread};
use floodline_analysis::run::order::{factor, is_sync_wait};
use floodline_record::human;
use floodline_scenario::Figure;

/// Columns besides the name: two values, the change, its noise.
const COLUMNS: usize = 10 + 10 + 9 + 10;

/// Figures that the short form shows at most.
const ROWS_MAX: usize = 16;

/// Text for people, within a width: waits for stable storage, those that grew in front, then the other changed figures, the
/// largest factor first. `all` shows every figure by name.
pub fn text(comparison: &Comparison, width: usize, all: bool) -> String {
    let mut text = String::new();
    for against in &comparison.against {
        text.push_str(&format!("A: {}\nB: {}\n\n", comparison.base, against.label));
        for note in &against.notes {
            text.extend(wrap(&format!("Warning: {note}"), width).into_iter().map(|line| line + "\n"));
            text.push('\n');
        }
        let (rows, changed, same) = first(against, all);
        let names = rows.iter().map(|row| row.name.chars().count());
        let room = width.saturating_sub(COLUMNS + 4).max(20);
        let widest = names.max().unwrap_or(0).clamp(6, room);
        text.push_str(&format!("{:<widest$} {:>10} {:>10} {:>9} {:>10}\n", "figure", "A", "B", "B-A", "noise"));
        for row in &rows {
            text.push_str(&line(row, widest));
        }
        match (rows.is_empty(), all) {
            (true, _) => text.push_str("no figure changed\n"),
            (false, true) => {}
            (false, false) => {
                text.extend(wrap(ORDER, width).into_iter().map(|line| line + "\n"));
            }
        }
        let rest = match (changed, same) {
            (0, 0) => None,
            (0, same) => Some(format!("{} about equal.", human::plural(same, "more figure is", "more figures are"))),
            (changed, 0) => {
                Some(format!("{} too.", human::plural(changed, "more figure changed", "more figures changed")))
            }
            (changed, same) => Some(format!("{changed} more changed, {same} are about equal.")),
        };
        if let Some(rest) = rest {
            let said = format!("{rest} To see all figures, sorted by name, add --all.");
            text.extend(wrap(&said, width).into_iter().map(|line| line + "\n"));
        }
        text.push_str(&series(against));
        if !against.unmatched.is_empty() {
            let said = format!("Figures of only one recording: {}", against.unmatched.join(", "));
            text.push('\n');
            text.extend(wrap(&said, width).into_iter().map(|line| line + "\n"));
        }
        text.push('\n');
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    crate::run::simplified(&mut text, &comparison.simplified, width);
    text
}

const ORDER: &str =
    "Order: waits for stable storage (longer ones first), then the other figures by the factor between A and B.";

/// States the wait for stable storage that grew by the largest factor. `None` if none grew.
pub(crate) fn longer(against: &Against) -> Option<String> {
    let row = *against.longer_syncs().first()?;
    let value = |spread: &Spread| short(Figure { value: spread.mean, unit: spread.unit });
    let times = factor(row.base.mean, row.other.mean);
    let times = if times.is_finite() { format!(", {} times as long", human::number(times)) } else { String::new() };
    Some(format!("{} went from {} to {}{times}.", row.name, value(&row.base), value(&row.other)))
}

/// For programs.
pub fn json(comparison: &Comparison) -> Result<String, serde_json::Error> {
    crate::json::line(comparison)
}

fn is_shown(row: &Row) -> bool {
    row.base.mean != 0.0 || row.other.mean != 0.0
}

/// The figures to show in order, how many changed ones are left out, and how many equal ones.
fn first(against: &Against, all: bool) -> (Vec<&Row>, u64, u64) {
    let shown = || against.figures.iter().filter(|row| is_shown(row));
    if all {
        return (shown().collect(), 0, 0);
    }
    let mut rows = against.longer_syncs();
    let is_new = |row: &&Row| against.longer_syncs().iter().all(|longer| longer.name != row.name);
    let (syncs, others): (Vec<&Row>, Vec<&Row>) = shown().filter(is_new).partition(|row| is_sync_wait(&row.name));
    rows.extend(syncs);
    let (mut changed, same): (Vec<&Row>, Vec<&Row>) = others.into_iter().partition(|row| row.is_changed());
    changed.sort_by(|a, b| factor(b.base.mean, b.other.mean).total_cmp(&factor(a.base.mean, a.other.mean)));
    let room = ROWS_MAX.saturating_sub(rows.len()).min(changed.len());
    let left_out = changed.split_off(room);
    rows.extend(changed);
    (rows, left_out.len() as u64, same.len() as u64)
}

fn line(row: &Row, widest: usize) -> String {
    let value = |spread: &Spread| short(Figure { value: spread.mean, unit: spread.unit });
    let change = match row.change {
        Some(change) if change.abs() >= 9.995 => format!("x{:.1}", change + 1.0),
        Some(change) => format!("{:+.1} %", change * 100.0),
        None => "new".to_owned(),
    };
    let noise = match (row.noise, row.beyond_noise) {
        (Some(noise), Some(beyond)) => {
            let noise = if row.base.mean == 0.0 {
                String::new()
            } else {
                format!("{:.1} %", noise / row.base.mean.abs() * 100.0)
            };
            format!("{noise}{}", if beyond { " *" } else { "" })
        }
        _ => "?".to_owned(),
    };
    let name: String = match row.name.char_indices().nth(widest) {
        Some(_) => row.name.chars().take(widest - 1).chain(['…']).collect(),
        None => row.name.clone(),
    };
    format!("{name:<widest$} {:>10} {:>10} {change:>9} {noise:>10}\n", value(&row.base), value(&row.other))
}

fn series(against: &Against) -> String {
    let mut text = String::new();
    if !against.series.is_empty() {
        text.push_str("\nseries             peak of both   mean |A-B| / peak   among repeats\n");
    }
    for row in &against.series {
        let peak = short(Figure { value: row.peak, unit: row.unit });
        let noise = row.noise.map_or("?".to_owned(), |noise| format!("{:.1} %", noise * 100.0));
        let difference = format!("{:.1} %", row.mean_absolute_difference * 100.0);
        text.push_str(&format!("{:<18} {peak:>12} {difference:>19} {noise:>15}\n", row.name));
    }
    text
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use floodline_analysis::compare::SeriesRow;

    /// A figure of one run each.
    pub(crate) fn row(name: &str, unit: &'static str, a: f64, b: f64) -> Row {
        Row {
            name: name.to_owned(),
            base: Spread::of_values(&[a], unit).unwrap(),
            other: Spread::of_values(&[b], unit).unwrap(),
            difference: b - a,
            change: (a != 0.0).then(|| (b - a) / a),
            noise: None,
            beyond_noise: None,
        }
    }

    /// A comparison of these figures alone.
    pub(crate) fn against(figures: Vec<Row>) -> Against {
        let label = "b.flr".to_owned();
        Against { label, figures, unmatched: Vec::new(), series: Vec::new(), notes: Vec::new() }
    }

    fn spread(values: &[f64]) -> Spread {
        Spread::of_values(values, "seconds").unwrap()
    }

    #[test]
    fn what_changed_is_shown_and_the_rest_is_counted() {
        let figures = vec![
            row("a.write.max_seconds", "seconds", 1.0, 2.0),
            row("a.write.p50_seconds", "seconds", 3e-6, 2e-4),
            row("b.dirtied_bytes", "bytes", 1e9, 1.01e9),
            row("b.written_bytes", "bytes", 1e9, 9e9),
            row("y.fsync.p90_seconds", "seconds", 0.08, 0.4),
            row("z.fsync.max_seconds", "seconds", 1.0, 1.0),
        ];
        let comparison = Comparison {
            schema: "s",
            base: "a.flr".to_owned(),
            against: vec![against(figures)],
            simplified: Vec::new(),
        };
        let names = |all| {
            let text = text(&comparison, 80, all);
            let names = text.lines().skip(4).map_while(|line| Some(line.split_once(' ')?.0.to_owned()));
            names.take_while(|name| name.contains('.')).collect::<Vec<_>>()
        };
        assert_eq!(
            names(false),
            ["y.fsync.p90_seconds", "z.fsync.max_seconds", "b.written_bytes", "a.write.max_seconds"]
        );
        assert_eq!(names(true).len(), 6);
        let told = longer(&comparison.against[0]).unwrap();
        assert_eq!(told, "y.fsync.p90_seconds went from 80.0 ms to 400.0 ms, 5 times as long.");
        let text = text(&comparison, 80, false);
        assert!(
            text.contains("2 more figures are about equal. To see all figures, sorted by name, add --all."),
            "{text}"
        );
        assert!(text.contains("the factor between A and B."), "{text}");
    }

    #[test]
    fn a_line_per_figure_fits_the_width() {
        let row = |name: &str, noise: Option<f64>| Row {
            name: name.to_owned(),
            base: spread(&[1.0]),
            other: spread(&[0.25]),
            difference: -0.75,
            change: Some(-0.75),
            noise,
            beyond_noise: noise.map(|_| true),
        };
        let long = "a-task-with-a-very-long-name-indeed.create_files.max_seconds";
        let comparison = Comparison {
            schema: "s",
            base: "incident.flr".to_owned(),
            simplified: Vec::new(),
            against: vec![Against {
                label: "remedy.flr".to_owned(),
                figures: vec![row("mail.fsync.max_seconds", Some(0.1)), row(long, None)],
                unmatched: vec!["only.here".to_owned()],
                series: vec![SeriesRow {
                    name: "dirty",
                    unit: "bytes",
                    peak: 3e8,
                    mean_absolute_difference: 0.5,
                    noise: None,
                }],
                notes: Vec::new(),
            }],
        };
        let whole = text(&comparison, 80, true);
        let text = text(&comparison, 80, false);
        let order = wrap(ORDER, 80).join("\n") + "\n";
        assert_eq!(whole, text.replace(&order, ""), "both figures changed, so both are shown");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        let expect = "\
A: incident.flr
B: remedy.flr

figure                                         A          B       B-A      noise
mail.fsync.max_seconds                    1.00 s   250.0 ms   -75.0 %   10.0 % *
a-task-with-a-very-long-name-indeed.…     1.00 s   250.0 ms   -75.0 %          ?
Order: waits for stable storage (longer ones first), then the other figures by
the factor between A and B.

series             peak of both   mean |A-B| / peak   among repeats
dirty                   286 MiB              50.0 %               ?

Figures of only one recording: only.here
";
        assert_eq!(text, expect);
    }
}
