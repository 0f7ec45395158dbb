// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether writes to a filesystem are accounted and throttled per cgroup. Three things must hold: the
//! unified hierarchy has memory and io, the kernel knows how for this filesystem, and the mount does not
//! switch it off. Follows `inode_cgwb_enabled` (include/linux/backing-dev.h).

use super::{Behaviour, Series, change};
use floodline_record::facts::{CgroupSetup, Mount};
use std::fmt;

/// Whether a filesystem takes part in cgroup writeback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CgroupWriteback {
    /// It does.
    Supported,
    /// It does not.
    Unsupported(WhyNot),
    /// The filesystem is not one this build knows of.
    Unknown,
}

/// Why a filesystem does not take part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhyNot {
    /// Memory and io are not both on the unified hierarchy (commit 9badce000e2c, 4.3).
    NoUnifiedHierarchy,
    /// This kernel does not have it for this filesystem; the version has.
    OlderKernel(Series),
    /// ext4, or its driver on ext3, with `data=journal` writes its data through the journal.
    DataJournal,
    /// It keeps no dirty pages that could be written back: memory filesystems, read-only ones.
    NoWriteback,
    /// It never declared support.
    Never,
    /// Its files live in another filesystem, which decides: overlay.
    OtherFilesystem,
}

impl fmt::Display for WhyNot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WhyNot::NoUnifiedHierarchy => f.write_str("memory and io are not both on the unified hierarchy"),
            WhyNot::OlderKernel(since) => write!(f, "needs kernel {since}"),
            WhyNot::DataJournal => f.write_str("data=journal writes through the journal"),
            WhyNot::NoWriteback => f.write_str("has no pages to write back"),
            WhyNot::Never => f.write_str("the filesystem does not support it"),
            WhyNot::OtherFilesystem => f.write_str("its files live in another filesystem"),
        }
    }
}

/// Name of a filesystem, what a kernel says of it, and the change that brought it.
type Support = (&'static str, fn(&Behaviour) -> bool, &'static str);

/// Filesystems that got support: what a kernel says of one, and the change that brought it. The ext4 driver has served
/// ext3 since the release that gave it support: commit c290ea01abb7 ("fs: Remove ext3 filesystem driver").
const SUPPORT: &[Support] = &[
    ("ext2", |kernel| kernel.cgroup_writeback.ext2, "cgroup-writeback-ext2"),
    ("ext3", |kernel| kernel.cgroup_writeback.ext4, "cgroup-writeback-ext4"),
    ("ext4", |kernel| kernel.cgroup_writeback.ext4, "cgroup-writeback-ext4"),
    ("btrfs", |kernel| kernel.cgroup_writeback.btrfs, "cgroup-writeback-btrfs"),
    ("f2fs", |kernel| kernel.cgroup_writeback.f2fs, "cgroup-writeback-f2fs"),
    ("xfs", |kernel| kernel.cgroup_writeback.xfs, "cgroup-writeback-xfs"),
];

/// Filesystems with dirty pages that all belong to the root cgroup's wb.
const NEVER: &[&str] = &[
    "nfs", "nfs4", "cifs", "smb3", "ceph", "9p", "fuse", "fuseblk", "virtiofs", "vfat", "exfat", "ntfs", "ntfs3",
    "reiserfs", "jfs", "hfsplus", "ocfs2", "gfs2", "bcachefs", "zfs", "ubifs", "nilfs2", "udf",
];

/// Filesystems without dirty pages in the sense of writeback.
const NO_WRITEBACK: &[&str] = &[
    "tmpfs",
    "ramfs",
    "rootfs",
    "devtmpfs",
    "hugetlbfs",
    "proc",
    "sysfs",
    "cgroup",
    "cgroup2",
    "debugfs",
    "tracefs",
    "devpts",
    "mqueue",
    "securityfs",
    "pstore",
    "bpf",
    "configfs",
    "efivarfs",
    "autofs",
    "squashfs",
    "erofs",
    "iso9660",
    "binfmt_misc",
    "nsfs",
    "fusectl",
    "rpc_pipefs",
    "selinuxfs",
];

