// SPDX-License-Identifier: MIT OR Apache-2.0
//! Is a change in force? The value of each setting now, and what each program would set at boot, each expected against
//! found. Whether the change helped is the question of [`crate::benefit`].

use crate::boot::{self, Tree};
use crate::error::TuneError;
use crate::host::Host;
use crate::journal::{Journal, Phase};
use crate::journald;
use crate::persist::{UDEV, contradiction, render};
use crate::recover::Site;
use crate::rollback::because;
use crate::slot::{Live, Slot};

/// One thing that was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What was checked, such as `vm.dirty_bytes now`.
    pub what: String,
    /// Wanted value.
    pub expected: String,
    /// Found value, or why there is none.
    pub found: String,
    /// Whether they agree. Of boot, only a change that was to be kept is expected to.
    pub is_met: bool,
}

/// A change, and what of it is in force.
#[derive(Debug)]
pub struct InForce {
    /// Its journal.
    pub journal: Journal,
    /// What was checked.
    pub checks: Vec<Check>,
}

/// Checks a change: of a number, or the last one that is in force.
pub fn in_force(site: &Site, id: Option<u32>) -> Result<InForce, TuneError> {
    let found = site.find(id, |phase| phase.is_pending() || phase.is_confirmed())?;
    let Some(journal) = found else {
        return Err(TuneError::refused("no change is in force").hint(site.listed()));
    };
    if let Phase::Ended(why) = journal.phase() {
        return Err(
            TuneError::refused(format!("change {} is not in force: {}", journal.id, because(&why))).hint(site.listed())
        );
    }
    let mut checks: Vec<Check> = journal.planned.slots.iter().map(|slot| now(&site.host, slot)).collect();
    if journal.phase() == Phase::Persisted {
        checks.extend(at_boot(&site.host, &journal.planned.slots));
    }
    Ok(InForce { journal, checks })
}

fn now(host: &Host, slot: &Slot) -> Check {
    if slot.is_journald() {
        return of_journald(host, slot, false);
    }
    let values = Live::open(host, slot).and_then(|live| live.values());
    let name = slot.writes.last().map(|write| slot.name(write)).unwrap_or_default();
    let shown = |values: &[String]| {
        let named = slot.attributes.iter().zip(values);
        named.map(|(attribute, value)| format!("{}={value}", attribute.name)).collect::<Vec<_>>().join(" ")
    };
    let (is_met, found) = match (&values, slot.wanted()) {
        (Ok(values), Some(wanted)) => (*values == wanted, shown(values)),
        // Views of one number: that it is not the old one any more is all that can be compared.
        (Ok(values), None) => (*values != slot.old, shown(values)),
        (Err(error), _) => (false, format!("cannot be read: {error}")),
    };
    let expected = slot.wanted().map_or_else(|| slot.new_shown(), |wanted| shown(&wanted));
    Check { what: format!("{name} now"), expected, found, is_met }
}

/// What journald reads when it starts, now or at boot.
fn of_journald(host: &Host, slot: &Slot, at_boot: bool) -> Check {
    let found = journald::storage(host, at_boot, &[]);
    let wanted = slot.writes.last().map(|write| write.value.clone()).unwrap_or_default();
    let by = found.by.map(|path| format!(", by /{path}")).unwrap_or_default();
    Check {
        what: format!("{} {}", journald::KNOB, if at_boot { "at boot" } else { "now" }),
        expected: slot.new_shown(),
        is_met: found.value == wanted || wanted == journald::UNSET,
        found: format!("{}={}{by}", journald::KNOB, found.value),
    }
}

fn at_boot(host: &Host, slots: &[Slot]) -> Vec<Check> {
    let mut checks = Vec::new();
    for outcome in boot::outcomes(host, &Tree::read(host)) {
        for slot in slots.iter().filter(|slot| slot.new_shown().starts_with("vm.")) {
            let why = contradiction(&outcome, slot);
            let expected = slot.new_shown();
            let found = why.clone().unwrap_or_else(|| expected.clone());
            let what =
                format!("{} at boot, by {}", expected.split('=').next().unwrap_or_default(), outcome.applier.name());
            checks.push(Check { what, expected, found, is_met: why.is_none() });
        }
    }
    checks.extend(slots.iter().filter(|slot| slot.is_journald()).map(|slot| of_journald(host, slot, true)));
    let is_rule = |slot: &&Slot| !slot.new_shown().starts_with("vm.") && !slot.is_journald();
    let rules: Vec<Slot> = slots.iter().filter(is_rule).cloned().collect();
    let text = host.read(UDEV).unwrap_or_default();
    for file in render(host, &rules).unwrap_or_default() {
        for line in file.after.lines().filter(|line| line.starts_with("ACTION")) {
            let is_met = text.lines().any(|found| found == line);
            let found = if is_met { line } else { "no such line" };
            let what = format!("udev rule in /{UDEV}");
            checks.push(Check { what, expected: line.to_owned(), found: found.to_owned(), is_met });
        }
    }
    checks
}
