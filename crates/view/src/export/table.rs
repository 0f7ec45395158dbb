// SPDX-License-Identifier: MIT OR Apache-2.0
//! Samples as flat rows: time, what names the entity, then its metrics with the unit in the column's
//! name. One table per kind of row; the columns come from the rows' own descriptions.

use super::ExportError;
use floodline_record::id::{Entity, EntityId};
use floodline_record::metric::{Metric, Row};
use floodline_record::record::Record;
use floodline_record::sample::{
    BdiRow, CgroupIoRow, CgroupLimitsRow, CgroupRow, DiskRow, HostRow, ProcessRow, Sample, SampleTime, Table,
    TableVisitor, WbRow, ZoneRow,
};
use floodline_record::units::Unit;
use std::collections::BTreeMap;

/// The tables of a recording, in the order of a sample.
pub const TABLES: &[&str] = &[
    HostRow::TABLE,
    ZoneRow::TABLE,
    DiskRow::TABLE,
    BdiRow::TABLE,
    WbRow::TABLE,
    CgroupRow::TABLE,
    CgroupLimitsRow::TABLE,
    CgroupIoRow::TABLE,
    ProcessRow::TABLE,
];

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// Wall-clock time, nanoseconds since 1970 UTC.
    Time,
    /// A number from 0 to 2⁶⁴−1.
    Unsigned,
    /// Escaped text.
    Text,
}

/// One column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name, unit last.
    pub name: String,
    /// What it holds.
    pub kind: ColumnKind,
    /// One sentence on what it means.
    pub doc: &'static str,
}

/// A table and its columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableColumns {
    /// One of [`TABLES`].
    pub table: &'static str,
    /// Its columns in order.
    pub columns: Vec<Column>,
}

/// One value of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    /// Not read.
    Null,
    /// A number, or a time in nanoseconds.
    Unsigned(u64),
    /// Escaped text.
    Text(String),
}

/// Takes flat rows.
pub trait RowWriter {
    /// Takes one row of one table; `cells` are in the order of [`columns_of`] the table.
    fn row(&mut self, table: &'static str, cells: &[Cell]) -> Result<(), ExportError>;
}

/// The columns of one table; `None` when there is no such table.
pub fn columns_of(table: &str) -> Option<TableColumns> {
    match table {
        HostRow::TABLE => Some(describe::<HostRow>()),
        ZoneRow::TABLE => Some(describe::<ZoneRow>()),
        DiskRow::TABLE => Some(describe::<DiskRow>()),
        BdiRow::TABLE => Some(describe::<BdiRow>()),
        WbRow::TABLE => Some(describe::<WbRow>()),
        CgroupRow::TABLE => Some(describe::<CgroupRow>()),
        CgroupLimitsRow::TABLE => Some(describe::<CgroupLimitsRow>()),
        CgroupIoRow::TABLE => Some(describe::<CgroupIoRow>()),
        ProcessRow::TABLE => Some(describe::<ProcessRow>()),
        _ => None,
    }
}

const TIME_COLUMNS: &[(&str, ColumnKind, &str)] = &[
    ("time", ColumnKind::Time, "When the sample's reading began, wall clock."),
    ("monotonic_ns", ColumnKind::Unsigned, "The same on the monotonic clock, since boot."),
];

/// The columns that name an entity of a table.
fn key_columns(table: &str) -> &'static [(&'static str, ColumnKind, &'static str)] {
    match table {
        ZoneRow::TABLE => {
            &[("node", ColumnKind::Unsigned, "NUMA node."), ("zone", ColumnKind::Text, "Zone of the node.")]
        }
        DiskRow::TABLE => &[
            ("device", ColumnKind::Text, "Device number, major:minor."),
            ("name", ColumnKind::Text, "Kernel name of the device."),
        ],
        BdiRow::TABLE => &[("bdi", ColumnKind::Text, "Name of the backing device info.")],
        WbRow::TABLE => &[
            ("bdi", ColumnKind::Text, "Name of the backing device info."),
            ("cgroup_ino", ColumnKind::Unsigned, "Inode number of the cgroup's directory; 1 is the root."),
        ],
        CgroupRow::TABLE | CgroupLimitsRow::TABLE => &[
            ("cgroup", ColumnKind::Text, "Path of the cgroup."),
            ("cgroup_ino", ColumnKind::Unsigned, "Inode number of the cgroup's directory."),
        ],
        CgroupIoRow::TABLE => &[
            ("cgroup", ColumnKind::Text, "Path of the cgroup."),
            ("device", ColumnKind::Text, "Device number, major:minor."),
        ],
        ProcessRow::TABLE => &[
            ("pid", ColumnKind::Unsigned, "Process id."),
            ("comm", ColumnKind::Text, "Name of the process."),
            ("cgroup", ColumnKind::Text, "Path of its cgroup."),
        ],
        _ => &[],
    }
}

