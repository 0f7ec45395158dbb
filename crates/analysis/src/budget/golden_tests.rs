// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every number of a host with nested cgroups on two devices, then what becomes of each when one input is missing or
//! another kernel runs, and the same host under other conditions. The kernel's own numbers are in the other tests; this
//! one notices each number that moves.

use super::as_if::{AsIf, AsIfReport, as_if};
use super::exact::Judge;
use super::tests::{Host, P, app, host, limits};
use super::{Binding, Bound, Budgets, Choice, DomainBudget, Sort, WbBudget, budgets, rows};
use floodline_record::facts::{CgroupMode, CgroupSetup};
use floodline_record::id::{DevId, Hierarchy};
use floodline_record::record::Sink;
use floodline_record::sample::{BdiRow, CgroupLimitsRow, CgroupRow, WbRow};
use floodline_record::units::{
    Bits, Bytes, BytesPerSecond, Centisecs, Flag as Truth, Limit, Nanos, Pages, Percent, Ppm,
};
use floodline_record::version::KernelVersion;
use floodline_record::window::Window;
use floodline_testkit::Fixture;
use std::fmt::Write;

/// `/slice` bounds two cgroups; `/free` has no limit. Wbs: of both cgroups, of the root, and of one that is gone.
fn rich() -> Host {
    let row = |current_mib: u64, file_mib: u64, dirty: u64, writeback: u64| CgroupRow {
        memory_current: Some(Bytes(current_mib << 20)),
        inactive_file: Some(Bytes((file_mib / 2) << 20)),
        active_file: Some(Bytes((file_mib / 2) << 20)),
        file_dirty: Some(Bytes(dirty * P)),
        file_writeback: Some(Bytes(writeback * P)),
        ..app()
    };
    let wb = |reclaimable: u64, writeback: u64, thresh: u64, bandwidth: u64| WbRow {
        reclaimable: Some(Bytes(reclaimable * P)),
        writeback: Some(Bytes(writeback * P)),
        dirty_thresh: Some(Bytes(thresh * P)),
        write_bandwidth: Some(BytesPerSecond(bandwidth << 20)),
        state: Some(Bits(7)),
        ..WbRow::default()
    };
    let bdi = |dirty: u64, thresh: u64, max_ppm: u64, strict: u64| BdiRow {
        reclaimable: Some(Bytes(dirty * P)),
        writeback: Some(Bytes(3 * P)),
        dirty_thresh: Some(Bytes(thresh * P)),
        min_ratio: Some(Ppm(20_000)),
        max_ratio: Some(Ppm(max_ppm)),
        strict_limit: Some(Truth(strict)),
        ..BdiRow::default()
    };
    let unlimited = CgroupLimitsRow { memory_max: Some(Limit::MAX), ..limits(1) };
    let high = CgroupLimitsRow { memory_high: Some(Limit(1 << 30)), ..limits(2048) };
    let mut host = host();
    host.host.nr_writeback = Some(Pages(130));
    host.host.dirty_writeback_centisecs = Some(Centisecs(500));
    host.cgroups = vec![
        ("/slice", row(900, 300, 900, 40), high),
        ("/slice/app", row(500, 192, 600, 40), limits(768)),
        ("/slice/db", row(300, 80, 300, 0), unlimited.clone()),
        ("/free", row(4000, 2000, 0, 0), unlimited),
    ];
    let idle = WbRow { state: Some(Bits(1)), ..wb(0, 0, 70, 1000) };
    // On 8:16 the largest ratio of 10 % is divided by bandwidth, and on 8:32 the smallest decides.
    host.wbs = vec![
        ("8:0", 1002, wb(150, 30, 60, 100)),
        ("8:16", 1002, wb(450, 10, 9, 200)),
        ("8:0", 1003, wb(300, 0, 70, 100)),
        ("8:16", 1003, wb(20, 0, 3, 100)),
        ("8:32", 1003, wb(20, 0, 18, 100)),
        ("8:32", 1002, idle),
        ("8:0", 1, wb(10, 0, 9000, 100)),
        ("8:16", 4242, wb(40, 2, 5, 0)),
    ];
    let least = BdiRow { min_ratio: Some(Ppm(200_000)), ..bdi(20, 5120, 1_000_000, 0) };
    host.bdis = vec![("8:0", bdi(460, 25_000, 1_000_000, 0)), ("8:16", bdi(490, 2560, 100_000, 1)), ("8:32", least)];
    host.facts.devices = Fixture::healthy().window().facts.map(|facts| facts.devices).unwrap_or_default();
    host.io = vec![(2, DevId { major: 8, minor: 0 }, 1 << 20), (2, DevId { major: 8, minor: 16 }, 1 << 20)];
    host
}

