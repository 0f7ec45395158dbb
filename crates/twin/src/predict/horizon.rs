// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is written only after the end of the recorded time. A change that keeps data in memory for longer puts their write off beyond it, and
//! no run then shows the wait for them. Where the present settings keep data for longer than the recording, the present harm is not in it.
//! In both cases the twin runs on, before and after the change, with the recorded load again and again, until such data are written. Where
//! that takes too long, or no run shows it, no wait is predicted.

use super::{Measured, Question, Run, conclude};
use crate::Twin;
use crate::backtest;
use crate::noticed::least;
use crate::shown::{Figures, Shown, Verdicts};
use crate::slowest::USUAL_BYTES_PER_SECOND;
use floodline_analysis::diagnose::{device, dirty};
use floodline_analysis::prediction::{DIRTIED, Doubt, Doubtful, Horizon, Prediction, Reason, Seen, WRITTEN, differ};
use floodline_record::units::Nanos;
use floodline_record::window::Window;
use floodline_scenario::{Scenario, Step, Task, Time};

/// Begin of the names of the figures of unwritten bytes of each disk at the end of a run.
const LEFT_ON: &str = "left_on.";
/// Name of the figure of all unwritten bytes at the end of a run.
const LEFT: &str = "left_unwritten_bytes";
/// Time that a disk takes for a write that tasks feel, seconds.
const FELT_S: f64 = 1.0;
/// Factor between two amounts of unwritten data from which one is well above the other.
const MORE: f64 = 1.5;
/// Part of the unwritten data by which less is written in the recorded time, and part of it that a longer run must write.
const PART: f64 = 0.5;
/// Factor from which a figure of a longer run is another one than that of the recorded time.
const TWICE: f64 = 2.0;
/// Times that data of the largest age are written in a recording from which it has what a change puts off.
const OFTEN: f64 = 4.0;
/// Fewest and most times that the load is repeated.
const TIMES: (u32, u32) = (3, 12);
/// Longest simulated time, seconds.
const SECONDS_MAX: f64 = 1_800.0;
/// Tasks times seconds that are simulated in one longer run at most.
const ROOM: f64 = 60_000.0;

/// Figures of unwritten data at the end of a run.
pub(crate) fn left(window: &Window) -> Figures {
    let mut figures = Figures::new();
    let all = dirty::unwritten_of(window, &window.host.last);
    figures.extend(all.map(|bytes| (LEFT.to_owned(), bytes.0 as f64)));
    for drain in device::drains(window) {
        let bytes = drain.bdi().and_then(|span| span.last.reclaimable);
        figures.extend(bytes.map(|bytes| (format!("{LEFT_ON}{}", drain.name), bytes.0 as f64)));
    }
    figures
}

/// Unwritten data at the end of a run.
#[derive(Clone, Copy, Debug)]
struct Left {
    bytes: f64,
    /// Time that the disks take to write them, seconds: all disks write at once.
    seconds: f64,
    /// Bytes that the disks wrote in the run.
    written: f64,
}

impl Left {
    /// `None` where the run does not show it.
    fn of(shown: &Shown, twin: &Twin) -> Option<Left> {
        let bytes = *shown.figures.get(LEFT)?;
        let on = |name: &str| shown.figures.get(&format!("{LEFT_ON}{name}")).copied();
        let by_disk = twin.ceilings.iter().filter_map(|one| Some((on(&one.device)?, speed(twin, &one.device))));
        let seconds = by_disk.map(|(bytes, speed)| bytes / speed).reduce(f64::max);
        let slowest = || twin.ceilings.iter().map(|one| speed(twin, &one.device)).reduce(f64::min);
        let seconds = seconds.or_else(|| Some(bytes / slowest()?))?;
        Some(Left { bytes, seconds, written: *shown.figures.get(WRITTEN)? })
    }

    /// Whether it is so much more than another one that tasks feel the difference, and that much less was written for it.
    fn is_put_off_beside(self, other: Left) -> bool {
        let is_felt = self.seconds - other.seconds >= FELT_S && self.bytes >= MORE * other.bytes;
        is_felt && other.written - self.written >= PART * (self.bytes - other.bytes)
    }
}

