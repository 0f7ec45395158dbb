// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ends of a change that come from outside: a reboot in the middle of a confirmation or of a rollback, a guard that is
//! stopped, a second program that wants to change the host, a manager that would fight.

use crate::tune::{Imitated, NEW, OLD, SET, applied, kill, old, throttled};
use rustix::process::{Pid, Signal, kill_process};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const FILE: &str = "etc/sysctl.d/99-zz-floodline.conf";
const JOURNAL: &str = "var/lib/floodline/journal/0001.journal";

/// Starts the host again. Boot sets these thresholds.
fn reboot(host: &Imitated, values: [&str; 4]) {
    for ((name, _), value) in OLD.iter().zip(values) {
        host.write(&format!("proc/sys/vm/{name}"), value);
    }
    host.write("proc/sys/kernel/random/boot_id", "boot-2");
}

/// Takes the last entry of the journal away, as if the power had been cut before it.
fn forget(host: &Imitated, entry: &str) {
    let text = host.read(JOURNAL);
    let (kept, last) = text.rsplit_once('\n').expect("entries");
    assert!(last.contains(&format!("\"entry\":\"{entry}\"")), "{last}");
    host.write(JOURNAL, kept);
}

#[test]
fn files_of_a_confirmation_that_a_cut_of_the_power_ended_are_written_after_it() {
    let host = Imitated::new();
    applied(&host, &["--persist"]);
    assert_eq!(host.run(&["confirm", "--same-login"]).code, 0);
    let text = host.read(FILE);
    forget(&host, "persisted");
    std::fs::remove_file(host.path(FILE)).expect("it is there");
    reboot(&host, ["0", "20", "0", "10"]);
    let run = host.run(&["history"]);
    assert!(run.stderr.contains("its files are written now"), "{run}");
    assert_eq!(host.read(FILE), text);
}

#[test]
fn a_rollback_that_a_cut_of_the_power_ended_is_finished_after_it() {
    let host = Imitated::new();
    applied(&host, &["--persist"]);
    assert_eq!(host.run(&["confirm", "--same-login"]).code, 0);
    let text = host.read(FILE);
    assert_eq!(host.run(&["rollback"]).code, 0);
    forget(&host, "put_back");
    // Neither the file nor the values were taken back.
    host.write(FILE, &text);
    reboot(&host, NEW);
    let run = host.run(&["history"]);
    assert!(run.stderr.contains("its rollback is finished now"), "{run}");
    assert_eq!((host.values(), host.path(FILE).exists()), (old().iter().map(ToString::to_string).collect(), false));
}

#[test]
fn what_a_host_with_its_old_values_suffers_from_is_not_the_change() {
    let host = Imitated::new();
    applied(&host, &[]);
    for (name, value) in OLD {
        host.write(&format!("proc/sys/vm/{name}"), value);
    }
    throttled(&host, 0);
    std::thread::sleep(Duration::from_secs(1));
    assert!(!host.guards().is_empty());
    // An administrator sets one of the new values again, which a kernel does to both members of a pair at once: here the
    // writer rests meanwhile, long enough for what was seen of it.
    host.write("proc/90/task/90/stack", "[<0>] schedule+0x2c/0xb0");
    std::thread::sleep(Duration::from_secs(2));
    assert!(!host.guards().is_empty());
    host.write("proc/sys/vm/dirty_ratio", "0");
    host.write("proc/sys/vm/dirty_bytes", NEW[0]);
    throttled(&host, 1 << 20);
    host.until("the guard ends", || host.guards().is_empty());
    assert_eq!(host.values(), old());
}

#[test]
fn a_guard_that_is_stopped_is_replaced() {
    let host = Imitated::new();
    applied(&host, &["--confirm-within", "8s"]);
    let started = Instant::now();
    let parent = |pid: i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse::<i32>().ok())
    };
    let guards = host.guards();
    // The keeper is a child of the guard.
    let guard = guards.iter().copied().find(|pid| !parent(*pid).is_some_and(|parent| guards.contains(&parent)));
    let guard = Pid::from_raw(guard.expect("a guard")).expect("a process id");
    kill_process(guard, Signal::STOP).expect("it is ours");
    host.until("the keeper ends", || host.guards().iter().all(|pid| *pid == guard.as_raw_nonzero().get()));
    // A zombie has no command line: the stopped guard was killed.
    assert!(host.guards().is_empty());
    assert!(started.elapsed() < Duration::from_secs(8 + 5), "{:?}", started.elapsed());
    assert_eq!(host.values(), old());
    assert!(host.run(&["history"]).stdout.contains("put back: it was not confirmed in time"));
}

