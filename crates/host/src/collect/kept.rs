// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files that are read in every sample: opened once and kept open while the table of descriptors has room. Beyond that
//! they are opened for each read. A file that is absent or refused is retried only now and then.

use crate::root::{Fault, HostFile, SMALL};
use rustix::process::{Resource, Rlimit};

/// Limits on filling the table of descriptors.
#[derive(Clone, Copy, Debug)]
pub(super) struct Descriptors {
    /// Files with a lower descriptor number are kept. The kernel hands out the lowest free number, so a high one means
    /// that the table is nearly full.
    keep_below: i32,
    /// Lower limit for files that not every sample needs: it leaves room for those that every sample needs.
    spare_below: i32,
    /// Limit for directories that stay open from their listing to the reading of their files.
    enter_below: i32,
}

/// Descriptors left for the rest of this program.
const RESERVE: u64 = 128;

impl Descriptors {
    /// Keeps no file open.
    pub(super) const NONE: Descriptors = Descriptors { keep_below: 0, spare_below: 0, enter_below: 0 };

    /// Limits from the current RLIMIT_NOFILE of this process.
    pub(super) fn of_this_process() -> Descriptors {
        let soft = rustix::process::getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        Descriptors::up_to(soft)
    }

    fn up_to(soft: u64) -> Descriptors {
        let keep = soft.saturating_sub(RESERVE).max(soft / 2);
        let keep_below = i32::try_from(keep).unwrap_or(i32::MAX);
        Descriptors { keep_below, spare_below: keep_below, enter_below: keep_below }
    }

    /// Keeps no file or directory open once it was read, since no other sample follows. The kernel has a buffer for each
    /// open file that was read. A file that is closed leaves it to the next file.
    pub(super) fn for_one_sample(self) -> Descriptors {
        Descriptors { enter_below: self.enter_below, ..Descriptors::NONE }
    }

    /// Leaves room for `files` more files that every sample needs.
    pub(super) fn set_aside(&mut self, files: usize) {
        self.spare_below = self.spare_below.saturating_sub(i32::try_from(files).unwrap_or(i32::MAX));
    }

    /// Returns the limits for files that not every sample needs.
    pub(super) fn not_set_aside(self) -> Descriptors {
        Descriptors { keep_below: self.spare_below, ..self }
    }

    /// Returns whether a descriptor may be kept.
    pub(super) fn has_room(self, number: i32) -> bool {
        number < self.keep_below
    }

    /// Returns whether a directory that was listed may stay open until its files are read.
    pub(super) fn has_room_to_enter(self, number: i32) -> bool {
        number < self.enter_below
    }
}

/// Number of files that suffices for a machine with ten thousand cgroups and as many processes.
const ENOUGH: u64 = 1 << 18;

/// Raises RLIMIT_NOFILE of this process to its maximum; as root also the maximum. Programs call it at their start. If
/// it is refused, sampling opens files for each read.
pub fn raise_descriptor_limit() {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    let maximum = limit.maximum.map(|maximum| maximum.max(ENOUGH));
    let more = Rlimit { current: maximum, maximum };
    if rustix::process::setrlimit(Resource::Nofile, more).is_err() {
        let _ = rustix::process::setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    }
}

/// One file that is read in every sample.
#[derive(Debug, Default)]
pub(super) enum Kept {
    /// Not opened yet, or there was no room to keep it.
    #[default]
    Closed,
    /// Held open.
    Open(HostFile),
    /// Absent or refused. Reads return this fault until one sets [`Reading::again`].
    Missing(Fault),
}

/// Parameters of [`Kept::read`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    /// The table of descriptors.
    pub(super) descriptors: Descriptors,
    /// Whether to retry a file that was missing.
    pub(super) again: bool,
    /// Whether the kernel prints the file in one piece.
    pub(super) piece: bool,
    /// Maximum length of the content, bytes.
    pub(super) limit: usize,
}

