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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_without_taking_memory() {
        for number in [0, 7, 10, 4096, usize::MAX] {
            assert_eq!(decimal(number, &mut [0; 20]), number.to_string().as_bytes());
        }
    }
}
