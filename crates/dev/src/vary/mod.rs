// SPDX-License-Identifier: MIT OR Apache-2.0
//! `floodline-dev vary`: how firm the rules are. Each machine of the blind set is simulated, and so are its neighbours: other
//! seeds, kernels, memory, disks, lengths. Each recording is diagnosed as it is, with fewer samples, in part, and without its
//! trace. A cause that changes with the seed or with the length of the recording shows a fragile rule. Runs no machine.

mod ways;

use crate::input::{each, files, save, shown};
use crate::machines::{EVERY, Machine, machines, scenarios, version};
use crate::{Answer, Failure, note};
use floodline_analysis::diagnose::stretches::Stretches;
use floodline_analysis::report::{Report, Severity};
use floodline_analysis::run::verdict::{is_sick, wrong};
use floodline_record::record::{Record, Sink, What};
use floodline_record::version::KernelVersion;
use floodline_scenario::Scenario;
use floodline_sim::{Options, simulate};
use std::collections::BTreeMap;
use std::path::PathBuf;
use ways::{Cut, Other, is_traced};

const KERNELS: &[&str] = &["5.10.223", "6.1.192", "6.12.43", "6.12.117", "7.2.13"];
const MACHINES: &[Other] = &[
    Other::Seed(1001),
    Other::Seed(1002),
    Other::Memory(200),
    Other::Speed(50),
    Other::Speed(200),
    Other::Length(200),
    Other::Kernel(KERNELS[0]),
    Other::Kernel(KERNELS[1]),
    Other::Kernel(KERNELS[2]),
    Other::Kernel(KERNELS[3]),
    Other::Kernel(KERNELS[4]),
];
const CUTS: &[Cut] =
    &[Cut::Untraced, Cut::Thinned(2), Cut::Thinned(4), Cut::Thinned(10), Cut::Part(0, 60), Cut::Part(40, 100)];

/// Judge variations of known machines: which causes change with the seed or with the samples?
#[derive(clap::Args)]
#[command(
    after_help = "Another seed has the truth of its machine. Other machines and parts of a recording may have another truth: they \
        are listed, and do not count.\n\n\
        Examples:\n  \
        floodline-dev vary --only seventh > flips.txt\n  \
        floodline-dev vary recordings/"
)]
pub(crate) struct Vary {
    /// Recordings, or folders of them: only cuts of these, and no machine of the tables
    recordings: Vec<PathBuf>,
    /// Folder of the tables of machines
    #[arg(long, value_name = "DIR", default_value = "crates/sim/tests/blind")]
    tables: PathBuf,
    /// Folder of scenario files; may be repeated
    #[arg(long = "scenarios", value_name = "DIR", default_values = ["scenarios", "scenarios/blind"])]
    scenarios: Vec<PathBuf>,
    /// Only machines whose line of the table contains this
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    /// Only cuts of each recording, no other machines
    #[arg(long)]
    cuts_only: bool,
    /// Save each wrongly judged recording there, to look at it with `floodline doctor`
    #[arg(long, value_name = "DIR")]
    save: Option<PathBuf>,
}

/// Counts of verdicts for one way in which machines were varied.
#[derive(Default)]
struct Count {
    looks: u32,
    wrong: u32,
    /// Nothing above an info was found, and the true rule was not checked. This is neither right nor wrong.
    open: u32,
}

#[derive(Default)]
struct Judged {
    counts: BTreeMap<String, Count>,
    lines: String,
    /// Wrong verdicts where the truth is known to hold.
    fragile: u32,
    /// Where wrongly judged recordings are written.
    save: Option<PathBuf>,
}

