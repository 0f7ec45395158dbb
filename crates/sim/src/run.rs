// SPDX-License-Identifier: MIT OR Apache-2.0
//! One run: starts the programs of a scenario on its machine, samples the machine at regular moments, and passes
//! everything on as records.

use crate::SimError;
use crate::arena::BlockId;
use crate::engine::{Engine, Sim, Stopped};
use crate::found::Found;
use crate::journal::{self, Journal};
use crate::measure::Measures;
use crate::recorder::{self, Recorder, facts};
use crate::setup;
use crate::speed::Speed;
use crate::task::Hand;
use crate::world::World;
use floodline_record::record::{Event, Record, TaskName, What};
use floodline_record::text::Text;
use floodline_record::units::Nanos;
use floodline_record::version::KernelVersion;
use floodline_scenario::program::Barriers;
use floodline_scenario::{Device, Random, Scenario, TaskCopy};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

/// Options of a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Name of the variant, for the recording.
    pub variant: String,
    /// The kernel whose behaviour is modelled.
    pub kernel: KernelVersion,
    /// Time between two samples.
    pub every: Nanos,
    /// The run ends at a sample whose number is a multiple of this, so that these samples are those of a run with samples further apart.
    pub ends_at_each: u64,
    /// Takes a sample at the moment at which the setups end, besides the regular ones. The growth of counters then begins there.
    pub samples_start: bool,
    /// Takes no sample of the setups: the first one at the moment at which they end, and the others from then on. What the workload does
    /// before the first regular time would else be missing from the growth of counters.
    pub samples_workload: bool,
    /// Speed of the machine: as assumed, or as measured in a recording.
    pub speed: Speed,
    /// Circumstances of the run: the usual ones, or those of a recording.
    pub found: Found,
    /// Checks that all counters add up after every event, not only at every sample.
    pub checks_every_event: bool,
}

impl Options {
    /// Options for a variant on a kernel, on the assumed machine, with two samples a second.
    pub fn new(variant: &str, kernel: KernelVersion) -> Options {
        Options {
            variant: variant.to_owned(),
            kernel,
            every: Nanos::from_millis(500),
            ends_at_each: 1,
            samples_start: false,
            samples_workload: false,
            speed: Speed::default(),
            found: Found::default(),
            checks_every_event: false,
        }
    }
}

/// Times between the samples of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sampling {
    /// Time between two samples.
    pub every: Nanos,
    /// [`Found::stat_every`].
    pub stat_every: Nanos,
}

impl From<Nanos> for Sampling {
    /// Samples that read everything.
    fn from(every: Nanos) -> Sampling {
        Sampling { every, stat_every: Nanos(0) }
    }
}

impl Options {
    /// Samples at these times.
    #[must_use]
    pub fn sampled(self, sampling: impl Into<Sampling>) -> Options {
        let Sampling { every, stat_every } = sampling.into();
        let found = Found { stat_every, ..self.found };
        Options { every, found, ..self }
    }
}

/// Progress of a run.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Simulated time.
    pub now: Nanos,
    /// Dirty pages of 4 KiB.
    pub nr_dirty: u64,
    /// Pages under writeback.
    pub nr_writeback: u64,
    /// Events handled.
    pub events: u64,
}

/// Result of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Simulated time.
    pub simulated: Nanos,
    /// Samples taken.
    pub samples: u64,
    /// Events handled.
    pub events: u64,
    /// Whether it was interrupted before its end.
    pub is_interrupted: bool,
}

/// Time before the first program starts, if unknown.
const QUIET: u64 = Nanos::SECOND.0;
/// Time after the workload's end that programs in a call get while no work is done for them.
const GRACE: u64 = 60 * Nanos::SECOND.0;
/// Time that they get while a device works for them: then the run ends without them.
const LINGER: u64 = 600 * Nanos::SECOND.0;
/// Longest simulated time of a run.
const LONGEST: u64 = 7 * 86_400 * Nanos::SECOND.0;
/// A run in which no process did anything for this long is stuck.
const PATIENCE: u64 = 3_600 * Nanos::SECOND.0;

