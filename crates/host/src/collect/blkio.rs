// SPDX-License-Identifier: MIT OR Apache-2.0
//! I/O by cgroup and device of version 1, whose blkio hierarchy is a tree of its own. Its rows belong to the cgroup of
//! the memory hierarchy with the same path, or to the blkio cgroup if there is none. Version 1 charges all buffered
//! writes to the root.

use super::Round;
use super::cgroups::{Cgroups, io_rows};
use super::gaps::Trouble;
use super::kept::Reading;
use super::tree::{Place, Tree};
use crate::parse::blkio::{self, Counts};
use crate::parse::blkio_limit;
use crate::plan;
use crate::root::{Fault, SMALL};
use floodline_record::gap::Source;
use floodline_record::id::{DevId, Entity, Hierarchy};
use floodline_record::name::Name;
use floodline_record::sample::{CgroupIoRow, Sample, Table};
use floodline_record::units::Limit;

struct File {
    /// Includes descendants, as io.stat does.
    recursive: &'static str,
    /// File that is read if the kernel has no recursive counters.
    own: &'static str,
    counts: Counts,
}

const FILES: [File; 2] = [
    File {
        recursive: "blkio.throttle.io_service_bytes_recursive",
        own: "blkio.throttle.io_service_bytes",
        counts: Counts::Bytes,
    },
    File {
        recursive: "blkio.throttle.io_serviced_recursive",
        own: "blkio.throttle.io_serviced",
        counts: Counts::Requests,
    },
];

/// A file of limits, and the field for its numbers.
struct LimitFile {
    name: &'static str,
    field: fn(&mut CgroupIoRow) -> &mut Option<Limit>,
}

const LIMITS: [LimitFile; 4] = [
    LimitFile { name: "blkio.throttle.read_bps_device", field: |row| &mut row.rbps_max },
    LimitFile { name: "blkio.throttle.write_bps_device", field: |row| &mut row.wbps_max },
    LimitFile { name: "blkio.throttle.read_iops_device", field: |row| &mut row.riops_max },
    LimitFile { name: "blkio.throttle.write_iops_device", field: |row| &mut row.wiops_max },
];

/// The version 1 hierarchy of I/O.
#[derive(Debug)]
pub(super) struct Blkio {
    tree: Tree,
}

impl Blkio {
    pub(super) fn new(tree: &plan::Tree) -> Blkio {
        Blkio { tree: Tree::new(tree.mount.as_bytes(), Source::CgroupV1Blkio, FILES.len()) }
    }

    /// Fills the table of I/O by cgroup and device.
    pub(super) fn read(&mut self, round: &mut Round<'_>, sample: &mut Sample, cgroups: Option<&Cgroups>) {
        self.tree.refresh(round);
        let mut rows = Vec::new();
        let mut devices: Vec<(DevId, CgroupIoRow)> = Vec::new();
        let mut gone = Vec::new();
        let (mount, nodes) = self.tree.nodes_mut();
        for (id, node) in nodes {
            let first = node.read_in.replace(round.number).is_none();
            let due = first || round.is_due(u64::from(id));
            let reading = Reading::small(round.descriptors, due);
            node.enter(round.root, mount);
            let (place, files) = node.place(round.root, mount);
            for (file, kept) in FILES.iter().zip(files) {
                let unopened = kept.is_closed();
                let open = || match place.open(file.recursive) {
                    Err(Fault::NOT_FOUND) => place.open(file.own),
                    opened => opened,
                };
                match kept.read(reading, round.buffer, open) {
                    Ok(()) => {
                        let parsed = blkio::parse(round.buffer, file.counts, |dev, row| merge(&mut devices, dev, row));
                        round.check(Source::CgroupV1Blkio, file.own, None, parsed);
                    }
                    Err(fault) if fault.is_gone() && (fault != Fault::NOT_FOUND || unopened && place.is_gone()) => {
                        gone.push(id);
                        break;
                    }
                    Err(fault) => round.gaps.add(Source::CgroupV1Blkio, file.own, fault, None),
                }
            }
            if due && gone.last() != Some(&id) {
                limits(round, place, &mut devices);
            }
            node.leave();
            if devices.is_empty() {
                continue;
            }
            let joined = cgroups.and_then(|cgroups| cgroups.entity_at(&node.path));
            let owner = match joined.or(node.entity) {
                Some(owner) => owner,
                None => {
                    let (path, hierarchy) = (Name::new(&node.path), Hierarchy::V1Blkio);
                    *node.entity.insert(round.describe(Entity::Cgroup { path, hierarchy, ino: None }))
                }
            };
            io_rows(round, node, owner, &mut devices, &mut rows);
        }
        for id in gone {
            round.gaps.add(Source::CgroupV1Blkio, "", Trouble::Vanished, None);
            self.tree.remove(id);
        }
        sample.cgroup_io = Table::read(rows);
    }
}

/// Reads the limits, which hardly ever change. As in `io.max`, a device without a limit has no line, and one with a limit is
/// unlimited in the fields that are not set.
fn limits(round: &mut Round<'_>, place: Place<'_>, devices: &mut Vec<(DevId, CgroupIoRow)>) {
    let mut found: Vec<(DevId, CgroupIoRow)> = Vec::new();
    let mut is_read = [false; LIMITS.len()];
    for (file, is_read) in LIMITS.iter().zip(&mut is_read) {
        match place.open(file.name).and_then(|open| open.read_piece(round.buffer, SMALL)) {
            Ok(()) => {
                let parsed = blkio_limit::parse(round.buffer, |dev, limit| {
                    *(file.field)(row_of(&mut found, dev)) = Some(limit);
                });
                *is_read = parsed.is_ok();
                round.check(Source::BlkioLimits, file.name, None, parsed);
            }
            Err(fault) if fault.is_gone() && fault != Fault::NOT_FOUND => return,
            Err(fault) => round.gaps.add(Source::BlkioLimits, file.name, fault, None),
        }
    }
    for (dev, limits) in found {
        let row = row_of(devices, dev);
        (row.rbps_max, row.wbps_max) = (limits.rbps_max, limits.wbps_max);
        (row.riops_max, row.wiops_max) = (limits.riops_max, limits.wiops_max);
    }
    for (_, row) in devices {
        for (file, _) in LIMITS.iter().zip(is_read).filter(|(_, is_read)| *is_read) {
            (file.field)(row).get_or_insert(Limit::MAX);
        }
    }
}

/// Returns the row of a device. Adds it if it is missing.
fn row_of(devices: &mut Vec<(DevId, CgroupIoRow)>, dev: DevId) -> &mut CgroupIoRow {
    let at = devices.iter().position(|(known, _)| *known == dev).unwrap_or_else(|| {
        devices.push((dev, CgroupIoRow::default()));
        devices.len() - 1
    });
    &mut devices[at].1
}

/// Adds the fields of one file to those of the other.
fn merge(devices: &mut Vec<(DevId, CgroupIoRow)>, dev: DevId, row: CgroupIoRow) {
    match devices.iter_mut().find(|(known, _)| *known == dev) {
        Some((_, known)) => {
            known.rbytes = known.rbytes.or(row.rbytes);
            known.wbytes = known.wbytes.or(row.wbytes);
            known.dbytes = known.dbytes.or(row.dbytes);
            known.rios = known.rios.or(row.rios);
            known.wios = known.wios.or(row.wios);
            known.dios = known.dios.or(row.dios);
        }
        None => devices.push((dev, row)),
    }
}