impl Judged {
    fn take(
        &mut self,
        name: &str,
        way: &str,
        truth: (&Scenario, KernelVersion, Option<&str>),
        records: &[Record],
        is_held: bool,
    ) {
        let (scenario, kernel, or) = truth;
        let expect = scenario.expect.on(kernel);
        let report = diagnosed(records);
        let mut mistakes = wrong(&expect, or, &report.findings);
        if !is_sick(&expect) && report.unexplained.is_some() {
            mistakes.push("waits without a cause".to_owned());
        }
        let count = self.counts.entry(way.to_owned()).or_default();
        count.looks += 1;
        if mistakes.is_empty() {
            return;
        }
        let truth = expect.found.iter().flatten().next().map_or("well", String::as_str);
        let is_loud = report.findings.iter().any(|finding| finding.severity >= Severity::Warning);
        if !is_loud && report.not_checked.iter().any(|rule| rule.rule == truth) {
            count.open += 1;
            note(&format!("{name} | {way} | {truth} | open"));
            return;
        }
        count.wrong += 1;
        if let Some(folder) = &self.save {
            let file =
                format!("{name} {way}").replace(|of: char| !of.is_ascii_alphanumeric() && of != '-' && of != '.', "_");
            let path = folder.join(format!("{file}.flr"));
            if let Err(failure) = save(records, &path) {
                note(&format!("cannot write {}: {failure}", shown(&path)));
            }
        }
        self.fragile += u32::from(is_held);
        let first = report.findings.first().map(|finding| format!("{} ({})", finding.rule, finding.severity.name()));
        let first = first.as_deref().unwrap_or("nothing");
        self.lines.push_str(&format!("{name} | {way} | {truth} | {first} | {}\n", mistakes.join(", ")));
        note(&format!("{name} | {way} | {truth} | {first} | {}", mistakes.join(", ")));
        for ruled_out in report.ruled_out.iter().filter(|ruled_out| ruled_out.rule == truth) {
            self.lines.push_str(&format!("    ruled out: {}\n", ruled_out.reason));
        }
        for rule in report.not_checked.iter().filter(|rule| rule.rule == truth) {
            let gaps = rule.gaps.iter().map(|gap| format!("{}: {}", gap.source, gap.cause));
            self.lines.push_str(&format!("    not checked: {}\n", gaps.collect::<Vec<_>>().join("; ")));
        }
        for finding in report.findings.iter().take(3) {
            self.lines.push_str(&format!("    {} {}: {}\n", finding.severity.name(), finding.rule, finding.summary));
        }
    }

    fn answer(self) -> Answer {
        let mut text = self.lines;
        text.push_str("\nway | looks | wrong | open\n");
        for (way, Count { looks, wrong, open }) in &self.counts {
            text.push_str(&format!("{way} | {looks} | {wrong} | {open}\n"));
        }
        Answer { text, is_as_expected: self.fragile == 0 }
    }
}

impl Vary {
    pub(crate) fn run(&self) -> Result<Answer, Failure> {
        let machines = machines(&self.tables)?;
        let scenarios = scenarios(&self.scenarios)?;
        let mut judged = Judged { save: self.save.clone(), ..Judged::default() };
        if !self.recordings.is_empty() {
            self.recorded(&machines, &scenarios, &mut judged)?;
            return Ok(judged.answer());
        }
        for machine in machines.iter().filter(|machine| machine.line.contains(&self.only)) {
            let key = (machine.file.clone(), machine.variant.clone());
            let scenario =
                scenarios.get(&key).ok_or_else(|| Failure::input(format!("no scenario is called {}", machine.line)))?;
            for kernel in &machine.kernels {
                self.simulated(machine, scenario, kernel, &mut judged)?;
            }
        }
        Ok(judged.answer())
    }

