// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a twin makes of programs that write the same pages again, of loop devices, and of programs that sync at the ends of
//! their bursts: each recorded on the model, without a trace and without the calls of its tasks.

use floodline_analysis::diagnose::diagnose;
use floodline_analysis::prediction::Setting;
use floodline_record::record::{Record, Sink};
use floodline_record::units::Nanos;
use floodline_record::version::KernelVersion;
use floodline_scenario::{Backing, Order, ScenarioFile, Step};
use floodline_sim::{Options, simulate};
use floodline_twin::backtest::{simulated_error, test};
use floodline_twin::predict::{Question, Run};
use floodline_twin::shown::Trial;
use floodline_twin::trial::{OneByOne, Studied, as_printed};
use floodline_twin::{Options as TwinOptions, Recorded, Twin, run};

const KERNEL: KernelVersion = KernelVersion::new(6, 12, 117);

/// The twin of a run of 40 s of these tasks on a disk of 60 MB/s, sampled every second.
fn twin(machine: &str, tasks: &str) -> (Twin, Recorded) {
    twin_at(60, machine, tasks)
}

/// The same on a disk of another speed.
fn twin_at(mb: u64, machine: &str, tasks: &str) -> (Twin, Recorded) {
    twin_on(&format!("write_bandwidth = \"{mb} MB/s\", read_bandwidth = \"{mb} MB/s\""), machine, tasks)
}

/// The same on a disk with these keys.
fn twin_on(disk: &str, machine: &str, tasks: &str) -> (Twin, Recorded) {
    let text = format!(
        "name = \"kind\"\nsummary = \"one kind of program\"\nmachine.memory = \"4 GiB\"\nmachine.cpus = 2\n\
         machine.devices.disk = {{ size = \"40 GiB\", {disk} }}\n{machine}\n\
         workload.duration = \"40s\"\n{tasks}\n"
    );
    let file = ScenarioFile::parse(&text).unwrap_or_else(|error| panic!("{error:?}"));
    let scenario = file.variants.into_values().next().expect("it has a variant");
    let mut recorded = Recorded::default();
    let options = Options { every: Nanos(1_000_000_000), ..Options::new("kind", KERNEL) };
    let take = |record: Record| {
        if !matches!(record, Record::Event(_)) {
            let Ok(()) = recorded.record(&record);
        }
        Ok(())
    };
    simulate(&scenario, &options, take, |_| true).expect("it runs");
    let twin = floodline_twin::of(&recorded, &TwinOptions::default()).expect("it has a twin");
    (twin, recorded)
}

fn dirtied(twin: &Twin, change: &[(&str, &str)]) -> f64 {
    let mut scenario = twin.scenario.clone();
    for (key, value) in change {
        scenario = scenario.changed(key, value).expect("it can be changed");
    }
    let window = run::run(&scenario, twin.kernel, twin.every).expect("it runs");
    window.host.growth.nr_dirtied.map_or(0.0, |pages| pages.0 as f64 * 4096.0)
}

#[test]
fn what_writes_the_same_pages_again_dirties_more_where_less_may_be_dirty() {
    let machine = "machine.mounts.\"/data\" = { type = \"xfs\", device = \"disk\" }";
    let task = "workload.tasks.table = { steps = [{ write = { file = \"/data/table\", order = \"random\", size = \"32 MiB\", \
                rate = \"1500/s\" } }] }";
    let (twin, recorded) = twin(machine, task);
    let Some((_, task)) = twin.scenario.workload.tasks.iter().find(|(name, _)| name.contains("table")) else {
        panic!("{:?}", twin.scenario.workload.tasks.keys());
    };
    let size = task.steps.iter().find_map(|step| match step {
        Step::Write(write) if write.order == Order::Random => write.size,
        _ => None,
    });
    let size = size.expect("it writes in random order").bytes() as f64 / (32.0 * 1_048_576.0);
    assert!((0.8..1.25).contains(&size), "{size}");
    let seen = recorded.window.host.growth.nr_dirtied.map_or(0.0, |pages| pages.0 as f64 * 4096.0);
    let (now, then) =
        (dirtied(&twin, &[]), dirtied(&twin, &[("vm.dirty_bytes", "4 MiB"), ("vm.dirty_background_bytes", "2 MiB")]));
    // The flusher may come once more or less often in 40 s: one file of 32 MiB of about 90 MiB.
    assert!((now / seen - 1.0).abs() < 0.25, "{now} of {seen}");
    assert!(then > 1.5 * now, "{now} {then}");
}

