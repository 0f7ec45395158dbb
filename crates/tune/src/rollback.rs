// SPDX-License-Identifier: MIT OR Apache-2.0
//! Undoes a change: one that waits for a confirmation through its guard, a confirmed one by itself. The way back has its
//! own ramp, and takes away the files that the change wrote.

use crate::error::TuneError;
use crate::guard::wire::{self, Client};
use crate::journal::{Entry, Journal, Phase, Who, Why};
use crate::ramp::{self, Memory};
use crate::recover::{self, Site, restore, shown};
use crate::slot::{Live, Outcome, Slot};
use crate::{journald, persist};
use std::time::{Duration, Instant};

/// Time that the guard has to put everything back and to write its journal.
const GUARD_MAX: Duration = Duration::from_secs(30);

/// A change that was undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RolledBack {
    /// Number of the change.
    pub id: u32,
    /// What became of each setting.
    pub text: String,
}

/// Why values were put back, for people.
pub fn because(why: &Why) -> &'static str {
    match why {
        Why::Deadline => "it was not confirmed in time",
        Why::Pressure => "tasks of the host were stalled on I/O",
        Why::LongPause => "a writer waited for longer than the plan allows",
        Why::Probe => "the probe failed",
        Why::ApplierGone => "the process that applied it ended early",
        Why::WriteFailed => "a write failed",
        Why::BoundBroken => "a bound of the plan did not hold after a step",
        Why::ValueChanged => "another program changed a value between two steps",
        Why::TrialEnded => "its switchback trial ended",
        Why::ConfirmationCut => "its confirmation did not end",
        Why::Asked => "it was rolled back",
        Why::GuardGone => "its guard was gone before it was confirmed",
        Why::Rebooted => "the host was started again before it was confirmed",
        Why::NeverStarted => "it never started",
    }
}

/// Undoes a change: of a number, or the last one that is in force.
pub fn rollback(site: &Site, id: Option<u32>) -> Result<RolledBack, TuneError> {
    let found = site.find(id, |phase| phase.is_pending() || phase.is_confirmed())?;
    let Some(mut journal) = found else {
        return Err(TuneError::refused("no change is in force").hint(site.listed()));
    };
    if let Phase::Ended(why) = journal.phase() {
        return Err(TuneError::refused(format!("change {} is not in force: {}", journal.id, because(&why))));
    }
    if journal.phase().is_pending() {
        return by_guard(site, &mut journal);
    }
    let store = site.store()?;
    let Some(_lock) = store.lock()? else {
        return Err(TuneError::refused("another floodline changes this host").hint("try again when it has ended"));
    };
    journal.append(Entry::RollingBack { who: Who::here() })?;
    let text = finish(site, &mut journal)?;
    Ok(RolledBack { id: journal.id, text })
}

/// Asks the guard. If it dies meanwhile, this process does its work.
fn by_guard(site: &Site, journal: &mut Journal) -> Result<RolledBack, TuneError> {
    if let Ok(mut client) = Client::connect(&site.state, journal.id) {
        let answer = client.ask(wire::RESTORE, GUARD_MAX).unwrap_or_default();
        if answer == wire::REFUSED {
            return Err(TuneError::refused(format!("change {} is being confirmed at this moment", journal.id))
                .hint(format!("try again: {}", site.command(&format!("rollback {}", journal.id)))));
        }
    }
    // Its journal comes after the values, and a disk may delay it.
    let started = Instant::now();
    while started.elapsed() < GUARD_MAX && site.is_guarded(journal.id) {
        std::thread::sleep(Duration::from_millis(20));
    }
    journal.refresh()?;
    if journal.phase().is_pending() {
        let outcomes = restore(&site.host, &journal.planned);
        journal.append(Entry::PutBack { why: Why::Asked, outcomes, took_ns: None })?;
    }
    let last = journal.entries.iter().rev().find_map(|dated| match &dated.entry {
        Entry::PutBack { outcomes, .. } => Some(outcomes.clone()),
        _ => None,
    });
    done(journal, &last.unwrap_or_default()).map(|text| RolledBack { id: journal.id, text })
}

/// Undoes a confirmed change whose rollback is recorded as started in the journal.
pub fn finish(site: &Site, journal: &mut Journal) -> Result<String, TuneError> {
    let mut remarks = Vec::new();
    for file in journal.files() {
        match persist::take_back(&site.host, &file) {
            Ok(true) => {}
            Ok(false) => remarks.push(format!("/{} was changed by another program and is left", file.path)),
            Err(error) => remarks.push(format!("/{} could not be put back: {error}", file.path)),
        }
    }
    descend(site, journal);
    let outcomes = restore(&site.host, &journal.planned);
    if journal.planned.slots.iter().any(Slot::is_journald) {
        // After a reboot its value came from the file that was taken back above.
        journald::restart(&site.host);
    }
    journal.append(Entry::PutBack { why: Why::Asked, outcomes: outcomes.clone(), took_ns: None })?;
    remarks.insert(0, done(journal, &outcomes)?);
    Ok(remarks.join("; "))
}

/// Lowers a hard threshold in steps before its old value is put back at once.
fn descend(site: &Site, journal: &Journal) {
    let mut slots = journal.planned.slots.clone();
    for slot in &mut slots {
        slot.writes.clone_from(&slot.undo);
    }
    ramp::plan(&mut slots, Memory::read(&site.host));
    let patience = ramp::patience(Duration::MAX);
    for slot in slots.iter().filter(|slot| slot.writes.len() > slot.undo.len()) {
        let ours = journal.planned.slots.iter().find(|planned| planned.attributes == slot.attributes);
        let Ok(live) = Live::open(&site.host, slot) else { continue };
        // Only from a value of ours: another administrator's stays.
        let is_ours =
            ours.and_then(|planned| planned.wanted()).is_some_and(|wanted| live.values().ok() == Some(wanted));
        if !is_ours {
            continue;
        }
        for write in &slot.writes {
            ramp::wait(&site.host, slot, write, patience, || true);
            if live.write(write).is_err() {
                break;
            }
        }
    }
}

fn done(journal: &Journal, outcomes: &[Outcome]) -> Result<String, TuneError> {
    let text = shown(&journal.planned, outcomes);
    if outcomes.iter().all(|outcome| outcome.is_undone()) {
        return Ok(text);
    }
    Err(TuneError::not_put_back(format!("change {}: {text}", journal.id))
        .hint(format!("set the old values by hand: {}", recover::by_hand(&journal.planned))))
}