/// Bytes per second that a disk of the twin writes.
fn speed(twin: &Twin, name: &str) -> f64 {
    let limit = twin.scenario.machine.devices.get(name).and_then(|device| device.write_bandwidth);
    let seen = || twin.ceilings.iter().find(|one| one.device == name)?.write_bytes_per_second;
    limit.map(|rate| rate.0.0 as f64).unwrap_or_else(|| seen().unwrap_or(0.0).max(USUAL_BYTES_PER_SECOND)).max(1.0)
}

/// Age up to which the flusher leaves data unwritten, seconds; infinite where it never writes by age.
fn age(scenario: &Scenario) -> f64 {
    let seconds = |name: &str, usual: u64| scenario.machine.sysctl.number(name).unwrap_or(usual) as f64 / 100.0;
    match seconds("vm.dirty_writeback_centisecs", 500) {
        0.0 => f64::INFINITY,
        every => every + seconds("vm.dirty_expire_centisecs", 3000),
    }
}

/// A question whose runs end before the data are written that decide it.
#[derive(Clone, Debug)]
pub struct Beyond {
    /// The same question with the recorded load several times in a row. `None` where that takes too long, or where the load cannot be
    /// repeated.
    pub longer: Option<Question>,
    times: u32,
    horizon: Horizon,
    /// Unwritten data that a longer run must write.
    left: Left,
    /// Most that a longer run may leave unwritten, bytes. One that leaves more has not reached the level at which as much is written as
    /// dirtied, and the longest waits are still to come.
    level: f64,
}

/// Whether data that decide a question are written only after the end of its runs.
pub fn beyond(twin: &Twin, question: &Question, results: &[(Run, Shown)]) -> Option<Beyond> {
    let nominal = |is_changed: bool| {
        let is_it = |run: &Run| run.is_changed == is_changed && run.demand == 0 && run.trial.device_percent == 100;
        results.iter().find(|(run, shown)| is_it(run) && !shown.is_cut).map(|(_, shown)| shown)
    };
    let (now, then) = (Left::of(nominal(false)?, twin)?, Left::of(nominal(true)?, twin)?);
    let ages = |all: &[super::Changed]| all.first().map(|one| age(&one.scenario));
    let (age_now, age_then) = (ages(&question.now)?, ages(&question.then)?);
    let is_short = age_now.is_finite() && twin.seconds < age_now;
    // Such writes are in the recording, again and again.
    if age_then.is_finite() && twin.seconds >= OFTEN * age_then.max(if age_now.is_finite() { age_now } else { 0.0 }) {
        return None;
    }
    let (left, age, is_put_off) = match (then.is_put_off_beside(now), now.is_put_off_beside(then)) {
        (true, _) => (then, age_then, true),
        (_, true) if is_short => (now, age_now, false),
        _ => return None,
    };
    let seconds = twin.seconds.max(1.0);
    // Data that are never written by age are written at a threshold. In the first age of a run none are, which is to be a small part of it.
    let needed = if age.is_finite() { 3.0 * age + left.seconds + 2.0 * seconds } else { SECONDS_MAX };
    let times = ((needed / seconds).ceil() as u32).clamp(TIMES.0, TIMES.1);
    let simulated = seconds * f64::from(times);
    let is_affordable = simulated <= SECONDS_MAX && simulated * twin.scenario.number_of_tasks() as f64 <= ROOM;
    let longer = is_affordable.then(|| question.longer(times)).flatten();
    let record_seconds = if age.is_finite() { 2.0 * age + left.seconds } else { SECONDS_MAX };
    let horizon = Horizon {
        is_put_off,
        unwritten_bytes: left.bytes,
        write_seconds: left.seconds,
        record_seconds: record_seconds.max(2.0 * seconds),
        is_by_age: age.is_finite(),
        times: None,
    };
    let dirtied = nominal(is_put_off)?.figures.get(DIRTIED).copied().unwrap_or(0.0);
    let by_age = if age.is_finite() { dirtied / seconds * age } else { 0.0 };
    // Data that the present settings leave for longer are more than the change leaves in any case.
    let level = if is_put_off { MORE * by_age.max(left.bytes) } else { f64::INFINITY };
    Some(Beyond { longer, times, horizon, left, level })
}

