// SPDX-License-Identifier: MIT OR Apache-2.0
//! The steps of a task that work on files in a loop: write, read, store, create, remove. Each keeps its schedule, and
//! where it was in a file, as the guest's worker does.

use super::{Flow, Hand, Outcome, Way};
use crate::arena::InodeId;
use crate::block::Way as Direction;
use crate::process::io_wait;
use crate::sync;
use crate::syscalls::{self, Readahead};
use crate::world::PAGE;
use floodline_scenario::{ByteSize, CreateFiles, Files, MmapStore, Order, Read, SyncCall, SyncEvery, Write, fill};
use std::borrow::Cow;

/// When a loop ends by itself.
struct End {
    at: Option<u64>,
    count: u64,
}

/// How reading a whole file ended.
enum Whole {
    /// At its end.
    Read,
    /// With the step.
    Over,
    /// With the task.
    Stopped,
}

/// When data is made durable on the way.
struct Durable {
    sync: Option<SyncEvery>,
    last: u64,
}

impl Durable {
    fn new(sync: Option<&SyncEvery>, now: u64) -> Durable {
        Durable { sync: sync.cloned(), last: now }
    }

    fn due(&mut self, n: u64, now: u64) -> Option<SyncCall> {
        let sync = self.sync.as_ref()?;
        let by_count = sync.after.is_some_and(|after| (n + 1).is_multiple_of(after.max(1)));
        let by_time = sync.every.is_some_and(|every| now.saturating_sub(self.last) >= every.nanos());
        if by_time {
            self.last = now;
        }
        (by_count || by_time).then_some(sync.call)
    }
}

fn numbered(pattern: &str, number: u64, per_dir: Option<u64>) -> String {
    let name = fill(pattern, 'n', number);
    match per_dir {
        Some(per_dir) => fill(&name, 'd', number / per_dir.max(1)),
        None => name,
    }
}

impl Hand {
    fn ends(&self, lasting: Option<u64>, count: Option<u64>, total: Option<u64>, block: u64) -> End {
        let blocks = total.map(|total| total.div_ceil(block.max(1)));
        End {
            at: lasting.map(|lasting| self.now().saturating_add(lasting)),
            count: count.unwrap_or(u64::MAX).min(blocks.unwrap_or(u64::MAX)),
        }
    }

    fn is_over(&self, end: &End, n: u64, due: u64) -> bool {
        n >= end.count || end.at.is_some_and(|at| due >= at || self.now() >= at)
    }

    pub(super) async fn write(&mut self, step: &Write) -> Outcome {
        let way = if step.order == Order::Append { Way::Append } else { Way::Write };
        let inode = self.open(&step.file, way).await?.file.inode;
        if step.truncate {
            let at = self.now();
            syscalls::truncate(&self.sim, self.pid, inode, 0).await;
            self.open(&step.file, way).await?.cursor = 0;
            self.measures.took("truncate", at, self.sim.now(), 0);
        }
        let block = step.block.bytes();
        let start = self.now();
        let lasting = step.lasting.map(floodline_scenario::Time::nanos);
        let end = self.ends(lasting, step.count, step.total.map(ByteSize::bytes), block);
        let mut cursor = self.open(&step.file, way).await?.cursor;
        let flow = self.write_blocks(step, inode, &end, start, &mut cursor).await;
        if let Some(open) = self.files.get_mut(&step.file).and_then(|ways| ways[way as usize].as_mut()) {
            open.cursor = cursor;
        }
        flow
    }

