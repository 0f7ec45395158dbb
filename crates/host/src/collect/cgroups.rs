// SPDX-License-Identifier: MIT OR Apache-2.0
//! The cgroups of the hierarchy with the memory controller, of either version: one line per file. For a read of
//! `memory.stat` or `io.stat` the kernel adds up the counters of all CPUs, on which throttling depends. They are read when a
//! cgroup is first seen and then in samples that are far enough apart ([`Plan::stat_every`](plan::Plan::stat_every)). If both are
//! unchanged, the cgroup is idle and most of its other files wait for their turn. Limits and other values that hardly ever
//! change are read when a cgroup is first seen and then in turns. A file that is missing because its controller is off is a
//! gap for that cgroup, and is retried in its turn.

use super::kept::{Descriptors, Kept, Reading};
use super::tree::{Node, Place, Tree};
use super::{Round, gaps::Trouble, take};
use crate::parse::number::{limit, limit_v1, number};
use crate::parse::{Parsed, cgroup, io_max, io_stat, memory_events, memory_stat, pressure};
use crate::plan::{self, Needs};
use crate::root::{Fault, SMALL};
use crc32fast::Hasher;
use floodline_record::gap::Source;
use floodline_record::id::{DevId, Entity, EntityId, Hierarchy};
use floodline_record::metric::Row;
use floodline_record::name::Name;
use floodline_record::sample::{CgroupIoRow, CgroupLimitsRow, CgroupRow, Sample, Table};
use floodline_record::units::{Bits, Limit, Nanos};
use std::collections::{BTreeMap, BTreeSet};

struct File<R> {
    name: &'static str,
    source: Source,
    when: When,
    parse: fn(&[u8], &mut R) -> Parsed,
}

/// In which samples a file is read, besides the first one that sees the cgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    /// In every sample that reads `memory.stat`: whether it changed decides whether the others are read.
    Stat,
    /// In every sample in which the cgroup is active, else in its turn.
    Active,
    /// Like `Active`, and in every sample in which tasks waited in the parent cgroup, which includes this one: a wait
    /// changes no other file.
    Waiting,
    /// In every sample if the cgroup has children, else in its turn.
    WithChildren,
    /// In its turn.
    InTurn,
}

const fn file<R>(when: When, name: &'static str, source: Source, parse: fn(&[u8], &mut R) -> Parsed) -> File<R> {
    File { name, source, when, parse }
}

const fn rare<R>(name: &'static str, source: Source, parse: fn(&[u8], &mut R) -> Parsed) -> File<R> {
    File { name, source, when: When::InTurn, parse }
}

const MEMORY_STAT: File<CgroupRow> = file(When::Stat, "memory.stat", Source::MemoryStat, memory_stat::parse);
const MEMORY_CURRENT: File<CgroupRow> = file(When::Active, "memory.current", Source::MemoryCurrent, |text, row| {
    take(&mut row.memory_current, number(text))
});

/// Counters that a dirty limit depends on.
static BUDGET_COUNTERS_V2: [File<CgroupRow>; 2] = [MEMORY_STAT, MEMORY_CURRENT];

static COUNTERS_V2: [File<CgroupRow>; 7] = [
    MEMORY_STAT,
    MEMORY_CURRENT,
    file(When::Active, "memory.events", Source::MemoryEvents, memory_events::parse),
    file(When::Waiting, "memory.pressure", Source::MemoryPressure, |text, row| {
        let (memory, parsed) = pressure::parse(text);
        (row.memory_some, row.memory_full) = (memory.some, memory.full);
        parsed
    }),
    file(When::Waiting, "io.pressure", Source::IoPressure, |text, row| {
        let (io, parsed) = pressure::parse(text);
        (row.io_some, row.io_full) = (io.some, io.full);
        parsed
    }),
    file(When::WithChildren, "cgroup.stat", Source::CgroupStat, cgroup::stat),
    rare("cgroup.events", Source::CgroupEvents, cgroup::events),
];

static COUNTERS_V1: [File<CgroupRow>; 2] = [
    file(When::Stat, "memory.stat", Source::MemoryStat, memory_stat::parse_v1),
    file(When::Active, "memory.usage_in_bytes", Source::MemoryCurrent, |text, row| {
        take(&mut row.memory_current, number(text))
    }),
];

const MEMORY_MAX: File<CgroupLimitsRow> =
    rare("memory.max", Source::MemoryLimits, |text, row| take(&mut row.memory_max, limit(text)));
const MEMORY_HIGH: File<CgroupLimitsRow> =
    rare("memory.high", Source::MemoryLimits, |text, row| take(&mut row.memory_high, limit(text)));
