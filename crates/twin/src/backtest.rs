// SPDX-License-Identifier: MIT OR Apache-2.0
//! The back-test: the twin under the unchanged settings against its own recording, figure by figure.

use crate::noticed::least;
use crate::trial::Runner;
use crate::{Programs, Recorded, Twin, on_devices, run};
use floodline_analysis::budget::budgets;
use floodline_analysis::diagnose::derived::Derived;
use floodline_analysis::diagnose::{device, dirty};
use floodline_analysis::prediction::WAITS;
use floodline_record::id::Entity;
use floodline_record::programs::UNMOUNTERS;
use floodline_record::record::What;
use floodline_record::units::Nanos;
use floodline_record::version::KernelVersion;
use floodline_record::window::Window;
use floodline_scenario::{Scenario, Stalls};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

pub use floodline_analysis::prediction::MISS_MAX;

/// Waits of all tasks by the kernel's counters alone, in seconds.
const COUNTED: &str = "counted_wait_seconds";

/// Waits of all tasks of a run that the kernel's counters leave out, in seconds, where the recording has only the counters.
pub(crate) const UNCOUNTED: &str = "uncounted_wait_seconds";

/// A figure of a window.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Value {
    /// Value.
    pub value: f64,
    /// Unit: `seconds`, `bytes`, `bytes_per_second`, `count`.
    pub unit: &'static str,
}

/// A figure in the recording and in the twin.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// Name.
    pub name: String,
    /// Unit.
    pub unit: &'static str,
    /// Value in the recording.
    pub real: f64,
    /// Value in the run of the twin.
    pub simulated: f64,
    /// Error of the twin, as a share of the real value.
    pub off_share: f64,
}

impl Figure {
    /// Whether the twin is accurate enough for a prediction.
    pub fn is_predictable(&self) -> bool {
        self.off_share <= MISS_MAX
    }
}

/// The most relevant figures of a window. `programs` are those of a twin where the window is a run of one: its tasks
/// then have the names of the programs that they stand for. Bytes are over the whole window.
pub fn figures(window: &Window, programs: Option<&Programs>) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    let mut put = |name: String, unit: &'static str, value: Option<f64>| {
        if let Some(value) = value.filter(|value| value.is_finite()) {
            found.insert(name, Value { value, unit });
        }
    };
    let page = dirty::page_size(window) as f64;
    let host = &window.host.growth;
    put("host.dirtied_bytes".to_owned(), "bytes", host.nr_dirtied.map(|pages| pages.0 as f64 * page));
    put("host.written_bytes".to_owned(), "bytes", host.nr_written.map(|pages| pages.0 as f64 * page));
    let levels = || {
        window
            .host_series
            .iter()
            .filter_map(|(_, row)| Some((row.nr_dirty?.0 + row.nr_writeback.map_or(0, |pages| pages.0)) as f64 * page))
    };
    put("host.unwritten_peak_bytes".to_owned(), "bytes", levels().reduce(f64::max));
    put("host.io_pressure_seconds".to_owned(), "seconds", host.psi_io_some.map(|time| time.as_secs_f64()));
    let drains = device::drains(window);
    let sum = |of: fn(&device::Device<'_>) -> Option<f64>| drains.iter().filter_map(of).reduce(|a, b| a + b);
    put("devices.written_bytes".to_owned(), "bytes", sum(|drain| Some(drain.span.growth.written?.0 as f64)));
    // Some arrays count what they write and not for how long, not even since the boot. A disk that writes a little now and then
    // may count no time in the recording.
    let is_uncounted = |drain: &device::Device<'_>| {
        let span = &drain.span;
        span.growth.written.is_some_and(|written| written.0 > 0) && span.last.io_time.is_some_and(|time| time.0 == 0)
    };
    let busy = sum(|drain| Some(drain.span.growth.io_time?.as_secs_f64()));
    put("devices.busy_seconds".to_owned(), "seconds", busy.filter(|_| !drains.iter().any(is_uncounted)));
    waits(window, &mut put);
    put("longest_write_wait_seconds".to_owned(), "seconds", longest_write(window));
    put("umount.longest_wait_seconds".to_owned(), "seconds", longest_unmount(window));
    by_program(window, programs, &mut put);
    for cgroup in &budgets(window).cgroups {
        let bytes = cgroup.domain.thresh.and_then(floodline_analysis::budget::Bound::exact);
        put(
            format!("budget.{}.bytes", cgroup_name(&cgroup.path.to_string())),
            "bytes",
            bytes.map(|bytes| bytes.0 as f64),
        );
    }
    found
}

