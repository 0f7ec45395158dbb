// SPDX-License-Identifier: MIT OR Apache-2.0
//! Words that say nothing of who runs a host: those of systemd, of container runtimes, of the filesystem hierarchy and of
//! programs that the rules look for. They stay readable, and with them the kind of a cgroup. Every other word is hashed.

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

/// What the names of kernel threads begin with.
const KERNEL_THREADS: &[&str] = &[
    "btrfs-",
    "card",
    "dm_",
    "dm-",
    "dmcrypt_write",
    "jbd2/",
    "kcompactd",
    "khugepaged",
    "ksoftirqd/",
    "kswapd",
    "kthreadd",
    "kworker/",
    "loop",
    "md",
    "migration/",
    "nvme",
    "raid",
    "rcu",
    "scsi_",
    "xfs-",
    "xfsaild/",
];

/// Options of mounts whose value is a word of the kernel.
const OPTIONS: &[&str] = &[
    "barrier",
    "cache",
    "compress",
    "data",
    "errors",
    "index",
    "jqfmt",
    "metacopy",
    "mode",
    "redirect_dir",
    "uuid",
    "xino",
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

/// Whether a name of a process is that of a thread of the kernel.
pub(super) fn is_kernel_thread(comm: &[u8]) -> bool {
    let after = |start: &str| comm.strip_prefix(start.as_bytes()).map(|rest| rest.first().copied());
    KERNEL_THREADS.iter().any(|start| match after(start) {
        Some(next) => {
            !start.ends_with(|c: char| c.is_ascii_alphabetic()) || next.is_none_or(|c| !c.is_ascii_alphabetic())
        }
        None => false,
    })
}

/// Whether the value of an option of a mount is a word of the kernel.
pub(super) fn is_option(key: &[u8]) -> bool {
    OPTIONS.iter().any(|known| known.as_bytes() == key)
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
        for name in ["kworker/u8:3-flush-8:0", "jbd2/sda1-8", "kswapd0", "xfsaild/dm-0", "md0_raid1", "loop0"] {
            assert!(is_kernel_thread(name.as_bytes()), "{name}");
        }
        for name in ["mdadm", "loopback-acme", "payrolld", "raider"] {
            assert!(!is_kernel_thread(name.as_bytes()), "{name}");
        }
    }
}
