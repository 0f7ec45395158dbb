// SPDX-License-Identifier: MIT OR Apache-2.0
//! Detects the triggers of incidents and decides which are kept. Pure: a sample and a report go in, triggers come out.

use crate::board::Outcome;
use floodline_analysis::report::{Report, Severity};
use floodline_record::id::{Entity, EntityId};
use floodline_record::record::{Record, What};
use floodline_record::sample::{Sample, SampleTime};
use floodline_record::units::Nanos;
use floodline_record::window::Window;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Kind of a trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// Tasks waited for I/O for a large part of ten seconds.
    IoPressure,
    /// A rule found something that it had not found before.
    Rule,
    /// One task waited for too long.
    Wait,
    /// An operator requested it: `floodline mark`.
    Mark,
}

impl Kind {
    /// Returns the name in the incident's file.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::IoPressure => "io_pressure",
            Kind::Rule => "rule",
            Kind::Wait => "wait",
            Kind::Mark => "mark",
        }
    }
}

/// One trigger.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Trigger {
    /// What kind.
    pub(crate) kind: Kind,
    /// When.
    pub(crate) at: SampleTime,
    /// Its subject. Two triggers of the same kind and subject are duplicates.
    pub(crate) subject: String,
    /// The rule, if a rule triggered it.
    pub(crate) rule: Option<&'static str>,
    /// Severity, if it comes from a rule.
    pub(crate) severity: Option<Severity>,
    /// One sentence.
    pub(crate) text: String,
}

/// When triggers fire and how many are kept.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// A task that waits for longer makes an incident.
    pub wait: Nanos,
    /// Share of ten seconds in which tasks waited for I/O that makes an incident; above 1 never.
    pub io_pressure: f64,
    /// Minimum time between two kept incidents of the same kind and subject.
    pub cooldown: Nanos,
    /// Incidents kept in 24 hours.
    pub per_day: usize,
}

/// Length of the window of I/O pressure.
const PRESSURE_OVER: Nanos = Nanos(10 * Nanos::SECOND.0);

/// Finds triggers.
#[derive(Debug)]
pub(crate) struct Detect {
    limits: Limits,
    found: Option<BTreeSet<&'static str>>,
    /// Totals of I/O pressure of the last ten seconds.
    pressure: VecDeque<(Nanos, Nanos)>,
    is_pressed: bool,
    /// For each process in uninterruptible sleep in every sample: since when, and whether it was reported.
    asleep: BTreeMap<EntityId, (Nanos, bool)>,
    waits: Vec<Trigger>,
    /// Time that the machine was suspended since the sample before.
    suspended: Nanos,
}

impl Detect {
    pub(crate) fn new(limits: Limits) -> Detect {
        Detect {
            limits,
            found: None,
            pressure: VecDeque::new(),
            is_pressed: false,
            asleep: BTreeMap::new(),
            waits: Vec::new(),
            suspended: Nanos(0),
        }
    }

    /// Takes the time that the machine was suspended since the sample before: no task waited then.
    pub(crate) fn suspended(&mut self, length: Nanos) {
        self.suspended = length;
    }

    /// Takes a record that is not a sample.
    pub(crate) fn record(&mut self, record: &Record, now: SampleTime) {
        let Record::Event(event) = record else { return };
        let What::SlowSync(slow) = &event.what else { return };
        if slow.lasted >= self.limits.wait {
            let (comm, operation) = (&slow.who.comm, slow.operation.name());
            self.waits.push(Trigger {
                kind: Kind::Wait,
                at: SampleTime { monotonic: event.at, ..now },
                subject: comm.to_string(),
                rule: None,
                severity: None,
                text: format!("{comm} waited for {:.1} s in {operation}.", slow.lasted.as_secs_f64()),
            });
        }
    }

