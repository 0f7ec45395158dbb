// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs the steps of one task. The main thread of a task and each of its parallel branches is a [`Hand`]
//! with its own open files, randomness and measures.

use super::clock::{later, now, until};
use super::error::{Failure, StepError};
use super::files::Files;
use super::io::make_durable;
use super::mapping::Anonymous;
use super::measure::Measures;
use super::meeting::Meeting;
use super::stop::Stop;
use super::system::{self, Place};
use floodline_record::units::Nanos;
use floodline_scenario::{Anon, Lasting, Parallel, Random, Repeat, Step, SyncCall, TaskCopy};
use rustix::param::page_size;
use rustix::time::{ClockId, clock_gettime};

/// What a task runs with.
pub struct Run<'a> {
    /// The task.
    pub task: &'a TaskCopy,
    /// The machine around it.
    pub place: &'a Place,
    /// The others.
    pub meeting: &'a dyn Meeting,
    /// When to stop.
    pub stop: &'a Stop,
    /// Operations that begin earlier are not figures.
    pub since: Nanos,
}

/// How to go on after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    /// With the next.
    Go,
    /// Not at all: the task ended itself, or it is time.
    Stop,
}

/// A step that failed, with its place from the inside out.
struct Failed {
    place: Vec<String>,
    error: StepError,
}

/// Anonymous memory that a thread of a task holds.
#[derive(Debug, Default)]
pub(super) struct Memory(Vec<Anonymous>);

/// One thread of a task.
pub(super) struct Hand<'a> {
    pub(super) run: &'a Run<'a>,
    pub(super) stop: &'a Stop,
    pub(super) random: Random,
    pub(super) files: Files,
    pub(super) measures: Measures,
    /// How many files were created by each name.
    pub(super) created: std::collections::BTreeMap<String, u64>,
    pub(super) anon: Memory,
}

/// Everything a task holds between its setup and its program.
pub(super) struct Prepared<'a>(Hand<'a>);

/// Runs steps before the clock starts. Nothing of it is a figure.
pub(super) fn prepare<'a>(run: &'a Run<'a>) -> Result<Prepared<'a>, Failure> {
    let mut hand = Hand::new(run, run.task.seed);
    hand.measures = Measures::new(Nanos(u64::MAX), Nanos(u64::MAX));
    hand.all(&run.task.setup).map_err(|failed| failed.named("setup"))?;
    Ok(Prepared(hand))
}

/// Runs the program of a prepared task. What was measured counts even where a step failed.
pub(super) fn perform(prepared: Prepared<'_>, since: Nanos) -> (Measures, Result<(), Failure>) {
    let Prepared(mut hand) = prepared;
    hand.measures = Measures::new(since, hand.run.task.stall_over.0);
    let ended = hand.all(&hand.run.task.steps).map_err(|failed| failed.named("steps"));
    (hand.measures, ended.map(|_| ()))
}

/// Runs a whole task in this thread: setup, then the program. For tests and single tasks; the director
/// goes through [`super::worker()`].
pub fn run_task(run: &Run<'_>) -> (Vec<floodline_record::record::Event>, Result<(), Failure>) {
    let prepared = match prepare(run) {
        Ok(prepared) => prepared,
        Err(failure) => return (Vec::new(), Err(failure)),
    };
    let (measures, ended) = perform(prepared, run.since);
    (super::process::events(run.task, &measures, now()), ended)
}

impl Failed {
    fn named(mut self, root: &str) -> Failure {
        let mut step = root.to_owned();
        while let Some(part) = self.place.pop() {
            step.push_str(&part);
        }
        Failure { step, error: self.error }
    }
}

