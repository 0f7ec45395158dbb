// SPDX-License-Identifier: MIT OR Apache-2.0
//! Speed of a disk in a recording, from the rows of its counters: latency while few requests are in flight,
//! bandwidth while many are. Reads rows only; `found.rs` finds the rows in a recording.

use floodline_record::sample::DiskRow;
use floodline_record::units::Nanos;
use std::sync::Arc;

/// Figures of a disk measured from a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FoundDisk {
    /// Median time of a small read or write while few are in flight, or one at a time.
    pub latency: Option<Nanos>,
    /// Usual time of a small read while nothing is written: the lower quartile between two samples. Counters give means,
    /// which a few slow reads of a busy host raise, but writeback throttling looks at the fastest read of a window.
    pub read_latency: Option<Nanos>,
    /// Median time of a cache flush under the same conditions.
    pub flush_latency: Option<Nanos>,
    /// Median bytes per second that left its cache when it held many.
    pub flush_bandwidth: Option<u64>,
    /// Median bytes per second written while it was busy with many.
    pub write_bandwidth: Option<u64>,
    /// The same, with what it read meanwhile.
    pub bandwidth: Option<u64>,
}

/// Largest number of requests between two samples that counts as few.
const FEW: u64 = 8;
/// Size up to which the transfer time of a request is negligible; and bytes that count as many.
const SMALL: u64 = 64 << 10;
const MANY: u64 = 4 << 20;
/// Least busy time between two samples to compute a rate.
const BUSY: u64 = 100_000_000;

impl FoundDisk {
    /// Measures a disk from its rows in order of time. An emulated disk is slower than configured, as the emulator
    /// needs the same CPUs.
    pub fn of(series: &[(Nanos, Arc<DiskRow>)]) -> FoundDisk {
        let (mut latencies, mut flushes, mut rates) = (Vec::new(), Vec::new(), Vec::new());
        let (mut reads, mut moved) = (Vec::new(), Vec::new());
        let (mut unflushed, mut flush_rates) = (0_u64, Vec::new());
        for pair in series.windows(2) {
            let Some(step) = Step::between(&pair[0].1, &pair[1].1) else { continue };
            if step.is_of_few(&pair[1].1) {
                latencies.push(step.time / step.requests);
                flushes.extend(step.flush_time.checked_div(step.flushes));
            }
            unflushed = unflushed.saturating_add(step.written);
            if step.flushes > 0 {
                if unflushed >= MANY && step.flush_time > 0 {
                    flush_rates.push(per_second(unflushed, step.flush_time));
                }
                unflushed = 0;
            }
            if step.reads > 0 && step.reads == step.requests && is_idle(&pair[1].1) && step.is_small() {
                reads.push(step.read_time / step.reads);
            }
            if step.written >= MANY && step.busy >= BUSY && !step.is_joined() {
                rates.push(per_second(step.written, step.busy));
                moved.push(per_second(step.moved, step.busy));
            }
        }
        let part = |mut times: Vec<u64>, of: usize| {
            times.sort_unstable();
            times.get(times.len() / of).filter(|_| times.len() >= 5).copied().map(Nanos)
        };
        let usual = |times| part(times, 2);
        let median = |mut rates: Vec<u64>| {
            rates.sort_unstable();
            rates.get(rates.len() / 2).copied()
        };
        FoundDisk {
            latency: usual(latencies),
            read_latency: part(reads, 4),
            flush_latency: usual(flushes),
            flush_bandwidth: median(flush_rates),
            write_bandwidth: median(rates),
            bandwidth: median(moved),
        }
    }
}

/// Speed of a disk between two samples that found it idle, with few requests between them. An emulated disk on a busy host
/// takes a hundred milliseconds for a flush that mostly takes five. The kernel counts a request when it completes: one that
/// is under way in a sample took part of its time before that sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Start and end, from the workload's start.
    from: u64,
    to: u64,
    /// Mean time of a small read or write, and of a flush if there was one, above the median ones; negative if they were
    /// faster.
    request: i64,
    flush: i64,
}

impl Moment {
    /// The moments of a disk that show its speed, in order of time.
    pub(crate) fn of(series: &[(Nanos, Arc<DiskRow>)], began: u64) -> Vec<Moment> {
        let usual = FoundDisk::of(series);
        let Some(request) = usual.latency else { return Vec::new() };
        let above = |time: u64, usual: Nanos| i64::try_from(i128::from(time) - i128::from(usual.0)).unwrap_or(0);
        let idle: Vec<&(Nanos, Arc<DiskRow>)> = series.iter().filter(|(_, row)| is_idle(row)).collect();
        let moment = |pair: &[&(Nanos, Arc<DiskRow>)]| {
            let [(from, before), (to, after)] = [pair[0], pair[1]];
            let step = Step::between(before, after).filter(|step| step.is_of_few(after))?;
            let flush = step.flush_time.checked_div(step.flushes).zip(usual.flush_latency);
            Some(Moment {
                from: from.0.checked_sub(began)?,
                to: to.0.checked_sub(began)?,
                request: above(step.time.checked_div(step.requests)?, request),
                flush: flush.map_or(0, |(time, usual)| above(time, usual)),
            })
        };
        idle.windows(2).filter_map(moment).collect()
    }
}

