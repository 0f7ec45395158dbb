// SPDX-License-Identifier: MIT OR Apache-2.0
//! A comparison of recordings as text and as JSON: a line per figure with both values and the difference,
//! a line per series.

use crate::figures::short;
use crate::layout::wrap;
use floodline_analysis::compare::{Against, Comparison, Row, Spread};
use floodline_scenario::Figure;

/// Columns besides the name: two values, the change, its noise.
const COLUMNS: usize = 10 + 10 + 9 + 10;

/// For people, within a width.
pub fn text(comparison: &Comparison, width: usize) -> String {
    let mut text = String::new();
    for against in &comparison.against {
        text.push_str(&format!("A: {}\nB: {}\n\n", comparison.base, against.label));
        let names = against.figures.iter().filter(|row| is_shown(row)).map(|row| row.name.chars().count());
        let room = width.saturating_sub(COLUMNS + 4).max(20);
        let widest = names.max().unwrap_or(0).clamp(6, room);
        text.push_str(&format!("{:<widest$} {:>10} {:>10} {:>9} {:>10}\n", "figure", "A", "B", "B-A", "noise"));
        for row in against.figures.iter().filter(|row| is_shown(row)) {
            text.push_str(&line(row, widest));
        }
        text.push_str(&series(against));
        if !against.unmatched.is_empty() {
            let said = format!("Only in one of them: {}", against.unmatched.join(", "));
            text.push('\n');
            text.extend(wrap(&said, width).into_iter().map(|line| line + "\n"));
        }
        text.push('\n');
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

/// For programs.
pub fn json(comparison: &Comparison) -> Result<String, serde_json::Error> {
    crate::json::line(comparison)
}

fn is_shown(row: &Row) -> bool {
    row.base.mean != 0.0 || row.other.mean != 0.0
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
mod tests {
    use super::*;
    use floodline_analysis::compare::SeriesRow;

    fn spread(values: &[f64]) -> Spread {
        Spread::of_values(values, "seconds").unwrap()
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
            }],
        };
        let text = text(&comparison, 80);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        let expect = "\
A: incident.flr
B: remedy.flr

figure                                         A          B       B-A      noise
mail.fsync.max_seconds                    1.00 s   250.0 ms   -75.0 %   10.0 % *
a-task-with-a-very-long-name-indeed.…     1.00 s   250.0 ms   -75.0 %          ?

series             peak of both   mean |A-B| / peak   among repeats
dirty                   286 MiB              50.0 %               ?

Only in one of them: only.here
";
        assert_eq!(text, expect);
    }
}
