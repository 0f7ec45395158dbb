// SPDX-License-Identifier: MIT OR Apache-2.0
//! `floodline history`: every change that was made on this host, by whom, and what became of it.

use super::Run;
use crate::console::{Console, Format};
use crate::error::CliError;
use crate::exit::Exit;
use crate::tuning::{SiteArgs, tell_settled};
use floodline_tune::journal::{Entry, Journal, Phase};
use floodline_tune::rollback::because;
use floodline_view::change as view;

/// List the changes that floodline made on this host
#[derive(clap::Parser)]
#[command(
    name = "history",
    after_help = "Each change is a file in /var/lib/floodline/journal. Each entry has a hash of the entries before it, so \
        that an altered entry is detected.\n\n\
        Examples:\n  \
        floodline history\n  \
        floodline history --format json | jq '.changes[].state'"
)]
pub(crate) struct History {
    #[command(flatten)]
    site: SiteArgs,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl Run for History {
    fn run(self, console: &mut Console) -> Result<Exit, CliError> {
        let site = self.site.site()?;
        tell_settled(console, &site.settle_if_free()?);
        let journals = site.journals()?;
        let changes = journals.iter().map(|journal| {
            let is_guarded = journal.phase().is_pending() && site.is_guarded(journal.id);
            change(journal, is_guarded)
        });
        let history = view::History { schema: view::HISTORY, changes: changes.collect() };
        match self.format {
            Format::Text => console.print(&view::history(&history))?,
            Format::Json => console.print(&view::json(&history).map_err(CliError::bug)?)?,
        }
        Ok(Exit::Done)
    }
}

fn change(journal: &Journal, is_guarded: bool) -> view::Change {
    let (state, why) = match journal.phase() {
        Phase::Writing => ("writing", None),
        Phase::Waiting => ("waiting", None),
        Phase::Confirmed => ("confirmed", None),
        Phase::Filing | Phase::Persisted => ("persisted", None),
        Phase::RollingBack => ("rolling_back", None),
        Phase::Ended(why) => ("put_back", Some(because(&why).to_owned())),
    };
    let took_ns = journal.entries.iter().rev().find_map(|dated| match dated.entry {
        Entry::PutBack { took_ns, .. } => took_ns,
        _ => None,
    });
    view::Change {
        id: journal.id,
        started_wall_ns: journal.entries.first().map_or(0, |dated| dated.wall_ns),
        by: journal.planned.who.shown(),
        state,
        why,
        is_guarded,
        set: journal.planned.slots.iter().map(|slot| (slot.old_shown(), slot.new_shown())).collect(),
        put_back_took_ns: took_ns,
        plan_sha256: journal.planned.plan_sha256.clone(),
    }
}
