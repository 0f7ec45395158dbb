// SPDX-License-Identifier: MIT OR Apache-2.0
//! Words that do not identify the owner of a host: those of systemd, of container runtimes, of the filesystem hierarchy
//! and of programs that the rules look for. They stay readable, and with them the kind of a cgroup. Every other word is
//! hashed.

use crate::programs;

/// Words of cgroup paths, unit names and files. Lower case, letters and digits only. In order.
const WORDS: &[&str] = &[
    "app",
    "background",
    "bad",
    "besteffort",
    "blkio",
    "block",
    "boot",
    "btrfs",
    "buildkit",
    "burstable",
    "cache",
    "cgroup",
    "chrony",
    "conf",
    "config",
    "conmon",
    "containerd",
    "containers",
    "control",
    "cpu",
    "cpuacct",
    "cpuset",
    "cri",
    "crio",
    "cron",
    "d",
    "data",
    "dbus",
    "debug",
    "default",
    "dev",
    "devices",
    "disk",
    "docker",
    "dockerd",
    "efi",
    "emergency",
    "etc",
    "fdinfo",
    "firecracker",
    "freezer",
    "fs",
    "fstab",
    "garden",
    "getty",
    "good",
    "guaranteed",
    "home",
    "hugetlb",
    "incus",
    "init",
    "io",
    "job",
    "journal",
    "journald",
    "k3s",
    "k8s",
    "kernel",
    "kubelet",
    "kubepods",
    "lib",
    "lib64",
    "libexec",
    "libpod",
    "libvirt",
    "local",
    "log",
    "logind",
    "logs",
    "lost",
    "lxc",
    "lxd",
    "machine",
    "machined",
    "machines",
    "mapper",
    "mariadb",
    "media",
    "memory",
    "merged",
    "mesos",
    "mnt",
    "mongodb",
    "monitor",
    "mount",
    "mysql",
    "ndots",
    "nerdctl",
    "networkd",
    "nspawn",
    "oomd",
    "opt",
    "overlay",
    "overlay2",
    "overlayfs",
    "parent",
    "payload",
    "pids",
    "pod",
    "podman",
    "podruntime",
    "postgresql",
    "proc",
    "qemu",
    "rancher",
    "rc",
    "redis",
    "resolved",
    "root",
    "rsyslog",
    "run",
    "runtime",
    "sbin",
    "scope",
    "service",
    "session",
    "shm",
    "slice",
    "slurm",
    "slurmstepd",
    "snapshots",
    "socket",
    "spool",
    "srv",
    "ssh",
    "sshd",
    "step",
    "storage",
    "swap",
    "sys",
    "sysctl",
    "syslog",
    "system",
    "systemd",
    "task",
    "timesyncd",
    "tmp",
    "tmpfs",
    "udev",
    "udevd",
    "uid",
    "unified",
    "upper",
    "user",
    "usr",
    "v1",
    "v2",
    "var",
    "vm",
    "vmtoolsd",
    "volumes",
    "work",
];

/// Names of processes of every host that stay beside those that rules look for.
const PROGRAMS: &[&str] = &[
    "containerd",
    "containerd-shim",
    "dockerd",
    "kubelet",
    "rsyslogd",
    "sshd",
    "systemd",
    "systemd-logind",
    "systemd-udevd",
];

/// What the names of kernel threads begin with; numbers and names of disks follow.
const KERNEL_THREADS: &[&str] = &[
    "dmcrypt_write",
    "jbd2",
    "kcompactd",
    "khugepaged",
    "ksoftirqd",
    "kswapd",
    "kthreadd",
    "kworker",
    "loop",
    "md",
    "migration",
    "scsi_eh",
    "xfsaild",
];

/// Words behind them: work queues and levels of RAID.
const QUEUES: &[&str] = &[
    "blkcg",
    "btrfs",
    "destroy",
    "dio",
    "events",
    "flush",
    "inode",
    "kblockd",
    "mm",
    "percpu",
    "raid0",
    "raid1",
    "raid10",
    "raid5",
    "raid6",
    "switch",
    "unbound",
    "wbs",
    "wq",
    "writeback",
    "xfs",
];

