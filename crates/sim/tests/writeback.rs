// SPDX-License-Identifier: MIT OR Apache-2.0
//! The flusher, syncs, and inodes that change their wb: the order of the kernel's actions, each on a machine of a
//! few lines. Whole incidents are in scenarios.rs.

mod machine;

use floodline_analysis::run::Run;
use floodline_record::record::Record;
use floodline_record::units::Nanos;
use machine::{figure, run_of, scenario};

const MACHINE: &str = r#"
name = "flusher"
summary = "two disks"
[machine]
memory = "1 GiB"
cpus = 2
[machine.devices.disk]
size = "10 GiB"
write_bandwidth = "50 MB/s"
latency = "50ms"
[machine.devices.other]
size = "10 GiB"
write_bandwidth = "50 MB/s"
latency = "50ms"
[machine.mounts."/data"]
type = "xfs"
device = "disk"
options = ["lazytime", "strictatime"]
[machine.mounts."/one"]
type = "ext4"
device = "other"
options = ["noauto_da_alloc"]
in_use = true
[machine.cgroups.box]
"#;

/// A run on a kernel.
fn run(kernel: &str, more: &str) -> Run {
    seen(kernel, more, u64::MAX)
}

/// Runs on a kernel, and observes some seconds of it.
fn seen(kernel: &str, more: &str, seconds: u64) -> Run {
    let (mut begin, length) = (None, seconds.saturating_mul(Nanos::SECOND.0));
    run_of(&scenario(&format!("{MACHINE}{more}")), kernel, |record| match record {
        Record::Sample(sample) => {
            let now = sample.time.monotonic.0;
            now - *begin.get_or_insert(now) <= length
        }
        _ => true,
    })
}

#[test]
fn a_file_that_is_cut_and_written_again_is_as_old_as_before() {
    let write = "{ write = { file = \"/data/a\", block = \"64 KiB\", total = \"1 MiB\" } }";
    let cut = "{ truncate = { file = \"/data/a\", size = \"0 B\" } }";
    let task = format!(
        "steps = [{write}, {{ sleep = {{ for = \"20s\" }} }}, {cut}, {write}, {{ sleep = {{ for = \"50s\" }} }}]"
    );
    // Before 6.14 an idle disk has no share, and is written to after 5 s.
    let written_within = |seconds| {
        figure(&seen("6.14", &format!("[workload.tasks.writer]\n{task}\n"), seconds), "devices.written_bytes")
    };
    assert!(written_within(28) < 1e6, "nothing is 30 s old");
    assert!(written_within(40) >= 1e6, "the inode is, though its pages are not");
}

#[test]
fn time_stamps_are_written_when_they_are_old() {
    let left_after = |expire: u64| {
        let run = run(
            "6.12",
            &format!(
                "[machine.sysctl.vm]\ndirtytime_expire_seconds = {expire}\n[workload]\nduration = \"30s\"\n\
                 [workload.tasks.reader]\nsteps = [{{ create_files = {{ file = \"/data/{{n}}\", files = 20, size = \
                 \"4 KiB\" }} }}, \"sync\", {{ read = {{ file = \"/data/{{n}}\", files = 20 }} }}]\n\
                 [workload.tasks.writer]\nsteps = [{{ write = {{ file = \"/data/log\", block = \"4 KiB\", rate = \
                 \"1/s\" }} }}]\n"
            ),
        );
        run.window.wbs.values().filter_map(|wb| wb.last.b_dirty_time).map(|count| count.0).sum::<u64>()
    };
    // The log is among them: its data has just been written, and its stamp is as new as its latest line.
    assert_eq!((left_after(43_200), left_after(10)), (20 + 1, 1));
}

#[test]
fn a_sync_commits_all_filesystems_side_by_side() {
    let sync_of = |mounts: &[&str]| {
        let more = "[machine.devices.third]\nsize = \"10 GiB\"\nwrite_bandwidth = \"50 MB/s\"\nlatency = \"50ms\"\n\
                    [machine.mounts.\"/two\"]\ntype = \"ext4\"\ndevice = \"third\"\n";
        let made = mounts.iter().map(|mount| format!("{{ mkdir = {{ path = \"{mount}/d\" }} }}, ")).collect::<String>();
        let run = run("6.12", &format!("{more}[workload.tasks.one]\nsteps = [{made}\"sync\"]\n"));
        figure(&run, "one.sync.max_seconds")
    };
    let (one, two) = (sync_of(&["/one"]), sync_of(&["/one", "/two"]));
    assert!(one > 0.05, "a commit waits for the disk: {one} s");
    assert!(two < 1.2 * one, "{two} s of two, {one} s of one");
}

