// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cgroups as people name them: each belongs to the container or unit nearest above it, which is one series. Bytes are those
//! of the cgroup without its children, so that the series add up to the machine. At most [`SERIES_MAX`] have series of
//! their own; the bytes of the others are in one more, `other`.

use floodline_analysis::container::{Identity, Kind, identify};
use floodline_record::facts::HostFacts;
use floodline_record::id::{Entity, EntityId, Hierarchy};
use floodline_record::metric::{MetricKind, Row};
use floodline_record::name::Name;
use floodline_record::sample::{CgroupRow, Table};
use floodline_record::units::Nanos;
use floodline_view::metrics::Labels;
use floodline_view::metrics::catalogue::Column;
use std::collections::{BTreeMap, BTreeSet};

/// Containers and units with series of their own.
pub(crate) const SERIES_MAX: usize = 200;

/// A container or unit that was idle for this long loses its series to another one.
const IDLE: Nanos = Nanos(600 * Nanos::SECOND.0);

struct Member {
    path: Name,
    hierarchy: Hierarchy,
    ino: Option<u64>,
    parent: Option<EntityId>,
    labels: Labels,
}

/// What is known of a container or unit besides its present readings.
#[derive(Default)]
struct Past {
    last_active: Nanos,
    dirty_max: u64,
    io_some: Option<u64>,
    throttled: Option<u64>,
}

/// The present readings of a container or unit.
#[derive(Clone, Debug)]
struct Group {
    /// Its topmost cgroup, whose counters stand for it.
    top: EntityId,
    depth: usize,
    /// One value per exported column.
    values: Vec<Option<i128>>,
}

/// The cgroups of a machine.
#[derive(Default)]
pub(super) struct Groups {
    members: BTreeMap<EntityId, Member>,
    paths: BTreeMap<(Hierarchy, Name), EntityId>,
    inodes: BTreeMap<u64, EntityId>,
    past: BTreeMap<Labels, Past>,
    present: BTreeMap<Labels, Group>,
    exported: BTreeSet<Labels>,
    cgroups: usize,
}

impl Groups {
    /// Takes notice of a cgroup.
    pub(super) fn describe(&mut self, id: EntityId, entity: &Entity, facts: Option<&HostFacts>) {
        let Entity::Cgroup { path, hierarchy, ino } = entity else { return };
        let above = path.as_bytes().iter().rposition(|&byte| byte == b'/').unwrap_or(0);
        let above = if above == 0 { b"/".as_slice() } else { path.as_bytes().get(..above).unwrap_or(b"/") };
        let parent = self.paths.get(&(*hierarchy, Name::new(above))).copied().filter(|parent| *parent != id);
        let labels = labels(path, facts);
        self.paths.insert((*hierarchy, path.clone()), id);
        if let Some(ino) = ino {
            self.inodes.insert(*ino, id);
        }
        self.members.insert(id, Member { path: path.clone(), hierarchy: *hierarchy, ino: *ino, parent, labels });
    }

    /// Renames every cgroup, because the new host facts contain more names.
    pub(super) fn rename(&mut self, facts: &HostFacts) {
        for member in self.members.values_mut() {
            member.labels = labels(&member.path, Some(facts));
        }
    }

    /// A cgroup's task slept in dirty throttling.
    pub(super) fn throttled(&mut self, at: Nanos, cgroup_ino: u64, slept: Nanos) {
        let Some(member) = self.inodes.get(&cgroup_ino).and_then(|id| self.members.get(id)) else { return };
        let past = self.past.entry(member.labels.clone()).or_default();
        past.throttled = Some(past.throttled.unwrap_or(0).saturating_add(slept.0));
        past.last_active = at;
    }

    /// Takes the readings of a sample.
    pub(super) fn sample(&mut self, at: Nanos, table: &Table<CgroupRow>, columns: &[Column]) {
        let rows = table.rows();
        self.cgroups = rows.len();
        self.present.clear();
        let is_counter = |column: &Column| {
            CgroupRow::METRICS.get(column.index).is_some_and(|metric| metric.kind == MetricKind::Counter)
        };
        let number = |row: &CgroupRow, column: &Column| row.get(column.index).map(i128::from);
        let mut own: Vec<Vec<Option<i128>>> =
            rows.iter().map(|(_, row)| columns.iter().map(|column| number(row, column)).collect()).collect();
        for (id, row) in rows {
            let parent = self.members.get(id).and_then(|member| member.parent);
            let Some(at) = parent.and_then(|parent| rows.binary_search_by_key(&parent, |(id, _)| *id).ok()) else {
                continue;
            };
            let Some(above) = own.get_mut(at) else { continue };
            for (column, above) in columns.iter().zip(above).filter(|(column, _)| !is_counter(column)) {
                if let (Some(above), Some(value)) = (above, number(row, column)) {
                    *above -= value;
                }
            }
        }
        for ((id, row), own) in rows.iter().zip(own) {
            let Some(member) = self.members.get(id) else { continue };
            let depth = member.path.as_bytes().len();
            let Some(group) = self.present.get_mut(&member.labels) else {
                self.present.insert(member.labels.clone(), Group { top: *id, depth, values: own });
                continue;
            };
            let is_top = depth < group.depth;
            if is_top {
                (group.top, group.depth) = (*id, depth);
            }
            for ((column, sum), own) in columns.iter().zip(&mut group.values).zip(own) {
                match is_counter(column) {
                    true if is_top => *sum = number(row, column),
                    true => {}
                    false => *sum = sum.zip(own).map(|(sum, own)| sum + own).or(*sum).or(own),
                }
            }
        }
        self.note_activity(at, rows);
        self.choose(at);
    }

