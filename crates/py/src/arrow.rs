// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows of an export as Arrow columns: the same tables, names and kinds of columns as `floodline export --format parquet`.
//! And a table in capsules, which hand out the columns without copying them: as a C stream with texts as strings (Utf8),
//! which every library computes with, and as one C array with texts as views (Utf8View), which is what polars keeps. The
//! views point into the texts of the strings.

use crate::failure::Failure;
use arrow_array::builder::{ArrayBuilder, StringBuilder, StringViewBuilder, TimestampNanosecondBuilder, UInt64Builder};
use arrow_array::ffi::FFI_ArrowArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, RecordBatchIterator, StringArray, StructArray,
};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef, TimeUnit};
use floodline_view::export::{Cell, ColumnKind, ExportError, FlatKind, FlatTable, FlatValue, RowWriter, columns_of};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Rows of one batch: few enough that texts of the longest names stay below 2 GiB.
const BATCH: usize = 1 << 18;

/// A table as Arrow holds it.
#[derive(Clone, Debug)]
pub(crate) struct Columns {
    /// Texts are strings.
    pub(crate) schema: SchemaRef,
    /// Columns of a batch each, with the schema's types.
    batches: Vec<RecordBatch>,
    /// The same columns in one piece. Texts are views.
    whole: StructArray,
}

impl Columns {
    fn new(schema: Schema, columns: Vec<Column>) -> Result<Columns, Failure> {
        let schema: SchemaRef = Arc::new(schema);
        let rows = columns.first().map_or(0, Column::rows);
        let batch = |from: usize| {
            let parts = columns.iter().map(|column| column.batch(from, BATCH.min(rows - from)));
            RecordBatch::try_new(Arc::clone(&schema), parts.collect())
        };
        let batches = (0..rows).step_by(BATCH).map(batch).collect::<Result<Vec<_>, _>>().map_err(Failure::bug)?;
        let fields = schema.fields().iter().map(|field| match field.data_type() {
            DataType::Utf8 => Arc::new(field.as_ref().clone().with_data_type(DataType::Utf8View)),
            _ => Arc::clone(field),
        });
        let whole = columns.into_iter().map(Column::whole).collect();
        let whole = StructArray::try_new(fields.collect(), whole, None).map_err(Failure::bug)?;
        Ok(Columns { schema, batches, whole })
    }

    /// Number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.whole.len()
    }

    /// A table of texts and numbers.
    pub(crate) fn of_flat(table: &FlatTable) -> Result<Columns, Failure> {
        let names = table.columns();
        let fields = names.iter().zip(table.kinds()).map(|(name, kind)| {
            let kind = match kind {
                FlatKind::Text => DataType::Utf8,
                FlatKind::Number => DataType::Float64,
                FlatKind::Whole => DataType::Int64,
                FlatKind::Flag => DataType::Boolean,
            };
            Field::new(name, kind, true)
        });
        let schema = Schema::new(fields.collect::<Vec<_>>());
        let column = |(at, kind): (usize, &FlatKind)| -> Result<Column, Failure> {
            let cells = table.rows().iter().map(|row| row.get(at));
            match kind {
                FlatKind::Number => {
                    let numbers = Float64Array::from_iter(cells.map(|cell| match cell {
                        Some(FlatValue::Number(number)) => Some(*number),
                        _ => None,
                    }));
                    return Ok(Column::Plain(Arc::new(numbers)));
                }
                FlatKind::Whole => {
                    let wholes = Int64Array::from_iter(cells.map(|cell| match cell {
                        Some(FlatValue::Whole(number)) => Some(*number),
                        _ => None,
                    }));
                    return Ok(Column::Plain(Arc::new(wholes)));
                }
                FlatKind::Flag => {
                    let flags = BooleanArray::from_iter(cells.map(|cell| match cell {
                        Some(FlatValue::Flag(flag)) => Some(*flag),
                        _ => None,
                    }));
                    return Ok(Column::Plain(Arc::new(flags)));
                }
                FlatKind::Text => {}
            }
            let mut column = Texts::default();
            for cell in cells {
                column
                    .push(match cell {
                        Some(FlatValue::Text(text)) => Some(text),
                        _ => None,
                    })
                    .map_err(Failure::bug)?;
            }
            column.finish().map_err(Failure::bug)
        };
        Columns::new(schema, table.kinds().iter().enumerate().map(column).collect::<Result<_, _>>()?)
    }

    /// As a capsule that holds a C stream. Texts are strings.
    pub(crate) fn stream<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        // A batch is a few pointers to columns that both sides share.
        let batches = self.batches.clone().into_iter().map(Ok);
        let reader = RecordBatchIterator::new(batches, Arc::clone(&self.schema));
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(reader)), c"arrow_array_stream")
    }

    /// As the capsules of a schema and of one C array. Texts are views.
    pub(crate) fn array<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        let schema = FFI_ArrowSchema::try_from(self.whole.data_type()).map_err(Failure::bug)?;
        let array = FFI_ArrowArray::new(&self.whole.to_data());
        let schema = PyCapsule::new_with_value(py, schema, c"arrow_schema")?;
        Ok((schema, PyCapsule::new_with_value(py, array, c"arrow_array")?))
    }

    /// The schema of the stream as a capsule.
    pub(crate) fn schema_capsule<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.schema.as_ref()).map_err(Failure::bug)?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }
}

/// A column that is complete.
enum Column {
    /// Numbers or times.
    Plain(ArrayRef),
    /// Texts: strings of a batch each, and views into them.
    Texts(Vec<ArrayRef>, ArrayRef),
}

