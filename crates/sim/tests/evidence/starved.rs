// SPDX-License-Identifier: MIT OR Apache-2.0
//! The cgroups that a finding about too small budgets is about, as far as its words tell: it names one of them and counts all.

use super::raw::{Column, Raw, over};
use super::trace::share;
use super::{DIRTIED, HANDED, number};
use floodline_analysis::report::{Evidence, Finding};
use floodline_record::id::{Entity, EntityId};
use floodline_record::sample::ProcessRow;
use std::collections::BTreeMap;

/// Cgroups that may be meant.
pub(crate) struct Starved {
    pub(crate) boxes: Vec<EntityId>,
    /// Number of them that are meant.
    count: usize,
}

const FAULTS: Column<ProcessRow> = |row| row.minflt.unwrap_or_default().0 + row.majflt.unwrap_or_default().0;
const READ: Column<ProcessRow> = |row| row.read_bytes.unwrap_or_default().0;

fn without_digits(path: &str) -> String {
    path.replace(|letter: char| letter.is_ascii_digit(), "")
}

impl Starved {
    /// All cgroups of the machine if there are as many as are counted, otherwise those that are called like the one that is named,
    /// and those below them if these are too few, or all cgroups where these are too few as well: they are of several sizes.
    pub(crate) fn of(raw: &Raw, finding: &Finding) -> Starved {
        let count = finding.evidence.iter().find(|one| one.name == "Cgroups with too small a budget").and_then(number);
        let cgroups: Vec<(EntityId, String)> = raw
            .entities
            .iter()
            .filter(|(_, entity)| matches!(entity, Entity::Cgroup { .. }) && entity.label() != "/")
            .map(|(id, entity)| (*id, entity.label()))
            .collect();
        let named = finding.evidence.iter().find_map(|one| one.name.strip_prefix("Hard threshold of "));
        let path = |called: &str| raw.entities.get(&raw.cgroup_called(called)?).map(Entity::label);
        let alike = without_digits(&named.and_then(path).unwrap_or("none".to_owned()));
        let those = |wanted: &dyn Fn(&str) -> bool| -> Vec<EntityId> {
            cgroups.iter().filter(|(_, path)| wanted(path)).map(|(id, _)| *id).collect()
        };
        let count = count.map_or(usize::MAX, |count| count as usize);
        let same = those(&|path| without_digits(path) == alike);
        let boxes = match cgroups.len() == count {
            true => those(&|_| true),
            false if same.len() >= count => same,
            false => {
                let below = those(&|path| without_digits(path).starts_with(&alike));
                if below.len() >= count { below } else { those(&|_| true) }
            }
        };
        Starved { count: count.min(boxes.len()), boxes }
    }

    /// The number nearest to `told` that is a sum of as many of these as are meant.
    pub(crate) fn some_of(&self, mut each: Vec<f64>, told: f64) -> f64 {
        each.sort_by(f64::total_cmp);
        let count = self.count.min(each.len());
        told.clamp(each[..count].iter().sum(), each[each.len() - count..].iter().sum())
    }

    /// The ratio nearest to `told` of the sums of as many of these as are meant.
    pub(crate) fn ratio_of(&self, parts: &[(f64, f64)], told: f64) -> f64 {
        if parts.len() <= self.count {
            return share(parts);
        }
        let ratios = || parts.iter().filter(|(_, all)| *all > 0.0).map(|(part, all)| part / all);
        let (least, most) = (ratios().reduce(f64::min), ratios().reduce(f64::max));
        least.zip(most).map_or(0.0, |(least, most)| told.clamp(least, most))
    }

    /// The cgroup of these that a process is in or below, the nearest.
    fn box_of(&self, raw: &Raw, by_path: &BTreeMap<String, EntityId>, process: &Entity) -> Option<EntityId> {
        let Entity::Process { cgroup: Some(of), .. } = process else { return None };
        if self.boxes.contains(of) {
            return Some(*of);
        }
        let its = raw.entities.get(of).map(Entity::label)?;
        let mut path = its.as_str();
        loop {
            match by_path.get(path) {
                Some(id) => return Some(*id),
                None => path = path.rsplit_once('/')?.0,
            }
        }
    }

    /// A sum over the processes of each of these.
    fn each(&self, raw: &Raw, of: impl Fn(EntityId) -> f64) -> Vec<f64> {
        let path = |id: &EntityId| raw.entities.get(id).map(Entity::label).unwrap_or_default();
        let by_path: BTreeMap<String, EntityId> = self.boxes.iter().map(|id| (path(id), *id)).collect();
        let mut sums: BTreeMap<EntityId, f64> = self.boxes.iter().map(|id| (*id, 0.0)).collect();
        for (id, entity) in &raw.entities {
            if let Some(sum) = self.box_of(raw, &by_path, entity).and_then(|at| sums.get_mut(&at)) {
                *sum += of(*id);
            }
        }
        self.boxes.iter().map(|id| sums[id]).collect()
    }

