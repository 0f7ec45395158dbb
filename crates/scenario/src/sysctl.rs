// SPDX-License-Identifier: MIT OR Apache-2.0
//! Settings below `/proc/sys`: nested tables in the file (`vm.dirty_bytes = "100 MiB"`), a flat list of
//! names and values inside. Values that the kernel would refuse are refused here with its own rule.

use super::quantity::ByteSize;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

/// Settings by dotted name, e.g. `vm.dirty_bytes`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sysctls(pub BTreeMap<String, SysctlValue>);

/// The value of a setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum SysctlValue {
    /// A number.
    Number(i64),
    /// Anything else, written as it is.
    Text(String),
}

impl fmt::Display for SysctlValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SysctlValue::Number(number) => number.fmt(f),
            SysctlValue::Text(text) => f.write_str(text),
        }
    }
}

impl Sysctls {
    /// Whether nothing is set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A setting that is a number.
    pub fn number(&self, name: &str) -> Option<u64> {
        match self.0.get(name)? {
            SysctlValue::Number(number) => u64::try_from(*number).ok(),
            SysctlValue::Text(text) => text.parse().ok(),
        }
    }
}

/// What the kernel accepts for its writeback settings: name, smallest, largest.
pub(super) const RANGES: &[(&str, i64, i64)] = &[
    ("vm.dirty_ratio", 0, 100),
    ("vm.dirty_background_ratio", 0, 100),
    // Two pages of 4 KiB, as the kernel's handler has it.
    ("vm.dirty_bytes", 8192, i64::MAX),
    ("vm.dirty_background_bytes", 1, i64::MAX),
    ("vm.dirty_expire_centisecs", 0, i32::MAX as i64),
    ("vm.dirty_writeback_centisecs", 0, i32::MAX as i64),
    ("vm.dirtytime_expire_seconds", 0, i32::MAX as i64),
    ("vm.laptop_mode", 0, i32::MAX as i64),
];

/// Pairs of which the kernel keeps only the one written last.
pub(super) const EXCLUSIVE: &[(&str, &str)] =
    &[("vm.dirty_ratio", "vm.dirty_bytes"), ("vm.dirty_background_ratio", "vm.dirty_background_bytes")];

enum Node {
    Value(SysctlValue),
    Table(BTreeMap<String, Node>),
}

impl Node {
    fn flatten(self, prefix: &str, into: &mut BTreeMap<String, SysctlValue>) -> Result<(), String> {
        match self {
            Node::Value(value) => {
                let value = match value {
                    SysctlValue::Text(text) if prefix.ends_with("_bytes") => match text.parse::<ByteSize>() {
                        Ok(size) => SysctlValue::Number(i64::try_from(size.bytes()).unwrap_or(i64::MAX)),
                        Err(_) if text.bytes().all(|byte| byte.is_ascii_digit()) => {
                            return Err(format!(
                                "{text} is more than any kernel counts; since 6.10 it refuses more than 2^32 - 1 pages \
                                 (ERANGE)"
                            ));
                        }
                        Err(error) => return Err(error.to_string()),
                    },
                    value => value,
                };
                match into.insert(prefix.to_owned(), value) {
                    Some(_) => Err(format!("{prefix} is set twice")),
                    None => Ok(()),
                }
            }
            Node::Table(entries) => {
                for (key, node) in entries {
                    let name = if prefix.is_empty() { key } else { format!("{prefix}.{key}") };
                    node.flatten(&name, into)?;
                }
                Ok(())
            }
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Node, D::Error> {
        struct NodeVisitor;
        impl<'de> Visitor<'de> for NodeVisitor {
            type Value = Node;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a setting: a number, a text, or a size for names that end in _bytes")
            }
            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Node, E> {
                Ok(Node::Value(SysctlValue::Number(number)))
            }
            // JSON, in which a guest gets its scenario, has no sign on what is not negative.
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Node, E> {
                i64::try_from(number).map(|number| Node::Value(SysctlValue::Number(number))).map_err(E::custom)
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Node, E> {
                Ok(Node::Value(SysctlValue::Text(text.to_owned())))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
                let mut entries = BTreeMap::new();
                while let Some((key, node)) = map.next_entry::<String, Node>()? {
                    if key.is_empty() || !key.chars().all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c)) {
                        return Err(de::Error::custom(format!("{key:?} is no name of a setting")));
                    }
                    if key.split(['.', '/']).any(|part| part.is_empty() || part == "..") {
                        return Err(de::Error::custom(format!("{key:?} is no name of a setting")));
                    }
                    entries.insert(key, node);
                }
                Ok(Node::Table(entries))
            }
        }
        deserializer.deserialize_any(NodeVisitor)
    }
}

impl<'de> Deserialize<'de> for Sysctls {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Sysctls, D::Error> {
        let mut flat = BTreeMap::new();
        match Node::deserialize(deserializer)? {
            Node::Value(_) => return Err(de::Error::custom("settings are a table: vm.dirty_ratio = 10")),
            table => table.flatten("", &mut flat).map_err(de::Error::custom)?,
        }
        if let Some(name) = flat.keys().find(|name| !name.contains('.')) {
            return Err(de::Error::custom(format!(
                "{name:?} is no name of a setting; write vm.{name} or kernel.{name}"
            )));
        }
        Ok(Sysctls(flat))
    }
}

impl Serialize for Sysctls {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // One level (`vm`) is nested, deeper names stay dotted: both read back.
        let mut tables: BTreeMap<&str, BTreeMap<&str, &SysctlValue>> = BTreeMap::new();
        for (name, value) in &self.0 {
            let (table, rest) = name.split_once('.').unwrap_or((name, ""));
            tables.entry(table).or_default().insert(rest, value);
        }
        tables.serialize(serializer)
    }
}

impl JsonSchema for Sysctls {
    fn schema_name() -> Cow<'static, str> {
        "Sysctls".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object", "description": "settings below /proc/sys: vm.dirty_bytes = \"100 MiB\"" })
    }
}
