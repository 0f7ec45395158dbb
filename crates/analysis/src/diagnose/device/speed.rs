// SPDX-License-Identifier: MIT OR Apache-2.0
//! Write speed of a device: measured while it was saturated, taken from the kernel's own estimate, or a bound. Large
//! writes are limited by bytes, small ones by operations. Does not cover what fills the device.

use super::{Device, Interval};
use floodline_record::human;
use floodline_record::id::{Entity, EntityId};
use floodline_record::sample::WbRow;
use floodline_record::units::Nanos;
use std::collections::BTreeSet;

/// Writes at least this large are limited by bytes, not by operations.
const LARGE_WRITE: f64 = 65_536.0;
/// Writes at most this large are limited by operations, not by bytes.
pub const SMALL_WRITE: f64 = 32_768.0;
/// Part of the bandwidth with large writes from which small writes are limited by bytes, too.
const NEAR_BANDWIDTH: f64 = 0.5;
/// Part of its highest value in the window below which the kernel's estimate has fallen.
const STEADY_ESTIMATE: f64 = 0.8;
/// Initial value of a wb's bandwidth estimate, 100 MiB/s. A sum of such values means that nothing was measured.
const INIT_BW: u64 = 100 << 20;

/// Bytes per second of one rotating disk at its outer edge: an upper bound.
const FASTEST_TURNING: f64 = 300e6;

/// Speed of a device, and how it is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speed {
    /// Bytes or operations per second.
    pub value: f64,
    /// How it is known.
    pub basis: Basis,
}

impl Speed {
    /// Words that follow a time computed with it, where it is the kernel's estimate. The kernel estimates it from any writing, even a
    /// little. Empty where it is no estimate.
    pub fn by_estimate(&self) -> String {
        match self.basis {
            Basis::KernelEstimate => {
                format!(" (at the {} that the kernel estimates)", human::bytes_per_second(self.value))
            }
            _ => String::new(),
        }
    }
}

/// How a speed is known, from the best to the weakest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Basis {
    /// Measured in this window while the device was saturated.
    Saturated,
    /// The kernel's estimate, smoothed over seconds of writing.
    KernelEstimate,
    /// The device reached this without being saturated: a lower bound.
    AtLeast,
    /// No device of its kind is faster: an upper bound.
    AtMost,
}

impl Basis {
    /// Source of the number, for the source column of evidence.
    pub fn source(self) -> &'static str {
        match self {
            Basis::Saturated => "/proc/diskstats while saturated",
            Basis::KernelEstimate => "debugfs bdi stats BdiWriteBandwidth",
            Basis::AtLeast => "/proc/diskstats, not saturated: at least",
            Basis::AtMost => "/sys/block/NAME/queue/rotational: no turning disk is faster",
        }
    }

    /// Whether the number is the device's speed, not only a bound.
    pub fn is_known(self) -> bool {
        !matches!(self, Basis::AtLeast | Basis::AtMost)
    }
}