/// Runs a scenario. `take` receives every record in order. `tell` receives the progress after every sample, and now
/// and then between two distant samples; it returns whether to go on.
pub fn simulate(
    scenario: &Scenario,
    options: &Options,
    mut take: impl FnMut(Record) -> Result<(), SimError>,
    mut tell: impl FnMut(&Progress) -> bool,
) -> Result<Summary, SimError> {
    crate::check(scenario)?;
    if !floodline_kernel::is_modelled(options.kernel) {
        return Err(SimError::TooOld(options.kernel));
    }
    let mut world = setup::machine(scenario, options.kernel, &options.speed)?;
    world.set_found(&options.found);
    take(Record::Facts(Box::new(facts(&world))))?;
    let sim = Engine::new(world);
    let recording = Rc::new(RefCell::new(Recording::new(options)));
    start(&sim, scenario, options, &recording);
    let outcome = drive(&sim, scenario, options, &recording, &mut take, &mut tell);
    sim.end();
    outcome
}

/// The recorder, which takes most samples at regular times, and one at the start of the workload.
struct Recording {
    recorder: Recorder,
    /// Time between two regular samples.
    every: u64,
    /// Whether to take the sample of the start.
    samples_start: bool,
    /// Whether the samples begin with it.
    samples_workload: bool,
    /// When it was taken, if the samples begin with it.
    began: Option<u64>,
    /// Records of the start, which stand before those of the next regular sample.
    of_start: Vec<Record>,
}

impl Recording {
    fn new(options: &Options) -> Recording {
        Recording {
            recorder: Recorder::new(options.found.stat_every),
            every: options.every.0.max(1_000_000),
            samples_start: options.samples_start,
            samples_workload: options.samples_workload,
            began: None,
            of_start: Vec::new(),
        }
    }

    /// Whether the samples begin with the workload, and it has not begun yet.
    fn is_before(&self) -> bool {
        self.samples_workload && self.began.is_none()
    }

    /// Takes the sample of the start, unless a regular one is due at the same time. Its events are those until then.
    fn start(&mut self, world: &mut World) {
        if self.samples_workload {
            self.began = Some(world.now);
        } else if !self.samples_start || world.now.is_multiple_of(self.every) {
            return;
        }
        self.recorder.sample(world, &mut self.of_start);
        self.of_start.extend(world.events.drain(..).map(Record::Event));
    }
}

fn start(sim: &Sim, scenario: &Scenario, options: &Options, recording: &Rc<RefCell<Recording>>) {
    let copies = scenario.task_copies();
    {
        let mut world = sim.w();
        world.meeting.unprepared = u64::try_from(copies.len()).unwrap_or(u64::MAX);
        world.meeting.barriers = Barriers::of(&copies);
        for copy in &copies {
            *world.meeting.live.entry(copy.task.clone()).or_default() += 1;
        }
    }
    let with_threads = setup::with_threads(&sim.w());
    for sb in with_threads {
        if sim.w().sbs[sb].journal.is_some() {
            sim.spawn("jbd2", true, journal::thread(sim.clone(), sb));
        }
        if sim.w().sbs[sb].journal.as_ref().is_some_and(Journal::logs_inodes) {
            sim.spawn("xfsaild", true, crate::xfsaild::xfsaild(sim.clone(), sb));
        }
        if sim.w().sbs[sb].log_tree.inode().is_some() {
            sim.spawn("btrfs-transaction", true, crate::tree_commit::transaction_kthread(sim.clone(), sb));
        }
        if sim.w().sbs[sb].has_unwritten {
            sim.spawn("conversion", true, crate::ioend::worker(sim.clone(), sb));
        }
    }
    crate::switch::start(sim);
    sim.spawn("memcg", true, memcg_stats(sim.clone()));
    if options.speed.observer.0 > 0 {
        sim.spawn("observer", true, observer(sim.clone(), options.speed.observer.0, options.every.0));
    }
    if let Some(late) = options.found.late(copies.iter().map(|copy| (name_of(copy), copy.start.0))) {
        sim.w().costs.start = late;
    }
    // The setup of a workload runs before its start, and the time at which it began is unknown.
    let has_setup = copies.iter().any(|copy| !copy.setup.is_empty());
    let timing = Timing {
        duration: scenario.workload.duration.map(|time| time.nanos()),
        settle: scenario.workload.settle.map_or(0, |time| time.nanos()),
        scenario: scenario.name.clone(),
        variant: options.variant.clone(),
        quiet: options.found.quiet.filter(|_| !has_setup).map_or(QUIET, |quiet| quiet.0),
        recording: recording.clone(),
    };
    for (number, copy) in copies.into_iter().enumerate() {
        sim.spawn(&copy.label(), false, one_task(sim.clone(), number, copy, timing.clone()));
    }
}

