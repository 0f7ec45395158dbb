// SPDX-License-Identifier: MIT OR Apache-2.0
//! Predictions held against the truth on the model: a scenario is recorded, a twin of the recording predicts a change, and
//! the scenario itself is run with the change. The twin knows nothing but the recording. Two short cases always run;
//! `FLOODLINE_TRUTH=all` (`make truth`) runs every case and prints the table.

#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::disallowed_methods, reason = "tests")]

use floodline_analysis::diagnose::diagnose;
use floodline_analysis::prediction::{Prediction, Row, Setting};
use floodline_record::record::Sink;
use floodline_record::version::KernelVersion;
use floodline_scenario::{Scenario, ScenarioFile};
use floodline_sim::{Options, simulate};
use floodline_twin::backtest::backtest;
use floodline_twin::changed::of_steps;
use floodline_twin::predict::{Measured, Question, conclude};
use floodline_twin::shown::{self, Figures};
use floodline_twin::{Programs, Recorded};

/// Scenario, variant, whether it is short enough for every run of the tests.
const CASES: &[(&str, &str, &str, bool)] = &[
    ("starved-budget", include_str!("../../../scenarios/starved-budget.toml"), "incident-short", true),
    ("dirty-cliff", include_str!("../../../scenarios/dirty-cliff.toml"), "incident-short", true),
    ("dirty-cliff", include_str!("../../../scenarios/dirty-cliff.toml"), "incident", false),
    ("starved-budget", include_str!("../../../scenarios/starved-budget.toml"), "incident", false),
    ("slow-disk-journal", include_str!("../../../scenarios/slow-disk-journal.toml"), "incident", false),
    ("overlay-umount", include_str!("../../../scenarios/overlay-umount.toml"), "incident", false),
    ("inode-switch-storm", include_str!("../../../scenarios/inode-switch-storm.toml"), "incident", false),
    ("healthy-database", include_str!("../../../scenarios/healthy-database.toml"), "default", false),
    ("healthy-containers", include_str!("../../../scenarios/healthy-containers.toml"), "default", false),
];

/// Changes that are predicted beside doctor's own plan: better and worse ones.
const CHANGES: &[&[(&str, &str)]] = &[
    &[("vm.dirty_background_bytes", "33554432"), ("vm.dirty_bytes", "134217728")],
    &[("vm.dirty_background_bytes", "8388608"), ("vm.dirty_bytes", "16777216")],
    &[("vm.dirty_background_ratio", "20"), ("vm.dirty_ratio", "40")],
    &[("vm.dirty_expire_centisecs", "500")],
];

/// What became of the figures of one change.
#[derive(Debug, Default)]
struct Score {
    /// Figures that really changed, and those of them that were predicted in the right direction.
    changed: usize,
    right: usize,
    /// Figures inside the interval, of all that were predicted.
    inside: usize,
    errors: Vec<f64>,
    /// Figures that were not predicted.
    doubted: usize,
    lines: Vec<String>,
}

impl Score {
    fn add(&mut self, other: Score) {
        self.changed += other.changed;
        self.right += other.right;
        self.inside += other.inside;
        self.doubted += other.doubted;
        self.errors.extend(other.errors);
        self.lines.extend(other.lines);
    }

    fn median(&self) -> f64 {
        let mut errors = self.errors.clone();
        errors.sort_by(f64::total_cmp);
        errors.get(errors.len() / 2).copied().unwrap_or(0.0)
    }
}

const KERNEL: KernelVersion = KernelVersion::new(6, 12, 0);

fn record(scenario: &Scenario) -> Recorded {
    let mut recorded = Recorded::default();
    let take = |record| {
        let Ok(()) = recorded.record(&record);
        Ok(())
    };
    simulate(scenario, &Options::new("truth", KERNEL), take, |_| true).unwrap();
    recorded
}

