// SPDX-License-Identifier: MIT OR Apache-2.0
//! How often processes were seen in an uninterruptible sleep (state `D`): the part of its samples is the part of the time. Says
//! nothing about what they waited for.

use super::waiting::Waiter;
use floodline_record::id::{Entity, EntityId};
use floodline_record::window::Window;

/// Samples with a process from which its states tell how much of the time it slept.
const OFTEN_READ: usize = 10;

/// Whether two or more of these processes slept in an uninterruptible sleep in at least half of the samples that have them, as
/// tasks do that wait for storage again and again.
pub fn are_mostly_asleep(window: &Window, waiters: &[Waiter]) -> bool {
    let is_mostly = |waiter: &&Waiter| {
        let of_it = |(id, entity): (&EntityId, &Entity)| {
            matches!(entity, Entity::Process { pid, .. } if *pid == waiter.pid).then_some(*id)
        };
        let spans = window.entities.iter().filter_map(of_it).filter_map(|id| {
            let readings = window.processes.get(&id)?.readings as usize;
            Some((window.asleep.get(&id).map_or(0, Vec::len), readings))
        });
        let (asleep, readings) = spans.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        readings >= OFTEN_READ && 2 * asleep >= readings
    };
    waiters.iter().filter(is_mostly).count() >= 2
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
