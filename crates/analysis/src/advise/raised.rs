// SPDX-License-Identifier: MIT OR Apache-2.0
//! Chooses a higher limit for a machine whose programs write in bursts and sync nothing. Writers are paused at the present limit, although
//! the disk has time to write all of it. Pauses begin half way between the two thresholds, so a burst must fit below that.

use super::threshold::{HARD_PER_BACKGROUND, Needs};
use crate::diagnose::at_limit::AtLimit;
use crate::diagnose::derived::Derived;
use crate::diagnose::device::Speed;
use crate::report::Step;
use floodline_record::human;

/// Most seconds of the disk's writing that the background threshold holds. No program syncs, so no program waits for all of it at once.
const DRAIN_S: f64 = 2.0;
/// Largest thresholds, as parts of dirtyable memory: the kernel's defaults.
const MOST_BACKGROUND: f64 = 0.1;
const MOST_HARD: f64 = 0.2;
/// Room for bursts, in multiples of the largest burst of the recording.
const SPARE: f64 = 1.25;
/// Smallest background threshold, bytes.
const LEAST_BACKGROUND: u64 = 8 << 20;
/// The limit is a multiple of this, bytes.
const STEP: u64 = 8 << 20;

/// Room that bursts need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    /// Most bytes that a burst has unwritten if nothing pauses it.
    bytes: u64,
    /// Least dirtyable memory while tasks waited at the limit and at the end of the window, bytes.
    dirtyable: u64,
}

impl Room {
    /// Of the bursts that waited at the limit of the machine.
    pub(crate) fn of(derived: &Derived<'_>, at: &AtLimit) -> Room {
        let at_end = Needs::of(derived, None).dirtyable_bytes;
        Room { bytes: at.room, dirtyable: at.dirtyable.map_or(at_end, |least| least.min(at_end)) }
    }

    /// Whether they fit below the freerun ceiling of the kernel's default thresholds.
    pub(crate) fn fits(self) -> bool {
        self.bytes as f64 <= (MOST_HARD + MOST_BACKGROUND) / 2.0 * self.dirtyable as f64
    }
}

/// Returns the commands for thresholds in bytes that hold these bursts, their reason and their cost. Returns `None` where a
/// cgroup with a memory limit writes, because it would get a small part of them. Returns `None` also where they are no higher than those
/// in force, where the bursts are too large for the default thresholds, and where the speed of the disk is not known.
pub(crate) fn for_bursts(derived: &Derived<'_>, speed: Speed, room: Room) -> Option<(Vec<Step>, String, String)> {
    let needs = Needs::of(derived, Some(speed));
    if needs.smallest.is_some() || !speed.basis.is_known() || !room.fits() {
        return None;
    }
    let most = room.dirtyable as f64;
    let wanted = (DRAIN_S * speed.value).min(MOST_BACKGROUND * most).max(1.0);
    let background = (2_f64.powi((wanted.log2().floor() as i32).clamp(0, 40)) as u64).max(LEAST_BACKGROUND);
    let for_room = (2.0 * SPARE * room.bytes as f64) as u64;
    let hard = for_room.saturating_sub(background).max(background.saturating_mul(HARD_PER_BACKGROUND)).div_ceil(STEP);
    let hard = hard.saturating_mul(STEP).min((MOST_HARD * most) as u64 / STEP * STEP);
    let in_force = derived.dirty.hard_threshold.map_or(0, |bytes| bytes.0);
    if hard <= in_force || hard < 2 * background {
        return None;
    }
    let (plan, freerun) = (
        derived.sysctls(&[("vm.dirty_background_bytes", background), ("vm.dirty_bytes", hard)]),
        hard.saturating_add(background) / 2,
    );
    let why = format!(
        "With the plan, writers are paused only from {} on. The largest burst here needs {}.",
        human::bytes(freerun as f64),
        human::bytes(room.bytes as f64)
    );
    let trade_off = format!(
        "Up to {} may be unwritten, which the disk writes in {}. A sync, an unmount or a clean stop waits for that, and a power \
         cut loses it.",
        human::bytes(hard as f64),
        human::seconds(hard as f64 / speed.value)
    );
    Some((plan, why, trade_off))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::device::Basis;
    use floodline_testkit::{Fixture, mib};

    /// The commands for bursts of `room_mib` for a disk of 10 MB/s, on a machine of 16 GiB with a limit of `limit_mib`.
    fn commands(limit_mib: f64, room_mib: f64) -> Option<Vec<String>> {
        with_memory(limit_mib, room_mib, None)
    }

    /// The same where at most `dirtyable_mib` could be dirty while tasks waited.
    fn with_memory(limit_mib: f64, room_mib: f64, dirtyable_mib: Option<f64>) -> Option<Vec<String>> {
        let limit = mib(limit_mib) as u64;
        let fixture = Fixture::healthy().thresholds((0, limit, 0, limit / 2), limit / 4096, limit / 8192);
        let window = fixture.window();
        let speed = Speed { value: 10e6, basis: Basis::Saturated };
        let derived = Derived::of(&window);
        let at = AtLimit { room: mib(room_mib), dirtyable: dirtyable_mib.map(mib), ..AtLimit::default() };
        let plan = for_bursts(&derived, speed, Room::of(&derived, &at))?.0;
        Some(plan.into_iter().map(|step| step.command).collect())
    }

    #[test]
    fn half_of_both_thresholds_holds_the_largest_burst_with_some_room() {
        let commands = commands(10.0, 60.0).expect("a higher limit").join("; ");
        // The disk writes 16 MiB in 1.7 s. 1.25 times the burst are 75 MiB, so the limit is 2 * 75 - 16 = 134 MiB or more: 136 MiB.
        assert!(commands.contains("vm.dirty_background_bytes=16777216"), "{commands}");
        assert!(commands.contains("vm.dirty_bytes=142606336"), "{commands}");
    }

    #[test]
    fn neither_a_lower_limit_nor_one_above_the_kernels_defaults_is_chosen() {
        assert_eq!(commands(400.0, 60.0), None);
        assert_eq!(commands(10.0, 6000.0), None);
    }

    #[test]
    fn memory_that_programs_held_while_tasks_waited_is_not_counted() {
        // A fifth of 500 MiB is 100 MiB, in steps of 8 MiB.
        let full = with_memory(10.0, 60.0, Some(500.0)).expect("a higher limit").join("; ");
        assert!(full.contains("vm.dirty_bytes=100663296"), "{full}");
        assert_eq!(with_memory(10.0, 60.0, Some(300.0)), None);
    }
}
