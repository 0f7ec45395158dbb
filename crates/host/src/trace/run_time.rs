// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long the tracer's programs run, as the kernel measures it. Measuring costs as much as a short program
//! does, so it is on for a while only. Since 5.8, with CAP_SYS_ADMIN.
#![allow(unsafe_code, reason = "the call has no safe form")]

use crate::root::{HostRoot, SMALL};
use floodline_record::units::Nanos;
use libbpf_sys::{BPF_STATS_RUN_TIME, bpf_enable_stats};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// The kernel measures as long as this lives.
#[derive(Debug)]
pub(super) struct Measuring {
    _on: OwnedFd,
}

impl Measuring {
    /// Begins; `None` where this process may not, or the kernel cannot.
    pub(super) fn begin() -> Option<Measuring> {
        // SAFETY: the call takes a number and touches no memory of ours.
        let on: RawFd = unsafe { bpf_enable_stats(BPF_STATS_RUN_TIME) };
        // SAFETY: the kernel has just made this descriptor for us, and nobody else has it.
        (on >= 0).then(|| Measuring { _on: unsafe { OwnedFd::from_raw_fd(on) } })
    }
}

/// What one program ran for while it was measured, by anybody; `None` where the kernel does not say.
pub(super) fn run_time(root: &HostRoot, program: BorrowedFd<'_>) -> Option<Nanos> {
    let text = root.read(format!("/proc/self/fdinfo/{}", program.as_raw_fd()), SMALL).ok()?;
    let text = std::str::from_utf8(&text).ok()?;
    text.lines().find_map(|line| line.strip_prefix("run_time_ns:"))?.trim().parse().ok().map(Nanos)
}
