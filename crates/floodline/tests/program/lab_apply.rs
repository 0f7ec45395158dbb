// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes of the settings of a real kernel, in a guest: what `/proc/sys/vm` has after each end that a change can have.

use crate::harness::Run;
use crate::lab::{guest, is_skipped, run};

/// Prints the four thresholds after each event: `dirty_bytes`, `dirty_ratio`, `dirty_background_bytes`,
/// `dirty_background_ratio`.
const EVENTS: &str = r#"
cd /proc/sys/vm
state() { echo "$1:" $(cat dirty_bytes dirty_ratio dirty_background_bytes dirty_background_ratio); }
guards() {
  for process in /proc/[0-9]*; do
    mapfile -d '' -t words 2> /dev/null < $process/cmdline && [ "${words[1]:-}" = --guard-of-a-change ] && echo ${process#/proc/}
  done
}
# Its parent is the init of the guest; the keeper's is the guard.
guard() { for pid in $(guards); do grep -q "^PPid:[[:space:]]1$" /proc/$pid/status && echo $pid; done; }
gone() { for i in {1..200}; do [ -n "$(guards)" ] || return 0; sleep 0.1; done; echo "guards stay"; }
sets="--set vm.dirty_bytes=134217728 --set vm.dirty_background_bytes=33554432 --yes"
apply() { floodline apply $sets "$@" > /dev/null; }
rollback() { floodline rollback > /dev/null; }

state start
apply; state applied; rollback; state rollback
apply --confirm-within 1s; gone; state deadline
apply --confirm-within 10s; kill -9 $(guard); sleep 0.2; state 'guard killed'; gone; state 'keeper restored'
apply; kill -9 $(guards) 2> /dev/null; state 'both killed'; floodline history > /dev/null; state 'next command'
for delay in 0.05 0.15 0.25; do
  floodline apply $sets > /dev/null & applier=$!
  sleep $delay; kill -9 $applier; wait $applier 2> /dev/null
  rollback 2> /dev/null; gone; state 'applier killed'
done
apply; echo 300003328 > dirty_bytes; floodline rollback | grep -c 'vm.dirty_bytes has the value of another program'; state administrator
echo 100001792 > dirty_bytes; echo 7 > dirty_background_ratio
floodline apply --set vm.dirty_ratio=30 --set vm.dirty_background_bytes=50003968 --yes > /dev/null; state mixed
rollback; state 'mixed rollback'
echo 20 > dirty_ratio; echo 10 > dirty_background_ratio
for i in 1 2; do (exec 2> /dev/null; while :; do dd if=/dev/zero of=/data/$i bs=1M count=300 conv=notrunc; done) & writers="$writers $!"; done
sleep 1
for i in 1 2 3; do apply; rollback; done; state storm
kill -9 $writers; wait $writers 2> /dev/null
# No write to the disk of the journal ends: not those of the guard either.
apply --state-dir /data/state --confirm-within 12s; fsfreeze -f /data; state 'disk blocked'
for i in {1..250}; do [ "$(cat dirty_ratio)" = 0 ] || break; sleep 0.1; done; state 'disk still blocked'
floodline history > /dev/null; fsfreeze -u /data; gone
floodline history --state-dir /data/state | grep -c 'put back: it was not confirmed in time'
apply; floodline confirm --same-login > /dev/null; gone; state confirmed
grep -ho '"took_ns":[0-9]*' /var/lib/floodline/journal/*
"#;

const STATES: &str = "\
start: 0 20 0 10
applied: 134217728 0 33554432 0
rollback: 0 20 0 10
deadline: 0 20 0 10
guard killed: 134217728 0 33554432 0
keeper restored: 0 20 0 10
both killed: 134217728 0 33554432 0
next command: 0 20 0 10
applier killed: 0 20 0 10
applier killed: 0 20 0 10
applier killed: 0 20 0 10
1
administrator: 300003328 0 0 10
mixed: 0 30 50003968 0
mixed rollback: 100001792 0 0 7
storm: 0 20 0 10
disk blocked: 134217728 0 33554432 0
disk still blocked: 0 20 0 10
1
confirmed: 134217728 0 33554432 0
";

#[test]
fn vm_a_change_of_a_real_kernel_is_undone_or_kept_as_a_whole() {
    let Some((_guest, program)) = guest() else { return };
    let run = run(&["shell", "--kernel", "6.12", "--guest-program", &program, "--", "bash", "-c", EVENTS]);
    if is_skipped(&run) {
        return;
    }
    let at = run.stdout.find("\"took_ns\"").unwrap_or(run.stdout.len());
    let (states, took) = run.stdout.split_at(at);
    assert_eq!(states, STATES, "{run}");
    let took: Vec<u64> = took.lines().filter_map(|line| line.strip_prefix("\"took_ns\":")?.parse().ok()).collect();
    assert!(took.len() >= 6, "{run}");
    // The decision takes no disk: the slowest restore of an emulated guest that writes as fast as it can took 10 ms.
    assert!(took.iter().all(|took| *took < 1_000_000_000), "{took:?}");
}

/// What an operator does on a host whose administrator switched periodic writeback off: applies what helps against the finding,
/// a candidate on so idle a machine, confirms it, and prints what is in force.
const AGAINST_THE_FINDING: &str = r#"
echo 'vm.dirty_writeback_centisecs = 0' > /etc/sysctl.d/10-admin.conf
echo 0 > /proc/sys/vm/dirty_writeback_centisecs
against="floodline apply --finding contradictory-dirty-settings --yes --persist"
$against > refused.txt 2>&1 && echo "a candidate was applied"
grep -c 'apply it anyway: add --candidate' refused.txt
{ $against --candidate && floodline verify && floodline confirm --same-login; } > applied.txt || cat refused.txt applied.txt
cat /proc/sys/vm/dirty_writeback_centisecs
"#;

/// One boot of a system with systemd: its disk, a command there, and whether the power is cut after it. The command prints
/// the four thresholds.
fn boot(program: &str, disk: &str, events: &str) -> Run {
    let script =
        format!("floodline history > /dev/null 2>&1; {events}; cat /proc/sys/vm/dirty_{{,background_}}{{bytes,ratio}}");
    run(&[
        "shell",
        "--kernel",
        "6.12",
        "--guest-program",
        program,
        "--system",
        disk,
        "--power-cut",
        "--",
        "bash",
        "-c",
        &script,
    ])
}

#[test]
fn vm_a_power_cut_ends_a_change_that_waits_and_keeps_one_that_is_confirmed() {
    let Some((_guest, program)) = guest() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let disk = folder.path().join("disk").to_string_lossy().into_owned();
    let set = "floodline apply --set vm.dirty_bytes=134217728 --set vm.dirty_background_bytes=33554432 --yes --persist > /dev/null";
    let (old, new) = ("0\n20\n0\n10\n", "134217728\n0\n33554432\n0\n");
    let confirmed = format!("{set}; floodline confirm --same-login > /dev/null");
    for (events, expect) in [
        (set.to_owned(), new.to_owned()),
        (format!("cat /proc/sys/vm/dirty_ratio; {AGAINST_THE_FINDING}{confirmed}"), format!("20\n1\n500\n{new}")),
        (
            // Booted into what was confirmed, against the administrator's file.
            "cat /proc/sys/vm/dirty_writeback_centisecs; floodline verify > /dev/null && floodline rollback > /dev/null".to_owned(),
            format!("500\n{old}"),
        ),
    ] {
        let run = boot(&program, &disk, &events);
        if is_skipped(&run) {
            return;
        }
        assert_eq!((run.code, run.stdout.as_str()), (0, expect.as_str()), "{events}: {run}");
    }
}