impl Column {
    fn rows(&self) -> usize {
        self.whole_ref().len()
    }

    /// Returns the rows of a batch.
    fn batch(&self, from: usize, rows: usize) -> ArrayRef {
        match self {
            Column::Plain(column) => column.slice(from, rows),
            Column::Texts(batches, _) => {
                batches.get(from / BATCH).map_or_else(|| Arc::new(StringArray::new_null(rows)) as ArrayRef, Arc::clone)
            }
        }
    }

    fn whole_ref(&self) -> &ArrayRef {
        match self {
            Column::Plain(column) | Column::Texts(_, column) => column,
        }
    }

    /// Returns all rows in one piece.
    fn whole(self) -> ArrayRef {
        match self {
            Column::Plain(column) | Column::Texts(_, column) => column,
        }
    }
}

/// Gathers a column of texts.
#[derive(Default)]
struct Texts {
    batch: StringBuilder,
    batches: Vec<ArrayRef>,
    views: StringViewBuilder,
}

impl Texts {
    fn push(&mut self, text: Option<&str>) -> Result<(), ArrowError> {
        self.batch.append_option(text);
        if self.batch.len() < BATCH { Ok(()) } else { self.cut() }
    }

    /// Ends a batch, and makes views of its texts.
    fn cut(&mut self) -> Result<(), ArrowError> {
        let batch = self.batch.finish();
        let block = self.views.append_block(batch.values().clone());
        for (row, ends) in batch.offsets().windows(2).enumerate() {
            match *ends {
                [start, end] if batch.is_valid(row) => {
                    // Offsets of a string array ascend from 0.
                    self.views.try_append_view(block, start as u32, (end - start) as u32)?;
                }
                _ => self.views.append_null(),
            }
        }
        self.batches.push(Arc::new(batch));
        Ok(())
    }

    fn finish(mut self) -> Result<Column, ArrowError> {
        if !self.batch.is_empty() {
            self.cut()?;
        }
        Ok(Column::Texts(self.batches, Arc::new(self.views.finish())))
    }
}

enum Builder {
    Time(TimestampNanosecondBuilder),
    Number(UInt64Builder),
    Text(Box<Texts>),
}

impl Builder {
    fn new(kind: ColumnKind) -> Builder {
        match kind {
            ColumnKind::Time => Builder::Time(TimestampNanosecondBuilder::new().with_timezone("UTC")),
            ColumnKind::Unsigned => Builder::Number(UInt64Builder::new()),
            ColumnKind::Text => Builder::Text(Box::default()),
        }
    }

    fn push(&mut self, cell: &Cell) -> Result<(), ArrowError> {
        match (self, cell) {
            // A time after the year 2262 does not fit: it is a wrong one.
            (Builder::Time(column), Cell::Unsigned(wall)) => column.append_option(i64::try_from(*wall).ok()),
            (Builder::Time(column), _) => column.append_null(),
            (Builder::Number(column), Cell::Unsigned(value)) => column.append_value(*value),
            (Builder::Number(column), _) => column.append_null(),
            (Builder::Text(column), Cell::Text(text)) => column.push(Some(text))?,
            (Builder::Text(column), _) => column.push(None)?,
        }
        Ok(())
    }

    fn finish(self) -> Result<Column, ArrowError> {
        Ok(match self {
            Builder::Time(mut column) => Column::Plain(Arc::new(column.finish())),
            Builder::Number(mut column) => Column::Plain(Arc::new(column.finish())),
            Builder::Text(column) => column.finish()?,
        })
    }
}

/// Gathers rows of one table.
pub(crate) struct Gatherer {
    schema: Schema,
    builders: Vec<Builder>,
}

impl Gatherer {
    /// Begins a table; `None` when there is no table of this name.
    pub(crate) fn new(table: &str) -> Option<Gatherer> {
        let columns = columns_of(table)?.columns;
        let fields = columns.iter().map(|column| {
            let kind = match column.kind {
                ColumnKind::Time => DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())),
                ColumnKind::Unsigned => DataType::UInt64,
                ColumnKind::Text => DataType::Utf8,
            };
            let doc = BTreeMap::from([("description".to_owned(), column.doc.to_owned())]);
            Field::new(&column.name, kind, true).with_metadata(doc)
        });
        Some(Gatherer {
            schema: Schema::new(fields.collect::<Vec<_>>()),
            builders: columns.iter().map(|column| Builder::new(column.kind)).collect(),
        })
    }

    /// Ends the table.
    pub(crate) fn finish(self) -> Result<Columns, Failure> {
        let columns = self.builders.into_iter().map(Builder::finish).collect::<Result<_, _>>();
        Columns::new(self.schema, columns.map_err(Failure::bug)?)
    }
}

impl RowWriter for Gatherer {
    fn row(&mut self, _table: &'static str, cells: &[Cell]) -> Result<(), ExportError> {
        for (cell, builder) in cells.iter().zip(&mut self.builders) {
            builder.push(cell).map_err(|error| ExportError::Write(std::io::Error::other(error)))?;
        }
        Ok(())
    }
}

/// Counts the rows of each table.
#[derive(Debug, Default)]
pub(crate) struct Counter(pub(crate) BTreeMap<&'static str, u64>);

impl RowWriter for Counter {
    fn row(&mut self, table: &'static str, _cells: &[Cell]) -> Result<(), ExportError> {
        *self.0.entry(table).or_default() += 1;
        Ok(())
    }
}
