// SPDX-License-Identifier: MIT OR Apache-2.0
//! Devices and mounts of the twin: the block devices with an active filesystem in the recording. A stack (md, dm) is
//! one device, as fast as its top was seen to be. Of several filesystems on one device the twin has one.

use super::ceiling_text::ceiling_text;
use super::latency::latency;
use super::names;
use super::requests::{Kind, is_read, requests_of};
use crate::provenance::Notes;
use crate::{Ceiling, KnownLimits, TwinError};
use floodline_analysis::diagnose::device::{self, Basis, Device as Seen, Interval, Speed};
use floodline_record::facts::{BlockDevice, Mount as Mounted, Stack};
use floodline_record::id::DevId;
use floodline_record::name::Name;
use floodline_record::units::{Bytes, BytesPerSecond, Nanos};
use floodline_record::window::Window;
use floodline_scenario::{
    Backing, BdiKnobs, ByteRate, ByteSize, CacheType, Device, FsType, IoRate, Mount, QueueKnobs, RequestsPerSecond,
    Time,
};
use std::collections::{BTreeMap, BTreeSet};

/// A filesystem that tasks can write to.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// The whole device.
    pub(super) dev: DevId,
    /// Its name in the scenario.
    pub(super) device: String,
    /// Mount point in the scenario.
    pub(super) point: String,
    /// Type of the filesystem.
    pub(super) fs_type: FsType,
    /// Mean size of a read, bytes.
    pub(super) mean_read: Option<f64>,
    /// Flushes of the device in the recording.
    pub(super) flushes: u64,
    /// Write requests that it completed.
    pub(super) writes: u64,
    /// Bytes that it wrote, without those of loop devices on it.
    pub(super) written: u64,
    /// The device that has its bytes again, if it is a loop device.
    pub(super) below: Option<DevId>,
    /// Whether it is a loop device whose writes go through the page cache: it takes them as fast as memory.
    pub(super) is_buffered: bool,
}

#[cfg(test)]
impl Place {
    /// An ext4 on `/data` of a disk that does nothing: `sda` (8:0), or `vda` (254:0).
    pub(super) fn of_disk(device: &str) -> Place {
        let major = if device == "vda" { 254 } else { 8 };
        Place {
            dev: DevId { major, minor: 0 },
            device: device.to_owned(),
            point: "/data".to_owned(),
            fs_type: FsType::Ext4,
            mean_read: None,
            flushes: 0,
            writes: 0,
            written: 0,
            below: None,
            is_buffered: false,
        }
    }
}

/// All of them, most written first; never empty.
#[derive(Clone, Debug)]
pub(super) struct Places(pub(super) Vec<Place>);

impl Places {
    /// The place of a device.
    pub(super) fn of(&self, dev: DevId) -> Option<&Place> {
        self.0.iter().find(|place| place.dev == dev)
    }
}

/// Most devices of a twin.
const DEVICES_MAX: usize = 64;
/// Writes at least this large are limited by bytes.
pub(super) const LARGE: f64 = 65_536.0;
/// Shortest busy time between two samples that is conclusive.
const BUSY_SECONDS: f64 = 0.05;

type Made = (BTreeMap<String, Device>, BTreeMap<String, Mount>, Places, Vec<Ceiling>);

