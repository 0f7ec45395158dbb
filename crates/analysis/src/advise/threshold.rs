// SPDX-License-Identifier: MIT OR Apache-2.0
//! Chooses the pair of thresholds for one machine. Two published remedies contradict each other: bytes for a large
//! machine with a slow disk, ratios for hundreds of small cgroups. Two needs conflict: the data up to the background
//! threshold must drain in about a second, and the smallest cgroup's share of it must still hold the pages it rewrites.
//! Both are numbers of this machine, so the choice is arithmetic. Where no pair meets both, the advice names the unmet
//! one.

use crate::diagnose::derived::Derived;
use crate::diagnose::device::Speed;
use floodline_record::human;
use floodline_record::id::EntityId;
use floodline_record::units::Bytes;

/// Seconds of device bandwidth that the background threshold should hold: 0.5–1 s fixed the measured cliff at 42 MB/s,
/// and less than half a second keeps the flusher from writing large extents.
const DRAIN_TARGET_S: f64 = 0.75;
/// Longest drain of a full background threshold before everyone notices, seconds.
const DRAIN_LIMIT_S: f64 = 2.0;
/// Hard threshold in multiples of the background threshold: the ratio of both published pairs.
pub const HARD_PER_BACKGROUND: u64 = 4;
/// Smallest background threshold in bytes ever advised.
const LEAST_BACKGROUND: u64 = 8 << 20;
/// Background percentages to choose from where not all needs can be met.
const BACKGROUND_PERCENT: [u64; 6] = [1, 2, 3, 5, 10, LARGEST_BACKGROUND_PERCENT];
/// Largest background percentage advised. Above it, with twice as much as the hard threshold, reclaim finds too few
/// clean pages.
const LARGEST_BACKGROUND_PERCENT: u64 = 20;
/// Background percentage of the pair 10/5: used unless a need rules it out.
const USUAL_BACKGROUND_PERCENT: u64 = 5;

/// Part of the threshold in force below which another threshold counts as a change.
const NOTICEABLY_LESS: f64 = 0.9;

/// Bytes that a small cgroup's background threshold should hold: 32 folios of the usual readahead size. With fewer, the
/// flusher cleans each folio about as soon as it is dirtied.
const WANTED_BY_CGROUP: u64 = 32 * (128 << 10);
/// Initial settings of the kernel.
const DEFAULT: Pair = Pair::Ratios { hard: 20, background: 10 };

/// Requirements on the thresholds of a machine.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Needs {
    /// Dirtyable memory of the machine, bytes.
    pub dirtyable_bytes: u64,
    /// Write bandwidth of the device that must drain the dirty data.
    pub bandwidth: Option<Speed>,
    /// The cgroup with the least room, where cgroups with memory limits write.
    pub smallest: Option<Absorption>,
    /// Background threshold in force, bytes.
    pub background_bytes: Option<u64>,
}

/// Requirement of the cgroup with the least room.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Absorption {
    /// Its dirtyable memory, bytes: file pages and the room it has to grow.
    pub available_bytes: u64,
    /// Smallest background threshold it should have, bytes: the pages it rewrites again and again, or some dozens of
    /// its filesystem's largest folio.
    pub wanted_bytes: u64,
}

impl Needs {
    /// Returns the needs of a machine. The caller knows which device must drain, and passes its bandwidth.
    pub fn of(derived: &Derived<'_>, bandwidth: Option<Speed>) -> Needs {
        let budgets = derived.budgets();
        let dirtyable = budgets.global.available.map(|available| available.low).or(derived.dirty.dirtyable_roughly);
        let writes = |id: EntityId| {
            let most = derived.window.cgroups.get(&id).map(|span| (span.max.file_dirty, span.max.file_writeback));
            most.is_some_and(|(dirty, writeback)| dirty.max(writeback) > Some(Bytes(0)))
        };
        let limited = budgets.cgroups.iter().filter(|budget| budget.headroom.is_some() && writes(budget.cgroup));
        let available = limited.filter_map(|budget| budget.domain.available.map(|available| available.low.0)).min();
        Needs {
            dirtyable_bytes: dirtyable.map_or(0, |bytes| bytes.0),
            bandwidth,
            smallest: available.map(|available_bytes| Absorption { available_bytes, wanted_bytes: WANTED_BY_CGROUP }),
            background_bytes: derived.dirty.background_threshold.map(|bytes| bytes.0),
        }
    }
}

