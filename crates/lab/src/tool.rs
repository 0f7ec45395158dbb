// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs programs of this machine for the lab: QEMU, the package manager, mkfs, decompressors. Each call
//! returns the program's output or an error that names the program and, if it is missing, the package to
//! install. The purpose of a program is up to the caller.

use rustix::process::{Pid, Signal, kill_process_group};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

/// A program could not be run, failed, or was interrupted.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// The program is not installed.
    #[error("{tool} is not installed (Debian and Ubuntu: apt install {package})")]
    Missing {
        /// Name of the program.
        tool: String,
        /// Package that contains it.
        package: &'static str,
    },
    /// The program could not be started or waited for.
    #[error("{tool} could not be run: {cause}")]
    NotRun {
        /// Name of the program.
        tool: String,
        /// The cause.
        cause: io::Error,
    },
    /// The program exited with an error.
    #[error("{tool} failed ({status}): {says}")]
    Failed {
        /// Name of the program.
        tool: String,
        /// Its exit status.
        status: String,
        /// The last line it printed.
        says: String,
    },
    /// The caller interrupted the program.
    #[error("interrupted while {tool} ran")]
    Interrupted {
        /// Name of the program.
        tool: String,
    },
}

/// The programs that the lab may run, with their packages.
const PACKAGES: &[(&str, &str)] = &[
    ("apt-get", "apt"),
    ("apt-cache", "apt"),
    ("dpkg-deb", "dpkg"),
    ("gzip", "gzip"),
    ("losetup", "util-linux"),
    ("mkfs.btrfs", "btrfs-progs"),
    ("mkfs.ext4", "e2fsprogs"),
    ("mkfs.xfs", "xfsprogs"),
    ("qemu-system-aarch64", "qemu-system-arm"),
    ("qemu-system-x86_64", "qemu-system-x86"),
    ("setpriv", "util-linux"),
    ("xz", "xz-utils"),
    ("zstd", "zstd"),
];

/// Returns the Debian package of a program.
pub fn package_of(tool: &str) -> &'static str {
    PACKAGES.iter().find(|(name, _)| *name == tool).map_or("the package that has it", |(_, package)| package)
}

/// Directories of administration programs, which are often missing in a user's `PATH`.
const SBIN: &[&str] = &["/usr/sbin", "/sbin", "/usr/local/sbin"];

/// A command for a program by name, searched in `PATH` and in [`SBIN`].
pub fn tool(name: &str) -> Command {
    let mut command = Command::new(path_of(name).as_deref().unwrap_or(name.as_ref()));
    command.stdin(Stdio::null()).env("LC_ALL", "C");
    command
}

/// Starts a program that is killed when its parent dies.
const SETPRIV: &str = "setpriv";
const PDEATHSIG: &str = "--pdeathsig";

/// Like [`tool`], for programs that run long. If `setpriv` is installed, the kernel kills the process when the
/// thread that started it dies, also by SIGKILL.
pub fn bound(name: &str) -> Command {
    let (Some(setpriv), Some(program)) = (path_of(SETPRIV), path_of(name)) else { return tool(name) };
    let mut command = Command::new(setpriv);
    command.args([PDEATHSIG, "KILL"]).arg(program).stdin(Stdio::null()).env("LC_ALL", "C");
    command
}

/// Returns the path of a program.
pub fn path_of(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let dirs = std::env::split_paths(&path).chain(SBIN.iter().map(PathBuf::from));
    dirs.map(|dir| dir.join(name)).find(|path| path.is_file())
}

/// Returns true if a program is installed.
pub fn is_there(name: &str) -> bool {
    path_of(name).is_some()
}

/// Runs a program to its end and returns its standard output.
pub fn output(command: &mut Command) -> Result<Vec<u8>, ToolError> {
    let Output { status, stdout, stderr } = command.output().map_err(|cause| not_run(command, cause))?;
    if status.success() {
        return Ok(stdout);
    }
    Err(ToolError::Failed { tool: name(command), status: status.to_string(), says: tail(&stderr, &stdout) })
}

/// How often a program that runs long is polled.
const LOOK: Duration = Duration::from_millis(20);

/// Runs a program that may run long to its end, or until `is_asked` returns true, which is polled every [`LOOK`].
/// The program has a process group of its own, so Ctrl-C reaches floodline and not the program.
pub fn finish(command: &mut Command, mut is_asked: impl FnMut() -> bool) -> Result<(), ToolError> {
    command.process_group(0).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|cause| not_run(command, cause))?;
    // Standard error is read in a thread: the program would block on a full pipe.
    let says = child.stderr.take().map(|stderr| std::thread::spawn(move || last_of(stderr)));
    let status = loop {
        if let Some(status) = child.try_wait().map_err(|cause| not_run(command, cause))? {
            break status;
        }
        if is_asked() {
            // Kills the program's children too. Both calls fail only if the program has exited already.
            let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
            let _ = group.map(|group| kill_process_group(group, Signal::KILL));
            let _ = child.wait();
            return Err(ToolError::Interrupted { tool: name(command) });
        }
        std::thread::sleep(LOOK);
    };
    if status.success() {
        return Ok(());
    }
    let says = says.and_then(|says| says.join().ok()).unwrap_or_default();
    Err(ToolError::Failed { tool: name(command), status: status.to_string(), says: tail(&says, &[]) })
}

/// A program whose output is read while it runs. Dropping it kills the program.
#[derive(Debug)]
pub struct Piped {
    child: Child,
    stdout: ChildStdout,
    says: Option<JoinHandle<Vec<u8>>>,
    tool: String,
}

