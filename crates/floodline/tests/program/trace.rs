// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tracer on this machine's kernel, held against the kernel's own text of the same events, and what happens
//! where it may not trace. Needs root, tools of a distribution and a free loop device; skipped
//! elsewhere. Mounts and the tracing instance are in a namespace of their own and end with the test; on the
//! machine itself only a loop device of the test is touched.

use crate::harness::{command, floodline, kills, outcome};
use floodline_record::record::{Event, What};
use floodline_record::traced::throttle::Domain;
use floodline_skip::{Need, skip};
use libbpf_rs::query::ProgInfoIter;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Writes a prime number of 64 KiB blocks to a device that is held to 4 MiB, while `$1` records (twice at
/// once) until the writer has ended, and keeps the kernel's text of the throttle events.
const THROTTLED: &str = r#"
set -e
floodline=$1; cd "$2"
mount -t tracefs tracefs /sys/kernel/tracing
instance=/sys/kernel/tracing/instances/floodline-test-$$; mkdir $instance
clean() {
    echo 0 > $instance/events/enable
    mountpoint -q mnt && umount mnt
    [ -z "$loop" ] || losetup -d $loop
    rmdir $instance
}
trap clean EXIT
truncate -s 200M disk; mkfs.ext4 -q -F disk; mkdir mnt
loop=$(losetup -f --show disk); mount $loop mnt
bdi=/sys/class/bdi/$(cat /sys/block/${loop#/dev/}/dev)
echo 1 > $bdi/strict_limit; echo 4194304 > $bdi/max_bytes
echo 1 > $instance/events/writeback/balance_dirty_pages/enable
$floodline record --every 500ms -o one.flr --trace on & one=$!
$floodline record --every 700ms -o two.flr --trace on & two=$!
# The first sample comes when the tracer is attached.
for file in one.flr two.flr; do
    until [ "$($floodline replay $file 2> /dev/null | wc -l)" -ge 3 ]; do sleep 0.1; kill -0 $one; kill -0 $two; done
done
# On a busy machine the writer may be too slow to be paused.
for n in 1 2 3 4; do
    dd if=/dev/zero of=mnt/file$n bs=64k count=509 2> /dev/null
    ! grep -q ' pause=[1-9]' $instance/trace || break
done
kill -INT $one $two; wait $one; wait $two
echo 0 > $instance/events/enable
cat $instance/trace > text; basename $bdi > bdi
"#;

/// Whether this process may trace. If not, the test is skipped.
#[track_caller]
pub(crate) fn may_trace() -> bool {
    let probe = floodline(&["doctor", "--for", "0s", "--rule", "dirty-cliff", "--trace", "on", "--fail-on", "never"]);
    if probe.code != 0 {
        skip(Need::Trace, probe.stderr);
    }
    probe.code == 0
}

/// Sums of one device: pauses, milliseconds, events without a pause.
#[derive(Debug, Default, PartialEq)]
struct Sums {
    pauses: u64,
    pause_ms: u64,
    unpaused: u64,
}

fn of_text(text: &str, bdi: &str) -> Sums {
    let mut sums = Sums::default();
    for line in text.lines().filter(|line| line.contains(&format!("balance_dirty_pages: bdi {bdi}: "))) {
        let pause = line.split(" pause=").nth(1).and_then(|rest| rest.split(' ').next()?.parse::<i64>().ok());
        let pause = pause.expect("a pause in every line");
        match u64::try_from(pause) {
            Ok(pause @ 1..) => {
                sums.pauses += 1;
                sums.pause_ms += pause;
            }
            _ => sums.unpaused += 1,
        }
    }
    sums
}

fn of_recording(path: &Path, bdi: &str) -> Sums {
    let lines = floodline(&["export", path.to_str().expect("a path of UTF-8"), "--format", "jsonl"]).stdout;
    let mut sums = Sums::default();
    for line in lines.lines().filter(|line| line.starts_with(r#"{"record":"event""#)) {
        let line: serde_json::Value = serde_json::from_str(line).expect("a line of JSON");
        let event: Event = serde_json::from_value(line["event"].clone()).expect("an event");
        let What::Throttled(event) = event.what else { continue };
        if event.bdi.to_string() == bdi {
            assert_eq!(event.domain, Domain::Strictlimit);
            assert!(event.pause_ns_max <= event.pause_ns);
            assert_eq!(event.longest.is_some(), event.pauses > 0);
            sums.pauses += event.pauses;
            sums.pause_ms += event.pause_ns.0 / 1_000_000;
            sums.unpaused += event.unpaused;
        }
    }
    sums
}

#[test]
fn pauses_add_up_to_what_the_kernel_prints_for_two_recorders_at_once() {
    if !may_trace() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let script = ["-m", "bash", "-c", THROTTLED, "throttled", env!("CARGO_BIN_EXE_floodline")];
    let run = Command::new("unshare").args(script).arg(folder.path()).output();
    let Some(run) = run.ok().filter(|run| run.status.success()) else {
        return skip(Need::Root, "no loop device with a strict limit can be made here");
    };
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    let (text, bdi) = (read("text"), read("bdi"));
    let expect = of_text(&text, bdi.trim());
    assert!(expect.pauses > 0, "{run:?}");
    for name in ["one.flr", "two.flr"] {
        assert_eq!(of_recording(&folder.path().join(name), bdi.trim()), expect, "{name}");
    }
}

/// Numbers of the tracer's programs that a process holds and that are in the kernel. libbpf also loads some for a moment,
/// to see what the kernel can do.
pub(crate) fn programs_of(pid: u32) -> Vec<u32> {
    let files = std::fs::read_dir(format!("/proc/{pid}/fdinfo")).into_iter().flatten().flatten();
    let texts = files.filter_map(|file| std::fs::read_to_string(file.path()).ok());
    let number = |text: String| text.lines().find_map(|line| line.strip_prefix("prog_id:"))?.trim().parse().ok();
    let held: Vec<u32> = texts.filter_map(number).collect();
    let ours = ProgInfoIter::default().filter(|program| program.name.to_string_lossy().starts_with("on_"));
    ours.map(|program| program.id).filter(|number| held.contains(number)).collect()
}

/// Whether a program is in the kernel.
fn is_loaded(number: u32) -> bool {
    ProgInfoIter::default().any(|program| program.id == number)
}

/// `FLOODLINE_KILLS` says how many; `make kills` runs 10.
#[test]
fn nothing_stays_attached_after_a_kill() {
    if !may_trace() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for kill in 0..kills(1, 10) {
        let file = folder.path().join(format!("{kill}.flr"));
        let args = ["record", "--trace", "on", "--every", "100ms", "--for", "60s", "-o", file.to_str().unwrap()];
        let mut child = command(&args).stderr(Stdio::null()).spawn().unwrap();
        let tries = || (0..200).map(|_| std::thread::sleep(Duration::from_millis(50)));
        let held = tries().map(|()| programs_of(child.id())).find(|held| !held.is_empty());
        // While the programs are loaded, while they are attached, and while they trace.
        std::thread::sleep(Duration::from_millis(kill * 150));
        let held: Option<Vec<u32>> = held.map(|held| [held, programs_of(child.id())].concat());
        child.kill().unwrap();
        child.wait().unwrap();
        let held = held.expect("the tracer's programs");
        // The kernel lets go of them a moment later.
        let gone = || !held.iter().any(|number| is_loaded(*number));
        assert!(tries().any(|()| gone()), "kill {kill}: {held:?}");
        // What was recorded until then is there to be read.
        let read = std::fs::read(&file).unwrap_or_default();
        let decoder = floodline_record::recording::Decoder::new(&read[..]);
        assert!(read.is_empty() || decoder.is_ok_and(|decoder| decoder.into_iter().all(|record| record.is_ok())));
    }
}

#[test]
fn who_may_not_trace_is_told_so_and_goes_on_without() {
    const NOBODY: u32 = 65534;
    if !rustix::process::geteuid().is_root() {
        return skip(Need::Root, "only root can become a user who may not trace");
    }
    // The program may lie where nobody may look.
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("floodline");
    std::fs::copy(env!("CARGO_BIN_EXE_floodline"), &program).unwrap();
    std::fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let run = |trace: &str| {
        let mut command = Command::new(&program);
        command.args(["doctor", "--for", "100ms", "--every", "100ms", "--fail-on", "never", "--format", "json"]);
        command.args(["--trace", trace]);
        outcome(command.env_clear().uid(NOBODY).gid(NOBODY).output().unwrap())
    };
    let on = run("on");
    assert_eq!(on.code, 3, "{on}");
    assert!(on.stderr.contains("cannot trace: trace of"), "{on}");
    assert!(on.stderr.contains("--trace auto continues without tracing"), "{on}");
    let auto = run("auto");
    assert_eq!(auto.code, 0, "{auto}");
    let report: serde_json::Value = serde_json::from_str(&auto.stdout).unwrap();
    let gaps = report["gaps"].as_array().unwrap();
    let named = |gap: &serde_json::Value| {
        gap["source"].as_str().is_some_and(|source| source.starts_with("trace of writeback/balance_dirty_pages"))
    };
    assert!(gaps.iter().any(named), "{auto}");
    let off: serde_json::Value = serde_json::from_str(&run("off").stdout).unwrap();
    assert!(!off["gaps"].to_string().contains("trace of"), "{off}");
}

/// Traces with 16 KiB of locked memory and two capabilities, where tracefs is mounted: in a mount namespace of its own.
const CONFINED: &str = r#"
mount -t tracefs tracefs /sys/kernel/tracing && ulimit -l 16 && exec setpriv --bounding-set=-all,+bpf,+perfmon \
    --inh-caps=-all "$0" doctor --for 0s --fail-on never --format json --trace on
"#;

#[test]
fn little_locked_memory_and_two_capabilities_are_enough() {
    if !may_trace() {
        return;
    }
    let can = Command::new("unshare").args(["-m", "setpriv", "--bounding-set=-all,+bpf,+perfmon", "true"]).output();
    if !can.is_ok_and(|run| run.status.success()) {
        return skip(Need::Root, "no unshare and setpriv that can take capabilities away");
    }
    let run = Command::new("unshare").args(["-m", "bash", "-c", CONFINED, env!("CARGO_BIN_EXE_floodline")]).output();
    let run = outcome(run.unwrap());
    assert_eq!(run.code, 0, "{run}");
    let report: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    let gaps = report["gaps"].as_array().unwrap();
    assert!(gaps.iter().all(|gap| gap["source"] != "trace of writeback/balance_dirty_pages"), "{run}");
}

#[test]
fn a_single_sample_starts_no_tracer_and_says_so() {
    let run = floodline(&["doctor", "--for", "0s", "--fail-on", "never", "--format", "json"]);
    assert_eq!(run.code, 0, "{run}");
    let report: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    let of_tracer =
        |gap: &&serde_json::Value| gap["source"].as_str().is_some_and(|source| source.starts_with("trace of"));
    let gaps: Vec<_> = report["gaps"].as_array().unwrap().iter().filter(of_tracer).collect();
    assert_eq!(gaps.len(), 4, "{run}");
    assert!(gaps.iter().all(|gap| gap.to_string().contains("--for 10s")), "{gaps:?}");
}
