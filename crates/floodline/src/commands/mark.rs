// SPDX-License-Identifier: MIT OR Apache-2.0
//! `floodline mark [TEXT]`: asks a running `serve` to keep the minute before and the minute after now.

use super::Run;
use super::serve::failed;
use crate::console::{Console, Format};
use crate::error::CliError;
use crate::exit::Exit;
use crate::input::shown;
use floodline_view::incidents;
use std::path::PathBuf;

/// Folder of the ring that the packages set up.
pub(crate) const RING: &str = "/var/lib/floodline";

/// Keep the minute before and after now as an incident
#[derive(clap::Parser)]
#[command(
    name = "mark",
    after_help = "Needs floodline serve to run with the same --ring. The minute before is on the disk when the command \
        returns. The recording is complete a minute later.\n\n\
        Examples:\n  \
        floodline mark \"checkout is slow\"\n  \
        floodline mark --ring /srv/floodline"
)]
pub(crate) struct MarkCommand {
    /// What was noticed; at most 200 characters are kept
    #[arg(default_value = "")]
    text: String,
    /// Folder of the flight recorder
    #[arg(long, value_name = "DIR", default_value = RING)]
    ring: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl Run for MarkCommand {
    fn run(self, console: &mut Console) -> Result<Exit, CliError> {
        let name = floodline_serve::mark(&self.ring, &self.text).map_err(failed)?;
        match self.format {
            Format::Text => {
                let file = self.ring.join(format!("{name}.flr"));
                console.print(&incidents::kept(&shown(&file).to_string()))?;
            }
            Format::Json => console.print(&incidents::marked(&name).map_err(CliError::bug)?)?,
        }
        Ok(Exit::Done)
    }
}