#[test]
fn an_unmount_waits_until_inodes_are_switched() {
    let umount_on = |kernel: &str, removes: bool| {
        let remove = if removes { "{ remove_cgroup = { cgroup = \"box\" } }, " } else { "" };
        let run = run(
            kernel,
            &format!(
                "[workload.tasks.box]\ncgroup = \"box\"\nsteps = [{{ create_files = {{ file = \"/data/{{n}}\", files = \
                 500, size = \"1 KiB\" }} }}]\n[workload.tasks.manager]\nsteps = [{{ wait_for = {{ task = \"box\" }} }}, \
                 \"sync\", {remove}{{ umount = {{ point = \"/data\" }} }}]\n"
            ),
        );
        figure(&run, "manager.umount.max_seconds")
    };
    for kernel in ["6.12", "7.2"] {
        let (alone, removed) = (umount_on(kernel, false), umount_on(kernel, true));
        assert!(removed > alone + 0.015, "{kernel}: {removed} s with switches, {alone} s without");
    }
    let (alone, removed) = (umount_on("5.10", false), umount_on("5.10", true));
    assert!(removed < alone + 0.005, "nothing is switched on 5.10: {removed} s, {alone} s");
}

#[test]
fn after_a_sync_of_ext4_inodes_of_a_removed_cgroup_stay_until_another_is_removed() {
    // The sync wrote the metadata without the flusher. The block device's inode is still on the list of the cgroup
    // whose files the metadata describes, and a wb with an inode to write gives none away. The flusher finds it
    // clean 30 s later.
    let umount_after = |more: &str| {
        let run = run(
            "6.12",
            &format!(
                "[machine.cgroups.late]\n[workload.tasks.box]\ncgroup = \"box\"\nsteps = [{{ create_files = {{ file = \
                 \"/one/d/{{n}}\", files = 500, size = \"1 KiB\" }} }}]\n[workload.tasks.manager]\nsteps = [{{ wait_for = \
                 {{ task = \"box\" }} }}, \"sync\", {more} {{ umount = {{ point = \"/one\" }} }}]\n"
            ),
        );
        figure(&run, "manager.umount.max_seconds")
    };
    let remove = |cgroup: &str| format!("{{ remove_cgroup = {{ cgroup = \"{cgroup}\" }} }}, ");
    let sleep = "{ sleep = { for = \"40s\" } }, ";
    let (alone, at_once) = (umount_after(""), umount_after(&remove("box")));
    assert!(at_once < alone + 0.005, "nothing is switched at once: {at_once} s, {alone} s without");
    let (alone, skipped) = (umount_after(sleep), umount_after(&format!("{}{sleep}", remove("box"))));
    assert!(skipped < alone + 0.005, "nor when the flusher has been there: {skipped} s, {alone} s without");
    let next = umount_after(&format!("{}{sleep}{}", remove("box"), remove("late")));
    assert!(next > alone + 0.015, "{next} s with switches, {alone} s without");
}

#[test]
fn a_syncfs_starts_the_commit_before_it_waits_for_data() {
    let write = "{ write = { file = \"/one/a\", block = \"1 MiB\", size = \"64 MiB\", total = \"64 MiB\" } }";
    let steps = format!(
        "{write}, \"sync\", {write}, {{ mkdir = {{ path = \"/one/d\" }} }}, {{ syncfs = {{ path = \"/one\" }} }}"
    );
    let run = run("6.12", &format!("[workload.tasks.one]\nsteps = [{steps}]\n"));
    let data = f64::from(64 << 20) / 50e6;
    // The task waited for the log, or its flush, besides the data: the rest is three times the disk's 50 ms.
    let after = figure(&run, "one.syncfs.max_seconds") - data;
    assert!((0.1..0.18).contains(&after), "{after} s after the data");
}

