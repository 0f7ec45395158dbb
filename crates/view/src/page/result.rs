// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page of a result that a command printed as JSON: a sweep as curves and a table, a matrix of runs as a table for each
//! scenario, every other result as its fields and lists. Reads the published forms only: what it does not know by name it
//! shows as it stands, so that a new result needs nothing here.

use super::Page;
use super::figure::{Axis, figure};
use super::model::{Block, Cell, Figure, Section, Table};
use super::packed::{Set, pack_all};
use crate::export::rfc3339;
use floodline_analysis::timeline::{Extent, Line, Plot, PlotUnit, Role};
use floodline_record::human;
use floodline_record::name::harmless;
use floodline_record::units::Nanos;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Plots of a sweep, at most: the figures that change most.
const PLOTS: usize = 12;
/// Rows of a list, at most.
const ROWS: usize = 500;
/// Columns of a list, at most.
const COLUMNS: usize = 14;
/// Lists within lists that are followed.
const DEPTH: usize = 4;
/// A figure that changes less than this over a sweep has no plot.
const CHANGES: f64 = 0.02;

/// The text is not a result of this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a result of floodline: expected JSON with a schema")]
pub struct NotAResult;

/// The page of a result.
///
/// # Errors
///
/// [`NotAResult`] where the text is not JSON with a `schema` of this program.
pub fn result(label: &str, text: &str) -> Result<String, NotAResult> {
    let value: Value = serde_json::from_str(text).map_err(|_| NotAResult)?;
    let schema = value.get("schema").and_then(Value::as_str).filter(|schema| schema.starts_with("floodline."));
    let schema = schema.ok_or(NotAResult)?.to_owned();
    let kind = schema.trim_start_matches("floodline.").split('/').next().unwrap_or_default().replace(['.', '_'], " ");
    let of = value.get("scenario").and_then(Value::as_str).map(|name| format!(" of {name}")).unwrap_or_default();
    let mut page = Page::new(harmless(&format!("Result: {kind}{of}")).into_owned());
    page.about = vec![harmless(&format!("File: {label}, {schema}")).into_owned()];
    match schema.as_str() {
        "floodline.sweep/1" => sweep(&mut page, &value),
        "floodline.lab.matrix/1" => matrix(&mut page, &value),
        _ => {}
    }
    if page.sections.is_empty() {
        let mut blocks = Vec::new();
        fields(&mut blocks, "Result", &value, 0);
        page.sections.push(Section::new("result", "Result", blocks));
    }
    Ok(page.html())
}

/// A value for people by the unit at the end of its name.
fn scalar(name: &str, value: &Value) -> String {
    let Some(number) = value.as_f64() else {
        return match value {
            Value::String(text) => harmless(text).into_owned(),
            Value::Null => String::new(),
            other => harmless(&other.to_string()).into_owned(),
        };
    };
    let ends =
        |suffix: &str| name == suffix || name.ends_with(&format!("_{suffix}")) || name.ends_with(&format!(".{suffix}"));
    match () {
        () if ends("wall_ns") => rfc3339(Nanos(number.max(0.0) as u64)).unwrap_or_default(),
        () if ends("bytes_per_second") => human::bytes_per_second(number),
        () if ends("bytes") || name.contains("_bytes_m") => human::bytes(number),
        () if ends("seconds") || ends("s") => human::seconds(number),
        () if ends("ns") => human::seconds(number / 1e9),
        () if ends("share") => human::percent(number),
        () => human::number(number),
    }
}

/// A figure: an object with a value and a unit.
fn figure_of(value: &Value) -> Option<(f64, &str)> {
    let unit = value.get("unit")?.as_str()?;
    Some((value.get("value").or_else(|| value.get("mean"))?.as_f64()?, unit))
}

fn shown(number: f64, unit: &str) -> String {
    match unit {
        "bytes" => human::bytes(number),
        "bytes_per_second" => human::bytes_per_second(number),
        "seconds" => human::seconds(number),
        "share" => human::percent(number),
        _ => human::number(number),
    }
}

