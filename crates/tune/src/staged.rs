// SPDX-License-Identifier: MIT OR Apache-2.0
//! The steps of a plan's ramp. After each step but the last the host is watched, and the next one follows only if what the
//! plan asks for holds. To the guard all of it is a change that is still being written: it puts the values from before the
//! first step back. The plan comes from a file, so each step is checked before the first write.

use crate::error::TuneError;
use crate::guard::harm;
use crate::host::Host;
use crate::knob::Knob;
use crate::ramp::Memory;
use crate::slot::{Live, Slot, Write};
use floodline_analysis::change::{Bound, IO_SOME_SHARE, Ramp};
use floodline_analysis::prediction::PEAK;
use floodline_analysis::ramp::STEPS_MAX;
use floodline_record::human;
use std::time::{Duration, Instant};

mod check;

/// Shortest and longest watch after a step, seconds.
const WATCH_S: (f64, f64) = (1.0, 600.0);
/// Time between two readings.
const READ_EVERY: Duration = Duration::from_millis(250);

/// A step of a ramp.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    /// Its number in the writes of the slots.
    pub step: usize,
    /// Its number among the steps that write something, from 1, and how many these are.
    pub number: (usize, usize),
    /// What it sets, as `NAME=VALUE`.
    pub set: Vec<String>,
    /// How long the host is watched after it.
    pub watch: Duration,
    /// What must hold then.
    pub go_on_if: Vec<Bound>,
}

/// The steps of a ramp that change something here, checked. The writes of the slots become those of the steps. Each value
/// lies between the one before it and the new one, and each step is checked as a whole change is.
pub fn stages(host: &Host, ramp: &Ramp, slots: &mut [Slot]) -> Result<Vec<Stage>, TuneError> {
    let invalid = |why: String| {
        TuneError::refused(format!("the ramp of the plan is invalid: {why}"))
            .hint(crate::apply::NEW_PLAN)
            .hint("or make the change in one step: add --at-once")
    };
    let memory = Memory::read(host);
    let total = host.fingerprint().mem_total_bytes;
    if ramp.steps.is_empty() || ramp.steps.len() > STEPS_MAX {
        return Err(invalid(format!("it has {} steps, expected 1 to {STEPS_MAX}", ramp.steps.len())));
    }
    let mut writes: Vec<Vec<Write>> = vec![Vec::new(); slots.len()];
    let mut stages = Vec::new();
    for (at, step) in ramp.steps.iter().enumerate() {
        if !(WATCH_S.0..=WATCH_S.1).contains(&step.watch_s) {
            let (least, most) = WATCH_S;
            return Err(invalid(format!("watch_s of step {} is not between {least} and {most}", at + 1)));
        }
        step.go_on_if.iter().try_for_each(|bound| check::bound(bound, at + 1, total)).map_err(&invalid)?;
        let mut set = Vec::new();
        for text in &step.set {
            let written = write(host, text, at, slots).map_err(&invalid)?;
            // A value of the plan that was in force already has no slot.
            if let Some((slot, write)) = written {
                let Some(writes) = writes.get_mut(slot) else { continue };
                if writes.last().is_some_and(|before| before.step == at) {
                    return Err(invalid(format!("step {} sets one setting twice: {text}", at + 1)));
                }
                set.push(text.clone());
                writes.push(write);
            }
        }
        if !set.is_empty() {
            let watch = Duration::from_secs_f64(step.watch_s);
            stages.push(Stage { step: at, number: (0, 0), set, watch, go_on_if: step.go_on_if.clone() });
        }
    }
    let count = stages.len();
    for (at, stage) in stages.iter_mut().enumerate() {
        stage.number = (at + 1, count);
        // Nothing is watched after the last step: the guard waits for a confirmation.
        if at + 1 < count {
            stage.go_on_if.iter().try_for_each(|bound| may_be_read(host, bound))?;
        }
    }
    for (slot, writes) in slots.iter().zip(&writes) {
        let (wanted, last) = (slot.writes.last(), writes.last());
        if wanted.map(|write| (write.at, &write.value)) != last.map(|write| (write.at, &write.value)) {
            return Err(invalid(format!("its last step does not set {}", slot.new_shown())));
        }
    }
    for (slot, writes) in slots.iter().zip(&writes) {
        check::leads(host, slot, writes, memory.as_ref()).map_err(&invalid)?;
    }
    check::thresholds(host, slots, &writes, ramp.steps.len(), memory.as_ref()).map_err(&invalid)?;
    for (slot, writes) in slots.iter_mut().zip(writes) {
        slot.writes = writes;
    }
    Ok(stages)
}

