// SPDX-License-Identifier: MIT OR Apache-2.0
//! The probe over whole trees: captured kernels, layouts of devices made by hand, and trees that want to
//! do harm. What must hold for every tree: an answer, no panic, and a named gap for what was not read.

use floodline_host::{HostRoot, Probe, probe};
use floodline_record::facts::{BlockDevice, Stack};
use floodline_record::gap::Source;
use floodline_record::id::DevId;
use floodline_record::name::Name;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

fn captured(name: &str) -> Probe {
    probe(&HostRoot::at(&floodline_captured::tree(name)).expect("a captured tree"))
}

/// A tree made by hand.
struct Tree(TempDir);

impl Tree {
    fn new() -> Tree {
        Tree(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self, path: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(OsStr::from_bytes(path.as_ref()));
        std::fs::create_dir_all(path.parent().expect("a file in a folder")).expect("a folder");
        path
    }

    fn file(self, path: impl AsRef<[u8]>, content: impl AsRef<[u8]>) -> Tree {
        std::fs::write(self.path(path), content).expect("a file");
        self
    }

    fn link(self, path: impl AsRef<[u8]>, target: &str) -> Tree {
        symlink(target, self.path(path)).expect("a link");
        self
    }

    fn disk(self, name: &str, dev: &str) -> Tree {
        self.file(format!("sys/block/{name}/dev"), format!("{dev}\n"))
    }

    fn probe(&self) -> Probe {
        probe(&HostRoot::at(self.0.path()).expect("a tree"))
    }
}

fn dev(text: &str) -> DevId {
    text.parse().expect("major:minor")
}

fn device<'a>(probe: &'a Probe, name: &str) -> &'a BlockDevice {
    probe.facts.devices.iter().find(|device| device.name == Name::from(name)).expect("the device is found")
}

fn gaps(probe: &Probe) -> Vec<String> {
    probe.gaps.iter().map(ToString::to_string).collect()
}

#[test]
fn facts_of_a_captured_kernel_on_the_unified_hierarchy() {
    insta::assert_json_snapshot!("facts_6_12", captured("6.12").facts);
}

#[test]
fn facts_of_a_captured_kernel_on_version_1() {
    let facts = captured("6.1-v1").facts;
    insta::assert_json_snapshot!("facts_6_1_v1", (&facts.kernel_release, &facts.cgroups, &facts.bdis, facts.debugfs));
}

#[test]
fn every_captured_kernel_lacks_the_same_few_things() {
    for name in ["5.10", "6.1", "6.1-v1", "6.12", "6.12-bytes", "6.12-strict", "6.12.43", "7.2", "7.2-bytes"] {
        let sources: Vec<Source> = captured(name).gaps.iter().map(|gap| gap.source).collect();
        assert_eq!(sources, [Source::KernelConfig], "{name}: {:?}", gaps(&captured(name)));
    }
}

#[test]
fn partitions_and_stacked_devices_are_found_with_what_they_are_built_on() {
    let probe = Tree::new()
        .disk("sda", "8:0")
        .file("sys/block/sda/queue/scheduler", "none [mq-deadline]\n")
        .file("sys/block/sda/queue/rotational", "1\n")
        .file("sys/block/sda/sda1/partition", "1\n")
        .file("sys/block/sda/sda1/dev", "8:1\n")
        .file("sys/block/sda/sda1/size", "2048\n")
        .disk("sdb", "8:16")
        .disk("md127", "9:127")
        .file("sys/block/md127/md/level", "raid1\n")
        .link("sys/block/md127/slaves/sda1", "../../sda/sda1")
        .link("sys/block/md127/slaves/sdb", "../../sdb")
        .disk("dm-0", "253:0")
        .file("sys/block/dm-0/dm/name", "vg-data\n")
        .link("sys/block/dm-0/slaves/md127", "../../md127")
        .disk("loop0", "7:0")
        .file("sys/block/loop0/loop/backing_file", "/var/lib/image (deleted)\n")
        .file("sys/block/loop0/loop/dio", "0\n")
        .disk("loop1", "7:1")
        .probe();
    let sda = device(&probe, "sda");
    assert_eq!((sda.scheduler.as_deref(), sda.rotational), (Some("mq-deadline"), Some(true)));
    let sda1 = device(&probe, "sda1");
    assert_eq!((sda1.partition_of, sda1.size.map(|size| size.0)), (Some(dev("8:0")), Some(1 << 20)));
    let md = device(&probe, "md127");
    assert_eq!((&md.slaves, &md.stack), (&vec![dev("8:1"), dev("8:16")], &Stack::Md { level: "raid1".into() }));
    let dm = device(&probe, "dm-0");
    assert_eq!((&dm.slaves, &dm.stack), (&vec![dev("9:127")], &Stack::Dm { name: Name::from("vg-data") }));
    let backing_file = Name::from("/var/lib/image (deleted)");
    assert_eq!(device(&probe, "loop0").stack, Stack::Loop { backing_file, dio: Some(false) });
    assert_eq!(device(&probe, "loop1").stack, Stack::Bottom);
    assert!(!gaps(&probe).iter().any(|gap| gap.contains("/sys/block")), "{:?}", gaps(&probe));
}

