// SPDX-License-Identifier: MIT OR Apache-2.0
//! Samples the simulated machine as the host collector samples a real one: facts, entities as they appear, and
//! samples with the same readings, quirks included. Readings that the model does not simulate are absent.

use crate::arena::{BlockId, CgId, Id, PidId, SbId, WbId};
use crate::block::Block;
use crate::reported::{bdi_disk, mount_facts, setup_facts};
use crate::wb_stat::WbStat;
use crate::world::{PAGE, World};
use floodline_record::facts::{BlockDevice, HostFacts, Hz, Overlay, Stack};
use floodline_record::id::{DevId, Entity, EntityId, Hierarchy};
use floodline_record::metric::Row;
use floodline_record::name::Name;
use floodline_record::record::Record;
use floodline_record::sample::{
    BdiRow, CgroupIoRow, CgroupLimitsRow, CgroupRow, DiskRow, HostRow, ProcessRow, Sample, SampleTime, Table, WbRow,
    ZoneRow,
};
use floodline_record::units::{
    Bits, Bytes, BytesPerSecond, Centisecs, Count, Flag, Limit, Nanos, Pages, Percent, Ppm, Seconds,
};
use floodline_scenario::FsType;
use std::collections::BTreeMap;
use std::marker::PhantomData;

/// Records of the simulated machine, with the entities described so far.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    known: BTreeMap<Entity, EntityId>,
    /// Whether a sample was taken.
    has_looked: bool,
    /// Least time between two samples that read `memory.stat` and `io.stat`.
    stat_every: Nanos,
    /// When the last of them was taken.
    stat_read: Option<Nanos>,
    /// Memory limits of each cgroup as last recorded: max, high, min, low.
    limits: BTreeMap<CgId, [u64; 4]>,
    /// Entities already recorded, by their ids in the model, so that no names have to be made for them.
    cgroups: Ids<CgId>,
    wbs: Ids<WbId>,
    cgroup_io: BTreeMap<BlockId, Ids<CgId>>,
    /// By the cgroup that each process is in: one that moved to another becomes another entity.
    processes: Ids<PidId, CgId>,
    /// Those of the cgroups that processes were in before.
    left: BTreeMap<(PidId, CgId), EntityId>,
    rows: Rows,
}

/// Rows of tables as they were last read: the next have room for as many, for a table seldom grows.
#[derive(Debug, Default)]
struct Rows {
    wbs: usize,
    processes: usize,
    cgroups: usize,
    cgroup_io: usize,
}

/// Entities by their ids in the model, which are numbered from 0. Each entry holds the key it was made for.
#[derive(Debug)]
struct Ids<I, K = ()> {
    known: Vec<Option<(K, EntityId)>>,
    ids: PhantomData<I>,
}

impl<I, K> Default for Ids<I, K> {
    fn default() -> Self {
        Ids { known: Vec::new(), ids: PhantomData }
    }
}

impl<I: Id, K: Copy + PartialEq> Ids<I, K> {
    fn get(&self, id: I, key: K) -> Option<EntityId> {
        let (of, known) = (*self.known.get(id.number())?)?;
        (of == key).then_some(known)
    }

    /// Sets one. Returns that of another key.
    fn insert(&mut self, id: I, key: K, entity: EntityId) -> Option<(K, EntityId)> {
        if self.known.len() <= id.number() {
            self.known.resize(id.number() + 1, None);
        }
        self.known[id.number()].replace((key, entity))
    }
}

/// Slab of an inode and its dentry, bytes. The model does not charge it to the memory of a cgroup.
const INODE: u64 = 1216;

/// Number of descendants of a cgroup.
#[derive(Clone, Copy, Debug, Default)]
struct Below {
    alive: u64,
    /// A dead cgroup leaves its page cache behind: counts only those that have some.
    dying: u64,
    /// Processes of the live ones.
    processes: u64,
    /// Inodes in memory that belong to the cgroup or to a descendant.
    inodes: u64,
}

