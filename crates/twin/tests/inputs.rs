// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recordings that differ from those of a guest: each gives a twin that is a good scenario and that the model runs, or an
//! error that says what to type next.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use floodline_record::name::is_plain;
use floodline_record::record::Record;
use floodline_record::recording::Decoder;
use floodline_record::units::{Bytes, Count, Nanos, Pages};
use floodline_scenario::{CgroupMode, ScenarioFile};
use floodline_testkit::heavy::Heavy;
use floodline_testkit::hostile::{PAYLOAD, Piece, of_everything, planted};
use floodline_testkit::incidents::INCIDENTS;
use floodline_testkit::{Fixture, grows};
use floodline_twin::{Demand, Options, Origin, Recorded, Twin, TwinError, of, run, to_toml};

fn twin(records: &[Record]) -> Result<Twin, TwinError> {
    of(&Recorded::from_records(records), &Options::default())
}

/// Most programs of a twin that is run.
const PROGRAMS_MAX: usize = 3;

/// A machine with a writer that does not wait.
fn busy() -> Fixture {
    Fixture::healthy().host(|t, row| row.nr_dirtied = Some(Pages((2560.0 * t) as u64))).process(
        "writer",
        900,
        "/system.slice/writer.service",
        |t, row| {
            row.wchar = Some(Bytes((10_485_760.0 * t) as u64));
            row.syscw = Some(Count((160.0 * t) as u64));
            row.write_bytes = Some(Bytes((10_485_760.0 * t) as u64));
            row.blkio_delay = Some(Nanos(0));
        },
    )
}

/// The twin of a recording, as a scenario that runs, or its error, which has a hint.
fn check(name: &str, records: &[Record]) -> Option<Twin> {
    match twin(records) {
        Ok(twin) => {
            let text = to_toml(&twin).unwrap();
            assert!(text.chars().all(|c| c == '\n' || is_plain(c)), "{name}: {text:?}");
            let file = ScenarioFile::parse(&text).unwrap_or_else(|error| panic!("{name}: {error}\n{text}"));
            assert_eq!(file.variants.into_values().next().unwrap(), twin.scenario, "{name}");
            // Running a large one takes long where nothing is optimised.
            if twin.programs.len() <= PROGRAMS_MAX {
                let done = run::run(&twin.scenario, twin.kernel, twin.every);
                done.unwrap_or_else(|error| panic!("{name}: {error}\n{text}"));
            }
            println!("{name}: a twin of {} programs", twin.programs.len());
            Some(twin)
        }
        Err(error) => {
            println!("{name}: {error}");
            assert!(error.hint().is_some(), "{name}: {error}");
            None
        }
    }
}

#[test]
fn every_recording_made_by_hand_has_a_twin_or_an_error_with_a_hint() {
    for incident in INCIDENTS {
        check(incident.name, &(incident.make)().records());
    }
    check("everything", &of_everything());
}

#[test]
fn the_source_of_a_key_is_told_once_for_all_steps_of_a_task() {
    let bursts = busy().process("writer", 900, "/system.slice/writer.service", |t, row| {
        row.wchar = Some(Bytes(((t / 7.0).floor() * 7e7) as u64));
        row.syscw = Some(Count(((t / 7.0).floor() * 1100.0) as u64));
    });
    let twin = check("bursts", &bursts.records()).unwrap();
    let text = to_toml(&twin).unwrap();
    assert!(text.matches("\nblock = ").count() > 1, "{text}");
    assert_eq!(text.matches("# measured: wchar divided by write calls\n").count(), 1, "{text}");
}

#[test]
fn splice_is_no_store_to_a_mapping() {
    let splices = |cached: f64| {
        let fixture = busy().process("writer", 900, "/system.slice/writer.service", |t, row| {
            row.wchar = Some(Bytes(0));
            row.syscw = Some(Count(0));
            row.minflt = Some(Count((2.0 * t) as u64));
        });
        let fixture = fixture.cgroup("/system.slice/writer.service", move |t, row| row.file = grows(t, 0, cached));
        to_toml(&check("splice", &fixture.records()).unwrap()).unwrap()
    };
    let (new, kept) = (splices(10_485_760.0), splices(0.0));
    assert!(new.contains("order = \"append\"") && !new.contains("mmap_store"), "{new}");
    assert!(kept.contains("mmap_store"), "{kept}");
}

#[test]
fn names_of_a_stranger_are_harmless_in_the_file() {
    let records = busy().records();
    let (bytes, count) = planted(&records, PAYLOAD, |piece| piece != Piece::Header);
    assert!(count > 20, "{count}");
    let records: Vec<Record> = Decoder::new(bytes.as_slice()).unwrap().map(Result::unwrap).collect();
    assert!(check("hostile", &records).is_some());
}

#[test]
fn much_in_a_small_file_is_borne() {
    for heavy in Heavy::ALL {
        check(&format!("{heavy:?}"), &heavy.records(300));
    }
}

