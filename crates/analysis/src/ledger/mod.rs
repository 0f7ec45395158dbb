// SPDX-License-Identifier: MIT OR Apache-2.0
//! The byte ledger: bytes that applications wrote, bytes that became dirty, bytes queued at the disks, each by process,
//! cgroup, file and disk, and the bytes without a known dirtier. Adds up the tracer's counts of a window; the flusher's
//! writes are credited by [`credit`]. Bytes of different layers of a device stack are never added: sums are of the
//! disks at the bottom.

mod applications;
pub mod balance;
pub mod blame;
pub mod credit;
mod lines;
mod loops;
pub(crate) mod names;
#[cfg(test)]
mod tests;

use crate::diagnose::{device, throttle};
use applications::Applications;
use credit::Credit;
use floodline_record::gap::{Gap, Source};
use floodline_record::id::{DevId, Entity, EntityId};
use floodline_record::name::Name;
use floodline_record::record::What;
use floodline_record::traced::bytes::{Cancelled, Class, Dirtied, Submitted};
use floodline_record::traced::{File, Who};
use floodline_record::units::Nanos;
use floodline_record::window::Window;
use loops::Loops;
use names::Names;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

pub use lines::{CgroupLine, DiskLine, FileLine, Ledger, ProcessLine, Queued, SyncedLine, ThrottledLine, Totals};

/// Version of the JSON form.
pub const SCHEMA: &str = "floodline.ledger/1";

/// Longest time that dirty data stays in memory where the tunables were not read: the expiry of 30 s and two rounds of
/// the flusher.
const KEEP_DEFAULT: Nanos = Nanos(40_000_000_000);
const CENTISECOND: u64 = 10_000_000;
/// Fewest application bytes from which amplification is computed.
const PAGE: u64 = 4096;

/// Whether a tracer counted bytes in this window, even if there were none.
pub fn is_traced(window: &Window) -> bool {
    window.traced.contains("bytes")
}

/// Adds with saturation: counts come from a file that may be damaged, and must not cause a panic.
fn add(sum: &mut u64, more: u64) {
    *sum = sum.saturating_add(more);
}

/// Whether this is file data with a known last dirtier.
fn has_owner(what: &What) -> bool {
    matches!(what, What::Submitted(submitted) if submitted.class == Class::Data && submitted.who.is_some())
}

/// Returns the ledger of a window; `None` where no tracer counted bytes in it.
pub fn ledger(window: &Window) -> Option<Ledger> {
    is_traced(window).then(|| Sums::of(window).into_ledger(window))
}

/// Returns only the long waits of a window, longest first; `None` where no tracer counted bytes in it.
pub fn waits(window: &Window) -> Option<Vec<blame::Blame>> {
    is_traced(window).then(|| {
        let mut names = Names::of(window);
        names.learn_all(window);
        blame::waits(window, &names)
    })
}

/// Bytes of one process, cgroup or file.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    dirtied: u64,
    redirtied: u64,
    cancelled: u64,
    device: u64,
    charged: u64,
}

/// All sums of a window.
struct Sums<'a> {
    names: Names<'a>,
    credit: Credit,
    loops: Loops,
    bottoms: Option<BTreeSet<DevId>>,
    disks: BTreeMap<DevId, Queued>,
    /// Bytes of data, by superblock and by the device that got them.
    written: BTreeMap<(DevId, DevId), u64>,
    who: BTreeMap<Who, Part>,
    cgroups: BTreeMap<u64, Part>,
    files: BTreeMap<credit::FileKey, (Part, BTreeMap<Who, u64>)>,
    synced: BTreeMap<(Who, floodline_record::traced::waits::Operation), SyncedSum>,
    totals: Totals,
    /// One name for every process: its threads have their own.
    comms: BTreeMap<u32, Name>,
}

#[derive(Clone, Copy, Debug, Default)]
struct SyncedSum {
    count: u64,
    total: u64,
    longest: u64,
}

