// SPDX-License-Identifier: MIT OR Apache-2.0
//! The allocator's behaviour when memory runs out: the program reports it and exits with an exit code of its
//! own instead of a signal. A recording is then complete up to its last sample, as after `kill -9`.

#![allow(unsafe_code, reason = "an allocator has no safe form")]

use crate::exit::Exit;
use rustix::fd::BorrowedFd;
use std::alloc::{GlobalAlloc, Layout, System};

/// The system's allocator, which ends the program where it has nothing left.
struct Allocator;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

// SAFETY: every call is passed to the system's allocator as it is; a null pointer never comes back.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the promises that the system's allocator wants.
        checked(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        checked(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above.
        checked(unsafe { System.realloc(memory, layout, size) }, size)
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }
}

fn checked(memory: *mut u8, size: usize) -> *mut u8 {
    if memory.is_null() {
        end(size);
    }
    memory
}

/// Says what happened and ends, without taking memory for it and without running anything else.
#[cold]
fn end(size: usize) -> ! {
    // SAFETY: the number is that of standard error for the whole life of a process; where it is closed, the
    // write fails, and nothing is made of that.
    let stderr = unsafe { BorrowedFd::borrow_raw(2) };
    let mut digits = [0; 20];
    for part in [&b"floodline: out of memory: cannot get "[..], decimal(size, &mut digits), b" bytes\n"] {
        let _ = rustix::io::write(stderr, part);
    }
    signal_hook::low_level::exit(Exit::OutOfMemory.code().into())
}

/// A number in decimal digits, written from the end of a buffer that has room for the largest one.
fn decimal(number: usize, digits: &mut [u8; 20]) -> &[u8] {
    let mut rest = number;
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            return &digits[start..];
        }
    }
}

/// Returns freed memory to the kernel. What a recording and its twin took for a moment lies between what is still in use, and
/// the threads that run the twin take memory of their own. Costs about a millisecond.
pub(crate) fn return_freed() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it may be called at any time, from any thread.
    let _ = unsafe { libc::malloc_trim(0) };
}

/// Most freed memory that each thread keeps for what comes next, bytes.
#[cfg(target_env = "gnu")]
const KEPT: libc::c_int = 16 << 20;

/// Keeps freed memory from now on, for work that takes as much again at once: thousands of recordings, one after the other.
pub(crate) fn keep_freed() {
    #[cfg(target_env = "gnu")]
    // SAFETY: both set a number in the allocator under its lock.
    unsafe {
        libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT);
        libc::mallopt(libc::M_MMAP_THRESHOLD, KEPT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_without_taking_memory() {
        for number in [0, 7, 10, 4096, usize::MAX] {
            assert_eq!(decimal(number, &mut [0; 20]), number.to_string().as_bytes());
        }
    }

    /// Page faults of this thread while it takes memory in pieces of 1 KiB and frees all of them but for the last. Also returns
    /// that one.
    #[cfg(target_env = "gnu")]
    fn used(pieces: usize) -> (i64, Option<Box<[u8; 1024]>>) {
        let faults = || {
            let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
            // SAFETY: the pointer is to room for one, and zeros are valid numbers.
            let usage = unsafe {
                libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
                usage.assume_init()
            };
            usage.ru_minflt
        };
        let before = faults();
        let last = (0..pieces).map(|_| Box::new([1; 1024])).collect::<Vec<_>>().pop();
        (faults() - before, last)
    }

    #[test]
    #[cfg(target_env = "gnu")]
    fn freed_memory_is_kept_or_returned() {
        keep_freed();
        let faults = [0, 1].map(|_| used(8 << 10).0);
        assert!(faults[1] < faults[0] / 4, "{faults:?}");
        // The last piece holds the others below it.
        let resident = || {
            let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
            statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
        };
        let (_, last) = used(48 << 10);
        let held = resident();
        return_freed();
        let left = resident();
        assert!(left + (24 << 20) < held, "{held} {left}");
        drop(last);
    }
}
