// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ramp. A hard threshold that jumps below the dirty pages stops every writer until the disk has caught up. So the
//! background threshold goes first, which makes the flusher write, and the hard one follows in steps. Each step waits
//! until the dirty pages are below its freerun ceiling, where no writer is slowed. It waits as long as they become fewer.
//! Steps of a plan, after which the host is watched, are in `staged`.

use crate::host::Host;
use crate::slot::{Slot, Write};
use floodline_record::human;
use std::time::{Duration, Instant};

/// Each step keeps this much of the one before.
const KEEP: (u64, u64) = (3, 4);
/// Most steps.
const STEPS_MAX: usize = 24;
/// Longest wait for dirty pages that do not become fewer.
const STUCK_MAX: Duration = Duration::from_secs(2);
/// Dirty pages become fewer if they fall by this part of the next threshold within [`STUCK_MAX`].
const PROGRESS: u64 = 64;
/// Longest ramp of which each step may wait for more than [`STUCK_MAX`].
const PATIENCE_MAX: Duration = Duration::from_secs(60);
/// Time between two readings of the dirty pages.
const READ_EVERY: Duration = Duration::from_millis(20);

/// The pair of the limit.
pub(crate) const HARD: [&str; 2] = ["vm.dirty_bytes", "vm.dirty_ratio"];
/// The pair of the background threshold.
pub(crate) const BACKGROUND: [&str; 2] = ["vm.dirty_background_bytes", "vm.dirty_background_ratio"];

/// What the kernel counts, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Hard threshold in force.
    pub hard: u64,
    /// Background threshold in force.
    pub background: u64,
    /// Memory that ratios are ratios of, about.
    pub available: u64,
}

impl Memory {
    /// As the host has it; `None` without `/proc/vmstat`.
    pub fn read(host: &Host) -> Option<Memory> {
        let page = u64::try_from(rustix::param::page_size()).ok()?;
        let bytes = |name| Some(host.vmstat(name)?.saturating_mul(page));
        let parts = ["nr_free_pages", "nr_active_file", "nr_inactive_file"];
        Some(Memory {
            hard: bytes("nr_dirty_threshold")?,
            background: bytes("nr_dirty_background_threshold")?,
            available: parts.into_iter().filter_map(bytes).sum(),
        })
    }

    /// Threshold that a write of a pair sets. The first member of a pair counts bytes, the second percent.
    pub fn threshold(&self, write: &Write) -> Option<u64> {
        let value: u64 = write.value.parse().ok()?;
        Some(if write.at == 0 { value } else { self.available / 100 * value })
    }
}

/// What is wrong with the thresholds that some settings leave: the kernel does not use a background threshold that is not
/// below the limit.
pub fn void_background(slots: &[Slot], memory: &Memory) -> Option<String> {
    let of = |names: [&str; 2]| {
        let is_it = |slot: &&Slot| slot.attributes.first().is_some_and(|first| names.contains(&first.name.as_str()));
        memory.threshold(slots.iter().find(is_it)?.writes.last()?)
    };
    let (limit, background) = (of(HARD), of(BACKGROUND));
    if limit.is_none() && background.is_none() {
        return None;
    }
    let (limit, background) = (limit.unwrap_or(memory.hard), background.unwrap_or(memory.background));
    (background >= limit).then(|| {
        format!(
            "the background threshold ({}) is not below the limit ({}), so the kernel uses half of the limit",
            human::bytes(background as f64),
            human::bytes(limit as f64)
        )
    })
}

/// Thresholds between two, each a part of the one before, both ends left out.
pub fn steps(from: u64, to: u64) -> Vec<u64> {
    let next = |limit: &u64| Some(limit / KEEP.1 * KEEP.0);
    let page = |limit: u64| limit - limit % 4096;
    std::iter::successors(next(&from), next)
        .map(page)
        .take_while(|limit| *limit > to.max(8192))
        .take(STEPS_MAX)
        .collect()
}

