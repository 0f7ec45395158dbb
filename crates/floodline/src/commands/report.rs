// SPDX-License-Identifier: MIT OR Apache-2.0
//! `floodline report FILE [AFTER]`: a recording, two recordings, or the JSON of another command as one HTML file. Wiring
//! only: the page is made by `floodline_view::page`.

use super::Run;
use crate::console::Console;
use crate::error::CliError;
use crate::exit::Exit;
use crate::input::{Input, no_sample, shown};
use crate::output::{self, Content, Existing};
use crate::twins::try_plan_of_file;
use crate::whole::{self, Pending};
use floodline_analysis::compare::{Reading, Side, compare};
use floodline_record::human;
use floodline_view::page::{self, Fold, Whole};
use std::fs::File;
use std::io::{self, BufRead, Read, Write};
use std::path::{Path, PathBuf};

/// Results larger than this are refused: no command prints such JSON.
const JSON_MAX: u64 = 64 << 20;

/// Write a recording, or another command's JSON, as one HTML page with plots
#[derive(clap::Parser)]
#[command(
    name = "report",
    after_help = "The page is one file. It loads nothing, can be read without JavaScript, prints on A4, and follows \
        the dark or light mode of the browser. With two recordings, the page compares them. With the JSON of sweep, \
        simulate, lab run, lab matrix, compare or any other command, the page shows that result.\n\n\
        Examples:\n  \
        floodline report host.flr -o report.html\n  \
        floodline report before.flr after.flr -o change.html\n  \
        floodline sweep pipeline-20gb --grid vm.dirty_ratio=5,10,20,40 \\\n    \
        --format json | floodline report - -o sweep.html"
)]
pub(crate) struct ReportCommand {
    /// Recording, or JSON of another command; - is standard input
    file: PathBuf,
    /// Second recording to compare with the first
    after: Option<PathBuf>,
    /// HTML file to write; - is standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Overwrite the file if it exists
    #[arg(long)]
    force: bool,
}

impl Run for ReportCommand {
    fn run(self, console: &mut Console) -> Result<Exit, CliError> {
        let html = match &self.after {
            Some(after) => self.compared(after)?,
            None if is_json(&self.file)? => result(&self.file)?,
            None => page::host(&read(&self.file)?.host()),
        };
        let target = output::called(&self.output);
        let failed = |error: io::Error| CliError::write(&target, &error);
        let (mut out, pending): (Box<dyn Write>, _) = match output::is_standard(&self.output) {
            true => (output::standard(Content::Text)?, None),
            false => {
                let (file, pending) = whole::create(&self.output, Existing::by_force(self.force))?;
                (Box::new(file), Some(pending))
            }
        };
        out.write_all(html.as_bytes()).and_then(|()| out.flush()).map_err(failed)?;
        pending.map_or(Ok(()), Pending::commit)?;
        if !output::is_standard(&self.output) {
            console.note(&format!("wrote {target}, {}", human::bytes(html.len() as f64)));
        }
        Ok(Exit::Done)
    }
}

impl ReportCommand {
    fn compared(&self, after: &Path) -> Result<String, CliError> {
        for file in [&self.file, after] {
            if is_json(file)? {
                return Err(CliError::usage(format!("{} is JSON, not a recording", shown(file)))
                    .hint("two recordings can be compared; JSON is shown on its own: floodline report FILE -o PAGE"));
            }
        }
        let (before, after) = (read(&self.file)?, read(after)?);
        let side = |read: &Whole| Side { label: read.label.clone(), readings: vec![Reading::of(&read.window)] };
        let comparison = compare(&[side(&before), side(&after)]);
        let comparison = comparison.ok_or_else(|| CliError::usage("name two recordings"))?;
        Ok(page::compared(&before.host(), &after.host(), &comparison))
    }
}

/// Whether a file begins as JSON does. Of standard input nothing is taken.
fn is_json(path: &Path) -> Result<bool, CliError> {
    let unreadable = |error: io::Error| CliError::usage(format!("cannot read {}: {error}", shown(path)));
    let first = |bytes: &[u8]| bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
    if output::is_standard(path) {
        return io::stdin().lock().fill_buf().map(first).map_err(unreadable);
    }
    let mut bytes = [0; 64];
    // What cannot be opened or read is reported where the recording is read.
    let length = File::open(path).and_then(|mut file| file.read(&mut bytes)).unwrap_or(0);
    Ok(first(bytes.get(..length).unwrap_or_default()))
}

fn result(path: &Path) -> Result<String, CliError> {
    let unreadable = |error: io::Error| CliError::usage(format!("cannot read {}: {error}", shown(path)));
    let reader: Box<dyn Read> = match output::is_standard(path) {
        true => Box::new(io::stdin().lock()),
        false => Box::new(File::open(path).map_err(unreadable)?),
    };
    let mut text = String::new();
    reader.take(JSON_MAX).read_to_string(&mut text).map_err(unreadable)?;
    page::result(&shown(path).to_string(), &text).map_err(|error| {
        CliError::usage(format!("{}: {error}", shown(path)))
            .hint("give a recording (FILE.flr), or the output of a command with --format json")
    })
}

fn read(path: &Path) -> Result<Whole, CliError> {
    let mut fold = Fold::default();
    Input::open(path)?.fold(&mut fold)?;
    let mut whole = fold.finish(shown(path).to_string()).ok_or_else(|| no_sample(path))?;
    try_plan_of_file(&mut whole.report, path);
    Ok(whole)
}
