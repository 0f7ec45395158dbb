// SPDX-License-Identifier: MIT OR Apache-2.0
//! Speed and memory of the simulator: concurrent pipelines as their number grows, one large pipeline as its steps
//! get smaller, the incidents at the size of real hosts. Run with `cargo bench -p floodline-sim`. Afterwards every
//! row runs again in a process of its own, for its CPU time and its largest memory, and sizes of one kind are
//! compared by the exponent of their growth.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::print_stdout, reason = "measures itself")]

use floodline_record::units::Nanos;
use floodline_scenario::{Scenario, ScenarioFile};
use floodline_sim::{Options, Summary, simulate};

/// Environment variable with the row that a process of its own runs.
const ROW: &str = "FLOODLINE_BENCH_ROW";

fn main() {
    if let Some(row) = std::env::var_os(ROW) {
        let row = row.to_string_lossy().into_owned();
        let row = ROWS.iter().find(|known| known.name() == row).expect("a row");
        let summary = row.run();
        println!("{} {} {}", cpu_seconds(), peak_mib(), summary.simulated.as_secs_f64());
        return;
    }
    divan::main();
    if std::env::args().any(|arg| arg == "--bench") {
        memory();
    }
}

/// One row of the table.
#[derive(Clone, Copy)]
struct Row {
    kind: &'static str,
    size: u32,
    make: fn(u32) -> Scenario,
    kernel: &'static str,
}

const ROWS: &[Row] = &[
    Row { kind: "pipelines of 3 GB", size: 32, make: pipelines, kernel: "4.18" },
    Row { kind: "pipelines of 3 GB", size: 128, make: pipelines, kernel: "4.18" },
    Row { kind: "pipelines of 3 GB", size: 512, make: pipelines, kernel: "4.18" },
    Row { kind: "MB steps of 20 GB", size: 100, make: steps, kernel: "4.18" },
    Row { kind: "MB steps of 20 GB", size: 2, make: steps, kernel: "4.18" },
    Row { kind: "containers starved", size: 50, make: starved, kernel: "6.1" },
    Row { kind: "containers starved", size: 500, make: starved, kernel: "6.1" },
    Row { kind: "containers starved", size: 5000, make: starved, kernel: "6.1" },
    Row { kind: "s of random writes", size: 60, make: scattered, kernel: "6.12" },
    Row { kind: "s of random writes", size: 120, make: scattered, kernel: "6.12" },
    Row { kind: "s of random writes", size: 480, make: scattered, kernel: "6.12" },
    Row { kind: "inodes switched", size: 100_000, make: switched, kernel: "6.12.117" },
    Row { kind: "inodes switched", size: 400_000, make: switched, kernel: "6.12.117" },
];

impl Row {
    fn name(&self) -> String {
        format!("{} {}", self.size, self.kind)
    }

    fn run(&self) -> Summary {
        run(&(self.make)(self.size), self.kernel)
    }
}

/// Every row in a process of its own.
fn memory() {
    println!("\n{:<28} {:>9} {:>9} {:>10} {:>9}", "alone in a process", "CPU s", "peak MiB", "simulated", "exponent");
    let program = std::env::current_exe().expect("this program");
    let mut last: Option<(&Row, f64)> = None;
    for row in ROWS {
        let output = std::process::Command::new(&program).env(ROW, row.name()).output().expect("a run");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let numbers: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let [cpu, peak, simulated] = numbers[..] else { panic!("{}: {text}", row.name()) };
        let growth = last.filter(|(last, _)| last.kind == row.kind && last.size < row.size).map(|(last, before)| {
            let exponent = (cpu / before).ln() / (f64::from(row.size) / f64::from(last.size)).ln();
            format!("{exponent:.2}")
        });
        let growth = growth.unwrap_or_default();
        println!("{:<28} {cpu:>9.3} {peak:>9.1} {simulated:>8.0} s {growth:>9}", row.name());
        last = Some((row, cpu));
    }
}

/// User and system time of this process, from /proc: ticks of 10 ms.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks = after_name.split_whitespace().skip(11).take(2).filter_map(|word| word.parse::<f64>().ok());
    ticks.sum::<f64>() / 100.0
}

/// Largest memory of this process.
fn peak_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    line.split_whitespace().next().and_then(|kib| kib.parse::<f64>().ok()).unwrap_or(f64::NAN) / 1024.0
}

fn run(scenario: &Scenario, kernel: &str) -> Summary {
    let kernel = kernel.parse().expect("a version");
    let every = Nanos(5 * Nanos::SECOND.0);
    let options = Options { every, ..Options::new("default", kernel) };
    simulate(scenario, &options, |_| Ok(()), |_| true).expect("a run")
}

fn parse(text: &str, variant: &str) -> Scenario {
    ScenarioFile::parse(text).expect("a scenario").variants.remove(variant).expect("its variant")
}

