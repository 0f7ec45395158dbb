// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writers that wait at a dirty limit although the disk has room: the limit holds less than the disk writes in a moment, so
//! it takes in no burst. Nothing has to be written again for that. Judged for each cgroup with a budget of its own, and for
//! the machine. Several rules tell of it: each gives its name.

use crate::advise::raised;
use crate::advise::threshold::{self, Absorption, HARD_PER_BACKGROUND, Needs};
use crate::budget::{Bound, Budgets, DomainBudget, Setting};
use crate::diagnose::cgroup;
use crate::diagnose::derived::Derived;
use crate::diagnose::device::{Basis, Device, Speed};
use crate::diagnose::settings::Settings;
use crate::diagnose::waiting::{self, HARM_SHARE, Waiter};
use crate::diagnose::writer::Writer;
use crate::diagnose::{asleep, at_limit, crowded, dirty, throttle};
use crate::report::{Brief, Evidence, Finding, Severity, Step};
use floodline_record::human;
use floodline_record::id::EntityId;
use floodline_record::name::Name;
use floodline_record::traced::throttle::Domain;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

/// Processes by the memory cgroup that they are charged to.
pub type Occupied<'w, 'a> = BTreeMap<EntityId, Vec<&'w Writer<'a>>>;

/// Part of a cgroup's memory from which its dirty limit is small because of that memory, and not because of a setting.
pub const FAIR_FRACTION: f64 = 0.05;
/// Seconds of the disk's writing below which a limit takes in no burst. What is advised for a disk is four times 0.75 s.
const MOMENT_S: f64 = 0.5;
/// Seconds of the disk's writing below which the limit of a void pair is short. Longer than [`MOMENT_S`], because such a limit is a
/// mistake already.
const MOMENT_OF_VOID_S: f64 = 2.0;
/// Seconds of the disk's writing below which a limit of the machine is short, where no program syncs. A higher limit takes in the bursts
/// and makes no sync wait.
const MOMENT_WITHOUT_SYNCS_S: f64 = 2.0;
/// Utilisation of the disk over the window up to which it has room for what is written.
pub const HAS_ROOM: f64 = 0.75;
/// Part of the window with such intervals from which waiting is felt.
const FELT_SHARE: f64 = 0.25;
/// Part of the window with such intervals from which waiting at the limit of a void pair is felt.
const FELT_SHARE_OF_VOID: f64 = 0.1;
/// Dirty data, in multiples of a limit, from which it is not what held them back.
const PASSED: u64 = 2;
/// Part of what a device wrote from which a process is one of its writers.
const NOTICEABLE: f64 = 0.01;
/// Time with a task waiting for I/O, in multiples of the disk's busy time, from which tasks do not wait for the disk: a sync takes no
/// longer than the disk's work for it.
const BEYOND_BUSY: f64 = 1.5;

/// A limit at which tasks wait.
#[derive(Clone)]
struct Short<'b, 'a> {
    domain: &'b DomainBudget,
    /// The cgroup; `None` for the machine.
    cgroup: Option<EntityId>,
    /// Hard threshold, at most, bytes.
    thresh: u64,
    /// Most dirty and under writeback of any sample, bytes.
    peak: u64,
    /// Tasks that wait, those that wait most first.
    waiters: Vec<Waiter>,
    /// Whether the waits of this cgroup alone may be short, or its limit is only known to be filled between two samples.
    is_between: bool,
    /// Whether it dirties as much as its freerun ceiling each second.
    fills: bool,
    /// The device that most is written to, its speed, and how busy its busiest disk is over the window.
    device: Device<'a>,
    speed: Speed,
    utilisation: f64,
    /// Seconds of the device's writing below which a limit counts as short.
    moment_s: f64,
    /// Room that the bursts at the limit of the machine need, where no program syncs.
    room: Option<raised::Room>,
}

