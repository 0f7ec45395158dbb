// SPDX-License-Identifier: MIT OR Apache-2.0
//! Schema of a file: the program that wrote it, and every column with its meaning. A reader maps the columns of a file
//! to its own by name. It skips columns that it does not know; columns that the file lacks stay unread.

use crate::metric::{Metric, MetricKind, Row};
use crate::sample::{HostRow, Sample, Table, TableVisitor};
use crate::text::Text;
use crate::units::Nanos;
use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

/// The first frame of a recording. Written as JSON: fields are added with a default, never renamed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// Program that wrote the recording, e.g. `floodline`.
    #[serde(default)]
    pub program: Text,
    /// Its version.
    #[serde(default)]
    pub version: Text,
    /// Interval between samples, if the recorder had a schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every_ns: Option<Nanos>,
    /// Tables of the samples, in the order the file refers to them.
    #[serde(default)]
    pub tables: Vec<TableSchema>,
}

/// One table as the file describes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TableSchema {
    /// Name, e.g. `cgroup`.
    pub name: Text,
    /// Columns in the order they are written.
    pub columns: Vec<ColumnSchema>,
}

/// One column as the file describes it. Text, so that a unit or kind of a newer version can be read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ColumnSchema {
    /// Field name.
    pub name: Text,
    /// Unit suffix.
    pub unit: Text,
    /// `counter` or `gauge`.
    #[serde(default)]
    pub kind: Text,
    /// File and key it is read from.
    #[serde(default)]
    pub source: Text,
    /// Its meaning.
    #[serde(default)]
    pub doc: Text,
}

/// A header as in a file: all of it is checked, and only the parts needed to find columns are copied.
#[derive(Default, Deserialize)]
pub(super) struct Written<'a> {
    #[serde(default, rename = "program")]
    _program: Said,
    #[serde(default, rename = "version")]
    _version: Said,
    #[serde(default, rename = "every_ns")]
    _every_ns: Option<Nanos>,
    #[serde(borrow, default)]
    pub(super) tables: Vec<WrittenTable<'a>>,
}

/// One table of it.
#[derive(Deserialize)]
pub(super) struct WrittenTable<'a> {
    #[serde(borrow)]
    name: Word<'a>,
    #[serde(borrow)]
    columns: Vec<WrittenColumn<'a>>,
}

/// One column of it.
#[derive(Deserialize)]
struct WrittenColumn<'a> {
    #[serde(borrow)]
    name: Word<'a>,
    #[serde(borrow)]
    unit: Word<'a>,
    #[serde(default, rename = "kind")]
    _kind: Said,
    #[serde(default, rename = "source")]
    _source: Said,
    #[serde(default, rename = "doc")]
    _doc: Said,
}

/// A word that is compared and not shown: it is not escaped.
#[derive(Deserialize)]
struct Word<'a>(#[serde(borrow)] Cow<'a, str>);

/// Some text, whatever it says.
#[derive(Default)]
struct Said;

impl<'de> Deserialize<'de> for Said {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Said, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Said;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_str<E>(self, _: &str) -> Result<Said, E> {
                Ok(Said)
            }
        }
        deserializer.deserialize_str(Text)
    }
}

impl Header {
    /// Returns the header that this build writes.
    pub fn new(every: Option<Nanos>) -> Header {
        Header {
            program: "floodline".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            every_ns: every,
            tables: tables_of_this_build(),
        }
    }
}

impl ColumnSchema {
    fn of(metric: &Metric) -> ColumnSchema {
        ColumnSchema {
            name: metric.name.into(),
            unit: metric.unit.suffix().into(),
            kind: match metric.kind {
                MetricKind::Counter => "counter".into(),
                MetricKind::Gauge => "gauge".into(),
            },
            source: metric.source.into(),
            doc: metric.doc.into(),
        }
    }
}

/// Every table that this build knows, in visiting order.
struct Tables<F>(F);

impl<F: FnMut(&'static str, &'static [Metric])> TableVisitor for Tables<F> {
    fn host(&mut self, _: &HostRow) {
        (self.0)(HostRow::TABLE, HostRow::METRICS);
    }
    fn table<R: Row + 'static>(&mut self, _: &Table<R>) {
        (self.0)(R::TABLE, R::METRICS);
    }
}

fn each_table(visit: impl FnMut(&'static str, &'static [Metric])) {
    Sample::default().visit(&mut Tables(visit));
}

/// Returns the schema of this build.
pub(super) fn tables_of_this_build() -> Vec<TableSchema> {
    let mut tables = Vec::new();
    each_table(|name, metrics| {
        tables.push(TableSchema { name: name.into(), columns: metrics.iter().map(ColumnSchema::of).collect() });
    });
    tables
}

/// Differences between a file's schema and that of this build. Both lists are empty for equal schemas.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Differences {
    /// Tables (`name`) and columns (`table.name`) of the file that this build skips.
    pub unknown: Vec<Text>,
    /// Columns (`table.name`) of this build that the file cannot have; they read as `None`.
    pub missing: Vec<Text>,
}

/// Mapping of the columns of a file to those of this build.
#[derive(Default)]
pub(super) struct Mapping {
    /// By table name: the table's number in the file, and the index in `METRICS` of each of its columns.
    pub(super) tables: BTreeMap<&'static str, (usize, Vec<Option<usize>>)>,
    /// Tables of the file.
    pub(super) count: usize,
    pub(super) differences: Differences,
}

impl Mapping {
    pub(super) fn new(file: &[WrittenTable<'_>]) -> Mapping {
        let mut mapping = Mapping { count: file.len(), ..Mapping::default() };
        each_table(|name, metrics| mapping.map(file, name, metrics));
        let Mapping { tables, differences, .. } = &mut mapping;
        let unknown = file.iter().filter(|table| !tables.contains_key(&*table.name.0));
        differences.unknown.extend(unknown.map(|table| Text::new(&*table.name.0)));
        mapping
    }

    fn map(&mut self, file: &[WrittenTable<'_>], name: &'static str, metrics: &[Metric]) {
        let Some(at) = file.iter().position(|table| table.name.0 == name) else {
            self.differences.missing.extend(metrics.iter().map(|metric| format!("{name}.{}", metric.name).into()));
            return;
        };
        let columns = file.get(at).map(|table| table.columns.as_slice()).unwrap_or_default();
        let mut found = vec![false; metrics.len()];
        let mut indices = Vec::with_capacity(columns.len());
        for column in columns {
            // The same name in another unit is another column.
            let index = metrics.iter().position(|m| column.name.0 == m.name && column.unit.0 == m.unit.suffix());
            let index = index.filter(|&index| found.get(index) == Some(&false));
            match index.and_then(|index| found.get_mut(index)) {
                Some(found) => *found = true,
                None => self.differences.unknown.push(format!("{name}.{}", column.name.0).into()),
            }
            indices.push(index);
        }
        let missing = metrics.iter().zip(&found).filter(|(_, found)| !**found);
        self.differences.missing.extend(missing.map(|(metric, _)| format!("{name}.{}", metric.name).into()));
        self.tables.insert(name, (at, indices));
    }
}
