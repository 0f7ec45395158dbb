// SPDX-License-Identifier: MIT OR Apache-2.0
//! Block devices as rules see them: which are disks, which are layers above others (bytes are never added over layers),
//! their reads and writes in each interval, and their write speed. The speed is measured while they were saturated, or
//! taken from the kernel's own estimate, or else a lower bound. `/proc/diskstats` counts at completion; a stacked
//! device counts the same bytes again.

mod stacked;

use floodline_record::facts::{BlockDevice, HostFacts, Mount, Stack};
use floodline_record::id::{DevId, Entity, EntityId};
use floodline_record::name::Name;
use floodline_record::sample::{BdiRow, DiskRow};
use floodline_record::units::{Count, Nanos, Quantity};
use floodline_record::window::{Span, Window};
use std::cmp::Reverse;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

/// Share of an interval a device must be busy to count as saturated.
const SATURATED_UTILISATION: f64 = 0.9;
/// Mean requests in flight that make a busy device a saturated one. A device that serves a single synchronous writer is
/// always busy but can take more.
const SATURATED_QUEUE: f64 = 2.0;
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

/// A whole block device of the recording.
#[derive(Clone, Copy)]
pub struct Device<'a> {
    /// Its entity.
    pub id: EntityId,
    /// Its number.
    pub dev: DevId,
    /// Its kernel name.
    pub name: &'a Name,
    /// Facts that the probe found about it.
    pub facts: Option<&'a BlockDevice>,
    /// Its readings, folded.
    pub span: &'a Span<DiskRow>,
    window: &'a Window,
}

/// Reads and writes of a device between two samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// End of it, on the monotonic clock.
    pub end: Nanos,
    /// Length, seconds.
    pub seconds: f64,
    /// Bytes written.
    pub written_bytes: f64,
    /// Writes completed.
    pub writes: f64,
    /// Bytes read.
    pub read_bytes: f64,
    /// Reads completed.
    pub reads: f64,
    /// Mean time of a write, queueing included; `None` when none completed.
    pub write_await_s: Option<f64>,
    /// Mean time of a read, queueing included; `None` when none completed.
    pub read_await_s: Option<f64>,
    /// Share of the time with a request in flight, at most 1.
    pub utilisation: Option<f64>,
    /// Mean requests in flight.
    pub queue: Option<f64>,
}

impl Interval {
    /// Bytes written per second.
    pub fn write_rate(&self) -> f64 {
        self.written_bytes / self.seconds
    }

    /// Mean size of a write, bytes; `None` when none completed.
    pub fn mean_write(&self) -> Option<f64> {
        (self.writes > 0.0).then(|| self.written_bytes / self.writes)
    }

    /// Whether the device could not have taken more: it had a queue, or it completed none of its pending requests.
    pub fn is_saturated(&self) -> bool {
        let completed_none = self.writes + self.reads <= 0.0;
        self.utilisation.is_some_and(|utilisation| utilisation >= SATURATED_UTILISATION)
            && (completed_none || self.queue.is_none_or(|queue| queue >= SATURATED_QUEUE))
    }
}

/// Speed of a device, and how it is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speed {
    /// Bytes or operations per second.
    pub value: f64,
    /// How it is known.
    pub basis: Basis,
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

/// Most devices of one stack that are visited.
const STACK_MAX: usize = 512;

impl<'a> Device<'a> {
    /// Returns its reads and writes in each interval of the window, in order of time.
    pub fn intervals(&self) -> Vec<Interval> {
        let own = self.own_intervals();
        match self.copies() {
            Some((disks, copies)) => stacked::as_disks_complete(own, &disks, copies),
            None => own,
        }
    }

    /// Reads and writes as its own counters have them.
    fn own_intervals(&self) -> Vec<Interval> {
        let series = self.window.disk_series.get(&self.id).map(Vec::as_slice).unwrap_or_default();
        series.windows(2).filter_map(|pair| interval(&pair[0], &pair[1])).collect()
    }

