// SPDX-License-Identifier: MIT OR Apache-2.0
//! Chooses between KVM and emulation. On some machines KVM guests hang, so KVM is used only after a probe
//! guest has run on it within a hard time limit. The result is kept until the host's next boot.

use super::{Console, QEMU, Running, SANDBOX, last_line, option_value};
use crate::cache::{Cache, CacheError};
use crate::tool;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How a guest is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Accel {
    /// By the host's CPU.
    Kvm,
    /// Emulated.
    Tcg,
}

/// How guests run on this host, with the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acceleration {
    /// How.
    pub accel: Accel,
    /// Why KVM is not used; `None` with KVM.
    pub note: Option<String>,
}

impl Accel {
    /// Arguments for QEMU.
    pub(super) fn arguments(self) -> &'static [&'static str] {
        match self {
            Accel::Kvm => &["-accel", "kvm", "-cpu", "host"],
            Accel::Tcg => &["-accel", "tcg,thread=multi", "-cpu", "max"],
        }
    }
}

/// Time for the probe guest to boot until it finds no root filesystem. With working KVM this takes a second.
const PROBE: Duration = Duration::from_secs(8);

/// Note for users when a guest is emulated.
const TCG_NOTE: &str = "figures that depend on the CPU are 10 to 30 times those of real hardware, I/O figures are not";

#[derive(Serialize, Deserialize)]
struct Remembered {
    boot_id: String,
    answer: Acceleration,
}

impl Acceleration {
    /// Returns the cached result of this boot, or probes.
    pub fn of_this_host(cache: &Cache, kernel: &Path) -> Result<Acceleration, CacheError> {
        let path = cache.dir("probe")?.join("acceleration.json");
        let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let remembered = std::fs::read(&path).ok().and_then(|text| serde_json::from_slice::<Remembered>(&text).ok());
        if let Some(remembered) = remembered.filter(|remembered| remembered.boot_id == boot_id) {
            return Ok(remembered.answer);
        }
        let answer = match probe(cache, kernel)? {
            Ok(()) => Acceleration { accel: Accel::Kvm, note: None },
            Err(why) => Acceleration { accel: Accel::Tcg, note: Some(format!("emulated, because {why}: {TCG_NOTE}")) },
        };
        if let Ok(text) = serde_json::to_vec(&Remembered { boot_id, answer: answer.clone() }) {
            // Without it the next run probes again.
            let _ = std::fs::write(&path, text);
        }
        Ok(answer)
    }
}

/// Boots a kernel that finds no root filesystem and ends. Returns why KVM cannot be used.
fn probe(cache: &Cache, kernel: &Path) -> Result<Result<(), String>, CacheError> {
    if let Err(error) = std::fs::OpenOptions::new().read(true).write(true).open("/dev/kvm") {
        return Ok(Err(format!("/dev/kvm cannot be used ({error})")));
    }
    let dir = cache.scratch()?;
    let (console, log) = (dir.path().join("console.log"), dir.path().join("qemu.log"));
    let tried = try_kvm(kernel, &console, &log, true);
    // A QEMU that was built without a sandbox runs without one, here as in later runs.
    Ok(match tried.is_err() && last_line(&log).contains("sandbox") {
        true => try_kvm(kernel, &console, &log, false),
        false => tried,
    })
}

/// The command of the probe guest: a kernel without disks, with a console as its only output.
fn guest(kernel: &Path, console: &Path, sandbox: bool) -> Command {
    let mut command = tool::bound(QEMU);
    command.args(["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-m", "256M"]);
    if sandbox {
        command.args(["-sandbox", SANDBOX]);
    }
    command.args(Accel::Kvm.arguments());
    command.arg("-kernel").arg(kernel).args(["-append", "console=ttyS0 panic=-1"]);
    command.arg("-chardev").arg(format!("file,id=console,path={}", option_value(console)));
    command.args(["-serial", "chardev:console"]);
    command
}

/// Runs the probe guest within its time limit. Returns why KVM cannot be used.
fn try_kvm(kernel: &Path, console: &Path, log: &Path, sandbox: bool) -> Result<(), String> {
    let mut command = guest(kernel, console, sandbox);
    let stderr = std::fs::File::create(log).map_or_else(|_| Stdio::null(), Stdio::from);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr);
    let Ok(child) = command.spawn() else { return Err("QEMU could not be started".to_owned()) };
    let mut qemu = Running(child);
    let until = Instant::now() + PROBE;
    while Instant::now() < until {
        match qemu.0.try_wait() {
            Ok(None) => std::thread::sleep(Duration::from_millis(50)),
            _ => break,
        }
    }
    let still_runs = matches!(qemu.0.try_wait(), Ok(None));
    drop(qemu);
    let has_run = Console::read(console).panic.is_some();
    match (has_run, still_runs) {
        (true, _) => Ok(()),
        (false, true) => Err(format!("a guest on /dev/kvm hung for {} s", PROBE.as_secs())),
        (false, false) => Err("a guest on /dev/kvm ended before its kernel did anything".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guest_of_the_probe_is_held_to_what_it_needs() {
        let arguments = |sandbox: bool| {
            let command = guest("vmlinuz".as_ref(), "/a,b/console.log".as_ref(), sandbox);
            command.get_args().map(|argument| argument.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
        };
        let asked = "-sandbox on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny";
        assert!(arguments(true).contains(asked), "{}", arguments(true));
        assert!(!arguments(false).contains("-sandbox") && arguments(false).contains("path=/a,,b/console.log"));
    }
}
