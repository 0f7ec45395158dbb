// SPDX-License-Identifier: MIT OR Apache-2.0
//! Actions of an administrator on a running machine: creating, removing and limiting cgroups, moving processes,
//! changing settings, mounting filesystems. Each applies the rule by which the kernel refuses it.

use crate::arena::{CgId, PidId};
use crate::cgroup::{Cgroup, Charged, Pressure};
use crate::namespace::Errno;
use crate::process::Pid;
use crate::wb::Domain;
use crate::world::{PAGE, World};
use floodline_kernel::ForeignDirty;
use floodline_scenario::{Cgroup as CgroupSpec, Controller, SizeLimit, Sysctls};

/// Kernel memory that a cgroup uses by existing, pages.
const CGROUP_KERNEL: u64 = 80;
/// Cgroups of one run, removed ones included: as many as a kernel has ids of memory cgroups.
const CGROUPS_EVER_MAX: usize = 65_535;
/// Memory of any program by existing, pages: stack, heap, page tables.
pub(crate) const PROCESS_PAGES: u64 = 150;

fn limit(limit: Option<SizeLimit>) -> Option<u64> {
    limit.map(|limit| match limit {
        SizeLimit::Max => u64::MAX,
        SizeLimit::Size(size) => size.bytes() / PAGE,
    })
}

impl World {
    /// The live cgroup of a path.
    pub(crate) fn cgroup_at(&self, path: &str) -> Option<CgId> {
        match path.trim_matches('/') {
            "" => Some(CgId::ROOT),
            path => self.cgroup_paths.get(path).copied(),
        }
    }

    /// Creates a cgroup whose parents exist.
    pub(crate) fn add_cgroup(&mut self, path: &str, spec: &CgroupSpec) -> CgId {
        let path = path.trim_matches('/');
        let parent = match path.rsplit_once('/') {
            _ if path.is_empty() => None,
            Some((parent, _)) => self.cgroup_at(parent),
            None => Some(CgId::ROOT),
        };
        let gives = spec.subtree_control.as_ref().is_none_or(|controllers| {
            controllers.iter().any(|controller| matches!(controller, Controller::Memory | Controller::Io))
        });
        let has_controllers = parent.is_none_or(|parent| self.cgroups[parent].gives_controllers);
        let number = u64::try_from(self.cgroups.len()).unwrap_or(0);
        let id = self.cgroups.push(Cgroup {
            path: format!("/{path}"),
            ino: if parent.is_none() { 1 } else { 1000 + number * 4 },
            parent,
            memcg: CgId::ROOT,
            has_controllers,
            gives_controllers: has_controllers && gives,
            max: u64::MAX,
            high: u64::MAX,
            min: 0,
            low: 0,
            charged: Charged::default(),
            stale: Charged::default(),
            domain: Domain::default(),
            domain_limits: crate::domain::KnownLimits::default(),
            foreign: ForeignDirty::default(),
            io: Pressure::default(),
            processes: 0,
            has_children: false,
            wbs: Vec::new(),
            is_dead: false,
            remove_after: None,
            pgfault: 0,
            events_max: 0,
            events_high: 0,
        });
        self.cgroups[id].memcg =
            if has_controllers { id } else { parent.map_or(id, |parent| self.cgroups[parent].memcg) };
        if let Some(parent) = parent {
            self.cgroups[parent].has_children = true;
        }
        if !path.is_empty() {
            self.cgroup_paths.insert(path.to_owned(), id);
            let memcg = self.cgroups[id].memcg;
            self.memory.free = self.memory.free.saturating_sub(CGROUP_KERNEL);
            self.memory.kernel += CGROUP_KERNEL;
            self.charge(memcg, |charged| charged.kernel += CGROUP_KERNEL);
        }
        self.limit_cgroup(id, spec);
        id
    }

