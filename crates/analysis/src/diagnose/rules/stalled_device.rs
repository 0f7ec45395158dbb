// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rule `stalled-device`: a disk had requests in flight, completed hardly any of them for a second or more, and then went on as
//! before, or completed none until the last sample. Neither a writer nor a setting causes that. A disk that is slow all the time is for the
//! other rules. Of a stack of devices, the lowest one that stands still is told.
#![doc = include_str!("stalled_device.md")]

mod lowest;
mod waits;

use self::lowest::Still;
use self::waits::{Waited, Waits};
use crate::diagnose::derived::Derived;
use crate::diagnose::device::{Device, Explained, HARDLY, SHORTEST_S, Standstill, cycle_s, distance_s};
use crate::diagnose::{Rule, Verdict, missing};
use crate::observer;
use crate::report::{Brief, Evidence, Finding, Severity};
use floodline_record::gap::Source;
use floodline_record::human;
use floodline_record::units::Nanos;
use floodline_record::window::Window;

/// The rule and its manual page.
pub const RULE: Rule = Rule {
    name: "stalled-device",
    summary: "A disk stopped completing its requests for a while, and no writer and no setting is the reason",
    manual: include_str!("stalled_device.md"),
    explains: &[],
    check,
};

/// Length of a single wait from which it is harm, seconds.
const HARM_S: f64 = 1.0;
/// Part of the standstills with a task waiting for I/O from which this is a warning, if no waiting program is known. By as much it must be
/// above that of the time beside: it is that of the whole machine.
const FELT_PRESSURE: f64 = 0.5;
/// Time with a task waiting for I/O, in multiples of the time in which another disk is busy, from which tasks do not wait for that one.
const BESIDE_OTHERS: f64 = 2.0;
/// Part of the CPU time that is steal time from which the hypervisor counts as overloaded.
const STOLEN: f64 = 0.1;
/// Most waiting programs that are named.
const NAMED: usize = 3;

/// A disk with the times in which it stood still.
struct Stalled<'a> {
    disk: Device<'a>,
    times: Vec<Standstill>,
}

impl Stalled<'_> {
    /// The one that is told first: one that had not ended by the last sample, or the longest.
    fn told(&self) -> &Standstill {
        if let Some(open) = self.times.iter().find(|time| time.is_open()) {
            return open;
        }
        let longest = self.times.iter().reduce(|one, other| if other.seconds() > one.seconds() { other } else { one });
        longest.expect("at least one")
    }

    fn seconds(&self) -> f64 {
        self.times.iter().map(Standstill::seconds).sum()
    }

    /// Whether both stood still at the same moment.
    fn meets(&self, other: &Stalled<'_>) -> bool {
        let is_at = |one: &Standstill| other.times.iter().any(|time| one.common_s(time.from, time.to) > 0.0);
        self.times.iter().any(is_at)
    }
}

/// Shortest observation in which a standstill can be seen, seconds: the shortest one with as long a time before it and after it, and
/// the intervals between these.
fn least_s(apart: f64) -> f64 {
    3.0 * SHORTEST_S.max(apart) + 2.0 * apart
}

