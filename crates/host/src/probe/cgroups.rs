// SPDX-License-Identifier: MIT OR Apache-2.0
//! How the cgroup hierarchies are set up: which are mounted, and which controllers each has. Of a
//! captured tree also the inode numbers that its cgroups had before they were copied.

use super::{Prober, join};
use crate::root::{LARGE, SMALL};
use floodline_record::facts::{CgroupMode, CgroupSetup, Mount};
use floodline_record::gap::{Cause, Source};
use floodline_record::name::Name;
use floodline_record::text::Text;
use std::collections::BTreeMap;

pub(super) fn probe(prober: &mut Prober<'_>) {
    let mut setup = setup(&prober.facts.mounts);
    if let Some(mount) = setup.v2_mount.clone() {
        let path = join(mount.as_bytes(), b"cgroup.controllers");
        let content = prober.expect(Source::CgroupControllers, &path, SMALL);
        let names = content.as_deref().map(controllers);
        setup.v2_controllers_unread = !matches!(names, Some(Some(_)));
        match names {
            Some(Some(names)) => setup.v2_controllers = names.into_iter().map(Text::from).collect(),
            Some(None) => {
                let what = "names of controllers in one line".to_owned();
                prober.gap(Source::CgroupControllers, Cause::Malformed { what: what.into() }, &path);
            }
            None => {}
        }
        let path = join(mount.as_bytes(), b"io.cost.qos");
        if let Some(content) = prober.maybe(Source::IoCost, &path) {
            let lines = content.split(|&byte| byte == b'\n').filter_map(|line| {
                let at = line.iter().position(|&byte| byte == b' ')?;
                Some((Name::new(&line[..at]).to_string().into(), Name::new(&line[at + 1..]).to_string().into()))
            });
            prober.facts.io_cost_qos = lines.collect();
        }
    }
    prober.facts.cgroups = setup;
    if !prober.root.is_live() {
        prober.facts.cgroup_inodes = captured_inodes(prober);
    }
}

/// At the top of a captured tree: a line of names, then path, tab, inode number.
const CAPTURED_INODES: &[u8] = b"/cgroup-inodes.tsv";

/// Reads the captured inode numbers. An invalid line is skipped: the shares of that cgroup are then bounds, and the
/// budgets report them as such.
fn captured_inodes(prober: &mut Prober<'_>) -> BTreeMap<Text, u64> {
    let content = match prober.root.read(CAPTURED_INODES, LARGE) {
        Ok(content) => content,
        Err(Cause::NotFound | Cause::Vanished) => return BTreeMap::new(),
        Err(cause) => {
            prober.gap(Source::CgroupV2, cause, CAPTURED_INODES);
            return BTreeMap::new();
        }
    };
    let inode = |line: &[u8]| {
        let tab = line.iter().rposition(|&byte| byte == b'\t')?;
        let ino = std::str::from_utf8(&line[tab + 1..]).ok()?.parse().ok()?;
        Some((Name::new(&line[..tab]).to_string().into(), ino))
    };
    content.split(|&byte| byte == b'\n').filter_map(inode).collect()
}

/// Parses a file of controllers. For a hierarchy without controllers the kernel prints an empty file.
fn controllers(content: &[u8]) -> Option<Vec<String>> {
    let line = if content.is_empty() { content } else { content.strip_suffix(b"\n")? };
    let is_name = |name: &&[u8]| name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let names: Vec<&[u8]> = line.split(|&byte| byte == b' ').filter(|name| !name.is_empty()).collect();
    names.iter().all(is_name).then(|| names.into_iter().map(|name| Name::new(name).to_string()).collect())
}

