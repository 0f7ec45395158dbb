// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which keys each executor honours: one list, so that both answer to the same language. A key that no line names is refused by
//! both, by name.
//!
//! Steps need no line. A step is a sequence of operations ([`Op`](crate::program::Op)), and an executor does not compile
//! before it performs each of them. Lines name the steps whose operation an executor refuses, and values that it refuses.

use self::By::{Both, Lab, Simulator};
use super::UsedKey;
use floodline_record::nearest::nearest;

/// What runs scenarios.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Executor {
    /// The model.
    Simulator,
    /// Real kernels in guests.
    Lab,
}

/// Executors that honour a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum By {
    Both,
    Simulator,
    Lab,
}

/// One line of the list: a pattern as in [`UsedKey::pattern`], and who honours it. `PREFIX.**` stands for everything below;
/// `PATTERN = a | b` honours only those values. Where several patterns fit, the longest decide.
pub(super) type Line = (&'static str, By);

pub(super) const KEYS: &[Line] = &[
    ("machine.memory", Both),
    ("machine.cpus", Both),
    ("machine.hz", Both),
    // A real machine has its own.
    ("machine.copy_bandwidth.**", Simulator),
    ("machine.memory_used", Simulator),
    ("machine.nodes", Simulator),
    ("machine.cgroup_mode", Both),
    ("machine.sysctl.**", Lab),
    ("machine.sysctl.vm.dirty_ratio", Both),
    ("machine.sysctl.vm.dirty_bytes", Both),
    ("machine.sysctl.vm.dirty_background_ratio", Both),
    ("machine.sysctl.vm.dirty_background_bytes", Both),
    ("machine.sysctl.vm.dirty_expire_centisecs", Both),
    ("machine.sysctl.vm.dirty_writeback_centisecs", Both),
    ("machine.sysctl.vm.dirtytime_expire_seconds", Both),
    ("machine.sysctl.vm.laptop_mode", Both),
    ("machine.devices.*.profile", Both),
    ("machine.devices.*.size", Both),
    ("machine.devices.*.backing = disk", Both),
    ("machine.devices.*.backing.loop.**", Both),
    ("machine.devices.*.backing.raid1.**", Both),
    ("machine.devices.*.backing.raid0.**", Both),
    ("machine.devices.*.backing.raid10.**", Both),
    ("machine.devices.*.backing.linear.**", Both),
    ("machine.devices.*.backing.striped.**", Both),
    ("machine.devices.*.backing.crypt.member", Both),
    // A real machine has its own.
    ("machine.devices.*.backing.crypt.cpu_bandwidth", Simulator),
    ("machine.devices.*.write_bandwidth", Both),
    ("machine.devices.*.read_bandwidth", Both),
    ("machine.devices.*.write_iops", Both),
    ("machine.devices.*.read_iops", Both),
    ("machine.devices.*.bandwidth", Both),
    ("machine.devices.*.iops", Both),
    ("machine.devices.*.burst", Simulator),
    // The burst that QEMU's throttle allows.
    ("machine.devices.*.burst = 100ms", Lab),
    ("machine.devices.*.read_stream", Simulator),
    ("machine.devices.*.read_preference", Simulator),
    ("machine.devices.*.latency", Both),
    ("machine.devices.*.queued_latency", Simulator),
    ("machine.devices.*.write_cache.size", Both),
    ("machine.devices.*.write_cache.drain", Both),
    ("machine.devices.*.write_cache.volatile", Simulator),
    // A bucket of QEMU's throttle. A flush does not empty it.
    ("machine.devices.*.write_cache.volatile = false", Lab),
    ("machine.devices.*.rotational", Both),
    ("machine.devices.*.seek", Simulator),
    ("machine.devices.*.bdi.**", Both),
    ("machine.devices.*.queue.nr_requests", Both),
    ("machine.devices.*.queue.wbt_latency", Both),
    ("machine.devices.*.queue.write_cache", Both),
    ("machine.devices.*.queue.scheduler", Lab),
    ("machine.devices.*.queue.scheduler = none | mq-deadline | kyber | bfq", Simulator),
    // A guest begins without shares, whatever the scenario says.
    ("machine.devices.*.share", Both),
    ("machine.mounts.*.type", Both),
    ("machine.mounts.*.device", Both),
    ("machine.mounts.*.mkfs.**", Both),
    ("machine.mounts.*.options", Both),
    ("machine.mounts.*.overlay.**", Both),
    ("machine.mounts.*.instances", Both),
    ("machine.mounts.*.at_start", Both),
    ("machine.mounts.*.in_use", Both),
    ("machine.cgroups.*.instances", Both),
    ("machine.cgroups.*.memory_max", Both),
    ("machine.cgroups.*.memory_high", Both),
    ("machine.cgroups.*.memory_low", Both),
    ("machine.cgroups.*.memory_min", Both),
    ("machine.cgroups.*.io_max.**", Both),
    ("machine.cgroups.*.io_weight", Both),
    ("machine.cgroups.*.share.**", Both),
    ("machine.cgroups.*.remove_after", Both),
    ("machine.cgroups.*.subtree_control", Both),
    ("workload.duration", Both),
    ("workload.settle", Both),
    ("workload.seed", Both),
    ("workload.tasks.*.cgroup", Both),
    ("workload.tasks.*.instances", Both),
    ("workload.tasks.*.start", Both),
    ("workload.tasks.*.stagger", Both),
    ("workload.tasks.*.stall_over", Both),
    ("workload.tasks.*.preset.**", Both),
    ("workload.tasks.*.program.**", Lab),
    ("step.**", Both),
    // `Op::Request`: the model has no servers.
    ("step.syslog.**", Lab),
    ("step.redis_set.**", Lab),
    ("step.sql.**", Lab),
    ("step.set_limits.limits.**", Lab),
    ("step.set_limits.limits.memory_max", Both),
    ("step.set_limits.limits.memory_high", Both),
    ("step.set_limits.limits.memory_low", Both),
    ("step.set_limits.limits.memory_min", Both),
    ("step.set_limits.limits.io_max.**", Both),
    ("step.set_limits.limits.io_weight", Both),
    ("step.set_sysctl.**", Lab),
    ("step.set_sysctl.vm.**", Both),
];

impl Executor {
    fn is_among(self, by: By) -> bool {
        match by {
            Both => true,
            Simulator => self == Executor::Simulator,
            Lab => self == Executor::Lab,
        }
    }

    /// Returns the setting that the executor honours and that is spelled almost like one that it refuses. Other keys are
    /// checked when a scenario is read; a kernel may have any setting.
    pub fn meant(self, key: &UsedKey) -> Option<&'static str> {
        const SETTINGS: &str = "machine.sysctl.";
        let honoured = KEYS.iter().filter(|(_, by)| self.is_among(*by));
        nearest(key.pattern.strip_prefix(SETTINGS)?, honoured.filter_map(|(key, _)| key.strip_prefix(SETTINGS)))
    }
}

