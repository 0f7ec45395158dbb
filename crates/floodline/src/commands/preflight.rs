// SPDX-License-Identifier: MIT OR Apache-2.0
//! `floodline preflight PATHS… --cgroup v2 --kernel 6.12 --set KEY=VALUE`: which hosts of a fleet a change will make suffer.
//! Wiring only: rows are made by `floodline_fleet`. Nothing of this host is read or changed.

use super::Run;
use crate::asked::planned;
use crate::console::{Console, Format};
use crate::copies::are_equal;
use crate::error::CliError;
use crate::exit::Exit;
use crate::fleet::{Found, judge_all};
use crate::interrupt::Interrupt;
use crate::memory::keep_freed;
use crate::output::{self, Existing};
use crate::{whole, workers};
use floodline_fleet::{
    Cause, Change, Depth, NotAChange, Row, Summary, Unreadable, Verdict, keep_latest, note_copies, tell_apart,
    thousands,
};
use floodline_record::human;
use floodline_record::nearest::nearest;
use floodline_record::text::Text;
use floodline_view::export::ExportError;
use floodline_view::preflight as view;
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::num::NonZeroUsize;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Predict from recordings which hosts of a fleet will suffer from a change
#[derive(clap::Parser)]
#[command(
    name = "preflight",
    after_help = "Every host gets one of four answers: SUFFERS, TIGHT (it does not suffer, but its margin is small), FINE, \
        or UNKNOWN with the cause and the next command. Hosts are grouped by cause. Tier 1 is arithmetic: the dirty limit of every cgroup under the change, compared \
        with the most unwritten data that was seen. Tier 2 simulates the hosts that tier 1 flags or leaves within a \
        factor of two of a limit, and 1 % of the others as a control. Margin is the unwritten data that fits before writers are \
        slowed, divided by the most that was seen: below 1, writers are slowed. Severity 1 is just noticeable, 10 is ten times that.\n\n\
        Example of how to collect recordings:\n  \
        mkdir -p fleet\n  \
        for h in $(cat hosts); do\n    \
        ssh $h floodline record --for 60s -o - > fleet/$h.flr\n  \
        done\n\n\
        Examples:\n  \
        floodline preflight fleet --cgroup v2 --kernel 6.12\n  \
        floodline preflight 'fleet/*.flr' --set vm.dirty_ratio=10 -o hosts.parquet\n  \
        find fleet -name '*.flr' | floodline preflight - --memory 8G --tier 1\n  \
        floodline preflight fleet --cgroup v2 --fail-on suffers \\\n    \
        --accept cgroup-dirty-limit@web17"
)]
pub(crate) struct Preflight {
    /// Recordings, folders of them, or quoted patterns; - reads a list of paths from standard input, one a line; # begins
    /// a comment line
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// Setting to change, as in floodline predict; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<String>,
    /// Kernel version to move to; a series such as 6.12 means its newest known release
    #[arg(long, value_name = "VERSION")]
    kernel: Option<String>,
    /// Cgroup version to move to: v2 or v1
    #[arg(long, value_name = "VERSION")]
    cgroup: Option<String>,
    /// Memory that each host will have, such as 8G
    #[arg(long, value_name = "SIZE")]
    memory: Option<String>,
    /// Depth of the prediction: 1 is arithmetic only, 2 also simulates hosts that are near a limit
    #[arg(long, value_name = "TIER", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=2))]
    tier: u8,
    /// Share of the other hosts to simulate as a control, chosen by a hash of the host's name
    #[arg(long, value_name = "PERCENT", default_value = "1%", value_parser = share)]
    control: f64,
    /// Number of concurrent files [default: one per CPU]
    #[arg(long, value_name = "N", value_parser = workers::parse_jobs)]
    jobs: Option<NonZeroUsize>,
    /// Exit with code 1 if a host has this answer: suffers, tight (or suffers), not-known (UNKNOWN); with suffers
    /// or tight, exit with code 3 if no host has an answer; may be repeated
    #[arg(long = "fail-on", value_name = "ANSWER", value_enum, value_delimiter = ',')]
    fail_on: Vec<FailOn>,
    /// Accept this finding: CAUSE@HOST, or CAUSE for every host; may be repeated
    #[arg(long = "accept", value_name = "KEY")]
    accepted: Vec<String>,
    /// File with accepted findings, one a line; # begins a comment
    #[arg(long = "accept-file", value_name = "FILE")]
    accept_file: Option<PathBuf>,
    /// Save a table with one row per file: .parquet, .csv or .json
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Also write one HTML page with the causes and the worst hosts
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Overwrite files that exist
    #[arg(long)]
    force: bool,
    /// Also print every host
    #[arg(long)]
    details: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum FailOn {
    /// A host suffers
    Suffers,
    /// A host suffers or has a small margin
    Tight,
    /// A host has no answer
    NotKnown,
}

impl FailOn {
    fn is_met(self, summary: &Summary) -> bool {
        match self {
            FailOn::Suffers => summary.suffers > 0,
            FailOn::Tight => summary.suffers + summary.tight > 0,
            FailOn::NotKnown => summary.not_known > 0,
        }
    }
}

impl From<NotAChange> for CliError {
    fn from(error: NotAChange) -> CliError {
        CliError::usage(&error).hint(&error.hint)
    }
}

/// What a table is written as, by the end of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Table {
    Csv,
    Json,
    Parquet,
}

