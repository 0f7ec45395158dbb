// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why the flusher ran. The sums are made in `bpf/flusher.bpf.c`; here the reason gets the word that this
//! kernel prints for it: its numbers changed between releases.

use super::drain::drain;
use super::fields::Fields;
use super::load::Loaded;
use super::part::{Need, Part, Reader, Table, Turn, Wanted, object};
use super::tracefs::Tracefs;
use super::tracepoint;
use crate::parse::trace_format;
use floodline_record::gap::{Cause, Source};
use floodline_record::record::{Event, What};
use floodline_record::traced::flusher::Flushed;
use floodline_record::units::{Nanos, Pages};
use std::collections::BTreeMap;

/// The part.
pub(super) static PART: Part = Part {
    name: "flusher",
    source: Source::TraceFlusher,
    object: object!("flusher"),
    tracepoints: &[
        Wanted { tracepoint: &tracepoint::WRITEBACK_START, need: Need::Always },
        Wanted { tracepoint: &tracepoint::WRITEBACK_WRITTEN, need: Need::Always },
    ],
    functions: "",
    optional: (&[], ""),
    tables: &[Table { name: "flushes", key: 48, entry: 40 }],
    of_cgroup_writeback: false,
    reader: |tracefs| Box::new(Flusher { reasons: reasons(tracefs) }),
};

struct Flusher {
    reasons: BTreeMap<u64, String>,
}

/// The words of `enum wb_reason`; without them reasons are shown by number.
fn reasons(tracefs: &Tracefs<'_>) -> BTreeMap<u64, String> {
    let text = tracefs.format(tracepoint::WRITEBACK_START.names[0]).unwrap_or_default();
    trace_format::symbols(&text, "reason")
}

impl Reader for Flusher {
    fn read(&mut self, loaded: &Loaded, turn: &Turn<'_>, out: &mut Vec<Event>) -> Result<(), Cause> {
        drain(&loaded.table("flushes")?, turn.epoch, |key, entry| {
            let flushed = flushed(Fields(key), Fields(entry), turn.since, &self.reasons);
            out.push(turn.event(What::Flushed(Box::new(flushed))));
        })
    }
}

/// Mirrors `struct flusher_key` and `struct flusher_entry`.
fn flushed(mut key: Fields<'_>, mut entry: Fields<'_>, since: Nanos, reasons: &BTreeMap<u64, String>) -> Flushed {
    let _epoch = key.u32();
    let reason = u64::from(key.u32());
    Flushed {
        since,
        wb_cgroup_ino: key.u64(),
        bdi: key.name::<32>(),
        reason: reasons.get(&reason).cloned().unwrap_or_else(|| reason.to_string()).into(),
        rounds: entry.u64(),
        sync_rounds: entry.u64(),
        pages: Pages(entry.u64()),
        busy_ns: Nanos(entry.u64()),
        busy_ns_max: Nanos(entry.u64()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::specimen::Specimen;
    use super::*;

    #[test]
    fn every_field_is_read_from_where_the_program_put_it() {
        let (key, entry) = (Specimen::of(PART.object, "flusher_key"), Specimen::of(PART.object, "flusher_entry"));
        assert_eq!((key.bytes.len(), entry.bytes.len()), (PART.tables[0].key, PART.tables[0].entry));
        let expect = Flushed {
            since: Nanos(7),
            bdi: key.name("bdi"),
            wb_cgroup_ino: key.number("wb_cgroup_ino"),
            reason: "periodic".into(),
            rounds: entry.number("rounds"),
            sync_rounds: entry.number("sync_rounds"),
            pages: Pages(entry.number("pages")),
            busy_ns: Nanos(entry.number("busy_ns")),
            busy_ns_max: Nanos(entry.number("busy_ns_max")),
        };
        let words = BTreeMap::from([(key.number("reason"), "periodic".to_owned())]);
        assert_eq!(flushed(Fields(&key.bytes), Fields(&entry.bytes), Nanos(7), &words), expect);
        let nameless = flushed(Fields(&key.bytes), Fields(&entry.bytes), Nanos(7), &BTreeMap::new());
        assert_eq!(nameless.reason, key.number("reason").to_string());
    }
}
