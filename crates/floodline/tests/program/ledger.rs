// SPDX-License-Identifier: MIT OR Apache-2.0
//! The byte ledger of this machine: known workloads under the tracer, with prime counts. What the tracer says
//! of their files and processes is what they did. Skipped where nothing may be traced.

use crate::harness::{Run, command, floodline, outcome, recording};
use floodline_skip::{Need, skip};
use floodline_testkit::Fixture;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// One workload: a shell command that ends with everything on the disk, and what must be told of its file.
struct Workload {
    file: &'static str,
    command: &'static str,
    /// Bytes that become dirty: at least these, and exactly where folios are pages.
    dirtied: u64,
    /// Bytes of the file at the disk.
    device: u64,
    /// The least of the bytes that are dirtied again.
    redirtied: u64,
    /// Who is named first.
    by: &'static str,
}

const PAGE: u64 = 4096;

const WORKLOADS: &[Workload] = &[
    Workload {
        file: "sequential",
        command: "dd if=/dev/zero of=sequential bs=4096 count=1009 conv=fsync",
        dirtied: 1009 * PAGE,
        device: 1009 * PAGE,
        redirtied: 0,
        by: "dd",
    },
    Workload {
        file: "large",
        command: "dd if=/dev/zero of=large bs=1M count=17 conv=fsync",
        dirtied: 17 << 20,
        device: 17 << 20,
        redirtied: 0,
        by: "dd",
    },
    // Each write is on the disk before the next one; eight of them share a page.
    Workload {
        file: "journal",
        command: "dd if=/dev/zero of=journal bs=512 count=104 oflag=dsync",
        dirtied: 104 * PAGE,
        device: 104 * PAGE,
        redirtied: 90 * PAGE,
        by: "dd",
    },
    Workload {
        file: "scattered",
        // Large enough to be named on a machine on which much else is written.
        command: "truncate -s 64M scattered; for at in 241 17 229 113 13 199 53; do \
            dd if=/dev/zero of=scattered bs=256k count=1 seek=$at conv=notrunc,fsync; done",
        dirtied: 7 << 18,
        device: 7 << 18,
        redirtied: 0,
        by: "dd",
    },
    Workload {
        file: "shared",
        command: "dd if=/dev/zero of=shared bs=4096 count=31; \
            cat sequential > copy; dd if=copy of=shared bs=4096 count=31 seek=31 conv=notrunc,fsync",
        dirtied: 62 * PAGE,
        device: 62 * PAGE,
        redirtied: 0,
        by: "dd",
    },
    Workload {
        file: "by-another",
        command: "sh -c 'head -c 401408 /dev/zero > by-another'; sync -d by-another",
        dirtied: 98 * PAGE,
        device: 98 * PAGE,
        redirtied: 0,
        by: "head",
    },
];

/// A file that is removed before it is written. Several, because another program may sync before one is removed.
const UNLINKED: &[&str] = &["unlinked-1", "unlinked-2", "unlinked-3"];
const UNLINKED_PAGES: u64 = 61;

/// Folders whose ten thousand files are removed. Several, because another program may sync before one is removed.
const GONE: &[&str] = &["gone-1", "gone-2"];
/// Pages of a file after which ten thousand others come.
const LARGE_PAGES: u64 = 521;

fn start(output: &Path) -> Child {
    // What the tracer may take is tested elsewhere: a machine that compiles meanwhile has more events than one percent pays.
    let budget = ["--trace-budget", "100"];
    let args =
        [&["record", "--trace", "on", "--every", "500ms", "-o", output.to_str().expect("UTF-8")][..], &budget].concat();
    command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the recorder starts")
}

