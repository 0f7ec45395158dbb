// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writeback tracepoints that supply facts missing from /proc and /sys, with the names of events and fields over time.
//! Checks that this kernel's record has the fields that are needed. Independent of the readers. Mirrors
//! `include/trace/events/writeback.h` from 5.10 to 7.2.

use crate::parse::trace_format::Field;

/// One tracepoint.
#[derive(Clone, Copy, Debug)]
pub struct Tracepoint {
    /// Its names, `GROUP/NAME`, the newest first.
    pub names: &'static [&'static str],
    /// Required fields, each with its names over time and the widths it may have, bytes.
    pub fields: &'static [(&'static [&'static str], &'static [u32])],
    /// Kernels that have it, if not every one since 5.10 does.
    pub since: Option<&'static str>,
    /// Facts that are missing without it.
    pub lost_without: &'static str,
}

const BDI: (&[&str], &[u32]) = (&["bdi", "name"], &[32]);
const NUMBER: &[u32] = &[4, 8];
const CGROUP: (&[&str], &[u32]) = (&["cgroup_ino"], NUMBER);

/// The catalogue, in the order of the report.
pub static TRACEPOINTS: &[&Tracepoint] = &[
    &BALANCE_DIRTY_PAGES,
    &WRITEBACK_START,
    &WRITEBACK_WRITTEN,
    &WRITEBACK_DIRTY_FOLIO,
    &WRITEBACK_SINGLE_INODE,
    &INODE_SWITCH_WBS,
    &INODE_SWITCH_WBS_QUEUE,
    &TRACK_FOREIGN_DIRTY,
    &FLUSH_FOREIGN,
    &CGROUP_RMDIR,
    &BLOCK_BIO_QUEUE,
    &EXT4_SYNC_FILE_ENTER,
    &EXT4_SYNC_FILE_EXIT,
    &EXT4_JOURNALLED_WRITE_END,
];

/// `writeback/balance_dirty_pages`.
pub(super) static BALANCE_DIRTY_PAGES: Tracepoint = Tracepoint {
    names: &["writeback/balance_dirty_pages"],
    fields: &[
        BDI,
        (&["limit"], NUMBER),
        (&["setpoint"], NUMBER),
        (&["dirty"], NUMBER),
        // Renamed from `bdi_` to `wb_` some time between 6.12 and 6.18.
        (&["wb_setpoint", "bdi_setpoint"], NUMBER),
        (&["wb_dirty", "bdi_dirty"], NUMBER),
        (&["pause"], NUMBER),
        CGROUP,
    ],
    since: None,
    lost_without: "which task was paused in dirty throttling, how long, and by which limit",
};

/// `writeback/writeback_start`.
pub(super) static WRITEBACK_START: Tracepoint = Tracepoint {
    names: &["writeback/writeback_start"],
    fields: &[BDI, (&["nr_pages"], NUMBER), (&["reason"], &[4]), CGROUP],
    since: None,
    lost_without: "why the flusher ran",
};

/// `writeback/writeback_written`.
pub(super) static WRITEBACK_WRITTEN: Tracepoint = Tracepoint {
    names: &["writeback/writeback_written"],
    fields: &[BDI, (&["nr_pages"], NUMBER), (&["reason"], &[4]), CGROUP],
    since: None,
    lost_without: "how much a run of the flusher wrote, and for how long",
};

/// `writeback/writeback_dirty_folio`.
pub(super) static WRITEBACK_DIRTY_FOLIO: Tracepoint = Tracepoint {
    names: &["writeback/writeback_dirty_folio", "writeback/writeback_dirty_page"],
    fields: &[BDI, (&["ino"], NUMBER), (&["index"], NUMBER)],
    since: None,
    lost_without: "which file is being dirtied",
};

/// `writeback/writeback_single_inode`.
pub(super) static WRITEBACK_SINGLE_INODE: Tracepoint = Tracepoint {
    names: &["writeback/writeback_single_inode"],
    fields: &[BDI, (&["ino"], NUMBER), (&["wrote"], NUMBER), CGROUP],
    since: None,
    lost_without: "which file the flusher wrote",
};

/// `writeback/inode_switch_wbs`.
pub(super) static INODE_SWITCH_WBS: Tracepoint = Tracepoint {
    names: &["writeback/inode_switch_wbs"],
    fields: &[BDI, (&["ino"], NUMBER), (&["old_cgroup_ino"], NUMBER), (&["new_cgroup_ino"], NUMBER)],
    since: None,
    lost_without: "inodes that move from one cgroup to another",
};

/// `writeback/inode_switch_wbs_queue`.
pub(super) static INODE_SWITCH_WBS_QUEUE: Tracepoint = Tracepoint {
    names: &["writeback/inode_switch_wbs_queue"],
    fields: &[BDI, (&["old_cgroup_ino"], NUMBER), (&["new_cgroup_ino"], NUMBER), (&["count"], NUMBER)],
    since: Some("since 6.18"),
    lost_without: "how many inodes wait to be moved",
};

/// `writeback/track_foreign_dirty`.
pub(super) static TRACK_FOREIGN_DIRTY: Tracepoint = Tracepoint {
    names: &["writeback/track_foreign_dirty"],
    fields: &[BDI, (&["ino"], NUMBER), CGROUP, (&["page_cgroup_ino"], NUMBER)],
    since: None,
    lost_without: "cgroups that dirty files owned by another",
};

