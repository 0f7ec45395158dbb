// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the simulator makes of a scenario: keys, mount options and sizes that it refuses, and what it leaves out.

use crate::SimError;
use crate::world::PAGE;
use floodline_record::units::Bytes;
use floodline_scenario::{Backing, ByteSize, Executor, FsType, Mkfs, Scenario, UsedKey};
use std::collections::BTreeMap;

/// Mount options whose effect is modelled, or that change nothing here. One that ends with `=` takes a number.
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
    // These do not affect writeback.
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

/// What a recording shows of a host that has no place in a scenario.
#[derive(Clone, Copy, Debug, Default)]
pub struct Beside {
    /// Whether a cgroup has an `io.weight` other than the usual one.
    pub has_weights: bool,
    /// Whether the multi-generational LRU is on; `None` where unknown.
    pub lru_gen: Option<bool>,
}

/// Returns what the model leaves out of a scenario, with the effect that this may have: one text for each, whose first sentence stands
/// alone.
pub fn simplified(scenario: &Scenario) -> Vec<String> {
    simplified_beside(scenario, Beside::default())
}

/// Returns what the model leaves out of the scenario of a host.
pub fn simplified_beside(scenario: &Scenario, beside: Beside) -> Vec<String> {
    let machine = &scenario.machine;
    let mut said = Vec::new();
    for (name, device) in &machine.devices {
        let rates = [device.bandwidth, device.write_bandwidth, device.read_bandwidth];
        let requests = [device.iops, device.write_iops, device.read_iops];
        let is_limited = rates.iter().any(Option::is_some) || requests.iter().any(Option::is_some);
        if device.backing != Backing::Disk && (is_limited || device.latency.is_some()) {
            said.push(format!(
                "The limits and the latency of {name} have no effect. Those of the disks below it apply."
            ));
        }
    }
    let mut by_scheduler: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, device) in &machine.devices {
        if let Some(scheduler) = device.queue.scheduler.as_deref().filter(|scheduler| *scheduler != "none") {
            by_scheduler.entry(scheduler).or_default().push(name);
        }
    }
    for (scheduler, devices) in by_scheduler {
        let of_bfq = "The model switches writeback throttling off, as bfq does, and does not simulate bfq's queues for each process. ";
        said.push(format!(
            "The model does not sort the requests of {} as {scheduler} does. On a SATA or rotating disk, simulated reads overtake writes \
             that the disk does not hold yet. {}On a host, waits of reads and writes may differ.",
            devices.join(", "),
            if scheduler == "bfq" { of_bfq } else { "" }
        ));
    }
    let btrfs = machine.mounts.iter().filter(|(_, mount)| mount.fs_type == FsType::Btrfs);
    let points: Vec<&str> = btrfs.map(|(point, _)| point.as_str()).collect();
    if !points.is_empty() {
        said.push(format!(
            "The btrfs on {} is simulated in outline. Data gets new places one after the other, an fsync writes three nodes of the \
             log tree, and a commit writes an estimated number of nodes. Reads do not use the new places. On a host, an fsync \
             may wait longer because of a commit.",
            points.join(", ")
        ));
    }
    for (point, room, images) in machine.outgrown() {
        said.push(format!(
            "{point} has {}, less than the {} of its loop device images. In the model, writes to an image never fail. On a host, \
             they fail once {point} is full.",
            ByteSize(Bytes(room)),
            ByteSize(Bytes(images))
        ));
    }
    for (point, mount) in &machine.mounts {
        let ignored = ignored_mkfs(&mount.mkfs);
        if !ignored.is_empty() {
            said.push(format!(
                "The model ignores {} of {point} and uses blocks of 4 KiB. On a host with another block size, a small write writes fewer or more bytes.",
                ignored.join(", ")
            ));
        }
    }
    if holds_memory(scenario) {
        said.push(
            "Swap is not simulated. Anonymous memory and tmpfs stay in memory. A kernel with swap evicts some of it and keeps more file \
             pages, and its dirty budgets are larger."
                .to_owned(),
        );
    }
    if beside.has_weights || machine.cgroups.values().any(|cgroup| cgroup.io_weight.is_some()) {
        said.push(
            "The model ignores io.weight. It simulates neither io.cost nor the queues of BFQ. On a busy device, the shares of cgroups \
             may differ."
                .to_owned(),
        );
    }
    // Debian's 6.12 with CONFIG_LRU_GEN_ENABLED evicted memory protected by memory.low as fast as unprotected memory.
    // Debian's 6.1, without that option, evicted none of it.
    let is_protected = machine.cgroups.values().any(|cgroup| cgroup.memory_low.is_some());
    let protected = "In the model, memory.low protects pages as on a kernel without the multi-generational LRU (lru_gen/enabled is 0).";
    match (beside.lru_gen, is_protected) {
        (Some(true), true) => said.push(format!(
            "The model has no multi-generational LRU, which this host uses (lru_gen). {protected} The host may evict such pages, and read \
             them again."
        )),
        (Some(true), false) => said.push(
            "The model has no multi-generational LRU, which this host uses (lru_gen). The host may evict file pages that the model \
             keeps, and read them again."
                .to_owned(),
        ),
        (None, true) => said.push(format!(
            "{protected} A kernel with this LRU may evict such pages, and read them again."
        )),
        (Some(false), _) | (None, false) => {}
    }
    said
}

