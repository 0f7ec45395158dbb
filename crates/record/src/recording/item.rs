// SPDX-License-Identifier: MIT OR Apache-2.0
//! The records between samples: facts, entities, events and gaps. Each is a kind, a length and JSON, so that a reader
//! can skip one that it does not know.

use super::wire::{Cursor, Malformed, put_bytes};
use crate::facts::HostFacts;
use crate::gap::Gap;
use crate::id::{Entity, EntityId, Hierarchy};
use crate::name::Name;
use crate::record::{Event, Record};
use serde::Serialize;
use serde::de::value::{self, StrDeserializer};
use serde::de::{Deserialize, IntoDeserializer};

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
        ENTITY => numerous(json)
            .or_else(|| serde_json::from_slice(json).ok())
            .map(|(id, entity): (EntityId, Entity)| Record::Entity(id, entity)),
        EVENT if is_one_of(json, unused) => return Ok(Item::Unused),
        EVENT => serde_json::from_slice(json).ok().map(Record::Event),
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

/// Reads the form in which this build writes values, from the front of a slice. Each function returns `None` for any other
/// form, which may be valid too.
struct Plain<'a>(&'a [u8]);

impl<'a> Plain<'a> {
    fn skip(&mut self, text: &[u8]) -> Option<()> {
        self.0 = self.0.strip_prefix(text)?;
        Some(())
    }

    /// A number after its key.
    fn number<T: TryFrom<u64>>(&mut self, key: &[u8]) -> Option<T> {
        self.skip(key)?;
        let digits = self.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, rest) = self.0.split_at_checked(digits)?;
        if digits.is_empty() || (digits.len() > 1 && digits.starts_with(b"0")) {
            return None;
        }
        let more = |number: u64, digit: &u8| number.checked_mul(10)?.checked_add(u64::from(digit - b'0'));
        self.0 = rest;
        T::try_from(digits.iter().try_fold(0, more)?).ok()
    }

    /// A number after its key, or null.
    fn number_or_null<T: TryFrom<u64>>(&mut self, key: &[u8]) -> Option<Option<T>> {
        match self.0.strip_prefix(key)?.strip_prefix(b"null") {
            Some(rest) => {
                self.0 = rest;
                Some(None)
            }
            None => self.number(key).map(Some),
        }
    }

    /// A truth value after its key.
    fn flag(&mut self, key: &[u8]) -> Option<bool> {
        self.skip(key)?;
        let flag = self.0.starts_with(b"true");
        self.skip(if flag { b"true" } else { b"false" })?;
        Some(flag)
    }

    /// A text of printable ASCII characters without an escape, after its key.
    fn text(&mut self, key: &[u8]) -> Option<&'a str> {
        self.skip(key)?;
        self.skip(b"\"")?;
        let length = self.0.iter().position(|byte| *byte == b'"')?;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest.get(1..)?;
        let is_plain = |byte: &u8| matches!(byte, b' '..=b'[' | b']'..=b'~');
        std::str::from_utf8(text).ok().filter(|text| text.as_bytes().iter().all(is_plain))
    }
}

/// Reads the name of a hierarchy.
fn hierarchy(name: &str) -> Option<Hierarchy> {
    let name: StrDeserializer<'_, value::Error> = name.into_deserializer();
    Hierarchy::deserialize(name).ok()
}

