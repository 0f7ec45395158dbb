// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine of a scenario: what a host would be made of. Everything is a named table, so that a
//! variant can change one key of one device. Nothing here runs; executors refuse what they cannot make.

use super::mkfs::Mkfs;
use super::profile::{DeviceProfile, READ_PREFERENCE};
use super::quantity::{ByteRate, ByteSize, IoRate, Share, SizeLimit, Time};
use super::sysctl::Sysctls;
use floodline_kernel::Behaviour;
use floodline_record::units::{BytesPerSecond, Nanos};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What the machine is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Memory of the machine.
    pub memory: ByteSize,
    /// CPUs.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub cpus: u32,
    /// Ticks per second of the kernel, where it matters; a real kernel has the one it was built with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hz: Option<u32>,
    /// How fast data is copied between programs and the page cache; a real machine has what it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy_bandwidth: Option<CopyBandwidth>,
    /// Memory in use before the workload begins, by whoever else is on the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_used: Option<ByteSize>,
    /// NUMA nodes, each with its part of the memory; one where missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<u32>,
    /// Which cgroup hierarchy is mounted.
    #[serde(default, skip_serializing_if = "is_default")]
    pub cgroup_mode: CgroupMode,
    /// Settings below `/proc/sys`, as nested tables: `vm.dirty_bytes = "100 MiB"`.
    #[serde(default, skip_serializing_if = "Sysctls::is_empty")]
    pub sysctl: Sysctls,
    /// Block devices by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub devices: BTreeMap<String, Device>,
    /// Filesystems by mount point. `{i}` in the path is the copy's number where `instances` is given.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub mounts: BTreeMap<String, Mount>,
    /// Cgroups by path below the root of the hierarchy; `/` is the root itself. `{i}` in the path is the
    /// copy's number where `instances` is given.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub cgroups: BTreeMap<String, Cgroup>,
}

impl Machine {
    /// Devices that are made of others, each after its members: in the order in which they can be built. A device whose
    /// members are not among the machine's, or that is part of itself, is left out.
    pub fn stacked_devices(&self) -> Vec<(&String, &Device)> {
        let mut built: BTreeSet<&str> = BTreeSet::new();
        let (mut waiting, mut order) = (Vec::new(), Vec::new());
        for (name, device) in &self.devices {
            match device.backing.stack() {
                Some((_, members)) => waiting.push((name, device, members)),
                None => drop(built.insert(name)),
            }
        }
        for _ in 1..STACK_MAX {
            let is_ready = |(.., members): &(_, _, &[String])| members.iter().all(|member| built.contains(&**member));
            let (ready, rest): (Vec<_>, Vec<_>) = waiting.into_iter().partition(is_ready);
            waiting = rest;
            built.extend(ready.iter().map(|(name, ..)| name.as_str()));
            order.extend(ready.into_iter().map(|(name, device, _)| (name, device)));
        }
        order
    }
}

/// Speeds of copying between programs and the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CopyBandwidth {
    /// Of a `write`: into the page cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write: Option<ByteRate>,
    /// Of a `read`: out of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read: Option<ByteRate>,
    /// Of all that copy at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<ByteRate>,
}

/// Which cgroup hierarchy is mounted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CgroupMode {
    /// The unified hierarchy with memory and io.
    #[default]
    V2,
    /// Version 1: the memory and the blkio hierarchy.
    V1,
}

/// One block device. What is not limited is as fast as the executor can make it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Device {
    /// A device of the library (`floodline scenario devices`), whose figures are taken where none are given here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// Size; a loop device has that of its file, an array that of its members.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<ByteSize>,
    /// What it is made of.
    #[serde(default, skip_serializing_if = "is_default")]
    pub backing: Backing,
    /// Most bytes written per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_bandwidth: Option<ByteRate>,
    /// Most bytes read per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_bandwidth: Option<ByteRate>,
    /// Most write requests per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_iops: Option<IoRate>,
    /// Most read requests per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_iops: Option<IoRate>,
    /// Most bytes per second, reads and writes together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<ByteRate>,
    /// Most requests per second, reads and writes together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iops: Option<IoRate>,
    /// Credit of the limits, as the time in which it is earned: of those of both ways together where there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<Time>,
    /// Most bytes per second of one reader that reads on in order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_stream: Option<ByteRate>,
    /// Percent of the writes that wait before it that a read overtakes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_preference: Option<u32>,
    /// Time a single request takes on the idle device, besides its transfer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<Time>,
    /// Time that each request under way adds to the latency of the next one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queued_latency: Option<Time>,
    /// A cache that takes writes at the speed of the limits and drains more slowly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_cache: Option<WriteCache>,
    /// Whether it turns.
    #[serde(default, skip_serializing_if = "is_default")]
    pub rotational: bool,
    /// Time until the arm of a disk that turns is at another place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seek: Option<Time>,
    /// Knobs of its backing device info.
    #[serde(default, skip_serializing_if = "is_default")]
    pub bdi: BdiKnobs,
    /// Knobs of its request queue.
    #[serde(default, skip_serializing_if = "is_default")]
    pub queue: QueueKnobs,
    /// Its part of the pages that the machine wrote just before the workload, without those of memory cgroups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<Share>,
}

