// SPDX-License-Identifier: MIT OR Apache-2.0
//! Budgets of hosts built by struct update: the worked examples of the thresholds, then what is
//! missing from them.

use super::*;
use floodline_record::facts::{CgroupMode, CgroupSetup, HostFacts};
use floodline_record::gap::{Cause, Source};
use floodline_record::id::DevId;
use floodline_record::id::{Entity, Hierarchy};
use floodline_record::record::Record;
use floodline_record::sample::{
    BdiRow, CgroupIoRow, CgroupLimitsRow, CgroupRow, HostRow, Sample, Table, WbRow, ZoneRow,
};
use floodline_record::units::{Flag as Truth, Limit, Nanos, Pages, Percent, Ppm};
use floodline_record::version::KernelVersion;
use proptest::prelude::*;

pub(super) const P: u64 = 4096;

/// A machine and its cgroups, as one look would have them.
#[derive(Clone)]
pub(super) struct Host {
    pub(super) facts: HostFacts,
    pub(super) host: HostRow,
    pub(super) zone: Option<ZoneRow>,
    pub(super) cgroups: Vec<(&'static str, CgroupRow, CgroupLimitsRow)>,
    /// Wbs by bdi and number of their cgroup.
    pub(super) wbs: Vec<(&'static str, u64, WbRow)>,
    pub(super) bdis: Vec<(&'static str, BdiRow)>,
    /// Bytes a cgroup wrote to a device, by its place among the cgroups.
    pub(super) io: Vec<(u32, DevId, u64)>,
}

impl Host {
    fn budgets(&self) -> Budgets {
        let window = Window::from_records(&self.records(Nanos(0)));
        let all = budgets(&window);
        assert_eq!(global(&window), all.global);
        all
    }

    /// The sample, at a moment, is the last of them.
    pub(super) fn records(&self, at: Nanos) -> Vec<Record> {
        let mut records = vec![Record::Facts(Box::new(self.facts.clone()))];
        let zone = EntityId(900);
        records.push(Record::Entity(zone, Entity::Zone { node: 0, name: Name::from("Normal") }));
        for (id, (path, ..)) in (1..).zip(&self.cgroups) {
            let ino = Some(u64::from(id) + 1000);
            let entity = Entity::Cgroup { path: Name::from(*path), hierarchy: Hierarchy::V2, ino };
            records.push(Record::Entity(EntityId(id), entity));
        }
        let mut wbs = Vec::new();
        for (id, (bdi, cgroup_ino, row)) in (300..).map(EntityId).zip(&self.wbs) {
            records.push(Record::Entity(id, Entity::Wb { bdi: Name::from(*bdi), cgroup_ino: *cgroup_ino }));
            wbs.push((id, row.clone()));
        }
        let mut bdis = Vec::new();
        for (id, (name, row)) in (500..).map(EntityId).zip(&self.bdis) {
            records.push(Record::Entity(id, Entity::Bdi { name: Name::from(*name) }));
            bdis.push((id, row.clone()));
        }
        let mut io = Vec::new();
        for (id, &(cgroup, dev, wbytes)) in (700..).map(EntityId).zip(&self.io) {
            records.push(Record::Entity(id, Entity::CgroupIo { cgroup: EntityId(cgroup), dev }));
            io.push((id, CgroupIoRow { wbytes: Some(Bytes(wbytes)), ..CgroupIoRow::default() }));
        }
        let numbered = || (1..).map(EntityId).zip(&self.cgroups);
        records.push(Record::Sample(Box::new(Sample {
            host: self.host.clone(),
            zones: self.zone.clone().map_or_else(Table::default, |row| Table::read(vec![(zone, row)])),
            cgroups: Table::read(numbered().map(|(id, (_, row, _))| (id, row.clone())).collect()),
            cgroup_limits: Table::read(numbered().map(|(id, (_, _, row))| (id, row.clone())).collect()),
            wbs: Table::read(wbs),
            bdis: Table::read(bdis),
            cgroup_io: Table::read(io),
            time: floodline_record::sample::SampleTime { monotonic: at, ..Default::default() },
            ..Sample::default()
        })));
        records
    }
}

/// The host of the worked examples: 60 GiB dirtyable, 100 MiB of dirty pages allowed.
pub(super) fn host() -> Host {
    Host {
        facts: HostFacts {
            kernel: Some(KernelVersion::new(6, 12, 0)),
            page_size: P,
            cpus_possible: Some(64),
            cgroups: CgroupSetup {
                mode: CgroupMode::V2,
                v2_controllers: vec!["memory".into(), "io".into()],
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
        wbs: Vec::new(),
        bdis: Vec::new(),
        io: Vec::new(),
    }
}

pub(super) fn app() -> CgroupRow {
    CgroupRow {
        memory_current: Some(Bytes(500 << 20)),
        inactive_file: Some(Bytes(100 << 20)),
        active_file: Some(Bytes(92 << 20)),
        file_dirty: Some(Bytes(700 * P)),
        file_writeback: Some(Bytes(0)),
        ..CgroupRow::default()
    }
}

pub(super) fn limits(max_mib: u64) -> CgroupLimitsRow {
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

#[test]
fn a_kernel_with_two_opinions_of_free_memory_is_asked_by_its_thresholds() {
    let mut host = host();
    host.host.dirty_bytes = Some(Bytes(0));
    host.host.dirty_ratio = Some(Percent(20));
    // 20 percent of the memory that MemFree has, a million pages more than nr_free_pages.
    host.host.nr_dirty_threshold = Some(Pages(819 * 16_728_640 / P));
    host.host.mem_free = Some(Bytes((16_000_000 + 639) * P));
    let ratio = host.budgets();
    assert_eq!(ratio.disagreements, []);
    assert!(pages(ratio.global.available).0.abs_diff(16_728_640) < 10, "{:?}", ratio.global.available);
    // Bytes say nothing of the memory: it stays between the two.
    host.host.dirty_bytes = Some(Bytes(104_857_600));
    host.host.nr_dirty_threshold = Some(Pages(25_600));
    let bytes = host.budgets();
    assert_eq!(pages(bytes.global.available), (15_728_640, 16_728_640));
    assert!(bytes.cgroups[0].domain.is_exact(), "seven units of it either way");
    host.host.dirty_bytes = Some(Bytes(1 << 30));
    let more = &host.budgets().cgroups[0].domain;
    assert!(!more.is_exact() && more.missing.iter().any(|gap| gap.source == Source::Meminfo), "{more:?}");
    // Neither opinion fits.
    host.host.dirty_bytes = Some(Bytes(0));
    host.host.nr_dirty_threshold = Some(Pages(5000));
    assert_eq!(host.budgets().disagreements.len(), 2);
}

fn wb(thresh_pages: u64) -> WbRow {
    WbRow {
        reclaimable: Some(Bytes(190 * P)),
        writeback: Some(Bytes(0)),
        dirty_thresh: Some(Bytes(thresh_pages * P)),
        ..WbRow::default()
    }
}

#[test]
fn a_share_that_the_kernel_prints_is_the_share() {
    let host = Host { wbs: vec![("8:0", 1001, wb(201)), ("8:16", 1001, wb(67)), ("8:0", 1, wb(9))], ..host() };
    let budgets = host.budgets();
    assert_eq!(budgets.shares_unread, None);
    assert_eq!(budgets.dying, []);
    let app = &budgets.cgroups[0];
    let shares: Vec<_> =
        app.wbs.iter().map(|wb| (wb.bdi.to_string(), wb.share_of(&app.domain), wb.is_printed)).collect();
    assert_eq!(shares, [("8:0".to_owned(), Some(1.0), true), ("8:16".to_owned(), Some(67.0 / 201.0), true)]);
    assert_eq!(app.wbs[0].is_counted_exactly, Some(true));
    assert_eq!(budgets.disagreements, []);
}

#[test]
fn a_printed_share_above_the_threshold_is_reported() {
    let budgets = Host { wbs: vec![("8:0", 1001, wb(900))], ..host() }.budgets();
    assert_eq!(budgets.disagreements.len(), 1, "{:?}", budgets.disagreements);
}

#[test]
fn a_wb_without_a_cgroup_is_dying() {
    let budgets = Host { wbs: vec![("8:0", 4242, wb(5))], ..host() }.budgets();
    assert_eq!(budgets.dying.len(), 1);
    assert_eq!(budgets.cgroups[0].wbs, []);
}

#[test]
fn a_share_that_nobody_prints_is_a_bound() {
    let dev = DevId { major: 8, minor: 0 };
    let check = |version: KernelVersion, bdi: BdiRow, dirty: u64, expect: (u64, u64)| {
        let mut host = Host { io: vec![(1, dev, 5), (1, DevId { major: 8, minor: 16 }, 0)], ..host() };
        host.facts.kernel = Some(version);
        host.host.nr_dirty = Some(Pages(dirty));
        host.cgroups[0].1.file_dirty = Some(Bytes(0));
        host.bdis = vec![("8:0", bdi)];
        let budgets = host.budgets();
        assert!(budgets.shares_unread.is_some());
        let wbs = &budgets.cgroups[0].wbs;
        assert_eq!(wbs.len(), 1, "only devices that were written to");
        assert_eq!(pages(wbs[0].thresh), expect, "{version}");
    };
    let row = |max_ppm| BdiRow { max_ratio: Some(Ppm(max_ppm)), strict_limit: Some(Truth(0)), ..BdiRow::default() };
    let (old, new) = (KernelVersion::new(6, 12, 0), KernelVersion::new(6, 18, 0));
    check(old, row(1_000_000), 100, (0, 201));
    check(new, row(1_000_000), 100, (25, 201));
    check(new, row(1_000_000), 25_592, (1, 201));
    check(new, row(100_000), 100, (0, 20));
    check(new, BdiRow::default(), 100, (0, 201));
}

#[test]
fn devices_without_cgroup_writeback_have_no_share() {
    let check = |fs_type: &str, dev: DevId, expect: usize| {
        let mut host = Host { io: vec![(1, DevId { major: 8, minor: 0 }, 5)], ..host() };
        host.facts.mounts =
            vec![floodline_record::facts::Mount { dev, ..floodline_testkit::mount("sda", fs_type, "/", "rw") }];
        assert_eq!(host.budgets().cgroups[0].wbs.len(), expect, "{fs_type} on {dev}");
    };
    check("ext4", DevId { major: 8, minor: 0 }, 1);
    check("vfat", DevId { major: 8, minor: 0 }, 0);
    // The filesystem is on a mapping, and the disk only below it.
    check("ext4", DevId { major: 253, minor: 0 }, 0);
}

#[test]
fn a_largest_ratio_of_the_device_is_named() {
    let host = Host {
        wbs: vec![("8:0", 1001, wb(2))],
        bdis: vec![(
            "8:0",
            BdiRow { max_ratio: Some(Ppm(10_000)), dirty_thresh: Some(Bytes(256 * P)), ..BdiRow::default() },
        )],
        ..host()
    };
    let budgets = host.budgets();
    assert_eq!(budgets.cgroups[0].wbs[0].binding, Some(DeviceBound::MaxRatio { ppm: 10_000 }));
    assert_eq!(budgets.bdis[0].binding, Some(DeviceBound::MaxRatio { ppm: 10_000 }));
}

#[test]
fn tiny_budgets_are_flagged_and_hold_more_than_they_say() {
    let budgets = host().budgets();
    let outlook = &budgets.cgroups[0].outlook;
    assert_eq!(outlook.flags, [Flag::BelowLargestFolio, Flag::BelowStatError]);
    assert_eq!(outlook.may_hold, Some(Bytes(3584 * P)), "64 CPUs: 14 MiB");
    assert_eq!(pages(outlook.grown), (201, 201));
    assert_eq!(pages(outlook.without_room), (84, 84));
}

/// What can be missing.
const REMOVALS: &[fn(&mut Host)] = &[
    |host| host.zone = None,
    |host| host.host.nr_dirty = None,
    |host| host.host.nr_free_pages = None,
    |host| host.host.nr_dirty_threshold = None,
    |host| host.cgroups[0].1.inactive_file = None,
    |host| host.cgroups[0].1.file_dirty = None,
    |host| host.cgroups[0].1.memory_current = None,
    |host| host.cgroups[0].2.memory_max = None,
    |host| host.cgroups[0].2.memory_high = None,
    |host| host.cgroups[0].2 = CgroupLimitsRow::default(),
    |host| {
        host.cgroups.remove(0);
    },
];

fn settings() -> impl Strategy<Value = (u64, u64)> {
    prop_oneof![(Just(0u64), 0u64..=100), (1u64..1 << 34, Just(0u64))]
}

proptest! {
    #[test]
    fn bounds_hold_what_the_numbers_would_be(
        hard in settings(), background in settings(), free in 1000u64..1 << 24, file in 0u64..1 << 22,
        parts in proptest::collection::vec(0u64..1 << 22, 4), max in 0u64..1 << 23, high in 0u64..1 << 23,
        global_dirty in 0u64..1 << 22, removal in 0..REMOVALS.len(),
    ) {
        let limit = |pages: u64| if pages < 1 << 22 { Limit(pages * P) } else { Limit::MAX };
        let row = CgroupRow {
            memory_current: Some(Bytes(parts[0] * P)),
            file: Some(Bytes((parts[1] + parts[2]) * P)),
            inactive_file: Some(Bytes(parts[1] * P)),
            active_file: Some(Bytes(parts[2] * P)),
            file_dirty: Some(Bytes(parts[3] * P)),
            file_writeback: Some(Bytes(0)),
            ..CgroupRow::default()
        };
        let limits = CgroupLimitsRow { memory_max: Some(limit(max)), memory_high: Some(limit(high)), ..Default::default() };
        let mut host = host();
        host.cgroups = vec![("/a", row.clone(), limits.clone()), ("/a/b", row, limits)];
        host.host.dirty_bytes = Some(Bytes(hard.0));
        host.host.dirty_ratio = Some(Percent(hard.1));
        host.host.dirty_background_bytes = Some(Bytes(background.0));
        host.host.dirty_background_ratio = Some(Percent(background.1));
        host.host.nr_free_pages = Some(Pages(free));
        host.host.nr_inactive_file = Some(Pages(file));
        host.host.nr_dirty = Some(Pages(global_dirty));
        host.host.nr_dirty_threshold = None;
        host.host.nr_dirty_background_threshold = None;
        // What the kernel would print.
        let own = host.budgets().global;
        host.host.nr_dirty_threshold = Some(Pages(pages(own.thresh).0));
        host.host.nr_dirty_background_threshold = Some(Pages(pages(own.bg_thresh).0));

        let whole = host.budgets();
        prop_assert_eq!(&whole.disagreements, &[]);
        let truth = &whole.cgroups[1].domain;
        prop_assert!(truth.is_exact(), "{:?}", truth.missing);
        prop_assert!(truth.bg_thresh < truth.thresh || truth.thresh == Some(Bound::exactly(Bytes(0))));
        let mut lacking = host.clone();
        REMOVALS[removal](&mut lacking);
        let lacking = lacking.budgets();
        let domain = &lacking.cgroups.iter().find(|cgroup| cgroup.path == "/a/b".into()).expect("it is there").domain;
        for (name, truth, bound) in [
            ("thresh", truth.thresh, domain.thresh),
            ("bg_thresh", truth.bg_thresh, domain.bg_thresh),
            ("freerun", truth.freerun, domain.freerun),
            ("available", truth.available, domain.available),
        ] {
            if let Some(bound) = bound {
                let truth = truth.expect("all was read").low;
                prop_assert!(bound.low <= truth && truth <= bound.high, "{name}: {truth} not in {bound:?}");
                // Thresholds may be exact though a few pages of the memory behind them are not known.
                let is_named = name == "available" || bound.is_exact() || !domain.missing.is_empty();
                prop_assert!(is_named, "{name} is a bound and nothing is missing");
            }
        }
    }
}

#[test]
fn dirty_pages_of_the_machine_are_those_that_throttling_counts() {
    let counted = |change: fn(&mut HostRow)| {
        let mut host = host();
        change(&mut host.host);
        let window = Window::from_records(&host.records(Nanos(0)));
        inputs::Inputs::of(&window).global_dirty()
    };
    assert_eq!(counted(|_| {}), Some(50_000));
    assert_eq!(counted(|row| row.nr_writeback = Some(Pages(7))), Some(50_007));
    // Unstable NFS pages.
    assert_eq!(counted(|row| row.nr_unstable = Some(Pages(5))), Some(50_005));
    assert_eq!(counted(|row| row.nr_dirty = None), None);
    assert_eq!(counted(|row| row.nr_writeback = None), None);
}

#[test]
fn a_row_of_a_device_has_its_share_and_its_name() {
    let host = Host { wbs: vec![("8:0", 1001, wb(67)), ("8:16", 1001, wb(134))], ..host() };
    let window = Window::from_records(&host.records(Nanos(0)));
    let report = rows(&window, &budgets(&window), Choice { all: true, sort: Sort::Over });
    let share = |device: &str| {
        let row = report.rows.iter().find(|row| row.device.as_deref() == Some(device));
        row.and_then(|row| row.share).map(|share| (share * 201.0).round())
    };
    assert_eq!((share("8:0"), share("8:16")), (Some(67.0), Some(134.0)), "{:?}", report.rows);
}

#[test]
fn a_clean_cgroup_without_devices_is_not_listed() {
    let listed = |dirty_pages: u64| {
        let mut host = host();
        host.cgroups[0].1.file_dirty = Some(Bytes(dirty_pages * P));
        let window = Window::from_records(&host.records(Nanos(0)));
        let report = rows(&window, &budgets(&window), Choice { all: false, sort: Sort::Over });
        report.rows.iter().filter(|row| row.cgroup.as_deref() == Some("/app")).count()
    };
    assert_eq!((listed(0), listed(1), listed(700)), (0, 1, 1));
}

#[test]
fn what_passes_the_background_threshold_within_a_period_of_the_flusher_is_flagged() {
    let flags = |pages: u64| {
        let mut first = host();
        first.host.dirty_writeback_centisecs = Some(floodline_record::units::Centisecs(500));
        first.wbs = vec![("8:0", 1001, WbRow { dirtied: Some(Bytes(0)), ..wb(201) })];
        let mut second = first.clone();
        second.wbs[0].2.dirtied = Some(Bytes(2 * pages * P));
        let mut records = first.records(Nanos(0));
        records.extend(second.records(Nanos(10 * Nanos::SECOND.0)).pop());
        let budgets = budgets(&Window::from_records(&records));
        budgets.cgroups[0].outlook.flags.contains(&Flag::BackgroundPassedUnseen)
    };
    // Free-run ceiling 158 pages, background threshold 115: 43 pages in 5 s are not more.
    assert!(!flags(43));
    assert!(flags(44));
}
