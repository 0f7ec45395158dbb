// SPDX-License-Identifier: MIT OR Apache-2.0
//! Absurd scenarios: an impossible setup is refused with the rule that it breaks, either by the scenario's own
//! check or by the simulator, which models the kernel. None of them panics, hangs or silently runs something else.

use floodline_record::record::{Event, Record, What};
use floodline_scenario::ScenarioFile;
use floodline_sim::{Options, simulate};

const SMALL: &str = r#"
name = "small"
summary = "Some pages and an fsync"
about = "x"
[machine]
memory = "256 MiB"
cpus = 2
sysctl.vm = { dirty_ratio = 20 }
[machine.devices.data]
size = "1 GiB"
write_bandwidth = "50 MB/s"
[machine.mounts."/data"]
type = "ext4"
device = "data"
[machine.cgroups.box]
memory_max = "32 MiB"
[workload]
duration = "2s"
[workload.tasks.writer]
cgroup = "box"
steps = [{ write = { file = "/data/a", block = "64 KiB", total = "1 MiB" } }, { fsync = { file = "/data/a" } }]
"#;

/// Error of a scenario; none if it runs.
fn run(text: &str, kernel: &str, mut take: impl FnMut(Record)) -> String {
    let scenario = match ScenarioFile::parse(text) {
        Ok(mut file) => file.variants.remove("default").expect("its variant"),
        Err(error) => return error.problems.iter().map(|problem| problem.to_string() + "\n").collect(),
    };
    let options = Options::new("default", kernel.parse().expect("a version"));
    let take = |record| {
        take(record);
        Ok(())
    };
    let outcome = simulate(&scenario, &options, take, |_| true);
    outcome.err().map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn a_run_that_cannot_progress_says_what_it_waits_for() {
    let slow = SMALL.replace("50 MB/s", "1 B/s").replace("duration = \"2s\"\n", "");
    let said = run(&slow, "6.12", drop);
    assert!(said.starts_with("the simulation cannot progress at "), "{said}");
    assert!(
        said.ends_with(
            "writer-0 waits for a commit of the journal; requests to data (write_bandwidth 1 B/s) are pending"
        ),
        "{said}"
    );
    let each_other = SMALL.replace("steps = [", "steps = [{ barrier = { name = \"b\" } }, ").replace(
        "[workload.tasks.writer]",
        "[workload.tasks.other]\nsteps = [{ wait_for = { task = \"writer\" } }, { barrier = { name = \"b\" } }]\n[workload.tasks.writer]",
    );
    let said = run(&each_other.replace("duration = \"2s\"\n", ""), "6.12", drop);
    assert!(said.contains("waits for others at a barrier") && !said.contains("pending"), "{said}");
}

#[test]
fn what_cannot_be_is_refused_with_its_rule() {
    let settings = "sysctl.vm = { dirty_ratio = 20 }";
    let ext4 = "type = \"ext4\"";
    let bandwidth = "write_bandwidth = \"50 MB/s\"";
    let memory = "memory = \"256 MiB\"";
    let limit = "memory_max = \"32 MiB\"";
    let step = "{ fsync = { file = \"/data/a\" } }";
    // Kernel, text to replace, its replacement, and the error.
    let rows = [
        ("6.12", "", "", ""),
        (
            "6.12",
            ext4,
            "type = \"ext4\"\nmkfs = { journal = false }\noptions = [\"commit=30\"]",
            "the kernel refuses \"commit=30\" for an ext4 without a journal",
        ),
        // Memory and CPUs.
        ("6.12", memory, "memory = \"0 B\"", "no kernel boots in less than 16 MiB"),
        ("6.12", memory, "memory = \"20 MiB\"", "too little for a kernel"),
        ("6.12", memory, "memory = \"99999999999 GiB\"", "memory"),
        (
            "6.12",
            "[workload.tasks.writer]",
            "[workload.tasks.writer]\ninstances = 400",
            "400 tasks, 1 cgroups and the kernel use 241 MiB before they do anything, and the machine has 188 MiB",
        ),
        ("6.12", "cpus = 2", "cpus = 0", "1 to 8192 CPUs"),
        ("6.12", "cpus = 2", "cpus = 2\nhz = 7", "100, 250, 300 or 1000"),
        // Devices.
        ("6.12", bandwidth, "write_bandwidth = \"0 B/s\"", "nothing would ever complete"),
        ("6.12", bandwidth, "read_iops = \"0 IO/s\"", "nothing would ever complete"),
        ("6.12", bandwidth, "write_bandwidth = \"-1 MB/s\"", "write_bandwidth"),
        ("6.12", "size = \"1 GiB\"", "size = \"0 B\"", "it has no size of at least 1 MiB"),
        (
            "6.12",
            ext4,
            "type = \"ext4\"\nmkfs.journal_size = \"1 GiB\"",
            "expected less than the 1073741824 B of the device",
        ),
        (
            "6.12",
            ext4,
            "type = \"xfs\"\nmkfs.journal_size = \"2000 MiB\"",
            "expected less than the 1073741824 B of the device",
        ),
        ("6.12", ext4, "type = \"ext4\"\nmkfs.journal_size = \"512 MiB\"", ""),
        ("6.12", bandwidth, "bdi = { max_ratio = 101 }", "min_ratio ≤ max_ratio ≤ 100"),
        ("6.1", bandwidth, "bdi = { max_bytes = \"1 MiB\" }", "bdi.max_bytes: this knob was added in 6.2"),
        ("5.10", bandwidth, "bdi = { strict_limit = true }", "bdi.strict_limit: this knob was added in 6.2"),
        ("6.12", bandwidth, "bdi = { max_bytes = \"1 TiB\" }", "more than the machine's threshold (EINVAL)"),
        ("6.12", bandwidth, "bdi = { max_bytes = \"1 MiB\" }", ""),
        // Settings.
        (
            "6.12",
            settings,
            "sysctl.vm = { dirty_ratio = 101 }",
            "the kernel refuses 101 here (EINVAL): it takes 0 to 100",
        ),
        ("6.12", settings, "sysctl.vm = { dirty_bytes = 4096 }", "it takes at least 8192"),
        ("6.12", settings, "sysctl.vm = { dirty_background_bytes = 0 }", "it takes at least 1"),
        ("6.12", settings, "sysctl.vm = { dirty_bytes = 9223372036854775807 }", "more than 2^32 - 1 pages (ERANGE)"),
        (
            "6.12",
            settings,
            "sysctl.vm = { dirty_background_bytes = 9223372036854775807 }",
            "more than 2^32 - 1 pages (ERANGE)",
        ),
        // Before the fix of the overflows, the kernel accepted these.
        ("5.10", settings, "sysctl.vm = { dirty_bytes = 9223372036854775807 }", ""),
        ("6.12", settings, "sysctl.vm = { dirty_bytes = 9223372036854775808 }", "sysctl"),
        ("6.12", settings, "sysctl.vm = { dirty_expire_centisecs = 99999999999 }", "it takes 0 to 2147483647"),
        ("6.12", settings, "sysctl.vm = { dirty_writeback_centisecs = -1 }", "it takes 0 to 2147483647"),
        ("6.12", settings, "sysctl.vm = { swappiness = 10 }", "machine.sysctl.vm.swappiness"),
        ("6.12", step, "{ set_sysctl = { vm = { dirty_ratio = 1000 } } }", "it takes 0 to 100"),
        // Cgroups.
        (
            "6.12",
            "[machine.cgroups.box]",
            "[machine.cgroups.\"n{i}\"]\ninstances = 10000000\n[machine.cgroups.box]",
            "16-bit ids",
        ),
        ("4.14", limit, "memory_min = \"1 MiB\"", "this key was added in 4.18"),
        ("6.12", limit, "memory_min = \"1 MiB\"", ""),
        ("6.12", limit, "memory_low = \"16 EiB\"", "memory_low"),
        ("6.12", limit, "io_max.data = { write_bandwidth = \"0 B/s\" }", "the kernel refuses a limit of 0 (EINVAL)"),
        ("6.12", limit, "io_weight = 10001", "the kernel takes 1 to 10000 (ERANGE)"),
        // Workloads.
        ("6.12", "cgroup = \"box\"", "cgroup = \"box\"\ninstances = 10000000", "at most 100000"),
        ("6.12", "total = \"1 MiB\"", "total = \"1 MiB\", rate = \"0 B/s\"", "rate"),
        ("6.12", "block = \"64 KiB\"", "block = \"0 B\"", "block"),
        ("6.12", "duration = \"2s\"", "duration = \"99999999999999999999s\"", "duration"),
    ];
    let mut wrong = Vec::new();
    for (kernel, from, to, expect) in rows {
        assert!(SMALL.contains(from), "{from}");
        let said = run(&SMALL.replacen(from, to, 1), kernel, drop);
        let fits = if expect.is_empty() { said.is_empty() } else { said.contains(expect) };
        if !fits {
            wrong.push(format!("{kernel}: {to}: expected {expect:?}, said {said:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_program_that_gets_no_memory_fails_and_the_run_goes_on() {
    // The kernel would run the OOM killer.
    let text = SMALL.replace("memory_max = \"32 MiB\"", "memory_max = \"0 B\"");
    let mut failures = Vec::new();
    let outcome = run(&text, "6.12", |record| {
        if let Record::Event(Event { what: What::TaskEnded { failure, .. }, .. }) = record {
            failures.extend(failure);
        }
    });
    assert_eq!(outcome, "");
    assert!(failures.len() == 1 && failures[0].contains("no memory"), "{failures:?}");
}

#[test]
fn a_loop_of_steps_that_take_no_time_comes_to_its_end() {
    for step in [
        "{ sleep = { for = \"0s\" } }",
        "{ burn = { for = \"0s\" } }",
        "\"drop_caches\"",
        "{ mkdir = { path = \"/data/d\" } }",
    ] {
        let text = SMALL.replace("duration = \"2s\"", "duration = \"20ms\"");
        // More rounds than there are moments. The scenario's check refuses more of them for steps without time.
        let steps = format!("[{{ repeat = {{ times = 10_000, steps = [{step}] }} }}]");
        let from = text.find("steps = [").expect("steps") + "steps = ".len();
        let text = format!("{}{steps}\n", &text[..from]);
        let mut ended = 0;
        let said = run(&text, "6.12", |record| {
            ended += u32::from(matches!(record, Record::Event(Event { what: What::TaskEnded { .. }, .. })));
        });
        assert_eq!((said.as_str(), ended), ("", 1), "{step}");
    }
}

#[test]
fn a_run_can_be_ended_while_a_single_program_does_things_that_take_no_time() {
    // Between two samples there are a million rounds, and no other process is due.
    let store = "{ mmap_store = { file = \"/data/m\", size = \"4 KiB\", pages = 1, rate = \"1000000000/s\" } }";
    let from = SMALL.find("steps = [").expect("steps") + "steps = ".len();
    let text = format!("{}[{store}]\n", &SMALL[..from]);
    let scenario = ScenarioFile::parse(&text).expect("a scenario").variants.remove("default").expect("its variant");
    let every = floodline_record::units::Nanos(10 * floodline_record::units::Nanos::SECOND.0);
    let options = Options { every, ..Options::new("default", "6.12".parse().expect("a version")) };
    let mut asked = 0;
    let summary = simulate(
        &scenario,
        &options,
        |_| Ok(()),
        |_| {
            asked += 1;
            asked < 2
        },
    );
    let summary = summary.expect("a run");
    assert!(summary.is_interrupted && summary.events < 4 << 20, "{summary:?}");
}

#[test]
fn a_disk_that_takes_minutes_for_a_request_is_waited_for() {
    let slow = SMALL.replace("50 MB/s", "8 kB/s");
    assert_eq!(run(&slow, "6.12", drop), "");
}

/// A note after every call would fill the memory of the reader: the task that writes them fails, and the run goes on.
#[test]
fn notes_of_a_run_are_bounded() {
    let step = "{ fsync = { file = \"/data/a\" } }";
    let noting = "{ repeat = { steps = [\"drop_caches\", { note = { text = \"x\" } }] } }";
    let (mut notes, mut failure) = (0, None);
    let error = run(&SMALL.replace(step, noting), "6.12", |record| match record {
        Record::Event(Event { what: What::Note { .. }, .. }) => notes += 1,
        Record::Event(Event { what: What::TaskEnded { failure: why, .. }, .. }) => failure = why,
        _ => {}
    });
    assert_eq!((error.as_str(), notes), ("", 100_000));
    let failure = failure.expect("its failure").to_string();
    assert!(failure.contains("steps[1].repeat.steps[1].note: more than 100000 notes in one run"), "{failure}");
}
