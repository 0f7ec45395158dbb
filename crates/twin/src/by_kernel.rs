// SPDX-License-Identifier: MIT OR Apache-2.0
//! A move to another kernel on a host that wrote nothing: it has no twin, but the table of kernels says which finding a kernel ends.
//! Kworkers move the inodes of removed cgroups, and files that are only read have such inodes, too. Runs nothing.

use crate::changed::{NotChanged, unambiguous};
use crate::shown::verdicts;
use crate::{TwinError, beside};
use floodline_analysis::diagnose::switches::Cost;
use floodline_analysis::prediction::{Prediction, Setting};
use floodline_analysis::shown::behaviour_of;
use floodline_kernel::{Planned, is_modelled};
use floodline_record::window::Window;

/// The rule that the table of kernels can answer.
const RULE: &str = "inode-switch-storm";

/// The answer of the table; `None` if the recording lacks the finding, if the change names no kernel, or if the recording has a twin or
/// lacks one for another reason than `error`, that nothing was written.
///
/// # Errors
///
/// The change is in force already, or names a setting twice.
pub fn answer(window: &Window, settings: &[Setting], error: &TwinError) -> Result<Option<Prediction>, NotChanged> {
    let planned = settings.iter().find(|one| one.key == "kernel").and_then(|one| one.value.parse::<Planned>().ok());
    let now = window.facts.as_ref().and_then(|facts| facts.kernel);
    let (TwinError::Idle, Some(planned), Some(now)) = (error, planned, now) else { return Ok(None) };
    let then = planned.on(Some(now));
    let said = verdicts(window);
    let Some(seen) = said.seen.iter().find(|seen| seen.rule == RULE).cloned() else { return Ok(None) };
    if !is_modelled(then) {
        return Ok(None);
    }
    unambiguous(settings)?;
    if then == now {
        return Err(NotChanged::new(
            format!("nothing changes: kernel={then} is in force already"),
            "floodline explain inode-switch-storm names the kernels that have the fix",
        ));
    }
    let mut prediction = Prediction {
        kernel_then: then,
        recorded: said.seen.clone(),
        unjudged: Vec::new(),
        ..Prediction::new(settings.to_vec(), now)
    };
    let (list, effect, why) = match Cost::of(Some(behaviour_of(window, then))) {
        Cost::None => (&mut prediction.vanish, "It ends", "does not move the inodes of a removed cgroup"),
        Cost::Linear => {
            (&mut prediction.vanish, "It ends", "moves the inodes of a removed cgroup without sorting them")
        }
        _ => (&mut prediction.stay, "It does not end", "sorts the inodes of a removed cgroup as well"),
    };
    list.push(seen);
    let others = said.seen.iter().filter(|seen| seen.rule != RULE);
    prediction.not_reproduced = others.map(|seen| seen.rule).collect();
    prediction.headline = format!(
        "{effect} {RULE}, by the table of kernels: Linux {then} {why}. Nothing was written in the recording, so no figure is predicted."
    );
    prediction.notes = beside::of_kernel(settings, now);
    let beside = settings.iter().filter(|one| one.key != "kernel");
    prediction.notes.extend(beside.map(|one| format!("Not simulated: {}={}", one.key, one.value)));
    Ok(Some(prediction))
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_testkit::incidents::{inode_switch_fixed, inode_switch_storm};

    fn told(window: &Window, settings: &[(&str, &str)], error: &TwinError) -> Option<Prediction> {
        let settings: Vec<Setting> = settings.iter().map(|(key, value)| Setting::new(*key, value)).collect();
        answer(window, &settings, error).expect("a change")
    }

    #[test]
    fn a_kernel_with_the_fix_ends_the_storm_of_a_host_that_wrote_nothing() {
        let window = inode_switch_storm().window();
        for fixed in ["6.12.117", "6.12", "6.18"] {
            let prediction = told(&window, &[("kernel", fixed)], &TwinError::Idle).expect(fixed);
            assert_eq!(prediction.vanish.iter().map(|seen| seen.rule).collect::<Vec<_>>(), [RULE], "{fixed}");
            assert!(
                prediction.headline.starts_with("It ends inode-switch-storm, by the table of kernels: Linux 6.1"),
                "{prediction:?}"
            );
        }
        let without =
            told(&window, &[("kernel", "6.12.44"), ("vm.dirty_ratio", "5")], &TwinError::Idle).expect("an answer");
        assert_eq!((without.vanish.len(), without.stay.len()), (0, 1));
        assert!(without.headline.starts_with("It does not end inode-switch-storm"), "{}", without.headline);
        assert_eq!(without.notes, ["Not simulated: vm.dirty_ratio=5"]);
    }

    #[test]
    fn the_table_answers_nothing_else() {
        let window = inode_switch_storm().window();
        assert_eq!(told(&window, &[("vm.dirty_ratio", "5")], &TwinError::Idle), None, "no kernel");
        assert_eq!(told(&window, &[("kernel", "6.18")], &TwinError::NoFacts), None, "another reason");
        assert_eq!(told(&inode_switch_fixed().window(), &[("kernel", "6.18")], &TwinError::Idle), None, "no storm");
        let in_force = answer(&window, &[Setting::new("kernel", "6.12.43")], &TwinError::Idle);
        assert!(in_force.is_err_and(|error| error.to_string().contains("in force already")));
    }
}
