// SPDX-License-Identifier: MIT OR Apache-2.0
//! The records that `top` walks through: a whole recording, thinned where it would take too much memory, or the last
//! samples of a live host. Makes the windows of a place in it; reads and draws nothing.

use floodline_analysis::diagnose::diagnose;
use floodline_analysis::report::Report;
use floodline_analysis::tried::{arithmetic_only, withhold};
use floodline_record::id::EntityId;
use floodline_record::levels::{HELD, Levels};
use floodline_record::record::{Record, Sink};
use floodline_record::sample::{CgroupLimitsRow, Sample, Table};
use floodline_record::units::Nanos;
use floodline_record::window::Window;
use floodline_view::top::{Look, Position};
use std::collections::{BTreeMap, VecDeque};

/// Samples of a live host that are kept.
const LIVE_SAMPLES: usize = 600;
/// Rows of samples that are kept of a recording: some hundred MiB.
const ROWS_MAX: usize = 500_000;
/// Samples that a diagnosis looks at.
const MINUTE: usize = 60;
/// A window is folded on until it has this number of samples, then made anew from the last ones.
const FOLDED_MAX: u64 = 90;
/// While a host is watched, it is diagnosed once per this number of samples.
const DIAGNOSED_EACH: u64 = 3;

/// Marks the change as untried: a trial on a twin takes seconds, so `top` makes none. Unless the change follows from
/// arithmetic, it is then a candidate, as it is for `doctor` without a twin.
fn untried(mut report: Report) -> Report {
    if let Some(plan) = &mut report.plan {
        arithmetic_only(plan, "top makes no trial on a twin, but floodline doctor does");
    }
    withhold(&mut report);
    report
}

/// A sample, and what happened between the one before and it.
struct Entry {
    events: Vec<Record>,
    sample: Box<Sample>,
}

/// Samples in order of time.
pub(super) struct History {
    is_live: bool,
    entries: VecDeque<Entry>,
    /// Events since the last sample.
    events: Vec<Record>,
    /// What the machine is and what ids stand for, all that was ever read.
    base: Window,
    /// Limits of cgroups in order of time. A sample has those of few cgroups, and each holds until it is read again.
    limits: Vec<(Nanos, EntityId, CgroupLimitsRow)>,
    rows: usize,
    /// One sample of this number is kept.
    thinned: usize,
    /// Samples that were read.
    seen: usize,
    /// Rows of these.
    read: usize,
    /// The window of the place that was looked at last, and that place counted from the first sample ever read.
    minute: Option<(usize, Window)>,
    /// Samples that were dropped at the front.
    dropped: usize,
    report: Option<(usize, Report)>,
    /// Whether the report is of the whole recording, and stays.
    is_judged: bool,
    /// The first sample ever read, nanoseconds of the monotonic clock.
    first: u64,
}

impl History {
    /// An empty one.
    pub(super) fn new(is_live: bool) -> History {
        History {
            is_live,
            entries: VecDeque::new(),
            events: Vec::new(),
            base: Window::default(),
            limits: Vec::new(),
            rows: 0,
            thinned: 1,
            seen: 0,
            read: 0,
            minute: None,
            dropped: 0,
            report: None,
            is_judged: false,
            first: 0,
        }
    }

    /// Shows this report, of the whole recording, at every place.
    pub(super) fn judge(&mut self, report: Report) {
        (self.report, self.is_judged) = (Some((0, untried(report))), true);
    }

    /// Takes the next record.
    pub(super) fn take(&mut self, record: Record) {
        match record {
            Record::Sample(sample) => self.sample(sample),
            Record::Event(_) => {
                let Ok(()) = self.base.record(&record);
                // The window keeps what a trace is made of, and not each event.
                self.base.events.clear();
                self.events.push(record);
            }
            record => {
                let Ok(()) = self.base.record(&record);
                if let Some((_, window)) = &mut self.minute {
                    let Ok(()) = window.record(&record);
                }
            }
        }
    }

