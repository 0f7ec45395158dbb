// SPDX-License-Identifier: MIT OR Apache-2.0
//! One run, on the host's side: chooses the guest's modules and programs, makes its image and disks, and runs it.
//! Scenario keys that the lab does not support are refused by name before anything is made.

use crate::cache::{Cache, CacheError, RunDir};
use crate::guest::cgroups::task_above_cgroups;
use crate::guest::devices::{CIPHERS, can_delay, modules};
use crate::image::{Image, ImageError, JOB};
use crate::job::{Errand, Job, Shell, Status};
use crate::kernels::{Fetching, Kernel, ModuleError, Modules, uncompressed};
use crate::programs::{self, ProgramsError};
use crate::qemu::{
    Accel, Console, Disk, DiskError, Ended, Patience, QemuError, SHELL_STATUS_MAX, STATUS_MAX, Throttle, Vm,
    WriteBucket,
};
use crate::root::{self, System};
use crate::tool;
use floodline_kernel::Behaviour;
use floodline_record::units::Nanos;
use floodline_record::version::KernelVersion;
use floodline_scenario::{Backing, ByteSize, CgroupMode, Device, Executor, FsType, Scenario, TaskCopy, UsedKey};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A run to make.
#[derive(Debug)]
pub struct Order<'a> {
    /// The variant.
    pub scenario: &'a Scenario,
    /// Its name.
    pub variant: &'a str,
    /// The kernel.
    pub kernel: &'a Kernel,
    /// The guest's init: this program, preferably linked statically.
    pub program: &'a Path,
    /// Hardware virtualisation or emulation.
    pub accel: Accel,
    /// Time between two samples.
    pub every: Nanos,
    /// Whether the recorder also traces the kernel. Loading the BPF programs takes an emulated guest seconds.
    pub trace: bool,
    /// Time limits.
    pub patience: Patience,
}

/// How a run went.
#[derive(Debug)]
pub struct Outcome {
    /// How it ended.
    pub ended: Ended,
    /// The guest kernel's console output.
    pub console: Console,
    /// Time from the machine's start to the first sample in the recording.
    pub first_sample: Option<Duration>,
    /// Whether QEMU ran in its sandbox. A QEMU built without a sandbox runs without one.
    pub sandbox: bool,
    /// The recording, deleted when this is dropped.
    pub recording: PathBuf,
    /// The directory with the recording, deleted when dropped.
    pub dir: RunDir,
}

