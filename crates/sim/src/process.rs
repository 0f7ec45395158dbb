// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processes as /proc shows them: counters of I/O and CPU time, and what the throttle keeps per task.

use crate::arena::{CgId, PidId};
use crate::engine::Sim;

/// `/proc/PID/io` and the fault counters of `/proc/PID/stat`.
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
}

/// A process.
#[derive(Debug)]
pub(crate) struct Pid {
    pub(crate) pid: u32,
    pub(crate) comm: String,
    pub(crate) cgroup: CgId,
    pub(crate) is_kernel: bool,
    /// Whose memory it uses where that is not its own cgroup's.
    pub(crate) charges: Option<CgId>,
    /// `PF_LOCAL_THROTTLE`.
    pub(crate) is_local_throttle: bool,
    pub(crate) is_alive: bool,
    /// Which CPU it runs on.
    pub(crate) cpu: usize,
    pub(crate) io: TaskCounters,
    pub(crate) utime: u64,
    pub(crate) stime: u64,
    pub(crate) blkio_delay: u64,
    pub(crate) is_asleep: bool,
    pub(crate) anon: u64,
    pub(crate) start: u64,
    /// Pages dirtied since the last look, and after how many the next is due.
    pub(crate) nr_dirtied: u64,
    pub(crate) nr_dirtied_pause: u64,
    /// Jiffies; 0 is never.
    pub(crate) dirty_paused_when: u64,
}

impl Pid {
    pub(crate) fn new(pid: u32, comm: &str, cgroup: CgId, cpu: usize, start: u64) -> Pid {
        Pid {
            pid,
            comm: comm.to_owned(),
            cgroup,
            is_kernel: false,
            charges: None,
            is_local_throttle: false,
            is_alive: true,
            cpu,
            io: TaskCounters::default(),
            utime: 0,
            stime: 0,
            blkio_delay: 0,
            is_asleep: false,
            anon: 0,
            start,
            nr_dirtied: 0,
            nr_dirtied_pause: 32,
            dirty_paused_when: 0,
        }
    }
}

/// Does something that waits for I/O, in a task's name.
pub(crate) async fn io_wait<T>(sim: &Sim, pid: Option<PidId>, what: impl Future<Output = T>) -> T {
    let Some(pid) = pid else { return what.await };
    let since = {
        let mut world = sim.w();
        let cgroup = world.pids[pid].cgroup;
        world.pids[pid].is_asleep = true;
        world.memory.ctxt += 1;
        world.count_iowait(cgroup, true);
        world.now
    };
    let answer = what.await;
    let mut world = sim.w();
    let cgroup = world.pids[pid].cgroup;
    world.count_iowait(cgroup, false);
    let now = world.now;
    world.pids[pid].is_asleep = false;
    world.pids[pid].blkio_delay += now - since;
    answer
}

/// Uses a CPU in a task's name: in the kernel, or in the program.
pub(crate) async fn use_cpu(sim: &Sim, pid: PidId, nanos: u64, is_user: bool) {
    if nanos == 0 {
        return;
    }
    {
        let mut world = sim.w();
        let cgroup = world.pids[pid].cgroup;
        world.count_running(cgroup, true);
    }
    crate::cpu::run(sim, nanos).await;
    let mut world = sim.w();
    let cgroup = world.pids[pid].cgroup;
    world.count_running(cgroup, false);
    if is_user {
        world.pids[pid].utime += nanos;
        world.memory.cpu_user += nanos;
    } else {
        world.pids[pid].stime += nanos;
        world.memory.cpu_system += nanos;
    }
}
