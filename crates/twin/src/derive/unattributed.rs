// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bytes that no readable process dirtied: the recorder was not root, or the processes were gone at the next sample. They are
//! programs of their own. The I/O counters of cgroups tell in which cgroups they run, and so under which limits.

use super::devices;
use super::group::{Bin, Group, PAGE};
use crate::Recorded;
use floodline_record::id::{Entity, EntityId, Hierarchy};
use floodline_record::window::Window;
use std::collections::BTreeMap;

/// Smallest part of them that is worth a program, and most cgroups with one.
const PART_MIN: f64 = 0.05;
const CGROUPS_MAX: usize = 50;

/// Programs that stand for the bytes without a process: one for each cgroup that wrote more than its processes did, and
/// one for the rest.
pub(super) fn unattributed(recorded: &Recorded, groups: &mut [Group]) -> Vec<Group> {
    let Some(all) = of_machine(recorded, groups) else { return Vec::new() };
    let total = all.total.by_calls.max(1.0);
    let mut missing: Vec<(EntityId, f64)> = written_in(&recorded.window)
        .into_iter()
        .map(|(id, bytes)| {
            let known = groups.iter().filter(|group| group.cgroup == Some(id));
            (id, bytes - known.map(|group| group.total.by_calls + group.total.mapped).sum::<f64>())
        })
        .filter(|(_, bytes)| *bytes >= PART_MIN * total)
        .collect();
    missing.sort_by(|(a, one), (b, other)| other.total_cmp(one).then(a.cmp(b)));
    missing.truncate(CGROUPS_MAX);
    // More was written than became dirty where the dirty level fell: then they share all of it.
    let sum = missing.iter().map(|(_, bytes)| bytes).sum::<f64>().max(total);
    let rest = 1.0 - missing.iter().map(|(_, bytes)| bytes / sum).sum::<f64>();
    let mut found: Vec<Group> = missing.iter().map(|(id, bytes)| part(&all, Some(*id), bytes / sum)).collect();
    if rest >= PART_MIN {
        found.push(part(&all, None, rest));
    }
    found.iter_mut().for_each(|one| take_waits(one, groups, recorded));
    found
}

/// Gives bytes without a process to the program of their cgroup that waited most, if its I/O counters may not be read: its
/// waits are those of a writer, and not those of a program that syncs what others wrote.
fn take_waits(one: &mut Group, groups: &mut [Group], recorded: &Recorded) {
    let window = &recorded.window;
    let is_root = |cgroup: Option<EntityId>| {
        let entity = cgroup.and_then(|id| window.entities.get(&id));
        entity.is_none_or(|entity| matches!(entity, Entity::Cgroup { path, .. } if path.as_bytes() == b"/"))
    };
    let is_beside = |group: &Group| group.cgroup == one.cgroup || (one.cgroup.is_none() && is_root(group.cgroup));
    let is_unread = |group: &Group| {
        let mut rows = window.processes.iter().filter(|(id, _)| group.holds(recorded, id));
        rows.all(|(_, span)| span.last.wchar.is_none())
    };
    let waiting = groups.iter_mut().filter(|group| group.weight() <= 0.0 && group.total.waited > 0.0);
    let writer = waiting.filter(|group| is_beside(group) && is_unread(group));
    let Some(writer) = writer.max_by(|a, b| a.total.waited.total_cmp(&b.total.waited)) else { return };
    for (bin, other) in one.bins.iter_mut().zip(&mut writer.bins) {
        (bin.waited, other.waited) = (other.waited, 0.0);
    }
    (one.total.waited, writer.total.waited) = (writer.total.waited, 0.0);
    (one.comm, one.shown) = (writer.comm.clone(), writer.shown.clone());
    one.cgroup = writer.cgroup;
}

/// A part of the bytes as the program of a cgroup.
fn part(all: &Group, cgroup: Option<EntityId>, share: f64) -> Group {
    let scaled = |bin: &Bin| Bin {
        wchar: bin.wchar * share,
        by_calls: bin.by_calls * share,
        calls: (bin.calls * share).ceil(),
        ..*bin
    };
    Group { cgroup, bins: all.bins.iter().map(scaled).collect(), total: scaled(&all.total), ..all.clone() }
}

