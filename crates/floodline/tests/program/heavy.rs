// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recordings that are small and stand for much end in little time and memory, or are refused by name. The limits are on
//! CPU time, so that a busy machine does not fail them.

use floodline_testkit::heavy::Heavy;
use floodline_testkit::hostile::recording;
use std::process::Command;

/// Seconds of CPU time, of a build without optimisation.
const SECONDS: u32 = 20;
/// Address space, KiB.
const KIB: u32 = 1_500_000;

fn check(kind: Heavy, size: u32, commands: &[&str]) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("heavy.flr");
    let bytes = recording(&kind.records(size));
    assert!(bytes.len() < 120_000, "{kind:?} is {} bytes: not small", bytes.len());
    std::fs::write(&path, &bytes).expect("a file");
    for command in commands {
        let program = env!("CARGO_BIN_EXE_floodline");
        let limited = format!("ulimit -t {SECONDS} -v {KIB} && exec {program} {command} \"$0\" >/dev/null");
        let output = Command::new("sh").arg("-c").arg(limited).arg(&path).output().expect("a shell");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.code().is_some_and(|code| code <= 2),
            "{command} on {kind:?} of {size}, {} bytes: {}: {said}",
            bytes.len(),
            output.status
        );
    }
}

const ALL: &[&str] = &["doctor", "budget", "ledger", "replay --every 60s", "export --format perfetto"];

#[test]
fn rows_that_do_not_change_are_cheap_or_refused() {
    check(Heavy::NewRows, 500_000, ALL);
    check(Heavy::StillRows, 1000, ALL);
}

#[test]
fn things_that_are_all_alike_are_cheap_or_refused() {
    check(Heavy::Gaps, 80_000, ALL);
    check(Heavy::Gaps, 300_000, ALL);
    check(Heavy::Notes, 60_000, ALL);
    check(Heavy::Processes, 20_000, ALL);
    check(Heavy::Asleep, 25_000, ALL);
}

#[test]
fn things_that_refer_to_each_other_take_no_more_than_their_number() {
    check(Heavy::Stacks, 2000, ALL);
    check(Heavy::Chain, 2500, ALL);
    check(Heavy::Written, 16_000, ALL);
    check(Heavy::Files, 9000, ALL);
}
