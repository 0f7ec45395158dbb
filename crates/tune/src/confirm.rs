// SPDX-License-Identifier: MIT OR Apache-2.0
//! Confirms a change: the guard stops its clock, the journal gets the entry, the guard lets go and gives a receipt. Only
//! with the receipt the confirmation has succeeded. Files that keep the change over a reboot are written after it.

use crate::error::TuneError;
use crate::guard::wire::{self, Client};
use crate::journal::{Entry, Journal, Phase, Who};
use crate::persist;
use crate::recover::Site;
use crate::slot::Live;
use std::time::Duration;

/// Time that the guard has for an answer.
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// A confirmed change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confirmed {
    /// Number of the change.
    pub id: u32,
    /// Settings in force, as `NAME=VALUE`.
    pub set: Vec<String>,
    /// Files that were written.
    pub files: Vec<String>,
    /// Why files were not written, though asked for.
    pub not_persisted: Option<String>,
}

/// Confirms the change that waits for it.
pub fn confirm(site: &Site, id: Option<u32>, allow_same_login: bool) -> Result<Confirmed, TuneError> {
    let found = site.find(id, Phase::is_pending)?;
    let Some(mut journal) = found else {
        return Err(TuneError::refused("no change waits for a confirmation").hint(site.listed()));
    };
    if !journal.phase().is_pending() {
        return Err(ended(&journal));
    }
    let who = Who::here();
    if !allow_same_login && who.is_same_login(&journal.planned.who) {
        return Err(TuneError::refused(
            "this is the login that applied the change: it does not prove that a new one works",
        )
        .hint(format!("open a new login to the host, and type there: {}", site.command("confirm")))
        .hint(format!("or, where logins are not at risk: {}", site.command("confirm --same-login"))));
    }
    let mut client = Client::connect(&site.state, journal.id)
        .map_err(|_| TuneError::put_back(format!("the guard of change {} is gone", journal.id)).hint(site.listed()))?;
    let answer = client.ask(wire::CONFIRM, ANSWER_MAX).unwrap_or_default();
    if answer != wire::HELD {
        journal.refresh()?;
        return Err(match journal.phase() {
            Phase::Writing => TuneError::refused(format!("change {} is still being written", journal.id))
                .hint("wait until floodline apply has ended, then confirm"),
            Phase::Waiting => TuneError::refused(format!("the guard of change {} did not answer", journal.id))
                .hint(format!("try again: {}", site.command("confirm"))),
            _ => ended(&journal),
        });
    }
    check_in_force(site, &journal)?;
    journal.append(Entry::Confirmed { who })?;
    let receipt = client.ask(wire::RECORDED, ANSWER_MAX).unwrap_or_default();
    if receipt != wire::RELEASED {
        // Without a receipt nothing is promised. The guard reads the journal before it decides.
        journal.refresh()?;
        return Err(
            TuneError::refused(format!("the guard of change {} gave no receipt", journal.id)).hint(site.listed())
        );
    }
    let (files, not_persisted) = keep(site, &mut journal)?;
    let set = journal.planned.slots.iter().map(|slot| slot.new_shown()).collect();
    Ok(Confirmed { id: journal.id, set, files, not_persisted })
}

fn ended(journal: &Journal) -> TuneError {
    let id = journal.id;
    match journal.phase() {
        Phase::Ended(why) => {
            TuneError::put_back(format!("change {id} was put back: {}", crate::rollback::because(&why)))
                .hint("apply it again, with more time: --confirm-within 30m")
        }
        _ => TuneError::refused(format!("change {id} is confirmed already")),
    }
}

/// A value that is not ours any more cannot be confirmed.
fn check_in_force(site: &Site, journal: &Journal) -> Result<(), TuneError> {
    for slot in &journal.planned.slots {
        let Some(wanted) = slot.wanted() else { continue };
        let values = Live::open(&site.host, slot).and_then(|live| live.values());
        if values.as_ref().ok() != Some(&wanted) {
            let found = values.map_or_else(|error| error.to_string(), |values| values.join(" "));
            return Err(TuneError::refused(format!("{} is not in force: found {found}", slot.new_shown()))
                .hint(format!("end the change: {}", site.command(&format!("rollback {}", journal.id)))));
        }
    }
    Ok(())
}

/// Writes the files that keep a change over a reboot.
fn keep(site: &Site, journal: &mut Journal) -> Result<(Vec<String>, Option<String>), TuneError> {
    if !journal.planned.persist {
        return Ok((Vec::new(), None));
    }
    let planned = persist::files(&site.host, &journal.planned);
    let files = match planned {
        Ok(files) => files,
        Err(why) => {
            journal.append(Entry::NotPersisted { why: why.clone() })?;
            return Ok((Vec::new(), Some(why)));
        }
    };
    journal.append(Entry::Filing { files: files.clone() })?;
    for file in &files {
        if let Err(error) = persist::write(&site.host, file) {
            let why = format!("cannot write /{}: {error}", file.path);
            journal.append(Entry::NotPersisted { why: why.clone() })?;
            return Ok((Vec::new(), Some(why)));
        }
    }
    journal.append(Entry::Persisted)?;
    Ok((files.into_iter().map(|file| format!("/{}", file.path)).collect(), None))
}
