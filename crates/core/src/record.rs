// SPDX-License-Identifier: MIT OR Apache-2.0
//! The stream everything is made of. A live host, a file, the simulator and a guest each produce
//! [`Record`]s in the same order rules; the encoder, the window and the exporters consume them and
//! cannot tell where they came from.
//!
//! Order: facts first; an entity before the first sample, event or gap that refers to it.

use crate::facts::HostFacts;
use crate::gap::Gap;
use crate::id::{Entity, EntityId};
use crate::sample::Sample;
use crate::units::Nanos;
use serde::{Deserialize, Serialize};

/// One item of a recording.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// What the machine is. A later one replaces an earlier one.
    Facts(Box<HostFacts>),
    /// What an id stands for. A process that changed its name or cgroup is described again.
    Entity(EntityId, Entity),
    /// One look at the machine.
    Sample(Box<Sample>),
    /// Something that happened at one moment.
    Event(Event),
    /// Something that was not read.
    Gap(Gap),
}

/// Something that happened at one moment. Closed: one can see everything that can happen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// When, on the monotonic clock of the samples.
    pub at: Nanos,
    /// What.
    #[serde(flatten)]
    pub what: What,
}

/// The kinds of events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "event")]
pub enum What {
    /// A remark of whoever made the recording.
    Note {
        /// The remark.
        text: String,
    },
    /// The recorder missed its schedule: this many samples were skipped.
    Missed {
        /// Samples that were due and not taken.
        samples: u64,
    },
    /// A kind of event that this build does not know.
    #[serde(other)]
    Unknown,
}

/// Consumes records.
pub trait Sink {
    /// Why it could not.
    type Error;
    /// Takes one record.
    fn record(&mut self, record: &Record) -> Result<(), Self::Error>;
}
