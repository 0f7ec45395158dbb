// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shares of equal programs on one disk, and shares of the dirty threshold with which a machine begins.

mod machine;

use floodline_record::id::Entity;
use floodline_record::record::{Record, What};
use machine::{figure, run_of, scenario};
use std::collections::BTreeMap;

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

/// Part of the threshold that each wb has in the first sample of the workload, by its bdi and the inode of its cgroup, and dirty pages
/// of all samples.
fn begun(text: &str, kernel: &str) -> (BTreeMap<(String, u64), f64>, Vec<u64>) {
    let (mut names, mut shares, mut dirty) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
    let mut has_begun = false;
    run_of(&scenario(text), kernel, |record| {
        match record {
            Record::Entity(id, Entity::Wb { bdi, cgroup_ino }) => {
                drop(names.insert(*id, (bdi.to_string(), *cgroup_ino)))
            }
            Record::Event(event) => has_begun |= matches!(event.what, What::WorkloadStarted { .. }),
            Record::Sample(sample) => {
                dirty.push(sample.host.nr_dirty.expect("counted").0);
                let thresh = sample.host.nr_dirty_threshold.expect("computed").0;
                let part = |pages: u64| pages as f64 / thresh as f64;
                if has_begun && shares.is_empty() {
                    let row = |(id, row): &(_, floodline_record::sample::WbRow)| {
                        (names[id].clone(), part(row.dirty_thresh.expect("printed").0 / 4096))
                    };
                    shares = sample.wbs.rows().iter().map(row).collect();
                }
            }
            _ => {}
        }
        true
    });
    (shares, dirty)
}

/// A machine with two disks. Its task waits for a second, and then appends 20 MB in 20 s. Its setup syncs 8 MB of the other disk.
fn quiet(share: &str, other: &str) -> String {
    format!(
        r#"
name = "quiet"
summary = "one appends a little"
[machine]
memory = "2 GiB"
cpus = 2
[machine.devices.data]
size = "20 GB"
write_bandwidth = "60 MB/s"
{share}
[machine.devices.other]
size = "20 GB"
write_bandwidth = "60 MB/s"
[machine.mounts."/data"]
type = "ext4"
device = "data"
in_use = true
[machine.mounts."/other"]
type = "ext4"
device = "other"
in_use = true
[machine.cgroups.box]
{other}
[workload]
duration = "25s"
[workload.tasks.one]
setup = [{{ write = {{ file = "/other/one", block = "1 MiB", total = "8 MB" }} }}, {{ fsync = {{ file = "/other/one" }} }}]
steps = [
  {{ sleep = {{ for = "1s" }} }},
  {{ write = {{ file = "/data/one", block = "100 kB", rate = "1 MB/s", order = "append" }} }},
]
"#
    )
}

#[test]
fn a_machine_begins_with_the_shares_of_its_scenario() {
    let near = |got: f64, expect: f64| (got - expect).abs() < 1e-4;
    let wb = |bdi: &str, ino| (bdi.to_owned(), ino);
    // Without shares, the setup has left all of the threshold to the other disk.
    let (shares, _) = begun(&quiet("", ""), "6.12");
    assert!(near(shares[&wb("254:0", 1)], 0.0) && shares[&wb("254:16", 1)] > 0.99, "{shares:?}");
    let (shares, _) = begun(&quiet("share = \"300/400\"", ""), "6.12");
    assert!(near(shares[&wb("254:0", 1)], 0.75) && near(shares[&wb("254:16", 1)], 0.0), "{shares:?}");
    // A btrfs has a bdi of its own, and the device's share.
    let btrfs = quiet("share = \"300/400\"", "share = { data = \"1/8\" }");
    let btrfs = btrfs.replace("type = \"ext4\"\ndevice = \"data\"", "type = \"btrfs\"\ndevice = \"data\"");
    let (shares, _) = begun(&btrfs, "6.12");
    assert!(near(shares[&wb("btrfs-1", 1)], 0.75) && near(shares[&wb("254:0", 1)], 0.0), "{shares:?}");
    let of_box: Vec<&String> =
        shares.iter().filter(|((_, ino), share)| *ino != 1 && near(**share, 0.125)).map(|((bdi, _), _)| bdi).collect();
    assert_eq!(of_box, ["btrfs-1"], "{shares:?}");
    // A half is 3 pages of 6 beside none of 3.
    let (shares, _) = begun(&quiet("share = \"1/2\"", "share = { other = \"0/3\" }"), "6.12");
    assert!(near(shares[&wb("254:0", 1)], 0.5), "{shares:?}");
    // The cgroup has an eighth of all, and of its own domain the rest of its pages.
    let of_box = "share = { data = \"1/8\", other = \"1/8\" }";
    let (shares, _) = begun(&quiet("share = \"3/4\"", of_box), "6.12");
    let of_box: Vec<f64> = shares.iter().filter(|((_, ino), _)| *ino != 1).map(|(_, share)| *share).collect();
    assert!(
        near(shares[&wb("254:0", 1)], 0.75) && of_box.len() == 2 && of_box.iter().all(|share| near(*share, 0.125)),
        "{shares:?}"
    );
}

#[test]
fn a_disk_without_a_share_is_flushed_at_the_first_wake_up_and_one_with_a_share_is_not() {
    let at_7_s = |share: &str| {
        let (_, dirty) = begun(&quiet(&format!("share = \"{share}\""), ""), "6.12");
        dirty[18]
    };
    let (without, with) = (at_7_s("0/1"), at_7_s("1/1"));
    assert!(with > 1_200 && without < with - 800, "{without} and {with} pages are dirty");
}
