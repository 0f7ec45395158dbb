// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recordings of strangers that are small and stand for much: rows that do not change, things that are all alike, and
//! things that refer to each other. Each kind grows with a size.

use floodline_record::facts::{BlockDevice, HostFacts, Mount, Overlay, Stack};
use floodline_record::gap::{Cause, Gap, Source};
use floodline_record::id::{DevId, Entity, EntityId, Hierarchy};
use floodline_record::metric::Row;
use floodline_record::name::Name;
use floodline_record::record::{Event, Record, What};
use floodline_record::sample::{Sample, Table};
use floodline_record::traced::bytes::{Class, Dirtied, Submitted};
use floodline_record::traced::waits::{Operation, SlowSync};
use floodline_record::traced::{File, Who};
use floodline_record::units::{Bytes, Count, Nanos};

use super::{Fixture, mount};

/// A kind of heavy recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heavy {
    /// Every sample has other cgroups.
    NewRows,
    /// Many disks that stand still, in many samples.
    StillRows,
    /// Gaps that are all alike.
    Gaps,
    /// Notes that are all alike.
    Notes,
    /// Processes without readings.
    Processes,
    /// Disks, each with a mount and an overlay on it, and loop devices made of files on them.
    Stacks,
    /// Block devices, each built on the next.
    Chain,
    /// Cgroups that wrote to disks, each to all.
    Written,
    /// Files that became dirty, were queued and were waited for.
    Files,
    /// Processes that sleep uninterruptibly in each sample.
    Asleep,
}

impl Heavy {
    /// All of them.
    pub const ALL: &'static [Heavy] = &[
        Heavy::NewRows,
        Heavy::StillRows,
        Heavy::Gaps,
        Heavy::Notes,
        Heavy::Processes,
        Heavy::Stacks,
        Heavy::Chain,
        Heavy::Written,
        Heavy::Files,
        Heavy::Asleep,
    ];

    /// The recording, `size` things of the kind.
    pub fn records(self, size: u32) -> Vec<Record> {
        match self {
            Heavy::NewRows => new_rows(size),
            Heavy::StillRows => still_rows(size),
            Heavy::Gaps => among(Fixture::healthy(), (0..size).map(|_| gap()).collect()),
            Heavy::Notes => among(Fixture::healthy(), (0..size).map(|_| note()).collect()),
            Heavy::Processes => among(Fixture::healthy(), (0..size).map(process).collect()),
            Heavy::Stacks => among_facts(size, stacks),
            Heavy::Chain => among_facts(size, chain),
            Heavy::Written => written(size),
            Heavy::Files => files(size),
            Heavy::Asleep => asleep(size),
        }
    }
}

/// Numbers of entities that no fixture has.
const FREE: u32 = 1 << 20;

/// Rows in one sample of [`new_rows`].
const ROWS: u32 = 50_000;

fn dev(number: u32) -> DevId {
    DevId { major: 300 + number / 256, minor: number % 256 }
}

/// Puts records before the first sample.
fn among(fixture: Fixture, more: Vec<Record>) -> Vec<Record> {
    let mut records = fixture.records();
    let first = records.iter().position(|record| matches!(record, Record::Sample(_))).unwrap_or_default();
    records.splice(first..first, more);
    records
}

fn each_sample(records: &mut [Record], mut change: impl FnMut(u32, &mut Sample)) {
    let samples = records.iter_mut().filter_map(|record| match record {
        Record::Sample(sample) => Some(sample),
        _ => None,
    });
    (0..).zip(samples).for_each(|(at, sample)| change(at, sample));
}

fn blank<R: Row>(ids: impl Iterator<Item = u32>) -> Table<R> {
    Table::read(ids.map(|id| (EntityId(id), R::default())).collect())
}

fn new_rows(size: u32) -> Vec<Record> {
    let mut records = Fixture::healthy().seconds(size.div_ceil(ROWS)).records();
    each_sample(&mut records, |at, sample| {
        let from = FREE + at * ROWS;
        sample.cgroups = blank(from..from + ROWS);
        sample.cgroup_limits = blank(from..from + ROWS);
    });
    records
}

fn still_rows(size: u32) -> Vec<Record> {
    let mut records = Fixture::healthy().seconds(300).records();
    records.splice(1..1, (0..size).map(disk));
    each_sample(&mut records, |_, sample| {
        let still = |id| {
            let row = floodline_record::sample::DiskRow { writes: Some(Count(7)), ..Default::default() };
            (EntityId(id), row)
        };
        sample.disks = Table::read((FREE..FREE + size).map(still).collect());
    });
    records
}

fn disk(number: u32) -> Record {
    let name = Name::new(format!("sd{number:x}x"));
    Record::Entity(EntityId(FREE + number), Entity::Disk { dev: dev(number), name })
}

fn gap() -> Record {
    Record::Gap(Gap::detailed(Source::ProcessIo, Cause::Vanished, "io"))
}

fn note() -> Record {
    Record::Event(Event { at: Nanos(7), what: What::Note { text: "".into() } })
}

fn process(number: u32) -> Record {
    let entity =
        Entity::Process { pid: number, start_ticks: 0, comm: Name::from("umount"), cgroup: None, kthread: false };
    Record::Entity(EntityId(FREE + number), entity)
}