/// Waits for stable storage: as measured by the tasks themselves, else as counted by a trace.
fn waits(window: &Window, put: &mut impl FnMut(String, &'static str, Option<f64>)) {
    let (mut longest, mut p99, mut p90, mut seen) = (0.0_f64, 0.0_f64, 0.0_f64, false);
    for event in &window.events {
        if let What::TaskOperations { operation, latency, count, .. } = &event.what
            && matches!(operation.as_str(), "fsync" | "fdatasync" | "msync" | "sync" | "syncfs")
            && *count > 0
        {
            longest = longest.max(latency.max.as_secs_f64());
            p99 = p99.max(latency.p99.as_secs_f64());
            p90 = p90.max(latency.p90.as_secs_f64());
            seen = true;
        }
    }
    if seen {
        put("durable.longest_wait_seconds".to_owned(), "seconds", Some(longest));
        put("durable.p99_wait_seconds".to_owned(), "seconds", Some(p99));
        put("durable.p90_wait_seconds".to_owned(), "seconds", Some(p90));
        return;
    }
    let synced = window.events.iter().filter_map(|event| match &event.what {
        What::Synced(synced) => Some(synced.longest.as_secs_f64()),
        _ => None,
    });
    put("durable.longest_wait_seconds".to_owned(), "seconds", synced.reduce(f64::max));
}

/// The longest unmount of an overlay: as tasks measured it, else as samples or a trace show it.
fn longest_unmount(window: &Window) -> Option<f64> {
    let measured = window.events.iter().filter_map(|event| match &event.what {
        What::TaskOperations { operation, latency, count, .. } if *count > 0 && operation == "umount" => {
            Some(latency.max.as_secs_f64())
        }
        _ => None,
    });
    let derived = Derived::of(window);
    let seen = || derived.unmounts().noticed.iter().map(|one| &one.seen).filter(|seen| seen.is_happening());
    measured.reduce(f64::max).or_else(|| seen().map(|seen| seen.seconds).reduce(f64::max))
}

/// Seconds that unmounts of overlays waited, in all. The kernel counts no I/O delay while they wait for a flusher.
fn in_unmounts(window: &Window) -> f64 {
    let measured = window.events.iter().filter_map(|event| match &event.what {
        What::TaskStall { operation, lasted, .. } if operation == "umount" => Some(lasted.as_secs_f64()),
        _ => None,
    });
    let derived = Derived::of(window);
    let seen = || derived.unmounts().noticed.iter().map(|one| &one.seen).filter(|seen| seen.is_happening());
    measured.reduce(|a, b| a + b).unwrap_or_else(|| seen().map(|seen| seen.umounts as f64 * seen.seconds).sum())
}

/// Waits of all tasks as they measured them themselves, in seconds; `None` where they measured nothing. The kernel's counters
/// leave out what waits for a lock or for another task, and everything without delay accounting.
fn measured_waits(window: &Window) -> Option<f64> {
    let is_measured = |what: &What| matches!(what, What::TaskStall { .. } | What::TaskOperations { .. });
    let waits = || Stalls::of(&window.events).waits().flat_map(|(_, waits)| waits);
    // Whole numbers: the order of names does not matter.
    let nanos = || waits().fold(0_u64, |sum, (begin, end)| sum.saturating_add(end.0.saturating_sub(begin.0)));
    let seconds = || Nanos(nanos()).as_secs_f64();
    window.events.iter().any(|event| is_measured(&event.what)).then(seconds)
}

/// Makes the total of waits of a run the one that its recording has: where no task of the recording measured its waits,
/// the kernel's counters.
pub(crate) fn like(recording: &Window, figures: &mut BTreeMap<String, f64>) {
    let counted = figures.remove(COUNTED);
    if measured_waits(recording).is_none()
        && let Some(counted) = counted
    {
        let all = figures.insert(WAITS.to_owned(), counted);
        figures.insert(UNCOUNTED.to_owned(), all.map_or(0.0, |all| (all - counted).max(0.0)));
    }
}

/// The longest write call or store, if tasks measured them themselves.
fn longest_write(window: &Window) -> Option<f64> {
    let longest = window.events.iter().filter_map(|event| match &event.what {
        What::TaskOperations { operation, latency, count, .. } if *count > 0 => {
            matches!(operation.as_str(), "write" | "mmap_store").then(|| latency.max.as_secs_f64())
        }
        _ => None,
    });
    longest.reduce(f64::max)
}

/// Activity of each program, all its processes together.
fn by_program(window: &Window, programs: Option<&Programs>, put: &mut impl FnMut(String, &'static str, Option<f64>)) {
    let first = window.first_at.map_or(Nanos(0), |first| first.monotonic);
    let mut sums: BTreeMap<String, [Option<f64>; 3]> = BTreeMap::new();
    let mut parents: BTreeSet<String> = BTreeSet::new();
    let (mut waited, mut is_read) = (0.0, false);
    // Without delay accounting the kernel leaves the counter at zero.
    let has_delays = window.facts.as_ref().is_some_and(|facts| facts.task_delayacct == Some(true));
    for (id, span) in &window.processes {
        let Some(Entity::Process { comm, kthread: false, start_ticks, .. }) = window.entities.get(id) else { continue };
        // Counters of a process started within the window began at zero.
        let is_born = programs.is_none() && start_ticks.saturating_mul(10_000_000) >= first.0;
        let grew = |growth: Option<u64>, first: Option<u64>| -> Option<f64> {
            let before = if is_born { first.unwrap_or(0) } else { 0 };
            (growth.is_some() || is_born).then(|| growth.unwrap_or(0).saturating_add(before) as f64)
        };
        let (growth, first) = (&span.growth, &span.first);
        let dirtied = grew(growth.write_bytes.map(|n| n.0), first.write_bytes.map(|n| n.0));
        let called = grew(growth.wchar.map(|n| n.0), first.wchar.map(|n| n.0));
        let delay = grew(growth.blkio_delay.map(|n| n.0), first.blkio_delay.map(|n| n.0))
            .filter(|_| has_delays && !UNMOUNTERS.contains(&comm.as_bytes()))
            .map(|ns| ns / 1e9);
        if let Some(delay) = delay {
            waited += delay;
            is_read = true;
        }
        let name = match programs {
            None => comm.to_string(),
            Some(programs) => match programs.get(&comm.to_string()) {
                Some(program) => program.comm.clone(),
                None => continue,
            },
        };
        // The kernel adds the counters of children to those of the parent that waits for them: they would count twice.
        if growth.cminflt.is_some_and(|n| n.0 > 0) || growth.children_time.is_some_and(|time| time.0 > 0) {
            parents.insert(name.clone());
        }
        let sums = sums.entry(name).or_default();
        for (sum, value) in sums.iter_mut().zip([dirtied, called, delay]) {
            if let Some(value) = value {
                *sum = Some(sum.unwrap_or(0.0) + value);
            }
        }
    }
    let counted = is_read.then_some(waited + in_unmounts(window));
    put(WAITS.to_owned(), "seconds", counted.into_iter().chain(measured_waits(window)).reduce(f64::max));
    put(COUNTED.to_owned(), "seconds", counted);
    sums.retain(|name, _| !parents.contains(name));
    for (name, [dirtied, _, delay]) in sums {
        put(format!("program.{name}.dirtied_bytes"), "bytes", dirtied);
        put(format!("program.{name}.waited_seconds"), "seconds", delay);
    }
}

/// A path as a part of a name of a figure; the twin's names have no unusual signs.
fn cgroup_name(path: &str) -> String {
    path.trim_start_matches('/').to_owned()
}

/// Compares a run of a twin with its recording.
pub fn backtest(real: &Window, simulated: &Window, programs: &Programs) -> Vec<Figure> {
    let values = |window: &Window, is_run: bool| -> BTreeMap<String, f64> {
        let all = figures(window, is_run.then_some(programs));
        let mut values: BTreeMap<String, f64> = all.into_iter().map(|(name, figure)| (name, figure.value)).collect();
        values.extend(on_devices::figures(window, &values, programs, is_run));
        values
    };
    let mut of_run = values(simulated, true);
    like(real, &mut of_run);
    let units = figures(real, None);
    values(real, false)
        .into_iter()
        .filter_map(|(name, real)| {
            let simulated = *of_run.get(&name)?;
            let off_share = off(real, simulated, least(&name));
            // Waits on single disks have no other unit.
            let unit = units.get(&name).map_or("seconds", |value| value.unit);
            Some(Figure { name, unit, real, simulated, off_share })
        })
        .collect()
}

/// Difference relative to the real value, or to the least difference that people notice if that is larger.
fn off(real: f64, simulated: f64, least: f64) -> f64 {
    (simulated - real).abs() / real.abs().max(least)
}

/// The back-test of one of the scenarios of a twin.
#[derive(Clone, Debug)]
pub struct Tested<'a> {
    /// `open` or `closed`; `traced` where there is one.
    pub demand: &'static str,
    /// The kernel of the recording, where the twin runs on another one: then the differences are the kernel's too, and
    /// no back-test.
    pub recorded_on: Option<KernelVersion>,
    /// The scenario.
    pub scenario: &'a Scenario,
    /// Its figures, or the reason why it could not be run.
    pub figures: Result<Vec<Figure>, String>,
}

/// Runs each scenario of a twin under the unchanged settings. Results are in the order of the scenarios.
pub fn test<'a>(recorded: &Recorded, twin: &'a Twin, runner: &mut impl Runner) -> Vec<Tested<'a>> {
    let kernel = recorded.window.facts.as_ref().and_then(|facts| facts.kernel);
    let recorded_on = kernel.filter(|kernel| *kernel != twin.kernel);
    let test = |&(demand, scenario): &(&'static str, &'a Scenario)| {
        let compared = |simulated: &Window| backtest(&recorded.window, simulated, &twin.programs);
        let figures = match twin.known.window(scenario, twin.kernel, twin.sampling()) {
            Some(known) => Ok(compared(known)),
            None => run::run(scenario, twin.kernel, twin.sampling())
                .map(|simulated| compared(&simulated))
                .map_err(|error| error.to_string()),
        };
        Tested { demand, recorded_on, scenario, figures }
    };
    let all: Vec<_> = std::iter::once((twin.demand.name(), &twin.scenario)).chain(twin.demand.other()).collect();
    runner.each(&all, test)
}