#[test]
fn what_is_too_little_is_refused_by_name() {
    let error = |records: &[Record]| twin(records).map(|_| ()).unwrap_err().to_string();
    assert!(error(&busy().one_look().records()).contains("too short"));
    assert!(error(&busy().seconds(2).records()).contains("too short"));
    let idle = Fixture::healthy().process("nginx", 500, "/", |_, row| {
        row.write_bytes = Some(Bytes(0));
        row.wchar = Some(Bytes(0));
    });
    let idle = idle.host(|_, row| row.nr_dirtied = Some(Pages(7)));
    assert!(error(&idle.records()).contains("nothing was written"));
    let no_facts: Vec<Record> =
        busy().records().into_iter().filter(|record| !matches!(record, Record::Facts(_))).collect();
    assert!(error(&no_facts).contains("facts are missing"));
    let old = busy().kernel("3.10.0-1160.el7.x86_64");
    assert!(error(&old.records()).contains("oldest kernel"));
}

#[test]
fn samples_five_seconds_apart_keep_the_bytes() {
    let twin = check("slow samples", &busy().every(5.0).seconds(60).records()).unwrap();
    assert_eq!(twin.every, Nanos(5_000_000_000));
    let simulated = run::run(&twin.scenario, twin.kernel, Nanos(1_000_000_000)).unwrap();
    let dirtied = simulated.host.growth.nr_dirtied.unwrap().0 as f64 * 4096.0 / twin.seconds;
    assert!((dirtied / 10_485_760.0 - 1.0).abs() < 0.1, "{dirtied}");
}

#[test]
fn a_writer_that_never_waits_needs_no_second_twin() {
    let twin = check("busy", &busy().records()).unwrap();
    assert!(matches!(twin.demand, Demand::Free));
    assert!(twin.ceilings.iter().all(|ceiling| !ceiling.is_known), "{:?}", twin.ceilings);
    assert!(twin.unknown.iter().any(|said| said.contains("Nothing was traced")), "{:?}", twin.unknown);
    let origin = |key: &str| twin.provenance.iter().find(|known| known.key == key).map(|known| known.origin);
    assert_eq!(origin("machine.sysctl.vm.dirty_ratio"), Some(Origin::Measured));
    assert_eq!(origin("machine.memory"), Some(Origin::Derived));
}

#[test]
fn waits_that_were_traced_are_known_without_delay_accounting() {
    let says = |fixture: Fixture| {
        let fixture = fixture.facts(|facts| facts.task_delayacct = Some(false));
        let twin = check("waits", &fixture.records()).expect("it writes");
        twin.unknown.iter().any(|said| said.contains("waits were not traced"))
    };
    assert!(says(busy()));
    assert!(!says(busy().traced(&["bytes"], Vec::new())));
    assert!(says(busy().traced(&["flusher"], Vec::new())), "the flusher's part has no waits of programs");
}

#[test]
fn version_1_stays_version_1() {
    let undivided = INCIDENTS.iter().find(|incident| incident.name.contains("version 1")).unwrap();
    if let Some(twin) = check("v1", &(undivided.make)().records()) {
        assert_eq!(twin.scenario.machine.cgroup_mode, CgroupMode::V1);
    }
}

#[test]
fn what_a_child_left_to_its_parent_counts_once() {
    // The child writes 64 MiB and ends; the shell that waited for it has them from then on.
    let fixture = Fixture::healthy()
        .host(|t, row| row.nr_dirtied = Some(Pages(if t < 4.0 { (4096.0 * t) as u64 } else { 16_384 })))
        .process("sh", 900, "/", |t, row| {
            let has_reaped = t > 5.0;
            row.write_bytes = Some(Bytes(if has_reaped { 64 << 20 } else { 0 }));
            row.wchar = row.write_bytes;
            row.syscw = Some(Count(if has_reaped { 64 } else { 0 }));
            row.cminflt = Some(Count(u64::from(has_reaped)));
        })
        .process("dd", 901, "/", |t, row| {
            row.write_bytes = Some(Bytes(((16 << 20) as f64 * t.min(4.0)) as u64));
            row.wchar = row.write_bytes;
            row.syscw = Some(Count((16.0 * t.min(4.0)) as u64));
            row.ppid = Some(Count(900));
        });
    let mut records = fixture.records();
    let recorded = Recorded::from_records(&records);
    let child = recorded.window.entities.iter().find(|(_, entity)| format!("{entity:?}").contains("\"dd\"")).unwrap();
    let child = *child.0;
    for record in &mut records {
        if let Record::Sample(sample) = record
            && sample.time.monotonic.0 > recorded.window.first_at.unwrap().monotonic.0 + 5_000_000_000
        {
            let rows = sample.processes.rows().iter().filter(|(id, _)| *id != child).cloned().collect();
            sample.processes = floodline_record::sample::Table::read(rows);
        }
    }
    let recorded = Recorded::from_records(&records);
    let sum: u64 = recorded.processes.values().flatten().map(|did| did.dirtied).sum();
    let nginx = 2 << 20;
    assert!(sum < (64 << 20) + nginx, "{} MiB", sum >> 20);
}