const CONTROLLERS: File<CgroupLimitsRow> = rare("cgroup.controllers", Source::CgroupControllers, |text, row| {
    take(&mut row.controllers, cgroup::controllers(text))
});

/// Limits that a dirty limit depends on.
static BUDGET_LIMITS_V2: [File<CgroupLimitsRow>; 3] = [MEMORY_MAX, MEMORY_HIGH, CONTROLLERS];

static LIMITS_V2: [File<CgroupLimitsRow>; 7] = [
    MEMORY_MAX,
    MEMORY_HIGH,
    rare("memory.min", Source::MemoryLimits, |text, row| take(&mut row.memory_min, limit(text))),
    rare("memory.low", Source::MemoryLimits, |text, row| take(&mut row.memory_low, limit(text))),
    rare("io.weight", Source::IoLimits, |text, row| take(&mut row.io_weight, io_max::weight(text))),
    CONTROLLERS,
    rare("cgroup.subtree_control", Source::CgroupControllers, |text, row| {
        take(&mut row.subtree_control, cgroup::controllers(text))
    }),
];

static LIMITS_V1: [File<CgroupLimitsRow>; 1] =
    [rare("memory.limit_in_bytes", Source::MemoryLimits, |text, row| take(&mut row.memory_max, limit_v1(text)))];

/// The hierarchy of cgroups that has the memory controller.
#[derive(Debug)]
pub(super) struct Cgroups {
    tree: Tree,
    hierarchy: Hierarchy,
    /// Whether it is a real cgroup filesystem, so that inode numbers of directories mean something.
    real: bool,
    files: Files,
    needs: Needs,
    /// Cgroups in which no task waited between the last two samples.
    calm: BTreeSet<EntityId>,
}

impl<R> std::fmt::Debug for File<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// Files that are read of each cgroup: only those that the plan needs.
#[derive(Debug)]
struct Files {
    counters: &'static [File<CgroupRow>],
    limits: &'static [File<CgroupLimitsRow>],
    /// Whether I/O by device is in this hierarchy, and wanted.
    io: bool,
    /// Whether one reading of `cgroup.controllers` serves all children of a cgroup: [`Reader::limits`].
    shares_controllers: bool,
}

impl Files {
    fn of(hierarchy: Hierarchy, needs: &Needs) -> Files {
        let (counters, limits): (&[_], &[_]) = match hierarchy {
            Hierarchy::V2 if needs.budget_only => (&BUDGET_COUNTERS_V2, &BUDGET_LIMITS_V2),
            Hierarchy::V2 => (&COUNTERS_V2, &LIMITS_V2),
            Hierarchy::V1Memory | Hierarchy::V1Blkio => (&COUNTERS_V1, &LIMITS_V1),
        };
        Files {
            counters: if needs.cgroups { counters } else { &[] },
            limits: if needs.cgroup_limits { limits } else { &[] },
            io: needs.cgroup_io && hierarchy == Hierarchy::V2,
            shares_controllers: needs.budget_only,
        }
    }

    /// Number of files that are kept open; `io.stat` is the last.
    fn kept(&self) -> usize {
        self.counters.len() + 1
    }
}

/// Descriptors of a cgroup that every sample needs: its directory, `memory.stat` and `io.stat`.
const ALWAYS_OPEN: usize = 3;

/// Rows of one sample.
#[derive(Default)]
struct Rows {
    counters: Vec<(EntityId, CgroupRow)>,
    limits: Vec<(EntityId, CgroupLimitsRow)>,
    io: Vec<(EntityId, CgroupIoRow)>,
    /// Devices of the cgroup being read.
    devices: Vec<(DevId, CgroupIoRow)>,
}

impl Cgroups {
    pub(super) fn new(tree: &plan::Tree, real: bool, needs: Needs) -> Cgroups {
        let source = match tree.hierarchy {
            Hierarchy::V2 => Source::CgroupV2,
            Hierarchy::V1Memory | Hierarchy::V1Blkio => Source::CgroupV1Memory,
        };
        let hierarchy = tree.hierarchy;
        let files = Files::of(hierarchy, &needs);
        let tree = Tree::new(tree.mount.as_bytes(), source, files.kept());
        Cgroups { tree, hierarchy, real, files, needs, calm: BTreeSet::new() }
    }

    /// Returns the cgroup at a path of this hierarchy.
    pub(super) fn entity_at(&self, path: &[u8]) -> Option<EntityId> {
        self.tree.entity_at(path)
    }

    /// Returns whether a cgroup is known to have had no task waiting for I/O or memory since the previous sample.
    pub(super) fn is_calm(&self, cgroup: EntityId) -> bool {
        self.calm.contains(&cgroup)
    }