impl Run for Preflight {
    fn run(self, console: &mut Console) -> Result<Exit, CliError> {
        let change =
            Change::parse(&self.settings, self.kernel.as_deref(), self.cgroup.as_deref(), self.memory.as_deref())?;
        if let Some(kernel) = &self.kernel {
            planned(kernel, "it is simulated", console)?;
        }
        let accepted = self.accepted()?;
        let kind = self.output.as_deref().map(kind).transpose()?;
        for path in self.output.iter().chain(&self.report) {
            output::refuse_existing(path, self.force)?;
            refuse_without_folder(path)?;
        }
        let found = Found::of(&self.paths)?;
        self.refuse_own_files(&found)?;
        let depth = match self.tier {
            1 => Depth::ARITHMETIC,
            _ => Depth { control: self.control, ..Depth::WHOLE },
        };
        let interrupt = Interrupt::watch()?;
        let jobs = self.jobs.or_else(|| std::thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get);
        let mut progress = console.progress_in_logs();
        keep_freed();
        let judged = judge_all(&found.files, &change, depth, jobs, &interrupt, &mut progress);
        drop(progress);
        let mut rows: Vec<Row> = judged.into_iter().flatten().collect();
        let left_out = found.files.len() - rows.len();
        rows.extend(found.unreadable.iter().map(|(folder, why)| {
            let name = folder.to_string_lossy();
            Unreadable::of_io(&io::Error::other(format!("folder: {why}"))).row(&name, &change)
        }));
        keep_latest(&mut rows);
        let copies = note_copies(&mut rows, |one, other| are_equal(one, other).unwrap_or(false));
        tell_apart(&mut rows);
        for row in &mut rows {
            row.accepted = row.verdict != Verdict::Fine && accepted.iter().any(|key| row.is_named_by(key));
        }
        let mut summary = Summary::of(&rows, change.label());
        summary.is_interrupted = left_out > 0;
        self.tell(console, &found, &accepted, &rows);
        if copies > 0 {
            let files =
                human::plural(copies as u64, "file is a byte-identical copy", "files are byte-identical copies");
            console.note(&format!("{files} of another one: each counts as a host"));
        }
        // What took long is shown where it cannot be kept, and kept where it cannot be shown.
        let kept = match (kind, &self.output) {
            (Some(kind), Some(path)) => self.keep(&summary, &rows, kind, path),
            _ => Ok(()),
        };
        let kept = kept.and(self.report.as_ref().map_or(Ok(()), |path| self.keep_page(&summary, &rows, path)));
        console.print(&match self.format {
            Format::Text => {
                let arguments = self.arguments();
                let table = self.output.as_ref().map(|path| human::quoted(&path.to_string_lossy()));
                let options = view::Options {
                    width: console.width(),
                    details: self.details,
                    arguments: &arguments,
                    each_host: table.as_deref().unwrap_or("add --details, or -o hosts.parquet"),
                };
                view::text(&summary, &rows, options)
            }
            Format::Json => view::json(&summary, &rows).map_err(CliError::bug)?,
        })?;
        kept.map_err(|error| error.hint("what was written is incomplete; the answer above is whole"))?;
        if left_out > 0 {
            return Err(CliError::cannot_observe(format!(
                "interrupted: {} of {} files were judged",
                thousands((found.files.len() - left_out) as u64),
                thousands(found.files.len() as u64)
            )));
        }
        if self.fail_on.iter().any(|fail_on| fail_on.is_met(&summary)) {
            return Ok(Exit::Findings);
        }
        let is_known = summary.groups.iter().any(|group| group.verdict != Verdict::NotKnown);
        if !self.fail_on.is_empty() && summary.not_known > 0 && !is_known {
            return Err(CliError::cannot_observe("no host has an answer, so --fail-on cannot pass")
                .hint("--details names the next command for each host")
                .hint("to let such hosts pass: --accept CAUSE"));
        }
        Ok(Exit::Done)
    }
}

