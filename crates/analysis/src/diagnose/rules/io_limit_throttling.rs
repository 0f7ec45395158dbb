// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rule `io-limit-throttling`: a cgroup reaches its own I/O limit (`io.max`, or `blkio.throttle` of version 1) and its
//! tasks wait for it, while the disk has room. Does not cover limits that do not hold (`cgroup-writeback-missing`).
#![doc = include_str!("io_limit_throttling.md")]

mod brief;
mod bursts;

use crate::diagnose::derived::Derived;
use crate::diagnose::device::{self, Device, Interval};
use crate::diagnose::waiting::{self, Waiter};
use crate::diagnose::{Rule, Verdict, cgroup, missing};
use crate::report::{Brief, Evidence, Finding, Severity};
use floodline_record::gap::{Cause, Gap, Source};
use floodline_record::human;
use floodline_record::id::{Entity, EntityId, Hierarchy};
use floodline_record::name::Name;
use floodline_record::programs::DATABASES;
use floodline_record::sample::{CgroupIoRow, ProcessRow};
use floodline_record::units::{Bytes, Count, Limit, Nanos};
use floodline_record::window::{IoLimit, Span, UsedUp, done_under, used_up};

/// The rule and its manual page.
pub const RULE: Rule = Rule {
    name: "io-limit-throttling",
    summary: "A cgroup is at its own I/O limit, and its tasks wait although the disk has room",
    manual: include_str!("io_limit_throttling.md"),
    explains: &["fsync-behind-writeback", "dirty-cliff", "dirty-data-at-risk"],
    check,
};

/// Part of a limit in use from which the limit is the bottleneck.
const AT_LIMIT: f64 = 0.8;
/// Part of a limit in use from which it is the bottleneck where the disk does not explain the waiting: bursts reach the
/// limit and pauses between them do not.
const NEAR_LIMIT: f64 = 0.5;
/// Time in bursts that use up a limit, as a part of the time with waiting tasks, from which the limit is the cause of the waits.
const MOSTLY: f64 = 0.5;
/// Part of the time with a task of the cgroup waiting from which it hurts.
const HURTS: f64 = 0.1;
/// Utilisation of the disk up to which it has room.
const ROOM: f64 = 0.9;
/// Part of the window for which a limit that changed must have been in force for its waits to count as its own.
const MOST_OF_IT: f64 = 0.5;
/// Mean size of a request from which a cgroup reads or writes in bulk, as a scan, a copy or a load does, bytes: three quarters of
/// the default readahead. A task that reads for a caller reads less at a time.
const BULK: u64 = 96 << 10;
/// Part of what the largest user of a limit reads or writes, as a divisor, from which another one is like it.
const ALIKE: u64 = 4;

/// A limit that is reached.
struct AtLimit<'a> {
    /// The cgroup on this device.
    id: EntityId,
    cgroup: EntityId,
    device: Device<'a>,
    what: &'static str,
    is_write: bool,
    limit: u64,
    used: f64,
    is_bytes: bool,
    /// Whether it holds bulk reads, or bulk writes that pile up and that no task waits for.
    is_bulk: bool,
    hierarchy: Hierarchy,
    /// Whether the limit was set, raised or lowered within the window: `limit` is the lowest of it, and `used` is what was done
    /// while that was in force.
    has_changed: bool,
    /// Whether it was in force for a small part of the window. How much of the waits it made is then not known.
    is_brief: bool,
    /// Whether it was raised or lifted before the last sample. How much of the waits it made is then not known.
    is_past: bool,
}

