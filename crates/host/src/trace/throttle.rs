// SPDX-License-Identifier: MIT OR Apache-2.0
//! Throttle ledger: who was paused in `balance_dirty_pages`, how long, and by which limit. The sums are made
//! in `bpf/throttle.bpf.c`; here they get their names, and the one thing that no record tells: whether the
//! device has a strict limit.

use super::drain::drain;
use super::fields::Fields;
use super::load::Loaded;
use super::part::{Need, Part, Reader, Table, Turn, Wanted, object};
use super::tracepoint;
use crate::root::SMALL;
use floodline_record::gap::{Cause, Source};
use floodline_record::name::Name;
use floodline_record::record::{Event, What};
use floodline_record::traced::Who;
use floodline_record::traced::throttle::{Domain, ThrottleState, Throttled};
use floodline_record::units::{BytesPerSecond, Nanos, Pages};
use std::collections::BTreeMap;

/// The part.
pub(super) static PART: Part = Part {
    name: "throttle",
    source: Source::TraceThrottle,
    object: object!("throttle"),
    tracepoints: &[Wanted { tracepoint: &tracepoint::BALANCE_DIRTY_PAGES, need: Need::Always }],
    functions: "how long tasks slept, beside what the kernel asked for",
    optional: (&[], ""),
    tables: &[Table { name: "pauses", key: 64, entry: 120 }],
    of_cgroup_writeback: false,
    reader: |_| Box::new(Throttle),
};

struct Throttle;

impl Reader for Throttle {
    fn read(&mut self, loaded: &Loaded, turn: &Turn<'_>, out: &mut Vec<Event>) -> Result<(), Cause> {
        let map = loaded.table("pauses")?;
        let mut all = Vec::new();
        drain(&map, turn.epoch, |key, entry| all.push(throttled(Fields(key), Fields(entry), turn.since)))?;
        let is_measured = loaded.has_functions();
        let mut strict = BTreeMap::new();
        for mut one in all {
            if !is_measured {
                (one.slept_ns, one.slept_ns_max) = (None, None);
            }
            if *strict.entry(one.bdi.clone()).or_insert_with(|| has_strict_limit(turn, &one.bdi)) {
                one.domain = Domain::Strictlimit;
            }
            out.push(turn.event(What::Throttled(Box::new(one))));
        }
        Ok(())
    }
}

/// Mirrors `struct throttle_key` and `struct throttle_entry`.
fn throttled(mut key: Fields<'_>, mut entry: Fields<'_>, since: Nanos) -> Throttled {
    let _epoch = key.u32();
    let domain = match key.u32() {
        1 => Domain::Global,
        2 => Domain::Memcg,
        _ => Domain::Unknown,
    };
    let (wb_cgroup_ino, cgroup_ino, tid, pid) = (key.u64(), key.u64(), key.u32(), key.u32());
    let bdi = key.name::<32>();
    let (pauses, pause_ms, unpaused, pause_ms_max) = (entry.u64(), entry.u64(), entry.u64(), entry.u64());
    let mut pages = || Pages(entry.u64());
    let (limit_pages, setpoint_pages, dirty_pages) = (pages(), pages(), pages());
    let (wb_setpoint_pages, wb_dirty_pages) = (pages(), pages());
    // The kernel's "KBps" are KiB.
    let mut rate = || BytesPerSecond(entry.u64().saturating_mul(1024));
    let (dirty_ratelimit, task_ratelimit) = (rate(), rate());
    let state = ThrottleState {
        limit_pages,
        setpoint_pages,
        dirty_pages,
        wb_setpoint_pages,
        wb_dirty_pages,
        dirty_ratelimit,
        task_ratelimit,
    };
    let (slept_ns, slept_ns_max) = (Nanos(entry.u64()), Nanos(entry.u64()));
    Throttled {
        since,
        who: Who { pid, comm: entry.name::<16>(), cgroup_ino },
        tid,
        bdi,
        wb_cgroup_ino,
        domain,
        pauses,
        pause_ns: Nanos::from_millis(pause_ms),
        pause_ns_max: Nanos::from_millis(pause_ms_max),
        slept_ns: Some(slept_ns),
        slept_ns_max: Some(slept_ns_max),
        unpaused,
        longest: (pauses > 0).then_some(state),
    }
}

/// Whether a device is held to its own share (the file is there since 6.2).
fn has_strict_limit(turn: &Turn<'_>, bdi: &Name) -> bool {
    let path = [b"/sys/class/bdi/", bdi.as_bytes(), b"/strict_limit"].concat();
    turn.root.read(path, SMALL).is_ok_and(|text| text.trim_ascii() == b"1")
}

#[cfg(test)]
mod tests {
    use super::super::specimen::Specimen;
    use super::*;

    #[test]
    fn every_field_is_read_from_where_the_program_put_it() {
        let (key, entry) = (Specimen::of(PART.object, "throttle_key"), Specimen::of(PART.object, "throttle_entry"));
        assert_eq!((key.bytes.len(), entry.bytes.len()), (PART.tables[0].key, PART.tables[0].entry));
        let pages = |field: &str| Pages(entry.number(field));
        let expect = Throttled {
            since: Nanos(7),
            who: Who {
                pid: key.number("tgid") as u32,
                comm: entry.name("comm"),
                cgroup_ino: key.number("task_cgroup_ino"),
            },
            tid: key.number("pid") as u32,
            bdi: key.name("bdi"),
            wb_cgroup_ino: key.number("wb_cgroup_ino"),
            // The second field, and DOMAIN_MEMCG.
            domain: Domain::Memcg,
            pauses: entry.number("pauses"),
            pause_ns: Nanos::from_millis(entry.number("pause_ms")),
            pause_ns_max: Nanos::from_millis(entry.number("pause_ms_max")),
            slept_ns: Some(Nanos(entry.number("slept_ns"))),
            slept_ns_max: Some(Nanos(entry.number("slept_ns_max"))),
            unpaused: entry.number("unpaused"),
            longest: Some(ThrottleState {
                limit_pages: pages("limit_pages"),
                setpoint_pages: pages("setpoint_pages"),
                dirty_pages: pages("dirty_pages"),
                wb_setpoint_pages: pages("wb_setpoint_pages"),
                wb_dirty_pages: pages("wb_dirty_pages"),
                dirty_ratelimit: BytesPerSecond(1024 * entry.number("dirty_ratelimit_kib")),
                task_ratelimit: BytesPerSecond(1024 * entry.number("task_ratelimit_kib")),
            }),
        };
        assert_eq!(throttled(Fields(&key.bytes), Fields(&entry.bytes), Nanos(7)), expect);
    }
}
