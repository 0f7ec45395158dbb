// SPDX-License-Identifier: MIT OR Apache-2.0
//! Backing devices and their wbs: knobs from sysfs now and then, state from debugfs in every sample. To print that
//! state the kernel walks the lists of dirty inodes under their lock, so the state of a device with very many inodes is
//! read less often.

use super::kept::Reading;
use super::{Kept, Round, take};
use crate::parse::number::{number, scaled};
use crate::parse::{Parsed, bdi_stats, wb_stats};
use crate::root::{EntryKind, Fault, HostDir, LARGE, SMALL};
use floodline_record::gap::Source;
use floodline_record::id::{Entity, EntityId};
use floodline_record::name::Name;
use floodline_record::sample::{BdiRow, Sample, Table};
use floodline_record::units::Count;
use std::collections::BTreeMap;

/// Listed inodes above which the state of a device is read only now and then.
const MANY_INODES: u64 = 20_000;

/// A whole percent in parts per million.
const PERCENT: u64 = 10_000;

struct Knob {
    name: &'static str,
    /// File that is read if the first is absent, as before 6.2.
    older: Option<&'static str>,
    parse: fn(&[u8], &mut BdiRow, bool) -> Parsed,
}

const KNOBS: [Knob; 6] = [
    Knob {
        name: "min_ratio_fine",
        older: Some("min_ratio"),
        parse: |text, row, older| take(&mut row.min_ratio, scaled(text, if older { PERCENT } else { 1 })),
    },
    Knob {
        name: "max_ratio_fine",
        older: Some("max_ratio"),
        parse: |text, row, older| take(&mut row.max_ratio, scaled(text, if older { PERCENT } else { 1 })),
    },
    Knob { name: "min_bytes", older: None, parse: |text, row, _| take(&mut row.min_bytes, number(text)) },
    Knob { name: "max_bytes", older: None, parse: |text, row, _| take(&mut row.max_bytes, number(text)) },
    Knob { name: "strict_limit", older: None, parse: |text, row, _| take(&mut row.strict_limit, number(text)) },
    Knob { name: "read_ahead_kb", older: None, parse: |text, row, _| take(&mut row.read_ahead, scaled(text, 1024)) },
];

#[derive(Debug)]
struct Bdi {
    id: EntityId,
    seen_in: u64,
    is_new: bool,
    stats: Kept,
    wb_stats: Kept,
    /// Inodes on its lists when its state was last read.
    inodes: u64,
    wbs: BTreeMap<u64, EntityId>,
}

/// Backing devices seen so far.
#[derive(Debug, Default)]
pub(super) struct Bdis {
    class: Option<HostDir>,
    bdis: BTreeMap<Box<[u8]>, Bdi>,
}

impl Bdis {
    /// Fills the tables of backing devices and wbs.
    pub(super) fn read(&mut self, round: &mut Round<'_>, sample: &mut Sample) {
        let needs = round.plan.needs;
        if !needs.bdis && !needs.wbs {
            return;
        }
        if let Err(fault) = self.list(round) {
            self.class = None;
            return round.gaps.add(Source::SysBdi, "", fault, None);
        }
        let (mut bdis, mut wbs) = (Vec::with_capacity(self.bdis.len()), Vec::new());
        for (index, (name, bdi)) in self.bdis.iter_mut().enumerate() {
            let due = round.is_due_of(index as u64, 1) || bdi.is_new;
            let mut row = BdiRow::default();
            let mut has_row = false;
            if needs.bdis && due {
                has_row |= knobs(round, name, bdi.id, &mut row);
            }
            if round.plan.debugfs && (due || bdi.inodes < MANY_INODES) {
                if needs.bdis {
                    has_row |= bdi.read_stats(round, name, &mut row);
                }
                if needs.wbs {
                    bdi.read_wbs(round, name, &mut wbs);
                }
            }
            if has_row {
                bdis.push((bdi.id, row));
            }
            bdi.is_new = false;
        }
        if needs.bdis {
            sample.bdis = Table::read(bdis);
        }
        if needs.wbs && round.plan.debugfs {
            sample.wbs = Table::read(wbs);
        }
    }

