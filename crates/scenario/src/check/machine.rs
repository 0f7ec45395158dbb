// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is wrong with the machine of a scenario.

use super::{Complaints, is_plain_path, is_shown, letters, wrong_with_path};
use crate::machine::{Backing, Cgroup, CgroupMode, Controller, Device, IoMax, Layout, Machine, Mount, STACK_MAX};
use crate::profile::{DEVICE_PROFILES, device_profile};
use crate::sysctl::{EXCLUSIVE, RANGES, Sysctls};
use std::collections::BTreeSet;

/// What the kernel's build option NR_CPUS allows at most.
const CPUS_MAX: u32 = 8192;
/// Rates that kernels are built with.
const HZ: &[u32] = &[100, 250, 300, 1000];
/// `MEM_CGROUP_ID_MAX`: ids are 16 bits and 0 is none.
const MEMCGS_MAX: u64 = 65_535;
/// Members of an array: what md keeps bitmaps for, and more than anybody mirrors to.
const MEMBERS_MAX: usize = 32;
/// NUMA nodes that a usual kernel is built for.
const NODES_MAX: u32 = 64;
/// More mounts than a mount namespace takes by default (`fs.mount-max`).
const MOUNTS_MAX: u64 = 100_000;

pub(super) fn check(machine: &Machine, complaints: &mut Complaints) {
    if machine.memory.bytes() < 16 << 20 {
        complaints.hint(&["machine", "memory"], "no kernel boots in less than 16 MiB", "write \"2 GiB\"");
    }
    if !(1..=CPUS_MAX).contains(&machine.cpus) {
        complaints.add(&["machine", "cpus"], format!("a kernel has 1 to {CPUS_MAX} CPUs"));
    }
    if machine.nodes.is_some_and(|nodes| !(1..=NODES_MAX).contains(&nodes)) {
        complaints.add(&["machine", "nodes"], format!("a kernel has 1 to {NODES_MAX} NUMA nodes"));
    }
    if machine.memory_used.is_some_and(|used| used.bytes() > machine.memory.bytes() / 10 * 9) {
        complaints.add(&["machine", "memory_used"], "must be at most nine tenths of machine.memory");
    }
    let copies = machine.copy_bandwidth.iter().flat_map(|copy| [copy.write, copy.read, copy.total]);
    if copies.flatten().any(|rate| rate.0.0 == 0) {
        complaints.add(&["machine", "copy_bandwidth"], "nothing would ever be copied");
    }
    if machine.hz.is_some_and(|hz| !HZ.contains(&hz)) {
        complaints.add(&["machine", "hz"], "kernels are built with 100, 250, 300 or 1000 ticks per second");
    }
    sysctls(&machine.sysctl, &["machine", "sysctl"], complaints);
    for (name, device) in &machine.devices {
        self::device(machine, name, device, complaints);
    }
    let mounts: u64 = machine.mounts.values().map(|mount| u64::from(mount.instances.unwrap_or(1))).sum();
    if mounts > MOUNTS_MAX {
        complaints.add(&["machine", "mounts"], format!("{mounts} mounts; fs.mount-max is {MOUNTS_MAX}"));
    }
    let members = stacks(machine, complaints);
    let mut taken = BTreeSet::new();
    for (point, mount) in &machine.mounts {
        self::mount(machine, point, mount, complaints);
        let at = ["machine", "mounts", point, "device"];
        match &mount.device {
            Some(device) if members.contains(device) => complaints.add(&at, "it is a member of another device"),
            Some(device) if !taken.insert(device) => complaints.add(&at, "two filesystems on one device"),
            _ => {}
        }
    }
    let cgroups = machine.cgroups.keys().map(|path| u64::from(machine.copies_of_cgroup(path)));
    let cgroups = cgroups.fold(0, u64::saturating_add);
    if cgroups > MEMCGS_MAX {
        let message = format!("{cgroups} cgroups; a kernel has at most {MEMCGS_MAX} memory cgroups (16-bit ids)");
        complaints.add(&["machine", "cgroups"], message);
    }
    for (path, cgroup) in &machine.cgroups {
        self::cgroup(machine, path, cgroup, complaints);
    }
    super::shares::check(machine, &members, complaints);
}

