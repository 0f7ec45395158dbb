// SPDX-License-Identifier: MIT OR Apache-2.0
//! Builds the machine of a scenario inside the guest: devices and filesystems in an order in which each
//! finds what it is made of, then cgroups, and settings last, so that building is not slowed by them.

use super::devices::Devices;
use super::{GuestError, Host, array, cgroups, devices, format, mapper, mount_at, programs};
use crate::job::Job;
use crate::workload::{Place, mount, set_sysctls};
use floodline_scenario::{Backing, Device, Layout, MountCopy, Scenario};
use rustix::time::{ClockId, clock_getres};
use std::path::Path;

pub(super) fn set_up(job: &Job, host: &Host) -> Result<Place, GuestError> {
    let scenario = &job.scenario;
    host.stage("looking for disks");
    let mode = scenario.machine.cgroup_mode;
    same_hz(scenario)?;
    let disks = devices::find(&job.disks)?;
    host.stage("making filesystems");
    let devices = stacked(scenario, disks)?;
    if let Some(serial) = &job.programs {
        programs::mount_disk(serial, scenario)?;
    }
    let mut place = Place { mode, cgroup_roots: Vec::new(), devices, mounts: scenario.mount_copies() };
    host.stage("mounting");
    mount_all(scenario, &mut place)?;
    for (name, device) in &scenario.machine.devices {
        devices::tune(&place, name, device)?;
    }
    host.stage("creating cgroups");
    place.cgroup_roots = cgroups::mount(mode)?;
    cgroups::create_all(&place, &scenario.cgroup_copies())?;
    // systemd has set them at boot, with systemd-sysctl.
    if !job.has_system {
        set_sysctls(&scenario.machine.sysctl)?;
    }
    // The recorder reads per-device state and trace events here. A kernel may be built without them.
    let _ = mount_at("debugfs", "/sys/kernel/debug", "");
    let _ = mount_at("tracefs", "/sys/kernel/tracing", "");
    Ok(place)
}

/// Refuses a kernel whose `CONFIG_HZ` differs from the scenario's. The resolution of the coarse clocks is one tick.
fn same_hz(scenario: &Scenario) -> Result<(), GuestError> {
    let Some(wanted) = scenario.machine.hz else { return Ok(()) };
    let tick = clock_getres(ClockId::MonotonicCoarse);
    let ticks = u32::try_from(1_000_000_000 / tick.tv_nsec.max(1)).unwrap_or(0);
    if ticks == wanted { Ok(()) } else { Err(GuestError::Hz { wanted, ticks }) }
}

/// Finishes the disks and makes other devices of them, each with its filesystem.
fn stacked(scenario: &Scenario, disks: Devices) -> Result<Devices, GuestError> {
    let specs = &scenario.machine.devices;
    let mut devices = Devices::new();
    for (name, made) in disks {
        make_filesystem(scenario, &name, &made.0)?;
        let finished = match specs.get(&name) {
            Some(spec) => devices::finish(&name, spec, made)?,
            None => made,
        };
        devices.insert(name, finished);
    }
    let mut arrays = 0;
    for (name, spec) in scenario.machine.stacked_devices() {
        let Some((layout, members)) = spec.backing.stack() else { continue };
        let missing = |member: &String| GuestError::Missing { what: format!("the device {member}") };
        let members = members.iter().map(|member| devices.get(member).cloned().ok_or_else(|| missing(member)));
        let members: Vec<_> = members.collect::<Result<_, _>>()?;
        let made = match spec.backing.md_level() {
            Some(level) => array::make(arrays, (level, layout), &members)?,
            None => mapper::stack(name, layout, &members)?.ok_or_else(|| missing(name))?,
        };
        arrays += usize::from(spec.backing.md_level().is_some());
        make_filesystem(scenario, name, &made.0)?;
        devices.insert(name.clone(), devices::finish(name, spec, made)?);
    }
    Ok(devices)
}

