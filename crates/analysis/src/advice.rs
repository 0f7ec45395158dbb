// SPDX-License-Identifier: MIT OR Apache-2.0
//! The settings that would serve a host best, tried on its twin: the candidates, the trade-off between data at risk and
//! stalls, and the plan. Plain data; the twin fills it and the view shows it. The JSON form is a stable interface:
//! fields are added, never renamed.

use crate::change::ChangePlan;
use crate::prediction::{Prediction, Setting};
use serde::Serialize;

/// Version of the JSON form.
pub const SCHEMA: &str = "floodline.advice/1";

/// The goal, once the constraints are met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Goal {
    /// Short waits.
    #[default]
    Latency,
    /// Many bytes.
    Throughput,
    /// Little data at risk.
    Safety,
}

impl Goal {
    /// Name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Goal::Latency => "latency",
            Goal::Throughput => "throughput",
            Goal::Safety => "safety",
        }
    }
}

/// Constraints on all candidates.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Constraints {
    /// Most bytes at risk.
    pub at_risk_bytes: f64,
    /// Smallest limit of a cgroup; absent where no cgroup has one.
    pub smallest_budget_bytes: Option<f64>,
    /// Longest pause of a write call, seconds.
    pub pause_seconds: f64,
}

/// One candidate with the results of its run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tried {
    /// Its settings; empty for the host as it is.
    pub settings: Vec<Setting>,
    /// Name for people: `as it is`, `kernel default`, or the settings.
    pub label: String,
    /// Peak of dirty and writeback pages, bytes.
    pub at_risk_bytes: f64,
    /// Seconds that tasks waited, all together.
    pub stall_seconds: f64,
    /// Longest wait of an fsync; absent without any.
    pub longest_wait_seconds: Option<f64>,
    /// Longest write call.
    pub pause_seconds: f64,
    /// Bytes written to disks.
    pub written_bytes: f64,
    /// Bytes that programs wrote and stored per second.
    pub throughput: f64,
    /// Smallest limit of a cgroup.
    pub smallest_budget_bytes: Option<f64>,
    /// Most stall over what the best candidate has in the same part of the recording, seconds.
    pub regret_seconds: f64,
    /// The constraint that it breaks, if any.
    pub breaks: Option<&'static str>,
    /// Whether no other candidate has both less data at risk and less stall.
    pub on_curve: bool,
    /// Whether only the first part of its run was simulated, because tasks waited longer in it than with another candidate in all of its
    /// run. The waits and written bytes of the rest are then extrapolated. Such a candidate is never chosen.
    pub is_extrapolated: bool,
}

/// The advice.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Advice {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// The goal.
    pub goal: Goal,
    /// Summary in one sentence.
    pub headline: String,
    /// Constraints on all candidates.
    pub constraints: Constraints,
    /// Every candidate; the host as it is first.
    pub tried: Vec<Tried>,
    /// Number of the chosen candidate; absent if the host should stay as it is.
    pub chosen: Option<usize>,
    /// Improvement of the chosen candidate at the goal, as a share.
    pub gain_share: Option<f64>,
    /// Required improvement: the error of the back-test of that figure, as a share.
    pub error_share: f64,
    /// Median error of the twin over the figures of the recording, as a share; absent where the recording has none of them.
    pub back_test_error: Option<f64>,
    /// Figures that the twin misses by more than a quarter.
    pub missed: Vec<String>,
    /// Reason why the twin has no verdict on this host. Absent where it has one.
    pub no_verdict: Option<String>,
    /// Prediction for the best candidate.
    pub prediction: Option<Prediction>,
    /// The plan, for `floodline apply`.
    pub plan: Option<ChangePlan>,
    /// Settings that restore its sysctls, as `NAME=VALUE`; empty where the old values were not read.
    pub undo: Vec<String>,
    /// Commands that make the change, as `doctor` prints them: for a shell of any user with sudo rights.
    pub commands: Vec<String>,
    /// Commands that undo it.
    pub undo_commands: Vec<String>,
    /// Notes to the advice.
    pub notes: Vec<String>,
    /// What the model leaves out of this host, a text each, with the effect that this may have.
    pub simplified: Vec<String>,
}
