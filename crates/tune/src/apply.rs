// SPDX-License-Identifier: MIT OR Apache-2.0
//! Applies a plan: checks, journal, guard, writes. Until the guard is ready nothing is written. A write that fails, or a
//! guard that dies, puts everything back.

use crate::boot::{self, Tree};
use crate::error::TuneError;
use crate::guard;
use crate::guard::wire::{self, Client};
use crate::host::boottime;
use crate::journal::{Entry, Journal, Lock, Phase, Planned, Who, Why, sha256};
use crate::knob::{Knob, KnobError, NAMES, near};
use crate::manager::managers;
use crate::ramp::{self, Memory};
use crate::recover::{Settled, Site, as_root, by_hand, restore, shown};
use crate::slot::{Live, Slot};
use crate::staged::{self, Stage};
use crate::{journald, persist, rollback};
use floodline_analysis::change::{Boot, Change, ChangePlan, Fingerprint, SCHEMA};
use floodline_record::human;
use std::io;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Time that the guard has for an answer.
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// Time that the guard has to put everything back and to write its journal.
const GUARD_MAX: Duration = Duration::from_secs(30);

/// Hint after a plan that does not fit the host.
pub(crate) const NEW_PLAN: &str = "make a new plan: floodline advise host.flr -o plan.json";
/// Hint before [`NEW_PLAN`] where the recording is another host's or too old.
const NEW_RECORDING: &str = "record this host: floodline record --for 1m -o host.flr";

/// What is asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The plan.
    pub plan: ChangePlan,
    /// Time in which it must be confirmed.
    pub within: Duration,
    /// Whether it is to survive a reboot.
    pub persist: bool,
    /// Command that must go on succeeding.
    pub probe: Option<String>,
    /// Whether the steps of the plan's ramp are left out.
    pub at_once: bool,
}

/// A plan that may be applied: checked against the host, and not written yet.
#[derive(Debug)]
pub struct Prepared {
    /// Settings in the order of their writes.
    pub slots: Vec<Slot>,
    /// Changes that were finished first.
    pub settled: Vec<Settled>,
    /// Files that a confirmation would write.
    pub files: Vec<(String, String)>,
    /// What people have to know before they make the change.
    pub warning: Option<String>,
    /// Steps after which the host is watched, and the last one. Empty if the change is made at once.
    pub stages: Vec<Stage>,
    /// `None` for a trial, which changes nothing.
    lock: Option<Lock>,
}

/// A change that waits for its confirmation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// Number of the change.
    pub id: u32,
    /// Settings, each as old and new `NAME=VALUE`.
    pub set: Vec<(String, String)>,
    /// Time left to confirm it.
    pub left: Duration,
}

/// A plan of settings given by hand.
pub fn plan_of(site: &Site, sets: &[String]) -> Result<ChangePlan, TuneError> {
    let changes = sets.iter().map(|set| {
        let (knob, new) = set.split_once('=').ok_or_else(|| {
            TuneError::refused(format!("invalid setting {set:?}: expected NAME=VALUE"))
                .hint("for example vm.dirty_bytes=268435456")
        })?;
        let knob = knob.trim().to_owned();
        let resolved = Knob::resolve(&site.host, &knob).map_err(of_knob)?;
        let new = in_bytes(&knob, new.trim());
        let old = Slot::read(&site.host, &resolved, new.clone())
            .ok()
            .and_then(|slot| resolved.place().and_then(|place| slot.old.get(place).cloned()));
        Ok(Change { knob: resolved.written.name, old, new, in_force: None })
    });
    let changes = changes.collect::<Result<Vec<Change>, TuneError>>()?;
    let boot = at_boot(site, &changes);
    Ok(ChangePlan {
        schema: SCHEMA.to_owned(),
        fingerprint: site.host.fingerprint(),
        changes,
        rules: Vec::new(),
        evidence: Vec::new(),
        expected: Vec::new(),
        arithmetic_only: Some("the values were given on the command line".to_owned()),
        longest_pause_s: 0.2,
        endpoint: "stall_seconds_per_hour".to_owned(),
        boot,
        undo: Vec::new(),
        ramp: None,
    })
}

