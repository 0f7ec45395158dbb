// SPDX-License-Identifier: MIT OR Apache-2.0
//! Gaps: sources that were not read, and why. A gap is data: it is recorded like a reading, rules return `NotChecked`
//! with it, and the report prints it. Silence never means health.

use crate::id::EntityId;
use crate::text::Text;
use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! sources {
    ($($(#[$doc:meta])+ $variant:ident = $path:literal, without $lost:literal;)+) => {
        /// Source of readings: the closed list of everything that Floodline reads.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Source {
            $($(#[$doc])+ $variant,)+
            /// The recording that this one was made from. Not part of a machine, so not in [`Source::ALL`].
            Recording,
            /// A source this build does not know: the recording is from a newer one.
            #[serde(other)]
            Unknown,
        }

        impl Source {
            /// All of them, in the order of the list.
            pub const ALL: &'static [Source] = &[$(Source::$variant,)+];

            /// Returns its path, with capitals for the varying parts.
            pub fn path(self) -> &'static str {
                match self { $(Source::$variant => $path,)+ Source::Recording => "the recording that this one was made from", Source::Unknown => "a source of a newer version" }
            }

            /// Returns the facts that are missing without it.
            pub fn lost_without(self) -> &'static str {
                match self { $(Source::$variant => $lost,)+ Source::Recording => "what the missing stretches contained", Source::Unknown => "unknown" }
            }
        }
    };
}

sources! {
    /// Machine-wide memory.
    Meminfo = "/proc/meminfo", without "total memory";
    /// Machine-wide page counters.
    Vmstat = "/proc/vmstat", without "dirty and writeback totals, thresholds, dirtyable memory";
    /// Zone watermarks and reserves.
    Zoneinfo = "/proc/zoneinfo", without "the reserve in dirtyable memory, so budgets become bounds";
    /// Block device counters.
    Diskstats = "/proc/diskstats", without "device bandwidth, await and utilisation";
    /// CPU time and blocked tasks.
    Stat = "/proc/stat", without "iowait and the number of blocked tasks";
    /// Pressure stall information of the machine.
    Pressure = "/proc/pressure/RESOURCE", without "time lost waiting for I/O, memory and CPU";
    /// Mounts.
    Mountinfo = "/proc/self/mountinfo", without "filesystems, mount options and overlays";
    /// Writeback settings.
    SysctlVm = "/proc/sys/vm/NAME", without "the thresholds' settings";
    /// Kernel release.
    KernelRelease = "/proc/sys/kernel/osrelease", without "which kernel's arithmetic applies";
    /// Kernel command line.
    Cmdline = "/proc/cmdline", without "boot options that change cgroups or accounting";
    /// Tick rate and build options of the kernel.
    KernelConfig = "/boot/config-RELEASE or /proc/config.gz", without "the tick rate HZ";
    /// CPUs that may ever come online.
    CpuPossible = "/sys/devices/system/cpu/possible", without "the error of the wb counters";
    /// Which lists reclaim goes by.
    LruGen = "/sys/kernel/mm/lru_gen/enabled", without "whether reclaim spares what memory.low protects";
    /// The list of processes.
    Processes = "/proc/PID", without "processes";
    /// I/O counters of a process.
    ProcessIo = "/proc/PID/io", without "which process dirties pages";
    /// Times and faults of a process.
    ProcessStat = "/proc/PID/stat", without "a process's CPU time, faults and state";
    /// Cgroup of a process.
    ProcessCgroup = "/proc/PID/cgroup", without "which cgroup a process belongs to";
    /// Kernel stack of a blocked process.
    ProcessWchan = "/proc/PID/wchan", without "where a blocked process sleeps";
    /// Knobs of a backing device.
    SysBdi = "/sys/class/bdi/NAME", without "per-device shares and strictlimit";
    /// Block device attributes and stacking.
    SysBlock = "/sys/block/NAME", without "queue settings, rotation and what a device is stacked on";
    /// Backing device state.
    DebugBdiStats = "/sys/kernel/debug/bdi/NAME/stats", without "the kernel's own bandwidth estimate of a device";
    /// Writeback structure state (since 6.10).
    DebugWbStats = "/sys/kernel/debug/bdi/NAME/wb_stats", without "the kernel's own threshold per cgroup and device";
    /// The unified hierarchy.
    CgroupV2 = "/sys/fs/cgroup", without "everything per cgroup";
    /// The version 1 memory hierarchy.
    CgroupV1Memory = "/sys/fs/cgroup/memory", without "dirty pages per cgroup";
    /// The version 1 blkio hierarchy.
    CgroupV1Blkio = "/sys/fs/cgroup/blkio", without "device bytes per cgroup";
    /// The version 1 limits of I/O of a cgroup.
    BlkioLimits = "blkio.throttle.{read,write}_{bps,iops}_device of a cgroup", without "I/O limits of a cgroup";
    /// Memory counters of a cgroup.
    MemoryStat = "CGROUP/memory.stat", without "a cgroup's dirty pages and its available memory";
    /// Memory usage of a cgroup.
    MemoryCurrent = "CGROUP/memory.current", without "a cgroup's headroom";
    /// Memory limits of a cgroup.
    MemoryLimits = "CGROUP/memory.{max,high,min,low}", without "a cgroup's headroom";
    /// Memory events of a cgroup.
    MemoryEvents = "CGROUP/memory.events", without "how often a cgroup hit its limits";
    /// Memory pressure of a cgroup.
    MemoryPressure = "CGROUP/memory.pressure", without "time a cgroup lost to reclaim";
    /// I/O counters of a cgroup.
    IoStat = "CGROUP/io.stat", without "device bytes per cgroup";
    /// I/O limits and weights of a cgroup.
    IoLimits = "CGROUP/io.{max,weight}", without "I/O limits of a cgroup";
    /// The io.cost controller.
    IoCost = "/sys/fs/cgroup/io.cost.{qos,model}", without "whether io.cost throttles";
    /// I/O pressure of a cgroup.
    IoPressure = "CGROUP/io.pressure", without "time a cgroup lost waiting for I/O";
    /// Controllers of a cgroup.
    CgroupControllers = "CGROUP/cgroup.{controllers,subtree_control}", without "where cgroup writeback ends";
    /// Dying descendants of a cgroup.
    CgroupStat = "CGROUP/cgroup.stat", without "dying cgroups";
    /// Events of a cgroup.
    CgroupEvents = "CGROUP/cgroup.events", without "whether a cgroup is populated";
    /// Journald's configuration.
    JournaldConf = "/etc/systemd/journald.conf", without "how the journal is stored";
    /// Files that set sysctls at boot.
    SysctlFiles = "/etc/sysctl.d", without "which file sets a value at boot";
    /// Names of containers from local files.
    ContainerNames = "container runtime state below /run and /var/lib", without "names of containers beyond their ids";
    /// The tracer's byte ledger.
    TraceBytes = "trace of dirtied folios, queued writes and waits", without "which process's bytes reach the disks, and which task waited for which data";
    /// The tracer's throttle ledger.
    TraceThrottle = "trace of writeback/balance_dirty_pages", without "which task was paused in dirty throttling, and how long";
    /// The tracer's account of the flusher.
    TraceFlusher = "trace of writeback/writeback_{start,written}", without "why the flusher ran, and for how long";
    /// The tracer's account of inode ownership.
    TraceSwitches = "trace of writeback/inode_switch_wbs", without "inodes that move between cgroups, and foreign writers";
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.path())
    }
}

