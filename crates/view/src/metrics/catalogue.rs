// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every family of metrics: those made of columns of the table of counters (`floodline_record::sample`), in base units and
//! named as node_exporter and cAdvisor name theirs, and those of Floodline itself. Dashboard and alerts name only these.

use floodline_record::metric::{Metric, MetricKind, Row};
use floodline_record::sample::{BdiRow, CgroupRow, DiskRow, HostRow};
use floodline_record::units::Unit;
use std::collections::BTreeMap;

/// What a family counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only grows.
    Counter,
    /// A level.
    Gauge,
    /// Waits by length.
    Histogram,
}

/// One family: a name, and series that differ in their labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Family {
    /// Name; that of a counter ends in `_total`.
    pub name: String,
    /// What it counts.
    pub kind: Kind,
    /// One sentence.
    pub help: String,
}

impl Family {
    /// The name without the ending of a counter.
    pub fn base_name(&self) -> &str {
        match self.kind {
            Kind::Counter => self.name.strip_suffix("_total").unwrap_or(&self.name),
            _ => &self.name,
        }
    }
}

/// A family that is a column of a table.
#[derive(Clone, Debug)]
pub struct Column {
    /// Position in [`Row::METRICS`].
    pub index: usize,
    /// The family.
    pub family: Family,
    unit: Unit,
}

impl Column {
    /// A reading in the family's base unit.
    pub fn number(&self, raw: u64, page_size: u64) -> super::Number {
        use super::Number::{Decimal, Integer, Nanos};
        match self.unit {
            Unit::Pages => Integer(raw.saturating_mul(page_size)),
            Unit::Nanos => Nanos(raw),
            Unit::Centisecs => Nanos(raw.saturating_mul(10_000_000)),
            Unit::Ppm => Decimal(raw as f64 / 1e6),
            Unit::Percent => Decimal(raw as f64 / 100.0),
            _ => Integer(raw),
        }
    }
}

/// Columns that are exported, by table. Others are in recordings.
const EXPORTED: &[(&str, &[&str])] = &[
    (
        HostRow::TABLE,
        &[
            "nr_dirty",
            "nr_writeback",
            "nr_dirtied",
            "nr_written",
            "nr_dirty_threshold",
            "nr_dirty_background_threshold",
            "nr_vmscan_write",
            "nr_vmscan_immediate_reclaim",
            "allocstall",
            "pswpout",
            "mem_total",
            "mem_available",
            "cached",
            "cpu_iowait",
            "procs_blocked",
            "psi_io_some",
            "psi_io_full",
            "psi_memory_some",
            "psi_memory_full",
            "dirty_ratio",
            "dirty_bytes",
            "dirty_background_ratio",
            "dirty_background_bytes",
            "dirty_expire_centisecs",
            "dirty_writeback_centisecs",
        ],
    ),
    (
        DiskRow::TABLE,
        &[
            "read",
            "reads",
            "written",
            "writes",
            "write_time",
            "in_flight",
            "io_time",
            "weighted_io_time",
            "flushes",
            "flush_time",
        ],
    ),
    (
        BdiRow::TABLE,
        &["min_ratio", "max_ratio", "strict_limit", "writeback", "reclaimable", "dirty_thresh", "write_bandwidth"],
    ),
    (CgroupRow::TABLE, &["memory_current", "file_dirty", "file_writeback", "io_some", "io_full"]),
];

/// The families of a table, in the order of its columns.
pub fn columns<R: Row>() -> Vec<Column> {
    let names = EXPORTED.iter().find(|(table, _)| *table == R::TABLE).map_or(&[][..], |(_, names)| names);
    let metrics = R::METRICS.iter().enumerate().filter(|(_, metric)| names.contains(&metric.name));
    metrics.map(|(index, metric)| Column { index, family: family(R::TABLE, metric), unit: metric.unit }).collect()
}