pub(super) fn devices(window: &Window, notes: &mut Notes, unknown: &mut Vec<String>) -> Result<Made, TwinError> {
    let mut made: Made = (BTreeMap::new(), BTreeMap::new(), Places(Vec::new()), Vec::new());
    let (mut taken, mut points) = (names::Taken::default(), names::Taken::default());
    for seen in device::drains(window) {
        let mounts = seen.mounts();
        let Some(mounted) = main_mount(&mounts) else { continue };
        let did = |n: Option<u64>| n.unwrap_or(0);
        let written = did(seen.span.growth.written.map(|n| n.0));
        let read = did(seen.span.growth.read.map(|n| n.0));
        let is_first = made.2.0.is_empty();
        if (written == 0 && read == 0 && !is_first) || made.2.0.len() >= DEVICES_MAX {
            continue;
        }
        let name = taken.unique(&names::word(seen.name.as_bytes()), 20);
        let key = format!("machine.devices.{name}");
        let (device, ceiling) = device(window, &seen, &name, &key, notes);
        let (point, mount, fs_type) = mount(mounted, &name, &mut points, notes);
        if mounts.len() > 1 {
            let others = mounts.iter().filter(|other| other.dev != mounted.dev).count();
            if others > 0 {
                unknown.push(format!("{name} carries several filesystems; the twin has one, {point}."));
            }
        }
        let flushes = did(seen.span.growth.flushes.map(|n| n.0));
        let reads = did(seen.span.growth.reads.map(|n| n.0));
        let writes = did(seen.span.growth.writes.map(|n| n.0));
        let mean_read = (reads > 0).then(|| read as f64 / reads as f64);
        made.0.insert(name.clone(), device);
        made.1.insert(point.clone(), mount);
        made.2.0.push(Place {
            dev: seen.dev,
            device: name,
            point,
            fs_type,
            mean_read,
            flushes,
            writes,
            written,
            below: None,
            is_buffered: false,
        });
        made.3.push(ceiling);
    }
    if made.2.0.is_empty() {
        return Err(TwinError::NoDevice);
    }
    add_loops(window, &mut made, (&mut taken, &mut points), notes);
    Ok(made)
}

/// Adds the loop devices that were written to and carry a filesystem, on the filesystems of their files. What a program
/// writes to one is written below again, so the places are ordered by what was first written there.
fn add_loops(
    window: &Window,
    (devices, mounts, places, _): &mut Made,
    (taken, points): (&mut names::Taken, &mut names::Taken),
    notes: &mut Notes,
) {
    let Some(facts) = window.facts.as_ref() else { return };
    let lookup = window.lookup();
    let written = |seen: &Seen<'_>| seen.span.growth.written.map_or(0, |bytes| bytes.0);
    let mut own: BTreeMap<DevId, u64> = device::drains(window).iter().map(|seen| (seen.dev, written(seen))).collect();
    for seen in device::devices(window).iter().filter(|seen| seen.is_loop() && written(seen) > 0) {
        if places.0.len() >= DEVICES_MAX {
            break;
        }
        let Some(Stack::Loop { backing_file, dio }) = seen.facts.map(|facts| &facts.stack) else { continue };
        let on_it = seen.mounts();
        let Some(mounted) = main_mount(&on_it).filter(|mounted| !mounted.has_option("ro")) else { continue };
        let below = lookup.mount_of_file(facts, backing_file).and_then(|holder| device::of_mount(window, holder));
        let Some(below) = below.and_then(|below| places.of(below.dev).cloned()) else { continue };
        let room = devices.get(&below.device).and_then(|device| device.size).map_or(1 << 30, |size| size.bytes());
        let name = taken.unique(&names::word(seen.name.as_bytes()), 20);
        let key = format!("machine.devices.{name}");
        let file = format!("{}/twin/{name}.img", below.point);
        notes.measured(format!("{key}.backing"), format!("a loop device with the file {backing_file}"));
        let size = seen.facts.and_then(|facts| facts.size).map_or(1 << 30, |size| size.0).min(room / 10 * 9);
        let device = Device {
            size: Some(ByteSize(Bytes(size.max(64 << 20)))),
            backing: Backing::Loop { file, direct_io: !is_buffered(*dio) },
            bdi: bdi(window, seen, &key, notes),
            ..Device::default()
        };
        let (point, mount, fs_type) = mount(mounted, &name, points, notes);
        let below = below.dev;
        if let Some(bytes) = own.get_mut(&below) {
            *bytes = bytes.saturating_sub(written(seen));
        }
        own.insert(seen.dev, written(seen));
        let flushes = seen.span.growth.flushes.map_or(0, |count| count.0);
        devices.insert(name.clone(), device);
        mounts.insert(point.clone(), mount);
        places.0.push(Place {
            dev: seen.dev,
            device: name,
            point,
            fs_type,
            mean_read: None,
            flushes,
            writes: seen.span.growth.writes.map_or(0, |count| count.0),
            written: 0,
            below: Some(below),
            is_buffered: is_buffered(*dio),
        });
    }
    for place in &mut places.0 {
        place.written = own.get(&place.dev).copied().unwrap_or(0);
    }
    places.0.sort_by_key(|place| std::cmp::Reverse(place.written));
}

