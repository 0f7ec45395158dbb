// SPDX-License-Identifier: MIT OR Apache-2.0
//! One host of the generated fleet: its recording before the change, as `floodline record` would have made it, and what
//! the change really does to it, measured by a run before and one after.

use super::kinds::Kind;
use super::written::Written;
use crate::Failure;
use floodline_fleet::Felt;
use floodline_record::record::{Record, Sink, What};
use floodline_record::recording::{Encoder, Header};
use floodline_record::units::Nanos;
use floodline_record::version::KernelVersion;
use floodline_record::window::Window;
use floodline_scenario::{Scenario, ScenarioFile};
use floodline_sim::{Options, simulate};
use floodline_twin::run::Simulated;
use floodline_twin::{Programs, shown};
use std::fmt::Display;

/// A host, measured.
#[derive(Clone, Debug)]
pub(super) struct Host {
    pub(super) kind: &'static str,
    pub(super) change: Vec<&'static str>,
    pub(super) name: String,
    /// Recording before the change.
    pub(super) recording: Vec<u8>,
    /// Recording after the change.
    pub(super) recording_after: Vec<u8>,
    /// How much worse the change really makes it: 1 is just noticeable.
    pub(super) worse: f64,
    /// The same with another seed, where that was measured.
    pub(super) worse_again: Option<f64>,
    pub(super) before: Felt,
    pub(super) after: Felt,
}

/// Time between two samples, as `floodline record` takes them.
const EVERY: Nanos = Nanos(1_000_000_000);
/// What is added to a seed for the same host once more.
const OTHER_SEED: u64 = 7_919;

impl Host {
    /// Runs a host of a kind before and after its change; with `again`, both once more with other randomness.
    pub(super) fn of(kind: Kind, number: u64, again: bool) -> Result<Host, Failure> {
        Host::run(kind.name, kind.kernel, kind.change.to_vec(), &kind.scenario(number), number, again)
    }

    /// The same for a kind of a later group.
    pub(super) fn later(kind: &'static Written, number: u64, again: bool) -> Result<Host, Failure> {
        Host::run(&kind.name, &kind.kernel, kind.change(), &kind.text_of(number), number, again)
    }

    fn run(
        kind: &'static str,
        kernel: &str,
        change: Vec<&'static str>,
        text: &str,
        number: u64,
        again: bool,
    ) -> Result<Host, Failure> {
        let name = format!("{kind}-{number}");
        let [(now, kernel), (then, kernel_then)] = changed(text, kernel, &change, &name)?;
        let (before, recording) = run(&now, kernel, &name)?;
        let (after, recording_after) = run(&then, kernel_then, &name)?;
        let worse_again = match again {
            true => {
                let other = |scenario: &Scenario| {
                    let mut scenario = scenario.clone();
                    scenario.workload.seed = scenario.workload.seed.wrapping_add(OTHER_SEED);
                    scenario
                };
                Some(run(&other(&now), kernel, &name)?.0.worse(&run(&other(&then), kernel_then, &name)?.0))
            }
            false => None,
        };
        Ok(Host {
            kind,
            change,
            worse: before.worse(&after),
            worse_again,
            name,
            recording,
            recording_after,
            before,
            after,
        })
    }
}

/// A host as it is and after its change, each with its kernel.
pub(super) fn scenarios(kind: Kind, number: u64, name: &str) -> Result<[(Scenario, KernelVersion); 2], Failure> {
    changed(&kind.scenario(number), kind.kernel, kind.change, name)
}

/// The scenario of a text as it is and after a change, each with its kernel.
pub(super) fn changed(
    text: &str,
    kernel: &str,
    change: &[&str],
    name: &str,
) -> Result<[(Scenario, KernelVersion); 2], Failure> {
    let (file, kernel) = parsed(text, kernel, name)?;
    let now = file.variants.into_values().next().ok_or_else(|| wrong(name, &"no variant"))?;
    let (mut then, mut kernel_then) = (now.clone(), kernel);
    for part in change {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        match key {
            "kernel" => kernel_then = version(value, name)?,
            "cgroup" => then = then.changed("machine.cgroup_mode", value).map_err(|error| wrong(name, &error))?,
            key => then = then.changed(key, value).map_err(|error| wrong(name, &error))?,
        }
    }
    Ok([(now, kernel), (then, kernel_then)])
}