/// Fields of an object: plain ones as a table, lists and objects each on their own.
fn fields(blocks: &mut Vec<Block>, name: &str, value: &Value, depth: usize) {
    match value {
        Value::Object(object) => {
            let mut plain = Table::new(harmless(name).into_owned(), &["Field", "#value"]);
            for (key, field) in object.iter().filter(|(key, _)| *key != "schema").take(ROWS) {
                let text = match (figure_of(field), field) {
                    (Some((number, unit)), _) => shown(number, unit),
                    (None, Value::Object(_) | Value::Array(_)) => continue,
                    (None, field) => scalar(key, field),
                };
                let cell = if field.is_string() { Cell::Text(text) } else { Cell::Number(text) };
                plain.push(vec![Cell::Name(harmless(key).into_owned()), cell]);
            }
            if !plain.rows.is_empty() {
                blocks.push(Block::Table(plain));
            }
            for (key, field) in object {
                if depth < DEPTH && figure_of(field).is_none() && (field.is_object() || field.is_array()) {
                    fields(blocks, &key.replace('_', " "), field, depth + 1);
                }
            }
        }
        Value::Array(items) if items.iter().any(Value::is_object) => list(blocks, name, items),
        Value::Array(items) if !items.is_empty() => {
            let text = |item| scalar("", item).trim_end_matches('.').to_owned();
            let texts: Vec<String> = items.iter().map(text).collect();
            let between = if texts.iter().any(|text| text.contains(' ')) { "; " } else { ", " };
            blocks.push(Block::Text(format!("{}: {}", harmless(name), texts.join(between))));
        }
        _ => {}
    }
}

/// Objects as the rows of a table; their own objects are flattened.
fn list(blocks: &mut Vec<Block>, name: &str, items: &[Value]) {
    let rows: Vec<BTreeMap<String, String>> = items
        .iter()
        .take(ROWS)
        .map(|item| {
            let mut row = BTreeMap::new();
            flat(&mut row, "", item, 0);
            row
        })
        .collect();
    let names: BTreeSet<&String> = rows.iter().flat_map(BTreeMap::keys).collect();
    let wanted = |name: &&&String| ["name", "rule", "label", "cgroup", "process", "at"].contains(&name.as_str());
    let mut order: Vec<&String> = names.iter().filter(wanted).copied().collect();
    order.extend(names.iter().filter(|name| !wanted(name)).copied());
    let left = order.len().saturating_sub(COLUMNS);
    order.truncate(COLUMNS);
    let heads: Vec<String> = order.iter().map(|name| harmless(&name.replace('_', " ")).into_owned()).collect();
    let mut table = Table::new(harmless(name).into_owned(), &heads.iter().map(String::as_str).collect::<Vec<&str>>());
    for row in &rows {
        table.push(order.iter().map(|name| Cell::Text(row.get(*name).cloned().unwrap_or_default())).collect());
    }
    if left > 0 {
        table
            .notes
            .push(format!("{} not shown: the JSON has them.", human::plural(left as u64, "field is", "fields are")));
    }
    if let Some(more) = items.len().checked_sub(ROWS).filter(|more| *more > 0) {
        table.notes.push(format!("{} not shown.", human::plural(more as u64, "row is", "rows are")));
    }
    blocks.push(Block::Table(table));
}

fn flat(row: &mut BTreeMap<String, String>, prefix: &str, value: &Value, depth: usize) {
    let Value::Object(object) = value else {
        row.insert(if prefix.is_empty() { "value".to_owned() } else { prefix.to_owned() }, scalar(prefix, value));
        return;
    };
    for (key, field) in object {
        let name = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        match (figure_of(field), field) {
            (Some((number, unit)), _) => {
                row.insert(name, shown(number, unit));
            }
            (None, Value::Object(_)) if depth < 2 => flat(row, &name, field, depth + 1),
            (None, Value::Array(items)) => {
                let texts: Vec<String> =
                    items.iter().filter(|item| !item.is_object()).map(|item| scalar("", item)).collect();
                if !texts.is_empty() {
                    row.insert(name, texts.join(", "));
                }
            }
            (None, Value::Object(_)) => {}
            (None, field) => {
                row.insert(name, scalar(key, field));
            }
        }
    }
}

