// SPDX-License-Identifier: MIT OR Apache-2.0
//! `floodline-dev predict-truth RECORDING…`: predictions held against what really happened. Of two recordings of one scenario
//! that differ in settings, kernel or cgroup mode, the first alone makes a twin, its back-test and a prediction; the second
//! is the truth. Runs no machine.

mod model;
mod page;
mod pairs;
mod score;
mod variants;
mod why;

use crate::fleet::Hosts;
use crate::{Answer, Failure, Format, note};
use floodline_analysis::prediction::{Prediction, Setting};
use floodline_twin::backtest;
use floodline_twin::predict::{Measured, Question, Run, conclude};
use floodline_twin::shown::{self, Figures, Shown, Verdicts};
use floodline_twin::{Options, Twin};
use pairs::{Move, One};
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use score::{Judged, Noise, judge};
use std::collections::BTreeMap;
use std::path::PathBuf;
use variants::Variants;
use why::{Real, Said};

/// Compare predictions with what really happened
#[derive(clap::Args)]
#[command(
    name = "predict-truth",
    after_help = "Pairs are recordings of one workload on the same machine, of the same duration, that differ in settings, or in \
        the kernel and the cgroup mode. Variants of a scenario are one workload if their tasks are the same. The two were \
        recorded soon after each other. Each pair counts in both directions, so that changes that make things worse count, too. Pairs that differ in nothing show how much real runs differ from each other.\n\n\
        Example:\n  \
        floodline-dev predict-truth recordings/ > truth.md"
)]
pub(crate) struct PredictTruth {
    /// Recordings, or folders of them
    #[arg(required_unless_present = "model", value_name = "RECORDING")]
    recordings: Vec<PathBuf>,
    /// Predict changes of generated hosts instead; the truth is the model
    #[arg(long, value_name = "HOSTS", num_args = 0..=1, default_missing_value = "held-out", value_parser = Hosts::parser(), conflicts_with_all = ["recordings", "calibrate"])]
    model: Option<Hosts>,
    /// Write the recordings of the generated hosts to this folder
    #[arg(long, value_name = "DIR", requires = "model")]
    save: Option<PathBuf>,
    /// Folder of scenario files, which tell what differs between variants; may be repeated
    #[arg(long = "scenarios", value_name = "DIR", default_values = ["scenarios", "scenarios/blind"])]
    scenarios: Vec<PathBuf>,
    /// Longest time between the two recordings of a pair, in minutes
    #[arg(long, value_name = "MINUTES", default_value_t = 20)]
    within: u64,
    /// Only scenarios whose name contains this
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Print by how much intervals must be wider to hold nine of ten figures
    #[arg(long)]
    calibrate: bool,
    /// Print why predictions of findings are uncertain or wrong: the verdict of each rule on both recordings and on every run
    #[arg(long, conflicts_with = "calibrate")]
    why: bool,
    /// Count the uncertain answers on findings that are right, by the reason for the doubt
    #[arg(long, conflicts_with_all = ["calibrate", "why"])]
    odds: bool,
    /// Output format; text is Markdown
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// One run of a twin: its figures, and what the rules say of it, as the recorder sees it and closely.
#[derive(Clone, Debug, serde::Serialize)]
struct Runs {
    run: Run,
    figures: Figures,
    said: Verdicts,
    close: Option<Box<Verdicts>>,
}

/// A change that was really made: its recordings before and after.
struct Pair {
    kind: Move,
    settings: Vec<Setting>,
    before: usize,
    after: usize,
}

impl PredictTruth {
    pub(crate) fn run(&self) -> Result<Answer, Failure> {
        if let Some(hosts) = self.model {
            let judged = model::all(hosts, self.only.as_deref(), self.save.as_deref(), self.why)?;
            let text = match self.format {
                _ if self.odds => page::odds(&judged),
                Format::Text if self.why => judged.iter().map(|one| one.why.as_str()).collect(),
                Format::Text => page::of_model(&judged),
                Format::Json => serde_json::to_string(&serde_json::json!({ "hosts": judged }))? + "\n",
            };
            return Ok(Answer { text, is_as_expected: true });
        }
        let paths = self.recordings.iter().map(|path| crate::input::files(path));
        let mut all = Vec::new();
        for path in paths.collect::<Result<Vec<_>, _>>()?.concat() {
            match crate::input::read(&path, pairs::one) {
                Ok(one) if self.only.as_ref().is_none_or(|only| one.scenario.contains(only.as_str())) => all.push(one),
                Ok(_) => {}
                Err(why) => note(&why),
            }
        }
        let variants = Variants::of(&self.scenarios)?;
        let Found { changed, repeated, other_speed } = found(&all, &variants, self.within);
        if changed.is_empty() {
            return Err(Failure::input(
                "the arguments contain no two recordings of one scenario that differ in a setting",
            )
            .hint("floodline lab advise scenarios/dirty-cliff.toml --kernels 6.1,6.12"));
        }
        let repeats: Vec<Judged> = repeated.iter().map(|pair| score::repeat(&all, pair)).collect();
        let judged = judge_all(&all, &changed, &score::noise(&repeats), self.why);
        if self.why && self.format == Format::Text {
            let text = judged.iter().map(|one| one.why.as_str()).collect();
            return Ok(Answer { text, is_as_expected: true });
        }
        if self.odds {
            return Ok(Answer { text: page::odds(&judged), is_as_expected: true });
        }
        if self.calibrate {
            let (figures, others) = score::calibrated(judged.iter());
            let lines = figures.iter().map(|(figure, width, count)| format!("(\"{figure}\", {width}), // {count}\n"));
            let text = lines.collect::<String>() + &format!("others {others:?}\n");
            return Ok(Answer { text, is_as_expected: true });
        }
        let text = match self.format {
            Format::Text => page::markdown((all.len(), other_speed), &judged, &repeats),
            Format::Json => serde_json::to_string(&serde_json::json!({ "pairs": judged, "repeats": repeats }))? + "\n",
        };
        Ok(Answer { text, is_as_expected: true })
    }
}

/// The pairs of a folder.
struct Found {
    /// Pairs that differ in one kind of thing, were recorded soon after each other and on CPUs of one speed. At other times
    /// the host of the guests had other work and a scenario other content.
    changed: Vec<Pair>,
    /// Pairs without a difference, at any time, on CPUs of one speed.
    repeated: Vec<Pair>,
    /// Pairs that were left out only because the CPUs of one were much slower.
    other_speed: usize,
}

fn found(all: &[One], variants: &Variants, minutes: u64) -> Found {
    let machine = |one: &One| Some(floodline_twin::of(&one.recorded, &Options::default()).ok()?.scenario.machine);
    let mut found = Found { changed: Vec::new(), repeated: Vec::new(), other_speed: 0 };
    for before in 0..all.len() {
        for after in (0..all.len()).filter(|after| *after != before) {
            let Some((kind, settings)) = pairs::change(&all[before], &all[after], variants, machine) else { continue };
            let is_one = pairs::is_of_one_kind(kind, &settings);
            let is_soon = all[before].began.abs_diff(all[after].began) <= minutes.saturating_mul(60_000_000_000);
            let is_as_fast = pairs::is_as_fast(&all[before], &all[after]);
            let pair = Pair { kind, settings, before, after };
            match pair.settings.is_empty() {
                true if is_as_fast => found.repeated.push(pair),
                false if is_one && is_soon && is_as_fast => found.changed.push(pair),
                false if is_one && is_soon => found.other_speed += 1,
                _ => {}
            }
        }
    }
    found
}

/// The pairs of each first recording, whose twin is made once.
fn judge_all(all: &[One], pairs: &[Pair], noise: &Noise, why: bool) -> Vec<Judged> {
    let mut work: BTreeMap<usize, Vec<&Pair>> = BTreeMap::new();
    for pair in pairs {
        work.entry(pair.before).or_default().push(pair);
    }
    let one = |(before, pairs): (usize, Vec<&Pair>)| {
        judge_one(&all[before], all, &pairs, noise, why).unwrap_or_else(|why| {
            note(&format!("{} {}: {why}; skipped", all[before].scenario, all[before].kernel));
            Vec::new()
        })
    };
    let mut judged: Vec<Judged> = work.into_par_iter().flat_map_iter(one).collect();
    judged.sort_by(|one, other| one.order().cmp(&other.order()));
    judged
}

fn judge_one(
    before: &One,
    all: &[One],
    pairs: &[&Pair],
    noise: &Noise,
    is_explained: bool,
) -> Result<Vec<Judged>, String> {
    let twin = floodline_twin::of(&before.recorded, &Options::default()).map_err(|error| error.to_string())?;
    let mut as_is: Vec<(Run, Shown)> = Vec::new();
    let mut said: Option<Vec<(Run, Said)>> = is_explained.then(Vec::new);
    let mut measured = Measured::of(&before.recorded.window);
    let mut judged = Vec::new();
    for pair in pairs {
        let (prediction, runs) = predict(before, &twin, &pair.settings, &mut measured, &mut as_is, &mut said)?;
        let mut one = judge(&prediction, &measured.said, (pair, all), noise);
        if is_explained {
            one.verdicts = Some(score::Explained::of(&prediction, runs, &measured, &all[pair.after]));
        }
        if let Some(said) = &mut said {
            let real = Real { before: &before.recorded.window, after: &all[pair.after].recorded.window };
            one.why = why::why(&one, &real, said);
            said.retain(|(run, _)| !run.is_changed);
        }
        judged.push(one);
    }
    Ok(judged)
}

/// The prediction of a change. The runs as it is are made once for all changes.
fn predict(
    before: &One,
    twin: &Twin,
    settings: &[Setting],
    measured: &mut Measured,
    as_is: &mut Vec<(Run, Shown)>,
    said: &mut Option<Vec<(Run, Said)>>,
) -> Result<(Prediction, Vec<Runs>), String> {
    let window = &before.recorded.window;
    let question = Question::new(twin, window, settings).map_err(|why| why.to_string())?;
    let mut results = Vec::new();
    for run in question.runs(false) {
        let known = as_is.iter().find(|(known, _)| *known == run).map(|(_, shown)| shown.clone());
        let shown = match known {
            Some(shown) => shown,
            None => {
                let changed = question.scenario(&run).ok_or("a run without a scenario")?;
                let ran = shown::run(changed, run.trial, twin.sampling(), &twin.programs, |_| true);
                let (mut shown, simulated) = ran.map_err(|error| error.to_string())?;
                shown.like(window);
                if let Some(said) = said {
                    said.push((run, why::said(&simulated)));
                }
                if measured.back_test.is_empty() && !run.is_changed {
                    measured.back_test = backtest::backtest(window, &simulated, &twin.programs);
                }
                if !run.is_changed {
                    as_is.push((run, shown.clone()));
                }
                shown
            }
        };
        results.push((run, shown));
    }
    let prediction =
        conclude(twin, &question, measured, &results).ok_or_else(|| "a prediction without a run".to_owned())?;
    let runs = results.into_iter().map(|(run, shown)| {
        let Shown { figures, said, close, .. } = shown;
        Runs { run, figures, said, close }
    });
    Ok((prediction, runs.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_record::record::{Record, Sink};
    use floodline_record::version::KernelVersion;
    use floodline_scenario::ScenarioFile;
    use floodline_twin::Recorded;

    /// A run of a scenario, recorded like one of a real kernel.
    fn one(settings: &[(&str, &str)]) -> One {
        let text = include_str!("../../../../scenarios/dirty-cliff.toml");
        let file = ScenarioFile::parse(text).expect("it is good");
        let mut scenario = file.variants["incident-short"].clone();
        for (key, value) in settings {
            scenario = scenario.changed(key, value).expect("it can be changed");
        }
        let mut recorded = Recorded::default();
        let options = floodline_sim::Options::new("incident-short", KernelVersion::new(6, 12, 0));
        let take = |mut record: Record| {
            if let Record::Facts(facts) = &mut record {
                facts.kernel_release = "6.12.0".into();
            }
            let Ok(()) = recorded.record(&record);
            Ok(())
        };
        floodline_sim::simulate(&scenario, &options, take, |_| true).expect("it runs");
        pairs::one(recorded).expect("it is a recording of a scenario")
    }

    #[test]
    fn two_recordings_of_one_scenario_are_a_change_in_both_directions() {
        let all = [one(&[]), one(&[("vm.dirty_background_bytes", "8388608"), ("vm.dirty_bytes", "33554432")])];
        let Found { changed, repeated, .. } = found(&all, &Variants::default(), 20);
        let settings: Vec<Vec<String>> = changed
            .iter()
            .map(|pair| pair.settings.iter().map(|one| format!("{}={}", one.key, one.value)).collect())
            .collect();
        let there = ["vm.dirty_background_bytes=8388608", "vm.dirty_bytes=33554432"];
        let back = ["vm.dirty_background_ratio=10", "vm.dirty_ratio=20"];
        assert_eq!(settings, [there, back]);
        assert!(repeated.is_empty());
        let judged = judge_all(&all, &changed[..1], &Noise::new(), true);
        let [judged] = judged.as_slice() else { panic!("{judged:?}") };
        let sum = score::sum(judged.figures.iter());
        assert!(sum.predicted >= 3 && sum.changed >= 1 && sum.right == sum.changed, "{judged:#?}");
        assert!(sum.median.is_some_and(|median| median < 0.2), "{judged:#?}");
        let page = page::markdown((2, 0), std::slice::from_ref(judged), &[]);
        assert!(page.contains("\n| all | 1 |"), "{page}");
    }
}