#[derive(Clone)]
struct Timing {
    duration: Option<u64>,
    settle: u64,
    scenario: String,
    variant: String,
    /// Time before the first program starts.
    quiet: u64,
    recording: Rc<RefCell<Recording>>,
}

fn name_of(copy: &TaskCopy) -> TaskName {
    TaskName { task: copy.task.clone().into(), copy: copy.copy }
}

async fn memcg_stats(sim: Sim) {
    loop {
        sim.pass(2 * Nanos::SECOND.0, "").await;
        sim.w().flush_memcg_stats();
    }
}

/// Removes a cgroup some time after its last process exited, unless it has another process by then.
async fn remove_empty(sim: Sim, cgroup: crate::arena::CgId, after: u64) {
    sim.pass(after, "").await;
    let mut world = sim.w();
    if world.cgroups[cgroup].processes == 0 && !world.cgroups[cgroup].is_dead {
        let path = world.cgroups[cgroup].path.clone();
        // A cgroup with children stays.
        let _ = world.remove_cgroup(&path);
    }
}

/// The recorder on the machine, which uses CPU time.
async fn observer(sim: Sim, per_second: u64, every: u64) {
    let every = every.max(1_000_000);
    loop {
        sim.pass(every, "").await;
        let nanos = u128::from(per_second) * u128::from(every) / u128::from(Nanos::SECOND.0);
        crate::cpu::run(&sim, u64::try_from(nanos).unwrap_or(0)).await;
    }
}

/// One copy of a task from its setup to its end.
async fn one_task(sim: Sim, number: usize, copy: TaskCopy, timing: Timing) {
    let pid = {
        let mut world = sim.w();
        let cgroup = world.cgroup_at(&copy.cgroup).unwrap_or(crate::arena::CgId::ROOT);
        world.add_process(&copy.task, cgroup)
    };
    let name = name_of(&copy);
    // As in a guest, the machine is sampled before any program runs.
    sim.sleep_until(timing.quiet, "its start").await;
    let unmeasured = Measures::new(u64::MAX, u64::MAX);
    let mut hand = Hand::new(&sim, number, pid, copy.seed, unmeasured);
    let mut failure = hand.all(&copy.setup).await.err().map(|error| format!("setup{error}"));
    let began = {
        let mut world = sim.w();
        world.meeting.unprepared -= 1;
        if world.meeting.unprepared == 0 {
            let now = world.now;
            world.meeting.started = Some(now);
            world.wake_ups.began = Some(now);
            world.begin_with_shares();
            let blocks: Vec<_> = world.blocks.iter().map(|(id, _)| id).collect();
            for block in blocks {
                world.blocks[block].moments.began = Some(now);
            }
            let what = What::WorkloadStarted { scenario: timing.scenario.into(), variant: timing.variant.into() };
            world.events.push(Event { at: Nanos(now), what });
            timing.recording.borrow_mut().start(&mut world);
            let waiting = world.meeting.changed.take();
            world.wake_all(waiting);
        }
        world.meeting.started
    };
    let began = match began {
        Some(began) => began,
        None => loop {
            sim.wait("the setups of other tasks", |world| &mut world.meeting.changed).await;
            let started = { sim.w().meeting.started };
            if let Some(began) = started {
                break began;
            }
        },
    };
    let since = began.saturating_add(timing.settle);
    hand.end = timing.duration.map(|duration| began.saturating_add(duration));
    sim.w().pids[pid].end = hand.end.unwrap_or(u64::MAX);
    hand.measures = Measures::new(since, copy.stall_over.nanos());
    let delay = Random::new(!copy.seed).below(sim.w().costs.start);
    let start = began.saturating_add(copy.start.0).saturating_add(delay);
    if failure.is_none() {
        sim.sleep_until(hand.end.map_or(start, |end| start.min(end)), "its start").await;
        let shown = { sim.w().pids[pid].pid };
        let what = What::TaskStarted { task: name.clone(), pid: Some(shown) };
        {
            let mut world = sim.w();
            let at = Nanos(world.now);
            world.events.push(Event { at, what });
        }
        // The kernel's counters are read when the measured time begins.
        let first: std::rc::Rc<std::cell::Cell<Option<(u64, crate::process::TaskCounters)>>> = std::rc::Rc::default();
        let (reader, cell) = (sim.clone(), first.clone());
        sim.spawn("counters", true, async move {
            reader.sleep_until(since, "").await;
            let world = reader.w();
            cell.set(Some((world.now, world.pids[pid].io)));
        });
        failure = hand.all(&copy.steps).await.err().map(|error| format!("steps{error}"));
        hand.measures.first = first.get();
        hand.close_all().await;
    }
    let mut world = sim.w();
    let at = world.now;
    let io = world.pids[pid].io;
    let cgroup = world.pids[pid].cgroup;
    world.exit_process(pid);
    let left = &world.cgroups[cgroup];
    if let Some(after) = left.remove_after.filter(|_| left.processes == 0) {
        sim.spawn_in(&mut world, "rmdir", remove_empty(sim.clone(), cgroup, after));
    }
    let mut events = hand.measures.events(&name, at, &io);
    events.push(Event { at: Nanos(at), what: What::TaskEnded { task: name, failure: failure.map(Text::from) } });
    world.events.append(&mut events);
    if let Some(live) = world.meeting.live.get_mut(&copy.task) {
        *live -= 1;
    }
    world.meeting.barriers.end(number);
    let waiting = world.meeting.changed.take();
    world.wake_all(waiting);
}

