// SPDX-License-Identifier: MIT OR Apache-2.0
//! `floodline preflight`: a small fleet, files that cannot answer, accepted findings, tables, exit codes.

use crate::harness::{Run, floodline};
use floodline_record::id::Hierarchy;
use floodline_record::recording::{Encoder, Header};
use floodline_record::units::{Bytes, Limit};
use floodline_testkit::Fixture;
use std::path::{Path, PathBuf};

const MIB: u64 = 1 << 20;

/// A host of cgroup version 1 with one box of 256 MiB. The box holds `dirty_mib` MiB of unwritten data.
fn host(name: &str, dirty: u64) -> Fixture {
    let name = name.to_owned();
    Fixture::healthy()
        .settings((20, 0, 10, 0))
        .hierarchy(Hierarchy::V1Memory)
        .facts(move |facts| facts.hostname = name.as_str().into())
        .cgroup("/box", move |_, row| {
            row.memory_current = Some(Bytes(250 * MIB));
            row.inactive_file = Some(Bytes(100 * MIB));
            row.active_file = Some(Bytes(0));
            row.file_dirty = Some(Bytes(dirty * MIB));
            row.file_writeback = Some(Bytes(0));
        })
        .limits("/box", |_, row| row.memory_max = Some(Limit(256 * MIB)))
}

fn write(path: &Path, fixture: Fixture) {
    use floodline_record::record::Sink;
    let mut encoder = Encoder::new(Vec::new(), Header::new(None)).expect("a recording");
    for record in fixture.records() {
        encoder.record(&record).expect("a record");
    }
    std::fs::write(path, encoder.finish().expect("a whole recording")).expect("a file");
}

/// Two sick hosts, three well ones.
fn fleet() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("rack2")).expect("a folder");
    for (file, dirty) in [("a", 60), ("b", 1), ("c", 0), ("rack2/d", 90), ("rack2/e", 1)] {
        write(&folder.path().join(format!("{file}.flr")), host(file, dirty));
    }
    folder
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

fn json(run: &Run) -> serde_json::Value {
    serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run}"))
}

/// Arithmetic on a path, as JSON.
fn judged(path: &Path, more: &[&str]) -> (serde_json::Value, Run) {
    let args = ["preflight", text(path), "--cgroup", "v2", "--tier", "1", "--format", "json"];
    let run = floodline(&[&args[..], more].concat());
    (json(&run), run)
}

fn row<'a>(told: &'a serde_json::Value, file: &str) -> &'a serde_json::Value {
    let rows = told["rows"].as_array().expect("rows");
    let is_it = |row: &&serde_json::Value| row["file"].as_str().is_some_and(|name| name.ends_with(file));
    rows.iter().find(is_it).unwrap_or_else(|| panic!("no {file} in {told}"))
}

#[test]
fn a_fleet_is_grouped_by_cause_and_sufferers_fail_the_run_unless_accepted() {
    let fleet = fleet();
    let path = text(fleet.path());
    let run = floodline(&["preflight", path, "--cgroup", "v2", "--tier", "1", "--fail-on", "suffers"]);
    assert_eq!(run.code, 1, "{run}");
    assert!(run.stdout.starts_with("2 of 5 hosts suffer, all for one cause.\n"), "{run}");
    assert!(run.stdout.lines().count() <= 25 && run.stdout.contains("rack2/d: /box held 90.0 MiB"), "{run}");
    assert!(run.stdout.contains("--accept cgroup-dirty-limit@rack2/d"), "{run}");
    let one = ["--fail-on", "suffers", "--accept", "cgroup-dirty-limit@a"];
    assert_eq!(judged(fleet.path(), &one).1.code, 1);
    let (told, all) = judged(fleet.path(), &["--fail-on", "tight,not-known", "--accept", "cgroup-dirty-limit"]);
    assert_eq!((all.code, &told["accepted"], &told["suffers"]), (0, &2.into(), &0.into()), "{all}");
    let keys = fleet.path().join("keys");
    std::fs::write(&keys, "# known\ncgroup-dirty-limit@a # moved later\n\ncgroup-dirty-limit@rack2/d\n")
        .expect("a file");
    let (_, run) = judged(fleet.path(), &["--fail-on", "suffers", "--accept-file", text(&keys)]);
    assert_eq!(run.code, 0, "{run}");
    let typo = floodline(&["preflight", path, "--cgroup", "v2", "--accept", "cgroup-dirty-limits@a"]);
    assert!(typo.code == 2 && typo.stderr.contains("did you mean cgroup-dirty-limit?"), "{typo}");
}