/// Values that the first program which applies settings at boot gives these knobs. Knobs that no line of a file sets are left out.
fn at_boot(site: &Site, changes: &[Change]) -> Vec<Boot> {
    let outcomes = boot::outcomes(&site.host, &Tree::read(&site.host));
    outcomes.first().map(|outcome| set_at_boot(&outcome.boot, changes)).unwrap_or_default()
}

/// What these settings of a boot are for the knobs of a change: of a bytes/ratio pair the member that is in force, once.
fn set_at_boot(after: &boot::Boot, changes: &[Change]) -> Vec<Boot> {
    let mut found: Vec<Boot> = Vec::new();
    for change in changes {
        let key = change.knob.strip_prefix("vm.").map(|name| format!("vm/{name}"));
        let Some((key, value, by)) = key.as_ref().and_then(|key| after.in_force(key)) else { continue };
        let boot = Boot { knob: key.replace('/', "."), value: value.to_string(), by: by.to_owned() };
        if !found.contains(&boot) {
            found.push(boot);
        }
    }
    found
}

/// A value as the kernel takes it: 64M of a knob in bytes becomes 67108864. All else is left to the knob.
fn in_bytes(knob: &str, value: &str) -> String {
    let is_bytes = ["_bytes", "memory.high", "memory.max"].iter().any(|end| knob.ends_with(end));
    let shift = match value.chars().last() {
        Some('K' | 'k') => 10,
        Some('M' | 'm') => 20,
        Some('G' | 'g') => 30,
        Some('T' | 't') => 40,
        _ => return value.to_owned(),
    };
    let digits = value.get(..value.len() - 1).and_then(|digits| digits.parse::<u64>().ok());
    match digits.and_then(|digits| digits.checked_mul(1 << shift)) {
        Some(bytes) if is_bytes => bytes.to_string(),
        _ => value.to_owned(),
    }
}

fn of_knob(error: KnobError) -> TuneError {
    let told = TuneError::refused(&error);
    match error {
        KnobError::Unknown { name } => match near(&name) {
            Some(near) => told.hint(format!("did you mean {near}?")),
            None => told.hint(format!("knobs: {NAMES}")),
        },
        KnobError::Value { .. } => told.hint("nothing was changed; give a value that the kernel takes"),
    }
}

/// Checks a plan against the host. Nothing is written.
pub fn prepare(site: &Site, request: &Request, is_trial: bool) -> Result<Prepared, TuneError> {
    let host = &site.host;
    if !host.is_imitated() && !is_trial && !rustix::process::geteuid().is_root() {
        return Err(TuneError::refused("only root can change settings of the host").hint(as_root()));
    }
    check_plan(site, &request.plan)?;
    if let Some(manager) = managers(host).into_iter().next() {
        return Err(TuneError::refused(format!("{}: it would fight with the change", manager.text)).hint(manager.hint));
    }
    // A trial reads: it makes no folder and finishes no change.
    let (lock, settled) = match is_trial {
        true => (None, Vec::new()),
        false => {
            let lock = site.store()?.lock()?.ok_or_else(|| {
                TuneError::refused("another floodline changes this host").hint("try again when it has ended")
            })?;
            (Some(lock), site.settle()?)
        }
    };
    if let Some(pending) = site.journals()?.into_iter().find(|journal| journal.phase().is_pending()) {
        return Err(TuneError::refused(format!("change {} waits for its confirmation", pending.id))
            .hint(format!("keep it, from a new login: {}", site.command("confirm")))
            .hint(format!("or undo it: {}", site.command(&format!("rollback {}", pending.id)))));
    }
    let ramp = request.plan.ramp.as_ref().filter(|_| !request.at_once);
    let mut slots = slots(site, &request.plan, ramp.is_some())?;
    if slots.is_empty() {
        return Err(TuneError::refused("nothing to change: every value of the plan is in force")
            .hint(format!("{} shows whether it stays in force after a reboot", site.command("verify"))));
    }
    let memory = Memory::read(host);
    let warning = memory.as_ref().and_then(|memory| ramp::void_background(&slots, memory));
    let stages = ramp.map_or_else(|| Ok(Vec::new()), |ramp| staged::stages(host, ramp, &mut slots))?;
    ramp::plan(&mut slots, memory);
    // What is written first is put back last: nothing waits for a restart of journald.
    slots.sort_by_key(|slot| !slot.is_journald());
    for slot in slots.iter().filter(|slot| slot.is_journald()) {
        let value = slot.writes.last().map(|write| write.value.as_str()).unwrap_or_default();
        if let Some(why) = journald::refusal(host, false, value) {
            return Err(TuneError::refused(why).hint("change that file, or remove its line"));
        }
    }
    let files = persist::render(host, &slots)
        .map(|files| files.into_iter().map(|file| (format!("/{}", file.path), file.after)).collect::<Vec<_>>());
    let files = match (request.persist, files) {
        (false, _) => Vec::new(),
        (true, Err(why)) => {
            return Err(TuneError::refused(format!("cannot keep the change over a reboot: {why}"))
                .hint("apply it without --persist"));
        }
        (true, Ok(files)) => {
            if let Some(why) = persist::refusal(host) {
                let told = TuneError::refused(why)
                    .hint("apply it without --persist, and put this into the image of the host:");
                return Err(files.iter().fold(told, |told, (path, text)| {
                    told.hint(format!("{path}: {}", text.lines().skip(1).collect::<Vec<_>>().join(", ")))
                }));
            }
            files
        }
    };
    if let Some(probe) = &request.probe {
        let ran = Command::new("sh")
            .args(["-c", probe])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        if !ran.is_ok_and(|status| status.success()) {
            return Err(TuneError::refused(format!("the probe fails already, before the change: {probe}"))
                .hint("give a command that succeeds on this host"));
        }
    }
    Ok(Prepared { slots, settled, files, warning, stages, lock })
}

