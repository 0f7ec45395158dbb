// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files of a fleet: paths, folders and patterns → a list of recordings, each judged by a thread of its own. One recording
//! per thread is in memory at a time. A file that cannot be read is a row.

use crate::console::Progress;
use crate::error::CliError;
use crate::input::{neighbour, shown};
use crate::interrupt::Interrupt;
use crate::workers;
use floodline_fleet::{Cause, Change, Depth, Row, Unreadable, preflight_of, thousands};
use rustix::fs::{FileType, OFlags};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::ffi::OsStringExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// Most files of one run.
const FILES_MAX: usize = 10_000_000;
/// Deepest folder below one that is named.
const DEPTH_MAX: usize = 64;
/// Longest line of a list of paths.
const LINE_MAX: usize = 8192;

/// What is to be judged.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Files, in order and each once.
    pub(crate) files: Vec<PathBuf>,
    /// Folders that could not be read, and why.
    pub(crate) unreadable: Vec<(PathBuf, String)>,
    /// Files in folders that do not end in `.flr`.
    pub(crate) others: u64,
    known: BTreeSet<PathBuf>,
}

/// A path of the command line that does not exist: a mistyped name is not a host without an answer.
fn absent(path: &Path) -> CliError {
    let told = CliError::usage(format!("cannot open {}: no such file or folder", shown(path)));
    match neighbour(path) {
        Some(near) => told.hint(format!("did you mean {near}?")),
        None => told.hint("name recordings, folders of them, or a quoted pattern such as 'fleet/*.flr'"),
    }
}

impl Found {
    /// Finds the files of arguments: files, folders, patterns, and `-` for a list on standard input.
    pub(crate) fn of(paths: &[PathBuf]) -> Result<Found, CliError> {
        let mut found = Found::default();
        for path in paths {
            match path.to_str() {
                Some("-") => found.add_list(&mut io::stdin().lock())?,
                Some(pattern) if !path.exists() && pattern.contains(['*', '?', '[']) => found.add_pattern(pattern)?,
                _ if path.symlink_metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) => {
                    return Err(absent(path));
                }
                _ => found.add(path)?,
            }
        }
        if found.files.is_empty() && found.unreadable.is_empty() {
            let others = match found.others {
                0 if paths.iter().all(|path| path.as_os_str() == "-") => {
                    "nothing to judge: standard input names no file".to_owned()
                }
                0 => "nothing to judge: the folders contain no file".to_owned(),
                others => format!("nothing to judge: none of {} files ends in .flr", thousands(others)),
            };
            return Err(CliError::usage(others)
                .hint("collect recordings: ssh HOST floodline record --for 60s -o - > fleet/HOST.flr")
                .hint("then: floodline preflight fleet --cgroup v2"));
        }
        Ok(found)
    }

    fn add(&mut self, path: &Path) -> Result<(), CliError> {
        if path.is_dir() { self.add_folder(path, 0) } else { self.push(path.to_owned()) }
    }

    fn push(&mut self, path: PathBuf) -> Result<(), CliError> {
        if self.files.len() >= FILES_MAX {
            return Err(CliError::usage(format!("more than {} files", thousands(FILES_MAX as u64)))
                .hint("judge them in parts, and put the tables together"));
        }
        if self.known.insert(path.clone()) {
            self.files.push(path);
        }
        Ok(())
    }

    /// Adds recordings of a folder in order of name. Links to folders are not followed.
    fn add_folder(&mut self, folder: &Path, depth: usize) -> Result<(), CliError> {
        let entries = std::fs::read_dir(folder).and_then(|entries| entries.collect::<io::Result<Vec<_>>>());
        let mut entries = match entries {
            Ok(_) if depth > DEPTH_MAX => {
                self.unreadable.push((folder.to_owned(), "folders are nested too deep".to_owned()));
                return Ok(());
            }
            Ok(entries) => entries,
            Err(error) => {
                self.unreadable.push((folder.to_owned(), error.to_string()));
                return Ok(());
            }
        };
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            let path = entry.path();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                self.add_folder(&path, depth + 1)?;
            } else if path.extension().is_some_and(|end| end == "flr") {
                self.push(path)?;
            } else {
                self.others += 1;
            }
        }
        Ok(())
    }

    fn add_pattern(&mut self, pattern: &str) -> Result<(), CliError> {
        let wrong = |why: String| {
            CliError::usage(format!("{}: {why}", shown(Path::new(pattern))))
                .hint("e.g. 'fleet/*.flr', or name the folder")
        };
        let matches = glob::glob(pattern).map_err(|error| wrong(error.to_string()))?;
        let before = self.files.len();
        for path in matches {
            match path {
                Ok(path) => self.add(&path)?,
                Err(error) => self.unreadable.push((error.path().to_owned(), error.error().to_string())),
            }
        }
        if self.files.len() == before && self.unreadable.is_empty() {
            return Err(wrong("no file matches".to_owned()));
        }
        Ok(())
    }

    /// Adds paths, one a line. A line that begins with # is a comment.
    fn add_list(&mut self, list: &mut impl BufRead) -> Result<(), CliError> {
        let unreadable = |error: io::Error| CliError::usage(format!("cannot read standard input: {error}"));
        loop {
            let mut line = Vec::new();
            let length = list.by_ref().take(LINE_MAX as u64).read_until(b'\n', &mut line).map_err(unreadable)?;
            if length == 0 {
                return Ok(());
            }
            if length >= LINE_MAX || line.contains(&0) {
                return Err(CliError::usage("standard input is not a list of paths, one a line")
                    .hint("find fleet -name '*.flr' | floodline preflight - --cgroup v2"));
            }
            while line.last().is_some_and(u8::is_ascii_whitespace) {
                line.pop();
            }
            if !line.is_empty() && line.first() != Some(&b'#') {
                self.add(Path::new(&std::ffi::OsString::from_vec(line)))?;
            }
        }
    }
}

