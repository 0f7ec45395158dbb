// SPDX-License-Identifier: MIT OR Apache-2.0
//! What let data pile up, and what helps: smaller thresholds, or a shorter age.

use super::{RULE, is_of_one};
use crate::advise::{beside, threshold};
use crate::diagnose::burst::{STALL_AWAIT_S, Trigger};
use crate::diagnose::derived::Derived;
use crate::diagnose::device::{Device, Speed};
use crate::diagnose::{throttle, writer};
use crate::report::{Brief, Evidence, Finding, Severity, Step};
use floodline_record::human;

/// An age that nothing shorter improves much, seconds.
const SHORT_AGE_S: f64 = 3.5;

/// What piled up, as far as cause and cure depend on it.
pub(super) struct Pile<'a> {
    /// The device for which dirty data piled up.
    pub(super) device: Device<'a>,
    /// Whether operations and not bytes are the device's limit.
    pub(super) by_operations: bool,
    pub(super) speed: Speed,
    /// Bytes dirtied per second for this device, the larger of the mean and the rate at which they piled up.
    pub(super) rate: f64,
    /// What the burst was for, where there was one.
    pub(super) trigger: Option<Trigger>,
    /// Whether a trace shows that.
    pub(super) is_traced: bool,
    /// Whether a part of the background threshold that no counter shows may have woken the flusher.
    pub(super) may_be_part: bool,
    /// The most that was dirty at the start of a burst, bytes; `None` where none was seen.
    pub(super) most: Option<u64>,
    /// Mean time of a write in the worst interval of the burst, seconds.
    pub(super) await_max_s: Option<f64>,
}

/// Completes a finding: why it piled up, what helps, and what that costs.
pub(super) fn finish(
    derived: &Derived<'_>,
    severity: Severity,
    summary: String,
    evidence: Vec<Evidence>,
    pile: Pile<'_>,
) -> Finding {
    let is_too_fast = !pile.by_operations && pile.rate > pile.speed.value;
    let is_of_one = is_of_one(derived, &pile.device, pile.by_operations);
    let (cause, plain) = woken_by(derived, &pile);
    let (likely, throttled) = (likely(derived, &pile), throttled(derived));
    let faster = match is_too_fast {
        true => {
            " At times, programs dirty data faster than the device writes it. During these times no setting keeps the disk from being full. \
             Smaller thresholds shorten the batch that an fsync waits behind."
        }
        false => "",
    };
    let writer = is_of_one.then(|| writer_of(derived, &pile.device));
    let (plan, trade_off, lower) = match &writer {
        Some(writer) => (Vec::new(), no_setting(writer), None),
        None => remedy(derived, pile.by_operations, pile.speed, pile.most),
    };
    let slowed = lower.filter(|_| is_too_fast).and_then(threshold::cost_of_pair);
    let syncs = lower.and_then(|pair| beside::cost_of_syncs(derived, &pile.device, Some(pile.speed), pair));
    // With the smaller thresholds the disk is full while programs write.
    let fills = syncs.is_some();
    // Without a change there is no cost.
    let earlier = (!plan.is_empty()).then(|| threshold::earlier(syncs.as_deref()).to_owned());
    let costs = slowed.into_iter().chain(syncs).chain(earlier).collect::<Vec<_>>().join(" ");
    let pauses = (is_too_fast || fills).then_some(lower.is_some());
    let mut brief = brief(plain, writer.as_deref(), pauses, pile.await_max_s, costs);
    if plan.is_empty() && writer.is_none() {
        // Without a change no burst gets shorter.
        (brief.expect, brief.costs) = (trade_off.clone(), String::new());
    }
    Finding {
        rule: RULE.name,
        severity,
        summary,
        evidence,
        cause: format!("{cause}.{likely}{throttled}{faster}"),
        brief,
        plan,
        trade_off,
        ..Finding::default()
    }
}

const OLD_ENOUGH: &str = "The kernel waits until the data are old enough. Then it writes all of them";

/// Whether the machine's dirty data reached the background threshold in a sample; `None` where one of them was not read.
pub(super) fn reached_background(derived: &Derived<'_>) -> Option<bool> {
    let (peak, background) = derived.dirty.peak.zip(derived.dirty.background_threshold)?;
    Some(peak.0 as f64 >= 0.95 * background.0 as f64)
}

