// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scenario and seed to recording: an executable model of Linux writeback. The recording reads like one of a real
//! host. Deterministic: the same scenario, kernel and seed make the same records. `docs/internals/model.md` lists
//! the modelled parts and their files.

mod admin;
mod arena;
mod arm;
mod balance_dirty_pages;
mod bdi;
mod blk_throttle;
mod block;
mod block_groups;
mod cgroup;
mod checks;
mod completions;
mod conserved;
mod copies;
mod cpu;
mod crypt;
mod dcache;
mod delay;
mod domain;
mod engine;
mod extents;
mod filesystem;
mod flush;
mod flusher;
mod found;
mod found_disk;
mod found_share;
mod gaps;
mod hypervisor;
mod inode;
mod ioend;
mod journal;
mod laptop_mode;
mod log_tree;
mod loop_device;
mod lru;
mod measure;
mod media;
mod memory;
mod memory_high;
mod namespace;
mod overlay;
mod page_cache;
mod perag;
mod plug;
mod preallocation;
mod process;
mod protection;
mod raid1;
mod recorder;
#[cfg(test)]
mod reference;
mod reported;
mod run;
mod setup;
mod space;
mod speed;
mod start_share;
mod steal;
mod stripes;
mod supported;
mod switch;
mod sync;
mod syscalls;
mod task;
mod timer;
mod tree_commit;
mod turns;
mod wake_ups;
mod wb;
mod wb_stat;
mod wbt;
mod world;
mod writable;
mod write_cache;
mod writepages;
mod xfsaild;

pub use found::Found;
pub use found_disk::{FoundDisk, Moment};
pub use found_share::StartShares;
pub use run::{Options, Progress, Sampling, Summary, simulate};
pub use speed::Speed;
pub use steal::Steal;
pub use supported::{Beside, check, simplified, simplified_beside};
pub use wake_ups::Late;

use floodline_kernel::{KernelVersion, OLDEST_MODELLED};
use floodline_scenario::UsedKey;

impl SimError {
    /// What to change in the scenario of a run that cannot progress.
    pub fn way_on(&self) -> Option<&'static str> {
        match self {
            SimError::Stuck { busy, .. } if busy.is_empty() => Some(
                "the tasks wait for each other, and no device has a pending request: compare their wait_for and barrier steps",
            ),
            SimError::Stuck { .. } => Some(
                "raise the limits of the device. Or set workload.duration: the run then prints figures, at most 600 s after that \
                 duration",
            ),
            _ => None,
        }
    }
}

/// Error of a simulation.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// The simulator does not support these keys of the scenario.
    #[error("the simulator does not support {}", names(.0))]
    NotHonoured(Vec<UsedKey>),
    /// The scenario is too large to simulate in reasonable time and memory.
    #[error("{key}: {count} {what}; the simulator supports at most {most}: lower instances")]
    TooMany {
        /// The key of these items.
        key: &'static str,
        /// Kind of item.
        what: &'static str,
        /// Number of items in the scenario.
        count: u64,
        /// Largest supported number.
        most: u64,
    },
    /// The scenario requests an impossible setup. Contains the rule that it breaks.
    #[error("{0}")]
    Senseless(String),
    /// No profile is known for such an old kernel.
    #[error("Linux {0} is older than {OLDEST_MODELLED}, the oldest kernel that the model supports")]
    TooOld(KernelVersion),
    /// No process can make progress.
    #[error("the simulation cannot progress at {seconds} s: {}{}", waits(.waiting), with_busy(.busy))]
    Stuck {
        /// Simulated seconds.
        seconds: u64,
        /// Programs, each with its wait reason.
        waiting: Vec<(String, String)>,
        /// Devices with pending requests, each with what limits it.
        busy: Vec<String>,
    },
    /// The model contradicts itself: a bug of the simulator. Contains the mismatch and the options to repeat it.
    #[error("{0}")]
    Broken(String),
    /// The consumer of the records failed.
    #[error("cannot write the recording: {0}")]
    Sink(String),
}

fn names(keys: &[UsedKey]) -> String {
    keys.iter().map(|key| key.key.as_str()).collect::<Vec<_>>().join(", ")
}

fn with_busy(busy: &[String]) -> String {
    busy.iter().map(|device| format!("; requests to {device} are pending")).collect()
}

fn waits(waiting: &[(String, String)]) -> String {
    let one = |(who, what): &(String, String)| format!("{who} waits for {what}");
    waiting.iter().take(10).map(one).collect::<Vec<_>>().join("; ")
}
