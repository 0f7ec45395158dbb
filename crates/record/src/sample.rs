// SPDX-License-Identifier: MIT OR Apache-2.0
//! One look at the machine: raw readings, never rates or verdicts. Every column is one line below;
//! to add a counter, add its line here and the line of its parser in `floodline-host`.
//! `/proc` times arrive as clock ticks or microseconds and "kB" as KiB; the parsers convert them.

use crate::id::EntityId;
use crate::metric::{Changed, Row, rows};
use crate::units::Nanos;

rows! {
    /// Machine-wide readings; one row per sample.
    "host" HostRow {
        /// Pages that are dirty: NR_DIRTY.
        nr_dirty: Pages = gauge "/proc/vmstat nr_dirty";
        /// Pages under writeback: NR_WRITEBACK.
        nr_writeback: Pages = gauge "/proc/vmstat nr_writeback";
        /// FUSE's temporary writeback pages; constant 0 in new kernels.
        nr_writeback_temp: Pages = gauge "/proc/vmstat nr_writeback_temp";
        /// Unstable NFS pages; 0 since 5.8.
        nr_unstable: Pages = gauge "/proc/vmstat nr_unstable";
        /// Pages ever dirtied.
        nr_dirtied: Pages = counter "/proc/vmstat nr_dirtied";
        /// Pages whose writeback ever completed.
        nr_written: Pages = counter "/proc/vmstat nr_written";
        /// Hard threshold as the kernel computes it for the reader.
        nr_dirty_threshold: Pages = gauge "/proc/vmstat nr_dirty_threshold";
        /// Background threshold as the kernel computes it for the reader.
        nr_dirty_background_threshold: Pages = gauge "/proc/vmstat nr_dirty_background_threshold";
        /// Free pages.
        nr_free_pages: Pages = gauge "/proc/vmstat nr_free_pages";
        /// Inactive file pages.
        nr_inactive_file: Pages = gauge "/proc/vmstat nr_inactive_file";
        /// Active file pages.
        nr_active_file: Pages = gauge "/proc/vmstat nr_active_file";
        /// Inactive anonymous pages.
        nr_inactive_anon: Pages = gauge "/proc/vmstat nr_inactive_anon";
        /// Active anonymous pages.
        nr_active_anon: Pages = gauge "/proc/vmstat nr_active_anon";
        /// Unevictable pages.
        nr_unevictable: Pages = gauge "/proc/vmstat nr_unevictable";
        /// Mapped file pages.
        nr_mapped: Pages = gauge "/proc/vmstat nr_mapped";
        /// Shared memory and tmpfs pages.
        nr_shmem: Pages = gauge "/proc/vmstat nr_shmem";
        /// Pages reclaim found dirty and under writeback at the tail of the list.
        nr_vmscan_immediate_reclaim: Pages = counter "/proc/vmstat nr_vmscan_immediate_reclaim";
        /// Pages written by reclaim itself.
        nr_vmscan_write: Pages = counter "/proc/vmstat nr_vmscan_write";
        /// Pages written while reclaim was throttled on writeback (5.16).
        nr_throttled_written: Pages = counter "/proc/vmstat nr_throttled_written";
        /// KiB read from block devices, as bytes.
        pgpgin: Bytes = counter "/proc/vmstat pgpgin";
        /// KiB written to block devices, as bytes.
        pgpgout: Bytes = counter "/proc/vmstat pgpgout";
        /// Page faults.
        pgfault: Count = counter "/proc/vmstat pgfault";
        /// Page faults that needed a read.
        pgmajfault: Count = counter "/proc/vmstat pgmajfault";
        /// Pages scanned by direct reclaim.
        pgscan_direct: Pages = counter "/proc/vmstat pgscan_direct";
        /// Pages scanned by kswapd.
        pgscan_kswapd: Pages = counter "/proc/vmstat pgscan_kswapd";
        /// Direct reclaim entries, summed over zones.
        allocstall: Count = counter "/proc/vmstat allocstall*";
        /// Pages swapped out.
        pswpout: Pages = counter "/proc/vmstat pswpout";
        /// Inodes evicted by reclaim with their page cache.
        inodesteal: Count = counter "/proc/vmstat pginodesteal + kswapd_inodesteal";
        /// Total memory.
        mem_total: Bytes = gauge "/proc/meminfo MemTotal";
        /// Free memory.
        mem_free: Bytes = gauge "/proc/meminfo MemFree";
        /// Memory available to new programs.
        mem_available: Bytes = gauge "/proc/meminfo MemAvailable";
        /// Page cache.
        cached: Bytes = gauge "/proc/meminfo Cached";
        /// Dirty memory as meminfo has it.
        mem_dirty: Bytes = gauge "/proc/meminfo Dirty";
        /// Memory under writeback as meminfo has it.
        mem_writeback: Bytes = gauge "/proc/meminfo Writeback";
        /// CPU time in user mode, all CPUs.
        cpu_user: Nanos = counter "/proc/stat cpu user + nice";
        /// CPU time in the kernel, all CPUs.
        cpu_system: Nanos = counter "/proc/stat cpu system + irq + softirq";
        /// Idle time without outstanding I/O, all CPUs.
        cpu_idle: Nanos = counter "/proc/stat cpu idle";
        /// Idle time of CPUs on which a task went to sleep for I/O, throttling included.
        cpu_iowait: Nanos = counter "/proc/stat cpu iowait";
        /// Time taken by the hypervisor, all CPUs.
        cpu_steal: Nanos = counter "/proc/stat cpu steal";
        /// Context switches.
        ctxt: Count = counter "/proc/stat ctxt";
        /// Tasks blocked for I/O.
        procs_blocked: Count = gauge "/proc/stat procs_blocked";
        /// Tasks runnable.
        procs_running: Count = gauge "/proc/stat procs_running";
        /// Time at least one task waited for I/O.
        psi_io_some: Nanos = counter "/proc/pressure/io some total";
        /// Time all non-idle tasks waited for I/O.
        psi_io_full: Nanos = counter "/proc/pressure/io full total";
        /// Time at least one task waited for memory.
        psi_memory_some: Nanos = counter "/proc/pressure/memory some total";
        /// Time all non-idle tasks waited for memory.
        psi_memory_full: Nanos = counter "/proc/pressure/memory full total";
        /// Time at least one task waited for a CPU.
        psi_cpu_some: Nanos = counter "/proc/pressure/cpu some total";
        /// Hard threshold in percent of dirtyable memory; 0 when bytes are set.
        dirty_ratio: Percent = gauge "/proc/sys/vm/dirty_ratio";
        /// Hard threshold in bytes; 0 when the ratio is set.
        dirty_bytes: Bytes = gauge "/proc/sys/vm/dirty_bytes";
        /// Background threshold in percent of dirtyable memory; 0 when bytes are set.
        dirty_background_ratio: Percent = gauge "/proc/sys/vm/dirty_background_ratio";
        /// Background threshold in bytes; 0 when the ratio is set.
        dirty_background_bytes: Bytes = gauge "/proc/sys/vm/dirty_background_bytes";
        /// Age at which periodic writeback takes an inode.
        dirty_expire_centisecs: Centisecs = gauge "/proc/sys/vm/dirty_expire_centisecs";
        /// Flusher period; 0 switches periodic and expiry writeback off.
        dirty_writeback_centisecs: Centisecs = gauge "/proc/sys/vm/dirty_writeback_centisecs";
        /// Age at which inodes dirty only by timestamps are written.
        dirtytime_expire_seconds: Seconds = gauge "/proc/sys/vm/dirtytime_expire_seconds";
        /// Laptop mode; non-zero suppresses the background kick.
        laptop_mode: Seconds = gauge "/proc/sys/vm/laptop_mode";
        /// CPUs online.
        cpus_online: Count = gauge "/proc/stat cpuN lines";
    }

    /// One memory zone.
    "zone" ZoneRow {
        /// Pages the allocator manages.
        managed: Pages = gauge "/proc/zoneinfo managed";
        /// High watermark as printed, boost included.
        high: Pages = gauge "/proc/zoneinfo high";
        /// Temporary boost of the watermarks, contained in `high`.
        boost: Pages = gauge "/proc/zoneinfo boost";
        /// Largest of the lowmem reserves.
        protection_max: Pages = gauge "/proc/zoneinfo protection";
        /// Free pages of the zone.
        free: Pages = gauge "/proc/zoneinfo pages free";
    }

    /// One block device.
    "disk" DiskRow {
        /// Reads completed.
        reads: Count = counter "/proc/diskstats field 1";
        /// Reads merged.
        reads_merged: Count = counter "/proc/diskstats field 2";
        /// Bytes read (sectors of 512 bytes).
        read: Bytes = counter "/proc/diskstats field 3";
        /// Time spent reading, summed over requests.
        read_time: Nanos = counter "/proc/diskstats field 4";
        /// Writes completed.
        writes: Count = counter "/proc/diskstats field 5";
        /// Writes merged.
        writes_merged: Count = counter "/proc/diskstats field 6";
        /// Bytes written (sectors of 512 bytes).
        written: Bytes = counter "/proc/diskstats field 7";
        /// Time spent writing, summed over requests.
        write_time: Nanos = counter "/proc/diskstats field 8";
        /// Requests in flight.
        in_flight: Count = gauge "/proc/diskstats field 9";
        /// Time with at least one request in flight.
        io_time: Nanos = counter "/proc/diskstats field 10";
        /// Time in flight weighted by requests.
        weighted_io_time: Nanos = counter "/proc/diskstats field 11";
        /// Discards completed (4.18).
        discards: Count = counter "/proc/diskstats field 12";
        /// Bytes discarded.
        discarded: Bytes = counter "/proc/diskstats field 14";
        /// Flushes completed (5.5).
        flushes: Count = counter "/proc/diskstats field 16";
        /// Time spent flushing.
        flush_time: Nanos = counter "/proc/diskstats field 17";
    }

    /// One backing device: its knobs, and its state where debugfs is mounted.
    "bdi" BdiRow {
        /// Guaranteed share of the threshold.
        min_ratio: Ppm = gauge "/sys/class/bdi/NAME/min_ratio_fine, or min_ratio";
        /// Largest share of the threshold.
        max_ratio: Ppm = gauge "/sys/class/bdi/NAME/max_ratio_fine, or max_ratio";
        /// `min_ratio` as bytes of the present threshold (6.2).
        min_bytes: Bytes = gauge "/sys/class/bdi/NAME/min_bytes";
        /// `max_ratio` as bytes of the present threshold (6.2).
        max_bytes: Bytes = gauge "/sys/class/bdi/NAME/max_bytes";
        /// Whether the bdi is held to its own share even below the global limit.
        strict_limit: Flag = gauge "/sys/class/bdi/NAME/strict_limit";
        /// Readahead window.
        read_ahead: Bytes = gauge "/sys/class/bdi/NAME/read_ahead_kb";
        /// Bytes under writeback. Up to 6.9 of the root wb only.
        writeback: Bytes = gauge "debugfs bdi/NAME/stats BdiWriteback";
        /// Dirty bytes. Up to 6.9 of the root wb only.
        reclaimable: Bytes = gauge "debugfs bdi/NAME/stats BdiReclaimable";
        /// The bdi's share of the hard threshold.
        dirty_thresh: Bytes = gauge "debugfs bdi/NAME/stats BdiDirtyThresh";
        /// Bytes ever dirtied.
        dirtied: Bytes = counter "debugfs bdi/NAME/stats BdiDirtied";
        /// Bytes ever written back.
        written: Bytes = counter "debugfs bdi/NAME/stats BdiWritten";
        /// Write bandwidth as the kernel estimates it.
        write_bandwidth: BytesPerSecond = gauge "debugfs bdi/NAME/stats BdiWriteBandwidth";
        /// Inodes on the dirty list.
        b_dirty: Count = gauge "debugfs bdi/NAME/stats b_dirty";
        /// Inodes queued for this round of writeback.
        b_io: Count = gauge "debugfs bdi/NAME/stats b_io";
        /// Inodes waiting for another round.
        b_more_io: Count = gauge "debugfs bdi/NAME/stats b_more_io";
        /// Inodes dirty by timestamps only.
        b_dirty_time: Count = gauge "debugfs bdi/NAME/stats b_dirty_time";
    }

    /// One writeback structure (6.10, debugfs).
    "wb" WbRow {
        /// Bytes under writeback.
        writeback: Bytes = gauge "debugfs bdi/NAME/wb_stats WbWriteback";
        /// Dirty bytes.
        reclaimable: Bytes = gauge "debugfs bdi/NAME/wb_stats WbReclaimable";
        /// The smaller of its shares of the global and the memcg threshold.
        dirty_thresh: Bytes = gauge "debugfs bdi/NAME/wb_stats WbDirtyThresh";
        /// Bytes ever dirtied.
        dirtied: Bytes = counter "debugfs bdi/NAME/wb_stats WbDirtied";
        /// Bytes ever written back.
        written: Bytes = counter "debugfs bdi/NAME/wb_stats WbWritten";
        /// Average write bandwidth as the kernel estimates it.
        write_bandwidth: BytesPerSecond = gauge "debugfs bdi/NAME/wb_stats WbWriteBandwidth";
        /// Inodes on the dirty list.
        b_dirty: Count = gauge "debugfs bdi/NAME/wb_stats b_dirty";
        /// Inodes queued for this round of writeback.
        b_io: Count = gauge "debugfs bdi/NAME/wb_stats b_io";
        /// Inodes waiting for another round.
        b_more_io: Count = gauge "debugfs bdi/NAME/wb_stats b_more_io";
        /// Inodes dirty by timestamps only.
        b_dirty_time: Count = gauge "debugfs bdi/NAME/wb_stats b_dirty_time";
        /// State bits: 0 registered, 1 flusher running, 2 has dirty io, 3 start-all pending.
        state: Bits = gauge "debugfs bdi/NAME/wb_stats state";
    }

    /// One cgroup's counters. On version 1 the hierarchical `total_*` values of its memory.stat.
    "cgroup" CgroupRow {
        /// Memory charged.
        memory_current: Bytes = gauge "memory.current";
        /// Anonymous memory.
        anon: Bytes = gauge "memory.stat anon";
        /// Page cache, tmpfs included.
        file: Bytes = gauge "memory.stat file";
        /// Kernel memory.
        kernel: Bytes = gauge "memory.stat kernel";
        /// Shared memory and tmpfs.
        shmem: Bytes = gauge "memory.stat shmem";
        /// Mapped page cache.
        file_mapped: Bytes = gauge "memory.stat file_mapped";
        /// Dirty page cache.
        file_dirty: Bytes = gauge "memory.stat file_dirty";
        /// Page cache under writeback.
        file_writeback: Bytes = gauge "memory.stat file_writeback";
        /// Inactive page cache.
        inactive_file: Bytes = gauge "memory.stat inactive_file";
        /// Active page cache.
        active_file: Bytes = gauge "memory.stat active_file";
        /// Reclaimable slab: inodes and dentries, mostly.
        slab_reclaimable: Bytes = gauge "memory.stat slab_reclaimable";
        /// Page faults.
        pgfault: Count = counter "memory.stat pgfault";
        /// Page faults that needed a read.
        pgmajfault: Count = counter "memory.stat pgmajfault";
        /// File pages refaulted soon after eviction.
        workingset_refault_file: Count = counter "memory.stat workingset_refault_file";
        /// Times usage went over memory.high.
        events_high: Count = counter "memory.events high";
        /// Times usage was about to go over memory.max.
        events_max: Count = counter "memory.events max";
        /// OOM kills.
        events_oom_kill: Count = counter "memory.events oom_kill";
        /// Time at least one task waited for memory.
        memory_some: Nanos = counter "memory.pressure some total";
        /// Time all non-idle tasks waited for memory.
        memory_full: Nanos = counter "memory.pressure full total";
        /// Time at least one task waited for I/O.
        io_some: Nanos = counter "io.pressure some total";
        /// Time all non-idle tasks waited for I/O.
        io_full: Nanos = counter "io.pressure full total";
        /// Live descendants.
        nr_descendants: Count = gauge "cgroup.stat nr_descendants";
        /// Removed descendants that something still pins.
        nr_dying_descendants: Count = gauge "cgroup.stat nr_dying_descendants";
        /// Removed descendants whose memory state is still there (6.12).
        nr_dying_subsys_memory: Count = gauge "cgroup.stat nr_dying_subsys_memory";
        /// Whether a process lives in it or below.
        populated: Flag = gauge "cgroup.events populated";
    }

    /// One cgroup's limits; read now and then, and when a cgroup is first seen.
    "cgroup_limits" CgroupLimitsRow {
        /// Hard memory limit.
        memory_max: Limit = gauge "memory.max";
        /// Throttling memory limit.
        memory_high: Limit = gauge "memory.high";
        /// Hard memory protection.
        memory_min: Limit = gauge "memory.min";
        /// Best-effort memory protection.
        memory_low: Limit = gauge "memory.low";
        /// Default I/O weight.
        io_weight: Count = gauge "io.weight default";
        /// Bit 0: memory available here, bit 1: io available here.
        controllers: Bits = gauge "cgroup.controllers";
        /// Bit 0: memory enabled for children, bit 1: io enabled for children.
        subtree_control: Bits = gauge "cgroup.subtree_control";
    }

    /// One cgroup's I/O on one device.
    "cgroup_io" CgroupIoRow {
        /// Bytes read, counted at submission.
        rbytes: Bytes = counter "io.stat rbytes";
        /// Bytes written, counted at submission.
        wbytes: Bytes = counter "io.stat wbytes";
        /// Reads.
        rios: Count = counter "io.stat rios";
        /// Writes.
        wios: Count = counter "io.stat wios";
        /// Bytes discarded.
        dbytes: Bytes = counter "io.stat dbytes";
        /// Discards.
        dios: Count = counter "io.stat dios";
        /// Time lost to io.cost, all tasks of the cgroup.
        cost_wait: Nanos = counter "io.stat cost.wait";
        /// Read bytes per second allowed.
        rbps_max: Limit = gauge "io.max rbps or blkio.throttle.read_bps_device";
        /// Written bytes per second allowed.
        wbps_max: Limit = gauge "io.max wbps or blkio.throttle.write_bps_device";
        /// Reads per second allowed.
        riops_max: Limit = gauge "io.max riops or blkio.throttle.read_iops_device";
        /// Writes per second allowed.
        wiops_max: Limit = gauge "io.max wiops or blkio.throttle.write_iops_device";
    }

    /// One process.
    "process" ProcessRow {
        /// Bytes asked for by read calls.
        rchar: Bytes = counter "/proc/PID/io rchar";
        /// Bytes handed to write calls: application bytes, stores through maps not included.
        wchar: Bytes = counter "/proc/PID/io wchar";
        /// Read calls.
        syscr: Count = counter "/proc/PID/io syscr";
        /// Write calls.
        syscw: Count = counter "/proc/PID/io syscw";
        /// Bytes fetched from devices.
        read_bytes: Bytes = counter "/proc/PID/io read_bytes";
        /// Bytes dirtied (whole folios) or written directly; not bytes that reached a device.
        write_bytes: Bytes = counter "/proc/PID/io write_bytes";
        /// Dirty bytes this process truncated away, whoever dirtied them.
        cancelled_write_bytes: Bytes = counter "/proc/PID/io cancelled_write_bytes";
        /// Faults without a read.
        minflt: Count = counter "/proc/PID/stat field 10";
        /// Faults with a read.
        majflt: Count = counter "/proc/PID/stat field 12";
        /// CPU time in user mode.
        utime: Nanos = counter "/proc/PID/stat field 14";
        /// CPU time in the kernel.
        stime: Nanos = counter "/proc/PID/stat field 15";
        /// Faults without a read of children that were waited for: with it grow the counters of I/O, to
        /// which the kernel adds the children's in the same moment.
        cminflt: Count = counter "/proc/PID/stat field 11";
        /// CPU time of children that were waited for, user mode and kernel.
        children_time: Nanos = counter "/proc/PID/stat fields 16 + 17";
        /// The parent: who inherits the counters of I/O when it waits for this process.
        ppid: Count = gauge "/proc/PID/stat field 4";
        /// Time waiting for block I/O, throttling included; stays 0 with delay accounting off.
        blkio_delay: Nanos = counter "/proc/PID/stat field 42";
        /// State letter as its ASCII code: `D` is an uninterruptible sleep.
        state: Count = gauge "/proc/PID/stat field 3";
    }
}

