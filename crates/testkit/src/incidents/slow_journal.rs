// SPDX-License-Identifier: MIT OR Apache-2.0
//! The journal on a slow disk: journald dirties 9 KB per message of 100 bytes in scattered pages, and
//! every half minute some 250 of them go to a disk that does 30 a second. Re-enacted on 6.1 and 6.12.

use crate::{Fixture, mib, secs};
use floodline_record::units::{Bytes, BytesPerSecond, Count, Pages};

/// Seconds of the burst in each period of 38 s: 250 writes at 30 a second.
const BURST_S: f64 = 8.3;
const PERIOD_S: f64 = 38.3;
/// Seconds until the first burst.
const QUIET_S: f64 = 30.0;

fn bursting(t: f64) -> f64 {
    (t / PERIOD_S).floor() * BURST_S + (t % PERIOD_S - QUIET_S).max(0.0)
}

/// Ten messages a second on a disk of 30 IO/s; a mail-like writer waits up to 8.7 s for its fsync.
pub fn slow_journal() -> Fixture {
    machine()
        .host(|t, row| {
            let pages = 22.0 * (t - bursting(t) * PERIOD_S / BURST_S).max(0.0);
            row.nr_dirty = Some(Pages(300 + pages as u64));
            row.nr_dirtied = Some(Pages(40_000_000 + (22.0 * t) as u64));
            row.nr_written = Some(Pages(38_000_000 + (100.0 * bursting(t)) as u64));
            row.psi_io_some = Some(secs(900.0 + 0.004 * t + 0.97 * bursting(t)));
            row.psi_io_full = Some(secs(700.0 + 0.9 * bursting(t)));
        })
        .disk("sda", |t, row| {
            let busy = bursting(t);
            row.writes = Some(Count(9_000_000 + (30.0 * busy + 1.8 * t) as u64));
            row.written = Some(Bytes(mib(160_000.0) + (30.0 * busy * 12_500.0 + 1.8 * t * 12_000.0) as u64));
            row.write_time = Some(secs(9_000.0 + 30.0 * busy * 1.25 + 0.02 * t));
            row.io_time = Some(secs(6_000.0 + busy + 0.06 * t));
            row.weighted_io_time = Some(secs(10_000.0 + busy * 38.0 + 0.06 * t));
        })
        .process("systemd-journal", 300, "/system.slice/systemd-journald.service", |t, row| {
            // 4.08 MB in 45 s; it writes through maps, so wchar stands still.
            row.write_bytes = Some(Bytes(mib(120.0) + (90_700.0 * t) as u64));
            row.minflt = Some(Count(20_000 + (22.0 * t) as u64));
        })
}

/// The same with `Storage=volatile`.
pub fn slow_journal_volatile() -> Fixture {
    machine()
        .facts(|facts| {
            if let Some(journald) = &mut facts.journald {
                journald.storage = "volatile".into();
                journald.persistent = Some(false);
            }
        })
        .process("systemd-journal", 300, "/system.slice/systemd-journald.service", |_, row| {
            row.write_bytes = Some(Bytes(mib(120.0)));
        })
}

fn machine() -> Fixture {
    Fixture::healthy()
        .kernel("6.1.0-18-amd64")
        .facts(|facts| {
            facts.devices.iter_mut().for_each(|device| device.rotational = Some(true));
        })
        .bdi("8:0", |_, row| row.write_bandwidth = Some(BytesPerSecond(600_000)))
        .disk("sda", |t, row| {
            row.writes = Some(Count(9_000_000 + (3.0 * t) as u64));
            row.written = Some(Bytes(mib(160_000.0) + (22_000.0 * t) as u64));
            row.write_time = Some(secs(9_000.0 + 0.006 * t));
            row.io_time = Some(secs(6_000.0 + 0.06 * t));
            row.weighted_io_time = Some(secs(10_000.0 + 0.06 * t));
        })
        .process("maildrop", 700, "/system.slice/postfix.service", |t, row| {
            row.wchar = Some(Bytes(mib(40.0) + (8_192.0 * t) as u64));
            row.write_bytes = Some(Bytes(mib(60.0) + (14_000.0 * t) as u64));
        })
        .seconds(80)
}
