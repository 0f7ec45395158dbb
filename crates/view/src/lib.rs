// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reports and recordings to bytes. Computes nothing, reads nothing.

pub mod advise;
pub mod advised;
pub mod as_if;
pub mod budget;
pub mod capabilities;
pub mod change;
pub mod compare;
pub mod doctor;
pub mod explain;
pub mod export;
pub mod figures;
pub mod incidents;
pub mod json;
pub mod kernels;
mod layout;
pub mod ledger;
pub mod matrix;
pub mod metrics;
pub mod moment;
pub mod page;
pub mod predict;
pub mod preflight;
pub mod ramp;
pub mod run;
pub mod sweep;
pub mod top;
pub mod twin;

/// A paragraph in so many columns, each line indented.
pub fn paragraph(text: &str, indent: usize, width: usize) -> String {
    let mut out = String::new();
    layout::hanging(&mut out, &" ".repeat(indent), text, width);
    out
}
