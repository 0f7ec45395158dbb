// SPDX-License-Identifier: MIT OR Apache-2.0
//! `floodline confirm [ID]`: keeps a change that waits for it.

use super::Run;
use crate::console::{Console, Format};
use crate::error::CliError;
use crate::exit::Exit;
use crate::tuning::{SiteArgs, parse_id, tell_settled};
use floodline_tune::confirm::confirm;
use floodline_view::change as view;

/// Keep the change that floodline apply made
#[derive(clap::Parser)]
#[command(
    name = "confirm",
    after_help = "Succeeds only if the guard of the change answers with its receipt. Run it from a new login: that \
        proves that the host still accepts logins. Files that set the change at boot are written now, if floodline \
        apply was started with --persist.\n\n\
        Examples:\n  \
        floodline confirm\n  \
        floodline confirm 12"
)]
pub(crate) struct Confirm {
    /// Number of the change [default: the one that waits]
    #[arg(value_parser = parse_id)]
    id: Option<u32>,
    /// Accept a confirmation from the login that applied the change
    #[arg(long)]
    same_login: bool,
    #[command(flatten)]
    site: SiteArgs,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl Run for Confirm {
    fn run(self, console: &mut Console) -> Result<Exit, CliError> {
        let site = self.site.site()?;
        tell_settled(console, &site.settle_if_free()?);
        let confirmed = confirm(&site, self.id, self.same_login)?;
        if let Some(why) = &confirmed.not_persisted {
            console.note(&format!("the change is in force, and a reboot ends it: {why}"));
        }
        let answer = view::Confirmed {
            schema: view::CONFIRMED,
            id: confirmed.id,
            set: confirmed.set,
            files: confirmed.files,
            not_persisted: confirmed.not_persisted,
        };
        match self.format {
            Format::Text => console.print(&view::confirmed(&answer))?,
            Format::Json => console.print(&view::json(&answer).map_err(CliError::bug)?)?,
        }
        Ok(Exit::Done)
    }
}
