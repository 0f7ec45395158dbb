// SPDX-License-Identifier: MIT OR Apache-2.0
//! Journals: transactions that collect changed blocks, a commit that writes them, and the tasks that wait for it. A
//! commit of ext4 waits for ordered data, and holds its blocks while the log is written: a program that changes one
//! of them waits. The log of XFS does neither. Mirrors fs/jbd2/commit.c and fs/jbd2/transaction.c in outline, and a
//! log force of fs/xfs/xfs_log_cil.c.

mod in_place;
mod log;
mod log_space;
mod reserved;
mod without;

use crate::arena::{CgId, InodeId, PidId, SbId};
use crate::engine::{Due, Sim, Ticket, Waiters, suspend};
use crate::filesystem::FIRST_INODES;
use crate::process::{Sleeper, may_block};
use crate::world::{PAGE, World};
use crate::writepages::wait_writeback;
use crate::xfsaild::Room;
use floodline_kernel::Journals;
pub(crate) use log::{LOG, flush, flush_alone};
use log::{write, write_checkpoint, write_record, write_superblock};
use log_space::{LogSpace, make_room};
use reserved::{Reserved, transaction_blocks};
pub(crate) use reserved::{journal_blocks_of_ext4, reserve};
use std::collections::{BTreeMap, BTreeSet};
pub(crate) use without::{Unsynced, sync_fs, sync_in_place};

/// Bytes of the log of XFS, which holds changes instead of blocks, in whole sectors. Measured on 6.12: 320 bytes for
/// each of many files that are created. Measured on 7.2: 1024 bytes for an append and its fdatasync, and about 4 KiB
/// for a new file and its fsync.
mod xfs_log {
    /// One buffer of the log (`logbsize`).
    pub(super) const BUFFER: u64 = 32 << 10;
    pub(super) const SECTOR: u64 = 512;
    pub(super) const HEADER: u64 = 512;
    pub(super) const INODE: u64 = 320;
    /// A change of any other block: of its 4 KiB the pieces of 128 bytes that changed.
    pub(super) const OTHER: u64 = 512;
}

/// A set of block numbers as words of 64 bits: the blocks of one table are next to each other.
#[derive(Clone, Debug, Default)]
pub(crate) struct BlockSet(BTreeMap<u64, u64>);

impl BlockSet {
    /// Returns whether the block is new.
    pub(crate) fn insert(&mut self, block: u64) -> bool {
        let (word, bit) = (self.0.entry(block / 64).or_default(), 1 << (block % 64));
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    fn contains(&self, block: u64) -> bool {
        self.0.get(&(block / 64)).is_some_and(|word| word >> (block % 64) & 1 == 1)
    }

    fn len(&self) -> u64 {
        self.0.values().map(|word| u64::from(word.count_ones())).sum()
    }

    fn extend(&mut self, other: &BlockSet) {
        for (at, word) in &other.0 {
            *self.0.entry(*at).or_default() |= word;
        }
    }

    /// Bytes that the log of XFS takes for changes of these blocks.
    fn xfs_log_bytes(&self) -> u64 {
        use xfs_log::{HEADER, INODE, OTHER, SECTOR};
        let others = self.iter().take_while(|block| *block < FIRST_INODES).count() as u64;
        let items = others * OTHER + (self.len() - others) * INODE;
        (HEADER + items).next_multiple_of(SECTOR)
    }

    /// Every block, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u64> {
        self.0
            .iter()
            .flat_map(|(at, word)| (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| at * 64 + bit))
    }
}

/// A transaction.
#[derive(Debug)]
struct Transaction {
    tid: u64,
    blocks: BlockSet,
    /// The block that joined last: after the commit it becomes dirty first.
    newest: Option<u64>,
    /// Number of its blocks.
    len: u64,
    /// Inodes whose data must be on the device before the commit.
    ordered: BTreeSet<InodeId>,
    handles: u32,
    /// Time at which it is committed without a request.
    expires: u64,
}

