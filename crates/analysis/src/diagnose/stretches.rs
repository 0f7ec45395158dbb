// SPDX-License-Identifier: MIT OR Apache-2.0
//! Diagnoses recordings of any length stretch by stretch: a stall of ten seconds is lost in the averages of a day, and
//! a day's samples do not fit into memory. Reports the worst stretch, its position, and the findings of the others. A
//! recording no longer than one stretch is diagnosed as a whole. Of a recorded run only the workload is diagnosed: its
//! setup and tear-down cause no findings, as in [`Run::of_workload`](crate::run::Run::of_workload).

use super::diagnose;
use super::holes::observation;
use super::unmount::wait::UMOUNT;
use crate::report::{GapLine, OtherStretches, Report, Severity, Stretch};
use floodline_record::gap::Source;
use floodline_record::holes::Holes;
use floodline_record::record::{Event, Record, Sink, What};
use floodline_record::sample::{Sample, SampleTime};
use floodline_record::units::Nanos;
use floodline_record::window::Window;
use std::cmp::Reverse;
use std::convert::Infallible;

/// Length of a stretch, seconds: many cycles of expiry, and few enough samples to keep.
const STRETCH_S: f64 = 600.0;
/// Samples after which a stretch ends, however short its time.
const SAMPLES_MAX: u64 = 20_000;
/// Time between the last sample before a workload and its start from which the diagnosis begins with the first sample after the start: so
/// much of the setup would be judged as the workload.
const SETUP: Nanos = Nanos(1_100_000_000);

/// A stream of records being diagnosed.
#[derive(Debug)]
pub struct Stretches {
    only: Vec<&'static str>,
    window: Window,
    first_at: Option<SampleTime>,
    /// Samples of the stretches that have ended. The sample shared by two stretches counts once.
    samples: u64,
    ended: u64,
    /// Whether `window` begins with the last sample of another stretch.
    is_continued: bool,
    /// Holes in the whole recording.
    holes: Holes,
    worst: Option<Worst>,
    found: Vec<Found>,
    keeps_whole: bool,
    /// The ended stretches combined, and the sample that the last of them shares with `window`.
    whole: Option<Box<(Window, Sample)>>,
    phase: Phase,
}

/// Position in the recording of a run. A recording of a host stays in its first phase.
#[derive(Debug)]
enum Phase {
    /// No workload has started. Holds the last sample: counters of the workload grow from it.
    Before(Option<Box<Sample>>),
    /// The workload started long after the last sample: its diagnosis begins with the next one, or with the last one if the workload ends
    /// before the next. Holds the last sample and the number of events before the workload.
    Starting(Box<Sample>, usize),
    Workload,
    After,
}

/// The worst stretch so far.
#[derive(Debug)]
struct Worst {
    number: u64,
    from: SampleTime,
    to: SampleTime,
    report: Report,
}

/// A finding of some stretch that is at least a warning.
#[derive(Debug)]
struct Found {
    number: u64,
    from: SampleTime,
    rule: &'static str,
    severity: Severity,
}

impl Stretches {
    /// Runs all rules, or only the named ones if there are any.
    pub fn new(only: Vec<&'static str>) -> Stretches {
        Stretches {
            only,
            window: Window::default(),
            first_at: None,
            samples: 0,
            ended: 0,
            is_continued: false,
            holes: Holes::default(),
            worst: None,
            found: Vec::new(),
            keeps_whole: false,
            whole: None,
            phase: Phase::Before(None),
        }
    }

    /// Runs all rules, and keeps the whole recording for [`Stretches::finish_whole`]. Each sample is folded once.
    pub fn with_whole() -> Stretches {
        Stretches { keeps_whole: true, ..Stretches::new(Vec::new()) }
    }

    /// Samples taken so far.
    pub fn samples(&self) -> u64 {
        let shared = u64::from(self.is_continued);
        self.samples.saturating_add(self.window.samples).saturating_sub(shared)
    }

    /// Returns the report of the worst stretch.
    pub fn finish(mut self) -> Report {
        self.conclude()
    }

