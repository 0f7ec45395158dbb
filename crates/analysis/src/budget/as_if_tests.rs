// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of budgets under other conditions.

use super::as_if::{AsIf, AsIfReport, as_if};
use floodline_record::id::Hierarchy;
use floodline_record::units::{Bytes, Limit, Pages};
use floodline_testkit::Fixture;

const MIB: u64 = 1 << 20;

fn host(hierarchy: Hierarchy) -> Fixture {
    Fixture::healthy()
        .settings((20, 0, 10, 0))
        .hierarchy(hierarchy)
        .cgroup("/app", |_, row| {
            row.memory_current = Some(Bytes(250 * MIB));
            row.inactive_file = Some(Bytes(100 * MIB));
            row.active_file = Some(Bytes(0));
            row.file_dirty = Some(Bytes(60 * MIB));
            row.file_writeback = Some(Bytes(0));
        })
        .limits("/app", move |_, row| {
            row.memory_max = Some(Limit(256 * MIB));
            row.memory_high = (hierarchy == Hierarchy::V2).then_some(Limit::MAX);
        })
}

fn report(fixture: &Fixture, conditions: &str) -> AsIfReport {
    as_if(&fixture.window(), &conditions.parse::<AsIf>().unwrap(), true).unwrap()
}

#[test]
fn a_move_to_version_2_gives_the_limits_that_a_host_of_version_2_has() {
    let moved = report(&host(Hierarchy::V1Memory), "cgroup=v2");
    let is = report(&host(Hierarchy::V2), "vm.dirty_ratio=20");
    assert_eq!(moved.rows[1].now_thresh_bytes, None);
    assert_eq!(moved.rows[1].then_thresh_bytes, is.rows[1].now_thresh_bytes);
    assert_eq!(moved.rows[1].verdict, "over");
    assert!(moved.headline.contains("The writers there will stop"), "{}", moved.headline);
    assert_eq!(moved.then.scope, "per_cgroup");
}

#[test]
fn a_heap_that_ends_before_the_last_sample_counts_in_a_first_limit() {
    let limit = |hierarchy, until: f64, conditions| {
        let fixture = host(hierarchy).seconds(30).cgroup("/app", move |t, row| {
            let anon = if t < until { 140 * MIB } else { 0 };
            (row.memory_current, row.anon) = (Some(Bytes(100 * MIB + anon)), Some(Bytes(anon)));
        });
        report(&fixture, conditions).rows[1].then_thresh_bytes.unwrap()
    };
    let stays = limit(Hierarchy::V1Memory, 99.0, "cgroup=v2");
    assert_eq!(limit(Hierarchy::V1Memory, 29.0, "cgroup=v2"), stays);
    assert!(limit(Hierarchy::V1Memory, 0.0, "cgroup=v2") > stays + 20 * MIB);
    // A cgroup that has its limit is compared with itself.
    assert!(limit(Hierarchy::V2, 29.0, "cgroup=v2") > stays + 20 * MIB);
}

#[test]
fn memory_that_only_one_count_has_stays_when_memory_shrinks() {
    let machine = |pages: u64, bytes: u64| {
        host(Hierarchy::V1Memory).facts(|facts| facts.mem_total = Some(Bytes(24 << 30))).host(move |_, row| {
            row.mem_total = Some(Bytes(24 << 30));
            (row.nr_free_pages, row.mem_free) = (Some(Pages(pages)), Some(Bytes(bytes)));
            (row.nr_dirty_threshold, row.nr_dirty_background_threshold) = (None, None);
        })
    };
    let then = |pages, bytes| report(&machine(pages, bytes), "memory=16G").rows[0].then_thresh_bytes;
    assert_eq!(then(200_000, 22 << 30), then((22 << 30) / 4096, 22 << 30));
}

#[test]
fn conditions_that_hold_already_change_nothing() {
    let same = report(&host(Hierarchy::V2), "cgroup=v2,vm.dirty_ratio=20,vm.dirty_background_ratio=10");
    for row in &same.rows {
        assert_eq!(row.then_thresh_bytes, row.now_thresh_bytes, "{row:?}");
    }
    assert_eq!(same.headline, "Nothing changes: each condition is in force on this host already.");
    let limit = |value: &str| report(&host(Hierarchy::V2), &format!("cgroup/app/memory.max={value}")).headline;
    assert_eq!(limit("256M"), same.headline);
    assert_ne!(limit("255M"), same.headline);
}

