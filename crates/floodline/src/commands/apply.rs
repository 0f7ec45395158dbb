// SPDX-License-Identifier: MIT OR Apache-2.0
//! `floodline apply`: makes the change of a plan under a guard that undoes it unless it is confirmed. Wiring only: the
//! change is made by `floodline_tune`.

use super::Run;
use super::explain::named;
use crate::console::{Console, Format};
use crate::error::CliError;
use crate::exit::Exit;
use crate::input::shown;
use crate::interrupt::Interrupt;
use crate::live::{Host, StatReads};
use crate::observe::{Schedule, observe, parse_duration};
use crate::trial::{self, Trial, parse_design, try_by_turns};
use crate::tuning::{SiteArgs, tell_settled};
use crate::twins::try_plan;
use floodline_analysis::change::{ChangePlan, Ramp, RampStep};
use floodline_analysis::diagnose::stretches::Stretches;
use floodline_analysis::knob_of::knob_of;
use floodline_analysis::report::When;
use floodline_analysis::tried::MAY_HARM;
use floodline_host::Needs;
use floodline_record::human;
use floodline_record::record::Sink;
use floodline_tune::apply::{Prepared, Request, of_step, plan_of, prepare, run};
use floodline_tune::recover::Site;
use floodline_tune::staged::Stage;
use floodline_tune::switchback::Design;
use floodline_twin::trial::Kept;
use floodline_view::change as view;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Change settings of this host, and undo the change unless it is confirmed
#[derive(clap::Parser)]
#[command(
    name = "apply",
    after_help = "A guard starts before the first write. It puts every old value back when the time to confirm is \
        over, when tasks of the host stall on I/O, when a writer waits for longer than the plan allows, when --probe \
        fails, and when this program dies. A plan with a ramp is written in several steps. After each step but the last, floodline watches the host. If a bound of the plan is exceeded, it puts the old values back. A value that another program changed meanwhile is not touched. A reboot also brings \
        the old values back: files are written by floodline confirm, and only with --persist.\n\n\
        Examples:\n  \
        floodline apply plan.json --dry-run\n  \
        floodline apply plan.json --yes --confirm-within 10m\n  \
        floodline apply --set vm.dirty_bytes=256M --yes --persist\n  \
        floodline apply --finding dirty-cliff --yes --probe 'test -e /srv/ok'\n  \
        floodline apply --finding dirty-cliff --yes --switchback 6x10m\n  \
        floodline apply plan.json --yes --switchback 6x10m"
)]
pub(crate) struct Apply {
    /// Plan that floodline advise wrote; - is standard input
    #[arg(conflicts_with_all = ["set", "finding"])]
    plan: Option<PathBuf>,
    /// Observe this host for 10 s and apply what doctor prints for the finding of this rule
    #[arg(long, value_name = "RULE", conflicts_with = "set")]
    finding: Option<String>,
    /// Set this knob to this value, e.g. vm.dirty_bytes=256M; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// Also apply a change that is only a candidate: not known to help on this host
    #[arg(long, conflicts_with = "set")]
    candidate: bool,
    /// Write. Without it, the writes are printed and nothing is changed
    #[arg(long, conflicts_with = "dry_run")]
    yes: bool,
    /// Print every write and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Undo the change unless floodline confirm succeeds within this time
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = parse_within)]
    confirm_within: Duration,
    /// When the change is confirmed, also write files that set it at boot
    #[arg(long)]
    persist: bool,
    /// Make the change in one step, even if its plan has several
    #[arg(long)]
    at_once: bool,
    /// Shell command to run every 5 s; undo the change if it fails
    #[arg(long, value_name = "CMD")]
    probe: Option<String>,
    /// Make and undo the change in turns, and judge whether it helps: 6x10m is 6 blocks of 10 minutes
    #[arg(long, value_name = "BLOCKSxDURATION", value_parser = parse_design, conflicts_with_all = ["confirm_within", "persist"])]
    switchback: Option<Design>,
    #[command(flatten)]
    site: SiteArgs,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Longest plan that is read.
const PLAN_MAX: u64 = 4 << 20;

