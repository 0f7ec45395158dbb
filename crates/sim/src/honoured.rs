// SPDX-License-Identifier: MIT OR Apache-2.0
//! What of a scenario the simulator honours; everything else is refused by name.

use crate::SimError;
use floodline_record::nearest::nearest;
use floodline_scenario::{FsType, Scenario, UsedKey};

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
    "machine.devices.*.seek",
    "machine.devices.*.bdi.**",
    "machine.devices.*.queue.nr_requests",
    "machine.devices.*.queue.wbt_latency",
    "machine.devices.*.backing.loop.**",
    "machine.devices.*.queue.scheduler = none | mq-deadline | kyber | bfq",
    "machine.mounts.*.type = ext4 | xfs | btrfs | tmpfs | overlay",
    "machine.mounts.*.device",
    "machine.mounts.*.mkfs.**",
    "machine.mounts.*.options",
    "machine.mounts.*.overlay.**",
    "machine.mounts.*.instances",
    "machine.mounts.*.at_start",
    "machine.cgroups.*.instances",
    "machine.cgroups.*.memory_max",
    "machine.cgroups.*.memory_high",
    "machine.cgroups.*.memory_low",
    "machine.cgroups.*.memory_min",
    "machine.cgroups.*.io_max.**",
    "machine.cgroups.*.io_weight",
    "machine.cgroups.*.remove_after",
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
    "step.set_limits.limits.memory_low",
    "step.set_limits.limits.memory_min",
    "step.set_limits.limits.io_max.**",
    "step.set_limits.limits.io_weight",
    "step.set_sysctl.vm.**",
    "step.note.**",
    "step.exit",
];

/// Options of mounts whose effect is modelled, or that change nothing here. One that ends with `=` takes a number.
const OPTIONS: &[&str] = &[
    "lazytime",
    "noatime",
    "relatime",
    "strictatime",
    "nodiratime",
    "volatile",
    "commit=",
    "data=ordered",
    "data=writeback",
    "auto_da_alloc",
    "noauto_da_alloc",
    // Nothing of these is writeback.
    "rw",
    "defaults",
    "nosuid",
    "nodev",
    "noexec",
    "discard",
    "nodiscard",
    "inode64",
    "noquota",
    "errors=remount-ro",
];

fn is_known(option: &str) -> bool {
    OPTIONS.iter().any(|known| match (known.ends_with('='), option.strip_prefix(known)) {
        (true, Some(number)) => number.parse::<u32>().is_ok(),
        (_, rest) => rest == Some(""),
    })
}

/// What of a scenario is honoured only in part, for whoever reads the result.
pub fn simplified(scenario: &Scenario) -> Vec<String> {
    let machine = &scenario.machine;
    let mut said = Vec::new();
    for (name, device) in &machine.devices {
        if let Some(scheduler) = device.queue.scheduler.as_deref().filter(|scheduler| *scheduler != "none") {
            let wbt = if scheduler == "bfq" { ", but switches writeback throttling off" } else { "" };
            said.push(format!("{scheduler} of {name} orders requests as none does{wbt}"));
        }
    }
    for (point, mount) in &machine.mounts {
        if mount.fs_type == FsType::Btrfs {
            said.push(format!("{point}: btrfs is ext4 without its journal: no log tree, no metadata, no checksums"));
        }
    }
    if machine.cgroups.values().any(|cgroup| cgroup.io_weight.is_some()) {
        said.push("io.weight has no effect: neither io.cost nor BFQ's queues are simulated".to_owned());
    }
    if machine.cgroups.values().any(|cgroup| cgroup.memory_low.is_some()) {
        // Debian's 6.12 with CONFIG_LRU_GEN_ENABLED evicted what memory.low protects as fast as what it does not; its
        // 6.1, without, nothing of it.
        said.push(
            "memory.low holds as on kernels without the multi-generational LRU (lru_gen/enabled is 0)".to_owned(),
        );
    }
    said
}

/// The setting that is honoured and spelled almost like one that is not. Other keys are checked when a scenario is
/// read; a kernel may have any setting.
pub fn meant(key: &UsedKey) -> Option<&'static str> {
    const SETTINGS: &str = "machine.sysctl.";
    let known = HONOURED.iter().filter_map(|key| key.strip_prefix(SETTINGS));
    nearest(key.pattern.strip_prefix(SETTINGS)?, known)
}

/// Refuses what the simulator cannot do.
pub fn check(scenario: &Scenario) -> Result<(), SimError> {
    let refused = scenario.not_honoured(HONOURED);
    if !refused.is_empty() {
        return Err(SimError::NotHonoured(refused));
    }
    for (point, mount) in &scenario.machine.mounts {
        if let Some(option) = mount.options.iter().find(|option| !is_known(option)) {
            let what = format!("the simulator cannot honour the option {option:?} of machine.mounts.\"{point}\"");
            return Err(SimError::Senseless(what));
        }
    }
    Ok(())
}