/// Counts the descendants of each cgroup, in the order of their ids. Children come after their parents.
fn below(world: &World) -> Vec<Below> {
    let mut all = vec![Below::default(); world.cgroups.len()];
    let cached = world.inodes.iter().filter(|(_, inode)| world.unified && (inode.opens > 0 || !inode.is_unlinked));
    cached.filter_map(|(_, inode)| inode.wb).for_each(|wb| all[world.wbs[wb].memcg.0 as usize].inodes += 1);
    for number in (0..all.len()).rev() {
        let (own, cgroup) = (all[number], &world.cgroups[CgId::new(number)]);
        let Some(above) = cgroup.parent.and_then(|parent| all.get_mut(parent.0 as usize)) else { continue };
        above.alive += own.alive + u64::from(!cgroup.is_dead);
        above.dying += own.dying + u64::from(cgroup.is_dead && cgroup.charged.file + cgroup.charged.shmem > 0);
        above.inodes += own.inodes;
        above.processes += own.processes + if cgroup.is_dead { 0 } else { cgroup.processes };
    }
    all
}

/// Bytes and requests of each cgroup on a device as its files have them: on cgroup v2 with those of its descendants, removed
/// ones included; on v1 its own.
fn io_of_cgroups(world: &World, block: &Block) -> Vec<Option<[u64; 4]>> {
    let mut all: Vec<Option<[u64; 4]>> = world.cgroups.iter().map(|(cg, _)| block.of_cgroup(cg).copied()).collect();
    for number in (0..all.len()).rev().filter(|_| world.unified) {
        let (Some(own), Some(above)) = (all[number], world.cgroups[CgId::new(number)].parent) else { continue };
        if above != CgId::ROOT {
            let sum = all[above.0 as usize].get_or_insert([0; 4]);
            sum.iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
        }
    }
    all
}

fn bytes(pages: u64) -> Option<Bytes> {
    Some(Bytes(pages * PAGE))
}

impl Recorder {
    /// A recorder that reads `memory.stat` and `io.stat` in samples this far apart.
    pub(crate) fn new(stat_every: Nanos) -> Recorder {
        Recorder { stat_every, ..Recorder::default() }
    }

    fn id(&mut self, entity: Entity, out: &mut Vec<Record>) -> EntityId {
        if let Some(id) = self.known.get(&entity) {
            return *id;
        }
        let id = EntityId(u32::try_from(self.known.len()).unwrap_or(u32::MAX));
        self.known.insert(entity.clone(), id);
        out.push(Record::Entity(id, entity));
        id
    }

    fn cgroup(&mut self, world: &World, cgroup: CgId, out: &mut Vec<Record>) -> EntityId {
        if let Some(id) = self.cgroups.get(cgroup, ()) {
            return id;
        }
        let id = self.id(cgroup_entity(world, cgroup), out);
        self.cgroups.insert(cgroup, (), id);
        id
    }

    /// Notes the entity that a process is in its present cgroup.
    fn is_in(&mut self, pid: PidId, cgroup: CgId, id: EntityId) {
        if let Some((before, known)) = self.processes.insert(pid, cgroup, id) {
            self.left.insert((pid, before), known);
        }
    }