#[test]
fn an_fsync_of_ext4_without_a_journal_writes_the_inode_and_waits_for_no_commit() {
    let longest = |mkfs: &str, call: &str| {
        let machine = MACHINE.replace("options = [\"noauto_da_alloc\"]", mkfs);
        let write = r#"{ write = { file = "/one/a", order = "random", size = "4 KiB", count = 1 } }"#;
        // The file and its name are durable before the clock starts.
        let steps = format!(
            "setup = [{write}, {{ fsync = {{ file = \"/one/a\" }} }}]\nsteps = [{write}, {{ {call} = {{ file = \"/one/a\" }} }}]"
        );
        let text = format!("{machine}[workload.tasks.one]\n{steps}\n");
        let run = run_of(&scenario(&text), "6.12", |_| true);
        figure(&run, &format!("one.{call}.max_seconds"))
    };
    let without = "mkfs = { journal = false }";
    // Requests of 50 ms each: data and flush; with the inode's block; with log, flush, commit block and flush instead.
    let check = |mkfs: &str, call: &str, requests: f64| {
        let seconds = longest(mkfs, call);
        assert!(
            (seconds / 0.05 - requests).abs() < 0.3,
            "{call} with {mkfs:?}: {seconds} s, expected {requests} requests"
        );
    };
    check(without, "fdatasync", 2.0);
    check(without, "fsync", 3.0);
    check("", "fdatasync", 2.0);
    check("", "fsync", 5.0);
}

#[test]
fn metadata_of_ext4_without_a_journal_is_written_in_place() {
    let machine = MACHINE.replace("options = [\"noauto_da_alloc\"]", "mkfs = { journal = false }");
    let files = "create_files = { file = \"/one/{n}\", files = 1600, size = \"4 KiB\" }";
    let text = format!("{machine}[workload.tasks.writer]\nsteps = [{{ {files} }}, \"sync\"]\n");
    let metadata = |text: &str| {
        let run = run_of(&scenario(text), "6.12", |_| true);
        figure(&run, "devices.written_bytes") / 4096.0 - 1600.0
    };
    let without = metadata(&text);
    // A block of the inode table for 16 files: after they are created, after their data has blocks, and after it is converted, which
    // is when requests of up to 320 files complete. Further 59 directories, and a few blocks of the group.
    // This is the model's count: no recording of a real kernel has it.
    assert!((359.0..380.0).contains(&without), "{without} blocks of metadata");
    let with = metadata(&text.replace("mkfs = { journal = false }", ""));
    // With a journal each of these 160 blocks is written once to the log and once to its place.
    assert!((320.0..345.0).contains(&with), "{with} blocks with the log, {without} without");
}

#[test]
fn the_log_of_xfs_has_every_new_inode_as_an_item_of_its_own() {
    let files = "create_files = { file = \"/data/{n}\", files = 2000, size = \"4 KiB\" }";
    let run = run("6.12", &format!("[workload.tasks.writer]\nsteps = [{{ {files} }}, \"sync\"]\n"));
    let log = figure(&run, "devices.written_bytes") - 2000.0 * 4096.0;
    // About 320 bytes each on real kernels.
    assert!((250.0..400.0).contains(&(log / 2000.0)), "{log} bytes of log");
}

#[test]
fn a_reader_of_xfs_waits_for_a_writer_of_the_file_that_is_throttled() {
    let read_on = |mount: &str| {
        let run = run(
            "6.12",
            &format!(
                "[machine.sysctl.vm]\ndirty_bytes = \"4 MiB\"\n[workload]\nduration = \"10s\"\n[workload.tasks.writer]\n\
                 steps = [{{ write = {{ file = \"{mount}/a\", block = \"16 MiB\", size = \"64 MiB\" }} }}]\n\
                 [workload.tasks.reader]\nstart = \"3s\"\nsteps = [{{ read = {{ file = \"{mount}/a\", block = \"4 KiB\", \
                 rate = \"10/s\" }} }}]\n"
            ),
        );
        figure(&run, "reader.read.max_seconds")
    };
    // 16 MiB, all but the first of them at the disk's 50 MB/s.
    let (xfs, ext4) = (read_on("/data"), read_on("/one"));
    assert!((0.2..1.0).contains(&xfs), "{xfs} s: until the writer's call is over");
    assert!(ext4 < 0.01, "{ext4} s: from the page cache");
}

#[test]
fn a_sync_goes_over_the_filesystem_below_each_overlay_once_more_before_5_8() {
    let sync_on = |kernel: &str| {
        let run = run(
            kernel,
            "[machine.mounts.\"/merged\"]\ntype = \"overlay\"\noverlay = { lower = \"/data/lower\", upper = \
             \"/data/upper\", work = \"/data/work\" }\n[workload]\nduration = \"20s\"\n[workload.tasks.writer]\nsteps = \
             [{ write = { file = \"/data/a\", block = \"64 KiB\", rate = \"20 MB/s\" } }]\n[workload.tasks.sync]\nstart = \
             \"4s\"\nsteps = [\"sync\"]\n",
        );
        figure(&run, "sync.sync.max_seconds")
    };
    // Pages that the writer dirtied meanwhile are written, too.
    let (before, since) = (sync_on("5.7"), sync_on("5.10"));
    assert!(before > since + 0.3, "{before} s, {since} s");
}

