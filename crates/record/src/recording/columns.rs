// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables folded by column while they are read: no row is made, and a reading that stands still costs nothing. For
//! readers that need the fold of all samples and none of the samples. What a column adds up to is what
//! [`Row::fold`] makes of the same readings row by row.

use super::cells::Cells;
use super::column;
use super::decode::Unused;
use super::item::UnusedEvents;
use super::limits::{Limit, Stop};
use super::table::{self, Scratch};
use super::wire::Cursor;
use crate::id::{Entity, EntityId};
use crate::metric::{Metric, Row};
use crate::name::Name;
use crate::sample::{CgroupIoRow, CgroupLimitsRow, CgroupRow, ProcessRow, WbRow};
use crate::units::{self, Nanos};
use crate::window::limited::{self, LimitRun, LimitedReading};
use crate::window::{Reads, Span, Spans, Window};
use std::collections::BTreeMap;

/// What is known of one entity.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    first_at: Nanos,
    last_at: Nanos,
    /// Sample of the table since which it has a row, from 1; 0 without one.
    since: u32,
    /// Samples with a row of it before that.
    readings: u32,
}

/// One table, folded.
pub(super) struct Columns {
    metrics: &'static [Metric],
    /// By index of the metric; `None` for a column without a use.
    cells: Vec<Option<Cells>>,
    slots: Vec<Slot>,
    of: BTreeMap<EntityId, u32>,
    /// Present rows: the entity and its slot, in order of the entity.
    rows: Vec<(EntityId, u32)>,
    /// Samples that had the table, and the time of the last.
    samples: u32,
    at: Nanos,
    /// Whether the last sample had the table.
    pub(super) is_new: bool,
    /// Whether rows came or went since the bdis of wbs were last looked up: [`Fold::raise_bdis`].
    has_other_rows: bool,
    /// Whether the slot of each row is its position.
    are_slots_in_order: bool,
}

impl Columns {
    fn of<R: Row>(unused: &[(&str, &[&str])]) -> Columns {
        let unused = unused.iter().filter(|(table, _)| *table == R::TABLE).flat_map(|(_, names)| *names);
        let unused: Vec<&str> = unused.copied().collect();
        let cells = |metric: &Metric| (!unused.contains(&metric.name)).then(|| Cells::new(metric.kind));
        Columns {
            metrics: R::METRICS,
            cells: R::METRICS.iter().map(cells).collect(),
            slots: Vec::new(),
            of: BTreeMap::new(),
            rows: Vec::new(),
            samples: 0,
            at: Nanos::default(),
            is_new: false,
            has_other_rows: false,
            are_slots_in_order: true,
        }
    }

    /// Removes all rows. They come again with the next keyframe.
    pub(super) fn clear(&mut self) {
        let rows = std::mem::take(&mut self.rows);
        self.lose(rows.iter().map(|(_, slot)| *slot));
        self.has_other_rows = true;
    }

    /// Returns the entities of the present rows.
    pub(super) fn ids(&self) -> Vec<EntityId> {
        self.rows.iter().map(|(id, _)| *id).collect()
    }

    fn lose(&mut self, slots: impl Iterator<Item = u32> + Clone) {
        let next = self.samples.saturating_add(1);
        for cells in self.cells.iter_mut().flatten() {
            slots.clone().for_each(|slot| cells.lose(slot as usize, next));
        }
        for slot in slots {
            if let Some(slot) = self.slots.get_mut(slot as usize) {
                slot.readings = slot.readings.saturating_add(next.saturating_sub(slot.since));
                (slot.since, slot.last_at) = (0, self.at);
            }
        }
    }

    fn remove(&mut self, positions: &[u32]) {
        let slots: Vec<u32> = positions.iter().filter_map(|at| Some(self.rows.get(*at as usize)?.1)).collect();
        self.lose(slots.iter().copied());
        let mut gone = positions.iter().peekable();
        let mut at = 0u32;
        self.rows.retain(|_| {
            let here = gone.next_if(|position| **position == at).is_some();
            at += 1;
            !here
        });
    }

