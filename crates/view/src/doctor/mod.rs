// SPDX-License-Identifier: MIT OR Apache-2.0
//! The report as text, in two forms: one screen for a tired person ([`screen`]), and everything it rests on ([`details`]).
//! Computes nothing.

pub(crate) mod details;
mod fit;
#[cfg(test)]
mod full_tests;
pub(crate) mod screen;
pub(crate) mod words;

use crate::export::rfc3339;
use crate::layout::capital;
use anstyle::{AnsiColor, Style};
use floodline_analysis::report::{HoleLine, OF_RECORDING, Report, Severity};
use floodline_record::human;
use floodline_record::units::Nanos;

/// How the report is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Columns; at least 40 are used.
    pub width: usize,
    /// Lines of the one screen; at least 22 and at most 25 are used.
    pub rows: usize,
    /// Whether to colour.
    pub color: bool,
    /// Whether to print evidence, sources, what was ruled out and what was not read, instead of one screen.
    pub details: bool,
    /// Whether the host can be observed again, with a trace: not where a kept recording is read.
    pub is_live: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { width: 80, rows: fit::LINES, color: false, details: false, is_live: true }
    }
}

/// Lines get hard to read beyond this.
const WIDTH_MAX: usize = 100;
const WIDTH_MIN: usize = 40;
const PLAIN: Style = Style::new();
const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();

/// The report as text.
pub fn render(report: &Report, options: Options) -> String {
    let width = options.width.clamp(WIDTH_MIN, WIDTH_MAX);
    match options.details {
        true => details::render(report, width, options),
        false => screen::render(report, width, options),
    }
}

/// Whether nothing found hurts or will hurt.
pub(crate) fn is_calm(report: &Report) -> bool {
    report.findings.iter().all(|finding| finding.severity == Severity::Info)
}

fn rules(count: usize) -> String {
    human::plural(count as u64, "rule", "rules")
}

fn color_of(severity: Severity) -> Style {
    let color = match severity {
        Severity::Critical => AnsiColor::Red,
        Severity::Warning => AnsiColor::Yellow,
        Severity::Info => AnsiColor::Cyan,
    };
    color.on_default().bold()
}

/// What is missing of the observation, a sentence each; empty where it is whole. What a damaged recording lost stands first.
pub(crate) fn missing(report: &Report) -> Vec<String> {
    let observation = &report.observation;
    let lost = report.gaps.iter().filter(|gap| gap.source == OF_RECORDING);
    let mut sentences: Vec<String> = lost.map(|gap| format!("{}.", capital(&gap.cause))).collect();
    if observation.missing_samples > 0 {
        let due = observation.samples.saturating_add(observation.missing_samples);
        let verb = if observation.missing_samples == 1 { "is" } else { "are" };
        // A sample may be missing at the end, with no sample after it: then there is no hole.
        let longest = Some(observation.longest_hole_s).filter(|length| *length > 0.0);
        let hole = longest.map(|length| format!(", the longest hole is {}", human::seconds(length)));
        sentences.push(format!(
            "{} of {due} samples {verb} missing{}.",
            observation.missing_samples,
            hole.unwrap_or_default()
        ));
        let waited = |line: &&HoleLine| line.io_pressure_some_s.is_some_and(|seconds| seconds > 0.0);
        let most = observation.holes.iter().filter(waited);
        let most =
            most.max_by(|a, b| a.io_pressure_some_s.unwrap_or(0.0).total_cmp(&b.io_pressure_some_s.unwrap_or(0.0)));
        sentences.extend(most.map(|hole| {
            let waited = human::seconds(hole.io_pressure_some_s.unwrap_or(0.0));
            let length = human::seconds(hole.length_s);
            format!(
                "Tasks waited for I/O for {waited} in the hole of {length} that begins at {}.",
                time(hole.from_wall_ns)
            )
        }));
    }
    match observation.samples_back_in_time {
        0 => {}
        1 => sentences.push("Time stood still or ran backwards at 1 sample.".to_owned()),
        samples => sentences.push(format!("Time stood still or ran backwards at {samples} samples.")),
    }
    if let Some((by, at)) = observation.largest_wall_clock_jump_s.zip(observation.largest_wall_clock_jump_wall_ns) {
        let way = if by < 0.0 { "back" } else { "forward" };
        let others = match observation.wall_clock_jumps {
            0 | 1 => String::new(),
            jumps => format!(", and {} more", human::plural(jumps - 1, "time", "times")),
        };
        sentences.push(format!(
            "The wall clock was set {way} by {} to {}{others}.",
            human::seconds(by.abs()),
            time(at)
        ));
    }
    sentences
}

/// A moment on the wall clock.
pub(crate) fn time(wall_ns: u64) -> String {
    rfc3339(Nanos(wall_ns)).unwrap_or_else(|| "an unknown time".to_owned())
}

/// Writes lines with their styles, so that no style runs over the end of a line.
struct Page {
    out: String,
    width: usize,
    color: bool,
}

impl Page {
    fn styled(&mut self, text: &str, style: Style) {
        use std::fmt::Write;
        if !self.color {
            self.out.push_str(text);
            return;
        }
        for (at, line) in text.split('\n').enumerate() {
            if at > 0 {
                self.out.push('\n');
            }
            if !line.is_empty() {
                let _ = write!(self.out, "{style}{line}{style:#}");
            }
        }
    }
}
