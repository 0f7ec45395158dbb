// SPDX-License-Identifier: MIT OR Apache-2.0
//! `floodline sweep SCENARIO --grid KEY=VALUES…`: every combination of some settings on the model, on all
//! cores, as one table. Rows are in the order of the grid, however many threads made them; a cell that
//! cannot be run is a row with its reason. Nothing of this host is read.

use super::Run;
use super::lab::execute::read_file;
use crate::asked::Asked;
use crate::console::{Console, Format, Progress};
use crate::error::CliError;
use crate::exit::Exit;
use crate::input::shown;
use crate::interrupt::Interrupt;
use crate::output::Existing;
use crate::{whole, workers};
use floodline_analysis::run::RunReport;
use floodline_analysis::run::order::{best, first};
use floodline_record::human;
use floodline_record::nearest::nearest;
use floodline_record::units::Nanos;
use floodline_record::version::KernelVersion;
use floodline_scenario::{Grid, NotAGrid, Scenario, ScenarioFile, split_setting};
use floodline_sim::{Found, Speed};
use floodline_twin::model::{self, Order};
use floodline_view::sweep::{self as view, Row, Sweep};
use std::collections::BTreeSet;
use std::io::{BufWriter, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// Run a scenario on the model for every combination of settings
#[derive(clap::Parser)]
#[command(
    name = "sweep",
    after_help = "A grid varies a setting (vm.dirty_bytes), a key of the scenario (machine.memory, \
        machine.devices.data.write_bandwidth), or one of kernel, variant, instances, for, seed. \
        Several grids are combined; the last one varies fastest. The suffixes K, M, G mean KiB, MiB, GiB.\n\n\
        The table shows the longest waits for stable storage first. The figures for which the scenario has an \
        expectation follow, those that change before those that do not. --figure selects others. --save writes all of them. * marks the row with \
        the mildest finding and the shortest waits.\n\n\
        Exit code 2 if a combination is refused, 1 if its run could not continue. Its row shows the reason.\n\n\
        Examples:\n  \
        floodline sweep scenarios/dirty-cliff.toml \\\n    \
        --grid vm.dirty_background_bytes=8M,32M,128M --grid kernel=6.1,6.12\n  \
        floodline sweep scenarios/starved-budget.toml --grid instances=8,32,128 \\\n    \
        --grid variant=incident,remedy --save boxes.parquet\n  \
        floodline sweep scenarios/dirty-cliff.toml --grid seed=1,2,3,4 \\\n    \
        --figure durable.fdatasync.max_seconds"
)]
pub(crate) struct SweepCommand {
    /// Scenario file, or the name of a scenario that floodline scenario list shows
    scenario: PathBuf,
    /// Key to vary, with its values; may be repeated
    #[arg(long = "grid", required = true, value_name = "KEY=VALUE,…")]
    grids: Vec<String>,
    #[command(flatten)]
    asked: Asked,
    /// Number of concurrent runs [default: one per CPU]
    #[arg(long, value_name = "N", value_parser = workers::parse_jobs)]
    jobs: Option<NonZeroUsize>,
    /// Show this figure instead of those with an expectation in the scenario; may be repeated
    #[arg(long = "figure", value_name = "NAME")]
    figures: Vec<String>,
    /// Show all of these figures, not only the first five
    #[arg(long)]
    all: bool,
    /// Save the table with all figures to this file: .csv, .json or .parquet
    #[arg(long, visible_short_alias = 'o', value_name = "FILE")]
    save: Option<PathBuf>,
    /// Overwrite the file of --save if it exists
    #[arg(long, requires = "save")]
    force: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Figures that the table for people has without --all.
const SHOWN_MAX: usize = 5;
/// Figures shown where the scenario expects none.
const USUAL: &[&str] = &["host.dirty_peak_bytes", "host.dirtied_bytes", "devices.written_bytes"];

/// One combination, ready to run.
struct Cell {
    variant: String,
    scenario: Scenario,
    kernel: KernelVersion,
}

/// Which format a table is kept in, by the end of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kept {
    Csv,
    Json,
    Parquet,
}

