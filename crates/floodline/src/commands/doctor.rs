// SPDX-License-Identifier: MIT OR Apache-2.0
//! `floodline doctor [FILE]`: observes this host, or reads a recording, and says what is wrong, on what
//! evidence, and what helps. Wiring only: the diagnosis is `floodline_analysis::diagnose`.

use super::Run;
use super::explain::named;
use super::incidents::newest;
use super::mark::RING;
use super::record::Recorder;
use crate::console::{Console, Format};
use crate::error::CliError;
use crate::exit::Exit;
use crate::input::{Input, no_sample, shown};
use crate::interrupt::Interrupt;
use crate::live::{EVERY, Host, StatReads, Tracing};
use crate::observe::{Schedule, observe, parse_duration, parse_interval};
use crate::output::{Existing, is_standard};
use crate::twins::{try_plan, try_plan_of_file};
use floodline_analysis::diagnose::stretches::Stretches;
use floodline_analysis::report::{Report, Severity};
use floodline_host::Needs;
use floodline_record::human;
use floodline_record::record::{Record, Sink};
use floodline_twin::trial::Kept;
use floodline_view::{capabilities, doctor, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Diagnose write stalls and write storms: cause, evidence and cure
#[derive(clap::Parser)]
#[command(
    name = "doctor",
    after_help = "Observes this host without changing it. Ctrl-C ends the observation early and diagnoses the \
        samples collected until then. --for 0s takes a single sample, which gives no rates. Use --for 1m to \
        see a full stall that is caused by the expiry of dirty data.\n\n\
        An observation longer than ten minutes is diagnosed in stretches, and the worst stretch is reported.\n\n\
        In the evidence of --details, measured is the value, against is the bound that the rule compares it with, \
        and from is its source.\n\n\
        Examples:\n  \
        floodline doctor\n  \
        floodline doctor --for 1m --save host.flr\n  \
        floodline doctor --capabilities\n  \
        floodline doctor last\n  \
        floodline doctor host.flr --rule dirty-cliff --format json | jq .findings"
)]
pub(crate) struct Doctor {
    /// Recording to read instead of observing this host; - is standard input, last is the newest incident
    #[arg(conflicts_with_all = ["root", "length", "every", "stat_every", "save", "trace", "trace_budget"])]
    file: Option<PathBuf>,
    /// Folder of the flight recorder, for: doctor last
    #[arg(long, value_name = "DIR", default_value = RING, requires = "file")]
    ring: PathBuf,
    /// Duration of the observation
    #[arg(long = "for", value_name = "DURATION", default_value = "10s", value_parser = parse_duration)]
    length: Duration,
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = parse_interval, help = EVERY)]
    every: Duration,
    #[command(flatten)]
    reads: StatReads,
    #[command(flatten)]
    tracing: Tracing,
    /// Read a captured tree instead of this machine
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Save the observation to this new file; - writes it to standard output and the diagnosis to standard error
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// List the sources that can be read here, and what each missing source leaves unchecked
    #[arg(long, conflicts_with_all = ["file", "length", "every", "stat_every", "save", "rule", "fail_on", "trace", "trace_budget"])]
    capabilities: bool,
    /// Also print the evidence with its sources, the causes ruled out and the sources not read
    #[arg(long)]
    details: bool,
    /// Run only this rule; may be repeated
    #[arg(long, value_name = "RULE")]
    rule: Vec<String>,
    /// Exit with code 1 if a finding is at least this severe
    #[arg(long, value_name = "SEVERITY", value_enum, default_value_t)]
    fail_on: FailOn,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// From which severity on the exit code says so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum FailOn {
    /// Every finding
    Info,
    /// Likely harm
    #[default]
    Warning,
    /// Measured harm
    Critical,
    /// Always exit with code 0 after a diagnosis
    Never,
}

impl FailOn {
    fn severity(self) -> Option<Severity> {
        match self {
            FailOn::Info => Some(Severity::Info),
            FailOn::Warning => Some(Severity::Warning),
            FailOn::Critical => Some(Severity::Critical),
            FailOn::Never => None,
        }
    }

