// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random scenarios: bytes become choices, choices become the text of a scenario. Every construct of the language
//! has a chance. Fewer bytes and smaller ones make simpler scenarios, so a failing one shrinks to its cause. The
//! simulator may refuse the result; this file must not repair it.

use std::fmt::Write;

/// Choices taken from bytes; the first choice once the bytes are used up. Also decides whether to use constructs
/// that the simulator is likely to refuse.
pub(crate) struct Dice<'a>(pub(crate) &'a [u8], bool);

impl Dice<'_> {
    pub(crate) fn of(bytes: &[u8]) -> Dice<'_> {
        let mut dice = Dice(bytes, false);
        dice.1 = dice.chance(4);
        dice
    }

    fn roll(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    /// A number from 0 on.
    fn below(&mut self, end: usize) -> usize {
        usize::from(self.roll()) % end.max(1)
    }

    fn one_of<'b>(&mut self, choices: &[&'b str]) -> &'b str {
        choices.get(self.below(choices.len())).copied().unwrap_or_default()
    }

    /// Returns true with a chance of this many 16ths.
    fn chance(&mut self, sixteenths: u8) -> bool {
        self.roll() % 16 >= 16 - sixteenths
    }

    fn some(&mut self, sixteenths: u8, make: impl FnOnce(&mut Self) -> String) -> String {
        if self.chance(sixteenths) { make(self) } else { String::new() }
    }
}

/// Blocks that go with direct I/O, and sizes that hold some of them.
const BLOCKS: &[&str] = &["64 KiB", "4 KiB", "1 MiB", "8 KiB", "512 B"];
const AREAS: &[&str] = &["1 MiB", "8 MiB", "20 MiB", "3 MiB"];
const SIZES: &[&str] = &["64 KiB", "4 KiB", "1 MiB", "1 B", "100 kB", "8 MiB", "513 B", "20 MiB", "0 B"];
const TIMES: &[&str] = &["100ms", "1s", "10ms", "1ns", "30ms", "2s", "0s", "333us"];
const RATES: &[&str] = &["10 MB/s", "50/s", "1 MB/s", "1000/s", "300 kB/s", "1/s"];
const FREQUENCIES: &[&str] = &["10/s", "1/s", "200/s", "7/s"];

/// Parts of the scenario generated up to now.
#[derive(Default)]
struct Made {
    points: Vec<String>,
    cgroups: Vec<(String, bool)>,
    overlays: Vec<String>,
    tasks: usize,
}

/// The text of a scenario.
pub(crate) fn scenario(dice: &mut Dice<'_>) -> String {
    let mut made = Made::default();
    let mut text = "name = \"random\"\nsummary = \"made of random choices\"\n\n".to_owned();
    machine(dice, &mut made, &mut text);
    let duration = dice.one_of(&["2s", "500ms", "7s", "1s"]);
    let _ = writeln!(text, "\n[workload]\nduration = \"{duration}\"\nseed = {}", dice.below(100));
    text.push_str(&dice.some(3, |dice| format!("settle = \"{}\"\n", dice.one_of(TIMES))));
    made.tasks = 1 + dice.below(4);
    for number in 0..made.tasks {
        task(dice, &made, number, &mut text);
    }
    text
}

