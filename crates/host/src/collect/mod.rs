// SPDX-License-Identifier: MIT OR Apache-2.0
//! The hot path: takes one sample of the machine after another. A [`Collector`] holds the state that lasts between
//! samples (descriptors, ids, the tree of cgroups). Files are read here and parsed in `parse`. The plan decides what to
//! read.

mod bdis;
mod blkio;
mod cgroups;
mod devices;
mod gaps;
mod host;
mod kept;
mod processes;
mod tree;

pub use kept::raise_descriptor_limit;

use crate::parse::{Flaw, Parsed};
use crate::plan::Plan;
use crate::probe::mounts::LaterOverlays;
use crate::root::{Fault, HostRoot};
use crate::trace::Traces;
use floodline_record::facts::HostFacts;
use floodline_record::gap::Source;
use floodline_record::id::{Entity, EntityId};
use floodline_record::record::Record;
use floodline_record::sample::{Sample, SampleTime};
use floodline_record::units::Nanos;
use gaps::GapBook;
use kept::{Descriptors, Kept, Reading};
use rustix::time::ClockId;

/// Takes samples of one machine.
#[derive(Debug)]
pub struct Collector<'root> {
    root: &'root HostRoot,
    plan: Plan,
    number: u64,
    /// Time of the last sample that read the files for which the kernel adds up counters.
    stat_read: Option<Nanos>,
    next_id: u32,
    gaps: GapBook,
    buffer: Vec<u8>,
    descriptors: Descriptors,
    host: host::HostFiles,
    devices: devices::Devices,
    bdis: bdis::Bdis,
    cgroups: Option<cgroups::Cgroups>,
    blkio: Option<blkio::Blkio>,
    processes: processes::Processes,
    tracer: Option<Box<dyn Traces>>,
    overlays: Option<LaterOverlays>,
}

impl<'root> Collector<'root> {
    /// Prepares a collector. Reads no counters yet.
    pub fn new(root: &'root HostRoot, plan: Plan) -> Collector<'root> {
        let real =
            |mount: &floodline_record::name::Name| root.fs_kind(mount.as_bytes()) == Ok(crate::root::FsKind::Cgroup2);
        let cgroups = plan.memory.as_ref().map(|tree| cgroups::Cgroups::new(tree, real(&tree.mount), plan.needs));
        let blkio = plan.blkio.as_ref().map(blkio::Blkio::new);
        let descriptors = match plan.needs.budget_only {
            true => Descriptors::of_this_process().for_one_sample(),
            false => Descriptors::of_this_process(),
        };
        Collector {
            root,
            number: 0,
            stat_read: None,
            next_id: 0,
            gaps: GapBook::default(),
            buffer: Vec::with_capacity(64 << 10),
            descriptors,
            host: host::HostFiles::default(),
            devices: devices::Devices::default(),
            bdis: bdis::Bdis::default(),
            cgroups,
            blkio,
            processes: processes::Processes::default(),
            tracer: None,
            overlays: None,
            plan,
        }
    }

    /// Adds the events of a tracer to every sample.
    pub fn with_tracer(self, tracer: impl Traces + 'static) -> Collector<'root> {
        Collector { tracer: Some(Box::new(tracer)), ..self }
    }

    /// Adds the facts again where an overlay is mounted that they do not know of, on a filesystem that carried none.
    pub fn with_later_overlays(self, facts: &HostFacts) -> Collector<'root> {
        Collector { overlays: LaterOverlays::after(self.root, facts), ..self }
    }

    /// Sets or removes the tracer, from the next sample on.
    pub fn set_tracer(&mut self, tracer: Option<Box<dyn Traces>>) {
        self.tracer = tracer;
    }

    /// Returns whether the kernel is traced.
    pub fn has_tracer(&self) -> bool {
        self.tracer.is_some()
    }

    /// Takes one sample. Appends new entities that it refers to, gaps for what could not be read, and then the sample
    /// itself.
    pub fn collect(&mut self, out: &mut Vec<Record>) {
        let time = SampleTime { monotonic: now(ClockId::Boottime), wall: now(ClockId::Realtime) };
        if let Some(tracer) = &mut self.tracer {
            tracer.turn();
        }
        if self.number == 0 {
            out.extend(self.plan.gaps.iter().cloned().map(Record::Gap));
        }
        if let Some(facts) = self.overlays.as_mut().and_then(LaterOverlays::look) {
            out.push(Record::Facts(Box::new(facts)));
        }
        let reads_stat = time.monotonic.is_apart(self.stat_read, self.plan.stat_every);
        if reads_stat {
            self.stat_read = Some(time.monotonic);
        }
        let mut round = Round {
            root: self.root,
            plan: &self.plan,
            number: self.number,
            reads_stat,
            next_id: &mut self.next_id,
            gaps: &mut self.gaps,
            buffer: &mut self.buffer,
            descriptors: self.descriptors,
            out,
        };
        let mut sample = Box::new(Sample { time, ..Sample::default() });
        self.processes.list(&mut round);
        self.host.read(&mut round, &mut sample);
        self.devices.read(&mut round, &mut sample);
        self.bdis.read(&mut round, &mut sample);
        if let Some(cgroups) = &mut self.cgroups {
            cgroups.read(&mut round, &mut sample);
        }
        if let Some(blkio) = &mut self.blkio {
            blkio.read(&mut round, &mut sample, self.cgroups.as_ref());
        }
        self.processes.read(&mut round, &mut sample, self.cgroups.as_ref());
        self.gaps.report(out);
        if let Some(tracer) = &mut self.tracer {
            tracer.collect(self.root, time.monotonic, &sample.host, out);
        }
        self.number += 1;
        sample.took = Nanos(now(ClockId::Boottime).0.saturating_sub(time.monotonic.0));
        out.push(Record::Sample(sample));
    }
}

pub(crate) fn now(clock: ClockId) -> Nanos {
    let time = rustix::time::clock_gettime(clock);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Nanos(seconds.saturating_mul(Nanos::SECOND.0).saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0)))
}

