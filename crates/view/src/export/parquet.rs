// SPDX-License-Identifier: MIT OR Apache-2.0
//! One table as a Parquet file: every column nullable, numbers as UINT64, names as UTF-8 strings, time
//! as a UTC timestamp in nanoseconds; zstd. Rows are gathered to row groups of bounded size.

use super::ExportError;
use super::table::{Cell, ColumnKind, RowWriter, columns_of};
use parquet::basic::{Compression, LogicalType, Repetition, TimeUnit, Type as PhysicalType, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;
use std::io::Write;
use std::sync::Arc;

/// Rows of one row group: some tens of megabytes for the widest table.
const GROUP_ROWS: usize = 32_768;

/// Writes one table.
pub struct ParquetExport<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    columns: Vec<Buffer>,
    rows: usize,
}

/// Values of one column of the row group in the making, and which of them are there.
struct Buffer {
    values: Values,
    present: Vec<i16>,
}

enum Values {
    Numbers(Vec<i64>),
    Texts(Vec<ByteArray>),
}

impl<W: Write + Send> ParquetExport<W> {
    /// Starts a table.
    pub fn new(out: W, table: &str) -> Result<ParquetExport<W>, ExportError> {
        let columns = columns_of(table).ok_or_else(|| ExportError::NoSuchTable(table.to_owned()))?.columns;
        let fields = columns.iter().map(|column| field(&column.name, column.kind)).collect::<Result<Vec<_>, _>>()?;
        let schema = Type::group_type_builder(table).with_fields(fields).build()?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_created_by(concat!("floodline ", env!("CARGO_PKG_VERSION")).to_owned())
            .build();
        let writer = SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties))?;
        let buffers = columns.iter().map(|column| Buffer {
            values: match column.kind {
                ColumnKind::Text => Values::Texts(Vec::new()),
                ColumnKind::Time | ColumnKind::Unsigned => Values::Numbers(Vec::new()),
            },
            present: Vec::new(),
        });
        Ok(ParquetExport { writer, columns: buffers.collect(), rows: 0 })
    }

    /// Writes the last rows and the footer, without which the file cannot be read.
    pub fn finish(mut self) -> Result<(), ExportError> {
        self.write_group()?;
        self.writer.close()?;
        Ok(())
    }

    fn write_group(&mut self) -> Result<(), ExportError> {
        if self.rows == 0 {
            return Ok(());
        }
        let mut group = self.writer.next_row_group()?;
        for buffer in &mut self.columns {
            let Some(mut column) = group.next_column()? else { break };
            match &mut buffer.values {
                Values::Numbers(values) => {
                    column.typed::<Int64Type>().write_batch(values, Some(&buffer.present), None)?;
                    values.clear();
                }
                Values::Texts(values) => {
                    column.typed::<ByteArrayType>().write_batch(values, Some(&buffer.present), None)?;
                    values.clear();
                }
            }
            buffer.present.clear();
            column.close()?;
        }
        group.close()?;
        self.rows = 0;
        Ok(())
    }
}

impl<W: Write + Send> RowWriter for ParquetExport<W> {
    fn row(&mut self, _table: &'static str, cells: &[Cell]) -> Result<(), ExportError> {
        for (cell, buffer) in cells.iter().zip(&mut self.columns) {
            match (cell, &mut buffer.values) {
                // Parquet keeps UINT64 in the bits of a signed number.
                (Cell::Unsigned(value), Values::Numbers(values)) => values.push(value.cast_signed()),
                (Cell::Text(text), Values::Texts(values)) => values.push(ByteArray::from(text.as_str())),
                _ => {
                    buffer.present.push(0);
                    continue;
                }
            }
            buffer.present.push(1);
        }
        self.rows += 1;
        if self.rows >= GROUP_ROWS { self.write_group() } else { Ok(()) }
    }
}

fn field(name: &str, kind: ColumnKind) -> Result<Arc<Type>, ExportError> {
    let (physical, logical) = match kind {
        ColumnKind::Time => (PhysicalType::INT64, LogicalType::timestamp(true, TimeUnit::NANOS)),
        ColumnKind::Unsigned => (PhysicalType::INT64, LogicalType::integer(64, false)),
        ColumnKind::Text => (PhysicalType::BYTE_ARRAY, LogicalType::String),
    };
    let builder = Type::primitive_type_builder(name, physical);
    Ok(Arc::new(builder.with_repetition(Repetition::OPTIONAL).with_logical_type(Some(logical)).build()?))
}

#[cfg(test)]
mod tests {
    use super::super::table::Flattener;
    use super::*;
    use floodline_testkit::Fixture;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;

    fn export(table: &str, fixture: Fixture) -> SerializedFileReader<bytes::Bytes> {
        let mut out = Vec::new();
        let mut export = ParquetExport::new(&mut out, table).unwrap();
        let mut flattener = Flattener::default();
        for record in fixture.records() {
            flattener.record(&record, Some(table), &mut export).unwrap();
        }
        export.finish().unwrap();
        SerializedFileReader::new(bytes::Bytes::from(out)).unwrap()
    }

    #[test]
    fn a_table_reads_back_with_numbers_names_and_nulls() {
        let fixture = Fixture::healthy().seconds(2).disk("sda", |_, row| {
            row.written = Some(floodline_record::units::Bytes(u64::MAX));
            row.flushes = None;
        });
        let reader = export("disk", fixture);
        let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
        assert_eq!(rows.len(), 3);
        assert_eq!(rows[0].get_string(3).unwrap(), "sda");
        let column = |name: &str| {
            let columns = columns_of("disk").unwrap().columns;
            columns.iter().position(|column| column.name == name).unwrap()
        };
        assert_eq!(rows[0].get_ulong(column("written_bytes")).unwrap(), u64::MAX);
        assert!(rows[0].get_ulong(column("flushes")).is_err(), "null is not a number");
    }

    #[test]
    fn a_table_without_rows_is_still_a_readable_file() {
        let mut out = Vec::new();
        ParquetExport::new(&mut out, "wb").unwrap().finish().unwrap();
        let reader = SerializedFileReader::new(bytes::Bytes::from(out)).unwrap();
        assert_eq!(reader.metadata().file_metadata().num_rows(), 0);
        assert_eq!(
            reader.metadata().file_metadata().schema().get_fields().len(),
            columns_of("wb").unwrap().columns.len()
        );
    }
}
