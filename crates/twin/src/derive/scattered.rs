// SPDX-License-Identifier: MIT OR Apache-2.0
//! Write calls to pages all over a file: a database, an index. As long as what is dirty is little, they find no dirty page,
//! and their counters are those of a program that appends. The device tells: an append arrives in large requests, and scattered
//! pages arrive in requests that are as small as the calls.

use super::group::{Group, PAGE};
use super::machine::Place;
use super::rewrites::{REPEATED_MIN, Rewritten, passed};
use super::syncs::Syncs;
use crate::Recorded;
use floodline_analysis::diagnose::device;
use floodline_record::sample::HostRow;

/// Fewest bytes and fewest requests that tell.
const BYTES_MIN: f64 = 1_048_576.0;
const REQUESTS_MIN: f64 = 256.0;
/// Sizes of calls that tell, bytes. Smaller ones are one-page files. Larger ones tell only where the device takes larger requests, and
/// hardly two of them arrive in one: an append arrives in requests as large as the device takes.
const CALL: std::ops::RangeInclusive<f64> = 0.9 * PAGE..=16_384.0;
const LARGE_CALL_MAX: f64 = 131_072.0;
/// Part of the bytes of a device that the program must have written.
const MOST: f64 = 0.8;
/// Mean request over mean call, at most: some neighbours are written together.
const REQUEST_MAX: f64 = 2.5;
const LARGE_REQUEST_MAX: f64 = 1.3;
/// Pages of a sync from which the sizes of its requests tell where they are.
const PAGES_PER_SYNC: f64 = 16.0;
/// Writes of data over those that appends could need at most, from which syncs of fewer pages find them all over a file.
const MORE_THAN_APPENDS: f64 = 1.05;
/// Programs that share a flush, at most.
const SHARING_MAX: f64 = 4.0;
/// Pages next to each other, at most, where they are written all over a file.
const RUN_MAX: f64 = 3.0;
/// Requests that a sync of another program adds: its data, a descriptor and a commit block of the journal.
const PER_SYNC: f64 = 3.0;
/// Largest size of a file over the bytes written, where all of it was cached before.
const LARGE: f64 = 4.0;
/// Growth of the page cache over the bytes written from which nearly each page was written once.
const ALL_NEW: f64 = 0.88;
/// The same below which nearly all of the file was cached before.
const NONE_NEW: f64 = 0.05;

/// Mean size of the calls of a program, bytes.
fn block(group: &Group) -> f64 {
    passed(&group.total) / group.total.calls.max(1.0)
}

/// Whether all that a program wrote by calls was written to the device.
fn is_written(group: &Group) -> bool {
    let total = &group.total;
    total.by_calls > 0.0 && total.direct <= 0.0 && total.cancelled <= 0.0
}

/// Whether the calls of a program have the size of those to pages all over a file, and all of them are written.
fn is_candidate(group: &Group) -> bool {
    CALL.contains(&block(group)) && is_written(group)
}

/// Whether each of its syncs writes few pages: it sends small requests wherever they are.
fn is_of_few_pages(group: &Group, syncs: Syncs) -> bool {
    syncs.call.is_some() && syncs.at_ends.is_none() && group.total.by_calls < PAGES_PER_SYNC * PAGE * syncs.count
}

/// The file of a program that writes all over it. `here` are all programs that write to its device, with their syncs.
pub(super) fn file(
    group: &Group,
    syncs: Syncs,
    place: &Place,
    here: &[(&Group, Syncs)],
    recorded: &Recorded,
) -> Option<Rewritten> {
    let total = &group.total;
    if total.by_calls < BYTES_MIN || !is_written(group) {
        return None;
    }
    let run = match is_of_few_pages(group, syncs) {
        true if is_candidate(group) => run_of_few(place, here)?,
        true => return None,
        // A sync sends its calls as they are, wherever they are.
        false if is_candidate(group) || syncs.call.is_none() => run_of_many(group, place, here)?,
        false => return None,
    };
    let bytes = size(total.by_calls, cached(group, recorded)?, held(group, recorded));
    // In a file that is smaller than what was written, large calls would find dirty pages, and fewer bytes would become dirty. Where the
    // device takes no larger requests, an append arrives in such, too.
    let most = device::by_dev(&recorded.window, place.dev).and_then(|device| device.facts?.max_request);
    let is_split = most.is_some_and(|most| 2.0 * block(group) > most.0 as f64);
    if block(group) > *CALL.end() && (is_split || bytes < total.by_calls) {
        return None;
    }
    Some(Rewritten {
        is_ring: false,
        is_there: false,
        dirty: 0.0,
        bytes,
        run,
        why: "the device got its pages in requests as small as its calls: it writes all over a file",
    })
}

