// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine-wide row: one line per file. Settings are also read in every sample: a user may change them while
//! observing the effect.

use super::{Kept, Round, take};
use crate::parse::number::number;
use crate::parse::{Parsed, meminfo, pressure, stat, vmstat};
use crate::root::{LARGE, SMALL};
use floodline_record::gap::Source;
use floodline_record::sample::{HostRow, Sample};

struct File {
    path: &'static str,
    source: Source,
    detail: &'static str,
    limit: usize,
    parse: fn(&[u8], &mut HostRow) -> Parsed,
}

const fn file(path: &'static str, source: Source, parse: fn(&[u8], &mut HostRow) -> Parsed) -> File {
    File { path, source, detail: "", limit: LARGE, parse }
}

const fn psi(path: &'static str, detail: &'static str, parse: fn(&[u8], &mut HostRow) -> Parsed) -> File {
    File { path, source: Source::Pressure, detail, limit: SMALL, parse }
}

const fn sysctl(path: &'static str, detail: &'static str, parse: fn(&[u8], &mut HostRow) -> Parsed) -> File {
    File { path, source: Source::SysctlVm, detail, limit: SMALL, parse }
}

/// The only setting whose absence is not a gap: it was removed in the 7.0 cycle.
const LAPTOP_MODE: &str = "laptop_mode";

const FILES: [File; 14] = [
    file("/proc/vmstat", Source::Vmstat, vmstat::parse),
    file("/proc/meminfo", Source::Meminfo, meminfo::parse),
    file("/proc/stat", Source::Stat, stat::parse),
    psi("/proc/pressure/io", "io", |text, row| {
        let (io, parsed) = pressure::parse(text);
        (row.psi_io_some, row.psi_io_full) = (io.some, io.full);
        parsed
    }),
    psi("/proc/pressure/memory", "memory", |text, row| {
        let (memory, parsed) = pressure::parse(text);
        (row.psi_memory_some, row.psi_memory_full) = (memory.some, memory.full);
        parsed
    }),
    psi("/proc/pressure/cpu", "cpu", |text, row| {
        let (cpu, parsed) = pressure::parse(text);
        row.psi_cpu_some = cpu.some;
        parsed
    }),
    sysctl("/proc/sys/vm/dirty_ratio", "dirty_ratio", |text, row| take(&mut row.dirty_ratio, number(text))),
    sysctl("/proc/sys/vm/dirty_bytes", "dirty_bytes", |text, row| take(&mut row.dirty_bytes, number(text))),
    sysctl("/proc/sys/vm/dirty_background_ratio", "dirty_background_ratio", |text, row| {
        take(&mut row.dirty_background_ratio, number(text))
    }),
    sysctl("/proc/sys/vm/dirty_background_bytes", "dirty_background_bytes", |text, row| {
        take(&mut row.dirty_background_bytes, number(text))
    }),
    sysctl("/proc/sys/vm/dirty_expire_centisecs", "dirty_expire_centisecs", |text, row| {
        take(&mut row.dirty_expire_centisecs, number(text))
    }),
    sysctl("/proc/sys/vm/dirty_writeback_centisecs", "dirty_writeback_centisecs", |text, row| {
        take(&mut row.dirty_writeback_centisecs, number(text))
    }),
    sysctl("/proc/sys/vm/dirtytime_expire_seconds", "dirtytime_expire_seconds", |text, row| {
        take(&mut row.dirtytime_expire_seconds, number(text))
    }),
    sysctl("/proc/sys/vm/laptop_mode", LAPTOP_MODE, |text, row| take(&mut row.laptop_mode, number(text))),
];

/// The files of the machine-wide row.
#[derive(Debug, Default)]
pub(super) struct HostFiles {
    kept: [Kept; FILES.len()],
}

impl HostFiles {
    /// Fills the machine-wide row.
    pub(super) fn read(&mut self, round: &mut Round<'_>, sample: &mut Sample) {
        for (file, kept) in FILES.iter().zip(&mut self.kept) {
            match round.read(kept, file.path, file.limit) {
                Ok(()) => {
                    let parsed = (file.parse)(round.buffer, &mut sample.host);
                    round.check(file.source, file.detail, None, parsed);
                }
                Err(crate::root::Fault::NOT_FOUND) if file.detail == LAPTOP_MODE => {}
                Err(fault) => round.gaps.add(file.source, file.detail, fault, None),
            }
        }
    }
}
