// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files that commands write: never a device, never two programs to one file, and for their owner alone.

use crate::harness::{captured, command, floodline, outcome, recording};
use floodline_testkit::Fixture;
use rustix::fs::{CWD, Mode};
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).expect("a file").permissions().mode() & 0o777
}

#[test]
fn an_invalid_key_leaves_no_output_behind() {
    let folder = tempfile::tempdir().expect("a folder");
    let (output, key) = (folder.path().join("shared.flr"), folder.path().join("redact.key"));
    let file = recording(&Fixture::healthy().one_look());
    let of = format!("@{}", text(&key));
    let args = ["export", file.as_str(), "--format", "flr", "--redact", &of, "-o", text(&output)];
    let run = floodline(&args);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stderr.contains("cannot read the key of --redact"), "{run}");
    assert!(!output.exists());
    std::fs::write(&key, "0123456789abcdef0123456789abcdef").expect("a key");
    let run = floodline(&args);
    assert_eq!(run.code, 0, "{run}");
}

#[test]
fn devices_and_sockets_are_refused_with_force_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let (link, socket) = (folder.path().join("link"), folder.path().join("socket"));
    symlink("/dev/urandom", &link).expect("a link");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).expect("a socket");
    let (tree, file) = (captured("6.12"), recording(&Fixture::healthy().one_look()));
    let cases =
        [("/dev/urandom", "a character device"), (text(&link), "a character device"), (text(&socket), "a socket")];
    for (path, kind) in cases {
        for args in [
            &["record", "--root", &tree, "--for", "0s", "-o", path][..],
            &["record", "--root", &tree, "--for", "0s", "--force", "-o", path],
            &["export", file.as_str(), "--format", "jsonl", "--force", "-o", path],
            &["doctor", "--root", &tree, "--save", path],
        ] {
            let run = floodline(args);
            assert_eq!(run.code, 2, "{args:?}: {run}");
            assert!(run.stderr.contains(&format!("{path} is {kind}, not a file")), "{args:?}: {run}");
            assert!(run.stderr.contains("hint: name a regular file"), "{args:?}: {run}");
        }
    }
}

#[test]
fn force_does_not_write_through_a_link() {
    let folder = tempfile::tempdir().expect("a folder");
    let (target, link) = (folder.path().join("passwords"), folder.path().join("out"));
    std::fs::write(&target, "kept").expect("a file");
    std::fs::set_permissions(&target, std::fs::Permissions::from_mode(0o640)).expect("a mode");
    symlink(&target, &link).expect("a link");
    let (tree, file) = (captured("6.12"), recording(&Fixture::healthy().one_look()));
    for args in [
        &["record", "--root", &tree, "--for", "0s", "--force", "-o", text(&link)][..],
        &["export", file.as_str(), "--format", "jsonl", "--force", "-o", text(&link)],
    ] {
        let run = floodline(args);
        assert_eq!(run.code, 2, "{args:?}: {run}");
        assert!(run.stderr.contains("is a link; --force overwrites files only"), "{args:?}: {run}");
        assert!(run.stderr.contains("hint: name the file that it leads to"), "{args:?}: {run}");
    }
    assert_eq!((std::fs::read_to_string(&target).expect("a file").as_str(), mode(&target)), ("kept", 0o640));
}

#[test]
fn pipes_and_the_null_device_hold_nothing_that_could_be_lost() {
    let tree = captured("6.12");
    let run = floodline(&["record", "--root", &tree, "--for", "0s", "-o", "/dev/null"]);
    assert_eq!(run.code, 0, "{run}");
    assert!(run.stderr.contains("recorded 1 sample to /dev/null"), "{run}");

    let folder = tempfile::tempdir().expect("a folder");
    let pipe = folder.path().join("pipe");
    rustix::fs::mkfifoat(CWD, &pipe, Mode::RUSR | Mode::WUSR).expect("a pipe");
    let child = command(&["record", "--root", &tree, "--for", "0s", "-o", text(&pipe)])
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut bytes = Vec::new();
    std::fs::File::open(&pipe).and_then(|mut pipe| pipe.read_to_end(&mut bytes)).expect("a recording");
    let run = outcome(child.wait_with_output().expect("it ends"));
    assert_eq!(run.code, 0, "{run}");
    assert!(floodline_record::recording::Decoder::new(&bytes[..]).is_ok());
}

#[test]
fn the_second_recorder_of_one_file_is_told_of_the_first() {
    let (tree, folder) = (captured("6.12"), tempfile::tempdir().expect("a folder"));
    let path = folder.path().join("host.flr");
    let record = ["record", "--root", &tree, "--every", "5ms", "--for", "1h", "-o", text(&path)];
    let first = command(&record).stderr(Stdio::piped()).spawn().expect("it starts");
    let end = Instant::now() + Duration::from_secs(20);
    while std::fs::metadata(&path).map_or(0, |file| file.len()) < 8000 {
        assert!(Instant::now() < end, "the recorder wrote nothing for 20 s");
        std::thread::sleep(Duration::from_millis(1));
    }
    let forced = ["record", "--root", &tree, "--for", "0s", "--force", "-o", text(&path)];
    for second in [&record[..], &forced] {
        let run = floodline(second);
        assert_eq!(run.code, 2, "{run}");
        let expect = format!("process {} is writing to {}", first.id(), text(&path));
        assert!(run.stderr.contains(&expect), "without {expect:?}: {run}");
    }
    rustix::process::kill_process(rustix::process::Pid::from_child(&first), rustix::process::Signal::INT)
        .expect("it runs");
    let run = outcome(first.wait_with_output().expect("it ends"));
    assert_eq!(run.code, 0, "{run}");
    // It holds what the first one wrote, from its first byte.
    let replay = floodline(&["replay", text(&path), "--format", "json"]);
    assert!(run.stderr.contains(&format!("recorded {} samples", replay.stdout.lines().count())), "{run}");
}

