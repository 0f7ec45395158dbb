// SPDX-License-Identifier: MIT OR Apache-2.0
//! The CPUs of the machine, for which programs and kernel workers compete. A process takes an idle CPU at once,
//! else it waits. The waiter with the smallest virtual time goes first; a process that slept is at most a slice
//! ahead of the others. Long work loses its CPU after a slice if another process waits; kernel work that holds a
//! spinlock does not. One queue serves all CPUs: no placement, no migration costs, no priorities. Stands for
//! kernel/sched/fair.c.

use crate::arena::PidId;
use crate::engine::{Due, Sim, Ticket, suspend};
use crate::steal::Clock;
use crate::world::World;
use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::task::{Context, Poll};

/// Longest time that long work keeps a CPU for which another process waits, and the lead of a sleeper over the
/// others: 3 ms, a base slice.
const SLICE: u64 = 3_000_000;

/// Wait reason of a process that has a CPU.
const RUNS: &str = "the end of its CPU time";

/// Running processes and processes that wait for a CPU.
#[derive(Debug, Default)]
pub(crate) struct Cpus {
    running: u64,
    /// Waiting processes, by virtual time and then in order of arrival.
    waiting: VecDeque<Waiting>,
    /// CPU time by process number, starting at the virtual time of the processes that ran when it first came.
    virtual_times: Vec<u64>,
    /// Virtual time of the process that got a CPU last; it never goes back.
    floor: u64,
    /// Running long work by number: its start time, and the ticket that wakes it early.
    preemptible: BTreeMap<u64, (u64, Ticket)>,
    next: u64,
    /// Steal of virtual CPUs, in which a thread makes no progress.
    pub(crate) steal: Option<Clock>,
}

/// A process that waits for a CPU.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    virtual_time: u64,
    ticket: Ticket,
    /// Time its work takes, if that is at most a slice.
    short: Option<u64>,
}

impl Cpus {
    /// Queues a process behind all processes with the same or an earlier virtual time, mostly at the end.
    fn queue(&mut self, waiting: Waiting) {
        if self.waiting.back().is_none_or(|last| last.virtual_time <= waiting.virtual_time) {
            return self.waiting.push_back(waiting);
        }
        let at = self.waiting.partition_point(|other| other.virtual_time <= waiting.virtual_time);
        self.waiting.insert(at, waiting);
    }

    /// Virtual time of a process that wants a CPU. A process that slept is at most a slice ahead.
    fn place(&mut self, process: u32) -> u64 {
        let at = process as usize;
        if self.virtual_times.len() <= at {
            self.virtual_times.resize(at + 1, 0);
        }
        let time = &mut self.virtual_times[at];
        *time = (*time).max(self.floor.saturating_sub(SLICE));
        *time
    }

    /// Adds CPU time that a process used.
    fn charge(&mut self, process: u32, nanos: u64) {
        if let Some(time) = self.virtual_times.get_mut(process as usize) {
            *time = time.saturating_add(nanos);
        }
    }
}

/// Uses a CPU for `nanos`, in slices if other processes want it too.
pub(crate) fn run(sim: &Sim, nanos: u64) -> Run<'_> {
    run_as(sim, None, nanos)
}

/// Uses a CPU like [`run`] and charges the time to a task, if one is given.
pub(crate) fn run_as(sim: &Sim, task: Option<Use>, nanos: u64) -> Run<'_> {
    Run { sim, task, left: nanos, is_stolen: false, step: if nanos == 0 { Step::Over } else { Step::Begins } }
}

/// A task that uses a CPU.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Use {
    pub(crate) pid: PidId,
    /// CPU time of the whole piece of work.
    pub(crate) nanos: u64,
    /// Whether it runs in the program; otherwise it runs in the kernel.
    pub(crate) is_user: bool,
}

/// Future of [`run`]. Written by hand, as most events are the end of one of these.
pub(crate) struct Run<'a> {
    sim: &'a Sim,
    task: Option<Use>,
    left: u64,
    /// Whether steal time makes the work longer than usual.
    is_stolen: bool,
    step: Step,
}

/// Progress of a piece of work.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// The first piece begins.
    Begins,
    /// Another piece begins.
    Next,
    /// Long work waits for a CPU. Only the process that gives up its CPU wakes it.
    Waits,
    /// Long work has a CPU.
    Has,
    /// Long work runs since then, under this number, and may be preempted.
    RunsLong { since: u64, number: u64 },
    /// Short work runs until then.
    Runs { until: u64 },
    /// Short work waits for a CPU and is woken when it is done: the process that gives up the CPU computes that time.
    WaitsAndRuns,
    /// All is done.
    Over,
}

impl Future for Run<'_> {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        let sim = self.sim;
        loop {
            match self.step {
                Step::Begins | Step::Next => {
                    let mut world = sim.w();
                    if self.is_pending_after_start(&mut world) {
                        return Poll::Pending;
                    }
                }
                Step::Waits => self.step = Step::Has,
                Step::Has => match begin_long(sim, self.left) {
                    Some((since, number)) => {
                        self.step = Step::RunsLong { since, number };
                        return Poll::Pending;
                    }
                    None => {
                        let left = self.left;
                        self.end(&mut sim.w(), left);
                    }
                },
                Step::RunsLong { since, number } => {
                    let mut world = sim.w();
                    world.cpu.preemptible.remove(&number);
                    let ran = world.now - since;
                    self.end(&mut world, ran);
                }
                Step::Runs { until } => {
                    let mut world = sim.w();
                    if world.now < until && !sim.skip_to(&mut world, until, RUNS) {
                        return Poll::Pending;
                    }
                    let left = self.left;
                    self.end(&mut world, left);
                }
                Step::WaitsAndRuns => {
                    let left = self.left;
                    self.end(&mut sim.w(), left);
                }
                Step::Over => return Poll::Ready(()),
            }
        }
    }
}

