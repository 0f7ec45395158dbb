// SPDX-License-Identifier: MIT OR Apache-2.0
//! How large a ring gets and how far back it reaches: hours of samples of a host with many cgroups, without waiting for them.

use super::*;
use crate::ring::memory::Cursor;
use floodline_record::id::{Entity, EntityId, Hierarchy};
use floodline_record::name::Name;
use floodline_record::sample::{CgroupRow, Sample, Table};
use floodline_record::units::{Bytes, Count};
use floodline_testkit::{Fixture, UPTIME};

/// A machine with cgroups of which every fifth changes in every second.
struct Host {
    sample: Box<Sample>,
    rows: Vec<(EntityId, CgroupRow)>,
    /// State of the numbers by which readings change: the same in every run.
    seed: u64,
}

impl Host {
    /// Passes on what a recorder writes before the first sample.
    fn begin(cgroups: u32, mut each: impl FnMut(&Record)) -> Host {
        let mut first = None;
        for record in Fixture::healthy().records() {
            match record {
                Record::Sample(sample) => {
                    first.get_or_insert(sample);
                }
                other => each(&other),
            }
        }
        let ids = (1000..1000 + cgroups).map(EntityId);
        for id in ids.clone() {
            let path =
                Name::from(format!("/kubepods.slice/kubepods-pod{0:08x}.slice/cri-{0:016x}.scope", id.0).as_str());
            each(&Record::Entity(id, Entity::Cgroup { path, hierarchy: Hierarchy::V2, ino: Some(u64::from(id.0)) }));
        }
        let row = CgroupRow {
            memory_current: Some(Bytes(1 << 28)),
            anon: Some(Bytes(1 << 27)),
            file: Some(Bytes(1 << 27)),
            file_dirty: Some(Bytes(1 << 20)),
            file_writeback: Some(Bytes(0)),
            inactive_file: Some(Bytes(1 << 26)),
            active_file: Some(Bytes(1 << 26)),
            pgfault: Some(Count(1_000_000)),
            io_some: Some(Nanos(1_000_000_000)),
            io_full: Some(Nanos(1_000_000_000)),
            ..CgroupRow::default()
        };
        let rows = ids.map(|id| (id, row.clone())).collect();
        Host { sample: first.expect("a sample"), rows, seed: 1 }
    }

    fn random(&mut self, below: u64) -> u64 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.seed >> 33) % below
    }

    /// The sample of a second.
    fn second(&mut self, second: u64) -> Record {
        for at in (0..self.rows.len()).filter(|at| (*at as u64 + second).is_multiple_of(5)) {
            let [dirty, faults, waited] = [4096 * self.random(512), self.random(5000), self.random(20_000_000)];
            let row = &mut self.rows[at].1;
            row.file_dirty = Some(Bytes(dirty));
            row.file = Some(Bytes((1 << 27) + dirty));
            row.inactive_file = Some(Bytes((1 << 26) + dirty));
            row.memory_current = Some(Bytes((1 << 28) + dirty));
            row.pgfault = row.pgfault.map(|count| Count(count.0 + faults));
            row.io_some = row.io_some.map(|total| Nanos(total.0 + waited / 1000 * 1000));
        }
        let mut sample = self.sample.clone();
        sample.time.monotonic.0 += second * Nanos::SECOND.0;
        sample.time.wall.0 += second * Nanos::SECOND.0;
        sample.cgroups = Table::read(self.rows.clone());
        Record::Sample(sample)
    }
}

/// Ring of a host with cgroups of which every fifth changes in every second; returns the figures for people.
fn run_of(seconds: u64, cgroups: u32, limit: u64) -> String {
    let folder = tempfile::tempdir().unwrap();
    let mut disk = DiskRing::open(folder.path(), limit).unwrap();
    let segment = usize::try_from(limit / 16).unwrap().min(2 << 20);
    let mut memory = MemoryRing::new(8 << 20, segment, Some(Nanos::SECOND));
    let (mut at, mut piece, mut written, mut largest) = (Cursor::default(), Vec::new(), 0, 0);
    let mut host = Host::begin(cgroups, |record| memory.record(record).unwrap());
    disk.begin().unwrap();
    for second in 0..seconds {
        memory.record(&host.second(second)).unwrap();
        // As the writer does: what the memory has goes to the disk, and each whole segment is a file.
        while let Some(read) = memory.read(at, 256 << 10, &mut piece) {
            if !piece.is_empty() {
                assert!(disk.append(&piece).unwrap());
            }
            written += piece.len() as u64;
            piece.clear();
            at = Cursor { offset: read.at.offset + read.length, ..read.at };
            if read.is_end {
                at = Cursor { number: read.at.number + 1, offset: 0 };
                disk.end();
                disk.thin().unwrap();
                disk.begin().unwrap();
            }
            memory.was_read(at);
            largest = largest.max(disk.bytes());
            assert!(disk.bytes() <= limit, "{} > {limit}", disk.bytes());
        }
    }
    disk.end();
    assert_eq!(disk.bytes(), on_disk(folder.path()));
    let reach = |level| {
        let mut of_level = disk.parts.iter().filter(|part: &&Part| part.level <= level);
        let oldest = of_level.next().and_then(|part| times(&folder.path().join(part.name())).first().copied());
        (UPTIME as u64 + seconds).saturating_sub(oldest.unwrap_or(u64::MAX)) / 60
    };
    format!(
        "{cgroups} cgroups, {} h, limit {} MB: {} MB written, at most {} MB on the disk; back from the end: {} min in all, {} min at 10 s or less, {} min at 1 s",
        seconds / 3600,
        limit / 1_000_000,
        written / 1_000_000,
        largest / 1_000_000,
        reach(2),
        reach(1),
        reach(0)
    )
}

#[expect(clippy::print_stdout, reason = "figures for people, with --nocapture")]
#[test]
fn a_day_is_kept_below_the_limit() {
    println!("{}", run_of(300, 50, LIMIT_MIN));
    // `make ring-day` measures.
    if std::env::var_os("FLOODLINE_RING_DAY").is_some() {
        println!("{}", run_of(86_400, 50, 50_000_000));
        println!("{}", run_of(86_400, 500, 300_000_000));
        println!("{}", run_of(86_400, 500, 50_000_000));
    }
}
