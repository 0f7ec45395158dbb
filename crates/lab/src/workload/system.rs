// SPDX-License-Identifier: MIT OR Apache-2.0
//! Steps that change the machine: mounts, cgroups, settings. Pure functions decide which files are written
//! and with which values. The guest's init uses them too when it builds the machine.

use super::clock::{now, until};
use super::error::StepError;
use super::measure::Timed;
use floodline_record::id::DevId;
use floodline_scenario::program::Measures;
use floodline_scenario::{Cgroup, CgroupMode, MountCopy, SizeLimit, Sysctls};
use rustix::mount::{MountFlags, UnmountFlags};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Maps the parts of the scenario's machine to this machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Place {
    /// The cgroup version.
    pub mode: CgroupMode,
    /// Mount points of the hierarchies: one for v2, memory and blkio for v1. If empty, tasks stay in their cgroup.
    pub cgroup_roots: Vec<PathBuf>,
    /// Node and number of each device of the scenario.
    pub devices: BTreeMap<String, (PathBuf, DevId)>,
    /// Every filesystem of the scenario.
    pub mounts: Vec<MountCopy>,
}

impl Place {
    /// The directories of a cgroup, one per hierarchy.
    pub fn cgroup_dirs(&self, cgroup: &str) -> Vec<PathBuf> {
        self.cgroup_roots.iter().map(|root| root.join(cgroup.trim_matches('/'))).collect()
    }
}

/// Returns the cgroup files that set the limits, with the values to write, in order. Names are those of the
/// hierarchy in use. On v1, memory limits and io limits are in different directories.
pub fn limit_writes(spec: &Cgroup, place: &Place) -> Vec<(&'static str, String)> {
    let mut writes = Vec::new();
    let memory = |name, limit: Option<SizeLimit>| limit.map(|limit| (name, limit_text(limit, place.mode)));
    let device = |name: &String| place.devices.get(name).map(|(_, dev)| *dev);
    match place.mode {
        CgroupMode::V2 => {
            writes.extend(memory("memory.min", spec.memory_min));
            writes.extend(memory("memory.low", spec.memory_low));
            writes.extend(memory("memory.high", spec.memory_high));
            writes.extend(memory("memory.max", spec.memory_max));
            writes.extend(spec.io_weight.map(|weight| ("io.weight", format!("default {weight}"))));
            for (name, limit) in &spec.io_max {
                let Some(dev) = device(name) else { continue };
                let mut line = dev.to_string();
                let mut add = |key: &str, value: Option<u64>| {
                    if let Some(value) = value {
                        line.push_str(&format!(" {key}={value}"));
                    }
                };
                add("rbps", limit.read_bandwidth.map(|rate| rate.0.0));
                add("wbps", limit.write_bandwidth.map(|rate| rate.0.0));
                add("riops", limit.read_iops.map(|rate| rate.0.0));
                add("wiops", limit.write_iops.map(|rate| rate.0.0));
                writes.push(("io.max", line));
            }
        }
        CgroupMode::V1 => {
            writes.extend(memory("memory.limit_in_bytes", spec.memory_max));
            for (name, limit) in &spec.io_max {
                let Some(dev) = device(name) else { continue };
                let mut add =
                    |file, value: Option<u64>| writes.extend(value.map(|value| (file, format!("{dev} {value}"))));
                add("blkio.throttle.read_bps_device", limit.read_bandwidth.map(|rate| rate.0.0));
                add("blkio.throttle.write_bps_device", limit.write_bandwidth.map(|rate| rate.0.0));
                add("blkio.throttle.read_iops_device", limit.read_iops.map(|rate| rate.0.0));
                add("blkio.throttle.write_iops_device", limit.write_iops.map(|rate| rate.0.0));
            }
        }
    }
    writes
}

fn limit_text(limit: SizeLimit, mode: CgroupMode) -> String {
    match (limit, mode) {
        (SizeLimit::Size(size), _) => size.bytes().to_string(),
        (SizeLimit::Max, CgroupMode::V2) => "max".to_owned(),
        (SizeLimit::Max, CgroupMode::V1) => "-1".to_owned(),
    }
}

/// Writes the limits of a cgroup.
pub fn set_limits(place: &Place, cgroup: &str, spec: &Cgroup) -> Result<(), StepError> {
    let dirs = place.cgroup_dirs(cgroup);
    for (file, text) in limit_writes(spec, place) {
        let path = dirs.iter().map(|dir| dir.join(file)).find(|path| path.exists());
        let Some(path) = path else {
            let error = std::io::Error::from(std::io::ErrorKind::NotFound);
            return Err(StepError::call("open", format!("{file} of cgroup {cgroup}"), error));
        };
        write(&path, &text)?;
    }
    Ok(())
}

/// Returns the file of a sysctl: dots become slashes, and slashes dots, as in sysctl(8).
pub fn sysctl_path(name: &str) -> PathBuf {
    let swap = |c| match c {
        '.' => '/',
        '/' => '.',
        c => c,
    };
    Path::new("/proc/sys").join(name.chars().map(swap).collect::<String>())
}

