// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tracer as the collector uses it: started once, switched to the other epoch at the beginning of every sample, and
//! read at its end. Each part that cannot be loaded is a gap, and the others work.

use super::budget::{Budget, Runs, Shedding};
use super::excerpt::Excerpt;
use super::load::{Control, Loaded, Order};
use super::part::{PARTS, Part, Reader, Turn};
use super::tracefs::Tracefs;
use crate::root::HostRoot;
use floodline_record::facts::HostFacts;
use floodline_record::gap::{Cause, Gap, Source};
use floodline_record::record::{Event, Record, What};
use floodline_record::sample::HostRow;
use floodline_record::text::Text;
use floodline_record::units::{Nanos, Pages};
use rustix::time::ClockId;

/// Source of events that are read in every sample: what the kernel did since the previous one.
pub trait Traces: std::fmt::Debug + Send {
    /// Ends the interval: from here on the programs count for the next one. A program that runs at this moment still
    /// counts for the interval that ends, so call [`Traces::collect`] as late as possible.
    fn turn(&mut self);

    /// Reads the counts of the interval that ended at `at`, and keeps the thresholds in `host` for the programs. Events
    /// before the first sample are dropped: no file was read for them.
    fn collect(&mut self, root: &HostRoot, at: Nanos, host: &HostRow, out: &mut Vec<Record>);
}

/// Loaded parts of the tracer, and the gaps of the others. The kernel removes all programs when the process ends,
/// however it ends.
pub struct Tracer {
    parts: Vec<Running>,
    gaps: Vec<Gap>,
    control: Control,
    since: Nanos,
    told: bool,
    shedding: Shedding,
    /// Runs of the programs when this interval began.
    runs: Runs,
}

struct Running {
    part: &'static Part,
    loaded: Loaded,
    reader: Box<dyn Reader>,
}

impl std::fmt::Debug for Tracer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tracer").field("parts", &self.parts().collect::<Vec<_>>()).field("gaps", &self.gaps).finish()
    }
}

impl Tracer {
    /// Loads every part that this machine supports and that has something to report on it.
    pub fn start(root: &HostRoot, facts: &HostFacts) -> Tracer {
        Tracer::start_within(root, facts, u32::MAX)
    }

    /// Returns a tracer that traces nothing. Its gaps name the option that enables each source: this kernel's series is
    /// not among [`super::PROVED`].
    pub fn not_asked_for() -> Tracer {
        let proved = super::PROVED.join(", ");
        let hint = format!("proved on {proved}; --trace on asks for it here");
        let gaps = Tracer::sources().map(|source| Gap::detailed(source, Cause::NotPlanned, hint.clone()));
        Tracer { gaps: gaps.collect(), ..Tracer::idle() }
    }

    fn idle() -> Tracer {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Tracer {
            parts: Vec::new(),
            gaps: Vec::new(),
            control: Control::default(),
            since: super::now(ClockId::Boottime),
            told: false,
            shedding: Shedding::new(Budget::of_cores(cores)),
            runs: Runs::default(),
        }
    }

    /// Like [`Tracer::start`], with at most `room` entries in each table of the kernel.
    pub fn start_within(root: &HostRoot, facts: &HostFacts, room: u32) -> Tracer {
        let mut tracer = Tracer::idle();
        let tracefs = if root.is_live() { Tracefs::open(root) } else { Err(Cause::NotPlanned) };
        let types = tracefs.as_ref().ok().and_then(|_| Excerpt::of(root, PARTS.iter().map(|part| part.object)));
        let may_preempt = may_preempt_in_tracepoints(&facts.kernel_release);
        for &part in PARTS {
            let running = tracefs.as_ref().map_err(Clone::clone).and_then(|tracefs| {
                if part.of_cgroup_writeback && !may_have_cgroup_writeback(facts) {
                    return Err(Cause::Unsupported { since: "cgroup version 2 with memory and io only".into() });
                }
                let loaded = Loaded::load(&Order { root, part, room, may_preempt, types: types.as_ref() }, tracefs)?;
                Ok(Running { part, loaded, reader: (part.reader)(tracefs) })
            });
            match running {
                Ok(mut running) => {
                    if let Some((cause, lost)) = running.loaded.take_without_functions() {
                        tracer.gaps.push(Gap::detailed(part.source, cause, lost));
                    }
                    tracer.parts.push(running);
                }
                Err(cause) => tracer.gaps.push(Gap::new(part.source, cause)),
            }
        }
        tracer
    }

    /// Replaces the budget, which by default depends on the number of cores.
    pub fn with_budget(self, budget: Budget) -> Tracer {
        Tracer { shedding: Shedding::new(budget), ..self }
    }

    /// Names of the loaded parts.
    pub fn parts(&self) -> impl Iterator<Item = &'static str> {
        self.parts.iter().map(|running| running.part.name)
    }

    /// Gaps of the parts that could not be loaded.
    pub fn gaps(&self) -> &[Gap] {
        &self.gaps
    }

    /// The sources that a tracer has.
    pub fn sources() -> impl Iterator<Item = Source> {
        PARTS.iter().map(|part| part.source)
    }
}

