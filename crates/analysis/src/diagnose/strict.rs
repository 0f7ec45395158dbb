// SPDX-License-Identifier: MIT OR Apache-2.0
//! Strict limits of devices as rules see them: the amount that a device may have unwritten in each sample, whether it had
//! as much, and which processes slept then. A finding about them comes from `strictlimit-throttling`; other rules must know
//! that such a device pauses its writers. Does not cover traced pauses: [`super::throttle`].

use super::derived::Derived;
use super::device::Device;
use super::waiting::Waiter;
use super::{burst, dirty, elsewhere, throttle};
use floodline_record::id::{Entity, EntityId, is_of_btrfs};
use floodline_record::name::Name;
use floodline_record::sample::{BdiRow, HostRow};
use floodline_record::units::{Bytes, Nanos};
use floodline_record::window::{Span, Window};
use std::collections::{BTreeMap, BTreeSet};

/// Part of its largest share from which a device counts as at its limit. Pausing begins between half of the share and three
/// quarters of it, and a sample may follow the pause.
const AT_SHARE: f64 = 0.5;
/// Part of its largest share at which the writers of a device get exactly the rate that was measured for it: half way between
/// the share and its background part, which is half of it with the kernel's default ratios and never more than all of it.
const SETPOINT_SHARE: f64 = 0.75;
/// Part of the written bytes of a disk from which something else than an array on it writes to it, as a log does not.
const BESIDE: f64 = 0.05;
/// Fewest samples at the limit, of others, and of a process asleep that show when it sleeps.
const SAMPLES_LEAST: usize = 3;
/// Source of waits that only the pressure shows.
pub const PRESSURE: &str = "/proc/pressure/io some, at the limit";
/// Source of a wait that is longer than the pressure at the limit: a part of it was elsewhere.
pub const AT_MOST: &str = "/proc/PID/stat delayacct_blkio_ticks, at most the I/O pressure at the limit";

/// A device with a strict limit in one sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// Time of the sample.
    pub at: Nanos,
    /// Bytes of the device that were dirty or under writeback; `None` where debugfs was not read, or does not count those of cgroups.
    pub own: Option<u64>,
    /// Bytes of the machine that were dirty or under writeback.
    pub machine: u64,
    /// Bytes that became dirty on the device in a second, or since the sample before if that is less long ago; 0 where that is not
    /// known.
    pub dirtied: u64,
    /// The device's share of the hard threshold of this moment, bytes.
    pub limit: f64,
    /// Where the machine's own throttling began at this moment, bytes.
    pub freerun: u64,
}

impl Level {
    /// Unwritten bytes of the device, or at most those.
    pub fn held(&self) -> u64 {
        self.own.unwrap_or(self.machine)
    }

    /// Part of the limit that is unwritten.
    pub fn part(&self) -> f64 {
        self.held() as f64 / self.limit.max(1.0)
    }

    /// Whether the device held so much in the sample that its writers were paused.
    pub fn is_full(&self) -> bool {
        self.part() >= AT_SHARE
    }

    /// Whether the writers of the device were at its limit in the sample or just before it. Writers that fill all of the limit
    /// between two samples are, even if little of that is left. A device that has only a small part of the machine's writeback
    /// also has a smaller limit than its settings allow.
    pub fn is_at_limit(&self) -> bool {
        self.is_full() || self.limit > 0.0 && self.dirtied as f64 >= self.limit
    }

    /// Whether so much was unwritten that the limit slows its writers down, whatever else limits them.
    pub fn is_past_setpoint(&self) -> bool {
        self.part() >= SETPOINT_SHARE
    }

    /// Whether the machine as a whole had room for more.
    pub fn has_room(&self) -> bool {
        self.machine < self.freerun
    }
}

/// A device with a strict limit in a window.
#[derive(Clone, Debug)]
pub struct Strict {
    /// Name of its bdi.
    pub bdi: Name,
    /// Its samples, in order of time. The limit is a part of the hard threshold, which falls while programs use memory: each
    /// sample has its own.
    pub levels: Vec<Level>,
    /// Seconds with a task waiting for I/O in the intervals at whose end the device was at its limit.
    pub pressed_s: f64,
    /// Such seconds in the intervals at whose start or end it was: a pause that begins before a sample goes on after it.
    pub pressed_beside_s: f64,
}

