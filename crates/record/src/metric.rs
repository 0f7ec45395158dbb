// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows of readings and the table that describes them. A counter is one line: its field and its
//! `METRICS` row are the same text, read by the codec, the exporters and the metrics page.

use crate::units::{Quantity, Unit};

/// Kind of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MetricKind {
    /// Only grows, until it is reset. Differences are meaningful.
    Counter,
    /// A level or a setting.
    Gauge,
}

/// The description of one column.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Field name; unique within its row.
    pub name: &'static str,
    /// Unit of the raw value.
    pub unit: Unit,
    /// Counter or gauge.
    pub kind: MetricKind,
    /// File and key it is read from.
    pub source: &'static str,
    /// Its meaning, in one sentence.
    pub doc: &'static str,
}

/// A row of readings: `None` is "not read", never zero.
pub trait Row: Clone + Default + PartialEq + std::fmt::Debug + Send + 'static {
    /// Name of the table, e.g. `cgroup`.
    const TABLE: &'static str;
    /// Its columns.
    const METRICS: &'static [Metric];
    /// Raw value of column `index` (position in [`Row::METRICS`]).
    fn get(&self, index: usize) -> Option<u64>;
    /// Sets column `index`; an index out of range does nothing.
    fn set(&mut self, index: usize, raw: Option<u64>);
    /// Adds to column `index`, wrapping; without a reading there, or with an index out of range, does nothing.
    fn add(&mut self, index: usize, step: u64);
    /// Folds the readings of columns that changed into those before, column by column: what [`fold_reading`] does to
    /// one. Returns whether each counter among them has a growth now.
    fn fold(&self, changed: Changed, into: Folded<'_, Self>) -> bool;
}

/// Columns of a row that may differ from those of an earlier row of the same thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Changed(u64);

impl Changed {
    /// No column differs.
    pub const NOTHING: Changed = Changed(0);
    /// Each column may differ, and may have been without a reading.
    pub const ANYTHING: Changed = Changed(u64::MAX);
    /// Most columns of a row: one more would be mistaken for [`Changed::ANYTHING`].
    pub const COLUMNS_MAX: usize = 63;

    /// Adds a column.
    #[inline]
    pub fn insert(&mut self, index: usize) {
        self.0 |= 1 << (index % 64);
    }

    /// Whether it has a column.
    #[inline]
    pub fn contains(self, index: usize) -> bool {
        self.0 & 1 << (index % 64) != 0
    }
}

/// Readings of one thing over time, folded: where [`Row::fold`] puts more of them.
#[derive(Debug)]
pub struct Folded<'a, R> {
    /// First reading of each column.
    pub first: &'a mut R,
    /// Last reading of each column.
    pub last: &'a mut R,
    /// Smallest reading of each column.
    pub min: &'a mut R,
    /// Largest reading of each column.
    pub max: &'a mut R,
    /// Growth of each counter.
    pub growth: &'a mut R,
}

/// The largest reading of a counter that is taken for one.
pub(crate) const COUNTER_MAX: u64 = u64::MAX / 2;

/// Folds one reading into those of its column before it. Returns false for a counter that was read and has no growth: its
/// last reading once more gives it one.
#[inline]
pub(crate) fn fold_reading<Q: Quantity>(kind: MetricKind, now: Option<Q>, into: Folded<'_, Option<Q>>) -> bool {
    let Some(now) = now else {
        return kind == MetricKind::Gauge || into.last.is_none() || into.growth.is_some();
    };
    let raw = now.raw();
    if kind == MetricKind::Counter {
        // Nothing gets there by counting: it is a difference that fell below zero.
        if raw > COUNTER_MAX {
            return false;
        }
        if let Some(before) = *into.last {
            let sum = into.growth.map_or(0, Q::raw).saturating_add(step(before.raw(), raw));
            *into.growth = Some(Q::from_raw(sum));
        }
    }
    if into.first.is_none() {
        *into.first = Some(now);
    }
    *into.last = Some(now);
    if into.min.is_none_or(|min| raw < min.raw()) {
        *into.min = Some(now);
    }
    if into.max.is_none_or(|max| raw > max.raw()) {
        *into.max = Some(now);
    }
    kind == MetricKind::Gauge || into.growth.is_some()
}

