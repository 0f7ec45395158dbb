// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes and undoes a change by turns under its guard, and looks at the stalls of each side. To the guard it is a change
//! that is still being written: if this process dies, if the host suffers, or at the deadline, the old values are put back.
//! At the end they are put back in any case.

use crate::apply::{self, Begun, Prepared, Request};
use crate::benefit::Interval;
use crate::benefit::switchback::{BLOCKS_MAX, BLOCKS_MIN, Block};
use crate::error::TuneError;
use crate::guard::harm;
use crate::guard::wire;
use crate::host::{Host, boottime};
use crate::journal::{Journal, Phase};
use crate::ramp::{self, Memory};
use crate::recover::Site;
use crate::rollback::because;
use crate::slot::{Live, Slot};
use floodline_analysis::change::{Change, ChangePlan};
use std::fs::File;
use std::io::Read;
use std::time::{Duration, Instant};

/// Part of a period that is left out after a switch, and the most of it.
const SETTLE: (u32, Duration) = (5, Duration::from_secs(30));
/// Time that the guard has to put everything back.
const GUARD_MAX: Duration = Duration::from_secs(30);
/// Longest pause that a trial without a confirmed change allows, in seconds: the pauses may be what the change cures.
const WITHOUT_S: f64 = 30.0;
/// Time beside the blocks: switches, steps of ramps, the end.
const BESIDES: Duration = Duration::from_secs(600);
const PAGE: u64 = 4096;

/// How often and how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Design {
    /// Number of blocks.
    pub blocks: usize,
    /// Length of a block: four periods.
    pub block: Duration,
}

impl Design {
    /// A design; fails with what is wrong, for people.
    pub fn new(blocks: usize, block: Duration) -> Result<Design, String> {
        if !(BLOCKS_MIN..=BLOCKS_MAX).contains(&blocks) {
            return Err(format!("expected {BLOCKS_MIN} to {BLOCKS_MAX} blocks: fewer can prove nothing at 5 %"));
        }
        if !(Duration::from_secs(1)..=Duration::from_secs(86_400)).contains(&block) {
            return Err("expected blocks of 1s to 24h".to_owned());
        }
        Ok(Design { blocks, block })
    }

    /// Length of all blocks.
    pub fn length(&self) -> Duration {
        self.block * u32::try_from(self.blocks).unwrap_or(u32::MAX)
    }

    /// Time after which the guard puts everything back.
    pub fn within(&self) -> Duration {
        self.length() + BESIDES
    }
}

/// A plan that undoes a confirmed change, so that a trial may compare the host without it. At its end the guard puts the
/// change back.
pub fn inverse(journal: &Journal) -> Result<ChangePlan, TuneError> {
    let id = journal.id;
    if !journal.phase().is_confirmed() {
        let told = match journal.phase() {
            Phase::Ended(why) => TuneError::refused(format!("change {id} is not in force: {}", because(&why))),
            _ => TuneError::refused(format!("change {id} is not confirmed")).hint("confirm it: floodline confirm"),
        };
        return Err(told);
    }
    let change = |slot: &Slot| {
        let shown = slot.old_shown();
        let (knob, new) = shown.split_once('=').unwrap_or_default();
        Change { knob: knob.to_owned(), old: None, new: new.to_owned(), in_force: None }
    };
    Ok(ChangePlan {
        changes: journal.planned.slots.iter().map(change).collect(),
        longest_pause_s: WITHOUT_S,
        undo: Vec::new(),
        ramp: None,
        ..journal.planned.plan.clone()
    })
}

/// Which side is in force in the periods of a block.
fn order(is_new_first: bool) -> [bool; 4] {
    [is_new_first, !is_new_first, !is_new_first, is_new_first]
}

/// A fair coin for each block.
fn coins(blocks: usize) -> Result<Vec<bool>, TuneError> {
    let mut bytes = vec![0; blocks];
    File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut bytes))
        .map_err(|error| TuneError::refused(format!("cannot read /dev/urandom: {error}")))?;
    Ok(bytes.into_iter().map(|byte| byte & 1 == 1).collect())
}

/// Runs a trial of a prepared plan. `tell` is called for each period with its number from 1, the number of periods, and
/// whether the new values are in force. The old values are in force when this returns.
pub fn run(
    site: &Site,
    request: &Request,
    mut prepared: Prepared,
    design: Design,
    mut tell: impl FnMut(usize, usize, bool),
) -> Result<(u32, Vec<Block>), TuneError> {
    let coins = coins(design.blocks)?;
    plan_back(&mut prepared.slots, Memory::read(&site.host));
    let mut begun = apply::begin(site, request, prepared)?;
    let mut blocks = Vec::new();
    let mut is_new = false;
    let period = design.block / 4;
    for (at, coin) in coins.iter().enumerate() {
        let mut block = Block::default();
        for (quarter, wants_new) in order(*coin).into_iter().enumerate() {
            tell(at * 4 + quarter + 1, design.blocks * 4, wants_new);
            let seen = switch(site, &mut begun, is_new, wants_new)
                .and_then(|()| look(site, &begun, period).ok_or_else(|| "the guard ended the trial".to_owned()));
            is_new = wants_new;
            match seen {
                Ok(seen) => if wants_new { &mut block.with } else { &mut block.without }.extend(seen),
                Err(why) => return Err(apply::fail(site, begun, &why)),
            }
        }
        blocks.push(block);
    }
    if let Err(why) = switch(site, &mut begun, is_new, false) {
        return Err(apply::fail(site, begun, &why));
    }
    let Begun { journal, mut client, lock } = begun;
    drop(lock);
    let answer = client.ask(wire::ENDED, GUARD_MAX).unwrap_or_default();
    drop(client);
    let started = Instant::now();
    while started.elapsed() < GUARD_MAX && site.is_guarded(journal.id) {
        std::thread::sleep(Duration::from_millis(20));
    }
    if answer != wire::RESTORED {
        // The next command finishes what a guard left.
        return Err(
            TuneError::put_back(format!("the guard of change {} gave no answer", journal.id)).hint(site.listed())
        );
    }
    Ok((journal.id, blocks))
}

