// SPDX-License-Identifier: MIT OR Apache-2.0
//! What each rule costs on a machine with many cgroups, each of which writes, at 500 and at 5,000: a rule
//! that is linear costs ten times as much. With four processes per cgroup, as on the machines that the
//! targets are set for. `cargo bench -p floodline-analysis --bench rules`. The last one is the whole of `doctor` on the file
//! of a minute, with the memory that it takes ("max alloc").

use divan::black_box;
use divan::counter::BytesCount;
use floodline_analysis::diagnose::derived::Derived;
use floodline_analysis::diagnose::rules::RULES;
use floodline_analysis::diagnose::stretches::Stretches;
use floodline_analysis::diagnose::{diagnose, rule};
use floodline_record::id::{Entity, EntityId, Hierarchy};
use floodline_record::name::Name;
use floodline_record::record::{Record, Sink};
use floodline_record::recording::{Decoder, Encoder, Header};
use floodline_record::sample::{CgroupIoRow, CgroupLimitsRow, CgroupRow, ProcessRow, Table, WbRow};
use floodline_record::units::{Bits, Bytes, BytesPerSecond, Count, Flag, Limit};
use floodline_record::window::Window;
use floodline_testkit::{Fixture, dev_of, grows, mib, secs};

#[global_allocator]
static ALLOC: divan::AllocProfiler = divan::AllocProfiler::system();

fn main() {
    divan::main();
}

/// What `floodline doctor FILE` does: decodes a minute of recording, folds it and runs all rules.
#[divan::bench(consts = [500])]
fn doctor_of_a_minute<const CGROUPS: u32>(bencher: divan::Bencher) {
    let mut encoder = Encoder::new(Vec::new(), Header::new(None)).expect("a header");
    for record in records(CGROUPS, 60) {
        encoder.record(&record).expect("a record");
    }
    let file = encoder.finish().expect("a file");
    bencher.counter(BytesCount::new(file.len())).bench_local(|| {
        let mut stretches = Stretches::new(Vec::new());
        for record in Decoder::new(black_box(file.as_slice())).expect("a header") {
            let Ok(()) = stretches.record(&record.expect("a record"));
        }
        stretches.finish()
    });
}

/// One rule.
#[divan::bench(args = RULES.iter().map(|rule| rule.name), consts = [500, 5000])]
fn check<const CGROUPS: u32>(bencher: divan::Bencher, name: &str) {
    let window = machine(CGROUPS);
    let Some(rule) = rule(name) else { return };
    bencher.bench_local(|| (rule.check)(&Derived::of(black_box(&window))));
}

/// All of them.
#[divan::bench(consts = [500, 5000])]
fn all<const CGROUPS: u32>(bencher: divan::Bencher) {
    let window = machine(CGROUPS);
    bencher.bench_local(|| diagnose(black_box(&window), None));
}

/// First of the entities that the fixture does not have.
const FIRST: u32 = 1_000;
/// Entities of one cgroup: itself, its I/O, its wb, its processes.
const EACH: u32 = 7;

/// A machine with 100 MiB to be divided, and a pod of 768 MiB on XFS per cgroup.
fn machine(cgroups: u32) -> Window {
    Window::from_records(&records(cgroups, 10))
}

fn records(cgroups: u32, seconds: u32) -> Vec<Record> {
    let fixture = Fixture::healthy()
        .memory_gib(124.0)
        .disk("sdb", |t, row| {
            row.written = grows(t, mib(9_000.0), 400e6);
            row.writes = grows(t, 90_000, 4_000.0);
            row.io_time = Some(secs(600.0 + t));
            row.weighted_io_time = Some(secs(900.0 + 50.0 * t));
            row.write_time = Some(secs(900.0 + 900.0 * t));
        })
        .mount("sdb", "xfs", "/var/lib/containers", "rw,attr2,inode64,noquota")
        .settings((0, 100 << 20, 0, 50 << 20))
        .host(|t, row| {
            row.nr_dirtied = grows(t, 40_000_000, 100_000.0);
            row.nr_written = grows(t, 38_000_000, 100_000.0);
            row.psi_io_some = Some(secs(900.0 + 0.5 * t));
        })
        .seconds(seconds);
    let mut records = fixture.records();
    let at = records.iter().position(|record| matches!(record, Record::Sample(_))).unwrap_or(records.len());
    records.splice(at..at, (0..cgroups).flat_map(entities));
    let mut t = 0.0;
    for record in &mut records {
        if let Record::Sample(sample) = record {
            let each = || (0..cgroups).map(|cgroup| EntityId(FIRST + EACH * cgroup));
            let after = |id: EntityId, by: u32| EntityId(id.0 + by);
            extend(&mut sample.cgroups, each().map(|id| (id, cgroup())));
            extend(&mut sample.cgroup_limits, each().map(|id| (id, limits())));
            extend(&mut sample.cgroup_io, each().map(|id| (after(id, 1), io(t))));
            extend(&mut sample.wbs, each().map(|id| (after(id, 2), wb())));
            extend(&mut sample.processes, each().flat_map(|id| (3..EACH).map(move |by| (after(id, by), process(t)))));
            t += 1.0;
        }
    }
    records
}

