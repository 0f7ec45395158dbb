// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guest that runs a whole system: this program starts as its init, mounts the disk, leaves a copy of itself as the
//! agent of the lab and becomes systemd. The agent does in the system what init does in other guests.

use super::{Guest, GuestError, MOUNTS, devices, mount_at};
use crate::image::{JOB, TOOLS};
use crate::job::Job;
use crate::root::{FRESH, SERIAL};
use rustix::mount::{MountFlags, mount, mount_bind, mount_move};
use rustix::process::{Gid, Uid, chdir, chroot};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// First argument of this program when it runs as the agent.
const AGENT: &str = "--agent-of-a-guest";
/// Mount point of the disk until it becomes the root directory.
const PLACE: &str = "/sysroot";
/// Path of the agent's job. systemd leaves `/run` mounted.
const AGENT_JOB: &str = "/run/floodline-lab.json";
/// Path of this program for the guest's users: on the disk, as on any host.
const PROGRAM: &str = "/usr/local/bin/floodline";
/// Settings of the scenario's machine: what an administrator of the host wrote.
const SYSCTLS: &str = "/etc/sysctl.d/10-scenario.conf";
const SYSTEMD: &str = "/usr/lib/systemd/systemd";
/// Time that systemd has to start all units. An emulated CPU is slow.
const START_MAX: Duration = Duration::from_secs(180);

/// Returns true if this process is the agent of a guest.
pub(super) fn is_agent() -> bool {
    let is_asked = std::env::args_os().nth(1).is_some_and(|first| first == AGENT);
    is_asked && rustix::process::getppid().is_some_and(|parent| parent.is_init())
}

/// Makes the disk the root directory and this process systemd.
pub(super) fn switch(job: &Job) -> Result<GuestError, GuestError> {
    let disks = devices::find(&BTreeMap::from([(SERIAL.to_owned(), SERIAL.to_owned())]))?;
    let Some((node, _)) = disks.get(SERIAL) else {
        return Err(GuestError::Missing { what: "the disk of the system".to_owned() });
    };
    fs::create_dir_all(PLACE).map_err(GuestError::at(PLACE))?;
    let fs_type = crate::programs::FS_TYPE;
    mount(node, PLACE, fs_type, MountFlags::empty(), None).map_err(|errno| GuestError::Mount {
        fs_type: fs_type.to_owned(),
        point: PLACE.to_owned(),
        cause: errno.into(),
    })?;
    let on_disk = |path: &str| Path::new(PLACE).join(path.trim_start_matches('/'));
    if on_disk(FRESH).exists() {
        own(Path::new(PLACE))?;
        fs::remove_file(on_disk(FRESH)).map_err(GuestError::at(FRESH))?;
    }
    let program = fs::read("/init").map_err(GuestError::at("/init"))?;
    if fs::read(on_disk(PROGRAM)).ok().as_ref() != Some(&program) {
        let new = on_disk("/usr/local/bin/.floodline.new");
        fs::create_dir_all(on_disk("/usr/local/bin")).map_err(GuestError::at(PROGRAM))?;
        fs::write(&new, program).map_err(GuestError::at(PROGRAM))?;
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(&new, mode).map_err(GuestError::at(PROGRAM))?;
        fs::rename(&new, on_disk(PROGRAM)).map_err(GuestError::at(PROGRAM))?;
    }
    for libraries in ["/lib", "/lib64", "/usr/lib"].map(Path::new).into_iter().filter(|path| path.is_dir()) {
        fill(libraries, &on_disk(&libraries.to_string_lossy()))?;
    }
    let settings = &job.scenario.machine.sysctl;
    if !settings.is_empty() {
        let lines: Vec<String> = settings.0.iter().map(|(name, value)| format!("{name} = {value}\n")).collect();
        fs::write(on_disk(SYSCTLS), lines.concat()).map_err(GuestError::at(SYSCTLS))?;
    }
    // A power cut must not lose files that the lab itself wrote.
    rustix::fs::sync();
    fs::copy(JOB, AGENT_JOB).map_err(GuestError::at(AGENT_JOB))?;
    if Path::new(TOOLS).exists() {
        mount_bind(TOOLS, on_disk(TOOLS)).map_err(GuestError::at(TOOLS))?;
    }
    for (_, point) in MOUNTS.iter().filter(|(_, point)| *point != "/tmp") {
        mount_move(*point, on_disk(point)).map_err(GuestError::at(*point))?;
    }
    // Its working directory stays the disk's root, also after the disk has moved.
    Command::new("/init").arg(AGENT).current_dir(PLACE).spawn().map_err(GuestError::at("/init"))?;
    chdir(PLACE).map_err(GuestError::at(PLACE))?;
    mount_move(".", "/").map_err(GuestError::at("/"))?;
    chroot(".").map_err(GuestError::at(PLACE))?;
    chdir("/").map_err(GuestError::at("/"))?;
    let error = Command::new(SYSTEMD).arg("--unit=multi-user.target").env_clear().exec();
    Ok(GuestError::at(SYSTEMD)(error))
}

