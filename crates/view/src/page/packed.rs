// SPDX-License-Identifier: MIT OR Apache-2.0
//! Curves as data for the script of a page: whole numbers, each as the difference from the one before, as JSON, gzip and
//! base64. Compression makes a few bytes of an hour in which nothing happens.

use super::figure::{Axis, class};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use floodline_analysis::timeline::{Extent, Mark, Plot, PlotUnit, Role};
use serde::Serialize;
use std::io::Write;

/// All plots over one axis.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Set {
    /// The wall clock at the first point, milliseconds since 1970 UTC; `None` where the axis is not time.
    start: Option<u64>,
    /// What the points are called where the axis is not time.
    labels: Vec<String>,
    /// What a unit of `at` is.
    step: f64,
    /// The axis: differences.
    at: Vec<i64>,
    /// Second, what is seen, and whether a finding shows there.
    marks: Vec<(f64, String, bool)>,
    plots: Vec<Packed>,
}

#[derive(Clone, Debug, Serialize)]
struct Packed {
    unit: &'static str,
    lines: Vec<PackedLine>,
}

#[derive(Clone, Debug, Serialize)]
struct PackedLine {
    name: String,
    class: String,
    limit: bool,
    /// Whether points that are not there are joined: readings that are not taken each time.
    gaps: bool,
    /// What a unit of `values` is.
    step: f64,
    /// Differences from the value before; `None` is not read.
    values: Vec<Option<i64>>,
}

impl Set {
    /// The plots of an axis and what is marked in them.
    pub(super) fn new(axis: Axis<'_>, plots: &[Plot], found: &[Mark], others: &[Mark]) -> Set {
        // A stretch of more than one sample has two points.
        let points: Vec<f64> = axis.stretches.iter().flat_map(|(from, to)| both(*from, *to)).collect();
        let step = if axis.wall_ns.is_some() { 0.001 } else { smallest_step(&points) };
        let mut last = 0;
        let at = points.iter().map(|value| difference(*value, step, &mut last)).collect();
        Set {
            start: axis.wall_ns.map(|wall| wall / 1_000_000),
            labels: axis.labels.to_vec(),
            step,
            at,
            marks: [(found, true), (others, false)]
                .into_iter()
                .flat_map(|(marks, is_found)| marks.iter().map(move |mark| (mark, is_found)))
                .map(|(mark, is_found)| (mark.second, mark.label.clone(), is_found))
                .collect(),
            plots: plots.iter().map(|plot| pack(axis, plot)).collect(),
        }
    }
}

/// One point, or two where the stretch has a length.
fn both(from: f64, to: f64) -> impl Iterator<Item = f64> {
    std::iter::once(from).chain((to > from).then_some(to))
}

fn smallest_step(points: &[f64]) -> f64 {
    let whole = points.iter().all(|point| point.fract() == 0.0);
    if whole { 1.0 } else { 0.001 }
}

fn difference(value: f64, step: f64, last: &mut i64) -> i64 {
    let units = (value / step).round() as i64;
    let difference = units.saturating_sub(*last);
    *last = units;
    difference
}

fn pack(axis: Axis<'_>, plot: &Plot) -> Packed {
    let (unit, step) = match plot.unit {
        PlotUnit::Bytes => ("bytes", 4096.0),
        PlotUnit::BytesPerSecond => ("bytes_per_second", 1024.0),
        PlotUnit::Share => ("share", 0.0005),
        PlotUnit::Seconds => ("seconds", 0.000_01),
        PlotUnit::Count => ("count", 0.01),
    };
    let (mut measures, mut limits) = (0, 0);
    let line = |line: &floodline_analysis::timeline::Line| {
        let mut last = 0;
        let mut readings = line.points.iter().peekable();
        let mut values = Vec::new();
        for (number, (from, to)) in axis.stretches.iter().enumerate() {
            let extent: Option<Extent> = readings.next_if(|(at, _)| *at == number).map(|(_, extent)| *extent);
            let pair = extent.map(Extent::in_order);
            for (at, _) in both(*from, *to).enumerate() {
                let value = pair.map(|(early, late)| f64::from(if at == 0 { early } else { late }));
                values.push(value.map(|value| difference(value, step, &mut last)));
            }
        }
        PackedLine {
            name: line.name.clone(),
            class: class(line.role, &mut measures, &mut limits),
            limit: line.role == Role::Threshold,
            gaps: plot.unit == PlotUnit::Seconds || line.role == Role::Threshold,
            step,
            values,
        }
    };
    Packed { unit, lines: plot.lines.iter().map(line).collect() }
}

/// Sets as they stand in a page; empty where they cannot be packed.
pub(super) fn pack_all(sets: &[Set]) -> String {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    let packed = crate::json::write(&mut encoder, &sets).ok().and_then(|()| {
        encoder.flush().ok()?;
        encoder.finish().ok()
    });
    packed.map(|bytes| STANDARD.encode(bytes)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_analysis::timeline::Line;
    use serde_json::{Value, json};
    use std::io::Read;

    fn unpacked(text: &str) -> Value {
        let bytes = STANDARD.decode(text).unwrap();
        let mut json = String::new();
        flate2::read::GzDecoder::new(bytes.as_slice()).read_to_string(&mut json).unwrap();
        serde_json::from_str(&json).unwrap()
    }

    #[test]
    fn differences_add_up_to_the_curve() {
        let stretches = [(0.0, 0.0), (1.0, 1.5), (2.0, 2.0)];
        let axis = Axis { stretches: &stretches, wall_ns: Some(5_000_000_000), labels: &[] };
        let points = vec![
            (0, Extent { min: 8192.0, max: 8192.0, rises: true }),
            (1, Extent { min: 4096.0, max: 12288.0, rises: false }),
        ];
        let line = Line { name: "<script>".to_owned(), role: Role::Measured, points };
        let plot = Plot {
            id: "dirty",
            title: "",
            source: "",
            unit: PlotUnit::Bytes,
            lines: vec![line],
            left_out: String::new(),
        };
        let text = pack_all(&[Set::new(axis, &[plot], &[], &[])]);
        assert!(text.chars().all(|c| c.is_ascii_alphanumeric() || "+/=".contains(c)), "{text}");
        let set = &unpacked(&text)[0];
        assert_eq!(set["start"], 5000);
        assert_eq!(set["at"], json!([0, 1000, 500, 500]));
        let line = &set["plots"][0]["lines"][0];
        assert_eq!(line["values"], json!([2, 1, -2, null]));
        assert_eq!(line["name"], "<script>");
    }
}
