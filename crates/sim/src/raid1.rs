// SPDX-License-Identifier: MIT OR Apache-2.0
//! Devices made of other devices. In an array of level 1, a write goes to every member and a read to one of them;
//! `stripes.rs` decides which members of other layouts take part. Such a device has no queue of its own. Each
//! member has a queue of its own, with its depth and its writeback throttling, and the submitter waits for one
//! after the other. Dirtiers sleep for the array's bdi, so writes are never urgent to a member. Mirrors
//! drivers/md/raid1.c, without the plug that lets a writer run ahead of the members' queues.

use crate::arena::BlockId;
use crate::block::{Block, Class, Done, Entry, Request, Way, enter};
use crate::engine::Sim;
use crate::stripes::Part;
use crate::world::{PAGE, World};
use floodline_scenario::Layout;

/// A member of an array: `struct raid1_info`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mirror {
    pub(crate) device: BlockId,
    /// Requests that it has not completed its part of, including those that wait for its queue.
    nr_pending: u32,
    /// End of the last request that it completed, pages.
    head_position: u64,
    /// End of the last read submitted to it, pages.
    next_seq: u64,
}

impl Mirror {
    pub(crate) fn new(device: BlockId) -> Mirror {
        Mirror { device, nr_pending: 0, head_position: 0, next_seq: 0 }
    }
}

/// A request of an array.
#[derive(Clone, Copy, Debug)]
struct R1bio {
    array: BlockId,
    /// Its number within the array.
    slot: u32,
    /// Members that have not completed their part.
    remaining: u32,
}

/// All requests of arrays in flight.
#[derive(Debug, Default)]
pub(crate) struct R1bios {
    cells: Vec<R1bio>,
    free: Vec<u32>,
}

impl R1bios {
    fn open(&mut self, r1bio: R1bio) -> u32 {
        let cell = self.free.pop().unwrap_or_else(|| {
            self.cells.push(r1bio);
            u32::try_from(self.cells.len() - 1).unwrap_or(u32::MAX)
        });
        self.cells[cell as usize] = r1bio;
        cell
    }

    /// Completes the part of a member. Returns its request, and whether that is complete now.
    fn done(&mut self, cell: u32) -> (R1bio, bool) {
        let r1bio = &mut self.cells[cell as usize];
        r1bio.remaining -= 1;
        if r1bio.remaining == 0 {
            self.free.push(cell);
        }
        (*r1bio, r1bio.remaining == 0)
    }
}

/// Chooses the member for a read at a page: one whose last request ended there, as it need not seek. Otherwise, the
/// one with the fewest requests if any member is non-rotational or idle, else the nearest. The first of several.
fn read_balance(mirrors: &[Mirror], at: u64, has_nonrot: bool) -> usize {
    let is_sequential = |mirror: &Mirror| mirror.next_seq == at || mirror.head_position == at;
    if let Some(sequential) = mirrors.iter().position(is_sequential) {
        return sequential;
    }
    let least_by = |key: fn(&Mirror, u64) -> u64| {
        let least = mirrors.iter().enumerate().min_by_key(|(_, mirror)| key(mirror, at));
        least.map_or(0, |(number, _)| number)
    };
    let idlest = least_by(|mirror, _| u64::from(mirror.nr_pending));
    if has_nonrot || mirrors[idlest].nr_pending == 0 {
        idlest
    } else {
        least_by(|mirror, at| mirror.head_position.abs_diff(at))
    }
}

/// The class of an array's writes to its members: that of the request if the array keeps its flags. An older array
/// keeps "sync" alone, so no write is exempt or background: those of the journal and direct ones are urgent.
fn member_class(keeps_flags: bool, class: Class) -> Class {
    match class {
        class if keeps_flags => class,
        Class::Exempt | Class::Urgent => Class::Urgent,
        Class::Normal | Class::Background => Class::Normal,
    }
}

/// Submits a request to the members of an array that have a part in it (`raid1_make_request`). Returns when their
/// queues have accepted it.
pub(crate) async fn make_request(sim: &Sim, array: BlockId, request: &Request) {
    let parts = sim.w().begin_r1bio(array, request);
    for (member, part) in parts {
        let (device, entry) = sim.w().submit_part(array, member, &part);
        if let Some(entry) = entry {
            // A member may itself be made of other devices.
            Box::pin(enter(sim, device, &part, entry)).await;
        }
    }
}

