// SPDX-License-Identifier: MIT OR Apache-2.0
//! The right pair of thresholds for one machine. Two published cures contradict each other, bytes for
//! a large machine with a slow disk and ratios for hundreds of small cgroups, because two needs pull in
//! opposite directions: what the background threshold lets pile up must drain in about a second, and
//! the smallest cgroup's share of it must still hold the pages it rewrites. Both are numbers of this
//! machine, so the choice is arithmetic; where no pair meets both, the advice says which one gives.

use crate::budget::budgets;
use crate::diagnose::device::Speed;
use crate::diagnose::dirty;
use crate::human;
use crate::id::EntityId;
use crate::units::Bytes;
use crate::window::Window;

/// Seconds of device bandwidth that the background threshold should hold: 0.5–1 s cured the measured
/// cliff at 42 MB/s, and less than half a second keeps the flusher from writing large extents.
const DRAIN_TARGET_S: f64 = 0.75;
/// Seconds that a full background threshold may take before everyone notices.
pub const DRAIN_LIMIT_S: f64 = 2.0;
/// Hard threshold in multiples of the background threshold: both published pairs have four.
const HARD_PER_BACKGROUND: u64 = 4;
/// Smallest background threshold in bytes ever advised.
const LEAST_BACKGROUND: u64 = 8 << 20;
/// Background percentages to choose from, the published cure of the container host first among equals.
const BACKGROUND_PERCENT: [u64; 6] = [1, 2, 3, 5, 10, 20];
/// What 10/5 is: the background percentage when nothing speaks against it.
const USUAL_BACKGROUND_PERCENT: u64 = 5;

/// What a small cgroup's background threshold should hold: 32 folios of the usual readahead size. With
/// fewer, the flusher cleans each folio about as soon as it is dirtied.
const WANTED_BY_CGROUP: u64 = 32 * (128 << 10);
/// What the kernel starts with.
const DEFAULT: Pair = Pair::Ratios { hard: 20, background: 10 };

/// What thresholds of a machine have to satisfy.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Needs {
    /// Dirtyable memory of the machine, bytes.
    pub dirtyable_bytes: u64,
    /// Write bandwidth of the device that has to drain it.
    pub bandwidth: Option<Speed>,
    /// The cgroup with the least room, where cgroups with memory limits write.
    pub smallest: Option<Absorption>,
}

/// What the cgroup with the least room needs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Absorption {
    /// Its dirtyable memory, bytes: file pages and what it can still grow by.
    pub available_bytes: u64,
    /// What its background threshold should hold at least, bytes: pages it rewrites again and again,
    /// or some dozens of its filesystem's largest folio.
    pub wanted_bytes: u64,
}

impl Needs {
    /// What is known of a machine; the device's speed is the caller's, who knows which device.
    pub fn of(window: &Window, bandwidth: Option<Speed>) -> Needs {
        let budgets = budgets(window);
        let dirtyable = budgets.global.available.map(|available| available.low).or(dirty::dirtyable_roughly(window));
        let writes = |id: EntityId| {
            let most = window.cgroups.get(&id).map(|span| (span.max.file_dirty, span.max.file_writeback));
            most.is_some_and(|(dirty, writeback)| dirty.max(writeback) > Some(Bytes(0)))
        };
        let limited = budgets.cgroups.iter().filter(|budget| budget.headroom.is_some() && writes(budget.cgroup));
        let available = limited.filter_map(|budget| budget.domain.available.map(|available| available.low.0)).min();
        Needs {
            dirtyable_bytes: dirtyable.map_or(0, |bytes| bytes.0),
            bandwidth,
            smallest: available.map(|available_bytes| Absorption { available_bytes, wanted_bytes: WANTED_BY_CGROUP }),
        }
    }
}

