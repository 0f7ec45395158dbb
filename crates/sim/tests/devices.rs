// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits of devices: each way and together, their credit, reads and writes at the same time, and one reader
//! besides several, with steal time, too. Arrays and loop devices are in files of their own.

mod machine;

use floodline_analysis::run::Run;
use floodline_record::record::Sink;
use floodline_record::units::Nanos;
use floodline_sim::{Found, Options, Speed, Steal, simulate};
use machine::{figure, options, run_of, scenario};

fn run(device: &str, workload: &str) -> Run {
    run_for("20s", device, workload)
}

fn run_for(duration: &str, device: &str, workload: &str) -> Run {
    run_on("6.12", duration, device, workload)
}

fn run_on(kernel: &str, duration: &str, device: &str, workload: &str) -> Run {
    let text = format!(
        r#"
name = "device"
summary = "a device at its limits"
[machine]
memory = "2 GiB"
cpus = 4
[machine.devices.disk]
size = "20 GiB"
{device}
[machine.mounts."/data"]
type = "xfs"
device = "disk"
[workload]
duration = "{duration}"
{workload}
"#
    );
    run_of(&scenario(&text), kernel, |_| true)
}

/// Seconds that the fdatasync of 40 MiB takes.
fn fdatasync(device: &str) -> f64 {
    let steps = "[{ write = { file = \"/data/a\", block = \"1 MiB\", total = \"40 MiB\" } }, \
                 { fdatasync = { file = \"/data/a\" } }]";
    figure(&run(device, &format!("[workload.tasks.writer]\nsteps = {steps}\n")), "writer.fdatasync.max_seconds")
}

#[test]
fn only_a_limit_of_a_hypervisor_lets_a_tenth_of_a_second_through_at_once() {
    let ssd = fdatasync("profile = \"sata-ssd\"");
    assert!((0.074..0.09).contains(&ssd), "40 MiB at 540 MB/s are 78 ms: {ssd}");
    let asked_for = fdatasync("profile = \"sata-ssd\"\nburst = \"100ms\"");
    assert!(asked_for < 0.03, "{asked_for}");
    let throttled = fdatasync("write_bandwidth = \"540 MB/s\"");
    assert!(throttled < 0.03, "{throttled}");
    let strict = fdatasync("write_bandwidth = \"540 MB/s\"\nburst = \"0s\"");
    assert!((0.074..0.09).contains(&strict), "{strict}");
}

#[test]
fn writeback_that_a_task_waits_for_takes_more_of_the_queue_than_that_of_the_flusher() {
    // Of 256 requests wbt gives 192 to an fsync (measured on 6.12: 189 of 1.2 MiB under way) and 48 to the flusher's
    // background writeback.
    let peak = |then: &str| {
        let write = "{ write = { file = \"/data/a\", block = \"1 MiB\", total = \"360 MiB\", rate = \"180 MB/s\" } }";
        let task = format!("[workload.tasks.writer]\nsteps = [{write}, {then}]\n");
        let sysctls = "[machine.sysctl.vm]\ndirty_bytes = \"1 GiB\"\ndirty_background_bytes = \"1000 MiB\"\n\
                       dirty_expire_centisecs = 300\ndirty_writeback_centisecs = 100\n";
        // Folios of XFS are single pages there: a larger bio would be under writeback as a whole.
        let run = run_on("6.1", "18s", &format!("write_bandwidth = \"45 MB/s\"\n{sysctls}"), &task);
        figure(&run, "host.writeback_peak_bytes") / f64::from(1 << 20)
    };
    let waited_for = peak("{ fsync = { file = \"/data/a\" } }");
    assert!((180.0..250.0).contains(&waited_for), "{waited_for} MiB");
    let by_flusher = peak("{ sleep = { for = \"16s\" } }");
    assert!((40.0..90.0).contains(&by_flusher), "{by_flusher} MiB");
}

const SSD: &str = "profile = \"sata-ssd\"";
const READER: &str = r#"
[workload.tasks.reader]
setup = [
  { write = { file = "/data/{i}-{j}", block = "1 MiB", total = "3 GiB" } }, "sync", "drop_caches",
  { barrier = { name = "ready" } },
]
steps = [{ read = { file = "/data/{i}-{j}", block = "1 MiB" } }]
"#;
const WRITER: &str = r#"
[workload.tasks.writer]
setup = [{ barrier = { name = "ready" } }]
steps = [{ write = { file = "/data/new", block = "1 MiB", direct = true } }]
"#;

