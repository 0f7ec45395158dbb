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
fn judged(text: &str, change: &str) -> Row {
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
    let change = Change::parse(&[change], None, None, None).expect("a change");
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
    let row = judged(host, "machine.devices.vda.queue.scheduler=none");
    assert_eq!(row.verdict, Verdict::Suffers, "{row:?}");
}
