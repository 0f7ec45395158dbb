// SPDX-License-Identifier: MIT OR Apache-2.0
//! Time of a small request of a device by its counters, without its wait for other requests. Does not tell how many bytes or requests
//! the device takes in a second.

use crate::provenance::Notes;
use floodline_analysis::diagnose::device::Device as Seen;
use floodline_record::sample::DiskRow;
use floodline_record::units::Nanos;
use floodline_record::window::Window;
use floodline_scenario::Time;

/// Requests of an interval that are few.
const FEW: u64 = 8;
/// Largest mean size of small requests, bytes.
const SMALL: u64 = 65_536;
/// Fewest intervals whose median counts.
const TIMES_MIN: usize = 5;
/// The model's own value where a scenario has none, and what is near it, nanoseconds.
const USUAL: std::ops::Range<u64> = 250_000..1_000_000;
/// Shortest time of a request that the counters show, nanoseconds.
const SHORTEST: u64 = 10_000;
/// Part of the intervals in which the fewest requests were under way, or in which requests were fastest.
const QUIETEST: usize = 4;

/// What a device did between two samples.
#[derive(Clone, Copy, Debug)]
struct Did {
    requests: u64,
    bytes: u64,
    /// Times of all requests together, nanoseconds.
    time: u64,
    /// The same of writes alone.
    writes: u64,
    written: u64,
    write_time: u64,
    /// Time with a request under way, and length of the interval, nanoseconds.
    busy: u64,
    length: u64,
}

impl Did {
    fn between((begin, before): (Nanos, &DiskRow), (end, now): (Nanos, &DiskRow)) -> Option<Did> {
        let grew = |before: Option<u64>, now: Option<u64>| now?.checked_sub(before?);
        let both = |one: Option<u64>, other: Option<u64>| Some(one?.saturating_add(other?));
        let count = |row: &DiskRow| both(row.writes.map(|n| n.0), row.reads.map(|n| n.0));
        let bytes = |row: &DiskRow| both(row.written.map(|n| n.0), row.read.map(|n| n.0));
        let time = |row: &DiskRow| both(row.write_time.map(|n| n.0), row.read_time.map(|n| n.0));
        Some(Did {
            requests: grew(count(before), count(now))?,
            bytes: grew(bytes(before), bytes(now))?,
            time: grew(time(before), time(now))?,
            writes: grew(before.writes.map(|n| n.0), now.writes.map(|n| n.0))?,
            written: grew(before.written.map(|n| n.0), now.written.map(|n| n.0))?,
            write_time: grew(before.write_time.map(|n| n.0), now.write_time.map(|n| n.0))?,
            busy: grew(before.io_time.map(|n| n.0), now.io_time.map(|n| n.0))?,
            length: end.0.saturating_sub(begin.0),
        })
    }

    /// Mean time of a request.
    fn each(&self) -> Option<u64> {
        self.time.checked_div(self.requests)
    }

    fn is_small(&self) -> bool {
        self.requests > 0 && self.bytes <= self.requests.saturating_mul(SMALL)
    }

    /// Mean time of a write in an interval of small writes that hardly waited for each other. The mean of all requests does not show it
    /// where large reads run beside them.
    fn each_small_write(&self) -> Option<u64> {
        let is_small = self.written <= self.writes.saturating_mul(SMALL);
        let is_one_by_one = self.writes <= FEW || self.write_time <= self.busy.saturating_add(self.busy / 5);
        self.write_time.checked_div(self.writes).filter(|_| is_small && is_one_by_one)
    }

    /// Whether hardly a request waited for another one.
    fn is_one_by_one(&self) -> bool {
        self.requests <= FEW || self.time <= self.busy.saturating_add(self.busy / 5)
    }

    /// Whether the device had room for more for at least a tenth of the time.
    fn has_room(&self) -> bool {
        self.busy < self.length / 10 * 9
    }

