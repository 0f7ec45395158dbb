// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes of a host, on folders that imitate one: what is written, put back, confirmed and refused, also when the
//! programs that do it are killed. No test writes to this host.

use crate::harness::{Run, floodline, kills};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A folder that imitates a host, with its journals.
pub(crate) struct Imitated {
    folder: tempfile::TempDir,
}

pub(crate) const OLD: [(&str, &str); 4] =
    [("dirty_bytes", "0"), ("dirty_ratio", "20"), ("dirty_background_bytes", "0"), ("dirty_background_ratio", "10")];
pub(crate) const SET: [&str; 4] = ["--set", "vm.dirty_bytes=268435456", "--set", "vm.dirty_background_bytes=67108864"];

impl Imitated {
    pub(crate) fn new() -> Imitated {
        // Guards outlive the process that starts them. Here they become ours: whatever supervises the tests may end
        // processes that lose their parent.
        let ours = rustix::process::set_child_subreaper(rustix::process::Pid::from_raw(1));
        assert_eq!(ours, Ok(()));
        let host = Imitated { folder: tempfile::tempdir().expect("a folder") };
        for (name, value) in OLD {
            host.write(&format!("proc/sys/vm/{name}"), value);
        }
        host.write("proc/sys/vm/dirty_expire_centisecs", "3000");
        host.write("proc/sys/kernel/hostname", "db1");
        host.write("proc/sys/kernel/osrelease", "6.12.0");
        host.write("proc/sys/kernel/random/boot_id", "boot-1");
        host.write("proc/meminfo", "MemTotal:       16384 kB");
        host.write("proc/vmstat", "nr_free_pages 1000\nnr_dirty 0\nnr_writeback 0\nnr_dirty_threshold 200000\nnr_dirty_background_threshold 100000");
        host.write(
            "proc/pressure/io",
            "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0",
        );
        host.write("etc/hostname", "db1");
        host
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, format!("{text}\n")).expect("a file");
    }

    /// Writes a file as a whole: a reader sees the old or the new text.
    fn replace(&self, path: &str, text: &str) {
        self.write(&format!("{path}.new"), text);
        std::fs::rename(self.path(&format!("{path}.new")), self.path(path)).expect("a file");
    }

    pub(crate) fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.path(path)).unwrap_or_default().trim().to_owned()
    }

    /// Values of the four thresholds, in the order of `OLD`.
    pub(crate) fn values(&self) -> Vec<String> {
        OLD.iter().map(|(name, _)| self.read(&format!("proc/sys/vm/{name}"))).collect()
    }

    fn arguments<'a>(&'a self, args: &[&'a str]) -> Vec<&'a str> {
        let root = self.folder.path().to_str().expect("UTF-8");
        [args, &["--root", root]].concat()
    }

    pub(crate) fn run(&self, args: &[&str]) -> Run {
        floodline(&self.arguments(args))
    }

    pub(crate) fn apply(&self, more: &[&str]) -> Run {
        self.run(&[&["apply", "--yes"], &SET[..], more].concat())
    }

    pub(crate) fn spawn(&self, args: &[&str]) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_floodline"));
        command.env_clear().args(self.arguments(args)).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().expect("it starts")
    }

    /// Processes that guard a change of this host: the guard and its keeper.
    pub(crate) fn guards(&self) -> Vec<i32> {
        let state = self.path("var/lib/floodline");
        let is_ours = |pid: &i32| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let mut words = line.split(|byte| *byte == 0);
            words.nth(1) == Some(b"--guard-of-a-change") && words.next() == Some(state.as_os_str().as_encoded_bytes())
        };
        let pids = std::fs::read_dir("/proc").expect("proc").flatten();
        pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(is_ours).collect()
    }

    /// Waits until something holds; panics after 20 s.
    pub(crate) fn until(&self, what: &str, holds: impl Fn() -> bool) {
        let started = Instant::now();
        while !holds() {
            assert!(started.elapsed() < Duration::from_secs(20), "{what}: {:?}", self.values());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Imitated {
    fn drop(&mut self) {
        // A test that failed leaves no process behind.
        while let Some(pid) = self.guards().first() {
            kill(*pid);
        }
    }
}

pub(crate) fn kill(pid: i32) {
    let pid = rustix::process::Pid::from_raw(pid).expect("a process id");
    let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
}

/// A change that is in force and waits for its confirmation.
#[track_caller]
pub(crate) fn applied(host: &Imitated, more: &[&str]) {
    let run = host.apply(more);
    assert_eq!(run.code, 0, "{run}");
}

pub(crate) fn old() -> Vec<&'static str> {
    OLD.iter().map(|(_, value)| *value).collect()
}

pub(crate) const NEW: [&str; 4] = ["268435456", "0", "67108864", "0"];

#[test]
fn a_rule_that_was_not_checked_is_not_said_to_be_absent() {
    let host = Imitated::new();
    for (rule, what) in [("dirty-cliff", "could not be checked"), ("contradictory-dirty-settings", "is not found")] {
        let run = host.run(&["apply", "--finding", rule, "--yes"]);
        assert_eq!(run.code, 2, "{run}");
        assert!(run.stderr.contains(&format!("{rule} {what} on this host; nothing was changed")), "{run}");
        assert_eq!(host.values(), old());
    }
}

#[test]
fn a_change_is_applied_confirmed_kept_and_rolled_back() {
    let host = Imitated::new();
    let run = host.apply(&["--persist"]);
    assert_eq!(run.code, 0, "{run}");
    assert!(run.stdout.contains("vm.dirty_bytes=268435456 (was vm.dirty_ratio=20)"), "{run}");
    assert_eq!(host.values(), NEW);
    // A reboot in the window starts with the old setting.
    assert!(!host.path("etc/sysctl.d/99-zz-floodline.conf").exists());

    let run = host.run(&["confirm"]);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stderr.contains("open a new login"), "{run}");
    let run = host.run(&["confirm", "--same-login"]);
    assert_eq!(run.code, 0, "{run}");
    host.until("the guard ends", || host.guards().is_empty());
    assert_eq!(host.values(), NEW);
    let file = host.read("etc/sysctl.d/99-zz-floodline.conf");
    assert!(file.ends_with("vm.dirty_background_bytes = 67108864\nvm.dirty_bytes = 268435456"), "{file}");
    let run = host.run(&["history"]);
    assert!(run.stdout.contains("confirmed, and set at boot"), "{run}");

    let run = host.run(&["rollback"]);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(host.values(), old());
    assert!(!host.path("etc/sysctl.d/99-zz-floodline.conf").exists());
    assert_eq!(host.run(&["rollback"]).code, 2);
}

