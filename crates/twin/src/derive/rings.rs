// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page cache of a cgroup as a measure of its files. A program that appends makes it grow by all that it writes. A program that writes the
//! same file round and round does not, also where each of its calls finds clean pages, so that its counters are those of an append. Unlike
//! the page cache of the machine, that of a cgroup holds nothing of programs in other cgroups.

use super::group::{Group, PAGE};
use super::replaced::is_reclaimed;
use super::rewrites::{CALL_MIN, REPEATED_MIN, Rewritten, passed};
use super::syncs::Syncs;
use floodline_analysis::diagnose::cgroup::is_within;
use floodline_record::id::{Entity, EntityId};
use floodline_record::units::Bytes;
use floodline_record::window::Window;

/// Least part of a program of what is dirtied in its cgroup and below, and largest part of that which may be read beside.
const MOST: f64 = 0.8;
const READ_MAX: f64 = 0.1;
/// What a program writes over its file, at least: then it has written all of it again.
const ROUNDS: f64 = 2.0;
/// Smallest file.
const FILE_MIN: f64 = 1_048_576.0;
/// Least part of the page cache at the end that is there at the begin if the file is.
const THERE: f64 = 0.9;

/// Page cache of the cgroup of a program, bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cached {
    first: f64,
    last: f64,
    most: f64,
    /// Mapped pages: those of programs and libraries.
    mapped: f64,
}

impl Cached {
    /// The page cache of the cgroup of a program. `None` where it was not read. A trace tells more: a program that writes a new file and renames
    /// it, or that removes files, leaves the page cache as small, and its calls come as in the recording.
    pub(super) fn of(group: &Group, window: &Window) -> Option<Cached> {
        if group.synced.is_some() {
            return None;
        }
        let span = window.cgroups.get(&group.cgroup?)?;
        let bytes = |bytes: Option<Bytes>| bytes.map(|bytes| bytes.0 as f64);
        Some(Cached {
            first: bytes(span.first.file)?,
            last: bytes(span.last.file)?,
            most: bytes(span.max.file)?,
            mapped: bytes(span.max.file_mapped).unwrap_or(0.0),
        })
    }

    /// How much it grew.
    pub(super) fn growth(self) -> f64 {
        self.last - self.first
    }
}

/// Whether a program writes most of what is written in its cgroup and below, and little is read there.
pub(super) fn is_alone(group: &Group, all: &[Group], window: &Window) -> bool {
    let path = |id: &EntityId| match window.entities.get(id) {
        Some(Entity::Cgroup { path, .. }) => Some(path),
        _ => None,
    };
    let Some(id) = group.cgroup else { return false };
    let has_below = window.cgroups.get(&id).is_none_or(|span| span.max.nr_descendants.is_none_or(|count| count.0 > 0));
    let own = path(&id).filter(|_| has_below);
    let is_below = |other: &EntityId| own.zip(path(other)).is_some_and(|(own, path)| is_within(path, own));
    let is_there = |other: &&Group| other.cgroup.is_some_and(|other| other == id || is_below(&other));
    let (dirtied, read) = all.iter().filter(is_there).fold((0.0, 0.0), |(dirtied, read), other| {
        (dirtied + other.total.by_calls + other.total.mapped, read + other.total.read)
    });
    group.total.by_calls >= MOST * dirtied && read <= READ_MAX * dirtied
}

/// The file of a program that writes it round and round, and syncs nothing. `None` where the page cache of its cgroup may hold all that it
/// writes.
pub(super) fn file(group: &Group, all: &[Group], syncs: Syncs, window: &Window) -> Option<Rewritten> {
    let total = &group.total;
    let is_plain = total.cancelled <= 0.0 && total.direct <= 0.0 && total.mapped <= 0.0 && syncs.call.is_none();
    // Calls of less than a page fill the page of the one before. Calls that dirty more than they pass dirty the rest of a folio.
    let is_all = (total.by_calls / passed(total).max(1.0) - 1.0).abs() <= REPEATED_MIN;
    let is_whole = total.wchar >= CALL_MIN * total.calls && is_all;
    if !is_plain || !is_whole || group.made.is_some() {
        return None;
    }
    let cached = Cached::of(group, window)?;
    let bytes = ((cached.most - cached.mapped) / PAGE).round() * PAGE;
    let why = "the page cache of its cgroup stays smaller than what it writes: it writes the same file again";
    let is_there = cached.first >= THERE * cached.most;
    let is_again = bytes >= FILE_MIN && total.by_calls >= ROUNDS * bytes;
    let is_shown = is_again && is_alone(group, all, window) && !is_reclaimed(group, window);
    is_shown.then_some(Rewritten { bytes, is_ring: true, run: 1.0, is_there, dirty: 0.0, why })
}

