// SPDX-License-Identifier: MIT OR Apache-2.0
//! Budgets of captured kernels against the kernels' own numbers: the global thresholds of vmstat and the
//! shares that wb_stats prints for every cgroup and device.

use floodline_analysis::budget::{Budgets, DeviceBound, Scope, budgets};
use floodline_host::collect::Collector;
use floodline_host::plan::Plan;
use floodline_host::probe;
use floodline_host::root::HostRoot;
use floodline_record::record::Record;
use floodline_record::units::Bytes;
use floodline_record::window::Window;

/// The budgets of a captured tree, read as the program reads it.
fn of(name: &str) -> Budgets {
    let root = HostRoot::at(&floodline_captured::tree(name)).expect("the tree is there");
    let facts = probe(&root).facts;
    let plan = Plan::everything(&facts);
    let mut records = vec![Record::Facts(Box::new(facts))];
    Collector::new(&root, plan).collect(&mut records);
    budgets(&Window::from_records(&records))
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

/// What `wb_stats` says of a captured tree: inode number of the cgroup, share of the threshold in bytes.
fn printed(name: &str, bdi: &str) -> Vec<(u64, u64)> {
    let path = floodline_captured::tree(name).join("sys/kernel/debug/bdi").join(bdi).join("wb_stats");
    let text = std::fs::read_to_string(path).expect("the file is there");
    let value = |line: &str| line.split_whitespace().nth(1).and_then(|word| word.parse::<u64>().ok());
    let of = |key: &str| text.lines().filter(|line| line.starts_with(key)).filter_map(value).collect::<Vec<_>>();
    of("WbCgIno:").into_iter().zip(of("WbDirtyThresh:").into_iter().map(|kib| kib * 1024)).collect()
}

/// Each line of wb_stats is the share of the cgroup that had its inode number when the tree was copied.
#[test]
fn shares_are_those_that_the_kernel_printed_for_the_cgroup() {
    for name in ["6.12", "6.12-bytes", "6.12-strict", "6.12.43", "7.2", "7.2-bytes"] {
        let budgets = of(name);
        let inos = std::fs::read_to_string(floodline_captured::tree(name).join("cgroup-inodes.tsv"))
            .expect("the file is there");
        let path_of = |ino: u64| {
            let line = inos.lines().find(|line| line.ends_with(&format!("\t{ino}")));
            line.and_then(|line| line.split('\t').next()).expect("a known cgroup").to_owned()
        };
        let mut expect = Vec::new();
        for bdi in ["254:0", "254:16", "7:0"] {
            let of_cgroups = printed(name, bdi).into_iter().filter(|(ino, _)| *ino != 1);
            expect.extend(of_cgroups.map(|(ino, thresh)| (path_of(ino), bdi.to_owned(), Bytes(thresh))));
        }
        let shares = budgets.cgroups.iter().flat_map(|cgroup| cgroup.wbs.iter().map(move |wb| (cgroup, wb)));
        let mut found: Vec<_> = shares
            .map(|(cgroup, wb)| {
                let thresh = wb.thresh.and_then(|thresh| thresh.exact()).expect("printed, so exact");
                (cgroup.path.to_string(), wb.bdi.to_string(), thresh)
            })
            .collect();
        found.sort();
        expect.sort();
        assert_eq!(found, expect, "{name}");
        assert!(budgets.dying.is_empty() && budgets.shares_unread.is_none(), "{name}");
    }
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