    /// For a layer that has its disks for itself: these disks, and how many of them get each byte.
    fn copies(&self) -> Option<(Vec<Device<'a>>, f64)> {
        if self.is_bottom() || self.is_loop() {
            return None;
        }
        let disks: Vec<Device<'a>> = self.bottoms().into_iter().filter(|disk| disk.id != self.id).collect();
        let own = self.span.growth.written?.0 as f64;
        let all: f64 = disks.iter().map(|disk| disk.span.growth.written.map_or(0.0, |bytes| bytes.0 as f64)).sum();
        let copies = (all / own.max(1.0)).round();
        let is_whole = copies >= 1.0 && (all / copies - own).abs() <= stacked::TOLERANCE * own;
        is_whole.then_some((disks, copies))
    }

    /// Bytes written per second over the window.
    pub fn write_rate(&self) -> Option<f64> {
        per_second(self.span.growth.written, self.span.seconds())
    }

    /// Writes per second over the window.
    pub fn write_iops(&self) -> Option<f64> {
        per_second(self.span.growth.writes, self.span.seconds())
    }

    /// Mean size of a write in the window, bytes.
    pub fn mean_write(&self) -> Option<f64> {
        ratio(self.span.growth.written, self.span.growth.writes)
    }

    /// Mean time of a write in the window, seconds, queueing included.
    pub fn write_await(&self) -> Option<f64> {
        ratio(self.span.growth.write_time, self.span.growth.writes).map(|ns| ns / 1e9)
    }

    /// Mean requests in flight while it was busy.
    pub fn queue(&self) -> Option<f64> {
        let (busy, weighted) = (self.span.growth.io_time?, self.span.growth.weighted_io_time?);
        (busy.0 > 0).then(|| weighted.0 as f64 / busy.0 as f64)
    }

    /// Share of the window with a request in flight, at most 1.
    pub fn utilisation(&self) -> Option<f64> {
        per_second(self.span.growth.io_time, self.span.seconds()).map(|ns| (ns / 1e9).min(1.0))
    }

