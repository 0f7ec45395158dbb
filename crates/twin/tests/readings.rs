// SPDX-License-Identifier: MIT OR Apache-2.0
//! Twins of programs whose counters can be read in more than one way: a run of the twin shows which way is right.
#![allow(clippy::unwrap_used)]

use floodline_record::record::{Record, Sink};
use floodline_record::version::KernelVersion;
use floodline_scenario::{ScenarioFile, Step};
use floodline_sim::{Options as Simulated, simulate};
use floodline_twin::backtest::{Figure, backtest};
use floodline_twin::{Options, Recorded, Twin, of, run};

const MACHINE: &str = r#"
name = "host"
summary = "A host"
[machine]
memory = "8 GiB"
cpus = 4
[machine.devices.vda]
size = "200 GiB"
write_bandwidth = "100 MB/s"
read_bandwidth = "100 MB/s"
[machine.mounts."/b"]
type = "TYPE"
device = "vda"
in_use = true
[workload]
duration = "60s"
"#;

/// The twin of a host, and its back-test.
fn told(fs_type: &str, tasks: &str) -> (Twin, Vec<Figure>) {
    let text = format!("{}{tasks}", MACHINE.replace("TYPE", fs_type));
    let scenario = ScenarioFile::parse(&text).unwrap().variants.remove("default").unwrap();
    let mut recorded = Recorded::default();
    let kernel = KernelVersion::new(6, 12, 0);
    let options = Simulated::new("host", kernel).sampled(floodline_record::units::Nanos::from_millis(1000));
    let take = |record: Record| {
        let Ok(()) = recorded.record(&record);
        Ok(())
    };
    simulate(&scenario, &options, take, |_| true).unwrap();
    let twin = of(&recorded, &Options::default()).unwrap();
    let simulated = run::run(&twin.scenario, twin.kernel, twin.every).unwrap();
    let figures = backtest(&recorded.window, &simulated, &twin.programs);
    (twin, figures)
}

fn off(figures: &[Figure], name: &str) -> f64 {
    figures.iter().find(|figure| figure.name == name).unwrap_or_else(|| panic!("no {name}")).off_share
}

/// Steps of the task of a program, those within other steps included.
fn steps<'a>(twin: &'a Twin, name: &str) -> Vec<&'a Step> {
    fn add<'a>(steps: &'a [Step], all: &mut Vec<&'a Step>) {
        for step in steps {
            all.push(step);
            match step {
                Step::Repeat(repeat) => add(&repeat.steps, all),
                Step::Parallel(parallel) => parallel.branches.iter().for_each(|branch| add(branch, all)),
                _ => {}
            }
        }
    }
    let mut all = Vec::new();
    let (_, task) = twin.scenario.workload.tasks.iter().find(|(task, _)| task.ends_with(name)).unwrap();
    add(&task.steps, &mut all);
    all
}

#[test]
fn files_that_get_old_one_by_one_are_no_file_that_grows() {
    let tasks = r#"
[workload.tasks.cc]
steps = [{ create_files = { file = "/b/o{n}", files = 6000, size = "200 KiB", rate = "80/s" } }]
[workload.tasks.log]
steps = [{ repeat = { every = "1s", steps = [{ write = { file = "/b/log", order = "append", count = 2 } }, { fsync = { file = "/b/log" } }] } }]
"#;
    let (twin, figures) = told("ext4", tasks);
    assert!(steps(&twin, "cc").iter().any(|step| matches!(step, Step::CreateFiles(_))), "{:?}", steps(&twin, "cc"));
    assert!(off(&figures, "devices.written_bytes") < 0.1, "{figures:?}");
    // One file that grows stays one.
    let tasks = tasks.replace(
        r#"create_files = { file = "/b/o{n}", files = 6000, size = "200 KiB", rate = "80/s" }"#,
        r#"write = { file = "/b/o", order = "append", block = "200 KiB", count = 6000, rate = "80/s" }"#,
    );
    let (twin, _) = told("ext4", &tasks);
    assert!(!steps(&twin, "cc").iter().any(|step| matches!(step, Step::CreateFiles(_))));
}

#[test]
fn a_program_that_syncs_between_its_bursts_keeps_their_times() {
    // A burst of a moment each 3 s, synced at its end.
    let tasks = r#"
[workload.tasks.browser]
steps = [{ repeat = { every = "3s", steps = [
  { write = { file = "/b/db", order = "append", count = 60 } }, { fdatasync = { file = "/b/db" } } ] } }]
[workload.tasks.render]
steps = [{ write = { file = "/b/clip", order = "append", block = "1 MiB", rate = "20 MB/s" } }]
"#;
    let (twin, _) = told("ext4", tasks);
    let all = steps(&twin, "browser");
    let last =
        all.iter().rev().find_map(|step| if let Step::SleepUntil(until) = step { Some(until.at.0) } else { None });
    assert!(last.is_some_and(|at| (54.0..60.0).contains(&at.as_secs_f64())), "{last:?}");
}
