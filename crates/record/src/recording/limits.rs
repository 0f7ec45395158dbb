// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits on the work of a reader. A few bytes of a compressed file can encode any number of unchanged rows, so rows
//! and content are counted against the length of the file. The recorder stays far below every limit: a new row and an
//! entity cost it bytes.

use super::wire::Malformed;
use crate::gap::Source;

/// A bound that a recording exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Limit {
    /// Rows × columns of one sample.
    #[error("{cells} readings in one sample; the limit is {max}", max = SAMPLE_CELLS_MAX)]
    Sample {
        /// Rows × columns over all tables.
        cells: u64,
    },
    /// Rows × columns of all samples.
    #[error("{cells} readings in {bytes} bytes of file; the limit for that size is {max}", max = cells_max(*.bytes))]
    Cells {
        /// Rows × columns over all samples.
        cells: u64,
        /// Length of the file up to here.
        bytes: u64,
    },
    /// Rows × columns of new entities.
    #[error("{cells} readings of different entities in {bytes} bytes of file; the limit for that size is {max}", max = new_cells_max(*.bytes))]
    Entities {
        /// Rows × columns over the entities.
        cells: u64,
        /// Length of the file up to here.
        bytes: u64,
    },
    /// Bytes of content before compression.
    #[error("{content} bytes of content in {bytes} bytes of file; the limit for that size is {max}", max = content_max(*.bytes))]
    Content {
        /// Bytes that came out of the decompressor.
        content: u64,
        /// Length of the file up to here.
        bytes: u64,
    },
    /// Entries of a list, more than a machine can have.
    #[error("{count} entries of {from}; the limit is {max}")]
    Facts {
        /// Source of the list.
        from: Source,
        /// Number of entries.
        count: usize,
        /// Maximum number of entries.
        max: usize,
    },
}

/// Maximum rows × columns of one sample: half a million processes.
pub(super) const SAMPLE_CELLS_MAX: u64 = 1 << 23;

/// Maximum number of block devices of a machine.
const DEVICES_MAX: usize = 1 << 14;

/// Maximum number of mounts of a machine. The kernel's own limit is 100,000 in a mount namespace (`fs.mount-max`).
const MOUNTS_MAX: usize = 1 << 17;

fn cells_max(bytes: u64) -> u64 {
    bytes.saturating_mul(4096).saturating_add(1 << 25)
}

fn new_cells_max(bytes: u64) -> u64 {
    bytes.saturating_mul(32).saturating_add(1 << 20)
}

fn content_max(bytes: u64) -> u64 {
    bytes.saturating_mul(64).saturating_add(1 << 22)
}

/// Amounts read up to now.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spent {
    /// Length of the file.
    bytes: u64,
    content: u64,
    cells: u64,
    new_cells: u64,
    /// Rows × columns of the current sample.
    sample: u64,
}