#[test]
fn what_a_device_does_for_readers_it_cannot_do_for_writers() {
    let both = run_for("5s", SSD, &format!("{READER}{WRITER}"));
    let (reads, writes) =
        (figure(&both, "reader.read_bytes_per_second"), figure(&both, "writer.write.bytes_per_second"));
    let used = reads / 571e6 + writes / 540e6;
    assert!(used < 1.05 && reads > 50e6 && writes > 50e6, "{reads} read, {writes} written: {used}");
    // The limits of each way are independent.
    let limits = "read_bandwidth = \"571 MB/s\"\nwrite_bandwidth = \"540 MB/s\"";
    let apart = run_for("5s", limits, &format!("{READER}{WRITER}"));
    let (reads, writes) =
        (figure(&apart, "reader.read_bytes_per_second"), figure(&apart, "writer.write.bytes_per_second"));
    assert!(reads / 571e6 + writes / 540e6 > 1.4, "{reads} read, {writes} written");
}

#[test]
fn a_reader_beside_writeback_waits_for_what_was_sent_before_it() {
    let reader = "[workload.tasks.reader]\nsetup = [{ write = { file = \"/data/a\", block = \"1 MiB\", total = \"1 GiB\" } }, \
                  \"sync\", \"drop_caches\"]\nsteps = [{ read = { file = \"/data/a\", order = \"random\", rate = \"50/s\" } }]\n";
    let writer = "[workload.tasks.writer]\nsteps = [{ write = { file = \"/data/new\", block = \"1 MiB\" } }]\n";
    let p99 = |workload: &str| figure(&run(SSD, workload), "reader.read.p99_seconds");
    assert!(p99(reader) < 0.001, "alone: {}", p99(reader));
    let beside = p99(&format!("{reader}{writer}"));
    assert!((0.002..0.06).contains(&beside), "beside writeback: {beside}");
}

#[test]
fn one_reader_in_order_is_slower_than_several() {
    let rate = |readers: u32| {
        let workload = READER.replace("setup", &format!("instances = {readers}\nsetup"));
        figure(&run(SSD, &workload), "reader.read_bytes_per_second")
    };
    let (one, four) = (rate(1) / 571.7e6, rate(4) / 571.7e6);
    assert!((0.8..0.91).contains(&one) && four > 0.94, "one: {one} of the device, four: {four}");
}

#[test]
fn limits_of_both_ways_together_hold_for_their_sum_and_are_exceeded_on_credit() {
    let direct = |of: &str, size: &str, block: &str| {
        format!(
            "[workload.tasks.{of}]\ninstances = 4\nsetup = [{{ write = {{ file = \"/data/{of}{{j}}\", block = \"1 MiB\", \
             total = \"64 MiB\" }} }}, \"sync\"]\nsteps = [{{ {of} = {{ file = \"/data/{of}{{j}}\", order = \"random\", \
             {size}block = \"{block}\", direct = true }} }}]\n"
        )
    };
    let (reader, writer) = (direct("read", "", "256 KiB"), direct("write", "size = \"64 MiB\", ", "256 KiB"));
    let both = run("bandwidth = \"100 MB/s\"", &format!("{reader}{writer}"));
    let sum = figure(&both, "read.read.bytes_per_second") + figure(&both, "write.write.bytes_per_second");
    assert!((95e6..103e6).contains(&sum), "{sum}");
    // 300 requests a second, and 3000 in a bucket that starts full.
    let bucket = "iops = \"300 IO/s\"\nburst = \"10s\"\nread_iops = \"3000 IO/s\"\nwrite_bandwidth = \"1 GB/s\"";
    let reads = figure(&run(bucket, &direct("read", "", "4 KiB")), "read.read.count");
    assert!((8_500.0..9_100.0).contains(&reads), "20 s and 10 s of credit are 9000 requests: {reads}");
}

/// Returns a figure of a writer of 200 blocks of 64 KiB, on a device of 50 MB/s.
fn of_writer(steps: &str, name: &str) -> f64 {
    let workload = format!("[workload.tasks.writer]\nsteps = [{steps}]\n");
    figure(&run("write_bandwidth = \"50 MB/s\"\nburst = \"0s\"", &workload), name)
}

#[test]
fn a_write_with_dsync_takes_as_long_as_one_with_its_fdatasync() {
    let apart =
        r#"{ write = { file = "/data/a", block = "64 KiB", count = 200, sync = { call = "fdatasync", after = 1 } } }"#;
    let at_once = r#"{ write = { file = "/data/a", block = "64 KiB", count = 200, dsync = true } }"#;
    let apart = of_writer(apart, "writer.fdatasync.p50_seconds") + of_writer(apart, "writer.write.p50_seconds");
    let at_once = of_writer(at_once, "writer.write.p50_seconds");
    assert!((at_once / apart - 1.0).abs() < 0.02, "{at_once} against {apart}");
}

