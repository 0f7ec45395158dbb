// SPDX-License-Identifier: MIT OR Apache-2.0
//! `floodline budget [FILE]`: how much dirty page cache every cgroup may have, has, and what sets the
//! limit. Wiring only: the arithmetic is `floodline_analysis::budget`.

use super::Run;
use crate::asked::known;
use crate::console::Console;
use crate::error::CliError;
use crate::exit::Exit;
use crate::input::folded;
use crate::live::{Host, StatReads};
use floodline_analysis::budget::{AsIf, Choice, NotAsIf, Sort, as_if, budgets, rows};
use floodline_host::Needs;
use floodline_record::window::Window;
use floodline_view::budget as view;
use std::path::{Path, PathBuf};

/// Show the dirty limit of each cgroup, its dirty pages, and the setting behind the limit
#[derive(clap::Parser)]
#[command(
    name = "budget",
    after_help = "Amounts count the cgroup's pages on all devices. From backgr. on, the flusher writes. Below freerun no writer \
        is slowed. Above the limit all writers stop. Full is dirty and writeback, in percent of the limit. Share is \
        the device's part of the limit. A number with ≤ is an upper \
        bound: the notes below the table name the source that was not read.\n\n\
        Examples:\n  \
        floodline budget --sort thresh\n  \
        floodline budget host.flr --all --format csv\n  \
        floodline budget --as-if cgroup=v2,vm.dirty_ratio=10,kernel=6.12 host.flr\n  \
        floodline budget --format json | jq '.rows[] | select(.over_ratio > 1)'"
)]
pub(crate) struct Budget {
    /// Recording whose last sample to read instead of this host; - is standard input
    file: Option<PathBuf>,
    /// Read a captured tree instead of this machine
    #[arg(long, value_name = "DIR", conflicts_with = "file")]
    root: Option<PathBuf>,
    /// Include cgroups without dirty pages, and every device
    #[arg(long)]
    all: bool,
    /// Show the limits under other conditions beside those of now: cgroup=v2 or v1, kernel=VERSION, memory=SIZE,
    /// vm.dirty_*=VALUE, cgroup/PATH/memory.max=SIZE, separated by commas
    #[arg(long, value_name = "CONDITIONS", conflicts_with = "sort")]
    as_if: Option<String>,
    /// Sort order
    #[arg(long, value_name = "ORDER", value_enum, default_value_t)]
    sort: SortBy,
    /// Print exact bytes instead of KiB, MiB, GiB (text only)
    #[arg(long)]
    bytes: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: BudgetFormat,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum SortBy {
    /// Highest share of the limit first
    #[default]
    Over,
    /// Most dirty pages first
    Dirty,
    /// Smallest limit first
    Thresh,
    /// By cgroup path
    Name,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum BudgetFormat {
    /// Text for people
    #[default]
    Text,
    /// JSON for programs; the schema is versioned and stable
    Json,
    /// CSV rows with a header line
    Csv,
}

/// Everything but processes.
const NEEDS: Needs = Needs { processes: false, ..Needs::ALL };

impl Run for Budget {
    fn run(self, console: &mut Console) -> Result<Exit, CliError> {
        let window = match &self.file {
            Some(file) => read(file)?,
            None => look(self.root.as_deref())?,
        };
        if let Some(conditions) = &self.as_if {
            return self.print_as_if(console, &window, conditions);
        }
        let sort = match self.sort {
            SortBy::Over => Sort::Over,
            SortBy::Dirty => Sort::Dirty,
            SortBy::Thresh => Sort::Thresh,
            SortBy::Name => Sort::Name,
        };
        let report = rows(&window, &budgets(&window), Choice { all: self.all, sort });
        let text = match self.format {
            BudgetFormat::Text => {
                let options = view::Options { width: console.width(), color: console.is_colored(), bytes: self.bytes };
                view::text(&report, options)
            }
            BudgetFormat::Json => view::json(&report).map_err(CliError::bug)?,
            BudgetFormat::Csv => view::csv(&report).map_err(CliError::bug)?,
        };
        console.print(&text)?;
        Ok(Exit::Done)
    }
}

impl Budget {
    /// The limits under other conditions beside those of now.
    fn print_as_if(&self, console: &mut Console, window: &Window, conditions: &str) -> Result<Exit, CliError> {
        let refused = |error: NotAsIf| CliError::usage(&error).hint(&error.hint);
        let conditions: AsIf = conditions.parse().map_err(refused)?;
        if let Some(kernel) = conditions.kernel {
            known(&kernel.version.to_string(), "its limits are computed", Some(&*console))?;
        }
        let report = as_if(window, &conditions, self.all).map_err(refused)?;
        console.print(&match self.format {
            BudgetFormat::Text => floodline_view::as_if::text(&report, console.width(), self.bytes),
            BudgetFormat::Json => floodline_view::as_if::json(&report).map_err(CliError::bug)?,
            BudgetFormat::Csv => {
                return Err(CliError::usage("--as-if has no CSV form").hint("use --format json"));
            }
        })?;
        Ok(Exit::Done)
    }
}

/// One look at a host.
pub(super) fn look(root: Option<&Path>) -> Result<Window, CliError> {
    let host = Host::open(root)?;
    let mut records = Vec::new();
    host.looks(NEEDS, StatReads::default(), None)(&mut records);
    Ok(Window::from_records(&records))
}

fn read(file: &Path) -> Result<Window, CliError> {
    folded(file, |window: &Window| window.samples)
}