/// Writes settings of the machine.
pub fn set_sysctls(settings: &Sysctls) -> Result<(), StepError> {
    settings.0.iter().try_for_each(|(name, value)| write(&sysctl_path(name), &value.to_string()))
}

fn write(path: &Path, text: &str) -> Result<(), StepError> {
    std::fs::write(path, text)
        .map_err(|error| StepError::call("write", format!("{text:?} to {}", path.display()), error))
}

/// Returns source, flags and data of a mount, as for mount(2).
pub fn mount_arguments(mount: &MountCopy, place: &Place) -> Result<(PathBuf, MountFlags, String), StepError> {
    let spec = &mount.spec;
    let source = match &spec.device {
        Some(device) => match place.devices.get(device) {
            Some((node, _)) => node.clone(),
            None => return Err(StepError::Senseless(format!("there is no device {device:?}"))),
        },
        None => PathBuf::from(spec.fs_type.name()),
    };
    let mut flags = MountFlags::empty();
    let mut data = Vec::new();
    for option in &spec.options {
        match option.as_str() {
            "noatime" => flags |= MountFlags::NOATIME,
            "nodiratime" => flags |= MountFlags::NODIRATIME,
            "relatime" => flags |= MountFlags::RELATIME,
            "strictatime" => flags |= MountFlags::STRICTATIME,
            "lazytime" => flags |= MountFlags::LAZYTIME,
            "sync" => flags |= MountFlags::SYNCHRONOUS,
            "ro" => flags |= MountFlags::RDONLY,
            "rw" => {}
            other => data.push(other.to_owned()),
        }
    }
    if let Some(dirs) = &spec.overlay {
        data.push(format!("lowerdir={},upperdir={},workdir={}", dirs.lower, dirs.upper, dirs.work));
    }
    Ok((source, flags, data.join(",")))
}

/// Mounts one filesystem of the scenario, creating the mount point and an overlay's directories.
pub fn mount(mount: &MountCopy, place: &Place) -> Result<(), StepError> {
    let (source, flags, data) = mount_arguments(mount, place)?;
    let overlay = mount.spec.overlay.iter().flat_map(|dirs| [&dirs.lower, &dirs.upper, &dirs.work]);
    for dir in overlay.chain([&mount.point]) {
        std::fs::create_dir_all(dir).map_err(|error| StepError::call("mkdir", dir, error))?;
    }
    let data = CString::new(data).map_err(|_| StepError::Senseless("a mount option holds a zero byte".to_owned()))?;
    let data = Some(data).filter(|data| !data.is_empty());
    rustix::mount::mount(&source, mount.point.as_str(), mount.spec.fs_type.name(), flags, data.as_deref())
        .map_err(|error| StepError::call("mount", &mount.point, error))
}

pub(super) fn mount_all(
    measures: &mut Measures,
    place: &Place,
    points: &[String],
    at_once: bool,
) -> Result<(), StepError> {
    each(measures, "mount", points, at_once, &|point| match place.mounts.iter().find(|mount| mount.point == point) {
        Some(found) => mount(found, place),
        None => Err(StepError::Senseless(format!("{point:?} is no mount of this machine"))),
    })
}

pub(super) fn umount_all(
    measures: &mut Measures,
    points: &[String],
    at_once: bool,
    is_lazy: bool,
) -> Result<(), StepError> {
    let flags = if is_lazy { UnmountFlags::DETACH } else { UnmountFlags::empty() };
    each(measures, "umount", points, at_once, &|point| {
        rustix::mount::unmount(point, flags).map_err(|error| StepError::call("umount", point, error))
    })
}

/// Performs and times every mount of a step, one after the other or all at once.
fn each(
    measures: &mut Measures,
    name: &'static str,
    points: &[String],
    at_once: bool,
    act: &(dyn Fn(&str) -> Result<(), StepError> + Sync),
) -> Result<(), StepError> {
    if !at_once {
        return points.iter().try_for_each(|point| measures.time(name, 0, || act(point)));
    }
    let timed = |point: &str| {
        let at = now();
        let done = act(point);
        (at, until(at, now()), done)
    };
    let ended: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = points.iter().map(|point| scope.spawn(move || timed(point))).collect();
        threads.into_iter().map(std::thread::ScopedJoinHandle::join).collect()
    });
    let mut first = Ok(());
    for answer in ended {
        let Ok((at, lasted, done)) = answer else { continue };
        match done {
            Ok(()) => measures.took(name, at, lasted, 0),
            Err(error) => first = first.and(Err(error)),
        }
    }
    first
}

pub(super) fn syncfs(measures: &mut Measures, path: &str) -> Result<(), StepError> {
    let file = std::fs::File::open(path).map_err(|error| StepError::call("open", path, error))?;
    measures.time("syncfs", 0, || rustix::fs::syncfs(&file)).map_err(|error| StepError::call("syncfs", path, error))
}

pub(super) fn drop_caches() -> Result<(), StepError> {
    write(Path::new("/proc/sys/vm/drop_caches"), "3")
}

