// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a real program as a child of its worker: writes its files, starts it as its user, waits for it and ends it. A
//! server starts in the setup and runs until the workload is over. A program with an exit code starts with its task
//! and ends it.

use super::clock::{later, now, until};
use super::error::{Failure, StepError};
use super::family;
use super::stop::Stop;
use floodline_record::units::Nanos;
use floodline_scenario::{RealProgram, Step, TaskCopy};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, kill_process, waitid};
use std::io::{self, PipeReader, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Time that a server has to become ready.
const READY_WAIT: Nanos = Nanos(60 * Nanos::SECOND.0);
/// Time that a program has to exit after SIGTERM.
const END_WAIT: Nanos = Nanos(10 * Nanos::SECOND.0);
/// How often a server is polled.
const SERVER_TICK: Nanos = Nanos(100_000_000);
/// How often a program that ends by itself is polled: the time of its end is a result.
const TICK: Nanos = Nanos(5_000_000);
/// Most bytes kept of a program's output.
const WORDS_MAX: usize = 4096;
/// Most lines of it in a failure message.
const LINES_MAX: usize = 3;

/// `PATH` of real programs.
const PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";
/// File with the machine's users.
const PASSWD: &str = "/etc/passwd";

/// A real program, ended when dropped.
pub(super) struct RunningProgram {
    child: Child,
    name: String,
    /// Expected exit code of a program that ends by itself.
    exit_code: Option<u8>,
    /// The end of its output.
    words: Arc<Mutex<Vec<u8>>>,
}

/// User and group of a program.
type Ids = Option<(u32, u32)>;

fn failed(error: StepError) -> Failure {
    Failure { step: "program".to_owned(), error }
}

/// Writes the files of a task's program, and starts it if it is a server.
pub(super) fn prepare(task: &TaskCopy) -> Result<Option<RunningProgram>, Failure> {
    let Some(program) = &task.program else { return Ok(None) };
    write_files(task, program).map_err(failed)?;
    if program.exit_code.is_some() {
        return Ok(None);
    }
    let mut running = start(program)?;
    running.until_ready(program.ready.as_deref()).map_err(failed)?;
    Ok(Some(running))
}

/// Starts a program.
pub(super) fn start(program: &RealProgram) -> Result<RunningProgram, Failure> {
    spawn(program).map_err(failed)
}

fn spawn(program: &RealProgram) -> Result<RunningProgram, StepError> {
    let words = program.arguments();
    let Some((name, arguments)) = words.split_first() else {
        return Err(StepError::Senseless("no program to run".to_owned()));
    };
    let (reader, writer) = io::pipe().map_err(|error| StepError::call("pipe", name, error))?;
    let also = writer.try_clone().map_err(|error| StepError::call("dup", name, error))?;
    let mut command = Command::new(name);
    command.args(arguments).env("PATH", PATH).envs(&program.env);
    command.stdin(Stdio::null()).stdout(writer).stderr(also);
    if let Some((uid, gid)) = ids(program)? {
        command.uid(uid).gid(gid);
    }
    let child = command.spawn().map_err(|error| StepError::call("exec", name, error))?;
    // Closes our copies of the write ends, so that the pipe ends with the program.
    drop(command);
    let words = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&words);
    std::thread::spawn(move || keep_end(reader, &kept));
    Ok(RunningProgram { child, name: name.clone(), exit_code: program.exit_code, words })
}

fn write_files(task: &TaskCopy, program: &RealProgram) -> Result<(), StepError> {
    let ids = ids(program)?;
    for (path, text) in &program.files {
        super::files::parents(path)?;
        std::fs::write(path, text).map_err(|error| StepError::call("write", path, error))?;
        give(path, ids)?;
    }
    task.setup.iter().try_for_each(|step| match step {
        Step::Mkdir(step) => give(&step.path, ids),
        _ => Ok(()),
    })
}

fn give(path: &str, ids: Ids) -> Result<(), StepError> {
    let Some((uid, gid)) = ids else { return Ok(()) };
    std::os::unix::fs::chown(path, Some(uid), Some(gid)).map_err(|error| StepError::call("chown", path, error))
}

fn ids(program: &RealProgram) -> Result<Ids, StepError> {
    let Some(user) = &program.user else { return Ok(None) };
    let passwd = std::fs::read_to_string(PASSWD).map_err(|error| StepError::call("read", PASSWD, error))?;
    match ids_in(&passwd, user) {
        Some(ids) => Ok(Some(ids)),
        None => Err(StepError::Senseless(format!("{PASSWD} has no user {user}"))),
    }
}

fn ids_in(passwd: &str, user: &str) -> Ids {
    let fields = |line: &str| {
        let mut fields = line.split(':');
        (fields.next()? == user).then_some(())?;
        Some((fields.nth(1)?.parse().ok()?, fields.next()?.parse().ok()?))
    };
    passwd.lines().find_map(fields)
}

