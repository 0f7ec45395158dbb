// SPDX-License-Identifier: MIT OR Apache-2.0
//! The exporter's data: the last sample, the last results of the rules, and sums since the start. A scrape only formats
//! it and reads no source, so that a source that hangs cannot hang the scrape. The age of the sample is exported.

mod groups;
mod waits;

use floodline_analysis::diagnose::rules::RULES;
use floodline_analysis::report::{Report, Severity};
use floodline_host::trace::Tracer;
use floodline_record::facts::HostFacts;
use floodline_record::gap::{Cause, Source};
use floodline_record::id::{Entity, EntityId};
use floodline_record::levels::Levels;
use floodline_record::metric::{MetricKind, Row};
use floodline_record::record::{Event, Record, What};
use floodline_record::sample::{BdiRow, CgroupRow, DiskRow, HostRow, Sample, SampleTime, Table};
use floodline_record::units::Nanos;
use floodline_view::metrics::catalogue::{Catalogue, Column, name};
use floodline_view::metrics::{Exposition, Format, Labels, Number};
use groups::Groups;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use waits::Waits;

/// Time over which the longest gap between two samples is computed.
const GAPS_OVER: Nanos = Nanos(600 * Nanos::SECOND.0);

/// Samples after which cgroups that are gone are forgotten.
const FORGET_EVERY: u64 = 60;

/// Outcome of a trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// An incident is kept.
    Kept,
    /// An incident of the same kind and subject was kept a short time ago.
    Duplicate,
    /// The day's limit was reached.
    Limited,
    /// The incident could not be written.
    Failed,
}

impl Outcome {
    const ALL: [Outcome; 4] = [Outcome::Kept, Outcome::Duplicate, Outcome::Limited, Outcome::Failed];

    fn name(self) -> &'static str {
        match self {
            Outcome::Kept => "kept",
            Outcome::Duplicate => "duplicate",
            Outcome::Limited => "limited",
            Outcome::Failed => "failed",
        }
    }
}

/// The state of the ring on disk, as the thread that writes it reports it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RingState {
    /// Bytes of all its files.
    pub bytes: u64,
    /// Limit of these.
    pub limit: u64,
    /// Bytes that wait in memory.
    pub behind: u64,
    /// Bytes dropped without being written.
    pub dropped: u64,
    /// Writes that failed.
    pub errors: u64,
    /// Wall clock of the oldest sample.
    pub oldest_wall: Option<Nanos>,
}

/// The last result of one rule.
#[derive(Clone, Debug, Default)]
struct Answer {
    severity: Option<Severity>,
    devices: String,
    not_checked: Option<&'static str>,
}

/// Resources used by this process.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    /// CPU time.
    pub(crate) cpu: Nanos,
    /// Resident memory, bytes.
    pub(crate) memory: Option<u64>,
}

/// The exporter's data.
#[derive(Default)]
pub struct Board {
    catalogue: Catalogue,
    version: &'static str,
    page_size: u64,
    facts: Option<Box<HostFacts>>,
    names: BTreeMap<EntityId, Labels>,
    groups: Groups,
    levels: Levels,
    time: Option<SampleTime>,
    took: Nanos,
    host: HostRow,
    disks: Table<DiskRow>,
    bdis: Table<BdiRow>,
    samples: u64,
    missed: u64,
    gaps: VecDeque<(Nanos, Nanos)>,
    /// Time that the machine was suspended since the last sample.
    suspended: Nanos,
    down: BTreeSet<Source>,
    traced: Nanos,
    is_traced: bool,
    waits: Waits,
    answers: BTreeMap<&'static str, Answer>,
    judged_at: Option<Nanos>,
    incidents: BTreeMap<Outcome, u64>,
    scrapes: BTreeMap<u16, u64>,
    ring: Option<RingState>,
    usage: Usage,
}

impl Board {
    /// Creates an empty board of this program version.
    pub fn new(version: &'static str) -> Board {
        Board { version, page_size: 4096, ..Board::default() }
    }

    /// Takes one record.
    pub fn record(&mut self, record: &Record) {
        match record {
            Record::Facts(facts) => {
                self.page_size = facts.page_size;
                self.groups.rename(facts);
                self.facts = Some(facts.clone());
            }
            Record::Entity(id, entity) => self.describe(*id, entity),
            Record::Sample(sample) => self.sample(sample),
            Record::Event(event) => self.event(event),
            Record::Gap(gap) => {
                let is_whole = gap.entity.is_none() && gap.detail.is_none();
                if is_whole && gap.cause != Cause::Vanished {
                    self.down.insert(gap.source);
                }
            }
        }
    }

    fn describe(&mut self, id: EntityId, entity: &Entity) {
        match entity {
            Entity::Disk { name, .. } => {
                self.names.insert(id, Labels::one("device", &name.to_string()));
            }
            Entity::Bdi { name } => {
                self.names.insert(id, Labels::one("bdi", &name.to_string()));
            }
            Entity::Cgroup { .. } => self.groups.describe(id, entity, self.facts.as_deref()),
            _ => {}
        }
    }

