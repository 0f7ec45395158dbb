// SPDX-License-Identifier: MIT OR Apache-2.0
//! Overlays of the recording that are written out when they are unmounted, and their unmounts.

use super::asked::Asked;
use super::bursts::time;
use super::group::Group;
use super::machine::{Place, Places};
use crate::provenance::Notes;
use floodline_analysis::diagnose::derived::Derived;
use floodline_record::human;
use floodline_record::units::Nanos;
use floodline_record::window::Window;
use floodline_scenario::{FsType, Machine, Mkfs, Mount, Mounting, OverlayDirs, Step, Task, Until};

/// Most overlays of a twin on one filesystem. Unmounts at one moment all wait for the same data.
const OVERLAYS_MAX: u64 = 64;
/// Unmounts that begin within this many seconds are simulated at one moment.
const NEAR: f64 = 1.0;

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

    /// Mounts the overlays, and returns the task that unmounts them.
    pub(super) fn add(&self, machine: &mut Machine, notes: &mut Notes) -> Option<Task> {
        let mut prefix = "/twin-overlay".to_owned();
        while machine.mounts.keys().any(|point| point.starts_with(&prefix)) {
            prefix.push('_');
        }
        let mut steps: Vec<(f64, f64, Mounting)> = Vec::new();
        for OnPlace { place, overlays, seen } in &self.0 {
            let mut left = *overlays;
            for (number, AtOnce { at, end, count }) in seen.iter().enumerate() {
                let point = mount(&format!("{prefix}-{}-{number}", place.device), place, *count, machine);
                steps.push((*at, *end, Mounting { point, count: *count, at_once: true, lazy: false }));
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
        steps.sort_by(|one, other| one.0.total_cmp(&other.0));
        task(steps)
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

/// Unmounts in order of time, with when each begins and ends, in seconds.
fn task(unmounts: Vec<(f64, f64, Mounting)>) -> Option<Task> {
    let (mut steps, mut now) = (Vec::new(), 0.0);
    for (at, end, mounting) in unmounts {
        if at > now + 1e-3 {
            steps.push(Step::SleepUntil(Until { at: time(at) }));
        }
        steps.push(Step::Umount(mounting));
        now = end.max(now);
    }
    (!steps.is_empty()).then(|| Task { steps, ..Task::default() })
}