fn asleep(size: u32) -> Vec<Record> {
    let mut records = among(Fixture::healthy().seconds(5), (0..size).map(process).collect());
    each_sample(&mut records, |_, sample| {
        let mut rows = sample.processes.take();
        let row = || floodline_record::sample::ProcessRow { state: Some(Count(u64::from(b'D'))), ..Default::default() };
        rows.extend((FREE..FREE + size).map(|id| (EntityId(id), row())));
        sample.processes = Table::read(rows);
    });
    records
}

/// A machine with more devices and mounts, and a disk with readings for each device.
fn among_facts(size: u32, add: fn(&mut HostFacts, u32)) -> Vec<Record> {
    let fixture = Fixture::healthy().facts(|facts| (0..size).for_each(|number| add(facts, number)));
    let mut records = among(fixture, (0..size).map(disk).collect());
    each_sample(&mut records, |_, sample| {
        let mut rows = sample.disks.take();
        rows.extend((FREE..FREE + size).map(|id| (EntityId(id), Default::default())));
        sample.disks = Table::read(rows);
    });
    records
}

fn device(number: u32, stack: Stack, slaves: Vec<DevId>) -> BlockDevice {
    BlockDevice {
        dev: dev(number),
        name: Name::new(format!("sd{number:x}x")),
        rotational: None,
        scheduler: None,
        nr_requests: None,
        max_request: None,
        wbt_lat: None,
        write_back_cache: None,
        size: None,
        partition_of: None,
        slaves,
        stack,
    }
}

fn stacks(facts: &mut HostFacts, number: u32) {
    let at = format!("/m{number:x}");
    let stack = match number % 2 {
        0 => Stack::Bottom,
        _ => Stack::Loop { backing_file: Name::new(format!("/m{:x}/file", number - 1)), dio: Some(false) },
    };
    facts.devices.push(device(number, stack, Vec::new()));
    facts.mounts.push(Mount { dev: dev(number), ..mount("sda", "ext4", &at, "rw") });
    let overlay = Overlay { upperdir: Some(Name::new(&at)), upper_dev: Some(dev(number)), volatile: false };
    facts.mounts.push(Mount { overlay: Some(overlay), ..mount("sda", "overlay", "/o", "rw") });
}

fn chain(facts: &mut HostFacts, number: u32) {
    facts.devices.push(device(number, Stack::Bottom, vec![dev(number + 1)]));
}

fn written(size: u32) -> Vec<Record> {
    let side = size.isqrt();
    let mut more: Vec<Record> = (0..side).map(disk).collect();
    let cgroup = |number: u32| {
        let path = Name::new(format!("/c{number:x}"));
        let entity = Entity::Cgroup { path, hierarchy: Hierarchy::V2, ino: Some(u64::from(FREE + number)) };
        Record::Entity(EntityId(2 * FREE + number), entity)
    };
    more.extend((0..side).map(cgroup));
    let pair = |at: u32| {
        let entity = Entity::CgroupIo { cgroup: EntityId(2 * FREE + at / side), dev: dev(at % side) };
        Record::Entity(EntityId(3 * FREE + at), entity)
    };
    more.extend((0..side * side).map(pair));
    let fixture = Fixture::healthy().facts(|facts| (0..side).for_each(|number| stacks(facts, number)));
    let mut records = among(fixture, more);
    each_sample(&mut records, |at, sample| {
        let mut rows = sample.cgroups.take();
        rows.extend((0..side).map(|number| (EntityId(2 * FREE + number), Default::default())));
        sample.cgroups = Table::read(rows);
        let mut rows = sample.cgroup_io.take();
        let row = || floodline_record::sample::CgroupIoRow {
            wbytes: Some(Bytes(u64::from(at) * 4096)),
            ..Default::default()
        };
        rows.extend((0..side * side).map(|pair| (EntityId(3 * FREE + pair), row())));
        sample.cgroup_io = Table::read(rows);
    });
    records
}

fn files(size: u32) -> Vec<Record> {
    let who = || Who { pid: 41, comm: Name::from("dd"), cgroup_ino: 7 };
    let at = |number: u32| Nanos(u64::from(number));
    let mut events = Vec::new();
    for number in 0..size / 3 {
        let file = || Some(File { ino: u64::from(number), generation: None, path: None });
        let device = dev(0);
        events.push(What::Dirtied(Dirtied {
            since: at(0),
            who: Who { pid: number, ..who() },
            device,
            file: file(),
            bytes: Bytes(4096),
            folios: 1,
            redirtied: Bytes(0),
        }));
        events.push(What::Submitted(Submitted {
            since: at(0),
            disk: device,
            class: Class::Data,
            device: Some(device),
            file: file(),
            cgroup_ino: Some(7),
            who: None,
            bytes: Bytes(4096),
            bios: 1,
        }));
        events.push(What::SlowSync(SlowSync {
            who: who(),
            tid: None,
            operation: Operation::SyncFilesystem,
            lasted: Nanos::SECOND,
            device: Some(device),
            file: None,
            queued: None,
            own: Bytes(0),
        }));
    }
    Fixture::healthy().traced(&["bytes", "waits"], events).records()
}