#[cfg(test)]
mod tests {
    use super::super::group::{Bin, Synced, sum};
    use super::*;
    use floodline_record::units::Limit;
    use floodline_scenario::SyncCall;
    use floodline_testkit::{Fixture, mib};

    const MIB: f64 = 1_048_576.0;

    /// A program in /ring that writes 2 MiB a second, and the recording of a cgroup whose page cache is so large at each second, in MiB.
    fn host(cached: impl Fn(f64) -> f64 + 'static, limit: f64) -> (Group, Window) {
        let window = Fixture::healthy()
            .cgroup("/ring", move |t, row| {
                row.memory_current = Some(Bytes(mib(cached(t) + 1.0)));
                row.file = Some(Bytes(mib(cached(t))));
                row.file_mapped = Some(Bytes(0));
            })
            .limits("/ring", move |_, row| row.memory_max = Some(Limit(mib(limit))))
            .window();
        let is_it = |entity: &Entity| matches!(entity, Entity::Cgroup { path, .. } if path.as_bytes() == b"/ring");
        let cgroup = window.entities.iter().find(|(_, entity)| is_it(entity)).map(|(id, _)| *id);
        let bin = |at: usize| Bin {
            end: at as f64,
            length: 1.0,
            by_calls: 2.0 * MIB,
            wchar: 2.0 * MIB,
            calls: 128.0,
            ..Bin::default()
        };
        let bins: Vec<Bin> = (1..=20).map(bin).collect();
        (Group { cgroup, total: sum(&bins), bins, ..Group::default() }, window)
    }

    fn told((group, window): &(Group, Window)) -> Option<(f64, bool)> {
        let file = file(group, std::slice::from_ref(group), Syncs::default(), window)?;
        Some((file.bytes / MIB, file.is_there))
    }

    #[test]
    fn the_page_cache_of_a_cgroup_tells_a_ring() {
        assert_eq!(told(&host(|t| (2.0 * t).min(3.0), 64.0)), Some((3.0, false)), "it is made in the recording");
        assert_eq!(told(&host(|_| 3.0, 64.0)), Some((3.0, true)));
        assert_eq!(told(&host(|t| 4.0 * t, 64.0)), None, "an append: the recording has ten seconds");
        assert_eq!(told(&host(|_| 30.0, 64.0)), None, "it may hold all of it");
        assert_eq!(told(&host(|_| 3.0, 4.0)), None, "the limit of the cgroup may hold it small");
    }

    #[test]
    fn other_writes_hide_a_ring() {
        let (group, window) = host(|_| 3.0, 64.0);
        let with = |change: fn(&mut Group)| {
            let mut group = group.clone();
            change(&mut group);
            told(&(group, window.clone()))
        };
        assert!(with(|_| ()).is_some());
        assert_eq!(with(|group| group.total.cancelled = 4096.0), None, "it drops files");
        assert_eq!(with(|group| group.total.calls = 1e6), None, "calls of a few bytes");
        assert_eq!(with(|group| group.total.wchar *= 2.0), None, "half of them dirty nothing");
        assert_eq!(with(|group| group.total.wchar *= 0.8), None, "they dirty more than they pass");
        assert_eq!(with(|group| group.synced = Some(Synced::default())), None, "a trace tells more");
        assert_eq!(with(|group| group.total.read = 30.0 * MIB), None, "what is read is in the page cache, too");
        let beside = |cgroup| {
            let other = Group { cgroup, ..group.clone() };
            file(&group, &[group.clone(), other], Syncs::default(), &window).is_some()
        };
        assert!(beside(None), "in another cgroup");
        assert!(!beside(group.cgroup), "in its own");
        let synced = Syncs { count: 20.0, call: Some(SyncCall::Fsync), ..Syncs::default() };
        assert!(file(&group, std::slice::from_ref(&group), synced, &window).is_none());
    }
}
