// SPDX-License-Identifier: MIT OR Apache-2.0
//! `floodline doctor [FILE]`: observes this host, or reads a recording, and says what is wrong, on what
//! evidence, and what helps. Wiring only: the diagnosis is `floodline_core::diagnose`.

use super::Run;
use super::explain::named;
use crate::console::{Console, Format};
use crate::error::CliError;
use crate::exit::Exit;
use crate::input::Input;
use floodline_core::diagnose::diagnose;
use floodline_core::record::Sink;
use floodline_core::report::{Report, Severity};
use floodline_core::window::Window;
use floodline_view::{doctor, json};
use std::path::{Path, PathBuf};

/// Say why writes stall or storm, on what evidence, and what helps
#[derive(clap::Parser)]
#[command(
    name = "doctor",
    after_help = "Exit code 1 when something at or above --fail-on was found.\n\n\
        Examples:\n  \
        floodline doctor host.flr\n  \
        floodline doctor host.flr --rule dirty-cliff --format json | jq .findings"
)]
pub(crate) struct Doctor {
    /// Recording to read instead of observing this host; - is standard input
    file: PathBuf,
    /// Run only this rule; may be given again
    #[arg(long, value_name = "RULE")]
    rule: Vec<String>,
    /// Fail from findings of this severity on
    #[arg(long, value_name = "SEVERITY", value_enum, default_value_t)]
    fail_on: FailOn,
    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// From which severity on the exit code says so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum FailOn {
    /// Anything found
    Info,
    /// Harm that is likely
    #[default]
    Warning,
    /// Harm that was measured
    Critical,
    /// Nothing fails
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
        let rules = self.rule.iter().map(|name| named(name).map(|rule| rule.name)).collect::<Result<Vec<_>, _>>()?;
        let window = read(&self.file)?;
        if window.samples == 0 {
            return Err(CliError::usage("the recording holds no sample, so nothing can be said"));
        }
        let report = diagnose(&window, (!rules.is_empty()).then_some(&rules));
        match self.format {
            Format::Text => {
                let options = doctor::Options { width: console.width(), color: console.is_colored() };
                console.print(&doctor::render(&report, options))?;
            }
            Format::Json => console.print(&json::doctor(&report).map_err(CliError::bug)?)?,
        }
        Ok(self.fail_on.exit(&report))
    }
}

fn read(file: &Path) -> Result<Window, CliError> {
    let mut window = Window::default();
    Input::open(file)?.each(|record| {
        match window.record(&record) {
            Ok(()) => {}
        }
        Ok(true)
    })?;
    Ok(window)
}
