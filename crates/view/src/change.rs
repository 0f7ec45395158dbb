// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the commands say that change a host: the writes, the change that waits, its end, and the list of all. Text and
//! JSON. Text from files is escaped where it is printed.

use crate::export::rfc3339;
use crate::json;
use crate::layout::hanging;
use floodline_analysis::change::Ramp;
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

/// Schema of [`Verified`].
pub const VERIFIED: &str = "floodline.verified/1";

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
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Writes {
    /// [`WRITES`].
    pub schema: &'static str,
    /// Settings in order.
    pub settings: Vec<Setting>,
    /// Files that a confirmation would write.
    pub files_at_confirm: Vec<Write>,
    /// Steps in which the writes are made, with the host watched after each. Absent if they are made at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ramp: Option<Ramp>,
    /// The writes of each step of the ramp, in order. Empty if they are made at once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Vec<Write>>,
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
    /// Command that keeps it.
    pub keep: String,
    /// Command that undoes it.
    pub undo: String,
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

/// One thing that was checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What was checked.
    pub what: String,
    /// Wanted.
    pub expected: String,
    /// Found.
    pub found: String,
    /// Whether they agree.
    pub is_met: bool,
}

/// The hard dirty limit of a cgroup or of the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DirtyLimit {
    /// Path of the cgroup (escaped); `None` is the machine.
    pub cgroup: Option<String>,
    /// Wanted, bytes.
    pub expected_bytes: u64,
    /// Found, bytes.
    pub found_bytes: u64,
    /// Whether they agree within a tenth.
    pub is_met: bool,
}

/// Whether a change helped.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Benefit {
    /// `helped`, `no_difference`, `harmed` or `not_enough`.
    pub verdict: &'static str,
    /// Why the recordings do not answer it.
    pub why: Option<&'static str>,
    /// Further minutes that the recording after the change needs.
    pub needs_minutes: Option<f64>,
    /// Largest difference that counts as none.
    pub difference: f64,
    /// Stall seconds per hour of writing before.
    pub before_stall_s_per_hour: Option<f64>,
    /// Stall seconds per hour of writing after.
    pub after_stall_s_per_hour: Option<f64>,
    /// Ratio of after to before: lower end, estimate and upper end.
    pub ratio: Option<(f64, f64, f64)>,
    /// Share of the time that had others of like load.
    pub matched_share: f64,
    /// Whether all of the time was compared, although the loads differ.
    pub any_load: bool,
    /// Predicted interval of stall seconds per hour, and whether the measured figure is inside.
    pub predicted: Option<(f64, f64, bool)>,
    /// The trial by turns that the figures come from; `None` for two recordings. Before and after are then without and
    /// with the change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub switchback: Option<Switchback>,
}

/// A trial by turns.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Switchback {
    /// Blocks that had writing on both sides.
    pub blocks: usize,
    /// Two-sided p-value; `None` if there is none.
    pub p: Option<f64>,
}

/// Both answers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verified {
    /// [`VERIFIED`].
    pub schema: &'static str,
    /// Number of the change; `None` for two recordings.
    pub id: Option<u32>,
    /// Is it in force?
    pub in_force: Vec<Check>,
    /// Limits that the change was expected to bring, beside those that are found. Empty where it moves none, or where they
    /// cannot be read.
    pub dirty_limits: Vec<DirtyLimit>,
    /// Did it help? `None` without recordings.
    pub benefit: Option<Benefit>,
}

/// Limits that the text names if they differ.
const LIMITS_MAX: usize = 5;
/// Columns of the text.
const WIDTH: usize = 80;

/// How limits of cgroups and of the machine agree.
fn dirty_limits(limits: &[DirtyLimit]) -> String {
    let mut text = String::new();
    let met = limits.iter().filter(|limit| limit.is_met).count();
    if let ([limit], 1) = (limits, met) {
        let name = limit.cgroup.as_deref().unwrap_or("the machine");
        let found = human::bytes(limit.found_bytes as f64);
        let _ = writeln!(text, "  ok     dirty limit of {name}: {found}, as expected within 10 %");
    } else if met > 0 {
        let smallest = limits.iter().filter(|limit| limit.is_met).map(|limit| limit.found_bytes).min().unwrap_or(0);
        let _ = writeln!(
            text,
            "  ok     dirty limits: {met} of {} as expected (within 10 %), smallest {}",
            limits.len(),
            human::bytes(smallest as f64)
        );
    }
    let differing = limits.iter().filter(|limit| !limit.is_met);
    for limit in differing.clone().take(LIMITS_MAX) {
        let name = limit.cgroup.as_deref().unwrap_or("the machine");
        let (expected, found) = (human::bytes(limit.expected_bytes as f64), human::bytes(limit.found_bytes as f64));
        let _ = writeln!(text, "  differs  dirty limit of {name}: expected {expected}, found {found}");
    }
    let more = differing.count().saturating_sub(LIMITS_MAX);
    if more > 0 {
        let _ = writeln!(text, "  and {more} more; --format json has all");
    }
    text
}

