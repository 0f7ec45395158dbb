// SPDX-License-Identifier: MIT OR Apache-2.0
//! `floodline lab`: what it refuses, and real kernels in virtual machines. Tests that boot one are called
//! `vm_…`. They run with the program that `FLOODLINE_GUEST_PROGRAM` names as the guest's init, which
//! `make test` builds. Without it, and where no machine can be run, they are skipped, or fail under
//! `FLOODLINE_REQUIRE_VM=1`.

use crate::harness::{Run, command, floodline};
use floodline_skip::{Need, skip};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// One guest at a time: two would take each other's CPU.
static GUEST: Mutex<()> = Mutex::new(());

fn scenario(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").join(name).with_extension("toml");
    path.to_string_lossy().into_owned()
}

/// The right to run a guest, and the program for it; `None` if the test is skipped.
#[track_caller]
pub(crate) fn guest() -> Option<(MutexGuard<'static, ()>, String)> {
    let program = std::env::var("FLOODLINE_GUEST_PROGRAM").ok();
    let ours = || Need::Vm.required_by().map(|_| env!("CARGO_BIN_EXE_floodline").to_owned());
    let Some(program) = program.or_else(ours) else {
        skip(Need::Vm, "FLOODLINE_GUEST_PROGRAM names no program for the guest (make test builds one)");
        return None;
    };
    Some((GUEST.lock().unwrap_or_else(PoisonError::into_inner), program))
}

/// Exit code of a lab that cannot run machines.
const UNAVAILABLE: i32 = 69;

/// Whether a run reports that machines cannot be run here. If so, the test is skipped.
#[track_caller]
pub(crate) fn is_skipped(run: &Run) -> bool {
    let is_unavailable = run.code == UNAVAILABLE;
    if is_unavailable {
        skip(Need::Vm, run);
    }
    is_unavailable
}

/// Runs variants of scenarios on kernels; each must be as its scenario expects. The figures have bounds for a
/// slow machine; one that is busy with something else may still miss them once, and not twice.
#[track_caller]
fn as_expected(trials: &[(&str, &str, &str)], how: &[&str]) {
    let Some((_guest, program)) = guest() else { return };
    for (name, variant, kernel) in trials {
        let path = scenario(name);
        let args = ["run", &path, "--kernel", kernel, "--variant", variant];
        let args = [&args[..], &["--timeout", "5m", "--guest-program", &program], how].concat();
        let mut outcome = run(&args);
        if outcome.code == 1 {
            outcome = run(&args);
        }
        if is_skipped(&outcome) {
            return;
        }
        // What was missed comes first: logs are cut.
        let missed = outcome.stdout.find("Not as the scenario expects").and_then(|at| outcome.stdout.get(at..));
        assert_eq!(outcome.code, 0, "{name} {variant} {kernel}: {}\n{outcome}", missed.unwrap_or_default());
    }
}

