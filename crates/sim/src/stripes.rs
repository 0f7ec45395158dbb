// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mapping of requests on stacked devices: the members that have a part in a request, and its place on each. Pieces
//! of one request that are adjacent on a member are one request there: the plug merges them. Mirrors
//! drivers/md/raid0.c, raid10.c (near layout, two copies), dm-stripe.c and dm-linear.c. `raid1.rs` chooses which of
//! several copies is read.

use crate::journal::LOG;
use crate::world::PAGE;
use floodline_scenario::Layout;
use std::collections::BTreeMap;
use std::ops::Range;

/// A part of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// The members that have these bytes, by number.
    pub(crate) members: Range<usize>,
    /// Place on each of them, pages.
    pub(crate) at: u64,
    pub(crate) bytes: u64,
    /// Number of pieces that were merged into it.
    pub(crate) merged: u64,
}

/// Layout of a device on its members.
#[derive(Clone, Debug)]
pub(crate) struct Stack {
    pub(crate) layout: Layout,
    /// Name of the mapping for a device-mapper device, else the level of md.
    pub(crate) name: String,
    pub(crate) is_md: bool,
    /// Bytes of each member.
    pub(crate) sizes: Vec<u64>,
    /// The files on a linear device.
    files: Files,
    /// Pages of the log that were written: each write goes on where the last one ended.
    logged: u64,
}

/// The member of each file by inode; the pages seen, a bit for each, in words by place; the bytes of the files of each member.
#[derive(Clone, Debug, Default)]
struct Files {
    members: BTreeMap<u64, usize>,
    pages: BTreeMap<u64, u64>,
    held: Vec<u64>,
}

impl Files {
    /// Bytes of a request that were not seen before. Blocks of a file that were never written take no room.
    fn see(&mut self, at: u64, bytes: u64) -> u64 {
        let (mut at, end, mut new) = (at, at.saturating_add(bytes.div_ceil(PAGE)), 0);
        while at < end {
            let (word, first) = (at / 64, at % 64);
            let count = (end - at).min(64 - first);
            let wanted = (u64::MAX >> (64 - count)) << first;
            let seen = self.pages.entry(word).or_default();
            new += u64::from((wanted & !*seen).count_ones());
            *seen |= wanted;
            at += count;
        }
        new * PAGE
    }
}

impl Stack {
    pub(crate) fn new(layout: Layout, name: &str, is_md: bool, sizes: Vec<u64>) -> Stack {
        Stack { layout, name: name.to_owned(), is_md, sizes, files: Files::default(), logged: 0 }
    }

    /// Bytes of the device.
    pub(crate) fn size(&self) -> u64 {
        let least = self.sizes.iter().copied().min().unwrap_or(0);
        match self.layout {
            Layout::Linear => self.sizes.iter().sum(),
            // Whole chunks of each member.
            Layout::Stripes(chunk) | Layout::MirroredStripes(chunk) => {
                (least - least % chunk.max(1)).saturating_mul(self.sets() as u64)
            }
            Layout::Mirrors | Layout::Encrypted(_) => least,
        }
    }

    /// Number of members, or pairs of them, with different content.
    fn sets(&self) -> usize {
        match self.layout {
            Layout::Mirrors | Layout::Encrypted(_) => 1,
            Layout::Stripes(_) | Layout::Linear => self.sizes.len(),
            Layout::MirroredStripes(_) => self.sizes.len() / 2,
        }
    }

    /// Bytes that keep all members busy (`io_opt`), 0 if the layout has none.
    pub(crate) fn optimal(&self) -> u64 {
        match self.layout {
            Layout::Stripes(chunk) | Layout::MirroredStripes(chunk) => chunk.saturating_mul(self.sets() as u64),
            Layout::Mirrors | Layout::Linear | Layout::Encrypted(_) => 0,
        }
    }

    /// Splits a read or a write into its parts.
    pub(crate) fn parts(&mut self, at: u64, bytes: u64) -> Vec<Part> {
        let all = self.sizes.len();
        match self.layout {
            Layout::Mirrors | Layout::Encrypted(_) => vec![Part { members: 0..all, at, bytes, merged: 0 }],
            Layout::Linear => {
                let member = if at >= LOG { self.middle() } else { self.linear_member(at, bytes) };
                vec![Part { members: member..member + 1, at, bytes, merged: 0 }]
            }
            Layout::Stripes(chunk) => striped(chunk, all, 1, self.laid_out(chunk, at, bytes), bytes),
            Layout::MirroredStripes(chunk) => striped(chunk, all / 2, 2, self.laid_out(chunk, at, bytes), bytes),
        }
    }

