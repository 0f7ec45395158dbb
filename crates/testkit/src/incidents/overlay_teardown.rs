// SPDX-License-Identifier: MIT OR Apache-2.0
//! Overlay teardown: ten overlays over one upper filesystem, 30 MiB written into each, and a disk of
//! 31.46 MB/s. Each unmount takes 9.93 to 10.03 s, as 300 MiB ÷ 31.46 MB/s is 10.0 s. Published for the
//! kernel that brought it, 4.14.60, with up to 10 s for each of a row of parallel unmounts.

use crate::{Fixture, dev_of, grows, mib, mib_pages, mount, secs};
use floodline_record::facts::{Mount, Overlay};
use floodline_record::id::{DevId, Hierarchy};
use floodline_record::name::Name;
use floodline_record::sample::ProcessRow;
use floodline_record::units::{Bytes, BytesPerSecond, Count, Pages};

const OVERLAYS: u32 = 10;
/// What is dirty, MiB.
const DIRTY: f64 = 300.0;
/// What the disk writes, bytes per second.
const BANDWIDTH: f64 = 31.46e6;

fn overlay(at: u32) -> Mount {
    Mount {
        dev: DevId { major: 0, minor: 60 + at },
        root: Name::from("/"),
        mount_point: Name::new(format!("/run/box/{at}/rootfs")),
        fs_type: "overlay".into(),
        source: Name::from("overlay"),
        options: Name::from("rw,relatime"),
        super_options: Name::new(format!("rw,lowerdir=/srv/lower,upperdir=/srv/boxes/{at}/upper")),
        overlay: Some(Overlay {
            upperdir: Some(Name::new(format!("/srv/boxes/{at}/upper"))),
            upper_dev: Some(dev_of("sdb")),
            volatile: false,
        }),
    }
}

fn machine(kernel: &str) -> Fixture {
    let upper = mount("sdb", "xfs", "/srv/boxes", "rw,attr2,inode64,noquota");
    let fixture = Fixture::healthy()
        .kernel(kernel)
        .facts(|facts| {
            facts.mounts.push(upper);
            facts.mounts.extend((0..OVERLAYS).map(overlay));
        })
        .disk("sdb", |_, _| {})
        .bdi("8:16", |_, row| row.write_bandwidth = Some(BytesPerSecond(BANDWIDTH as u64)));
    (0..OVERLAYS).fold(fixture.cgroup("/machine.slice", |_, _| {}), |fixture, at| {
        fixture.cgroup(&format!("/machine.slice/box-{at}.scope"), |_, row| {
            row.file = Some(Bytes(mib(60.0)));
        })
    })
}

/// Dirty data of the upper filesystem at second `t`, MiB, in every place that shows them.
fn with_dirty(fixture: Fixture, kernel: &str, dirty: fn(f64) -> f64) -> Fixture {
    let fixture = fixture
        .host(move |t, row| row.nr_dirty = Some(Pages(300 + mib_pages(dirty(t)).0)))
        .bdi("8:16", move |t, row| row.reclaimable = Some(Bytes(mib(dirty(t)))));
    let fixture = (0..OVERLAYS).fold(fixture, |fixture, at| {
        fixture.cgroup(&format!("/machine.slice/box-{at}.scope"), move |t, row| {
            row.file_dirty = Some(Bytes(mib(dirty(t)) / u64::from(OVERLAYS)));
        })
    });
    match kernel.parse().map(floodline_kernel::Behaviour::of) {
        Ok(kernel) if kernel.files.wb_stats => {
            fixture.wb("8:16", 1, move |t, row| row.reclaimable = Some(Bytes(mib(dirty(t)))))
        }
        _ => fixture,
    }
}

/// Before any unmount: the data are dirty and the disk is idle.
pub fn overlay_before_teardown(kernel: &str) -> Fixture {
    with_dirty(machine(kernel), kernel, |_| DIRTY).seconds(5)
}