    fn sample(&mut self, sample: Box<Sample>) {
        if self.seen == 0 {
            self.first = sample.time.monotonic.0;
        }
        self.seen += 1;
        self.read += rows(&sample);
        self.keep_limits(&sample);
        // Events of a sample that is left out belong to the next one that is kept.
        if !(self.seen - 1).is_multiple_of(self.thinned) {
            return;
        }
        self.rows += rows(&sample);
        self.entries.push_back(Entry { events: std::mem::take(&mut self.events), sample });
        if self.is_live && self.entries.len() > LIVE_SAMPLES {
            if let Some(entry) = self.entries.pop_front() {
                self.rows -= rows(&entry.sample);
                self.dropped += 1;
            }
        } else if !self.is_live && self.rows > ROWS_MAX && self.entries.len() > 2 {
            self.thin();
        }
    }

    /// Keeps the cgroup limits that changed with a sample, even if the sample itself is dropped.
    fn keep_limits(&mut self, sample: &Sample) {
        for (id, row) in sample.cgroup_limits.rows() {
            let known = self.base.cgroup_limits.get(id).map(|span| &span.last);
            if known != Some(row) {
                self.limits.push((sample.time.monotonic, *id, row.clone()));
            }
        }
        if !sample.cgroup_limits.rows().is_empty() {
            let limits = Sample { time: sample.time, cgroup_limits: sample.cgroup_limits.clone(), ..Sample::default() };
            let Ok(()) = self.base.record(&Record::Sample(Box::new(limits)));
            self.base.begin_again();
        }
        // Only a stream that is not of a host changes limits that often: its oldest go.
        if self.limits.len() > ROWS_MAX {
            self.limits.drain(..ROWS_MAX / 2);
        }
    }

    /// Drops each second sample. Its events go to the one behind it.
    fn thin(&mut self) {
        let mut kept = VecDeque::new();
        let mut carried: Vec<Record> = Vec::new();
        for (number, mut entry) in std::mem::take(&mut self.entries).into_iter().enumerate() {
            carried.append(&mut entry.events);
            if number.is_multiple_of(2) {
                kept.push_back(Entry { events: std::mem::take(&mut carried), sample: entry.sample });
            }
        }
        carried.append(&mut self.events);
        self.events = carried;
        self.entries = kept;
        self.thinned *= 2;
        self.rows = self.entries.iter().map(|entry| rows(&entry.sample)).sum();
        self.minute = None;
    }

    /// Rows of all samples that were read.
    pub(super) fn rows_read(&self) -> usize {
        self.read
    }

    /// Samples there are.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The last sample that is not later than a second, counted from the first sample ever read.
    pub(super) fn at_second(&self, second: f64) -> usize {
        let wanted = self.first.saturating_add((second.max(0.0) * 1e9) as u64);
        self.entries.partition_point(|entry| entry.sample.time.monotonic.0 <= wanted).saturating_sub(1)
    }

    /// The last sample that is not later than a moment on the wall clock, nanoseconds since 1970 UTC.
    pub(super) fn at_wall(&self, wall: u64) -> usize {
        self.entries.partition_point(|entry| entry.sample.time.wall.0 <= wall).saturating_sub(1)
    }

    /// The wall clock at the first sample there is, nanoseconds since 1970 UTC.
    pub(super) fn first_wall(&self) -> u64 {
        self.entries.front().map_or(0, |entry| entry.sample.time.wall.0)
    }

    /// What there is to show of a sample, by its number from 0.
    pub(super) fn look(&mut self, at: usize) -> Look {
        let at = at.min(self.entries.len().saturating_sub(1));
        let place = at + self.dropped;
        self.fold_to(at);
        let now = self.window(at.saturating_sub(1), at);
        let empty = Window::default();
        let minute = self.minute.as_ref().map_or(&empty, |(_, window)| window);
        let is_due = !self.is_judged
            && self.report.as_ref().is_none_or(|(of, _)| {
                let ahead = place.checked_sub(*of).unwrap_or(usize::MAX) as u64;
                if self.is_live { ahead >= DIAGNOSED_EACH } else { ahead > 0 }
            });
        if is_due && minute.samples > 1 {
            self.report = Some((place, untried(diagnose(minute, None))));
        }
        let seconds = |at: Option<&Entry>| {
            at.map_or(0.0, |entry| entry.sample.time.monotonic.0.saturating_sub(self.first) as f64 / 1e9)
        };
        let position = Position {
            is_live: self.is_live,
            second: seconds(self.entries.get(at)),
            of_seconds: seconds(self.entries.back()),
            sample: at + 1,
            of_samples: self.entries.len(),
            thinned: self.thinned,
        };
        let host = self.base.facts.as_ref().map(|facts| facts.hostname.to_string()).unwrap_or_default();
        Look::new(host, position, &now, minute, self.report.as_ref().map(|(_, report)| report.clone()))
    }

