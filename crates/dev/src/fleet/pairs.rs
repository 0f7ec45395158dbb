// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pairs of recordings of real kernels as truth: the same load on one machine with two settings, or on two kernels. The
//! pre-flight sees the first recording of a pair and the change. The second contains the real effect.

use super::{FALSE_ALARMS, RECALL, Score, score_of, scores_table};
use crate::input::{Workload, files, read};
use crate::{Answer, Failure, note};
use floodline_fleet::{Change, Depth, Felt, Row, Verdict, preflight_recorded};
use floodline_record::sample::HostRow;
use floodline_record::version::KernelVersion;
use floodline_twin::{Programs, Recorded, shown as figures_of};
use serde::Serialize;
use std::fmt::Write as _;
use std::path::PathBuf;

/// Hold the pre-flight against pairs of recordings of real kernels
#[derive(clap::Args)]
#[command(
    after_help = "A pair is two complete runs of one scenario that lasted equally long (within 15 %): a variant and \
        the same variant with the advised settings, in both directions, or one variant on an older and on a newer kernel.\n\n\
        Examples:\n  \
        floodline-dev fleet-pairs ~/.cache/floodline/results\n  \
        floodline-dev fleet-pairs runs/ --format json | jq '.pairs[] | select(.is_right | not)'"
)]
pub(crate) struct FleetPairs {
    /// Recordings of the lab, or folders of them
    #[arg(required = true, value_name = "RECORDING")]
    recordings: Vec<PathBuf>,
    /// Form of the answer
    #[arg(long, value_enum, default_value_t)]
    format: crate::Format,
}

/// Settings in which the two recordings of a pair may differ.
type Reading = fn(&HostRow) -> Option<u64>;
const SETTINGS: [(&str, Reading); 6] = [
    ("vm.dirty_ratio", |row| row.dirty_ratio.map(|percent| percent.0)),
    ("vm.dirty_bytes", |row| row.dirty_bytes.map(|bytes| bytes.0)),
    ("vm.dirty_background_ratio", |row| row.dirty_background_ratio.map(|percent| percent.0)),
    ("vm.dirty_background_bytes", |row| row.dirty_background_bytes.map(|bytes| bytes.0)),
    ("vm.dirty_expire_centisecs", |row| row.dirty_expire_centisecs.map(|time| time.0)),
    ("vm.dirty_writeback_centisecs", |row| row.dirty_writeback_centisecs.map(|time| time.0)),
];
/// Difference of length from which two runs are not compared.
const LENGTHS: f64 = 0.15;
/// Suffix that the lab adds to the name of a variant run with the advised settings.
const ADVISED: &str = ".advised";

/// One run on a real kernel.
struct Run {
    scenario: String,
    variant: String,
    kernel: KernelVersion,
    recorded: Recorded,
    felt: Felt,
}

/// One pair, judged.
#[derive(Debug, Serialize)]
struct Pair {
    /// `settings` or `kernel`.
    of: &'static str,
    scenario: String,
    kernel: String,
    change: Vec<String>,
    /// Measured severity: 1 is just noticeable.
    really: f64,
    is_right: bool,
    row: Row,
}

impl FleetPairs {
    pub(crate) fn run(&self) -> Result<Answer, Failure> {
        let mut runs = Vec::new();
        for path in self.recordings.iter().map(|path| files(path)).collect::<Result<Vec<_>, _>>()?.concat() {
            match read(&path, run_of) {
                Ok(run) => runs.push(run),
                Err(why) => note(&why),
            }
        }
        let found: Vec<(&Run, &Run, &'static str, Vec<String>)> = runs
            .iter()
            .flat_map(|from| runs.iter().filter_map(move |to| Some((from, to, change(from, to)?))))
            .map(|(from, to, (of, change))| (from, to, of, change))
            .collect();
        if found.is_empty() {
            return Err(Failure::input(
                "the arguments contain no two runs of one scenario that differ in a setting or kernel",
            )
            .hint("floodline lab advise scenarios/starved-budget.toml --kernels 6.1,6.12"));
        }
        let mut pairs = Vec::new();
        for (at, (from, to, of, change)) in found.iter().enumerate() {
            note(&format!("{at} of {} judged: {} {}", found.len(), from.scenario, change.join(" ")));
            pairs.push(judge(from, to, of, change.clone())?);
        }
        let scores: Vec<(&str, Score)> = ["settings", "kernel"]
            .into_iter()
            .map(|of| (of, score_of(pairs.iter().filter(|pair| pair.of == of).map(|pair| (pair.really, &pair.row)))))
            .collect();
        let all = score_of(pairs.iter().map(|pair| (pair.really, &pair.row)));
        let text = match self.format {
            crate::Format::Json => {
                let by: serde_json::Map<String, serde_json::Value> = scores
                    .iter()
                    .map(|(of, score)| Ok(((*of).to_owned(), serde_json::to_value(score)?)))
                    .collect::<Result<_, serde_json::Error>>()?;
                serde_json::to_string(&serde_json::json!({ "all": all, "by": by, "pairs": pairs }))? + "\n"
            }
            crate::Format::Text => text(&pairs, &scores),
        };
        Ok(Answer { text, is_as_expected: all.recall >= RECALL && all.false_alarm_share <= FALSE_ALARMS })
    }
}

fn run_of(recorded: Recorded) -> Result<Run, &'static str> {
    let window = &recorded.window;
    let Workload { scenario, variant, kernel, .. } = Workload::of(window)?;
    let figures = figures_of::figures(window, &Programs::new());
    let felt = Felt::of(&figures, &figures_of::seen(window), window.seconds());
    Ok(Run { scenario, variant, kernel, felt, recorded })
}

