// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes that put writes off beyond the end of the recording: when the twin runs on, and what is left open.

use super::*;
use crate::Recorded;
use crate::trial::{OneByOne, Studied, answered};
use floodline_analysis::judgement::Verdict;
use floodline_analysis::prediction::{LONGEST, PEAK, Row, Setting, WAITS};
use floodline_record::record::{Record, Sink};
use floodline_record::version::KernelVersion;
use floodline_scenario::ScenarioFile;

/// A recording of a host whose archive appends to a slow disk and syncs a small index on it.
fn studied(expire: u64, ratios: (u64, u64), seconds: u64, appended: &str, every: &str) -> Studied {
    let text = format!(
        r#"
name = "host"
summary = "An archive on a slow disk"
[machine]
memory = "16 GiB"
cpus = 4
sysctl.vm = {{ dirty_ratio = {}, dirty_background_ratio = {}, dirty_expire_centisecs = {expire} }}
[machine.devices.usb]
size = "60 GiB"
write_bandwidth = "18 MB/s"
read_bandwidth = "30 MB/s"
[machine.mounts."/a"]
type = "ext4"
device = "usb"
[machine.cgroups.a]
[workload]
duration = "{seconds}s"
[workload.tasks.scanner]
cgroup = "a"
start = "3s"
steps = [{{ write = {{ file = "/a/image", order = "append", block = "128 KiB", rate = "{appended}" }} }}]
[workload.tasks.index]
cgroup = "a"
steps = [{{ repeat = {{ every = "{every}", steps = [
    {{ write = {{ file = "/a/index", order = "append", count = 1 }} }}, {{ fsync = {{ file = "/a/index" }} }} ] }} }}]
"#,
        ratios.0, ratios.1
    );
    let scenario = ScenarioFile::parse(&text).unwrap().variants.remove("default").unwrap();
    let mut recorded = Recorded::default();
    let options = floodline_sim::Options {
        every: Nanos::SECOND,
        ..floodline_sim::Options::new("default", KernelVersion::new(6, 12, 0))
    };
    let take = |mut record: Record| {
        if let Record::Facts(facts) = &mut record {
            facts.kernel_release = "6.12.0".into();
        }
        let Ok(()) = recorded.record(&record);
        Ok(())
    };
    floodline_sim::simulate(&scenario, &options, take, |_| true).expect("it runs");
    Studied::of(recorded, &|_| true).expect("a twin")
}

fn predicted(studied: &Studied, settings: &[Setting]) -> Prediction {
    let question = Question::new(&studied.twin, &studied.recorded.window, settings).expect("a question");
    answered(studied, &question, true, &|_| true, &mut OneByOne).expect("it runs").1.expect("an answer")
}

fn row<'a>(prediction: &'a Prediction, name: &str) -> &'a Row {
    prediction.rows.iter().find(|row| row.figure == name).unwrap_or_else(|| panic!("{name}: {prediction:?}"))
}

/// A host on which data are written every 30 s, and the index waits for them.
fn archive() -> Studied {
    studied(3000, (20, 10), 60, "9 MB/s", "1s")
}

#[test]
fn waits_that_a_change_puts_off_beyond_the_recording_do_not_end() {
    let prediction = predicted(&archive(), &[Setting::new("vm.dirty_expire_centisecs", 6000)]);
    let horizon = prediction.horizon.as_ref().expect("the write comes after the end");
    assert!(horizon.is_put_off && horizon.times.is_some() && horizon.write_seconds > 10.0, "{horizon:?}");
    let longest = row(&prediction, LONGEST);
    assert!(longest.then > 0.8 * longest.now && longest.now > 2.0, "{longest:?}");
    assert!(!row(&prediction, WRITTEN).is_certain(), "{:?}", row(&prediction, WRITTEN));
    assert_ne!(prediction.verdict(&prediction.found()), Verdict::Helps, "{}", prediction.headline);
    assert!(prediction.vanish.is_empty(), "{:?}", prediction.vanish);
    assert!(prediction.notes[0].contains("still unwritten at the end of the recorded time"), "{:?}", prediction.notes);
}

