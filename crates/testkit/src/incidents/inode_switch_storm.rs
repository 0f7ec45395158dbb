// SPDX-License-Identifier: MIT OR Apache-2.0
//! Inode switch storm: files written in a cgroup, synced, read once under `lazytime` so that their time
//! stamps are dirty, and the cgroup removed. CPU time of the kworkers as measured with 20,000 inodes in
//! guests; and as published for web servers on 6.8, where requests stalled for more than a second.

use crate::{Fixture, grows, mib, secs};
use floodline_record::units::{Bytes, Count};

fn machine(kernel: &str, workers: u32, cpu_s: f64, seconds: u32) -> Fixture {
    let each = cpu_s / f64::from(workers) / f64::from(seconds);
    let fixture = Fixture::healthy()
        .kernel(kernel)
        .mount("sdb", "xfs", "/data", "rw,lazytime,attr2,inode64,noquota")
        .host(move |t, row| {
            row.cpu_system = Some(secs(200_000.0 + (0.1 + each * f64::from(workers)) * t));
            row.psi_cpu_some = Some(secs(5_000.0 + 0.4 * t));
        })
        .disk("sdb", |_, _| {})
        .cgroup("/", |_, row| {
            row.nr_dying_descendants = Some(Count(1));
            row.nr_dying_subsys_memory = Some(Count(1));
        })
        .cgroup("/system.slice", |_, row| row.slab_reclaimable = Some(Bytes(mib(60.0))))
        .seconds(seconds);
    (0..workers).fold(fixture, |fixture, at| {
        fixture.process(&format!("kworker/{at}:1+inode_switch_wbs"), 50 + at, "/", move |t, row| {
            row.utime = Some(secs(0.0));
            row.stime = Some(secs(3.0 + each * t));
            row.write_bytes = grows(t, 0, 0.0);
            row.wchar = grows(t, 0, 0.0);
        })
    })
}

/// Re-enacted on 6.12.43, without the fixes: 10.6 s of CPU in 9 s.
pub fn inode_switch_storm() -> Fixture {
    machine("6.12.43+deb13-amd64", 2, 10.6, 9)
}

/// The same on 6.8.0-31, several workers fighting for one lock: 17.4 s of CPU.
pub fn inode_switch_storm_published() -> Fixture {
    machine("6.8.0-31-generic", 4, 17.4, 10)
}

/// The same on 6.1.176, partly fixed: 0.20 s.
pub fn inode_switch_6_1() -> Fixture {
    machine("6.1.176-1-amd64", 2, 0.2, 9)
}

/// The same on 6.12.117, which has the fixes: 0.11 s.
pub fn inode_switch_fixed() -> Fixture {
    machine("6.12.117+deb13-amd64", 1, 0.11, 9)
}