/// The rows of one kind, ordered by entity, or the fact that they were not read this time.
#[derive(Clone, Debug)]
pub struct Table<R> {
    rows: Option<Vec<(EntityId, R)>>,
    since: Since,
}

impl<R: PartialEq> PartialEq for Table<R> {
    /// Compares the rows. What is known of the sample before is not a part of them.
    fn eq(&self, other: &Table<R>) -> bool {
        self.rows == other.rows
    }
}

impl<R> Default for Table<R> {
    fn default() -> Self {
        Table { rows: None, since: Since::default() }
    }
}

/// What is known to have changed since an earlier sample, of each row by position.
#[derive(Clone, Debug, Default)]
pub(crate) struct Since {
    /// Monotonic time of that sample; `None` where nothing is known.
    pub(crate) time: Option<Nanos>,
    pub(crate) changed: Vec<Changed>,
}

impl<R: Row> Table<R> {
    /// A table that was read; rows are put in order of their entity.
    pub fn read(mut rows: Vec<(EntityId, R)>) -> Table<R> {
        rows.sort_by_key(|(id, _)| *id);
        Table { rows: Some(rows), since: Since::default() }
    }

    /// A table of rows in order of their entity, of which it is known what changed.
    pub(crate) fn decoded(rows: Vec<(EntityId, R)>, since: Since) -> Table<R> {
        debug_assert!(rows.is_sorted_by_key(|(id, _)| *id));
        Table { rows: Some(rows), since }
    }

