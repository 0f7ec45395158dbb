// SPDX-License-Identifier: MIT OR Apache-2.0
//! Flusher ledger: why the flusher ran. `bpf/flusher.bpf.c` adds up its rounds. This file translates the number of the
//! reason to the word that this kernel prints: the numbers changed between releases.

use super::layout::{self, FLUSHER_TABLES, FLUSHES, FlusherEntry, FlusherKey};
use super::load::Loaded;
use super::part::{Need, Part, Reader, Turn, Wanted, object};
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
    tables: FLUSHER_TABLES,
    of_cgroup_writeback: false,
    reader: |tracefs| Box::new(Flusher { reasons: reasons(tracefs) }),
};

struct Flusher {
    reasons: BTreeMap<u64, String>,
}

/// Reads the words of `enum wb_reason`. Without them reasons are shown by number.
fn reasons(tracefs: &Tracefs<'_>) -> BTreeMap<u64, String> {
    let text = tracefs.format(tracepoint::WRITEBACK_START.names[0]).unwrap_or_default();
    trace_format::symbols(&text, "reason")
}

impl Reader for Flusher {
    fn read(&mut self, loaded: &Loaded, turn: &Turn<'_>, out: &mut Vec<Event>) -> Result<(), Cause> {
        FLUSHES.of(loaded)?.drain(turn.epoch, |key, entry| {
            let flushed = flushed(&key, &entry, turn.since, &self.reasons);
            out.push(turn.event(What::Flushed(Box::new(flushed))));
        })
    }
}

fn flushed(key: &FlusherKey, entry: &FlusherEntry, since: Nanos, reasons: &BTreeMap<u64, String>) -> Flushed {
    let reason = reasons.get(&u64::from(key.reason)).cloned().unwrap_or_else(|| key.reason.to_string());
    Flushed {
        since,
        wb_cgroup_ino: key.wb_cgroup_ino,
        bdi: layout::name(&key.bdi),
        reason: reason.into(),
        rounds: entry.rounds,
        sync_rounds: entry.sync_rounds,
        pages: Pages(entry.pages),
        busy_ns: Nanos(entry.busy_ns),
        busy_ns_max: Nanos(entry.busy_ns_max),
    }
}

#[cfg(test)]
mod tests {
    use super::super::specimen::Specimen;
    use super::*;

    #[test]
    fn every_field_is_read_from_where_the_program_put_it() {
        let (key, entry) = (Specimen::of(PART.object, "flusher_key"), Specimen::of(PART.object, "flusher_entry"));
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
        assert_eq!(flushed(&key.read(), &entry.read(), Nanos(7), &words), expect);
        let nameless = flushed(&key.read(), &entry.read(), Nanos(7), &BTreeMap::new());
        assert_eq!(nameless.reason, key.number("reason").to_string());
    }
}
