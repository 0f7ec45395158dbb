// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random scenarios under the checkers. Every run ends and adds up after every event. A refusal names the refused
//! key. A run checked after every event makes the records of one that runs in strides. `PROPTEST_RNG_SEED=7
//! PROPTEST_CASES=5000 cargo test -p floodline-sim --test random` runs other and more scenarios; without a seed
//! there are few, always the same. A failure prints the scenario and the kernel, and with `FLOODLINE_SHOW` set
//! every scenario is printed before its run.

#![expect(clippy::print_stdout, reason = "a failure is repeated with the seed that is printed")]

mod generate;

use floodline_record::record::Record;
use floodline_record::version::KernelVersion;
use floodline_scenario::{Scenario, ScenarioFile};
use floodline_sim::{Options, SimError, simulate};
use generate::Dice;
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestError, TestRunner};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

const KERNELS: &[&str] = &["6.12", "4.4", "4.14.59", "4.14.60", "5.4", "5.10", "5.15", "6.1", "6.6", "6.18", "7.2"];
/// Runs with more samples are ended: a workload of seconds has few, a call on a slow device more.
const SAMPLES_MAX: u32 = 20_000;
/// Reason for which tasks may wait without end: each other.
const EACH_OTHER: &[&str] = &["the end of another task", "others at a barrier", "the setups of other tasks"];

/// Result of a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Ending {
    Ran,
    /// Refused for these reasons.
    Refused(Vec<String>),
    Stuck,
}

fn judge(text: &str, kernel: &str) -> Result<Ending, String> {
    let scenario = match ScenarioFile::parse(text) {
        Ok(mut file) => file.variants.remove("default").ok_or("no variant")?,
        Err(error) => {
            let nameless = error.problems.iter().find(|problem| problem.message.is_empty());
            let whys = || error.problems.iter().map(|problem| problem.message.clone()).collect();
            return nameless.map_or_else(|| Ok(Ending::Refused(whys())), |problem| Err(format!("{problem:?}")));
        }
    };
    run(&scenario, kernel)
}

fn run(scenario: &Scenario, kernel: &str) -> Result<Ending, String> {
    let kernel: KernelVersion = kernel.parse().map_err(|_| "no kernel")?;
    let mut records = [Vec::new(), Vec::new()];
    let [outcome, in_strides] = [true, false].map(|checks_every_event| {
        let options = Options { checks_every_event, ..Options::new("default", kernel) };
        let records = &mut records[usize::from(checks_every_event)];
        let mut samples = 0;
        let take = |record: Record| {
            records.push(record);
            Ok(())
        };
        simulate(scenario, &options, take, |_| {
            samples += 1;
            samples < SAMPLES_MAX
        })
    });
    if outcome.is_ok() != in_strides.is_ok() || records[0] != records[1] {
        let first = records[0].iter().zip(&records[1]).find(|(strides, steps)| strides != steps);
        let lengths = [records[0].len(), records[1].len()];
        return Err(format!(
            "strides make another recording, first: {first:?}; records: {lengths:?}; \
             each event checked: {outcome:?}, in strides: {in_strides:?}"
        ));
    }
    match outcome {
        Ok(summary) if summary.is_interrupted => Err(format!("not over after {SAMPLES_MAX} samples")),
        Ok(_) => Ok(Ending::Ran),
        Err(SimError::NotHonoured(keys)) if !keys.is_empty() => {
            Ok(Ending::Refused(keys.into_iter().map(|key| key.pattern).collect()))
        }
        Err(SimError::Senseless(what)) if !what.contains("bug") && what.contains("machine.") => {
            Ok(Ending::Refused(vec![what]))
        }
        Err(SimError::Stuck { waiting, .. }) if waiting.iter().any(|(_, what)| EACH_OTHER.contains(&what.as_str())) => {
            Ok(Ending::Stuck)
        }
        Err(error) => Err(error.to_string()),
    }
}

#[test]
fn every_random_scenario_ends_adds_up_or_is_refused_by_name() {
    let mut config = Config { failure_persistence: None, max_shrink_iters: 300, ..Config::default() };
    if config.rng_seed == RngSeed::Random {
        (config.rng_seed, config.cases) = (RngSeed::Fixed(1), 100);
    }
    println!("{:?}, {} scenarios", config.rng_seed, config.cases);
    let (seed, cases) = (config.rng_seed, config.cases);
    let shows_all = std::env::var_os("FLOODLINE_SHOW").is_some();
    let ran = Cell::new(0_u32);
    let refusals: RefCell<BTreeMap<String, u32>> = RefCell::default();
    let bytes = proptest::collection::vec(proptest::num::u8::ANY, 40..400);
    let outcome = TestRunner::new(config).run(&bytes, |bytes| {
        let mut dice = Dice::of(&bytes);
        let text = generate::scenario(&mut dice);
        let kernel = KERNELS[bytes.iter().map(|byte| usize::from(*byte)).sum::<usize>() % KERNELS.len()];
        if shows_all {
            // If a run hangs, its scenario is the last one printed.
            println!("on {kernel}:\n{text}");
        }
        let judged = judge(&text, kernel);
        if judged == Ok(Ending::Ran) {
            ran.set(ran.get() + 1);
        }
        if let Ok(Ending::Refused(whys)) = &judged {
            whys.iter().for_each(|why| *refusals.borrow_mut().entry(why.clone()).or_default() += 1);
        }
        judged.map(drop).map_err(|why| TestCaseError::fail(format!("{why}\non {kernel}:\n{text}")))
    });
    match outcome {
        Ok(()) => {}
        Err(TestError::Fail(why, _)) => panic!("{seed:?}: {why}"),
        Err(other) => panic!("{other}"),
    }
    refusals.borrow().iter().for_each(|(why, count)| println!("{count:>5} {why}"));
    assert!(ran.get() * 4 > cases, "only {} of {cases} scenarios were run", ran.get());
}

/// A task that removes a file is woken when the file's pages are written. Once it has a CPU, the flusher, which
/// runs all the time, has begun to write other pages of the file.
#[test]
fn a_page_that_is_written_again_stays_until_it_is_clean() {
    let text = r#"
name = "rewritten"
summary = "files are removed while a flusher never sleeps"
[machine]
memory = "128 MiB"
cpus = 3
sysctl.vm = { dirty_ratio = 0, dirty_background_ratio = 100, dirty_expire_centisecs = 2147483647, dirty_writeback_centisecs = 1 }
[machine.devices.d0]
size = "1 MiB"
[machine.mounts."/m0"]
type = "btrfs"
device = "d0"
[machine.mounts."/o{i}"]
type = "overlay"
instances = 3
overlay = { lower = "/m0/l", upper = "/m0/u{i}", work = "/m0/w{i}" }
[machine.cgroups."c0"]
memory_max = "256 MiB"
[machine.cgroups."c1"]
[machine.cgroups."c0/c2"]
[workload]
duration = "2s"
seed = 46
[workload.tasks.t0]
cgroup = "c0/c2"
preset.redis_aof = { file = "/m0/k{i}-{j}", commands = "100/s" }
[workload.tasks.t1]
cgroup = "c0"
instances = 4
preset.mail = { dir = "/o1/k{i}-{j}", messages = "5/s" }
"#;
    assert_eq!(judge(text, "4.14.60"), Ok(Ending::Ran));
}
