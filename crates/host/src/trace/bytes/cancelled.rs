// SPDX-License-Identifier: MIT OR Apache-2.0
//! Dirty bytes that were dropped before they were written: the rows of one interval, the largest files by name.

use super::super::layout::{CANCELLED, CANCELLED_UNNAMED, CancelledEntry, CancelledKey};
use super::super::load::Loaded;
use super::super::part::Turn;
use super::dirtied::{DirtiedReader, bytes};
use super::largest::{Amount, tell};
use super::{Paths, device};
use floodline_record::gap::Cause;
use floodline_record::record::{Event, What};
use floodline_record::traced::bytes::Cancelled;
use floodline_record::traced::{File, Who};

impl Amount for CancelledEntry {
    fn size(&self) -> u64 {
        self.pages
    }

    fn add(&mut self, other: CancelledEntry) {
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
    for table in [CANCELLED, CANCELLED_UNNAMED] {
        table.of(loaded)?.drain(turn.epoch, |key, entry| rows.push((key, entry)))?;
    }
    tell(rows, &Paths::of(loaded)?, |key, sum, file| out.push(turn.event(row(key, sum, file, turn, dirtied))));
    Ok(())
}

fn row(key: CancelledKey, sum: CancelledEntry, file: Option<File>, turn: &Turn<'_>, dirtied: &DirtiedReader) -> What {
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
        let expect = CancelledKey { epoch: 1, dev: 2, ino: 3, generation: 4, tgid: 5 };
        assert_eq!(key.read::<CancelledKey>(), expect);
        let entry = Specimen::of(PART.object, "cancelled_entry");
        let expect = CancelledEntry { pages: entry.number("pages"), cgroup_ino: entry.number("cgroup_ino") };
        assert_eq!(entry.read::<CancelledEntry>(), expect);
    }
}
