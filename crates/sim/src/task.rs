// SPDX-License-Identifier: MIT OR Apache-2.0
//! Task copies: each thread's [`Program`] returns its next operation, and a [`Hand`] performs it on the simulated
//! kernel. The worker in a guest performs the same operations with system calls. The main thread of a task and each
//! of its parallel branches is a hand with its own open files, choices and measures.

mod files;
mod flights;
mod meeting;

pub(crate) use meeting::Meeting;

use crate::arena::{CgId, PidId};
use crate::engine::Sim;
use crate::measure::Measures;
use crate::memory::make_room;
use crate::memory_high::{handle_over_high, shrink};
use crate::namespace::{self, Refusal};
use crate::process::{Sleeper, may_block, use_cpu};
use crate::sync;
use crate::syscalls::{self, Opened, Readahead};
use crate::world::PAGE;
use crate::xfsaild::in_place;
use floodline_record::units::Nanos;
use floodline_scenario::program::{Answer, Op, Program};
use floodline_scenario::{Parallel, Single, Step};
use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;

/// A step that failed.
#[derive(Debug)]
pub(crate) struct Failed {
    /// Its place in the steps, as [`Program::place`] returns it.
    place: String,
    why: String,
}

impl std::fmt::Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.place, self.why)
    }
}

impl From<String> for Failed {
    fn from(why: String) -> Failed {
        Failed { place: String::new(), why }
    }
}

impl From<&str> for Failed {
    fn from(why: &str) -> Failed {
        why.to_owned().into()
    }
}

/// Result of an operation; `None` if it is time to stop.
type Outcome = Result<Option<Answer>, Failed>;

const DONE: Outcome = Ok(Some(Answer::Done));

/// A mount point, the time at which its unmount ended, and its result.
type Unmounted = (String, u64, Result<(), Refusal>);

/// An open file.
#[derive(Debug)]
struct Open {
    file: Opened,
    ahead: Readahead,
    is_direct: bool,
    is_dsync: bool,
    path: String,
}

/// One thread of a task.
pub(crate) struct Hand<'s> {
    pub(crate) sim: Sim,
    /// Number of its task copy among all copies.
    number: usize,
    pub(crate) pid: PidId,
    /// Time at which the workload stops.
    pub(crate) end: Option<u64>,
    pub(crate) measures: Measures,
    program: Program<'s>,
    /// Open files, by the number from the program.
    files: Vec<Option<Open>>,
    flights: Rc<RefCell<flights::Flights>>,
}

