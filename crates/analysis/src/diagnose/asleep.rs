// SPDX-License-Identifier: MIT OR Apache-2.0
//! How often processes were seen in an uninterruptible sleep (state `D`): the share of samples estimates the share of time. Says
//! nothing about what they waited for.

use super::waiting::Waiter;
use floodline_record::id::Entity;
use floodline_record::window::Window;
use std::collections::BTreeMap;

/// Samples with a process from which its states tell how much of the time it slept.
const OFTEN_READ: usize = 10;

/// Whether two or more of these processes slept in an uninterruptible sleep in at least half of the samples that have them, as
/// tasks do that wait for storage again and again.
pub fn are_mostly_asleep(window: &Window, waiters: &[Waiter]) -> bool {
    // By process id, in one pass: a host has thousands of processes, and most of them may wait.
    let mut seen: BTreeMap<u32, (usize, usize)> = waiters.iter().map(|waiter| (waiter.pid, (0, 0))).collect();
    for (id, span) in &window.processes {
        let Some(Entity::Process { pid, .. }) = window.entities.get(id) else { continue };
        if let Some((asleep, readings)) = seen.get_mut(pid) {
            *asleep += window.asleep.get(id).map_or(0, Vec::len);
            *readings += span.readings as usize;
        }
    }
    let mostly = seen.values().filter(|(asleep, readings)| *readings >= OFTEN_READ && 2 * asleep >= *readings);
    mostly.count() >= 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::waiting::waiters;
    use floodline_record::units::Count;
    use floodline_testkit::Fixture;

    /// Two processes that are asleep in the samples of this many of each ten seconds.
    fn sessions(asleep: [f64; 2], seconds: u32) -> bool {
        let host = asleep.into_iter().zip(810..).fold(Fixture::healthy().seconds(seconds), |host, (of_ten, pid)| {
            host.process("postgres", pid, "/", move |t, row| {
                row.state = Some(Count(u64::from(if t % 10.0 < of_ten { b'D' } else { b'S' })));
            })
        });
        let window = host.window();
        are_mostly_asleep(&window, &waiters(&window).unwrap_or_default())
    }

    #[test]
    fn two_processes_that_sleep_half_of_the_time_are() {
        assert!(sessions([7.0, 6.0], 20));
        assert!(!sessions([7.0, 2.0], 20), "one of them rarely");
        assert!(!sessions([7.0, 6.0], 6), "too few samples");
    }
}
