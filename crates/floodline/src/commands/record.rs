// SPDX-License-Identifier: MIT OR Apache-2.0
//! `floodline record -o FILE`: writes what the machine does to a recording until the time is up,
//! a signal asks to end, or the file cannot be written. The samples recorded until then are complete.

use super::Run;
use crate::console::{Console, Progress};
use crate::error::CliError;
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::live::{EVERY, Host, StatReads, Tracing};
use crate::observe::{Schedule, observe, parse_duration, parse_interval};
use crate::output::{self, Existing, failed};
use crate::redaction::Redaction;
use floodline_host::Needs;
use floodline_record::human;
use floodline_record::record::{Record, Sink};
use floodline_record::recording::{Encoder, Header};
use floodline_record::redact::Redactor;
use floodline_record::sample::Sample;
use floodline_record::units::Nanos;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Record this machine's writeback activity to a file
#[derive(clap::Parser)]
#[command(
    name = "record",
    after_help = "Ends after --for, at Ctrl-C, or when the file cannot be written. A recording is readable up to \
        its last complete sample, even after kill -9 or a full disk.\n\n\
        Examples:\n  \
        floodline record --for 10m -o host.flr\n  \
        floodline record --every 5s -o - | ssh backup 'cat > host.flr'\n  \
        ssh db1 sudo floodline record --for 60s -o - > db1.flr\n  \
        floodline record --for 60s --redact @redact.key -o host.flr"
)]
pub(crate) struct RecordCommand {
    /// File to write; - is standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Duration of the recording, e.g. 10m [default: until Ctrl-C]
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_duration)]
    length: Option<Duration>,
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = parse_interval, help = EVERY)]
    every: Duration,
    #[command(flatten)]
    reads: StatReads,
    #[command(flatten)]
    tracing: Tracing,
    /// Record a captured tree instead of this machine
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Overwrite the file if it exists
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    redaction: Redaction,
}

impl Run for RecordCommand {
    fn run(self, console: &mut Console) -> Result<Exit, CliError> {
        let redactor = self.redaction.redactor()?;
        let interrupt = Interrupt::watch()?;
        let mut host = Host::open(self.root.as_deref())?;
        let schedule = Schedule { length: self.length, every: self.every };
        let tracer = host.tracer(self.tracing, schedule)?;
        let mut recorder =
            Recorder::start(&self.output, Existing::by_force(self.force), self.every)?.redacted(redactor);
        let mut progress = console.progress();
        let ended = observe(schedule, &interrupt, host.looks(Needs::ALL, self.reads, tracer), |record| {
            recorder.record(record)?;
            if let Record::Sample(sample) = record {
                recorder.tell(&mut progress, sample);
            }
            Ok(())
        });
        drop(progress);
        match ended {
            Ok(_) => {
                let done = recorder.finish()?;
                console.note(&done);
                Ok(Exit::Done)
            }
            Err(error) => Err(error),
        }
    }
}

/// A recording being written.
pub(crate) struct Recorder {
    encoder: Encoder<File>,
    redactor: Option<Redactor>,
    target: String,
    /// Whether the target is a file, whose torn end can be cut off.
    is_file: bool,
}

impl Recorder {
    /// Starts a recording; `-` is standard output.
    pub(crate) fn start(
        path: &Path,
        existing: Existing,
        every: impl Into<Option<Duration>>,
    ) -> Result<Recorder, CliError> {
        let is_file = !output::is_standard(path);
        let (file, target) = (output::open(path, existing)?, output::called(path));
        let every = every.into().and_then(|every| u64::try_from(every.as_nanos()).ok()).map(Nanos);
        let encoder = Encoder::new(file, Header::new(every)).map_err(|error| {
            if is_file && existing != Existing::Replace && fs::metadata(path).is_ok_and(|file| file.is_file()) {
                // A file of ours in which nothing can be: the next try shall not find that it exists.
                let _ = fs::remove_file(path);
            }
            failed(&target, &error)
        })?;
        Ok(Recorder { encoder, redactor: None, target, is_file })
    }

    /// With a redactor no name is written.
    pub(crate) fn redacted(self, redactor: Option<Redactor>) -> Recorder {
        Recorder { redactor, ..self }
    }

    /// Adds a record. After an error nothing can follow, and what was written before is whole.
    pub(crate) fn record(&mut self, record: &Record) -> Result<(), CliError> {
        let recorded = match &self.redactor {
            Some(redactor) => self.encoder.record(&redactor.record(record)),
            None => self.encoder.record(record),
        };
        let Err(error) = recorded else { return Ok(()) };
        let samples = self.encoder.samples();
        if self.is_file {
            // What is left of a torn frame would only be reported as cut; the disk may be full, so a
            // refusal here changes nothing.
            let _ = self.encoder.get_ref().set_len(self.encoder.written());
        }
        let samples = human::plural(samples, "sample", "samples");
        Err(failed(&self.target, &error)
            .had_written(&samples)
            .hint(format!("{} contains {samples}, all complete", self.target)))
    }

    /// Ends the recording and prints a summary.
    pub(crate) fn finish(self) -> Result<String, CliError> {
        let (samples, target) = (self.encoder.samples(), self.target);
        let bytes = self.encoder.written();
        let samples = human::plural(samples, "sample", "samples");
        self.encoder.finish().map_err(|error| failed(&target, &error).had_written(&samples))?;
        Ok(format!("recorded {samples} to {target} ({})", human::bytes(bytes as f64)))
    }

    fn tell(&self, progress: &mut Progress, sample: &Sample) {
        progress.tell(|| {
            format!(
                "{}, {}, {}, dirty {}",
                human::plural(self.encoder.samples(), "sample", "samples"),
                human::plural(sample.cgroups.rows().len() as u64, "cgroup", "cgroups"),
                human::bytes(self.encoder.written() as f64),
                sample.host.mem_dirty.map_or("unknown".to_owned(), |dirty| human::bytes(dirty.0 as f64)),
            )
        });
    }
}