/// What of a plan does not fit the host.
fn check_plan(site: &Site, plan: &ChangePlan) -> Result<(), TuneError> {
    if plan.schema != SCHEMA {
        return Err(TuneError::refused(format!(
            "the plan has schema {:?}; this program applies {SCHEMA}",
            plan.schema
        ))
        .hint("use the version of floodline that wrote the plan")
        .hint(NEW_PLAN));
    }
    if !(plan.longest_pause_s.is_finite() && plan.longest_pause_s > 0.0) {
        return Err(TuneError::refused("the plan has no valid longest_pause_s").hint(NEW_PLAN));
    }
    let Fingerprint { hostname, kernel, boot_id, mem_total_bytes } = site.host.fingerprint();
    let text = |bytes: Option<u64>| bytes.map(|bytes| human::bytes(bytes as f64));
    let print = &plan.fingerprint;
    for (what, planned, found) in
        [("host", &print.hostname, hostname), ("kernel", &print.kernel, kernel), ("boot", &print.boot_id, boot_id)]
    {
        if planned.is_some() && *planned != found {
            let (planned, found) = (planned.clone().unwrap_or_default(), found.unwrap_or_else(|| "unknown".to_owned()));
            return Err(TuneError::refused(format!(
                "the plan was made for another {what}: {planned:?}, found {found:?}"
            ))
            .hint(NEW_RECORDING)
            .hint(NEW_PLAN));
        }
    }
    if print.mem_total_bytes.is_some() && print.mem_total_bytes != mem_total_bytes {
        let shown = |bytes| text(bytes).unwrap_or_else(|| "an unknown amount".to_owned());
        return Err(TuneError::refused(format!(
            "the plan was made for a host with {} of memory; this host has {}",
            shown(print.mem_total_bytes),
            shown(mem_total_bytes)
        ))
        .hint(NEW_RECORDING)
        .hint(NEW_PLAN));
    }
    Ok(())
}

/// The reason why the file of a knob is absent, and the command that lists what the host has.
fn absence(knob: &str) -> &'static str {
    match knob.split_once('/') {
        Some(("cgroup", _)) => "no such cgroup v2, or its controller is off here: systemd-cgls shows what there is",
        Some(("bdi", _)) => "no such device, or an older kernel: ls /sys/class/bdi shows what there is",
        Some(("queue" | "loop", _)) => "no such disk, or an older kernel: lsblk shows what there is",
        _ => "this kernel or host does not have it",
    }
}