/// The write of `NAME=VALUE` in a step, and the number of its slot. `None` if no slot has the knob.
fn write(host: &Host, text: &str, step: usize, slots: &[Slot]) -> Result<Option<(usize, Write)>, String> {
    let (name, value) = text.split_once('=').ok_or_else(|| format!("{text:?} is not NAME=VALUE"))?;
    let knob = Knob::resolve(host, name).map_err(|error| error.to_string())?;
    let value = knob.canonical(value).map_err(|error| error.to_string())?;
    let has_it = |slot: &Slot| slot.attributes.first() == knob.state.first();
    let Some(found) = slots.iter().position(has_it) else { return Ok(None) };
    let attributes = slots.get(found).map_or(&[][..], |slot| &slot.attributes);
    let at = attributes.iter().position(|attribute| *attribute == knob.written);
    let at = at.ok_or_else(|| format!("step {} sets {name}, and the plan sets the same by another name", step + 1))?;
    Ok(Some((found, Write { at, value, step })))
}

/// Time in which the host is watched.
pub fn watching(stages: &[Stage]) -> Duration {
    stages.split_last().map_or(Duration::ZERO, |(_, watched)| watched.iter().map(|stage| stage.watch).sum())
}

/// Refuses a bound of a figure that this host does not report.
fn may_be_read(host: &Host, bound: &Bound) -> Result<(), TuneError> {
    let is_read = match bound.figure.as_str() {
        IO_SOME_SHARE => waited_us(host).is_some(),
        PEAK => unwritten(host).is_some(),
        _ => false,
    };
    if is_read {
        return Ok(());
    }
    Err(TuneError::refused(format!(
        "the ramp of the plan has a bound on {}, which this host does not report",
        bound.figure
    ))
    .hint("make the change in one step: add --at-once"))
}

/// Time for which some task waited for I/O since boot, microseconds.
fn waited_us(host: &Host) -> Option<u64> {
    harm::some_total(host.read("proc/pressure/io").ok()?.as_bytes())
}

/// Dirty data and data under writeback, bytes.
fn unwritten(host: &Host) -> Option<u64> {
    let page = u64::try_from(rustix::param::page_size()).ok()?;
    Some((host.vmstat("nr_dirty")?.saturating_add(host.vmstat("nr_writeback")?)).saturating_mul(page))
}

/// Watches the host after a step for as long as the plan says. The error says what did not hold.
pub fn watch(host: &Host, stage: &Stage, is_guarded: impl Fn() -> bool) -> Result<(), String> {
    let (started, before) = (Instant::now(), waited_us(host));
    let mut peak = 0;
    while started.elapsed() < stage.watch {
        if !is_guarded() {
            return Err("the guard ended".to_owned());
        }
        peak = peak.max(unwritten(host).unwrap_or(0));
        std::thread::sleep(READ_EVERY.min(stage.watch.saturating_sub(started.elapsed())));
    }
    let seconds = started.elapsed().as_secs_f64();
    let waited = before.zip(waited_us(host)).map(|(before, now)| now.saturating_sub(before) as f64 / 1e6);
    let share = waited.filter(|_| seconds > 0.0).map(|waited| (waited / seconds).min(1.0));
    match broken(stage, share, peak) {
        Some(why) => Err(why),
        None => Ok(()),
    }
}

/// The values of each slot after a step: those that were written, or else those from before the change. Where the kernel shows
/// a value otherwise than it was written, the reading of now. `None` if that cannot be read.
pub fn present(host: &Host, slots: &[Slot], step: usize) -> Vec<Option<Vec<String>>> {
    let of = |slot: &Slot| match slot.writes.iter().rfind(|write| write.step <= step) {
        None => Some(slot.old.clone()),
        Some(write) if slot.is_exact => Some(slot.after(write)),
        Some(_) => values(host, slot),
    };
    slots.iter().map(of).collect()
}

fn values(host: &Host, slot: &Slot) -> Option<Vec<String>> {
    Live::open(host, slot).and_then(|live| live.values()).ok()
}

