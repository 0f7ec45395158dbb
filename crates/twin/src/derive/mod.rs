// SPDX-License-Identifier: MIT OR Apache-2.0
//! From a recording to a scenario: first the machine, then what ran on it.

mod asked;
mod beyond;
mod bursts;
mod callers;
mod calls;
mod ceiling_text;
mod cgroups;
mod choices;
mod credit;
mod devices;
mod direct;
mod drained;
mod folios;
mod group;
mod heaps;
mod held;
mod latency;
mod layers;
mod left_dirty;
mod machine;
mod made;
mod mapped_files;
pub(crate) mod names;
mod nearer;
mod needed;
mod pace;
mod paged_in;
mod places;
mod reads;
mod removals;
mod repeats;
mod replaced;
mod requests;
mod residence;
mod rewrites;
mod rounds;
mod scattered;
mod shares;
mod small;
mod spliced;
mod stores;
mod syncing;
mod syncs;
mod temporary;
mod touched;
mod unattributed;
mod under_way;
mod unmounts;
mod unread;
mod workload;
mod writer;

pub(crate) use self::cgroups::paths as cgroup_paths;
use self::choices::{Choices, Open};
use self::group::Stored;
use crate::provenance::Notes;
use crate::run::Known;
use crate::{Demand, Options, Programs, Recorded, Twin, TwinError};
use floodline_kernel::{OLDEST_MODELLED, is_modelled};
use floodline_record::id::Entity;
use floodline_record::units::{Centisecs, Count, Nanos};
use floodline_record::version::KernelVersion;
use floodline_record::window::Window;
use floodline_scenario::{Expect, Scenario, ScenarioFile, Step, Task, Time, Workload};
use floodline_sim::Beside;
use std::borrow::Cow;
use std::cell::Cell;
use std::collections::BTreeMap;

/// Fewest samples and shortest time that characterise a load.
const SAMPLES_MIN: u64 = 5;
const SECONDS_MIN: f64 = 3.0;
/// Most runs of a twin that is fitted, how near is near enough (as a logarithm), and tasks times seconds of the longest run. Of a larger
/// twin, only the first part is run.
const FITS_MAX: usize = 3;
const FIT_NEAR: f64 = 0.08;
const FIT_SIZE_MAX: f64 = 2_000.0;
/// Tasks times seconds of all runs of a fit together: less than a second of CPU time.
const FITS_SIZE_MAX: f64 = 36_000.0;
/// Shortest first part that is run, seconds: rates of the kernel settle in it. Tasks times seconds of such a run, and of all of them
/// together.
const PART_MIN: f64 = 6.0;
const PART_SIZE: f64 = 1_000.0;
const PARTS_SIZE_MAX: f64 = 12_000.0;
/// Distance in waits, as a logarithm, from which stores of a burst are fitted to them, and the waits below which they show nothing, seconds.
const WAITS_NEAR: f64 = 0.22;
const WAITS_MIN: f64 = 5.0;
/// Longest time for which programs store before a recording, seconds, and largest number of such times that are tried.
const BEFORE_MAX: f64 = 60.0;
const BEFORES_MAX: u32 = 8;
/// Number of written pages below which counts are taken as equal.
const WRITTEN_MIN: f64 = 64.0;
/// Factor on the distance to the recording below which another time is taken.
const BETTER: f64 = 0.8;
/// Stores of a burst, at first.
const STORES: u64 = 8;
/// Longest recording.
const HOURS_MAX: u64 = 2;

pub(crate) fn twin(recorded: &Recorded, options: &Options, go_on: &dyn Fn(u64) -> bool) -> Result<Twin, TwinError> {
    let window = &recorded.window;
    let facts = window.facts.as_ref().ok_or(TwinError::NoFacts)?;
    let seconds = window.seconds();
    if window.samples < SAMPLES_MIN || seconds < SECONDS_MIN {
        return Err(TwinError::TooShort { samples: window.samples, seconds });
    }
    if seconds > (HOURS_MAX * 3600) as f64 {
        return Err(TwinError::TooLong { hours: seconds / 3600.0, most: HOURS_MAX });
    }
    let kernel = options.kernel.or(facts.kernel).ok_or(TwinError::Missing("the kernel version"))?;
    if !is_modelled(kernel) {
        return Err(TwinError::TooOld { kernel, oldest: OLDEST_MODELLED.to_string() });
    }
    // After a run was ended early, no further run begins.
    let is_over = Cell::new(false);
    let go_on = &|events| {
        is_over.set(is_over.get() || !go_on(events));
        !is_over.get()
    };
    let twin = choices::chosen(recorded, kernel, fit(recorded, kernel)?, go_on)?;
    let twin = needed::without_needless_syncs(recorded, twin, go_on);
    let twin = credit::fitted(recorded, twin);
    Ok(nearer::nearer(recorded, twin, workload::has_throttle(&recorded.window)))
}