/// Figures of a run by name.
fn figures_of(run: &Value) -> BTreeMap<&str, (f64, &str)> {
    let object: Option<&Map<String, Value>> = run.get("figures").and_then(Value::as_object);
    object.into_iter().flatten().filter_map(|(name, value)| Some((name.as_str(), figure_of(value)?))).collect()
}

/// Names of the rules that found something in a run.
fn rules_of(run: &Value) -> String {
    let findings = run.get("findings").and_then(Value::as_array).into_iter().flatten();
    let rules: Vec<&str> = findings.filter_map(|finding| finding.get("rule")?.as_str()).collect();
    harmless(&rules.join(", ")).into_owned()
}

/// A number as settings have it: `10`, `64M`, `500ms`, `20%`.
fn quantity(text: &str) -> Option<f64> {
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-')).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let factor = match unit.trim() {
        "" | "%" | "B" => 1.0,
        "K" | "k" | "KiB" => 1024.0,
        "M" | "MiB" => 1_048_576.0,
        "G" | "GiB" => 1_073_741_824.0,
        "T" | "TiB" => 1_099_511_627_776.0,
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    number.parse::<f64>().ok().filter(|number| number.is_finite()).map(|number| number * factor)
}

fn sweep(page: &mut Page, value: &Value) {
    let axes: Vec<&str> =
        value.get("axes").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let rows: Vec<&Value> = value.get("rows").and_then(Value::as_array).into_iter().flatten().collect();
    let Some((first, others)) = axes.split_first() else { return };
    let at = |row: &Value, axis: &str| {
        row.get("at").and_then(|at| at.get(axis)).map(|at| scalar("", at)).unwrap_or_default()
    };
    let mut heads: Vec<String> = axes.iter().map(|axis| harmless(axis).into_owned()).collect();
    let ranked = changing(&rows);
    heads.extend(ranked.iter().map(|(name, _)| format!("#{}", harmless(name))));
    heads.push("found".to_owned());
    let mut table = Table::new("Every run of the sweep", &heads.iter().map(String::as_str).collect::<Vec<&str>>());
    for row in rows.iter().take(ROWS) {
        let mut cells: Vec<Cell> = axes.iter().map(|axis| Cell::Name(at(row, axis))).collect();
        let run = row.get("run").unwrap_or(&Value::Null);
        let figures = figures_of(run);
        cells.extend(ranked.iter().map(|(name, unit)| {
            Cell::Number(figures.get(name.as_str()).map_or_else(|| "-".to_owned(), |(number, _)| shown(*number, unit)))
        }));
        let error = row.get("error").and_then(Value::as_str).map(|why| harmless(why).into_owned());
        cells.push(Cell::Text(error.unwrap_or_else(|| rules_of(run))));
        table.push(cells);
    }
    table.notes.push("The figures that change most. The JSON has all of them.".to_owned());
    let (figures, data) = curves(first, others, &rows, &ranked);
    if !figures.is_empty() {
        page.sections.push(Section::new(
            "timeline",
            format!("Figures over {}", harmless(first)),
            vec![Block::Plots(figures)],
        ));
        page.data = data;
    }
    page.sections.push(Section::new("runs", "Runs", vec![Block::Table(table)]));
}

/// The figures that change most over a sweep, with their units.
fn changing(rows: &[&Value]) -> Vec<(String, String)> {
    let mut spans: BTreeMap<&str, (f64, f64, &str)> = BTreeMap::new();
    for row in rows {
        for (name, (number, unit)) in figures_of(row.get("run").unwrap_or(&Value::Null)) {
            let span = spans.entry(name).or_insert((number, number, unit));
            (span.0, span.1) = (span.0.min(number), span.1.max(number));
        }
    }
    let change =
        |(least, most, _): &(f64, f64, &str)| (most - least) / most.abs().max(least.abs()).max(f64::MIN_POSITIVE);
    let mut ranked: Vec<(&str, (f64, f64, &str))> =
        spans.into_iter().filter(|(_, span)| change(span) >= CHANGES).collect();
    // Waits come first: they are what a setting is chosen for.
    let is_wait = |name: &str| name.ends_with("max_seconds") || name.ends_with("p99_seconds");
    ranked.sort_by(|(a, one), (b, other)| {
        is_wait(b).cmp(&is_wait(a)).then_with(|| change(other).total_cmp(&change(one))).then_with(|| a.cmp(b))
    });
    ranked.truncate(PLOTS);
    ranked.into_iter().map(|(name, (_, _, unit))| (name.to_owned(), unit.to_owned())).collect()
}

