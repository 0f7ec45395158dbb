// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lasting facts about a machine: kernel, CPUs, devices, mounts, cgroup set-up, journald. One probe fills a
//! [`HostFacts`]. Decisions are pure functions over it, so a test builds a host by struct update. Written into
//! recordings as JSON: add fields with `#[serde(default)]`.

use crate::id::DevId;
use crate::name::Name;
use crate::text::Text;
use crate::units::{Bytes, Nanos};
use crate::version::KernelVersion;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostFacts {
    /// Name of the host.
    pub hostname: Name,
    /// Kernel release as `uname -r` has it, e.g. `6.12.117+deb13-cloud-amd64`.
    pub kernel_release: Text,
    /// Version in the release; `None` if it cannot be parsed.
    pub kernel: Option<KernelVersion>,
    /// Id of the boot (`/proc/sys/kernel/random/boot_id`): a plan for one boot is not applied in another. `None` if the
    /// recorder did not read it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boot_id: Option<Text>,
    /// Kernel command line.
    pub cmdline: Name,
    /// Bytes per page.
    pub page_size: u64,
    /// Ticks per second, and the origin of that value.
    pub hz: Option<Hz>,
    /// CPUs that may ever come online (`nr_cpu_ids`).
    pub cpus_possible: Option<u32>,
    /// Total memory.
    pub mem_total: Option<Bytes>,
    /// Cgroup set-up.
    pub cgroups: CgroupSetup,
    /// Block devices, by number.
    pub devices: Vec<BlockDevice>,
    /// Mounts of the reader's mount namespace, in mountinfo order.
    pub mounts: Vec<Mount>,
    /// Journald's configuration; `None` when it is not installed or was not readable.
    pub journald: Option<Journald>,
    /// Lines of files that set `vm.dirty_*` and `vm.laptop_mode` at boot, in the order in which they are applied: of
    /// two lines for one key the later wins.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sysctl_lines: Vec<SysctlLine>,
    /// Names of containers found in local files, by full container id.
    pub container_names: BTreeMap<Text, Name>,
    /// Names of containers found in files that users own, by user and full container id. A user's names count
    /// only below that user's own slice.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub user_container_names: BTreeMap<u32, BTreeMap<Text, Name>>,
    /// Whether the reader had the privileges of root.
    pub privileged: Option<bool>,
    /// Whether `kernel.task_delayacct` is on.
    pub task_delayacct: Option<bool>,
    /// Whether the multi-generational LRU is on (6.1, `lru_gen/enabled`): reclaim by it does not spare what
    /// `memory.low` protects as the older lists do. `None` if the recorder did not read it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lru_gen: Option<bool>,
    /// Whether debugfs is mounted and readable.
    pub debugfs: Option<bool>,
    /// Names in `/sys/class/bdi`, with the device of each, if it has one.
    pub bdis: BTreeMap<Text, Option<DevId>>,
    /// Settings of io.cost at the root, by device: the text of `io.cost.qos`.
    pub io_cost_qos: BTreeMap<Text, Text>,
    /// Original inode numbers of cgroups by path (escaped), from a file in a captured tree: the copied directories have
    /// other numbers. Empty on a live machine.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub cgroup_inodes: BTreeMap<Text, u64>,
}

/// Parameter on the kernel's command line of a lab guest whose disks take each request as the guest made it. Before the
/// lab set it, QEMU made one request of several that follow each other.
pub const UNJOINED_DISKS: &str = "floodline.disks=unjoined";

impl HostFacts {
    /// Whether the disks of a lab guest take each request as the guest made it.
    pub fn has_unjoined_disks(&self) -> bool {
        self.cmdline.to_string().split_ascii_whitespace().any(|word| word == UNJOINED_DISKS)
    }

    /// Returns the name of a container by its full id: from root's runtimes, or else from the user `host_uid`, in whose
    /// slice the container is.
    pub fn container_name(&self, id: &str, host_uid: Option<u32>) -> Option<&Name> {
        let of_user = || self.user_container_names.get(&host_uid?)?.get(id);
        self.container_names.get(id).or_else(of_user)
    }
}

/// A line of a file that sets a sysctl at boot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SysctlLine {
    /// Path of the file.
    pub file: Name,
    /// Number of the line; the first is 1.
    pub line: u32,
    /// Key, with dots.
    pub key: Text,
    /// Value, as the line has it.
    pub value: Text,
}

/// Ticks per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hz {
    /// Ticks per second.
    pub value: u32,
    /// Whether it was read from the kernel's configuration or is the usual value, assumed.
    pub assumed: bool,
}

