// SPDX-License-Identifier: MIT OR Apache-2.0
//! A program that does two things at once: it appends little in each interval and makes it durable, as a log is, and now and then
//! writes much that it does not, as a flush or a merge of a store is. As one writer, its syncs would find the bursts. The twin
//! has two: the intervals between the bursts show the log.

use super::group::{Bin, Group, sum};

/// Fewest intervals that show a log.
const INTERVALS_MIN: usize = 12;
/// Factor around the median within which an interval has the log alone, and share of the intervals that do.
const ALIKE: f64 = 2.0;
const ALIKE_SHARE: f64 = 0.6;
/// Factor over the median from which an interval has a burst, and its fewest bytes.
const BURST: f64 = 8.0;
const BURST_MIN: f64 = 1_048_576.0;
/// Least part of all bytes in bursts.
const PART_MIN: f64 = 0.3;
/// Share of the intervals of a log in which it waits.
const WAITS_SHARE: f64 = 0.6;
/// Shortest wait that counts, seconds, and factor over the usual wait up to which a longer one is that of the log.
const WAIT_MIN: f64 = 1e-4;
const WAIT_LONGER: f64 = 4.0;

/// Divides such programs.
pub(super) fn layered(groups: Vec<Group>) -> Vec<Group> {
    groups.into_iter().flat_map(|group| layers(&group).map_or_else(|| vec![group], Vec::from)).collect()
}

/// The log of a program and its bursts.
fn layers(group: &Group) -> Option<[Group; 2]> {
    let is_plain = group.total.mapped <= 0.0 && group.total.direct <= 0.0;
    let first = group.bins.iter().position(|bin| bin.by_calls > 0.0)?;
    let last = group.bins.iter().rposition(|bin| bin.by_calls > 0.0)?;
    let span = &group.bins[first..=last];
    let usual = |of: fn(&Bin) -> f64| median(span.iter().map(of).collect());
    let bytes = usual(|bin| bin.by_calls);
    let is_log = |bin: &&Bin| bin.by_calls > 0.0 && bin.by_calls >= bytes / ALIKE && bin.by_calls <= bytes * ALIKE;
    let log: Vec<&Bin> = span.iter().filter(is_log).collect();
    let bursts: Vec<&Bin> = span.iter().filter(|bin| bin.by_calls >= (BURST * bytes).max(BURST_MIN)).collect();
    let in_bursts: f64 = bursts.iter().map(|bin| bin.by_calls).sum();
    let waiting = log.iter().filter(|bin| bin.waited >= WAIT_MIN).count() as f64;
    let is_synced = match group.synced {
        Some(synced) => synced.all() > 2 * bursts.len() as u64,
        None => waiting >= WAITS_SHARE * log.len() as f64,
    };
    let is_both = is_plain
        && bytes > 0.0
        && log.len() >= INTERVALS_MIN
        && log.len() as f64 >= ALIKE_SHARE * span.len() as f64
        && in_bursts >= PART_MIN * group.total.by_calls
        && is_synced;
    if !is_both {
        return None;
    }
    let of_log = |of: fn(&Bin) -> f64| median(log.iter().map(|bin| of(bin)).collect());
    let log = Bin {
        by_calls: of_log(|bin| bin.by_calls),
        wchar: of_log(|bin| bin.wchar),
        calls: of_log(|bin| bin.calls),
        own: of_log(|bin| bin.own),
        waited: WAIT_LONGER * of_log(|bin| bin.waited),
        ..Bin::default()
    };
    let has_more = |bin: &Bin| bin.by_calls > ALIKE * bytes;
    let without = |bin: &Bin| match has_more(bin) {
        true => Bin {
            by_calls: log.by_calls,
            wchar: log.wchar.min(bin.wchar),
            calls: log.calls.min(bin.calls),
            own: log.own.min(bin.own),
            waited: log.waited.min(bin.waited),
            read: 0.0,
            reads: 0.0,
            cancelled: 0.0,
            ..*bin
        },
        false => Bin { read: 0.0, reads: 0.0, cancelled: 0.0, ..*bin },
    };
    let beside = |bin: &Bin| {
        let of_log = without(bin);
        Bin {
            by_calls: bin.by_calls - of_log.by_calls,
            wchar: bin.wchar - of_log.wchar,
            calls: bin.calls - of_log.calls,
            own: bin.own - of_log.own,
            waited: bin.waited - of_log.waited,
            ..*bin
        }
    };
    let part = |bins: Vec<Bin>| Group { total: sum(&bins), bins, made: None, ..group.clone() };
    let log = part(group.bins.iter().map(without).collect());
    let bursts = part(group.bins.iter().map(beside).collect());
    Some([log, Group { synced: bursts.synced.map(|_| super::group::Synced::default()), ..bursts }])
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seconds of a program: bytes, calls and seconds of waiting.
    fn group(seconds: &[(f64, f64, f64)]) -> Group {
        let bin = |(at, (bytes, calls, waited)): (usize, &(f64, f64, f64))| Bin {
            end: at as f64 + 1.0,
            length: 1.0,
            wchar: *bytes,
            by_calls: *bytes,
            calls: *calls,
            waited: *waited,
            ..Bin::default()
        };
        let bins: Vec<Bin> = seconds.iter().enumerate().map(bin).collect();
        Group { total: sum(&bins), bins, ..Group::default() }
    }

    fn store(waits: f64) -> Group {
        let mut seconds = vec![(98_304.0, 6.0, waits); 40];
        seconds[10] = (94_470_144.0, 366.0, waits);
        seconds[27] = (94_470_144.0, 366.0, waits);
        group(&seconds)
    }

    #[test]
    fn a_store_has_a_log_that_is_synced_and_bursts_that_are_not() {
        let [log, bursts] = layers(&store(5e-4)).unwrap();
        assert_eq!((log.total.by_calls, log.total.calls), (40.0 * 98_304.0, 240.0));
        assert_eq!((bursts.total.by_calls, bursts.total.calls), (2.0 * 94_371_840.0, 720.0));
        assert_eq!((log.waiting_share(), bursts.waiting_share()), (1.0, 0.0));
    }

    #[test]
    fn a_program_that_does_one_thing_stays_whole() {
        assert!(layers(&store(0.0)).is_none(), "nothing is synced");
        assert!(layers(&group(&[(98_304.0, 6.0, 5e-4); 40])).is_none(), "no bursts");
        let mut bursts = vec![(0.0, 0.0, 0.0); 40];
        (bursts[3], bursts[20]) = ((9e7, 300.0, 0.5), (9e7, 300.0, 0.5));
        assert!(layers(&group(&bursts)).is_none(), "no log");
        let mut few = store(5e-4);
        few.bins.truncate(11);
        assert!(layers(&Group { total: sum(&few.bins), ..few }).is_none(), "too short");
    }
}