/// Factor by which the turns of cgroups and processes are longer: there are many of them.
const MANY: u64 = 3;

/// State of the sample in progress, shared by all readers.
struct Round<'a> {
    root: &'a HostRoot,
    plan: &'a Plan,
    number: u64,
    /// Whether this sample reads the files for which the kernel adds up counters.
    reads_stat: bool,
    next_id: &'a mut u32,
    gaps: &'a mut GapBook,
    buffer: &'a mut Vec<u8>,
    descriptors: Descriptors,
    out: &'a mut Vec<Record>,
}

impl Round<'_> {
    /// Assigns an id to a new entity, and records it. Ids are never reused.
    fn describe(&mut self, entity: Entity) -> EntityId {
        let id = EntityId(*self.next_id);
        *self.next_id = self.next_id.saturating_add(1);
        self.out.push(Record::Entity(id, entity));
        id
    }

    /// Returns whether it is the turn of the `index`th of many entities for the files that are read now and then. Their
    /// turns are spread over the samples, so that no sample costs more than the others.
    fn is_due(&self, index: u64) -> bool {
        self.is_due_of(index, MANY)
    }

    /// Like [`Round::is_due`], for turns that are `turns` times as long as those of single things.
    fn is_due_of(&self, index: u64, turns: u64) -> bool {
        self.number.wrapping_add(index).is_multiple_of(self.plan.slow_every.saturating_mul(turns).max(1))
    }

    /// Returns whether it is the turn of single things, of which a machine has only one.
    fn is_slow(&self) -> bool {
        self.is_due_of(0, 1)
    }

    /// Reads a file that exists once on a machine into the buffer.
    fn read(&mut self, kept: &mut Kept, path: &str, limit: usize) -> Result<(), Fault> {
        let reading = Reading { descriptors: self.descriptors, again: self.is_slow(), piece: false, limit };
        kept.read(reading, self.buffer, || self.root.file(path.as_bytes()))
    }

    /// Notes a flaw, if there was one.
    fn check(&mut self, source: Source, detail: &'static str, entity: Option<EntityId>, parsed: Parsed) {
        if let Err(flaw) = parsed {
            self.gaps.add(source, detail, flaw, entity);
        }
    }
}

/// Sets a field from a file of one value.
fn take<T>(field: &mut Option<T>, value: Result<T, Flaw>) -> Parsed {
    *field = Some(value?);
    Ok(())
}
