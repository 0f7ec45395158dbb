// SPDX-License-Identifier: MIT OR Apache-2.0
//! The flight recorder of `floodline serve`, as an operator meets it: marks, incidents, hooks, kill -9, full disks.

use crate::harness::floodline;
use crate::serve::Server;
use floodline_record::record::Record;
use floodline_record::recording::Decoder;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// Bytes of every file in a folder.
fn on_disk(folder: &Path) -> u64 {
    fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").metadata().map_or(0, |file| file.len()))
        .sum()
}

/// Samples of every recording whose name begins so; each must open.
fn samples(folder: &Path, prefix: &str) -> usize {
    let mut samples = 0;
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let bytes = fs::read(&path).unwrap_or_default();
        if name.starts_with(prefix) && name.ends_with(".flr") && !bytes.is_empty() {
            match Decoder::new(bytes.as_slice()) {
                Ok(decoder) => samples += decoder.filter(|record| matches!(record, Ok(Record::Sample(_)))).count(),
                Err(error) => assert!(bytes.len() < 8192, "{name}: {error}"),
            }
        }
    }
    samples
}

#[test]
fn a_mark_keeps_the_time_around_it_with_a_report_and_a_hook() {
    let folder = tempfile::tempdir().expect("a folder");
    let ring = folder.path().join("ring");
    let (ring_arg, told) = (ring.to_str().expect("UTF-8"), folder.path().join("told.json"));
    let server = Server::start(&["--ring", ring_arg, "--on-incident", "tee", told.to_str().expect("UTF-8")]);
    server.wait_for("floodline_ring_bytes");
    let run = floodline(&["mark", "--ring", ring_arg, "checkout is\u{1b}[2J slow"]);
    assert_eq!(run.code, 0, "{run}");
    assert!(run.stdout.starts_with("Marked. The minute before now is kept;"), "{run}");
    let path = run.stdout.split_whitespace().last().unwrap_or_default().to_owned();
    assert!(Path::new(&path).exists(), "the time before the trigger is on the disk when mark returns");
    let list = floodline(&["incidents", "--ring", ring_arg]);
    assert!(list.code == 0 && list.stdout.contains("checkout is[2J slow"), "{list}");
    let again = floodline(&["mark", "--ring", ring_arg, "and payment too"]);
    assert_eq!(again.code, 0, "{again}");
    let page = server.wait_for("floodline_incidents_total{outcome=\"kept\"} 1");
    assert!(page.contains("floodline_ring_limit_bytes 52428800"), "{page}");
    assert_eq!(server.end(), 0, "it ends the incident before it ends");
    assert!(samples(&ring, "incident-") > 1);
    let list = floodline(&["incidents", "--ring", ring_arg]);
    assert!(list.code == 0 && list.stdout.contains("  checkout is[2J slow Marked: and payment too\n"), "{list}");
    assert!(list.stdout.contains("Read the newest: floodline doctor "), "{list}");
    let json = floodline(&["incidents", "--ring", ring_arg, "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json.stdout).expect("JSON");
    assert_eq!((&json["schema"], &json["incidents"][0]["trigger"]), (&"floodline.incidents/1".into(), &"mark".into()));
    assert_eq!(json["incidents"][0]["complete"], true);
    let doctor = floodline(&["doctor", "last", "--ring", ring_arg]);
    let same = floodline(&["doctor", &path]);
    assert_eq!((doctor.code, &doctor.stdout), (same.code, &same.stdout));
    assert!(doctor.stderr.contains(&format!("the newest incident is {path}")), "{doctor}");
    let begun = Instant::now();
    let hook = loop {
        if let Some(hook) =
            fs::read_to_string(&told).ok().and_then(|text| serde_json::from_str::<serde_json::Value>(&text).ok())
        {
            break hook;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "the command was run");
        std::thread::sleep(Duration::from_millis(10));
    };
    assert_eq!((&hook["trigger"], &hook["report"]["schema"]), (&"mark".into(), &"floodline.doctor/1".into()));
    assert_eq!(floodline(&["mark", "--ring", ring_arg]).code, 3, "nothing runs");
}

/// `FLOODLINE_KILLS` is the number of kills; `make kills` runs 1,000.
#[test]
fn after_each_kill_9_the_ring_reopens_and_was_never_too_large() {
    let folder = tempfile::tempdir().expect("a folder");
    let ring = folder.path().to_str().expect("UTF-8");
    let kills = std::env::var("FLOODLINE_KILLS").ok().and_then(|count| count.parse().ok()).unwrap_or(20);
    let mut before = 0;
    for run in 0..kills {
        let mut server = Server::start_every("2ms", &["--ring", ring, "--ring-size", "1M"]);
        std::thread::sleep(Duration::from_micros(run * 37_013 % 211_007));
        server.child.kill().expect("it runs");
        server.child.wait().expect("it ends");
        assert!(on_disk(folder.path()) <= 1 << 20, "run {run}");
        before = before.max(samples(folder.path(), "ring-"));
    }
    assert!(before > 20, "{before}");
    let server = Server::start(&["--ring", ring, "--ring-size", "1M"]);
    server.wait_for("floodline_ring_bytes");
    assert_eq!(server.end(), 0);
    assert!(on_disk(folder.path()) <= 1 << 20);
}

#[test]
fn rings_that_cannot_be_used_are_errors_that_say_what_to_type() {
    let folder = tempfile::tempdir().expect("a folder");
    let ring = folder.path().to_str().expect("UTF-8");
    let check = |args: &[&str], code: i32, said: &str| {
        let run = floodline(&[&["serve", "--listen", "none"], args].concat());
        assert!(run.code == code && run.stderr.contains(said) && run.stderr.contains("hint: "), "{run}");
    };
    let server = Server::start(&["--ring", ring]);
    server.wait_for("floodline_ring_bytes");
    check(&["--ring", ring], 3, "another floodline serve is writing to the ring");
    assert_eq!(server.end(), 0);
    check(&["--ring", "/proc/nothing"], 3, "cannot make the ring");
    // What does not serve does not announce where.
    let run = floodline(&["serve", "--listen", "127.0.0.1:0", "--ring", "/proc/nothing"]);
    assert!(run.code == 3 && !run.stderr.contains("serving metrics"), "{run}");
    check(&["--ring", ring, "--ring-size", "5k"], 2, "ring too small");
    check(&[], 2, "nothing would be served and nothing kept");
    let empty = floodline(&["doctor", "last", "--ring", ring]);
    assert!(empty.code == 2 && empty.stderr.contains("no incidents in"), "{empty}");
    assert_eq!(floodline(&["incidents", "--ring", "/does/not/exist"]).code, 2);
}

#[test]
fn dashboard_and_alerts_are_printed_and_name_what_is_exported() {
    let server = Server::start(&[]);
    let page = server.wait_for("floodline_finding_active");
    let alerts = floodline(&["serve", "--print-alerts"]);
    let dashboard = floodline(&["serve", "--print-dashboard"]);
    assert_eq!((alerts.code, dashboard.code), (0, 0));
    serde_json::from_str::<serde_json::Value>(&dashboard.stdout).expect("JSON");
    for name in [
        "floodline_host_psi_io_some_seconds_total",
        "floodline_host_nr_dirty_threshold_bytes",
        "floodline_look_age_seconds",
    ] {
        assert!(page.contains(&format!("\n{name} ")) && alerts.stdout.contains(name), "{name}");
    }
    assert_eq!(server.end(), 0);
}
