// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bytes queued at block devices: the rows of one interval, the largest files by name.

use super::super::drain::drain;
use super::super::fields::Fields;
use super::super::load::Loaded;
use super::super::part::Turn;
use super::dirtied::DirtiedReader;
use super::largest::{Amount, ByFile, tell};
use super::{Paths, device};
use floodline_record::gap::Cause;
use floodline_record::name::Name;
use floodline_record::record::{Event, What};
use floodline_record::traced::bytes::{Class, Submitted};
use floodline_record::traced::{File, Who};
use floodline_record::units::Bytes;

/// Mirrors `struct queued_key`, without the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    class: u32,
    ino: u64,
    cgroup_ino: u64,
    disk: u32,
    dev: u32,
    tgid: u32,
    generation: u32,
}

/// Bytes, requests, the task that queued the first of them, and the process that made the file dirty last, with its cgroup.
#[derive(Clone, Debug, Default)]
struct Sum {
    bytes: u64,
    bios: u64,
    owner: Option<(u32, u64)>,
    comm: Name,
}

impl ByFile for Key {
    fn file(self) -> (u32, u64, u32) {
        (self.dev, self.ino, self.generation)
    }

    fn without_file(self) -> Key {
        Key { ino: 0, generation: 0, ..self }
    }
}

impl Amount for Sum {
    fn size(&self) -> u64 {
        self.bytes
    }

    fn add(&mut self, other: Sum) {
        self.bytes += other.bytes;
        self.bios += other.bios;
    }
}

/// Mirrors `enum class`.
fn class(number: u32) -> Class {
    match number {
        0 => Class::Data,
        1 => Class::Metadata,
        2 => Class::Journal,
        3 => Class::Direct,
        _ => Class::Unknown,
    }
}

pub(super) fn read(
    loaded: &Loaded,
    turn: &Turn<'_>,
    dirtied: &DirtiedReader,
    out: &mut Vec<Event>,
) -> Result<(), Cause> {
    let mut rows = Vec::new();
    for table in ["queued", "queued_unnamed"] {
        drain(&loaded.table(table)?, turn.epoch, |key, entry| {
            let (key, sum) = (key_of(key), sum_of(entry));
            // Files of one owner are added up.
            let tgid = sum.owner.map_or(key.tgid, |(owner, _)| owner);
            rows.push((Key { tgid, ..key }, sum));
        })?;
    }
    tell(rows, &Paths::of(loaded)?, |key, sum, file| out.push(turn.event(row(key, sum, file, turn, dirtied))));
    Ok(())
}

fn key_of(key: &[u8]) -> Key {
    let mut fields = Fields(key);
    let _epoch = fields.u32();
    let (class, ino, cgroup_ino) = (fields.u32(), fields.u64(), fields.u64());
    let (disk, dev, tgid, generation) = (fields.u32(), fields.u32(), fields.u32(), fields.u32());
    Key { class, ino, cgroup_ino, disk, dev, tgid, generation }
}

/// Mirrors `struct queued_entry`.
fn sum_of(entry: &[u8]) -> Sum {
    let mut fields = Fields(entry);
    let (bytes, bios, cgroup_ino, owner, _zero) =
        (fields.u64(), fields.u64(), fields.u64(), fields.u32(), fields.u32());
    Sum { bytes, bios, owner: (owner != 0).then_some((owner, cgroup_ino)), comm: fields.name::<16>() }
}

fn row(key: Key, sum: Sum, file: Option<File>, turn: &Turn<'_>, dirtied: &DirtiedReader) -> What {
    let class = class(key.class);
    let owner = sum.owner.filter(|_| class == Class::Data);
    let who = match owner {
        Some((pid, cgroup_ino)) => Some(Who { pid, comm: dirtied.comm(pid), cgroup_ino }),
        None => {
            (class == Class::Direct).then(|| Who { pid: key.tgid, comm: sum.comm, cgroup_ino: key.cgroup_ino.max(1) })
        }
    };
    What::Submitted(Submitted {
        since: turn.since,
        disk: device(key.disk),
        class,
        device: (class == Class::Data).then(|| device(key.dev)),
        file,
        cgroup_ino: (key.cgroup_ino > 0).then_some(key.cgroup_ino),
        who,
        bytes: Bytes(sum.bytes),
        bios: sum.bios,
    })
}

#[cfg(test)]
mod tests {
    use super::super::super::specimen::Specimen;
    use super::super::PART;
    use super::*;

    #[test]
    fn every_field_is_read_from_where_the_program_put_it() {
        let key = Specimen::of(PART.object, "queued_key");
        let number = |field: &str| key.number(field) as u32;
        let expect = Key {
            class: number("class"),
            ino: key.number("ino"),
            cgroup_ino: key.number("cgroup_ino"),
            disk: number("disk"),
            dev: number("dev"),
            tgid: number("tgid"),
            generation: number("generation"),
        };
        assert_eq!(key_of(&key.bytes), expect);
        let entry = Specimen::of(PART.object, "queued_entry");
        let sum = sum_of(&entry.bytes);
        let owner = (entry.number("owner") as u32, entry.number("owner_cgroup_ino"));
        let expect = (entry.number("bytes"), entry.number("bios"), Some(owner), entry.name("comm"));
        assert_eq!((sum.bytes, sum.bios, sum.owner, sum.comm), expect);
    }
}