/// Starts a program whose output is to be read. Its input is a file, from the file's current position.
pub fn piped(command: &mut Command, input: Option<File>) -> Result<Piped, ToolError> {
    command.stdin(input.map_or_else(Stdio::null, Stdio::from)).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|cause| not_run(command, cause))?;
    let says = child.stderr.take().map(|stderr| std::thread::spawn(move || last_of(stderr)));
    match child.stdout.take() {
        Some(stdout) => Ok(Piped { child, stdout, says, tool: name(command) }),
        None => Err(not_run(command, io::ErrorKind::BrokenPipe.into())),
    }
}

impl Read for Piped {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stdout.read(buffer)
    }
}

/// Most bytes a program may print after the output that the caller read.
const TRAILING_MAX: u64 = 64 << 20;

impl Piped {
    /// Waits for the program to exit. Returns an error if it failed.
    pub fn finish(mut self) -> Result<(), ToolError> {
        let failed = |tool: &str, cause| ToolError::NotRun { tool: tool.to_owned(), cause };
        let rest = (&mut self.stdout).take(TRAILING_MAX);
        io::copy(&mut { rest }, &mut io::sink()).map_err(|cause| failed(&self.tool, cause))?;
        // A program that prints more is killed by the drop.
        let status = match self.stdout.read(&mut [0]) {
            Ok(0) => self.child.wait().map_err(|cause| failed(&self.tool, cause))?,
            Ok(_) => return Err(failed(&self.tool, io::ErrorKind::FileTooLarge.into())),
            Err(cause) => return Err(failed(&self.tool, cause)),
        };
        if status.success() {
            return Ok(());
        }
        let says = self.says.take().and_then(|says| says.join().ok()).unwrap_or_default();
        Err(ToolError::Failed { tool: self.tool.clone(), status: status.to_string(), says: tail(&says, &[]) })
    }
}

impl Drop for Piped {
    fn drop(&mut self) {
        // Both fail only if the program has exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Bytes kept of the end of a program's standard error.
const SAYS_MAX: usize = 8 << 10;

/// Reads to the end and keeps the last [`SAYS_MAX`] bytes. The text only explains a failure, so a read error ends it.
fn last_of(mut from: impl Read) -> Vec<u8> {
    let (mut says, mut buffer) = (Vec::new(), [0; 4096]);
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        says.extend_from_slice(buffer.get(..length).unwrap_or_default());
        says.drain(..says.len().saturating_sub(SAYS_MAX));
    }
    says
}

/// Runs a filter on `input` and returns its output, such as a decompressor.
pub fn filter(command: &mut Command, input: Vec<u8>) -> Result<Vec<u8>, ToolError> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|cause| not_run(command, cause))?;
    let feed = child.stdin.take().map(|mut stdin| {
        // A program that stops reading early reports the cause itself.
        std::thread::spawn(move || drop(stdin.write_all(&input)))
    });
    let output = child.wait_with_output().map_err(|cause| not_run(command, cause));
    if let Some(feed) = feed {
        let _ = feed.join();
    }
    let Output { status, stdout, stderr } = output?;
    match status.success() {
        true => Ok(stdout),
        false => Err(ToolError::Failed { tool: name(command), status: status.to_string(), says: tail(&stderr, &[]) }),
    }
}

/// Returns the error of a program that could not be started.
pub fn not_run(command: &Command, cause: io::Error) -> ToolError {
    let tool = name(command);
    match cause.kind() {
        io::ErrorKind::NotFound => ToolError::Missing { package: package_of(&tool), tool },
        _ => ToolError::NotRun { tool, cause },
    }
}

/// Returns the program's name, without the `setpriv` that starts it.
fn name(command: &Command) -> String {
    let own = |program: &OsStr| Path::new(program).file_name().unwrap_or(program).to_string_lossy().into_owned();
    let mut bound = command.get_args().skip_while(|argument| *argument != PDEATHSIG).skip(2);
    match (own(command.get_program()).as_str(), bound.next()) {
        (SETPRIV, Some(program)) => own(program),
        (program, _) => program.to_owned(),
    }
}

/// Returns the last non-empty line, in printable characters.
fn tail(stderr: &[u8], stdout: &[u8]) -> String {
    let text = [stdout, stderr].map(String::from_utf8_lossy).concat();
    let line = text.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("it printed nothing");
    printable(line, 300)
}

/// Returns the first characters of an untrusted text in a form safe for a terminal: without control characters,
/// invisible characters, and characters that change the writing direction.
pub(crate) fn printable(text: &str, characters: usize) -> String {
    let is_hidden = |c: char| matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    text.chars().filter(|c| !c.is_control() && !is_hidden(*c)).take(characters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_names_its_package() {
        let missing = not_run(&Command::new("mkfs.xfs"), io::ErrorKind::NotFound.into());
        assert_eq!(missing.to_string(), "mkfs.xfs is not installed (Debian and Ubuntu: apt install xfsprogs)");
    }

    #[test]
    fn a_failed_program_is_quoted_with_its_last_words() {
        let failed = output(tool("sh").args(["-c", "echo first; echo 'no \x1b[31mspace' >&2; exit 3"])).unwrap_err();
        assert_eq!(failed.to_string(), "sh failed (exit status: 3): no [31mspace");
        assert_eq!(output(tool("sh").args(["-c", "printf ok"])).unwrap(), b"ok");
    }

    #[test]
    fn a_program_that_runs_long_ends_by_itself_or_with_the_wish_to_end() {
        let run = |script: &str, is_asked: bool| {
            let ended = finish(bound("sh").args(["-c", script]), || is_asked);
            ended.map_err(|error| error.to_string()).err().unwrap_or_default()
        };
        assert_eq!(run("exit 0", false), "");
        // More than a pipe holds.
        assert_eq!(run("seq 100000 >&2; exit 3", false), "sh failed (exit status: 3): 100000");
        assert_eq!(run("sleep 600; true", true), "interrupted while sh ran");
    }
}
