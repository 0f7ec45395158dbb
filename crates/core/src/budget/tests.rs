// SPDX-License-Identifier: MIT OR Apache-2.0
//! Budgets of hosts built by struct update: the worked examples of the thresholds, then what is
//! missing from them.

use super::*;
use crate::facts::{CgroupMode, CgroupSetup, HostFacts};
use crate::gap::{Cause, Source};
use crate::id::{Entity, Hierarchy};
use crate::kernel::KernelVersion;
use crate::record::Record;
use crate::sample::{CgroupLimitsRow, CgroupRow, HostRow, Sample, Table, ZoneRow};
use crate::units::{Limit, Pages, Percent};

const P: u64 = 4096;

/// A machine and its cgroups, as one look would have them.
#[derive(Clone)]
struct Host {
    facts: HostFacts,
    host: HostRow,
    zone: Option<ZoneRow>,
    cgroups: Vec<(&'static str, CgroupRow, CgroupLimitsRow)>,
}

impl Host {
    fn budgets(&self) -> Budgets {
        let mut records = vec![Record::Facts(Box::new(self.facts.clone()))];
        let zone = EntityId(900);
        records.push(Record::Entity(zone, Entity::Zone { node: 0, name: Name::from("Normal") }));
        for (id, (path, ..)) in (1..).zip(&self.cgroups) {
            let entity = Entity::Cgroup { path: Name::from(*path), hierarchy: Hierarchy::V2, ino: Some(id.into()) };
            records.push(Record::Entity(EntityId(id), entity));
        }
        let numbered = || (1..).map(EntityId).zip(&self.cgroups);
        records.push(Record::Sample(Box::new(Sample {
            host: self.host.clone(),
            zones: self.zone.clone().map_or_else(Table::default, |row| Table::read(vec![(zone, row)])),
            cgroups: Table::read(numbered().map(|(id, (_, row, _))| (id, row.clone())).collect()),
            cgroup_limits: Table::read(numbered().map(|(id, (_, _, row))| (id, row.clone())).collect()),
            ..Sample::default()
        })));
        budgets(&Window::from_records(&records))
    }
}

/// The host of the worked examples: 60 GiB dirtyable, 100 MiB of dirty pages allowed.
fn host() -> Host {
    Host {
        facts: HostFacts {
            kernel: Some(KernelVersion::new(6, 12, 0)),
            page_size: P,
            cpus_possible: Some(64),
            cgroups: CgroupSetup {
                mode: CgroupMode::V2,
                v2_controllers: vec!["memory".to_owned(), "io".to_owned()],
                ..CgroupSetup::default()
            },
            ..HostFacts::default()
        },
        host: HostRow {
            nr_dirty: Some(Pages(50_000)),
            nr_writeback: Some(Pages(0)),
            nr_free_pages: Some(Pages(15_000_000 + 639)),
            nr_inactive_file: Some(Pages(700_000)),
            nr_active_file: Some(Pages(28_000 + 1000)),
            nr_dirty_threshold: Some(Pages(25_600)),
            nr_dirty_background_threshold: Some(Pages(12_800)),
            dirty_bytes: Some(Bytes(104_857_600)),
            dirty_ratio: Some(Percent(0)),
            dirty_background_bytes: Some(Bytes(52_428_800)),
            dirty_background_ratio: Some(Percent(0)),
            ..HostRow::default()
        },
        zone: Some(ZoneRow {
            managed: Some(Pages(16_000_000)),
            high: Some(Pages(1500)),
            boost: Some(Pages(500)),
            protection_max: Some(Pages(0)),
            ..ZoneRow::default()
        }),
        cgroups: vec![("/app", app(), limits(768))],
    }
}

fn app() -> CgroupRow {
    CgroupRow {
        memory_current: Some(Bytes(500 << 20)),
        inactive_file: Some(Bytes(100 << 20)),
        active_file: Some(Bytes(92 << 20)),
        file_dirty: Some(Bytes(700 * P)),
        file_writeback: Some(Bytes(0)),
        ..CgroupRow::default()
    }
}

fn limits(max_mib: u64) -> CgroupLimitsRow {
    CgroupLimitsRow { memory_max: Some(Limit(max_mib << 20)), memory_high: Some(Limit::MAX), ..Default::default() }
}

fn pages(bound: Option<Bound>) -> (u64, u64) {
    let bound = bound.expect("a bound");
    (bound.low.0 / P, bound.high.0 / P)
}

#[test]
fn a_limited_cgroup_under_byte_settings_has_the_worked_budget() {
    let budgets = host().budgets();
    assert_eq!(budgets.disagreements, []);
    assert_eq!(pages(budgets.global.thresh), (25_600, 25_600));
    assert_eq!(pages(budgets.global.available), (15_728_640, 15_728_640));
    assert!(budgets.global.is_exact());
    let app = &budgets.cgroups[0];
    assert_eq!(pages(app.domain.available), (117_760, 117_760));
    assert_eq!(pages(app.domain.thresh), (201, 201));
    assert_eq!(pages(app.domain.bg_thresh), (115, 115));
    assert_eq!(pages(app.domain.freerun), (158, 158));
    assert!(app.domain.is_exact(), "{:?}", app.domain.missing);
    assert_eq!(app.domain.over_ratio().map(|ratio| (ratio * 100.0) as u64), Some(348));
    let binding = app.domain.binding.as_ref().expect("a binding");
    assert_eq!(binding.label(), "dirty_bytes, memory.max");
    assert_eq!(binding.setting, Setting::Bytes { bytes: Bytes(104_857_600), units: Some((7, 7)) });
}

#[test]
fn without_zones_budgets_are_bounds_and_say_so() {
    let budgets = Host { zone: None, ..host() }.budgets();
    assert!(budgets.global.is_exact(), "the kernel prints its own thresholds");
    let app = &budgets.cgroups[0].domain;
    let (low, high) = pages(app.thresh);
    assert!(low <= 201 && 201 <= high && low < high, "{low} {high}");
    assert!(!app.is_exact());
    assert!(app.missing.iter().any(|gap| gap.source == Source::Zoneinfo), "{:?}", app.missing);
}

#[test]
fn the_least_room_of_all_ancestors_counts() {
    let parent = CgroupRow { memory_current: Some(Bytes((1 << 30) - (8 << 20))), ..app() };
    let high = CgroupLimitsRow { memory_high: Some(Limit(1 << 30)), ..limits(4096) };
    let host = Host { cgroups: vec![("/slice", parent, high), ("/slice/app", app(), limits(768))], ..host() };
    let budgets = host.budgets();
    let app = &budgets.cgroups[1];
    assert_eq!(app.path, Name::from("/slice/app"));
    let room = app.headroom.as_ref().expect("room");
    assert_eq!((room.bytes.exact(), room.limit, &room.path), (Some(Bytes(8 << 20)), LimitKind::High, &"/slice".into()));
    assert_eq!(pages(app.domain.available).0, 49_152 + 2048);
    assert_eq!(app.domain.binding.as_ref().map(Binding::label).as_deref(), Some("dirty_bytes, memory.high"));
}

#[test]
fn an_ancestor_that_was_not_read_leaves_a_bound() {
    let host = Host { cgroups: vec![("/slice/app", app(), limits(768))], ..host() };
    let app = &host.budgets().cgroups[0].domain;
    assert_eq!(pages(app.thresh), (84, 201), "from no room at all to the cgroup's own");
    assert!(app.missing.iter().any(|gap| gap.source == Source::MemoryLimits && gap.cause == Cause::NotFound));
}

#[test]
fn version_1_has_no_budget_per_cgroup() {
    let mut host = host();
    host.facts.cgroups = CgroupSetup { mode: CgroupMode::V1, ..CgroupSetup::default() };
    let budgets = host.budgets();
    assert_eq!((budgets.scope, budgets.cgroups.len()), (Scope::NoUnifiedHierarchy, 0));
    host.facts.kernel = Some(KernelVersion::new(3, 10, 0));
    assert_eq!(host.budgets().scope, Scope::KernelTooOld);
}

#[test]
fn an_empty_window_has_bounds_of_nothing() {
    let budgets = budgets(&Window::default());
    assert_eq!((budgets.scope, budgets.global.thresh), (Scope::Unknown, None));
    assert!(!budgets.global.is_exact());
}
