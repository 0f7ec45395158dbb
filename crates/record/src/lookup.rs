// SPDX-License-Identifier: MIT OR Apache-2.0
//! Indexes of a window's devices, mounts and entities by name or number. Each lookup takes logarithmic time, so that
//! the work of a rule grows with the number of devices and mounts, and not with their product.

use crate::facts::{BlockDevice, HostFacts, Mount, Stack};
use crate::id::{DevId, Entity, EntityId};
use crate::name::Name;
use crate::units::Nanos;
use crate::window::Window;
use std::collections::{BTreeMap, BTreeSet};

/// Indexes of a window by name and number. If two entries have the same name, the first counts.
#[derive(Clone, Debug, Default)]
pub struct Lookup {
    devices: BTreeMap<DevId, usize>,
    /// Devices by the source of a mount: the name below `/dev`.
    sources: BTreeMap<Vec<u8>, DevId>,
    /// Names of disks by number, and numbers by name.
    disk_names: BTreeMap<DevId, Name>,
    disk_numbers: BTreeMap<Name, DevId>,
    /// Disks with readings.
    disks: BTreeMap<DevId, EntityId>,
    bdis: BTreeMap<Name, EntityId>,
    cgroups: BTreeMap<u64, EntityId>,
    /// Wbs with readings by the name of their bdi, and the time of the latest reading of any wb.
    wbs: BTreeMap<Name, Vec<EntityId>>,
    wbs_read: Option<Nanos>,
    /// Devices on which another device is built.
    carriers: BTreeSet<DevId>,
    /// Mounts by the number of their superblock, and by the whole device they are on.
    mounts_of_number: BTreeMap<DevId, Vec<usize>>,
    mounts_of_device: BTreeMap<DevId, Vec<usize>>,
    /// The last mount in each place.
    mount_points: BTreeMap<Name, usize>,
}

impl Lookup {
    pub(crate) fn of(window: &Window) -> Lookup {
        let mut lookup = Lookup::default();
        for (id, entity) in &window.entities {
            match entity {
                Entity::Disk { dev, name } => {
                    lookup.disk_names.entry(*dev).or_insert_with(|| name.clone());
                    lookup.disk_numbers.entry(name.clone()).or_insert(*dev);
                    if window.disks.contains_key(id) {
                        lookup.disks.entry(*dev).or_insert(*id);
                    }
                }
                Entity::Bdi { name } => {
                    lookup.bdis.entry(name.clone()).or_insert(*id);
                }
                Entity::Wb { bdi, .. } => {
                    if let Some(span) = window.wbs.get(id) {
                        lookup.wbs.entry(bdi.clone()).or_default().push(*id);
                        lookup.wbs_read = lookup.wbs_read.max(Some(span.last_at));
                    }
                }
                Entity::Cgroup { ino: Some(ino), .. } => {
                    lookup.cgroups.entry(*ino).or_insert(*id);
                }
                _ => {}
            }
        }
        if let Some(facts) = &window.facts {
            lookup.add_facts(facts);
        }
        lookup
    }

    fn add_facts(&mut self, facts: &HostFacts) {
        for (at, device) in facts.devices.iter().enumerate() {
            self.devices.entry(device.dev).or_insert(at);
            self.sources.entry(device.name.as_bytes().to_vec()).or_insert(device.dev);
            if let Stack::Dm { name } = &device.stack {
                self.sources.entry([b"mapper/", name.as_bytes()].concat()).or_insert(device.dev);
            }
        }
        for other in &facts.devices {
            for slave in &other.slaves {
                let below = [*slave, self.whole_in(Some(facts), *slave)];
                self.carriers.extend(below.into_iter().filter(|below| *below != other.dev));
            }
        }
        for (at, mount) in facts.mounts.iter().enumerate() {
            self.mounts_of_number.entry(mount.dev).or_default().push(at);
            self.mount_points.insert(mount.mount_point.clone(), at);
            if let Some(dev) = self.number_of_mount(mount) {
                let whole = self.whole_in(Some(facts), dev);
                self.mounts_of_device.entry(whole).or_default().push(at);
            }
        }
    }