    fn limit_cgroup(&mut self, id: CgId, spec: &CgroupSpec) {
        let cgroup = &mut self.cgroups[id];
        let (max, high) = (limit(spec.memory_max), limit(spec.memory_high));
        if max.is_some() || high.is_some() {
            // Thresholds apply at once.
            cgroup.domain.dirty_limit = 0;
        }
        cgroup.remove_after = spec.remove_after.map(|time| time.nanos()).or(cgroup.remove_after);
        cgroup.max = max.unwrap_or(cgroup.max);
        cgroup.high = high.unwrap_or(cgroup.high);
        cgroup.min = limit(spec.memory_min).unwrap_or(cgroup.min);
        cgroup.low = limit(spec.memory_low).unwrap_or(cgroup.low);
        self.has_protection |= cgroup.min > 0 || cgroup.low > 0;
    }

    /// Creates a cgroup below an existing one.
    pub(crate) fn create_cgroup(&mut self, path: &str) -> Result<(), String> {
        let above = path.trim_matches('/').rsplit_once('/').map_or("", |(above, _)| above);
        if self.cgroup_at(path).is_some() {
            return Err(format!("mkdir {path}: {}", Errno::Eexist));
        }
        if self.cgroup_at(above).is_none() {
            return Err(format!("mkdir {path}: {}", Errno::Enoent));
        }
        // A removed cgroup keeps its place here: what is left of its page cache belongs to it.
        if self.cgroups.len() >= CGROUPS_EVER_MAX {
            return Err(format!("mkdir {path}: more than {CGROUPS_EVER_MAX} cgroups in one run; create fewer of them"));
        }
        self.add_cgroup(path, &CgroupSpec::default());
        Ok(())
    }

    /// Removes a cgroup.
    pub(crate) fn remove_cgroup(&mut self, path: &str) -> Result<(), String> {
        let id = self.cgroup_at(path).ok_or_else(|| format!("rmdir {path}: {}", Errno::Enoent))?;
        let is_child = |cgroup: &Cgroup| cgroup.parent == Some(id) && !cgroup.is_dead;
        let has_children = self.cgroups[id].has_children && self.cgroups.iter().any(|(_, cgroup)| is_child(cgroup));
        if self.cgroups[id].processes > 0 || has_children || id == CgId::ROOT {
            return Err(format!("rmdir {path}: {}", Errno::Ebusy));
        }
        self.cgroups[id].is_dead = true;
        self.cgroup_paths.remove(path.trim_matches('/'));
        // A memcg without pages is released at once; one with pages stays until they are gone, which is not modelled.
        if self.cgroups[id].charged.file + self.cgroups[id].charged.shmem == 0 {
            self.memory.free += CGROUP_KERNEL;
            self.memory.kernel = self.memory.kernel.saturating_sub(CGROUP_KERNEL);
            let memcg = self.cgroups[id].memcg;
            self.charge(memcg, |charged| charged.kernel = charged.kernel.saturating_sub(CGROUP_KERNEL));
        }
        if self.cgroups[id].has_controllers {
            self.memcg_offline(id);
        }
        Ok(())
    }

    pub(crate) fn set_limits(&mut self, path: &str, spec: &CgroupSpec) -> Result<(), String> {
        let id = self.cgroup_at(path).ok_or_else(|| format!("no cgroup {path}"))?;
        self.limit_cgroup(id, spec);
        self.limit_io(id, spec)
    }

    /// Sets the limits of a cgroup on devices.
    pub(crate) fn limit_io(&mut self, id: CgId, spec: &CgroupSpec) -> Result<(), String> {
        for (name, max) in &spec.io_max {
            let device = self.devices.get(name).copied().ok_or_else(|| format!("io.max: no device {name}"))?;
            self.set_io_max(id, device, max)?;
        }
        Ok(())
    }

    /// Since the fix of the overflows in dirty throttling (6.10 and stable kernels), the kernel counts these pages in
    /// 32 bits.
    fn fits_32_bits(&self, name: &str, bytes: u64) -> Result<(), String> {
        if self.behaviour.arithmetic.limits_overflow_fixed && bytes.div_ceil(PAGE) > u64::from(u32::MAX) {
            return Err(format!("{name} = {bytes}: the kernel refuses more than 2^32 - 1 pages (ERANGE)"));
        }
        Ok(())
    }