#[test]
fn the_speed_of_a_disk_that_was_never_full_is_that_at_which_the_twin_is_as_busy() {
    let machine = "machine.mounts.\"/data\" = { type = \"ext4\", device = \"disk\" }\n\
                   machine.sysctl.vm = { dirty_bytes = \"24 MiB\", dirty_background_bytes = \"6 MiB\" }";
    let task = "workload.tasks.stream = { steps = [{ write = { file = \"/data/stream\", order = \"append\", block = \"64 KiB\", \
                rate = \"11 MB/s\" } }] }";
    let ceiling = |disk: &str| {
        let (twin, _) = twin_on(disk, machine, task);
        let ceiling = twin.ceilings.first().expect("it has a device").clone();
        (ceiling.has_credit, ceiling.write_bytes_per_second.expect("it was busy") / 1e6)
    };
    // A limit that lets the bytes of 100 ms through at once: the disk is busy for a third of the time that its bytes need.
    let (has_credit, speed) = ceiling("write_bandwidth = \"24 MB/s\"");
    assert!(has_credit && (speed / 24.0 - 1.0).abs() < 0.12, "{speed}");
    // A disk that is busy for as long as its bytes need.
    let (has_credit, speed) = ceiling("write_bandwidth = \"24 MB/s\", burst = \"0 s\"");
    assert!(!has_credit && (speed / 24.0 - 1.0).abs() < 0.12, "{speed}");
}

#[test]
fn a_disk_that_requests_keep_full_shows_no_limit_of_its_bytes() {
    let machine = "machine.mounts.\"/data\" = { type = \"ext4\", device = \"disk\" }\n\
                   machine.sysctl.vm = { dirty_expire_centisecs = 800, dirty_writeback_centisecs = 400 }";
    let tasks = "workload.tasks.letters = { instances = 8, steps = [{ repeat = { for = \"40s\", steps = [{ write = { file = \
                 \"/data/letters{j}\", order = \"append\", count = 1 } }, { fdatasync = { file = \"/data/letters{j}\" } }] } }] }\n\
                 workload.tasks.copy = { start = \"25s\", steps = [{ write = { file = \"/data/copy\", block = \"1 MiB\", total = \
                 \"24 MiB\" } }] }";
    let (twin, _) = twin_on(
        "write_bandwidth = \"300 MB/s\", read_bandwidth = \"300 MB/s\", write_iops = \"120 IO/s\"",
        machine,
        tasks,
    );
    let ceiling = twin.ceilings.first().expect("it has a device");
    assert!(
        ceiling.is_known && ceiling.known.writes && !ceiling.known.write_bytes && !ceiling.known.reads,
        "{ceiling:?}"
    );
    assert_eq!(ceiling.is_open(), ceiling.write_bytes_per_second.is_some(), "{ceiling:?}");
}

