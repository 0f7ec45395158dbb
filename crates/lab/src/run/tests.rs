// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the lab refuses of a scenario, and what it brings for one.

use super::*;
use floodline_scenario::ScenarioFile;

fn scenario(machine: &str) -> Scenario {
    let text = format!(
        "name = \"s\"\nsummary = \"s\"\n[workload.tasks.t]\nsteps = [\"sync\"]\n[machine]\nmemory = \"1 GiB\"\n{machine}"
    );
    ScenarioFile::parse(&text).unwrap().variants.into_values().next().unwrap()
}

#[test]
fn a_task_in_a_cgroup_with_children_is_refused_on_version_2() {
    let check = |mode: &str, cgroup: &str| {
        let text = format!(
            "name = \"s\"\nsummary = \"s\"\n[workload.tasks.t]\ncgroup = \"{cgroup}\"\nsteps = [\"sync\"]\n[machine]\n\
             cgroup_mode = \"{mode}\"\nmemory = \"1 GiB\"\n[machine.cgroups.hub]\n[machine.cgroups.\"hub/nb\"]"
        );
        let scenario = ScenarioFile::parse(&text).unwrap().variants.into_values().next().unwrap();
        check(&scenario).map_err(|error| error.to_string())
    };
    assert_eq!(
        check("v2", "hub"),
        Err("workload.tasks.t.cgroup: \"hub\" enables controllers for its children, and a cgroup of version 2 that does so \
             cannot hold processes: declare a cgroup below it for the task, such as \"hub/t\""
            .to_owned())
    );
    assert_eq!([check("v1", "hub"), check("v2", "hub/nb")], [Ok(()), Ok(())]);
}

/// A kernel whose image and configuration are in a folder.
fn kernel(version: &str, dir: &Path) -> Kernel {
    Kernel {
        release: "test-amd64".to_owned(),
        version: version.parse().unwrap(),
        image: dir.join("vmlinuz-test-amd64"),
        modules: None,
        origin: "test".to_owned(),
    }
}

#[test]
fn a_limit_of_version_1_is_refused_on_a_kernel_without_it() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("config-test-amd64"), "# CONFIG_MEMCG_V1 is not set\n").unwrap();
    let check = |mode: &str, version: &str, limit: &str| {
        let scenario = scenario(&format!("cgroup_mode = \"{mode}\"\n[machine.cgroups.box]\n{limit}"));
        check_kernel(&scenario, &kernel(version, dir.path())).map_err(|error| error.to_string())
    };
    let limit = "memory_max = \"100 MiB\"";
    let told = "machine.cgroups.box.memory_max: kernel test-amd64 has no limits of version 1 of the memory controller \
                (CONFIG_MEMCG_V1 is not set): use a kernel before 6.11, or one that was built with it";
    assert_eq!(check("v1", "6.12.43", limit), Err(told.to_owned()));
    assert_eq!(
        [check("v2", "6.12.43", limit), check("v1", "6.1.192", limit), check("v1", "6.12.43", "")],
        [Ok(()), Ok(()), Ok(())]
    );
}

#[test]
fn what_the_lab_cannot_do_is_refused_by_name() {
    let check = |machine: &str, expect: &str| {
        let scenario = scenario(machine);
        let answer = check(&scenario).and_then(|()| check_kernel(&scenario, &kernel("6.1.192", Path::new("/none"))));
        let answer = answer.map_err(|error| error.to_string());
        assert_eq!(answer.err().unwrap_or_default(), expect);
    };
    check("hz = 250\n[machine.devices.d]\nsize = \"1 GiB\"\nwrite_iops = \"30 IO/s\"\nlatency = \"5ms\"", "");
    check(
        "[machine.devices.d]\nsize = \"1 GiB\"\nlatency = \"1500us\"",
        "machine.devices.d.latency: expected whole milliseconds, at least 1 ms: a guest cannot delay requests more finely",
    );
    let cached = |cache: &str| {
        let disk = "[machine.devices.d]\nsize = \"4 GiB\"\nwrite_bandwidth = \"500 MB/s\"\n";
        format!("{disk}write_cache = {{ {cache} }}")
    };
    check(&cached("size = \"2 GB\", drain = \"30 MB/s\""), "");
    check(
        &cached("size = \"1200 MB\", drain = \"30 MB/s\""),
        "machine.devices.d.write_cache: the lab needs a write_bandwidth above the drain, and a size of 2 or more whole \
         seconds at that bandwidth: it imitates the cache by a bucket of QEMU's throttle",
    );
    check(
        &cached("size = \"2 GB\", drain = \"30 MB/s\", volatile = true"),
        "the lab does not support machine.devices.d.write_cache.volatile",
    );
    let array = "[machine.devices.a]\nsize = \"1 GiB\"\n[machine.devices.b]\nsize = \"1 GiB\"\n\
                 [machine.devices.d]\nbacking = { raid1 = { members = [\"a\", \"b\"] } }\n";
    check(array, "");
    check(
        "[machine.devices.d]\nsize = \"1 GiB\"\nbdi = { max_bytes = \"1 GiB\" }",
        "machine.devices.d.bdi.max_bytes: kernel 6.1.192 does not have this knob; it was added in 6.2",
    );
    let others = "[machine.devices.e]\nsize = \"1 GiB\"\n[machine.devices.f]\nsize = \"1 GiB\"\n[machine.devices.s]\n\
                  backing = { striped = { members = [\"e\", \"f\"] } }\n[machine.devices.c]\n";
    check(&format!("{array}{others}backing = {{ crypt = {{ member = \"s\" }} }}"), "");
    check(
        &format!("{array}{others}backing = {{ crypt = {{ member = \"s\", cpu_bandwidth = \"1 GB/s\" }} }}"),
        "the lab does not support machine.devices.c.backing.crypt.cpu_bandwidth",
    );
    check(
        &format!("{array}write_iops = \"30 IO/s\""),
        "machine.devices.d: the lab can limit disks only; set the limit on the disk below it",
    );
}