/// The settings of a plan as they are now, without those that are in force already. The steps of a ramp begin at the values
/// that the plan was made at, so `has_ramp` refuses others.
fn slots(site: &Site, plan: &ChangePlan, has_ramp: bool) -> Result<Vec<Slot>, TuneError> {
    let host = &site.host;
    let mut slots: Vec<Slot> = Vec::new();
    for change in &plan.changes {
        let knob = Knob::resolve(host, &change.knob).map_err(of_knob)?;
        // Of a pair, the member that is not in force reads 0: setting the other one does that.
        if knob.is_pair()
            && change.new.trim() == "0"
            && plan.changes.iter().any(|other| is_partner(&knob, change, other))
        {
            continue;
        }
        let value = knob.canonical(&change.new).map_err(of_knob)?;
        let slot = Slot::read(host, &knob, value).map_err(|error| {
            let name = &change.knob;
            let told = TuneError::refused(format!("cannot read {name}: {error}"));
            match error.kind() {
                io::ErrorKind::NotFound => told.hint(absence(name)).hint(NEW_PLAN),
                _ => told.hint(as_root()),
            }
        })?;
        if let (Some(old), Some(place)) = (&change.old, knob.place())
            && slot.old.get(place).is_some_and(|found| found != old.trim())
        {
            let found = slot.old.get(place).cloned().unwrap_or_default();
            return Err(TuneError::refused(format!(
                "{} is {found}, and was {old} when the plan was made",
                change.knob
            ))
            .hint(NEW_RECORDING)
            .hint(NEW_PLAN));
        }
        if let Some(planned) = change.in_force.as_ref().filter(|planned| has_ramp && **planned != slot.old_shown()) {
            return Err(moved(&slot.old_shown(), planned));
        }
        if slots.iter().any(|other| other.attributes.first() == slot.attributes.first()) {
            return Err(TuneError::refused(format!(
                "the plan sets {} twice, perhaps as bytes and as a ratio",
                change.knob
            ))
            .hint("keep one of them"));
        }
        if slot.wanted().as_ref() != Some(&slot.old) {
            slots.push(slot);
        }
    }
    Ok(slots)
}

/// Refuses a ramp whose first step begins at another value, each as `NAME=VALUE`.
fn moved(now: &str, planned: &str) -> TuneError {
    let now = now.replacen('=', " is ", 1);
    TuneError::refused(format!("{now} now, the plan was made at {planned}"))
        .hint(NEW_RECORDING)
        .hint(NEW_PLAN)
        .hint("or make the change in one step: add --at-once")
}

/// Whether another change of a plan sets the other member of a pair.
fn is_partner(knob: &Knob, change: &Change, other: &Change) -> bool {
    other.knob != change.knob
        && other.new.trim() != "0"
        && knob.state.iter().any(|attribute| attribute.name == other.knob.replacen("vm/", "vm.", 1))
}

/// A change whose guard is ready, and of which nothing is written yet.
pub(crate) struct Begun {
    pub(crate) journal: Journal,
    pub(crate) client: Client,
    pub(crate) lock: Option<Lock>,
}

/// Writes the journal of a plan that was prepared, and starts its guard.
pub(crate) fn begin(site: &Site, request: &Request, prepared: Prepared) -> Result<Begun, TuneError> {
    let store = site.store()?;
    let json = serde_json::to_vec(&request.plan).unwrap_or_default();
    // The watching comes on top of the time to confirm. What a write waits for does not.
    let within = request.within.saturating_add(staged::watching(&prepared.stages));
    let within = u64::try_from(within.as_nanos()).unwrap_or(u64::MAX);
    let planned = Planned {
        id: 0,
        boot_id: site.host.fingerprint().boot_id,
        deadline_ns: boottime().saturating_add(within),
        who: Who::here(),
        plan_sha256: sha256(&json),
        plan: request.plan.clone(),
        slots: prepared.slots,
        persist: request.persist,
        probe: request.probe.clone(),
    };
    let mut journal = store.create(planned)?;
    let client = guard::start(&site.host, &site.state, journal.id).map_err(|error| {
        let _ = journal.append(Entry::PutBack { why: Why::NeverStarted, outcomes: Vec::new(), took_ns: None });
        TuneError::refused(format!("{error}; nothing was changed"))
            .hint("print the writes: add --dry-run instead of --yes")
    })?;
    Ok(Begun { journal, client, lock: prepared.lock })
}