/// A journal.
#[derive(Debug)]
pub(crate) struct Journal {
    /// Whether it is a jbd2 journal; otherwise it is the log of an XFS.
    is_jbd2: bool,
    /// Whether data reaches the device before the transaction that refers to it.
    is_ordered: bool,
    /// Time between commits; for XFS, between rounds of its worker.
    interval: u64,
    next_tid: u64,
    running: Option<Transaction>,
    is_locked: bool,
    /// Whether the log on the device is marked empty. The first commit after a mount clears that mark before it
    /// closes its transaction (`JBD2_FLUSHED`).
    is_flushed: bool,
    reserved: Reserved,
    log: LogSpace,
    /// Blocks of the transaction that is being committed, and whether its log is being written.
    committing: BlockSet,
    is_writing: bool,
    committed: u64,
    requested: u64,
    /// The cgroup that pays for a write of the log of XFS: that of the task that forces the log.
    payer: Option<CgId>,
    waiters: Waiters,
    thread: Option<Ticket>,
    /// Metadata blocks in XFS's log that are not yet written in place, and the thread that writes them there.
    unwritten: BlockSet,
    /// Whether they are written at once (`xfs_ail_push_all()`).
    is_pushed: bool,
    /// Whether blocks are on their way to their place.
    is_in_flight: bool,
    /// Number of times that they arrived there.
    rounds: u64,
    writer: Option<Ticket>,
    /// Room in the log of XFS.
    pub(crate) room: Room,
}

impl Journal {
    /// The journal of an ext4. `bytes` is the size of its device, `log` that of its log in blocks.
    pub(crate) fn jbd2(interval: u64, bytes: u64, log: u64, behaviour: Journals) -> Journal {
        let transaction = transaction_blocks(log, behaviour);
        Journal {
            reserved: Reserved::of_ext4(bytes, transaction),
            log: LogSpace::of(log, transaction),
            ..Journal::new(true, interval)
        }
    }

    /// The log of an XFS, with its size in pages.
    pub(crate) fn xfs(log: u64) -> Journal {
        let room = Room::of(log);
        let items = room.commit_bytes() / xfs_log::INODE;
        Journal { room, log: LogSpace::of(u64::MAX, items), ..Journal::new(false, crate::xfsaild::INTERVAL) }
    }

    fn new(is_jbd2: bool, interval: u64) -> Journal {
        Journal {
            is_jbd2,
            is_ordered: is_jbd2,
            interval,
            next_tid: 1,
            running: None,
            is_locked: false,
            is_flushed: is_jbd2,
            reserved: Reserved::unbounded(),
            log: LogSpace::unbounded(),
            committing: BlockSet::default(),
            is_writing: false,
            committed: 0,
            requested: 0,
            payer: None,
            waiters: Waiters::default(),
            thread: None,
            unwritten: BlockSet::default(),
            is_pushed: false,
            is_in_flight: false,
            rounds: 0,
            writer: None,
            room: Room::of(u64::MAX),
        }
    }

    /// Whether each inode is logged by itself, instead of with its inode table block.
    pub(crate) fn logs_inodes(&self) -> bool {
        !self.is_jbd2
    }

    /// Notes that its filesystem is mounted: the unmount before left the log empty.
    pub(crate) fn mounted(&mut self) {
        self.is_flushed = self.is_jbd2;
    }

    /// Whether data are ordered (`data=ordered`).
    pub(crate) fn with_order(self, is_ordered: bool) -> Journal {
        Journal { is_ordered: self.is_jbd2 && is_ordered, ..self }
    }

    /// Returns the running transaction if it takes no more blocks.
    fn full(&self) -> Option<u64> {
        self.running.as_ref().filter(|running| self.log.is_full(running.len)).map(|running| running.tid)
    }

    /// Whether one of these blocks is being written to the log.
    fn holds_any(&self, blocks: &[u64]) -> bool {
        self.is_writing && blocks.iter().any(|block| self.committing.contains(*block))
    }

    /// Whether a transaction that is not committed has a block.
    fn has(&self, block: u64) -> bool {
        self.committing.contains(block) || self.running.as_ref().is_some_and(|running| running.blocks.contains(block))
    }

    /// Adds changed blocks to the running transaction.
    fn add(&mut self, blocks: &[u64]) {
        if let Some(running) = &mut self.running {
            for block in blocks {
                if running.blocks.insert(*block) {
                    (running.newest, running.len) = (Some(*block), running.len + 1);
                }
            }
        }
    }

    /// Removes one handle from the running transaction.
    fn leave(&mut self) {
        if let Some(running) = &mut self.running {
            running.handles = running.handles.saturating_sub(1);
        }
    }