/// In pages.
fn span(bound: Option<Bound>) -> String {
    let pages = |bytes: u64| if bytes >= u64::MAX / 2 { "all".to_owned() } else { (bytes / P).to_string() };
    match bound {
        None => "-".to_owned(),
        Some(bound) if bound.is_exact() => pages(bound.low.0),
        Some(bound) => format!("{}..{}", pages(bound.low.0), pages(bound.high.0)),
    }
}

fn amount(bytes: Option<Bytes>) -> String {
    bytes.map_or_else(|| "-".to_owned(), |bytes| (bytes.0 / P).to_string())
}

fn domain(domain: &DomainBudget) -> String {
    let by = domain.binding.as_ref().map(Binding::label).unwrap_or_default();
    let mut line = format!(
        "{}+{} bg {} freerun {} thresh {} computed {} of {} by {by:?}{}",
        amount(domain.dirty),
        amount(domain.writeback),
        span(domain.bg_thresh),
        span(domain.freerun),
        span(domain.thresh),
        span(domain.computed_thresh),
        span(domain.available),
        if domain.is_exact() { " exact" } else { "" },
    );
    for gap in &domain.missing {
        let _ = write!(line, " no {gap}");
    }
    line
}

fn wb(whole: &DomainBudget, wb: &WbBudget) -> String {
    format!(
        "{}+{} thresh {} share {:?} printed {} exactly {:?} strict {:?} by {:?} {:?}",
        amount(wb.dirty),
        amount(wb.writeback),
        span(wb.thresh),
        wb.share_of(whole),
        wb.is_printed,
        wb.is_counted_exactly,
        wb.strictlimit,
        wb.binding,
        wb.write_bandwidth.map(|rate| rate.0 >> 20),
    )
}

/// Each line has a name, so that two hosts can be compared.
fn lines(window: &Window) -> Vec<(String, String)> {
    let found: Budgets = budgets(window);
    let mut out = vec![("machine".to_owned(), domain(&found.global))];
    for budget in &found.cgroups {
        let room = budget.headroom.as_ref();
        let room = room.map(|room| format!("{} of {} {}", span(Some(room.bytes)), room.path, room.limit.name()));
        let outlook = &budget.outlook;
        out.push((budget.path.to_string(), domain(&budget.domain)));
        out.push((
            format!("{} could", budget.path),
            format!(
                "inner {} room {room:?} grown {} full {} hold {} {:?}",
                budget.is_inner,
                span(outlook.grown),
                span(outlook.without_room),
                amount(outlook.may_hold),
                outlook.flags
            ),
        ));
        out.extend(budget.wbs.iter().map(|of| (format!("{} on {}", budget.path, of.bdi), wb(&budget.domain, of))));
    }
    out.extend(found.bdis.iter().map(|of| (format!("bdi {}", of.bdi), wb(&found.global, of))));
    out.extend(found.dying.iter().map(|of| (format!("dying on {}", of.bdi), wb(&found.global, of))));
    out.push(("scope".to_owned(), format!("{:?} error {:?}", found.scope, found.wb_stat_error)));
    out.push(("shares".to_owned(), format!("{:?}", found.shares_unread.as_ref().map(ToString::to_string))));
    out.extend(found.disagreements.iter().map(|what| ("disagreement".to_owned(), format!("{what:?}"))));
    for sort in [Sort::Over, Sort::Dirty, Sort::Thresh, Sort::Name] {
        for all in [true, false] {
            let report = rows(window, &found, Choice { all, sort });
            let names = report.rows.iter().map(|row| {
                let of = row.cgroup.as_deref().unwrap_or("machine");
                row.device.as_ref().map_or_else(|| of.to_owned(), |device| format!("{of}@{device}"))
            });
            let names: Vec<String> = names.collect();
            out.push((format!("{sort:?} all {all}"), format!("{} hidden {}", names.join(" "), report.hidden)));
            if sort == Sort::Name && all {
                out.extend(report.notes.into_iter().map(|note| ("note".to_owned(), note)));
                let lacking = report.rows.iter().map(|row| row.missing.len().to_string());
                out.push(("missing".to_owned(), lacking.collect::<Vec<_>>().join(" ")));
                let containers = report.rows.iter().filter_map(|row| row.container.clone());
                out.push(("containers".to_owned(), containers.collect::<Vec<_>>().join(" ")));
                out.extend(report.gaps.iter().map(|gap| ("gap".to_owned(), gap.source.clone())));
            }
        }
    }
    out
}