fn check(derived: &Derived<'_>) -> Verdict {
    if !derived.has_rates {
        return Verdict::NotChecked(vec![missing::needs_time(Source::Diskstats, "requests completed")]);
    }
    let disks = derived.disks();
    if disks.is_empty() {
        return derived.not_checked(Source::Diskstats, "no disk");
    }
    if disks.iter().all(|disk| disk.span.last.in_flight.is_none()) {
        return derived.not_checked(Source::Diskstats, "requests in flight");
    }
    let apart = observer::distance(derived.window).map_or(0.0, Nanos::as_secs_f64);
    let least = least_s(apart);
    if derived.seconds < least {
        return Verdict::NotChecked(vec![missing::needs_seconds(Source::Diskstats, least, "requests completed")]);
    }
    let mut stalled = Vec::new();
    let mut left_out = Vec::new();
    let uncounted = disks.iter().filter(|disk| disk.span.last.in_flight.is_none());
    left_out
        .extend(uncounted.map(|disk| format!("{} was not judged: its requests in flight are not counted", disk.name)));
    for Still { device, times } in lowest::of(derived) {
        let (explained, mut times): (Vec<_>, Vec<_>) = times.into_iter().partition(|time| time.explained.is_some());
        let doubt = times.iter().any(|time| time.usual().is_none()).then(|| doubt(derived, &device)).flatten();
        if let Some(doubt) = doubt {
            left_out.push(format!("{} completed none of its requests, but {doubt}", device.name));
            times.clear();
        }
        left_out.extend(by_reason(&device, &explained));
        match cycle_s(&times) {
            Some(cycle) => left_out.push(in_cycles(&device, &times, cycle)),
            None if !times.is_empty() => stalled.push(Stalled { disk: device, times }),
            None => {}
        }
    }
    // A disk that hangs now is the most urgent.
    stalled.sort_by(|one, other| {
        let (one, other) = (one.told(), other.told());
        other.is_open().cmp(&one.is_open()).then(other.seconds().total_cmp(&one.seconds()))
    });
    let mut findings = Vec::new();
    while !stalled.is_empty() {
        let first = stalled.remove(0);
        // Disks of one host below stand still together.
        let (with_it, others): (Vec<_>, Vec<_>) = stalled.into_iter().partition(|other| other.meets(&first));
        findings.push(finding(derived, &first, &with_it));
        stalled = others;
    }
    if !findings.is_empty() {
        return Verdict::Found(findings);
    }
    let but = if left_out.is_empty() { String::new() } else { format!(". Left out: {}", left_out.join("; ")) };
    let others = if left_out.is_empty() { "" } else { "other " };
    Verdict::Clear(format!(
        "in samples {} apart, no {others}disk stopped completing its requests{but}",
        human::seconds(apart)
    ))
}

/// Why the requests that a disk has had since before the first sample may not be real; `None` if tasks waited for I/O in most of the window,
/// and for no other disk.
fn doubt(derived: &Derived<'_>, device: &Device<'_>) -> Option<String> {
    let Some(pressure) = derived.dirty.io_pressure_some else {
        return Some("whether tasks waited for I/O is not known".to_owned());
    };
    if pressure < FELT_PRESSURE {
        return Some(format!("tasks waited for I/O only {} of the time", human::percent(pressure)));
    }
    let others = derived.disks().iter().filter(|disk| !device.stands_on(disk));
    let busy = others.filter_map(|disk| Some((disk.name, disk.utilisation()?)));
    let (name, busy) = busy.max_by(|(_, one), (_, other)| one.total_cmp(other))?;
    (pressure < BESIDE_OTHERS * busy)
        .then(|| format!("tasks may have waited for {name}, which was {} busy", human::percent(busy)))
}

/// Times that something else may explain, each reason once.
fn by_reason(disk: &Device<'_>, times: &[Standstill]) -> Vec<String> {
    let of = |reason: Explained| {
        let its = times.iter().filter(|time| time.explained == Some(reason));
        let longest = its.map(Standstill::seconds).reduce(f64::max)?;
        Some(format!("{} stopped for {}, but {}", disk.name, human::seconds(longest), reason.because()))
    };
    Explained::ALL.into_iter().filter_map(of).collect()
}

/// Standstills that come in cycles.
fn in_cycles(disk: &Device<'_>, times: &[Standstill], cycle: f64) -> String {
    let longest = times.iter().map(Standstill::seconds).fold(0.0, f64::max);
    format!(
        "{} stopped {} times, for {} at most, at nearly equal distances of {}, as a disk does whose cache fills up or whose credit is spent",
        disk.name,
        times.len(),
        human::seconds(longest),
        human::seconds(cycle)
    )
}

fn severity(waits: &Waits, told: &Standstill) -> Severity {
    // Without a time beside it, the pressure was compared with that of other disks.
    let beside = waits.pressure_beside.or_else(|| told.usual().is_none().then_some(0.0));
    match waits.longest() {
        Some(first) if first.seconds >= HARM_S => Severity::Critical,
        Some(_) => Severity::Warning,
        None if waits.pressure.zip(beside).is_some_and(|(share, beside)| share - beside >= FELT_PRESSURE) => {
            Severity::Warning
        }
        None => Severity::Info,
    }
}

