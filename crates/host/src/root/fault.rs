// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a read failed, and the one place where an error number becomes a [`Cause`]. A [`Fault`] is
//! small and copied: on the hot path thousands may happen in one sample and only one is reported.

use floodline_record::gap::Cause;
use rustix::io::Errno;

/// Why a read failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// Error number of the system call.
    Errno(i32),
    /// Longer than this many bytes.
    TooLarge(usize),
    /// Not a regular file (a directory, pipe, socket or device), so it was not read.
    NotRegular,
    /// Not a directory.
    NotDirectory,
}

impl From<Errno> for Fault {
    fn from(errno: Errno) -> Fault {
        Fault::Errno(errno.raw_os_error())
    }
}

impl Fault {
    /// There is no such file.
    pub const NOT_FOUND: Fault = Fault::Errno(Errno::NOENT.raw_os_error());

    /// Converts the fault to the cause to report. `path` decides the permission that a refusal names.
    pub fn cause(self, path: &[u8]) -> Cause {
        let errno = match self {
            Fault::Errno(errno) => errno,
            Fault::TooLarge(limit) => return Cause::TooLarge { limit_bytes: limit as u64 },
            Fault::NotRegular => return Cause::Malformed { what: "a regular file".into() },
            Fault::NotDirectory => return Cause::Malformed { what: "a directory".into() },
        };
        match Errno::from_raw_os_error(errno) {
            Errno::NOENT | Errno::NOTDIR => Cause::NotFound,
            // Kept descriptors of a removed cgroup (ENODEV) and of a dead process (ESRCH).
            Errno::NODEV | Errno::SRCH => Cause::Vanished,
            Errno::ACCESS | Errno::PERM => Cause::PermissionDenied { need: need(path).into() },
            Errno::OPNOTSUPP => Cause::Unsupported { since: "or switched off at boot".into() },
            Errno::MFILE | Errno::NFILE => Cause::Exhausted { what: "file descriptors".into() },
            Errno::NOMEM => Cause::Exhausted { what: "memory".into() },
            Errno::ISDIR => Cause::Malformed { what: "a regular file".into() },
            // A captured tree with a circle of links, or with names longer than a path may be.
            Errno::LOOP => Cause::Malformed { what: "a path without a circle of links".into() },
            Errno::NAMETOOLONG => Cause::Malformed { what: "a path of at most 4095 bytes".into() },
            errno => Cause::Io { errno: errno.raw_os_error() },
        }
    }

    /// Returns whether the file or directory went away, or never existed.
    pub fn is_gone(self) -> bool {
        let gone = [Errno::NOENT, Errno::NODEV, Errno::SRCH].map(Errno::raw_os_error);
        matches!(self, Fault::Errno(errno) if gone.contains(&errno))
    }

    /// Returns whether the reader lacked the permission.
    pub fn is_denied(self) -> bool {
        let denied = [Errno::ACCESS, Errno::PERM].map(Errno::raw_os_error);
        matches!(self, Fault::Errno(errno) if denied.contains(&errno))
    }

    /// Returns whether an immediate retry is useless: the file is absent, refused or unreadable. Faults of a removed
    /// entity, an interruption or a lack of resources are not lasting.
    pub fn is_lasting(self) -> bool {
        let passing = [Errno::NODEV, Errno::SRCH, Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::AGAIN];
        !matches!(self, Fault::Errno(errno) if passing.map(Errno::raw_os_error).contains(&errno))
    }
}

/// Returns the permission that is needed to read a refused path.
fn need(path: &[u8]) -> &'static str {
    let mut parts = path.split(|&b| b == b'/').filter(|part| !part.is_empty());
    match (parts.next(), parts.next(), parts.next()) {
        (Some(b"proc"), Some(pid), Some(_)) if pid == b"PID" || pid.iter().all(u8::is_ascii_digit) => "CAP_SYS_PTRACE",
        (Some(b"sys"), Some(b"kernel"), Some(b"debug")) => "root",
        _ => "CAP_DAC_READ_SEARCH",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(errno: Errno, path: &str, expect: &str) {
        assert_eq!(Fault::from(errno).cause(path.as_bytes()).to_string(), expect, "{errno:?} {path}");
    }

    #[test]
    fn an_error_number_becomes_the_cause_a_person_can_act_on() {
        check(Errno::NOENT, "/proc/vmstat", "does not exist here");
        check(Errno::NOTDIR, "/proc/vmstat/x", "does not exist here");
        check(Errno::NODEV, "/sys/fs/cgroup/a/memory.stat", "removed before it was read");
        check(Errno::SRCH, "/proc/12/io", "removed before it was read");
        check(Errno::ACCESS, "/proc/12/io", "permission denied (needs CAP_SYS_PTRACE)");
        check(Errno::ACCESS, "/proc/PID/io", "permission denied (needs CAP_SYS_PTRACE)");
        check(Errno::PERM, "/sys/kernel/debug/bdi", "permission denied (needs root)");
        check(Errno::ACCESS, "/etc/systemd/journald.conf", "permission denied (needs CAP_DAC_READ_SEARCH)");
        check(Errno::MFILE, "/proc/1/io", "ran out of file descriptors");
        check(Errno::OPNOTSUPP, "/sys/fs/cgroup/cpu.pressure", "not in this kernel (or switched off at boot)");
        check(Errno::IO, "/sys/block/sda/size", "read failed (errno 5)");
        check(Errno::INVAL, "/sys/block/sda/queue/wbt_lat_usec", "read failed (errno 22)");
    }
}
