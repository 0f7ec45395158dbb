// SPDX-License-Identifier: MIT OR Apache-2.0
//! The plan of a change as a file: `advise` writes it, `apply` reads it. It names the host it was made for, every knob
//! with its old and its new value, what is expected, and how the result is judged. It comes from a file and may have been
//! edited by hand: `apply` checks every field against the host before it writes. All text is unescaped and must be
//! escaped where it is shown.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Schema of this form.
pub const SCHEMA: &str = "floodline.plan/1";

/// A plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangePlan {
    /// [`SCHEMA`].
    pub schema: String,
    /// The host that the plan was made for.
    pub fingerprint: Fingerprint,
    /// What is changed, in the order of the writes.
    pub changes: Vec<Change>,
    /// Rules whose findings the plan answers.
    pub rules: Vec<String>,
    /// What was measured, one sentence each.
    pub evidence: Vec<String>,
    /// What the twin expects. Empty if the plan is arithmetic only.
    pub expected: Vec<Expected>,
    /// Why the model does not support the plan, if it does not: a failed back-test, for example.
    pub arithmetic_only: Option<String>,
    /// Longest pause that the change itself may cause, in seconds.
    pub longest_pause_s: f64,
    /// Figure that decides if the change helped, such as `stall_seconds_per_hour`.
    pub endpoint: String,
    /// What sets each knob at boot now: file and line, or nothing.
    pub boot: Vec<Boot>,
    /// What restores the old values, as `NAME=VALUE`: of a bytes/ratio pair the member that was in force. `apply` does not read it: its
    /// journal has the values that it finds. Empty if an old value was not read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undo: Vec<String>,
    /// Steps from the old values to the new ones. Absent in a plan of values that a person gave: it has one step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ramp: Option<Ramp>,
}

/// Steps from the old values to the new ones. `undo` leads from any of them to the old values.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ramp {
    /// Why there are several steps, or why one is enough. A sentence.
    pub why: String,
    /// The steps, in order. The last one sets the new values.
    pub steps: Vec<RampStep>,
}

/// One step of a ramp.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RampStep {
    /// What it sets, as `NAME=VALUE`.
    pub set: Vec<String>,
    /// How long to watch the host after it, in seconds.
    pub watch_s: f64,
    /// What must hold then. Otherwise the old values are put back.
    pub go_on_if: Vec<Bound>,
}

/// A figure and its largest allowed value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bound {
    /// [`IO_SOME_SHARE`] or [`PEAK`](crate::prediction::PEAK).
    pub figure: String,
    /// Its unit: `share` or `bytes`.
    pub unit: String,
    /// Largest value while the host is watched.
    pub at_most: f64,
}

/// Share of the time in which a task waited for I/O: PSI `io`, `some`.
pub const IO_SOME_SHARE: &str = "io_some_share";

/// What identifies a host and its state. Absent fields are not compared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fingerprint {
    /// Name of the host.
    pub hostname: Option<String>,
    /// Kernel release.
    pub kernel: Option<String>,
    /// `/proc/sys/kernel/random/boot_id`.
    pub boot_id: Option<String>,
    /// Memory, in bytes.
    pub mem_total_bytes: Option<u64>,
}

/// One knob.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// Name of the knob: `vm.dirty_bytes`, `bdi/8:0/max_ratio`, `queue/sda/wbt_lat_usec`, `cgroup/PATH/memory.high`,
    /// `loop/loop0/direct_io` or `journald/Storage`.
    pub knob: String,
    /// Value that was in force, if it was read. For a member of a bytes/ratio pair, 0 means that the other member was.
    pub old: Option<String>,
    /// Value to set.
    pub new: String,
    /// For a member of a bytes/ratio pair of which the other member was in force: that one, as `NAME=VALUE`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_force: Option<String>,
}

/// One predicted figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// Name of the figure.
    pub figure: String,
    /// Its unit, such as `s` or `bytes`.
    pub unit: String,
    /// Value now.
    pub now: f64,
    /// Predicted value.
    pub then: f64,
    /// Lower end of the 90 % interval.
    pub low: f64,
    /// Upper end of the 90 % interval.
    pub high: f64,
}

/// What sets a knob at boot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Boot {
    /// Name of the knob.
    pub knob: String,
    /// Value that boot sets.
    pub value: String,
    /// File and line that set it.
    pub by: String,
}

/// Name of the knob that sets where journald keeps its journal.
pub const JOURNALD_STORAGE: &str = "journald/Storage";