fn check(derived: &Derived<'_>) -> Verdict {
    if derived.window.cgroup_io.is_empty() {
        return match unread(derived).filter(|_| derived.window.facts.is_some()) {
            Some(gap) => Verdict::NotChecked(vec![gap]),
            None if derived.window.facts.is_none() => derived.not_checked(Source::IoStat, "io.max"),
            None => Verdict::Clear("no cgroup has a limit of I/O, or any I/O of its own".to_owned()),
        };
    }
    if !derived.has_rates {
        return Verdict::NotChecked(vec![missing::needs_time(Source::IoStat, "io.stat")]);
    }
    let with_limit =
        derived.window.cgroup_io.values().filter(|span| limits_of(span).iter().any(|(limit, ..)| limit.is_some()));
    let count = with_limit.count() as u64;
    if count == 0 {
        if let Some(gap) = unread(derived) {
            return Verdict::NotChecked(vec![gap]);
        }
        return Verdict::Clear("no cgroup has a limit of I/O".to_owned());
    }
    let limits_reached = at_limit(derived);
    // A trace of syncs and pauses has no reads.
    let is_of_reads = limits_reached.iter().any(|at| !at.is_write);
    let readers = if is_of_reads { waiting::readers(derived.window) } else { None };
    let waiters = |at: &AtLimit<'_>| if at.is_write { derived.waiters() } else { readers.as_deref() };
    let of_bursts = bursts::findings(derived);
    let is_named = |at: &&AtLimit<'_>| at.is_write && of_bursts.iter().any(|(cgroups, _)| cgroups.contains(&at.cgroup));
    let (named, others): (Vec<_>, Vec<_>) = limits_reached.iter().partition(is_named);
    // One limit may hold its own tasks back and let bursts go at others: the harm is told.
    let mut found: Vec<Finding> = others.into_iter().filter_map(|at| finding(derived, at, waiters(at))).collect();
    let own = named.into_iter().filter_map(|at| finding(derived, at, waiters(at)));
    let loudest = of_bursts.iter().map(|(_, burst)| burst.severity).max();
    found.extend(own.filter(|own| loudest.is_none_or(|loudest| own.severity > loudest)));
    found.extend(of_bursts.into_iter().map(|(_, burst)| burst));
    if found.is_empty() && is_unknown(derived) {
        let what = "the limit changed, and its lowest value was read only once";
        let need = Cause::TooShort { need: "--for 1m".into() };
        return Verdict::NotChecked(vec![Gap::detailed(Source::IoLimits, need, what)]);
    }
    if found.is_empty() {
        let limited = human::plural(count, "cgroup has a limit of I/O", "cgroups have limits of I/O");
        let parts = derived.window.cgroup_io.values().flat_map(|span| {
            let part = |(limit, what, ..): (Option<u64>, &str, bool, bool)| Some(used(span, what)? / limit? as f64);
            limits(&span.last).into_iter().filter_map(part).collect::<Vec<f64>>()
        });
        let most = parts.fold(0.0, f64::max);
        return Verdict::Clear(format!("{limited}; the one used most is used to {}", human::percent(most)));
    }
    Verdict::Found(found)
}

/// Whether a cgroup had a limit for such a short time that it is not known what was done under it, and did enough for its
/// tasks to have waited for that.
fn is_unknown(derived: &Derived<'_>) -> bool {
    derived.window.cgroup_io.iter().any(|(id, span)| {
        let does_much =
            |limit: u64, what: &str| used(span, what).is_some_and(|used| used >= HURTS * AT_LIMIT * limit as f64);
        let of =
            |limit: u64, what: &str| does_much(limit, what) && used_under(derived, *id, span, (what, limit)).is_none();
        limits_of(span).into_iter().any(|(limit, what, ..)| limit.is_some_and(|limit| of(limit, what)))
    })
}

/// The gap that hides limits of I/O: a whole file of them that was not read.
fn unread(derived: &Derived<'_>) -> Option<Gap> {
    let of = |source| derived.window.gaps_of(source).find(|gap| gap.entity.is_none() && gap.cause != Cause::NotPlanned);
    [Source::IoStat, Source::IoLimits, Source::BlkioLimits].into_iter().find_map(of).cloned()
}

