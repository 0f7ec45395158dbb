// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recordings made by hand, for tests: a healthy host to start from, and closures that say what a row
//! looks like at second `t`. Whatever a test does not mention is as on a healthy, idle machine, so a
//! rule that fires on something else shows. The published incidents are in [`incidents`]. Not a model of the kernel: that is `floodline-sim`.
//!
//! ```
//! use floodline_testkit::{Fixture, mib};
//! use floodline_record::units::Bytes;
//! let window = Fixture::healthy().disk("sda", |t, row| row.written = Some(Bytes(mib(42.0 * t)))).seconds(10).window();
//! assert_eq!(window.samples, 11);
//! ```

mod derive;
mod dice;
mod every;
pub mod exposition;
pub mod flr;
mod healthy;
pub mod heavy;
pub mod hostile;
pub mod incidents;
pub mod sparse;

pub use dice::Dice;
use floodline_record::facts::{CgroupMode, CgroupSetup, HostFacts, Mount};
use floodline_record::gap::{Cause, Gap, Source};
use floodline_record::id::{DevId, Entity, EntityId, Hierarchy};
use floodline_record::metric::Row;
use floodline_record::name::Name;
use floodline_record::record::{Event, Record, What};
use floodline_record::sample::{
    BdiRow, CgroupIoRow, CgroupLimitsRow, CgroupRow, DiskRow, HostRow, ProcessRow, Sample, SampleTime, Table, WbRow,
    ZoneRow,
};
use floodline_record::units::{Bytes, Nanos, Pages, Percent, Quantity};
use floodline_record::window::Window;
use std::collections::BTreeMap;

/// What a row looks like at second `t` of the recording.
type Shape<R> = Box<dyn Fn(f64, &mut R)>;
/// Shapes of one kind, by entity; later ones change what earlier ones made.
type Shapes<R> = BTreeMap<EntityId, Vec<Shape<R>>>;

/// Uptime of the machine at the first sample, seconds.
pub const UPTIME: f64 = 1_000_000.0;

/// Bytes of an amount in MiB.
pub fn mib(amount: f64) -> u64 {
    (amount * 1_048_576.0) as u64
}

/// Pages of 4 KiB of an amount in MiB.
pub fn mib_pages(amount: f64) -> Pages {
    Pages(mib(amount) / 4096)
}

/// Nanoseconds of an amount in seconds.
pub fn secs(amount: f64) -> Nanos {
    Nanos((amount * 1e9) as u64)
}

/// A recording in the making.
pub struct Fixture {
    facts: HostFacts,
    entities: Vec<Entity>,
    host: Vec<Shape<HostRow>>,
    zones: Shapes<ZoneRow>,
    disks: Shapes<DiskRow>,
    bdis: Shapes<BdiRow>,
    wbs: Shapes<WbRow>,
    cgroups: Shapes<CgroupRow>,
    limits: Shapes<CgroupLimitsRow>,
    cgroup_io: Shapes<CgroupIoRow>,
    processes: Shapes<ProcessRow>,
    hierarchy: Hierarchy,
    gaps: Vec<Gap>,
    events: Vec<What>,
    unread: Vec<&'static str>,
    samples: u32,
    every_s: f64,
}

