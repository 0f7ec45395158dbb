// SPDX-License-Identifier: MIT OR Apache-2.0
//! Overlays of the recording that are written out when they are unmounted, and their unmounts.

use super::asked::Asked;
use super::bursts::time;
use super::group::Group;
use super::machine::{Place, Places};
use crate::Recorded;
use crate::provenance::Notes;
use floodline_analysis::diagnose::derived::Derived;
use floodline_record::human;
use floodline_record::id::{DevId, Entity, EntityId};
use floodline_record::sample::ProcessRow;
use floodline_record::units::{Count, Nanos};
use floodline_record::window::{Span, Window};
use floodline_scenario::{FsType, Lasting, Machine, Mkfs, Mount, Mounting, OverlayDirs, Step, Task, Until, WaitFor};
use std::collections::BTreeMap;
use std::mem::take;

/// Most overlays of a twin on one filesystem. Unmounts at one moment all wait for the same data.
const OVERLAYS_MAX: u64 = 64;
/// Unmounts that begin within this many seconds are simulated at one moment.
const NEAR: f64 = 1.0;
/// Longest time from the last write of a program to an unmount that waits for its end, seconds.
const JUST_BEFORE: f64 = 10.0;

/// What a twin of a recording with such an unmount cannot know.
const UNKNOWN: &str = "Which task waits for which is not known. The twin unmounts an overlay after the programs that ended just before the \
    recorded unmount, with the recorded delay.";

/// A program that wrote to a filesystem and ended.
pub(super) struct Ended {
    /// Its task.
    task: String,
    /// The device of the filesystem.
    dev: DevId,
    /// End of its last interval with writes, seconds since the recording began.
    at: f64,
    /// When the last of its processes was read before it ended, seconds since the recording began. A process that its parent does not
    /// reap stays, and has not done anything since its last write.
    seen: f64,
}

/// State letter of a process that ended and was not reaped.
const ZOMBIE: Count = Count(b'Z' as u64);

/// A program: the cgroup in which its processes did most of their work, and their name.
type Program<'a> = (Option<EntityId>, &'a [u8]);

/// The processes of a recording by program, so that they are gone through once for all programs.
pub(super) struct Processes<'a> {
    of: BTreeMap<Program<'a>, Vec<&'a Span<ProcessRow>>>,
    /// When the last process was read.
    latest: Nanos,
    /// When the recording began.
    first: u64,
}

impl<'a> Processes<'a> {
    pub(super) fn of(recorded: &'a Recorded) -> Processes<'a> {
        let window = &recorded.window;
        let mut of: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (id, span) in &window.processes {
            if let Some(Entity::Process { comm, .. }) = window.entities.get(id) {
                of.entry((recorded.home(id), comm.as_bytes())).or_default().push(span);
            }
        }
        let latest = window.processes.values().map(|span| span.last_at).max().unwrap_or_default();
        Processes { of, latest, first: window.first_at.map_or(0, |first| first.monotonic.0) }
    }
}

impl Ended {
    /// The program of a task. `None` if one of its processes lives at the end of the recording, or if it wrote nothing.
    pub(super) fn of(group: &Group, task: &str, place: &Place, processes: &Processes<'_>) -> Option<Ended> {
        let last = group.bins.iter().rfind(|bin| bin.by_calls + bin.mapped > 0.0)?;
        let own = processes.of.get(&(group.cgroup, group.comm.as_slice()))?;
        let mut reaped = own.iter().filter(|span| span.last.state != Some(ZOMBIE));
        let since = |span: &Span<ProcessRow>| Nanos(span.last_at.0.saturating_sub(processes.first)).as_secs_f64();
        let seen = reaped.clone().map(|span| since(span)).fold(0.0, f64::max);
        let lives = reaped.any(|span| span.last_at == processes.latest);
        (!lives).then(|| Ended { task: task.to_owned(), dev: place.dev, at: last.end, seen })
    }
}

/// The overlays on one filesystem.
struct OnPlace<'a> {
    place: &'a Place,
    /// How many there are.
    overlays: u64,
    /// Unmounts that were seen waiting, in order of time.
    seen: Vec<AtOnce>,
}

/// Unmounts at one moment, in seconds since the recording began.
struct AtOnce {
    at: f64,
    end: f64,
    count: u64,
}

