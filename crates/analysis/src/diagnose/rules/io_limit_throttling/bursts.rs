// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tasks outside a limited cgroup that wait behind what its limit lets go at once: a limit of bytes holds a large bio back for
//! seconds, and then the whole bio goes to the disk.

use super::RULE;
use crate::diagnose::derived::Derived;
use crate::diagnose::device::{self, Device};
use crate::diagnose::dirty;
use crate::diagnose::released::{self, Released};
use crate::diagnose::waiting::{self, Waiter};
use crate::report::{Brief, Evidence, Finding, Severity};
use floodline_record::human;
use floodline_record::id::EntityId;

/// Length of a burst that tasks notice, seconds.
const NOTICED_S: f64 = 1.0;
/// Part of a burst with a task waiting from which it was felt.
const FELT_PRESSURE: f64 = 0.5;

/// The findings, each with the cgroups whose limits let the bursts go.
pub(super) fn findings(derived: &Derived<'_>) -> Vec<(Vec<EntityId>, Finding)> {
    let of = |released: &Released| Some((released.cgroups.clone(), finding(derived, released)?));
    derived.released().iter().filter_map(of).collect()
}

/// Waits of other tasks behind the bursts.
struct Felt {
    severity: Severity,
    /// Other tasks with their waits in the bursts; `None` where waits are not known.
    others: Option<Vec<Waiter>>,
    /// The part of the bursts with a task waiting.
    pressure: Option<f64>,
}

/// Judges the waits behind the bursts; `None` where no other task waited.
fn felt(derived: &Derived<'_>, drain: &Device<'_>, released: &Released) -> Option<Felt> {
    let is_own = |waiter: &Waiter| waiter.cgroup.is_some_and(|cgroup| released.holds(derived, cgroup));
    let all = waiting::others_on(derived, drain, is_own);
    let traced = released::waited(derived, released);
    let in_bursts = |waiter: &Waiter| match waiter.longest_s {
        // A trace has each wait of 100 ms and more.
        Some(_) => {
            let (seconds, longest) = traced.get(&waiter.pid).copied().unwrap_or_default();
            Waiter { seconds: Some(seconds), longest_s: Some(longest), ..waiter.clone() }
        }
        None => waiter.at_most(released.seconds()),
    };
    let others: Option<Vec<Waiter>> = all.map(|all| {
        let mut others: Vec<Waiter> = all.iter().map(in_bursts).collect();
        others.retain(|waiter| waiter.seconds.is_none_or(|seconds| seconds > 0.0));
        others.sort_by(|one, other| other.seconds.unwrap_or(0.0).total_cmp(&one.seconds.unwrap_or(0.0)));
        others
    });
    let pressed = |stretch: &released::Stretch| {
        Some(dirty::io_pressure_between(derived.window, stretch.from, stretch.to)? * stretch.seconds)
    };
    let pressed: Option<f64> = released.stretches.iter().map(pressed).sum();
    let pressure = pressed.map(|pressed| pressed / released.seconds());
    let is_noticed = released.stretches.iter().any(|stretch| stretch.seconds >= NOTICED_S);
    let severity = match &others {
        Some(others) if others.is_empty() => return None,
        Some(others) if waiting::is_harm(derived, others) => Severity::Critical,
        Some(others) if waiting::is_shared_harm(derived, others) => Severity::Warning,
        Some(others) if others.iter().any(|waiter| waiter.seconds.is_some()) => Severity::Info,
        _ if is_noticed && pressure.is_some_and(|share| share >= FELT_PRESSURE) => Severity::Warning,
        _ => Severity::Info,
    };
    Some(Felt { severity, others, pressure })
}