fn left(t: f64) -> f64 {
    (DIRTY - BANDWIDTH / 1_048_576.0 * t).max(0.0)
}

fn teardown(fixture: Fixture, kernel: &str) -> Fixture {
    let fixture = with_dirty(fixture, kernel, left)
        .host(|t, row| {
            row.nr_written = grows(t, 38_000_000, BANDWIDTH / 4096.0);
            row.psi_io_some = Some(secs(900.0 + 0.99 * t));
            row.psi_io_full = Some(secs(700.0 + 0.97 * t));
            row.procs_blocked = Some(Count(OVERLAYS.into()));
        })
        .disk("sdb", |t, row| {
            row.written = grows(t, mib(9_000.0), BANDWIDTH);
            row.writes = grows(t, 90_000, BANDWIDTH / 524_288.0);
            row.write_time = Some(secs(900.0 + 0.5 * BANDWIDTH / 524_288.0 * t));
            row.io_time = Some(secs(600.0 + t));
            row.weighted_io_time = Some(secs(1_000.0 + 30.0 * t));
        });
    (0..OVERLAYS)
        .fold(fixture, |fixture, at| {
            fixture.process("umount", 3000 + at, "/system.slice/teardown.service", |_, row| {
                row.state = Some(Count(u64::from(b'D')));
            })
        })
        .seconds(9)
}

/// All ten unmounts at once, on 6.12.
pub fn overlay_teardown() -> Fixture {
    let kernel = "6.12.117+deb13-amd64";
    teardown(machine(kernel), kernel)
}

/// The same, seen from some seconds before.
pub fn overlay_teardown_seen_coming() -> Fixture {
    const QUIET_S: f64 = 5.0;
    let since = |t: f64| (t - QUIET_S).max(0.0);
    let fixture = with_dirty(overlay_teardown(), "6.12.117", |t| left((t - QUIET_S).max(0.0)))
        .host(move |t, row| {
            row.nr_written = grows(since(t), 38_000_000, BANDWIDTH / 4096.0);
            row.psi_io_some = Some(secs(900.0 + 0.99 * since(t)));
            row.psi_io_full = Some(secs(700.0 + 0.97 * since(t)));
        })
        .disk("sdb", move |t, row| {
            let t = since(t);
            row.written = grows(t, mib(9_000.0), BANDWIDTH);
            row.writes = grows(t, 90_000, BANDWIDTH / 524_288.0);
            row.write_time = Some(secs(900.0 + 0.5 * BANDWIDTH / 524_288.0 * t));
            row.io_time = Some(secs(600.0 + t));
            row.weighted_io_time = Some(secs(1_000.0 + 30.0 * t));
        });
    (0..OVERLAYS)
        .fold(fixture, |fixture, at| {
            fixture.process("umount", 3000 + at, "/system.slice/teardown.service", |t, row| {
                if t < QUIET_S {
                    *row = ProcessRow::default();
                }
            })
        })
        .seconds(14)
}

/// The same on 6.1.
pub fn overlay_teardown_6_1() -> Fixture {
    let kernel = "6.1.0-40-amd64";
    teardown(machine(kernel), kernel)
}

/// Published: after an update to 4.14.60, version 1 of cgroups, up to 10 s each.
pub fn overlay_teardown_published() -> Fixture {
    teardown(machine("4.14.60").hierarchy(Hierarchy::V1Memory), "4.14.60")
}

/// After `sync -f` on the upper filesystem.
pub fn overlay_synced() -> Fixture {
    let kernel = "6.12.117+deb13-amd64";
    with_dirty(machine(kernel), kernel, |_| 0.0).wb("8:16", 1, |_, _| {}).seconds(5)
}

/// Mounted `volatile`: the data stay dirty and no task waits.
pub fn overlay_volatile() -> Fixture {
    overlay_before_teardown("6.12.117+deb13-amd64").facts(|facts| {
        for mount in &mut facts.mounts {
            if let Some(overlay) = &mut mount.overlay {
                overlay.volatile = true;
            }
        }
    })
}
