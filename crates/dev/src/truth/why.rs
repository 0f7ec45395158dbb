// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reasons why a prediction of findings is uncertain or wrong: the verdict of each disputed rule on the recordings before and after
//! the change and on every run of the twin, with the figures on which the rule rests.

use super::score::Judged;
use floodline_analysis::diagnose::diagnose;
use floodline_analysis::rule_figures::rests_on;
use floodline_record::window::Window;
use floodline_twin::predict::Run;
use floodline_twin::shown;
use std::fmt::Write;

/// Verdict of every rule on a window.
pub(super) type Said = Vec<(&'static str, String)>;

/// Runs every rule.
pub(super) fn said(window: &Window) -> Said {
    let report = diagnose(window, None);
    let found = report.findings.iter().map(|one| {
        let severity = format!("{:?}", one.severity).to_lowercase();
        (one.rule, format!("{severity}: {}", one.summary))
    });
    let clear = report.ruled_out.iter().map(|one| (one.rule, format!("clear: {}", one.reason)));
    let lacking = report.not_checked.iter().map(|one| {
        let sources: Vec<&str> = one.gaps.iter().map(|gap| gap.source.as_str()).collect();
        (one.rule, format!("not checked: {}", sources.join(", ")))
    });
    found.chain(clear).chain(lacking).collect()
}

/// The recordings before and after the change.
pub(super) struct Real<'a> {
    pub(super) before: &'a Window,
    pub(super) after: &'a Window,
}

/// Verdicts of the disputed rules of one prediction. Empty if all of it is certain and right.
pub(super) fn why(judged: &Judged, real: &Real<'_>, runs: &[(Run, Said)]) -> String {
    let mut rules: Vec<&str> = judged.predicted.iter().chain(&judged.real).copied().collect();
    rules.retain(|rule| judged.predicted.contains(rule) != judged.real.contains(rule));
    rules.extend(judged.uncertain());
    rules.sort_unstable();
    rules.dedup();
    if rules.is_empty() {
        return String::new();
    }
    let mut text = format!(
        "## {:?}: {} {} {}: {} (back-test {:?})\n",
        judged.findings(),
        judged.scenario,
        judged.variant,
        judged.kernel,
        judged.change,
        judged.back_test_error,
    );
    let (before, after) = (said(real.before), said(real.after));
    let (now, then) = (shown::of_recording(real.before), shown::of_recording(real.after));
    for rule in rules {
        let is = |list: &[&'static str]| list.contains(&rule);
        let _ = writeln!(
            text,
            "- {rule}: predicted {}, uncertain {}, real {}",
            is(&judged.predicted),
            is(&judged.uncertain().collect::<Vec<_>>()),
            is(&judged.real)
        );
        for figure in rests_on(rule) {
            let value = |figures: &shown::Figures| figures.get(*figure).map(|value| format!("{value:.4}"));
            let told = judged.figures.iter().find(|told| told.figure == *figure);
            let told = told.map(|told| format!("{:.4} ({:.4} to {:.4})", told.predicted, told.low, told.high));
            let _ = writeln!(text, "    {figure}: {:?} to {:?}, predicted {told:?}", value(&now), value(&then));
        }
        let mut line = |whose: &str, said: &Said| {
            for (_, what) in said.iter().filter(|(name, _)| *name == rule) {
                let _ = writeln!(text, "    {whose}: {what}");
            }
        };
        line("real before", &before);
        line("real after", &after);
        for (run, said) in runs {
            let when = if run.is_changed { "then" } else { "now" };
            let whose = format!("twin {when}, demand {}, speed {} %", run.demand, run.trial.device_percent);
            line(&whose, said);
        }
    }
    text
}
