// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much a second thread helps: a sweep of 64 runs by the program itself, on 1 and on 2 threads. Run with
//! `cargo bench -p floodline`; the ratio of the two says it.

use std::process::{Command, Stdio};

fn main() {
    divan::main();
}

#[divan::bench(args = [1, 2], sample_count = 3, sample_size = 1)]
fn of_64_runs(jobs: u32) {
    let scenario = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/dirty-cliff.toml");
    let bytes: Vec<String> = (1..=16).map(|step| format!("{}M", step * 8)).collect();
    let status = Command::new(env!("CARGO_BIN_EXE_floodline"))
        .args(["sweep", scenario, "--variant", "incident-short", "--for", "5s", "--jobs", &jobs.to_string()])
        .args(["--grid", &format!("vm.dirty_bytes={}", bytes.join(",")), "--grid", "kernel=5.10,6.1,6.12,7.2"])
        .stdout(Stdio::null())
        .status();
    assert!(status.is_ok_and(|status| status.success()), "the sweep ran");
}
