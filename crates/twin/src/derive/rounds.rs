// SPDX-License-Identifier: MIT OR Apache-2.0
//! A file that a program writes from its beginning again and again, with or without rests: a ring of samples, an index, an image. If a page is
//! clean again before it is written again, the counters of the program are those of one that appends. The page cache of its cgroup
//! shows the difference: it keeps its size while more bytes become dirty than are in it.

use super::group::{Group, PAGE};
use super::replaced::Reclaimed;
use super::rewrites::Rewritten;
use crate::Recorded;
use floodline_analysis::diagnose::cgroup::is_within;
use floodline_record::id::{Entity, EntityId};
use floodline_record::units::Nanos;

/// Largest growth of the page cache, as a share of what becomes dirty meanwhile.
const NONE_NEW: f64 = 0.1;
/// Largest drop of the page cache from one sample to the next, as a share of it. A program that removes or empties its file makes it drop.
const NONE_GONE: f64 = 0.02;
/// Least part of a program of what becomes dirty in its cgroup: the page cache is of all programs.
const MOST: f64 = 0.8;
/// Times that the page cache must be dirtied while it keeps its size.
const ROUNDS_MIN: f64 = 1.0;
/// Least part of what becomes dirty again that must have been written meanwhile: a page becomes dirty again only after that.
const CLEANED: f64 = 0.9;
/// Smallest file, bytes.
const FILE_MIN: f64 = 65_536.0;

/// The file of a program that keeps writing to it from its beginning. `None` where its cgroup has no page cache of its own, where the kernel
/// may have reclaimed some of that, and where the page cache grows or drops.
pub(super) fn file(group: &Group, all: &[Group], recorded: &Recorded) -> Option<Rewritten> {
    let window = &recorded.window;
    let total = &group.total;
    let id = group.cgroup?;
    let path = |id: &EntityId| match window.entities.get(id) {
        Some(Entity::Cgroup { path, .. }) => Some(path),
        _ => None,
    };
    let own = path(&id).filter(|path| path.as_bytes() != b"/")?;
    if total.cancelled > 0.0 || total.direct > 0.0 || total.mapped > 0.0 {
        return None;
    }
    // Its page cache is that of the cgroups below, too.
    let is_here = |other: &&Group| {
        other.cgroup.is_some_and(|other| other == id || path(&other).is_some_and(|path| is_within(path, own)))
    };
    let here: Vec<&Group> = all.iter().filter(is_here).collect();
    let dirtied: f64 = here.iter().map(|other| other.total.by_calls + other.total.mapped).sum();
    if total.by_calls < MOST * dirtied || Reclaimed::of(window).is_of(group, window) {
        return None;
    }
    let start = window.first_at?.monotonic;
    let page = window.facts.as_ref().map_or(PAGE, |facts| facts.page_size.max(1) as f64);
    let written = window.host.growth.nr_written.map(|pages| pages.0 as f64 * page);
    let (first, bytes) = kept(recorded.cached.get(&id)?, start, &Later::of(&here))?;
    let why =
        "the page cache of its cgroup keeps its size while more becomes dirty: it writes the same file again and again";
    if written.is_some_and(|written| written + bytes < CLEANED * total.by_calls) {
        return None;
    }
    let is_there = first >= (1.0 - NONE_GONE) * bytes;
    (bytes >= FILE_MIN).then_some(Rewritten { bytes, is_ring: true, run: 1.0, is_there, dirty: 0.0, why })
}

/// What becomes dirty from a time on.
struct Later {
    /// Begin of each interval in seconds, in order of time, and the bytes from there to the end.
    from: Vec<(f64, f64)>,
}

impl Later {
    fn of(groups: &[&Group]) -> Later {
        let bins = groups.iter().flat_map(|group| &group.bins);
        let mut from: Vec<(f64, f64)> = bins.map(|bin| (bin.end - bin.length, bin.by_calls + bin.mapped)).collect();
        from.sort_by(|one, other| one.0.total_cmp(&other.0));
        let mut sum = 0.0;
        for (_, bytes) in from.iter_mut().rev() {
            sum += *bytes;
            *bytes = sum;
        }
        Later { from }
    }

    fn than(&self, seconds: f64) -> f64 {
        let at = self.from.partition_point(|(begin, _)| *begin < seconds - 1e-6);
        self.from.get(at).map_or(0.0, |(_, bytes)| *bytes)
    }
}

/// The page cache at the begin of the recording and at its end, if it keeps its size from some time on.
fn kept(levels: &[(Nanos, u64)], start: Nanos, later: &Later) -> Option<(f64, f64)> {
    let seconds = |at: Nanos| at.0.saturating_sub(start.0) as f64 / 1e9;
    let levels: Vec<(f64, f64)> = levels.iter().map(|(at, bytes)| (seconds(*at), *bytes as f64)).collect();
    let last = levels.last()?.1;
    let is_gone = |pair: &[(f64, f64)]| pair[1].1 < (1.0 - NONE_GONE) * pair[0].1;
    let dropped = levels.windows(2).rposition(is_gone).map_or(0, |at| at + 1);
    let keeps = |(from, first): &&(f64, f64)| {
        let more = later.than(*from);
        more >= ROUNDS_MIN * last && last - first <= NONE_NEW * more
    };
    let first = levels.first().filter(|(from, _)| *from <= 1e-6).map_or(0.0, |(_, first)| *first);
    levels[dropped..].iter().any(|level| keeps(&level)).then_some((first, last))
}