impl Strict {
    /// Whether debugfs showed the device at its limit in a sample.
    fn is_known_to_hold(&self) -> bool {
        self.levels.iter().any(|level| level.own.is_some() && level.is_full())
    }
}

/// Devices with a strict limit, by their order in the window.
pub fn devices(derived: &Derived<'_>) -> Vec<Strict> {
    let of = |(id, span): (&EntityId, &Span<BdiRow>)| {
        span.max.strict_limit.filter(|flag| flag.0 == 1)?;
        let Some(Entity::Bdi { name }) = derived.window.entities.get(id) else { return None };
        let levels = levels(derived, span, derived.window.bdi_series.get(id)?);
        let (mut pressed_s, mut pressed_beside_s) = (0.0, 0.0);
        for pair in levels.windows(2) {
            let [from, to] = pair else { continue };
            let share = dirty::io_pressure_between(derived.window, from.at, to.at).unwrap_or(0.0);
            let seconds = share * Nanos(to.at.0.saturating_sub(from.at.0)).as_secs_f64();
            pressed_s += if to.is_at_limit() { seconds } else { 0.0 };
            pressed_beside_s += if to.is_at_limit() || from.is_at_limit() { seconds } else { 0.0 };
        }
        (!levels.is_empty()).then(|| Strict { bdi: name.clone(), levels, pressed_s, pressed_beside_s })
    };
    derived.window.bdis.iter().filter_map(of).collect()
}

/// The samples of a device in which its limit was strict.
fn levels(derived: &Derived<'_>, span: &Span<BdiRow>, series: &[(Nanos, BdiRow)]) -> Vec<Level> {
    // Settings are not read in each sample.
    let (mut is_strict, mut ratio) = (span.first.strict_limit, span.first.max_ratio);
    let (mut levels, mut dirtied_before): (Vec<Level>, Option<(Nanos, Bytes)>) = (Vec::new(), None);
    let (is_whole, is_only) = (burst::counts_all_wbs(derived), derived.drains().len() < 2);
    for (at, row) in series {
        // Where the device counts a part only, and no other device is written, what the machine dirtied is its own.
        let of_machine = || host_at(derived.window, *at)?.nr_dirtied.map(|pages| pages.bytes(derived.page_size));
        let row_dirtied = if is_whole { row.dirtied } else { of_machine().filter(|_| is_only) };
        let dirtied = row_dirtied.zip(dirtied_before).map_or(0, |(now, (then, before))| {
            let seconds = Nanos(at.0.saturating_sub(then.0)).as_secs_f64();
            (now.0.saturating_sub(before.0) as f64 / seconds.max(1.0)) as u64
        });
        dirtied_before = row_dirtied.map(|dirtied| (*at, dirtied)).or(dirtied_before);
        (is_strict, ratio) = (row.strict_limit.or(is_strict), row.max_ratio.or(ratio));
        let level = host_at(derived.window, *at).and_then(|host| {
            let hard = host.nr_dirty_threshold?.bytes(derived.page_size).0;
            let background = host.nr_dirty_background_threshold?.bytes(derived.page_size).0;
            Some(Level {
                at: *at,
                own: unwritten(row).filter(|_| is_whole),
                machine: dirty::unwritten_of(derived.window, host)?.0,
                dirtied,
                limit: hard as f64 * ratio.map_or(1.0, |ratio| ratio.0 as f64 / 1e6),
                freerun: background.saturating_add(hard) / 2,
            })
        });
        levels.extend(level.filter(|_| is_strict.is_some_and(|flag| flag.0 == 1)));
    }
    levels
}

/// The machine's row of the sample at a moment.
fn host_at(window: &Window, moment: Nanos) -> Option<&HostRow> {
    let after = window.host_series.partition_point(|(at, _)| at.monotonic <= moment);
    window.host_series.get(after.checked_sub(1)?).map(|(_, row)| row)
}

/// Unwritten bytes of a device.
fn unwritten(row: &BdiRow) -> Option<u64> {
    Some(row.reclaimable?.0.saturating_add(row.writeback?.0))
}