/// The limits of a row with their names, and whether each is for writes and for bytes.
fn limits(row: &CgroupIoRow) -> [(Option<u64>, &'static str, bool, bool); 4] {
    let set = |limit: Option<Limit>| limit.filter(|limit| *limit != Limit::MAX).map(|limit| limit.0);
    [
        (set(row.wbps_max), "wbps", true, true),
        (set(row.wiops_max), "wiops", true, false),
        (set(row.rbps_max), "rbps", false, true),
        (set(row.riops_max), "riops", false, false),
    ]
}

/// The lowest limits of a cgroup on a device: one that was raised or lifted later held its tasks until then.
fn limits_of(span: &Span<CgroupIoRow>) -> [(Option<u64>, &'static str, bool, bool); 4] {
    limits(&span.min)
}

/// Whether the limit had another value, or did not exist, in an earlier sample.
fn has_changed(span: &Span<CgroupIoRow>, name: &str) -> bool {
    let of = |row: &CgroupIoRow| limits(row).into_iter().find(|(_, what, ..)| *what == name).and_then(|one| one.0);
    // The largest reading includes "no limit", the smallest one that was lower.
    let last = of(&span.last);
    of(&span.first) != last || of(&span.max) != last || of(&span.min) != last
}

/// Rate of a cgroup in the unit that a limit counts, over the whole window, or while a limit that changed had its lowest
/// value, and for how many seconds; `None` where that is not known.
fn used_under(
    derived: &Derived<'_>,
    id: EntityId,
    span: &Span<CgroupIoRow>,
    (name, limit): (&str, u64),
) -> Option<(f64, f64)> {
    if !has_changed(span, name) {
        return Some((used(span, name)?, span.seconds()));
    }
    done_under(derived.window.limit_runs.get(&id)?, which(name), Limit(limit))
}

/// The limit of this name.
fn which(name: &str) -> IoLimit {
    match name {
        "wbps" => IoLimit::WriteBytes,
        "wiops" => IoLimit::Writes,
        "rbps" => IoLimit::ReadBytes,
        _ => IoLimit::Reads,
    }
}

/// Rate of a cgroup in the unit that a limit counts.
fn used(span: &Span<CgroupIoRow>, name: &str) -> Option<f64> {
    let growth = match name {
        "wbps" => span.growth.wbytes?.0,
        "wiops" => span.growth.wios?.0,
        "rbps" => span.growth.rbytes?.0,
        _ => span.growth.rios?.0,
    };
    (span.seconds() > 0.0).then(|| growth as f64 / span.seconds())
}

/// Whether a cgroup reads or writes in bulk on a device: its mean request is large. Of writes, also whether they pile up to where
/// the kernel pauses the writers: a task that syncs waits for its data before they do.
fn is_in_bulk(derived: &Derived<'_>, cgroup: EntityId, span: &Span<CgroupIoRow>, is_write: bool) -> bool {
    let (bytes, requests) = match is_write {
        true => (span.growth.wbytes, span.growth.wios),
        false => (span.growth.rbytes, span.growth.rios),
    };
    let mean = |(bytes, requests): (Bytes, Count)| bytes.0.checked_div(requests.0);
    bytes.zip(requests).and_then(mean).is_some_and(|mean| mean >= BULK) && (!is_write || piles_up(derived, cgroup))
}

/// Whether the unwritten data of a cgroup reached its own background threshold.
fn piles_up(derived: &Derived<'_>, cgroup: EntityId) -> bool {
    let most = derived.window.unwritten_max.get(&cgroup).copied().unwrap_or(0);
    let budget = derived.budgets().cgroups.iter().find(|budget| budget.cgroup == cgroup);
    let background = budget.and_then(|budget| Some(budget.domain.bg_thresh?.low.0));
    background.is_some_and(|background| most > 0 && most >= background)
}

fn at_limit<'a>(derived: &Derived<'a>) -> Vec<AtLimit<'a>> {
    let mut found = Vec::new();
    for (id, span) in &derived.window.cgroup_io {
        let Some(Entity::CgroupIo { cgroup, dev }) = derived.window.entities.get(id) else { continue };
        let Some(device) = device::by_dev(derived.window, *dev) else { continue };
        let hierarchy = match derived.window.entities.get(cgroup) {
            Some(Entity::Cgroup { hierarchy, .. }) => *hierarchy,
            _ => Hierarchy::V2,
        };
        for (limit, what, is_write, is_bytes) in limits_of(span) {
            let Some(limit) = limit else { continue };
            let Some((used, seconds)) = used_under(derived, *id, span, (what, limit)) else { continue };
            // Below this no cgroup can be at its limit while its tasks wait long enough to be hurt.
            if used >= HURTS * AT_LIMIT * limit as f64 {
                let cgroup = *cgroup;
                let has_changed = has_changed(span, what);
                let is_brief = has_changed && seconds < MOST_OF_IT * derived.seconds;
                let is_past =
                    limits(&span.last).into_iter().all(|(last, name, ..)| name != what || last != Some(limit));
                let is_bulk = is_in_bulk(derived, cgroup, span, is_write);
                let at = AtLimit {
                    id: *id,
                    cgroup,
                    device,
                    what,
                    is_write,
                    limit,
                    used,
                    is_bytes,
                    is_bulk,
                    hierarchy,
                    has_changed,
                    is_brief,
                    is_past,
                };
                found.push(at);
            }
        }
    }
    found
}