impl Question {
    /// The same question with the load several times in a row. `None` where a load cannot be repeated.
    fn longer(&self, times: u32) -> Option<Question> {
        let mut question = Question { usual: None, ..self.clone() };
        for changed in question.now.iter_mut().chain(&mut question.then) {
            changed.scenario = repeated(&changed.scenario, times)?;
        }
        Some(question)
    }
}

impl Beyond {
    /// The answer from the longer runs, whose totals are [per recorded time](Beyond::per_recorded_time); without them, that of the recorded
    /// time, in which no wait is predicted. `short` are the results of the recorded time.
    pub fn conclude(
        &self,
        twin: &Twin,
        question: &Question,
        measured: &Measured,
        short: &[(Run, Shown)],
        longer: Option<Vec<(Run, Shown)>>,
    ) -> Option<Prediction> {
        let from_longer = longer.zip(self.longer.as_ref()).and_then(|(longer, question)| {
            let measured = compared(measured, as_is(short)?, as_is(&longer)?);
            conclude(twin, question, &measured, &longer)
        });
        // A present harm that the longer run does not show may be there nevertheless: such a run proves no harm of the change.
        match from_longer.filter(|prediction| self.horizon.is_put_off || !prediction.harms()) {
            Some(mut prediction) => {
                let horizon = Horizon { times: Some(self.times), ..self.horizon.clone() };
                prediction.notes.splice(0..0, horizon.note());
                prediction.recorded = measured.said.seen.clone();
                prediction.horizon = Some(horizon);
                Some(prediction)
            }
            None => {
                let mut prediction = conclude(twin, question, measured, short)?;
                leave_open(&mut prediction, self.horizon.clone());
                Some(prediction)
            }
        }
    }

    /// Whether the longer run writes what is unwritten at the end of the recorded time, beside what it writes until then, and leaves no more
    /// than that.
    fn shows_the_write(&self, longer: &[(Run, Shown)]) -> bool {
        let is_it = |run: &Run| run.is_changed == self.horizon.is_put_off && run.demand == 0;
        let run = longer.iter().find(|(run, _)| is_it(run) && run.trial.device_percent == 100);
        let of = |name: &str| run.and_then(|(_, shown)| shown.figures.get(name).copied());
        let is_cut = longer.iter().any(|(_, shown)| shown.is_cut);
        !is_cut
            && of(WRITTEN).is_some_and(|written| written - self.left.written >= PART * self.left.bytes)
            && of(LEFT).is_some_and(|left| left <= self.level)
    }

    /// The results of the longer runs, with totals per recorded time. `None` where they do not show how the data are written.
    pub fn per_recorded_time(&self, mut longer: Vec<(Run, Shown)>) -> Option<Vec<(Run, Shown)>> {
        if !self.shows_the_write(&longer) {
            return None;
        }
        for (_, shown) in &mut longer {
            for (_, value) in shown.figures.iter_mut().filter(|(name, _)| is_total(name)) {
                *value /= f64::from(self.times);
            }
        }
        Some(longer)
    }
}

/// Whether a figure grows with the time of a run.
fn is_total(name: &str) -> bool {
    let is_of_host = [DIRTIED, WRITTEN, "host.written_bytes", backtest::UNCOUNTED].contains(&name);
    let is_time =
        name.ends_with("_seconds") && !name.ends_with("_wait_seconds") && !name.ends_with("longest_sync_seconds");
    let is_of_program = name.starts_with("program.") && name.ends_with("_bytes");
    is_of_host || is_time || is_of_program
}

/// The run of the twin as it is.
fn as_is(results: &[(Run, Shown)]) -> Option<&Shown> {
    results.iter().find(|(run, _)| !run.is_changed && run.demand == 0).map(|(_, shown)| shown)
}