/// What an executor does with the keys of one pattern.
pub(super) enum Answer {
    Honours,
    /// Only these values; with none, it refuses the key.
    HonoursOnly(Vec<&'static str>),
}

impl Answer {
    /// What a scenario says of itself and expects is not for executors and always honoured.
    pub(super) fn of(pattern: &str, executor: Executor, lines: &[Line]) -> Answer {
        if !["machine", "workload", "step"].iter().any(|part| pattern.starts_with(part)) {
            return Answer::Honours;
        }
        let mut longest = 0;
        let mut only = Some(Vec::new());
        for (line, by) in lines {
            let (line, values) = match line.split_once('=') {
                Some((line, values)) => (line.trim(), Some(values)),
                None => (*line, None),
            };
            let (is_same, length) = match line.strip_suffix(".**") {
                Some(prefix) => {
                    let rest = pattern.strip_prefix(prefix);
                    (rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.')), prefix.len())
                }
                None => (pattern == line, line.len()),
            };
            if !is_same || length < longest {
                continue;
            }
            if length > longest {
                (longest, only) = (length, Some(Vec::new()));
            }
            if executor.is_among(*by) {
                only = only.take().and_then(|mut only| {
                    only.extend(values?.split('|').map(str::trim));
                    Some(only)
                });
            }
        }
        only.map_or(Answer::Honours, Answer::HonoursOnly)
    }
}