/// Devices that are made of others must have an order in which they can be built, and members of their own. Returns the
/// members of all, which no filesystem can be on.
fn stacks<'a>(machine: &'a Machine, complaints: &mut Complaints) -> BTreeSet<&'a String> {
    let built: BTreeSet<&String> = machine.stacked_devices().into_iter().map(|(name, _)| name).collect();
    let mut taken = BTreeSet::new();
    for (name, device) in &machine.devices {
        let Some((_, members)) = device.backing.stack() else { continue };
        let at = ["machine", "devices", name, "backing"];
        if !built.contains(name) && members.iter().all(|member| machine.devices.contains_key(member)) {
            complaints.add(&at, format!("it is made of itself, or of more than {STACK_MAX} layers"));
        }
        let own: BTreeSet<&String> = members.iter().collect();
        if let Some(member) = own.intersection(&taken).next() {
            complaints.add(&at, format!("member {member:?} is also a member of another device"));
        }
        // What has other faults is told of these alone.
        if built.contains(name) && own.len() == members.len() {
            taken.extend(own);
        }
    }
    taken
}

/// Values and pairs that the kernel would refuse or forget.
pub(super) fn sysctls(sysctls: &Sysctls, at: &[&str], complaints: &mut Complaints) {
    let key = |name: &'static str| -> Vec<&str> { at.iter().copied().chain(name.split('.')).collect() };
    for &(name, min, max) in RANGES {
        let Some(value) = sysctls.0.get(name) else { continue };
        let number: Option<i64> = value.to_string().parse().ok();
        if number.is_none_or(|number| !(min..=max).contains(&number)) {
            let range = if max == i64::MAX { format!("at least {min}") } else { format!("{min} to {max}") };
            complaints.add(&key(name), format!("the kernel refuses {value} here (EINVAL): it takes {range}"));
        }
    }
    for &(ratio, bytes) in EXCLUSIVE {
        if sysctls.0.contains_key(ratio) && sysctls.0.contains_key(bytes) {
            let hint = match at.first() {
                Some(&"machine") => format!("in a variant: unset = [\"machine.sysctl.{bytes}\"]"),
                _ => format!("set {ratio} or {bytes}"),
            };
            let message =
                format!("{ratio} and {bytes} cannot both be set: the kernel zeroes the one that was written first");
            complaints.hint(&key(bytes), message, hint);
        }
    }
}

