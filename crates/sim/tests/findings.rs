// SPDX-License-Identifier: MIT OR Apache-2.0
//! Findings in simulated recordings of the incidents: first the condition that the scenario's `expect` names, on
//! every kernel that has the disease, and no such finding where it is cured or a kernel does not have it. The same
//! rules diagnose recordings of real kernels.

use floodline_analysis::run::{Run, misses};
use floodline_record::record::{Record, Sink};
use floodline_record::version::KernelVersion;
use floodline_scenario::ScenarioFile;
use floodline_sim::{Options, simulate};

const KERNELS: &[&str] = &["5.10.223", "6.1.192", "6.12.43", "6.12.117", "7.2.13"];

/// The five incidents, each sick and cured, and healthy machines.
const SCENARIOS: &[(&str, &[&str])] = &[
    (include_str!("../../../scenarios/starved-budget.toml"), &["incident-short", "remedy-short"]),
    (include_str!("../../../scenarios/dirty-cliff.toml"), &["incident-short", "remedy-short"]),
    (include_str!("../../../scenarios/slow-disk-journal.toml"), &["incident-short", "incident-raid1", "remedy-short"]),
    (include_str!("../../../scenarios/overlay-umount.toml"), &["incident-short", "remedy"]),
    (include_str!("../../../scenarios/inode-switch-storm.toml"), &["incident-short", "remedy"]),
    (include_str!("../../../scenarios/healthy-idle.toml"), &["default"]),
    (include_str!("../../../scenarios/healthy-database.toml"), &["default"]),
    (include_str!("../../../scenarios/healthy-containers.toml"), &["default"]),
];

/// Differences between findings and expectations: an expected finding must be found, and first.
fn wrong(text: &str, variant: &str, kernel: &str) -> Vec<String> {
    let scenario = ScenarioFile::parse(text).expect("a scenario").variants.remove(variant).expect("a variant");
    let kernel: KernelVersion = kernel.parse().expect("a version");
    let mut expect = scenario.expect.on(kernel);
    // Durations depend on the CPU, which is not emulated here.
    expect.figures.clear();
    let mut run = Run::expecting(&expect);
    let take = |record: Record| {
        let Ok(()) = run.record(&record);
        Ok(())
    };
    simulate(&scenario, &Options::new(variant, kernel), take, |_| true).expect("a run");
    misses(&expect, &run.window, &run.figures(), &run.diagnose().findings)
}

#[test]
fn each_incident_is_named_first_where_it_is_and_nowhere_else() {
    let mut all = Vec::new();
    for (text, variants) in SCENARIOS {
        for variant in *variants {
            for kernel in KERNELS {
                let name = text.lines().find(|line| line.starts_with("name")).unwrap_or_default();
                let wrong = wrong(text, variant, kernel);
                all.extend(wrong.into_iter().map(|what| format!("{name} {variant} on {kernel}: {what}")));
            }
        }
    }
    assert!(all.is_empty(), "{}", all.join("\n"));
}

/// Containers whose journals are on filesystems in files, as in the published first incident.
const ON_LOOPS: &str = r#"
name = "loops"
summary = "Mapped journals on XFS on loop devices, with a byte threshold for the whole machine"
about = "x"
[machine]
memory = "8 GiB"
cpus = 2
sysctl.vm = { dirty_bytes = "100 MiB", dirty_background_bytes = "50 MiB" }
[machine.devices.disk]
size = "4 GiB"
write_bandwidth = "100 MB/s"
read_bandwidth = "100 MB/s"
[machine.devices.image]
size = "1 GiB"
backing = { loop = { file = "/host/image" } }
[machine.mounts."/host"]
type = "xfs"
device = "disk"
[machine.mounts."/var"]
type = "xfs"
device = "image"
[machine.cgroups."box{i}"]
instances = 4
memory_max = "128 MiB"
[workload]
duration = "15s"
settle = "5s"
[workload.tasks.prepare]
setup = [
  { create_files = { file = "/var/journal{n}", files = 4, size = "4 MiB" } },
  "sync",
  "drop_caches",
  { barrier = { name = "prepared" } },
]
[workload.tasks.writers]
cgroup = "box{i}"
setup = [{ barrier = { name = "prepared" } }, { read = { file = "/var/journal{i}", block = "128 KiB" } }]
steps = [{ mmap_store = { file = "/var/journal{i}", size = "4 MiB", pages = 12, rate = "8/s" } }]
"#;

#[test]
fn on_loop_devices_the_starved_budget_is_found_and_that_pages_are_dirty_twice() {
    let found = |text: &str| {
        let expect = text.to_owned() + "[expect]\nfound = [\"starved-dirty-budget\", \"buffered-loop-device\"]\n";
        wrong(&expect, "default", "6.12.117")
    };
    assert_eq!(found(ON_LOOPS), Vec::<String>::new());
    // With direct I/O below, no page is dirty twice; a limit of a container on the device does not change that.
    let direct = ON_LOOPS.replace("file = \"/host/image\"", "file = \"/host/image\", direct_io = true");
    let limit = "memory_max = \"128 MiB\"";
    let limited = direct.replace(limit, &format!("{limit}\nio_max.image = {{ write_bandwidth = \"20 MB/s\" }}"));
    for text in [&direct, &limited] {
        let expect =
            text.to_owned() + "[expect]\nfound = [\"starved-dirty-budget\"]\nnot_found = [\"buffered-loop-device\"]\n";
        assert_eq!(wrong(&expect, "default", "6.12.117"), Vec::<String>::new());
    }
}