fn predict(recorded: &Recorded, settings: &[Setting]) -> Option<Prediction> {
    let twin = floodline_twin::of(recorded, &floodline_twin::Options::default()).ok()?;
    let question = Question::new(&twin, &recorded.window, settings).ok()?;
    let mut measured = Measured::of(&recorded.window);
    let mut results = Vec::new();
    for run in question.runs(false) {
        let (shown, window) =
            shown::run(question.scenario(&run)?, run.trial, twin.every, &twin.programs, |_| true).ok()?;
        if measured.back_test.is_empty() && !run.is_changed && run.demand == 0 {
            measured.back_test = backtest(&recorded.window, &window, &twin.programs);
        }
        results.push((run, shown));
    }
    conclude(&twin, &question, &measured, &results)
}

/// The figures of a recording of the scenario itself, its preparation included, as a twin sees them.
fn truth(recorded: &Recorded) -> Figures {
    shown::figures(&recorded.window, &Programs::new())
}

fn score(name: &str, prediction: &Prediction, now: &Figures, then: &Figures) -> Score {
    let mut score = Score::default();
    for row in prediction.rows.iter().filter(|row| !row.figure.starts_with("program ")) {
        let (Some(now), Some(then)) = (now.get(&row.figure), then.get(&row.figure)) else { continue };
        if row.doubt.is_some() {
            score.doubted += 1;
            continue;
        }
        let error = (row.then - then).abs() / then.abs().max(row.least);
        let real = Row { now: *now, then: *then, doubt: None, ..row.clone() };
        let really_changes = real.improves() || real.worsens();
        let is_right = (row.improves(), row.worsens()) == (real.improves(), real.worsens());
        score.changed += usize::from(really_changes);
        score.right += usize::from(really_changes && is_right);
        score.inside += usize::from(row.low - row.least <= *then && *then <= row.high + row.least);
        score.errors.push(error);
        score.lines.push(format!(
            "{name:<24} {:<30} {:>12.4} {:>12.4} | {:>12.4} {:>12.4} | {:>6.0} % {}",
            row.figure,
            row.now,
            row.then,
            now,
            then,
            100.0 * error,
            if really_changes && !is_right { "WRONG" } else { "" }
        ));
    }
    score
}

fn plan_of(recorded: &Recorded) -> Vec<Setting> {
    let report = diagnose(&recorded.window, None);
    let (settings, _) = of_steps(report.plan.as_ref().map_or(&[][..], |plan| &plan.steps));
    settings.into_iter().filter(|setting| setting.key.starts_with("vm.")).collect()
}

#[test]
fn predictions_from_a_recording_agree_with_the_changed_scenario() {
    let all = std::env::var("FLOODLINE_TRUTH").is_ok_and(|value| value == "all");
    let mut sum = Score::default();
    for (name, text, variant, _) in CASES.iter().filter(|(_, _, _, short)| *short || all) {
        let file = ScenarioFile::parse(text).unwrap();
        let scenario = file.variants.get(*variant).or_else(|| file.variants.values().next()).unwrap();
        let recorded = record(scenario);
        let now = truth(&recorded);
        let mut changes = vec![plan_of(&recorded)];
        let listed = CHANGES.iter().map(|change| change.iter().map(|(key, value)| Setting::new(*key, value)).collect());
        changes.extend(listed.take(if all { CHANGES.len() } else { 0 }));
        for settings in changes.into_iter().filter(|settings| !settings.is_empty()) {
            let mut changed = scenario.clone();
            for setting in &settings {
                changed = changed.changed(&setting.key, &setting.value).unwrap();
            }
            let Some(prediction) = predict(&recorded, &settings) else { continue };
            let then = truth(&record(&changed));
            sum.add(score(name, &prediction, &now, &then));
        }
    }
    let predicted = sum.errors.len();
    let summary = format!(
        "{predicted} figures predicted, {} not; direction right {} of {} that changed; median error {:.0} %; inside the \
         interval {:.0} %",
        sum.doubted,
        sum.right,
        sum.changed,
        100.0 * sum.median(),
        100.0 * sum.inside as f64 / predicted.max(1) as f64
    );
    println!("{}\n{summary}", sum.lines.join("\n"));
    assert!(predicted >= 4 && sum.changed >= 3, "{summary}");
    // The whole table is read; the short cases hold the line.
    if !all {
        assert_eq!(sum.right, sum.changed, "{summary}\n{}", sum.lines.join("\n"));
        assert!(sum.median() <= 0.2, "{summary}\n{}", sum.lines.join("\n"));
    }
}