/// Largest difference that counts as none in a trial, as `floodline verify` has it.
const DIFFERENCE: f64 = 0.2;

/// How long `--finding` observes.
const OBSERVED: Schedule = Schedule { length: Some(Duration::from_secs(10)), every: Duration::from_secs(1) };

/// Reads a time to confirm: long enough for a login, short enough to end.
fn parse_within(text: &str) -> Result<Duration, String> {
    match parse_duration(text)? {
        within if within < Duration::from_secs(1) => Err("too short: the minimum is 1s".to_owned()),
        within if within > Duration::from_secs(7 * 86_400) => Err("too long: the maximum is 168h".to_owned()),
        within => Ok(within),
    }
}

impl Run for Apply {
    fn run(self, console: &mut Console) -> Result<Exit, CliError> {
        if self.plan.is_none() && self.finding.is_none() && self.set.is_empty() {
            return Err(CliError::usage("no change is given")
                .hint("a setting: floodline apply --set vm.dirty_bytes=256M --dry-run")
                .hint("what helps against a finding: floodline apply --finding dirty-cliff --dry-run")
                .hint("a plan: floodline advise host.flr -o plan.json && floodline apply plan.json --dry-run"));
        }
        let site = self.site.site()?;
        let plan = match (&self.plan, &self.finding) {
            (Some(path), _) => read(path)?,
            (None, Some(rule)) => {
                let change = self.change_for(rule)?;
                let mut plan = plan_of(&site, &change.sets)?;
                plan.rules.push(rule.clone());
                plan.arithmetic_only = change.unknown;
                plan.ramp = change.ramp;
                plan
            }
            (None, None) => plan_of(&site, &self.set)?,
        };
        if let (Some(design), true) = (self.switchback, self.yes) {
            return self.by_turns(console, &site, plan, design);
        }
        self.known_to_help(console, &plan)?;
        let request = Request {
            plan,
            within: self.confirm_within,
            persist: self.persist,
            probe: self.probe.clone(),
            at_once: self.at_once || self.switchback.is_some(),
        };
        let prepared = prepare(&site, &request, !self.yes)?;
        tell_settled(console, &prepared.settled);
        if let Some(warning) = &prepared.warning {
            console.note(warning);
        }
        if let Some(design) = self.switchback {
            console.note(&trial::told(design));
        }
        if !self.yes {
            console.print(&self.shown(&writes(&prepared, &request.plan))?)?;
            if self.dry_run {
                return Ok(Exit::Done);
            }
            return Err(CliError::usage("nothing was changed: --yes was not given")
                .hint("make these writes: add --yes")
                .hint("only print them, with exit code 0: add --dry-run"));
        }
        let steps = prepared.slots.iter().map(|slot| slot.writes.len()).max().unwrap_or(0);
        if steps > 1 && prepared.stages.len() < 2 {
            console.note(&format!(
                "the limit is lowered in {steps} steps. Each step waits until the dirty data fits, while it shrinks"
            ));
        }
        let applied = run(&site, &request, prepared, |stage| console.note(&told(stage)))?;
        let answer = view::Applied {
            schema: view::APPLIED,
            id: applied.id,
            set: applied.set,
            confirm_within_s: applied.left.as_secs_f64(),
            keep: site.command("confirm"),
            undo: site.command(&format!("rollback {}", applied.id)),
        };
        match self.format {
            Format::Text => console.print(&view::applied(&answer))?,
            Format::Json => console.print(&view::json(&answer).map_err(CliError::bug)?)?,
        }
        Ok(Exit::Done)
    }
}

impl Apply {
    fn shown(&self, writes: &view::Writes) -> Result<String, CliError> {
        match self.format {
            Format::Text => Ok(view::writes(writes)),
            Format::Json => view::json(writes).map_err(CliError::bug),
        }
    }