/// Memory cgroups with the processes charged to them; `None` when no process was read.
pub fn occupied<'w, 'a>(
    derived: &Derived<'_>,
    budgets: &Budgets,
    processes: &'w [Writer<'a>],
) -> Option<Occupied<'w, 'a>> {
    let memcgs: BTreeSet<EntityId> = budgets.cgroups.iter().map(|budget| budget.cgroup).collect();
    let by_path = || budgets.cgroups.iter().map(|budget| (budget.path.as_bytes(), budget.cgroup)).collect();
    let paths = OnceCell::<BTreeMap<&[u8], EntityId>>::new();
    let mut occupied: BTreeMap<_, Vec<&Writer<'_>>> = BTreeMap::new();
    for process in processes {
        let Some(id) = process.cgroup else { continue };
        // Most processes are in a cgroup that has a budget. Paths are long and begin alike.
        let nearest = || cgroup::nearest(paths.get_or_init(by_path), cgroup::path(derived.window, id)?.as_bytes());
        if let Some(memcg) = memcgs.get(&id).copied().or_else(nearest) {
            occupied.entry(memcg).or_default().push(process);
        }
    }
    (!occupied.is_empty()).then_some(occupied)
}

/// The finding about the limit at which most tasks wait; `None` where no task does.
pub fn finding(
    rule: &'static str,
    derived: &Derived<'_>,
    budgets: &Budgets,
    occupied: Option<&Occupied<'_, '_>>,
) -> Option<Finding> {
    let written = derived.devices_written();
    let per_cgroup = occupied.filter(|_| budgets.scope.is_per_cgroup());
    let of_memcgs = throttle::seconds_by(derived.window, Domain::Memcg);
    let mut found: Vec<Short<'_, '_>> = Vec::new();
    for budget in &budgets.cgroups {
        let Some(processes) = per_cgroup.and_then(|occupied| occupied.get(&budget.cgroup)) else { continue };
        let peak = derived.window.unwritten_max.get(&budget.cgroup).copied().unwrap_or(0);
        let devices = written.devices(budget.cgroup);
        found.extend(short(
            derived,
            &budget.domain,
            Some(budget.cgroup),
            peak,
            (processes, of_memcgs.as_ref()),
            &devices,
            false,
        ));
    }
    // `contradictory-dirty-settings` tells of a limit that was not meant to be the lower one.
    if !is_pair_void(derived) {
        found.extend(short_of_machine(derived, &budgets.global, false));
    }
    let seen = found.iter().filter(|one| !one.is_between).max_by_key(|one| (one.waiters.len(), one.cgroup.is_some()));
    // A program that waits alone at its limit waits for its own data, unless others wait at theirs.
    match seen.filter(|worst| worst.waiters.len() >= 2) {
        Some(worst) => Some(told(rule, derived, worst, &[])),
        None => together(rule, derived, &found).or_else(|| Some(told(rule, derived, seen?, &[]))),
    }
}

/// The finding about cgroups that wait in turn: together they wait for a good part of the window, and longer than the disk has work.
fn together(rule: &'static str, derived: &Derived<'_>, found: &[Short<'_, '_>]) -> Option<Finding> {
    let waited_s = |one: &Short<'_, '_>| one.waiters.iter().filter_map(|waiter| waiter.seconds).sum::<f64>();
    let cgroups: Vec<&Short<'_, '_>> = found.iter().filter(|one| one.cgroup.is_some()).collect();
    let worst = *cgroups.iter().max_by(|one, other| waited_s(one).total_cmp(&waited_s(other)))?;
    let pressure = derived.dirty.io_pressure_some?;
    let together_s: f64 = cgroups.iter().map(|one| waited_s(one)).sum();
    // The pressure is that of the whole machine: the work of each of their disks may explain it.
    let disks: BTreeMap<EntityId, f64> = cgroups
        .iter()
        .map(|one| {
            let flushing = one.device.bottoms().iter().map(Device::flushing).fold(0.0, f64::max);
            (one.device.id, one.utilisation + flushing)
        })
        .collect();
    let is_harm = together_s.min(pressure * derived.seconds) >= HARM_SHARE * derived.seconds
        && pressure >= BEYOND_BUSY * disks.values().sum::<f64>();
    (cgroups.len() >= 2 && is_harm).then(|| {
        let mut waiters: Vec<Waiter> = cgroups.iter().flat_map(|one| one.waiters.iter().cloned()).collect();
        waiters.sort_by(|one, other| other.seconds.unwrap_or(0.0).total_cmp(&one.seconds.unwrap_or(0.0)));
        let others: Vec<&Short<'_, '_>> = cgroups.iter().copied().filter(|one| one.cgroup != worst.cgroup).collect();
        told(rule, derived, &Short { waiters, is_between: true, ..worst.clone() }, &others)
    })
}