/// Options of mounts that have no value.
const FLAGS: &[&str] = &[
    "acl",
    "attr2",
    "autodefrag",
    "barrier",
    "dax",
    "delalloc",
    "dirsync",
    "discard",
    "grpquota",
    "hard",
    "inode32",
    "inode64",
    "largeio",
    "lazytime",
    "mand",
    "noacl",
    "noatime",
    "noattr2",
    "nobarrier",
    "nodatacow",
    "nodatasum",
    "nodelalloc",
    "nodev",
    "nodiratime",
    "nodiscard",
    "noexec",
    "nolock",
    "noload",
    "noquota",
    "norecovery",
    "nossd",
    "nosuid",
    "nouuid",
    "nsdelegate",
    "prjquota",
    "quota",
    "relatime",
    "ro",
    "rw",
    "seclabel",
    "soft",
    "ssd",
    "strictatime",
    "swalloc",
    "sync",
    "user_xattr",
    "userxattr",
    "usrquota",
    "volatile",
    "wsync",
];

/// Options of mounts that have a value.
const KEYS: &[&str] = &[
    "addr",
    "clientaddr",
    "commit",
    "fsid",
    "gid",
    "group_id",
    "local_lock",
    "logbsize",
    "logbufs",
    "lowerdir",
    "max_inline",
    "namlen",
    "nr_inodes",
    "retrans",
    "rsize",
    "size",
    "stripe",
    "subvol",
    "subvolid",
    "sunit",
    "swidth",
    "thread_pool",
    "timeo",
    "uid",
    "upperdir",
    "user_id",
    "workdir",
    "wsize",
];

/// Options of mounts whose value is a word of the kernel.
const OPTIONS: &[&str] = &[
    "barrier",
    "cache",
    "compress",
    "data",
    "discard",
    "errors",
    "index",
    "jqfmt",
    "metacopy",
    "mode",
    "proto",
    "redirect_dir",
    "sec",
    "space_cache",
    "uuid",
    "vers",
    "xino",
];

/// Words of releases of kernels, beside numbers and what stands before them (`deb13`, `el9`).
const RELEASES: &[&str] = &[
    "aarch64",
    "amd64",
    "arch",
    "arm64",
    "aws",
    "azure",
    "cloud",
    "debug",
    "default",
    "gcp",
    "generic",
    "gke",
    "hardened",
    "lowlatency",
    "lts",
    "oracle",
    "ppc64le",
    "pve",
    "raspi",
    "rt",
    "s390x",
    "simulated",
    "x86",
    "zen",
];

/// Parameters of the kernel's command line that change cgroups, writeback or accounting.
const PARAMETERS: &[&str] = &[
    "cgroup.memory",
    "cgroup_disable",
    "cgroup_enable",
    "cgroup_no_v1",
    "delayacct",
    "elevator",
    "isolcpus",
    "mitigations",
    "nohz",
    "nohz_full",
    "nosmt",
    "preempt",
    "psi",
    "quiet",
    "ro",
    "rw",
    "scsi_mod.use_blk_mq",
    "swapaccount",
    "systemd.legacy_systemd_cgroup_controller",
    "systemd.unified_cgroup_hierarchy",
    "transparent_hugepage",
];

/// What the names of disks begin with that have letters next, e.g. `sda`.
const LETTERED_DISKS: &[&str] = &["hd", "sd", "vd", "xvd"];

/// What the names of disks begin with that have a number next, e.g. `nvme0n1`.
const NUMBERED_DISKS: &[&str] =
    &["dm-", "drbd", "loop", "md", "mmcblk", "nbd", "nvme", "pmem", "ram", "rbd", "sr", "zd", "zram"];

/// Whether a word of a path stays.
pub(super) fn is_word(word: &[u8]) -> bool {
    WORDS.binary_search_by(|known| known.as_bytes().cmp(word)).is_ok()
}

/// Whether a name of a process stays.
pub(super) fn is_program(comm: &[u8]) -> bool {
    programs::is_known(comm) || PROGRAMS.iter().any(|known| known.as_bytes() == comm)
}

/// Whether a name of a process is that of a thread of the kernel, with nothing in it that a person chose.
pub(super) fn is_kernel_thread(comm: &[u8]) -> bool {
    let is_between = |c: &u8| b"/:-_+".contains(c);
    let is_number = |word: &[u8]| word.iter().all(|c| c.is_ascii_digit() || matches!(c, b'u' | b'H' | b'R'));
    let is_queue = |word: &[u8]| is_one(QUEUES, word);
    // `kswapd0`, `md127`: the number stands right behind the word.
    let Some(start) =
        KERNEL_THREADS.iter().filter(|start| comm.starts_with(start.as_bytes())).max_by_key(|start| start.len())
    else {
        return false;
    };
    let rest = comm.get(start.len()..).unwrap_or_default();
    if rest.first().is_some_and(|c| !c.is_ascii_digit() && !is_between(c)) {
        return false;
    }
    // `jbd2/dm-0-8`: the name of the disk has a separator in it.
    let disk = rest.strip_prefix(b"/").map(|rest| rest.split(|c| *c == b'-').next().unwrap_or_default());
    let rest = match disk.filter(|disk| is_disk(disk)) {
        Some(disk) => rest.get(disk.len() + 1..).unwrap_or_default(),
        None => rest.strip_prefix(b"/dm").unwrap_or(rest),
    };
    rest.split(is_between).all(|word| is_number(word) || is_queue(word))
}

