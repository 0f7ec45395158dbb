// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pauses in dirty throttling as rules see them: seconds by cgroup, by domain and by device, from the events of a
//! tracer. Without a tracer they are unknown: no file distinguishes pauses from waiting for I/O.

use crate::diagnose::cgroup;
use crate::diagnose::waiting::Waiter;
use crate::diagnose::writer::Writer;
use crate::report::Evidence;
use floodline_record::id::EntityId;
use floodline_record::name::Name;
use floodline_record::record::What;
use floodline_record::traced::throttle::{Domain, Throttled};
use floodline_record::units::Nanos;
use floodline_record::window::Window;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Source of the numbers, as evidence names it.
pub const SOURCE: &str = "trace of balance_dirty_pages";

/// Pauses of some tasks, added up.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pauses {
    /// Total time: tasks that are paused at the same time count each.
    pub total: Nanos,
    /// Number of pauses.
    pub count: u64,
    /// The longest.
    pub longest: Nanos,
}

impl Pauses {
    /// Adds the pauses of one event.
    pub fn add(&mut self, event: &Throttled) {
        self.total = Nanos(self.total.0.saturating_add(event.lasted().0));
        self.count = self.count.saturating_add(event.pauses);
        self.longest = self.longest.max(event.longest_lasted());
    }
}

/// Returns every event of the throttle ledger; `None` when it was not traced.
pub fn events(window: &Window) -> Option<impl Iterator<Item = &Throttled>> {
    let throttled = window.events.iter().filter_map(|event| match &event.what {
        What::Throttled(event) => Some(&**event),
        _ => None,
    });
    window.traced.contains("throttle").then_some(throttled)
}

/// Returns the pauses by a key of the event, most first; `None` when they were not traced.
pub fn by<K: Ord>(window: &Window, key: impl Fn(&Throttled) -> Option<K>) -> Option<Vec<(K, Pauses)>> {
    let mut sums: BTreeMap<K, Pauses> = BTreeMap::new();
    for event in events(window)? {
        if let Some(key) = key(event) {
            sums.entry(key).or_default().add(event);
        }
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|(_, pauses)| Reverse(pauses.total));
    Some(sums)
}

/// Seconds that each process was paused by the limits of one kind of domain; `None` when it was not traced.
pub fn seconds_by(window: &Window, domain: Domain) -> Option<BTreeMap<u32, f64>> {
    let paused = by(window, |event| (event.domain == domain).then_some(event.who.pid))?;
    Some(paused.into_iter().map(|(pid, pauses)| (pid, pauses.total.as_secs_f64())).collect())
}

/// The processes of these that dirty throttling paused for `least_s` seconds or longer in all, the most paused first. `pauses` has the
/// seconds of each process.
pub(super) fn paused(pauses: &BTreeMap<u32, f64>, processes: &[&Writer<'_>], least_s: f64) -> Vec<Waiter> {
    let waiter = |writer: &&Writer<'_>| {
        let seconds = pauses.get(&writer.pid).copied().filter(|seconds| *seconds >= least_s)?;
        Some(Waiter {
            pid: writer.pid,
            comm: writer.comm.clone(),
            cgroup: writer.cgroup,
            seconds: Some(seconds),
            longest_s: None,
            asleep_s: None,
            source: SOURCE,
        })
    };
    let mut waiters: Vec<Waiter> = processes.iter().filter_map(waiter).collect();
    waiters.sort_by(|one, other| other.seconds.unwrap_or(0.0).total_cmp(&one.seconds.unwrap_or(0.0)));
    waiters
}

/// Seconds that each process was paused by a device's strict limit: it waited for the limit, whatever the devices did.
pub fn by_strict_limits(window: &Window) -> BTreeMap<u32, f64> {
    seconds_by(window, Domain::Strictlimit).unwrap_or_default()
}

/// All pauses on one device, or on every one.
pub fn total(window: &Window, bdi: Option<&Name>) -> Option<Pauses> {
    let all = by(window, |event| bdi.is_none_or(|bdi| event.bdi == *bdi).then_some(()))?;
    Some(all.into_iter().next().map(|(_, pauses)| pauses).unwrap_or_default())
}

/// The cgroup with an inode number.
pub fn cgroup_of(window: &Window, ino: u64) -> Option<EntityId> {
    window.lookup().cgroup(ino)
}

/// A cgroup by its inode number, for a sentence.
pub fn label(window: &Window, ino: u64) -> String {
    match cgroup_of(window, ino) {
        Some(id) => cgroup::label(window, id),
        None if ino == 1 => "the root cgroup".to_owned(),
        None => format!("cgroup {ino}"),
    }
}

/// Most cgroups named as evidence.
const NAMED: usize = 3;

