// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files of format version 1 open for ever. `fixtures/recording/v1.flr` was written by the first build
//! that had the format and is never written again; a new version of the format adds a file and a test
//! beside this one. What the file holds is stated here, column by column, by a formula over names.

use super::*;
use crate::record::What;
use crate::sample::{BdiRow, CgroupIoRow, CgroupLimitsRow, DiskRow, ProcessRow, TableVisitor, WbRow, ZoneRow};
use std::collections::BTreeSet;

const FILE: &[u8] = include_bytes!("../../../fixtures/recording/v1.flr");

/// Enough for a second keyframe.
const SECONDS: u64 = 66;

/// FNV-1a, so that the file's readings follow from the names of its columns.
fn hash(words: &[&str]) -> u64 {
    let bytes = words.iter().flat_map(|word| word.bytes().chain([b'.']));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// What the file has in one cell.
fn reading(table: &str, column: &str, id: u32, second: u64) -> Option<u64> {
    let seed = hash(&[table, column, &id.to_string()]);
    let turn = second / 8;
    match (seed >> 32) % 6 {
        0 => None,
        1 => Some(seed % 1000),
        2 => Some(seed % 100_000 + turn * 4096),
        3 => Some(u64::MAX - turn),
        4 => Some(seed.wrapping_mul(turn)),
        _ => turn.is_multiple_of(2).then_some(turn),
    }
}

fn row<R: Row>(id: u32, second: u64) -> R {
    let mut row = R::default();
    for (index, metric) in R::METRICS.iter().enumerate() {
        row.set(index, reading(R::TABLE, metric.name, id, second));
    }
    row
}

fn table<R: Row>(ids: &[u32], second: u64) -> Table<R> {
    Table::read(ids.iter().map(|id| (EntityId(*id), row(*id, second))).collect())
}

fn sample(second: u64) -> Sample {
    let now_and_then = second.is_multiple_of(16);
    Sample {
        time: SampleTime { monotonic: Nanos(second * 1_000_000_007), wall: Nanos(1_790_000_000_000_000_000 + second) },
        took: Nanos(2_000_000 + second),
        host: row(0, second),
        zones: if now_and_then { table::<ZoneRow>(&[1], second) } else { Table::default() },
        disks: table::<DiskRow>(&[2], second),
        bdis: table::<BdiRow>(&[3], second),
        wbs: table::<WbRow>(&[4], second),
        cgroups: table::<CgroupRow>(&[5, 6], second),
        cgroup_limits: if now_and_then { table::<CgroupLimitsRow>(&[5, 6], second) } else { Table::default() },
        cgroup_io: table::<CgroupIoRow>(&[7], second),
        // One process comes and goes.
        processes: table::<ProcessRow>(if (10..40).contains(&second) { &[8, 9] } else { &[8] }, second),
    }
}

fn described() -> Vec<Record> {
    let dev = DevId { major: 8, minor: 16 };
    let cgroup = |path: &str, ino| Entity::Cgroup { path: path.into(), hierarchy: Hierarchy::V2, ino };
    let process = |pid, comm: &[u8], kthread| Entity::Process {
        pid,
        start_ticks: 4711,
        comm: Name::new(comm),
        cgroup: Some(EntityId(6)),
        kthread,
    };
    [
        (1, Entity::Zone { node: 0, name: "Normal".into() }),
        (2, Entity::Disk { dev, name: "sdb".into() }),
        (3, Entity::Bdi { name: "8:16".into() }),
        (4, Entity::Wb { bdi: "8:16".into(), cgroup_ino: 1 }),
        (5, cgroup("/", None)),
        (6, cgroup("/system.slice/\x1b[31m\\evil\n.service", Some(4242))),
        (7, Entity::CgroupIo { cgroup: EntityId(6), dev }),
        (8, process(1, b"syst\xffemd", false)),
    ]
    .map(|(id, entity)| Record::Entity(EntityId(id), entity))
    .into()
}

/// What the file holds.
fn records() -> Vec<Record> {
    let facts = HostFacts {
        hostname: "version-one".into(),
        kernel_release: "6.12.43".into(),
        page_size: 4096,
        mem_total: Some(Bytes(1 << 34)),
        ..HostFacts::default()
    };
    let mut records = vec![Record::Facts(Box::new(facts))];
    records.extend(described());
    let need = "CAP_SYS_PTRACE".to_owned();
    records.push(Record::Gap(Gap {
        times: 3,
        ..Gap::new(Source::ProcessIo, Cause::PermissionDenied { need: need.into() })
    }));
    for second in 0..SECONDS {
        if second == 10 {
            let (pid, start_ticks, comm) = (7, 99, "kworker/u8:1".into());
            let kworker = Entity::Process { pid, start_ticks, comm, cgroup: None, kthread: true };
            records.push(Record::Entity(EntityId(9), kworker));
        }
        records.push(Record::Sample(Box::new(sample(second))));
        let at = Nanos(second * 1_000_000_007 + 5);
        match second {
            20 => records.push(Record::Event(Event { at, what: What::Missed { samples: 2 } })),
            30 => records.push(Record::Event(Event { at, what: What::Note { text: "half way".into() } })),
            _ => {}
        }
    }
    records
}

/// Takes out of a sample what the file has no column for: metrics that came later.
struct Known<'a>(&'a BTreeSet<String>);