/// The readings of the recording as they would be if it was as long as the longer runs: more where the twin has more in this time.
fn compared(measured: &Measured, short: &Shown, longer: &Shown) -> Measured {
    let mut compared = measured.clone();
    for figure in &mut compared.back_test {
        let of = |shown: &Shown| shown.figures.get(&figure.name).copied();
        let Some((short, long)) = of(short).zip(of(longer)) else { continue };
        if !differ(least(&figure.name), short, long) {
            continue;
        }
        // Most of what the longer run has is not in the recording: the twin errs by the same amount in the rest, not by the same share.
        figure.real = if long > TWICE * short { long + figure.real - short } else { figure.real * long / short };
        figure.off_share = (figure.real - long).abs() / figure.real.max(f64::MIN_POSITIVE);
        figure.simulated = long;
    }
    let is_new = |seen: &&Seen| !short.closely().has(seen.rule) && !measured.said.has(seen.rule);
    let Verdicts { seen, slight, .. } = &mut compared.said;
    seen.extend(longer.closely().seen.iter().filter(is_new).cloned());
    slight.retain(|rule| !seen.iter().any(|one| one.rule == *rule));
    compared
}

/// Predicts no wait and no written bytes, and leaves it open whether a finding ends.
fn leave_open(prediction: &mut Prediction, horizon: Horizon) {
    let is_decided_later = |figure: &str, unit: &str| unit == "seconds" || figure == WRITTEN;
    for row in prediction.rows.iter_mut().filter(|row| is_decided_later(&row.figure, row.unit)) {
        (row.doubt, row.roughly) = (Some(Doubt::Horizon), None);
    }
    let open = std::mem::take(&mut prediction.vanish);
    prediction.doubtful.retain(|one| open.iter().all(|seen| seen.rule != one.rule));
    prediction.doubtful.extend(open.iter().map(|seen| Doubtful::new(seen, true, Reason::Unchecked, (0, 0))));
    prediction.stay.extend(open);
    prediction.horizon = Some(horizon);
    prediction.headline = crate::headline::headline(prediction);
}

/// A scenario whose load comes several times in a row. `None` without a length.
fn repeated(scenario: &Scenario, times: u32) -> Option<Scenario> {
    let Time(Nanos(length)) = scenario.workload.duration?;
    let mut longer = scenario.clone();
    longer.workload.duration = Some(Time(Nanos(length.checked_mul(times.into())?)));
    for task in longer.workload.tasks.values_mut().filter(|task| can_be_repeated(task)) {
        let once = std::mem::take(&mut task.steps);
        for round in 0..u64::from(times) {
            let begin = length.saturating_mul(round);
            task.steps.extend((round > 0).then(|| until(begin)));
            task.steps.extend(once.iter().map(|step| later(step, begin)));
        }
    }
    Some(longer)
}

/// A step that waits until a time after the start of its task, nanoseconds.
fn until(nanos: u64) -> Step {
    Step::SleepUntil(floodline_scenario::Until { at: Time(Nanos(nanos)) })
}

/// A step of a later round. Times in a branch count from its begin.
fn later(step: &Step, begin: u64) -> Step {
    match step {
        Step::SleepUntil(one) => until(one.at.0.0.saturating_add(begin)),
        Step::Repeat(one) => {
            let mut one = one.clone();
            one.steps = one.steps.iter().map(|step| later(step, begin)).collect();
            Step::Repeat(one)
        }
        step => step.clone(),
    }
}

/// Whether the steps of a task can follow each other again. A load without an end does so itself, and what ends a program or a mount is done
/// once.
fn can_be_repeated(task: &Task) -> bool {
    fn is_once(step: &Step) -> bool {
        match step {
            Step::WaitFor(_) | Step::Umount(_) | Step::Mount(_) | Step::RemoveCgroup(_) | Step::Exit => true,
            Step::Repeat(one) => (one.times.is_none() && one.lasting.is_none()) || one.steps.iter().any(is_once),
            Step::Parallel(one) => one.branches.iter().flatten().any(is_once),
            _ => false,
        }
    }
    task.preset.is_none() && task.program.is_none() && !task.steps.iter().any(is_once)
}

#[cfg(test)]
mod tests;