impl Spent {
    /// Counts bytes read from the file.
    pub(super) fn read(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Returns how many bytes the decompressor may still produce.
    pub(super) fn content_left(&self) -> u64 {
        content_max(self.bytes).saturating_sub(self.content)
    }

    /// Counts decompressed content.
    pub(super) fn unpacked(&mut self, content: u64) -> Result<(), Limit> {
        self.content = self.content.saturating_add(content);
        let (content, bytes) = (self.content, self.bytes);
        if content > content_max(bytes) { Err(Limit::Content { content, bytes }) } else { Ok(()) }
    }

    /// Begins a sample.
    pub(super) fn begin_sample(&mut self) {
        self.sample = 0;
    }

    /// Counts a table of the sample before its rows are made. `new` of the `rows` are of entities that the table did
    /// not have before.
    pub(super) fn rows(&mut self, rows: usize, new: usize, columns: usize) -> Result<(), Limit> {
        let cells = |rows: usize| (rows as u64).saturating_mul(columns as u64);
        self.sample = self.sample.saturating_add(cells(rows));
        self.cells = self.cells.saturating_add(cells(rows));
        self.new_cells = self.new_cells.saturating_add(cells(new));
        let bytes = self.bytes;
        if self.sample > SAMPLE_CELLS_MAX {
            return Err(Limit::Sample { cells: self.sample });
        }
        if self.new_cells > new_cells_max(bytes) {
            return Err(Limit::Entities { cells: self.new_cells, bytes });
        }
        if self.cells > cells_max(bytes) {
            return Err(Limit::Cells { cells: self.cells, bytes });
        }
        Ok(())
    }
}

/// Checks the numbers of devices and mounts against the limits.
pub(super) fn check_facts(facts: &crate::facts::HostFacts) -> Result<(), Limit> {
    let check = |from, count, max| if count > max { Err(Limit::Facts { from, count, max }) } else { Ok(()) };
    check(Source::SysBlock, facts.devices.len(), DEVICES_MAX)?;
    check(Source::Mountinfo, facts.mounts.len(), MOUNTS_MAX)
}

/// Why a part of a frame was not used: this part alone, or the whole recording.
pub(super) enum Stop {
    Malformed,
    TooMuch(Limit),
}

impl From<Malformed> for Stop {
    fn from(_: Malformed) -> Stop {
        Stop::Malformed
    }
}

impl From<Limit> for Stop {
    fn from(limit: Limit) -> Stop {
        Stop::TooMuch(limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{BlockDevice, HostFacts, Mount, Stack};
    use crate::id::DevId;

    #[test]
    fn content_may_be_64_times_the_file_and_4_mib() {
        let mut spent = Spent::default();
        assert_eq!(spent.content_left(), 4 << 20);
        spent.read(10);
        spent.read(90);
        let max = 100 * 64 + (4 << 20);
        assert_eq!(spent.content_left(), max);
        assert!(spent.unpacked(max - 1).is_ok());
        assert_eq!(spent.content_left(), 1);
        assert!(spent.unpacked(1).is_ok());
        assert_eq!(spent.content_left(), 0);
        assert!(matches!(spent.unpacked(1), Err(Limit::Content { content, bytes: 100 }) if content == max + 1));
    }

    #[test]
    fn a_sample_has_a_number_of_cells() {
        let mut spent = Spent::default();
        spent.read(1 << 40);
        let half = usize::try_from(SAMPLE_CELLS_MAX / 2).unwrap();
        for _ in 0..3 {
            spent.begin_sample();
            assert!(spent.rows(half / 2, 0, 2).is_ok());
            assert!(spent.rows(half, 0, 1).is_ok());
        }
        assert!(spent.rows(0, 0, 1).is_ok());
        let over = spent.rows(1, 0, 1);
        assert!(matches!(over, Err(Limit::Sample { cells }) if cells == SAMPLE_CELLS_MAX + 1), "{over:?}");
    }

    #[test]
    fn rows_cost_bytes_and_new_ones_cost_more() {
        let mut spent = Spent::default();
        spent.read(10);
        let new = 10 * 32 + (1 << 20);
        assert!(spent.rows(new, new, 1).is_ok());
        let over = spent.rows(2, 1, 1);
        let expect = new as u64 + 1;
        assert!(matches!(over, Err(Limit::Entities { cells, bytes: 10 }) if cells == expect), "{over:?}");

        let mut spent = Spent::default();
        spent.read(10);
        let all = 10 * 4096 + (1 << 25);
        let mut left = all;
        while left > 0 {
            let rows = left.min(1 << 20);
            spent.begin_sample();
            assert!(spent.rows(rows / 4, 0, 4).is_ok());
            left -= rows / 4 * 4;
        }
        spent.begin_sample();
        let over = spent.rows(1, 0, 1);
        let expect = all as u64 + 1;
        assert!(matches!(over, Err(Limit::Cells { cells, bytes: 10 }) if cells == expect), "{over:?}");
    }

    #[test]
    fn a_machine_has_a_number_of_devices_and_mounts() {
        let mut facts = HostFacts::default();
        let dev = DevId { major: 8, minor: 0 };
        let device = BlockDevice {
            dev,
            name: "sda".into(),
            rotational: None,
            scheduler: None,
            nr_requests: None,
            max_request: None,
            wbt_lat: None,
            write_back_cache: None,
            size: None,
            partition_of: None,
            slaves: Vec::new(),
            stack: Stack::Bottom,
        };
        facts.devices.resize_with(DEVICES_MAX, || device.clone());
        assert!(check_facts(&facts).is_ok());
        facts.devices.push(device);
        assert!(matches!(check_facts(&facts), Err(Limit::Facts { from: Source::SysBlock, max: DEVICES_MAX, .. })));
        facts.devices.clear();
        let mount = Mount {
            dev,
            root: "/".into(),
            mount_point: "/".into(),
            fs_type: "tmpfs".into(),
            source: "none".into(),
            options: "rw".into(),
            super_options: "rw".into(),
            overlay: None,
        };
        facts.mounts.resize_with(MOUNTS_MAX, || mount.clone());
        assert!(check_facts(&facts).is_ok());
        facts.mounts.push(mount);
        assert!(matches!(check_facts(&facts), Err(Limit::Facts { from: Source::Mountinfo, max: MOUNTS_MAX, .. })));
    }
}