impl Device {
    fn known_profile(&self) -> Option<&'static DeviceProfile> {
        self.profile.as_deref().and_then(super::profile::device_profile)
    }

    /// Time of a seek: its own, or that of its profile.
    pub fn seek_time(&self) -> Option<Time> {
        let profile = || self.known_profile()?.seek_us.map(|micros| Time(Nanos(micros.saturating_mul(1000))));
        self.seek.or_else(profile)
    }

    /// Most bytes per second of one reader in order: its own figure, or that of its profile.
    pub fn stream_rate(&self) -> Option<ByteRate> {
        let profile = || Some(ByteRate(BytesPerSecond(self.known_profile()?.read_stream?)));
        self.read_stream.or_else(profile)
    }

    /// Percent of the writes before it that a read overtakes, on a device that reads and writes in one time: an SSD of the
    /// library, or one of which a scenario says it. Others are held to limits each way, as a hypervisor does.
    pub fn shared_time(&self) -> Option<u32> {
        let profile = || self.known_profile()?.read_stream.map(|_| READ_PREFERENCE);
        self.read_preference.or_else(profile)
    }

    /// Commands that it holds at once where a scheduler keeps the other requests: 32 of a SATA or SAS disk (NCQ), whose
    /// scheduler is mq-deadline unless the scenario names another. `None` where all requests are in the device: without a
    /// scheduler, and on NVMe.
    pub fn holds(&self) -> Option<u32> {
        const NCQ: u32 = 32;
        let profile = self.known_profile();
        let is_nvme = profile.is_some_and(|profile| profile.name.starts_with("nvme"));
        let has_scheduler = match self.queue.scheduler.as_deref() {
            Some(scheduler) => scheduler != "none",
            None => self.rotational || profile.is_some_and(|profile| profile.rotational || profile.name == "sata-ssd"),
        };
        (has_scheduler && !is_nvme).then_some(NCQ)
    }

    /// Credit of its limits. A limit of a hypervisor lets a tenth of a second through at once; a device of the library has
    /// none.
    pub fn credit(&self) -> Nanos {
        let is_real = self.profile.is_some() || self.read_preference.is_some();
        self.burst.map_or(if is_real { Nanos(0) } else { Nanos::from_millis(100) }, |burst| burst.0)
    }
}

/// Write cache of a device: the fast cells of an SSD, or the memory of a disk or a controller.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WriteCache {
    /// Bytes that it holds.
    pub size: ByteSize,
    /// Bytes per second that leave it. A full cache takes no more than that.
    pub drain: ByteRate,
    /// Whether it is lost with the power: a flush waits until it is empty.
    #[serde(default, skip_serializing_if = "is_default")]
    pub volatile: bool,
}

/// What a block device is made of.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Backing {
    /// A disk of its own.
    #[default]
    Disk,
    /// A file on a filesystem of this machine: `{ loop = { file = "/srv/image", direct_io = false } }`.
    Loop {
        /// Path of the file; it is created with the device's size.
        file: String,
        /// Whether the file is read and written past the page cache.
        #[serde(default, skip_serializing_if = "is_default")]
        direct_io: bool,
    },
    /// An md array of level 1: `{ raid1 = { members = ["a", "b"] } }`.
    Raid1 {
        /// Names of the devices it mirrors.
        members: Vec<String>,
    },
    /// An md array of level 0: stripes.
    Raid0(Stripes),
    /// An md array of level 10 in its near layout with two copies: stripes over pairs of mirrors.
    Raid10(Stripes),
    /// A device-mapper target `linear` of LVM: one member after the other.
    Linear {
        /// Names of the devices.
        members: Vec<String>,
    },
    /// A device-mapper target `striped` of LVM.
    Striped(Stripes),
    /// A device-mapper target `crypt`, as of LUKS: `{ crypt = { member = "disk" } }`.
    Crypt {
        /// Name of the device that it encrypts.
        member: String,
        /// Bytes that one CPU encrypts or decrypts in a second: 1.5 GB/s where missing.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cpu_bandwidth: Option<ByteRate>,
    },
}

