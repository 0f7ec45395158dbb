// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ledger against the truth: workloads whose bytes are known, each in a cgroup of its own, in guests (`truth/`). One
//! kernel and the workloads that take a moment by default. `FLOODLINE_LEDGER_TRUTH=FILE` runs all of them on the kernels
//! of `FLOODLINE_LEDGER_KERNELS` and writes the table of `docs/tracing.md` to the file (`make ledger-truth`).

use crate::harness::Run;
use crate::lab::{guest, is_skipped, run};
use floodline_fleet::thousands;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;

const MACHINE: &str = include_str!("truth/machine.toml");
const BTRFS: &str = include_str!("truth/btrfs.toml");
const WORKLOADS: &str = include_str!("truth/workloads.sh");
const BLOCK: u64 = 4096;

/// Which workloads are run.
#[derive(Clone, Copy)]
struct Extent {
    /// Files that are kept, and as many that are removed.
    files: u64,
    /// Files that are created and removed with the budget that everybody has; 0 for none of these workloads.
    removed: u64,
    has_btrfs: bool,
}

const PART: Extent = Extent { files: 0, removed: 0, has_btrfs: false };
const ALL: Extent = Extent { files: 25_000, removed: 200_000, has_btrfs: true };

/// A workload, and what must be told of it at the disks.
struct Row {
    name: &'static str,
    what: &'static str,
    /// Bytes at the disks.
    bytes: u64,
    /// Where its file is, if that is named.
    file: Option<&'static str>,
    /// Bytes of the file, where others write it too.
    of_file: u64,
    /// The least share that must be right, percent.
    least: f64,
}

const fn row(name: &'static str, what: &'static str, blocks: u64, file: Option<&'static str>) -> Row {
    Row { name, what, bytes: blocks * BLOCK, file, of_file: blocks * BLOCK, least: 99.9 }
}

const ROWS: &[Row] = &[
    row("sequential", "4 KiB writes in sequence", 1009, Some("/data/sequential")),
    row("large", "1 MiB writes", 17 * 256, Some("/data/large")),
    row("small", "499 small files", 499, None),
    row("xfs", "on XFS", 1013, Some("/xfs/xfs")),
    row("journalled", "on ext4 with `data=journal`, without the journal", 1031, Some("/journal/journalled")),
    // The blocks of the filesystem on the loop device take part of the credit.
    Row { least: 95.0, ..row("loop", "through a buffered loop device", 1033, None) },
    row("overlay", "through an overlay", 1039, Some("/data/upper/overlay")),
    row("dropped", "removed before the flush", 0, None),
    row("truncated", "cut off before the flush", 0, None),
    row("rewritten", "the same file written anew by another process", 1061, Some("/data/truncated")),
    Row { of_file: 1030 * BLOCK, ..row("first", "one file, two cgroups: the first", 509, Some("/data/shared")) },
    Row { of_file: 1030 * BLOCK, ..row("second", "one file, two cgroups: the second", 521, Some("/data/shared")) },
    row("renamed", "renamed before the flush", 1063, Some("/data/newer")),
    row("direct", "past the cache", 101 * 16, None),
    row("anonymous", "past the cache, from anonymous memory", 1009, None),
    row("shared", "past the cache, from shared memory", 1013, None),
    // The file that the memory is made of is written too.
    Row {
        bytes: 2 * 1019 * BLOCK,
        ..row("mapped", "past the cache, from a mapped file, and that file", 1019, Some("/data/mapped-memory"))
    },
    row("stored", "stores into a map with msync", 2039, Some("/data/stored")),
    row("paused", "while its writer is paused", 509 * 16, Some("/slow/paused")),
];

const ON_BTRFS: &[Row] = &[row("btrfs", "on btrfs", 1019, Some("/btrfs/btrfs"))];

const OF_MANY: &[Row] = &[
    row("batch", "10,007 files", 10_007, None),
    Row { least: 95.0, ..row("kept", "25,000 files kept, beside 25,000 that are removed", 25_000, None) },
];

/// What a guest printed.
struct Truth {
    kernel: String,
    numbers: BTreeMap<(String, String), u64>,
    /// Of the workloads, of the short-lived children, of the files that are removed.
    ledgers: Vec<Value>,
    /// Of the paused writer: pauses, nanoseconds asked for, nanoseconds slept.
    paused: (u64, u64, Option<u64>),
    run: Run,
}

impl Truth {
    fn of(kernel: &str, extent: Extent, run: Run) -> Truth {
        let words: Vec<Vec<&str>> = run.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
        let number = |words: &Vec<&str>| match words[..] {
            ["truth", name, field, number] => Some(((name.to_owned(), field.to_owned()), number.parse().ok()?)),
            _ => None,
        };
        let json: Vec<Value> = run.stdout.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let is_ledger = |value: &&Value| value["schema"].as_str().is_some_and(|schema| schema.contains("ledger"));
        let ledgers: Vec<Value> = json.iter().filter(is_ledger).cloned().collect();
        assert_eq!(ledgers.len(), if extent.removed > 0 { 3 } else { 1 }, "{kernel}: {run}");
        let mut truth = Truth {
            kernel: kernel.to_owned(),
            numbers: words.iter().filter_map(number).collect(),
            ledgers,
            paused: (0, 0, None),
            run: Run { stdout: String::new(), ..run },
        };
        let pid = truth.number("paused", "pid");
        for event in json.iter().map(|line| &line["event"]).filter(|event| event["pid"] == pid) {
            let of = |field: &str| event[field].as_u64();
            truth.paused.0 += of("pauses").unwrap_or(0);
            truth.paused.1 += of("pause_ns").unwrap_or(0);
            truth.paused.2 = of("slept_ns").map(|slept| slept + truth.paused.2.unwrap_or(0));
        }
        truth
    }