impl Device<'_> {
    /// Intervals in which it, or a disk below it, was saturated.
    fn saturated(&self) -> Vec<Interval> {
        let below = self.bottoms().into_iter().filter(|device| device.id != self.id);
        let intervals = below.flat_map(|device| device.intervals());
        let busy: BTreeSet<Nanos> = intervals.filter(Interval::is_saturated).map(|interval| interval.end).collect();
        let is_busy = |interval: &Interval| interval.is_saturated() || busy.contains(&interval.end);
        self.intervals().into_iter().filter(is_busy).collect()
    }

    /// Bytes per second that it writes when it has enough pending writes.
    pub fn write_bandwidth(&self) -> Option<Speed> {
        let is_large = |interval: &Interval| {
            interval.mean_write().is_some_and(|bytes| bytes >= LARGE_WRITE)
                && interval.written_bytes >= interval.read_bytes
        };
        let saturated: Vec<Interval> = self.saturated().into_iter().filter(is_large).collect();
        // A device that wrote much more in one interval with room to spare was held up in these by something else. A little
        // more is what completes late: the first second of a burst may count more bytes than the next.
        let most = self.intervals().iter().map(|interval| interval.written_bytes).fold(0.0, f64::max);
        let fastest = self.intervals().iter().map(Interval::write_rate).fold(0.0, f64::max);
        let total: f64 = saturated.iter().map(|interval| interval.written_bytes).sum();
        let is_its_own = |rate: &f64| total >= most || *rate >= NEAR_BANDWIDTH * fastest;
        if let Some(value) = mean_rate(&saturated, |interval| interval.written_bytes).filter(is_its_own) {
            return Some(Speed { value, basis: Basis::Saturated });
        }
        let least = self.least_bandwidth();
        match (self.kernel_estimate(), least) {
            (Some(estimate), least) if least.is_none_or(|least| estimate >= least) => {
                Some(Speed { value: estimate, basis: Basis::KernelEstimate })
            }
            (_, least) => least.map(|value| Speed { value, basis: Basis::AtLeast }),
        }
    }

    /// Upper bound of its speed, where it is made of rotating disks. Disks of virtual machines report that they rotate,
    /// whatever is behind them.
    pub fn fastest_of_its_kind(&self) -> Option<Speed> {
        let disks = self.bottoms();
        let turns = |disk: &Device<'_>| disk.facts.and_then(|facts| facts.rotational) == Some(true);
        let is_virtual =
            |disk: &Device<'_>| ["vd", "xvd"].iter().any(|kind| disk.name.as_bytes().starts_with(kind.as_bytes()));
        let all_turn = !disks.is_empty() && disks.iter().all(|disk| turns(disk) && !is_virtual(disk));
        all_turn.then_some(Speed { value: FASTEST_TURNING * disks.len() as f64, basis: Basis::AtMost })
    }

    /// Small writes per second that it completes when it has enough pending.
    pub fn small_write_iops(&self) -> Option<Speed> {
        let intervals = self.intervals();
        let full: BTreeSet<Nanos> = self.saturated().iter().map(|interval| interval.end).collect();
        let is_large = |at: Option<usize>| {
            let mean = at.and_then(|at| intervals.get(at)).and_then(Interval::mean_write);
            mean.is_some_and(|bytes| bytes > SMALL_WRITE)
        };
        // A write is counted when it completes: next to an interval of large writes, some of those were also in flight.
        let is_one_of_small = |(at, interval): &(usize, &Interval)| {
            let is_small = interval.mean_write().is_some_and(|bytes| bytes <= SMALL_WRITE);
            full.contains(&interval.end) && is_small && !is_large(at.checked_sub(1)) && !is_large(at.checked_add(1))
        };
        let small: Vec<Interval> =
            intervals.iter().enumerate().filter(is_one_of_small).map(|(_, interval)| *interval).collect();
        if let Some(value) = mean_rate(&small, |interval| interval.writes + interval.reads) {
            return Some(Speed { value, basis: Basis::Saturated });
        }
        let peak = intervals.iter().map(|interval| interval.writes / interval.seconds).fold(0.0, f64::max);
        (peak > 0.0).then_some(Speed { value: peak, basis: Basis::AtLeast })
    }

    /// Whether small writes were the limit in an interval: the device was saturated by them, and wrote much less than it
    /// writes when it is saturated by large ones. Adjacent small writes are as fast as large ones.
    pub fn is_limited_by_operations(&self, interval: &Interval) -> bool {
        interval.is_saturated() && self.is_of_small(interval)
    }

    /// Whether the writes of an interval were small, and far from the rate at which the device writes large ones.
    pub fn is_of_small(&self, interval: &Interval) -> bool {
        let is_small = interval.mean_write().is_some_and(|bytes| bytes <= SMALL_WRITE);
        is_small && !self.is_near_bandwidth(interval.write_rate())
    }

    /// Whether a rate is near the one that was measured while the device was saturated by large writes.
    pub fn is_near_bandwidth(&self, rate: f64) -> bool {
        let measured = self.write_bandwidth().filter(|speed| speed.basis == Basis::Saturated);
        measured.is_some_and(|speed| rate >= NEAR_BANDWIDTH * speed.value)
    }

    /// The kernel's estimate, where it measured anything. The initial value does not count. Nor does an estimate that
    /// falls while the device has room: it follows the few small writes of that time, not the speed of the device.
    fn kernel_estimate(&self) -> Option<f64> {
        let bandwidth = self.bdi()?.last.write_bandwidth?.0;
        let is_measured = |bandwidth: u64| !bandwidth.is_multiple_of(INIT_BW);
        let series = self.bdi_series().unwrap_or_default();
        let estimates = series.iter().filter_map(|(_, row)| Some(row.write_bandwidth?.0));
        let highest = estimates.filter(|bandwidth| is_measured(*bandwidth)).max().unwrap_or(0);
        let has_room = !self.intervals().iter().any(Interval::is_saturated);
        let falls = has_room && (bandwidth as f64) < STEADY_ESTIMATE * highest as f64;
        let is_known = is_measured(bandwidth) && !falls && !(bandwidth >= INIT_BW && self.has_several_wbs());
        is_known.then_some(bandwidth as f64)
    }

    /// Whether several wbs have written to it. From 6.10 on the bdi's bandwidth is the sum of theirs. A sum of at least one initial value
    /// may hold initial values, and what each wb reached when it wrote alone.
    fn has_several_wbs(&self) -> bool {
        let Some(own) = self.bdi_name() else { return false };
        // The root cgroup has a wb on each bdi, whether it writes or not.
        let wrote = |row: &WbRow| row.dirtied.is_some_and(|bytes| bytes.0 > 0);
        let is_own =
            |id: &EntityId| matches!(self.window.entities.get(id), Some(Entity::Wb { bdi, .. }) if *bdi == own);
        self.window.wbs.iter().filter(|(id, span)| wrote(&span.last) && is_own(id)).nth(1).is_some()
    }

    /// Lower bound of its speed: the highest rate of any interval, or its rate while busy.
    fn least_bandwidth(&self) -> Option<f64> {
        let busy = |interval: &Interval| {
            let seconds = interval.utilisation.map(|utilisation| utilisation * interval.seconds);
            seconds.filter(|seconds| *seconds >= 0.05).map(|seconds| interval.written_bytes / seconds)
        };
        let best = |interval: &Interval| busy(interval).unwrap_or(0.0).max(interval.write_rate());
        let peak = self.intervals().iter().map(best).fold(0.0, f64::max);
        (peak > 0.0).then_some(peak)
    }
}