/// How the cgroup hierarchies are set up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CgroupSetup {
    /// The mounted versions.
    pub mode: CgroupMode,
    /// Mount point of the unified hierarchy.
    pub v2_mount: Option<Name>,
    /// Controllers in the root `cgroup.controllers` of the unified hierarchy.
    pub v2_controllers: Vec<Text>,
    /// Whether that file could not be read: then the controllers are not known.
    pub v2_controllers_unread: bool,
    /// Mount points of version 1 hierarchies by controller.
    pub v1_mounts: BTreeMap<Text, Name>,
}

/// Kind of cgroup set-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CgroupMode {
    /// No cgroup filesystem found.
    #[default]
    None,
    /// Version 1 only.
    V1,
    /// Version 2 only.
    V2,
    /// Both are mounted.
    Hybrid,
}

impl CgroupSetup {
    /// Returns whether memory and io are both on the unified hierarchy: the precondition of cgroup writeback (commit
    /// 9badce000e2c, 4.3). It is a property of the machine, not of one cgroup. Meaningless if `v2_controllers_unread`.
    pub fn has_unified_writeback(&self) -> bool {
        ["memory", "io"].iter().all(|wanted| self.v2_controllers.iter().any(|have| have == *wanted))
    }
}

/// One block device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BlockDevice {
    /// Device number.
    pub dev: DevId,
    /// Kernel name.
    pub name: Name,
    /// Whether it is a rotating disk.
    #[serde(default)]
    pub rotational: Option<bool>,
    /// The scheduler in use.
    #[serde(default)]
    pub scheduler: Option<Text>,
    /// Maximum number of requests in the queue.
    #[serde(default)]
    pub nr_requests: Option<u64>,
    /// Maximum size of a request.
    #[serde(default)]
    pub max_request: Option<Bytes>,
    /// Latency target of writeback throttling: 0 is off, `None` is absent.
    #[serde(default)]
    pub wbt_lat: Option<Nanos>,
    /// Whether writes complete in a volatile cache.
    #[serde(default)]
    pub write_back_cache: Option<bool>,
    /// Size.
    #[serde(default)]
    pub size: Option<Bytes>,
    /// The whole disk it is a partition of.
    #[serde(default)]
    pub partition_of: Option<DevId>,
    /// Devices it is built on, by number.
    #[serde(default)]
    pub slaves: Vec<DevId>,
    /// What kind of stacked device it is.
    #[serde(default)]
    pub stack: Stack,
}

/// Kind of stacked device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Stack {
    /// Not stacked: the driver is the lowest layer.
    #[default]
    Bottom,
    /// A file.
    Loop {
        /// Path of the backing file as the kernel prints it.
        backing_file: Name,
        /// Whether it is read and written directly, past the page cache.
        dio: Option<bool>,
    },
    /// md RAID.
    Md {
        /// Level, e.g. `raid1`.
        level: Text,
    },
    /// Device mapper.
    Dm {
        /// Name of the mapping.
        name: Name,
    },
}

/// One mount.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mount {
    /// Device number of the superblock (`st_dev`).
    pub dev: DevId,
    /// Path within the filesystem that is mounted.
    pub root: Name,
    /// Its mount point.
    pub mount_point: Name,
    /// Filesystem type.
    pub fs_type: Text,
    /// Mount source.
    pub source: Name,
    /// Per-mount options, comma-separated as printed.
    pub options: Name,
    /// Per-superblock options, comma-separated as printed.
    pub super_options: Name,
    /// For overlay mounts, the target of its writes.
    #[serde(default)]
    pub overlay: Option<Overlay>,
}

impl Mount {
    /// Whether the superblock has an option, e.g. `lazytime` or `data=journal`.
    pub fn has_option(&self, wanted: &str) -> bool {
        [&self.options, &self.super_options]
            .iter()
            .any(|options| options.as_bytes().split(|&b| b == b',').any(|option| option == wanted.as_bytes()))
    }
}

/// Target of an overlay's writes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Overlay {
    /// The upper directory, as in the mount option.
    pub upperdir: Option<Name>,
    /// Superblock that holds the upper directory, if it could be resolved.
    pub upper_dev: Option<DevId>,
    /// Mounted `volatile`: unmounting syncs nothing (5.10).
    pub volatile: bool,
}

/// Journald's effective configuration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Journald {
    /// `Storage=` after merging drop-ins, or the default `auto`.
    pub storage: Text,
    /// Whether it is stored on disk: `persistent`, or `auto` with `/var/log/journal` present.
    pub persistent: Option<bool>,
    /// `SyncIntervalSec=` in effect.
    pub sync_interval: Option<Nanos>,
    /// Files that were merged, in order.
    pub files: Vec<Name>,
}