/// Pages next to each other of a program that makes most of the writes of its device, and syncs many pages at once or none.
fn run_of_many(group: &Group, place: &Place, here: &[(&Group, Syncs)]) -> Option<f64> {
    let total = &group.total;
    let all: f64 = here.iter().map(|(other, _)| other.total.dirtied()).sum();
    let of_syncs: f64 = here.iter().map(|(_, syncs)| PER_SYNC * syncs.count).sum();
    let requests = place.writes as f64 - of_syncs;
    let mean = place.written as f64 * (total.by_calls / all.max(1.0)) / requests;
    let block = block(group);
    let most = match block {
        _ if CALL.contains(&block) => REQUEST_MAX,
        _ if (*CALL.end()..=LARGE_CALL_MAX).contains(&block) => LARGE_REQUEST_MAX,
        _ => return None,
    };
    let is_it = total.by_calls >= MOST * all && requests >= REQUESTS_MIN && mean <= most * (block / PAGE).ceil() * PAGE;
    is_it.then_some(1.0)
}

/// Pages next to each other of programs that sync a few pages at a time and together make most of the writes of their device. An
/// append needs one write for the data of each sync, beside a log that is flushed: at most one for each flush. Programs that sync at
/// the same time share flushes.
fn run_of_few(place: &Place, here: &[(&Group, Syncs)]) -> Option<f64> {
    let alike = || here.iter().filter(|(group, syncs)| is_candidate(group) && is_of_few_pages(group, *syncs));
    let bytes: f64 = alike().map(|(group, _)| group.total.by_calls).sum();
    let all: f64 = here.iter().map(|(other, _)| other.total.dirtied()).sum();
    let sharing = (alike().map(|(group, _)| group.concurrent()).sum::<u64>() as f64).clamp(1.0, SHARING_MAX);
    let flushes = place.flushes as f64;
    let of_others: f64 =
        here.iter().map(|(_, syncs)| syncs.count).sum::<f64>() - alike().map(|(_, syncs)| syncs.count).sum::<f64>();
    let of_data = place.writes as f64 - flushes - of_others;
    let run = bytes / PAGE / of_data.max(1.0);
    let is_it = bytes >= MOST * all
        && of_data >= REQUESTS_MIN
        && of_data > MORE_THAN_APPENDS * sharing * flushes
        && run <= RUN_MAX;
    is_it.then(|| run.max(1.0))
}

/// Bytes of page cache at the begin and at the end: of the cgroup of a group, or of the machine. `None` where the kernel reclaimed some of
/// it meanwhile, unless the cgroup kept nearly all that the group wrote: then others lost theirs.
fn cached(group: &Group, recorded: &Recorded) -> Option<(f64, f64)> {
    let window = &recorded.window;
    let growth = &window.host.growth;
    let is_reclaimed = [growth.pgscan_kswapd, growth.pgscan_direct].into_iter().flatten().any(|pages| pages.0 > 0);
    let of_cgroup = || {
        let span = group.cgroup.and_then(|id| window.cgroups.get(&id))?;
        let bytes = |row: &floodline_record::sample::CgroupRow| {
            Some(row.inactive_file?.0.saturating_add(row.active_file?.0) as f64)
        };
        Some((bytes(&span.first)?, bytes(&span.last)?))
    };
    if is_reclaimed {
        return of_cgroup().filter(|(before, after)| after - before >= ALL_NEW * group.total.by_calls);
    }
    let pages = |row: &HostRow| Some(row.nr_inactive_file?.0.saturating_add(row.nr_active_file?.0) as f64 * PAGE);
    of_cgroup().or_else(|| Some((pages(&window.host.first)?, pages(&window.host.last)?)))
}

/// Dirty bytes of a program on average: of the machine's, the part that it wrote of all that became dirty.
fn held(group: &Group, recorded: &Recorded) -> f64 {
    let window = &recorded.window;
    let series = &window.host_series;
    let sum: f64 = series.iter().filter_map(|(_, row)| Some(row.nr_dirty?.0 as f64 * PAGE)).sum();
    let all = window.host.growth.nr_dirtied.map_or(0.0, |pages| pages.0 as f64 * PAGE);
    let own = group.total.by_calls;
    sum / series.len().max(1) as f64 * own / all.max(own).max(1.0)
}

