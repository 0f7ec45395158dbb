// SPDX-License-Identifier: MIT OR Apache-2.0
//! `floodline export FILE --format …`: a recording as tables, or as a trace, for other programs.

use super::Run;
use crate::console::Console;
use crate::error::CliError;
use crate::exit::Exit;
use crate::input::{Input, shown};
use crate::output::{self, Content, Existing};
use crate::redaction::Redaction;
use crate::whole::{self, Pending};
use floodline_record::human;
use floodline_record::record::{Record, Sink};
use floodline_record::recording::{EncodeError, Encoder, Header};
use floodline_record::redact::Redactor;
use floodline_view::export::{
    Cell, CsvExport, ExportError, Flattener, JsonLines, ParquetExport, PerfettoTrace, RowWriter, TABLES,
};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Convert a recording to Parquet, CSV, JSON Lines, a Perfetto trace, or a redacted recording
#[derive(clap::Parser)]
#[command(
    name = "export",
    after_help = "Tables: host, zone, disk, bdi, wb, cgroup, cgroup_limits, cgroup_io, process. \
        A value that was not read is null or empty, never 0. A limit column contains \
        18446744073709551615 where no limit is set. In CSV, text that a spreadsheet would run as a formula \
        (starting with = + - or @) gets a leading apostrophe.\n\n\
        Examples:\n  \
        floodline export host.flr --format jsonl | jq 'select(.table == \"disk\")'\n  \
        floodline export host.flr --format csv --table cgroup > cgroups.csv\n  \
        floodline export host.flr --format parquet -o host-tables/\n  \
        floodline export host.flr --format perfetto -o host.json\n  \
        floodline export host.flr --format flr --redact @redact.key -o shared.flr\n\n\
        ui.perfetto.dev opens host.json."
)]
pub(crate) struct Export {
    /// Recording to convert; - is standard input
    file: PathBuf,
    /// Format to convert to
    #[arg(long, value_enum)]
    format: ExportFormat,
    /// Convert only this table
    #[arg(long, value_name = "TABLE", value_parser = clap::builder::PossibleValuesParser::new(TABLES))]
    table: Option<String>,
    /// File to write, or folder for all tables of CSV and Parquet [default: -, standard output]
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,
    /// Overwrite existing files
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    redaction: Redaction,
    #[arg(skip)]
    redactor: Option<Redactor>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum ExportFormat {
    /// One file per table
    Parquet,
    /// One file per table, with a header line
    Csv,
    /// All tables, one JSON object per line
    Jsonl,
    /// Values over time, for ui.perfetto.dev or chrome://tracing
    Perfetto,
    /// A recording; add --redact to replace names
    Flr,
}

impl ExportFormat {
    fn extension(self) -> &'static str {
        match self {
            ExportFormat::Parquet => "parquet",
            ExportFormat::Csv => "csv",
            ExportFormat::Jsonl => "jsonl",
            ExportFormat::Perfetto => "json",
            ExportFormat::Flr => "flr",
        }
    }

    fn content(self) -> Content {
        match self {
            ExportFormat::Parquet | ExportFormat::Flr => Content::Binary,
            ExportFormat::Csv | ExportFormat::Jsonl | ExportFormat::Perfetto => Content::Text,
        }
    }
}

impl Run for Export {
    fn run(mut self, console: &mut Console) -> Result<Exit, CliError> {
        self.output = self.output.filter(|path| path != Path::new("-"));
        // An invalid key leaves no output behind.
        self.redactor = self.redaction.redactor()?;
        match (self.format, &self.table, &self.output) {
            (ExportFormat::Jsonl, ..) => self.json_lines(console)?,
            (ExportFormat::Perfetto, Some(_), _) => {
                return Err(CliError::usage("--table does not apply to a trace").hint("omit --table"));
            }
            (ExportFormat::Flr, Some(_), _) => {
                return Err(CliError::usage("--table does not apply to a recording").hint("omit --table"));
            }
            (ExportFormat::Flr, None, _) => self.recording(console)?,
            (ExportFormat::Perfetto, None, _) => self.trace(console)?,
            (_, Some(table), _) => self.one_table(table, console)?,
            (_, None, Some(folder)) => self.all_tables(folder, console)?,
            (format, None, None) => {
                return Err(CliError::usage(format!("{} stores one table per file", format.extension()))
                    .hint("add --table TABLE for one table")
                    .hint("add -o FOLDER for a folder with all of them"));
            }
        }
        Ok(Exit::Done)
    }
}

