// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares recordings: simulated and real, before and after. Each side is one recording or several repeats of the
//! same. Figures are compared by name, series point by point from the start of the workload. Where there are repeats, a
//! difference is compared with the spread of the repeats.

use crate::diagnose::{device, dirty};
use crate::observer::{self, Watched};
use crate::run::figures;
use crate::run::order::{differs, factor, is_any_sync_wait};
use floodline_record::record::What;
use floodline_record::units::Nanos;
use floodline_record::window::Window;
use floodline_scenario::Figure;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Version of the JSON form.
pub const SCHEMA: &str = "floodline.compare/1";

/// Differences of means beyond this many standard deviations of the repeats are real.
const BEYOND: f64 = 2.0;

/// A figure over repeats.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// Mean.
    #[serde(rename = "value")]
    pub mean: f64,
    /// Its unit.
    pub unit: &'static str,
    /// Smallest value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
    /// Standard deviation of the repeats; `None` for a single one.
    pub deviation: Option<f64>,
    /// Repeats that have the figure.
    pub runs: usize,
}

impl Spread {
    /// Names of all figures of several runs, in order.
    pub fn names<'a>(runs: &[&'a BTreeMap<String, Figure>]) -> BTreeSet<&'a str> {
        runs.iter().flat_map(|figures| figures.keys().map(String::as_str)).collect()
    }

    /// One figure over several runs; `None` when none has it.
    pub fn of(runs: &[&BTreeMap<String, Figure>], name: &str) -> Option<Spread> {
        let found: Vec<&Figure> = runs.iter().filter_map(|figures| figures.get(name)).collect();
        let values: Vec<f64> = found.iter().map(|figure| figure.value).collect();
        Spread::of_values(&values, found.first()?.unit)
    }

    /// Over plain values; `None` without any.
    pub fn of_values(values: &[f64], unit: &'static str) -> Option<Spread> {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        Some(Spread {
            mean,
            unit,
            min: values.iter().copied().reduce(f64::min)?,
            max: values.iter().copied().reduce(f64::max)?,
            deviation: (values.len() > 1).then(|| (squares / (count - 1.0)).sqrt()),
            runs: values.len(),
        })
    }
}

/// Time, seconds since the start of the workload, and value.
type Points = Vec<(f64, f64)>;

/// The values of one recording that are compared.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    /// Its figures.
    pub figures: BTreeMap<String, Figure>,
    /// Its series: name to unit and points, seconds since the start of the workload.
    series: BTreeMap<&'static str, (&'static str, Points)>,
    /// How it was sampled.
    watched: Watched,
}

impl Reading {
    /// Extracts the compared values of a recording.
    pub fn of(window: &Window) -> Reading {
        let started = window.events.iter().find(|event| matches!(event.what, What::WorkloadStarted { .. }));
        let start = started.map(|event| event.at).or(window.first_at.map(|first| first.monotonic)).unwrap_or_default();
        let since = |at: Nanos| (at.0 as f64 - start.0 as f64) / 1e9;
        let page_size = dirty::page_size(window);
        let mut series = BTreeMap::new();
        let mut put = |name, unit, points: Vec<(f64, f64)>| {
            let points: Vec<_> = points.into_iter().filter(|(at, _)| *at >= 0.0).collect();
            if points.len() > 1 {
                series.insert(name, (unit, points));
            }
        };
        let rows = || window.host_series.iter().map(|(time, row)| (since(time.monotonic), row));
        let level = |pages: floodline_record::units::Pages| pages.bytes(page_size).0 as f64;
        put("dirty", "bytes", rows().filter_map(|(at, row)| Some((at, level(row.nr_dirty?)))).collect());
        put("writeback", "bytes", rows().filter_map(|(at, row)| Some((at, level(row.nr_writeback?)))).collect());
        put("device_writes", "bytes_per_second", device_writes(window, since));
        Reading { figures: figures(window), series, watched: Watched::of(window) }
    }
}

/// Bytes per second written by all disks together, by the end of each interval.
fn device_writes(window: &Window, since: impl Fn(Nanos) -> f64) -> Vec<(f64, f64)> {
    let mut by_end: BTreeMap<Nanos, f64> = BTreeMap::new();
    for disk in device::disks(window) {
        for interval in disk.intervals() {
            *by_end.entry(interval.end).or_default() += interval.write_rate();
        }
    }
    by_end.into_iter().map(|(end, rate)| (since(end), rate)).collect()
}

/// One side: a recording, or repeats of the same.
#[derive(Clone, Debug, PartialEq)]
pub struct Side {
    /// Its label.
    pub label: String,
    /// Its recordings; not empty.
    pub readings: Vec<Reading>,
}

