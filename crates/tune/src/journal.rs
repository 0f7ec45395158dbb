// SPDX-License-Identifier: MIT OR Apache-2.0
//! The journal: one append-only file per change, one line per entry. A line is the SHA-256 of the hash before it and of
//! its own text, a space, and the text as JSON: a line that was changed, removed or moved breaks the chain. Entries that
//! a decision rests on are on the disk before the next step. A last line without an end was cut by a crash: its step was
//! never taken.

use crate::host::{boottime, wall};
use crate::slot::{Outcome, Slot};
use floodline_analysis::change::ChangePlan;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Version of the format.
pub const VERSION: u32 = 1;
/// The chain starts from this.
const START: &str = "floodline.journal";
/// Longest journal that is read.
const BYTES_MAX: u64 = 8 << 20;

/// The user and the login that requested a change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Who {
    /// Audit login uid.
    pub loginuid: Option<String>,
    /// Audit session.
    pub sessionid: Option<String>,
    /// `SUDO_USER`.
    pub sudo_user: Option<String>,
    /// `SSH_CONNECTION`.
    pub ssh_connection: Option<String>,
    /// POSIX session.
    pub session: Option<i32>,
}

/// First entry: the planned change, and everything needed to undo it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Planned {
    /// Number of the change.
    pub id: u32,
    /// Boot during which it is applied.
    pub boot_id: Option<String>,
    /// CLOCK_BOOTTIME at which the guard puts everything back, in nanoseconds.
    pub deadline_ns: u64,
    /// User and login.
    pub who: Who,
    /// SHA-256 of the plan as JSON.
    pub plan_sha256: String,
    /// The plan.
    pub plan: ChangePlan,
    /// Settings, in the order in which they are written. They are put back in the opposite order.
    pub slots: Vec<Slot>,
    /// Whether the change is to survive a reboot, once confirmed.
    pub persist: bool,
    /// Command whose failure puts everything back.
    pub probe: Option<String>,
}

/// A file that a confirmed change has written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filed {
    /// Path below the root of the host.
    pub path: String,
    /// Text before; `None` if the file did not exist.
    pub before: Option<String>,
    /// Text after.
    pub after: String,
}

/// Why values were put back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// It was not confirmed in time.
    Deadline,
    /// Tasks of the host were stalled on I/O.
    Pressure,
    /// A writer waited for longer than the plan allows.
    LongPause,
    /// The probe failed.
    Probe,
    /// The process that applied it ended early.
    ApplierGone,
    /// A write failed.
    WriteFailed,
    /// A bound of the plan did not hold after a step of its ramp.
    BoundBroken,
    /// Another program changed a value between two steps of a ramp.
    ValueChanged,
    /// A trial by turns ended.
    TrialEnded,
    /// A confirmation started and did not end.
    ConfirmationCut,
    /// A user requested it.
    Asked,
    /// The guard was found dead.
    GuardGone,
    /// The host rebooted, which resets every value.
    Rebooted,
    /// It ended before the first write.
    NeverStarted,
}

/// An entry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "snake_case")]
pub enum Entry {
    /// A change is about to be made.
    Planned(Box<Planned>),
    /// A value was written and read back.
    Wrote {
        /// `NAME=VALUE`.
        set: String,
        /// Values read back.
        reading: Vec<String>,
    },
    /// Every value is written. The clock runs.
    Applied,
    /// The change stays.
    Confirmed {
        /// User and login.
        who: Who,
    },
    /// These files are about to be written.
    Filing {
        /// The files.
        files: Vec<Filed>,
    },
    /// The files are written.
    Persisted,
    /// The files are not written, for this reason.
    NotPersisted {
        /// Why.
        why: String,
    },
    /// A confirmed change is about to be undone.
    RollingBack {
        /// User and login.
        who: Who,
    },
    /// The effect of the change was judged.
    Verified {
        /// `helped`, `no_difference`, `harmed` or `not_enough`.
        verdict: String,
        /// Stall seconds per hour of writing, before and after.
        stall_s_per_hour: Option<(f64, f64)>,
        /// Whether the measured figure is inside the predicted interval; `None` without a prediction.
        predicted: Option<bool>,
    },
    /// Values were put back.
    PutBack {
        /// Why.
        why: Why,
        /// Outcome of each slot, in the order of the plan.
        outcomes: Vec<Outcome>,
        /// Time from the decision to the last value, in nanoseconds.
        took_ns: Option<u64>,
    },
}