    /// What changed in each row, by position, since the sample of a time. Empty where that is not known.
    pub(crate) fn changed_since(&self, time: Option<Nanos>) -> &[Changed] {
        if time.is_some() && time == self.since.time { &self.since.changed } else { &[] }
    }

    /// Takes a table that was read apart.
    pub(crate) fn into_decoded(self) -> Option<(Vec<(EntityId, R)>, Since)> {
        Some((self.rows?, self.since))
    }

    /// Whether the kind was read at all in this sample.
    pub fn was_read(&self) -> bool {
        self.rows.is_some()
    }

    /// The rows in order of their entity; empty when not read.
    pub fn rows(&self) -> &[(EntityId, R)] {
        self.rows.as_deref().unwrap_or_default()
    }

    /// The row of one entity.
    pub fn get(&self, id: EntityId) -> Option<&R> {
        let rows = self.rows();
        rows.binary_search_by_key(&id, |(id, _)| *id).ok().and_then(|at| rows.get(at)).map(|(_, row)| row)
    }

    /// Takes the rows out, so that their memory can be used for the next sample.
    pub fn take(&mut self) -> Vec<(EntityId, R)> {
        self.since = Since::default();
        let mut rows = self.rows.take().unwrap_or_default();
        rows.clear();
        rows
    }
}

