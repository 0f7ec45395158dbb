// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which pages of files memory keeps: what reading does to them, and what reclaim takes first. Limits of cgroups are in
//! stacks.rs.

mod machine;

use floodline_analysis::run::Run;
use machine::{figure, run_of, scenario};

const MACHINE: &str = r#"
name = "memory"
summary = "files that are read"
[machine]
memory = "1 GiB"
cpus = 2
[machine.devices.disk]
size = "10 GiB"
[machine.mounts."/data"]
type = "ext4"
device = "disk"
[workload.tasks.reader]
setup = [
  { write = { file = "/data/a", block = "1 MiB", total = "300 MiB" } },
  { write = { file = "/data/b", block = "1 MiB", total = "600 MiB" } },
  "sync",
  "drop_caches",
]
"#;

fn run(steps: &str, kernel: &str) -> Run {
    run_of(&scenario(&format!("{MACHINE}steps = [{steps}, {{ sleep = {{ for = \"3s\" }} }}]\n")), kernel, |_| true)
}

fn read(file: &str, block: &str) -> String {
    format!("{{ read = {{ file = \"/data/{file}\", block = \"{block}\" }} }}")
}

/// MiB of file pages that are active at the end.
fn active_after(steps: &str, kernel: &str) -> u64 {
    run(steps, kernel).window.host.last.nr_active_file.expect("known").0 >> 8
}

#[test]
fn what_is_read_once_stays_inactive_and_what_is_read_twice_is_active() {
    for kernel in ["4.18", "6.12"] {
        for block in ["4 KiB", "6 KiB", "1 MiB"] {
            let once = read("a", block);
            assert_eq!(active_after(&once, kernel), 0, "{block} on {kernel}, once");
            let twice = active_after(&format!("{once}, {once}"), kernel);
            assert!((295..=300).contains(&twice), "{block} on {kernel}, twice: {twice} MiB");
        }
    }
}

#[test]
fn a_file_that_is_read_on_and_on_drives_out_the_one_that_was_read_before() {
    let (a, b) = (read("a", "1 MiB"), read("b", "1 MiB"));
    let read_bytes = |steps: &str| {
        let run = run(steps, "6.12");
        assert_eq!(figure(&run, "reader.failures_count"), 0.0);
        // From the start of the machine on: figures begin with the first sample.
        run.window.disks.values().map(|disk| disk.last.read.expect("known").0).sum::<u64>() >> 20
    };
    let before = read_bytes(&format!("{a}, {b}"));
    assert!((900..=910).contains(&before), "{before} MiB");
    // Memory has room for one and a half of them: the older one goes, and the second read finds all of its own.
    assert_eq!(read_bytes(&format!("{a}, {b}, {b}")), before);
    // What was read twice stays while something is read once.
    let kept = read_bytes(&format!("{a}, {a}, {b}, {b}, {a}"));
    assert!(kept <= before + 310, "{kept} MiB");
}
