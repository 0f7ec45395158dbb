// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ramp of a plan as text: why it has its steps, what each of them sets, how long to watch after it, and what must hold
//! then. `advise`, `doctor` and `apply` share it.

use crate::layout::{command, hanging};
use floodline_analysis::change::{Bound, IO_SOME_SHARE, Ramp, RampStep};
use floodline_record::human;
use std::fmt::Write as _;

/// Columns of the label and of the numbers.
const LABEL: &str = "Ramp   ";

/// The ramp, beginning with a label of its own.
pub fn text(out: &mut String, ramp: &Ramp, width: usize) {
    hanging(out, LABEL, &ramp.why, width);
    steps(out, ramp, 2, width);
}

/// The steps of a ramp, a number each. A single step is the change itself: only what to watch is said.
pub fn steps(out: &mut String, ramp: &Ramp, indent: usize, width: usize) {
    let lead = " ".repeat(indent);
    let many = ramp.steps.len();
    for (at, step) in ramp.steps.iter().enumerate() {
        if many > 1 {
            let _ = writeln!(out, "{lead}Ramp step {} of {many}", at + 1);
            command(out, indent + 2, &step.set.join(" "), width);
        }
        hanging(out, &format!("{lead}  "), &watched(step, at + 1 == many), width);
    }
}

/// What to do after a step: `Watch for 40 s. Go on if tasks wait for I/O in at most 20 % of the time.`
pub fn watched(step: &RampStep, is_last: bool) -> String {
    let seconds = human::seconds(step.watch_s);
    let then = if is_last { "Confirm" } else { "Go on" };
    let holds: Vec<String> = step.go_on_if.iter().map(held).collect();
    if holds.is_empty() {
        return format!("Watch the host for {seconds}; floodline checks no bound here.");
    }
    format!("Watch for {seconds}. {then} if {}.", holds.join(" and "))
}

/// Which command makes the steps of a plan of these rules. The commands that `doctor` prints make the change at once.
pub fn made_by(rules: &[&str], steps: usize) -> String {
    match rules {
        [] => String::new(),
        _ if steps < 2 => String::new(),
        [rule] => {
            format!("The commands above make the change at once. floodline apply --finding {rule} makes these steps.")
        }
        many => format!(
            "The commands above make the change at once. floodline apply --finding RULE makes the steps of one finding: {}.",
            many.join(", ")
        ),
    }
}

/// One figure and its bound. The name of a figure comes from a file.
fn held(bound: &Bound) -> String {
    match bound.figure.as_str() {
        IO_SOME_SHARE => format!("tasks wait for I/O in at most {} of the time", human::percent(bound.at_most)),
        floodline_analysis::prediction::PEAK => format!("at most {} are at risk", human::bytes(bound.at_most)),
        other => format!("{other} is at most {}", human::number(bound.at_most)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_that_makes_the_steps_is_named() {
        let of = |rules: &[&str], steps| made_by(rules, steps);
        assert!(of(&["dirty-cliff"], 2).ends_with(" floodline apply --finding dirty-cliff makes these steps."));
        assert!(of(&["dirty-cliff", "b"], 2).ends_with("makes the steps of one finding: dirty-cliff, b."));
        assert_eq!(of(&["dirty-cliff"], 1), "");
    }

    #[test]
    fn each_step_says_what_it_sets_how_long_to_watch_and_what_must_hold() {
        let bound = |figure: &str, at_most| Bound { figure: figure.to_owned(), unit: String::new(), at_most };
        let step = |set: &str, go_on_if| RampStep { set: vec![set.to_owned()], watch_s: 40.0, go_on_if };
        let share = bound(IO_SOME_SHARE, 0.2);
        let peak = bound(floodline_analysis::prediction::PEAK, 67_108_864.0);
        let ramp = Ramp {
            why: "Several steps: vm.dirty_bytes changes by a factor of 16.".to_owned(),
            steps: vec![step("vm.dirty_bytes=268435456", vec![share, peak]), step("vm.dirty_bytes=67108864", vec![])],
        };
        let mut out = String::new();
        text(&mut out, &ramp, 80);
        assert_eq!(
            out,
            "Ramp   Several steps: vm.dirty_bytes changes by a factor of 16.\n  \
             Ramp step 1 of 2\n    vm.dirty_bytes=268435456\n    Watch for 40 s. Go on if tasks wait for I/O in at most 20 % of the time and\n    \
             at most 64.0 MiB are at risk.\n  \
             Ramp step 2 of 2\n    vm.dirty_bytes=67108864\n    Watch the host for 40 s; floodline checks no bound here.\n"
        );
        let one = Ramp { why: "One step is enough.".to_owned(), steps: ramp.steps[1..].to_vec() };
        let mut out = String::new();
        text(&mut out, &one, 80);
        assert_eq!(out, "Ramp   One step is enough.\n    Watch the host for 40 s; floodline checks no bound here.\n");
    }
}
