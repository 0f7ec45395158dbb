// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a recording costs: bytes per sample, and time to encode and decode one. The readings are made
//! up, with these assumptions: one device; each second a share of the cgroups and processes is busy
//! (writing, faulting, waiting for I/O) and every tenth of the others drifts by a few pages and
//! microseconds of pressure; limits are read every 60th second. `cargo bench -p floodline-record`.

use divan::counter::ItemsCount;
use floodline_record::facts::HostFacts;
use floodline_record::id::{DevId, Entity, EntityId, Hierarchy};
use floodline_record::metric::{MetricKind, Row};
use floodline_record::name::Name;
use floodline_record::record::{Record, Sink};
use floodline_record::recording::{Decoder, Encoder, Header};
use floodline_record::sample::{
    BdiRow, CgroupIoRow, CgroupLimitsRow, CgroupRow, DiskRow, HostRow, ProcessRow, Sample, SampleTime, Table, WbRow,
};
use floodline_record::units::{Nanos, Unit};
use floodline_testkit::Dice;

/// Seconds recorded.
const SECONDS: u64 = 128;

/// A machine and how busy it is.
#[derive(Clone, Copy)]
struct Machine {
    name: &'static str,
    cgroups: u32,
    processes: u32,
    /// Percent of cgroups and processes that are busy in any second.
    busy: u64,
}

const MACHINES: [Machine; 4] = [
    Machine { name: "500 cgroups, 20 % busy", cgroups: 500, processes: 0, busy: 20 },
    Machine { name: "500 cgroups, 2,000 processes, 20 % busy", cgroups: 500, processes: 2000, busy: 20 },
    Machine { name: "500 cgroups, all busy", cgroups: 500, processes: 0, busy: 100 },
    Machine { name: "500 cgroups, 2,000 processes, all busy", cgroups: 500, processes: 2000, busy: 100 },
];

impl std::fmt::Display for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// The smallest step of a metric as the kernel prints it, in our unit.
fn grain(unit: Unit, source: &str) -> u64 {
    match unit {
        Unit::Bytes if source.contains("memory") || source.contains("debugfs") => 4096,
        Unit::Bytes if source.contains("diskstats") => 512,
        Unit::Bytes if source.contains("meminfo") || source.contains("vmstat") => 1024,
        Unit::Nanos if source.contains("pressure") || source.contains("cost") => 1_000,
        Unit::Nanos if source.contains("diskstats") => 1_000_000,
        Unit::Nanos => 10_000_000,
        _ => 1,
    }
}

/// Settings: columns that stand still.
fn is_setting(source: &str) -> bool {
    ["/proc/sys", "sys/class/bdi", "io.max", "MemTotal", "cpuN", "memory.max"].iter().any(|s| source.contains(s))
}

fn fill<R: Row>(dice: &mut Dice) -> R {
    let mut row = R::default();
    for (index, metric) in R::METRICS.iter().enumerate() {
        row.set(index, Some(dice.amount(24) * grain(metric.unit, metric.source)));
    }
    row
}

/// One second of a row: `busy` moves three columns of four by some, else a few by little.
fn move_on<R: Row>(dice: &mut Dice, row: &mut R, busy: bool) {
    for (index, metric) in R::METRICS.iter().enumerate() {
        let moves = if busy { dice.roll(4) > 0 } else { dice.roll(8) == 0 };
        if !moves || is_setting(metric.source) {
            continue;
        }
        let by = dice.amount(if busy { 14 } else { 4 }) * grain(metric.unit, metric.source);
        let before = row.get(index).unwrap_or(0);
        let down = metric.kind == MetricKind::Gauge && dice.roll(2) == 0;
        row.set(index, Some(if down { before.saturating_sub(by) } else { before + by }));
    }
}

fn rows<R: Row>(dice: &mut Dice, first: u32, count: u32) -> Vec<(EntityId, R)> {
    (first..first + count).map(|id| (EntityId(id), fill(dice))).collect()
}

fn second<R: Row>(dice: &mut Dice, rows: &mut [(EntityId, R)], busy: u64) -> Table<R> {
    for (_, row) in rows.iter_mut() {
        let busy = dice.roll(100) < busy;
        if busy || dice.roll(10) == 0 {
            move_on(dice, row, busy);
        }
    }
    Table::read(rows.to_vec())
}

