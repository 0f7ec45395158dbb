// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's own monitor of I/O pressure: it costs nothing while the machine is calm, and remembers what happened between
//! two samples. Kernels before 6.6, and those that refuse, are watched by the totals in samples instead.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fs::{File, OpenOptions};
use std::io::Write;

/// Window of the monitor, microseconds: the longest that kernels take, and a multiple of the two seconds that they ask of
/// processes without CAP_SYS_RESOURCE.
const WINDOW_US: u64 = 10_000_000;

/// A monitor of `/proc/pressure/io`.
#[derive(Debug)]
pub(crate) struct Monitor(File);

impl Monitor {
    /// Starts one that fires when tasks waited for this share of ten seconds; `None` where the kernel has none.
    pub(crate) fn start(share: f64) -> Option<Monitor> {
        let stall = (WINDOW_US as f64 * share) as u64;
        if stall == 0 || stall > WINDOW_US {
            return None;
        }
        let mut file = OpenOptions::new().read(true).write(true).open("/proc/pressure/io").ok()?;
        file.write_all(format!("some {stall} {WINDOW_US}\0").as_bytes()).ok()?;
        Some(Monitor(file))
    }

    /// Whether it fired since it was asked last. Never waits.
    pub(crate) fn has_fired(&self) -> bool {
        let mut fds = [PollFd::new(&self.0, PollFlags::PRI)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut fds, Some(&now)).is_ok_and(|ready| ready > 0)
            && fds.iter().any(|fd| fd.revents().contains(PollFlags::PRI))
    }
}
