// SPDX-License-Identifier: MIT OR Apache-2.0
//! The records between samples: facts, entities, events and gaps. Each is a kind, a length and JSON, so that a reader
//! can skip one that it does not know.

use super::decode::Unused;
use super::plain;
use super::wire::{Cursor, Malformed, put_bytes};
use crate::facts::HostFacts;
use crate::gap::Gap;
use crate::id::{Entity, EntityId};
use crate::record::{Event, Record};
use serde::Serialize;

/// No more items; 0 is never an item's kind.
pub(super) const STOP: u8 = 0;
pub(super) const FACTS: u8 = 1;
pub(super) const ENTITY: u8 = 2;
pub(super) const EVENT: u8 = 3;
pub(super) const GAP: u8 = 4;

fn put(out: &mut Vec<u8>, kind: u8, value: &impl Serialize) -> Result<(), serde_json::Error> {
    let json = serde_json::to_vec(value)?;
    out.push(kind);
    put_bytes(out, &json);
    Ok(())
}

pub(super) fn put_facts(out: &mut Vec<u8>, facts: &HostFacts) -> Result<(), serde_json::Error> {
    put(out, FACTS, facts)
}

pub(super) fn put_entity(out: &mut Vec<u8>, id: EntityId, entity: &Entity) -> Result<(), serde_json::Error> {
    put(out, ENTITY, &(id, entity))
}

pub(super) fn put_event(out: &mut Vec<u8>, event: &Event) -> Result<(), serde_json::Error> {
    put(out, EVENT, event)
}

pub(super) fn put_gap(out: &mut Vec<u8>, gap: &Gap) -> Result<(), serde_json::Error> {
    put(out, GAP, gap)
}

/// Ends a run of items.
pub(super) fn put_stop(out: &mut Vec<u8>) {
    out.push(STOP);
}

/// First element of a run of items.
pub(super) enum Item {
    /// A record.
    Record(Record),
    /// An item of a kind that this build does not know.
    Unknown,
    /// The run is over.
    Stop,
}

/// Takes one item. Passes over events without a use.
pub(super) fn get(cursor: &mut Cursor<'_>, unused: Option<&UnusedEvents>) -> Result<Item, Malformed> {
    let (kind, json) = loop {
        let kind = cursor.byte()?;
        if kind == STOP {
            return Ok(Item::Stop);
        }
        let json = cursor.bytes()?;
        if kind != EVENT || !unused.is_some_and(|unused| unused.has(json)) {
            break (kind, json);
        }
    };
    let record = match kind {
        FACTS => serde_json::from_slice(json).ok().map(Record::Facts),
        ENTITY => plain::entity(json)
            .or_else(|| serde_json::from_slice(json).ok())
            .map(|(id, entity): (EntityId, Entity)| Record::Entity(id, entity)),
        EVENT => plain::event(json).or_else(|| serde_json::from_slice(json).ok()).map(Record::Event),
        GAP => serde_json::from_slice(json).ok().map(Record::Gap),
        _ => None,
    };
    Ok(record.map_or(Item::Unknown, Item::Record))
}

/// Events without a use for a reader. An event of another form than this build writes has a use.
pub(super) struct UnusedEvents {
    kinds: Vec<Box<str>>,
    /// Operations whose stalls are kept; `None` keeps all stalls.
    stalls_of: Option<Vec<Box<str>>>,
}

impl UnusedEvents {
    pub(super) fn of(unused: Unused<'_>) -> UnusedEvents {
        let owned = |names: &[&str]| names.iter().map(|name| Box::from(*name)).collect();
        UnusedEvents { kinds: owned(unused.events), stalls_of: unused.stalls_of.map(owned) }
    }

