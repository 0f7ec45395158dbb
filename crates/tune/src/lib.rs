// SPDX-License-Identifier: MIT OR Apache-2.0
//! Applies a plan to a host: journal first, guard second, write third. The only crate that writes to the observed
//! host. It decides nothing about values: the plan comes from `floodline_analysis::change`.
