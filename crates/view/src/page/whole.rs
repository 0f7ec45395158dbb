// SPDX-License-Identifier: MIT OR Apache-2.0
//! Everything that the page of a host needs of one recording, folded record by record.

use super::Host;
use floodline_analysis::budget::{BudgetReport, Choice, Sort, budgets, rows};
use floodline_analysis::diagnose::stretches::Stretches;
use floodline_analysis::ledger::{Ledger, ledger};
use floodline_analysis::report::Report;
use floodline_analysis::timeline::Timeline;
use floodline_record::record::{Record, Sink};
use floodline_record::window::Window;
use std::convert::Infallible;

/// Takes the records of one recording.
pub struct Fold {
    timeline: Timeline,
    stretches: Stretches,
}

impl Default for Fold {
    fn default() -> Fold {
        Fold { timeline: Timeline::default(), stretches: Stretches::with_whole() }
    }
}

impl Sink for Fold {
    type Error = Infallible;
    fn record(&mut self, record: &Record) -> Result<(), Infallible> {
        self.timeline.record(record)?;
        self.stretches.record(record)
    }
}

impl Fold {
    /// What the page needs; `None` where the recording has no sample. `label` names the recording.
    pub fn finish(self, label: String) -> Option<Whole> {
        let (report, window) = self.stretches.finish_whole();
        (window.samples > 0).then(|| Whole {
            label,
            report,
            budgets: rows(&window, &budgets(&window), Choice { all: true, sort: Sort::Over }),
            ledger: ledger(&window),
            timeline: self.timeline,
            window,
        })
    }
}

/// A recording, folded for its page.
pub struct Whole {
    /// Name of the recording.
    pub label: String,
    /// Diagnosis of its worst stretch.
    pub report: Report,
    /// That stretch.
    pub window: Window,
    timeline: Timeline,
    budgets: BudgetReport,
    ledger: Option<Ledger>,
}

impl Whole {
    /// What the page shows.
    pub fn host(&self) -> Host<'_> {
        Host {
            label: &self.label,
            report: &self.report,
            window: &self.window,
            timeline: &self.timeline,
            budgets: &self.budgets,
            ledger: self.ledger.as_ref(),
        }
    }
}
