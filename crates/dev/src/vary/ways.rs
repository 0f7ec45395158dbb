// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ways in which a machine is varied: what is recorded of one run, and the run itself.

use floodline_record::id::EntityId;
use floodline_record::metric::Row;
use floodline_record::record::{Record, What};
use floodline_record::sample::{HostRow, Sample, Table};
use floodline_record::units::BytesPerSecond;
use floodline_scenario::{ByteRate, Device, IoRate, RequestsPerSecond, Scenario};
use std::collections::BTreeMap;

/// What is kept of one recording.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Cut {
    /// One sample of this number of them.
    Thinned(usize),
    /// The workload from one share of its samples to another, in percent.
    Part(usize, usize),
    /// No event of a tracer.
    Untraced,
}

impl Cut {
    /// The records that a recorder would have written. Samples before the workload do not count for a part.
    pub(super) fn of(self, records: &[Record]) -> Vec<Record> {
        match self {
            Cut::Thinned(every) => thinned(records, every),
            Cut::Part(from, to) => part(records, from, to),
            Cut::Untraced => records.iter().filter(|record| !is_traced(record)).cloned().collect(),
        }
    }
}

/// Whether the record is an event of a tracer.
pub(super) fn is_traced(record: &Record) -> bool {
    let Record::Event(event) = record else { return false };
    matches!(
        event.what,
        What::Dirtied(_)
            | What::Cancelled(_)
            | What::Submitted(_)
            | What::SlowSync(_)
            | What::Synced(_)
            | What::TraceStarted { .. }
            | What::Throttled(_)
            | What::Flushed(_)
            | What::InodesSwitched(_)
            | What::ForeignDirtied(_)
            | What::ForeignFlushed(_)
            | What::CgroupRemoved(_)
    )
}

/// Moves readings that a recorder takes only now and then to the next kept sample.
fn thinned(records: &[Record], every: usize) -> Vec<Record> {
    let mut number = 0;
    let mut left: Option<Sample> = None;
    let mut kept = Vec::new();
    for record in records {
        let Record::Sample(sample) = record else {
            kept.push(record.clone());
            continue;
        };
        let mut sample = (**sample).clone();
        if let Some(left) = left.take() {
            carry(&mut sample, left);
        }
        match number % every {
            0 => kept.push(Record::Sample(Box::new(sample))),
            _ => left = Some(sample),
        }
        number += 1;
    }
    kept
}

/// Rows and readings of a sample that the next sample lacks: settings of backing devices, limits of cgroups.
fn carry(sample: &mut Sample, left: Sample) {
    sample.bdis = carried(&sample.bdis, &left.bdis);
    sample.cgroups = carried(&sample.cgroups, &left.cgroups);
    sample.cgroup_limits = carried(&sample.cgroup_limits, &left.cgroup_limits);
    sample.cgroup_io = carried(&sample.cgroup_io, &left.cgroup_io);
    sample.zones = carried(&sample.zones, &left.zones);
    for column in 0..HostRow::METRICS.len() {
        if sample.host.get(column).is_none() {
            sample.host.set(column, left.host.get(column));
        }
    }
}

fn carried<R: Row + Clone>(table: &Table<R>, left: &Table<R>) -> Table<R> {
    let mut rows: BTreeMap<EntityId, R> = left.rows().iter().cloned().collect();
    for (id, row) in table.rows() {
        let mut row = row.clone();
        if let Some(before) = rows.get(id) {
            for column in (0..R::METRICS.len()).filter(|column| before.get(*column).is_some()) {
                if row.get(column).is_none() {
                    row.set(column, before.get(column));
                }
            }
        }
        rows.insert(*id, row);
    }
    Table::read(rows.into_iter().collect())
}

/// The workload starts with the first sample that is kept, and ends with the last one. A recorder reads settings and limits now and then
/// only: the first sample that is kept has those of the samples before it.
fn part(records: &[Record], from: usize, to: usize) -> Vec<Record> {
    let is_of = |wanted: fn(&What) -> bool| {
        records.iter().position(|record| matches!(record, Record::Event(event) if wanted(&event.what)))
    };
    let start = is_of(|what| matches!(what, What::WorkloadStarted { .. })).unwrap_or(0);
    let end = is_of(|what| matches!(what, What::WorkloadEnded)).unwrap_or(records.len());
    let samples = |records: &[Record]| records.iter().filter(|record| matches!(record, Record::Sample(_))).count();
    let (before, all) = (samples(&records[..start]), samples(&records[start.min(end)..end]));
    let (first, last) = (before + all * from / 100, before + all * to / 100);
    let mut number = 0;
    let mut started = None;
    let mut left: Option<Sample> = None;
    let mut kept = Vec::new();
    for record in records {
        match record {
            Record::Sample(sample) => {
                let mut sample = (**sample).clone();
                if let Some(left) = left.take() {
                    sample.bdis = carried(&sample.bdis, &left.bdis);
                    sample.cgroup_limits = carried(&sample.cgroup_limits, &left.cgroup_limits);
                }
                if number < first {
                    left = Some(sample);
                } else if number <= last {
                    kept.push(Record::Sample(Box::new(sample)));
                    kept.extend(started.take());
                }
                number += 1;
            }
            Record::Event(event) if matches!(event.what, What::WorkloadStarted { .. }) => {
                started = Some(record.clone())
            }
            Record::Event(_) if number <= first || number > last => {}
            _ if number > last => {}
            _ => kept.push(record.clone()),
        }
    }
    kept
}

