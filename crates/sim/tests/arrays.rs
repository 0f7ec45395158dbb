// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arrays: the member that serves a read, and the requests in each member's queue. All counters add up after every
//! event.

mod machine;

use floodline_analysis::run::Run;
use floodline_record::record::Record;
use floodline_scenario::Scenario;
use machine::{figure, run_of, scenario};

/// An array of a slow disk and a fast one, with more to write than they take, and a program that reads at random.
const MIRRORED: &str = r#"
name = "mirrored"
summary = "An array with members of different speed"
about = "x"
[machine]
memory = "512 MiB"
cpus = 2
[machine.devices.left]
size = "1 GiB"
write_bandwidth = "15 MB/s"
read_bandwidth = "15 MB/s"
[machine.devices.right]
size = "1 GiB"
write_bandwidth = "30 MB/s"
read_bandwidth = "30 MB/s"
[machine.devices.array]
backing = { raid1 = { members = ["left", "right"] } }
[machine.mounts."/data"]
type = "ext4"
device = "array"
[workload.tasks.writer]
steps = [{ write = { file = "/data/a", block = "256 KiB", total = "200 MiB" } }, { fsync = { file = "/data/a" } }]
[workload.tasks.reader]
setup = [{ write = { file = "/data/b", block = "1 MiB", total = "16 MiB" } }, { fsync = { file = "/data/b" } }, "drop_caches"]
steps = [{ read = { file = "/data/b", order = "random", block = "64 KiB", rate = "10/s", count = 60, direct = true } }]
"#;

/// Bytes read from the slow member, the fast one and the array.
fn read(run: &Run) -> [u64; 3] {
    let read: Vec<_> = run.window.disks.values().map(|disk| disk.last.read.expect("known").0).collect();
    read.try_into().expect("three devices")
}

/// The requests in samples of a run: those of the slow member, the fast one, the array.
fn requests_of(scenario: &Scenario, kernel: &str) -> Vec<[u64; 3]> {
    let mut requests = Vec::new();
    run_of(scenario, kernel, |record| {
        if let Record::Sample(sample) = record {
            let disks: Vec<_> = sample.disks.rows().iter().map(|(_, disk)| disk.in_flight.expect("known").0).collect();
            requests.push(disks.try_into().expect("three devices"));
        }
        true
    });
    requests
}

#[test]
fn an_array_reads_from_the_member_that_has_less_to_do() {
    let run = run_of(&scenario(MIRRORED), "6.12", |_| true);
    let [slow, fast, array] = read(&run);
    assert!(array >= 60 * 65_536 && fast > 10 * slow, "{slow} and {fast} of {array}");
    // Behind the slow disk's writes it would take seconds.
    let longest = figure(&run, "reader.read.max_seconds");
    assert!(longest < 0.1, "{longest}");
}

#[test]
fn every_member_of_an_array_has_all_that_is_written() {
    for kernel in ["4.4", "5.10", "6.12", "6.12.117", "7.2"] {
        let run = run_of(&scenario(MIRRORED), kernel, |_| true);
        let written: Vec<_> = run.window.disks.values().map(|disk| disk.last.written.expect("known").0).collect();
        assert!(written.iter().all(|bytes| *bytes >= 200 << 20 && *bytes == written[0]), "{kernel}: {written:?}");
    }
}

#[test]
fn who_reads_on_stays_on_a_member() {
    let text = MIRRORED.replace(
        "order = \"random\", block = \"64 KiB\", rate = \"10/s\", count = 60, direct = true",
        "block = \"1 MiB\"",
    );
    let text = text.replace("total = \"200 MiB\"", "total = \"4 KiB\"");
    let [slow, fast, array] = read(&run_of(&scenario(&text), "6.12", |_| true));
    assert!(slow + fast == array && slow.min(fast) < 1 << 20, "{slow} and {fast}");
}

#[test]
fn a_member_of_an_array_throttles_writeback_as_a_disk_of_its_own_does() {
    let requests = requests_of(&scenario(MIRRORED), "6.12.117");
    // 96 of 256 are for writeback that is not urgent; a read, a flush and a write of the journal may be added.
    assert!(requests.iter().all(|[slow, fast, _]| *slow <= 99 && *fast <= 99), "{requests:?}");
    assert!(requests.iter().any(|[slow, ..]| *slow > 16), "{requests:?}");
    // The fast disk has done all of a batch before the slow disk admits the next.
    assert!(requests.iter().any(|[slow, fast, array]| *slow > 2 && *fast == 0 && array >= slow), "{requests:?}");
}