    fn exit(self, report: &Report) -> Exit {
        let worst = report.findings.iter().map(|finding| finding.severity).max();
        match (self.severity(), worst) {
            (Some(limit), Some(worst)) if worst >= limit => Exit::Findings,
            _ => Exit::Done,
        }
    }
}

impl Run for Doctor {
    fn run(self, console: &mut Console) -> Result<Exit, CliError> {
        if self.capabilities {
            return self.print_capabilities(console);
        }
        let rules = self.rule.iter().map(|name| named(name).map(|rule| rule.name)).collect::<Result<Vec<_>, _>>()?;
        if self.save.as_deref().is_some_and(is_standard) {
            console.leave_standard_output();
        }
        let report = match &self.file {
            Some(file) => {
                let is_last = file == Path::new("last") && !file.exists();
                let file = if is_last { newest(&self.ring)? } else { file.clone() };
                if is_last {
                    console.note(&format!("the newest incident is {}", shown(&file)));
                }
                let mut report = read(&file, rules)?;
                try_plan_of_file(&mut report, &file);
                report
            }
            None => self.observe(console, rules)?,
        };
        match self.format {
            Format::Text => {
                let (width, rows) = (console.width(), console.rows());
                let (color, is_live) = (console.is_colored(), self.file.is_none());
                let options = doctor::Options { width, rows, color, details: self.details, is_live };
                console.print(&doctor::render(&report, options))?;
            }
            Format::Json => console.print(&json::doctor(&report).map_err(CliError::bug)?)?,
        }
        Ok(self.fail_on.exit(&report))
    }
}

impl Doctor {
    fn print_capabilities(&self, console: &mut Console) -> Result<Exit, CliError> {
        let report = Host::open(self.root.as_deref())?.capabilities();
        match self.format {
            Format::Text => console.print(&capabilities::render(&report, console.width()))?,
            Format::Json => console.print(&capabilities::json(&report).map_err(CliError::bug)?)?,
        }
        Ok(Exit::Done)
    }

    /// Observes the machine, keeps the samples where wanted, and diagnoses them. A recording that cannot be
    /// continued costs a remark, not the diagnosis.
    fn observe(&self, console: &Console, rules: Vec<&'static str>) -> Result<Report, CliError> {
        let interrupt = Interrupt::watch()?;
        let mut host = Host::open(self.root.as_deref())?;
        let mut recorder = match &self.save {
            Some(path) => Some(Recorder::start(path, Existing::KeepAlways, self.every)?),
            None => None,
        };
        let mut stretches = Stretches::new(rules);
        let mut kept = Kept::live();
        let mut progress = console.progress();
        // A captured tree stands still: further looks would show the same.
        let length = if self.root.is_some() { Duration::ZERO } else { self.length };
        let schedule = Schedule { length: Some(length), every: self.every };
        let tracer = host.tracer(self.tracing, schedule)?;
        observe(schedule, &interrupt, host.looks(Needs::ALL, self.reads, tracer), |record| {
            if let Some(error) = recorder.as_mut().and_then(|recorder| recorder.record(record).err()) {
                error.report();
                recorder = None;
            }
            fold(&mut stretches, record);
            kept.record(record);
            if matches!(record, Record::Sample(_)) {
                progress.tell(|| progress_line(&stretches, length));
            }
            Ok(())
        })?;
        drop(progress);
        if let Some(recorder) = recorder {
            console.note(&recorder.finish()?);
        }
        let mut report = stretches.finish();
        try_plan(&mut report, Some(kept));
        Ok(report)
    }
}

fn progress_line(stretches: &Stretches, length: Duration) -> String {
    format!(
        "of {}, {}, Ctrl-C diagnoses them now",
        human::seconds(length.as_secs_f64()),
        human::plural(stretches.samples(), "sample", "samples")
    )
}

/// The report of a recording, before its plan is tried on a twin.
pub(crate) fn read(file: &Path, rules: Vec<&'static str>) -> Result<Report, CliError> {
    let mut stretches = Stretches::new(rules);
    Input::open(file)?.fold(&mut stretches)?;
    if stretches.samples() == 0 {
        return Err(no_sample(file));
    }
    Ok(stretches.finish())
}

fn fold(stretches: &mut Stretches, record: &Record) {
    match stretches.record(record) {
        Ok(()) => {}
    }
}