/// The choice.
#[derive(Clone, Debug, PartialEq)]
pub struct Advice {
    /// What kind of pair.
    pub pair: Pair,
    /// Whether the pair meets every need that is known.
    pub meets_all: bool,
    /// Seconds a full background threshold takes to drain, where the bandwidth is known.
    pub drain_s: Option<f64>,
    /// Why this pair, as sentences.
    pub why: String,
    /// What it costs, as sentences.
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
    /// What to write, in the order to write it: the background threshold first.
    pub fn changes(self) -> [(&'static str, u64); 2] {
        match self {
            Pair::Bytes { hard, background } => [("vm.dirty_background_bytes", background), ("vm.dirty_bytes", hard)],
            Pair::Ratios { hard, background } => [("vm.dirty_background_ratio", background), ("vm.dirty_ratio", hard)],
        }
    }

    /// The background threshold it makes on a machine, bytes.
    fn background_bytes(self, dirtyable_bytes: u64) -> u64 {
        match self {
            Pair::Bytes { background, .. } => background,
            Pair::Ratios { background, .. } => percent_of(background, dirtyable_bytes),
        }
    }

    /// What it leaves a cgroup as background threshold, bytes: the machine's fraction of its memory.
    fn background_of(self, available_bytes: u64, dirtyable_bytes: u64) -> u64 {
        match self {
            Pair::Bytes { background, .. } => {
                (u128::from(background) * u128::from(available_bytes) / u128::from(dirtyable_bytes.max(1))) as u64
            }
            Pair::Ratios { background, .. } => percent_of(background, available_bytes),
        }
    }
}

/// The pair for a machine; `None` when neither the device's speed nor a cgroup's need is known.
pub fn choose(needs: &Needs) -> Option<Advice> {
    let bandwidth = needs.bandwidth.filter(|speed| speed.basis.is_known() && speed.value > 0.0);
    match (bandwidth, needs.smallest) {
        (None, None) => None,
        (Some(speed), None) => Some(describe(needs, bytes_for(speed, needs.dirtyable_bytes).unwrap_or(DEFAULT))),
        (Some(speed), Some(smallest)) => {
            if let Some(bytes) = bytes_for(speed, needs.dirtyable_bytes)
                && bytes.background_of(smallest.available_bytes, needs.dirtyable_bytes) >= smallest.wanted_bytes
            {
                return Some(describe(needs, bytes));
            }
            Some(describe(needs, ratios_for(needs, smallest, Some(speed))))
        }
        (None, Some(smallest)) => Some(describe(needs, ratios_for(needs, smallest, None))),
    }
}

/// A background threshold that drains in [`DRAIN_TARGET_S`], as the nearest power of two; `None` when
/// the kernel's default is no more than that.
fn bytes_for(speed: Speed, dirtyable_bytes: u64) -> Option<Pair> {
    let exact = (speed.value * DRAIN_TARGET_S).max(1.0);
    let background = 2f64.powi((exact.log2().round() as i32).clamp(0, 40)) as u64;
    let background = background.max(LEAST_BACKGROUND);
    let pair = Pair::Bytes { hard: background.saturating_mul(HARD_PER_BACKGROUND), background };
    (background < DEFAULT.background_bytes(dirtyable_bytes)).then_some(pair)
}

/// Percentages that give the smallest cgroup its room: the usual ones where the device drains them in
/// time or is unknown, otherwise the largest that drains, otherwise the smallest that gives the room.
fn ratios_for(needs: &Needs, smallest: Absorption, speed: Option<Speed>) -> Pair {
    let gives_room = |percent: &u64| percent_of(*percent, smallest.available_bytes) >= smallest.wanted_bytes;
    let drains = |percent: &u64| match speed {
        Some(speed) => percent_of(*percent, needs.dirtyable_bytes) as f64 / speed.value <= DRAIN_LIMIT_S,
        None => true,
    };
    let candidates = BACKGROUND_PERCENT.iter().copied().filter(gives_room);
    let mut modest = candidates.clone().filter(|percent| *percent <= USUAL_BACKGROUND_PERCENT);
    let background = modest
        .rfind(drains)
        .or_else(|| candidates.clone().next())
        .unwrap_or(BACKGROUND_PERCENT[BACKGROUND_PERCENT.len() - 1]);
    Pair::Ratios { hard: background * 2, background }
}

fn percent_of(percent: u64, of: u64) -> u64 {
    (u128::from(of) * u128::from(percent) / 100) as u64
}

fn describe(needs: &Needs, pair: Pair) -> Advice {
    let background = pair.background_bytes(needs.dirtyable_bytes);
    let known = needs.bandwidth.filter(|speed| speed.basis.is_known() && speed.value > 0.0);
    let drain_s = known.map(|speed| background as f64 / speed.value);
    let room = needs
        .smallest
        .map(|smallest| (pair.background_of(smallest.available_bytes, needs.dirtyable_bytes), smallest.wanted_bytes));
    let drains = drain_s.is_none_or(|seconds| seconds <= DRAIN_LIMIT_S);
    let has_room = room.is_none_or(|(has, wants)| has >= wants);

    let mut why = Vec::new();
    let mut trade_off = Vec::new();
    match (pair, drain_s, room) {
        (Pair::Bytes { .. }, Some(seconds), room) => {
            why.push(format!(
                "Bytes, because the device writes this background threshold in {}; the kernel's default of \
                 10 % would take it {}.",
                human::seconds(seconds),
                human::seconds(seconds * needs.dirtyable_bytes as f64 / 10.0 / background.max(1) as f64),
            ));
            match room {
                Some((has, _)) => why.push(format!(
                    "The cgroup with the least room still gets {} of it before its pages are written.",
                    human::bytes(has as f64)
                )),
                None => why.push("No cgroup with a memory limit writes here, so none is starved by it.".to_owned()),
            }
            trade_off.push(
                "Pages that are rewritten often are written more often. If cgroups with memory limits are added \
                 later, each gets only this fraction of its own memory: then look again."
                    .to_owned(),
            );
        }
        (_, drain_s, Some((has, wants))) => {
            why.push(format!(
                "Ratios, because a cgroup's budget is the machine's fraction of its own memory: this gives the \
                 smallest one {} before its pages are written; it needs {}.",
                human::bytes(has as f64),
                human::bytes(wants as f64)
            ));
            trade_off.push(match drain_s {
                Some(seconds) if drains => format!(
                    "Up to {} may be dirty before the flusher starts, {} of writing for this device.",
                    human::bytes(background as f64),
                    human::seconds(seconds)
                ),
                Some(seconds) => format!(
                    "The needs of this machine pull in opposite directions: up to {} may now be dirty before the \
                     flusher starts, {} of writing for this device, during which fsync waits. Keep bulk writers in \
                     cgroups with memory.high, which bounds what each of them can pile up.",
                    human::bytes(background as f64),
                    human::seconds(seconds)
                ),
                None => format!(
                    "Up to {} may be dirty before the flusher starts; how long the device needs for it is not \
                     known: fsync, sync and unmounting wait for it.",
                    human::bytes(background as f64)
                ),
            });
        }
        (Pair::Ratios { .. }, Some(seconds), None) => {
            why.push(format!(
                "Ratios, because the device writes a full background threshold in {}.",
                human::seconds(seconds)
            ));
            trade_off
                .push(format!("Up to {} may be dirty before the flusher starts.", human::bytes(background as f64)));
        }
        (_, None, None) => {}
    }
    Advice { pair, meets_all: drains && has_room, drain_s, why: why.join(" "), trade_off: trade_off.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::device::Basis;

    const GIB: u64 = 1 << 30;
    const MIB: u64 = 1 << 20;

    fn check(dirtyable: u64, bandwidth: Option<f64>, smallest: Option<(u64, u64)>, pair: Pair, meets_all: bool) {
        let needs = Needs {
            dirtyable_bytes: dirtyable,
            bandwidth: bandwidth.map(|value| Speed { value, basis: Basis::Saturated }),
            smallest: smallest.map(|(available_bytes, wanted_bytes)| Absorption { available_bytes, wanted_bytes }),
        };
        let advice = choose(&needs).unwrap();
        assert_eq!((advice.pair, advice.meets_all), (pair, meets_all), "{advice:?}");
    }

    #[test]
    fn a_slow_disk_under_much_memory_gets_bytes() {
        // The re-enacted cliff: 42 MB/s was cured by 32 and 128 MiB.
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
        // The published container host; the speed of its devices is not known.
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

    #[test]
    fn nothing_known_is_no_advice() {
        assert_eq!(choose(&Needs { dirtyable_bytes: GIB, ..Needs::default() }), None);
        let bound = Some(Speed { value: 1e6, basis: Basis::AtLeast });
        assert_eq!(choose(&Needs { dirtyable_bytes: GIB, bandwidth: bound, smallest: None }), None);
    }
}