#[test]
fn a_volatile_overlay_skips_syncs_of_its_files() {
    let longest = |options: &str, tail: &str, call: &str| {
        let run = run(
            "6.12",
            &format!(
                "[machine.mounts.\"/merged\"]\ntype = \"overlay\"\noptions = [{options}]\noverlay = {{ lower = \"/data/lower\", upper = \
                 \"/data/upper\", work = \"/data/work\" }}\n[workload]\nduration = \"20s\"\n[workload.tasks.one]\nsteps = [{tail}]\n"
            ),
        );
        figure(&run, &format!("one.{call}.max_seconds"))
    };
    let check = |tail: &str, call: &str, is_skipped: bool| {
        let (usual, volatile) = (longest("", tail, call), longest("\"volatile\"", tail, call));
        assert!(usual > 0.5, "{call}: {usual} s for 50 MB");
        assert_eq!(volatile < 0.1, is_skipped, "{call} on a volatile overlay: {volatile} s");
    };
    let file = "file = \"/merged/a\"";
    let written = format!("{{ write = {{ {file}, block = \"1 MiB\", total = \"50 MiB\" }} }}");
    for call in ["fsync", "fdatasync"] {
        check(&format!("{written}, {{ {call} = {{ {file} }} }}, \"exit\""), call, true);
    }
    let stored = "{ mmap_store = { file = \"/merged/m\", size = \"40 MiB\", pages = 10240, count = 1 } }, { msync = { \
                  file = \"/merged/m\" } }, \"exit\"";
    check(stored, "msync", false);
    let create =
        "{ create_files = { file = \"/merged/new{n}\", files = 1, size = \"50 MiB\", fsync = true } }, \"exit\"";
    check(create, "fsync", true);
    check(&format!("{{ write = {{ {file}, block = \"50 MiB\", count = 1, dsync = true }} }}, \"exit\""), "write", true);
}

#[test]
fn who_waits_long_for_the_lock_of_an_inode_has_it_next_since_5_3() {
    let steps = "steps = [{ write = { file = \"/one/a\", block = \"256 KiB\" } }]\n";
    let writers =
        format!("[workload]\nduration = \"20s\"\n[workload.tasks.first]\n{steps}[workload.tasks.second]\n{steps}");
    let blocks_of_both = |kernel| {
        let run = run(kernel, &writers);
        ["first.write.count", "second.write.count"].map(|name| figure(&run, name))
    };
    let [first, second] = blocks_of_both("5.2");
    assert!(first.min(second) * 100.0 < first.max(second), "who has the lock keeps it: {first} and {second} blocks");
    for kernel in ["5.3", "6.12"] {
        let [first, second] = blocks_of_both(kernel);
        assert!((first - second).abs() * 20.0 < first, "on {kernel} they take turns: {first} and {second} blocks");
    }
}

/// The flusher's chunk is at most an eighth of the smoothed limit. That limit follows from the memory at boot until
/// dirty_ratio or dirty_bytes change or a task is throttled.
#[test]
fn who_set_nothing_has_the_small_chunks_of_a_machine_that_boots() {
    let written_at_once = |settings: &str| {
        let stream = "steps = [{ write = { file = \"/data/a\", block = \"1 MiB\", rate = \"20 MB/s\" } }]\n";
        let workload = format!("[workload]\nduration = \"20s\"\n[workload.tasks.stream]\n{stream}");
        figure(&run("6.12", &format!("{settings}{workload}")), "host.writeback_peak_bytes")
    };
    let (nothing, same) = (written_at_once(""), written_at_once("[machine.sysctl.vm]\ndirty_ratio = 20\n"));
    // The next chunk begins while the last one is under writeback: two of 8 MiB, or of 24 MiB.
    assert!(nothing < 17e6 && nothing == same, "chunks of 8 MiB: {nothing} and {same}");
    let changed = written_at_once("[machine.sysctl.vm]\ndirty_ratio = 21\n");
    assert!(changed > 20e6, "chunks of 24 MiB: {changed}");
}