/// Bytes that buffered loop devices wrote up to each sample since the one before: they became dirty again in the files
/// below.
pub(super) fn written_twice(window: &Window) -> BTreeMap<Nanos, f64> {
    let loops = device::devices(window).into_iter().filter(
        |seen| matches!(seen.facts.map(|facts| &facts.stack), Some(Stack::Loop { dio, .. }) if is_buffered(*dio)),
    );
    let mut written = BTreeMap::new();
    for one in loops.flat_map(|seen| seen.intervals()) {
        *written.entry(one.end).or_default() += one.written_bytes;
    }
    written
}

/// The devices below loop devices whose writes do not go through the page cache below: what these wrote are pages of the loop
/// devices, and none of the devices here.
pub(super) fn below_direct(window: &Window) -> BTreeSet<DevId> {
    let Some(facts) = window.facts.as_ref() else { return BTreeSet::new() };
    let lookup = window.lookup();
    let below = |seen: &Seen<'_>| {
        let Stack::Loop { backing_file, dio } = &seen.facts?.stack else { return None };
        let wrote = seen.span.growth.written.is_some_and(|bytes| bytes.0 > 0);
        let holder = lookup.mount_of_file(facts, backing_file).filter(|_| wrote && !is_buffered(*dio))?;
        Some(device::of_mount(window, holder)?.dev)
    };
    device::devices(window).iter().filter_map(below).collect()
}

/// Whether a loop device goes through the page cache below it, by its `dio` file: it does unless it says otherwise.
fn is_buffered(dio: Option<bool>) -> bool {
    dio != Some(true)
}

/// The mount that stands for a device: the first of a type that scenarios support, else the first of any.
fn main_mount<'a>(mounts: &[&'a Mounted]) -> Option<&'a Mounted> {
    let is_known = |mount: &&&Mounted| matches!(mount.fs_type.as_str(), "ext4" | "xfs" | "btrfs");
    mounts.iter().find(is_known).or(mounts.first()).copied()
}

fn mount(mounted: &Mounted, device: &str, points: &mut names::Taken, notes: &mut Notes) -> (String, Mount, FsType) {
    let path = names::path(mounted.mount_point.as_bytes());
    // A scenario mounts nothing at its root, and anything below /tmp and /run is in memory.
    let in_memory = ["tmp", "run"].iter().any(|top| path == *top || path.starts_with(&format!("{top}/")));
    let path = match path.as_str() {
        "" => "rootfs".to_owned(),
        _ if in_memory => format!("on/{path}"),
        _ => path,
    };
    let point = format!("/{}", points.unique(&path, 500));
    let key = format!("machine.mounts.\"{point}\"");
    let fs_type = match mounted.fs_type.as_str() {
        "ext4" => FsType::Ext4,
        "xfs" => FsType::Xfs,
        "btrfs" => FsType::Btrfs,
        _ => {
            notes.assumed(format!("{key}.type"), "the scenario language does not have this filesystem: ext4 instead");
            FsType::Ext4
        }
    };
    notes.measured(&key, format!("mounted at {}", mounted.mount_point));
    let kept = ["noatime", "lazytime", "nodiratime"].into_iter().filter(|option| mounted.has_option(option));
    let mount = Mount {
        fs_type,
        device: Some(device.to_owned()),
        mkfs: floodline_scenario::Mkfs::default(),
        options: kept.map(str::to_owned).collect(),
        overlay: None,
        instances: None,
        at_start: true,
        in_use: true,
    };
    (point, mount, fs_type)
}