/// Starts the guard of the first change, as systemd does after a kill. Returns its exit code: it goes on in a copy.
fn start_guard(host: &Imitated) -> Option<i32> {
    let mut guard = Command::new(env!("CARGO_BIN_EXE_floodline"));
    guard.arg("--guard-of-a-change").arg(host.path("var/lib/floodline")).arg("1").arg(host.path(""));
    guard.stdout(Stdio::null()).stderr(Stdio::null()).status().expect("it starts").code()
}

#[test]
fn a_guard_that_starts_again_amid_the_writes_restores_at_once() {
    let host = Imitated::new();
    // Too much is dirty for the first step of the hard threshold: the applier waits before it.
    let vmstat = host.read("proc/vmstat").replace("nr_dirty 0", "nr_dirty 190000");
    host.write("proc/vmstat", &vmstat);
    let mut applier = host.spawn(&[&["apply", "--yes"], &SET[..]].concat());
    host.until("the first write", || host.values()[2] == NEW[2]);
    // The applier must not notice that its guard dies, nor the guard that its applier does.
    let pid = Pid::from_raw(i32::try_from(applier.id()).expect("a process id")).expect("a process id");
    kill_process(pid, Signal::STOP).expect("it is ours");
    // None of the guard's processes may see another one end: it would restore.
    let guards = host.guards();
    for guard in &guards {
        kill_process(Pid::from_raw(*guard).expect("a process id"), Signal::STOP).expect("it is ours");
    }
    guards.into_iter().for_each(kill);
    applier.kill().and_then(|()| applier.wait()).expect("it is ours");
    host.until("no process of the guard", || host.guards().is_empty());
    assert_ne!(host.values(), old());
    let started = Instant::now();
    // A killed process loses its command line before its locks: the first start may still find them taken.
    host.until("a guard starts", || start_guard(&host) == Some(0));
    host.until("the old values", || host.values() == old());
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
}

#[test]
fn a_guard_that_starts_again_after_the_end_of_its_change_is_done() {
    let host = Imitated::new();
    applied(&host, &[]);
    assert_eq!(host.run(&["rollback"]).code, 0);
    // With another code systemd would start it again without end.
    assert_eq!(start_guard(&host), Some(0));
    assert!(host.guards().is_empty());
}

#[test]
fn a_second_change_is_refused_while_one_waits_or_is_made() {
    let host = Imitated::new();
    applied(&host, &[]);
    let run = host.run(&["apply", "--set", "vm.dirty_expire_centisecs=500", "--yes"]);
    assert!(run.code == 2 && run.stderr.contains("change 1 waits for its confirmation"), "{run}");
    assert_eq!(
        (host.values(), host.read("proc/sys/vm/dirty_expire_centisecs")),
        (NEW.map(str::to_owned).to_vec(), "3000".to_owned())
    );
    assert_eq!(host.run(&["rollback"]).code, 0);

    // Two at once: one of them is refused, or comes after the other one and finds it pending.
    let mut programs = [SET, ["--set", "vm.dirty_bytes=8388608", "--set", "vm.dirty_background_bytes=4194304"]]
        .map(|set| host.spawn(&[&["apply", "--yes"], &set[..]].concat()));
    let codes: Vec<i32> =
        programs.iter_mut().map(|program| program.wait().expect("it ends").code().unwrap_or(-1)).collect();
    assert!(codes == [0, 2] || codes == [2, 0], "{codes:?}");
    let expect = if codes == [0, 2] { NEW } else { ["8388608", "0", "4194304", "0"] };
    assert_eq!(host.values(), expect, "{codes:?}");
    assert_eq!(host.run(&["rollback"]).code, 0);
    assert_eq!(host.values(), old());
}

#[test]
fn a_manager_that_would_fight_is_named() {
    let host = Imitated::new();
    host.write("run/tuned/tuned.pid", "77");
    host.write("proc/77/comm", "tuned");
    host.write("etc/tuned/active_profile", "throughput-performance");
    let run = host.apply(&[]);
    assert!(run.code == 2 && run.stderr.contains("TuneD (process 77) applies its profile"), "{run}");
    assert!(run.stderr.contains("tuned-adm off"), "{run}");
    assert_eq!(host.values(), old());
    std::fs::remove_dir_all(host.path("proc/77")).expect("it is there");
    applied(&host, &[]);
    host.guards().into_iter().for_each(kill);
}