/// A plot for each figure: its curve over the first axis, one for each combination of the others.
fn curves(first: &str, others: &[&str], rows: &[&Value], ranked: &[(String, String)]) -> (Vec<Figure>, String) {
    let at = |row: &Value, axis: &str| {
        row.get("at").and_then(|at| at.get(axis)).map(|at| scalar("", at)).unwrap_or_default()
    };
    let mut labels: Vec<String> = Vec::new();
    for place in rows.iter().map(|row| at(row, first)) {
        if !labels.contains(&place) {
            labels.push(place);
        }
    }
    if labels.len() < 2 {
        return (Vec::new(), String::new());
    }
    // Values that are not numbers stay in the order of the sweep.
    if labels.iter().all(|label| quantity(label).is_some()) {
        labels.sort_by(|a, b| quantity(a).partial_cmp(&quantity(b)).unwrap_or(std::cmp::Ordering::Equal));
    }
    let stretches: Vec<(f64, f64)> = (0..labels.len()).map(|place| (place as f64, place as f64)).collect();
    let axis = Axis { stretches: &stretches, wall_ns: None, labels: &labels };
    let (mut figures, mut plots) = (Vec::new(), Vec::new());
    for (name, unit) in ranked {
        let mut lines: BTreeMap<String, Vec<(usize, Extent)>> = BTreeMap::new();
        for row in rows {
            let found =
                figures_of(row.get("run").unwrap_or(&Value::Null)).get(name.as_str()).map(|(number, _)| *number);
            let x = labels.iter().position(|label| *label == at(row, first));
            let (Some(number), Some(x)) = (found, x) else { continue };
            let of: Vec<String> = others.iter().map(|axis| format!("{}={}", harmless(axis), at(row, axis))).collect();
            let extent = Extent { min: number as f32, max: number as f32, rises: true };
            let line = lines.entry(if of.is_empty() { name.clone() } else { of.join(", ") }).or_default();
            line.push((x, extent));
        }
        let unit = match unit.as_str() {
            "bytes" => PlotUnit::Bytes,
            "bytes_per_second" => PlotUnit::BytesPerSecond,
            "seconds" => PlotUnit::Seconds,
            "share" => PlotUnit::Share,
            _ => PlotUnit::Count,
        };
        let lines = lines.into_iter().map(|(name, mut points)| {
            points.sort_by_key(|(x, _)| *x);
            Line { name: harmless(&name).into_owned(), role: Role::Measured, points }
        });
        let plot = Plot { id: "figure", title: "", source: "", unit, lines: lines.collect(), left_out: String::new() };
        let number = plots.len();
        let mut drawn = figure(axis, &plot, "", format!("0.{number}"), &[]);
        drawn.id = format!("figure-{}", number + 1);
        drawn.title = format!("{} over {}", harmless(name), harmless(first));
        drawn.described = format!("{}{}", drawn.title, drawn.described);
        figures.push(drawn);
        plots.push(plot);
    }
    let data = pack_all(&[Set::new(axis, &plots, &[], &[])]);
    (figures, data)
}

