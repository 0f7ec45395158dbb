// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finishes what a crash, a kill or a reboot left: every command of this crate starts here. A change without a guard is
//! put back, files that a confirmation began are written, a rollback that began goes on.

use crate::error::TuneError;
use crate::guard::wire::Client;
use crate::host::Host;
use crate::journal::{Entry, Journal, JournalError, Phase, Planned, Store, Why};
use crate::slot::{Live, Outcome, Write};
use crate::{journald, persist, rollback};
use std::path::{Path, PathBuf};

/// A host and the journals of its changes.
#[derive(Clone, Debug)]
pub struct Site {
    /// The host.
    pub host: Host,
    /// Folder of the journals and the lock.
    pub state: PathBuf,
}

/// Something that was finished now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    /// Number of the change.
    pub id: u32,
    /// What was done.
    pub text: String,
}

impl From<JournalError> for TuneError {
    fn from(error: JournalError) -> TuneError {
        let told = TuneError::refused(&error);
        match &error {
            JournalError::Damaged { path, .. } => told
                .hint("nothing was changed; compare the values in it with those in force, then move the file away:")
                .hint(format!("mv {path} {path}.damaged")),
            JournalError::Newer { .. } => told.hint("use the version of floodline that wrote it; nothing was changed"),
            JournalError::Io { error, .. } => match error.kind() {
                std::io::ErrorKind::PermissionDenied => told.hint(as_root()),
                std::io::ErrorKind::StorageFull => {
                    told.hint("free some space, or give another folder: --state-dir DIR")
                }
                _ => told.hint("give another folder for journals: --state-dir DIR"),
            },
        }
    }
}

impl Site {
    /// The journals of the host.
    pub fn store(&self) -> Result<Store, TuneError> {
        Ok(Store::open(&self.state)?)
    }

    /// A command of this program for this host, to copy: with `--root` and `--state-dir` where they are needed.
    pub fn command(&self, words: &str) -> String {
        let mut command = format!("floodline {words}");
        if self.host.is_imitated() {
            command.push_str(&format!(" --root {}", quoted(&self.host.root().to_string_lossy())));
        }
        if self.state != default_state(&self.host) {
            command.push_str(&format!(" --state-dir {}", quoted(&self.state.to_string_lossy())));
        }
        command
    }

    /// Hint that names the list of changes.
    pub(crate) fn listed(&self) -> String {
        format!("{} lists the changes", self.command("history"))
    }

    /// All changes that ever started, the oldest first. Makes no folder.
    pub fn journals(&self) -> Result<Vec<Journal>, TuneError> {
        let Some(store) = Store::existing(&self.state) else { return Ok(Vec::new()) };
        let mut journals = Vec::new();
        for id in store.ids()? {
            journals.extend(store.read(id)?);
        }
        Ok(journals)
    }

    /// One change: of a number, or the last one of which `wanted` is true.
    pub fn find(&self, id: Option<u32>, wanted: impl Fn(&Phase) -> bool) -> Result<Option<Journal>, TuneError> {
        match id {
            None => Ok(self.journals()?.into_iter().rev().find(|journal| wanted(&journal.phase()))),
            Some(id) => {
                let unknown = || TuneError::refused(format!("change {id} does not exist")).hint(self.listed());
                let store = Store::existing(&self.state).ok_or_else(unknown)?;
                if !store.ids()?.contains(&id) {
                    return Err(unknown());
                }
                Ok(store.read(id)?)
            }
        }
    }

    /// Finishes whatever was left. The caller holds the lock.
    pub fn settle(&self) -> Result<Vec<Settled>, TuneError> {
        let mut settled = Vec::new();
        for mut journal in self.journals()? {
            if let Some(text) = self.settle_one(&mut journal)? {
                settled.push(Settled { id: journal.id, text });
            }
        }
        Ok(settled)
    }

    /// Finishes whatever was left, unless another process is at work.
    pub fn settle_if_free(&self) -> Result<Vec<Settled>, TuneError> {
        let Some(store) = Store::existing(&self.state) else { return Ok(Vec::new()) };
        match store.lock()? {
            Some(_lock) => self.settle(),
            None => Ok(Vec::new()),
        }
    }

