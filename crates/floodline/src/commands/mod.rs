// SPDX-License-Identifier: MIT OR Apache-2.0
//! The commands. To add one: a file beside this one, its `mod` line, and its place in [`COMMANDS`].

mod advise;
mod apply;
mod budget;
mod compare;
mod completions;
mod confirm;
pub(crate) mod doctor;
mod explain;
mod export;
mod history;
mod incidents;
mod kernels;
mod lab;
mod ledger;
mod mark;
mod predict;
mod preflight;
mod record;
mod replay;
mod report;
mod rollback;
pub(crate) mod scenario;
mod serve;
mod simulate;
mod snapshot;
mod sweep;
mod top;
pub(crate) mod twin;
mod verify;

use crate::console::Console;
use crate::error::CliError;
use crate::exit::Exit;
use clap::{ArgMatches, CommandFactory, FromArgMatches};

/// Every command, in the order of the help text.
pub(crate) static COMMANDS: &[Command] = &[
    Command::of::<doctor::Doctor>(),
    Command::of::<budget::Budget>(),
    Command::of::<top::Top>(),
    Command::of::<record::RecordCommand>(),
    Command::of::<snapshot::Snapshot>(),
    Command::of::<serve::ServeCommand>(),
    Command::of::<incidents::IncidentsCommand>(),
    Command::of::<mark::MarkCommand>(),
    Command::of::<replay::Replay>(),
    Command::of::<ledger::LedgerCommand>(),
    Command::of::<export::Export>(),
    Command::of::<compare::Compare>(),
    Command::of::<report::ReportCommand>(),
    Command::of::<apply::Apply>(),
    Command::of::<confirm::Confirm>(),
    Command::of::<rollback::Rollback>(),
    Command::of::<verify::Verify>(),
    Command::of::<history::History>(),
    Command::of::<explain::Explain>(),
    Command::of::<kernels::Kernels>(),
    Command::of::<scenario::ScenarioCommand>(),
    Command::of::<predict::Predict>(),
    Command::of::<preflight::Preflight>(),
    Command::of::<advise::Advise>(),
    Command::of::<simulate::Simulate>(),
    Command::of::<sweep::SweepCommand>(),
    Command::of::<twin::TwinCommand>(),
    Command::of::<lab::Lab>(),
    Command::of::<completions::Completions>(),
];

/// One command as the program sees it.
pub(crate) struct Command {
    /// Its arguments and help.
    pub(crate) build: fn() -> clap::Command,
    /// What it does.
    pub(crate) run: fn(&ArgMatches, &mut Console) -> Result<Exit, CliError>,
}

/// One command as its file defines it: a `clap::Parser` with a name, an `about`, and this.
pub(crate) trait Run: CommandFactory + FromArgMatches {
    /// Does it.
    fn run(self, console: &mut Console) -> Result<Exit, CliError>;
}

impl Command {
    const fn of<C: Run>() -> Command {
        Command { build: C::command, run: |matches, console| C::from_arg_matches(matches)?.run(console) }
    }
}

/// The command of a name.
pub(crate) fn find(name: &str) -> Option<&'static Command> {
    COMMANDS.iter().find(|command| (command.build)().get_name() == name)
}
