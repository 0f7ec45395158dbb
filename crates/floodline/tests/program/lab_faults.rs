// SPDX-License-Identifier: MIT OR Apache-2.0
//! What goes wrong with virtual machines, with a made-up QEMU (a shell script that does what the case needs)
//! and a made-up kernel image: a clear message, exit code 69, no process and no file left behind, and the
//! recording so far kept. No machine is run.

use crate::harness::{Run, command, kills, outcome, recording};
use floodline_skip::{Need, skip};
use floodline_testkit::Fixture;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A home with a kernel, a scenario, and a QEMU of our own.
struct Lab {
    home: TempDir,
}

const SCENARIO: &str = "name = \"nothing\"\nsummary = \"Nothing happens\"\n[machine]\nmemory = \"32 MiB\"\n\
                        [workload]\nduration = \"1s\"\n[workload.tasks.t]\nsteps = [\"sync\"]\n";

impl Lab {
    /// `qemu` is a shell script; `$dir` in it is the directory of the run.
    fn new(qemu: &str) -> Lab {
        let lab = Lab { home: tempfile::tempdir().expect("a folder") };
        std::fs::write(lab.path("nothing.toml"), SCENARIO).expect("a scenario");
        std::fs::create_dir_all(lab.path("kernel")).expect("a folder");
        std::fs::write(lab.path("kernel/vmlinuz-6.99.0"), boot_image("6.99.0-test (nobody) #1")).expect("a kernel");
        std::fs::create_dir_all(lab.path("bin")).expect("a folder");
        let script = format!(
            "#!/bin/sh\nfor word; do case $word in file,id=console,path=*) dir=${{word#*path=}}; dir=${{dir%/*}};; esac; done\n\
             echo $$ > {}\n{qemu}\n",
            lab.path("pid").display()
        );
        lab.script("qemu-system-x86_64", &script);
        lab
    }

