// SPDX-License-Identifier: MIT OR Apache-2.0
//! Good files, bad files, and files that people do not write.

use super::*;
use floodline_record::units::Nanos;
use floodline_record::version::KernelVersion;

mod honoured;
mod named;
mod programs;
mod random;

const HEAD: &str = "name = \"t\"\nsummary = \"a test\"\n";
const MACHINE: &str = "[machine]\nmemory = \"4 GiB\"\n[machine.devices.data]\nsize = \"1 GiB\"\n[machine.mounts.\"/data\"]\ntype = \"ext4\"\ndevice = \"data\"\n";
const WORKLOAD: &str = "[workload]\nduration = \"10s\"\n[workload.tasks.w]\nsteps = [\"sync\"]\n";

fn parsed(text: &str) -> ScenarioFile {
    ScenarioFile::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The problems of a text, each as `LINE:COLUMN: KEY: MESSAGE -> HINT`.
fn problems(text: &str) -> Vec<String> {
    let told = |problem: &Problem| match &problem.hint {
        Some(hint) => format!("{problem} -> {hint}"),
        None => problem.to_string(),
    };
    ScenarioFile::parse(text).err().map_or_else(Vec::new, |error| error.problems.iter().map(told).collect())
}

/// A whole file with one more piece of machine, from line 10 on.
fn with_machine(piece: &str) -> String {
    format!("{HEAD}{MACHINE}{piece}\n{WORKLOAD}")
}

/// A whole file with one task, its first step on line 12.
fn with_step(step: &str) -> String {
    format!("{HEAD}{MACHINE}[workload.tasks.w]\nsteps = [\n{step}\n]\n")
}

#[test]
fn what_is_no_toml_or_lacks_keys_has_its_line() {
    let check = |text: &str, expect: &str| assert_eq!(problems(text), [expect], "{text}");
    check("", "1:1: the key name is missing");
    check("name = \"t\"\nsummary = \n", "2:11: string values must be quoted, expected literal string");
    check("a = 1\na = 2\n", "2:1: duplicate key");
    check("variants = 3", "1:12: variants: variants are tables: [variants.incident]");
    check(&format!("{HEAD}[machine]\n{WORKLOAD}"), "3:1: machine: the key memory is missing");
    check(&"x".repeat(TEXT_MAX + 1), &format!("1:1: {} bytes; a scenario has at most {TEXT_MAX}", TEXT_MAX + 1));
}

#[test]
fn an_unknown_key_is_refused_with_the_one_that_was_meant() {
    let check = |piece: &str, expect: &str| assert_eq!(problems(&with_machine(piece)), [expect], "{piece}");
    check(
        "[machine.devices.b]\nsize = \"1 GiB\"\nwrite-bandwidth = \"1 MB/s\"",
        "12:1: machine.devices.b.write-bandwidth: unknown key \"write-bandwidth\" -> did you mean write_bandwidth?",
    );
    check(
        "[machine.mounts.\"/x\"]\ntype = \"ext3\"\ndevice = \"data\"",
        "11:8: machine.mounts.\"/x\".type: unknown word \"ext3\" -> did you mean ext4?",
    );
    check(
        "[machine.cgroups.a]\nflavour = 1",
        "11:1: machine.cgroups.a.flavour: unknown key \"flavour\" -> known here: instances, memory_max, memory_high, \
         memory_low, memory_min, io_max, io_weight, subtree_control, remove_after, share",
    );
}

#[test]
fn a_quantity_that_is_none_says_how_one_is_written() {
    let check = |piece: &str, expect: &str| assert_eq!(problems(&with_machine(piece)), [expect], "{piece}");
    check(
        "[machine.devices.b]\nsize = \"1 G\"",
        "11:8: machine.devices.b.size: \"1 G\" is not a size -> write \"128 MiB\", \"4 KiB\" or \"100 MB\"",
    );
    check(
        "[machine.devices.b]\nsize = 4096",
        "11:8: machine.devices.b.size: invalid type: integer `4096`, expected a size -> write \"128 MiB\", \"4 KiB\" or \
         \"100 MB\"",
    );
    check(
        "[machine.devices.b]\nsize = \"1 GiB\"\nwrite_iops = \"30/s\"",
        "12:14: machine.devices.b.write_iops: \"30/s\" is not a rate of requests -> write \"30 IO/s\"",
    );
}

#[test]
fn what_the_kernel_would_refuse_is_refused_with_its_rule() {
    let check = |piece: &str, expect: &str| assert_eq!(problems(&with_machine(piece)), [expect], "{piece}");
    check(
        "[machine.sysctl.vm]\ndirty_ratio = 101",
        "11:15: machine.sysctl.vm.dirty_ratio: the kernel refuses 101 here (EINVAL): it takes 0 to 100",
    );
    check(
        "[machine.sysctl]\nvm.dirty_bytes = \"1 B\"",
        "11:18: machine.sysctl.vm.dirty_bytes: the kernel refuses 1 here (EINVAL): it takes at least 8192",
    );
    check(
        "[machine.sysctl]\nvm = { dirty_bytes = \"1 MiB\", dirty_ratio = 5 }",
        "11:22: machine.sysctl.vm.dirty_bytes: vm.dirty_ratio and vm.dirty_bytes cannot both be set: the kernel zeroes the \
         one that was written first -> in a variant: unset = [\"machine.sysctl.vm.dirty_bytes\"]",
    );
    check(
        "[machine.cgroups.\"c{i}\"]\ninstances = 10000000",
        "10:10: machine.cgroups: 10000000 cgroups; a kernel has at most 65535 memory cgroups (16-bit ids)",
    );
    check(
        "[machine.cgroups.c]\nio_weight = 0",
        "11:13: machine.cgroups.c.io_weight: the kernel takes 1 to 10000 (ERANGE)",
    );
    check(
        "[machine.devices.b]\nsize = \"1 GiB\"\nwrite_bandwidth = \"0 B/s\"",
        "12:19: machine.devices.b.write_bandwidth: nothing would ever complete -> leave it out for no limit",
    );
    check(
        "[machine.cgroups.\"/\"]\nsubtree_control = [\"memory\"]\n[machine.cgroups.\"a/b\"]\nio_weight = 50",
        "12:1: machine.cgroups.\"a/b\": it has limits of io, which \"/\" does not enable for its children",
    );
}

#[test]
fn references_must_lead_somewhere() {
    let check = |piece: &str, expect: &str| assert_eq!(problems(&with_machine(piece)), [expect], "{piece}");
    check(
        "[machine.mounts.\"/x\"]\ntype = \"xfs\"\ndevice = \"date\"",
        "12:10: machine.mounts.\"/x\".device: no device is called \"date\" -> did you mean \"data\"?",
    );
    check(
        "[machine.devices.b]\nsize = \"1 GiB\"\nseek = \"9ms\"",
        "12:8: machine.devices.b.seek: a disk that does not turn has no arm -> write rotational = true",
    );
    check(
        "[machine.devices.r]\nbacking = { raid1 = { members = [\"data\", \"nosuchthing\"] } }",
        "11:11: machine.devices.r.backing: no device is called \"nosuchthing\" -> known: data, r",
    );
    check(
        "[machine.devices.r]\nbacking = { raid1 = { members = [\"data\", \"data\"] } }",
        "11:11: machine.devices.r.backing: member \"data\" is named twice",
    );
    check(
        "[machine.devices.other]\nsize = \"1 GiB\"\n[machine.devices.third]\nsize = \"1 GiB\"\n[machine.devices.r]\n\
         size = \"1 GiB\"\nbacking = { raid1 = { members = [\"third\", \"other\"] } }",
        "15:8: machine.devices.r.size: it takes no size: that follows from its members -> remove size, or in a variant write \
         unset = [\"machine.devices.r.size\"]",
    );
    check(
        "[machine.devices.l]\nsize = \"1 MiB\"\nbacking = { loop = { file = \"/elsewhere/image\" } }",
        "12:11: machine.devices.l.backing: \"/elsewhere/image\" is no path on another mount of this machine",
    );
    check(
        "[machine.mounts.\"/o\"]\ntype = \"overlay\"",
        "10:1: machine.mounts.\"/o\": an overlay needs its directories -> write overlay = { lower = \"/data/lower\", \
         upper = \"/data/upper\", work = \"/data/work\" }",
    );
    check("[machine.cgroups.\"c{i}\"]", "10:1: machine.cgroups.\"c{i}\": {i} without instances -> write instances = 8");
    check(
        "[machine.cgroups.c]\ninstances = 3",
        "10:1: machine.cgroups.c: it has copies and its path has no {i} to tell them apart",
    );
}

#[test]
fn steps_that_make_no_sense_are_named_by_their_place() {
    let check = |step: &str, expect: &str| assert_eq!(problems(&with_step(step)), [expect], "{step}");
    check(
        "{ write = { file = \"/data/x\" } }",
        "12:11: workload.tasks.w.steps[0].write: it never ends, and the workload has no duration -> give it total, count \
         or for",
    );
    check(
        "{ write = { file = \"/date/x\", count = 1 } }",
        "12:11: workload.tasks.w.steps[0].write: \"/date/x\" is on no filesystem of this machine -> mounted: /data",
    );
    check(
        "\"sync\", { repeat = { times = 2, steps = [{ fsync = { file = \"x\" } }] } }",
        "12:52: workload.tasks.w.steps[1].repeat.steps[0].fsync: \"x\" is not an absolute path",
    );
    check(
        "{ wrte = { file = \"/data/x\" } }",
        "12:3: workload.tasks.w.steps[0].wrte: unknown word \"wrte\" -> did you mean write?",
    );
    check(
        "{ mmap_store = { file = \"/data/x\", size = \"8 KiB\", pages = 3, count = 1 } }",
        "12:16: workload.tasks.w.steps[0].mmap_store: 3 distinct pages cannot be touched in a mapping of 2",
    );
    check(
        "{ wait_for = { task = \"v\" } }",
        "12:14: workload.tasks.w.steps[0].wait_for: no task is called \"v\" -> known: w",
    );
    check(
        "{ wait_for = { task = \"w\" } }",
        "10:1: workload.tasks.w: it waits for itself: tasks wait for one another in a circle",
    );
    check(
        "{ umount = { point = \"/dat{n}\", count = 2 } }",
        "12:12: workload.tasks.w.steps[0].umount: no mount point is called \"/dat{n}\" -> known: /data",
    );
    check(
        "{ remove_cgroup = { cgroup = \"a\" } }",
        "12:19: workload.tasks.w.steps[0].remove_cgroup: no cgroup is called \"a\" -> this scenario has no cgroup",
    );
    check(
        "{ create_files = { file = \"/data/x\", files = 3 } }",
        "12:18: workload.tasks.w.steps[0].create_files: several files and no {n} in \"/data/x\" -> write \"/data/x{n}\"",
    );
    check(
        "{ write = { file = \"/data/x\", count = 1, sync = { call = \"msync\", after = 1 } } }",
        "12:11: workload.tasks.w.steps[0].write: msync is for mappings -> write call = \"fdatasync\"",
    );
    check(
        "{ write = { file = \"/data/x\", total = \"28 MB\", direct = true } }",
        "12:11: workload.tasks.w.steps[0].write: direct I/O needs a total of whole sectors (512 bytes) -> use total = \
         \"28000256 B\"",
    );
    check(
        "{ read = { file = \"/data/x\", total = \"1000 B\", direct = true } }",
        "12:10: workload.tasks.w.steps[0].read: direct I/O needs a total of whole sectors (512 bytes) -> use total = \
         \"1024 B\"",
    );
}

#[test]
fn the_number_of_a_cgroup_does_not_tell_copies_of_a_task_apart() {
    let copiers = |file: &str, more: &str| {
        let write = format!("{{ write = {{ file = \"/data/{file}\", total = \"1 MiB\" }} }}");
        problems(&format!("{HEAD}{MACHINE}{more}instances = 2\nsteps = [{write}]\n"))
    };
    let alone = "[workload.tasks.w]\n";
    let in_copies = "[machine.cgroups.\"c{i}\"]\ninstances = 3\n[workload.tasks.w]\ncgroup = \"c{i}\"\n";
    for (file, more) in [("a", alone), ("{j}", alone), ("{i}-{j}", alone), ("{i}", in_copies)] {
        assert!(copiers(file, more).is_empty(), "{file} {more}: {:?}", copiers(file, more));
    }
    assert_eq!(
        copiers("{i}", alone),
        [
            "12:20: workload.tasks.w.steps[0].write: {i} in \"/data/{i}\" is the number of the cgroup's copy: the same in \
          every copy of the task -> write {j}, the number of the task's copy"
        ]
    );
}

/// What a write is throttled by is found once, as it begins: its process stays where it is until it ends.
#[test]
fn no_branch_moves_the_process_that_others_write_in() {
    let branches = |step: &str| {
        let write = "{ write = { file = \"/data/a\", block = \"1 MiB\", total = \"1 MiB\" } }";
        let cgroup = "[machine.cgroups.c]\n";
        let steps = format!("[workload.tasks.w]\nsteps = [{{ parallel = {{ branches = [[{write}], [{step}]] }} }}]\n");
        problems(&format!("{HEAD}{MACHINE}{cgroup}{steps}"))
    };
    let moves = "{ move_to = { cgroup = \"c\" } }";
    assert!(branches("\"sync\"").is_empty());
    for step in [moves, &format!("{{ repeat = {{ times = 2, steps = [{moves}] }} }}")] {
        let [problem] = &branches(step)[..] else { panic!("{step}: {:?}", branches(step)) };
        assert!(problem.ends_with("a branch cannot move: its process would move with it"), "{problem}");
    }
}

#[test]
fn all_problems_are_told_at_once_and_each_once() {
    let text = format!(
        "{HEAD}{MACHINE}[machine.cgroups.c]\nio_weight = 0\n{WORKLOAD}[variants.a]\n[variants.b]\nmachine.hz = 17\n[variants.C]\n"
    );
    assert_eq!(
        problems(&text),
        [
            "11:13: machine.cgroups.c.io_weight: the kernel takes 1 to 10000 (ERANGE)",
            "18:14: machine.hz: kernels are built with 100, 250, 300 or 1000 ticks per second (in variant b)",
            "19:11: variants.C: names of variants are kebab case",
        ]
    );
}

#[test]
fn keys_words_and_quantities_that_are_wrong_are_all_told_at_once() {
    let text = format!(
        "{HEAD}{MACHINE}colour = 1\n[machine.devices.b]\nsize = \"1 GB/s\"\n[workload]\nduration = \"10 parsecs\"\n\
         [workload.tasks.w]\nsteps = [\n{{ wirte = {{ file = \"/data/a\" }} }},\n\
         {{ write = {{ file = \"/data/a\", blok = \"4 KiB\" }} }},\n\"sync\",\n{{ sleep = {{ }} }},\n]\n"
    );
    let found = problems(&text);
    let told = [
        "colour",
        "machine.devices.b.size",
        "workload.duration",
        "steps[0].wirte",
        "steps[1].write.blok",
        "steps[3].sleep",
    ];
    assert_eq!(found.len(), told.len(), "{found:#?}");
    for (problem, told) in found.iter().zip(told) {
        assert!(problem.contains(told), "{told}: {problem}");
    }
}

#[test]
fn wrong_keys_values_and_names_are_all_told_at_once() {
    let text = "name = \"t\"\nsummary = \"t\"\n[machine]\nmemory = \"4 GiB\"\ncpus = 0\nfoo = 3\n[machine.devices.a]\n\
                size = \"1 GiB\"\nwrite_bandwith = \"3 MB/s\"\n[machine.mounts.\"/a\"]\ntype = \"zfs\"\ndevice = \"b\"\n\
                [machine.mounts.\"/c\"]\ntype = \"xfs\"\ndevice = \"b\"\n[workload]\nduration = \"10\"\n[workload.tasks.t]\n\
                cgroup = \"nope\"\nsteps = [{ write = { file = \"/z/x\", rate = \"0.00000000001/s\" } }, { wrote = { file = \"/a/y\" } }, \
                { fsync = { file = \"/a/y\" } }, { fsync = { file = \"/z/x\" } }, { wait_for = { task = \"u\" } }]\n";
    let found = problems(text);
    let told = [
        "machine.cpus: a kernel has 1 to",
        "machine.foo: unknown key",
        "machine.devices.a.write_bandwith: unknown key",
        "machine.mounts.\"/a\".type: unknown word \"zfs\"",
        "machine.mounts.\"/c\".device: no device is called \"b\"",
        "workload.duration: ",
        "workload.tasks.t.cgroup: no cgroup is called \"nope\"",
        "steps[0].write.rate: \"0.00000000001/s\" has too many decimal places",
        "steps[1].wrote: unknown word",
        "steps[3].fsync: \"/z/x\" is on no filesystem of this machine",
        "steps[4].wait_for: no task is called \"u\"",
    ];
    assert_eq!(found.len(), told.len(), "{found:#?}");
    for (problem, told) in found.iter().zip(told) {
        assert!(problem.contains(told), "{told}: {problem}");
    }
    // A mount was left out: what is mounted is not listed.
    assert!(!found.iter().any(|problem| problem.contains("mounted: ")), "{found:#?}");
}

#[test]
fn a_problem_hides_no_other_that_has_a_word_or_a_name_of_it() {
    let check = |text: &str, expect: &[&str]| {
        let found = problems(text);
        assert_eq!(found.len(), expect.len(), "{text}\n{found:#?}");
        assert!(found.iter().zip(expect).all(|(problem, told)| problem.contains(told)), "{found:#?}");
    };
    // The size of a device, and that of another one and of a file.
    let size = MACHINE.replace("1 GiB", "1 G") + "[machine.devices.b]\n";
    let random = "[workload.tasks.w]\nsteps = [{ write = { file = \"/data/a\", order = \"random\", count = 1 } }]\n";
    let told =
        ["devices.data.size: ", "devices.b: it has no size of at least 1 MiB", "write: random writes need a size"];
    check(&format!("{HEAD}{size}{random}"), &told);
    // A setting of a device, and what names the device.
    let members = "[machine.devices.a]\nsize = \"1 GiB\"\nlatency = \"soon\"\n[machine.devices.m]\nbacking = \
                   { raid1 = { members = [\"a\", \"a\"] } }";
    check(&with_machine(members), &["devices.a.latency: ", "member \"a\" is named twice"]);
    // A mount that is wrong, and a path below it that is wrong by itself.
    let mount = MACHINE.replace("device = \"data\"\n", "");
    let step = "[workload.tasks.w]\nsteps = [{ fsync = { file = \"/data/../a\" } }]\n";
    check(&format!("{HEAD}{mount}{step}"), &["ext4 needs a device", "has a part \".\" or \"..\""]);
}

#[test]
fn what_only_lacks_a_key_that_is_wrong_is_not_told() {
    let check = |text: &str, expect: &str| {
        let found = problems(text);
        assert!(found.len() == 1 && found[0].contains(expect), "{text}\n{found:#?}");
    };
    let endless = "[workload.tasks.w]\nsteps = [{ write = { file = \"/data/a\" } }]\n";
    let program = "[workload.tasks.p.program]\npackage = \"redis-server\"\ncommand = [\"redis-server\"]\n";
    check(&format!("{HEAD}{MACHINE}[workload]\nduration = \"10\"\n{endless}{program}"), "workload.duration: ");
    let arm = "[machine.devices.a]\nsize = \"1 GiB\"\nrotational = 1\nseek = \"8ms\"";
    check(&with_machine(arm), "devices.a.rotational: ");
    let group = |instances: &str| format!("{HEAD}{MACHINE}[machine.cgroups.\"box{{i}}\"]\n{instances}{endless}");
    let member = "cgroup = \"box1\"\n[workload]\nduration = \"10s\"\n";
    check(&(group("instances = \"3\"\n") + member), "instances: ");
    check(&(group("") + member), "{i} without instances");
}

#[test]
fn a_problem_of_some_variants_names_them() {
    let memory = "machine.memory_used = \"4 GiB\"\n";
    let variant =
        |name: &str, names: &[&str]| format!("[variants.{name}]\n{}", if names.contains(&name) { memory } else { "" });
    let variants = |names: &[&str]| ["a", "b", "c", "d", "e"].map(|name| variant(name, names)).concat();
    let of = |names: &[&str]| problems(&format!("{HEAD}{MACHINE}{WORKLOAD}{}", variants(names)));
    let said = "machine.memory_used: must be at most nine tenths of machine.memory";
    assert!(of(&["b"])[0].ends_with(&format!("{said} (in variant b)")), "{:?}", of(&["b"]));
    let machine = MACHINE.replace("memory = ", "memory_used = \"4 GiB\"\nmemory = ");
    let in_base = problems(&format!("{HEAD}{machine}{WORKLOAD}[variants.a]\n[variants.b]\n"));
    assert!(in_base.len() == 1 && in_base[0].ends_with(said), "{in_base:?}");
}

#[test]
fn variants_are_laid_over_the_base() {
    let file = parsed(&format!(
        "{HEAD}{MACHINE}[machine.sysctl.vm]\ndirty_bytes = \"100 MiB\"\nswappiness = 1\n{WORKLOAD}\n\
         [workload.tasks.noise]\npreset.logger = {{ file = \"/data/log\", lines = \"1/s\" }}\n\
         [variants.a]\n\
         [variants.b]\nunset = [\"machine.sysctl.vm.dirty_bytes\", 'workload.tasks.\"w\"']\n\
         machine.sysctl.vm.dirty_ratio = 10\nmachine.mounts.\"/data\".options = [\"noatime\"]\n\
         workload.tasks.noise.preset.mail = {{ dir = \"/data/mail\", messages = \"1/s\" }}\n\
         [variants.c]\nworkload.tasks.noise.preset.logger.lines = \"7/s\"\n"
    ));
    let numbers = |variant: &str, name: &str| file.variants[variant].machine.sysctl.number(name);
    assert_eq!(numbers("a", "vm.dirty_bytes"), Some(100 << 20));
    assert_eq!((numbers("b", "vm.dirty_bytes"), numbers("b", "vm.dirty_ratio")), (None, Some(10)));
    assert_eq!(numbers("b", "vm.swappiness"), Some(1));
    let b = &file.variants["b"];
    assert_eq!(b.machine.mounts["/data"].options, ["noatime"]);
    assert_eq!(b.machine.mounts["/data"].fs_type, FsType::Ext4);
    assert!(!b.workload.tasks.contains_key("w"));
    assert!(matches!(b.workload.tasks["noise"].preset, Some(Preset::Mail(_))));
    let Some(Preset::Logger(logger)) = &file.variants["c"].workload.tasks["noise"].preset else { panic!("a logger") };
    assert_eq!((logger.file.as_str(), logger.lines.to_string().as_str()), ("/data/log", "7/s"));
    let wrong = format!("{HEAD}{MACHINE}{WORKLOAD}[variants.a]\nunset = [\"machine.swap\", 3, \"a = 1\\nb\"]\n");
    assert_eq!(problems(&wrong).len(), 3, "{:?}", problems(&wrong));
}

#[test]
fn cgroups_are_made_in_the_order_of_their_tasks_whatever_their_names() {
    let paths = |first: &str, second: &str| -> Vec<String> {
        let file = parsed(&format!(
            "{HEAD}{MACHINE}[machine.cgroups.\"{first}/app\"]\n[machine.cgroups.\"{second}\"]\n[machine.cgroups.idle]\n\
             [workload]\nduration = \"1s\"\n[workload.tasks.a]\ncgroup = \"{first}/app\"\nsteps = [\"sync\"]\n\
             [workload.tasks.b]\ncgroup = \"{second}\"\nsteps = [\"sync\"]\n"
        ));
        file.variants[DEFAULT_VARIANT].cgroup_copies().into_iter().map(|copy| copy.path).collect()
    };
    assert_eq!(paths("x", "y"), ["x", "y", "idle", "x/app"]);
    assert_eq!(paths("y", "x"), ["y", "x", "idle", "y/app"]);
}

#[test]
fn copies_are_written_out_with_their_numbers() {
    let file = parsed(&format!(
        "{HEAD}{MACHINE}[machine.cgroups.\"pods/p{{i}}\"]\ninstances = 3\n[machine.cgroups.\"pods/p{{i}}/app\"]\n\
         [workload]\nduration = \"1s\"\n[workload.tasks.w]\ncgroup = \"pods/p{{i}}/app\"\ninstances = 2\n\
         start = \"1s\"\nstagger = \"10ms\"\nsteps = [{{ repeat = {{ times = 1, steps = [\
         {{ fsync = {{ file = \"/data/{{i}}-{{j}}\" }} }}] }} }}]\n"
    ));
    let scenario = &file.variants[DEFAULT_VARIANT];
    let cgroups: Vec<_> = scenario.cgroup_copies().into_iter().map(|copy| copy.path).collect();
    assert_eq!(cgroups, ["pods", "pods/p0", "pods/p1", "pods/p2", "pods/p0/app", "pods/p1/app", "pods/p2/app"]);
    let tasks = scenario.task_copies();
    let shown: Vec<_> = tasks.iter().map(|task| format!("{} {}", task.label(), task.cgroup)).collect();
    assert_eq!(
        shown,
        [
            "w-0 pods/p0/app",
            "w-1 pods/p0/app",
            "w-2 pods/p1/app",
            "w-3 pods/p1/app",
            "w-4 pods/p2/app",
            "w-5 pods/p2/app"
        ]
    );
    assert_eq!(tasks[5].start, Nanos(1_050_000_000));
    let Step::Repeat(repeat) = &tasks[5].steps[0] else { panic!("a repeat") };
    assert_eq!(repeat.steps, [Step::Fsync(OnFile { file: "/data/2-1".into() })]);
}

#[test]
fn expectations_follow_the_kernel() {
    let text = format!(
        "{HEAD}{MACHINE}{WORKLOAD}[expect]\nfound = [\"x\"]\nfigures.a = {{ max = \"2 MB/s\" }}\n\
         kernels.\">=6.8\".found = []\nkernels.\"6.12\" = {{ found = [\"y\"], figures.a = {{ max = \"300ms\" }} }}\n\
         kernels.\"6.12.43\".quiet_from = \"info\"\n"
    );
    let expect = &parsed(&text).variants[DEFAULT_VARIANT].expect;
    let on = |major, minor, patch| expect.on(KernelVersion::new(major, minor, patch));
    let found = |expect: &Expect| expect.found.clone().unwrap_or_default().join(" ");
    assert_eq!(
        (found(&on(6, 1, 0)), found(&on(6, 8, 0)), found(&on(6, 12, 1))),
        ("x".into(), String::new(), "y".into())
    );
    assert_eq!(on(6, 1, 0).figures["a"].max, Some(Level(2e6)));
    assert_eq!(on(6, 12, 43).figures["a"].max, Some(Level(0.3)));
    assert_eq!(on(6, 12, 43).quiet_from, Some(floodline_record::severity::Severity::Info));
    assert_eq!(on(6, 12, 44).quiet_from, None);
    assert!(on(6, 1, 0).figures["a"].holds(2e6) && !on(6, 1, 0).figures["a"].holds(2.1e6));
    let wrong = |line: &str| problems(&format!("{HEAD}{MACHINE}{WORKLOAD}[expect]\n{line}\n"));
    assert_eq!(wrong("kernels.\"new\".found = []").len(), 1);
    assert_eq!(
        wrong("figures.a = { min = 2, max = 1 }"),
        ["15:13: expect.figures.a: min is above max: nothing is within"]
    );
    assert_eq!(wrong("figures.a = { min = nan }").len(), 1);
}

#[test]
fn quantities_are_exact() {
    let size = |text: &str| text.parse::<ByteSize>().ok().map(ByteSize::bytes);
    assert_eq!(size("128 MiB"), Some(128 << 20));
    assert_eq!(size("1.5 KiB"), Some(1536));
    assert_eq!(size("100MB"), Some(100_000_000));
    for wrong in
        ["1.3 B", "1 M", "-1 B", "", " ", "MiB", "1e3 B", "1..5 KiB", "1. KiB", ".5 KiB", "9999999 TiB", "1 mib"]
    {
        assert_eq!(size(wrong), None, "{wrong}");
    }
    let nanos = |text: &str| text.parse::<Time>().ok().map(Time::nanos);
    assert_eq!(
        (nanos("200ms"), nanos("0.5 s"), nanos("2min")),
        (Some(200_000_000), Some(500_000_000), Some(120_000_000_000))
    );
    let seventh: Frequency = "7/s".parse().unwrap();
    assert_eq!(seventh.due(7_000_000), Nanos(1_000_000 * Nanos::SECOND.0));
    assert_eq!(seventh.due(1), Nanos(142_857_142));
    for wrong in ["0/s", "+1/s", "1/d", "/s", "1/"] {
        assert!(wrong.parse::<Frequency>().is_err(), "{wrong}");
    }
    let pace: Pace = "10 MB/s".parse().unwrap();
    assert_eq!(pace.due(100, "64 KiB".parse().unwrap()), Nanos(655_360_000));
    assert!("0 B/s".parse::<Pace>().is_err());
}

#[test]
fn presets_write_themselves_out() {
    let program = |preset: &str| -> Vec<&'static str> {
        let text = format!("{HEAD}{MACHINE}[workload]\nduration = \"1s\"\n[workload.tasks.w.preset]\n{preset}\n");
        let task = &parsed(&text).variants[DEFAULT_VARIANT].workload.tasks["w"];
        let Program { setup, steps } = task.expand();
        setup.iter().chain(&steps).map(Step::verb).collect()
    };
    let cold = ["write", "fsync", "close", "drop_caches"];
    let check = |preset: &str, is_cold: bool, expect: &[&str]| {
        let cold: &[&str] = if is_cold { &cold } else { &[] };
        assert_eq!(program(preset), [cold, expect].concat(), "{preset}");
    };
    check("journald_like = { file = \"/data/j\", messages = \"10/s\" }", true, &["mmap_store"]);
    check("redis_aof = { file = \"/data/a\", commands = \"100/s\" }", false, &["write"]);
    check(
        "database = { data = \"/data/t\", log = \"/data/l\", size = \"64 MiB\", reads = \"9/s\", commits = \"9/s\", flushes = \"9/s\" }",
        true,
        &["parallel"],
    );
    check("logger = { file = \"/data/l\", lines = \"2/min\" }", false, &["write"]);
    check("mail = { dir = \"/data/m\", messages = \"1/s\" }", false, &["create_files"]);
    check(
        "copy = { from = \"/data/a\", to = \"/data/b\", size = \"1 MiB\", fsync = true }",
        true,
        &["repeat", "fsync"],
    );
    check("untar = { dir = \"/data/u\", files = 100, size = \"4 KiB\" }", false, &["create_files"]);
    check(
        "pipeline = { files = [\"/data/a\", \"/data/b\", \"/data/c\"], size = \"1 MiB\", compute = \"1s\" }",
        true,
        &["read", "burn", "write", "close", "close", "anon", "read", "burn", "write", "close", "close", "anon"],
    );
    let wrong = format!(
        "{HEAD}{MACHINE}{WORKLOAD}[workload.tasks.p.preset]\nmail = {{ dir = \"/nowhere\", messages = \"1/s\" }}\n"
    );
    assert_eq!(
        problems(&wrong),
        ["14:1: workload.tasks.p.preset: \"/nowhere/{n}\" is on no filesystem of this machine -> mounted: /data"]
    );
}