    /// Place of a request on a striped device. Filesystems put files one after the other, so each begins on another
    /// member, as does each write of the log.
    fn laid_out(&mut self, chunk: u64, at: u64, bytes: u64) -> u64 {
        if at >= LOG {
            let place = LOG + self.logged;
            self.logged += bytes.div_ceil(PAGE);
            return place;
        }
        at + (at >> 28) * chunk.div_ceil(PAGE)
    }

    /// Returns the member with the middle of a linear device, where mke2fs and mkfs.xfs put the log. On a real 6.1 with two disks
    /// of 4 GiB, the second one had 640 writes for the log of an ext4, and the first one those of its files.
    fn middle(&self) -> usize {
        self.member_at(self.size() / 2)
    }

    /// Returns the member of a linear device that holds this byte.
    fn member_at(&self, byte: u64) -> usize {
        let mut left = byte;
        let holds = |size: &u64| {
            let is_here = left < *size;
            left = left.saturating_sub(*size);
            is_here
        };
        self.sizes.iter().position(holds).unwrap_or(0)
    }

    /// Notes where on a linear device the filesystem puts a new file, in bytes from the beginning.
    pub(crate) fn put(&mut self, inode: u64, byte: u64) {
        if matches!(self.layout, Layout::Linear) {
            let member = self.member_at(byte);
            let held = self.files.held.get(member).copied().unwrap_or(0);
            if held < self.sizes.get(member).copied().unwrap_or(0) {
                self.files.members.insert(inode, member);
            }
        }
    }

    /// Returns the member of a file: where the filesystem put it, else the first one with room when the file is first seen.
    fn linear_member(&mut self, at: u64, bytes: u64) -> usize {
        let files = &mut self.files;
        files.held.resize(self.sizes.len(), 0);
        let new = files.see(at, bytes);
        let has_room = |(held, size): (&u64, &u64)| held < size;
        let first = || files.held.iter().zip(&self.sizes).position(has_room).unwrap_or(0);
        let member = *files.members.entry(at >> 28).or_insert_with(first);
        if let Some(held) = files.held.get_mut(member) {
            *held = held.saturating_add(new);
        }
        member
    }
}

