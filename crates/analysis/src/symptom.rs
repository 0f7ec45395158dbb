// SPDX-License-Identifier: MIT OR Apache-2.0
//! Symptoms that people on the machine notice, before any cause: the time that tasks waited for I/O, its cost in CPU
//! time, and the busiest disk meanwhile. Derived once per report from the machine-wide rows; no rule runs here.

use crate::diagnose::derived::Derived;
use crate::diagnose::device;
use crate::diagnose::load::{self, Kind, Load};
use crate::diagnose::waiting::Waiter;
use crate::report::{BusyDisk, Symptom, TightCgroup};
use floodline_record::record::What;
use floodline_record::sample::{HostRow, SampleTime};
use floodline_record::units::Nanos;
use floodline_record::window::step;
use std::collections::BTreeMap;

/// Share of an interval with a task waiting for I/O from which people notice it.
const NOTICED: f64 = 0.2;

/// One interval between two samples.
struct Interval {
    from: SampleTime,
    to: SampleTime,
    seconds: f64,
    some: Option<f64>,
    iowait: Option<f64>,
}

/// The symptoms of a window. The busiest disk is one of those in `about`, by their names, where the window has one of these. Pressure is
/// that of the machine: where it is known when the event happened, in `meanwhile`, only these times count.
pub fn symptom(derived: &Derived<'_>, about: &[String], meanwhile: &[(Nanos, Nanos)]) -> Symptom {
    let window = derived.window;
    let all: Vec<Interval> = window.host_series.windows(2).filter_map(|pair| interval(&pair[0], &pair[1])).collect();
    let io_some_share_max = all.iter().filter_map(|interval| interval.some).reduce(f64::max);
    let is_of_it = |interval: &Interval| {
        let (from, to) = (interval.from.monotonic, interval.to.monotonic);
        meanwhile.iter().any(|(start, end)| from < *end && to > *start)
    };
    let has_any = all.iter().any(is_of_it);
    let intervals: Vec<Interval> = all.into_iter().filter(|one| !has_any || is_of_it(one)).collect();
    let noticed: Vec<&Interval> =
        intervals.iter().filter(|interval| interval.some.is_some_and(|share| share >= NOTICED)).collect();
    let of: Vec<&Interval> = if noticed.is_empty() { intervals.iter().collect() } else { noticed.clone() };
    let seconds: f64 = of.iter().map(|interval| interval.seconds).sum();
    let waited = of.iter().filter_map(|interval| Some(interval.some? * interval.seconds)).reduce(|a, b| a + b);
    let iowait: Vec<f64> = of.iter().filter_map(|interval| interval.iowait).collect();
    let least = iowait.iter().copied().reduce(f64::min);
    let most = iowait.iter().copied().reduce(f64::max);
    let spans: Vec<(Nanos, Nanos)> =
        of.iter().map(|interval| (interval.from.monotonic, interval.to.monotonic)).collect();
    Symptom {
        from_wall_ns: window.first_at.map(|at| at.wall.0),
        waiting_s: noticed.iter().map(|interval| interval.seconds).sum(),
        waiting_from_wall_ns: noticed.first().map(|interval| interval.from.wall.0),
        io_some_share: waited.filter(|_| seconds > 0.0).map(|waited| waited / seconds),
        io_some_share_max,
        iowait_share: least.zip(most),
        busiest: busiest(derived, &spans, about),
        waited_most: waited_most(derived),
        dirty_max_bytes: derived.dirty.peak.map(|bytes| bytes.0),
        unwritten_max_bytes: derived.dirty.unwritten_peak.map(|bytes| bytes.0),
        background_threshold_bytes: derived.dirty.background_threshold.map(|bytes| bytes.0),
        freerun_ceiling_bytes: derived.dirty.freerun_ceiling.map(|bytes| bytes.0),
        tightest: tightest(derived),
    }
}

/// The process that waited longest. The long syncs of a trace count, each process with the sum of its own: also those of a whole
/// filesystem, whose wait is by design.
fn waited_most(derived: &Derived<'_>) -> Option<String> {
    let waiter = derived.waiters().and_then(<[_]>::first);
    let mut syncs: BTreeMap<u32, (String, f64)> = BTreeMap::new();
    for event in &derived.window.events {
        let What::SlowSync(sync) = &event.what else { continue };
        let label = || (format!("{}[{}]", sync.who.comm, sync.who.pid), 0.0);
        syncs.entry(sync.who.pid).or_insert_with(label).1 += sync.lasted.as_secs_f64();
    }
    let longest = syncs.into_values().max_by(|one, other| one.1.total_cmp(&other.1));
    let counted = waiter.and_then(|waiter| waiter.asleep_s.or(waiter.seconds)).unwrap_or(0.0);
    longest.filter(|(_, seconds)| *seconds > counted).map(|(label, _)| label).or_else(|| waiter.map(Waiter::label))
}