#[cfg(test)]
mod tests {
    use super::super::group::{Bin, sum};
    use super::*;
    use floodline_testkit::{Fixture, grows};

    const MIB: f64 = 1_048_576.0;

    /// A program of /box that dirties 2 MiB in each of 30 seconds. The closure gives the page cache of /box at each second, MiB.
    fn told(cached: impl Fn(usize) -> f64) -> Option<Rewritten> {
        told_of(cached, 2.0)
    }

    /// The same, with the MiB that the machine writes in each second.
    fn told_of(cached: impl Fn(usize) -> f64, written: f64) -> Option<Rewritten> {
        let pages = written * MIB / PAGE;
        let host = Fixture::healthy().seconds(30).cgroup("/box", |_, _| ());
        let window = host.host(move |t, row| row.nr_written = grows(t, 0, pages)).window();
        let is_box = |entity: &Entity| matches!(entity, Entity::Cgroup { path, .. } if path.as_bytes() == b"/box");
        let id = window.entities.iter().find(|(_, entity)| is_box(entity)).map(|(id, _)| *id)?;
        let start = window.first_at?.monotonic.0;
        let level = |at: usize| (Nanos(start + at as u64 * 1_000_000_000), (cached(at) * MIB) as u64);
        let mut recorded = Recorded::default();
        recorded.window = window;
        recorded.cached.insert(id, (0..=30).map(level).collect());
        let bin = |at: usize| Bin {
            end: at as f64,
            length: 1.0,
            by_calls: 2.0 * MIB,
            wchar: 2.0 * MIB,
            calls: 2.0 * MIB / PAGE,
            ..Bin::default()
        };
        let bins: Vec<Bin> = (1..=30).map(bin).collect();
        let group = Group { cgroup: Some(id), total: sum(&bins), bins, ..Group::default() };
        file(&group, std::slice::from_ref(&group), &recorded)
    }

    #[test]
    fn a_page_cache_that_keeps_its_size_while_more_becomes_dirty_has_a_file_that_is_written_again() {
        let there = told(|_| 3.0).expect("it keeps its size");
        assert!((there.bytes / MIB - 3.0).abs() < 0.01 && there.is_ring && there.is_there, "{there:?}");
        let made = told(|at| (2.0 * at as f64).min(6.0)).expect("it keeps its size once the file is there");
        assert!((made.bytes / MIB - 6.0).abs() < 0.01 && !made.is_there, "{made:?}");
        // Some lines of a log beside it.
        assert!(told(|at| 3.0 + 0.05 * at as f64).is_some());
    }

    #[test]
    fn a_page_cache_that_grows_drops_or_is_larger_has_no_such_file() {
        assert!(told(|at| 2.0 * at as f64).is_none(), "it grows by what is appended");
        assert!(told(|at| 2.0 * (at % 7) as f64).is_none(), "a file is removed");
        assert!(told(|_| 90.0).is_none(), "less becomes dirty than is in it");
        assert!(told_of(|_| 3.0, 0.2).is_none(), "its pages were never clean again");
    }

    #[test]
    fn the_twin_of_a_ring_writes_a_file_of_its_size() {
        use floodline_record::record::{Record, Sink};
        use floodline_record::version::KernelVersion;
        use floodline_scenario::ScenarioFile;
        // 1 MiB in each second, which is clean again when its turn comes.
        let text = "name = \"s\"\nsummary = \"s\"\n[machine]\nmemory = \"1 GiB\"\n\
            sysctl.vm = { dirty_expire_centisecs = 100, dirty_writeback_centisecs = 100 }\n\
            devices.a.size = \"4 GiB\"\nmounts.\"/b\" = { type = \"xfs\", device = \"a\" }\n\
            cgroups.box.memory_max = \"128 MiB\"\n[workload]\nduration = \"30s\"\n[workload.tasks.ring]\ncgroup = \"box\"\n\
            steps = [{ write = { file = \"/b/ring\", size = \"4 MiB\", block = \"64 KiB\", rate = \"16/s\" } }]\n";
        let scenario = ScenarioFile::parse(text).expect("it is good").variants.remove("default").expect("the only one");
        let mut recorded = Recorded::default();
        let take = |record: Record| {
            let Ok(()) = recorded.record(&record);
            Ok(())
        };
        let options = floodline_sim::Options::new("host", KernelVersion::new(6, 12, 0));
        floodline_sim::simulate(&scenario, &options, take, |_| true).expect("it runs");
        let twin = crate::of(&recorded, &crate::Options::default()).expect("it writes");
        let told = format!("{:?}", twin.scenario.workload.tasks);
        assert!(told.contains("size: Some(ByteSize(Bytes(4194304)))"), "{told}");
    }
}
