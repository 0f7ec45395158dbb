// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names of a host do not decide: a recording whose names were replaced predicts the same, to the last bit.
#![allow(clippy::unwrap_used, reason = "tests")]

use floodline_analysis::prediction::{Prediction, Setting};
use floodline_record::record::{Record, Sink};
use floodline_record::redact::Redactor;
use floodline_record::version::KernelVersion;
use floodline_scenario::ScenarioFile;
use floodline_sim::simulate;
use floodline_twin::backtest::backtest;
use floodline_twin::predict::{Measured, Question, conclude};
use floodline_twin::{Options, Recorded, of, shown};

fn records(text: &str, variant: &str) -> Vec<Record> {
    let scenario = ScenarioFile::parse(text).unwrap().variants.remove(variant).unwrap();
    let mut records = Vec::new();
    let options = floodline_sim::Options::new("v", KernelVersion::new(6, 12, 0));
    let take = |record| {
        records.push(record);
        Ok(())
    };
    simulate(&scenario, &options, take, |_| true).unwrap();
    records
}

fn predict<'a>(records: impl Iterator<Item = &'a Record>) -> Prediction {
    let mut recorded = Recorded::default();
    for record in records {
        let Ok(()) = recorded.record(record);
    }
    let twin = of(&recorded, &Options::default()).unwrap();
    let settings = [Setting::new("vm.dirty_background_bytes", 8 << 20), Setting::new("vm.dirty_bytes", 32 << 20)];
    let question = Question::new(&twin, &recorded.window, &settings).unwrap();
    let mut measured = Measured::default();
    let mut results = Vec::new();
    for run in question.runs(true) {
        let changed = question.scenario(&run).unwrap();
        let (shown, window) = shown::run(changed, run.trial, twin.every, &twin.programs, |_| true).unwrap();
        if measured.back_test.is_empty() && !run.is_changed {
            measured.back_test = backtest(&recorded.window, &window, &twin.programs);
        }
        results.push((run, shown));
    }
    conclude(&twin, &question, &measured, &results).unwrap()
}

/// Figures without the names in them.
fn figures(prediction: &Prediction) -> Vec<(String, [u64; 4])> {
    let rows = prediction.rows.iter().filter(|row| !row.figure.starts_with("program "));
    rows.map(|row| (row.figure.clone(), [row.now, row.then, row.low, row.high].map(f64::to_bits))).collect()
}

/// Programs of different kinds in cgroups of their own, whose names come in the order of the alphabet.
const MIXED: &str = r#"
name = "mixed"
summary = "Programs in cgroups of their own"
[machine]
memory = "4 GiB"
cpus = 2
[machine.devices.data]
size = "20 GiB"
write_bandwidth = "30 MB/s"
[machine.mounts."/var"]
type = "ext4"
device = "data"
[machine.cgroups."apps/antelope"]
memory_max = "256 MiB"
[machine.cgroups."apps/badger"]
memory_max = "64 MiB"
[machine.cgroups."apps/cougar"]
[workload]
duration = "20s"
[workload.tasks.archive]
cgroup = "apps/antelope"
steps = [{ write = { file = "/var/archive", block = "256 KiB", rate = "60 MB/s" } }]
[workload.tasks.backup]
cgroup = "apps/badger"
steps = [{ write = { file = "/var/backup", block = "1 MiB", rate = "40 MB/s" } }]
[workload.tasks.client]
cgroup = "apps/cougar"
steps = [{ write = { file = "/var/client", block = "4 KiB", rate = "20/s", sync = { call = "fsync", after = 1 } } }]
[workload.tasks.daemon]
cgroup = "apps/cougar"
steps = [{ write = { file = "/var/daemon", block = "16 KiB", rate = "10/s", sync = { call = "fdatasync", after = 3 } } }]
"#;

#[test]
fn a_recording_with_other_names_predicts_the_same() {
    let records = records(MIXED, "default");
    let plain = figures(&predict(records.iter()));
    assert!(plain.len() >= 6, "{plain:?}");
    for key in [b"one key".as_slice(), b"another", b"a third"] {
        let redactor = Redactor::new(key);
        let renamed: Vec<Record> = records.iter().map(|record| redactor.record(record).into_owned()).collect();
        assert_eq!(figures(&predict(renamed.iter())), plain);
    }
}