    /// Takes a sample and returns its triggers. `has_monitor`: the kernel itself reports I/O pressure.
    pub(crate) fn sample(&mut self, sample: &Sample, window: &Window, has_monitor: bool) -> Vec<Trigger> {
        let mut triggers = std::mem::take(&mut self.waits);
        let at = sample.time.monotonic;
        if let Some(total) = sample.host.psi_io_some {
            self.pressure.push_back((at, total));
            while self.pressure.front().is_some_and(|(then, _)| at.0.saturating_sub(then.0) > PRESSURE_OVER.0) {
                self.pressure.pop_front();
            }
            let grown = self.pressure.front().map_or(0, |(_, before)| total.0.saturating_sub(before.0));
            let share = grown as f64 / PRESSURE_OVER.0 as f64;
            let was_pressed = std::mem::replace(&mut self.is_pressed, share >= self.limits.io_pressure);
            if self.is_pressed && !was_pressed && !has_monitor {
                triggers.push(self.pressed(sample.time));
            }
        }
        self.sleepers(sample, window, &mut triggers);
        triggers
    }

    /// Whether the totals of samples agree with the kernel's monitor. Some kernels fire once when a monitor is started.
    pub(crate) fn agrees(&self) -> bool {
        match (self.pressure.front(), self.pressure.back()) {
            (Some((_, before)), Some((_, now))) => {
                let grown = now.0.saturating_sub(before.0) as f64;
                // The monitor's window and this one may be shifted against each other.
                grown >= self.limits.io_pressure * PRESSURE_OVER.0 as f64 / 2.0
            }
            _ => true,
        }
    }

    /// The trigger of I/O pressure.
    pub(crate) fn pressed(&self, at: SampleTime) -> Trigger {
        let percent = self.limits.io_pressure * 100.0;
        Trigger {
            kind: Kind::IoPressure,
            at,
            subject: String::new(),
            rule: None,
            severity: None,
            text: format!("Tasks waited for I/O for at least {percent:.0} % of 10 s."),
        }
    }

    fn sleepers(&mut self, sample: &Sample, window: &Window, triggers: &mut Vec<Trigger>) {
        let at = sample.time.monotonic;
        let suspended = std::mem::take(&mut self.suspended);
        let mut still = BTreeMap::new();
        for (id, row) in sample.processes.rows() {
            if row.state.is_none_or(|state| state.0 != u64::from(b'D')) {
                continue;
            }
            let Some(Entity::Process { comm, kthread: false, .. }) = window.entities.get(id) else { continue };
            let known = self.asleep.get(id);
            let (since, was_said) = known
                .map_or((at, false), |(since, said)| (Nanos(since.0.saturating_add(suspended.0).min(at.0)), *said));
            let lasted = Nanos(at.0.saturating_sub(since.0));
            let is_long = lasted >= self.limits.wait;
            if is_long && !was_said {
                triggers.push(Trigger {
                    kind: Kind::Wait,
                    at: sample.time,
                    subject: comm.to_string(),
                    rule: None,
                    severity: None,
                    text: format!(
                        "{comm} was in uninterruptible sleep in every sample of {:.1} s.",
                        lasted.as_secs_f64()
                    ),
                });
            }
            still.insert(*id, (since, was_said || is_long));
        }
        self.asleep = still;
    }

    /// Takes the results of the rules and returns a trigger for each rule that holds now and did not before. A rule
    /// that holds when the program starts is not an event: metrics and `doctor` show it.
    pub(crate) fn judged(&mut self, at: SampleTime, report: &Report) -> Vec<Trigger> {
        let bad = report.findings.iter().filter(|finding| finding.severity >= Severity::Warning);
        let now: BTreeSet<&'static str> = bad.clone().map(|finding| finding.rule).collect();
        let Some(before) = self.found.replace(now) else { return Vec::new() };
        let is_new = |finding: &&floodline_analysis::report::Finding| {
            !before.contains(finding.rule) && finding.explained_by.is_none()
        };
        let trigger = |finding: &floodline_analysis::report::Finding| Trigger {
            kind: Kind::Rule,
            at,
            subject: format!("{} {}", finding.rule, finding.devices.join(",")),
            rule: Some(finding.rule),
            severity: Some(finding.severity),
            text: finding.summary.clone(),
        };
        let mut triggers: Vec<Trigger> = bad.filter(is_new).map(trigger).collect();
        triggers.dedup_by(|a, b| a.rule == b.rule);
        triggers
    }
}

