// SPDX-License-Identifier: MIT OR Apache-2.0
//! Throttle ledger: tasks that paused in `balance_dirty_pages`, how long, and by which limit. `bpf/throttle.bpf.c` adds
//! up the pauses. This file makes events from the sums, and adds the one fact that the tracepoint lacks: whether the
//! device has a strict limit.

use super::layout::{self, Domain as InProgram, PAUSES, THROTTLE_TABLES, ThrottleEntry, ThrottleKey};
use super::load::Loaded;
use super::part::{Need, Part, Reader, Turn, Wanted, object};
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
    tables: THROTTLE_TABLES,
    of_cgroup_writeback: false,
    reader: |_| Box::new(Throttle),
};

struct Throttle;

impl Reader for Throttle {
    fn read(&mut self, loaded: &Loaded, turn: &Turn<'_>, out: &mut Vec<Event>) -> Result<(), Cause> {
        let mut all = Vec::new();
        PAUSES.of(loaded)?.drain(turn.epoch, |key, entry| all.push(throttled(&key, &entry, turn.since)))?;
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

fn throttled(key: &ThrottleKey, entry: &ThrottleEntry, since: Nanos) -> Throttled {
    // The kernel's "KBps" are KiB.
    let rate = |kib: u64| BytesPerSecond(kib.saturating_mul(1024));
    let state = ThrottleState {
        limit_pages: Pages(entry.limit_pages),
        setpoint_pages: Pages(entry.setpoint_pages),
        dirty_pages: Pages(entry.dirty_pages),
        wb_setpoint_pages: Pages(entry.wb_setpoint_pages),
        wb_dirty_pages: Pages(entry.wb_dirty_pages),
        dirty_ratelimit: rate(entry.dirty_ratelimit_kib),
        task_ratelimit: rate(entry.task_ratelimit_kib),
    };
    Throttled {
        since,
        who: Who { pid: key.tgid, comm: layout::name(&entry.comm), cgroup_ino: key.task_cgroup_ino },
        tid: key.pid,
        bdi: layout::name(&key.bdi),
        wb_cgroup_ino: key.wb_cgroup_ino,
        domain: match InProgram::of(key.domain) {
            Some(InProgram::Global) => Domain::Global,
            Some(InProgram::Memcg) => Domain::Memcg,
            Some(InProgram::Unknown) | None => Domain::Unknown,
        },
        pauses: entry.pauses,
        pause_ns: Nanos::from_millis(entry.pause_ms),
        pause_ns_max: Nanos::from_millis(entry.pause_ms_max),
        slept_ns: Some(Nanos(entry.slept_ns)),
        slept_ns_max: Some(Nanos(entry.slept_ns_max)),
        unpaused: entry.unpaused,
        longest: (entry.pauses > 0).then_some(state),
    }
}

/// Returns whether a device has a strict limit (`strict_limit` exists since 6.2).
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
        assert_eq!(throttled(&key.read(), &entry.read(), Nanos(7)), expect);
    }
}