    /// Its backing device info: the one named after its device number. Filesystems with a bdi of their own (btrfs, NFS,
    /// FUSE) do not use it.
    pub fn bdi(&self) -> Option<&'a Span<BdiRow>> {
        let id = self.window.lookup().bdi(&Name::new(self.dev.to_string()))?;
        self.window.bdis.get(&id)
    }

    /// The readings of its backing device info one by one, in order of time.
    pub fn bdi_series(&self) -> Option<&'a [(Nanos, BdiRow)]> {
        let wanted = self.dev.to_string();
        let named = |entity: &Entity| matches!(entity, Entity::Bdi { name } if name.as_bytes() == wanted.as_bytes());
        let (id, _) = self.window.entities.iter().find(|(_, entity)| named(entity))?;
        self.window.bdi_series.get(id).map(Vec::as_slice)
    }

    /// Mounts of filesystems on it or its partitions.
    pub fn mounts(&self) -> Vec<&'a Mount> {
        let of_facts = |facts: &'a HostFacts| self.window.lookup().mounts_of_device(facts, self.dev);
        self.window.facts.iter().flat_map(of_facts).collect()
    }

    /// Whether it is the bottom of its stack: a driver, not a layer.
    pub fn is_bottom(&self) -> bool {
        match self.facts {
            Some(facts) => facts.stack == Stack::Bottom && facts.slaves.is_empty(),
            None => !["loop", "dm-", "md"].iter().any(|layer| self.name.as_bytes().starts_with(layer.as_bytes())),
        }
    }

    /// Whether it is a loop device, backed by a file.
    pub fn is_loop(&self) -> bool {
        match self.facts.map(|facts| &facts.stack) {
            Some(stack) => matches!(stack, Stack::Loop { .. }),
            None => self.name.as_bytes().starts_with(b"loop"),
        }
    }

    /// Whether it keeps its data in memory, so that writes take no time.
    fn is_memory(&self) -> bool {
        ["zram", "ram"].iter().any(|prefix| self.name.as_bytes().starts_with(prefix.as_bytes()))
    }

    /// Whether another block device is built on it.
    fn carries_a_device(&self) -> bool {
        self.window.lookup().carries_a_device(self.dev)
    }

    /// The disks below it, or itself if it is a disk.
    pub fn bottoms(&self) -> Vec<Device<'a>> {
        let mut found = Vec::new();
        let mut seen = BTreeSet::from([self.dev]);
        let mut next = VecDeque::from([*self]);
        while let Some(device) = next.pop_front() {
            if seen.len() > STACK_MAX {
                break;
            }
            let below: &[DevId] = device.facts.map(|facts| facts.slaves.as_slice()).unwrap_or_default();
            if below.is_empty() {
                found.push(device);
            }
            for slave in below {
                let slave = self.window.lookup().whole(self.window, *slave);
                if seen.insert(slave) {
                    next.extend(by_dev(self.window, slave));
                }
            }
        }
        found
    }

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
        // A device that wrote more in one interval with room to spare was held up in these by something else.
        let most = self.intervals().iter().map(|interval| interval.written_bytes).fold(0.0, f64::max);
        let total: f64 = saturated.iter().map(|interval| interval.written_bytes).sum();
        if let Some(value) = mean_rate(&saturated, |interval| interval.written_bytes).filter(|_| total >= most) {
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
        let is_small = interval.mean_write().is_some_and(|bytes| bytes <= SMALL_WRITE);
        interval.is_saturated() && is_small && !self.is_near_bandwidth(interval.write_rate())
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
        (is_measured(bandwidth) && !falls).then_some(bandwidth as f64)
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

/// Returns every whole block device of the window, layers included, partitions not, in order of first sight.
pub fn devices(window: &Window) -> Vec<Device<'_>> {
    window.disks.iter().filter_map(|(id, span)| device(window, *id, span)).collect()
}

/// Returns the disks: devices that are not built on another. Their bytes may be added up, except that a mirror writes
/// each byte on every disk.
pub fn disks(window: &Window) -> Vec<Device<'_>> {
    devices(window).into_iter().filter(|device| device.is_bottom() && !device.is_memory()).collect()
}

/// Returns the devices at which dirty pages leave memory for good, most written first: the top of each stack. A loop
/// device is not one, because its bytes become dirty pages of its backing file.
pub fn drains(window: &Window) -> Vec<Device<'_>> {
    let mut drains: Vec<Device<'_>> = devices(window)
        .into_iter()
        .filter(|device| !device.is_loop() && !device.is_memory() && !device.carries_a_device())
        .collect();
    let written = |device: &Device<'_>| device.span.growth.written.or(device.span.last.written).unwrap_or_default();
    drains.sort_by_key(|device| Reverse(written(device)));
    drains
}

/// Returns the whole device of a device number, partitions resolved.
pub fn by_dev(window: &Window, dev: DevId) -> Option<Device<'_>> {
    let lookup = window.lookup();
    let id = lookup.disk(lookup.whole(window, dev))?;
    device(window, id, window.disks.get(&id)?)
}

/// Returns the whole device that a filesystem is on; `None` for filesystems without one. Anonymous device numbers
/// (btrfs) are resolved by the mount's source.
pub fn of_mount<'a>(window: &'a Window, mount: &Mount) -> Option<Device<'a>> {
    by_dev(window, window.lookup().number_of_mount(mount)?)
}

/// Returns the bytes written per second by all disks together.
pub fn disks_write_rate(window: &Window) -> Option<f64> {
    let rates: Vec<f64> = disks(window).iter().filter_map(Device::write_rate).collect();
    (!rates.is_empty()).then(|| rates.iter().sum())
}

