// SPDX-License-Identifier: MIT OR Apache-2.0
//! `floodline lab …`: scenarios on real kernels in throw-away virtual machines. Never needs root, and
//! never touches this host's cgroups, settings or mounts.

mod advise;
mod bisect;
pub(super) mod execute;
mod kernels;
mod matrix;
mod progress;
mod run;
mod shell;
mod terminal;

use super::Run;
use crate::console::Console;
use crate::error::CliError;
use crate::exit::Exit;
use crate::guest;

/// Run scenarios on real kernels, in throw-away virtual machines
#[derive(clap::Parser)]
#[command(name = "lab")]
pub(crate) struct Lab {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand)]
enum Verb {
    Run(run::RunScenario),
    Matrix(matrix::Matrix),
    Advise(advise::Advise),
    Bisect(bisect::Bisect),
    Shell(shell::ShellCommand),
    Kernels(kernels::Kernels),
    /// Run one task for the lab, in a guest
    #[command(hide = true)]
    Worker,
}

impl Run for Lab {
    fn run(self, console: &mut Console) -> Result<Exit, CliError> {
        match self.verb {
            Verb::Run(run) => run.run(console),
            Verb::Matrix(matrix) => matrix.run(console),
            Verb::Advise(advise) => advise.run(console),
            Verb::Bisect(bisect) => bisect.run(console),
            Verb::Shell(shell) => shell.run(console),
            Verb::Kernels(kernels) => kernels.run(console),
            Verb::Worker => guest::worker(),
        }
    }
}