    /// Changes settings, with the side effects of the kernel's handlers.
    pub(crate) fn set_sysctls(&mut self, settings: &Sysctls) -> Result<(), String> {
        for name in settings.0.keys() {
            let value = settings.number(name).ok_or_else(|| format!("{name} is a number"))?;
            let now = &mut self.settings;
            match name.as_str() {
                "vm.dirty_ratio" if now.dirty.dirty_ratio != value => {
                    (now.dirty.dirty_ratio, now.dirty.dirty_bytes) = (value, 0);
                    self.set_ratelimit();
                }
                "vm.dirty_bytes" if now.dirty.dirty_bytes != value => {
                    if value < 2 * PAGE {
                        return Err(format!("vm.dirty_bytes = {value}: the kernel takes two pages or more"));
                    }
                    self.fits_32_bits(name, value)?;
                    let now = &mut self.settings;
                    (now.dirty.dirty_bytes, now.dirty.dirty_ratio) = (value, 0);
                    self.set_ratelimit();
                }
                "vm.dirty_background_ratio" => {
                    (now.dirty.dirty_background_ratio, now.dirty.dirty_background_bytes) = (value, 0);
                }
                "vm.dirty_background_bytes" => {
                    self.fits_32_bits(name, value)?;
                    let now = &mut self.settings;
                    (now.dirty.dirty_background_bytes, now.dirty.dirty_background_ratio) = (value, 0);
                }
                "vm.dirty_expire_centisecs" => now.expire_centisecs = value,
                "vm.dirty_writeback_centisecs" => {
                    let is_kick = now.writeback_centisecs != value && value != 0 && self.now > 0;
                    now.writeback_centisecs = value;
                    if is_kick {
                        self.wakeup_flushers(crate::wb::Reason::Periodic);
                    }
                }
                "vm.dirtytime_expire_seconds" => now.dirtytime_expire_seconds = value,
                "vm.laptop_mode" => now.laptop_mode = value,
                "vm.dirty_ratio" | "vm.dirty_bytes" => {}
                other => return Err(format!("{other} is not simulated")),
            }
        }
        Ok(())
    }

    /// Adds a process of a task.
    pub(crate) fn add_process(&mut self, comm: &str, cgroup: CgId) -> PidId {
        let pid = self.next_pid;
        self.next_pid += 1;
        let cpus = usize::try_from(self.cpus).unwrap_or(1).max(1);
        let cpu = self.pids.len() % cpus;
        let now = self.now;
        self.cgroups[cgroup].processes += 1;
        let id = self.pids.push(Pid::new(pid, comm, cgroup, cpu, now));
        self.hold_anon(id, PROCESS_PAGES);
        id
    }

    /// Adds a kernel thread that is listed among the processes.
    pub(crate) fn kernel_thread(&mut self, comm: &str) -> PidId {
        let pid = self.next_pid;
        self.next_pid += 1;
        let now = self.now;
        let id = self.pids.push(Pid::new(pid, comm, CgId::ROOT, 0, now));
        self.pids[id].is_kernel = true;
        id
    }

    pub(crate) fn exit_process(&mut self, id: PidId) {
        self.hold_anon(id, 0);
        let task = &mut self.pids[id];
        task.is_alive = false;
        let (cpu, leaked, cgroup) = (task.cpu, task.nr_dirtied, task.cgroup);
        self.percpu[cpu].1 += leaked;
        self.cgroups[cgroup].processes -= 1;
    }

    pub(crate) fn move_process(&mut self, id: PidId, to: CgId) {
        let from = std::mem::replace(&mut self.pids[id].cgroup, to);
        self.cgroups[from].processes -= 1;
        self.cgroups[to].processes += 1;
    }

    /// Sets the anonymous memory of a process.
    pub(crate) fn hold_anon(&mut self, id: PidId, pages: u64) {
        let held = std::mem::replace(&mut self.pids[id].anon, pages);
        let memcg = self.memcg(self.pids[id].cgroup);
        self.memory.free = (self.memory.free + held).saturating_sub(pages);
        self.memory.anon = (self.memory.anon + pages).saturating_sub(held);
        self.charge(memcg, |charged| charged.anon = (charged.anon + pages).saturating_sub(held));
    }
}
