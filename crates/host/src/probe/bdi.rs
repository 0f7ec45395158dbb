// SPDX-License-Identifier: MIT OR Apache-2.0
//! Backing device infos: their names, and the device each belongs to. A bdi of a disk is named after
//! the whole disk's number; one of a superblock (btrfs, NFS, FUSE) has a name of its own.

use super::Prober;
use floodline_record::gap::Source;
use floodline_record::id::DevId;
use floodline_record::name::Name;

const FOLDER: &[u8] = b"/sys/class/bdi";

pub(super) fn probe(prober: &mut Prober<'_>) {
    match prober.root.list_dir(FOLDER) {
        Ok(entries) => {
            let devices = &prober.facts.devices;
            let bdis = entries.iter().map(|entry| {
                let name = Name::new(&entry.name).to_string();
                // "0:50" is a superblock without a device.
                let dev: Option<DevId> = name.parse().ok().filter(|dev: &DevId| dev.major != 0);
                let dev = dev.filter(|dev| devices.is_empty() || devices.iter().any(|device| device.dev == *dev));
                (name.into(), dev)
            });
            prober.facts.bdis = bdis.collect();
        }
        Err(cause) => prober.gap(Source::SysBdi, cause, FOLDER),
    }
}