fn mean_rate(intervals: &[Interval], amount: impl Fn(&Interval) -> f64) -> Option<f64> {
    let seconds: f64 = intervals.iter().map(|interval| interval.seconds).sum();
    let total: f64 = intervals.iter().map(amount).sum();
    (seconds > 0.0 && total > 0.0).then(|| total / seconds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::device::drains;
    use floodline_record::sample::BdiRow;
    use floodline_record::units::{Bytes, BytesPerSecond, Count};
    use floodline_testkit::{Fixture, mib, secs};

    /// A disk that writes at this rate, this busy, with this many requests in flight.
    fn writing(mib_per_s: f64, busy: f64, queue: f64) -> Fixture {
        Fixture::healthy().disk("sda", move |t, row| {
            row.written = Some(Bytes(mib(mib_per_s * t)));
            row.writes = Some(Count((mib_per_s * 2.0 * t) as u64));
            row.io_time = Some(secs(busy * t));
            row.weighted_io_time = Some(secs(queue * t));
        })
    }

    fn check(fixture: Fixture, mib_per_s: f64, basis: Basis) {
        let window = fixture.window();
        let speed = drains(&window)[0].write_bandwidth().unwrap();
        assert_eq!((speed.value.round(), speed.basis), ((mib_per_s * 1_048_576.0).round(), basis));
    }

    #[test]
    fn a_speed_says_how_it_is_known() {
        check(writing(42.0, 1.0, 30.0), 42.0, Basis::Saturated);
        // Busy all the time with one synchronous writer: the device can take more.
        check(writing(42.0, 1.0, 1.0), 412.0, Basis::KernelEstimate);
        // It wrote faster than the estimate: its rate is then the bound.
        check(writing(500.0, 0.5, 30.0), 1000.0, Basis::AtLeast);
        // The initial value of every estimate is not a measurement.
        let initial = |_: f64, row: &mut BdiRow| row.write_bandwidth = Some(BytesPerSecond(200 << 20));
        check(writing(10.0, 0.5, 1.0).bdi("8:0", initial), 20.0, Basis::AtLeast);
        // Nor is a sum that holds some of them.
        let sum = |_: f64, row: &mut BdiRow| row.write_bandwidth = Some(BytesPerSecond(230 << 20));
        let wrote = |_: f64, row: &mut WbRow| row.dirtied = Some(Bytes(1 << 20));
        let of_one = |fixture: Fixture| fixture.wb("8:0", 7, wrote).wb("8:0", 1, |_, row| row.dirtied = Some(Bytes(0)));
        check(of_one(writing(10.0, 0.5, 1.0)).wb("8:0", 8, wrote).bdi("8:0", sum), 20.0, Basis::AtLeast);
        // The wbs of a btrfs have its name.
        let btrfs = |host: Fixture| {
            host.facts(|facts| facts.mounts.iter_mut().for_each(|mount| mount.fs_type = "btrfs".into()))
                .bdi("btrfs-1", sum)
                .wb("btrfs-1", 7, wrote)
        };
        check(btrfs(writing(10.0, 0.5, 1.0)).wb("btrfs-1", 8, wrote), 20.0, Basis::AtLeast);
        check(btrfs(writing(10.0, 0.5, 1.0)), 230.0, Basis::KernelEstimate);
        // The root's wb has written nothing.
        check(of_one(writing(10.0, 0.5, 1.0)).bdi("8:0", sum), 230.0, Basis::KernelEstimate);
        // Nor is a fall from it a fall: the estimate of a slow disk begins there.
        let estimate = |first: u64| {
            move |t: f64, row: &mut BdiRow| {
                row.write_bandwidth = Some(BytesPerSecond(if t < 3.0 { first } else { 30 << 20 }));
            }
        };
        check(writing(5.0, 0.5, 1.0).bdi("8:0", estimate(100 << 20)), 30.0, Basis::KernelEstimate);
        // An estimate that falls while the disk has room follows the few writes of that time.
        check(writing(5.0, 0.5, 1.0).bdi("8:0", estimate(90 << 20)), 10.0, Basis::AtLeast);
    }

    #[test]
    fn a_time_by_the_kernels_estimate_says_so() {
        let speed = |basis| Speed { value: 89_702_400.0, basis };
        assert_eq!(speed(Basis::KernelEstimate).by_estimate(), " (at the 85.5 MiB/s that the kernel estimates)");
        assert_eq!(speed(Basis::Saturated).by_estimate(), "");
    }

    #[test]
    fn an_interval_in_which_the_disk_was_held_up_is_not_its_speed() {
        // 2 MiB in the one second that is busy with a queue, 30 MiB in another second with room.
        let held_up = Fixture::healthy().disk("sda", |t, row| {
            let stuck = (t - 3.0).clamp(0.0, 1.0);
            let later = (t - 6.0).clamp(0.0, 1.0);
            row.written = Some(Bytes(mib(2.0 * stuck + 30.0 * later)));
            row.writes = Some(Count((4.0 * stuck + 60.0 * later) as u64));
            row.io_time = Some(secs(stuck + 0.5 * later));
            row.weighted_io_time = Some(secs(8.0 * stuck + later));
        });
        let without_estimate = |_: f64, row: &mut BdiRow| row.write_bandwidth = Some(BytesPerSecond(200 << 20));
        check(held_up.bdi("8:0", without_estimate), 60.0, Basis::AtLeast);
    }

    #[test]
    fn one_saturated_second_is_its_speed_although_the_second_before_counts_a_little_more() {
        // As a burst of two seconds and a half shows: the kernel's estimate still falls from its initial value.
        let burst = Fixture::healthy().disk("sda", |t, row| {
            let (first, full, last) = ((t - 3.0).clamp(0.0, 1.0), (t - 4.0).clamp(0.0, 1.0), (t - 5.0).clamp(0.0, 1.0));
            row.written = Some(Bytes(mib(38.3 * first + 37.5 * full + 28.0 * last)));
            row.writes = Some(Count((76.0 * first + 75.0 * full + 56.0 * last) as u64));
            row.io_time = Some(secs(0.88 * first + full + 0.7 * last));
            row.weighted_io_time = Some(secs(20.0 * (first + full + last)));
        });
        let estimate = |_: f64, row: &mut BdiRow| row.write_bandwidth = Some(BytesPerSecond(88 << 20));
        check(burst.bdi("8:0", estimate), 37.5, Basis::Saturated);
    }

    #[test]
    fn few_small_writes_beside_large_ones_are_no_limit() {
        let writes = |small_s: f64| {
            let window = writing(42.0, 1.0, 30.0).disk("sda", move |t, row| {
                // 30 small writes per second for some seconds, then large ones every other second.
                let small = 30.0 * t;
                let large = 200.0 * ((t - small_s).max(0.0) / 2.0).ceil();
                row.written = Some(Bytes((small * 4096.0 + large * 131_072.0) as u64));
                row.writes = Some(Count((small + large) as u64));
            });
            let speed = drains(&window.window())[0].small_write_iops().unwrap();
            (speed.value.round(), speed.basis)
        };
        assert_eq!(writes(5.0), (30.0, Basis::Saturated));
        assert_eq!(writes(0.0).1, Basis::AtLeast);
    }
}
