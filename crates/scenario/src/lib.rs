// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scenarios: one machine, one workload, named variants, and what to expect of each, as a TOML file. The
//! one input of both executors, the simulator and the lab. A key that an executor cannot honour is
//! refused by it, by name ([`Scenario::not_honoured`]). Here are the types, reading with line and hint,
//! and expansion of copies and presets; nothing runs here.
//!
//! A variant is laid over the base: tables are merged key by key, everything else (numbers, texts, lists
//! such as `steps`) is replaced. `unset = ["workload.tasks.noise"]` in a variant removes keys of the base.
//! A preset or backing of another kind replaces the base's. A file without variants has one, `default`.

mod change;
mod check;
mod expand;
mod expect;
mod figures;
mod grid;
mod honoured;
mod host_key;
mod keys;
mod load;
mod machine;
mod mkfs;
mod preset;
mod problem;
mod profile;
pub mod program;
mod quantity;
mod random;
mod real_program;
mod repair;
mod schema;
mod service;
pub mod shipped;
mod step;
mod sysctl;
#[cfg(test)]
mod tests;
mod text_bound;
mod workload;

pub use change::NotAChange;
pub use expand::{CgroupCopy, MountCopy, TaskCopy, fill};
pub use expect::{Bound, Expect, KernelMatch, NotAKernelMatch};
pub use figures::{Figure, Stalls, figures, wrong_with_figure};
pub use grid::{Grid, NotACell, NotAGrid};
pub use honoured::Executor;
pub use host_key::{split_setting, unknown_host_key};
pub use keys::UsedKey;
pub use load::{DEFAULT_VARIANT, TEXT_MAX};
pub use machine::{
    Backing, BdiKnobs, CacheType, Cgroup, CgroupMode, Controller, CopyBandwidth, Device, FsType, IoMax, Layout,
    Machine, Mount, OverlayDirs, QueueKnobs, Stripes, WriteCache,
};
pub use mkfs::{Copies, Mkfs};
pub use preset::{Copy, Database, JournaldLike, Logger, Mail, Pipeline, Preset, Program, RedisAof, Untar};
pub use problem::{Problem, ScenarioError};
pub use profile::{DEVICE_PROFILES, DeviceProfile, device_profile};
pub use quantity::{
    ByteRate, ByteSize, Frequency, IoRate, Level, NotAQuantity, Pace, RequestsPerSecond, Share, SizeLimit, Time,
};
pub use random::Random;
pub use real_program::{RealProgram, SHELL};
pub use schema::schema;
pub use service::{Facility, Priority, RedisSet, Sql, Syslog};
pub use step::{
    Anon, Barrier, CreateFiles, Fallocate, Files, Lasting, MmapStore, Mounting, Note, OnCgroup, OnFile, OnPath, Order,
    Parallel, Read, Rename, Repeat, SetLimits, Single, Step, SyncCall, SyncEvery, Truncate, Until, WaitFor, Write,
};
pub use sysctl::{SysctlValue, Sysctls};
pub use workload::{STALL_OVER, Task, Workload};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A file: every variant, each laid over the base and checked.
#[derive(Clone, Debug, PartialEq)]
pub struct ScenarioFile {
    /// Name of the scenario, in kebab case.
    pub name: String,
    /// One line on what it shows.
    pub summary: String,
    /// Its variants by name; never empty.
    pub variants: BTreeMap<String, Scenario>,
}

/// One variant of a scenario: what an executor runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Name of the scenario, in kebab case; the file is called the same.
    pub name: String,
    /// One line on what it shows.
    pub summary: String,
    /// More on where it comes from and what to look at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// The machine.
    pub machine: Machine,
    /// What runs on it.
    pub workload: Workload,
    /// What it should show.
    #[serde(default, skip_serializing_if = "machine::is_default")]
    pub expect: Expect,
}