    /// Takes one sample.
    pub(crate) fn sample(&mut self, world: &mut World, out: &mut Vec<Record>) {
        let now = world.now;
        // Reading memory.stat flushes the counters of all memcgs: the recorder changes the counts that throttling reads.
        let reads_stat = Nanos(now).is_apart(self.stat_read, self.stat_every);
        if reads_stat {
            world.flush_memcg_stats();
            self.stat_read = Some(Nanos(now));
        }
        world.memory.account_cpus(now, world.cpus);
        for id in world.cgroups.ids() {
            world.cgroups[id].io.account(now);
        }
        for id in world.blocks.ids() {
            world.blocks[id].account(now);
        }
        let time = SampleTime { monotonic: Nanos(now), wall: Nanos(now) };
        let mut sample = Sample { time, host: host(world), ..Sample::default() };
        let is_first = !std::mem::replace(&mut self.has_looked, true);
        if is_first {
            let zone = self.id(Entity::Zone { node: 0, name: Name::new("Normal") }, out);
            let row = ZoneRow {
                managed: Some(Pages(world.memory.total)),
                high: Some(Pages(world.memory.high_watermark)),
                protection_max: Some(Pages(0)),
                free: Some(Pages(world.memory.free)),
                ..ZoneRow::default()
            };
            sample.zones = Table::read(vec![(zone, row)]);
        }
        let (mut disks, mut bdis, mut wbs) = (Vec::new(), Vec::new(), Vec::with_capacity(self.rows.wbs));
        for (_, block) in world.blocks.iter() {
            let id = self.id(Entity::Disk { dev: block.dev, name: Name::new(&block.name) }, out);
            disks.push((id, disk(block)));
        }
        for bdi in world.bdis.ids() {
            let name = Name::new(&world.bdis[bdi].name);
            let id = self.id(Entity::Bdi { name: name.clone() }, out);
            bdis.push((id, bdi_row(world, bdi)));
            if world.behaviour.files.wb_stats {
                for wb in world.bdis[bdi].wbs.clone() {
                    let id = match self.wbs.get(wb, ()) {
                        Some(id) => id,
                        None => {
                            let cgroup_ino = world.cgroups[world.wbs[wb].memcg].ino;
                            let id = self.id(Entity::Wb { bdi: name.clone(), cgroup_ino }, out);
                            self.wbs.insert(wb, (), id);
                            id
                        }
                    };
                    wbs.push((id, wb_row(world, wb)));
                }
            }
        }
        self.rows.wbs = wbs.len();
        (sample.disks, sample.bdis, sample.wbs) = (Table::read(disks), Table::read(bdis), Table::read(wbs));
        self.cgroups(world, &mut sample, is_first, reads_stat, out);
        let mut processes = Vec::with_capacity(self.rows.processes);
        for (pid, task) in world.pids.iter() {
            // An exited worker is not reaped until the end: its counters stay.
            if let Some(id) = self.processes.get(pid, task.cgroup) {
                processes.push((id, process(world, pid)));
                continue;
            }
            if let Some(id) = self.left.remove(&(pid, task.cgroup)) {
                self.is_in(pid, task.cgroup, id);
                processes.push((id, process(world, pid)));
                continue;
            }
            let cgroup = self.cgroup(world, task.cgroup, out);
            let entity = Entity::Process {
                pid: task.pid,
                start_ticks: task.start / 10_000_000,
                comm: Name::new(&task.comm.as_bytes()[..task.comm.len().min(if task.is_kernel { 64 } else { 15 })]),
                cgroup: Some(cgroup),
                kthread: task.is_kernel,
            };
            let id = self.id(entity, out);
            self.is_in(pid, task.cgroup, id);
            processes.push((id, process(world, pid)));
        }
        self.rows.processes = processes.len();
        sample.processes = Table::read(processes);
        out.push(Record::Sample(Box::new(sample)));
    }

