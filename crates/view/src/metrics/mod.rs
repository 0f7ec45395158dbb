// SPDX-License-Identifier: MIT OR Apache-2.0
//! Metrics for Prometheus: the families ([`catalogue`]), their text ([`exposition`]); both are
//! made of the table of counters. Reads nothing and has no clock; the values come from `floodline-serve`.

pub mod catalogue;
pub mod exposition;

pub use catalogue::{Family, Kind};
pub use exposition::{Exposition, Format, Labels, Number};
