// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs one task. Each thread's [`Program`] returns the next operation, and a [`Hand`] performs it with system calls
//! and measures it. The simulator performs the same operations with its own kernel. The main thread of a task and each
//! of its parallel branches is a hand with its own open files, random choices and measures.

use super::client::Server;
use super::clock::{now, until};
use super::error::{Failure, StepError};
use super::files::Files;
use super::flights::Flights;
use super::io::Block;
use super::mapping::Anonymous;
use super::measure::Timed;
use super::meeting::Meeting;
use super::stop::Stop;
use super::system::{self, Place};
use floodline_record::units::Nanos;
use floodline_scenario::program::{Answer, Measures, Op, Program};
use floodline_scenario::{Anon, Lasting, Parallel, Random, Single, Step, TaskCopy};
use rustix::param::page_size;
use rustix::time::{ClockId, clock_gettime};

/// The environment of a task.
pub struct Run<'a> {
    /// The task.
    pub task: &'a TaskCopy,
    /// The machine around it.
    pub place: &'a Place,
    /// Synchronisation with other tasks.
    pub meeting: &'a dyn Meeting,
    /// The end of the workload.
    pub stop: &'a Stop,
    /// Operations that begin earlier are not counted.
    pub since: Nanos,
}

/// The result of an operation; `None` if the task has to stop.
pub(super) type Outcome = Result<Option<Answer>, Failed>;

const DONE: Outcome = Ok(Some(Answer::Done));

/// A step that failed.
pub(super) struct Failed {
    /// Position in the steps, as [`Program::place`] returns it.
    place: String,
    error: StepError,
}

impl From<StepError> for Failed {
    fn from(error: StepError) -> Failed {
        Failed { place: String::new(), error }
    }
}

/// Anonymous memory that a thread of a task holds.
#[derive(Debug, Default)]
pub(super) struct Memory(Vec<Anonymous>);

/// One thread of a task.
pub(super) struct Hand<'a> {
    pub(super) run: &'a Run<'a>,
    pub(super) stop: &'a Stop,
    /// Random numbers for the content of writes. Random choices are made by the program.
    pub(super) content: Random,
    pub(super) files: Files,
    pub(super) measures: Measures,
    pub(super) anon: Memory,
    /// Buffer for writes. `buffer` is the one for reads.
    pub(super) block: Block,
    pub(super) buffer: Block,
    /// The server that receives requests.
    pub(super) server: Option<Server>,
    /// Requests under way that the thread does not wait for.
    pub(super) flights: Flights,
    program: Program<'a>,
}

/// A task between its setup and its program.
pub(super) struct Prepared<'a>(Hand<'a>);

/// Runs the setup steps before the clock starts. They are not measured.
pub(super) fn prepare<'a>(run: &'a Run<'a>) -> Result<Prepared<'a>, Failure> {
    let mut hand = Hand::new(run, run.task.seed);
    hand.measures = Measures::new(Nanos(u64::MAX), Nanos(u64::MAX));
    hand.all(&run.task.setup).map_err(|failed| failed.named("setup"))?;
    Ok(Prepared(hand))
}

/// Runs the program of a prepared task. Returns the measures even if a step failed.
pub(super) fn perform(prepared: Prepared<'_>, since: Nanos) -> (Measures, Result<(), Failure>) {
    let Prepared(mut hand) = prepared;
    hand.measures = Measures::new(since, hand.run.task.stall_over.0);
    let ended = hand.all(&hand.run.task.steps).map_err(|failed| failed.named("steps"));
    (hand.measures, ended)
}

/// Runs a whole task in this thread: setup, then the program. For tests and single tasks; the director
/// goes through [`super::worker()`].
pub fn run_task(run: &Run<'_>) -> (Vec<floodline_record::record::Event>, Result<(), Failure>) {
    let prepared = match prepare(run) {
        Ok(prepared) => prepared,
        Err(failure) => return (Vec::new(), Err(failure)),
    };
    let (measures, ended) = perform(prepared, run.since);
    (measures.events(&super::process::name(run.task), now()), ended)
}

impl Failed {
    fn named(self, root: &str) -> Failure {
        Failure { step: format!("{root}{}", self.place), error: self.error }
    }
}

/// Makes the random numbers of contents differ from those of choices.
const CONTENT: u64 = 0x636f_6e74_656e_7400;