/// Writes a plan that was prepared. `tell` is called before each step of several.
pub fn run(
    site: &Site,
    request: &Request,
    prepared: Prepared,
    mut tell: impl FnMut(&Stage),
) -> Result<Applied, TuneError> {
    let stages = prepared.stages.clone();
    let mut begun = begin(site, request, prepared)?;
    let slots = begun.journal.planned.slots.clone();
    let watched = stages.split_last().map_or(&[][..], |(_, watched)| watched);
    for stage in watched {
        tell(stage);
        let set = of_step(&slots, stage.step);
        if let Err(why) = write_all(site, &set, &mut begun.journal, &begun.client) {
            return Err(fail(site, begun, &why));
        }
        let present = staged::present(&site.host, &slots, stage.step);
        if let Err(why) = staged::watch(&site.host, stage, || begun.client.is_guarding()) {
            let cause = if begun.client.is_guarding() { Why::BoundBroken } else { Why::GuardGone };
            return Err(fail_for(site, begun, &why, cause));
        }
        if let Err(why) = staged::is_still(&site.host, &slots, &present) {
            return Err(fail_for(site, begun, &why, Why::ValueChanged));
        }
    }
    let rest = match stages.last().filter(|_| !watched.is_empty()) {
        Some(last) => {
            tell(last);
            of_step(&slots, last.step)
        }
        None => slots,
    };
    if let Err(why) = write_all(site, &rest, &mut begun.journal, &begun.client) {
        return Err(fail(site, begun, &why));
    }
    if let Err(error) = begun.journal.append(Entry::Applied) {
        return Err(fail(site, begun, &error.to_string()));
    }
    match begun.client.ask(wire::APPLIED, ANSWER_MAX) {
        Ok(answer) if answer == wire::WAITING => {}
        _ => return Err(fail(site, begun, "the guard ended")),
    }
    let Begun { journal, .. } = begun;
    let set = journal.planned.slots.iter().map(|slot| (slot.old_shown(), slot.new_shown())).collect();
    let left = Duration::from_nanos(journal.planned.deadline_ns.saturating_sub(boottime()));
    Ok(Applied { id: journal.id, set, left })
}

/// The slots that one step of a ramp sets, with its writes only, in order.
pub fn of_step(slots: &[Slot], step: usize) -> Vec<Slot> {
    let of = |slot: &Slot| {
        let writes = slot.writes.iter().filter(|write| write.step == step).cloned().collect();
        Slot { writes, ..slot.clone() }
    };
    slots.iter().map(of).filter(|slot| !slot.writes.is_empty()).collect()
}