    /// Bytes of I/O by the processes of those that are meant.
    fn io(&self, raw: &Raw, column: Column<ProcessRow>, told: f64) -> f64 {
        self.some_of(self.each(raw, |id| raw.io(id, column)), told)
    }

    /// Growth of the page cache of each that its processes did not read.
    fn newly_cached(&self, raw: &Raw) -> Vec<f64> {
        let grown = |id: &EntityId| {
            let mut rows = raw.samples.iter().filter_map(|sample| sample.cgroups.get(*id)?.file).map(|file| file.0);
            let first = rows.next().unwrap_or(0);
            rows.next_back().unwrap_or(first).saturating_sub(first) as f64
        };
        let read = self.each(raw, |id| raw.io(id, READ));
        self.boxes.iter().zip(read).map(|(id, read)| (grown(id) - read).max(0.0)).collect()
    }
}

/// Computes a number about the cgroups with too small a budget; `None` if it is about something else.
pub(crate) fn again(raw: &Raw, finding: &Finding, evidence: &Evidence) -> Option<f64> {
    let told = number(evidence)?;
    let starved = || Starved::of(raw, finding);
    // Of a storm on the whole machine, the finding names three writers at most.
    let stores = || finding.evidence.iter().any(|one| one.name == "Dirtied by stores of them");
    Some(match evidence.name.as_str() {
        "Dirtied by their processes" => starved().io(raw, DIRTIED, told * raw.seconds()) / raw.seconds(),
        "and dirtied" => starved().io(raw, DIRTIED, told),
        "They handed to write calls" => starved().io(raw, HANDED, told),
        "New in their page cache" => {
            let starved = starved();
            starved.some_of(starved.newly_cached(raw), told)
        }
        "Dirtied per page fault" if stores() => {
            let named = finding.evidence.iter().filter_map(|one| one.name.strip_prefix("Dirtied by "));
            let ids: Vec<EntityId> = named.filter_map(|label| Some(raw.labelled(label)?.0)).collect();
            let parts: Vec<(f64, f64)> =
                ids.iter().map(|id| (raw.io(*id, DIRTIED), raw.process(*id, FAULTS))).collect();
            let all = finding.evidence.iter().find(|one| one.name == "Dirtied by stores of them").and_then(number)?;
            let dirtied: f64 = parts.iter().map(|(dirtied, _)| dirtied).sum();
            if super::near(dirtied, all * raw.seconds()) {
                return Some(share(&parts));
            }
            // More than three: what the others dirtied is known, and their faults are between those of the processes that store.
            let others = raw.entities.keys().filter(|id| !ids.contains(id));
            let ratios = others.map(|id| over(raw.io(*id, DIRTIED), raw.process(*id, FAULTS)));
            let ratios: Vec<f64> = ratios.filter(|ratio| *ratio > 0.0).collect();
            let (least, most) = (ratios.iter().copied().reduce(f64::min)?, ratios.iter().copied().reduce(f64::max)?);
            let (all, faults) = (all * raw.seconds(), parts.iter().map(|(_, faults)| faults).sum::<f64>());
            let with = |ratio: f64| all / (faults + (all - dirtied).max(0.0) / ratio);
            told.clamp(with(least), with(most))
        }
        "Dirtied per page fault" => {
            let starved = starved();
            let dirtied = starved.each(raw, |id| raw.io(id, DIRTIED));
            let faults = starved.each(raw, |id| raw.process(id, FAULTS));
            starved.ratio_of(&dirtied.into_iter().zip(faults).collect::<Vec<_>>(), told)
        }
        "Page cache of them, at most" => {
            let cached = |id: &EntityId| {
                let rows = raw.samples.iter().filter_map(|sample| sample.cgroups.get(*id));
                rows.map(|row| row.file.unwrap_or_default().0).max().unwrap_or(0) as f64
            };
            let starved = starved();
            starved.some_of(starved.boxes.iter().map(cached).collect(), told)
        }
        name if name.starts_with("Memory in use, ") => {
            let id = raw.cgroup_called(name.strip_prefix("Memory in use, ")?)?;
            raw.samples.iter().filter_map(|sample| sample.cgroups.get(id)?.memory_current).max()?.0 as f64
        }
        "Time with a task waiting, worst of them" => {
            // The one that is worst may be meant or not.
            let starved = starved();
            let mut each: Vec<f64> = starved.boxes.iter().map(|id| raw.cgroup_waited(*id)).collect();
            each.sort_by(f64::total_cmp);
            told.clamp(each.get(starved.count.checked_sub(1)?).copied()?, each.last().copied()?)
        }
        _ => return None,
    })
}