    async fn write_blocks(&mut self, step: &Write, inode: InodeId, end: &End, start: u64, cursor: &mut u64) -> Outcome {
        let block = step.block.bytes();
        let mut durable = Durable::new(step.sync.as_ref(), start);
        let mut left = step.total.map(ByteSize::bytes);
        for n in 0.. {
            let due = step.rate.map_or(start, |rate| start.saturating_add(rate.due(n, step.block).0));
            if self.is_over(end, n, due) {
                break;
            }
            if self.sleep_until(due).await {
                return Ok(Flow::Stop);
            }
            let len = left.unwrap_or(u64::MAX).min(block);
            left = left.map(|left| left - len);
            let mut offset = match (step.order, step.size) {
                (Order::Append, _) => self.sim.w().inodes[inode].size,
                (Order::Random, Some(size)) => self.random.below(size.bytes() / block.max(1)) * block,
                (_, Some(size)) if cursor.saturating_add(len) > size.bytes() => 0,
                _ => *cursor,
            };
            let at = self.now();
            if step.direct {
                let wrote = syscalls::direct(&self.sim, self.pid, inode, offset, len, Direction::Write).await;
                wrote.map_err(|why| format!("write {}: {why}", step.file))?;
            } else {
                // Where the end is, is known once nobody else writes.
                let at = (step.order != Order::Append).then_some(offset);
                let wrote = syscalls::write(&self.sim, self.pid, inode, at, len).await;
                offset = wrote.map_err(|why| format!("write {}: {why}", step.file))?;
            }
            self.measures.took("write", at, self.sim.now(), len);
            *cursor = offset + len;
            if let Some(call) = durable.due(n, self.sim.now()) {
                self.make_durable(call, &step.file).await?;
            }
        }
        Ok(Flow::Go)
    }

    pub(super) async fn read(&mut self, step: &Read) -> Outcome {
        if let Some(files) = step.files {
            return self.read_files(step, files).await;
        }
        let block = step.block.bytes();
        let start = self.now();
        let lasting = step.lasting.map(floodline_scenario::Time::nanos);
        let end = self.ends(lasting, step.count, step.total.map(ByteSize::bytes), block);
        let open = self.open(&step.file, Way::Read).await?;
        let (inode, mut cursor, mut ahead) = (open.file.inode, open.cursor, std::mem::take(&mut open.ahead));
        let flow = self.read_blocks(step, inode, &end, start, (&mut cursor, &mut ahead)).await;
        if let Some(open) = self.files.get_mut(&step.file).and_then(|ways| ways[Way::Read as usize].as_mut()) {
            (open.cursor, open.ahead) = (cursor, ahead);
        }
        flow
    }

    async fn read_blocks(
        &mut self,
        step: &Read,
        inode: InodeId,
        end: &End,
        start: u64,
        (cursor, ahead): (&mut u64, &mut Readahead),
    ) -> Outcome {
        let block = step.block.bytes();
        let is_endless = step.lasting.is_none() && step.count.is_none() && step.total.is_none();
        let length = self.sim.w().inodes[inode].size;
        let mut left = step.total.map_or(u64::MAX, ByteSize::bytes);
        for n in 0.. {
            let due = step.rate.map_or(start, |rate| start.saturating_add(rate.due(n, step.block).0));
            if self.is_over(end, n, due) {
                break;
            }
            if self.sleep_until(due).await {
                return Ok(Flow::Stop);
            }
            let mut offset = *cursor;
            if step.order == Order::Random {
                offset = self.random.below((length / block.max(1)).max(1)) * block;
            } else if offset >= length {
                offset = 0;
                if is_endless || length == 0 {
                    *cursor = 0;
                    break;
                }
            }
            let at = self.now();
            let len = block.min(left);
            if step.keep {
                let held = { self.sim.w().pids[self.pid].anon };
                self.hold(held + len.div_ceil(PAGE)).await?;
            }
            let got = if step.direct {
                let len = len.min(length - offset);
                syscalls::direct(&self.sim, self.pid, inode, offset, len, Direction::Read).await?;
                len
            } else {
                let got = syscalls::read(&self.sim, self.pid, inode, ahead, offset, len).await;
                got.map_err(|_| syscalls::OUT_OF_MEMORY)?
            };
            left -= got.min(left);
            self.measures.took("read", at, self.sim.now(), got);
            *cursor = if got == 0 { length } else { offset + got };
        }
        Ok(Flow::Go)
    }