impl Run for SweepCommand {
    fn run(self, console: &mut Console) -> Result<Exit, CliError> {
        let axes = self.grids.iter().map(|text| axis(text)).collect::<Result<Vec<_>, _>>()?;
        if let Some((fixed, _)) = axes.iter().find(|(key, _)| self.asked.fixes(key)) {
            let twice = format!("{fixed} has both a grid and a fixed value");
            return Err(CliError::usage(twice).hint("give all its values to --grid"));
        }
        let axes = Grid::new(axes).map_err(|error| match error {
            NotAGrid::Twice(_) => CliError::usage(error).hint("give all its values to one --grid"),
            NotAGrid::TooMany => CliError::usage(error).hint("vary fewer keys or values"),
        })?;
        let grid = axes.combinations();
        let file = read_file(&self.scenario)?;
        let mut cells: Vec<Result<Cell, CliError>> = grid.iter().map(|at| self.cell(&file, &axes, at)).collect();
        // What no combination can be is a slip of the command line, not a result.
        if !cells.iter().any(Result::is_ok)
            && !cells.is_empty()
            && let Err(why) = cells.swap_remove(0)
        {
            // Reports the first one: where a key is unknown, all of them fail alike.
            return Err(why.within("no combination can be run"));
        }
        let cells: Vec<Result<Cell, Failed>> = cells.into_iter().map(|cell| cell.map_err(Failed::from)).collect();
        // Told before the others are run: that may take long, and it may be a slip.
        let refused = cells.iter().filter(|cell| cell.is_err()).count() as u64;
        if refused > 0 {
            let are = if refused == 1 { "is" } else { "are" };
            console.note(&format!("{refused} of {} combinations {are} refused; their rows say why", cells.len()));
        }
        let interrupt = Interrupt::watch()?;
        let kept = self.save.as_ref().map(|path| kept(path)).transpose()?;
        let target = self.save.as_ref().map(|path| whole::create(path, Existing::by_force(self.force))).transpose()?;
        let jobs = self.jobs.or_else(|| std::thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get);
        let results = run_all(&cells, jobs, self.asked.every(), &interrupt, &mut console.progress());
        let worst = worst(results.iter().flatten().filter_map(|result| result.as_ref().err()));
        let row = |(at, result): (Vec<String>, Option<Finished>)| {
            Some(Row { at, result: result?.map_err(|failed| failed.text) })
        };
        let rows: Vec<Row> = grid.into_iter().zip(results).filter_map(row).collect();
        if rows.len() < cells.len() {
            console.note(&format!("interrupted: {} of {} runs are finished", rows.len(), cells.len()));
        }
        let best = best(&rows.iter().map(|row| row.result.as_ref().ok()).collect::<Vec<_>>());
        let axes = axes.keys().map(str::to_owned).collect();
        let sweep = Sweep { scenario: file.name.clone(), axes, rows, best };
        // What took long is shown where it cannot be kept, and kept where it cannot be shown.
        let is_kept = match (kept, &self.save, target) {
            (Some(kept), Some(path), Some((target, pending))) => {
                let left = pending.left();
                let written = keep(&sweep, kept, path, BufWriter::new(target)).and_then(|()| pending.commit());
                written.map_err(|error| error.hint(left))
            }
            _ => Ok(()),
        };
        console.print(&match self.format {
            Format::Text => {
                let (shown, left_out) = self.shown(&cells, &sweep);
                let rest = match left_out {
                    0 => String::new(),
                    _ => format!("{}: add --all\n", human::plural(left_out as u64, "more figure", "more figures")),
                };
                view::text(&sweep, &shown, console.width()) + &rest
            }
            Format::Json => view::json(&sweep).map_err(CliError::bug)?,
        })?;
        tell_unknown_figures(console, &self.figures, &sweep);
        is_kept?;
        Ok(worst)
    }
}

impl SweepCommand {
    /// The scenario of one combination.
    fn cell(&self, file: &ScenarioFile, grid: &Grid, at: &[String]) -> Result<Cell, CliError> {
        let asked = |scenario: &Scenario| self.asked.changed(scenario);
        let (variant, scenario) = grid.scenario(file, at, self.asked.variant.as_deref(), asked)?;
        floodline_sim::check(&scenario).map_err(CliError::from)?;
        let kernel = self.asked.kernel(grid.value(at, "kernel"))?;
        Ok(Cell { variant, scenario, kernel })
    }

    /// The figures in the table for people, and how many are left out.
    fn shown(&self, cells: &[Result<Cell, Failed>], sweep: &Sweep) -> (Vec<String>, usize) {
        if !self.figures.is_empty() {
            return (self.figures.clone(), 0);
        }
        let expected = cells.iter().flatten().flat_map(|cell| cell.scenario.expect.figures.keys().cloned());
        let expected: BTreeSet<String> = expected.collect();
        let has =
            |name: &&str| sweep.rows.iter().flat_map(|row| &row.result).any(|run| run.figures.contains_key(*name));
        let wanted: BTreeSet<String> = match expected.is_empty() {
            true => USUAL.iter().filter(|name| has(name)).map(|name| (*name).to_owned()).collect(),
            false => expected,
        };
        let runs: Vec<&RunReport> = sweep.rows.iter().flat_map(|row| &row.result).collect();
        let mut shown = first(&runs, &wanted);
        let left_out = if self.all { 0 } else { shown.len().saturating_sub(SHOWN_MAX) };
        shown.truncate(shown.len() - left_out);
        (shown, left_out)
    }
}

