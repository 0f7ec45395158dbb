// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rule `starved-dirty-budget`: a machine-wide setting leaves cgroups so little dirty memory that every
//! folio is cleaned as soon as it is dirtied. Two factors, told apart: the budget, and the amplification
//! by folios that are dirtied again and again. Not about a cgroup that is small by its own limit, and not
//! about version 1, where no cgroup has a budget.
#![doc = include_str!("starved_dirty_budget.md")]

use crate::advise::{step::sysctls, threshold};
use crate::budget::{Budgets, CgroupBudget, Scope, Setting, budgets};
use crate::diagnose::device::{self, Device};
use crate::diagnose::writer::{self, Period, Writer};
use crate::diagnose::{Rule, Verdict, cgroup, dirty, missing};
use crate::gap::Source;
use crate::human;
use crate::kernel::largest_folio;
use crate::name::Name;
use crate::report::{Evidence, Finding, Severity};
use crate::units::Bytes;
use crate::window::Window;
use std::collections::BTreeMap;

/// See the manual page.
pub const RULE: Rule = Rule {
    name: "starved-dirty-budget",
    summary: "A dirty setting divided over cgroups leaves each too little to hold what it rewrites",
    manual: include_str!("starved_dirty_budget.md"),
    check,
};

/// Folios a budget has to hold before cleaning stops chasing dirtying.
const FOLIOS_NEEDED: u64 = 16;
/// The least any budget needs: two polling intervals of one writer, 2 × 32 pages.
const LEAST_NEEDED: u64 = 2 * (128 << 10);
/// A budget that is this part of a cgroup's memory is small because the cgroup is.
const FAIR_FRACTION: f64 = 0.05;
/// Bytes dirtied per fault from which the unit is a folio and not a page.
const FOLIO_PER_FAULT: f64 = 16_384.0;
/// Bytes dirtied per application byte from which dirtying is rewriting.
const REWRITES: f64 = 4.0;
/// Rate of rewriting from which it hurts, bytes per second.
const HURTS_RATE: f64 = 1e6;
/// Share of the window with a task waiting for I/O from which throttling hurts.
const HURTS_PRESSURE: f64 = 0.1;
/// Utilisation of a disk from which waiting may be for it.
const SATURATED: f64 = 0.9;

/// A cgroup whose budget is too small for its filesystem.
struct Starved<'a> {
    budget: &'a CgroupBudget,
    /// At most this hard threshold, bytes.
    thresh: u64,
    needed: u64,
    folio: u64,
    fs_type: &'a str,
    /// Most dirty and under writeback of any sample, bytes.
    peak: Option<u64>,
}

/// What the processes in starved cgroups did.
#[derive(Default)]
struct Activity<'w, 'a> {
    writers: Vec<&'w Writer<'a>>,
    dirtied: u64,
    application: u64,
    faults: u64,
    rate: Option<f64>,
}

impl Activity<'_, '_> {
    fn per_fault(&self) -> f64 {
        self.dirtied as f64 / self.faults.max(1) as f64
    }

    fn per_application_byte(&self) -> f64 {
        self.dirtied as f64 / self.application.max(1) as f64
    }

    fn is_amplified(&self) -> bool {
        self.rate.is_some_and(|rate| rate >= HURTS_RATE)
            && self.per_application_byte() >= REWRITES
            && self.per_fault() >= FOLIO_PER_FAULT
    }
}

