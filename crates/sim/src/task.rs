// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs: the steps of one task copy, run as the guest's worker runs them. The main thread of a task and
//! each of its parallel branches is a [`Hand`] with its own open files, randomness and measures.

use crate::arena::{CgId, InodeId, PidId};
use crate::block::Way as Direction;
use crate::engine::Sim;
use crate::measure::Measures;
use crate::memory::make_room;
use crate::process::{io_wait, use_cpu};
use crate::sync;
use crate::syscalls::{self, Readahead};
use crate::world::{PAGE, World};
use floodline_core::record::{Event, What};
use floodline_core::scenario::Random;
use floodline_core::scenario::{
    ByteSize, CreateFiles, Files, MmapStore, Mounting, Order, Read, Repeat, Step, SyncCall, SyncEvery, Write, fill,
};
use floodline_core::units::Nanos;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::pin::Pin;

/// How to go on after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    Go,
    Stop,
}

type Outcome = Result<Flow, String>;

/// An open file.
#[derive(Debug)]
struct Open {
    inode: InodeId,
    cursor: u64,
    ahead: Readahead,
}

/// How a file is open: for reading, for writing, for appending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    Read,
    Write,
    Append,
}

/// One thread of a task.
pub(crate) struct Hand {
    pub(crate) sim: Sim,
    pub(crate) pid: PidId,
    /// When everything stops.
    pub(crate) end: Option<u64>,
    pub(crate) random: Random,
    pub(crate) measures: Measures,
    /// Open files by path and [`Way`].
    files: BTreeMap<String, [Option<Open>; 3]>,
    created: BTreeMap<String, u64>,
}

/// When a loop ends by itself.
struct End {
    at: Option<u64>,
    count: u64,
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
    pub(crate) fn new(sim: &Sim, pid: PidId, seed: u64, measures: Measures, end: Option<u64>) -> Hand {
        Hand {
            sim: sim.clone(),
            pid,
            end,
            random: Random::new(seed),
            measures,
            files: BTreeMap::new(),
            created: BTreeMap::new(),
        }
    }

    fn now(&self) -> u64 {
        self.sim.now()
    }

    fn is_stopped(&self) -> bool {
        self.end.is_some_and(|end| self.now() >= end)
    }

    /// Sleeps until then; whether it is time to stop.
    async fn sleep_until(&self, at: u64) -> bool {
        let at = self.end.map_or(at, |end| at.min(end));
        self.sim.sleep_until(at, "a moment to come").await;
        self.is_stopped()
    }

    fn cgroup(&self) -> CgId {
        self.sim.w().pids[self.pid].cgroup
    }

    async fn open(&mut self, path: &str, way: Way) -> Result<&mut Open, String> {
        if self.files.get(path).is_none_or(|ways| ways[way as usize].is_none()) {
            let inode = syscalls::open(&self.sim, self.pid, path, way != Way::Read).await;
            let inode = inode.ok_or_else(|| format!("open {path}: no such file or directory"))?;
            let open = Open { inode, cursor: 0, ahead: Readahead::default() };
            self.files.entry(path.to_owned()).or_default()[way as usize] = Some(open);
        }
        let open = self.files.get_mut(path).and_then(|ways| ways[way as usize].as_mut());
        open.ok_or_else(|| "not open".to_owned())
    }

    fn opened(&self, path: &str) -> Option<InodeId> {
        let ways = self.files.get(path)?;
        [Way::Write, Way::Append, Way::Read].iter().find_map(|way| ways[*way as usize].as_ref()).map(|open| open.inode)
    }