    /// A machine of a table, its cuts and its neighbours.
    fn simulated(&self, machine: &Machine, scenario: &Scenario, on: &str, judged: &mut Judged) -> Result<(), Failure> {
        let name = format!("{} {} {on}", machine.file, machine.variant);
        let usual = usize::try_from(machine.every.0 / EVERY.0).unwrap_or(1);
        let or = machine.or.as_deref();
        let kernel = version(on)?;
        let records = run(scenario, &machine.variant, kernel)?;
        let truth = (scenario, kernel, or);
        judged.take(&name, "as it is", truth, &Cut::Thinned(usual).of(&records), true);
        judged.take(&name, "untraced", truth, &Cut::Thinned(usual).of(&Cut::Untraced.of(&records)), true);
        for every in [1, 2, 4, 10] {
            let way = format!("every {} ms", EVERY.0 / 1_000_000 * every as u64);
            judged.take(&name, &way, truth, &Cut::Thinned(every).of(&records), true);
        }
        for (from, to) in [(0, 60), (40, 100)] {
            let part = Cut::Part(from, to).of(&records);
            judged.take(&name, &format!("{from} to {to} %"), truth, &Cut::Thinned(usual).of(&part), false);
        }
        for other in MACHINES.iter().filter(|_| !self.cuts_only) {
            let varied = other.of(scenario);
            let on = match other {
                Other::Kernel(of) if *of == on => continue,
                Other::Kernel(of) => version(of)?,
                _ => kernel,
            };
            let records = match run(&varied, &machine.variant, on) {
                Ok(records) => records,
                Err(failure) => {
                    note(&format!("{name}, {other:?}: {failure}"));
                    continue;
                }
            };
            let records = Cut::Thinned(usual).of(&records);
            judged.take(&name, &format!("{other:?}"), (&varied, on, or), &records, other.keeps_the_truth());
        }
        Ok(())
    }

    /// Kept recordings and their cuts.
    fn recorded(
        &self,
        machines: &[Machine],
        scenarios: &BTreeMap<(String, String), Scenario>,
        judged: &mut Judged,
    ) -> Result<(), Failure> {
        for path in self.recordings.iter().map(|path| files(path)).collect::<Result<Vec<_>, _>>()?.iter().flatten() {
            let mut records = Vec::new();
            let read = each(path, |record| {
                records.push(record);
                true
            });
            if let Err(failure) = read {
                note(&format!("{failure}; skipped"));
                continue;
            }
            let started = records.iter().find_map(|record| match record {
                Record::Event(event) => match &event.what {
                    What::WorkloadStarted { scenario, variant } => Some((scenario.to_string(), variant.to_string())),
                    _ => None,
                },
                _ => None,
            });
            let kernel = records.iter().find_map(|record| match record {
                Record::Facts(facts) => facts.kernel,
                _ => None,
            });
            let Some((key, kernel)) = started.zip(kernel) else {
                note(&format!("{}: not the run of a scenario; skipped", shown(path)));
                continue;
            };
            let Some(scenario) = scenarios.get(&key).filter(|_| key_contains(&key, &self.only)) else { continue };
            let line = machines.iter().find(|machine| (&machine.file, &machine.variant) == (&key.0, &key.1));
            let truth = (scenario, kernel, line.and_then(|machine| machine.or.as_deref()));
            let name = format!("{} {} {kernel}", key.0, key.1);
            judged.take(&name, "as it is", truth, &records, true);
            let has_trace = records.iter().any(is_traced);
            for cut in CUTS.iter().filter(|cut| has_trace || **cut != Cut::Untraced) {
                let is_held = matches!(cut, Cut::Untraced | Cut::Thinned(_));
                judged.take(&name, &format!("{cut:?}"), truth, &cut.of(&records), is_held);
            }
        }
        Ok(())
    }
}

fn key_contains(key: &(String, String), only: &str) -> bool {
    format!("{} {}", key.0, key.1).contains(only)
}

fn run(scenario: &Scenario, variant: &str, kernel: KernelVersion) -> Result<Vec<Record>, Failure> {
    let mut records = Vec::new();
    let options = Options { every: EVERY, ..Options::new(variant, kernel) };
    let take = |record: Record| {
        records.push(record);
        Ok(())
    };
    // A host has run for a while, so its filesystems are in use.
    let mut scenario = scenario.clone();
    scenario.machine.mounts.values_mut().for_each(|mount| mount.in_use = true);
    simulate(&scenario, &options, take, |_| true).map_err(|error| Failure::input(error.to_string()))?;
    Ok(records)
}

/// Diagnoses records as `doctor` diagnoses a recorded run.
fn diagnosed(records: &[Record]) -> Report {
    let mut stretches = Stretches::with_whole();
    for record in records {
        let Ok(()) = stretches.record(record);
    }
    stretches.finish_whole().0
}