/// `writeback/flush_foreign`.
pub(super) static FLUSH_FOREIGN: Tracepoint = Tracepoint {
    names: &["writeback/flush_foreign"],
    fields: &[BDI, CGROUP, (&["frn_bdi_id"], NUMBER), (&["frn_memcg_id"], NUMBER)],
    since: None,
    lost_without: "flushes of one cgroup's dirty data on behalf of another",
};

/// `cgroup/cgroup_rmdir`.
pub(super) static CGROUP_RMDIR: Tracepoint = Tracepoint {
    names: &["cgroup/cgroup_rmdir"],
    fields: &[(&["root"], &[4]), (&["id"], NUMBER), (&["path"], &[4])],
    since: None,
    lost_without: "when a cgroup was removed, which starts moves of its inodes",
};

/// `block/block_bio_queue`. Only its arguments are read.
pub(super) static BLOCK_BIO_QUEUE: Tracepoint = Tracepoint {
    names: &["block/block_bio_queue"],
    fields: &[],
    since: None,
    lost_without: "which file's and which cgroup's bytes are queued at a disk",
};

/// `ext4/ext4_sync_file_enter`.
pub(super) static EXT4_SYNC_FILE_ENTER: Tracepoint = Tracepoint {
    names: &["ext4/ext4_sync_file_enter"],
    fields: &[(&["dev"], &[4]), (&["ino"], NUMBER), (&["datasync"], &[4])],
    since: Some("built without ext4, or it is not loaded"),
    lost_without: "how long tasks wait in fsync and similar calls, where functions cannot be traced",
};

/// `ext4/ext4_sync_file_exit`. Nothing of its record is read.
pub(super) static EXT4_SYNC_FILE_EXIT: Tracepoint =
    Tracepoint { names: &["ext4/ext4_sync_file_exit"], fields: &[], ..EXT4_SYNC_FILE_ENTER };

/// `ext4/ext4_journalled_write_end`. Only its arguments are read.
pub(super) static EXT4_JOURNALLED_WRITE_END: Tracepoint = Tracepoint {
    names: &["ext4/ext4_journalled_write_end"],
    fields: &[],
    since: Some("built without ext4, or it is not loaded"),
    lost_without: "writers of files with data=journal",
};

impl Tracepoint {
    /// Returns the required fields that a record of these fields lacks: missing fields, and fields of an unknown width.
    pub fn lacks(&self, fields: &[Field]) -> Vec<String> {
        let mut lacks = Vec::new();
        for (names, sizes) in self.fields {
            match fields.iter().find(|field| names.contains(&field.name.as_str())) {
                None => lacks.push(format!("no field {}", names.join(" or "))),
                Some(field) if !sizes.contains(&field.size) => {
                    lacks.push(format!("field {} of {} bytes", field.name, field.size));
                }
                Some(_) => {}
            }
        }
        lacks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(fields: &[(&str, u32)], lacks: &[&str]) {
        let fields: Vec<Field> =
            fields.iter().map(|&(name, size)| Field { name: name.into(), offset: 8, size, signed: false }).collect();
        assert_eq!(TRACEPOINTS[0].lacks(&fields), lacks);
    }

    #[test]
    fn fields_are_found_by_any_of_their_names_in_any_order_and_known_width() {
        let old = [("bdi", 32), ("limit", 8), ("setpoint", 8), ("dirty", 8), ("bdi_setpoint", 8), ("bdi_dirty", 8)];
        let rest = [("pause", 8), ("cgroup_ino", 8)];
        check(&[&old[..], &rest].concat(), &[]);
        let new = [("wb_dirty", 8), ("wb_setpoint", 8), ("dirty", 8), ("setpoint", 8), ("limit", 8), ("bdi", 32)];
        check(&[&rest[..], &new].concat(), &[]);
        check(&[&old[..], &[("pause", 16)]].concat(), &["field pause of 16 bytes", "no field cgroup_ino"]);
        check(
            &[&old[..4], &rest].concat(),
            &["no field wb_setpoint or bdi_setpoint", "no field wb_dirty or bdi_dirty"],
        );
    }

    #[test]
    fn the_record_of_6_18_has_what_is_needed() {
        let text = "\
            \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
            \tfield:char bdi[32];\toffset:8;\tsize:32;\tsigned:0;\n\
            \tfield:unsigned long limit;\toffset:40;\tsize:8;\tsigned:0;\n\
            \tfield:unsigned long setpoint;\toffset:48;\tsize:8;\tsigned:0;\n\
            \tfield:unsigned long dirty;\toffset:56;\tsize:8;\tsigned:0;\n\
            \tfield:unsigned long wb_setpoint;\toffset:64;\tsize:8;\tsigned:0;\n\
            \tfield:unsigned long wb_dirty;\toffset:72;\tsize:8;\tsigned:0;\n\
            \tfield:long pause;\toffset:112;\tsize:8;\tsigned:1;\n\
            \tfield:ino_t cgroup_ino;\toffset:136;\tsize:8;\tsigned:0;\n";
        let fields = crate::parse::trace_format::parse(text.as_bytes()).unwrap();
        assert_eq!(TRACEPOINTS[0].lacks(&fields), Vec::<String>::new());
    }

    #[test]
    fn every_tracepoint_is_listed_once() {
        let mut names: Vec<&str> = TRACEPOINTS.iter().flat_map(|tracepoint| tracepoint.names).copied().collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