/// Both answers as text.
pub fn verified(verified: &Verified) -> String {
    let mut text = String::new();
    if let Some(id) = verified.id {
        let is_met = verified.in_force.iter().all(|check| check.is_met);
        let _ = writeln!(text, "Is change {id} in force? {}", if is_met { "Yes." } else { "No." });
        for check in &verified.in_force {
            let _ = match check.is_met {
                true => writeln!(text, "  ok     {}: {}", check.what, check.found),
                false => {
                    writeln!(text, "  differs  {}: expected {}, found {}", check.what, check.expected, check.found)
                }
            };
        }
        text.push_str(&dirty_limits(&verified.dirty_limits));
    }
    let Some(benefit) = &verified.benefit else {
        if verified.id.is_some() {
            text.push_str("Did it help? Not judged: give the recordings before and after the change:\n");
            text.push_str("  floodline verify before.flr after.flr\n");
        }
        return text;
    };
    hanging(&mut text, "Did it help? ", &sentence(benefit), WIDTH);
    if let (Some(before), Some(after)) = (benefit.before_stall_s_per_hour, benefit.after_stall_s_per_hour) {
        let (without, with) = match benefit.switchback {
            Some(_) => ("without the change", "with it"),
            None => ("before", "after"),
        };
        let _ = writeln!(text, "  stall seconds per hour of writing: {before:.0} {without}, {after:.0} {with}");
    }
    if let Some(switchback) = benefit.switchback {
        if let Some((low, ratio, high)) = benefit.ratio {
            let _ = writeln!(text, "  with ÷ without: {ratio:.2}, interval {low:.2} to {high:.2}");
        }
        let p = switchback.p.map(|p| format!(", exact p-value {p:.3}")).unwrap_or_default();
        let _ = writeln!(text, "  {} blocks with writing on both sides{p}", switchback.blocks);
    } else if let Some((low, ratio, high)) = benefit.ratio {
        let _ = write!(text, "  after ÷ before: {ratio:.2}, interval {low:.2} to {high:.2}, at ");
        let _ = match benefit.any_load {
            true => writeln!(text, "any load"),
            false => writeln!(
                text,
                "like load\n  {} of the time had others of like load",
                human::percent(benefit.matched_share)
            ),
        };
    }
    if let Some((low, high, is_inside)) = benefit.predicted {
        let place = if is_inside { "inside" } else { "outside" };
        let _ = writeln!(text, "  predicted: {low:.0} to {high:.0} s per hour; the measured figure is {place}");
    }
    text
}

