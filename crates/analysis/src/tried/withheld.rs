// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a plan is expected to do whose change of now is withheld.

use crate::report::Plan;

/// Returns the expected effects of a plan without its change of now. A step of later was not tried, so what it does stays. `helps_none`:
/// the change that was tried does not help, and does no harm.
pub(super) fn expectation(plan: &Plan, helps_none: bool) -> Vec<String> {
    if !plan.later.is_empty() {
        return plan.expect_later.clone();
    }
    // Of a change that harms, another one may still help.
    let helps = match plan.is_outrun && helps_none {
        true => {
            "No setting that was tried helps on a twin: programs write more than the disk takes. Let them write less, or move \
             their files to another disk."
        }
        false => "No setting is known to help. To search for one: floodline advise FILE.",
    };
    vec![helps.to_owned()]
}

#[cfg(test)]
mod tests {
    use crate::prediction::{LONGEST as WAIT, Prediction, Row, Seen};
    use crate::report::{Brief, Finding, Plan, Severity, Step, When};
    use crate::tried::tried;
    use floodline_record::version::KernelVersion;

    fn row(figure: &str, now: f64, then: f64) -> Row {
        Row { off_share: Some(0.1), least: 0.02, ..Row::new(figure, "longest fsync", "seconds", now, then) }
    }

    fn seen(rule: &'static str) -> Seen {
        Seen { rule, severity: Severity::Critical }
    }

    #[test]
    fn a_withheld_change_on_a_disk_that_programs_outrun_says_what_helps() {
        let helps = |is_outrun: bool, then: f64| {
            let now = vec!["sudo sysctl -w vm.dirty_ratio=5".to_owned()];
            let mut plan = Plan { now, rules: vec!["dirty-cliff"], is_outrun, ..Plan::default() };
            let prediction = Prediction {
                back_test_error: Some(0.1),
                rows: vec![row(WAIT, 3.0, then)],
                stay: vec![seen("dirty-cliff")],
                runs: 4,
                ..Prediction::new(Vec::new(), KernelVersion::new(6, 12, 0))
            };
            tried(&mut plan, &prediction);
            assert!(plan.now.is_empty(), "{plan:?}");
            plan.expect.join(" ")
        };
        let others = "No setting is known to help. To search for one: floodline advise FILE.";
        assert_eq!(helps(false, 3.0), others);
        assert!(helps(true, 3.0).contains("programs write more than the disk takes"), "{}", helps(true, 3.0));
        assert_eq!(helps(true, 6.0), others, "it harms");
    }

    #[test]
    fn a_withheld_change_keeps_what_a_step_of_later_does() {
        let step = |write: &str, value: &str, command: &str, when| Step {
            write: write.to_owned(),
            value: value.to_owned(),
            undo: String::new(),
            command: command.to_owned(),
            when,
        };
        let sysctl = step("/proc/sys/vm/dirty_ratio", "5", "echo 5 > /proc/sys/vm/dirty_ratio", When::Now);
        let hook = step("a hook", "", "# Run sync -f /homes.", When::Later);
        let finding = |rule, expect: &str, step: Step| Finding {
            rule,
            plan: vec![step],
            brief: Brief { expect: expect.to_owned(), ..Brief::default() },
            ..Finding::default()
        };
        let found = [finding("dirty-cliff", "The waits end.", sysctl), finding("unmount", "The sync waits.", hook)];
        let expected = |found: &[Finding]| {
            let mut plan = crate::plan::merge(found).unwrap();
            let prediction = Prediction {
                back_test_error: Some(0.1),
                rows: vec![row(WAIT, 3.0, 3.0)],
                stay: vec![seen("dirty-cliff")],
                runs: 4,
                ..Prediction::new(Vec::new(), KernelVersion::new(6, 12, 0))
            };
            tried(&mut plan, &prediction);
            assert!(plan.tried.is_some_and(|tried| tried.verdict == "does_not_help"));
            plan.expect
        };
        assert_eq!(expected(&found), ["The sync waits."]);
        assert!(expected(&found[..1])[0].starts_with("No setting is known to help"));
    }
}