impl Needs {
    /// Whether a pair drains in time and leaves enough room, for those needs that are known.
    fn are_met_by(&self, pair: Pair) -> bool {
        self.drain_s(pair).is_none_or(|seconds| seconds <= DRAIN_LIMIT_S)
            && self.room(pair).is_none_or(|(has, wants)| has >= wants)
    }

    /// Time to drain the background threshold of a pair, seconds.
    fn drain_s(&self, pair: Pair) -> Option<f64> {
        self.bandwidth.map(|speed| pair.background_bytes(self.dirtyable_bytes) as f64 / speed.value)
    }

    /// Room that a pair leaves the smallest cgroup, and the room it should have, bytes.
    pub fn room(&self, pair: Pair) -> Option<(u64, u64)> {
        let of = |smallest: Absorption| pair.background_of(smallest.available_bytes, self.dirtyable_bytes);
        self.smallest.map(|smallest| (of(smallest), smallest.wanted_bytes))
    }
}

/// The chosen pair with its reasons.
#[derive(Clone, Debug, PartialEq)]
pub struct Advice {
    /// The pair.
    pub pair: Pair,
    /// Whether the pair meets every need that is known.
    pub meets_all: bool,
    /// Seconds a full background threshold takes to drain, where the bandwidth is known.
    pub drain_s: Option<f64>,
    /// Reasons for this pair, as sentences.
    pub why: String,
    /// Costs of this pair, as sentences.
    pub trade_off: String,
}

/// A pair of thresholds. Its members are always of one kind: mixed pairs are accidents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pair {
    /// In bytes.
    Bytes {
        /// `vm.dirty_bytes`.
        hard: u64,
        /// `vm.dirty_background_bytes`.
        background: u64,
    },
    /// In percent of dirtyable memory, of the machine and of each cgroup.
    Ratios {
        /// `vm.dirty_ratio`.
        hard: u64,
        /// `vm.dirty_background_ratio`.
        background: u64,
    },
}

impl Pair {
    fn bytes(background: u64) -> Pair {
        Pair::Bytes { hard: background.saturating_mul(HARD_PER_BACKGROUND), background }
    }

    fn ratios(background: u64) -> Pair {
        Pair::Ratios { hard: background * 2, background }
    }

