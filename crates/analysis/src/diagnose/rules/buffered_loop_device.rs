// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rule `buffered-loop-device`: a filesystem in a file, whose loop device writes through the page cache. Each byte gets
//! dirty twice, and a task that waits for it cannot start the second writeback. Does not cover images that are only
//! read.
#![doc = include_str!("buffered_loop_device.md")]

use crate::diagnose::burst::{self, Burst};
use crate::diagnose::derived::Derived;
use crate::diagnose::device::{self, Device};
use crate::diagnose::dirty::unwritten_of;
use crate::diagnose::waiting::Waiter;
use crate::diagnose::{Rule, Verdict, loops, waiting};
use crate::report::{Brief, Evidence, Finding, Severity, Step, When};
use floodline_record::facts::{BlockDevice, HostFacts, Mount, Stack};
use floodline_record::gap::Source;
use floodline_record::human;
use floodline_record::name::Name;
use std::collections::BTreeSet;

/// The rule and its manual page.
pub const RULE: Rule = Rule {
    name: "buffered-loop-device",
    summary: "A filesystem in a file writes through the page cache twice",
    manual: include_str!("buffered_loop_device.md"),
    explains: &["dirty-cliff", "fsync-behind-writeback"],
    check,
};

/// Bytes per second from which a loop device is in use.
const USED_RATE: f64 = 1e6;
/// Bytes per second from which a loop device is in use whose writes are most of what the disk below wrote: less fills a slow disk.
const USED_RATE_OF_MOST: f64 = 1e5;
const MOST: f64 = 0.5;
/// Dirty bytes above a loop device from which it is in use.
const USED_DIRTY: u64 = 4 << 20;
/// Share of the window with a task waiting for I/O from which writing twice contributes to the waiting.
const HURTS_PRESSURE: f64 = 0.05;

/// Utilisation up to which a disk has room for what the image writes: a fuller one is too slow for it, cached twice or not.
const HAS_ROOM: f64 = 0.75;
/// Shortest burst that counts, seconds: a flush that takes less time is hardly noticed.
const SHORT_S: f64 = 0.3;

/// A buffered loop device with a writable filesystem in it.
struct Buffered<'a> {
    name: &'a Name,
    backing_file: &'a Name,
    /// The filesystem that holds the file.
    below: &'a Mount,
    /// A filesystem in it.
    above: &'a Mount,
    /// Bytes written per second.
    rate: Option<f64>,
    /// Bytes per second that the disk below wrote.
    below_rate: Option<f64>,
    /// Bytes per second that can have been cached below: what the disk below wrote, and what was unwritten on the machine. Zeros
    /// count as written to a loop device, but it makes them without the page cache.
    cached_rate: Option<f64>,
    /// Dirty and under writeback on its bdi, bytes.
    dirty: Option<u64>,
}

impl Buffered<'_> {
    fn is_in_use(&self) -> bool {
        let used = |rate: f64| match self.cached_rate.filter(|cached| *cached < rate) {
            // How much of what was cached came from the loop device is not known.
            Some(cached) => cached >= USED_RATE,
            None => {
                let is_most = self.below_rate.is_some_and(|below| rate >= MOST * below);
                rate >= USED_RATE || (rate >= USED_RATE_OF_MOST && is_most)
            }
        };
        self.rate.is_some_and(used) || self.dirty.is_some_and(|dirty| dirty >= USED_DIRTY)
    }
}

