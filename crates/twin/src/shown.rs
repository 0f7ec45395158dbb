// SPDX-License-Identifier: MIT OR Apache-2.0
//! One run of a twin and the figures people care about: how long durable writers wait, how long writers are stalled,
//! what is dirtied and written, how much is at risk, and how small budgets are. Also which rules find something in the
//! run.

use crate::backtest::{self, Figure};
use crate::changed::Changed;
use crate::limits::smallest;
use crate::noticed::least;
use crate::on_devices;
use crate::predict::horizon;
use crate::{Programs, Twin, run::Simulated};
use floodline_analysis::budget::budgets;
use floodline_analysis::diagnose::diagnose;
use floodline_analysis::prediction::{Better, Seen};
use floodline_analysis::report::Severity;
use floodline_analysis::run::figures as of_run;
use floodline_record::record::{Record, Sink, What};
use floodline_record::units::{BytesPerSecond, Nanos};
use floodline_record::window::Window;
use floodline_scenario::{ByteRate, IoRate, RequestsPerSecond, Scenario, Stalls, Time};
use floodline_sim::{Options, Progress, Sampling, SimError, simulate};
use serde::Serialize;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Operations after which data is durable.
const DURABLE: &[&str] = &["fsync", "fdatasync", "msync", "sync", "syncfs", "sync_file_range", "umount"];

/// Calls of which the longest is a figure of its program.
const SYNCS: &[&str] = &["fsync", "fdatasync", "msync", "sync", "syncfs"];

/// Name of the longest wait of a call that neither syncs nor writes data in a run, seconds: an unmount, a file that is emptied, removed,
/// closed or renamed.
pub const LONGEST_OTHER: &str = "longest_other_wait_seconds";

/// The calls of [`LONGEST_OTHER`]. The step `create_files` is not among them, because it includes the write calls that fill the files.
const OTHERS: &[&str] = &[
    "umount",
    "truncate",
    "open",
    "close",
    "unlink",
    "rename",
    "create",
    "fallocate",
    "sync_file_range",
    "mkdir",
    "rmdir",
];

/// Name of the longest sync of a program in a run, seconds.
pub fn longest_sync(comm: &str) -> String {
    format!("program.{comm}.longest_sync_seconds")
}

/// A figure that is predicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Named {
    /// Name in JSON; the unit is at its end.
    pub name: &'static str,
    /// Name for people.
    pub label: &'static str,
    /// Unit: `seconds` or `bytes`.
    pub unit: &'static str,
    /// Which direction is good.
    pub better: Better,
}

const fn named(name: &'static str, label: &'static str, unit: &'static str, better: Better) -> Named {
    Named { name, label, unit, better }
}

/// Every figure of the machine, in the order in which they are shown.
pub const FIGURES: &[Named] = &[
    named("durable.longest_wait_seconds", "longest fsync", "seconds", Better::Less),
    named("durable.p99_wait_seconds", "fsync, 99th percentile", "seconds", Better::Less),
    named("durable.p90_wait_seconds", "fsync, 90th percentile", "seconds", Better::Less),
    named("umount.longest_wait_seconds", "longest unmount", "seconds", Better::Less),
    named("longest_write_wait_seconds", "longest write call", "seconds", Better::Less),
    named("stall_seconds", "waits of all tasks", "seconds", Better::Less),
    named("host.unwritten_peak_bytes", "peak data at risk", "bytes", Better::Less),
    named("host.dirtied_bytes", "dirtied", "bytes", Better::Less),
    named("devices.written_bytes", "written to disks", "bytes", Better::Less),
    named("smallest_budget_bytes", "smallest cgroup limit", "bytes", Better::More),
];

/// The figure of a name.
pub fn figure(name: &str) -> Option<&'static Named> {
    FIGURES.iter().find(|figure| figure.name == name)
}

impl Named {
    /// The least difference that people notice, in the unit.
    pub fn least(&self) -> f64 {
        least(self.name)
    }
}

/// Figures of one run by name; throughput of programs as `program NAME`.
pub type Figures = BTreeMap<String, f64>;

/// What the rules say of a recording or of a run. A rule that is in no list finds nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Verdicts {
    /// Findings, warnings and worse.
    pub seen: Vec<Seen>,
    /// Rules whose findings are below a warning, so that `seen` leaves them out.
    pub slight: Vec<&'static str>,
    /// Rules that lacked an input, such as a trace or samples that are closer to each other.
    pub unchecked: Vec<&'static str>,
}

