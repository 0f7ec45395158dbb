// SPDX-License-Identifier: MIT OR Apache-2.0
//! The figures of a run as text: a line per task and operation, a line per task. The names are those of
//! the JSON form; one that fits neither line stands on its own, so that nothing is left out.

use crate::layout::wrap;
use floodline_record::human;
use floodline_scenario::Figure;
use std::collections::{BTreeMap, BTreeSet};

/// Columns of an operation, with the last part of the figure's name.
const OPERATION: &[(&str, &str)] = &[
    ("count", "count"),
    ("per s", "per_second"),
    ("bytes/s", "bytes_per_second"),
    ("p50", "p50_seconds"),
    ("p90", "p90_seconds"),
    ("p99", "p99_seconds"),
    ("p99.9", "p999_seconds"),
    ("max", "max_seconds"),
];

/// What a narrow terminal does without, first to last.
const DISPENSABLE: &[&str] = &["p90", "p99.9", "count", "bytes/s", "per s"];
/// Columns of the terminal that a value takes, with the gap before it.
const CELL: usize = 10;

/// Renders the figures, one line each for operations and tasks, in so many columns. What does not fit is named.
pub fn render(figures: &BTreeMap<String, Figure>, width: usize) -> String {
    let operations: BTreeSet<&str> =
        figures.keys().filter_map(|name| name.strip_suffix(".count")).filter(|name| name.contains('.')).collect();
    let widest = operations.iter().map(|name| name.chars().count()).max().unwrap_or(0).max("operation".len());
    let fitting = width.saturating_sub(2 + widest) / CELL;
    let left_out = DISPENSABLE.get(..OPERATION.len().saturating_sub(fitting)).unwrap_or(DISPENSABLE);
    let columns = || OPERATION.iter().filter(|(heading, _)| !left_out.contains(heading));
    let mut text = String::new();
    if !operations.is_empty() {
        text.push_str(&format!("  {:<widest$}", "operation"));
        for (heading, _) in columns() {
            text.push_str(&format!(" {heading:>9}"));
        }
        text.push('\n');
    }
    for operation in &operations {
        text.push_str(&format!("  {operation:<widest$}"));
        for (_, last) in columns() {
            let figure = figures.get(&format!("{operation}.{last}"));
            // Most operations move no bytes.
            let figure = figure.filter(|figure| figure.value != 0.0 || figure.unit != "bytes_per_second");
            let value = figure.map_or("-".to_owned(), |figure| short(*figure));
            text.push_str(&format!(" {value:>9}"));
        }
        text.push('\n');
    }
    if !operations.is_empty() && !left_out.is_empty() {
        let said = format!("A wider terminal also shows {}; --format json has all.", left_out.join(", "));
        text.extend(wrap(&said, width.saturating_sub(2)).iter().map(|line| format!("  {line}\n")));
    }
    let is_shown = |name: &str| match name.rsplit_once('.') {
        Some((operation, last)) => operations.contains(operation) && OPERATION.iter().any(|(_, known)| *known == last),
        None => false,
    };
    let rest = figures.iter().filter(|(name, figure)| !is_shown(name) && figure.value != 0.0);
    for (name, figure) in rest {
        text.push_str(&format!("  {name}: {}\n", short(*figure)));
    }
    text
}

/// A value with its unit, short enough for a column.
pub fn short(figure: Figure) -> String {
    let value = figure.value;
    match figure.unit {
        _ if value == 0.0 => "0".to_owned(),
        "seconds" if value < 0.000_001 => format!("{:.0} ns", value * 1e9),
        "seconds" if value < 0.001 => format!("{:.0} µs", value * 1e6),
        "seconds" if value < 1.0 => format!("{:.1} ms", value * 1e3),
        "seconds" => format!("{value:.2} s"),
        "bytes" | "bytes_per_second" if value.abs() < 1.0 => format!("{value:.2} B"),
        "bytes" | "bytes_per_second" => human::bytes(value),
        "share" => format!("{:.2} %", value * 100.0),
        "ratio" => format!("{value:.2}"),
        _ if value.fract() == 0.0 => format!("{value:.0}"),
        _ => format!("{value:.1}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(figures: &BTreeMap<String, Figure>, width: usize, expect: &str) {
        assert_eq!(render(figures, width), expect);
    }

    #[test]
    fn nothing_is_a_zero_and_little_is_none() {
        let check = |value, unit, expect: &str| assert_eq!(short(Figure { value, unit }), expect, "{value} {unit}");
        for unit in ["seconds", "bytes", "bytes_per_second", "share", "count"] {
            check(0.0, unit, "0");
        }
        check(4e-7, "seconds", "400 ns");
        check(4e-6, "seconds", "4 µs");
        check(300.0, "bytes_per_second", "300 B");
        check(0.3, "bytes_per_second", "0.30 B");
        check(25e6, "bytes", "23.8 MiB");
        check(0.25, "share", "25.00 %");
    }

    #[test]
    fn an_operation_is_one_line_and_the_rest_is_listed() {
        let figures = [
            ("t.umount.count", 10.0, "count"),
            ("t.umount.max_seconds", 2.7356, "seconds"),
            ("t.umount.p50_seconds", 0.0004, "seconds"),
            ("t.dirtied_bytes_per_second", 25_582_686.5, "bytes_per_second"),
            ("t.stalls_count", 0.0, "count"),
        ];
        let figures =
            figures.map(|(name, value, unit)| (name.to_owned(), Figure { value, unit })).into_iter().collect();
        check(
            &figures,
            100,
            "\
\x20 operation     count     per s   bytes/s       p50       p90       p99     p99.9       max
\x20 t.umount         10         -         -    400 µs         -         -         -    2.74 s
\x20 t.dirtied_bytes_per_second: 24.4 MiB
",
        );
        check(
            &figures,
            80,
            "\
\x20 operation     count     per s   bytes/s       p50       p99       max
\x20 t.umount         10         -         -    400 µs         -    2.74 s
\x20 A wider terminal also shows p90, p99.9; --format json has all.
\x20 t.dirtied_bytes_per_second: 24.4 MiB
",
        );
        check(&BTreeMap::new(), 80, "");
    }
}
