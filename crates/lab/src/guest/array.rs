// SPDX-License-Identifier: MIT OR Apache-2.0
//! md arrays in a guest, made through the attributes that the kernel's `Documentation/admin-guide/md.rst`
//! describes: without metadata on the members, which are all zeros when the array is made, so that nothing is
//! synchronised. No program of a distribution is needed.

use super::{GuestError, devices};
use floodline_record::id::DevId;
use floodline_scenario::Layout;
use std::fs;
use std::path::{Path, PathBuf};

/// Bytes of a sector, in which the kernel counts sizes.
pub(super) const SECTOR: u64 = 512;

/// A member of a stacked device: its name in the kernel, its number, its size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) kernel_name: String,
    pub(super) number: DevId,
    pub(super) sectors: u64,
}

/// Makes array number `array` of a level (`raid1`) of devices.
pub(super) fn make(
    array: usize,
    (level, layout): (&str, Layout),
    members: &[(PathBuf, DevId)],
) -> Result<(PathBuf, DevId), GuestError> {
    let members: Vec<Member> = members.iter().map(member).collect::<Result<_, _>>()?;
    for (file, value) in writes(array, level, layout, &members) {
        fs::write(&file, value).map_err(GuestError::at(file))?;
    }
    devices::device(&format!("md{array}"))
}

/// Reads name, number and size of a device that becomes a member.
pub(super) fn member((node, number): &(PathBuf, DevId)) -> Result<Member, GuestError> {
    let missing = || GuestError::Missing { what: format!("the size of {}", node.display()) };
    let kernel_name = node.file_name().ok_or_else(missing)?.to_string_lossy().into_owned();
    let path = Path::new("/sys/class/block").join(&kernel_name).join("size");
    let sectors = fs::read_to_string(&path).map_err(GuestError::at(path))?;
    let sectors: u64 = sectors.trim().parse().map_err(|_| missing())?;
    Ok(Member { kernel_name, number: *number, sectors })
}

/// `near=2`: two copies, on neighbours.
const NEAR_2: &str = "258";

/// Files and what to write, in order.
fn writes(array: usize, level: &str, layout: Layout, members: &[Member]) -> Vec<(PathBuf, String)> {
    let md = PathBuf::from(format!("/sys/block/md{array}/md"));
    let chunk = match layout {
        Layout::Stripes(chunk) | Layout::MirroredStripes(chunk) => Some(chunk),
        Layout::Mirrors | Layout::Linear | Layout::Encrypted(_) => None,
    };
    // Members of one size make one zone of stripes.
    let least = members.iter().map(|member| member.sectors).min().unwrap_or(0);
    let sectors = least - least % (chunk.unwrap_or(1024) / SECTOR).max(2);
    let kib = (sectors / 2).to_string();
    let mut writes = vec![
        (PathBuf::from("/sys/module/md_mod/parameters/new_array"), format!("md{array}")),
        (md.join("metadata_version"), "none".to_owned()),
        (md.join("level"), level.to_owned()),
        (md.join("raid_disks"), members.len().to_string()),
        (md.join("component_size"), kib.clone()),
    ];
    writes.extend(chunk.map(|chunk| (md.join("chunk_size"), chunk.to_string())));
    if let Layout::MirroredStripes(_) = layout {
        writes.push((md.join("layout"), NEAR_2.to_owned()));
    }
    for (slot, member) in members.iter().enumerate() {
        let dir = md.join(format!("dev-{}", member.kernel_name));
        writes.push((md.join("new_dev"), member.number.to_string()));
        writes.push((dir.join("size"), kib.clone()));
        writes.push((dir.join("slot"), slot.to_string()));
    }
    // The mirrors are equal from the start, so no resync is needed.
    if let Layout::Mirrors | Layout::MirroredStripes(_) = layout {
        writes.push((md.join("resync_start"), "none".to_owned()));
    }
    writes.push((md.join("array_state"), "active".to_owned()));
    writes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(level: &str, layout: Layout, members: &[(&str, u32, u64)]) -> Vec<String> {
        let member = |(name, minor, kib): &(&str, u32, u64)| {
            let number = DevId { major: 254, minor: *minor };
            Member { kernel_name: (*name).to_owned(), number, sectors: 2 * kib }
        };
        let members: Vec<Member> = members.iter().map(member).collect();
        let writes = writes(0, level, layout, &members);
        writes.iter().map(|(file, value)| format!("{} {value}", file.display())).collect()
    }

    #[test]
    fn an_array_is_as_large_as_its_smallest_member_and_starts_last() {
        let lines = lines("raid1", Layout::Mirrors, &[("vda", 0, 2048), ("dm-1", 16, 1024)]);
        let md = "/sys/block/md0/md";
        for line in ["level raid1", "component_size 1024", "new_dev 254:16", "dev-vda/size 1024", "dev-dm-1/slot 1"] {
            assert!(lines.contains(&format!("{md}/{line}")), "{line} in {lines:#?}");
        }
        assert!(!lines.iter().any(|line| line.contains("chunk_size") || line.contains("/layout")), "{lines:#?}");
        assert_eq!(lines.last(), Some(&format!("{md}/array_state active")));
    }

    #[test]
    fn stripes_are_whole_chunks_and_only_copies_could_be_unlike() {
        let members = [("vda", 0, 1000), ("vdb", 16, 1024), ("vdc", 32, 1024), ("vdd", 48, 1024)];
        let raid0 = lines("raid0", Layout::Stripes(64 << 10), &members);
        let md = "/sys/block/md0/md";
        for line in ["level raid0", "chunk_size 65536", "component_size 960", "dev-vdb/size 960"] {
            assert!(raid0.contains(&format!("{md}/{line}")), "{line} in {raid0:#?}");
        }
        assert!(!raid0.iter().any(|line| line.contains("resync_start") || line.contains("/layout")), "{raid0:#?}");
        let raid10 = lines("raid10", Layout::MirroredStripes(512 << 10), &members);
        for line in ["level raid10", "layout 258", "resync_start none", "component_size 512"] {
            assert!(raid10.contains(&format!("{md}/{line}")), "{line} in {raid10:#?}");
        }
    }
}
