// SPDX-License-Identifier: MIT OR Apache-2.0
//! Disks of a guest: sparse files, throttled by QEMU. The guest makes the filesystems on them. Flushes are
//! real, so the cost of a guest's fsync includes the host's.

use std::fs::File;
use std::io;
use std::path::PathBuf;

/// A disk of a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disk {
    /// Its file.
    pub path: PathBuf,
    /// Serial number, by which the guest finds it; at most 20 characters.
    pub serial: String,
    /// Its limits.
    pub throttle: Throttle,
    /// Whether it is read-only. A read-only disk may be shared with other guests.
    pub read_only: bool,
}

/// Limits of a disk; 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Throttle {
    /// Bytes per second of reads and writes together, instead of separate limits.
    pub bytes: u64,
    /// Reads and writes per second together, instead of separate limits.
    pub requests: u64,
    /// Bytes read per second.
    pub read_bytes: u64,
    /// Bytes written per second.
    pub write_bytes: u64,
    /// Reads per second.
    pub read_requests: u64,
    /// Writes per second.
    pub write_requests: u64,
    /// How far writes may exceed their bytes per second.
    pub write_bucket: Option<WriteBucket>,
}

/// A bucket that takes writes at a higher rate than the limit until it is full. It empties at the rate of the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteBucket {
    /// Bytes per second while it is not full.
    pub bandwidth: u64,
    /// Seconds at that rate which fill it when nothing leaves it.
    pub seconds: u64,
}

/// A disk could not be made.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// Its file could not be made.
    #[error("{path}: {cause}")]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
}

impl Disk {
    /// Makes the file: all holes.
    pub fn create(&self, size_bytes: u64) -> Result<(), DiskError> {
        let make = || File::create_new(&self.path)?.set_len(size_bytes);
        make().map_err(|cause| DiskError::Io { path: self.path.clone(), cause })
    }

    /// Arguments for QEMU.
    pub(super) fn arguments(&self, number: usize) -> [String; 4] {
        let mut drive =
            format!("id=disk{number},if=none,format=raw,discard=unmap,file={}", super::option_value(&self.path));
        if self.read_only {
            drive.push_str(",readonly=on");
        }
        let bucket = self.throttle.write_bucket;
        let limits = [
            ("bps-total", self.throttle.bytes),
            ("iops-total", self.throttle.requests),
            ("bps-read", self.throttle.read_bytes),
            ("bps-write", self.throttle.write_bytes),
            ("bps-write-max", bucket.map_or(0, |bucket| bucket.bandwidth)),
            ("bps-write-max-length", bucket.map_or(0, |bucket| bucket.seconds)),
            ("iops-read", self.throttle.read_requests),
            ("iops-write", self.throttle.write_requests),
        ];
        for (name, limit) in limits.into_iter().filter(|(_, limit)| *limit > 0) {
            drive.push_str(&format!(",throttling.{name}={limit}"));
        }
        // QEMU would make one request of several writes that follow each other and that it finds together in the ring. Its
        // throttle lets a request through whole: of 8 MiB at 30 MB/s the next read waits for 280 ms.
        let device = format!("virtio-blk-pci,drive=disk{number},serial={},request-merging=off", self.serial);
        ["-drive".to_owned(), drive, "-device".to_owned(), device]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk(dir: &std::path::Path) -> Disk {
        let throttle = Throttle { write_bytes: 1 << 20, read_requests: 30, ..Throttle::default() };
        Disk { path: dir.join("disk"), serial: "disk0".to_owned(), throttle, read_only: false }
    }

    #[test]
    fn a_disk_is_held_to_its_limits_and_no_others() {
        let arguments = disk("/run".as_ref()).arguments(3).join(" ");
        assert_eq!(
            arguments,
            "-drive id=disk3,if=none,format=raw,discard=unmap,file=/run/disk,throttling.bps-write=1048576,\
             throttling.iops-read=30 -device virtio-blk-pci,drive=disk3,serial=disk0,request-merging=off"
        );
    }

    #[test]
    fn a_write_cache_is_a_bucket() {
        let throttle = Throttle {
            write_bytes: 30_000_000,
            write_bucket: Some(WriteBucket { bandwidth: 500_000_000, seconds: 4 }),
            ..Throttle::default()
        };
        let arguments = Disk { throttle, ..disk("/run".as_ref()) }.arguments(3).join(" ");
        let limits =
            "throttling.bps-write=30000000,throttling.bps-write-max=500000000,throttling.bps-write-max-length=4";
        assert!(arguments.contains(limits), "{arguments}");
    }

    #[test]
    fn a_disk_is_sparse_and_made_once() {
        use std::os::unix::fs::MetadataExt;
        let dir = tempfile::tempdir().unwrap();
        let disk = disk(dir.path());
        disk.create(1 << 40).unwrap();
        assert_eq!(std::fs::metadata(&disk.path).unwrap().blocks(), 0);
        assert!(disk.create(1).unwrap_err().to_string().contains("exists"));
    }
}
