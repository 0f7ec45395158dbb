// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is wrong with the workload of a scenario: tasks and their steps.

use super::machine::{limits, mount_of, same_part, sysctls};
use super::{Complaints, bounds, letters, wrong_with_path};
use crate::quantity::ByteSize;
use crate::step::{
    MmapStore, Mounting, Order, Parallel, Read, Repeat, Role, SetLimits, Step, SyncCall, SyncEvery, Write,
};
use crate::{Scenario, Task};
use std::collections::{BTreeMap, BTreeSet};

/// Repeats within repeats.
const DEPTH_MAX: usize = 8;
/// More threads than any guest runs.
const TASKS_MAX: u64 = 100_000;
/// Where paths may be besides the machine's mounts: the guest's own memory.
const MEMORY_PATHS: &[&str] = &["/tmp/", "/run/"];

/// Where we are.
struct At<'a> {
    scenario: &'a Scenario,
    key: Vec<String>,
    depth: usize,
    /// Within a setup: the workload's clock starts when all of them are done.
    is_setup: bool,
}

pub(super) fn check(scenario: &Scenario, complaints: &mut Complaints) {
    let workload = &scenario.workload;
    if workload.tasks.is_empty() {
        complaints.hint(&["workload"], "nothing runs", "write [workload.tasks.NAME]");
    }
    if let (Some(settle), Some(duration)) = (workload.settle, workload.duration)
        && settle >= duration
    {
        let message =
            format!("the workload is over after {duration}, before figures are taken, which is after {settle}");
        complaints.hint(&["workload", "settle"], message, "let it last longer, or lower workload.settle");
    }
    if workload.duration.is_some_and(|duration| duration.nanos() == 0) {
        complaints.add(&["workload", "duration"], "nothing runs for no time");
    }
    let all = scenario.number_of_tasks();
    if all > TASKS_MAX {
        complaints.add(&["workload", "tasks"], format!("{all} tasks; at most {TASKS_MAX}"));
    }
    for (name, task) in &workload.tasks {
        self::task(scenario, name, task, complaints);
    }
    waits(scenario, complaints);
}

fn task(scenario: &Scenario, name: &str, task: &Task, complaints: &mut Complaints) {
    let here = ["workload", "tasks", name];
    let is_word = |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
    if name.is_empty() || name.len() > 40 || !is_word(name) {
        complaints.add(&here, "a task's name is 1 to 40 letters, digits, hyphens and underscores");
    }
    if let Some(cgroup) = &task.cgroup
        && cgroup != "/"
        && !scenario.machine.cgroups.contains_key(cgroup)
        && complaints.spend(scenario.machine.cgroups.len())
        && scenario.machine.cgroup_key(cgroup).is_none()
    {
        let key = [&here[..], &["cgroup"]].concat();
        complaints.unknown(&key, "cgroup", cgroup, scenario.machine.cgroups.keys());
    }
    if task.instances == Some(0) {
        complaints.hint(&[&here[..], &["instances"]].concat(), "no copy of it", "leave the task out");
    }
    let programs = [!task.steps.is_empty(), task.preset.is_some(), task.program.is_some()];
    match programs.iter().filter(|&&is_given| is_given).count() {
        1 => {}
        0 if !task.setup.is_empty() => {}
        0 => complaints.hint(&here, "it does nothing", "give it steps, a preset or a program"),
        _ => complaints.add(&here, "steps, preset and program are three ways to say what it does: give one"),
    }
    if let Some(program) = &task.program {
        super::program::check(scenario, name, program, complaints);
    }
    // Where a preset is wrong, what it expands to tells: the complaint is about the preset.
    let expanded = task.expand();
    let places: [(&[Step], &str, bool); 2] = match task.preset {
        None => [(&task.setup, "setup", true), (&task.steps, "steps", false)],
        Some(_) => [(&expanded.setup, "preset", true), (&expanded.steps, "preset", false)],
    };
    for (list, key, is_setup) in places {
        let key: Vec<String> = here.iter().chain([&key]).map(|&part| part.to_owned()).collect();
        let at = At { scenario, key, depth: 0, is_setup };
        steps(&at, list, task, complaints);
    }
}