    fn due(&self) -> Option<u64> {
        let running = self.running.as_ref()?;
        Some(if self.requested >= running.tid { 0 } else { running.expires })
    }
}

/// Returns a superblock's journal, if it has one.
fn of(world: &mut World, sb: SbId) -> Option<&mut Journal> {
    world.sbs[sb].journal.as_mut()
}

/// Joins the running transaction; waits while it is being closed.
pub(crate) async fn start(sim: &Sim, sb: SbId) {
    loop {
        let lacks_room = {
            let mut world = sim.w();
            let (is_locked, full, lacks_room) = of(&mut world, sb).map_or((false, None, false), |journal| {
                (journal.is_locked || journal.room.is_lacking(), journal.full(), journal.log.lacks_room())
            });
            if !is_locked && full.is_none() && !lacks_room {
                world.journal_handle(sb);
                return;
            }
            if let Some(tid) = full.filter(|_| !is_locked) {
                world.journal_request(sb, tid);
            }
            !is_locked && full.is_none()
        };
        match lacks_room {
            true => Box::pin(make_room(sim, sb)).await,
            false => wait(sim, sb, "a transaction that is being closed, or room in the log").await,
        }
    }
}

/// Joins the running transaction with credits reserved earlier, even while it is being closed.
pub(crate) fn start_reserved(sim: &Sim, sb: SbId) {
    let mut world = sim.w();
    world.journal_unreserve(sb);
    world.journal_handle(sb);
}

/// Changes metadata blocks in a transaction, in a task's name. `inode` is the inode concerned, if any, and whether
/// reading its data needs the change.
pub(crate) async fn change(sim: &Sim, pid: PidId, sb: SbId, blocks: &[u64], inode: Option<(InodeId, bool)>) {
    let is_done = {
        let mut world = sim.w();
        let memcg = world.memcg_of(pid);
        world.journal_change(sb, blocks, memcg, inode)
    };
    if is_done {
        return;
    }
    may_block(sim, pid, async {
        start(sim, sb).await;
        let memcg = sim.w().memcg_of(pid);
        modify(sim, sb, blocks, memcg).await;
    })
    .await;
    if let Some((inode, with_data)) = inode {
        sim.w().journal_joins(inode, with_data);
    }
    stop(sim, sb);
}

/// Leaves the running transaction.
pub(crate) fn stop(sim: &Sim, sb: SbId) {
    let mut world = sim.w();
    let waiting = of(&mut world, sb).map(|journal| {
        journal.leave();
        if journal.is_locked { journal.waiters.take() } else { Waiters::default() }
    });
    world.wake_all(waiting.unwrap_or_default());
}

/// Changes blocks within a transaction, for a thread of a memcg. Waits while one of them is being written to the log.
pub(crate) async fn modify(sim: &Sim, sb: SbId, blocks: &[u64], memcg: CgId) {
    sim.w().cache_metadata(sb, blocks, memcg);
    loop {
        {
            let mut world = sim.w();
            let Some(journal) = of(&mut world, sb) else {
                world.change_in_place(sb, blocks, memcg);
                return;
            };
            if !journal.holds_any(blocks) {
                journal.add(blocks);
                return;
            }
        }
        wait(sim, sb, "a block on its way to the journal (jbd2)").await;
    }
}

pub(crate) async fn wait(sim: &Sim, sb: SbId, waits: &'static str) {
    let ticket = sim.ticket(waits);
    if let Some(journal) = of(&mut sim.w(), sb) {
        journal.waiters.add(ticket);
    }
    suspend().await;
}

impl World {
    /// Changes metadata blocks at once if no transaction is in the way. Returns whether that is done. Without a journal
    /// nothing is in the way.
    pub(crate) fn journal_change(
        &mut self,
        sb: SbId,
        blocks: &[u64],
        memcg: CgId,
        inode: Option<(InodeId, bool)>,
    ) -> bool {
        let Some(journal) = &self.sbs[sb].journal else {
            self.change_in_place(sb, blocks, memcg);
            if let Some((inode, with_data)) = inode {
                self.changed_in_place(inode, with_data);
            }
            return true;
        };
        let has_room = !journal.room.is_lacking() && !journal.log.lacks_room() && journal.full().is_none();
        if journal.is_locked || !has_room || journal.holds_any(blocks) {
            return false;
        }
        self.cache_metadata(sb, blocks, memcg);
        // A task that takes part sleeps for I/O, if only for zero time.
        self.count_switch();
        self.journal_handle(sb);
        if let Some((inode, with_data)) = inode {
            self.journal_joins(inode, with_data);
        }
        if let Some(journal) = &mut self.sbs[sb].journal {
            journal.add(blocks);
            journal.leave();
        }
        true
    }