fn check(derived: &Derived<'_>) -> Verdict {
    let Some(facts) = derived.window.facts.as_ref().filter(|facts| !facts.mounts.is_empty()) else {
        return derived.not_checked(Source::Mountinfo, "mounts");
    };
    if facts.devices.is_empty() {
        return derived.not_checked(Source::SysBlock, "no block device");
    }
    let loops = || {
        facts.devices.iter().filter_map(|device| match &device.stack {
            Stack::Loop { backing_file, dio } => Some((device, backing_file, dio)),
            _ => None,
        })
    };
    // An unbound loop device has no backing file.
    if loops().all(|(_, backing_file, _)| backing_file.is_empty()) {
        return Verdict::Clear("no loop device is in use".to_owned());
    }
    let mut unknown = 0_u64;
    let mut found: Vec<Buffered<'_>> = Vec::new();
    for (device, backing_file, dio) in loops() {
        let Some((above, below)) = carried(derived, facts, device).zip(holder(derived, facts, backing_file)) else {
            continue;
        };
        match dio {
            Some(true) => {}
            None => unknown += 1,
            Some(false) => found.push(buffered(derived, device, backing_file, above, below)),
        }
    }
    if found.is_empty() {
        return match unknown {
            0 => Verdict::Clear("loop devices are direct, read-only, or on filesystems without writeback".to_owned()),
            _ => derived.not_checked(Source::SysBlock, "loop/dio"),
        };
    }
    found.sort_by(|one, other| other.rate.unwrap_or(0.0).total_cmp(&one.rate.unwrap_or(0.0)));
    Verdict::Found(vec![finding(derived, facts, &found)])
}

/// A writable filesystem on the loop device.
fn carried<'a>(derived: &Derived<'_>, facts: &'a HostFacts, device: &BlockDevice) -> Option<&'a Mount> {
    let lookup = derived.window.lookup();
    let on_it = device::by_dev(derived.window, device.dev).filter(|carrier| carrier.dev == device.dev);
    let on_parts = on_it.into_iter().flat_map(|carrier| lookup.mounts_of_device(facts, carrier.dev));
    lookup.mounts_of_number(facts, device.dev).chain(on_parts).find(|mount| !mount.has_option("ro"))
}

/// The filesystem that holds a file, if its pages are written back: by the longest mount point, the last
/// of several mounts in one place.
fn holder<'a>(derived: &Derived<'_>, facts: &'a HostFacts, file: &Name) -> Option<&'a Mount> {
    let holder = derived.window.lookup().mount_of_file(facts, file)?;
    (!["tmpfs", "ramfs", "rootfs", "devtmpfs"].contains(&holder.fs_type.as_str())).then_some(holder)
}

fn buffered<'a>(
    derived: &Derived<'_>,
    device: &'a BlockDevice,
    backing_file: &'a Name,
    above: &'a Mount,
    below: &'a Mount,
) -> Buffered<'a> {
    let seen: Option<Device<'_>> = device::by_dev(derived.window, device.dev);
    let dirty = seen.and_then(|seen| loops::most_unwritten(&seen));
    let below_rate = device::of_mount(derived.window, below).and_then(|disk| disk.write_rate());
    let rate = seen.and_then(|seen| seen.write_rate());
    let (window, seconds) = (derived.window, derived.window.host.seconds());
    let unwritten = window.host_series.iter().filter_map(|(_, row)| unwritten_of(window, row)).max();
    let cached_rate = below_rate
        .zip(unwritten)
        .filter(|_| seconds > 0.0)
        .map(|(below, unwritten)| below + unwritten.0 as f64 / seconds);
    Buffered { name: &device.name, backing_file, below, above, rate, below_rate, cached_rate, dirty }
}

