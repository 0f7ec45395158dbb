// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recordings as input: a file or standard input, record by record. What a file lacks (it was cut,
//! damaged, or written by a newer version) is said once, on standard error, and the rest is used. And the text of
//! scenario files.

use crate::error::CliError;
use crate::stderr::tell;
use floodline_record::gap::{Cause, Gap, Source};
use floodline_record::human;
use floodline_record::name::Name;
use floodline_record::nearest::nearest;
use floodline_record::record::{Event, Record, Sink, What};
use floodline_record::recording::{Cut, DecodeError, Decoder, Why};
use floodline_record::units::Nanos;
use floodline_scenario::TEXT_MAX;
use floodline_scenario::shipped;
use std::convert::Infallible;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// What to type when there is nothing to read.
const HOW_TO_RECORD: &str = "make a recording with: floodline record --for 1m -o FILE.flr";

/// What to do when bytes have changed since they were written.
const COPY_AGAIN: &str = "copy the file again from the host where it was recorded, in binary mode";

/// A path as it is shown: its bytes may be anything.
pub(crate) fn shown(path: &Path) -> Name {
    Name::new(path.as_os_str().as_bytes())
}

/// Folds a whole recording. `samples` counts the samples of what it became: without one there is nothing to say.
pub(crate) fn folded<S: Sink<Error = Infallible> + Default>(
    path: &Path,
    samples: impl Fn(&S) -> u64,
) -> Result<S, CliError> {
    let mut folded = S::default();
    Input::open(path)?.fold(&mut folded)?;
    match samples(&folded) {
        0 => Err(no_sample(path)),
        _ => Ok(folded),
    }
}

/// A recording without a sample cannot answer anything.
pub(crate) fn no_sample(path: &Path) -> CliError {
    CliError::usage(format!("{} contains no complete sample; nothing to diagnose", name(path))).hint(HOW_TO_RECORD)
}

fn name(path: &Path) -> String {
    if path == Path::new("-") { "standard input".to_owned() } else { shown(path).to_string() }
}

/// The text of a scenario file, of which no more is read than a scenario may have.
pub(crate) fn scenario_text(path: &Path) -> Result<String, CliError> {
    let name = shown(path);
    let limit = u64::try_from(TEXT_MAX).unwrap_or(u64::MAX).saturating_add(1);
    let mut bytes = Vec::new();
    if let Some(text) = shipped::text(path).filter(|_| !path.exists()) {
        return Ok(text.to_owned());
    }
    File::open(path).and_then(|file| file.take(limit).read_to_end(&mut bytes)).map_err(|error| {
        let told = CliError::usage(format!("cannot read {name}: {error}"));
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        match nearest(&stem, shipped::names()) {
            Some(near) => told.hint(format!("a scenario of this program: {near}")),
            None => told.hint("floodline scenario list shows the scenarios of this program"),
        }
    })?;
    String::from_utf8(bytes).map_err(|_| CliError::usage(format!("{name} is not UTF-8 text")))
}

/// A recording being read.
pub(crate) struct Input {
    decoder: Decoder<Box<dyn Read>>,
    name: String,
}

impl Input {
    /// Opens a recording; `-` is standard input.
    pub(crate) fn open(path: &Path) -> Result<Input, CliError> {
        let name = name(path);
        let reader: Box<dyn Read> = if path == Path::new("-") {
            Box::new(io::stdin().lock())
        } else {
            if path.is_dir() {
                return Err(is_folder(path));
            }
            let file = File::open(path).map_err(|error| not_opened(path, &error))?;
            Box::new(BufReader::with_capacity(1 << 16, file))
        };
        let decoder = Decoder::new(reader).map_err(|error| {
            let told = CliError::usage(format!("{name}: {error}"));
            match error {
                // The message names the version that reads it.
                DecodeError::NewerFormat { .. } => told,
                DecodeError::DamagedStart | DecodeError::DamagedHeader => told.hint(COPY_AGAIN).hint(HOW_TO_RECORD),
                _ => told.hint(HOW_TO_RECORD),
            }
        })?;
        Ok(Input { decoder, name })
    }

    /// Time between two samples, where the recorder had a schedule.
    pub(crate) fn every(&self) -> Option<Nanos> {
        self.decoder.header().every_ns
    }

    /// Hands every record on; `take` answers false to stop early. Ends with what was missing.
    pub(crate) fn each(mut self, take: impl FnMut(Record) -> Result<bool, CliError>) -> Result<(), CliError> {
        if self.visit(take)? {
            self.tell_what_is_missing();
        }
        Ok(())
    }

    /// Folds all records, and ends with what was missing, as records and on standard error. The records are lent: faster than
    /// [`Input::each`].
    pub(crate) fn fold(mut self, into: &mut impl Sink<Error = Infallible>) -> Result<(), CliError> {
        let folded = self.decoder.lend(|record| {
            let Ok(()) = into.record(record);
            ControlFlow::Continue(())
        });
        folded.map_err(|error| CliError::usage(format!("{}: {error}", self.name)))?;
        for record in &self.lost_records() {
            let Ok(()) = into.record(record);
        }
        self.tell_what_is_missing();
        Ok(())
    }

