// SPDX-License-Identifier: MIT OR Apache-2.0
//! The records between samples: facts, entities, events and gaps. Each is a kind, a length and JSON, so that a reader
//! can skip one that it does not know.

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

/// Takes one item.
pub(super) fn get(cursor: &mut Cursor<'_>) -> Result<Item, Malformed> {
    let kind = cursor.byte()?;
    if kind == STOP {
        return Ok(Item::Stop);
    }
    let json = cursor.bytes()?;
    let record = match kind {
        FACTS => serde_json::from_slice(json).ok().map(Record::Facts),
        ENTITY => serde_json::from_slice(json).ok().map(|(id, entity)| Record::Entity(id, entity)),
        EVENT => serde_json::from_slice(json).ok().map(Record::Event),
        GAP => serde_json::from_slice(json).ok().map(Record::Gap),
        _ => None,
    };
    Ok(record.map_or(Item::Unknown, Item::Record))
}
