// SPDX-License-Identifier: MIT OR Apache-2.0
//! Dirty bytes that were dropped before they were written: the rows of one interval, the largest files by name.

use super::super::drain::drain;
use super::super::fields::Fields;
use super::super::load::Loaded;
use super::super::part::Turn;
use super::dirtied::{DirtiedReader, bytes};
use super::largest::{Amount, ByFile, tell};
use super::{Paths, device};
use floodline_record::gap::Cause;
use floodline_record::record::{Event, What};
use floodline_record::traced::bytes::Cancelled;
use floodline_record::traced::{File, Who};

/// Mirrors `struct cancelled_key`, without the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    dev: u32,
    ino: u64,
    generation: u32,
    tgid: u32,
}

/// Mirrors `struct cancelled_entry`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sum {
    pages: u64,
    cgroup_ino: u64,
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
        self.pages
    }

    fn add(&mut self, other: Sum) {
        self.pages += other.pages;
    }
}

pub(super) fn read(
    loaded: &Loaded,
    turn: &Turn<'_>,
    dirtied: &DirtiedReader,
    out: &mut Vec<Event>,
) -> Result<(), Cause> {
    let mut rows = Vec::new();
    for table in ["cancelled", "cancelled_unnamed"] {
        drain(&loaded.table(table)?, turn.epoch, |key, entry| rows.push((key_of(key), sum_of(entry))))?;
    }
    tell(rows, &Paths::of(loaded)?, |key, sum, file| out.push(turn.event(row(key, sum, file, turn, dirtied))));
    Ok(())
}

fn key_of(key: &[u8]) -> Key {
    let mut fields = Fields(key);
    let (_epoch, dev, ino) = (fields.u32(), fields.u32(), fields.u64());
    let (generation, tgid) = (fields.u32(), fields.u32());
    Key { dev, ino, generation, tgid }
}

fn sum_of(entry: &[u8]) -> Sum {
    let mut fields = Fields(entry);
    Sum { pages: fields.u64(), cgroup_ino: fields.u64() }
}

fn row(key: Key, sum: Sum, file: Option<File>, turn: &Turn<'_>, dirtied: &DirtiedReader) -> What {
    What::Cancelled(Cancelled {
        since: turn.since,
        who: Who { pid: key.tgid, comm: dirtied.comm(key.tgid), cgroup_ino: sum.cgroup_ino },
        device: device(key.dev),
        file,
        bytes: bytes(sum.pages),
    })
}

#[cfg(test)]
mod tests {
    use super::super::super::specimen::Specimen;
    use super::super::PART;
    use super::*;

    #[test]
    fn every_field_is_read_from_where_the_program_put_it() {
        let key = Specimen::of(PART.object, "cancelled_key");
        let number = |field: &str| key.number(field) as u32;
        let expect =
            Key { dev: number("dev"), ino: key.number("ino"), generation: number("generation"), tgid: number("tgid") };
        assert_eq!(key_of(&key.bytes), expect);
        let entry = Specimen::of(PART.object, "cancelled_entry");
        let expect = Sum { pages: entry.number("pages"), cgroup_ino: entry.number("cgroup_ino") };
        assert_eq!(sum_of(&entry.bytes), expect);
    }
}
