// SPDX-License-Identifier: MIT OR Apache-2.0
//! What arithmetic costs per host: bytes of a recording to a row. `cargo bench -p floodline-fleet`. The readings are made
//! up: each second a share of the cgroups is busy (its counters move, and those of its process), and every tenth of the
//! others drifts by a few pages. One cgroup in ten has a limit of I/O. A snapshot has what `floodline snapshot` writes:
//! one sample, without processes. Entities are numbered in order of appearance, as each recorder does.

use divan::black_box;
use divan::counter::{BytesCount, ItemsCount};
use floodline_fleet::{Change, Depth, preflight};
use floodline_record::id::{Entity, EntityId, Hierarchy};
use floodline_record::metric::{MetricKind, Row};
use floodline_record::name::Name;
use floodline_record::record::{Record, Sink};
use floodline_record::recording::{Encoder, Header};
use floodline_record::sample::{CgroupIoRow, CgroupLimitsRow, CgroupRow, ProcessRow, Table, WbRow};
use floodline_record::units::{Limit, Nanos};
use floodline_testkit::Dice;
use floodline_testkit::{Fixture, dev_of, mib};

fn main() {
    divan::main();
}

/// A host of the fleet.
#[derive(Clone, Copy)]
struct Host {
    name: &'static str,
    hierarchy: Hierarchy,
    cgroups: u32,
    /// Seconds recorded; 0 is a snapshot.
    seconds: u32,
    /// Percent of the cgroups that are busy in any second.
    busy: u64,
}

const HOSTS: [Host; 5] = [
    Host { name: "snapshot, 50 cgroups, v1", hierarchy: Hierarchy::V1Memory, cgroups: 50, seconds: 0, busy: 0 },
    Host { name: "snapshot, 50 cgroups, v2", hierarchy: Hierarchy::V2, cgroups: 50, seconds: 0, busy: 0 },
    Host { name: "60 s, 500 cgroups, 2 % busy", hierarchy: Hierarchy::V1Memory, cgroups: 500, seconds: 60, busy: 2 },
    Host { name: "60 s, 500 cgroups, 20 % busy", hierarchy: Hierarchy::V2, cgroups: 500, seconds: 60, busy: 20 },
    Host { name: "60 s, 500 cgroups, all busy", hierarchy: Hierarchy::V2, cgroups: 500, seconds: 60, busy: 100 },
];

impl std::fmt::Display for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

#[divan::bench(args = HOSTS)]
fn tier_1(bencher: divan::Bencher<'_, '_>, host: Host) {
    let file = recording(host);
    let change =
        Change::parse(&["cgroup=v2", "kernel=6.12.43", "vm.dirty_ratio=10"], None, None, None).expect("a change");
    bencher
        .counter(ItemsCount::new(1_u32))
        .counter(BytesCount::new(file.len()))
        .bench_local(|| preflight(black_box(&file), "host.flr", &change, Depth::ARITHMETIC));
}

fn fill<R: Row>(dice: &mut Dice, takes: impl Fn(&str) -> bool) -> R {
    let mut row = R::default();
    for (index, metric) in R::METRICS.iter().enumerate() {
        row.set(index, takes(metric.source).then(|| dice.roll(1 << 12) << 12));
    }
    row
}

/// One second of the rows: a busy one moves in three columns of four, and every tenth of the others in a few.
fn move_on<R: Row>(dice: &mut Dice, rows: &mut [(EntityId, R)], busy: u64) {
    for (_, row) in rows {
        let busy = dice.roll(100) < busy;
        if !busy && dice.roll(10) > 0 {
            continue;
        }
        for (index, metric) in R::METRICS.iter().enumerate() {
            let Some(before) = row.get(index).filter(|_| if busy { dice.roll(4) > 0 } else { dice.roll(8) == 0 })
            else {
                continue;
            };
            let by = dice.roll(if busy { 256 } else { 4 }) << 12;
            let down = metric.kind == MetricKind::Gauge && dice.roll(2) == 0;
            row.set(index, Some(if down { before.saturating_sub(by) } else { before + by }));
        }
    }
}

/// Limits of I/O. A limit in force is in each sample. Of a cgroup without a limit, that is read once a minute.
fn limit_io(rows: &mut [(EntityId, CgroupIoRow)], at: usize) {
    for (number, (_, row)) in rows.iter_mut().enumerate() {
        let is_limited = number % 10 == 0;
        let none = (is_limited || at.is_multiple_of(60)).then_some(Limit::MAX);
        (row.rbps_max, row.riops_max, row.wiops_max) = (none, none, none);
        row.wbps_max = if is_limited { Some(Limit(mib(64.0))) } else { none };
    }
}

fn add<R: Row>(table: &mut Table<R>, more: &[(EntityId, R)]) {
    *table = Table::read(table.rows().iter().chain(more).cloned().collect());
}

/// Ids of the entities of which there is one for each cgroup. A host numbers them as it comes across them: a cgroup and
/// its I/O, then the wbs, then the processes.
#[derive(Clone, Copy)]
struct Ids {
    first: u32,
    cgroups: u32,
    has_io: bool,
}

