// SPDX-License-Identifier: MIT OR Apache-2.0
//! `floodline simulate`: what is printed, kept and refused; the same seed prints the same bytes.

use crate::harness::{Run, floodline, interrupted_when_it_speaks, interrupted_with};
use serde_json::Value;
use std::path::PathBuf;

/// A scenario in a file that goes away with this.
pub(crate) struct ScenarioPath {
    path: PathBuf,
    pub(crate) folder: tempfile::TempDir,
}

impl ScenarioPath {
    pub(crate) fn as_str(&self) -> &str {
        self.path.to_str().expect("a plain path")
    }
}

/// Writes a scenario to a file.
pub(crate) fn scenario(text: &str) -> ScenarioPath {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("small.toml");
    std::fs::write(&path, text).expect("written");
    ScenarioPath { path, folder }
}

/// A writer that a small disk cannot keep up with, and one that it can.
pub(crate) const SMALL: &str = r#"name = "small"
summary = "a writer and a disk"

[machine]
memory = "512 MiB"

[machine.devices.data]
size = "1 GiB"
write_bandwidth = "20 MB/s"

[machine.mounts."/data"]
type = "ext4"
device = "data"

[machine.cgroups."box{i}"]
instances = 2

[workload]
duration = "4s"

[workload.tasks.writer]
cgroup = "box{i}"
steps = [
  { write = { file = "/data/x{i}", block = "256 KiB", total = "16 MiB" } },
  { fsync = { file = "/data/x{i}" } },
]

[variants.incident]
expect.figures."writer.fsync.max_seconds" = { min = "1s" }

[variants.remedy]
machine.devices.data.write_bandwidth = "400 MB/s"
expect.figures."writer.fsync.max_seconds" = { max = "500ms" }

[variants.wrong]
expect.figures."writer.fsync.max_seconds" = { max = "1ms" }
"#;

fn json(run: &Run) -> Value {
    serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run}"))
}

/// The same with a variant `long` that nobody waits for.
pub(crate) fn long() -> ScenarioPath {
    let steps = "[{ write = { file = \"/data/x{i}\", size = \"16 MiB\" } }]";
    let long = format!("[variants.long]\nworkload.duration = \"6h\"\nworkload.tasks.writer.steps = {steps}\n");
    scenario(&format!("{SMALL}\n{long}"))
}

#[test]
fn a_run_prints_its_seed_its_figures_and_that_all_is_as_expected() {
    let small = scenario(SMALL);
    let run = floodline(&["simulate", small.as_str()]);
    assert_eq!(run.code, 0, "{run}");
    assert!(run.stderr.contains("seed 0, kernel 6.12"), "{run}");
    for part in ["small (incident) on 6.12.0-simulated", "writer.fsync", "As the scenario expects."] {
        assert!(run.stdout.contains(part), "{part}: {run}");
    }
}

#[test]
fn two_runs_of_one_seed_print_the_same_bytes_and_keep_the_same_recording() {
    let small = scenario(SMALL);
    let once = |name: &str| {
        let target = small.folder.path().join(name);
        let args = ["simulate", small.as_str(), "--seed", "7", "--format", "json", "--save"];
        let run = floodline(&[&args[..], &[target.to_str().expect("a plain path")]].concat());
        assert_eq!(run.code, 0, "{run}");
        (run.stdout.replace(name, ""), std::fs::read(target).expect("the recording"))
    };
    let (one, two) = (once("a.flr"), once("b.flr"));
    assert_eq!(one.0, two.0);
    assert!(one.1 == two.1, "recordings of {} and {} bytes differ", one.1.len(), two.1.len());
}

#[test]
fn what_is_not_as_expected_is_told_with_exit_code_1() {
    let small = scenario(SMALL);
    let run = floodline(&["simulate", small.as_str(), "--variant", "wrong"]);
    assert_eq!(run.code, 1, "{run}");
    assert!(run.stdout.contains("writer.fsync.max_seconds is"), "{run}");
}

