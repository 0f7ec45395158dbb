// SPDX-License-Identifier: MIT OR Apache-2.0
//! The clock of the samples, and schedules that do not drift: the n-th operation is due at the start plus
//! n periods, however late the one before was.

use floodline_record::units::Nanos;
use rustix::time::{ClockId, clock_gettime};

/// Now, on the clock of the samples (CLOCK_BOOTTIME).
pub fn now() -> Nanos {
    let now = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    Nanos(seconds.saturating_mul(Nanos::SECOND.0).saturating_add(u64::try_from(now.tv_nsec).unwrap_or(0)))
}

/// Returns the moment `by` after `from`, saturating.
pub(super) fn later(from: Nanos, by: Nanos) -> Nanos {
    Nanos(from.0.saturating_add(by.0))
}

/// Returns the time from one moment to another; 0 if `to` is earlier.
pub(super) fn until(from: Nanos, to: Nanos) -> Nanos {
    Nanos(to.0.saturating_sub(from.0))
}
