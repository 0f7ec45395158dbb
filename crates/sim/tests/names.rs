// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs' calls on names, and the kernel's answers: directories, renames, mounts, unmounts, cgroups. The
//! expected answers are those of a real kernel in a guest for the same steps.

mod machine;

use floodline_analysis::run::Run;
use floodline_record::record::{Event, Record, What};
use machine::{figure, run_of, scenario};

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
in_use = true
device = "disk"
[machine.mounts."/srv"]
type = "ext4"
device = "other"
[machine.mounts."/data/merged"]
type = "overlay"
overlay = { lower = "/srv/lower", upper = "/srv/upper", work = "/srv/work" }
[machine.cgroups.box]
[machine.cgroups."box/in"]
"#;

/// Runs some tasks on the machine. Returns the failure of the last task that failed, if any.
fn tasks(tasks: &str) -> (Run, String) {
    let mut failed = None;
    let run = run_of(&scenario(&format!("{MACHINE}{tasks}")), "6.12", |record| {
        if let Record::Event(Event { what: What::TaskEnded { failure, .. }, .. }) = record {
            failed = failure.clone().or(failed.take());
        }
        true
    });
    (run, failed.unwrap_or_default().into())
}

/// Runs the steps of one task, and returns its failure, if any.
fn run(steps: &[&str]) -> (Run, String) {
    tasks(&format!("[workload.tasks.one]\nsteps = [\n{}\n]\n", steps.join(",\n")))
}

const WRITE: &str = "{ write = { file = \"/data/a\", block = \"64 KiB\", total = \"1 MiB\" } }";
const WRITE_B: &str = "{ write = { file = \"/data/b\", block = \"4 KiB\", total = \"4 KiB\" } }";
const WRITE_D: &str = "{ write = { file = \"/data/d/a\", block = \"4 KiB\", total = \"4 KiB\" } }";
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
        // Directories: created with those above them, and created again.
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
        // The kernel checks both directories first, then whether they are on one mount, then the names.
        (&["{ rename = { from = \"/data/no\", to = \"/srv/a\" } }"], "rename /data/no: Invalid cross-device link"),
        (&[WRITE, "{ rename = { from = \"/data/a\", to = \"/srv/no/a\" } }"], "No such file or directory"),
        (&[WRITE, WRITE_B, "{ rename = { from = \"/data/a\", to = \"/data/b/x\" } }"], "Not a directory"),
        (&[WRITE_B, "{ rename = { from = \"/data/b/x\", to = \"/data/c\" } }"], "Not a directory"),
        (&[WRITE_D, "{ rename = { from = \"/data/d/a\", to = \"/data/d\" } }"], "Directory not empty"),
        (&[WRITE_D, "{ rename = { from = \"/data/d\", to = \"/data/d/e\" } }"], "Invalid argument"),
        (&[WRITE, "{ rename = { from = \"/data/a\", to = \"/data\" } }"], "Invalid cross-device link"),
        // Files and directories are no such thing of the other.
        (&[WRITE_D, "{ truncate = { file = \"/data/d\", size = \"0 B\" } }"], "open /data/d: Is a directory"),
        (&[WRITE, "{ truncate = { file = \"/data/a/b\", size = \"0 B\" } }"], "open /data/a/b: Not a directory"),
        (&[WRITE_D, "{ unlink = { file = \"/data/d\", files = 1 } }"], "unlink /data/d: Is a directory"),
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

#[test]
fn what_a_close_still_sends_out_keeps_its_filesystem_mounted() {
    let umounted_after = |sleep: &str| {
        let (_, failed) = tasks(&format!(
            "[workload.tasks.writer]\nsteps = [{UMOUNT_MERGED}, {WRITE}, {{ truncate = {{ file = \"/data/a\", size = \
             \"0 B\" }} }}, {{ write = {{ file = \"/data/a\", block = \"1 MiB\", total = \"100 MiB\" }} }}, \
             {{ barrier = {{ name = \"written\" }} }}, {CLOSE}]\n\
             [workload.tasks.umount]\nsteps = [{{ barrier = {{ name = \"written\" }} }}, {{ sleep = {{ for = \"{sleep}\" }} }}, {UMOUNT}]\n"
        ));
        failed
    };
    // 100 MiB take 2 s; the last of them are in the queue of the device when close returns.
    let failed = umounted_after("200ms");
    assert!(failed.contains("umount /data: Device or resource busy"), "{failed:?}");
    assert_eq!(umounted_after("3s"), "");
}