/// Why something could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Cause {
    /// It does not exist on this machine.
    NotFound,
    /// The kernel refused the read; `need` names the permission.
    PermissionDenied {
        /// The missing permission, e.g. `CAP_SYS_PTRACE`.
        need: Text,
    },
    /// The filesystem that has it is not mounted.
    NotMounted {
        /// Filesystem type, e.g. `debugfs`.
        fs_type: Text,
    },
    /// This kernel does not have it.
    Unsupported {
        /// Kernels that have it, e.g. `since 6.10`.
        since: Text,
    },
    /// Its content could not be parsed.
    Malformed {
        /// The expected content, and its place.
        what: Text,
    },
    /// It went away between being listed and being read.
    Vanished,
    /// It is longer than anything the kernel writes.
    TooLarge {
        /// Limit at which the read was abandoned, bytes.
        limit_bytes: u64,
    },
    /// The read failed.
    Io {
        /// Error number.
        errno: i32,
    },
    /// Floodline ran out of a resource, e.g. file descriptors.
    Exhausted {
        /// The resource.
        what: Text,
    },
    /// The kernel rejected an object, e.g. a program of the tracer, or Floodline does not open a file that could do
    /// harm, e.g. a link that another user placed.
    Refused {
        /// The reason, and the remedy.
        why: Text,
    },
    /// The read plan left it out.
    NotPlanned,
    /// The window is too short to make a rate of a counter.
    TooShort {
        /// A length that is sufficient, e.g. `--for 10s`.
        need: Text,
    },
    /// The samples are too far apart: the condition can be shorter than the time between two of them.
    TooCoarse {
        /// Option that is sufficient, e.g. `--every 1s`.
        need: Text,
    },
    /// Samples that were due are missing, and the condition may have occurred meanwhile.
    SamplesMissing {
        /// Number of missing and of due samples, and the longest hole.
        what: Text,
    },
    /// The recording lacks it without a reason.
    NotRecorded,
    /// A cause this build does not know: the recording is from a newer one.
    #[serde(other)]
    Unknown,
}

