// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs of the model and of real kernels: their samples as they are, and the report on them.

use super::raw::Raw;
use floodline_analysis::report::Report;
use floodline_analysis::run::Run;
use floodline_record::record::{Record, Sink, What};
use floodline_record::recording::Decoder;
use floodline_scenario::Scenario;
use floodline_sim::{Options, simulate};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// What was taken of a run so far.
#[derive(Default)]
struct Taken {
    raw: Raw,
    run: Run,
    is_over: bool,
}

impl Taken {
    fn take(&mut self, record: &Record) {
        match record {
            Record::Event(event) => match &event.what {
                What::WorkloadStarted { .. } => {
                    self.run.window.begin_again();
                    self.raw.samples.clear();
                    self.raw.traced.clear();
                }
                What::WorkloadEnded => self.is_over = true,
                What::Synced(_) | What::SlowSync(_) | What::Throttled(_) if !self.is_over => {
                    self.raw.traced.push(event.what.clone());
                }
                _ => {}
            },
            Record::Entity(id, entity) => drop(self.raw.entities.insert(*id, entity.clone())),
            Record::Facts(facts) => self.raw.facts = Some((**facts).clone()),
            Record::Sample(sample) if !self.is_over => self.raw.samples.push((**sample).clone()),
            _ => {}
        }
        if !self.is_over || !matches!(record, Record::Sample(_)) {
            let Ok(()) = self.run.record(record);
        }
    }

    fn diagnosed(self) -> (Raw, Report) {
        (self.raw, self.run.diagnose())
    }
}

/// Runs a scenario on the model.
pub(crate) fn simulated(scenario: &Scenario, options: &Options) -> (Raw, Report) {
    let mut taken = Taken::default();
    let take = |record: Record| {
        taken.take(&record);
        Ok(())
    };
    simulate(scenario, options, take, |_| true).expect("a run");
    taken.diagnosed()
}

/// Reads a recording.
pub(crate) fn recorded(path: &Path) -> (Raw, Report) {
    let file = File::open(path).expect("a file");
    let mut taken = Taken::default();
    Decoder::new(BufReader::new(file)).expect("a recording").for_each(|record| taken.take(&record.expect("a record")));
    taken.diagnosed()
}