fn sentence(benefit: &Benefit) -> String {
    let part = human::percent(benefit.difference);
    match (benefit.verdict, benefit.why) {
        ("helped", _) => "Helped: stalls became fewer.".to_owned(),
        ("harmed", _) => "Harmed: stalls became more.".to_owned(),
        ("no_difference", _) => format!("No difference larger than {part}."),
        (_, why) => {
            let why = why.unwrap_or("the recordings do not answer it");
            match benefit.needs_minutes {
                Some(minutes) if benefit.switchback.is_some() => {
                    format!("Not enough: {why}. It needs {:.0} more minutes of blocks.", minutes.ceil())
                }
                Some(minutes) => {
                    format!("Not enough: {why}. It needs {:.0} more minutes after the change.", minutes.ceil())
                }
                None => format!("Not enough: {why}."),
            }
        }
    }
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
        // With a ramp, all settings of a step are written before those of the next.
        for write in setting.writes.iter().filter(|_| writes.steps.is_empty()) {
            let _ = writeln!(text, "  write {} to {}", write.value, write.path);
        }
    }
    if let Some(ramp) = &writes.ramp {
        crate::layout::hanging(&mut text, "Ramp   ", &ramp.why, WIDTH);
        let many = ramp.steps.len();
        for (at, (step, set)) in ramp.steps.iter().zip(&writes.steps).enumerate() {
            let _ = writeln!(text, "  Ramp step {} of {many}", at + 1);
            for write in set {
                let _ = writeln!(text, "    write {} to {}", write.value, write.path);
            }
            let then = match at + 1 == many {
                true => "Then floodline confirm keeps the change.".to_owned(),
                false => crate::ramp::watched(step, false),
            };
            crate::layout::hanging(&mut text, "    ", &then, WIDTH);
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
    let _ = writeln!(text, "  keep it, from a new login: {}", applied.keep);
    let _ = writeln!(text, "  undo it: {}", applied.undo);
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
    format!("change {} has ended: {}\n", done.id, done.text)
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
    fn an_open_verdict_says_what_it_needs() {
        let benefit = Benefit {
            verdict: "not_enough",
            why: Some("the stalls vary too much for this length"),
            needs_minutes: Some(6.2),
            difference: 0.2,
            before_stall_s_per_hour: Some(720.0),
            after_stall_s_per_hour: Some(500.0),
            ratio: Some((0.4, 0.7, 1.2)),
            matched_share: 0.9,
            any_load: false,
            predicted: Some((300.0, 450.0, false)),
            switchback: None,
        };
        let check = Check {
            what: "vm.dirty_bytes now".to_owned(),
            expected: "vm.dirty_bytes=1 vm.dirty_ratio=0".to_owned(),
            found: "vm.dirty_bytes=0 vm.dirty_ratio=20".to_owned(),
            is_met: false,
        };
        let text = verified(&Verified {
            schema: VERIFIED,
            id: Some(4),
            in_force: vec![check],
            dirty_limits: vec![],
            benefit: Some(benefit.clone()),
        });
        assert_eq!(
            text,
            "Is change 4 in force? No.\n  \
             differs  vm.dirty_bytes now: expected vm.dirty_bytes=1 vm.dirty_ratio=0, found vm.dirty_bytes=0 \
             vm.dirty_ratio=20\n\
             Did it help? Not enough: the stalls vary too much for this length. It needs\n             \
             7 more minutes after the change.\n  stall seconds per hour of writing: 720 before, 500 after\n  \
             after ÷ before: 0.70, interval 0.40 to 1.20, at like load\n  90 % of the time had others of like load\n  \
             predicted: 300 to 450 s per hour; the measured figure is outside\n"
        );
    }

    #[test]
    fn a_trial_by_turns_has_a_p_value() {
        let benefit = Benefit {
            verdict: "helped",
            why: None,
            needs_minutes: None,
            difference: 0.2,
            before_stall_s_per_hour: Some(720.0),
            after_stall_s_per_hour: Some(360.0),
            ratio: Some((0.4, 0.5, 0.7)),
            matched_share: 1.0,
            any_load: false,
            predicted: None,
            switchback: Some(Switchback { blocks: 6, p: Some(0.031_25) }),
        };
        let text = verified(&Verified {
            schema: VERIFIED,
            id: None,
            in_force: Vec::new(),
            dirty_limits: Vec::new(),
            benefit: Some(benefit),
        });
        assert_eq!(
            text,
            "Did it help? Helped: stalls became fewer.\n  stall seconds per hour of writing: 720 without the change, 360 \
             with it\n  with ÷ without: 0.50, interval 0.40 to 0.70\n  6 blocks with writing on both sides, exact \
             p-value 0.031\n"
        );
    }

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

    #[test]
    fn limits_that_differ_are_named_and_the_others_counted() {
        let limit = |cgroup: Option<&str>, expected_bytes: u64, found_bytes: u64| DirtyLimit {
            cgroup: cgroup.map(str::to_owned),
            expected_bytes,
            found_bytes,
            is_met: expected_bytes == found_bytes,
        };
        let text = dirty_limits(&[limit(None, 256 << 20, 256 << 20)]);
        assert_eq!(text, "  ok     dirty limit of the machine: 256 MiB, as expected within 10 %\n");
        let text = dirty_limits(&[
            limit(None, 256 << 20, 256 << 20),
            limit(Some("/a"), 1 << 20, 1 << 20),
            limit(Some("/b"), 12 << 20, 1 << 20),
        ]);
        assert_eq!(
            text,
            "  ok     dirty limits: 2 of 3 as expected (within 10 %), smallest 1.00 MiB\n  \
             differs  dirty limit of /b: expected 12.0 MiB, found 1.00 MiB\n"
        );
        let many: Vec<DirtyLimit> = (0..7).map(|_| limit(Some("/b"), 2, 1)).collect();
        assert!(dirty_limits(&many).ends_with("\n  and 2 more; --format json has all\n"));
        assert_eq!(dirty_limits(&[]), "");
    }
}