/// How much a counter grew from one reading to the next. The kernel adds many of them up from parts per
/// CPU without a lock, so that they step back a little now and then (`iowait`, vmstat, statistics of
/// cgroups): nothing was counted then. One that fell below half was reset, and counts from zero again.
pub fn step(before: u64, now: u64) -> u64 {
    match now.checked_sub(before) {
        Some(step) => step,
        None if now < before / 2 => now,
        None => 0,
    }
}

/// Declares a row: `field: Quantity = counter|gauge "source";` with a doc line each.
macro_rules! rows {
    ($(
        $(#[doc = $row_doc:literal])+
        $table:literal $row:ident {
            $($(#[doc = $doc:literal])+ $field:ident: $quantity:ident = $kind:ident $source:literal;)+
        }
    )+) => {$(
        $(#[doc = $row_doc])+
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct $row {
            $($(#[doc = $doc])+ pub $field: Option<$crate::units::$quantity>,)+
        }

        impl $crate::metric::Row for $row {
            const TABLE: &'static str = $table;
            const METRICS: &'static [$crate::metric::Metric] = &[$(
                $crate::metric::Metric {
                    name: stringify!($field),
                    unit: <$crate::units::$quantity as $crate::units::Quantity>::UNIT,
                    kind: rows!(@kind $kind),
                    source: $source,
                    doc: concat!($($doc),+).trim_ascii(),
                },
            )+];

            fn get(&self, index: usize) -> Option<u64> {
                #[allow(non_camel_case_types, clippy::enum_variant_names)]
                #[repr(usize)]
                enum At { $($field,)+ }
                $(if index == At::$field as usize {
                    return self.$field.map($crate::units::Quantity::raw);
                })+
                None
            }

            fn set(&mut self, index: usize, raw: Option<u64>) {
                #[allow(non_camel_case_types, clippy::enum_variant_names)]
                #[repr(usize)]
                enum At { $($field,)+ }
                $(if index == At::$field as usize {
                    self.$field = raw.map($crate::units::Quantity::from_raw);
                    return;
                })+
            }

            #[inline]
            fn add(&mut self, index: usize, step: u64) {
                #[allow(non_camel_case_types, clippy::enum_variant_names)]
                #[repr(usize)]
                enum At { $($field,)+ }
                $(if index == At::$field as usize {
                    self.$field = self.$field.map(|before| {
                        $crate::units::Quantity::from_raw($crate::units::Quantity::raw(before).wrapping_add(step))
                    });
                    return;
                })+
            }

            fn fold(&self, changed: $crate::metric::Changed, into: $crate::metric::Folded<'_, Self>) -> bool {
                #[allow(non_camel_case_types, clippy::enum_variant_names)]
                #[repr(usize)]
                enum At { $($field,)+ }
                const { assert!(<$row as $crate::metric::Row>::METRICS.len() <= $crate::metric::Changed::COLUMNS_MAX) };
                let mut is_settled = true;
                $(if changed.contains(At::$field as usize) {
                    is_settled &= $crate::metric::fold_reading(rows!(@kind $kind), self.$field, $crate::metric::Folded {
                        first: &mut into.first.$field,
                        last: &mut into.last.$field,
                        min: &mut into.min.$field,
                        max: &mut into.max.$field,
                        growth: &mut into.growth.$field,
                    });
                })+
                is_settled
            }
        }
    )+};
    (@kind counter) => { $crate::metric::MetricKind::Counter };
    (@kind gauge) => { $crate::metric::MetricKind::Gauge };
}
pub(crate) use rows;