/// The first sentences of a finding: what the disk did, and who waited.
fn summary(stalled: &Stalled<'_>, with_it: &[String], programs: &[Waited], window: &Window) -> String {
    let (disk, told) = (stalled.disk.name, stalled.told());
    let pending = human::plural(told.in_flight, "request", "requests");
    let lasted = human::seconds(told.seconds());
    let wait = |has: &str| {
        let of = |first: &Waited| format!(" {} {has} {} for it.", first.label, human::seconds(first.seconds));
        programs.first().map(of).unwrap_or_default()
    };
    if told.is_open() {
        let others = match with_it {
            [] => String::new(),
            [one] => format!(", and {one} stood still too"),
            more => format!(", and {} stood still too", more.join(", ")),
        };
        let earlier = match stalled.times.len() {
            1 => String::new(),
            times => format!(" It stood still {times} times."),
        };
        let Some(before) = told.before else {
            let last = if is_all_the_time(told, window) { "" } else { "last " };
            return format!(
                "{disk} completed no request in the {last}{lasted} that were watched{others}: {pending} in flight all the time.{}",
                wait("has waited")
            );
        };
        return format!(
            "{disk} completed no request for {lasted} and had not gone on by the last sample{}{others}: {pending} in flight, {} completed per \
             second before.{earlier}{}",
            of_stretch(window.goes_on),
            human::number(before),
            wait("has waited")
        );
    }
    let others = if with_it.is_empty() { String::new() } else { format!(", and so did {}", with_it.join(", ")) };
    let times = match stalled.times.len() {
        1 => lasted,
        times => match distance_s(&stalled.times) {
            Some(distance) => format!("up to {lasted} ({times} times, every {})", human::seconds(distance)),
            None => format!("up to {lasted} ({times} times)"),
        },
    };
    format!(
        "{disk} completed hardly any requests for {times}{others}: {pending} in flight, {} completed per second instead of {}.{}",
        human::number(told.during),
        human::number(told.usual().unwrap_or(0.0)),
        wait("waited")
    )
}

/// Whether a standstill without an end had begun by the first sample.
fn is_all_the_time(told: &Standstill, window: &Window) -> bool {
    window.first_at.is_none_or(|first| told.from <= first.monotonic)
}

/// Words after the last sample, where it is not the last one of the recording.
fn of_stretch(goes_on: bool) -> &'static str {
    if goes_on { " of this stretch" } else { "" }
}