    /// A made-up program that is found before the machine's own.
    fn script(&self, name: &str, script: &str) {
        let path = self.path("bin").join(name);
        std::fs::write(&path, script).expect("a script");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("its mode");
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn command(&self, more: &[&str]) -> Command {
        let (scenario, kernel) = (self.path("nothing.toml"), self.path("kernel"));
        let (scenario, kernel) = (scenario.to_string_lossy(), kernel.to_string_lossy());
        let mut command = command(&[&["lab", "run", &scenario, "--kernel", &kernel, "--accel", "tcg"], more].concat());
        command.env("XDG_CACHE_HOME", self.path("cache"));
        command.env("PATH", format!("{}:/usr/bin:/bin", self.path("bin").display()));
        command
    }

    fn run(&self, more: &[&str]) -> Run {
        outcome(self.command(more).output().expect("it starts"))
    }

    fn start(&self, more: &[&str]) -> Child {
        let mut command = self.command(more);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        wait_until("QEMU runs", || self.path("pid").metadata().is_ok_and(|file| file.len() > 1));
        child
    }

    fn qemu_runs(&self) -> bool {
        let pid = std::fs::read_to_string(self.path("pid")).unwrap_or_default();
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
        // A zombie whose parent is gone has nobody in a hurry to bury it.
        stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
    }

    fn left_over(&self) -> usize {
        std::fs::read_dir(self.path("cache/floodline/runs")).map_or(0, Iterator::count)
    }

    /// 69 and a message, and nothing left of the run.
    fn check(&self, more: &[&str], says: &[&str]) {
        let run = self.run(more);
        self.is_clean(&run, says);
    }

    fn is_clean(&self, run: &Run, says: &[&str]) {
        assert_eq!(run.code, 69, "{run}");
        assert!(says.iter().all(|text| run.stderr.contains(text)), "{says:?} in {run}");
        assert!(!self.qemu_runs() && self.left_over() == 0, "{run}");
    }
}

/// The start of an x86 kernel image with its version text.
fn boot_image(text: &str) -> Vec<u8> {
    let mut image = vec![0; 0x400];
    image[0x202..0x206].copy_from_slice(b"HdrS");
    image[0x20e..0x210].copy_from_slice(&0x100_u16.to_le_bytes());
    image[0x300..0x300 + text.len()].copy_from_slice(text.as_bytes());
    image
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < until, "{what} within a minute");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn signal(name: &str, child: &Child) {
    let sent = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status();
    assert!(sent.expect("kill runs").success());
}

#[test]
fn a_qemu_that_dies_is_quoted() {
    Lab::new("echo 'qemu: no such device' >&2; exit 3")
        .check(&[], &["the guest died", "exit status: 3", "qemu: no such device"]);
    Lab::new("kill -9 $$").check(&[], &["the guest died", "signal: 9"]);
}

#[test]
fn a_panic_is_told_with_the_end_of_the_console() {
    let panic =
        "printf '[ 1.0] before\\n[ 1.1] Kernel panic - not syncing: VFS: no root\\n' > $dir/console.log; exit 0";
    Lab::new(panic).check(&[], &["the guest's kernel panicked: VFS: no root", "console: [ 1.0] before"]);
}

#[test]
fn a_guest_that_cannot_go_on_says_why_and_what_was_killed_is_told() {
    let failed = "printf 'Memory cgroup out of memory: Killed process 9 (t)\\n' > $dir/console.log\n\
                  echo '{\"status\":\"failed\",\"stage\":\"the run\",\"cause\":\"task t-0: killed\"}'";
    let says = ["the guest failed during the run: task t-0: killed", "killed a process for lack of memory: 9 (t)"];
    Lab::new(failed).check(&[], &says);
}

#[test]
fn a_guest_that_hangs_is_ended_and_its_recording_kept() {
    let lab = Lab::new("printf 'so far' > $dir/recording.flr; exec sleep 600");
    let save = lab.path("kept.flr");
    lab.check(&["--timeout", "2s", "--save", &save.to_string_lossy()], &["more than 2 s", "kept.flr"]);
    assert_eq!(std::fs::read(save).expect("it is kept"), b"so far");
}

#[test]
fn a_guest_that_hangs_before_its_init_is_silent() {
    let hangs = "printf '[ 0.5] Loading initial ramdisk\\n' > $dir/console.log; exec sleep 600";
    let says = ["(starting the guest) sent nothing for 1 s and was stopped", "console: [ 0.5] Loading"];
    Lab::new(hangs).check(&["--silence", "1s"], &says);
    // It may also fall silent later.
    let booted = "echo '{\"status\":\"booted\",\"release\":\"6.99.0\"}'; exec sleep 600";
    Lab::new(booted).check(&["--silence", "1s"], &["(booted 6.99.0) sent nothing for 1 s and was stopped"]);
}

#[test]
fn whoever_interrupts_a_download_waits_for_nothing_and_leaves_nothing() {
    let lab = Lab::new("exit 0");
    let stanza = "Package: bash\\nVersion: 1\\nSHA256: 00\\nSize: 1000\\nDepends: libc6\\n";
    lab.script("apt-cache", &format!("#!/bin/sh\nprintf '{stanza}'\n"));
    lab.script("apt-get", &format!("#!/bin/sh\necho $$ > {}; exec sleep 600\n", lab.path("pid").display()));
    let scenario = format!(
        "{SCENARIO}[workload.tasks.server.program]\npackage = \"bash\"\ncommand = [\"bash\"]\n\
         [machine.devices.d]\nsize = \"1 GiB\"\n"
    );
    std::fs::write(lab.path("nothing.toml"), scenario).expect("a scenario");
    let child = lab.start(&[]);
    signal("INT", &child);
    let run = outcome(child.wait_with_output().expect("it ends"));
    lab.is_clean(&run, &["interrupted while fetching bash"]);
    assert_eq!(std::fs::read_dir(lab.path("cache/floodline/programs")).map_or(0, Iterator::count), 0);
}

#[test]
fn no_filesystem_is_made_on_the_host() {
    let lab = Lab::new("echo '{\"status\":\"done\"}'");
    // Its file goes into the guest's image; a script cannot.
    lab.script("mkfs.ext4", &format!("#!/bin/sh\necho ran > {}\n", lab.path("ran").display()));
    let scenario = format!(
        "{SCENARIO}[machine.devices.d]\nsize = \"1 GiB\"\n[machine.mounts.\"/d\"]\ntype = \"ext4\"\ndevice = \"d\"\n"
    );
    std::fs::write(lab.path("nothing.toml"), scenario).expect("a scenario");
    lab.check(&[], &["mkfs.ext4 is not a 64-bit Linux program"]);
    assert!(!lab.path("ran").exists());
}

#[test]
fn a_qemu_that_was_built_without_a_sandbox_runs_without() {
    let fixture = recording(&Fixture::healthy());
    let lab = Lab::new(&format!(
        "for word; do [ \"$word\" = -sandbox ] && {{ echo 'qemu: -sandbox: There is no option group' >&2; exit 1; }}; done\n\
         cp {} $dir/recording.flr; echo '{{\"status\":\"done\"}}'",
        fixture.as_str()
    ));
    let run = lab.run(&[]);
    assert!(run.code == 0 && run.stderr.contains("without its sandbox"), "{run}");
}

#[test]
fn what_a_guest_says_reaches_no_terminal_as_it_is() {
    let says = "echo '{\"status\":\"failed\",\"stage\":\"the\\u001b[2J run\",\"cause\":\"a\\u009b1m\\u202eb\"}'";
    Lab::new(says).check(&[], &["the guest failed during the[2J run: a1mb"]);
    // A line without an end costs no memory, and the next one counts.
    let flood =
        "head -c 50000000 /dev/zero | tr '\\0' x; echo; echo '{\"status\":\"failed\",\"stage\":\"s\",\"cause\":\"c\"}'";
    Lab::new(flood).check(&[], &["the guest failed during s: c"]);
    // Lines of any length do, where all together are too many.
    Lab::new("exec yes $(printf '%09999d' 0)").check(&[], &["sent more than 64 MiB as lines of status"]);
}

#[test]
fn whoever_interrupts_a_run_gets_what_was_recorded() {
    for name in ["INT", "TERM", "HUP"] {
        let lab = Lab::new("printf 'so far' > $dir/recording.flr; echo > $dir/../../running; exec sleep 600");
        let save = lab.path("kept.flr");
        let child = lab.start(&["--save", &save.to_string_lossy()]);
        wait_until("it records", || lab.path("cache/floodline/running").exists());
        signal(name, &child);
        let run = outcome(child.wait_with_output().expect("it ends"));
        lab.is_clean(&run, &["interrupted", "kept.flr"]);
        assert_eq!(std::fs::read(save).expect("it is kept"), b"so far");
    }
}

/// `FLOODLINE_KILLS` says how many; `make kills` runs 14.
#[test]
fn a_lab_that_is_killed_takes_qemu_with_it_and_the_next_one_cleans_up() {
    let lab = Lab::new("[ -e $dir/../../second ] && exit 1; exec sleep 600");
    for kill in 0..kills(2, 14) {
        // From before the run has a directory to some time after QEMU runs.
        let child = lab.command(&[]).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let mut child = child.expect("it starts");
        if kill % 2 == 0 {
            wait_until("QEMU runs", || lab.qemu_runs());
        }
        std::thread::sleep(Duration::from_millis(kill * 3));
        signal("KILL", &child);
        child.wait().expect("it ends");
        wait_until("QEMU is gone", || !lab.qemu_runs());
        // A run that comes to its QEMU has removed what those before it left.
        let left = lab.left_over();
        assert!(kill % 2 == 1 || left == 1, "kill {kill} left {left} folders");
    }
    std::fs::write(lab.path("cache/floodline/second"), "").expect("a mark");
    lab.check(&[], &["the guest died"]);
}

#[test]
fn two_labs_at_once_do_not_meet() {
    let fixture = recording(&Fixture::healthy());
    let qemu = format!(
        "cp {} $dir/recording.flr; echo $dir >> $dir/../../dirs\n\
         while [ $(wc -l < $dir/../../dirs) -lt 2 ]; do sleep 0.05; done; echo '{{\"status\":\"done\"}}'",
        fixture.as_str()
    );
    let lab = Lab::new(&qemu);
    let pair = [lab.start(&[]), lab.start(&[])];
    for child in pair {
        let run = outcome(child.wait_with_output().expect("it ends"));
        assert!(run.code == 0 && run.stdout.contains("on 6.99.0-test"), "{run}");
    }
    assert_eq!(lab.left_over(), 0);
}

#[test]
fn what_this_host_lacks_is_said_before_anything_is_started() {
    let lab = Lab::new("exit 0");
    std::fs::remove_file(lab.path("bin/qemu-system-x86_64")).expect("it was there");
    let mut command = lab.command(&[]);
    let run = outcome(command.env("PATH", lab.path("bin")).output().expect("it starts"));
    lab.is_clean(&run, &["qemu-system-x86_64 is not installed", "apt install qemu-system-x86"]);
    let lab = Lab::new("exit 0");
    std::fs::write(lab.path("nothing.toml"), SCENARIO.replace("32 MiB", "900 TiB")).expect("a scenario");
    lab.check(&[], &["the guest needs", "of memory; this host has"]);
    assert!(!lab.path("pid").exists(), "QEMU was not started");
}

/// Runs a program with a filesystem of so many mebibytes where its cache is, in a mount namespace of its own. Tells by
/// its exit code when there can be none, and when something is left in the directory of runs.
const ON_A_SMALL_DISK: &str = r#"
mount -t tmpfs -o "size=$1m" tmpfs "$2" || exit 200; runs=$2/floodline/runs; shift 2
"$@"; code=$?
[ -z "$(ls "$runs")" ] || exit 201
exit $code
"#;

#[test]
fn a_full_disk_of_the_host_is_told_before_a_machine_runs_and_while_it_does() {
    let check = |mib: &str, qemu: &str, says: &[&str]| {
        let lab = Lab::new(qemu);
        std::fs::create_dir(lab.path("cache")).expect("a folder");
        let save = lab.path("kept.flr");
        let inner = lab.command(&["--guest-program", "/bin/true", "--save", &save.to_string_lossy()]);
        let mut command = Command::new("unshare");
        command.env_clear().envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.args(["-rm", "sh", "-c", ON_A_SMALL_DISK, "sh", mib]).arg(lab.path("cache"));
        let run = outcome(command.arg(inner.get_program()).args(inner.get_args()).output().expect("it starts"));
        if run.code == 200 || run.stderr.contains("unshare: ") {
            return skip(Need::Root, format_args!("no filesystem can be mounted here: {}", run.stderr));
        }
        lab.is_clean(&run, says);
    };
    check("100", "exit 0", &["a run needs at least 512 MiB"]);
    let fills = "printf 'so far' > $dir/recording.flr\n\
                 fallocate -l $(($(df --output=avail -BM $dir | tail -n 1 | tr -d 'M ') - 20))MiB $dir/disk\n\
                 exec sleep 600";
    check("560", fills, &["the disk of this host is full at", "the recording up to then is in", "kept.flr"]);
}

#[test]
fn a_broken_package_is_refused_and_nothing_of_it_kept() {
    let lab = Lab::new("exit 0");
    let kept = |lab: &Lab| std::fs::read_dir(lab.path("cache/floodline/kernels")).map_or(0, Iterator::count);
    for (name, content, says) in [
        ("kernel.deb", &b"!<arch>\ngarbage"[..], "dpkg-deb failed"),
        ("kernel.rpm", b"\xed\xab\xee\xdb cut off", "kernel.rpm is not a package"),
    ] {
        let package = lab.path(name);
        std::fs::write(&package, content).expect("a package");
        let scenario = lab.path("nothing.toml");
        let run = in_lab(&lab, &["run", &scenario.to_string_lossy(), "--kernel", &package.to_string_lossy()]);
        lab.is_clean(&run, &[says]);
        assert_eq!(kept(&lab), 0);
    }
}

fn in_lab(lab: &Lab, args: &[&str]) -> Run {
    let mut command = command(&[&["lab"], args].concat());
    command.env("XDG_CACHE_HOME", lab.path("cache")).env("PATH", "/usr/bin:/bin");
    outcome(command.output().expect("it starts"))
}

#[test]
fn a_scenario_that_asks_for_too_short_a_latency_is_refused_by_name() {
    let lab = Lab::new("exit 0");
    let scenario = format!("{SCENARIO}[machine.devices.d]\nsize = \"1 GiB\"\nlatency = \"10us\"\n");
    std::fs::write(lab.path("nothing.toml"), scenario).expect("a scenario");
    let run = lab.run(&[]);
    assert!(run.code == 2 && run.stderr.contains("machine.devices.d.latency"), "{run}");
}

/// A lab whose package manager has everything, all of it in one empty package.
fn with_packages(qemu: &str) -> Lab {
    let lab = Lab::new(qemu);
    let show = "#!/bin/sh\nwhile [ $1 != -- ]; do shift; done; shift\nfor name; do printf 'Package: %s\\nVersion: 1\\nSHA256: 0\\nSize: 1\\n\\n' $name; done\n";
    lab.script("apt-cache", show);
    let control = "Package: all\\nVersion: 1\\nArchitecture: all\\nMaintainer: nobody\\nDescription: none\\n";
    let build = format!(
        "#!/bin/sh\nmkdir -p p/DEBIAN p/usr/bin && printf '{control}' > p/DEBIAN/control && dpkg-deb --build p all.deb\n"
    );
    lab.script("apt-get", &build);
    lab
}

/// What `lab shell` at a terminal of its own shows when something is typed there, and how it left the terminal.
fn at_a_terminal(lab: &Lab, typed: &[u8]) -> String {
    let shell = format!(
        "{} lab shell --kernel {} --accel tcg; echo code $?; stty -a",
        env!("CARGO_BIN_EXE_floodline"),
        lab.path("kernel").display()
    );
    let mut command = Command::new("script");
    command.args(["--quiet", "--command", &shell, "/dev/null"]).env_clear();
    command.env("XDG_CACHE_HOME", lab.path("cache")).env("TERM", "xterm");
    command.env("PATH", format!("{}:/usr/bin:/bin", lab.path("bin").display()));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("script runs");
    let mut keyboard = child.stdin.take().expect("a keyboard");
    keyboard.write_all(typed).expect("it is typed");
    let output = child.wait_with_output().expect("it ends");
    drop(keyboard);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_console_is_wired_to_the_guest_and_the_terminal_is_put_back() {
    let check = |qemu: &str, typed: &[u8], shows: &[&str]| {
        let lab = with_packages(&format!("echo '{{\"status\":\"console\"}}'\n{qemu}"));
        let screen = at_a_terminal(&lab, typed);
        assert!(shows.iter().chain(&[" icanon", " echo "]).all(|text| screen.contains(text)), "{shows:?} in {screen}");
        assert!(!lab.qemu_runs() && lab.left_over() == 0, "{screen}");
    };
    let answers = "read -r line\nprintf 'the guest heard %s' $line >&0\n\
                   echo '{\"status\":\"exited\",\"code\":5}'; echo '{\"status\":\"done\"}'";
    check(answers, b"ping\n", &["6.99.0-test: 2 CPUs, 1024 MiB, /data", "the guest heard ping", "code 0"]);
    check("exec sleep 600", b"\x01x", &["code 0"]);
    check("exit 3", b"", &["the guest died", "exit status: 3", "code 69"]);
}

#[test]
fn a_command_in_a_guest_has_its_output_and_its_exit_code() {
    let qemu = "echo '{\"status\":\"output\",\"is_error\":false,\"text\":\"to \\u00c3\\u00a9 out\"}'\n\
                echo '{\"status\":\"output\",\"is_error\":true,\"text\":\"to err\"}'\n\
                echo '{\"status\":\"exited\",\"code\":7}'; echo '{\"status\":\"done\"}'";
    let lab = with_packages(&qemu.replace('\\', "\\\\"));
    let kernel = lab.path("kernel");
    let args = ["lab", "shell", "--kernel", &kernel.to_string_lossy(), "--accel", "tcg", "--", "some", "command"];
    let mut command = command(&args);
    command.env("XDG_CACHE_HOME", lab.path("cache"));
    command.env("PATH", format!("{}:/usr/bin:/bin", lab.path("bin").display()));
    let run = outcome(command.output().expect("it starts"));
    assert_eq!((run.code, run.stdout.as_str()), (7, "to é out"), "{run}");
    assert!(run.stderr.contains("to err"), "{run}");
}

#[test]
fn a_console_without_a_terminal_is_refused_with_what_to_type() {
    let lab = Lab::new("exit 0");
    let run = in_lab(&lab, &["shell", "--kernel", "6.12"]);
    assert!(run.code == 2 && run.stderr.contains("a console needs a terminal"), "{run}");
    assert!(run.stderr.contains("hint: give a command: floodline lab shell --kernel K -- "), "{run}");
    assert!(!lab.path("pid").exists(), "QEMU was not started");
}
