// SPDX-License-Identifier: MIT OR Apache-2.0
//! The watch: a process beside the guard that detects writers that the kernel throttles for too long. It allocates
//! memory and reads `/proc/PID/task/TID`, which the guard must not do, and notifies the guard with one byte. If it
//! dies, the guard continues without it.
//!
//! A wait is the time that a thread stays in `balance_dirty_pages` without dirtying a further page: its stack names that
//! function, and `write_bytes` of its `io` stays as it was. The threads are looked at only while tasks wait for I/O (PSI
//! `io` `some`), so that a quiet host costs one small read per look.

use super::harm;
use crate::host::{Host, boottime};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// First argument of the program when it is a watch: root and the bound in microseconds follow.
pub(super) const ARGUMENT: &str = "--watch-of-a-change";
/// Sent by the watch once it has measured how long writers waited before the change.
pub(super) const READY: u8 = b'r';
/// Sent by the watch while a writer waits too long.
pub(super) const TOO_LONG: u8 = b'w';

const SECOND: u64 = 1_000_000;
/// Time for which a host with waiting tasks is observed before the change, in microseconds.
const BEFORE: u64 = 2 * SECOND;
/// Waits up to this multiple of the longest one before the change are not harm.
const TIMES: u64 = 3;
/// Shortest and longest time between two scans, in microseconds.
const EVERY: (u64, u64) = (50_000, SECOND);
/// A scan of all threads is followed by a pause of this multiple of its own length.
const REST: u64 = 50;
/// Most threads scanned.
const THREADS_MAX: usize = 100_000;

/// Waits of threads over several scans. Pure.
#[derive(Debug, Default)]
struct Waits {
    /// Thread → bytes it had dirtied, and when it was first seen to wait with these.
    threads: BTreeMap<u32, (u64, u64)>,
}

impl Waits {
    /// Takes the threads that wait now with the bytes they have dirtied. Returns the longest wait so far, in microseconds.
    fn look(&mut self, now_us: u64, waiting: &[(u32, u64)]) -> u64 {
        let since = |thread: &u32, bytes: &u64| {
            let before = self.threads.get(thread).filter(|(known, _)| known == bytes);
            before.map_or(now_us, |(_, since)| *since)
        };
        self.threads = waiting.iter().map(|(thread, bytes)| (*thread, (*bytes, since(thread, bytes)))).collect();
        self.threads.values().map(|(_, since)| now_us.saturating_sub(*since)).max().unwrap_or(0)
    }
}

/// Longest time for which a guard waits until its watch is ready.
const READY_MAX: Duration = Duration::from_micros(2 * BEFORE);

/// Starts the watch of a host and waits until it is ready, but not longer than `patience`. Its answers come through the pipe.
pub(super) fn start(host: &Host, bound_us: u64, patience: Duration) -> io::Result<OwnedFd> {
    if patience.is_zero() {
        return Err(io::ErrorKind::TimedOut.into());
    }
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(ARGUMENT).arg(host.root()).arg(bound_us.to_string());
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let pipe = OwnedFd::from(child.stdout.ok_or(io::ErrorKind::BrokenPipe)?);
    let patience = patience.min(READY_MAX);
    let patience =
        Timespec { tv_sec: i64::try_from(patience.as_secs()).unwrap_or(4), tv_nsec: patience.subsec_nanos().into() };
    if poll(&mut [PollFd::new(&pipe, PollFlags::IN)], Some(&patience))? == 0 {
        return Err(io::ErrorKind::TimedOut.into());
    }
    match rustix::io::read(&pipe, &mut [0; 1])? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(pipe),
    }
}

/// Runs the watch until its guard is gone. Arguments are those after [`ARGUMENT`].
pub(super) fn main(arguments: &[OsString]) -> u8 {
    let [root, bound] = arguments else { return 2 };
    let Some(bound_us) = bound.to_str().and_then(|bound| bound.parse().ok()) else { return 2 };
    let host = Host::below(Path::new(root));
    let _ = watch(&host, bound_us);
    0
}

fn watch(host: &Host, bound_us: u64) -> io::Result<()> {
    let every = (bound_us / 2).clamp(EVERY.0, EVERY.1);
    let mut answer = io::stdout();
    let mut pressure = Pressure::open(host);
    let mut waits = Waits::default();
    let (started, mut before) = (now_us(), 0);
    let mut is_ready = false;
    let mut pause = 0;
    loop {
        // The guard never writes to the pipe, so poll reports it only when the guard's end is closed.
        let timeout = Timespec {
            tv_sec: i64::try_from(pause / SECOND).unwrap_or(1),
            tv_nsec: i64::try_from(pause % SECOND * 1000).unwrap_or(0),
        };
        let stdout = io::stdout();
        if poll(&mut [PollFd::from_borrowed_fd(stdout.as_fd(), PollFlags::empty())], Some(&timeout))? > 0 {
            return Ok(());
        }
        let at = now_us();
        let waiting = if pressure.is_up(at) || !waits.threads.is_empty() { writers(host) } else { Vec::new() };
        let took = now_us().saturating_sub(at);
        let longest = waits.look(at, &waiting);
        pause = every.max(took.saturating_mul(REST).min(10 * SECOND));
        if !is_ready {
            before = before.max(longest);
            pause = pause.min(BEFORE);
            if pressure.was_quiet || at.saturating_sub(started) >= BEFORE {
                is_ready = true;
                answer.write_all(&[READY])?;
                answer.flush()?;
            }
        } else if longest > bound_us.max(before.saturating_mul(TIMES)) {
            answer.write_all(&[TOO_LONG])?;
            answer.flush()?;
        }
    }
}