    fn cgroups(&mut self, world: &World, sample: &mut Sample, is_first: bool, reads_stat: bool, out: &mut Vec<Record>) {
        let (mut rows, mut limits) = (Vec::with_capacity(self.rows.cgroups), Vec::new());
        let mut io = Vec::with_capacity(if reads_stat { self.rows.cgroup_io } else { 0 });
        let below = below(world);
        let blocks: Vec<_> = world.blocks.iter().map(|(at, block)| (at, block, io_of_cgroups(world, block))).collect();
        for (cg, cgroup) in world.cgroups.iter() {
            if cgroup.is_dead {
                continue;
            }
            let is_known = self.cgroups.get(cg, ()).is_some();
            let id = self.cgroup(world, cg, out);
            if cgroup.has_controllers || cg == CgId::ROOT {
                let mut row = cgroup_row(cgroup, below[cg.0 as usize]);
                row.slab_reclaimable = world.unified.then_some(Bytes(below[cg.0 as usize].inodes * INODE));
                if !reads_stat && is_known {
                    without_stat(&mut row);
                }
                rows.push((id, row));
            }
            // A host reads limits in turns. The model records each change at once.
            let now = [cgroup.max, cgroup.high, cgroup.min, cgroup.low];
            let is_new = is_first || !is_known || self.limits.get(&cg) != Some(&now);
            if is_new && cg != CgId::ROOT && cgroup.has_controllers {
                self.limits.insert(cg, now);
                let limit = |pages: u64| Some(if pages == u64::MAX { Limit::MAX } else { Limit(pages * PAGE) });
                let row = CgroupLimitsRow {
                    memory_max: limit(cgroup.max),
                    memory_high: limit(cgroup.high),
                    memory_min: limit(cgroup.min),
                    memory_low: limit(cgroup.low),
                    controllers: Some(Bits(3)),
                    subtree_control: Some(Bits(if cgroup.gives_controllers { 3 } else { 0 })),
                    ..CgroupLimitsRow::default()
                };
                limits.push((id, row));
            }
            for (device, block, counts) in blocks.iter().filter(|_| reads_stat) {
                let io_max = block.throttle.io_max(cg);
                let counts = match (counts[cg.0 as usize], io_max) {
                    (Some(counts), _) => counts,
                    (None, Some(_)) => [0; 4],
                    (None, None) => continue,
                };
                let [[rbps_max, riops_max], [wbps_max, wiops_max]] =
                    io_max.map_or([[None; 2]; 2], |io_max| io_max.map(|way| way.map(Some)));
                let id = match self.cgroup_io.get(device).and_then(|known| known.get(cg, ())) {
                    Some(id) => id,
                    None => {
                        let id = self.id(Entity::CgroupIo { cgroup: id, dev: block.dev }, out);
                        self.cgroup_io.entry(*device).or_default().insert(cg, (), id);
                        id
                    }
                };
                let row = CgroupIoRow {
                    rbytes: Some(Bytes(counts[0])),
                    wbytes: Some(Bytes(counts[1])),
                    rios: Some(Count(counts[2])),
                    wios: Some(Count(counts[3])),
                    dbytes: Some(Bytes(0)),
                    dios: Some(Count(0)),
                    rbps_max,
                    riops_max,
                    wbps_max,
                    wiops_max,
                    ..CgroupIoRow::default()
                };
                io.push((id, row));
            }
        }
        self.rows.cgroups = rows.len();
        sample.cgroups = Table::read(rows);
        if !limits.is_empty() || is_first {
            sample.cgroup_limits = Table::read(limits);
        }
        if reads_stat {
            self.rows.cgroup_io = io.len();
            sample.cgroup_io = Table::read(io);
        }
    }
}

/// Removes what is read from `memory.stat`.
fn without_stat(row: &mut CgroupRow) {
    for (index, metric) in CgroupRow::METRICS.iter().enumerate() {
        if metric.source.starts_with("memory.stat ") {
            row.set(index, None);
        }
    }
}

fn cgroup_entity(world: &World, id: CgId) -> Entity {
    let cgroup = &world.cgroups[id];
    let hierarchy = if world.unified { Hierarchy::V2 } else { Hierarchy::V1Memory };
    Entity::Cgroup { path: Name::new(&cgroup.path), hierarchy, ino: Some(cgroup.ino) }
}

