// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory of cgroups that is not page cache. It leaves less of a limit for dirty pages: the kernel takes the limit's share of the
//! page cache and of what is still free below the limit ("writeback: fix incorrect calculation of available memory for memcg
//! domains", 4.4).

use super::machine::Cgroups;
use crate::provenance::Notes;
use floodline_record::units::{Bytes, Nanos};
use floodline_scenario::{Anon, ByteSize, Lasting, Machine, SizeLimit, Step, Task, Time};
use std::collections::BTreeMap;

/// Less than this changes no limit.
const LEAST: u64 = 1 << 20;
/// Part of its smallest limit that a heap fills at most: the model's tasks need room as well.
const FILLS: f64 = 0.9;

/// A heap of each cgroup of the machine, by path in the scenario, bytes.
pub(super) fn heaps(cgroups: &Cgroups, machine: &Machine) -> BTreeMap<String, u64> {
    let mut heaps: BTreeMap<String, u64> = BTreeMap::new();
    for path in machine.cgroups.keys() {
        let Some(held) = cgroups.held(path) else { continue };
        // A parent counts what its children hold.
        let children = || machine.cgroups.keys().filter(|other| parent(other) == Some(path));
        let of_children = children().filter_map(|child| cgroups.held(child)).fold(0, u64::saturating_add);
        let own = held.saturating_sub(of_children);
        // With controllers for its children, a cgroup has no process of its own.
        let without_limit = |child: &&String| machine.cgroups.get(*child).is_some_and(|one| one.memory_max.is_none());
        let holder = match children().next() {
            None => Some(path),
            Some(_) => children().find(without_limit),
        };
        if let Some(holder) = holder.filter(|_| own >= LEAST) {
            let heap = heaps.entry(holder.clone()).or_default();
            *heap = heap.saturating_add(own);
        }
    }
    for (path, heap) in &mut heaps {
        let limit = cgroups.smallest_limit(path).into_iter().chain(limits_above(path, machine)).min();
        *heap = limit.map_or(*heap, |limit| (*heap).min((limit as f64 * FILLS) as u64));
    }
    heaps.retain(|_, heap| *heap >= LEAST);
    heaps
}

/// The cgroup above another one.
fn parent(path: &str) -> Option<&str> {
    path.rsplit_once('/').map(|(parent, _)| parent)
}

/// Limits of a cgroup and of those above it.
fn limits_above(path: &str, machine: &Machine) -> impl Iterator<Item = u64> {
    let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
    ends.filter_map(|end| match machine.cgroups.get(&path[..end])?.memory_max {
        Some(SizeLimit::Size(size)) => Some(size.bytes()),
        _ => None,
    })
}

/// A task that holds a heap for the whole recording.
pub(super) fn task(path: &str, heap: u64, seconds: f64, key: &str, notes: &mut Notes) -> Task {
    notes.measured(key, format!("memory of {path} without its page cache"));
    Task {
        cgroup: Some(path.to_owned()),
        setup: vec![Step::Anon(Anon { size: ByteSize(Bytes(heap)) })],
        steps: vec![Step::Sleep(Lasting { lasting: Time(Nanos((seconds * 1e9) as u64)) })],
        ..Task::default()
    }
}