#[test]
fn a_write_with_dsync_leaves_other_dirty_pages_of_its_file_to_the_flusher() {
    let dirty = r#"{ write = { file = "/data/a", block = "64 KiB", total = "40 MiB" } }"#;
    let one = r#"file = "/data/a", order = "random", size = "4 MiB", count = 1"#;
    let durable = of_writer(&format!("{dirty}, {{ write = {{ {one}, dsync = true }} }}"), "writer.write.max_seconds");
    let synced = "{ fdatasync = { file = \"/data/a\" } }";
    let all = of_writer(&format!("{dirty}, {{ write = {{ {one} }} }}, {synced}"), "writer.fdatasync.max_seconds");
    assert!(durable < 0.03, "one folio: {durable}");
    assert!(all > 0.8, "40 MiB at 50 MB/s: {all}");
}

#[test]
fn a_rotating_disk_reads_ahead_by_two_requests_since_6_17() {
    let readers = r#"
[workload.tasks.reader]
instances = 2
setup = [{ write = { file = "/data/{j}", block = "1 MiB", total = "1 GiB" } }, "sync", "drop_caches"]
steps = [{ read = { file = "/data/{j}", block = "64 KiB" } }]
"#;
    let rate = |kernel: &str, more: &str| {
        let disk = format!("profile = \"hdd-7200\"\n{more}");
        figure(&run_on(kernel, "10s", &disk, readers), "reader.read.bytes_per_second")
    };
    let (before, since) = (rate("6.12", ""), rate("7.2", ""));
    assert!(since > 3.0 * before, "two readers share the arm: {before} and {since}");
    let told = rate("7.2", "bdi.read_ahead = \"128 KiB\"");
    assert!((told / before - 1.0).abs() < 0.2, "the setting decides: {before} and {told}");
}

