// SPDX-License-Identifier: MIT OR Apache-2.0
//! When few dirty pages, and changes of metadata that no program syncs, reach the disk.

mod machine;

use floodline_record::record::Record;
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

/// Number of commits of an ext4 in 60 s, from 2 s on: each flushes the disk twice.
fn commits(tasks: &str) -> u64 {
    let (mut begin, mut counted) = (None, Vec::new());
    let _ = run_of(&scenario(&machine("ext4", tasks)), "6.12", |record| {
        if let Record::Sample(sample) = record {
            let now = sample.time.monotonic.0;
            let since = now - *begin.get_or_insert(now);
            let flushes =
                sample.disks.rows().iter().map(|(_, disk)| disk.flushes.expect("it is recorded").0).sum::<u64>();
            if (2_000_000_000..=62_000_000_000).contains(&since) {
                counted.push(flushes);
            }
        }
        true
    });
    (counted.last().expect("samples") - counted[0]) / 2
}

#[test]
fn a_program_that_changes_metadata_all_the_time_commits_each_five_seconds() {
    let files = |rate: &str| {
        commits(&format!(
            "[workload.tasks.files]\nsteps = [{{ create_files = {{ file = \"/data/{{n}}\", size = \"0 B\", rate = \"{rate}\" }} }}]\n"
        ))
    };
    // The timer alone goes off at the end of the second in which the transaction is 5 s old, or later: ten times at most.
    assert_eq!(files("20/s"), 12);
    // The next file is made after the timer went off: one commit for each file.
    assert_eq!(files("0.125/s"), 7);
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