impl Fixture {
    /// An idle web server: kernel 6.12.117, 8 CPUs, 16 GiB, default settings, one SSD with ext4,
    /// cgroup v2, debugfs, root. Ten seconds at one sample per second.
    pub fn healthy() -> Fixture {
        let empty = Fixture {
            facts: healthy::facts(),
            entities: Vec::new(),
            host: vec![Box::new(healthy::host)],
            zones: Shapes::new(),
            disks: Shapes::new(),
            bdis: Shapes::new(),
            wbs: Shapes::new(),
            cgroups: Shapes::new(),
            limits: Shapes::new(),
            cgroup_io: Shapes::new(),
            processes: Shapes::new(),
            hierarchy: Hierarchy::V2,
            gaps: Vec::new(),
            events: Vec::new(),
            unread: Vec::new(),
            samples: 11,
            every_s: 1.0,
        };
        let mut fixture = empty
            .disk("sda", |_, _| {})
            .wb("8:0", 1, |_, _| {})
            .cgroup("/", |_, _| {})
            .cgroup("/system.slice", |_, _| {})
            .process("systemd", 1, "/init.scope", |_, _| {})
            .process("systemd-journal", 300, "/system.slice/systemd-journald.service", |t, row| {
                row.write_bytes = Some(Bytes(mib(120.0) + (409.6 * t) as u64));
            })
            .process("sshd", 400, "/system.slice/ssh.service", |_, _| {})
            .process("nginx", 500, "/system.slice/nginx.service", |t, row| {
                row.wchar = Some(Bytes(mib(900.0) + (60_000.0 * t) as u64));
                row.write_bytes = Some(Bytes(mib(300.0) + (8192.0 * t) as u64));
            });
        let zone = fixture.entity(Entity::Zone { node: 0, name: Name::from("Normal") });
        fixture.zones.entry(zone).or_default().push(Box::new(healthy::zone));
        fixture
    }

    /// Another kernel release.
    pub fn kernel(self, release: &str) -> Fixture {
        self.facts(|facts| {
            facts.kernel_release = release.into();
            facts.kernel = release.parse().ok();
        })
    }

    /// Another amount of memory, nearly all of it dirtyable.
    pub fn memory_gib(mut self, gib: f64) -> Fixture {
        let pages = gib * 262_144.0;
        for shapes in self.zones.values_mut() {
            shapes.push(Box::new(move |_, row| {
                row.managed = Some(Pages((pages * 0.97) as u64));
                row.high = Some(Pages((pages * 0.005) as u64));
                row.free = Some(Pages((pages * 0.5) as u64));
            }));
        }
        self.facts(move |facts| facts.mem_total = Some(Bytes(mib(gib * 1024.0)))).host(move |_, row| {
            row.mem_total = Some(Bytes(mib(gib * 1024.0)));
            row.mem_available = Some(Bytes(mib(gib * 900.0)));
            row.nr_free_pages = Some(Pages((pages * 0.5) as u64));
            row.nr_inactive_file = Some(Pages((pages * 0.2) as u64));
            row.nr_active_file = Some(Pages((pages * 0.2) as u64));
        })
    }

    /// Settings as `sysctl` has them: (dirty_ratio, dirty_bytes, dirty_background_ratio,
    /// dirty_background_bytes). Thresholds are what the kernel makes of them.
    pub fn settings(self, settings: (u64, u64, u64, u64)) -> Fixture {
        self.host(move |_, row| {
            row.dirty_ratio = Some(Percent(settings.0));
            row.dirty_bytes = Some(Bytes(settings.1));
            row.dirty_background_ratio = Some(Percent(settings.2));
            row.dirty_background_bytes = Some(Bytes(settings.3));
        })
    }

    /// The same with the thresholds in pages that the kernel prints, right or wrong.
    pub fn thresholds(self, settings: (u64, u64, u64, u64), hard: u64, background: u64) -> Fixture {
        self.settings(settings).host(move |_, row| {
            row.nr_dirty_threshold = Some(Pages(hard));
            row.nr_dirty_background_threshold = Some(Pages(background));
        })
    }

    /// Changes what the machine is.
    pub fn facts(mut self, change: impl FnOnce(&mut HostFacts)) -> Fixture {
        change(&mut self.facts);
        self
    }

    /// Changes the machine-wide row.
    pub fn host(mut self, shape: impl Fn(f64, &mut HostRow) + 'static) -> Fixture {
        self.host.push(Box::new(shape));
        self
    }

    /// Adds a disk, with its bdi, or changes its row: counters that the shape sets start where it says.
    pub fn disk(mut self, name: &str, shape: impl Fn(f64, &mut DiskRow) + 'static) -> Fixture {
        let dev = dev_of(name);
        let id = self.entity(Entity::Disk { dev, name: Name::from(name) });
        if !self.facts.devices.iter().any(|device| device.dev == dev) {
            self.facts.devices.push(healthy::device(name));
        }
        self.disks.entry(id).or_insert_with(|| vec![Box::new(healthy::disk)]).push(Box::new(shape));
        self.bdi(&dev.to_string(), |_, _| {})
    }