#[test]
fn a_change_that_is_not_confirmed_is_put_back() {
    let host = Imitated::new();
    applied(&host, &["--confirm-within", "1s"]);
    host.until("the guard ends", || host.guards().is_empty());
    assert_eq!(host.values(), old());
    let run = host.run(&["confirm", "1", "--same-login"]);
    assert_eq!(run.code, 4, "{run}");
    assert!(run.stderr.contains("it was not confirmed in time"), "{run}");
}

#[test]
fn a_pending_change_is_rolled_back_by_its_guard() {
    let host = Imitated::new();
    applied(&host, &[]);
    let run = host.apply(&[]);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stderr.contains("change 1 waits for its confirmation"), "{run}");
    let run = host.run(&["rollback"]);
    assert_eq!((run.code, host.values()), (0, old().iter().map(ToString::to_string).collect()), "{run}");
    assert!(host.run(&["history"]).stdout.contains("put back: it was rolled back"));
}

#[test]
fn a_relative_root_is_the_folder_it_names() {
    let host = Imitated::new();
    let run = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_floodline"));
        command.env_clear().args(args).args(["--root", "."]).current_dir(host.folder.path()).stdin(Stdio::null());
        let output = command.output().expect("it runs");
        (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    };
    let (code, text) = run(&["apply", "--yes", "--set", "vm.dirty_bytes=256M"]);
    assert_eq!(code, Some(0), "{text}");
    // The commands it prints work from any folder.
    let root = host.folder.path().canonicalize().expect("a folder");
    assert!(text.contains(&format!("undo it: floodline rollback 1 --root {}", root.display())), "{text}");
    assert_eq!(host.values()[..2], ["268435456", "0"]);
    let (code, text) = run(&["rollback"]);
    assert_eq!((code, host.values()), (Some(0), old().iter().map(ToString::to_string).collect()), "{text}");
}

