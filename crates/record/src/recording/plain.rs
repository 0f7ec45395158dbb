// SPDX-License-Identifier: MIT OR Apache-2.0
//! Entities and events of which a recording has many, read from the form in which this build writes their JSON. Any other form,
//! such as that of a newer build or of a name with an escape, is left to serde, which reads this form as well. An event of a
//! kind with other fields inside passes through several layers of serde, which cost ten times as much.

use crate::id::{DevId, Entity, EntityId};
use crate::name::Name;
use crate::record::{Event, Latency, TaskIo, TaskName, What};
use crate::text::Text;
use crate::traced::bytes::{Cancelled, Dirtied, Submitted};
use crate::traced::{File, Who};
use crate::units::{Bytes, Nanos};
use serde::de::value::{self, StrDeserializer};
use serde::de::{Deserialize, IntoDeserializer};

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
        self.or_null(key, |plain| plain.number(b""))
    }

    /// A value after its key, or null.
    fn or_null<T>(&mut self, key: &[u8], read: impl FnOnce(&mut Plain<'a>) -> Option<T>) -> Option<Option<T>> {
        self.skip(key)?;
        match self.0.strip_prefix(b"null") {
            Some(rest) => {
                self.0 = rest;
                Some(None)
            }
            None => read(self).map(Some),
        }
    }

    /// A time in nanoseconds after its key.
    fn nanos(&mut self, key: &[u8]) -> Option<Nanos> {
        self.number(key).map(Nanos)
    }

    /// A device number after its key.
    fn device(&mut self, key: &[u8]) -> Option<DevId> {
        self.text(key)?.parse().ok()
    }

    /// A copy of a task.
    fn task(&mut self) -> Option<TaskName> {
        Some(TaskName { task: Text::new(self.text(br#","task":"#)?), copy: self.number(br#","copy":"#)? })
    }

    /// A process after the sign that is before its first key.
    fn who(&mut self, before: &[u8]) -> Option<Who> {
        self.skip(before)?;
        Some(Who {
            pid: self.number(br#""pid":"#)?,
            comm: Name::new(self.text(br#","comm":"#)?),
            cgroup_ino: self.number(br#","cgroup_ino":"#)?,
        })
    }

    /// A file.
    fn file(&mut self) -> Option<File> {
        let ino = self.number(br#"{"ino":"#)?;
        let generation = match self.0.starts_with(br#","generation":"#) {
            true => Some(self.number(br#","generation":"#)?),
            false => None,
        };
        let path = self.or_null(br#","path":"#, |plain| plain.text(b"").map(Name::new))?;
        self.skip(b"}")?;
        Some(File { ino, generation, path })
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

/// Reads a name of a closed set.
fn word<'a, T: Deserialize<'a>>(name: &'a str) -> Option<T> {
    let name: StrDeserializer<'a, value::Error> = name.into_deserializer();
    T::deserialize(name).ok()
}

/// Reads an entity of which a host has hundreds, in the form in which this build writes it. `None` for any other form, which
/// is left to serde.
pub(super) fn entity(json: &[u8]) -> Option<(EntityId, Entity)> {
    let mut plain = Plain(json);
    let id = EntityId(plain.number(b"[")?);
    let entity = match plain.text(br#",{"kind":"#)? {
        "wb" => {
            Entity::Wb { bdi: Name::new(plain.text(br#","bdi":"#)?), cgroup_ino: plain.number(br#","cgroup_ino":"#)? }
        }
        "cgroup" => Entity::Cgroup {
            path: Name::new(plain.text(br#","path":"#)?),
            hierarchy: word(plain.text(br#","hierarchy":"#)?)?,
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

/// Reads an event of which a recording has thousands, in the form in which this build writes it. `None` for any other form,
/// which is left to serde.
pub(super) fn event(json: &[u8]) -> Option<Event> {
    let mut plain = Plain(json);
    let at = plain.nanos(br#"{"at":"#)?;
    let what = match plain.text(br#","event":"#)? {
        "task_stall" => What::TaskStall {
            task: plain.task()?,
            operation: Text::new(plain.text(br#","operation":"#)?),
            lasted: plain.nanos(br#","lasted":"#)?,
        },
        "task_operations" => What::TaskOperations {
            task: plain.task()?,
            operation: Text::new(plain.text(br#","operation":"#)?),
            since: plain.nanos(br#","since":"#)?,
            count: plain.number(br#","count":"#)?,
            bytes: plain.number(br#","bytes":"#)?,
            latency: latency(&mut plain)?,
        },
        "task_io" => {
            What::TaskIo { task: plain.task()?, since: plain.nanos(br#","since":"#)?, io: task_io(&mut plain)? }
        }
        "task_throttled" => What::TaskThrottled {
            task: plain.task()?,
            since: plain.nanos(br#","since":"#)?,
            slept: plain.nanos(br#","slept":"#)?,
        },
        "dirtied" => What::Dirtied(Dirtied {
            since: plain.nanos(br#","since":"#)?,
            who: plain.who(b",")?,
            device: plain.device(br#","device":"#)?,
            file: plain.or_null(br#","file":"#, Plain::file)?,
            bytes: Bytes(plain.number(br#","bytes":"#)?),
            folios: plain.number(br#","folios":"#)?,
            redirtied: Bytes(plain.number(br#","redirtied":"#)?),
        }),
        "cancelled" => What::Cancelled(Cancelled {
            since: plain.nanos(br#","since":"#)?,
            who: plain.who(b",")?,
            device: plain.device(br#","device":"#)?,
            file: plain.or_null(br#","file":"#, Plain::file)?,
            bytes: Bytes(plain.number(br#","bytes":"#)?),
        }),
        "submitted" => What::Submitted(Submitted {
            since: plain.nanos(br#","since":"#)?,
            disk: plain.device(br#","disk":"#)?,
            class: word(plain.text(br#","class":"#)?)?,
            device: plain.or_null(br#","device":"#, |plain| plain.device(b""))?,
            file: plain.or_null(br#","file":"#, Plain::file)?,
            cgroup_ino: plain.number_or_null(br#","cgroup_ino":"#)?,
            who: plain.or_null(br#","who":"#, |plain| {
                let who = plain.who(b"{")?;
                plain.skip(b"}")?;
                Some(who)
            })?,
            bytes: Bytes(plain.number(br#","bytes":"#)?),
            bios: plain.number(br#","bios":"#)?,
        }),
        _ => return None,
    };
    (plain.0 == b"}").then_some(Event { at, what })
}

/// Returns the rest of a slice after `text`. The compiler compares a length that it knows without a call.
#[inline]
fn after<'a, const N: usize>(bytes: &'a [u8], text: &[u8; N]) -> Option<&'a [u8]> {
    bytes.split_first_chunk().and_then(|(first, rest)| (first == text).then_some(rest))
}

/// Returns what is before `text` at the end of a slice.
#[inline]
fn before<'a, const N: usize>(bytes: &'a [u8], text: &[u8; N]) -> Option<&'a [u8]> {
    bytes.split_last_chunk().and_then(|(rest, last)| (last == text).then_some(rest))
}

/// Returns the JSON of an event from the name of its kind on; `None` for a form that this build does not write.
#[inline]
pub(super) fn from_kind(json: &[u8]) -> Option<&[u8]> {
    let time = after(json, br#"{"at":"#)?;
    let digits = time.iter().take_while(|byte| byte.is_ascii_digit()).count();
    after(time.get(digits..)?, br#","event":""#)
}

/// The operation that stalled, by an event from its kind on. `None` for another kind, and for names with an escape. Of a
/// hundred thousand stalls hardly one is of use, so this reads from the end only as far as it must.
#[inline]
pub(super) fn stalled(event: &[u8]) -> Option<&[u8]> {
    let fields = before(after(event, br#"task_stall","task":""#)?, b"}")?;
    let digits = fields.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let (fields, lasted) = fields.split_at_checked(fields.len() - digits)?;
    match lasted {
        [] | [b'0', _, ..] => return None,
        // A number of so few digits fits 64 bits.
        short if short.len() < 20 => {}
        long => {
            Plain(long).number::<u64>(b"")?;
        }
    }
    let fields = before(fields, br#"","lasted":"#)?;
    let start = fields.iter().rposition(|byte| *byte == b'"')? + 1;
    let (task, operation) = fields.split_at_checked(start)?;
    let task = before(task, br#","operation":""#)?;
    (!has_escape(task) && !has_escape(operation)).then_some(operation)
}

/// Whether a JSON text has an escape. These texts are short: a call that searches costs more.
#[inline]
fn has_escape(text: &[u8]) -> bool {
    text.iter().fold(false, |has, byte| has | (*byte == b'\\'))
}

/// Reads how long operations took.
fn latency(plain: &mut Plain<'_>) -> Option<Latency> {
    let latency = Latency {
        p50: plain.nanos(br#","latency":{"p50":"#)?,
        p90: plain.nanos(br#","p90":"#)?,
        p99: plain.nanos(br#","p99":"#)?,
        p999: plain.nanos(br#","p999":"#)?,
        max: plain.nanos(br#","max":"#)?,
        total: plain.nanos(br#","total":"#)?,
    };
    plain.skip(b"}")?;
    Some(latency)
}

/// Reads the I/O counters of a task.
fn task_io(plain: &mut Plain<'_>) -> Option<TaskIo> {
    let io = TaskIo {
        rchar: plain.number_or_null(br#","io":{"rchar":"#)?,
        wchar: plain.number_or_null(br#","wchar":"#)?,
        syscr: plain.number_or_null(br#","syscr":"#)?,
        syscw: plain.number_or_null(br#","syscw":"#)?,
        read_bytes: plain.number_or_null(br#","read_bytes":"#)?,
        write_bytes: plain.number_or_null(br#","write_bytes":"#)?,
        cancelled_write_bytes: plain.number_or_null(br#","cancelled_write_bytes":"#)?,
        minflt: plain.number_or_null(br#","minflt":"#)?,
        majflt: plain.number_or_null(br#","majflt":"#)?,
    };
    plain.skip(b"}")?;
    Some(io)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::Hierarchy;
    use crate::traced::bytes::Class;

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
        for (named, is_numerous) in entities {
            let json = serde_json::to_vec(&(EntityId(12), &named)).unwrap();
            assert_eq!(serde_json::from_slice::<(EntityId, Entity)>(&json).unwrap(), (EntityId(12), named.clone()));
            let has_name = !matches!(named, Entity::CgroupIo { .. });
            assert_eq!(entity(&json), (is_numerous && (is_plain || !has_name)).then_some((EntityId(12), named)));
        }
    }

    #[test]
    fn another_form_of_an_entity_is_left_to_serde() {
        let later = br#"[1,{"bdi":"8:0","kind":"wb","cgroup_ino":1}]"#;
        assert_eq!(entity(later), None);
        let wb = (EntityId(1), Entity::Wb { bdi: "8:0".into(), cgroup_ino: 1 });
        assert_eq!(serde_json::from_slice::<(EntityId, Entity)>(later).unwrap(), wb);
        let more = br#"[1,{"kind":"wb","bdi":"8:0","cgroup_ino":1,"colour":"red"}]"#;
        assert_eq!(entity(more), None);
        assert_eq!(serde_json::from_slice::<(EntityId, Entity)>(more).unwrap(), wb);
    }

    #[test]
    fn a_broken_entity_is_not_read() {
        let whole = br#"[1,{"kind":"process","pid":7,"start_ticks":9,"comm":"a","cgroup":null,"kthread":true}]"#;
        assert!(entity(whole).is_some());
        for end in 0..whole.len() {
            assert_eq!(entity(&whole[..end]), None, "{end}");
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
            assert_eq!(entity(broken.as_bytes()), None, "{broken}");
        }
    }

    /// Events of each kind that is read here, with and without what may be absent.
    fn events(name: &str) -> Vec<What> {
        let (text, comm) = (Text::new(name), Name::from(name));
        let task = || TaskName { task: text.clone(), copy: u32::MAX };
        let who = || Who { pid: 7, comm: comm.clone(), cgroup_ino: u64::MAX };
        let disk = DevId { major: 254, minor: 16 };
        let file = |generation, path: Option<Name>| Some(File { ino: 131, generation, path });
        let files = || [None, file(None, None), file(Some(3), Some(comm.clone())), file(None, Some(comm.clone()))];
        let latency = Latency { p50: Nanos(3), max: Nanos(u64::MAX), total: Nanos(7), ..Latency::default() };
        let io = TaskIo { wchar: Some(0), minflt: Some(u64::MAX), ..TaskIo::default() };
        let mut all = vec![
            What::TaskStall { task: task(), operation: text.clone(), lasted: Nanos(8_664_000_000) },
            What::TaskOperations {
                task: task(),
                operation: text.clone(),
                since: Nanos(1),
                count: 2,
                bytes: 8192,
                latency,
            },
            What::TaskIo { task: task(), since: Nanos(1), io },
            What::TaskThrottled { task: task(), since: Nanos(1), slept: Nanos(0) },
        ];
        for file in files() {
            let (since, bytes) = (Nanos(5), Bytes(69_632));
            let redirtied = Bytes(4096);
            let dirtied = Dirtied { since, who: who(), device: disk, file: file.clone(), bytes, folios: 2, redirtied };
            all.push(What::Dirtied(dirtied));
            all.push(What::Cancelled(Cancelled { since, who: who(), device: disk, file: file.clone(), bytes }));
            for class in [Class::Data, Class::Metadata, Class::Journal, Class::Direct, Class::Unknown] {
                let is_data = class == Class::Data;
                all.push(What::Submitted(Submitted {
                    since,
                    disk,
                    class,
                    device: is_data.then_some(disk),
                    file: file.clone(),
                    cgroup_ino: is_data.then_some(1),
                    who: is_data.then(who),
                    bytes,
                    bios: 2,
                }));
            }
        }
        all
    }

    #[test]
    fn numerous_events_are_read_as_serde_reads_them() {
        for name in ["db writer", "", "a'b{},:[]"] {
            for what in events(name) {
                let whole = Event { at: Nanos(u64::MAX), what };
                let json = serde_json::to_vec(&whole).unwrap();
                assert_eq!(serde_json::from_slice::<Event>(&json).unwrap(), whole);
                assert_eq!(event(&json).as_ref(), Some(&whole));
                for end in 0..json.len() {
                    assert_eq!(event(&json[..end]), None, "{end}");
                }
            }
        }
        // Names with an escape, or beyond ASCII, are left to serde. Not every event has a name.
        for name in ["a\"b", "a\\b", "n\u{e9}", "a\nb"] {
            let read: Vec<Event> = events(name)
                .into_iter()
                .filter_map(|what| event(&serde_json::to_vec(&Event { at: Nanos(0), what }).unwrap()))
                .collect();
            let is_nameless = |read: &Event| matches!(&read.what, What::Submitted(one) if one.who.is_none());
            assert!(!read.is_empty() && read.iter().all(is_nameless), "{name}");
        }
    }

    #[test]
    fn another_form_of_an_event_is_left_to_serde() {
        let whole = r#"{"at":7,"event":"task_stall","task":"mail","copy":3,"operation":"fsync","lasted":8}"#;
        let read = event(whole.as_bytes()).expect("the form of this build");
        for other in [
            r#"{"event":"task_stall","at":7,"task":"mail","copy":3,"operation":"fsync","lasted":8}"#,
            r#"{"at":7,"event":"task_stall","copy":3,"task":"mail","operation":"fsync","lasted":8}"#,
            r#"{"at":7,"event":"task_stall","task":"mail","copy":3,"operation":"fsync","lasted":8,"new":[1]}"#,
            r#"{"at":7,"event":"task_stall","task":"mail","copy":3,"operation":"fsync","lasted":8} "#,
            r#"{"at":7,"event":"task_stall","task":"\u006dail","copy":3,"operation":"fsync","lasted":8}"#,
        ] {
            assert_eq!(event(other.as_bytes()), None, "{other}");
            assert_eq!(serde_json::from_str::<Event>(other).unwrap(), read, "{other}");
        }
        for broken in [
            r#"{"at":7,"event":"task_stall","task":"mail","copy":4294967296,"operation":"fsync","lasted":8}"#,
            r#"{"at":-7,"event":"task_stall","task":"mail","copy":3,"operation":"fsync","lasted":8}"#,
            r#"{"at":7,"event":"task_stall","task":"mail","copy":03,"operation":"fsync","lasted":8}"#,
            r#"{"at":7,"event":"task_stall","task":null,"copy":3,"operation":"fsync","lasted":8}"#,
            r#"{"at":7,"event":"submitted","since":1,"disk":"8","class":"data","device":null,"file":null,"cgroup_ino":null,"who":null,"bytes":1,"bios":1}"#,
        ] {
            assert_eq!(event(broken.as_bytes()), None, "{broken}");
            assert!(serde_json::from_str::<Event>(broken).is_err(), "{broken}");
        }
    }
}
