// SPDX-License-Identifier: MIT OR Apache-2.0
//! `floodline kernels [FROM [TO]]`: what changed for writeback in which kernel. Reads a table only; nothing of this host.

use super::Run;
use crate::console::{Console, Format};
use crate::error::CliError;
use crate::exit::Exit;
use floodline_kernel::{Release, difference};
use floodline_record::name::Name;
use floodline_view::kernels;

/// Show what changes for writeback between two kernels
#[derive(clap::Parser)]
#[command(
    name = "kernels",
    after_help = "A kernel is a series (6.12), a release (6.12.43), or what uname -r prints (6.1.0-28-amd64).\n\n\
        Examples:\n  \
        floodline kernels 5.10 6.12\n  \
        floodline kernels $(uname -r) 6.18 --details\n  \
        floodline kernels 6.12.43"
)]
pub(crate) struct Kernels {
    /// Kernel before the move. Without it, every known release is listed
    from: Option<String>,
    /// Kernel after the move. Without it, the changes of FROM itself are shown
    to: Option<String>,
    /// Show small changes and commits too
    #[arg(long)]
    details: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl Run for Kernels {
    fn run(self, console: &mut Console) -> Result<Exit, CliError> {
        let from = self.from.as_deref().map(release).transpose()?;
        let to = self.to.as_deref().map(release).transpose()?;
        let width = console.width();
        let text = match (self.format, from, to) {
            (Format::Text, Some(from), Some(to)) => kernels::page(&difference(&from, &to), self.details, width),
            (Format::Json, Some(from), Some(to)) => kernels::json(&difference(&from, &to)).map_err(CliError::bug)?,
            (Format::Text, one, _) => kernels::list(one.as_ref(), self.details, width),
            (Format::Json, one, _) => kernels::list_json(one.as_ref()).map_err(CliError::bug)?,
        };
        console.print(&text)?;
        Ok(Exit::Done)
    }
}

/// Returns the kernel of a name, or an error with the reason why it is not one.
fn release(text: &str) -> Result<Release, CliError> {
    Release::parse(text).map_err(|error| {
        CliError::usage(format!("{:?}: {error}", Name::from(text))).hint("floodline kernels lists the known releases")
    })
}