/// Pauses by the cgroup of the paused task, as evidence: the most paused first. `which` follows the word for them, where not all pauses
/// are wanted.
pub fn evidence(window: &Window, which: &str, wanted: impl Fn(&Throttled) -> bool) -> Vec<Evidence> {
    let Some(pauses) = by(window, |event| wanted(event).then_some(event.who.cgroup_ino)) else { return Vec::new() };
    if pauses.is_empty() {
        return vec![Evidence::seconds(format!("Paused in dirty throttling{which}"), 0.0, SOURCE)];
    }
    let paused = |(ino, pauses): (u64, Pauses)| {
        let name = format!("Paused in dirty throttling{which}, {}", label(window, ino));
        Evidence::seconds(name, pauses.total.as_secs_f64(), SOURCE)
    };
    pauses.into_iter().take(NAMED).map(paused).collect()
}

/// The domain with the largest part of these pauses, and that part in seconds.
pub fn domain(window: &Window, wanted: impl Fn(&Throttled) -> bool) -> Option<(Domain, Nanos)> {
    let domains = by(window, |event| wanted(event).then_some(event.domain))?;
    domains.into_iter().next().map(|(domain, pauses)| (domain, pauses.total))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use floodline_record::traced::Who;
    use floodline_testkit::Fixture;

    /// Pauses: cgroup, device, domain, count, milliseconds, longest.
    type Told<'a> = (u64, &'a str, Domain, u64, u64, u64);

    /// Pauses as a tracer records them.
    pub(crate) fn throttled((cgroup_ino, bdi, domain, pauses, ms, ms_max): Told<'_>) -> What {
        What::Throttled(Box::new(Throttled {
            since: Nanos(0),
            who: Who { pid: 41, comm: "dd".into(), cgroup_ino },
            tid: 41,
            bdi: bdi.into(),
            wb_cgroup_ino: cgroup_ino,
            domain,
            pauses,
            pause_ns: Nanos::from_millis(ms),
            pause_ns_max: Nanos::from_millis(ms_max),
            slept_ns: None,
            slept_ns_max: None,
            unpaused: 0,
            longest: None,
        }))
    }

    fn window(pauses: &[Told<'_>]) -> Window {
        Fixture::healthy().traced(&["throttle"], pauses.iter().copied().map(throttled).collect()).window()
    }

    #[test]
    fn who_waits_for_a_strict_limit_waits_for_no_device() {
        use crate::diagnose::derived::Derived;
        use crate::diagnose::synced::tests::synced;
        use crate::diagnose::waiting;
        use floodline_record::traced::waits::Operation;
        let others = |domain, synced_ms| {
            let pause = throttled((7, "8:0", domain, 11, 3000, 200));
            let sync = synced((41, Operation::Fdatasync, 9, synced_ms, 900));
            let window = Fixture::healthy().traced(&["throttle", "bytes"], vec![pause, sync]).window();
            assert_eq!(by_strict_limits(&window).get(&41).copied().unwrap_or(0.0) > 0.0, domain == Domain::Strictlimit);
            let derived = Derived::of(&window);
            let disk = derived.disks()[0];
            waiting::others_on(&derived, &disk, |_| false).expect("waits are traced").len()
        };
        assert_eq!((others(Domain::Strictlimit, 1000), others(Domain::Global, 1000)), (0, 1));
        assert_eq!(others(Domain::Strictlimit, 5000), 1, "most of it is a sync");
    }

    #[test]
    fn without_a_tracer_nothing_is_said_and_with_one_nothing_is_zero() {
        assert_eq!(total(&Fixture::healthy().window(), None), None);
        assert_eq!(total(&window(&[]), None), Some(Pauses::default()));
        assert_eq!(evidence(&Fixture::healthy().window(), "", |_| true), []);
        assert_eq!(evidence(&window(&[]), "", |_| true)[0].value, crate::report::Value::Decimal(0.0));
    }

    #[test]
    fn pauses_are_added_up_by_cgroup_device_and_domain() {
        let window = window(&[
            (7, "8:0", Domain::Memcg, 3, 30, 20),
            (9, "8:0", Domain::Global, 1, 200, 200),
            (7, "8:16", Domain::Memcg, 5, 500, 200),
        ]);
        let by_cgroup = by(&window, |event| Some(event.who.cgroup_ino)).unwrap();
        let show = |(ino, pauses): &(u64, Pauses)| (*ino, pauses.count, pauses.total.0 / 1_000_000);
        assert_eq!(by_cgroup.iter().map(show).collect::<Vec<_>>(), [(7, 8, 530), (9, 1, 200)]);
        assert_eq!(total(&window, Some(&"8:0".into())).unwrap().total, Nanos::from_millis(230));
        assert_eq!(domain(&window, |_| true), Some((Domain::Memcg, Nanos::from_millis(530))));
        assert_eq!(
            evidence(&window, "", |event| event.bdi == "8:16".into())[0].name,
            "Paused in dirty throttling, cgroup 7"
        );
    }

    #[test]
    fn what_traces_a_machine_is_known_in_every_stretch() {
        let mut window = window(&[(7, "8:0", Domain::Memcg, 3, 30, 20)]);
        window.begin_stretch();
        assert_eq!(total(&window, None), Some(Pauses::default()));
    }
}