/// Puts slots in order and adds the steps of a ramp where a hard threshold is lowered.
pub fn plan(slots: &mut [Slot], memory: Option<Memory>) {
    let is = |slot: &Slot, names: [&str; 2]| {
        slot.attributes.first().is_some_and(|first| names.contains(&first.name.as_str()))
    };
    let Some(memory) = memory else { return };
    let lowers = |slot: &Slot, from: u64| {
        let to = slot.writes.last().and_then(|write| memory.threshold(write))?;
        (to < from).then_some(to)
    };
    if let Some(slot) = slots.iter_mut().find(|slot| is(slot, HARD)) {
        let mut from = memory.hard;
        let mut writes = Vec::new();
        for write in std::mem::take(&mut slot.writes) {
            let to = memory.threshold(&write).unwrap_or(from);
            let between = if to < from { steps(from, to) } else { Vec::new() };
            let step = write.step;
            writes.extend(between.into_iter().map(|limit| Write { at: 0, value: limit.to_string(), step }));
            writes.push(write);
            from = to;
        }
        slot.writes = writes;
    }
    // Lowering: background first. Raising: the hard one first, so that the kernel does not cap the background.
    let is_lowered = slots.iter().find(|slot| is(slot, HARD)).is_some_and(|slot| lowers(slot, memory.hard).is_some());
    slots.sort_by_key(|slot| match (is(slot, BACKGROUND), is(slot, HARD)) {
        (true, _) if is_lowered => 0,
        (_, true) if is_lowered => 1,
        (_, true) => 0,
        (true, _) => 1,
        _ => 2,
    });
}

/// Time that a ramp may take while dirty pages become fewer: a quarter of what is left until a deadline.
pub fn patience(left: Duration) -> Instant {
    Instant::now() + PATIENCE_MAX.min(left / 4)
}

/// The fall of the dirty pages before one step. Pure.
#[derive(Debug)]
struct Fall {
    started: Instant,
    /// A reading, and when it was taken.
    mark: (u64, Instant),
}

impl Fall {
    fn new(now: Instant) -> Fall {
        Fall { started: now, mark: (u64::MAX, now) }
    }

    /// Takes a reading. Returns whether it is worth waiting for a further one.
    fn goes_on(&mut self, now: Instant, dirty: u64, limit: u64, patience: Instant) -> bool {
        if dirty < self.mark.0.saturating_sub(limit / PROGRESS) {
            self.mark = (dirty, now);
        }
        let since = |then: Instant| now.saturating_duration_since(then);
        since(self.mark.1) < STUCK_MAX && (now < patience || since(self.started) < STUCK_MAX)
    }
}