#[test]
fn the_multi_generational_lru_is_on_or_off_or_not_known() {
    let check = |tree: Tree, expect: Option<bool>| assert_eq!(tree.probe().facts.lru_gen, expect);
    let file = |content: &str| Tree::new().file("sys/kernel/mm/lru_gen/enabled", content);
    check(file("0x0007\n"), Some(true));
    check(file("0x0001\n"), Some(true));
    check(file("0x0006\n"), Some(false));
    check(file("0x0000\n"), Some(false));
    check(file("y\n"), None);
    check(Tree::new().file("sys/kernel/mm/transparent_hugepage/enabled", "never\n"), Some(false));
    check(Tree::new(), None);
}

#[test]
fn which_boot_it_is_is_known_where_the_kernel_says_it() {
    let check = |content: &str, expect: Option<&str>| {
        let probe = Tree::new().file("proc/sys/kernel/random/boot_id", content).probe();
        assert_eq!(probe.facts.boot_id.as_deref(), expect, "{content}");
    };
    check("3b1f0c52-9d0e-4a77-8a53-6a1d2f7c9e10\n", Some("3b1f0c52-9d0e-4a77-8a53-6a1d2f7c9e10"));
    check("\x1b[31m\n", None);
    assert_eq!(Tree::new().probe().facts.boot_id, None);
}

#[test]
fn bdis_of_disks_have_a_device_and_those_of_superblocks_have_none() {
    let tree = Tree::new().disk("sda", "8:0");
    let names = ["8:0", "0:50", "btrfs-1", "mtd-\x1b[31m"];
    let tree = names.iter().fold(tree, |tree, name| tree.file(format!("sys/class/bdi/{name}/min_ratio"), "0\n"));
    let bdis = tree.probe().facts.bdis;
    let shown: Vec<_> = bdis.iter().map(|(name, dev)| (name.as_str(), *dev)).collect();
    assert_eq!(shown, [("0:50", None), ("8:0", Some(dev("8:0"))), ("btrfs-1", None), ("mtd-\\x1b[31m", None)]);
}

#[test]
fn an_overlay_writes_to_the_filesystem_that_holds_its_upper_directory() {
    let check = |upperdir: &str, expect: Option<&str>| {
        let mountinfo = format!(
            "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 8:16 / /var/lib/docker rw - xfs /dev/sdb rw\n\
             3 2 0:50 / /var/lib/docker/overlay2/a/merged rw - overlay overlay rw,lowerdir=/l,upperdir={upperdir}\n"
        );
        let probe = Tree::new().file("proc/1/mountinfo", mountinfo).probe();
        let overlay = probe.facts.mounts[2].overlay.clone().unwrap();
        assert_eq!(overlay.upper_dev, expect.map(dev), "{upperdir}");
        let says_so = gaps(&probe).iter().any(|gap| gap.contains("upperdir"));
        assert_eq!(says_so, expect.is_none(), "{upperdir}: {:?}", gaps(&probe));
    };
    check("/var/lib/docker/overlay2/a/diff", Some("8:16"));
    check("/var/lib/dockers/diff", Some("8:1"));
    check("a/diff", None);
    check("/var/lib/docker/overlay2/a/merged/diff", None);
}

#[test]
fn within_a_container_the_filesystem_below_the_root_overlay_is_not_guessed() {
    let mountinfo = "1 0 0:50 / / rw - overlay overlay rw,lowerdir=/l,upperdir=/var/lib/docker/overlay2/a/diff,\
                     workdir=/var/lib/docker/overlay2/a/work\n";
    let probe = Tree::new().file("proc/1/mountinfo", mountinfo).probe();
    assert_eq!(probe.facts.mounts[0].overlay.as_ref().map(|overlay| overlay.upper_dev), Some(None));
}

#[test]
fn an_empty_tree_has_no_facts_and_a_gap_for_each_source() {
    let probe = Tree::new().probe();
    assert_eq!(probe.facts.kernel, None);
    assert!(probe.facts.devices.is_empty() && probe.facts.mounts.is_empty());
    for source in [Source::KernelRelease, Source::Mountinfo, Source::SysBlock, Source::SysBdi, Source::CpuPossible] {
        assert_eq!(probe.gaps.iter().filter(|gap| gap.source == source).count(), 1, "{source}");
    }
}