/// I/O pressure of the host.
struct Pressure {
    file: Option<File>,
    last: Option<(u64, u64)>,
    /// Whether no task waited for I/O in the last ten seconds before the watch started.
    was_quiet: bool,
}

impl Pressure {
    fn open(host: &Host) -> Pressure {
        let mut pressure =
            Pressure { file: File::open(host.path("proc/pressure/io")).ok(), last: None, was_quiet: false };
        pressure.was_quiet = pressure.text(harm::some_avg10_ppm) == Some(0);
        pressure
    }

    fn text<T>(&self, read: impl Fn(&[u8]) -> Option<T>) -> Option<T> {
        let mut text = [0; 512];
        let count = self.file.as_ref()?.read_at(&mut text, 0).ok()?;
        read(text.get(..count)?)
    }

    /// Returns true if tasks waited for half of the time since the last call, or if the kernel has no PSI.
    fn is_up(&mut self, now_us: u64) -> bool {
        let Some(total) = self.text(harm::some_total) else { return true };
        let last = self.last.replace((now_us, total));
        let Some((at, before)) = last else { return true };
        total.saturating_sub(before).saturating_mul(2) >= now_us.saturating_sub(at)
    }
}

/// Threads in `balance_dirty_pages`, each with the bytes it has dirtied.
fn writers(host: &Host) -> Vec<(u32, u64)> {
    let numbers = |path: &str| {
        let entries = std::fs::read_dir(host.path(path)).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
    };
    let threads = numbers("proc").flat_map(|pid| {
        let task = format!("proc/{pid}/task");
        numbers(&task).map(move |thread| (thread, format!("{task}/{thread}"))).collect::<Vec<_>>()
    });
    let waits = |folder: &str| {
        let stat = host.read(&format!("{folder}/stat")).ok()?;
        let (_, after_name) = stat.rsplit_once(')')?;
        after_name.trim_start().starts_with('D').then_some(())?;
        let stack = host.read(&format!("{folder}/stack")).ok()?;
        stack.contains("balance_dirty_pages").then_some(())?;
        let io = host.read(&format!("{folder}/io")).ok()?;
        io.lines().find_map(|line| line.strip_prefix("write_bytes:")?.trim().parse::<u64>().ok())
    };
    threads.take(THREADS_MAX).filter_map(|(thread, folder)| Some((thread, waits(&folder)?))).collect()
}

fn now_us() -> u64 {
    boottime() / 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_ends_when_its_thread_dirties_a_page_or_is_gone() {
        let mut waits = Waits::default();
        let mut check = |now: u64, waiting: &[(u32, u64)], longest: u64| {
            assert_eq!(waits.look(now, waiting), longest, "at {now}");
        };
        check(0, &[(7, 4096)], 0);
        check(100, &[(7, 4096), (8, 0)], 100);
        check(200, &[(7, 8192), (8, 0)], 100);
        check(300, &[(7, 8192), (8, 0)], 200);
        check(400, &[(7, 8192)], 200);
        check(500, &[], 0);
        check(600, &[(7, 8192)], 0);
    }

    #[test]
    fn only_a_thread_that_the_kernel_slows_for_its_dirty_pages_counts() {
        let folder = tempfile::tempdir().unwrap();
        let host = Host::below(folder.path());
        let thread = |pid: u32, tid: u32, state: char, stack: &str| {
            let path = folder.path().join(format!("proc/{pid}/task/{tid}"));
            std::fs::create_dir_all(&path).unwrap();
            std::fs::write(path.join("stat"), format!("{tid} (a) b) D) {state} 1 1")).unwrap();
            std::fs::write(path.join("stack"), stack).unwrap();
            std::fs::write(path.join("io"), format!("rchar: 1\nwrite_bytes: {tid}000\n")).unwrap();
        };
        let throttled = "[<0>] balance_dirty_pages+0x1f2/0xc60\n[<0>] ext4_buffered_write_iter+0x1/0x2\n";
        thread(10, 10, 'S', throttled);
        thread(10, 11, 'D', throttled);
        thread(12, 12, 'D', "[<0>] folio_wait_bit_common+0x1/0x2\n");
        thread(13, 13, 'D', throttled);
        let mut found = writers(&host);
        found.sort_unstable();
        assert_eq!(found, [(11, 11_000), (13, 13_000)]);
    }
}
