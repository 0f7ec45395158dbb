// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rows of the healthy, idle machine that a [`super::Fixture`] starts from, at second `t`. What a test changes
//! comes on top.

use super::{dev_of, grows, mib, mount, secs};
use floodline_record::facts::{BlockDevice, CgroupMode, CgroupSetup, HostFacts, Hz, Journald, Stack};
use floodline_record::name::Name;
use floodline_record::sample::{
    BdiRow, CgroupIoRow, CgroupLimitsRow, CgroupRow, DiskRow, HostRow, ProcessRow, WbRow, ZoneRow,
};
use floodline_record::text::Text;
use floodline_record::units::{
    Bits, Bytes, BytesPerSecond, Centisecs, Count, Flag, Limit, Nanos, Pages, Percent, Ppm, Seconds,
};
use std::collections::BTreeMap;

pub(super) fn facts() -> HostFacts {
    HostFacts {
        hostname: Name::from("web-1"),
        kernel_release: "6.12.117+deb13-amd64".into(),
        kernel: "6.12.117".parse().ok(),
        cmdline: Name::from("root=/dev/sda1 ro quiet"),
        page_size: 4096,
        hz: Some(Hz { value: 250, assumed: false }),
        cpus_possible: Some(8),
        mem_total: Some(Bytes(mib(16_384.0))),
        cgroups: CgroupSetup {
            mode: CgroupMode::V2,
            v2_mount: Some(Name::from("/sys/fs/cgroup")),
            v2_controllers: ["cpu", "io", "memory", "pids"].map(Text::from).to_vec(),
            v2_controllers_unread: false,
            v1_mounts: BTreeMap::new(),
        },
        devices: Vec::new(),
        mounts: vec![mount("sda", "ext4", "/", "rw")],
        journald: Some(Journald {
            storage: "auto".into(),
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

pub(super) fn device(name: &str) -> BlockDevice {
    let stack = match name {
        _ if name.starts_with("loop") => Stack::Loop { backing_file: Name::from("/var/lib/image"), dio: Some(false) },
        _ if name.starts_with("md") => Stack::Md { level: "raid1".into() },
        _ if name.starts_with("dm-") => Stack::Dm { name: Name::from("vg0-data") },
        _ => Stack::Bottom,
    };
    BlockDevice {
        dev: dev_of(name),
        name: Name::from(name),
        rotational: Some(false),
        scheduler: Some("mq-deadline".into()),
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

pub(super) fn host(t: f64, row: &mut HostRow) {
    *row = HostRow {
        nr_dirty: Some(Pages(300)),
        nr_writeback: Some(Pages(0)),
        nr_writeback_temp: Some(Pages(0)),
        nr_unstable: Some(Pages(0)),
        nr_dirtied: grows(t, 40_000_000, 20.0),
        nr_written: grows(t, 38_000_000, 19.0),
        // What follows from the other columns is filled in at the end: see `derive`.
        nr_dirty_threshold: None,
        nr_dirty_background_threshold: None,
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
        mem_free: None,
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

pub(super) fn zone(_: f64, row: &mut ZoneRow) {
    *row = ZoneRow {
        managed: Some(Pages(4_000_000)),
        high: Some(Pages(20_000)),
        boost: Some(Pages(0)),
        protection_max: Some(Pages(0)),
        free: Some(Pages(1_900_000)),
    };
}

pub(super) fn disk(t: f64, row: &mut DiskRow) {
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

pub(super) fn bdi(t: f64, row: &mut BdiRow) {
    *row = BdiRow {
        min_ratio: Some(Ppm(0)),
        max_ratio: Some(Ppm(1_000_000)),
        min_bytes: Some(Bytes(0)),
        max_bytes: None,
        strict_limit: Some(Flag(0)),
        read_ahead: Some(Bytes(128 << 10)),
        writeback: Some(Bytes(0)),
        reclaimable: Some(Bytes(300 * 4096)),
        dirty_thresh: None,
        dirtied: grows(t, mib(156_000.0), 80_000.0),
        written: grows(t, mib(150_000.0), 78_000.0),
        write_bandwidth: Some(BytesPerSecond(mib(412.0))),
        b_dirty: Some(Count(12)),
        b_io: Some(Count(0)),
        b_more_io: Some(Count(0)),
        b_dirty_time: Some(Count(0)),
    };
}

pub(super) fn wb(t: f64, row: &mut WbRow) {
    *row = WbRow {
        writeback: Some(Bytes(0)),
        reclaimable: Some(Bytes(300 * 4096)),
        dirty_thresh: None,
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

pub(super) fn cgroup(t: f64, row: &mut CgroupRow) {
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

pub(super) fn no_limits(_: f64, row: &mut CgroupLimitsRow) {
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

pub(super) fn cgroup_io(_: f64, row: &mut CgroupIoRow) {
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

pub(super) fn process(_: f64, row: &mut ProcessRow) {
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
        cminflt: Some(Count(0)),
        children_time: Some(Nanos(0)),
        ppid: Some(Count(1)),
        blkio_delay: Some(Nanos(0)),
        state: Some(Count(u64::from(b'S'))),
    };
}
