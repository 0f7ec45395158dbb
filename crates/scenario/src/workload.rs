// SPDX-License-Identifier: MIT OR Apache-2.0
//! The workload of a scenario: tasks, each a program of steps, a preset, or a real program.

use super::machine::is_default;
use super::preset::{Preset, Program};
use super::quantity::Time;
use super::real_program::RealProgram;
use super::step::Step;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What runs on the machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// When tasks that are still running are stopped, counted from the end of all setups. Without it, the
    /// run ends when every task has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<Time>,
    /// Figures are taken from here on, counted the same way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settle: Option<Time>,
    /// Seed of everything random.
    #[serde(default, skip_serializing_if = "is_default")]
    pub seed: u64,
    /// Tasks by name.
    pub tasks: BTreeMap<String, Task>,
}

/// One task: a process with one thread, or several where it has parallel branches.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// Path of its cgroup as the machine has it; the root of the hierarchy where missing. In a cgroup with
    /// copies there is one task in each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<String>,
    /// How many copies per cgroup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instances: Option<u32>,
    /// When it starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<Time>,
    /// How much later each further copy starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stagger: Option<Time>,
    /// An operation that takes longer than this is recorded as a stall; 100ms where missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stall_over: Option<Time>,
    /// Steps before the workload's clock starts; not measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub setup: Vec<Step>,
    /// The program.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Step>,
    /// Or: a program by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<Preset>,
    /// Or: a real program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<RealProgram>,
}

/// Where no other threshold is named.
pub const STALL_OVER: Time = Time(floodline_record::units::Nanos(100_000_000));

impl Task {
    /// What it does, presets expanded. A real program has no steps of ours.
    pub fn expand(&self) -> Program {
        let mut program = self.preset.as_ref().map(Preset::expand).unwrap_or_default();
        program.setup.extend(self.setup.iter().cloned());
        program.steps.extend(self.steps.iter().cloned());
        program
    }
}