    pub(crate) async fn all(&mut self, steps: &[Step]) -> Outcome {
        for (index, step) in steps.iter().enumerate() {
            let flow = self.step(step).await.map_err(|error| format!("[{index}].{}: {error}", step.verb()))?;
            if flow == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
        Ok(Flow::Go)
    }

    fn step<'a>(&'a mut self, step: &'a Step) -> Pin<Box<dyn Future<Output = Outcome> + 'a>> {
        Box::pin(async move {
            if self.is_stopped() {
                return Ok(Flow::Stop);
            }
            match step {
                Step::Write(step) => return self.write(step).await,
                Step::Read(step) => return self.read(step).await,
                Step::MmapStore(step) => return self.mmap_store(step).await,
                Step::CreateFiles(step) => return self.create_files(step).await,
                Step::Repeat(step) => return self.repeat(step).await,
                Step::Parallel(step) => return self.parallel(&step.branches).await,
                Step::Unlink(step) => return self.unlink(step).await,
                Step::Fsync(step) => self.make_durable(SyncCall::Fsync, &step.file).await?,
                Step::Fdatasync(step) => self.make_durable(SyncCall::Fdatasync, &step.file).await?,
                Step::Msync(step) => self.make_durable(SyncCall::Msync, &step.file).await?,
                Step::Syncfs(step) => {
                    let at = self.now();
                    let sb = { self.sim.w().mount_of(&step.path) };
                    io_wait(&self.sim, Some(self.pid), sync::sync_filesystem(&self.sim, sb)).await;
                    self.measures.took("syncfs", at, self.sim.now(), 0);
                }
                Step::Sync => {
                    let at = self.now();
                    io_wait(&self.sim, Some(self.pid), sync::sync_all(&self.sim)).await;
                    self.measures.took("sync", at, self.sim.now(), 0);
                }
                Step::Rename(step) => self.rename(&step.from, &step.to)?,
                Step::Truncate(step) => {
                    let at = self.now();
                    let inode = self.open(&step.file, Way::Write).await?.inode;
                    syscalls::truncate(&self.sim, self.pid, inode, step.size.bytes()).await;
                    self.measures.took("truncate", at, self.sim.now(), 0);
                }
                // Directories cost nothing here.
                Step::Mkdir(_) | Step::Rmdir(_) => {}
                Step::Close(step) => self.close(&step.file).await,
                Step::Mount(step) => self.mount(step)?,
                Step::Umount(step) => self.umount(step).await,
                Step::Burn(step) => {
                    let at = self.now();
                    let lasting = self.end.map_or(step.lasting.nanos(), |end| step.lasting.nanos().min(end - at));
                    use_cpu(&self.sim, self.pid, lasting, true).await;
                    self.measures.took("burn", at, self.sim.now(), 0);
                }
                Step::Sleep(step) => {
                    let at = self.now().saturating_add(step.lasting.nanos());
                    return Ok(if self.sleep_until(at).await { Flow::Stop } else { Flow::Go });
                }
                Step::Anon(step) => self.hold(step.size.bytes().div_ceil(PAGE)).await?,
                Step::DropCaches => {
                    self.sim.w().drop_caches();
                }
                Step::WaitFor(step) => self.wait_for(&step.task).await,
                Step::Barrier(step) => self.barrier(&step.name).await,
                Step::CreateCgroup(step) => self.sim.w().create_cgroup(&step.cgroup),
                Step::RemoveCgroup(step) => {
                    let at = self.now();
                    self.sim.w().remove_cgroup(&step.cgroup)?;
                    self.measures.took("remove_cgroup", at, self.sim.now(), 0);
                }
                Step::MoveTo(step) => {
                    let mut world = self.sim.w();
                    let to = world.cgroup_at(&step.cgroup).ok_or_else(|| format!("no cgroup {}", step.cgroup))?;
                    world.move_process(self.pid, to);
                }
                Step::SetLimits(step) => self.sim.w().set_limits(&step.cgroup, &step.limits)?,
                Step::SetSysctl(step) => self.sim.w().set_sysctls(step)?,
                Step::Syslog(_) | Step::RedisSet(_) | Step::Sql(_) => return Err("not simulated".to_owned()),
                Step::Note(step) => {
                    let mut world = self.sim.w();
                    let at = Nanos(world.now);
                    world.events.push(Event { at, what: What::Note { text: step.text.clone() } });
                }
                Step::Exit => return Ok(Flow::Stop),
            }
            Ok(Flow::Go)
        })
    }

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

    async fn write(&mut self, step: &Write) -> Outcome {
        let way = if step.order == Order::Append { Way::Append } else { Way::Write };
        let inode = self.open(&step.file, way).await?.inode;
        if step.truncate {
            let at = self.now();
            syscalls::truncate(&self.sim, self.pid, inode, 0).await;
            self.open(&step.file, way).await?.cursor = 0;
            self.measures.took("truncate", at, self.sim.now(), 0);
        }
        let block = step.block.bytes();
        let start = self.now();
        let lasting = step.lasting.map(floodline_core::scenario::Time::nanos);
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
            let offset = match (step.order, step.size) {
                (Order::Append, _) => self.sim.w().inodes[inode].size,
                (Order::Random, Some(size)) => self.random.below(size.bytes() / block.max(1)) * block,
                (_, Some(size)) if cursor.saturating_add(len) > size.bytes() => 0,
                _ => *cursor,
            };
            let at = self.now();
            if step.direct {
                syscalls::direct(&self.sim, self.pid, inode, offset, len, Direction::Write).await;
            } else {
                let wrote = syscalls::write(&self.sim, self.pid, inode, offset, len).await;
                wrote.map_err(|_| syscalls::OUT_OF_MEMORY.to_owned())?;
            }
            self.measures.took("write", at, self.sim.now(), len);
            *cursor = offset + len;
            if let Some(call) = durable.due(n, self.sim.now()) {
                self.make_durable(call, &step.file).await?;
            }
        }
        Ok(Flow::Go)
    }