/// When a sample was taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SampleTime {
    /// Monotonic clock that goes on during suspend; differences of it are time passed.
    pub monotonic: Nanos,
    /// Wall clock, since 1970 UTC; for showing only, it may jump.
    pub wall: Nanos,
}

/// One look at the machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// When its reading began.
    pub time: SampleTime,
    /// How long its reading took.
    pub took: Nanos,
    /// Machine-wide readings.
    pub host: HostRow,
    /// Memory zones (read now and then).
    pub zones: Table<ZoneRow>,
    /// Block devices.
    pub disks: Table<DiskRow>,
    /// Backing devices.
    pub bdis: Table<BdiRow>,
    /// Writeback structures.
    pub wbs: Table<WbRow>,
    /// Cgroups.
    pub cgroups: Table<CgroupRow>,
    /// Limits of cgroups (read now and then).
    pub cgroup_limits: Table<CgroupLimitsRow>,
    /// I/O by cgroup and device.
    pub cgroup_io: Table<CgroupIoRow>,
    /// Processes.
    pub processes: Table<ProcessRow>,
}

/// Something to be done with every table of a sample, whatever its kind.
pub trait TableVisitor {
    /// The machine-wide row.
    fn host(&mut self, row: &HostRow);
    /// One table.
    fn table<R: Row + 'static>(&mut self, table: &Table<R>);
}