fn describe<R: Row>() -> TableColumns {
    let fixed = TIME_COLUMNS.iter().chain(key_columns(R::TABLE));
    let fixed = fixed.map(|(name, kind, doc)| Column { name: (*name).to_owned(), kind: *kind, doc });
    let metrics = R::METRICS.iter().map(|metric| Column {
        name: column_name(metric),
        kind: ColumnKind::Unsigned,
        doc: metric.doc,
    });
    TableColumns { table: R::TABLE, columns: fixed.chain(metrics).collect() }
}

/// A metric's name with its unit, unless the name ends with it already.
fn column_name(metric: &Metric) -> String {
    let unit = metric.unit.suffix();
    match metric.unit {
        Unit::Count | Unit::Flag | Unit::Bits => metric.name.to_owned(),
        _ if metric.name.ends_with(unit) => metric.name.to_owned(),
        _ => format!("{}_{unit}", metric.name),
    }
}

/// Turns records into flat rows, joining in what the ids stand for.
#[derive(Debug, Default)]
pub struct Flattener {
    entities: BTreeMap<EntityId, Entity>,
}

impl Flattener {
    /// Takes one record; a sample becomes rows, of one table if `only` names it.
    pub fn record(
        &mut self,
        record: &Record,
        only: Option<&str>,
        writer: &mut impl RowWriter,
    ) -> Result<(), ExportError> {
        match record {
            Record::Entity(id, entity) => {
                self.entities.insert(*id, entity.clone());
                Ok(())
            }
            Record::Sample(sample) => self.sample(sample, only, writer),
            Record::Facts(_) | Record::Event(_) | Record::Gap(_) => Ok(()),
        }
    }

    fn sample(&self, sample: &Sample, only: Option<&str>, writer: &mut impl RowWriter) -> Result<(), ExportError> {
        let mut walk =
            Walk { entities: &self.entities, time: sample.time, only, writer, cells: Vec::new(), result: Ok(()) };
        sample.visit(&mut walk);
        walk.result
    }

    /// What an id stands for.
    pub fn entity(&self, id: EntityId) -> Option<&Entity> {
        self.entities.get(&id)
    }
}

struct Walk<'a, W> {
    entities: &'a BTreeMap<EntityId, Entity>,
    time: SampleTime,
    only: Option<&'a str>,
    writer: &'a mut W,
    cells: Vec<Cell>,
    result: Result<(), ExportError>,
}