/// AES-XTS in sectors of 512 bytes with the instructions that CPUs have for it. An estimate.
const CIPHER_BANDWIDTH: u64 = 1_500_000_000;

/// Devices that a stack has one above the other, at most.
pub(crate) const STACK_MAX: usize = 4;

/// Stripes over devices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stripes {
    /// Names of the devices.
    pub members: Vec<String>,
    /// Bytes of one stripe on one member: 512 KiB of an md array where missing, 64 KiB of LVM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chunk: Option<ByteSize>,
}

/// How the bytes of a device lie on its members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Each member holds all bytes.
    Mirrors,
    /// In stripes of this many bytes over all members.
    Stripes(u64),
    /// Stripes of this many bytes over mirrored pairs.
    MirroredStripes(u64),
    /// One member after the other.
    Linear,
    /// Encrypted, by CPUs of which each does this many bytes per second.
    Encrypted(u64),
}

impl Backing {
    /// The devices that it is made of, and how; `None` of a disk and of a file.
    pub fn stack(&self) -> Option<(Layout, &[String])> {
        let bytes = |chunk: Option<ByteSize>, usual: u64| chunk.map_or(usual, ByteSize::bytes);
        Some(match self {
            Backing::Disk | Backing::Loop { .. } => return None,
            Backing::Raid1 { members } => (Layout::Mirrors, members),
            Backing::Raid0(Stripes { members, chunk }) => (Layout::Stripes(bytes(*chunk, 512 << 10)), members),
            Backing::Raid10(Stripes { members, chunk }) => (Layout::MirroredStripes(bytes(*chunk, 512 << 10)), members),
            Backing::Striped(Stripes { members, chunk }) => (Layout::Stripes(bytes(*chunk, 64 << 10)), members),
            Backing::Linear { members } => (Layout::Linear, members),
            Backing::Crypt { member, cpu_bandwidth } => {
                let rate = cpu_bandwidth.map_or(CIPHER_BANDWIDTH, |rate| rate.0.0);
                (Layout::Encrypted(rate), std::slice::from_ref(member))
            }
        })
    }

    /// Its name in a scenario.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Backing::Disk => "disk",
            Backing::Loop { .. } => "loop",
            Backing::Raid1 { .. } => "raid1",
            Backing::Raid0(_) => "raid0",
            Backing::Raid10(_) => "raid10",
            Backing::Linear { .. } => "linear",
            Backing::Striped(_) => "striped",
            Backing::Crypt { .. } => "crypt",
        }
    }

    /// Name of the md level; `None` of what is no md array.
    pub fn md_level(&self) -> Option<&'static str> {
        match self {
            Backing::Raid1 { .. } => Some("raid1"),
            Backing::Raid0(_) => Some("raid0"),
            Backing::Raid10(_) => Some("raid10"),
            Backing::Disk
            | Backing::Loop { .. }
            | Backing::Linear { .. }
            | Backing::Striped(_)
            | Backing::Crypt { .. } => None,
        }
    }
}

/// Knobs of `/sys/class/bdi/NAME`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BdiKnobs {
    /// `min_ratio`, percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_ratio: Option<u32>,
    /// `max_ratio`, percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_ratio: Option<u32>,
    /// `max_bytes` (6.2): the kernel keeps it as a ratio of the threshold of that moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<ByteSize>,
    /// `strict_limit` (6.2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strict_limit: Option<bool>,
    /// `read_ahead_kb`, as a size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_ahead: Option<ByteSize>,
}

impl BdiKnobs {
    /// Name of a knob that is set and that a kernel does not have.
    pub fn missing_on(&self, kernel: &Behaviour) -> Option<&'static str> {
        let knobs = [("max_bytes", self.max_bytes.is_some()), ("strict_limit", self.strict_limit.is_some())];
        knobs.into_iter().find_map(|(name, is_set)| (is_set && !kernel.knobs.bdi_fine).then_some(name))
    }
}

