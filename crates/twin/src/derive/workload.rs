// SPDX-License-Identifier: MIT OR Apache-2.0
//! The workload of a twin: one task per cgroup and program, the memory that everything else holds, and the bytes
//! dirtied by no process in the samples.

use super::choices::{self, Open};
use super::group::{Group, PAGE, Stored, groups};
use super::heaps;
use super::layers::layered;
use super::machine::{Ground, Place};
use super::names::{self, Taken};
use super::places::{assigned, divided};
use super::replaced::Replaced;
use super::residence::written_soon;
use super::syncs::{Habit, Syncs, Wrote, add_by_age, are_shown, habits, syncs};
use super::unattributed::unattributed;
use super::unmounts::{Ended, Processes, Unmounts};
use super::writer::Writer;
use super::{Fit, asked, mapped_files, rewrites, rounds, scattered, small, unread};
use crate::provenance::Notes;
use crate::{Program, Programs, Recorded, TwinError};
use floodline_analysis::diagnose::device::{self, Interval};
use floodline_record::human;
use floodline_record::sample::HostRow;
use floodline_record::units::{Bytes, Nanos};
use floodline_record::window::Window;
use floodline_scenario::{Anon, ByteSize, Lasting, Machine, Step, Task, Time, Write};
use std::collections::BTreeMap;

/// Workload of a twin.
pub(super) struct Load {
    /// With writers on an absolute clock.
    pub(super) open: BTreeMap<String, Task>,
    /// With writers that wait for their own writes; `None` if the pauses were traced.
    pub(super) closed: Option<BTreeMap<String, Task>>,
    /// Source of each task.
    pub(super) programs: Programs,
    /// Whether pauses of writers were traced.
    pub(super) is_traced: bool,
    /// Whether the recording shows that a program syncs.
    pub(super) shows_syncs: bool,
    /// Recorded effect of each task with a mapping.
    pub(super) stored: BTreeMap<String, Stored>,
    /// Programs whose counters can be read in another way.
    pub(super) readings: Vec<Open>,
}

/// Most programs of a twin; those that move the most bytes.
const PROGRAMS_MAX: usize = 1000;
/// A program that moved less than this, and less than a thousandth of all, is left out unless it waited.
const BYTES_MIN: f64 = 65_536.0;
/// Share of all bytes that the programs that are left out may move together.
const LEFT_OUT_MAX: f64 = 0.1;
/// Number of samples in a wait from which a program is kept for its waits.
const ASLEEP_MIN: usize = 3;
/// Characters of a task's name that its processes show.
const COMM_MAX: usize = 15;
/// Ages of the pages that were dirty when the recording began.
const AGES: u64 = 6;
/// Pages that a machine writes beside what its programs dirtied: its journals.
const FEW_PAGES: u64 = 64;
/// Memory that is worth a task.
const MEMORY_MIN: u64 = 64 << 20;

/// Fewest bytes from which a program is in the twin. Many small programs, as the pods of a node, move much together: then all are in it
/// but the smallest ones.
fn least(moved: &[f64]) -> f64 {
    let all: f64 = moved.iter().sum();
    let usual = BYTES_MIN.max(all / 1000.0);
    let mut small: Vec<f64> = moved.iter().copied().filter(|bytes| *bytes < usual).collect();
    small.sort_by(f64::total_cmp);
    let mut left = 0.0;
    let missed = small.into_iter().find(|bytes| {
        left += bytes;
        left > LEFT_OUT_MAX * all
    });
    missed.filter(|_| all >= BYTES_MIN).map_or(usual, |bytes| bytes.max(PAGE))
}