    /// Returns the report of the worst stretch and the window of the whole recording, for stretches made by
    /// [`Stretches::with_whole`].
    pub fn finish_whole(mut self) -> (Report, Window) {
        let report = self.conclude();
        let Some(whole) = self.whole else { return (report, self.window) };
        let (mut whole, shared) = *whole;
        whole.append(&self.window, &shared);
        whole.holes = self.holes;
        (report, whole)
    }

    /// Appends the stretch that ends with a sample to those before it.
    fn keep_stretch(&mut self, sample: &Sample) {
        match &mut self.whole {
            Some(kept) => {
                let (whole, shared) = &mut **kept;
                whole.append(&self.window, shared);
                shared.clone_from(sample);
            }
            None => self.whole = Some(Box::new((self.window.clone(), sample.clone()))),
        }
    }

    fn conclude(&mut self) -> Report {
        let Ok(()) = self.begin_without_sample();
        let of_s = match (self.first_at, self.window.last_at) {
            (Some(first), Some(last)) => seconds_between(first, last),
            _ => 0.0,
        };
        // A stretch that holds only the sample it shares with the previous one adds nothing new.
        let is_judged = self.keeps_whole && matches!(self.phase, Phase::After);
        if !is_judged && (self.ended == 0 || self.window.samples > 1) {
            self.end_stretch(false);
        }
        let Some(mut worst) = self.worst.take() else { return diagnose(&self.window, self.only()) };
        // What a damaged file lost is known at its end.
        let lost = self.window.gaps.iter().filter(|gap| gap.source == Source::Recording).map(GapLine::from);
        let lost: Vec<GapLine> = lost.filter(|line| !worst.report.gaps.contains(line)).collect();
        worst.report.gaps.extend(lost);
        if self.ended < 2 {
            return worst.report;
        }
        let mut others: Vec<OtherStretches> = Vec::new();
        for found in self.found.iter().filter(|found| found.number != worst.number) {
            match others.iter_mut().find(|other| other.rule == found.rule) {
                Some(other) => {
                    other.stretches += 1;
                    other.severity = other.severity.max(found.severity);
                }
                None => others.push(OtherStretches {
                    rule: found.rule,
                    severity: found.severity,
                    stretches: 1,
                    first_wall_ns: found.from.wall.0,
                }),
            }
        }
        others.sort_by_key(|other| Reverse((other.severity, other.stretches)));
        let stretch = Stretch {
            from_wall_ns: worst.from.wall.0,
            to_wall_ns: worst.to.wall.0,
            of_s,
            of_stretches: self.ended,
            others,
        };
        Report { stretch: Some(stretch), observation: observation(&self.holes), ..worst.report }
    }

    fn only(&self) -> Option<&[&str]> {
        (!self.only.is_empty()).then_some(self.only.as_slice())
    }

    /// Starts the diagnosis with the workload, that is with the last sample before it, or with the next one.
    fn begin_workload(&mut self, at: Nanos) -> Result<(), Infallible> {
        let Phase::Before(before) = std::mem::replace(&mut self.phase, Phase::Workload) else { return Ok(()) };
        let Some(before) = before else { return Ok(()) };
        if at.0.saturating_sub(before.time.monotonic.0) > SETUP.0 {
            self.phase = Phase::Starting(before, self.window.events.len());
            return Ok(());
        }
        self.begin_with(before)
    }

    /// Starts the diagnosis of a workload that has no sample yet with the last one before it: otherwise none of its growth would be judged.
    fn begin_without_sample(&mut self) -> Result<(), Infallible> {
        if !matches!(self.phase, Phase::Starting(..)) {
            return Ok(());
        }
        match std::mem::replace(&mut self.phase, Phase::Workload) {
            Phase::Starting(before, events) => self.begin_between(before, events),
            _ => Ok(()),
        }
    }

    /// Starts the diagnosis with a sample, and keeps the events from this number on.
    fn begin_between(&mut self, first: Box<Sample>, events: usize) -> Result<(), Infallible> {
        let of_workload = self.window.events.split_off(events.min(self.window.events.len()));
        self.begin_with(first)?;
        self.window.events = of_workload;
        Ok(())
    }

