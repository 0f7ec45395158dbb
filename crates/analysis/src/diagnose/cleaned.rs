// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bytes whose writeback completed on one device. The kernel counts them for each backing device in debugfs, and otherwise for the machine
//! only: then the writes of the devices show which of them were writeback. Does not cover which process dirtied them.

use super::derived::Derived;
use super::device::{Device, Interval};
use super::load::start;
use floodline_record::sample::BdiRow;
use floodline_record::units::{Bytes, Nanos};
use floodline_record::window::Window;
use std::collections::BTreeMap;

/// The counters of the backing devices are complete for a device where those of the machine's written pages that they leave out are at
/// most this part of what the device wrote.
const LEFT_OUT: f64 = 0.1;
/// Shortest time over which the writes of devices are compared with the machine's counter, seconds: completions of one sample may be
/// counted in the next.
const COMPARED_S: f64 = 3.0;
/// Most stretches of time in which they are compared. In a longer recording each stretch is longer.
const ROWS: f64 = 600.0;
/// Most rounds of the search for the parts. Each round adjusts each of the devices once.
const ROUNDS: usize = 200;
/// The search ends with the first round that moves no part by more than this.
const MOVED: f64 = 1e-4;
/// Most other devices that the search tries one by one in all combinations of all or nothing, before the first round. It tries the rest
/// together, as if they were one.
const TRIED: usize = 5;

/// Bytes whose writeback completed on one device.
pub(super) struct Cleaned<'a> {
    window: &'a Window,
    page_size: u64,
    /// Counter of the device's own backing device, bytes; `None` where it was not read or does not cover all cgroups.
    own: Option<Vec<(Nanos, u64)>>,
    /// The same for the bytes that became dirty.
    dirtied: Option<Vec<(Nanos, u64)>>,
    /// Written by each other device, in order of time: ends of intervals, and bytes.
    others: Vec<BTreeMap<Nanos, f64>>,
    /// Part of the device's written bytes that is writeback, as the machine's counter and the writes of all devices show it.
    part: f64,
}

impl<'a> Cleaned<'a> {
    /// Prepares the bytes of a device.
    pub(super) fn of(derived: &Derived<'a>, device: &Device<'_>) -> Cleaned<'a> {
        let is_other = |other: &Device<'_>| {
            other.dev != device.dev
                && other.span.growth.written.is_some_and(|written| written.0 > 0)
                && !other.bottoms().iter().any(|below| below.dev == device.dev)
        };
        let written = |one: &Device<'_>| {
            let intervals = one.intervals().into_iter();
            intervals.map(|interval| (interval.end, interval.written_bytes)).collect::<BTreeMap<_, _>>()
        };
        let others: Vec<BTreeMap<Nanos, f64>> =
            derived.drains().iter().filter(|other| is_other(other)).map(written).collect();
        let (window, page_size) = (derived.window, derived.page_size);
        let counter =
            |of: fn(&BdiRow) -> Option<Bytes>| own_counter(device, of).filter(|_| are_complete(derived, device));
        let mut cleaned = Cleaned { window, page_size, own: None, dirtied: None, others, part: 1.0 };
        if !cleaned.others.is_empty() {
            cleaned.own = counter(|row| row.written);
            cleaned.dirtied = counter(|row| row.dirtied);
            cleaned.part =
                if cleaned.own.is_none() { cleaned.compared(&device.intervals()).part_of_first() } else { 1.0 };
        }
        cleaned
    }

    /// Bytes completed on the device in some of its intervals, which are in order of time. Without a counter of its own: at least those
    /// of the machine that the other devices did not write, and at most what the device wrote.
    pub(super) fn during(&self, intervals: &[Interval]) -> f64 {
        if let Some(own) = &self.own {
            return intervals.iter().map(|interval| growth(own, interval).unwrap_or(0) as f64).sum();
        }
        let follows = |one: &Interval, next: &Interval| start(next).0.abs_diff(one.end.0) < 1_000_000;
        let of_run = |run: &[Interval]| {
            let all: f64 = run.iter().map(|interval| self.of_machine(interval).unwrap_or(0.0)).sum();
            let others: f64 = self.others.iter().flat_map(|other| run.iter().map(|one| written_in(other, one))).sum();
            let written: f64 = run.iter().map(|interval| interval.written_bytes).sum();
            (all - others).max((self.part * written).min(all))
        };
        intervals.chunk_by(follows).map(of_run).sum::<f64>().max(0.0)
    }

    /// Bytes that became dirty for the device in some intervals; `None` where only the machine's are counted.
    pub(super) fn dirtied_during(&self, intervals: &[Interval]) -> Option<f64> {
        let dirtied = self.dirtied.as_ref()?;
        intervals.iter().map(|interval| Some(growth(dirtied, interval)? as f64)).sum()
    }

    /// Bytes completed on the machine in one interval of the device; `None` where its counter was not read.
    fn of_machine(&self, interval: &Interval) -> Option<f64> {
        let series = &self.window.host_series;
        let at = |moment: Nanos| {
            let place = series.partition_point(|(at, _)| at.monotonic.0 <= moment.0.saturating_add(1_000_000));
            series.get(place.checked_sub(1)?)?.1.nr_written
        };
        let pages = at(interval.end)?.0.checked_sub(at(start(interval))?.0)?;
        Some(pages as f64 * self.page_size as f64)
    }

    /// The machine's bytes beside those of the device, which is the first, and of the others.
    fn compared(&self, intervals: &[Interval]) -> Rows {
        let least = COMPARED_S.max(intervals.iter().map(|interval| interval.seconds).sum::<f64>() / ROWS);
        let mut rows = Rows { all: Vec::new(), written: vec![Vec::new(); self.others.len() + 1] };
        let mut seconds = least;
        for interval in intervals {
            let Some(all) = self.of_machine(interval) else { continue };
            if seconds >= least {
                rows.all.push(0.0);
                rows.written.iter_mut().for_each(|column| column.push(0.0));
                seconds = 0.0;
            }
            seconds += interval.seconds;
            let others = self.others.iter().map(|other| written_in(other, interval));
            let written = [interval.written_bytes].into_iter().chain(others);
            let sums = rows.written.iter_mut().filter_map(|column| column.last_mut());
            sums.zip(written).for_each(|(sum, bytes)| *sum += bytes);
            if let Some(sum) = rows.all.last_mut() {
                *sum += all;
            }
        }
        rows
    }
}

