// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recordings and scenarios as input.

use crate::{Failure, note};
use floodline_record::facts::HostFacts;
use floodline_record::name::Name;
use floodline_record::record::{Record, Sink, What};
use floodline_record::recording::{Decoder, Encoder, Header, Why};
use floodline_record::version::KernelVersion;
use floodline_record::window::Window;
use floodline_scenario::{ScenarioFile, TEXT_MAX};
use std::convert::Infallible;
use std::fs::File;
use std::io::{BufReader, BufWriter, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A path as it is shown: its bytes may be anything.
pub(crate) fn shown(path: &Path) -> Name {
    Name::new(path.as_os_str().as_bytes())
}

/// Passes on every record of a recording; `take` returns false to stop early. Parts missing in the file are reported.
pub(crate) fn each(path: &Path, mut take: impl FnMut(Record) -> bool) -> Result<(), Failure> {
    let name = shown(path);
    let file = File::open(path).map_err(|error| {
        Failure::input(format!("cannot read {name}: {error}"))
            .hint("floodline lab run scenarios/dirty-cliff.toml --kernel 6.12 --save real.flr")
    })?;
    let mut decoder = Decoder::new(BufReader::new(file)).map_err(|error| Failure::input(format!("{name}: {error}")))?;
    for record in decoder.by_ref() {
        if !take(record.map_err(|error| Failure::input(format!("{name}: {error}")))?) {
            return Ok(());
        }
    }
    // A recorder that was killed between two samples lost nothing.
    for cut in decoder.cuts().iter().filter(|cut| cut.why != Why::NotClosed) {
        note(&format!("{name}: {cut}"));
    }
    Ok(())
}

/// Writes a recording of these records.
pub(crate) fn save(records: &[Record], path: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let mut encoder = Encoder::new(BufWriter::new(File::create(path)?), Header::new(None))?;
    for record in records {
        encoder.record(record)?;
    }
    encoder.finish()?;
    Ok(())
}

/// Metadata of a whole run on a real kernel.
pub(crate) struct Workload<'a> {
    pub(crate) scenario: String,
    pub(crate) variant: String,
    pub(crate) kernel: KernelVersion,
    pub(crate) facts: &'a HostFacts,
}

impl<'a> Workload<'a> {
    /// The workload of a recording.
    ///
    /// # Errors
    /// Why the recording is none of a whole run on a real kernel.
    pub(crate) fn of(window: &'a Window) -> Result<Workload<'a>, &'static str> {
        let started = window.events.iter().find_map(|event| match &event.what {
            What::WorkloadStarted { scenario, variant } => Some((scenario.to_string(), variant.to_string())),
            _ => None,
        });
        let (scenario, variant) = started.ok_or("recorded without a scenario")?;
        if !window.events.iter().any(|event| matches!(event.what, What::WorkloadEnded)) {
            return Err("recorded from an incomplete run");
        }
        let facts = window.facts.as_ref().ok_or("recorded without facts about its machine")?;
        if facts.kernel_release.contains("simulated") {
            return Err("recorded from a simulated run");
        }
        let kernel = facts.kernel.ok_or("recorded from an unknown kernel")?;
        Ok(Workload { scenario, variant, kernel, facts })
    }
}

/// Reads a recording and returns the value that `make` builds from it; otherwise the reason why it is left out.
pub(crate) fn read<R: Sink<Error = Infallible> + Default, T>(
    path: &Path,
    make: impl FnOnce(R) -> Result<T, &'static str>,
) -> Result<T, String> {
    let mut recorded = R::default();
    let fold = |record| {
        let Ok(()) = recorded.record(&record);
        true
    };
    each(path, fold).map_err(|failure| format!("{failure}; skipped"))?;
    make(recorded).map_err(|why| format!("{}: {why}; skipped", shown(path)))
}

/// A scenario file with all its variants.
pub(crate) fn scenario(path: &Path) -> Result<ScenarioFile, Failure> {
    let name = shown(path);
    let limit = u64::try_from(TEXT_MAX).unwrap_or(u64::MAX).saturating_add(1);
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(limit).read_to_end(&mut bytes))
        .map_err(|error| Failure::input(format!("cannot read {name}: {error}")))?;
    let text = String::from_utf8(bytes).map_err(|_| Failure::input(format!("{name} is not UTF-8 text")))?;
    ScenarioFile::parse(&text).map_err(|error| Failure::input(format!("{name}: {error}")))
}

/// The recordings that an argument stands for.
pub(crate) fn files(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    let unreadable = |error| Failure::input(format!("cannot read {}: {error}", shown(path)));
    if !std::fs::metadata(path).map_err(unreadable)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let entries = std::fs::read_dir(path).map_err(unreadable)?.flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|extension| extension == "flr")).collect();
    files.sort();
    Ok(files)
}