fn check(window: &Window) -> Verdict {
    let budgets = budgets(window);
    match budgets.scope {
        Scope::PerCgroup => {}
        Scope::NoUnifiedHierarchy => {
            return Verdict::Clear("no per-cgroup budget exists here: memory and io are not both on version 2".into());
        }
        Scope::KernelTooOld => return Verdict::Clear("no per-cgroup budget exists before kernel 4.2".into()),
        Scope::Unknown => return missing::not_checked(window, Source::CgroupV2, "cgroup set-up"),
    }
    let known: Vec<&CgroupBudget> = budgets.cgroups.iter().filter(|budget| budget.domain.thresh.is_some()).collect();
    if known.is_empty() {
        return match budgets.cgroups.first() {
            Some(budget) if !budget.domain.missing.is_empty() => Verdict::NotChecked(budget.domain.missing.clone()),
            _ if window.cgroups.is_empty() => missing::not_checked(window, Source::CgroupV2, "no cgroup"),
            _ => Verdict::Clear("no cgroup has a memory controller of its own".into()),
        };
    }
    let writers = writer::writers(window);
    let occupied = occupied(window, &budgets, &writers.processes);
    let starved: Vec<Starved<'_>> = known
        .iter()
        .filter(|budget| occupied.as_ref().is_none_or(|occupied| occupied.contains_key(&budget.cgroup)))
        .filter_map(|budget| starved(window, budget))
        .collect();
    let Some(worst) = starved.iter().min_by_key(|starved| (starved.thresh, &starved.budget.path)) else {
        return Verdict::Clear(smallest(&known));
    };
    let activity = activity(window, &starved, occupied.as_ref(), writers.period);
    Verdict::Found(vec![finding(window, &budgets, &starved, worst, &activity)])
}

/// The smallest budget of all, for the reason why nothing was found.
fn smallest(known: &[&CgroupBudget]) -> String {
    let least = known.iter().filter_map(|budget| Some((budget.domain.thresh?.low.0, &budget.path))).min();
    match least {
        Some((thresh, path)) => format!(
            "{} with budgets of their own, the smallest {} ({path}), none of them small by a machine-wide setting",
            human::plural(known.len() as u64, "cgroup", "cgroups"),
            human::bytes(thresh as f64)
        ),
        None => "no budget is small".to_owned(),
    }
}

/// Memory cgroups that processes answer to, with those processes; `None` when no process was read.
fn occupied<'w, 'a>(
    window: &Window,
    budgets: &Budgets,
    processes: &'w [Writer<'a>],
) -> Option<BTreeMap<crate::id::EntityId, Vec<&'w Writer<'a>>>> {
    let memcgs: BTreeMap<&[u8], _> =
        budgets.cgroups.iter().map(|budget| (budget.path.as_bytes(), budget.cgroup)).collect();
    let mut occupied: BTreeMap<_, Vec<&Writer<'_>>> = BTreeMap::new();
    for process in processes {
        let path = process.cgroup.and_then(|id| cgroup::path(window, id));
        if let Some(memcg) = path.and_then(|path| cgroup::nearest(&memcgs, path.as_bytes())) {
            occupied.entry(memcg).or_default().push(process);
        }
    }
    (!occupied.is_empty()).then_some(occupied)
}

/// A cgroup whose threshold is below some folios of its filesystem, because of a machine-wide setting.
fn starved<'a>(window: &'a Window, budget: &'a CgroupBudget) -> Option<Starved<'a>> {
    let (thresh, available) = (budget.domain.thresh?.high.0, budget.domain.available?.high.0);
    let is_fair = thresh as f64 >= FAIR_FRACTION * available as f64;
    if is_fair || budget.domain.binding.as_ref().is_some_and(|binding| binding.global_is_less) {
        return None;
    }
    let (folio, fs_type) = readahead_folio(window, budget.cgroup);
    let needed = (FOLIOS_NEEDED * folio).max(LEAST_NEEDED);
    let peak = window.cgroups.get(&budget.cgroup).and_then(|span| cgroup::dirty_and_writeback(&span.max));
    (thresh < needed).then_some(Starved { budget, thresh, needed, folio, fs_type, peak })
}

