// SPDX-License-Identifier: MIT OR Apache-2.0
//! `floodline completions SHELL`: prints what a shell needs to complete our command lines.

use super::Run;
use crate::console::Console;
use crate::error::CliError;
use crate::exit::Exit;
use clap_complete::Shell;

/// Print shell completions
#[derive(clap::Parser)]
#[command(
    name = "completions",
    after_help = "Example:\n  mkdir -p ~/.local/share/bash-completion/completions\n  floodline completions bash \\\n    > ~/.local/share/bash-completion/completions/floodline"
)]
pub(crate) struct Completions {
    /// The shell to complete for
    shell: Shell,
}

impl Run for Completions {
    fn run(self, console: &mut Console) -> Result<Exit, CliError> {
        let mut text = Vec::new();
        clap_complete::generate(self.shell, &mut crate::arguments(), "floodline", &mut text);
        console.print(&String::from_utf8_lossy(&text))?;
        Ok(Exit::Done)
    }
}
