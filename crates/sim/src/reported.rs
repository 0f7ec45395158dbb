// SPDX-License-Identifier: MIT OR Apache-2.0
//! Facts of the modelled machine, in the form in which a probe reports those of a host.

use crate::arena::BlockId;
use crate::filesystem::Superblock;
use crate::wb::Bdi;
use crate::world::World;
use floodline_record::facts::{self, CgroupSetup};
use floodline_record::id::DevId;
use floodline_record::name::Name;

/// A mount in the form that a probe reports.
pub(crate) fn mount_facts(world: &World, sb: &Superblock, block: BlockId) -> facts::Mount {
    let block = &world.blocks[block];
    let options = if sb.options.is_empty() { "rw".to_owned() } else { format!("rw,{}", sb.options) };
    facts::Mount {
        dev: block.dev,
        root: Name::new("/"),
        mount_point: Name::new(&sb.point),
        fs_type: sb.fs_type.name().into(),
        source: Name::new(format!("/dev/{}", block.name)),
        options: Name::new(options.clone()),
        super_options: Name::new(options),
        overlay: None,
    }
}

/// The disk of a bdi, as its link in sysfs shows it. The bdi of a btrfs has no such link.
pub(crate) fn bdi_disk(world: &World, bdi: &Bdi) -> Option<DevId> {
    (!bdi.is_of_btrfs()).then(|| world.blocks[bdi.device].dev)
}

/// The cgroup setup in the form that a probe reports.
pub(crate) fn setup_facts(world: &World) -> CgroupSetup {
    if world.unified {
        CgroupSetup {
            mode: facts::CgroupMode::V2,
            v2_mount: Some(Name::new("/sys/fs/cgroup")),
            v2_controllers: vec!["io".into(), "memory".into()],
            ..CgroupSetup::default()
        }
    } else {
        let mount = |name: &str| (name.into(), Name::new(format!("/sys/fs/cgroup/{name}")));
        CgroupSetup {
            mode: facts::CgroupMode::V1,
            v1_mounts: [mount("memory"), mount("blkio")].into_iter().collect(),
            ..CgroupSetup::default()
        }
    }
}