    /// Sysctls to write, in this order: the background threshold first.
    pub fn changes(self) -> [(&'static str, u64); 2] {
        match self {
            Pair::Bytes { hard, background } => [("vm.dirty_background_bytes", background), ("vm.dirty_bytes", hard)],
            Pair::Ratios { hard, background } => [("vm.dirty_background_ratio", background), ("vm.dirty_ratio", hard)],
        }
    }

    /// Background threshold of the pair on a machine, bytes.
    fn background_bytes(self, dirtyable_bytes: u64) -> u64 {
        match self {
            Pair::Bytes { background, .. } => background,
            Pair::Ratios { background, .. } => percent_of(background, dirtyable_bytes),
        }
    }

    /// Background threshold that the pair leaves a cgroup, bytes: the machine's fraction of its memory.
    fn background_of(self, available_bytes: u64, dirtyable_bytes: u64) -> u64 {
        match self {
            Pair::Bytes { background, .. } => {
                (u128::from(background) * u128::from(available_bytes) / u128::from(dirtyable_bytes.max(1))) as u64
            }
            Pair::Ratios { background, .. } => percent_of(background, available_bytes),
        }
    }
}

/// Returns the pair for a machine; `None` without dirtyable memory, or when neither the device's speed nor a cgroup's
/// need is known.
///
/// In this order: bytes for three quarters of a second of the device; percentages that drain in time and
/// give the room; bytes between those, as far apart as percentages are on a large machine; and where
/// nothing meets both needs, percentages that give the room, because a starved cgroup hurts all the time
/// and a long drain now and then.
pub fn choose(needs: &Needs) -> Option<Advice> {
    let speed = needs.bandwidth.filter(|speed| speed.basis.is_known() && speed.value > 0.0);
    let known = Needs { bandwidth: speed, ..*needs };
    if known.dirtyable_bytes == 0 || (speed.is_none() && known.smallest.is_none()) {
        return None;
    }
    let near_target = speed.map(|speed| bytes_for(speed, known.dirtyable_bytes).unwrap_or(DEFAULT));
    let pair = match known.smallest {
        None => near_target?,
        Some(smallest) => near_target
            .filter(|pair| matches!(pair, Pair::Bytes { .. }) && known.are_met_by(*pair))
            .or_else(|| modest_ratios(&known))
            .or_else(|| bytes_between(&known, smallest))
            .unwrap_or_else(|| roomy_ratios(&known, smallest)),
    };
    Some(describe(&known, pair))
}

/// Returns the pair of an advice for a machine on which too much is dirty at a time. It may only lower the thresholds
/// in force, and must make the flusher start earlier than it was seen to. `None` where it does neither: then no
/// threshold helps.
pub fn lowering(derived: &Derived<'_>, advice: &Advice) -> Option<Pair> {
    lowering_below(derived, advice, derived.dirty.unwritten_peak?.0)
}

/// Whether thresholds that fit a device of this speed let this much be dirty: then no threshold is the cure.
pub fn lets_pile_up(speed: Speed, bytes: u64) -> bool {
    bytes <= LEAST_BACKGROUND || bytes as f64 <= DRAIN_LIMIT_S * speed.value
}

/// The same where at most `peak` bytes were dirty: a background threshold that was not reached changes nothing.
pub fn lowering_below(derived: &Derived<'_>, advice: &Advice, peak: u64) -> Option<Pair> {
    let (background, hard) = (derived.dirty.background_threshold?.0, derived.dirty.hard_threshold?.0);
    let dirtyable = derived.dirty.dirtyable_roughly.map_or(0, |bytes| bytes.0);
    let new = advice.pair.background_bytes(dirtyable);
    if new as f64 > NOTICEABLY_LESS * background as f64 || new >= peak || is_near_in_force(derived, advice) {
        return None;
    }
    match advice.pair {
        // Never above the limit that is in force.
        Pair::Bytes { hard: wanted, background } => Some(Pair::Bytes { hard: wanted.min(hard), background }),
        Pair::Ratios { hard: wanted, .. } => (percent_of(wanted, dirtyable) <= hard).then_some(advice.pair),
    }
}

/// Whether the background threshold in force is set in bytes, and at most twice that of an advice in bytes. The advice is a power of two
/// near a measured speed, and the speed differs from one recording to the next: a step of this size would be advised again and again.
pub fn is_near_in_force(derived: &Derived<'_>, advice: &Advice) -> bool {
    let in_force = derived.window.host.last.dirty_background_bytes.filter(|bytes| bytes.0 > 0);
    match (advice.pair, in_force) {
        (Pair::Bytes { background, .. }, Some(in_force)) => in_force.0 / 2 <= background,
        _ => false,
    }
}

/// A background threshold that drains in [`DRAIN_TARGET_S`], as the nearest power of two; `None` when the kernel's
/// default is already no larger.
fn bytes_for(speed: Speed, dirtyable_bytes: u64) -> Option<Pair> {
    let exact = (speed.value * DRAIN_TARGET_S).max(1.0);
    let background = 2f64.powi((exact.log2().round() as i32).clamp(0, 40)) as u64;
    let background = background.max(LEAST_BACKGROUND);
    (background < DEFAULT.background_bytes(dirtyable_bytes)).then_some(Pair::bytes(background))
}

/// Percentages that meet every need: the usual ones if they do, else the largest below them, else the smallest above
/// them.
fn modest_ratios(needs: &Needs) -> Option<Pair> {
    let below = (1..=USUAL_BACKGROUND_PERCENT).rev();
    let above = USUAL_BACKGROUND_PERCENT + 1..=LARGEST_BACKGROUND_PERCENT;
    below.chain(above).map(Pair::ratios).find(|pair| needs.are_met_by(*pair))
}

/// The smallest whole number of MiB that gives the cgroup enough room, if it drains in time.
fn bytes_between(needs: &Needs, smallest: Absorption) -> Option<Pair> {
    let wanted = u128::from(smallest.wanted_bytes) * u128::from(needs.dirtyable_bytes);
    let exact = wanted.div_ceil(u128::from(smallest.available_bytes.max(1)));
    let background = u64::try_from(exact.next_multiple_of(1 << 20)).ok()?.max(LEAST_BACKGROUND);
    let pair = Pair::bytes(background);
    (background <= DEFAULT.background_bytes(needs.dirtyable_bytes) && needs.are_met_by(pair)).then_some(pair)
}

/// The smallest of the usual percentages that gives the cgroup enough room.
fn roomy_ratios(needs: &Needs, smallest: Absorption) -> Pair {
    let gives_room =
        |pair: &Pair| pair.background_of(smallest.available_bytes, needs.dirtyable_bytes) >= smallest.wanted_bytes;
    let pairs = || BACKGROUND_PERCENT.iter().copied().map(Pair::ratios);
    pairs().find(gives_room).unwrap_or(Pair::ratios(LARGEST_BACKGROUND_PERCENT))
}

fn percent_of(percent: u64, of: u64) -> u64 {
    (u128::from(of) * u128::from(percent) / 100) as u64
}

/// `needs` contains a bandwidth only if it is known.
fn describe(needs: &Needs, pair: Pair) -> Advice {
    let drain_s = needs.drain_s(pair);
    let (why, trade_off) = match (pair, drain_s, needs.room(pair)) {
        (Pair::Bytes { .. }, Some(seconds), room) => bytes_explained(needs, pair, seconds, room),
        (_, _, Some(room)) => ratios_for_cgroups_explained(needs, pair, drain_s, room),
        (Pair::Ratios { .. }, Some(seconds), None) => {
            let dirty = human::bytes(pair.background_bytes(needs.dirtyable_bytes) as f64);
            let written = human::seconds(seconds);
            (
                format!("The plan sets ratios: the device writes a full background threshold in {written}."),
                format!("Up to {dirty} may be dirty before the flusher starts."),
            )
        }
        (_, None, None) => (String::new(), String::new()),
    };
    Advice { pair, meets_all: needs.are_met_by(pair), drain_s, why, trade_off }
}

/// `room` is the room of the most constrained cgroup and the room it should have, bytes.
fn bytes_explained(needs: &Needs, pair: Pair, drain_s: f64, room: Option<(u64, u64)>) -> (String, String) {
    let background = pair.background_bytes(needs.dirtyable_bytes);
    let by_default_s = drain_s * needs.dirtyable_bytes as f64 / 10.0 / background.max(1) as f64;
    let cgroups = match room {
        Some((has, _)) => format!(
            "The cgroup with the least room still gets {} of it before its pages are written.",
            human::bytes(has as f64)
        ),
        None => "No cgroup with a memory limit writes here, so none is starved by it.".to_owned(),
    };
    let why = format!(
        "The plan sets bytes: the device writes this background threshold in {}. For the kernel's default of 10 % it \
         needs {}. {cgroups}",
        human::seconds(drain_s),
        human::seconds(by_default_s)
    );
    let slow = match drain_s <= DRAIN_LIMIT_S {
        true => String::new(),
        false => format!(
            "The device needs {} even for this; with a smaller threshold the flusher no longer writes in large \
             pieces. ",
            human::seconds(drain_s)
        ),
    };
    let starts = match needs.background_bytes.is_some_and(|now| background > now) {
        true => format!("Up to {} may be dirty before the flusher starts.", human::bytes(background as f64)),
        false => "Pages that change often are written more often.".to_owned(),
    };
    let trade_off = format!(
        "{slow}{starts} Check again if you add cgroups with memory \
         limits later: each gets only this fraction of its own memory."
    );
    (why, trade_off)
}

/// `has` and `wants` are bytes of the cgroup with the least room.
fn ratios_for_cgroups_explained(
    needs: &Needs,
    pair: Pair,
    drain_s: Option<f64>,
    (has, wants): (u64, u64),
) -> (String, String) {
    let background = human::bytes(pair.background_bytes(needs.dirtyable_bytes) as f64);
    let why = format!(
        "The plan sets ratios, because a cgroup's budget is the machine's fraction of the cgroup's own memory. The \
         smallest cgroup then holds {} before its pages are written. It needs {}.",
        human::bytes(has as f64),
        human::bytes(wants as f64)
    );
    let too_little = match has < wants {
        true => {
            "That is still too little: the cgroup is small by its own limit, which no setting of the machine makes up \
             for. Raise its memory.max. "
        }
        false => "",
    };
    let piles_up = match drain_s {
        Some(seconds) if seconds <= DRAIN_LIMIT_S => format!(
            "Up to {background} may be dirty before the flusher starts, {} of writing for this device.",
            human::seconds(seconds)
        ),
        Some(seconds) => format!(
            "The needs of this machine pull in opposite directions: up to {background} may now be dirty before the \
             flusher starts, {} of writing for this device, during which fsync waits. Keep bulk writers in cgroups \
             with memory.high, which bounds what each of them can pile up.",
            human::seconds(seconds)
        ),
        None => format!(
            "Up to {background} may be dirty before the flusher starts. How long the device needs to write it is not \
             known. fsync, sync and unmounting wait for it."
        ),
    };
    (why, format!("{too_little}{piles_up}"))
}

/// What it costs that the flusher starts earlier. Measured on real kernels: the longest waits got shorter, and the wait that
/// nine of ten stay below grew in 12 of 19 pairs of runs.
pub const EARLIER: &str =
    "A typical sync meets writeback more often and may take longer. Pages that change often are written more often.";
/// Part of [`EARLIER`] that remains where the cost for syncs is computed.
const REWRITTEN: &str = "Pages that change often are written more often.";

/// Returns the cost of an earlier start of the flusher. `of_syncs` is the computed cost for syncs, if there is one.
pub fn earlier(of_syncs: Option<&str>) -> &'static str {
    if of_syncs.is_some() { REWRITTEN } else { EARLIER }
}