/// The options of a filesystem that change nothing in the model, as they are written in a scenario.
fn ignored_mkfs(mkfs: &Mkfs) -> Vec<&'static str> {
    let given = [
        ("mkfs.block_size", mkfs.block_size.is_some_and(|size| size.bytes() != PAGE)),
        ("mkfs.sector_size", mkfs.sector_size.is_some()),
        ("mkfs.node_size", mkfs.node_size.is_some()),
        ("mkfs.inode_size", mkfs.inode_size.is_some()),
        ("mkfs.bytes_per_inode", mkfs.bytes_per_inode.is_some()),
        ("mkfs.reserved_percent", mkfs.reserved_percent.is_some()),
        ("mkfs.data", mkfs.data.is_some()),
        ("mkfs.metadata", mkfs.metadata.is_some()),
        ("mkfs.features", !mkfs.features.is_empty()),
    ];
    given.into_iter().filter(|(_, is_given)| *is_given).map(|(key, _)| key).collect()
}

/// Whether a scenario has memory that a kernel with swap could evict: anonymous memory of tasks, or a tmpfs.
fn holds_memory(scenario: &Scenario) -> bool {
    let used = scenario.used_keys();
    let is_anonymous = |key: &UsedKey| key.pattern.starts_with("step.anon") || key.pattern == "step.read.keep";
    scenario.machine.mounts.values().any(|mount| mount.fs_type == FsType::Tmpfs) || used.iter().any(is_anonymous)
}

/// Most copies of tasks. Measured: 10,000 copies that write once a second take 0.2 GB, and 50,000 take 1.5 GB.
const TASKS_MAX: u64 = 20_000;
/// Most copies of cgroups. Measured with a writer in each: 10 s of 5,000 take 2 s of CPU time and 0.15 GB, of
/// 20,000 they take 28 s and 0.55 GB. The time grows with the square.
const CGROUPS_MAX: u64 = 20_000;

/// Refuses scenarios that the simulator does not support.
pub fn check(scenario: &Scenario) -> Result<(), SimError> {
    let refused = scenario.not_honoured(Executor::Simulator);
    if !refused.is_empty() {
        return Err(SimError::NotHonoured(refused));
    }
    let counts = [
        ("workload.tasks", "tasks", scenario.number_of_tasks(), TASKS_MAX),
        ("machine.cgroups", "cgroups", scenario.number_of_cgroups(), CGROUPS_MAX),
    ];
    if let Some((key, what, count, most)) = counts.into_iter().find(|(.., count, most)| count > most) {
        return Err(SimError::TooMany { key, what, count, most });
    }
    for (point, mount) in &scenario.machine.mounts {
        if let Some(option) = mount.options.iter().find(|option| !is_known(option)) {
            let what = format!(
                "the simulator does not support the option {option:?} of machine.mounts.\"{point}\"; it supports {}",
                OPTIONS.join(", ")
            );
            return Err(SimError::Senseless(what));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_scenario::ScenarioFile;

    #[test]
    fn images_larger_than_their_filesystem_are_reported() {
        let told = |image: &str, other: &str| {
            let text = format!(
                "name = \"s\"\nsummary = \"s\"\n[machine]\nmemory = \"1 GiB\"\ndevices.disk.size = \"1 GiB\"\n\
                 mounts.\"/data\" = {{ type = \"ext4\", device = \"disk\" }}\n\
                 devices.a = {{ size = \"{image}\", backing = {{ loop = {{ file = \"/data/a\" }} }} }}\n\
                 devices.b = {{ size = \"{other}\", backing = {{ loop = {{ file = \"/data/b\", direct_io = true }} }} }}\n\
                 [workload.tasks.t]\nsteps = [\"sync\"]\n"
            );
            let file = ScenarioFile::parse(&text).unwrap();
            simplified(&file.variants["default"])
        };
        assert_eq!(told("512 MiB", "512 MiB"), Vec::<String>::new());
        let said = told("512 MiB", "513 MiB");
        let begin = "/data has 1 GiB, less than the 1025 MiB of its loop device images. ";
        assert!(said.len() == 1 && said[0].starts_with(begin), "{said:?}");
    }

    #[test]
    fn more_than_can_be_carried_is_refused_with_what_can() {
        let told = |cgroups: u32, tasks: u32| {
            let text = format!(
                "name = \"s\"\nsummary = \"s\"\n[machine]\nmemory = \"1 GiB\"\n[machine.cgroups.\"c{{i}}\"]\n\
                 instances = {cgroups}\n[workload.tasks.t]\ninstances = {tasks}\nsteps = [\"sync\"]\n"
            );
            let file = ScenarioFile::parse(&text).unwrap();
            let checked = file.variants.values().try_for_each(check);
            checked.map_err(|error| error.to_string()).err().unwrap_or_default()
        };
        assert_eq!(told(20_000, 20_000), "");
        assert_eq!(
            told(1, 100_000),
            "workload.tasks: 100000 tasks; the simulator supports at most 20000: lower instances"
        );
        assert_eq!(
            told(65_535, 1),
            "machine.cgroups: 65535 cgroups; the simulator supports at most 20000: lower instances"
        );
    }
}
