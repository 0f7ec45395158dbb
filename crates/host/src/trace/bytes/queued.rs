// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bytes queued at block devices: the rows of one interval, the largest files by name.

use super::super::layout::{self, Class as InProgram, QUEUED, QUEUED_UNNAMED, QueuedEntry, QueuedKey};
use super::super::load::Loaded;
use super::super::part::Turn;
use super::dirtied::DirtiedReader;
use super::largest::{Amount, tell};
use super::{Paths, device};
use floodline_record::gap::Cause;
use floodline_record::record::{Event, What};
use floodline_record::traced::bytes::{Class, Submitted};
use floodline_record::traced::{File, Who};
use floodline_record::units::Bytes;

impl Amount for QueuedEntry {
    fn size(&self) -> u64 {
        self.bytes
    }

    fn add(&mut self, other: QueuedEntry) {
        self.bytes += other.bytes;
        self.bios += other.bios;
    }
}

fn class(number: u32) -> Class {
    match InProgram::of(number) {
        Some(InProgram::Data) => Class::Data,
        Some(InProgram::Metadata) => Class::Metadata,
        Some(InProgram::Journal) => Class::Journal,
        Some(InProgram::Direct) => Class::Direct,
        Some(InProgram::Unknown) | None => Class::Unknown,
    }
}

pub(super) fn read(
    loaded: &Loaded,
    turn: &Turn<'_>,
    dirtied: &DirtiedReader,
    out: &mut Vec<Event>,
) -> Result<(), Cause> {
    let mut rows = Vec::new();
    for table in [QUEUED, QUEUED_UNNAMED] {
        table.of(loaded)?.drain(turn.epoch, |key, entry| {
            // Files of one owner are added up.
            let tgid = if entry.owner == 0 { key.tgid } else { entry.owner };
            rows.push((QueuedKey { tgid, ..key }, entry));
        })?;
    }
    tell(rows, &Paths::of(loaded)?, |key, sum, file| out.push(turn.event(row(key, sum, file, turn, dirtied))));
    Ok(())
}

fn row(key: QueuedKey, sum: QueuedEntry, file: Option<File>, turn: &Turn<'_>, dirtied: &DirtiedReader) -> What {
    let class = class(key.class);
    let who = match class {
        Class::Data if sum.owner != 0 => {
            Some(Who { pid: sum.owner, comm: dirtied.comm(sum.owner), cgroup_ino: sum.owner_cgroup_ino })
        }
        Class::Direct => Some(Who { pid: key.tgid, comm: layout::name(&sum.comm), cgroup_ino: key.cgroup_ino.max(1) }),
        _ => None,
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
        let expect = QueuedKey {
            epoch: number("epoch"),
            class: number("class"),
            ino: key.number("ino"),
            cgroup_ino: key.number("cgroup_ino"),
            disk: number("disk"),
            dev: number("dev"),
            tgid: number("tgid"),
            generation: number("generation"),
        };
        assert_eq!(key.read::<QueuedKey>(), expect);
        let entry = Specimen::of(PART.object, "queued_entry");
        let sum: QueuedEntry = entry.read();
        let owner = (entry.number("owner") as u32, entry.number("owner_cgroup_ino"));
        let expect = (entry.number("bytes"), entry.number("bios"), owner, entry.name("comm"));
        assert_eq!((sum.bytes, sum.bios, (sum.owner, sum.owner_cgroup_ino), layout::name(&sum.comm)), expect);
    }
}
