// SPDX-License-Identifier: MIT OR Apache-2.0
//! The clocks of samples, and what this process used.

use crate::board::Usage;
use floodline_record::sample::SampleTime;
use floodline_record::units::Nanos;
use rustix::time::{ClockId, clock_gettime};

/// The present moment on the clocks of samples: one that goes on while the machine sleeps, and the wall clock.
pub fn now() -> SampleTime {
    SampleTime { monotonic: read(ClockId::Boottime), wall: read(ClockId::Realtime) }
}

/// Time that the machine was suspended since it started: one of its clocks goes on then, and one stops.
pub(crate) fn suspended() -> Nanos {
    let awake = read(ClockId::Monotonic);
    Nanos(read(ClockId::Boottime).0.saturating_sub(awake.0))
}

fn read(clock: ClockId) -> Nanos {
    let at = clock_gettime(clock);
    let seconds = u64::try_from(at.tv_sec).unwrap_or(0);
    Nanos(seconds.saturating_mul(Nanos::SECOND.0).saturating_add(u64::try_from(at.tv_nsec).unwrap_or(0)))
}

/// CPU time and memory of this process.
pub(crate) fn usage() -> Usage {
    let pages = std::fs::read_to_string("/proc/self/statm").ok();
    let pages = pages.and_then(|text| text.split(' ').nth(1)?.parse::<u64>().ok());
    let memory = pages.map(|pages| pages.saturating_mul(rustix::param::page_size() as u64));
    Usage { cpu: read(ClockId::ProcessCPUTime), memory }
}