/// All overlays of a recording.
pub(super) struct Unmounts<'a>(Vec<OnPlace<'a>>);

impl<'a> Unmounts<'a> {
    /// Finds them.
    pub(super) fn of(window: &Window, places: &'a Places) -> Unmounts<'a> {
        let derived = Derived::of(window);
        let unmounts = derived.unmounts();
        let on_place = unmounts.uppers.iter().filter_map(|upper| {
            let of_upper = unmounts.noticed.iter().find(|one| one.upper.device.id == upper.device.id);
            let waits = of_upper.filter(|one| one.seen.is_happening()).map_or(&[][..], |one| &one.seen.waits);
            Some(OnPlace {
                place: places.of(upper.device.dev)?,
                overlays: upper.overlays.clamp(1, OVERLAYS_MAX),
                seen: at_once(window, waits),
            })
        });
        Unmounts(on_place.collect())
    }

    /// Whether no unmount was seen waiting.
    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(|on| on.seen.is_empty())
    }

    /// Whether a wait, in seconds, is one of them.
    fn is_one(&self, from: f64, to: f64) -> bool {
        self.0.iter().flat_map(|on| &on.seen).any(|seen| from < seen.end && to > seen.at)
    }

    /// Removes their waits from the program that unmounts: it has a task of its own.
    pub(super) fn leave_out(&self, group: &mut Group) {
        let waits: Vec<(usize, f64, f64)> = group.syncs_of_others().collect();
        for (bin, at, seconds) in waits {
            if self.is_one(at, at + seconds) {
                group.total.waited -= group.bins[bin].waited;
                group.bins[bin].waited = 0.0;
            }
        }
    }

    /// Whether a request to write out a filesystem is one of them.
    pub(super) fn made(&self, asked: &Asked<'_>) -> bool {
        self.is_one(asked.at - NEAR, asked.at + asked.seconds + NEAR)
            && self.0.iter().any(|on| on.place.dev == asked.place.dev && !on.seen.is_empty())
    }

    /// Mounts the overlays, and returns the task that unmounts them. `ended` are the programs that may have written to them.
    pub(super) fn add(
        &self,
        machine: &mut Machine,
        mut ended: Vec<Ended>,
        notes: &mut Notes,
        unknown: &mut Vec<String>,
    ) -> Option<Task> {
        let mut prefix = "/twin-overlay".to_owned();
        while machine.mounts.keys().any(|point| point.starts_with(&prefix)) {
            prefix.push('_');
        }
        let mut unmounts: Vec<(f64, f64, DevId, Mounting)> = Vec::new();
        for OnPlace { place, overlays, seen } in &self.0 {
            let mut left = *overlays;
            for (number, AtOnce { at, end, count }) in seen.iter().enumerate() {
                let point = mount(&format!("{prefix}-{}-{number}", place.device), place, *count, machine);
                let mounting = Mounting { point, count: *count, at_once: true, lazy: false };
                unmounts.push((*at, *end, place.dev, mounting));
                left = left.saturating_sub(*count);
            }
            if left > 0 {
                mount(&format!("{prefix}-{}", place.device), place, left, machine);
            }
            notes.measured(
                format!("machine.mounts.\"{prefix}-{}\"", place.device),
                format!(
                    "{} with upper directories on {}",
                    human::plural(*overlays, "overlay", "overlays"),
                    place.point
                ),
            );
        }
        unmounts.sort_by(|one, other| one.0.total_cmp(&other.0));
        let steps = steps(unmounts, &mut ended);
        if steps.iter().any(|step| matches!(step, Step::WaitFor(_))) {
            unknown.push(UNKNOWN.to_owned());
        }
        (!steps.is_empty()).then(|| Task { steps, ..Task::default() })
    }
}

/// Unmounts from their waits: those that began together.
fn at_once(window: &Window, waits: &[(Nanos, Nanos)]) -> Vec<AtOnce> {
    let first = window.first_at.map_or(0, |first| first.monotonic.0);
    let seconds = |at: Nanos| Nanos(at.0.saturating_sub(first)).as_secs_f64();
    let mut waits: Vec<(f64, f64)> = waits.iter().map(|(from, to)| (seconds(*from), seconds(*to))).collect();
    waits.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut all: Vec<AtOnce> = Vec::new();
    for (at, end) in waits {
        match all.last_mut().filter(|last| at <= last.at + NEAR) {
            Some(last) => {
                last.end = last.end.max(end);
                last.count = (last.count + 1).min(OVERLAYS_MAX);
            }
            None => all.push(AtOnce { at, end, count: 1 }),
        }
    }
    all.truncate(OVERLAYS_MAX as usize);
    all
}