#[test]
fn what_only_reads_makes_no_folder() {
    let host = Imitated::new();
    for args in [&["history"][..], &["apply", "--set", "vm.dirty_bytes=256M", "--dry-run"], &["verify"], &["rollback"]]
    {
        let run = host.run(args);
        assert!(!host.path("var").exists(), "{args:?}: {run}");
    }
    assert!(host.run(&["history"]).stdout.contains("floodline has changed nothing"));
    let run = floodline(&["history", "--root", "/no/such/folder"]);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stderr.contains("/no/such/folder does not imitate a host"), "{run}");
}

/// Files of a folder that were closed after they were open for writing.
fn closed_after_writing(watch: &std::os::fd::OwnedFd) -> usize {
    let mut buffer = [std::mem::MaybeUninit::uninit(); 4096];
    let mut reader = rustix::fs::inotify::Reader::new(watch, &mut buffer);
    let mut count = 0;
    while reader.next().is_ok() {
        count += 1;
    }
    count
}

#[test]
fn a_dry_run_opens_no_setting_for_writing_and_answers_as_the_change_does() {
    use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};
    let host = Imitated::new();
    host.write("sys/class/bdi/8:0/max_ratio", "100");
    host.write("sys/block/loop3/loop/dio", "0");
    host.write("sys/fs/cgroup/a/io.max", "8:0 rbps=max wbps=1048576 riops=max wiops=max");
    let watch = init(CreateFlags::NONBLOCK).expect("a watch");
    for folder in ["proc/sys/vm", "sys/class/bdi/8:0", "sys/block/loop3/loop", "sys/fs/cgroup/a"] {
        add_watch(&watch, host.path(folder), WatchFlags::CLOSE_WRITE).expect("a watch");
    }
    let knobs =
        ["vm.dirty_ratio=5", "bdi/8:0/max_ratio=50", "loop/loop3/direct_io=1", "cgroup/a/io.max/8:0/wbps=2097152"];
    let sets: Vec<&str> = knobs.iter().flat_map(|knob| ["--set", knob]).collect();
    let dry = host.run(&[&["apply", "--dry-run"], &sets[..]].concat());
    assert!(dry.code == 0 && dry.stdout.contains("8:0/wbps=1048576"), "{dry}");
    assert_eq!(closed_after_writing(&watch), 0, "{dry}");
    let made = host.run(&[&["apply", "--yes"], &sets[..]].concat());
    assert_eq!(made.code, 0, "{made}");
    assert!(closed_after_writing(&watch) > 0, "the watch sees a write");
    host.run(&["rollback"]);
    // What cannot be written is refused, and by both for the same reason.
    std::fs::remove_file(host.path("sys/class/bdi/8:0/max_ratio")).expect("a file");
    for is_folder in [false, true] {
        if is_folder {
            std::fs::create_dir(host.path("sys/class/bdi/8:0/max_ratio")).expect("a folder");
        }
        let asked = |more: &str| host.run(&["apply", more, "--set", "bdi/8:0/max_ratio=50"]);
        let (dry, made) = (asked("--dry-run"), asked("--yes"));
        assert!(dry.code == 2 && dry.stderr.contains("cannot read bdi/8:0/max_ratio"), "{dry}");
        assert_eq!(dry.stderr.lines().next(), made.stderr.lines().next());
    }
}

#[test]
fn a_slip_of_apply_names_what_to_type() {
    let host = Imitated::new();
    let check = |args: &[&str], text: &str| {
        let run = host.run(&[&["apply"], args].concat());
        assert!(run.code == 2 && run.stderr.contains(text), "{args:?}: {run}");
    };
    check(&[], "floodline apply --set vm.dirty_bytes=256M --dry-run");
    check(&["--set", "vm.dirty_bytez=1"], "did you mean vm.dirty_bytes?");
    check(&["--set", "vm.dirty_ratio=1K"], "invalid value \"1K\" for vm.dirty_ratio");
    check(&["nothing.json"], "floodline advise host.flr -o plan.json");
}

