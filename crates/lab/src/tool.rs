// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs of this machine that the lab runs: QEMU, the package manager, mkfs, decompressors. Each call
//! ends with its output or with an error that says which program and, where it is missing, what to
//! install. Nothing here knows what the programs are for.

use rustix::process::{Pid, Signal, kill_process_group};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

/// A program did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// It is not there.
    #[error("{tool} is not installed (Debian and Ubuntu: apt install {package})")]
    Missing {
        /// Name of the program.
        tool: String,
        /// Package that has it.
        package: &'static str,
    },
    /// It could not be started or waited for.
    #[error("{tool} could not be run: {cause}")]
    NotRun {
        /// Name of the program.
        tool: String,
        /// Why.
        cause: io::Error,
    },
    /// It ended with an error.
    #[error("{tool} failed ({status}): {says}")]
    Failed {
        /// Name of the program.
        tool: String,
        /// How it ended.
        status: String,
        /// The end of what it printed.
        says: String,
    },
    /// Somebody asked to end.
    #[error("interrupted while {tool} ran")]
    Interrupted {
        /// Name of the program.
        tool: String,
    },
}

/// Programs and the packages that have them; what the lab may run, and nothing else.
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

/// The package of a program, as Debian calls it.
pub fn package_of(tool: &str) -> &'static str {
    PACKAGES.iter().find(|(name, _)| *name == tool).map_or("the package that has it", |(_, package)| package)
}

/// Directories that hold administrators' programs and are often missing in a person's `PATH`.
const SBIN: &[&str] = &["/usr/sbin", "/sbin", "/usr/local/sbin"];

/// A program by name, found also where only root's `PATH` leads.
pub fn tool(name: &str) -> Command {
    let mut command = Command::new(path_of(name).as_deref().unwrap_or(name.as_ref()));
    command.stdin(Stdio::null()).env("LC_ALL", "C");
    command
}

/// What binds a program to the life of another.
const SETPRIV: &str = "setpriv";
const PDEATHSIG: &str = "--pdeathsig";

/// The same, for programs that run long: its process dies with the thread of ours that started it, even one
/// that is killed, where the system has a program that arranges it.
pub fn bound(name: &str) -> Command {
    let (Some(setpriv), Some(program)) = (path_of(SETPRIV), path_of(name)) else { return tool(name) };
    let mut command = Command::new(setpriv);
    command.args([PDEATHSIG, "KILL"]).arg(program).stdin(Stdio::null()).env("LC_ALL", "C");
    command
}

/// Where a program is.
pub fn path_of(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let dirs = std::env::split_paths(&path).chain(SBIN.iter().map(PathBuf::from));
    dirs.map(|dir| dir.join(name)).find(|path| path.is_file())
}

/// Whether a program is there.
pub fn is_there(name: &str) -> bool {
    path_of(name).is_some()
}

/// Runs a program to its end and returns what it printed.
pub fn output(command: &mut Command) -> Result<Vec<u8>, ToolError> {
    let Output { status, stdout, stderr } = command.output().map_err(|cause| not_run(command, cause))?;
    if status.success() {
        return Ok(stdout);
    }
    Err(ToolError::Failed { tool: name(command), status: status.to_string(), says: tail(&stderr, &stdout) })
}

/// How often a program that runs long is looked after.
const LOOK: Duration = Duration::from_millis(20);

/// Runs a program that may run long to its end, or until somebody wants to end, which `is_asked` says and is asked
/// for again and again. Whoever types Ctrl-C interrupts us, not the program.
pub fn finish(command: &mut Command, mut is_asked: impl FnMut() -> bool) -> Result<(), ToolError> {
    command.process_group(0).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|cause| not_run(command, cause))?;
    // Read beside it: it waits where nobody reads.
    let says = child.stderr.take().map(|stderr| std::thread::spawn(move || last_of(stderr)));
    let status = loop {
        if let Some(status) = child.try_wait().map_err(|cause| not_run(command, cause))? {
            break status;
        }
        if is_asked() {
            // With what it runs itself. Both fail only when it has ended already.
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

/// A program whose output is read while it runs. It is ended when this is dropped.
#[derive(Debug)]
pub struct Piped {
    child: Child,
    stdout: ChildStdout,
    says: Option<JoinHandle<Vec<u8>>>,
    tool: String,
}

/// Starts a program whose output is to be read; its input is a file, from where that is now.
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

/// What a program may put out behind what was wanted of it.
const TRAILING_MAX: u64 = 64 << 20;

impl Piped {
    /// Waits for its end, which must be a good one.
    pub fn finish(mut self) -> Result<(), ToolError> {
        let failed = |tool: &str, cause| ToolError::NotRun { tool: tool.to_owned(), cause };
        let rest = (&mut self.stdout).take(TRAILING_MAX);
        io::copy(&mut { rest }, &mut io::sink()).map_err(|cause| failed(&self.tool, cause))?;
        // One that puts out more is ended by the drop.
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
        // Both fail only when it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What is kept of a program's last words, bytes.
const SAYS_MAX: usize = 8 << 10;

/// Reads to the end and keeps the last of it. What a program said is a help, not a need: an error ends the reading.
fn last_of(mut from: impl Read) -> Vec<u8> {
    let (mut says, mut buffer) = (Vec::new(), [0; 4096]);
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        says.extend_from_slice(buffer.get(..length).unwrap_or_default());
        says.drain(..says.len().saturating_sub(SAYS_MAX));
    }
    says
}

/// Runs a program that turns what it is given into what it returns, such as one that uncompresses.
pub fn filter(command: &mut Command, input: Vec<u8>) -> Result<Vec<u8>, ToolError> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|cause| not_run(command, cause))?;
    let feed = child.stdin.take().map(|mut stdin| {
        // A reader that gives up early says why itself.
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

/// The error of a program that could not be started.
pub fn not_run(command: &Command, cause: io::Error) -> ToolError {
    let tool = name(command);
    match cause.kind() {
        io::ErrorKind::NotFound => ToolError::Missing { package: package_of(&tool), tool },
        _ => ToolError::NotRun { tool, cause },
    }
}

/// Name of the program, without what it is bound by.
fn name(command: &Command) -> String {
    let own = |program: &OsStr| Path::new(program).file_name().unwrap_or(program).to_string_lossy().into_owned();
    let mut bound = command.get_args().skip_while(|argument| *argument != PDEATHSIG).skip(2);
    match (own(command.get_program()).as_str(), bound.next()) {
        (SETPRIV, Some(program)) => own(program),
        (program, _) => program.to_owned(),
    }
}

/// The last line that says something, in printable characters.
fn tail(stderr: &[u8], stdout: &[u8]) -> String {
    let text = [stdout, stderr].map(String::from_utf8_lossy).concat();
    let line = text.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("it printed nothing");
    printable(line, 300)
}

/// The start of a text from outside as a terminal may show it: without control characters and without those that
/// turn the direction of writing or show nothing.
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