fn drive(
    sim: &Sim,
    scenario: &Scenario,
    options: &Options,
    recording: &RefCell<Recording>,
    take: &mut impl FnMut(Record) -> Result<(), SimError>,
    tell: &mut impl FnMut(&Progress) -> bool,
) -> Result<Summary, SimError> {
    let mut uppers: BTreeSet<_> = recorder::overlays(&sim.w()).collect();
    // Number of the regular sample that is due.
    let (mut samples, mut number, mut at) = (0, 0_u64, 0);
    let mut is_interrupted = false;
    let (mut last_work, mut last_moved) = ((0, (0, 0)), (0, 0));
    loop {
        let stopped = advance(sim, at, options, tell)?;
        if stopped == Stopped::Asked {
            (at, is_interrupted) = (sim.now(), true);
            break;
        }
        let mut recording = recording.borrow_mut();
        let mut records = std::mem::take(&mut recording.of_start);
        samples += u64::from(!records.is_empty());
        // The sample of the start is then the first regular one, and the next follows it at the usual distance.
        let began = recording.began.filter(|_| !records.is_empty());
        let is_sampled = began.is_none() && !recording.is_before();
        let may_end = began.is_none() && number.is_multiple_of(options.ends_at_each.max(1));
        let (mut events, is_over) = {
            let mut world = sim.w();
            // As a recorder on a host: an overlay on a filesystem that carried none is told.
            let known = uppers.len();
            uppers.extend(recorder::overlays(&world));
            if uppers.len() > known {
                records.push(Record::Facts(Box::new(facts(&world))));
            }
            if is_sampled {
                recording.recorder.sample(&mut world, &mut records);
            }
            world.check().map_err(|what| violation(&what, at, scenario, options))?;
            let is_over = may_end && world.meeting.live.values().all(|live| *live == 0);
            // The events of a run follow a sample that was taken after them.
            let events = if began.is_some() { Vec::new() } else { std::mem::take(&mut world.events) };
            (events, is_over)
        };
        drop(recording);
        let end = sim.w().meeting.started.zip(scenario.workload.duration);
        let end = end.map(|(at, duration)| at.saturating_add(duration.nanos()));
        let is_left = may_end && !is_over && end.is_some_and(|end| at > end.saturating_add(LINGER));
        if is_left {
            events.extend(left_behind(sim, scenario, at));
        }
        let is_over = is_over || is_left;
        samples += u64::from(is_sampled);
        number += u64::from(is_sampled || began.is_some());
        let progress = progress(sim);
        if is_over {
            events.push(Event { at: Nanos(at), what: What::WorkloadEnded });
        }
        for record in records.into_iter().chain(events.into_iter().map(Record::Event)) {
            take(record)?;
        }
        if is_over {
            break;
        }
        if !tell(&progress) {
            is_interrupted = true;
            break;
        }
        let (work, is_busy) = {
            let world = sim.w();
            let cpu = world.memory.cpu_user + world.memory.cpu_system;
            let requests: u64 = world.blocks.iter().flat_map(|(_, block)| block.stats.ios).sum();
            let moved = world.memory.nr_dirtied + cpu + requests;
            // A large request to a slow device takes minutes, and no counter moves meanwhile.
            let is_busy = world.blocks.iter().any(|(_, block)| block.in_flight > 0 || block.throttle.is_holding());
            ((moved, world.memory.ctxt), is_busy)
        };
        if is_busy || work.0 != last_moved.1 {
            last_moved = (at, work.0);
        }
        if work != last_work.1 {
            last_work = (at, work);
        }
        // A slow device may take its time, as long as it works.
        let is_late = end.is_some_and(|end| at > end.max(last_moved.0).saturating_add(GRACE));
        let is_quiet = at.saturating_sub(last_work.0) > PATIENCE;
        let is_idle = is_quiet && !sim.is_waiting_for(&["a moment to come", "its start"]);
        if stopped == Stopped::Idle || is_late || is_idle || at > LONGEST {
            let waiting = sim.waiting().into_iter().map(|(who, what)| (who, what.to_owned())).collect();
            return Err(SimError::Stuck { seconds: at / Nanos::SECOND.0, waiting, busy: busy(sim, scenario) });
        }
        at = began.unwrap_or(at).saturating_add(options.every.0.max(1_000_000));
    }
    Ok(Summary { simulated: Nanos(at), samples, events: sim.events.get(), is_interrupted })
}

