// SPDX-License-Identifier: MIT OR Apache-2.0
//! The records between samples: facts, entities, events and gaps. Each is a kind, a length and JSON, so that a reader
//! can skip one that it does not know.

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
    /// An event of a kind without a use. It was not read.
    Unused,
    /// The run is over.
    Stop,
}

/// Takes one item. Passes over events of the kinds in `unused`.
pub(super) fn get(cursor: &mut Cursor<'_>, unused: &[Box<str>]) -> Result<Item, Malformed> {
    let kind = cursor.byte()?;
    if kind == STOP {
        return Ok(Item::Stop);
    }
    let json = cursor.bytes()?;
    let record = match kind {
        FACTS => serde_json::from_slice(json).ok().map(Record::Facts),
        ENTITY => plain::entity(json)
            .or_else(|| serde_json::from_slice(json).ok())
            .map(|(id, entity): (EntityId, Entity)| Record::Entity(id, entity)),
        EVENT if is_one_of(json, unused) => return Ok(Item::Unused),
        EVENT => plain::event(json).or_else(|| serde_json::from_slice(json).ok()).map(Record::Event),
        GAP => serde_json::from_slice(json).ok().map(Record::Gap),
        _ => None,
    };
    Ok(record.map_or(Item::Unknown, Item::Record))
}

/// Whether an event, as this build writes it, is of one of these kinds. False for any other form.
fn is_one_of(json: &[u8], kinds: &[Box<str>]) -> bool {
    let kind = || {
        let time = json.strip_prefix(br#"{"at":"#)?;
        let digits = time.iter().take_while(|byte| byte.is_ascii_digit()).count();
        time.get(digits..)?.strip_prefix(br#","event":""#)
    };
    let is = |event: &[u8], kind: &str| event.strip_prefix(kind.as_bytes()).is_some_and(|rest| rest.starts_with(b"\""));
    !kinds.is_empty() && kind().is_some_and(|event| kinds.iter().any(|kind| is(event, kind)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::What;
    use crate::units::Nanos;

    #[test]
    fn only_events_without_a_use_are_passed_over() {
        let unused = ["task_io".into(), "workload_ended".into()];
        let is_unused = |json: &str| is_one_of(json.as_bytes(), &unused);
        let ended = Event { at: Nanos(u64::MAX), what: What::WorkloadEnded };
        assert!(is_unused(&serde_json::to_string(&ended).unwrap()));
        assert!(is_unused(r#"{"at":7,"event":"task_io","task":"a","copy":0,"since":1,"io":{}}"#));
        assert!(!is_one_of(br#"{"at":7,"event":"task_io"}"#, &[]));
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
}
