// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows of an export as Arrow columns: the same tables, names and kinds of columns as `floodline export --format parquet`.
//! And a table as a C stream in a capsule, which hands out the columns without copying them.

use crate::failure::Failure;
use arrow_array::builder::{StringBuilder, TimestampNanosecondBuilder, UInt64Builder};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{ArrayRef, Float64Array, RecordBatch, RecordBatchIterator, StringArray};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use floodline_view::export::{Cell, ColumnKind, ExportError, FlatTable, FlatValue, RowWriter, columns_of};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Rows of one batch: few enough that texts of the longest names stay below 2 GiB.
const BATCH: usize = 1 << 18;

/// A table as Arrow holds it.
#[derive(Clone, Debug)]
pub(crate) struct Columns {
    pub(crate) schema: SchemaRef,
    pub(crate) batches: Vec<RecordBatch>,
}

impl Columns {
    /// Number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// A table of texts and numbers.
    pub(crate) fn of_flat(table: &FlatTable) -> Result<Columns, Failure> {
        let texts = table.texts();
        let names = table.columns();
        let fields = names.iter().enumerate().map(|(at, name)| {
            let kind = if at < texts { DataType::Utf8 } else { DataType::Float64 };
            Field::new(name, kind, true)
        });
        let schema: SchemaRef = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let column = |at: usize| -> ArrayRef {
            let cells = table.rows().iter().map(|row| row.get(at));
            match at < texts {
                true => Arc::new(StringArray::from_iter(cells.map(|cell| match cell {
                    Some(FlatValue::Text(text)) => Some(text.as_str()),
                    _ => None,
                }))),
                false => Arc::new(Float64Array::from_iter(cells.map(|cell| match cell {
                    Some(FlatValue::Number(number)) => Some(*number),
                    _ => None,
                }))),
            }
        };
        let batch = RecordBatch::try_new(Arc::clone(&schema), (0..names.len()).map(column).collect());
        Ok(Columns { schema, batches: vec![batch.map_err(Failure::bug)?] })
    }

    /// As a capsule that holds a C stream.
    pub(crate) fn stream<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        // A batch is a few pointers to columns that both sides share.
        let batches = self.batches.clone().into_iter().map(Ok);
        let reader = RecordBatchIterator::new(batches, Arc::clone(&self.schema));
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(reader)), c"arrow_array_stream")
    }

    /// The schema as a capsule.
    pub(crate) fn schema_capsule<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.schema.as_ref()).map_err(Failure::bug)?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }
}

enum Builder {
    Time(TimestampNanosecondBuilder),
    Number(UInt64Builder),
    Text(StringBuilder),
}

impl Builder {
    fn new(kind: ColumnKind) -> Builder {
        match kind {
            ColumnKind::Time => Builder::Time(TimestampNanosecondBuilder::new().with_timezone("UTC")),
            ColumnKind::Unsigned => Builder::Number(UInt64Builder::new()),
            ColumnKind::Text => Builder::Text(StringBuilder::new()),
        }
    }

    fn push(&mut self, cell: &Cell) {
        match (self, cell) {
            // A time after the year 2262 does not fit: it is a wrong one.
            (Builder::Time(column), Cell::Unsigned(wall)) => column.append_option(i64::try_from(*wall).ok()),
            (Builder::Time(column), _) => column.append_null(),
            (Builder::Number(column), Cell::Unsigned(value)) => column.append_value(*value),
            (Builder::Number(column), _) => column.append_null(),
            (Builder::Text(column), Cell::Text(text)) => column.append_value(text),
            (Builder::Text(column), _) => column.append_null(),
        }
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Builder::Time(column) => Arc::new(column.finish()),
            Builder::Number(column) => Arc::new(column.finish()),
            Builder::Text(column) => Arc::new(column.finish()),
        }
    }
}

/// Gathers rows of one table.
pub(crate) struct Gatherer {
    schema: SchemaRef,
    builders: Vec<Builder>,
    rows: usize,
    batches: Vec<RecordBatch>,
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
            schema: Arc::new(Schema::new(fields.collect::<Vec<_>>())),
            builders: columns.iter().map(|column| Builder::new(column.kind)).collect(),
            rows: 0,
            batches: Vec::new(),
        })
    }

    fn cut(&mut self) -> Result<(), Failure> {
        let columns = self.builders.iter_mut().map(Builder::finish).collect();
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns).map_err(Failure::bug)?;
        self.batches.push(batch);
        self.rows = 0;
        Ok(())
    }

    /// Ends the table.
    pub(crate) fn finish(mut self) -> Result<Columns, Failure> {
        if self.rows > 0 {
            self.cut()?;
        }
        Ok(Columns { schema: self.schema, batches: self.batches })
    }
}

impl RowWriter for Gatherer {
    fn row(&mut self, _table: &'static str, cells: &[Cell]) -> Result<(), ExportError> {
        for (cell, builder) in cells.iter().zip(&mut self.builders) {
            builder.push(cell);
        }
        self.rows += 1;
        if self.rows < BATCH {
            return Ok(());
        }
        self.cut().map_err(|failure| ExportError::Write(std::io::Error::other(failure.text().to_owned())))
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