#[test]
fn a_write_cache_fills_at_the_limit_of_writes_and_leaks_at_its_drain() {
    let machine = "[machine.devices.d]\nsize = \"4 GiB\"\nwrite_bandwidth = \"500 MB/s\"\n\
                   write_cache = { size = \"2 GB\", drain = \"30 MB/s\" }";
    let (disks, _) = disks(&scenario(machine), "/run".as_ref());
    let bucket = WriteBucket { bandwidth: 500_000_000, seconds: 4 };
    assert_eq!((disks[0].throttle.write_bytes, disks[0].throttle.write_bucket), (30_000_000, Some(bucket)));
}

#[test]
fn more_than_the_guest_carries_is_refused_with_what_it_does() {
    let check = |machine: &str, tasks: &str, expect: &str| {
        let mut scenario = scenario(machine);
        if let Some(task) = scenario.workload.tasks.get_mut("t") {
            task.instances = tasks.parse().ok();
        }
        let answer = check(&scenario).map_err(|error| error.to_string()).err().unwrap_or_default();
        assert_eq!(answer, expect);
    };
    check("", "448", "");
    check(
        "",
        "100000",
        "workload.tasks: 100000 tasks; a guest of 1 GiB supports at most 448 (2 MiB for a task, 24 KiB for a cgroup): lower \
         instances or raise machine.memory",
    );
    check("[machine.cgroups.\"c{i}\"]\ninstances = 2000", "1", "");
    check(
        "cpus = 4\n[machine.cgroups.\"c{i}\"]\ninstances = 65535",
        "1",
        "machine.cgroups: 65535 cgroups; a guest of 1 GiB supports at most 19114 (2 MiB for a task, 48 KiB for a cgroup): lower \
         instances or raise machine.memory",
    );
}

#[test]
fn a_loop_device_brings_what_makes_it() {
    let with_loop = scenario(
        "[machine.devices.d]\nsize = \"1 GiB\"\n[machine.mounts.\"/d\"]\ntype = \"ext4\"\ndevice = \"d\"\n\
         [machine.devices.l]\nsize = \"400 MiB\"\nbacking = { loop = { file = \"/d/image\" } }\n\
         [machine.mounts.\"/l\"]\ntype = \"xfs\"\ndevice = \"l\"\n",
    );
    let programs: Vec<String> = wanted_programs(&with_loop).into_iter().collect();
    assert_eq!(programs, ["losetup", "mkfs.ext4", "mkfs.xfs"]);
    let modules = wanted_modules(&with_loop, false);
    assert!(["ext4", "xfs", "loop"].iter().all(|module| modules.contains(module)), "{modules:?}");
    assert_eq!(own_disks(&with_loop).count(), 1);
}

#[test]
fn a_stack_brings_the_modules_that_make_it() {
    let check = |backing: &str, expect: &[&str]| {
        let disk = |name: char| format!("[machine.devices.{name}]\nsize = \"1 GiB\"\n");
        let disks: String = "abcd".chars().map(disk).collect();
        let stack = scenario(&format!("{disks}[machine.devices.top]\nbacking = {{ {backing} }}\n"));
        let modules = wanted_modules(&stack, false);
        assert!(expect.iter().all(|module| modules.contains(module)), "{backing}: {modules:?}");
    };
    check("raid0 = { members = [\"a\", \"b\"] }", &["raid0"]);
    check("raid10 = { members = [\"a\", \"b\", \"c\", \"d\"] }", &["raid10"]);
    check("linear = { members = [\"a\", \"b\"] }", &["dm_mod"]);
    check("striped = { members = [\"a\", \"b\"] }", &["dm_mod"]);
    check("crypt = { member = \"a\" }", &["dm_crypt", "xts", "aes_generic"]);
}
