// SPDX-License-Identifier: MIT OR Apache-2.0
//! A plot as a picture that needs no script: ticks, curves as paths of whole numbers, marks. The same curves as data for
//! the script are in [`super::packed`].

use super::model::{Curve, Figure, Marked, Tick};
use crate::export::rfc3339;
use floodline_analysis::timeline::{Extent, Mark, Plot, PlotUnit, Role};
use floodline_record::units::Nanos;
use std::fmt::Write;

/// Edges of the curves within the picture.
const LEFT: f64 = 70.0;
const RIGHT: f64 = 712.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 212.0;
/// Stretches that a path shows, at most.
const PATH_POINTS: usize = 220;
/// Points of a small curve, at most.
const SPARK_POINTS: usize = 40;
/// Curves with a colour of their own.
const COLORS: usize = 8;

/// The axis that all plots of a recording share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis<'a> {
    /// Beginning and end of each stretch, seconds or values.
    pub(super) stretches: &'a [(f64, f64)],
    /// The wall clock at its beginning, nanoseconds since 1970 UTC; `None` where it is not time.
    pub(super) wall_ns: Option<u64>,
    /// What the places 0, 1, … are called where the axis is not time.
    pub(super) labels: &'a [String],
}

impl Axis<'_> {
    fn from(&self) -> f64 {
        self.stretches.first().map_or(0.0, |(from, _)| *from)
    }

    fn length(&self) -> f64 {
        let to = self.stretches.last().map_or(0.0, |(_, to)| *to);
        if to > self.from() { to - self.from() } else { 1.0 }
    }

    fn x(&self, value: f64) -> f64 {
        LEFT + (value - self.from()) / self.length() * (RIGHT - LEFT)
    }

    /// A place on the axis in words.
    pub(super) fn shown(&self, value: f64) -> String {
        let Some(wall) = self.wall_ns else {
            return self.labels.get(value.round() as usize).cloned().unwrap_or_default();
        };
        let at = wall.saturating_add((value.max(0.0) * 1e9) as u64);
        let text = rfc3339(Nanos(at)).unwrap_or_default();
        text.get(11..19).map_or_else(|| format!("{value:.0} s"), str::to_owned)
    }

    fn ticks(&self) -> Vec<Tick> {
        let Some(wall) = self.wall_ns else {
            let each = self.labels.len().div_ceil(8).max(1);
            let tick = |(at, text): (usize, &String)| Tick {
                at: self.x(at as f64).round() as i64,
                text: text.clone(),
                is_minor: !(at / each).is_multiple_of(2),
            };
            return self.labels.iter().enumerate().step_by(each).map(tick).collect();
        };
        let step = time_step(self.length());
        // Ticks stand at round times of the wall clock.
        let offset = (wall as f64 / 1e9).rem_euclid(step);
        let mut at = self.from() + (offset / step).ceil() * step - offset;
        let mut ticks = Vec::new();
        while at <= self.from() + self.length() && ticks.len() < 20 {
            let is_minor = ticks.len() % 2 == 1;
            let x = self.x(at);
            if (LEFT + 20.0..=RIGHT - 24.0).contains(&x) {
                ticks.push(Tick { at: x.round() as i64, text: self.shown(at), is_minor });
            }
            at += step;
        }
        ticks
    }
}

/// A step of 1, 2 or 5 times a power of ten.
fn round_step(step: f64) -> f64 {
    if !step.is_finite() || step <= 0.0 {
        return 1.0;
    }
    let power = 10f64.powf(step.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * power >= step).unwrap_or(10.0);
    factor * power
}

/// Seconds between two ticks of time.
fn time_step(seconds: f64) -> f64 {
    const STEPS: [f64; 15] =
        [1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0, 21600.0];
    let wanted = seconds / 6.0;
    STEPS.into_iter().find(|step| *step >= wanted).unwrap_or_else(|| (wanted / 86400.0).ceil() * 86400.0)
}

/// The values at which lines are drawn across: from zero to above the largest.
fn levels(most: f64, unit: PlotUnit) -> Vec<f64> {
    let most = if most.is_finite() && most > 0.0 { most } else { 1.0 };
    let step = match unit {
        PlotUnit::Bytes | PlotUnit::BytesPerSecond => 2f64.powf((most / 4.0).log2().ceil()),
        PlotUnit::Count => round_step(most / 4.0).max(1.0),
        PlotUnit::Share | PlotUnit::Seconds => round_step(most / 4.0),
    };
    let count = (most / step).ceil().clamp(1.0, 6.0) as u32;
    (0..=count).map(|level| f64::from(level) * step).collect()
}

