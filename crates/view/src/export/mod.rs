// SPDX-License-Identifier: MIT OR Apache-2.0
//! A recording for other programs: tables as JSON Lines, CSV, Parquet, and a trace. Streaming: a row is written
//! when its sample arrives, and memory does not grow with the length of the recording. A value that
//! was not read is null or empty, never 0; the largest number of a limit column means "no limit".

mod csv;
mod flat;
mod jsonl;
mod parquet;
mod perfetto;
mod table;

pub use self::csv::CsvExport;
pub(crate) use self::csv::text_cell;
pub use flat::{FlatKind, FlatTable, FlatValue};
pub use jsonl::JsonLines;
pub use parquet::ParquetExport;
pub use perfetto::PerfettoTrace;
pub use table::{Cell, Column, ColumnKind, Flattener, RowWriter, TABLES, TableColumns, columns_of};

use floodline_record::units::Nanos;

/// Why an export stopped.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// Writing failed.
    #[error("{0}")]
    Write(#[from] std::io::Error),
    /// The Parquet library refused.
    #[error("parquet: {0}")]
    Parquet(#[from] ::parquet::errors::ParquetError),
    /// The table is not one of [`TABLES`].
    #[error("no table named {0}")]
    NoSuchTable(String),
}

impl ExportError {
    /// The failed write behind it, where there is one.
    pub fn io(&self) -> Option<&std::io::Error> {
        match self {
            ExportError::Write(error) => Some(error),
            ExportError::Parquet(::parquet::errors::ParquetError::External(error)) => error.downcast_ref(),
            ExportError::Parquet(_) | ExportError::NoSuchTable(_) => None,
        }
    }
}

impl From<::csv::Error> for ExportError {
    fn from(error: ::csv::Error) -> ExportError {
        // The conversion that the crate has forgets what kind of error it was.
        let shown = error.to_string();
        ExportError::Write(match error.into_kind() {
            ::csv::ErrorKind::Io(error) => error,
            _ => std::io::Error::other(shown),
        })
    }
}

/// A wall-clock time as RFC 3339 in UTC with milliseconds; `None` outside of the calendar.
pub fn rfc3339(wall: Nanos) -> Option<String> {
    let stamp = jiff::Timestamp::from_nanosecond(i128::from(wall.0)).ok()?;
    Some(format!("{stamp:.3}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    #[test]
    fn who_reads_csv_and_goes_away_is_told_as_such() {
        let error = ::csv::Error::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert_eq!(ExportError::from(error).io().map(io::Error::kind), Some(io::ErrorKind::BrokenPipe));
    }
}