impl Export {
    fn json_lines(&self, console: &Console) -> Result<(), CliError> {
        let target = self.target();
        let input = self.input()?;
        let (out, pending) = self.open()?;
        let failed = |error: ExportError| failed(&target, &error, pending.left());
        let mut lines = JsonLines::new(out, self.table.as_deref()).map_err(failed)?;
        self.each(input, console, |record| lines.record(record).map_err(failed))?;
        lines.finish().map_err(failed)?;
        pending.commit()
    }

    fn trace(&self, console: &Console) -> Result<(), CliError> {
        let target = self.target();
        let input = self.input()?;
        let (out, pending) = self.open()?;
        let failed = |error: ExportError| failed(&target, &error, pending.left());
        let mut trace = PerfettoTrace::new(out);
        self.each(input, console, |record| trace.record(record).map_err(failed))?;
        trace.finish().map_err(failed)?;
        pending.commit()
    }

    fn recording(&self, console: &Console) -> Result<(), CliError> {
        let target = self.target();
        let failed = |error: EncodeError| output::failed(&target, &error);
        let mut input = self.input()?;
        let header = Header::new(input.every());
        let (out, pending) = self.open()?;
        let mut encoder = Encoder::new(out, header).map_err(failed)?;
        self.visit(&mut input, console, |record| encoder.record(record).map_err(failed))?;
        // The new file is whole: without this, it would not say what the old one lacks.
        for gap in input.losses() {
            encoder.record(&Record::Gap(gap)).map_err(failed)?;
        }
        encoder.finish().map(drop).map_err(failed)?;
        pending.commit()
    }

    fn one_table(&self, table: &str, console: &Console) -> Result<(), CliError> {
        let target = self.target();
        let input = self.input()?;
        let mut flattener = Flattener::default();
        let (out, pending) = self.open()?;
        let failed = |error: ExportError| failed(&target, &error, pending.left());
        let mut file = TableFile::start(self.format, out, table).map_err(failed)?;
        self.each(input, console, |record| flattener.record(record, Some(table), &mut file).map_err(failed))?;
        file.finish().map_err(failed)?;
        pending.commit()
    }

    fn all_tables(&self, folder: &Path, console: &Console) -> Result<(), CliError> {
        let shown = shown(folder).to_string();
        if folder.metadata().is_ok_and(|metadata| !metadata.is_dir()) {
            return Err(CliError::usage(format!("{shown} is a file; exporting all tables needs a folder"))
                .hint("add --table TABLE for one table")
                .hint("or choose another name for the folder"));
        }
        let input = self.input()?;
        std::fs::create_dir_all(folder).map_err(|error| CliError::write(&shown, &error))?;
        let mut flattener = Flattener::default();
        let mut tables = Folder { export: self, folder, files: BTreeMap::new(), refused: None };
        self.each(input, console, |record| match flattener.record(record, None, &mut tables) {
            Ok(()) => Ok(()),
            Err(error) => Err(tables.refused.take().unwrap_or_else(|| failed(&shown, &error, NO_TABLE))),
        })?;
        let count = human::plural(tables.files.len() as u64, "table", "tables");
        // All of them or none: a table that cannot be completed leaves none of the others either.
        let mut whole = Vec::new();
        for (file, pending) in tables.files.into_values() {
            whole.push(pending);
            file.finish().map_err(|error| failed(&shown, &error, NO_TABLE))?;
        }
        whole.into_iter().try_for_each(Pending::commit)?;
        console.note(&format!("wrote {count} to {shown}"));
        Ok(())
    }

    /// Opens the recording before anything is written. An invalid recording leaves no output behind, and the input is
    /// not overwritten while it is read.
    fn input(&self) -> Result<Input, CliError> {
        let input = Input::open(&self.file)?;
        let inode = |path: &Path| path.metadata().ok().map(|file| (file.dev(), file.ino()));
        match self.output.as_deref().and_then(inode) {
            Some(output) if inode(&self.file) == Some(output) => {
                Err(CliError::usage(format!("{} is both the input and the output", shown(&self.file)))
                    .hint("choose another name with -o"))
            }
            _ => Ok(input),
        }
    }

