// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why budgets of a machine are starved and what to change: thresholds by its memory, its cgroups and the
//! speed of its devices.

use super::activity::{Activity, Waiting};
use super::evidence;
use super::measured::Measured;
use super::starved::Starved;
use super::storm::{Reason, Storm, own_limit, was_raised};
use crate::advise::threshold;
use crate::diagnose::derived::Derived;
use crate::observer;
use crate::report::{Brief, Step};
use floodline_record::human;
use floodline_record::units::Bytes;

pub(super) fn cause(
    derived: &Derived<'_>,
    worst: &Starved<'_>,
    activity: &Activity<'_, '_>,
    measured: Option<&Measured<'_>>,
    victims: &str,
) -> String {
    let mut cause = format!(
        "Budget: the setting is a fraction of the machine's memory. A cgroup may have the same fraction of its own \
         memory dirty: {} of {}. ",
        human::percent(
            worst.thresh as f64 / worst.budget.domain.available.map_or(1, |available| available.high.0.max(1)) as f64
        ),
        human::bytes(worst.budget.domain.available.map_or(0, |available| available.high.0) as f64),
    );
    let times = measured.and_then(Measured::times);
    if activity.is_amplified() || times.is_some() {
        let amplification = match activity.called {
            Some(_) => {
                "the programs write the same pages again and again. Without room to keep them dirty, each is written to the \
                 disk before it is changed again"
                    .to_owned()
            }
            None => format!(
                "the first store to a mapped page after it was written dirties its whole folio, here {} per fault on {}. \
                 Without room to keep folios dirty, each folio is written, and the next store dirties it again",
                human::bytes(if activity.faults > 0 { activity.per_fault() } else { worst.folio as f64 }),
                worst.fs_type
            ),
        };
        cause.push_str(&format!("Amplification: {amplification}. "));
        if let Some(times) = times {
            let times = human::number(times);
            cause.push_str(&format!("Measured: each byte was dirtied {times} times on average. "));
        }
    } else if activity.rate.is_some() {
        cause.push_str("Amplification: not seen in this window. ");
    }
    if !victims.is_empty() {
        cause.push_str(&format!("Other programs in these cgroups are slowed too: {victims}. "));
    }
    if let Some(distance) = evidence::added_by_samples(derived, activity) {
        cause.push_str(&observer::sentence(distance));
    }
    cause.trim_end().to_owned()
}

/// Part of what is rewritten that a change must hold for arithmetic to show that it helps.
const HELD_MOSTLY: f64 = 0.5;
/// Factor over the smallest limit up to which another limit is about the same.
const ALIKE: f64 = 1.1;

