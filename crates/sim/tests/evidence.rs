// SPDX-License-Identifier: MIT OR Apache-2.0
//! Computes the numbers of evidence a second time from the samples themselves: no window, no derived reading, none
//! of the rules' own code. Each number of each finding of an incident is either computed here or listed among those
//! that come from the kernel's formulas, which golden vectors check.

use floodline_analysis::report::{Evidence, Finding, Report, Value};
use floodline_analysis::run::Run;
use floodline_record::id::{Entity, EntityId};
use floodline_record::metric::Row;
use floodline_record::record::{Record, Sink, What};
use floodline_record::sample::{CgroupIoRow, DiskRow, HostRow, ProcessRow, Sample, Table};
use floodline_scenario::ScenarioFile;
use floodline_sim::{Options, simulate};
use std::collections::BTreeMap;

const INCIDENTS: &[(&str, &str)] = &[
    (include_str!("../../../scenarios/starved-budget.toml"), "incident"),
    (include_str!("../../../scenarios/dirty-cliff.toml"), "incident"),
    (include_str!("../../../scenarios/dirty-cliff.toml"), "incident-short"),
    (include_str!("../../../scenarios/slow-disk-journal.toml"), "incident"),
    (include_str!("../../../scenarios/overlay-umount.toml"), "incident"),
    (include_str!("../../../scenarios/inode-switch-storm.toml"), "incident"),
];

/// Tolerance of a number of evidence.
const WITHIN: f64 = 0.05;
const PAGE: f64 = 4096.0;

/// Numbers that the kernel's formulas compute from settings and memory, and those that are not readings.
const COMPUTED: &[&str] = &[
    "Cgroups with too small a budget",
    "Hard threshold of ",
    "Background threshold of ",
    "Its dirtyable memory",
    "Of them over their threshold",
    "Overlays on ",
    "umount asleep in every sample",
    "Longest of them, at least",
    "Expiry",
    "Oldest it may get",
    "Flusher period",
    "Such kworkers",
    "Cgroups removed in this window",
    "Inodes ",
    "Filesystem cache",
];

/// A recorded run.
#[derive(Default)]
struct Raw {
    entities: BTreeMap<EntityId, Entity>,
    samples: Vec<Sample>,
}

/// Value of a row in a column; absent is zero.
type Column<R> = fn(&R) -> u64;

fn seconds(from: &Sample, to: &Sample) -> f64 {
    (to.time.monotonic.0 - from.time.monotonic.0) as f64 / 1e9
}

/// The share of one number in another; zero if the other is zero.
fn over(part: f64, all: f64) -> f64 {
    if all > 0.0 { part / all } else { 0.0 }
}

impl Raw {
    fn first(&self) -> &Sample {
        self.samples.first().expect("samples")
    }

    fn last(&self) -> &Sample {
        self.samples.last().expect("samples")
    }

    fn seconds(&self) -> f64 {
        seconds(self.first(), self.last())
    }

    fn host(&self, from: usize, to: usize, column: Column<HostRow>) -> f64 {
        column(&self.samples[to].host).saturating_sub(column(&self.samples[from].host)) as f64
    }

    fn host_all(&self, column: Column<HostRow>) -> f64 {
        self.host(0, self.samples.len() - 1, column)
    }

    /// Growth of a column of one entity between its first and its last row.
    fn grown<R: Row>(&self, table: fn(&Sample) -> &Table<R>, id: EntityId, column: Column<R>) -> f64 {
        let mut rows = self.samples.iter().filter_map(|sample| table(sample).get(id));
        let Some(first) = rows.next() else { return 0.0 };
        let last = rows.next_back().unwrap_or(first);
        column(last).saturating_sub(column(first)) as f64
    }

    /// What a process did: all of it, where it began within the window.
    fn process(&self, id: EntityId, column: Column<ProcessRow>) -> f64 {
        let Some(Entity::Process { start_ticks, .. }) = self.entities.get(&id) else { return 0.0 };
        let is_new = start_ticks * 10_000_000 > self.first().time.monotonic.0;
        let last = || self.samples.iter().rev().find_map(|sample| sample.processes.get(id)).map_or(0, column);
        if is_new { last() as f64 } else { self.grown(|sample| &sample.processes, id, column) }
    }