/// The picture of a plot.
pub(super) fn figure(axis: Axis<'_>, plot: &Plot, prefix: &str, number: String, marks: &[Marked]) -> Figure {
    let most = plot.lines.iter().map(|line| largest(&line.points)).fold(0.0, f64::max);
    // A threshold far above everything measured would flatten it; it stays in the legend.
    let measured = plot
        .lines
        .iter()
        .filter(|line| line.role == Role::Measured)
        .map(|line| largest(&line.points))
        .fold(0.0, f64::max);
    let top = if measured > 0.0 && most > measured * 20.0 { measured * 1.1 } else { most };
    let levels = levels(top, plot.unit);
    let ceiling = levels.last().copied().unwrap_or(1.0);
    let y = |value: f64| BOTTOM - (value / ceiling).clamp(0.0, 1.05) * (BOTTOM - TOP);
    let y_ticks = levels
        .iter()
        .map(|level| Tick { at: y(*level).round() as i64, text: plot.unit.shown(*level), is_minor: false })
        .collect();
    let (mut measures, mut limits) = (0, 0);
    let mut lines = Vec::new();
    for line in &plot.lines {
        let class = class(line.role, &mut measures, &mut limits);
        let path = path(&line.points, PATH_POINTS, axis.stretches.len(), |at| axis.x(at), y, axis.stretches);
        lines.push(Curve { class, name: line.name.clone(), path, most: plot.unit.shown(largest(&line.points)) });
    }
    let worst = plot
        .lines
        .iter()
        .filter(|line| line.role == Role::Measured)
        .map(|line| format!("{} peak {}", line.name, plot.unit.shown(largest(&line.points))));
    Figure {
        id: format!("{prefix}{}", plot.id),
        number,
        title: plot.title.to_owned(),
        source: plot.source.to_owned(),
        described: format!("{}: {}", plot.title, worst.collect::<Vec<_>>().join(", ")),
        x_ticks: axis.ticks(),
        y_ticks,
        marks: marks.to_vec(),
        lines,
        left_out: plot.left_out.clone(),
    }
}

/// Class of a curve's colour: measured ones and limits are counted apart.
pub(super) fn class(role: Role, measures: &mut usize, limits: &mut usize) -> String {
    let (letter, count, of) = match role {
        Role::Measured => ('s', measures, COLORS),
        Role::Threshold => ('l', limits, 3),
    };
    *count += 1;
    format!("{letter}{}", (*count - 1) % of)
}

fn largest(points: &[(usize, Extent)]) -> f64 {
    points.iter().map(|(_, extent)| f64::from(extent.max)).filter(|value| value.is_finite()).fold(0.0, f64::max)
}

/// Marks as lines across a plot; those with an anchor first.
pub(super) fn marks(axis: Axis<'_>, anchored: &[Mark], others: &[Mark]) -> Vec<Marked> {
    let mut out: Vec<Marked> = Vec::new();
    for (mark, has_anchor) in anchored.iter().map(|mark| (mark, true)).chain(others.iter().map(|mark| (mark, false))) {
        let id = if has_anchor { format!("t={}", second(mark.second)) } else { String::new() };
        if !id.is_empty() && out.iter().any(|other| other.id == id) {
            continue;
        }
        let at = format!("{:.1}", axis.x(mark.second).clamp(LEFT, RIGHT));
        out.push(Marked { id, at, text: format!("{} {}", axis.shown(mark.second), mark.label), is_found: has_anchor });
    }
    out
}

/// A second as it stands in links.
pub(super) fn second(second: f64) -> String {
    format!("{second:.1}")
}

/// A small curve without axes.
pub(super) fn spark(points: &[(usize, Extent)], stretches: &[(f64, f64)]) -> String {
    let (from, to) = (stretches.first().map_or(0.0, |(from, _)| *from), stretches.last().map_or(0.0, |(_, to)| *to));
    let (length, most) = (if to > from { to - from } else { 1.0 }, largest(points));
    let x = |at: f64| 1.0 + (at - from) / length * 118.0;
    let y = |value: f64| 22.0 - if most > 0.0 { value / most * 20.0 } else { 0.0 };
    path(points, SPARK_POINTS, stretches.len(), x, y, stretches)
}