fn host(world: &World) -> HostRow {
    let memory = &world.memory;
    let limits = world.gdtc(true);
    let root = &world.cgroups[CgId::ROOT];
    let sectors = |at: usize| world.blocks.iter().map(|(_, block)| block.stats.bytes[at]).sum::<u64>();
    let settings = &world.settings;
    let busy = memory.cpu_user + memory.cpu_system;
    let cpu_time = world.now.saturating_mul(world.cpus);
    HostRow {
        nr_dirty: Some(Pages(memory.nr_dirty)),
        nr_writeback: Some(Pages(memory.nr_writeback)),
        nr_writeback_temp: Some(Pages(0)),
        nr_dirtied: Some(Pages(memory.nr_dirtied)),
        nr_written: Some(Pages(memory.nr_written)),
        nr_dirty_threshold: Some(Pages(limits.thresh)),
        nr_dirty_background_threshold: Some(Pages(limits.bg_thresh)),
        nr_free_pages: Some(Pages(memory.free)),
        nr_inactive_file: Some(Pages(memory.inactive)),
        nr_active_file: Some(Pages(memory.active)),
        nr_active_anon: Some(Pages(memory.anon)),
        nr_inactive_anon: Some(Pages(memory.shmem)),
        nr_shmem: Some(Pages(memory.shmem)),
        pgpgin: Some(Bytes(sectors(0))),
        pgpgout: Some(Bytes(sectors(1))),
        pgfault: Some(Count(memory.pgfault)),
        pgmajfault: Some(Count(memory.pgmajfault)),
        pgscan_direct: Some(Pages(memory.pgscan_direct)),
        allocstall: Some(Count(memory.allocstall)),
        mem_total: bytes(memory.total),
        mem_free: bytes(memory.free),
        mem_available: bytes(memory.free + memory.inactive + memory.active),
        cached: bytes(memory.inactive + memory.active + memory.shmem),
        mem_dirty: bytes(memory.nr_dirty),
        mem_writeback: bytes(memory.nr_writeback),
        cpu_user: Some(Nanos(memory.cpu_user)),
        cpu_system: Some(Nanos(memory.cpu_system)),
        cpu_idle: Some(Nanos(cpu_time.saturating_sub(busy + memory.cpu_iowait))),
        cpu_iowait: Some(Nanos(memory.cpu_iowait)),
        cpu_steal: Some(Nanos(0)),
        ctxt: Some(Count(memory.ctxt)),
        procs_blocked: Some(Count(root.io.waiting())),
        psi_io_some: Some(Nanos(root.io.some)),
        psi_io_full: Some(Nanos(root.io.full)),
        dirty_ratio: Some(Percent(settings.dirty.dirty_ratio)),
        dirty_bytes: Some(Bytes(settings.dirty.dirty_bytes)),
        dirty_background_ratio: Some(Percent(settings.dirty.dirty_background_ratio)),
        dirty_background_bytes: Some(Bytes(settings.dirty.dirty_background_bytes)),
        dirty_expire_centisecs: Some(Centisecs(settings.expire_centisecs)),
        dirty_writeback_centisecs: Some(Centisecs(settings.writeback_centisecs)),
        dirtytime_expire_seconds: Some(Seconds(settings.dirtytime_expire_seconds)),
        laptop_mode: world.behaviour.arithmetic.laptop_mode.then_some(Seconds(settings.laptop_mode)),
        cpus_online: Some(Count(world.cpus)),
        ..HostRow::default()
    }
}

fn disk(block: &crate::block::Block) -> DiskRow {
    let stats = &block.stats;
    DiskRow {
        reads: Some(Count(stats.ios[0])),
        reads_merged: Some(Count(stats.merged[0])),
        read: Some(Bytes(stats.bytes[0])),
        read_time: Some(Nanos(stats.time[0])),
        writes: Some(Count(stats.ios[1])),
        writes_merged: Some(Count(stats.merged[1])),
        written: Some(Bytes(stats.bytes[1])),
        write_time: Some(Nanos(stats.time[1])),
        in_flight: Some(Count(u64::from(block.in_flight))),
        io_time: Some(Nanos(stats.io_time)),
        weighted_io_time: Some(Nanos(stats.weighted)),
        discards: Some(Count(0)),
        discarded: Some(Bytes(0)),
        flushes: Some(Count(stats.ios[2])),
        flush_time: Some(Nanos(stats.time[2])),
    }
}

