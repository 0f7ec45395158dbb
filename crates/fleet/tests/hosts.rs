// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pre-flights of hosts that ran on the model: recorded once a second, without a trace and without the calls of their tasks.

use floodline_fleet::{Change, Depth, Row, Verdict, preflight_recorded};
use floodline_record::record::{Record, Sink};
use floodline_record::units::Nanos;
use floodline_record::version::KernelVersion;
use floodline_scenario::ScenarioFile;
use floodline_sim::{Options, simulate};
use floodline_twin::Recorded;

/// The row of a host for a change. `text` is its scenario without a name, a summary and a memory.
fn judged(text: &str, change: &[&str]) -> Row {
    let text = format!(
        "name = \"host\"\nsummary = \"a host\"\nmachine.memory = \"4 GiB\"\nmachine.cpus = 2\nworkload.duration = \"60s\"\n{text}\n"
    );
    let file = ScenarioFile::parse(&text).unwrap_or_else(|error| panic!("{error:?}"));
    let mut scenario = file.variants.into_values().next().expect("it has a variant");
    // A host has run for a while before it is recorded.
    scenario.machine.mounts.values_mut().for_each(|mount| mount.in_use = true);
    let mut recorded = Recorded::default();
    let every = Nanos(1_000_000_000);
    let options = Options { every, samples_workload: true, ..Options::new("host", KernelVersion::new(6, 12, 117)) };
    let take = |record: Record| {
        if !matches!(record, Record::Event(_)) {
            let Ok(()) = recorded.record(&record);
        }
        Ok(())
    };
    simulate(&scenario, &options, take, |_| true).expect("it runs");
    let change = Change::parse(change, None, None, None).expect("a change");
    preflight_recorded(&recorded, "host.flr", &change, Depth::WHOLE, &|| true)
}

#[test]
fn a_few_reads_that_wait_behind_writes_are_in_the_twin() {
    let host = "machine.sysctl.vm = { dirty_bytes = \"200 MiB\", dirty_background_bytes = \"16 MiB\" }\n\
                machine.devices.vda = { profile = \"hdd-5400\", size = \"400 GiB\", queue = { scheduler = \"mq-deadline\", nr_requests \
                = 256, wbt_latency = \"0s\" } }\n\
                machine.mounts.\"/data\" = { type = \"xfs\", device = \"vda\" }\n\
                machine.cgroups.\"page{i}\" = { instances = 4, memory_max = \"64 MiB\" }\n\
                workload.tasks.look = { cgroup = \"page{i}\", stagger = \"300ms\", setup = [{ write = { file = \"/data/book{i}\", block = \
                \"1 MiB\", total = \"400 MiB\" } }, { fsync = { file = \"/data/book{i}\" } }], steps = [{ read = { file = \
                \"/data/book{i}\", order = \"random\", block = \"4 KiB\", rate = \"0.5/s\" } }] }\n\
                workload.tasks.copy = { steps = [{ write = { file = \"/data/copy\", order = \"random\", size = \"2 GiB\", block = \
                \"64 KiB\", rate = \"4 MB/s\" } }] }";
    let row = judged(host, &["machine.devices.vda.queue.scheduler=none"]);
    assert_eq!(row.verdict, Verdict::Suffers, "{row:?}");
}

#[test]
fn pages_that_large_folios_write_again_wait_for_a_disk_whose_limit_was_not_seen() {
    let host = "machine.devices.vda = { size = \"100 GiB\", write_bandwidth = \"16 MB/s\", read_bandwidth = \"90 MB/s\" }\n\
                machine.mounts.\"/data\" = { type = \"ext4\", device = \"vda\", options = [\"noatime\"] }\n\
                machine.cgroups.table = { memory_max = \"1 GiB\" }\n\
                workload.tasks.table = { cgroup = \"table\", setup = [{ write = { file = \"/data/table\", block = \"1 MiB\", total = \"64 \
                MiB\" } }, { fsync = { file = \"/data/table\" } }], steps = [{ repeat = { every = \"6s\", steps = [{ mmap_store = { file = \
                \"/data/table\", size = \"64 MiB\", pages = 36, count = 1 } }, { msync = { file = \"/data/table\" } }] } }] }";
    let row = judged(host, &["kernel=7.2.13"]);
    assert_eq!(row.verdict, Verdict::Suffers, "{row:?}");
    assert!((1.2..6.0).contains(&row.severity), "{row:?}");
}

#[test]
fn scattered_pages_that_are_written_sooner_wait_for_requests_whose_limit_was_not_seen() {
    // Some 1,000 pages are rewritten in each second. At an age of 30 s they leave in few requests.
    let host = "machine.devices.vda = { size = \"100 GiB\", write_bandwidth = \"60 MB/s\", read_bandwidth = \"60 MB/s\", write_iops = \"240 \
                IO/s\" }\n\
                machine.mounts.\"/data\" = { type = \"xfs\", device = \"vda\" }\n\
                workload.tasks.table = { setup = [{ write = { file = \"/data/table\", block = \"1 MiB\", total = \"12 MiB\" } }, { fsync = { \
                file = \"/data/table\" } }], steps = [{ write = { file = \"/data/table\", order = \"random\", size = \"12 MiB\", rate = \
                \"1300/s\" } }] }\n\
                workload.tasks.mail = { preset.mail = { dir = \"/data/mail\", messages = \"4/s\", message = \"8 KiB\" } }";
    let row = judged(host, &["vm.dirty_expire_centisecs=100", "vm.dirty_writeback_centisecs=100"]);
    assert_eq!(row.verdict, Verdict::Suffers, "{row:?}");
    assert!(row.severity > 2.0, "{row:?}");
}

#[test]
fn an_image_that_gets_the_cache_depends_on_a_limit_that_was_not_seen() {
    // Programs would wait on a disk that can do no more than in its busiest interval, so that the recording excludes it.
    let host = "machine.devices.vda = { size = \"100 GiB\", write_bandwidth = \"14 MB/s\", read_bandwidth = \"60 MB/s\" }\n\
                machine.devices.loop0 = { size = \"2 GiB\", backing = { loop = { file = \"/host/guest.img\", direct_io = true } } }\n\
                machine.mounts.\"/host\" = { type = \"xfs\", device = \"vda\" }\n\
                machine.mounts.\"/guest\" = { type = \"ext4\", device = \"loop0\" }\n\
                machine.cgroups.guest = { memory_max = \"2 GiB\" }\n\
                workload.tasks.stream = { cgroup = \"guest\", steps = [{ write = { file = \"/guest/stream\", size = \"500000256 B\", block = \
                \"256 KiB\", rate = \"4000 kB/s\", direct = true } }] }\n\
                workload.tasks.save = { cgroup = \"guest\", start = \"2s\", steps = [{ repeat = { every = \"6s\", steps = [{ write = { file = \
                \"/guest/save\", block = \"32 KiB\", count = 1, truncate = true } }, { fsync = { file = \"/guest/save\" } }] } }] }";
    let row = judged(host, &["machine.devices.loop0.backing.loop.direct_io=false"]);
    assert_eq!(row.verdict, Verdict::NotKnown, "{row:?}");
}