#[derive(Serialize, Deserialize)]
struct Envelope {
    version: u32,
    /// Wall clock, for display.
    wall_ns: u64,
    /// CLOCK_BOOTTIME.
    boot_ns: u64,
    #[serde(flatten)]
    entry: Entry,
}

#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

/// An entry and when it was written.
#[derive(Clone, Debug, PartialEq)]
pub struct Dated {
    /// Wall clock, in nanoseconds since 1970.
    pub wall_ns: u64,
    /// The entry.
    pub entry: Entry,
}

/// State of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Announced, perhaps written in part.
    Writing,
    /// Written, waiting for a confirmation.
    Waiting,
    /// In force.
    Confirmed,
    /// In force, its files being written.
    Filing,
    /// In force, and set again by every boot.
    Persisted,
    /// Being undone.
    RollingBack,
    /// Undone, or never done.
    Ended(Why),
}

impl Phase {
    /// Whether the change has to be confirmed or put back.
    pub fn is_pending(&self) -> bool {
        matches!(self, Phase::Writing | Phase::Waiting)
    }

    /// Whether the change is in force and confirmed.
    pub fn is_confirmed(&self) -> bool {
        matches!(self, Phase::Confirmed | Phase::Filing | Phase::Persisted | Phase::RollingBack)
    }
}

/// A journal that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The file system failed.
    #[error("{what} {path}: {error}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// The file.
        path: String,
        /// Why it failed.
        error: io::Error,
    },
    /// A line was altered after it was written.
    #[error("{path} is damaged at line {line}: {why}")]
    Damaged {
        /// The file.
        path: String,
        /// The line, from 1.
        line: usize,
        /// Why.
        why: String,
    },
    /// A newer program wrote it.
    #[error("{path} has format version {version}; this program reads version {VERSION}")]
    Newer {
        /// The file.
        path: String,
        /// Its version.
        version: u32,
    },
}

/// All journals of a host.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
}

/// Held while a change is made or ended.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// The journal of one change.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    /// Number of the change.
    pub id: u32,
    /// What the change is.
    pub planned: Planned,
    /// Every entry, the first included.
    pub entries: Vec<Dated>,
    /// Whether the last line was cut by a crash.
    pub is_cut: bool,
}

impl Store {
    /// The journals below a state folder, which is made if it is absent.
    pub fn open(state: &Path) -> Result<Store, JournalError> {
        let folder = state.join("journal");
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&folder)
            .map_err(|error| failed("cannot create folder", &folder, error))?;
        Ok(Store { folder })
    }

    /// The journals below a state folder; `None` if no change was ever made. Makes no folder.
    pub fn existing(state: &Path) -> Option<Store> {
        let folder = state.join("journal");
        // A folder that the caller may not enter exists too. Reading it then returns the error.
        let is_absent = std::fs::symlink_metadata(&folder).is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
        (!is_absent).then_some(Store { folder })
    }

    /// Folder of the journals.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// File that is locked while a change is made.
    pub fn lock_path(&self) -> PathBuf {
        self.folder.join("lock")
    }

    /// Takes the lock; `None` while another process holds it.
    pub fn lock(&self) -> Result<Option<Lock>, JournalError> {
        let path = self.lock_path();
        let file = private().write(true).create(true).truncate(false).open(&path);
        let file = file.map_err(|error| failed("cannot open", &path, error))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Lock { _file: file })),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(errno) => Err(failed("cannot lock", &path, errno.into())),
        }
    }

    /// Numbers of all changes, in order.
    pub fn ids(&self) -> Result<Vec<u32>, JournalError> {
        let entries = std::fs::read_dir(&self.folder);
        let entries = entries.map_err(|error| failed("cannot list", &self.folder, error))?;
        let id = |name: &str| name.strip_suffix(".journal")?.parse().ok();
        let mut ids: Vec<u32> = entries.flatten().filter_map(|entry| id(entry.file_name().to_str()?)).collect();
        ids.sort_unstable();
        Ok(ids)
    }

    /// Path of the journal of a change.
    pub fn path(&self, id: u32) -> PathBuf {
        self.folder.join(format!("{id:04}.journal"))
    }

    /// Starts a journal. Its first entry is on the disk when this returns.
    pub fn create(&self, mut planned: Planned) -> Result<Journal, JournalError> {
        let last = self.ids()?.last().copied().unwrap_or(0);
        planned.id = last + 1;
        let path = self.path(planned.id);
        let file = private().read(true).append(true).create_new(true).open(&path);
        let file = file.map_err(|error| failed("cannot create", &path, error))?;
        let mut journal = Journal {
            path: path.clone(),
            file,
            id: planned.id,
            planned: planned.clone(),
            entries: Vec::new(),
            is_cut: false,
        };
        let written = journal.append(Entry::Planned(Box::new(planned))).and_then(|()| {
            match File::open(&self.folder).and_then(|folder| folder.sync_all()) {
                // Some file systems sync no folders.
                Err(error) if error.kind() != io::ErrorKind::InvalidInput => {
                    Err(failed("cannot sync", &self.folder, error))
                }
                _ => Ok(()),
            }
        });
        if let Err(error) = written {
            // Nothing was done yet, so the empty file is removed.
            let _ = std::fs::remove_file(&path);
            return Err(error);
        }
        Ok(journal)
    }

    /// Reads the journal of a change. `None` if a crash cut its first entry: that change never started.
    pub fn read(&self, id: u32) -> Result<Option<Journal>, JournalError> {
        let path = self.path(id);
        let file = OpenOptions::new().read(true).append(true).open(&path);
        let file = file.map_err(|error| failed("cannot open", &path, error))?;
        let (entries, is_cut) = entries(&path, &file)?;
        let Some(first) = entries.first() else { return Ok(None) };
        let Entry::Planned(planned) = &first.entry else {
            return Err(damaged(&path, 1, "the first entry must be the plan"));
        };
        let planned = planned.as_ref().clone();
        if planned.id != id {
            return Err(damaged(&path, 1, &format!("it is the journal of change {}", planned.id)));
        }
        Ok(Some(Journal { path, file, id, planned, entries, is_cut }))
    }
}