fn machine(dice: &mut Dice<'_>, made: &mut Made, text: &mut String) {
    let memory = dice.one_of(&["512 MiB", "128 MiB", "4 GiB", "256 MiB", "100 GiB", "200 MiB"]);
    let _ = writeln!(text, "[machine]\nmemory = \"{memory}\"\ncpus = {}", 1 + dice.below(9));
    text.push_str(&dice.some(5, |dice| format!("hz = {}\n", dice.one_of(&["250", "100", "300", "1000"]))));
    text.push_str(&dice.some(2, |_| "copy_bandwidth = { write = \"500 MB/s\", read = \"1 GB/s\" }\n".to_owned()));
    let is_v1 = dice.chance(3);
    if is_v1 {
        text.push_str("cgroup_mode = \"v1\"\n");
    }
    sysctls(dice, text);
    let disks = 1 + dice.below(3);
    for disk in 0..disks {
        device(dice, &format!("d{disk}"), "", text);
        mount(dice, made, &format!("/m{disk}"), &format!("d{disk}"), text);
    }
    if dice.chance(3) {
        device(dice, "a", "", text);
        device(dice, "b", "", text);
        let kind = dice.one_of(&["raid1", "raid1", "raid0", "striped", "linear"]);
        device(dice, "md", &format!("backing = {{ {kind} = {{ members = [\"a\", \"b\"] }} }}\n"), text);
        mount(dice, made, "/md", "md", text);
    }
    if dice.chance(4) {
        let direct = dice.one_of(&["false", "true"]);
        let backing = format!("backing = {{ loop = {{ file = \"/m0/image\", direct_io = {direct} }} }}\n");
        device(dice, "loop", &backing, text);
        mount(dice, made, "/loop", "loop", text);
    }
    if dice.chance(4) {
        let _ = writeln!(text, "[machine.mounts.\"/ram\"]\ntype = \"tmpfs\"");
        made.points.push("/ram".to_owned());
    }
    if dice.chance(5) {
        let (copies, point) = if dice.chance(8) { ("instances = 3\n", "/o{i}") } else { ("", "/o") };
        let number = if copies.is_empty() { "" } else { "{i}" };
        let _ = writeln!(
            text,
            "[machine.mounts.\"{point}\"]\ntype = \"overlay\"\n{copies}overlay = {{ lower = \"/m0/l\", upper = \"/m0/u{number}\", work = \"/m0/w{number}\" }}"
        );
        text.push_str(&dice.some(4, |_| "options = [\"volatile\"]\n".to_owned()));
        made.overlays.push(point.replace("{i}", "{n}"));
        made.points.push(point.replace("{i}", "1"));
    }
    for number in 0..dice.below(4) {
        cgroup(dice, made, number, is_v1, text);
    }
}

fn sysctls(dice: &mut Dice<'_>, text: &mut String) {
    let vm = [
        dice.one_of(&[
            "",
            "dirty_ratio = 5",
            "dirty_bytes = \"1 MiB\"",
            "dirty_bytes = 8192",
            "dirty_ratio = 0",
            "dirty_ratio = 100",
        ]),
        dice.one_of(&[
            "",
            "dirty_background_ratio = 1",
            "dirty_background_bytes = \"256 KiB\"",
            "dirty_background_bytes = 1",
            "dirty_background_ratio = 100",
        ]),
        dice.one_of(&[
            "",
            "dirty_expire_centisecs = 100",
            "dirty_expire_centisecs = 0",
            "dirty_expire_centisecs = 2147483647",
        ]),
        dice.one_of(&[
            "",
            "dirty_writeback_centisecs = 50",
            "dirty_writeback_centisecs = 0",
            "dirty_writeback_centisecs = 1",
        ]),
        dice.one_of(&["", "", "laptop_mode = 5", "dirtytime_expire_seconds = 1"]),
    ];
    let vm: Vec<&str> = vm.into_iter().filter(|setting| !setting.is_empty()).collect();
    if !vm.is_empty() {
        let _ = writeln!(text, "sysctl.vm = {{ {} }}", vm.join(", "));
    }
}

