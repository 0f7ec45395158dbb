// SPDX-License-Identifier: MIT OR Apache-2.0
//! Vocabulary of Floodline: names and units, samples and recordings, kernel arithmetic by version,
//! rules and advice. Bytes in, values out: no files, no clock, no threads, no randomness but a seed's, no terminal
//! (`clippy.toml` beside this crate holds the line).

pub mod advise;
pub mod budget;
pub mod capability;
pub mod compare;
pub mod container;
pub mod diagnose;
pub mod facts;
pub mod fixture;
pub mod gap;
pub mod human;
pub mod id;
pub mod kernel;
pub mod ledger;
pub mod metric;
pub mod moment;
pub mod name;
pub mod nearest;
pub mod record;
pub mod recording;
pub mod report;
pub mod run;
pub mod sample;
pub mod scenario;
pub mod traced;
pub mod units;
pub mod validate;
pub mod window;
