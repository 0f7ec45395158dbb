// SPDX-License-Identifier: MIT OR Apache-2.0
//! `floodline lab matrix SCENARIO… --kernels …`: variants of scenarios on kernels, as one table. What was run
//! before is remembered, so that an interrupted matrix goes on where it ended.

use super::execute::{Bench, HowRemembered, Trial, read_file};
use crate::console::Console;
use crate::error::CliError;
use crate::exit::Exit;
use floodline_scenario::ScenarioFile;
use floodline_view::matrix::{self as view, Block, Cell};
use std::path::PathBuf;

/// Run variants of scenarios on several kernels and print one table
#[derive(clap::Args)]
#[command(after_help = "The table shows the figures for which a scenario has an expectation. Results are cached by \
        the content of scenario, kernel and program. After an interruption, the same command continues.\n\n\
        Exit code 1 if an expectation of a scenario was not met.\n\n\
        Examples:\n  \
        floodline lab matrix scenarios/*.toml --kernels 6.1,6.12\n  \
        floodline lab matrix scenarios/overlay-umount.toml --kernels 5.10,6.12 \\\n    \
        --variants incident,remedy\n  \
        floodline lab matrix scenarios/*.toml --kernels 6.12 --format markdown \\\n    \
        > incidents.md")]
pub(super) struct Matrix {
    /// Scenario files
    #[arg(required = true)]
    scenarios: Vec<PathBuf>,
    /// Kernels, oldest first, separated by commas
    #[arg(long, required = true, value_delimiter = ',', value_name = "KERNELS")]
    kernels: Vec<String>,
    /// Variants to run; a scenario without such a variant skips it [default: incident and remedy, or all]
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    variants: Vec<String>,
    #[command(flatten)]
    how: HowRemembered,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: TableFormat,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum TableFormat {
    /// Text for people
    #[default]
    Text,
    /// JSON for programs: each run in the form that lab run prints
    Json,
    /// Markdown for documentation
    Markdown,
}

impl Matrix {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, CliError> {
        let files = self.scenarios.iter().map(|path| read_file(path)).collect::<Result<Vec<_>, _>>()?;
        let mut blocks = Vec::new();
        {
            let mut bench = Bench::remembering(console, &self.how)?;
            let kernels = self.kernels.iter().map(|wanted| bench.kernel(wanted)).collect::<Result<Vec<_>, _>>()?;
            for file in &files {
                let mut block = Block { scenario: file.name.clone(), summary: file.summary.clone(), cells: Vec::new() };
                for variant in self.variants(file) {
                    let Some(scenario) = file.variants.get(&variant) else { continue };
                    for kernel in &kernels {
                        let trial = Trial { scenario, variant: &variant, kernel };
                        if !bench.has(trial) {
                            continue;
                        }
                        let result = bench.remembered(trial, 0);
                        if bench.is_interrupted() {
                            return Err(
                                CliError::lab_unavailable("interrupted").hint("run the same command again to continue")
                            );
                        }
                        let expect = scenario.expect.on(kernel.version);
                        block.cells.push(Cell {
                            variant: variant.clone(),
                            kernel: kernel.version.to_string(),
                            shown: expect.figures.keys().cloned().collect(),
                            result: result.map_err(|error| error.to_string()),
                        });
                    }
                }
                blocks.push(block);
            }
        }
        console.print(&match self.format {
            TableFormat::Text => view::text(&blocks),
            TableFormat::Json => view::json(&blocks).map_err(CliError::bug)?,
            TableFormat::Markdown => view::markdown(&blocks),
        })?;
        let is_well = |cell: &Cell| cell.result.as_ref().is_ok_and(|report| report.not_as_expected.is_empty());
        let all_well = blocks.iter().flat_map(|block| &block.cells).all(is_well);
        Ok(if all_well { Exit::Done } else { Exit::Findings })
    }

    /// Variants of a file that are asked for.
    fn variants(&self, file: &ScenarioFile) -> Vec<String> {
        let has = |name: &&String| file.variants.contains_key(*name);
        let asked: Vec<String> = self.variants.iter().filter(has).cloned().collect();
        let usual: Vec<String> = ["incident", "remedy"].map(str::to_owned).iter().filter(has).cloned().collect();
        match (asked.is_empty(), usual.is_empty()) {
            (false, _) => asked,
            (true, false) => usual,
            (true, true) => file.variants.keys().cloned().collect(),
        }
    }
}