    /// Adds a handle to the running transaction, and begins one if there is none.
    fn journal_handle(&mut self, sb: SbId) {
        let Some(journal) = &mut self.sbs[sb].journal else { return };
        if let Some(running) = &mut journal.running {
            running.handles += 1;
            return;
        }
        let tid = journal.next_tid;
        journal.next_tid += 1;
        let thread = journal.thread;
        let expires = self.journal_expires(sb);
        let (blocks, ordered) = (BlockSet::default(), BTreeSet::new());
        if let Some(journal) = &mut self.sbs[sb].journal {
            journal.running = Some(Transaction { tid, blocks, newest: None, len: 0, ordered, handles: 1, expires });
        }
        if let Some(ticket) = thread {
            self.queue.push(expires, Due::Wake(ticket));
        }
    }

    /// Commit time of a transaction that begins now.
    fn journal_expires(&self, sb: SbId) -> u64 {
        let Some(journal) = &self.sbs[sb].journal else { return self.now };
        match journal.is_jbd2 {
            true => self.timer(self.round_jiffies_up(journal.interval)),
            false => journal.next_round(self.now),
        }
    }

    /// Notes that the running transaction holds the last change of an inode. `with_data`: reading its data needs
    /// the change.
    pub(crate) fn journal_joins(&mut self, inode: InodeId, with_data: bool) {
        let sb = self.inodes[inode].sb;
        // Unwritten blocks expose no old data of another file, so their data needs no order.
        let has_unwritten = self.sbs[sb].has_unwritten;
        let Some(journal) = &mut self.sbs[sb].journal else { return self.changed_in_place(inode, with_data) };
        let Some(running) = &mut journal.running else { return };
        self.inodes[inode].sync_tid = running.tid;
        if with_data {
            self.inodes[inode].datasync_tid = running.tid;
            if journal.is_ordered && !has_unwritten {
                running.ordered.insert(inode);
            }
        }
    }

    /// Requests a commit. Returns whether there is anything to wait for.
    fn journal_request(&mut self, sb: SbId, tid: u64) -> bool {
        let Some(journal) = &mut self.sbs[sb].journal else { return false };
        if tid <= journal.committed {
            return false;
        }
        journal.requested = journal.requested.max(tid);
        if let Some(ticket) = journal.thread {
            self.wake(ticket);
        }
        true
    }

    /// Starts a commit of ext4's running transaction without waiting (`sync_fs` without wait). XFS does nothing then.
    pub(crate) fn journal_start_commit(&mut self, sb: SbId) {
        if self.sbs[sb].journal.as_ref().is_some_and(|journal| journal.is_jbd2) {
            self.journal_request(sb, self.journal_newest(sb));
        }
    }

    /// The newest transaction that was begun.
    fn journal_newest(&self, sb: SbId) -> u64 {
        self.sbs[sb].journal.as_ref().map_or(0, |journal| journal.next_tid - 1)
    }
}

/// Waits until a transaction is committed. `tid` 0 is the newest. Returns whether there was anything to wait for.
pub(crate) async fn commit(sim: &Sim, sb: SbId, tid: u64) -> bool {
    let tid = if tid == 0 { sim.w().journal_newest(sb) } else { tid };
    if !sim.w().journal_request(sb, tid) {
        return false;
    }
    pays(sim, sb, tid);
    loop {
        {
            let mut world = sim.w();
            match of(&mut world, sb) {
                Some(journal) if journal.committed < tid => {}
                _ => return true,
            }
        }
        wait(sim, sb, "a commit of the journal").await;
    }
}

/// Notes that the present task writes the log of XFS up to a transaction, unless another task does already.
fn pays(sim: &Sim, sb: SbId, tid: u64) {
    let process = sim.current_process();
    let mut world = sim.w();
    let cgroup = world.of_task(process);
    if let Some(journal) = of(&mut world, sb).filter(|journal| !journal.is_jbd2)
        && journal.running.as_ref().is_some_and(|running| running.tid <= tid)
    {
        journal.payer.get_or_insert(cgroup);
    }
}

