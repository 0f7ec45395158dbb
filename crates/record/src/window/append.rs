// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two windows that follow each other, as one: what folding all their samples into one window gives, without folding
//! any sample again. Not the fold itself.

use super::{Span, Spans, Window, fold, limited};
use crate::id::EntityId;
use crate::metric::{COUNTER_MAX, MetricKind, Row, step};
use crate::sample::{Sample, Table};
use crate::units::Nanos;
use std::collections::BTreeMap;

impl Window {
    /// Appends the window that follows and begins with the last sample of this one, `shared`, which counts once. Leaves
    /// out limits of cgroups and zones, which [`Window::begin_again`] hands on ([`Window::push_kept`]), and holes.
    pub fn append(&mut self, next: &Window, shared: &Sample) {
        self.lookup.take();
        self.facts.clone_from(&next.facts);
        self.entities.extend(next.entities.iter().map(|(id, entity)| (*id, entity.clone())));
        self.last_at = next.last_at.or(self.last_at);
        self.samples = self.samples.saturating_add(next.samples.saturating_sub(1));
        self.host.append(&next.host, Some(&shared.host));
        self.host_series.extend(next.host_series.iter().skip(1).cloned());
        append_series(&mut self.disk_series, &next.disk_series, &shared.disks);
        append_series(&mut self.bdi_series, &next.bdi_series, &shared.bdis);
        append(&mut self.disks, &next.disks, &shared.disks);
        append(&mut self.bdis, &next.bdis, &shared.bdis);
        append(&mut self.wbs, &next.wbs, &shared.wbs);
        append(&mut self.cgroups, &next.cgroups, &shared.cgroups);
        append(&mut self.cgroup_io, &next.cgroup_io, &shared.cgroup_io);
        limited::append(&mut self.limit_runs, &next.limit_runs);
        limited::append_readings(&mut self.limited_io, &next.limited_io, shared.time.monotonic);
        self.foreign.append(&next.foreign);
        append(&mut self.processes, &next.processes, &shared.processes);
        for (id, times) in &next.asleep {
            let later = times.iter().filter(|at| **at > shared.time.monotonic);
            self.asleep.entry(*id).or_default().extend(later);
        }
        for (id, stood) in &next.stood {
            let all = self.stood.entry(*id).or_default();
            *all = Nanos(all.0.saturating_add(stood.0));
        }
        self.stat_reads.append(&next.stat_reads);
        raise(&mut self.unwritten_max, &next.unwritten_max);
        raise(&mut self.wbs_unwritten_max, &next.wbs_unwritten_max);
        self.events.extend(next.events.iter().cloned());
        // These are handed on from window to window.
        self.traced.clone_from(&next.traced);
        self.gaps.clone_from(&next.gaps);
    }

    /// Folds the limits of cgroups and the zones of a sample, and nothing else of it.
    pub fn push_kept(&mut self, sample: &Sample) {
        let at = sample.time.monotonic;
        fold(&mut self.zones, at, &sample.zones, None);
        fold(&mut self.cgroup_limits, at, &sample.cgroup_limits, None);
    }
}

/// Appends series of rows. A thing that `shared` has is first in the series that follows, too.
fn append_series<T: Clone, R: Row>(
    series: &mut BTreeMap<EntityId, Vec<T>>,
    next: &BTreeMap<EntityId, Vec<T>>,
    shared: &Table<R>,
) {
    for (id, rows) in next {
        let known = usize::from(shared.get(*id).is_some());
        series.entry(*id).or_default().extend(rows.iter().skip(known).cloned());
    }
}

fn append<R: Row>(spans: &mut Spans<R>, next: &Spans<R>, shared: &Table<R>) {
    if next.is_empty() {
        return;
    }
    for (id, span) in next {
        match spans.get_mut(id) {
            Some(before) => before.append(span, shared.get(*id)),
            None => drop(spans.insert(*id, span.clone())),
        }
    }
}

/// Takes the larger number of each thing.
fn raise<K: Ord + Clone>(most: &mut BTreeMap<K, u64>, next: &BTreeMap<K, u64>) {
    for (key, now) in next {
        match most.get_mut(key) {
            Some(most) => *most = (*most).max(*now),
            None => drop(most.insert(key.clone(), *now)),
        }
    }
}

impl<R: Row> Span<R> {
    /// Appends the readings that follow. `shared` is the row that is the last of these and the first of those.
    fn append(&mut self, next: &Span<R>, shared: Option<&R>) {
        let least = |one: Option<u64>, other: Option<u64>| one.into_iter().chain(other).min();
        let mut is_settled = true;
        for (index, metric) in R::METRICS.iter().enumerate() {
            let is_counter = metric.kind == MetricKind::Counter;
            let is_reading = |raw: u64| !is_counter || raw <= COUNTER_MAX;
            let is_shared = shared.and_then(|row| row.get(index)).is_some_and(is_reading);
            if is_counter {
                let pair = self.last.get(index).zip(next.first.get(index)).filter(|_| !is_shared);
                let between = pair.map(|(before, now)| step(before, now));
                let parts = [self.growth.get(index), between, next.growth.get(index)];
                self.growth.set(index, parts.into_iter().flatten().reduce(u64::saturating_add));
                is_settled &= self.growth.get(index).is_some() || next.last.get(index).is_none();
            }
            self.first.set(index, self.first.get(index).or(next.first.get(index)));
            self.last.set(index, next.last.get(index).or(self.last.get(index)));
            self.min.set(index, least(self.min.get(index), next.min.get(index)));
            self.max.set(index, self.max.get(index).max(next.max.get(index)));
        }
        self.is_settled = next.is_settled || is_settled;
        self.last_at = next.last_at;
        self.readings = self.readings.saturating_add(next.readings.saturating_sub(u32::from(shared.is_some())));
    }
}