    /// Each file whole, opened and closed.
    async fn read_files(&mut self, step: &Read, files: u64) -> Outcome {
        let start = self.now();
        let lasting = step.lasting.map(floodline_scenario::Time::nanos);
        let end = self.ends(lasting, step.count, step.total.map(ByteSize::bytes), step.block.bytes());
        let mut n = 0;
        for number in 0..files {
            let path = numbered(&step.file, number, step.files_per_dir);
            let at = self.now();
            let opened = syscalls::open(&self.sim, self.pid, &path, false).await;
            let opened = opened.map_err(|errno| format!("open {path}: {errno}"))?;
            self.measures.took("open", at, self.sim.now(), 0);
            let flow = self.read_whole(step, opened.inode, &end, start, &mut n).await;
            syscalls::close(&self.sim, self.pid, opened).await;
            match flow? {
                Whole::Read => {}
                Whole::Over => return Ok(Flow::Go),
                Whole::Stopped => return Ok(Flow::Stop),
            }
        }
        Ok(Flow::Go)
    }

    async fn read_whole(
        &mut self,
        step: &Read,
        inode: InodeId,
        end: &End,
        start: u64,
        n: &mut u64,
    ) -> Result<Whole, String> {
        let block = step.block.bytes();
        let mut ahead = Readahead::default();
        let mut offset = 0;
        loop {
            let due = step.rate.map_or(start, |rate| start.saturating_add(rate.due(*n, step.block).0));
            if self.is_over(end, *n, due) {
                return Ok(Whole::Over);
            }
            if self.sleep_until(due).await {
                return Ok(Whole::Stopped);
            }
            let at = self.now();
            let got = syscalls::read(&self.sim, self.pid, inode, &mut ahead, offset, block).await;
            let got = got.map_err(|_| syscalls::OUT_OF_MEMORY)?;
            if got == 0 {
                return Ok(Whole::Read);
            }
            self.measures.took("read", at, self.sim.now(), got);
            offset += got;
            *n += 1;
            if got < block {
                return Ok(Whole::Read);
            }
        }
    }

    pub(super) async fn mmap_store(&mut self, step: &MmapStore) -> Outcome {
        let pages = step.size.bytes() / PAGE;
        if step.pages > pages {
            return Err(format!("{} pages in a mapping of {pages}", step.pages));
        }
        let mut mapped = None;
        let flow = self.store_pages(step, pages, &mut mapped).await;
        if let Some((_, cursor)) = mapped {
            self.set_cursor(&step.file, cursor);
        }
        flow
    }

    /// Where the next write to an open file goes on.
    fn set_cursor(&mut self, path: &str, cursor: u64) {
        if let Some(open) = self.files.get_mut(path).and_then(|ways| ways[Way::Write as usize].as_mut()) {
            open.cursor = cursor;
        }
    }

