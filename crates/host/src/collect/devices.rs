// SPDX-License-Identifier: MIT OR Apache-2.0
//! Block devices and memory zones: each table is read from one file, with a row per line or block.

use super::{Kept, Round};
use crate::parse::{diskstats, zoneinfo};
use crate::root::LARGE;
use floodline_record::gap::Source;
use floodline_record::id::{DevId, Entity, EntityId};
use floodline_record::name::Name;
use floodline_record::sample::{Sample, Table};
use std::collections::BTreeMap;

/// Block devices and zones seen so far.
#[derive(Debug, Default)]
pub(super) struct Devices {
    diskstats: Kept,
    zoneinfo: Kept,
    disks: BTreeMap<DevId, (Name, EntityId)>,
    zones: BTreeMap<(u32, Name), EntityId>,
}

impl Devices {
    /// Fills the tables of block devices and, now and then, of zones.
    pub(super) fn read(&mut self, round: &mut Round<'_>, sample: &mut Sample) {
        if round.plan.needs.disks {
            match round.read(&mut self.diskstats, "/proc/diskstats", LARGE) {
                Ok(()) => self.disks(round, sample),
                Err(fault) => round.gaps.add(Source::Diskstats, "", fault, None),
            }
        }
        if round.plan.needs.zones && round.is_slow() {
            match round.read(&mut self.zoneinfo, "/proc/zoneinfo", LARGE) {
                Ok(()) => self.zones(round, sample),
                Err(fault) => round.gaps.add(Source::Zoneinfo, "", fault, None),
            }
        }
    }

    fn disks(&mut self, round: &mut Round<'_>, sample: &mut Sample) {
        let mut rows = Vec::with_capacity(self.disks.len());
        let text = std::mem::take(round.buffer);
        let parsed = diskstats::parse(&text, |dev, name, row| {
            let id = match self.disks.get(&dev) {
                Some((known, id)) if known.as_bytes() == name => *id,
                // A new device, or a reused number.
                _ => {
                    let name = Name::new(name);
                    let id = round.describe(Entity::Disk { dev, name: name.clone() });
                    self.disks.insert(dev, (name, id));
                    id
                }
            };
            rows.push((id, row));
        });
        *round.buffer = text;
        round.check(Source::Diskstats, "", None, parsed);
        sample.disks = Table::read(rows);
    }

    fn zones(&mut self, round: &mut Round<'_>, sample: &mut Sample) {
        let mut rows = Vec::with_capacity(self.zones.len());
        let text = std::mem::take(round.buffer);
        let parsed = zoneinfo::parse(&text, |node, name, row| {
            let key = (node, Name::new(name));
            let id = match self.zones.get(&key) {
                Some(id) => *id,
                None => {
                    let id = round.describe(Entity::Zone { node, name: key.1.clone() });
                    self.zones.insert(key, id);
                    id
                }
            };
            rows.push((id, row));
        });
        *round.buffer = text;
        round.check(Source::Zoneinfo, "", None, parsed);
        sample.zones = Table::read(rows);
    }
}