#[test]
fn a_value_of_an_administrator_is_left() {
    let host = Imitated::new();
    applied(&host, &[]);
    host.write("proc/sys/vm/dirty_bytes", "1073741824");
    let run = host.run(&["confirm", "--same-login"]);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stderr.contains("vm.dirty_bytes=268435456 is not in force: found 1073741824 0"), "{run}");
    let run = host.run(&["rollback"]);
    assert_eq!(run.code, 0, "{run}");
    assert!(run.stdout.contains("vm.dirty_bytes has the value of another program, which is left"), "{run}");
    assert_eq!(host.values(), ["1073741824", "0", "0", "10"]);
}

#[test]
fn what_must_not_be_applied_is_refused_and_nothing_is_changed() {
    let host = Imitated::new();
    let check = |args: &[&str], code: i32, text: &str| {
        let run = host.run(&[&["apply"], args].concat());
        assert_eq!(run.code, code, "{args:?}: {run}");
        assert!(run.stderr.contains(text), "{args:?}: {run}");
        assert!(run.stderr.contains("hint: ") || code == 0, "{run}");
        assert_eq!(host.values(), old(), "{args:?}");
    };
    check(&["--set", "vm.dirty_ratio=101", "--yes"], 2, "expected a number from 0 to 100");
    check(&["--set", "kernel.panic=1", "--yes"], 2, "unknown knob \"kernel.panic\"");
    check(
        &["--set", "vm.dirty_ratio=5", "--set", "vm.dirty_bytes=8192", "--yes"],
        2,
        "perhaps as bytes and as a ratio",
    );
    check(&["--set", "vm.dirty_ratio=20", "--yes"], 2, "every value of the plan is in force");
    check(&["--set", "vm.dirty_ratio=5"], 2, "--yes was not given");
    check(&["--set", "vm.dirty_ratio=5", "--yes", "--probe", "false"], 2, "the probe fails already");
    check(&["--set", "cgroup/a/memory.high=max", "--yes"], 2, "cannot read cgroup/a/memory.high");
    check(&["--set", "vm.dirty_ratio=5", "--dry-run"], 0, "");
    let plan = |from: &str, to: &str| {
        let text = r#"{"schema":"floodline.plan/1","fingerprint":{"hostname":"db1","kernel":"6.12.0","boot_id":"boot-1",
            "mem_total_bytes":16777216},"changes":[{"knob":"vm.dirty_ratio","old":"20","new":"5"}],"rules":[],"evidence":[],
            "expected":[],"arithmetic_only":null,"longest_pause_s":0.2,"endpoint":"stall_seconds_per_hour","boot":[]}"#;
        assert!(text.contains(from));
        let path = host.path("plan.json");
        std::fs::write(&path, text.replace(from, to)).expect("a file");
        path.to_str().expect("UTF-8").to_owned()
    };
    check(&[&plan("db1", "db2"), "--yes"], 2, "the plan was made for another host: \"db2\", found \"db1\"");
    check(&[&plan("boot-1", "boot-0"), "--yes"], 2, "the plan was made for another boot");
    check(&[&plan("6.12.0", "6.1.0"), "--yes"], 2, "the plan was made for another kernel");
    check(&[&plan("\"20\"", "\"30\""), "--yes"], 2, "vm.dirty_ratio is 20, and was 30 when the plan was made");
    check(&[&plan("16777216", "33554432"), "--yes"], 2, "for a host with 32.0 MiB of memory; this host has 16.0 MiB");
    check(&[&plan("plan/1", "plan/2"), "--yes"], 2, "has schema \"floodline.plan/2\"");
    check(&[&plan("\"rules\"", "\"rulez\""), "--yes"], 2, "is not a plan");
    check(&[&plan("0.2", "-1"), "--yes"], 2, "longest_pause_s");
    host.write("proc/77/comm", "bpftune");
    check(&["--set", "vm.dirty_ratio=5", "--yes"], 2, "bpftune (process 77) changes sysctls");
    std::fs::remove_dir_all(host.path("proc/77")).expect("it is there");

    // A journal that cannot be read.
    applied(&host, &[]);
    assert_eq!(host.run(&["rollback"]).code, 0);
    let journal = host.path("var/lib/floodline/journal/0001.journal");
    let text = std::fs::read_to_string(&journal).expect("a journal");
    std::fs::write(&journal, text.replacen("268435456", "268435457", 1)).expect("it is written");
    check(&["--set", "vm.dirty_ratio=5", "--yes"], 2, "is damaged at line 1: its hash does not match");
}

