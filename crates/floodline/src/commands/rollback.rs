// SPDX-License-Identifier: MIT OR Apache-2.0
//! `floodline rollback [ID]`: puts the old values of a change back.

use super::Run;
use crate::console::{Console, Format};
use crate::error::CliError;
use crate::exit::Exit;
use crate::tuning::{SiteArgs, parse_id, tell_settled};
use floodline_tune::rollback::rollback;
use floodline_view::change as view;

/// Undo a change, confirmed or not
#[derive(clap::Parser)]
#[command(
    name = "rollback",
    after_help = "Puts back the values that were in force before the change, and removes the files that the change wrote. \
        A value or file that another program has changed since is reported and stays as it is. Limits are lowered in \
        steps.\n\n\
        Examples:\n  \
        floodline rollback\n  \
        floodline rollback 12"
)]
pub(crate) struct Rollback {
    /// Number of the change [default: the last one in force]
    #[arg(value_parser = parse_id)]
    id: Option<u32>,
    #[command(flatten)]
    site: SiteArgs,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl Run for Rollback {
    fn run(self, console: &mut Console) -> Result<Exit, CliError> {
        let site = self.site.site()?;
        let settled = site.settle_if_free()?;
        tell_settled(console, &settled);
        // What was left by a crash and is finished now is what the person asked for.
        let finished = settled.iter().find(|one| self.id.is_none_or(|id| id == one.id));
        let done = match finished {
            Some(one) => view::RolledBack { schema: view::ROLLED_BACK, id: one.id, text: one.text.clone() },
            None => {
                let done = rollback(&site, self.id)?;
                view::RolledBack { schema: view::ROLLED_BACK, id: done.id, text: done.text }
            }
        };
        match self.format {
            Format::Text => console.print(&view::rolled_back(&done))?,
            Format::Json => console.print(&view::json(&done).map_err(CliError::bug)?)?,
        }
        Ok(Exit::Done)
    }
}