#[test]
fn settings_scale_the_limits_and_a_move_back_removes_them() {
    let half = report(&host(Hierarchy::V2), "vm.dirty_ratio=10,vm.dirty_background_ratio=5");
    let (now, then) = (half.rows[1].now_thresh_bytes.unwrap(), half.rows[1].then_thresh_bytes.unwrap());
    assert!(half.headline.contains("the machine's limit changes from "), "{}", half.headline);
    // The kernel rounds a ratio to 1/4096.
    assert!(then.abs_diff(now / 2) <= now / 400, "{then} {now}");
    let back = report(&host(Hierarchy::V2), "cgroup=v1");
    assert_eq!(back.rows[1].then_thresh_bytes, None);
    assert!(back.headline.contains("5 cgroups lose their dirty limits"), "{}", back.headline);
    let wide = report(&host(Hierarchy::V2), "cgroup/app/memory.max=1G");
    assert!(wide.rows[1].then_thresh_bytes > wide.rows[1].now_thresh_bytes);
}

#[test]
fn a_limit_below_what_a_cgroup_holds_takes_its_page_cache() {
    let holds = |current: u64, file: u64| {
        let fixture = Fixture::healthy().settings((20, 0, 10, 0)).cgroup("/app", move |_, row| {
            row.memory_current = Some(Bytes(current * MIB));
            (row.inactive_file, row.active_file) = (Some(Bytes(file / 2 * MIB)), Some(Bytes(file / 2 * MIB)));
            (row.file_dirty, row.file_writeback) = (Some(Bytes(0)), Some(Bytes(0)));
        });
        let limits = |_, row: &mut floodline_record::sample::CgroupLimitsRow| {
            (row.memory_max, row.memory_high) = (Some(Limit(2048 * MIB)), Some(Limit::MAX));
        };
        fixture.limits("/app", limits)
    };
    let then = |current, file, limit: &str| {
        let conditions = format!("cgroup/app/{limit}");
        report(&holds(current, file), &conditions).rows[1].then_thresh_bytes.unwrap()
    };
    // 240 MiB of page cache do not fit into 128 MiB: a fifth of the limit may be dirty.
    for limit in ["memory.max=128M", "memory.high=128M"] {
        let thresh = then(240, 240, limit);
        assert!(thresh.abs_diff(128 * MIB / 5) < MIB, "{thresh}");
    }
    // 100 MiB of the limit are not page cache and stay.
    let thresh = then(340, 240, "memory.max=128M");
    assert!(thresh.abs_diff(28 * MIB / 5) < MIB, "{thresh}");
}

#[test]
fn each_setting_replaces_its_counterpart() {
    let machine = |conditions: &str| {
        let report = report(&host(Hierarchy::V2), conditions);
        let row = &report.rows[0];
        (row.then_bg_thresh_bytes.unwrap(), row.then_thresh_bytes.unwrap())
    };
    assert_eq!(machine("vm.dirty_bytes=64M,vm.dirty_background_bytes=16M"), (16 * MIB, 64 * MIB));
    // The background threshold falls to half of the other one.
    assert_eq!(machine("vm.dirty_bytes=64M"), (32 * MIB, 64 * MIB));
    let (bg, thresh) = machine("vm.dirty_ratio=40,vm.dirty_background_ratio=20");
    assert!(thresh.abs_diff(2 * bg) <= 8192 && bg > 16 * MIB, "{bg} {thresh}");
    // A ratio in force after one in bytes, and the other way round.
    let bytes = host(Hierarchy::V2).settings((0, 64 * MIB, 0, 16 * MIB));
    let row = &report(&bytes, "vm.dirty_ratio=40,vm.dirty_background_ratio=20").rows[0];
    assert_eq!((row.now_thresh_bytes, row.then_thresh_bytes), (Some(64 * MIB), Some(thresh)));
    assert_eq!(row.then_bg_thresh_bytes, Some(bg));
    let row = &report(&bytes, "vm.dirty_background_bytes=8M").rows[0];
    assert_eq!((row.then_bg_thresh_bytes, row.then_thresh_bytes), (Some(8 * MIB), Some(64 * MIB)));
}

