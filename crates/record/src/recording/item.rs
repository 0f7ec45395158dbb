// SPDX-License-Identifier: MIT OR Apache-2.0
//! The records between samples: facts, entities, events and gaps. Each is a kind, a length and JSON, so that a reader
//! can skip one that it does not know.

use super::wire::{Cursor, Malformed, put_bytes};
use crate::facts::HostFacts;
use crate::gap::Gap;
use crate::id::{DevId, Entity, EntityId, Hierarchy};
use crate::name::Name;
use crate::record::{Event, Record};
use serde::Serialize;
use std::str::FromStr;

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

/// Reads an entity of which a host has hundreds, exactly as this build writes it. `None` for any other form, which is left to
/// serde, and for names with characters that JSON or a [`Name`] escapes.
fn numerous(json: &[u8]) -> Option<(EntityId, Entity)> {
    let mut text = Plain(json);
    let id = EntityId(text.after(b"[")?.number()?);
    let entity = match text.after(br#",{"kind":"#)?.string()? {
        "wb" => {
            let bdi = Name::from(text.after(br#","bdi":"#)?.string()?);
            Entity::Wb { bdi, cgroup_ino: text.after(br#","cgroup_ino":"#)?.number()? }
        }
        "cgroup" => {
            let path = Name::from(text.after(br#","path":"#)?.string()?);
            let hierarchy = match text.after(br#","hierarchy":"#)?.string()? {
                "v2" => Hierarchy::V2,
                "v1_memory" => Hierarchy::V1Memory,
                "v1_blkio" => Hierarchy::V1Blkio,
                _ => return None,
            };
            Entity::Cgroup { path, hierarchy, ino: text.after(br#","ino":"#)?.number_or_null()? }
        }
        "cgroup_io" => {
            let cgroup = EntityId(text.after(br#","cgroup":"#)?.number()?);
            let (major, minor) = text.after(br#","dev":"#)?.string()?.split_once(':')?;
            Entity::CgroupIo { cgroup, dev: DevId { major: whole(major)?, minor: whole(minor)? } }
        }
        "process" => Entity::Process {
            pid: text.after(br#","pid":"#)?.number()?,
            start_ticks: text.after(br#","start_ticks":"#)?.number()?,
            comm: Name::from(text.after(br#","comm":"#)?.string()?),
            cgroup: text.after(br#","cgroup":"#)?.number_or_null()?.map(EntityId),
            kthread: text.after(br#","kthread":"#)?.boolean()?,
        },
        _ => return None,
    };
    text.after(b"}]")?.0.is_empty().then_some((id, entity))
}

/// The rest of a JSON text without spaces.
struct Plain<'a>(&'a [u8]);

impl<'a> Plain<'a> {
    /// Passes over what follows, if it does.
    fn skip(&mut self, expected: &[u8]) -> bool {
        let rest = self.0.strip_prefix(expected);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    /// The text after what is expected.
    fn after(&mut self, expected: &[u8]) -> Option<&mut Plain<'a>> {
        self.skip(expected).then_some(self)
    }

    /// Takes the text before the first byte that does not belong.
    fn take(&mut self, belongs: impl Fn(&u8) -> bool) -> Option<&'a str> {
        let end = self.0.iter().position(|byte| !belongs(byte))?;
        let (taken, rest) = self.0.split_at_checked(end)?;
        self.0 = rest;
        std::str::from_utf8(taken).ok()
    }

    /// Reads a string of printable ASCII characters without an escape.
    fn string(&mut self) -> Option<&'a str> {
        let text = self.after(b"\"")?.take(|byte| matches!(byte, b' ' | b'!' | b'#'..=b'[' | b']'..=b'~'))?;
        self.skip(b"\"").then_some(text)
    }

    fn number<T: FromStr>(&mut self) -> Option<T> {
        whole(self.take(u8::is_ascii_digit)?)
    }

    fn boolean(&mut self) -> Option<bool> {
        let is_true = self.skip(b"true");
        (is_true || self.skip(b"false")).then_some(is_true)
    }

    fn number_or_null<T: FromStr>(&mut self) -> Option<Option<T>> {
        if self.skip(b"null") { Some(None) } else { self.number().map(Some) }
    }
}

/// Reads a whole number as JSON has it: digits only, and none before them.
fn whole<T: FromStr>(text: &str) -> Option<T> {
    let is_json = text == "0" || text.starts_with(|first| matches!(first, '1'..='9'));
    text.parse().ok().filter(|_| is_json)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What [`get`] makes of an entity.
    fn read(json: &[u8]) -> Option<(EntityId, Entity)> {
        let mut bytes = vec![ENTITY];
        put_bytes(&mut bytes, json);
        match get(&mut Cursor::new(&bytes)).unwrap() {
            Item::Record(Record::Entity(id, entity)) => Some((id, entity)),
            _ => None,
        }
    }

    #[test]
    fn numerous_entities_are_read_as_serde_reads_them() {
        let dev = DevId { major: 8, minor: 16 };
        for (name, is_plain) in [(&b"/a b!~.slice"[..], true), (b"", true), (b"/a\"b", false), (b"/a\\b\xff\n", false)]
        {
            let name = Name::new(name);
            let process = |cgroup, kthread| Entity::Process {
                pid: u32::MAX,
                start_ticks: u64::MAX,
                comm: name.clone(),
                cgroup,
                kthread,
            };
            let cgroup = |hierarchy, ino| Entity::Cgroup { path: name.clone(), hierarchy, ino };
            let entities = [
                (Entity::Wb { bdi: name.clone(), cgroup_ino: 7 }, is_plain),
                (cgroup(Hierarchy::V2, Some(1)), is_plain),
                (cgroup(Hierarchy::V1Memory, None), is_plain),
                (cgroup(Hierarchy::V1Blkio, Some(0)), is_plain),
                (Entity::CgroupIo { cgroup: EntityId(3), dev }, true),
                (process(Some(EntityId(0)), false), is_plain),
                (process(None, true), is_plain),
                (Entity::Zone { node: 0, name: name.clone() }, false),
                (Entity::Disk { dev, name: name.clone() }, false),
                (Entity::Bdi { name: name.clone() }, false),
            ];
            for (entity, is_numerous) in entities {
                let json = serde_json::to_vec(&(EntityId(12), &entity)).unwrap();
                let expect = Some((EntityId(12), entity));
                assert_eq!(serde_json::from_slice(&json).ok(), expect);
                assert_eq!(read(&json), expect);
                assert_eq!(numerous(&json), expect.filter(|_| is_numerous));
            }
        }
    }

    #[test]
    fn another_form_of_an_entity_is_left_to_serde() {
        let wb = (EntityId(1), Entity::Wb { bdi: "8:0".into(), cgroup_ino: 1 });
        let other = [
            r#"[1,{"bdi":"8:0","kind":"wb","cgroup_ino":1}]"#,
            r#"[1,{"kind":"wb","bdi":"8:0","cgroup_ino":1,"colour":"red"}]"#,
            r#"[1, {"kind":"wb","bdi":"8:0","cgroup_ino":1}]"#,
            r#"[1,{"kind":"wb","bdi":"\u0038:0","cgroup_ino":1}]"#,
        ];
        for other in other {
            assert_eq!((numerous(other.as_bytes()), read(other.as_bytes())), (None, Some(wb.clone())), "{other}");
        }
        let broken = [
            "",
            "[1",
            "[1,{",
            r#"[1,{"kind":"wb"#,
            r#"[1,{"kind":"wb","bdi":"8:0"}]"#,
            r#"[1,{"kind":"wb"}]"#,
            r#"[01,{"kind":"wb","bdi":"8:0","cgroup_ino":1}]"#,
            r#"[1,{"kind":"wb","bdi":"8:0","cgroup_ino":-1}]"#,
            r#"[1,{"kind":"wb","bdi":"8:0","cgroup_ino":18446744073709551616}]"#,
            r#"[4294967296,{"kind":"wb","bdi":"8:0","cgroup_ino":1}]"#,
            r#"[1,{"kind":"wb","bdi":"8:0","cgroup_ino":1}]]"#,
            r#"[1,{"kind":"cgroup_io","cgroup":1,"dev":"8"}]"#,
            r#"[1,{"kind":"cgroup","path":"/","hierarchy":"v3","ino":null}]"#,
        ];
        for broken in broken {
            assert_eq!((numerous(broken.as_bytes()), read(broken.as_bytes())), (None, None), "{broken}");
        }
    }
}
