// SPDX-License-Identifier: MIT OR Apache-2.0
//! The simulation against the table of what each program writes last, and against the real programs: they run in a
//! chroot whose `/proc/sys` is a folder of plain files, and print their writes in order.

use super::*;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn tree(files: &[(&str, &str)]) -> Tree {
    let file = |(path, text): &(&str, &str)| {
        let (folder, name) = path.rsplit_once('/').unwrap();
        let folder = Folder::ALL.into_iter().find(|known| known.path() == folder);
        let text = (*text != "->null").then(|| (*text).to_owned());
        File { folder, name: name.to_owned(), text }
    };
    Tree { files: files.iter().map(file).collect() }
}

/// What systemd-sysctl, `sysctl --system` and TuneD leave of the pair `vm.dirty_bytes`, `vm.dirty_ratio`.
fn check(files: &[(&str, &str)], expect: [(u64, u64); 3]) {
    let tree = tree(files);
    let found = Applier::ALL.map(|applier| {
        let boot = Boot::after(&applier.assignments(&tree));
        (boot.value("vm/dirty_bytes").unwrap(), boot.value("vm/dirty_ratio").unwrap())
    });
    assert_eq!(found, expect, "{files:?}");
}

#[test]
fn a_member_of_a_pair_that_is_set_again_wins_or_loses_by_program() {
    let trap = |z: &'static str| {
        [
            ("etc/sysctl.d/10-a.conf", "vm.dirty_bytes=1048576"),
            ("etc/sysctl.d/20-b.conf", "vm.dirty_ratio=30"),
            ("etc/sysctl.d/30-c.conf", z),
        ]
    };
    check(&trap("vm.dirty_bytes=1048576"), [(0, 30), (1_048_576, 0), (0, 30)]);
    check(&trap("vm.dirty_bytes=2097152"), [(2_097_152, 0), (2_097_152, 0), (0, 30)]);
}

#[test]
fn folders_masks_spellings_globs_and_exceptions() {
    let (bytes, ratio) = ((1_048_576, 0), (0, 5));
    // A name in a stronger folder hides that in a weaker one, or masks it.
    let weak = ("usr/lib/sysctl.d/50-x.conf", "vm.dirty_ratio=5");
    check(&[weak], [ratio, ratio, (0, 20)]);
    check(&[weak, ("etc/sysctl.d/50-x.conf", "vm/dirty_bytes = 1048576")], [bytes; 3]);
    check(&[weak, ("run/sysctl.d/50-x.conf", "->null")], [(0, 20); 3]);
    // /etc/sysctl.conf is read by procps and TuneD alone.
    check(&[weak, ("etc/sysctl.conf", "-vm.dirty_bytes=1048576")], [ratio, bytes, bytes]);
    // A glob writes what has no line of its own, and `-key` has one.
    check(&[("etc/sysctl.d/1.conf", "vm.dirty_r*=5\n-vm.dirty_ratio")], [(0, 20); 3]);
    check(&[("etc/sysctl.d/1.conf", "vm.dirty_ratio=7\nvm.dirty_rati[o]=5")], [(0, 7); 3]);
    // What the kernel refuses changes nothing.
    check(
        &[("etc/sysctl.d/1.conf", "vm.dirty_bytes=5\nvm.dirty_ratio=101\n# vm.dirty_ratio=3\n; x\nnonsense")],
        [(0, 20); 3],
    );
}

#[test]
fn the_line_that_decides_is_named() {
    let tree = tree(&[("etc/sysctl.d/1.conf", "# a\nvm.dirty_bytes=1048576"), ("etc/sysctl.conf", "vm.dirty_ratio=5")]);
    let boot = Boot::after(&Applier::Procps.assignments(&tree));
    assert_eq!((boot.by("vm/dirty_bytes"), boot.by("vm/laptop_mode")), (Some("/etc/sysctl.conf:1"), None));
    let boot = Boot::after(&Applier::Systemd.assignments(&tree));
    assert_eq!(boot.by("vm/dirty_ratio"), Some("/etc/sysctl.d/1.conf:2"));
}

/// A root folder with a program, the libraries it needs, and plain files for `/proc/sys/vm`.
struct Chroot {
    folder: tempfile::TempDir,
}