fn device<'a>(window: &'a Window, id: EntityId, span: &'a Span<DiskRow>) -> Option<Device<'a>> {
    let Some(Entity::Disk { dev, name }) = window.entities.get(&id) else { return None };
    let lookup = window.lookup();
    if lookup.is_partition(window, *dev, name) {
        return None;
    }
    Some(Device { id, dev: *dev, name, facts: lookup.device(window.facts.as_ref(), *dev), span, window })
}

/// A row of a device, and the time of reading.
type Reading = (Nanos, Arc<DiskRow>);

fn interval((start, before): &Reading, (end, after): &Reading) -> Option<Interval> {
    let seconds = Nanos(end.0.checked_sub(start.0)?).as_secs_f64();
    if seconds <= 0.0 {
        return None;
    }
    let written_bytes = grown(before.written, after.written)?;
    let writes = grown(before.writes, after.writes)?;
    let reads = grown(before.reads, after.reads).unwrap_or(0.0);
    let waited = grown(before.write_time, after.write_time).filter(|_| writes > 0.0);
    let waited_to_read = grown(before.read_time, after.read_time).filter(|_| reads > 0.0);
    // Some kernels add to the times only when a request begins or ends. Requests that were in flight before an interval in
    // which none ended were in flight for all of it.
    let none_ended = [
        grown(before.writes, after.writes),
        grown(before.reads, after.reads),
        grown(before.discards, after.discards),
        grown(before.flushes, after.flushes),
    ];
    let held = before.in_flight.filter(|_| none_ended.iter().flatten().all(|ended| *ended <= 0.0));
    let held = held.map(|held| held.0 as f64).filter(|held| *held > 0.0);
    let busy = grown(before.io_time, after.io_time).map(|ns| (ns / 1e9 / seconds).min(1.0));
    let queue = grown(before.weighted_io_time, after.weighted_io_time).map(|ns| ns / 1e9 / seconds);
    Some(Interval {
        end: *end,
        seconds,
        written_bytes,
        writes,
        read_bytes: grown(before.read, after.read).unwrap_or(0.0),
        reads,
        write_await_s: waited.map(|ns| ns / 1e9 / writes),
        read_await_s: waited_to_read.map(|ns| ns / 1e9 / reads),
        utilisation: if held.is_some() { Some(1.0) } else { busy },
        queue: queue.map(|queue| queue.max(held.unwrap_or(0.0))),
    })
}

/// Growth of a counter between two readings; `None` when one is missing or it was reset.
fn grown<Q: Quantity>(before: Option<Q>, after: Option<Q>) -> Option<f64> {
    after?.raw().checked_sub(before?.raw()).map(|step| step as f64)
}

fn mean_rate(intervals: &[Interval], amount: impl Fn(&Interval) -> f64) -> Option<f64> {
    let seconds: f64 = intervals.iter().map(|interval| interval.seconds).sum();
    let total: f64 = intervals.iter().map(amount).sum();
    (seconds > 0.0 && total > 0.0).then(|| total / seconds)
}

fn per_second<Q: Quantity>(growth: Option<Q>, seconds: f64) -> Option<f64> {
    growth.filter(|_| seconds > 0.0).map(|growth| growth.raw() as f64 / seconds)
}