/// Whether a device reached its strict limit, or all arrays and volumes on it that were written did, and nothing else wrote to it. Its
/// writers were then paused, and at most the limit was queued at once.
pub fn holds(derived: &Derived<'_>, device: &Device<'_>) -> bool {
    let bdi = device.bdi_name();
    let at_limit = || derived.strict().iter().filter(|strict| strict.is_known_to_hold());
    if at_limit().any(|strict| bdi.as_ref() == Some(&strict.bdi)) {
        return true;
    }
    let is_on_it =
        |above: &&Device<'_>| above.id != device.id && above.bottoms().iter().any(|below| below.dev == device.dev);
    let held: BTreeSet<EntityId> =
        at_limit().filter_map(|strict| device_of(derived, strict)).filter(is_on_it).map(|one| one.id).collect();
    let all = device.span.growth.written.map_or(0.0, |bytes| bytes.0 as f64);
    let is_much = |written: Option<Bytes>| written.is_none_or(|it| it.0 > 0 && it.0 as f64 >= BESIDE * all);
    let mut others = derived.drains().iter().filter(is_on_it).filter(|other| !held.contains(&other.id));
    // Filesystems on the disk or on its partitions.
    let is_mounted = device.mounts().iter().any(|mount| !mount.has_option("ro"));
    let own = device.bdi().and_then(|bdi| bdi.growth.written).filter(|_| burst::counts_all_wbs(derived));
    !(held.is_empty() || others.any(|other| is_much(other.span.growth.written)) || is_mounted && is_much(own))
}

/// Whether what the machine holds may be the data of a device, where its own counters do not tell: it wrote a good part of its limit. A
/// filesystem such as FUSE has no disk, and what the disks of the machine hold says nothing about it.
pub fn may_hold_all(derived: &Derived<'_>, strict: &Strict) -> bool {
    let least = strict.levels.iter().map(|level| level.limit).fold(f64::INFINITY, f64::min);
    match device_of(derived, strict) {
        Some(device) => device.span.growth.written.is_some_and(|written| written.0 as f64 >= AT_SHARE * least),
        None => is_of_btrfs(&strict.bdi),
    }
}

/// The block device whose data a bdi counts; a filesystem may have a bdi without one, and a btrfs leaves that of its disk idle.
pub fn device_of<'d, 'w>(derived: &'d Derived<'w>, strict: &Strict) -> Option<&'d Device<'w>> {
    derived.devices().iter().find(|one| one.bdi_name().as_ref() == Some(&strict.bdi))
}

/// Processes that samples show to be paused by the strict limit of a device, the longest first. They write, as far as that can be read.
/// Their cgroup uses no other disk alone. If samples show them asleep often enough, they sleep in a larger part of the samples at the
/// limit than of the others. Only their waits in the time at the limit count.
pub fn paused(derived: &Derived<'_>, strict: &Strict) -> Vec<Waiter> {
    let elsewhere =
        device_of(derived, strict).map(|device| elsewhere::cgroups_elsewhere(derived, device)).unwrap_or_default();
    let writers = &derived.writers().processes;
    let writes = |pid: u32| {
        let mut its = writers.iter().filter(|writer| writer.pid == pid).peekable();
        its.peek().is_none() || its.any(|writer| writer.dirtied_bytes != Some(0))
    };
    let waiters = derived.waiters().unwrap_or_default();
    // Where the kernel counts delays, these pauses are among them.
    let counts_delays = waiters.iter().any(|waiter| waiter.seconds.is_some());
    let is_its = |waiter: &&Waiter| {
        (waiter.seconds.is_some() || !counts_delays)
            && writes(waiter.pid)
            && waiter.cgroup.is_none_or(|cgroup| !elsewhere.contains(&cgroup))
            && sleeps_at_limit(derived.window, strict, waiter.pid) != Some(false)
    };
    let at_limit = |waiter: &Waiter| match waiter.seconds {
        Some(waited) if waited > strict.pressed_beside_s => {
            Waiter { source: AT_MOST, ..waiter.at_most(strict.pressed_beside_s) }
        }
        Some(_) => waiter.clone(),
        // Samples show that the process slept, but not how long.
        None => Waiter { seconds: Some(strict.pressed_s), asleep_s: None, source: PRESSURE, ..waiter.clone() },
    };
    let mut paused: Vec<Waiter> = waiters.iter().filter(is_its).map(at_limit).collect();
    paused.sort_by(|one, other| other.seconds.unwrap_or(0.0).total_cmp(&one.seconds.unwrap_or(0.0)));
    paused
}