impl Verdicts {
    /// Whether a rule has a finding that hurts.
    pub fn has(&self, rule: &str) -> bool {
        self.seen.iter().any(|one| one.rule == rule)
    }

    /// Severity of the finding of a rule that hurts.
    pub fn severity(&self, rule: &str) -> Option<Severity> {
        self.seen.iter().find(|one| one.rule == rule).map(|one| one.severity)
    }

    /// Whether a rule lacked an input.
    pub fn lacks(&self, rule: &str) -> bool {
        self.unchecked.contains(&rule)
    }

    /// Whether a rule has a finding that is below a warning.
    pub fn is_slight(&self, rule: &str) -> bool {
        self.slight.contains(&rule)
    }
}

/// Results of one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Shown {
    /// Figures over the whole run.
    pub figures: Figures,
    /// Figures of each part of the run, in order of time: stalls, longest waits and data at risk.
    pub parts: Vec<Figures>,
    /// What the rules say of the run, as the recorder would see it; empty where the run was not diagnosed.
    pub said: Verdicts,
    /// The same with samples that are close enough to each other. Absent where those of the recorder are.
    pub close: Option<Box<Verdicts>>,
    /// Whether `go_on` ended the run early.
    pub is_cut: bool,
}

impl Shown {
    /// What happens in the run, whatever the recorder sees of it: a stall between two samples counts.
    pub fn closely(&self) -> &Verdicts {
        self.close.as_deref().unwrap_or(&self.said)
    }

    /// Keeps the total of waits that the recording has too: of tasks that measured their waits, or of the kernel's
    /// counters.
    pub fn like(&mut self, recording: &Window) {
        backtest::like(recording, &mut self.figures);
    }
}

/// Options of a run of a twin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Trial {
    /// Seed of everything random.
    pub seed: u64,
    /// Speed of all devices, percent of that of the twin.
    pub device_percent: u64,
    /// Whether the rules judge the run.
    pub diagnosed: bool,
}

impl Trial {
    /// The twin as it is.
    pub const NOMINAL: Trial = Trial { seed: 0, device_percent: 100, diagnosed: true };
}

/// Parts of a run.
pub const PARTS: usize = 4;

/// Runs a scenario of a twin, or takes the run that is known since the twin was made. Returns its figures, and its back-test
/// where `real` is the recording to compare it with.
///
/// # Errors
///
/// The simulator refuses the scenario or cannot finish it.
pub fn of_twin(
    twin: &Twin,
    changed: &Changed,
    trial: Trial,
    real: Option<&Window>,
    go_on: impl FnMut(&Progress) -> bool,
) -> Result<(Shown, Vec<Figure>), SimError> {
    let back_test = |simulated: &Window, shown: &Shown| match real.filter(|_| !shown.is_cut) {
        Some(real) => backtest::backtest(real, simulated, &twin.programs),
        None => Vec::new(),
    };
    let is_nominal = Trial { diagnosed: true, ..trial } == Trial::NOMINAL;
    let known = twin.known.window(&changed.scenario, changed.kernel, twin.sampling()).filter(|_| is_nominal);
    if let Some(window) = known.filter(|_| parts(twin.sampling(), trial) == 1) {
        let shown = of_window(window, trial, &twin.programs);
        let figures = back_test(window, &shown);
        return Ok((shown, figures));
    }
    let (shown, window) = run(changed, trial, twin.sampling(), &twin.programs, go_on)?;
    let figures = back_test(&window, &shown);
    Ok((shown, figures))
}

/// Runs a twin and returns its figures and its window. Calls `go_on` after every sample.
///
/// # Errors
///
/// The simulator refuses the scenario or cannot finish it.
pub fn run(
    changed: &Changed,
    trial: Trial,
    sampling: impl Into<Sampling>,
    programs: &Programs,
    go_on: impl FnMut(&Progress) -> bool,
) -> Result<(Shown, Window), SimError> {
    let sampling = sampling.into();
    let parts = parts(sampling, trial);
    let Windows { window, close, is_cut } = windows_of(changed, trial, sampling, parts, go_on)?;
    let shown = of_window(&window, trial, programs);
    let close = close.filter(|_| !is_cut).map(|close| Box::new(verdicts(&close)));
    Ok((Shown { is_cut, close, ..shown }, window))
}

/// Time between two samples at which no rule misses a stall.
const CLOSE: Nanos = Nanos::SECOND;

/// Number of parts of the time between two samples of which each has a sample, so that the rules miss no stall; 1 where those of the
/// recorder are close to each other, or where no rule judges the run.
fn parts(sampling: Sampling, trial: Trial) -> u64 {
    let parts = sampling.every.0.div_ceil(CLOSE.0);
    if trial.diagnosed && parts > 2 { parts } else { 1 }
}