    /// Makes the window of the last minute before a sample: by the samples since the last look, where these are few.
    fn fold_to(&mut self, at: usize) {
        let place = at + self.dropped;
        let known = self.minute.take().filter(|(of, window)| *of <= place && window.samples < FOLDED_MAX);
        let (mut window, from) = match known {
            // What lies between may have been dropped.
            Some((of, window)) if of + 1 >= self.dropped => (window, of + 1 - self.dropped),
            _ => {
                let from = (at + 1).saturating_sub(MINUTE);
                (self.before(from), from)
            }
        };
        for entry in self.entries.iter().skip(from).take((at + 1).saturating_sub(from)) {
            fold(&mut window, entry);
        }
        self.minute = Some((place, window));
    }

    /// A window of the samples from one to another.
    fn window(&self, from: usize, to: usize) -> Window {
        let mut window = self.before(from);
        // Not each sample reads the levels of cgroups: the first one takes along what was read shortly before it.
        let levels = self.levels(from);
        for (number, entry) in self.entries.iter().skip(from).take((to + 1).saturating_sub(from)).enumerate() {
            match number {
                0 => {
                    let cgroups = levels.with_levels(&entry.sample.cgroups);
                    fold_events(&mut window, entry);
                    let sample = Box::new(Sample { cgroups, ..(*entry.sample).clone() });
                    let Ok(()) = window.record(&Record::Sample(sample));
                }
                _ => fold(&mut window, entry),
            }
        }
        window
    }

    /// Levels of cgroups as read within [`HELD`] before a sample.
    fn levels(&self, at: usize) -> Levels {
        let mut levels = Levels::default();
        let Some(entry) = self.entries.get(at) else { return levels };
        let since = entry.sample.time.monotonic.0.saturating_sub(HELD.0);
        let earlier = self.entries.iter().take(at).rev().take_while(|entry| entry.sample.time.monotonic.0 >= since);
        let earlier: Vec<&Entry> = earlier.collect();
        earlier.into_iter().rev().for_each(|entry| levels.note(&entry.sample));
        levels
    }

    /// Returns a window without samples but with the state before a sample: the machine, and the limits, which are not
    /// in every sample.
    fn before(&self, at: usize) -> Window {
        let mut window = Window {
            facts: self.base.facts.clone(),
            entities: self.base.entities.clone(),
            gaps: self.base.gaps.clone(),
            traced: self.base.traced.clone(),
            ..Window::default()
        };
        let earlier = || self.entries.iter().take(at).rev().map(|entry| &entry.sample);
        let mut held = Sample::default();
        let before = self.entries.get(at).map_or(Nanos(u64::MAX), |entry| entry.sample.time.monotonic);
        let limits = self.limits.iter().take_while(|(read, ..)| *read < before);
        let limits: BTreeMap<EntityId, CgroupLimitsRow> = limits.map(|(_, id, row)| (*id, row.clone())).collect();
        if !limits.is_empty() {
            held.cgroup_limits = Table::read(limits.into_iter().collect());
        }
        if let Some(sample) = earlier().find(|sample| sample.zones.was_read()) {
            held.zones = sample.zones.clone();
        }
        if held.cgroup_limits.was_read() || held.zones.was_read() {
            let Ok(()) = window.record(&Record::Sample(Box::new(held)));
            window.begin_again();
        }
        window
    }
}

fn fold_events(window: &mut Window, entry: &Entry) {
    for event in &entry.events {
        let Ok(()) = window.record(event);
    }
}

fn fold(window: &mut Window, entry: &Entry) {
    fold_events(window, entry);
    let Ok(()) = window.record(&Record::Sample(entry.sample.clone()));
}