    fn settle_one(&self, journal: &mut Journal) -> Result<Option<String>, TuneError> {
        let phase = journal.phase();
        let is_this_boot = journal.planned.boot_id == self.host.fingerprint().boot_id;
        match phase {
            Phase::Writing | Phase::Waiting if !is_this_boot => {
                journal.append(Entry::PutBack { why: Why::Rebooted, outcomes: Vec::new(), took_ns: None })?;
                Ok(Some("the host was started again before it was confirmed: boot set the old values".to_owned()))
            }
            Phase::Writing | Phase::Waiting => {
                if self.is_guarded(journal.id) {
                    return Ok(None);
                }
                // The guard may have ended while this was decided.
                journal.refresh()?;
                if !journal.phase().is_pending() {
                    return Ok(None);
                }
                let outcomes = restore(&self.host, &journal.planned);
                let is_undone = outcomes.iter().all(|outcome| outcome.is_undone());
                journal.append(Entry::PutBack { why: Why::GuardGone, outcomes: outcomes.clone(), took_ns: None })?;
                let shown = shown(&journal.planned, &outcomes);
                if !is_undone {
                    return Err(TuneError::not_put_back(format!("change {}: {shown}", journal.id))
                        .hint(format!("set the old values by hand: {}", by_hand(&journal.planned))));
                }
                Ok(Some(format!("its guard was gone before it was confirmed: {shown}")))
            }
            Phase::Filing => {
                for file in journal.files() {
                    persist::write(&self.host, &file)
                        .map_err(|error| TuneError::refused(format!("cannot write /{}: {error}", file.path)))?;
                }
                journal.append(Entry::Persisted)?;
                Ok(Some("its files are written now".to_owned()))
            }
            Phase::RollingBack => {
                let shown = rollback::finish(self, journal)?;
                Ok(Some(format!("its rollback is finished now: {shown}")))
            }
            Phase::Confirmed | Phase::Persisted | Phase::Ended(_) => Ok(None),
        }
    }

    /// Whether a guard watches a change.
    pub fn is_guarded(&self, id: u32) -> bool {
        Client::connect(&self.state, id).is_ok()
    }
}

/// Puts back every value that is ours, in the opposite order.
pub fn restore(host: &Host, planned: &Planned) -> Vec<Outcome> {
    let mut outcomes = vec![Outcome::Unchanged; planned.slots.len()];
    for (slot, outcome) in planned.slots.iter().zip(outcomes.iter_mut()).rev() {
        *outcome = match Live::open(host, slot) {
            Ok(live) => live.put_back(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Outcome::Gone,
            Err(_) => Outcome::Failed,
        };
    }
    outcomes
}

/// What became of each setting, for people.
pub fn shown(planned: &Planned, outcomes: &[Outcome]) -> String {
    let parts: Vec<String> = planned
        .slots
        .iter()
        .zip(outcomes)
        .map(|(slot, outcome)| {
            let (old, new) = (slot.old_shown(), slot.new_shown());
            match outcome {
                Outcome::Unchanged | Outcome::PutBack => format!("{old} is in force"),
                Outcome::Foreign => format!("{} has the value of another program, which is left", name_of(&new)),
                Outcome::Failed => format!("{old} could not be written"),
                Outcome::Gone => format!("{new}: its cgroup or device was removed"),
            }
        })
        .collect();
    if parts.is_empty() { "nothing to put back".to_owned() } else { parts.join("; ") }
}

/// Name of a `NAME=VALUE`.
fn name_of(set: &str) -> &str {
    set.split_once('=').map_or(set, |(name, _)| name)
}

/// A word of a shell command, in quotes where it needs them.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// Hint for a caller without the right: the command that this process was started with, below sudo.
pub(crate) fn as_root() -> String {
    let words: Vec<String> = std::env::args_os().map(|word| quoted(&word.to_string_lossy())).collect();
    format!("run it as root: sudo {}", words.join(" "))
}

/// The old values as a command.
pub fn by_hand(planned: &Planned) -> String {
    let sysctls: Vec<String> =
        planned.slots.iter().map(|slot| slot.old_shown()).filter(|set| set.starts_with("vm.")).collect();
    let others = planned.slots.iter().flat_map(|slot| {
        if slot.is_journald() {
            return Some(format!("rm /{}; systemctl restart systemd-journald", journald::NOW));
        }
        let write = slot.undo.last().filter(|_| !slot.old_shown().starts_with("vm."));
        let value = |write: &Write| match slot.name(write).split_once("/io.max/") {
            Some((_, limit)) => format!("'{}={}'", limit.replace('/', " "), write.value),
            None => write.value.clone(),
        };
        write.and_then(|write| Some(format!("echo {} > /{}", value(write), slot.attributes.get(write.at)?.path)))
    });
    let mut commands: Vec<String> = others.collect();
    if !sysctls.is_empty() {
        commands.insert(0, format!("sysctl -w {}", sysctls.join(" ")));
    }
    commands.join("; ")
}

/// The folder of journals of the running host.
pub fn default_state(host: &Host) -> PathBuf {
    host.path("var/lib/floodline")
}

/// A site.
///
/// Both paths become absolute: the guard runs in another folder.
pub fn site(root: Option<&Path>, state: Option<&Path>) -> Site {
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let host = root.map_or_else(Host::running, |root| Host::below(&absolute(root)));
    let state = state.map_or_else(|| default_state(&host), absolute);
    Site { host, state }
}
