// SPDX-License-Identifier: MIT OR Apache-2.0
//! dm-crypt. The submitter of a write goes on at once. Workers, one per CPU, encrypt a copy of it in pieces. One
//! thread submits the copies to the device below in order of their sectors, so only this thread waits for the queue
//! and the writeback throttling there. A read goes to the device below first and is decrypted afterwards. Copies
//! take memory, of which the target has a share; a worker that finds none waits. The flags that avoid the workers
//! (`no_read_workqueue`, `no_write_workqueue`) are not modelled. Mirrors drivers/md/dm-crypt.c.

use crate::arena::{BlockId, CgId};
use crate::block::{Class, Done, Request, Way, submit};
use crate::engine::{Sim, Ticket, suspend};
use crate::hypervisor::time_of;
use crate::process::{Sleeper, use_cpu};
use crate::world::{PAGE, World};
use std::collections::{BTreeMap, VecDeque};

/// Bytes of copies that can always be allocated: a mempool of `BIO_MAX_VECS` pages.
const POOL: u64 = 256 * PAGE;
/// Divisor of the machine's memory for the copies of all such devices (`DM_CRYPT_MEMORY_PERCENT`).
const MEMORY_SHARE: u64 = 50;

/// Encryption state of a device.
#[derive(Debug)]
pub(crate) struct Crypt {
    /// Bytes per second that a CPU encrypts.
    rate: u64,
    /// Most bytes of copies.
    limit: u64,
    /// Bytes of copies that are not written yet.
    held: u64,
    work: VecDeque<Work>,
    idle: Vec<Ticket>,
    /// Workers that wait for memory.
    starved: Vec<Ticket>,
    /// Copies that the thread has not taken, and copies that it has taken, by place and then in order of arrival.
    encrypted: BTreeMap<(u64, u64), Piece>,
    taken: BTreeMap<(u64, u64), Piece>,
    next: u64,
    writer: Option<Ticket>,
}

/// Work of a worker.
#[derive(Clone, Copy, Debug)]
enum Work {
    Encrypt(Piece),
    /// Decrypts a piece of a read that the device below completed.
    Decrypt(Piece),
}

/// A piece of a request.
#[derive(Clone, Copy, Debug)]
struct Piece {
    at: u64,
    bytes: u64,
    class: Class,
    cgroup: CgId,
    /// The request that contains it, in this cell of [`R1bios`](crate::raid1::R1bios).
    cell: u32,
}

impl Piece {
    /// Whether another piece can be merged into its request.
    fn is_followed_by(&self, next: &Piece) -> bool {
        self.at * PAGE + self.bytes == next.at * PAGE && (self.class, self.cgroup) == (next.class, next.cgroup)
    }
}

/// A write to a device below.
#[derive(Debug)]
struct Below {
    device: BlockId,
    bytes: u64,
    cells: Vec<u32>,
}

/// All writes to devices below that are in flight.
#[derive(Debug, Default)]
pub(crate) struct CryptWrites {
    cells: Vec<Below>,
    free: Vec<u32>,
}

impl CryptWrites {
    fn open(&mut self, below: Below) -> u32 {
        match self.free.pop() {
            Some(cell) => {
                self.cells[cell as usize] = below;
                cell
            }
            None => {
                self.cells.push(below);
                u32::try_from(self.cells.len() - 1).unwrap_or(u32::MAX)
            }
        }
    }
}

impl Crypt {
    /// Takes the bytes per second of a CPU, the pages of the machine, and the devices that share the memory of copies.
    pub(crate) fn new(rate: u64, pages: u64, devices: u64) -> Crypt {
        Crypt {
            rate: rate.max(1),
            limit: pages / MEMORY_SHARE * PAGE / devices.max(1) + POOL,
            held: 0,
            work: VecDeque::new(),
            idle: Vec::new(),
            starved: Vec::new(),
            encrypted: BTreeMap::new(),
            taken: BTreeMap::new(),
            next: 0,
            writer: None,
        }
    }

    /// Takes the memory of a copy, or adds the worker to those that wait for memory.
    fn hold(&mut self, bytes: u64, ticket: Ticket) -> bool {
        let fits = self.held == 0 || self.held + bytes <= self.limit;
        if fits {
            self.held += bytes;
        } else {
            self.starved.push(ticket);
        }
        fits
    }