fn device(dice: &mut Dice<'_>, name: &str, backing: &str, text: &mut String) {
    let _ = writeln!(text, "[machine.devices.{name}]\n{backing}");
    if !backing.contains("raid1") {
        let _ = writeln!(text, "size = \"{}\"", dice.one_of(&["1 GiB", "64 MiB", "1 TiB", "1 MiB"]));
    }
    if backing.is_empty() {
        let rate =
            |dice: &mut Dice<'_>| dice.one_of(&["20 MB/s", "200 MB/s", "1 MB/s", "3 GB/s", "50 kB/s"]).to_owned();
        text.push_str(&dice.some(11, |dice| format!("write_bandwidth = \"{}\"\n", rate(dice))));
        text.push_str(&dice.some(6, |dice| format!("read_bandwidth = \"{}\"\n", rate(dice))));
        text.push_str(
            &dice.some(4, |dice| format!("write_iops = \"{}\"\n", dice.one_of(&["100 IO/s", "5 IO/s", "10 kIO/s"]))),
        );
        text.push_str(&dice.some(2, |_| "read_iops = \"100 IO/s\"\n".to_owned()));
        text.push_str(&dice.some(4, |dice| format!("latency = \"{}\"\n", dice.one_of(&["5ms", "20us", "0s", "1s"]))));
        text.push_str(&dice.some(3, |_| "rotational = true\n".to_owned()));
    }
    text.push_str(&dice.some(3, |dice| format!("queue.nr_requests = {}\n", dice.one_of(&["2", "1", "64", "1024"]))));
    text.push_str(&dice.some(3, |dice| format!("queue.wbt_latency = \"{}\"\n", dice.one_of(&["0s", "2ms", "75ms"]))));
    text.push_str(&dice.some(2, |_| "queue.write_cache = \"write through\"\n".to_owned()));
    text.push_str(
        &dice.some(2, |dice| {
            format!("queue.scheduler = \"{}\"\n", dice.one_of(&["mq-deadline", "bfq", "kyber", "none"]))
        }),
    );
    text.push_str(&dice.some(2, |dice| format!("bdi.max_ratio = {}\n", dice.one_of(&["50", "1", "0", "100"]))));
    text.push_str(&dice.some(1, |_| "bdi.max_bytes = \"8 MiB\"\n".to_owned()));
    text.push_str(&dice.some(2, |dice| format!("bdi.min_ratio = {}\n", dice.one_of(&["1", "0", "90"]))));
    text.push_str(&dice.some(2, |_| "bdi.strict_limit = true\n".to_owned()));
    text.push_str(&dice.some(1, |_| "bdi.max_bytes = \"1 MiB\"\n".to_owned()));
    text.push_str(&dice.some(2, |dice| format!("bdi.read_ahead = \"{}\"\n", dice.one_of(&["0 B", "4 MiB", "4 KiB"]))));
}

fn mount(dice: &mut Dice<'_>, made: &mut Made, point: &str, device: &str, text: &mut String) {
    let fs = dice.one_of(&["ext4", "xfs", "ext4", "xfs", "btrfs"]);
    let options = dice.one_of(&[
        "",
        "",
        "\"noatime\"",
        "\"lazytime\", \"strictatime\"",
        "\"volatile\"",
        "\"commit=1\"",
        "\"data=writeback\", \"noauto_da_alloc\"",
    ]);
    let _ =
        writeln!(text, "[machine.mounts.\"{point}\"]\ntype = \"{fs}\"\ndevice = \"{device}\"\noptions = [{options}]");
    made.points.push(point.to_owned());
}

fn cgroup(dice: &mut Dice<'_>, made: &mut Made, number: usize, is_v1: bool, text: &mut String) {
    let has_copies = dice.chance(6);
    let parent = if dice.chance(4) { made.cgroups.iter().find(|(_, copies)| !copies) } else { None };
    let parent = parent.map_or(String::new(), |(path, _)| format!("{path}/"));
    let path = if has_copies { format!("{parent}c{number}-{{i}}") } else { format!("{parent}c{number}") };
    let _ = writeln!(text, "[machine.cgroups.\"{path}\"]");
    if has_copies {
        let _ = writeln!(text, "instances = {}", 1 + dice.below(5));
    }
    text.push_str(&dice.some(9, |dice| {
        format!("memory_max = \"{}\"\n", dice.one_of(&["32 MiB", "8 MiB", "256 MiB", "max", "1 MiB", "0 B"]))
    }));
    if !is_v1 {
        text.push_str(&dice.some(3, |dice| format!("memory_high = \"{}\"\n", dice.one_of(&["16 MiB", "4 MiB"]))));
        text.push_str(&dice.some(3, |dice| format!("memory_low = \"{}\"\n", dice.one_of(&["4 MiB", "64 MiB", "max"]))));
        text.push_str(&dice.some(2, |dice| format!("memory_min = \"{}\"\n", dice.one_of(&["1 MiB", "100 MiB"]))));
        text.push_str(&dice.some(2, |dice| format!("io_weight = {}\n", dice.one_of(&["50", "1", "10000"]))));
        text.push_str(&dice.some(2, |_| "subtree_control = [\"memory\"]\n".to_owned()));
    }
    text.push_str(&dice.some(3, |dice| {
        format!(
            "io_max.d0 = {{ {} }}\n",
            dice.one_of(&[
                "write_bandwidth = \"1 MB/s\"",
                "write_iops = \"10 IO/s\"",
                "read_bandwidth = \"1 MB/s\"",
                "write_bandwidth = \"100 MB/s\", read_iops = \"5 IO/s\"",
            ])
        )
    }));
    text.push_str(&dice.some(1, |_| "remove_after = \"1s\"\n".to_owned()));
    made.cgroups.push((path, has_copies));
}

