// SPDX-License-Identifier: MIT OR Apache-2.0
//! One small table whose columns are known only when all rows are there: texts first, then numbers, any of
//! them missing. As CSV with a header line, or as Parquet with UTF-8, DOUBLE, INT64 and BOOLEAN columns.

use super::ExportError;
use parquet::basic::{Compression, LogicalType, Repetition, Type as PhysicalType, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
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
    /// A count, bytes or nanoseconds.
    Whole(i64),
    /// Whether something holds: `true` and `false`, in CSV 1 and 0.
    Flag(bool),
}

/// What the cells of a column are, where there is something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlatKind {
    /// Texts.
    Text,
    /// Numbers with a fraction.
    Number,
    /// Whole numbers.
    Whole,
    /// Flags.
    Flag,
}

impl FlatKind {
    fn physical(self) -> PhysicalType {
        match self {
            FlatKind::Text => PhysicalType::BYTE_ARRAY,
            FlatKind::Number => PhysicalType::DOUBLE,
            FlatKind::Whole => PhysicalType::INT64,
            FlatKind::Flag => PhysicalType::BOOLEAN,
        }
    }

    fn has(self, cell: &FlatValue) -> bool {
        matches!(
            (self, cell),
            (_, FlatValue::Null)
                | (FlatKind::Text, FlatValue::Text(_))
                | (FlatKind::Number, FlatValue::Number(_))
                | (FlatKind::Whole, FlatValue::Whole(_))
                | (FlatKind::Flag, FlatValue::Flag(_))
        )
    }
}

/// A table.
#[derive(Clone, Debug)]
pub struct FlatTable {
    name: String,
    columns: Vec<String>,
    kinds: Vec<FlatKind>,
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
        let kind = |at| if at < texts { FlatKind::Text } else { FlatKind::Number };
        let kinds = (0..columns.len()).map(kind).collect();
        FlatTable::of_kinds(name, columns, kinds, rows)
    }

    /// A table of columns, each of its kind.
    pub fn of_kinds(
        name: &str,
        columns: Vec<String>,
        kinds: Vec<FlatKind>,
        rows: Vec<Vec<FlatValue>>,
    ) -> Result<FlatTable, ExportError> {
        let fits = |row: &&Vec<FlatValue>| {
            row.len() == columns.len() && kinds.iter().zip(row.iter()).all(|(kind, cell)| kind.has(cell))
        };
        match rows.iter().find(|row| !fits(row)) {
            Some(row) => Err(ExportError::NoSuchTable(format!("{name} with a row of {} cells", row.len()))),
            None => Ok(FlatTable { name: name.to_owned(), columns, kinds, rows }),
        }
    }

    /// Names of the columns.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// Kinds of the columns.
    pub fn kinds(&self) -> &[FlatKind] {
        &self.kinds
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
                    FlatValue::Whole(number) => writer.write_field(number.to_string())?,
                    FlatValue::Flag(flag) => writer.write_field(u8::from(*flag).to_string())?,
                }
            }
            writer.write_record(None::<&[u8]>)?;
        }
        Ok(writer.flush()?)
    }

    /// Writes it as Parquet.
    pub fn parquet(&self, out: impl Write + Send) -> Result<(), ExportError> {
        let field = |(name, kind): (&String, &FlatKind)| {
            let logical = (*kind == FlatKind::Text).then_some(LogicalType::String);
            let builder = Type::primitive_type_builder(name, kind.physical()).with_repetition(Repetition::OPTIONAL);
            Ok(Arc::new(builder.with_logical_type(logical).build()?))
        };
        let fields = self.columns.iter().zip(&self.kinds).map(field).collect::<Result<Vec<_>, ExportError>>()?;
        let schema = Type::group_type_builder(&self.name).with_fields(fields).build()?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_created_by(concat!("floodline ", env!("CARGO_PKG_VERSION")).to_owned())
            .build();
        let mut writer = SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties))?;
        let mut group = writer.next_row_group()?;
        for (index, kind) in self.kinds.iter().enumerate() {
            let Some(mut column) = group.next_column()? else { break };
            let cells = || self.rows.iter().filter_map(|row| row.get(index));
            let present: Vec<i16> = cells().map(|cell| i16::from(*cell != FlatValue::Null)).collect();
            let (mut texts, mut numbers, mut wholes, mut flags) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
            for cell in cells() {
                match cell {
                    FlatValue::Null => {}
                    FlatValue::Text(text) => texts.push(ByteArray::from(text.as_str())),
                    FlatValue::Number(number) => numbers.push(*number),
                    FlatValue::Whole(number) => wholes.push(*number),
                    FlatValue::Flag(flag) => flags.push(*flag),
                }
            }
            match kind {
                FlatKind::Text => column.typed::<ByteArrayType>().write_batch(&texts, Some(&present), None)?,
                FlatKind::Number => column.typed::<DoubleType>().write_batch(&numbers, Some(&present), None)?,
                FlatKind::Whole => column.typed::<Int64Type>().write_batch(&wholes, Some(&present), None)?,
                FlatKind::Flag => column.typed::<BoolType>().write_batch(&flags, Some(&present), None)?,
            };
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

    #[test]
    fn whole_numbers_and_flags_keep_their_kind() {
        let at = 1_796_137_200_123_456_789_i64;
        let kinds = || vec![FlatKind::Whole, FlatKind::Flag];
        let columns = || vec!["recorded_wall_ns".to_owned(), "accepted".to_owned()];
        let rows =
            vec![vec![FlatValue::Whole(at), FlatValue::Flag(true)], vec![FlatValue::Null, FlatValue::Flag(false)]];
        let table = FlatTable::of_kinds("preflight", columns(), kinds(), rows).unwrap();
        let mut out = Vec::new();
        table.parquet(&mut out).unwrap();
        let reader = SerializedFileReader::new(bytes::Bytes::from(out)).unwrap();
        let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
        assert_eq!((rows[0].get_long(0).unwrap(), rows[0].get_bool(1).unwrap()), (at, true));
        assert!(rows[1].get_long(0).is_err() && !rows[1].get_bool(1).unwrap());
        let mut out = Vec::new();
        table.csv(&mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "recorded_wall_ns,accepted\n1796137200123456789,1\n,0\n");
        let wrong = vec![vec![FlatValue::Number(1.0), FlatValue::Flag(true)]];
        assert!(FlatTable::of_kinds("preflight", columns(), kinds(), wrong).is_err());
    }
}
