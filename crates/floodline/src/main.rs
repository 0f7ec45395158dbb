// SPDX-License-Identifier: MIT OR Apache-2.0
//! Floodline: arguments, wiring, exit codes.

fn main() {}
