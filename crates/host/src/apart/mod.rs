// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tracer in a process of its own. The observing process parses files of the host, whose content containers can
//! control, and holds neither `CAP_BPF` nor `CAP_PERFMON`. The loader process holds them and parses no such file.
//! Loading takes a fraction of a second and delays no sample. A loader that does not answer is a gap.

mod loader;
mod rights;
mod wire;

use crate::root::HostRoot;
use crate::trace::{Tracer, Traces};
use floodline_record::facts::HostFacts;
use floodline_record::gap::{Cause, Gap};
use floodline_record::record::Record;
use floodline_record::sample::HostRow;
use floodline_record::units::Nanos;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use wire::{Kind, Moment, pack, receive, send, unpack};

/// First argument with which the program calls [`main`].
pub const ARGUMENT: &str = "--tracer-process";

/// Maximum time that a sample waits for the loader.
const WAIT_MAX: Duration = Duration::from_millis(300);

/// Runs the loader's side until the other process ends. Standard input is the connection. Returns the program's exit
/// code.
pub fn main() -> u8 {
    let ended = rights::keep_those_of_loader().map_err(io::Error::from).and_then(|()| {
        let stream = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
        loader::serve(&stream)
    });
    u8::from(ended.is_err())
}

/// The observing process's handle of a started loader.
#[derive(Clone, Debug)]
pub struct Apart {
    link: Arc<Mutex<Link>>,
}

/// The connection, and the answers that are due on it.
#[derive(Debug)]
struct Link {
    stream: UnixStream,
    child: Child,
    /// Requests without an answer yet, oldest first. Answers come in the same order.
    owed: Vec<Kind>,
    /// Why the connection cannot be used any more.
    lost: Option<Cause>,
}

impl Apart {
    /// Starts the loader with the capabilities of this process, and drops those here that only the loader needs.
    /// Returns
    /// `None` if this process may not load programs. Call it before other threads start: they would keep the
    /// capabilities.
    pub fn split(mut program: Command) -> io::Result<Option<Apart>> {
        if !rights::may_load() {
            return Ok(None);
        }
        let (stream, other) = UnixStream::pair()?;
        stream.set_write_timeout(Some(WAIT_MAX))?;
        program.arg(ARGUMENT).stdin(Stdio::from(OwnedFd::from(other))).stdout(Stdio::null()).current_dir("/");
        // Ctrl-C at a terminal is for this process; the loader ends with it.
        let child = program.process_group(0).spawn()?;
        rights::keep_those_of_observer()?;
        let link = Link { stream, child, owed: Vec::new(), lost: None };
        Ok(Some(Apart { link: Arc::new(Mutex::new(link)) }))
    }

    /// Starts tracing the kernel, until the returned value is dropped.
    pub fn start(&self, facts: &HostFacts) -> Traced {
        let mut link = self.link();
        match pack(&[Record::Facts(Box::new(facts.clone()))]) {
            Ok(content) => link.request(Kind::Start, &content),
            Err(error) => link.lose(&error),
        }
        drop(link);
        Traced { apart: self.clone(), is_turned: false, is_told: false }
    }

    fn link(&self) -> MutexGuard<'_, Link> {
        self.link.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Link {
    /// Sends a request. An error is kept in `lost`.
    fn request(&mut self, kind: Kind, content: &[u8]) {
        if self.lost.is_some() {
            return;
        }
        match send(&self.stream, kind, content) {
            Ok(()) if kind == Kind::Stop => {}
            Ok(()) => self.owed.push(kind),
            Err(error) => self.lose(&error),
        }
    }

    fn lose(&mut self, error: &io::Error) {
        let why = match error.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => {
                "the tracer's process ended".to_owned()
            }
            _ => format!("the tracer's process cannot be used: {error}"),
        };
        self.lost = Some(Cause::Refused { why: why.into() });
    }

    /// Receives all answers that are due, and waits at most `within` for each. Returns whether all came.
    fn take(&mut self, within: Duration, out: &mut Vec<Record>) -> bool {
        while self.lost.is_none()
            && let Some(expected) = self.owed.first().copied()
        {
            match self.is_readable(within).and_then(|is| if is { receive(&self.stream).map(Some) } else { Ok(None) }) {
                Ok(None) => return false,
                Ok(Some((kind, content))) if kind == expected => {
                    self.owed.remove(0);
                    if !content.is_empty() {
                        match unpack(&content) {
                            Ok(records) => out.extend(records),
                            Err(error) => self.lose(&error),
                        }
                    }
                }
                Ok(Some(_)) => self.lose(&io::ErrorKind::InvalidData.into()),
                Err(error) => self.lose(&error),
            }
        }
        true
    }

    /// Returns whether an answer begins `within` this time. It is then read to its end, within [`WAIT_MAX`] for each
    /// piece.
    fn is_readable(&self, within: Duration) -> io::Result<bool> {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        self.stream.set_read_timeout(Some(WAIT_MAX))?;
        let within = Timespec { tv_sec: 0, tv_nsec: within.subsec_nanos().into() };
        match poll(&mut [PollFd::new(&self.stream, PollFlags::IN)], Some(&within)) {
            Ok(ready) => Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // The loader exits when the connection ends. Do not wait for a loader that hangs.
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
        let _ = self.child.try_wait();
    }
}

/// Handle of a running trace: dropping it ends the trace.
#[derive(Debug)]
pub struct Traced {
    apart: Apart,
    /// Whether the loader was notified of the sample in progress.
    is_turned: bool,
    /// Whether the failure of the loader was reported.
    is_told: bool,
}

impl Traces for Traced {
    fn turn(&mut self) {
        let mut link = self.apart.link();
        let mut late = Vec::new();
        // Only the answer to `Start` can be due here, unless the loader was late.
        self.is_turned = link.owed.is_empty();
        if self.is_turned {
            link.request(Kind::Turn, &[]);
            // The epoch is switched before the files are read, so that both cover the same interval.
            link.take(WAIT_MAX, &mut late);
        }
    }

    fn collect(&mut self, _: &HostRoot, at: Nanos, host: &HostRow, out: &mut Vec<Record>) {
        let mut link = self.apart.link();
        if self.is_turned {
            let thresholds = host.nr_dirty_threshold.zip(host.nr_dirty_background_threshold);
            let moment = Moment { at, thresholds: thresholds.map(|(thresh, bg_thresh)| (thresh.0, bg_thresh.0)) };
            link.request(Kind::Collect, &moment.pack());
        }
        // Do not wait for loading.
        let within = if self.is_turned { WAIT_MAX } else { Duration::ZERO };
        let is_complete = link.take(within, out);
        let cause = match &link.lost {
            Some(_) if self.is_told => None,
            Some(cause) => {
                self.is_told = true;
                Some(cause.clone())
            }
            None if self.is_turned && !is_complete => {
                Some(Cause::Refused { why: "the tracer's process did not answer in time".into() })
            }
            None => None,
        };
        if let Some(cause) = cause {
            let of_all = Tracer::sources().map(|source| Gap::detailed(source, cause.clone(), "an interval"));
            out.extend(of_all.map(Record::Gap));
        }
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        self.apart.link().request(Kind::Stop, &[]);
    }
}