impl Reading {
    /// Parameters for the files of one cgroup or process.
    pub(super) fn small(descriptors: Descriptors, again: bool) -> Reading {
        Reading { descriptors, again, piece: true, limit: SMALL }
    }

    fn run(self, file: &HostFile, content: &mut Vec<u8>) -> Result<(), Fault> {
        if self.piece { file.read_piece(content, self.limit) } else { file.read(content, self.limit) }
    }
}

impl Kept {
    /// Replaces `content` with that of the file. Opens the file if necessary.
    pub(super) fn read(
        &mut self,
        reading: Reading,
        content: &mut Vec<u8>,
        open: impl FnOnce() -> Result<HostFile, Fault>,
    ) -> Result<(), Fault> {
        let result = match self {
            Kept::Open(file) => reading.run(file, content),
            Kept::Missing(fault) if !reading.again => return Err(*fault),
            Kept::Closed | Kept::Missing(_) => open().and_then(|file| {
                let result = reading.run(&file, content);
                *self = if reading.descriptors.has_room(file.number()) { Kept::Open(file) } else { Kept::Closed };
                result
            }),
        };
        if let Err(fault) = result {
            *self = if fault.is_lasting() { Kept::Missing(fault) } else { Kept::Closed };
        }
        result
    }

    /// Returns whether the file is not held open and was not found missing.
    pub(super) fn is_closed(&self) -> bool {
        matches!(self, Kept::Closed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root::HostRoot;
    use rustix::io::Errno;

    #[test]
    fn some_of_the_table_is_left_to_others() {
        for (soft, keep) in [(1024, 896), (1_048_576, 1_048_448), (200, 100), (u64::MAX, 2_147_483_647)] {
            let descriptors = Descriptors::up_to(soft);
            assert!(descriptors.has_room(keep - 1) && !descriptors.has_room(keep), "{soft}");
        }
    }

    #[test]
    fn room_is_set_aside_for_what_every_sample_needs() {
        let mut descriptors = Descriptors::up_to(1024);
        descriptors.set_aside(300);
        descriptors.set_aside(96);
        let rest = descriptors.not_set_aside();
        assert!(descriptors.has_room(895) && rest.has_room(499) && !rest.has_room(500));
        descriptors.set_aside(usize::MAX);
        assert!(!descriptors.not_set_aside().has_room(0) && descriptors.has_room(0));
    }

    #[test]
    fn a_single_sample_holds_only_the_directories_that_it_is_about_to_read() {
        let descriptors = Descriptors::up_to(1024);
        let once = descriptors.for_one_sample();
        assert!(!once.has_room(0) && !once.not_set_aside().has_room(0));
        for number in [0, 895, 896] {
            assert_eq!(once.has_room_to_enter(number), descriptors.has_room(number), "{number}");
            assert_eq!(descriptors.has_room_to_enter(number), descriptors.has_room(number), "{number}");
        }
    }

    #[test]
    fn a_full_table_means_opening_each_time() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("file"), "1\n").unwrap();
        let root = HostRoot::at(dir.path()).unwrap();
        for (room, kept) in [(0, false), (1000, true)] {
            let reading = Reading::small(Descriptors { keep_below: room, ..Descriptors::NONE }, false);
            let (mut file, mut content) = (Kept::default(), Vec::new());
            for _ in 0..2 {
                file.read(reading, &mut content, || root.file(b"/file")).unwrap();
                assert_eq!(content, b"1\n");
                assert_eq!(matches!(file, Kept::Open(_)), kept);
            }
        }
    }

    #[test]
    fn what_is_missing_is_not_looked_for_each_time() {
        let mut file = Kept::default();
        let mut tries = 0;
        for (again, expect) in [(false, 1), (false, 1), (true, 2), (false, 2)] {
            let reading = Reading::small(Descriptors::up_to(1024), again);
            let result = file.read(reading, &mut Vec::new(), || {
                tries += 1;
                Err(Fault::from(Errno::ACCESS))
            });
            assert!(result.unwrap_err().is_denied());
            assert_eq!(tries, expect);
        }
    }
}