/// What is fitted by running the twin.
#[derive(Clone, Debug)]
pub(super) struct Fit {
    /// How many times as many stores as the first guess, by task.
    pub(super) factors: BTreeMap<String, f64>,
    /// Stores of a burst: samples do not show how many arrive at once.
    pub(super) stores: u64,
    /// Seconds for which programs store before the recording begins. The flusher wakes up again and again from the first
    /// dirty page on, and a file is as old as its first dirty page: neither shows in samples.
    pub(super) before: f64,
    /// How the counters of programs are read.
    choices: Choices,
}

impl Fit {
    const FIRST: Fit = Fit { factors: BTreeMap::new(), stores: STORES, before: 0.0, choices: Choices::new() };
}

/// A twin, and the recorded effect of its tasks with mappings.
struct Made {
    twin: Twin,
    stored: BTreeMap<String, Stored>,
    /// Programs whose counters can be read in another way.
    open: Vec<Open>,
}

/// A twin with some stores, and how far their effect is from that of the recording, where there was something to fit.
struct Fitted {
    twin: Twin,
    fit: Fit,
    /// Recorded faults over those of the twin, by task.
    faults: BTreeMap<String, f64>,
    /// Recorded bytes over those of the twin.
    bytes: Option<f64>,
    /// Recorded waits of the programs with mappings over those of the twin. `None` where the kernel counts none.
    waits: Option<f64>,
    /// Recorded pages written by the machine over those of the twin.
    written: Option<f64>,
    /// Programs whose counters can be read in another way.
    open: Vec<Open>,
    /// Whether only the first part of a large twin was run. Then the written pages are not compared, and the waits decide as well.
    is_part: bool,
}

impl Fitted {
    fn far_in_faults(&self) -> f64 {
        self.faults.values().map(|ratio| ratio.ln().abs()).sum::<f64>() / self.faults.len().max(1) as f64
    }

    fn far_in_bytes(&self) -> f64 {
        self.bytes.map_or(0.0, |ratio| ratio.ln().abs())
    }

    /// Distance to the recording in dirtied bytes and written pages, as a logarithm. The flusher's wake-ups show in the written pages.
    fn far_in_writeback(&self) -> f64 {
        self.far_in_bytes() + self.written.map_or(0.0, |ratio| ratio.ln().abs())
    }

    /// Distance to the recording in waits, as a logarithm. A program that stores many pages at once waits once for all of them.
    fn far_in_waits(&self) -> f64 {
        self.waits.map_or(0.0, |ratio| ratio.ln().abs())
    }

    /// Whether its bytes are clearly nearer to the recording than those of `than`.
    fn is_nearer(&self, than: &Fitted) -> bool {
        self.bytes.is_some() && self.far_in_bytes() <= 0.9 * than.far_in_bytes()
    }
}

/// A recording that is fitted, and the cost of its runs until now, in tasks times seconds.
struct Fitting<'a> {
    recorded: &'a Recorded,
    kernel: KernelVersion,
    spent: Cell<f64>,
}