/// Puts the same thing where each file of the probe is expected.
fn everywhere(mut put: impl FnMut(&Path)) -> Probe {
    let tree = Tree::new().disk("sda", "8:0").file("proc/1/mountinfo", "1 0 0:5 / /cg rw - cgroup2 c rw\n");
    for path in [
        "proc/sys/kernel/osrelease",
        "proc/sys/kernel/hostname",
        "proc/sys/kernel/task_delayacct",
        "proc/sys/kernel/random/boot_id",
        "sys/kernel/mm/lru_gen/enabled",
        "proc/cmdline",
        "proc/meminfo",
        "proc/vmstat",
        "proc/config.gz",
        "proc/self/mountinfo",
        "sys/devices/system/cpu/possible",
        "cg/cgroup.controllers",
        "cg/io.cost.qos",
        "sys/block/sdb/dev",
        "sys/block/sda/size",
        "sys/block/sda/queue/scheduler",
        "sys/block/sda/queue/rotational",
        "sys/block/sda/queue/wbt_lat_usec",
        "sys/block/sda/md/level",
        "sys/block/sda/loop/backing_file",
        "sys/block/sda/sda1/dev",
        "sys/block/sda/sda1/partition",
        "sys/block/sda/slaves/sdz",
        "sys/class/bdi/8:0",
        "etc/systemd/journald.conf",
        "etc/systemd/journald.conf.d/a.conf",
        "var/lib/containers/storage/overlay-containers/containers.json",
        "var/log/containers/a.log",
    ] {
        put(&tree.path(path));
    }
    tree.probe()
}

#[test]
fn hostile_content_anywhere_is_survived_and_said() {
    let contents: [&[u8]; 6] =
        [b"", b"\0", b"\xff\xfe\x1b[2J\r\n", b"-1\n", b"99999999999999999999999\n", &[b'9'; 1 << 20]];
    for content in contents {
        let probe = everywhere(|path| std::fs::write(path, content).unwrap());
        assert!(!probe.gaps.is_empty());
        assert!(!gaps(&probe).iter().any(|gap| gap.chars().any(char::is_control)), "{:?}", gaps(&probe));
        let facts = serde_json::to_string(&probe.facts).unwrap();
        assert!(!facts.chars().any(char::is_control));
    }
}

#[test]
fn directories_pipes_and_circles_of_links_are_survived_and_said() {
    let makers: [fn(&Path); 4] = [
        |path| std::fs::create_dir(path).unwrap(),
        |path| symlink(path.file_name().unwrap(), path).unwrap(),
        |path| symlink("/nowhere", path).unwrap(),
        |path| rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap(),
    ];
    for put in makers {
        let probe = everywhere(put);
        assert!(probe.gaps.iter().any(|gap| gap.source == Source::KernelRelease), "{:?}", gaps(&probe));
    }
}

#[test]
fn names_of_any_bytes_are_kept_and_shown_escaped() {
    let name = b"\xff\x1b]0;x\x07\n";
    let path = |folder: &str, file: &str| [folder.as_bytes(), b"/", name, file.as_bytes()].concat();
    let long = format!("{}/merged", "/long".repeat(800));
    let mountinfo =
        format!("1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 8:16 /{long} {long} rw - xfs /dev/\\134\\012 rw\n");
    let probe = Tree::new()
        .file(path("sys/block", "/dev"), "8:0\n")
        .file(path("sys/class/bdi", "/min_ratio"), "0\n")
        .file(path("var/lib/docker/containers", "/config.v2.json"), "{}")
        .file("proc/1/mountinfo", mountinfo)
        .probe();
    assert_eq!(probe.facts.devices[0].name, Name::new(name));
    assert_eq!(probe.facts.mounts[1].mount_point, Name::from(long.as_str()));
    assert_eq!(probe.facts.mounts[1].source, Name::from("/dev/\\\n"));
    assert_eq!(probe.facts.bdis.keys().collect::<Vec<_>>(), ["\\xff\\x1b]0;x\\x07\\x0a"]);
}

#[test]
fn a_thousand_flaws_of_one_kind_are_not_a_thousand_gaps() {
    let tree = (0..1000).fold(Tree::new(), |tree, number| tree.disk(&format!("sd{number}"), "none"));
    let probe = tree.probe();
    let of_block: Vec<_> = probe.gaps.iter().filter(|gap| gap.source == Source::SysBlock).collect();
    assert!(of_block.len() < 20, "{} gaps", of_block.len());
    assert_eq!(of_block.iter().map(|gap| gap.times).sum::<u64>(), 1000);
}

#[test]
fn devices_built_on_each_other_in_a_circle_are_reported_as_they_are() {
    let probe = Tree::new()
        .disk("dm-0", "253:0")
        .disk("dm-1", "253:1")
        .link("sys/block/dm-0/slaves/dm-1", "../../dm-1")
        .link("sys/block/dm-1/slaves/dm-0", "../../dm-0")
        .probe();
    assert_eq!(device(&probe, "dm-0").slaves, [dev("253:1")]);
    assert_eq!(device(&probe, "dm-1").slaves, [dev("253:0")]);
}

#[test]
fn inode_numbers_of_a_copy_are_taken_line_by_line() {
    let text = b"path\tino\n/\t1\n/a\tb\t7\n/evil\x1b\t8\n/none\n/word\tx\n/huge\t99999999999999999999\n";
    let probe = Tree::new().file("cgroup-inodes.tsv", text).probe();
    let inodes: Vec<(&str, u64)> = probe.facts.cgroup_inodes.iter().map(|(path, ino)| (path.as_str(), *ino)).collect();
    assert_eq!(inodes, [("/", 1), ("/a\\x09b", 7), ("/evil\\x1b", 8)]);
    assert!(Tree::new().probe().facts.cgroup_inodes.is_empty());
}