fn task(dice: &mut Dice<'_>, made: &Made, number: usize, text: &mut String) {
    let _ = writeln!(text, "\n[workload.tasks.t{number}]");
    let cgroup = if dice.chance(9) { made.cgroups.get(dice.below(made.cgroups.len())) } else { None };
    if let Some((path, _)) = cgroup {
        let _ = writeln!(text, "cgroup = \"{path}\"");
    }
    text.push_str(&dice.some(4, |dice| format!("instances = {}\n", 1 + dice.below(4))));
    text.push_str(&dice.some(3, |dice| format!("start = \"{}\"\n", dice.one_of(TIMES))));
    text.push_str(&dice.some(2, |dice| format!("stagger = \"{}\"\n", dice.one_of(TIMES))));
    text.push_str(&dice.some(2, |dice| format!("stall_over = \"{}\"\n", dice.one_of(TIMES))));
    if dice.chance(4) {
        let setup = steps(dice, made, 0);
        let _ = writeln!(text, "setup = {setup}");
    }
    if dice.chance(3) {
        let at = file(dice, made);
        let preset = preset(dice, &at);
        let _ = writeln!(text, "preset.{preset}");
    } else {
        let steps = steps(dice, made, 0);
        let _ = writeln!(text, "steps = {steps}");
    }
}

fn preset(dice: &mut Dice<'_>, at: &str) -> String {
    match dice.below(8) {
        0 => format!("mail = {{ dir = \"{at}\", messages = \"5/s\" }}"),
        1 => {
            format!("journald_like = {{ file = \"{at}\", messages = \"10/s\", size = \"4 MiB\", sync_every = \"1s\" }}")
        }
        2 => format!("redis_aof = {{ file = \"{at}\", commands = \"100/s\" }}"),
        3 => format!("logger = {{ file = \"{at}\", lines = \"20/s\" }}"),
        4 => format!("untar = {{ dir = \"{at}\", files = 50, size = \"4 KiB\" }}"),
        5 => format!("copy = {{ from = \"{at}\", to = \"{at}2\", size = \"2 MiB\" }}"),
        6 => {
            format!("pipeline = {{ files = [\"{at}\", \"{at}1\", \"{at}2\"], size = \"8 MiB\", compute = \"300ms\" }}")
        }
        _ => format!(
            "database = {{ data = \"{at}\", log = \"{at}log\", size = \"8 MiB\", reads = \"50/s\", commits = \"10/s\", flushes = \"20/s\" }}"
        ),
    }
}

fn file(dice: &mut Dice<'_>, made: &Made) -> String {
    let point = made.points.get(dice.below(made.points.len() + 1)).map_or("/tmp", String::as_str);
    format!("{point}/{}", dice.one_of(&["f", "g", "h{j}", "k{i}-{j}", "dir/f"]))
}

fn steps(dice: &mut Dice<'_>, made: &Made, depth: usize) -> String {
    let count = 1 + dice.below(if depth == 0 { 6 } else { 3 });
    let steps: Vec<String> = (0..count).map(|_| step(dice, made, depth)).collect();
    format!("[{}]", steps.join(", "))
}

fn ends(dice: &mut Dice<'_>) -> String {
    match dice.below(16) {
        0 => format!(", total = \"{}\"", dice.one_of(SIZES)),
        1 => format!(", count = {}", dice.below(60)),
        2 => format!(", for = \"{}\"", dice.one_of(TIMES)),
        3 => ", total = \"8 MiB\"".to_owned(),
        4 => String::new(),
        _ => ", count = 3".to_owned(),
    }
}