/// Bytes that each cgroup of version 2 wrote, without those of the cgroups in it. Without the root, which has those of all.
fn written_in(window: &Window) -> BTreeMap<EntityId, f64> {
    let mut by_path: BTreeMap<&[u8], (EntityId, f64)> = BTreeMap::new();
    for (id, span) in &window.cgroup_io {
        let Some(Entity::CgroupIo { cgroup, dev }) = window.entities.get(id) else { continue };
        let Some(Entity::Cgroup { path, hierarchy: Hierarchy::V2, .. }) = window.entities.get(cgroup) else { continue };
        // Partitions and the devices below a stack count the same bytes again: a whole device counts.
        if window.lookup().whole(window, *dev) == *dev && path.as_bytes() != b"/" {
            let bytes = span.growth.wbytes.map_or(0, |bytes| bytes.0) as f64;
            by_path.entry(path.as_bytes()).or_insert((*cgroup, 0.0)).1 += bytes;
        }
    }
    let parent = |path: &[u8]| path.iter().rposition(|byte| *byte == b'/').map(|at| path[..at].to_vec());
    let all: Vec<(Vec<u8>, f64)> =
        by_path.iter().filter_map(|(path, (_, bytes))| Some((parent(path)?, *bytes))).collect();
    for (parent, bytes) in all {
        if let Some((_, own)) = by_path.get_mut(parent.as_slice()) {
            *own = (*own - bytes).max(0.0);
        }
    }
    by_path.into_values().collect()
}

/// All of them, as a program of the root cgroup.
fn of_machine(recorded: &Recorded, groups: &[Group]) -> Option<Group> {
    let window = &recorded.window;
    let page = window.facts.as_ref().map_or(PAGE, |facts| facts.page_size.max(1) as f64);
    let mut bins = groups.first().map(|group| group.bins.clone()).unwrap_or_default();
    if bins.is_empty() {
        let start = window.first_at?.monotonic.0;
        let seconds = |nanos: u64| nanos.saturating_sub(start) as f64 / 1e9;
        bins = window
            .host_series
            .windows(2)
            .map(|pair| Bin {
                end: seconds(pair[1].0.monotonic.0),
                length: (seconds(pair[1].0.monotonic.0) - seconds(pair[0].0.monotonic.0)).max(1e-3),
                ..Default::default()
            })
            .collect();
    }
    let (mut rest, mut all) = (0.0, 0.0);
    let twice = devices::written_twice(window);
    for (at, pair) in window.host_series.windows(2).enumerate() {
        let grew = pair[1].1.nr_dirtied?.0.saturating_sub(pair[0].1.nr_dirtied?.0) as f64 * page;
        let known: f64 =
            groups.iter().filter_map(|group| group.bins.get(at)).map(|bin| bin.by_calls + bin.mapped).sum();
        let bin = bins.get_mut(at)?;
        let (end, length) = (bin.end, bin.length);
        let twice: f64 = twice
            .range(..=pair[1].0.monotonic)
            .rev()
            .map_while(|(end, bytes)| (*end > pair[0].0.monotonic).then_some(bytes))
            .sum();
        let grew = (grew - twice).max(0.0);
        let missing = (grew - known).max(0.0);
        *bin = Bin {
            end,
            length,
            wchar: missing,
            calls: (missing / 65_536.0).ceil(),
            by_calls: missing,
            active: u64::from(missing > 0.0),
            ..Default::default()
        };
        rest += missing;
        all += grew;
    }
    let known: f64 = groups.iter().map(|group| group.total.by_calls + group.total.mapped).sum();
    // Counters of processes are read a moment before or after those of the machine.
    if rest < 0.1 * all || all - known < 0.1 * all || all - known < 4.0 * 1_048_576.0 {
        return None;
    }
    let scale = (all - known) / rest;
    for bin in &mut bins {
        bin.wchar *= scale;
        bin.by_calls *= scale;
        bin.calls = (bin.wchar / 65_536.0).ceil();
    }
    let mut group = Group {
        comm: b"unattributed".to_vec(),
        shown: "unattributed".to_owned(),
        processes: 1,
        bins,
        ..Group::default()
    };
    for bin in &group.bins {
        group.total.length += bin.length;
        group.total.wchar += bin.wchar;
        group.total.by_calls += bin.by_calls;
        group.total.calls += bin.calls;
        group.total.active = 1;
    }
    Some(group)
}