impl Run<'_> {
    /// Begins a piece of work on an idle CPU or queues for one. Returns whether the caller has to wait for it.
    fn is_pending_after_start(&mut self, world: &mut World) -> bool {
        if let Step::Begins = self.step {
            // A program that computes for a given time counts steal time as its work.
            let is_timed = self.task.is_some_and(|task| task.is_user);
            if let Some(steal) = world.cpu.steal.as_mut().filter(|_| !is_timed) {
                let work = self.left;
                self.left = steal.stretch(self.left);
                self.is_stolen = self.left > work;
                if let Some(task) = &mut self.task {
                    task.nanos = self.left;
                }
            }
            if let Some(task) = self.task {
                let cgroup = world.pids[task.pid].cgroup;
                world.count_running(cgroup, true);
            }
        }
        // No other thread gets a CPU that is away.
        let is_long = self.left > SLICE && !self.is_stolen;
        if !world.take_idle(self.sim.current_process()) {
            wait(self.sim, world, (!is_long).then_some(self.left));
            self.step = if is_long { Step::Waits } else { Step::WaitsAndRuns };
            return true;
        }
        if is_long {
            self.step = Step::Has;
            return false;
        }
        let until = world.now.saturating_add(self.left);
        if !self.sim.skip_to(world, until, RUNS) {
            self.step = Step::Runs { until };
            return true;
        }
        self.end(world, self.left);
        false
    }

    /// Ends a piece of work.
    fn end(&mut self, world: &mut World, ran: u64) {
        world.give(self.sim.current_process(), ran);
        self.left -= ran.min(self.left);
        if self.left > 0 {
            self.step = Step::Next;
            return;
        }
        self.step = Step::Over;
        if let Some(Use { pid, nanos, is_user }) = self.task {
            let cgroup = world.pids[pid].cgroup;
            world.count_running(cgroup, false);
            world.count_cpu_time(pid, nanos, is_user);
        }
    }
}

/// Queues for a CPU: with the time of short work, or with none for long work.
fn wait(sim: &Sim, world: &mut World, short: Option<u64>) {
    let ticket = sim.ticket("a CPU");
    let virtual_time = world.cpu.place(sim.current_process());
    world.cpu.queue(Waiting { virtual_time, ticket, short });
    world.preempt_longest();
}

/// Starts long work. Returns its start time and number, or nothing if it is already done because no other process
/// wanted the CPU meanwhile.
fn begin_long(sim: &Sim, left: u64) -> Option<(u64, u64)> {
    let mut world = sim.w();
    let since = world.now;
    let end = since.saturating_add(left);
    let is_wanted = !world.cpu.waiting.is_empty();
    // No process can start to wait for a CPU: none waits now, and none is due before the end.
    if !is_wanted && sim.skip_to(&mut world, end, RUNS) {
        return None;
    }
    let ticket = sim.ticket(RUNS);
    let number = world.cpu.next;
    world.cpu.next += 1;
    world.cpu.preemptible.insert(number, (since, ticket));
    // These processes came while this one could not be preempted.
    if is_wanted {
        world.queue.push(end, Due::Wake(ticket));
        world.queue.push(since.saturating_add(SLICE), Due::Wake(ticket));
    }
    Some((since, number))
}

/// Waits for a CPU for long work.
async fn take(sim: &Sim) {
    {
        let mut world = sim.w();
        if world.take_idle(sim.current_process()) {
            return;
        }
        wait(sim, &mut world, None);
    }
    // Only the process that gives up its CPU wakes this one.
    suspend().await;
}

impl World {
    fn take_idle(&mut self, process: u32) -> bool {
        let is_idle = self.cpu.running < self.cpus.max(1);
        if is_idle {
            self.cpu.running += 1;
            // No process waits, so the floor follows the one that runs.
            let time = self.cpu.place(process);
            self.cpu.floor = self.cpu.floor.max(time);
        }
        is_idle
    }

    /// Hands the CPU of a process that ran for `ran` to the next waiter, or leaves it idle.
    fn give(&mut self, process: u32, ran: u64) {
        self.cpu.charge(process, ran);
        let Some(Waiting { virtual_time, ticket, short }) = self.cpu.waiting.pop_front() else {
            self.cpu.running -= 1;
            return;
        };
        self.cpu.floor = self.cpu.floor.max(virtual_time);
        match short {
            Some(left) => {
                let at = self.now.saturating_add(left);
                self.queue.push(at, Due::Wake(ticket));
            }
            None => self.wake_now(ticket),
        }
    }

    /// Preempts the process that has run longest, once its slice is over, because another one waits.
    fn preempt_longest(&mut self) {
        if let Some((_, (since, running))) = self.cpu.preemptible.pop_first() {
            let at = since.saturating_add(SLICE).max(self.now);
            self.queue.push(at, Due::Wake(running));
        }
    }
}

/// Keeps a CPU while waiting for something else, without preemption: a spinlock. Counts the CPU time it burns.
pub(crate) async fn spin<T>(sim: &Sim, pid: PidId, what: impl Future<Output = T>) -> T {
    take(sim).await;
    let (since, cgroup) = {
        let mut world = sim.w();
        let cgroup = world.pids[pid].cgroup;
        world.count_running(cgroup, true);
        (world.now, cgroup)
    };
    let answer = what.await;
    let mut world = sim.w();
    world.count_running(cgroup, false);
    let burnt = world.now - since;
    world.count_cpu_time(pid, burnt, false);
    world.give(sim.current_process(), burnt);
    answer
}