pub(super) fn workload(
    recorded: &Recorded,
    ground: &Ground,
    machine: &mut Machine,
    notes: &mut Notes,
    unknown: &mut Vec<String>,
    fit: &Fit,
) -> Result<Load, TwinError> {
    let window = &recorded.window;
    let mut all = groups(recorded, &ground.cgroups);
    let unmounts = Unmounts::of(window, &ground.places);
    all.iter_mut().for_each(|group| unmounts.leave_out(group));
    unread::take_reads(recorded, &mut all);
    let without_process = unattributed(recorded, &mut all);
    all.extend(without_process);
    let all = layered(divided(window, &ground.places, all));
    let moved: f64 = all.iter().map(Group::weight).sum();
    // On a quiet host, each program writes next to nothing. Where nothing became dirty, none wrote to a file.
    let is_dirtied = window.host.growth.nr_dirtied.is_none_or(|pages| pages.0 > 0);
    let is_quiet =
        (moved >= BYTES_MIN || (moved >= PAGE && is_dirtied)) && all.iter().all(|group| group.weight() < BYTES_MIN);
    let least = match is_quiet {
        true => PAGE,
        false if is_dirtied => least(&all.iter().map(Group::weight).collect::<Vec<_>>()),
        false => BYTES_MIN.max(moved / 1000.0),
    };
    let is_kept = |group: &Group| {
        let bytes = group.weight();
        let is_waiting = group.total.waited > 0.05 || group.asleep >= ASLEEP_MIN;
        bytes >= least || (bytes > 0.0 && is_waiting) || group.syncs_of_others().next().is_some()
    };
    let seen = all.len();
    let small = small::of_cgroups(&all, is_kept);
    let habits = habits(&all, &ground.places.0, window);
    let mut all: Vec<(usize, (Group, Option<Habit<'_>>))> = all.into_iter().zip(habits).enumerate().collect();
    let written = small::written(all.iter().map(|(_, (group, _))| group));
    all.retain(|(at, (group, habit))| is_kept(group) || habit.is_some() || small.contains(at));
    all.sort_by(|(_, (a, _)), (_, (b, _))| b.weight().total_cmp(&a.weight()));
    all.truncate(PROGRAMS_MAX);
    // As they appeared on the host.
    all.sort_by_key(|(at, _)| *at);
    let (mut all, habits): (Vec<Group>, Vec<Option<Habit<'_>>>) = all.into_iter().map(|(_, one)| one).unzip();
    if all.iter().all(|group| group.weight() <= 0.0) {
        return Err(TwinError::Idle);
    }
    if seen > all.len() {
        let left = human::plural((seen - all.len()) as u64, "program", "programs");
        unknown.push(format!("The twin leaves out {left} that wrote next to nothing."));
    }
    let mut at = assigned(window, ground, &all);
    let over_time = |of: fn(&Interval) -> f64| -> Vec<Wrote> {
        ground.places.0.iter().map(|place| did_over_time(window, place, of)).collect()
    };
    let (wrote, flushed) = (over_time(|one| one.written_bytes), over_time(|one| one.flushes.unwrap_or(0.0)));
    let syncs = syncs(&all, &ground.places.0, &mut at, (&wrote, &flushed)).into_iter().zip(&habits);
    let mut syncs: Vec<Syncs> = syncs.map(|(syncs, habit)| habit.map_or(syncs, |habit| habit.syncs)).collect();
    let busy: Vec<f64> = ground.places.0.iter().map(|place| busy_share(window, place)).collect();
    add_by_age(&all, &ground.places.0, &at, (&written_soon(recorded, &all, &ground.places.0, &at), &busy), &mut syncs);
    let shows_syncs = are_shown(&all, &syncs, &ground.places.0, window);
    let readings = choices::open(&all, &syncs, recorded);
    choices::apply(&fit.choices, &mut all, &mut syncs, recorded);
    let of_groups: Vec<(&Group, Syncs)> = all.iter().zip(syncs.iter().copied()).collect();
    let mut asked = asked::asked(window, &of_groups, &ground.places.0);
    asked.retain(|asked| !unmounts.made(asked));
    let is_traced = has_throttle(window);
    let (mut taken, mut programs) = (Taken::default(), Programs::new());
    let (mut open, mut closed) = (BTreeMap::new(), BTreeMap::new());
    let device = |dev| ground.places.of(dev).map(|place| place.device.clone());
    let (mut needs_prepared, mut stored, mut told, mut ended) = (Vec::new(), BTreeMap::new(), 0, Vec::new());
    // Many programs that do the same make much together.
    let storing: Vec<f64> = all.iter().map(|group| group.total.mapped).filter(|mapped| *mapped > 0.0).collect();
    let mapped: f64 = storing.iter().sum();
    let little = if mapped > 0.05 * moved { 0.05 * mapped / storing.len() as f64 } else { f64::INFINITY };
    let processes = (!unmounts.is_empty()).then(|| Processes::of(recorded));
    let digits = all.len().to_string().len();
    let on: Vec<usize> = at.iter().map(|at| at.place).collect();
    let here = |place| -> Vec<(&Group, Syncs)> {
        of_groups.iter().zip(&on).filter(|(_, on)| **on == place).map(|(one, _)| *one).collect()
    };
    for (number, ((group, syncs), (habit, at))) in
        (1..).zip(all.iter().zip(syncs.iter().copied()).zip(habits.into_iter().zip(at)))
    {
        let cgroup = ground.cgroups.path(group.cgroup);
        ground.cgroups.add(cgroup, machine, device, notes);
        // Tasks run and draw their numbers in order of name: the number in front keeps names of the host out of that.
        let task = taken.unique(&format!("{number:0digits$}-{}", names::task(&group.comm)), COMM_MAX);
        let place = habit.filter(|_| !at.is_known).map_or(&ground.places.0[at.place], |habit| habit.place);
        let replaced = Replaced::of(group, &all, syncs, recorded).filter(|_| group.made.is_none());
        let rewritten = rewrites::file(group, &all, recorded)
            .or_else(|| scattered::file(group, syncs, place, &here(at.place), recorded))
            .or_else(|| rewrites::in_place(group, syncs))
            .or_else(|| replaced.and_then(Replaced::in_place))
            .or_else(|| rounds::file(group, &all, recorded).filter(|_| replaced.is_none() && group.made.is_none()));
        let syncs = if rewritten.is_some() { syncs.of_overwrites(group) } else { syncs };
        let is_emptied = replaced.is_some_and(|it| it.is_emptied);
        let writer = Writer::of(group, (syncs, rewritten, is_emptied), place, &task, recorded, notes, fit);
        // What is little changes no figure: it is not worth a run.
        if let Some(did) = writer.stored.filter(|_| group.total.mapped > little) {
            stored.insert(task.clone(), did);
        }
        let make = |steps: Vec<Step>| {
            let n = writer.copies;
            Task {
                cgroup: (!cgroup.is_empty()).then(|| cgroup.to_owned()),
                instances: (n > 1).then(|| u32::try_from(n).unwrap_or(1)),
                stagger: (n > 1).then_some(Time(Nanos(20_000_000))),
                setup: writer.setup.clone(),
                steps,
                ..Task::default()
            }
        };
        told = writer.dirty_before.saturating_mul(writer.copies).saturating_add(told);
        needs_prepared.extend(writer.prepared.clone());
        open.insert(task.clone(), make(writer.open));
        closed.insert(task.clone(), make(writer.closed));
        ended.extend(processes.as_ref().and_then(|all| Ended::of(group, &task, place, all)));
        programs.insert(
            task,
            Program {
                comm: group.shown.clone(),
                cgroup: ground.cgroups.shown(group.cgroup).to_owned(),
                processes: group.processes,
                device: place.device.clone(),
            },
        );
    }
    unknown.extend(ground.cgroups.left_out(machine, &written));
    let besides = Besides { prepared: needs_prepared, dirty: told, unmounts, ended, asked };
    let mut extra = besides.tasks(window, ground, (machine, &mut taken), (notes, unknown));
    if let Some(task) = ground.cgroups.changes(machine, device, unknown) {
        let name = taken.unique("limits", COMM_MAX);
        notes.measured(format!("workload.tasks.{name}"), "limits of cgroups that changed");
        extra.insert(name, task);
    }
    for tasks in [&mut open, &mut closed] {
        begin_together(tasks, &mut extra, fit.before);
        tasks.extend(extra.clone());
    }
    let is_same = open == closed;
    Ok(Load { open, closed: (!is_same).then_some(closed), programs, stored, is_traced, shows_syncs, readings })
}

/// Delays programs that store before the recording until they go on without a break when it begins, though other tasks take longer
/// to prepare. Tasks that prepare faster are delayed as well.
fn begin_together(programs: &mut BTreeMap<String, Task>, others: &mut BTreeMap<String, Task>, before: f64) {
    let seconds = |step: &Step| if let Step::Sleep(sleep) = step { sleep.lasting.0.as_secs_f64() } else { 0.0 };
    let sleeps = |task: &Task| -> f64 { task.setup.iter().map(seconds).sum() };
    let waits = |task: &Task| task.setup.iter().any(|step| matches!(step, Step::Barrier(_)));
    // A task that waits for the files begins after the pause that follows their creation.
    let rest = others.values().filter(|task| waits(task)).map(sleeps).fold(0.0, f64::max);
    let longest = others.values().filter(|task| !waits(task)).map(sleeps).fold(rest + before, f64::max);
    let sleep = |seconds: f64| Step::Sleep(Lasting { lasting: super::bursts::time(seconds) });
    let is_paced = |step: &Step| matches!(step, Step::MmapStore(stores) if stores.rate.is_some());
    let mut is_any = false;
    for task in programs.values_mut() {
        let Some(at) = task.setup.iter().position(is_paced) else { continue };
        is_any = true;
        // It may have left pages dirty before.
        let slept: f64 = task.setup[..at].iter().map(seconds).sum();
        let late = longest - before - slept - if waits(task) { rest } else { 0.0 };
        if late > 1e-3 {
            task.setup.insert(at, sleep(late));
        }
    }
    for task in others.values_mut().filter(|task| is_any && !waits(task) && sleeps(task) > 0.0) {
        let late = longest - sleeps(task);
        if late > 1e-3 {
            task.setup.insert(0, sleep(late));
        }
    }
}

/// What runs beside the programs.
struct Besides<'a> {
    /// Files that are written first and then dropped from the page cache, and their sizes.
    prepared: Vec<(String, u64)>,
    /// Bytes that the programs leave dirty before they start.
    dirty: u64,
    unmounts: Unmounts<'a>,
    /// Programs that ended in the recording.
    ended: Vec<Ended>,
    asked: Vec<asked::Asked<'a>>,
}

impl Besides<'_> {
    /// Their tasks, by name.
    fn tasks(
        self,
        window: &Window,
        ground: &Ground,
        (machine, taken): (&mut Machine, &mut Taken),
        (notes, unknown): (&mut Notes, &mut Vec<String>),
    ) -> BTreeMap<String, Task> {
        let mut extra = BTreeMap::new();
        if !self.prepared.is_empty() {
            extra.insert(taken.unique("prepare", COMM_MAX), mapped_files::prepare(self.prepared, rest(window)));
        }
        let heaps = heaps::heaps(&ground.cgroups, machine);
        for (path, heap) in &heaps {
            let name = taken.unique("heap", COMM_MAX);
            let key = format!("workload.tasks.{name}");
            extra.insert(name, heaps::task(path, *heap, window.seconds(), &key, notes));
        }
        if let Some(task) = other_memory(window, machine, heaps::at_begin(&heaps)) {
            let name = taken.unique("other-memory", COMM_MAX);
            notes.derived(format!("workload.tasks.{name}"), "MemTotal without free memory and page cache");
            extra.insert(name, task);
        }
        if let Some(task) = dirty_before(window, &ground.places.0, self.dirty) {
            let name = taken.unique("dirty-before", COMM_MAX);
            notes.measured(format!("workload.tasks.{name}"), "pages that were dirty when the recording began");
            extra.insert(name, task);
        }
        if let Some(task) = self.unmounts.add(machine, self.ended, notes, unknown) {
            let name = taken.unique("umount", COMM_MAX);
            notes.measured(format!("workload.tasks.{name}"), "unmounts that were seen waiting");
            extra.insert(name, task);
        }
        if let Some(task) = asked::task(&self.asked) {
            let name = taken.unique("sync", COMM_MAX);
            let key = format!("workload.tasks.{name}");
            match window.traced.contains("bytes") {
                true => notes.measured(key, "waits for a whole filesystem in the trace"),
                false => notes.assumed(
                    key,
                    "all dirty data went to the device, although it was neither old nor much: assumed to be a sync of the filesystem",
                ),
            }
            extra.insert(name, task);
        }
        extra
    }
}

/// What the device of a place did in each interval: the bytes or flushes that `of` picks.
fn did_over_time(window: &Window, place: &Place, of: fn(&Interval) -> f64) -> Wrote {
    let start = window.first_at.map_or(0, |first| first.monotonic.0);
    let intervals = device::by_dev(window, place.dev).map_or_else(Vec::new, |device| device.intervals());
    intervals.iter().map(|one| (Nanos(one.end.0.saturating_sub(start)).as_secs_f64(), of(one))).collect()
}

/// Share of the time in which the device of a place was busy.
fn busy_share(window: &Window, place: &Place) -> f64 {
    let busy = device::by_dev(window, place.dev).and_then(|seen| Some(seen.span.growth.io_time?.as_secs_f64()));
    busy.unwrap_or(0.0) / window.seconds().max(1e-3)
}

/// Time in which the flusher wakes up once and finds nothing to write.
fn rest(window: &Window) -> Time {
    let every = window.host.last.dirty_writeback_centisecs.map_or(500, |centisecs| centisecs.0).min(6000);
    Time(Nanos(every.saturating_mul(10_000_000).saturating_add(Nanos::SECOND.0)))
}

/// Whether pauses in dirty throttling were traced.
pub(super) fn has_throttle(window: &Window) -> bool {
    window.traced.iter().any(|part| part.contains("throttle") || part.contains("balance_dirty"))
}

/// A task that holds the memory which neither is free nor page cache, but for the heaps of cgroups.
fn other_memory(window: &Window, machine: &Machine, in_heaps: u64) -> Option<Task> {
    let row = &window.host.first;
    let total = row.mem_total?.0;
    let cache = (row.nr_inactive_file?.0.saturating_add(row.nr_active_file?.0)).saturating_mul(4096);
    let used = total.saturating_sub(row.mem_free?.0).saturating_sub(cache);
    // The model's kernel holds a fiftieth by itself, at most 256 MiB.
    let own = (machine.memory.bytes() / 50).min(256 << 20);
    let rest = used.saturating_sub(own).min(total / 10 * 8).saturating_sub(in_heaps);
    if rest < MEMORY_MIN {
        return None;
    }
    Some(Task {
        setup: vec![Step::Anon(Anon { size: ByteSize(Bytes(rest)) })],
        steps: vec![Step::Sleep(Lasting { lasting: Time(Nanos((window.seconds() * 1e9) as u64)) })],
        ..Task::default()
    })
}

/// A task that leaves the pages dirty that were dirty when the recording began, but for those that others leave.
fn dirty_before(window: &Window, places: &[Place], by_others: u64) -> Option<Task> {
    let dirty = window.host.first.nr_dirty?.0.saturating_mul(4096).saturating_sub(by_others);
    if dirty < 1 << 20 {
        return None;
    }
    let place = places.first()?;
    let part = ByteSize(Bytes((dirty / AGES).max(4096)));
    let age = Time(Nanos(oldest(window).0 / AGES));
    let mut setup = Vec::new();
    for number in 0..AGES {
        setup.push(Step::Write(Write {
            file: format!("{}/twin/before-{number}", place.point),
            block: ByteSize(Bytes(1 << 16)),
            total: Some(part),
            ..Write::default()
        }));
        setup.push(Step::Sleep(Lasting { lasting: age }));
    }
    Some(Task { setup, steps: vec![Step::Sleep(Lasting { lasting: Time(Nanos(1_000_000)) })], ..Task::default() })
}

/// How long the oldest page was dirty when the recording began. Pages have all ages up to that at which they are written. While nothing is
/// written, none is that old.
pub(super) fn oldest(window: &Window) -> Nanos {
    let expire = window.host.last.dirty_expire_centisecs.map_or(3000, |centisecs| centisecs.0).min(6000);
    let expire = expire.saturating_mul(10_000_000);
    Nanos(expire.saturating_sub(first_written(window).0).max(Nanos::SECOND.0))
}

/// How long after the begin of a recording the first pages were written; zero where that was not counted.
pub(super) fn first_written(window: &Window) -> Nanos {
    let Some((start, first)) = window.host_series.first() else { return Nanos(0) };
    let written = |row: &HostRow| row.nr_written.map(|pages| pages.0);
    let Some(before) = written(first) else { return Nanos(0) };
    let same = window
        .host_series
        .iter()
        .take_while(|(_, row)| written(row).is_some_and(|now| now <= before.saturating_add(FEW_PAGES)));
    same.last().map_or(Nanos(0), |(time, _)| Nanos(time.monotonic.0.saturating_sub(start.monotonic.0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_scenario::{Frequency, MmapStore};

    #[test]
    fn small_programs_that_move_much_together_are_in_the_twin() {
        const KIB: f64 = 1024.0;
        // 200 pods that write 60 KiB each, beside an agent.
        let mut moved = vec![60.0 * KIB; 200];
        moved.push(200.0 * KIB);
        assert_eq!(least(&moved), 60.0 * KIB);
        // The same beside a database.
        moved.push(4e9);
        assert!(least(&moved) > 1e6);
        // Half of them write next to nothing.
        moved.truncate(201);
        moved[..100].fill(KIB);
        assert_eq!(least(&moved), 60.0 * KIB);
        assert_eq!(least(&[]), BYTES_MIN);
    }

    #[test]
    fn a_program_that_leaves_pages_dirty_is_delayed_less() {
        let sleep = |seconds: f64| Step::Sleep(Lasting { lasting: super::super::bursts::time(seconds) });
        let seconds = |task: &Task| -> Vec<f64> {
            let of = |step: &Step| if let Step::Sleep(it) = step { Some(it.lasting.0.as_secs_f64()) } else { None };
            task.setup.iter().filter_map(of).collect()
        };
        let rate = Some(Frequency { times: 1, per: Nanos::SECOND });
        let stores = Step::MmapStore(MmapStore { rate, ..MmapStore::default() });
        let task = |setup: Vec<Step>| BTreeMap::from([("a".to_owned(), Task { setup, ..Task::default() })]);
        let delays = |setup: Vec<Step>| {
            let (mut programs, mut others) = (task(setup), task(vec![sleep(30.0)]));
            begin_together(&mut programs, &mut others, 5.0);
            seconds(&programs["a"])
        };
        assert_eq!(delays(vec![stores.clone()]), [25.0]);
        assert_eq!(delays(vec![sleep(20.0), stores]), [20.0, 5.0]);
    }
}
