// SPDX-License-Identifier: MIT OR Apache-2.0
//! `floodline-dev back-test RECORDING…`: the twin of each recording under its unchanged settings against the recording,
//! the worst first. Every recording counts, sick or well. `--scenarios` prints each twin instead. Runs no machine.

use crate::input::{self, shown};
use crate::{Answer, Failure, Format, note};
use floodline_twin::backtest::{self, Figure};
use floodline_twin::trial::OneByOne;
use floodline_twin::{Options, Recorded, Twin};
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use serde::Serialize;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Compare twins with their own recordings
#[derive(clap::Args)]
#[command(name = "back-test", after_help = "Example:\n  floodline-dev back-test recordings/ > back-tests.md")]
pub(crate) struct BackTest {
    /// Recordings, or folders of them
    #[arg(required = true, value_name = "RECORDING")]
    recordings: Vec<PathBuf>,
    /// Test only files whose path contains this text
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Print the twins as scenarios
    #[arg(long)]
    scenarios: bool,
    /// Output format; text is Markdown
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// The back-test of one recording.
#[derive(Debug, Serialize)]
struct Tested {
    recording: String,
    seconds: f64,
    /// Median error of the simulated figures, as a share.
    error: f64,
    figures: Vec<Figure>,
    #[serde(skip)]
    twin: Twin,
}

impl BackTest {
    pub(crate) fn run(&self) -> Result<Answer, Failure> {
        let mut files = Vec::new();
        for path in &self.recordings {
            files.extend(input::files(path)?);
        }
        let is_wanted = |path: &PathBuf| self.only.as_ref().is_none_or(|only| shown(path).to_string().contains(only));
        files.retain(is_wanted);
        let all: Vec<Result<Tested, String>> = files.into_par_iter().map(|path| test(&path)).collect();
        let mut tested = Vec::new();
        for one in all {
            match one {
                Ok(one) => tested.push(one),
                Err(why) => note(&why),
            }
        }
        tested.sort_by(|one: &Tested, other| {
            other.error.total_cmp(&one.error).then_with(|| one.recording.cmp(&other.recording))
        });
        let text = match (self.scenarios, self.format) {
            (true, _) => scenarios(&tested),
            (false, Format::Text) => markdown(&tested),
            (false, Format::Json) => serde_json::to_string(&serde_json::json!({ "recordings": tested }))? + "\n",
        };
        Ok(Answer { text, is_as_expected: true })
    }
}

fn test(path: &Path) -> Result<Tested, String> {
    let recorded: Recorded = input::read(path, Ok)?;
    let recording = path.file_stem().map_or_else(|| shown(path), |stem| shown(Path::new(stem))).to_string();
    let why = |text: String| format!("{recording}: {text}; skipped");
    let twin = floodline_twin::of(&recorded, &Options::default()).map_err(|error| why(error.to_string()))?;
    // The first is the one nearer to the recording: what a report shows first.
    let ran = backtest::test(&recorded, &twin, &mut OneByOne).into_iter().next().map(|tested| tested.figures);
    let figures = ran.ok_or_else(|| why("no run".to_owned()))?.map_err(why)?;
    let error = backtest::simulated_error(&figures).ok_or_else(|| why("nothing to compare".to_owned()))?;
    Ok(Tested { recording, seconds: twin.seconds, error, figures, twin })
}

/// A median of errors.
fn median(tested: &[Tested]) -> f64 {
    let mut errors: Vec<f64> = tested.iter().map(|one| one.error).collect();
    errors.sort_by(f64::total_cmp);
    errors.get(errors.len() / 2).copied().unwrap_or(0.0)
}

fn markdown(tested: &[Tested]) -> String {
    let within = |most: f64| tested.iter().filter(|one| one.error <= most).count();
    let mut text = format!(
        "{} recordings. Half of the twins have a median error of at most {:.1} %, {} of at most 15 %, {} of at most 25 %.\n\n",
        tested.len(),
        median(tested) * 100.0,
        within(0.15),
        within(0.25),
    );
    text.push_str("| recording | median error | figures off by more than 25 % |\n| --- | ---: | --- |\n");
    for one in tested {
        let missed =
            one.figures.iter().filter(|figure| !figure.is_predictable() && !figure.name.starts_with("budget."));
        let missed: Vec<String> =
            missed.map(|figure| format!("{} {:.3e} → {:.3e}", figure.name, figure.real, figure.simulated)).collect();
        // A text in memory takes every line.
        let _ = writeln!(text, "| {} | {:.1} % | {} |", one.recording, one.error * 100.0, missed.join(", "));
    }
    text
}

fn scenarios(tested: &[Tested]) -> String {
    let one = |one: &Tested| match floodline_twin::to_toml(&one.twin) {
        Ok(text) => text,
        Err(error) => {
            note(&format!("{}: {error}", one.recording));
            String::new()
        }
    };
    tested.iter().map(one).collect::<Vec<_>>().join("\n")
}