#[test]
fn each_file_that_cannot_answer_is_a_row_with_a_cause_and_what_to_type() {
    let fleet = fleet();
    let at = |name: &str| fleet.path().join(name);
    let whole = std::fs::read(at("a.flr")).expect("a file");
    let make = |name: &str, bytes: &[u8]| std::fs::write(at(name), bytes).expect("a file");
    make("empty.flr", b"");
    make("foreign.flr", b"PK\x03\x04 this is something else, and longer than a header of a recording would be");
    make("cut.flr", &whole[..whole.len() - 40]);
    make("stub.flr", &whole[..40]);
    let mut damaged = whole.clone();
    damaged[8..30].fill(0xff);
    make("damaged.flr", &damaged);
    let mut newer = whole.clone();
    newer[4..12].reverse();
    make("newer.flr", &newer);
    make("copy.flr", &whole);
    make("notes.txt", b"not judged");
    write(&at("no-facts.flr"), host("x", 1).facts(|facts| *facts = Default::default()));
    std::fs::File::create(at("sparse.flr")).and_then(|file| file.set_len(1 << 30)).expect("a file");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        at("pipe.flr"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .expect("a pipe");
    std::os::unix::fs::symlink(at("nowhere"), at("link.flr")).expect("a link");
    let (told, run) = judged(fleet.path(), &["--fail-on", "not-known"]);
    assert_eq!(run.code, 1, "{run}");
    for (file, cause) in [
        ("empty.flr", "file-empty"),
        ("foreign.flr", "not-a-recording"),
        ("sparse.flr", "not-a-recording"),
        ("pipe.flr", "not-a-file"),
        ("link.flr", "file-unreadable"),
        ("no-facts.flr", "no-kernel-version"),
    ] {
        let row = row(&told, file);
        assert_eq!((row["verdict"].as_str(), row["cause"].as_str()), (Some("not_known"), Some(cause)), "{row}");
        assert!(row["hint"].as_str().is_some_and(|hint| !hint.is_empty()), "{row}");
    }
    for file in ["stub.flr", "damaged.flr", "newer.flr"] {
        assert_eq!(row(&told, file)["verdict"], "not_known", "{told}");
    }
    // A part is judged, and said to be one. The copy is the same host.
    assert!(row(&told, "cut.flr")["notes"][0].as_str().is_some_and(|note| note.starts_with("Judged by a part")));
    assert_eq!(told["superseded"], 2, "{told}");
    assert_eq!((&told["suffers"], &told["fine"]), (&2.into(), &3.into()), "{told}");
    assert!(run.stderr.contains("left out 1 file that does not end in .flr"), "{run}");
    // Two files cannot be read: the pipe and the link.
    assert_eq!((&told["files"], &told["unread"], &told["cut"]), (&16.into(), &2.into(), &1.into()), "{told}");
    let run = floodline(&["preflight", text(fleet.path()), "--cgroup", "v2", "--tier", "1"]);
    let shown = run.stdout.replace('\n', " ");
    let parts = "Of 16 files, 8 were judged, 6 cannot be used and 2 could not be read. 1 of them is cut: its end is missing, and the rest was judged.";
    assert!(shown.contains(parts), "{run}");
}

#[test]
fn a_packed_recording_and_a_missing_file_get_a_hint_of_their_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut tar = vec![0; 512];
    tar[257..262].copy_from_slice(b"ustar");
    std::fs::write(folder.path().join("z.flr"), b"\x1f\x8b\x08\0 and so on").expect("a file");
    std::fs::write(folder.path().join("t.flr"), &tar).expect("a file");
    std::os::unix::fs::symlink(folder.path().join("nowhere"), folder.path().join("n.flr")).expect("a link");
    let (told, _) = judged(folder.path(), &[]);
    for (file, finding, hint) in [
        ("z.flr", "It is compressed by gzip, not a recording.", "gunzip"),
        ("t.flr", "It is a tar archive, not a recording.", "tar -xf"),
        ("n.flr", "The file does not exist.", "correct the path"),
    ] {
        let row = row(&told, file);
        assert_eq!(row["finding"], finding, "{row}");
        assert!(row["hint"].as_str().is_some_and(|told| told.contains(hint)), "{row}");
    }
}

#[test]
fn a_gate_does_not_pass_without_any_answer() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("a.flr"), b"").expect("a file");
    assert_eq!(judged(folder.path(), &[]).1.code, 0);
    let (_, run) = judged(folder.path(), &["--fail-on", "suffers"]);
    assert!(run.code == 3 && run.stderr.contains("no host has an answer"), "{run}");
    assert_eq!(judged(folder.path(), &["--fail-on", "suffers", "--accept", "file-empty"]).1.code, 0);
    write(&folder.path().join("c.flr"), host("c", 0));
    assert_eq!(judged(folder.path(), &["--fail-on", "suffers"]).1.code, 0);
}