    /// Adds rows without readings. Returns false if an entity has a row already: its readings have no order of time.
    fn add(&mut self, ids: &[EntityId], now: Nanos) -> bool {
        for id in ids {
            let new = self.slots.len() as u32;
            let slot = *self.of.entry(*id).or_insert(new);
            if slot == new {
                self.slots.push(Slot { first_at: now, ..Slot::default() });
            }
            if let Some(slot) = self.slots.get_mut(slot as usize) {
                slot.since = self.samples;
            }
            self.rows.push((*id, slot));
        }
        let slots = self.slots.len();
        self.cells.iter_mut().flatten().for_each(|cells| cells.grow(slots));
        self.rows.sort_unstable();
        self.rows.is_sorted_by(|one, other| one.0 < other.0)
    }

    /// Reads the table of one sample, as [`table::get`] does. Returns false if an entity has two rows.
    pub(super) fn get(
        &mut self,
        cursor: &mut Cursor<'_>,
        scratch: &mut Scratch,
        columns: &[Option<usize>],
        now: Nanos,
        may: impl FnOnce(usize, &[EntityId]) -> Result<(), Limit>,
    ) -> Result<bool, Stop> {
        let afresh = table::head(cursor, scratch, self.rows.len())?;
        let left = if afresh { 0 } else { self.rows.len().saturating_sub(scratch.set.len()) };
        may(left + scratch.ids.len(), &scratch.ids)?;
        if afresh {
            self.clear();
        } else if !scratch.set.is_empty() {
            self.remove(&scratch.set);
        }
        let has_other_rows = afresh || !scratch.set.is_empty() || !scratch.ids.is_empty();
        self.has_other_rows |= has_other_rows;
        (self.samples, self.at, self.is_new) = (self.samples.saturating_add(1), now, true);
        if !scratch.ids.is_empty() && !self.add(&scratch.ids, now) {
            return Ok(false);
        }
        if has_other_rows {
            self.are_slots_in_order = (0..).zip(&self.rows).all(|(at, (_, slot))| at == *slot);
        }
        let rows = match self.are_slots_in_order {
            true => Slots::InOrder(self.rows.len()),
            false => Slots::Of(&self.rows),
        };
        for index in columns {
            match index.and_then(|index| self.cells.get_mut(index)?.as_mut()) {
                Some(cells) => cells.read(cursor, scratch, rows, self.samples)?,
                // A column without a use, or one that this build does not know.
                None => column::skip(cursor, &mut scratch.positions, self.rows.len())?,
            }
        }
        Ok(true)
    }

    /// Passes the present readings of two columns, added up, to `each` with what `of_slots` has of their slot. Passes over
    /// slots that have neither.
    fn sums<T>(&self, names: [&str; 2], of_slots: impl Iterator<Item = T>, mut each: impl FnMut(T, u64)) {
        let mut pass = |of_slot: T, sum: Option<u64>| {
            if let Some(sum) = sum {
                each(of_slot, sum);
            }
        };
        // Slots of rows that are gone stay. Where they are most of all, only the rows are looked at.
        if self.slots.len() > 2 * self.rows.len() {
            let now = |name: &str, slot: usize| self.cells(name).and_then(|cells| cells.now(slot));
            let mut slots: Vec<usize> = self.rows.iter().map(|(_, slot)| *slot as usize).collect();
            slots.sort_unstable();
            let (mut of_slots, mut at) = (of_slots, 0);
            for slot in slots {
                let Some(of_slot) = slot.checked_sub(at).and_then(|passed| of_slots.nth(passed)) else { return };
                pass(of_slot, sum(now(names[0], slot), now(names[1], slot)));
                at = slot + 1;
            }
            return;
        }
        match (self.cells(names[0]), self.cells(names[1])) {
            (Some(one), Some(other)) => {
                let sums = one.all_now().zip(other.all_now()).map(|(one, other)| sum(one, other));
                of_slots.zip(sums).for_each(|(of_slot, sum)| pass(of_slot, sum));
            }
            (Some(one), None) | (None, Some(one)) => {
                of_slots.zip(one.all_now()).for_each(|(of_slot, now)| pass(of_slot, now));
            }
            (None, None) => {}
        }
    }