fn bdi_row(world: &World, id: crate::arena::BdiId) -> BdiRow {
    let bdi = &world.bdis[id];
    let is_sum = world.behaviour.files.bdi_stats_sum;
    let wbs: Vec<WbId> = if is_sum { bdi.wbs.clone() } else { vec![bdi.root] };
    let sum = |of: fn(&crate::wb::Wb) -> u64| wbs.iter().map(|wb| of(&world.wbs[*wb])).sum::<u64>();
    let stat = |stat| bytes(wbs.iter().map(|wb| world.wb_stat(*wb, stat)).sum::<u64>());
    let ppm = |ratio: u64| Some(Ppm(ratio * 10_000 / world.behaviour.arithmetic.ratio_scale.max(1)));
    let bandwidth = if is_sum { bdi.tot_write_bandwidth } else { world.wbs[bdi.root].bandwidth.write_bandwidth };
    BdiRow {
        min_ratio: ppm(bdi.min_ratio),
        max_ratio: ppm(bdi.max_ratio),
        strict_limit: Some(Flag(u64::from(bdi.strictlimit))),
        read_ahead: Some(Bytes(bdi.read_ahead)),
        writeback: stat(WbStat::Writeback),
        reclaimable: stat(WbStat::Reclaimable),
        dirtied: stat(WbStat::Dirtied),
        written: stat(WbStat::Written),
        dirty_thresh: bytes(wbs.iter().map(|wb| world.bdi_thresh_shown(*wb)).sum::<u64>()),
        write_bandwidth: Some(BytesPerSecond(bandwidth * PAGE)),
        b_dirty: Some(Count(sum(|wb| wb.b_dirty.len))),
        b_io: Some(Count(sum(|wb| wb.b_io.len))),
        b_more_io: Some(Count(sum(|wb| wb.b_more_io.len))),
        b_dirty_time: Some(Count(sum(|wb| wb.b_dirty_time.len))),
        ..BdiRow::default()
    }
}

fn wb_row(world: &World, id: WbId) -> WbRow {
    let wb = &world.wbs[id];
    let state =
        1 | u64::from(wb.running) << 1 | u64::from(wb.has_dirty_io) << 2 | u64::from(wb.start_all.is_some()) << 3;
    WbRow {
        writeback: bytes(world.wb_stat(id, WbStat::Writeback)),
        reclaimable: bytes(world.wb_stat(id, WbStat::Reclaimable)),
        dirty_thresh: bytes(world.wb_thresh_shown(id)),
        dirtied: bytes(world.wb_stat(id, WbStat::Dirtied)),
        written: bytes(world.wb_stat(id, WbStat::Written)),
        write_bandwidth: Some(BytesPerSecond(wb.bandwidth.avg_write_bandwidth * PAGE)),
        b_dirty: Some(Count(wb.b_dirty.len)),
        b_io: Some(Count(wb.b_io.len)),
        b_more_io: Some(Count(wb.b_more_io.len)),
        b_dirty_time: Some(Count(wb.b_dirty_time.len)),
        state: Some(Bits(state)),
    }
}

fn cgroup_row(cgroup: &crate::cgroup::Cgroup, below: Below) -> CgroupRow {
    let charged = &cgroup.charged;
    CgroupRow {
        memory_current: bytes(charged.usage()),
        anon: bytes(charged.anon),
        file: bytes(charged.file + charged.shmem),
        shmem: bytes(charged.shmem),
        kernel: bytes(charged.kernel),
        file_dirty: bytes(charged.dirty),
        file_writeback: bytes(charged.writeback),
        inactive_file: bytes(charged.file - charged.active),
        active_file: bytes(charged.active),
        pgfault: Some(Count(cgroup.pgfault)),
        events_max: Some(Count(cgroup.events_max)),
        events_high: Some(Count(cgroup.events_high)),
        events_oom_kill: Some(Count(0)),
        io_some: Some(Nanos(cgroup.io.some)),
        io_full: Some(Nanos(cgroup.io.full)),
        nr_descendants: Some(Count(below.alive)),
        nr_dying_descendants: Some(Count(below.dying)),
        populated: Some(Flag(u64::from(cgroup.processes + below.processes > 0))),
        ..CgroupRow::default()
    }
}

fn process(world: &World, id: PidId) -> ProcessRow {
    let task = &world.pids[id];
    let state = match (task.is_alive, task.is_asleep) {
        (false, _) => b'Z',
        (true, true) => b'D',
        (true, false) => b'S',
    };
    ProcessRow {
        rchar: Some(Bytes(task.io.rchar)),
        wchar: Some(Bytes(task.io.wchar)),
        syscr: Some(Count(task.io.syscr)),
        syscw: Some(Count(task.io.syscw)),
        read_bytes: Some(Bytes(task.io.read_bytes)),
        write_bytes: Some(Bytes(task.io.write_bytes)),
        cancelled_write_bytes: Some(Bytes(task.io.cancelled)),
        minflt: Some(Count(task.io.minflt)),
        majflt: Some(Count(task.io.majflt)),
        utime: Some(Nanos(task.utime)),
        stime: Some(Nanos(task.stime)),
        blkio_delay: Some(Nanos(task.blkio_delay)),
        state: Some(Count(u64::from(state))),
        ..ProcessRow::default()
    }
}