    /// Passes on each record until `take` answers false; returns whether it never did. Reports nothing.
    pub(crate) fn visit(&mut self, mut take: impl FnMut(Record) -> Result<bool, CliError>) -> Result<bool, CliError> {
        for record in self.decoder.by_ref() {
            let record = record.map_err(|error| CliError::usage(format!("{}: {error}", self.name)))?;
            if !take(record)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether nothing of what was read so far was damaged or unknown.
    pub(crate) fn is_whole(&self) -> bool {
        self.decoder.unknown_records() == 0 && !self.decoder.cuts().iter().any(is_worth_telling)
    }

    /// What was damaged or unknown, as gaps of a recording that is made from this one.
    pub(crate) fn losses(&self) -> Vec<Gap> {
        let unknown = Some(self.decoder.unknown_records()).filter(|count| *count > 0);
        let unknown =
            unknown.map(|count| format!("{count} records of kinds that only a newer version supports were dropped"));
        let cuts = self.decoder.cuts().iter().filter(|cut| is_worth_telling(cut)).map(ToString::to_string);
        cuts.chain(unknown).map(lost).collect()
    }

    /// What the recorded time lost to damage, as a recorder would have recorded it: a gap, and the number of samples that are missing.
    /// What stands after the end of a recording is none of it.
    fn lost_records(&self) -> Vec<Record> {
        let cuts = || self.decoder.cuts().iter().filter(|cut| is_worth_telling(cut) && cut.why != Why::AfterEnd);
        let missed = cuts().filter_map(|cut| {
            let samples = cut.samples.filter(|samples| *samples > 0)?;
            let at = cut.after.map_or(Nanos(0), |after| after.monotonic);
            Some(Record::Event(Event { at, what: What::Missed { samples } }))
        });
        missed.chain(cuts().map(|cut| Record::Gap(lost(cut.to_string())))).collect()
    }

    /// Lends each record until `take` breaks, and then what was missing as records. Reports nothing.
    pub(crate) fn quietly(mut self, mut take: impl FnMut(&Record) -> ControlFlow<()>) -> Result<(), CliError> {
        let lent = self.decoder.lend(&mut take);
        let is_at_end = lent.map_err(|error| CliError::usage(format!("{}: {error}", self.name)))?;
        for record in self.lost_records().iter().filter(|_| is_at_end) {
            if take(record).is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Reports what was damaged or unknown.
    pub(crate) fn tell_what_is_missing(&self) {
        for cut in self.decoder.cuts().iter().filter(|cut| is_worth_telling(cut)) {
            tell(format_args!("floodline: {}: {cut}", self.name));
        }
        if self.decoder.unknown_records() > 0 {
            tell(format_args!(
                "floodline: {}: skipped {} records of kinds that only a newer version supports",
                self.name,
                self.decoder.unknown_records()
            ));
        }
    }
}

/// A folder where a recording is wanted.
fn is_folder(folder: &Path) -> CliError {
    let name = shown(folder);
    let told = CliError::usage(format!("{name} is a folder, not a recording"));
    let names = match recordings_in(folder) {
        Ok(names) => names,
        Err(error) => return not_opened(folder, &error),
    };
    match names.first() {
        Some(first) => {
            let quoted = |path: &Path| human::quoted(&shown(path).to_string());
            told.hint(format!("name one of its recordings, such as {}", quoted(&folder.join(first))))
                .hint(format!("judge a change for all of them: floodline preflight {} --cgroup v2", quoted(folder)))
        }
        None => told.hint(format!("it contains no recording (FILE.flr); {HOW_TO_RECORD}")),
    }
}

/// A recording that cannot be opened, with what to type next.
fn not_opened(path: &Path, error: &io::Error) -> CliError {
    let name = shown(path);
    let told = CliError::usage(format!("cannot open {name}: {error}"));
    if error.kind() == io::ErrorKind::PermissionDenied {
        let told = told.hint("read it as root: put sudo before the command");
        // Where its folder may not be searched, the mode of the file changes nothing.
        return match path.is_file() {
            true => told.hint(format!("or let all users read it: sudo chmod a+r {}", human::quoted(&name.to_string()))),
            false => told,
        };
    }
    match neighbour(path) {
        Some(near) => told.hint(format!("did you mean {near}?")),
        None => told.hint(HOW_TO_RECORD),
    }
}

/// Files of a folder that are looked at for a mistyped name.
const NEIGHBOURS_MAX: usize = 1000;

/// Names of the recordings of a folder, in order. Of a large folder, some of them.
fn recordings_in(folder: &Path) -> io::Result<Vec<String>> {
    let entries = std::fs::read_dir(folder)?.flatten().take(NEIGHBOURS_MAX);
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut recordings: Vec<String> = names.filter(|name| name.ends_with(".flr")).collect();
    recordings.sort_unstable();
    Ok(recordings)
}

/// The recording beside a path that does not exist whose name is nearest to it.
pub(crate) fn neighbour(path: &Path) -> Option<String> {
    if path.exists() {
        return None;
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let recordings = recordings_in(folder.unwrap_or(Path::new("."))).ok()?;
    let near = nearest(path.file_name()?.to_str()?, recordings.iter().map(String::as_str))?;
    Some(Name::new(folder.map_or_else(|| near.into(), |folder| folder.join(near)).as_os_str().as_bytes()).to_string())
}

/// A part of a recording that was lost.
fn lost(what: String) -> Gap {
    Gap::new(Source::Recording, Cause::SamplesMissing { what: what.into() })
}

/// A recorder that was killed between two samples lost nothing.
fn is_worth_telling(cut: &Cut) -> bool {
    cut.why != Why::NotClosed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_may_not_be_read_has_a_command_that_helps() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a b.flr");
        std::fs::write(&file, "").unwrap();
        let denied = io::Error::from(io::ErrorKind::PermissionDenied);
        let check = |path: &Path, expect: &[String]| assert_eq!(not_opened(path, &denied).hints(), expect);
        let sudo = "read it as root: put sudo before the command".to_owned();
        check(&file, &[sudo.clone(), format!("or let all users read it: sudo chmod a+r '{}'", file.display())]);
        check(&folder.path().join("absent/a.flr"), &[sudo]);
    }
}
