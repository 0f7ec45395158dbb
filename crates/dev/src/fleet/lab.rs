// SPDX-License-Identifier: MIT OR Apache-2.0
//! The generated kinds on real kernels: their scenarios for the lab, and the pre-flight held against what the lab recorded
//! before and after each change.

use super::kinds::{KINDS, Kind};
use super::{FALSE_ALARMS, RECALL, Score, figures, made, score_of, scores_table, spearman};
use crate::input::{Workload, each, shown};
use crate::{Answer, Failure, note};
use floodline_fleet::{Change, Depth, Felt, Row, Verdict, preflight};
use floodline_record::record::{Record, Sink};
use floodline_record::version::KernelVersion;
use floodline_record::window::Window;
use floodline_twin::{Programs, shown as figures_of};
use serde::Serialize;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Hold the pre-flight against the generated kinds of hosts on real kernels
#[derive(clap::Args)]
#[command(
    after_help = "Each kind runs twice in the lab: before its change and after it. The pre-flight sees the first recording \
        alone.\n\n\
        Examples:\n  \
        floodline-dev fleet-lab runs --scenarios    write runs/KIND.before.toml and runs/KIND.after.toml, print a list\n  \
        floodline lab run runs/idle.before.toml --kernel 6.12.117 --save runs/idle.before.flr\n  \
        floodline-dev fleet-lab runs                judge the recordings\n\n\
        `make fleet-lab` does all three. Kinds with cgroup version 1 on a kernel that has none run on 6.1.192."
)]
pub(crate) struct FleetLab {
    /// Folder of the scenarios and recordings
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Write the scenarios and print a line for each run: kind, before or after, kernel
    #[arg(long)]
    scenarios: bool,
    /// Only kinds whose name contains this
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Form of the answer
    #[arg(long, value_enum, default_value_t)]
    format: crate::Format,
}

/// The two runs of a kind.
const TIMES: [&str; 2] = ["before", "after"];

/// Debian's kernels of this release and later have no memory controller of cgroup version 1.
const NO_V1_SINCE: KernelVersion = KernelVersion { major: 6, minor: 11, patch: 0 };
/// What a kind with cgroup version 1 runs on instead.
const LAST_WITH_V1: &str = "6.1.192";

/// The kind as real kernels can run it.
fn runnable(kind: Kind) -> Result<Kind, Failure> {
    let has_v1 = kind.cgroup == "v1" || kind.change.contains(&"cgroup=v1");
    let kernel: KernelVersion =
        kind.kernel.parse().map_err(|error| Failure::input(format!("{}: {error}", kind.name)))?;
    Ok(if has_v1 && kernel >= NO_V1_SINCE { Kind { kernel: LAST_WITH_V1, ..kind } } else { kind })
}

/// A kind that ran on real kernels, judged.
#[derive(Debug, Serialize)]
struct OnKernels {
    kind: &'static str,
    held_out: bool,
    kernel: String,
    change: &'static [&'static str],
    /// Measured severity: 1 is just noticeable.
    really: f64,
    /// Severity of the same two runs on the model.
    model: f64,
    is_right: bool,
    row: Row,
    figures: String,
}

impl FleetLab {
    pub(crate) fn run(&self) -> Result<Answer, Failure> {
        let wanted = |kind: &&Kind| self.only.as_ref().is_none_or(|only| kind.name.contains(only.as_str()));
        // Held-out kinds come first: they decide, and a campaign may be ended early.
        let mut kinds: Vec<Kind> = KINDS.iter().filter(wanted).map(|kind| runnable(*kind)).collect::<Result<_, _>>()?;
        kinds.sort_by_key(|kind| !kind.held_out);
        if self.scenarios {
            return self.write(&kinds);
        }
        let judged: Vec<OnKernels> =
            kinds.into_iter().filter_map(|kind| self.judge(kind).transpose()).collect::<Result<_, _>>()?;
        if judged.is_empty() {
            return Err(Failure::input(format!("{} has no two recordings of one kind", shown(&self.folder)))
                .hint("make fleet-lab"));
        }
        let score =
            |of: &dyn Fn(&&OnKernels) -> bool| score_of(judged.iter().filter(of).map(|one| (one.really, &one.row)));
        let (held, others, all) = (score(&|one| one.held_out), score(&|one| !one.held_out), score(&|_| true));
        let text = match self.format {
            crate::Format::Json => {
                serde_json::to_string(
                    &serde_json::json!({ "held_out": held, "others": others, "all": all, "kinds": judged }),
                )? + "\n"
            }
            crate::Format::Text => {
                text(&judged, &[("held-out kinds", held), ("other kinds", others), ("all", all.clone())])
            }
        };
        Ok(Answer { text, is_as_expected: all.recall >= RECALL && all.false_alarm_share <= FALSE_ALARMS })
    }