    fn note_activity(&mut self, at: Nanos, rows: &[(EntityId, CgroupRow)]) {
        for (labels, group) in &self.present {
            let Ok(found) = rows.binary_search_by_key(&group.top, |(id, _)| *id) else { continue };
            let Some((_, row)) = rows.get(found) else { continue };
            let past = self.past.entry(labels.clone()).or_default();
            let dirty = row.file_dirty.map_or(0, |bytes| bytes.0) + row.file_writeback.map_or(0, |bytes| bytes.0);
            let waited = row.io_some.map(|nanos| nanos.0);
            if dirty > 0 || past.io_some.is_some_and(|before| waited.is_some_and(|now| now > before)) {
                past.last_active = at;
            }
            past.io_some = waited;
            if at.0.saturating_sub(past.last_active.0) > IDLE.0 {
                past.dirty_max = 0;
            }
            past.dirty_max = past.dirty_max.max(dirty);
        }
    }

    /// Chooses the containers and units with series of their own: those active in the last ten minutes, most dirty
    /// bytes first.
    fn choose(&mut self, at: Nanos) {
        let present = &self.present;
        self.past
            .retain(|labels, past| present.contains_key(labels) || at.0.saturating_sub(past.last_active.0) < IDLE.0);
        let rank = |labels: &Labels| {
            let past = self.past.get(labels);
            let is_idle = past
                .is_none_or(|past| past.last_active == Nanos(0) || at.0.saturating_sub(past.last_active.0) > IDLE.0);
            (is_idle, std::cmp::Reverse(past.map_or(0, |past| past.dirty_max)))
        };
        let mut ranked: Vec<_> = self.present.keys().map(|labels| (rank(labels), labels)).collect();
        ranked.sort_unstable();
        self.exported = ranked.into_iter().take(SERIES_MAX).map(|(_, labels)| labels.clone()).collect();
    }

    /// Forgets cgroups that are gone.
    pub(super) fn forget(&mut self, live: impl Fn(EntityId) -> bool) {
        let Groups { members, paths, inodes, .. } = self;
        members.retain(|id, member| {
            let stays = live(*id);
            if !stays {
                let key = (member.hierarchy, member.path.clone());
                if paths.get(&key) == Some(id) {
                    paths.remove(&key);
                }
                if let Some(ino) = member.ino.filter(|ino| inodes.get(ino) == Some(id)) {
                    inodes.remove(&ino);
                }
            }
            stays
        });
    }

    /// Cgroups of the last sample.
    pub(super) fn cgroups(&self) -> usize {
        self.cgroups
    }

    /// How many have series of their own.
    pub(super) fn exported(&self) -> usize {
        self.exported.len()
    }

    /// The values of one exported column: one per container or unit, and the sum of the others where sums mean something.
    pub(super) fn values(&self, index: usize, has_sum: bool) -> impl Iterator<Item = (Labels, u64)> + '_ {
        let at = move |group: &Group| group.values.get(index).copied().flatten();
        let raw = |value: i128| u64::try_from(value.max(0)).unwrap_or(u64::MAX);
        let exported = self.present.iter().filter(|(labels, _)| self.exported.contains(*labels));
        let rest = self.present.iter().filter(|(labels, _)| !self.exported.contains(*labels));
        // Readings of a parent and its children are not of one moment: a difference may be below zero.
        let other: i128 = rest.filter_map(|(_, group)| at(group)).map(|value| value.max(0)).sum();
        let other = has_sum.then(|| (Labels::one("cgroup", "other"), raw(other)));
        exported.filter_map(move |(labels, group)| Some((labels.clone(), raw(at(group)?)))).chain(other)
    }

    /// Time that tasks slept in dirty throttling, by container or unit.
    pub(super) fn slept(&self) -> impl Iterator<Item = (&Labels, u64)> {
        let exported = self.past.iter().filter(|(labels, _)| self.exported.contains(*labels));
        exported.filter_map(|(labels, past)| Some((labels, past.throttled?)))
    }
}

/// The labels of the container or unit that a cgroup belongs to: `namespace`, `pod`, `container` where they are known,
/// else `cgroup`. Never a path: its depth and ids would make series without end.
fn labels(path: &Name, facts: Option<&HostFacts>) -> Labels {
    let identity = identify(path);
    let nearest = identity.container().unwrap_or(&identity);
    let known = nearest.id.as_deref().zip(facts).and_then(|(id, facts)| facts.container_name(id, nearest.host_uid));
    let is_pod = matches!(nearest.kind, Kind::KubernetesPod)
        || nearest.inside.as_deref().is_some_and(|outer| outer.kind == Kind::KubernetesPod);
    if let Some(name) = known.filter(|_| is_pod).map(Name::to_string) {
        match name.split('/').collect::<Vec<_>>().as_slice() {
            [namespace, pod, container] => {
                return Labels::one("namespace", namespace).and("pod", pod).and("container", container);
            }
            [namespace, pod] => return Labels::one("namespace", namespace).and("pod", pod).and("container", ""),
            _ => {}
        }
    }
    Labels::one("cgroup", &without_number(nearest, nearest.label(facts)))
}

/// Scopes of a desktop carry the number of a process: those of one program are one series.
fn without_number(identity: &Identity, label: String) -> String {
    let stem = label.strip_suffix(".scope").filter(|_| identity.kind == Kind::Scope);
    match stem.and_then(|stem| stem.rsplit_once('-')) {
        Some((stem, number)) if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) => {
            format!("{stem}.scope")
        }
        _ => label,
    }
}