impl Preflight {
    /// Keys of accepted findings.
    fn accepted(&self) -> Result<Vec<String>, CliError> {
        let mut keys = self.accepted.clone();
        if let Some(path) = &self.accept_file {
            let name = crate::input::shown(path);
            let mut text = String::new();
            File::open(path).and_then(|file| file.take(64 << 20).read_to_string(&mut text)).map_err(|error| {
                CliError::usage(format!("cannot read {name}: {error}"))
                    .hint("one key a line, such as dirty-cliff@web17")
            })?;
            let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
            keys.extend(lines.filter(|line| !line.is_empty()).map(str::to_owned));
        }
        for key in &keys {
            let cause = key.split('@').next().unwrap_or_default();
            if !Cause::ALL.iter().any(|known| known.name() == cause) {
                let known = Cause::ALL.iter().map(|known| known.name());
                let hint = nearest(cause, known).map_or_else(
                    || "the keys are shown by --details".to_owned(),
                    |near| format!("did you mean {near}?"),
                );
                return Err(CliError::usage(format!("no finding has the cause {}", Text::new(cause))).hint(hint));
            }
        }
        Ok(keys)
    }

    /// Refuses to write over a file that is read, and to write two results to one file.
    fn refuse_own_files(&self, found: &Found) -> Result<(), CliError> {
        let written: Vec<&PathBuf> = self.output.iter().chain(&self.report).collect();
        if let [table, page] = written[..]
            && (identity(table) == identity(page))
        {
            return Err(CliError::usage(format!("-o and --report are both {}", crate::input::shown(page)))
                .hint("give them two names, such as -o hosts.csv --report hosts.html"));
        }
        let exist: Vec<(&PathBuf, Identity)> =
            written.into_iter().map(|path| (path, identity(path))).filter(|(_, is)| is.inode.is_some()).collect();
        if exist.is_empty() {
            return Ok(());
        }
        for read in found.files.iter().chain(&self.accept_file) {
            let inode = identity(read).inode;
            if let Some((path, _)) = exist.iter().find(|(_, is)| is.inode == inode) {
                return Err(CliError::usage(format!("{} is both read and written", crate::input::shown(path)))
                    .hint("choose another name for the result"));
            }
        }
        Ok(())
    }

    /// The change as arguments of other commands.
    fn arguments(&self) -> String {
        let set = |setting: String| format!("--set {}", human::quoted(&setting));
        let mut words = Vec::new();
        words.extend(self.kernel.iter().map(|kernel| format!("--kernel {}", human::quoted(kernel))));
        words.extend(self.cgroup.iter().map(|cgroup| set(format!("cgroup={cgroup}"))));
        words.extend(self.memory.iter().map(|memory| set(format!("memory={memory}"))));
        words.extend(self.settings.iter().map(|setting| set(setting.clone())));
        words.join(" ")
    }