    /// Writes the scenarios: the text is the list of runs.
    fn write(&self, kinds: &[Kind]) -> Result<Answer, Failure> {
        let mut text = String::new();
        for kind in kinds {
            for (time, (mut scenario, kernel)) in TIMES.iter().zip(made::scenarios(*kind, 0, kind.name)?) {
                kind.name.clone_into(&mut scenario.name);
                scenario.summary = format!("A host of the fleet {time} the change {}", kind.change.join(" "));
                let toml = scenario.to_toml().map_err(|error| Failure::input(format!("{}: {error}", kind.name)))?;
                std::fs::write(self.folder.join(format!("{}.{time}.toml", kind.name)), toml)?;
                let _ = writeln!(text, "{} {time} {kernel}", kind.name);
            }
        }
        Ok(Answer { text, is_as_expected: true })
    }

    /// Judges a kind; `None` if one of its recordings is missing or incomplete.
    fn judge(&self, kind: Kind) -> Result<Option<OnKernels>, Failure> {
        let [before, after] = TIMES.map(|time| self.folder.join(format!("{}.{time}.flr", kind.name)));
        if !before.exists() || !after.exists() {
            return Ok(None);
        }
        note(&format!("judging {}", kind.name));
        let (Some((felt, recording)), Some((felt_then, _))) = (run_of(&before, kind)?, run_of(&after, kind)?) else {
            return Ok(None);
        };
        let host = made::Host::of(kind, 0, false)?;
        let change = Change::parse(kind.change, None, None, None)
            .map_err(|error| Failure::input(format!("{}: {error}", kind.name)))?;
        let row = preflight(&recording, &format!("{}.flr", kind.name), &change, Depth::WHOLE);
        let really = felt.worse(&felt_then);
        Ok(Some(OnKernels {
            kind: kind.name,
            held_out: kind.held_out,
            kernel: kind.kernel.to_owned(),
            change: kind.change,
            really,
            model: host.worse,
            is_right: (really >= 1.0) == (row.verdict == Verdict::Suffers),
            row,
            figures: figures(&felt, &felt_then),
        }))
    }
}

/// A recording of the lab: what is felt of it, and the recording that `floodline record` would have made. `None` with a
/// note if it is not of a whole run on a real kernel.
fn run_of(path: &Path, kind: Kind) -> Result<Option<(Felt, Vec<u8>)>, Failure> {
    let (mut window, mut records) = (Window::default(), Vec::<Record>::new());
    each(path, |record| {
        let Ok(()) = window.record(&record);
        records.push(record);
        true
    })?;
    if let Err(why) = Workload::of(&window) {
        note(&format!("{}: {why}; skipped", shown(path)));
        return Ok(None);
    }
    let recording = made::recorded(&records, kind.name)?;
    let felt = Felt::of(&figures_of::figures(&window, &Programs::new()), &figures_of::seen(&window), window.seconds());
    Ok(Some((felt, recording)))
}

fn text(judged: &[OnKernels], scores: &[(&str, Score)]) -> String {
    let mut text = "| kind | kernel | change | really | on the model | said | severity | cause |\n|---|---|---|---:|---:|---|---:|---|\n"
        .to_owned();
    for OnKernels { kind, kernel, change, really, model, is_right, row, .. } in judged {
        let _ = writeln!(
            text,
            "| {kind} | {kernel} | {} | {really:.1} | {model:.1} | {}{} | {:.1} | {} |",
            change.join(" "),
            row.verdict.name(),
            if *is_right { "" } else { " (wrong)" },
            row.severity,
            row.cause.name(),
        );
    }
    text.push_str(&scores_table(["", "kinds", "suffer"], scores));
    let same = judged.iter().filter(|one| (one.really >= 1.0) == (one.model >= 1.0)).count();
    let order: Vec<(f64, f64)> =
        judged.iter().filter(|one| one.really >= 1.0).map(|one| (one.really, one.model)).collect();
    let _ = writeln!(
        text,
        "\nThe model and the real kernels agree on which kinds suffer in {same} of {}{}.",
        judged.len(),
        spearman(&order).map_or(String::new(), |rho| format!("; the order of severity has Spearman {rho:.2}"))
    );
    text
}
