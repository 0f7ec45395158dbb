// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the kernel's arithmetic costs: one turn of the throttling loop for a cgroup's wb, both domains,
//! as a simulator does it; and the budgets of many cgroups. `cargo bench -p floodline-analysis --bench kernel`.

use divan::black_box;
use divan::counter::ItemsCount;
use floodline_analysis::budget::budgets;
use floodline_kernel::{
    Algorithm, Build, DirtyThrottleControl, DirtyTunables, KernelVersion, MdtcAvailInput, PauseArithmetic, TaskClass,
    WbShare, domain_dirty_limits, mdtc_calc_avail, task_ratelimit, wb_bg_thresh, wb_calc_thresh, wb_position_ratio,
};
use floodline_record::facts::{CgroupMode, CgroupSetup, HostFacts};
use floodline_record::id::{Entity, EntityId, Hierarchy};
use floodline_record::name::Name;
use floodline_record::record::Record;
use floodline_record::sample::{CgroupLimitsRow, CgroupRow, HostRow, Sample, Table, ZoneRow};
use floodline_record::units::{Bytes, Limit, Pages, Percent};
use floodline_record::window::Window;

fn main() {
    divan::main();
}

/// Both domains of one wb: available memory, thresholds, share, position ratio; then rate and pause.
#[divan::bench]
fn one_turn_of_the_throttling_loop(bencher: divan::Bencher) {
    let algorithm = Algorithm::of(KernelVersion::new(6, 12, 0));
    let pauses = PauseArithmetic::of(Build { hz: 250, cpus_possible: 64, page_size: 4096 });
    let tunables = DirtyTunables { dirty_ratio: 20, dirty_background_ratio: 10, ..DirtyTunables::default() };
    bencher.counter(ItemsCount::new(1u32)).bench_local(|| {
        let (global_avail, global_dirty) = (black_box(6_000_000), black_box(900_000));
        let memcg = MdtcAvailInput { file: 49_152, headroom: 68_608, dirty: 20_000, global_avail, global_dirty };
        let memcg_avail = mdtc_calc_avail(&algorithm, &memcg);
        let domains = [(global_avail, None, global_dirty), (memcg_avail, Some(global_avail), 20_000)];
        let ratios = domains.map(|(avail, global, dirty)| {
            let limits = domain_dirty_limits(&algorithm, &tunables, 4096, avail, global, TaskClass::Normal);
            let share = WbShare::unlimited(&algorithm, black_box(700), 1000);
            let wb_thresh = wb_calc_thresh(&algorithm, &share, limits.thresh, dirty);
            let dtc = DirtyThrottleControl {
                thresh: limits.thresh,
                bg_thresh: limits.bg_thresh,
                dirty,
                dirty_limit: limits.thresh,
                wb_thresh,
                wb_bg_thresh: wb_bg_thresh(wb_thresh, limits.bg_thresh, limits.thresh),
                wb_dirty: 15_000,
            };
            wb_position_ratio(&algorithm, &dtc, black_box(25_600), false)
        });
        let task = task_ratelimit(25_600, ratios[0].min(ratios[1]));
        pauses.wb_pause(15_000, 25_600, 25_600, task)
    });
}

/// All budgets of a machine.
#[divan::bench(args = [500, 5000])]
fn budgets_of_cgroups(bencher: divan::Bencher, cgroups: u32) {
    let window = machine(cgroups);
    bencher.counter(ItemsCount::new(cgroups)).bench_local(|| budgets(black_box(&window)));
}

fn machine(cgroups: u32) -> Window {
    let facts = HostFacts {
        kernel: Some(KernelVersion::new(6, 12, 0)),
        page_size: 4096,
        cpus_possible: Some(64),
        cgroups: CgroupSetup {
            mode: CgroupMode::V2,
            v2_controllers: vec!["memory".into(), "io".into()],
            ..CgroupSetup::default()
        },
        ..HostFacts::default()
    };
    let ids = || (1..=cgroups).map(EntityId);
    let mut records = vec![Record::Facts(Box::new(facts))];
    records.push(Record::Entity(EntityId(0), Entity::Zone { node: 0, name: Name::from("Normal") }));
    records.extend(ids().map(|id| {
        let path = Name::from(format!("/machine.slice/pod-{}.slice/app-{}.scope", id.0 / 10, id.0).as_str());
        Record::Entity(id, Entity::Cgroup { path, hierarchy: Hierarchy::V2, ino: Some(id.0.into()) })
    }));
    let row = CgroupRow {
        memory_current: Some(Bytes(500 << 20)),
        inactive_file: Some(Bytes(100 << 20)),
        active_file: Some(Bytes(92 << 20)),
        file_dirty: Some(Bytes(1 << 20)),
        file_writeback: Some(Bytes(0)),
        ..CgroupRow::default()
    };
    let limits =
        CgroupLimitsRow { memory_max: Some(Limit(768 << 20)), memory_high: Some(Limit::MAX), ..Default::default() };
    records.push(Record::Sample(Box::new(Sample {
        host: HostRow {
            nr_dirty: Some(Pages(50_000)),
            nr_writeback: Some(Pages(0)),
            nr_free_pages: Some(Pages(15_000_000)),
            nr_inactive_file: Some(Pages(700_000)),
            nr_active_file: Some(Pages(28_000)),
            dirty_bytes: Some(Bytes(0)),
            dirty_ratio: Some(Percent(20)),
            dirty_background_bytes: Some(Bytes(0)),
            dirty_background_ratio: Some(Percent(10)),
            ..HostRow::default()
        },
        zones: Table::read(vec![(
            EntityId(0),
            ZoneRow {
                managed: Some(Pages(16_000_000)),
                high: Some(Pages(1500)),
                protection_max: Some(Pages(0)),
                ..ZoneRow::default()
            },
        )]),
        cgroups: Table::read(ids().map(|id| (id, row.clone())).collect()),
        cgroup_limits: Table::read(ids().map(|id| (id, limits.clone())).collect()),
        ..Sample::default()
    })));
    Window::from_records(&records)
}