/// Overlays that are mounted, by their filesystem.
pub(crate) fn overlays(world: &World) -> impl Iterator<Item = SbId> {
    world
        .sbs
        .iter()
        .filter(|(_, sb)| sb.is_mounted && sb.fs_type == FsType::Overlay)
        .filter_map(|(_, sb)| Some(sb.upper.as_ref()?.sb))
}

/// Facts of the machine, as a probe reports them.
pub(crate) fn facts(world: &World) -> HostFacts {
    let devices = world.blocks.iter().map(|(id, block)| BlockDevice {
        dev: block.dev,
        name: Name::new(&block.name),
        rotational: Some(block.rotational),
        scheduler: Some(block.scheduler.clone().into()),
        nr_requests: block.mirrors.is_empty().then_some(u64::from(block.depth)),
        max_request: Some(Bytes(world.request_pages() * PAGE)),
        wbt_lat: block.mirrors.is_empty().then_some(Nanos(block.wbt.target)),
        write_back_cache: Some(world.has_volatile_cache(id)),
        size: Some(Bytes(block.size)),
        partition_of: None,
        slaves: block.mirrors.iter().map(|mirror| world.blocks[mirror.device].dev).collect(),
        stack: match &block.loop_file {
            Some(file) => Stack::Loop { backing_file: Name::new(&file.path), dio: Some(file.is_direct) },
            None => match &block.stack {
                None => Stack::Bottom,
                Some(stack) if stack.is_md => Stack::Md { level: stack.name.as_str().into() },
                Some(stack) => Stack::Dm { name: Name::new(&stack.name) },
            },
        },
    });
    let mut mounts = Vec::new();
    for (number, (_, sb)) in (0_u32..).zip(world.sbs.iter()) {
        match (sb.device, &sb.upper) {
            (Some(block), _) => mounts.push(mount_facts(world, sb, block)),
            (None, upper) => {
                let mut mount = floodline_record::facts::Mount {
                    dev: DevId { major: 0, minor: 40 + number },
                    root: Name::new("/"),
                    mount_point: Name::new(&sb.point),
                    fs_type: sb.fs_type.name().into(),
                    source: Name::new(sb.fs_type.name()),
                    options: Name::new("rw"),
                    super_options: Name::new(if sb.options.is_empty() { "rw" } else { sb.options.as_str() }),
                    overlay: None,
                };
                mount.overlay = upper.as_ref().filter(|_| sb.fs_type == FsType::Overlay).map(|upper| Overlay {
                    upperdir: Some(Name::new(&upper.dir)),
                    upper_dev: world.sbs[upper.sb].device.map(|block| world.blocks[block].dev),
                    volatile: upper.is_volatile,
                });
                if sb.is_mounted {
                    mounts.push(mount);
                }
            }
        }
    }
    HostFacts {
        hostname: Name::new("simulated"),
        kernel_release: format!("{}-simulated", world.kernel).into(),
        kernel: Some(world.kernel),
        page_size: PAGE,
        hz: Some(Hz { value: u32::try_from(world.build.hz()).unwrap_or(0), assumed: false }),
        cpus_possible: u32::try_from(world.cpus).ok(),
        mem_total: Some(Bytes(world.memory.total * PAGE)),
        cgroups: setup_facts(world),
        devices: devices.collect(),
        mounts,
        privileged: Some(true),
        task_delayacct: Some(true),
        lru_gen: Some(false),
        debugfs: Some(true),
        bdis: world.bdis.iter().map(|(_, bdi)| (bdi.name.clone().into(), bdi_disk(world, bdi))).collect(),
        ..HostFacts::default()
    }
}