/// Whether a cgroup is at a path or below it.
fn is_within(derived: &Derived<'_>, id: EntityId, above: &Name) -> bool {
    cgroup::path(derived.window, id).is_some_and(|path| cgroup::is_within(path, above))
}

/// The processes of the cgroup that use up its limit: the one with the largest part of the limited I/O. Of bulk reads or writes,
/// also those with a like amount: none of them does one thing for a caller, and the limit was set for all of them.
fn users(derived: &Derived<'_>, at: &AtLimit<'_>, inside: impl Fn(Option<EntityId>) -> bool) -> Vec<u32> {
    let of = |(id, span): (&EntityId, &Span<ProcessRow>)| match derived.window.entities.get(id) {
        Some(Entity::Process { pid, cgroup, .. }) if inside(*cgroup) => {
            let bytes = if at.is_write { span.growth.write_bytes } else { span.growth.read_bytes };
            Some((bytes?, *pid))
        }
        _ => None,
    };
    let all: Vec<(Bytes, u32)> = derived.window.processes.iter().filter_map(of).collect();
    let Some((most, largest)) = all.iter().max().copied() else { return Vec::new() };
    let is_alike = |bytes: Bytes| at.is_bulk && bytes.0 > 0 && bytes.0 >= most.0 / ALIKE;
    all.into_iter().filter(|(bytes, pid)| *pid == largest || is_alike(*bytes)).map(|(_, pid)| pid).collect()
}

impl AtLimit<'_> {
    /// An amount per second with its unit.
    fn amount(&self, value: f64) -> String {
        match self.is_bytes {
            true => human::bytes_per_second(value),
            false => format!("{} requests/s", human::number(value)),
        }
    }

    /// The file that holds the limit.
    fn file(&self) -> String {
        match (self.hierarchy, self.what) {
            (Hierarchy::V2, what) => format!("io.max {what}"),
            (_, "wbps") => "blkio.throttle.write_bps_device".to_owned(),
            (_, "wiops") => "blkio.throttle.write_iops_device".to_owned(),
            (_, "rbps") => "blkio.throttle.read_bps_device".to_owned(),
            (_, _) => "blkio.throttle.read_iops_device".to_owned(),
        }
    }
}

/// Tasks that wait at a limit while the disk has room.
struct Held {
    severity: Severity,
    /// The device, or the busiest disk below it.
    disk: Name,
    /// Part of the window in which it was busy.
    utilisation: f64,
    /// Part of the window with a task of the cgroup waiting for I/O.
    pressure: Option<f64>,
    /// Seconds in which the limit was used up while the disk had room, in bursts of two seconds and more.
    used_up_s: f64,
    /// Tasks of the cgroup that waited, without its largest user if others waited too.
    waiters: Vec<Waiter>,
}

