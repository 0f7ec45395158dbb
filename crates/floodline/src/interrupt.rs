// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ctrl-C and friends: a wish to end that commands look at between two samples, and a sleep that such
//! a wish ends at once. What was observed until then is kept and used.

use crate::error::CliError;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::low_level::pipe;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Whether a signal asked the program to end.
pub(crate) struct Interrupt {
    asked: OwnedFd,
    ask: UnixStream,
}

/// Makes the wish from another thread.
pub(crate) struct Ask(UnixStream);

impl Ask {
    /// Makes it.
    pub(crate) fn ask(mut self) {
        // The write fails only if the waiting side is gone.
        let _ = self.0.write_all(b"!");
    }
}

impl Interrupt {
    /// From now on SIGINT, SIGTERM and SIGHUP set the interrupt instead of killing the process.
    pub(crate) fn watch() -> Result<Interrupt, CliError> {
        let watch = || -> std::io::Result<Interrupt> {
            let (reader, writer) = UnixStream::pair()?;
            for signal in [SIGINT, SIGTERM, SIGHUP] {
                pipe::register(signal, writer.try_clone()?)?;
            }
            Ok(Interrupt { asked: reader.into(), ask: writer })
        };
        watch().map_err(|error| CliError::cannot_observe(format!("cannot watch for signals: {error}")))
    }

    /// A way to make the wish from within the program.
    pub(crate) fn asker(&self) -> Result<Ask, CliError> {
        self.ask
            .try_clone()
            .map(Ask)
            .map_err(|error| CliError::cannot_observe(format!("out of file descriptors: {error}")))
    }

    /// Whether the wish was made.
    pub(crate) fn is_asked(&self) -> bool {
        self.sleep_until(Instant::now())
    }

    /// Sleeps until a moment or an interrupt. Returns true on an interrupt.
    pub(crate) fn sleep_until(&self, moment: Instant) -> bool {
        loop {
            let left = moment.saturating_duration_since(Instant::now());
            let timeout = Timespec {
                tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: left.subsec_nanos().into(),
            };
            let mut fds = [PollFd::new(&self.asked, PollFlags::IN)];
            match poll(&mut fds, Some(&timeout)) {
                Ok(0) if moment.saturating_duration_since(Instant::now()) > Duration::ZERO => {}
                Ok(ready) => return ready > 0,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return true,
            }
        }
    }
}

/// From now on a write beyond the file size limit (`ulimit -f`) fails like one on a full disk instead of killing the
/// process. Child programs do not inherit this.
pub(crate) fn survive_file_size_limit() {
    // The flag is not read. If the handler cannot be installed, the default action stays.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)));
}
