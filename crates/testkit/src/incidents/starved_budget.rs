// SPDX-License-Identifier: MIT OR Apache-2.0
//! Starved budgets: `vm.dirty_bytes` of 100 MiB divided over memory cgroups that write through mappings
//! on XFS. As published for a host with 124 GB and hundreds of containers, and re-enacted in guests with
//! 8 GB, eight cgroups of 128 MiB and a disk of 100 MB/s.

use crate::{Fixture, grows, mib, mount, secs};
use floodline_record::id::Hierarchy;
use floodline_record::units::{Bytes, BytesPerSecond, Count, Limit, Pages};

/// 100 MiB and 50 MiB.
const BYTES: (u64, u64, u64, u64) = (0, 100 << 20, 0, 50 << 20);

/// What the eight writers did.
#[derive(Clone, Copy)]
struct Writers {
    /// Bytes dirtied per second by all of them.
    dirtied: f64,
    /// Write faults per second of all of them; there were 768 stores.
    faults: f64,
    /// Dirty bytes of each.
    dirty: u64,
    /// Share of the time in which a task of each was asleep for I/O.
    waiting: f64,
}

fn guest(kernel: &str, fs_type: &str, hierarchy: Hierarchy, writers: Writers) -> Fixture {
    let data = mount("sdb", fs_type, "/data", "rw,attr2,inode64,noquota");
    let rate = writers.dirtied;
    let mut fixture = Fixture::healthy()
        .hierarchy(hierarchy)
        .kernel(kernel)
        .memory_gib(8.0)
        .facts(|facts| {
            facts.cpus_possible = Some(2);
            facts.mounts.push(data);
        })
        .settings(BYTES)
        .host(move |t, row| {
            row.nr_dirty = Some(Pages(300 + 8 * writers.dirty / 4096));
            row.nr_dirtied = grows(t, 40_000_000, rate / 4096.0);
            row.nr_written = grows(t, 38_000_000, rate / 4096.0);
            row.psi_io_some = Some(secs(900.0 + writers.waiting.max(0.002) * t));
            row.psi_io_full = Some(secs(700.0 + 0.5 * writers.waiting * t));
            row.cpu_iowait = Some(secs(2_000.0 + writers.waiting * t));
        })
        .disk("sdb", move |t, row| {
            row.written = grows(t, mib(9_000.0), rate);
            row.writes = grows(t, 90_000, rate / 110_000.0);
            row.write_time = Some(secs(900.0 + 0.002 * rate / 110_000.0 * t));
            row.io_time = Some(secs(600.0 + rate / 104_857_600.0 * t));
            row.weighted_io_time = Some(secs(1_000.0 + 1.2 * rate / 104_857_600.0 * t));
        })
        .bdi("8:16", |_, row| row.write_bandwidth = Some(BytesPerSecond(106_000_000)));
    fixture = fixture.cgroup("/bench.slice", |_, _| {});
    for writer in 0..8u32 {
        let path = format!("/bench.slice/writer-{writer}.scope");
        fixture = fixture
            .cgroup(&path, move |t, row| {
                row.memory_current = Some(Bytes(mib(6.0)));
                row.anon = Some(Bytes(mib(0.5)));
                row.kernel = Some(Bytes(mib(0.5)));
                row.file = Some(Bytes(mib(5.0)));
                row.inactive_file = Some(Bytes(mib(4.0)));
                row.active_file = Some(Bytes(mib(1.0)));
                row.file_dirty = Some(Bytes(writers.dirty));
                row.io_some = Some(secs(1.0 + writers.waiting * t));
                row.io_full = Some(secs(1.0 + writers.waiting * t));
            })
            .limits(&path, |_, row| row.memory_max = Some(Limit(mib(128.0))))
            .process("mapwriter", 2000 + writer, &path, move |t, row| {
                row.wchar = Some(Bytes(100));
                row.syscw = Some(Count(3));
                row.write_bytes = grows(t, mib(20.0), rate / 8.0);
                row.minflt = grows(t, 2_000, writers.faults / 8.0);
            });
        if hierarchy == Hierarchy::V2 {
            fixture = fixture.cgroup_io(&path, "sdb", move |t, row| row.wbytes = grows(t, mib(20.0), rate / 8.0));
        }
    }
    fixture
}

/// Re-enacted on 6.12: 60.1 MB/s dirtied by 768 one-byte stores a second.
pub fn starved_budget() -> Fixture {
    let bad = Writers { dirtied: 60.1e6, faults: 1_100.0, dirty: mib(4.0), waiting: 0.7 };
    guest("6.12.117+deb13-amd64", "xfs", Hierarchy::V2, bad)
}

/// The same on 6.1: 63.1 MB/s.
pub fn starved_budget_6_1() -> Fixture {
    let bad = Writers { dirtied: 63.1e6, faults: 1_300.0, dirty: mib(4.0), waiting: 0.6 };
    guest("6.1.0-40-amd64", "xfs", Hierarchy::V2, bad)
}

/// The same after ratios of 10 and 5 percent: 2.75 MB/s.
pub fn starved_budget_cured() -> Fixture {
    let good = Writers { dirtied: 2.75e6, faults: 700.0, dirty: mib(3.9), waiting: 0.01 };
    guest("6.12.117+deb13-amd64", "xfs", Hierarchy::V2, good).settings((10, 0, 5, 0))
}

