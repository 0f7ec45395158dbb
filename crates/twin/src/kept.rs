// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which part of a recording is simulated. `doctor`, `predict` and `advise` share this rule, so that their figures are of
//! one stretch: the one that the diagnosis reports. Of a recording with many processes and cgroups only the time around
//! the first symptom counts, so that a question is answered while a person waits.

use crate::Recorded;
use floodline_analysis::report::Report;
use floodline_record::human;
use floodline_record::record::{Event, Record, Sink, What};
use floodline_record::sample::{Sample, SampleTime};

/// Longest recording that is simulated, seconds: one stretch of a diagnosis, and the sample that ends it.
const SECONDS_MAX: f64 = 660.0;
/// Most processes, cgroups and devices of a recording whose plan `doctor` tries.
const ENTITIES_MAX: usize = 20_000;
/// Entities times seconds that are simulated.
const ROOM: f64 = 30_000.0;
/// Shortest and longest part, seconds.
const SHORTEST: f64 = 20.0;
const LONGEST: f64 = 600.0;
/// How long before the first symptom a part begins, nanoseconds.
const BEFORE: u64 = 5_000_000_000;

/// Seconds that are simulated of a recording with that number of entities.
fn simulated_seconds(entities: usize) -> f64 {
    (ROOM / entities.max(1) as f64).clamp(SHORTEST, LONGEST)
}

/// A recording on its way to a twin: the part of it that is simulated.
#[derive(Debug)]
pub struct Kept {
    /// `None` once it is too large.
    recorded: Option<Recorded>,
    /// The reported stretch of a long recording, on the wall clock.
    stretch: Option<(u64, u64)>,
    /// When the first symptom was seen, where that is known.
    symptom: Option<u64>,
    /// Length of what was diagnosed, where that is known.
    seconds: Option<f64>,
    /// Wall clock of the first sample that is not outside the stretch.
    first: Option<u64>,
    /// The last sample that was left out: counters of a workload grow from it.
    before: Option<Box<Sample>>,
    is_part: bool,
    /// Whether a person waits for no more than two seconds: then a large recording is not kept.
    is_quick: bool,
}

/// The part of a recording that is simulated.
#[derive(Debug)]
pub struct Part {
    /// The part, folded.
    pub recorded: Recorded,
    /// Which part it is, in a sentence; `None` where it is all of the recording.
    pub note: Option<String>,
}

impl Kept {
    /// Keeps what is observed on a host.
    pub fn live() -> Kept {
        Kept {
            recorded: Some(Recorded::default()),
            stretch: None,
            symptom: None,
            seconds: None,
            first: None,
            before: None,
            is_part: false,
            is_quick: true,
        }
    }

    /// Keeps the part of a recording that its report is about.
    pub fn of(report: &Report) -> Kept {
        let stretch = report.stretch.as_ref().map(|stretch| (stretch.from_wall_ns, stretch.to_wall_ns));
        let seconds = match stretch {
            Some((from, to)) => to.saturating_sub(from) as f64 / 1e9,
            None => report.window_s,
        };
        Kept { stretch, symptom: report.symptom.waiting_from_wall_ns, seconds: Some(seconds), ..Kept::live() }
    }

    /// Keeps a recording of a host of any size.
    #[must_use]
    pub fn of_any_size(self) -> Kept {
        Kept { is_quick: false, ..self }
    }

    /// Whether the recording is still small enough. After it became too large, further records change nothing.
    pub fn is_kept(&self) -> bool {
        self.recorded.is_some()
    }

    /// Whether a sample belongs to the part.
    fn takes(&mut self, sample: &Sample) -> bool {
        let Some(recorded) = &mut self.recorded else { return false };
        let at = sample.time.wall.0;
        if self.stretch.is_some_and(|(from, to)| at < from || at > to) {
            return false;
        }
        let first = *self.first.get_or_insert(at);
        let longest = simulated_seconds(recorded.window.entities.len());
        // The part begins before the first symptom, and early enough for its whole length.
        let last_begin = self.seconds.map(|seconds| first.saturating_add(((seconds - longest).max(0.0) * 1e9) as u64));
        let begin = self.symptom.zip(last_begin).map(|(at, last)| at.saturating_sub(BEFORE).min(last));
        let is_early = begin.is_some_and(|begin| at < begin);
        // The first samples name few entities, so they seemed to belong to a small recording.
        if is_early && recorded.window.samples > 0 {
            recorded.begin_later();
        }
        let is_outside = is_early || recorded.window.seconds() >= longest;
        self.is_part |= is_outside;
        !is_outside
    }

    /// Adds a record.
    pub fn record(&mut self, record: &Record) {
        match record {
            Record::Sample(sample) if !self.takes(sample) => {
                match &mut self.before {
                    Some(before) => before.clone_from(sample),
                    None => self.before = Some(sample.clone()),
                }
                return;
            }
            Record::Event(Event { what: What::WorkloadStarted { .. }, .. }) => {
                // What was before it is no part of the recording.
                (self.first, self.is_part) = (None, false);
                if let (Some(before), Some(recorded)) = (self.before.take(), &mut self.recorded) {
                    let Ok(()) = recorded.record(&Record::Sample(before));
                }
            }
            // A program's totals are not valid for a part of the recording.
            Record::Event(Event { what: What::TaskOperations { .. }, .. })
                if self.is_part || self.stretch.is_some() =>
            {
                return;
            }
            Record::Event(Event { what, at }) if self.is_part && !matches!(what, What::WorkloadEnded) => {
                let window = self.recorded.as_ref().map(|recorded| &recorded.window);
                let ends = window.and_then(|window| window.first_at.zip(window.last_at));
                let is_inside =
                    |(first, last): (SampleTime, SampleTime)| (first.monotonic..=last.monotonic).contains(at);
                if !ends.is_some_and(is_inside) {
                    let is_before = ends.is_none_or(|(first, _)| *at < first.monotonic);
                    if let Some(recorded) = self.recorded.as_mut().filter(|_| is_before) {
                        recorded.forget(what);
                    }
                    return;
                }
            }
            _ => {}
        }
        let Some(recorded) = &mut self.recorded else { return };
        let Ok(()) = recorded.record(record);
        let window = &recorded.window;
        if self.is_quick && (window.seconds() > SECONDS_MAX || window.entities.len() > ENTITIES_MAX) {
            self.recorded = None;
        }
    }