impl Chroot {
    fn new(program: &Path) -> Option<Chroot> {
        let chroot = Chroot { folder: tempfile::tempdir().unwrap() };
        let listed = Command::new("ldd").arg(program).output().ok()?;
        let text = String::from_utf8_lossy(&listed.stdout).into_owned();
        let libraries = text.split_whitespace().filter(|word| word.starts_with('/'));
        for file in libraries.map(Path::new).chain([program]) {
            let to = chroot.path(file.to_str()?.trim_start_matches('/'));
            std::fs::create_dir_all(to.parent()?).ok()?;
            std::fs::copy(file, to).ok()?;
        }
        std::fs::create_dir_all(chroot.path("dev")).ok()?;
        Some(chroot)
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn lay_out(&self, tree: &Tree) {
        for folder in ["etc", "run", "usr/local/lib/sysctl.d", "usr/lib/sysctl.d", "lib/sysctl.d", "proc/sys/vm"] {
            let _ = std::fs::remove_dir_all(self.path(folder));
            std::fs::create_dir_all(self.path(folder)).unwrap();
        }
        for key in ["bytes", "ratio", "background_bytes", "background_ratio", "expire_centisecs", "writeback_centisecs"]
        {
            std::fs::write(self.path(&format!("proc/sys/vm/dirty_{key}")), "").unwrap();
        }
        for key in ["laptop_mode", "dirtytime_expire_seconds"] {
            std::fs::write(self.path(&format!("proc/sys/vm/{key}")), "").unwrap();
        }
        for file in &tree.files {
            let path = self.path(file.path().trim_start_matches('/'));
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            match &file.text {
                Some(text) => std::fs::write(path, text).unwrap(),
                None => std::os::unix::fs::symlink("/dev/null", path).unwrap(),
            }
        }
    }

    /// Runs the program and returns what it printed, and whether it ran.
    fn run(&self, program: &Path, args: &[&str]) -> Option<String> {
        let mut command = Command::new("chroot");
        command.arg(self.folder.path()).arg(program).args(args).env_clear().stdin(Stdio::null());
        let path = std::env::var_os("PATH").unwrap_or_default();
        let output = command
            .env("PATH", path)
            .env("SYSTEMD_LOG_LEVEL", "debug")
            .env("SYSTEMD_LOG_TARGET", "console")
            .output()
            .ok()?;
        // chroot itself answers 125 to 127.
        (!matches!(output.status.code(), Some(125..=127) | None))
            .then(|| String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    }
}

/// A tree by chance: few names, keys and values, so that files hide each other and keys meet.
fn generated(seed: u64) -> Tree {
    let mut random = (seed + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mut next = move |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        usize::try_from((random >> 16) % (below as u64)).unwrap()
    };
    let keys = ["bytes", "ratio", "background_bytes", "background_ratio", "expire_centisecs"];
    let mut files: Vec<File> = Vec::new();
    let mut taken = BTreeSet::new();
    for _ in 0..1 + next(6) {
        let folder = [Some(Folder::Etc), Some(Folder::Run), Some(Folder::Local), Some(Folder::Usr), None][next(5)];
        let name =
            if folder.is_none() { "sysctl.conf" } else { ["10-a.conf", "20-b.conf", "30-c.conf", "9.conf"][next(4)] };
        if !taken.insert((folder, name)) {
            continue;
        }
        let mut text = String::new();
        for _ in 0..next(6) {
            let separator = [".", "/"][next(2)];
            let value = ["10", "20", "65536", "131072"][next(4)];
            let key = format!("vm{separator}dirty_{}", keys[next(keys.len())]);
            text.push_str(&match next(10) {
                0 => format!("vm{separator}dirty_*{} = {value}\n", ["bytes", "ratio", ""][next(3)]),
                1 => format!("-{key}\n"),
                2 => format!("-{key} = {value}\n"),
                3 => format!("  # {key} = {value}\n\n; x\n"),
                4 => format!("\t{key}={value}  \n"),
                5 => format!("vm{separator}dirty_[br]?t??={value}\n"),
                _ => format!("{key} = {value}\n"),
            });
        }
        let text = (next(6) > 0 || folder.is_none()).then_some(text);
        files.push(File { folder, name: name.to_owned(), text });
    }
    Tree { files }
}

/// Holds the simulated writes against those that a real program prints, over 200 trees.
fn compare(applier: Applier, programs: &[&str], args: &[&str], parse: fn(&str) -> Option<(String, String)>) {
    let Some(program) = programs.iter().map(Path::new).find(|program| program.exists()) else {
        return floodline_skip::skip(floodline_skip::Need::Root, format!("{} is not installed", applier.name()));
    };
    let chroot = rustix::process::geteuid().is_root().then(|| Chroot::new(program)).flatten();
    let Some(chroot) = chroot else {
        return floodline_skip::skip(floodline_skip::Need::Root, "only root can change the root folder of a program");
    };
    let mut writes = 0;
    for seed in 0..200 {
        let tree = generated(seed);
        chroot.lay_out(&tree);
        let Some(text) = chroot.run(program, args) else {
            return floodline_skip::skip(
                floodline_skip::Need::Root,
                format!("{} does not run in a chroot", program.display()),
            );
        };
        let mut real: Vec<(String, String)> = text.lines().filter_map(parse).collect();
        let assignments = applier.assignments(&tree);
        let ours: Vec<(String, String)> =
            assignments.iter().map(|write| (write.key.clone(), write.value.clone())).collect();
        // Within one glob, systemd-sysctl takes the order in which the folder lists its files: here by chance, in
        // /proc/sys by name.
        let mut at = 0;
        for line in assignments.chunk_by(|one, other| one.by == other.by) {
            if let Some(writes) = real.get_mut(at..at + line.len()) {
                writes.sort();
            }
            at += line.len();
        }
        assert_eq!(ours, real, "seed {seed}: {tree:#?}\n{text}");
        writes += real.len();
    }
    assert!(writes > 500, "the programs wrote {writes} values only");
}

#[test]
fn systemd_sysctl_writes_what_is_simulated() {
    let parse = |line: &str| {
        let (key, value) = line.split_once("Setting '")?.1.split_once("' to '")?;
        let key = key.strip_prefix("/proc/sys/").unwrap_or(key);
        Some((key.to_owned(), value.split_once('\'')?.0.to_owned()))
    };
    let programs = ["/usr/lib/systemd/systemd-sysctl", "/lib/systemd/systemd-sysctl"];
    compare(Applier::Systemd, &programs, &[], parse);
}

#[test]
fn procps_writes_what_is_simulated() {
    let parse = |line: &str| {
        let (key, value) = line.split_once(" = ")?;
        Some((key.replace('.', "/"), value.to_owned()))
    };
    compare(Applier::Procps, &["/usr/sbin/sysctl", "/sbin/sysctl"], &["--system"], parse);
}
