// SPDX-License-Identifier: MIT OR Apache-2.0
//! One table as CSV with a header line. What was not read is an empty field.

use super::table::{Cell, ColumnKind, RowWriter, columns_of};
use super::{ExportError, rfc3339};
use floodline_record::units::Nanos;
use std::io::Write;

/// Writes one table.
pub struct CsvExport<W: Write> {
    writer: csv::Writer<W>,
    kinds: Vec<ColumnKind>,
}

impl<W: Write> CsvExport<W> {
    /// Starts a table by writing its header.
    pub fn new(out: W, table: &str) -> Result<CsvExport<W>, ExportError> {
        let columns = columns_of(table).ok_or_else(|| ExportError::NoSuchTable(table.to_owned()))?.columns;
        let mut writer = csv::Writer::from_writer(out);
        writer.write_record(columns.iter().map(|column| &column.name))?;
        Ok(CsvExport { writer, kinds: columns.iter().map(|column| column.kind).collect() })
    }

    /// Writes what is still buffered.
    pub fn finish(mut self) -> Result<(), ExportError> {
        Ok(self.writer.flush()?)
    }
}

impl<W: Write> RowWriter for CsvExport<W> {
    fn row(&mut self, _table: &'static str, cells: &[Cell]) -> Result<(), ExportError> {
        for (cell, kind) in cells.iter().zip(&self.kinds) {
            match (cell, kind) {
                (Cell::Null, _) => self.writer.write_field("")?,
                (Cell::Unsigned(wall), ColumnKind::Time) => {
                    self.writer.write_field(rfc3339(Nanos(*wall)).unwrap_or_default())?;
                }
                (Cell::Unsigned(value), _) => self.writer.write_field(value.to_string())?,
                (Cell::Text(text), _) => self.writer.write_field(text)?,
            }
        }
        Ok(self.writer.write_record(None::<&[u8]>)?)
    }
}

#[cfg(test)]
mod tests {
    use super::super::table::Flattener;
    use super::*;
    use floodline_testkit::Fixture;

    #[test]
    fn a_table_has_a_header_and_a_line_per_row() {
        let mut out = Vec::new();
        let mut export = CsvExport::new(&mut out, "disk").unwrap();
        let mut flattener = Flattener::default();
        for record in Fixture::healthy().seconds(2).records() {
            flattener.record(&record, Some("disk"), &mut export).unwrap();
        }
        export.finish().unwrap();
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4, "{text}");
        assert!(lines[0].starts_with("time,monotonic_ns,device,name,reads,reads_merged,read_bytes,"), "{}", lines[0]);
        assert!(lines[1].contains(",8:0,sda,"), "{}", lines[1]);
        assert_eq!(lines[0].matches(',').count(), lines[1].matches(',').count());
    }

    #[test]
    fn an_unknown_table_is_refused_by_name() {
        let error = CsvExport::new(Vec::new(), "disks").err().map(|error| error.to_string());
        assert_eq!(error.as_deref(), Some("no table named disks"));
    }
}
