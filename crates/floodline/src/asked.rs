// SPDX-License-Identifier: MIT OR Apache-2.0
//! The arguments that `simulate`, `sweep` and `lab run` share: which variant runs on which kernel, and what is changed of
//! it.

use crate::console::Console;
use crate::error::CliError;
use crate::observe::{parse_duration, parse_interval};
use floodline_kernel::{NotARelease, Planned, Release};
use floodline_record::units::Nanos;
use floodline_record::version::KernelVersion;
use floodline_scenario::{Scenario, Time, split_setting};
use floodline_twin::model::nanos;
use std::time::Duration;

/// Reads a kernel to model. A release that never existed is refused. A release newer than the newest known here gets a
/// note: the model simulates it like the newest.
pub(crate) fn modelled(text: &str, console: Option<&Console>) -> Result<KernelVersion, CliError> {
    known(text, "it is simulated", console)
}

/// Checks a kernel to move to, and notes how a series was taken. `what` says what is done like that of the newest known release.
pub(crate) fn planned(text: &str, what: &str, console: &Console) -> Result<(), CliError> {
    known(text, what, Some(console))?;
    if let Some(told) = text.parse::<Planned>().ok().and_then(Planned::told) {
        console.note(&told);
    }
    Ok(())
}

/// Reads a kernel as [`modelled`] does. `what` says what is done like that of the newest known release.
pub(crate) fn known(text: &str, what: &str, console: Option<&Console>) -> Result<KernelVersion, CliError> {
    let wrong =
        || CliError::usage(format!("invalid kernel version {text:?}: expected a version such as 6.12 or 5.10.223"));
    let version = text.parse().map_err(|_| wrong())?;
    match Release::parse(text) {
        Err(error @ NotARelease::NeverReleased(..)) => {
            Err(CliError::usage(error).hint("floodline kernels lists the known releases"))
        }
        Err(error @ NotARelease::TooNew(..)) => {
            if let Some(console) = console {
                console.note(&format!("{error}: {what} like that one"));
            }
            Ok(version)
        }
        _ => Ok(version),
    }
}

/// What is asked of the model.
#[derive(clap::Args)]
pub(crate) struct Asked {
    /// Variant to run [default: the one named incident, or the only one]
    #[arg(long, value_name = "NAME")]
    pub(crate) variant: Option<String>,
    #[command(flatten)]
    changes: Changes,
    /// Kernel version to model [default: 6.12]
    #[arg(long, value_name = "VERSION")]
    kernel: Option<String>,
    /// Time between two samples
    #[arg(long, value_name = "DURATION", default_value = "500ms", value_parser = parse_interval)]
    every: Duration,
}

/// What is changed of a scenario before it runs, on the model or on a real kernel.
#[derive(Clone, clap::Args)]
pub(crate) struct Changes {
    /// Override a setting or a key of the scenario, e.g. vm.dirty_ratio=10 or machine.memory=8G
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<String>,
    /// Number of copies of the scenario's cgroups, or of its tasks if no cgroup has copies
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    instances: Option<u32>,
    /// Duration of the workload
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_simulated)]
    lasting: Option<Duration>,
}

/// Reads a length of time that a clock of nanoseconds can count.
fn parse_simulated(text: &str) -> Result<Duration, String> {
    let lasting = parse_duration(text)?;
    i64::try_from(lasting.as_nanos())
        .map(|_| lasting)
        .map_err(|_| "duration too long: the maximum is 292 years".to_owned())
}

/// The kernel where none is named.
const KERNEL: &str = "6.12";

impl Asked {
    /// Whether a key that a sweep may vary has a value already.
    pub(crate) fn fixes(&self, key: &str) -> bool {
        let has_option = match key {
            "kernel" => self.kernel.is_some(),
            "variant" => self.variant.is_some(),
            "instances" => self.changes.instances.is_some(),
            "for" => self.changes.lasting.is_some(),
            _ => false,
        };
        has_option || self.changes.settings.iter().any(|text| split_setting(text).is_some_and(|(set, _)| set == key))
    }

    /// The kernel that is modelled: `other` where something varies it.
    pub(crate) fn kernel(&self, other: Option<&str>) -> Result<KernelVersion, CliError> {
        modelled(other.or(self.kernel.as_deref()).unwrap_or(KERNEL), None)
    }

    /// Simulated time between two samples.
    pub(crate) fn every(&self) -> Nanos {
        nanos(self.every)
    }

    /// A scenario with all changes made.
    pub(crate) fn changed(&self, scenario: &Scenario) -> Result<Scenario, CliError> {
        self.changes.changed(scenario)
    }
}

impl Changes {
    /// A scenario with all changes made.
    pub(crate) fn changed(&self, scenario: &Scenario) -> Result<Scenario, CliError> {
        let mut changed = scenario.clone();
        if let Some(lasting) = self.lasting {
            changed = changed.changed("for", &Time(nanos(lasting)).to_string()).map_err(CliError::usage)?;
        }
        if let Some(instances) = self.instances {
            changed = changed.changed("instances", &instances.to_string()).map_err(CliError::usage)?;
        }
        for text in &self.settings {
            let wrong = || {
                CliError::usage(format!("invalid setting {text:?}: expected KEY=VALUE"))
                    .hint("e.g. vm.dirty_ratio=10 or vm.dirty_bytes=64M")
            };
            let (key, value) = split_setting(text).ok_or_else(wrong)?;
            changed = changed.changed(key, value).map_err(CliError::usage)?;
        }
        Ok(changed)
    }
}
