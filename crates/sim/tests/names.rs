// SPDX-License-Identifier: MIT OR Apache-2.0
//! What programs do with names, and what the kernel answers: directories, renames, mounts, unmounts, cgroups. The
//! answers are those that the same steps get from a real kernel in a guest.

use floodline_core::record::{Event, Record, Sink, What};
use floodline_core::run::Run;
use floodline_core::scenario::ScenarioFile;
use floodline_sim::{Options, simulate};

const MACHINE: &str = r#"
name = "names"
summary = "names"
[machine]
memory = "1 GiB"
cpus = 2
[machine.devices.disk]
size = "10 GiB"
write_bandwidth = "50 MB/s"
read_bandwidth = "50 MB/s"
[machine.devices.other]
size = "10 GiB"
write_bandwidth = "50 MB/s"
[machine.mounts."/data"]
type = "xfs"
device = "disk"
[machine.mounts."/srv"]
type = "ext4"
device = "other"
[machine.mounts."/data/merged"]
type = "overlay"
overlay = { lower = "/srv/lower", upper = "/srv/upper", work = "/srv/work" }
[machine.cgroups.box]
[machine.cgroups."box/in"]
[workload.tasks.one]
steps = [
"#;

/// A run of some steps, and the task's failure, or nothing.
fn run(steps: &[&str]) -> (Run, String) {
    let text = format!("{MACHINE}{}\n]\n", steps.join(",\n"));
    let file = ScenarioFile::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let options = Options { checks_every_event: true, ..Options::new("default", "6.12".parse().expect("a version")) };
    let (mut run, mut failed) = (Run::default(), None);
    let take = |record: Record| {
        if let Record::Event(Event { what: What::TaskEnded { failure, .. }, .. }) = &record {
            failed.clone_from(failure);
        }
        let Ok(()) = run.record(&record);
        Ok(())
    };
    simulate(&file.variants["default"], &options, take, |_| true).unwrap_or_else(|error| panic!("{error}\n{text}"));
    (run, failed.unwrap_or_default())
}

fn figure(run: &Run, name: &str) -> f64 {
    run.figures().get(name).unwrap_or_else(|| panic!("no {name}")).value
}

const WRITE: &str = "{ write = { file = \"/data/a\", block = \"64 KiB\", total = \"1 MiB\" } }";
const CLOSE: &str = "{ close = { file = \"/data/a\" } }";
const UMOUNT: &str = "{ umount = { point = \"/data\" } }";
const UMOUNT_MERGED: &str = "{ umount = { point = \"/data/merged\" } }";
const MOUNT: &str = "{ mount = { point = \"/data\" } }";

#[test]
fn a_name_gets_the_answer_that_the_kernel_gives() {
    let create = "{ create_cgroup = { cgroup = \"box/in\" } }";
    let remove = "{ remove_cgroup = { cgroup = \"box/in\" } }";
    let remove_above = "{ remove_cgroup = { cgroup = \"box\" } }";
    let rows: &[(&[&str], &str)] = &[
        // Directories: made with those above them, and again.
        (&["{ mkdir = { path = \"/data/d/e\" } }", "{ mkdir = { path = \"/data/d/e\" } }"], ""),
        (&[WRITE, "{ mkdir = { path = \"/data/a\" } }"], "mkdir /data/a: File exists"),
        (&[WRITE, "{ mkdir = { path = \"/data/a/b\" } }"], "mkdir /data/a/b: Not a directory"),
        (&["{ rmdir = { path = \"/data/d\" } }"], "rmdir /data/d: No such file or directory"),
        (&[WRITE, "{ rmdir = { path = \"/data/a\" } }"], "rmdir /data/a: Not a directory"),
        (&["{ mkdir = { path = \"/data/d/e\" } }", "{ rmdir = { path = \"/data/d\" } }"], "Directory not empty"),
        (&["{ mkdir = { path = \"/data/d\" } }", "{ rmdir = { path = \"/data/d\" } }"], ""),
        (
            &[
                "{ create_files = { file = \"/data/made/f{n}\", files = 2, size = \"4 KiB\" } }",
                "{ unlink = { file = \"/data/made/f{n}\", files = 2 } }",
                "{ rmdir = { path = \"/data/made\" } }",
            ],
            "",
        ),
        (&["{ rmdir = { path = \"/srv\" } }"], "rmdir /srv: Device or resource busy"),
        // Renames.
        (&["{ rename = { from = \"/data/a\", to = \"/data/b\" } }"], "rename /data/a: No such file or directory"),
        (&[WRITE, "{ rename = { from = \"/data/a\", to = \"/srv/a\" } }"], "Invalid cross-device link"),
        (&[WRITE, "{ rename = { from = \"/data/a\", to = \"/data/merged/a\" } }"], "Invalid cross-device link"),
        (&[WRITE, "{ rename = { from = \"/data/a\", to = \"/data/a\" } }"], ""),
        (&[WRITE, "{ rename = { from = \"/data/a\", to = \"/data/no/a\" } }"], "No such file or directory"),
        (
            &[
                "{ mkdir = { path = \"/data/d\" } }",
                "{ rename = { from = \"/data/d\", to = \"/data/e\" } }",
                "{ rmdir = { path = \"/data/e\" } }",
            ],
            "",
        ),
        (
            &["{ mkdir = { path = \"/data/d\" } }", "{ rename = { from = \"/data/d\", to = \"/data/d/e\" } }"],
            "Invalid argument",
        ),
        (
            &[WRITE, "{ mkdir = { path = \"/data/d\" } }", "{ rename = { from = \"/data/a\", to = \"/data/d\" } }"],
            "rename /data/a: Is a directory",
        ),
        // Unmounts and mounts.
        (&[UMOUNT], "umount /data: Device or resource busy"),
        (&[UMOUNT_MERGED, WRITE, UMOUNT], "umount /data: Device or resource busy"),
        (&[UMOUNT_MERGED, WRITE, CLOSE, UMOUNT], ""),
        (&[UMOUNT_MERGED, UMOUNT_MERGED], "umount /data/merged: Invalid argument"),
        (&["{ umount = { point = \"/srv\" } }"], "below a mounted overlay is not simulated"),
        (&["{ mount = { point = \"/data/merged\" } }"], "over itself is not simulated"),
        (&[MOUNT], "mount /data: Device or resource busy"),
        (&[UMOUNT_MERGED, UMOUNT, MOUNT, WRITE], ""),
        (&[UMOUNT_MERGED, UMOUNT, "{ read = { file = \"/data/a\", block = \"4 KiB\" } }"], "No such file or directory"),
        // Cgroups.
        (&[create], "mkdir box/in: File exists"),
        (&[remove_above], "rmdir box: Device or resource busy"),
        (&[remove, remove_above, create], "mkdir box/in: No such file or directory"),
        (&[remove, create], ""),
    ];
    let mut wrong = Vec::new();
    for (steps, expect) in rows {
        let (_, failed) = run(steps);
        let fits = if expect.is_empty() { failed.is_empty() } else { failed.contains(expect) };
        if !fits {
            wrong.push(format!("{steps:?}: expected {expect:?}, failed with {failed:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_was_unmounted_is_read_from_the_device_again() {
    let read = "{ read = { file = \"/data/a\", block = \"64 KiB\" } }";
    let (kept, failed) = run(&[WRITE, CLOSE, read]);
    assert_eq!((failed.as_str(), figure(&kept, "devices.read_bytes")), ("", 0.0));
    let (again, failed) = run(&[UMOUNT_MERGED, WRITE, CLOSE, UMOUNT, MOUNT, read]);
    assert_eq!((failed.as_str(), figure(&again, "devices.read_bytes")), ("", f64::from(1 << 20)));
    assert!(figure(&again, "devices.written_bytes") >= f64::from(1 << 20), "the unmount wrote it");
}

#[test]
fn a_file_that_replaces_another_goes_out_on_ext4_and_waits_on_xfs() {
    let steps = |dir: &str| {
        [
            format!("{{ write = {{ file = \"{dir}/a\", block = \"64 KiB\", total = \"1 MiB\" }} }}"),
            format!("{{ write = {{ file = \"{dir}/b\", block = \"64 KiB\", total = \"2 MiB\" }} }}"),
            format!("{{ close = {{ file = \"{dir}/a\" }} }}"),
            format!("{{ rename = {{ from = \"{dir}/b\", to = \"{dir}/a\" }} }}"),
            "{ sleep = { for = \"2s\" } }".to_owned(),
        ]
    };
    for (dir, expect) in [("/srv", true), ("/data", false)] {
        let steps = steps(dir);
        let (run, failed) = run(&steps.each_ref().map(String::as_str));
        let written = figure(&run, "devices.written_bytes");
        assert_eq!((failed.as_str(), written >= f64::from(2 << 20)), ("", expect), "{dir}: {written} bytes");
        assert_eq!(figure(&run, "one.rename.count"), 1.0);
    }
}