/// Opens a recording, and nothing that could block or be used up by reading.
fn open(path: &Path) -> Result<File, Unreadable> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let of_errno = |errno: rustix::io::Errno| Unreadable::of_io(&errno.into());
    // Opening some devices does harm: what a name stands for is looked at before.
    let stat = rustix::fs::stat(path).map_err(of_errno)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => {
            rustix::fs::open(path, flags, rustix::fs::Mode::empty()).map(File::from).map_err(of_errno)
        }
        FileType::Fifo => Err(Unreadable::not_a_file("a pipe")),
        FileType::Socket => Err(Unreadable::not_a_file("a socket")),
        FileType::Directory => Err(Unreadable::not_a_file("a folder")),
        _ => Err(Unreadable::not_a_file("a device")),
    }
}

/// The row of one file. A bug of ours in one file is that file's row.
pub(crate) fn judge(path: &Path, change: &Change, depth: Depth, go_on: &(dyn Fn() -> bool + Sync)) -> Row {
    let name = path.to_string_lossy();
    if let Err(why) = open(path) {
        return why.row(&name, change);
    }
    let opened = || {
        let file = open(path).map_err(|why| io::Error::other(why.why))?;
        Ok(BufReader::with_capacity(1 << 16, file))
    };
    let judged = catch_unwind(AssertUnwindSafe(|| preflight_of(opened, &name, change, depth, go_on)));
    judged.unwrap_or_else(|_| {
        Row::not_known(&name, change, Cause::Failed, "Floodline failed on this file. This is a bug.".to_owned())
    })
}

/// Judges all files with a number of threads. `None` stands for files that an interrupt left out.
pub(crate) fn judge_all(
    files: &[PathBuf],
    change: &Change,
    depth: Depth,
    jobs: usize,
    interrupt: &Interrupt,
    progress: &mut Progress,
) -> Vec<Option<Row>> {
    let go_on = || !interrupt.is_asked();
    // A row that an interrupt cut short would be another answer.
    let row = |path: &PathBuf| go_on().then(|| judge(path, change, depth, &go_on)).filter(|_| go_on());
    let mut simulated: u64 = 0;
    workers::each(files, jobs, row, |done, row| {
        simulated += u64::from(row.is_some_and(|row| row.tier == 2));
        progress.tell(|| {
            let twins = if simulated > 0 { format!(", {} simulated", thousands(simulated)) } else { String::new() };
            format!("{} of {} files{twins}{}", thousands(done.items as u64), thousands(done.of as u64), done.left())
        });
    })
}