/// Pages become clean with the whole ioend: a file of single pages, on a disk of 4 MB/s.
#[test]
fn what_xfs_writes_as_one_is_one_bio_since_6_9() {
    let files = "[machine.devices.slow]\nsize = \"10 GiB\"\nwrite_bandwidth = \"4 MB/s\"\n[machine.mounts.\"/slow\"]\n\
                 type = \"xfs\"\ndevice = \"slow\"\n[workload.tasks.writer]\nsteps = [{ write = { file = \"/slow/a\", \
                 block = \"4 KiB\", total = \"24 MiB\" } }, { fsync = { file = \"/slow/a\" } }]\n";
    let clean_at_once = |kernel| {
        let series = run(kernel, files).window.host_series;
        let written: Vec<u64> = series.iter().filter_map(|(_, row)| Some(row.nr_written?.0)).collect();
        written.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0)
    };
    // Half a second of the disk are 488 pages, and its credit at the start 98. A request of 256 is clean as a whole.
    let (before, since) = (clean_at_once("6.8"), clean_at_once("6.9"));
    assert!(before >= 4096, "4096 folios: {before} pages from one sample to the next");
    assert!((400..=488 + 98 + 256).contains(&since), "256 folios: {since} pages from one sample to the next");
}

/// Bytes written to all disks within ten seconds, with laptop mode set to some seconds. The steps begin after all
/// disks were idle for longer.
fn written_in_laptop_mode(kernel: &str, seconds: u64, steps: &str) -> f64 {
    let old = |mount| {
        let file = format!("file = \"{mount}/old\"");
        format!("{{ write = {{ {file}, block = \"64 KiB\", total = \"1 MiB\" }} }}, {{ fsync = {{ {file} }} }}")
    };
    let more = format!(
        "[machine.devices.left]\nsize = \"1 GiB\"\n[machine.devices.right]\nsize = \"1 GiB\"\n\
         [machine.devices.array.backing.raid1]\nmembers = [\"left\", \"right\"]\n[machine.mounts.\"/mirror\"]\n\
         type = \"xfs\"\ndevice = \"array\"\n[machine.sysctl.vm]\nlaptop_mode = {seconds}\n\
         dirty_writeback_centisecs = 6000\ndirty_expire_centisecs = 6000\n[workload]\nduration = \"10s\"\n\
         [workload.tasks.one]\nsetup = [{}, {}, \"drop_caches\"]\nsteps = [{{ sleep = {{ for = \"3s\" }} }}, {steps}, \
         {{ sleep = {{ for = \"5s\" }} }}]\n",
        old("/data"),
        old("/mirror"),
    );
    figure(&run(kernel, &more), "devices.written_bytes")
}

/// The step that writes 4 MiB to a file.
fn write(file: &str) -> String {
    format!("{{ write = {{ file = \"{file}\", block = \"64 KiB\", total = \"4 MiB\" }} }}")
}

#[test]
fn laptop_mode_writes_everything_when_a_disk_was_used() {
    let used =
        |mount: &str| format!("{}, {{ read = {{ file = \"{mount}/old\", count = 1 }} }}", write(&format!("{mount}/a")));
    for kernel in ["4.14", "6.12"] {
        assert!(written_in_laptop_mode(kernel, 2, &write("/data/a")) < 1e6, "{kernel}: no request, nothing is written");
        assert!(written_in_laptop_mode(kernel, 2, &used("/data")) >= 4e6, "{kernel}: two seconds after the read");
        assert!(written_in_laptop_mode(kernel, 0, &used("/data")) < 1e6, "{kernel}: not in laptop mode");
        assert!(written_in_laptop_mode(kernel, 2, &used("/mirror")) < 1e6, "{kernel}: the members have nothing dirty");
    }
    assert!(written_in_laptop_mode("7.2", 2, &used("/data")) < 1e6, "there is no laptop mode any more");
}

#[test]
fn a_sync_stops_the_timers_of_laptop_mode() {
    let around =
        |call: &str| written_in_laptop_mode("6.12", 2, &format!("{}, {call}, {}", write("/data/a"), write("/data/b")));
    let fsync = around("{ fsync = { file = \"/data/a\" } }");
    assert!(fsync >= 8e6, "the second file follows the first: {fsync}");
    let sync = around("\"sync\"");
    assert!((4e6..5e6).contains(&sync), "everything was written, the timer has nothing to do: {sync}");
}