/// A path through at most so many stretches: each is drawn from its smallest to its largest reading.
fn path(
    points: &[(usize, Extent)],
    most: usize,
    of: usize,
    x: impl Fn(f64) -> f64,
    y: impl Fn(f64) -> f64,
    stretches: &[(f64, f64)],
) -> String {
    let per = of.div_ceil(most).max(1);
    let mut path = String::new();
    let mut last: Option<(usize, i64, i64)> = None;
    for group in points.chunk_by(|(a, _), (b, _)| a / per == b / per) {
        let (Some((first_at, first)), Some((last_at, _))) = (group.first(), group.last()) else { continue };
        let Some(extent) =
            group.iter().skip(1).map(|(_, next)| *next).try_fold(*first, |sum, next| Some(sum.then(next)))
        else {
            continue;
        };
        let (Some((from, _)), Some((_, to))) = (stretches.get(*first_at), stretches.get(*last_at)) else { continue };
        let (early, late) = extent.in_order();
        let pair = [(*from, early), (*to, late)];
        let shown = if early == late && from == to { &pair[..1] } else { &pair[..] };
        for (number, (at, value)) in shown.iter().enumerate() {
            let (px, py) = ((x(*at)).round() as i64, (y(f64::from(*value))).round() as i64);
            match last {
                // What was not read is a hole in the curve.
                Some((before, lx, ly)) if number > 0 || *first_at <= before + per => {
                    if (px, py) != (lx, ly) {
                        let _ = write!(path, "l{} {}", px - lx, py - ly);
                    }
                }
                _ => {
                    let _ = write!(path, "M{px} {py}h1");
                    last = Some((*last_at, px + 1, py));
                    continue;
                }
            }
            last = Some((*last_at, px, py));
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flat(value: f32) -> Extent {
        Extent { min: value, max: value, rises: true }
    }

    #[test]
    fn steps_are_round() {
        assert_eq!([0.7, 1.0, 1.2, 3.0, 70.0].map(round_step), [1.0, 1.0, 2.0, 5.0, 100.0]);
        assert_eq!([20.0, 60.0, 3600.0, 86400.0].map(time_step), [5.0, 10.0, 600.0, 21600.0]);
        assert_eq!(levels(100.0 * 1_048_576.0, PlotUnit::Bytes).last(), Some(&(128.0 * 1_048_576.0)));
        assert_eq!(levels(0.0, PlotUnit::Share).last(), Some(&1.0));
        assert!(levels(f64::INFINITY, PlotUnit::Seconds).len() > 1);
    }

    #[test]
    fn a_path_is_broken_where_nothing_was_read() {
        let stretches: Vec<(f64, f64)> = (0..6).map(|at| (f64::from(at), f64::from(at))).collect();
        let points = [(0, flat(1.0)), (1, flat(2.0)), (4, flat(2.0)), (5, flat(1.0))];
        let path = path(&points, 100, 6, |x| x * 10.0, |y| y * 10.0, &stretches);
        assert_eq!(path, "M0 10h1l9 10M40 20h1l9 -10");
    }

    #[test]
    fn a_long_path_keeps_its_extremes() {
        let stretches: Vec<(f64, f64)> = (0..1000).map(|at| (f64::from(at), f64::from(at) + 0.5)).collect();
        let mut points: Vec<(usize, Extent)> = (0..1000).map(|at| (at, flat(5.0))).collect();
        points[501].1 = Extent { min: 0.0, max: 90.0, rises: true };
        let path = path(&points, 100, 1000, |x| x, |y| y, &stretches);
        assert!(path.contains(" 90"), "{path}");
        assert!(path.len() < 2000, "{}", path.len());
    }

    #[test]
    fn ticks_stand_at_round_times() {
        let stretches = [(0.0, 0.0), (60.0, 60.0)];
        // 12:00:07 UTC.
        let axis = Axis { stretches: &stretches, wall_ns: Some(43_207_000_000_000), labels: &[] };
        let ticks: Vec<String> = axis.ticks().into_iter().map(|tick| tick.text).collect();
        assert_eq!(ticks[0], "12:00:10");
        assert!(ticks.iter().all(|tick| tick.ends_with('0')), "{ticks:?}");
    }
}
