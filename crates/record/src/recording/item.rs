// SPDX-License-Identifier: MIT OR Apache-2.0
//! The records between samples: facts, entities, events and gaps. Each is a kind, a length and JSON, so that a reader
//! can skip one that it does not know.

use super::wire::{Cursor, Malformed, put_bytes};
use crate::facts::HostFacts;
use crate::gap::Gap;
use crate::id::{DevId, Entity, EntityId, Hierarchy};
use crate::name::Name;
use crate::record::{Event, Record};
use serde::{Deserialize, Serialize};

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
        ENTITY => numerous(json)
            .or_else(|| serde_json::from_slice(json).ok())
            .map(|(id, entity): (EntityId, Entity)| Record::Entity(id, entity)),
        EVENT => serde_json::from_slice(json).ok().map(Record::Event),
        GAP => serde_json::from_slice(json).ok().map(Record::Gap),
        _ => None,
    };
    Ok(record.map_or(Item::Unknown, Item::Record))
}

#[derive(Deserialize)]
struct Wb {
    bdi: Name,
    cgroup_ino: u64,
}

#[derive(Deserialize)]
struct Cgroup {
    path: Name,
    hierarchy: Hierarchy,
    ino: Option<u64>,
}

#[derive(Deserialize)]
struct CgroupIo {
    cgroup: EntityId,
    dev: DevId,
}

#[derive(Deserialize)]
struct Process {
    pid: u32,
    start_ticks: u64,
    comm: Name,
    cgroup: Option<EntityId>,
    kthread: bool,
}

/// Reads an entity of which a host has hundreds, as this build writes it: its kind first. Known beforehand, the kind needs
/// no copy of all fields. `None` for any other form, which is left to serde.
fn numerous(json: &[u8]) -> Option<(EntityId, Entity)> {
    fn read<'a, T: Deserialize<'a>>(json: &'a [u8]) -> Option<(EntityId, T)> {
        serde_json::from_slice(json).ok()
    }
    let comma = json.iter().position(|byte| *byte == b',')?;
    let kind = json.get(comma + 1..)?.strip_prefix(br#"{"kind":""#)?;
    let kind = kind.get(..kind.iter().position(|byte| *byte == b'"')?)?;
    Some(match kind {
        b"wb" => {
            let (id, Wb { bdi, cgroup_ino }) = read(json)?;
            (id, Entity::Wb { bdi, cgroup_ino })
        }
        b"cgroup" => {
            let (id, Cgroup { path, hierarchy, ino }) = read(json)?;
            (id, Entity::Cgroup { path, hierarchy, ino })
        }
        b"cgroup_io" => {
            let (id, CgroupIo { cgroup, dev }) = read(json)?;
            (id, Entity::CgroupIo { cgroup, dev })
        }
        b"process" => {
            let (id, Process { pid, start_ticks, comm, cgroup, kthread }) = read(json)?;
            (id, Entity::Process { pid, start_ticks, comm, cgroup, kthread })
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numerous_entities_are_read_as_serde_reads_them() {
        let (name, dev) = (Name::new(b"/a\"b\xff"), DevId { major: 8, minor: 16 });
        let process = |cgroup, kthread| Entity::Process {
            pid: u32::MAX,
            start_ticks: u64::MAX,
            comm: name.clone(),
            cgroup,
            kthread,
        };
        let cgroup = |hierarchy, ino| Entity::Cgroup { path: name.clone(), hierarchy, ino };
        let entities = [
            (Entity::Wb { bdi: name.clone(), cgroup_ino: 7 }, true),
            (cgroup(Hierarchy::V2, Some(1)), true),
            (cgroup(Hierarchy::V1Memory, None), true),
            (Entity::CgroupIo { cgroup: EntityId(3), dev }, true),
            (process(Some(EntityId(0)), false), true),
            (process(None, true), true),
            (Entity::Zone { node: 0, name: name.clone() }, false),
            (Entity::Disk { dev, name: name.clone() }, false),
            (Entity::Bdi { name: name.clone() }, false),
        ];
        for (entity, is_numerous) in entities {
            let json = serde_json::to_vec(&(EntityId(12), &entity)).unwrap();
            assert_eq!(serde_json::from_slice::<(EntityId, Entity)>(&json).unwrap(), (EntityId(12), entity.clone()));
            assert_eq!(numerous(&json), is_numerous.then_some((EntityId(12), entity)));
        }
    }

    #[test]
    fn another_form_of_an_entity_is_left_to_serde() {
        let later = br#"[1,{"bdi":"8:0","kind":"wb","cgroup_ino":1}]"#;
        assert_eq!(numerous(later), None);
        let wb = (EntityId(1), Entity::Wb { bdi: "8:0".into(), cgroup_ino: 1 });
        assert_eq!(serde_json::from_slice::<(EntityId, Entity)>(later).unwrap(), wb);
        let more = br#"[1,{"kind":"wb","bdi":"8:0","cgroup_ino":1,"colour":"red"}]"#;
        assert_eq!(numerous(more), Some(wb));
        for broken in
            ["", "[1", "[1,{", "[1,{\"kind\":\"wb", "[1,{\"kind\":\"wb\",\"bdi\":\"8:0\"}]", "[1,{\"kind\":\"wb\"}"]
        {
            assert_eq!(numerous(broken.as_bytes()), None, "{broken}");
        }
    }
}