/// The finding about the machine's limit, by the conditions for a void pair; `None` if no task waits there. The caller knows that the
/// pair is void.
pub fn of_void_pair(rule: &'static str, derived: &Derived<'_>) -> Option<Finding> {
    short_of_machine(derived, derived.global_budget(), true).map(|short| told(rule, derived, &short, &[]))
}

/// Processes that wait at the limit of a void pair with data for this device, where several do. `contradictory-dirty-settings` tells of
/// them.
pub fn waiting_at_void_pair(derived: &Derived<'_>, device: &Device<'_>) -> BTreeSet<u32> {
    if !is_pair_void(derived) {
        return BTreeSet::new();
    }
    let is_its = |short: &Short<'_, '_>| {
        short.device.id == device.id || short.device.bottoms().iter().any(|disk| disk.id == device.id)
    };
    let short = short_of_machine(derived, derived.global_budget(), true).filter(is_its);
    let pids: BTreeSet<u32> = short.iter().flat_map(|short| &short.waiters).map(|waiter| waiter.pid).collect();
    if pids.len() >= 2 { pids } else { BTreeSet::new() }
}

/// Whether the background threshold of the machine is void.
fn is_pair_void(derived: &Derived<'_>) -> bool {
    let settings = Settings::of(&derived.window.host.last);
    settings.is_some_and(|settings| settings.is_void(derived.dirty.dirtyable_roughly))
}

fn short_of_machine<'b, 'a>(derived: &Derived<'a>, global: &'b DomainBudget, is_void: bool) -> Option<Short<'b, 'a>> {
    let peak = derived.dirty.unwritten_peak.map_or(0, |bytes| bytes.0);
    let pauses = throttle::seconds_by(derived.window, Domain::Global);
    let all: Vec<&Writer<'_>> = derived.writers().processes.iter().collect();
    short(derived, global, None, peak, (&all, pauses.as_ref()), derived.drains(), is_void)
}