impl Known<'_> {
    fn row<R: Row>(&self, row: &mut R) {
        for (index, metric) in R::METRICS.iter().enumerate() {
            if self.0.contains(&format!("{}.{}", R::TABLE, metric.name)) {
                row.set(index, None);
            }
        }
    }
}

impl crate::sample::TableVisitorMut for Known<'_> {
    type Error = std::convert::Infallible;
    fn host(&mut self, row: &mut HostRow) -> Result<(), Self::Error> {
        self.row(row);
        Ok(())
    }
    fn table<R: Row + 'static>(&mut self, table: &mut Table<R>) -> Result<(), Self::Error> {
        if table.was_read() {
            let mut rows = table.rows().to_vec();
            rows.iter_mut().for_each(|(_, row)| self.row(row));
            *table = Table::read(rows);
        }
        Ok(())
    }
}

#[test]
fn a_file_of_version_1_opens_and_holds_what_it_held() {
    let mut decoder = Decoder::new(FILE).unwrap();
    assert_eq!(decoder.format(), (1, 0));
    assert_eq!((decoder.header().program.as_str(), decoder.header().version.as_str()), ("floodline", "0.1.0"));
    assert_eq!(decoder.header().every_ns, Some(Nanos::SECOND));
    assert_eq!(decoder.differences().unknown, [""; 0], "a column was renamed or removed: old files lose it");
    let missing: BTreeSet<String> = decoder.differences().missing.iter().map(ToString::to_string).collect();

    let read: Vec<Record> = decoder.by_ref().collect::<Result<_, _>>().unwrap();
    assert_eq!(decoder.cut(), None);
    let mut expect = records();
    for record in &mut expect {
        if let Record::Sample(sample) = record {
            match sample.visit_mut(&mut Known(&missing)) {
                Ok(()) => {}
            }
        }
    }
    assert_eq!(read.len(), expect.len());
    for (read, expect) in read.iter().zip(&expect) {
        assert_eq!(read, expect);
    }
}

/// Columns of the file, for the next test.
struct Filled(BTreeSet<String>);

impl TableVisitor for Filled {
    fn host(&mut self, row: &HostRow) {
        self.table(&Table::read(vec![(EntityId(0), row.clone())]));
    }
    fn table<R: Row + 'static>(&mut self, table: &Table<R>) {
        for (_, row) in table.rows() {
            let read = R::METRICS.iter().enumerate().filter(|(index, _)| row.get(*index).is_some());
            self.0.extend(read.map(|(_, metric)| format!("{}.{}", R::TABLE, metric.name)));
        }
    }
}

#[test]
fn the_file_of_version_1_has_readings_in_most_columns() {
    let decoder = Decoder::new(FILE).unwrap();
    let columns: usize = decoder.header().tables.iter().map(|table| table.columns.len()).sum();
    let mut filled = Filled(BTreeSet::new());
    for record in decoder {
        if let Record::Sample(sample) = record.unwrap() {
            sample.visit(&mut filled);
        }
    }
    assert!(filled.0.len() * 10 > columns * 8, "{} of {columns}", filled.0.len());
}