fn interval((from, before): &(SampleTime, HostRow), (to, after): &(SampleTime, HostRow)) -> Option<Interval> {
    let seconds = Nanos(to.monotonic.0.checked_sub(from.monotonic.0)?).as_secs_f64();
    if seconds <= 0.0 {
        return None;
    }
    let grown = |read: fn(&HostRow) -> Option<Nanos>| Some(Nanos(step(read(before)?.0, read(after)?.0)).as_secs_f64());
    let spent: Option<f64> = [
        grown(|row| row.cpu_user),
        grown(|row| row.cpu_system),
        grown(|row| row.cpu_idle),
        grown(|row| row.cpu_iowait),
    ]
    .into_iter()
    .sum();
    let iowait = grown(|row| row.cpu_iowait).zip(spent).filter(|(_, spent)| *spent > 0.0);
    Some(Interval {
        from: *from,
        to: *to,
        seconds,
        some: grown(|row| row.psi_io_some).map(|waited| (waited / seconds).min(1.0)),
        iowait: iowait.map(|(iowait, spent)| (iowait / spent).min(1.0)),
    })
}

/// The disk with the most busy time in these spans of the monotonic clock: one of those in `about`, or any if none of these is known.
fn busiest(derived: &Derived<'_>, spans: &[(Nanos, Nanos)], about: &[String]) -> Option<BusyDisk> {
    // In order of time: where any span has it, the last that begins before it does.
    let within = |end: Nanos| {
        let before = spans.partition_point(|(from, _)| *from < end);
        let last = before.checked_sub(1).and_then(|last| spans.get(last));
        last.is_some_and(|(_, to)| end.0 <= to.0.saturating_add(500_000_000))
    };
    let watched: f64 = spans.iter().map(|(from, to)| Nanos(to.0.saturating_sub(from.0)).as_secs_f64()).sum();
    let of = |disk: &device::Device<'_>| {
        let intervals = disk.intervals();
        let inside: Vec<_> = intervals.iter().filter(|interval| within(interval.end)).collect();
        // Equal readings are kept once: the time without any request counts, too.
        let seconds: f64 = inside.iter().map(|interval| interval.seconds).sum::<f64>().max(watched);
        let busy: f64 = inside.iter().filter_map(|interval| Some(interval.utilisation? * interval.seconds)).sum();
        let writes: f64 = inside.iter().map(|interval| interval.writes).sum();
        let waited: f64 = inside.iter().filter_map(|interval| Some(interval.write_await_s? * interval.writes)).sum();
        (seconds > 0.0).then(|| BusyDisk {
            name: disk.name.to_string(),
            busy_share: (busy / seconds).min(1.0),
            write_await_s: (writes > 0.0).then(|| waited / writes),
            load: load_name(&load::of(derived, disk, |interval| within(interval.end))),
        })
    };
    let busiest = |disks: &mut dyn Iterator<Item = &device::Device<'_>>| {
        disks.filter_map(of).max_by(|one, other| one.busy_share.total_cmp(&other.busy_share))
    };
    let is_about = |disk: &&device::Device<'_>| about.iter().any(|name| name.as_bytes() == disk.name.as_bytes());
    busiest(&mut derived.disks().iter().filter(is_about)).or_else(|| busiest(&mut derived.disks().iter()))
}

/// What most of the requests were; `None` where there were none.
fn load_name(load: &Load) -> Option<&'static str> {
    (load.reads + load.writes > 0.0).then(|| match load.kind() {
        Kind::Reads => "reads",
        Kind::Writeback => "writeback",
        Kind::Waited => "waited_writes",
    })
}