    /// Adds a bdi, or changes its row.
    pub fn bdi(mut self, name: &str, shape: impl Fn(f64, &mut BdiRow) + 'static) -> Fixture {
        let id = self.entity(Entity::Bdi { name: Name::from(name) });
        self.facts.bdis.entry(name.into()).or_insert_with(|| name.parse().ok());
        self.bdis.entry(id).or_insert_with(|| vec![Box::new(healthy::bdi)]).push(Box::new(shape));
        self
    }

    /// Adds a wb by the inode number of its cgroup (1: the root), or changes its row.
    pub fn wb(mut self, bdi: &str, cgroup_ino: u64, shape: impl Fn(f64, &mut WbRow) + 'static) -> Fixture {
        let id = self.entity(Entity::Wb { bdi: Name::from(bdi), cgroup_ino });
        self.wbs.entry(id).or_insert_with(|| vec![Box::new(healthy::wb)]).push(Box::new(shape));
        self
    }

    /// All cgroups are of this hierarchy. Call it before adding any; facts follow.
    pub fn hierarchy(mut self, hierarchy: Hierarchy) -> Fixture {
        self.hierarchy = hierarchy;
        for entity in &mut self.entities {
            if let Entity::Cgroup { hierarchy: old, .. } = entity {
                *old = hierarchy;
            }
        }
        let mode = if hierarchy == Hierarchy::V2 { CgroupMode::V2 } else { CgroupMode::V1 };
        let v2_controllers = if mode == CgroupMode::V2 { vec!["memory".into(), "io".into()] } else { Vec::new() };
        self.facts(|facts| facts.cgroups = CgroupSetup { mode, v2_controllers, ..CgroupSetup::default() })
    }

    /// Adds a cgroup without limits, or changes its row.
    pub fn cgroup(mut self, path: &str, shape: impl Fn(f64, &mut CgroupRow) + 'static) -> Fixture {
        let id = self.cgroup_id(path);
        self.cgroups.entry(id).or_default().push(Box::new(shape));
        self
    }

    /// Changes the limits of a cgroup.
    pub fn limits(mut self, path: &str, shape: impl Fn(f64, &mut CgroupLimitsRow) + 'static) -> Fixture {
        let id = self.cgroup_id(path);
        self.limits.entry(id).or_default().push(Box::new(shape));
        self
    }

    /// Sets the I/O of a cgroup on a disk.
    pub fn cgroup_io(mut self, path: &str, disk: &str, shape: impl Fn(f64, &mut CgroupIoRow) + 'static) -> Fixture {
        let cgroup = self.cgroup_id(path);
        let id = self.entity(Entity::CgroupIo { cgroup, dev: dev_of(disk) });
        self.cgroup_io.entry(id).or_insert_with(|| vec![Box::new(healthy::cgroup_io)]).push(Box::new(shape));
        self
    }

    /// Adds a process, or changes the row of the one with this pid.
    pub fn process(
        mut self,
        comm: &str,
        pid: u32,
        cgroup: &str,
        shape: impl Fn(f64, &mut ProcessRow) + 'static,
    ) -> Fixture {
        let cgroup = Some(self.cgroup_id(cgroup));
        let kthread = comm.starts_with("kworker") || comm.starts_with("jbd2");
        let id = self.entity(Entity::Process { pid, start_ticks: 1000, comm: Name::from(comm), cgroup, kthread });
        self.processes.entry(id).or_insert_with(|| vec![Box::new(healthy::process)]).push(Box::new(shape));
        self
    }

    /// Mounts a filesystem on a disk.
    pub fn mount(self, disk: &str, fs_type: &str, mount_point: &str, super_options: &str) -> Fixture {
        let mount = mount(disk, fs_type, mount_point, super_options);
        self.facts(|facts| facts.mounts.push(mount))
    }