    fn sample(&mut self, sample: &Sample) {
        let at = sample.time.monotonic;
        if let Some(before) = self.time {
            let suspended = std::mem::take(&mut self.suspended);
            let gap = Nanos(at.0.saturating_sub(before.monotonic.0).saturating_sub(suspended.0));
            self.gaps.push_back((at, gap));
            if self.is_traced {
                self.traced = Nanos(self.traced.0.saturating_add(gap.0));
            }
        }
        while self.gaps.front().is_some_and(|(then, _)| at.0.saturating_sub(then.0) > GAPS_OVER.0) {
            self.gaps.pop_front();
        }
        self.time = Some(sample.time);
        self.took = sample.took;
        self.samples += 1;
        self.host = sample.host.clone();
        self.disks = sample.disks.clone();
        self.bdis = sample.bdis.clone();
        // A series does not come and go with the samples that read it.
        self.levels.note(sample);
        self.groups.sample(at, &self.levels.with_readings(&sample.cgroups), &self.catalogue.cgroup);
        if self.samples.is_multiple_of(FORGET_EVERY) {
            self.groups.forget(|id| sample.cgroups.get(id).is_some());
            let (disks, bdis) = (&self.disks, &self.bdis);
            self.names.retain(|id, _| disks.get(*id).is_some() || bdis.get(*id).is_some());
        }
    }

    fn event(&mut self, event: &Event) {
        match &event.what {
            What::Missed { samples } => self.missed = self.missed.saturating_add(*samples),
            What::TraceStarted { .. } => self.is_traced = true,
            What::Synced(synced) => self.waits.all(synced),
            What::SlowSync(slow) => self.waits.slow(slow),
            What::Throttled(throttled) => {
                self.groups.throttled(event.at, throttled.who.cgroup_ino, throttled.lasted());
            }
            _ => {}
        }
    }

    /// Takes the time that the machine was suspended before the sample that follows: no sample is late for that.
    pub fn suspended(&mut self, length: Nanos) {
        self.suspended = length;
    }

    /// The tracer was detached.
    pub fn trace_ended(&mut self) {
        self.is_traced = false;
    }

    /// Takes the results of the rules.
    pub fn judged(&mut self, at: Nanos, report: &Report) {
        self.answers.clear();
        for finding in &report.findings {
            let answer = self.answers.entry(finding.rule).or_default();
            answer.severity = answer.severity.max(Some(finding.severity));
            if answer.devices.is_empty() {
                answer.devices = finding.devices.join(",");
            }
        }
        for rule in &report.not_checked {
            let kind = rule.gaps.first().map_or("unknown", |gap| gap.kind);
            self.answers.entry(rule.rule).or_default().not_checked = Some(kind);
        }
        self.judged_at = Some(at);
    }

    /// Counts the outcome of a trigger.
    pub fn count_incident(&mut self, outcome: Outcome) {
        *self.incidents.entry(outcome).or_default() += 1;
    }

    /// Counts a request.
    pub(crate) fn count_scrape(&mut self, status: u16) {
        *self.scrapes.entry(status).or_default() += 1;
    }

    /// Takes the state of the ring.
    pub(crate) fn set_ring(&mut self, ring: RingState) {
        self.ring = Some(ring);
    }

    /// Takes the resources used by this process.
    pub(crate) fn set_usage(&mut self, usage: Usage) {
        self.usage = usage;
    }

    /// Whether a sample was taken.
    pub fn has_sample(&self) -> bool {
        self.time.is_some()
    }

    /// The page of metrics at a moment of the samples' clock, and the number of its series.
    pub fn render(&self, now: SampleTime, format: Format) -> (String, usize) {
        let mut page = Exposition::new(format, 128 << 10);
        self.put_own(&mut page, now);
        self.put_rules(&mut page, now);
        put_row(&mut page, &self.catalogue.host, &self.host, self.page_size);
        self.put_table(&mut page, &self.catalogue.disk, &self.disks);
        self.put_table(&mut page, &self.catalogue.bdi, &self.bdis);
        self.put_cgroups(&mut page);
        let series = page.series();
        (page.finish(), series)
    }

