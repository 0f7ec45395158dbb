// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the tasks of a scenario wait for each other: barriers, the end of another task, and the start of all.

use super::Hand;
use crate::world::World;
use std::collections::BTreeMap;

/// Where tasks meet.
#[derive(Debug, Default)]
pub(crate) struct Meeting {
    /// Copies of each task that have not ended.
    pub(crate) live: BTreeMap<String, u64>,
    /// How many come to each barrier, how many have come, and how often it opened.
    pub(crate) barriers: BTreeMap<String, (u64, u64, u64)>,
    /// Tasks in their setup.
    pub(crate) unprepared: u64,
    pub(crate) changed: crate::engine::Waiters,
    /// When the workload's clock started.
    pub(crate) started: Option<u64>,
}

impl Meeting {
    fn is_over(&self, task: &str) -> bool {
        self.live.get(task).is_none_or(|live| *live == 0)
    }

    fn is_waiting(&self, name: &str, round: u64) -> bool {
        self.barriers.get(name).is_some_and(|(.., opened)| *opened == round)
    }
}

impl World {
    fn meeting_arrive(&mut self, name: &str) -> u64 {
        let Some((parties, come, opened)) = self.meeting.barriers.get_mut(name) else { return u64::MAX };
        let round = *opened;
        *come += 1;
        if *come >= *parties {
            (*come, *opened) = (0, round + 1);
            let waiting = self.meeting.changed.take();
            self.wake_all(waiting);
        }
        round
    }
}

impl Hand {
    pub(super) async fn wait_for(&self, task: &str) {
        while !self.is_stopped() && !self.sim.w().meeting.is_over(task) {
            self.sim.wait("the end of another task", |world| &mut world.meeting.changed).await;
        }
    }

    pub(super) async fn barrier(&self, name: &str) {
        let round = self.sim.w().meeting_arrive(name);
        while self.sim.w().meeting.is_waiting(name, round) {
            self.sim.wait("others at a barrier", |world| &mut world.meeting.changed).await;
        }
    }
}
