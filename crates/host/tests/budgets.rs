// SPDX-License-Identifier: MIT OR Apache-2.0
//! Budgets of captured kernels against the kernels' own numbers: the global thresholds of vmstat and the
//! shares that wb_stats prints for every cgroup and device.

use floodline_core::budget::{Budgets, DeviceBound, Scope, budgets};
use floodline_core::facts::{CgroupMode, CgroupSetup, HostFacts};
use floodline_core::id::Entity;
use floodline_core::name::Name;
use floodline_core::record::Record;
use floodline_core::sample::HostRow;
use floodline_core::units::{Bytes, Percent};
use floodline_core::window::Window;
use floodline_host::collect::Collector;
use floodline_host::plan::Plan;
use floodline_host::root::HostRoot;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name)
}

/// The budgets of a captured tree. Copying lost the numbers of cgroup directories: they are put back.
fn of(name: &str) -> Budgets {
    let folder = fixture(name);
    let text = |path: &str| std::fs::read_to_string(folder.join(path)).unwrap_or_default();
    let facts = HostFacts {
        kernel: text("proc/version").split_whitespace().nth(2).and_then(|release| release.parse().ok()),
        page_size: 4096,
        cpus_possible: Some(2),
        cgroups: CgroupSetup {
            mode: CgroupMode::V2,
            v2_mount: Some(Name::from("/sys/fs/cgroup")),
            v2_controllers: text("sys/fs/cgroup/cgroup.controllers").split_whitespace().map(str::to_owned).collect(),
            ..CgroupSetup::default()
        },
        debugfs: Some(true),
        ..HostFacts::default()
    };
    let inos: BTreeMap<String, u64> = text("cgroup-inodes.tsv")
        .lines()
        .skip(1)
        .filter_map(|line| {
            let (path, ino) = line.split_once('\t')?;
            Some((path.to_owned(), ino.parse().ok()?))
        })
        .collect();
    let root = HostRoot::at(&folder).expect("the tree is there");
    let mut records = vec![Record::Facts(Box::new(facts.clone()))];
    Collector::new(&root, Plan::everything(&facts)).collect(&mut records);
    for record in &mut records {
        if let Record::Sample(sample) = record {
            set(&mut sample.host, name);
        }
        if let Record::Entity(_, Entity::Cgroup { path, ino, .. }) = record {
            *ino = inos.get(&path.to_string()).copied();
        }
    }
    budgets(&Window::from_records(&records))
}

/// The tunables of a captured tree by its name: the files below /proc/sys were copied empty.
fn set(host: &mut HostRow, name: &str) {
    let (bytes, ratio) = match name.split_once('-') {
        Some((_, "bytes")) => ((100 << 20, 50 << 20), (0, 0)),
        Some((_, "strict")) => ((0, 0), (10, 5)),
        _ => ((0, 0), (20, 10)),
    };
    host.dirty_bytes = Some(Bytes(bytes.0));
    host.dirty_background_bytes = Some(Bytes(bytes.1));
    host.dirty_ratio = Some(Percent(ratio.0));
    host.dirty_background_ratio = Some(Percent(ratio.1));
}

/// Checks a captured tree: its global thresholds and every printed share. `wbs` are those of cgroups,
/// `whole` those that have all of their cgroup's threshold: there the kernel prints the memcg threshold.
fn check(name: &str, wbs: usize, whole: usize) {
    let budgets = of(name);
    assert_eq!(budgets.scope, Scope::PerCgroup, "{name}");
    assert_eq!(budgets.disagreements, [], "{name}");
    assert_eq!(budgets.global.thresh, budgets.global.computed_thresh, "{name}");
    assert!(budgets.global.is_exact(), "{name}");
    assert_eq!(budgets.cgroups.len(), 11, "{name}");
    let mut seen = (0, 0);
    for cgroup in &budgets.cgroups {
        assert!(cgroup.domain.is_exact(), "{name} {}: {:?}", cgroup.path, cgroup.domain.missing);
        for wb in cgroup.wbs.iter().filter(|wb| wb.is_printed) {
            let share = wb.share_of(&cgroup.domain).expect("both are exact");
            assert!(share <= 1.0, "{name} {} on {}: {share}", cgroup.path, wb.bdi);
            seen = (seen.0 + 1, seen.1 + usize::from(share == 1.0));
        }
    }
    assert_eq!(seen, (wbs, whole), "{name}");
}

#[test]
fn budgets_are_the_kernels_own_to_the_page() {
    check("6.12", 7, 5);
    check("6.12-bytes", 7, 4);
    check("6.12-strict", 7, 0);
    check("6.12.43", 7, 5);
    check("7.2", 7, 4);
    check("7.2-bytes", 7, 4);
    // Before 6.10 wbs were not printed.
    check("6.1", 0, 0);
    check("5.10", 0, 0);
}

#[test]
fn a_devices_largest_ratio_shows_in_the_shares() {
    let budgets = of("6.12-strict");
    let cgroup = |path: &str| budgets.cgroups.iter().find(|budget| budget.path == path.into()).expect("it is there");
    let redis = &cgroup("/system.slice/redis.service").wbs[0];
    assert_eq!((redis.strictlimit, redis.binding), (Some(true), Some(DeviceBound::MaxRatio { ppm: 400_000 })));
    assert_eq!(cgroup("/kubepods/pod1/web").wbs[0].binding, None);
}

#[test]
fn without_printed_wbs_the_leaves_have_bounds() {
    let budgets = of("6.1");
    let shares: Vec<_> = budgets.cgroups.iter().map(|budget| (budget.path.to_string(), budget.wbs.len())).collect();
    assert_eq!(shares.iter().filter(|(_, wbs)| *wbs > 0).count(), 6, "{shares:?}");
    assert!(shares.contains(&("/kubepods".to_owned(), 0)), "{shares:?}");
    let redis = budgets.cgroups.iter().find(|budget| budget.path == "/system.slice/redis.service".into());
    let (wb, domain) = redis.map(|budget| (&budget.wbs[0], &budget.domain)).expect("it is there");
    assert_eq!(
        (wb.is_printed, wb.thresh.map(|share| (share.low, share.high))),
        (false, domain.thresh.map(|thresh| (Bytes(0), thresh.high)))
    );
}
