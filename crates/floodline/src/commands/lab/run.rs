// SPDX-License-Identifier: MIT OR Apache-2.0
//! `floodline lab run SCENARIO --kernel K`: one variant of a scenario on a real kernel. The result is a
//! recording like that of any host, the figures of its workload, what `doctor` says of it, and whether all
//! that is as the scenario expects. With `--repeat`, how much the figures differ from run to run.

use super::execute::{Bench, How, Trial, read_scenario};
use crate::asked::Changes;
use crate::console::{Console, Format};
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::{Existing, is_standard, open};
use floodline_analysis::run::RunReport;
use std::fs::File;
use std::path::{Path, PathBuf};

/// Run one variant of a scenario on a real kernel
#[derive(clap::Args)]
#[command(after_help = "Exit code 1 if an expectation of the scenario was not met, 69 if no run was possible.\n\n\
        Examples:\n  \
        floodline lab run scenarios/overlay-umount.toml --kernel 6.12\n  \
        floodline lab run scenarios/overlay-umount.toml --kernel 5.10 \\\n    \
        --variant remedy --save remedy.flr\n  \
        floodline lab run scenarios/dirty-cliff.toml --kernel 6.1 --repeat 3 \\\n    \
        --save cliff.flr")]
pub(super) struct RunScenario {
    /// Scenario file, or the name of a scenario that floodline scenario list shows
    scenario: PathBuf,
    /// Kernel to run: a version, a series, a release name, host, or a path (see floodline lab kernels)
    #[arg(long, value_name = "KERNEL")]
    kernel: String,
    /// Variant to run [default: the one named incident, or the only one]
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,
    #[command(flatten)]
    changes: Changes,
    /// Number of runs, in sequence
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    repeat: u32,
    /// Save the recording to this file (with --repeat to FILE-1.flr and so on); - writes it to standard output and the
    /// figures to standard error
    #[arg(long, visible_short_alias = 'o', value_name = "FILE")]
    save: Option<PathBuf>,
    /// Overwrite the file of --save if it exists
    #[arg(long, requires = "save")]
    force: bool,
    #[command(flatten)]
    how: How,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl RunScenario {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, CliError> {
        let (variant, scenario) = read_scenario(&self.scenario, self.variant.as_deref())?;
        let scenario = self.changes.changed(&scenario)?;
        floodline_lab::run::check(&scenario)?;
        if self.save.as_deref().is_some_and(is_standard) {
            if self.repeat > 1 {
                return Err(CliError::usage("--save - accepts one recording only")
                    .hint("name a file with --save FILE, or omit --repeat"));
            }
            console.leave_standard_output();
        }
        let saves: Vec<Option<(PathBuf, File)>> =
            (1..=self.repeat).map(|turn| self.save(turn)).collect::<Result<_, _>>()?;
        let mut reports = Vec::new();
        {
            let mut bench = Bench::open(console, &self.how)?;
            let kernel = bench.kernel(&self.kernel)?;
            let trial = Trial { scenario: &scenario, variant: &variant, kernel: &kernel };
            for save in saves {
                let (path, file) = save.unzip();
                reports.push(bench.run(trial, path.as_deref().zip(file))?);
            }
        }
        console.print(&match self.format {
            Format::Text => floodline_view::run::text(&reports, console.width()),
            Format::Json => floodline_view::run::json(&reports).map_err(CliError::bug)?,
        })?;
        Ok(exit(&reports))
    }

    /// The file of one of the repeats.
    fn save(&self, turn: u32) -> Result<Option<(PathBuf, File)>, CliError> {
        let Some(path) = &self.save else { return Ok(None) };
        let path = if self.repeat == 1 { path.clone() } else { numbered(path, turn) };
        let file = open(&path, Existing::by_force(self.force))?;
        Ok(Some((path, file)))
    }
}

/// Whether all was as expected.
pub(super) fn exit(reports: &[RunReport]) -> Exit {
    if reports.iter().all(|report| report.not_as_expected.is_empty()) { Exit::Done } else { Exit::Findings }
}

fn numbered(path: &Path, turn: u32) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let extension = path.extension().unwrap_or("flr".as_ref()).to_string_lossy();
    path.with_file_name(format!("{stem}-{turn}.{extension}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_have_files_of_their_own() {
        assert_eq!(numbered(Path::new("a/cliff.flr"), 2), Path::new("a/cliff-2.flr"));
        assert_eq!(numbered(Path::new("cliff"), 1), Path::new("cliff-1.flr"));
    }
}