type Change = (&'static str, fn(&mut Host));

/// One input less, or another.
const CHANGES: &[Change] = &[
    ("no zones", |host| host.zone = None),
    ("no kernel", |host| host.facts.kernel = None),
    ("no CPUs", |host| host.facts.cpus_possible = None),
    ("no page size", |host| host.facts.page_size = 0),
    ("no nr_dirty", |host| host.host.nr_dirty = None),
    ("no free pages", |host| host.host.nr_free_pages = None),
    ("no thresholds in vmstat", |host| {
        (host.host.nr_dirty_threshold, host.host.nr_dirty_background_threshold) = (None, None);
    }),
    ("other thresholds in vmstat", |host| host.host.nr_dirty_threshold = Some(Pages(60_000))),
    ("no dirty_bytes", |host| host.host.dirty_bytes = None),
    ("no dirty_background_bytes", |host| host.host.dirty_background_bytes = None),
    ("ratios", |host| {
        (host.host.dirty_bytes, host.host.dirty_ratio) = (Some(Bytes(0)), Some(Percent(20)));
        (host.host.dirty_background_bytes, host.host.dirty_background_ratio) = (Some(Bytes(0)), Some(Percent(10)));
        (host.host.nr_dirty_threshold, host.host.nr_dirty_background_threshold) = (None, None);
    }),
    ("background above the other", |host| {
        host.host.dirty_background_bytes = Some(Bytes(1 << 30));
        (host.host.nr_dirty_threshold, host.host.nr_dirty_background_threshold) = (None, None);
    }),
    ("a background as large as the other", |host| {
        host.host.dirty_background_bytes = host.host.dirty_bytes;
        (host.host.nr_dirty_threshold, host.host.nr_dirty_background_threshold) = (None, None);
    }),
    ("nothing may be dirty", |host| {
        (host.host.dirty_bytes, host.host.dirty_ratio) = (Some(Bytes(0)), Some(Percent(0)));
        (host.host.dirty_background_bytes, host.host.dirty_background_ratio) = (Some(Bytes(0)), Some(Percent(0)));
        (host.host.nr_dirty_threshold, host.host.nr_dirty_background_threshold) = (Some(Pages(0)), Some(Pages(0)));
        host.wbs[0].2.dirty_thresh = Some(Bytes(0));
        host.bdis[0].1.min_ratio = Some(Ppm(0));
    }),
    ("ratios as vmstat has them", |host| ratios(host, 3_144_960, 1_570_560)),
    ("ratios as vmstat has them, and no zones", |host| {
        ratios(host, 3_144_960, 1_570_560);
        host.zone = None;
    }),
    ("ratios that do not agree, and no zones", |host| {
        ratios(host, 3_144_960, 1_600_000);
        host.zone = None;
    }),
    ("ratios of less memory", |host| ratios(host, 3_000_000, 1_498_000)),
    ("half is no opinion of its own, and no zones", |host| {
        ratios(host, 3_144_960, 1_572_480);
        host.zone = None;
    }),
    ("ratios of what meminfo has free", |host| {
        ratios(host, 2_225_000, 1_111_000);
        host.host.mem_free = Some(Bytes(10_400_000 * P));
    }),
    ("ratios of neither", |host| {
        ratios(host, 1_225_000, 611_000);
        host.host.mem_free = Some(Bytes(10_400_000 * P));
    }),
    ("meminfo is little apart", |host| {
        ratios(host, 3_000_000, 1_498_000);
        host.host.mem_free = Some(Bytes(15_004_000 * P));
    }),
    ("a large limit", |host| host.host.dirty_bytes = Some(Bytes(1 << 33))),
    ("a root with a limit", |host| host.cgroups.push(("/", host.cgroups[0].1.clone(), limits(2048)))),
    ("a root without", |host| host.cgroups.push(("/", host.cgroups[0].1.clone(), CgroupLimitsRow::default()))),
    ("as much room in both", |host| host.cgroups[1].2 = limits(624)),
    ("usage alone", |host| {
        (host.cgroups[1].1.inactive_file, host.cgroups[1].1.active_file) = (None, None);
        host.cgroups[2].1 = CgroupRow { file: Some(Bytes(80 << 20)), ..CgroupRow::default() };
        host.cgroups[3].1 = CgroupRow::default();
    }),
    ("within a container", |host| {
        host.cgroups[2].0 = "/docker/abababababababababababababababababababababababababababababababab/x";
    }),
    ("no usage of /slice", |host| host.cgroups[0].1.memory_current = None),
    ("no limits of /slice", |host| host.cgroups[0].2 = CgroupLimitsRow::default()),
    ("no memory.high of /slice", |host| host.cgroups[0].2.memory_high = None),
    ("/slice is full", |host| host.cgroups[0].1.memory_current = Some(Bytes(1 << 30))),
    ("no file pages of /slice/app", |host| host.cgroups[1].1.inactive_file = None),
    ("no dirty pages of /slice/app", |host| host.cgroups[1].1.file_dirty = None),
    ("no writeback of /slice/app", |host| host.cgroups[1].1.file_writeback = None),
    ("no memory.max of /slice/app", |host| host.cgroups[1].2.memory_max = None),
    ("no wbs", |host| host.wbs.clear()),
    ("no wbs and no bdis", |host| {
        host.wbs.clear();
        host.bdis.clear();
    }),
    ("no threshold of a wb", |host| host.wbs[0].2.dirty_thresh = None),
    ("a share above all", |host| host.wbs[0].2.dirty_thresh = Some(Bytes(9000 * P))),
    ("no ratios of a bdi", |host| (host.bdis[1].1.max_ratio, host.bdis[1].1.min_ratio) = (None, None)),
    ("no /slice", |host| {
        host.cgroups.remove(0);
    }),
    ("no cgroups", |host| host.cgroups.clear()),
    ("no cgroups and an idle device", |host| {
        host.cgroups.clear();
        (host.bdis[0].1.reclaimable, host.bdis[0].1.writeback) = (Some(Bytes(0)), Some(Bytes(0)));
    }),
    ("version 1", |host| host.facts.cgroups = CgroupSetup { mode: CgroupMode::V1, ..CgroupSetup::default() }),
    ("controllers not read", |host| host.facts.cgroups.v2_controllers_unread = true),
    ("4.1", |host| host.facts.kernel = Some(KernelVersion::new(4, 1, 0))),
    ("5.10", |host| host.facts.kernel = Some(KernelVersion::new(5, 10, 0))),
    ("6.1", |host| host.facts.kernel = Some(KernelVersion::new(6, 1, 0))),
    ("6.14", |host| host.facts.kernel = Some(KernelVersion::new(6, 14, 0))),
    ("6.18, no wbs", |host| {
        host.facts.kernel = Some(KernelVersion::new(6, 18, 0));
        host.wbs.clear();
    }),
];

/// Settings in percent, 20 and 10, and what the kernel prints for them.
fn ratios(host: &mut Host, thresh: u64, background: u64) {
    (host.host.dirty_bytes, host.host.dirty_ratio) = (Some(Bytes(0)), Some(Percent(20)));
    (host.host.dirty_background_bytes, host.host.dirty_background_ratio) = (Some(Bytes(0)), Some(Percent(10)));
    host.host.nr_dirty_threshold = Some(Pages(thresh));
    host.host.nr_dirty_background_threshold = Some(Pages(background));
}

#[test]
fn each_number_of_a_host_and_what_one_input_changes() {
    let of = |host: &Host| lines(&Window::from_records(&host.records(Nanos(0))));
    let whole = of(&rich());
    let mut out = String::new();
    for (name, line) in &whole {
        let _ = writeln!(out, "{name}: {line}");
    }
    let window = Window::from_records(&rich().records(Nanos(0)));
    let report = rows(&window, &budgets(&window), Choice { all: true, sort: Sort::Name });
    for row in &report.rows {
        let mut fields = serde_json::to_value(row).unwrap();
        let fields = fields.as_object_mut().unwrap();
        fields.retain(|_, value| !value.is_null() && value.as_array().is_none_or(|values| !values.is_empty()));
        let _ = writeln!(out, "{}", serde_json::to_string(fields).unwrap());
    }
    for (name, change) in CHANGES {
        let _ = writeln!(out, "\n{name}:");
        let mut host = rich();
        change(&mut host);
        let changed = of(&host);
        for (name, line) in changed.iter().filter(|line| !whole.contains(line)) {
            let _ = writeln!(out, "  {name}: {line}");
        }
        let gone = whole.iter().filter(|(name, _)| !changed.iter().any(|(other, _)| other == name));
        for (name, _) in gone {
            let _ = writeln!(out, "  gone: {name}");
        }
    }
    insta::assert_snapshot!(out);
}

fn told(report: &AsIfReport) -> String {
    let pages = |bytes: Option<u64>| bytes.map_or_else(|| "-".to_owned(), |bytes| (bytes / P).to_string());
    let mut out = format!("{}: {}\n", report.as_if, report.headline);
    for note in &report.notes {
        let _ = writeln!(out, "  {note}");
    }
    for row in &report.rows {
        let _ = writeln!(
            out,
            "  {} ({}) {} {} now {} then bg {} freerun {} thresh {}..{} grown {} by {:?} {:?}",
            row.cgroup.as_deref().unwrap_or("machine"),
            row.container.as_deref().unwrap_or("-"),
            row.verdict,
            pages(row.peak_bytes),
            pages(row.now_thresh_bytes),
            pages(row.then_bg_thresh_bytes),
            pages(row.then_freerun_bytes),
            pages(row.then_thresh_bytes_min),
            pages(row.then_thresh_bytes),
            pages(row.then_grown_bytes),
            row.binding,
            row.flags,
        );
    }
    for gap in &report.then.gaps {
        let _ = writeln!(out, "  not read: {}", gap.source);
    }
    let _ = writeln!(out, "  {} now, {} then, {} hidden", report.now.rows.len(), report.then.rows.len(), report.hidden);
    out
}

/// A machine with one cgroup that holds dirty pages, a container, and an idle one.
fn machine(hierarchy: Hierarchy, dirty: u64) -> Fixture {
    let container = format!("/docker/{}", "ab".repeat(32));
    let cgroup = move |_: f64, row: &mut CgroupRow| {
        row.memory_current = Some(Bytes(250 << 20));
        row.inactive_file = Some(Bytes(100 << 20));
        row.active_file = Some(Bytes(0));
        row.file_dirty = Some(Bytes(dirty * P));
        row.file_writeback = Some(Bytes(8 * P));
    };
    let limits = move |_: f64, row: &mut CgroupLimitsRow| {
        row.memory_max = Some(Limit(256 << 20));
        row.memory_high = (hierarchy == Hierarchy::V2).then_some(Limit::MAX);
    };
    let idle = |_: f64, row: &mut CgroupRow| (row.file_dirty, row.file_writeback) = (Some(Bytes(0)), Some(Bytes(0)));
    Fixture::healthy()
        .settings((20, 0, 10, 0))
        .hierarchy(hierarchy)
        .cgroup("/app", cgroup)
        .limits("/app", limits)
        .cgroup(&container, cgroup)
        .cgroup("/idle", idle)
}

#[test]
fn each_number_under_other_conditions() {
    let cases: &[(Hierarchy, u64, &str)] = &[
        (Hierarchy::V1Memory, 6000, "cgroup=v2"),
        (Hierarchy::V1Memory, 4500, "cgroup=v2"),
        (Hierarchy::V1Memory, 100, "cgroup=v2,kernel=5.10"),
        (Hierarchy::V1Memory, 6000, "vm.dirty_ratio=5"),
        (Hierarchy::V2, 6000, "cgroup=v1"),
        (Hierarchy::V2, 100, "cgroup=v2"),
        // The peak is the free-run ceiling, and the limit.
        (Hierarchy::V2, 4067 - 8, "cgroup=v2"),
        (Hierarchy::V2, 5425 - 8, "cgroup=v2"),
        (Hierarchy::V2, 100, "vm.dirty_bytes=64K"),
        (Hierarchy::V2, 4500, "vm.dirty_bytes=8M,vm.dirty_background_bytes=4M"),
        (Hierarchy::V2, 6000, "vm.dirty_ratio=40,kernel=99.1"),
        (Hierarchy::V2, 6000, "kernel=4.1"),
        (Hierarchy::V2, 6000, "cgroup/app/memory.max=1G,cgroup/app/memory.high=max"),
        (Hierarchy::V2, 6000, "vm.dirty_bytes=1T"),
    ];
    let mut out = String::new();
    for (hierarchy, dirty, conditions) in cases {
        let window = machine(*hierarchy, *dirty).window();
        let report = as_if(&window, &conditions.parse::<AsIf>().unwrap(), true).unwrap();
        let _ = writeln!(out, "{hierarchy:?}, {dirty} pages, {}", told(&report));
    }
    let mut unread = machine(Hierarchy::V2, 100).window();
    unread.cgroups.clear();
    let report = as_if(&unread, &"vm.dirty_ratio=10".parse::<AsIf>().unwrap(), true).unwrap();
    let _ = writeln!(out, "no cgroups, {}", told(&report));
    unread.host.last.nr_free_pages = None;
    let report = as_if(&unread, &"vm.dirty_ratio=10".parse::<AsIf>().unwrap(), true).unwrap();
    let _ = writeln!(out, "no memory, {}", told(&report));
    insta::assert_snapshot!(out);
}

/// Seconds of the rich host: what its wbs completed grows, the file pages of `/slice/db` move at the sixth, and each wb
/// prints `printed`.
fn judged(kernel: KernelVersion, printed: impl Fn(usize) -> u64) -> Judge {
    let mut judge = Judge::default();
    for at in 1..=14 {
        let mut host = rich();
        host.facts.kernel = Some(kernel);
        for (place, (_, _, row)) in host.wbs.iter_mut().enumerate() {
            // The second device of a cgroup completes little, some wbs nothing.
            let pages = [5000, 20, 3000, 0, 0, 0, 800, 0][place % 8];
            row.written = Some(Bytes(pages * at * P));
            row.dirtied = Some(Bytes(pages * P));
            row.dirty_thresh = Some(Bytes(printed(place) * P));
        }
        if at > 5 {
            host.cgroups[2].1.inactive_file = Some(Bytes(44 << 20));
        }
        let records = host.records(Nanos::from_millis(at * 1000));
        let begin = if at == 1 { 0 } else { records.len() - 1 };
        for record in &records[begin..] {
            let Ok(()) = judge.record(record);
        }
    }
    judge
}

#[test]
fn each_row_that_the_judge_holds_against_the_kernel() {
    let mut out = String::new();
    for kernel in [KernelVersion::new(5, 10, 0), KernelVersion::new(6, 12, 0), KernelVersion::new(6, 18, 0)] {
        for printed in [[7; 8], [138, 9, 89, 3, 18, 0, 9000, 5], [13, 9, 8, 2, 10, 8, 3000, 2]] {
            let judge = judged(kernel, |place| printed[place]);
            let _ = writeln!(out, "{kernel} prints {printed:?}: {:?}", judge.found());
            let mut rows: Vec<String> = Vec::new();
            for miss in judge.misses() {
                let seconds = miss.at.0 / Nanos::SECOND.0;
                rows.push(format!("  {} at {seconds}: {} of {:?}", miss.row, miss.printed, miss.computed));
            }
            rows.sort();
            // The first and the last second of each row.
            let row = |line: &String| line.split(" at ").next().map(str::to_owned);
            for (place, line) in rows.iter().enumerate() {
                let (before, after) = (place.checked_sub(1).and_then(|at| rows.get(at)), rows.get(place + 1));
                if before.and_then(row) != row(line) || after.and_then(row) != row(line) {
                    let _ = writeln!(out, "{line}");
                }
            }
        }
    }
    insta::assert_snapshot!(out);
}
