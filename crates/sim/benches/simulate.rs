// SPDX-License-Identifier: MIT OR Apache-2.0
//! How fast the simulator is: concurrent pipelines side by side as their number grows, one large pipeline as
//! its steps get smaller, the incidents at the size of real hosts. Run with `cargo bench -p floodline-sim`.

use floodline_core::scenario::{Scenario, ScenarioFile};
use floodline_core::units::Nanos;
use floodline_sim::{Options, simulate};

fn main() {
    divan::main();
}

fn run(scenario: &Scenario, kernel: &str) -> u64 {
    let kernel = kernel.parse().expect("a version");
    let every = Nanos(5 * Nanos::SECOND.0);
    let options = Options { variant: "default".to_owned(), kernel, every, checks_every_event: false };
    simulate(scenario, &options, |_| Ok(()), |_| true).expect("a run").events
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
size = "4096 GB"
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

#[divan::bench(args = [1, 32, 128, 512], sample_count = 3)]
fn pipelines_of_3_gb(bencher: divan::Bencher, count: u32) {
    let scenario = pipelines(count);
    bencher.bench_local(|| run(&scenario, "4.18"));
}

#[divan::bench(args = [100, 20, 2], sample_count = 5)]
fn pipeline_of_20_gb_by_step_in_mb(bencher: divan::Bencher, step: u32) {
    let text = include_str!("../../../scenarios/pipeline-20gb.toml").replace("\"1 GB\"", &format!("\"{step} MB\""));
    let scenario = parse(&text, "default");
    bencher.bench_local(|| run(&scenario, "4.18"));
}

#[divan::bench(args = [8, 50, 500], sample_count = 3)]
fn starved_containers(bencher: divan::Bencher, count: u32) {
    let text = format!(
        r#"
name = "starved"
summary = "containers with mapped journals of 192 MB"
[machine]
memory = "{} GiB"
cpus = 64
sysctl.vm = {{ dirty_bytes = "100 MiB", dirty_background_bytes = "50 MiB" }}
[machine.devices.data]
size = "1000 GB"
write_bandwidth = "1 GB/s"
read_bandwidth = "1 GB/s"
[machine.mounts."/data"]
type = "xfs"
device = "data"
[machine.cgroups."box{{i}}"]
instances = {count}
memory_max = "768 MiB"
[workload]
duration = "60s"
[workload.tasks.journal]
cgroup = "box{{i}}"
preset.journald_like = {{ file = "/data/journal{{i}}", messages = "4/s", size = "192 MiB" }}
"#,
        (count / 4).max(8),
    );
    let scenario = parse(&text, "default");
    bencher.bench_local(|| run(&scenario, "6.1"));
}

#[divan::bench(args = [20_000, 100_000, 400_000], sample_count = 1)]
fn inodes_switched(bencher: divan::Bencher, count: u32) {
    let text = include_str!("../../../scenarios/inode-switch-storm.toml")
        .replace("20000", &count.to_string())
        .replace("size = \"2 GiB\"", "size = \"20 GiB\"")
        .replace("memory = \"4 GiB\"", "memory = \"16 GiB\"");
    let scenario = parse(&text, "relatime");
    bencher.bench_local(|| run(&scenario, "6.12.117"));
}