    /// Makes a trial. The settings of now are in force at its end.
    fn by_turns(&self, console: &mut Console, site: &Site, plan: ChangePlan, design: Design) -> Result<Exit, CliError> {
        let probe = self.probe.clone();
        let trial = Trial { plan, is_inverse: false, design, difference: DIFFERENCE, probe };
        let (id, benefit) = try_by_turns(console, site, trial)?;
        console.note(&format!("trial {id} has ended, and the old values are in force"));
        let verified = view::Verified {
            schema: view::VERIFIED,
            id: None,
            in_force: Vec::new(),
            dirty_limits: Vec::new(),
            benefit: Some(benefit),
        };
        match self.format {
            Format::Text => console.print(&view::verified(&verified))?,
            Format::Json => console.print(&view::json(&verified).map_err(CliError::bug)?)?,
        }
        let has_harmed = verified.benefit.is_some_and(|benefit| benefit.verdict == "harmed");
        Ok(if has_harmed { Exit::Findings } else { Exit::Done })
    }

    /// Refuses a change that is not known to help on this host, unless the command line asks for it. A trial by turns is how to
    /// find out.
    fn known_to_help(&self, console: &Console, plan: &ChangePlan) -> Result<(), CliError> {
        let Some(why) = plan.arithmetic_only.as_ref().filter(|_| self.set.is_empty()) else { return Ok(()) };
        let told = format!("the change is a candidate: it is not known to help here ({why})");
        if self.yes && !self.candidate {
            return Err(CliError::usage(format!("{told}; nothing was changed"))
                .hint("measure it: replace --confirm-within and --persist by --switchback 6x10m")
                .hint("apply it anyway: add --candidate"));
        }
        console.note(&told);
        Ok(())
    }

    /// The change that `doctor` prints for a finding.
    fn change_for(&self, rule: &str) -> Result<Change, CliError> {
        let rule = named(rule)?.name;
        let interrupt = Interrupt::watch()?;
        let root = self.site.root();
        let host = Host::open(root)?;
        let mut stretches = Stretches::new(vec![rule]);
        let mut kept = Kept::live();
        let length = if root.is_some() { Some(Duration::ZERO) } else { OBSERVED.length };
        let looks = host.looks(Needs::ALL, StatReads::default(), None);
        observe(Schedule { length, ..OBSERVED }, &interrupt, looks, |record| {
            kept.record(record);
            match stretches.record(record) {
                Ok(()) => Ok(()),
            }
        })?;
        let mut report = stretches.finish();
        let see = |details: &str| match root {
            Some(root) => format!("see why: floodline doctor --rule {rule} {details}--root {}", shown(root)),
            None => format!("see why: floodline doctor --rule {rule} {}", details.trim_end()),
        };
        let Some(finding) = report.findings.iter().find(|finding| finding.rule == rule).cloned() else {
            let is_unchecked = report.not_checked.iter().any(|one| one.rule == rule);
            let what = if is_unchecked { "could not be checked" } else { "is not found" };
            return Err(
                CliError::usage(format!("{rule} {what} on this host; nothing was changed")).hint(see("--details "))
            );
        };
        try_plan(&mut report, Some(kept));
        let plan = report.plan.unwrap_or_default();
        if let Some(tried) = plan.tried.as_ref().filter(|tried| !tried.withheld.is_empty()) {
            let what = match tried.verdict {
                "harms" => "harms",
                MAY_HARM => "may make tasks wait longer",
                _ => "does not help",
            };
            return Err(CliError::usage(format!("on a twin of this host, the change {what}; nothing was changed"))
                .hint(see("--details ")));
        }
        let steps = || plan.steps.iter().filter(|step| step.when == When::Now);
        let sets: Vec<String> = steps().filter_map(knob_of).map(|(name, value)| format!("{name}={value}")).collect();
        if sets.is_empty() {
            if finding.plan.is_empty() {
                let told = format!("doctor has no change for {rule}; nothing was changed");
                return Err(CliError::usage(told).hint(finding.trade_off).hint(see("--details ")));
            }
            let told = format!("the plan of {rule} changes no knob that apply can set; nothing was changed");
            let told = CliError::usage(told);
            let by_hand = finding.plan.iter().filter(|step| step.when == When::Now);
            return Err(by_hand.fold(told, |told, step| told.hint(format!("do it by hand: {}", step.command))));
        }
        Ok(Change { sets, unknown: plan.candidate.map(|candidate| candidate.why), ramp: plan.ramp })
    }
}

