// SPDX-License-Identifier: MIT OR Apache-2.0
//! Metrics for Prometheus: the families ([`catalogue`]), their text ([`exposition`]), and the dashboard and alerts that name
//! them. Reads nothing and has no clock; the values come from `floodline-serve`.

mod alerts;
pub mod catalogue;
mod dashboard;
pub mod exposition;

pub use alerts::alerts_yaml;
pub use catalogue::{Family, Kind};
pub use dashboard::dashboard_json;
pub use exposition::{Exposition, Format, Labels, Number};
