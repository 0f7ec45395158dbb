// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine of a twin: memory, CPUs, settings; then devices, mounts and cgroups, each in a file of its own.

use super::{cgroups, devices};
use crate::provenance::Notes;
use crate::recorded::Recorded;
use crate::{Ceiling, TwinError};
use floodline_record::facts::{self, HostFacts};
use floodline_record::sample::HostRow;
use floodline_record::units::Bytes;
use floodline_scenario::{ByteSize, CgroupMode, Machine, SysctlValue, Sysctls};
use std::collections::BTreeMap;

pub(super) use cgroups::Cgroups;
pub(super) use devices::{Place, Places};

/// Pages of 4 KiB that the model's kernel takes for itself.
const KERNEL_PAGES: u64 = 16_384;

/// Where the tasks of the workload can be.
pub(super) struct Ground {
    /// Filesystems by device.
    pub(super) places: Places,
    /// Cgroups.
    pub(super) cgroups: Cgroups,
}

pub(super) fn machine(
    recorded: &Recorded,
    facts: &HostFacts,
    notes: &mut Notes,
    unknown: &mut Vec<String>,
) -> Result<(Machine, Ground, Vec<Ceiling>), TwinError> {
    let window = &recorded.window;
    let total = facts.mem_total.or(window.host.first.mem_total).ok_or(TwinError::Missing("the memory"))?;
    // The model takes 1/64 and 64 MiB for descriptors of pages and for itself: `MemTotal` is what is left.
    let memory = (total.0 / 4096).saturating_add(KERNEL_PAGES).saturating_mul(64) / 63 * 4096;
    notes.derived("machine.memory", "MemTotal plus the memory that the kernel takes at boot");
    let cpus = window.host.last.cpus_online.map(|count| count.0).or(facts.cpus_possible.map(u64::from));
    let cpus = u32::try_from(cpus.unwrap_or(1)).unwrap_or(1).clamp(1, 8192);
    notes.measured("machine.cpus", "CPUs online");
    let cgroup_mode = match facts.cgroups.mode {
        facts::CgroupMode::V2 | facts::CgroupMode::Hybrid if facts.cgroups.has_unified_writeback() => CgroupMode::V2,
        facts::CgroupMode::V2 if facts.cgroups.v2_controllers_unread => CgroupMode::V2,
        _ => CgroupMode::V1,
    };
    notes.measured("machine.cgroup_mode", "v2 if memory and io are both on the unified hierarchy");
    let (devices, mounts, places, ceilings) = devices::devices(window, notes, unknown)?;
    let cgroups = Cgroups::of(recorded);
    let machine = Machine {
        memory: ByteSize(Bytes(memory)),
        cpus,
        hz: None,
        copy_bandwidth: None,
        memory_used: None,
        nodes: None,
        cgroup_mode,
        sysctl: sysctls(&window.host.last, notes),
        devices,
        mounts,
        cgroups: BTreeMap::new(),
    };
    Ok((machine, Ground { places, cgroups }, ceilings))
}

/// The settings that matter for writeback, as they were last read.
fn sysctls(row: &HostRow, notes: &mut Notes) -> Sysctls {
    let mut set = BTreeMap::new();
    let mut put = |name: &str, value: Option<u64>| {
        if let Some(value) = value.and_then(|value| i64::try_from(value).ok()) {
            set.insert(format!("vm.{name}"), SysctlValue::Number(value));
            notes.measured(format!("machine.sysctl.vm.{name}"), format!("/proc/sys/vm/{name}"));
        }
    };
    // Of a pair the kernel shows 0 for the member that is not in force.
    let pairs = [
        ("dirty_bytes", row.dirty_bytes.map(|n| n.0), "dirty_ratio", row.dirty_ratio.map(|n| n.0)),
        (
            "dirty_background_bytes",
            row.dirty_background_bytes.map(|n| n.0),
            "dirty_background_ratio",
            row.dirty_background_ratio.map(|n| n.0),
        ),
    ];
    for (bytes_name, bytes, ratio_name, ratio) in pairs {
        match bytes {
            Some(bytes) if bytes > 0 => put(bytes_name, Some(bytes)),
            _ => put(ratio_name, ratio),
        }
    }
    put("dirty_expire_centisecs", row.dirty_expire_centisecs.map(|n| n.0));
    put("dirty_writeback_centisecs", row.dirty_writeback_centisecs.map(|n| n.0));
    put("dirtytime_expire_seconds", row.dirtytime_expire_seconds.map(|n| n.0));
    put("laptop_mode", row.laptop_mode.map(|n| n.0).filter(|mode| *mode > 0));
    Sysctls(set)
}
