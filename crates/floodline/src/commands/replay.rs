// SPDX-License-Identifier: MIT OR Apache-2.0
//! `floodline replay FILE`: walks through a recording by time, one line per sample, or shows one
//! moment in full.

use super::Run;
use crate::console::{Console, Format};
use crate::error::CliError;
use crate::exit::Exit;
use crate::input::{Input, no_sample};
use crate::interrupt::Interrupt;
use crate::observe::{parse_duration, parse_interval};
use floodline_analysis::diagnose::holes::sentence;
use floodline_analysis::moment::Moment;
use floodline_record::holes::Holes;
use floodline_record::human;
use floodline_record::levels::Levels;
use floodline_record::record::{Record, Sink};
use floodline_record::sample::{Sample, SampleTime};
use floodline_record::window::Window;
use floodline_view::moment as view;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Print the samples of a recording in order of time
#[derive(clap::Parser)]
#[command(
    name = "replay",
    after_help = "TIME is a duration since the first sample (90s, 1m30s) or a date and time in UTC \
        (2026-11-21T04:00:00Z).\n\n\
        Examples:\n  \
        floodline replay host.flr --from 10m --every 10s\n  \
        floodline replay host.flr --at 12m30s\n  \
        floodline replay host.flr --format json | jq .dirty_bytes"
)]
pub(crate) struct Replay {
    /// Recording to replay; - is standard input
    file: PathBuf,
    /// Print only the last sample before this time, in full
    #[arg(long, value_name = "TIME", value_parser = parse_point, conflicts_with_all = ["from", "to", "every", "speed"])]
    at: Option<Point>,
    /// Start at this time
    #[arg(long, value_name = "TIME", value_parser = parse_point)]
    from: Option<Point>,
    /// End at this time
    #[arg(long, value_name = "TIME", value_parser = parse_point)]
    to: Option<Point>,
    /// Print one line per this interval instead of one per sample
    #[arg(long, value_name = "DURATION", value_parser = parse_interval)]
    every: Option<Duration>,
    /// Play at this multiple of the recorded speed [default: without pauses]
    #[arg(long, value_name = "FACTOR", value_parser = parse_speed)]
    speed: Option<f64>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// A moment of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Point {
    /// Since the first sample.
    Since(Duration),
    /// Wall clock, nanoseconds since 1970 UTC.
    Wall(u64),
}

impl Run for Replay {
    fn run(self, console: &mut Console) -> Result<Exit, CliError> {
        let interrupt = Interrupt::watch()?;
        let mut walk = Walk::new(&self);
        let mut started = None;
        let mut lines: u64 = 0;
        Input::open(&self.file)?.each(|record| {
            let Some(moment) = walk.take(record) else { return Ok(!walk.is_over) };
            if self.at.is_some() {
                return Ok(true);
            }
            if lines == 0 && self.format == Format::Text {
                console.print(&view::heading())?;
            }
            lines += 1;
            let (start, first) = *started.get_or_insert((Instant::now(), walk.shown));
            if let Some(speed) = self.speed {
                let passed = walk.shown.monotonic.0.saturating_sub(first.monotonic.0);
                if interrupt.sleep_until(start + Duration::from_nanos(passed).div_f64(speed)) {
                    return Ok(false);
                }
            }
            match self.format {
                Format::Text => console.print(&view::line(&moment, console.width()))?,
                Format::Json => console.print(&view::json(&moment))?,
            }
            Ok(!interrupt.is_asked())
        })?;
        let length = walk.length().as_secs_f64();
        if let Some(sentence) = sentence(&walk.holes).filter(|_| self.format == Format::Text) {
            console.note(&sentence);
        }
        if walk.at.is_some() && !walk.is_over && self.at.is_some_and(|at| walk.is_after_the_end(at)) {
            console.note(&format!("the recording ends after {}: this is its last sample", human::seconds(length)));
        }
        match (self.at, walk.at) {
            (Some(_), Some(moment)) if self.format == Format::Text => {
                console.print(&view::screen(&moment, console.width()))?
            }
            (Some(_), Some(moment)) => console.print(&view::json(&moment))?,
            (None, _) if lines > 0 => {}
            _ if walk.samples == 0 => return Err(no_sample(&self.file)),
            _ => {
                return Err(CliError::usage("the recording contains no sample at that time").hint(format!(
                    "{} lie within the first {}",
                    human::plural(walk.samples, "sample", "samples"),
                    human::seconds(length)
                )));
            }
        }
        Ok(Exit::Done)
    }
}

/// The state of walking through a recording.
struct Walk<'a> {
    wanted: &'a Replay,
    window: Window,
    before: Option<Box<Sample>>,
    /// Levels of cgroups as last read.
    levels: Levels,
    first: Option<SampleTime>,
    last: SampleTime,
    /// Time of the line that was shown last.
    shown: SampleTime,
    /// Time on the monotonic clock at which the next line is due, nanoseconds.
    due: u64,
    samples: u64,
    at: Option<Moment>,
    is_over: bool,
    /// What is missing of the recording as far as it was read, and since the line before.
    holes: Holes,
    since_line: Holes,
}