    /// Returns the number of rows that have a reading of a column.
    fn present(&self, name: &str) -> usize {
        self.cells(name).map_or(0, Cells::running)
    }

    /// Returns the readings of a column, unless they are passed over.
    fn cells(&self, name: &str) -> Option<&Cells> {
        let index = self.metrics.iter().position(|metric| metric.name == name)?;
        self.cells.get(index)?.as_ref()
    }

    /// Makes the rows of each entity.
    fn spans<R: Row>(self) -> Spans<R> {
        let next = self.samples.saturating_add(1);
        let mut spans = Spans::default();
        spans.reserve(self.of.len());
        // Where no entity is gone, the rows list all of them. An array is faster than a tree.
        let entities = match self.rows.len() == self.of.len() {
            true => self.rows,
            false => self.of.into_iter().collect(),
        };
        for (id, slot) in entities {
            let span: &mut Span<R> = spans.or_default(id);
            let known = self.slots.get(slot as usize).copied().unwrap_or_default();
            (span.first_at, span.last_at, span.readings) = (known.first_at, known.last_at, known.readings);
            if known.since > 0 {
                span.readings = known.readings.saturating_add(next.saturating_sub(known.since));
                span.last_at = self.at;
            }
            for (index, cells) in self.cells.iter().enumerate() {
                let folded = cells.as_ref().and_then(|cells| cells.folded(slot as usize, next));
                let Some(folded) = folded else { continue };
                span.first.set(index, Some(folded.first));
                span.last.set(index, Some(folded.last));
                span.min.set(index, Some(folded.min));
                span.max.set(index, Some(folded.max));
                span.growth.set(index, folded.growth);
            }
        }
        spans
    }
}

/// Two readings added up. `None` if there is neither.
fn sum(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (None, None) => None,
        (one, other) => Some(one.unwrap_or(0).saturating_add(other.unwrap_or(0))),
    }
}

/// Returns the present readings of a slot in four columns. This is a loop because `map` of an array is not inlined.
#[inline]
fn now_of<T: Copy>(columns: &[Option<&Cells>; 4], slot: usize, make: impl Fn(u64) -> T) -> [Option<T>; 4] {
    let mut readings = [None; 4];
    for (reading, cells) in readings.iter_mut().zip(columns) {
        *reading = cells.and_then(|cells| cells.now(slot)).map(&make);
    }
    readings
}

/// The slot of each row.
#[derive(Clone, Copy, Debug)]
pub(super) enum Slots<'a> {
    /// That of its position, for a number of rows.
    InOrder(usize),
    /// That beside its entity.
    Of(&'a [(EntityId, u32)]),
}

impl Slots<'_> {
    /// Returns the number of rows.
    pub(super) fn count(self) -> usize {
        match self {
            Slots::InOrder(count) => count,
            Slots::Of(rows) => rows.len(),
        }
    }

    /// Returns the slot of the row at a position. Positions are below the number of rows.
    #[inline]
    pub(super) fn of(self, at: u32) -> Option<usize> {
        match self {
            Slots::InOrder(_) => Some(at as usize),
            Slots::Of(rows) => rows.get(at as usize).map(|(_, slot)| *slot as usize),
        }
    }
}

/// Position of the bdi of a wb.
#[derive(Clone, Copy, Debug, Default)]
enum Place {
    /// It was not looked up since the wb was described.
    #[default]
    Unknown,
    /// The entity is not described as a wb.
    None,
    At(usize),
}