    fn processes(&self, wanted: impl Fn(&Entity) -> bool, column: Column<ProcessRow>) -> f64 {
        let ids = self.entities.iter().filter(|(_, entity)| matches!(entity, Entity::Process { .. }) && wanted(entity));
        ids.map(|(id, _)| self.process(*id, column)).sum()
    }

    fn labelled(&self, label: &str) -> (EntityId, &Entity) {
        // The I/O of a process may be that of its reaped children.
        let label = label.strip_prefix("children of ").unwrap_or(label);
        let found = self
            .entities
            .iter()
            .find(|(_, entity)| matches!(entity, Entity::Process { .. }) && entity.label() == label);
        found.map(|(id, entity)| (*id, entity)).unwrap_or_else(|| panic!("no process {label}"))
    }

    fn cgroup(&self, wanted: &str) -> EntityId {
        let is_it = |entity: &Entity| matches!(entity, Entity::Cgroup { path, .. } if path.to_string() == wanted);
        *self.entities.iter().find(|(_, entity)| is_it(entity)).unwrap_or_else(|| panic!("no cgroup {wanted}")).0
    }

    fn disk(&self) -> EntityId {
        *self.entities.iter().find(|(_, entity)| matches!(entity, Entity::Disk { .. })).expect("a disk").0
    }

    fn between(&self, from: usize, to: usize, column: Column<DiskRow>) -> f64 {
        let row = |at: usize| self.samples[at].disks.get(self.disk()).map_or(0, column);
        row(to).saturating_sub(row(from)) as f64
    }

    /// The intervals between neighbouring samples, by the number of the first.
    fn intervals(&self) -> impl Iterator<Item = usize> {
        0..self.samples.len() - 1
    }

    fn length(&self, at: usize) -> f64 {
        seconds(&self.samples[at], &self.samples[at + 1])
    }

    fn busy(&self, at: usize) -> f64 {
        self.between(at, at + 1, |row| row.io_time.unwrap_or_default().0) / 1e9 / self.length(at)
    }

    fn queue(&self, at: usize) -> f64 {
        self.between(at, at + 1, |row| row.weighted_io_time.unwrap_or_default().0) / 1e9 / self.length(at)
    }

    fn written(&self, from: usize, to: usize) -> f64 {
        self.between(from, to, |row| row.written.unwrap_or_default().0)
    }

    fn writes(&self, from: usize, to: usize) -> f64 {
        self.between(from, to, |row| row.writes.unwrap_or_default().0)
    }

    fn wait(&self, at: usize) -> f64 {
        over(self.between(at, at + 1, |row| row.write_time.unwrap_or_default().0) / 1e9, self.writes(at, at + 1))
    }

    fn pressed(&self, from: usize, to: usize) -> f64 {
        self.host(from, to, |row| row.psi_io_some.unwrap_or_default().0) / 1e9
    }

    fn unwritten(&self, at: usize) -> f64 {
        let row = &self.samples[at].host;
        (row.nr_dirty.unwrap_or_default().0 + row.nr_writeback.unwrap_or_default().0) as f64 * PAGE
    }

    fn is_full(&self, at: usize) -> bool {
        self.busy(at) >= 0.9 && self.queue(at) >= 2.0
    }

    /// Intervals in which the disk was full of slow writes.
    fn slow(&self) -> Vec<usize> {
        let reads = |at: usize| self.between(at, at + 1, |row| row.reads.unwrap_or_default().0);
        let read = |at: usize| self.between(at, at + 1, |row| row.read.unwrap_or_default().0);
        let is_slow = |at: &usize| {
            let (at, next) = (*at, *at + 1);
            let is_of_writes = self.written(at, next) >= read(at) && self.writes(at, next) >= reads(at);
            self.busy(at) >= 0.75 && self.queue(at) >= 2.0 && is_of_writes && self.wait(at) >= 0.1
        };
        self.intervals().filter(is_slow).collect()
    }

    fn sum(&self, intervals: &[usize], of: impl Fn(usize) -> f64) -> f64 {
        intervals.iter().map(|at| of(*at)).sum()
    }
}