    fn put_own(&self, page: &mut Exposition, now: SampleTime) {
        let own = |name: &str| self.catalogue.own(name);
        let mut one = |name: &str, value: Number| page.family(own(name)).add(&Labels::none(), value);
        if let Some(time) = self.time {
            let complete = time.monotonic.0.saturating_add(self.took.0);
            one(name::LOOK_AGE, Number::Nanos(now.monotonic.0.saturating_sub(complete)));
            one(name::LOOK_DURATION, Number::Nanos(self.took.0));
        }
        one(name::LOOKS, Number::Integer(self.samples));
        one(name::LOOKS_MISSED, Number::Integer(self.missed));
        let longest = self.gaps.iter().map(|(_, gap)| gap.0).max().unwrap_or(0);
        one(name::LOOK_GAP_MAX, Number::Nanos(longest));
        if let Some(at) = self.judged_at {
            one(name::RULES_AGE, Number::Nanos(now.monotonic.0.saturating_sub(at.0)));
        }
        one(name::CGROUPS, Number::Integer(self.groups.cgroups() as u64));
        one(name::CGROUP_SERIES, Number::Integer(self.groups.exported() as u64));
        one(name::TRACED, Number::Nanos(self.traced.0));
        one(name::CPU, Number::Nanos(self.usage.cpu.0));
        if let Some(memory) = self.usage.memory {
            one(name::MEMORY, Number::Integer(memory));
        }
        if let Some(ring) = self.ring {
            one(name::RING_BYTES, Number::Integer(ring.bytes));
            one(name::RING_LIMIT, Number::Integer(ring.limit));
            one(name::RING_BEHIND, Number::Integer(ring.behind));
            one(name::RING_DROPPED, Number::Integer(ring.dropped));
            one(name::RING_ERRORS, Number::Integer(ring.errors));
            if let Some(oldest) = ring.oldest_wall {
                one(name::RING_OLDEST, Number::Nanos(now.wall.0.saturating_sub(oldest.0)));
            }
        }
        page.family(own(name::BUILD_INFO)).add(&Labels::one("version", self.version), Number::Integer(1));
        let mut incidents = page.family(own(name::INCIDENTS));
        for outcome in Outcome::ALL {
            let count = self.incidents.get(&outcome).copied().unwrap_or(0);
            incidents.add(&Labels::one("outcome", outcome.name()), Number::Integer(count));
        }
        let mut scrapes = page.family(own(name::SCRAPES));
        for (status, count) in
            [(200, 0)].into_iter().chain(self.scrapes.iter().map(|(status, count)| (*status, *count)))
        {
            if count > 0 || !self.scrapes.contains_key(&status) {
                scrapes.add(&Labels::one("status", &status.to_string()), Number::Integer(count));
            }
        }
        let mut sources = page.family(own(name::SOURCE_UP));
        for source in Source::ALL {
            // A traced source is not up while the tracer is detached.
            let is_off = !self.is_traced && Tracer::sources().any(|traced| traced == *source);
            sources.add(&Labels::one("source", source.path()), flag(!is_off && !self.down.contains(source)));
        }
        let mut waits = page.family(own(name::WAIT));
        for (operation, histogram) in self.waits.each() {
            let (buckets, count, sum) = histogram.cumulative();
            waits.add_histogram(&Labels::one("operation", operation.name()), &buckets, count, sum);
        }
    }

    fn put_rules(&self, page: &mut Exposition, _now: SampleTime) {
        if self.judged_at.is_none() {
            return;
        }
        let answer = |rule: &str| self.answers.get(rule);
        let mut active = page.family(self.catalogue.own(name::FINDING_ACTIVE));
        for rule in RULES {
            for severity in [Severity::Info, Severity::Warning, Severity::Critical] {
                let labels = Labels::one("rule", rule.name).and("severity", severity.name());
                active.add(&labels, flag(answer(rule.name).is_some_and(|answer| answer.severity == Some(severity))));
            }
        }
        let mut info = page.family(self.catalogue.own(name::FINDING_INFO));
        for (rule, answer) in &self.answers {
            if let Some(severity) = answer.severity {
                let labels = Labels::one("rule", rule).and("severity", severity.name());
                info.add(&labels.and("devices", &answer.devices), Number::Integer(1));
            }
        }
        let mut not_checked = page.family(self.catalogue.own(name::RULE_NOT_CHECKED));
        for rule in RULES {
            let cause = answer(rule.name).and_then(|answer| answer.not_checked);
            let labels = Labels::one("rule", rule.name).and("cause", cause.unwrap_or("none"));
            not_checked.add(&labels, flag(cause.is_some()));
        }
    }

    fn put_table<R: Row>(&self, page: &mut Exposition, columns: &[Column], table: &Table<R>) {
        for column in columns {
            let mut series = page.family(&column.family);
            for (id, row) in table.rows() {
                if let Some((labels, value)) = self.names.get(id).zip(row.get(column.index)) {
                    series.add(labels, column.number(value, self.page_size));
                }
            }
        }
    }

    fn put_cgroups(&self, page: &mut Exposition) {
        for (index, column) in self.catalogue.cgroup.iter().enumerate() {
            let kind = CgroupRow::METRICS.get(column.index).map(|metric| metric.kind);
            let mut series = page.family(&column.family);
            for (labels, value) in self.groups.values(index, kind == Some(MetricKind::Gauge)) {
                series.add(&labels, column.number(value, self.page_size));
            }
        }
        let mut slept = page.family(self.catalogue.own(name::CGROUP_THROTTLED));
        for (labels, nanos) in self.groups.slept() {
            slept.add(labels, Number::Nanos(nanos));
        }
    }
}

fn put_row<R: Row>(page: &mut Exposition, columns: &[Column], row: &R, page_size: u64) {
    for column in columns {
        if let Some(value) = row.get(column.index) {
            page.family(&column.family).add(&Labels::none(), column.number(value, page_size));
        }
    }
}

fn flag(is_set: bool) -> Number {
    Number::Integer(u64::from(is_set))
}

#[cfg(test)]
mod tests;