/// Knobs of `/sys/block/NAME/queue`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QueueKnobs {
    /// `scheduler`, e.g. `none`, `mq-deadline`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<String>,
    /// `nr_requests`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nr_requests: Option<u32>,
    /// `wbt_lat_usec`, as a time; `0s` switches writeback throttling off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wbt_latency: Option<Time>,
    /// `write_cache`. The kernel sends flushes to a disk with `write back` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_cache: Option<CacheType>,
}

/// Values of `queue/write_cache`, as the kernel spells them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum CacheType {
    /// Writes complete in a volatile cache.
    #[serde(rename = "write back")]
    WriteBack,
    /// Writes that are complete are durable.
    #[serde(rename = "write through")]
    WriteThrough,
}

impl CacheType {
    /// The kernel's spelling.
    pub fn name(self) -> &'static str {
        match self {
            CacheType::WriteBack => "write back",
            CacheType::WriteThrough => "write through",
        }
    }
}

/// One filesystem and where it is mounted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Mount {
    /// Filesystem type.
    #[serde(rename = "type")]
    pub fs_type: FsType,
    /// The device it is on; none for tmpfs and overlay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// Options it is made with.
    #[serde(default, skip_serializing_if = "is_default", deserialize_with = "super::mkfs::deserialize")]
    pub mkfs: Mkfs,
    /// Mount options, each one word, e.g. `["noatime", "lazytime"]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// Directories of an overlay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlay: Option<OverlayDirs>,
    /// How many copies; the path then holds `{i}`, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instances: Option<u32>,
    /// `false` leaves the mounting to a `mount` step of a task.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub at_start: bool,
    /// `true` for a filesystem that programs used before the workload: its metadata are in memory. A new one reads them
    /// on first use.
    #[serde(default, skip_serializing_if = "is_default")]
    pub in_use: bool,
}

/// Filesystem types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum FsType {
    Ext4,
    Xfs,
    Btrfs,
    Tmpfs,
    Overlay,
}

impl FsType {
    /// As the kernel spells it.
    pub fn name(self) -> &'static str {
        match self {
            FsType::Ext4 => "ext4",
            FsType::Xfs => "xfs",
            FsType::Btrfs => "btrfs",
            FsType::Tmpfs => "tmpfs",
            FsType::Overlay => "overlay",
        }
    }

    /// Whether it lives on a block device.
    pub fn needs_device(self) -> bool {
        !matches!(self, FsType::Tmpfs | FsType::Overlay)
    }
}

/// Directories of an overlay; all are created where they are missing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OverlayDirs {
    /// Lower directory.
    pub lower: String,
    /// Upper directory: where writes go.
    pub upper: String,
    /// Work directory, on the filesystem of the upper one.
    pub work: String,
}

/// One cgroup.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cgroup {
    /// How many copies; the path then holds `{i}`, from 0. Children of a copied cgroup are copied with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instances: Option<u32>,
    /// `memory.max`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_max: Option<SizeLimit>,
    /// `memory.high`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_high: Option<SizeLimit>,
    /// `memory.low`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_low: Option<SizeLimit>,
    /// `memory.min`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_min: Option<SizeLimit>,
    /// `io.max` by device.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub io_max: BTreeMap<String, IoMax>,
    /// `io.weight`, 1 to 10000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub io_weight: Option<u32>,
    /// Controllers enabled for its children (`cgroup.subtree_control`); by default memory and io.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subtree_control: Option<Vec<Controller>>,
    /// Whether it is removed once its last task has exited, and how long after that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remove_after: Option<Time>,
    /// By device, its part of the pages that the machine wrote just before the workload.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub share: BTreeMap<String, Share>,
}

/// Controllers that matter to writeback.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Controller {
    Memory,
    Io,
    Cpu,
    Pids,
}

impl Controller {
    /// As the kernel spells it.
    pub fn name(self) -> &'static str {
        match self {
            Controller::Memory => "memory",
            Controller::Io => "io",
            Controller::Cpu => "cpu",
            Controller::Pids => "pids",
        }
    }
}

/// One line of `io.max`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IoMax {
    /// `rbps`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_bandwidth: Option<ByteRate>,
    /// `wbps`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_bandwidth: Option<ByteRate>,
    /// `riops`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_iops: Option<IoRate>,
    /// `wiops`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_iops: Option<IoRate>,
}

pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn one() -> u32 {
    1
}

// serde hands over references.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_one(value: &u32) -> bool {
    *value == 1
}

fn yes() -> bool {
    true
}

#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_yes(value: &bool) -> bool {
    *value
}
