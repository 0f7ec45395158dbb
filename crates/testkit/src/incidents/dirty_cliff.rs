// SPDX-License-Identifier: MIT OR Apache-2.0
//! The dirty cliff: dirty data rise for an expiry period, then go to a slow disk at once. Re-enacted in
//! a guest with 4 GB and a 42 MB/s disk, and as published for a server with 128 GB at 20/10.

use crate::{Fixture, mib, mib_pages, secs};
use floodline_record::units::{Bytes, BytesPerSecond, Count, Pages};

/// A saw tooth of dirty data: rises for `rise` seconds, then drains for `drain` seconds.
#[derive(Clone, Copy)]
struct Tooth {
    rise_s: f64,
    drain_s: f64,
    peak_mib: f64,
    bandwidth_mib: f64,
}

impl Tooth {
    fn period(self) -> f64 {
        self.rise_s + self.drain_s
    }

    /// Dirty MiB at second `t`.
    fn dirty(self, t: f64) -> f64 {
        let at = t % self.period();
        if at < self.rise_s {
            self.peak_mib * at / self.rise_s
        } else {
            self.peak_mib * (1.0 - (at - self.rise_s) / self.drain_s)
        }
    }

    /// Seconds of draining until second `t`.
    fn drained(self, t: f64) -> f64 {
        let whole = (t / self.period()).floor() * self.drain_s;
        whole + (t % self.period() - self.rise_s).max(0.0)
    }

    fn dirtied(self, t: f64) -> f64 {
        self.peak_mib / self.rise_s * t
    }
}

fn with_tooth(fixture: Fixture, tooth: Tooth) -> Fixture {
    fixture
        .host(move |t, row| {
            row.nr_dirty = Some(mib_pages(tooth.dirty(t)));
            row.nr_dirtied = Some(Pages(40_000_000 + mib_pages(tooth.dirtied(t)).0));
            row.nr_written = Some(Pages(38_000_000 + mib_pages(tooth.drained(t) * tooth.bandwidth_mib).0));
            row.psi_io_some = Some(secs(900.0 + 0.004 * t + 0.93 * tooth.drained(t)));
            row.psi_io_full = Some(secs(700.0 + 0.8 * tooth.drained(t)));
            row.procs_blocked = Some(Count(if tooth.drained(t) > 0.0 { 3 } else { 0 }));
        })
        .disk("sda", move |t, row| {
            let busy = tooth.drained(t);
            row.written = Some(Bytes(mib(160_000.0 + busy * tooth.bandwidth_mib + 0.2 * t)));
            // Half a MiB a write in the burst, journal commits otherwise.
            row.writes = Some(Count(9_000_000 + (busy * tooth.bandwidth_mib * 2.0 + 5.0 * t) as u64));
            row.write_time = Some(secs(9_000.0 + busy * tooth.bandwidth_mib * 2.0 * 0.7 + 0.02 * t));
            row.io_time = Some(secs(6_000.0 + busy + 0.02 * t));
            row.weighted_io_time = Some(secs(10_000.0 + busy * 55.0 + 0.03 * t));
        })
        .process("copier", 900, "/user.slice/copier.scope", move |t, row| {
            row.wchar = Some(Bytes(mib(10.0 + tooth.dirtied(t))));
            row.write_bytes = Some(Bytes(mib(10.0 + tooth.dirtied(t))));
        })
}

/// Re-enacted: a writer of 10 MB/s, ext4, default ratios. Stalls of up to 3.3 s every 37 s.
pub fn dirty_cliff() -> Fixture {
    let tooth = Tooth { rise_s: 30.0, drain_s: 7.0, peak_mib: 297.5, bandwidth_mib: 42.5 };
    let fixture = Fixture::healthy()
        .memory_gib(4.0)
        .bdi("8:0", |_, row| row.write_bandwidth = Some(BytesPerSecond(mib(38.0))))
        .seconds(80);
    with_tooth(fixture, tooth)
}

/// The same after `vm.dirty_bytes` = 128 MiB, `vm.dirty_background_bytes` = 32 MiB: flat.
pub fn dirty_cliff_cured() -> Fixture {
    dirty_cliff()
        .settings((0, mib(128.0), 0, mib(32.0)))
        .host(|t, row| {
            row.nr_dirty = Some(mib_pages(24.0 + (t % 3.0) * 2.0));
            row.nr_written = Some(Pages(38_000_000 + mib_pages(10.0 * t).0));
            row.psi_io_some = Some(secs(900.0 + 0.02 * t));
            row.psi_io_full = Some(secs(700.0 + 0.01 * t));
            row.procs_blocked = Some(Count(0));
        })
        .disk("sda", |t, row| {
            row.written = Some(Bytes(mib(160_000.0 + 10.0 * t)));
            row.writes = Some(Count(9_000_000 + (25.0 * t) as u64));
            row.write_time = Some(secs(9_000.0 + 25.0 * 0.02 * t));
            row.io_time = Some(secs(6_000.0 + 0.26 * t));
            row.weighted_io_time = Some(secs(10_000.0 + 0.5 * t));
        })
}

/// Published: 128 GB, 20/10, dirty data near 11.8 GB before each freeze of 2–3 s. The array's speed was
/// not published: its cure, 256 MiB, is three quarters of a second of about 350 MB/s.
pub fn dirty_cliff_published() -> Fixture {
    let tooth = Tooth { rise_s: 28.0, drain_s: 34.0, peak_mib: 11_253.0, bandwidth_mib: 334.0 };
    let fixture = Fixture::healthy()
        .kernel("6.1.0-18-amd64")
        .memory_gib(119.2)
        .bdi("8:0", |_, row| row.write_bandwidth = Some(BytesPerSecond(mib(310.0))))
        .seconds(62);
    with_tooth(fixture, tooth)
}