fn records(machine: Machine) -> Vec<Record> {
    let Machine { cgroups, processes, busy, .. } = machine;
    let dev = DevId { major: 259, minor: 0 };
    let mut records = vec![Record::Facts(Box::<HostFacts>::default())];
    records.push(Record::Entity(EntityId(0), Entity::Disk { dev, name: "nvme0n1".into() }));
    records.push(Record::Entity(EntityId(1), Entity::Bdi { name: "259:0".into() }));
    for at in 0..cgroups {
        let path = format!(
            "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{:032x}.slice",
            u128::from(at) << 90 | 7
        );
        let cgroup =
            Entity::Cgroup { path: Name::from(path.as_str()), hierarchy: Hierarchy::V2, ino: Some(u64::from(at) * 51) };
        records.push(Record::Entity(EntityId(10_000 + at), cgroup));
        records.push(Record::Entity(EntityId(20_000 + at), Entity::CgroupIo { cgroup: EntityId(10_000 + at), dev }));
        records.push(Record::Entity(
            EntityId(30_000 + at),
            Entity::Wb { bdi: "259:0".into(), cgroup_ino: u64::from(at) * 51 },
        ));
    }
    for at in 0..processes {
        let cgroup = Some(EntityId(10_000 + at % cgroups));
        let (pid, start_ticks, comm) = (at * 3, u64::from(at) * 100, "worker".into());
        records.push(Record::Entity(
            EntityId(40_000 + at),
            Entity::Process { pid, start_ticks, comm, cgroup, kthread: false },
        ));
    }

    let dice = &mut Dice(0x5eed_f100_d11e);
    let mut host: HostRow = fill(dice);
    let mut disks = rows::<DiskRow>(dice, 0, 1);
    let mut bdis = rows::<BdiRow>(dice, 1, 1);
    let mut cgroup = rows::<CgroupRow>(dice, 10_000, cgroups);
    let limits = rows::<CgroupLimitsRow>(dice, 10_000, cgroups);
    let mut cgroup_io = rows::<CgroupIoRow>(dice, 20_000, cgroups);
    let mut wbs = rows::<WbRow>(dice, 30_000, cgroups / 5);
    let mut process = rows::<ProcessRow>(dice, 40_000, processes);
    for at in 0..SECONDS {
        move_on(dice, &mut host, true);
        let jitter = dice.roll(100_000);
        records.push(Record::Sample(Box::new(Sample {
            time: SampleTime {
                monotonic: Nanos(at * 1_000_000_000 + jitter),
                wall: Nanos(1_700_000_000_000_000_000 + jitter),
            },
            took: Nanos(5_000_000 + jitter),
            host: host.clone(),
            zones: Table::default(),
            disks: second(dice, &mut disks, 100),
            bdis: second(dice, &mut bdis, 100),
            wbs: second(dice, &mut wbs, busy),
            cgroups: second(dice, &mut cgroup, busy),
            cgroup_limits: if at % 60 == 0 { Table::read(limits.clone()) } else { Table::default() },
            cgroup_io: second(dice, &mut cgroup_io, busy),
            processes: if processes == 0 { Table::default() } else { second(dice, &mut process, busy) },
        })));
    }
    records
}

/// Counts the bytes and drops them.
struct Counting(u64);

impl std::io::Write for Counting {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn encode<W: std::io::Write>(records: &[Record], writer: W) -> Option<W> {
    let mut encoder = Encoder::new(writer, Header::new(Some(Nanos::SECOND))).ok()?;
    records.iter().try_for_each(|record| encoder.record(record)).ok()?;
    encoder.finish().ok()
}

#[divan::bench(args = MACHINES)]
fn encode_128_samples(bencher: divan::Bencher<'_, '_>, machine: Machine) {
    let records = records(machine);
    bencher.counter(ItemsCount::new(SECONDS)).bench(|| encode(&records, Counting(0)).map(|counting| counting.0));
}

#[divan::bench(args = MACHINES)]
fn decode_128_samples(bencher: divan::Bencher<'_, '_>, machine: Machine) {
    let bytes = encode(&records(machine), Vec::new()).unwrap_or_default();
    bencher.counter(ItemsCount::new(SECONDS)).bench(|| Decoder::new(&bytes[..]).map(Iterator::count).ok());
}

/// The sizes are told beside the times.
#[allow(clippy::print_stderr)]
fn main() {
    for machine in MACHINES {
        let bytes = encode(&records(machine), Counting(0)).map_or(0, |counting| counting.0);
        eprintln!("{:>8} bytes per sample: {machine}", bytes / SECONDS);
    }
    divan::main();
}