    /// Returns the facts about a device.
    pub fn device<'a>(&self, facts: Option<&'a HostFacts>, dev: DevId) -> Option<&'a BlockDevice> {
        facts?.devices.get(*self.devices.get(&dev)?).filter(|device| device.dev == dev)
    }

    /// Returns the entity with the readings of a device.
    pub fn disk(&self, dev: DevId) -> Option<EntityId> {
        self.disks.get(&dev).copied()
    }

    /// Returns the kernel name of a device among the entities.
    pub fn disk_name(&self, dev: DevId) -> Option<&Name> {
        self.disk_names.get(&dev)
    }

    /// Returns the entity of a backing device info.
    pub fn bdi(&self, name: &Name) -> Option<EntityId> {
        self.bdis.get(name).copied()
    }

    /// Returns the time of the latest reading of any wb, and the wbs of a bdi.
    pub fn wbs(&self, bdi: &Name) -> (Option<Nanos>, &[EntityId]) {
        (self.wbs_read, self.wbs.get(bdi).map(Vec::as_slice).unwrap_or_default())
    }

    /// Returns the entity of a cgroup by the inode number of its directory.
    pub fn cgroup(&self, ino: u64) -> Option<EntityId> {
        self.cgroups.get(&ino).copied()
    }

    /// Returns the whole device of a number: the device itself unless it is a partition.
    pub fn whole(&self, window: &Window, dev: DevId) -> DevId {
        self.whole_in(window.facts.as_ref(), dev)
    }

    fn whole_in(&self, facts: Option<&HostFacts>, dev: DevId) -> DevId {
        match self.device(facts, dev) {
            Some(device) => device.partition_of.unwrap_or(dev),
            None => self.disk_names.get(&dev).and_then(|name| self.whole_by_name(name)).unwrap_or(dev),
        }
    }

    /// Returns whether a device is a partition.
    pub fn is_partition(&self, window: &Window, dev: DevId, name: &Name) -> bool {
        match self.device(window.facts.as_ref(), dev) {
            Some(device) => device.partition_of.is_some(),
            None => self.whole_by_name(name).is_some(),
        }
    }

    /// Without facts, `sda1` is a partition when there is an `sda`, and `nvme0n1p2` when there is an `nvme0n1`.
    fn whole_by_name(&self, name: &Name) -> Option<DevId> {
        let stem = name.as_bytes().trim_ascii_end_digits();
        if stem.len() == name.as_bytes().len() {
            return None;
        }
        let named = |whole: &[u8]| self.disk_numbers.get(&Name::new(whole)).copied();
        match stem.strip_suffix(b"p").filter(|whole| whole.last().is_some_and(u8::is_ascii_digit)) {
            Some(whole) => named(whole).or_else(|| named(stem)),
            None => named(stem),
        }
    }

    /// Returns whether another block device is built on a device or on a partition of it.
    pub fn carries_a_device(&self, dev: DevId) -> bool {
        self.carriers.contains(&dev)
    }

    /// Returns the number of the block device of a mount; `None` for filesystems without one. Anonymous device numbers
    /// (btrfs) are resolved by the mount's source.
    pub fn number_of_mount(&self, mount: &Mount) -> Option<DevId> {
        match mount.dev.major {
            0 => self.sources.get(mount.source.as_bytes().strip_prefix(b"/dev/")?).copied(),
            _ => Some(mount.dev),
        }
    }

    /// Returns the mounts of a superblock by its number, in order.
    pub fn mounts_of_number<'a>(&self, facts: &'a HostFacts, dev: DevId) -> impl Iterator<Item = &'a Mount> {
        at(facts, self.mounts_of_number.get(&dev))
    }

    /// Returns the mounts of filesystems on a whole device or its partitions, in order.
    pub fn mounts_of_device<'a>(&self, facts: &'a HostFacts, dev: DevId) -> impl Iterator<Item = &'a Mount> {
        at(facts, self.mounts_of_device.get(&dev))
    }

    /// Returns the mount that holds a file: that with the longest mount point, and the last of several in one place.
    pub fn mount_of_file<'a>(&self, facts: &'a HostFacts, file: &Name) -> Option<&'a Mount> {
        let path = file.as_bytes().get(..file.as_bytes().len().min(PATH_MAX))?;
        let ends = (0..path.len()).rev().filter(|&end| path.get(end) == Some(&b'/'));
        let above = ends.filter_map(|end| path.get(..end)).chain(path.first().map(|_| b"/".as_slice()));
        let above = [file.as_bytes()].into_iter().filter(|path| path.len() <= PATH_MAX).chain(above);
        let found = above.filter(|point| !point.is_empty()).find_map(|point| self.mount_points.get(&Name::new(point)));
        facts.mounts.get(*found?)
    }
}

/// Longest path that the kernel accepts, bytes (`PATH_MAX`).
const PATH_MAX: usize = 4096;

fn at<'a>(facts: &'a HostFacts, places: Option<&Vec<usize>>) -> impl Iterator<Item = &'a Mount> {
    let places = places.cloned().unwrap_or_default();
    places.into_iter().filter_map(|at| facts.mounts.get(at))
}

/// Removes the digits at the end of a name.
trait TrimDigits {
    fn trim_ascii_end_digits(&self) -> &[u8];
}

impl TrimDigits for [u8] {
    fn trim_ascii_end_digits(&self) -> &[u8] {
        let digits = self.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
        self.get(..self.len() - digits).unwrap_or_default()
    }
}