fn steps(at: &At<'_>, list: &[Step], task: &Task, complaints: &mut Complaints) {
    for (index, step) in list.iter().enumerate() {
        if complaints.is_full() {
            return;
        }
        let mut key = at.key.clone();
        if at.key.get(3).is_none_or(|part| part != "preset") {
            key.push(format!("[{index}]"));
            key.push(step.verb().to_owned());
        }
        let at = At { scenario: at.scenario, key, depth: at.depth, is_setup: at.is_setup };
        self::step(&at, step, task, complaints);
    }
}

fn step(at: &At<'_>, step: &Step, task: &Task, complaints: &mut Complaints) {
    let key: Vec<&str> = at.key.iter().map(String::as_str).collect();
    names(at, step, task, &key, complaints);
    if let Some(end) = missing_end(step) {
        if at.is_setup {
            complaints.hint(&key, "a setup that never ends", format!("give it {end}"));
        } else if at.scenario.workload.duration.is_none() {
            let message = "it never ends, and the workload has no duration";
            complaints.lack(&key, message, format!("give it {end}"), &["workload", "duration"]);
        }
    }
    match step {
        Step::Write(write) => self::write(write, &key, complaints),
        Step::Read(read) => self::read(read, &key, complaints),
        Step::MmapStore(store) => mmap_store(at, store, &key, complaints),
        Step::CreateFiles(create) => {
            several(&create.file, create.files.unwrap_or(2), create.files_per_dir, &key, complaints);
        }
        Step::Syslog(syslog) if !(8..=64 << 10).contains(&syslog.message.bytes()) => {
            complaints.add(&key, "a message has 8 bytes to 64 KiB");
        }
        Step::WaitFor(_) if key.get(3) == Some(&"setup") => {
            complaints.hint(&key, "no task ends before every setup is done", "use a barrier");
        }
        Step::Unlink(unlink) => several(&unlink.file, unlink.files, unlink.files_per_dir, &key, complaints),
        Step::Mount(mounting) | Step::Umount(mounting) => {
            self::mounting(at, mounting, &key, complaints);
            if mounting.lazy && matches!(step, Step::Mount(_)) {
                complaints.hint(&key, "lazy is for umount", "leave it out");
            }
        }
        Step::Repeat(repeat) => self::repeat(at, repeat, task, &key, complaints),
        Step::Parallel(parallel) => self::parallel(at, parallel, task, &key, complaints),
        Step::SetLimits(set) => set_limits(at, set, &key, complaints),
        Step::SetSysctl(settings) => sysctls(settings, &key, complaints),
        Step::MoveTo(_) if at.depth > 0 && key.contains(&"branches") => {
            complaints.add(&key, "a branch cannot move: its process would move with it");
        }
        _ => {}
    }
}

/// What a step lacks that would end it; nothing where it ends.
fn missing_end(step: &Step) -> Option<&'static str> {
    let (end, is_endless) = match step {
        Step::Write(write) => {
            ("total, count or for", write.total.is_none() && write.count.is_none() && write.lasting.is_none())
        }
        Step::Read(read) => {
            let ends_itself = read.order == Order::Sequential || read.files.is_some();
            let is_limited = read.total.is_some() || read.count.is_some() || read.lasting.is_some();
            ("total, count or for", !ends_itself && !is_limited)
        }
        Step::MmapStore(store) => ("count or for", store.count.is_none() && store.lasting.is_none()),
        Step::CreateFiles(create) => ("files or for", create.files.is_none() && create.lasting.is_none()),
        Step::Syslog(syslog) => ("count or for", syslog.count.is_none() && syslog.lasting.is_none()),
        Step::RedisSet(set) => ("count or for", set.count.is_none() && set.lasting.is_none()),
        Step::Sql(sql) => ("count or for", sql.count.is_none() && sql.lasting.is_none()),
        Step::Repeat(repeat) => ("times or for", repeat.times.is_none() && repeat.lasting.is_none()),
        _ => return None,
    };
    is_endless.then_some(end)
}