/// The program with what finding tools and kernels needs.
fn lab(args: &[&str]) -> Command {
    let mut command = command(&[&["lab"], args].concat());
    for name in ["PATH", "HOME", "XDG_CACHE_HOME"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command
}

fn finish(child: Child) -> Run {
    let output = child.wait_with_output().expect("it ends");
    Run {
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        code: output.status.code().unwrap_or(-1),
    }
}

/// Runs the lab to its end. Emulation with several threads now and then crashes or hangs a kernel that patches its own
/// code: such a run is made again, twice at most.
pub(crate) fn run(args: &[&str]) -> Run {
    let once = || finish(lab(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts"));
    let mut run = once();
    for _ in 0..2 {
        if has_died(&run) {
            run = once();
        }
    }
    run
}

/// Whether the run ended because its guest's kernel crashed or hung.
fn has_died(run: &Run) -> bool {
    ["the guest's kernel panicked", "sent nothing for"].iter().any(|end| run.stderr.contains(end))
}

#[test]
fn what_cannot_be_run_is_said_before_anything_is_made() {
    let check = |args: &[&str], code: i32, says: &str| {
        let run = floodline(&[&["lab", "run"], args].concat());
        assert_eq!(run.code, code, "{run}");
        assert!(run.stderr.contains(says), "{run}");
    };
    let overlay = scenario("overlay-umount");
    check(&["/nowhere.toml", "--kernel", "6.12"], 2, "cannot read /nowhere.toml");
    check(&[&overlay, "--kernel", "6.12", "--variant", "no"], 2, "has no variant \"no\"");
    check(&[&overlay, "--kernel", "6.12"], 69, "no place for the cache");
}

#[test]
fn a_kernel_that_is_not_there_is_named() {
    let home = tempfile::tempdir().expect("a folder");
    let run = command(&["lab", "run", &scenario("overlay-umount"), "--kernel", "/nowhere/vmlinuz"])
        .env("XDG_CACHE_HOME", home.path())
        .output()
        .expect("it starts");
    assert_eq!(run.status.code(), Some(69));
    assert!(String::from_utf8_lossy(&run.stderr).contains("/nowhere/vmlinuz: No such file"));
}

#[test]
fn a_matrix_names_the_kernel_that_is_not_there_and_real_recordings_are_compared() {
    let home = tempfile::tempdir().expect("a folder");
    let recording = format!("{}/../dev/tests/recordings/exact-budgets-ratio-7.2.flr", env!("CARGO_MANIFEST_DIR"));
    let run = command(&["lab", "matrix", &scenario("exact-budgets"), "--kernels", "/nowhere/vmlinuz"])
        .env("XDG_CACHE_HOME", home.path())
        .output()
        .expect("it starts");
    assert_eq!(run.status.code(), Some(69));
    let run = floodline(&["compare", &recording, &recording]);
    assert_eq!(run.code, 0, "{run}");
    let is_path = |line: &str| line.starts_with("A: ") || line.starts_with("B: ");
    assert!(run.stdout.lines().all(|line| is_path(line) || line.chars().count() <= 80), "{run}");
}

#[test]
fn vm_starved_budgets_and_their_remedy_are_as_expected_on_two_kernels() {
    as_expected(
        &[
            ("starved-budget", "incident-short", "6.12"),
            ("starved-budget", "remedy-short", "6.12"),
            ("starved-budget", "incident-short", "6.1"),
            ("starved-budget", "remedy-short", "6.1"),
        ],
        &["--trace"],
    );
}

#[test]
fn vm_a_journal_on_a_slow_disk_and_its_remedy_are_as_expected() {
    as_expected(
        &[("slow-disk-journal", "incident-short", "6.12"), ("slow-disk-journal", "remedy-short", "6.12")],
        &["--trace"],
    );
}

#[test]
fn vm_real_services_on_a_mirror_and_on_a_slow_disk_are_as_expected() {
    as_expected(
        &[
            ("slow-disk-journal", "incident-real-short", "6.12"),
            ("slow-disk-journal", "remedy-real-short", "6.12"),
            ("dirty-cliff", "incident-redis-short", "6.12"),
        ],
        &["--trace"],
    );
}

/// Programs of two packages as a user and as root; `CODE` is what the last one is expected to end with.
const PROGRAMS: &str = r#"
name = "real"
summary = "programs that end"
[machine]
memory = "1 GiB"
cpus = 2
[machine.devices.disk]
size = "1 GiB"
[machine.mounts."/data"]
type = "ext4"
device = "disk"
[workload]
duration = "20s"
[workload.tasks.build]
setup = [{ mkdir = { path = "/data/build" } }]
[workload.tasks.build.program]
packages = ["tar"]
user = "builder"
env.BLOCKS = "3"
script = """
test "$(stat -c %u /data/build)-$(id -u)" = 1000-1000
cd /data/build
for n in 1 2; do dd if=/dev/zero of=part$n bs=1M count=$BLOCKS status=none; done
tar -cf all.tar part1 part2
"""
exit_code = 0
[workload.tasks.failing.program]
script = "echo no such luck >&2; exit 3"
exit_code = CODE
[expect.figures]
"build.failures_count" = { max = 0 }
"#;

#[test]
fn vm_programs_end_with_their_exit_code_and_what_their_children_write_counts() {
    let Some((_guest, program)) = guest() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("real.toml");
    std::fs::write(&path, PROGRAMS.replace("CODE", "4")).expect("a scenario");
    let path = path.to_str().expect("UTF-8");
    let run = run(&["run", path, "--kernel", "6.12", "--guest-program", &program, "--format", "json"]);
    if is_skipped(&run) {
        return;
    }
    // The other program failed, and nothing else.
    assert_eq!(run.code, 1, "{run}");
    let json: serde_json::Value = serde_json::from_str(&run.stdout).expect("JSON");
    let report = if json.is_array() { &json[0] } else { &json };
    let says =
        "failing failed: program: dash ended by itself with exit code 3, expected 4; its last words: no such luck";
    assert_eq!(report["not_as_expected"], serde_json::json!([says]), "{run}");
    let figure = |name: &str| report["figures"][name]["value"].as_f64().unwrap_or_else(|| panic!("no {name}: {run}"));
    let dirtied = figure("build.dirtied_bytes_per_second") * figure("build.finished_seconds");
    // Twice 6 MiB, all by children, and the time between a program's end and the event of it. Counted twice they are 24.
    let mib = dirtied / f64::from(1 << 20);
    assert!((12.0..22.0).contains(&mib), "{mib} MiB: {run}");
}

/// Stacks of each kind that the lab makes, one over another among them. 8 MiB go to each.
const STACKS: &str = r#"
name = "stacks"
summary = "devices that are made of others"
[machine]
memory = "1 GiB"
cpus = 2
[machine.devices]
a.size = "256 MiB"
b.size = "256 MiB"
c.size = "256 MiB"
d.size = "256 MiB"
e.size = "256 MiB"
f.size = "256 MiB"
g.size = "256 MiB"
h.size = "256 MiB"
stripes.backing = { raid0 = { members = ["a", "b"], chunk = "64 KiB" } }
volume.backing = { linear = { members = ["c", "d"] } }
secret.backing = { crypt = { member = "volume" } }
pairs.backing = { raid10 = { members = ["e", "f", "g", "h"], chunk = "64 KiB" } }
[machine.mounts]
"/stripes" = { type = "ext4", device = "stripes" }
"/secret" = { type = "ext4", device = "secret" }
"/pairs" = { type = "ext4", device = "pairs" }
[workload]
duration = "6s"
[workload.tasks.writer]
steps = [
  { sleep = { for = "1s" } },
  { write = { file = "/stripes/f", block = "64 KiB", total = "8 MiB" } }, { fsync = { file = "/stripes/f" } },
  { write = { file = "/secret/f", block = "64 KiB", total = "8 MiB" } }, { fsync = { file = "/secret/f" } },
  { write = { file = "/pairs/f", block = "64 KiB", total = "8 MiB" } }, { fsync = { file = "/pairs/f" } },
  { sleep = { for = "2s" } },
]
[expect.figures]
"devices.vda.written_bytes" = { min = "4 MiB", max = "5 MiB" }
"devices.vdb.written_bytes" = { min = "4 MiB", max = "5 MiB" }
"devices.vdc.written_bytes" = { min = "8 MiB", max = "9 MiB" }
"devices.vde.written_bytes" = { min = "4 MiB", max = "5 MiB" }
"devices.vdf.written_bytes" = { min = "4 MiB", max = "5 MiB" }
"devices.vdg.written_bytes" = { min = "4 MiB", max = "5 MiB" }
"devices.vdh.written_bytes" = { min = "4 MiB", max = "5 MiB" }
"#;

#[test]
fn vm_stacks_are_made_and_each_disk_has_its_share() {
    let Some((_guest, program)) = guest() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("stacks.toml");
    std::fs::write(&path, STACKS).expect("a scenario");
    let path = path.to_str().expect("UTF-8");
    let run = run(&["run", path, "--kernel", "6.12", "--guest-program", &program]);
    if is_skipped(&run) {
        return;
    }
    assert_eq!(run.code, 0, "{run}");
}

#[test]
fn vm_incidents_are_confirmed_by_the_trace_which_names_the_guilty() {
    as_expected(
        &[("overlay-umount", "incident-short", "7.2"), ("inode-switch-storm", "incident-short", "6.12.43")],
        &["--trace"],
    );
}

#[test]
fn vm_budgets_are_the_kernels_own_to_the_page() {
    as_expected(
        &[("exact-budgets", "ratio", "6.12"), ("exact-budgets", "bytes", "7.2"), ("exact-budgets", "throttled", "6.1")],
        &[],
    );
}

#[test]
fn vm_a_healthy_machine_is_left_alone() {
    as_expected(&[("healthy-idle", "default", "6.1")], &[]);
}

#[test]
fn vm_a_command_runs_in_a_guest_and_floodline_with_it() {
    let Some((_guest, program)) = guest() else { return };
    let script =
        "floodline doctor --for 1s --details >&2; test -t 1 || echo plain; grep -c ' /data ext4 ' /proc/mounts; exit 7";
    let run = run(&["shell", "--kernel", "6.12", "--guest-program", &program, "--", "bash", "-c", script]);
    if is_skipped(&run) {
        return;
    }
    assert_eq!((run.code, run.stdout.as_str()), (7, "plain\n1\n"), "{run}");
    assert!(run.stderr.contains("rules were checked and found nothing") && run.stderr.contains("Linux 6.12."), "{run}");
}

/// Records with the tracer while a process of its own cgroup writes prime numbers of blocks, a CPU goes away and
/// comes back, and the cgroup is removed. Prints what the kernel counted for the process, the cgroup and the disk,
/// then the ledger.
const TRACED: &str = r#"
cd /data; sync
floodline record --trace on --trace-budget 10000 -o /tmp/traced.flr & recorder=$!
until [ "$(floodline replay /tmp/traced.flr 2> /dev/null | wc -l)" -ge 3 ]; do sleep 0.1; done
# A request for zeroes carries no page.
while read -r disk at _; do [ $at != /data ] || break; done < /proc/mounts
/usr/sbin/blkdiscard --zeroout --force --offset $((($(cat /sys/class/block/${disk#/dev/}/size) - 128) * 512)) --length 4096 $disk
mkdir /sys/fs/cgroup/box
bash -c 'echo $$ > /sys/fs/cgroup/box/cgroup.procs
for block in {1..101}; do printf "%0131072d" 0; done > file
echo 0 > /sys/devices/system/cpu/cpu1/online
for block in {1..17}; do printf "%04096d" 0 > small$block; sync -d small$block; done
echo 1 > /sys/devices/system/cpu/cpu1/online
sync -d file; rm small7
echo "process $$"; grep ^write_bytes: /proc/$$/io'
cat /sys/fs/cgroup/box/io.stat; rmdir /sys/fs/cgroup/box
kill -INT $recorder; wait $recorder
floodline ledger /tmp/traced.flr --format json
"#;

#[test]
fn vm_the_ledger_of_a_trace_agrees_with_the_kernels_own_counts() {
    const WRITTEN: u64 = 101 * 131_072 + 17 * 4096;
    let Some((_guest, program)) = guest() else { return };
    for kernel in ["5.10", "7.2"] {
        let run = run(&["shell", "--kernel", kernel, "--guest-program", &program, "--", "bash", "-c", TRACED]);
        if is_skipped(&run) {
            return;
        }
        assert_eq!(run.code, 0, "{kernel}: {run}");
        let (counts, ledger) = run.stdout.split_once("\n{").unwrap_or_else(|| panic!("{kernel}: {run}"));
        let ledger: serde_json::Value = serde_json::from_str(&format!("{{{ledger}")).expect("JSON");
        let count = |name: &str| -> u64 {
            let after = counts.split_whitespace().skip_while(|word| *word != name).nth(1);
            after.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("no {name}: {kernel}: {run}"))
        };
        let line = |list: &str, is_it: &dyn Fn(&serde_json::Value) -> bool| {
            let mut lines = ledger[list].as_array().into_iter().flatten();
            lines.find(|line| is_it(line)).cloned().unwrap_or_else(|| panic!("{kernel} {list}: {run}"))
        };
        // /proc/PID/io counts bytes that become dirty.
        let process = line("processes", &|line| line["pid"] == count("process"));
        assert_eq!(process["dirtied_bytes"], count("write_bytes:"), "{kernel}: {run}");
        assert!(count("write_bytes:") >= WRITTEN, "{kernel}: {run}");
        // Each fdatasync is there, though compilers inline vfs_fsync_range into it.
        let mine = |line: &&serde_json::Value| line["operation"] == "fdatasync";
        let synced =
            ledger["synced"].as_array().into_iter().flatten().filter(mine).filter_map(|line| line["count"].as_u64());
        assert_eq!(synced.sum::<u64>(), 18, "{kernel}: {run}");
        // All of it is at the disk, charged to the cgroup: what else io.stat has is of the filesystem.
        let file = line("files", &|line| line["file"] == "/data/file");
        assert_eq!(file["device_bytes"], 101 * 131_072, "{kernel}: {run}");
        let credited = process["device_bytes"].as_u64().unwrap_or(0);
        assert!((WRITTEN..=WRITTEN + (64 << 10)).contains(&credited), "{kernel}: {run}");
        let cgroup = line("cgroups", &|line| line["device_bytes"] == credited);
        let charged = cgroup["charged_bytes"].as_u64().unwrap_or(0);
        let of_disks = counts.split_whitespace().filter_map(|word| word.strip_prefix("wbytes=")?.parse::<u64>().ok());
        assert!(charged.abs_diff(of_disks.sum()) <= 64 << 10, "{kernel}: {run}");
        let totals = &ledger["totals"];
        let queued: u64 = totals["queued"].as_object().into_iter().flatten().filter_map(|(_, n)| n.as_u64()).sum();
        let completed = totals["diskstats_bytes"].as_u64().unwrap_or(0);
        assert!(queued.abs_diff(completed) <= 64 << 10, "{kernel}: {queued} queued, {completed} completed: {run}");
    }
}

#[test]
fn vm_a_run_that_is_interrupted_keeps_its_recording_and_leaves_nothing() {
    let Some((_guest, program)) = guest() else { return };
    let home = tempfile::tempdir().expect("a folder");
    let save = home.path().join("kept.flr");
    let save = save.to_str().expect("a path");
    // A kernel by its path needs no lists and no network.
    let Some(kernel) = kernel_in_cache() else { return };
    let idle = scenario("healthy-idle");
    let args = ["run", &idle, "--kernel", &kernel, "--accel", "tcg", "--save", save, "--guest-program", &program];
    let recording = || std::fs::read_dir(home.path().join("floodline/runs")).ok()?.flatten().next();
    let size = || recording().and_then(|run| run.path().join("recording.flr").metadata().ok()).map_or(0, |m| m.len());
    let mut deaths = 0;
    let run = loop {
        // A guest that died leaves what it had recorded.
        let _ = std::fs::remove_file(save);
        let mut command = lab(&args);
        command.env("XDG_CACHE_HOME", home.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        // A guest that shares two cores with other guests may take a minute to boot.
        let until = Instant::now() + Duration::from_mins(5);
        while size() < 8192 && Instant::now() < until && child.try_wait().expect("its state").is_none() {
            std::thread::sleep(Duration::from_millis(100));
        }
        if child.try_wait().expect("its state").is_none() {
            let pid = child.id().to_string();
            assert!(Command::new("kill").args(["-INT", &pid]).status().expect("kill runs").success());
            break finish(child);
        }
        let run = finish(child);
        deaths += 1;
        assert!(has_died(&run) && deaths < 3, "it ended before it was interrupted: {run}");
    };
    assert_eq!(run.code, 69, "{run}");
    assert!(run.stderr.contains("interrupted") && run.stderr.contains("kept.flr"), "{run}");
    assert!(recording().is_none(), "the run's directory is gone");
    let replayed = floodline(&["replay", save]);
    assert!(replayed.code == 0 && replayed.stdout.lines().count() > 1, "{replayed}");
}

/// Directory of a kernel that the lab has fetched; `None` where it cannot.
fn kernel_in_cache() -> Option<String> {
    let fetched = run(&["kernels", "--fetch", "6.12", "--format", "json"]);
    if is_skipped(&fetched) {
        return None;
    }
    assert_eq!(fetched.code, 0, "{fetched}");
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(home).expect("a home");
    let kernels = std::fs::read_dir(cache.join("floodline/kernels")).expect("kernels").flatten();
    let newest = kernels.map(|entry| entry.path()).filter(|path| path.to_string_lossy().contains("/6.12.")).max();
    Some(newest.expect("a kernel").to_string_lossy().into_owned())
}

#[test]
fn a_change_that_doctor_prints_is_made_and_judged() {
    let Some(kernel) = kernel_in_cache() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().to_str().expect("UTF-8");
    // Recordings of the model stand for those of a kernel.
    let simulate = |variant: &str, kernel: &str, settings: &[String]| {
        let save = format!("{dir}/dirty-cliff.{variant}.{kernel}.flr");
        let path = scenario("dirty-cliff");
        let mut args = vec!["simulate", &path, "--variant", "incident-short", "--kernel", "6.12", "--save", &save];
        settings.iter().for_each(|setting| args.extend(["--set", setting]));
        let run = floodline(&args);
        assert!(run.code <= 1, "{run}");
    };
    let advise = |code: i32| {
        let path = scenario("dirty-cliff");
        let args = ["advise", &path, "--variants", "incident-short", "--kernels", &kernel, "--recordings", dir];
        let run = run(&[&args[..], &["--no-run", "--format", "json"]].concat());
        assert_eq!(run.code, code, "{run}");
        serde_json::from_str::<serde_json::Value>(&run.stdout).expect("JSON")["runs"].clone()
    };
    assert_eq!(advise(0), serde_json::json!([]), "nothing was run");
    let release = Path::new(&kernel).file_name().and_then(|name| name.to_str()).expect("UTF-8");
    let version = release.split(['-', '+']).find(|part| part.starts_with("6.12.")).expect("a version");
    simulate("incident-short", version, &[]);
    // No run was possible: the table says why in its row.
    let first = advise(69);
    assert_eq!(first[0]["verdict"], "not_run", "{first}");
    assert!(first[0]["note"].as_str().is_some_and(|note| note.contains("no recording found")), "{first}");
    simulate("incident-short.advised", version, &["vm.dirty_bytes=64M".into(), "vm.dirty_background_bytes=16M".into()]);
    let second = &advise(0)[0];
    assert_eq!(second["found_before"][0], "dirty-cliff", "{second}");
    assert!(second["changes"].as_array().is_some_and(|changes| !changes.is_empty()), "{second}");
    let longest = &second["figures"][0];
    assert_eq!(longest["name"], "durable.longest_wait_seconds", "{second}");
    assert!(longest["after"].as_f64() < longest["before"].as_f64(), "{second}");
    assert!(["cured", "helped"].contains(&second["verdict"].as_str().unwrap_or_default()), "{second}");
}

#[test]
fn vm_a_task_that_fails_is_judged_and_its_figures_are_kept() {
    let Some((_guest, program)) = guest() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("failing.toml");
    let text = "name = \"failing\"\nsummary = \"One task fails, the other goes on.\"\n\
        [machine]\nmemory = \"512 MiB\"\ncpus = 1\n[machine.devices.sda]\nsize = \"256 MiB\"\n\
        [machine.mounts.\"/data\"]\ntype = \"ext4\"\ndevice = \"sda\"\n[workload]\nduration = \"3s\"\n\
        [workload.tasks.failing]\nsteps = [{ read = { file = \"/data/missing\" } }]\n\
        [workload.tasks.well]\nsteps = [{ write = { file = \"/data/a\", rate = \"100/s\" } }]\n";
    std::fs::write(&path, text).expect("a file");
    let path = path.to_str().expect("UTF-8");
    let run = run(&["run", path, "--kernel", "6.12", "--timeout", "5m", "--guest-program", &program]);
    if is_skipped(&run) {
        return;
    }
    assert_eq!(run.code, 1, "{run}");
    assert!(run.stdout.contains("steps[0].read: open /data/missing"), "{run}");
    assert!(run.stdout.contains("well.write"), "{run}");
    // The model reports the same step by the same name.
    let simulated = floodline(&["simulate", path]);
    assert_eq!(simulated.code, 1, "{simulated}");
    assert!(simulated.stdout.contains("steps[0].read: open /data/missing"), "{simulated}");
}

#[test]
fn a_run_takes_the_changes_that_simulate_takes_and_refuses_them_before_a_guest_starts() {
    let check = |args: &[&str], says: &str| {
        let run = floodline(&[&["lab", "run", "dirty-cliff", "--kernel", "6.12"], args].concat());
        assert!(run.code == 2 && run.stderr.contains(says), "{args:?}: {run}");
    };
    check(&["--set", "vm.dirty_bytes"], "expected KEY=VALUE");
    check(&["--set", "vm.dirty_bytes=1"], "the kernel refuses 1 here");
    check(&["--instances", "0"], "--instances");
    check(&["--for", "soon"], "--for");
}