    /// Mean number of requests under way while there were any, in thousandths.
    fn depth(&self) -> u64 {
        self.time.saturating_mul(1000).checked_div(self.busy).unwrap_or(u64::MAX)
    }
}

/// Intervals of a device in which it completed requests.
fn intervals(window: &Window, seen: &Seen<'_>) -> Vec<Did> {
    let series = window.disk_series.get(&seen.id).map(Vec::as_slice).unwrap_or_default();
    let did =
        |pair: &[(Nanos, std::sync::Arc<DiskRow>)]| Did::between((pair[0].0, &pair[0].1), (pair[1].0, &pair[1].1));
    series.windows(2).filter_map(did).filter(|did| did.requests > 0).collect()
}

/// Time of a small request of a device. `is_free` tells whether nothing but the requests themselves is known to hold requests up: no seeks,
/// and no limit of requests.
pub(super) fn latency(window: &Window, seen: &Seen<'_>, is_free: bool, key: &str, notes: &mut Notes) -> Option<Time> {
    let own = intervals(window, seen);
    // The md of old kernels counts no times: those of its disks are left.
    let (all, is_below) = match own.iter().any(|did| did.time > 0) {
        true => (own, false),
        false => (seen.bottoms().iter().flat_map(|disk| intervals(window, disk)).collect(), true),
    };
    let (nanos, origin) = of(&all, is_free)?;
    let key = format!("{key}.latency");
    match (is_below, origin) {
        (true, _) => notes.derived(key, "time of a small request of the disks below it"),
        (false, Origin::Single) => {
            notes.measured(key, "median time of a small request while few requests were under way");
        }
        (false, Origin::Quietest) => {
            notes.derived(key, "median time of a small request in the quarter with the fewest requests under way");
        }
        (false, Origin::BesideReads) => {
            notes.derived(key, "time of a small write beside large reads, where few writes were under way");
        }
        (false, Origin::Shortest) => {
            notes.derived(key, "time of a request in the interval in which it was shortest");
        }
    }
    Some(Time(Nanos(nanos)))
}

/// Which intervals tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// Those with single requests.
    Single,
    /// Those with the fewest requests under way: there were never single ones.
    Quietest,
    /// Those with few small writes: large reads were always beside them.
    BesideReads,
    /// The one with the shortest time of a request.
    Shortest,
}

fn of(all: &[Did], is_free: bool) -> Option<(u64, Origin)> {
    let times = |is_it: fn(&Did) -> bool| -> Vec<u64> {
        all.iter().filter(|did| did.is_small() && is_it(did)).filter_map(Did::each).collect()
    };
    if let Some(median) = median(times(Did::is_one_by_one)) {
        let is_unusual = !USUAL.contains(&median) && median >= SHORTEST;
        return is_unusual.then_some((rounded(median), Origin::Single));
    }
    let mut quiet: Vec<&Did> = all.iter().filter(|did| did.is_small() && did.has_room()).collect();
    quiet.sort_by_key(|did| did.depth());
    let quarter = quiet.len() / QUIETEST;
    let quietest = median(quiet.iter().take(quarter).filter_map(|did| did.each()).collect());
    if let Some(median) = quietest.filter(|median| is_free && *median >= USUAL.end) {
        return Some((rounded(median), Origin::Quietest));
    }
    if let Some(nanos) = beside_reads(all).filter(|nanos| is_free && *nanos >= USUAL.end) {
        return Some((rounded(nanos), Origin::BesideReads));
    }
    // Always busy with several requests: the interval with the shortest request time is the closest to a single one.
    let least = all.iter().filter(|did| did.requests >= FEW).filter_map(Did::each).min()?;
    (SHORTEST..USUAL.start).contains(&least).then_some((least / SHORTEST * SHORTEST, Origin::Shortest))
}