/// States what smaller thresholds in bytes cost a program that writes faster than the disk; `None` for percentages.
pub fn cost_of_pair(pair: Pair) -> Option<String> {
    let Pair::Bytes { hard, background } = pair else { return None };
    let freerun = hard.saturating_add(background) / 2;
    Some(format!("Above {} of unwritten data, writers are slowed to the disk's speed.", human::bytes(freerun as f64)))
}

/// States what writing by age alone costs: data of `expiry_seconds` leave in one burst.
pub fn cost_of_age(expiry_seconds: f64) -> String {
    format!(
        "What programs write in {} goes to the disk at once, and a sync waits behind it.",
        human::seconds(expiry_seconds)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::device::{Basis, drains};
    use floodline_testkit::Fixture;
    use floodline_testkit::incidents::{dirty_cliff, dirty_cliff_published, starved_budget, starved_budget_published};
    use proptest::prelude::*;

    const GIB: u64 = 1 << 30;
    const MIB: u64 = 1 << 20;

    #[test]
    fn a_threshold_in_bytes_next_to_the_advice_is_left_in_force() {
        let lower = |background_mib: u64| {
            let window = dirty_cliff().settings((0, 512 * MIB, 0, background_mib * MIB)).window();
            let advice = describe(&Needs::of(&Derived::of(&window), None), Pair::bytes(32 * MIB));
            let derived = Derived::of(&window);
            (is_near_in_force(&derived, &advice), lowering_below(&derived, &advice, 900 * MIB).is_some())
        };
        assert!(lower(64).0 && !lower(64).1, "{:?}", lower(64));
        assert!(!lower(128).0, "{:?}", lower(128));
        let window = dirty_cliff().window();
        let derived = Derived::of(&window);
        assert!(
            !is_near_in_force(&derived, &describe(&Needs::of(&derived, None), Pair::bytes(32 * MIB))),
            "in percent"
        );
    }

    #[test]
    fn a_pair_of_bytes_has_a_cost_for_fast_writers() {
        let cost = cost_of_pair(Pair::bytes(32 << 20));
        assert_eq!(cost.as_deref(), Some("Above 80.0 MiB of unwritten data, writers are slowed to the disk's speed."));
        assert_eq!(cost_of_pair(Pair::ratios(10)), None);
    }

    fn check(dirtyable: u64, bandwidth: Option<f64>, smallest: Option<(u64, u64)>, pair: Pair, meets_all: bool) {
        let needs = Needs {
            dirtyable_bytes: dirtyable,
            bandwidth: bandwidth.map(|value| Speed { value, basis: Basis::Saturated }),
            smallest: smallest.map(|(available_bytes, wanted_bytes)| Absorption { available_bytes, wanted_bytes }),
            background_bytes: None,
        };
        let advice = choose(&needs).unwrap();
        assert_eq!((advice.pair, advice.meets_all), (pair, meets_all), "{advice:?}");
    }

    #[test]
    fn a_slow_disk_under_much_memory_gets_bytes() {
        // The re-enacted cliff: 42 MB/s was fixed by 32 and 128 MiB.
        check(3 * GIB, Some(42e6), None, Pair::Bytes { hard: 128 * MIB, background: 32 * MIB }, true);
        // The published one: 1 GiB and 256 MiB, which is right for an array of about 350 MB/s.
        check(118 * GIB, Some(350e6), None, Pair::Bytes { hard: GIB, background: 256 * MIB }, true);
    }

    #[test]
    fn a_fast_disk_under_little_memory_keeps_the_default() {
        check(8 * GIB, Some(2e9), None, DEFAULT, true);
    }

    #[test]
    fn small_cgroups_get_ratios() {
        // The published container host. The speed of its devices is not known.
        check(60 * GIB, None, Some((460 * MIB, 4 * MIB)), Pair::Ratios { hard: 10, background: 5 }, true);
        // The re-enacted one: 8 GiB, 100 MB/s, 128 MiB per cgroup.
        check(7 * GIB, Some(100e6), Some((127 * MIB, 4 * MIB)), Pair::Ratios { hard: 10, background: 5 }, false);
    }

    #[test]
    fn where_one_pair_meets_both_needs_it_is_chosen() {
        check(8 * GIB, Some(2e9), Some((400 * MIB, 4 * MIB)), Pair::Ratios { hard: 10, background: 5 }, true);
        check(40 * GIB, Some(500e6), Some((4 * GIB, 5 * MIB)), Pair::Bytes { hard: GIB, background: 256 * MIB }, true);
        check(40 * GIB, Some(500e6), Some((300 * MIB, 5 * MIB)), Pair::Ratios { hard: 4, background: 2 }, true);
    }

    #[test]
    fn where_none_does_the_advice_says_so() {
        check(120 * GIB, Some(100e6), Some((64 * MIB, 4 * MIB)), Pair::Ratios { hard: 20, background: 10 }, false);
    }

    /// Whether any background threshold meets both needs: at least the least, at most the kernel's default.
    fn can_be_met(needs: &Needs, speed: f64, smallest: Absorption) -> bool {
        let exact = u128::from(smallest.wanted_bytes) * u128::from(needs.dirtyable_bytes);
        let exact = exact.div_ceil(u128::from(smallest.available_bytes)).next_multiple_of(1 << 20) as f64;
        let least = exact.max(LEAST_BACKGROUND as f64);
        least <= speed * DRAIN_LIMIT_S && least <= DEFAULT.background_bytes(needs.dirtyable_bytes) as f64
    }

    proptest! {
        #[test]
        fn both_needs_are_met_where_they_can_be_and_otherwise_it_is_said_what_gives(
            dirtyable_log in 28.0f64..41.0,
            speed_log in 19.0f64..34.0,
            part in 0.0001f64..1.0,
            wanted_log in 18.0f64..27.0,
        ) {
            let dirtyable_bytes = dirtyable_log.exp2() as u64;
            let available_bytes = ((dirtyable_bytes as f64 * part) as u64).max(1 << 20);
            let smallest = Absorption { available_bytes, wanted_bytes: wanted_log.exp2() as u64 };
            let value = speed_log.exp2();
            let bandwidth = Some(Speed { value, basis: Basis::Saturated });
            let needs = Needs { dirtyable_bytes, bandwidth, smallest: Some(smallest), background_bytes: None };
            let advice = choose(&needs).expect("both are known");
            let drains = needs.drain_s(advice.pair).is_some_and(|seconds| seconds <= DRAIN_LIMIT_S);
            let has_room = needs.room(advice.pair).is_some_and(|(has, wants)| has >= wants);
            prop_assert_eq!(advice.meets_all, drains && has_room);
            if can_be_met(&needs, value, smallest) {
                prop_assert!(advice.meets_all, "{:?} {:?}", needs, advice);
            }
            // The trade-off names the need that is not met.
            prop_assert_eq!(advice.trade_off.contains("opposite directions"), !drains, "{}", advice.trade_off);
            prop_assert_eq!(advice.trade_off.contains("still too little"), !has_room, "{}", advice.trade_off);
            let (hard, background) = match advice.pair {
                Pair::Bytes { hard, background } => (hard, background),
                Pair::Ratios { hard, background } => {
                    prop_assert!(hard <= 40);
                    (hard, background)
                }
            };
            prop_assert!(background > 0 && hard >= 2 * background);
        }
    }

    /// A host under the settings advised for it: the advice, its drain time, and the room of the smallest cgroup.
    fn under_advice(make: fn() -> Fixture) -> (Advice, f64, Option<u64>) {
        let before = make().window();
        let speed = drains(&before).first().and_then(|device| device.write_bandwidth());
        let advice = choose(&Needs::of(&Derived::of(&before), speed)).expect("something is known");
        let settings = match advice.pair {
            Pair::Bytes { hard, background } => (0, hard, 0, background),
            Pair::Ratios { hard, background } => (hard, 0, background, 0),
        };
        let budgets = crate::budget::budgets(&make().settings(settings).window());
        let background = budgets.global.bg_thresh.expect("thresholds").high.0;
        let limited = budgets.cgroups.iter().filter(|budget| budget.headroom.is_some());
        let smallest = limited.filter_map(|budget| budget.domain.bg_thresh).map(|bound| bound.low.0).min();
        (advice, background as f64 / speed.map_or(f64::INFINITY, |speed| speed.value), smallest)
    }

    #[test]
    fn each_published_host_gets_its_own_cure_and_the_kernels_arithmetic_confirms_it() {
        // Bytes where a slow array drains much memory. No cgroup has a limit there.
        let (advice, drain_s, smallest) = under_advice(dirty_cliff_published);
        assert_eq!(advice.pair, Pair::Bytes { hard: GIB, background: 256 * MIB });
        assert!(drain_s <= DRAIN_LIMIT_S, "{drain_s}");
        assert_eq!(smallest, None);
        // Ratios where bytes were divided over hundreds of containers.
        let (advice, _, smallest) = under_advice(starved_budget_published);
        assert_eq!(advice.pair, Pair::Ratios { hard: 10, background: 5 });
        assert!(smallest >= Some(WANTED_BY_CGROUP), "{smallest:?}");
        // The re-enacted ones: the same two answers.
        let (advice, drain_s, _) = under_advice(dirty_cliff);
        assert_eq!(advice.pair, Pair::Bytes { hard: 128 * MIB, background: 32 * MIB });
        assert!(drain_s <= DRAIN_LIMIT_S, "{drain_s}");
        let (advice, _, smallest) = under_advice(starved_budget);
        assert_eq!((advice.pair, advice.meets_all), (Pair::Ratios { hard: 10, background: 5 }, false));
        assert!(smallest >= Some(WANTED_BY_CGROUP) && advice.trade_off.contains("opposite directions"), "{advice:?}");
    }

    #[test]
    fn the_cure_of_one_host_would_ruin_the_other() {
        let bytes = Pair::Bytes { hard: GIB, background: 256 * MIB };
        let ratios = Pair::Ratios { hard: 10, background: 5 };
        let of = |make: fn() -> Fixture, speed: f64| {
            Needs::of(&Derived::of(&make().window()), Some(Speed { value: speed, basis: Basis::Saturated }))
        };
        let (containers, cliff) = (of(starved_budget_published, 1e9), of(dirty_cliff_published, 350e6));
        assert!(containers.room(bytes).is_some_and(|(has, wants)| has < wants));
        assert!(cliff.drain_s(ratios) > Some(10.0));
    }

    #[test]
    fn a_pair_in_bytes_costs_what_it_changes() {
        let cost = |now| {
            let bandwidth = Some(Speed { value: 42e6, basis: Basis::Saturated });
            let needs = Needs { dirtyable_bytes: 3 * GIB, bandwidth, background_bytes: Some(now), ..Needs::default() };
            choose(&needs).expect("advice").trade_off
        };
        assert!(cost(300 * MIB).starts_with("Pages that change often are written more often."));
        assert!(cost(MIB).starts_with("Up to 32.0 MiB may be dirty before the flusher starts."), "{}", cost(MIB));
    }

    #[test]
    fn nothing_known_is_no_advice() {
        assert_eq!(choose(&Needs { dirtyable_bytes: GIB, ..Needs::default() }), None);
        let bound = Some(Speed { value: 1e6, basis: Basis::AtLeast });
        assert_eq!(choose(&Needs { dirtyable_bytes: GIB, bandwidth: bound, ..Needs::default() }), None);
    }
}