pub(super) fn create_cgroup(measures: &mut Measures, place: &Place, cgroup: &str) -> Result<(), StepError> {
    for dir in place.cgroup_dirs(cgroup) {
        measures
            .time("create_cgroup", 0, || std::fs::create_dir(&dir))
            .map_err(|error| StepError::call("mkdir", dir.display(), error))?;
    }
    Ok(())
}

/// Tries of rmdir. An exited process may still be counted in the cgroup for a moment; rmdir returns EBUSY until then.
const BUSY_TRIES: u32 = 100;

pub(super) fn remove_cgroup(measures: &mut Measures, place: &Place, cgroup: &str) -> Result<(), StepError> {
    measures.time("remove_cgroup", 0, || remove_dirs(place, cgroup))
}

/// Removes a cgroup from every hierarchy.
pub(super) fn remove_dirs(place: &Place, cgroup: &str) -> Result<(), StepError> {
    for dir in place.cgroup_dirs(cgroup) {
        let mut tries = 0;
        loop {
            match std::fs::remove_dir(&dir) {
                Ok(()) => break,
                Err(error) if error.kind() == std::io::ErrorKind::ResourceBusy && tries < BUSY_TRIES => tries += 1,
                Err(error) => return Err(StepError::call("rmdir", dir.display(), error)),
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    Ok(())
}

/// Moves a process to a cgroup.
pub fn move_process(place: &Place, cgroup: &str, pid: u32) -> Result<(), StepError> {
    place.cgroup_dirs(cgroup).iter().try_for_each(|dir| write(&dir.join("cgroup.procs"), &pid.to_string()))
}

pub(super) fn move_self(place: &Place, cgroup: &str) -> Result<(), StepError> {
    move_process(place, cgroup, std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_scenario::{FsType, IoMax, Mkfs, Mount, OverlayDirs};

    fn place(mode: CgroupMode) -> Place {
        let devices = [("data".to_owned(), (PathBuf::from("/dev/vdb"), DevId { major: 254, minor: 16 }))];
        Place { mode, cgroup_roots: vec!["/cg".into()], devices: devices.into(), mounts: Vec::new() }
    }

    #[test]
    fn limits_are_written_as_each_hierarchy_has_them() {
        let spec = Cgroup {
            memory_max: Some("128 MiB".parse().unwrap()),
            io_max: [(
                "data".to_owned(),
                IoMax { write_bandwidth: Some("10 MB/s".parse().unwrap()), ..IoMax::default() },
            )]
            .into(),
            ..Cgroup::default()
        };
        let check = |mode, expect: [(&str, &str); 2]| {
            let writes = limit_writes(&spec, &place(mode));
            let writes: Vec<_> = writes.iter().map(|(file, text)| (*file, text.as_str())).collect();
            assert_eq!(writes, expect);
        };
        check(CgroupMode::V2, [("memory.max", "134217728"), ("io.max", "254:16 wbps=10000000")]);
        check(
            CgroupMode::V1,
            [("memory.limit_in_bytes", "134217728"), ("blkio.throttle.write_bps_device", "254:16 10000000")],
        );
        let unlimited = Cgroup { memory_max: Some(SizeLimit::Max), ..Cgroup::default() };
        assert_eq!(limit_writes(&unlimited, &place(CgroupMode::V1)), [("memory.limit_in_bytes", "-1".to_owned())]);
    }

    #[test]
    fn names_of_settings_become_paths_as_sysctl_does_it() {
        let check = |name: &str, path: &str| assert_eq!(sysctl_path(name), Path::new(path));
        check("vm.dirty_bytes", "/proc/sys/vm/dirty_bytes");
        check("fs.xfs.xfssyncd_centisecs", "/proc/sys/fs/xfs/xfssyncd_centisecs");
        check("net.ipv4.conf.eth0/1.forwarding", "/proc/sys/net/ipv4/conf/eth0.1/forwarding");
    }

    #[test]
    fn options_of_a_mount_are_split_into_flags_and_data() {
        let overlay = OverlayDirs { lower: "/l".into(), upper: "/u".into(), work: "/w".into() };
        let spec = Mount {
            fs_type: FsType::Overlay,
            device: None,
            mkfs: Mkfs::default(),
            options: vec!["noatime".into(), "volatile".into()],
            overlay: Some(overlay),
            instances: None,
            at_start: true,
            in_use: false,
        };
        let mount = MountCopy { point: "/m".into(), spec };
        let (source, flags, data) = mount_arguments(&mount, &place(CgroupMode::V2)).unwrap();
        assert_eq!((source.as_path(), flags), (Path::new("overlay"), MountFlags::NOATIME));
        assert_eq!(data, "volatile,lowerdir=/l,upperdir=/u,workdir=/w");
        let nowhere = Mount { fs_type: FsType::Xfs, device: Some("gone".into()), overlay: None, ..mount.spec };
        let error = mount_arguments(&MountCopy { point: "/m".into(), spec: nowhere }, &Place::default());
        assert_eq!(error.unwrap_err().to_string(), "there is no device \"gone\"");
    }
}
