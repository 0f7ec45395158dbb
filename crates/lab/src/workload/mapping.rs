// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory mappings: the one place of this crate that needs `unsafe`. A shared mapping of a file is only
//! ever stored into, byte by byte; nobody gets a reference into it, because the file may change below.
#![allow(unsafe_code)]

use rustix::mm::{MapFlags, MsyncFlags, ProtFlags, mmap, mmap_anonymous, msync, munmap};
use std::fs::File;
use std::io;
use std::ptr::{NonNull, null_mut};

/// A mapping, unmapped when dropped.
#[derive(Debug)]
pub(super) struct Mapping {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: a mapping belongs to the process, not to a thread, and `Mapping` hands out no shared references.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps the first bytes of a file, shared and writable.
    pub(super) fn shared(file: &File, len: usize) -> io::Result<Mapping> {
        // SAFETY: a fresh mapping at an address of the kernel's choice overlaps nothing of ours.
        let base = unsafe { mmap(null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, file, 0) }?;
        Mapping::of(base.cast(), len)
    }

    /// Maps fresh anonymous memory.
    pub(super) fn anonymous(len: usize) -> io::Result<Mapping> {
        // SAFETY: a fresh mapping at an address of the kernel's choice overlaps nothing of ours.
        let base = unsafe { mmap_anonymous(null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE) }?;
        Mapping::of(base.cast(), len)
    }

    fn of(base: *mut u8, len: usize) -> io::Result<Mapping> {
        match NonNull::new(base) {
            Some(base) => Ok(Mapping { base, len }),
            None => Err(io::Error::other("mapped at address 0")),
        }
    }

    /// Stores bytes at an offset; says whether they fit.
    pub(super) fn store(&mut self, offset: usize, bytes: &[u8]) -> bool {
        if offset.checked_add(bytes.len()).is_none_or(|end| end > self.len) {
            return false;
        }
        for (index, &byte) in bytes.iter().enumerate() {
            // SAFETY: within the mapping, as checked above. Volatile, because the store is the purpose. A page
            // that cannot be had (a hole on a full filesystem) is a SIGBUS, which ends this worker only.
            unsafe { self.base.as_ptr().add(offset + index).write_volatile(byte) };
        }
        true
    }

    /// The bytes of an anonymous mapping, e.g. to read a file into.
    pub(super) fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: the memory is mapped readable and writable for `len` bytes for as long as `self` lives, and
        // `&mut self` makes this the only reference. Only used on private anonymous memory, which nobody else
        // can change.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr(), self.len) }
    }

    /// msync(MS_SYNC) of all of it.
    pub(super) fn sync(&self) -> io::Result<()> {
        // SAFETY: exactly the mapping that `self` owns.
        Ok(unsafe { msync(self.base.as_ptr().cast(), self.len, MsyncFlags::SYNC) }?)
    }

    /// Bytes mapped.
    pub(super) fn len(&self) -> usize {
        self.len
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping that `self` owns, and nothing refers to it any more. Nothing is to be
        // done about a failure.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.len) };
    }
}