/// Mounts in rounds: a mount on a loop device waits for the filesystem that contains the device's file.
fn mount_all(scenario: &Scenario, place: &mut Place) -> Result<(), GuestError> {
    let mut waiting: Vec<MountCopy> = place.mounts.clone();
    loop {
        let before = waiting.len();
        make_loops(scenario, &waiting, place)?;
        let mut still = Vec::new();
        for copy in waiting {
            match &copy.spec.device {
                Some(device) if !place.devices.contains_key(device) => still.push(copy),
                _ => {
                    make_on_loop(scenario, &copy, place)?;
                    if copy.spec.at_start {
                        mount(&copy, place)?;
                    }
                }
            }
        }
        waiting = still;
        let Some(stuck) = waiting.first() else {
            return make_loops(scenario, &waiting, place);
        };
        if waiting.len() == before {
            return Err(GuestError::Missing { what: format!("the device of {}", stuck.point) });
        }
    }
}

/// Makes the loop devices whose file is not on a filesystem that still waits to be mounted.
fn make_loops(scenario: &Scenario, waiting: &[MountCopy], place: &mut Place) -> Result<(), GuestError> {
    for (name, device) in &scenario.machine.devices {
        let Backing::Loop { file, direct_io } = &device.backing else { continue };
        let waits = waiting.iter().any(|copy| Path::new(file).starts_with(&copy.point));
        if !place.devices.contains_key(name) && !waits {
            let made = devices::make_loop(file, device.size, *direct_io)?;
            place.devices.insert(name.clone(), devices::finish(name, device, made)?);
        }
    }
    Ok(())
}

/// Makes the filesystem on a disk or an array, where the scenario has one there.
fn make_filesystem(scenario: &Scenario, device: &String, node: &Path) -> Result<(), GuestError> {
    let mut mounts = scenario.machine.mounts.values();
    match mounts.find(|mount| mount.device.as_ref() == Some(device)) {
        // What is encrypted does not contain zeros: each block that must be zero is written.
        Some(mount) if is_encrypted(scenario, device) => format::device_of_noise(mount.fs_type, &mount.mkfs, node),
        Some(mount) => format::disk(mount.fs_type, &mount.mkfs, node),
        None => Ok(()),
    }
}

/// Whether a device is encrypted, or made of one that is.
fn is_encrypted(scenario: &Scenario, device: &str) -> bool {
    let stack = scenario.machine.devices.get(device).and_then(|device| device.backing.stack());
    stack.is_some_and(|(layout, members)| {
        matches!(layout, Layout::Encrypted(_)) || members.iter().any(|member| is_encrypted(scenario, member))
    })
}

/// Makes the filesystem of a mount that is on a loop device; others were made before.
fn make_on_loop(scenario: &Scenario, copy: &MountCopy, place: &Place) -> Result<(), GuestError> {
    let Some(name) = &copy.spec.device else { return Ok(()) };
    let is_loop = |device: &Device| matches!(device.backing, Backing::Loop { .. });
    let is_ours = scenario.machine.devices.get(name).is_some_and(is_loop);
    match place.devices.get(name).filter(|_| is_ours) {
        Some((node, _)) => format::device(copy.spec.fs_type, &copy.spec.mkfs, node),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_scenario::ScenarioFile;

    #[test]
    fn a_device_is_encrypted_where_a_layer_below_is() {
        let text = r#"
name = "stack"
summary = "an encrypted disk in a stripe"
[machine]
memory = "1 GiB"
[machine.devices.a]
size = "1 GiB"
[machine.devices.b]
size = "1 GiB"
[machine.devices.secret.backing]
crypt = { member = "a" }
[machine.devices.stripe.backing]
raid0 = { members = ["secret", "b"] }
[workload]
duration = "1s"
[workload.tasks.idle]
steps = ["sync"]
"#;
        let scenario = ScenarioFile::parse(text).unwrap().variants.remove("default").unwrap();
        let found = ["a", "b", "secret", "stripe", "other"].map(|name| is_encrypted(&scenario, name));
        assert_eq!(found, [false, false, true, true, false]);
    }
}