#[test]
fn the_slowest_disk_does_no_more_than_in_its_busiest_interval() {
    let machine = "machine.mounts.\"/data\" = { type = \"ext4\", device = \"disk\" }";
    let task = "workload.tasks.log = { steps = [{ repeat = { every = \"5s\", steps = [{ write = { file = \"/data/log\", order = \"append\", \
                block = \"64 KiB\", total = \"4 MiB\" } }, { fsync = { file = \"/data/log\" } }] } }] }";
    let (twin, recorded) = twin(machine, task);
    let device = twin.scenario.machine.devices.keys().next().expect("it has a disk").clone();
    let slowest = |change: Setting| {
        let question = Question::new(&twin, &recorded.window, &[change]).expect("it can be asked");
        let question = question.on_slowest_disks(&twin, &recorded.window).expect("the disk was never full");
        [false, true].map(|is_changed| {
            let run = Run { demand: 0, is_changed, trial: Trial::NOMINAL };
            let scenario = &question.scenario(&run).expect("it is there").scenario;
            let bandwidth = scenario.machine.devices[&device].write_bandwidth;
            bandwidth.map_or(f64::INFINITY, |rate| rate.0.0 as f64 / 1_048_576.0)
        })
    };
    // 4 MiB and the blocks of the journal in a second, of a disk of 57 MiB/s.
    let [now, then] = slowest(Setting::new("vm.dirty_expire_centisecs", "500"));
    assert!((3.5..6.0).contains(&now) && now == then, "{now} {then}");
    // A speed that the change sets stays.
    let [now, then] = slowest(Setting::new(format!("machine.devices.{device}.write_bandwidth"), "2 MB/s"));
    assert!(now > 3.5 && (1.8..2.0).contains(&then), "{now} {then}");
}

#[test]
fn a_change_that_sends_bursts_to_a_disk_of_unknown_speed_is_a_candidate() {
    let machine = "machine.mounts.\"/data\" = { type = \"xfs\", device = \"disk\" }\n\
                   machine.sysctl.vm = { dirty_writeback_centisecs = 0, dirty_ratio = 40, dirty_background_ratio = 30 }";
    let tasks = "workload.tasks.parts = { steps = [{ write = { file = \"/data/part\", order = \"append\", block = \"1 MiB\", rate = \
                 \"16/s\" } }] }\n\
                 workload.tasks.log = { steps = [{ repeat = { every = \"250ms\", steps = [{ write = { file = \"/data/log\", order = \
                 \"append\", count = 1 } }, { fdatasync = { file = \"/data/log\" } }] } }] }";
    let (twin, recorded) = twin(machine, tasks);
    let change = [Setting::new("vm.dirty_writeback_centisecs", "500")];
    let question = Question::new(&twin, &recorded.window, &change).expect("it can be asked");
    let of_usual = |few| question.runs(few).iter().filter(|run| run.demand == Run::ON_USUAL_DISKS).count();
    assert_eq!((of_usual(false), of_usual(true)), (2, 0));
    let usual = question.on_usual_disks(&twin, &recorded.window).expect("the disk was hardly used");
    for is_changed in [false, true] {
        let scenario =
            &usual.scenario(&Run { demand: 0, is_changed, trial: Trial::NOMINAL }).expect("it is there").scenario;
        let speeds: Vec<_> = scenario.machine.devices.values().map(|device| device.write_bandwidth).collect();
        assert!(speeds.iter().all(|speed| speed.is_some_and(|speed| speed.0.0 == 50_000_000)), "{speeds:?}");
    }
    let report = diagnose(&recorded.window, None);
    let before = report.plan.as_ref().expect("it has a plan").now.concat();
    assert!(before.contains("vm.dirty_writeback_centisecs=500"), "{before}");
    let studied = Studied::of(recorded, &|_| true).expect("it has a twin");
    let plan = as_printed(&report, &studied, &|_| true, &mut OneByOne).plan.expect("it keeps its plan");
    let why = plan.candidate.as_ref().map_or("", |candidate| candidate.why.as_str());
    assert!(plan.now.is_empty() && why.contains("its speed is not known"), "{plan:?}");
    assert!(plan.costs[0].starts_with("On a slow disk: "), "{:?}", plan.costs);
}

