// SPDX-License-Identifier: MIT OR Apache-2.0
//! Conclusions from a recording: budgets of cgroups, the ledger of bytes, rules with their findings, advice,
//! comparisons and the report. Values in, values out: no files, no clock, no threads, no terminal (`clippy.toml` beside
//! this crate enforces it). The crates that observe, simulate or run guests never link it.

pub mod advice;
pub mod advise;
pub mod at_boot;
pub mod budget;
pub mod change;
pub mod compare;
pub mod container;
pub mod diagnose;
pub mod judgement;
pub mod knob_of;
pub mod ledger;
pub mod milder;
pub mod moment;
pub mod observer;
pub mod plan;
pub mod prediction;
pub mod ramp;
pub mod report;
pub mod rule_figures;
pub mod run;
pub mod shown;
mod sparse;
#[cfg(test)]
mod strangers;
pub mod symptom;
pub mod timeline;
pub mod told;
pub mod tried;