#[test]
fn a_result_overwrites_no_recording_and_no_other_result() {
    let fleet = fleet();
    let recording = fleet.path().join("a.flr");
    let before = std::fs::read(&recording).expect("a file");
    let refused = |more: &[&str], expect: &str| {
        let run = floodline(&[&["preflight", text(fleet.path()), "--cgroup", "v2", "--tier", "1"], more].concat());
        assert!(run.code == 2 && run.stderr.contains(expect) && run.stdout.is_empty(), "{run}");
    };
    refused(&["--report", text(&recording), "--force"], "is both read and written");
    let linked = fleet.path().join("a.csv");
    std::fs::hard_link(&recording, &linked).expect("a link");
    refused(&["-o", text(&linked), "--force"], "is both read and written");
    assert_eq!(std::fs::read(&recording).expect("a file"), before);
    let table = fleet.path().join("x.csv");
    refused(&["-o", text(&table), "--report", text(&fleet.path().join("rack2/../x.csv"))], "-o and --report are both");
    std::fs::write(&table, b"").expect("a file");
    refused(&["-o", text(&table), "--report", text(&table), "--force"], "-o and --report are both");
}

#[test]
fn two_files_of_one_name_are_two_names() {
    let folder = tempfile::tempdir().expect("a folder");
    for (rack, dirty) in [("r1", 60), ("r2", 90)] {
        std::fs::create_dir(folder.path().join(rack)).expect("a folder");
        write(&folder.path().join(rack).join("web.flr"), host("localhost", dirty));
    }
    let (told, run) = judged(folder.path(), &["--accept", "cgroup-dirty-limit@r1/web"]);
    let hosts = ["r1/web.flr", "r2/web.flr"].map(|file| row(&told, file)["host"].as_str().expect("a name").to_owned());
    assert_eq!(hosts, ["r1/web", "r2/web"], "{run}");
    assert_eq!((&told["accepted"], &told["suffers"]), (&1.into(), &1.into()), "{told}");
}

#[test]
fn names_of_hosts_command_no_terminal() {
    let folder = tempfile::tempdir().expect("a folder");
    write(&folder.path().join("x\u{1b}[2Jy.flr"), host("evil\u{1b}]0;t\u{7}\u{202e}", 60));
    std::fs::write(folder.path().join("z\u{1b}[2J.flr"), b"").expect("a file");
    for format in ["text", "json"] {
        let run = floodline(&[
            "preflight",
            text(folder.path()),
            "--cgroup",
            "v2",
            "--details",
            "--format",
            format,
            "--tier",
            "1",
        ]);
        let is_bad = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(run.code == 0 && !run.stdout.contains(is_bad) && run.stdout.contains("x1b"), "{run}");
    }
}

