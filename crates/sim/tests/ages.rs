// SPDX-License-Identifier: MIT OR Apache-2.0
//! When few dirty pages that no program syncs reach the disk.

mod machine;

use machine::{figure, run_of, scenario};

fn machine(fs: &str, tasks: &str) -> String {
    format!(
        r#"
name = "ages"
summary = "programs that sync nothing"
[machine]
memory = "2 GiB"
cpus = 2
[machine.devices.disk]
size = "4 GiB"
write_bandwidth = "100 MB/s"
[machine.mounts."/data"]
type = "{fs}"
device = "disk"
in_use = true
[workload]
duration = "70s"
{tasks}
"#
    )
}

/// Number of writes of a disk for two logs of a few pages. No wb has a share: nothing was written before.
fn writes(kernel: &str) -> f64 {
    let logs = "[workload.tasks.log]\ninstances = 2\nsteps = [{ write = { file = \"/data/log{j}\", order = \"append\", \
                block = \"100 B\", rate = \"5/s\" } }]\n";
    figure(&run_of(&scenario(&machine("xfs", logs)), kernel, |_| true), "devices.writes_count")
}

#[test]
fn before_5_14_a_few_dirty_pages_stay_until_they_are_old() {
    let [before, after] = ["5.13", "5.14"].map(writes);
    assert!(after > 2.0 * before, "{before} and {after}");
}