/// The largest folio that readahead makes on the filesystems a cgroup writes to, because a store through
/// a mapping dirties it whole, and which filesystem that is; of all writable filesystems where it was not
/// seen to write to a device.
fn readahead_folio(window: &Window, id: crate::id::EntityId) -> (u64, &str) {
    let kernel = window.facts.as_ref().and_then(|facts| facts.kernel);
    let written = cgroup::devices_written(window, id);
    let mounts = match written.iter().flat_map(Device::mounts).collect::<Vec<_>>() {
        none if none.is_empty() => cgroup::writable_mounts(window),
        some => some,
    };
    let page_size = dirty::page_size(window);
    let folio = |mount: &&crate::facts::Mount| {
        let device = device::of_mount(window, mount);
        let read_ahead = device.and_then(|device| device.bdi()).and_then(|bdi| bdi.last.read_ahead);
        let folio = largest_folio(&mount.fs_type, kernel, read_ahead, page_size);
        folio.map_or(page_size, |folio| folio.by_readahead.0)
    };
    let largest = mounts.iter().map(|mount| (folio(mount), mount.fs_type.as_str())).max();
    largest.unwrap_or((page_size, "unknown"))
}

fn activity<'w, 'a>(
    window: &Window,
    starved: &[Starved<'_>],
    occupied: Option<&BTreeMap<crate::id::EntityId, Vec<&'w Writer<'a>>>>,
    period: Period,
) -> Activity<'w, 'a> {
    let mut activity = Activity::default();
    for process in starved.iter().filter_map(|starved| occupied?.get(&starved.budget.cgroup)).flatten() {
        activity.dirtied = activity.dirtied.saturating_add(process.dirtied_bytes.unwrap_or(0));
        activity.application = activity.application.saturating_add(process.application_bytes.unwrap_or(0));
        activity.faults = activity.faults.saturating_add(process.minor_faults.unwrap_or(0));
        activity.writers.push(process);
    }
    activity.writers.sort_by_key(|writer| (std::cmp::Reverse(writer.dirtied_bytes), writer.pid));
    let seconds = window.seconds();
    activity.rate = (period == Period::Window && seconds > 0.0).then(|| activity.dirtied as f64 / seconds);
    activity
}

/// How tasks of starved cgroups fare, and whether a disk could be the reason.
struct Waiting<'a> {
    /// Cgroups that were over their threshold.
    over: u64,
    /// The largest share of the window in which a task of one of them waited for I/O.
    pressure: Option<f64>,
    /// The busiest disk.
    busiest: Option<(f64, &'a Name)>,
}

impl Waiting<'_> {
    /// Over the threshold and asleep, and no disk has enough to do for that.
    fn is_throttling(&self) -> bool {
        let disks_idle = self.busiest.is_some_and(|(utilisation, _)| utilisation < SATURATED);
        self.over > 0 && disks_idle && self.pressure.is_some_and(|share| share >= HURTS_PRESSURE)
    }
}

