// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows of readings and the table that describes them. A counter is one line: its field and its
//! `METRICS` row are the same text, read by the codec, the exporters and the metrics page.

use crate::units::Unit;

/// Whether a metric only grows or goes up and down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MetricKind {
    /// Only grows, until the thing it counts is reset; differences mean something.
    Counter,
    /// A level or a setting.
    Gauge,
}

/// The description of one column.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Field name; unique within its row.
    pub name: &'static str,
    /// What the raw value counts.
    pub unit: Unit,
    /// Counter or gauge.
    pub kind: MetricKind,
    /// File and key it is read from.
    pub source: &'static str,
    /// One sentence on what it means.
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
        }
    )+};
    (@kind counter) => { $crate::metric::MetricKind::Counter };
    (@kind gauge) => { $crate::metric::MetricKind::Gauge };
}
pub(crate) use rows;