#[test]
fn a_host_that_suffers_gets_its_old_values_back() {
    let host = Imitated::new();
    applied(&host, &["--probe", &format!("test ! -e {}", host.path("sick").display())]);
    host.write("sick", "");
    host.until("the guard ends", || host.guards().is_empty());
    assert_eq!(host.values(), old());
    assert!(host.run(&["history"]).stdout.contains("put back: the probe failed"));
}

#[test]
fn where_journald_keeps_its_journal_is_a_setting_like_the_others() {
    const NOW: &str = "run/systemd/journald.conf.d/99-zz-floodline.now.conf";
    const KEPT: &str = "etc/systemd/journald.conf.d/99-zz-floodline.conf";
    let host = Imitated::new();
    let set = ["apply", "--set", "journald/Storage=volatile", "--set", "vm.dirty_ratio=5", "--persist"];
    let run = host.run(&[&set[..], &["--dry-run"]].concat());
    assert_eq!((run.code, host.path(NOW).exists()), (0, false), "{run}");
    assert!(run.stdout.contains(KEPT), "{run}");
    let run = host.run(&[&set[..], &["--yes"]].concat());
    assert_eq!((run.code, host.read(NOW).as_str()), (0, "[Journal]\nStorage=volatile"), "{run}");
    assert_eq!((host.read("proc/sys/vm/dirty_ratio").as_str(), host.path(KEPT).exists()), ("5", false));
    let run = host.run(&["confirm", "--same-login"]);
    assert!(run.code == 0 && host.read(KEPT).ends_with("Storage=volatile"), "{run}");
    // A reboot empties /run.
    std::fs::remove_dir_all(host.path("run")).expect("it is there");
    let run = host.run(&["verify"]);
    assert!(run.code == 0 && run.stdout.contains("journald/Storage at boot"), "{run}");
    let run = host.run(&["rollback"]);
    assert_eq!((run.code, host.path(KEPT).exists(), host.read(NOW).as_str()), (0, false, ""), "{run}");
    assert_eq!(host.values(), old());

    host.write("etc/systemd/journald.conf.d/zz-site.conf", "[Journal]\nStorage=persistent");
    let run = host.run(&[&set[..], &["--yes"]].concat());
    assert!(run.code == 2 && run.stderr.contains("by /etc/systemd/journald.conf.d/zz-site.conf"), "{run}");
    assert_eq!(host.values(), old());
}

#[test]
fn a_limit_of_a_cgroup_is_set_and_put_back() {
    let host = Imitated::new();
    host.write("sys/fs/cgroup/a.slice/io.max", "");
    let run = host.run(&["apply", "--set", "cgroup/a.slice/io.max/8:0/wbps=8388608", "--yes"]);
    assert_eq!((run.code, host.read("sys/fs/cgroup/a.slice/io.max").as_str()), (0, "8:0 wbps=8388608"), "{run}");
    let run = host.run(&["rollback"]);
    assert_eq!((run.code, host.read("sys/fs/cgroup/a.slice/io.max").as_str()), (0, "8:0 wbps=max"), "{run}");
}