/// How the machine differs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Other {
    /// Another seed.
    Seed(u64),
    /// Another kernel.
    Kernel(&'static str),
    /// This percentage of the memory and of its used part.
    Memory(u64),
    /// This percentage of the speed of each device.
    Speed(u64),
    /// This percentage of its length.
    Length(u64),
}

impl Other {
    /// Whether the truth of a machine holds for the varied one whatever the machine is.
    pub(super) fn keeps_the_truth(self) -> bool {
        matches!(self, Other::Seed(_))
    }

    /// The varied machine.
    pub(super) fn of(self, scenario: &Scenario) -> Scenario {
        let mut varied = scenario.clone();
        let percent = |value: u64, percent: u64| value.saturating_mul(percent) / 100;
        match self {
            Other::Seed(seed) => varied.workload.seed = seed,
            Other::Kernel(_) => {}
            Other::Memory(share) => {
                let memory = &mut varied.machine.memory.0.0;
                *memory = percent(*memory, share);
                if let Some(used) = &mut varied.machine.memory_used {
                    used.0.0 = percent(used.0.0, share);
                }
            }
            Other::Speed(share) => {
                varied.machine.devices.values_mut().for_each(|device| faster(device, share));
            }
            Other::Length(share) => {
                if let Some(duration) = &mut varied.workload.duration {
                    duration.0.0 = percent(duration.0.0, share);
                }
            }
        }
        varied
    }
}

fn faster(device: &mut Device, share: u64) {
    let rate = |of: &mut Option<ByteRate>| {
        if let Some(ByteRate(BytesPerSecond(bytes))) = of {
            *bytes = (bytes.saturating_mul(share) / 100).max(1);
        }
    };
    let requests = |of: &mut Option<IoRate>| {
        if let Some(IoRate(RequestsPerSecond(count))) = of {
            *count = (count.saturating_mul(share) / 100).max(1);
        }
    };
    [&mut device.write_bandwidth, &mut device.read_bandwidth, &mut device.bandwidth, &mut device.read_stream]
        .into_iter()
        .for_each(rate);
    [&mut device.write_iops, &mut device.read_iops, &mut device.iops].into_iter().for_each(requests);
    if let Some(cache) = &mut device.write_cache {
        cache.drain.0.0 = (cache.drain.0.0.saturating_mul(share) / 100).max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_record::record::Event;
    use floodline_record::units::Nanos;

    fn samples(records: &[Record]) -> usize {
        records.iter().filter(|record| matches!(record, Record::Sample(_))).count()
    }

    #[test]
    fn a_cut_keeps_what_is_no_sample_and_the_samples_that_it_says() {
        let mut records = floodline_testkit::incidents::dirty_cliff().records();
        let first = records.iter().position(|record| matches!(record, Record::Sample(_))).expect("a sample");
        let what = What::WorkloadStarted { scenario: "s".into(), variant: "v".into() };
        records.insert(first + 1, Record::Event(Event { at: Nanos(1), what }));
        let all = samples(&records);
        let thin = Cut::Thinned(5).of(&records);
        assert_eq!((samples(&thin), records.len() - thin.len()), (all.div_ceil(5), all - all.div_ceil(5)));
        let half = Cut::Part(50, 100).of(&records);
        assert_eq!(samples(&half), all - 1 - (all - 1) / 2);
        let start = half.iter().position(|record| matches!(record, Record::Event(_))).expect("a start");
        assert!(matches!(half[start - 1], Record::Sample(_)) && samples(&half[..start]) == 1);
        let traced = Record::Event(Event { at: Nanos(1), what: What::TraceStarted { parts: Vec::new() } });
        let with = [records.clone(), vec![traced]].concat();
        assert_eq!(Cut::Untraced.of(&with), records);
    }
}
