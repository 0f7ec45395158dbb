// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shares of equal programs on one disk.

mod machine;

use machine::{figure, run_of, scenario};

fn text(fs: &str) -> String {
    format!(
        r#"
name = "copiers"
summary = "two writers that are alike, and a log, on one disk"
[machine]
memory = "2 GiB"
cpus = 2
[machine.devices.data]
size = "20 GB"
write_bandwidth = "60 MB/s"
read_bandwidth = "60 MB/s"
[machine.mounts."/data"]
type = "{fs}"
device = "data"
[workload]
duration = "40s"
[workload.tasks.one]
steps = [{{ write = {{ file = "/data/one", block = "1 MiB", total = "3 GB" }} }}]
[workload.tasks.other]
steps = [{{ write = {{ file = "/data/other", block = "1 MiB", total = "3 GB" }} }}]
[workload.tasks.log]
steps = [{{ repeat = {{ every = "1s", steps = [
  {{ write = {{ file = "/data/log", order = "append", count = 1 }} }}, {{ fdatasync = {{ file = "/data/log" }} }},
] }} }}]
"#
    )
}

#[test]
fn two_equal_writers_share_a_disk() {
    for (fs, kernel) in [("ext4", "6.12"), ("xfs", "4.18"), ("xfs", "6.12")] {
        let run = run_of(&scenario(&text(fs)), kernel, |_| true);
        let [one, other] = ["one", "other"].map(|task| figure(&run, &format!("{task}.dirtied_bytes_per_second")) / 1e6);
        assert!((0.8..1.25).contains(&(one / other)), "{fs} on {kernel}: {one} and {other} MB/s");
        assert!((55.0..75.0).contains(&(one + other)), "{fs} on {kernel}: {one} and {other} MB/s");
    }
}