/// Pipelines of 3 GB on a machine that grows with them.
fn pipelines(count: u32) -> Scenario {
    let gib = 250 * u64::from(count).div_ceil(32);
    let text = format!(
        r#"
name = "pipelines"
summary = "pipelines of 3 GB"
[machine]
memory = "{gib} GiB"
cpus = {}
sysctl.vm = {{ dirty_ratio = 40, dirty_background_ratio = 10 }}
[machine.devices.data]
size = "16384 GB"
write_bandwidth = "{} MB/s"
read_bandwidth = "{} MB/s"
[machine.mounts."/data"]
type = "xfs"
device = "data"
[workload.tasks.pipeline]
instances = {count}
preset.pipeline = {{ files = ["/data/{{j}}-1", "/data/{{j}}-2", "/data/{{j}}-3", "/data/{{j}}-4"], size = "3 GB", compute = "4400ms", block = "100 MB" }}
"#,
        count.max(32),
        512 * count.div_ceil(32),
        512 * count.div_ceil(32),
    );
    parse(&text, "default")
}

/// One pipeline of 20 GB in steps of a number of MB.
fn steps(mb: u32) -> Scenario {
    let text = include_str!("../../../scenarios/pipeline-20gb.toml").replace("\"1 GB\"", &format!("\"{mb} MB\""));
    parse(&text, "default")
}

/// The first incident with its real figures: 100 MiB of dirty pages for 500 containers on 125 GiB. The machine
/// grows with its containers, so each has the same budget for any number of them: with the same 100 MiB on a small
/// machine none would be starved. The journals are written before budgets are set, and were read back, like those
/// of a container that runs for days.
fn starved(count: u32) -> Scenario {
    let text = format!(
        r#"
name = "starved"
summary = "containers with mapped journals of 192 MB"
[machine]
memory = "{} MiB"
cpus = {}
sysctl.vm = {{ dirty_ratio = 40, dirty_background_ratio = 10 }}
[machine.devices.data]
size = "4000 GB"
write_bandwidth = "{} MB/s"
read_bandwidth = "{} MB/s"
[machine.mounts."/data"]
type = "xfs"
device = "data"
[machine.cgroups."box{{i}}"]
instances = {count}
memory_max = "768 MiB"
[workload]
duration = "300s"
[workload.tasks.prepare]
setup = [
  {{ create_files = {{ file = "/data/journal{{n}}", files = {count}, size = "192 MiB" }} }},
  "sync",
  "drop_caches",
  {{ set_sysctl.vm = {{ dirty_bytes = "{} KiB", dirty_background_bytes = "{} KiB" }} }},
  {{ barrier = {{ name = "prepared" }} }},
]
[workload.tasks.journal]
cgroup = "box{{i}}"
setup = [
  {{ barrier = {{ name = "prepared" }} }},
  {{ read = {{ file = "/data/journal{{i}}", block = "1 MiB" }} }},
]
steps = [{{ mmap_store = {{ file = "/data/journal{{i}}", size = "192 MiB", pages = 2, rate = "4/s" }} }}]
"#,
        count * 256,
        (count / 8).max(1),
        count * 2,
        count * 2,
        count * 1024 / 5,
        count * 1024 / 10,
    );
    parse(&text, "default")
}

/// Some seconds of 10,000 random writes per second, of 4 KiB each, on 64 GiB. In the first 30 s no page is old, and the flusher
/// writes nothing: growth is measured from 60 s on.
fn scattered(seconds: u32) -> Scenario {
    let text = format!(
        r#"
name = "scattered"
summary = "random writes into a large file"
[machine]
memory = "64 GiB"
cpus = 8
[machine.devices.data]
size = "500 GB"
[machine.mounts."/data"]
type = "ext4"
device = "data"
[workload]
duration = "{seconds}s"
[workload.tasks.database]
setup = [{{ write = {{ file = "/data/table", block = "1 MiB", total = "20 GiB" }} }}, "sync"]
steps = [{{ write = {{ file = "/data/table", order = "random", size = "20 GiB", rate = "10000/s" }} }}]
"#
    );
    parse(&text, "default")
}

/// The fifth incident with more files.
fn switched(count: u32) -> Scenario {
    let text = include_str!("../../../scenarios/inode-switch-storm.toml")
        .replace("20000", &count.to_string())
        .replace("size = \"2 GiB\"", "size = \"20 GiB\"")
        .replace("memory = \"4 GiB\"", "memory = \"16 GiB\"");
    parse(&text, "relatime")
}

#[divan::bench(args = [1, 32, 128, 512], sample_count = 3)]
fn pipelines_of_3_gb(bencher: divan::Bencher, count: u32) {
    let scenario = pipelines(count);
    bencher.bench_local(|| run(&scenario, "4.18"));
}

#[divan::bench(args = [100, 20, 2], sample_count = 5)]
fn pipeline_of_20_gb_by_step_in_mb(bencher: divan::Bencher, step: u32) {
    let scenario = steps(step);
    bencher.bench_local(|| run(&scenario, "4.18"));
}

#[divan::bench(args = [50, 500], sample_count = 1)]
fn starved_containers(bencher: divan::Bencher, count: u32) {
    let scenario = starved(count);
    bencher.bench_local(|| run(&scenario, "6.1"));
}

#[divan::bench(args = [15, 60, 120], sample_count = 1)]
fn seconds_of_random_writes(bencher: divan::Bencher, seconds: u32) {
    let scenario = scattered(seconds);
    bencher.bench_local(|| run(&scenario, "6.12"));
}

#[divan::bench(args = [20_000, 100_000, 400_000], sample_count = 1)]
fn inodes_switched(bencher: divan::Bencher, count: u32) {
    let scenario = switched(count);
    bencher.bench_local(|| run(&scenario, "6.12.117"));
}
