// SPDX-License-Identifier: MIT OR Apache-2.0
//! The CPUs of the machine, for which programs and workers of the kernel compete. Who finds one idle has it;
//! otherwise it waits: short pieces of work before long ones, as a scheduler prefers who slept, each kind in
//! order. Long work is taken off its CPU after a slice when somebody waits; work of the kernel that holds a
//! spinlock is not. No placement, no migration costs, no priorities. Stands for kernel/sched/fair.c.

use crate::arena::PidId;
use crate::engine::{Due, Sim, Ticket, suspend};
use crate::world::World;
use std::collections::{BTreeMap, VecDeque};

/// Longest time that long work keeps a CPU for which somebody waits: 3 ms, a base slice.
const SLICE: u64 = 3_000_000;

/// What one that runs waits for.
const RUNS: &str = "the end of its CPU time";

/// Who runs and who waits.
#[derive(Debug, Default)]
pub(crate) struct Cpus {
    running: u64,
    /// Who waits with little work, and how long it takes.
    short: VecDeque<(Ticket, u64)>,
    /// Who waits with more than a slice.
    long: VecDeque<Ticket>,
    /// Long work that runs, by number: since when, and how to wake it early.
    preemptible: BTreeMap<u64, (u64, Ticket)>,
    next: u64,
}

/// Has a CPU for so long, in pieces where others want it too.
pub(crate) async fn run(sim: &Sim, nanos: u64) {
    let mut left = nanos;
    while left > SLICE {
        take(sim).await;
        left -= run_preemptible(sim, left).await.min(left);
        give(sim);
    }
    if left > 0 {
        run_short(sim, left).await;
        give(sim);
    }
}

/// Runs for at most a slice. Who has to wait for a CPU is woken when its work is done: whoever gives the CPU
/// away knows when that will be.
async fn run_short(sim: &Sim, left: u64) {
    if sim.w().take_idle() {
        sim.pass(left, RUNS).await;
        return;
    }
    let ticket = sim.ticket("a CPU");
    {
        let mut world = sim.w();
        world.cpu.short.push_back((ticket, left));
        world.preempt_longest();
    }
    suspend().await;
}

/// Runs until it is done or taken off; for how long it ran.
async fn run_preemptible(sim: &Sim, left: u64) -> u64 {
    let since = sim.now();
    let end = since.saturating_add(left);
    let is_wanted = {
        let world = sim.w();
        !(world.cpu.short.is_empty() && world.cpu.long.is_empty())
    };
    // Nobody comes to wait where nobody waits already and nobody else is due before the end.
    if !is_wanted && sim.skip_to(end, RUNS) {
        return left;
    }
    let ticket = sim.ticket(RUNS);
    let number = {
        let mut world = sim.w();
        let number = world.cpu.next;
        world.cpu.next += 1;
        world.cpu.preemptible.insert(number, (since, ticket));
        // Whoever came while nobody could be taken off.
        if is_wanted {
            world.queue.push(end, Due::Wake(ticket));
            world.queue.push(since.saturating_add(SLICE), Due::Wake(ticket));
        }
        number
    };
    suspend().await;
    let mut world = sim.w();
    world.cpu.preemptible.remove(&number);
    world.now - since
}

/// Waits for a CPU for long work.
async fn take(sim: &Sim) {
    if sim.w().take_idle() {
        return;
    }
    let ticket = sim.ticket("a CPU");
    {
        let mut world = sim.w();
        world.cpu.long.push_back(ticket);
        world.preempt_longest();
    }
    // Woken only by who gives its CPU away.
    suspend().await;
}

impl World {
    fn take_idle(&mut self) -> bool {
        let is_idle = self.cpu.running < self.cpus.max(1);
        self.cpu.running += u64::from(is_idle);
        is_idle
    }

    /// Somebody waits: the one that has run longest goes, once it has had its slice.
    fn preempt_longest(&mut self) {
        if let Some((_, (since, running))) = self.cpu.preemptible.pop_first() {
            let at = since.saturating_add(SLICE).max(self.now);
            self.queue.push(at, Due::Wake(running));
        }
    }
}

/// Gives the CPU to who waits for one, or leaves it idle.
fn give(sim: &Sim) {
    let mut world = sim.w();
    if let Some((ticket, left)) = world.cpu.short.pop_front() {
        let at = world.now.saturating_add(left);
        world.queue.push(at, Due::Wake(ticket));
    } else if let Some(ticket) = world.cpu.long.pop_front() {
        world.wake(ticket);
    } else {
        world.cpu.running -= 1;
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
    {
        let mut world = sim.w();
        world.count_running(cgroup, false);
        let burnt = world.now - since;
        world.pids[pid].stime += burnt;
        world.memory.cpu_system += burnt;
    }
    give(sim);
    answer
}
