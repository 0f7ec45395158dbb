// SPDX-License-Identifier: MIT OR Apache-2.0
//! `floodline twin FILE`: a scenario made from a recording, held against that recording at once. Wiring only: the twin is
//! made by `floodline_twin`.

use super::Run;
use crate::asked::modelled;
use crate::console::{Console, Format};
use crate::error::CliError;
use crate::exit::Exit;
use crate::input::shown;
use crate::output::{self, Existing, called, is_standard};
use crate::twins::Threads;
use crate::whole;
use floodline_record::human;
use floodline_twin::backtest::test;
use floodline_twin::{Options, TwinError, of, scenario_to_toml};
use floodline_view::twin as view;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Make a scenario from a recording, which the model and the lab can run
#[derive(clap::Parser)]
#[command(
    name = "twin",
    after_help = "The twin runs once under the unchanged settings and is compared with its recording. A figure that \
        misses by more than 25 % is marked. Each key of the file has a comment that says where it comes from: measured, \
        derived or assumed.\n\n\
        Examples:\n  \
        floodline record --for 1m --trace on -o host.flr\n  \
        floodline twin host.flr -o twin.toml\n  \
        floodline simulate twin.toml --kernel 6.12 --set vm.dirty_bytes=64M\n  \
        floodline twin host.flr --format json | jq '.twins[].median_off_share'"
)]
pub(crate) struct TwinCommand {
    /// Recording; - is standard input
    file: PathBuf,
    /// Scenario file to write; - is standard output, with the summary on standard error
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Overwrite the output file if it exists
    #[arg(long, requires = "output")]
    force: bool,
    /// What paces the writers of the scenario file, if nothing was traced [default: the one nearer to the recording]
    #[arg(long, value_enum)]
    demand: Option<Demand>,
    /// Kernel version to model [default: that of the recording]
    #[arg(long, value_name = "VERSION")]
    kernel: Option<String>,
    /// Also print the figures within 25 %
    #[arg(long)]
    details: bool,
    /// Output format of the summary
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Which of two twins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Demand {
    /// A clock: each write begins at its recorded time
    Open,
    /// The previous write: each write begins when the previous one and the work after it have ended
    Closed,
}

impl Run for TwinCommand {
    fn run(self, console: &mut Console) -> Result<Exit, CliError> {
        let kernel = self.kernel.as_deref().map(|text| modelled(text, Some(console))).transpose()?;
        // Found out before the work, not after it.
        self.output.as_deref().map_or(Ok(()), |path| output::refuse_existing(path, self.force))?;
        let recorded = crate::twins::read(&self.file)?;
        let is_piped = self.output.as_deref().is_some_and(is_standard);
        let twin = of(&recorded, &Options { kernel }).map_err(|error| refused(&self.file, &error))?;
        let tested = test(&recorded, &twin, &mut Threads { progress: None });
        if let Some(path) = &self.output {
            let wanted = self.demand.map(|demand| match demand {
                Demand::Open => "open",
                Demand::Closed => "closed",
            });
            let other = twin.demand.other().filter(|(word, _)| wanted == Some(*word));
            let scenario = other.map_or(&twin.scenario, |(_, other)| other);
            let text = scenario_to_toml(&twin, scenario).map_err(|error| refused(&self.file, &error))?;
            if is_piped {
                console.print(&text)?;
                console.leave_standard_output();
            } else {
                let (mut file, pending) = whole::create(path, Existing::by_force(self.force))?;
                file.write_all(text.as_bytes()).map_err(|error| CliError::write(&called(path), &error))?;
                pending.commit()?;
            }
        }
        console.print(&match self.format {
            Format::Text => view::text(&twin, &tested, console.width(), self.details),
            Format::Json => view::json(&twin, &tested).map_err(CliError::bug)?,
        })?;
        if let Some(path) = self.output.as_ref().filter(|_| !is_piped) {
            let (path, kernel) = (human::quoted(&shown(path).to_string()), twin.kernel);
            console.note(&format!("wrote {path}; run it with: floodline simulate {path} --kernel {kernel}"));
        }
        if self.output.is_none() && !is_standard(&self.file) && matches!(self.format, Format::Text) {
            let file = human::quoted(&shown(&self.file).to_string());
            console.note(&format!("nothing was saved; save it with: floodline twin {file} -o twin.toml"));
        }
        Ok(Exit::Done)
    }
}

/// Why a recording has no twin, with what to type next.
pub(crate) fn refused(path: &Path, error: &TwinError) -> CliError {
    let told = CliError::usage(format!("{}: {error}", shown(path)));
    match error.hint() {
        Some(hint) => told.hint(hint),
        None => told,
    }
}