/// Writes every value and reads it back.
pub(crate) fn write_all(site: &Site, slots: &[Slot], journal: &mut Journal, client: &Client) -> Result<(), String> {
    let patience = ramp::patience(Duration::from_nanos(journal.planned.deadline_ns.saturating_sub(boottime())));
    for slot in slots {
        let live =
            Live::open(&site.host, slot).map_err(|error| format!("cannot open {}: {error}", slot.new_shown()))?;
        for write in &slot.writes {
            ramp::wait(&site.host, slot, write, patience, || client.is_guarding());
            if !client.is_guarding() {
                return Err("the guard ended".to_owned());
            }
            let set = format!("{}={}", slot.name(write), write.value);
            let journald = slot.is_journald().then(|| journald::process(&site.host)).flatten();
            live.write(write).map_err(|error| format!("cannot write {set}: {error}"))?;
            let reading = live.values().map_err(|error| format!("cannot read {set} back: {error}"))?;
            if journald.is_some() && !journald::is_replaced(&site.host, journald) {
                return Err(format!("{set} was written, and journald did not start again"));
            }
            if slot.is_exact && reading != slot.after(write) {
                return Err(format!("{set} was written, and {} was read back", reading.join(" ")));
            }
            journal.note(Entry::Wrote { set, reading }).map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}

/// Hint after a change that did harm.
const NO_REPEAT: &str =
    "do not repeat the change, also not in one step, before floodline doctor shows what the tasks waited for";
/// Hint after a step during which a value was changed.
const OTHER_PROGRAM: &str = "find the program that set it, and make a new plan";

/// Makes the guard restore all values after a write that failed. Returns an error with the state of the host.
pub(crate) fn fail(site: &Site, begun: Begun, why: &str) -> TuneError {
    fail_for(site, begun, why, Why::WriteFailed)
}

/// Makes the guard restore all values, and the journal record the cause. Returns an error with the state of the host.
fn fail_for(site: &Site, begun: Begun, why: &str, cause: Why) -> TuneError {
    let Begun { mut journal, mut client, lock } = begun;
    // A guard that puts back by itself waits for the end of this lock.
    drop(lock);
    let word = match cause {
        Why::BoundBroken => wire::BROKEN,
        Why::ValueChanged => wire::CHANGED,
        _ => wire::RESTORE,
    };
    let _ = client.ask(word, GUARD_MAX);
    drop(client);
    let started = Instant::now();
    while started.elapsed() < GUARD_MAX && site.is_guarded(journal.id) {
        std::thread::sleep(Duration::from_millis(20));
    }
    // What the guard has done already is found unchanged.
    let outcomes = restore(&site.host, &journal.planned);
    let _ = journal.refresh();
    if journal.phase().is_pending() {
        let _ = journal.append(Entry::PutBack { why: cause.clone(), outcomes: outcomes.clone(), took_ns: None });
    }
    let because = match journal.phase() {
        Phase::Ended(reason) if reason != cause => {
            format!("{why}: {}", rollback::because(&reason))
        }
        _ => why.to_owned(),
    };
    let text = format!("{because}; {}", shown(&journal.planned, &outcomes));
    if outcomes.iter().all(|outcome| outcome.is_undone()) {
        let told = TuneError::put_back(text).hint(site.listed());
        match journal.phase() {
            Phase::Ended(Why::BoundBroken | Why::Pressure | Why::LongPause | Why::Probe) => told.hint(NO_REPEAT),
            Phase::Ended(Why::ValueChanged) => told.hint(OTHER_PROGRAM),
            _ => told,
        }
    } else {
        TuneError::not_put_back(text).hint(format!("set the old values by hand: {}", by_hand(&journal.planned)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boot::Assignment;

    #[test]
    fn a_plan_names_the_member_of_a_pair_that_boot_leaves_in_force() {
        let line = |key: &str, value: &str, by: &str| Assignment {
            key: key.to_owned(),
            value: value.to_owned(),
            by: by.to_owned(),
        };
        let after = boot::Boot::after(&[
            line("vm/dirty_ratio", "15", "/etc/sysctl.d/1.conf:1"),
            line("vm/dirty_expire_centisecs", "1500", "/etc/sysctl.d/1.conf:2"),
        ]);
        let change = |knob: &str| Change { knob: knob.to_owned(), old: None, new: "1".to_owned(), in_force: None };
        let knobs = ["vm.dirty_bytes", "vm.dirty_ratio", "vm.dirty_expire_centisecs", "vm.dirty_writeback_centisecs"];
        let told = |knobs: &[&str]| {
            let changes: Vec<Change> = knobs.iter().map(|knob| change(knob)).collect();
            let told = |boot: Boot| format!("{} {}={}", boot.by, boot.knob, boot.value);
            set_at_boot(&after, &changes).into_iter().map(told).collect::<Vec<_>>()
        };
        let ratio = "/etc/sysctl.d/1.conf:1 vm.dirty_ratio=15".to_owned();
        assert_eq!(told(&knobs[..1]), std::slice::from_ref(&ratio));
        assert_eq!(told(&knobs), [ratio, "/etc/sysctl.d/1.conf:2 vm.dirty_expire_centisecs=1500".to_owned()]);
    }
}