/// Paths, cgroups, mount points and tasks that a step names.
fn names(at: &At<'_>, step: &Step, task: &Task, key: &[&str], complaints: &mut Complaints) {
    // Steps within a step are visited on their own.
    if matches!(step, Step::Repeat(_) | Step::Parallel(_)) {
        return;
    }
    let machine = &at.scenario.machine;
    let allowed: &[char] = match step {
        Step::Read(_) | Step::MmapStore(_) | Step::CreateFiles(_) | Step::Unlink(_) => &['i', 'j', 'n', 'd'],
        Step::Mount(_) | Step::Umount(_) => &['i', 'j', 'n'],
        _ => &['i', 'j'],
    };
    let counts_one = at.scenario.copies_for(task) == 1 && task.instances.is_some_and(|instances| instances > 1);
    step.clone().each_text(&mut |role, text| {
        let others = match role {
            Role::Path => machine.mounts.len(),
            Role::Cgroup => machine.cgroups.len(),
            Role::Task | Role::Point => 0,
        };
        if !complaints.spend(others) {
            return;
        }
        match letters(text) {
            None => complaints.add(key, format!("{text:?} has a brace that is not {{i}}, {{j}}, {{n}} or {{d}}")),
            Some(found) => {
                if let Some(letter) = found.iter().find(|letter| !allowed.contains(letter)) {
                    complaints.add(key, format!("{{{letter}}} in {text:?} cannot be filled in here"));
                } else if counts_one && found.contains(&'i') && !found.contains(&'j') {
                    let message = format!(
                        "{{i}} in {text:?} is the number of the cgroup's copy: the same in every copy of the task"
                    );
                    complaints.hint(key, message, "write {j}, the number of the task's copy");
                }
            }
        }
        match role {
            Role::Path => {
                let is_in_memory = MEMORY_PATHS.iter().any(|prefix| text.starts_with(prefix));
                if let Some(why) = wrong_with_path(text) {
                    complaints.add(key, format!("{text:?} {why}"));
                } else if !is_in_memory && mount_of(machine, text).is_none() {
                    let points: Vec<&str> = machine.mounts.keys().map(String::as_str).collect();
                    let hint =
                        format!("mounted: {}", if points.is_empty() { "nothing".into() } else { points.join(", ") });
                    complaints.hint(key, format!("{text:?} is on no filesystem of this machine"), hint);
                }
            }
            Role::Cgroup => {
                let same = |known: &&String| {
                    let parts = |text: &str| text.split('/').count();
                    parts(known) == parts(text) && known.split('/').zip(text.split('/')).all(|(a, b)| same_part(a, b))
                };
                // A number that is filled in later may be that of any copy.
                let is_there = match text.contains('{') {
                    true => machine.cgroups.keys().any(|known| same(&known)),
                    false => text == "/" || machine.cgroup_key(text).is_some(),
                };
                if !is_there {
                    complaints.unknown(key, "cgroup", text, machine.cgroups.keys());
                }
            }
            Role::Task => {
                if !at.scenario.workload.tasks.contains_key(text.as_str()) {
                    complaints.unknown(key, "task", text, at.scenario.workload.tasks.keys());
                }
            }
            Role::Point => {}
        }
    });
}

fn write(write: &Write, key: &[&str], complaints: &mut Complaints) {
    block(write.block, write.direct, key, complaints);
    sectors(write.direct, [("total", write.total), ("size", write.size)], key, complaints);
    sync(write.sync.as_ref(), key, complaints);
    depth(write.depth, key, complaints);
    if write.depth > 1 && write.order == Order::Append {
        complaints.add(key, "order = \"append\" takes no depth");
    }
    if write.sync.as_ref().is_some_and(|sync| sync.call == SyncCall::Msync) {
        complaints.hint(key, "msync is for mappings", "write call = \"fdatasync\"");
    }
    match (write.order, write.size) {
        (Order::Random, None) => complaints.hint(key, "random writes need a size", "write size = \"64 MiB\""),
        (Order::Append, Some(_)) => complaints.add(key, "an appended file has no fixed size"),
        (_, Some(size)) if size < write.block => complaints.add(key, "the file's size is below one block"),
        _ => {}
    }
}

/// More requests under way than any queue of a device takes.
const DEPTH_OF_REQUESTS_MAX: u64 = 256;

