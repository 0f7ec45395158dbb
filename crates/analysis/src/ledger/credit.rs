// SPDX-License-Identifier: MIT OR Apache-2.0
//! Attributes the flusher's bytes to tasks. A kernel thread writes data later than the task dirtied it, so a write
//! names its file and not its task. It is credited to the tasks that dirtied that file and are owed a write, in
//! proportion to the bytes owed. Every byte is credited at most once.

use floodline_record::id::DevId;
use floodline_record::traced::{Inode, Who};
use floodline_record::units::Nanos;
use std::collections::{BTreeMap, VecDeque};

/// A file. Without an inode number: all files of a filesystem that are too small to be named.
pub type FileKey = (DevId, Option<Inode>);

/// Factor by which a write may be later than usual, behind others at a slow disk.
const LATE: u64 = 4;

/// Bytes that one process dirtied in one file at one time.
#[derive(Clone, Debug)]
struct Owed {
    who: Who,
    at: Nanos,
    bytes: u64,
    /// Bytes already written, by disk: a mirror writes everything twice.
    written: BTreeMap<DevId, u64>,
}

impl Owed {
    fn open(&self, disk: DevId) -> u64 {
        self.bytes.saturating_sub(self.written(disk))
    }

    /// Bytes that can still be credited. The total is at most twice the dirtied bytes: otherwise known tasks would be
    /// credited with the bytes of unseen ones.
    fn room(&self, disk: DevId) -> u64 {
        self.bytes.saturating_mul(2).saturating_sub(self.written(disk))
    }

    /// Subtracts dropped bytes from those that no disk has received. Returns the remainder.
    fn drop(&mut self, bytes: u64) -> u64 {
        let written = self.written.values().copied().max().unwrap_or(0);
        let part = bytes.min(self.bytes.saturating_sub(written));
        self.bytes -= part;
        bytes - part
    }

    fn written(&self, disk: DevId) -> u64 {
        self.written.get(&disk).copied().unwrap_or(0)
    }
}

/// The dirtied bytes that no write has been credited to yet.
#[derive(Clone, Debug)]
pub struct Credit {
    owed: BTreeMap<FileKey, Vec<Owed>>,
    /// Time at which each of the above became dirty, roughly ordered: data above a loop device come earlier.
    order: VecDeque<(Nanos, FileKey)>,
    /// How long dirty data can be expected to stay in memory.
    keep: Nanos,
    /// Whether the tracer kept the process that made a file dirty last.
    knows_owners: bool,
}

/// Processes credited with bytes of one write. Bytes not listed are credited to no process.
pub type Shares = Vec<(Who, u64)>;

impl Credit {
    /// `keep`: longest time until a write follows. Older dirty data was dropped, or was a whole folio of which a part
    /// was written. `knows_owners`: whether the tracer kept the process that made a file dirty last.
    pub fn new(keep: Nanos, knows_owners: bool) -> Credit {
        Credit { owed: BTreeMap::new(), order: VecDeque::new(), keep, knows_owners }
    }

    /// Records that a process dirtied bytes of a file.
    pub fn dirtied(&mut self, file: FileKey, who: &Who, at: Nanos, bytes: u64) {
        self.forget(Nanos(at.0.saturating_sub(self.keep.0.saturating_mul(LATE))));
        let oldest = Nanos(at.0.saturating_sub(self.keep.0));
        let owed = self.owed.entry(file).or_default();
        owed.retain(|one| one.at >= oldest);
        match owed.iter_mut().find(|one| one.who == *who && one.at == at) {
            Some(one) => one.bytes = one.bytes.saturating_add(bytes),
            None => {
                owed.push(Owed { who: who.clone(), at, bytes, written: BTreeMap::new() });
                self.order.push_back((at, file));
            }
        }
    }

    /// Records that dirty bytes of a file were dropped: no write of them will follow. `owner` is the last process that
    /// had made the file dirty. Its bytes are dropped first, then the oldest.
    pub fn cancelled(&mut self, file: FileKey, owner: &Who, bytes: u64) {
        // The file may have been among the unnamed ones when it became dirty.
        let key = if self.owed.contains_key(&file) { file } else { (file.0, None) };
        let is_named = key.1.is_some();
        let Some(owed) = self.owed.get_mut(&key) else { return };
        let mut left = bytes;
        for one in owed.iter_mut().filter(|one| one.who.pid == owner.pid) {
            left = one.drop(left);
        }
        for one in owed.iter_mut().filter(|_| is_named) {
            left = one.drop(left);
        }
    }