    async fn read(&mut self, step: &Read) -> Outcome {
        if let Some(files) = step.files {
            return self.read_files(step, files).await;
        }
        let block = step.block.bytes();
        let start = self.now();
        let lasting = step.lasting.map(floodline_core::scenario::Time::nanos);
        let end = self.ends(lasting, step.count, step.total.map(ByteSize::bytes), block);
        let open = self.open(&step.file, Way::Read).await?;
        let (inode, mut cursor, mut ahead) = (open.inode, open.cursor, std::mem::take(&mut open.ahead));
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
                syscalls::direct(&self.sim, self.pid, inode, offset, len, Direction::Read).await;
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
        let block = step.block.bytes();
        let start = self.now();
        let lasting = step.lasting.map(floodline_core::scenario::Time::nanos);
        let end = self.ends(lasting, step.count, step.total.map(ByteSize::bytes), block);
        let mut n = 0;
        for number in 0..files {
            let path = numbered(&step.file, number, step.files_per_dir);
            let at = self.now();
            let inode = syscalls::open(&self.sim, self.pid, &path, false).await;
            let inode = inode.ok_or_else(|| format!("open {path}: no such file or directory"))?;
            self.measures.took("open", at, self.sim.now(), 0);
            let mut ahead = Readahead::default();
            let mut offset = 0;
            loop {
                let due = step.rate.map_or(start, |rate| start.saturating_add(rate.due(n, step.block).0));
                if self.is_over(&end, n, due) {
                    return Ok(Flow::Go);
                }
                if self.sleep_until(due).await {
                    return Ok(Flow::Stop);
                }
                let at = self.now();
                let got = syscalls::read(&self.sim, self.pid, inode, &mut ahead, offset, block).await;
                let got = got.map_err(|_| syscalls::OUT_OF_MEMORY)?;
                if got == 0 {
                    break;
                }
                self.measures.took("read", at, self.sim.now(), got);
                offset += got;
                n += 1;
                if got < block {
                    break;
                }
            }
            syscalls::close(&self.sim, self.pid, inode).await;
        }
        Ok(Flow::Go)
    }

    async fn mmap_store(&mut self, step: &MmapStore) -> Outcome {
        let pages = step.size.bytes() / PAGE;
        if step.pages > pages {
            return Err(format!("{} pages in a mapping of {pages}", step.pages));
        }
        let start = self.now();
        let lasting = step.lasting.map(floodline_core::scenario::Time::nanos);
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
            let path = match is_numbered {
                true => Cow::Owned(fill(&step.file, 'n', n % step.files.unwrap_or(1).max(1))),
                false => Cow::Borrowed(step.file.as_str()),
            };
            let open = self.open(&path, Way::Write).await?;
            let (inode, cursor) = (open.inode, open.cursor);
            open.cursor = (cursor + step.pages) % pages.max(1);
            {
                let mut world = self.sim.w();
                let i = &mut world.inodes[inode];
                i.size = i.size.max(step.size.bytes());
            }
            let touched: Vec<u64> = match step.order {
                Order::Random => self.random.distinct(step.pages, pages).into_iter().collect(),
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
        }
        Ok(Flow::Go)
    }