impl Ids {
    fn each(self) -> std::ops::Range<u32> {
        0..self.cgroups
    }

    fn cgroup(self, at: u32) -> EntityId {
        EntityId(self.first + at * (1 + u32::from(self.has_io)))
    }

    fn cgroup_io(self, at: u32) -> EntityId {
        EntityId(self.cgroup(at).0 + 1)
    }

    fn wb(self, at: u32) -> EntityId {
        EntityId(self.cgroup(self.cgroups).0 + at)
    }

    fn process(self, at: u32) -> EntityId {
        EntityId(self.wb(if self.has_io { self.cgroups } else { 0 }).0 + at)
    }
}

fn entities(host: Host, ids: Ids) -> Vec<Record> {
    let mut entities = Vec::new();
    let ino = |at: u32| 1_000 + u64::from(at) * 51;
    for at in ids.each() {
        let path = format!(
            "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{:032x}.slice",
            u128::from(at) << 90 | 7
        );
        let (path, cgroup) = (Name::from(path.as_str()), ids.cgroup(at));
        entities.push((cgroup, Entity::Cgroup { path, hierarchy: host.hierarchy, ino: Some(ino(at)) }));
        if ids.has_io {
            entities.push((ids.cgroup_io(at), Entity::CgroupIo { cgroup, dev: dev_of("sda") }));
        }
    }
    if ids.has_io {
        entities.extend(ids.each().map(|at| (ids.wb(at), Entity::Wb { bdi: "8:0".into(), cgroup_ino: ino(at) })));
    }
    if host.seconds > 0 {
        entities.extend(ids.each().map(|at| {
            let process = Entity::Process {
                pid: 1_000 + at,
                start_ticks: 5_000,
                comm: "worker".into(),
                cgroup: Some(ids.cgroup(at)),
                kthread: false,
            };
            (ids.process(at), process)
        }));
    }
    entities.into_iter().map(|(id, entity)| Record::Entity(id, entity)).collect()
}

fn recording(host: Host) -> Vec<u8> {
    let dice = &mut Dice(0x5eed_f100_d11e);
    let is_snapshot = host.seconds == 0;
    let fixture = Fixture::healthy()
        .hierarchy(host.hierarchy)
        .settings((20, 0, 10, 0))
        .mount("sda", "xfs", "/var/lib/containers", "rw,attr2,inode64,noquota")
        .seconds(host.seconds);
    let mut records = fixture.records();
    let first = records.iter().position(|record| matches!(record, Record::Sample(_))).unwrap_or_default();
    let known = records.iter().filter(|record| matches!(record, Record::Entity(..))).count();
    let ids =
        Ids { first: known as u32, cgroups: host.cgroups, has_io: host.seconds > 0 && host.hierarchy == Hierarchy::V2 };
    records.splice(first..first, entities(host, ids));
    let takes = |source: &str| {
        !is_snapshot || ["memory.stat", "memory.current", "memory.usage"].iter().any(|s| source.contains(s))
    };
    let mut cgroups: Vec<(EntityId, CgroupRow)> = ids.each().map(|at| (ids.cgroup(at), fill(dice, takes))).collect();
    let (memory_max, memory_high) = (Some(Limit(mib(512.0))), Some(Limit::MAX));
    let limits: Vec<(EntityId, CgroupLimitsRow)> = ids
        .each()
        .map(|at| (ids.cgroup(at), CgroupLimitsRow { memory_max, memory_high, ..CgroupLimitsRow::default() }))
        .collect();
    let mut cgroup_io: Vec<(EntityId, CgroupIoRow)> =
        ids.each().map(|at| (ids.cgroup_io(at), fill(dice, |source| source.contains("io.stat")))).collect();
    let mut wbs: Vec<(EntityId, WbRow)> = ids.each().take(100).map(|at| (ids.wb(at), fill(dice, |_| true))).collect();
    let mut processes: Vec<(EntityId, ProcessRow)> =
        ids.each().map(|at| (ids.process(at), fill(dice, |_| true))).collect();
    let samples =
        records.iter_mut().filter_map(|record| if let Record::Sample(sample) = record { Some(sample) } else { None });
    for (at, sample) in samples.enumerate() {
        move_on(dice, &mut cgroups, host.busy);
        add(&mut sample.cgroups, &cgroups);
        if at % 60 == 0 {
            add(&mut sample.cgroup_limits, &limits);
        }
        if is_snapshot {
            (sample.wbs, sample.cgroup_io, sample.processes) = Default::default();
            continue;
        }
        move_on(dice, &mut processes, host.busy);
        add(&mut sample.processes, &processes);
        if host.hierarchy == Hierarchy::V2 {
            move_on(dice, &mut cgroup_io, host.busy);
            limit_io(&mut cgroup_io, at);
            move_on(dice, &mut wbs, host.busy);
            add(&mut sample.cgroup_io, &cgroup_io);
            add(&mut sample.wbs, &wbs);
        }
    }
    let mut encoder = Encoder::new(Vec::new(), Header::new(Some(Nanos::SECOND))).expect("a header");
    records.iter().for_each(|record| encoder.record(record).expect("a record"));
    encoder.finish().expect("a file")
}