/// Known moments of a disk, and the start of the workload in the present run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Moments {
    pub(crate) known: Vec<Moment>,
    pub(crate) began: Option<u64>,
}

impl Moments {
    /// Time of a request of few, or of a flush, that starts now and usually takes `usual`.
    pub(crate) fn time(&self, now: u64, usual: u64, is_flush: bool) -> u64 {
        let Some(since) = self.began.and_then(|began| now.checked_sub(began)).filter(|_| !self.known.is_empty()) else {
            return usual;
        };
        let next = self.known.partition_point(|moment| moment.to <= since);
        let moment = self.known.get(next).filter(|moment| moment.from <= since);
        moment.map_or(usual, |moment| usual.saturating_add_signed(if is_flush { moment.flush } else { moment.request }))
    }
}

fn per_second(bytes: u64, nanos: u64) -> u64 {
    u64::try_from(u128::from(bytes) * 1_000_000_000 / u128::from(nanos.max(1))).unwrap_or(u64::MAX)
}

/// Activity of a disk between two samples.
struct Step {
    /// Reads and writes.
    requests: u64,
    /// Pieces that joined others in a request.
    merged: u64,
    reads: u64,
    read_time: u64,
    flushes: u64,
    /// Bytes read and written.
    moved: u64,
    /// Time of the reads and writes alone.
    time: u64,
    flush_time: u64,
    written: u64,
    busy: u64,
}

/// Whether nothing is in flight.
fn is_idle(row: &DiskRow) -> bool {
    row.in_flight.is_some_and(|count| count.0 == 0)
}

impl Step {
    /// Whether it shows the time of a small request alone: few are in flight, or one at a time.
    fn is_of_few(&self, after: &DiskRow) -> bool {
        let is_one_by_one = self.requests + self.flushes <= FEW || self.time <= self.busy + self.busy / 5;
        self.requests > 0 && is_idle(after) && is_one_by_one && self.is_small()
    }

    /// Whether its requests are small. A large transfer determines the time of its request.
    fn is_small(&self) -> bool {
        self.moved <= self.requests.saturating_mul(SMALL)
    }

    /// Whether most of it is small pieces that joined in requests. The kernel counts a request from its first piece on, so a slow CPU
    /// that adds the others one by one makes the disk look busy.
    fn is_joined(&self) -> bool {
        self.merged > self.requests && self.moved <= self.requests.saturating_add(self.merged).saturating_mul(SMALL)
    }