/// Lets tasks of an imitated host write, and stall for less time while `vm.dirty_bytes` is set, until `done`.
fn write_and_stall(host: &Imitated, done: &std::sync::atomic::AtomicBool) {
    let (mut pages, mut stalled_us) = (0, 0);
    let started = Instant::now();
    let mut last_us = 0;
    while !done.load(std::sync::atomic::Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(2));
        let now_us = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
        let share = if host.read("proc/sys/vm/dirty_bytes") == "0" { 2 } else { 50 };
        stalled_us += (now_us - last_us) / share;
        last_us = now_us;
        pages += 10;
        let full = "full avg10=0.00 avg60=0.00 avg300=0.00 total=0";
        host.replace("proc/pressure/io", &format!("some avg10=0.00 avg60=0.00 avg300=0.00 total={stalled_us}\n{full}"));
        host.replace("proc/vmstat", &format!("nr_dirtied {pages}\nnr_dirty 0\nnr_writeback 0"));
    }
}

#[test]
fn a_change_that_is_made_and_undone_by_turns_is_judged() {
    let host = Imitated::new();
    let done = std::sync::atomic::AtomicBool::new(false);
    // The thread below may start late.
    host.write(
        "proc/pressure/io",
        "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0",
    );
    host.write("proc/vmstat", "nr_dirtied 0\nnr_dirty 0\nnr_writeback 0");
    std::thread::scope(|scope| {
        scope.spawn(|| write_and_stall(&host, &done));
        // Eight blocks: one of them may be upset by a machine that is busy.
        let trial = host.apply(&["--switchback", "8x1s"]);
        let values = host.values();
        applied(&host, &[]);
        let pending = host.run(&["verify", "--switchback", "6x1s"]);
        let confirmed = host.run(&["confirm", "--same-login"]);
        let verified = host.run(&["verify", "--switchback", "6x1s", "--format", "json"]);
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(trial.code == 0 && trial.stdout.contains("Helped: stalls became fewer."), "{trial}");
        assert!(trial.stdout.contains("blocks with writing on both sides, exact p-value"), "{trial}");
        assert_eq!(values, old(), "{trial}");
        assert!(pending.code == 2 && pending.stderr.contains("is not confirmed"), "{pending}");
        assert_eq!(confirmed.code, 0, "{confirmed}");
        assert!(verified.code == 0 && verified.stdout.contains("\"switchback\":{\"blocks\":6,"), "{verified}");
        assert_eq!(host.values(), NEW, "{verified}");
    });
    let run = host.run(&["history"]);
    assert_eq!(run.stdout.matches("put back: its switchback trial ended").count(), 2, "{run}");
}

#[test]
fn a_trial_whose_program_is_killed_leaves_the_values_from_before() {
    let host = Imitated::new();
    host.write("proc/vmstat", "nr_dirtied 0\nnr_dirty 0\nnr_writeback 0");
    let mut trial = host.spawn(&[&["apply", "--yes", "--switchback", "6x10m"], &SET[..]].concat());
    // The coin of the first block decides which side comes first: either way the trial holds a guard.
    host.until("a guard", || !host.guards().is_empty());
    let _ = trial.kill();
    let _ = trial.wait();
    host.until("the guard ends", || host.guards().is_empty());
    assert_eq!(host.values(), old());
}

/// A thread that the kernel slows for its dirty pages, in an imitated host, and what it has dirtied.
pub(crate) fn throttled(host: &Imitated, write_bytes: u64) {
    host.write("proc/90/task/90/stat", "90 (writer) D 1 90 90");
    host.write("proc/90/task/90/stack", "[<0>] balance_dirty_pages+0x1f2/0xc60");
    host.write("proc/90/task/90/io", &format!("rchar: 1\nwrite_bytes: {write_bytes}"));
    let some = format!("some avg10=99.00 avg60=0.00 avg300=0.00 total={}", 1_000_000_000 + write_bytes);
    host.write("proc/pressure/io", &format!("{some}\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0"));
}

#[test]
fn a_writer_that_waits_beyond_the_bound_of_the_plan_ends_the_change() {
    let host = Imitated::new();
    applied(&host, &[]);
    throttled(&host, 0);
    host.until("the guard ends", || host.guards().is_empty());
    assert_eq!(host.values(), old());
    let run = host.run(&["history"]);
    assert!(run.stdout.contains("put back: a writer waited for longer than the plan allows"), "{run}");
}

