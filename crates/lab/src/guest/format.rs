// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes filesystems inside the guest, so that no mkfs option can reach a file of the host. The mkfs programs are the
//! host's, copied into the image with their libraries.
//!
//! The filesystem of a disk or array is made in memory first, as a sparse file. Its nonzero blocks are then copied
//! with direct I/O. This writes as little as possible to a slow disk, the inode tables need no later zeroing, and
//! the page cache and the bandwidth estimate are untouched before the workload starts.

use super::{GuestError, host_tool, mount_at};
use crate::tool;
use crate::workload::Anonymous;
use floodline_scenario::{FsType, Mkfs};
use rustix::fs::OFlags;
use rustix::mount::{UnmountFlags, unmount};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

/// Directory in memory for the sparse file.
const MEMORY: &str = "/run/mkfs";
/// Most bytes copied at once.
const CHUNK: usize = 1 << 20;
/// Unit that is either copied or skipped.
const BLOCK: usize = 4096;

/// Makes a filesystem on a disk or an array that contains only zeros.
pub(super) fn disk(fs_type: FsType, options: &Mkfs, node: &Path) -> Result<(), GuestError> {
    mount_at("tmpfs", MEMORY, "size=90%")?;
    let made = through_memory(fs_type, options, node);
    unmount(MEMORY, UnmountFlags::empty()).map_err(GuestError::at(MEMORY))?;
    made
}

fn through_memory(fs_type: FsType, options: &Mkfs, node: &Path) -> Result<(), GuestError> {
    let path = Path::new(MEMORY).join("image");
    let image = File::options().read(true).write(true).create_new(true).open(&path).map_err(GuestError::at(&path))?;
    image.set_len(size_of(node)?).map_err(GuestError::at(&path))?;
    device(fs_type, options, &path)?;
    let direct = i32::try_from(OFlags::DIRECT.bits()).unwrap_or(0);
    let to = File::options().write(true).custom_flags(direct).open(node).map_err(GuestError::at(node))?;
    copy(&image, &to).map_err(GuestError::at(node))?;
    to.sync_all().map_err(GuestError::at(node))
}

/// Makes a filesystem directly on a device.
pub(super) fn device(fs_type: FsType, options: &Mkfs, node: &Path) -> Result<(), GuestError> {
    make(fs_type, options, &[], node)
}

/// Makes a filesystem on a device that does not contain zeros. mkfs writes each block that must be zero: otherwise ext4
/// does so after the mount, beside the workload.
pub(super) fn device_of_noise(fs_type: FsType, options: &Mkfs, node: &Path) -> Result<(), GuestError> {
    let at_once: &[&str] = match fs_type {
        FsType::Ext4 => &["-E", "lazy_itable_init=0,lazy_journal_init=0"],
        _ => &[],
    };
    make(fs_type, options, at_once, node)
}

fn make(fs_type: FsType, options: &Mkfs, more: &[&str], node: &Path) -> Result<(), GuestError> {
    let mut mkfs = host_tool(&format!("mkfs.{}", fs_type.name()));
    tool::output(mkfs.arg("-q").args(more).args(options.arguments(fs_type)).arg(node))?;
    Ok(())
}

fn size_of(node: &Path) -> Result<u64, GuestError> {
    let name = node.file_name().unwrap_or_default();
    let path = Path::new("/sys/class/block").join(name).join("size");
    let sectors = fs::read_to_string(&path).map_err(GuestError::at(&path))?;
    let sectors: Option<u64> = sectors.trim().parse().ok();
    let bytes = sectors.and_then(|sectors| sectors.checked_mul(512));
    bytes.ok_or_else(|| GuestError::Missing { what: format!("a number in {}", path.display()) })
}

/// Copies the nonzero blocks of a sparse file to a device that contains only zeros.
fn copy(from: &File, to: &File) -> io::Result<()> {
    let length = from.metadata()?.len();
    let mut buffer = Anonymous::of(CHUNK)?;
    let mut at = 0;
    while let Some(data) = next_data(from, at)? {
        // Whole blocks: direct I/O must be aligned.
        at = data - data % BLOCK as u64;
        let wanted = usize::try_from(length - at).unwrap_or(CHUNK).min(CHUNK);
        let chunk = buffer.as_mut_slice().get_mut(..wanted).unwrap_or_default();
        from.read_exact_at(chunk, at)?;
        let mut done = 0;
        for run in chunk.chunks(BLOCK).collect::<Vec<_>>().chunk_by(|a, b| is_zero(a) == is_zero(b)) {
            let bytes: usize = run.iter().map(|block| block.len()).sum();
            if run.first().is_some_and(|block| !is_zero(block)) {
                to.write_all_at(chunk.get(done..done + bytes).unwrap_or_default(), at + done as u64)?;
            }
            done += bytes;
        }
        at += wanted as u64;
    }
    Ok(())
}

/// Returns the start of the next data in a sparse file; `None` after the last.
fn next_data(file: &File, at: u64) -> io::Result<Option<u64>> {
    match rustix::fs::seek(file, rustix::fs::SeekFrom::Data(at)) {
        Ok(data) => Ok(Some(data)),
        Err(rustix::io::Errno::NXIO) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

fn is_zero(block: &[u8]) -> bool {
    block.iter().all(|byte| *byte == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_the_same_and_writes_only_what_is_not_zero() {
        use std::os::unix::fs::MetadataExt;
        let (from, to) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
        // The length is not a multiple of the block size, as on a disk of 1 GB.
        let length = 10_000_000_u64 / 512 * 512;
        for file in [&from, &to] {
            file.set_len(length).unwrap();
        }
        from.write_all_at(&[0; 3 << 20], 0).unwrap();
        for at in [0, 5000, 1 << 20, (2 << 20) - 3, 7_000_001, length - 5] {
            from.write_all_at(b"hello", at).unwrap();
        }
        copy(&from, &to).unwrap();
        let bytes = |file: &File| {
            let mut bytes = vec![0; usize::try_from(length).unwrap()];
            file.read_exact_at(&mut bytes, 0).unwrap();
            bytes
        };
        assert!(bytes(&from) == bytes(&to));
        let blocks = to.metadata().unwrap().blocks();
        assert!(blocks <= 7 * 8, "{blocks} sectors written");
    }
}
