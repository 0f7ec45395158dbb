// SPDX-License-Identifier: MIT OR Apache-2.0
//! The running machine below a `HostRoot`, read into records.

pub mod apart;
pub mod collect;
pub mod parse;
pub mod plan;
pub mod probe;
pub mod root;
pub mod trace;

pub use collect::Collector;
pub use plan::{Needs, Plan};
pub use probe::{Probe, probe};
pub use root::HostRoot;
