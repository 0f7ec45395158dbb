// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pages of metrics made from hand-made recordings.

use super::groups::SERIES_MAX;
use super::*;
use floodline_analysis::diagnose::diagnose;
use floodline_record::facts::HostFacts;
use floodline_record::units::Bytes;
use floodline_testkit::Fixture;
use floodline_testkit::exposition::check;
use floodline_testkit::incidents::{INCIDENTS, dirty_cliff};
use floodline_testkit::sparse::sparse;

fn board(fixture: &Fixture) -> (Board, SampleTime) {
    let mut board = Board::new("1.2.3");
    let mut now = SampleTime::default();
    for record in fixture.records() {
        if let Record::Sample(sample) = &record {
            now = sample.time;
        }
        board.record(&record);
    }
    (board, now)
}

fn page(fixture: &Fixture) -> String {
    let (mut board, now) = board(fixture);
    board.judged(now.monotonic, &diagnose(&fixture.window(), None));
    board.render(now, Format::Text).0
}

fn value(page: &str, series: &str) -> Option<f64> {
    page.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok())
}

#[test]
fn every_page_is_valid_in_both_formats() {
    for incident in INCIDENTS {
        let fixture = (incident.make)();
        let (mut board, now) = board(&fixture);
        for is_judged in [false, true] {
            if is_judged {
                board.judged(now.monotonic, &diagnose(&fixture.window(), None));
            }
            for format in [Format::Text, Format::OpenMetrics] {
                let (page, series) = board.render(now, format);
                assert_eq!(check(&page, format == Format::OpenMetrics), Ok(series), "{}\n{page}", incident.name);
            }
        }
    }
}

#[test]
fn an_empty_board_is_a_valid_page_that_does_not_claim_a_look() {
    let (page, _) = Board::new("1.2.3").render(SampleTime::default(), Format::Text);
    assert!(check(&page, false).is_ok(), "{page}");
    assert!(!page.contains("floodline_look_age_seconds") && !page.contains("floodline_finding_active"), "{page}");
    assert_eq!(value(&page, "floodline_looks_total"), Some(0.0));
}

#[test]
fn every_rule_has_a_series_whether_it_found_something_or_not() {
    let page = page(&dirty_cliff());
    let active = |severity: &str| {
        value(&page, &format!("floodline_finding_active{{rule=\"dirty-cliff\",severity=\"{severity}\"}}"))
    };
    assert_eq!(["info", "warning", "critical"].map(active), [Some(0.0), Some(0.0), Some(1.0)]);
    for rule in RULES {
        let series = format!("floodline_finding_active{{rule=\"{}\",severity=\"warning\"}}", rule.name);
        assert!(value(&page, &series).is_some(), "{series}");
        assert!(page.contains(&format!("floodline_rule_not_checked{{rule=\"{}\",cause=", rule.name)), "{}", rule.name);
    }
    let blind = dirty_cliff().without(Source::Diskstats, Cause::PermissionDenied { need: "root".into() });
    let page = self::page(&blind);
    assert_eq!(value(&page, "floodline_source_up{source=\"/proc/diskstats\"}"), Some(0.0));
    assert_eq!(value(&page, "floodline_source_up{source=\"/proc/vmstat\"}"), Some(1.0));
    assert!(page.contains("cause=\"permission_denied\"} 1"), "{page}");
}

#[test]
fn containers_are_named_and_their_bytes_add_up_to_the_machine() {
    let id = "ab".repeat(32);
    let pod = format!("/kubepods.slice/kubepods-pod{}.slice", "1b1f7c41_8d23_4f3c_9f43_5b8ab7b0a1a2");
    let container = format!("{pod}/cri-containerd-{id}.scope");
    let dirty = |bytes: u64| move |_: f64, row: &mut CgroupRow| row.file_dirty = Some(Bytes(bytes));
    let fixture = Fixture::healthy()
        .facts(|facts: &mut HostFacts| {
            facts.container_names.insert(id.as_str().into(), "shop/cart-0/app".into());
        })
        .cgroup("/", dirty(1000))
        .cgroup("/system.slice", dirty(300))
        .cgroup("/system.slice/nginx.service", dirty(290))
        .cgroup("/kubepods.slice", dirty(600))
        .cgroup(&pod, dirty(600))
        .cgroup(&container, dirty(550))
        .cgroup(&format!("{container}/inner"), dirty(50));
    let page = page(&fixture);
    let dirty = |labels: &str| value(&page, &format!("floodline_cgroup_file_dirty_bytes{{{labels}}}"));
    assert_eq!(dirty("namespace=\"shop\",pod=\"cart-0\",container=\"app\""), Some(550.0), "{page}");
    assert_eq!(dirty("cgroup=\"nginx.service\""), Some(290.0));
    assert_eq!(dirty("cgroup=\"system.slice\""), Some(10.0));
    let all = page.lines().filter(|line| line.starts_with("floodline_cgroup_file_dirty_bytes{"));
    let sum: f64 = all.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum();
    assert_eq!(sum, 1000.0);
}