/// Derives the set-up from the mounts. Of several mounts of one hierarchy the one that shows its root counts. The usual
/// place comes before any other, which can be in a directory that a user may rename.
fn setup(mounts: &[Mount]) -> CgroupSetup {
    let mut setup = CgroupSetup::default();
    let mut shown: Vec<&Mount> = mounts.iter().collect();
    shown.sort_by_key(|mount| (mount.root.as_bytes() != b"/", !mount.mount_point.as_bytes().starts_with(USUAL)));
    for mount in shown {
        match mount.fs_type.as_str() {
            "cgroup2" => {
                setup.v2_mount.get_or_insert_with(|| mount.mount_point.clone());
            }
            "cgroup" => {
                for option in mount.super_options.as_bytes().split(|&byte| byte == b',') {
                    // Named hierarchies and flags such as `rw` are added too: they are never looked up.
                    let name = Name::new(option).to_string();
                    setup.v1_mounts.entry(name.into()).or_insert_with(|| mount.mount_point.clone());
                }
            }
            _ => {}
        }
    }
    setup.v1_mounts.retain(|option, _| CONTROLLERS.contains(&option.as_str()));
    setup.mode = match (setup.v2_mount.is_some(), setup.v1_mounts.is_empty()) {
        (true, true) => CgroupMode::V2,
        (true, false) => CgroupMode::Hybrid,
        (false, false) => CgroupMode::V1,
        (false, true) => CgroupMode::None,
    };
    setup
}

/// Mount point in every distribution.
const USUAL: &[u8] = b"/sys/fs/cgroup";

/// Controllers of version 1.
const CONTROLLERS: [&str; 14] = [
    "cpuset",
    "cpu",
    "cpuacct",
    "io",
    "blkio",
    "memory",
    "devices",
    "freezer",
    "net_cls",
    "perf_event",
    "net_prio",
    "hugetlb",
    "pids",
    "rdma",
];

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_record::id::DevId;

    fn mount(fs_type: &str, mount_point: &str, super_options: &str) -> Mount {
        Mount {
            dev: DevId { major: 0, minor: 30 },
            root: Name::from("/"),
            mount_point: Name::from(mount_point),
            fs_type: fs_type.into(),
            source: Name::from(fs_type),
            options: Name::from("rw"),
            super_options: Name::from(super_options),
            overlay: None,
        }
    }

    #[test]
    fn the_three_layouts_are_told_apart() {
        let unified = mount("cgroup2", "/sys/fs/cgroup", "rw,nsdelegate");
        let memory = mount("cgroup", "/sys/fs/cgroup/memory", "rw,memory");
        let named = mount("cgroup", "/sys/fs/cgroup/systemd", "rw,name=systemd");
        let check = |mounts: &[Mount], expect| assert_eq!(setup(mounts).mode, expect);
        check(&[], CgroupMode::None);
        check(std::slice::from_ref(&unified), CgroupMode::V2);
        check(&[unified.clone(), named.clone()], CgroupMode::V2);
        check(&[unified, memory.clone()], CgroupMode::Hybrid);
        check(&[memory, named], CgroupMode::V1);
    }

    #[test]
    fn controllers_are_names_in_one_line_or_not_known() {
        let check = |content: &str, expect: Option<&[&str]>| {
            let names = controllers(content.as_bytes());
            assert_eq!(
                names.as_deref().map(|names| names.iter().map(String::as_str).collect()),
                expect.map(<[_]>::to_vec)
            );
        };
        check("cpuset cpu io memory\n", Some(&["cpuset", "cpu", "io", "memory"]));
        check("\n", Some(&[]));
        check("", Some(&[]));
        check("cpuset cpu io mem", None);
        check("io\u{1b}[31m\n", None);
        check("io\nmemory\n", None);
    }

    #[test]
    fn controllers_mounted_together_are_each_found() {
        let setup = setup(&[mount("cgroup", "/sys/fs/cgroup/cpu,cpuacct", "rw,cpu,cpuacct")]);
        assert_eq!(setup.v1_mounts.keys().collect::<Vec<_>>(), ["cpu", "cpuacct"]);
    }

    #[test]
    fn a_mount_of_a_part_of_the_hierarchy_does_not_stand_for_it() {
        let part = Mount { root: Name::from("/docker/abc"), ..mount("cgroup2", "/var/part", "rw") };
        let setup = setup(&[part, mount("cgroup2", "/sys/fs/cgroup", "rw")]);
        assert_eq!(setup.v2_mount, Some(Name::from("/sys/fs/cgroup")));
    }
    #[test]
    fn the_usual_place_comes_before_one_that_a_user_may_rename() {
        let other = mount("cgroup2", "/home/ada/chroot/sys/fs/cgroup", "rw");
        let setup = setup(&[other, mount("cgroup2", "/sys/fs/cgroup", "rw")]);
        assert_eq!(setup.v2_mount, Some(Name::from("/sys/fs/cgroup")));
    }
}