/// One run, with the samples of its recorder and with all of them.
struct Windows {
    window: Window,
    /// Absent where the recorder takes all of them.
    close: Option<Window>,
    /// Whether `go_on` ended the run early.
    is_cut: bool,
}

/// Runs a scenario. The recorder takes one of `parts` samples. The others do not disturb the machine: the counters of cgroups are read
/// with its own samples only.
fn windows_of(
    changed: &Changed,
    trial: Trial,
    sampling: Sampling,
    parts: u64,
    go_on: impl FnMut(&Progress) -> bool,
) -> Result<Windows, SimError> {
    let scenario = varied(&changed.scenario, trial);
    let (mut seen, mut close) = (OneOf { parts, ..OneOf::default() }, Simulated::default());
    let all = match parts {
        1 => sampling,
        _ => Sampling { every: Nanos(sampling.every.0 / parts), stat_every: sampling.stat_every.max(sampling.every) },
    };
    let options =
        Options { ends_at_each: parts, samples_workload: true, ..Options::new("twin", changed.kernel).sampled(all) };
    let take = |record| {
        if parts > 1 {
            let Ok(()) = close.record(&record);
        }
        seen.take(record);
        Ok(())
    };
    let is_cut = simulate(&scenario, &options, take, go_on)?.is_interrupted;
    Ok(Windows { window: seen.finish(), close: (parts > 1).then_some(close.window), is_cut })
}

/// What a recorder has that takes one of some samples. Its records of events follow its next sample, as they do where it takes all of
/// them.
#[derive(Default)]
struct OneOf {
    parts: u64,
    samples: u64,
    simulated: Simulated,
    /// Events since its last sample.
    events: Vec<Record>,
}

impl OneOf {
    fn take(&mut self, record: Record) {
        let is_sample = matches!(record, Record::Sample(_));
        self.samples += u64::from(is_sample);
        match record {
            Record::Sample(_) if !self.is_at_sample() => return,
            Record::Event(_) if !self.is_at_sample() => return self.events.push(record),
            record => self.add(&record),
        }
        if is_sample {
            self.add_events();
        }
    }

    fn add(&mut self, record: &Record) {
        let Ok(()) = self.simulated.record(record);
    }

    fn add_events(&mut self) {
        for event in std::mem::take(&mut self.events) {
            self.add(&event);
        }
    }

    /// Whether the newest sample is one of the recorder.
    fn is_at_sample(&self) -> bool {
        self.samples.saturating_sub(1).is_multiple_of(self.parts.max(1))
    }

    /// The window. A run that was cut ends between two samples of the recorder.
    fn finish(mut self) -> Window {
        self.add_events();
        self.simulated.window
    }
}

fn of_window(window: &Window, trial: Trial, programs: &Programs) -> Shown {
    let said = if trial.diagnosed { verdicts(window) } else { Verdicts::default() };
    Shown { figures: figures(window, programs), parts: of_parts(window), said, ..Shown::default() }
}

/// The scenario of a trial. A scenario of hundreds of cgroups is copied only where it differs.
fn varied(scenario: &Scenario, trial: Trial) -> Cow<'_, Scenario> {
    if trial.seed == 0 && trial.device_percent == 100 {
        return Cow::Borrowed(scenario);
    }
    let mut varied = scenario.clone();
    varied.workload.seed = varied.workload.seed.wrapping_add(trial.seed);
    faster(&mut varied, trial.device_percent);
    Cow::Owned(varied)
}

/// Makes all devices faster or slower.
fn faster(scenario: &mut Scenario, percent: u64) {
    if percent == 100 {
        return;
    }
    let scaled = |value: u64| (u128::from(value) * u128::from(percent) / 100).clamp(1, u128::from(u64::MAX)) as u64;
    let rate = |rate: &mut Option<ByteRate>| {
        if let Some(ByteRate(BytesPerSecond(bytes))) = rate {
            *bytes = scaled(*bytes);
        }
    };
    let requests = |rate: &mut Option<IoRate>| {
        if let Some(IoRate(RequestsPerSecond(requests))) = rate {
            *requests = scaled(*requests);
        }
    };
    for device in scenario.machine.devices.values_mut() {
        rate(&mut device.write_bandwidth);
        rate(&mut device.read_bandwidth);
        rate(&mut device.bandwidth);
        rate(&mut device.read_stream);
        requests(&mut device.write_iops);
        requests(&mut device.read_iops);
        requests(&mut device.iops);
        if let Some(Time(Nanos(latency))) = &mut device.latency {
            *latency = (u128::from(*latency) * 100 / u128::from(percent.max(1))).clamp(1, u128::from(u64::MAX)) as u64;
        }
    }
}