/// Returns the first and the last sample of the burst in a finding, by its length and its rate.
fn burst(raw: &Raw, finding: &Finding) -> (usize, usize) {
    let told = |name: &str| finding.evidence.iter().find(|one| one.name == name).and_then(number);
    let length = told("Length of the burst").expect("a length");
    let rate = told("Written during the burst").expect("a rate");
    let is_it = |from: usize, to: usize| {
        let seconds = seconds(&raw.samples[from], &raw.samples[to]);
        near(length, seconds)
            && near(rate, raw.written(from, to) / seconds)
            && raw.intervals().take(to).skip(from).all(|at| raw.busy(at) >= 0.5)
    };
    let all = raw.intervals().flat_map(|from| (from + 1..raw.samples.len()).map(move |to| (from, to)));
    let found: Vec<(usize, usize)> = all.filter(|(from, to)| is_it(*from, *to)).collect();
    // Of several bursts of this length and rate, the one with the levels in the finding.
    let level = |name: &str| told(name).unwrap_or(0.0);
    let levels = (level("Dirty before the burst"), level("Dirty after it"));
    let has_levels =
        |(from, to): &&(usize, usize)| near(levels.0, raw.unwritten(*from)) && near(levels.1, raw.unwritten(*to));
    let first = || found.first().unwrap_or_else(|| panic!("no {length} s in which {rate} B/s were written"));
    *found.iter().find(has_levels).unwrap_or_else(first)
}

fn number(evidence: &Evidence) -> Option<f64> {
    match &evidence.value {
        Value::Integer(value) => Some(*value as f64),
        Value::Decimal(value) => Some(*value),
        Value::Text(_) => None,
    }
}

fn near(one: f64, other: f64) -> bool {
    (one - other).abs() <= WITHIN * one.abs().max(other.abs())
}

const DIRTIED: Column<ProcessRow> = |row| row.write_bytes.unwrap_or_default().0;
const HANDED: Column<ProcessRow> = |row| row.wchar.unwrap_or_default().0;
const FAULTS: Column<ProcessRow> = |row| row.minflt.unwrap_or_default().0 + row.majflt.unwrap_or_default().0;