/// The cgroup with the smallest hard threshold of its own.
fn tightest(derived: &Derived<'_>) -> Option<TightCgroup> {
    let budgets = derived.budgets();
    // The root cgroup has the limit of the machine.
    let cgroups = || budgets.cgroups.iter().filter(|one| one.path.as_bytes() != b"/");
    let own = || cgroups().filter_map(|one| Some((one, one.domain.thresh?.high.0)));
    let (tight, thresh_bytes) = own().min_by_key(|(_, thresh)| *thresh)?;
    Some(TightCgroup { name: derived.label(tight.cgroup), thresh_bytes, of: own().count() as u64 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_record::record::Event;
    use floodline_record::traced::Who;
    use floodline_record::traced::waits::{Operation, SlowSync};
    use floodline_record::units::Bytes;
    use floodline_testkit::incidents::{dirty_cliff, starved_budget};
    use floodline_testkit::{Fixture, secs};

    #[test]
    fn a_calm_machine_has_no_seconds_of_waiting() {
        let symptom = symptom(&Derived::of(&Fixture::healthy().window()), &[], &[]);
        assert_eq!((symptom.waiting_s, symptom.waiting_from_wall_ns), (0.0, None));
        assert!(symptom.busiest.is_some_and(|disk| disk.busy_share < 0.5));
    }

    #[test]
    fn the_process_that_waited_longest_is_named_also_if_its_wait_was_for_a_whole_filesystem() {
        let syncs = |events: &[(u32, f64)]| {
            let mut window = Fixture::healthy()
                .process("mysqld", 812, "/", |t, row| row.blkio_delay = Some(secs(0.4 * t)))
                .seconds(10)
                .window();
            let at = window.host_series[8].0.monotonic;
            let sync = |(pid, lasted): &(u32, f64)| SlowSync {
                who: Who { pid: *pid, comm: "sync".into(), cgroup_ino: 1 },
                tid: None,
                operation: Operation::SyncFilesystem,
                lasted: secs(*lasted),
                device: None,
                file: None,
                queued: None,
                own: Bytes(0),
            };
            window.events = events.iter().map(|one| Event { at, what: What::SlowSync(sync(one)) }).collect();
            symptom(&Derived::of(&window), &[], &[]).waited_most
        };
        assert_eq!(syncs(&[]).as_deref(), Some("mysqld[812]"), "4 s");
        assert_eq!(syncs(&[(176, 7.5)]).as_deref(), Some("sync[176]"));
        // Its waits add up.
        assert_eq!(syncs(&[(176, 3.0), (176, 3.0), (177, 3.5)]).as_deref(), Some("sync[176]"));
        assert_eq!(syncs(&[(176, 1.0)]).as_deref(), Some("mysqld[812]"));
    }

    #[test]
    fn waiting_is_counted_in_its_own_seconds_and_not_thinned_by_calm_ones() {
        let fixture = Fixture::healthy()
            .host(|t, row| row.psi_io_some = Some(secs(100.0 + 0.8 * (t - 4.0).clamp(0.0, 3.0))))
            .seconds(10);
        let symptom = symptom(&Derived::of(&fixture.window()), &[], &[]);
        assert_eq!(symptom.waiting_s.round(), 3.0);
        assert!(symptom.io_some_share.is_some_and(|share| (share - 0.8).abs() < 0.01), "{symptom:?}");
        let after =
            symptom.waiting_from_wall_ns.zip(symptom.from_wall_ns).map(|(at, from)| (at - from) / 1_000_000_000);
        assert_eq!(after, Some(4));
    }

    #[test]
    fn an_event_of_three_seconds_does_not_last_as_long_as_other_waits() {
        let fixture = Fixture::healthy().host(|t, row| row.psi_io_some = Some(secs(100.0 + 0.4 * t))).seconds(10);
        let window = fixture.window();
        let at = |second: usize| window.host_series[second].0.monotonic;
        let of = |meanwhile: &[(Nanos, Nanos)]| symptom(&Derived::of(&window), &[], meanwhile).waiting_s.round();
        assert_eq!((of(&[]), of(&[(at(4), at(7))])), (10.0, 3.0));
    }

    #[test]
    fn the_disk_is_the_one_that_the_report_is_about() {
        let busy = |fixture: Fixture, (name, share): (&'static str, f64)| {
            fixture.disk(name, move |t, row| row.io_time = Some(secs(share * t)))
        };
        let window = [("sda", 0.3), ("sdb", 0.9)].into_iter().fold(Fixture::healthy(), busy).window();
        let of = |about: &[&str]| {
            let about: Vec<String> = about.iter().map(ToString::to_string).collect();
            symptom(&Derived::of(&window), &about, &[]).busiest.map(|disk| disk.name)
        };
        assert_eq!(of(&[]).as_deref(), Some("sdb"));
        assert_eq!(of(&["sda"]).as_deref(), Some("sda"));
        // The layers of a stack are not disks.
        assert_eq!(of(&["dm-0"]).as_deref(), Some("sdb"));
    }

    #[test]
    fn incidents_show_what_their_users_saw() {
        let starved = symptom(&Derived::of(&starved_budget().window()), &[], &[]);
        assert!(starved.waiting_s > 0.0 && starved.busiest.is_some_and(|disk| disk.busy_share < 0.9));
        assert!(starved.tightest.is_some_and(|cgroup| cgroup.thresh_bytes < 2 << 20));
        let cliff = symptom(&Derived::of(&dirty_cliff().window()), &[], &[]);
        assert!(cliff.busiest.is_some_and(|disk| disk.busy_share > 0.5));
    }
}