/// A figure that no run has may be a slip.
fn tell_unknown_figures(console: &Console, figures: &[String], sweep: &Sweep) {
    let known: BTreeSet<&str> =
        sweep.rows.iter().flat_map(|row| &row.result).flat_map(|run| run.figures.keys()).map(String::as_str).collect();
    for name in figures.iter().filter(|name| !known.contains(name.as_str())) {
        let meant = nearest(name, known.iter().copied()).map(|near| format!("; did you mean {near}?"));
        console.note(&format!("no run has a figure {name:?}{}", meant.unwrap_or_default()));
    }
}

fn axis(text: &str) -> Result<(String, Vec<String>), CliError> {
    let wrong = || {
        CliError::usage(format!("invalid grid {text:?}: expected KEY=VALUE,VALUE"))
            .hint("--grid vm.dirty_bytes=64M,256M,1G")
            .hint("--grid kernel=6.1,6.12")
    };
    // A key may hold a quoted path, but no equals sign.
    let (key, values) = split_setting(text).ok_or_else(wrong)?;
    let values: Vec<String> = values.split(',').map(|value| value.trim().to_owned()).collect();
    if key.trim().is_empty() || values.iter().any(String::is_empty) {
        return Err(wrong());
    }
    Ok((key.trim().to_owned(), values))
}

type Finished = Result<RunReport, Failed>;

/// Why a combination has no figures.
#[derive(Clone)]
struct Failed {
    text: String,
    exit: Exit,
}

impl From<CliError> for Failed {
    fn from(error: CliError) -> Failed {
        Failed { text: error.to_string(), exit: error.exit() }
    }
}

/// How the command ends: a bug before a slip of the command line before a run that could not go on.
fn worst<'a>(failed: impl Iterator<Item = &'a Failed>) -> Exit {
    let exits: Vec<Exit> = failed.map(|failed| failed.exit).collect();
    [Exit::Bug, Exit::Usage].into_iter().find(|exit| exits.contains(exit)).unwrap_or(match exits.is_empty() {
        true => Exit::Done,
        false => Exit::Findings,
    })
}

/// Runs all cells, each on a thread of its own as long as there are some; nothing stands where a run was
/// interrupted. Each run is deterministic, so the results do not depend on the number of threads.
fn run_all(
    cells: &[Result<Cell, Failed>],
    jobs: usize,
    every: Nanos,
    interrupt: &Interrupt,
    progress: &mut Progress,
) -> Vec<Option<Finished>> {
    // What cannot be run needs no thread.
    let ready: Vec<&Cell> = cells.iter().flatten().collect();
    let run = |cell: &&Cell| if interrupt.is_asked() { None } else { run_one(cell, every, interrupt) };
    let mut ran = workers::each(&ready, jobs, run, |done, _| {
        let runs = human::plural(done.of as u64, "run", "runs");
        progress.tell(|| format!("{} of {runs}{}", done.items, done.left()));
    })
    .into_iter();
    let result = |cell: &Result<Cell, Failed>| match cell {
        Ok(_) => ran.next().flatten(),
        Err(why) => Some(Err(why.clone())),
    };
    cells.iter().map(result).collect()
}

/// One run; nothing if it was interrupted.
fn run_one(cell: &Cell, every: Nanos, interrupt: &Interrupt) -> Option<Finished> {
    let order = Order {
        scenario: &cell.scenario,
        variant: &cell.variant,
        kernel: cell.kernel,
        every,
        speed: Speed::default(),
        found: Found::default(),
    };
    match model::run(&order, |_| Ok(()), |_| !interrupt.is_asked()) {
        Ok(outcome) if outcome.is_interrupted => None,
        Ok(outcome) => Some(Ok(outcome.report)),
        Err(error) => Some(Err(CliError::from(error).into())),
    }
}

fn kept(path: &Path) -> Result<Kept, CliError> {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("csv") => Ok(Kept::Csv),
        Some("json") => Ok(Kept::Json),
        Some("parquet") => Ok(Kept::Parquet),
        _ => Err(CliError::usage(format!("unknown table format: {}", shown(path)))
            .hint("use a name that ends in .csv, .json or .parquet")),
    }
}

fn keep(sweep: &Sweep, kept: Kept, path: &Path, mut out: impl Write + Send) -> Result<(), CliError> {
    let target = shown(path).to_string();
    let failed = |error: floodline_view::export::ExportError| match error.io() {
        Some(error) => CliError::write(&target, error),
        None => CliError::cannot_observe(format!("cannot write {target}: {error}")),
    };
    match kept {
        Kept::Csv => view::flat(sweep).and_then(|table| table.csv(&mut out)).map_err(failed)?,
        Kept::Parquet => view::flat(sweep).and_then(|table| table.parquet(&mut out)).map_err(failed)?,
        Kept::Json => {
            let text = view::json(sweep).map_err(CliError::bug)?;
            out.write_all(text.as_bytes()).map_err(|error| CliError::write(&target, &error))?;
        }
    }
    out.flush().map_err(|error| CliError::write(&target, &error))
}