fn depth(depth: u64, key: &[&str], complaints: &mut Complaints) {
    if depth == 0 || depth > DEPTH_OF_REQUESTS_MAX {
        complaints.add(key, format!("depth is 1 to {DEPTH_OF_REQUESTS_MAX}"));
    }
}

fn read(read: &Read, key: &[&str], complaints: &mut Complaints) {
    block(read.block, read.direct, key, complaints);
    sectors(read.direct, [("total", read.total)], key, complaints);
    depth(read.depth, key, complaints);
    if read.depth > 1 && (read.keep || read.files.is_some()) {
        complaints.add(key, "depth cannot be combined with files or keep");
    }
    if read.depth > 1 && !read.direct && read.order == Order::Sequential {
        complaints.hint(
            key,
            "depth is not supported for buffered sequential reads",
            "write direct = true or order = \"random\"",
        );
    }
    if read.order == Order::Append {
        complaints.add(key, "reading cannot append");
    }
    if let Some(files) = read.files {
        several(&read.file, files, read.files_per_dir, key, complaints);
    }
    if read.keep && read.order == Order::Random {
        complaints.add(key, "only a sequential read keeps what it read");
    }
}

fn mmap_store(at: &At<'_>, store: &MmapStore, key: &[&str], complaints: &mut Complaints) {
    sync(store.sync.as_ref(), key, complaints);
    bounds::mapping(&at.scenario.machine, store, key, complaints);
    let pages = store.size.bytes() / 4096;
    if store.order == Order::Append {
        complaints.add(key, "a store into a mapping cannot append");
    }
    if store.pages == 0 || store.pages > pages {
        complaints.add(key, format!("{} distinct pages cannot be touched in a mapping of {pages}", store.pages));
    }
    if store.store.bytes() == 0 || store.store.bytes() > 4096 {
        complaints.add(key, "a store has 1 to 4096 bytes: it stays within its page");
    }
    if let Some(files) = store.files {
        several(&store.file, files, None, key, complaints);
    }
}

fn block(block: ByteSize, direct: bool, key: &[&str], complaints: &mut Complaints) {
    if block.bytes() == 0 || block.bytes() > 1 << 30 {
        complaints.add(key, "a block has 1 byte to 1 GiB");
    }
    if direct && !block.bytes().is_multiple_of(SECTOR) {
        complaints.add(key, "direct I/O needs blocks of whole sectors (512 bytes)");
    }
}

/// Bytes of a sector. On ext4 and XFS, direct I/O of a part of a sector fails with `EINVAL`.
const SECTOR: u64 = 512;

/// Checks that a direct transfer has whole sectors. Its last block, or the last one before the end of the file, may be shorter, but must
/// have whole sectors too.
fn sectors<const N: usize>(
    direct: bool,
    amounts: [(&str, Option<ByteSize>); N],
    key: &[&str],
    complaints: &mut Complaints,
) {
    for (name, amount) in amounts {
        let Some(bytes) = amount.map(|amount| amount.bytes()).filter(|bytes| direct && !bytes.is_multiple_of(SECTOR))
        else {
            continue;
        };
        let whole = bytes.next_multiple_of(SECTOR);
        complaints.hint(
            key,
            format!("direct I/O needs a {name} of whole sectors (512 bytes)"),
            format!("use {name} = \"{whole} B\""),
        );
    }
}

fn sync(sync: Option<&SyncEvery>, key: &[&str], complaints: &mut Complaints) {
    let Some(sync) = sync else { return };
    let key = [key, &["sync"]].concat();
    match (sync.every, sync.after) {
        (None, None) => complaints.hint(&key, "it never comes", "write every = \"1s\" or after = 1"),
        (Some(_), Some(_)) => complaints.add(&key, "every and after are two ways to say when: give one"),
        (_, Some(0)) => complaints.add(&key, "after 0 blocks is never"),
        _ => {}
    }
}

/// Names of several files must differ.
fn several(file: &str, files: u64, per_dir: Option<u64>, key: &[&str], complaints: &mut Complaints) {
    let found = letters(file).unwrap_or_default();
    if files > 1 && !found.contains(&'n') {
        complaints.hint(key, format!("several files and no {{n}} in {file:?}"), format!("write \"{file}{{n}}\""));
    }
    if files == 0 || per_dir == Some(0) {
        complaints.add(key, "no file at all");
    }
    if found.contains(&'d') != per_dir.is_some() {
        complaints.add(key, "{d} and files_per_dir go together");
    }
}