fn device(window: &Window, seen: &Seen<'_>, name: &str, key: &str, notes: &mut Notes) -> (Device, Ceiling) {
    let facts: Option<&BlockDevice> = seen.facts;
    let size = facts.and_then(|facts| facts.size).map_or(64 << 30, |size| size.0).max(1 << 30);
    notes.measured(format!("{key}.size"), "size of the device, at least 1 GiB");
    let is_turning = facts.and_then(|facts| facts.rotational).unwrap_or(false);
    let intervals = seen.intervals();
    let saturated =
        |speed: Option<Speed>| speed.filter(|speed| speed.basis == Basis::Saturated).map(|speed| speed.value);
    let bandwidth = saturated(seen.write_bandwidth());
    let bandwidth = bandwidth.filter(|ceiling| !is_exceeded(&intervals, *ceiling, Interval::write_rate));
    let of_requests = requests_of(seen, &intervals, bandwidth);
    let (iops, kind) = of_requests.map_or((None, None), |it| (Some(it.per_second), Some(it.kind)));
    // Where a disk seeks for each request, its bytes per second are those of these requests.
    let is_seeking = kind == Some(Kind::Seeks);
    let bandwidth = bandwidth.filter(|_| !is_seeking);
    let is_of_bytes = bandwidth.is_some() && !iops.is_some_and(|iops| is_full_of_requests(&intervals, iops));
    let busy = if bandwidth.is_none() && !is_seeking { while_busy(&intervals) } else { None };
    let read = read_bandwidth(&intervals);
    let rate = |value: f64| Some(ByteRate(BytesPerSecond((value as u64).max(1))));
    let requests = |value: f64| Some(IoRate(RequestsPerSecond((value.round() as u64).max(1))));
    if bandwidth.is_some() {
        notes.measured(format!("{key}.write_bandwidth"), "bytes per second while it was saturated by large writes");
    } else if busy.is_some() {
        notes.derived(format!("{key}.write_bandwidth"), "bytes per busy second; never saturated, so it may be faster");
    }
    if let Some(kind) = kind {
        kind.note(key, notes);
    }
    let write_bandwidth = bandwidth.or(busy).and_then(rate);
    let read_bandwidth = match (read, bandwidth) {
        (Some(read), _) => {
            notes.measured(format!("{key}.read_bandwidth"), "bytes per second while it was saturated by large reads");
            rate(read)
        }
        (None, Some(write)) => {
            notes.assumed(format!("{key}.read_bandwidth"), "as fast as writes");
            rate(write)
        }
        (None, None) => None,
    };
    // The seek is the time of a small request.
    let latency = if is_seeking { None } else { latency(window, seen, iops.is_none() && !is_turning, key, notes) };
    // Single requests show more than many.
    let takes_turns = |ceiling| latency.is_none() && takes_turns(&intervals, ceiling);
    let is_by_turns = bandwidth.is_none() && !is_seeking && iops.is_some_and(takes_turns);
    let burst = bandwidth.filter(|ceiling| has_no_credit(&intervals, *ceiling)).map(|_| Time(Nanos(0)));
    let burst = burst.or(is_by_turns.then_some(Time(Nanos(0))));
    if is_by_turns {
        notes.derived(format!("{key}.burst"), "it is busy for as long as its requests need one after the other");
    } else if burst.is_some() {
        notes.derived(format!("{key}.burst"), "after a quiet time it is busy for as long as its bytes need");
    }
    let device = Device {
        profile: None,
        size: Some(ByteSize(Bytes(size))),
        write_bandwidth,
        read_bandwidth,
        write_iops: iops.filter(|_| matches!(kind, Some(Kind::Each | Kind::OfBursts | Kind::Seeks))).and_then(requests),
        read_iops: iops
            .filter(|_| matches!(kind, Some(Kind::Each | Kind::OfBursts | Kind::Reads | Kind::Seeks)))
            .and_then(requests),
        iops: iops.filter(|_| kind == Some(Kind::Together)).and_then(requests),
        seek: of_requests.and_then(|it| it.seek).map(|seconds| Time(Nanos((seconds * 1e9) as u64))),
        burst,
        latency,
        rotational: is_turning,
        bdi: bdi(window, seen, key, notes),
        queue: queue(facts, key, notes),
        ..Device::default()
    };
    let ceiling = Ceiling {
        device: name.to_owned(),
        is_known: bandwidth.is_some() || iops.is_some(),
        known: KnownLimits {
            write_bytes: is_of_bytes,
            read_bytes: read.is_some(),
            writes: matches!(kind, Some(Kind::Each | Kind::OfBursts | Kind::Together | Kind::Seeks)),
            reads: matches!(kind, Some(Kind::Reads | Kind::Together)),
        },
        write_bytes_per_second: bandwidth.or(busy),
        requests_per_second: iops,
        has_credit: false,
        text: ceiling_text(name, bandwidth.filter(|_| is_of_bytes), of_requests, bandwidth.or(busy)),
    };
    (device, ceiling)
}