    #[track_caller]
    fn number(&self, name: &str, field: &str) -> u64 {
        let key = (name.to_owned(), field.to_owned());
        *self.numbers.get(&key).unwrap_or_else(|| panic!("no {field} of {name}: {}: {}", self.kernel, self.run))
    }

    /// The sum of a field of the lines of a list that are meant.
    fn sum(&self, list: &str, field: &str, is_meant: impl Fn(&Value) -> bool) -> u64 {
        let lines = self.ledgers[0][list].as_array().into_iter().flatten();
        lines.filter(|line| is_meant(line)).filter_map(|line| line[field].as_u64()).sum()
    }

    /// Shares of the file, the cgroup and the process that are right, percent.
    fn shares(&self, row: &Row, bytes: u64) -> [Option<f64>; 3] {
        let pid = self.number(row.name, "pid");
        let cgroup = format!("/{}", row.name);
        [
            row.file.map(|file| {
                let got = self.sum("files", "device_bytes", |line| line["file"] == file);
                share(got, row.of_file)
            }),
            Some(share(self.sum("cgroups", "device_bytes", |line| line["cgroup"] == cgroup.as_str()), bytes)),
            Some(share(self.sum("processes", "device_bytes", |line| line["pid"] == pid), bytes)),
        ]
    }

    /// All rows with what is right of them.
    fn rows(&self, extent: Extent) -> Vec<(String, u64, f64, [Option<f64>; 3])> {
        let mut rows: Vec<&Row> = ROWS.iter().collect();
        rows.extend(ON_BTRFS.iter().filter(|_| extent.has_btrfs));
        rows.extend(OF_MANY.iter().filter(|_| extent.removed > 0));
        let mut told: Vec<_> = rows
            .into_iter()
            .map(|row| (row.what.to_owned(), row.bytes, row.least, self.shares(row, row.bytes)))
            .collect();
        if extent.removed > 0 {
            // How much is dropped depends on the flusher; the kernel charges the rest to the cgroup.
            let left = self.number("gone", "charged");
            let row = row("gone", "25,000 files that are removed, partly after they were written", 0, None);
            told.push((row.what.to_owned(), left, 95.0, self.shares(&row, left)));
        }
        told
    }

    fn totals(&self, ledger: usize) -> &Value {
        &self.ledgers[ledger]["totals"]
    }

    /// Bytes queued at disks less those that diskstats counted.
    fn beyond_diskstats(&self) -> i64 {
        let queued = ["data", "metadata", "journal", "direct", "unknown"]
            .map(|class| self.totals(0)["queued"][format!("{class}_bytes")].as_i64().unwrap_or(0));
        queued.iter().sum::<i64>() - self.totals(0)["diskstats_bytes"].as_i64().unwrap_or(0)
    }

    /// Bytes that applications wrote in trees of short-lived children, to the truth.
    fn of_children(&self) -> f64 {
        self.totals(1)["application_bytes"].as_f64().unwrap_or(0.0) / (77.0 * 1_000_003.0)
    }

    /// Whether everything is as it must be.
    fn check(&self, extent: Extent) {
        let context = || format!("{}: {}\n{}", self.kernel, self.run, self.ledgers[0]);
        for (what, bytes, least, shares) in self.rows(extent) {
            let told = format!("{what}: {bytes} bytes, right {shares:?}: {}", context());
            assert!(shares.iter().flatten().all(|share| *share >= least), "{told}");
        }
        let ledger = &self.ledgers[0];
        assert_eq!(ledger["mismatches"], serde_json::json!([]), "{}", context());
        assert_eq!(ledger["gaps"], serde_json::json!([]), "{}", context());
        // A request may be under way at either end; what was missed on 7.x was 6 %.
        assert!(self.beyond_diskstats().abs() <= 1 << 20, "{}", context());
        assert_eq!(self.totals(0)["unattributed_bytes"], 0, "{}", context());
        let (pauses, asked, slept) = self.paused;
        let wall = self.number("paused", "wall_ns");
        let told = format!("{pauses} pauses, {asked} ns asked for, {slept:?} slept of {wall}: {}", context());
        assert!(pauses > 0 && slept.is_some_and(|slept| slept <= wall && slept * 2 > asked), "{told}");
        if let [_, _, removed] = &self.ledgers[..] {
            let of_children = self.of_children();
            assert!((0.98..=1.02).contains(&of_children), "{of_children}: {}", self.kernel);
            // What the budget did not allow for is a gap, and nothing else is missing.
            let has_given_up = removed["gaps"].to_string().contains("bytes made dirty");
            let is_whole = removed["mismatches"] == serde_json::json!([]);
            assert!(is_whole || has_given_up, "{}: {removed}", self.kernel);
        }
    }
}

