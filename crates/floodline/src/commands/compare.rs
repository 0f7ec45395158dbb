// SPDX-License-Identifier: MIT OR Apache-2.0
//! `floodline compare A B…`: recordings side by side, figure by figure; simulated and real, before and after.
//! Wiring only: the comparison is `floodline_analysis::compare`.

use super::Run;
use crate::console::{Console, Format};
use crate::error::CliError;
use crate::exit::Exit;
use crate::input::{Input, shown};
use floodline_analysis::compare::{Reading, Side, compare};
use floodline_record::window::Window;
use floodline_view::compare as view;
use std::path::{Path, PathBuf};

/// Compare each recording with the first, figure by figure
#[derive(clap::Parser)]
#[command(
    name = "compare",
    after_help = "Shows waits for stable storage (fsync, sync, umount) first: the longer ones, then the others. The figures that \
        changed follow. \
        The figure whose value changed by the largest factor from A to B comes first: 3 µs to 200 µs is above 1 GiB \
        to 9 GiB. --all shows the rest. Each argument is a recording, several repeats separated by commas, or a directory of repeats. \
        With repeats, each difference is compared with the spread of the repeats; * marks a difference that \
        exceeds chance. Series are compared point by point from the start of the workload.\n\n\
        Examples:\n  \
        floodline compare before.flr after.flr\n  \
        floodline compare real-1.flr,real-2.flr,real-3.flr simulated.flr\n  \
        floodline compare incident/ remedy/ --format json | jq '.against[0].figures[]'"
)]
pub(crate) struct Compare {
    /// Recordings, or repeats; the others are compared with the first
    #[arg(required = true, num_args = 2.., value_name = "RECORDING")]
    sides: Vec<String>,
    /// Show every figure, by name
    #[arg(long)]
    all: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl Run for Compare {
    fn run(self, console: &mut Console) -> Result<Exit, CliError> {
        let sides = self.sides.iter().map(|text| side(text)).collect::<Result<Vec<_>, _>>()?;
        let comparison = compare(&sides).ok_or_else(|| CliError::usage("name two recordings or more"))?;
        console.print(&match self.format {
            Format::Text => view::text(&comparison, console.width(), self.all),
            Format::Json => view::json(&comparison).map_err(CliError::bug)?,
        })?;
        if comparison.against.iter().flat_map(|against| &against.figures).all(|row| row.noise.is_none()) {
            console.note("noise unknown: give several repeats of each, separated by commas or as a directory");
        }
        Ok(Exit::Done)
    }
}

fn side(text: &str) -> Result<Side, CliError> {
    let files = files(text)?;
    let readings = files.iter().map(|file| reading(file)).collect::<Result<Vec<_>, _>>()?;
    let text = shown(Path::new(text));
    let label = if files.len() > 1 { format!("{text} ({} recordings)", files.len()) } else { text.to_string() };
    Ok(Side { label, readings })
}

/// The files an argument stands for.
fn files(text: &str) -> Result<Vec<PathBuf>, CliError> {
    let path = Path::new(text);
    if path.is_dir() {
        let unreadable = |error| CliError::usage(format!("cannot read {text}: {error}"));
        let entries = std::fs::read_dir(path).map_err(unreadable)?;
        let mut files: Vec<PathBuf> = entries
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "flr"))
            .collect();
        files.sort();
        return match files.as_slice() {
            [] => Err(CliError::usage(format!("{text} contains no recordings (files named *.flr)"))),
            _ => Ok(files),
        };
    }
    // A file may have a comma in its name.
    if path.exists() {
        return Ok(vec![path.to_owned()]);
    }
    let files: Vec<PathBuf> = text.split(',').filter(|part| !part.is_empty()).map(PathBuf::from).collect();
    match files.as_slice() {
        [] => Err(CliError::usage(format!("invalid argument {text:?}: expected a recording"))
            .hint("separate repeats by commas: a.flr,b.flr")),
        _ => Ok(files),
    }
}

fn reading(file: &Path) -> Result<Reading, CliError> {
    let mut window = Window::default();
    Input::open(file)?.fold(&mut window)?;
    match window.samples {
        0 => Err(CliError::usage(format!("{} contains no sample", file.display()))),
        _ => Ok(Reading::of(&window)),
    }
}