/// Bytes in stretches of time, one after the other.
struct Rows {
    /// Whose writeback completed on the machine.
    all: Vec<f64>,
    /// That each device wrote: a column for each.
    written: Vec<Vec<f64>>,
}

impl Rows {
    /// Part of the first device's written bytes that is writeback. One such part for each device, between none and all, makes up the
    /// machine's counter over time with the smallest sum of squared differences.
    fn part_of_first(&self) -> f64 {
        let mut parts = self.all_or_nothing();
        let mut left = self.all.clone();
        for (part, written) in parts.iter().zip(&self.written) {
            left.iter_mut().zip(written).for_each(|(left, bytes)| *left -= part * bytes);
        }
        for _ in 0..ROUNDS {
            let mut moved: f64 = 0.0;
            for (part, written) in parts.iter_mut().zip(&self.written) {
                // What the other devices leave of the machine's bytes, against the bytes of this one.
                let square: f64 = written.iter().map(|bytes| bytes * bytes).sum();
                let product: f64 = written.iter().zip(&left).map(|(bytes, left)| bytes * (left + *part * bytes)).sum();
                let next = if square > 0.0 { (product / square).clamp(0.0, 1.0) } else { 0.0 };
                let by = next - *part;
                left.iter_mut().zip(written).for_each(|(left, bytes)| *left -= by * bytes);
                moved = moved.max(by.abs());
                *part = next;
            }
            if moved <= MOVED {
                break;
            }
        }
        parts.first().copied().unwrap_or(0.0)
    }

    /// The parts, each all or nothing, that come nearest to the machine's bytes. From there the search goes on: devices that write at
    /// steady rates allow many other parts. Of the other devices, those with most bytes are tried one by one.
    fn all_or_nothing(&self) -> Vec<f64> {
        let bytes: Vec<f64> = self.written.iter().map(|column| column.iter().sum()).collect();
        let of = |at: usize| bytes.get(at).copied().unwrap_or(0.0);
        let mut order: Vec<usize> = (1..bytes.len()).collect();
        order.sort_by(|one, other| of(*other).total_cmp(&of(*one)));
        order.insert(0, 0);
        let bit_of = |at: usize| order.iter().position(|one| *one == at).map_or(0, |place| place.min(TRIED + 1));
        let bits: Vec<usize> = (0..bytes.len()).map(bit_of).collect();
        let mut together = vec![vec![0.0; self.all.len()]; bytes.len().min(TRIED + 2)];
        for (bit, column) in bits.iter().zip(&self.written) {
            if let Some(sums) = together.get_mut(*bit) {
                sums.iter_mut().zip(column).for_each(|(sum, bytes)| *sum += bytes);
            }
        }
        let is_all = |choice: usize, bit: usize| choice >> bit & 1 == 0;
        let miss = |choice: usize| {
            let mut left = self.all.clone();
            for (_, column) in together.iter().enumerate().filter(|(bit, _)| is_all(choice, *bit)) {
                left.iter_mut().zip(column).for_each(|(left, bytes)| *left -= bytes);
            }
            left.iter().map(|left| left * left).sum::<f64>()
        };
        let choices = (0..1_usize << together.len()).map(|choice| (miss(choice), choice));
        let best = choices.min_by(|(one, _), (other, _)| one.total_cmp(other)).map_or(0, |(_, choice)| choice);
        bits.iter().map(|bit| if is_all(best, *bit) { 1.0 } else { 0.0 }).collect()
    }
}

