// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether a process may have called a sync that only the data suggests. The caller sleeps uninterruptibly until the data is written,
//! so each sample in that time finds a process in state D. Where two samples or more find none, the flusher wrote the data by itself:
//! above the part of the background threshold of a wb, or because an inode was old as a whole. The state of a process is that of its
//! first thread, so callers of disks below overlays, which are threads of a container runtime, are not looked for.

use super::asked::Asked;
use floodline_record::id::{DevId, Entity};
use floodline_record::units::Nanos;
use floodline_record::window::Window;
use std::collections::BTreeSet;

/// Fewest samples during a sync that would find its caller.
const SAMPLES_MIN: usize = 2;

/// Times of samples at which a process of user space was in state D. `None` where the recording has no states.
pub(super) struct Sleeping {
    samples: Vec<f64>,
    asleep: BTreeSet<Nanos>,
    start: Nanos,
}

impl Sleeping {
    pub(super) fn of(window: &Window) -> Option<Sleeping> {
        let start = window.first_at?.monotonic;
        let is_user = |id| matches!(window.entities.get(id), Some(Entity::Process { kthread: false, .. }));
        let has_states = window.processes.iter().any(|(id, span)| is_user(id) && span.last.state.is_some());
        let asleep = window.asleep.iter().filter(|(id, _)| is_user(id)).flat_map(|(_, times)| times.iter().copied());
        let seconds = |at: Nanos| Nanos(at.0.saturating_sub(start.0)).as_secs_f64();
        let samples = window.host_series.iter().map(|(time, _)| seconds(time.monotonic)).collect();
        has_states.then(|| Sleeping { samples, asleep: asleep.collect(), start })
    }

    /// Whether several samples during a sync find no process asleep. The first and the last of them may be taken before its begin and
    /// after its end: the samples bound both.
    pub(super) fn rules_out(&self, asked: &Asked<'_>) -> bool {
        let (from, to) = (asked.at + 1e-3, asked.at + asked.seconds - 1e-3);
        let number = self.samples.iter().filter(|at| **at > from && **at < to).count();
        let nanos = |at: f64| Nanos(self.start.0.saturating_add((at.max(0.0) * 1e9) as u64));
        number >= SAMPLES_MIN && self.asleep.range(nanos(from)..nanos(to)).next().is_none()
    }
}

/// Removes the syncs without a caller, but for those of disks with `uppers` of overlays.
pub(super) fn retain_called(window: &Window, asked: &mut Vec<Asked<'_>>, uppers: &BTreeSet<DevId>) {
    let Some(sleeping) = Sleeping::of(window) else { return };
    asked.retain(|one| uppers.contains(&one.place.dev) || !sleeping.rules_out(one));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::derive::machine::Place;
    use floodline_record::units::Count;
    use floodline_testkit::Fixture;

    #[test]
    fn a_sync_during_which_no_process_sleeps_had_no_caller() {
        let place = Place::of_disk("sda");
        let told = |asleep: std::ops::Range<u64>, seconds: f64, uppers: &[DevId]| {
            let is_in = move |t: f64| asleep.contains(&(t as u64));
            let state = move |t| Some(Count(u64::from(if is_in(t) { b'D' } else { b'S' })));
            let window =
                Fixture::healthy().seconds(20).process("db", 900, "/", move |t, row| row.state = state(t)).window();
            let mut asked = vec![Asked { at: 10.0, seconds, place: &place }];
            retain_called(&window, &mut asked, &uppers.iter().copied().collect());
            asked.len()
        };
        assert_eq!(told(0..0, 5.0, &[]), 0, "no sample finds a caller");
        assert_eq!(told(11..14, 5.0, &[]), 1);
        assert_eq!(told(2..6, 5.0, &[]), 0, "a process that slept before it is no caller");
        assert_eq!(told(0..0, 0.5, &[]), 1, "no two samples are within it");
        assert_eq!(told(0..0, 5.0, &[place.dev]), 1, "a thread of a container runtime may be the caller");
    }
}
