// SPDX-License-Identifier: MIT OR Apache-2.0
//! Vocabulary of Floodline: units, names, entities, gaps, the facts of a machine, samples, recordings and the window over
//! them. Holds readings only, never rates or verdicts. Bytes in, values out: no files, no clock, no threads, no terminal
//! (`clippy.toml` beside this crate holds the line).

pub mod capability;
pub mod entities;
pub mod facts;
pub mod gap;
pub mod holes;
pub mod human;
pub mod id;
pub mod levels;
pub mod lookup;
pub mod metric;
pub mod name;
pub mod nearest;
pub mod programs;
pub mod record;
pub mod recording;
pub mod redact;
pub mod sample;
pub mod severity;
pub mod text;
pub mod traced;
pub mod units;
pub mod version;
pub mod window;