/// Waits until a write that lowers the hard threshold would slow no writer, as long as the dirty pages become fewer. Beyond
/// `patience`, and where they do not, it waits for two seconds.
pub fn wait(host: &Host, slot: &Slot, write: &Write, patience: Instant, keep_on: impl Fn() -> bool) {
    if !slot.attributes.first().is_some_and(|first| HARD.contains(&first.name.as_str())) {
        return;
    }
    let mut fall = Fall::new(Instant::now());
    while keep_on() {
        let Some(memory) = Memory::read(host) else { return };
        let Some(limit) = memory.threshold(write).filter(|limit| *limit < memory.hard) else { return };
        let page = u64::try_from(rustix::param::page_size()).unwrap_or(4096);
        let dirty: u64 = ["nr_dirty", "nr_writeback"].into_iter().filter_map(|name| host.vmstat(name)).sum();
        let dirty = dirty.saturating_mul(page);
        let fits = dirty < limit / 2 + memory.background.min(limit / 2) / 2;
        if fits || !fall.goes_on(Instant::now(), dirty, limit, patience) {
            return;
        }
        std::thread::sleep(READ_EVERY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::knob::{Access, Attribute};

    const MIB: u64 = 1 << 20;

    #[test]
    fn no_step_takes_more_than_a_quarter_and_the_ramp_ends() {
        for (from, to) in [(1024 * MIB, 16 * MIB), (20 * MIB, 19 * MIB), (1 << 44, 8192), (5, 8192), (MIB, MIB)] {
            let steps = steps(from, to);
            assert!(steps.len() <= STEPS_MAX);
            let mut before = from;
            for step in &steps {
                assert!(*step > to && *step < before && *step + 8192 >= before / 4 * 3, "{from} {to}: {steps:?}");
                before = *step;
            }
        }
        assert_eq!(steps(100 * MIB, 50 * MIB), [75 * MIB, 58_982_400]);
        assert!(steps(100 * MIB, 200 * MIB).is_empty());
    }

    /// Seconds after which a step gives up, reading every half second.
    fn check_fall(dirty: impl Fn(f64) -> u64, patience_s: u64, expect: Option<f64>) {
        let start = Instant::now();
        let mut fall = Fall::new(start);
        let patience = start + Duration::from_secs(patience_s);
        let gives_up = (0..100)
            .map(|half| f64::from(half) / 2.0)
            .find(|second| !fall.goes_on(start + Duration::from_secs_f64(*second), dirty(*second), 64 * MIB, patience));
        assert_eq!(gives_up, expect);
    }

    #[test]
    fn a_step_waits_as_long_as_dirty_pages_become_fewer() {
        check_fall(|_| 100 * MIB, 60, Some(2.0));
        // 2 MiB/s are enough, less than 1 MiB in two seconds is not.
        check_fall(|second| 1000 * MIB - (second * 2.0) as u64 * MIB, 60, None);
        check_fall(|second| 100 * MIB - (second * 400_000.0) as u64, 60, Some(2.0));
        // They fall for 10 s.
        check_fall(|second| 1000 * MIB - second.min(10.0) as u64 * 8 * MIB, 60, Some(12.0));
        check_fall(|second| 1000 * MIB - second as u64 * 8 * MIB, 5, Some(5.0));
        check_fall(|second| 1000 * MIB - second as u64 * 8 * MIB, 0, Some(2.0));
    }

    fn pair(name: &str, value: &str) -> Slot {
        let attribute =
            |member| Attribute { name: format!("vm.{name}_{member}"), path: String::new(), access: Access::File };
        Slot {
            attributes: ["bytes", "ratio"].map(attribute).to_vec(),
            state: 2,
            is_exact: true,
            old: ["0", "20"].map(str::to_owned).to_vec(),
            writes: vec![Write::new(0, value)],
            undo: Vec::new(),
            back: Vec::new(),
        }
    }

    #[test]
    fn lowering_starts_with_the_background_and_raising_with_the_hard_threshold() {
        let memory = Memory { hard: 400 * MIB, background: 200 * MIB, available: 2000 * MIB };
        let ordered = |hard: u64| {
            let mut slots = [pair("dirty", &hard.to_string()), pair("dirty_background", "8388608")];
            plan(&mut slots, Some(memory));
            slots.map(|slot| (slot.attributes[0].name.clone(), slot.writes.len()))
        };
        let named = |name: &str, writes| (format!("vm.{name}_bytes"), writes);
        assert_eq!(ordered(100 * MIB), [named("dirty_background", 1), named("dirty", 5)]);
        assert_eq!(ordered(800 * MIB), [named("dirty", 1), named("dirty_background", 1)]);
    }

    #[test]
    fn a_limit_is_lowered_step_by_step_within_each_step_of_a_plan() {
        let memory = Memory { hard: 400 * MIB, background: 200 * MIB, available: 2000 * MIB };
        let mut slots = [pair("dirty", "0")];
        let write = |mib: u64, step| Write { at: 0, value: (mib * MIB).to_string(), step };
        slots[0].writes = vec![write(200, 0), write(100, 1)];
        plan(&mut slots, Some(memory));
        let mib = |write: &Write| (write.value.parse::<u64>().unwrap() / MIB, write.step);
        let writes: Vec<(u64, usize)> = slots[0].writes.iter().map(mib).collect();
        assert_eq!(writes, [(300, 0), (225, 0), (200, 0), (150, 1), (112, 1), (100, 1)]);
    }

    #[test]
    fn a_background_threshold_that_is_not_below_the_limit_is_said() {
        let memory = Memory { hard: 400 * MIB, background: 200 * MIB, available: 2000 * MIB };
        let check = |slots: &[Slot], is_void: bool| {
            assert_eq!(void_background(slots, &memory).is_some(), is_void, "{slots:?}");
        };
        let (limit, background) = (|mib| pair("dirty", mib), |mib| pair("dirty_background", mib));
        check(&[limit("67108864"), background("67108864")], true);
        check(&[limit("67108864"), background("16777216")], false);
        check(&[limit("67108864")], true);
        check(&[background("536870912")], true);
        check(&[background("67108864")], false);
        check(&[], false);
    }
}