fn rows(sample: &Sample) -> usize {
    sample.disks.rows().len()
        + sample.bdis.rows().len()
        + sample.wbs.rows().len()
        + sample.cgroups.rows().len()
        + sample.cgroup_limits.rows().len()
        + sample.cgroup_io.rows().len()
        + sample.processes.rows().len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_testkit::Fixture;
    use floodline_testkit::incidents::{dirty_cliff, starved_budget};

    fn history(fixture: &Fixture, is_live: bool) -> History {
        let mut history = History::new(is_live);
        fixture.records().into_iter().for_each(|record| history.take(record));
        history
    }

    #[test]
    fn a_look_is_the_same_whether_one_walked_there_or_jumped() {
        let (mut walked, mut jumped) = (history(&dirty_cliff(), false), history(&dirty_cliff(), false));
        for at in 0..40 {
            walked.look(at);
        }
        let (one, other) = (walked.look(39), jumped.look(39));
        assert_eq!(one.moment, other.moment);
        assert_eq!(one.position, other.position);
        // Back in time, the future is not known.
        let (back, fresh) = (walked.look(5), history(&dirty_cliff(), false).look(5));
        assert_eq!(back.moment, fresh.moment);
        assert_eq!(back.report, fresh.report);
    }

    #[test]
    fn a_change_without_a_trial_is_a_candidate_unless_it_is_arithmetic() {
        let plan = |look: Look| look.report.and_then(|report| report.plan).expect("a plan");
        let mut judged = history(&dirty_cliff(), false);
        judged.judge(diagnose(&dirty_cliff().window(), None));
        let looks = [judged.look(5), history(&dirty_cliff(), true).look(usize::MAX)];
        for plan in looks.map(plan) {
            assert!(plan.now.is_empty() && plan.guarded.is_empty(), "{:?}", plan.now);
            let candidate = plan.candidate.expect("a candidate");
            assert!(candidate.commands.iter().any(|command| command.contains("vm.dirty_")), "{candidate:?}");
            assert!(candidate.why.contains("floodline doctor"), "{}", candidate.why);
        }
        let starved = plan(history(&starved_budget(), false).look(39));
        assert_eq!(starved.now, ["sudo sysctl -w vm.dirty_background_ratio=5 vm.dirty_ratio=10"]);
        assert!(starved.arithmetic_only.is_some() && starved.candidate.is_none());
    }

    #[test]
    fn limits_hold_until_they_are_read_again() {
        // A host reads the limits of one cgroup now and then, not of all in one sample.
        let mut records = starved_budget().records();
        let mut samples = records.iter_mut().filter_map(|record| match record {
            Record::Sample(sample) => Some(sample),
            _ => None,
        });
        let all = samples.next().expect("a sample").cgroup_limits.rows().to_vec();
        assert!(all.len() > 2, "{all:?}");
        for (at, sample) in samples.enumerate() {
            sample.cgroup_limits = Table::read(all.get(at).cloned().into_iter().collect());
        }
        let mut history = History::new(false);
        records.into_iter().for_each(|record| history.take(record));
        let (id, row) = all.last().expect("a limit");
        assert_eq!(history.window(30, 31).cgroup_limits.get(id).map(|span| &span.last), Some(row));
        history.thin();
        assert_eq!(history.window(10, 11).cgroup_limits.len(), all.len());
    }

    #[test]
    fn places_are_found_by_time() {
        let history = history(&Fixture::healthy().seconds(30), false);
        assert_eq!(history.len(), 31);
        assert_eq!([0.0, 4.0, 4.9, 1e9].map(|second| history.at_second(second)), [0, 4, 4, 30]);
        let first = history.first_wall();
        assert_eq!([0, first, first + 7_000_000_000].map(|wall| history.at_wall(wall)), [0, 0, 7]);
    }

    #[test]
    fn a_large_recording_is_thinned_and_keeps_its_ends() {
        let mut history = history(&Fixture::healthy().seconds(64), false);
        history.thin();
        history.thin();
        assert_eq!((history.len(), history.thinned), (17, 4));
        let look = history.look(usize::MAX);
        assert_eq!((look.position.of_seconds, look.position.thinned), (64.0, 4));
        assert_eq!(look.moment.map(|moment| moment.interval_s), Some(4.0));
    }

    #[test]
    fn a_live_host_keeps_its_last_samples() {
        let mut history = history(&Fixture::healthy().seconds(700), true);
        assert_eq!((history.len(), history.dropped), (LIVE_SAMPLES, 101));
        assert_eq!(history.look(usize::MAX).position.second, 700.0);
        assert_eq!(history.look(0).position.second, 101.0);
    }
}