const LAZY: &str = "{ umount = { point = \"/data\", lazy = true } }";
const BIG: &str = "{ write = { file = \"/data/a\", block = \"1 MiB\", total = \"50 MiB\" } }";

#[test]
fn a_lazy_unmount_returns_at_once_and_the_last_close_writes() {
    let (_, failed) = run(&[UMOUNT_MERGED, BIG, UMOUNT]);
    assert!(failed.contains("Device or resource busy"), "{failed}");
    // 50 MiB at 50 MB/s. The overlay below the mount point is unmounted with it, and the open file can still be
    // written.
    let (run, failed) = run(&[BIG, LAZY, BIG, CLOSE, MOUNT, "{ umount = { point = \"/data\" } }"]);
    assert_eq!(failed, "");
    let [umount, close] = ["one.umount.p50_seconds", "one.close.max_seconds"].map(|name| figure(&run, name));
    assert!(umount < 0.01 && close > 1.5, "{umount} s, {close} s");
}

#[test]
fn an_open_that_fails_after_a_lazy_unmount_lets_the_filesystem_go() {
    // An open takes some microseconds. In one of the runs, the mkdir of the same name and the unmount happen
    // meanwhile.
    for at in 0..10 {
        let (_, failed) = tasks(&format!(
            "[workload.tasks.open]\nsteps = [{{ write = {{ file = \"/data/a\", block = \"4 KiB\", total = \"4 KiB\" }} }}]\n\
             [workload.tasks.mkdir]\nsteps = [{{ sleep = {{ for = \"{at}us\" }} }}, {{ mkdir = {{ path = \"/data/a\" }} }}]\n\
             [workload.tasks.umount]\nsteps = [{{ sleep = {{ for = \"{}us\" }} }}, {LAZY}, \
             {{ sleep = {{ for = \"1s\" }} }}, {MOUNT}]\n",
            at + 1
        ));
        assert!(!failed.contains("not simulated"), "{at} us: {failed}");
    }
}

#[test]
fn a_lazy_unmount_without_open_files_writes_before_it_returns() {
    let (run, failed) = run(&[BIG, CLOSE, LAZY]);
    assert_eq!(failed, "");
    assert!(figure(&run, "one.umount.max_seconds") > 0.8);
}

#[test]
fn a_sync_writes_a_filesystem_that_left_the_tree_with_open_files() {
    let (synced, failed) = run(&[BIG, LAZY, "\"sync\"", CLOSE]);
    assert_eq!(failed, "");
    assert!(figure(&synced, "one.sync.max_seconds") > 0.8);
    assert!(figure(&synced, "one.close.max_seconds") < 0.2);
    let (_, failed) = run(&[BIG, LAZY, MOUNT]);
    assert!(failed.contains("after a lazy unmount is not simulated"), "{failed}");
}

#[test]
fn a_rename_sends_the_new_data_out_before_it_gives_it_the_name() {
    let read_after = |sleep: &str| {
        let (run, failed) = tasks(&format!(
            "[workload.tasks.writer]\nsteps = [{{ write = {{ file = \"/srv/a\", block = \"4 KiB\", total = \"4 KiB\" }} }}, \
             {{ close = {{ file = \"/srv/a\" }} }}, {{ write = {{ file = \"/srv/b\", block = \"1 MiB\", total = \"100 MiB\" }} }}, \
             {{ barrier = {{ name = \"written\" }} }}, {{ rename = {{ from = \"/srv/b\", to = \"/srv/a\" }} }}]\n\
             [workload.tasks.reader]\nsteps = [{{ barrier = {{ name = \"written\" }} }}, {{ sleep = {{ for = \"{sleep}\" }} }}, \
             {{ read = {{ file = \"/srv/a\", block = \"1 MiB\" }} }}]\n"
        ));
        assert_eq!(failed, "");
        figure(&run, "reader.read.count")
    };
    let (old, new) = (read_after("200ms"), read_after("3s"));
    assert!(old < 3.0 && new >= 100.0, "{old} blocks of the old file, {new} of the new one");
}

