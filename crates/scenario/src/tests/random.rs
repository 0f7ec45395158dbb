// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random scenarios, texts and pieces of files: whatever is good reads back, whatever is bad has a place.

use super::*;
use proptest::prelude::*;

/// Steps of every kind, with whatever numbers; most are refused by the checks, none by the syntax.
fn any_step() -> impl Strategy<Value = Step> {
    let size = || any::<u32>().prop_map(|n| ByteSize(floodline_record::units::Bytes(n.into())));
    let time = || any::<u32>().prop_map(|n| Time(Nanos(n.into())));
    let often = || {
        (1..u32::MAX, 0..4_usize).prop_map(|(times, per)| {
            let per = [1_000_000, 1_000_000_000, 60_000_000_000, 3_600_000_000_000][per];
            Frequency { times, per: Nanos(per) }
        })
    };
    let file = || "/[a-z{}\u{0}\u{1b}\"'\\\\ ]{0,6}";
    let order = || prop_oneof![Just(Order::Sequential), Just(Order::Random), Just(Order::Append)];
    let write = (file(), order(), size(), any::<Option<u64>>(), any::<(bool, bool)>(), prop::option::of(time()))
        .prop_map(|(file, order, block, count, (direct, truncate), lasting)| {
            let count = count.map(|n| n >> 1);
            Step::Write(Write { file, order, block, count, direct, truncate, lasting, ..Write::default() })
        });
    let store = (file(), size(), 0..1000_u64, size(), prop::option::of(often()), order()).prop_map(
        |(file, size, pages, store, rate, order)| {
            Step::MmapStore(MmapStore { file, size, pages, store, rate, order, ..MmapStore::default() })
        },
    );
    let create = (file(), prop::option::of(0..9_u64), size(), any::<bool>(), prop::option::of(often())).prop_map(
        |(file, files, size, fsync, rate)| {
            Step::CreateFiles(CreateFiles { file, files, files_per_dir: files, size, rate, lasting: None, fsync })
        },
    );
    let plain = prop_oneof![
        Just(Step::Sync),
        Just(Step::Exit),
        file().prop_map(|file| Step::Fsync(OnFile { file })),
        time().prop_map(|lasting| Step::Sleep(Lasting { lasting })),
        time().prop_map(|at| Step::SleepUntil(Until { at })),
        ".{0,8}".prop_map(|text| Step::Note(Note { text })),
    ];
    let leaf = prop_oneof![write, store, create, plain];
    leaf.prop_recursive(3, 12, 3, move |inner| {
        let steps = || prop::collection::vec(inner.clone(), 0..3);
        prop_oneof![
            (steps(), prop::option::of(0..9_u64), prop::option::of(any::<u32>())).prop_map(|(steps, times, every)| {
                Step::Repeat(Repeat { times, lasting: None, every: every.map(|n| Time(Nanos(n.into()))), steps })
            }),
            prop::collection::vec(steps(), 0..3).prop_map(|branches| Step::Parallel(Parallel { branches })),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_scenario_reads_back_from_toml(
        steps in prop::collection::vec(any_step(), 0..4),
        memory in 0..(1_u64 << 50),
        names in prop::collection::btree_map(".{0,6}", prop::option::of(1..9_u32), 0..3),
        sysctls in prop::collection::btree_map("[a-z]{1,3}\\.[a-z_]{1,6}", any::<i64>(), 0..3),
    ) {
        let file = parsed(&format!("{HEAD}{MACHINE}{WORKLOAD}"));
        let mut scenario = file.variants[DEFAULT_VARIANT].clone();
        scenario.machine.memory = ByteSize(floodline_record::units::Bytes(memory));
        for (name, instances) in names {
            scenario.machine.cgroups.insert(name.clone(), Cgroup { instances, ..Cgroup::default() });
            scenario.workload.tasks.insert(name, Task { setup: steps.clone(), ..Task::default() });
        }
        for (name, value) in sysctls {
            scenario.machine.sysctl.0.insert(name, SysctlValue::Number(value));
        }
        let text = scenario.to_toml().expect("it can be written");
        let again: Scenario = toml::from_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        prop_assert_eq!(again, scenario);
    }

    #[test]
    fn quantities_read_back(raw in 0..=(i64::MAX as u64), times in 1..u32::MAX) {
        let size = ByteSize(floodline_record::units::Bytes(raw));
        prop_assert_eq!(size.to_string().parse::<ByteSize>().ok(), Some(size));
        let time = Time(Nanos(raw));
        prop_assert_eq!(time.to_string().parse::<Time>().ok(), Some(time));
        let rate = ByteRate(floodline_record::units::BytesPerSecond(raw));
        prop_assert_eq!(rate.to_string().parse::<ByteRate>().ok(), Some(rate));
        let often = Frequency { times, per: Nanos(60_000_000_000) };
        prop_assert_eq!(often.to_string().parse::<Frequency>().ok(), Some(often));
    }

    #[test]
    fn what_is_good_expands_and_what_is_bad_has_a_place(step in any_step()) {
        let scenario = parsed(&format!("{HEAD}{MACHINE}{WORKLOAD}"));
        let mut scenario = scenario.variants[DEFAULT_VARIANT].clone();
        scenario.workload.tasks.insert("x".into(), Task { steps: vec![step], ..Task::default() });
        let text = scenario.to_toml().expect("it can be written");
        match ScenarioFile::parse(&text) {
            Ok(file) => prop_assert_eq!(file.variants[DEFAULT_VARIANT].task_copies().len(), 2),
            Err(error) => prop_assert!(error.problems.iter().all(|problem| problem.line > 1), "{}", error),
        }
    }
}

#[test]
fn no_text_makes_the_reader_panic() {
    bolero::check!().with_iterations(2000).for_each(|bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        if let Err(error) = ScenarioFile::parse(&text) {
            assert!(!error.problems.is_empty());
        }
    });
}

#[test]
fn no_piece_of_a_file_in_another_place_makes_the_reader_panic() {
    let good = format!(
        "{HEAD}{MACHINE}[machine.sysctl]\nvm.dirty_bytes = \"100 MiB\"\n{WORKLOAD}[variants.a]\nunset = [\"machine.sysctl\"]\n[expect]\nfigures.a.min = 1\n"
    );
    let lines: Vec<&str> = good.lines().collect();
    bolero::check!().with_iterations(1000).for_each(|order: &[u8]| {
        let picked: Vec<&str> = order.iter().map(|&byte| lines[usize::from(byte) % lines.len()]).collect();
        if let Ok(file) = ScenarioFile::parse(&picked.join("\n")) {
            for scenario in file.variants.values() {
                let _ =
                    (scenario.cgroup_copies(), scenario.mount_copies(), scenario.task_copies(), scenario.used_keys());
            }
        }
    });
}

#[test]
fn deep_nesting_is_an_error_and_no_overflow() {
    let mut step = "\"sync\"".to_owned();
    for _ in 0..200 {
        step = format!("{{ repeat = {{ times = 1, steps = [{step}] }} }}");
    }
    assert_eq!(problems(&with_step(&step)).len(), 1);
    let deep = format!("a = {}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(problems(&deep).len(), 1);
}
