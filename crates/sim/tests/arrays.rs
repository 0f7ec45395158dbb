// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arrays: which member a read goes to, and what each has in its queue; all counters adding up after every event.

mod machine;

use floodline_analysis::run::Run;
use floodline_record::record::Record;
use floodline_scenario::Scenario;
use machine::{figure, run_of, scenario};

/// An array of a slow disk and a fast one, with more to write than they take, and a program that reads at random.
const MIRRORED: &str = r#"
name = "mirrored"
summary = "An array with members of different speed"
about = "x"
[machine]
memory = "512 MiB"
cpus = 2
[machine.devices.left]
size = "1 GiB"
write_bandwidth = "15 MB/s"
read_bandwidth = "15 MB/s"
[machine.devices.right]
size = "1 GiB"
write_bandwidth = "30 MB/s"
read_bandwidth = "30 MB/s"
[machine.devices.array]
backing = { raid1 = { members = ["left", "right"] } }
[machine.mounts."/data"]
type = "ext4"
device = "array"
[workload.tasks.writer]
steps = [{ write = { file = "/data/a", block = "256 KiB", total = "200 MiB" } }, { fsync = { file = "/data/a" } }]
[workload.tasks.reader]
setup = [{ write = { file = "/data/b", block = "1 MiB", total = "16 MiB" } }, { fsync = { file = "/data/b" } }, "drop_caches"]
steps = [{ read = { file = "/data/b", order = "random", block = "64 KiB", rate = "10/s", count = 60, direct = true } }]
"#;

/// Bytes read from the slow member, the fast one and the array.
fn read(run: &Run) -> [u64; 3] {
    let read: Vec<_> = run.window.disks.values().map(|disk| disk.last.read.expect("known").0).collect();
    read.try_into().expect("three devices")
}

/// The requests in samples of a run: those of the slow member, the fast one, the array.
fn requests_of(scenario: &Scenario, kernel: &str) -> Vec<[u64; 3]> {
    let mut requests = Vec::new();
    run_of(scenario, kernel, |record| {
        if let Record::Sample(sample) = record {
            let disks: Vec<_> = sample.disks.rows().iter().map(|(_, disk)| disk.in_flight.expect("known").0).collect();
            requests.push(disks.try_into().expect("three devices"));
        }
        true
    });
    requests
}

#[test]
fn an_array_reads_from_the_member_that_has_less_to_do() {
    let run = run_of(&scenario(MIRRORED), "6.12", |_| true);
    let [slow, fast, array] = read(&run);
    assert!(array >= 60 * 65_536 && fast > 10 * slow, "{slow} and {fast} of {array}");
    // Behind what the slow one has to write it would take seconds.
    let longest = figure(&run, "reader.read.max_seconds");
    assert!(longest < 0.1, "{longest}");
}

#[test]
fn every_member_of_an_array_has_all_that_is_written() {
    for kernel in ["4.4", "5.10", "6.12", "6.12.117", "7.2"] {
        let run = run_of(&scenario(MIRRORED), kernel, |_| true);
        let written: Vec<_> = run.window.disks.values().map(|disk| disk.last.written.expect("known").0).collect();
        assert!(written.iter().all(|bytes| *bytes >= 200 << 20 && *bytes == written[0]), "{kernel}: {written:?}");
    }
}

#[test]
fn who_reads_on_stays_on_a_member() {
    let text = MIRRORED.replace(
        "order = \"random\", block = \"64 KiB\", rate = \"10/s\", count = 60, direct = true",
        "block = \"1 MiB\"",
    );
    let text = text.replace("total = \"200 MiB\"", "total = \"4 KiB\"");
    let [slow, fast, array] = read(&run_of(&scenario(&text), "6.12", |_| true));
    assert!(slow + fast == array && slow.min(fast) < 1 << 20, "{slow} and {fast}");
}

#[test]
fn a_member_of_an_array_throttles_writeback_as_a_disk_of_its_own_does() {
    let requests = requests_of(&scenario(MIRRORED), "6.12.117");
    // 96 of 256 are for writeback that is not urgent; a read, a flush and a write of the journal may come on top.
    assert!(requests.iter().all(|[slow, fast, _]| *slow <= 99 && *fast <= 99), "{requests:?}");
    assert!(requests.iter().any(|[slow, ..]| *slow > 16), "{requests:?}");
    // The fast one has done all of a batch before the slow one lets in the next.
    assert!(requests.iter().any(|[slow, fast, array]| *slow > 2 && *fast == 0 && array >= slow), "{requests:?}");
}

#[test]
fn a_member_of_an_array_takes_no_more_than_its_queue_has() {
    let text =
        MIRRORED.replace("size = \"1 GiB\"", "size = \"1 GiB\"\nqueue = { nr_requests = 4, wbt_latency = \"0s\" }");
    let requests = requests_of(&scenario(&text), "6.12");
    assert!(requests.iter().all(|[slow, fast, _]| *slow <= 4 && *fast <= 4), "{requests:?}");
    assert!(requests.iter().any(|[slow, ..]| *slow == 4), "{requests:?}");
}