fn waiting<'a>(window: &'a Window, starved: &[Starved<'_>]) -> Waiting<'a> {
    let is_over = |starved: &&Starved<'_>| starved.peak.is_some_and(|peak| peak > starved.thresh);
    let pressure = |starved: &Starved<'_>| cgroup::io_pressure_some(window.cgroups.get(&starved.budget.cgroup)?);
    let disks = device::disks(window);
    let busy = disks.iter().filter_map(|disk| Some((disk.utilisation()?, disk.name)));
    Waiting {
        over: starved.iter().filter(is_over).count() as u64,
        pressure: starved.iter().filter_map(pressure).max_by(f64::total_cmp),
        busiest: busy.max_by(|one, other| one.0.total_cmp(&other.0)),
    }
}

fn finding(
    window: &Window,
    budgets: &Budgets,
    starved: &[Starved<'_>],
    worst: &Starved<'_>,
    activity: &Activity<'_, '_>,
) -> Finding {
    let writes = activity.rate.is_some_and(|rate| rate > 0.0) || starved.iter().any(|one| one.peak > Some(0));
    let waiting = waiting(window, starved);
    let throttled = waiting.is_throttling();
    let severity = match (activity.is_amplified() || throttled, writes) {
        (true, _) => Severity::Critical,
        (false, true) => Severity::Warning,
        (false, false) => Severity::Info,
    };
    let setting = setting_shown(worst);
    let effect = match (activity.is_amplified(), throttled, writes) {
        (true, _, _) => format!(
            "folios are cleaned as soon as they are dirtied, so stores dirty {} again and again",
            human::bytes_per_second(activity.rate.unwrap_or(0.0))
        ),
        (false, true, _) => "their writers are put to sleep while the disks are idle".to_owned(),
        (false, false, true) => "their writers will be slowed as soon as they write more".to_owned(),
        (false, false, false) => "nothing writes there now".to_owned(),
    };
    let summary = format!(
        "{setting} leaves {} as little as {} of dirty memory each: {effect}.",
        human::plural(starved.len() as u64, "cgroup", "cgroups"),
        human::bytes(worst.thresh as f64),
    );
    let (plan, why, trade_off) = remedy(window, starved, worst);
    Finding {
        rule: RULE.name,
        severity,
        summary,
        evidence: evidence(window, budgets, starved, worst, activity, &waiting),
        cause: format!("{} {why}", cause(worst, activity, &victims(activity))),
        plan,
        trade_off,
    }
}

fn setting_shown(worst: &Starved<'_>) -> String {
    match worst.budget.domain.binding.as_ref().map(|binding| binding.setting) {
        Some(Setting::Bytes { bytes, .. }) => format!("vm.dirty_bytes = {}", human::bytes(bytes.0 as f64)),
        Some(Setting::Ratio { percent }) => format!("vm.dirty_ratio = {percent} %"),
        None => "The dirty setting".to_owned(),
    }
}

fn evidence(
    window: &Window,
    budgets: &Budgets,
    starved: &[Starved<'_>],
    worst: &Starved<'_>,
    activity: &Activity<'_, '_>,
    waiting: &Waiting<'_>,
) -> Vec<Evidence> {
    let path = cgroup::label(window, worst.budget.cgroup);
    let domain = &worst.budget.domain;
    let mut rows = vec![
        Evidence::count("Cgroups with too small a budget", starved.len() as u64, "domain_dirty_limits()"),
        Evidence::bytes(format!("Hard threshold of {path}"), worst.thresh, "domain_dirty_limits()")
            .against(worst.needed as f64),
        Evidence::bytes(format!("Folio of its filesystem ({})", worst.fs_type), worst.folio, "readahead window"),
    ];
    rows.extend(domain.available.map(|available| {
        Evidence::bytes(
            "Its dirtyable memory",
            available.high.0,
            "mdtc_calc_avail(): file + min(headroom, other clean)",
        )
    }));
    if let Some(Setting::Bytes { units: Some((low, high)), .. }) = domain.binding.as_ref().map(|b| b.setting) {
        let units = if low == high {
            format!("{high}/{}", budgets.page_size)
        } else {
            format!("{low} to {high}/{}", budgets.page_size)
        };
        rows.push(Evidence::text("Part of it that may be dirty", units, "⌈dirty_bytes ÷ dirtyable pages⌉"));
    }
    rows.push(Evidence::count("Of them over their threshold", waiting.over, "memory.stat file_dirty + file_writeback"));
    rows.extend(starved.iter().filter_map(|one| Some((one.peak?, one))).max_by_key(|(peak, _)| *peak).map(
        |(peak, one)| {
            Evidence::bytes(
                format!("Most dirty, {}", cgroup::label(window, one.budget.cgroup)),
                peak,
                "memory.stat file_dirty + file_writeback",
            )
            .against(one.thresh as f64)
        },
    ));
    if let Some(rate) = activity.rate.filter(|rate| *rate > 0.0) {
        rows.push(Evidence::rate("Dirtied by their processes", rate, "/proc/PID/io write_bytes").against(HURTS_RATE));
        rows.push(
            Evidence::bytes("Dirtied per minor fault", activity.per_fault() as u64, "write_bytes ÷ minflt")
                .against(FOLIO_PER_FAULT),
        );
        let most = activity.dirtied as f64 / REWRITES;
        rows.push(
            Evidence::bytes("They handed to write calls", activity.application, "/proc/PID/io wchar")
                .against(most.round()),
        );
        rows.push(Evidence::bytes("and dirtied", activity.dirtied, "/proc/PID/io write_bytes"));
    }
    rows.extend(activity.writers.first().and_then(|first| {
        Some(Evidence::bytes(
            format!("Most, {} dirtied", first.label()),
            first.dirtied_bytes?,
            "/proc/PID/io write_bytes",
        ))
    }));
    rows.extend(waiting.pressure.map(|share| {
        Evidence::share("Time with a task waiting, worst of them", share, "io.pressure some").against(HURTS_PRESSURE)
    }));
    rows.extend(waiting.busiest.map(|(utilisation, name)| {
        Evidence::share(format!("Busiest disk, {name}"), utilisation, "/proc/diskstats io_time").against(SATURATED)
    }));
    rows
}

/// Who else lives in these cgroups: not those that dirty most of it.
fn victims(activity: &Activity<'_, '_>) -> String {
    let is_victim = |writer: &&&Writer<'_>| {
        !writer.kthread
            && writer.dirtied_bytes.unwrap_or(0) < activity.dirtied / 100 / activity.writers.len().max(1) as u64
    };
    let mut names: Vec<String> =
        activity.writers.iter().filter(is_victim).map(|writer| writer.comm.to_string()).collect();
    names.sort();
    names.dedup();
    names.truncate(4);
    names.join(", ")
}

fn cause(worst: &Starved<'_>, activity: &Activity<'_, '_>, victims: &str) -> String {
    let mut cause = format!(
        "Budget: a cgroup may have dirty the fraction of its own memory that the setting is of the machine's, {} of {}. ",
        human::percent(
            worst.thresh as f64 / worst.budget.domain.available.map_or(1, |available| available.high.0.max(1)) as f64
        ),
        human::bytes(worst.budget.domain.available.map_or(0, |available| available.high.0) as f64),
    );
    if activity.is_amplified() {
        cause.push_str(&format!(
            "Amplification: a store to a mapped page that was cleaned dirties its whole folio, {} on {}; with no room to \
             keep folios dirty, each is written and dirtied again by the next store. ",
            human::bytes(worst.folio as f64),
            worst.fs_type
        ));
    } else if activity.rate.is_some() {
        cause.push_str("Amplification: not seen in this window. ");
    }
    if !victims.is_empty() {
        cause.push_str(&format!("In the same cgroups and slowed with them: {victims}. "));
    }
    cause.trim_end().to_owned()
}

fn remedy(window: &Window, starved: &[Starved<'_>], worst: &Starved<'_>) -> (Vec<crate::report::Step>, String, String) {
    let speed = device::drains(window).first().and_then(Device::write_bandwidth);
    let available =
        starved.iter().filter_map(|one| one.budget.domain.available.map(|available| available.high.0)).min();
    let needs = threshold::Needs {
        smallest: available
            .map(|available_bytes| threshold::Absorption { available_bytes, wanted_bytes: 2 * worst.needed.max(1) }),
        ..threshold::Needs::of(window, speed)
    };
    match threshold::choose(&needs) {
        Some(advice) => (sysctls(window, &advice.pair.changes()), advice.why, advice.trade_off),
        None => (
            sysctls(window, &[("vm.dirty_background_ratio", 5), ("vm.dirty_ratio", 10)]),
            "Ratios of 10 and 5 percent give each cgroup that part of its own memory.".to_owned(),
            format!(
                "Up to {} may be dirty on the whole machine: fsync, sync and unmounting wait for it.",
                human::bytes(dirty::dirtyable_roughly(window).unwrap_or(Bytes(0)).0 as f64 / 10.0)
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::check_rule;
    use crate::fixture::incidents::*;
    use crate::fixture::{Fixture, mib};
    use crate::gap::Cause;

    fn found(fixture: &Fixture) -> Finding {
        match check(&fixture.window()) {
            Verdict::Found(mut findings) => findings.remove(0),
            other => panic!("{other:?}"),
        }
    }

    fn commands(finding: &Finding) -> Vec<&str> {
        finding.plan.iter().map(|step| step.command.as_str()).take(2).collect()
    }

    #[test]
    fn the_measured_budgets_are_critical_and_get_the_measured_cure() {
        check_rule(&RULE, &starved_budget(), "critical: vm.dirty_bytes = 100 MiB leaves 8 cgroups as little as 1.7");
        let finding = found(&starved_budget());
        assert!(finding.cause.contains("dirties its whole folio, 128 KiB on xfs"), "{}", finding.cause);
        assert_eq!(commands(&finding), ["sysctl -w vm.dirty_background_ratio=5", "sysctl -w vm.dirty_ratio=10"]);
        check_rule(&RULE, &starved_budget_6_1(), "critical:");
        check_rule(&RULE, &starved_budget_cured(), "clear:");
    }

    #[test]
    fn the_published_host_gets_the_published_cure_and_its_victims_are_named() {
        check_rule(&RULE, &starved_budget_published(), "critical: vm.dirty_bytes = 100 MiB leaves 240 cgroups");
        let finding = found(&starved_budget_published());
        assert!(finding.cause.contains("slowed with them: mariadbd, redis-server."), "{}", finding.cause);
        assert_eq!(commands(&finding), ["sysctl -w vm.dirty_background_ratio=5", "sysctl -w vm.dirty_ratio=10"]);
        check_rule(&RULE, &starved_budget_published_cured(), "clear:");
    }

    #[test]
    fn pages_need_less_room_than_folios_and_version_1_divides_nothing() {
        check_rule(&RULE, &small_budget_of_pages(), "clear:");
        check_rule(&RULE, &undivided_budget(), "clear: no per-cgroup budget exists here");
    }

    #[test]
    fn cgroups_without_limits_are_not_starved_by_bytes() {
        let window = Fixture::healthy().thresholds((0, 100 << 20, 0, 50 << 20), 25_600, 12_800);
        check_rule(&RULE, &window, "clear: ");
    }

    #[test]
    fn a_cgroup_small_by_its_own_limit_is_no_finding() {
        let small = starved_budget_cured()
            .limits("/bench.slice/writer-0.scope", |_, row| row.memory_max = Some(crate::units::Limit(mib(6.0))));
        check_rule(&RULE, &small, "clear:");
    }

    #[test]
    fn throttled_writers_on_idle_disks_are_critical_without_amplification() {
        let calls = (0..8).fold(starved_budget(), |fixture, writer| {
            let path = format!("/bench.slice/writer-{writer}.scope");
            fixture.process("mapwriter", 2000 + writer, &path, |t, row| {
                row.wchar = crate::fixture::grows(t, 0, 1e6);
                row.write_bytes = crate::fixture::grows(t, 0, 1e6);
            })
        });
        let idle = calls.disk("sdb", |t, row| row.io_time = Some(crate::fixture::secs(600.0 + 0.1 * t)));
        check_rule(&RULE, &idle, "critical: vm.dirty_bytes = 100 MiB leaves 8 cgroups as little as");
        assert!(found(&idle).summary.contains("put to sleep while the disks are idle"), "{}", found(&idle).summary);
    }

    #[test]
    fn one_look_warns_and_does_not_judge() {
        check_rule(&RULE, &starved_budget().one_look(), "warning: vm.dirty_bytes = 100 MiB leaves 8 cgroups");
    }

    #[test]
    fn without_its_inputs_it_says_so() {
        let denied = || Cause::PermissionDenied { need: "root".to_owned() };
        let no_settings = starved_budget().without(Source::SysctlVm, denied());
        check_rule(&RULE, &no_settings, "not checked: /proc/sys/vm/NAME");
        check_rule(&RULE, &Fixture::healthy().facts(|facts| facts.cgroups = Default::default()), "clear:");
    }
}
