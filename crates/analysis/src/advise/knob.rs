// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of tunables: where each is written, in which unit, what the kernel accepts, and which
//! other one it silently overwrites. To add a tunable, add its row. Mirrors `vm_page_writeback_sysctls`
//! and the attributes of a bdi.

use floodline_record::sample::{BdiRow, HostRow};
use floodline_record::units::{Quantity, Unit};
use floodline_record::window::Window;

/// One tunable.
#[derive(Clone, Copy, Debug)]
pub struct Knob {
    /// Name as `sysctl` has it, or `bdi.NAME` for one of a backing device.
    pub name: &'static str,
    /// The file, with `BDI` for the name of the backing device.
    pub path: &'static str,
    /// What a value counts.
    pub unit: Unit,
    /// The other member of its pair: writing one zeroes the other.
    pub pair: Option<&'static str>,
    /// Smallest value the kernel accepts.
    pub min: u64,
    /// Largest value the kernel accepts.
    pub max: u64,
    /// Which readings hold the present value.
    pub reading: Reading,
    /// What writing it does besides.
    pub side_effect: &'static str,
}

/// Where the present value of a knob is read.
#[derive(Clone, Copy, Debug)]
pub enum Reading {
    /// In the machine-wide row.
    Host(fn(&HostRow) -> Option<u64>),
    /// In the row of a backing device.
    Bdi(fn(&BdiRow) -> Option<u64>),
}

/// Since the overflow fix of 6.10 and its backports, more than 2^32-1 pages is refused.
const MAX_DIRTY_BYTES: u64 = (u32::MAX as u64) * 4096;

fn raw<Q: Quantity>(quantity: Option<Q>) -> Option<u64> {
    quantity.map(Quantity::raw)
}

/// Every knob.
pub static KNOBS: &[Knob] = &[
    Knob {
        name: "vm.dirty_ratio",
        path: "/proc/sys/vm/dirty_ratio",
        unit: Unit::Percent,
        pair: Some("vm.dirty_bytes"),
        min: 0,
        max: 100,
        reading: Reading::Host(|row| raw(row.dirty_ratio)),
        side_effect: "a change zeroes vm.dirty_bytes; writing the value it has does nothing",
    },
    Knob {
        name: "vm.dirty_bytes",
        path: "/proc/sys/vm/dirty_bytes",
        unit: Unit::Bytes,
        pair: Some("vm.dirty_ratio"),
        min: 8192,
        max: MAX_DIRTY_BYTES,
        reading: Reading::Host(|row| raw(row.dirty_bytes)),
        side_effect: "a change zeroes vm.dirty_ratio",
    },
    Knob {
        name: "vm.dirty_background_ratio",
        path: "/proc/sys/vm/dirty_background_ratio",
        unit: Unit::Percent,
        pair: Some("vm.dirty_background_bytes"),
        min: 0,
        max: 100,
        reading: Reading::Host(|row| raw(row.dirty_background_ratio)),
        side_effect: "any write zeroes vm.dirty_background_bytes, even of the value it has",
    },
    Knob {
        name: "vm.dirty_background_bytes",
        path: "/proc/sys/vm/dirty_background_bytes",
        unit: Unit::Bytes,
        pair: Some("vm.dirty_background_ratio"),
        min: 1,
        max: MAX_DIRTY_BYTES,
        reading: Reading::Host(|row| raw(row.dirty_background_bytes)),
        side_effect: "any write zeroes vm.dirty_background_ratio",
    },
    Knob {
        name: "vm.dirty_expire_centisecs",
        path: "/proc/sys/vm/dirty_expire_centisecs",
        unit: Unit::Centisecs,
        pair: None,
        min: 0,
        max: i32::MAX as u64,
        reading: Reading::Host(|row| raw(row.dirty_expire_centisecs)),
        side_effect: "none",
    },
    Knob {
        name: "vm.dirty_writeback_centisecs",
        path: "/proc/sys/vm/dirty_writeback_centisecs",
        unit: Unit::Centisecs,
        pair: None,
        min: 0,
        max: i32::MAX as u64,
        reading: Reading::Host(|row| raw(row.dirty_writeback_centisecs)),
        side_effect: "a change to another non-zero value writes out everything dirty, once",
    },
    Knob {
        name: "vm.dirtytime_expire_seconds",
        path: "/proc/sys/vm/dirtytime_expire_seconds",
        unit: Unit::Seconds,
        pair: None,
        min: 0,
        max: i32::MAX as u64,
        reading: Reading::Host(|row| raw(row.dirtytime_expire_seconds)),
        side_effect: "none",
    },
    Knob {
        name: "vm.laptop_mode",
        path: "/proc/sys/vm/laptop_mode",
        unit: Unit::Seconds,
        pair: None,
        min: 0,
        max: i32::MAX as u64,
        reading: Reading::Host(|row| raw(row.laptop_mode)),
        side_effect: "none",
    },
    Knob {
        name: "bdi.max_ratio",
        path: "/sys/class/bdi/BDI/max_ratio",
        unit: Unit::Percent,
        pair: None,
        min: 0,
        max: 100,
        reading: Reading::Bdi(|row| raw(row.max_ratio).map(|ppm| ppm / 10_000)),
        side_effect: "replaces max_bytes",
    },
    Knob {
        name: "bdi.max_bytes",
        path: "/sys/class/bdi/BDI/max_bytes",
        unit: Unit::Bytes,
        pair: None,
        min: 0,
        max: MAX_DIRTY_BYTES,
        reading: Reading::Bdi(|row| raw(row.max_bytes)),
        side_effect: "kept as a share of the present hard threshold: write it again after changing vm.dirty_*",
    },
    Knob {
        name: "bdi.min_ratio",
        path: "/sys/class/bdi/BDI/min_ratio",
        unit: Unit::Percent,
        pair: None,
        min: 0,
        max: 100,
        reading: Reading::Bdi(|row| raw(row.min_ratio).map(|ppm| ppm / 10_000)),
        side_effect: "taken from every other backing device, even while this one is idle",
    },
    Knob {
        name: "bdi.strict_limit",
        path: "/sys/class/bdi/BDI/strict_limit",
        unit: Unit::Flag,
        pair: None,
        min: 0,
        max: 1,
        reading: Reading::Bdi(|row| raw(row.strict_limit)),
        side_effect: "writers to it are throttled at its own share even when the machine is far below its limit",
    },
];

/// The knob of a name.
pub fn knob(name: &str) -> Option<&'static Knob> {
    KNOBS.iter().find(|knob| knob.name == name)
}

impl Knob {
    /// The present value, for the machine-wide ones.
    pub fn present(&self, window: &Window) -> Option<u64> {
        match self.reading {
            Reading::Host(read) => read(&window.host.last),
            Reading::Bdi(_) => None,
        }
    }

    /// The value the kernel would take for this one.
    pub fn clamp(&self, value: u64) -> u64 {
        value.clamp(self.min, self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_pairs_are_mutual() {
        let names: BTreeSet<&str> = KNOBS.iter().map(|knob| knob.name).collect();
        assert_eq!(names.len(), KNOBS.len());
        for one in KNOBS {
            if let Some(pair) = one.pair {
                assert_eq!(knob(pair).and_then(|other| other.pair), Some(one.name), "{}", one.name);
            }
        }
    }

    #[test]
    fn a_sysctl_is_named_after_its_file() {
        for knob in KNOBS.iter().filter(|knob| knob.name.starts_with("vm.")) {
            assert_eq!(knob.path, format!("/proc/sys/{}", knob.name.replace('.', "/")));
        }
    }
}
