// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine to be looked at: this one, or a captured tree. Opening it probes it; the records of a
//! look begin with what the probe found, so that a stream of them is a whole recording.

use crate::error::CliError;
use crate::input::shown;
use crate::observe::{Schedule, parse_interval};
use floodline_host::apart::Apart;
use floodline_host::trace::{Budget, Tracer, Traces, is_proved};
use floodline_host::{Collector, HostRoot, Needs, Plan, Probe};
use floodline_kernel::FLUSH_TIME;
use floodline_record::capability::Capabilities;
use floodline_record::facts::HostFacts;
use floodline_record::gap::{Cause, Gap};
use floodline_record::id::Entity;
use floodline_record::record::Record;
use floodline_record::units::Nanos;
use std::path::Path;
use std::time::Duration;

/// Whether the kernel is traced too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Trace {
    /// Trace what is available and report the rest as not checked, on kernel series where the tracer is proven
    #[default]
    Auto,
    /// Fail if tracing is not possible
    On,
    /// Read files only
    Off,
}

/// Help of `--every`, whose default differs between commands.
pub(crate) const EVERY: &str =
    "Time between two samples. On Linux 6.9 and later, less than 2s makes starved cgroups write more";

/// How often the files are read for which the kernel adds up counters.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(crate) struct StatReads {
    /// Least time between two reads of memory.stat and io.stat, at most 2s [default: read in each sample]
    ///
    /// Each read makes the kernel add up the counters of all cgroups. On Linux 6.9 and later, reads less than 2s apart make
    /// cgroups with small budgets write more. With fewer reads, such budgets are found less often, and some findings
    /// change. docs/serving.md has the figures.
    #[arg(long, value_name = "DURATION", value_parser = parse_stat_every)]
    stat_every: Option<Duration>,
}

/// Reads the time between two reads of `memory.stat`. Beyond `FLUSH_TIME` there is nothing to gain: the kernel adds up the
/// counters by itself.
fn parse_stat_every(text: &str) -> Result<Duration, String> {
    match parse_interval(text)? {
        every if every.as_nanos() > u128::from(FLUSH_TIME.0) => {
            Err("time too long: the maximum is 2s, after which the kernel adds up the counters by itself".to_owned())
        }
        every => Ok(every),
    }
}

impl StatReads {
    /// The plan with these reads.
    fn of(self, plan: Plan) -> Plan {
        let nanos = |every: Duration| u64::try_from(every.as_nanos()).unwrap_or(u64::MAX);
        plan.with_stat_every(Nanos(self.stat_every.map_or(0, nanos)))
    }
}

/// How the kernel is traced.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Tracing {
    /// Whether to also trace the kernel, with BPF programs that are removed on exit
    #[arg(long, value_name = "WHEN", value_enum, default_value_t)]
    trace: Trace,
    /// Limit on the tracer's CPU time, in percent of one core; the tracer drops detail before it exceeds the limit
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent)]
    trace_budget: Option<f64>,
}

/// Reads a share of a core.
fn parse_percent(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches('%').parse().ok();
    number
        .filter(|percent: &f64| percent.is_finite() && *percent >= 0.0)
        .ok_or_else(|| format!("invalid percentage {text:?}: expected a number such as 3 or 0.5"))
}

/// Samples after which new cgroups are a reason to ask again what the machine is.
const PROBE_EVERY: u32 = 30;

/// An opened machine.
pub(crate) struct Host {
    root: HostRoot,
    facts: HostFacts,
    gaps: Vec<Gap>,
}

impl Host {
    /// Opens this machine, or the tree at `root`.
    pub(crate) fn open(path: Option<&Path>) -> Result<Host, CliError> {
        floodline_host::collect::raise_descriptor_limit();
        let opened = match path {
            Some(path) => HostRoot::at(path),
            None => HostRoot::live(),
        };
        let root = opened.map_err(|error| {
            CliError::cannot_observe(error).hint("--root expects the folder that contains a captured proc and sys")
        })?;
        let Probe { facts, gaps } = floodline_host::probe(&root);
        if facts.kernel_release.is_empty() && facts.mem_total.is_none() {
            return Err(match path {
                None => CliError::cannot_observe("/proc is not readable").hint("mount it: mount -t proc proc /proc"),
                Some(path) => CliError::cannot_observe(format!("{} contains no readable proc", shown(path)))
                    .hint("--root expects the folder that contains a captured proc and sys"),
            });
        }
        Ok(Host { root, facts, gaps })
    }

    /// Something that appends the records of one look each time it is called; the first look begins
    /// with what the machine is.
    pub(crate) fn looks(&self, needs: Needs, reads: StatReads, tracer: Option<Tracer>) -> impl FnMut(&mut Vec<Record>) {
        let mut collector = Collector::new(&self.root, reads.of(Plan::for_needs(&self.facts, needs)));
        if !needs.budget_only {
            collector = collector.with_later_overlays(&self.facts);
        }
        if let Some(tracer) = tracer {
            collector = collector.with_tracer(tracer);
        }
        let mut preface = Some((self.facts.clone(), self.gaps.clone()));
        move |records| {
            if let Some((facts, gaps)) = preface.take() {
                records.push(Record::Facts(Box::new(facts)));
                records.extend(gaps.into_iter().map(Record::Gap));
            }
            collector.collect(records);
        }
    }

