// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recordings made by hand, for tests: a healthy host to start from, and closures that say what a row
//! looks like at second `t`. Whatever a test does not mention is as on a healthy, idle machine, so a
//! rule that fires on something else shows. Not a model of the kernel: that is `floodline-sim`.
//!
//! ```
//! use floodline_core::fixture::{Fixture, mib};
//! use floodline_core::units::Bytes;
//! let window = Fixture::healthy().disk("sda", |t, row| row.written = Some(Bytes(mib(42.0 * t)))).seconds(10).window();
//! assert_eq!(window.samples, 11);
//! ```

use crate::facts::{BlockDevice, CgroupMode, CgroupSetup, HostFacts, Hz, Journald, Mount, Stack};
use crate::gap::{Cause, Gap, Source};
use crate::id::{DevId, Entity, EntityId, Hierarchy};
use crate::metric::Row;
use crate::name::Name;
use crate::record::Record;
use crate::sample::{
    BdiRow, CgroupIoRow, CgroupLimitsRow, CgroupRow, DiskRow, HostRow, ProcessRow, Sample, SampleTime, Table, WbRow,
    ZoneRow,
};
use crate::units::{
    Bits, Bytes, BytesPerSecond, Centisecs, Count, Flag, Limit, Nanos, Pages, Percent, Ppm, Quantity, Seconds,
};
use crate::window::Window;
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
    unread: Vec<&'static str>,
    samples: u32,
    every_s: f64,
}