fn device(machine: &Machine, name: &str, device: &Device, complaints: &mut Complaints) {
    let at = |key: &'static str| ["machine", "devices", name, key];
    if name.is_empty() || name.len() > 20 || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        complaints.add(&["machine", "devices", name], "a device's name is 1 to 20 letters, digits and underscores");
    }
    if let Some(profile) = &device.profile
        && device_profile(profile).is_none()
    {
        let known: Vec<String> = DEVICE_PROFILES.iter().map(|known| known.name.to_owned()).collect();
        complaints.unknown(&at("profile"), "device profile", profile, known.iter());
    }
    if device.seek.is_some() && !device.rotational {
        let rotational = at("rotational");
        complaints.lack(&at("seek"), "a disk that does not turn has no arm", "write rotational = true", &rotational);
    }
    if device.read_preference.is_some_and(|percent| percent > 100) {
        complaints.add(&at("read_preference"), "it is a percentage, from 0 to 100");
    }
    if device.write_cache.is_some() && device.rotational {
        complaints.hint(&at("write_cache"), "write_cache is not supported on a rotating disk", "leave it out");
    }
    let drain = device.write_cache.map(|cache| cache.drain.0.0);
    if drain == Some(0) || drain > device.write_bandwidth.map(|rate| rate.0.0).or(drain) {
        complaints.add(&at("write_cache"), "drain must be above 0 and at most write_bandwidth");
    } else if drain > device.bandwidth.map(|rate| rate.0.0).or(drain) {
        complaints.add(&at("write_cache"), "drain must be above 0 and at most bandwidth");
    }
    if device.backing != Backing::Disk {
        let of_disks =
            [("write_cache", device.write_cache.is_some()), ("queued_latency", device.queued_latency.is_some())];
        for (key, _) in of_disks.iter().filter(|(_, is_set)| *is_set) {
            complaints.hint(&at(key), format!("{key} is supported on disks only"), "write it for the disks below it");
        }
    }
    let zeros = [
        ("bandwidth", device.bandwidth.is_some_and(|rate| rate.0.0 == 0)),
        ("iops", device.iops.is_some_and(|rate| rate.0.0 == 0)),
        ("read_stream", device.read_stream.is_some_and(|rate| rate.0.0 == 0)),
        ("write_bandwidth", device.write_bandwidth.is_some_and(|rate| rate.0.0 == 0)),
        ("read_bandwidth", device.read_bandwidth.is_some_and(|rate| rate.0.0 == 0)),
        ("write_iops", device.write_iops.is_some_and(|rate| rate.0.0 == 0)),
        ("read_iops", device.read_iops.is_some_and(|rate| rate.0.0 == 0)),
    ];
    for (key, _) in zeros.iter().filter(|(_, is_zero)| *is_zero) {
        complaints.hint(&at(key), "nothing would ever complete", "leave it out for no limit");
    }
    match &device.backing {
        Backing::Disk | Backing::Loop { .. } if device.size.is_none_or(|size| size.bytes() < 1 << 20) => {
            complaints.hint(
                &["machine", "devices", name],
                "it has no size of at least 1 MiB",
                "write size = \"4 GiB\"",
            );
        }
        Backing::Disk => {}
        Backing::Loop { file, .. } => {
            if !complaints.spend(machine.mounts.len()) {
                return;
            }
            let is_on_mount = mount_of(machine, file).is_some_and(|mount| mount.device.as_deref() != Some(name));
            if let Some(why) = wrong_with_path(file) {
                complaints.add(&at("backing"), format!("{file:?} {why}"));
            } else if !is_on_mount {
                complaints.add(&at("backing"), format!("{file:?} is no path on another mount of this machine"));
            }
        }
        stacked => {
            let Some((layout, members)) = stacked.stack() else { return };
            let least = match layout {
                Layout::Linear | Layout::Encrypted(_) => 1,
                Layout::Mirrors | Layout::Stripes(_) => 2,
                Layout::MirroredStripes(_) => 4,
            };
            if !(least..=MEMBERS_MAX).contains(&members.len()) {
                let message = format!("{} needs {least} to {MEMBERS_MAX} members", stacked.kind());
                complaints.add(&at("backing"), message);
                return;
            }
            if matches!(layout, Layout::MirroredStripes(_)) && members.len() % 2 == 1 {
                complaints.add(&at("backing"), "raid10 needs an even number of members");
            }
            if let Layout::Stripes(chunk) | Layout::MirroredStripes(chunk) = layout
                && (!chunk.is_power_of_two() || !(4096..=64 << 20).contains(&chunk))
            {
                complaints.add(&at("backing"), "chunk is a power of two from 4 KiB to 64 MiB");
            }
            if layout == Layout::Encrypted(0) {
                complaints.hint(&at("backing"), "cpu_bandwidth = 0: nothing would ever complete", "leave it out");
            }
            if device.size.is_some() {
                complaints.hint(
                    &at("size"),
                    "it takes no size: that follows from its members",
                    format!("remove size, or in a variant write unset = [\"machine.devices.{name}.size\"]"),
                );
            }
            for (number, member) in members.iter().enumerate() {
                if members[..number].contains(member) {
                    complaints.add(&at("backing"), format!("member {member:?} is named twice"));
                }
                match machine.devices.get(member) {
                    Some(other) if !matches!(other.backing, Backing::Loop { .. }) => {}
                    Some(_) => complaints.add(&at("backing"), format!("member {member:?} must not be a loop device")),
                    None => complaints.unknown(&at("backing"), "device", member, machine.devices.keys()),
                }
            }
        }
    }
    let (min, max) = (device.bdi.min_ratio.unwrap_or(0), device.bdi.max_ratio.unwrap_or(100));
    if min > max || max > 100 {
        complaints.add(&at("bdi"), "the kernel refuses this (EINVAL): min_ratio ≤ max_ratio ≤ 100");
    }
}

/// The mount that a path is on: the longest mount point that is a prefix, copies taken as one.
pub(super) fn mount_of<'a>(machine: &'a Machine, path: &str) -> Option<&'a Mount> {
    mount_at(machine, path).map(|(_, mount)| mount)
}

/// Returns the mount that a path is on, with its mount point.
pub(super) fn mount_at<'a>(machine: &'a Machine, path: &str) -> Option<(&'a str, &'a Mount)> {
    let below = machine.mounts.iter().filter(|(point, _)| is_below(point, path));
    below.max_by_key(|(point, _)| point.len()).map(|(point, mount)| (point.as_str(), mount))
}

