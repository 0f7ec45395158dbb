// SPDX-License-Identifier: MIT OR Apache-2.0
//! Twin: a scenario made from a recording, the error of its back-test, and what a change of a setting would do on this
//! host. Pure: it reads no file and starts no thread. It runs the simulator, which is pure as well.

pub mod advise;
pub mod backtest;
mod beside;
pub mod by_kernel;
pub mod changed;
mod derive;
mod error;
pub mod felt;
mod findings;
mod fits;
mod headline;
mod kept;
mod lifted;
mod limit_changes;
mod limits;
pub mod model;
mod noticed;
mod on_devices;
mod patience;
pub mod plan;
pub mod predict;
pub mod printed;
mod provenance;
mod recorded;
pub mod run;
pub mod shown;
mod slowest;
mod sparse;
mod storm;
mod text;
mod thresholds;
pub mod trial;

pub use error::TwinError;
pub use fits::lacks_memory;
pub use limit_changes::LimitChanges;
pub use provenance::{Origin, Provenance};
pub use recorded::{Did, Recorded};
pub use text::{scenario_to_toml, to_toml};

use floodline_record::units::Nanos;
use floodline_record::version::KernelVersion;
use floodline_scenario::Scenario;
use floodline_sim::Sampling;
use serde::Serialize;
use std::collections::BTreeMap;

/// How a twin is made.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Kernel to model instead of the recorded one.
    pub kernel: Option<KernelVersion>,
}

/// A host as a scenario.
#[derive(Clone, Debug)]
pub struct Twin {
    /// Machine and workload. Without a trace its writers are *open*, on an absolute clock, or *closed*, waiting for their own writes:
    /// the bound that is nearer to the recording.
    pub scenario: Scenario,
    /// How the demand of the writers is known.
    pub demand: Demand,
    /// Kernel to simulate.
    pub kernel: KernelVersion,
    /// Origin of every key.
    pub provenance: Vec<Provenance>,
    /// What a twin of this recording cannot know, one sentence each.
    pub unknown: Vec<String>,
    /// What the model leaves out of this host, a text each, with the effect that this may have. The first sentence stands alone.
    pub simplified: Vec<String>,
    /// How fast each device was seen to be.
    pub ceilings: Vec<Ceiling>,
    /// What each task of the scenario stands for, by the name of the task.
    pub programs: Programs,
    /// Time between two samples of the recording.
    pub every: Nanos,
    /// Time between two samples that read `memory.stat` and `io.stat` of cgroups.
    pub stat_every: Nanos,
    /// Length of the recording.
    pub seconds: f64,
    /// Whether the recording shows that a program syncs: by a trace, by its waits, or by flushes of a disk where no waits are counted.
    pub shows_syncs: bool,
    /// Its runs as it is that making it took.
    pub(crate) known: run::Known,
}

impl Twin {
    /// Times between the samples of the recording: a run that is held against it is sampled at the same.
    pub fn sampling(&self) -> Sampling {
        Sampling { every: self.every, stat_every: self.stat_every }
    }
}

/// How the demand of throttled writers is known.
#[derive(Clone, Debug)]
pub enum Demand {
    /// Pauses were traced: demand is bytes divided by the time without pauses.
    Traced,
    /// No writer waited, as far as was recorded: there is nothing to bound.
    Free,
    /// No trace: the demand lies between that of the open twin and that of the closed one.
    Bounded {
        /// The same machine with the other bound of the demand.
        other: Box<Scenario>,
        /// Whether the twin itself is the closed one: its writers write, then work, then write again. The back-test decides.
        is_closed: bool,
    },
}

impl Demand {
    /// The word for the twin that is there in any case.
    pub fn name(&self) -> &'static str {
        match self {
            Demand::Traced => "traced",
            Demand::Free => "as recorded",
            Demand::Bounded { is_closed: false, .. } => OPEN,
            Demand::Bounded { is_closed: true, .. } => CLOSED,
        }
    }

    /// The other twin, if there are two.
    fn other_mut(&mut self) -> Option<&mut Scenario> {
        match self {
            Demand::Traced | Demand::Free => None,
            Demand::Bounded { other, .. } => Some(other),
        }
    }

    /// The other twin and its word, if there are two.
    pub fn other(&self) -> Option<(&'static str, &Scenario)> {
        match self {
            Demand::Traced | Demand::Free => None,
            Demand::Bounded { other, is_closed } => Some((if *is_closed { OPEN } else { CLOSED }, other)),
        }
    }
}

/// Words for the bounds of the demand.
const OPEN: &str = "open";
const CLOSED: &str = "closed";

/// How fast a device was seen to be.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ceiling {
    /// Name of the device in the scenario.
    pub device: String,
    /// Whether one of its limits was seen in the recording.
    pub is_known: bool,
    /// Which of its limits were seen. By each other one, it may be faster than the twin.
    pub known: KnownLimits,
    /// Bytes per second written while it was busy.
    pub write_bytes_per_second: Option<f64>,
    /// Small requests per second while it was saturated, or in bursts in which they waited for each other.
    pub requests_per_second: Option<f64>,
    /// Whether it was never saturated and takes bytes at once after a quiet time. Its speed is then fitted to its busy time, and lower
    /// than its bytes per busy second.
    pub has_credit: bool,
    /// One sentence for people.
    pub text: String,
}

impl Ceiling {
    /// Whether the limit of written bytes was not seen, so that the device may be faster than the twin. A device that only small requests
    /// kept full is limited by them.
    pub fn is_open(&self) -> bool {
        !self.known.write_bytes && (!self.is_known || self.write_bytes_per_second.is_some())
    }
}

/// The limits of a device at which it was seen. A device that small requests keep full shows nothing of its bytes per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct KnownLimits {
    /// Bytes written per second.
    pub write_bytes: bool,
    /// Bytes read per second.
    pub read_bytes: bool,
    /// Write requests per second, alone or with reads.
    pub writes: bool,
    /// Read requests per second, alone or with writes.
    pub reads: bool,
}

/// What a task stands for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Program {
    /// Name of the processes, escaped.
    pub comm: String,
    /// Their cgroup, escaped; `/` is the root.
    pub cgroup: String,
    /// How many processes it stands for.
    pub processes: u64,
    /// Name of the device of its files in the scenario.
    pub device: String,
}

/// Programs by the name of their task.
pub type Programs = BTreeMap<String, Program>;

/// Makes a twin from a recording.
///
/// # Errors
///
/// The recording has no facts, is too short, shows no I/O, or is of a machine that the model does not carry.
pub fn of(recorded: &Recorded, options: &Options) -> Result<Twin, TwinError> {
    of_while(recorded, options, &|_| true)
}

/// Makes a twin from a recording. `go_on` is asked during the runs that decide on its syncs, with the number of simulated events. If it
/// ends a run, the twin keeps the sync.
///
/// # Errors
///
/// As [`of`].
pub fn of_while(recorded: &Recorded, options: &Options, go_on: &dyn Fn(u64) -> bool) -> Result<Twin, TwinError> {
    derive::twin(recorded, options, go_on)
}