/// The journal's thread.
pub(crate) async fn thread(sim: Sim, sb: SbId) {
    if of(&mut sim.w(), sb).is_some_and(|journal| !journal.is_jbd2) {
        // XFS has no such thread: workers and tasks that force the log write it, and wait for it without `io_schedule`.
        sim.w().sleeps_as(sim.current_process(), Sleeper::Other);
    }
    loop {
        loop {
            {
                let ticket = sim.ticket("");
                let mut world = sim.w();
                let now = world.now;
                let Some(journal) = of(&mut world, sb) else { return };
                let due = journal.due();
                if due.is_some_and(|at| at <= now) {
                    journal.thread = None;
                    break;
                }
                journal.thread = Some(ticket);
                if let Some(at) = due {
                    world.queue.push(at, Due::Wake(ticket));
                }
            }
            suspend().await;
        }
        commit_running(&sim, sb).await;
    }
}

async fn commit_running(sim: &Sim, sb: SbId) {
    let Some(device) = sim.w().sbs[sb].device else { return };
    let is_jbd2 = of(&mut sim.w(), sb).is_some_and(|journal| journal.is_jbd2);
    write_superblock(sim, sb, device).await;
    if is_jbd2 {
        if let Some(journal) = of(&mut sim.w(), sb) {
            journal.is_locked = true;
        }
        while of(&mut sim.w(), sb).and_then(|journal| journal.running.as_ref()).is_some_and(|tx| tx.handles > 0) {
            wait(sim, sb, "").await;
        }
    }
    let (transaction, payer) = {
        let mut world = sim.w();
        let Some(journal) = of(&mut world, sb) else { return };
        journal.is_locked = false;
        let payer = journal.payer.take().unwrap_or(CgId::ROOT);
        let (transaction, waiting) = (journal.running.take(), journal.waiters.take());
        world.wake_all(waiting);
        (transaction, payer)
    };
    let Some(transaction) = transaction else { return };
    for inode in &transaction.ordered {
        let busy: Vec<(u64, u64)> = {
            let world = sim.w();
            let extents = world.inodes[*inode].cache.extents();
            extents.filter(|(_, e)| e.writeback).map(|(at, e)| (*at, u64::from(e.len))).collect()
        };
        for (start, len) in busy {
            wait_writeback(sim, *inode, start, len).await;
        }
    }
    let blocks = transaction.blocks.len();
    if let Some(journal) = of(&mut sim.w(), sb)
        && is_jbd2
    {
        journal.committing.clone_from(&transaction.blocks);
        journal.is_writing = true;
    }
    let bytes = if is_jbd2 { (1 + blocks) * PAGE } else { transaction.blocks.xfs_log_bytes() };
    match is_jbd2 {
        true => write(sim, sb, device, bytes, payer).await,
        false => write_checkpoint(sim, sb, device, bytes, payer).await,
    }
    {
        let mut world = sim.w();
        let waiting = of(&mut world, sb).map(|journal| {
            journal.is_writing = false;
            journal.waiters.take()
        });
        world.wake_all(waiting.unwrap_or_default());
    }
    if is_jbd2 {
        write_record(sim, sb, device).await;
    }
    flush(sim, device).await;
    let mut world = sim.w();
    if is_jbd2 {
        if let Some(journal) = of(&mut world, sb) {
            journal.log.committed(transaction.tid, &transaction.blocks);
            journal.committing = BlockSet::default();
        }
        world.checkpoint(sb, &transaction.blocks, transaction.newest);
    }
    let Some(journal) = of(&mut world, sb) else { return };
    journal.committed = journal.committed.max(transaction.tid);
    let (waiting, mut writer) = (journal.waiters.take(), None);
    if !is_jbd2 {
        let was_idle = journal.unwritten.0.is_empty();
        journal.unwritten.extend(&transaction.blocks);
        journal.room.take(bytes);
        let room = journal.room;
        writer = journal.writer.take_if(|_| was_idle || room.is_short());
    }
    world.wake_all(waiting);
    if let Some(writer) = writer {
        world.wake(writer);
    }
}
