// SPDX-License-Identifier: MIT OR Apache-2.0
//! Points where the tasks of a scenario wait for each other: barriers, the end of another task, and the common start.

use super::Hand;
use floodline_record::record::{Event, What};
use floodline_record::units::Nanos;
use floodline_scenario::program::Barriers;
use std::collections::BTreeMap;

/// State of the points where tasks wait for each other.
#[derive(Debug, Default)]
pub(crate) struct Meeting {
    /// Number of copies of each task that have not ended.
    pub(crate) live: BTreeMap<String, u64>,
    pub(crate) barriers: Barriers,
    /// Number of tasks in their setup.
    pub(crate) unprepared: u64,
    pub(crate) changed: crate::engine::Waiters,
    /// Time at which the workload's clock started.
    pub(crate) started: Option<u64>,
    /// Number of notes in the recording.
    notes: u64,
}

/// Notes of one run: each stays in memory and in the recording.
const NOTES_MAX: u64 = 100_000;

impl Meeting {
    fn is_over(&self, task: &str) -> bool {
        self.live.get(task).is_none_or(|live| *live == 0)
    }
}

impl Hand<'_> {
    pub(super) async fn wait_for(&self, task: &str) {
        while !self.is_stopped() && !self.sim.w().meeting.is_over(task) {
            self.sim.wait("the end of another task", |world| &mut world.meeting.changed).await;
        }
    }

    /// Puts a remark into the recording.
    pub(super) fn note(&self, text: &str) -> Result<(), String> {
        let mut world = self.sim.w();
        world.meeting.notes += 1;
        if world.meeting.notes > NOTES_MAX {
            return Err(format!(
                "more than {NOTES_MAX} notes in one run; write notes outside of a repeat, or fewer rounds"
            ));
        }
        let at = Nanos(world.now);
        world.events.push(Event { at, what: What::Note { text: text.into() } });
        Ok(())
    }

    pub(super) async fn barrier(&self, name: &str) {
        let round = {
            let mut world = self.sim.w();
            let round = world.meeting.barriers.arrive(self.number, name);
            if world.meeting.barriers.round(name) > round {
                let waiting = world.meeting.changed.take();
                world.wake_all(waiting);
            }
            round
        };
        while self.sim.w().meeting.barriers.round(name) == round {
            self.sim.wait("others at a barrier", |world| &mut world.meeting.changed).await;
        }
    }
}