impl<'s> Hand<'s> {
    pub(crate) fn new(sim: &Sim, number: usize, pid: PidId, seed: u64, measures: Measures) -> Hand<'s> {
        let program = Program::new(seed);
        sim.w().sleeps_as(sim.current_process(), Sleeper::Task(pid));
        Hand {
            sim: sim.clone(),
            number,
            pid,
            end: None,
            measures,
            program,
            files: Vec::new(),
            flights: flights::none(),
        }
    }

    fn now(&self) -> u64 {
        self.sim.now()
    }

    fn is_stopped(&self) -> bool {
        self.end.is_some_and(|end| self.now() >= end)
    }

    /// Sleeps until a time. Returns whether it is time to stop.
    async fn sleep_until(&self, at: u64) -> bool {
        let at = self.end.map_or(at, |end| at.min(end));
        self.sim.sleep_until(at, "a moment to come").await;
        self.is_stopped()
    }

    fn cgroup(&self) -> CgId {
        self.sim.w().pids[self.pid].cgroup
    }

    /// Runs steps to their end, or until it is time to stop.
    pub(crate) async fn all(&mut self, steps: &'s [Step]) -> Result<(), Failed> {
        self.program.run(steps);
        let mut answer = Answer::Done;
        loop {
            let op = self.program.next(Nanos(self.now()), self.is_stopped(), answer);
            let outcome = match op {
                Ok(None) => return self.until_under_way(0).await,
                // Most stores of a busy program find their page writable: they take no time, and no other process runs meanwhile.
                Ok(Some(Op::Store { slot, page, length })) if self.stores_without_fault(slot, page, length) => DONE,
                Ok(Some(op)) => self.perform(op).await,
                Err(why) => Err(why.into()),
            };
            let place = |failed: Failed| Failed { place: self.program.place() + &failed.place, why: failed.why };
            match outcome.map_err(place)? {
                Some(next) => answer = next,
                None => return self.until_under_way(0).await,
            }
        }
    }

    async fn perform(&mut self, op: Op<'s>) -> Outcome {
        // File operations in a loop are polled more than anything else, so they are not boxed.
        match op {
            Op::SleepUntil(at) => return Ok((!self.sleep_until(at.0).await).then_some(Answer::Done)),
            Op::Write { slot, offset, length } => self.write(slot, offset, length).await?,
            Op::Read { slot, offset, length, keep } => return self.read(slot, offset, length, keep).await,
            Op::Store { slot, page, length } => self.store(slot, page, length).await?,
            Op::Submit { slot, is_write, offset, length, depth } => {
                self.submit(slot, is_write, (offset, length), depth).await?;
            }
            Op::Drain => self.until_under_way(0).await?,
            Op::EndOfRound(since) => self.take_time_since(since.0).await,
            Op::CreateFile { path, step } => self.create_file(&path, step).await?,
            _ => return self.other(op).await,
        }
        DONE
    }

    /// Performs an operation that contains others, or is rare.
    fn other<'a>(&'a mut self, op: Op<'s>) -> Pin<Box<dyn Future<Output = Outcome> + 'a>> {
        Box::pin(async move {
            match op {
                Op::Open { slot, path, way, is_measured } => self.open(slot, &path, way, is_measured).await?,
                Op::Close { slots } => self.close(&slots).await,
                Op::Release(slot) => self.release(slot).await,
                Op::Length(slot) => {
                    let inode = self.at(slot)?.file.inode;
                    return Ok(Some(Answer::Bytes(self.sim.w().inodes[inode].size)));
                }
                Op::SetLength(slot, length) => self.set_length(slot, length).await?,
                Op::Allocate(slot, size) => self.allocate(slot, size).await?,
                Op::Map { slot, size } => {
                    let inode = self.at(slot)?.file.inode;
                    let mut world = self.sim.w();
                    let i = &mut world.inodes[inode];
                    i.size = i.size.max(size);
                    i.disk_size = i.size;
                }
                Op::Durable(call, target) => self.make_durable(call, &target).await?,
                Op::Unlink(path) => self.unlink(&path).await?,
                Op::Mounts { step: Step::Mount(_), points, .. } => self.mount(points).await?,
                Op::Mounts { step, points, at_once } => self.umount(points, at_once, is_lazy(step)).await?,
                Op::Parallel(parallel, seeds) => self.parallel(parallel, seeds).await?,
                Op::Single(step) => return self.single(step).await,
                Op::Request { .. } => return Err("not simulated".into()),
                Op::SleepUntil(_)
                | Op::Write { .. }
                | Op::Read { .. }
                | Op::Store { .. }
                | Op::Submit { .. }
                | Op::Drain
                | Op::EndOfRound(_)
                | Op::CreateFile { .. } => return Err("this is done without a box".into()),
            }
            DONE
        })
    }

    /// Performs a step that is one operation.
    async fn single(&mut self, step: Single<'_>) -> Outcome {
        let at = self.now();
        match step {
            Single::Syncfs(step) => {
                let sb = { self.sim.w().mount_of(&step.path) };
                may_block(&self.sim, self.pid, sync::sync_filesystem(&self.sim, sb)).await;
                self.measures.took("syncfs", at, self.sim.now(), 0);
            }
            Single::Sync => {
                may_block(&self.sim, self.pid, sync::sync_all(&self.sim)).await;
                self.measures.took("sync", at, self.sim.now(), 0);
            }
            Single::Rename(step) => {
                let done = namespace::rename(&self.sim, self.pid, &step.from, &step.to).await;
                self.answered("rename", &step.from, at, done)?;
            }
            Single::Mkdir(step) => {
                let done = namespace::mkdir(&self.sim, self.pid, &step.path).await;
                self.answered("mkdir", &step.path, at, done)?;
            }
            Single::Rmdir(step) => {
                let done = namespace::rmdir(&self.sim, self.pid, &step.path).await;
                self.answered("rmdir", &step.path, at, done)?;
            }
            Single::Burn(step) => {
                let lasting = self.end.map_or(step.lasting.nanos(), |end| step.lasting.nanos().min(end - at));
                use_cpu(&self.sim, self.pid, lasting, true).await;
                self.measures.took("burn", at, self.sim.now(), 0);
            }
            Single::Anon(step) => {
                self.hold(step.size.bytes().div_ceil(PAGE)).await?;
                self.measures.took("anon", at, self.sim.now(), 0);
            }
            Single::DropCaches => {
                self.sim.w().drop_caches();
                in_place(&self.sim).await;
            }
            Single::WaitFor(step) => self.wait_for(&step.task).await,
            Single::Barrier(step) => self.barrier(&step.name).await,
            Single::CreateCgroup(step) => {
                self.sim.w().create_cgroup(&step.cgroup)?;
                self.measures.took("create_cgroup", at, self.sim.now(), 0);
            }
            Single::RemoveCgroup(step) => {
                self.sim.w().remove_cgroup(&step.cgroup)?;
                self.measures.took("remove_cgroup", at, self.sim.now(), 0);
            }
            Single::MoveTo(step) => {
                let mut world = self.sim.w();
                let to = world.cgroup_at(&step.cgroup).ok_or_else(|| format!("no cgroup {}", step.cgroup))?;
                world.move_process(self.pid, to);
            }
            Single::SetLimits(step) => {
                let lowered = {
                    let mut world = self.sim.w();
                    world.set_limits(&step.cgroup, &step.limits)?;
                    world.cgroup_at(&step.cgroup)
                };
                if let Some(cgroup) = lowered {
                    shrink(&self.sim, self.pid, cgroup).await;
                }
            }
            Single::SetSysctl(step) => self.sim.w().set_sysctls(step)?,
            Single::Note(step) => self.note(&step.text)?,
        }
        DONE
    }

    /// Records a call that the kernel may have refused.
    fn answered(
        &mut self,
        call: &'static str,
        about: &str,
        at: u64,
        answer: Result<(), Refusal>,
    ) -> Result<(), String> {
        answer.map_err(|refusal| format!("{call} {about}: {refusal}"))?;
        self.measures.took(call, at, self.sim.now(), 0);
        Ok(())
    }

    /// A loop takes some time, even if no operation in it does in the model.
    async fn take_time_since(&self, before: u64) {
        let least = before.saturating_add(self.sim.w().costs.call);
        let short = least.saturating_sub(self.now());
        use_cpu(&self.sim, self.pid, short, false).await;
    }

    async fn parallel(&mut self, parallel: &Parallel, seeds: Vec<u64>) -> Result<(), Failed> {
        let ended: Rc<RefCell<Vec<Result<Measures, Failed>>>> = Rc::default();
        for (number, (branch, seed)) in parallel.branches.iter().zip(seeds).enumerate() {
            let (sim, copy, pid, end) = (self.sim.clone(), self.number, self.pid, self.end);
            let measures = self.measures.fresh();
            let (branch, ended) = (branch.clone(), ended.clone());
            self.sim.spawn("a branch", false, async move {
                let mut hand = Hand::new(&sim, copy, pid, seed, measures);
                hand.end = end;
                let outcome = hand.all(&branch).await;
                hand.close_all().await;
                let failed =
                    |failed: Failed| Failed { place: format!(".branches[{number}]{}", failed.place), ..failed };
                let mut world = sim.w();
                ended.borrow_mut().push(outcome.map(|()| hand.measures.clone()).map_err(failed));
                let waiting = world.meeting.changed.take();
                world.wake_all(waiting);
            });
        }
        while ended.borrow().len() < parallel.branches.len() {
            self.sim.wait("the branches of a parallel step", |world| &mut world.meeting.changed).await;
        }
        let mut failed = None;
        for outcome in ended.borrow_mut().drain(..) {
            match outcome {
                Ok(measures) => self.measures.merge(measures),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(()), Err)
    }

    async fn hold(&mut self, pages: u64) -> Result<(), String> {
        let held = { self.sim.w().pids[self.pid].anon };
        let cgroup = self.cgroup();
        if pages > held {
            let room = make_room(&self.sim, self.pid, cgroup, pages - held).await;
            room.map_err(|_| syscalls::OUT_OF_MEMORY.to_owned())?;
        }
        self.sim.w().hold_anon(self.pid, pages);
        handle_over_high(&self.sim, self.pid).await;
        Ok(())
    }

    async fn mount(&mut self, points: Vec<String>) -> Result<(), String> {
        for point in points {
            let at = self.now();
            let done = namespace::mount(&self.sim, self.pid, &point).await;
            self.answered("mount", &point, at, done)?;
        }
        Ok(())
    }

    async fn umount(&mut self, points: Vec<String>, at_once: bool, is_lazy: bool) -> Result<(), String> {
        let start = self.now();
        if !at_once {
            for point in points {
                let at = self.now();
                let done = may_block(&self.sim, self.pid, namespace::umount(&self.sim, &point, is_lazy)).await;
                self.answered("umount", &point, at, done)?;
            }
            return Ok(());
        }
        let ended: Rc<RefCell<Vec<Unmounted>>> = Rc::default();
        let count = points.len();
        for point in points {
            let (sim, ended, pid) = (self.sim.clone(), ended.clone(), self.pid);
            self.sim.spawn("an unmount", false, async move {
                sim.w().sleeps_as(sim.current_process(), Sleeper::Task(pid));
                let done = namespace::umount(&sim, &point, is_lazy).await;
                let mut world = sim.w();
                ended.borrow_mut().push((point, world.now, done));
                let waiting = world.meeting.changed.take();
                world.wake_all(waiting);
            });
        }
        while ended.borrow().len() < count {
            let wait = self.sim.wait("unmounts", |world| &mut world.meeting.changed);
            may_block(&self.sim, self.pid, wait).await;
        }
        let mut refused = Ok(());
        for (point, at, done) in ended.take() {
            match done {
                Ok(()) => self.measures.took("umount", start, at, 0),
                Err(refusal) => refused = refused.and(Err(format!("umount {point}: {refusal}"))),
            }
        }
        refused
    }
}

/// Whether an unmount is lazy.
fn is_lazy(step: &Step) -> bool {
    matches!(step, Step::Umount(step) if step.lazy)
}