/// Reads all output of a program, so that it never blocks on the pipe, and keeps the end.
fn keep_end(mut from: PipeReader, kept: &Mutex<Vec<u8>>) {
    let mut buffer = [0; 4096];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(buffer.get(..read).unwrap_or_default());
        let excess = kept.len().saturating_sub(WORDS_MAX);
        kept.drain(..excess);
    }
}

/// Joins the last lines of a program's output into one line.
fn last_lines(words: &[u8]) -> String {
    let text = String::from_utf8_lossy(words);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.get(lines.len().saturating_sub(LINES_MAX)..).unwrap_or_default().join("; ")
}

impl RunningProgram {
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn ends_by_itself(&self) -> bool {
        self.exit_code.is_some()
    }

    fn until_ready(&mut self, ready: Option<&str>) -> Result<(), StepError> {
        let deadline = later(now(), READY_WAIT);
        while ready.is_some_and(|path| !Path::new(path).exists()) {
            if let Some(status) = self.has_exited()? {
                return Err(self.ended(&status));
            }
            if now() >= deadline {
                let seconds = READY_WAIT.as_secs_f64();
                return Err(StepError::Senseless(format!("{} was not ready within {seconds} s", self.name)));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Returns the exit status if the program has exited. It is not reaped, so that its counters can still be read.
    fn has_exited(&self) -> Result<Option<WaitIdStatus>, StepError> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        let status = waitid(WaitId::Pid(Pid::from_child(&self.child)), options);
        status.map_err(|error| StepError::call("wait", &self.name, error))
    }

    /// Waits until the workload is over, or until the program exits if it is one that ends by itself.
    pub(super) fn wait(&mut self, stop: &Stop) -> Result<(), Failure> {
        let tick = if self.ends_by_itself() { TICK } else { SERVER_TICK };
        loop {
            match self.has_exited().map_err(failed)? {
                Some(status) if self.is_expected(&status) => return Ok(()),
                Some(status) => return Err(failed(self.ended(&status))),
                None => {}
            }
            if stop.sleep_until(later(now(), tick)) {
                break;
            }
        }
        match self.exit_code {
            Some(code) if self.has_exited().map_err(failed)?.is_none() => Err(failed(StepError::Senseless(format!(
                "{} still ran when the workload was over; it was to end by itself with exit code {code}",
                self.name
            )))),
            _ => Ok(()),
        }
    }

    fn is_expected(&self, status: &WaitIdStatus) -> bool {
        self.exit_code.is_some_and(|code| status.exit_status() == Some(code.into()))
    }

    /// Returns an error with the actual and the expected exit, and the program's last lines.
    fn ended(&self, status: &WaitIdStatus) -> StepError {
        let how = match (status.terminating_signal(), status.exit_status()) {
            (Some(signal), _) => format!("was killed by signal {signal}"),
            (None, Some(code)) => format!("ended by itself with exit code {code}"),
            (None, None) => "ended by itself".to_owned(),
        };
        let expected = self.exit_code.map_or(String::new(), |code| format!(", expected {code}"));
        // Gives the reader thread time to read the last output from the pipe.
        std::thread::sleep(Duration::from_millis(50));
        let words = last_lines(&self.words.lock().unwrap_or_else(PoisonError::into_inner));
        let words = if words.is_empty() { "it printed nothing".to_owned() } else { format!("its last words: {words}") };
        StepError::Senseless(format!("{} {how}{expected}; {words}", self.name))
    }
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        let asked = now();
        let is_over = || until(asked, now()) >= END_WAIT;
        signal(self.child.id(), Signal::TERM);
        while matches!(self.has_exited(), Ok(None)) && !is_over() {
            std::thread::sleep(Duration::from_millis(20));
        }
        // The processes it started are ended too.
        let others = || family::running(self.child.id());
        others().into_iter().for_each(|pid| signal(pid, Signal::TERM));
        while !others().is_empty() && !is_over() {
            std::thread::sleep(Duration::from_millis(20));
        }
        others().into_iter().for_each(|pid| signal(pid, Signal::KILL));
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn signal(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, signal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_the_ids_of_its_line() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\nweb:x:1000:1001::/:/bin/sh\nodd:x:many:0::/:\nshort:x\n";
        assert_eq!(ids_in(passwd, "web"), Some((1000, 1001)));
        assert_eq!(ids_in(passwd, "root"), Some((0, 0)));
        for unknown in ["we", "odd", "short", "x", ""] {
            assert_eq!(ids_in(passwd, unknown), None, "{unknown}");
        }
    }

    #[test]
    fn last_words_are_the_last_lines_in_one() {
        assert_eq!(last_lines(b"a\n\n b\r\nc\nd\n"), "b; c; d");
        assert_eq!(last_lines(b"\n \n"), "");
    }
}
