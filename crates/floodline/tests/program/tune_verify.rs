// SPDX-License-Identifier: MIT OR Apache-2.0
//! `floodline verify` on folders that imitate a host: whether a change is in force, and whether it helped.

use crate::harness::{captured, recording};
use crate::tune::{Imitated, applied};
use floodline_testkit::Fixture;
use std::path::Path;

/// Copies a folder into another one.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        match entry.file_type().expect("a type").is_dir() {
            true => copy(&entry.path(), &to.join(entry.file_name())),
            false => drop(std::fs::copy(entry.path(), to.join(entry.file_name())).expect("a file")),
        }
    }
}

/// A captured host has all that limits follow, and no kernel that would print another threshold.
#[test]
fn verify_holds_the_limit_of_each_cgroup_against_the_one_that_was_expected() {
    let host = Imitated::new();
    for part in ["proc", "sys"] {
        copy(&Path::new(&captured("6.12")).join(part), &host.path(part));
    }
    applied(&host, &[]);
    let run = host.run(&["verify"]);
    assert!(run.stdout.contains("  differs  dirty limit of the machine: expected 256 MiB, found 161 MiB\n"), "{run}");
    let vmstat = host.read("proc/vmstat").replace("nr_dirty_threshold 41222", "nr_dirty_threshold 65536");
    host.write(
        "proc/vmstat",
        &vmstat.replace("nr_dirty_background_threshold 20585", "nr_dirty_background_threshold 16384"),
    );
    let run = host.run(&["verify", "--format", "json"]);
    let verified: serde_json::Value = serde_json::from_str(&run.stdout).expect("JSON");
    let limits = verified["dirty_limits"].as_array().expect("limits");
    assert!(limits.len() > 5 && limits.iter().all(|limit| limit["is_met"] == true), "{run}");
    assert_eq!(limits[0]["cgroup"], serde_json::Value::Null);
    assert!(limits.iter().any(|limit| limit["cgroup"] == "/system.slice/mariadb.service"), "{run}");
}

#[test]
fn verify_says_what_is_in_force_and_that_short_recordings_prove_nothing() {
    let host = Imitated::new();
    assert_eq!(host.run(&["verify"]).code, 2);
    applied(&host, &["--persist"]);
    assert_eq!(host.run(&["confirm", "--same-login"]).code, 0);
    let run = host.run(&["verify"]);
    assert_eq!(run.code, 0, "{run}");
    assert!(run.stdout.contains("Is change 1 in force? Yes."), "{run}");
    assert!(run.stdout.contains("vm.dirty_bytes at boot, by systemd-sysctl: vm.dirty_bytes=268435456"), "{run}");

    let file = recording(&Fixture::healthy().seconds(30));
    let run = host.run(&["verify", "1", file.as_str(), file.as_str()]);
    assert!(run.stdout.contains("Did it help? Not enough: "), "{run}");
    let run = host.run(&["verify", file.as_str()]);
    assert_eq!(run.code, 2, "{run}");

    // Another program sets it now, and at boot.
    host.write("proc/sys/vm/dirty_bytes", "0");
    host.write("proc/sys/vm/dirty_ratio", "30");
    host.write("etc/sysctl.conf", "vm.dirty_ratio = 30");
    let run = host.run(&["verify"]);
    assert_eq!(run.code, 1, "{run}");
    assert!(
        run.stdout
            .contains("expected vm.dirty_bytes=268435456 vm.dirty_ratio=0, found vm.dirty_bytes=0 vm.dirty_ratio=30"),
        "{run}"
    );
    assert!(run.stdout.contains("sysctl --system would set vm.dirty_bytes=0, by /etc/sysctl.conf:1"), "{run}");
}