    async fn create_files(&mut self, step: &CreateFiles) -> Outcome {
        let start = self.now();
        let lasting = step.lasting.map(floodline_core::scenario::Time::nanos);
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
            let inode = syscalls::open(&self.sim, self.pid, &path, true).await;
            let inode = inode.ok_or_else(|| format!("create {path}"))?;
            if self.sim.w().inodes[inode].size > 0 {
                syscalls::truncate(&self.sim, self.pid, inode, 0).await;
            }
            self.measures.took("create", at, self.sim.now(), 0);
            if step.size.bytes() > 0 {
                let at = self.now();
                let wrote = syscalls::write(&self.sim, self.pid, inode, 0, step.size.bytes()).await;
                wrote.map_err(|_| syscalls::OUT_OF_MEMORY.to_owned())?;
                self.measures.took("write", at, self.sim.now(), step.size.bytes());
            }
            if step.fsync {
                let at = self.now();
                io_wait(&self.sim, Some(self.pid), sync::fsync(&self.sim, inode, false)).await;
                self.measures.took("fsync", at, self.sim.now(), 0);
            }
            let closing = self.now();
            syscalls::close(&self.sim, self.pid, inode).await;
            self.measures.took("close", closing, self.sim.now(), 0);
            self.measures.took("create_files", at, self.sim.now(), step.size.bytes());
        }
        Ok(Flow::Go)
    }

    async fn unlink(&mut self, step: &Files) -> Outcome {
        for number in 0..step.files {
            if self.is_stopped() {
                return Ok(Flow::Stop);
            }
            let path = numbered(&step.file, number, step.files_per_dir);
            let at = self.now();
            if !syscalls::unlink(&self.sim, self.pid, &path).await {
                return Err(format!("unlink {path}: no such file or directory"));
            }
            self.measures.took("unlink", at, self.sim.now(), 0);
        }
        Ok(Flow::Go)
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), String> {
        let at = self.now();
        let mut world = self.sim.w();
        let inode = world.lookup(from).ok_or_else(|| format!("rename {from}: no such file or directory"))?;
        let ((old, from), (new, to)) = (world.resolve(from), world.resolve(to));
        world.sbs[old].files.remove(from.as_ref());
        world.sbs[new].files.insert(to.into_owned(), inode);
        let now = world.now;
        drop(world);
        self.measures.took("rename", at, now, 0);
        Ok(())
    }

    async fn repeat(&mut self, step: &Repeat) -> Outcome {
        let start = self.now();
        let end = step.lasting.map(|lasting| start.saturating_add(lasting.nanos()));
        let mut due = start;
        for _ in 0..step.times.unwrap_or(u64::MAX) {
            if end.is_some_and(|end| due >= end || self.now() >= end) {
                break;
            }
            if self.sleep_until(due).await {
                return Ok(Flow::Stop);
            }
            let before = self.now();
            if self.all(&step.steps).await? == Flow::Stop {
                return Ok(Flow::Stop);
            }
            if self.now() == before {
                // Nothing of it takes time in the model: a program that goes round takes some.
                let call = self.sim.w().costs.call;
                crate::process::use_cpu(&self.sim, self.pid, call, false).await;
            }
            due = step.every.map_or(due, |every| due.saturating_add(every.nanos()));
        }
        Ok(Flow::Go)
    }

    async fn parallel(&mut self, branches: &[Vec<Step>]) -> Outcome {
        let ended: std::rc::Rc<std::cell::RefCell<Vec<Result<Measures, String>>>> = std::rc::Rc::default();
        for branch in branches {
            let seed = self.random.number();
            let mut hand = Hand::new(&self.sim, self.pid, seed, self.measures.fresh(), self.end);
            let (branch, ended) = (branch.clone(), ended.clone());
            self.sim.spawn("a branch", false, async move {
                let outcome = hand.all(&branch).await;
                let mut world = hand.sim.w();
                ended.borrow_mut().push(outcome.map(|_| hand.measures.clone()));
                let waiting = world.meeting.changed.take();
                world.wake_all(waiting);
            });
        }
        while ended.borrow().len() < branches.len() {
            self.sim.wait("the branches of a parallel step", |world| &mut world.meeting.changed).await;
        }
        let mut failed = None;
        for outcome in ended.borrow_mut().drain(..) {
            match outcome {
                Ok(measures) => self.measures.merge(measures),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(Flow::Go), Err)
    }

    async fn make_durable(&mut self, call: SyncCall, path: &str) -> Result<(), String> {
        let inode = self.opened(path).or_else(|| self.sim.w().lookup(path));
        let inode = inode.ok_or_else(|| format!("{path}: no such file or directory"))?;
        let at = self.now();
        let datasync = call == SyncCall::Fdatasync;
        io_wait(&self.sim, Some(self.pid), sync::fsync(&self.sim, inode, datasync)).await;
        let name = match call {
            SyncCall::Fsync => "fsync",
            SyncCall::Fdatasync => "fdatasync",
            SyncCall::Msync => "msync",
        };
        self.measures.took(name, at, self.sim.now(), 0);
        Ok(())
    }

    async fn close(&mut self, path: &str) {
        let at = self.now();
        for open in self.files.remove(path).into_iter().flatten().flatten() {
            syscalls::close(&self.sim, self.pid, open.inode).await;
        }
        self.measures.took("close", at, self.sim.now(), 0);
    }

    /// Closes everything, as an exit does.
    pub(crate) async fn close_all(&mut self) {
        for open in std::mem::take(&mut self.files).into_values().flatten().flatten() {
            syscalls::close(&self.sim, self.pid, open.inode).await;
        }
    }

    async fn hold(&mut self, pages: u64) -> Result<(), String> {
        let held = { self.sim.w().pids[self.pid].anon };
        let cgroup = self.cgroup();
        if pages > held {
            let room = make_room(&self.sim, cgroup, pages - held).await;
            room.map_err(|_| syscalls::OUT_OF_MEMORY.to_owned())?;
        }
        self.sim.w().hold_anon(self.pid, pages);
        Ok(())
    }

    fn mount(&mut self, step: &Mounting) -> Result<(), String> {
        for number in 0..step.count {
            let point = fill(&step.point, 'n', number);
            self.sim.w().mount_at(&point).ok_or_else(|| format!("mount {point}: not a filesystem of the machine"))?;
        }
        Ok(())
    }

    async fn umount(&mut self, step: &Mounting) {
        let mut sbs = Vec::new();
        for number in 0..step.count {
            let point = fill(&step.point, 'n', number);
            sbs.push(self.sim.w().mount_of(&point));
        }
        let start = self.now();
        if !step.at_once {
            for sb in sbs {
                let at = self.now();
                io_wait(&self.sim, Some(self.pid), sync::umount(&self.sim, sb)).await;
                self.measures.took("umount", at, self.sim.now(), 0);
            }
            return;
        }
        let took: std::rc::Rc<std::cell::RefCell<Vec<u64>>> = std::rc::Rc::default();
        let count = sbs.len();
        for sb in sbs {
            let (sim, took) = (self.sim.clone(), took.clone());
            self.sim.spawn("an unmount", false, async move {
                sync::umount(&sim, sb).await;
                let mut world = sim.w();
                took.borrow_mut().push(world.now);
                let waiting = world.meeting.changed.take();
                world.wake_all(waiting);
            });
        }
        while took.borrow().len() < count {
            let wait = self.sim.wait("unmounts", |world| &mut world.meeting.changed);
            io_wait(&self.sim, Some(self.pid), wait).await;
        }
        for at in took.borrow().iter() {
            self.measures.took("umount", start, *at, 0);
        }
    }

    async fn wait_for(&self, task: &str) {
        while !self.is_stopped() && !self.sim.w().meeting.is_over(task) {
            self.sim.wait("the end of another task", |world| &mut world.meeting.changed).await;
        }
    }

    async fn barrier(&self, name: &str) {
        let round = self.sim.w().meeting_arrive(name);
        while self.sim.w().meeting.is_waiting(name, round) {
            self.sim.wait("others at a barrier", |world| &mut world.meeting.changed).await;
        }
    }
}

/// Where tasks meet.
#[derive(Debug, Default)]
pub(crate) struct Meeting {
    /// Copies of each task that have not ended.
    pub(crate) live: BTreeMap<String, u64>,
    /// How many come to each barrier, how many have come, and how often it opened.
    pub(crate) barriers: BTreeMap<String, (u64, u64, u64)>,
    /// Tasks in their setup.
    pub(crate) unprepared: u64,
    pub(crate) changed: crate::engine::Waiters,
    /// When the workload's clock started.
    pub(crate) started: Option<u64>,
}

impl Meeting {
    fn is_over(&self, task: &str) -> bool {
        self.live.get(task).is_none_or(|live| *live == 0)
    }

    fn is_waiting(&self, name: &str, round: u64) -> bool {
        self.barriers.get(name).is_some_and(|(.., opened)| *opened == round)
    }
}

impl World {
    fn meeting_arrive(&mut self, name: &str) -> u64 {
        let Some((parties, come, opened)) = self.meeting.barriers.get_mut(name) else { return u64::MAX };
        let round = *opened;
        *come += 1;
        if *come >= *parties {
            (*come, *opened) = (0, round + 1);
            let waiting = self.meeting.changed.take();
            self.wake_all(waiting);
        }
        round
    }
}