/// How far above a ceiling a device was, and in how many intervals, that was not even saturated then.
const EXCEEDED: f64 = 1.5;
const EXCEEDED_MIN: usize = 2;

/// Utilisation from which consecutive intervals form one busy stretch, and factor over a ceiling up to which its mean may be.
const BUSY_STRETCH: f64 = 0.5;
const PAID: f64 = 1.2;

/// Whether a device did more than its ceiling while it was not saturated. Then it was something else that held it up,
/// such as a host that had no time for its guest. A device that lends speed does more for a moment and then as much less:
/// over the whole busy stretch, it keeps to its ceiling.
pub(super) fn is_exceeded(intervals: &[Interval], ceiling: f64, rate: impl Fn(&Interval) -> f64) -> bool {
    let is_busy = |interval: &Interval| interval.utilisation.is_some_and(|share| share >= BUSY_STRETCH);
    let above = |interval: &&Interval| !interval.is_saturated() && rate(interval) > EXCEEDED * ceiling;
    let exceeding = |stretch: &[Interval]| {
        let seconds: f64 = stretch.iter().map(|one| one.seconds).sum();
        let did: f64 = stretch.iter().map(|one| rate(one) * one.seconds).sum();
        let is_paid = stretch.len() > 1 && did <= PAID * ceiling * seconds;
        if is_paid { 0 } else { stretch.iter().filter(above).count() }
    };
    intervals.chunk_by(|one, next| is_busy(one) && is_busy(next)).map(exceeding).sum::<usize>() >= EXCEEDED_MIN
}

/// Time for which a limit of a hypervisor lets bytes through at once after a quiet time, seconds.
const CREDIT_S: f64 = 0.1;
/// Utilisation below which a device was quiet, and up to which an interval shows when the device became busy.
const QUIET: f64 = 0.15;
const NOT_FULL: f64 = 0.9;
/// Part of the credit by which the busy time may differ from what the bytes need, for a device without credit.
const CREDIT_ERROR: f64 = 0.3;
/// Number of such intervals that are more than chance.
const CREDIT_MIN: usize = 2;

/// Whether a device has no credit after a quiet time. A limit of a hypervisor takes the first bytes at once, so that the device is
/// busy for less time than they need at the ceiling. A disk or a volume is busy for as long as they need.
fn has_no_credit(intervals: &[Interval], ceiling: f64) -> bool {
    let saved = |pair: &[Interval]| {
        let [before, now] = pair else { return None };
        let (quiet, busy) = (before.utilisation?, now.utilisation?);
        let needs = now.written_bytes / ceiling;
        let is_start = quiet < QUIET && busy < NOT_FULL && needs >= CREDIT_S;
        // The small requests of the quiet time go on.
        is_start.then_some(needs - (busy - quiet * (1.0 - busy)) * now.seconds)
    };
    let saved: Vec<f64> = intervals.windows(2).filter_map(saved).collect();
    let none = saved.iter().filter(|seconds| seconds.abs() <= CREDIT_ERROR * CREDIT_S).count();
    none >= CREDIT_MIN && 4 * none >= 3 * saved.len()
}

/// Fewest intervals that show whether requests take turns, and their busy time over what their requests need, in the middle.
const TURNS_MIN: usize = 5;
const TURNS: std::ops::Range<f64> = 0.7..1.4;