fn mounting(at: &At<'_>, mounting: &Mounting, key: &[&str], complaints: &mut Complaints) {
    let machine = &at.scenario.machine;
    let same = |point: &str| {
        point.split('/').count() == mounting.point.split('/').count()
            && point.split('/').zip(mounting.point.split('/')).all(|(a, b)| same_part(a, b))
    };
    if complaints.spend(machine.mounts.len()) && !machine.mounts.keys().any(|point| same(point)) {
        complaints.unknown(key, "mount point", &mounting.point, machine.mounts.keys());
    }
    if mounting.count == 0 || mounting.count > 10_000 {
        complaints.add(key, "1 to 10000 mounts");
    }
    if mounting.count > 1 && !letters(&mounting.point).unwrap_or_default().contains(&'n') {
        complaints.add(key, "several mounts and no {n} in the path");
    }
}

fn repeat(at: &At<'_>, repeat: &Repeat, task: &Task, key: &[&str], complaints: &mut Complaints) {
    if repeat.steps.is_empty() {
        complaints.add(key, "nothing to repeat");
    } else {
        bounds::rounds(repeat, key, complaints);
    }
    if repeat.every.is_some_and(|every| every.nanos() == 0) {
        complaints.hint(key, "every 0s is as fast as it goes", "leave it out");
    }
    deeper(at, &[key, &["steps"]].concat(), &repeat.steps, task, complaints);
}

fn parallel(at: &At<'_>, parallel: &Parallel, task: &Task, key: &[&str], complaints: &mut Complaints) {
    if parallel.branches.len() < 2 || parallel.branches.len() > 256 {
        complaints.add(key, "2 to 256 branches run at once");
    }
    for (index, branch) in parallel.branches.iter().enumerate() {
        let index = format!("[{index}]");
        deeper(at, &[key, &["branches", &index]].concat(), branch, task, complaints);
    }
}

fn set_limits(at: &At<'_>, set: &SetLimits, key: &[&str], complaints: &mut Complaints) {
    limits(&at.scenario.machine, &set.limits, &[key, &["limits"]].concat(), complaints);
    if set.limits.instances.is_some() {
        complaints.add(key, "limits have no instances");
    } else if !set.limits.share.is_empty() {
        complaints.hint(key, "a share is not a limit", "write it for the cgroup of the machine");
    } else if set.limits.subtree_control.is_some() || set.limits.remove_after.is_some() {
        complaints.add(key, "only memory and io limits can be changed by a step");
    }
}

fn deeper(at: &At<'_>, key: &[&str], list: &[Step], task: &Task, complaints: &mut Complaints) {
    if at.depth >= DEPTH_MAX {
        complaints.add(key, format!("steps within steps, more than {DEPTH_MAX} deep"));
        return;
    }
    let key = key.iter().map(|&part| part.to_owned()).collect();
    steps(&At { scenario: at.scenario, key, depth: at.depth + 1, is_setup: at.is_setup }, list, task, complaints);
}

/// Tasks that wait for one another in a circle never end.
fn waits(scenario: &Scenario, complaints: &mut Complaints) {
    let tasks = &scenario.workload.tasks;
    let mut waits_for: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for (name, task) in tasks {
        let found = waits_for.entry(name).or_default();
        for step in task.setup.iter().chain(&task.steps) {
            step.clone().each_text(&mut |role, text| {
                if role == Role::Task {
                    found.insert(text.clone());
                }
            });
        }
    }
    for name in tasks.keys() {
        let mut reached = BTreeSet::new();
        let mut next: Vec<&String> = waits_for.get(name.as_str()).into_iter().flatten().collect();
        while let Some(other) = next.pop() {
            if !complaints.spend(1) {
                return;
            }
            if reached.insert(other) {
                next.extend(waits_for.get(other.as_str()).into_iter().flatten());
            }
        }
        if reached.contains(name) {
            complaints.add(&["workload", "tasks", name], "it waits for itself: tasks wait for one another in a circle");
        }
    }
}
