// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waits at a limit of reads that are short one by one: a program that makes a few reads a second, each of which waits for less than a
//! person notices, gets nearly all of its work done. No counter has the number of waits. It is at most the number of calls, and about the
//! number of requests that the bytes of the program make. Waits for writes are not judged here: one sync waits for many calls and requests,
//! and the kernel does not count all of these waits.

use super::AtLimit;
use crate::diagnose::derived::Derived;
use crate::diagnose::waiting::Waiter;
use crate::diagnose::writer::{self, Period};
use floodline_record::id::{Entity, EntityId};
use floodline_record::units::Nanos;

/// Mean length of a wait from which it is noticed, seconds.
const NOTICED_S: f64 = 0.1;
/// Part of the window from which short waits hold a program back.
const HOLDS_BACK: f64 = 0.3;
/// Samples in a row that show a process asleep, from which one of its waits is long.
const IN_A_ROW: usize = 3;

/// Whether each of these waited for little of the window, in waits too short to be noticed. False where this is not known.
pub(super) fn are_brief(derived: &Derived<'_>, at: &AtLimit<'_>, waiters: &[Waiter]) -> bool {
    let Some(request) = mean_read(derived, at).filter(|_| !at.is_write) else { return false };
    waiters.iter().all(|waiter| is_brief(derived, waiter, request))
}

fn is_brief(derived: &Derived<'_>, waiter: &Waiter, request: f64) -> bool {
    let window = derived.window;
    let Some(waited) = waiter.by_states().seconds.filter(|waited| *waited < HOLDS_BACK * derived.seconds) else {
        return false;
    };
    let is_it =
        |id: &EntityId| matches!(window.entities.get(id), Some(Entity::Process { pid, .. }) if *pid == waiter.pid);
    let mut its = window.processes.iter().filter(|(id, _)| is_it(id));
    // A process id may have been used again.
    let Some((id, span)) = its.next().filter(|_| its.next().is_none()) else { return false };
    let Some(row) = writer::counted(window, Period::Window, *id, span) else { return false };
    let Some((calls, bytes)) = row.syscr.zip(row.read_bytes) else { return false };
    let waits = (calls.0 as f64).min(bytes.0 as f64 / request);
    let is_long_once = waiter.longest_s.is_some_and(|longest| longest >= NOTICED_S) || slept_in_a_row(derived, *id);
    waits > 0.0 && waited / waits < NOTICED_S && !is_long_once
}

/// Mean size of a read of the limited cgroup on the device, bytes.
fn mean_read(derived: &Derived<'_>, at: &AtLimit<'_>) -> Option<f64> {
    let span = derived.window.cgroup_io.get(&at.id)?;
    let (bytes, reads) = (span.growth.rbytes?, span.growth.rios?);
    (bytes.0 > 0 && reads.0 > 0).then(|| bytes.0 as f64 / reads.0 as f64)
}

/// Whether samples in a row show a process asleep.
fn slept_in_a_row(derived: &Derived<'_>, id: EntityId) -> bool {
    let window = derived.window;
    let place = |at: &Nanos| window.host_series.partition_point(|(time, _)| time.monotonic < *at);
    let slept: Vec<usize> = window.asleep.get(&id).into_iter().flatten().map(place).collect();
    slept.windows(IN_A_ROW).any(|row| row.windows(2).all(|pair| pair[0] + 1 == pair[1]))
}
