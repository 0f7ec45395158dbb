// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs of the model and of real kernels: their samples as they are, and the report on them.

use super::raw::Raw;
use floodline_analysis::report::Report;
use floodline_analysis::run::Run;
use floodline_record::record::{Record, Sink, What};
use floodline_record::recording::{Decoder, Encoder, Header};
use floodline_scenario::Scenario;
use floodline_sim::{Options, simulate};
use std::ffi::OsString;
use std::io::Read;
use std::path::PathBuf;

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
                what => self.raw.traced.push((event.at, what.clone())),
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

/// The recording of a run of the model.
pub(crate) fn saved(scenario: &Scenario, options: &Options) -> Vec<u8> {
    let mut encoder = Encoder::new(Vec::new(), Header::new(None)).expect("a header");
    let take = |record: Record| {
        encoder.record(&record).expect("a record");
        Ok(())
    };
    simulate(scenario, options, take, |_| true).expect("a run");
    encoder.finish().expect("a recording")
}

/// Takes records as they are.
pub(crate) fn folded(records: &[Record]) -> (Raw, Report) {
    let mut taken = Taken::default();
    records.iter().for_each(|record| taken.take(record));
    taken.diagnosed()
}

/// Reads a recording.
pub(crate) fn recorded(bytes: impl Read) -> (Raw, Report) {
    let mut taken = Taken::default();
    Decoder::new(bytes).expect("a recording").for_each(|record| taken.take(&record.expect("a record")));
    taken.diagnosed()
}

/// The recordings in a folder, by name; none without a folder.
pub(crate) fn flr_files(folder: Option<OsString>) -> Vec<PathBuf> {
    let entries = folder.into_iter().flat_map(|folder| std::fs::read_dir(folder).expect("a folder"));
    let files = entries.map(|entry| entry.expect("an entry").path());
    let mut files: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|end| end == "flr")).collect();
    files.sort();
    files
}
