// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parsers of kernel files, one file per source. Pure: no files are opened here. A parser allocates nothing per line,
//! assumes no UTF-8 and never panics. It fills the fields that are valid and returns the first flaw, so that a damaged
//! file loses only its damaged fields.

pub mod bdi_stats;
pub mod blkio;
pub mod blkio_limit;
pub(crate) mod btf;
pub mod cgroup;
pub mod diskstats;
pub mod io_max;
pub mod io_stat;
pub mod meminfo;
pub mod memory_events;
pub mod memory_stat;
pub mod number;
pub mod pid_cgroup;
pub mod pid_io;
pub mod pid_stat;
pub mod pressure;
mod scan;
pub mod stat;
#[cfg(test)]
mod testing;
pub mod trace_format;
pub mod vmstat;
pub mod wb_stats;
pub mod zoneinfo;

/// The first thing in a file that was not as the kernel writes it; says what was expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Flaw(pub &'static str);

/// Whether a whole file was understood. Values are filled in either way.
pub type Parsed = Result<(), Flaw>;
