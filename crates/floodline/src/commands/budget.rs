// SPDX-License-Identifier: MIT OR Apache-2.0
//! `floodline budget [FILE]`: how much dirty page cache every cgroup may have, has, and what sets the
//! limit. Wiring only: the arithmetic is `floodline_analysis::budget`.

use super::Run;
use crate::console::Console;
use crate::error::CliError;
use crate::exit::Exit;
use crate::input::{Input, no_sample};
use crate::live::Host;
use floodline_analysis::budget::{Choice, Sort, budgets, rows};
use floodline_host::Needs;
use floodline_record::record::{Record, Sink};
use floodline_record::window::Window;
use floodline_view::budget as view;
use std::path::{Path, PathBuf};

/// Show how many dirty pages each cgroup may have, and what sets the limit
#[derive(clap::Parser)]
#[command(
    name = "budget",
    after_help = "Amounts are those of the cgroup on all devices; share is the device's part of the limit. \
        Nobody is slowed below freerun; above the limit writers stop. A number with ≤ is the most it \
        can be: something was not read, and is named below the table.\n\n\
        Examples:\n  \
        floodline budget --sort thresh\n  \
        floodline budget host.flr --all --format csv\n  \
        floodline budget --format json | jq '.rows[] | select(.over_ratio > 1)'"
)]
pub(crate) struct Budget {
    /// Recording to read instead of looking at this host, its last sample; - is standard input
    file: Option<PathBuf>,
    /// Look at a captured tree instead of this machine
    #[arg(long, value_name = "DIR", conflicts_with = "file")]
    root: Option<PathBuf>,
    /// Also cgroups that have nothing dirty, and every device
    #[arg(long)]
    all: bool,
    /// What comes first
    #[arg(long, value_name = "ORDER", value_enum, default_value_t)]
    sort: SortBy,
    /// Whole bytes instead of KiB, MiB, GiB (text only)
    #[arg(long)]
    bytes: bool,
    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: BudgetFormat,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum SortBy {
    /// The fullest
    #[default]
    Over,
    /// Most dirty
    Dirty,
    /// The smallest limit
    Thresh,
    /// In order of path
    Name,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum BudgetFormat {
    /// For people
    #[default]
    Text,
    /// For programs; the schema is versioned and stable
    Json,
    /// The rows alone, with a header line
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

fn look(root: Option<&Path>) -> Result<Window, CliError> {
    let host = Host::open(root)?;
    let mut records = Vec::new();
    host.looks(NEEDS, None)(&mut records);
    Ok(Window::from_records(&records))
}

fn read(file: &Path) -> Result<Window, CliError> {
    let mut window = Window::default();
    Input::open(file)?.each(|record: Record| {
        match window.record(&record) {
            Ok(()) => {}
        }
        Ok(true)
    })?;
    if window.samples == 0 {
        return Err(no_sample(file));
    }
    Ok(window)
}
