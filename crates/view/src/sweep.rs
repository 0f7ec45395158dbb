// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs of one scenario over a grid of settings: a row per cell of the grid, as text in 80 columns, as JSON,
//! and as a flat table for CSV and Parquet. A cell that could not be run is a row with its reason.

use crate::export::{ExportError, FlatTable, FlatValue};
use crate::figures::short;
use crate::layout::wrap;
use floodline_analysis::report::Severity;
use floodline_analysis::run::RunReport;
use floodline_record::human;
use serde_json::json;
use std::collections::BTreeSet;

/// A whole grid.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// Name of the scenario.
    pub scenario: String,
    /// What is varied: keys as they were given.
    pub axes: Vec<String>,
    /// Cells in the order of the grid; the last axis varies fastest.
    pub rows: Vec<Row>,
    /// The row that is best, where one stands out.
    pub best: Option<usize>,
}

/// One cell.
#[derive(Clone, Debug)]
pub struct Row {
    /// A value for every axis.
    pub at: Vec<String>,
    /// What ran, or why nothing did.
    pub result: Result<RunReport, String>,
}

/// Version of the JSON form.
const SCHEMA: &str = "floodline.sweep/1";
/// Columns between two columns.
const GAP: usize = 2;
/// Narrowest column of a figure.
const NARROW: usize = 9;

impl Row {
    fn finding(&self) -> String {
        match self.result.as_ref().map(|report| report.findings.iter().find(|f| f.severity >= Severity::Warning)) {
            Ok(Some(finding)) => finding.rule.to_owned(),
            Ok(None) => "-".to_owned(),
            Err(_) => "no run".to_owned(),
        }
    }
}

/// One column of the text: its heading, line by line, and a cell for every row.
struct Column {
    heading: Vec<String>,
    cells: Vec<String>,
    is_right: bool,
}

impl Column {
    fn width(&self) -> usize {
        self.heading.iter().chain(&self.cells).map(|text| text.chars().count()).max().unwrap_or(0)
    }

    /// A figure: the parts of its name stand below each other, so that it takes little room.
    fn of_figure(sweep: &Sweep, name: &str) -> Column {
        let heading = name.trim_end_matches("_seconds").trim_end_matches("_bytes");
        let heading = heading.replace("bytes_per_second", "bytes/s").replace("per_second", "per s");
        let heading = heading.split('.').flat_map(|part| wrap(&part.replace('_', " "), NARROW + 3)).collect();
        let cell = |row: &Row| match &row.result {
            Ok(report) => report.figures.get(name).map_or("-".to_owned(), |figure| short(*figure)),
            Err(_) => "no run".to_owned(),
        };
        Column { heading, cells: sweep.rows.iter().map(cell).collect(), is_right: true }
    }
}

/// For people: as many tables below each other as the width needs, each with the axes, then the reasons of
/// rows that could not be run.
pub fn text(sweep: &Sweep, figures: &[String], width: usize) -> String {
    let axes: Vec<Column> = sweep
        .axes
        .iter()
        .enumerate()
        .map(|(index, axis)| Column {
            heading: vec![axis.clone()],
            cells: sweep.rows.iter().map(|row| row.at.get(index).cloned().unwrap_or_default()).collect(),
            is_right: false,
        })
        .collect();
    let mut columns: Vec<Column> = figures.iter().map(|name| Column::of_figure(sweep, name)).collect();
    columns.push(Column {
        heading: vec!["doctor".to_owned(), "finds".to_owned()],
        cells: sweep.rows.iter().map(Row::finding).collect(),
        is_right: false,
    });
    if sweep.best.is_some() {
        let mark = |at| if sweep.best == Some(at) { "* best".to_owned() } else { String::new() };
        columns.push(Column { heading: Vec::new(), cells: (0..sweep.rows.len()).map(mark).collect(), is_right: false });
    }
    let indent: usize = axes.iter().map(|axis| axis.width() + GAP).sum();
    let mut text = format!("{}: {}\n", sweep.scenario, human::plural(sweep.rows.len() as u64, "run", "runs"));
    let mut rest = columns.as_slice();
    while !rest.is_empty() {
        let mut taken = indent;
        let fits = rest.iter().take_while(|column| {
            taken += column.width() + GAP;
            taken - GAP <= width
        });
        let (some, later) = rest.split_at(fits.count().max(1));
        text.push('\n');
        text.push_str(&table(&axes.iter().chain(some).collect::<Vec<_>>(), sweep.rows.len()));
        rest = later;
    }
    for row in &sweep.rows {
        if let Err(why) = &row.result {
            let at: Vec<String> = sweep.axes.iter().zip(&row.at).map(|(axis, at)| format!("{axis}={at}")).collect();
            text.push_str(&format!("\n{}:\n", at.join(" ")));
            wrap(why, width.saturating_sub(2)).iter().for_each(|line| text.push_str(&format!("  {line}\n")));
        }
    }
    crate::run::simplified(&mut text, &simplified(sweep), width);
    text
}