#[test]
fn a_change_that_puts_nothing_off_is_judged_by_the_recorded_time() {
    let lower = [Setting::new("vm.dirty_background_bytes", "16M"), Setting::new("vm.dirty_bytes", "64M")];
    let prediction = predicted(&archive(), &lower);
    assert_eq!(prediction.horizon, None);
    assert_eq!(prediction.verdict(&prediction.found()), Verdict::Helps, "{}", prediction.headline);
}

#[test]
fn a_recording_with_several_writes_of_the_later_age_needs_no_longer_run() {
    let later = [Setting::new("vm.dirty_expire_centisecs", 900)];
    // Where a recording ends between two writes decides how much is left at its end.
    let has_horizon = |seconds| predicted(&studied(200, (20, 10), seconds, "9 MB/s", "1s"), &later).horizon.is_some();
    assert!((44..52).any(has_horizon));
    assert!(!(57..65).any(has_horizon));
}

#[test]
fn data_that_no_run_writes_leave_the_waits_open() {
    let studied = archive();
    let (twin, window) = (&studied.twin, &studied.recorded.window);
    // Without the flusher and with room for hours of data, nothing is written in any run.
    let never = [
        Setting::new("vm.dirty_writeback_centisecs", 0),
        Setting::new("vm.dirty_background_ratio", 60),
        Setting::new("vm.dirty_ratio", 80),
    ];
    let prediction = predicted(&studied, &never);
    assert!(prediction.horizon.as_ref().is_some_and(|horizon| horizon.times.is_none()), "{prediction:?}");
    assert_eq!(row(&prediction, LONGEST).doubt, Some(Doubt::Horizon));
    assert_eq!(row(&prediction, WRITTEN).doubt, Some(Doubt::Horizon));
    assert_eq!(row(&prediction, PEAK).doubt, None, "how much is at risk is known");
    assert!(prediction.vanish.is_empty(), "{:?}", prediction.vanish);
    let told = &prediction.headline;
    assert!(
        told.starts_with("No verdict: at the end of the recorded time ") && told.contains("periodic writeback is off"),
        "{told}"
    );
    assert_eq!(prediction.answer(), "no_verdict");
    // Data pile up from round to round where a longer run writes but a part of them.
    let piled = |left: f64| {
        let figures = Figures::from([(WRITTEN.to_owned(), 900e6), (LEFT.to_owned(), left)]);
        let run = Run { demand: 0, is_changed: true, trial: crate::shown::Trial::NOMINAL };
        let of = Left { bytes: 400e6, seconds: 20.0, written: 100e6 };
        let horizon = prediction.horizon.clone().expect("it has one");
        let beyond = Beyond { longer: None, times: 3, horizon, left: of, level: 600e6 };
        beyond.per_recorded_time(vec![(run, Shown { figures, ..Shown::default() })])
    };
    let settled = piled(500e6).expect("as much is written as dirtied");
    assert_eq!((settled[0].1.figures[WRITTEN], settled[0].1.figures[LEFT]), (300e6, 500e6));
    assert!(piled(1.5e9).is_none());
    // The same where the longer runs do not end.
    let longer = [Setting::new("vm.dirty_expire_centisecs", 6000)];
    let question = Question::new(twin, window, &longer).expect("a question");
    let runs = question.runs(true).into_iter().map(|run| {
        let changed = question.scenario(&run).expect("a scenario");
        (run, crate::shown::of_twin(twin, changed, run.trial, None, |_| true).expect("it runs").0)
    });
    let results: Vec<(Run, Shown)> = runs.collect();
    let beyond = beyond(twin, &question, &results).expect("it is put off");
    let open = beyond.conclude(twin, &question, &Measured::of(window), &results, None).expect("an answer");
    assert!(open.beyond_the_end().is_some_and(|why| why.contains("still unwritten")), "{open:?}");
}

#[test]
fn a_recording_that_is_shorter_than_the_present_age_does_not_hide_the_present_waits() {
    // Data get 2 min old, and the recording ends after 60 s: none of the appended data are written.
    let studied = studied(12000, (50, 25), 60, "7 MB/s", "2s");
    let lower = [
        Setting::new("vm.dirty_background_bytes", "16M"),
        Setting::new("vm.dirty_bytes", "64M"),
        Setting::new("vm.dirty_expire_centisecs", 3000),
    ];
    let prediction = predicted(&studied, &lower);
    let horizon = prediction.horizon.as_ref().expect("the present wait comes after the end");
    assert!(!horizon.is_put_off && horizon.times.is_some(), "{horizon:?}");
    let waits = row(&prediction, WAITS);
    assert!(waits.now > 1.0 && waits.improves(), "{waits:?}");
    assert!(!prediction.harms(), "{}", prediction.headline);
}

