// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recordings of strangers: a payload is planted in every string of a recording that its reader keeps, found by
//! walking the JSON of each record, and not by a list of fields.

use super::every::every_record;
use floodline_record::facts::HostFacts;
use floodline_record::gap::Gap;
use floodline_record::id::{Entity, EntityId};
use floodline_record::name::Name;
use floodline_record::record::{Event, Record, Sink};
pub use floodline_record::recording::Piece;
use floodline_record::recording::{ColumnSchema, Encoder, Header, TableSchema, rewrite};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// What a terminal obeys, a bit of everything: CSI, OSC, C1, DEL, bidirectional controls, a line separator, invisible
/// characters, a tag, and a line of its own.
pub const PAYLOAD: &str = "\u{1b}[2J\u{1b}[32m\u{1b}]0;t\u{7}\u{9b}1m\u{7f}\u{202e}\u{2066}\u{200f}\u{61c}\u{2028}\u{200b}\u{e0041}\r\nFORGED";

/// A recording with the payload in every string of the records that `takes` chooses, and how many strings that are.
pub fn planted(records: &[Record], payload: &str, takes: impl Fn(Piece) -> bool) -> (Vec<u8>, usize) {
    let mut planted = 0;
    let change = |piece: Piece, value: Value| {
        if !takes(piece) {
            return value;
        }
        let (value, count) = plant_piece(piece, value, payload);
        planted += count;
        value
    };
    // What was just written is whole.
    let bytes = rewrite(&recording(records), change).unwrap_or_default();
    (bytes, planted)
}

fn plant_piece(piece: Piece, mut value: Value, payload: &str) -> (Value, usize) {
    match piece {
        Piece::Header => {
            // Column by column: a walk through all of them for each of their strings would take long.
            let tables = std::mem::replace(&mut value["tables"], json!([]));
            let (mut header, mut planted) = plant::<Header>(value, payload);
            let mut tables: Vec<TableSchema> = serde_json::from_value(tables).unwrap_or_default();
            for table in &mut tables {
                for column in &mut table.columns {
                    let (changed, count) = plant::<ColumnSchema>(json!(column), payload);
                    planted += count;
                    if let Ok(changed) = serde_json::from_value(changed) {
                        *column = changed;
                    }
                }
                table.name = format!("{}{payload}", table.name).into();
                planted += 1;
            }
            header["tables"] = json!(tables);
            (header, planted)
        }
        Piece::Facts => plant::<HostFacts>(value, payload),
        Piece::Entity => plant::<(EntityId, Entity)>(value, payload),
        Piece::Event => plant::<Event>(value, payload),
        Piece::Gap => plant::<Gap>(value, payload),
    }
}

/// A recording with a record of every kind, event, entity and cause.
pub fn of_everything() -> Vec<Record> {
    every_record()
}

/// The records as a file.
pub fn recording(records: &[Record]) -> Vec<u8> {
    let Ok(mut encoder) = Encoder::new(Vec::new(), Header::new(None)) else { return Vec::new() };
    for record in records {
        if encoder.record(record).is_err() {
            return Vec::new();
        }
    }
    encoder.finish().unwrap_or_default()
}

/// Puts the payload at the end of every string and key of a `T` that is still one then, and still has it.
fn plant<T: DeserializeOwned + Serialize>(mut value: Value, payload: &str) -> (Value, usize) {
    let escaped = Name::from(payload).to_string();
    let mut planted = 0;
    for site in 0.. {
        let mut next = site;
        let mut changed = value.clone();
        if !append(&mut changed, &mut next, payload) {
            break;
        }
        let kept = serde_json::from_value::<T>(changed.clone()).ok().and_then(|read| serde_json::to_string(&read).ok());
        // In JSON each backslash of the escaped form stands twice.
        let count = kept.map_or(0, |json| json.replace("\\\\", "\\").matches(&escaped).count());
        if count > planted {
            planted = count;
            value = changed;
        }
    }
    (value, planted)
}

/// Appends to the string or key number `site`; false where there are fewer.
fn append(value: &mut Value, site: &mut usize, payload: &str) -> bool {
    match value {
        Value::String(text) if *site == 0 => {
            text.push_str(payload);
            true
        }
        Value::String(_) => {
            *site -= 1;
            false
        }
        Value::Array(values) => values.iter_mut().any(|value| append(value, site, payload)),
        Value::Object(map) => {
            let keys: Vec<String> = map.keys().cloned().collect();
            for key in keys {
                if *site == 0 {
                    let renamed = |(name, value): (String, Value)| {
                        if name == key { (format!("{name}{payload}"), value) } else { (name, value) }
                    };
                    *map = std::mem::take(map).into_iter().map(renamed).collect::<Map<_, _>>();
                    return true;
                }
                *site -= 1;
                if map.get_mut(&key).is_some_and(|value| append(value, site, payload)) {
                    return true;
                }
            }
            false
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_record::name::is_plain;
    use floodline_record::recording::Decoder;

    /// Strings of a value that say what kind of thing it is, or that only have the form of a string.
    fn strings(value: &Value, at: &str, out: &mut Vec<String>) {
        match value {
            Value::String(text) => out.push(format!("{at}={text}")),
            Value::Array(values) => values.iter().for_each(|value| strings(value, at, out)),
            Value::Object(map) => map.iter().for_each(|(key, value)| strings(value, &format!("{at}.{key}"), out)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    #[test]
    fn every_string_that_is_not_a_word_of_the_format_takes_the_payload() {
        let mut spared = Vec::new();
        let records = of_everything();
        let bytes = recording(&records);
        rewrite(&bytes, |piece, value| {
            let (planted, _) = plant_piece(piece, value, "<>");
            strings(&planted, &format!("{piece:?}"), &mut spared);
            planted
        })
        .unwrap();
        spared.retain(|string| !string.contains("<>"));
        // Numbers in the form of a string, and words of closed lists.
        let is_word = |string: &String| {
            let (at, text) = string.split_once('=').unwrap();
            let field = at.rsplit('.').next().unwrap();
            matches!(field, "event" | "kind" | "source" | "hierarchy" | "mode" | "operation" | "class" | "domain")
                || text.split_once(':').is_some_and(|(a, b)| a.parse::<u32>().is_ok() && b.parse::<u32>().is_ok())
                || at == "Facts.kernel"
        };
        let strange: Vec<&String> = spared.iter().filter(|string| !is_word(string)).collect();
        assert!(strange.is_empty(), "{strange:?}");
    }

    #[test]
    fn nothing_that_is_decoded_holds_a_character_that_commands_a_terminal() {
        let (bytes, planted) = planted(&of_everything(), PAYLOAD, |_| true);
        assert!(planted > 80, "{planted}");
        for record in Decoder::new(bytes.as_slice()).unwrap() {
            let shown = match record.unwrap() {
                Record::Facts(facts) => serde_json::to_string(&facts).unwrap(),
                Record::Entity(_, entity) => format!("{} {}", entity.label(), serde_json::to_string(&entity).unwrap()),
                Record::Event(event) => serde_json::to_string(&event).unwrap(),
                Record::Gap(gap) => format!("{gap} {}", serde_json::to_string(&gap).unwrap()),
                Record::Sample(_) => continue,
            };
            assert!(shown.chars().all(is_plain), "{shown:?}");
        }
    }
}