/// Change that turns one run into the other; `None` if they are not a pair.
fn change(from: &Run, to: &Run) -> Option<(&'static str, Vec<String>)> {
    let (one, other) = (from.felt.seconds, to.felt.seconds);
    if from.scenario != to.scenario || (one - other).abs() > LENGTHS * one.max(other) {
        return None;
    }
    let (now, then) = (&from.recorded.window.host.last, &to.recorded.window.host.last);
    let differ = SETTINGS.iter().filter(|(_, reading)| reading(now) != reading(then));
    // Of a ratio and its bytes, the one in force is recorded: the other is zero.
    let settings: Vec<String> = differ
        .filter_map(|(name, reading)| Some(format!("{name}={}", reading(then).filter(|value| *value > 0)?)))
        .collect();
    let is_advised = |one: &Run, other: &Run| one.variant.strip_suffix(ADVISED) == Some(&other.variant);
    if from.kernel == to.kernel && (is_advised(from, to) || is_advised(to, from)) && !settings.is_empty() {
        return Some(("settings", settings));
    }
    (from.kernel < to.kernel && from.variant == to.variant && settings.is_empty())
        .then(|| ("kernel", vec![format!("kernel={}", to.kernel)]))
}

fn judge(from: &Run, to: &Run, of: &'static str, change: Vec<String>) -> Result<Pair, Failure> {
    let asked = Change::parse(&change, None, None, None).map_err(|error| Failure::input(error.to_string()))?;
    let name = format!("{}-{}", from.scenario, from.variant);
    let row = preflight_recorded(&from.recorded, &name, &asked, Depth::WHOLE, &|| true);
    let really = from.felt.worse(&to.felt);
    let is_right = (really >= 1.0) == (row.verdict == Verdict::Suffers);
    Ok(Pair { of, scenario: name, kernel: from.kernel.to_string(), change, really, is_right, row })
}

fn text(pairs: &[Pair], scores: &[(&str, Score)]) -> String {
    let mut text =
        "| load | kernel | change | really | said | severity | cause |\n|---|---|---|---|---|---|---|\n".to_owned();
    for Pair { scenario, kernel, change, really, is_right, row, .. } in pairs {
        let _ = writeln!(
            text,
            "| {scenario} | {kernel} | {} | {really:.1} | {}{} | {:.1} | {} |",
            change.join(" "),
            row.verdict.name(),
            if *is_right { "" } else { " (wrong)" },
            row.severity,
            row.cause.name(),
        );
    }
    text.push_str(&scores_table(["pairs", "", "get worse"], scores));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_record::units::{Bytes, Percent};

    fn run(variant: &str, kernel: &str, seconds: f64, host: HostRow) -> Run {
        let mut recorded = Recorded::default();
        recorded.window.host.last = host;
        let felt = Felt { seconds, ..Felt::default() };
        Run {
            scenario: "s".to_owned(),
            variant: variant.to_owned(),
            kernel: kernel.parse().expect("a version"),
            recorded,
            felt,
        }
    }

    #[test]
    fn a_pair_differs_in_settings_or_in_its_kernel_and_not_in_both() {
        let ratio = || HostRow { dirty_ratio: Some(Percent(20)), dirty_bytes: Some(Bytes(0)), ..HostRow::default() };
        let bytes =
            || HostRow { dirty_ratio: Some(Percent(0)), dirty_bytes: Some(Bytes(1 << 20)), ..HostRow::default() };
        let (a, b) = (run("a", "6.1.1", 60.0, ratio()), run("a.advised", "6.1.1", 65.0, bytes()));
        let settings = |text: &str| Some(("settings", vec![text.to_owned()]));
        assert_eq!(change(&a, &b), settings("vm.dirty_bytes=1048576"));
        assert_eq!(change(&b, &a), settings("vm.dirty_ratio=20"));
        let newer = run("a", "6.12.1", 60.0, ratio());
        assert_eq!(change(&a, &newer), Some(("kernel", vec!["kernel=6.12.1".to_owned()])));
        assert_eq!([change(&newer, &a), change(&newer, &b), change(&a, &a)], [None, None, None]);
        assert_eq!(change(&a, &run("a", "6.12.1", 90.0, ratio())), None);
        assert_eq!(change(&a, &run("b.advised", "6.1.1", 60.0, bytes())), None);
    }
}