/// What the model leaves out of any run, each text once.
fn simplified(sweep: &Sweep) -> Vec<String> {
    crate::run::simplified_of(sweep.rows.iter().flat_map(|row| &row.result))
}

fn table(columns: &[&Column], rows: usize) -> String {
    let height = columns.iter().map(|column| column.heading.len()).max().unwrap_or(0);
    let mut text = String::new();
    let mut line = |cell: &dyn Fn(&Column) -> String| {
        let mut line = String::new();
        for column in columns {
            let (cell, width) = (cell(column), column.width());
            let gap = " ".repeat(width.saturating_sub(cell.chars().count()));
            let cell = if column.is_right { gap + &cell } else { cell + &gap };
            line.push_str(&format!("{cell}{}", " ".repeat(GAP)));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    };
    for number in 0..height {
        // Headings stand on their columns.
        line(&|column| {
            let above = height - column.heading.len();
            number.checked_sub(above).and_then(|at| column.heading.get(at)).cloned().unwrap_or_default()
        });
    }
    for row in 0..rows {
        line(&|column| column.cells.get(row).cloned().unwrap_or_default());
    }
    text
}

/// For programs.
pub fn json(sweep: &Sweep) -> Result<String, serde_json::Error> {
    let row = |row: &Row| {
        let at: serde_json::Map<String, serde_json::Value> =
            sweep.axes.iter().cloned().zip(row.at.iter().map(|at| json!(at))).collect();
        match &row.result {
            Ok(report) => json!({ "at": at, "run": report }),
            Err(why) => json!({ "at": at, "error": why }),
        }
    };
    let rows: Vec<_> = sweep.rows.iter().map(row).collect();
    let whole = json!({
        "schema": SCHEMA,
        "scenario": sweep.scenario,
        "axes": sweep.axes,
        "rows": rows,
        "best": sweep.best,
        "simplified": simplified(sweep),
    });
    crate::json::line(&whole)
}

/// As one table: the axes, why a row has no figures, what `doctor` finds, then every figure that any row has.
pub fn flat(sweep: &Sweep) -> Result<FlatTable, ExportError> {
    let names: BTreeSet<&String> =
        sweep.rows.iter().flat_map(|row| row.result.iter()).flat_map(|report| report.figures.keys()).collect();
    let mut columns: Vec<String> = sweep.axes.clone();
    columns.extend(["error".to_owned(), "findings".to_owned()]);
    let texts = columns.len();
    columns.extend(names.iter().map(|name| (*name).clone()));
    let rows = sweep.rows.iter().map(|row| {
        let mut cells: Vec<FlatValue> = row.at.iter().map(|at| FlatValue::Text(at.clone())).collect();
        let (error, findings) = match &row.result {
            Ok(report) => {
                let rules: Vec<&str> = report.findings.iter().map(|finding| finding.rule).collect();
                (FlatValue::Null, FlatValue::Text(rules.join(" ")))
            }
            Err(why) => (FlatValue::Text(why.clone()), FlatValue::Null),
        };
        cells.extend([error, findings]);
        let figure = |name: &&String| {
            let figure = row.result.as_ref().ok().and_then(|report| report.figures.get(*name));
            figure.map_or(FlatValue::Null, |figure| FlatValue::Number(figure.value))
        };
        cells.extend(names.iter().map(figure));
        cells
    });
    FlatTable::new("sweep", columns, texts, rows.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_record::version::KernelVersion;
    use floodline_scenario::Figure;

    fn sweep() -> Sweep {
        let row = |bytes: &str, kernel: &str, value: Option<f64>| Row {
            at: vec![bytes.to_owned(), kernel.to_owned()],
            result: value.ok_or_else(|| "the kernel refuses 1 here".to_owned()).map(|value| RunReport {
                schema: "floodline.run/1",
                executor: "simulator",
                scenario: "cliff".to_owned(),
                variant: "incident".to_owned(),
                kernel: kernel.to_owned(),
                kernel_version: KernelVersion::new(6, 12, 0),
                samples: 1,
                seconds: 1.0,
                first_sample_seconds: None,
                beside_seconds: None,
                figures: [("durable.fdatasync.max_seconds".to_owned(), Figure { value, unit: "seconds" })].into(),
                findings: Vec::new(),
                plan: None,
                not_as_expected: Vec::new(),
                has_expectations: true,
                simplified: Vec::new(),
                recording: None,
            }),
        };
        Sweep {
            scenario: "cliff".to_owned(),
            axes: vec!["vm.dirty_bytes".to_owned(), "kernel".to_owned()],
            rows: vec![row("64M", "6.1", Some(0.3)), row("1", "6.1", None)],
            best: None,
        }
    }

    #[test]
    fn what_the_model_leaves_out_is_told_once() {
        let mut swept = sweep();
        swept.rows = [0, 0].map(|at| swept.rows[at].clone()).into();
        let said =
            "Swap is not simulated. Anonymous memory and tmpfs stay in memory, and this goes on for some more words.";
        for row in &mut swept.rows {
            row.result.as_mut().expect("a run").simplified = vec![said.to_owned()];
        }
        let text = text(&swept, &[], 80);
        assert_eq!(text.matches("Swap is not simulated.").count(), 1, "{text}");
        assert!(text.contains("\nSimplified by the model:\n") && text.lines().all(|line| line.len() <= 80), "{text}");
        let json: serde_json::Value = serde_json::from_str(&json(&swept).expect("JSON")).expect("JSON");
        assert_eq!(json["simplified"], json!([said]));
    }

    #[test]
    fn names_of_figures_stand_on_their_columns() {
        let expect = "\
cliff: 2 runs

                          durable
                        fdatasync  doctor
vm.dirty_bytes  kernel        max  finds
64M             6.1      300.0 ms  -
1               6.1        no run  no run

vm.dirty_bytes=1 kernel=6.1:
  the kernel refuses 1 here
";
        assert_eq!(text(&sweep(), &["durable.fdatasync.max_seconds".to_owned()], 80), expect);
    }

    #[test]
    fn the_best_row_is_marked_without_colour() {
        let marked = Sweep { best: Some(0), ..sweep() };
        let text = text(&marked, &["durable.fdatasync.max_seconds".to_owned()], 80);
        assert!(text.contains("64M             6.1      300.0 ms  -       * best\n"), "{text}");
        assert!(json(&marked).unwrap().contains(r#""best":0"#));
    }

    #[test]
    fn what_does_not_fit_beside_stands_below() {
        let figures: Vec<String> = (0..12).map(|n| format!("task{n}.write.max_seconds")).collect();
        let text = text(&sweep(), &figures, 80);
        assert_eq!(text.matches("vm.dirty_bytes  kernel").count(), 2, "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn a_table_for_programs_has_every_figure_and_every_reason() {
        let mut out = Vec::new();
        flat(&sweep()).unwrap().csv(&mut out).unwrap();
        let expect = "\
vm.dirty_bytes,kernel,error,findings,durable.fdatasync.max_seconds
64M,6.1,,,0.3
1,6.1,the kernel refuses 1 here,,
";
        assert_eq!(String::from_utf8(out).unwrap(), expect);
        assert!(json(&sweep()).unwrap().contains(r#""at":{"kernel":"6.1","vm.dirty_bytes":"1"}"#));
    }
}
