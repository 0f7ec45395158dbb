// SPDX-License-Identifier: MIT OR Apache-2.0
//! What tasks and steps name on the machine: members of groups, profiles, mounts.

use super::*;

#[test]
fn a_member_of_a_group_of_cgroups_is_named_by_tasks_and_steps() {
    let text = |cgroup: &str, step: &str| {
        format!(
            "{HEAD}{MACHINE}[machine.cgroups.\"box{{i}}\"]\ninstances = 3\n[workload]\nduration = \"10s\"\n\
             [workload.tasks.w]\ncgroup = \"{cgroup}\"\nsteps = [{step}]\n"
        )
    };
    let one = &parsed(&text("box2", "\"sync\"")).variants["default"];
    assert_eq!(one.number_of_tasks(), 1);
    let copies = one.task_copies();
    assert_eq!((copies.len(), copies[0].cgroup.as_str()), (1, "box2"));
    // The number of the member is filled in; the copies of the task are numbered as ever.
    let sync = "{ fsync = { file = \"/data/{i}-{j}\" } }";
    let of_member =
        parsed(&text("box2\"\ninstances = \"2", sync).replace("= \"2\"", "= 2")).variants["default"].task_copies();
    let named: Vec<String> = of_member.iter().map(|copy| format!("{} {:?}", copy.copy, copy.steps)).collect();
    let are_of_member = named.iter().zip(["/data/2-0", "/data/2-1"]).all(|(named, file)| named.contains(file));
    assert!(named.len() == 2 && are_of_member && named[1].starts_with("1 "), "{named:?}");
    assert_eq!(parsed(&text("box{i}", "\"sync\"")).variants["default"].number_of_tasks(), 3);
    for step in ["{ move_to = { cgroup = \"box1\" } }", "{ remove_cgroup = { cgroup = \"box0\" } }"] {
        assert_eq!(problems(&text("/", step)), [""; 0], "{step}");
    }
    let set = "{ set_limits = { cgroup = \"box1\", limits = { memory_max = \"1 GiB\" } } }";
    assert_eq!(problems(&text("/", set)), [""; 0]);
    assert!(problems(&text("box3", "\"sync\""))[0].contains("no cgroup is called \"box3\""));
    let outside = problems(&text("/", "{ move_to = { cgroup = \"box3\" } }"));
    assert!(outside.len() == 1 && outside[0].contains("no cgroup is called \"box3\""), "{outside:?}");
}

#[test]
fn a_member_of_a_group_is_named_as_it_is_filled_in() {
    let group = |path: &str| format!("[machine.cgroups.\"{path}\"]\n");
    let machine =
        format!("{}instances = 12\n{}{}instances = 12\n", group("a{i}"), group("a{i}/b{i}0"), group("{i}{i}.slice"));
    let text =
        format!("{HEAD}{MACHINE}{machine}[workload]\nduration = \"10s\"\n[workload.tasks.w]\nsteps = [\"sync\"]\n");
    let machine = &parsed(&text).variants["default"].machine;
    let members = [
        ("a0", Some("a{i}")),
        ("a11", Some("a{i}")),
        ("a{i}", Some("a{i}")),
        ("a7/b70", Some("a{i}/b{i}0")),
        ("a10/b100", Some("a{i}/b{i}0")),
        ("33.slice", Some("{i}{i}.slice")),
        ("1010.slice", Some("{i}{i}.slice")),
    ];
    let others =
        ["a", "a12", "a01", "a00", "a+1", "a-1", "a1 ", "a١", "b1", "a99999999999", "a7/b7", "a7/b80", "a7/b700"];
    let slices = ["3.slice", "34.slice", "333.slice", "1212.slice", ".slice"];
    for (path, key) in members.into_iter().chain(others.into_iter().chain(slices).map(|path| (path, None))) {
        assert_eq!(machine.cgroup_key(path), key, "{path}");
    }
}

#[test]
fn a_profile_has_a_size() {
    let text = with_machine(
        "[machine.devices.b]\nprofile = \"nvme-boot\"\n[machine.mounts.\"/b\"]\ntype = \"xfs\"\ndevice = \"b\"",
    );
    assert!(parsed(&text).variants["default"].machine.devices["b"].size.is_some());
}

#[test]
fn only_an_unmount_is_lazy() {
    let step = |verb: &str| with_step(&format!("{{ {verb} = {{ point = \"/data\", lazy = true }} }}"));
    assert_eq!(problems(&step("umount")), [""; 0]);
    assert!(problems(&step("mount"))[0].contains("lazy is for umount"));
}