    /// Brings the list of devices up to date.
    fn list(&mut self, round: &mut Round<'_>) -> Result<(), Fault> {
        let class = match self.class.take() {
            Some(class) => class,
            None => round.root.dir(b"/sys/class/bdi")?,
        };
        let number = round.number;
        class.list(|entry| {
            if matches!(entry.kind, EntryKind::File | EntryKind::Other) {
                return;
            }
            match self.bdis.get_mut(entry.name) {
                Some(bdi) => bdi.seen_in = number,
                None => {
                    let id = round.describe(Entity::Bdi { name: Name::new(entry.name) });
                    let (stats, wb_stats, wbs) = (Kept::default(), Kept::default(), BTreeMap::new());
                    let bdi = Bdi { id, seen_in: number, is_new: true, stats, wb_stats, inodes: 0, wbs };
                    self.bdis.insert(entry.name.into(), bdi);
                }
            }
        })?;
        self.bdis.retain(|_, bdi| bdi.seen_in == number);
        self.class = Some(class);
        Ok(())
    }
}

fn path(prefix: &str, name: &[u8], file: &str) -> Vec<u8> {
    [prefix.as_bytes(), name, b"/", file.as_bytes()].concat()
}

/// Reads the knobs of one device. Returns whether it has any.
fn knobs(round: &mut Round<'_>, bdi: &[u8], id: EntityId, row: &mut BdiRow) -> bool {
    let mut any = false;
    for knob in &KNOBS {
        let mut read = |name| {
            let file = round.root.file(&path("/sys/class/bdi/", bdi, name));
            file.and_then(|file| file.read(round.buffer, SMALL))
        };
        let (read, older) = match (read(knob.name), knob.older) {
            (Err(Fault::NOT_FOUND), Some(older)) => (read(older), true),
            (read, _) => (read, false),
        };
        match read {
            Ok(()) => {
                let parsed = (knob.parse)(round.buffer, row, older);
                any |= parsed.is_ok();
                round.check(Source::SysBdi, knob.name, Some(id), parsed);
            }
            Err(fault) => round.gaps.add(Source::SysBdi, knob.name, fault, Some(id)),
        }
    }
    any
}

impl Bdi {
    /// Reads the state of the device. Returns whether it has one.
    fn read_stats(&mut self, round: &mut Round<'_>, name: &[u8], row: &mut BdiRow) -> bool {
        let Bdi { id, is_new, .. } = *self;
        let reading =
            Reading { descriptors: round.descriptors, again: is_new || round.is_slow(), piece: false, limit: SMALL };
        let open = || round.root.file(&path("/sys/kernel/debug/bdi/", name, "stats"));
        match self.stats.read(reading, round.buffer, open) {
            Ok(()) => {
                let parsed = bdi_stats::parse(round.buffer, row);
                let lists = [row.b_dirty, row.b_io, row.b_more_io, row.b_dirty_time];
                self.inodes = lists.into_iter().flatten().fold(0, |sum, Count(inodes)| sum.saturating_add(inodes));
                round.check(Source::DebugBdiStats, "", Some(id), parsed);
                true
            }
            Err(fault) => {
                round.gaps.add(Source::DebugBdiStats, "", fault, Some(id));
                false
            }
        }
    }

    /// Reads the state of its wbs.
    fn read_wbs(
        &mut self,
        round: &mut Round<'_>,
        name: &[u8],
        rows: &mut Vec<(EntityId, floodline_record::sample::WbRow)>,
    ) {
        let Bdi { id, is_new, .. } = *self;
        let reading =
            Reading { descriptors: round.descriptors, again: is_new || round.is_slow(), piece: false, limit: LARGE };
        let open = || round.root.file(&path("/sys/kernel/debug/bdi/", name, "wb_stats"));
        if let Err(fault) = self.wb_stats.read(reading, round.buffer, open) {
            return round.gaps.add(Source::DebugWbStats, "", fault, Some(id));
        }
        let text = std::mem::take(round.buffer);
        let parsed = wb_stats::parse(&text, |cgroup_ino, row| {
            let describe = || round.describe(Entity::Wb { bdi: Name::new(name), cgroup_ino });
            rows.push((*self.wbs.entry(cgroup_ino).or_insert_with(describe), row));
        });
        *round.buffer = text;
        round.check(Source::DebugWbStats, "", Some(id), parsed);
    }
}