#[test]
fn time_slept_in_the_throttle_and_what_stores_make_of_folios_are_figures() {
    let tasks = "[machine.sysctl.vm]\ndirty_bytes = \"16 MiB\"\n[workload]\nduration = \"20s\"\n\
         [workload.tasks.stream]\nsteps = [{ write = { file = \"/one/a\", block = \"1 MiB\" } }]\n\
         [workload.tasks.seldom]\nsteps = [{ write = { file = \"/one/b\", block = \"4 KiB\", rate = \"1/s\" } }]\n\
         [workload.tasks.journal]\nsetup = [{ write = { file = \"/data/j\", block = \"1 MiB\", total = \"4 MiB\" } }, \
         \"sync\"]\nsteps = [{ mmap_store = { file = \"/data/j\", size = \"4 MiB\", pages = 1, rate = \"1/s\" } }]\n";
    let run = run("6.12", tasks);
    let throttled = figure(&run, "stream.throttled_seconds");
    assert!((15.0..20.5).contains(&throttled), "{throttled}");
    let seldom = figure(&run, "seldom.throttled_seconds");
    assert!(seldom < throttled / 5.0, "who writes little: {seldom}");
    let [stream, journal] = ["stream", "journal"].map(|task| figure(&run, &format!("{task}.write_amplification")));
    assert!((0.95..1.05).contains(&stream) && journal > 30.0, "{stream} and {journal}");
}

#[test]
fn direct_writes_change_times_so_that_ext4_commits_each_five_seconds() {
    // The image of a buffered loop device: each commit of the filesystem in it flushes it, for which the pages of the image
    // are written. On a real 6.12.43 they were written 5 s after each fdatasync.
    let image = "[machine.devices.image]\nsize = \"1 GiB\"\nbacking = { loop = { file = \"/one/image\" } }\n\
                 [machine.mounts.\"/home\"]\ntype = \"ext4\"\ndevice = \"image\"\n[workload]\nduration = \"20s\"\n\
                 [workload.tasks.pages]\n\
                 setup = [{ write = { file = \"/home/a\", block = \"1 MiB\", total = \"40 MiB\", direct = true } }, \
                 { fsync = { file = \"/home/a\" } }]\n\
                 steps = [{ write = { file = \"/home/a\", order = \"random\", size = \"40 MiB\", block = \"16 KiB\", \
                 rate = \"1 MB/s\", direct = true } }]\n";
    let run = run("6.12", image);
    let written = figure(&run, "host.written_bytes") / 1e6;
    assert!(written > 8.0, "{written} MB");
}

#[test]
fn inodes_that_are_dropped_from_the_cache_are_written_in_place_before() {
    let more = |drop: &str| {
        format!(
            "[machine.devices.many]\nsize = \"4 GiB\"\nwrite_bandwidth = \"8 MB/s\"\n[machine.mounts.\"/many\"]\ntype = \"xfs\"\ndevice = \"many\"\n\
             [workload]\nduration = \"45s\"\n[workload.tasks.one]\n\
             setup = [{{ create_files = {{ file = \"/many/{{d}}/{{n}}\", files = 8000, files_per_dir = 500, size = \"1 KiB\" }} }}, \
             {{ syncfs = {{ path = \"/many\" }} }}{drop}]\n\
             steps = [{{ sleep = {{ for = \"45s\" }} }}]\n"
        )
    };
    let written = |drop: &str| figure(&run("6.12", &more(drop)), "devices.written_bytes");
    // 8,000 inodes of 512 bytes.
    assert!(written("") >= 4e6, "the worker of the log writes them within half a minute");
    assert!(written(", \"drop_caches\"") < 0.4e6, "the task that drops them goes on after that");
}

#[test]
fn an_fdatasync_commits_the_size_of_a_file_that_grew_within_a_block() {
    for (mount, expect) in [("data", 0.19), ("one", 0.24)] {
        let write =
            format!("{{ write = {{ file = \"/{mount}/log\", order = \"append\", block = \"512 B\", count = 1 }} }}");
        let sync = format!("{{ fdatasync = {{ file = \"/{mount}/log\" }} }}");
        let steps = format!("[{{ repeat = {{ every = \"2s\", steps = [{write}, {sync}] }} }}]");
        let task = format!("[workload]\nduration = \"17s\"\n[workload.tasks.log]\nsteps = {steps}\n");
        // Of eight appends one needs a block. On XFS each is data, flush, log and flush of 50 ms each; ext4 has a commit
        // record as well.
        let usual = figure(&run("6.12", &task), "log.fdatasync.p50_seconds");
        assert!((expect..expect + 0.06).contains(&usual), "{mount}: {usual} s");
    }
}