#[test]
fn a_depth_is_refused_where_it_means_nothing() {
    let check = |step: &str, expect: &str| {
        let text = with_step(step).replace("[workload.tasks", "[workload]\nduration = \"10s\"\n[workload.tasks");
        let problems = problems(&text);
        match expect {
            "" => assert_eq!(problems, [""; 0], "{step}"),
            _ => assert!(problems.len() == 1 && problems[0].contains(expect), "{step}: {problems:?}"),
        }
    };
    check("{ write = { file = \"/data/a\", direct = true, depth = 32 } }", "");
    check("{ read = { file = \"/data/a\", order = \"random\", depth = 32 } }", "");
    check("{ write = { file = \"/data/a\", depth = 0 } }", "depth is 1 to 256");
    check("{ write = { file = \"/data/a\", depth = 257 } }", "depth is 1 to 256");
    check("{ write = { file = \"/data/a\", order = \"append\", depth = 2 } }", "takes no depth");
    check("{ read = { file = \"/data/a\", depth = 2 } }", "not supported for buffered sequential reads");
    check(
        "{ read = { file = \"/data/a{n}\", files = 2, direct = true, depth = 2 } }",
        "cannot be combined with files or keep",
    );
}

#[test]
fn a_write_cache_drains_slower_than_it_fills() {
    let check = |keys: &str, expect: &[&str]| {
        let problems = problems(&with_machine(&format!("[machine.devices.b]\nsize = \"1 GiB\"\n{keys}")));
        assert_eq!(problems.len(), expect.len(), "{keys}: {problems:?}");
        assert!(problems.iter().zip(expect).all(|(problem, expect)| problem.contains(expect)), "{problems:?}");
    };
    let cache = |drain: &str| format!("write_cache = {{ size = \"1 GB\", drain = \"{drain}\" }}");
    check(&cache("100 MB/s"), &[]);
    check(&format!("{}\nwrite_bandwidth = \"100 MB/s\"", cache("100 MB/s")), &[]);
    check(&format!("{}\nwrite_bandwidth = \"99 MB/s\"", cache("100 MB/s")), &["at most write_bandwidth"]);
    let together = |drain: &str| format!("{}\nbandwidth = \"99 MB/s\"", cache(drain));
    check(&together("99 MB/s"), &[]);
    check(&together("100 MB/s"), &["at most bandwidth"]);
    check(&cache("0 MB/s"), &["above 0"]);
    check(&format!("{}\nrotational = true", cache("10 MB/s")), &["not supported on a rotating disk"]);
}

#[test]
fn shares_add_up_to_all_pages_at_most_and_belong_to_devices_with_files() {
    let check = |keys: &str, expect: &[&str]| {
        let disks = "[machine.devices.a]\nsize = \"1 GiB\"\n[machine.devices.b]\nsize = \"1 GiB\"\n";
        let problems = problems(&with_machine(&format!("{disks}{keys}")));
        assert_eq!(problems.len(), expect.len(), "{keys}: {problems:?}");
        assert!(problems.iter().zip(expect).all(|(problem, expect)| problem.contains(expect)), "{problems:?}");
    };
    let of = |a: &str, b: &str| {
        format!(
            "[machine.devices.c]\nsize = \"1 GiB\"\nshare = \"{a}\"\n[machine.cgroups.\"n{{i}}\"]\ninstances = 3\nshare.b = \"{b}\""
        )
    };
    check(&of("1/4", "10/40"), &[]);
    check(&of("11/40", "1/4"), &["add up to 41 of 40 pages -> write shares that add up to 1 at most"]);
    check(&of("1/2", "1/6"), &[]);
    check(&of("2/3", "2/16"), &["add up to 25 of 24 pages"]);
    check("[machine.cgroups.n]\nshare.d = \"1/2\"", &["no device is called \"d\""]);
    check(
        "[machine.cgroups.\"/\"]\nshare.a = \"1/2\"",
        &["the root cgroup has no shares of its own -> write machine.devices.a.share"],
    );
    let step =
        "[workload.tasks.t]\nsteps = [{ set_limits = { cgroup = \"n\", limits = { share = { a = \"1/2\" } } } }]";
    check(
        &format!("[machine.cgroups.n]\n{step}"),
        &["a share is not a limit -> write it for the cgroup of the machine"],
    );
    let mirror = "[machine.devices.m]\nbacking = { raid1 = { members = [\"a\", \"b\"] } }\nshare = \"1/2\"\n";
    check(mirror, &[]);
    check(
        &format!("{mirror}[machine.cgroups.n]\nshare.a = \"1/2\""),
        &["member of another device -> write it for the device on top"],
    );
}