    /// The part, unless it became too large.
    pub fn finish(self) -> Option<Part> {
        let mut recorded = self.recorded?;
        recorded.ends();
        let length = human::seconds(recorded.window.seconds().round());
        let note = match (self.is_part, self.stretch, self.symptom) {
            (true, _, Some(_)) => Some(format!("Simulated: the {length} around the first symptom.")),
            (true, _, None) => Some(format!("Simulated: the first {length}.")),
            (false, Some(_), _) => Some(format!("Simulated: the {length} with the worst findings.")),
            (false, None, _) => None,
        };
        Some(Part { recorded, note })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_analysis::diagnose::stretches::Stretches;
    use floodline_record::id::{Entity, EntityId, Hierarchy};
    use floodline_testkit::Fixture;
    use floodline_testkit::incidents::dirty_cliff;

    fn report(records: &[Record]) -> Report {
        let mut stretches = Stretches::new(Vec::new());
        for record in records {
            let Ok(()) = stretches.record(record);
        }
        stretches.finish()
    }

    fn part(records: &[Record], mut kept: Kept) -> Part {
        records.iter().for_each(|record| kept.record(record));
        kept.finish().expect("it is small enough")
    }

    /// The records of a host with this many more cgroups.
    fn crowded(records: Vec<Record>, cgroups: u32) -> Vec<Record> {
        let made = |number: u32| {
            let path = format!("/c{number}").as_str().into();
            Record::Entity(EntityId(1_000_000 + number), Entity::Cgroup { path, hierarchy: Hierarchy::V2, ino: None })
        };
        let (mut facts, rest): (Vec<Record>, Vec<Record>) =
            records.into_iter().partition(|record| matches!(record, Record::Facts(_)));
        facts.extend((0..cgroups).map(made));
        facts.extend(rest);
        facts
    }

    fn is_made(record: &Record) -> bool {
        matches!(record, Record::Entity(EntityId(1_000_000..), Entity::Cgroup { .. }))
    }

    #[test]
    fn all_of_a_small_recording_is_simulated() {
        let records = dirty_cliff().records();
        let part = part(&records, Kept::of(&report(&records)));
        assert_eq!(part.note, None);
        assert_eq!(part.recorded.window.samples, Recorded::from_records(&records).window.samples);
    }

    #[test]
    fn of_a_host_with_many_cgroups_the_time_around_the_first_symptom_is_simulated() {
        let records = crowded(Fixture::healthy().seconds(120).records(), 3000);
        let told = report(&records);
        let whole = Recorded::from_records(&records).window;
        let end = whole.last_at.unwrap().wall.0;
        let symptom = |at| Kept { symptom: Some(at), ..Kept::of(&told) };
        let late = part(&records, symptom(end - 60_000_000_000));
        let first = late.recorded.window.first_at.unwrap().wall.0;
        assert!((19.0..=22.0).contains(&late.recorded.window.seconds()), "{}", late.recorded.window.seconds());
        assert!((64_000_000_000..=66_000_000_000).contains(&(end - first)), "{}", end - first);
        assert!(late.note.is_some_and(|note| note.ends_with("around the first symptom.")));
        // A recorder names an entity with its first sample, so the first one or two have few.
        let mut growing = records.clone();
        let made: Vec<Record> = growing.extract_if(.., |record| is_made(record)).collect();
        let second = growing.iter().enumerate().filter(|(_, record)| matches!(record, Record::Sample(_))).nth(2);
        let second = second.expect("more samples").0;
        growing.splice(second..second, made);
        let grown = part(&growing, symptom(end - 60_000_000_000));
        assert_eq!(grown.recorded.window.first_at, late.recorded.window.first_at);
        assert_eq!(grown.recorded.window.samples, late.recorded.window.samples);
        assert_eq!(grown.recorded.processes, late.recorded.processes);
        // A part that begins at the end is as long.
        let last = part(&records, symptom(end));
        assert!((19.0..=22.0).contains(&last.recorded.window.seconds()));
    }

    #[test]
    fn of_a_long_recording_the_reported_stretch_is_simulated() {
        let records = Fixture::healthy().seconds(1500).records();
        let told = report(&records);
        let stretch = told.stretch.clone().expect("it has several stretches");
        let part = part(&records, Kept::of(&told).of_any_size());
        let window = &part.recorded.window;
        assert_eq!(window.first_at.unwrap().wall.0, stretch.from_wall_ns);
        assert_eq!(window.last_at.unwrap().wall.0, stretch.to_wall_ns);
        assert!(part.note.is_some_and(|note| note.contains("with the worst findings")));
    }
}
