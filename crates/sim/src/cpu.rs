// SPDX-License-Identifier: MIT OR Apache-2.0
//! The CPUs of the machine, for which programs and workers of the kernel compete. Who finds one idle has it;
//! otherwise it waits, and whoever had least of the CPUs so far goes first: each process has a virtual time, that of
//! one that slept is not far behind the others'. Long work is taken off its CPU after a slice when somebody waits; work
//! of the kernel that holds a spinlock is not. One queue for all CPUs: no placement, no migration costs, no
//! priorities. Stands for kernel/sched/fair.c.

use crate::arena::PidId;
use crate::engine::{Due, Sim, Ticket, suspend};
use crate::world::World;
use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::task::{Context, Poll};

/// Longest time that long work keeps a CPU for which somebody waits, and what a sleeper is ahead of others: 3 ms, a
/// base slice.
const SLICE: u64 = 3_000_000;

/// What one that runs waits for.
const RUNS: &str = "the end of its CPU time";

/// Who runs and who waits.
#[derive(Debug, Default)]
pub(crate) struct Cpus {
    running: u64,
    /// Who waits, by virtual time and in turn.
    waiting: VecDeque<Waiting>,
    /// By number of the process: CPU time, from the virtual time of those it met when it came.
    virtual_times: Vec<u64>,
    /// The virtual time of who got a CPU last; it never goes back.
    floor: u64,
    /// Long work that runs, by number: since when, and how to wake it early.
    preemptible: BTreeMap<u64, (u64, Ticket)>,
    next: u64,
}

/// A process that waits for a CPU.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    virtual_time: u64,
    ticket: Ticket,
    /// How long its work takes where that is no more than a slice.
    short: Option<u64>,
}

impl Cpus {
    /// Queues a process behind those of no later virtual time: mostly behind all.
    fn queue(&mut self, waiting: Waiting) {
        let at = self.waiting.partition_point(|other| other.virtual_time <= waiting.virtual_time);
        self.waiting.insert(at, waiting);
    }

    /// The virtual time of a process that wants a CPU: who slept is a slice ahead, and no more.
    fn place(&mut self, process: u32) -> u64 {
        let at = process as usize;
        if self.virtual_times.len() <= at {
            self.virtual_times.resize(at + 1, 0);
        }
        let time = &mut self.virtual_times[at];
        *time = (*time).max(self.floor.saturating_sub(SLICE));
        *time
    }

    /// A process had a CPU for so long.
    fn charge(&mut self, process: u32, nanos: u64) {
        if let Some(time) = self.virtual_times.get_mut(process as usize) {
            *time = time.saturating_add(nanos);
        }
    }
}

/// Has a CPU for so long, in pieces where others want it too.
pub(crate) fn run(sim: &Sim, nanos: u64) -> Run<'_> {
    run_as(sim, None, nanos)
}

/// The same in the name of a task, where there is one.
pub(crate) fn run_as(sim: &Sim, task: Option<Use>, nanos: u64) -> Run<'_> {
    Run { sim, task, left: nanos, step: if nanos == 0 { Step::Over } else { Step::Begins } }
}

/// A task that uses a CPU.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Use {
    pub(crate) pid: PidId,
    /// For how long, all in all.
    pub(crate) nanos: u64,
    /// In the program, or in the kernel.
    pub(crate) is_user: bool,
}

/// See [`run`]. Written out as most of all events are the end of one of these.
pub(crate) struct Run<'a> {
    sim: &'a Sim,
    task: Option<Use>,
    left: u64,
    step: Step,
}

/// How far a piece of work is.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// The first piece begins.
    Begins,
    /// Another piece begins.
    Next,
    /// Long work waits for a CPU; woken only by who gives its own away.
    Waits,
    /// Long work has a CPU.
    Has,
    /// Long work runs since then, under this number, and may be taken off.
    RunsLong { since: u64, number: u64 },
    /// Short work runs until then.
    Runs { until: u64 },
    /// Short work waits for a CPU and is woken when it is done: whoever gives the CPU away knows when that will be.
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
    /// Begins a piece: on an idle CPU, or in the queue for one. Whether it has to be waited for.
    fn is_pending_after_start(&mut self, world: &mut World) -> bool {
        if let (Step::Begins, Some(task)) = (self.step, self.task) {
            let cgroup = world.pids[task.pid].cgroup;
            world.count_running(cgroup, true);
        }
        let is_long = self.left > SLICE;
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

    /// A piece is done.
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

/// Queues for a CPU, with short work that takes so long or with long work.
fn wait(sim: &Sim, world: &mut World, short: Option<u64>) {
    let ticket = sim.ticket("a CPU");
    let virtual_time = world.cpu.place(sim.current_process());
    world.cpu.queue(Waiting { virtual_time, ticket, short });
    world.preempt_longest();
}

/// Long work begins to run: since when and under which number, or nothing where it is done already, as nobody
/// wants the CPU meanwhile.
fn begin_long(sim: &Sim, left: u64) -> Option<(u64, u64)> {
    let mut world = sim.w();
    let since = world.now;
    let end = since.saturating_add(left);
    let is_wanted = !world.cpu.waiting.is_empty();
    // Nobody comes to wait where nobody waits already and nobody else is due before the end.
    if !is_wanted && sim.skip_to(&mut world, end, RUNS) {
        return None;
    }
    let ticket = sim.ticket(RUNS);
    let number = world.cpu.next;
    world.cpu.next += 1;
    world.cpu.preemptible.insert(number, (since, ticket));
    // Whoever came while nobody could be taken off.
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
    // Woken only by who gives its CPU away.
    suspend().await;
}

impl World {
    fn take_idle(&mut self, process: u32) -> bool {
        let is_idle = self.cpu.running < self.cpus.max(1);
        if is_idle {
            self.cpu.running += 1;
            // Nobody waits: time goes on with who runs.
            let time = self.cpu.place(process);
            self.cpu.floor = self.cpu.floor.max(time);
        }
        is_idle
    }

    /// A process gives the CPU, had for so long, to who waits for one, or leaves it idle.
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
            None => self.wake(ticket),
        }
    }

    /// Somebody waits: the one that has run longest goes, once it has had its slice.
    fn preempt_longest(&mut self) {
        if let Some((_, (since, running))) = self.cpu.preemptible.pop_first() {
            let at = since.saturating_add(SLICE).max(self.now);
            self.queue.push(at, Due::Wake(running));
        }
    }
}

/// Has a CPU while something else is waited for, and is not taken off it: a spinlock. What it burns is counted.
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
