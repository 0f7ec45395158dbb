// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which of several disks a program sleeps for, from the times of its sleeps and of the disks' work. Disks may be full at the same
//! time, and the pressure then belongs to all of them. A program that sleeps while two disks are full, and not while one of them is
//! full alone, waits for the other. Does not cover programs that sleep for several disks.

use super::{BUSY, BY_CHANCE, COMPARED, Program};
use crate::diagnose::derived::Derived;
use crate::diagnose::device::{Device, Interval};
use crate::diagnose::{elsewhere, load};
use floodline_record::id::EntityId;
use floodline_record::units::Nanos;
use std::collections::{BTreeMap, BTreeSet};

/// Time by which the end of an interval and a sample may differ, nanoseconds.
const SAME: u64 = 1_000_000;

/// Number of disks that were busy before or after each sample.
#[derive(Debug, Default)]
pub(in crate::diagnose) struct Busy(BTreeMap<Nanos, usize>);

impl Busy {
    pub(in crate::diagnose) fn of(derived: &Derived<'_>) -> Busy {
        let mut all: BTreeMap<Nanos, usize> =
            derived.window.host_series.iter().map(|(at, _)| (at.monotonic, 0)).collect();
        for disk in derived.disks() {
            for at in samples_around(&all, disk, BUSY) {
                *all.entry(at).or_default() += 1;
            }
        }
        Busy(all)
    }
}

/// Samples next to an interval in which a disk was busy for at least this part.
fn samples_around(samples: &BTreeMap<Nanos, usize>, disk: &Device<'_>, least: f64) -> BTreeSet<Nanos> {
    let is_it = |interval: &Interval| interval.utilisation.is_none_or(|busy| busy >= least);
    let mut found = BTreeSet::new();
    for interval in disk.intervals().iter().filter(|interval| is_it(interval)) {
        let from = Nanos(load::start(interval).0.saturating_sub(SAME));
        let to = Nanos(interval.end.0.saturating_add(SAME));
        found.extend(samples.range(from..=to).map(|(at, _)| *at));
    }
    found
}

/// Programs that sleep for other disks than those of a device, by process id. Empty where the samples do not tell.
pub(super) fn for_other_disks(derived: &Derived<'_>, device: &Device<'_>) -> BTreeSet<u32> {
    let all = &derived.busy_disks().0;
    if derived.disks().len() < 2 || derived.sleepers().programs.is_empty() {
        return BTreeSet::new();
    }
    // A task that waits for a mirror waits for all of its members, and one member may be full of reads alone.
    let joined = elsewhere::sharing(derived, device).flat_map(|drain| drain.bottoms());
    let disks: BTreeMap<EntityId, Device<'_>> =
        device.bottoms().into_iter().chain(joined).map(|disk| (disk.id, disk)).collect();
    let (mut full, mut own) = (BTreeSet::new(), BTreeMap::<Nanos, usize>::new());
    for disk in disks.values() {
        full.append(&mut samples_around(all, disk, load::BUSY));
        for at in samples_around(all, disk, BUSY) {
            *own.entry(at).or_default() += 1;
        }
    }
    let (mut alone, mut both, mut quiet) = (Vec::new(), Vec::new(), Vec::new());
    for (at, busy) in all {
        let has_others = *busy > own.get(at).copied().unwrap_or(0);
        match (full.contains(at), has_others) {
            (true, false) => alone.push(*at),
            (true, true) => both.push(*at),
            (false, false) if *busy == 0 => quiet.push(*at),
            _ => {}
        }
    }
    if alone.len() < COMPARED || both.len() < COMPARED {
        return BTreeSet::new();
    }
    let is_elsewhere = |program: &&Program| {
        let [alone, both, quiet] = [&alone, &both, &quiet].map(|times| program.part_of(times));
        // It never sleeps here more than it does while no disk works, and the same part as of the other times would be seen.
        let usual = quiet.part() * alone.readings as f64;
        let is_usual = alone.asleep as f64 <= usual + BY_CHANCE * (usual * (1.0 - quiet.part())).sqrt();
        is_usual && both.readings >= COMPARED && both.part() * alone.readings as f64 >= usual + COMPARED as f64
    };
    let programs = derived.sleepers().programs.iter().filter(is_elsewhere);
    programs.flat_map(|program| program.pids.iter().copied()).collect()
}