/// The tables that have a row for each cgroup or process, folded.
pub(super) struct Fold {
    wbs: Columns,
    cgroups: Columns,
    cgroup_limits: Columns,
    cgroup_io: Columns,
    processes: Columns,
    /// Whether a part of a sample was folded that is not whole, or an entity had two rows.
    pub(super) is_spoilt: bool,
    /// Events that are passed over.
    unused_events: UnusedEvents,
    /// Of each cgroup, by slot.
    unwritten_max: Vec<Option<u64>>,
    stat_reads: Reads,
    /// Of each cgroup on each device, by slot.
    limits: Vec<Limits>,
    /// Working memory: whether a slot has a limit in this sample.
    has_limits: Vec<bool>,
    /// Whether any of `limits` has readings.
    has_limited: bool,
    bdis: Bdis,
}

/// Use of a device by a cgroup while its limits of I/O were the same, and its readings from the first limit on.
#[derive(Clone, Default)]
struct Limits {
    runs: Vec<LimitRun>,
    readings: Vec<LimitedReading>,
}

/// Wbs by bdi.
#[derive(Default)]
struct Bdis {
    names: Vec<Name>,
    places: BTreeMap<Name, usize>,
    /// Of each wb, by slot.
    of_slots: Vec<Place>,
    sums: Vec<Option<u64>>,
    most: BTreeMap<Name, u64>,
}

impl Fold {
    pub(super) fn new(unused: Unused<'_>) -> Fold {
        let unused_events = UnusedEvents::of(unused);
        let Unused { columns: unused, .. } = unused;
        Fold {
            unused_events,
            wbs: Columns::of::<WbRow>(unused),
            cgroups: Columns::of::<CgroupRow>(unused),
            cgroup_limits: Columns::of::<CgroupLimitsRow>(unused),
            cgroup_io: Columns::of::<CgroupIoRow>(unused),
            processes: Columns::of::<ProcessRow>(unused),
            is_spoilt: false,
            unwritten_max: Vec::new(),
            stat_reads: Reads::default(),
            limits: Vec::new(),
            has_limits: Vec::new(),
            has_limited: false,
            bdis: Bdis::default(),
        }
    }

    /// Returns which events are passed over.
    pub(super) fn unused_events(&self) -> &UnusedEvents {
        &self.unused_events
    }

    /// Returns the columns of a table, if it is folded by column.
    pub(super) fn table(&mut self, name: &str) -> Option<&mut Columns> {
        match name {
            WbRow::TABLE => Some(&mut self.wbs),
            CgroupRow::TABLE => Some(&mut self.cgroups),
            CgroupLimitsRow::TABLE => Some(&mut self.cgroup_limits),
            CgroupIoRow::TABLE => Some(&mut self.cgroup_io),
            ProcessRow::TABLE => Some(&mut self.processes),
            _ => None,
        }
    }

    /// Forgets what was known of an entity that is described again.
    pub(super) fn describe(&mut self, id: EntityId) {
        if let Some(slot) = self.wbs.of.get(&id)
            && let Some(place) = self.bdis.of_slots.get_mut(*slot as usize)
        {
            *place = Place::Unknown;
            self.wbs.has_other_rows = true;
        }
    }

    /// Takes the sums of a sample: the largest of each cgroup and bdi is kept.
    pub(super) fn sample(&mut self, window: &Window) {
        if std::mem::take(&mut self.cgroups.is_new) {
            self.raise_cgroups();
        }
        if std::mem::take(&mut self.cgroup_io.is_new) {
            self.take_limits();
        }
        if std::mem::take(&mut self.wbs.is_new) {
            self.raise_bdis(window);
        }
    }

    fn raise_cgroups(&mut self) {
        self.stat_reads.note(self.cgroups.at, self.cgroups.present("file_dirty"));
        self.unwritten_max.resize(self.cgroups.slots.len(), None);
        let names = ["file_dirty", "file_writeback"];
        self.cgroups.sums(names, self.unwritten_max.iter_mut(), |most, sum| *most = Some(sum).max(*most));
    }