/// How much of the truth was told, percent; more than the truth is as wrong as less.
fn share(told: u64, truth: u64) -> f64 {
    match truth {
        0 => 100.0 - told.min(100) as f64,
        truth => (1.0 - told.abs_diff(truth) as f64 / truth as f64).max(0.0) * 100.0,
    }
}

fn percent(share: Option<f64>) -> String {
    match share {
        None => "–".to_owned(),
        Some(share) if share >= 99.995 => "100".to_owned(),
        Some(share) => format!("{:.2}", (share * 100.0).floor() / 100.0),
    }
}

/// The table of all kernels as Markdown.
fn table(truths: &[Truth], extent: Extent) -> String {
    let mut text = "| workload | bytes |".to_owned();
    let _ = truths.iter().try_for_each(|truth| write!(text, " {} |", truth.kernel));
    let _ = writeln!(text, "\n| --- | --- |{}", " --- |".repeat(truths.len()));
    let rows: Vec<_> = truths.iter().map(|truth| truth.rows(extent)).collect();
    for (at, (what, bytes, ..)) in rows.first().into_iter().flatten().enumerate() {
        let differs = rows.iter().any(|rows| rows[at].1 != *bytes);
        let bytes = if differs { "what was not dropped".to_owned() } else { thousands(*bytes) };
        let _ = write!(text, "| {what} | {bytes} |");
        for rows in &rows {
            let _ = write!(text, " {} |", rows[at].3.map(percent).join(" · "));
        }
        text.push('\n');
    }
    let mut line = |what: &str, cell: &dyn Fn(&Truth) -> String| {
        let _ = write!(text, "| {what} | |");
        let _ = truths.iter().try_for_each(|truth| write!(text, " {} |", cell(truth)));
        text.push('\n');
    };
    line("queued − diskstats, bytes", &|truth| truth.beyond_diskstats().to_string());
    line("data credited to no process, bytes", &|truth| truth.totals(0)["unattributed_bytes"].to_string());
    line("compressed data of btrfs, shown as `unattributed`, bytes", &|truth| {
        let of_it = |line: &Value| line["queued"]["unknown_bytes"].as_u64().filter(|_| line["is_bottom"] == true);
        truth.ledgers[0]["disks"].as_array().into_iter().flatten().filter_map(of_it).sum::<u64>().to_string()
    });
    line("bytes written by trees of short-lived children ÷ true bytes (77,000,231)", &|truth| {
        format!("{:.4}", truth.of_children())
    });
    line("pauses: slept ÷ asked for", &|truth| {
        truth.paused.2.map_or_else(|| "–".to_owned(), |slept| format!("{:.3}", slept as f64 / truth.paused.1 as f64))
    });
    line("200,000 files created and removed: gaps in the ledger", &|truth| {
        truth.ledgers.get(2).and_then(|ledger| Some(ledger["gaps"].as_array()?.len().to_string())).unwrap_or_default()
    });
    line("the same: highest memory of the recorder, MiB", &|truth| {
        format!("{:.1}", truth.number("recorder", "hwm_kib") as f64 / 1024.0)
    });
    text
}

#[test]
fn vm_the_ledger_is_right_for_workloads_whose_bytes_are_known() {
    let Some((_guest, program)) = guest() else { return };
    let wanted = std::env::var("FLOODLINE_LEDGER_TRUTH").ok();
    let all = std::env::var("FLOODLINE_LEDGER_KERNELS").unwrap_or_else(|_| "5.10,6.1,6.12,7.2".to_owned());
    let (kernels, extent): (Vec<&str>, Extent) = match &wanted {
        Some(_) => (all.split(',').collect(), ALL),
        None => (vec!["6.12"], PART),
    };
    let folder = tempfile::tempdir().expect("a folder");
    let machine = folder.path().join("truth.toml");
    let (before, after) = MACHINE.split_once("\n[machine.devices.image]").expect("devices");
    let btrfs = if extent.has_btrfs { BTRFS } else { "" };
    std::fs::write(&machine, format!("{before}{btrfs}\n[machine.devices.image]{after}")).expect("a file");
    let script = format!("FILES={}; REMOVED={}\n{WORKLOADS}", extent.files, extent.removed);
    let mut truths = Vec::new();
    for kernel in kernels {
        let machine = machine.to_str().expect("UTF-8");
        let args = ["shell", machine, "--kernel", kernel, "--package", "perl-base", "--guest-program", &program];
        let run = run(&[&args[..], &["--", "bash", "-c", &script]].concat());
        if is_skipped(&run) {
            return;
        }
        assert_eq!(run.code, 0, "{kernel}: {run}");
        truths.push(Truth::of(kernel, extent, run));
        // After each kernel: all of them take half an hour.
        if let Some(file) = &wanted {
            std::fs::write(file, table(&truths, extent)).expect("the table");
        }
    }
    truths.iter().for_each(|truth| truth.check(extent));
}
