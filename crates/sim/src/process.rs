// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processes as /proc shows them: counters of I/O and CPU time, and the throttle's state per task.

use crate::arena::{CgId, PidId};
use crate::cpu::{self, Run, Use};
use crate::engine::Sim;
use crate::world::World;

/// `/proc/PID/io`, the fault counters of `/proc/PID/stat`, and the time slept in dirty throttling, nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TaskCounters {
    pub(crate) rchar: u64,
    pub(crate) wchar: u64,
    pub(crate) syscr: u64,
    pub(crate) syscw: u64,
    pub(crate) read_bytes: u64,
    pub(crate) write_bytes: u64,
    pub(crate) cancelled: u64,
    pub(crate) minflt: u64,
    pub(crate) majflt: u64,
    pub(crate) throttled: u64,
}

/// A process.
#[derive(Debug)]
pub(crate) struct Pid {
    pub(crate) pid: u32,
    pub(crate) comm: String,
    pub(crate) cgroup: CgId,
    pub(crate) is_kernel: bool,
    /// The cgroup whose memory it uses, if not its own.
    pub(crate) charges: Option<CgId>,
    /// `PF_LOCAL_THROTTLE`.
    pub(crate) is_local_throttle: bool,
    pub(crate) is_alive: bool,
    /// Time at which it is killed. Its calls can be interrupted then where the kernel allows it.
    pub(crate) end: u64,
    /// The CPU it runs on.
    pub(crate) cpu: usize,
    pub(crate) io: TaskCounters,
    pub(crate) utime: u64,
    pub(crate) stime: u64,
    pub(crate) blkio_delay: u64,
    pub(crate) is_asleep: bool,
    pub(crate) anon: u64,
    /// Pages it charged over `memory.high` and has not slept for.
    pub(crate) nr_pages_over_high: u64,
    pub(crate) start: u64,
    /// Pages dirtied since the last check, and the number after which the next check is due.
    pub(crate) nr_dirtied: u64,
    pub(crate) nr_dirtied_pause: u64,
    /// Jiffies; 0 is never.
    pub(crate) dirty_paused_when: u64,
}

impl Pid {
    /// Whether it has been killed. A killed process ends as soon as it notices.
    pub(crate) fn is_killed(&self, now: u64) -> bool {
        now >= self.end
    }

    pub(crate) fn new(pid: u32, comm: &str, cgroup: CgId, cpu: usize, start: u64) -> Pid {
        Pid {
            pid,
            comm: comm.to_owned(),
            cgroup,
            is_kernel: false,
            charges: None,
            is_local_throttle: false,
            is_alive: true,
            end: u64::MAX,
            cpu,
            io: TaskCounters::default(),
            utime: 0,
            stime: 0,
            blkio_delay: 0,
            is_asleep: false,
            anon: 0,
            nr_pages_over_high: 0,
            start,
            nr_dirtied: 0,
            nr_dirtied_pause: 32,
            dirty_paused_when: 0,
        }
    }
}

impl World {
    /// Puts a task to sleep in `io_schedule`. Returns the time at which the sleep began.
    pub(crate) fn io_wait_begins(&mut self, pid: PidId) -> u64 {
        self.pids[pid].is_asleep = true;
        self.count_switch();
        self.sleep_begins(Sleeper::Task(pid))
    }

    /// Ends a task's sleep in `io_schedule`.
    pub(crate) fn io_wait_ends(&mut self, pid: PidId, since: u64) {
        self.pids[pid].is_asleep = false;
        self.sleep_ends(Sleeper::Task(pid), since);
    }

    /// Sets the task or thread on whose behalf a process sleeps.
    pub(crate) fn sleeps_as(&mut self, process: u32, sleeper: Sleeper) {
        let at = process as usize;
        if at >= self.sleepers.len() {
            self.sleepers.resize(at + 1, Sleeper::Kernel);
        }
        self.sleepers[at] = sleeper;
    }

    fn sleeper(&self, process: u32) -> Sleeper {
        self.sleepers.get(process as usize).copied().unwrap_or(Sleeper::Kernel)
    }