/// A run could not be made.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The scenario uses keys that the lab does not support.
    #[error("the lab does not support {}", list(.0))]
    NotHonoured(Vec<UsedKey>),
    /// A task is in a cgroup that enables controllers for its children.
    #[error(
        "workload.tasks.{task}.cgroup: \"{cgroup}\" enables controllers for its children, and a cgroup of version 2 that does so \
         cannot hold processes: declare a cgroup below it for the task, such as \"{cgroup}/{task}\""
    )]
    Inner {
        /// Name of the task.
        task: String,
        /// Path of the cgroup.
        cgroup: String,
    },
    /// A disk has both separate limits for reads and writes and a combined limit.
    #[error(
        "machine.devices.{device}: set limits for reads and writes, or one limit for both: QEMU does not accept both kinds for one disk"
    )]
    LimitedTwice {
        /// Its name.
        device: String,
    },
    /// The write cache is not one that QEMU's throttle imitates.
    #[error(
        "machine.devices.{device}.write_cache: the lab needs a write_bandwidth above the drain, and a size of 2 or more whole \
         seconds at that bandwidth: it imitates the cache by a bucket of QEMU's throttle"
    )]
    WriteCache {
        /// Name of the device.
        device: String,
    },
    /// The latency is not a whole number of milliseconds.
    #[error(
        "machine.devices.{device}.latency: expected whole milliseconds, at least 1 ms: a guest cannot delay requests more finely"
    )]
    Latency {
        /// Name of the device.
        device: String,
    },
    /// The kernel is older than the knob.
    #[error("machine.devices.{device}.bdi.{knob}: kernel {kernel} does not have this knob; it was added in 6.2")]
    Since6_2 {
        /// Name of the device.
        device: String,
        /// Name of the knob.
        knob: &'static str,
        /// The kernel's version.
        kernel: KernelVersion,
    },
    /// The kernel was built without version 1 of the memory controller.
    #[error(
        "{key}: kernel {release} has no limits of version 1 of the memory controller (CONFIG_MEMCG_V1 is not set): use a kernel before \
         6.11, or one that was built with it"
    )]
    NoMemcgV1 {
        /// The scenario key of the limit.
        key: String,
        /// The kernel's `uname -r`.
        release: String,
    },
    /// The scenario has more tasks or cgroups than its guest has memory for.
    #[error(
        "{key}: {count} {what}; a guest of {memory} supports at most {carries} (2 MiB for a task, {cgroup_kib} KiB for a cgroup): \
         lower instances or raise machine.memory"
    )]
    TooMany {
        /// The scenario key.
        key: &'static str,
        /// "tasks" or "cgroups".
        what: &'static str,
        /// Number in the scenario.
        count: u64,
        /// Number that the guest supports beside the rest of the scenario.
        carries: u64,
        /// Memory per cgroup, KiB.
        cgroup_kib: u64,
        /// The guest's memory.
        memory: ByteSize,
    },
    /// A limit is set on a device that is not a plain disk.
    #[error("machine.devices.{device}: the lab can limit disks only; set the limit on the disk below it")]
    Limited {
        /// Name of the device.
        device: String,
    },
    /// The kernel was built without a required module.
    #[error("the scenario needs {module}, which kernel {release} does not have")]
    Lacks {
        /// The kernel's `uname -r`.
        release: String,
        /// The module.
        module: String,
    },
    /// A program that the image needs is not on this host.
    #[error("{program} is not installed (Debian and Ubuntu: apt install {package})")]
    NoProgram {
        /// The program.
        program: String,
        /// Package that contains it.
        package: &'static str,
    },
    /// Modules could not be read.
    #[error(transparent)]
    Modules(#[from] ModuleError),
    /// The image could not be made.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// A disk could not be made.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// QEMU could not be run.
    #[error(transparent)]
    Qemu(#[from] QemuError),
    /// The cache could not be used.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// The disk with real programs could not be made.
    #[error(transparent)]
    Programs(#[from] ProgramsError),
    /// The caller interrupted the run.
    #[error("interrupted before the machine was started")]
    Interrupted,
    /// The job could not be serialised.
    #[error("cannot write the job: {0}")]
    Job(#[from] serde_json::Error),
}

fn list(keys: &[UsedKey]) -> String {
    keys.iter().map(|key| key.key.as_str()).collect::<Vec<_>>().join(", ")
}

/// Size of a disk for which the scenario sets none.
const DISK_BYTES: u64 = 1 << 30;

/// Modules of every guest. Some kernels have them built in.
const MODULES: &[&str] = &["virtio_pci", "virtio_blk", "virtio_console", "crc32c_generic"];

/// Packages of an interactive guest: a shell and the most common commands.
const SHELL_PACKAGES: &[&str] = &[
    "bash",
    "coreutils",
    "dash",
    "findutils",
    "grep",
    "less",
    "mawk",
    "mount",
    "ncurses-base",
    "procps",
    "sed",
    "util-linux",
];

/// A shell session in a guest.
#[derive(Debug)]
pub struct Session {
    /// The shell or command to start.
    pub shell: Shell,
    /// The host's end of its terminal; `None` for a command.
    pub terminal: Option<UnixStream>,
    /// Further packages for the guest.
    pub packages: BTreeSet<String>,
    /// The system that the guest boots. If `None`, this program is its init.
    pub system: Option<System>,
}

/// Runs a scenario's variant on a kernel.
pub fn run(
    cache: &Cache,
    order: &Order<'_>,
    tell: impl FnMut(&Status),
    is_asked: impl Fn() -> bool,
) -> Result<Outcome, RunError> {
    let made = Made { errand: Errand::Run, packages: programs::packages(order.scenario), terminal: None, system: None };
    made.run(cache, order, tell, is_asked)
}

/// Builds a scenario's machine on a kernel and starts a shell session in it.
pub fn shell(
    cache: &Cache,
    order: &Order<'_>,
    session: Session,
    tell: impl FnMut(&Status),
    is_asked: impl Fn() -> bool,
) -> Result<Outcome, RunError> {
    let Session { shell, terminal, mut packages, system } = session;
    packages.extend(SHELL_PACKAGES.iter().map(|package| (*package).to_owned()));
    packages.append(&mut programs::packages(order.scenario));
    Made { errand: Errand::Shell(shell), packages, terminal, system }.run(cache, order, tell, is_asked)
}

/// A guest's errand and the parts it needs.
struct Made {
    errand: Errand,
    packages: BTreeSet<String>,
    terminal: Option<UnixStream>,
    system: Option<System>,
}

impl Made {
    fn run(
        self,
        cache: &Cache,
        order: &Order<'_>,
        mut tell: impl FnMut(&Status),
        is_asked: impl Fn() -> bool,
    ) -> Result<Outcome, RunError> {
        check(order.scenario)?;
        check_kernel(order.scenario, order.kernel)?;
        let dir = cache.scratch()?;
        let (mut disks, serials) = disks(order.scenario, dir.path());
        let has_system = self.system.is_some();
        let programs = programs_disk(cache, &self.packages, self.system.as_ref(), &mut tell, &is_asked)?;
        let job = Job {
            scenario: order.scenario.clone(),
            variant: order.variant.to_owned(),
            disks: serials,
            programs: programs.as_ref().filter(|_| !has_system).map(|disk| disk.serial.clone()),
            has_system,
            every: order.every,
            trace: order.trace,
            errand: self.errand,
        };
        disks.extend(programs);
        let unpacked = dir.path().join("kernel");
        let (scenario, kernel) = (order.scenario, &order.kernel.image);
        let mut vm = machine(scenario, kernel, dir.path(), disks, order.accel, self.terminal);
        if let Errand::Shell(_) = job.errand {
            vm.status_max = SHELL_STATUS_MAX;
        }
        vm.check()?;
        if uncompressed::write(&vm.kernel, &unpacked).map_err(CacheError::at(&unpacked))? {
            vm.kernel = unpacked;
        }
        let image = image(order, &job)?;
        if is_asked() {
            return Err(RunError::Interrupted);
        }
        image.write(&vm.initrd)?;
        make_disks(order.scenario, &vm.disks)?;
        let (started, mut first_sample, has_exited) = (Instant::now(), None, Cell::new(false));
        let mut hear = |status: &Status| {
            if *status == Status::Sampled {
                first_sample.get_or_insert(started.elapsed());
            }
            has_exited.set(has_exited.get() || matches!(status, Status::Exited { .. }));
            tell(status);
        };
        let is_cut = self.system.as_ref().is_some_and(|system| system.power_cut);
        let is_asked = || is_asked() || is_cut && has_exited.get();
        let mut ended = vm.run(order.patience, &mut hear, is_asked)?;
        if vm.lacks_sandbox(&ended) {
            vm.sandbox = false;
            ended = vm.run(order.patience, &mut hear, is_asked)?;
        }
        // A guest with systemd powers off by itself, or its power is cut. Neither case sends `Status::Done`.
        if has_system && has_exited.get() && matches!(ended, Ended::Interrupted | Ended::Died { .. }) {
            ended = Ended::Done;
        }
        let console = Console::read(&vm.console());
        Ok(Outcome { ended, console, first_sample, sandbox: vm.sandbox, recording: vm.recording(), dir })
    }
}

/// The virtual machine of a scenario.
pub(crate) fn machine(
    scenario: &Scenario,
    kernel: &Path,
    dir: &Path,
    disks: Vec<Disk>,
    accel: Accel,
    terminal: Option<UnixStream>,
) -> Vm {
    Vm {
        kernel: kernel.to_owned(),
        initrd: dir.join("image"),
        memory_bytes: scenario.machine.memory.bytes(),
        cpus: scenario.machine.cpus,
        disks,
        accel,
        dir: dir.to_owned(),
        sandbox: true,
        status_max: STATUS_MAX,
        terminal,
    }
}

/// Memory of the guest's kernel and init.
const GUEST_BYTES: u64 = 128 << 20;
/// Memory per task: a process of this program and a thread of the director. Measured on 6.12: 1.8 MiB.
const TASK_BYTES: u64 = 2 << 20;
/// Memory per cgroup without its per-CPU part. Measured on 6.12 with two CPUs: 24 KiB in total.
const CGROUP_BYTES: u64 = 16 << 10;
const CGROUP_CPU_BYTES: u64 = 8 << 10;

/// Refuses more tasks and cgroups than the guest has memory for.
fn carries(scenario: &Scenario) -> Result<(), RunError> {
    let machine = &scenario.machine;
    let (tasks, cgroups) = (scenario.number_of_tasks(), scenario.number_of_cgroups());
    let memory = machine.memory.bytes();
    let room = memory.saturating_sub(GUEST_BYTES).max(memory / 2);
    let per_cgroup = CGROUP_BYTES + CGROUP_CPU_BYTES * u64::from(machine.cpus);
    let too_many = |key, what, count, carries| {
        Err(RunError::TooMany { key, what, count, carries, cgroup_kib: per_cgroup >> 10, memory: machine.memory })
    };
    // Report too many tasks, unless the cgroups alone exceed the memory.
    let for_cgroups = cgroups.saturating_mul(per_cgroup);
    match room.checked_sub(for_cgroups) {
        None => too_many("machine.cgroups", "cgroups", cgroups, room / per_cgroup),
        Some(left) if tasks > left / TASK_BYTES => too_many("workload.tasks", "tasks", tasks, left / TASK_BYTES),
        Some(_) => Ok(()),
    }
}

/// Refuses a scenario that the lab does not support.
pub fn check(scenario: &Scenario) -> Result<(), RunError> {
    let refused = scenario.not_honoured(Executor::Lab);
    if !refused.is_empty() {
        return Err(RunError::NotHonoured(refused));
    }
    carries(scenario)?;
    if let Some(TaskCopy { task, cgroup, .. }) = task_above_cgroups(scenario) {
        return Err(RunError::Inner { task, cgroup });
    }
    for (name, device) in &scenario.machine.devices {
        if !can_delay(device) {
            return Err(RunError::Latency { device: name.clone() });
        }
        let rates = [device.read_bandwidth.is_some(), device.write_bandwidth.is_some()];
        let requests = [device.read_iops.is_some(), device.write_iops.is_some()];
        let together = [device.bandwidth.is_some(), device.iops.is_some()];
        if together[0] && rates.contains(&true) || together[1] && requests.contains(&true) {
            return Err(RunError::LimitedTwice { device: name.clone() });
        }
        let limits = rates.iter().chain(&requests).chain(&together);
        if device.backing != Backing::Disk && limits.copied().any(|is_limited| is_limited) {
            return Err(RunError::Limited { device: name.clone() });
        }
        if device.write_cache.is_some() && bucket(device).is_none() {
            return Err(RunError::WriteCache { device: name.clone() });
        }
    }
    Ok(())
}

/// Refuses a scenario that needs what the kernel does not have.
fn check_kernel(scenario: &Scenario, kernel: &Kernel) -> Result<(), RunError> {
    // The controller itself is there: only its limits are not.
    let sets_limit = || scenario.used_keys().into_iter().find(|key| key.pattern.ends_with("memory_max"));
    if scenario.machine.cgroup_mode == CgroupMode::V1
        && kernel.lacks_memcg_v1()
        && let Some(key) = sets_limit()
    {
        return Err(RunError::NoMemcgV1 { key: key.key, release: kernel.release.clone() });
    }
    let kernel = kernel.version;
    let behaviour = Behaviour::of(kernel);
    for (name, device) in &scenario.machine.devices {
        if let Some(knob) = device.bdi.missing_on(&behaviour) {
            return Err(RunError::Since6_2 { device: name.clone(), knob, kernel });
        }
    }
    Ok(())
}

/// Devices backed by a virtual disk of their own, ordered by name.
fn own_disks(scenario: &Scenario) -> impl Iterator<Item = (&String, &Device)> {
    scenario.machine.devices.iter().filter(|(_, device)| device.backing == Backing::Disk)
}

/// The write cache of a device as a bucket of QEMU's throttle, if it is one: the bucket holds what is written at the
/// bandwidth in a whole number of seconds, and leaks at the speed of the drain. With a length of one second QEMU does not
/// limit the rate at which the bucket fills.
fn bucket(device: &Device) -> Option<WriteBucket> {
    let (cache, bandwidth) = (device.write_cache.as_ref()?, device.write_bandwidth?.0.0);
    let (size, drain) = (cache.size.bytes(), cache.drain.0.0);
    let seconds = size.checked_div(bandwidth)?;
    let is_one = seconds >= 2 && size.is_multiple_of(bandwidth) && drain < bandwidth;
    is_one.then_some(WriteBucket { bandwidth, seconds })
}

pub(crate) fn disks(scenario: &Scenario, dir: &Path) -> (Vec<Disk>, BTreeMap<String, String>) {
    let mut disks = Vec::new();
    let mut serials = BTreeMap::new();
    for (number, (name, device)) in own_disks(scenario).enumerate() {
        let serial = format!("disk{number}");
        serials.insert(name.clone(), serial.clone());
        let write_bucket = bucket(device);
        let drain = device.write_cache.filter(|_| write_bucket.is_some()).map(|cache| cache.drain);
        let throttle = Throttle {
            bytes: device.bandwidth.map_or(0, |rate| rate.0.0),
            requests: device.iops.map_or(0, |rate| rate.0.0),
            read_bytes: device.read_bandwidth.map_or(0, |rate| rate.0.0),
            write_bytes: drain.or(device.write_bandwidth).map_or(0, |rate| rate.0.0),
            read_requests: device.read_iops.map_or(0, |rate| rate.0.0),
            write_requests: device.write_iops.map_or(0, |rate| rate.0.0),
            write_bucket,
        };
        disks.push(Disk { path: dir.join(&serial), serial, throttle, read_only: false });
    }
    (disks, serials)
}

/// Makes the disk with real programs: the system's root disk, or a disk for `/usr`. `None` if no program is needed.
fn programs_disk(
    cache: &Cache,
    packages: &BTreeSet<String>,
    system: Option<&System>,
    tell: &mut impl FnMut(&Status),
    is_asked: &dyn Fn() -> bool,
) -> Result<Option<Disk>, RunError> {
    let mut tell = |fetching: &Fetching| tell(&Status::Stage { stage: fetching.to_string() });
    let path = match system {
        Some(system) => return Ok(Some(root::disk(cache, system, packages, &mut tell, is_asked)?)),
        None if packages.is_empty() => return Ok(None),
        None => programs::disk(cache, packages, &mut tell, is_asked)?,
    };
    Ok(Some(Disk { path, serial: "programs".to_owned(), throttle: Throttle::default(), read_only: true }))
}

fn make_disks(scenario: &Scenario, disks: &[Disk]) -> Result<(), RunError> {
    for (disk, (_, device)) in disks.iter().zip(own_disks(scenario)) {
        disk.create(device.size.map_or(DISK_BYTES, |size| size.bytes()))?;
    }
    Ok(())
}

fn image(order: &Order<'_>, job: &Job) -> Result<Image, RunError> {
    let mut image = Image::new(order.program)?;
    image.file(JOB, serde_json::to_vec(job)?);
    if let Some(dir) = &order.kernel.modules {
        let modules = Modules::index(dir)?;
        let wanted = wanted_modules(order.scenario, job.has_system || job.programs.is_some());
        let may_lack = |module: &&str| MODULES.contains(module) || CIPHERS.contains(module);
        if let Some(module) = wanted.iter().find(|module| !may_lack(module) && modules.lacks(module)) {
            return Err(RunError::Lacks { release: order.kernel.release.clone(), module: (*module).to_owned() });
        }
        image.modules(modules.in_order(&wanted)?);
    }
    for program in wanted_programs(order.scenario) {
        let missing = || RunError::NoProgram { package: tool::package_of(&program), program: program.clone() };
        let path = tool::path_of(&program).ok_or_else(missing)?;
        image.tool(&path, &program)?;
    }
    Ok(image)
}

pub(crate) fn wanted_modules(scenario: &Scenario, has_programs: bool) -> Vec<&'static str> {
    let mut wanted = MODULES.to_vec();
    wanted.extend(scenario.machine.mounts.values().map(|mount| match mount.fs_type {
        FsType::Tmpfs => "tmpfs",
        FsType::Overlay => "overlay",
        other => other.name(),
    }));
    wanted.retain(|module| *module != "tmpfs");
    if has_programs {
        wanted.push(programs::FS_TYPE);
    }
    wanted.extend(scenario.machine.devices.values().flat_map(modules));
    wanted
}

/// Programs of this host that the guest runs: mkfs and losetup.
pub(crate) fn wanted_programs(scenario: &Scenario) -> BTreeSet<String> {
    let is_loop = |device: &Device| matches!(device.backing, Backing::Loop { .. });
    let formatted = scenario.machine.mounts.values().filter(|mount| mount.device.is_some());
    let mut programs: BTreeSet<String> = formatted.map(|mount| format!("mkfs.{}", mount.fs_type.name())).collect();
    if scenario.machine.devices.values().any(is_loop) {
        programs.insert("losetup".to_owned());
    }
    programs
}

#[cfg(test)]
mod tests;