/// Gives every file of the disk to root: packages were unpacked by a user of the host.
fn own(dir: &Path) -> Result<(), GuestError> {
    for entry in fs::read_dir(dir).map_err(GuestError::at(dir))? {
        let entry = entry.map_err(GuestError::at(dir))?;
        let path = entry.path();
        std::os::unix::fs::lchown(&path, Some(Uid::ROOT.as_raw()), Some(Gid::ROOT.as_raw()))
            .map_err(GuestError::at(&path))?;
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            own(&path)?;
        }
    }
    Ok(())
}

/// Copies what a directory lacks of another: libraries that this program is linked with, where it is not static.
fn fill(from: &Path, into: &Path) -> Result<(), GuestError> {
    fs::create_dir_all(into).map_err(GuestError::at(into))?;
    for entry in fs::read_dir(from).map_err(GuestError::at(from))? {
        let entry = entry.map_err(GuestError::at(from))?;
        let (path, to) = (entry.path(), into.join(entry.file_name()));
        match path.is_dir() {
            true => fill(&path, &to)?,
            false if to.exists() => {}
            false => fs::copy(&path, &to).map(drop).map_err(GuestError::at(to))?,
        }
    }
    Ok(())
}

/// The agent moves to the disk and reads its job.
pub(super) fn enter() -> Result<Job, GuestError> {
    chroot(".").map_err(GuestError::at("."))?;
    chdir("/").map_err(GuestError::at("/"))?;
    Ok(serde_json::from_slice(&fs::read(AGENT_JOB).map_err(GuestError::at(AGENT_JOB))?)?)
}

/// Waits until systemd has started what belongs to a running system.
pub(super) fn wait_for_systemd(guest: &Guest) -> Result<(), GuestError> {
    guest.host.stage("starting systemd");
    let until = Instant::now() + START_MAX;
    while !systemctl(&["is-active", "--quiet", "multi-user.target"]) {
        if Instant::now() > until {
            return Err(GuestError::Missing { what: "multi-user.target of systemd".to_owned() });
        }
        std::thread::sleep(Duration::from_millis(500));
    }
    mount_at("tracefs", "/sys/kernel/tracing", "").or(Ok(()))
}

/// Makes systemd stop all units and power off.
pub(super) fn shut_down() -> ! {
    systemctl(&["poweroff"]);
    loop {
        std::thread::sleep(Duration::from_secs(1));
    }
}

fn systemctl(arguments: &[&str]) -> bool {
    let mut command = Command::new("/usr/bin/systemctl");
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_gets_what_it_lacks_and_keeps_what_it_has() {
        let dir = tempfile::tempdir().unwrap();
        let (from, into) = (dir.path().join("from"), dir.path().join("into"));
        for (file, text) in [("from/x/libc.so", "theirs"), ("from/x/libelf.so", "theirs"), ("into/x/libc.so", "ours")] {
            let path = dir.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        fill(&from, &into).unwrap();
        let text = |file: &str| fs::read_to_string(into.join(file)).unwrap();
        assert_eq!((text("x/libc.so"), text("x/libelf.so")), ("ours".to_owned(), "theirs".to_owned()));
    }

    #[test]
    fn a_process_of_a_host_is_no_agent() {
        assert!(!is_agent());
    }
}
