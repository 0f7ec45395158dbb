// SPDX-License-Identifier: MIT OR Apache-2.0
//! The whole state of the simulated machine. Functions that change several parts of it at one moment are methods,
//! each in the file of its topic; anything that takes time is a process (see `engine`).

use crate::arena::{Arena, BdiId, BlockId, CgId, InodeId, PidId, SbId, WbId};
use crate::block::Block;
use crate::cgroup::Cgroup;
use crate::completions::Completions;
use crate::domain::KnownLimits;
use crate::engine::{Due, Queue, Ticket, Waiters};
use crate::filesystem::Superblock;
use crate::inode::Inode;
use crate::memory::Memory;
use crate::process::Pid;
use crate::wb::{Bdi, Domain, Wb};
use floodline_kernel::{Behaviour, Build, DirtyTunables, KernelVersion, PauseArithmetic};
use floodline_record::record::Event;
use floodline_scenario::Random;
use std::collections::BTreeMap;

/// Pages of 4 KiB everywhere.
pub(crate) const PAGE: u64 = 4096;

/// Settings of a machine that may change while it runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub(crate) dirty: DirtyTunables,
    pub(crate) expire_centisecs: u64,
    pub(crate) writeback_centisecs: u64,
    pub(crate) dirtytime_expire_seconds: u64,
    pub(crate) laptop_mode: u64,
}

/// CPU time and speed of copies, calls and other work.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Costs {
    /// Bytes per second copied from a program into the page cache.
    pub(crate) copy_in: u64,
    /// Bytes per second copied from the page cache to a program.
    pub(crate) copy_out: u64,
    /// Nanoseconds of any system call.
    pub(crate) call: u64,
    /// On a machine slower than assumed, programs do not start at the same moment: at most this many nanoseconds late.
    pub(crate) start: u64,
    /// Nanoseconds of making a file, besides the call.
    pub(crate) create: u64,
    /// Nanoseconds of submitting a request that is waited for, its interrupt, and waking up.
    pub(crate) request: u64,
    /// Nanoseconds of mapping an extent and submitting it to a device.
    pub(crate) map: u64,
    /// Nanoseconds of converting an extent after it was written.
    pub(crate) convert: u64,
    /// Nanoseconds of sending a folio of one page to a device.
    pub(crate) page: u64,
    /// Nanoseconds of switching one inode to another wb, and one of its tagged folios: estimates.
    pub(crate) switch_inode: u64,
    pub(crate) switch_folio: u64,
    /// Nanoseconds of one step along a list, which is a cache miss: an estimate.
    pub(crate) list_step: u64,
    /// Nanoseconds of checking an inode that has been prepared for switching, which mostly is in a cache: 20,000
    /// inodes on 6.1.176 took 0.2 s on an emulated CPU, which is ten to thirty times slower.
    pub(crate) list_visit: u64,
    /// Nanoseconds of evicting one clean folio: an estimate.
    pub(crate) evict: u64,
    /// Nanoseconds of a write-protection fault.
    pub(crate) fault: u64,
    /// Time of CPU work, in percent of the assumed CPU's.
    pub(crate) percent: u64,
}