impl Traces for Tracer {
    fn turn(&mut self) {
        self.control.epoch ^= 1;
        self.tell();
    }

    fn collect(&mut self, root: &HostRoot, at: Nanos, host: &HostRow, out: &mut Vec<Record>) {
        let before = super::now(ClockId::ThreadCPUTime);
        let is_first = !std::mem::replace(&mut self.told, true);
        if is_first && !self.parts.is_empty() {
            let what = What::TraceStarted { parts: self.parts().map(Text::from).collect() };
            out.push(Record::Event(Event { at, what }));
        }
        let turn = Turn { root, epoch: self.control.epoch ^ 1, since: self.since, until: at };
        let mut events = Vec::new();
        for Running { part, loaded, reader } in &mut self.parts {
            if let Err(cause) = reader.read(loaded, &turn, &mut events) {
                self.gaps.push(Gap::detailed(part.source, cause, "an interval"));
            }
            let dropped = loaded.newly_dropped();
            if dropped > 0 {
                let full = Cause::Exhausted { what: "room in the tracer's table".into() };
                self.gaps.push(Gap { times: dropped, ..Gap::detailed(part.source, full, "events") });
            }
            for (program, missed) in loaded.newly_missed(root) {
                let skipped = Cause::Refused { why: "the kernel skips a program that a task left half way".into() };
                self.gaps.push(Gap { times: missed, ..Gap::detailed(part.source, skipped, program) });
            }
        }
        if is_first {
            events.clear();
        }
        self.watch(at, before);
        out.extend(self.gaps.drain(..).map(Record::Gap));
        out.extend(events.into_iter().map(Record::Event));
        self.since = at;
        self.control.machine_freerun = machine_freerun(host);
    }
}

impl Tracer {
    /// Writes the settings for the programs.
    fn tell(&mut self) {
        for running in &mut self.parts {
            if let Err(cause) = running.loaded.control(self.control) {
                self.gaps.push(Gap::detailed(running.part.source, cause, "control"));
            }
        }
    }

    /// Adds up the cost of the interval, and drops or restores detail. Dropped detail is a gap of every interval
    /// without it.
    fn watch(&mut self, at: Nanos, before: Nanos) {
        if self.parts.is_empty() {
            return;
        }
        if let Some(given_up) = self.shedding.given_up() {
            let cause = Cause::Exhausted { what: "the CPU time that the tracer may take".into() };
            self.gaps.push(Gap::detailed(Source::TraceBytes, cause, given_up));
        }
        let runs = self.parts.iter().fold(Runs::default(), |sum, running| sum.and(running.loaded.runs()));
        let programs = runs.cost(std::mem::replace(&mut self.runs, runs));
        let reading = Nanos(super::now(ClockId::ThreadCPUTime).0.saturating_sub(before.0));
        self.shedding.spent(programs, reading, Nanos(at.0.saturating_sub(self.since.0)));
        if self.control.shed != self.shedding.level() {
            self.control.shed = self.shedding.level();
            self.tell();
        }
    }
}

/// Returns whether a task may be preempted within a tracepoint: since 7.0, where tracepoints are under SRCU. If this is
/// wrong, the first missed event attaches the spare programs.
fn may_preempt_in_tracepoints(release: &str) -> bool {
    let major = release.split('.').next().and_then(|major| major.parse::<u32>().ok());
    major.is_some_and(|major| major >= 7)
}

/// Returns whether inodes may belong to cgroups. If that is not known, it is assumed.
fn may_have_cgroup_writeback(facts: &HostFacts) -> bool {
    facts.cgroups.v2_controllers_unread || facts.cgroups.has_unified_writeback()
}

/// Returns bounds of the machine's freerun ceiling, (thresh + bg_thresh) / 2. The ceiling moves with free memory, by
/// far less than an eighth between two samples.
fn machine_freerun(host: &HostRow) -> Option<(u64, u64)> {
    let (Some(Pages(thresh)), Some(Pages(bg_thresh))) = (host.nr_dirty_threshold, host.nr_dirty_background_threshold)
    else {
        return None;
    };
    let freerun = thresh.checked_add(bg_thresh)? / 2;
    Some((freerun - freerun / 8, freerun.saturating_add(freerun / 8)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machines_ceiling_is_known_with_both_thresholds() {
        let check = |thresh: Option<u64>, bg_thresh: Option<u64>, expect| {
            let (nr_dirty_threshold, nr_dirty_background_threshold) = (thresh.map(Pages), bg_thresh.map(Pages));
            let host = HostRow { nr_dirty_threshold, nr_dirty_background_threshold, ..HostRow::default() };
            assert_eq!(machine_freerun(&host), expect);
        };
        check(Some(20_000), Some(12_000), Some((14_000, 18_000)));
        check(Some(20_000), None, None);
        check(Some(u64::MAX), Some(1), None);
    }
}