#[test]
fn what_is_written_may_be_read_by_its_owner_alone() {
    let (tree, folder) = (captured("6.12"), tempfile::tempdir().expect("a folder"));
    let check = |name: &str, args: &[&str]| {
        let path = folder.path().join(name);
        let run = floodline(&[args, &[text(&path)]].concat());
        assert!(run.code < 2, "{run}");
        assert_eq!(mode(&path), 0o600, "{args:?}");
    };
    let recorded = folder.path().join("host.flr");
    check("host.flr", &["record", "--root", &tree, "--for", "0s", "-o"]);
    check("doctor.flr", &["doctor", "--root", &tree, "--save"]);
    check("host.jsonl", &["export", text(&recorded), "--format", "jsonl", "-o"]);
    let run = floodline(&["export", text(&recorded), "--format", "csv", "-o", text(&folder.path().join("tables"))]);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(mode(&folder.path().join("tables/host.csv")), 0o600);
    // An older file that is written anew is no more open than a new one.
    std::fs::write(folder.path().join("old.flr"), "").expect("a file");
    std::fs::set_permissions(folder.path().join("old.flr"), PermissionsExt::from_mode(0o644)).expect("it is ours");
    check("old.flr", &["record", "--root", &tree, "--for", "0s", "--force", "-o"]);
}

#[test]
fn a_full_disk_does_not_cost_the_file_that_force_would_replace() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, page) = (recording(&Fixture::healthy()), folder.path().join("page.html"));
    std::fs::write(&page, "the page of yesterday").expect("a file");
    // A limit of the size of files stands for a full disk: the write fails in the middle.
    for args in ["report", "export --format jsonl"] {
        let script = format!("trap '' XFSZ; ulimit -f 8; exec \"$0\" {args} \"$1\" -o \"$2\" --force");
        let run = std::process::Command::new("sh")
            .args(["-c", &script, env!("CARGO_BIN_EXE_floodline"), file.as_str(), text(&page)])
            .output()
            .expect("a shell");
        let run = outcome(run);
        assert!(run.code != 0 && run.stderr.contains("page.html"), "{args}: {run}");
        assert_eq!(std::fs::read_to_string(&page).expect("a file"), "the page of yesterday", "{args}");
        let left: Vec<_> = std::fs::read_dir(folder.path()).expect("a folder").collect();
        assert_eq!(left.len(), 1, "{args}: {left:?}");
    }
}

#[test]
fn a_full_disk_leaves_no_part_of_a_new_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = recording(&Fixture::healthy());
    let files = [
        "report page.html",
        "export page.jsonl --format jsonl",
        "preflight page.csv --set vm.dirty_ratio=5",
        "twin page.toml",
    ];
    for line in files {
        let mut words = line.split(' ');
        let (command, name) = (words.next().expect("a command"), words.next().expect("a file"));
        let more = words.collect::<Vec<_>>().join(" ");
        let script = format!("trap '' XFSZ; ulimit -f 0; exec \"$0\" {command} \"$1\" -o \"$2\" {more}");
        let run = std::process::Command::new("sh")
            .args(["-c", &script, env!("CARGO_BIN_EXE_floodline"), file.as_str(), text(&folder.path().join(name))])
            .output()
            .expect("a shell");
        let run = outcome(run);
        assert!(run.code != 0 && run.stderr.contains(name), "{line}: {run}");
        let left: Vec<_> = std::fs::read_dir(folder.path()).expect("a folder").collect();
        assert!(left.is_empty(), "{line}: {left:?}");
    }
}

#[test]
fn a_full_disk_leaves_all_tables_or_none() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, tables) = (recording(&Fixture::healthy()), folder.path().join("tables"));
    let export = |limit: &str| {
        let script = format!("trap '' XFSZ; ulimit -f {limit}; exec \"$0\" export --format csv \"$1\" -o \"$2\"");
        let run = std::process::Command::new("sh")
            .args(["-c", &script, env!("CARGO_BIN_EXE_floodline"), file.as_str(), text(&tables)])
            .output()
            .expect("a shell");
        let left = std::fs::read_dir(&tables).expect("a folder").count();
        (outcome(run), left)
    };
    // Some tables would fit.
    let (run, left) = export("2");
    assert!(run.code != 0 && run.stderr.contains("no new table was left behind"), "{run}");
    assert_eq!(left, 0, "{run}");
    let (run, left) = export("unlimited");
    assert!(run.code == 0 && left > 3, "{left}: {run}");
    let sizes = std::fs::read_dir(&tables).expect("a folder").map(|entry| entry.expect("it is there").metadata());
    let sizes: Vec<u64> = sizes.map(|found| found.expect("a file").len()).collect();
    assert!(sizes.iter().any(|size| *size <= 1024) && sizes.iter().any(|size| *size > 1024), "{sizes:?}");
}