impl<'a> Hand<'a> {
    fn new(run: &'a Run<'a>, seed: u64) -> Hand<'a> {
        Hand {
            run,
            stop: run.stop,
            content: Random::new(seed ^ CONTENT),
            files: Files::default(),
            measures: Measures::new(run.since, run.task.stall_over.0),
            anon: Memory::default(),
            block: Block::default(),
            buffer: Block::default(),
            server: None,
            flights: Flights::default(),
            program: Program::new(seed),
        }
    }

    /// Runs steps to their end, or until the task has to stop.
    fn all(&mut self, steps: &'a [Step]) -> Result<(), Failed> {
        self.program.run(steps);
        let mut answer = Answer::Done;
        loop {
            let outcome = match self.program.next(now(), self.stop.is_due(), answer) {
                Ok(None) => return Ok(self.until_under_way(0)?),
                Ok(Some(op)) => self.perform(op),
                Err(why) => Err(StepError::Senseless(why).into()),
            };
            match outcome {
                Ok(Some(next)) => answer = next,
                Ok(None) => return Ok(self.until_under_way(0)?),
                Err(failed) => return Err(Failed { place: self.program.place() + &failed.place, ..failed }),
            }
        }
    }

    fn perform(&mut self, op: Op<'a>) -> Outcome {
        match op {
            Op::SleepUntil(at) => return Ok((!self.stop.sleep_until(at)).then_some(Answer::Done)),
            Op::Open { slot, path, way, is_measured } => self.open(slot, &path, way, is_measured)?,
            Op::Close { slots } => self.close(&slots)?,
            Op::Release(slot) => drop(self.files.take(slot)),
            Op::Length(slot) => return Ok(Some(Answer::Bytes(self.length(slot)?))),
            Op::SetLength(slot, length) => self.set_length(slot, length)?,
            Op::Allocate(slot, size) => self.allocate(slot, size)?,
            Op::Write { slot, offset, length } => self.write(slot, offset, length)?,
            Op::Read { slot, offset, length, keep } => {
                return Ok(Some(Answer::Bytes(self.read(slot, offset, length, keep)?)));
            }
            Op::Submit { slot, is_write, offset, length, depth } => {
                self.submit(slot, is_write, (offset, length), depth)?;
            }
            Op::Drain => self.until_under_way(0)?,
            Op::Map { slot, size } => self.map(slot, size)?,
            Op::Store { slot, page, length } => self.store(slot, page, length)?,
            Op::Durable(call, target) => self.make_durable(call, &target)?,
            Op::CreateFile { path, step } => self.create_file(&path, step)?,
            Op::Unlink(path) => self
                .measures
                .time("unlink", 0, || std::fs::remove_file(&path))
                .map_err(|error| StepError::call("unlink", &path, error))?,
            Op::Request { step, is_first } => return Ok(self.request(step, is_first)?.then_some(Answer::Done)),
            Op::Mounts { step: Step::Mount(_), points, at_once } => {
                system::mount_all(&mut self.measures, self.run.place, &points, at_once)?;
            }
            Op::Mounts { step, points, at_once } => {
                let is_lazy = matches!(step, Step::Umount(step) if step.lazy);
                system::umount_all(&mut self.measures, &points, at_once, is_lazy)?;
            }
            Op::Parallel(parallel, seeds) => self.parallel(parallel, &seeds)?,
            // Real rounds take time by themselves.
            Op::EndOfRound(_) => {}
            Op::Single(step) => return self.single(step),
        }
        DONE
    }

    /// Performs a step that is one operation.
    fn single(&mut self, step: Single<'_>) -> Outcome {
        let (measures, place) = (&mut self.measures, self.run.place);
        match step {
            Single::Syncfs(step) => system::syncfs(measures, &step.path)?,
            Single::Sync => measures.time("sync", 0, || -> Result<(), StepError> {
                rustix::fs::sync();
                Ok(())
            })?,
            Single::Rename(step) => measures
                .time("rename", 0, || std::fs::rename(&step.from, &step.to))
                .map_err(|error| StepError::call("rename", &step.from, error))?,
            Single::Mkdir(step) => measures
                .time("mkdir", 0, || std::fs::create_dir_all(&step.path))
                .map_err(|error| StepError::call("mkdir", &step.path, error))?,
            Single::Rmdir(step) => measures
                .time("rmdir", 0, || std::fs::remove_dir(&step.path))
                .map_err(|error| StepError::call("rmdir", &step.path, error))?,
            Single::Burn(step) => return Ok(self.burn(step).then_some(Answer::Done)),
            Single::Anon(step) => measures.time("anon", 0, || self.anon.set(step))?,
            Single::DropCaches => system::drop_caches()?,
            Single::WaitFor(step) => self.run.meeting.wait_for(&step.task)?,
            Single::Barrier(step) => self.run.meeting.barrier(&step.name)?,
            Single::CreateCgroup(step) => system::create_cgroup(measures, place, &step.cgroup)?,
            Single::RemoveCgroup(step) => system::remove_cgroup(measures, place, &step.cgroup)?,
            Single::MoveTo(step) => system::move_self(place, &step.cgroup)?,
            Single::SetLimits(step) => system::set_limits(place, &step.cgroup, &step.limits)?,
            Single::SetSysctl(step) => system::set_sysctls(step)?,
            Single::Note(step) => self.run.meeting.note(&step.text)?,
        }
        DONE
    }

    fn parallel(&mut self, parallel: &'a Parallel, seeds: &[u64]) -> Result<(), Failed> {
        let mut hands = Vec::new();
        for seed in seeds {
            let mut hand = Hand::new(self.run, *seed);
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
                Err(_) => Some(StepError::Senseless("the branch's thread panicked".into()).into()),
            };
            let named = |failed: Failed| Failed { place: format!(".branches[{index}]{}", failed.place), ..failed };
            first = first.or(failed.map(named));
        }
        first.map_or(Ok(()), Err)
    }

    /// Returns false if the task has to stop.
    fn burn(&mut self, step: &Lasting) -> bool {
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
                return false;
            }
        }
        // Recorded in wall time. The part beyond the thread's CPU time is time that other threads had the CPU.
        self.measures.took("burn", at, until(at, now()), 0);
        true
    }
}

/// Memory is mapped in pieces of this size, so that it can be released at this granularity.
const PIECE: usize = 1 << 20;

impl Memory {
    /// Maps one more piece.
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
            // A store into each page makes the kernel allocate it.
            self.grow(len)?.as_mut_slice().iter_mut().step_by(page_size()).for_each(|byte| *byte = 1);
            held += len;
        }
        Ok(())
    }
}
