// SPDX-License-Identifier: MIT OR Apache-2.0
//! A whole recording as JSON Lines. Every line stands alone: it says what it is (`record`), and a row
//! names its entity in full. What was not read is null.

use super::table::{Cell, ColumnKind, Flattener, RowWriter, TableColumns, columns_of};
use super::{ExportError, rfc3339};
use crate::json;
use floodline_record::record::Record;
use floodline_record::units::Nanos;
use serde::ser::{Serialize, SerializeMap, Serializer};
use std::collections::BTreeMap;
use std::io::Write;

/// Writes a recording line by line.
pub struct JsonLines<W: Write> {
    out: W,
    only: Option<String>,
    flattener: Flattener,
    columns: BTreeMap<&'static str, TableColumns>,
}

impl<W: Write> JsonLines<W> {
    /// Writes everything, or only the rows of one table.
    pub fn new(out: W, only: Option<&str>) -> Result<JsonLines<W>, ExportError> {
        if let Some(table) = only
            && columns_of(table).is_none()
        {
            return Err(ExportError::NoSuchTable(table.to_owned()));
        }
        Ok(JsonLines { out, only: only.map(str::to_owned), flattener: Flattener::default(), columns: BTreeMap::new() })
    }

    /// Writes the lines of one record.
    pub fn record(&mut self, record: &Record) -> Result<(), ExportError> {
        let JsonLines { out, only, flattener, columns } = self;
        let mut lines = Lines { out, columns };
        if only.is_none() {
            match record {
                Record::Facts(facts) => lines.line(&Tagged { record: "facts", content: facts })?,
                Record::Gap(gap) => lines.line(&Tagged { record: "gap", content: gap })?,
                Record::Event(event) => lines.line(&Tagged { record: "event", content: event })?,
                Record::Entity(..) | Record::Sample(_) => {}
            }
        }
        flattener.record(record, only.as_deref(), &mut lines)
    }

    /// Writes what is still buffered.
    pub fn finish(mut self) -> Result<(), ExportError> {
        Ok(self.out.flush()?)
    }
}

struct Lines<'a, W> {
    out: &'a mut W,
    columns: &'a mut BTreeMap<&'static str, TableColumns>,
}

impl<W: Write> Lines<'_, W> {
    fn line(&mut self, line: &impl Serialize) -> Result<(), ExportError> {
        json::write(&mut *self.out, line).map_err(std::io::Error::from)?;
        Ok(self.out.write_all(b"\n")?)
    }
}

impl<W: Write> RowWriter for Lines<'_, W> {
    fn row(&mut self, table: &'static str, cells: &[Cell]) -> Result<(), ExportError> {
        let columns = match self.columns.entry(table) {
            std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::btree_map::Entry::Vacant(entry) => {
                entry.insert(columns_of(table).ok_or_else(|| ExportError::NoSuchTable(table.to_owned()))?)
            }
        };
        json::write(&mut *self.out, &RowLine { columns, cells }).map_err(std::io::Error::from)?;
        Ok(self.out.write_all(b"\n")?)
    }
}

/// Anything but a row: its content stands under the name of what it is.
struct Tagged<T> {
    record: &'static str,
    content: T,
}

impl<T: Serialize> Serialize for Tagged<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("record", self.record)?;
        map.serialize_entry(self.record, &self.content)?;
        map.end()
    }
}

struct RowLine<'a> {
    columns: &'a TableColumns,
    cells: &'a [Cell],
}

impl Serialize for RowLine<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("record", "row")?;
        map.serialize_entry("table", self.columns.table)?;
        for (column, cell) in self.columns.columns.iter().zip(self.cells) {
            match (cell, column.kind) {
                (Cell::Null, _) => map.serialize_entry(&column.name, &None::<u64>)?,
                (Cell::Unsigned(wall), ColumnKind::Time) => {
                    map.serialize_entry(&column.name, &rfc3339(Nanos(*wall)))?;
                }
                (Cell::Unsigned(value), _) => map.serialize_entry(&column.name, value)?,
                (Cell::Text(text), _) => map.serialize_entry(&column.name, text)?,
            }
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_testkit::Fixture;

    fn export(records: &[Record], only: Option<&str>) -> Vec<serde_json::Value> {
        let mut out = Vec::new();
        let mut lines = JsonLines::new(&mut out, only).unwrap();
        for record in records {
            lines.record(record).unwrap();
        }
        lines.finish().unwrap();
        String::from_utf8(out).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn every_line_stands_alone_and_says_what_it_is() {
        let records: Vec<Record> = Fixture::healthy().seconds(1).records();
        let lines = export(&records, None);
        assert_eq!(lines[0]["record"], "facts");
        let rows: Vec<_> = lines.iter().filter(|line| line["record"] == "row").collect();
        assert!(rows.iter().any(|row| row["table"] == "cgroup" && row["cgroup"] == "/system.slice"), "{rows:?}");
        assert!(rows.iter().all(|row| row["time"].is_string() && row["monotonic_ns"].is_u64()));
    }

    #[test]
    fn what_was_not_read_is_null() {
        let records: Vec<Record> = Fixture::healthy().seconds(1).host(|_, row| row.nr_dirty = None).records();
        let lines = export(&records, Some("host"));
        assert!(!lines.is_empty() && lines.iter().all(|line| line["nr_dirty_pages"].is_null()));
    }
}
