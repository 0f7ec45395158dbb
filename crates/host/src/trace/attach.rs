// SPDX-License-Identifier: MIT OR Apache-2.0
//! Attaches a loaded program to a tracepoint by its number. What libbpf does by itself where tracefs is
//! mounted, and here without it. Nothing stays attached when the descriptor goes, however the process ends.
#![allow(unsafe_code, reason = "perf_event_open has no safe form")]

use libbpf_rs::{Link, ProgramMut};
use libbpf_sys::{PERF_TYPE_TRACEPOINT, perf_event_attr};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd};

/// Attaches for every task on every CPU.
pub(super) fn attach(program: &ProgramMut<'_>, tracepoint: u64) -> Result<Link, io::Error> {
    let event = open(tracepoint)?;
    let link = program.attach_perf_event(event.as_raw_fd()).map_err(|error| io::Error::other(error.to_string()))?;
    // The link closes it.
    let _ = event.into_raw_fd();
    Ok(link)
}

/// The event of one tracepoint. A program on it runs wherever the tracepoint is passed: the CPU says only
/// where the event itself would be counted.
fn open(tracepoint: u64) -> Result<OwnedFd, io::Error> {
    let size = u32::try_from(size_of::<perf_event_attr>()).unwrap_or(0);
    let attr = perf_event_attr { type_: PERF_TYPE_TRACEPOINT, size, config: tracepoint, ..perf_event_attr::default() };
    let (every_task, cpu, no_group, cloexec): (i32, i32, i32, u64) = (-1, 0, -1, 8);
    // SAFETY: the call reads `attr`, which is alive and as long as its size says, and touches no other memory.
    let event =
        unsafe { libc::syscall(libc::SYS_perf_event_open, &raw const attr, every_task, cpu, no_group, cloexec) };
    match i32::try_from(event) {
        // SAFETY: the kernel has just made this descriptor for us, and nobody else has it.
        Ok(event) if event >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(event) }),
        _ => Err(io::Error::last_os_error()),
    }
}