#[test]
fn paths_come_from_folders_patterns_and_lists() {
    use std::io::Write;
    let fleet = fleet();
    let count = |args: &[&str]| {
        let run = floodline(&[&["preflight", "--cgroup", "v2", "--tier", "1", "--format", "json"], args].concat());
        json(&run)["files"].as_u64().expect("a count")
    };
    let pattern = fleet.path().join("*.flr");
    assert_eq!(count(&[text(&pattern)]), 3);
    assert_eq!(count(&[text(&pattern), text(fleet.path())]), 5, "each file once");
    let mut child = crate::harness::command(&["preflight", "-", "--cgroup", "v2", "--tier", "1", "--format", "json"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("it starts");
    let (there, gone) = (fleet.path().join("a.flr"), fleet.path().join("gone.flr"));
    let list = format!("# rack 1\n{}\n\n{}\n", there.display(), gone.display());
    child.stdin.take().expect("a pipe").write_all(list.as_bytes()).expect("it is read");
    let told: serde_json::Value =
        serde_json::from_slice(&child.wait_with_output().expect("it ends").stdout).expect("valid JSON");
    assert_eq!((&told["files"], &told["not_known"]), (&2.into(), &1.into()), "{told}");
    let empty = tempfile::tempdir().expect("a folder");
    let nothing = floodline(&["preflight", text(empty.path()), "--cgroup", "v2"]);
    assert!(nothing.code == 2 && nothing.stderr.contains("ssh HOST floodline record"), "{nothing}");
    let none = floodline(&["preflight", text(&empty.path().join("*.flr")), "--cgroup", "v2"]);
    assert!(none.code == 2 && none.stderr.contains("no file matches"), "{none}");
    let unchanged = floodline(&["preflight", text(fleet.path())]);
    assert!(unchanged.code == 2 && unchanged.stderr.contains("--cgroup v2"), "{unchanged}");
}

#[test]
fn tables_hold_one_row_per_file_and_are_not_overwritten() {
    let fleet = fleet();
    let out = tempfile::tempdir().expect("a folder");
    let at = |name: &str| -> PathBuf { out.path().join(name) };
    for name in ["hosts.csv", "hosts.json", "hosts.parquet"] {
        let (_, run) = judged(fleet.path(), &["-o", text(&at(name))]);
        assert_eq!(run.code, 0, "{run}");
    }
    let csv = std::fs::read_to_string(at("hosts.csv")).expect("a file");
    assert!(csv.starts_with("host,file,verdict,cause,key,") && csv.lines().count() == 6, "{csv}");
    let told: serde_json::Value =
        serde_json::from_slice(&std::fs::read(at("hosts.json")).expect("a file")).expect("valid JSON");
    assert_eq!(told["schema"], "floodline.preflight/1");
    let parquet = std::fs::read(at("hosts.parquet")).expect("a file");
    assert!(parquet.starts_with(b"PAR1") && parquet.ends_with(b"PAR1"));
    let (_, run) = judged(fleet.path(), &["--report", text(&at("page.html"))]);
    let page = std::fs::read_to_string(at("page.html")).expect("a file");
    assert!(run.code == 0 && page.contains("2 of 5 hosts suffer") && page.contains("rack2/d"), "{run}");
    let again = floodline(&["preflight", text(fleet.path()), "--cgroup", "v2", "-o", text(&at("hosts.csv"))]);
    assert!(again.code == 2 && again.stderr.contains("--force"), "{again}");
    let other = floodline(&["preflight", text(fleet.path()), "--cgroup", "v2", "-o", text(&at("hosts.xls"))]);
    assert!(other.code == 2 && other.stderr.contains(".parquet, .csv or .json"), "{other}");
    let nowhere = floodline(&["preflight", text(fleet.path()), "--cgroup", "v2", "-o", text(&at("gone/hosts.csv"))]);
    assert!(nowhere.code == 2 && nowhere.stdout.is_empty() && nowhere.stderr.contains("mkdir -p"), "{nowhere}");
}

#[test]
fn a_change_that_means_nothing_or_two_things_is_told() {
    let fleet = fleet();
    let (told, run) = judged(fleet.path(), &["--set", "cgroup/gone/memory.max=1G"]);
    let row = row(&told, "a.flr");
    assert!(run.code == 0 && row["finding"].as_str().is_some_and(|text| !text.contains("means nothing")), "{row}");
    let only = floodline(&["preflight", text(fleet.path()), "--set", "cgroup/gone/memory.max=1G", "--details"]);
    assert!(only.code == 0 && only.stdout.contains("The change means nothing on this host"), "{only}");
    let both =
        floodline(&["preflight", text(fleet.path()), "--set", "vm.dirty_ratio=10", "--set", "vm.dirty_bytes=100M"]);
    assert!(both.code == 2 && both.stderr.contains("exclude each other") && both.stderr.contains("hint:"), "{both}");
}

#[test]
fn a_host_near_a_limit_is_simulated_and_one_where_nothing_changes_is_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = super::predict::recorded(folder.path(), "starved-budget", "remedy-short");
    let asked = |more: &[&str]| {
        let run = floodline(&[&["preflight", text(&file), "--format", "json"], more].concat());
        assert_eq!(run.code, 0, "{run}");
        json(&run)["rows"][0].clone()
    };
    let small = asked(&["--set", "vm.dirty_bytes=104857600", "--set", "vm.dirty_background_bytes=52428800"]);
    assert_eq!((&small["tier"], &small["verdict"]), (&2.into(), &"suffers".into()), "{small}");
    let of = |key: &str| small[key].as_f64().unwrap_or_else(|| panic!("no {key} in {small}"));
    assert!(of("stall_then_seconds") > of("stall_now_seconds"), "{small}");
    // How long tasks wait depends on the disk, whose limit the recording does not show.
    assert!(of("written_then_bytes") > of("written_now_bytes") && small["confidence"] == "medium", "{small}");
    assert!(of("severity") >= 1.0 && of("back_test_error") < 0.15, "{small}");
    let same = asked(&["--set", "vm.dirty_ratio=10", "--cgroup", "v2"]);
    assert_eq!((&same["tier"], &same["cause"]), (&1.into(), &"no-change".into()), "{same}");
}

#[test]
fn a_mistyped_path_or_kernel_is_no_host_without_an_answer() {
    let folder = tempfile::tempdir().expect("a folder");
    let near = folder.path().join("web1.flr");
    std::fs::write(&near, "").expect("a file");
    let mistyped = folder.path().join("web11.flr");
    let run = floodline(&["preflight", mistyped.to_str().expect("a path of text"), "--cgroup", "v2"]);
    assert!(run.code == 2 && run.stderr.contains("did you mean") && run.stderr.contains("web1.flr"), "{run}");
    let near = near.to_str().expect("a path of text");
    let run = floodline(&["preflight", near, "--kernel", "6.99"]);
    assert!(run.code == 2 && run.stderr.contains("floodline kernels"), "{run}");
}