fn ratio<Q: Quantity>(amount: Option<Q>, of: Option<Count>) -> Option<f64> {
    let of = of.filter(|of| of.0 > 0)?;
    amount.map(|amount| amount.raw() as f64 / of.0 as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_record::units::{Bytes, BytesPerSecond};
    use floodline_testkit::{Fixture, dev_of, mib, mount, secs};

    fn names(devices: &[Device<'_>]) -> String {
        devices.iter().map(|device| device.name.to_string()).collect::<Vec<_>>().join(" ")
    }

    /// A mirror of two disks with the filesystem, and a loop device on top of that filesystem.
    fn stacked() -> Fixture {
        Fixture::healthy()
            .disk("sdb", |_, _| {})
            .disk("sdb1", |_, _| {})
            .disk("md0", |_, _| {})
            .disk("loop0", |_, _| {})
            .facts(|facts| {
                for device in &mut facts.devices {
                    match device.name.to_string().as_str() {
                        "sdb1" => device.partition_of = Some(dev_of("sdb")),
                        "md0" => device.slaves = vec![dev_of("sda"), dev_of("sdb1")],
                        _ => {}
                    }
                }
            })
    }

    #[test]
    fn requests_in_flight_keep_a_disk_busy_while_none_ends() {
        let busy = |in_flight: u64, writes: u64| {
            let fixture = Fixture::healthy().seconds(1).disk("sda", move |t, row| {
                row.in_flight = Some(Count(in_flight));
                row.writes = Some(Count(if t > 0.0 { writes } else { 0 }));
                (row.reads, row.written) = (Some(Count(0)), Some(Bytes(0)));
                (row.io_time, row.weighted_io_time) = (Some(secs(1.0)), Some(secs(1.0)));
            });
            let window = fixture.window();
            let interval = disks(&window)[0].intervals()[0];
            (interval.utilisation, interval.queue)
        };
        assert_eq!(busy(8, 0), (Some(1.0), Some(8.0)));
        assert_eq!(busy(0, 0), (Some(0.0), Some(0.0)));
        assert_eq!(busy(8, 1), (Some(0.0), Some(0.0)), "one may have ended at once");
    }

    #[test]
    fn bytes_are_never_added_over_layers() {
        let window = stacked().window();
        assert_eq!(names(&devices(&window)), "sda sdb md0 loop0");
        assert_eq!(names(&disks(&window)), "sda sdb");
        assert_eq!(names(&drains(&window)), "md0");
        assert_eq!(names(&by_dev(&window, dev_of("md0")).unwrap().bottoms()), "sda sdb");
        assert_eq!(by_dev(&window, dev_of("sdb1")).unwrap().name.to_string(), "sdb");
    }

    #[test]
    fn without_facts_partitions_and_layers_are_told_by_name() {
        let window = stacked().facts(|facts| facts.devices.clear()).window();
        assert_eq!(names(&devices(&window)), "sda sdb md0 loop0");
        assert_eq!(names(&disks(&window)), "sda sdb");
    }

    #[test]
    fn devices_that_are_built_on_each_other_do_not_hang() {
        let window = stacked().facts(|facts| {
            facts.devices.iter_mut().for_each(|device| device.slaves = vec![dev_of("md0"), dev_of("sda")])
        });
        assert!(devices(&window.window()).iter().all(|device| device.bottoms().len() <= 5));
    }

    #[test]
    fn a_filesystem_with_an_anonymous_number_is_found_by_its_source() {
        let window = stacked().window();
        let mut btrfs = mount("sdb1", "btrfs", "/data", "rw");
        btrfs.dev = DevId { major: 0, minor: 45 };
        assert_eq!(of_mount(&window, &btrfs).unwrap().name.to_string(), "sdb");
        btrfs.source = Name::from("tmpfs");
        assert!(of_mount(&window, &btrfs).is_none());
    }

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

    /// Time in the queue is counted when a request completes: until then the queue looks empty.
    #[test]
    fn a_device_that_completes_nothing_is_saturated() {
        let interval = Interval {
            read_await_s: None,
            end: Nanos(0),
            seconds: 1.0,
            written_bytes: 0.0,
            writes: 0.0,
            read_bytes: 0.0,
            reads: 0.0,
            write_await_s: None,
            utilisation: Some(1.0),
            queue: Some(0.0),
        };
        assert!(interval.is_saturated());
        assert!(!Interval { writes: 3.0, ..interval }.is_saturated());
        assert!(!Interval { utilisation: Some(0.0), ..interval }.is_saturated());
    }

    #[test]
    fn a_counter_that_goes_backwards_makes_no_interval() {
        let window = writing(42.0, 1.0, 30.0).disk("sda", |t, row| {
            row.written = Some(Bytes(if t < 5.0 { 1 << 40 } else { 0 }));
        });
        assert_eq!(drains(&window.window())[0].intervals().len(), 9);
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