    /// Takes the limits of I/O that this sample read.
    fn take_limits(&mut self) {
        let (io, all, marks) = (&self.cgroup_io, &mut self.limits, &mut self.has_limits);
        let limits = ["rbps_max", "wbps_max", "riops_max", "wiops_max"].map(|name| io.cells(name));
        if !self.has_limited && limits.iter().flatten().all(|cells| cells.running() == 0) {
            return;
        }
        all.resize(io.slots.len(), Limits::default());
        // Limits are read less often than counters, so most rows have none.
        marks.clear();
        marks.resize(io.slots.len(), false);
        limits.iter().flatten().for_each(|cells| cells.mark_present(marks));
        let counters = ["rbytes", "wbytes", "rios", "wios"].map(|name| io.cells(name));
        for (_, slot) in &io.rows {
            let slot = *slot as usize;
            let (Some(Limits { runs, readings }), Some(has_limits)) = (all.get_mut(slot), marks.get(slot)) else {
                continue;
            };
            if readings.is_empty() && !has_limits {
                continue;
            }
            let limits = now_of(&limits, slot, units::Limit);
            let counters = now_of(&counters, slot, |count| count);
            limited::note(readings, io.at, limits, counters);
            self.has_limited |= !readings.is_empty();
            if let Some(run) = LimitRun::read(io.at, limits, counters) {
                limited::push(runs, run);
            }
        }
    }

    fn raise_bdis(&mut self, window: &Window) {
        let Bdis { names, places, of_slots, sums, most } = &mut self.bdis;
        if std::mem::take(&mut self.wbs.has_other_rows) {
            // Bdis of wbs that are gone cost time in each sample: there are never more than twice as many bdis as rows.
            if names.len() > self.wbs.rows.len() {
                names.clear();
                places.clear();
                of_slots.clear();
            }
            of_slots.resize(self.wbs.slots.len(), Place::Unknown);
            for (id, slot) in &self.wbs.rows {
                let Some(place @ Place::Unknown) = of_slots.get_mut(*slot as usize) else { continue };
                *place = match window.entities.get(id) {
                    Some(Entity::Wb { bdi, .. }) => Place::At(*places.entry(bdi.clone()).or_insert_with(|| {
                        names.push(bdi.clone());
                        names.len() - 1
                    })),
                    _ => Place::None,
                };
            }
        }
        sums.clear();
        sums.resize(names.len(), None);
        self.wbs.sums(["reclaimable", "writeback"], of_slots.iter(), |place, sum| {
            if let Place::At(place) = place
                && let Some(all) = sums.get_mut(*place)
            {
                *all = Some(all.unwrap_or(0).saturating_add(sum));
            }
        });
        for (name, sum) in names.iter().zip(sums.iter()) {
            let Some(sum) = *sum else { continue };
            match most.get_mut(name) {
                Some(most) => *most = sum.max(*most),
                None => drop(most.insert(name.clone(), sum)),
            }
        }
    }

    /// Puts what was folded into the window of the same samples.
    pub(super) fn finish(self, window: &mut Window) {
        let most = |slot: u32| self.unwritten_max.get(slot as usize).copied().flatten();
        window.unwritten_max = self.cgroups.of.iter().filter_map(|(id, slot)| Some((*id, most(*slot)?))).collect();
        window.stat_reads = self.stat_reads;
        let mut limits = self.limits;
        for (id, slot) in &self.cgroup_io.of {
            let Some(Limits { runs, readings }) = limits.get_mut(*slot as usize).map(std::mem::take) else { continue };
            if !runs.is_empty() {
                window.limit_runs.insert(*id, runs);
            }
            if !readings.is_empty() {
                window.limited_io.insert(*id, readings);
            }
        }
        window.wbs = self.wbs.spans();
        window.cgroups = self.cgroups.spans();
        window.cgroup_limits = self.cgroup_limits.spans();
        window.cgroup_io = self.cgroup_io.spans();
        window.processes = self.processes.spans();
        // `asleep`, `stood` and `foreign` compare the rows of whole samples. This fold does not fill them.
        window.wbs_unwritten_max = self.bdis.most;
    }
}