/// Whether writes to a mount are accounted per cgroup on this machine.
pub fn cgroup_writeback(mount: &Mount, kernel: &Behaviour, setup: &CgroupSetup) -> CgroupWriteback {
    use CgroupWriteback::{Supported, Unknown, Unsupported};
    let fs_type = mount.fs_type.as_str();
    // `fuse.sshfs` and the like are FUSE.
    let fs_type = if fs_type.starts_with("fuse.") { "fuse" } else { fs_type };
    if fs_type == "overlay" {
        return Unsupported(WhyNot::OtherFilesystem);
    }
    if NO_WRITEBACK.contains(&fs_type) {
        return Unsupported(WhyNot::NoWriteback);
    }
    if NEVER.contains(&fs_type) {
        return Unsupported(WhyNot::Never);
    }
    let Some((_, is_in, id)) = SUPPORT.iter().find(|(known, ..)| *known == fs_type) else { return Unknown };
    if setup.v2_controllers_unread {
        return Unknown;
    }
    if !setup.has_unified_writeback() {
        Unsupported(WhyNot::NoUnifiedHierarchy)
    } else if !is_in(kernel) {
        change(id).map_or(Unknown, |change| Unsupported(WhyNot::OlderKernel(change.since)))
    } else if matches!(fs_type, "ext3" | "ext4") && mount.has_option("data=journal") {
        Unsupported(WhyNot::DataJournal)
    } else {
        Supported
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_record::facts::CgroupMode;

    fn check(kernel: &str, fs_type: &str, options: &str, expect: CgroupWriteback) {
        let setup = CgroupSetup {
            mode: CgroupMode::V2,
            v2_controllers: vec!["memory".into(), "io".into()],
            ..CgroupSetup::default()
        };
        let mount = floodline_testkit::mount("sda", fs_type, "/data", options);
        let behaviour = Behaviour::of(kernel.parse().expect("a version"));
        assert_eq!(cgroup_writeback(&mount, &behaviour, &setup), expect, "{fs_type} on {kernel}");
        if expect == CgroupWriteback::Supported {
            let hybrid = CgroupSetup { v2_controllers: vec!["memory".into()], ..setup };
            let expect = CgroupWriteback::Unsupported(WhyNot::NoUnifiedHierarchy);
            assert_eq!(cgroup_writeback(&mount, &behaviour, &hybrid), expect, "{fs_type} without io");
        }
    }

    #[test]
    fn support_came_filesystem_by_filesystem() {
        use CgroupWriteback::{Supported, Unknown, Unsupported};
        let older = |major: u16, minor: u16| Unsupported(WhyNot::OlderKernel(Series(major, minor)));
        check("4.2.0", "ext2", "rw", Supported);
        check("4.2.0", "ext4", "rw", older(4, 3));
        check("4.3.0", "ext4", "rw", Supported);
        check("6.12.1", "ext4", "rw,data=journal", Unsupported(WhyNot::DataJournal));
        check("6.12.1", "ext4", "rw,data=ordered", Supported);
        check("4.2.8", "ext3", "rw", older(4, 3));
        check("4.3.0", "ext3", "rw", Supported);
        check("6.12.1", "ext3", "rw,data=journal", Unsupported(WhyNot::DataJournal));
        check("4.3.0", "btrfs", "rw", Supported);
        check("4.14.60", "f2fs", "rw", older(4, 16));
        check("4.16.0", "f2fs", "rw", Supported);
        check("5.2.9", "xfs", "rw", older(5, 3));
        check("5.3.0", "xfs", "rw", Supported);
        check("7.2.0", "nfs4", "rw", Unsupported(WhyNot::Never));
        check("7.2.0", "fuse.sshfs", "rw", Unsupported(WhyNot::Never));
        check("7.2.0", "tmpfs", "rw", Unsupported(WhyNot::NoWriteback));
        check("7.2.0", "overlay", "rw", Unsupported(WhyNot::OtherFilesystem));
        check("7.2.0", "newfs", "rw", Unknown);
    }
}