/// The change for a finding.
struct Change {
    /// Knobs and values, as `--set` takes them.
    sets: Vec<String>,
    /// Why it is not known to help here; `None` where it is.
    unknown: Option<String>,
    /// Its steps.
    ramp: Option<Ramp>,
}

/// A step of several, before it is made.
fn told(stage: &Stage) -> String {
    let (number, of) = stage.number;
    let set = stage.set.join(" ");
    match number == of {
        true => format!("step {number} of {of}: {set}"),
        false => {
            let watch = human::seconds(stage.watch.as_secs_f64());
            format!(
                "step {number} of {of}: {set}. The host is watched for {watch}. If this program ends meanwhile, the old values are restored"
            )
        }
    }
}

/// The writes of a prepared plan, for people and programs.
fn writes(prepared: &Prepared, plan: &ChangePlan) -> view::Writes {
    let of = |slot: &floodline_tune::slot::Slot| {
        slot.writes
            .iter()
            .filter_map(|write| {
                let path = slot.attributes.get(write.at).map(|attribute| format!("/{}", attribute.path))?;
                Some(view::Write { path, value: write.value.clone() })
            })
            .collect::<Vec<_>>()
    };
    let slots = prepared.slots.iter().map(|slot| view::Setting {
        old: slot.old_shown(),
        new: slot.new_shown(),
        writes: of(slot),
    });
    let files = prepared.files.iter().map(|(path, text)| view::Write { path: path.clone(), value: text.clone() });
    // The stages, not the steps of the plan: what is in force already is left out.
    let stages = || prepared.stages.iter().filter(|_| prepared.stages.len() > 1);
    let step = |stage: &Stage| RampStep {
        set: stage.set.clone(),
        watch_s: stage.watch.as_secs_f64(),
        go_on_if: stage.go_on_if.clone(),
    };
    let why = plan.ramp.as_ref().filter(|_| stages().next().is_some()).map(|ramp| ramp.why.clone());
    let ramp = why.map(|why| Ramp { why, steps: stages().map(step).collect() });
    let steps = stages().map(|stage| of_step(&prepared.slots, stage.step).iter().flat_map(of).collect());
    view::Writes {
        schema: view::WRITES,
        settings: slots.collect(),
        files_at_confirm: files.collect(),
        ramp,
        steps: steps.collect(),
    }
}

/// Hint beside a file that holds no plan.
const MAKE: &str = "make a plan: floodline advise host.flr -o plan.json";

/// Reads a plan.
fn read(path: &Path) -> Result<ChangePlan, CliError> {
    let name = if path == Path::new("-") { "standard input".to_owned() } else { shown(path).to_string() };
    let open: Result<Box<dyn Read>, io::Error> = match path == Path::new("-") {
        true => Ok(Box::new(io::stdin().lock())),
        false => File::open(path).map(|file| Box::new(file) as Box<dyn Read>),
    };
    let mut text = Vec::new();
    open.and_then(|file| file.take(PLAN_MAX).read_to_end(&mut text))
        .map_err(|error| CliError::usage(format!("cannot read {name}: {error}")).hint(MAKE))?;
    let again = |error: CliError| error.hint(MAKE);
    let value: serde_json::Value = serde_json::from_slice(&text)
        .map_err(|error| again(CliError::usage(format!("{name} is not a plan: {error}"))))?;
    // A newer form has fields that this program does not know: its version explains more than they do.
    let schema = value.get("schema").and_then(serde_json::Value::as_str).unwrap_or_default().to_owned();
    if schema != floodline_analysis::change::SCHEMA {
        let wanted = floodline_analysis::change::SCHEMA;
        return Err(again(CliError::usage(format!("{name} has schema {schema:?}; this program applies {wanted}"))));
    }
    serde_json::from_value(value).map_err(|error| again(CliError::usage(format!("{name} is not a plan: {error}"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_to_confirm_has_ends() {
        assert_eq!(parse_within("10m"), Ok(Duration::from_secs(600)));
        assert!(parse_within("999ms").is_err());
        assert!(parse_within("169h").is_err());
    }
}
