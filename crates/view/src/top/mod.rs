// SPDX-License-Identifier: MIT OR Apache-2.0
//! The screens of `floodline top`: a live host and a recording look the same. [`Look`] is what there is to show at one
//! moment, [`State`] what the person wants to see, [`draw`] puts both into a buffer of cells. No terminal, no clock: the
//! program owns both.

mod draw;
mod keys;
mod tables;

pub use draw::draw;
pub use keys::{Action, Key};

use floodline_analysis::moment::Moment;
use floodline_analysis::report::Report;
use floodline_record::window::Window;

/// The screens, in the order of their numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Screen {
    /// What is wrong, and what helps.
    #[default]
    Verdict,
    /// Cgroups and their budgets.
    Cgroups,
    /// Disks and wbs.
    Devices,
    /// Tasks that wait.
    Waits,
    /// Writers and files.
    Writers,
}

impl Screen {
    /// All of them.
    pub const ALL: [Screen; 5] = [Screen::Verdict, Screen::Cgroups, Screen::Devices, Screen::Waits, Screen::Writers];

    fn title(self) -> &'static str {
        match self {
            Screen::Verdict => "Verdict",
            Screen::Cgroups => "Cgroups",
            Screen::Devices => "Devices",
            Screen::Waits => "Waits",
            Screen::Writers => "Writers",
        }
    }

    fn number(self) -> usize {
        Screen::ALL.iter().position(|screen| *screen == self).unwrap_or(0)
    }
}

/// Where in time a look is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Position {
    /// Whether the host is watched while it runs.
    pub is_live: bool,
    /// Seconds since the first sample.
    pub second: f64,
    /// Seconds between the first and the last sample.
    pub of_seconds: f64,
    /// Number of the sample, from 1.
    pub sample: usize,
    /// Samples there are.
    pub of_samples: usize,
    /// Only each so-manieth sample of the recording is kept; 1 is all.
    pub thinned: usize,
}

/// What there is to show at one moment.
#[derive(Clone, Debug, Default)]
pub struct Look {
    /// Name of the machine (escaped).
    pub host: String,
    /// Where in time it is.
    pub position: Position,
    /// The machine in a few numbers; `None` before the first sample.
    pub moment: Option<Moment>,
    /// Where writers begin to be paused, bytes.
    pub freerun_bytes: Option<u64>,
    /// The diagnosis of the last minute.
    pub report: Option<Report>,
    tables: [Table; 4],
}

impl Look {
    /// A look at the last sample of a window that holds it and the one before. `minute` holds the samples of the last
    /// minute, for waits and bytes that a trace added up.
    pub fn new(host: String, position: Position, now: &Window, minute: &Window, report: Option<Report>) -> Look {
        Look {
            host,
            position,
            moment: Moment::of(now),
            freerun_bytes: floodline_analysis::diagnose::dirty::freerun_ceiling(now).map(|bytes| bytes.0),
            report,
            tables: [
                tables::cgroups(now),
                tables::devices(now),
                tables::waits(now, minute),
                tables::writers(now, minute),
            ],
        }
    }

    fn table(&self, screen: Screen) -> Option<&Table> {
        self.tables.get(screen.number().checked_sub(1)?)
    }
}

/// Rows of numbers under headings.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Row>,
    /// What has to be said where there are no rows.
    pub(crate) empty: &'static str,
}

/// A column: its heading and where its numbers come from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    pub(crate) head: &'static str,
    /// What it means, in a sentence.
    pub(crate) meaning: &'static str,
    /// Source file and key.
    pub(crate) source: &'static str,
    /// Kernel function that computes it or acts on it.
    pub(crate) function: &'static str,
}

/// A row.
#[derive(Clone, Debug, Default)]
pub(crate) struct Row {
    pub(crate) cells: Vec<Cell>,
    pub(crate) weight: Weight,
}

/// How much a row matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Weight {
    /// As any other.
    #[default]
    Plain,
    /// Slowed, or busy.
    Slowed,
    /// Over its limit, or saturated.
    Over,
}

/// A cell: what is shown, and by what it is sorted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cell {
    pub(crate) text: String,
    /// `None` where it is a text or was not read.
    pub(crate) value: Option<f64>,
}

impl Cell {
    pub(crate) fn text(text: impl Into<String>) -> Cell {
        Cell { text: text.into(), value: None }
    }

    pub(crate) fn number(value: Option<f64>, shown: fn(f64) -> String) -> Cell {
        Cell { text: value.map_or_else(|| "?".to_owned(), shown), value }
    }
}

/// What the person wants to see.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// The screen.
    pub screen: Screen,
    /// Whether a live host is held still.
    pub is_paused: bool,
    /// Whether colours are used. Without them weight and words tell the same.
    pub color: bool,
    row: usize,
    column: usize,
    /// First line shown.
    offset: usize,
    /// Column by which each table is sorted, and whether the smallest comes first; the order of the table where `None`.
    sort: [Option<(usize, bool)>; 4],
    filter: String,
    asked: Option<Asked>,
    popup: Option<Popup>,
    /// A sentence at the bottom, until the next key.
    message: String,
}

/// A line that the person types.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Asked {
    what: Question,
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Question {
    Filter,
    Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Popup {
    Help,
    Source,
}

impl State {
    /// What is shown at first.
    pub fn new(color: bool) -> State {
        State { color, ..State::default() }
    }

    /// Says something at the bottom, until the next key.
    pub fn say(&mut self, message: String) {
        self.message = message;
    }

    /// Rows of the table shown, filtered and sorted.
    fn rows<'a>(&self, look: &'a Look) -> Vec<&'a Row> {
        let Some(table) = look.table(self.screen) else { return Vec::new() };
        let wanted = self.filter.to_lowercase();
        let matches =
            |row: &&Row| wanted.is_empty() || row.cells.iter().any(|cell| cell.text.to_lowercase().contains(&wanted));
        let mut rows: Vec<&Row> = table.rows.iter().filter(matches).collect();
        if let Some((column, ascending)) = self.sort.get(self.screen.number().wrapping_sub(1)).copied().flatten() {
            let cell = |row: &Row| row.cells.get(column).cloned().unwrap_or_default();
            rows.sort_by(|a, b| {
                let (a, b) = (cell(a), cell(b));
                // What was not read comes last either way.
                let order = match (a.value, b.value) {
                    (Some(a), Some(b)) => a.total_cmp(&b),
                    (Some(_), None) => return std::cmp::Ordering::Less,
                    (None, Some(_)) => return std::cmp::Ordering::Greater,
                    (None, None) => a.text.cmp(&b.text).reverse(),
                };
                if ascending { order } else { order.reverse() }
            });
        }
        rows
    }
}

#[cfg(test)]
mod tests;