/// A table for each scenario: figures by variant and kernel.
fn matrix(page: &mut Page, value: &Value) {
    let scenarios = value.get("scenarios").and_then(Value::as_array).into_iter().flatten();
    let mut blocks = Vec::new();
    for scenario in scenarios {
        let name = scenario.get("scenario").map(|name| scalar("", name)).unwrap_or_default();
        let runs: Vec<&Value> = scenario.get("runs").and_then(Value::as_array).into_iter().flatten().collect();
        let text = |run: &Value, key: &str| run.get(key).map(|text| scalar("", text)).unwrap_or_default();
        let heads: Vec<String> =
            runs.iter().map(|run| format!("#{}, {}", text(run, "variant"), text(run, "kernel"))).collect();
        let mut all = vec!["Figure"];
        all.extend(heads.iter().map(String::as_str));
        let mut table = Table::new(format!("{name}: figures by variant and kernel"), &all);
        let figures: Vec<BTreeMap<&str, (f64, &str)>> =
            runs.iter().map(|run| figures_of(run.get("run").unwrap_or(&Value::Null))).collect();
        let names: BTreeSet<&str> = figures.iter().flat_map(|figures| figures.keys().copied()).collect();
        for figure in names.into_iter().take(ROWS) {
            let mut cells = vec![Cell::Name(harmless(figure).into_owned())];
            cells.extend(figures.iter().map(|figures| {
                Cell::Number(figures.get(figure).map_or_else(|| "-".to_owned(), |(number, unit)| shown(*number, unit)))
            }));
            table.push(cells);
        }
        let mut found = vec![Cell::Name("found".to_owned())];
        found.extend(runs.iter().map(|run| match run.get("error").and_then(Value::as_str) {
            Some(why) => Cell::Text(harmless(why).into_owned()),
            None => Cell::Text(rules_of(run.get("run").unwrap_or(&Value::Null))),
        }));
        table.push(found);
        blocks.push(Block::Table(table));
    }
    if !blocks.is_empty() {
        page.sections.push(Section::new("matrix", "Scenarios on kernels", blocks));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn run(wait: f64) -> Value {
        json!({ "figures": { "mail.fsync.max_seconds": { "value": wait, "unit": "seconds" },
            "same": { "value": 1, "unit": "count" } }, "findings": [{ "rule": "dirty-cliff" }] })
    }

    #[test]
    fn a_sweep_has_a_curve_for_each_figure_that_changes() {
        let row = |at: &str, wait: f64| json!({ "at": { "vm.dirty_bytes": at }, "run": run(wait) });
        let value = json!({ "schema": "floodline.sweep/1", "scenario": "<script>x", "axes": ["vm.dirty_bytes"],
            "rows": [row("64M", 0.5), row("1G", 8.0), row("256M", 2.0)] });
        let page = result("-", &value.to_string()).unwrap();
        assert_eq!(page.matches("<figure").count(), 1, "{page}");
        assert!(page.contains("mail.fsync.max_seconds over vm.dirty_bytes"));
        assert!(page.contains("8.00 s") && !page.contains("<script>x"));
        let places = ["64M", "256M", "1G"].map(|label| page.find(&format!("y=\"230\">{label}</text>")).unwrap());
        assert!(places.is_sorted(), "the axis is in order of size");
    }

    #[test]
    fn settings_are_numbers_where_they_can_be() {
        assert_eq!(["10", "64M", "500ms", "20%"].map(quantity), [10.0, 67_108_864.0, 0.5, 20.0].map(Some));
        assert_eq!(["ext4", "", "1x"].map(quantity), [None; 3]);
    }

    #[test]
    fn any_result_has_a_page_and_other_text_has_none() {
        let value = json!({ "schema": "floodline.new/1", "took_seconds": 2.5, "rows": [{ "name": "<b>", "used_bytes": 4096 }],
            "deep": { "deeper": [1, 2] }, "said": ["at risk, peak: 4 MiB.", "dirtied: 9 MiB."] });
        let page = result("x.json", &value.to_string()).unwrap();
        for text in ["2.50 s", "4.00 KiB", "&#60;b&#62;", "1, 2", "at risk, peak: 4 MiB; dirtied: 9 MiB"] {
            assert!(page.contains(text), "{text}: {page}");
        }
        assert_eq!(result("x", "{}"), Err(NotAResult));
        assert_eq!(result("x", "no"), Err(NotAResult));
    }

    #[test]
    fn a_matrix_has_a_table_for_each_scenario() {
        let value = json!({ "schema": "floodline.lab.matrix/1", "scenarios": [{ "scenario": "umount", "runs": [
            { "variant": "incident", "kernel": "6.12", "run": run(4.0) },
            { "variant": "remedy", "kernel": "6.12", "error": "the guest's kernel panicked" }] }] });
        let page = result("x", &value.to_string()).unwrap();
        assert!(page.contains("4.00 s") && page.contains("kernel panicked") && page.contains("dirty-cliff"));
    }
}