/// Computes a number again; `None` if this code cannot compute it.
fn again(raw: &Raw, finding: &Finding, evidence: &Evidence) -> Option<f64> {
    let name = evidence.name.as_str();
    let after = |prefix: &str| name.strip_prefix(prefix);
    let subject = || {
        let of = finding.evidence.iter().find_map(|one| one.name.strip_prefix("Share of "));
        raw.labelled(of.expect("a share of somebody")).0
    };
    let of_cgroup = |entity: &Entity| match entity {
        Entity::Process { cgroup, .. } => *cgroup,
        _ => None,
    };
    let of_boxes = |entity: &Entity| {
        let path = of_cgroup(entity).and_then(|id| raw.entities.get(&id)).map(Entity::label).unwrap_or_default();
        path.starts_with("/box")
    };
    let last = raw.samples.len() - 1;
    let disk_busy = || raw.between(0, last, |row| row.io_time.unwrap_or_default().0) / 1e9 / raw.seconds();
    let process_io = |label: &str, column| Some(raw.process(raw.labelled(label).0, column));
    Some(match name {
        "Dirtied" => raw.host_all(|row| row.nr_dirtied.unwrap_or_default().0) * PAGE / raw.seconds(),
        "Most dirty, against background" | "Most dirty, against throttling" => {
            raw.samples.iter().map(|sample| sample.host.nr_dirty.unwrap_or_default().0).max()? as f64 * PAGE
        }
        "All disks wrote" => raw.written(0, last),
        "Mean write of vda" => over(raw.written(0, last), raw.writes(0, last)),
        "vda busy" | "Busiest disk, vda" if finding.rule != "overlay-umount-flush" => disk_busy(),
        // Of the intervals with the wait, the largest value of one.
        "vda busy" => raw.intervals().map(|at| raw.busy(at)).fold(0.0, f64::max),
        "Length of the burst" | "Written during the burst" => {
            let (from, to) = burst(raw, finding);
            let length = seconds(&raw.samples[from], &raw.samples[to]);
            if name.starts_with("Length") { length } else { raw.written(from, to) / length }
        }
        "Dirty before the burst" => raw.unwritten(burst(raw, finding).0),
        "Dirty after it" => raw.unwritten(burst(raw, finding).1),
        "Time in it with a task waiting" => {
            let (from, to) = burst(raw, finding);
            raw.pressed(from, to) / seconds(&raw.samples[from], &raw.samples[to])
        }
        "Write await, worst interval" if finding.rule == "dirty-cliff" => {
            let (from, to) = burst(raw, finding);
            (from..to).map(|at| raw.wait(at)).fold(0.0, f64::max)
        }
        "Write await, worst interval" if finding.rule == "fsync-behind-writeback" => {
            raw.slow().iter().map(|at| raw.wait(*at)).fold(0.0, f64::max)
        }
        "Write await, worst interval" => raw.intervals().map(|at| raw.wait(at)).fold(0.0, f64::max),
        "Saturated by small writes" => {
            let is_small =
                |at: &usize| raw.is_full(*at) && over(raw.written(*at, at + 1), raw.writes(*at, at + 1)) <= 32_768.0;
            raw.intervals().filter(is_small).map(|at| raw.length(at)).sum()
        }
        "vda full of writes and slow" => raw.sum(&raw.slow(), |at| raw.length(at)),
        "Part of these seconds with a task waiting" => {
            let slow = raw.slow();
            raw.sum(&slow, |at| raw.pressed(at, at + 1)) / raw.sum(&slow, |at| raw.length(at))
        }
        "Part of it that is writeback" => {
            let slow = raw.slow();
            let cleaned = raw.sum(&slow, |at| raw.host(at, at + 1, |row| row.nr_written.unwrap_or_default().0) * PAGE);
            (cleaned / raw.sum(&slow, |at| raw.written(at, at + 1))).min(1.0)
        }
        "It dirtied" => raw.process(subject(), DIRTIED),
        "It handed to write calls" => raw.process(subject(), HANDED),
        "Its cgroup sent to disks" => {
            let wanted = raw.entities.get(&subject()).and_then(of_cgroup)?;
            let io = raw
                .entities
                .iter()
                .find(|(_, entity)| matches!(entity, Entity::CgroupIo { cgroup, .. } if *cgroup == wanted))?;
            let wbytes: Column<CgroupIoRow> = |row| row.wbytes.unwrap_or_default().0;
            raw.grown(|sample| &sample.cgroup_io, *io.0, wbytes)
        }
        "All processes dirtied" => raw.processes(|_| true, DIRTIED),
        "Dirtied by none of them" => {
            let machine = raw.host_all(|row| row.nr_dirtied.unwrap_or_default().0) * PAGE;
            // A difference of two large numbers: its error is up to theirs.
            let left = machine - raw.processes(|_| true, DIRTIED);
            return number(evidence).filter(|told| (told - left.max(0.0)).abs() <= WITHIN * machine);
        }
        "Dirtied by their processes" => raw.processes(of_boxes, DIRTIED) / raw.seconds(),
        "Dirtied per page fault" => over(raw.processes(of_boxes, DIRTIED), raw.processes(of_boxes, FAULTS)),
        "They handed to write calls" => raw.processes(of_boxes, HANDED),
        "and dirtied" => raw.processes(of_boxes, DIRTIED),
        "Time with a task waiting, worst of them" => {
            let cgroups = raw
                .entities
                .iter()
                .filter(|(_, entity)| matches!(entity, Entity::Cgroup { .. }) && entity.label().starts_with("/box"));
            let waited = |id| raw.grown(|sample| &sample.cgroups, id, |row| row.io_some.unwrap_or_default().0) / 1e9;
            cgroups.map(|(id, _)| waited(*id) / raw.seconds()).fold(0.0, f64::max)
        }
        "CPU of kworkers of inode_switch_wbs" => {
            let is_it = |entity: &Entity| entity.label().contains("inode_switch_wbs");
            (raw.processes(is_it, |row| row.utime.unwrap_or_default().0)
                + raw.processes(is_it, |row| row.stime.unwrap_or_default().0))
                / 1e9
        }
        "Removed cgroups that linger" => raw
            .last()
            .cgroups
            .rows()
            .iter()
            .filter_map(|(_, row)| row.nr_dying_subsys_memory.or(row.nr_dying_descendants))
            .map(|count| count.0)
            .max()? as f64,
        "Dirty there, at most" => {
            let sum = |sample: &Sample| -> u64 {
                let unwritten = |row: &floodline_record::sample::WbRow| {
                    row.reclaimable.unwrap_or_default().0 + row.writeback.unwrap_or_default().0
                };
                sample.wbs.rows().iter().map(|(_, row)| unwritten(row)).sum()
            };
            raw.samples.iter().map(sum).max()? as f64
        }
        "Write bandwidth of vda" | "Bandwidth of vda" => {
            let is_large =
                |at: &usize| raw.is_full(*at) && over(raw.written(*at, at + 1), raw.writes(*at, at + 1)) >= 65_536.0;
            let full: Vec<usize> = raw.intervals().filter(is_large).collect();
            raw.sum(&full, |at| raw.written(at, at + 1)) / raw.sum(&full, |at| raw.length(at))
        }
        "Time to write it" => {
            let of = |wanted: &str| finding.evidence.iter().find(|one| one.name.starts_with(wanted)).and_then(number);
            of("Dirty ")? / of("Write bandwidth of").or_else(|| of("Bandwidth of"))?
        }
        "Dirty and under writeback, most" => (0..raw.samples.len()).map(|at| raw.unwritten(at)).fold(0.0, f64::max),
        _ => {
            if let Some(label) = after("Share of ") {
                return Some(over(raw.process(raw.labelled(label).0, DIRTIED), raw.processes(|_| true, DIRTIED)));
            }
            if let Some(rest) = after("Written in the ").filter(|rest| rest.ends_with(" before")) {
                assert!(!rest.is_empty());
                let from = burst(raw, finding).0;
                return Some(over(raw.written(0, from), seconds(raw.first(), &raw.samples[from])));
            }
            if let Some(cgroup) = after("Most dirty, ").or(after("Of that, ")) {
                let id = raw.cgroup(cgroup);
                let unwritten = |sample: &Sample| {
                    let row = sample.cgroups.get(id)?;
                    Some(row.file_dirty.unwrap_or_default().0 + row.file_writeback.unwrap_or_default().0)
                };
                return Some(raw.samples.iter().filter_map(unwritten).max()? as f64);
            }
            if let Some(label) = after("Waited, ") {
                return process_io(label, |row| row.blkio_delay.unwrap_or_default().0).map(|nanos| nanos / 1e9);
            }
            if let Some(label) = after("Dirtied by ") {
                return process_io(label, DIRTIED);
            }
            let label = after("Next, ").or(after("Most, "))?.strip_suffix(" dirtied")?;
            return process_io(label, DIRTIED);
        }
    })
}