fn short<'b, 'a>(
    derived: &Derived<'a>,
    domain: &'b DomainBudget,
    cgroup: Option<EntityId>,
    peak: u64,
    (processes, pauses): (&[&Writer<'_>], Option<&BTreeMap<u32, f64>>),
    devices: &[Device<'a>],
    is_void: bool,
) -> Option<Short<'b, 'a>> {
    let (moment_s, felt_share, harm_share) = match is_void {
        true => (MOMENT_OF_VOID_S, FELT_SHARE_OF_VOID, HARM_SHARE / 2.0),
        false => (MOMENT_S, FELT_SHARE, HARM_SHARE),
    };
    // Programs that take and free memory move a limit in percent. The limit at which tasks waited counts.
    let of_machine = if cgroup.is_none() { at_limit::at_limit(derived, None) } else { None };
    let thresh = of_machine.and_then(|at| at.thresh).or(domain.thresh.map(|bound| bound.high.0))?;
    let freerun = of_machine.and_then(|at| at.freerun).or(domain.freerun.map(|bound| bound.low.0))?;
    // A limit may be small because the cgroup is.
    let is_fair = |available: Bound| thresh as f64 >= FAIR_FRACTION * available.high.0 as f64;
    if cgroup.is_some() && domain.available.is_some_and(is_fair) {
        return None;
    }
    // What limits a cgroup may be the machine's own, smaller limit: then that is judged.
    let is_of_machine = cgroup.is_some() && domain.binding.as_ref().is_some_and(|binding| binding.global_is_less);
    // Samples miss a burst that is written, or removed, before the next one. A cgroup that dirties as much in a second passes it.
    let dirtied: u64 = processes.iter().filter_map(|one| one.dirtied_bytes).fold(0, u64::saturating_add);
    let fills = cgroup.is_some() && dirtied as f64 >= freerun as f64 * derived.seconds;
    // `contradictory-dirty-settings` names a limit of nothing.
    if thresh == 0 || (peak < freerun && !fills) || is_of_machine {
        return None;
    }
    // Far above it, the samples saw data that this limit did not hold back. A call dirties whole folios before any check, so a cgroup that
    // passes its limit each second is seen far above it.
    if peak > thresh.saturating_mul(PASSED) && !fills {
        return None;
    }
    let amount = |device: &&Device<'_>| device.span.growth.written.map_or(0, |bytes| bytes.0);
    let device = *devices.iter().max_by_key(amount)?;
    let speed = derived.speed_of(&device).filter(|speed| speed.value > 0.0)?;
    let utilisation = derived.utilisation_of(&device)?;
    // Where bursts would wait for their own syncs instead, a higher limit is no gain.
    let room = of_machine.filter(|_| !crowded::may_sync(derived, &device)).map(|at| raised::Room::of(derived, &at));
    let moment_s = if room.is_some_and(raised::Room::fits) { moment_s.max(MOMENT_WITHOUT_SYNCS_S) } else { moment_s };
    if thresh as f64 >= moment_s * speed.value || utilisation > HAS_ROOM {
        return None;
    }
    let harm_s = harm_share * derived.seconds;
    let mut waiters = match pauses {
        Some(pauses) => throttle::paused(pauses, processes, harm_s),
        None => {
            let of_cgroup = cgroup.and_then(|id| derived.window.cgroups.get(&id)).map(cgroup::io_pressure_some);
            let is_felt = |share: Option<f64>| share.is_some_and(|share| share >= felt_share);
            // A cgroup's level is not kept for each sample: the machine's is at least as high.
            let at_limit = || cgroup.map_or(of_machine, |_| at_limit::at_limit(derived, Some(freerun)));
            let is_at_limit = peak >= freerun
                && is_felt(of_cgroup.unwrap_or(Some(1.0)))
                && is_felt(at_limit().map(|at| at.waited_share));
            if is_at_limit { waiting_writers(derived, &device, processes) } else { Vec::new() }
        }
    };
    // Data on no disk may be reached and waited for elsewhere.
    let is_reached = || cgroup.is_some() && peak >= freerun && !writes_beyond_disks(derived);
    let is_between = waiters.is_empty() && (fills || is_reached());
    if is_between {
        waiters = match pauses {
            Some(pauses) => throttle::paused(pauses, processes, waiting::felt_s(derived.seconds)),
            None => waiting_writers(derived, &device, processes),
        };
        waiters.retain(|waiter| waiter.seconds.is_some());
    }
    let short =
        Short { domain, cgroup, thresh, peak, waiters, is_between, fills, device, speed, utilisation, moment_s, room };
    (!short.waiters.is_empty()).then_some(short)
}

/// Whether a filesystem is mounted whose data go to no disk of this machine.
fn writes_beyond_disks(derived: &Derived<'_>) -> bool {
    derived.window.facts.iter().flat_map(|facts| &facts.mounts).any(dirty::is_beyond_disks)
}

/// Waiters among these processes, where no trace tells pauses from other waits: those that may have waited for the device, dirtied
/// a noticeable part of what is written to it, and read less than that.
fn waiting_writers(derived: &Derived<'_>, device: &Device<'_>, processes: &[&Writer<'_>]) -> Vec<Waiter> {
    let written = device.span.growth.written.map_or(0, |bytes| bytes.0);
    let writes = |writer: &&&Writer<'_>| {
        let dirtied = writer.dirtied_bytes.unwrap_or(0);
        !writer.kthread && dirtied as f64 >= NOTICEABLE * written as f64 && dirtied > writer.read_bytes.unwrap_or(0)
    };
    let pids: BTreeSet<u32> = processes.iter().filter(writes).map(|writer| writer.pid).collect();
    let waiters = waiting::others_on(derived, device, |waiter| !pids.contains(&waiter.pid));
    waiters.unwrap_or_default()
}

/// The name of a speed in the evidence.
fn speed_row(speed: &Speed, name: &Name) -> String {
    match speed.basis {
        Basis::KernelEstimate => format!("Estimated bandwidth of {name}"),
        Basis::AtLeast => format!("Bandwidth of {name}, at least"),
        Basis::Saturated | Basis::AtMost => format!("Bandwidth of {name}"),
    }
}

/// Higher limits that suit a disk of this speed and a cgroup with this dirtyable memory, if they are found: the commands, why, and what they
/// cost.
pub fn higher(derived: &Derived<'_>, speed: Speed, available_bytes: Option<u64>) -> (Vec<Step>, String, String) {
    // A disk that was never full may be faster than it wrote, so the time is an upper bound.
    let is_least = speed.basis == Basis::AtLeast;
    let basis = if is_least { Basis::Saturated } else { speed.basis };
    let mut needs = Needs::of(derived, Some(Speed { basis, ..speed }));
    if let Some(available_bytes) = available_bytes {
        // The hard threshold is four times the background threshold that is chosen here.
        let wanted_bytes = (MOMENT_S * speed.value / HARD_PER_BACKGROUND as f64) as u64;
        let least = needs.smallest.filter(|least| least.available_bytes < available_bytes);
        needs.smallest = Some(least.unwrap_or(Absorption { available_bytes, wanted_bytes }));
    }
    match threshold::choose(&needs).filter(|advice| advice.meets_all) {
        Some(advice) => {
            let why = match advice.drain_s.filter(|_| is_least) {
                Some(seconds) => {
                    let seconds = human::seconds(seconds);
                    format!("The device writes data up to the background threshold of the plan in {seconds} or less.")
                }
                None => advice.why,
            };
            (derived.sysctls(&advice.pair.changes()), why, advice.trade_off)
        }
        None => (Vec::new(), String::new(), String::new()),
    }
}

/// The finding about a limit, which other cgroups have as well.
fn told(rule: &'static str, derived: &Derived<'_>, short: &Short<'_, '_>, others: &[&Short<'_, '_>]) -> Finding {
    let place = match short.cgroup {
        Some(id) => derived.label(id),
        None => "the machine".to_owned(),
    };
    let places = match others.len() as u64 {
        0 => place.clone(),
        more => format!("{place} and {}", human::plural(more, "cgroup like it", "cgroups like it")),
    };
    let setting = setting_of(short.domain);
    let name = short.device.name;
    let first = short.waiters.first().map(Waiter::label).unwrap_or_default();
    let who = match short.waiters.len() {
        0 | 1 => first,
        more => format!("{first} and {} more", more - 1),
    };
    let is_long = |waiter: &&Waiter| waiter.seconds.is_some_and(|waited| waited >= HARM_SHARE * derived.seconds);
    let are_harmed = short.waiters.iter().filter(is_long).count() >= 2
        || waiting::is_shared_harm(derived, &short.waiters)
        || asleep::are_mostly_asleep(derived.window, &short.waiters);
    let (least, most) = others
        .iter()
        .map(|one| one.thresh)
        .fold((short.thresh, short.thresh), |(least, most), one| (least.min(one), most.max(one)));
    let busy = human::percent(short.utilisation);
    let is_range = human::bytes(least as f64) != human::bytes(most as f64);
    // The others have limits of their own.
    let thresh = match is_range {
        true => format!("limits from {} to {}", human::bytes(least as f64), human::bytes(most as f64)),
        false => human::bytes(most as f64),
    };
    let available = short.cgroup.and(short.domain.available);
    let (plan, why, trade_off) = short
        .room
        .and_then(|room| raised::for_bursts(derived, short.speed, room))
        .unwrap_or_else(|| higher(derived, short.speed, available.map(|available| available.low.0)));
    let seconds = human::seconds(most as f64 / short.speed.value);
    let (within, last) = match is_range {
        true => ("in at most", "Each burst of writes soon reaches its limit."),
        false => ("in only", "Each burst of writes soon reaches this limit."),
    };
    // Without a trace, only the level shows what they waited for.
    let waited = match short.waiters.iter().any(|waiter| waiter.source == throttle::SOURCE) {
        true => "waited at this limit",
        false if short.is_between && !short.fills => {
            "waited for I/O longer than the disk had work, and this limit was reached"
        }
        false if short.is_between => {
            "waited for I/O longer than the disk had work, and dirtied as much as this limit each second"
        }
        false => "waited for I/O while this limit was reached",
    };
    let mut evidence = vec![
        Evidence::bytes(format!("Hard threshold of {place}"), short.thresh, "domain_dirty_limits()")
            .against(short.moment_s * short.speed.value),
        match short.cgroup {
            Some(_) => {
                Evidence::bytes(format!("Most dirty, {place}"), short.peak, "memory.stat file_dirty + file_writeback")
            }
            None => {
                Evidence::bytes("Most dirty and under writeback", short.peak, "/proc/vmstat nr_dirty + nr_writeback")
            }
        },
        Evidence::rate(speed_row(&short.speed, name), short.speed.value, short.speed.basis.source()),
        Evidence::share(format!("{name} busy"), short.utilisation, "/proc/diskstats io_time").against(HAS_ROOM),
    ];
    evidence.extend(short.waiters.iter().take(3).flat_map(Waiter::evidence));
    evidence.extend(derived.dirty.io_pressure_row());
    Finding {
        rule,
        severity: match short.waiters.as_slice() {
            // A program that writes alone waits for its own data.
            [_] => Severity::Info,
            _ if are_harmed => Severity::Critical,
            _ => Severity::Warning,
        },
        summary: format!(
            "{setting} makes the kernel pause writers of {places} near {thresh}, which {name} writes {within} {seconds}. {who} {waited}. \
             {name} is {busy} busy over the window."
        ),
        evidence,
        cause: format!(
            "The kernel pauses writers as unwritten data approach the limit. {name} writes this much in less than {}, so a \
             burst soon reaches it. {why}",
            human::seconds(short.moment_s)
        )
        .trim_end()
        .to_owned(),
        brief: Brief {
            because: format!("{name} writes {} in {seconds}. {last}", human::bytes(most as f64)),
            who,
            expect: match plan.is_empty() {
                true => "Raise the limit. Larger bursts then fit below it, and writers wait less.".to_owned(),
                false => "Larger bursts fit below the limit, and writers wait less.".to_owned(),
            },
            costs: "More data is lost if the machine loses power.".to_owned(),
        },
        devices: vec![name.to_string()],
        plan,
        trade_off,
        waited_s: short.waiters.first().and_then(|waiter| waiter.seconds),
        // The wait of a sync then depends on a speed that was not seen.
        helps_in_part: short.speed.basis == Basis::AtLeast,
        ..Finding::default()
    }
}

/// The setting that decides the hard threshold of a domain.
pub fn setting_of(domain: &DomainBudget) -> String {
    match domain.binding.as_ref().map(|binding| binding.setting) {
        Some(Setting::Bytes { bytes, .. }) => format!("vm.dirty_bytes = {}", human::bytes(bytes.0 as f64)),
        Some(Setting::Ratio { percent }) => format!("vm.dirty_ratio = {percent} %"),
        None => "The dirty setting".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use crate::diagnose::rules::contradictory_dirty_settings;
    use crate::diagnose::rules::starved_dirty_budget::RULE;
    use crate::diagnose::throttle::tests::throttled;
    use crate::diagnose::{check_rule, first_finding};
    use floodline_record::record::What;
    use floodline_record::traced::throttle::Domain;
    use floodline_record::units::{BytesPerSecond, Count, Limit, Pages};
    use floodline_testkit::{Fixture, grows, incidents, mib, mib_pages, secs};

    /// A machine with limits of `limit_mib`, three programs that wait for them, and a disk that is busy for this part of the time.
    fn host(limit_mib: f64, unwritten_mib: f64, busy: f64) -> Fixture {
        let limit = mib(limit_mib) as u64;
        let host = Fixture::healthy()
            .thresholds((0, limit, 0, limit / 2), limit / 4096, limit / 8192)
            .host(move |t, row| {
                row.nr_dirty = Some(mib_pages(unwritten_mib));
                row.nr_writeback = Some(Pages(0));
                row.psi_io_some = Some(secs(900.0 + 0.8 * t));
            })
            .disk("sda", move |t, row| {
                row.written = grows(t, 0, 100e6 * busy);
                row.writes = Some(Count((100.0 * busy * t) as u64));
                row.io_time = Some(secs(600.0 + busy * t));
                row.weighted_io_time = Some(secs(600.0 + 2.0 * busy * t));
            })
            .bdi("8:0", |_, row| row.write_bandwidth = Some(BytesPerSecond(100_000_000)));
        (0..3).fold(host.seconds(20), |host, writer| {
            host.process("collect", 930 + writer, "/", |t, row| {
                row.write_bytes = grows(t, 0, 10e6);
                row.wchar = grows(t, 0, 10e6);
                row.state = Some(Count(u64::from(if t % 10.0 < 7.0 { b'D' } else { b'R' })));
            })
        })
    }

    #[test]
    fn tasks_that_read_or_write_elsewhere_do_not_wait_at_the_limit() {
        let readers = |share: f64| {
            (0..3).fold(host(8.0, 8.0, 0.3), |host, reader| {
                host.process("collect", 930 + reader, "/", move |t, row| row.read_bytes = grows(t, 0, share * 10e6))
            })
        };
        check_rule(&RULE, &readers(0.1), "critical:");
        check_rule(&RULE, &readers(3.0), "clear:");
    }

    #[test]
    fn a_trace_tells_who_was_paused_and_one_alone_is_a_note() {
        let traced = |paused: &[(u64, u64)]| {
            let pause = |(pid, ms): &(u64, u64)| {
                let What::Throttled(mut event) = throttled((1, "8:0", Domain::Global, 50, *ms, 200)) else {
                    unreachable!("it is a pause")
                };
                event.who.pid = *pid as u32;
                What::Throttled(event)
            };
            host(8.0, 8.0, 0.3).traced(&["throttle", "bytes"], paused.iter().map(pause).collect())
        };
        check_rule(&RULE, &traced(&[(930, 9_000), (931, 8_000)]), "critical: vm.dirty_bytes = 8.00 MiB");
        check_rule(&RULE, &traced(&[(930, 9_000), (931, 100)]), "info: vm.dirty_bytes = 8.00 MiB");
        check_rule(&RULE, &traced(&[(930, 100)]), "clear:");
    }

    #[test]
    fn a_higher_limit_is_advised_for_a_disk_that_was_never_full_too() {
        // No estimate of the kernel: the disk wrote 300 MB/s at least.
        let unknown = host(8.0, 8.0, 0.3).bdi("8:0", |_, row| row.write_bandwidth = None);
        let finding = first_finding(&RULE, &unknown);
        let rows: Vec<&str> = finding.evidence.iter().map(|row| row.name.as_str()).collect();
        assert!(rows.contains(&"Bandwidth of sda, at least"), "{rows:?}");
        assert!(finding.plan.iter().any(|step| step.command.contains("vm.dirty_background_bytes=")), "{finding:?}");
        assert!(finding.cause.contains("or less.") && finding.helps_in_part, "{}", finding.cause);
        assert!(!first_finding(&RULE, &host(8.0, 8.0, 0.3)).helps_in_part, "the kernel estimates the speed");
    }

    #[test]
    fn a_limit_of_a_moment_at_which_writers_wait_is_too_small() {
        check_rule(
            &RULE,
            &host(8.0, 8.0, 0.3),
            "critical: vm.dirty_bytes = 8.00 MiB makes the kernel pause writers of the machine near 8.00 MiB, which sda writes in only",
        );
        check_rule(&RULE, &host(200.0, 199.0, 0.3), "clear:");
        check_rule(&RULE, &host(8.0, 2.0, 0.3), "clear:");
        check_rule(&RULE, &host(8.0, 8.0, 0.95), "clear:");
        // A background threshold that was meant to be higher tells that the limit is a mistake.
        let void = host(8.0, 8.0, 0.3).settings((0, 8 << 20, 0, 256 << 20));
        check_rule(&RULE, &void, "clear:");
        let expect = "critical: The background threshold of 256 MiB is ignored: it is not below the limit of 8.00 MiB, so half of the limit is used. vm.dirty_bytes = 8.00 MiB \
            makes the kernel pause writers of the machine";
        check_rule(&contradictory_dirty_settings::RULE, &void, expect);
        // Such a limit may hold what the disk writes in two seconds.
        let longer =
            |limit_mib: f64| host(limit_mib, limit_mib - 1.0, 0.3).settings((0, mib(limit_mib) as u64, 0, 256 << 20));
        check_rule(
            &contradictory_dirty_settings::RULE,
            &longer(120.0),
            "critical: The background threshold of 256 MiB",
        );
        check_rule(&contradictory_dirty_settings::RULE, &longer(220.0), "info: The background threshold of 256 MiB");
        // Far above the limit: it held nothing back.
        check_rule(&RULE, &host(8.0, 20.0, 0.3), "clear:");
    }

    #[test]
    fn a_limit_of_two_seconds_is_short_where_no_program_syncs() {
        let longer = |syncs: f64| host(120.0, 119.0, 0.3).disk("sda", move |t, row| row.flushes = grows(t, 0, syncs));
        check_rule(&RULE, &longer(0.1), "critical: vm.dirty_bytes = 120 MiB");
        check_rule(&RULE, &longer(5.0), "clear:");
    }

    #[test]
    fn a_limit_that_rose_after_the_waits_counts_as_it_was() {
        let rises = |from: f64| {
            host(8.0, 8.0, 0.3).settings((2, 0, 1, 0)).host(move |t, row| {
                let limit = if t < from { 8.0 } else { 160.0 };
                row.nr_dirty_threshold = Some(mib_pages(limit));
                row.nr_dirty_background_threshold = Some(mib_pages(limit / 2.0));
            })
        };
        check_rule(
            &RULE,
            &rises(19.0),
            "critical: vm.dirty_ratio = 2 % makes the kernel pause writers of the machine near 8.00 MiB",
        );
        check_rule(&RULE, &rises(0.0), "clear:");
    }

    /// Two cgroups with these limits of memory, MiB, that dirty more than their shares each second and wait in turn.
    fn in_turn(limits: [f64; 2]) -> String {
        let host = incidents::small_budget_of_pages()
            .host(|t, row| row.psi_io_some = Some(secs(900.0 + 0.3 * t)))
            .disk("sdb", |t, row| row.io_time = Some(secs(600.0 + 0.1 * t)));
        let host = limits.into_iter().enumerate().fold(host, |host, (at, limit)| {
            let path = format!("/bench.slice/writer-{at}.scope");
            let host = host.cgroup(&path, |t, row| row.file = grows(t, mib(5.0), 4e6));
            host.limits(&path, move |_, row| row.memory_max = Some(Limit(mib(limit)))).process(
                "mapwriter",
                2000 + at as u32,
                &path,
                |t, row| {
                    (row.wchar, row.write_bytes) = (grows(t, 0, 4e6), grows(t, 0, 4e6));
                    row.blkio_delay = Some(secs(0.15 * t));
                },
            )
        });
        first_finding(&RULE, &host).summary
    }

    #[test]
    fn cgroups_with_limits_of_their_own_are_told_with_the_smallest_and_the_largest() {
        let same = in_turn([128.0, 128.0]);
        assert!(same.contains(" and 1 cgroup like it near 1.") && same.contains(" writes in only "), "{same}");
        let other = in_turn([128.0, 256.0]);
        assert!(other.contains(" and 1 cgroup like it near limits from 1."), "{other}");
        assert!(other.contains(" MiB to ") && other.contains(" writes in at most "), "{other}");
    }
}