/// Whether a path is at a mount point or below it, copies taken as one.
pub(super) fn is_below(point: &str, path: &str) -> bool {
    let mut path = path.split('/');
    point.trim_end_matches('/').split('/').all(|have| path.next().is_some_and(|want| same_part(have, want)))
}

/// Whether two parts of paths can be the same once their numbers are filled in: letters in braces stand
/// for any number.
pub(super) fn same_part(a: &str, b: &str) -> bool {
    let number = |text: &str| -> Option<usize> {
        match text.as_bytes() {
            [b'{', _, b'}', ..] => Some(3),
            _ => text.bytes().position(|byte| !byte.is_ascii_digit()).or(Some(text.len())).filter(|&len| len > 0),
        }
    };
    let (mut a, mut b) = (a, b);
    loop {
        if !a.starts_with('{') && !b.starts_with('{') {
            let (Some(x), Some(y)) = (a.chars().next(), b.chars().next()) else { return a.is_empty() && b.is_empty() };
            if x != y {
                return false;
            }
            (a, b) = (a.get(x.len_utf8()..).unwrap_or(""), b.get(y.len_utf8()..).unwrap_or(""));
            continue;
        }
        let (Some(x), Some(y)) = (number(a), number(b)) else { return false };
        (a, b) = (a.get(x..).unwrap_or(""), b.get(y..).unwrap_or(""));
    }
}

fn mount(machine: &Machine, point: &str, mount: &Mount, complaints: &mut Complaints) {
    let at = |key: &'static str| ["machine", "mounts", point, key];
    let here = ["machine", "mounts", point];
    if let Some(why) = wrong_with_path(point) {
        complaints.hint(&here, format!("the mount point {why}"), "write [machine.mounts.\"/data\"]");
    } else if point == "/" {
        complaints.hint(&here, "a mount point is an absolute path below /", "write [machine.mounts.\"/data\"]");
    }
    numbered(point, mount.instances, &here, complaints);
    match (&mount.device, mount.fs_type.needs_device()) {
        (None, true) => {
            complaints.hint(&here, format!("{} needs a device", mount.fs_type.name()), "write device = \"NAME\"");
        }
        (Some(_), false) => complaints.add(&at("device"), format!("{} is on no device", mount.fs_type.name())),
        (Some(device), true) if !machine.devices.contains_key(device) => {
            complaints.unknown(&at("device"), "device", device, machine.devices.keys());
        }
        (Some(_), true) if mount.instances.is_some() => {
            complaints
                .add(&at("instances"), "copies of one filesystem on one device; only overlay and tmpfs are copied");
        }
        _ => {}
    }
    let is_overlay = !mount.fs_type.needs_device() && mount.fs_type.name() == "overlay";
    match (&mount.overlay, is_overlay) {
        (None, true) => complaints.hint(
            &here,
            "an overlay needs its directories",
            "write overlay = { lower = \"/data/lower\", upper = \"/data/upper\", work = \"/data/work\" }",
        ),
        (Some(_), false) => complaints.add(&at("overlay"), "only an overlay has these"),
        (Some(dirs), true) => {
            for dir in [&dirs.lower, &dirs.upper, &dirs.work] {
                if let Some(why) = wrong_with_path(dir) {
                    complaints.add(&at("overlay"), format!("{dir:?} {why}"));
                } else if letters(dir).is_none_or(|found| found.iter().any(|&letter| letter != 'i')) {
                    complaints.add(&at("overlay"), format!("{dir:?} has a brace that is not {{i}}"));
                }
            }
        }
        (None, false) => {}
    }
    if mount.options.iter().any(|option| option.is_empty() || option.contains([',', ' ']) || !is_shown(option)) {
        complaints.hint(&at("options"), "each option is one word", "write [\"noatime\", \"lazytime\"]");
    }
    for (rest, message, hint) in mount.mkfs.wrong_for(mount.fs_type) {
        let key: Vec<&str> = at("mkfs").into_iter().chain(rest.iter().map(String::as_str)).collect();
        match hint {
            Some(hint) => complaints.hint(&key, message, hint),
            None => complaints.add(&key, message),
        }
    }
}

