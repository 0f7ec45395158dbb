// SPDX-License-Identifier: MIT OR Apache-2.0
//! The last minute, for the rules. A window only grows; so there are two, half a minute apart, and the older one of them,
//! which covers 30 to 60 seconds, is the one that is judged. What is gone from the machine is forgotten with each new one.

use floodline_analysis::diagnose::diagnose;
use floodline_analysis::report::Report;
use floodline_record::entities::Entities;
use floodline_record::gap::Gap;
use floodline_record::id::{Entity, EntityId};
use floodline_record::record::{Record, Sink};
use floodline_record::sample::Sample;
use floodline_record::window::Window;

/// Length of a window, seconds.
const LENGTH_S: f64 = 60.0;

/// Gaps that are kept; a machine that goes on reporting new ones must not fill the memory.
const GAPS_MAX: usize = 1000;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Minute {
    older: Window,
    newer: Option<Window>,
}

impl Minute {
    /// Takes a record.
    pub(crate) fn record(&mut self, record: &Record) {
        let Ok(()) = self.older.record(record);
        if let Some(newer) = &mut self.newer {
            let Ok(()) = newer.record(record);
        }
        if let Record::Sample(sample) = record {
            self.turn(sample, record);
        }
    }

    fn turn(&mut self, sample: &Sample, record: &Record) {
        if self.newer.is_none() && self.older.seconds() >= LENGTH_S / 2.0 {
            let mut window = begin(&self.older, sample);
            let Ok(()) = window.record(record);
            self.newer = Some(window);
        }
        if self.older.seconds() >= LENGTH_S
            && let Some(newer) = self.newer.take()
        {
            self.older = newer;
        }
    }

    /// The answers of the rules about it.
    pub(crate) fn judge(&self) -> Report {
        diagnose(&self.older, None)
    }

    /// What the ids stand for.
    pub(crate) fn window(&self) -> &Window {
        &self.older
    }
}

/// Returns a window without samples, with the host facts and the entities that are in `sample`.
fn begin(before: &Window, sample: &Sample) -> Window {
    let is_live = |id: EntityId, entity: &Entity| match entity {
        Entity::Process { .. } => sample.processes.get(id).is_some(),
        Entity::Cgroup { .. } => sample.cgroups.get(id).is_some() || !sample.cgroups.was_read(),
        Entity::CgroupIo { cgroup, .. } => sample.cgroups.get(*cgroup).is_some(),
        Entity::Wb { .. } => sample.wbs.get(id).is_some(),
        Entity::Zone { .. } | Entity::Disk { .. } | Entity::Bdi { .. } => true,
    };
    let live = before.entities.iter().filter(|(id, entity)| is_live(**id, entity));
    let entities: Entities = live.map(|(id, entity)| (*id, entity.clone())).collect();
    let is_known = |gap: &&Gap| gap.entity.is_none_or(|id| entities.contains_key(&id));
    Window {
        facts: before.facts.clone(),
        gaps: before.gaps.iter().filter(is_known).take(GAPS_MAX).cloned().collect(),
        traced: before.traced.clone(),
        cgroup_limits: before
            .cgroup_limits
            .iter()
            .filter(|(id, _)| entities.contains_key(id))
            .map(|(id, span)| (*id, span.clone()))
            .collect(),
        zones: before.zones.clone(),
        entities,
        ..Window::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_testkit::Fixture;

    #[test]
    fn the_window_covers_the_last_minute_and_no_more() {
        let mut minute = Minute::default();
        let mut seconds = Vec::new();
        for record in Fixture::healthy().seconds(300).records() {
            minute.record(&record);
            if matches!(record, Record::Sample(_)) {
                seconds.push(minute.window().seconds());
            }
        }
        assert!(seconds.iter().all(|seconds| *seconds <= 60.0));
        assert!(seconds.iter().skip(60).all(|seconds| *seconds >= 29.0), "{seconds:?}");
        assert!(minute.window().facts.is_some() && !minute.window().entities.is_empty());
        assert!(minute.judge().not_checked.iter().all(|rule| rule.gaps.iter().all(|gap| gap.kind != "too_short")));
    }

    #[test]
    fn processes_and_cgroups_that_are_gone_are_forgotten() {
        let fixture = Fixture::healthy().seconds(100);
        let mut minute = Minute::default();
        for mut record in fixture.records() {
            if let Record::Sample(sample) = &mut record
                && minute.window().samples > 10
            {
                sample.processes = floodline_record::sample::Table::read(Vec::new());
                sample.cgroups = floodline_record::sample::Table::read(Vec::new());
            }
            minute.record(&record);
        }
        let is_gone = |entity: &Entity| !matches!(entity, Entity::Process { .. } | Entity::Cgroup { .. });
        assert!(minute.window().entities.values().all(is_gone));
    }
}