    /// The task that a process acts for, if any.
    pub(crate) fn task_of(&self, process: u32) -> Option<PidId> {
        match self.sleeper(process) {
            Sleeper::Task(pid) => Some(pid),
            Sleeper::Kernel | Sleeper::Other => None,
        }
    }

    /// CPU of the task that a process acts for, if any.
    pub(crate) fn cpu_of(&self, process: u32) -> Option<usize> {
        self.task_of(process).map(|pid| self.pids[pid].cpu)
    }

    /// The cgroup with the requests of the task that a process acts for; the root for the kernel's own.
    pub(crate) fn of_task(&self, process: u32) -> CgId {
        self.task_of(process).map_or(CgId::ROOT, |pid| self.memcg(self.pids[pid].cgroup))
    }

    /// Counts a sleep in `io_schedule`. Returns the time at which it began.
    fn sleep_begins(&mut self, sleeper: Sleeper) -> u64 {
        if let Some(cgroup) = self.cgroup_of(sleeper) {
            self.count_iowait(cgroup, true);
        }
        self.now
    }

    fn sleep_ends(&mut self, sleeper: Sleeper, since: u64) {
        if let Sleeper::Task(pid) = sleeper {
            self.pids[pid].blkio_delay += self.now - since;
        }
        if let Some(cgroup) = self.cgroup_of(sleeper) {
            self.count_iowait(cgroup, false);
        }
    }

    /// The cgroup whose pressure a sleep counts for, if any.
    fn cgroup_of(&self, sleeper: Sleeper) -> Option<CgId> {
        match sleeper {
            Sleeper::Task(pid) => Some(self.pids[pid].cgroup),
            Sleeper::Kernel => Some(CgId::ROOT),
            Sleeper::Other => None,
        }
    }

    /// Counts a context switch: a task goes to sleep, if only for zero time.
    pub(crate) fn count_switch(&mut self) {
        self.memory.ctxt += 1;
    }

    /// Counts CPU time that a task used.
    pub(crate) fn count_cpu_time(&mut self, pid: PidId, nanos: u64, is_user: bool) {
        let (task, memory) = (&mut self.pids[pid], &mut self.memory);
        let (of_task, of_all) = match is_user {
            true => (&mut task.utime, &mut memory.cpu_user),
            false => (&mut task.stime, &mut memory.cpu_system),
        };
        *of_task += nanos;
        *of_all += nanos;
    }
}

/// The task or thread on whose behalf a process sleeps for I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sleeper {
    /// A task: the sleep counts as its delay.
    Task(PidId),
    /// A thread of the kernel.
    Kernel,
    /// A process for work that does not sleep in `io_schedule`.
    Other,
}

/// Sleeps as `io_schedule` does: the process counts as waiting for I/O (pressure, `iowait`, the delay of a task). A
/// sleep in a plain `wait_event`, such as a wait for a flusher's work or for a journal commit, does not count.
pub(crate) async fn io_schedule<T>(sim: &Sim, sleep: impl Future<Output = T>) -> T {
    let (sleeper, since) = {
        let mut world = sim.w();
        let sleeper = world.sleeper(sim.current_process());
        (sleeper, world.sleep_begins(sleeper))
    };
    let answer = sleep.await;
    sim.w().sleep_ends(sleeper, since);
    answer
}

/// Runs a future in which a task may sleep uninterruptibly.
pub(crate) async fn may_block<T>(sim: &Sim, pid: PidId, what: impl Future<Output = T>) -> T {
    {
        let mut world = sim.w();
        world.pids[pid].is_asleep = true;
        world.count_switch();
    }
    let answer = what.await;
    sim.w().pids[pid].is_asleep = false;
    answer
}

/// Uses a CPU on a task's behalf: in the kernel, or in the program.
pub(crate) fn use_cpu(sim: &Sim, pid: PidId, nanos: u64, is_user: bool) -> Run<'_> {
    cpu::run_as(sim, Some(Use { pid, nanos, is_user }), nanos)
}
