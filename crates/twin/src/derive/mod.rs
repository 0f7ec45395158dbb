// SPDX-License-Identifier: MIT OR Apache-2.0
//! From a recording to a scenario: first the machine, then what ran on it.

mod cgroups;
mod devices;
mod group;
mod machine;
mod names;
mod workload;
mod writer;

use crate::provenance::Notes;
use crate::{Demand, Options, Recorded, Twin, TwinError};
use floodline_kernel::{OLDEST_MODELLED, is_modelled};
use floodline_record::units::Nanos;
use floodline_record::window::Window;
use floodline_scenario::{Expect, Scenario, ScenarioFile, Time, Workload};

/// Fewest samples and shortest time that say anything of a load.
const SAMPLES_MIN: u64 = 5;
const SECONDS_MIN: f64 = 3.0;
/// Longest recording.
const HOURS_MAX: u64 = 2;

pub(crate) fn twin(recorded: &Recorded, options: &Options) -> Result<Twin, TwinError> {
    let window = &recorded.window;
    let facts = window.facts.as_ref().ok_or(TwinError::NoFacts)?;
    let seconds = window.seconds();
    if window.samples < SAMPLES_MIN || seconds < SECONDS_MIN {
        return Err(TwinError::TooShort { samples: window.samples, seconds });
    }
    if seconds > (HOURS_MAX * 3600) as f64 {
        return Err(TwinError::TooLong { hours: seconds / 3600.0, most: HOURS_MAX });
    }
    let kernel = options.kernel.or(facts.kernel).ok_or(TwinError::Missing("the kernel version"))?;
    if !is_modelled(kernel) {
        return Err(TwinError::TooOld { kernel, oldest: OLDEST_MODELLED.to_string() });
    }
    let mut notes = Notes::default();
    let mut unknown = Vec::new();
    let (mut machine, places, ceilings) = machine::machine(window, facts, &mut notes, &mut unknown)?;
    let load = workload::workload(recorded, &places, &mut machine, &mut notes, &mut unknown)?;
    let duration = Time(Nanos((seconds * 1e9) as u64));
    notes.measured("workload.duration", "length of the recording");
    let scenario = |tasks| Scenario {
        name: "twin".to_owned(),
        summary: format!("Twin of a recording of {seconds:.0} s on Linux {kernel}"),
        about: None,
        machine: machine.clone(),
        workload: Workload { duration: Some(duration), settle: None, seed: 0, tasks },
        expect: Expect::default(),
    };
    let open = checked(scenario(load.open))?;
    let demand = match load.closed {
        Some(closed) => Demand::Bounded { closed: Box::new(checked(scenario(closed))?) },
        None => Demand::Traced,
    };
    unknown.extend(limits_of_knowledge(window, recorded));
    Ok(Twin {
        scenario: open,
        demand,
        kernel,
        provenance: notes.0,
        unknown,
        ceilings,
        programs: load.programs,
        every: interval(window),
        seconds,
    })
}

/// A scenario after all checks of a file: `floodline scenario check` must find it good.
fn checked(scenario: Scenario) -> Result<Scenario, TwinError> {
    let text = scenario.to_toml().map_err(|error| TwinError::Invalid(error.to_string()))?;
    let file = ScenarioFile::parse(&text).map_err(|error| TwinError::Invalid(error.to_string()))?;
    floodline_sim::check(&scenario)?;
    file.variants.into_values().next().ok_or_else(|| TwinError::Invalid("it has no variant".to_owned()))
}

/// Usual time between two samples, at least 100 ms.
fn interval(window: &Window) -> Nanos {
    let mut steps: Vec<u64> =
        window.host_series.windows(2).map(|pair| pair[1].0.monotonic.0.saturating_sub(pair[0].0.monotonic.0)).collect();
    steps.sort_unstable();
    Nanos(steps.get(steps.len() / 2).copied().unwrap_or(500_000_000).clamp(100_000_000, 60_000_000_000))
}

/// What no recording tells.
fn limits_of_knowledge(window: &Window, recorded: &Recorded) -> Vec<String> {
    let mut unknown = vec![
        "Containers and programs that start after the recording are not in the twin.".to_owned(),
        format!("Load peaks outside these {:.0} s are not in the twin.", window.seconds()),
    ];
    if window.traced.is_empty() {
        unknown.push(
            "Nothing was traced: which files were written and which calls were fsync is inferred from counters. \
             Record with --trace on to know it."
                .to_owned(),
        );
    }
    if let Some(hole) = window.holes.hole() {
        unknown.push(format!(
            "The recorder missed samples for up to {:.1} s: a burst there has lost its arrival times.",
            hole.length().as_secs_f64()
        ));
    }
    if recorded.is_cut {
        unknown
            .push("The recording has more intervals of processes than a twin keeps: later ones are left out.".into());
    }
    let facts = window.facts.as_ref();
    if facts.is_some_and(|facts| facts.privileged == Some(false)) {
        unknown.push(
            "The recorder was not root: the I/O of other users' processes is known only as the rest of the machine's."
                .to_owned(),
        );
    }
    unknown
}