fn finding(derived: &Derived<'_>, released: &Released) -> Option<Finding> {
    let drain = derived.drains().iter().find(|drain| drain.id == released.drain)?;
    let felt = felt(derived, drain, released)?;
    let most = released.stretches.iter().map(|stretch| stretch.bytes).fold(0.0, f64::max);
    let longest = released.stretches.iter().map(|stretch| stretch.seconds).fold(0.0, f64::max);
    let first = released.cgroups.first().map(|cgroup| derived.label(*cgroup)).unwrap_or_default();
    let who = match released.cgroups.len() {
        0 | 1 => first,
        more => format!("{first} and {} more", more - 1),
    };
    let limited = device::by_dev(derived.window, released.limited).map_or(drain.name, |device| device.name);
    let waiter = felt.others.as_ref().and_then(|others| Some((others.first()?.label(), others.first()?.waited()?)));
    let wait = match waiter {
        Some((waiter, waited)) => format!("{waiter} waited {waited} behind it"),
        None => "Other tasks may have waited behind it".to_owned(),
    };
    let summary = format!(
        "The byte limit of {who} on {limited} holds writes back, and then lets up to {} go at once. {wait}.",
        human::bytes(most),
    );
    let mut evidence = vec![
        Evidence::seconds("Bursts of held writes", released.seconds(), "/proc/diskstats io_time, nr_writeback"),
        Evidence::bytes("Written in the largest", most as u64, "/proc/diskstats written"),
        Evidence::seconds("Length of the longest", longest, "/proc/diskstats io_time").against(NOTICED_S),
    ];
    evidence.extend(felt.pressure.map(|share| {
        Evidence::share("Time in them with a task waiting", share, "/proc/pressure/io some").against(FELT_PRESSURE)
    }));
    evidence.extend(felt.others.iter().flatten().take(3).flat_map(Waiter::evidence));
    let helps = "Bound the cgroup's unwritten data with memory.high. Less data then waits for the limit, and less goes to the disk at \
                 once. Or ask the owner of the limit whether io.weight or io.latency can divide the disk instead. No writeback \
                 setting changes how a limit of bytes counts."
        .to_owned();
    let bottoms = drain.bottoms();
    Some(Finding {
        rule: RULE.name,
        severity: felt.severity,
        summary,
        evidence,
        cause: "A limit of bytes holds a whole bio back until it allows all of its bytes, and a bio of writeback may have \
                megabytes. Then all of it goes to the disk at once, however low the limit is. The limit holds on average, and \
                other tasks wait behind each burst. The pages were under writeback long before: the flusher is not the reason."
            .to_owned(),
        brief: Brief {
            because: format!("The limit of {who} lets whole bios go at once. The disk is busy until they are written."),
            who,
            expect: helps.clone(),
            costs: String::new(),
        },
        devices: bottoms.iter().chain([drain]).map(|one| one.name.to_string()).collect(),
        waited_s: felt.others.as_ref().and_then(|others| others.first()?.seconds),
        trade_off: helps,
        ..Finding::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::check_rule;
    use crate::diagnose::released::tests::box_at_its_limit;
    use floodline_testkit::{Fixture, secs};

    fn with_waits(seconds: f64) -> Fixture {
        let waited = move |t: f64| secs(seconds / 2.0 * (t - 16.0).clamp(0.0, 2.0));
        box_at_its_limit(false)
            .process("ledger", 810, "/shop", move |t, row| row.blkio_delay = Some(waited(t)))
            .process("restore", 811, "/box", |t, row| row.blkio_delay = Some(secs(0.3 * t)))
    }

    #[test]
    fn who_waits_behind_what_a_limit_lets_go_is_told() {
        let of = |severity: &str, waited: &str| {
            format!(
                "{severity}: The byte limit of /box on sda holds writes back, and then lets up to 16.0 MiB go at once. ledger[810] \
                 waited at least {waited} behind it."
            )
        };
        check_rule(&RULE, &with_waits(1.9).seconds(37), &of("critical", "1.90 s"));
        check_rule(&RULE, &with_waits(1.2), &of("info", "1.20 s"));
    }

    #[test]
    fn bursts_for_which_no_other_task_waits_are_told_as_the_limit_alone() {
        // Its own program waits for the limit, as was meant.
        check_rule(&RULE, &with_waits(0.0), "info: Cgroup /box is held to 2.86 MiB/s of writes by its own limit");
    }
}