impl<'a> Sums<'a> {
    fn of(window: &'a Window) -> Sums<'a> {
        let host = &window.host.last;
        let keep = host.dirty_expire_centisecs.zip(host.dirty_writeback_centisecs).map_or(
            KEEP_DEFAULT,
            |(expire, writeback)| {
                let centis = expire.0.saturating_add(writeback.0.saturating_mul(2));
                Nanos(centis.saturating_mul(CENTISECOND))
            },
        );
        let known: Vec<device::Device<'_>> = device::devices(window);
        let bottoms = known.iter().filter(|device| device.is_bottom()).map(|device| device.dev).collect();
        let mut sums = Sums {
            names: Names::of(window),
            credit: Credit::new(keep, window.events.iter().any(|event| has_owner(&event.what))),
            loops: Loops::default(),
            bottoms: (!known.is_empty()).then_some(bottoms),
            disks: BTreeMap::new(),
            written: BTreeMap::new(),
            who: BTreeMap::new(),
            cgroups: BTreeMap::new(),
            files: BTreeMap::new(),
            synced: BTreeMap::new(),
            totals: Totals::default(),
            comms: comms(window),
        };
        sums.names.learn_all(window);
        sums.loops = Loops::of(window, &sums.names);
        // Dirtying comes before the queueing of the same interval: a write can follow at once.
        let mut events: Vec<_> = window.events.iter().collect();
        events.sort_by_key(|event| sums.loops.order(event));
        for event in events {
            match &event.what {
                What::Dirtied(dirtied) => sums.dirtied(event.at, dirtied),
                What::Cancelled(cancelled) => sums.cancelled(cancelled),
                What::Submitted(submitted) => sums.submitted(submitted),
                What::Synced(synced) => {
                    let who = sums.process_of(&synced.who);
                    let sum = sums.synced.entry((who, synced.operation)).or_default();
                    add(&mut sum.count, synced.count);
                    sum.total = sum.total.saturating_add(synced.total.0);
                    sum.longest = sum.longest.max(synced.longest.0);
                }
                _ => {}
            }
        }
        sums
    }

    fn is_bottom(&self, disk: DevId) -> bool {
        self.bottoms.as_ref().is_none_or(|bottoms| bottoms.contains(&disk))
    }

    /// The process that a thread belongs to.
    fn process_of(&mut self, who: &Who) -> Who {
        let comm = match self.comms.get(&who.pid) {
            Some(comm) => comm.clone(),
            None => who.comm.clone(),
        };
        // The tracer may have lost the name.
        if !comm.as_bytes().is_empty() {
            self.comms.insert(who.pid, comm.clone());
        }
        Who { comm, ..who.clone() }
    }

    fn dirtied(&mut self, at: Nanos, dirtied: &Dirtied) {
        let who = self.process_of(&dirtied.who);
        let key = (dirtied.device, dirtied.file.as_ref().map(File::inode));
        let owners = match self.loops.device(key) {
            Some(device) => self.loops.dirtied(device, &who, dirtied.bytes.0),
            None => vec![(who.clone(), dirtied.bytes.0)],
        };
        for (owner, bytes) in owners {
            self.credit.dirtied(key, &owner, at, bytes);
        }
        let (bytes, redirtied) = (dirtied.bytes.0, dirtied.redirtied.0);
        add(&mut self.totals.dirtied_bytes, bytes);
        add(&mut self.totals.redirtied_bytes, redirtied);
        let file = self.files.entry(key).or_default();
        add(file.1.entry(who.clone()).or_default(), bytes);
        let cgroup = self.cgroups.entry(who.cgroup_ino).or_default();
        let of_who = self.who.entry(who).or_default();
        for part in [&mut file.0, of_who, cgroup] {
            add(&mut part.dirtied, bytes);
            add(&mut part.redirtied, redirtied);
        }
    }

    fn cancelled(&mut self, cancelled: &Cancelled) {
        let owner = self.process_of(&cancelled.who);
        let key = (cancelled.device, cancelled.file.as_ref().map(File::inode));
        self.credit.cancelled(key, &owner, cancelled.bytes.0);
        add(&mut self.totals.cancelled_bytes, cancelled.bytes.0);
        add(&mut self.files.entry(key).or_default().0.cancelled, cancelled.bytes.0);
    }

    fn submitted(&mut self, submitted: &Submitted) {
        let bytes = submitted.bytes.0;
        let owner = submitted.who.as_ref().map(|who| self.process_of(who));
        add(self.disks.entry(submitted.disk).or_default().of(submitted.class), bytes);
        if let Some(device) = submitted.device.filter(|_| submitted.class == Class::Data) {
            add(self.written.entry((device, submitted.disk)).or_default(), bytes);
        }
        if self.loops.is_one(submitted.disk) {
            let shares = match (submitted.device, &owner) {
                (Some(device), _) => {
                    let key = (device, submitted.file.as_ref().map(File::inode));
                    self.credit.submitted(key, submitted.disk, submitted.cgroup_ino, owner.as_ref(), bytes)
                }
                (None, Some(who)) => vec![(who.clone(), bytes)],
                (None, None) => Vec::new(),
            };
            self.loops.queued(submitted.disk, shares);
        }
        if !self.is_bottom(submitted.disk) {
            return;
        }
        add(self.totals.queued.of(submitted.class), bytes);
        if let Some(ino) = submitted.cgroup_ino {
            add(&mut self.cgroups.entry(ino).or_default().charged, bytes);
        }
        match (submitted.class, submitted.device, &owner) {
            (Class::Data, Some(device), _) => {
                let key = (device, submitted.file.as_ref().map(File::inode));
                add(&mut self.files.entry(key).or_default().0.device, bytes);
                let shares = self.credit.submitted(key, submitted.disk, submitted.cgroup_ino, owner.as_ref(), bytes);
                let credited = shares.iter().fold(0, |sum: u64, (_, bytes)| sum.saturating_add(*bytes));
                add(&mut self.totals.credited_bytes, credited);
                add(&mut self.totals.unattributed_bytes, bytes.saturating_sub(credited));
                for (who, bytes) in shares {
                    self.credited(&who, bytes);
                }
            }
            (Class::Direct, _, Some(who)) => self.credited(who, bytes),
            _ => {}
        }
    }

    /// Bytes of data, each superblock counted once: on the device that received most of it, which is the one it lies
    /// on, above mirrors and stripes.
    fn written_once(&self) -> u64 {
        let mut most: BTreeMap<DevId, u64> = BTreeMap::new();
        for ((device, _), bytes) in &self.written {
            let so_far = most.entry(*device).or_default();
            *so_far = (*bytes).max(*so_far);
        }
        most.into_values().fold(0, u64::saturating_add)
    }

    fn credited(&mut self, who: &Who, bytes: u64) {
        add(&mut self.who.entry(who.clone()).or_default().device, bytes);
        add(&mut self.cgroups.entry(who.cgroup_ino).or_default().device, bytes);
    }

    fn into_ledger(mut self, window: &Window) -> Ledger {
        let applications = Applications::of(window);
        self.totals.application_bytes = applications.written;
        self.totals.cancelled_bytes = applications.cancelled.max(self.totals.cancelled_bytes);
        let disks = self.disk_lines(window);
        let counted: Vec<u64> =
            disks.iter().filter(|disk| disk.is_bottom).filter_map(|disk| disk.diskstats_bytes).collect();
        self.totals.diskstats_bytes =
            (!counted.is_empty()).then(|| counted.iter().fold(0, |sum: u64, bytes| sum.saturating_add(*bytes)));
        let mut processes: Vec<ProcessLine> =
            self.who.iter().map(|(who, part)| self.process_line(&applications, who, *part)).collect();
        processes.sort_by_key(|line| Reverse((line.device_bytes, line.dirtied_bytes)));
        let mut cgroups: Vec<CgroupLine> =
            self.cgroups.iter().map(|(ino, part)| self.cgroup_line(*ino, *part)).collect();
        cgroups.sort_by_key(|line| Reverse((line.device_bytes, line.dirtied_bytes, line.charged_bytes)));
        let mut files: Vec<FileLine> = self.files.iter().map(|(key, file)| self.file_line(*key, file)).collect();
        files.sort_by_key(|line| Reverse((line.device_bytes, line.dirtied_bytes)));
        let mut synced: Vec<SyncedLine> = self.synced.iter().map(|(key, sum)| self.synced_line(key, *sum)).collect();
        synced.sort_by_key(|line| Reverse(line.total_ns));
        let throttled = self.throttled_lines(window);
        let waits = blame::waits(window, &self.names);
        let mismatches = balance::mismatches(window, &self.totals, self.written_once());
        Ledger {
            schema: SCHEMA,
            window_s: window.seconds(),
            totals: self.totals,
            disks,
            processes,
            cgroups,
            files,
            waits,
            synced,
            throttled,
            mismatches,
            gaps: gaps(window),
        }
    }

    fn throttled_lines(&mut self, window: &Window) -> Vec<ThrottledLine> {
        let pauses = throttle::by(window, |one| {
            (one.pauses > 0 || one.lasted() > Nanos(0))
                .then(|| (one.who.pid, one.who.cgroup_ino, one.bdi.clone(), one.domain, one.who.comm.clone()))
        });
        let line = |((pid, cgroup_ino, bdi, domain, comm), sum): (_, throttle::Pauses)| {
            let who = self.process_of(&Who { pid, comm, cgroup_ino });
            ThrottledLine {
                process: process(&who),
                cgroup: self.names.cgroup(cgroup_ino),
                bdi: Name::to_string(&bdi),
                domain,
                count: sum.count,
                total_ns: sum.total.0,
                longest_ns: sum.longest.0,
            }
        };
        pauses.unwrap_or_default().into_iter().map(line).collect()
    }

    fn disk_lines(&self, window: &Window) -> Vec<DiskLine> {
        let known = device::devices(window);
        let line = |(dev, queued): (&DevId, &Queued)| {
            let device = known.iter().find(|device| device.dev == *dev);
            DiskLine {
                disk: device.map_or_else(|| dev.to_string(), |device| device.name.to_string()),
                is_bottom: self.is_bottom(*dev),
                queued: *queued,
                diskstats_bytes: device.and_then(|device| device.span.growth.written).map(|bytes| bytes.0),
            }
        };
        let mut lines: Vec<DiskLine> = self.disks.iter().map(line).collect();
        lines.sort_by_key(|line| Reverse((line.is_bottom, line.queued.total())));
        lines
    }

    fn process_line(&self, applications: &Applications, who: &Who, part: Part) -> ProcessLine {
        let application = applications.by(who);
        let enough = application.bytes.filter(|bytes| application.is_whole && *bytes >= PAGE);
        ProcessLine {
            pid: who.pid,
            comm: who.comm.to_string(),
            cgroup: self.names.cgroup(who.cgroup_ino),
            application_bytes: application.bytes,
            dirtied_bytes: part.dirtied,
            redirtied_bytes: part.redirtied,
            device_bytes: part.device,
            amplification: enough.map(|bytes| part.device as f64 / bytes as f64),
        }
    }

    fn cgroup_line(&self, ino: u64, part: Part) -> CgroupLine {
        CgroupLine {
            cgroup: self.names.cgroup(ino),
            dirtied_bytes: part.dirtied,
            redirtied_bytes: part.redirtied,
            device_bytes: part.device,
            charged_bytes: part.charged,
        }
    }

    fn file_line(&self, key: credit::FileKey, (part, by): &(Part, BTreeMap<Who, u64>)) -> FileLine {
        let mut by: Vec<(&Who, &u64)> = by.iter().collect();
        by.sort_by_key(|(_, bytes)| Reverse(**bytes));
        FileLine {
            file: self.names.file(key),
            dirtied_bytes: part.dirtied,
            redirtied_bytes: part.redirtied,
            cancelled_bytes: part.cancelled,
            device_bytes: part.device,
            by: by.into_iter().map(|(who, _)| process(who)).collect(),
        }
    }

    fn synced_line(
        &self,
        (who, operation): &(Who, floodline_record::traced::waits::Operation),
        sum: SyncedSum,
    ) -> SyncedLine {
        SyncedLine {
            process: process(who),
            cgroup: self.names.cgroup(who.cgroup_ino),
            operation: *operation,
            count: sum.count,
            total_ns: sum.total,
            longest_ns: sum.longest,
        }
    }
}

/// Events that the tracer did not see.
fn gaps(window: &Window) -> Vec<String> {
    let of_tracer = |gap: &&Gap| matches!(gap.source, Source::TraceBytes | Source::TraceThrottle);
    // The same cause recurs in each interval, with a different number.
    let mut times: BTreeMap<(Source, String), u64> = BTreeMap::new();
    for gap in window.gaps.iter().filter(of_tracer) {
        let once = Gap { times: 1, ..gap.clone() };
        let sum = times.entry((gap.source, once.to_string())).or_default();
        *sum = sum.saturating_add(gap.times.max(1));
    }
    let text = |((_, text), times): ((Source, String), u64)| match times {
        1 => text,
        times => format!("{text} (×{times})"),
    };
    times.into_iter().map(text).collect()
}

/// Names of the processes in several samples. A process in a single sample may have executed another program right
/// after it: then the trace has the newer name.
fn comms(window: &Window) -> BTreeMap<u32, Name> {
    let is_settled = |id: &EntityId| window.processes.get(id).is_none_or(|span| span.readings > 1);
    let named = |(id, entity): (&EntityId, &Entity)| match entity {
        Entity::Process { pid, comm, .. } if is_settled(id) => Some((*pid, comm.clone())),
        _ => None,
    };
    window.entities.iter().filter_map(named).collect()
}

/// Label of a process for people.
fn process(who: &Who) -> String {
    format!("{}[{}]", who.comm, who.pid)
}