#[test]
fn a_cache_and_a_growing_latency_belong_to_disks() {
    let disks = "[machine.devices.a]\nsize = \"1 GiB\"\n[machine.devices.b]\nsize = \"1 GiB\"\n";
    let backings = [
        "size = \"1 GiB\"\nbacking = { loop = { file = \"/data/image\" } }",
        "backing = { raid1 = { members = [\"a\", \"b\"] } }",
        "backing = { linear = { members = [\"a\", \"b\"] } }",
    ];
    let keys = ["queued_latency = \"1ms\"", "write_cache = { size = \"1 GB\", drain = \"10 MB/s\" }"];
    for backing in backings {
        let top = format!("{disks}[machine.devices.top]\n{backing}\n");
        assert_eq!(problems(&with_machine(&top)), [""; 0], "{backing}");
        for key in keys {
            let problems = problems(&with_machine(&format!("{top}{key}")));
            let expect = "is supported on disks only -> write it for the disks below it";
            assert!(problems.len() == 1 && problems[0].contains(expect), "{backing}, {key}: {problems:?}");
        }
    }
}

#[test]
fn a_stacked_device_has_the_members_that_its_layout_needs() {
    let disk = |name: char| format!("[machine.devices.{name}]\nsize = \"1 GiB\"\n");
    let disks: String = "abcde".chars().map(disk).collect();
    let check = |backing: &str, expect: &str| {
        let problems = problems(&with_machine(&format!("{disks}[machine.devices.top]\nbacking = {{ {backing} }}")));
        match expect {
            "" => assert_eq!(problems, [""; 0], "{backing}"),
            _ => assert!(problems.len() == 1 && problems[0].contains(expect), "{backing}: {problems:?}"),
        }
    };
    check("linear = { members = [\"a\"] }", "");
    check("striped = { members = [\"a\", \"b\", \"c\"] }", "");
    check("raid10 = { members = [\"a\", \"b\", \"c\", \"d\"], chunk = \"64 KiB\" }", "");
    check("raid0 = { members = [\"a\"] }", "raid0 needs 2 to 32 members");
    check("raid10 = { members = [\"a\", \"b\"] }", "raid10 needs 4 to 32 members");
    check("raid10 = { members = [\"a\", \"b\", \"c\", \"d\", \"e\"] }", "raid10 needs an even number of members");
    check("raid0 = { members = [\"a\", \"b\"], chunk = \"48 KiB\" }", "power of two");
    check("raid0 = { members = [\"a\", \"a\"] }", "is named twice");
}

#[test]
fn devices_are_stacked_on_each_other_but_not_on_themselves() {
    let disks = "[machine.devices.a]\nsize = \"1 GiB\"\n[machine.devices.b]\nsize = \"1 GiB\"\n";
    let crypt = |name: &str, member: &str| {
        format!("[machine.devices.{name}]\nbacking = {{ crypt = {{ member = \"{member}\" }} }}\n")
    };
    let check = |devices: &[String], expect: &[&str]| {
        let problems = problems(&with_machine(&format!("{disks}{}", devices.concat())));
        let is_told = problems.iter().zip(expect).all(|(problem, expect)| problem.contains(expect));
        assert!(problems.len() == expect.len() && is_told, "{devices:?}: {problems:?}");
    };
    let mirror = "[machine.devices.m]\nbacking = { raid1 = { members = [\"a\", \"b\"] } }\n".to_owned();
    let volume = "[machine.devices.v]\nbacking = { linear = { members = [\"c\"] } }\n".to_owned();
    check(&[crypt("c", "m"), mirror.clone(), volume.clone()], &[]);
    check(
        &[crypt("c", "m"), mirror.clone(), volume.clone(), crypt("x", "v")],
        &["devices.x.backing: it is made of itself"],
    );
    check(&[crypt("c", "c")], &["devices.c.backing: it is made of itself, or of more than 4 layers"]);
    check(&[crypt("c", "d"), crypt("d", "c")], &["devices.c.backing", "devices.d.backing"]);
    check(&[mirror.clone(), crypt("c", "a")], &["member \"a\" is also a member of another device"]);
    check(&[crypt("c", "data")], &["mounts.\"/data\".device: it is a member of another device"]);
    let slow = "[machine.devices.c]\nbacking = { crypt = { member = \"a\", cpu_bandwidth = \"0 B/s\" } }\n".to_owned();
    check(&[slow], &["cpu_bandwidth = 0"]);
    let on_loop = "[machine.devices.l]\nsize = \"1 GiB\"\nbacking = { loop = { file = \"/data/x\" } }\n".to_owned();
    check(&[on_loop, crypt("c", "l")], &["member \"l\" must not be a loop device"]);
}