#[test]
fn a_member_of_an_array_takes_no_more_than_its_queue_has() {
    let text =
        MIRRORED.replace("size = \"1 GiB\"", "size = \"1 GiB\"\nqueue = { nr_requests = 4, wbt_latency = \"0s\" }");
    let requests = requests_of(&scenario(&text), "6.12");
    assert!(requests.iter().all(|[slow, fast, _]| *slow <= 4 && *fast <= 4), "{requests:?}");
    assert!(requests.iter().any(|[slow, ..]| *slow == 4), "{requests:?}");
}

/// 400 MiB written and synced, then read by one reader with direct I/O, on a device of four disks of 50 MB/s.
fn stacked(backing: &str) -> Run {
    let disk = |name: char| {
        format!(
            "[machine.devices.{name}]\nsize = \"1 GiB\"\nwrite_bandwidth = \"50 MB/s\"\nread_bandwidth = \"50 MB/s\"\nburst = \"0s\"\n"
        )
    };
    let disks: String = "abcd".chars().map(disk).collect();
    let text = format!(
        "name = \"stacked\"\nsummary = \"A device of several\"\n[machine]\nmemory = \"2 GiB\"\ncpus = 4\n{disks}\
         [machine.devices.top]\nbacking = {backing}\n[machine.mounts.\"/data\"]\ntype = \"xfs\"\ndevice = \"top\"\n\
         [workload.tasks.t]\nsteps = [\n\
         {{ write = {{ file = \"/data/a\", block = \"1 MiB\", total = \"400 MiB\" }} }}, {{ fsync = {{ file = \"/data/a\" }} }},\n\
         {{ read = {{ file = \"/data/a\", order = \"random\", block = \"1 MiB\", count = 100, direct = true, depth = 8 }} }}]\n"
    );
    run_of(&scenario(&text), "6.12", |_| true)
}

/// Bytes written to each disk and to the device above them, MiB.
fn written(run: &Run) -> Vec<u64> {
    run.window.disks.values().map(|disk| disk.last.written.expect("known").0 >> 20).collect()
}

#[test]
fn stripes_are_as_fast_as_their_members_together() {
    let two = stacked("{ raid0 = { members = [\"a\", \"b\"] } }");
    let four = stacked("{ striped = { members = [\"a\", \"b\", \"c\", \"d\"], chunk = \"128 KiB\" } }");
    // 400 MiB at 100 and at 200 MB/s.
    let [fast, faster] = [&two, &four].map(|run| figure(run, "t.finished_seconds") - figure(run, "t.read.max_seconds"));
    let [sync, sync_of_four] = [&two, &four].map(|run| figure(run, "t.fsync.max_seconds"));
    assert!((3.0..4.6).contains(&sync) && (1.4..2.4).contains(&sync_of_four), "{sync} s, {sync_of_four} s");
    assert!(fast > 1.7 * faster, "{fast} s, {faster} s");
    let disks = written(&two);
    assert!(disks[0] >= 199 && disks[0].abs_diff(disks[1]) <= 2 && disks[2] + disks[3] == 0, "{disks:?}");
    assert!(disks[4].abs_diff(disks[0] + disks[1]) <= 2, "{disks:?}");
    let disks = written(&four);
    assert!(disks[..4].iter().all(|disk| (99..=104).contains(disk)), "{disks:?}");
}

#[test]
fn pairs_of_mirrors_write_twice_and_read_from_either() {
    let run = stacked("{ raid10 = { members = [\"a\", \"b\", \"c\", \"d\"] } }");
    let disks = written(&run);
    assert!(disks[0] == disks[1] && disks[2] == disks[3] && disks[0] + disks[2] >= 400, "{disks:?}");
    let sync = figure(&run, "t.fsync.max_seconds");
    assert!((3.0..4.6).contains(&sync), "{sync} s");
    // Eight parallel reads of 1 MiB keep all four busy: 200 MB/s. Two members would give half of that.
    let rate = f64::from(8 << 20) / figure(&run, "t.read.p50_seconds");
    assert!((180e6..=202e6).contains(&rate), "{rate} bytes/s");
    let read: Vec<u64> = run.window.disks.values().map(|disk| disk.last.read.expect("known").0).collect();
    let is_shared = read[..4].iter().all(|disk| *disk > 15 << 20);
    assert!(is_shared && read[..4].iter().sum::<u64>() >= 100 << 20, "{read:?}");
}