    /// Returns the hierarchy.
    pub(super) fn hierarchy(&self) -> Hierarchy {
        self.hierarchy
    }

    /// Fills the tables of cgroups.
    pub(super) fn read(&mut self, round: &mut Round<'_>, sample: &mut Sample) {
        let mut rows = Rows::default();
        self.calm.clear();
        // A cgroup that is gone may have been replaced by one of the same name: refresh a second time.
        for _ in 0..2 {
            self.tree.refresh(round);
            round.descriptors.set_aside(ALWAYS_OPEN.saturating_mul(self.tree.len()));
            let gone = self.read_nodes(round, &mut rows);
            if gone.is_empty() {
                break;
            }
            for id in gone {
                self.tree.remove(id);
            }
        }
        if self.needs.cgroups {
            sample.cgroups = Table::read(rows.counters);
        }
        if self.needs.cgroup_limits {
            sample.cgroup_limits = Table::read(rows.limits);
        }
        if self.files.io && round.reads_stat {
            sample.cgroup_io = Table::read(rows.io);
        }
    }

    /// Reads the cgroups that were not yet read in this sample. Returns those that are gone.
    fn read_nodes(&mut self, round: &mut Round<'_>, rows: &mut Rows) -> Vec<u32> {
        let (mount, nodes) = self.tree.nodes_mut();
        rows.counters.reserve(nodes.len());
        let mut gone = Vec::new();
        // Parents come before their children.
        let mut calm = BTreeSet::new();
        let mut controllers: BTreeMap<u32, Bits> = BTreeMap::new();
        for (id, node) in nodes {
            if node.read_in == Some(round.number) {
                continue;
            }
            let calm_above = node.parent.is_some_and(|parent| calm.contains(&parent));
            let first = node.read_in.replace(round.number).is_none();
            let due = first || round.is_due(u64::from(id));
            let reads_stat = first || round.reads_stat;
            let is_overdue = due || node.is_overdue;
            node.is_overdue = is_overdue && !round.reads_stat;
            let entity = match node.entity {
                Some(entity) => entity,
                None => {
                    let path = Name::new(&node.path);
                    let captured = || round.plan.cgroup_inodes.get(path.to_string().as_str()).copied();
                    let ino = if self.real { Some(node.ino) } else { captured() };
                    *node.entity.insert(round.describe(Entity::Cgroup { path, hierarchy: self.hierarchy, ino }))
                }
            };
            node.enter(round.root, mount);
            let (top, absent, seen) = (node.is_top(), Vec::new(), Hasher::new());
            let of_siblings = node.parent.and_then(|parent| controllers.get(&parent)).copied();
            let mut reader =
                Reader { round, entity, reads_stat, due, is_overdue, top, gone: false, absent, seen, of_siblings };
            let waited = reader.node(&self.files, node, mount, calm_above, rows);
            if self.files.shares_controllers
                && let (Some(parent), Some(read)) = (node.parent, reader.of_siblings)
            {
                controllers.insert(parent, read);
            }
            if reader.gone {
                round.gaps.add(Source::CgroupV2, "", Trouble::Vanished, None);
                rows.devices.clear();
                gone.push(id);
            } else if !waited {
                calm.insert(id);
                self.calm.insert(entity);
            }
            node.leave();
            io_rows(round, node, entity, &mut rows.devices, &mut rows.io);
        }
        gone
    }
}

/// Returns how long tasks of a cgroup and its descendants have waited for memory and for I/O in total.
fn waited(row: &CgroupRow) -> Option<(Nanos, Nanos)> {
    row.memory_some.zip(row.io_some)
}

/// Gives the devices of a cgroup their ids, and moves them to the rows of the sample.
pub(super) fn io_rows(
    round: &mut Round<'_>,
    node: &mut Node,
    cgroup: EntityId,
    devices: &mut Vec<(DevId, CgroupIoRow)>,
    rows: &mut Vec<(EntityId, CgroupIoRow)>,
) {
    for (dev, row) in devices.drain(..) {
        let known = node.devices.iter().find(|known| (known.0, known.1) == (cgroup, dev));
        let id = match known {
            Some(&(_, _, id)) => id,
            None => {
                let id = round.describe(Entity::CgroupIo { cgroup, dev });
                node.devices.push((cgroup, dev, id));
                id
            }
        };
        rows.push((id, row));
    }
}

