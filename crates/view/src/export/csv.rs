// SPDX-License-Identifier: MIT OR Apache-2.0
//! One table as CSV with a header line. What was not read is an empty field. And the form of a text in any CSV that
//! Floodline writes.

use super::table::{Cell, ColumnKind, RowWriter, columns_of};
use super::{ExportError, rfc3339};
use floodline_record::text::Text;
use floodline_record::units::Nanos;
use std::io::Write;

/// A text as a cell of CSV. A spreadsheet takes a cell that begins with `=`, `+`, `-` or `@` (in their full-width forms
/// too) for a formula, and runs it: such a text gets an apostrophe in front. Control and invisible characters are
/// escaped as `\xNN`, a tab and a line break among them.
pub(crate) fn text_cell(text: &str) -> String {
    let text = Text::new(text);
    let is_formula = text.starts_with(['=', '+', '-', '@', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}']);
    if is_formula { format!("'{text}") } else { text.into() }
}

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
                (Cell::Text(text), _) => self.writer.write_field(text_cell(text))?,
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
    fn a_text_that_a_spreadsheet_takes_for_a_formula_gets_an_apostrophe() {
        let check = |text: &str, cell: &str| assert_eq!(text_cell(text), cell);
        check("=HYPERLINK(\"http://a\")", "'=HYPERLINK(\"http://a\")");
        check("+1", "'+1");
        check("-.mount", "'-.mount");
        check("@SUM(A1)", "'@SUM(A1)");
        check("\u{ff1d}1", "'\u{ff1d}1");
        check("\t=1", "\\x09=1");
        check("\r=1", "\\x0d=1");
        check("/a=b", "/a=b");
        check("8:0", "8:0");
    }

    #[test]
    fn numbers_and_times_stay_as_they_are() {
        let mut out = Vec::new();
        let mut export = CsvExport::new(&mut out, "bdi").unwrap();
        let mut cells = vec![Cell::Null; export.kinds.len()];
        cells[0] = Cell::Unsigned(0);
        cells[1] = Cell::Unsigned(7);
        cells[2] = Cell::Text("-evil".to_owned());
        export.row("bdi", &cells).unwrap();
        export.finish().unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(
            text.lines().nth(1).is_some_and(|line| line.starts_with("1970-01-01T00:00:00.000Z,7,'-evil,,")),
            "{text}"
        );
    }

    #[test]
    fn an_unknown_table_is_refused_by_name() {
        let error = CsvExport::new(Vec::new(), "disks").err().map(|error| error.to_string());
        assert_eq!(error.as_deref(), Some("no table named disks"));
    }
}
