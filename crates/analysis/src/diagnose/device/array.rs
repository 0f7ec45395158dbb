// SPDX-License-Identifier: MIT OR Apache-2.0
//! Disks that one layer joins: the members of a mirror, of stripes or of a joined volume. All filesystems on them use each
//! member, so that what holds for several of them is one event. Bytes of members are not added here.

use super::Device;
use crate::diagnose::derived::Derived;
use floodline_record::id::EntityId;

/// Something seen on one disk, or on several members of one array.
pub struct Joined<T> {
    /// The worst of them.
    pub worst: T,
    /// The disk's name, or the array's with those of its members: `md0 (sda, sdb)`.
    pub name: String,
    /// Names of the disks.
    pub disks: Vec<String>,
}

/// Joins what was seen on members of one array, in the order of the first of each. `badness` chooses the worst.
pub fn joined<'a, T: Copy>(
    derived: &Derived<'a>,
    seen: impl IntoIterator<Item = T>,
    disk: impl Fn(T) -> Device<'a>,
    badness: impl Fn(T) -> f64,
) -> Vec<Joined<T>> {
    let mut arrays: Vec<(Option<EntityId>, Joined<T>)> = Vec::new();
    for one in seen {
        let member = disk(one);
        let array = array_of(derived, &member);
        let known = arrays.iter_mut().find(|(id, _)| id.is_some() && *id == array.map(|array| array.id));
        let Some((_, joined)) = known else {
            let name = member.name.to_string();
            arrays.push((array.map(|array| array.id), Joined { worst: one, disks: vec![name.clone()], name }));
            continue;
        };
        joined.disks.push(member.name.to_string());
        joined.name = format!("{} ({})", array.map_or(member.name, |array| array.name), joined.disks.join(", "));
        if badness(one) > badness(joined.worst) {
            joined.worst = one;
        }
    }
    arrays.into_iter().map(|(_, joined)| joined).collect()
}

/// The layer that joins a disk with others, where nothing else uses the disk.
fn array_of<'a>(derived: &Derived<'a>, disk: &Device<'_>) -> Option<Device<'a>> {
    let uses = |drain: &&Device<'a>| drain.id != disk.id && drain.bottoms().iter().any(|bottom| bottom.id == disk.id);
    let mut users = derived.drains().iter().filter(uses);
    let array = users.next().filter(|_| users.next().is_none() && disk.mounts().is_empty())?;
    (array.bottoms().len() > 1).then_some(*array)
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_testkit::{Fixture, dev_of};

    #[test]
    fn members_of_an_array_are_one_and_a_disk_with_other_users_stands_alone() {
        let fixture = |below: &'static [&'static str], root: &'static str| {
            let disks = ["sda", "sdb", "sdc", "md0"].into_iter();
            disks.fold(Fixture::healthy(), |host, name| host.disk(name, |_, _| {})).facts(move |facts| {
                facts.mounts.iter_mut().for_each(|mount| mount.dev = dev_of(root));
                for device in facts.devices.iter_mut().filter(|device| device.name.to_string() == "md0") {
                    device.slaves = below.iter().map(|name| dev_of(name)).collect();
                }
            })
        };
        let names = |below, root| {
            let window = fixture(below, root).window();
            let derived = Derived::of(&window);
            let disks: Vec<(usize, Device<'_>)> = derived.disks().iter().copied().enumerate().collect();
            let all = joined(&derived, disks.iter(), |(_, disk)| *disk, |(at, _)| *at as f64);
            let text = all.iter().map(|one| format!("{}/{}", one.name, one.worst.1.name));
            text.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(names(&["sda", "sdb"], "md0"), "md0 (sda, sdb)/sdb sdc/sdc");
        assert_eq!(names(&["sda", "sdb"], "sda"), "sda/sda sdb/sdb sdc/sdc");
        assert_eq!(names(&["sda"], "md0"), "sda/sda sdb/sdb sdc/sdc");
    }
}