/// The same with write access; used to decode.
pub trait TableVisitorMut {
    /// Why visiting stopped.
    type Error;
    /// The machine-wide row.
    fn host(&mut self, row: &mut HostRow) -> Result<(), Self::Error>;
    /// One table.
    fn table<R: Row + 'static>(&mut self, table: &mut Table<R>) -> Result<(), Self::Error>;
}

impl Sample {
    /// Visits every table in a fixed order.
    pub fn visit(&self, visitor: &mut impl TableVisitor) {
        visitor.host(&self.host);
        visitor.table(&self.zones);
        visitor.table(&self.disks);
        visitor.table(&self.bdis);
        visitor.table(&self.wbs);
        visitor.table(&self.cgroups);
        visitor.table(&self.cgroup_limits);
        visitor.table(&self.cgroup_io);
        visitor.table(&self.processes);
    }

    /// Visits every table in the same order, to fill it.
    pub fn visit_mut<V: TableVisitorMut>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
        visitor.host(&mut self.host)?;
        visitor.table(&mut self.zones)?;
        visitor.table(&mut self.disks)?;
        visitor.table(&mut self.bdis)?;
        visitor.table(&mut self.wbs)?;
        visitor.table(&mut self.cgroups)?;
        visitor.table(&mut self.cgroup_limits)?;
        visitor.table(&mut self.cgroup_io)?;
        visitor.table(&mut self.processes)
    }
}