/// What woke the flusher, for the evidence and for the first screen.
fn woken_by(derived: &Derived<'_>, pile: &Pile<'_>) -> (&'static str, &'static str) {
    let (trigger, is_traced) = (pile.trigger, pile.is_traced);
    match trigger {
        Some(Trigger::Asked) if is_traced => (
            "A sync, an fsync of a large file or an unmount triggered the write before the flusher had written the data",
            "A sync, an fsync of a large file or an unmount triggered the write",
        ),
        Some(Trigger::Asked) if pile.may_be_part => (
            "The dirty data of the machine reached neither the background threshold nor the expiry. Two reasons remain. A \
             sync, an fsync of a large file or an unmount triggered the write. Or the data reached the part of the \
             background threshold that this device, or a cgroup on it, has",
            "A sync or an unmount triggered the write, or a disk's or cgroup's part of the background threshold was reached",
        ),
        Some(Trigger::Asked) => (
            "The dirty data of the machine reached neither the background threshold nor the expiry: a sync, an fsync of \
             a large file or an unmount triggered the write",
            "A sync, an fsync of a large file or an unmount triggered the write",
        ),
        Some(Trigger::Part) if is_traced && has_cgroups_with_parts(derived) => (
            "Dirty data of this device, or of a cgroup on it, reached its own part of the background threshold, which is \
             more than the device writes in a second. All dirty data of the machine stayed below the whole threshold",
            "The kernel starts writing late: a disk's or cgroup's part of the background threshold is more than the disk \
             writes in a second",
        ),
        Some(Trigger::Part) => (
            "Dirty data of this device reached its own part of the background threshold, which is more than it writes in \
             a second",
            "The kernel starts writing late: this disk's part of the background threshold is more than it writes in a \
             second",
        ),
        // Another moment may have reached the threshold: the kernel's own word counts for this one.
        Some(Trigger::Age) if is_traced => (
            "The data were older than the expiry. Their age woke the flusher, which then wrote all that had expired",
            OLD_ENOUGH,
        ),
        Some(Trigger::Amount) if is_traced && reached_background(derived) == Some(false) => (
            "Dirty data of a cgroup reached the cgroup's own background threshold, which is more than this device writes \
             in a second",
            "The kernel starts writing late: a cgroup's background threshold is more than this disk writes in a second",
        ),
        _ if trigger == Some(Trigger::Amount) || reached_background(derived) == Some(true) => (
            "Dirty data reached the background threshold, which is more than this device writes in a second",
            "The kernel starts writing late: the background threshold is more than this disk writes in a second",
        ),
        Some(Trigger::Unknown) => (
            "Dirty data stayed below the background threshold and were there before the first sample. Their age, a \
             sync, an fsync of a large file or an unmount may have woken the flusher",
            "The kernel waits until the data are old enough or a sync asks for them. Then it writes all of them",
        ),
        _ => (
            "Dirty data stay below the background threshold. Their age wakes the flusher, which then writes all that \
             has expired",
            OLD_ENOUGH,
        ),
    }
}

/// Whether cgroups have dirty data of their own, and so a part of the threshold each.
pub(super) fn has_cgroups_with_parts(derived: &Derived<'_>) -> bool {
    let is_unified = derived.window.facts.as_ref().is_some_and(|facts| facts.cgroups.has_unified_writeback());
    is_unified && derived.window.unwritten_max.values().any(|most| *most > 0)
}

/// How certain the trigger is: level and age alone allow another one.
fn likely(derived: &Derived<'_>, pile: &Pile<'_>) -> &'static str {
    match pile.trigger {
        Some(_) if !pile.is_traced && derived.window.traced.contains("flusher") => {
            " Amount and age make this likely. The trace does not show what asked for most of it."
        }
        Some(Trigger::Asked) if pile.may_be_part => {
            " Only a trace shows which of them it was: floodline doctor --trace on."
        }
        Some(Trigger::Age | Trigger::Unknown) if pile.may_be_part => {
            " Amount and age make this likely. The part of the background threshold that this device, or a cgroup on it, has \
             may have been reached as well: no counter shows it here. Only a trace shows what woke the flusher: floodline \
             doctor --trace on."
        }
        Some(_) if !pile.is_traced => {
            " Amount and age make this likely. Only a trace shows what woke the flusher: floodline doctor --trace on."
        }
        _ => "",
    }
}