/// Samples with a program, one for each process, and those in which it slept.
struct Part {
    readings: usize,
    asleep: usize,
}

impl Part {
    fn part(&self) -> f64 {
        self.asleep as f64 / self.readings.max(1) as f64
    }
}

impl Program {
    /// The samples at some times, in order.
    fn part_of(&self, times: &[Nanos]) -> Part {
        let between = |(from, to): &(Nanos, Nanos)| {
            times.partition_point(|at| at <= to).saturating_sub(times.partition_point(|at| at < from))
        };
        Part {
            readings: self.spans.iter().map(between).sum(),
            asleep: self.asleep.iter().filter(|at| times.binary_search(at).is_ok()).count(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::waiting::{Waiter, others_on};
    use floodline_record::units::{Bytes, Count};
    use floodline_testkit::{Fixture, dev_of, mib, secs};

    /// Half a minute of work of each of two disks, sampled twice a second: sda alone, sdb alone, and both.
    fn host(alone_s: f64) -> Fixture {
        let device = |host: Fixture, (name, from): (&'static str, f64)| {
            host.disk(name, move |t, row| {
                let busy = (t - from).clamp(0.0, alone_s) + (t - 40.0).clamp(0.0, 15.0);
                row.written = Some(Bytes(mib(20.0 * busy)));
                row.writes = Some(Count((20.0 * busy) as u64));
                row.io_time = Some(secs(busy));
                row.weighted_io_time = Some(secs(30.0 * busy));
            })
        };
        let task = |host: Fixture, (name, pid, sda, sdb): (&'static str, u32, bool, bool)| {
            host.process(name, pid, "/", move |t, row| {
                let is_in = |from: f64, length: f64| t > from && t <= from + length;
                let asleep = (sda && is_in(10.0, alone_s)) || (sdb && is_in(20.0, alone_s)) || is_in(40.0, 15.0);
                row.state = Some(Count(u64::from(if asleep { b'D' } else { b'S' })));
                row.blkio_delay = Some(secs(0.2 * t));
            })
        };
        let disks = [("sda", 10.0), ("sdb", 20.0)].into_iter().fold(Fixture::healthy().every(0.5).seconds(120), device);
        [("mail", 900, true, false), ("shop", 901, false, true), ("both", 902, true, true)]
            .into_iter()
            .fold(disks, task)
    }

    fn others(host: &Fixture, disk: &str) -> Vec<String> {
        let window = host.window();
        let derived = Derived::of(&window);
        let disk = derived.disks().iter().find(|one| one.name.as_bytes() == disk.as_bytes()).expect("a disk");
        others_on(&derived, disk, |_| false).expect("delays show it").iter().map(Waiter::label).collect()
    }

    #[test]
    fn a_program_that_does_not_sleep_while_a_disk_is_full_alone_waits_for_another() {
        let long = host(6.0);
        // The one that slept longest stands first.
        assert_eq!(others(&long, "sda"), ["both[902]", "mail[900]"]);
        assert_eq!(others(&long, "sdb"), ["both[902]", "shop[901]"]);
    }

    #[test]
    fn members_of_one_mirror_are_one() {
        let mirror = host(6.0).disk("dm-0", |t, row| row.io_time = Some(secs(0.5 * t))).facts(|facts| {
            for one in facts.devices.iter_mut().filter(|one| one.name.to_string() == "dm-0") {
                one.slaves = vec![dev_of("sda"), dev_of("sdb")];
            }
        });
        assert_eq!(others(&mirror, "sda").len(), 3);
    }

    #[test]
    fn disks_that_are_hardly_full_alone_are_not_told_apart() {
        let all = others(&host(0.5), "sda");
        assert!(
            ["mail[900]", "shop[901]", "both[902]"].iter().all(|one| all.iter().any(|other| other == one)),
            "{all:?}"
        );
        let traced = host(6.0).process("shop", 901, "/", |_, row| row.state = Some(Count(u64::from(b'S'))));
        assert_eq!(others(&traced, "sda").len(), 3, "no state shows when it waited");
    }
}
