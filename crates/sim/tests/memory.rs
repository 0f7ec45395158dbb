// SPDX-License-Identifier: MIT OR Apache-2.0
//! File pages that memory keeps: effects of reads, the order of reclaim, the speed of copies, and the use by
//! others. Limits of cgroups are in stacks.rs.

mod machine;

use floodline_analysis::run::Run;
use machine::{figure, run_of, scenario};

const MACHINE: &str = r#"
name = "memory"
summary = "files that are read"
[machine]
memory = "1 GiB"
cpus = 2
[machine.devices.disk]
size = "10 GiB"
[machine.mounts."/data"]
type = "ext4"
device = "disk"
[workload.tasks.reader]
setup = [
  { write = { file = "/data/a", block = "1 MiB", total = "300 MiB" } },
  { write = { file = "/data/b", block = "1 MiB", total = "600 MiB" } },
  "sync",
  "drop_caches",
]
"#;

fn run(steps: &str, kernel: &str) -> Run {
    run_of(&scenario(&format!("{MACHINE}steps = [{steps}, {{ sleep = {{ for = \"3s\" }} }}]\n")), kernel, |_| true)
}

fn read(file: &str, block: &str) -> String {
    format!("{{ read = {{ file = \"/data/{file}\", block = \"{block}\" }} }}")
}

/// MiB of file pages that are active at the end.
fn active_after(steps: &str, kernel: &str) -> u64 {
    run(steps, kernel).window.host.last.nr_active_file.expect("known").0 >> 8
}

#[test]
fn what_is_read_once_stays_inactive_and_what_is_read_twice_is_active() {
    for kernel in ["4.18", "6.12"] {
        for block in ["4 KiB", "6 KiB", "1 MiB"] {
            let once = read("a", block);
            assert_eq!(active_after(&once, kernel), 0, "{block} on {kernel}, once");
            let twice = active_after(&format!("{once}, {once}"), kernel);
            assert!((295..=300).contains(&twice), "{block} on {kernel}, twice: {twice} MiB");
        }
    }
}

#[test]
fn a_file_that_is_read_on_and_on_drives_out_the_one_that_was_read_before() {
    let (a, b) = (read("a", "1 MiB"), read("b", "1 MiB"));
    let read_bytes = |steps: &str| {
        let run = run(steps, "6.12");
        assert_eq!(figure(&run, "reader.failures_count"), 0.0);
        // From the start of the machine: figures begin with the first sample.
        run.window.disks.values().map(|disk| disk.last.read.expect("known").0).sum::<u64>() >> 20
    };
    let before = read_bytes(&format!("{a}, {b}"));
    assert!((900..=910).contains(&before), "{before} MiB");
    // Memory has room for one and a half of them: the older file is evicted, and the second read finds all of its own.
    assert_eq!(read_bytes(&format!("{a}, {b}, {b}")), before);
    // Pages read twice stay while other pages are read once.
    let kept = read_bytes(&format!("{a}, {a}, {b}, {b}, {a}"));
    assert!(kept <= before + 310, "{kept} MiB");
}

/// MB/s of programs that write at once on a machine with the given keys.
fn writing(keys: &str, writers: u32, mib: u32) -> f64 {
    let text = format!(
        "name = \"copies\"\nsummary = \"programs that write at once\"\n[machine]\nmemory = \"8 GiB\"\ncpus = 8\n{keys}\n\
         sysctl.vm = {{ dirty_ratio = 90, dirty_background_ratio = 80 }}\n[machine.devices.disk]\nsize = \"40 GiB\"\n\
         [machine.mounts.\"/data\"]\ntype = \"xfs\"\ndevice = \"disk\"\n[workload.tasks.writer]\ninstances = {writers}\n\
         steps = [{{ write = {{ file = \"/data/{{j}}\", block = \"1 MiB\", total = \"{mib} MiB\" }} }}]\n"
    );
    figure(&run_of(&scenario(&text), "6.12", |_| true), "writer.write.bytes_per_second") / 1e6
}

#[test]
fn those_who_copy_at_once_share_what_memory_can_do() {
    let alone = writing("copy_bandwidth = { write = \"1 GB/s\", total = \"2 GB/s\" }", 1, 512);
    assert!((900.0..1001.0).contains(&alone), "{alone} MB/s");
    let together = writing("copy_bandwidth = { write = \"1 GB/s\", total = \"2 GB/s\" }", 6, 256);
    assert!((1600.0..2300.0).contains(&together), "{together} MB/s");
    let apart = writing("copy_bandwidth = { write = \"1 GB/s\" }", 6, 256);
    assert!(apart > 5000.0, "{apart} MB/s");
}

#[test]
fn pages_beyond_the_first_node_are_copied_slower() {
    let (near, far) = (writing("nodes = 2", 1, 3072), writing("nodes = 2\nmemory_used = \"4 GiB\"", 1, 2048));
    assert!((0.6..0.7).contains(&(far / near)), "{far} of {near} MB/s");
    let one = writing("memory_used = \"4 GiB\"", 1, 2048);
    assert!((0.99..1.01).contains(&(one / near)), "{one} of {near} MB/s");
}