#[test]
fn what_was_started_early_need_not_be_waited_for_at_the_end() {
    let end = "{ fdatasync = { file = \"/data/a\" } }";
    let all_at_once = of_writer(
        &format!(r#"{{ write = {{ file = "/data/a", block = "64 KiB", rate = "100/s", count = 200 }} }}, {end}"#),
        "writer.fdatasync.max_seconds",
    );
    let on_the_way = r#"sync = { call = "sync_file_range", after = 8 }"#;
    let early = of_writer(
        &format!(
            r#"{{ write = {{ file = "/data/a", block = "64 KiB", rate = "100/s", count = 200, {on_the_way} }} }}, {end}"#
        ),
        "writer.fdatasync.max_seconds",
    );
    assert!(all_at_once > 0.2, "13 MB at 50 MB/s: {all_at_once}");
    assert!(early < all_at_once / 5.0, "{early} against {all_at_once}");
}

#[test]
fn blocks_given_beforehand_count_as_space() {
    let steps = r#"{ fallocate = { file = "/data/a", size = "30 GiB" } }"#;
    assert!(of_writer(steps, "writer.failures_count") > 0.0, "the disk has 20 GiB");
    let steps = r#"{ fallocate = { file = "/data/a", size = "1 GiB" } }"#;
    assert_eq!(of_writer(steps, "writer.failures_count"), 0.0);
}

/// Requests a second of one task with a depth, on a device whose requests take 1 ms each.
fn requests(depth: u32, step: &str) -> f64 {
    let steps = format!(
        "setup = [{{ write = {{ file = \"/data/a\", block = \"1 MiB\", total = \"64 MiB\" }} }}, \"sync\", \"drop_caches\"]\n\
         steps = [{{ {step} = {{ file = \"/data/a\", order = \"random\", SIZE depth = {depth} }} }}]"
    );
    let size = if step == "write" { "size = \"64 MiB\", direct = true," } else { "direct = true," };
    let workload = format!("[workload.tasks.t]\n{}\n", steps.replace("SIZE", size));
    let run = run_for("1s", "latency = \"1ms\"", &workload);
    figure(&run, &format!("t.{step}.per_second"))
}

#[test]
fn requests_under_way_at_once_share_the_latency() {
    for step in ["read", "write"] {
        let [one, eight] = [1, 8].map(|depth| requests(depth, step));
        assert!((900.0..1000.0).contains(&one), "{step}: {one}");
        assert!((7.5..8.1).contains(&(eight / one)), "{step}: {eight} of eight, {one} of one");
    }
}

#[test]
fn a_read_under_way_ends_where_the_file_ends() {
    let workload = "[workload.tasks.t]\nsetup = [{ write = { file = \"/data/a\", total = \"100 KiB\" } }, \"sync\"]\n\
                    steps = [{ read = { file = \"/data/a\", block = \"64 KiB\", direct = true, depth = 2 } }]\n";
    let run = run_for("1s", "", workload);
    // 64 KiB and 36 KiB.
    let mean = figure(&run, "t.read.bytes_per_second") / figure(&run, "t.read.per_second");
    assert!((51_199.0..51_201.0).contains(&mean), "{mean}");
}

#[test]
fn each_request_under_way_makes_the_next_one_slower() {
    let latency = |depth: u32, device: &str| {
        let steps = format!(
            "setup = [{{ write = {{ file = \"/data/a\", block = \"1 MiB\", total = \"64 MiB\" }} }}, \"sync\", \"drop_caches\"]\n\
             steps = [{{ read = {{ file = \"/data/a\", order = \"random\", direct = true, depth = {depth} }} }}]"
        );
        let run = run_for("200ms", device, &format!("[workload.tasks.t]\n{steps}\n"));
        figure(&run, "t.read.p50_seconds") * 1e6
    };
    let device = "latency = \"100us\"\nqueued_latency = \"10us\"";
    let flat = [1, 16].map(|depth| latency(depth, "latency = \"100us\""));
    let grows = [1, 16].map(|depth| latency(depth, device));
    assert!((grows[0] - flat[0]).abs() < 5.0, "{grows:?}, {flat:?}");
    // Fifteen other requests are in flight.
    assert!((130.0..155.0).contains(&(grows[1] - flat[1])), "{grows:?}, {flat:?}");
}

#[test]
fn a_write_cache_fills_and_drains() {
    let device =
        "write_bandwidth = \"500 MB/s\"\nburst = \"0s\"\nwrite_cache = { size = \"1 GB\", drain = \"100 MB/s\" }";
    let written = |seconds: u32| {
        // Writes that extend a file of ext4 go one after the other.
        let steps = "setup = [{ fallocate = { file = \"/data/a\", size = \"4 GiB\" } }]\n\
                     steps = [{ write = { file = \"/data/a\", block = \"1 MiB\", size = \"4 GiB\", direct = true, depth = 4 } }]";
        let run = run_for(&format!("{seconds}s"), device, &format!("[workload.tasks.t]\n{steps}\n"));
        figure(&run, "t.write.bytes_per_second") * f64::from(seconds) / 1e6
    };
    // It fills at 400 MB/s, in 2.5 s; then writes continue at 100 MB/s.
    let [two, ten] = [written(2), written(10)];
    assert!((960.0..1001.0).contains(&two), "{two} MB");
    assert!((1950.0..2010.0).contains(&ten), "{ten} MB");
}

#[test]
fn a_flush_waits_for_a_volatile_cache_only() {
    let flushed = |volatile: bool| {
        let device = format!(
            "write_bandwidth = \"500 MB/s\"\nburst = \"0s\"\n\
             write_cache = {{ size = \"1 GB\", drain = \"100 MB/s\", volatile = {volatile} }}"
        );
        fdatasync(&device)
    };
    let [kept, lost] = [false, true].map(flushed);
    assert!((0.08..0.1).contains(&kept), "42 MB at 500 MB/s: {kept}");
    assert!((0.4..0.45).contains(&lost), "42 MB at 100 MB/s: {lost}");
}

#[test]
fn the_requests_of_one_direct_call_are_under_way_at_once() {
    let latency = |block: &str| {
        let steps =
            format!("steps = [{{ write = {{ file = \"/data/a\", block = \"{block}\", count = 20, direct = true }} }}]");
        let run = run_for(
            "5s",
            "latency = \"10ms\"\nwrite_bandwidth = \"4 GB/s\"\nburst = \"0s\"",
            &format!("[workload.tasks.t]\n{steps}\n"),
        );
        figure(&run, "t.write.p50_seconds")
    };
    // A request has at most 1 MiB and takes 10 ms; sixteen of them share these.
    let [one, sixteen] = ["1 MiB", "16 MiB"].map(latency);
    assert!((0.0100..0.0115).contains(&one) && (0.0135..0.0165).contains(&sixteen), "{one} s, {sixteen} s");
}

/// A run on the CPU of an emulated guest: calls take 100 times as long as assumed.
fn run_told(text: &str, found: Found) -> Run {
    let speed = Speed { slowdown: 3_000, copies: 1_000, calls: 100_000, observer: Nanos(0) };
    let mut run = Run::default();
    let take = |record| {
        let Ok(()) = run.record(&record);
        Ok(())
    };
    let options = Options { speed, found, ..options("6.12") };
    simulate(&scenario(text), &options, take, |_| true).unwrap_or_else(|error| panic!("{error}"));
    run
}

const DIRECT_READER: &str = r#"
name = "reader"
summary = "direct reads of a fast disk"
[machine]
memory = "1 GiB"
cpus = 2
[machine.devices.disk]
size = "8 GiB"
read_bandwidth = "400 MB/s"
write_bandwidth = "400 MB/s"
[machine.mounts."/data"]
type = "xfs"
device = "disk"
[workload]
duration = "60s"
[workload.tasks.reader]
setup = [{ write = { file = "/data/a", block = "1 MiB", total = "16 MiB", direct = true } }]
steps = [{ read = { file = "/data/a", order = "random", block = "16 KiB", direct = true, rate = "40/s", for = "60s" } }]
"#;

#[test]
fn steal_time_makes_usual_reads_faster_and_the_slowest_slower() {
    let figures = |found| {
        let run = run_told(DIRECT_READER, found);
        ["reader.read.p50_seconds", "reader.read.p99_seconds", "host.cpu_system_seconds"].map(|name| figure(&run, name))
    };
    let steal = Steal { share: 50, mean: Nanos::from_millis(20) };
    let [usual, slowest, cpu] = figures(Found { steal: Some(steal), ..Found::default() });
    let [even, slowest_even, cpu_even] = figures(Found::default());
    assert!(usual < 0.8 * even, "usual reads: {usual} of {even} s");
    assert!(slowest > 10e-3 && slowest_even < 2.0 * even, "slowest reads: {slowest}, {slowest_even} s");
    assert!((0.6..1.5).contains(&(cpu / cpu_even)), "the same CPU time: {cpu}, {cpu_even} s");
}

#[test]
fn a_flush_alone_waits_for_a_place_in_the_queue_like_a_write() {
    let write =
        "{ write = { file = \"/data/a\", order = \"random\", size = \"64 MiB\", block = \"4 KiB\", count = 600 } }";
    let setup = "setup = [{ write = { file = \"/data/a\", block = \"1 MiB\", total = \"64 MiB\", direct = true } }, \
                 { fsync = { file = \"/data/a\" } }, { write = { file = \"/data/b\", block = \"4 KiB\", total = \"4 KiB\" } }, \
                 { fsync = { file = \"/data/b\" } }]\n";
    let workload = format!(
        "[workload.tasks.writer]\nstart = \"2s\"\n{setup}steps = [{write}, {{ fdatasync = {{ file = \"/data/a\" }} }}]\n\
         [workload.tasks.clean]\nstart = \"2s\"\n\
         steps = [{{ repeat = {{ every = \"100ms\", steps = [{{ fdatasync = {{ file = \"/data/b\" }} }}] }} }}]\n"
    );
    // 192 requests of the writer go first: measured 1.5 to 1.6 s.
    let longest = figure(&run("write_iops = \"120 IO/s\"", &workload), "clean.fdatasync.max_seconds");
    assert!((1.3..1.8).contains(&longest), "{longest}");
}

#[test]
fn a_commit_record_before_6_8_is_written_behind_what_came_during_its_flush() {
    let longest = |kernel: &str| {
        let text = r#"
name = "device"
summary = "a journal of an old kernel behind scattered pages"
[machine]
memory = "1 GiB"
cpus = 2
[machine.devices.disk]
size = "6 GiB"
write_iops = "28 IO/s"
[machine.mounts."/data"]
type = "ext4"
device = "disk"
[workload]
duration = "50s"
[workload.tasks.pages]
preset.journald_like = { file = "/data/pages", messages = "9/s", pages = 2, size = "16 MiB" }
[workload.tasks.log]
steps = [{ repeat = { every = "2s", steps = [{ write = { file = "/data/log", order = "append", count = 1 } }, { fdatasync = { file = "/data/log" } }] } }]
"#;
        figure(&run_of(&scenario(text), kernel, |_| true), "log.fdatasync.max_seconds")
    };
    // Three times the queue drains, and then the flusher's next 95 requests go first. Measured on 5.10: 13.1 s.
    let (before, since) = (longest("5.10"), longest("6.8"));
    assert!((11.5..14.5).contains(&before) && since < 10.5, "{before} {since}");
}