/// Ends of the tasks that are still in an uninterruptible call long after their time was over.
fn left_behind(sim: &Sim, scenario: &Scenario, at: u64) -> Vec<Event> {
    let waiting = sim.waiting();
    let ended = |copy: TaskCopy| {
        let (_, what) = waiting.iter().find(|(who, _)| *who == copy.label())?;
        let why = format!("still waits for {what} {} s after its time", LINGER / Nanos::SECOND.0);
        let failure = Some(Text::from(why));
        Some(Event { at: Nanos(at), what: What::TaskEnded { task: name_of(&copy), failure } })
    };
    scenario.task_copies().into_iter().filter_map(ended).collect()
}

/// Devices with pending requests, each with its limits or those of a cgroup.
fn busy(sim: &Sim, scenario: &Scenario) -> Vec<String> {
    let world = sim.w();
    let limits = |device: &Device| {
        let limits = [
            ("write_bandwidth", device.write_bandwidth.map(|rate| rate.to_string())),
            ("read_bandwidth", device.read_bandwidth.map(|rate| rate.to_string())),
            ("bandwidth", device.bandwidth.map(|rate| rate.to_string())),
            ("write_iops", device.write_iops.map(|rate| rate.to_string())),
            ("read_iops", device.read_iops.map(|rate| rate.to_string())),
            ("iops", device.iops.map(|rate| rate.to_string())),
        ];
        limits.into_iter().filter_map(|(key, rate)| Some(format!("{key} {}", rate?))).collect::<Vec<_>>().join(", ")
    };
    let of = |(name, block): (&String, &BlockId)| {
        let (block, device) = (&world.blocks[*block], scenario.machine.devices.get(name)?);
        if block.throttle.is_holding() {
            return Some(format!("{name} (limited by io_max of a cgroup)"));
        }
        let limits = limits(device);
        let limits = if limits.is_empty() { String::new() } else { format!(" ({limits})") };
        (block.in_flight > 0).then(|| format!("{name}{limits}"))
    };
    world.devices.iter().filter_map(of).collect()
}

fn progress(sim: &Sim) -> Progress {
    let world = sim.w();
    Progress {
        now: Nanos(world.now),
        nr_dirty: world.memory.nr_dirty,
        nr_writeback: world.memory.nr_writeback,
        events: sim.events.get(),
    }
}

/// Lets time pass. Checks the counters after every event if the options require it.
fn advance(
    sim: &Sim,
    at: u64,
    options: &Options,
    tell: &mut impl FnMut(&Progress) -> bool,
) -> Result<Stopped, SimError> {
    loop {
        let next = sim.next_at().filter(|next| *next <= at && options.checks_every_event);
        let Some(next) = next else {
            match sim.run_until(at) {
                Stopped::Portion if tell(&progress(sim)) => continue,
                Stopped::Portion => return Ok(Stopped::Asked),
                stopped => return Ok(stopped),
            }
        };
        sim.run_one();
        let world = sim.w();
        let checked = world.check().and_then(|()| world.check_inodes());
        checked.map_err(|what| SimError::Broken(format!("at {next} ns: {what}")))?;
    }
}

fn violation(what: &str, at: u64, scenario: &Scenario, options: &Options) -> SimError {
    SimError::Broken(format!(
        "the simulation at {at} ns: {what}; repeat with {} --variant {} --kernel {} --seed {}",
        scenario.name, options.variant, options.kernel, scenario.workload.seed
    ))
}