    /// A source that could not be read: records the gap and blanks every column that is read from it.
    pub fn without(mut self, source: Source, cause: Cause) -> Fixture {
        self.gaps.push(Gap::new(source, cause));
        self.unread.extend(column_prefix(source));
        self
    }

    /// Records a gap and blanks nothing.
    pub fn gap(mut self, gap: Gap) -> Fixture {
        self.gaps.push(gap);
        self
    }

    /// These parts of a tracer are in use, and tell this at the end of the first second.
    pub fn traced(mut self, parts: &[&str], events: Vec<What>) -> Fixture {
        self.events.push(What::TraceStarted { parts: parts.iter().map(|&part| part.into()).collect() });
        self.events.extend(events);
        self
    }

    /// How long it lasts, at one sample per second.
    pub fn seconds(self, seconds: u32) -> Fixture {
        Fixture { samples: seconds + 1, ..self }
    }

    /// A sample so often, seconds, over the same time.
    pub fn every(self, every_s: f64) -> Fixture {
        let seconds = f64::from(self.samples.saturating_sub(1)) * self.every_s;
        Fixture { samples: (seconds / every_s) as u32 + 1, every_s, ..self }
    }

    /// One sample only.
    pub fn one_look(self) -> Fixture {
        Fixture { samples: 1, ..self }
    }

    /// The records, in the order a recorder writes them.
    pub fn records(&self) -> Vec<Record> {
        let mut records = vec![Record::Facts(Box::new(self.facts.clone()))];
        let ids = (0..).map(EntityId);
        records.extend(ids.zip(&self.entities).map(|(id, entity)| Record::Entity(id, entity.clone())));
        records.extend(self.gaps.iter().cloned().map(Record::Gap));
        let at = secs(UPTIME + self.every_s);
        records.extend(self.events.iter().map(|what| Record::Event(Event { at, what: what.clone() })));
        records.extend((0..self.samples).map(|at| Record::Sample(Box::new(self.sample(f64::from(at) * self.every_s)))));
        records
    }

    /// The records, folded.
    pub fn window(&self) -> Window {
        Window::from_records(&self.records())
    }

    fn sample(&self, t: f64) -> Sample {
        let monotonic = secs(UPTIME + t);
        let mut sample = Sample {
            time: SampleTime { monotonic, wall: Nanos(1_790_000_000_000_000_000 + monotonic.0) },
            took: Nanos(2_000_000),
            host: self.row(&self.host, t),
            zones: self.table(&self.zones, t),
            disks: self.table(&self.disks, t),
            bdis: self.table(&self.bdis, t),
            wbs: self.table(&self.wbs, t),
            cgroups: self.table(&self.cgroups, t),
            cgroup_limits: self.table(&self.limits, t),
            cgroup_io: self.table(&self.cgroup_io, t),
            processes: self.table(&self.processes, t),
        };
        derive::fill(&mut sample, &self.facts, |source| self.unread.iter().any(|prefix| source.starts_with(prefix)));
        sample
    }

    /// A row without any reading is not there: so comes and goes what a shape blanks for a while.
    fn table<R: Row>(&self, shapes: &Shapes<R>, t: f64) -> Table<R> {
        let rows = shapes.iter().map(|(id, shapes)| (*id, self.row(shapes, t)));
        Table::read(rows.filter(|(_, row)| *row != R::default()).collect())
    }

    fn row<R: Row>(&self, shapes: &[Shape<R>], t: f64) -> R {
        let mut row = R::default();
        for shape in shapes {
            shape(t, &mut row);
        }
        for (index, metric) in R::METRICS.iter().enumerate() {
            if self.unread.iter().any(|prefix| metric.source.starts_with(prefix)) {
                row.set(index, None);
            }
        }
        row
    }