#[test]
fn a_limit_of_a_cgroup_goes_to_its_own_file() {
    let then = |conditions: &str| report(&host(Hierarchy::V2), conditions).rows[1].then_thresh_bytes.unwrap();
    let now = report(&host(Hierarchy::V2), "cgroup=v2").rows[1].now_thresh_bytes.unwrap();
    // Both limits bound what the cgroup may have: the smaller one counts.
    assert_eq!(then("cgroup/app/memory.high=252M"), then("cgroup/app/memory.max=252M"));
    assert!(then("cgroup/app/memory.high=252M") < now);
    assert_eq!(then("cgroup/app/memory.high=1G"), now);
    assert!(then("cgroup/app/memory.max=1G") > now);
}

#[test]
fn a_screen_shows_ten_rows_and_counts_the_others() {
    let many = (0..15).fold(host(Hierarchy::V2), |host, n| host.cgroup(&format!("/many{n}"), |_, _| {}));
    let as_if = |all| as_if(&many.window(), &"vm.dirty_ratio=10".parse::<AsIf>().unwrap(), all).unwrap();
    let (whole, shown) = (as_if(true), as_if(false));
    assert_eq!((shown.rows.len(), whole.hidden), (10, 0));
    assert_eq!(shown.hidden as usize, whole.rows.len() - 10);
    assert!(whole.rows.len() > 15, "{}", whole.rows.len());
}

#[test]
fn a_kernel_without_limits_of_cgroups_is_named() {
    let old = report(&host(Hierarchy::V2), "kernel=4.1");
    assert_eq!(old.rows[1].then_thresh_bytes, None);
    assert!(old.notes.iter().any(|note| note.contains("4.2")), "{:?}", old.notes);
}

#[test]
fn conditions_that_cannot_hold_are_refused_with_what_to_type() {
    let check = |text: &str, expect: &str| {
        let error = match text.parse::<AsIf>() {
            Err(error) => error,
            Ok(conditions) => as_if(&host(Hierarchy::V2).window(), &conditions, true).unwrap_err(),
        };
        let told = format!("{error} | {}", error.hint);
        assert!(told.contains(expect), "{text}: {told}");
    };
    check("", "no condition is given | e.g. --as-if");
    check("cgroup", "expected KEY=VALUE");
    check("cgroup=v3", "expected v1 or v2");
    check("kernel=new", "expected a version such as 6.12");
    check("kernel=2.6.32", "or newer");
    check("vm.dirty_ratio=101", "0 to 100, which the kernel accepts");
    check("vm.dirty_bytes=1", "8192 to");
    check("vm.swappiness=1", "no budget depends on vm.swappiness");
    check("krenel=6.12", "did you mean kernel?");
    check("cgroup/ap/memory.max=1G", "did you mean /app?");
    check("cgroup/app/memory.low=1G", "unknown limit");
    check("cgroup=v2, cgroup=v1", "cgroup is given twice | name each condition once");
}

#[test]
fn the_peak_is_that_of_one_moment() {
    // 60 MiB are dirty at first. Then they are under writeback.
    let fixture = host(Hierarchy::V2).cgroup("/app", |seconds, row| {
        let (dirty, writeback) = if seconds < 5.0 { (60, 0) } else { (2, 58) };
        (row.file_dirty, row.file_writeback) = (Some(Bytes(dirty * MIB)), Some(Bytes(writeback * MIB)));
    });
    let conditions = "vm.dirty_ratio=10";
    assert_eq!(report(&fixture, conditions).rows[1].peak_bytes, Some(60 * MIB));
    // Where one of both was not read, it is not known.
    let unread = host(Hierarchy::V2).cgroup("/app", |_, row| row.file_writeback = None);
    assert_eq!(report(&unread, conditions).rows[1].peak_bytes, None);
}