#[test]
fn a_recording_of_a_simulation_is_read_like_any_other() {
    let small = scenario(SMALL);
    let target = small.folder.path().join("run.flr");
    let target = target.to_str().expect("a plain path");
    let run = floodline(&["simulate", small.as_str(), "--save", target]);
    assert_eq!(run.code, 0, "{run}");
    let run = floodline(&["doctor", target, "--format", "json"]);
    assert!(run.code <= 1, "{run}");
    let run = floodline(&["simulate", small.as_str(), "--save", target]);
    assert_eq!(run.code, 2, "it is not overwritten: {run}");
}

#[test]
fn two_variants_are_printed_side_by_side() {
    let small = scenario(SMALL);
    let run = floodline(&["simulate", small.as_str(), "--vs", "remedy"]);
    assert_eq!(run.code, 0, "{run}");
    let line = run.stdout.lines().find(|line| line.starts_with("writer.fsync.max")).unwrap_or_default();
    assert!(line.contains('%'), "{run}");
    assert!(!run.stderr.contains("noise unknown"), "a model has none: {run}");
    assert!(run.stdout.replace('\n', " ").contains("add --all"), "{run}");
    let all = floodline(&["simulate", small.as_str(), "--vs", "remedy", "--all"]);
    assert!(all.code == 0 && all.stdout.lines().count() > run.stdout.lines().count(), "{all}");
}

#[test]
fn of_two_variants_that_which_is_not_as_expected_is_named() {
    let small = scenario(SMALL);
    let run = floodline(&["simulate", small.as_str(), "--vs", "wrong"]);
    assert_eq!(run.code, 1, "{run}");
    assert!(run.stderr.contains("wrong is not as the scenario expects: writer.fsync.max_seconds is"), "{run}");
    assert!(!run.stderr.contains("incident is not"), "{run}");
}

#[test]
fn settings_kernels_and_copies_change_the_run() {
    let small = scenario(SMALL);
    let with = |args: &[&str]| {
        let all = [&["simulate", small.as_str(), "--format", "json"], args].concat();
        json(&floodline(&all))
    };
    let written = |value: &Value| value["figures"]["devices.written_bytes"]["value"].as_f64().expect("a figure");
    let two = with(&[]);
    assert!(written(&with(&["--instances", "4"])) > 1.5 * written(&two), "{two}");
    assert_eq!(with(&["--kernel", "5.10"])["kernel_version"], "5.10.0");
    let fsync = |value: &Value| value["figures"]["writer.fsync.max_seconds"]["value"].as_f64().expect("a figure");
    // The name of a host for a key of the file.
    assert_eq!(with(&["--set", "bdi/data/max_ratio=10"]), with(&["--set", "machine.devices.data.bdi.max_ratio=10"]));
    let (slow, tight) = (with(&[]), with(&["--set", "vm.dirty_bytes=1M"]));
    assert!(fsync(&tight) < fsync(&slow) / 2.0, "{tight}");
}

#[test]
fn what_cannot_be_is_refused_with_the_rule_that_it_breaks() {
    let small = scenario(SMALL);
    let check = |args: &[&str], says: &str| {
        let run = floodline(&[&["simulate", small.as_str()], args].concat());
        assert_eq!(run.code, 2, "{run}");
        assert!(run.stderr.contains(says), "{says}: {run}");
    };
    check(&["--set", "vm.dirty_bytes=1"], "the kernel refuses 1 here (EINVAL): it takes at least 8192");
    check(&["--kernel", "3.10"], "Linux 3.10.0 is older than 4.4, the oldest kernel that the model supports");
    check(&["--set", "vm.dirty_ratio=101"], "it takes 0 to 100");
    check(&["--set", "machine.memory=1M"], "no kernel boots in less than 16 MiB");
    check(&["--set", "machine.devices.data.write_bandwidth=0 B/s"], "nothing would ever complete");
    check(&["--set", "machine.hz=77"], "100, 250, 300 or 1000");
    check(&["--set", "dirty_bytes=1M"], "no such key; write vm.dirty_bytes");
    check(&["--set", "bdi/254:16/strict_limit=0"], "write machine.devices.NAME.bdi.strict_limit (devices here: data)");
    check(&["--set", "machine.devices.dat.size=1G"], "no device is called \"dat\" (did you mean \"data\"?)");
    check(&["--set", "vm.dirty_bytes=18446744073709551615"], "refuses more than 2^32 - 1 pages (ERANGE)");
    check(&["--for", "99999999h"], "duration too long: the maximum is 292 years");
    check(&["--instances", "10000000"], "16-bit ids");
    check(&["--kernel", "six"], "invalid kernel version");
    check(&["--variant", "cure"], "its variants: incident, remedy, wrong");
}