/// Judges a limit; `None` if nothing waits for it, or if the disk has no room anyway.
fn held(derived: &Derived<'_>, at: &AtLimit<'_>, known: Option<&[Waiter]>) -> Option<Held> {
    let above = cgroup::path(derived.window, at.cgroup);
    let inside = |id: Option<EntityId>| id.zip(above).is_some_and(|(id, above)| is_within(derived, id, above));
    let waiters: Vec<Waiter> = known.unwrap_or_default().iter().filter(|w| inside(w.cgroup)).cloned().collect();
    let own = derived.window.cgroups.get(&at.cgroup).and_then(cgroup::io_pressure_some);
    // Version 1 has no pressure by cgroup. Where all tasks that waited are of this one, the machine's is theirs.
    let is_theirs = known.is_some_and(|all| !all.is_empty() && all.len() == waiters.len());
    let pressure = own.or(derived.dirty.io_pressure_some.filter(|_| is_theirs));
    // The search over all processes is made only for cgroups with waiting tasks. Delays and states are those of the first thread of a
    // process. The pressure of the cgroup counts its other threads.
    let hurts = pressure.is_some_and(|share| share >= HURTS);
    if waiters.is_empty() && !hurts {
        return None;
    }
    // Read from every sample of the disk, and hosts have hundreds of limits at which nothing waits.
    // A layer above counts the time in which a limit holds its requests back as busy, or counts no time: its disks tell.
    let busy = |disk: &Device<'_>| Some((disk.name.clone(), disk.utilisation()?));
    let busiest = at.device.bottoms().iter().filter_map(busy).max_by(|one, other| one.1.total_cmp(&other.1));
    let (disk, utilisation) = busiest.or_else(|| busy(&at.device))?;
    if utilisation >= ROOM {
        return None;
    }
    let users = users(derived, at, inside);
    let others: Vec<Waiter> = waiters.iter().filter(|waiter| !users.contains(&waiter.pid)).cloned().collect();
    // Clients of a database wait for as long as it does, whichever process uses the limit up.
    let serves = |waiter: &Waiter| DATABASES.contains(&waiter.comm.as_bytes());
    let harmed: Vec<Waiter> =
        waiters.iter().filter(|waiter| !users.contains(&waiter.pid) || serves(waiter)).cloned().collect();
    let severity = match known {
        // Tasks that use the limit up alone wait for it, as was meant.
        Some(_) if harmed.is_empty() || brief::are_brief(derived, at, &harmed) => Severity::Info,
        Some(_) if waiting::is_harm(derived, &harmed) && !at.is_past && !at.is_brief => Severity::Critical,
        _ => Severity::Warning,
    };
    let waiters = if others.is_empty() { waiters } else { others };
    let waited = waiters.iter().filter_map(|waiter| waiter.seconds).fold(0.0, f64::max) / derived.seconds;
    let waited = waited.max(pressure.unwrap_or(0.0)).min(1.0);
    let part = at.used / at.limit as f64;
    // The limit was used up in the time in which its tasks waited, and not in the rest.
    let when_waiting = AT_LIMIT * waited;
    let margin = if part >= when_waiting { 0.0 } else { HURTS };
    let is_unexplained = waited > 2.0 * utilisation + margin;
    let is_used_up = part >= AT_LIMIT;
    let is_near = part >= NEAR_LIMIT.min(when_waiting.max(HURTS));
    let is_plain = is_used_up || (is_unexplained && is_near);
    let used_up_s = if is_plain { 0.0 } else { used_up_s(derived, at) };
    let is_used_up_in_bursts = used_up_s >= (MOSTLY * waited).max(HURTS) * derived.seconds;
    (is_plain || is_used_up_in_bursts).then_some(Held { severity, disk, utilisation, pressure, used_up_s, waiters })
}

/// Seconds in which the limit was used up while no disk below it was full.
fn used_up_s(derived: &Derived<'_>, at: &AtLimit<'_>) -> f64 {
    let Some(readings) = derived.window.limited_io.get(&at.id).filter(|_| !at.has_changed) else { return 0.0 };
    let disks: Vec<Vec<Interval>> = at.device.bottoms().iter().map(Device::intervals).collect();
    let times = used_up(readings, which(at.what), Limit(at.limit), AT_LIMIT);
    let with_room = times.iter().filter(|time| !disks.is_empty() && disks.iter().all(|disk| has_room(disk, time)));
    with_room.map(|time| time.seconds).sum()
}

/// Whether a disk had room in a time. Most of that time has to be known.
fn has_room(disk: &[Interval], time: &UsedUp) -> bool {
    let first = disk.partition_point(|interval| interval.end <= time.from);
    let within = disk.iter().skip(first).take_while(|interval| interval.end <= time.to);
    let known = within.filter_map(|interval| Some((interval.utilisation?, interval.seconds)));
    let (busy_s, known_s) =
        known.fold((0.0, 0.0), |(busy_s, known_s), (share, seconds)| (busy_s + share * seconds, known_s + seconds));
    let length_s = Nanos(time.to.0.saturating_sub(time.from.0)).as_secs_f64();
    known_s >= MOSTLY * length_s && busy_s < ROOM * known_s
}