/// Reads the files of one cgroup.
struct Reader<'a, 'round> {
    round: &'a mut Round<'round>,
    entity: EntityId,
    /// Whether the files are read for which the kernel adds up counters.
    reads_stat: bool,
    due: bool,
    /// Whether its turn has come since these files were last read.
    is_overdue: bool,
    top: bool,
    gone: bool,
    /// Files that were not there.
    absent: Vec<(Source, &'static str)>,
    /// Checksum of the files whose counters the kernel adds up.
    seen: Hasher,
    /// The controllers of a sibling with the memory controller, as the bits of their metric.
    of_siblings: Option<Bits>,
}

impl Reader<'_, '_> {
    /// Reads the files of a cgroup into the rows of the sample. Returns whether tasks may have waited in it.
    fn node(&mut self, files: &Files, node: &mut Node, mount: &[u8], calm_above: bool, rows: &mut Rows) -> bool {
        let mut row = CgroupRow::default();
        if self.reads_stat {
            self.counters(files.counters, |when| when == When::Stat, node, mount, &mut row);
            // A table of the new cgroups alone would end the rows of all others.
            if files.io && self.round.reads_stat && !self.gone {
                self.io(files.counters.len(), node, mount, &mut rows.devices);
            }
            if self.gone {
                return true;
            }
            // Of what ends within a sample the I/O is seen at its start: so look once more after it.
            let seen = std::mem::take(&mut self.seen).finalize();
            let same = node.seen.replace(seen) == Some(seen);
            node.is_active = !(std::mem::replace(&mut node.was_same, same) && same);
        }
        let (due, childless) = (self.due, node.is_childless());
        let active = node.is_active || due;
        let now = |when| match when {
            When::Stat => false,
            When::Active => active,
            When::Waiting => active || !calm_above,
            When::WithChildren => due || !childless,
            When::InTurn => due,
        };
        self.counters(files.counters, now, node, mount, &mut row);
        let waited = waited(&row).map(|waited| node.waited.replace(waited) != Some(waited));
        // Only the memory controller makes a `memory.stat`.
        let has_memory = row.file_dirty.is_some();
        let has_reading = row != CgroupRow::default();
        // A row without a reading means that the cgroup is there.
        let has_row = has_reading || !self.reads_stat && node.has_row;
        if self.reads_stat {
            node.has_row = has_reading;
        }
        rows.counters.extend((!self.gone && has_row).then_some((self.entity, row)));
        if due && !self.gone {
            let row = self.limits(files.limits, has_memory, node.place(self.round.root, mount).0);
            node.controllers = row.as_ref().and_then(|row| row.controllers).or(node.controllers);
            rows.limits.extend(row.map(|row| (self.entity, row)));
        }
        if !self.gone {
            self.tell_absent(node.controllers);
        }
        waited.unwrap_or(!calm_above)
    }

    /// Reads the counters that are due (`now`).
    fn counters(
        &mut self,
        files: &[File<CgroupRow>],
        now: impl Fn(When) -> bool,
        node: &mut Node,
        mount: &[u8],
        row: &mut CgroupRow,
    ) {
        let (place, kept) = node.place(self.round.root, mount);
        for (file, kept) in files.iter().zip(kept).filter(|(file, _)| now(file.when)) {
            if self.read(kept, file.when, file.name, file.source, place) {
                if file.when == When::Stat {
                    self.seen.update(self.round.buffer);
                }
                let parsed = (file.parse)(self.round.buffer, row);
                self.round.check(file.source, file.name, Some(self.entity), parsed);
            }
            if self.gone {
                return;
            }
        }
    }

    /// Reads the limits. The kernel takes the controllers of a cgroup from its parent's `cgroup.subtree_control`
    /// (`cgroup_control`), and leaves out memory and io only in threaded cgroups, which have no `memory.stat`. So siblings
    /// with the memory controller (`has_memory`) have the same controllers, and one reading serves all.
    fn limits(
        &mut self,
        files: &[File<CgroupLimitsRow>],
        has_memory: bool,
        place: Place<'_>,
    ) -> Option<CgroupLimitsRow> {
        let mut row = CgroupLimitsRow::default();
        for file in files {
            if file.source == Source::CgroupControllers
                && has_memory
                && let Some(controllers) = self.of_siblings
            {
                row.controllers = Some(controllers);
                continue;
            }
            match place.open(file.name).and_then(|open| open.read_piece(self.round.buffer, SMALL)) {
                Ok(()) => {
                    let parsed = (file.parse)(self.round.buffer, &mut row);
                    self.round.check(file.source, file.name, Some(self.entity), parsed);
                }
                Err(fault) => self.fault(file.source, file.name, fault),
            }
        }
        self.of_siblings = row.controllers.filter(|_| has_memory).or(self.of_siblings);
        let any = (0..CgroupLimitsRow::METRICS.len()).any(|index| row.get(index).is_some());
        any.then_some(row)
    }