/// The same bytes on ext4, whose folios are pages on this kernel: 2.23 MB/s.
pub fn small_budget_of_pages() -> Fixture {
    let good = Writers { dirtied: 2.23e6, faults: 600.0, dirty: mib(1.2), waiting: 0.01 };
    guest("6.12.117+deb13-amd64", "ext4", Hierarchy::V2, good)
}

/// The same bytes on version 1 of 6.1: 1.91 MB/s, as they are not divided between cgroups.
pub fn undivided_budget() -> Fixture {
    let good = Writers { dirtied: 1.91e6, faults: 500.0, dirty: mib(3.5), waiting: 0.01 };
    guest("6.1.0-40-amd64", "xfs", Hierarchy::V1Memory, good)
}

/// Containers of the published host in the recording; there were hundreds.
const CONTAINERS: u32 = 240;

/// Published: 124 GB, 100 and 50 MiB, containers of 768 MiB on XFS on loop devices, each with journald,
/// Redis and MariaDB. More than 500 MB/s dirtied and 46 % iowait; `file_dirty` of 2.9 MB.
pub fn starved_budget_published() -> Fixture {
    containers(2.2e6, mib(2.77), 0.46)
}

/// The same after 10/5: 68 to 286 KB/s each.
pub fn starved_budget_published_cured() -> Fixture {
    containers(150e3, mib(3.0), 0.004).settings((10, 0, 5, 0))
}

fn containers(dirtied_each: f64, dirty_each: u64, waiting: f64) -> Fixture {
    let total = dirtied_each * f64::from(CONTAINERS);
    let images = mount("loop0", "xfs", "/srv/containers", "rw,attr2,inode64,noquota");
    let mut fixture = Fixture::healthy()
        .kernel("6.1.0-18-amd64")
        .memory_gib(124.0)
        .settings(BYTES)
        .facts(|facts| {
            facts.cpus_possible = Some(64);
            facts.mounts.push(images);
        })
        .host(move |t, row| {
            // Half of the memory is anonymous.
            row.nr_free_pages = Some(Pages(2_000_000));
            row.nr_inactive_file = Some(Pages(7_000_000));
            row.nr_active_file = Some(Pages(6_748_000));
            row.nr_dirty = Some(Pages(20_000));
            row.nr_dirtied = grows(t, 40_000_000, total / 4096.0);
            row.nr_written = grows(t, 38_000_000, total / 4096.0);
            row.cpu_user = Some(secs(800_000.0 + 12.0 * t));
            row.cpu_system = Some(secs(200_000.0 + 4.0 * t));
            row.cpu_idle = Some(secs(6_900_000.0 + (48.0 - 64.0 * waiting) * t));
            row.cpu_iowait = Some(secs(2_000.0 + 64.0 * waiting * t));
            row.psi_io_some = Some(secs(900.0 + (2.0 * waiting).min(0.9) * t));
        })
        .disk("loop0", move |t, row| row.written = grows(t, mib(9_000.0), total))
        .disk("sda", move |t, row| {
            row.written = grows(t, mib(160_000.0), total);
            row.writes = grows(t, 9_000_000, total / 120_000.0);
            row.write_time = Some(secs(9_000.0 + 0.001 * total / 120_000.0 * t));
            row.io_time = Some(secs(6_000.0 + total / 1.2e9 * t));
            row.weighted_io_time = Some(secs(10_000.0 + 2.0 * total / 1.2e9 * t));
        })
        .bdi("8:0", |_, row| row.write_bandwidth = Some(BytesPerSecond(1_100_000_000)));
    fixture = fixture.cgroup("/machine.slice", |_, _| {});
    for at in 0..CONTAINERS {
        let path = format!("/machine.slice/box-{at:03}.service");
        fixture = fixture
            .cgroup(&path, move |t, row| {
                row.memory_current = Some(Bytes(mib(500.0)));
                row.anon = Some(Bytes(mib(300.0)));
                row.file = Some(Bytes(mib(192.0)));
                row.inactive_file = Some(Bytes(mib(100.0)));
                row.active_file = Some(Bytes(mib(92.0)));
                row.file_dirty = Some(Bytes(dirty_each));
                row.io_some = Some(secs(1.0 + waiting * t));
                row.io_full = Some(secs(1.0 + waiting * t));
            })
            .limits(&path, |_, row| row.memory_max = Some(Limit(mib(768.0))))
            .cgroup_io(&path, "loop0", move |t, row| row.wbytes = grows(t, mib(20.0), dirtied_each))
            .process("systemd-journal", 10_000 + 3 * at, &path, move |t, row| {
                // 21 write calls in five seconds.
                row.syscw = grows(t, 4_000, 4.2);
                row.wchar = grows(t, mib(4.0), 600.0);
                row.write_bytes = grows(t, mib(900.0), dirtied_each);
                row.minflt = grows(t, 20_000, dirtied_each / 90_000.0);
            })
            .process("redis-server", 10_001 + 3 * at, &path, |_, _| {})
            .process("mariadbd", 10_002 + 3 * at, &path, |_, _| {});
    }
    fixture
}
