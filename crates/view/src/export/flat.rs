// SPDX-License-Identifier: MIT OR Apache-2.0
//! One small table whose columns are known only when all rows are there: texts first, then numbers, any of
//! them missing. As CSV with a header line, or as Parquet with DOUBLE and UTF-8 columns.

use super::ExportError;
use parquet::basic::{Compression, LogicalType, Repetition, Type as PhysicalType, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;
use std::io::Write;
use std::sync::Arc;

/// A cell.
#[derive(Clone, Debug, PartialEq)]
pub enum FlatValue {
    /// Nothing is known.
    Null,
    /// A text.
    Text(String),
    /// A number in the unit that the column's name says.
    Number(f64),
}

/// A table.
#[derive(Clone, Debug)]
pub struct FlatTable {
    name: String,
    columns: Vec<String>,
    /// So many of the columns, from the first, are texts.
    texts: usize,
    rows: Vec<Vec<FlatValue>>,
}

impl FlatTable {
    /// A table of columns, of which the first `texts` hold texts and the others numbers.
    pub fn new(
        name: &str,
        columns: Vec<String>,
        texts: usize,
        rows: Vec<Vec<FlatValue>>,
    ) -> Result<FlatTable, ExportError> {
        match rows.iter().find(|row| row.len() != columns.len()) {
            Some(row) => Err(ExportError::NoSuchTable(format!("{name} with a row of {} cells", row.len()))),
            None => Ok(FlatTable { name: name.to_owned(), columns, texts, rows }),
        }
    }

    /// Names of the columns.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// Number of columns that hold texts; they come first.
    pub fn texts(&self) -> usize {
        self.texts
    }

    /// Cells by row.
    pub fn rows(&self) -> &[Vec<FlatValue>] {
        &self.rows
    }

    /// Writes it as CSV.
    pub fn csv(&self, out: impl Write) -> Result<(), ExportError> {
        let mut writer = ::csv::Writer::from_writer(out);
        writer.write_record(self.columns.iter().map(|column| super::csv::text_cell(column)))?;
        for row in &self.rows {
            for cell in row {
                match cell {
                    FlatValue::Null => writer.write_field("")?,
                    FlatValue::Text(text) => writer.write_field(super::csv::text_cell(text))?,
                    FlatValue::Number(number) => writer.write_field(number.to_string())?,
                }
            }
            writer.write_record(None::<&[u8]>)?;
        }
        Ok(writer.flush()?)
    }

    /// Writes it as Parquet.
    pub fn parquet(&self, out: impl Write + Send) -> Result<(), ExportError> {
        let field = |(index, name): (usize, &String)| {
            let (physical, logical) = match index < self.texts {
                true => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
                false => (PhysicalType::DOUBLE, None),
            };
            let builder = Type::primitive_type_builder(name, physical).with_repetition(Repetition::OPTIONAL);
            Ok(Arc::new(builder.with_logical_type(logical).build()?))
        };
        let fields = self.columns.iter().enumerate().map(field).collect::<Result<Vec<_>, ExportError>>()?;
        let schema = Type::group_type_builder(&self.name).with_fields(fields).build()?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_created_by(concat!("floodline ", env!("CARGO_PKG_VERSION")).to_owned())
            .build();
        let mut writer = SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties))?;
        let mut group = writer.next_row_group()?;
        for index in 0..self.columns.len() {
            let Some(mut column) = group.next_column()? else { break };
            let cells = || self.rows.iter().filter_map(|row| row.get(index));
            let (mut texts, mut numbers, mut present) = (Vec::new(), Vec::new(), Vec::new());
            for cell in cells() {
                present.push(i16::from(*cell != FlatValue::Null));
                match cell {
                    FlatValue::Null => {}
                    FlatValue::Text(text) => texts.push(ByteArray::from(text.as_str())),
                    FlatValue::Number(number) => numbers.push(*number),
                }
            }
            if index < self.texts {
                column.typed::<ByteArrayType>().write_batch(&texts, Some(&present), None)?;
            } else {
                column.typed::<DoubleType>().write_batch(&numbers, Some(&present), None)?;
            }
            column.close()?;
        }
        group.close()?;
        writer.close()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;

    #[test]
    fn a_table_reads_back_with_texts_numbers_and_nulls() {
        let rows = vec![
            vec![FlatValue::Text("6.1".to_owned()), FlatValue::Number(0.25)],
            vec![FlatValue::Text("6.12".to_owned()), FlatValue::Null],
        ];
        let columns = vec!["kernel".to_owned(), "t.write.max_seconds".to_owned()];
        let table = FlatTable::new("sweep", columns, 1, rows).unwrap();
        let mut out = Vec::new();
        table.parquet(&mut out).unwrap();
        let reader = SerializedFileReader::new(bytes::Bytes::from(out)).unwrap();
        let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
        assert_eq!((rows[0].get_string(0).unwrap().as_str(), rows[0].get_double(1).unwrap()), ("6.1", 0.25));
        assert!(rows[1].get_double(1).is_err());
    }

    #[test]
    fn a_row_that_is_too_short_is_no_table() {
        assert!(FlatTable::new("sweep", vec!["kernel".to_owned()], 1, vec![vec![]]).is_err());
    }
}
