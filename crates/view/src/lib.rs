// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reports and recordings to bytes. Computes nothing, reads nothing.

pub mod export;
pub mod moment;
