// SPDX-License-Identifier: MIT OR Apache-2.0
//! What of a scenario the simulator honours; everything else is refused by name.

use crate::SimError;
use floodline_core::scenario::Scenario;

/// One pattern a line, as in `Scenario::not_honoured`.
const HONOURED: &[&str] = &[
    "machine.memory",
    "machine.cpus",
    "machine.hz",
    "machine.copy_bandwidth.**",
    "machine.cgroup_mode",
    "machine.sysctl.vm.dirty_ratio",
    "machine.sysctl.vm.dirty_bytes",
    "machine.sysctl.vm.dirty_background_ratio",
    "machine.sysctl.vm.dirty_background_bytes",
    "machine.sysctl.vm.dirty_expire_centisecs",
    "machine.sysctl.vm.dirty_writeback_centisecs",
    "machine.sysctl.vm.dirtytime_expire_seconds",
    "machine.sysctl.vm.laptop_mode",
    "machine.devices.*.profile",
    "machine.devices.*.size",
    "machine.devices.*.backing = disk",
    "machine.devices.*.backing.raid1.**",
    "machine.devices.*.write_bandwidth",
    "machine.devices.*.read_bandwidth",
    "machine.devices.*.write_iops",
    "machine.devices.*.read_iops",
    "machine.devices.*.latency",
    "machine.devices.*.rotational",
    "machine.devices.*.bdi.**",
    "machine.devices.*.queue.nr_requests",
    "machine.devices.*.queue.wbt_latency",
    "machine.devices.*.queue.scheduler = none",
    "machine.mounts.*.type = ext4 | xfs | tmpfs | overlay",
    "machine.mounts.*.device",
    "machine.mounts.*.mkfs",
    "machine.mounts.*.options",
    "machine.mounts.*.overlay.**",
    "machine.mounts.*.instances",
    "machine.mounts.*.at_start",
    "machine.cgroups.*.instances",
    "machine.cgroups.*.memory_max",
    "machine.cgroups.*.memory_high",
    "machine.cgroups.*.subtree_control",
    "workload.duration",
    "workload.settle",
    "workload.seed",
    "workload.tasks.*.cgroup",
    "workload.tasks.*.instances",
    "workload.tasks.*.start",
    "workload.tasks.*.stagger",
    "workload.tasks.*.stall_over",
    "workload.tasks.*.preset.**",
    "step.write.**",
    "step.read.**",
    "step.mmap_store.**",
    "step.fsync.**",
    "step.fdatasync.**",
    "step.msync.**",
    "step.syncfs.**",
    "step.sync",
    "step.create_files.**",
    "step.unlink.**",
    "step.rename.**",
    "step.truncate.**",
    "step.mkdir.**",
    "step.rmdir.**",
    "step.close.**",
    "step.mount.**",
    "step.umount.**",
    "step.burn.**",
    "step.sleep.**",
    "step.anon.**",
    "step.drop_caches",
    "step.wait_for.**",
    "step.barrier.**",
    "step.repeat.**",
    "step.parallel.**",
    "step.create_cgroup.**",
    "step.remove_cgroup.**",
    "step.move_to.**",
    "step.set_limits.cgroup",
    "step.set_limits.limits.memory_max",
    "step.set_limits.limits.memory_high",
    "step.set_sysctl.vm.**",
    "step.note.**",
    "step.exit",
];

/// Options of mounts whose effect is modelled, or that change nothing here.
const OPTIONS: &[&str] =
    &["lazytime", "noatime", "relatime", "strictatime", "volatile", "rw", "defaults", "nodiratime", "nosuid", "nodev"];

/// Refuses what the simulator cannot do.
pub fn check(scenario: &Scenario) -> Result<(), SimError> {
    let refused = scenario.not_honoured(HONOURED);
    if !refused.is_empty() {
        return Err(SimError::NotHonoured(refused));
    }
    for (point, mount) in &scenario.machine.mounts {
        if let Some(option) = mount.options.iter().find(|option| !OPTIONS.contains(&option.as_str())) {
            let what = format!("the simulator cannot honour the option {option:?} of machine.mounts.\"{point}\"");
            return Err(SimError::Senseless(what));
        }
    }
    Ok(())
}