/// Steps of the way back, where it lowers a hard threshold.
fn plan_back(slots: &mut [Slot], memory: Option<Memory>) {
    let Some(memory) = memory else { return };
    for slot in slots.iter_mut() {
        let Some(hard) = slot.writes.last().and_then(|write| memory.threshold(write)) else { continue };
        let mut back = [Slot { writes: slot.undo.clone(), ..slot.clone() }];
        ramp::plan(&mut back, Some(Memory { hard, ..memory }));
        let [back] = back;
        slot.back = back.writes.into_iter().rev().skip(slot.undo.len()).rev().collect();
    }
}

/// Brings one side into force. Each setting must have the value of the other side, or it belongs to another program.
fn switch(site: &Site, begun: &mut Begun, is_new: bool, wants_new: bool) -> Result<(), String> {
    if is_new == wants_new {
        return Ok(());
    }
    let mut slots = begun.journal.planned.slots.clone();
    if !wants_new {
        slots.reverse();
    }
    for slot in &mut slots {
        let live =
            Live::open(&site.host, slot).map_err(|error| format!("cannot open {}: {error}", slot.new_shown()))?;
        let values = live.values().map_err(|error| format!("cannot read {}: {error}", slot.new_shown()))?;
        let expected = if is_new { slot.wanted() } else { Some(slot.old.clone()) };
        if expected.is_some_and(|expected| expected != values) {
            return Err(format!("another program set {} to {}", slot.new_shown(), values.join(" ")));
        }
        if !wants_new {
            slot.writes = slot.back.iter().chain(&slot.undo).cloned().collect();
        }
    }
    apply::write_all(site, &slots, &mut begun.journal, &begun.client)
}

/// Looks at the host for one period. `None` if the guard ended.
fn look(site: &Site, begun: &Begun, period: Duration) -> Option<Vec<Interval>> {
    let every = (period / 20).clamp(Duration::from_millis(5), Duration::from_secs(1));
    let settle = (period / SETTLE.0).min(SETTLE.1);
    let started = Instant::now();
    let mut seen = Vec::new();
    let mut last = None;
    while started.elapsed() < period {
        std::thread::sleep(every.min(period.saturating_sub(started.elapsed())));
        if !begun.client.is_guarding() {
            return None;
        }
        if started.elapsed() < settle {
            continue;
        }
        let now = Reading::of(&site.host);
        if let (Some(now), Some(last)) = (&now, &last) {
            seen.push(now.since(last));
        }
        last = now;
    }
    Some(seen)
}

/// Counters of a moment.
struct Reading {
    at_ns: u64,
    dirtied: u64,
    stalled_us: u64,
}

impl Reading {
    fn of(host: &Host) -> Option<Reading> {
        let stalled_us = harm::some_total(host.read("proc/pressure/io").ok()?.as_bytes())?;
        Some(Reading { at_ns: boottime(), dirtied: host.vmstat("nr_dirtied")?, stalled_us })
    }

    fn since(&self, before: &Reading) -> Interval {
        let seconds = self.at_ns.saturating_sub(before.at_ns) as f64 / 1e9;
        let dirtied = self.dirtied.saturating_sub(before.dirtied).saturating_mul(PAGE);
        let stall_s = self.stalled_us.saturating_sub(before.stalled_us) as f64 / 1e6;
        Interval { seconds, dirtied_bytes: dirtied as f64, stall_s: stall_s.min(seconds) }
    }
}

/// Returns an error for the user if the host lacks the counters that a trial reads.
pub fn check(host: &Host) -> Result<(), TuneError> {
    match Reading::of(host) {
        Some(_) => Ok(()),
        None => {
            Err(TuneError::refused("the host does not report its stalls: /proc/pressure/io or nr_dirtied is missing")
                .hint("use a kernel with PSI (CONFIG_PSI, psi=1)"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_balanced() {
        assert_eq!(order(false), [false, true, true, false]);
        assert_eq!(order(true), [true, false, false, true]);
    }

    #[test]
    fn a_design_that_can_prove_nothing_is_refused() {
        let minutes = |minutes: u64| Duration::from_secs(minutes * 60);
        assert_eq!(Design::new(6, minutes(10)).map(|design| design.length()), Ok(minutes(60)));
        assert!(Design::new(5, minutes(10)).is_err());
        assert!(Design::new(17, minutes(10)).is_err());
        assert!(Design::new(6, Duration::from_millis(999)).is_err());
    }
}
