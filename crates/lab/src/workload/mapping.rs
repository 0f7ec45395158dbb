// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory mappings and `sync_file_range`: the only `unsafe` code of the workload. There are two mapping types.
//! [`Anonymous`] memory belongs to this process alone and can be borrowed as a slice. The bytes of a [`Shared`] file
//! mapping can change at any time, so it only offers stores, byte by byte, and hands out no reference.
#![allow(unsafe_code)]

use rustix::mm::{MapFlags, MsyncFlags, ProtFlags, mmap, mmap_anonymous, msync, munmap};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::{NonNull, null_mut};

/// Mapped addresses, unmapped when dropped. Private to this file: the two types below define the permitted operations.
#[derive(Debug)]
struct Mapped {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: a mapping belongs to the process, not to a thread, and nothing here hands out shared references.
unsafe impl Send for Mapped {}

impl Mapped {
    fn of(base: *mut u8, len: usize) -> io::Result<Mapped> {
        match NonNull::new(base) {
            Some(base) => Ok(Mapped { base, len }),
            None => Err(io::Error::other("mapped at address 0")),
        }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping that `self` owns, and nothing refers to it any more. Nothing is to be
        // done about a failure.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.len) };
    }
}

/// A file's first bytes, mapped shared and writable.
#[derive(Debug)]
pub(crate) struct Shared(Mapped);

impl Shared {
    /// Maps the first bytes of a file.
    pub(crate) fn of(file: &File, len: usize) -> io::Result<Shared> {
        // SAFETY: a fresh mapping at an address of the kernel's choice overlaps nothing of ours.
        let base = unsafe { mmap(null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, file, 0) }?;
        Mapped::of(base.cast(), len).map(Shared)
    }

    /// Stores bytes at an offset. Returns whether they fit.
    pub(crate) fn store(&mut self, offset: usize, bytes: &[u8]) -> bool {
        if offset.checked_add(bytes.len()).is_none_or(|end| end > self.0.len) {
            return false;
        }
        for (index, &byte) in bytes.iter().enumerate() {
            // SAFETY: within the mapping, as checked above. Volatile, because the store is the purpose. A page
            // that cannot be had (a hole on a full filesystem) is a SIGBUS, which ends this worker only.
            unsafe { self.0.base.as_ptr().add(offset + index).write_volatile(byte) };
        }
        true
    }

    /// Writes the mapping back to the file: msync(MS_SYNC).
    pub(crate) fn sync(&self) -> io::Result<()> {
        // SAFETY: exactly the mapping that `self` owns.
        Ok(unsafe { msync(self.0.base.as_ptr().cast(), self.0.len, MsyncFlags::SYNC) }?)
    }
}

/// Starts writeback of a file's dirty pages: sync_file_range(SYNC_FILE_RANGE_WRITE) from its start to its end.
pub(crate) fn start_writing(file: &File) -> io::Result<()> {
    // SAFETY: the call takes a descriptor, which `file` keeps open, and numbers. It touches no memory of ours.
    let answer = unsafe { libc::sync_file_range(file.as_raw_fd(), 0, 0, libc::SYNC_FILE_RANGE_WRITE) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Private zeroed memory, aligned to a page.
#[derive(Debug)]
pub(crate) struct Anonymous(Mapped);

impl Anonymous {
    /// Maps fresh memory.
    pub(crate) fn of(len: usize) -> io::Result<Anonymous> {
        // SAFETY: a fresh mapping at an address of the kernel's choice overlaps nothing of ours.
        let base = unsafe { mmap_anonymous(null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE) }?;
        Mapped::of(base.cast(), len).map(Anonymous)
    }

    /// Returns the bytes.
    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: the memory is mapped readable and writable for `len` bytes for as long as `self` lives. It is
        // private and anonymous (only `Anonymous::of` makes one), so that nothing else changes it, and
        // `&mut self` makes this the only reference.
        unsafe { std::slice::from_raw_parts_mut(self.0.base.as_ptr(), self.0.len) }
    }

    /// Returns the length in bytes.
    pub(crate) fn len(&self) -> usize {
        self.0.len
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_reaches_the_file_and_none_goes_beyond_the_mapping() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(8192).unwrap();
        let mut mapping = Shared::of(&file, 8192).unwrap();
        assert!(mapping.store(8190, b"xy") && !mapping.store(8191, b"xy") && !mapping.store(usize::MAX, b"x"));
        mapping.sync().unwrap();
        let mut end = [0; 2];
        std::os::unix::fs::FileExt::read_exact_at(&file, &mut end, 8190).unwrap();
        assert_eq!(&end, b"xy");
    }

    #[test]
    fn anonymous_memory_is_zero_and_aligned() {
        let mut memory = Anonymous::of(10_000).unwrap();
        assert!(memory.as_mut_slice().iter().all(|byte| *byte == 0));
        assert!(memory.as_mut_slice().as_ptr().addr().is_multiple_of(4096));
        memory.as_mut_slice()[9_999] = 1;
        assert_eq!(memory.len(), 10_000);
    }
}
