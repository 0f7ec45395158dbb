// SPDX-License-Identifier: MIT OR Apache-2.0
//! `floodline-dev advice`: does what `doctor` prints help? Each known machine is simulated and recorded as a host would record
//! it. `doctor` reads the recording and tries its plan. The printed change is made to the machine, and the machine is simulated
//! again. The lab judges the same on real kernels (`floodline lab advise`). Here the truth is the model: errors of the twin and of
//! the rules show, errors of the model do not.

mod one;

use crate::machines::{Machine, machines, scenarios, version};
use crate::{Answer, Failure, Format, note};
use floodline_twin::printed::Said;
use one::Tried;
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

/// Try what doctor prints for known machines: does it help?
#[derive(clap::Args)]
#[command(
    after_help = "Each machine counts twice: recorded as the lab records it, with the waits that tasks measure, and as a \
        host records it, without them. A change that doctor prints must help; one that it withholds is made too, to see what \
        the trial of the plan is worth.\n\n\
        Exit code 1 if a change that doctor prints under \"Do now\" made something worse or did nothing.\n\n\
        Examples:\n  \
        floodline-dev advice --only ninth > advice.md\n  \
        floodline-dev advice --format json | jq '.runs[] | select(.outcome == \"worse\")'"
)]
pub(crate) struct AdviceTruth {
    /// Folder of the tables of machines
    #[arg(long, value_name = "DIR", default_value = "crates/sim/tests/blind")]
    tables: PathBuf,
    /// Folder of scenario files; may be repeated
    #[arg(long = "scenarios", value_name = "DIR", default_values = ["scenarios", "scenarios/blind"])]
    scenarios: Vec<PathBuf>,
    /// Only machines whose line of the table contains this
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    /// No machine whose line of the table contains this
    #[arg(long, value_name = "TEXT")]
    without: Option<String>,
    /// Output format; text is Markdown
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl AdviceTruth {
    pub(crate) fn run(&self) -> Result<Answer, Failure> {
        let scenarios = scenarios(&self.scenarios)?;
        let is_out = |line: &str| self.without.as_ref().is_some_and(|without| line.contains(without.as_str()));
        let machines = machines(&self.tables)?;
        let mut jobs = Vec::new();
        for machine in machines.iter().filter(|machine| machine.line.contains(&self.only) && !is_out(&machine.line)) {
            let key = (machine.file.clone(), machine.variant.clone());
            let scenario =
                scenarios.get(&key).ok_or_else(|| Failure::input(format!("no scenario is called {}", machine.line)))?;
            for kernel in &machine.kernels {
                jobs.push((machine, scenario, version(kernel)?));
            }
        }
        let one = |(machine, scenario, kernel): (&Machine, _, _)| {
            one::tried(machine, scenario, kernel).unwrap_or_else(|why| {
                note(&format!("{} {} {kernel}: {why}; skipped", machine.file, machine.variant));
                Vec::new()
            })
        };
        let tried: Vec<Tried> = jobs.into_par_iter().flat_map_iter(one).collect();
        let is_as_expected = !tried.iter().any(|one| one.said.is_now() && !one.outcome.is_good());
        let text = match self.format {
            Format::Text => markdown(&tried),
            Format::Json => serde_json::to_string(&serde_json::json!({ "runs": tried }))? + "\n",
        };
        Ok(Answer { text, is_as_expected })
    }
}

/// Every change, and how many of each kind had which outcome.
fn markdown(tried: &[Tried]) -> String {
    let mut text =
        String::from("| machine | found | change | doctor | outcome | figures |\n|---|---|---|---|---|---|\n");
    let mut counts: BTreeMap<&'static str, BTreeMap<&'static str, u32>> = BTreeMap::new();
    for one in tried {
        *counts.entry(one.said.word()).or_default().entry(one.outcome.word()).or_default() += 1;
        if one.said == Said::Nothing {
            continue;
        }
        let why = one.why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        let news = if one.appear.is_empty() { String::new() } else { format!("; new: {}", one.appear.join(", ")) };
        let found = one.found.first().map_or("–", String::as_str);
        let _ = writeln!(
            text,
            "| {} | {found} | {} | {}{} | {} | {}{} |",
            one.machine,
            one.changes.join(" "),
            one.said.word(),
            why.replace('|', "/"),
            one.outcome.word(),
            one.figures(),
            news
        );
    }
    text.push_str("\n| doctor | outcomes |\n|---|---|\n");
    for (said, outcomes) in &counts {
        let outcomes: Vec<String> = outcomes.iter().map(|(outcome, count)| format!("{outcome} {count}")).collect();
        let _ = writeln!(text, "| {said} | {} |", outcomes.join(", "));
    }
    text
}