    /// Forgets files that were last dirtied too long ago for any disk to still write them: a long recording has very
    /// many.
    fn forget(&mut self, oldest: Nanos) {
        while self.order.front().is_some_and(|(at, _)| *at < oldest) {
            let Some((_, file)) = self.order.pop_front() else { return };
            if let Some(owed) = self.owed.get_mut(&file) {
                owed.retain(|one| one.at >= oldest);
                if owed.is_empty() {
                    self.owed.remove(&file);
                }
            }
        }
    }

    /// Credits bytes of a file that were queued at a disk. `cgroup_ino` is the cgroup that was charged, where known: it
    /// narrows down the owners of unnamed files. `owner` is the last process that made the file dirty, where the tracer
    /// kept it: an unnamed file is credited to it.
    pub fn submitted(
        &mut self,
        file: FileKey,
        disk: DevId,
        cgroup_ino: Option<u64>,
        owner: Option<&Who>,
        bytes: u64,
    ) -> Shares {
        if file.1.is_some() && self.owed.contains_key(&file) {
            return share(self.owed.entry(file).or_default().iter_mut().collect(), disk, bytes, Owed::room);
        }
        // A file that was too small to be named when it was dirtied is among the unnamed ones. A file that is unnamed
        // now may be any file of its filesystem.
        let first = (file.0, None);
        if let Some(owner) = owner {
            let unnamed = self.owed.get_mut(&first).into_iter().flatten();
            share(unnamed.filter(|one| one.who.pid == owner.pid).collect(), disk, bytes, Owed::open);
            return vec![(owner.clone(), bytes)];
        }
        // Data that was dirty before the trace began, or that was dirtied without being traced.
        if self.knows_owners {
            return Shares::new();
        }
        let last =
            if file.1.is_some() { first } else { (file.0, Some(Inode { ino: u64::MAX, generation: Some(u32::MAX) })) };
        let there = || self.owed.range(first..=last).flat_map(|(_, owed)| owed);
        let charged = cgroup_ino.filter(|ino| there().any(|one| one.who.cgroup_ino == *ino && one.open(disk) > 0));
        let asked = self.owed.range_mut(first..=last).flat_map(|(_, owed)| owed);
        let asked = asked.filter(|one| charged.is_none_or(|ino| one.who.cgroup_ino == ino)).collect();
        // Known processes get at most the bytes they are owed: the rest belongs to unknown files.
        share(asked, disk, bytes, Owed::open)
    }
}