fn sync(dice: &mut Dice<'_>, calls: &[&str]) -> String {
    dice.some(4, |dice| {
        let when = dice.one_of(&["after = 1", "every = \"100ms\"", "after = 7", "every = \"1s\""]);
        format!(", sync = {{ call = \"{}\", {when} }}", dice.one_of(calls))
    })
}

fn step(dice: &mut Dice<'_>, made: &Made, depth: usize) -> String {
    let at = file(dice, made);
    match dice.below(30) {
        0..=3 => {
            // Now and then all constructs may be combined.
            let is_wild = dice.chance(1);
            let order = dice.one_of(&["sequential", "append", "random", "sequential"]);
            let size = match order {
                "append" if !is_wild => String::new(),
                "random" => format!(", size = \"{}\"", dice.one_of(AREAS)),
                _ => dice.some(8, |dice| format!(", size = \"{}\"", dice.one_of(AREAS))),
            };
            let rate = dice.some(8, |dice| format!(", rate = \"{}\"", dice.one_of(RATES)));
            let direct = dice.some(3, |_| ", direct = true".to_owned());
            let truncate = dice.some(2, |_| ", truncate = true".to_owned());
            let block = dice.one_of(if is_wild { SIZES } else { BLOCKS });
            let (ends, sync) = (ends(dice), sync(dice, &["fsync", "fdatasync"]));
            let depth = if order == "append" { String::new() } else { dice.some(2, |_| ", depth = 5".to_owned()) };
            let what =
                format!("order = \"{order}\", block = \"{block}\"{size}{rate}{direct}{truncate}{ends}{sync}{depth}");
            format!("{{ write = {{ file = \"{at}\", {what} }} }}")
        }
        4..=5 => {
            let order = dice.some(4, |_| ", order = \"random\"".to_owned());
            let keep = if order.is_empty() { dice.some(2, |_| ", keep = true".to_owned()) } else { String::new() };
            let direct = dice.some(2, |_| ", direct = true".to_owned());
            let block = dice.one_of(BLOCKS);
            let goes = keep.is_empty() && !(order.is_empty() && direct.is_empty());
            let depth = if goes { dice.some(5, |_| ", depth = 3".to_owned()) } else { String::new() };
            format!("{{ read = {{ file = \"{at}\", block = \"{block}\"{order}{keep}{direct}{depth}{} }} }}", ends(dice))
        }
        6..=8 => {
            let rate = dice.some(15, |dice| format!(", rate = \"{}\"", dice.one_of(FREQUENCIES)));
            let end =
                if rate.is_empty() { ", count = 20" } else { dice.one_of(&[", count = 20", ", for = \"1s\"", ""]) };
            let size = dice.one_of(&["1 MiB", "40 KiB", "4 MiB"]);
            let order = dice.some(3, |_| ", order = \"sequential\"".to_owned());
            format!(
                "{{ mmap_store = {{ file = \"{at}\", size = \"{size}\", pages = {}{order}{rate}{end}{} }} }}",
                1 + dice.below(9),
                sync(dice, &["msync", "fsync"])
            )
        }
        9 => format!("{{ fsync = {{ file = \"{at}\" }} }}"),
        10 => format!("{{ fdatasync = {{ file = \"{at}\" }} }}"),
        11 if dice.chance(4) => format!("{{ msync = {{ file = \"{at}\" }} }}"),
        12 => format!("{{ syncfs = {{ path = \"{at}\" }} }}"),
        13 => "\"sync\"".to_owned(),
        14 => {
            let fsync = dice.some(4, |_| ", fsync = true".to_owned());
            format!(
                "{{ create_files = {{ file = \"{at}-{{n}}\", files = {}, size = \"{}\"{fsync} }} }}",
                dice.below(40),
                dice.one_of(BLOCKS)
            )
        }
        15 => format!("{{ unlink = {{ file = \"{at}-{{n}}\", files = {} }} }}", 1 + dice.below(40)),
        16 => format!("{{ rename = {{ from = \"{at}\", to = \"{at}x\" }} }}"),
        17 => format!("{{ truncate = {{ file = \"{at}\", size = \"{}\" }} }}", dice.one_of(SIZES)),
        18 => format!("{{ close = {{ file = \"{at}\" }} }}"),
        19 => {
            let (verb, key) = if dice.chance(3) { ("sleep_until", "at") } else { ("sleep", "for") };
            format!("{{ {verb} = {{ {key} = \"{}\" }} }}", dice.one_of(TIMES))
        }
        20 => format!("{{ burn = {{ for = \"{}\" }} }}", dice.one_of(TIMES)),
        21 => format!("{{ anon = {{ size = \"{}\" }} }}", dice.one_of(&["1 MiB", "100 MiB", "0 B", "1 GiB"])),
        22 => "\"drop_caches\"".to_owned(),
        23 if !made.overlays.is_empty() => {
            let verb = dice.one_of(&["umount", "mount"]);
            let lazy = if verb == "umount" { dice.some(5, |_| ", lazy = true".to_owned()) } else { String::new() };
            let count = if made.overlays[0].contains("{n}") { ", count = 3" } else { "" };
            let at_once = dice.some(8, |_| ", at_once = true".to_owned());
            format!("{{ {verb} = {{ point = \"{}\"{count}{at_once}{lazy} }} }}", made.overlays[0])
        }
        24 if depth < 2 => {
            let times = dice.one_of(&[
                "times = 3",
                "for = \"500ms\"",
                "times = 2, every = \"200ms\"",
                "every = \"100ms\"",
                "times = 0",
            ]);
            format!("{{ repeat = {{ {times}, steps = {} }} }}", steps(dice, made, depth + 1))
        }
        25 if depth < 2 => {
            let branches: Vec<String> = (0..2 + dice.below(3)).map(|_| steps(dice, made, depth + 1)).collect();
            format!("{{ parallel = {{ branches = [{}] }} }}", branches.join(", "))
        }
        26 if !made.cgroups.is_empty() => cgroup_step(dice, made),
        27 => {
            let setting = dice.one_of(&[
                "dirty_ratio = 3",
                "dirty_bytes = \"2 MiB\"",
                "dirty_writeback_centisecs = 0",
                "dirty_expire_centisecs = 10",
                "dirty_background_bytes = 1",
            ]);
            format!("{{ set_sysctl = {{ vm = {{ {setting} }} }} }}")
        }
        28 => match dice.below(4) {
            0 => format!("{{ wait_for = {{ task = \"t{}\" }} }}", dice.below(made.tasks)),
            1 => "{ barrier = { name = \"b\" } }".to_owned(),
            2 => "\"exit\"".to_owned(),
            _ => "{ note = { text = \"here\" } }".to_owned(),
        },
        _ => format!("{{ {} = {{ path = \"{at}\" }} }}", dice.one_of(&["mkdir", "rmdir"])),
    }
}

fn cgroup_step(dice: &mut Dice<'_>, made: &Made) -> String {
    let known = made.cgroups.iter().find(|(_, copies)| !copies).map_or("c0", |(path, _)| path.as_str());
    let name = if dice.chance(1) { "new/child" } else { known };
    match dice.below(5) {
        4 => {
            let limit = dice.one_of(&["write_bandwidth = \"2 MB/s\"", "read_iops = \"50 IO/s\""]);
            format!("{{ set_limits = {{ cgroup = \"{name}\", limits = {{ io_max.d0 = {{ {limit} }} }} }} }}")
        }
        0 => format!("{{ create_cgroup = {{ cgroup = \"{name}\" }} }}"),
        1 => format!("{{ remove_cgroup = {{ cgroup = \"{name}\" }} }}"),
        2 => format!("{{ move_to = {{ cgroup = \"{name}\" }} }}"),
        _ => format!(
            "{{ set_limits = {{ cgroup = \"{name}\", limits = {{ {} }} }} }}",
            dice.one_of(&[
                "memory_max = \"8 MiB\"",
                "memory_max = \"1 MiB\"",
                "memory_max = \"max\"",
                "memory_low = \"2 MiB\""
            ])
        ),
    }
}