#[test]
fn a_run_that_lacks_the_present_waits_proves_no_harm_of_a_change() {
    let studied = studied(12000, (50, 25), 60, "7 MB/s", "2s");
    let (twin, window) = (&studied.twin, &studied.recorded.window);
    let lower = [Setting::new("vm.dirty_background_bytes", "16M"), Setting::new("vm.dirty_expire_centisecs", 3000)];
    let question = Question::new(twin, window, &lower).expect("a question");
    let runs = question.runs(true).into_iter().map(|run| {
        let changed = question.scenario(&run).expect("a scenario");
        (run, crate::shown::of_twin(twin, changed, run.trial, None, |_| true).expect("it runs").0)
    });
    let short: Vec<(Run, Shown)> = runs.collect();
    let beyond = beyond(twin, &question, &short).expect("the present wait comes after the end");
    let mut longer = short.clone();
    for (run, shown) in &mut longer {
        let waits = if run.is_changed { 40.0 } else { 0.0 };
        shown.figures.extend([(WAITS.to_owned(), waits), (LONGEST.to_owned(), waits / 10.0)]);
    }
    let measured = Measured::of(window);
    let told = beyond.conclude(twin, &question, &measured, &short, Some(longer)).expect("an answer");
    assert!(!told.harms() && told.beyond_the_end().is_some(), "{told:?}");
    assert!(told.headline.contains(" are still unwritten with the present settings; "), "{}", told.headline);
}

#[test]
fn later_rounds_of_a_load_begin_later() {
    let text = r#"
name = "load"
summary = "Programs that can and cannot be repeated"
machine.memory = "4 GiB"
machine.cpus = 2
machine.devices.vda = { size = "20 GiB" }
machine.mounts."/d" = { type = "xfs", device = "vda" }
workload.duration = "10s"
workload.tasks.bursts = { steps = [{ sleep_until = { at = "4s" } }, { write = { file = "/d/a", count = 3 } },
    { parallel = { branches = [[{ sleep_until = { at = "1s" } }], ["sync"]] } }] }
workload.tasks.endless = { steps = [{ repeat = { steps = [{ write = { file = "/d/b", count = 1 } }, { sleep = { for = "1s" } }] } }] }
workload.tasks.after = { steps = [{ wait_for = { task = "bursts" } }, { write = { file = "/d/c", count = 1 } }] }
"#;
    let scenario = ScenarioFile::parse(text).unwrap().variants.remove("default").unwrap();
    let longer = repeated(&scenario, 3).expect("it has a length");
    assert_eq!(longer.workload.duration, Some(Time(Nanos(30_000_000_000))));
    let times = |task: &str| -> Vec<u64> {
        let at = |step: &Step| if let Step::SleepUntil(one) = step { Some(one.at.0.0 / 1_000_000_000) } else { None };
        longer.workload.tasks[task].steps.iter().filter_map(at).collect()
    };
    assert_eq!(times("bursts"), [4, 10, 14, 20, 24]);
    assert_eq!(longer.workload.tasks["bursts"].steps.len(), 3 * 3 + 2);
    assert_eq!(longer.workload.tasks["endless"], scenario.workload.tasks["endless"]);
    assert_eq!(longer.workload.tasks["after"], scenario.workload.tasks["after"]);
}

#[test]
fn totals_are_told_from_longest_waits() {
    for name in
        [WAITS, DIRTIED, WRITTEN, "device.vda.waited_seconds", "program.cp.dirtied_bytes", "devices.busy_seconds"]
    {
        assert!(is_total(name), "{name}");
    }
    for name in
        [LONGEST, PEAK, "device.vda.longest_wait_seconds", "program.cp.longest_sync_seconds", "program cp", LEFT]
    {
        assert!(!is_total(name), "{name}");
    }
}