#[test]
fn a_writer_that_waited_as_long_before_the_change_is_no_harm() {
    let host = Imitated::new();
    // The writer is held from before the start on: the watch sees a wait of 2 s, and allows 6 s.
    throttled(&host, 0);
    applied(&host, &[]);
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!((host.values(), host.guards().is_empty()), (NEW.map(str::to_owned).to_vec(), false));
    assert_eq!(host.run(&["rollback"]).code, 0);
}

#[test]
fn a_number_of_a_change_that_is_none_names_what_is_wanted() {
    let host = Imitated::new();
    for command in ["rollback", "confirm"] {
        for text in ["x", "0", "4294967296"] {
            let run = host.run(&[command, text]);
            assert_eq!(run.code, 2, "{run}");
            assert!(run.stderr.contains("floodline history lists the numbers"), "{run}");
        }
    }
}

#[test]
fn after_a_reboot_nothing_is_pending() {
    let host = Imitated::new();
    applied(&host, &["--persist"]);
    // A power cut: every process is gone, and boot sets the old values.
    while let Some(pid) = host.guards().first() {
        kill(*pid);
    }
    for (name, value) in OLD {
        host.write(&format!("proc/sys/vm/{name}"), value);
    }
    host.write("proc/sys/kernel/random/boot_id", "boot-2");
    let run = host.run(&["history"]);
    assert!(run.stderr.contains("the host was started again before it was confirmed"), "{run}");
    assert_eq!((run.code, host.values()), (0, old().iter().map(ToString::to_string).collect()), "{run}");
    assert!(!host.path("etc/sysctl.d").exists());
}

/// Kills some of the applier, the guard and its keeper at a moment, and checks that the host ends with the old values.
/// Where all of them died, the next command finishes the change.
fn check_kill(seed: u64) {
    let mut random = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = |below: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % below
    };
    let host = Imitated::new();
    let arguments = [&["apply", "--yes", "--confirm-within", "2s"], &SET[..]].concat();
    let mut applier = host.spawn(&arguments);
    let (kills_applier, kills_guards) = match next(4) {
        0 => (true, 0),
        1 => (false, 1),
        2 => (true, 1),
        _ => (true, 2),
    };
    // Most of what can go wrong happens within the first moments.
    let window = if next(3) == 0 { 400_000 } else { 40_000 };
    std::thread::sleep(Duration::from_micros(next(window)));
    if kills_applier {
        let _ = applier.kill();
    }
    let guards = host.guards();
    for pid in guards.iter().take(kills_guards) {
        kill(*pid);
    }
    let _ = applier.wait();
    let started = Instant::now();
    let limit = Duration::from_secs(2 + 5 + 15);
    while !host.guards().is_empty() {
        assert!(started.elapsed() < limit, "seed {seed}: a guard is left: {:?}", host.values());
        std::thread::sleep(Duration::from_millis(20));
    }
    if kills_applier && guards.len() <= kills_guards {
        let run = host.run(&["history"]);
        assert_eq!(run.code, 0, "seed {seed}: {run}");
    }
    assert_eq!(host.values(), old(), "seed {seed}, applier {kills_applier}, guards {kills_guards}");
    let run = host.run(&["history"]);
    assert!(!run.stdout.contains("waits"), "seed {seed}: {run}");
}

/// `FLOODLINE_KILLS` says how many; `make kills` runs 1,000.
#[test]
fn no_kill_leaves_a_host_on_an_unconfirmed_setting() {
    // Without a kill the setting is in force: otherwise the rest would show nothing.
    let host = Imitated::new();
    applied(&host, &[]);
    assert_eq!(host.values(), NEW);
    assert_eq!(host.run(&["rollback"]).code, 0);
    let count = kills(20, u64::MAX);
    let threads = 4;
    std::thread::scope(|scope| {
        for first in 0..threads {
            scope.spawn(move || (first..count).step_by(4).for_each(check_kill));
        }
    });
}

#[test]
fn a_folder_of_journals_that_cannot_be_made_is_an_error() {
    let host = Imitated::new();
    let file = host.path("file");
    std::fs::write(&file, "").expect("a file");
    let run = host.apply(&["--state-dir", Path::new(&file).join("x").to_str().expect("UTF-8")]);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stderr.contains("cannot create folder"), "{run}");
    assert_eq!(host.values(), old());
}