/// What standstills at nearly equal distances tell.
fn by_a_clock(stalled: &Stalled<'_>) -> &'static str {
    match distance_s(&stalled.times) {
        Some(_) => {
            " Its standstills begin at nearly equal distances, as those of a self-test or of a job of the storage do."
        }
        None => "",
    }
}

fn finding(derived: &Derived<'_>, stalled: &Stalled<'_>, with_it: &[Stalled<'_>]) -> Finding {
    let waits = Waits::of(derived, &stalled.disk, &stalled.times);
    let (disk, told) = (stalled.disk.name.to_string(), stalled.told());
    let names: Vec<String> = with_it.iter().map(|other| other.disk.name.to_string()).collect();
    let stolen = waits.stolen.filter(|share| *share >= STOLEN);
    // The sentence about a disk that hangs is about that time. Standstills before it may have had longer waits.
    let last = told.is_open().then(|| waits::programs(derived, &stalled.disk, &stalled.times, Standstill::is_open));
    let summary = summary(stalled, &names, last.as_deref().unwrap_or(&waits.programs), derived.window);
    let host = match stolen {
        Some(share) => format!(
            " The hypervisor took {} of the CPU time meanwhile (steal), so it was overloaded.",
            human::percent(share)
        ),
        None => String::new(),
    };
    let clock = by_a_clock(stalled);
    let goes_on = derived.window.goes_on;
    let then = format!(
        "No setting of writeback helps. Read the kernel log of that time for timeouts and resets of {disk}, then the logs of the \
         storage and of the hypervisor."
    );
    let (because, next, pace) = match told.is_open() {
        false => (
            format!(
                "{disk} held its requests and completed hardly any, then worked as before. No flush and no discard \
                 explains that.{clock}{host}"
            ),
            then,
            "worked at its usual pace just before and just after".to_owned(),
        ),
        true => (
            format!(
                "{disk} {} its requests and completed none until the last sample{}. A flush or a discard that has not ended is not \
                 counted, and may take some seconds.{clock}{host}",
                if goes_on { "held" } else { "holds" },
                of_stretch(goes_on)
            ),
            if goes_on {
                then
            } else {
                format!(
                    "No setting of writeback helps. See whether {disk} goes on: iostat -x 1 {disk}. If it does not, read the kernel log for \
                 timeouts and resets of {disk}, then the logs of the storage and of the hypervisor."
                )
            },
            match told.before {
                Some(_) => format!(
                    "worked at its usual pace just before, and had not gone on by the last sample{}",
                    of_stretch(goes_on)
                ),
                None if is_all_the_time(told, derived.window) => {
                    format!("completed none from the first sample to the last{}", of_stretch(goes_on))
                }
                None => format!(
                    "completed none for {} until the last sample{}",
                    human::seconds(told.seconds()),
                    of_stretch(goes_on)
                ),
            },
        ),
    };
    Finding {
        rule: RULE.name,
        severity: severity(&waits, told),
        summary,
        evidence: evidence(derived, stalled, &waits),
        cause: format!(
            "A request that is in flight is with the driver, the link or the device. Neither a writer nor a dirty threshold \
             decides when it completes. {disk} {pace}. Likely causes are errors that \
             the disk or the kernel retries, a reset of the link or the controller, a path that failed over, work inside the disk, and \
             a busy storage array or hypervisor.{clock}{host}"
        ),
        brief: Brief {
            because,
            who: waits.programs.iter().take(2).map(|one| one.label.clone()).collect::<Vec<_>>().join(", "),
            expect: next,
            costs: String::new(),
        },
        devices: std::iter::once(disk.clone()).chain(names).collect(),
        trade_off: where_to_look(&disk),
        waited_s: waits.longest().map(|first| first.seconds),
        ..Finding::default()
    }
}

fn where_to_look(disk: &str) -> String {
    format!(
        "Read the kernel log of that time (journalctl -k, dmesg -T) for timeouts, aborts and resets of {disk} and its controller. Read \
         what the disk reports of itself (smartctl -x /dev/{disk}). If {disk} is virtual or on a network, read the log of the hypervisor, \
         the storage array or the network for the same time, and the steal time of the CPUs. iostat -x 1 shows the next standstill: \
         requests in the queue (aqu-sz), and hardly any reads and writes (r/s, w/s)."
    )
}

fn evidence(derived: &Derived<'_>, stalled: &Stalled<'_>, waits: &Waits) -> Vec<Evidence> {
    let (disk, told) = (stalled.disk.name, stalled.told());
    let start = derived.window.first_at.map_or(told.from, |first| first.monotonic);
    let began = Nanos(told.from.0.saturating_sub(start.0)).as_secs_f64();
    let (completed, pending) = ("/proc/diskstats reads + writes", "/proc/diskstats in_flight");
    let (name, which) = match told.is_open() {
        false => ("Longest standstill of", "longest"),
        true => ("Standstill until the last sample of", "last one"),
    };
    let mut rows = vec![
        Evidence::seconds(format!("{name} {disk}"), told.seconds(), completed).against(SHORTEST_S),
        Evidence::seconds(format!("Start of the {which}, after the first sample"), began, "times of the samples"),
        Evidence::count(format!("Most requests in flight in the {which}"), told.in_flight, pending),
    ];
    rows.extend(told.before.map(|before| Evidence::per_second("Completed just before", before, completed)));
    let during = Evidence::per_second(format!("Completed in the {which}"), told.during, completed);
    rows.push(match told.usual() {
        Some(usual) => during.against(HARDLY * usual),
        None => during,
    });
    rows.extend(told.after.map(|after| Evidence::per_second("Completed just after", after, completed)));
    if stalled.times.len() > 1 {
        rows.push(Evidence::count(format!("Standstills of {disk}"), stalled.times.len() as u64, completed));
        rows.push(Evidence::seconds("Length of all standstills", stalled.seconds(), completed));
    }
    rows.extend(waits.pressure.map(|share| {
        Evidence::share("Standstill time with a task waiting for I/O", share, "/proc/pressure/io some")
            .against(FELT_PRESSURE)
    }));
    rows.extend(waits.programs.iter().take(NAMED).map(Waited::evidence));
    rows.extend(
        waits.stolen.filter(|share| *share > 0.0).map(|share| {
            Evidence::share("Steal time in the standstills", share, "/proc/stat cpu steal").against(STOLEN)
        }),
    );
    rows
}

#[cfg(test)]
mod tests;