impl<W: RowWriter> Walk<'_, W> {
    fn row<R: Row>(&mut self, id: Option<EntityId>, row: &R) {
        if self.result.is_err() || self.only.is_some_and(|only| only != R::TABLE) {
            return;
        }
        self.cells.clear();
        self.cells.push(Cell::Unsigned(self.time.wall.0));
        self.cells.push(Cell::Unsigned(self.time.monotonic.0));
        self.key(id, key_columns(R::TABLE).len());
        self.cells.extend((0..R::METRICS.len()).map(|index| row.get(index).map_or(Cell::Null, Cell::Unsigned)));
        self.result = self.writer.row(R::TABLE, &self.cells);
    }

    /// The cells of [`key_columns`]; null where a damaged recording does not say what an id stands for.
    fn key(&mut self, id: Option<EntityId>, wanted: usize) {
        let text = |text: &dyn std::fmt::Display| Cell::Text(text.to_string());
        let cgroup = |id: &EntityId| match self.entities.get(id) {
            Some(Entity::Cgroup { path, .. }) => text(path),
            _ => Cell::Null,
        };
        let key = match id.and_then(|id| self.entities.get(&id)) {
            Some(Entity::Zone { node, name }) => vec![Cell::Unsigned(u64::from(*node)), text(name)],
            Some(Entity::Disk { dev, name }) => vec![text(dev), text(name)],
            Some(Entity::Bdi { name }) => vec![text(name)],
            Some(Entity::Wb { bdi, cgroup_ino }) => vec![text(bdi), Cell::Unsigned(*cgroup_ino)],
            Some(Entity::Cgroup { path, ino, .. }) => vec![text(path), ino.map_or(Cell::Null, Cell::Unsigned)],
            Some(Entity::CgroupIo { cgroup: owner, dev }) => vec![cgroup(owner), text(dev)],
            Some(Entity::Process { pid, comm, cgroup: owner, .. }) => {
                vec![Cell::Unsigned(u64::from(*pid)), text(comm), owner.as_ref().map_or(Cell::Null, cgroup)]
            }
            None => Vec::new(),
        };
        let known = key.len().min(wanted);
        self.cells.extend(key.into_iter().take(wanted));
        self.cells.extend(std::iter::repeat_n(Cell::Null, wanted - known));
    }
}

impl<W: RowWriter> TableVisitor for Walk<'_, W> {
    fn host(&mut self, row: &HostRow) {
        self.row(None, row);
    }

    fn table<R: Row + 'static>(&mut self, table: &Table<R>) {
        for (id, row) in table.rows() {
            self.row(Some(*id), row);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_testkit::Fixture;
    use std::collections::BTreeSet;

    #[derive(Default)]
    struct Widths(BTreeMap<&'static str, BTreeSet<usize>>);

    impl RowWriter for Widths {
        fn row(&mut self, table: &'static str, cells: &[Cell]) -> Result<(), ExportError> {
            self.0.entry(table).or_default().insert(cells.len());
            Ok(())
        }
    }

    #[test]
    fn every_row_has_as_many_cells_as_its_table_has_columns() {
        let mut flattener = Flattener::default();
        let mut widths = Widths::default();
        for record in Fixture::healthy().seconds(2).records() {
            flattener.record(&record, None, &mut widths).unwrap();
        }
        assert!(widths.0.len() >= 6, "{:?}", widths.0);
        for (table, widths) in widths.0 {
            let columns = columns_of(table).expect("every table has columns");
            assert_eq!(widths, BTreeSet::from([columns.columns.len()]), "{table}");
        }
    }

    #[test]
    fn column_names_are_unique_and_carry_their_unit_once() {
        for table in TABLES {
            let columns = columns_of(table).expect("every table has columns").columns;
            let names: BTreeSet<&str> = columns.iter().map(|column| column.name.as_str()).collect();
            assert_eq!(names.len(), columns.len(), "{table}");
            assert!(!names.iter().any(|name| name.contains("bytes_bytes")), "{names:?}");
        }
    }

    #[test]
    fn an_id_that_nobody_described_gives_null_names() {
        let mut rows = Vec::new();
        struct Keep<'a>(&'a mut Vec<Vec<Cell>>);
        impl RowWriter for Keep<'_> {
            fn row(&mut self, _: &'static str, cells: &[Cell]) -> Result<(), ExportError> {
                self.0.push(cells.to_vec());
                Ok(())
            }
        }
        let sample = Sample { disks: Table::read(vec![(EntityId(7), DiskRow::default())]), ..Sample::default() };
        let record = Record::Sample(Box::new(sample));
        Flattener::default().record(&record, Some("disk"), &mut Keep(&mut rows)).unwrap();
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0][2..4], [Cell::Null, Cell::Null]);
    }
}