fn extend<R: floodline_record::metric::Row>(table: &mut Table<R>, more: impl Iterator<Item = (EntityId, R)>) {
    let rows = table.rows().iter().cloned().chain(more).collect();
    *table = Table::read(rows);
}

fn entities(at: u32) -> Vec<Record> {
    let id = FIRST + EACH * at;
    let (cgroup, ino) = (EntityId(id), u64::from(id));
    let path = Name::from(format!("/kubepods.slice/pod-{}.slice/app-{at}.scope", at / 10).as_str());
    let process = |by: u32| Entity::Process {
        pid: 10_000 + id + by,
        start_ticks: 1_000,
        comm: Name::from(["systemd-journal", "redis-server", "mariadbd", "sh"][(by % 4) as usize]),
        cgroup: Some(cgroup),
        kthread: false,
    };
    let entities = [
        Entity::Cgroup { path, hierarchy: Hierarchy::V2, ino: Some(ino) },
        Entity::CgroupIo { cgroup, dev: dev_of("sdb") },
        Entity::Wb { bdi: Name::from("8:16"), cgroup_ino: ino },
    ];
    let entities = entities.into_iter().chain((3..EACH).map(process));
    (id..).zip(entities).map(|(id, entity)| Record::Entity(EntityId(id), entity)).collect()
}

fn cgroup() -> CgroupRow {
    CgroupRow {
        memory_current: Some(Bytes(mib(500.0))),
        file: Some(Bytes(mib(192.0))),
        inactive_file: Some(Bytes(mib(100.0))),
        active_file: Some(Bytes(mib(92.0))),
        file_dirty: Some(Bytes(mib(2.0))),
        file_writeback: Some(Bytes(0)),
        slab_reclaimable: Some(Bytes(mib(5.0))),
        nr_dying_descendants: Some(Count(0)),
        populated: Some(Flag(1)),
        ..CgroupRow::default()
    }
}

fn limits() -> CgroupLimitsRow {
    CgroupLimitsRow {
        memory_max: Some(Limit(mib(768.0))),
        memory_high: Some(Limit::MAX),
        io_weight: Some(Count(100)),
        controllers: Some(Bits(0b11)),
        subtree_control: Some(Bits(0)),
        ..CgroupLimitsRow::default()
    }
}

fn io(t: f64) -> CgroupIoRow {
    CgroupIoRow { wbytes: grows(t, mib(20.0), 1e6), wbps_max: Some(Limit::MAX), ..CgroupIoRow::default() }
}

fn wb() -> WbRow {
    WbRow {
        writeback: Some(Bytes(0)),
        reclaimable: Some(Bytes(mib(2.0))),
        dirtied: Some(Bytes(mib(900.0))),
        write_bandwidth: Some(BytesPerSecond(1_000_000)),
        state: Some(Bits(0b101)),
        ..WbRow::default()
    }
}

fn process(t: f64) -> ProcessRow {
    ProcessRow {
        wchar: grows(t, mib(4.0), 600.0),
        syscw: grows(t, 4_000, 4.2),
        write_bytes: grows(t, mib(900.0), 1e6),
        minflt: grows(t, 20_000, 20.0),
        utime: Some(secs(5.0)),
        stime: Some(secs(5.0)),
        state: Some(Count(u64::from(b'S'))),
        ..ProcessRow::default()
    }
}
