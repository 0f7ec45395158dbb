// SPDX-License-Identifier: MIT OR Apache-2.0
//! The limit and the background threshold as an administrator set them, each in percent or in bytes. The thresholds
//! that the kernel computes from them are in `dirty.rs`.

use crate::report::Evidence;
use floodline_record::human;
use floodline_record::sample::HostRow;
use floodline_record::units::{Bytes, Percent};

/// A byte setting below this was meant in another unit.
const ABSURD_BYTES: u64 = 1 << 20;

/// The two settings: bytes win where they are not zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// `vm.dirty_ratio`, percent.
    pub ratio: u64,
    /// `vm.dirty_bytes`.
    pub bytes: u64,
    /// `vm.dirty_background_ratio`, percent.
    pub background_ratio: u64,
    /// `vm.dirty_background_bytes`.
    pub background_bytes: u64,
}

impl Settings {
    /// Of a sample; `None` where one of the four was not read.
    pub fn of(row: &HostRow) -> Option<Settings> {
        Some(Settings {
            ratio: row.dirty_ratio?.0,
            bytes: row.dirty_bytes?.0,
            background_ratio: row.dirty_background_ratio?.0,
            background_bytes: row.dirty_background_bytes?.0,
        })
    }

    /// The limit as set: "10 %" or "50.0 MiB".
    pub fn limit(&self) -> String {
        shown(self.ratio, self.bytes)
    }

    /// The background threshold as set.
    pub fn background(&self) -> String {
        shown(self.background_ratio, self.background_bytes)
    }

    /// Whether the limit is zero or absurdly small.
    pub fn has_tiny_limit(&self) -> bool {
        is_tiny(self.ratio, self.bytes)
    }

    /// Whether the background threshold is zero or absurdly small.
    pub fn has_tiny_background(&self) -> bool {
        is_tiny(self.background_ratio, self.background_bytes)
    }

    /// Whether the background threshold is at or above the limit, so that the kernel uses half of the limit. A byte value, if set, is
    /// in force. Percentages of one kind compare as they are. For a mixed pair, `dirtyable` are the free and the file pages, bytes: a little more
    /// than dirtyable memory.
    pub fn is_void(&self, dirtyable: Option<Bytes>) -> bool {
        let of_memory = |ratio: u64| dirtyable.map(|bytes| ratio as f64 / 100.0 * bytes.0 as f64);
        match (self.bytes, self.background_bytes) {
            (0, 0) => self.background_ratio >= self.ratio,
            (limit, background) if limit > 0 && background > 0 => background >= limit,
            (0, background) => of_memory(self.ratio).is_some_and(|limit| background as f64 >= limit),
            (limit, _) => of_memory(self.background_ratio).is_some_and(|background| background >= limit as f64),
        }
    }

    /// Whether they allow no more than the kernel's defaults, 20 % and 10 %. For a byte value, `dirtyable` is as for [`Settings::is_void`].
    pub fn are_at_most_default(&self, dirtyable: Option<Bytes>) -> bool {
        let is_at_most = |ratio: u64, bytes: u64, default: u64| match bytes {
            0 => ratio <= default,
            bytes => dirtyable.is_some_and(|all| bytes as f64 <= default as f64 / 100.0 * all.0 as f64),
        };
        is_at_most(self.ratio, self.bytes, 20) && is_at_most(self.background_ratio, self.background_bytes, 10)
    }

    /// Whether one is set in bytes and the other in percent.
    pub fn are_mixed(&self) -> bool {
        (self.bytes > 0 && self.background_ratio > 0 && self.background_bytes == 0)
            || (self.background_bytes > 0 && self.ratio > 0 && self.bytes == 0)
    }

    /// The setting that makes the background threshold half of the limit, in the limit's unit.
    pub fn background_at_half(&self) -> (&'static str, u64) {
        match self.bytes {
            0 => ("vm.dirty_background_ratio", (self.ratio / 2).max(1)),
            bytes => ("vm.dirty_background_bytes", bytes / 2),
        }
    }

    /// The limit as evidence.
    pub fn limit_row(&self) -> Evidence {
        match self.bytes {
            0 => Evidence::reading("Limit", Percent(self.ratio), "/proc/sys/vm/dirty_ratio"),
            bytes => Evidence::reading("Limit", Bytes(bytes), "/proc/sys/vm/dirty_bytes"),
        }
    }

    /// The background threshold as evidence.
    pub fn background_row(&self) -> Evidence {
        let percent = Percent(self.background_ratio);
        match self.background_bytes {
            0 => Evidence::reading("Background setting", percent, "/proc/sys/vm/dirty_background_ratio"),
            bytes => Evidence::reading("Background setting", Bytes(bytes), "/proc/sys/vm/dirty_background_bytes"),
        }
    }
}

fn shown(ratio: u64, bytes: u64) -> String {
    if bytes > 0 { human::bytes(bytes as f64) } else { format!("{ratio} %") }
}

fn is_tiny(ratio: u64, bytes: u64) -> bool {
    bytes < ABSURD_BYTES && (bytes > 0 || ratio == 0)
}