impl<'a> Walk<'a> {
    fn new(wanted: &'a Replay) -> Walk<'a> {
        Walk {
            wanted,
            window: Window::default(),
            before: None,
            levels: Levels::default(),
            first: None,
            last: SampleTime::default(),
            shown: SampleTime::default(),
            due: 0,
            samples: 0,
            at: None,
            is_over: false,
            holes: Holes::default(),
            since_line: Holes::default(),
        }
    }

    /// Takes a record and gives the moment to show, where one is due.
    fn take(&mut self, record: Record) -> Option<Moment> {
        self.holes.record(&record);
        self.since_line.record(&record);
        let Record::Sample(sample) = record else {
            fold(&mut self.window, &record);
            return None;
        };
        self.levels.note(&sample);
        self.samples += 1;
        let time = sample.time;
        let first = *self.first.get_or_insert(time);
        self.last = time;
        self.is_over = self.is_behind(self.wanted.to, first, time) || self.is_behind(self.wanted.at, first, time);
        let is_before =
            self.wanted.from.is_some_and(|from| !self.is_behind(Some(from), first, time) && !is_at(from, first, time));
        // Rates are computed since the last line, so that no sample in between is lost.
        let is_due = time.monotonic.0 >= self.due;
        if self.is_over || is_before || !is_due {
            if is_before || self.before.is_none() {
                self.since_line = Holes::default();
                let record = Record::Sample(sample);
                self.since_line.record(&record);
                if let Record::Sample(sample) = record {
                    self.before = Some(sample);
                }
            }
            return None;
        }
        self.window.begin_again();
        if let Some(before) = self.before.take() {
            fold(&mut self.window, &Record::Sample(before));
        }
        // Not each sample reads the levels of cgroups.
        let cgroups = self.levels.with_levels(&sample.cgroups);
        fold(&mut self.window, &Record::Sample(Box::new(Sample { cgroups, ..(*sample).clone() })));
        let record = Record::Sample(sample);
        let every = self.wanted.every.map_or(0, |every| u64::try_from(every.as_nanos()).unwrap_or(u64::MAX));
        self.due = time.monotonic.0.saturating_add(every);
        self.shown = time;
        let moment = Moment::of(&self.window).map(|moment| moment.with(&self.since_line));
        self.since_line = Holes::default();
        self.since_line.record(&record);
        if let Record::Sample(sample) = record {
            self.before = Some(sample);
        }
        if self.wanted.at.is_some() {
            self.at = moment;
            return None;
        }
        moment
    }

    fn is_behind(&self, point: Option<Point>, first: SampleTime, time: SampleTime) -> bool {
        point.is_some_and(|point| position(point, first, time).is_gt())
    }

    fn is_after_the_end(&self, point: Point) -> bool {
        self.first.is_some_and(|first| position(point, first, self.last).is_lt())
    }

    fn length(&self) -> Duration {
        let first = self.first.unwrap_or(self.last);
        Duration::from_nanos(self.last.monotonic.0.saturating_sub(first.monotonic.0))
    }
}

fn is_at(point: Point, first: SampleTime, time: SampleTime) -> bool {
    position(point, first, time).is_eq()
}

/// Where a sample lies, seen from a point.
fn position(point: Point, first: SampleTime, time: SampleTime) -> std::cmp::Ordering {
    match point {
        Point::Since(since) => u128::from(time.monotonic.0.saturating_sub(first.monotonic.0)).cmp(&since.as_nanos()),
        Point::Wall(wall) => time.wall.0.cmp(&wall),
    }
}

fn fold(window: &mut Window, record: &Record) {
    match window.record(record) {
        Ok(()) => {}
    }
}

fn parse_point(text: &str) -> Result<Point, String> {
    if let Ok(stamp) = text.parse::<jiff::Timestamp>() {
        return u64::try_from(stamp.as_nanosecond())
            .map(Point::Wall)
            .map_err(|_| "time out of range: expected 1970 to 2554".to_owned());
    }
    parse_duration(text.strip_prefix('+').unwrap_or(text))
        .map(Point::Since)
        .map_err(|_| format!("invalid time {text:?}: expected a value such as 90s, 1m30s or 2026-11-21T04:00:00Z"))
}

fn parse_speed(text: &str) -> Result<f64, String> {
    match text.strip_suffix(['x', '×']).unwrap_or(text).parse::<f64>() {
        Ok(speed) if speed.is_finite() && (0.001..=1e6).contains(&speed) => Ok(speed),
        _ => Err("invalid factor: expected a number from 0.001 to 1000000, e.g. 1 or 60".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_lengths_of_time_or_moments() {
        assert_eq!(parse_point("1m30s"), Ok(Point::Since(Duration::from_secs(90))));
        assert_eq!(parse_point("+5s"), Ok(Point::Since(Duration::from_secs(5))));
        assert_eq!(parse_point("1970-01-01T00:00:01Z"), Ok(Point::Wall(1_000_000_000)));
        assert!(parse_point("noon").is_err());
        assert!(parse_point("1969-01-01T00:00:00Z").is_err());
    }

    #[test]
    fn speeds_are_positive_factors() {
        assert_eq!(parse_speed("60x"), Ok(60.0));
        assert!(["0", "-1", "inf", "fast"].iter().all(|text| parse_speed(text).is_err()));
    }
}