    /// Starts the diagnosis with a sample. What was seen before stays in the window of the whole recording only.
    fn begin_with(&mut self, before: Box<Sample>) -> Result<(), Infallible> {
        if self.keeps_whole {
            self.keep_stretch(&before);
        }
        self.first_at = Some(before.time);
        if !self.keeps_whole {
            self.holes = Holes::default();
            self.holes.record(&Record::Sample(before.clone()));
        }
        (self.samples, self.ended, self.is_continued, self.worst) = (0, 0, false, None);
        self.found.clear();
        self.window.begin_again();
        self.window.record(&Record::Sample(before))
    }

    fn end_stretch(&mut self, goes_on: bool) {
        let (Some(from), Some(to)) = (self.window.first_at, self.window.last_at) else { return };
        self.window.goes_on = goes_on;
        let report = diagnose(&self.window, self.only());
        self.window.goes_on = false;
        let number = self.ended;
        self.ended += 1;
        let mut rules: Vec<(&'static str, Severity)> = Vec::new();
        for finding in report.findings.iter().filter(|finding| finding.severity >= Severity::Warning) {
            // Sorted by severity: the first of a rule is its worst.
            if !rules.iter().any(|(rule, _)| *rule == finding.rule) {
                rules.push((finding.rule, finding.severity));
            }
        }
        self.found.extend(rules.into_iter().map(|(rule, severity)| Found { number, from, rule, severity }));
        if self.worst.as_ref().is_none_or(|worst| badness(&report) > badness(&worst.report)) {
            self.worst = Some(Worst { number, from, to, report });
        }
    }
}

/// Whether no rule reads this record. That holds for each stall that a workload's task measured, except stalls in an unmount. The model and
/// the lab record a hundred thousand of them in a minute.
fn is_unread(record: &Record) -> bool {
    matches!(record, Record::Event(Event { what: What::TaskStall { operation, .. }, .. }) if operation != UMOUNT)
}

/// Order of reports by how much they deserve attention: their worst severity, the findings of that severity, and the
/// rules that could be checked.
fn badness(report: &Report) -> (Option<Severity>, usize, Reverse<usize>) {
    let worst = report.findings.iter().map(|finding| finding.severity).max();
    let as_bad = report.findings.iter().filter(|finding| Some(finding.severity) == worst).count();
    (worst, as_bad, Reverse(report.not_checked.len()))
}

fn seconds_between(first: SampleTime, last: SampleTime) -> f64 {
    Nanos(last.monotonic.0.saturating_sub(first.monotonic.0)).as_secs_f64()
}

impl Sink for Stretches {
    type Error = Infallible;