#[test]
fn data_that_a_strict_device_holds_down_does_not_fit_for_certain() {
    use floodline_record::units::{Flag, Ppm};
    let told = |strict: u64| {
        let fixture = host(Hierarchy::V2)
            .cgroup("/app", |_, row| row.file_dirty = Some(Bytes(4 * MIB)))
            .cgroup_io("/app", "sda", |t, row| row.wbytes = Some(Bytes((t * 1e6) as u64)))
            .bdi("8:0", move |_, row| {
                (row.strict_limit, row.max_ratio) = (Some(Flag(strict)), Some(Ppm(10_000)));
            });
        let report = report(&fixture, "vm.dirty_ratio=10");
        let row = report.rows.iter().find(|row| row.cgroup.as_deref() == Some("/app")).unwrap().clone();
        (row, report.headline, report.notes.join(" "))
    };
    let (row, headline, notes) = told(1);
    assert_eq!((row.verdict, row.strict.len()), ("unknown", 1));
    // A hundredth of the limit.
    let share = row.strict[0].thresh_bytes_max.unwrap();
    assert!(share.abs_diff(row.then_thresh_bytes.unwrap() / 100) <= 4096, "{row:?}");
    assert!(!headline.contains(" fits ") && headline.contains("strict_limit"), "{headline}");
    assert!(notes.contains("sda has strict_limit"), "{notes}");
    let (row, headline, notes) = told(0);
    assert_eq!((row.verdict, row.strict.len()), ("fits", 0));
    assert!(headline.contains("fits below every new limit") && !notes.contains("strict_limit"), "{headline} {notes}");
}

#[test]
fn a_cgroup_is_named_as_ls_prints_it_or_as_the_output_does() {
    let scope = "/machine-qemu\\x2d1.scope";
    let of = |path: &str| {
        let limits = |_: f64, row: &mut floodline_record::sample::CgroupLimitsRow| row.memory_max = Some(Limit::MAX);
        let names = [scope, "/a=c,d", "/app,vm.dirty_ratio=10"];
        let host = names.into_iter().fold(host(Hierarchy::V2), |host, name| {
            host.cgroup(name, |_, row| row.memory_current = Some(Bytes(250 * MIB))).limits(name, limits)
        });
        let report = report(&host, &format!("vm.dirty_ratio=30,cgroup{path}/memory.max=251M,kernel=6.12.1"));
        let others = report.rows.iter().filter(|row| row.cgroup.is_some() && row.cgroup.as_deref() != Some("/app"));
        let changed = others.min_by_key(|row| row.then_thresh_bytes);
        (report.as_if, changed.and_then(|row| row.cgroup.clone()))
    };
    let (told, row) = of(scope);
    assert!(told.contains("memory.max=251 MiB of /machine-qemu\\x2d1.scope"), "{told}");
    assert_eq!(row.as_deref(), Some("/machine-qemu\\\\x2d1.scope"));
    let (told, row) = of("/machine-qemu\\\\x2d1.scope");
    assert_eq!(row.as_deref(), Some("/machine-qemu\\\\x2d1.scope"), "{told}");
    for name in ["/a=c,d", "/app,vm.dirty_ratio=10"] {
        let (told, row) = of(name);
        assert_eq!(row.as_deref(), Some(name), "{told}");
        assert!(told.contains(&format!("memory.max=251 MiB of {name}")), "{told}");
        assert!(told.starts_with("kernel 6.12.1, vm.dirty_ratio=30"), "{told}");
    }
}

#[test]
fn a_limit_that_stays_stops_no_writer() {
    // The most that was held is above a limit that the change leaves as it is.
    let report = report(&host(Hierarchy::V2), "vm.dirty_background_ratio=9");
    assert_eq!((report.rows[1].verdict, report.rows[1].cgroup.as_deref()), ("over", Some("/app")));
    let told = "1 cgroup has held more dirty data than the limit allows. The change does not make this limit smaller.";
    assert!(report.headline.ends_with(told), "{}", report.headline);
}

#[test]
fn cgroups_over_their_limits_are_counted_and_not_the_rows_shown() {
    let names: Vec<String> = (0..12).map(|n| format!("/app{n}")).collect();
    let host = names.iter().fold(host(Hierarchy::V1Memory), |host, name| {
        let host = host.cgroup(name, |_, row| {
            row.memory_current = Some(Bytes(250 * MIB));
            row.inactive_file = Some(Bytes(100 * MIB));
            row.active_file = Some(Bytes(0));
            row.file_dirty = Some(Bytes(60 * MIB));
            row.file_writeback = Some(Bytes(0));
        });
        host.limits(name, |_, row| row.memory_max = Some(Limit(256 * MIB)))
    });
    let report = as_if(&host.window(), &"cgroup=v2".parse::<AsIf>().unwrap(), false).unwrap();
    assert!(report.rows.len() < 13 && report.hidden > 0);
    let told = "13 cgroups have held more dirty data than the new limit allows. The writers there will stop.";
    assert!(report.headline.ends_with(told), "{}", report.headline);
}