/// Rules with a finding that hurts.
pub fn seen(window: &Window) -> Vec<Seen> {
    verdicts(window).seen
}

/// What the rules say of a window.
pub fn verdicts(window: &Window) -> Verdicts {
    let mut seen: Vec<Seen> = Vec::new();
    let report = diagnose(window, None);
    for finding in &report.findings {
        if finding.severity >= Severity::Warning && !seen.iter().any(|known| known.rule == finding.rule) {
            seen.push(Seen { rule: finding.rule, severity: finding.severity });
        }
    }
    let hurts = |rule: &str| seen.iter().any(|one| one.rule == rule);
    let slight = report.findings.iter().map(|finding| finding.rule).filter(|rule| !hurts(rule)).collect();
    let unchecked = report.not_checked.iter().map(|one| one.rule).collect();
    Verdicts { seen, slight, unchecked }
}

/// The figures of a simulated run: those of the back-test, and those that only a run provides.
pub fn figures(window: &Window, programs: &Programs) -> Figures {
    let mut figures = every(window, Some(programs));
    figures.extend(on_devices::figures(window, &figures, programs, true));
    figures.extend(horizon::left(window));
    figures.extend(longest_other(window).map(|seconds| (LONGEST_OTHER.to_owned(), seconds)));
    let of_run = of_run(window);
    for (task, program) in programs {
        let rate = |operation: &str| of_run.get(&format!("{task}.{operation}.bytes_per_second")).map(|rate| rate.value);
        if let Some(rate) = ["write", "mmap_store"].into_iter().filter_map(rate).reduce(|a, b| a + b) {
            *figures.entry(format!("program {}", program.comm)).or_default() += rate;
        }
        let longest = |operation: &&str| of_run.get(&format!("{task}.{operation}.max_seconds")).map(|max| max.value);
        if let Some(longest) = SYNCS.iter().filter_map(longest).reduce(f64::max) {
            let of_program = figures.entry(longest_sync(&program.comm)).or_default();
            *of_program = of_program.max(longest);
        }
    }
    figures
}

/// The longest wait of a call that neither syncs nor writes data, as tasks measured it.
fn longest_other(window: &Window) -> Option<f64> {
    let longest = window.events.iter().filter_map(|event| match &event.what {
        What::TaskOperations { operation, latency, count, .. } if *count > 0 => {
            OTHERS.contains(&operation.as_str()).then(|| latency.max.as_secs_f64())
        }
        _ => None,
    });
    longest.reduce(f64::max)
}

/// The same figures of a recording, to compare predictions with; without throughput of programs.
pub fn of_recording(window: &Window) -> Figures {
    let mut figures = every(window, None);
    backtest::like(window, &mut figures);
    figures
}

fn every(window: &Window, programs: Option<&Programs>) -> Figures {
    let tested = backtest::figures(window, programs);
    let mut figures: Figures = tested.into_iter().map(|(name, figure)| (name, figure.value)).collect();
    figures.extend(smallest_budget(window).map(|bytes| ("smallest_budget_bytes".to_owned(), bytes)));
    figures
}

/// The smallest hard threshold of a cgroup that has dirty pages of its own.
pub fn smallest_budget(window: &Window) -> Option<f64> {
    smallest(&budgets(window))
}