impl Journal {
    /// Adds an entry that is on the disk when this returns.
    pub fn append(&mut self, entry: Entry) -> Result<(), JournalError> {
        self.add(entry)?;
        self.file.sync_all().map_err(|error| failed("cannot sync", &self.path, error))
    }

    /// Adds an entry that nothing depends on.
    pub fn note(&mut self, entry: Entry) -> Result<(), JournalError> {
        self.add(entry)
    }

    fn add(&mut self, entry: Entry) -> Result<(), JournalError> {
        let path = self.path.clone();
        let error = |what, error| failed(what, &path, error);
        flock(&self.file, FlockOperation::LockExclusive).map_err(|errno| error("cannot lock", errno.into()))?;
        let result = (|| {
            let text = text(&path, &self.file)?;
            let whole = text.rfind('\n').map_or(0, |at| at + 1);
            let end = u64::try_from(whole).unwrap_or(u64::MAX);
            let length = self.file.metadata().map_err(|failure| error("cannot read", failure))?.len();
            if end < length {
                // No step was taken for an entry that a crash cut.
                self.file.set_len(end).map_err(|failure| error("cannot shorten", failure))?;
            }
            let last = text.get(..whole).unwrap_or_default().lines().last();
            let hash = last.and_then(|line| line.split_once(' ')).map_or(START, |(hash, _)| hash);
            let (wall_ns, boot_ns) = (wall(), boottime());
            let envelope = Envelope { version: VERSION, wall_ns, boot_ns, entry: entry.clone() };
            let json = serde_json::to_string(&envelope).map_err(|failure| error("cannot write", failure.into()))?;
            let line = format!("{} {json}\n", chained(hash, &json));
            if let Err(failure) = (&self.file).write_all(line.as_bytes()) {
                // On a full disk, part of the line may have been written.
                let _ = self.file.set_len(end);
                return Err(error("cannot write", failure));
            }
            self.entries.push(Dated { wall_ns, entry });
            self.is_cut = false;
            Ok(())
        })();
        let _ = flock(&self.file, FlockOperation::Unlock);
        result
    }

    /// Reads the entries again: another process may have added some.
    pub fn refresh(&mut self) -> Result<(), JournalError> {
        (self.entries, self.is_cut) = entries(&self.path, &self.file)?;
        Ok(())
    }

    /// State of the change.
    pub fn phase(&self) -> Phase {
        let mut phase = Phase::Writing;
        for dated in &self.entries {
            phase = match &dated.entry {
                Entry::Planned(_) | Entry::Wrote { .. } | Entry::Verified { .. } => phase,
                Entry::Applied => Phase::Waiting,
                Entry::Confirmed { .. } | Entry::NotPersisted { .. } => Phase::Confirmed,
                Entry::Filing { .. } => Phase::Filing,
                Entry::Persisted => Phase::Persisted,
                Entry::RollingBack { .. } => Phase::RollingBack,
                Entry::PutBack { why, .. } => Phase::Ended(why.clone()),
            };
        }
        phase
    }

