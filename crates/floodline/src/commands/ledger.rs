// SPDX-License-Identifier: MIT OR Apache-2.0
//! `floodline ledger FILE`: where the bytes came from and went to, from a traced recording. Wiring only:
//! the adding up is `floodline_analysis::ledger`.

use super::Run;
use crate::console::{Console, Format};
use crate::error::CliError;
use crate::exit::Exit;
use crate::input::{folded, shown};
use floodline_analysis::ledger;
use floodline_record::window::Window;
use floodline_view::ledger as view;
use std::path::PathBuf;

/// Show which process wrote which bytes, where the bytes went, and which tasks waited
#[derive(clap::Parser)]
#[command(
    name = "ledger",
    after_help = "Needs a recording made with the tracer (record --trace on). Application bytes were passed to \
        write calls. Dirtied bytes are folios that became dirty. Disk bytes were queued at a disk; they count for \
        the process that dirtied the file, not for the kernel thread that wrote it. \
        ×N is disk bytes divided by application bytes. Again is the share of the dirtied bytes that had been dirty \
        before. Charged bytes are those that the kernel charged to the cgroup. A ? was not seen by the trace.\n\n\
        Examples:\n  \
        floodline record --for 1m --trace on -o host.flr && floodline ledger host.flr\n  \
        floodline ledger host.flr --rows 30\n  \
        floodline ledger host.flr --format json \\\n    \
        | jq '.files[] | select(.redirtied_bytes > 0)'"
)]
pub(crate) struct LedgerCommand {
    /// Traced recording; - is standard input
    file: PathBuf,
    /// Number of rows per table
    #[arg(long, value_name = "N", default_value_t = 10)]
    rows: usize,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl Run for LedgerCommand {
    fn run(self, console: &mut Console) -> Result<Exit, CliError> {
        let window: Window = folded(&self.file, |window: &Window| window.samples)?;
        let ledger = ledger::ledger(&window).ok_or_else(|| {
            CliError::usage(format!(
                "{} was recorded without the tracer; the ledger needs traced events",
                shown(&self.file)
            ))
            .hint("make a traced recording with: floodline record --for 1m --trace on -o FILE.flr")
        })?;
        match self.format {
            Format::Text => {
                let options = view::Options { width: console.width(), rows: self.rows };
                console.print(&view::text(&ledger, options))?;
            }
            Format::Json => console.print(&view::json(&ledger).map_err(CliError::bug)?)?,
        }
        Ok(Exit::Done)
    }
}
