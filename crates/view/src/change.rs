// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the commands say that change a host: the writes, the change that waits, its end, and the list of all. Text and
//! JSON. Text from files is escaped where it is printed.

use crate::export::rfc3339;
use crate::json;
use floodline_record::human;
use floodline_record::units::Nanos;
use serde::Serialize;
use std::fmt::Write as _;

/// Schema of [`Writes`].
pub const WRITES: &str = "floodline.writes/1";
/// Schema of [`Applied`].
pub const APPLIED: &str = "floodline.applied/1";
/// Schema of [`Confirmed`].
pub const CONFIRMED: &str = "floodline.confirmed/1";
/// Schema of [`RolledBack`].
pub const ROLLED_BACK: &str = "floodline.rolled_back/1";
/// Schema of [`History`].
pub const HISTORY: &str = "floodline.history/1";

/// One write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Write {
    /// The file.
    pub path: String,
    /// Value, or text of a file.
    pub value: String,
}

/// One setting and its writes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Setting {
    /// `NAME=VALUE` in force.
    pub old: String,
    /// `NAME=VALUE` wanted.
    pub new: String,
    /// Writes in order; all but the last are steps of a ramp.
    pub writes: Vec<Write>,
}

/// What would be written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Writes {
    /// [`WRITES`].
    pub schema: &'static str,
    /// Settings in order.
    pub settings: Vec<Setting>,
    /// Files that a confirmation would write.
    pub files_at_confirm: Vec<Write>,
}

/// A change that waits.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Applied {
    /// [`APPLIED`].
    pub schema: &'static str,
    /// Number of the change.
    pub id: u32,
    /// Old and new `NAME=VALUE`.
    pub set: Vec<(String, String)>,
    /// Time left to confirm it.
    pub confirm_within_s: f64,
}

/// A confirmed change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Confirmed {
    /// [`CONFIRMED`].
    pub schema: &'static str,
    /// Number of the change.
    pub id: u32,
    /// Settings in force.
    pub set: Vec<String>,
    /// Files that set it at boot.
    pub files: Vec<String>,
    /// Why there are none, though asked for.
    pub not_persisted: Option<String>,
}

/// A change that was undone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RolledBack {
    /// [`ROLLED_BACK`].
    pub schema: &'static str,
    /// Number of the change.
    pub id: u32,
    /// What became of each setting.
    pub text: String,
}

/// One change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Number.
    pub id: u32,
    /// When it started, in nanoseconds since 1970.
    pub started_wall_ns: u64,
    /// Who made it.
    pub by: String,
    /// `writing`, `waiting`, `confirmed`, `persisted`, `rolling_back` or `put_back`.
    pub state: &'static str,
    /// Why it was put back.
    pub why: Option<String>,
    /// Whether a guard watches it.
    pub is_guarded: bool,
    /// Old and new `NAME=VALUE`.
    pub set: Vec<(String, String)>,
    /// Time from the guard's decision to the last value put back.
    pub put_back_took_ns: Option<u64>,
    /// SHA-256 of the plan.
    pub plan_sha256: String,
}

/// All changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct History {
    /// [`HISTORY`].
    pub schema: &'static str,
    /// The oldest first.
    pub changes: Vec<Change>,
}

/// Any of the forms as one line of JSON.
pub fn json(value: &impl Serialize) -> Result<String, serde_json::Error> {
    json::line(value)
}

/// The writes in order.
pub fn writes(writes: &Writes) -> String {
    let mut text = String::new();
    for setting in &writes.settings {
        let _ = writeln!(text, "{} (now {})", setting.new, setting.old);
        for write in &setting.writes {
            let _ = writeln!(text, "  write {} to {}", write.value, write.path);
        }
    }
    for file in &writes.files_at_confirm {
        let _ = writeln!(text, "at floodline confirm: write {}", file.path);
        for line in file.value.lines() {
            let _ = writeln!(text, "  {line}");
        }
    }
    text
}

/// A change that waits.
pub fn applied(applied: &Applied) -> String {
    let mut text = format!("change {} is in force and not confirmed\n", applied.id);
    for (old, new) in &applied.set {
        let _ = writeln!(text, "  {new} (was {old})");
    }
    let left = human::seconds(applied.confirm_within_s);
    let _ = writeln!(text, "Unless it is confirmed, it is undone in {left}.");
    text.push_str("  keep it: floodline confirm (from a new login)\n");
    let _ = writeln!(text, "  undo it: floodline rollback {}", applied.id);
    text
}

/// A confirmed change.
pub fn confirmed(confirmed: &Confirmed) -> String {
    let mut text = format!("change {} is confirmed: {}\n", confirmed.id, confirmed.set.join(", "));
    match confirmed.files.as_slice() {
        [] => text.push_str("A reboot brings the old values back.\n"),
        files => {
            let _ = writeln!(text, "Set at boot by: {}", files.join(", "));
        }
    }
    text
}

/// A change that was undone.
pub fn rolled_back(done: &RolledBack) -> String {
    format!("change {} is undone: {}\n", done.id, done.text)
}

/// A moment on the wall clock.
fn time(wall_ns: u64) -> String {
    rfc3339(Nanos(wall_ns)).unwrap_or_else(|| "an unknown time".to_owned())
}

/// All changes, the newest last.
pub fn history(history: &History) -> String {
    if history.changes.is_empty() {
        return "floodline has changed nothing on this host\n".to_owned();
    }
    let mut text = String::new();
    for change in &history.changes {
        let state = match (change.state, change.is_guarded) {
            ("writing", _) => "is being written",
            ("waiting", true) => "waits for floodline confirm, under its guard",
            ("waiting", false) => "waits, without a guard",
            ("confirmed", _) => "confirmed, until the next reboot",
            ("persisted", _) => "confirmed, and set at boot",
            ("rolling_back", _) => "is being rolled back",
            _ => "put back",
        };
        let why = change.why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        let _ = writeln!(text, "{}  {}  by {}  {state}{why}", change.id, time(change.started_wall_ns), change.by);
        for (old, new) in &change.set {
            let _ = writeln!(text, "     {new} (was {old})");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_changes_says_what_became_of_each() {
        let change = Change {
            id: 3,
            started_wall_ns: 1_700_000_000_000_000_000,
            by: "ann from 10.0.0.1".to_owned(),
            state: "put_back",
            why: Some("it was not confirmed in time".to_owned()),
            is_guarded: false,
            set: vec![("vm.dirty_ratio=20".to_owned(), "vm.dirty_bytes=268435456".to_owned())],
            put_back_took_ns: Some(12_000),
            plan_sha256: String::new(),
        };
        let text = history(&History { schema: HISTORY, changes: vec![change] });
        assert_eq!(
            text,
            "3  2023-11-14T22:13:20.000Z  by ann from 10.0.0.1  put back: it was not confirmed in time\n     \
             vm.dirty_bytes=268435456 (was vm.dirty_ratio=20)\n"
        );
        assert_eq!(
            history(&History { schema: HISTORY, changes: Vec::new() }),
            "floodline has changed nothing on this host\n"
        );
    }
}