    /// Reads the counters by device, and the limits if their turn has come since these were last read: a row has both.
    fn io(&mut self, at: usize, node: &mut Node, mount: &[u8], devices: &mut Vec<(DevId, CgroupIoRow)>) {
        let (place, kept) = node.place(self.round.root, mount);
        if let Some(kept) = kept.get_mut(at)
            && self.read(kept, When::Stat, "io.stat", Source::IoStat, place)
        {
            self.seen.update(self.round.buffer);
            let parsed = io_stat::parse(self.round.buffer, |dev, row| devices.push((dev, row)));
            self.round.check(Source::IoStat, "io.stat", Some(self.entity), parsed);
        }
        // Limits in force are read with the counters while it is active: who sets one for a time may lift it soon.
        let is_held = node.has_limits && node.is_active;
        if !(self.is_overdue || is_held) || self.gone {
            return;
        }
        let (place, _) = node.place(self.round.root, mount);
        match place.open("io.max").and_then(|open| open.read_piece(self.round.buffer, SMALL)) {
            Ok(()) => {
                let mut is_limited = false;
                let parsed = io_max::parse(self.round.buffer, |dev, limits| {
                    is_limited = true;
                    let row = match devices.iter_mut().find(|(known, _)| *known == dev) {
                        Some((_, row)) => row,
                        None => {
                            devices.push((dev, CgroupIoRow::default()));
                            let Some((_, row)) = devices.last_mut() else { return };
                            row
                        }
                    };
                    (row.rbps_max, row.wbps_max) = (limits.rbps_max, limits.wbps_max);
                    (row.riops_max, row.wiops_max) = (limits.riops_max, limits.wiops_max);
                });
                // A device without a limit has no line. Read as "no limit", so that a limit that is lifted is seen.
                let unlimited =
                    devices.iter_mut().map(|(_, row)| row).filter(|row| parsed.is_ok() && row.wbps_max.is_none());
                for row in unlimited {
                    (row.rbps_max, row.wbps_max) = (Some(Limit::MAX), Some(Limit::MAX));
                    (row.riops_max, row.wiops_max) = (Some(Limit::MAX), Some(Limit::MAX));
                }
                self.round.check(Source::IoLimits, "io.max", Some(self.entity), parsed);
                node.has_limits = is_limited;
            }
            Err(fault) => self.fault(Source::IoLimits, "io.max", fault),
        }
    }

    /// Reads one file into the buffer. Returns whether that succeeded.
    fn read(&mut self, kept: &mut Kept, when: When, name: &'static str, source: Source, place: Place<'_>) -> bool {
        let descriptors = match when {
            When::Stat => self.round.descriptors,
            When::Active | When::Waiting | When::WithChildren => self.round.descriptors.not_set_aside(),
            When::InTurn => Descriptors::NONE,
        };
        let again = if when == When::Stat { self.is_overdue } else { self.due };
        let reading = Reading::small(descriptors, again);
        let unopened = kept.is_closed();
        match kept.read(reading, self.round.buffer, || place.open(name)) {
            Ok(()) => true,
            Err(fault) => {
                self.gone = fault.is_gone() && fault != Fault::NOT_FOUND || unopened && place.is_gone();
                self.fault(source, name, fault);
                false
            }
        }
    }

    fn fault(&mut self, source: Source, name: &'static str, fault: Fault) {
        // The root of a hierarchy has no limits and no usage of its own.
        let expected = self.gone || fault.is_gone() && (self.top || fault != Fault::NOT_FOUND);
        match (expected, fault) {
            (true, _) => {}
            (false, Fault::NOT_FOUND) => self.absent.push((source, name)),
            (false, _) => self.round.gaps.add(source, name, fault, Some(self.entity)),
        }
    }

    /// Reports files that are missing although their controller is on: a cgroup has only the files of its controllers.
    fn tell_absent(&mut self, controllers: Option<Bits>) {
        for (source, name) in self.absent.drain(..) {
            let controller = match name.split_once('.') {
                // Pressure files do not depend on the controllers.
                Some((_, "pressure")) => None,
                Some(("memory", _)) => Some(cgroup::MEMORY),
                Some(("io", _)) => Some(cgroup::IO),
                _ => None,
            };
            let has_none = controller.zip(controllers).is_some_and(|(controller, have)| have.0 & controller == 0);
            if !has_none {
                self.round.gaps.add(source, name, Fault::NOT_FOUND, Some(self.entity));
            }
        }
    }
}