#[test]
fn a_loop_device_is_one_in_the_twin_and_is_written_to() {
    let machine = "machine.devices.image = { size = \"8 GiB\", backing = { loop = { file = \"/host/image\" } } }\n\
                   machine.mounts.\"/host\" = { type = \"ext4\", device = \"disk\" }\n\
                   machine.mounts.\"/guest\" = { type = \"xfs\", device = \"image\" }";
    let task = "workload.tasks.load = { steps = [{ write = { file = \"/guest/load\", block = \"128 KiB\", rate = \"9 MB/s\" } }] }";
    let (twin, recorded) = twin(machine, task);
    let device = twin.scenario.machine.devices.get("loop0").expect("it has the loop device");
    assert!(matches!(device.backing, Backing::Loop { direct_io: false, .. }), "{device:?}");
    assert!(twin.scenario.workload.tasks.keys().all(|task| !task.contains("unattributed")));
    let text = floodline_twin::to_toml(&twin).expect("it can be written");
    assert!(text.contains("/guest/twin/") && !text.contains("/host/twin/1-load"), "{text}");
    let seen = recorded.window.host.growth.nr_dirtied.map_or(0.0, |pages| pages.0 as f64 * 4096.0);
    assert!((dirtied(&twin, &[]) / seen - 1.0).abs() < 0.2, "{} of {seen}", dirtied(&twin, &[]));
    let direct = dirtied(&twin, &[("machine.devices.loop0.backing.loop.direct_io", "true")]);
    assert!(direct < 0.75 * seen, "{direct} of {seen}");
}

#[test]
fn a_program_that_waits_after_each_burst_syncs_there_and_nothing_else_does() {
    let machine = "machine.mounts.\"/data\" = { type = \"ext4\", device = \"disk\" }";
    let task = "workload.tasks.push = { steps = [{ repeat = { every = \"12s\", steps = [{ write = { file = \"/data/blob\", block = \
                \"64 KiB\", total = \"200 MiB\", rate = \"50 MB/s\" } }, { fsync = { file = \"/data/blob\" } }] } }] }";
    let (twin, _) = twin(machine, task);
    let tasks = &twin.scenario.workload.tasks;
    assert!(tasks.keys().all(|task| !task.contains("sync")), "{:?}", tasks.keys());
    let (_, push) = tasks.iter().find(|(name, _)| name.contains("push")).expect("the program is there");
    let syncs = push.steps.iter().filter(|step| matches!(step, Step::Fsync(_))).count();
    assert!((3..=4).contains(&syncs), "{:?}", push.steps);
}

#[test]
fn the_back_test_chooses_between_programs_on_a_clock_and_programs_that_wait_for_their_own_writes() {
    let machine = "machine.mounts.\"/data\" = { type = \"xfs\", device = \"disk\" }\n\
                   machine.sysctl.vm = { dirty_ratio = 5, dirty_background_ratio = 2 }";
    let uploads = |every: &str, total: &str| {
        format!(
            "workload.tasks.upload = {{ instances = 3, stagger = \"2s\", steps = [{{ repeat = {{ every = \"{every}\", \
             steps = [{{ write = {{ file = \"/data/{{j}}\", block = \"128 KiB\", total = \"{total}\", rate = \"200 MB/s\", \
             truncate = true }} }}] }} }}] }}"
        )
    };
    let check = |every, total, expect| {
        let (twin, recorded) = twin_at(20, machine, &uploads(every, total));
        let tested = test(&recorded, &twin, &mut OneByOne);
        let [first, other] = tested.as_slice() else { panic!("{} twins", tested.len()) };
        let error =
            |figures: &Result<Vec<_>, String>| simulated_error(figures.as_ref().expect("it runs")).expect("figures");
        let (first_error, other_error) = (error(&first.figures), error(&other.figures));
        assert_eq!(first.demand, expect, "{first_error} {other_error}");
        (first_error, other_error)
    };
    // 300 MiB in 9 s are more than the disk takes: the writers wait for their own writes.
    let (closed, open) = check("9s", "100 MiB", "closed");
    assert!(closed < 0.8 * open && open > 0.1, "{closed} {open}");
    // 120 MiB in 8 s are less.
    let (open, closed) = check("8s", "40 MiB", "open");
    assert!(open < closed + 0.02, "{open} {closed}");
}