/// Makes the twin, and again with other stores to mappings where their effect is not that of the recording: first their
/// number is fitted to the faults, then the stores of a burst to the bytes that they dirtied, then their number to the
/// bytes: these are what is predicted.
fn fit(recorded: &Recorded, kernel: KernelVersion) -> Result<Fitted, TwinError> {
    let fitting = &Fitting { recorded, kernel, spent: Cell::new(0.0) };
    let mut best = fit_number(fitting, Fit::FIRST)?;
    if best.written.is_some() && best.far_in_writeback() > 2.0 * FIT_NEAR {
        best = fit_before(fitting, best)?;
    }
    let is_few = best.bytes.is_some_and(|ratio| ratio > 1.0);
    let is_part = best.is_part;
    // More at once find more clean folios, or more that the same burst has just dirtied: both are tried.
    for stores in if is_few { [STORES * 2, STORES / 2] } else { [STORES / 2, STORES * 2] } {
        if best.far_in_bytes() <= FIT_NEAR || is_part {
            break;
        }
        let other = fit_number(fitting, Fit { stores, before: best.fit.before, ..Fit::FIRST })?;
        if other.bytes.is_some() && other.far_in_bytes() < best.far_in_bytes() {
            best = other;
        }
    }
    for _ in 0..if is_part { 1 } else { FITS_MAX } {
        let Some(ratio) = best.bytes.filter(|_| best.far_in_bytes() > FIT_NEAR) else { break };
        // A store that the kernel delays faults again, and finds its folio dirty. So faults may be more than stores, and fewer
        // stores may dirty more bytes.
        let mut other = scaled_all(fitting, &best, ratio)?;
        if !other.is_nearer(&best) {
            other = scaled_all(fitting, &best, 1.0 / ratio)?;
        }
        // Where the budget decides, another number of stores changes nothing.
        if !other.is_nearer(&best) {
            break;
        }
        best = other;
    }
    fit_waits(fitting, best, is_part)
}

/// Fits the stores of a burst to the waits: the same bytes are dirtied by many single stores, each of which waits, and by a few bursts.
fn fit_waits(fitting: &Fitting<'_>, mut best: Fitted, is_part: bool) -> Result<Fitted, TwinError> {
    let far = |fitted: &Fitted| fitted.far_in_bytes() + fitted.far_in_waits();
    let first = best.fit.stores;
    for stores in [STORES / 2, STORES / 4, STORES * 2].into_iter().filter(|stores| *stores != first) {
        if best.far_in_waits() <= WAITS_NEAR && (!is_part || best.far_in_bytes() <= FIT_NEAR) {
            break;
        }
        let mut other = fit_number(fitting, Fit { stores, before: best.fit.before, ..Fit::FIRST })?;
        if let Some(ratio) = other.bytes.filter(|_| other.far_in_bytes() > FIT_NEAR) {
            let again = scaled_all(fitting, &other, ratio)?;
            other = if again.is_nearer(&other) { again } else { other };
        }
        if other.bytes.is_some() && far(&other) < BETTER * far(&best) {
            best = other;
        }
    }
    Ok(best)
}

/// Makes a twin with `ratio` times as many stores of each task.
fn scaled_all(fitting: &Fitting<'_>, from: &Fitted, ratio: f64) -> Result<Fitted, TwinError> {
    let tasks = from.faults.keys();
    let factors = tasks.map(|task| (task.clone(), scaled(from.fit.factors.get(task), ratio))).collect();
    fitted(fitting, Fit { factors, ..from.fit.clone() })
}

/// Fits the time for which programs stored before the recording, so that the flusher wakes up when it did in the recording.
fn fit_before(fitting: &Fitting<'_>, mut best: Fitted) -> Result<Fitted, TwinError> {
    let Fitting { recorded, .. } = fitting;
    let row = &recorded.window.host.last;
    let seconds = |centisecs: Option<Centisecs>| centisecs.map_or(0.0, |centisecs| centisecs.0 as f64 / 100.0);
    let (every, expiry) = (seconds(row.dirty_writeback_centisecs), seconds(row.dirty_expire_centisecs));
    if !(0.1..=BEFORE_MAX).contains(&every) {
        return Ok(best);
    }
    let first = workload::first_written(&recorded.window).as_secs_f64() % every;
    let last = (expiry + every).min(BEFORE_MAX);
    let times = (1..=BEFORES_MAX).map(|number| f64::from(number) * every + (every - first));
    let mut nearest = best.far_in_writeback();
    let mut before = 0.0;
    for time in times.take_while(|time| *time <= last) {
        let other = fitted(fitting, Fit { before: time, ..best.fit.clone() })?;
        if other.bytes.is_some() && other.far_in_writeback() < BETTER * nearest {
            (nearest, before) = (other.far_in_writeback(), time);
        }
    }
    if before > 0.0 {
        let other = fit_number(fitting, Fit { before, ..best.fit.clone() })?;
        if other.bytes.is_some() && other.far_in_writeback() < best.far_in_writeback() {
            best = other;
        }
    }
    Ok(best)
}