    /// Returns the copies that are written next, as one request.
    fn next_write(&mut self, bytes_max: u64) -> Option<(Piece, Vec<u32>)> {
        if self.taken.is_empty() {
            self.taken = std::mem::take(&mut self.encrypted);
        }
        let (_, mut first) = self.taken.pop_first()?;
        let mut cells = vec![first.cell];
        while let Some(next) = self.taken.first_entry() {
            let piece = *next.get();
            if !first.is_followed_by(&piece) || first.bytes + piece.bytes > bytes_max {
                break;
            }
            first.bytes += piece.bytes;
            cells.push(piece.cell);
            next.remove();
        }
        Some((first, cells))
    }
}

impl World {
    /// Whether a device encrypts a request.
    pub(crate) fn encrypts(&self, device: BlockId, way: Way) -> bool {
        way == Way::Write && self.blocks[device].crypt.is_some()
    }

    /// Takes a write to a device that encrypts it.
    pub(crate) fn crypt_write(&mut self, device: BlockId, request: &Request) {
        let slot = self.blocks[device].admit(self.now, request);
        for piece in self.crypt_pieces(device, slot, request) {
            self.crypt_work(device, Work::Encrypt(piece));
        }
    }

    /// Handles a read that the device below completed. Returns whether workers have to decrypt it first.
    pub(crate) fn crypt_read(&mut self, device: BlockId, slot: u32) -> bool {
        let request = self.blocks[device].request(slot);
        if request.way != Way::Read || self.blocks[device].crypt.is_none() {
            return false;
        }
        for piece in self.crypt_pieces(device, slot, &request) {
            self.crypt_work(device, Work::Decrypt(piece));
        }
        true
    }

    /// Returns the pieces of a request. The request is complete when all of them are.
    fn crypt_pieces(&mut self, device: BlockId, slot: u32, request: &Request) -> Vec<Piece> {
        let most = self.behaviour.stack.crypt_request_kib << 10;
        let &Request { at, bytes, class, cgroup, .. } = request;
        let count = bytes.div_ceil(most).max(1);
        let cell = self.begin_parts(device, slot, u32::try_from(count).unwrap_or(u32::MAX));
        let piece = |number: u64| {
            let before = number * most;
            Piece { at: at + before / PAGE, bytes: most.min(bytes - before), class, cgroup, cell }
        };
        (0..count).map(piece).collect()
    }

    fn crypt_work(&mut self, device: BlockId, work: Work) {
        let Some(crypt) = &mut self.blocks[device].crypt else { return };
        crypt.work.push_back(work);
        let worker = crypt.idle.pop();
        if let Some(ticket) = worker {
            self.wake(ticket);
        }
    }

    fn crypt_next(&mut self, device: BlockId, ticket: Ticket) -> Option<(Work, u64)> {
        let crypt = self.blocks[device].crypt.as_mut()?;
        let Some(work) = crypt.work.pop_front() else {
            crypt.idle.push(ticket);
            return None;
        };
        let (Work::Encrypt(piece) | Work::Decrypt(piece)) = work;
        Some((work, time_of(piece.bytes, crypt.rate)))
    }

    /// Handles an encrypted piece.
    fn crypt_done(&mut self, device: BlockId, piece: Piece) {
        let Some(crypt) = &mut self.blocks[device].crypt else { return };
        crypt.encrypted.insert((piece.at, crypt.next), piece);
        crypt.next += 1;
        let writer = crypt.writer.take();
        if let Some(ticket) = writer {
            self.wake(ticket);
        }
    }

    fn crypt_next_write(&mut self, device: BlockId, ticket: Ticket) -> Option<(BlockId, Request)> {
        let bytes_max = self.request_pages() * PAGE;
        let block = &mut self.blocks[device];
        let (member, crypt) = (block.mirrors.first()?.device, block.crypt.as_mut()?);
        let Some((Piece { at, bytes, class, cgroup, .. }, cells)) = crypt.next_write(bytes_max) else {
            crypt.writer = Some(ticket);
            return None;
        };
        let merged = cells.len() as u64 - 1;
        let cell = self.crypt_writes.open(Below { device, bytes, cells });
        Some((
            member,
            Request { way: Way::Write, at, bytes, class, merged, goes_on: false, cgroup, done: Done::Crypt(cell) },
        ))
    }