/// The family of a column: `floodline_TABLE_NAME_UNIT`, and `_total` for a counter.
fn family(table: &str, metric: &Metric) -> Family {
    let unit = match metric.unit {
        Unit::Bytes | Unit::Pages => "_bytes",
        Unit::Nanos | Unit::Seconds | Unit::Centisecs => "_seconds",
        Unit::BytesPerSecond => "_bytes_per_second",
        Unit::Ppm | Unit::Percent => "_ratio",
        Unit::Count | Unit::Flag | Unit::Bits => "",
    };
    let name = metric.name.strip_suffix("_centisecs").unwrap_or(metric.name);
    // The background settings are told from the others by their first words.
    let name = name.strip_suffix(unit).unwrap_or(name);
    let (kind, total) = match metric.kind {
        MetricKind::Counter => (Kind::Counter, "_total"),
        MetricKind::Gauge => (Kind::Gauge, ""),
    };
    let help = format!("{} Source: {}.", metric.doc, metric.source);
    Family { name: format!("floodline_{table}_{name}{unit}{total}"), kind, help }
}

macro_rules! own {
    ($($constant:ident = $name:literal, $kind:ident, $help:literal;)+) => {
        /// Names of the families that are Floodline's own.
        pub mod name {
            $(#[doc = $help] pub const $constant: &str = $name;)+
        }

        /// The families that are Floodline's own.
        const OWN: &[(&str, Kind, &str)] = &[$(($name, Kind::$kind, $help),)+];
    };
}

own! {
    BUILD_INFO = "floodline_build_info", Gauge, "Always 1; the label is the version of Floodline.";
    LOOK_AGE = "floodline_look_age_seconds", Gauge, "Time since the last sample was complete.";
    LOOK_DURATION = "floodline_look_duration_seconds", Gauge, "Time that the last sample took.";
    LOOKS = "floodline_looks_total", Counter, "Samples taken.";
    LOOKS_MISSED = "floodline_looks_missed_total", Counter, "Samples that were due and not taken.";
    LOOK_GAP_MAX = "floodline_look_gap_max_seconds", Gauge, "Longest time between two samples in the last 10 minutes.";
    SOURCE_UP = "floodline_source_up", Gauge, "Whether a source of readings works here.";
    FINDING_ACTIVE = "floodline_finding_active", Gauge, "Whether a rule has a finding of this severity in the last minute.";
    FINDING_INFO = "floodline_finding_info", Gauge, "Always 1; one series per rule with a finding: the disk or cgroup it names, where it names one.";
    RULE_NOT_CHECKED = "floodline_rule_not_checked", Gauge, "Whether a rule could not be checked in the last minute, and for which cause.";
    RULES_AGE = "floodline_rules_age_seconds", Gauge, "Time since the rules last ran; absent before they ran.";
    CGROUPS = "floodline_cgroups", Gauge, "Cgroups in the last sample.";
    CGROUP_SERIES = "floodline_cgroup_series", Gauge, "Containers and units with series of their own; the others are in the series \"other\".";
    CGROUP_THROTTLED = "floodline_cgroup_throttled_seconds_total", Counter, "Time that tasks slept in dirty throttling while they were traced.";
    WAIT = "floodline_wait_seconds", Histogram, "Waits of tasks for stable storage while they were traced.";
    TRACED = "floodline_traced_seconds_total", Counter, "Time in which the kernel was traced.";
    INCIDENTS = "floodline_incidents_total", Counter, "Triggers by what became of them: kept, duplicate, limited or failed.";
    RING_BYTES = "floodline_ring_bytes", Gauge, "Bytes of all files of the ring on disk.";
    RING_LIMIT = "floodline_ring_limit_bytes", Gauge, "Limit of the ring on disk.";
    RING_OLDEST = "floodline_ring_oldest_seconds", Gauge, "Age of the oldest sample in the ring on disk.";
    RING_BEHIND = "floodline_ring_behind_bytes", Gauge, "Recorded bytes that wait in memory for the ring's disk.";
    RING_DROPPED = "floodline_ring_dropped_bytes_total", Counter, "Recorded bytes that never reached the ring on disk.";
    RING_ERRORS = "floodline_ring_errors_total", Counter, "Writes to the ring on disk that failed.";
    SCRAPES = "floodline_scrapes_total", Counter, "Requests answered, by HTTP status.";
    CPU = "process_cpu_seconds_total", Counter, "CPU time of this process, user and system.";
    MEMORY = "process_resident_memory_bytes", Gauge, "Resident memory of this process.";
}

/// Every family.
#[derive(Clone, Debug)]
pub struct Catalogue {
    /// Machine-wide readings.
    pub host: Vec<Column>,
    /// Block devices.
    pub disk: Vec<Column>,
    /// Backing devices.
    pub bdi: Vec<Column>,
    /// Containers and units.
    pub cgroup: Vec<Column>,
    own: BTreeMap<&'static str, Family>,
}

impl Default for Catalogue {
    fn default() -> Catalogue {
        let own =
            OWN.iter().map(|&(name, kind, help)| (name, Family { name: name.to_owned(), kind, help: help.to_owned() }));
        Catalogue {
            host: columns::<HostRow>(),
            disk: columns::<DiskRow>(),
            bdi: columns::<BdiRow>(),
            cgroup: columns::<CgroupRow>(),
            own: own.collect(),
        }
    }
}

impl Catalogue {
    /// One of Floodline's own families, by its constant of [`name`].
    pub fn own(&self, name: &str) -> &Family {
        static NONE: Family = Family { name: String::new(), kind: Kind::Gauge, help: String::new() };
        self.own.get(name).unwrap_or(&NONE)
    }

    /// Every family.
    pub fn families(&self) -> impl Iterator<Item = &Family> {
        let columns = [&self.host, &self.disk, &self.bdi, &self.cgroup].into_iter().flatten();
        columns.map(|column| &column.family).chain(self.own.values())
    }
}

/// Names in a query that belong to no family. For tests of whatever names metrics.
#[cfg(test)]
pub(super) fn unknown_names(text: &str) -> Vec<String> {
    let catalogue = Catalogue::default();
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != ':');
    let is_metric = |word: &&str| word.starts_with("floodline_") || word.starts_with("process_");
    let is_known = |word: &str| {
        catalogue.families().any(|family| match family.kind {
            Kind::Histogram => ["_bucket", "_sum", "_count"].iter().any(|end| word == format!("{}{end}", family.name)),
            _ => word == family.name,
        })
    };
    words.filter(is_metric).filter(|word| !is_known(word)).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Number;

    #[test]
    fn every_column_that_is_exported_exists() {
        let catalogue = Catalogue::default();
        let exported: usize = EXPORTED.iter().map(|(_, names)| names.len()).sum();
        let found = [&catalogue.host, &catalogue.disk, &catalogue.bdi, &catalogue.cgroup].map(Vec::len);
        assert_eq!(found.iter().sum::<usize>(), exported);
    }

    #[test]
    fn names_are_unique_and_in_base_units() {
        let catalogue = Catalogue::default();
        let mut names: Vec<&str> = catalogue.families().map(|family| family.name.as_str()).collect();
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all);
        for name in &names {
            assert!(
                !["_ns", "_ms", "_kb", "_pages", "_percent", "_centisecs", "_ppm"]
                    .iter()
                    .any(|unit| name.contains(unit)),
                "{name}"
            );
        }
        for name in [
            "floodline_host_nr_dirty_bytes",
            "floodline_host_psi_io_some_seconds_total",
            "floodline_host_dirty_expire_seconds",
            "floodline_host_dirty_ratio",
            "floodline_host_dirty_bytes",
            "floodline_disk_written_bytes_total",
            "floodline_disk_io_time_seconds_total",
            "floodline_bdi_write_bandwidth_bytes_per_second",
            "floodline_cgroup_file_dirty_bytes",
        ] {
            assert!(names.contains(&name), "{name}: {names:#?}");
        }
    }

    #[test]
    fn readings_are_converted_to_the_unit_of_the_name() {
        let catalogue = Catalogue::default();
        let check = |columns: &[Column], name: &str, raw: u64, expect: Number| {
            let column = columns.iter().find(|column| column.family.name == name).expect("it is exported");
            assert_eq!(column.number(raw, 4096), expect, "{name}");
        };
        check(&catalogue.host, "floodline_host_nr_dirty_bytes", 3, Number::Integer(12_288));
        check(&catalogue.host, "floodline_host_dirty_expire_seconds", 3000, Number::Nanos(30_000_000_000));
        check(&catalogue.host, "floodline_host_dirty_ratio", 20, Number::Decimal(0.2));
        check(&catalogue.bdi, "floodline_bdi_max_ratio", 1_000_000, Number::Decimal(1.0));
        check(&catalogue.cgroup, "floodline_cgroup_io_some_seconds_total", 5, Number::Nanos(5));
    }
}