/// The figures of each part of a run that depend on the moment: stalls and data at risk.
fn of_parts(window: &Window) -> Vec<Figures> {
    let (Some(first), Some(last)) = (window.first_at, window.last_at) else { return Vec::new() };
    let (from, length) = (first.monotonic.0, last.monotonic.0.saturating_sub(first.monotonic.0).max(1));
    let part = |at: u64| {
        let part = u128::from(at.saturating_sub(from)) * PARTS as u128 / u128::from(length);
        (part as usize).min(PARTS - 1)
    };
    let mut parts = vec![Figures::new(); PARTS];
    for part in &mut parts {
        part.insert("durable.longest_wait_seconds".to_owned(), 0.0);
    }
    for event in &window.events {
        let What::TaskStall { operation, lasted, .. } = &event.what else { continue };
        if DURABLE.contains(&operation.as_str()) {
            let longest = parts[part(event.at.0)].entry("durable.longest_wait_seconds".to_owned()).or_default();
            *longest = longest.max(lasted.as_secs_f64());
        }
    }
    let mut stalled = [0_u64; PARTS];
    for (begin, end) in Stalls::of(&window.events).waits().flat_map(|(_, waits)| waits) {
        let sum = &mut stalled[part(begin.0)];
        *sum = sum.saturating_add(end.0.saturating_sub(begin.0));
    }
    for (part, nanos) in parts.iter_mut().zip(stalled) {
        part.insert("stall_seconds".to_owned(), Nanos(nanos).as_secs_f64());
    }
    let page = window.facts.as_ref().map_or(4096, |facts| facts.page_size.max(1)) as f64;
    for (time, row) in &window.host_series {
        if let Some(dirty) = row.nr_dirty {
            let at_risk = dirty.0.saturating_add(row.nr_writeback.map_or(0, |pages| pages.0));
            let peak = parts[part(time.monotonic.0)].entry("host.unwritten_peak_bytes".to_owned()).or_default();
            *peak = peak.max(at_risk as f64 * page);
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Program;
    use floodline_record::version::KernelVersion;
    use floodline_scenario::ScenarioFile;

    #[test]
    fn samples_between_those_of_the_recorder_change_none_of_its_figures() {
        // The setup ends between two samples of the recorder.
        let text = r#"
            name = "prepared"
            summary = "A setup that writes far more than the workload"
            [machine]
            memory = "2 GiB"
            cpus = 1
            [machine.devices.vda]
            size = "8 GiB"
            write_bandwidth = "40 MB/s"
            read_bandwidth = "40 MB/s"
            [machine.mounts."/data"]
            type = "ext4"
            device = "vda"
            [workload]
            duration = "20 s"
            [workload.tasks.one]
            setup = [
                { sleep = { for = "1300ms" } },
                { write = { file = "/data/big", total = "200 MiB", block = "1 MiB" } },
                { fsync = { file = "/data/big" } },
            ]
            steps = [{ repeat = { steps = [{ write = { file = "/data/x", total = "1 MiB" } }, { sleep = { for = "700ms" } }] } }]
        "#;
        let scenario = ScenarioFile::parse(text).unwrap().variants.remove("default").unwrap();
        let changed = Changed { scenario, kernel: KernelVersion::new(6, 12, 0) };
        let sampling = Sampling::from(Nanos::from_millis(5000));
        let seen = |diagnosed| {
            let trial = Trial { diagnosed, ..Trial::NOMINAL };
            run(&changed, trial, sampling, &Programs::new(), |_| true).expect("it runs")
        };
        let ((alone, of_alone), (among, of_among)) = (seen(false), seen(true));
        assert!(alone.close.is_none() && among.close.is_some());
        assert_eq!(of_alone.samples, of_among.samples);
        assert_eq!(alone.figures, among.figures);
        assert!(alone.figures["host.dirtied_bytes"] < f64::from(40 << 20), "{alone:?}");
    }

    #[test]
    fn the_longest_sync_is_known_of_each_program() {
        let text = r#"
            name = "syncs"
            summary = "A program that syncs what another one writes"
            [machine]
            memory = "2 GiB"
            cpus = 1
            [machine.devices.vda]
            size = "8 GiB"
            write_bandwidth = "40 MB/s"
            [machine.mounts."/data"]
            type = "ext4"
            device = "vda"
            [workload]
            duration = "8 s"
            [workload.tasks.a]
            steps = [{ write = { file = "/data/x", total = "60 MiB", block = "1 MiB" } }]
            [workload.tasks.b]
            steps = [{ sleep = { for = "2 s" } }, { syncfs = { path = "/data" } }]
        "#;
        let scenario = ScenarioFile::parse(text).unwrap().variants.remove("default").unwrap();
        let changed = Changed { scenario, kernel: KernelVersion::new(6, 12, 0) };
        let program =
            |comm: &str| Program { comm: comm.to_owned(), cgroup: "/".to_owned(), processes: 1, device: String::new() };
        let programs = Programs::from([("a".to_owned(), program("dump")), ("b".to_owned(), program("snap"))]);
        let (shown, _) = run(&changed, Trial::NOMINAL, Nanos::SECOND, &programs, |_| true).expect("it runs");
        let longest = |comm: &str| shown.figures.get(&longest_sync(comm)).copied();
        assert!(longest("snap").is_some_and(|seconds| seconds > 0.5), "{shown:?}");
        assert_eq!(
            (longest("snap"), longest("dump")),
            (shown.figures.get("durable.longest_wait_seconds").copied(), None)
        );
    }
}
