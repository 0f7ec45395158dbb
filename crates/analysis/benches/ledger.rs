// SPDX-License-Identifier: MIT OR Apache-2.0
//! The byte ledger of recordings that get longer: fifty files that become dirty each second, written at once, none of
//! them ever again, and a slow fsync. Four times the time is to take four times as long.
//! `cargo bench -p floodline-analysis --bench ledger`.

use divan::black_box;
use floodline_analysis::ledger::ledger;
use floodline_record::id::DevId;
use floodline_record::name::Name;
use floodline_record::record::{Event, What};
use floodline_record::traced::bytes::{Class, Dirtied, Submitted};
use floodline_record::traced::waits::{Operation, SlowSync};
use floodline_record::traced::{File, Who};
use floodline_record::units::{Bytes, Nanos};
use floodline_record::window::Window;

const FILES_PER_SECOND: u64 = 50;
const FILESYSTEM: DevId = DevId { major: 8, minor: 1 };
const DISK: DevId = DevId { major: 8, minor: 0 };
const CGROUP: u64 = 7;
const FOLIO: Bytes = Bytes(4096);

fn main() {
    divan::main();
}

#[divan::bench(args = [300, 1200], sample_count = 3)]
fn of_so_many_seconds(bencher: divan::Bencher, seconds: u64) {
    let mut window = Window::default();
    window.traced.insert("bytes".into());
    window.events = (1..=seconds).flat_map(events).collect();
    bencher.bench_local(|| ledger(black_box(&window)));
}

/// What a tracer reads after one second.
fn events(second: u64) -> Vec<Event> {
    let (since, at) = (Nanos((second - 1) * Nanos::SECOND.0), Nanos(second * Nanos::SECOND.0));
    let who = |pid| Who { pid, comm: Name::from("writer"), cgroup_ino: CGROUP };
    let submitted = |file| Submitted {
        since,
        disk: DISK,
        class: Class::Data,
        device: Some(FILESYSTEM),
        file,
        cgroup_ino: Some(CGROUP),
        who: None,
        bytes: FOLIO,
        bios: 1,
    };
    let mut read = Vec::new();
    for pid in 0..FILES_PER_SECOND {
        let file =
            Some(File { ino: second * FILES_PER_SECOND + pid, generation: None, path: Some(Name::from("/data/file")) });
        read.push(What::Dirtied(Dirtied {
            since,
            who: who(u32::try_from(pid).unwrap_or(u32::MAX)),
            device: FILESYSTEM,
            file: file.clone(),
            bytes: FOLIO,
            folios: 1,
            redirtied: Bytes(0),
        }));
        read.push(What::Submitted(submitted(file)));
    }
    // Files that are too small to be named are credited together.
    read.push(What::Submitted(submitted(None)));
    read.push(What::SlowSync(SlowSync {
        who: who(0),
        tid: None,
        operation: Operation::Fsync,
        lasted: Nanos(Nanos::SECOND.0 / 2),
        device: Some(FILESYSTEM),
        file: None,
        queued: None,
        own: Bytes(0),
    }));
    read.into_iter().map(|what| Event { at, what }).collect()
}