/// Fits the number of stores to the faults.
fn fit_number(fitting: &Fitting<'_>, with: Fit) -> Result<Fitted, TwinError> {
    let mut best = fitted(fitting, with.clone())?;
    let mut factors = with.factors.clone();
    let mut last = best.faults.clone();
    for _ in 1..FITS_MAX {
        if best.far_in_faults() < FIT_NEAR {
            break;
        }
        for (task, ratio) in &last {
            factors.insert(task.clone(), scaled(factors.get(task), *ratio));
        }
        let other = fitted(fitting, Fit { factors: factors.clone(), ..with.clone() })?;
        if other.far_in_faults() >= best.far_in_faults() {
            break;
        }
        last = other.faults.clone();
        best = other;
    }
    Ok(best)
}

fn scaled(factor: Option<&f64>, ratio: f64) -> f64 {
    (factor.copied().unwrap_or(1.0) * ratio).clamp(0.02, 50.0)
}

/// Makes a twin and runs it, if it has stores and running it does not take too long.
fn fitted(fitting: &Fitting<'_>, fit: Fit) -> Result<Fitted, TwinError> {
    let Fitting { recorded, kernel, spent } = fitting;
    let Made { mut twin, stored, open } = made(recorded, *kernel, &fit)?;
    // A heap only sleeps.
    let sleeps = |task: &&Task| task.steps.iter().all(|step| matches!(step, Step::Sleep(_) | Step::Anon(_)));
    let sleeping = twin.scenario.workload.tasks.values().filter(sleeps).count();
    let tasks = (twin.scenario.number_of_tasks() as f64 - sleeping as f64).max(1.0);
    let is_large = tasks * twin.seconds > FIT_SIZE_MAX;
    let part = Some((PART_SIZE / tasks).max(PART_MIN)).filter(|part| is_large && *part < twin.seconds);
    let spends = tasks * (part.unwrap_or(twin.seconds) + fit.before);
    let room = if part.is_some() { PARTS_SIZE_MAX } else { FITS_SIZE_MAX };
    let is_nothing = stored.is_empty() || spent.get() + spends > room;
    let run = (!is_nothing).then(|| {
        spent.set(spent.get() + spends);
        let scenario = part.map_or(Cow::Borrowed(&twin.scenario), |part| Cow::Owned(first_part(&twin.scenario, part)));
        crate::run::run(&scenario, *kernel, twin.sampling())
    });
    let Some(Ok(window)) = run else {
        return Ok(Fitted {
            twin,
            fit,
            faults: BTreeMap::new(),
            bytes: None,
            waits: None,
            written: None,
            open,
            is_part: false,
        });
    };
    let mut seen = stored_by_task(&window);
    let mut real: BTreeMap<String, Stored> = match part {
        Some(part) => stored.iter().map(|(task, real)| (task.clone(), real.until(part))).collect(),
        None => stored,
    };
    // In a part of the time, chance decides on single programs: all of one name share their faults.
    if part.is_some() {
        share_faults(&twin.programs, &mut real);
        share_faults(&twin.programs, &mut seen);
    }
    let stored = real;
    let faults = stored
        .iter()
        .filter_map(|(task, real)| Some((task.clone(), real.faults / seen.get(task)?.faults)))
        .filter(|(_, ratio)| ratio.is_finite() && *ratio > 0.0)
        .collect();
    let sum = |all: &BTreeMap<String, Stored>, of: fn(&Stored) -> f64| -> f64 {
        stored.keys().filter_map(|task| all.get(task)).map(of).sum()
    };
    let both = |of: fn(&Stored) -> f64| (sum(&stored, of), sum(&seen, of));
    let (real, simulated) = both(|did| did.dirtied);
    let has_delays = recorded.window.facts.as_ref().is_some_and(|facts| facts.task_delayacct == Some(true));
    let waits = Some(both(|did| did.waited)).filter(|(real, _)| has_delays && *real >= WAITS_MIN);
    let waits = waits.map(|(real, simulated)| real / simulated.max(0.1));
    let written = |window: &Window| Some(window.host.growth.nr_written?.0 as f64);
    let pair = written(&recorded.window).zip(written(&window)).filter(|_| part.is_none());
    let written = pair.map(|(real, simulated)| real.max(WRITTEN_MIN) / simulated.max(WRITTEN_MIN));
    if part.is_none() {
        twin.known.add(twin.scenario.clone(), *kernel, twin.sampling(), window);
    }
    Ok(Fitted {
        twin,
        fit,
        faults,
        bytes: Some(real.max(1.0) / simulated.max(1.0)),
        waits,
        written,
        open,
        is_part: part.is_some(),
    })
}