impl World {
    /// Begins a request of an array. Returns the members that have a part in it, by number, with the request for each.
    fn begin_r1bio(&mut self, array: BlockId, request: &Request) -> Vec<(usize, Request)> {
        let slot = self.blocks[array].admit(self.now, request);
        let has_nonrot = self.blocks[array].mirrors.iter().any(|mirror| !self.blocks[mirror.device].rotational);
        let keeps_flags = self.behaviour.stack.md_keeps_flags;
        let Block { mirrors, stack, .. } = &mut self.blocks[array];
        let is_copied =
            stack.as_ref().is_none_or(|stack| matches!(stack.layout, Layout::Mirrors | Layout::MirroredStripes(_)));
        // Striped and linear devices pass on the request itself, with its flags.
        let class = match request.way {
            Way::Write if is_copied => member_class(keeps_flags, request.class),
            _ => request.class,
        };
        let whole = || vec![Part { members: 0..mirrors.len(), at: request.at, bytes: request.bytes, merged: 0 }];
        let parts = match (request.way, stack) {
            (Way::Flush, _) | (_, None) => whole(),
            (_, Some(stack)) => stack.parts(request.at, request.bytes),
        };
        let mut asked = Vec::new();
        for Part { members, at, bytes, merged } in parts {
            let members = match request.way {
                Way::Read => {
                    let member = members.start + read_balance(&mirrors[members], at, has_nonrot);
                    mirrors[member].next_seq = at + bytes / PAGE;
                    member..member + 1
                }
                Way::Write | Way::Flush => members,
            };
            let part = Request { at, bytes, class, merged: request.merged + merged, ..*request };
            asked.extend(members.map(|member| (member, part)));
        }
        for (member, _) in &asked {
            mirrors[*member].nr_pending += 1;
        }
        let remaining = u32::try_from(asked.len()).unwrap_or(u32::MAX);
        let cell = self.r1bios.open(R1bio { array, slot, remaining });
        for (_, part) in &mut asked {
            part.done = Done::R1bio(cell);
        }
        asked
    }

    /// Submits a member's part of a request. Returns what the caller has to wait for, if anything.
    fn submit_part(&mut self, array: BlockId, member: usize, part: &Request) -> (BlockId, Option<Entry>) {
        let device = self.blocks[array].mirrors[member].device;
        (device, self.submit_now(device, part))
    }

    /// Completes a member's part of a request.
    pub(crate) fn r1bio_done(&mut self, device: BlockId, part: &Request, cell: u32) {
        let array = self.r1bios.cells[cell as usize].array;
        let member = self.blocks[array].mirrors.iter_mut().find(|mirror| mirror.device == device);
        if let Some(mirror) = member {
            mirror.nr_pending -= 1;
            if part.way != Way::Flush {
                mirror.head_position = part.at + part.bytes / PAGE;
            }
        }
        self.part_done(cell, part.way);
    }

    /// Begins a request that is complete when `remaining` parts are.
    pub(crate) fn begin_parts(&mut self, array: BlockId, slot: u32, remaining: u32) -> u32 {
        self.r1bios.open(R1bio { array, slot, remaining })
    }

    /// Completes a part of a request. After the last part, the request is complete or is decrypted.
    pub(crate) fn part_done(&mut self, cell: u32, way: Way) {
        let (R1bio { array, slot, .. }, is_complete) = self.r1bios.done(cell);
        if is_complete && !self.crypt_read(array, slot) {
            self.queue.push_completion(self.now, array, way, slot);
        }
    }

    /// Completes a part that needs no decryption.
    pub(crate) fn piece_done(&mut self, cell: u32, way: Way) {
        let (R1bio { array, slot, .. }, is_complete) = self.r1bios.done(cell);
        if is_complete {
            self.queue.push_completion(self.now, array, way, slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_kernel::Behaviour;

    #[test]
    fn a_read_goes_where_it_is_done_soonest() {
        let check = |members: [(u32, u64); 3], has_nonrot, expect| {
            let mirrors = members.map(|(nr_pending, head_position)| Mirror {
                nr_pending,
                head_position,
                ..Mirror::new(BlockId(0))
            });
            assert_eq!(read_balance(&mirrors, 1000, has_nonrot), expect, "{members:?} {has_nonrot}");
        };
        check([(3, 900), (2, 0), (2, 990)], true, 1);
        check([(3, 900), (2, 0), (2, 990)], false, 2);
        // The member that is already there reads on.
        check([(3, 900), (0, 0), (9, 1000)], true, 2);
        // An idle member may as well seek.
        check([(3, 900), (0, 0), (2, 990)], false, 1);
        check([(0, 0), (0, 999), (0, 999)], false, 0);
        check([(1, 1100), (1, 900), (1, 0)], false, 0);
    }

    #[test]
    fn a_read_that_was_asked_for_is_followed_before_it_is_done() {
        let mirrors = [Mirror::new(BlockId(0)), Mirror { next_seq: 7, nr_pending: 1, ..Mirror::new(BlockId(1)) }];
        assert_eq!((read_balance(&mirrors, 7, true), read_balance(&mirrors, 8, true)), (1, 0));
    }

    #[test]
    fn members_of_older_kernels_throttle_whatever_is_written() {
        let check = |kernel: &str, class, expect| {
            let behaviour = Behaviour::of(kernel.parse().expect("a version"));
            assert_eq!(member_class(behaviour.stack.md_keeps_flags, class), expect, "{kernel}");
        };
        for (class, alone) in [
            (Class::Exempt, Class::Urgent),
            (Class::Urgent, Class::Urgent),
            (Class::Normal, Class::Normal),
            (Class::Background, Class::Normal),
        ] {
            check("6.12.45", class, alone);
            check("6.14", class, alone);
            check("6.12.46", class, class);
            check("6.15", class, class);
        }
    }
}