impl Fixture {
    /// An idle web server: kernel 6.12.117, 8 CPUs, 16 GiB, default settings, one SSD with ext4,
    /// cgroup v2, debugfs, root. Ten seconds at one sample per second.
    pub fn healthy() -> Fixture {
        let empty = Fixture {
            facts: healthy_facts(),
            entities: Vec::new(),
            host: vec![Box::new(healthy_host)],
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
        fixture.zones.entry(zone).or_default().push(Box::new(healthy_zone));
        fixture
    }

    /// Another kernel release.
    pub fn kernel(self, release: &str) -> Fixture {
        self.facts(|facts| {
            facts.kernel_release = release.to_owned();
            facts.kernel = release.parse().ok();
        })
    }

    /// Another amount of memory; thresholds follow the default ratios, with nearly all of it dirtyable.
    pub fn memory_gib(self, gib: f64) -> Fixture {
        let pages = gib * 262_144.0;
        self.facts(move |facts| facts.mem_total = Some(Bytes(mib(gib * 1024.0)))).host(move |_, row| {
            row.mem_total = Some(Bytes(mib(gib * 1024.0)));
            row.mem_available = Some(Bytes(mib(gib * 900.0)));
            row.nr_free_pages = Some(Pages((pages * 0.5) as u64));
            row.nr_inactive_file = Some(Pages((pages * 0.2) as u64));
            row.nr_active_file = Some(Pages((pages * 0.2) as u64));
            row.nr_dirty_threshold = Some(Pages((pages * 0.18) as u64));
            row.nr_dirty_background_threshold = Some(Pages((pages * 0.09) as u64));
        })
    }

    /// Settings as `sysctl` has them: (dirty_ratio, dirty_bytes, dirty_background_ratio,
    /// dirty_background_bytes), and the thresholds in pages that the kernel makes of them.
    pub fn thresholds(self, settings: (u64, u64, u64, u64), hard: u64, background: u64) -> Fixture {
        self.host(move |_, row| {
            row.dirty_ratio = Some(Percent(settings.0));
            row.dirty_bytes = Some(Bytes(settings.1));
            row.dirty_background_ratio = Some(Percent(settings.2));
            row.dirty_background_bytes = Some(Bytes(settings.3));
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
            self.facts.devices.push(healthy_device(name));
        }
        self.disks.entry(id).or_insert_with(|| vec![Box::new(healthy_disk)]).push(Box::new(shape));
        self.bdi(&dev.to_string(), |_, _| {})
    }

    /// Adds a bdi, or changes its row.
    pub fn bdi(mut self, name: &str, shape: impl Fn(f64, &mut BdiRow) + 'static) -> Fixture {
        let id = self.entity(Entity::Bdi { name: Name::from(name) });
        self.facts.bdis.entry(name.to_owned()).or_insert_with(|| name.parse().ok());
        self.bdis.entry(id).or_insert_with(|| vec![Box::new(healthy_bdi)]).push(Box::new(shape));
        self
    }

    /// Adds a wb by the inode number of its cgroup (1: the root), or changes its row.
    pub fn wb(mut self, bdi: &str, cgroup_ino: u64, shape: impl Fn(f64, &mut WbRow) + 'static) -> Fixture {
        let id = self.entity(Entity::Wb { bdi: Name::from(bdi), cgroup_ino });
        self.wbs.entry(id).or_insert_with(|| vec![Box::new(healthy_wb)]).push(Box::new(shape));
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
        let v2_controllers =
            if mode == CgroupMode::V2 { vec!["memory".to_owned(), "io".to_owned()] } else { Vec::new() };
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
        self.cgroup_io.entry(id).or_insert_with(|| vec![Box::new(healthy_cgroup_io)]).push(Box::new(shape));
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
        self.processes.entry(id).or_insert_with(|| vec![Box::new(healthy_process)]).push(Box::new(shape));
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

    /// How long it lasts, at one sample per second.
    pub fn seconds(self, seconds: u32) -> Fixture {
        Fixture { samples: seconds + 1, ..self }
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
        records.extend((0..self.samples).map(|at| Record::Sample(Box::new(self.sample(f64::from(at) * self.every_s)))));
        records
    }

    /// The records, folded.
    pub fn window(&self) -> Window {
        Window::from_records(&self.records())
    }

    fn sample(&self, t: f64) -> Sample {
        let monotonic = secs(UPTIME + t);
        Sample {
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
        }
    }

    fn table<R: Row>(&self, shapes: &Shapes<R>, t: f64) -> Table<R> {
        Table::read(shapes.iter().map(|(id, shapes)| (*id, self.row(shapes, t))).collect())
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
        self.cgroups.entry(id).or_insert_with(|| vec![Box::new(healthy_cgroup)]);
        self.limits.entry(id).or_insert_with(|| vec![Box::new(no_limits)]);
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
        fs_type: fs_type.to_owned(),
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

fn healthy_facts() -> HostFacts {
    HostFacts {
        hostname: Name::from("web-1"),
        kernel_release: "6.12.117+deb13-amd64".to_owned(),
        kernel: "6.12.117".parse().ok(),
        cmdline: Name::from("root=/dev/sda1 ro quiet"),
        page_size: 4096,
        hz: Some(Hz { value: 250, assumed: false }),
        cpus_possible: Some(8),
        mem_total: Some(Bytes(mib(16_384.0))),
        cgroups: CgroupSetup {
            mode: CgroupMode::V2,
            v2_mount: Some(Name::from("/sys/fs/cgroup")),
            v2_controllers: ["cpu", "io", "memory", "pids"].map(str::to_owned).to_vec(),
            v1_mounts: BTreeMap::new(),
        },
        devices: Vec::new(),
        mounts: vec![mount("sda", "ext4", "/", "rw")],
        journald: Some(Journald {
            storage: "auto".to_owned(),
            persistent: Some(true),
            sync_interval: Some(Nanos(300_000_000_000)),
            files: vec![Name::from("/etc/systemd/journald.conf")],
        }),
        privileged: Some(true),
        task_delayacct: Some(false),
        debugfs: Some(true),
        ..HostFacts::default()
    }
}

fn healthy_device(name: &str) -> BlockDevice {
    let stack = match name {
        _ if name.starts_with("loop") => Stack::Loop { backing_file: Name::from("/var/lib/image"), dio: Some(false) },
        _ if name.starts_with("md") => Stack::Md { level: "raid1".to_owned() },
        _ if name.starts_with("dm-") => Stack::Dm { name: Name::from("vg0-data") },
        _ => Stack::Bottom,
    };
    BlockDevice {
        dev: dev_of(name),
        name: Name::from(name),
        rotational: Some(false),
        scheduler: Some("mq-deadline".to_owned()),
        nr_requests: Some(256),
        max_request: Some(Bytes(1 << 20)),
        wbt_lat: Nanos::from_micros(2000),
        write_back_cache: Some(true),
        size: Some(Bytes(mib(512_000.0))),
        partition_of: None,
        slaves: Vec::new(),
        stack,
    }
}

fn healthy_host(t: f64, row: &mut HostRow) {
    *row = HostRow {
        nr_dirty: Some(Pages(300)),
        nr_writeback: Some(Pages(0)),
        nr_writeback_temp: Some(Pages(0)),
        nr_unstable: Some(Pages(0)),
        nr_dirtied: grows(t, 40_000_000, 20.0),
        nr_written: grows(t, 38_000_000, 19.0),
        nr_dirty_threshold: Some(Pages(720_000)),
        nr_dirty_background_threshold: Some(Pages(360_000)),
        nr_free_pages: Some(Pages(1_900_000)),
        nr_inactive_file: Some(Pages(900_000)),
        nr_active_file: Some(Pages(850_000)),
        nr_inactive_anon: Some(Pages(200_000)),
        nr_active_anon: Some(Pages(100_000)),
        nr_unevictable: Some(Pages(0)),
        nr_mapped: Some(Pages(90_000)),
        nr_shmem: Some(Pages(2_000)),
        nr_vmscan_immediate_reclaim: Some(Pages(0)),
        nr_vmscan_write: Some(Pages(0)),
        nr_throttled_written: Some(Pages(0)),
        pgpgin: grows(t, mib(90_000.0), 0.0),
        pgpgout: grows(t, mib(160_000.0), 80_000.0),
        pgfault: grows(t, 900_000_000, 900.0),
        pgmajfault: grows(t, 90_000, 0.0),
        pgscan_direct: Some(Pages(0)),
        pgscan_kswapd: Some(Pages(0)),
        allocstall: Some(Count(0)),
        pswpout: Some(Pages(0)),
        inodesteal: Some(Count(0)),
        mem_total: Some(Bytes(mib(16_384.0))),
        mem_free: Some(Bytes(mib(7_400.0))),
        mem_available: Some(Bytes(mib(14_000.0))),
        cached: Some(Bytes(mib(6_800.0))),
        mem_dirty: Some(Bytes(300 * 4096)),
        mem_writeback: Some(Bytes(0)),
        cpu_user: Some(secs(800_000.0 + 0.4 * t)),
        cpu_system: Some(secs(200_000.0 + 0.1 * t)),
        cpu_idle: Some(secs(6_900_000.0 + 7.48 * t)),
        cpu_iowait: Some(secs(2_000.0 + 0.02 * t)),
        cpu_steal: Some(Nanos(0)),
        ctxt: grows(t, 4_000_000_000, 2_000.0),
        procs_blocked: Some(Count(0)),
        procs_running: Some(Count(1)),
        psi_io_some: Some(secs(900.0 + 0.002 * t)),
        psi_io_full: Some(secs(700.0 + 0.001 * t)),
        psi_memory_some: Some(secs(1.0)),
        psi_memory_full: Some(secs(0.5)),
        psi_cpu_some: Some(secs(5_000.0 + 0.01 * t)),
        dirty_ratio: Some(Percent(20)),
        dirty_bytes: Some(Bytes(0)),
        dirty_background_ratio: Some(Percent(10)),
        dirty_background_bytes: Some(Bytes(0)),
        dirty_expire_centisecs: Some(Centisecs(3000)),
        dirty_writeback_centisecs: Some(Centisecs(500)),
        dirtytime_expire_seconds: Some(Seconds(43_200)),
        laptop_mode: Some(Seconds(0)),
        cpus_online: Some(Count(8)),
    };
}

fn healthy_zone(_: f64, row: &mut ZoneRow) {
    *row = ZoneRow {
        managed: Some(Pages(4_000_000)),
        high: Some(Pages(20_000)),
        boost: Some(Pages(0)),
        protection_max: Some(Pages(0)),
        free: Some(Pages(1_900_000)),
    };
}

fn healthy_disk(t: f64, row: &mut DiskRow) {
    *row = DiskRow {
        reads: grows(t, 2_000_000, 0.0),
        reads_merged: Some(Count(100_000)),
        read: grows(t, mib(90_000.0), 0.0),
        read_time: Some(secs(1_000.0)),
        writes: grows(t, 9_000_000, 4.0),
        writes_merged: grows(t, 5_000_000, 3.0),
        written: grows(t, mib(160_000.0), 80_000.0),
        write_time: Some(secs(9_000.0 + 0.004 * t)),
        in_flight: Some(Count(0)),
        io_time: Some(secs(6_000.0 + 0.003 * t)),
        weighted_io_time: Some(secs(10_000.0 + 0.004 * t)),
        discards: Some(Count(0)),
        discarded: Some(Bytes(0)),
        flushes: grows(t, 700_000, 0.5),
        flush_time: Some(secs(500.0 + 0.001 * t)),
    };
}

fn healthy_bdi(t: f64, row: &mut BdiRow) {
    *row = BdiRow {
        min_ratio: Some(Ppm(0)),
        max_ratio: Some(Ppm(1_000_000)),
        min_bytes: Some(Bytes(0)),
        max_bytes: Some(Bytes(720_000 * 4096)),
        strict_limit: Some(Flag(0)),
        read_ahead: Some(Bytes(128 << 10)),
        writeback: Some(Bytes(0)),
        reclaimable: Some(Bytes(300 * 4096)),
        dirty_thresh: Some(Bytes(720_000 * 4096)),
        dirtied: grows(t, mib(156_000.0), 80_000.0),
        written: grows(t, mib(150_000.0), 78_000.0),
        write_bandwidth: Some(BytesPerSecond(mib(412.0))),
        b_dirty: Some(Count(12)),
        b_io: Some(Count(0)),
        b_more_io: Some(Count(0)),
        b_dirty_time: Some(Count(0)),
    };
}

fn healthy_wb(t: f64, row: &mut WbRow) {
    *row = WbRow {
        writeback: Some(Bytes(0)),
        reclaimable: Some(Bytes(300 * 4096)),
        dirty_thresh: Some(Bytes(720_000 * 4096)),
        dirtied: grows(t, mib(156_000.0), 80_000.0),
        written: grows(t, mib(150_000.0), 78_000.0),
        write_bandwidth: Some(BytesPerSecond(mib(412.0))),
        b_dirty: Some(Count(12)),
        b_io: Some(Count(0)),
        b_more_io: Some(Count(0)),
        b_dirty_time: Some(Count(0)),
        state: Some(Bits(0b101)),
    };
}

fn healthy_cgroup(t: f64, row: &mut CgroupRow) {
    *row = CgroupRow {
        memory_current: Some(Bytes(mib(100.0))),
        anon: Some(Bytes(mib(40.0))),
        file: Some(Bytes(mib(50.0))),
        kernel: Some(Bytes(mib(10.0))),
        shmem: Some(Bytes(0)),
        file_mapped: Some(Bytes(mib(5.0))),
        file_dirty: Some(Bytes(0)),
        file_writeback: Some(Bytes(0)),
        inactive_file: Some(Bytes(mib(30.0))),
        active_file: Some(Bytes(mib(20.0))),
        slab_reclaimable: Some(Bytes(mib(5.0))),
        pgfault: grows(t, 1_000_000, 50.0),
        pgmajfault: Some(Count(100)),
        workingset_refault_file: Some(Count(0)),
        events_high: Some(Count(0)),
        events_max: Some(Count(0)),
        events_oom_kill: Some(Count(0)),
        memory_some: Some(Nanos(0)),
        memory_full: Some(Nanos(0)),
        io_some: Some(secs(1.0)),
        io_full: Some(secs(1.0)),
        nr_descendants: Some(Count(0)),
        nr_dying_descendants: Some(Count(0)),
        nr_dying_subsys_memory: Some(Count(0)),
        populated: Some(Flag(1)),
    };
}

fn no_limits(_: f64, row: &mut CgroupLimitsRow) {
    *row = CgroupLimitsRow {
        memory_max: Some(Limit::MAX),
        memory_high: Some(Limit::MAX),
        memory_min: Some(Limit(0)),
        memory_low: Some(Limit(0)),
        io_weight: Some(Count(100)),
        controllers: Some(Bits(0b11)),
        subtree_control: Some(Bits(0b11)),
    };
}

fn healthy_cgroup_io(_: f64, row: &mut CgroupIoRow) {
    *row = CgroupIoRow {
        rbytes: Some(Bytes(0)),
        wbytes: Some(Bytes(0)),
        rios: Some(Count(0)),
        wios: Some(Count(0)),
        dbytes: Some(Bytes(0)),
        dios: Some(Count(0)),
        cost_wait: None,
        rbps_max: Some(Limit::MAX),
        wbps_max: Some(Limit::MAX),
        riops_max: Some(Limit::MAX),
        wiops_max: Some(Limit::MAX),
    };
}

fn healthy_process(_: f64, row: &mut ProcessRow) {
    *row = ProcessRow {
        rchar: Some(Bytes(mib(20.0))),
        wchar: Some(Bytes(mib(10.0))),
        syscr: Some(Count(10_000)),
        syscw: Some(Count(5_000)),
        read_bytes: Some(Bytes(mib(20.0))),
        write_bytes: Some(Bytes(mib(2.0))),
        cancelled_write_bytes: Some(Bytes(0)),
        minflt: Some(Count(20_000)),
        majflt: Some(Count(10)),
        utime: Some(secs(5.0)),
        stime: Some(secs(2.0)),
        blkio_delay: Some(Nanos(0)),
        state: Some(Count(u64::from(b'S'))),
    };
}

/// A counter that was at `start` at the beginning and grows by `per_second`.
pub fn grows<Q: Quantity>(t: f64, start: u64, per_second: f64) -> Option<Q> {
    Some(Q::from_raw(start + (per_second * t) as u64))
}