impl Side {
    fn figures(&self) -> Vec<&BTreeMap<String, Figure>> {
        self.readings.iter().map(|reading| &reading.figures).collect()
    }
}

/// Sides compared with the first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// Label of the first side.
    pub base: String,
    /// Every other side compared with it.
    pub against: Vec<Against>,
    /// What the model leaves out of either, a text each, with the effect that this may have. Only of runs of the model.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub simplified: Vec<String>,
}

/// One side compared with the first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Against {
    /// Its label.
    pub label: String,
    /// Figures that both have.
    pub figures: Vec<Row>,
    /// Figures that only one of them has.
    pub unmatched: Vec<String>,
    /// Series that both have.
    pub series: Vec<SeriesRow>,
    /// Reasons other than the change for a difference, such as different times between two samples; one sentence each.
    pub notes: Vec<String>,
}

impl Against {
    /// Returns the waits for stable storage, usual ones and the longest, that grew by more than chance. The one that grew by the
    /// largest factor comes first.
    pub fn longer_syncs(&self) -> Vec<&Row> {
        let mut longer: Vec<&Row> = self
            .figures
            .iter()
            .filter(|row| is_any_sync_wait(&row.name) && row.is_changed() && row.difference > 0.0)
            .collect();
        longer.sort_by(|a, b| factor(b.base.mean, b.other.mean).total_cmp(&factor(a.base.mean, a.other.mean)));
        longer
    }
}

impl Row {
    /// Whether the values differ by more than chance, and by more than people notice.
    pub fn is_changed(&self) -> bool {
        differs(self.base.unit, self.base.mean, self.other.mean) && self.beyond_noise != Some(false)
    }
}

/// One figure on both sides.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Name of the figure.
    pub name: String,
    /// Value on the first side.
    pub base: Spread,
    /// Value on the other side.
    pub other: Spread,
    /// Other minus first.
    pub difference: f64,
    /// Difference as a part of the first; `None` where that is 0.
    pub change: Option<f64>,
    /// Standard deviation that the difference has by chance; `None` without repeats.
    pub noise: Option<f64>,
    /// Whether the difference is more than chance; `None` without repeats.
    pub beyond_noise: Option<bool>,
}

/// One series on both sides.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SeriesRow {
    /// Name of the series.
    pub name: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// Highest point of both.
    pub peak: f64,
    /// Mean absolute difference over the time that both cover, as a part of the peak; over all pairs.
    pub mean_absolute_difference: f64,
    /// The same difference among the repeats of each side; `None` without repeats.
    pub noise: Option<f64>,
}

/// Compares every side with the first; `None` with fewer than two.
pub fn compare(sides: &[Side]) -> Option<Comparison> {
    let (base, others) = sides.split_first().filter(|(_, others)| !others.is_empty())?;
    let against = others.iter().map(|other| one(base, other)).collect();
    Some(Comparison { schema: SCHEMA, base: base.label.clone(), against, simplified: Vec::new() })
}

fn one(base: &Side, other: &Side) -> Against {
    let (ours, theirs) = (base.figures(), other.figures());
    let (mut figures, mut unmatched) = (Vec::new(), Vec::new());
    for name in Spread::names(&[ours.clone(), theirs.clone()].concat()) {
        match (Spread::of(&ours, name), Spread::of(&theirs, name)) {
            (Some(base), Some(other)) => figures.push(row(name, base, other)),
            _ => unmatched.push(name.to_owned()),
        }
    }
    let notes = distances(base, other).into_iter().collect();
    Against { label: other.label.clone(), figures, unmatched, series: series(base, other), notes }
}

/// Returns a warning if the samples of one side are closer together than those of the other.
fn distances(base: &Side, other: &Side) -> Option<String> {
    let watched = |side: &Side| -> Vec<Watched> { side.readings.iter().map(|reading| reading.watched).collect() };
    observer::different(("A", &watched(base)), ("B", &watched(other)))
}

fn row(name: &str, base: Spread, other: Spread) -> Row {
    let difference = other.mean - base.mean;
    // Repeats on one side also indicate the noise of the other side.
    let of_mean = |spread: Spread| spread.deviation.map(|deviation| deviation.powi(2) / spread.runs as f64);
    let noise = match (of_mean(base), of_mean(other)) {
        (Some(base), Some(other)) => Some((base + other).sqrt()),
        (Some(_), None) => base.deviation,
        (None, Some(_)) => other.deviation,
        (None, None) => None,
    };
    Row {
        name: name.to_owned(),
        difference,
        change: (base.mean != 0.0).then(|| difference / base.mean),
        noise,
        beyond_noise: noise.map(|noise| difference.abs() > BEYOND * noise),
        base,
        other,
    }
}