    /// Handles copies that the device below has written.
    pub(crate) fn crypt_written(&mut self, cell: u32) {
        let below = &mut self.crypt_writes.cells[cell as usize];
        let (device, bytes, cells) = (below.device, below.bytes, std::mem::take(&mut below.cells));
        self.crypt_writes.free.push(cell);
        if let Some(crypt) = &mut self.blocks[device].crypt {
            crypt.held = crypt.held.saturating_sub(bytes);
            for ticket in std::mem::take(&mut crypt.starved) {
                self.wake(ticket);
            }
        }
        for cell in cells {
            self.part_done(cell, Way::Write);
        }
    }
}

/// One worker of a device.
pub(crate) async fn worker(sim: Sim, device: BlockId) {
    let pid = {
        let mut world = sim.w();
        let name = format!("kworker/u:{}+kcryptd", world.blocks[device].name);
        world.kernel_thread(&name)
    };
    loop {
        let ticket = sim.ticket("");
        let next = { sim.w().crypt_next(device, ticket) };
        let Some((work, nanos)) = next else {
            suspend().await;
            continue;
        };
        match work {
            Work::Encrypt(piece) => {
                memory(&sim, device, piece.bytes).await;
                use_cpu(&sim, pid, nanos, false).await;
                sim.w().crypt_done(device, piece);
            }
            Work::Decrypt(piece) => {
                use_cpu(&sim, pid, nanos, false).await;
                sim.w().piece_done(piece.cell, Way::Read);
            }
        }
    }
}

/// Waits until there is memory for a copy.
async fn memory(sim: &Sim, device: BlockId, bytes: u64) {
    loop {
        let ticket = sim.ticket("");
        let is_held = { sim.w().blocks[device].crypt.as_mut().is_none_or(|crypt| crypt.hold(bytes, ticket)) };
        if is_held {
            return;
        }
        suspend().await;
    }
}

/// The thread that writes encrypted copies.
pub(crate) async fn writer(sim: Sim, device: BlockId) {
    // Its sleep counts for no task.
    sim.w().sleeps_as(sim.current_process(), Sleeper::Other);
    loop {
        let ticket = sim.ticket("");
        let next = { sim.w().crypt_next_write(device, ticket) };
        match next {
            Some((member, request)) => submit(&sim, member, request).await,
            None => suspend().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(at: u64, bytes: u64, class: Class) -> Piece {
        Piece { at, bytes, class, cgroup: CgId::ROOT, cell: u32::try_from(at).unwrap_or(0) }
    }

    #[test]
    fn copies_are_written_by_place_and_as_one_where_they_follow_each_other() {
        let mut crypt = Crypt::new(1, 0, 1);
        let pieces = [(32, Class::Normal), (0, Class::Normal), (96, Class::Normal), (64, Class::Background)];
        for (number, (at, class)) in (0..).zip(pieces) {
            crypt.encrypted.insert((at, number), piece(at, 32 * PAGE, class));
        }
        let mut next = || crypt.next_write(1 << 20).map(|(piece, cells)| (piece.at, piece.bytes / PAGE, cells));
        assert_eq!(next(), Some((0, 64, vec![0, 32])));
        assert_eq!((next(), next(), next()), (Some((64, 32, vec![64])), Some((96, 32, vec![96])), None));
    }

    #[test]
    fn a_request_is_no_larger_than_the_device_takes() {
        let mut crypt = Crypt::new(1, 0, 1);
        for at in [0, 32, 64] {
            crypt.encrypted.insert((at, at), piece(at, 32 * PAGE, Class::Normal));
        }
        let sizes: Vec<u64> =
            std::iter::from_fn(|| crypt.next_write(64 * PAGE)).map(|(piece, _)| piece.bytes / PAGE).collect();
        assert_eq!(sizes, [64, 32]);
    }

    #[test]
    fn copies_have_a_fiftieth_of_the_memory_and_a_pool() {
        assert_eq!(Crypt::new(1, 50_000, 1).limit, 1000 * PAGE + (1 << 20));
        assert_eq!(Crypt::new(1, 50_000, 4).limit, 250 * PAGE + (1 << 20));
    }
}
