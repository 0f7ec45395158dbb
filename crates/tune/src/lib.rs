// SPDX-License-Identifier: MIT OR Apache-2.0
//! Applies a plan to a host: journal first, guard second, write third. The only crate that writes to the observed
//! host. It decides nothing about values: the plan comes from `floodline_analysis::change`.

pub mod apply;
pub mod benefit;
pub mod boot;
pub mod confirm;
pub mod error;
pub mod guard;
pub mod host;
pub mod journal;
pub mod journald;
pub mod knob;
pub mod manager;
pub mod persist;
pub mod port;
pub mod ramp;
pub mod recover;
pub mod rollback;
pub mod slot;
pub mod staged;
pub mod switchback;
pub mod verify;
