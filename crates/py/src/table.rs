// SPDX-License-Identifier: MIT OR Apache-2.0
//! A table in Python: it says its columns, and hands itself to any library that reads the Arrow PyCapsule interface.

use crate::arrow::Columns;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// Rows as Arrow columns. polars, pyarrow and DuckDB read it without copying, pandas without copying the numbers.
///
/// Times are UTC in nanoseconds, numbers are 64-bit unsigned integers, names are texts. The unit is at the end of a
/// column's name. A value that was not read is null, never 0. A limit column contains 18446744073709551615 where no limit
/// is set.
///
/// >>> import floodline
/// >>> run = floodline.simulate("dirty-cliff", seconds=5)
/// >>> disks = run.recording.table("disk")
/// >>> disks.columns[:4]
/// ['time', 'monotonic_ns', 'device', 'name']
/// >>> disks.describe("written_bytes")
/// 'Bytes written (sectors of 512 bytes).'
///
/// With polars: ``polars.DataFrame(disks)``. With pandas: ``pandas.DataFrame.from_arrow(disks)``. With pyarrow:
/// ``pyarrow.table(disks)``. DuckDB finds the variable by its name: ``duckdb.sql("from disks")``.
#[pyclass(frozen, module = "floodline")]
pub(crate) struct Table {
    /// Name of the table, such as ``disk``.
    #[pyo3(get)]
    name: String,
    columns: Columns,
}

impl Table {
    pub(crate) fn new(name: &str, columns: Columns) -> Table {
        Table { name: name.to_owned(), columns }
    }
}

#[pymethods]
impl Table {
    /// Names of the columns, in order.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.columns.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    /// One sentence on what a column means. An unknown column raises KeyError.
    #[pyo3(signature = (column, /))]
    fn describe(&self, column: &str) -> PyResult<String> {
        match self.columns.schema.field_with_name(column) {
            Ok(field) => Ok(field.metadata().get("description").cloned().unwrap_or_default()),
            Err(_) => Err(pyo3::exceptions::PyKeyError::new_err(column.to_owned())),
        }
    }

    /// The Arrow C stream of the rows. The requested schema is not considered, as the interface allows.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        self.columns.stream(py)
    }

    /// The rows as one Arrow C array, with texts as views. polars takes it before the stream, as it keeps texts as views.
    /// The requested schema is not considered, as the interface allows.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        drop(requested_schema);
        self.columns.array(py)
    }

    /// The Arrow C schema of the stream's columns.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        self.columns.schema_capsule(py)
    }

    /// Number of rows.
    fn __len__(&self) -> usize {
        self.columns.rows()
    }

    fn __repr__(&self) -> String {
        let (name, rows, columns) = (&self.name, self.columns.rows(), self.columns.schema.fields().len());
        format!("<floodline.Table {name}: {rows} rows, {columns} columns>")
    }
}
