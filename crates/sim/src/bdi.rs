// SPDX-License-Identifier: MIT OR Apache-2.0
//! Backing device infos: one for each disk, and one for each btrfs, which the knobs of its disks do not reach.

use crate::arena::{BdiId, BlockId, CgId, WbId};
use crate::engine::Alarm;
use crate::wb::{Bdi, Lock};
use crate::world::World;
use floodline_record::id::is_of_btrfs;
use floodline_record::name::Name;

/// Readahead of a btrfs, bytes (`open_ctree`).
const BTRFS_READ_AHEAD: u64 = 4 << 20;

impl Bdi {
    /// A bdi with the settings that a kernel starts with, and readahead of 128 KiB. `full` is a ratio of 100 %, in the kernel's units.
    pub(crate) fn new(name: String, device: BlockId, full: u64) -> Bdi {
        Bdi {
            name,
            device,
            root: WbId(0),
            wbs: Vec::new(),
            min_ratio: 0,
            max_ratio: full,
            strictlimit: false,
            read_ahead: 128 << 10,
            tot_write_bandwidth: 0,
            last_sleep: 0,
            laptop_mode_wb_timer: Alarm::default(),
            switch_lock: Lock::default(),
        }
    }

    /// Whether it belongs to a btrfs and not to a disk.
    pub(crate) fn is_of_btrfs(&self) -> bool {
        is_of_btrfs(&Name::new(&self.name))
    }
}

impl World {
    /// Adds a bdi and the wb of its root cgroup.
    pub(crate) fn add_bdi(&mut self, bdi: Bdi) -> BdiId {
        self.bdi_min_ratio += bdi.min_ratio;
        let bdi = self.bdis.push(bdi);
        let root = self.wb_get(bdi, CgId::ROOT);
        self.bdis[bdi].root = root;
        bdi
    }

    /// Adds the bdi of a btrfs on a device: `btrfs-1` for the first one, as kernels 5.10 to 7.2 name it.
    pub(crate) fn add_bdi_of_btrfs(&mut self, device: BlockId) -> BdiId {
        let known = self.bdis.iter().filter(|(_, bdi)| bdi.is_of_btrfs()).count();
        let full = self.behaviour.arithmetic.ratio_full();
        let bdi = Bdi::new(format!("btrfs-{}", known + 1), device, full);
        self.add_bdi(Bdi { read_ahead: BTRFS_READ_AHEAD, ..bdi })
    }

    /// The bdi that counts the data of a device: that of a btrfs on it, or else its own.
    pub(crate) fn bdi_of_data(&self, device: BlockId) -> Option<BdiId> {
        let is_it = |bdi: &Bdi| bdi.is_of_btrfs() && bdi.device == device;
        let of_btrfs = self.bdis.iter().find(|(_, bdi)| is_it(bdi)).map(|(id, _)| id);
        of_btrfs.or(self.blocks[device].bdi)
    }
}