#[test]
fn what_others_use_is_no_memory_to_be_made_dirty() {
    let threshold = |keys: &str| {
        let text = MACHINE.replace("cpus = 2", &format!("cpus = 2\n{keys}"));
        let run = run_of(&scenario(&format!("{text}steps = [{{ sleep = {{ for = \"3s\" }} }}]\n")), "6.12", |_| true);
        run.window.host.first.nr_dirty_threshold.expect("known").0
    };
    let (all, half) = (threshold(""), threshold("memory_used = \"512 MiB\""));
    assert!(half * 100 < all * 55, "{half} of {all} pages");
}

#[test]
fn who_evicts_for_a_limit_of_memory_pays_with_its_own_cpu_time() {
    let finished = |limit: &str| {
        let task = "[workload.tasks.reader]";
        let cgroup = format!("[machine.cgroups.box]\nmemory_max = \"{limit}\"\n{task}\ncgroup = \"box\"");
        let text = MACHINE.replace(task, &cgroup);
        let run = run_of(&scenario(&format!("{text}steps = [{}]\n", read("b", "1 MiB"))), "6.12", |_| true);
        figure(&run, "reader.finished_seconds") * 1e3
    };
    // 536 MiB in pages of 250 ns each take 34 ms, a part of it while the disk reads ahead.
    let cost = finished("64 MiB") - finished("900 MiB");
    assert!((10.0..40.0).contains(&cost), "{cost} ms");
}

#[test]
fn memory_that_a_program_takes_is_timed() {
    let text = r#"
name = "anon"
summary = "dirty pages where memory is wanted"
[machine]
memory = "512 MiB"
cpus = 2
sysctl.vm = { dirty_ratio = 80, dirty_background_ratio = 70 }
[machine.devices.disk]
size = "4 GiB"
write_bandwidth = "20 MB/s"
[machine.mounts."/data"]
type = "ext4"
device = "disk"
[workload.tasks.t]
steps = [
  { anon = { size = "16 MiB" } },
  { write = { file = "/data/a", block = "1 MiB", total = "240 MiB" } },
  { anon = { size = "300 MiB" } },
]
"#;
    let run = run_of(&scenario(text), "6.12", |_| true);
    assert_eq!(figure(&run, "t.anon.count"), 2.0);
    let longest = figure(&run, "t.anon.max_seconds");
    assert!(longest > 1.0, "pages have to be written before they can go: {longest} s");
}

#[test]
fn a_store_into_a_page_without_data_has_the_folio_that_readahead_makes() {
    let dirtied = |fs: &str, kernel: &str, make: &str| {
        let text = format!(
            r#"
name = "mapped"
summary = "stores into a mapping of a file without data"
[machine]
memory = "1 GiB"
cpus = 2
[machine.devices.disk]
size = "4 GiB"
[machine.mounts."/data"]
type = "{fs}"
device = "disk"
[workload.tasks.t]
setup = [{{ {make} = {{ file = "/data/m", size = "512 MiB" }} }}]
steps = [{{ sleep = {{ for = "1s" }} }}, {{ mmap_store = {{ file = "/data/m", size = "512 MiB", pages = 50, count = 1 }} }}, {{ sleep = {{ for = "3s" }} }}]
"#
        );
        let run = run_of(&scenario(&text), kernel, |_| true);
        figure(&run, "host.dirtied_bytes") / 4096.0
    };
    // On a real 6.12, stores into a new file of fallocate on XFS made 1.8 times as many pages dirty as they touched.
    for make in ["fallocate", "truncate"] {
        let folios = dirtied("xfs", "6.12", make);
        assert!((185.0..=201.0).contains(&folios), "{make}: {folios} pages");
        for (fs, kernel) in [("ext4", "6.12"), ("xfs", "5.10")] {
            let single = dirtied(fs, kernel, make);
            assert!((48.0..=52.0).contains(&single), "{make} on {fs}, {kernel}: {single} pages");
        }
    }
}

#[test]
fn reclaim_for_a_limit_of_a_cgroup_is_no_reclaim_of_the_machine() {
    let scanned = |machine: &str, cgroup: &str| {
        let task = "[workload.tasks.reader]";
        let text = MACHINE.replace("cpus = 2", &format!("cpus = 2\n{machine}"));
        let text = text.replace(task, &format!("[machine.cgroups.box]\n{cgroup}\n{task}\ncgroup = \"box\""));
        let run = run_of(&scenario(&format!("{text}steps = [{}]\n", read("b", "1 MiB"))), "6.12", |_| true);
        let growth = &run.window.host.growth;
        let cached = run.window.host.last.nr_inactive_file.expect("known").0 >> 8;
        (growth.pgscan_direct.expect("known").0 > 0, growth.allocstall.expect("known").0 > 0, cached < 500)
    };
    assert_eq!(scanned("", ""), (false, false, false));
    assert_eq!(scanned("", "memory_max = \"64 MiB\""), (false, false, true), "for the limit");
    assert_eq!(scanned("memory_used = \"600 MiB\"", ""), (true, true, true), "of the machine");
}
