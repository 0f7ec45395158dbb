// SPDX-License-Identifier: MIT OR Apache-2.0
//! Speed of a device that was never saturated. A limit of a hypervisor or of a volume lets the first bytes after a quiet time
//! through at once. Such a device is busy for less time than its bytes need, so bytes per busy second are a multiple of what it
//! writes for long. The twin has the same credit: its speed is fitted until its device is busy for as long as the recorded one.
//! A disk without credit writes as many bytes in each busy second: it keeps that speed, and gets no credit.

use super::names;
use crate::{Ceiling, Demand, Recorded, Twin};
use floodline_analysis::diagnose::device::{self, Device as Seen, Interval};
use floodline_kernel::is_modelled;
use floodline_record::units::{BytesPerSecond, Nanos};
use floodline_record::version::KernelVersion;
use floodline_record::window::Window;
use floodline_scenario::{ByteRate, Device, Scenario, Time};

/// Tasks times seconds from which on the runs of a fit take too long.
const SIZE_MAX: f64 = 2_000.0;
/// Most runs of a fit, and how near is near enough, as a logarithm.
const RUNS_MAX: usize = 7;
const NEAR: f64 = 0.05;
/// Shortest busy time of a recording that is conclusive, seconds.
const BUSY_MIN: f64 = 0.5;
/// Factor between the busy times from which the speed is fitted.
const DIFFERS: f64 = 1.5;
/// Mean size of a write from which its bytes take the time, and not its latency.
const LARGE: f64 = 65_536.0;
/// Largest part of reads in what a device does: reads have a limit of their own.
const READS_MAX: f64 = 0.1;
/// Smallest speed over the largest rate of an interval.
const SLOWEST: f64 = 0.5;
/// A device has credit if its busy times are nearer to the recorded ones by this factor.
const CLEARLY: f64 = 0.8;
/// Difference of the written bytes from which a twin is no measure of its device.
const WRITTEN: f64 = 1.25;

/// Busy time of one device.
#[derive(Clone, Debug, PartialEq)]
struct Busy {
    /// Bytes written.
    written: f64,
    /// Busy seconds of each interval, the shortest first.
    seconds: Vec<f64>,
}

impl Busy {
    fn of(seen: &Seen<'_>) -> Option<Busy> {
        let intervals = seen.intervals();
        let sum = |of: fn(&Interval) -> f64| intervals.iter().map(of).sum::<f64>();
        let (written, read) = (sum(|one| one.written_bytes), sum(|one| one.read_bytes));
        let is_of_bytes = written >= LARGE * sum(|one| one.writes) && read <= READS_MAX * written;
        let mut seconds: Vec<f64> =
            intervals.iter().map(|one| Some(one.utilisation? * one.seconds)).collect::<Option<_>>()?;
        seconds.sort_by(f64::total_cmp);
        is_of_bytes.then_some(Busy { written, seconds })
    }

    fn all(&self) -> f64 {
        self.seconds.iter().sum()
    }

    /// Busy seconds for each byte.
    fn per_byte(&self) -> f64 {
        self.all().max(1e-3) / self.written.max(1.0)
    }

    /// Difference to the busy times of another run, as a part of them. The times of bursts differ by chance, so each time is compared
    /// with that of its rank.
    fn differs(&self, other: &Busy) -> f64 {
        let at = |of: &Busy, share: f64| {
            let place = share * (of.seconds.len().max(1) - 1) as f64;
            of.seconds.get(place.round() as usize).copied().unwrap_or(0.0)
        };
        let count = self.seconds.len().max(1);
        let share = |number: usize| number as f64 / (count.max(2) - 1) as f64;
        let difference: f64 = (0..count).map(|number| (at(self, share(number)) - at(other, share(number))).abs()).sum();
        difference / self.all().max(1e-3)
    }
}

/// The device that wrote the most, where it was never saturated and only its busy time shows its speed.
struct Unsaturated {
    name: String,
    /// Bytes per busy second, and the largest rate of an interval.
    speed: f64,
    rate: f64,
    recorded: Busy,
}

impl Unsaturated {
    fn of(window: &Window, twin: &Twin) -> Option<Unsaturated> {
        let seen = device::drains(window).into_iter().next()?;
        let name = names::word(seen.name.as_bytes());
        let ceiling = twin.ceilings.iter().find(|ceiling| ceiling.device == name && !ceiling.is_known)?;
        let device = twin.scenario.machine.devices.get(&name)?;
        let is_plain = device.burst.is_none() && device.write_iops.is_none() && device.read_bandwidth.is_none();
        let recorded = Busy::of(&seen).filter(|busy| busy.all() >= BUSY_MIN)?;
        let rate = seen.intervals().iter().map(|one| one.write_rate()).fold(0.0, f64::max);
        let speed = ceiling.write_bytes_per_second?;
        is_plain.then_some(Unsaturated { name, speed, rate, recorded })
    }

    /// Busy time of the device in a run.
    fn simulated(&self, scenario: &Scenario, window: &Window) -> Option<Busy> {
        let mounts = &window.facts.as_ref()?.mounts;
        let is_on = |point: &str| {
            scenario.machine.mounts.get(point).is_some_and(|mount| mount.device.as_ref() == Some(&self.name))
        };
        let mount = mounts.iter().find(|mount| is_on(&mount.mount_point.to_string()))?;
        Busy::of(&device::of_mount(window, mount)?)
    }
}