/// The variants `now` and `then` of a text, each with its kernel. Of the change, only the kernel is read.
pub(super) fn varied(
    text: &str,
    kernel: &str,
    change: &[&str],
    name: &str,
) -> Result<[(Scenario, KernelVersion); 2], Failure> {
    let (mut file, kernel) = parsed(text, kernel, name)?;
    let mut variant = |of: &str| file.variants.remove(of).ok_or_else(|| wrong(name, &format_args!("no variant {of}")));
    let (now, then) = (variant("now")?, variant("then")?);
    let kernel_then = change.iter().find_map(|part| part.strip_prefix("kernel="));
    Ok([(now, kernel), (then, kernel_then.map_or(Ok(kernel), |text| version(text, name))?)])
}

/// Reads the scenario and the kernel of a host.
fn parsed(text: &str, kernel: &str, name: &str) -> Result<(ScenarioFile, KernelVersion), Failure> {
    Ok((ScenarioFile::parse(text).map_err(|error| wrong(name, &error))?, version(kernel, name)?))
}

/// Reads the kernel of a host.
fn version(text: &str, name: &str) -> Result<KernelVersion, Failure> {
    text.parse().map_err(|error| wrong(name, &error))
}

/// What is wrong with a host.
fn wrong(name: &str, why: &dyn Display) -> Failure {
    Failure::input(format!("{name}: {why}"))
}

/// Runs a scenario: what is felt of it, and its recording under a name.
fn run(scenario: &Scenario, kernel: KernelVersion, name: &str) -> Result<(Felt, Vec<u8>), Failure> {
    let (window, recording) = folded(scenario, kernel, name)?;
    let felt = Felt::of(&shown::figures(&window, &Programs::new()), &shown::seen(&window), window.seconds());
    Ok((felt, recording))
}

/// Runs a scenario: its workload, folded, and its recording under a name.
pub(super) fn folded(scenario: &Scenario, kernel: KernelVersion, name: &str) -> Result<(Window, Vec<u8>), Failure> {
    let mut simulated = Simulated::default();
    let mut records: Vec<Record> = Vec::new();
    let options = Options { every: EVERY, ..Options::new("fleet", kernel) };
    let take = |record: Record| {
        let Ok(()) = simulated.record(&record);
        records.push(record);
        Ok(())
    };
    // A host has run for a while, so its filesystems are in use.
    let mut scenario = scenario.clone();
    scenario.machine.mounts.values_mut().for_each(|mount| mount.in_use = true);
    simulate(&scenario, &options, take, |_| true).map_err(|error| Failure::input(format!("{name}: {error}")))?;
    Ok((simulated.window, recorded(&records, name)?))
}

/// The recording of the workload alone. Events are left out: on a host, no task reports its own calls.
pub(super) fn recorded(records: &[Record], name: &str) -> Result<Vec<u8>, Failure> {
    let is = |record: &Record, wanted: fn(&What) -> bool| matches!(record, Record::Event(event) if wanted(&event.what));
    let started = records.iter().position(|record| is(record, |what| matches!(what, What::WorkloadStarted { .. })));
    let ended = records.iter().position(|record| is(record, |what| matches!(what, What::WorkloadEnded)));
    let started = started.unwrap_or(0);
    let last_before = records[..started].iter().rposition(|record| matches!(record, Record::Sample(_))).unwrap_or(0);
    let failed = |error: &dyn std::fmt::Display| Failure::input(format!("{name}: {error}"));
    let mut encoder = Encoder::new(Vec::new(), Header::new(Some(EVERY))).map_err(|error| failed(&error))?;
    // Limits and zones are read at the start and then now and then. A recorder that starts here would read them here.
    let (mut limits, mut zones, mut is_first) = (None, None, true);
    for (at, record) in records.iter().enumerate() {
        if let Record::Sample(sample) = record {
            limits = Some(&sample.cgroup_limits).filter(|table| table.was_read()).or(limits);
            zones = Some(&sample.zones).filter(|table| table.was_read()).or(zones);
        }
        let record = match record {
            Record::Event(_) => continue,
            Record::Sample(_) if at < last_before || ended.is_some_and(|ended| at > ended) => continue,
            Record::Facts(facts) => {
                let mut facts = facts.clone();
                facts.hostname = name.into();
                Record::Facts(facts)
            }
            Record::Sample(sample) if is_first => {
                let mut sample = sample.clone();
                sample.cgroup_limits = limits.cloned().unwrap_or_default();
                sample.zones = zones.cloned().unwrap_or_default();
                is_first = false;
                Record::Sample(sample)
            }
            other => other.clone(),
        };
        encoder.record(&record).map_err(|error| failed(&error))?;
    }
    encoder.finish().map_err(|error| failed(&error))
}