/// Stripes over sets of `copies` members each.
fn striped(chunk: u64, sets: usize, copies: usize, at: u64, bytes: u64) -> Vec<Part> {
    let (mut parts, mut byte): (Vec<Part>, u64) = (Vec::new(), at * PAGE);
    let end = byte + bytes;
    let width = sets.max(1) as u64;
    while byte < end {
        let (number, within) = (byte / chunk, byte % chunk);
        let length = (chunk - within).min(end - byte);
        let set = usize::try_from(number % width).unwrap_or(0);
        let members = set * copies..(set + 1) * copies;
        match parts.iter_mut().find(|part| part.members == members) {
            Some(part) => {
                part.bytes += length;
                part.merged += 1;
            }
            None => {
                let at = (number / width * chunk + within) / PAGE;
                parts.push(Part { members, at, bytes: length, merged: 0 });
            }
        }
        byte += length;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(layout: Layout, members: usize, at: u64, bytes: u64) -> Vec<(Range<usize>, u64, u64, u64)> {
        let mut stack = Stack::new(layout, "", true, vec![1 << 30; members]);
        let parts = stack.parts(at, bytes);
        parts.into_iter().map(|part| (part.members, part.at, part.bytes, part.merged)).collect()
    }

    #[test]
    fn a_request_is_split_at_chunks_and_merged_on_each_member() {
        let (k, stripes) = (1 << 10, Layout::Stripes(64 << 10));
        assert_eq!(parts(stripes, 2, 0, 64 * k), [(0..1, 0, 64 * k, 0)]);
        assert_eq!(parts(stripes, 2, 15, 8 * k), [(0..1, 15, 4 * k, 0), (1..2, 0, 4 * k, 0)]);
        assert_eq!(parts(stripes, 2, 0, 256 * k), [(0..1, 0, 128 * k, 1), (1..2, 0, 128 * k, 1)]);
        // The third chunk is the second chunk of the first member.
        assert_eq!(parts(stripes, 2, 32, 4 * k), [(0..1, 16, 4 * k, 0)]);
        assert_eq!(parts(stripes, 3, 32, 4 * k), [(2..3, 0, 4 * k, 0)]);
        assert_eq!(parts(stripes, 2, 1, 512), [(0..1, 1, 512, 0)]);
    }

    #[test]
    fn files_and_writes_of_the_log_begin_on_members_in_turn() {
        let mut stack = Stack::new(Layout::Stripes(64 << 10), "", true, vec![1 << 30; 2]);
        let mut member = |at: u64| stack.parts(at, 32 << 10).first().expect("has a part").members.start;
        assert_eq!([7, 8, 9].map(|inode: u64| member(inode << 28)), [1, 0, 1]);
        assert_eq!([0, 1, 2, 3].map(|_| member(LOG)), [0, 0, 1, 1]);
    }

    #[test]
    fn pairs_have_the_same_bytes() {
        let pairs = Layout::MirroredStripes(64 << 10);
        assert_eq!(parts(pairs, 4, 0, 128 << 10), [(0..2, 0, 64 << 10, 0), (2..4, 0, 64 << 10, 0)]);
        assert_eq!(parts(Layout::Mirrors, 3, 7, 4096), [(0..3, 7, 4096, 0)]);
    }

    #[test]
    fn a_file_of_a_linear_device_is_on_the_first_member_that_has_room() {
        let mut stack = Stack::new(Layout::Linear, "lv", false, vec![1 << 20, 1 << 30]);
        let mut member = |inode: u64, page: u64, bytes| stack.linear_member((inode << 28) + page, bytes);
        assert_eq!((member(7, 0, 512 << 10), member(8, 0, 256 << 10)), (0, 0));
        // Rewritten data takes no more room; appended data does.
        assert_eq!((member(7, 0, 512 << 10), member(9, 0, 4096)), (0, 0));
        assert_eq!((member(8, 64, 256 << 10), member(10, 0, 4096)), (0, 1));
        assert_eq!((member(7, 0, 4096), member(10, 1, 4096)), (0, 1));
        assert_eq!(stack.size(), (1 << 30) + (1 << 20));
    }

    #[test]
    fn a_file_takes_the_room_of_what_was_written_of_it() {
        // Whether the next file is on the second member after these pages of 1 MiB in blocks of 64 KiB.
        let is_full = |blocks: &[u64]| {
            let mut stack = Stack::new(Layout::Linear, "lv", false, vec![1 << 20, 1 << 30]);
            blocks.iter().for_each(|block| assert_eq!(stack.linear_member((7 << 28) + 16 * block, 64 << 10), 0));
            stack.linear_member(8 << 28, 4096) == 1
        };
        let in_order: Vec<u64> = (0..16).collect();
        // Each seventh block, around: all of them, the last one before most others.
        let in_random_order: Vec<u64> = (0..16).map(|number| 7 * number % 16).collect();
        assert!(is_full(&in_order) && is_full(&in_random_order));
        assert!(!is_full(&in_random_order[..15]), "a hole takes no room");
        assert!(!is_full(&[15, 3, 15, 3, 15, 3, 15, 3, 15, 3, 15, 3, 15, 3, 15, 3]), "written again");
        // Metadata are far apart.
        assert!(!is_full(&[0, 1 << 12, 1 << 14]));
    }

    #[test]
    fn a_request_is_seen_by_its_pages() {
        let mut files = Files::default();
        let mut seen = |at: u64, pages: u64| files.see(at, pages * PAGE) / PAGE;
        assert_eq!([seen(60, 8), seen(60, 8), seen(0, 64), seen(63, 130), seen(0, 256)], [8, 0, 60, 125, 63]);
        assert_eq!((files.see(300, 512), files.see(300, 512), files.see(301, 0)), (PAGE, 0, 0));
    }

    #[test]
    fn a_file_is_where_the_filesystem_puts_it_unless_the_member_is_full() {
        let mut stack = Stack::new(Layout::Linear, "lv", false, vec![1 << 30, 1 << 20]);
        (7..9).for_each(|inode| stack.put(inode, (inode - 7) << 30));
        assert_eq!([7, 8, 9].map(|inode: u64| stack.linear_member(inode << 28, 1 << 20)), [0, 1, 0]);
        stack.put(10, 1 << 30);
        assert_eq!(stack.linear_member(10 << 28, 4096), 0);
    }

    #[test]
    fn the_log_of_a_linear_device_is_in_the_middle() {
        const GIB: u64 = 1 << 30;
        let check = |sizes: &[u64], expect: usize| {
            let mut stack = Stack::new(Layout::Linear, "lv", false, sizes.to_vec());
            let mut members = |at: u64| stack.parts(at, 4096).first().expect("has a part").members.clone();
            assert_eq!((members(LOG), members(7 << 28)), (expect..expect + 1, 0..1), "{sizes:?}");
        };
        check(&[4 * GIB, 4 * GIB], 1);
        check(&[8 * GIB, 4 * GIB], 0);
        check(&[GIB, GIB, GIB], 1);
        check(&[GIB], 0);
    }

    #[test]
    fn sizes_are_those_of_what_differs() {
        let size = |layout, members: usize| Stack::new(layout, "", true, vec![1 << 30; members]).size() >> 30;
        assert_eq!(
            (size(Layout::Mirrors, 2), size(Layout::Stripes(4096), 3), size(Layout::MirroredStripes(4096), 4)),
            (1, 3, 2)
        );
    }
}
