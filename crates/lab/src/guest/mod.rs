// SPDX-License-Identifier: MIT OR Apache-2.0
//! The inside of a guest: this program as its init. Boots (mounts, modules, ports), builds the scenario's
//! machine, and tells the host what goes on. Runs as root in a machine of its own, and refuses to do
//! anything where it is not init.

mod array;
mod cgroups;
mod devices;
mod format;
mod mapper;
mod ports;
mod programs;
mod root;
mod setup;
mod shell;

pub(crate) use devices::MILLISECOND;
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

/// Something in the guest did not work.
#[derive(Debug, thiserror::Error)]
pub enum GuestError {
    /// This process is not the init of a machine.
    #[error("not started as the init of a guest")]
    NotInit,
    /// A file operation failed.
    #[error("{path}: {cause}")]
    Io {
        /// What was touched.
        path: PathBuf,
        /// Why it failed.
        cause: io::Error,
    },
    /// A filesystem could not be mounted.
    #[error("cannot mount {fs_type} on {point}: {cause}")]
    Mount {
        /// Filesystem type.
        fs_type: String,
        /// Mount point.
        point: String,
        /// Why it failed.
        cause: io::Error,
    },
    /// The host left something out.
    #[error("{what} is missing in the guest")]
    Missing {
        /// What.
        what: String,
    },
    /// The kernel ticks at another rate.
    #[error("machine.hz is {wanted}; this kernel has {ticks} ticks per second")]
    Hz {
        /// What the scenario wants.
        wanted: u32,
        /// What the kernel was built with.
        ticks: u32,
    },
    /// The job cannot be read.
    #[error("cannot read the job: {0}")]
    Job(#[from] serde_json::Error),
    /// A program in the guest failed.
    #[error(transparent)]
    Tool(#[from] crate::tool::ToolError),
    /// The machine could not be made as the scenario has it.
    #[error(transparent)]
    Step(#[from] StepError),
}

impl GuestError {
    /// For `map_err`: the error of an operation on a path.
    fn at<E: Into<io::Error>>(path: impl Into<PathBuf>) -> impl FnOnce(E) -> GuestError {
        move |cause| GuestError::Io { path: path.into(), cause: cause.into() }
    }
}

/// A booted guest.
#[derive(Debug)]
pub struct Guest {
    /// What it is to do.
    pub job: Job,
    /// Where the recording goes.
    pub recording: File,
    /// Where the host listens.
    pub host: Host,
    ports: Ports,
}

/// A way to tell the host something; copies share it.
#[derive(Clone, Debug)]
pub struct Host(Arc<Mutex<File>>);

impl Host {
    /// Tells it. A host that does not listen is gone, and the guest with it.
    pub fn tell(&self, status: &Status) {
        if let Ok(mut port) = self.0.lock() {
            let _ = port.write_all(status.to_line().as_bytes());
        }
    }

    /// Says what is being done now.
    pub fn stage(&self, stage: impl Into<String>) {
        self.tell(&Status::Stage { stage: stage.into() });
    }
}

/// Filesystems that every guest has.
const MOUNTS: &[(&str, &str)] =
    &[("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev"), ("tmpfs", "/run"), ("tmpfs", "/tmp")];

impl Guest {
    /// Whether this process is the init of a guest of the lab.
    pub fn is_here() -> bool {
        std::process::id() == 1 && fs::exists(JOB).unwrap_or(false) || root::is_agent()
    }

    /// Boots as far as being able to talk: what goes wrong before can only be said on the console.
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

    /// Opens the ways to the host and says that the guest is up.
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

    /// Says how it went and switches the machine off.
    pub fn end(self, result: Result<(), String>) -> ! {
        self.host.tell(&match result {
            // The machine switches itself off when systemd has stopped everything.
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

/// Switches the machine off. What is dirty stays so: nobody reads these disks again.
pub fn power_off() -> ! {
    // The host has what it needs; it ends a guest that hangs here.
    let _ = reboot(RebootCommand::PowerOff);
    loop {
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// Mounts a filesystem that needs no device, on a directory that is made where it is missing.
fn mount_at(fs_type: &str, point: &str, options: &str) -> Result<(), GuestError> {
    fs::create_dir_all(point).map_err(GuestError::at(point))?;
    let error = |cause| GuestError::Mount { fs_type: fs_type.to_owned(), point: point.to_owned(), cause };
    let data = CString::new(options).map_err(|nul| error(nul.into()))?;
    mount(fs_type, point, fs_type, MountFlags::empty(), data.as_c_str()).map_err(|errno| error(errno.into()))
}

/// A tool of the host in this guest, run by the loader that came with it.
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
        // Its memory is the guest's.
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