/// Waits for the first sample, before which the tracer is attached; the recorder's end where it refuses.
fn until_it_records(mut recorder: Child, output: &Path) -> Result<Child, Run> {
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        if recorder.try_wait().expect("a child").is_some() {
            return Err(outcome(recorder.wait_with_output().expect("it has ended")));
        }
        if samples(output) >= 3 {
            return Ok(recorder);
        }
        assert!(Instant::now() < end, "no sample within a minute");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn samples(output: &Path) -> usize {
    floodline(&["replay", output.to_str().expect("UTF-8")]).stdout.lines().count()
}

/// The first of them may have begun before.
fn until_two_more_samples(output: &Path) {
    let (before, end) = (samples(output), Instant::now() + Duration::from_secs(60));
    while samples(output) < before + 2 {
        assert!(Instant::now() < end, "no two samples within a minute");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn stop(recorder: Child) -> Run {
    let pid = Pid::from_child(&recorder);
    kill_process(pid, Signal::INT).expect("it lives");
    outcome(recorder.wait_with_output().expect("it ends"))
}

fn shell(folder: &Path, text: &str) {
    let output = Command::new("sh").args(["-c", text]).current_dir(folder).output().expect("a shell");
    assert!(output.status.success(), "{text}: {}", String::from_utf8_lossy(&output.stderr));
}

fn named<'a>(ledger: &'a Value, list: &str, key: &str, end: &str) -> Option<&'a Value> {
    ledger[list].as_array()?.iter().find(|line| line[key].as_str().is_some_and(|name| name.ends_with(end)))
}

/// The sums of a whole machine do not add up now and then while other tests record and remove thousands of files: then it is recorded
/// again. What the ledger says of the workloads holds each time.
#[test]
fn every_workload_has_its_bytes_in_the_ledger_of_this_machine() {
    assert!((0..3).any(|at| has_every_byte(at == 2)));
}

/// Whether the sums add up; those of the last recording must.
fn has_every_byte(is_last: bool) -> bool {
    // On a disk: a filesystem in memory has no writeback.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let output = folder.path().join("host.flr");
    // What became dirty before the trace is nobody's.
    shell(folder.path(), "sync -f .");
    let recorder = match until_it_records(start(&output), &output) {
        Ok(recorder) => recorder,
        Err(run) if run.stderr.contains("cannot trace") => {
            skip(Need::Trace, run.stderr);
            return true;
        }
        Err(run) => panic!("{run}"),
    };
    shell(folder.path(), "dd if=/dev/zero of=direct bs=64k count=19 oflag=direct");
    for workload in WORKLOADS {
        shell(folder.path(), workload.command);
    }
    // After the others: the next new file gets the inode number of one that was removed.
    for file in UNLINKED {
        shell(folder.path(), &format!("dd if=/dev/zero of={file} bs=4096 count={UNLINKED_PAGES}; rm {file}"));
    }
    // The tracer keeps the names of 4,096 small files from one sample to the next: these are named before more come. The
    // name of a large one stays.
    until_two_more_samples(&output);
    // More files than the kernel hands out at once, kept by one process, and as many that another one removes.
    let many = "n=0; while [ $n -lt 10007 ]; do echo > $0/$n; n=$((n + 1)); done";
    let large = format!("dd if=/dev/zero of=before-many bs=4096 count={LARGE_PAGES}");
    shell(folder.path(), &format!("mkdir kept; {large}; sh -c 'echo $$ > kept.pid; {many}' kept"));
    for gone in GONE {
        shell(folder.path(), &format!("mkdir {gone}; sh -c 'echo $$ > {gone}.pid; {many}; exec rm -r {gone}' {gone}"));
    }
    shell(folder.path(), "sync -f .");
    // At the end of the recording a last look is taken.
    let run = stop(recorder);
    assert_eq!(run.code, 0, "{run}");
    let run = floodline(&["ledger", output.to_str().expect("UTF-8"), "--format", "json"]);
    assert_eq!(run.code, 0, "{run}");
    let ledger: Value = serde_json::from_str(&run.stdout).expect("JSON");
    for workload in WORKLOADS {
        let file = named(&ledger, "files", "file", &format!("/{}", workload.file));
        let file = file.unwrap_or_else(|| panic!("{} is not in {run}", workload.file));
        let number = |field: &str| file[field].as_u64().expect("a number");
        assert!(number("dirtied_bytes") >= workload.dirtied, "{}: {file}", workload.file);
        // A layer or a folio may round up; nothing may be lost or be counted for another file.
        let device = number("device_bytes");
        assert!((workload.device..=workload.device + 16 * PAGE).contains(&device), "{}: {file}", workload.file);
        assert!(number("redirtied_bytes") >= workload.redirtied, "{}: {file}", workload.file);
        let by = file["by"][0].as_str().expect("somebody");
        assert!(by.starts_with(&format!("{}[", workload.by)), "{}: {file}", workload.file);
    }
    let unlinked = UNLINKED.iter().filter_map(|file| named(&ledger, "files", "file", &format!("/{file}")));
    let unlinked: Vec<(u64, u64)> =
        unlinked.filter_map(|file| Some((file["dirtied_bytes"].as_u64()?, file["device_bytes"].as_u64()?))).collect();
    assert_eq!(unlinked.len(), UNLINKED.len(), "{run}");
    assert!(unlinked.iter().all(|(dirtied, _)| *dirtied >= UNLINKED_PAGES * PAGE), "{unlinked:?}");
    assert!(unlinked.iter().any(|(_, device)| *device <= 16 * PAGE), "{unlinked:?}");
    let large = named(&ledger, "files", "file", "/before-many").unwrap_or_else(|| panic!("no large file: {run}"));
    assert!(large["dirtied_bytes"].as_u64() >= Some(LARGE_PAGES * PAGE), "{large}");
    assert!(large["device_bytes"].as_u64() >= Some(LARGE_PAGES * PAGE), "{large}");
    let by = |name: &str, field: &str| -> u64 {
        let pid = std::fs::read_to_string(folder.path().join(name)).expect("a number");
        let lines = ledger["processes"].as_array().expect("a list").iter();
        lines
            .filter(|line| line["pid"].as_u64() == pid.trim().parse().ok())
            .filter_map(|line| line[field].as_u64())
            .sum()
    };
    let kept = by("kept.pid", "device_bytes");
    assert!(kept >= 10_007 * PAGE / 100 * 95, "{kept}: {run}");
    // On a slow machine, or where another program syncs, some were written before they were removed.
    let dropped = ledger["totals"]["cancelled_bytes"].as_u64().expect("a number");
    let gone: Vec<(u64, u64)> = GONE
        .iter()
        .map(|name| (by(&format!("{name}.pid"), "device_bytes"), by(&format!("{name}.pid"), "dirtied_bytes")))
        .collect();
    let left = gone.iter().map(|(_, dirtied)| dirtied).sum::<u64>().saturating_sub(dropped);
    let is_dropped = |(device, _): &(u64, u64)| *device <= left + 10_007 * PAGE / 100 * 5;
    assert!(gone.iter().any(is_dropped), "{gone:?}, {left} left: {run}");
    assert!(gone.iter().all(|(device, dirtied)| device <= dirtied), "{gone:?}: {run}");
    let adds_up = ledger["mismatches"] == serde_json::json!([]);
    assert!(adds_up || !is_last, "{run}");
    let totals = &ledger["totals"];
    assert!(totals["queued"]["direct_bytes"].as_u64().expect("a number") >= 19 * 65_536, "{run}");
    // Credited to who dirtied it. Of the rest of the machine, some was dirty before the trace began.
    let all: u64 = WORKLOADS.iter().map(|workload| workload.device).sum();
    let is_ours = |line: &&Value| WORKLOADS.iter().any(|workload| line["comm"] == workload.by);
    let lines = ledger["processes"].as_array().expect("a list").iter().filter(is_ours);
    let credited: u64 = lines.filter_map(|line| line["device_bytes"].as_u64()).sum();
    assert!(credited * 100 >= all * 90, "{credited} of {all}: {run}");
    adds_up
}

#[test]
fn a_recording_without_a_tracer_has_no_ledger_and_says_how_to_make_one() {
    let run = floodline(&["ledger", recording(&Fixture::healthy().seconds(3)).as_str()]);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stderr.contains("without the tracer") && run.stderr.contains("--trace on"), "{run}");
}