/// Whether small requests take turns on a device: while it is not full, it is busy for as long as they need at its ceiling. Behind a limit
/// of a hypervisor, requests below the limit take no time.
fn takes_turns(intervals: &[Interval], ceiling: f64) -> bool {
    let is_small =
        |one: &&Interval| one.written_bytes + one.read_bytes <= LARGE * (one.writes + one.reads) && !one.is_saturated();
    let busy_of_needs = |one: &Interval| {
        let busy = one.utilisation.filter(|share| *share < NOT_FULL)? * one.seconds;
        let needs = (one.writes + one.reads) / ceiling;
        (needs >= CREDIT_S * one.seconds).then_some(busy / needs)
    };
    let mut all: Vec<f64> = intervals.iter().filter(is_small).filter_map(busy_of_needs).collect();
    all.sort_by(f64::total_cmp);
    all.len() >= TURNS_MIN && all.get(all.len() / 2).is_some_and(|middle| TURNS.contains(middle))
}

/// Part of its requests per second from which a device is full by their number.
const FULL_OF_REQUESTS: f64 = 0.9;

/// Whether a device took as many requests as it can, of any size, in most intervals in which large writes saturated it. They show no
/// limit of bytes then.
fn is_full_of_requests(intervals: &[Interval], ceiling: f64) -> bool {
    let is_large = |one: &&Interval| one.is_saturated() && one.mean_write().is_some_and(|mean| mean >= LARGE);
    let is_at_ceiling = |one: &&Interval| one.writes + one.reads >= FULL_OF_REQUESTS * ceiling * one.seconds;
    let large = || intervals.iter().filter(is_large);
    2 * large().filter(is_at_ceiling).count() > large().count()
}

/// Bytes per busy second in intervals of large writes.
fn while_busy(intervals: &[Interval]) -> Option<f64> {
    let (mut bytes, mut seconds) = (0.0, 0.0);
    for interval in intervals {
        let busy = interval.utilisation.unwrap_or(0.0) * interval.seconds;
        let is_large = interval.mean_write().is_some_and(|mean| mean >= LARGE);
        if busy >= BUSY_SECONDS && is_large && interval.written_bytes > interval.read_bytes {
            bytes += interval.written_bytes;
            seconds += busy;
        }
    }
    (seconds > 0.0).then(|| bytes / seconds)
}

/// Bytes per second in intervals that reads saturated.
fn read_bandwidth(intervals: &[Interval]) -> Option<f64> {
    let (mut bytes, mut seconds) = (0.0, 0.0);
    for interval in intervals.iter().filter(is_read) {
        bytes += interval.read_bytes;
        seconds += interval.seconds;
    }
    (seconds > 0.0).then(|| bytes / seconds)
}

/// Parts per million in a percent.
const PPM_OF_PERCENT: u64 = 10_000;
/// `vm.dirty_ratio` of a kernel that boots.
const DEFAULT_RATIO: u64 = 20;

fn bdi(window: &Window, seen: &Seen<'_>, key: &str, notes: &mut Notes) -> BdiKnobs {
    // Those of a btrfs on it are not in the language, and the kernel's own values are the model's.
    let own = window.lookup().bdi(&Name::new(seen.dev.to_string())).and_then(|id| window.bdis.get(&id));
    let Some(row) = own.map(|span| &span.last) else { return BdiKnobs::default() };
    let percent = |ppm: Option<floodline_record::units::Ppm>| {
        ppm.map(|ppm| u32::try_from(ppm.0.div_ceil(PPM_OF_PERCENT)).unwrap_or(100).min(100))
    };
    // `max_bytes` sets a ratio that is no whole percent, as `max_ratio_fine` does, and `max_ratio` shows it rounded. A percent more
    // of a large threshold is many times a small share. The kernel takes bytes as a ratio of the threshold of that moment, and the
    // model does so before it sets other thresholds.
    let is_whole = row.max_ratio.is_none_or(|ppm| ppm.0.is_multiple_of(PPM_OF_PERCENT));
    let host = &window.host.last;
    let is_default = host.dirty_ratio.is_some_and(|ratio| ratio.0 == DEFAULT_RATIO)
        && host.dirty_bytes.is_none_or(|bytes| bytes.0 == 0);
    let max_bytes = row.max_bytes.filter(|bytes| !is_whole && is_default && bytes.0 > 0);
    let knobs = BdiKnobs {
        min_ratio: percent(row.min_ratio).filter(|ratio| *ratio > 0),
        max_ratio: percent(row.max_ratio).filter(|ratio| *ratio < 100 && max_bytes.is_none()),
        max_bytes: max_bytes.map(ByteSize),
        strict_limit: row.strict_limit.map(|flag| flag.0 > 0).filter(|is_set| *is_set),
        read_ahead: row.read_ahead.filter(|bytes| bytes.0 != 128 << 10).map(ByteSize),
    };
    if knobs != BdiKnobs::default() {
        notes.measured(format!("{key}.bdi"), "/sys/class/bdi");
    }
    knobs
}