/// A scenario whose workload ends after some seconds.
fn first_part(scenario: &Scenario, seconds: f64) -> Scenario {
    let mut part = scenario.clone();
    part.workload.duration = Some(Time(Nanos((seconds * 1e9) as u64)));
    part
}

/// Gives each task the mean faults of the tasks that stand for programs of its name.
fn share_faults(programs: &Programs, stored: &mut BTreeMap<String, Stored>) {
    let comm = |task: &str| programs.get(task).map(|program| program.comm.as_str());
    let mut sums: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    for (comm, did) in stored.iter().filter_map(|(task, did)| Some((comm(task)?, did))) {
        let (sum, count) = sums.entry(comm).or_default();
        *sum += did.faults;
        *count += 1.0;
    }
    for (task, did) in stored.iter_mut() {
        if let Some((sum, count)) = comm(task).and_then(|comm| sums.get(comm)) {
            did.faults = sum / count;
        }
    }
}

/// Faults and dirtied bytes of the processes of each task.
fn stored_by_task(window: &Window) -> BTreeMap<String, Stored> {
    let mut sums: BTreeMap<String, Stored> = BTreeMap::new();
    for (id, span) in &window.processes {
        let Some(Entity::Process { comm, kthread: false, .. }) = window.entities.get(id) else { continue };
        let (minor, major) = (span.growth.minflt, span.growth.majflt);
        let faults = minor.map_or(0, |n| n.0).saturating_add(major.map_or(0, |n| n.0));
        let sum = sums.entry(comm.to_string()).or_default();
        sum.faults += faults as f64;
        sum.dirtied += span.growth.write_bytes.map_or(0, |bytes| bytes.0) as f64;
        sum.waited += span.growth.blkio_delay.map_or(0.0, |delay| delay.as_secs_f64());
    }
    sums
}

fn made(recorded: &Recorded, kernel: KernelVersion, fit: &Fit) -> Result<Made, TwinError> {
    let window = &recorded.window;
    let facts = window.facts.as_ref().ok_or(TwinError::NoFacts)?;
    let seconds = window.seconds();
    let mut notes = Notes::default();
    let mut unknown = Vec::new();
    let (mut machine, places, ceilings) = machine::machine(recorded, facts, &mut notes, &mut unknown)?;
    let load = workload::workload(recorded, &places, &mut machine, &mut notes, &mut unknown, fit)?;
    shares::add(window, &places, &mut machine, &mut notes);
    let duration = Time(Nanos((seconds * 1e9) as u64));
    notes.measured("workload.duration", "length of the recording");
    let scenario = |tasks| Scenario {
        name: "twin".to_owned(),
        summary: format!("Twin of a recording of {seconds:.0} s on Linux {kernel}"),
        about: None,
        machine: machine.clone(),
        workload: Workload { duration: Some(duration), settle: None, seed: 0, tasks },
        expect: Expect::default(),
    };
    let open = checked(scenario(load.open))?;
    let demand = match load.closed {
        Some(closed) => Demand::Bounded { other: Box::new(checked(scenario(closed))?), is_closed: false },
        None if load.is_traced => Demand::Traced,
        None => Demand::Free,
    };
    unknown.extend(limits_of_knowledge(window, recorded));
    let mut simplified = floodline_sim::simplified_beside(&open, beside(window));
    simplified.extend(beyond::left_out(window));
    let twin = Twin {
        scenario: open,
        demand,
        kernel,
        provenance: notes.0,
        unknown,
        simplified,
        ceilings,
        programs: load.programs,
        every: interval(window),
        // Without a distance, all samples read it or none does.
        stat_every: window.stat_reads.distance().unwrap_or_default(),
        seconds,
        shows_syncs: load.shows_syncs,
        known: Known::default(),
    };
    Ok(Made { twin, stored: load.stored, open: load.readings })
}

