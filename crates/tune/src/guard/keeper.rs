// SPDX-License-Identifier: MIT OR Apache-2.0
//! The keeper: a copy of the guard that only waits for the guard's death and then takes its place. A copy made by
//! `fork` needs no file from a disk that may be stuck. Each side holds a pipe that closes when the other side dies. A
//! guard that was stopped (SIGSTOP) cannot restore anything: the keeper kills it and takes its place.
#![allow(unsafe_code)]

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, getpid, getppid, kill_process};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

/// Time between two looks at the guard.
const LOOK_EVERY: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };
/// Looks in a row that find the guard stopped before it is killed.
const STOPPED_MAX: usize = 2;

/// The two sides of a fork.
#[derive(Debug)]
pub(super) enum Side {
    /// This process goes on.
    Guard(Keeper),
    /// This process is the keeper.
    Keeper(Watch),
}

/// The keeper as the guard sees it.
#[derive(Debug)]
pub(super) struct Keeper {
    /// Ends when the keeper dies.
    pub(super) life: OwnedFd,
    orders: File,
}

/// The guard as the keeper sees it.
#[derive(Debug)]
pub(super) struct Watch {
    orders: File,
    guard: Pid,
    /// `/proc/PID/stat` of the guard; `None` where it cannot be read.
    stat: Option<File>,
    _life: OwnedFd,
}

/// Copies this process, which must have one thread.
pub(super) fn fork() -> io::Result<Side> {
    let (orders_read, orders_write) = pipe_with(PipeFlags::CLOEXEC)?;
    let (life_read, life_write) = pipe_with(PipeFlags::CLOEXEC)?;
    let (guard, stat) = (getpid(), File::open("/proc/self/stat").ok());
    // SAFETY: the process has one thread, so no lock is held by a thread that the copy lacks.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Side::Keeper(Watch { orders: File::from(orders_read), guard, stat, _life: life_write })),
        _ => Ok(Side::Guard(Keeper { life: life_read, orders: File::from(orders_write) })),
    }
}

/// Goes on in a copy of this process: a copy has only those pages of the program in memory that it uses itself, so that
/// little is locked. Below systemd, which watches the first process, that one waits for the copy and ends as it does.
pub(super) fn detach() {
    // SAFETY: as above.
    let child = unsafe { libc::fork() };
    if child == 0 || child == -1 {
        // Without another process this one does the work.
        return;
    }
    let pid = rustix::process::Pid::from_raw(child).filter(|_| std::env::var_os("INVOCATION_ID").is_some());
    let Some(pid) = pid else { std::process::exit(0) };
    let ended = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty());
    let code = ended.ok().flatten().and_then(|(_, status)| status.exit_status());
    std::process::exit(code.unwrap_or(1));
}

impl Keeper {
    /// Tells the keeper that the work is done.
    pub(super) fn dismiss(mut self) {
        let _ = self.orders.write_all(b"d");
    }
}

impl Watch {
    /// Waits until the guard has done its work (true) or died (false).
    pub(super) fn ends_with_dismissal(mut self) -> bool {
        let mut order = [0];
        let mut stopped = 0;
        loop {
            if poll(&mut [PollFd::new(&self.orders, PollFlags::IN)], Some(&LOOK_EVERY)) == Ok(0) {
                stopped = if self.is_stopped() { stopped + 1 } else { 0 };
                if stopped >= STOPPED_MAX && getppid() == Some(self.guard) {
                    let _ = kill_process(self.guard, Signal::KILL);
                }
                continue;
            }
            match self.orders.read(&mut order) {
                Ok(count) => return count == 1,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
    }

    /// Whether the guard is stopped by a signal.
    fn is_stopped(&self) -> bool {
        let mut text = [0; 512];
        let count = self.stat.as_ref().and_then(|stat| stat.read_at(&mut text, 0).ok()).unwrap_or(0);
        let text = text.get(..count).unwrap_or_default();
        let after_name = text.iter().rposition(|byte| *byte == b')').and_then(|at| text.get(at + 2));
        after_name == Some(&b'T')
    }
}