fn finding(derived: &Derived<'_>, at: &AtLimit<'_>, known: Option<&[Waiter]>) -> Option<Finding> {
    let held = held(derived, at, known)?;
    let (who, file) = (derived.label(at.cgroup), at.file());
    Some(Finding {
        rule: RULE.name,
        severity: held.severity,
        summary: summary(at, &held, &who, derived.seconds),
        evidence: evidence(at, &held, &who),
        cause: "The block layer holds requests of the cgroup back until its limit allows them. An fsync waits for all \
                that the cgroup has to write before, so a backlog of seconds is a wait of seconds. A task that holds the \
                filesystem's journal meanwhile makes tasks outside wait as well."
            .to_owned(),
        brief: Brief {
            because: match at.is_past {
                true => format!("The cgroup's own limit ({file}) held its I/O back for a time. The disk had room."),
                false => format!("The cgroup's own limit ({file}) holds its I/O back. The disk has room."),
            },
            who,
            expect: what_helps(at, &file),
            costs: String::new(),
        },
        devices: vec![at.device.name.to_string()],
        waited_s: held.pressure.map(|share| share * derived.seconds),
        held_to: (at.is_write && at.is_bytes).then_some(at.limit as f64),
        trade_off: what_helps(at, &file),
        ..Finding::default()
    })
}

/// What helps instead of a writeback setting. `memory.high` exists on version 2 only, and bounds dirty pages there.
fn what_helps(at: &AtLimit<'_>, file: &str) -> String {
    let less = match (at.is_write, at.hierarchy) {
        (false, _) => "let its programs read less, or give them memory to cache what they read again",
        (true, Hierarchy::V2) => {
            "or let its programs write less. memory.high bounds the backlog that waits for the limit. It does not shorten an fsync of data that the program has just written"
        }
        (true, _) => "or let its programs write less",
    };
    if at.is_past {
        return format!("The limit ({file}) was raised or lifted meanwhile. Look again: floodline doctor --for 1m.");
    }
    // The limit may protect other cgroups: no command raises it.
    format!(
        "Ask the owner of the limit ({file}): it may be meant to hold this cgroup. Raise it to what the cgroup needs, {less}. No \
         writeback setting raises this limit."
    )
}

fn summary(at: &AtLimit<'_>, held: &Held, who: &str, watched_s: f64) -> String {
    let waiter = held.waiters.first().and_then(|waiter| Some((waiter.label(), waiter.waited()?)));
    let wait = match (waiter, held.pressure) {
        (Some((waiter, waited)), _) => format!("{waiter} waited {waited}"),
        (None, Some(share)) => format!("its tasks waited {} of the time", human::percent(share)),
        (None, None) => "its tasks wait".to_owned(),
    };
    let (is_held, since) = match at.has_changed {
        true => ("was held for a time", ", which changed during the observation"),
        false => ("is held", ""),
    };
    format!(
        "Cgroup {who} {is_held} to {} of {} by its own limit ({} on {}{since}): {wait}, and the disk is {} busy over all {}.",
        at.amount(at.limit as f64),
        if at.is_write { "writes" } else { "reads" },
        at.what,
        at.device.name,
        human::percent(held.utilisation),
        human::seconds(watched_s),
    )
}

fn evidence(at: &AtLimit<'_>, held: &Held, who: &str) -> Vec<Evidence> {
    let row = |name: String, value: f64, source: &str| match at.is_bytes {
        true => Evidence::rate(name, value, source.to_owned()),
        false => Evidence::per_second(name, value, source.to_owned()),
    };
    let counted = match at.hierarchy {
        Hierarchy::V2 => "io.stat",
        _ => "blkio.throttle.io_service_bytes, io_serviced",
    };
    let done = format!("Done by {who} on {}", at.device.name);
    let done = match at.has_changed {
        true => row(format!("{done} under its lowest limit"), at.used, counted),
        false => row(done, at.used, counted),
    };
    let mut evidence = vec![
        done.against(at.limit as f64),
        row(format!("Its limit, {}", at.what), at.limit as f64, &at.file()),
        Evidence::share(format!("{} busy", held.disk), held.utilisation, "/proc/diskstats io_time").against(ROOM),
    ];
    // Over the whole window, bursts and pauses are far below the limit.
    let is_of_bursts = held.used_up_s > 0.0 && at.used < AT_LIMIT * at.limit as f64;
    evidence.extend(
        is_of_bursts.then(|| Evidence::seconds("Time in bursts that used up the limit", held.used_up_s, counted)),
    );
    evidence.extend(
        held.pressure
            .map(|share| Evidence::share("Time with a task of it waiting", share, "io.pressure some").against(HURTS)),
    );
    evidence.extend(held.waiters.iter().take(3).flat_map(Waiter::evidence));
    evidence
}

#[cfg(test)]
mod tests;