/// Size of a file, by how many of the written bytes were new to the page cache. Where all were, it is larger than can be told. While `held`
/// bytes of the file are dirty, that part of the calls finds a dirty page: hardly any did. So a file that is all cached is not taken for
/// one as small as what others of its cgroup add to the page cache.
fn size(written: f64, (before, after): (f64, f64), held: f64) -> f64 {
    let new = (after - before).clamp(0.0, ALL_NEW * written);
    if new < NONE_NEW * written {
        return after.clamp(BYTES_MIN, (LARGE * written).max(held / REPEATED_MIN).max(BYTES_MIN));
    }
    let least = (held / REPEATED_MIN).max(BYTES_MIN);
    // Of `n` random writes to `all` places, all (1 - exp(-n / all)) meet a new one.
    let share = |x: f64| (1.0 - (-x).exp()) / x;
    let (mut low, mut high) = (1e-3, 1e3);
    for _ in 0..64 {
        let middle = (low + high) / 2.0;
        if share(middle) > new / written { low = middle } else { high = middle }
    }
    (written / low).max(least)
}

#[cfg(test)]
mod tests {
    use super::super::group::Bin;
    use super::*;
    use floodline_scenario::SyncCall;

    #[test]
    fn programs_that_sync_few_pages_scatter_them_where_the_disk_gets_more_requests_than_appends_need() {
        // 1,400 calls of a page, seven for each sync.
        let of = |direct: f64| Group {
            total: Bin {
                by_calls: 1400.0 * PAGE - direct,
                wchar: 1400.0 * PAGE,
                calls: 1400.0,
                direct,
                ..Bin::default()
            },
            ..Group::default()
        };
        let syncs = Syncs { count: 200.0, call: Some(SyncCall::Fdatasync), ..Syncs::default() };
        let run = |groups: &[Group], writes: u64| {
            let place = Place { flushes: 600, writes, ..Place::of_disk("vda") };
            let here: Vec<(&Group, Syncs)> = groups.iter().map(|group| (group, syncs)).collect();
            run_of_few(&place, &here)
        };
        let three = [of(0.0), of(0.0), of(0.0)];
        assert_eq!(run(&three, 1900), None, "600 appends with their journal need 1,800 requests");
        assert_eq!(run(&three, 2400), None, "three appends may share a flush");
        assert_eq!(run(&three, 2700), Some(2.0));
        assert_eq!(run(&three, 4800), Some(1.0));
        assert_eq!(run(&[of(0.0), of(PAGE), of(PAGE)], 4200), None, "most data may be of direct writes");
    }

    #[test]
    fn large_calls_that_arrive_as_they_are_scatter_what_they_write() {
        // 400 calls of some KiB each, and the requests of the device.
        let run = |kib: f64, requests: u64| {
            let bytes = 400.0 * kib * 1024.0;
            let total = Bin { by_calls: bytes, wchar: bytes, calls: 400.0, ..Bin::default() };
            let group = Group { total, ..Group::default() };
            let place = Place { writes: requests, written: bytes as u64, ..Place::of_disk("vda") };
            run_of_many(&group, &place, &[(&group, Syncs::default())])
        };
        assert_eq!([run(64.0, 400), run(128.0, 350)], [Some(1.0); 2]);
        assert_eq!(run(64.0, 290), None, "neighbours arrive in one request");
        assert_eq!(run(256.0, 400), None, "a device may take no larger request");
        assert_eq!(run(8.0, 290), Some(1.0));
    }

    #[test]
    fn what_is_new_to_the_page_cache_tells_the_size_of_the_file() {
        const MIB: f64 = 1_048_576.0;
        let near = |told: f64, real: f64| assert!((told / real - 1.0).abs() < 0.02, "{told} of {real}");
        // A gibibyte written to random places of another one leaves 1 - 1/e of it in the page cache.
        let told = |written: f64, cached| size(written, cached, 0.0);
        near(told(1024.0 * MIB, (100.0 * MIB, 100.0 * MIB + 1024.0 * MIB * 0.632)), 1024.0 * MIB);
        // All of it was cached before.
        near(told(600.0 * MIB, (500.0 * MIB, 505.0 * MIB)), 505.0 * MIB);
        // Little is written, and hardly a call finds one of the dirty pages.
        near(told(5.0 * MIB, (160.0 * MIB, 160.0 * MIB)), 20.0 * MIB);
        near(size(5.0 * MIB, (160.0 * MIB, 160.0 * MIB), 3.0 * MIB), 100.0 * MIB);
        // Others of the cgroup added an eighth of that to the page cache.
        near(size(41.0 * MIB, (2000.0 * MIB, 2005.1 * MIB), 7.5 * MIB), 250.0 * MIB);
        // A file that is larger than can be told.
        near(told(100.0 * MIB, (0.0, 99.0 * MIB)), 383.0 * MIB);
    }
}