/// Returns a scenario after all checks of a file: `floodline scenario check` must accept it.
fn checked(scenario: Scenario) -> Result<Scenario, TwinError> {
    let text = || TwinError::fitting(scenario.to_toml().map_err(|error| TwinError::Invalid(error.to_string()))?);
    // The text takes longer to write than to bound.
    if scenario.most_text().is_none_or(|most| most > floodline_scenario::TEXT_MAX) {
        text()?;
    }
    let read = match scenario.reread() {
        Some(read) => read,
        None => {
            let file = ScenarioFile::parse(&text()?).map_err(|error| TwinError::Invalid(error.to_string()))?;
            let first = file.variants.into_values().next();
            first.ok_or_else(|| TwinError::Invalid("it has no variant".to_owned()))?
        }
    };
    floodline_sim::check(&scenario)?;
    Ok(read)
}

/// Usual time between two samples, at least 100 ms.
fn interval(window: &Window) -> Nanos {
    let mut steps: Vec<u64> =
        window.host_series.windows(2).map(|pair| pair[1].0.monotonic.0.saturating_sub(pair[0].0.monotonic.0)).collect();
    steps.sort_unstable();
    Nanos(steps.get(steps.len() / 2).copied().unwrap_or(500_000_000).clamp(100_000_000, 60_000_000_000))
}

/// Value of `io.weight` where it was never set.
const USUAL_WEIGHT: u64 = 100;

/// What the recording has of the host that has no effect on the model.
fn beside(window: &Window) -> Beside {
    let is_set = |weight: Count| weight.0 != USUAL_WEIGHT && weight.0 != 0;
    Beside {
        has_weights: window.cgroup_limits.values().any(|span| span.last.io_weight.is_some_and(is_set)),
        lru_gen: window.facts.as_ref().and_then(|facts| facts.lru_gen),
    }
}

/// Notes on facts that no recording contains.
fn limits_of_knowledge(window: &Window, recorded: &Recorded) -> Vec<String> {
    let mut unknown = vec![
        "Containers and programs that start after the recording are not in the twin.".to_owned(),
        format!("Load peaks outside these {:.0} s are not in the twin.", window.seconds()),
    ];
    if window.traced.is_empty() {
        unknown.push(
            "Nothing was traced: which files were written and which calls were fsync is inferred from counters. \
             Record with --trace on to know it."
                .to_owned(),
        );
    }
    if window.facts.as_ref().is_none_or(|facts| facts.task_delayacct != Some(true)) && !asked::has_waits(window) {
        unknown.push(
            "kernel.task_delayacct is off and waits were not traced: how long programs waited is not known.".to_owned(),
        );
    }
    if let Some(hole) = window.holes.hole() {
        unknown.push(format!(
            "The recorder missed samples for up to {:.1} s: when bursts in that time began is not known.",
            hole.length().as_secs_f64()
        ));
    }
    if recorded.is_cut {
        unknown
            .push("The recording has more intervals of processes than a twin keeps: later ones are left out.".into());
    }
    let facts = window.facts.as_ref();
    if facts.is_some_and(|facts| facts.privileged == Some(false)) {
        unknown.push(
            "The recorder was not root: the I/O of other users' processes is known only as the rest of the machine's."
                .to_owned(),
        );
    }
    unknown
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_testkit::Fixture;

    #[test]
    fn weights_and_the_lru_of_a_host_are_read() {
        let of = |weight: u64, lru_gen: Option<bool>| {
            let host = Fixture::healthy().facts(|facts| facts.lru_gen = lru_gen).cgroup("/batch", |_, _| {});
            let beside = beside(&host.limits("/batch", move |_, row| row.io_weight = Some(Count(weight))).window());
            (beside.has_weights, beside.lru_gen)
        };
        assert_eq!(of(20, Some(true)), (true, Some(true)));
        assert_eq!(of(USUAL_WEIGHT, None), (false, None));
    }
}