    fn record(&mut self, record: &Record) -> Result<(), Infallible> {
        let is_over = matches!(self.phase, Phase::After);
        // A process that goes to another cgroup at the end was in the one before.
        if is_over && !self.keeps_whole && matches!(record, Record::Sample(_) | Record::Entity(..)) {
            return Ok(());
        }
        match record {
            Record::Event(Event { at, what: What::WorkloadStarted { .. } }) => self.begin_workload(*at)?,
            Record::Event(Event { what: What::WorkloadEnded, .. }) => self.begin_without_sample()?,
            Record::Sample(sample) => {
                if let Phase::Before(before) = &mut self.phase {
                    match before {
                        Some(before) => before.clone_from(sample),
                        None => *before = Some(sample.clone()),
                    }
                }
            }
            _ => {}
        }
        if self.keeps_whole || !is_unread(record) {
            self.window.record(record)?;
        }
        self.holes.record(record);
        // A workload without an interval of its own cannot be judged: the rest of the recording then counts.
        let is_end =
            matches!(record, Record::Event(Event { what: What::WorkloadEnded, .. })) && self.window.samples > 1;
        if is_end && !is_over {
            // The window of the whole recording goes on to its end.
            if self.keeps_whole {
                self.end_stretch(false);
            }
            self.phase = Phase::After;
        }
        let Record::Sample(sample) = record else { return Ok(()) };
        if let Some(whole) = &mut self.whole {
            whole.0.push_kept(sample);
        }
        if let Phase::Starting(_, events) = self.phase {
            self.phase = Phase::Workload;
            return self.begin_between(sample.clone(), events);
        }
        self.first_at.get_or_insert(sample.time);
        if self.window.seconds() < STRETCH_S && self.window.samples < SAMPLES_MAX {
            return Ok(());
        }
        let shared = u64::from(self.is_continued);
        self.samples = self.samples.saturating_add(self.window.samples).saturating_sub(shared);
        if !is_over {
            self.end_stretch(true);
        }
        if self.keeps_whole {
            self.keep_stretch(sample);
        }
        self.window.begin_stretch();
        self.is_continued = true;
        // The next stretch counts its growth from this record on.
        self.window.record(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_record::record::TaskName;
    use floodline_record::units::{Bytes, Count};
    use floodline_testkit::Fixture;
    use floodline_testkit::incidents::dirty_cliff;

    #[test]
    fn stalls_that_no_rule_reads_are_kept_of_a_whole_recording_only() {
        let stall = |operation: &str| {
            let task = TaskName { task: "builds".into(), copy: 0 };
            let what = What::TaskStall { task, operation: operation.into(), lasted: Nanos::SECOND };
            Record::Event(Event { at: Nanos(1), what })
        };
        let mut records = Fixture::healthy().records();
        records.extend(["write", "umount", "fsync"].map(stall));
        let kept = |mut stretches: Stretches| -> Vec<String> {
            records.iter().for_each(|record| {
                let Ok(()) = stretches.record(record);
            });
            let operation = |event: &Event| match &event.what {
                What::TaskStall { operation, .. } => Some(operation.to_string()),
                _ => None,
            };
            stretches.window.events.iter().filter_map(operation).collect()
        };
        assert_eq!(kept(Stretches::new(Vec::new())), ["umount"]);
        assert_eq!(kept(Stretches::with_whole()), ["write", "umount", "fsync"]);
    }

    fn fold(records: &[Record]) -> Stretches {
        let mut stretches = Stretches::new(Vec::new());
        for record in records {
            let Ok(()) = stretches.record(record);
        }
        stretches
    }

    /// The same records, shifted by this many seconds.
    fn later(records: Vec<Record>, seconds: u64) -> Vec<Record> {
        let nanos = seconds * 1_000_000_000;
        records
            .into_iter()
            .map(|record| match record {
                Record::Sample(mut sample) => {
                    sample.time.monotonic = Nanos(sample.time.monotonic.0 + nanos);
                    sample.time.wall = Nanos(sample.time.wall.0 + nanos);
                    Record::Sample(sample)
                }
                record => record,
            })
            .collect()
    }

    #[test]
    fn a_short_recording_is_diagnosed_as_a_whole() {
        for fixture in [Fixture::healthy(), dirty_cliff(), Fixture::healthy().one_look()] {
            let records = fixture.records();
            let stretches = fold(&records);
            assert_eq!(stretches.samples(), Window::from_records(&records).samples);
            assert_eq!(stretches.finish(), diagnose(&Window::from_records(&records), None));
        }
        assert_eq!(fold(&[]).finish(), diagnose(&Window::default(), None));
    }

    #[test]
    fn the_worst_stretch_of_a_long_recording_is_reported() {
        let quiet = Fixture::healthy().seconds(1200).records();
        let mut records = quiet.clone();
        records.extend(later(dirty_cliff().records(), 1300));
        let alone = diagnose(&dirty_cliff().window(), None);
        let stretches = fold(&records);
        assert_eq!(stretches.samples(), Window::from_records(&records).samples);
        let report = stretches.finish();
        let first = |report: &Report| report.findings.first().map(|finding| (finding.rule, finding.severity));
        assert_eq!(first(&report), first(&alone), "{report:#?}");
        let stretch = report.stretch.unwrap();
        assert_eq!((stretch.of_stretches, stretch.others.len()), (3, 0), "{stretch:?}");
        assert_eq!(fold(&quiet).finish().findings, []);
    }

    #[test]
    fn the_window_of_the_whole_recording_is_kept() {
        for seconds in [5, 599, 600, 601, 1300] {
            let records = Fixture::healthy().seconds(seconds).records();
            let mut stretches = Stretches::with_whole();
            for record in &records {
                let Ok(()) = stretches.record(record);
            }
            let (report, mut window) = stretches.finish_whole();
            // The rules have made it.
            window.lookup.take();
            let told = |window: &Window| format!("{window:?}").replace("is_settled: true", "is_settled: false");
            assert_eq!(report, fold(&records).finish(), "{seconds}");
            assert_eq!(told(&window), told(&Window::from_records(&records)), "{seconds}");
        }
    }

    #[test]
    fn only_the_workload_of_a_run_is_diagnosed() {
        use crate::run::Run;
        let event = |what| Record::Event(Event { at: Nanos(1), what });
        let started = || event(What::WorkloadStarted { scenario: "s".into(), variant: "v".into() });
        let cliff = dirty_cliff().records();
        let quiet = || Fixture::healthy().records().into_iter().filter(|record| matches!(record, Record::Sample(_)));
        let rules = |report: &Report| report.findings.iter().map(|finding| finding.rule).collect::<Vec<_>>();
        assert!(rules(&fold(&cliff).finish()).contains(&"dirty-cliff"));

        // A cliff in the setup or in the tear-down is none of the workload.
        let mut setup = cliff.clone();
        setup.push(started());
        setup.extend(later(quiet().collect(), 100));
        let mut teardown: Vec<Record> =
            cliff.iter().filter(|record| !matches!(record, Record::Sample(_))).cloned().collect();
        teardown.push(started());
        teardown.extend(quiet());
        teardown.push(event(What::WorkloadEnded));
        let samples = cliff.iter().filter(|record| matches!(record, Record::Sample(_))).cloned();
        teardown.extend(later(samples.collect(), 100));
        for records in [setup, teardown] {
            let stretches = fold(&records);
            let mut run = Run::default().of_workload();
            for record in &records {
                let Ok(()) = run.record(record);
            }
            assert_eq!(stretches.samples(), run.window.samples);
            let report = stretches.finish();
            assert!(!rules(&report).contains(&"dirty-cliff"), "{:?}", rules(&report));
            assert_eq!(report, run.diagnose());

            let mut whole = Stretches::with_whole();
            for record in &records {
                let Ok(()) = whole.record(record);
            }
            let (judged, window) = whole.finish_whole();
            assert_eq!(judged, report);
            assert_eq!(window.samples, Window::from_records(&records).samples, "the page shows all of it");
        }
    }

    #[test]
    fn a_workload_that_starts_long_after_a_sample_is_judged_from_the_next_one() {
        let samples = Fixture::healthy().every(5.0).seconds(40).records();
        let times: Vec<Nanos> = samples
            .iter()
            .filter_map(|record| match record {
                Record::Sample(sample) => Some(sample.time.monotonic),
                _ => None,
            })
            .collect();
        let with_start = |after_ms: u64| {
            let at = Nanos(times[3].0 + after_ms * 1_000_000);
            let what = What::WorkloadStarted { scenario: "s".into(), variant: "v".into() };
            let is_next =
                |record: &Record| matches!(record, Record::Sample(sample) if sample.time.monotonic > times[3]);
            let mut records = samples.clone();
            let next = records.iter().position(is_next).expect("a sample after the start");
            records.insert(next, Record::Event(Event { at, what }));
            records
        };
        for (after_ms, first) in [(500, times[3]), (3500, times[4])] {
            let records = with_start(after_ms);
            for mut stretches in [Stretches::new(Vec::new()), Stretches::with_whole()] {
                records.iter().for_each(|record| {
                    let Ok(()) = stretches.record(record);
                });
                assert_eq!(stretches.window.first_at.map(|at| at.monotonic), Some(first), "{after_ms}");
                assert_eq!(stretches.window.events.len(), 1, "{after_ms}: the start itself");
                let keeps_whole = stretches.keeps_whole;
                let (_, whole) = stretches.finish_whole();
                let all = Window::from_records(&records);
                if keeps_whole {
                    assert_eq!((whole.samples, whole.events.len()), (all.samples, 1), "{after_ms}");
                }
            }
        }
    }

    #[test]
    fn a_workload_between_two_samples_is_judged_with_its_interval() {
        let samples = Fixture::healthy().every(5.0).seconds(40).records();
        let is_sample = |record: &Record| matches!(record, Record::Sample(_));
        let nth = |nth: usize| (0..samples.len()).filter(|at| is_sample(&samples[*at])).nth(nth).expect("a sample");
        let Record::Sample(before) = &samples[nth(3)] else { panic!("a sample") };
        let event = |after_ms: u64, what| {
            Record::Event(Event { at: Nanos(before.time.monotonic.0 + after_ms * 1_000_000), what })
        };
        let start = event(1500, What::WorkloadStarted { scenario: "s".into(), variant: "v".into() });
        let mut ended = samples.clone();
        ended.splice(nth(4)..nth(4), [start.clone(), event(4000, What::WorkloadEnded)]);
        let mut cut = samples[..nth(4)].to_vec();
        cut.push(start);
        for (records, events) in [(ended, 2), (cut, 1)] {
            for mut stretches in [Stretches::new(Vec::new()), Stretches::with_whole()] {
                records.iter().for_each(|record| {
                    let Ok(()) = stretches.record(record);
                });
                stretches.conclude();
                assert_eq!(stretches.window.first_at, Some(before.time), "{events}");
                assert_eq!(stretches.window.events.len(), events);
            }
        }
    }

    #[test]
    fn a_workload_without_samples_does_not_hide_the_rest() {
        let event = |what| Record::Event(Event { at: Nanos(1), what });
        let mut records = dirty_cliff().records();
        let first = records.iter().position(|record| matches!(record, Record::Sample(_))).unwrap();
        records.insert(first, event(What::WorkloadEnded));
        records.insert(first, event(What::WorkloadStarted { scenario: "s".into(), variant: "v".into() }));
        let report = fold(&records).finish();
        assert_eq!(report.findings, fold(&dirty_cliff().records()).finish().findings);
    }

    #[test]
    fn a_disk_that_stands_still_at_the_end_of_a_stretch_is_not_said_to_hang_now() {
        let work = |t: f64| t - (t - 595.0).clamp(0.0, 10.0);
        let host = Fixture::healthy().seconds(620).disk("sda", move |t, row| {
            row.writes = Some(Count((200.0 * work(t)) as u64));
            row.written = Some(Bytes((1e6 * work(t)) as u64));
            (row.in_flight, row.flushes) = (Some(Count(6)), Some(Count((20.0 * work(t)) as u64)));
            (row.io_time, row.weighted_io_time) = (Some(Nanos((9e8 * t) as u64)), Some(Nanos((5e9 * t) as u64)));
        });
        let report = fold(&host.records()).finish();
        assert!(report.stretch.is_some());
        let finding = report.findings.iter().find(|finding| finding.rule == "stalled-device").expect("a finding");
        let said = [&finding.summary, &finding.brief.because, &finding.brief.expect, &finding.cause];
        assert!(said[0].contains("for 5.00 s and had not gone on by the last sample of this stretch"), "{}", said[0]);
        assert!(said.iter().all(|text| !text.contains("iostat -x 1") && !text.contains("holds its")), "{said:?}");
    }

    #[test]
    fn what_other_stretches_found_is_counted() {
        let mut records = dirty_cliff().records();
        for turn in 1..3 {
            records.extend(later(dirty_cliff().records(), turn * 700));
        }
        let report = fold(&records).finish();
        let cliff: Vec<(u64, Severity)> = report
            .stretch
            .iter()
            .flat_map(|stretch| &stretch.others)
            .filter(|other| other.rule == "dirty-cliff")
            .map(|other| (other.stretches, other.severity))
            .collect();
        assert_eq!(cliff.len(), 1, "{:?}", report.stretch);
        assert!(cliff[0].0 >= 1 && cliff[0].1 == Severity::Critical, "{:?}", report.stretch);
    }
}