fn finding(derived: &Derived<'_>, facts: &HostFacts, found: &[Buffered<'_>]) -> Finding {
    let in_use: Vec<&Buffered<'_>> = found.iter().filter(|one| one.is_in_use()).collect();
    let shown: Vec<&Buffered<'_>> = if in_use.is_empty() { found.iter().collect() } else { in_use.clone() };
    let pressure = derived.dirty.io_pressure_some;
    // Pressure has no device: programs that wait for other disks only are not hurt.
    let may_wait = |one: &&Buffered<'_>| {
        let disk = device::of_mount(derived.window, one.below);
        let is_known = derived.waiters().is_some_and(|waiters| !waiters.is_empty());
        let here = |disk: &Device<'_>| waiting::others_on(derived, disk, |_| false);
        !is_known || disk.is_none_or(|disk| here(&disk).is_none_or(|others| !others.is_empty()))
    };
    let hurts = pressure.is_some_and(|share| share >= HURTS_PRESSURE) && in_use.iter().any(may_wait);
    let bursts: Vec<(&Device<'_>, Burst)> = in_use.is_empty().then(Vec::new).unwrap_or_else(|| bursts(derived));
    // A program that does not write to the image waits behind its flush as well.
    let stalls = bursts.iter().filter(|(_, burst)| burst.stalled()).map(|(disk, _)| **disk);
    let filled = in_use.iter().filter_map(|one| device::of_mount(derived.window, one.below));
    // A long burst that no image asked for is cured by smaller thresholds, which `dirty-cliff` says.
    let is_of_images = |disk: &Device<'_>| {
        let has_room = disk.bottoms().iter().filter_map(Device::utilisation).all(|busy| busy <= HAS_ROOM);
        let asked = |burst: &Burst| !loops::that_asked(derived, disk, burst).is_empty();
        has_room && loops::fill(derived, disk) && burst::all(derived, disk).iter().all(asked)
    };
    let is_harm = stalls.chain(filled.filter(is_of_images)).any(|disk| {
        // Waits for a commit are not counted: the states show them.
        let others = waiting::others_on(derived, &disk, |_| false).unwrap_or_default();
        waiting::is_harm(derived, &others.iter().map(Waiter::by_states).collect::<Vec<Waiter>>())
    });
    let severity = match (hurts, is_harm) {
        (_, true) => Severity::Critical,
        (true, false) => Severity::Warning,
        (false, false) => Severity::Info,
    };
    let longest = bursts.iter().max_by(|one, other| one.1.seconds.total_cmp(&other.1.seconds));
    let names: Vec<String> = shown.iter().take(4).map(|one| one.name.to_string()).collect();
    let names = match shown.len() - names.len() {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    };
    let summary = match in_use.is_empty() {
        _ if longest.is_some() => format!(
            "Data written to {names} is cached twice: {}, {} in {}.",
            match longest.is_some_and(|(disk, burst)| have_flushed(derived, disk, burst)) {
                true => "each flush wrote the cached part of the image in one burst",
                false => "the cached part of the image was written in one burst",
            },
            longest.map_or_else(String::new, |(_, burst)| human::bytes(burst.rate * burst.seconds)),
            longest.map_or_else(String::new, |(_, burst)| human::seconds(burst.seconds))
        ),
        true => format!("Writes to {names} will be cached twice: the loop device is buffered."),
        false => {
            format!("Every byte written to {names} is cached twice: the loop device writes through the page cache.")
        }
    };
    let mut evidence = Vec::new();
    for one in shown.iter().take(4) {
        evidence.push(Evidence::text(
            format!("{}, {} on {}", one.name, Name::new(&one.above.fs_type), one.above.mount_point),
            one.backing_file.to_string(),
            "/sys/block/LOOP/loop/backing_file",
        ));
        evidence
            .push(Evidence::text(format!("{} direct", one.name), "0", "/sys/block/LOOP/loop/dio").against_text("1"));
        evidence.extend(one.rate.map(|rate| {
            Evidence::rate(format!("Written to {}", one.name), rate, "/proc/diskstats written").against(USED_RATE)
        }));
        evidence.extend(one.dirty.map(|dirty| {
            Evidence::bytes(format!("Dirty above {}, at most", one.name), dirty, "debugfs bdi stats")
                .against(USED_DIRTY as f64)
        }));
    }
    if let Some((_, burst)) = longest {
        evidence.push(Evidence::seconds("Length of the burst", burst.seconds, "/proc/diskstats io_time"));
        evidence.push(Evidence::rate("Written during the burst", burst.rate, "/proc/diskstats written"));
    }
    evidence.extend(derived.dirty.io_pressure_row().map(|row| row.against(HURTS_PRESSURE)));
    let charged = match derived.behaviour {
        Some(kernel) if kernel.stack.loop_charges_cgroup && facts.cgroups.has_unified_writeback() => {
            " On this kernel the second copy is charged to the container too and counts against its dirty budget. Its \
             throttled writers wake the flusher of the loop device, not that of the disk below. For up to five \
             seconds nothing may be written at all."
        }
        _ => "",
    };
    let carrier = shown.first().map(|one| one.below.mount_point.to_string()).unwrap_or_default();
    Finding {
        rule: RULE.name,
        severity,
        summary,
        evidence,
        cause: format!(
            "The loop device copies what its filesystem writes into the page cache of the image file on {carrier}, and \
             reports it as written. The copy is dirty a second time, and the filesystem measures the speed of memory \
             instead of the disk's.{charged}"
        ),
        brief: Brief {
            because: format!(
                "The loop device writes its image file through the page cache. Each byte is unwritten twice: above the \
                 device and again in the image on {carrier}."
            ),
            who: names,
            expect: "Each byte is cached once, and the filesystem in the image sees the speed of the disk.".to_owned(),
            costs:
                "The page cache no longer takes in a burst of writes to the image: on a slow disk, syncs in the image \
                 may take longer. Reads of the image are cached once only. The kernel refuses if the image does not \
                 begin on a sector of the disk."
                    .to_owned(),
        },
        plan: shown.iter().filter_map(|one| direct(one.name)).collect(),
        devices: if bursts.is_empty() { Vec::new() } else { disks(&bursts) },
        trade_off: "Reads of the image are no longer cached a second time: what does not fit into the cache above is \
         read from the disk. The image must begin on a sector of the disk, and the loop device must use sectors of \
         the disk's size (losetup --sector-size). Otherwise the kernel refuses and stays buffered: check loop/dio \
         afterwards. The change lasts until the device is set up again. Add --direct-io=on to the command that sets \
         it up."
            .to_owned(),
        ..Finding::default()
    }
}