fn run(text: &str, variant: &str) -> (Raw, Report) {
    let scenario = ScenarioFile::parse(text).expect("a scenario").variants.remove(variant).expect("a variant");
    let (mut raw, mut run, mut is_over) = (Raw::default(), Run::default(), false);
    let take = |record: Record| {
        match &record {
            Record::Event(event) => match event.what {
                What::WorkloadStarted { .. } => {
                    run.window.begin_again();
                    raw.samples.clear();
                }
                What::WorkloadEnded => is_over = true,
                _ => {}
            },
            Record::Entity(id, entity) => drop(raw.entities.insert(*id, entity.clone())),
            Record::Sample(sample) if !is_over => raw.samples.push((**sample).clone()),
            _ => {}
        }
        if !is_over || !matches!(record, Record::Sample(_)) {
            let Ok(()) = run.record(&record);
        }
        Ok(())
    };
    let options = Options::new(variant, "6.12.43".parse().expect("a version"));
    simulate(&scenario, &options, take, |_| true).expect("a run");
    let report = run.diagnose();
    (raw, report)
}

#[test]
fn every_number_of_evidence_is_what_the_samples_say() {
    let (mut wrong, mut checked) = (Vec::new(), 0);
    for (text, variant) in INCIDENTS {
        let (raw, report) = run(text, variant);
        assert!(!report.findings.is_empty());
        for finding in &report.findings {
            for evidence in &finding.evidence {
                let Some(told) = number(evidence) else { continue };
                if COMPUTED.iter().any(|name| evidence.name.starts_with(name)) {
                    continue;
                }
                let what = format!("{} {variant}: {}: {}", report.host.hostname, finding.rule, evidence.name);
                match again(&raw, finding, evidence) {
                    Some(raw) if near(told, raw) => checked += 1,
                    Some(raw) => wrong.push(format!("{what} is told as {told}, and the samples say {raw}")),
                    None => wrong.push(format!("{what} is told as {told}, and nothing here computes it")),
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(checked >= 60, "{checked} numbers were checked");
}