/// Adds overlays to the machine. Returns their mount point as a step names it.
fn mount(name: &str, place: &Place, count: u64, machine: &mut Machine) -> String {
    let dir = |what: &str| format!("{}/twin{name}/{what}", place.point);
    let overlay = OverlayDirs { lower: dir("lower"), upper: dir("upper{i}"), work: dir("work{i}") };
    let mount = Mount {
        fs_type: FsType::Overlay,
        device: None,
        mkfs: Mkfs::default(),
        options: Vec::new(),
        overlay: Some(overlay),
        instances: u32::try_from(count).ok(),
        at_start: true,
        in_use: false,
    };
    machine.mounts.insert(format!("{name}-{{i}}"), mount);
    format!("{name}-{{n}}")
}

/// Steps of unmounts in order of time, with when each begins and ends, in seconds. An unmount waits for the programs that ended just
/// before it: a container is removed once its programs have ended, whenever that is. Each program is taken out of `ended`.
fn steps(unmounts: Vec<(f64, f64, DevId, Mounting)>, ended: &mut Vec<Ended>) -> Vec<Step> {
    let (mut steps, mut now) = (Vec::new(), 0.0_f64);
    for (at, end, dev, mounting) in unmounts {
        // What a program writes between two samples counts for the end of the interval.
        let is_before = |one: &Ended| one.seen < at && (at - JUST_BEFORE..at + NEAR).contains(&one.at);
        let (before, others): (Vec<Ended>, Vec<Ended>) =
            take(ended).into_iter().partition(|one| one.dev == dev && is_before(one));
        *ended = others;
        let is_any = !before.is_empty();
        for Ended { task, at, .. } in before {
            now = now.max(at);
            steps.push(Step::WaitFor(WaitFor { task }));
        }
        if at > now + 1e-3 {
            steps.push(match is_any {
                true => Step::Sleep(Lasting { lasting: time(at - now) }),
                false => Step::SleepUntil(Until { at: time(at) }),
            });
        }
        steps.push(Step::Umount(mounting));
        now = end.max(now);
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unmount_waits_for_the_programs_that_ended_just_before_it() {
        let dev = DevId { major: 254, minor: 0 };
        let ended = |task: &str, at: f64, seen: f64| Ended { task: task.to_owned(), dev, at, seen };
        let unmount = |at: f64| {
            let mounting = Mounting { point: "/o-{n}".to_owned(), count: 2, at_once: true, lazy: false };
            (at, at + 2.0, dev, mounting)
        };
        let told = |unmounts: &[f64], mut ended: Vec<Ended>| -> Vec<String> {
            let steps = steps(unmounts.iter().map(|at| unmount(*at)).collect(), &mut ended);
            let said = |step: &Step| match step {
                Step::WaitFor(wait) => format!("wait for {}", wait.task),
                Step::Sleep(sleep) => format!("sleep {}", sleep.lasting.0.as_secs_f64()),
                Step::SleepUntil(until) => format!("until {}", until.at.0.as_secs_f64()),
                step => step.verb().to_owned(),
            };
            steps.iter().map(said).collect()
        };
        let writers = || vec![ended("a", 3.0, 2.0), ended("b", 4.5, 4.0)];
        assert_eq!(told(&[6.0], writers()), ["wait for a", "wait for b", "sleep 1.5", "umount"]);
        // One that ended long before, and one that lives when the unmount begins.
        assert_eq!(told(&[60.0], writers()), ["until 60", "umount"]);
        assert_eq!(told(&[3.5], writers()), ["wait for a", "sleep 0.5", "umount"]);
        // Each program is waited for once. The second unmount comes after the first one, too.
        assert_eq!(
            told(&[3.5, 6.5], writers()),
            ["wait for a", "sleep 0.5", "umount", "wait for b", "sleep 1", "umount"]
        );
        let elsewhere = Ended { dev: DevId { major: 8, minor: 0 }, ..ended("a", 3.0, 2.0) };
        assert_eq!(told(&[6.0], vec![elsewhere]), ["until 6", "umount"]);
    }
}