    /// Stores into a mapping of so many pages, again and again. `mapped` is the file and where the next store goes, once
    /// it is open, where the file is always the same.
    async fn store_pages(&mut self, step: &MmapStore, pages: u64, mapped: &mut Option<(InodeId, u64)>) -> Outcome {
        let start = self.now();
        let lasting = step.lasting.map(floodline_scenario::Time::nanos);
        let end = self.ends(lasting, step.count, None, 1);
        let mut durable = Durable::new(step.sync.as_ref(), start);
        let is_numbered = step.file.contains("{n}");
        for n in 0.. {
            let due = step.rate.map_or(start, |rate| start.saturating_add(rate.due(n).0));
            if self.is_over(&end, n, due) {
                break;
            }
            if self.sleep_until(due).await {
                return Ok(Flow::Stop);
            }
            let before = self.now();
            let path = match is_numbered {
                true => Cow::Owned(fill(&step.file, 'n', n % step.files.unwrap_or(1).max(1))),
                false => Cow::Borrowed(step.file.as_str()),
            };
            let (inode, cursor) = match *mapped {
                Some(known) => known,
                None => {
                    let open = self.open(&path, Way::Write).await?;
                    (open.file.inode, open.cursor)
                }
            };
            let next = (cursor + step.pages) % pages.max(1);
            if is_numbered {
                self.set_cursor(&path, next);
            } else {
                *mapped = Some((inode, next));
            }
            {
                let mut world = self.sim.w();
                let i = &mut world.inodes[inode];
                i.size = i.size.max(step.size.bytes());
            }
            let touched = match step.order {
                Order::Random => self.random.distinct(step.pages, pages),
                Order::Sequential | Order::Append => (0..step.pages).map(|k| (cursor + k) % pages.max(1)).collect(),
            };
            for page in touched {
                let at = self.now();
                let stored = syscalls::store(&self.sim, self.pid, inode, page, self.end).await;
                stored.map_err(str::to_owned)?;
                self.measures.took("mmap_store", at, self.sim.now(), step.store.bytes());
            }
            if let Some(call) = durable.due(n, self.sim.now()) {
                self.make_durable(call, &path).await?;
            }
            self.take_time_since(before).await;
        }
        Ok(Flow::Go)
    }

    pub(super) async fn create_files(&mut self, step: &CreateFiles) -> Outcome {
        let start = self.now();
        let lasting = step.lasting.map(floodline_scenario::Time::nanos);
        let end = self.ends(lasting, step.files, None, 1);
        for n in 0.. {
            let due = step.rate.map_or(start, |rate| start.saturating_add(rate.due(n).0));
            if self.is_over(&end, n, due) {
                break;
            }
            if self.sleep_until(due).await {
                return Ok(Flow::Stop);
            }
            let number = self.created.entry(step.file.clone()).or_insert(0);
            let path = numbered(&step.file, *number, step.files_per_dir);
            *number += 1;
            let at = self.now();
            let opened = syscalls::open(&self.sim, self.pid, &path, true).await;
            let opened = opened.map_err(|errno| format!("open {path}: {errno}"))?;
            let filled = self.fill_new(step, opened.inode, at).await;
            let closing = self.now();
            syscalls::close(&self.sim, self.pid, opened).await;
            filled?;
            self.measures.took("close", closing, self.sim.now(), 0);
            self.measures.took("create_files", at, self.sim.now(), step.size.bytes());
        }
        Ok(Flow::Go)
    }

    /// Writes what a file that was opened just now is to hold.
    async fn fill_new(&mut self, step: &CreateFiles, inode: InodeId, at: u64) -> Result<(), String> {
        if self.sim.w().inodes[inode].size > 0 {
            syscalls::truncate(&self.sim, self.pid, inode, 0).await;
        }
        self.measures.took("create", at, self.sim.now(), 0);
        if step.size.bytes() > 0 {
            let at = self.now();
            let wrote = syscalls::write(&self.sim, self.pid, inode, Some(0), step.size.bytes()).await;
            wrote.map_err(|why| format!("write {}: {why}", step.file))?;
            self.measures.took("write", at, self.sim.now(), step.size.bytes());
        }
        if step.fsync {
            let at = self.now();
            io_wait(&self.sim, Some(self.pid), sync::fsync(&self.sim, inode, false)).await;
            self.measures.took("fsync", at, self.sim.now(), 0);
        }
        Ok(())
    }

    pub(super) async fn unlink(&mut self, step: &Files) -> Outcome {
        for number in 0..step.files {
            if self.is_stopped() {
                return Ok(Flow::Stop);
            }
            let path = numbered(&step.file, number, step.files_per_dir);
            let at = self.now();
            let done = syscalls::unlink(&self.sim, self.pid, &path).await;
            done.map_err(|errno| format!("unlink {path}: {errno}"))?;
            self.measures.took("unlink", at, self.sim.now(), 0);
        }
        Ok(Flow::Go)
    }
}