#[test]
fn who_appends_at_once_overwrites_nobody() {
    let setup = "setup = [{ write = { file = \"/data/log\", block = \"4 KiB\", total = \"4 KiB\" } }]";
    for setup in ["", setup] {
        let (run, _) = tasks(&format!(
            "[workload.tasks.log]\ninstances = 4\n{setup}\nsteps = [{{ write = {{ file = \"/data/log\", \
             order = \"append\", block = \"1 MiB\", total = \"10 MiB\" }} }}]\n\
             [workload.tasks.reader]\nsteps = [{{ wait_for = {{ task = \"log\" }} }}, \
             {{ read = {{ file = \"/data/log\", block = \"1 MiB\" }} }}]\n"
        ));
        let read = figure(&run, "reader.read.count");
        assert!((40.0..=41.0).contains(&read), "{setup}: {read} blocks");
    }
}

#[test]
fn a_sync_waits_for_what_is_being_unmounted() {
    let (run, _) = tasks(
        r#"
[workload.tasks.umount]
steps = [
  { umount = { point = "/data/merged" } },
  { write = { file = "/data/a", block = "1 MiB", total = "50 MiB" } },
  { close = { file = "/data/a" } },
  { umount = { point = "/data" } },
]
[workload.tasks.sync]
start = "500ms"
steps = ["sync"]
"#,
    );
    let (umount, sync) = (figure(&run, "umount.umount.max_seconds"), figure(&run, "sync.sync.max_seconds"));
    assert!(umount > 0.8 && sync > umount - 0.6, "{umount} s, {sync} s");
}

#[test]
fn what_a_limit_holds_goes_by_the_limit_that_is_set_later() {
    let steps = "block = \"1 MiB\", total = \"8 MiB\", direct = true";
    let (run, _) = tasks(&format!(
        "[workload.tasks.limit]\nsteps = [{{ set_limits = {{ cgroup = \"box\", limits = {{ io_max.disk = {{ \
         write_bandwidth = \"10 kB/s\" }} }} }} }}, {{ sleep = {{ for = \"5s\" }} }}, {{ set_limits = {{ cgroup = \"box\", \
         limits = {{ io_max.disk = {{ write_bandwidth = \"20 MB/s\" }} }} }} }}]\n\
         [workload.tasks.one]\ncgroup = \"box\"\nstart = \"100ms\"\nsteps = [{{ write = {{ file = \"/data/1\", {steps} }} }}]\n\
         [workload.tasks.other]\ncgroup = \"box/in\"\nstart = \"300ms\"\nsteps = [{{ write = {{ file = \"/data/2\", {steps} }} }}]\n"
    ));
    for task in ["one", "other"] {
        let finished = figure(&run, &format!("{task}.finished_seconds"));
        assert!((5.0..6.5).contains(&finished), "{task}: {finished} s");
    }
}

#[test]
fn a_limit_that_takes_minutes_for_a_request_is_no_hang() {
    let (run, _) = tasks(
        r#"
[workload]
duration = "10s"
[workload.tasks.slow]
cgroup = "box"
steps = [
  { set_limits = { cgroup = "box", limits = { io_max.disk = { write_bandwidth = "10 kB/s" } } } },
  { write = { file = "/data/1", block = "4 MiB", total = "4 MiB", direct = true } },
]
"#,
    );
    let lasted = figure(&run, "slow.write.max_seconds");
    assert!((400.0..440.0).contains(&lasted), "{lasted} s");
}