    fn has(&self, json: &[u8]) -> bool {
        let Some(event) = plain::from_kind(json) else { return false };
        let is = |kind: &str| event.strip_prefix(kind.as_bytes()).is_some_and(|rest| rest.starts_with(b"\""));
        let is_unused_stall = || {
            let known = self.stalls_of.as_ref().zip(plain::stalled(event));
            known.is_some_and(|(used, operation)| !used.iter().any(|used| used.as_bytes() == operation))
        };
        is_unused_stall() || self.kinds.iter().any(|kind| is(kind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{TaskName, What};
    use crate::units::Nanos;

    #[test]
    fn only_events_without_a_use_are_passed_over() {
        let events: &[&str] = &["task_io", "workload_ended"];
        let unused = UnusedEvents::of(Unused { events, ..Unused::default() });
        let is_unused = |json: &str| unused.has(json.as_bytes());
        let ended = Event { at: Nanos(u64::MAX), what: What::WorkloadEnded };
        assert!(is_unused(&serde_json::to_string(&ended).unwrap()));
        assert!(is_unused(r#"{"at":7,"event":"task_io","task":"a","copy":0,"since":1,"io":{}}"#));
        assert!(!UnusedEvents::of(Unused::default()).has(br#"{"at":7,"event":"task_io"}"#));
        for other in [
            r#"{"at":7,"event":"task_io_more"}"#,
            r#"{"at":7,"event":"task"}"#,
            r#"{"at":7,"event":"task_io"#,
            r#"{"event":"task_io","at":7}"#,
            r#"{"at": 7,"event":"task_io"}"#,
            "",
        ] {
            assert!(!is_unused(other), "{other}");
        }
    }

    #[test]
    fn stalls_of_some_operations_are_kept() {
        let stall = |task: &str, operation: &str| {
            let task = TaskName { task: task.into(), copy: 3 };
            let what = What::TaskStall { task, operation: operation.into(), lasted: Nanos::SECOND };
            serde_json::to_vec(&Event { at: Nanos(7), what }).unwrap()
        };
        let unused = |stalls_of| UnusedEvents::of(Unused { stalls_of, ..Unused::default() });
        assert!(!unused(None).has(&stall("a", "write")));
        let used = unused(Some(&["umount"]));
        for (task, operation, is_unused) in [
            ("a", "write", true),
            ("a", "umount", false),
            ("umount", "fsync", true),
            ("a", "umounts", true),
            ("", "", true),
            // Names with an escape are read as a whole.
            ("a\"b", "write", false),
            ("a", "umo\\unt", false),
            ("a", "\u{7}umount", false),
            (r#"a","copy":3,"operation":"umount","lasted":1}"#, "write", false),
            ("a", r#"write","operation":"umount"#, false),
        ] {
            assert_eq!(used.has(&stall(task, operation)), is_unused, "{task} {operation}");
        }
        let longest =
            r#"{"at":7,"event":"task_stall","task":"a","copy":3,"operation":"write","lasted":18446744073709551615}"#;
        assert!(used.has(longest.as_bytes()));
        let ended = Event { at: Nanos(7), what: What::WorkloadEnded };
        assert!(!used.has(&serde_json::to_vec(&ended).unwrap()));
        let whole = stall("a", "write");
        for end in 0..whole.len() {
            assert!(!used.has(&whole[..end]), "{end}");
        }
        for other in [
            r#"{"at":7,"event":"task_stall","operation":"write","task":"a","copy":3,"lasted":1}"#,
            r#"{"at":7,"event":"task_stall","task":"a","copy":3,"operation":"write","lasted":-1}"#,
            r#"{"at":7,"event":"task_stall","task":"a","copy":3,"operation":"write","lasted":1,"more":2}"#,
            r#"{"at":7,"event":"task_stall","task":"a","copy":3,"operation":"write","lasted":1} "#,
            r#"{"at":7,"event":"task_stall","task":"a","copy":3,"operation":"write","lasted":01}"#,
            r#"{"at":7,"event":"task_stall","task":"a","copy":3,"operation":"write","lasted":}"#,
            r#"{"at":7,"event":"task_stall","task":"a","copy":3,"operation":"write","lasted":18446744073709551616}"#,
        ] {
            assert!(!used.has(other.as_bytes()), "{other}");
        }
    }
}