/// Decides which triggers are kept.
#[derive(Debug)]
pub(crate) struct Gate {
    limits: Limits,
    last: BTreeMap<(Kind, String), (Nanos, String)>,
    kept: VecDeque<Nanos>,
}

impl Gate {
    pub(crate) fn new(limits: Limits) -> Gate {
        Gate { limits, last: BTreeMap::new(), kept: VecDeque::new() }
    }

    /// The incident that a trigger is a duplicate of.
    pub(crate) fn known(&self, trigger: &Trigger) -> Option<&str> {
        self.last.get(&(trigger.kind, trigger.subject.clone())).map(|(_, name)| name.as_str())
    }

    /// Decides the outcome of a trigger. A kept one gets this name. A mark is kept unless the day's limit is reached.
    pub(crate) fn decide(&mut self, trigger: &Trigger, name: &str) -> Outcome {
        let now = trigger.at.monotonic;
        let cooldown = self.limits.cooldown.0;
        self.last.retain(|_, (at, _)| now.0.saturating_sub(at.0) < cooldown);
        while self.kept.front().is_some_and(|at| now.0.saturating_sub(at.0) >= 86_400 * Nanos::SECOND.0) {
            self.kept.pop_front();
        }
        let key = (trigger.kind, trigger.subject.clone());
        if trigger.kind != Kind::Mark && self.last.contains_key(&key) {
            return Outcome::Duplicate;
        }
        if self.kept.len() >= self.limits.per_day {
            return Outcome::Limited;
        }
        self.last.insert(key, (now, name.to_owned()));
        self.kept.push_back(now);
        Outcome::Kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_analysis::diagnose::diagnose;
    use floodline_record::units::Count;
    use floodline_testkit::Fixture;
    use floodline_testkit::incidents::dirty_cliff;

    const LIMITS: Limits = Limits {
        wait: Nanos(5 * Nanos::SECOND.0),
        io_pressure: 0.5,
        cooldown: Nanos(600 * Nanos::SECOND.0),
        per_day: 3,
    };

    fn detected(fixture: &Fixture, has_monitor: bool) -> Vec<Trigger> {
        let mut detect = Detect::new(LIMITS);
        let window = fixture.window();
        let mut triggers = Vec::new();
        for record in fixture.records() {
            match &record {
                Record::Sample(sample) => triggers.extend(detect.sample(sample, &window, has_monitor)),
                other => detect.record(other, SampleTime::default()),
            }
        }
        triggers
    }

    fn at(second: u64) -> SampleTime {
        SampleTime { monotonic: Nanos(second * Nanos::SECOND.0), wall: Nanos(0) }
    }

    #[test]
    fn pressure_and_long_waits_trigger_once() {
        let calm = Fixture::healthy().seconds(30);
        assert_eq!(detected(&calm, false), []);
        let pressed = Fixture::healthy().seconds(30).host(|t, row| row.psi_io_some = Some(Nanos((t * 0.6e9) as u64)));
        let triggers = detected(&pressed, false);
        assert_eq!(triggers.iter().map(|trigger| trigger.kind).collect::<Vec<_>>(), [Kind::IoPressure]);
        assert_eq!(detected(&pressed, true), [], "the kernel's monitor says it");
        let asleep = Fixture::healthy().seconds(30).process("postgres", 77, "/", |t, row| {
            row.state = Some(Count(u64::from(if t > 10.0 { b'D' } else { b'S' })));
        });
        let triggers = detected(&asleep, false);
        assert_eq!(triggers.len(), 1, "{triggers:?}");
        assert_eq!(triggers[0].text, "postgres was in uninterruptible sleep in every sample of 5.0 s.");
    }

    #[test]
    fn no_task_waits_while_the_machine_is_suspended() {
        let asleep = Fixture::healthy()
            .seconds(1)
            .process("postgres", 77, "/", |_, row| row.state = Some(Count(u64::from(b'D'))));
        let night = Nanos(8 * 3600 * Nanos::SECOND.0);
        let check = |suspended: Nanos, expect: usize| {
            let mut detect = Detect::new(LIMITS);
            let (window, mut triggers, mut number) = (asleep.window(), Vec::new(), 0);
            for record in asleep.records() {
                let Record::Sample(mut sample) = record else { continue };
                if number > 0 {
                    sample.time.monotonic.0 += night.0;
                    detect.suspended(suspended);
                }
                number += 1;
                triggers.extend(detect.sample(&sample, &window, false));
            }
            assert_eq!((number, triggers.len()), (2, expect), "{triggers:?}");
        };
        check(night, 0);
        check(Nanos(0), 1);
        // A time that is longer than the one between the samples, as clocks are not read at one moment.
        check(Nanos(2 * night.0), 0);
    }

    #[test]
    fn a_monitor_that_fires_on_a_calm_machine_is_not_believed() {
        let check = |share: f64, expect: bool| {
            let mut detect = Detect::new(LIMITS);
            let fixture = Fixture::healthy()
                .seconds(12)
                .host(move |t, row| row.psi_io_some = Some(Nanos((t * share * 1e9) as u64)));
            for record in fixture.records() {
                if let Record::Sample(sample) = &record {
                    detect.sample(sample, &Window::default(), true);
                }
            }
            assert_eq!(detect.agrees(), expect, "{share}");
        };
        check(0.02, false);
        check(0.4, true);
        assert!(Detect::new(LIMITS).agrees(), "where samples do not tell, the monitor does");
    }

    #[test]
    fn a_rule_triggers_when_it_begins_to_hold() {
        let mut detect = Detect::new(LIMITS);
        let healthy = diagnose(&Fixture::healthy().window(), None);
        let ill = diagnose(&dirty_cliff().window(), None);
        assert_eq!(detect.judged(at(1), &ill), [], "what held before the start is no event");
        assert_eq!(detect.judged(at(2), &ill), []);
        assert_eq!(detect.judged(at(3), &healthy), []);
        let triggers = detect.judged(at(4), &ill);
        assert_eq!(triggers[0].rule, Some("dirty-cliff"));
        assert_eq!(triggers[0].severity, Some(Severity::Critical));
    }

    #[test]
    fn duplicates_and_a_bad_day_are_counted_and_not_kept() {
        let mut gate = Gate::new(LIMITS);
        let trigger = |kind, subject: &str, second| Trigger {
            kind,
            at: at(second),
            subject: subject.into(),
            rule: None,
            severity: None,
            text: String::new(),
        };
        let mut decide = |kind, subject: &str, second| gate.decide(&trigger(kind, subject, second), "incident-x");
        assert_eq!(decide(Kind::Wait, "a", 0), Outcome::Kept);
        assert_eq!(decide(Kind::Wait, "a", 599), Outcome::Duplicate);
        assert_eq!(decide(Kind::Wait, "b", 599), Outcome::Kept);
        assert_eq!(decide(Kind::Wait, "a", 600), Outcome::Kept);
        assert_eq!(decide(Kind::Mark, "", 601), Outcome::Limited);
        assert_eq!(decide(Kind::Mark, "", 86_400), Outcome::Kept);
        assert_eq!(decide(Kind::Mark, "", 86_401), Outcome::Limited);
        assert_eq!(decide(Kind::Mark, "", 86_999), Outcome::Kept);
    }
}