#[test]
fn one_member_of_a_linear_device_is_as_the_disk_itself() {
    let run = stacked("{ linear = { members = [\"a\"] } }");
    let disks = written(&run);
    assert!(disks[0] >= 400 && disks[1] + disks[2] + disks[3] == 0 && disks[0] == disks[4], "{disks:?}");
    let sync = figure(&run, "t.fsync.max_seconds");
    assert!((7.0..8.8).contains(&sync), "{sync} s");
}

#[test]
fn a_stacked_device_has_a_bdi_of_its_own() {
    use floodline_record::facts::Stack;
    let check = |backing: &str, expect: (&str, Stack, u64), read_ahead: u64| {
        let run = stacked(backing);
        let device = run.window.facts.as_ref().and_then(|facts| facts.devices.last().cloned()).expect("a device");
        let found = (&*device.name.to_string(), device.stack, device.size.map_or(0, |size| size.0 >> 30));
        assert_eq!(found, expect, "{backing}");
        // Twice the stripe. Only the wb of the device on top has written pages.
        let kib: Vec<_> =
            run.window.bdis.values().map(|bdi| bdi.last.read_ahead.map_or(0, |size| size.0 >> 10)).collect();
        assert!(kib.contains(&read_ahead) && kib.iter().filter(|kib| **kib == 128).count() >= 4, "{backing}: {kib:?}");
        let mib: Vec<_> = run.window.wbs.values().map(|wb| wb.last.written.map_or(0, |size| size.0 >> 20)).collect();
        assert!(
            mib.iter().filter(|mib| **mib > 0).count() == 1 && mib.iter().sum::<u64>() >= 400,
            "{backing}: {mib:?}"
        );
    };
    let dm = || Stack::Dm { name: floodline_record::name::Name::new("top") };
    let md = |level: &str| Stack::Md { level: level.into() };
    check("{ raid0 = { members = [\"a\", \"b\", \"c\"] } }", ("md0", md("raid0"), 3), 3072);
    check("{ raid10 = { members = [\"a\", \"b\", \"c\", \"d\"] } }", ("md0", md("raid10"), 2), 2048);
    check("{ striped = { members = [\"a\", \"b\"] } }", ("dm-0", dm(), 2), 256);
    check("{ linear = { members = [\"a\", \"b\"] } }", ("dm-0", dm(), 2), 128);
}

/// 100 MiB written and synced to a disk of 50 MB/s that is encrypted, then read.
fn encrypted(backing: &str, cpus: u32, kernel: &str) -> Run {
    let text = format!(
        "name = \"encrypted\"\nsummary = \"A device that encrypts\"\n[machine]\nmemory = \"2 GiB\"\ncpus = {cpus}\n\
         [machine.devices.a]\nsize = \"1 GiB\"\nwrite_bandwidth = \"50 MB/s\"\nread_bandwidth = \"50 MB/s\"\nburst = \"0s\"\n\
         [machine.devices.b]\nsize = \"1 GiB\"\nwrite_bandwidth = \"50 MB/s\"\nread_bandwidth = \"50 MB/s\"\nburst = \"0s\"\n\
         [machine.devices.top]\nbacking = {backing}\n\
         [machine.mounts.\"/data\"]\ntype = \"xfs\"\ndevice = \"top\"\n\
         [workload.tasks.t]\nsteps = [\n\
         {{ write = {{ file = \"/data/a\", block = \"1 MiB\", total = \"100 MiB\" }} }}, {{ fsync = {{ file = \"/data/a\" }} }},\n\
         {{ read = {{ file = \"/data/a\", order = \"random\", block = \"1 MiB\", count = 50, direct = true }} }}]\n"
    );
    run_of(&scenario(&text), kernel, |_| true)
}