fn series(base: &Side, other: &Side) -> Vec<SeriesRow> {
    let points = |reading: &Reading, name| reading.series.get(name).map(|(_, points)| points.clone());
    let names: BTreeSet<&'static str> =
        base.readings.iter().flat_map(|reading| reading.series.keys().copied()).collect();
    let mut rows = Vec::new();
    for name in names {
        let of = |side: &Side| -> Vec<Vec<(f64, f64)>> {
            side.readings.iter().filter_map(|reading| points(reading, name)).collect()
        };
        let (ours, theirs) = (of(base), of(other));
        let unit = base.readings.iter().find_map(|reading| reading.series.get(name)).map_or("", |(unit, _)| unit);
        let peak = ours.iter().chain(&theirs).flatten().map(|(_, value)| *value).fold(0.0, f64::max);
        let between: Vec<f64> = ours.iter().flat_map(|a| theirs.iter().filter_map(|b| mean_difference(a, b))).collect();
        let within: Vec<f64> = [&ours, &theirs]
            .into_iter()
            .flat_map(|runs| {
                runs.iter().enumerate().flat_map(|(at, a)| {
                    runs.iter().skip(at + 1).filter_map(|b| mean_difference(a, b)).collect::<Vec<_>>()
                })
            })
            .collect();
        let mean = |values: &[f64]| (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64);
        if let Some(difference) = mean(&between).filter(|_| peak > 0.0) {
            rows.push(SeriesRow {
                name,
                unit,
                peak,
                mean_absolute_difference: difference / peak,
                noise: mean(&within).map(|noise| noise / peak),
            });
        }
    }
    rows
}

/// Mean absolute difference over the time that both cover, weighted by time; `None` when they do not meet.
fn mean_difference(a: &[(f64, f64)], b: &[(f64, f64)]) -> Option<f64> {
    let from = a.first()?.0.max(b.first()?.0);
    let to = a.last()?.0.min(b.last()?.0);
    let mut times: Vec<f64> = a.iter().chain(b).map(|(at, _)| *at).filter(|at| (from..=to).contains(at)).collect();
    times.sort_by(f64::total_cmp);
    times.dedup();
    let apart: Vec<(f64, f64)> =
        times.iter().filter_map(|at| Some((*at, (at_time(a, *at)? - at_time(b, *at)?).abs()))).collect();
    let (mut sum, mut covered) = (0.0, 0.0);
    for pair in apart.windows(2) {
        if let [(t0, d0), (t1, d1)] = pair {
            sum += (t1 - t0) * (d0 + d1) / 2.0;
            covered += t1 - t0;
        }
    }
    (covered > 0.0).then(|| sum / covered)
}

