// SPDX-License-Identifier: MIT OR Apache-2.0
//! The guest's side: this program as init. Boots (mounts, modules, ports), builds the scenario's machine,
//! and reports its status to the host. Runs as root in a virtual machine and refuses to run where it is
//! not init.

mod array;
pub(crate) mod cgroups;
pub(crate) mod devices;
mod format;
mod mapper;
mod ports;
mod programs;
mod root;
mod setup;
mod shell;

pub use ports::Ports;

use crate::image::{JOB, LOADER, MODULES, TOOL_LIBRARIES, TOOLS};
use crate::job::{Job, Status, port};
use crate::workload::{Place, StepError};
use floodline_record::units::{Bytes, Nanos};
use rustix::mount::{MountFlags, mount};
use rustix::system::{RebootCommand, finit_module, reboot, uname};
use std::ffi::CString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A failure in the guest.
#[derive(Debug, thiserror::Error)]
pub enum GuestError {
    /// This process is not the init of a machine.
    #[error("not started as the init of a guest")]
    NotInit,
    /// A file operation failed.
    #[error("{path}: {cause}")]
    Io {
        /// The path.
        path: PathBuf,
        /// The cause.
        cause: io::Error,
    },
    /// A filesystem could not be mounted.
    #[error("cannot mount {fs_type} on {point}: {cause}")]
    Mount {
        /// Filesystem type.
        fs_type: String,
        /// Mount point.
        point: String,
        /// The cause.
        cause: io::Error,
    },
    /// The host did not provide a required part.
    #[error("{what} is missing in the guest")]
    Missing {
        /// The part.
        what: String,
    },
    /// The kernel was built with another `CONFIG_HZ`.
    #[error("machine.hz is {wanted}; this kernel has {ticks} ticks per second")]
    Hz {
        /// The scenario's `machine.hz`.
        wanted: u32,
        /// The kernel's ticks per second.
        ticks: u32,
    },
    /// The job cannot be read.
    #[error("cannot read the job: {0}")]
    Job(#[from] serde_json::Error),
    /// A program in the guest failed.
    #[error(transparent)]
    Tool(#[from] crate::tool::ToolError),
    /// The scenario's machine could not be built.
    #[error(transparent)]
    Step(#[from] StepError),
}

impl GuestError {
    /// For `map_err`: adds the path to an I/O error.
    fn at<E: Into<io::Error>>(path: impl Into<PathBuf>) -> impl FnOnce(E) -> GuestError {
        move |cause| GuestError::Io { path: path.into(), cause: cause.into() }
    }
}

/// A booted guest.
#[derive(Debug)]
pub struct Guest {
    /// The guest's job.
    pub job: Job,
    /// Port that the recording is written to.
    pub recording: File,
    /// Port for statuses.
    pub host: Host,
    ports: Ports,
}

/// The status port to the host. Clones share it.
#[derive(Clone, Debug)]
pub struct Host(Arc<Mutex<File>>);

impl Host {
    /// Sends a status. A write error is ignored: the guest does not outlive its host.
    pub fn tell(&self, status: &Status) {
        if let Ok(mut port) = self.0.lock() {
            let _ = port.write_all(status.to_line().as_bytes());
        }
    }

    /// Reports the current stage.
    pub fn stage(&self, stage: impl Into<String>) {
        self.tell(&Status::Stage { stage: stage.into() });
    }
}

/// Filesystems that every guest has.
const MOUNTS: &[(&str, &str)] =
    &[("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev"), ("tmpfs", "/run"), ("tmpfs", "/tmp")];

impl Guest {
    /// Returns true if this process is the init of a lab guest, or its agent under systemd.
    pub fn is_here() -> bool {
        std::process::id() == 1 && fs::exists(JOB).unwrap_or(false) || root::is_agent()
    }

    /// Boots until the status port is open. Failures before that reach the host only through the console.
    pub fn boot() -> Result<Guest, GuestError> {
        if !Guest::is_here() {
            return Err(GuestError::NotInit);
        }
        if root::is_agent() {
            let guest = Guest::greet(root::enter()?)?;
            root::wait_for_systemd(&guest)?;
            return Ok(guest);
        }
        for (fs_type, point) in MOUNTS {
            mount_at(fs_type, point, "")?;
        }
        load_modules()?;
        let job: Job = serde_json::from_slice(&fs::read(JOB).map_err(GuestError::at(JOB))?)?;
        if job.has_system {
            return Err(root::switch(&job)?);
        }
        Guest::greet(job)
    }

    /// Opens the ports to the host and reports that the guest is up.
    fn greet(job: Job) -> Result<Guest, GuestError> {
        let ports = Ports::find()?;
        let host = Host(Arc::new(Mutex::new(ports.open(port::STATUS)?)));
        host.tell(&Status::Booted { release: uname().release().to_string_lossy().into_owned() });
        let alive = host.clone();
        std::thread::spawn(move || {
            loop {
                alive.tell(&alive_now());
                std::thread::sleep(Duration::from_secs(1));
            }
        });
        Ok(Guest { job, recording: ports.open(port::RECORDING)?, host, ports })
    }

    /// Builds the scenario's machine: settings, disks, filesystems, cgroups.
    pub fn set_up(&self) -> Result<Place, GuestError> {
        setup::set_up(&self.job, &self.host)
    }

    /// Reports the result and powers off.
    pub fn end(self, result: Result<(), String>) -> ! {
        self.host.tell(&match result {
            // systemd powers off after it has stopped all units.
            Ok(()) if self.job.has_system => Status::Stage { stage: "stopping systemd".to_owned() },
            Ok(()) => Status::Done,
            Err(cause) => Status::Failed { stage: "the run".to_owned(), cause },
        });
        if self.job.has_system {
            root::shut_down()
        }
        drop(self.ports);
        power_off()
    }
}

/// Powers off without writing dirty pages back: the disks are not read again.
pub fn power_off() -> ! {
    // The host has all results by now. It kills a guest that hangs here.
    let _ = reboot(RebootCommand::PowerOff);
    loop {
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// Mounts a filesystem that needs no device. Creates the mount point if it is missing.
fn mount_at(fs_type: &str, point: &str, options: &str) -> Result<(), GuestError> {
    fs::create_dir_all(point).map_err(GuestError::at(point))?;
    let error = |cause| GuestError::Mount { fs_type: fs_type.to_owned(), point: point.to_owned(), cause };
    let data = CString::new(options).map_err(|nul| error(nul.into()))?;
    mount(fs_type, point, fs_type, MountFlags::empty(), data.as_c_str()).map_err(|errno| error(errno.into()))
}

/// A command for one of the host's tools, run by the loader that was copied with it.
fn host_tool(name: &str) -> Command {
    let (program, loader) = (format!("{TOOLS}/{name}"), format!("{TOOLS}/{LOADER}"));
    if !Path::new(&loader).exists() {
        return Command::new(program);
    }
    let mut command = Command::new(loader);
    command.args(["--library-path", &format!("{TOOLS}/{TOOL_LIBRARIES}"), &program]);
    command
}

fn load_modules() -> Result<(), GuestError> {
    let Ok(entries) = fs::read_dir(MODULES) else { return Ok(()) };
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.sort();
    for path in files {
        let file = File::open(&path).map_err(GuestError::at(&path))?;
        match finit_module(&file, c"", 0) {
            // A cipher refuses a CPU that lacks its instructions.
            Ok(()) | Err(rustix::io::Errno::EXIST | rustix::io::Errno::NODEV) => {}
            Err(errno) => return Err(GuestError::at(&path)(errno)),
        }
        // The file is in the initramfs and takes up the guest's memory.
        fs::remove_file(&path).map_err(GuestError::at(&path))?;
    }
    Ok(())
}

fn alive_now() -> Status {
    let uptime = fs::read_to_string("/proc/uptime").unwrap_or_default();
    let uptime = uptime.split(' ').next().and_then(|seconds| seconds.parse::<f64>().ok()).unwrap_or(0.0);
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = |name: &str| {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.trim().strip_suffix(" kB")?.parse().ok().and_then(Bytes::from_kib)
    };
    Status::Alive {
        uptime: Nanos(Duration::from_secs_f64(uptime).as_nanos().try_into().unwrap_or(u64::MAX)),
        dirty: line("Dirty"),
        writeback: line("Writeback"),
    }
}
