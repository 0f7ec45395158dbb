// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers about unmounts that waited, computed again from the states of their processes or from what the tasks of a workload measured.

use super::number;
use super::raw::{Raw, over};
use floodline_analysis::report::{Evidence, Finding};
use floodline_record::id::Entity;
use floodline_record::programs::UNMOUNTERS;
use floodline_record::record::What;
use floodline_record::traced::waits::Operation;

/// Nanoseconds.
const SECOND: u64 = 1_000_000_000;

impl Raw {
    /// Begin and end of each wait of a second or more, nanoseconds: unmounts asleep in every sample that has them, or else those that
    /// were measured.
    fn unmounts(&self) -> Vec<(u64, u64)> {
        let is_umount =
            |entity: &Entity| matches!(entity, Entity::Process { comm, .. } if UNMOUNTERS.contains(&comm.as_bytes()));
        let ids = self.entities.iter().filter(|(_, entity)| is_umount(entity)).map(|(id, _)| *id);
        let asleep = ids.filter_map(|id| {
            let rows = self.samples.iter().filter_map(|one| Some((one.time.monotonic.0, one.processes.get(id)?)));
            let rows: Vec<_> = rows.collect();
            let states: Vec<u64> = rows.iter().filter_map(|(_, row)| row.state).map(|state| state.0).collect();
            let sleeps = !states.is_empty() && states.iter().all(|state| *state == u64::from(b'D'));
            sleeps.then_some((rows.first()?.0, rows.last()?.0))
        });
        let is_long = |(from, to): &(u64, u64)| to - from >= SECOND;
        let asleep: Vec<(u64, u64)> = asleep.filter(is_long).collect();
        if !asleep.is_empty() {
            return asleep;
        }
        let measured = self.traced.iter().filter_map(|(at, what)| match what {
            What::TaskStall { operation, lasted, .. } if *operation == *"umount" => Some((at.0, at.0 + lasted.0)),
            _ => None,
        });
        measured.filter(is_long).collect()
    }

    /// Part of an interval with a request in flight, by the time that the kernel counted or by the requests.
    fn in_use(&self, at: usize) -> f64 {
        if self.is_held(at) { 1.0 } else { self.busy(at).max(self.queue(at)).min(1.0) }
    }
}

/// Computes a number about an unmount that waited; `None` if it is about something else.
pub(crate) fn again(raw: &Raw, finding: &Finding, evidence: &Evidence) -> Option<f64> {
    if finding.rule != "overlay-umount-flush" {
        return None;
    }
    let waits = raw.unmounts();
    let traced =
        finding.evidence.iter().find(|one| one.name.starts_with("Sync of the upper filesystem, ")).and_then(number);
    Some(match evidence.name.as_str() {
        // A trace may have more of them, each with a sync of its filesystem.
        "umount asleep in every sample" => {
            let is_long = |what: &What| matches!(what, What::SlowSync(wait) if wait.operation == Operation::SyncFilesystem && wait.lasted.0 >= SECOND);
            let more = raw.traced.iter().filter(|(_, what)| is_long(what)).count();
            number(evidence)?.clamp(waits.len() as f64, (waits.len() + more) as f64)
        }
        "Longest of them, at least" => {
            let longest = waits.iter().map(|(from, to)| (to - from) as f64 / 1e9).fold(0.0, f64::max);
            longest.max(traced.unwrap_or(0.0))
        }
        name if name.ends_with(" busy") => {
            let end = |at: &usize| raw.samples[at + 1].time.monotonic.0;
            let is_in = |at: &usize| waits.iter().any(|(from, to)| end(at) > *from && end(at) <= *to);
            let during: Vec<usize> = raw.intervals().filter(is_in).collect();
            over(raw.sum(&during, |at| raw.in_use(at) * raw.length(at)), raw.sum(&during, |at| raw.length(at)))
        }
        _ => return None,
    })
}