/// Whether writers were throttled: counted where it was traced, otherwise what the level allows.
fn throttled(derived: &Derived<'_>) -> &'static str {
    let paused = throttle::total(derived.window, None).map(|pauses| pauses.count > 0);
    match paused.or(derived.dirty.can_have_throttled) {
        Some(false) => " The machine's dirty limit paused no writer.",
        Some(true) if paused.is_some() => " Some writers were paused in dirty throttling too.",
        Some(true) => " Writers were over the freerun ceiling too and were throttled.",
        None => "",
    }
}

/// The first screen. `pauses` is `None` where programs never write faster than the disk, and otherwise whether the change
/// pauses them.
fn brief(plain: &str, writer: Option<&str>, pauses: Option<bool>, await_max_s: Option<f64>, costs: String) -> Brief {
    let expect = match (writer, pauses, await_max_s) {
        (Some(writer), ..) => no_setting(writer),
        (None, Some(true), _) => {
            "At times, programs write faster than the disk. The kernel then pauses these programs. The waits of other \
             programs may get shorter, and some remain."
                .to_owned()
        }
        (None, Some(false), _) => {
            "At times, programs write faster than the disk. The waits may get shorter, and some remain.".to_owned()
        }
        (None, None, Some(longest)) if longest < STALL_AWAIT_S => format!(
            "The bursts get short. A write took {} in the worst of them. Most single waits are short already.",
            human::seconds(longest)
        ),
        (None, None, _) => {
            "The disk writes small pieces early instead of one large piece late. The waits get short.".to_owned()
        }
    };
    Brief {
        because: format!("{plain}. Other writes to the disk wait behind this burst."),
        who: String::new(),
        expect,
        costs,
    }
}

/// The program whose scattered writes pile up for a device.
fn writer_of(derived: &Derived<'_>, device: &Device<'_>) -> String {
    let pids = writer::causers_on(derived, device);
    let on_disk = writer::on_disk(derived, device);
    let first = on_disk.processes.iter().find(|one| pids.contains(&one.pid));
    first.map_or_else(|| "a program".to_owned(), writer::Writer::label)
}

/// What helps where one program's scattered writes pile up.
fn no_setting(writer: &str) -> String {
    format!(
        "No vm setting helps: {writer} dirties scattered pages, and the disk writes each of them in a separate request. Let the program write fewer or larger pieces, or move its files to another disk."
    )
}

/// Bytes where no cgroup is starved by them, otherwise a shorter age at unchanged thresholds. Operations
/// are not bytes: a threshold cannot hold "thirty writes", a short age can.
fn remedy(
    derived: &Derived<'_>,
    by_operations: bool,
    speed: Speed,
    most: Option<u64>,
) -> (Vec<Step>, String, Option<threshold::Pair>) {
    let needs = threshold::Needs::of(derived, Some(speed));
    let advice = threshold::choose(&needs)
        .filter(|advice| !by_operations && matches!(advice.pair, threshold::Pair::Bytes { .. }));
    let peak = most.or(derived.dirty.unwritten_peak.map(|peak| peak.0));
    let lower = advice.as_ref().zip(peak).and_then(|(advice, peak)| threshold::lowering_below(derived, advice, peak));
    if let Some((advice, pair)) = advice.as_ref().zip(lower) {
        return (derived.sysctls(&pair.changes()), format!("{} {}", advice.why, advice.trade_off), Some(pair));
    }
    let is_bounded = advice.as_ref().is_some_and(|advice| threshold::is_near_in_force(derived, advice));
    let shorter_age = if is_bounded { Vec::new() } else { shorter_age(derived) };
    let costs = " Pages that change often are written up to ten times as often.";
    let why = match (&advice, by_operations, shorter_age.is_empty()) {
        _ if is_bounded => {
            "The background threshold in force is already only about one to two seconds of writing. No vm setting shortens the burst much. Write less, spread the writes, or use a faster disk."
        }
        (_, _, true) => {
            "The thresholds and the age in force are already as low as is useful: no setting of vm cures this. Write \
             less, spread the writes, or use a faster disk."
        }
        (Some(_), ..) => "The plan shortens the age: the thresholds in force do not cause this.",
        (None, true, _) => {
            "The plan shortens the age: the device is limited by operations, and no byte threshold counts these."
        }
        (None, false, _) => {
            "The plan shortens the age, because byte thresholds do not fit here: they would starve cgroups with memory \
             limits, or the speed of the device is not known."
        }
    };
    let costs = if shorter_age.is_empty() { "" } else { costs };
    (shorter_age, format!("{why}{costs}"), None)
}

/// An age of three seconds, looked at each second: nothing where the one in force is as short.
fn shorter_age(derived: &Derived<'_>) -> Vec<Step> {
    let is_short = derived.dirty.expiry_seconds.is_some_and(|expiry| expiry <= SHORT_AGE_S);
    if is_short {
        return Vec::new();
    }
    derived.sysctls(&[("vm.dirty_expire_centisecs", 300), ("vm.dirty_writeback_centisecs", 100)])
}