/// Bytes that a device wrote in one interval of another device. An idle device has longer intervals.
fn written_in(written: &BTreeMap<Nanos, f64>, interval: &Interval) -> f64 {
    let from = Nanos(start(interval).0.saturating_add(1_000_000));
    let until = Nanos(interval.end.0.saturating_add(1_000_000)).max(from);
    written.range(from..until).map(|(_, bytes)| bytes).sum()
}

/// Growth of a counter in one interval.
fn growth(counter: &[(Nanos, u64)], interval: &Interval) -> Option<u64> {
    let at = |moment: Nanos| {
        let place = counter.partition_point(|(at, _)| at.0 <= moment.0.saturating_add(1_000_000));
        Some(counter.get(place.checked_sub(1)?)?.1)
    };
    at(interval.end)?.checked_sub(at(start(interval))?)
}

/// Whether the counter of the device's backing device is complete: those of all backing devices leave out little of what the machine
/// counts, beside what this device wrote. Up to 6.9 they count the root's part only, and a fast disk of the root must not hide that a slow
/// one is written by other cgroups.
fn are_complete(derived: &Derived<'_>, device: &Device<'_>) -> bool {
    let is_drain = derived.drains().iter().any(|drain| drain.id == device.id);
    let all = derived.window.host.growth.nr_written.map(|pages| pages.bytes(derived.page_size).0);
    let counted = derived.window.bdis.values().filter_map(|span| span.growth.written);
    let counted = counted.map(|bytes| bytes.0).fold(0, u64::saturating_add);
    let written = device.span.growth.written.map_or(0.0, |written| written.0 as f64);
    is_drain && counted > 0 && all.is_some_and(|all| all.saturating_sub(counted) as f64 <= LEFT_OUT * written)
}

/// Counter of the backing device of a device.
fn own_counter(device: &Device<'_>, of: fn(&BdiRow) -> Option<Bytes>) -> Option<Vec<(Nanos, u64)>> {
    device.bdi_series()?.iter().map(|(at, row)| Some((*at, of(row)?.0))).collect()
}

#[cfg(test)]
mod tests {
    use super::Cleaned;
    use crate::diagnose::derived::Derived;
    use crate::diagnose::device::disks;
    use crate::diagnose::load;
    use floodline_record::sample::DiskRow;
    use floodline_record::units::{Bytes, Count};
    use floodline_testkit::{Fixture, mib, mib_pages, secs};
    use std::array;

    /// Bytes per second that a disk writes at a moment, MiB.
    type Rate = fn(f64) -> f64;

    fn total(rate: Rate, t: f64) -> f64 {
        (0..(t * 10.0) as u32).map(|tenth| rate(f64::from(tenth) / 10.0) / 10.0).sum()
    }

    fn shape(rate: Rate) -> impl Fn(f64, &mut DiskRow) {
        move |t, row| {
            row.writes = Some(Count((total(rate, t) * 16.0) as u64));
            row.written = Some(Bytes(mib(total(rate, t))));
            row.io_time = Some(secs(t));
            row.weighted_io_time = Some(secs(8.0 * t));
        }
    }