/// The whole state of the simulated machine.
pub(crate) struct World {
    /// Nanoseconds since the recording began.
    pub(crate) now: u64,
    /// Time its kernel ran before the recording.
    pub(crate) uptime: u64,
    pub(crate) queue: Queue,
    pub(crate) kernel: KernelVersion,
    pub(crate) behaviour: Behaviour,
    pub(crate) build: Build,
    pub(crate) pauses: PauseArithmetic,
    pub(crate) cpus: u64,
    /// Processes that run or wait for a CPU.
    pub(crate) cpu: crate::cpu::Cpus,
    /// Task or thread on whose behalf each process sleeps; processes not listed are kernel threads.
    pub(crate) sleepers: Vec<crate::process::Sleeper>,
    /// Whether memory and io are on the unified hierarchy.
    pub(crate) unified: bool,
    pub(crate) settings: Settings,
    pub(crate) costs: Costs,
    pub(crate) memory: Memory,
    pub(crate) blocks: Arena<BlockId, Block>,
    pub(crate) bdis: Arena<BdiId, Bdi>,
    /// Sum of their guaranteed shares.
    pub(crate) bdi_min_ratio: u64,
    pub(crate) sbs: Arena<SbId, Superblock>,
    pub(crate) inodes: Arena<InodeId, Inode>,
    pub(crate) cgroups: Arena<CgId, Cgroup>,
    pub(crate) wbs: Arena<WbId, Wb>,
    pub(crate) pids: Arena<PidId, Pid>,
    pub(crate) completions: Completions,
    pub(crate) ioends: crate::ioend::Ioends,
    pub(crate) r1bios: crate::raid1::R1bios,
    pub(crate) crypt_writes: crate::crypt::CryptWrites,
    pub(crate) plugs: crate::plug::Plugs,
    /// The machine-wide domain.
    pub(crate) domain: Domain,
    /// Its thresholds when they were last computed.
    pub(crate) domain_limits: KnownLimits,
    pub(crate) ratelimit_pages: u64,
    /// Pages dirtied on each CPU since the last check there, and unpaid ones of tasks that exited.
    pub(crate) percpu: Vec<(u64, u64)>,
    /// Inodes with something to be written, on the lists of all wbs.
    pub(crate) dirty_inodes: u64,
    /// Wbs whose flusher has to be started.
    pub(crate) new_wbs: Vec<WbId>,
    /// Workers of the block layer that have to be started.
    pub(crate) new_workers: Vec<crate::block::Worker>,
    /// Devices by their names in the scenario.
    pub(crate) devices: BTreeMap<String, BlockId>,
    pub(crate) switching: crate::switch::Switching,
    pub(crate) events: Vec<Event>,
    pub(crate) meeting: crate::task::Meeting,
    /// Shares that are set when the workload begins.
    pub(crate) shares: crate::start_share::Shares,
    /// Whether any cgroup ever had `memory.min` or `memory.low`.
    pub(crate) has_protection: bool,
    /// Live cgroups by path without a leading slash.
    pub(crate) cgroup_paths: BTreeMap<String, CgId>,
    pub(crate) next_pid: u32,
    /// Random choice of the CPUs on which flushers wake up, on machines where that matters.
    pub(crate) placement: Random,
    /// How late threads run that were woken, and whether a device's interrupt is being handled.
    pub(crate) wake_ups: crate::wake_ups::WakeUps,
    pub(crate) is_interrupt: bool,
    /// Copies in progress, for their speed; and tasks throttled until reclaim finds clean pages.
    pub(crate) copies: crate::copies::Copies,
    pub(crate) reclaim_waiters: Waiters,
}

impl World {
    /// Jiffies now.
    pub(crate) fn jiffies(&self) -> u64 {
        self.jiffies_at(self.now)
    }

    pub(crate) fn jiffies_at(&self, nanos: u64) -> u64 {
        // Seven days, which no run exceeds, at 1000 Hz are far from the largest count.
        let passed = nanos.saturating_mul(self.build.hz()) / 1_000_000_000;
        // A machine does not boot at 0: stamps of 0 mean never.
        passed.saturating_add(1000)
    }

    /// Time at which a sleep of some jiffies ends: at a tick, after all of them have passed.
    pub(crate) fn after_jiffies(&self, jiffies: u64) -> u64 {
        let tick = 1_000_000_000 / self.build.hz();
        (self.now / tick + jiffies + 1).saturating_mul(tick)
    }

    /// Wakes a process. On a machine whose CPUs wake up late, a thread that another thread wakes runs later. After an
    /// interrupt it runs on the CPU that is awake already: how late that was is part of the device's time.
    pub(crate) fn wake(&mut self, ticket: Ticket) {
        let late = if self.is_interrupt { 0 } else { self.wake_ups.late(self.now) };
        match late {
            0 => self.wake_now(ticket),
            late => self.queue.push(self.now.saturating_add(late), Due::Wake(ticket)),
        }
    }

    /// Wakes a process on a CPU that is awake.
    pub(crate) fn wake_now(&mut self, ticket: Ticket) {
        let now = self.now;
        self.queue.push_now(now, Due::Wake(ticket));
    }

    pub(crate) fn wake_all(&mut self, mut waiting: Waiters) {
        while let Some(ticket) = waiting.take_first() {
            self.wake(ticket);
        }
    }

    /// Time at which a dirtier last slept for a bdi of this device, as its queue sees it.
    pub(crate) fn wbt_dirty_sleep(&self, device: BlockId) -> Option<u64> {
        let block = &self.blocks[device];
        // A task sleeps for the bdi of the delayed device, not for that of the disk below.
        let bdi = &self.bdis[block.bdi.filter(|_| block.delay.is_none())?];
        let at = if self.behaviour.wbt.sees_cgroup_throttling { bdi.last_sleep } else { self.wbs[bdi.root].last_sleep };
        (at > 0).then_some(at)
    }

    /// The memcg of a task.
    pub(crate) fn memcg_of(&self, pid: PidId) -> CgId {
        self.memcg(self.pids[pid].cgroup)
    }

    /// The memcg of a cgroup: itself, or the nearest ancestor that has one.
    pub(crate) fn memcg(&self, cgroup: CgId) -> CgId {
        self.cgroups[cgroup].memcg
    }
}