    fn between(before: &DiskRow, after: &DiskRow) -> Option<Step> {
        let requests = |row: &DiskRow| Some(row.reads?.0 + row.writes?.0);
        let time = |row: &DiskRow| Some(row.read_time?.0 + row.write_time?.0);
        let flush_time = after.flush_time?.0.checked_sub(before.flush_time?.0)?;
        let merged = |row: &DiskRow| row.writes_merged.map_or(0, |count| count.0);
        let moved = |row: &DiskRow| Some(row.read?.0 + row.written?.0);
        Some(Step {
            moved: moved(after)?.checked_sub(moved(before)?)?,
            requests: requests(after)?.checked_sub(requests(before)?)?,
            merged: merged(after).saturating_sub(merged(before)),
            reads: after.reads?.0.checked_sub(before.reads?.0)?,
            read_time: after.read_time?.0.checked_sub(before.read_time?.0)?,
            flushes: after.flushes?.0.checked_sub(before.flushes?.0)?,
            // A write that flushes the cache before and after it takes as long as all three together, and each
            // flush is also counted by itself.
            time: time(after)?.checked_sub(time(before)?)?.saturating_sub(flush_time),
            flush_time,
            written: after.written?.0.checked_sub(before.written?.0)?,
            busy: after.io_time?.0.checked_sub(before.io_time?.0)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A second's sample of a disk that only writes: its writes and flushes, and the milliseconds of both.
    fn sample(second: u64, counts: [u64; 2], millis: [u64; 2], in_flight: u64) -> (Nanos, Arc<DiskRow>) {
        use floodline_record::units::{Bytes, Count};
        let ([writes, flushes], [write_millis, flush_millis]) = (counts, millis);
        let all = Some(Nanos::from_millis(write_millis + flush_millis));
        let row = DiskRow {
            reads: Some(Count(0)),
            read: Some(Bytes(0)),
            read_time: Some(Nanos(0)),
            writes: Some(Count(writes)),
            written: Some(Bytes(4096 * writes)),
            write_time: all,
            flushes: Some(Count(flushes)),
            flush_time: Some(Nanos::from_millis(flush_millis)),
            io_time: all,
            in_flight: Some(Count(in_flight)),
            ..DiskRow::default()
        };
        (Nanos::from_millis(1_000 * second), Arc::new(row))
    }

    #[test]
    fn a_slow_moment_is_as_slow_as_it_was_found() {
        let (mut writes, mut write_millis, mut flush_millis) = (0, 0, 0);
        let mut series = Vec::new();
        // Two writes of 2 ms and a flush of 4 ms in each second; in the seventh second 3, 3 and 90 ms.
        for second in 0..12_u64 {
            series.push(sample(second, [writes, writes / 2], [write_millis, flush_millis], 0));
            let (write, flush) = if second == 6 { (3, 90) } else { (2, 4) };
            (writes, write_millis, flush_millis) = (writes + 2, write_millis + 2 * write, flush_millis + flush);
        }
        // The workload begins with the third sample, in this run 10 s after the first.
        let known = Moment::of(&series, 2_000_000_000);
        let mut moments = Moments { known, began: None };
        let time = |moments: &Moments, millis: u64, usual: u64, is_flush| {
            moments.time(millis * 1_000_000, usual * 1_000_000, is_flush) / 1_000_000
        };
        assert_eq!(time(&moments, 14_500, 4, true), 4, "it has not begun");
        moments.began = Some(10_000_000_000);
        let check = |millis: u64, flush: u64, write: u64| {
            assert_eq!((time(&moments, millis, 4, true), time(&moments, millis, 2, false)), (flush, write), "{millis}");
        };
        check(9_000, 4, 2);
        check(13_900, 4, 2);
        check(14_000, 90, 3);
        check(14_999, 90, 3);
        check(15_000, 4, 2);
        check(90_000, 4, 2);
        assert_eq!(time(&Moments::default(), 14_500, 4, true), 4);
    }

    #[test]
    fn a_flush_under_way_in_a_sample_is_as_slow_as_both_sides_of_it() {
        // A write of 2 ms and a flush of 4 ms in each second, but the flush of the seventh one takes until the eighth.
        let quiet = (0..=6).map(|second| sample(second, [second; 2], [2 * second, 4 * second], 0));
        let slow = [sample(7, [7, 6], [14, 24], 1), sample(8, [8, 8], [16, 624], 0)];
        let series: Vec<_> = quiet.chain(slow).collect();
        let known = Moment::of(&series, 0);
        let moments = Moments { known, began: Some(0) };
        let flush = |millis: u64| moments.time(millis * 1_000_000, 4_000_000, true) / 1_000_000;
        assert_eq!([flush(5_900), flush(6_500), flush(7_500)], [4, 300, 300]);
        assert_eq!(moments.time(6_500_000_000, 2_000_000, false), 2_000_000, "writes are as fast as ever");
    }

    #[test]
    fn a_disk_is_as_slow_as_it_was_found() {
        use floodline_record::units::{Bytes, Count};
        let row = |requests: u64, millis: u64, written: u64, busy: u64| DiskRow {
            reads: Some(Count(0)),
            read: Some(Bytes(0)),
            read_time: Some(Nanos(0)),
            flushes: Some(Count(requests / 2)),
            flush_time: Some(Nanos::from_millis(millis / 5)),
            writes: Some(Count(requests)),
            write_time: Some(Nanos::from_millis(millis)),
            written: Some(Bytes(written)),
            io_time: Some(Nanos::from_millis(busy)),
            in_flight: Some(Count(0)),
            ..DiskRow::default()
        };
        let quiet = (0..8).map(|n| row(2 * n, 10 * n, 8192 * n, 5 * n));
        // It writes 50 MiB, and flushes the cache of them in 1.8 s in all.
        let busy = row(64, 9_000, 50 << 20, 535);
        let series: Vec<_> = quiet.chain([busy]).map(|row| (Nanos(0), Arc::new(row))).collect();
        let found = FoundDisk::of(&series);
        // Half of the writes also flush the cache, which is counted twice.
        assert_eq!((found.latency, found.flush_latency), (Some(Nanos::from_millis(4)), Some(Nanos::from_millis(2))));
        assert_eq!(found.write_bandwidth.map(|rate| rate >> 20), Some(99));
        assert_eq!(found.flush_bandwidth.map(|rate| rate >> 20), Some(27));
        assert_eq!(FoundDisk::of(&series[..3]), FoundDisk::default(), "too little to tell");
        // The same 50 MiB as 12,800 pages that joined in the requests: their CPU decides how fast they come.
        let mut joined = series;
        if let Some((_, row)) = joined.last_mut() {
            *row = Arc::new(DiskRow { writes_merged: Some(Count(12_750)), ..(**row).clone() });
        }
        assert_eq!(FoundDisk::of(&joined).write_bandwidth, None);
    }
}