#[test]
fn a_run_that_is_refused_leaves_the_kept_file_as_it_was() {
    let small = scenario(SMALL);
    let target = small.folder.path().join("kept.flr");
    let path = target.to_str().expect("a plain path");
    std::fs::write(&target, "earlier").expect("written");
    let check = |args: &[&str]| {
        let run = floodline(&[&["simulate", small.as_str(), "--save", path, "--force"], args].concat());
        assert_eq!(run.code, 2, "{run}");
        assert_eq!(std::fs::read(&target).expect("still there"), b"earlier");
    };
    check(&["--kernel", "3.10"]);
    check(&["--set", "vm.nope=1"]);
    check(&["--for", "0s"]);
}

#[test]
fn a_full_disk_is_told_with_its_own_exit_code() {
    let small = scenario(SMALL);
    let run = floodline(&["simulate", small.as_str(), "--save", "/dev/full"]);
    assert_eq!(run.code, 3, "{run}");
    assert!(run.stderr.contains("cannot write /dev/full: No space left on device"), "{run}");
}

#[test]
fn a_task_that_cannot_do_a_step_is_not_as_expected() {
    let absent = SMALL.replace("{ fsync = { file = \"/data/x{i}\" } },", "{ fsync = { file = \"/data/none\" } },");
    let absent = scenario(&absent);
    let run = floodline(&["simulate", absent.as_str(), "--variant", "remedy"]);
    assert_eq!(run.code, 1, "{run}");
    assert!(run.stdout.contains("writer failed 2 times: steps[1].fsync: "), "{run}");
}

#[test]
fn what_only_a_real_kernel_can_run_is_refused_by_name() {
    let real = SMALL.replace(
        "[variants.incident]",
        "[workload.tasks.redis.program]\npackage = \"redis-server\"\ncommand = [\"redis-server\"]\n[variants.incident]",
    );
    let real = scenario(&real);
    let run = floodline(&["simulate", real.as_str()]);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stderr.contains("workload.tasks.redis.program"), "{run}");
    assert!(run.stderr.contains("floodline lab run"), "{run}");
}

#[test]
fn of_two_variants_none_is_begun_after_an_interruption() {
    let long = long();
    let run = interrupted_when_it_speaks(&["simulate", long.as_str(), "--variant", "long", "--vs", "long"]);
    assert!(run.code != 0 && run.stderr.contains("so nothing is compared"), "{run}");
    assert_eq!(run.stderr.matches("interrupted after").count(), 1, "{run}");
}

#[test]
fn a_run_that_is_interrupted_keeps_its_recording_and_is_not_judged() {
    let long = long();
    let kept = long.folder.path().join("kept.flr");
    let path = kept.to_str().expect("a plain path");
    let run = interrupted_with(&["simulate", long.as_str(), "--variant", "long", "--save", path], &kept);
    assert_eq!(run.code, 1, "{run}");
    assert!(run.stderr.contains("interrupted after"), "{run}");
    assert!(run.stdout.contains("was not judged") && !run.stdout.contains("As the scenario expects"), "{run}");
    assert_eq!(floodline(&["export", path, "--format", "jsonl"]).code, 0);
}