    /// Reads the recording with progress.
    fn each(
        &self,
        mut input: Input,
        console: &Console,
        take: impl FnMut(&Record) -> Result<(), CliError>,
    ) -> Result<(), CliError> {
        self.visit(&mut input, console, take)
    }

    fn visit(
        &self,
        input: &mut Input,
        console: &Console,
        mut take: impl FnMut(&Record) -> Result<(), CliError>,
    ) -> Result<(), CliError> {
        let mut progress = console.progress();
        let mut samples: u64 = 0;
        input.visit(|record| {
            if matches!(record, Record::Sample(_)) {
                samples += 1;
                progress.tell(|| format!("{samples} samples converted"));
            }
            let taken = match &self.redactor {
                Some(redactor) => take(&redactor.record(&record)),
                None => take(&record),
            };
            taken.map(|()| true).map_err(|error| {
                error.had_written(format!("{} converted", human::plural(samples, "sample was", "samples were")))
            })
        })?;
        input.tell_what_is_missing();
        Ok(())
    }

    fn open(&self) -> Result<(Box<dyn Write + Send>, Pending), CliError> {
        match &self.output {
            Some(path) => {
                let (file, pending) = whole::create(path, Existing::by_force(self.force))?;
                Ok((Box::new(std::io::BufWriter::new(file)), pending))
            }
            None => Ok((output::standard(self.format.content())?, Pending::none())),
        }
    }

    fn target(&self) -> String {
        self.output.as_ref().map_or_else(|| "standard output".to_owned(), |path| shown(path).to_string())
    }
}

/// `left` is what a failed write leaves, for a hint.
fn failed(target: &str, error: &ExportError, left: &'static str) -> CliError {
    match error.io() {
        Some(error) => CliError::write(target, error),
        None => CliError::cannot_observe(format!("cannot write {target}: {error}")),
    }
    .hint(left)
}

/// What is left where a table of a folder could not be written.
const NO_TABLE: &str = "no new table was left behind, and the files that were there are unchanged";

/// One table in the making.
enum TableFile<W: Write + Send> {
    Csv(CsvExport<W>),
    Parquet(ParquetExport<W>),
}

impl<W: Write + Send> TableFile<W> {
    fn start(format: ExportFormat, out: W, table: &str) -> Result<TableFile<W>, ExportError> {
        match format {
            ExportFormat::Parquet => ParquetExport::new(out, table).map(TableFile::Parquet),
            ExportFormat::Csv | ExportFormat::Jsonl | ExportFormat::Perfetto | ExportFormat::Flr => {
                CsvExport::new(out, table).map(TableFile::Csv)
            }
        }
    }

    fn finish(self) -> Result<(), ExportError> {
        match self {
            TableFile::Csv(export) => export.finish(),
            TableFile::Parquet(export) => export.finish(),
        }
    }
}

impl<W: Write + Send> RowWriter for TableFile<W> {
    fn row(&mut self, table: &'static str, cells: &[Cell]) -> Result<(), ExportError> {
        match self {
            TableFile::Csv(export) => export.row(table, cells),
            TableFile::Parquet(export) => export.row(table, cells),
        }
    }
}

/// A folder with a file for every table that has rows.
struct Folder<'a> {
    export: &'a Export,
    folder: &'a Path,
    files: BTreeMap<&'static str, (TableFile<File>, Pending)>,
    /// The error of creating a file, reported instead of the writer's error.
    refused: Option<CliError>,
}

impl RowWriter for Folder<'_> {
    fn row(&mut self, table: &'static str, cells: &[Cell]) -> Result<(), ExportError> {
        if !self.files.contains_key(table) {
            let format = self.export.format;
            let path = self.folder.join(table).with_extension(format.extension());
            let (file, pending) = whole::create(&path, Existing::by_force(self.export.force)).map_err(|error| {
                self.refused = Some(error);
                ExportError::Write(std::io::Error::other("refused"))
            })?;
            self.files.insert(table, (TableFile::start(format, file, table)?, pending));
        }
        match self.files.get_mut(table) {
            Some((file, _)) => file.row(table, cells),
            None => Ok(()),
        }
    }
}
