// SPDX-License-Identifier: MIT OR Apache-2.0
//! How large a folio of a regular file can be, by filesystem and kernel: a store through a mapping
//! dirties, and the next writeback writes, a whole one. A bound with what it assumes, not a
//! measurement: which folios a file has depends on how it was read and written. Follows the order
//! chosen in mm/readahead.c and, for writes, in fs/iomap/buffered-io.c and fs/ext4/inode.c.

use super::Behaviour;
use floodline_record::units::Bytes;

/// What makes folios of a filesystem large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FolioMaker {
    /// Nothing: every folio is a page.
    None,
    /// Readahead only: at most the readahead window.
    Readahead,
    /// Readahead, and writes: a folio is sized like the write, up to the filesystem's maximum.
    ReadaheadAndWrite,
}

/// The largest folios of a filesystem, and what that takes for granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LargestFolio {
    /// What makes them.
    pub maker: FolioMaker,
    /// The largest that readahead makes of a file that is only read and mapped.
    pub by_readahead: Bytes,
    /// The largest that a `write` makes.
    pub by_write: Bytes,
    /// What must hold for this to be the bound.
    pub assumes: &'static str,
}

/// Filesystems whose folios are pages on every kernel known here.
const PAGES_ONLY: &[&str] = &["ext2", "ext3", "f2fs", "vfat", "exfat", "jfs", "reiserfs", "nilfs2", "hfsplus", "udf"];

/// Default `read_ahead_kb` of a bdi.
const USUAL_READ_AHEAD: Bytes = Bytes(128 << 10);
/// Largest order where a page is 4 KiB: that of a huge page.
const ORDER_MAX_4K: u32 = 9;
/// Largest order where pages are larger: what a slot of the page cache can hold.
const ORDER_MAX: u32 = 11;

/// The largest folio of regular files. `read_ahead` is the bdi's window. `None` for filesystems that
/// are not known here, and where the kernel's behaviour is not.
pub fn largest_folio(
    fs_type: &str,
    kernel: Option<&Behaviour>,
    read_ahead: Option<Bytes>,
    page_size: u64,
) -> Option<LargestFolio> {
    let page = Bytes(page_size);
    let pages = |assumes| LargestFolio { maker: FolioMaker::None, by_readahead: page, by_write: page, assumes };
    if PAGES_ONLY.contains(&fs_type) {
        return Some(pages("nothing: this filesystem has folios of one page"));
    }
    if fs_type == "btrfs" {
        return Some(pages("a kernel built without the experimental features of btrfs"));
    }
    let folios = |of: fn(&Behaviour) -> (bool, bool)| kernel.map(of);
    let (by_readahead, by_write) = match fs_type {
        "xfs" => folios(|kernel| (kernel.folios.xfs_by_readahead, kernel.folios.xfs_by_write)),
        "ext4" => folios(|kernel| (kernel.folios.ext4, kernel.folios.ext4)),
        _ => None,
    }?;
    if !by_readahead {
        return Some(pages("no backport of large folios to this kernel"));
    }
    let order = if page_size == 4096 { ORDER_MAX_4K } else { ORDER_MAX };
    let most = Bytes(page_size.saturating_mul(1 << order));
    let window = Bytes(read_ahead.unwrap_or(USUAL_READ_AHEAD).0.clamp(page.0, most.0.max(page.0)));
    Some(LargestFolio {
        maker: if by_write { FolioMaker::ReadaheadAndWrite } else { FolioMaker::Readahead },
        by_readahead: window,
        by_write: if by_write { most } else { page },
        assumes: match (read_ahead.is_some(), fs_type) {
            (true, "ext4") => "a filesystem without data=journal, encryption or verity; no madvise for huge pages",
            (false, "ext4") => "a readahead window of 128 KiB; no data=journal, encryption or verity",
            (true, _) => "no madvise for huge pages",
            (false, _) => "a readahead window of 128 KiB; no madvise for huge pages",
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn folio(kernel: &str, fs_type: &str, read_ahead_kib: Option<u64>, page_size: u64) -> Option<LargestFolio> {
        let read_ahead = read_ahead_kib.and_then(Bytes::from_kib);
        let kernel = kernel.parse().ok().map(Behaviour::of);
        largest_folio(fs_type, kernel.as_ref(), read_ahead, page_size)
    }

    fn check(kernel: &str, fs_type: &str, read_ahead_kib: Option<u64>, expect: Option<(FolioMaker, u64, u64)>) {
        let found = folio(kernel, fs_type, read_ahead_kib, 4096)
            .map(|folio| (folio.maker, folio.by_readahead.0 >> 10, folio.by_write.0 >> 10));
        assert_eq!(found, expect, "{fs_type} on {kernel}");
    }

    #[test]
    fn large_folios_came_filesystem_by_filesystem() {
        use FolioMaker::{None as Pages, Readahead, ReadaheadAndWrite};
        check("5.17.0", "xfs", Some(128), Some((Pages, 4, 4)));
        check("5.18.0", "xfs", Some(128), Some((Readahead, 128, 4)));
        check("6.1.192", "xfs", Some(4096), Some((Readahead, 2048, 4)));
        check("6.5.13", "xfs", None, Some((Readahead, 128, 4)));
        check("6.6.0", "xfs", Some(128), Some((ReadaheadAndWrite, 128, 2048)));
        check("6.12.117", "ext4", Some(128), Some((Pages, 4, 4)));
        check("6.16.0", "ext4", Some(128), Some((ReadaheadAndWrite, 128, 2048)));
        check("7.2.13", "ext4", Some(0), Some((ReadaheadAndWrite, 4, 2048)));
        check("7.2.13", "ext2", Some(128), Some((Pages, 4, 4)));
        check("7.2.13", "btrfs", Some(128), Some((Pages, 4, 4)));
        check("7.2.13", "newfs", Some(128), None);
        check("unknown", "xfs", Some(128), None);
        check("unknown", "ext2", Some(128), Some((Pages, 4, 4)));
    }

    #[test]
    fn larger_pages_make_larger_folios() {
        let folio = folio("6.12.0", "xfs", Some(128), 65_536).unwrap();
        assert_eq!((folio.by_readahead.0, folio.by_write.0), (128 << 10, 128 << 20));
    }

    proptest! {
        #[test]
        fn a_folio_is_at_least_a_page_and_readahead_makes_none_larger_than_the_maximum(
            minor in 0_u16..40, major in 3_u16..8, read_ahead: Option<u64>, shift in 12_u32..20,
        ) {
            let kernel = Behaviour::of(floodline_record::version::KernelVersion::new(major, minor, 0));
            let page = 1_u64 << shift;
            for fs_type in ["xfs", "ext4", "btrfs"] {
                let folio = largest_folio(fs_type, Some(&kernel), read_ahead.map(Bytes), page).unwrap();
                prop_assert!(folio.by_readahead.0 >= page && folio.by_write.0 >= page);
                prop_assert!(folio.by_readahead.0 <= page << ORDER_MAX);
            }
        }
    }
}