    /// Files that the change has written, or was about to write.
    pub fn files(&self) -> Vec<Filed> {
        let of = |dated: &Dated| match &dated.entry {
            Entry::Filing { files } => Some(files.clone()),
            _ => None,
        };
        self.entries.iter().rev().find_map(of).unwrap_or_default()
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

fn failed(what: &'static str, path: &Path, error: io::Error) -> JournalError {
    JournalError::Io { what, path: path.display().to_string(), error }
}

fn damaged(path: &Path, line: usize, why: &str) -> JournalError {
    JournalError::Damaged { path: path.display().to_string(), line, why: why.to_owned() }
}

/// SHA-256 as hexadecimal digits.
pub fn sha256(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn chained(hash: &str, json: &str) -> String {
    sha256(format!("{hash} {json}").as_bytes())
}

fn text(path: &Path, file: &File) -> Result<String, JournalError> {
    // Processes share the position of an inherited file, so reads use explicit offsets.
    let mut bytes = Vec::new();
    let mut part = [0; 4096];
    loop {
        let at = bytes.len() as u64;
        let count = file.read_at(&mut part, at).map_err(|error| failed("cannot read", path, error))?;
        bytes.extend_from_slice(part.get(..count).unwrap_or_default());
        if count == 0 {
            break;
        }
        if at > BYTES_MAX {
            return Err(damaged(path, 1, "it is longer than 8 MiB"));
        }
    }
    // A crash may leave zeros behind the last line that reached the disk.
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |at| at + 1);
    bytes.truncate(end);
    String::from_utf8(bytes).map_err(|_| damaged(path, 1, "it is not UTF-8 text"))
}

fn entries(path: &Path, file: &File) -> Result<(Vec<Dated>, bool), JournalError> {
    let text = text(path, file)?;
    let mut entries = Vec::new();
    let mut before = START.to_owned();
    let mut is_cut = false;
    for (at, line) in text.split_inclusive('\n').enumerate() {
        let Some(line) = line.strip_suffix('\n') else {
            is_cut = true;
            break;
        };
        let number = at + 1;
        let (hash, json) = line.split_once(' ').ok_or_else(|| damaged(path, number, "it has no hash"))?;
        if chained(&before, json) != hash {
            return Err(damaged(path, number, "its hash does not match"));
        }
        let version =
            serde_json::from_str::<Versioned>(json).map_err(|error| damaged(path, number, &error.to_string()))?;
        if version.version > VERSION {
            return Err(JournalError::Newer { path: path.display().to_string(), version: version.version });
        }
        let envelope: Envelope =
            serde_json::from_str(json).map_err(|error| damaged(path, number, &error.to_string()))?;
        entries.push(Dated { wall_ns: envelope.wall_ns, entry: envelope.entry });
        hash.clone_into(&mut before);
    }
    Ok((entries, is_cut))
}

impl Who {
    /// The caller of this process.
    pub fn here() -> Who {
        let line = |path| std::fs::read_to_string(path).ok().map(|text: String| text.trim().to_owned());
        let set = |value: &String| !value.is_empty() && value != "4294967295";
        let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        Who {
            loginuid: line("/proc/self/loginuid").filter(set),
            sessionid: line("/proc/self/sessionid").filter(set),
            sudo_user: variable("SUDO_USER"),
            ssh_connection: variable("SSH_CONNECTION"),
            session: line("/proc/self/stat").and_then(|stat| session_in(&stat)),
        }
    }

    /// Whether both are one login: the audit session decides where it is set, else the connection and the POSIX
    /// session.
    pub fn is_same_login(&self, other: &Who) -> bool {
        match (&self.sessionid, &other.sessionid) {
            (Some(one), Some(other)) => one == other,
            _ => self.session == other.session && self.ssh_connection == other.ssh_connection,
        }
    }

    /// Returns the user and the origin of the login, for display.
    pub fn shown(&self) -> String {
        let user = match (&self.sudo_user, &self.loginuid) {
            (Some(user), _) => user.clone(),
            (None, Some(uid)) => format!("uid {uid}"),
            (None, None) => "root".to_owned(),
        };
        let from = self.ssh_connection.as_deref().and_then(|connection| connection.split(' ').next());
        from.map_or(user.clone(), |from| format!("{user} from {from}"))
    }
}

/// The POSIX session in a `/proc/PID/stat`. It is 0, and not known here, for a process whose session began outside of its
/// name space or with the kernel. A library that takes 0 for an identifier panics.
fn session_in(stat: &str) -> Option<i32> {
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_whitespace().nth(3)?.parse().ok().filter(|session| *session > 0)
}

#[cfg(test)]
mod tests;