/// Fits the speed of the device that wrote the most, if it was never saturated.
pub(super) fn fitted(recorded: &Recorded, mut twin: Twin) -> Twin {
    let window = &recorded.window;
    let is_small = twin.scenario.number_of_tasks() as f64 * twin.seconds <= SIZE_MAX;
    let Some(of) = Unsaturated::of(window, &twin).filter(|_| is_small) else { return twin };
    let kernel = window.facts.as_ref().and_then(|facts| facts.kernel).filter(|kernel| is_modelled(*kernel));
    let kernel = kernel.unwrap_or(twin.kernel);
    let Some(first) = busy_at(&of, &mut twin, kernel, None) else { return twin };
    let is_alike = |busy: &Busy| {
        let ratio = busy.written / of.recorded.written.max(1.0);
        (1.0 / WRITTEN..WRITTEN).contains(&ratio)
    };
    if !is_alike(&first) || of.recorded.per_byte() < DIFFERS * first.per_byte() {
        return twin;
    }
    let plain = Speed { bytes: of.speed, has_credit: false };
    let Some(without) = busy_at(&of, &mut twin, kernel, Some(plain)).filter(is_alike) else { return twin };
    let with = with_credit(&of, &mut twin, kernel).filter(|(_, busy)| is_alike(busy));
    let chosen = with.filter(|(_, busy)| of.recorded.differs(busy) < CLEARLY * of.recorded.differs(&without));
    let (speed, busy) = chosen.unwrap_or((plain, without));
    if of.recorded.differs(&busy) >= of.recorded.differs(&first) {
        return twin;
    }
    if let Demand::Bounded { other, .. } = &mut twin.demand {
        set(other, &of.name, speed);
    }
    set(&mut twin.scenario, &of.name, speed);
    tell(&of, &mut twin, speed);
    twin
}

/// A speed of a device.
#[derive(Clone, Copy, Debug)]
struct Speed {
    bytes: f64,
    has_credit: bool,
}

/// The speed at which a device with credit is busy for as long as the recorded one, for each byte.
fn with_credit(of: &Unsaturated, twin: &mut Twin, kernel: KernelVersion) -> Option<(Speed, Busy)> {
    let (mut slow, mut fast) = (SLOWEST * of.rate, of.speed);
    let mut best: Option<(f64, Speed, Busy)> = None;
    for _ in 0..RUNS_MAX {
        let speed = Speed { bytes: (slow * fast).sqrt(), has_credit: true };
        let busy = busy_at(of, twin, kernel, Some(speed))?;
        let longer = (busy.per_byte() / of.recorded.per_byte()).ln();
        match longer > 0.0 {
            true => slow = speed.bytes,
            false => fast = speed.bytes,
        }
        if best.as_ref().is_none_or(|(least, ..)| longer.abs() < *least) {
            best = Some((longer.abs(), speed, busy));
        }
        if longer.abs() < NEAR {
            break;
        }
    }
    best.map(|(_, speed, busy)| (speed, busy))
}

/// Busy time of the device in a twin with another speed; `None` is that of the twin. The twin keeps the run.
fn busy_at(of: &Unsaturated, twin: &mut Twin, kernel: KernelVersion, speed: Option<Speed>) -> Option<Busy> {
    let mut scenario = twin.scenario.clone();
    if let Some(speed) = speed {
        set(&mut scenario, &of.name, speed);
    }
    if let Some(window) = twin.known.window(&scenario, kernel, twin.sampling()) {
        return of.simulated(&scenario, window);
    }
    let window = crate::run::run(&scenario, kernel, twin.sampling()).ok()?;
    let busy = of.simulated(&scenario, &window);
    twin.known.add(scenario, kernel, twin.sampling(), window);
    busy
}

fn set(scenario: &mut Scenario, name: &str, speed: Speed) {
    let Some(device) = scenario.machine.devices.get_mut(name) else { return };
    let burst = (!speed.has_credit).then_some(Time(Nanos(0)));
    let rate = ByteRate(BytesPerSecond((speed.bytes as u64).max(1)));
    *device = Device { write_bandwidth: Some(rate), burst, ..device.clone() };
}

/// Says where the speed comes from.
fn tell(of: &Unsaturated, twin: &mut Twin, speed: Speed) {
    let key = format!("machine.devices.{}", of.name);
    let (part, text) = match speed.has_credit {
        true => (
            "write_bandwidth",
            "the speed at which a device that takes bytes at once after a quiet time is busy for as long as recorded",
        ),
        false => ("burst", "it is busy for as long as its bytes need at its speed while busy"),
    };
    let key = format!("{key}.{part}");
    twin.provenance.retain(|known| known.key != key);
    let origin = crate::Origin::Derived;
    twin.provenance.push(crate::Provenance { key, origin, text: text.to_owned() });
    let Some(ceiling) = twin.ceilings.iter_mut().find(|ceiling| ceiling.device == of.name) else { return };
    if speed.has_credit {
        let told = format!(
            "{} was never saturated. It takes a burst at once after a quiet time. For longer, it writes about {:.1} MB/s",
            of.name,
            speed.bytes / 1e6
        );
        *ceiling =
            Ceiling { write_bytes_per_second: Some(speed.bytes), text: told, has_credit: true, ..ceiling.clone() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_times_are_compared_by_rank() {
        let busy = |seconds: &[f64]| Busy { written: 1e6, seconds: seconds.to_vec() };
        let recorded = busy(&[0.03, 0.03, 0.09, 0.16]);
        assert!(recorded.differs(&busy(&[0.03, 0.03, 0.09, 0.16])) < 1e-9);
        // Another number of intervals.
        assert!(recorded.differs(&busy(&[0.03, 0.03, 0.03, 0.09, 0.09, 0.16, 0.16])) < 0.3);
        let even = recorded.differs(&busy(&[0.0775; 4]));
        assert!((even - 0.58).abs() < 0.1, "{even}");
        assert!((busy(&[0.1, 0.3]).per_byte() - 0.4e-6).abs() < 1e-12);
    }
}