/// The finding in few words.
pub(super) fn brief(
    derived: &Derived<'_>,
    starved: &[Starved<'_>],
    worst: &Starved<'_>,
    (activity, waiting): (&Activity<'_, '_>, &Waiting<'_>),
    trade_off: &str,
) -> Brief {
    let paused = match activity.is_amplified() || !waiting.may_wait() {
        true => "",
        false => " So the kernel makes its writers wait although the disks are idle.",
    };
    let added = match evidence::added_by_samples(derived, activity) {
        Some(_) => " Sampling by Floodline adds to the storm. With --every 2s, it adds little.",
        None => "",
    };
    // Of several with about the same limit, the one that held most, as in the evidence.
    let is_alike = |one: &&Starved<'_>| one.thresh as f64 <= ALIKE * worst.thresh as f64;
    let alike = starved.iter().filter(is_alike).count();
    let held = starved.iter().filter(is_alike).filter_map(|one| one.peak).max().or(worst.peak);
    let needs = match held.filter(|peak| *peak > worst.thresh) {
        Some(peak) if Some(peak) != worst.peak => {
            format!("; one of the {alike} with about this limit held up to {}", human::bytes(peak as f64))
        }
        Some(peak) => format!(", but its cgroup held up to {}", human::bytes(peak as f64)),
        None => format!("; the cgroup needs {}", human::bytes(worst.needed as f64)),
    };
    let names: Vec<String> = starved.iter().take(2).map(|one| one.budget.path.to_string()).collect();
    let more = match starved.len().saturating_sub(names.len()) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Brief {
        because: format!(
            "The dirty limit of a cgroup is in proportion to its memory. The smallest is {}{needs}.{paused}{added}",
            human::bytes(worst.thresh as f64)
        ),
        who: format!("{}{more}", names.join(", ")),
        expect: format!(
            "Each container gets room for the pages that it rewrites.{}",
            if waiting.may_wait() { " The waits end." } else { "" }
        ),
        costs: first_sentence(trade_off.trim_start_matches("The needs of this machine pull in opposite directions: ")),
    }
}

/// The first fact of a text, as a sentence.
fn first_sentence(text: &str) -> String {
    let end = text.find(';').or_else(|| text.find(". ")).unwrap_or(text.len());
    let first = format!("{}.", text[..end].trim_end_matches('.'));
    let mut letters = first.chars();
    letters.next().map_or_else(String::new, |letter| letter.to_uppercase().chain(letters).collect())
}

pub(super) fn remedy(
    derived: &Derived<'_>,
    starved: &[Starved<'_>],
    worst: &Starved<'_>,
) -> (Vec<Step>, String, String) {
    let speed = derived.speed();
    let available =
        starved.iter().filter_map(|one| one.budget.domain.available.map(|available| available.high.0)).min();
    let needs = threshold::Needs {
        smallest: available
            .map(|available_bytes| threshold::Absorption { available_bytes, wanted_bytes: worst.wanted }),
        ..threshold::Needs::of(derived, speed)
    };
    match threshold::choose(&needs) {
        Some(advice) => (derived.sysctls(&advice.pair.changes()), advice.why, advice.trade_off),
        None => (
            derived.sysctls(&[("vm.dirty_background_ratio", 5), ("vm.dirty_ratio", 10)]),
            "Ratios of 10 and 5 percent give each cgroup that part of its own memory.".to_owned(),
            format!(
                "Up to {} may be dirty on the whole machine: fsync, sync and unmounting wait for it.",
                human::bytes(derived.dirty.dirtyable_roughly.unwrap_or(Bytes(0)).0 as f64 / 10.0)
            ),
        ),
    }
}

/// The change for a storm.
pub(super) struct OfStorm {
    pub(super) plan: Vec<Step>,
    pub(super) why: String,
    pub(super) trade_off: String,
    /// What remains of the storm, in words; empty where the change holds all that is rewritten.
    pub(super) remains: String,
    /// Whether the change holds less than half of what is rewritten.
    pub(super) is_in_part: bool,
}

/// The change for a storm: a background threshold that holds what is rewritten, for the domain that wants the largest
/// part of its memory.
pub(super) fn of_storm(derived: &Derived<'_>, storm: &Storm<'_, '_, '_>, reason: Reason) -> OfStorm {
    let speed = derived.speed();
    let (available_bytes, wanted_bytes) = (storm.available, storm.wanted);
    let needs = threshold::Needs {
        smallest: Some(threshold::Absorption { available_bytes, wanted_bytes }),
        ..threshold::Needs::of(derived, speed)
    };
    let advice = threshold::choose(&needs);
    let has = advice.as_ref().and_then(|advice| needs.room(advice.pair)).map_or(0, |(has, _)| has);
    let all = human::bytes(storm.rewritten as f64);
    if reason == Reason::Memory || has <= storm.background {
        // The background threshold is a part of the memory, and stays the same part of more memory.
        let memory = storm.rewritten as f64 * storm.available as f64 / storm.background.max(1) as f64;
        // What cannot hold file pages now, such as a heap, needs its memory as well.
        let limit = storm.budget.and_then(|budget| own_limit(derived, budget.cgroup));
        let taken = limit.map(|limit| limit.saturating_sub(storm.available) as f64);
        let is_raised = storm.budget.is_some_and(|budget| was_raised(derived, budget.cgroup));
        let more = match (storm.budget, taken) {
            (Some(_), Some(taken)) if is_raised && storm.background > 0 => {
                format!("Their limit was raised meanwhile. Keep it at {} or more", human::bytes(taken + memory))
            }
            (Some(_), Some(taken)) if storm.background > 0 => {
                format!("Give these cgroups more memory (a limit of {} or more)", human::bytes(taken + memory))
            }
            (Some(_), _) => "Give these cgroups more memory".to_owned(),
            (None, _) => "Give the machine more memory".to_owned(),
        };
        return OfStorm {
            plan: Vec::new(),
            why: format!("No setting of vm gives it the room: up to {all} are rewritten there."),
            trade_off: format!("{more}, or let the programs rewrite less. No setting of vm cures this."),
            remains: String::new(),
            is_in_part: false,
        };
    }
    let (is_all, held) = (has >= storm.rewritten, has as f64 / storm.rewritten.max(1) as f64);
    let remains = match is_all {
        true => String::new(),
        false => format!(
            "Up to {all} are rewritten. The change holds {} of them, so up to {} of the storm may remain.",
            human::bytes(has as f64),
            human::percent(1.0 - held)
        ),
    };
    let part = match is_all {
        true => format!("The change holds all pages that are rewritten, {all} at most."),
        false => remains.clone(),
    };
    let (plan, why, trade_off) = match advice {
        Some(advice) => (derived.sysctls(&advice.pair.changes()), advice.why, advice.trade_off),
        None => (
            derived.sysctls(&[("vm.dirty_background_ratio", 5), ("vm.dirty_ratio", 10)]),
            "Ratios of 10 and 5 percent give each cgroup that part of its own memory.".to_owned(),
            String::new(),
        ),
    };
    OfStorm { plan, why: format!("{why} {part}"), trade_off, remains, is_in_part: held < HELD_MOSTLY }
}
