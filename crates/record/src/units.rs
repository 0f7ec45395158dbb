// SPDX-License-Identifier: MIT OR Apache-2.0
//! Units as types. A reading is converted once, in the parser that meets it; from there on the type
//! says what the number is. Raw values are `u64` and may be anything a kernel can print, wrapped
//! negatives included: arithmetic on readings is explicit about overflow.

use serde::{Deserialize, Serialize};
use std::fmt;

/// What a raw value counts. The name is the suffix used in JSON, CSV and Parquet field names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Pages of the host's page size.
    Pages,
    /// Nanoseconds.
    Nanos,
    /// A plain number of things.
    Count,
    /// Bytes per second.
    BytesPerSecond,
    /// Parts per million.
    Ppm,
    /// Percent, as the kernel's whole-percent knobs have it.
    Percent,
    /// Hundredths of a second, as `dirty_expire_centisecs` has it.
    Centisecs,
    /// Seconds.
    Seconds,
    /// Zero or one.
    Flag,
    /// A bit set; the metric's documentation names the bits.
    Bits,
}

impl Unit {
    /// The suffix of field names, e.g. `bytes`.
    pub fn suffix(self) -> &'static str {
        match self {
            Unit::Bytes => "bytes",
            Unit::Pages => "pages",
            Unit::Nanos => "ns",
            Unit::Count => "count",
            Unit::BytesPerSecond => "bytes_per_second",
            Unit::Ppm => "ppm",
            Unit::Percent => "percent",
            Unit::Centisecs => "centisecs",
            Unit::Seconds => "seconds",
            Unit::Flag => "flag",
            Unit::Bits => "bits",
        }
    }
}

/// A typed `u64`: what a metric's field holds.
pub trait Quantity: Copy {
    /// What the raw value counts.
    const UNIT: Unit;
    /// The raw value.
    fn raw(self) -> u64;
    /// From the raw value.
    fn from_raw(raw: u64) -> Self;
}

macro_rules! quantities {
    ($($(#[$doc:meta])+ $name:ident = $unit:ident;)+) => {$(
        $(#[$doc])+
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl Quantity for $name {
            const UNIT: Unit = Unit::$unit;
            fn raw(self) -> u64 {
                self.0
            }
            fn from_raw(raw: u64) -> Self {
                Self(raw)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )+};
}

quantities! {
    /// Bytes.
    Bytes = Bytes;
    /// Pages of the host's page size.
    Pages = Pages;
    /// Nanoseconds.
    Nanos = Nanos;
    /// A plain number of things.
    Count = Count;
    /// Bytes per second.
    BytesPerSecond = BytesPerSecond;
    /// Parts per million.
    Ppm = Ppm;
    /// Whole percent.
    Percent = Percent;
    /// Hundredths of a second.
    Centisecs = Centisecs;
    /// Seconds.
    Seconds = Seconds;
    /// Zero or one.
    Flag = Flag;
    /// A bit set.
    Bits = Bits;
    /// A limit in bytes, where the kernel's `max` is [`Limit::MAX`].
    Limit = Bytes;
}

impl Limit {
    /// No limit: the kernel prints `max`.
    pub const MAX: Limit = Limit(u64::MAX);

    /// The limit in bytes, or `None` when there is none.
    pub fn bytes(self) -> Option<Bytes> {
        (self != Self::MAX).then_some(Bytes(self.0))
    }
}

impl Bytes {
    /// From the kernel's "kB", which is KiB; `None` when the product does not fit.
    pub fn from_kib(kib: u64) -> Option<Bytes> {
        kib.checked_mul(1024).map(Bytes)
    }

    /// Whole pages, rounded down as the kernel's page counters are.
    pub fn pages(self, page_size: u64) -> Pages {
        Pages(self.0.checked_div(page_size).unwrap_or(0))
    }
}

impl Pages {
    /// Bytes of this many pages, saturating.
    pub fn bytes(self, page_size: u64) -> Bytes {
        Bytes(self.0.saturating_mul(page_size))
    }
}

impl Nanos {
    /// One second.
    pub const SECOND: Nanos = Nanos(1_000_000_000);

    /// From whole milliseconds, saturating.
    pub fn from_millis(ms: u64) -> Nanos {
        Nanos(ms.saturating_mul(1_000_000))
    }

    /// From whole microseconds; `None` when the product does not fit.
    pub fn from_micros(us: u64) -> Option<Nanos> {
        us.checked_mul(1_000).map(Nanos)
    }

    /// Seconds, for printing and for rates.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The shortest time that still counts as this one between two samples: sleeps are not exact.
    pub fn nearly(self) -> Nanos {
        Nanos(self.0 / 20 * 19)
    }

    /// Whether this moment is at least that long after an earlier one, or nearly; true without an earlier one.
    pub fn is_apart(self, before: Option<Nanos>, least: Nanos) -> bool {
        before.is_none_or(|before| self.0.saturating_sub(before.0) >= least.nearly().0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_or_early_sample_changes_no_distance() {
        let reads = |every: &[u64], least: u64| {
            let mut last = None;
            let mut at = 0;
            let mut reads = Vec::new();
            for step in every {
                if Nanos::from_millis(at).is_apart(last, Nanos::from_millis(least)) {
                    last = Some(Nanos::from_millis(at));
                    reads.push(at);
                }
                at += step;
            }
            reads
        };
        assert_eq!(reads(&[500; 9], 2000), [0, 2000, 4000]);
        assert_eq!(reads(&[1000; 5], 2000), [0, 2000, 4000]);
        assert_eq!(reads(&[700; 7], 2000), [0, 2100, 4200]);
        assert_eq!(reads(&[1500; 5], 2000), [0, 3000, 6000]);
        assert_eq!(reads(&[2004, 1996, 1950, 2050], 2000), [0, 2004, 4000, 5950]);
        assert_eq!(reads(&[5000; 3], 2000), [0, 5000, 10_000]);
        assert_eq!(reads(&[100; 4], 0), [0, 100, 200, 300]);
    }
}