fn queue(facts: Option<&BlockDevice>, key: &str, notes: &mut Notes) -> QueueKnobs {
    let Some(facts) = facts.filter(|facts| facts.stack == Stack::Bottom) else { return QueueKnobs::default() };
    let scheduler = facts.scheduler.as_ref().map(ToString::to_string);
    let known = |name: &String| ["none", "mq-deadline", "kyber", "bfq"].contains(&name.as_str());
    let knobs = QueueKnobs {
        scheduler: scheduler.filter(known).filter(|name| name != "none"),
        nr_requests: facts.nr_requests.and_then(|n| u32::try_from(n).ok()).filter(|n| (4..=4096).contains(n)),
        wbt_latency: facts.wbt_lat.map(Time),
        write_cache: (facts.write_back_cache == Some(false)).then_some(CacheType::WriteThrough),
    };
    if knobs != QueueKnobs::default() {
        notes.measured(format!("{key}.queue"), "/sys/block/NAME/queue");
    }
    knobs
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seconds of a device: MB that it wrote, its utilisation and its queue.
    fn intervals(seconds: &[(f64, f64, f64)]) -> Vec<Interval> {
        let one = |(at, (megabytes, utilisation, queue)): (usize, &(f64, f64, f64))| Interval {
            end: Nanos((at as u64 + 1) * 1_000_000_000),
            seconds: 1.0,
            written_bytes: megabytes * 1e6,
            writes: 10.0,
            read_bytes: 0.0,
            reads: 0.0,
            write_await_s: None,
            read_await_s: None,
            utilisation: Some(*utilisation),
            queue: Some(*queue),
            flushes: None,
        };
        seconds.iter().enumerate().map(one).collect()
    }

    #[test]
    fn a_device_that_lends_speed_keeps_to_its_ceiling() {
        let is_exceeded = |seconds: &[(f64, f64, f64)]| is_exceeded(&intervals(seconds), 24e6, Interval::write_rate);
        // 75 MB in a second and nothing in the next two.
        let lent = [(75.0, 0.7, 0.5), (0.0, 1.0, 9.0), (0.0, 1.0, 9.0), (24.0, 1.0, 9.0)];
        assert!(!is_exceeded(&[lent, lent, lent].concat()));
        // One that does as much again and again, and rests between, is faster.
        let faster = [(75.0, 0.7, 0.5), (0.0, 0.1, 0.0), (24.0, 1.0, 9.0), (0.0, 0.1, 0.0)];
        assert!(is_exceeded(&[faster, faster, faster].concat()));
    }
    #[test]
    fn a_device_that_is_busy_for_as_long_as_its_requests_need_takes_them_in_turns() {
        let takes_turns = |seconds: &[(f64, f64, f64)]| takes_turns(&intervals(seconds), 20.0);
        // Ten small requests in each second, at most 20 of which fit.
        assert!(takes_turns(&[(0.04, 0.5, 1.3); 8]));
        assert!(!takes_turns(&[(0.04, 0.01, 1.3); 8]), "a limit lets them through at once");
        assert!(!takes_turns(&[(0.04, 0.5, 1.3); 3]), "too few");
        assert!(!takes_turns(&[(4.0, 0.5, 1.3); 8]), "their bytes take the time");
    }

    #[test]
    fn large_writes_at_the_limit_of_requests_show_no_limit_of_bytes() {
        // 13 MB in the ten requests of each second.
        let full = |ceiling| is_full_of_requests(&intervals(&[(13.0, 1.0, 9.0); 4]), ceiling);
        assert!(full(10.0) && full(11.0));
        assert!(!full(90.0), "its requests are few");
        assert!(!is_full_of_requests(&intervals(&[(13.0, 0.4, 0.5); 4]), 10.0), "it is not full");
    }
}