/// `{i}` is there exactly where copies are.
fn numbered(path: &str, instances: Option<u32>, at: &[&str], complaints: &mut Complaints) {
    match (letters(path), instances) {
        (None, _) => complaints.add(at, "a brace that is not {i}"),
        (Some(found), _) if found.iter().any(|&letter| letter != 'i') => {
            complaints.add(at, "only {i} can be filled in here");
        }
        (_, Some(0)) => complaints.hint(at, "no copy of it", "leave it out"),
        (Some(found), Some(_)) if found.is_empty() => {
            complaints.add(at, "it has copies and its path has no {i} to tell them apart");
        }
        (Some(found), None) if !found.is_empty() => complaints.hint(at, "{i} without instances", "write instances = 8"),
        _ => {}
    }
}

fn cgroup(machine: &Machine, path: &str, cgroup: &Cgroup, complaints: &mut Complaints) {
    let here = ["machine", "cgroups", path];
    let is_root = path == "/";
    if !is_root && (path.starts_with('/') || !is_plain_path(&format!("/{path}")) || path.ends_with('/')) {
        complaints.hint(
            &here,
            "a cgroup's path is below the root, without a leading slash",
            "write \"system/redis{i}\"",
        );
    }
    // A copied parent may stand above: then {i} is the parent's.
    let copies_above = path.rsplit_once('/').map_or(1, |(parent, _)| machine.copies_of_cgroup(parent));
    match cgroup.instances {
        Some(_) if copies_above > 1 => complaints.add(&here, "copies within copies: its parent has instances already"),
        None if copies_above > 1 => {}
        instances => numbered(path, instances, &here, complaints),
    }
    limits(machine, cgroup, &here, complaints);
    let wants_memory = [cgroup.memory_max, cgroup.memory_high, cgroup.memory_low, cgroup.memory_min];
    let wants_memory = wants_memory.iter().any(Option::is_some);
    let wants_io = !cgroup.io_max.is_empty() || cgroup.io_weight.is_some();
    if is_root && (wants_memory || wants_io || cgroup.instances.is_some() || cgroup.remove_after.is_some()) {
        complaints.add(&here, "the root cgroup has no limits and is never removed");
    }
    if machine.cgroup_mode == CgroupMode::V1 {
        return;
    }
    if is_root {
        return;
    }
    let parents = path.match_indices('/').map(|(at, _)| &path[..at]).chain(["/"]);
    for parent in parents {
        let enabled = machine.cgroups.get(parent).and_then(|cgroup| cgroup.subtree_control.as_ref());
        for (is_wanted, controller) in [(wants_memory, Controller::Memory), (wants_io, Controller::Io)] {
            if is_wanted && enabled.is_some_and(|enabled| !enabled.contains(&controller)) {
                let message = format!(
                    "it has limits of {}, which {parent:?} does not enable for its children",
                    controller.name()
                );
                complaints.add(&here, message);
            }
        }
    }
}

/// Limits that can be set on any cgroup, at start or by a step.
pub(super) fn limits(machine: &Machine, cgroup: &Cgroup, here: &[&str], complaints: &mut Complaints) {
    if cgroup.io_weight.is_some_and(|weight| !(1..=10_000).contains(&weight)) {
        complaints.add(&[here, &["io_weight"]].concat(), "the kernel takes 1 to 10000 (ERANGE)");
    }
    for (device, limit) in &cgroup.io_max {
        let key = [here, &["io_max", device]].concat();
        if !machine.devices.contains_key(device) {
            complaints.unknown(&key, "device", device, machine.devices.keys());
        }
        if *limit == IoMax::default() {
            complaints.hint(&key, "no limit in it", "write { write_bandwidth = \"10 MB/s\" }");
        }
        let rates = [limit.read_bandwidth, limit.write_bandwidth];
        let requests = [limit.read_iops, limit.write_iops];
        if rates.iter().flatten().any(|rate| rate.0.0 == 0) || requests.iter().flatten().any(|rate| rate.0.0 == 0) {
            complaints.add(&key, "the kernel refuses a limit of 0 (EINVAL)");
        }
    }
    if machine.cgroup_mode == CgroupMode::V1 {
        let absent = [
            ("memory_high", cgroup.memory_high.is_some()),
            ("memory_low", cgroup.memory_low.is_some()),
            ("memory_min", cgroup.memory_min.is_some()),
            ("io_weight", cgroup.io_weight.is_some()),
            ("subtree_control", cgroup.subtree_control.is_some()),
        ];
        for (key, _) in absent.iter().filter(|(_, is_set)| *is_set) {
            complaints.add(&[here, &[*key]].concat(), "cgroup v1 has no such thing");
        }
    }
}