    fn tell(&self, console: &Console, found: &Found, accepted: &[String], rows: &[Row]) {
        if found.others > 0 {
            let (files, end) = if found.others == 1 { ("file", "does") } else { ("files", "do") };
            console.note(&format!("left out {} {files} that {end} not end in .flr", thousands(found.others)));
        }
        for key in accepted.iter().filter(|key| !rows.iter().any(|row| row.is_named_by(key))) {
            console.note(&format!("no host has the accepted finding {}", Text::new(key)));
        }
    }

    fn keep(&self, summary: &Summary, rows: &[Row], kind: Table, path: &Path) -> Result<(), CliError> {
        let target = output::called(path);
        let failed = |error: ExportError| match error.io() {
            Some(io) => CliError::write(&target, io),
            None => CliError::bug(format!("{target}: {error}")),
        };
        let (file, pending) = whole::create(path, Existing::by_force(self.force))?;
        let mut out = BufWriter::new(file);
        match kind {
            Table::Csv => view::table(rows).and_then(|table| table.csv(&mut out)).map_err(failed)?,
            Table::Parquet => view::table(rows).and_then(|table| table.parquet(&mut out)).map_err(failed)?,
            Table::Json => {
                let text = view::json(summary, rows).map_err(CliError::bug)?;
                out.write_all(text.as_bytes()).map_err(|error| CliError::write(&target, &error))?;
            }
        }
        out.flush().map_err(|error| CliError::write(&target, &error))?;
        pending.commit()
    }
}

impl Preflight {
    fn keep_page(&self, summary: &Summary, rows: &[Row], path: &Path) -> Result<(), CliError> {
        let html = floodline_view::page::fleet(summary, rows);
        let (mut out, pending) = whole::create(path, Existing::by_force(self.force))?;
        out.write_all(html.as_bytes()).map_err(|error| CliError::write(&output::called(path), &error))?;
        pending.commit()
    }
}

/// What a path stands for: a file, or a name in a folder.
#[derive(Debug, PartialEq, Eq)]
struct Identity {
    /// Device and number of the file; absent if it does not exist.
    inode: Option<(u64, u64)>,
    /// The name that a new file gets, and device and number of its folder.
    new: Option<(std::ffi::OsString, (u64, u64))>,
}

fn identity(path: &Path) -> Identity {
    let of = |path: &Path| path.metadata().ok().map(|file| (file.dev(), file.ino()));
    let inode = of(path).filter(|_| path.is_file());
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let new = || Some((path.file_name()?.to_owned(), of(folder)?));
    Identity { inode, new: if inode.is_none() { new() } else { None } }
}

/// Refuses a file in a folder that does not exist, before thousands of hosts are judged.
fn refuse_without_folder(path: &Path) -> Result<(), CliError> {
    match path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.is_dir()) {
        Some(folder) => {
            let (file, folder) = (crate::input::shown(path), crate::input::shown(folder));
            Err(CliError::usage(format!("cannot write {file}: no folder {folder}")).hint(format!("mkdir -p {folder}")))
        }
        None => Ok(()),
    }
}

fn kind(path: &Path) -> Result<Table, CliError> {
    match path.extension().and_then(|end| end.to_str()) {
        Some("csv") => Ok(Table::Csv),
        Some("json") => Ok(Table::Json),
        Some("parquet") => Ok(Table::Parquet),
        _ => Err(CliError::usage(format!("{}: unknown kind of table", crate::input::shown(path)))
            .hint("end its name in .parquet, .csv or .json")),
    }
}

/// Reads `1%` or `0.5`.
fn share(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>();
    match number {
        Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err("expected a percentage from 0% to 100%".to_owned()),
    }
}
