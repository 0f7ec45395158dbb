// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arrays of level 1 in a guest, made through the attributes that the kernel's `Documentation/admin-guide/md.rst`
//! describes: without metadata on the members, which are all zeros when the array is made, so that nothing is
//! synchronised. No program of a distribution is needed.

use super::{GuestError, devices};
use floodline_record::id::DevId;
use std::fs;
use std::path::{Path, PathBuf};

/// A member: its name in the kernel, its number, its size.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Member {
    kernel_name: String,
    number: DevId,
    kib: u64,
}

/// Makes array number `array` of devices.
pub(super) fn make(array: usize, members: &[(PathBuf, DevId)]) -> Result<(PathBuf, DevId), GuestError> {
    let members: Vec<Member> = members.iter().map(member).collect::<Result<_, _>>()?;
    for (file, value) in writes(array, &members) {
        fs::write(&file, value).map_err(GuestError::at(file))?;
    }
    devices::device(&format!("md{array}"))
}

fn member((node, number): &(PathBuf, DevId)) -> Result<Member, GuestError> {
    let missing = || GuestError::Missing { what: format!("the size of {}", node.display()) };
    let kernel_name = node.file_name().ok_or_else(missing)?.to_string_lossy().into_owned();
    let path = Path::new("/sys/class/block").join(&kernel_name).join("size");
    let sectors = fs::read_to_string(&path).map_err(GuestError::at(path))?;
    let sectors: u64 = sectors.trim().parse().map_err(|_| missing())?;
    Ok(Member { kernel_name, number: *number, kib: sectors / 2 })
}

/// Files and what to write, in order.
fn writes(array: usize, members: &[Member]) -> Vec<(PathBuf, String)> {
    let md = PathBuf::from(format!("/sys/block/md{array}/md"));
    let kib = members.iter().map(|member| member.kib).min().unwrap_or(0).to_string();
    let mut writes = vec![
        (PathBuf::from("/sys/module/md_mod/parameters/new_array"), format!("md{array}")),
        (md.join("metadata_version"), "none".to_owned()),
        (md.join("level"), "raid1".to_owned()),
        (md.join("raid_disks"), members.len().to_string()),
        (md.join("component_size"), kib.clone()),
    ];
    for (slot, member) in members.iter().enumerate() {
        let dir = md.join(format!("dev-{}", member.kernel_name));
        writes.push((md.join("new_dev"), member.number.to_string()));
        writes.push((dir.join("size"), kib.clone()));
        writes.push((dir.join("slot"), slot.to_string()));
    }
    // The members are alike from the start.
    writes.push((md.join("resync_start"), "none".to_owned()));
    writes.push((md.join("array_state"), "active".to_owned()));
    writes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_array_is_as_large_as_its_smallest_member_and_starts_last() {
        let member = |name: &str, minor, kib| {
            let number = DevId { major: 254, minor };
            Member { kernel_name: name.to_owned(), number, kib }
        };
        let writes = writes(0, &[member("vda", 0, 2048), member("dm-1", 16, 1024)]);
        let lines: Vec<String> = writes.iter().map(|(file, value)| format!("{} {value}", file.display())).collect();
        let md = "/sys/block/md0/md";
        for line in ["component_size 1024", "new_dev 254:16", "dev-vda/size 1024", "dev-dm-1/slot 1"] {
            assert!(lines.contains(&format!("{md}/{line}")), "{line} in {lines:#?}");
        }
        assert_eq!(lines.last(), Some(&format!("{md}/array_state active")));
    }
}