#[test]
fn a_series_does_not_come_and_go_with_the_samples_that_read_it() {
    let fixture = Fixture::healthy()
        .cgroup("/system.slice/nginx.service", |_, row| row.file_dirty = Some(Bytes(300)))
        .every(1.0)
        .seconds(3);
    let mut board = Board::new("1.2.3");
    for record in sparse(fixture.records(), 2) {
        let Record::Sample(sample) = &record else {
            board.record(&record);
            continue;
        };
        let now = sample.time;
        board.record(&record);
        let page = board.render(now, Format::Text).0;
        assert_eq!(value(&page, "floodline_cgroup_file_dirty_bytes{cgroup=\"nginx.service\"}"), Some(300.0), "{page}");
    }
}

#[test]
fn series_are_capped_and_what_is_left_out_is_one_series() {
    let mut fixture = Fixture::healthy().cgroup("/", |_, row| row.file_dirty = Some(Bytes(500 * 1024)));
    for number in 0..500 {
        let path = format!("/system.slice/job{number:03}.service");
        fixture = fixture.cgroup(&path, move |_, row| {
            row.file_dirty = Some(Bytes(if number % 100 == 99 { 4096 } else { 1024 - 31 }));
            row.file_writeback = Some(Bytes(0));
            row.memory_current = Some(Bytes(1 << 20));
        });
    }
    let (board, now) = board(&fixture.seconds(2));
    let (page, series) = board.render(now, Format::Text);
    assert!(series <= 1500, "{series}");
    assert!(page.len() <= 120 << 10, "{} bytes", page.len());
    assert_eq!(check(&page, false), Ok(series));
    let lines: Vec<&str> = page.lines().filter(|line| line.starts_with("floodline_cgroup_file_dirty_bytes{")).collect();
    assert_eq!(lines.len(), SERIES_MAX + 1);
    assert_eq!(lines.iter().filter(|line| line.ends_with(" 4096")).count(), 5, "those with the most come first");
    assert!(value(&page, "floodline_cgroup_file_dirty_bytes{cgroup=\"other\"}") > Some(0.0));
    assert!(!page.contains("/system.slice"), "paths are not labels");
}

#[test]
fn hostile_names_make_no_series_of_their_own() {
    let fixture = Fixture::healthy().cgroup("/a\"b\\c\nd\x1b{}", |_, row| row.file_dirty = Some(Bytes(1)));
    let page = page(&fixture);
    assert!(check(&page, false).is_ok(), "{page}");
    assert!(page.chars().all(|c| c == '\n' || !c.is_control()));
}

#[test]
fn a_machine_that_was_suspended_took_no_sample_late() {
    let night = Nanos(8 * 3600 * Nanos::SECOND.0);
    let check = |suspended: Nanos, expect: f64| {
        let mut board = Board::new("1.2.3");
        let mut now = SampleTime::default();
        for record in Fixture::healthy().seconds(1).records() {
            let record = match record {
                Record::Sample(mut sample) if board.has_sample() => {
                    sample.time.monotonic.0 += night.0;
                    board.suspended(suspended);
                    Record::Sample(sample)
                }
                other => other,
            };
            if let Record::Sample(sample) = &record {
                now = sample.time;
            }
            board.record(&record);
        }
        let (page, _) = board.render(now, Format::Text);
        assert_eq!(value(&page, "floodline_look_gap_max_seconds"), Some(expect), "{page}");
    };
    check(night, 1.0);
    check(Nanos(0), 28_801.0);
}