impl Cause {
    /// Returns the kind in one word, as in the JSON form: a label with few values.
    pub fn kind(&self) -> &'static str {
        match self {
            Cause::NotFound => "not_found",
            Cause::PermissionDenied { .. } => "permission_denied",
            Cause::NotMounted { .. } => "not_mounted",
            Cause::Unsupported { .. } => "unsupported",
            Cause::Malformed { .. } => "malformed",
            Cause::Vanished => "vanished",
            Cause::TooLarge { .. } => "too_large",
            Cause::Io { .. } => "io",
            Cause::Exhausted { .. } => "exhausted",
            Cause::Refused { .. } => "refused",
            Cause::NotPlanned => "not_planned",
            Cause::TooShort { .. } => "too_short",
            Cause::TooCoarse { .. } => "too_coarse",
            Cause::SamplesMissing { .. } => "samples_missing",
            Cause::NotRecorded => "not_recorded",
            Cause::Unknown => "unknown",
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::NotFound => f.write_str("does not exist here"),
            Cause::PermissionDenied { need } => write!(f, "permission denied (needs {need})"),
            Cause::NotMounted { fs_type } => write!(f, "{fs_type} is not mounted"),
            Cause::Unsupported { since } => write!(f, "not in this kernel ({since})"),
            Cause::Malformed { what } => write!(f, "invalid content, expected {what}"),
            Cause::Vanished => f.write_str("removed before it was read"),
            Cause::TooLarge { limit_bytes } => write!(f, "longer than {limit_bytes} bytes"),
            Cause::Io { errno } => write!(f, "read failed (errno {errno})"),
            Cause::Exhausted { what } => write!(f, "ran out of {what}"),
            Cause::Refused { why } => write!(f, "refused: {why}"),
            Cause::NotPlanned => f.write_str("not requested"),
            Cause::TooShort { need } => write!(f, "observation too short (use {need})"),
            Cause::TooCoarse { need } => write!(f, "samples too far apart (use {need})"),
            Cause::SamplesMissing { what } => f.write_str(what),
            Cause::NotRecorded => f.write_str("not in the recording"),
            Cause::Unknown => f.write_str("reason unknown to this version of floodline"),
        }
    }
}

/// One source, or a part of it, that was not read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// The source that was not read.
    pub source: Source,
    /// The cause.
    pub cause: Cause,
    /// The entity concerned; `None` for the whole source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entity: Option<EntityId>,
    /// File or field, if the source alone does not identify it (escaped).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Text>,
    /// Number of equal gaps that this one stands for; at least 1.
    #[serde(default = "one")]
    pub times: u64,
}

fn one() -> u64 {
    1
}

impl Gap {
    /// Makes a gap for a whole source.
    pub fn new(source: Source, cause: Cause) -> Gap {
        Gap { source, cause, entity: None, detail: None, times: 1 }
    }

    /// Makes a gap for one file or field of a source.
    pub fn detailed(source: Source, cause: Cause, detail: impl Into<Text>) -> Gap {
        Gap { detail: Some(detail.into()), ..Gap::new(source, cause) }
    }
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.detail {
            Some(detail) => write!(f, "{} ({detail}): {}", self.source, self.cause)?,
            None => write!(f, "{}: {}", self.source, self.cause)?,
        }
        match self.times {
            0 | 1 => Ok(()),
            times => write!(f, " (×{times})"),
        }
    }
}