/// Time of a small write in intervals with large reads: the median while the device had room for more. On a device that reads keep full,
/// a write may wait for them, so the faster quarter tells.
fn beside_reads(all: &[Did]) -> Option<u64> {
    let mixed = || all.iter().filter(|did| did.requests > did.writes && !did.is_small());
    let roomy: Vec<u64> = mixed().filter(|did| did.has_room()).filter_map(Did::each_small_write).collect();
    median(roomy).or_else(|| {
        let mut times: Vec<u64> = mixed().filter_map(Did::each_small_write).collect();
        times.sort_unstable();
        times.get(times.len() / QUIETEST).copied().filter(|_| times.len() >= QUIETEST * TIMES_MIN)
    })
}

/// Median of enough times.
fn median(mut times: Vec<u64>) -> Option<u64> {
    times.sort_unstable();
    times.get(times.len() / 2).copied().filter(|_| times.len() >= TIMES_MIN)
}

/// Whole milliseconds of long times.
fn rounded(nanos: u64) -> u64 {
    const MS: u64 = 1_000_000;
    let rounded = if nanos >= MS { (nanos + MS / 2) / MS * MS } else { nanos / SHORTEST * SHORTEST };
    rounded.min(1000 * MS)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Intervals of half a second: requests of 4 KiB, the time of each in ms, and the busy time in ms.
    fn did(intervals: &[(u64, u64, u64)]) -> Vec<Did> {
        let one = |(requests, each, busy): &(u64, u64, u64)| Did {
            requests: *requests,
            bytes: requests * 4096,
            time: requests * each * MS,
            writes: *requests,
            written: requests * 4096,
            write_time: requests * each * MS,
            busy: busy * MS,
            length: 500 * MS,
        };
        intervals.iter().map(one).collect()
    }

    #[test]
    fn small_writes_beside_large_reads_tell_the_time_of_a_request() {
        // Four small writes of 9 ms, and reads of 256 KiB that take 40 ms each.
        let beside = |reads: u64, busy: u64| {
            let add = |did: Did| Did {
                requests: did.requests + reads,
                bytes: did.bytes + reads * (256 << 10),
                time: did.time + reads * 40 * MS,
                ..did
            };
            did(&[(4, 9, busy); 24]).into_iter().map(add).collect::<Vec<Did>>()
        };
        assert_eq!(of(&beside(12, 300), true), Some((9 * MS, Origin::BesideReads)));
        assert_eq!(of(&beside(12, 300), false), None, "a limit of requests explains it");
        // Reads keep the device full: writes that wait for them take longer than those that do not.
        let mut full = beside(12, 500);
        for did in full.iter_mut().step_by(2) {
            did.write_time *= 5;
        }
        assert_eq!(of(&full, true), Some((9 * MS, Origin::BesideReads)));
        assert_eq!(of(&full[..12], true), None, "too few");
        let large = beside(12, 300).into_iter().map(|did| Did { written: did.writes << 20, ..did });
        assert_eq!(of(&large.collect::<Vec<Did>>(), true), None, "no small writes");
    }

    #[test]
    fn a_device_that_is_far_away_shows_it_where_the_fewest_requests_were_under_way() {
        // Several programs always sync at once. The fewer of them do, the less a request waits for another one.
        let many: Vec<(u64, u64, u64)> =
            (0..10).flat_map(|_| [(40, 12, 200), (50, 20, 240), (60, 30, 300), (55, 25, 280)]).collect();
        assert_eq!(of(&did(&many), true), Some((12 * MS, Origin::Quietest)));
        assert_eq!(of(&did(&many), false), None, "a limit of requests explains it");
        let single: Vec<(u64, u64, u64)> = many.iter().copied().chain([(5, 4, 20); 5]).collect();
        assert_eq!(of(&did(&single), true), Some((4 * MS, Origin::Single)));
        let full: Vec<(u64, u64, u64)> = many.iter().map(|(requests, each, _)| (*requests, 2 * each, 490)).collect();
        assert_eq!(of(&did(&full), true), None, "its queue is full");
    }
}