/// Whether a file that sets something at boot is one that a distribution or Floodline has on every host.
pub(super) fn is_drop_in(file: &[u8]) -> bool {
    is_one(&["99-sysctl.conf", "99-zz-floodline.conf", "sysctl.conf", "50-default.conf"], file)
}

/// Whether a word is in a list.
fn is_one(words: &[&str], word: &[u8]) -> bool {
    words.iter().any(|known| known.as_bytes() == word)
}

/// Whether an option of a mount without a value stays.
pub(super) fn is_flag(option: &[u8]) -> bool {
    is_one(FLAGS, option)
}

/// Whether the key of an option of a mount stays.
pub(super) fn is_key(key: &[u8]) -> bool {
    is_one(KEYS, key) || is_option(key)
}

/// Whether the value of an option of a mount is a word of the kernel.
pub(super) fn is_option(key: &[u8]) -> bool {
    is_one(OPTIONS, key)
}

/// Whether a word of the release of a kernel stays: a number, also behind up to six letters, or a word of a
/// distribution.
pub(super) fn is_release(word: &[u8]) -> bool {
    let letters = word.iter().take_while(|c| c.is_ascii_alphabetic()).count();
    let is_counted = letters <= 6 && letters < word.len() && word.iter().skip(letters).all(u8::is_ascii_digit);
    is_counted || word.is_empty() || is_one(RELEASES, word)
}

/// Whether a parameter of the kernel's command line stays.
pub(super) fn is_parameter(key: &[u8]) -> bool {
    PARAMETERS.iter().any(|known| known.as_bytes() == key)
}

/// Whether it is a name that the kernel gives to disks and partitions, e.g. `sda1`, `nvme0n1p2`, `dm-0`.
pub(super) fn is_disk(name: &[u8]) -> bool {
    let after = |starts: &'static [&str]| starts.iter().filter_map(|start| name.strip_prefix(start.as_bytes()));
    let is_lettered = |rest: &[u8]| {
        let letters = rest.iter().take_while(|c| c.is_ascii_lowercase()).count();
        (1..=3).contains(&letters) && rest.iter().skip(letters).all(u8::is_ascii_digit)
    };
    let is_numbered = |rest: &[u8]| {
        let is_number = |c: &u8| c.is_ascii_digit() || matches!(c, b'n' | b'p');
        rest.len() <= 8 && rest.first().is_some_and(u8::is_ascii_digit) && rest.iter().all(is_number)
    };
    after(LETTERED_DISKS).any(is_lettered) || after(NUMBERED_DISKS).any(is_numbered)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_are_in_order() {
        assert!(WORDS.is_sorted());
        assert!(WORDS.iter().all(|word| word.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())));
    }

    #[test]
    fn disks_and_kernel_threads_are_told_from_other_names() {
        for name in ["sda", "sda1", "vdaa12", "xvda", "nvme0n1p2", "dm-0", "md127", "loop3", "mmcblk0p1", "sr0"] {
            assert!(is_disk(name.as_bytes()), "{name}");
        }
        for name in ["sdk-secret", "md_secret", "dm-secret", "loop", "data", "vdesk9x", "nvme-acme"] {
            assert!(!is_disk(name.as_bytes()), "{name}");
        }
        let threads = ["kworker/u8:3-flush-8:0", "kworker/0:1H-kblockd", "kworker/1:2+inode_switch_wbs", "jbd2/sda1-8"];
        for name in threads.into_iter().chain(["jbd2/dm-0-8", "kswapd0", "xfsaild/dm-0", "md0_raid1", "loop0"]) {
            assert!(is_kernel_thread(name.as_bytes()), "{name}");
        }
        let others = ["mdadm", "loopback", "loop-acme", "payrolld", "10.7.7.7-manage", "kworker/0:1-wg-crypt-wgacme"];
        for name in others.into_iter().chain(["card-reconciler", "dm-acme-sync", "xfs-acmebackup", "drbd_w_acmeres"]) {
            assert!(!is_kernel_thread(name.as_bytes()), "{name}");
        }
    }
}