/// Median error of what was simulated; `None` without such a figure. Every command says this one. Limits of cgroups are
/// arithmetic: hundreds of them would hide the error of the simulated figures.
pub fn simulated_error(figures: &[Figure]) -> Option<f64> {
    let simulated: Vec<Figure> = figures.iter().filter(|one| !one.name.starts_with("budget.")).cloned().collect();
    (!simulated.is_empty()).then(|| median_error(&simulated))
}

/// Median of the errors of all figures; 0 without figures.
pub fn median_error(figures: &[Figure]) -> f64 {
    let mut errors: Vec<f64> = figures.iter().map(|figure| figure.off_share).collect();
    errors.sort_by(f64::total_cmp);
    match errors.len() {
        0 => 0.0,
        n if n % 2 == 1 => errors[n / 2],
        n => (errors[n / 2 - 1] + errors[n / 2]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_cgroups_do_not_hide_the_error_of_what_was_simulated() {
        let figure = |name: &str, off_share| Figure {
            name: name.to_owned(),
            unit: "bytes",
            real: 1.0,
            simulated: 1.0,
            off_share,
        };
        let all = [figure("budget.a.bytes", 0.0), figure("budget.b.bytes", 0.0), figure("host.dirtied_bytes", 0.4)];
        assert_eq!(simulated_error(&all), Some(0.4));
        assert_eq!(simulated_error(&all[..2]), None);
    }

    #[test]
    fn an_array_that_counts_no_time_hides_the_busy_time_of_all() {
        use floodline_record::units::Bytes;
        let has_busy = |io_time: u64| {
            let little = move |t: f64, row: &mut floodline_record::sample::DiskRow| {
                row.written = Some(Bytes(4096 * t as u64));
                row.io_time = Some(Nanos(io_time));
            };
            let window = floodline_testkit::Fixture::healthy().disk("sdb", little).window();
            figures(&window, None).contains_key("devices.busy_seconds")
        };
        assert!(has_busy(4_000_000), "a disk that writes a page a second");
        assert!(!has_busy(0));
    }

    #[test]
    fn a_run_has_the_waits_that_its_recording_has() {
        let of = |recording: &Window| {
            let mut figures = BTreeMap::from([(WAITS.to_owned(), 60.0), (COUNTED.to_owned(), 10.0)]);
            like(recording, &mut figures);
            assert!(!figures.contains_key(COUNTED));
            figures[WAITS]
        };
        assert_eq!(of(&Window::default()), 10.0, "the kernel's counters");
        let mut measured = floodline_testkit::Fixture::healthy().window();
        assert_eq!(measured_waits(&measured), None);
        let what = What::TaskStall {
            task: floodline_record::record::TaskName { task: "w".into(), copy: 0 },
            operation: "fsync".into(),
            lasted: Nanos(3_000_000_000),
        };
        measured.events.push(floodline_record::record::Event { at: Nanos(2_000_000), what });
        assert_eq!((measured_waits(&measured), of(&measured)), (Some(3.0), 60.0));
        // The creation of the file that is synced.
        let what = What::TaskStall {
            task: floodline_record::record::TaskName { task: "w".into(), copy: 0 },
            operation: "create_files".into(),
            lasted: Nanos(3_100_000_000),
        };
        measured.events.push(floodline_record::record::Event { at: Nanos(1_000_000), what });
        assert_eq!(measured_waits(&measured), Some(3.1), "one wait");
        let what = What::TaskStall {
            task: floodline_record::record::TaskName { task: "w".into(), copy: 0 },
            operation: "burn".into(),
            lasted: Nanos(7_000_000_000),
        };
        measured.events.push(floodline_record::record::Event { at: Nanos(9_000_000_000), what });
        assert_eq!(measured_waits(&measured), Some(3.1), "a task that uses a CPU does not wait");
    }
}