/// Value at a time, on the line between the points around it.
fn at_time(points: &[(f64, f64)], time: f64) -> Option<f64> {
    let after = points.partition_point(|(at, _)| *at < time);
    let (t1, v1) = *points.get(after)?;
    let Some((t0, v0)) = after.checked_sub(1).and_then(|before| points.get(before)).copied() else { return Some(v1) };
    Some(if t1 > t0 { v0 + (v1 - v0) * (time - t0) / (t1 - t0) } else { v1 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_testkit::incidents::starved_budget;
    use floodline_testkit::{Fixture, mib_pages};

    fn side(values: &[f64]) -> Side {
        let reading = |value: &f64| Reading {
            figures: BTreeMap::from([("t.fsync.max_seconds".to_owned(), Figure { value: *value, unit: "seconds" })]),
            ..Reading::default()
        };
        Side { label: "s".to_owned(), readings: values.iter().map(reading).collect() }
    }

    #[test]
    fn a_difference_is_held_against_the_noise_of_repeats() {
        let check = |a: &[f64], b: &[f64], difference: f64, beyond: Option<bool>| {
            let comparison = compare(&[side(a), side(b)]).unwrap();
            let row = &comparison.against[0].figures[0];
            assert!((row.difference - difference).abs() < 1e-9, "{row:?}");
            assert_eq!(row.beyond_noise, beyond, "{row:?}");
        };
        check(&[1.0], &[3.0], 2.0, None);
        check(&[1.0, 1.1, 0.9], &[3.0, 3.1, 2.9], 2.0, Some(true));
        check(&[1.0, 5.0, 3.0], &[2.0, 6.0, 4.0], 1.0, Some(false));
        check(&[1.0, 1.1, 0.9], &[3.0], 2.0, Some(true));
    }

    #[test]
    fn a_figure_of_one_side_only_is_named() {
        let mut other = side(&[1.0]);
        other.readings[0].figures.insert("more".to_owned(), Figure { value: 1.0, unit: "count" });
        assert_eq!(compare(&[side(&[1.0]), other]).unwrap().against[0].unmatched, ["more"]);
        assert_eq!(compare(&[side(&[1.0])]), None);
    }

    #[test]
    fn samples_at_other_distances_are_a_warning() {
        let side = |fixture: Fixture| Side { label: String::new(), readings: vec![Reading::of(&fixture.window())] };
        let notes = |a: Fixture, b: Fixture| compare(&[side(a), side(b)]).unwrap().against[0].notes.clone();
        let every = |seconds: f64| Fixture::healthy().every(seconds);
        assert_eq!(notes(every(1.0), every(1.0)), [""; 0]);
        let told = notes(every(1.0), every(5.0)).concat();
        assert!(told.starts_with("The samples of A are 1.00 s apart, those of B 5.00 s."), "{told}");
        let storm = |seconds: f64| starved_budget().every(seconds);
        assert!(notes(storm(0.5), storm(2.0)).concat().contains("make a storm of starved cgroups larger"));
        assert!(!notes(storm(2.0), storm(5.0)).concat().contains("storm"), "both are rare enough");
        let several =
            Side { readings: [1.0, 2.0].map(|s| Reading::of(&every(s).window())).to_vec(), label: String::new() };
        let told = compare(&[several, side(every(1.0))]).unwrap().against[0].notes.concat();
        assert!(told.contains("A are 1.00 s to 2.00 s apart, those of B 1.00 s"), "{told}");
    }

    #[test]
    fn an_ordinary_sync_that_is_longer_is_found() {
        let figure = |name: &str, value| (name.to_owned(), Figure { value, unit: "seconds" });
        let side = |p90, max, write| Side {
            label: "s".to_owned(),
            readings: vec![Reading {
                figures: BTreeMap::from([
                    figure("q.fdatasync.p90_seconds", p90),
                    figure("q.fdatasync.max_seconds", max),
                    figure("q.write.p90_seconds", write),
                ]),
                ..Reading::default()
            }],
        };
        let names = |a, b| -> Vec<String> {
            let compared = compare(&[a, b]).unwrap();
            compared.against[0].longer_syncs().iter().map(|row| row.name.clone()).collect()
        };
        assert_eq!(names(side(0.08, 2.0, 0.1), side(0.45, 0.8, 0.5)), ["q.fdatasync.p90_seconds"]);
        let both = ["q.fdatasync.p90_seconds", "q.fdatasync.max_seconds"];
        assert_eq!(names(side(0.08, 2.0, 0.1), side(0.45, 2.5, 0.1)), both);
        assert_eq!(names(side(0.08, 2.0, 0.1), side(0.0804, 2.05, 0.1)), [""; 0]);
    }

    #[test]
    fn series_are_compared_point_by_point_over_the_time_that_both_cover() {
        let ramp = |mib: f64, seconds: u32| {
            let window = Fixture::healthy()
                .host(move |t, row| row.nr_dirty = Some(mib_pages(mib * t)))
                .seconds(seconds)
                .window();
            Side { label: String::new(), readings: vec![Reading::of(&window)] }
        };
        let difference = |a: Side, b: Side| {
            let comparison = compare(&[a, b]).unwrap();
            let row = comparison.against[0].series.iter().find(|row| row.name == "dirty").cloned().unwrap();
            (row.mean_absolute_difference * 1000.0).round() / 1000.0
        };
        assert_eq!(difference(ramp(10.0, 10), ramp(10.0, 10)), 0.0);
        // 100 against 50 MiB at the end: on average a quarter of the peak.
        assert_eq!(difference(ramp(10.0, 10), ramp(5.0, 10)), 0.25);
        // Only the first half is covered by both, of the same peak.
        assert_eq!(difference(ramp(10.0, 10), ramp(5.0, 5)), 0.125);
    }

    #[test]
    fn between_two_points_lies_the_line() {
        assert_eq!(at_time(&[(0.0, 0.0), (2.0, 4.0)], 1.0), Some(2.0));
        assert_eq!(at_time(&[(0.0, 1.0), (2.0, 4.0)], 0.0), Some(1.0));
        assert_eq!(at_time(&[(0.0, 1.0)], 3.0), None);
    }
}