/// Whether a process slept in a larger part of the samples at the limit than of the others; `None` where too few samples of
/// either kind exist, or show it asleep.
fn sleeps_at_limit(window: &Window, strict: &Strict, pid: u32) -> Option<bool> {
    let is_its = |id: &EntityId| matches!(window.entities.get(id), Some(Entity::Process { pid: of, .. }) if *of == pid);
    let slept: BTreeSet<Nanos> =
        window.asleep.iter().filter(|(id, _)| is_its(id)).flat_map(|(_, times)| times.iter().copied()).collect();
    let (at_limit, others): (Vec<&Level>, Vec<&Level>) = strict.levels.iter().partition(|level| level.is_at_limit());
    let asleep = |levels: &[&Level]| levels.iter().filter(|level| slept.contains(&level.at)).count();
    let (during, beside) = (asleep(&at_limit), asleep(&others));
    if at_limit.len().min(others.len()).min(during + beside) < SAMPLES_LEAST {
        return None;
    }
    // A process that waits for another disk does so as often at other times. The margin is two standard deviations.
    let usual = beside as f64 * at_limit.len() as f64 / others.len() as f64;
    Some(during as f64 > usual + 2.0 * usual.sqrt())
}

/// Seconds that samples show each process to be paused by the strict limit of a device that shares no disk with this one. Empty
/// where the pauses themselves were traced.
pub fn paused_elsewhere(derived: &Derived<'_>, device: &Device<'_>) -> BTreeMap<u32, f64> {
    let mut paused_s = BTreeMap::new();
    if derived.strict().is_empty() || throttle::events(derived.window).is_some() {
        return paused_s;
    }
    let disks = |one: &Device<'_>| one.bottoms().iter().map(|disk| disk.id).chain([one.id]).collect::<BTreeSet<_>>();
    let own = disks(device);
    for strict in derived.strict().iter().filter(|strict| strict.is_known_to_hold()) {
        if device_of(derived, strict).is_none_or(|one| disks(one).is_disjoint(&own)) {
            let sleeps = |waiter: &Waiter| sleeps_at_limit(derived.window, strict, waiter.pid) == Some(true);
            for waiter in paused(derived, strict).into_iter().filter(sleeps) {
                *paused_s.entry(waiter.pid).or_default() += waiter.seconds.unwrap_or(0.0);
            }
        }
    }
    paused_s
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::waiting;
    use floodline_record::units::{Count, Flag, Ppm};
    use floodline_testkit::{Fixture, grows, mib, mib_pages, secs};

    /// Two disks. The limit of sda is strict, and its data reach the limit in every other second; a camera sleeps then, and an
    /// account sleeps in every second.
    fn two_disks(is_strict: u64) -> Fixture {
        let is_full = |t: f64| t as u64 % 2 == 1;
        let asleep = |is: bool| Some(Count(u64::from(if is { b'D' } else { b'S' })));
        Fixture::healthy()
            .host(|t, row| {
                row.nr_dirty_threshold = Some(mib_pages(400.0));
                row.nr_dirty_background_threshold = Some(mib_pages(200.0));
                row.psi_io_some = Some(secs(900.0 + t));
            })
            .bdi("8:0", move |t, row| {
                (row.strict_limit, row.max_ratio) = (Some(Flag(is_strict)), Some(Ppm(10_000)));
                (row.reclaimable, row.writeback) =
                    (Some(Bytes(mib(if is_full(t) { 3.0 } else { 0.1 }))), Some(Bytes(0)));
            })
            .disk("sda", |t, row| row.written = grows(t, 0, 4e6))
            .disk("sdb", |t, row| row.written = grows(t, 0, 9e6))
            .process("camera", 900, "/", move |t, row| {
                (row.state, row.write_bytes) = (asleep(is_full(t)), grows(t, 0, 4e6));
            })
            .process("account", 901, "/", move |t, row| {
                (row.state, row.write_bytes) = (asleep(true), grows(t, 0, 1e4));
            })
    }

    #[test]
    fn a_strict_limit_of_an_array_holds_its_members() {
        use floodline_testkit::dev_of;
        let fixture = |below: &'static str| {
            let array = two_disks(0).disk("sdc", |_, _| {}).disk("md0", |_, _| {}).bdi("9:0", |_, row| {
                (row.strict_limit, row.max_ratio) = (Some(Flag(1)), Some(Ppm(10_000)));
                (row.reclaimable, row.writeback) = (Some(Bytes(mib(3.0))), Some(Bytes(0)));
            });
            array.facts(move |facts| {
                for device in facts.devices.iter_mut().filter(|device| device.name.to_string() == "md0") {
                    device.slaves = [below, "sdc"].map(dev_of).to_vec();
                }
            })
        };
        let held_of = |host: Fixture| {
            let window = host.window();
            let derived = Derived::of(&window);
            let is_held = |name: &str| {
                let disk = derived.disks().iter().find(|disk| disk.name.as_bytes() == name.as_bytes());
                holds(&derived, disk.expect("a disk"))
            };
            ["sda", "sdb", "sdc"].map(is_held)
        };
        let on_array =
            |host: Fixture| host.facts(|facts| facts.mounts.iter_mut().for_each(|one| one.dev = dev_of("md0")));
        let held = |below: &'static str| held_of(on_array(fixture(below)));
        assert_eq!(held("sda"), [true, false, true]);
        assert_eq!(held("sdb"), [false, true, true]);
        // A filesystem or a volume that uses a member, too, has no limit.
        let unread = fixture("sda").bdi("8:0", |_, row| row.written = None);
        assert_eq!(held_of(unread), [false, false, true], "a mount on sda of which nothing is known");
        let written = |bytes: f64| {
            let host = fixture("sda").bdi("8:0", move |t, row| row.written = grows(t, 0, bytes));
            held_of(host)
        };
        assert_eq!(written(3e6), [false, false, true]);
        assert_eq!(written(1e4), [true, false, true], "a log");
        let volume = |bytes: f64| {
            let host = on_array(fixture("sda")).disk("dm-0", move |t, row| row.written = grows(t, 0, bytes));
            held_of(host.facts(|facts| {
                for device in facts.devices.iter_mut().filter(|device| device.name.to_string() == "dm-0") {
                    device.slaves = vec![dev_of("sda")];
                }
            }))
        };
        assert_eq!(volume(3e6), [false, false, true]);
        assert_eq!(volume(0.0), [true, false, true]);
    }

    #[test]
    fn the_limit_of_a_disk_does_not_hold_a_btrfs_on_it() {
        let device = |fs_type: &'static str, bdi: &str| {
            let window = Fixture::healthy()
                .facts(|facts| facts.mounts.iter_mut().for_each(|mount| mount.fs_type = fs_type.into()))
                .bdi("btrfs-1", |_, _| {})
                .bdi("8:0", |_, row| row.dirtied = Some(Bytes(0)))
                .bdi(bdi, |_, row| (row.strict_limit, row.max_ratio) = (Some(Flag(1)), Some(Ppm(10_000))))
                .window();
            let derived = Derived::of(&window);
            let [strict] = derived.strict() else { panic!("one has a strict limit") };
            device_of(&derived, strict).map(|device| device.name.to_string())
        };
        assert_eq!(device("ext4", "8:0").as_deref(), Some("sda"));
        assert_eq!(device("btrfs", "8:0"), None);
        assert_eq!(device("btrfs", "btrfs-1").as_deref(), Some("sda"));
    }

    #[test]
    fn who_sleeps_at_the_limit_of_one_disk_waits_for_no_other() {
        let others = |is_strict: u64, name: &str| {
            let window = two_disks(is_strict).window();
            let derived = Derived::of(&window);
            let disk = derived.disks().iter().find(|disk| disk.name.as_bytes() == name.as_bytes()).expect("a disk");
            let waiters = waiting::others_on(&derived, disk, |_| false).expect("states show it");
            waiters.iter().map(Waiter::label).collect::<Vec<_>>()
        };
        assert_eq!(others(1, "sdb"), ["account[901]"]);
        assert_eq!(others(1, "sda"), ["account[901]", "camera[900]"]);
        assert_eq!(others(0, "sdb"), ["account[901]", "camera[900]"]);
    }
}