    /// The id of an entity, a new one if it is new. A process is known by its pid.
    fn entity(&mut self, entity: Entity) -> EntityId {
        let same = |known: &Entity| match (known, &entity) {
            (Entity::Process { pid: known, .. }, Entity::Process { pid, .. }) => known == pid,
            (Entity::Cgroup { path: known, .. }, Entity::Cgroup { path, .. }) => known == path,
            (known, entity) => known == entity,
        };
        let at = self.entities.iter().position(same).unwrap_or_else(|| {
            self.entities.push(entity);
            self.entities.len() - 1
        });
        EntityId(at as u32)
    }

    fn cgroup_id(&mut self, path: &str) -> EntityId {
        let known = self.entities.len();
        // The inode number is made of the place in the list, except the root's, which is 1.
        let ino = Some(if path == "/" { 1 } else { 1000 + known as u64 });
        let id = self.entity(Entity::Cgroup { path: Name::from(path), hierarchy: self.hierarchy, ino });
        self.cgroups.entry(id).or_insert_with(|| vec![Box::new(healthy::cgroup)]);
        self.limits.entry(id).or_insert_with(|| vec![Box::new(healthy::no_limits)]);
        id
    }
}

/// Device number of a disk by its name, as the kernel numbers them.
pub fn dev_of(name: &str) -> DevId {
    let letter = |prefix: &str| name.strip_prefix(prefix)?.bytes().next().filter(u8::is_ascii_lowercase);
    let number = |prefix: &str| name.strip_prefix(prefix)?.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok();
    let (major, minor): (u32, u32) = if let Some(letter) = letter("sd") {
        let partition: u32 = name[3..].parse().unwrap_or(0);
        (8, u32::from(letter - b'a') * 16 + partition)
    } else if let Some(letter) = letter("vd") {
        (254, u32::from(letter - b'a') * 16)
    } else if let Some(number) = number("nvme") {
        (259, number)
    } else if let Some(number) = number("loop") {
        (7, number)
    } else if let Some(number) = number("md") {
        (9, number)
    } else {
        (253, number("dm-").unwrap_or(0))
    };
    DevId { major, minor }
}

/// A mount of a filesystem on a disk.
pub fn mount(disk: &str, fs_type: &str, mount_point: &str, super_options: &str) -> Mount {
    Mount {
        dev: dev_of(disk),
        root: Name::from("/"),
        mount_point: Name::from(mount_point),
        fs_type: fs_type.into(),
        source: Name::new(format!("/dev/{disk}")),
        options: Name::from("rw,relatime"),
        super_options: Name::from(super_options),
        overlay: None,
    }
}

/// The beginning of the `source` of the columns that come from a source.
fn column_prefix(source: Source) -> Option<&'static str> {
    Some(match source {
        Source::Meminfo => "/proc/meminfo",
        Source::Vmstat => "/proc/vmstat",
        Source::Zoneinfo => "/proc/zoneinfo",
        Source::Diskstats => "/proc/diskstats",
        Source::Stat => "/proc/stat",
        Source::Pressure => "/proc/pressure",
        Source::SysctlVm => "/proc/sys/vm",
        Source::ProcessIo => "/proc/PID/io",
        Source::ProcessStat => "/proc/PID/stat",
        Source::SysBdi => "/sys/class/bdi",
        Source::DebugBdiStats => "debugfs bdi/NAME/stats",
        Source::DebugWbStats => "debugfs bdi/NAME/wb_stats",
        Source::MemoryStat => "memory.stat",
        Source::MemoryCurrent => "memory.current",
        Source::MemoryLimits => "memory.m",
        Source::MemoryEvents => "memory.events",
        Source::IoStat => "io.stat",
        Source::IoLimits => "io.max",
        Source::IoPressure => "io.pressure",
        Source::CgroupStat => "cgroup.stat",
        Source::CgroupEvents => "cgroup.events",
        Source::CgroupControllers => "cgroup.controllers",
        _ => return None,
    })
}

/// A counter that was at `start` at the beginning and grows by `per_second`.
pub fn grows<Q: Quantity>(t: f64, start: u64, per_second: f64) -> Option<Q> {
    Some(Q::from_raw(start + (per_second * t) as u64))
}