/// Bursts that a flush of a loop device triggered, or that it had cached, with their devices. A flush comes with each fsync in the image, so short bursts
/// count if they take a noticeable time together.
fn bursts<'d>(derived: &'d Derived<'_>) -> Vec<(&'d Device<'d>, Burst)> {
    let of = |device: &'d Device<'d>| {
        let asked = |burst: &Burst| !loops::that_asked(derived, device, burst).is_empty();
        let all: Vec<Burst> = burst::lasting(derived, device, SHORT_S).into_iter().filter(asked).collect();
        let seconds: f64 = all.iter().map(|burst| burst.seconds).sum();
        let noticed = if seconds >= burst::NOTICED_S { all } else { Vec::new() };
        noticed.into_iter().map(move |burst| (device, burst))
    };
    derived.drains().iter().flat_map(of).collect()
}

/// Whether all loop devices whose copies a burst wrote flushed meanwhile.
fn have_flushed(derived: &Derived<'_>, disk: &Device<'_>, burst: &Burst) -> bool {
    loops::that_asked(derived, disk, burst).iter().all(|image| image.has_flushed)
}

/// Names of the devices of bursts, each once.
fn disks(bursts: &[(&Device<'_>, Burst)]) -> Vec<String> {
    let names: BTreeSet<String> = bursts.iter().map(|(device, _)| device.name.to_string()).collect();
    names.into_iter().collect()
}

/// `None` for a name that the kernel gives no loop device: it would not be safe in a command.
fn direct(name: &Name) -> Option<Step> {
    let digits = name.as_bytes().strip_prefix(b"loop")?;
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(Step {
        when: When::Now,
        write: format!("/dev/{name}"),
        value: "direct I/O on".to_owned(),
        undo: format!("losetup --direct-io=off /dev/{name}"),
        command: format!("losetup --direct-io=on /dev/{name}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::{check_rule, first_finding};
    use floodline_record::units::{Bytes, Pages};
    use floodline_testkit::{Fixture, grows, mib, secs};

    fn image(fs_type: &str, options: &str) -> Fixture {
        Fixture::healthy()
            .disk("loop0", |_, row| row.written = Some(Bytes(0)))
            .mount("loop0", fs_type, "/srv/box", options)
    }

    fn set_dio(fixture: Fixture, value: Option<bool>) -> Fixture {
        fixture.facts(|facts| {
            for device in &mut facts.devices {
                if let Stack::Loop { dio, .. } = &mut device.stack {
                    *dio = value;
                }
            }
        })
    }

    #[test]
    fn little_that_is_most_of_what_a_slow_disk_writes_is_use() {
        let of = |below: f64| {
            let written = image("xfs", "rw").disk("loop0", |t, row| row.written = grows(t, 0, 5e5));
            let written = written.disk("sda", move |t, row| row.written = grows(t, 0, below));
            written.host(|t, row| row.psi_io_some = Some(secs(900.0 + 0.1 * t)))
        };
        check_rule(&RULE, &of(6e5), "warning: Every byte written to loop0 is cached twice");
        check_rule(&RULE, &of(5e6), "info: Writes to loop0 will be cached twice");
    }

    #[test]
    fn a_buffered_image_is_worth_more_than_a_note_only_while_it_is_written_and_somebody_waits() {
        check_rule(&RULE, &image("xfs", "rw"), "info: Writes to loop0 will be cached twice");
        let written = image("xfs", "rw").disk("loop0", |t, row| row.written = grows(t, 0, 5e6));
        let written = written.disk("sda", |t, row| row.written = grows(t, 0, 5e6));
        check_rule(&RULE, &written, "info: Every byte written to loop0 is cached twice");
        let waiting = written.host(|t, row| row.psi_io_some = Some(secs(900.0 + 0.1 * t)));
        check_rule(&RULE, &waiting, "warning: Every byte written to loop0 is cached twice");
        let dirty = image("xfs", "rw").bdi("7:0", |_, row| row.reclaimable = Some(Bytes(mib(30.0)))).one_look();
        check_rule(&RULE, &dirty, "info: Every byte written to loop0 is cached twice");
    }

    #[test]
    fn zeros_that_the_loop_device_makes_are_not_cached_twice() {
        let of = |below: f64| {
            let zeroed = image("ext4", "rw").disk("loop0", |t, row| row.written = grows(t, 0, 5e6));
            let zeroed = zeroed.disk("sda", move |t, row| row.written = grows(t, 0, below));
            zeroed.host(|t, row| {
                row.psi_io_some = Some(secs(900.0 + 0.1 * t));
                (row.nr_dirty, row.nr_writeback) = (Some(Pages(20)), Some(Pages(0)));
            })
        };
        check_rule(&RULE, &of(5e4), "info: Writes to loop0 will be cached twice");
        check_rule(&RULE, &of(3e5), "info: Writes to loop0 will be cached twice");
        check_rule(&RULE, &of(5e6), "warning: Every byte written to loop0 is cached twice");
    }

    #[test]
    fn a_flush_of_an_image_that_writes_what_it_had_piled_up_is_its_burst() {
        use crate::diagnose::rules::dirty_cliff;
        use floodline_record::units::Count;
        use floodline_testkit::mib_pages;
        // The image takes 5 MiB a second. A flush of it in second 6 writes 30 MiB: for a disk of 20 MiB/s, or of 6 MiB/s.
        let counted = |mib_per_s: f64, flushes: u64, times: f64| {
            let length = 30.0 / mib_per_s;
            let done = move |t: f64| mib_per_s * (t - 6.0).clamp(0.0, length);
            image("xfs", "rw")
                .host(move |t, row| {
                    row.nr_dirty = Some(mib_pages(times * (5.0 * t.min(6.0) - done(t).min(30.0))));
                    row.psi_io_some = Some(secs(900.0 + (t - 6.0).clamp(0.0, length)));
                })
                .disk("loop0", move |t, row| {
                    row.written = Some(Bytes(mib(5.0 * t.min(6.0))));
                    row.writes = Some(Count((5.0 * t.min(6.0)) as u64));
                    row.flushes = Some(Count(if t > 6.0 + length - 1.0 { flushes } else { 0 }));
                })
                .disk("sda", move |t, row| {
                    (row.written, row.writes) = (Some(Bytes(mib(done(t)))), Some(Count((2.0 * done(t)) as u64)));
                    (row.write_time, row.flushes) = (Some(secs(done(t))), Some(Count(1)));
                    let busy = (t - 6.0).clamp(0.0, length);
                    (row.io_time, row.weighted_io_time) = (Some(secs(busy)), Some(secs(8.0 * busy)));
                })
                .process("mariadbd", 700, "/", move |t, row| {
                    row.blkio_delay = Some(secs(1.5 * (t - 6.0).clamp(0.0, length)));
                })
                .seconds(16)
        };
        let flushed = |mib_per_s: f64, flushes: u64| counted(mib_per_s, flushes, 1.0);
        check_rule(&RULE, &flushed(20.0, 1), "critical: Data written to loop0 is cached twice: each flush wrote");
        check_rule(&dirty_cliff::RULE, &flushed(20.0, 1), "info: 30.0 MiB of dirty data was flushed to sda");
        check_rule(&dirty_cliff::RULE, &flushed(20.0, 0), "critical: 30.0 MiB of dirty data was flushed to sda");
        // Large folios count as dirty whole, and the disk writes a quarter of them.
        check_rule(&RULE, &counted(20.0, 1, 4.0), "critical: Data written to loop0 is cached twice: each flush wrote");
        check_rule(&dirty_cliff::RULE, &counted(20.0, 1, 4.0), "info: 30.0 MiB of dirty data was flushed to sda");
        // Smaller thresholds cure a burst of five seconds.
        check_rule(&RULE, &flushed(6.0, 1), "warning: Every byte written to loop0 is cached twice");
        check_rule(&dirty_cliff::RULE, &flushed(6.0, 1), "critical: 30.0 MiB of dirty data was flushed to sda");
        // Unless the filesystem in the image keeps nothing unwritten, and the loop device had all of it: then it is the second copy.
        let above = |dirty_mib: f64, flushes: u64, times: f64| {
            counted(6.0, flushes, times).bdi("7:0", move |_, row| {
                (row.reclaimable, row.writeback) = (Some(Bytes(mib(dirty_mib))), Some(Bytes(0)));
            })
        };
        check_rule(&RULE, &above(0.1, 1, 1.0), "critical: Data written to loop0 is cached twice: each flush wrote");
        check_rule(&RULE, &above(10.0, 1, 1.0), "warning: Every byte written to loop0 is cached twice");
        // Of large folios that count as dirty whole, what the burst wrote is what the loop device had.
        check_rule(&RULE, &above(0.1, 1, 4.0), "critical: Data written to loop0 is cached twice: each flush wrote");
        check_rule(&RULE, &above(10.0, 1, 4.0), "warning: Every byte written to loop0 is cached twice");
        // Age may also cause the write.
        let by_age = above(0.1, 0, 1.0);
        check_rule(
            &RULE,
            &by_age,
            "critical: Data written to loop0 is cached twice: the cached part of the image was written in one burst, 30.0 MiB in 5.00 s.",
        );
        let cliff = first_finding(&dirty_cliff::RULE, &by_age);
        assert!(cliff.summary.contains(": it is what loop0 had cached."), "{}", cliff.summary);
        assert!(!format!("{} {}", cliff.summary, cliff.trade_off).contains("flush of"), "{cliff:?}");
        check_rule(&RULE, &above(10.0, 0, 1.0), "warning: Every byte written to loop0 is cached twice");
        // So may a threshold.
        let by_amount = |dirty_mib: f64| {
            above(dirty_mib, 0, 1.0).host(|_, row| row.nr_dirty_background_threshold = Some(mib_pages(25.0)))
        };
        check_rule(
            &RULE,
            &by_amount(0.1),
            "critical: Data written to loop0 is cached twice: the cached part of the image was",
        );
        check_rule(&RULE, &by_amount(10.0), "warning: Every byte written to loop0 is cached twice");
        // A short burst of more than the second copy needs a flush of the image.
        let short = |flushes: u64| {
            counted(20.0, flushes, 4.0).bdi("7:0", |_, row| {
                (row.reclaimable, row.writeback) = (Some(Bytes(mib(0.1))), Some(Bytes(0)));
            })
        };
        check_rule(&dirty_cliff::RULE, &short(1), "info: 30.0 MiB of dirty data was flushed to sda");
        check_rule(&dirty_cliff::RULE, &short(0), "critical: 30.0 MiB of dirty data was flushed to sda");
        // A device with a tenth of it was flushed by coincidence, however many idle ones there are.
        let beside = (2..8).fold(flushed(20.0, 1), |host, idle| {
            let name = format!("loop{idle}");
            host.disk(&name, |t, row| {
                (row.written, row.writes) = (Some(Bytes(0)), Some(Count(0)));
                row.flushes = Some(Count(u64::from(t > 6.5)));
            })
        });
        let beside = beside.disk("loop1", |t, row| {
            row.written = Some(Bytes(mib(0.5 * t.min(6.0))));
            row.writes = Some(Count(t.min(6.0) as u64));
            row.flushes = Some(Count(u64::from(t > 6.5)));
        });
        let cliff = first_finding(&dirty_cliff::RULE, &beside);
        assert!(cliff.summary.contains(", triggered by a flush of loop0. Other"), "{}", cliff.summary);
    }

    #[test]
    fn short_bursts_of_flushes_count_if_they_come_again_and_again() {
        use floodline_record::units::Count;
        use floodline_testkit::mib_pages;
        // The image takes 2 MiB a second. Each 6 s a flush of it writes 12 MiB, in 0.6 s.
        let repeated = |times: u32| {
            let each = move |t: f64| (1..=times).map(move |time| t - 6.0 * f64::from(time));
            let busy = move |t: f64| each(t).map(|since| since.clamp(0.0, 0.6)).sum::<f64>();
            let taken = move |t: f64| 2.0 * t.min(6.0 * f64::from(times));
            let flushes = move |t: f64| each(t).filter(|since| *since >= 0.6).count() as u64;
            image("xfs", "rw")
                .host(move |t, row| {
                    row.nr_dirty = Some(mib_pages(taken(t) - 20.0 * busy(t)));
                    row.psi_io_some = Some(secs(900.0 + busy(t)));
                })
                .disk("loop0", move |t, row| {
                    (row.written, row.writes) = (Some(Bytes(mib(taken(t)))), Some(Count(taken(t) as u64)));
                    row.flushes = Some(Count(flushes(t)));
                })
                .disk("sda", move |t, row| {
                    let done = 20.0 * busy(t);
                    (row.written, row.writes) = (Some(Bytes(mib(done))), Some(Count((2.0 * done) as u64)));
                    (row.write_time, row.flushes) = (Some(secs(done)), Some(Count(1)));
                    (row.io_time, row.weighted_io_time) = (Some(secs(busy(t))), Some(secs(8.0 * busy(t))));
                })
                .process("mariadbd", 700, "/", move |t, row| row.blkio_delay = Some(secs(1.5 * busy(t))))
                .seconds(20)
                .every(0.5)
        };
        check_rule(&RULE, &repeated(1), "info: Every byte written to loop0 is cached twice");
        check_rule(&RULE, &repeated(3), "critical: Data written to loop0 is cached twice: each flush wrote");
    }

    #[test]
    fn direct_and_read_only_images_are_cleared() {
        check_rule(&RULE, &set_dio(image("xfs", "rw"), Some(true)), "clear: loop devices are direct");
        let snap = image("squashfs", "ro").facts(|facts| {
            facts.mounts.iter_mut().filter(|mount| mount.fs_type == "squashfs").for_each(|mount| {
                mount.options = Name::from("ro,relatime");
            });
        });
        check_rule(&RULE, &snap, "clear: loop devices are direct, read-only");
        check_rule(&RULE, &Fixture::healthy(), "clear: no loop device is in use");
    }

    #[test]
    fn an_image_in_memory_is_not_written_back() {
        let tmp = image("xfs", "rw").facts(|facts| {
            let mut tmpfs = floodline_testkit::mount("sda", "tmpfs", "/var/lib", "rw");
            tmpfs.dev = floodline_record::id::DevId { major: 0, minor: 30 };
            facts.mounts.push(tmpfs);
        });
        check_rule(&RULE, &tmp, "clear:");
    }

    #[test]
    fn without_its_inputs_it_says_so() {
        check_rule(&RULE, &set_dio(image("xfs", "rw"), None), "not checked: /sys/block/NAME (loop/dio)");
        check_rule(&RULE, &Fixture::healthy().facts(|facts| facts.mounts.clear()), "not checked: /proc/self/mountinfo");
    }

    #[test]
    fn only_names_of_loop_devices_become_commands() {
        let command = |name: &str| direct(&Name::from(name)).map(|step| step.command);
        assert_eq!(command("loop12").as_deref(), Some("losetup --direct-io=on /dev/loop12"));
        assert_eq!(command("loop1;reboot"), None);
        assert_eq!(command("loop"), None);
    }
}