    /// The tracer, where one is wanted and can be; a captured tree has no kernel to trace. It sees what happens
    /// between two samples: where there will be one, it is not started unasked, and that is a gap.
    pub(crate) fn tracer(&mut self, tracing: Tracing, schedule: Schedule) -> Result<Option<Tracer>, CliError> {
        if tracing.trace == Trace::Auto && self.root.is_live() && schedule.is_one_sample() {
            let too_short = || Cause::TooShort { need: "--for 10s".into() };
            self.gaps.extend(Tracer::sources().map(|source| Gap::new(source, too_short())));
            return Ok(None);
        }
        let budget = tracing.trace_budget.map(|percent| Budget(percent / 100.0));
        let within = |tracer: Tracer| match budget {
            Some(budget) => tracer.with_budget(budget),
            None => tracer,
        };
        Ok(self.started(tracing.trace)?.map(within))
    }

    fn started(&self, trace: Trace) -> Result<Option<Tracer>, CliError> {
        match trace {
            Trace::Off => Ok(None),
            Trace::Auto if !self.root.is_live() => Ok(None),
            Trace::Auto if !is_proved(&self.facts.kernel_release) => Ok(Some(Tracer::not_asked_for())),
            Trace::Auto => Ok(Some(Tracer::start(&self.root, &self.facts))),
            Trace::On if !self.root.is_live() => Err(CliError::usage("a captured tree cannot be traced")
                .hint("omit --trace on, or observe this machine without --root")),
            Trace::On => {
                let tracer = Tracer::start(&self.root, &self.facts);
                // What a kernel was built without, or a detail of a part that works, cannot be asked of it.
                let is_asked = |gap: &&Gap| gap.detail.is_none() && !matches!(gap.cause, Cause::Unsupported { .. });
                let missing = tracer.gaps().iter().find(is_asked);
                match missing.or_else(|| tracer.gaps().first().filter(|_| tracer.parts().count() == 0)) {
                    None => Ok(Some(tracer)),
                    Some(gap) => Err(CliError::cannot_observe(format!("cannot trace: {gap}"))
                        .hint("floodline doctor --capabilities lists what can be traced here")
                        .hint("--trace auto continues without tracing")),
                }
            }
        }
    }

    /// The same, by a process of its own where there is one.
    fn traced(&self, trace: Trace, loader: Option<&Apart>, facts: &HostFacts) -> Option<Box<dyn Traces>> {
        let is_known = trace == Trace::On || is_proved(&facts.kernel_release);
        match loader {
            Some(loader) if is_known && self.root.is_live() => Some(Box::new(loader.start(facts))),
            _ => Some(Box::new(self.started(trace).ok().flatten()?)),
        }
    }

    /// Returns a function that appends the records of one sample per call, and traces the kernel while its argument is
    /// true. The host facts are read again from time to time, so that containers that appear later are named too. If
    /// there is a loader, that process traces.
    pub(crate) fn samples_traced_at_times(
        &self,
        reads: StatReads,
        trace: Trace,
        loader: Option<Apart>,
    ) -> impl FnMut(&mut Vec<Record>, bool) {
        let mut collector = Collector::new(&self.root, reads.of(Plan::for_needs(&self.facts, Needs::ALL)));
        let mut facts = self.facts.clone();
        let mut preface = Some((self.facts.clone(), self.gaps.clone()));
        let (mut since_probe, mut is_new) = (0_u32, false);
        move |records, wants_trace| {
            if let Some((facts, gaps)) = preface.take() {
                records.push(Record::Facts(Box::new(facts)));
                records.extend(gaps.into_iter().map(Record::Gap));
            }
            let wants_trace = trace == Trace::On || wants_trace && trace == Trace::Auto;
            if wants_trace != collector.has_tracer() {
                let tracer = wants_trace.then(|| self.traced(trace, loader.as_ref(), &facts)).flatten();
                collector.set_tracer(tracer);
            }
            since_probe += 1;
            if is_new && since_probe >= PROBE_EVERY {
                (since_probe, is_new) = (0, false);
                let now = floodline_host::probe(&self.root).facts;
                if now != facts {
                    facts = now;
                    records.push(Record::Facts(Box::new(facts.clone())));
                }
            }
            let before = records.len();
            collector.collect(records);
            is_new |=
                records.iter().skip(before).any(|record| matches!(record, Record::Entity(_, Entity::Cgroup { .. })));
        }
    }

    /// Fails where tracing was asked for and is not possible.
    pub(crate) fn check_trace(&self, trace: Trace) -> Result<(), CliError> {
        if trace == Trace::On { self.started(trace).map(drop) } else { Ok(()) }
    }

    /// Whether it is the machine that this program runs on.
    pub(crate) fn is_live(&self) -> bool {
        self.root.is_live()
    }

    /// What can be seen of it, from one look at everything.
    pub(crate) fn capabilities(&self) -> Capabilities {
        let mut records = Vec::new();
        let mut collector = Collector::new(&self.root, Plan::for_needs(&self.facts, Needs::ALL));
        collector.collect(&mut records);
        let tracer = self.root.is_live().then(|| Tracer::start(&self.root, &self.facts));
        let of_look = records.into_iter().filter_map(|record| match record {
            Record::Gap(gap) => Some(gap),
            _ => None,
        });
        let gaps: Vec<Gap> = self.gaps.iter().cloned().chain(of_look).collect();
        let plan = Plan::for_needs(&self.facts, Needs::ALL);
        floodline_host::trace::capabilities(&self.root, &self.facts.kernel_release, &plan, &gaps, tracer.as_ref())
    }
}