/// Checks that each slot still has the values that it had after a step. The error names what another program changed.
pub fn is_still(host: &Host, slots: &[Slot], present: &[Option<Vec<String>>]) -> Result<(), String> {
    for (slot, before) in slots.iter().zip(present) {
        let now = values(host, slot);
        if now == *before {
            continue;
        }
        let shown = |values: &Option<Vec<String>>| match values {
            // Of a pair, the member that is in force.
            Some(values) => Slot { old: values.clone(), ..slot.clone() }.old_shown(),
            None => slot.attributes.first().map_or("", |first| &first.name).to_owned() + " cannot be read",
        };
        return Err(format!(
            "another program changed a value while the host was watched: {} became {}",
            shown(before),
            shown(&now)
        ));
    }
    Ok(())
}

/// The first bound of a step that did not hold. Pure.
fn broken(stage: &Stage, share: Option<f64>, peak: u64) -> Option<String> {
    let (number, of) = stage.number;
    let watched = human::seconds(stage.watch.as_secs_f64());
    stage.go_on_if.iter().find_map(|bound| {
        let told = match bound.figure.as_str() {
            IO_SOME_SHARE => {
                let share = share.filter(|share| *share > bound.at_most)?;
                let (found, allowed) = (human::percent(share), human::percent(bound.at_most));
                format!("tasks waited for I/O in {found} of {watched}; the plan allows {allowed}")
            }
            _ => {
                let peak = Some(peak as f64).filter(|peak| *peak > bound.at_most)?;
                let (found, allowed) = (human::bytes(peak), human::bytes(bound.at_most));
                format!("{found} were at risk within {watched}; the plan allows {allowed}")
            }
        };
        Some(format!("after step {number} of {of}, {told}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_analysis::change::RampStep;

    struct Imitated {
        folder: tempfile::TempDir,
        host: Host,
    }

    impl Imitated {
        fn new() -> Imitated {
            let folder = tempfile::tempdir().unwrap();
            let host = Host::below(folder.path());
            let imitated = Imitated { folder, host };
            for (name, value) in [
                ("dirty_bytes", "0"),
                ("dirty_ratio", "20"),
                ("dirty_background_bytes", "0"),
                ("dirty_background_ratio", "10"),
            ] {
                imitated.write(&format!("proc/sys/vm/{name}"), value);
            }
            imitated.write("proc/pressure/io", "some avg10=0.00 avg60=0.00 avg300=0.00 total=0");
            imitated.write(
                "proc/vmstat",
                "nr_dirty 1000\nnr_writeback 24\nnr_free_pages 1000000\nnr_dirty_threshold 200000\nnr_dirty_background_threshold 100000",
            );
            imitated
        }

        fn write(&self, path: &str, text: &str) {
            let path = self.folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, format!("{text}\n")).unwrap();
        }

        fn slot(&self, name: &str, value: &str) -> Slot {
            Slot::read(&self.host, &Knob::resolve(&self.host, name).unwrap(), value.to_owned()).unwrap()
        }
    }

    fn step(set: &[&str], watch_s: f64, go_on_if: &[(&str, f64)]) -> RampStep {
        let bound = |(figure, at_most): &(&str, f64)| Bound {
            figure: (*figure).to_owned(),
            unit: String::new(),
            at_most: *at_most,
        };
        RampStep {
            set: set.iter().map(|one| (*one).to_owned()).collect(),
            watch_s,
            go_on_if: go_on_if.iter().map(bound).collect(),
        }
    }

    fn check(steps: Vec<RampStep>) -> Result<(Vec<Slot>, Vec<Stage>), String> {
        let imitated = Imitated::new();
        let mut slots = [imitated.slot("vm.dirty_bytes", "67108864")];
        let ramp = Ramp { why: String::new(), steps };
        let stages = stages(&imitated.host, &ramp, &mut slots).map_err(|error| error.text)?;
        Ok((slots.to_vec(), stages))
    }

    #[test]
    fn each_write_belongs_to_its_step_and_one_of_a_value_in_force_is_left_out() {
        let bound: &[(&str, f64)] = &[(IO_SOME_SHARE, 0.2), (PEAK, 1e9)];
        let steps = vec![
            step(&["vm.dirty_ratio=10", "vm.dirty_background_ratio=10"], 40.0, bound),
            step(&["vm.dirty_background_ratio=10"], 40.0, bound),
            step(&["vm.dirty_bytes=67108864"], 40.0, bound),
        ];
        let (slots, stages) = check(steps).expect("it is valid");
        let write = |at, value: &str, step| Write { at, value: value.to_owned(), step };
        assert_eq!(slots[0].writes, [write(1, "10", 0), write(0, "67108864", 2)]);
        let told: Vec<(usize, (usize, usize))> = stages.iter().map(|stage| (stage.step, stage.number)).collect();
        assert_eq!(told, [(0, (1, 2)), (2, (2, 2))]);
        assert_eq!(watching(&stages), Duration::from_secs(40), "nothing is watched after the last step");
    }

    #[test]
    fn a_ramp_that_does_not_lead_to_the_plan_is_refused() {
        let refused = |steps, expect: &str| {
            let why = check(steps).expect_err(expect);
            assert!(why.contains(expect), "{why}");
        };
        let last = || step(&["vm.dirty_bytes=67108864"], 1.0, &[]);
        refused(Vec::new(), "expected 1 to 5");
        refused(vec![last(); 6], "it has 6 steps, expected 1 to 5");
        refused(
            vec![step(&["vm.dirty_bytes=8388608"], 1.0, &[])],
            "its last step does not set vm.dirty_bytes=67108864",
        );
        refused(vec![step(&["vm.dirty_bytes"], 1.0, &[]), last()], "is not NAME=VALUE");
        refused(vec![step(&["vm.dirty_ratio=101"], 1.0, &[]), last()], "a number from 0 to 100");
        refused(vec![step(&["kernel.panic=1"], 1.0, &[]), last()], "unknown knob");
        refused(vec![step(&["vm.dirty_ratio=10"], f64::NAN, &[]), last()], "watch_s of step 1");
        refused(vec![step(&["vm.dirty_ratio=10"], -1.0, &[]), last()], "watch_s of step 1");
        refused(
            vec![step(&["vm.dirty_ratio=10"], 1.0, &[("swap", 1.0)]), last()],
            "swap, which this host does not report",
        );
        refused(vec![step(&["vm.dirty_ratio=10"], 1.0, &[(PEAK, f64::NAN)]), last()], "has a bound of NaN");
        assert!(check(vec![step(&["vm.dirty_ratio=10"], 1.0, &[]), last()]).is_ok());
    }

    /// What is said of one step before `set`, whose knobs are those that the plan sets.
    fn way(set: &[&str], between: &str, watch_s: f64, bounds: &[(&str, f64)]) -> Result<(), String> {
        let imitated = Imitated::new();
        for (name, value) in [("dirty_expire_centisecs", "3000"), ("dirty_writeback_centisecs", "0")] {
            imitated.write(&format!("proc/sys/vm/{name}"), value);
        }
        imitated.write("proc/meminfo", "MemTotal: 8000000 kB");
        imitated.write("sys/fs/cgroup/a/memory.max", "max");
        let mut slots: Vec<Slot> = set
            .iter()
            .map(|one| one.split_once('=').map(|(name, value)| imitated.slot(name, value)).expect("NAME=VALUE"))
            .collect();
        let between: Vec<&str> = between.split(' ').collect();
        let steps = vec![step(&between, watch_s, bounds), step(set, 1.0, &[])];
        stages(&imitated.host, &Ramp { why: String::new(), steps }, &mut slots)
            .map(|_| ())
            .map_err(|error| format!("{}; {}", error.text, error.hints.join("; ")))
    }

    #[test]
    fn a_value_in_between_lies_between_the_present_one_and_the_new_one() {
        let ok = |set: &[&str], between: &str| assert_eq!(way(set, between, 10.0, &[]), Ok(()), "{between}");
        let not = |set: &[&str], between: &str, expect: &str| {
            let why = way(set, between, 10.0, &[]).expect_err(between);
            assert!(why.contains(expect) && why.contains("; make a new plan: "), "{why}");
        };
        let limit: &[&str] = &["vm.dirty_bytes=67108864"];
        ok(limit, "vm.dirty_bytes=268435456");
        ok(limit, "vm.dirty_ratio=5");
        not(limit, "vm.dirty_ratio=0", "vm.dirty_ratio=0, which is not between vm.dirty_ratio=20 and vm.dirty_bytes=");
        not(limit, "vm.dirty_ratio=100", "step 1 sets vm.dirty_ratio=100, which is not between");
        not(limit, "vm.dirty_bytes=33554432", "which is not between");
        not(limit, "vm.dirty_bytes=1073741824", "which is not between");
        not(limit, "vm.dirty_bytes=268435456 vm.dirty_ratio=5", "step 1 sets one setting twice");
        let age: &[&str] = &["vm.dirty_expire_centisecs=1000"];
        ok(age, "vm.dirty_expire_centisecs=2000");
        not(age, "vm.dirty_expire_centisecs=0", "which is not between vm.dirty_expire_centisecs=3000 and");
        not(&["vm.dirty_writeback_centisecs=500"], "vm.dirty_writeback_centisecs=1", "which is not between");
        not(&["cgroup/a/memory.max=1073741824"], "cgroup/a/memory.max=8192", "is not between cgroup/a/memory.max=max");
    }

    #[test]
    fn each_step_is_checked_as_a_whole_change_is() {
        let both: &[&str] = &["vm.dirty_background_bytes=33554432", "vm.dirty_bytes=67108864"];
        assert_eq!(way(both, "vm.dirty_background_bytes=134217728 vm.dirty_bytes=268435456", 10.0, &[]), Ok(()));
        let void = way(both, "vm.dirty_background_bytes=268435456 vm.dirty_bytes=134217728", 10.0, &[]);
        let why = void.expect_err("the kernel does not use it");
        assert!(why.contains("after step 1, the background threshold (256 MiB) is not below the limit"), "{why}");
        let of =
            |watch_s, bounds: &[(&str, f64)]| way(&["vm.dirty_bytes=67108864"], "vm.dirty_ratio=5", watch_s, bounds);
        for watch_s in [0.0, 0.9, 601.0, 86_400.0] {
            assert!(of(watch_s, &[]).is_err_and(|why| why.contains("is not between 1 and 600")), "{watch_s}");
        }
        for bound in [(PEAK, -5.0), (PEAK, 1e18), (IO_SOME_SHARE, 1e9), (IO_SOME_SHARE, 0.0), (PEAK, f64::INFINITY)] {
            assert!(of(10.0, &[bound]).is_err_and(|why| why.contains("step 1 has a bound of ")), "{bound:?}");
        }
        assert_eq!(of(600.0, &[(PEAK, 1e9), (IO_SOME_SHARE, 1.0)]), Ok(()));
    }

    #[test]
    fn a_value_that_another_program_changed_after_a_step_is_named() {
        let imitated = Imitated::new();
        let mut slots =
            [imitated.slot("vm.dirty_bytes", "67108864"), imitated.slot("vm.dirty_background_bytes", "8388608")];
        slots[0].writes.insert(0, Write::new(0, "268435456"));
        for (at, slot) in slots.iter_mut().enumerate() {
            slot.writes.last_mut().expect("a write").step = 1 + at;
        }
        imitated.write("proc/sys/vm/dirty_bytes", "268435456");
        imitated.write("proc/sys/vm/dirty_ratio", "0");
        let present = present(&imitated.host, &slots, 0);
        assert_eq!(is_still(&imitated.host, &slots, &present), Ok(()));
        imitated.write("proc/sys/vm/dirty_background_ratio", "4");
        assert_eq!(
            is_still(&imitated.host, &slots, &present),
            Err("another program changed a value while the host was watched: vm.dirty_background_ratio=10 became vm.dirty_background_ratio=4".to_owned())
        );
        imitated.write("proc/sys/vm/dirty_background_ratio", "10");
        imitated.write("proc/sys/vm/dirty_bytes", "134217728");
        let why = is_still(&imitated.host, &slots, &present).expect_err("it was changed");
        assert!(why.ends_with("vm.dirty_bytes=268435456 became vm.dirty_bytes=134217728"), "{why}");
    }

    #[test]
    fn the_next_step_follows_only_if_what_the_plan_asks_for_holds() {
        let imitated = Imitated::new();
        let stage = |bound: (&str, f64)| {
            let steps = vec![step(&["vm.dirty_ratio=10"], 1.0, &[bound]), step(&["vm.dirty_bytes=67108864"], 1.0, &[])];
            check(steps).expect("it is valid").1[0].clone()
        };
        let watched = |bound| watch(&imitated.host, &stage(bound), || true);
        assert_eq!(watched((PEAK, 1024.0 * 4096.0)), Ok(()));
        let why = watched((PEAK, 1024.0 * 4096.0 - 1.0)).expect_err("more was at risk");
        assert_eq!(why, "after step 1 of 2, 4.00 MiB were at risk within 1.00 s; the plan allows 4.00 MiB");
        assert_eq!(watched((IO_SOME_SHARE, 0.01)), Ok(()));
        let why = broken(&stage((IO_SOME_SHARE, 0.2)), Some(0.45), 0).expect("tasks waited");
        assert_eq!(why, "after step 1 of 2, tasks waited for I/O in 45 % of 1.00 s; the plan allows 20 %");
        let gone = watch(&imitated.host, &stage((PEAK, 1e9)), || false);
        assert_eq!(gone, Err("the guard ended".to_owned()));
    }
}
