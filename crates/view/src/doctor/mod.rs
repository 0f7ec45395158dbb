// SPDX-License-Identifier: MIT OR Apache-2.0
//! The report as text, in two forms: one screen for a tired person ([`screen`]), and everything it rests on ([`details`]).
//! Computes nothing.

mod details;
mod screen;

use crate::export::rfc3339;
use anstyle::{AnsiColor, Style};
use floodline_analysis::report::{Report, Severity};
use floodline_record::human;
use floodline_record::units::Nanos;

/// How the report is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Columns; at least 40 are used.
    pub width: usize,
    /// Whether to colour.
    pub color: bool,
    /// Whether to print evidence, sources, what was ruled out and what was not read, instead of one screen.
    pub details: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { width: 80, color: false, details: false }
    }
}

/// Lines get hard to read beyond this.
const WIDTH_MAX: usize = 100;
const WIDTH_MIN: usize = 40;
const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();

/// The report as text.
pub fn render(report: &Report, options: Options) -> String {
    let width = options.width.clamp(WIDTH_MIN, WIDTH_MAX);
    match options.details {
        true => details::render(report, width, options.color),
        false => screen::render(report, width, options.color),
    }
}

/// Whether nothing found hurts or will hurt.
fn is_calm(report: &Report) -> bool {
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

/// A moment on the wall clock.
fn time(wall_ns: u64) -> String {
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
