// SPDX-License-Identifier: MIT OR Apache-2.0
//! A shell session in a guest: a shell at a terminal connected to the host's, or one command whose output and
//! exit code are sent to the host. Programs come from the disk mounted on `/usr`, plus Floodline itself.

use super::{Guest, GuestError, Host, mount_at};
use crate::job::{Shell, Status, Terminal};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::symlink;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The terminal: a virtio console, faster than a serial line and separate from the kernel's console.
const TERMINAL: &str = "/dev/hvc0";
/// Time that it has to appear after its driver was loaded.
const APPEAR: Duration = Duration::from_secs(10);
/// Programs that are on no disk: this one, and names that Debian makes when it installs.
const LINKS: &[(&str, &str)] = &[("/init", "/opt/bin/floodline"), ("/usr/bin/mawk", "/opt/bin/awk")];
/// Links that udev would create.
const NODES: &[(&str, &str)] = &[
    ("/proc/self/fd", "/dev/fd"),
    ("/proc/self/fd/0", "/dev/stdin"),
    ("/proc/self/fd/1", "/dev/stdout"),
    ("/proc/self/fd/2", "/dev/stderr"),
];
const ENVIRONMENT: &[(&str, &str)] = &[
    ("PATH", "/opt/bin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
    ("HOME", "/root"),
    ("USER", "root"),
    ("SHELL", "/bin/bash"),
    ("LANG", "C.UTF-8"),
    ("PS1", r"[\H \w]\$ "),
];
/// Exit code of shells for a command that is not found.
const NOT_STARTED: i32 = 127;
/// Most bytes of output in one status.
const OUTPUT_MAX: usize = 16 << 10;

impl Guest {
    /// Runs a shell or a command to its end and returns its exit code, as a shell reports it.
    pub fn shell(&self, shell: &Shell) -> Result<u8, GuestError> {
        if !self.job.has_system {
            furnish()?;
        }
        let status = match (&shell.command, &shell.terminal) {
            (Some(words), _) => self.command(words)?,
            (None, Some(terminal)) => self.console(terminal)?,
            (None, None) => return Err(GuestError::Missing { what: "the command".to_owned() }),
        };
        let code = status.code().or_else(|| Some(128 + status.signal()?));
        Ok(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX))
    }

    fn console(&self, terminal: &Terminal) -> Result<ExitStatus, GuestError> {
        let open = || OpenOptions::new().read(true).write(true).open(TERMINAL);
        let until = Instant::now() + APPEAR;
        let tty = loop {
            match open() {
                Ok(tty) => break tty,
                Err(error) if Instant::now() > until => return Err(GuestError::at(TERMINAL)(error)),
                Err(_) => std::thread::sleep(Duration::from_millis(20)),
            }
        };
        let size = Winsize { ws_row: terminal.rows, ws_col: terminal.columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&tty, size).map_err(GuestError::at(TERMINAL))?;
        let copy = |tty: &File| tty.try_clone().map_err(GuestError::at(TERMINAL));
        // Ctrl-C and job control need a session of the shell's own.
        let mut setsid = furnished("setsid");
        setsid.args(["--ctty", "--wait", "bash", "--login"]).env("TERM", &terminal.name);
        setsid.stdin(copy(&tty)?).stdout(copy(&tty)?).stderr(tty);
        self.host.tell(&Status::Console);
        setsid.status().map_err(GuestError::at("setsid"))
    }

    fn command(&self, words: &[String]) -> Result<ExitStatus, GuestError> {
        let (program, arguments) = words.split_first().ok_or(GuestError::Missing { what: "the command".to_owned() })?;
        let mut command = furnished(program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        self.host.stage(format!("running {program}"));
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) => {
                self.host
                    .tell(&Status::output(true, format!("floodline: {program} in the guest: {error}\n").as_bytes()));
                return Ok(ExitStatus::from_raw(NOT_STARTED << 8));
            }
        };
        let output = child.stdout.take().map(|from| forward(&self.host, from, false));
        let errors = child.stderr.take().map(|from| forward(&self.host, from, true));
        let status = child.wait().map_err(GuestError::at(program))?;
        for thread in [output, errors].into_iter().flatten() {
            // The thread ends with its pipe and does not panic.
            let _ = thread.join();
        }
        Ok(status)
    }
}

/// A command with the environment of a login shell.
fn furnished(program: &str) -> Command {
    let path = ENVIRONMENT.iter().find(|(name, _)| *name == "PATH").map_or("", |(_, path)| path);
    let found = path.split(':').map(|dir| Path::new(dir).join(program)).find(|path| path.is_file());
    let mut command = Command::new(found.as_deref().unwrap_or(program.as_ref()));
    command.env_clear().envs(ENVIRONMENT.iter().copied()).current_dir("/root");
    command
}

/// Creates the directories, links and files that a shell needs and a scenario does not.
fn furnish() -> Result<(), GuestError> {
    for dir in ["/root", "/opt/bin"] {
        fs::create_dir_all(dir).map_err(GuestError::at(dir))?;
    }
    for (target, link) in LINKS.iter().chain(NODES).filter(|(_, link)| !Path::new(link).exists()) {
        symlink(target, link).map_err(GuestError::at(*link))?;
    }
    mount_at("devpts", "/dev/pts", "ptmxmode=666")?;
    mount_at("tmpfs", "/dev/shm", "")?;
    let release = rustix::system::uname();
    let name = release.release().to_string_lossy();
    // The host name is only for the prompt, so an error is ignored.
    let _ = rustix::system::sethostname(name.split(['-', '+']).next().unwrap_or_default().as_bytes());
    Ok(())
}

/// Sends a pipe's output to the host until it ends.
fn forward(host: &Host, mut from: impl Read + Send + 'static, is_error: bool) -> JoinHandle<()> {
    let host = host.clone();
    std::thread::spawn(move || {
        let mut buffer = vec![0; OUTPUT_MAX];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            host.tell(&Status::output(is_error, buffer.get(..length).unwrap_or_default()));
        }
    })
}
