// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs: the steps of one task copy, run as the guest's worker runs them. The main thread of a task and
//! each of its parallel branches is a [`Hand`] with its own open files, randomness and measures.

mod io;
mod meeting;

pub(crate) use meeting::Meeting;

use crate::arena::{CgId, InodeId, PidId};
use crate::engine::Sim;
use crate::measure::Measures;
use crate::memory::make_room;
use crate::memory_high::handle_over_high;
use crate::namespace::{self, Refusal};
use crate::process::{io_wait, use_cpu};
use crate::sync;
use crate::syscalls::{self, Opened, Readahead};
use crate::world::PAGE;
use floodline_record::record::{Event, What};
use floodline_record::units::Nanos;
use floodline_scenario::{Mounting, Random, Repeat, Step, SyncCall, fill};
use std::collections::BTreeMap;
use std::pin::Pin;

/// How to go on after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    Go,
    Stop,
}

type Outcome = Result<Flow, String>;

/// A mount point, when its unmount was done, and what it came to.
type Unmounted = (String, u64, Result<(), Refusal>);

/// An open file.
#[derive(Debug)]
struct Open {
    file: Opened,
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
            let file = syscalls::open(&self.sim, self.pid, path, way != Way::Read).await;
            let file = file.map_err(|errno| format!("open {path}: {errno}"))?;
            let open = Open { file, cursor: 0, ahead: Readahead::default() };
            self.files.entry(path.to_owned()).or_default()[way as usize] = Some(open);
        }
        let open = self.files.get_mut(path).and_then(|ways| ways[way as usize].as_mut());
        open.ok_or_else(|| "not open".to_owned())
    }

    fn opened(&self, path: &str) -> Option<InodeId> {
        let ways = self.files.get(path)?;
        [Way::Write, Way::Append, Way::Read]
            .iter()
            .find_map(|way| ways[*way as usize].as_ref())
            .map(|open| open.file.inode)
    }

    pub(crate) async fn all(&mut self, steps: &[Step]) -> Outcome {
        for (index, step) in steps.iter().enumerate() {
            if self.is_stopped() {
                return Ok(Flow::Stop);
            }
            // What works on files in a loop is woken more than anything else: without a box on the way.
            let outcome = match step {
                Step::Write(step) => self.write(step).await,
                Step::Read(step) => self.read(step).await,
                Step::MmapStore(step) => self.mmap_store(step).await,
                Step::CreateFiles(step) => self.create_files(step).await,
                _ => self.other_step(step).await,
            };
            if outcome.map_err(|error| format!("[{index}].{}: {error}", step.verb()))? == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
        Ok(Flow::Go)
    }

    /// A step that holds others, or is over soon.
    fn other_step<'a>(&'a mut self, step: &'a Step) -> Pin<Box<dyn Future<Output = Outcome> + 'a>> {
        Box::pin(async move {
            match step {
                Step::Write(_) | Step::Read(_) | Step::MmapStore(_) | Step::CreateFiles(_) => {
                    return Err("this is done without a box".to_owned());
                }
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
                Step::Rename(step) => {
                    let at = self.now();
                    let done = namespace::rename(&self.sim, self.pid, &step.from, &step.to).await;
                    self.answered("rename", &step.from, at, done)?;
                }
                Step::Truncate(step) => {
                    let at = self.now();
                    let inode = self.open(&step.file, Way::Write).await?.file.inode;
                    syscalls::truncate(&self.sim, self.pid, inode, step.size.bytes()).await;
                    self.measures.took("truncate", at, self.sim.now(), 0);
                }
                Step::Mkdir(step) => {
                    let at = self.now();
                    let done = namespace::mkdir(&self.sim, self.pid, &step.path).await;
                    self.answered("mkdir", &step.path, at, done)?;
                }
                Step::Rmdir(step) => {
                    let at = self.now();
                    let done = namespace::rmdir(&self.sim, self.pid, &step.path).await;
                    self.answered("rmdir", &step.path, at, done)?;
                }
                Step::Close(step) => self.close(&step.file).await,
                Step::Mount(step) => self.mount(step).await?,
                Step::Umount(step) => self.umount(step).await?,
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
                Step::CreateCgroup(step) => {
                    let at = self.now();
                    self.sim.w().create_cgroup(&step.cgroup)?;
                    self.measures.took("create_cgroup", at, self.sim.now(), 0);
                }
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
                    world.events.push(Event { at, what: What::Note { text: step.text.clone().into() } });
                }
                Step::Exit => return Ok(Flow::Stop),
            }
            Ok(Flow::Go)
        })
    }

    /// Takes a call into account that the kernel may have refused.
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

    /// A program that goes round takes some time, also where nothing of it does in the model.
    async fn take_time_since(&self, before: u64) {
        let least = before.saturating_add(self.sim.w().costs.call);
        let short = least.saturating_sub(self.now());
        use_cpu(&self.sim, self.pid, short, false).await;
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
            self.take_time_since(before).await;
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
                hand.close_all().await;
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
        let (inode, for_this) = match self.opened(path) {
            Some(inode) => (inode, None),
            None => {
                let file = syscalls::open(&self.sim, self.pid, path, false).await;
                let file = file.map_err(|errno| format!("open {path}: {errno}"))?;
                (file.inode, Some(file))
            }
        };
        let at = self.now();
        let datasync = call == SyncCall::Fdatasync;
        io_wait(&self.sim, Some(self.pid), sync::fsync(&self.sim, inode, datasync)).await;
        let name = match call {
            SyncCall::Fsync => "fsync",
            SyncCall::Fdatasync => "fdatasync",
            SyncCall::Msync => "msync",
        };
        self.measures.took(name, at, self.sim.now(), 0);
        if let Some(file) = for_this {
            syscalls::close(&self.sim, self.pid, file).await;
        }
        Ok(())
    }

    async fn close(&mut self, path: &str) {
        let at = self.now();
        for open in self.files.remove(path).into_iter().flatten().flatten() {
            syscalls::close(&self.sim, self.pid, open.file).await;
        }
        self.measures.took("close", at, self.sim.now(), 0);
    }

    /// Closes everything, as an exit does.
    pub(crate) async fn close_all(&mut self) {
        for open in std::mem::take(&mut self.files).into_values().flatten().flatten() {
            syscalls::close(&self.sim, self.pid, open.file).await;
        }
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

    async fn mount(&mut self, step: &Mounting) -> Result<(), String> {
        for number in 0..step.count {
            let point = fill(&step.point, 'n', number);
            let at = self.now();
            let done = namespace::mount(&self.sim, self.pid, &point).await;
            self.answered("mount", &point, at, done)?;
        }
        Ok(())
    }

    async fn umount(&mut self, step: &Mounting) -> Result<(), String> {
        let points: Vec<String> = (0..step.count).map(|number| fill(&step.point, 'n', number)).collect();
        let start = self.now();
        if !step.at_once {
            for point in points {
                let at = self.now();
                let done = io_wait(&self.sim, Some(self.pid), namespace::umount(&self.sim, &point)).await;
                self.answered("umount", &point, at, done)?;
            }
            return Ok(());
        }
        let ended: std::rc::Rc<std::cell::RefCell<Vec<Unmounted>>> = std::rc::Rc::default();
        let count = points.len();
        for point in points {
            let (sim, ended) = (self.sim.clone(), ended.clone());
            self.sim.spawn("an unmount", false, async move {
                let done = namespace::umount(&sim, &point).await;
                let mut world = sim.w();
                ended.borrow_mut().push((point, world.now, done));
                let waiting = world.meeting.changed.take();
                world.wake_all(waiting);
            });
        }
        while ended.borrow().len() < count {
            let wait = self.sim.wait("unmounts", |world| &mut world.meeting.changed);
            io_wait(&self.sim, Some(self.pid), wait).await;
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