    /// The parts of writeback of busy disks. Each writes at a rate; `cached` tells whether it does so from the page cache. `counts` tells
    /// for each how much of it debugfs has in the counter of the backing device; `None` without the counters.
    fn parts<const N: usize>(rates: [Rate; N], cached: [bool; N], counts: Option<[f64; N]>) -> [f64; N] {
        let part = move |of: usize, t: f64| if cached[of] { total(rates[of], t) } else { 0.0 };
        let mut fixture = Fixture::healthy().seconds(60).host(move |t, row| {
            let all = mib_pages((0..N).map(|of| part(of, t)).sum());
            (row.nr_dirty, row.nr_dirtied, row.nr_written) = (Some(mib_pages(200.0)), Some(all), Some(all));
        });
        let names: [String; N] = array::from_fn(|at| format!("sd{}", char::from(b"abcdefghijklmnop"[at])));
        for (at, name) in names.iter().enumerate() {
            fixture = fixture.disk(name, shape(rates[at])).bdi(&format!("8:{}", 16 * at), move |t, row| {
                row.written = counts.map(|counts| Bytes(mib(counts[at] * part(at, t))));
            });
        }
        let window = fixture.window();
        let derived = Derived::of(&window);
        let share = |disk: &crate::diagnose::device::Device<'_>| load::busy(&derived, disk).writeback_share;
        let all = disks(&window);
        names.map(|name| all.iter().find(|disk| disk.name.as_bytes() == name.as_bytes()).map_or(f64::NAN, share))
    }

    #[test]
    fn each_disk_has_its_own_part_of_the_writeback() {
        let batches: Rate = |t| if (t as u64) % 10 < 6 { 2.0 } else { 0.2 };
        let steady: Rate = |_| 80.0;
        let few: Rate = |_| 4.0;
        let waves: Rate = |t| if (t as u64) % 14 < 7 { 90.0 } else { 60.0 };
        for counts in [Some([1.0, 1.0]), None] {
            for rates in [[batches, steady], [few, steady], [few, waves], [batches, waves]] {
                for cached in [[true, false], [false, true], [true, true], [false, false]] {
                    let [first, second] = parts(rates, cached, counts);
                    let is = |part: f64, cached: bool| if cached { part > 0.8 } else { part < 0.2 };
                    let case =
                        format!("{cached:?}, counters of the backing devices: {counts:?}, {first:.2}, {second:.2}");
                    assert!(is(first, cached[0]) && is(second, cached[1]), "{case}");
                }
            }
        }
    }
    #[test]
    fn a_fast_disk_does_not_make_the_counter_of_a_slow_one_complete() {
        let (fast, slow): (Rate, Rate) = (|_| 60.0, |_| 2.0);
        let [first, second] = parts([fast, slow], [true, true], Some([1.0, 0.0]));
        assert!(first > 0.8 && second > 0.8, "{first:.2}, {second:.2}");
    }

    #[test]
    fn many_disks_with_direct_writes_do_not_hide_the_writeback_of_one() {
        let direct: Rate = |_| 8.0;
        let slow: Rate = |_| 2.0;
        let mut rates = [direct; 9];
        rates[0] = slow;
        let shares = parts(rates, array::from_fn(|at| at == 0), None);
        assert!(shares[0] > 0.8 && shares[1..].iter().all(|share| *share < 0.3), "{shares:.2?}");
    }

    #[test]
    fn each_of_many_disks_is_adjusted() {
        let waves: Rate = |t| if (t as u64) % 14 < 7 { 9.0 } else { 3.0 };
        let batches: Rate = |t| if (t as u64) % 20 < 8 { 12.0 } else { 1.0 };
        let (slow, steady): (Rate, Rate) = (|t| if (t as u64) % 34 < 17 { 2.0 } else { 1.0 }, |_| 20.0);
        let rates = [slow, steady, steady, steady, steady, steady, waves, batches];
        let cached = [true, false, false, false, false, false, true, false];
        let shares = parts(rates, cached, None);
        assert!(shares[0] > 0.8 && shares[6] > 0.8 && shares[7] < 0.2, "{shares:.2?}");
    }

    #[test]
    fn a_long_recording_is_compared_in_longer_stretches() {
        for (seconds, least, most) in [(60, 15, 25), (3_600, 500, 601)] {
            let busy = |t: f64, row: &mut DiskRow| {
                row.written = Some(Bytes(mib(5.0 * t)));
                row.io_time = Some(secs(t));
            };
            let fixture = Fixture::healthy().seconds(seconds).host(|t, row| row.nr_written = Some(mib_pages(5.0 * t)));
            let window = fixture.disk("sda", busy).disk("sdb", busy).window();
            let derived = Derived::of(&window);
            let all = disks(&window);
            let rows = Cleaned::of(&derived, &all[0]).compared(&all[0].intervals());
            assert!((least..=most).contains(&rows.all.len()), "{}", rows.all.len());
            let whole = mib(5.0 * f64::from(seconds)) as f64;
            for column in [&rows.all].into_iter().chain(&rows.written) {
                let sum: f64 = column.iter().sum();
                assert!((0.95..=1.01).contains(&(sum / whole)), "{sum} of {whole}");
            }
        }
    }
}