#[test]
fn encryption_is_as_fast_as_the_cpus_and_the_disk() {
    let check = |rate: &str, cpus, sync: std::ops::Range<f64>| {
        let backing = format!("{{ crypt = {{ member = \"a\", cpu_bandwidth = \"{rate}\" }} }}");
        let run = encrypted(&backing, cpus, "6.12");
        let took = figure(&run, "t.fsync.max_seconds");
        assert!(sync.contains(&took), "{rate} on {cpus} CPUs: {took} s");
        // The disk and the device on it count each byte once.
        let disks = written(&run);
        assert!((100..=103).contains(&disks[0]) && disks[0] == disks[2] && disks[1] == 0, "{disks:?}");
    };
    // 105 MB at 50 MB/s of the disk, then at 20 and at 4 times 10 MB/s of the CPUs.
    check("2 GB/s", 2, 1.9..2.4);
    check("20 MB/s", 1, 5.0..5.7);
    check("10 MB/s", 4, 2.5..3.1);
}

#[test]
fn a_read_is_decrypted_by_as_many_cpus_as_it_has_pieces() {
    // 1 MiB takes 21.5 ms of the disk, and 50 ms of one CPU.
    let backing = "{ crypt = { member = \"a\", cpu_bandwidth = \"20.97152 MB/s\" } }";
    let check = |kernel: &str, expect: f64| {
        let took = figure(&encrypted(backing, 4, kernel), "t.read.p50_seconds");
        assert!((took - expect).abs() < 0.003, "{kernel}: {took} s");
    };
    check("6.1", 0.0715);
    // Two rounds of four pieces.
    check("6.12", 0.0340);
}

#[test]
fn a_device_of_stacked_devices_is_a_device() {
    let text =
        "{ crypt = { member = \"m\" } }\n[machine.devices.m]\nbacking = { raid1 = { members = [\"a\", \"b\"] } }";
    for kernel in ["6.1", "6.12", "7.2"] {
        let run = encrypted(text, 2, kernel);
        let disks = written(&run);
        assert!(disks.len() == 4 && disks.iter().all(|disk| *disk == disks[0] && *disk >= 100), "{kernel}: {disks:?}");
        let sync = figure(&run, "t.fsync.max_seconds");
        assert!((1.9..2.5).contains(&sync), "{kernel}: {sync} s");
        // Older kernels do not report the pages written by each wb.
        let wbs = run.window.wbs.values().filter(|wb| wb.last.written.is_some_and(|size| size.0 > 1 << 20)).count();
        assert_eq!(wbs, usize::from(kernel != "6.1"), "{kernel}");
    }
}

#[test]
fn the_flusher_waits_for_no_queue_below_encryption() {
    let text = MIRRORED.replace("raid1 = { members = [\"left\", \"right\"] }", "crypt = { member = \"left\" }");
    let text = text.replace("size = \"1 GiB\"", "size = \"1 GiB\"\nqueue = { nr_requests = 4, wbt_latency = \"0s\" }");
    let requests = requests_of(&scenario(&text), "6.12");
    assert!(requests.iter().all(|[disk, other, _]| *disk <= 4 && *other == 0), "{requests:?}");
    assert!(requests.iter().any(|[disk, _, top]| *disk == 4 && *top > 16), "{requests:?}");
}

#[test]
fn a_page_of_a_large_folio_goes_to_the_stripe_that_has_it() {
    let text = MIRRORED.replace("raid1", "raid0").replace("ext4", "xfs");
    let steps = r#"[{ write = { file = "/data/a", order = "random", size = "200 MiB", count = 400 } }, { fsync = { file = "/data/a" } }]"#;
    let setup =
        r#"[{ write = { file = "/data/a", block = "1 MiB", total = "200 MiB" } }, { fsync = { file = "/data/a" } }]"#;
    let at = text.find("[workload.tasks.").expect("a task");
    let text = format!("{}[workload.tasks.w]\nsetup = {setup}\nsteps = {steps}\n", &text[..at]);
    let run = run_of(&scenario(&text), "6.12", |_| true);
    // The setup writes as many requests to both.
    let writes: Vec<u64> = run.window.disks.values().map(|disk| disk.last.writes.expect("known").0).collect();
    let part = writes[0] as f64 / writes[1] as f64;
    assert!((0.75..1.33).contains(&part), "{writes:?}");
}
