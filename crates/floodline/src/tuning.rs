// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the commands that change a host have in common: which host, where its journals are, and how an error of theirs
//! ends the program.

use crate::console::Console;
use crate::error::CliError;
use crate::input::shown;
use floodline_tune::error::{Left, TuneError};
use floodline_tune::recover::{Settled, Site, site};
use std::path::PathBuf;

/// The host and its journals.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct SiteArgs {
    /// Change a folder that imitates /proc, /sys and /etc instead of this host
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Folder of the journals [default: /var/lib/floodline]
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,
}

impl SiteArgs {
    pub(crate) fn site(&self) -> Result<Site, CliError> {
        if let Some(root) = self.root.as_deref().filter(|root| !root.join("proc").is_dir()) {
            return Err(CliError::usage(format!("{} does not imitate a host: it has no folder proc", shown(root)))
                .hint("give a folder with proc, sys and etc, or leave --root out to use this host"));
        }
        Ok(site(self.root.as_deref(), self.state_dir.as_deref()))
    }

    /// Whether a folder imitates the host.
    pub(crate) fn root(&self) -> Option<&std::path::Path> {
        self.root.as_deref()
    }
}

/// Reads the number of a change.
pub(crate) fn parse_id(text: &str) -> Result<u32, String> {
    let number = text.parse::<u32>().ok().filter(|number| *number > 0);
    number.ok_or_else(|| "expected the number of a change: floodline history lists the numbers".to_owned())
}

/// Tells what an earlier change left, and was finished now.
pub(crate) fn tell_settled(console: &Console, settled: &[Settled]) {
    for one in settled {
        console.note(&format!("change {}: {}", one.id, one.text));
    }
}

impl From<TuneError> for CliError {
    fn from(error: TuneError) -> CliError {
        let told = match error.left {
            Left::Unchanged => CliError::usage(&error.text),
            Left::PutBack => CliError::put_back(&error.text),
            Left::NotPutBack => CliError::not_put_back(&error.text),
        };
        error.hints.iter().fold(told, CliError::hint)
    }
}