impl<'a> Hand<'a> {
    fn new(run: &'a Run<'a>, seed: u64) -> Hand<'a> {
        Hand {
            run,
            stop: run.stop,
            random: Random::new(seed),
            files: Files::default(),
            measures: Measures::new(run.since, run.task.stall_over.0),
            created: std::collections::BTreeMap::new(),
            anon: Memory::default(),
        }
    }

    fn all(&mut self, steps: &[Step]) -> Result<Flow, Failed> {
        for (index, step) in steps.iter().enumerate() {
            let flow = self.step(step).map_err(|mut failed| {
                failed.place.push(format!("[{index}].{}", step.verb()));
                failed
            })?;
            if flow == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
        Ok(Flow::Go)
    }

    fn step(&mut self, step: &Step) -> Result<Flow, Failed> {
        if self.stop.is_due() {
            return Ok(Flow::Stop);
        }
        match step {
            Step::Repeat(repeat) => return self.repeat(repeat),
            Step::Parallel(parallel) => return self.parallel(parallel),
            _ => {}
        }
        self.plain(step).map_err(|error| Failed { place: Vec::new(), error })
    }

    /// A step without steps in it.
    fn plain(&mut self, step: &Step) -> Result<Flow, StepError> {
        let measures = &mut self.measures;
        match step {
            Step::Write(step) => return self.write(step),
            Step::Read(step) => return self.read(step),
            Step::MmapStore(step) => return self.mmap_store(step),
            Step::CreateFiles(step) => return self.create_files(step),
            Step::Unlink(step) => return self.unlink(step),
            Step::Fsync(step) => make_durable(&self.files, measures, SyncCall::Fsync, &step.file)?,
            Step::Fdatasync(step) => make_durable(&self.files, measures, SyncCall::Fdatasync, &step.file)?,
            Step::Msync(step) => make_durable(&self.files, measures, SyncCall::Msync, &step.file)?,
            Step::Syncfs(step) => system::syncfs(measures, &step.path)?,
            Step::Sync => measures.time("sync", 0, || -> Result<(), StepError> {
                rustix::fs::sync();
                Ok(())
            })?,
            Step::Rename(step) => measures
                .time("rename", 0, || std::fs::rename(&step.from, &step.to))
                .map_err(|error| StepError::call("rename", &step.from, error))?,
            Step::Truncate(step) => {
                let open = self.files.open(&step.file, super::files::Way::Write)?;
                measures
                    .time("truncate", 0, || open.file.set_len(step.size.bytes()))
                    .map_err(|error| StepError::call("truncate", &step.file, error))?;
            }
            Step::Mkdir(step) => measures
                .time("mkdir", 0, || std::fs::create_dir_all(&step.path))
                .map_err(|error| StepError::call("mkdir", &step.path, error))?,
            Step::Rmdir(step) => measures
                .time("rmdir", 0, || std::fs::remove_dir(&step.path))
                .map_err(|error| StepError::call("rmdir", &step.path, error))?,
            Step::Close(step) => {
                let open = self.files.close(&step.file);
                measures.time("close", 0, || -> Result<(), StepError> {
                    drop(open);
                    Ok(())
                })?;
            }
            Step::Mount(step) => system::mount_all(measures, self.run.place, step)?,
            Step::Umount(step) => system::umount_all(measures, step)?,
            Step::Burn(step) => return Ok(self.burn(step)),
            Step::Sleep(step) => {
                let is_stopped = self.stop.sleep_until(later(now(), step.lasting.0));
                return Ok(if is_stopped { Flow::Stop } else { Flow::Go });
            }
            Step::Anon(step) => self.anon.set(step)?,
            Step::DropCaches => system::drop_caches()?,
            Step::WaitFor(step) => self.run.meeting.wait_for(&step.task)?,
            Step::Barrier(step) => self.run.meeting.barrier(&step.name)?,
            Step::CreateCgroup(step) => system::create_cgroup(measures, self.run.place, &step.cgroup)?,
            Step::RemoveCgroup(step) => system::remove_cgroup(measures, self.run.place, &step.cgroup)?,
            Step::MoveTo(step) => system::move_self(self.run.place, &step.cgroup)?,
            Step::SetLimits(step) => system::set_limits(self.run.place, &step.cgroup, &step.limits)?,
            Step::SetSysctl(step) => system::set_sysctls(step)?,
            Step::Syslog(step) => return self.syslog(step),
            Step::RedisSet(step) => return self.redis_set(step),
            Step::Sql(step) => return self.sql(step),
            Step::Note(step) => self.run.meeting.note(&step.text)?,
            Step::Exit => return Ok(Flow::Stop),
            Step::Repeat(_) | Step::Parallel(_) => {}
        }
        Ok(Flow::Go)
    }

    fn repeat(&mut self, repeat: &Repeat) -> Result<Flow, Failed> {
        let start = now();
        let end = repeat.lasting.map(|lasting| later(start, lasting.0));
        let mut due = start;
        for _ in 0..repeat.times.unwrap_or(u64::MAX) {
            if end.is_some_and(|end| due >= end || now() >= end) {
                break;
            }
            if self.stop.sleep_until(due) {
                return Ok(Flow::Stop);
            }
            let flow = self.all(&repeat.steps).map_err(|mut failed| {
                failed.place.push(".steps".to_owned());
                failed
            })?;
            if flow == Flow::Stop {
                return Ok(Flow::Stop);
            }
            due = repeat.every.map_or(due, |every| later(due, every.0));
        }
        Ok(Flow::Go)
    }

    fn parallel(&mut self, parallel: &Parallel) -> Result<Flow, Failed> {
        let mut hands = Vec::new();
        for _ in &parallel.branches {
            let mut hand = Hand::new(self.run, self.random.number());
            hand.measures = self.measures.fresh();
            hands.push(hand);
        }
        let ended: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = hands
                .into_iter()
                .zip(&parallel.branches)
                .map(|(mut hand, branch)| {
                    scope.spawn(move || {
                        let ended = hand.all(branch);
                        (hand.measures, ended)
                    })
                })
                .collect();
            threads.into_iter().map(std::thread::ScopedJoinHandle::join).collect()
        });
        let mut first = None;
        for (index, branch) in ended.into_iter().enumerate() {
            let failed = match branch {
                Ok((measures, ended)) => {
                    self.measures.merge(measures);
                    ended.err()
                }
                Err(_) => Some(Failed {
                    place: Vec::new(),
                    error: StepError::Senseless("the branch's thread panicked".into()),
                }),
            };
            if let Some(mut failed) = failed {
                failed.place.push(format!(".branches[{index}]"));
                first.get_or_insert(failed);
            }
        }
        first.map_or(Ok(Flow::Go), Err)
    }

    fn burn(&mut self, step: &Lasting) -> Flow {
        let cpu = || {
            let time = clock_gettime(ClockId::ThreadCPUTime);
            u64::try_from(time.tv_sec).unwrap_or(0) * Nanos::SECOND.0 + u64::try_from(time.tv_nsec).unwrap_or(0)
        };
        let at = now();
        let end = cpu().saturating_add(step.lasting.nanos());
        let mut value = 0_u64;
        while cpu() < end {
            for round in 0..10_000_u64 {
                value = std::hint::black_box(value.wrapping_mul(31).wrapping_add(round));
            }
            if self.stop.is_due() {
                return Flow::Stop;
            }
        }
        // In wall time: what it took beyond its CPU time was somebody else's.
        self.measures.took("burn", at, until(at, now()), 0);
        Flow::Go
    }
}

/// Memory is taken in pieces of this size, so that giving back is exact to it.
const PIECE: usize = 1 << 20;

impl Memory {
    /// One more piece, for reading into.
    pub(super) fn grow(&mut self, len: usize) -> Result<&mut Anonymous, StepError> {
        let mapping = Anonymous::of(len).map_err(|error| StepError::call("mmap", format!("{len} bytes"), error))?;
        self.0.push(mapping);
        self.0.last_mut().ok_or_else(|| StepError::Senseless("no memory".to_owned()))
    }

    fn set(&mut self, step: &Anon) -> Result<(), StepError> {
        let wanted = usize::try_from(step.size.bytes()).unwrap_or(usize::MAX);
        let mut held: usize = self.0.iter().map(Anonymous::len).sum();
        while held > wanted {
            held -= self.0.pop().map_or(held, |piece| piece.len());
        }
        while held < wanted {
            let len = (wanted - held).min(PIECE);
            // A store into each page makes the kernel give it.
            self.grow(len)?.as_mut_slice().iter_mut().step_by(page_size()).for_each(|byte| *byte = 1);
            held += len;
        }
        Ok(())
    }
}
