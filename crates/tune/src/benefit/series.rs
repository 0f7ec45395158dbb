// SPDX-License-Identifier: MIT OR Apache-2.0
//! A recording as a series: for each interval between two samples its length, the bytes that were dirtied, and the
//! seconds in which a task waited for I/O.

use floodline_record::units::Nanos;
use floodline_record::window::{Window, step};

/// Page size where a recording does not say it.
const PAGE: u64 = 4096;

/// One interval between two samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Length, in seconds.
    pub seconds: f64,
    /// Bytes dirtied.
    pub dirtied_bytes: f64,
    /// Seconds in which a task waited for I/O (PSI `io`, `some`).
    pub stall_s: f64,
}

/// The series of a recording. Intervals whose counters were not read are left out.
pub fn intervals(window: &Window) -> Vec<Interval> {
    let of = |pair: &[_]| {
        let [(from, before), (to, after)]: &[(floodline_record::sample::SampleTime, floodline_record::sample::HostRow);
             2] = pair.try_into().ok()?;
        let seconds = Nanos(to.monotonic.0.checked_sub(from.monotonic.0)?).as_secs_f64();
        let dirtied = step(before.nr_dirtied?.0, after.nr_dirtied?.0).saturating_mul(PAGE);
        let stalled = Nanos(step(before.psi_io_some?.0, after.psi_io_some?.0)).as_secs_f64();
        (seconds > 0.0).then(|| Interval { seconds, dirtied_bytes: dirtied as f64, stall_s: stalled.min(seconds) })
    };
    window.host_series.windows(2).filter_map(of).collect()
}
