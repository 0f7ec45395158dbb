// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host that is changed: the running one, or a folder that imitates its `/proc`, `/sys` and `/etc`. Every path of
//! this crate starts here. In an imitated host, plain files stand for attributes, and `port.rs` does what the kernel
//! does besides (a member of a pair zeroes the other one).

use floodline_analysis::change::Fingerprint;
use rustix::time::{ClockId, clock_gettime};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Longest file that is read.
const READ_MAX: u64 = 1 << 20;

/// The host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    root: PathBuf,
    is_imitated: bool,
}

impl Host {
    /// The running host.
    pub fn running() -> Host {
        Host { root: PathBuf::from("/"), is_imitated: false }
    }

    /// A folder that imitates a host. `/` is the running host.
    pub fn below(root: &Path) -> Host {
        let is_running = std::fs::canonicalize(root).is_ok_and(|path| path == Path::new("/"));
        if is_running { Host::running() } else { Host { root: root.to_owned(), is_imitated: true } }
    }

    /// Whether a folder imitates it.
    pub fn is_imitated(&self) -> bool {
        self.is_imitated
    }

    /// Top of the host.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Path of a file of the host, given without a leading slash.
    pub fn path(&self, relative: &str) -> PathBuf {
        self.root.join(relative.trim_start_matches('/'))
    }

    /// Text of a file, at most 1 MiB of it. Other bytes than UTF-8 are replaced.
    pub fn read(&self, relative: &str) -> io::Result<String> {
        let mut bytes = Vec::new();
        File::open(self.path(relative))?.take(READ_MAX).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// First line of a file, trimmed; `None` if it cannot be read or is empty.
    pub fn line(&self, relative: &str) -> Option<String> {
        let text = self.read(relative).ok()?;
        text.lines().next().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty())
    }

    /// What identifies the host and its boot.
    pub fn fingerprint(&self) -> Fingerprint {
        let meminfo = self.read("proc/meminfo").unwrap_or_default();
        let total = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:")?.split_whitespace().next());
        Fingerprint {
            hostname: self.line("proc/sys/kernel/hostname"),
            kernel: self.line("proc/sys/kernel/osrelease"),
            boot_id: self.line("proc/sys/kernel/random/boot_id"),
            mem_total_bytes: total.and_then(|kib| kib.parse::<u64>().ok()?.checked_mul(1024)),
        }
    }

    /// A number of `/proc/vmstat`, in pages.
    pub fn vmstat(&self, name: &str) -> Option<u64> {
        let text = self.read("proc/vmstat").ok()?;
        text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
    }
}

/// Nanoseconds since boot, suspended time included. Steps of the wall clock do not move it.
pub fn boottime() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}

/// Nanoseconds since 1970, for display alone.
pub fn wall() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
