// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mounts whose data do not go to a disk of this host: NFS, other network filesystems and FUSE. The scenario language does not have them.
//! The twin leaves them out and reports that.

use floodline_analysis::diagnose::dirty::is_beyond_disks;
use floodline_record::human;
use floodline_record::text::Text;
use floodline_record::window::Window;
use std::collections::BTreeMap;

/// FUSE filesystems that hold no files of programs.
const VIRTUAL: [&str; 3] = ["fuse.lxcfs", "fuse.gvfsd-fuse", "fuse.portal"];
/// Most mounts that are named.
const NAMED: usize = 3;

/// What the twin leaves out because of such mounts, and what that may change; `None` where the host has none that a program can write to.
pub(super) fn left_out(window: &Window) -> Option<String> {
    let mounts = window.facts.iter().flat_map(|facts| &facts.mounts);
    let beyond = mounts.filter(|mount| is_beyond_disks(mount) && !VIRTUAL.contains(&mount.fs_type.as_str()));
    let beyond: BTreeMap<String, String> =
        beyond.map(|mount| (Text::new(mount.mount_point.to_string()).to_string(), mount.fs_type.to_string())).collect();
    let mut named: Vec<String> =
        beyond.iter().take(NAMED).map(|(point, fs_type)| format!("{point} ({fs_type})")).collect();
    if beyond.len() > NAMED {
        named.push(format!("{} more", beyond.len() - NAMED));
    }
    let last = named.pop()?;
    let all = if named.is_empty() { last } else { format!("{} and {last}", named.join(", ")) };
    let (are, their) = if beyond.len() == 1 { ("is", "Its") } else { ("are", "Their") };
    Some(format!(
        "{} {are} not simulated: {all}. {their} dirty pages count against the same thresholds, and a server or a program writes \
         them out. With many of them, writers on the disks are paused earlier than on the twin. What programs write there, and \
         wait for there, is not predicted.",
        human::plural(beyond.len() as u64, "network or FUSE mount", "network or FUSE mounts"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_testkit::Fixture;

    #[test]
    fn mounts_without_a_disk_are_named() {
        let host = || Fixture::healthy();
        assert_eq!(left_out(&host().window()), None);
        assert_eq!(left_out(&host().mount("sda", "fuse.lxcfs", "/var/lib/lxcfs", "rw").window()), None);
        assert_eq!(left_out(&host().mount("sda", "nfs4", "/share", "ro").window()), None, "nothing is dirtied there");
        let one = left_out(&host().mount("sda", "nfs4", "/share", "rw").window()).unwrap();
        assert!(
            one.starts_with("1 network or FUSE mount is not simulated: /share (nfs4). Its dirty pages count"),
            "{one}"
        );
        let mut many = host();
        for point in ["/a", "/b", "/c", "/d", "/e"] {
            many = many.mount("sda", "fuse.sshfs", point, "rw");
        }
        let many = left_out(&many.window()).unwrap();
        let told = "5 network or FUSE mounts are not simulated: /a (fuse.sshfs), /b (fuse.sshfs), /c (fuse.sshfs) and 2 more. Their";
        assert!(many.starts_with(told), "{many}");
    }
}