/// Splits bytes in proportion to the bytes owed. If nothing is owed any more (a page written twice while it stayed
/// dirty), in proportion to the bytes dirtied. No process gets more than its `limit`.
fn share(owed: Vec<&mut Owed>, disk: DevId, bytes: u64, limit: fn(&Owed, DevId) -> u64) -> Shares {
    let is_open = owed.iter().any(|one| one.open(disk) > 0);
    let weight = |one: &Owed| if is_open { one.open(disk) } else { limit(one, disk) };
    let mut left = owed.iter().map(|one| limit(one, disk)).fold(0, u64::saturating_add).min(bytes);
    let weighed = owed.into_iter().map(|one| (weight(one), one)).filter(|(weight, _)| *weight > 0);
    let weighed: Vec<(u64, &mut Owed)> = weighed.collect();
    let mut weights: u128 = weighed.iter().map(|(weight, _)| u128::from(*weight)).sum();
    let mut shares: BTreeMap<&Who, u64> = BTreeMap::new();
    for (weight, one) in weighed {
        // Splits the rest by the remaining weights: the last process gets the remainder, and no byte is lost.
        let part = u64::try_from(u128::from(left) * u128::from(weight) / weights).unwrap_or(left);
        left -= part;
        weights -= u128::from(weight);
        if part > 0 {
            *one.written.entry(disk).or_default() += part;
            *shares.entry(&one.who).or_default() += part;
        }
    }
    shares.into_iter().map(|(who, bytes)| (who.clone(), bytes)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_record::name::Name;

    const DISK: DevId = DevId { major: 8, minor: 0 };
    const MIRROR: DevId = DevId { major: 8, minor: 16 };
    const FS: DevId = DevId { major: 9, minor: 0 };

    enum Step {
        /// Second, process, cgroup, inode, bytes.
        Dirty(u64, u32, u64, Option<u64>, u64),
        /// Inode, disk, cgroup, bytes, and the credited processes with their bytes.
        Write(Option<u64>, DevId, Option<u64>, u64, &'static [(u32, u64)]),
        /// Inode, process that had dirtied it, bytes.
        Drop(Option<u64>, u32, u64),
    }
    use Step::{Dirty, Drop, Write};

    fn file(ino: Option<u64>) -> FileKey {
        (FS, ino.map(|ino| Inode { ino, generation: None }))
    }

    fn check(steps: &[Step]) {
        let mut credit = Credit::new(Nanos(40_000_000_000), false);
        for step in steps {
            match *step {
                Dirty(second, pid, cgroup_ino, ino, bytes) => {
                    let who = Who { pid, comm: Name::from("w"), cgroup_ino };
                    credit.dirtied(file(ino), &who, Nanos(second * 1_000_000_000), bytes);
                }
                Drop(ino, pid, bytes) => {
                    credit.cancelled(file(ino), &Who { pid, comm: Name::from("w"), cgroup_ino: 1 }, bytes);
                }
                Write(ino, disk, cgroup, bytes, expect) => {
                    let shares = credit.submitted(file(ino), disk, cgroup, None, bytes);
                    let shares: Vec<(u32, u64)> = shares.iter().map(|(who, bytes)| (who.pid, *bytes)).collect();
                    assert_eq!(shares, expect);
                }
            }
        }
    }

    #[test]
    fn a_write_is_credited_to_who_dirtied_the_file() {
        check(&[
            Dirty(1, 7, 1, Some(5), 100),
            Dirty(1, 8, 1, Some(6), 300),
            Write(Some(6), DISK, None, 300, &[(8, 300)]),
            Write(Some(5), DISK, None, 100, &[(7, 100)]),
        ]);
    }

    #[test]
    fn two_who_share_a_file_are_credited_in_proportion_and_no_byte_is_lost() {
        check(&[
            Dirty(1, 7, 1, Some(5), 100),
            Dirty(1, 8, 2, Some(5), 200),
            Write(Some(5), DISK, None, 100, &[(7, 33), (8, 67)]),
            Write(Some(5), DISK, None, 200, &[(7, 67), (8, 133)]),
        ]);
    }

    #[test]
    fn what_was_written_is_owed_no_more() {
        check(&[
            Dirty(1, 7, 1, Some(5), 100),
            Write(Some(5), DISK, None, 100, &[(7, 100)]),
            Dirty(2, 8, 1, Some(5), 100),
            Write(Some(5), DISK, None, 100, &[(8, 100)]),
            // Written again without having been dirtied: split by the dirtied bytes.
            Write(Some(5), DISK, None, 10, &[(7, 5), (8, 5)]),
        ]);
    }

    #[test]
    fn what_was_dropped_is_owed_no_more() {
        // One process truncates a file and another one writes it anew, in one interval.
        check(&[
            Dirty(1, 7, 1, Some(5), 1051),
            Dirty(1, 8, 2, Some(5), 1061),
            Drop(Some(5), 7, 1051),
            Write(Some(5), DISK, None, 1061, &[(8, 1061)]),
        ]);
        // The latest dirtier's bytes are dropped first, then those of the others.
        check(&[
            Dirty(1, 7, 1, Some(5), 100),
            Dirty(2, 8, 2, Some(5), 100),
            Write(Some(5), DISK, None, 100, &[(7, 50), (8, 50)]),
            Drop(Some(5), 8, 70),
            Write(Some(5), DISK, None, 30, &[(7, 30)]),
        ]);
        // Of unnamed files only the owner's bytes are dropped.
        check(&[
            Dirty(1, 7, 11, None, 100),
            Dirty(1, 8, 11, None, 100),
            Drop(Some(5), 7, 150),
            Write(None, DISK, Some(11), 100, &[(8, 100)]),
        ]);
    }

    #[test]
    fn nobody_is_credited_with_more_than_everything_twice() {
        check(&[
            Dirty(1, 7, 1, Some(5), 100),
            Write(Some(5), DISK, None, 150, &[(7, 150)]),
            Write(Some(5), DISK, None, 1000, &[(7, 50)]),
            Write(Some(5), DISK, None, 1000, &[]),
            Dirty(1, 7, 1, Some(5), 50),
            Write(Some(5), DISK, None, 1000, &[(7, 100)]),
        ]);
    }

    #[test]
    fn a_mirror_is_credited_on_both_sides() {
        check(&[
            Dirty(1, 7, 1, Some(5), 100),
            Write(Some(5), DISK, None, 100, &[(7, 100)]),
            Dirty(2, 8, 1, Some(5), 100),
            Write(Some(5), MIRROR, None, 200, &[(7, 100), (8, 100)]),
        ]);
    }

    #[test]
    fn what_stayed_unwritten_for_too_long_is_owed_no_more() {
        check(&[
            Dirty(1, 7, 1, Some(5), 1000),
            Dirty(60, 8, 1, Some(5), 10),
            Write(Some(5), DISK, None, 10, &[(8, 10)]),
        ]);
    }

    #[test]
    fn files_that_are_not_dirtied_again_are_let_go_of_at_last() {
        check(&[
            Dirty(1, 7, 1, Some(5), 1000),
            Dirty(100, 8, 1, Some(6), 10),
            // Late, but still credited to the same processes.
            Write(Some(5), DISK, None, 10, &[(7, 10)]),
            Dirty(200, 8, 1, Some(6), 10),
            Write(Some(5), DISK, None, 10, &[]),
        ]);
    }

    #[test]
    fn files_without_a_name_are_told_apart_by_the_cgroup_that_is_charged() {
        check(&[
            Dirty(1, 7, 11, None, 100),
            Dirty(1, 8, 12, None, 100),
            Write(None, DISK, Some(12), 60, &[(8, 60)]),
            // No process of that cgroup is known: all are considered.
            Write(None, DISK, Some(99), 14, &[(7, 10), (8, 4)]),
        ]);
    }

    #[test]
    fn unnamed_writes_take_no_more_than_what_is_owed() {
        check(&[
            Dirty(1, 7, 1, Some(5), 100),
            Dirty(1, 8, 1, None, 100),
            // After shedding nothing else is known of the rest.
            Write(None, DISK, None, 1000, &[(7, 100), (8, 100)]),
            Write(None, DISK, None, 1000, &[]),
            Write(Some(9), DISK, None, 1000, &[]),
        ]);
    }

    #[test]
    fn a_file_that_is_not_told_from_others_is_its_owners() {
        let mut credit = Credit::new(Nanos(40_000_000_000), false);
        let who = |pid| Who { pid, comm: Name::from("w"), cgroup_ino: 1 };
        let at = Nanos(1_000_000_000);
        // Of as many files as are kept others are removed: what they are owed never comes.
        credit.dirtied(file(None), &who(7), at, 20_492_288);
        credit.dirtied(file(None), &who(8), at, 20_492_288);
        credit.dirtied(file(Some(3)), &who(9), at, 4096);
        let mut write = |ino, owner: Option<u32>, bytes| {
            let owner = owner.map(who);
            let shares = credit.submitted(file(ino), DISK, Some(1), owner.as_ref(), bytes);
            shares.iter().map(|(who, bytes)| (who.pid, *bytes)).collect::<Vec<_>>()
        };
        assert_eq!(write(None, Some(7), 20_000_000), [(7, 20_000_000)]);
        assert_eq!(write(Some(5), Some(7), 492_288), [(7, 492_288)]);
        // By its name it has dirtiers of its own, all of whom count.
        assert_eq!(write(Some(3), Some(7), 4096), [(9, 4096)]);
        // What the first one got is owed to it no more.
        assert_eq!(write(None, None, 4096), [(8, 4096)]);
    }

    #[test]
    fn bytes_that_nobody_was_seen_to_dirty_are_nobodys() {
        check(&[
            Write(Some(5), DISK, None, 10, &[]),
            Dirty(1, 7, 1, Some(6), 100),
            Write(Some(5), DISK, None, 10, &[]),
            Dirty(1, 8, 1, None, 20),
            Write(Some(5), DISK, None, 10, &[(8, 10)]),
        ]);
    }
}
