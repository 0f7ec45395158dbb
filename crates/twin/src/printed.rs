// SPDX-License-Identifier: MIT OR Apache-2.0
//! The change that a plan of `doctor` prints, as settings, and what `doctor` says of it: advised, a candidate, or withheld.

use crate::changed::of_steps;
use floodline_analysis::prediction::Setting;
use floodline_analysis::report::{Plan, Step};
use floodline_analysis::tried::MAY_HARM;

/// What `doctor` says of the change of a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Said {
    /// There is no change.
    #[default]
    Nothing,
    /// The trial shows that it helps: printed as a change to make now.
    Now,
    /// Printed as a change to make now, because it follows from arithmetic. The trial gave no verdict.
    Exact,
    /// A candidate: the trial gave no verdict.
    Unchecked,
    /// A candidate: the trial shows that it helps some, and does not show that no other waits longer.
    Doubtful,
    /// Withheld: the trial shows no benefit.
    Useless,
    /// Withheld: the trial shows harm.
    Harmful,
    /// It takes a reboot.
    Later,
}

impl Said {
    /// The word in a table.
    pub fn word(self) -> &'static str {
        match self {
            Said::Nothing => "no change",
            Said::Now => "now",
            Said::Exact => "now, by arithmetic",
            Said::Unchecked => "candidate, not checked",
            Said::Doubtful => "candidate, a wait is open",
            Said::Useless => "withheld, does not help",
            Said::Harmful => "withheld, harms",
            Said::Later => "later",
        }
    }

    /// Whether the change is advised without reserve.
    pub fn is_now(self) -> bool {
        matches!(self, Said::Now | Said::Exact)
    }

    /// Whether the commands of the change are not printed as commands.
    pub fn is_withheld(self) -> bool {
        matches!(self, Said::Useless | Said::Harmful)
    }
}

/// The change of a plan.
#[derive(Clone, Debug, Default)]
pub struct Printed {
    /// Its settings. Moves to another kernel or cgroup hierarchy only if there is nothing else.
    pub settings: Vec<Setting>,
    /// Its steps that no setting stands for, and the moves beside other settings.
    pub others: Vec<String>,
    /// What `doctor` says of it.
    pub said: Said,
}

/// The change of a plan after its trial. `untried` is the plan before the trial: it has the steps of a change that is withheld.
pub fn printed(plan: Option<&Plan>, untried: Option<&Plan>) -> Printed {
    let Some(plan) = plan else { return Printed::default() };
    let withheld = plan.tried.as_ref().filter(|tried| !tried.withheld.is_empty());
    let steps: &[Step] = match (withheld, untried) {
        (Some(_), Some(untried)) => &untried.steps,
        _ => &plan.steps,
    };
    let (settings, mut others) = of_steps(steps);
    let is_move = |setting: &Setting| matches!(setting.key.as_str(), "kernel" | "cgroup");
    let (moves, now): (Vec<Setting>, Vec<Setting>) = settings.into_iter().partition(is_move);
    let is_later = now.is_empty();
    if !is_later {
        others.extend(moves.iter().map(|setting| format!("{} {}", setting.key, setting.value)));
    }
    let settings = if is_later { moves } else { now };
    let verdict = plan.tried.as_ref().map(|tried| tried.verdict);
    let said = match (settings.is_empty(), is_later, verdict, plan.candidate.is_some()) {
        (true, ..) => Said::Nothing,
        (_, true, ..) => Said::Later,
        (_, _, Some("harms" | MAY_HARM), _) => Said::Harmful,
        (_, _, Some("helps"), true) => Said::Doubtful,
        (_, _, Some("helps"), false) => Said::Now,
        (_, _, Some(_), _) => Said::Useless,
        (_, _, None, true) => Said::Unchecked,
        (_, _, None, false) => Said::Exact,
    };
    Printed { settings, others, said }
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_analysis::diagnose::diagnose;
    use floodline_analysis::tried::arithmetic_only;
    use floodline_testkit::incidents;

    #[test]
    fn a_change_without_a_trial_is_a_candidate_and_one_by_arithmetic_is_not() {
        let said = |mut plan: Plan| {
            arithmetic_only(&mut plan, "it was not tried");
            printed(Some(&plan), None).said
        };
        let plan = |fixture: floodline_testkit::Fixture| diagnose(&fixture.window(), None).plan.expect("a plan");
        assert_eq!(said(plan(incidents::dirty_cliff())), Said::Unchecked);
        assert_eq!(said(plan(incidents::starved_budget())), Said::Exact);
        assert_eq!(printed(None, None).said, Said::Nothing);
    }

    #[test]
    fn a_move_is_a_change_of_its_own_only_where_nothing_else_is() {
        let step = |write: &str, value: &str| Step {
            write: write.to_owned(),
            value: value.to_owned(),
            undo: String::new(),
            command: String::new(),
            when: floodline_analysis::report::When::Later,
        };
        let to_v2 = || step("kernel command line", "cgroup v2");
        let of = |steps: Vec<Step>| printed(Some(&Plan { steps, ..Plan::default() }), None);
        let alone = of(vec![to_v2()]);
        assert_eq!(
            (alone.said, alone.settings, alone.others.len()),
            (Said::Later, vec![Setting::new("cgroup", "v2")], 0)
        );
        let beside = of(vec![step("/proc/sys/vm/dirty_bytes", "67108864"), to_v2()]);
        assert_eq!(beside.settings, [Setting::new("vm.dirty_bytes", "67108864")]);
        assert_eq!(beside.others, ["cgroup v2"]);
    }
}