/// Reads an entity of which a host has hundreds, in the form in which this build writes it. `None` for any other form, which
/// is left to serde.
fn numerous(json: &[u8]) -> Option<(EntityId, Entity)> {
    let mut plain = Plain(json);
    let id = EntityId(plain.number(b"[")?);
    let entity = match plain.text(br#",{"kind":"#)? {
        "wb" => {
            Entity::Wb { bdi: Name::new(plain.text(br#","bdi":"#)?), cgroup_ino: plain.number(br#","cgroup_ino":"#)? }
        }
        "cgroup" => Entity::Cgroup {
            path: Name::new(plain.text(br#","path":"#)?),
            hierarchy: hierarchy(plain.text(br#","hierarchy":"#)?)?,
            ino: plain.number_or_null(br#","ino":"#)?,
        },
        "cgroup_io" => Entity::CgroupIo {
            cgroup: EntityId(plain.number(br#","cgroup":"#)?),
            dev: plain.text(br#","dev":"#)?.parse().ok()?,
        },
        "process" => Entity::Process {
            pid: plain.number(br#","pid":"#)?,
            start_ticks: plain.number(br#","start_ticks":"#)?,
            comm: Name::new(plain.text(br#","comm":"#)?),
            cgroup: plain.number_or_null(br#","cgroup":"#)?.map(EntityId),
            kthread: plain.flag(br#","kthread":"#)?,
        },
        _ => return None,
    };
    (plain.0 == b"}]").then_some((id, entity))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::DevId;
    use crate::record::What;
    use crate::units::Nanos;

    #[test]
    fn numerous_entities_are_read_as_serde_reads_them() {
        for name in [&b"/kubepods.slice/pod 7"[..], b""] {
            read_as_serde_reads_them(&Name::new(name), true);
        }
        // Names with an escape, or beyond ASCII, are left to serde.
        for name in [&b"/a\"b"[..], b"/a\xff", b"/a\\b", "/n\u{e9}".as_bytes(), b"/a\n"] {
            read_as_serde_reads_them(&Name::new(name), false);
        }
    }

    fn read_as_serde_reads_them(name: &Name, is_plain: bool) {
        let dev = DevId { major: 8, minor: 16 };
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
            (cgroup(Hierarchy::V1Blkio, Some(u64::MAX)), true),
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
            let has_name = !matches!(entity, Entity::CgroupIo { .. });
            assert_eq!(numerous(&json), (is_numerous && (is_plain || !has_name)).then_some((EntityId(12), entity)));
        }
    }

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

    #[test]
    fn another_form_of_an_entity_is_left_to_serde() {
        let later = br#"[1,{"bdi":"8:0","kind":"wb","cgroup_ino":1}]"#;
        assert_eq!(numerous(later), None);
        let wb = (EntityId(1), Entity::Wb { bdi: "8:0".into(), cgroup_ino: 1 });
        assert_eq!(serde_json::from_slice::<(EntityId, Entity)>(later).unwrap(), wb);
        let more = br#"[1,{"kind":"wb","bdi":"8:0","cgroup_ino":1,"colour":"red"}]"#;
        assert_eq!(numerous(more), None);
        assert_eq!(serde_json::from_slice::<(EntityId, Entity)>(more).unwrap(), wb);
    }

    #[test]
    fn a_broken_entity_is_not_read() {
        let whole = br#"[1,{"kind":"process","pid":7,"start_ticks":9,"comm":"a","cgroup":null,"kthread":true}]"#;
        assert!(numerous(whole).is_some());
        for end in 0..whole.len() {
            assert_eq!(numerous(&whole[..end]), None, "{end}");
        }
        for broken in [
            r#"[01,{"kind":"wb","bdi":"8:0","cgroup_ino":1}]"#,
            r#"[4294967296,{"kind":"wb","bdi":"8:0","cgroup_ino":1}]"#,
            r#"[1,{"kind":"wb","bdi":"8:0","cgroup_ino":18446744073709551616}]"#,
            r#"[1,{"kind":"wb","bdi":"8:0","cgroup_ino":-1}]"#,
            r#"[1,{"kind":"wb","bdi":"8:0","cgroup_ino":1}] "#,
            r#"[1,{"kind":"cgroup_io","cgroup":1,"dev":"8"}]"#,
            r#"[1,{"kind":"cgroup","path":"/","hierarchy":"v3","ino":1}]"#,
        ] {
            assert_eq!(numerous(broken.as_bytes()), None, "{broken}");
        }
    }
}
