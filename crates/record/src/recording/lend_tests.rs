// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a decoder lends is what it gives, on whole and on damaged files, and a window makes the same of both. So does
//! the fold by column.

use super::frame::{self, PREAMBLE, kind};
use super::tests::{encode, frames, made, plain};
use super::{Decoder, Unused};
use crate::id::{DevId, Entity, EntityId, Hierarchy};
use crate::metric::Row;
use crate::record::{Event, Record, Sink, What};
use crate::sample::{CgroupIoRow, CgroupRow, HostRow, ProcessRow, Sample, SampleTime, Table, TableVisitorMut};
use crate::units::{Bytes, Count, Nanos};
use crate::window::Window;
use floodline_testkit::Dice;
use proptest::prelude::*;
use std::ops::ControlFlow;

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn samples_that_are_lent_are_those_that_are_given(
        bytes in proptest::collection::vec(any::<u8>(), 0..900),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
    ) {
        let mut file = encode(&made(&bytes));
        let start = PREAMBLE + 64;
        for (at, change) in changes {
            if file.len() > start {
                let at = start + at.index(file.len() - start);
                file[at] ^= change;
            }
        }
        let Ok(given) = Decoder::new(&file[..]) else { return Ok(()) };
        let given: Vec<Record> = given.map_while(Result::ok).collect();
        let (mut lent, mut window) = (Vec::new(), Window::default());
        let _ = Decoder::new(&file[..]).unwrap().lend(|record| {
            let Ok(()) = window.record(record);
            lent.push(record.clone());
            ControlFlow::Continue(())
        });
        prop_assert_eq!(&lent, &given);
        // Without what the decoder knows of rows that stand still.
        let forgotten: Vec<Record> = given.into_iter().map(|record| match record {
            Record::Sample(mut sample) => {
                let Ok(()) = sample.visit_mut(&mut Forget);
                Record::Sample(sample)
            }
            other => other,
        }).collect();
        prop_assert_eq!(format!("{window:?}"), format!("{:?}", Window::from_records(&forgotten)));
        if let Some(folded) = folded(&file) {
            prop_assert_eq!(told(&folded), told(&window));
        }
    }

    #[test]
    fn columns_and_rows_fold_into_one_window(seed in any::<u64>(), busy in 5..100_u64) {
        let file = encode(&busy_host(&mut Dice(seed | 1), busy));
        let mut window = Window::default();
        let ended = Decoder::new(&file[..]).unwrap().lend(|record| {
            let Ok(()) = window.record(record);
            ControlFlow::Continue(())
        });
        prop_assert!(ended.unwrap() && window.samples > 64, "{}", window.samples);
        prop_assert!(!window.cgroup_io.is_empty() && !window.wbs_unwritten_max.is_empty());
        prop_assert_eq!(folded(&file).map(|folded| told(&folded)), Some(told(&window)));
    }
}

proptest! {
    #[test]
    fn columns_without_a_use_are_left_out_and_no_other(seed in any::<u64>(), busy in 5..100_u64) {
        let dice = &mut Dice(seed | 1);
        let file = encode(&busy_host(dice, busy));
        let mut unused: Vec<&str> = Vec::new();
        unused.extend(CgroupRow::METRICS.iter().map(|metric| metric.name).filter(|_| dice.roll(2) == 0));
        let mut whole = folded(&file).unwrap();
        let part = folded_without(&file, &[("cgroup", &unused)]).unwrap();
        if unused.contains(&"file_dirty") || unused.contains(&"file_writeback") {
            whole.unwritten_max.clone_from(&part.unwritten_max);
        }
        if unused.contains(&"file_dirty") {
            whole.stat_reads.clone_from(&part.stat_reads);
        }
        for span in whole.cgroups.values_mut() {
            for row in [&mut span.first, &mut span.last, &mut span.min, &mut span.max, &mut span.growth] {
                for (index, _) in CgroupRow::METRICS.iter().enumerate().filter(|(_, metric)| unused.contains(&metric.name)) {
                    row.set(index, None);
                }
            }
        }
        prop_assert_eq!(told(&part), told(&whole));
    }
}

#[test]
fn readings_of_few_samples_come_back_as_they_were_and_their_rates_are_of_their_own_time() {
    let entity = |id, entity| Record::Entity(EntityId(id), entity);
    let cgroup = Entity::Cgroup { path: "/a".into(), hierarchy: Hierarchy::V2, ino: None };
    let io = Entity::CgroupIo { cgroup: EntityId(1), dev: DevId { major: 8, minor: 0 } };
    let mut records = vec![entity(1, cgroup), entity(2, io)];
    // A sample each 500 ms, of which one of four reads the counters: 0 s, 2 s and 4 s of 5 s.
    for number in 0..11_u64 {
        let at = Nanos(number * 500_000_000);
        let is_read = number % 4 == 0;
        let bytes = |value: u64| is_read.then_some(Bytes(value));
        let row = CgroupRow {
            memory_current: Some(Bytes(1 << 20)),
            file_dirty: bytes(4096 * number),
            pgfault: is_read.then_some(Count(10 * number)),
            io_some: Some(Nanos(number)),
            ..CgroupRow::default()
        };
        let io = CgroupIoRow { wbytes: bytes(1_000_000 * number), ..CgroupIoRow::default() };
        records.push(Record::Sample(Box::new(Sample {
            time: SampleTime { monotonic: at, wall: at },
            cgroups: Table::read(vec![(EntityId(1), row)]),
            cgroup_io: if is_read { Table::read(vec![(EntityId(2), io)]) } else { Table::default() },
            ..Sample::default()
        })));
    }
    let file = encode(&records);
    let back: Vec<Record> = Decoder::new(file.as_slice()).unwrap().map(Result::unwrap).collect();
    let samples = |records: &[Record]| -> Vec<Record> {
        records.iter().filter(|record| matches!(record, Record::Sample(_))).cloned().collect()
    };
    assert_eq!(samples(&back), samples(&records));
    let window = Window::from_records(&records);
    assert_eq!(folded(&file).map(|folded| told(&folded)), Some(told(&window)), "the same by columns");
    let io = &window.cgroup_io[&EntityId(2)];
    assert_eq!((io.growth.wbytes, io.seconds(), io.readings), (Some(Bytes(8_000_000)), 4.0, 3));
    let cgroup = &window.cgroups[&EntityId(1)];
    assert_eq!((cgroup.growth.pgfault, cgroup.seconds(), cgroup.readings), (Some(Count(80)), 5.0, 11));
    assert_eq!((cgroup.last.file_dirty, cgroup.max.file_dirty), (Some(Bytes(8 * 4096)), Some(Bytes(8 * 4096))));
    let reads: Vec<u64> = window.stat_reads.times.iter().map(|at| at.0 / 1_000_000_000).collect();
    assert_eq!((reads, window.stat_reads.distance()), (vec![0, 2, 4], Some(Nanos(2_000_000_000))));
}

#[test]
fn a_counter_that_comes_back_as_it_was_lost_has_a_growth() {
    let sample = |at: u64, rchar: Option<u64>| {
        let time = SampleTime { monotonic: Nanos(at), wall: Nanos(at) };
        let row = ProcessRow { rchar: rchar.map(Bytes), ..ProcessRow::default() };
        Record::Sample(Box::new(Sample { time, processes: Table::read(vec![(EntityId(1), row)]), ..Sample::default() }))
    };
    let records = [sample(1, Some(7)), sample(2, None), sample(3, Some(7))];
    let window = Window::from_records(&records);
    assert_eq!(window.processes[&EntityId(1)].growth.rchar, Some(Bytes(0)));
    assert_eq!(folded(&encode(&records)).map(|folded| told(&folded)), Some(told(&window)));
}

#[test]
fn a_sample_that_is_not_whole_is_folded_by_row() {
    let file = encode(&plain(5));
    assert!(folded(&file).is_some());
    let frames = frames(&file);
    let last = frames.iter().rposition(|(_, kind)| *kind == kind::RECORDS).unwrap();
    let (start, end) = (frames[last].0, frames[last + 1].0);
    let mut content = zstd::stream::decode_all(&file[start + frame::HEAD..end]).unwrap();
    content.pop();
    let mut spoilt = file[..start].to_vec();
    frame::put_frame(&mut spoilt, kind::RECORDS, &zstd::bulk::compress(&content, 1).unwrap());
    assert!(folded(&spoilt).is_none());
    // An entity with two rows in one sample.
    let mut twice = plain(2);
    let Some(Record::Sample(sample)) = twice.last_mut() else { panic!("a sample") };
    sample.cgroups = Table::read([sample.cgroups.rows(), sample.cgroups.rows()].concat());
    assert!(folded(&encode(&twice)).is_none());
}

#[test]
fn events_without_a_use_are_left_out_and_no_other() {
    let event = |at, what| Record::Event(Event { at: Nanos(at), what });
    let mut records = plain(3);
    records.extend([
        event(1, What::WorkloadEnded),
        event(2, What::Note { text: r#""event":"workload_ended""#.into() }),
        event(3, What::Missed { samples: 2 }),
    ]);
    let file = encode(&records);
    let times = |events: &[&str]| -> Vec<u64> {
        let mut window = Window::default();
        let unused = Unused { events, ..Unused::default() };
        assert_eq!(Decoder::new(&file[..]).unwrap().fold_into(&mut window, u64::MAX, unused).unwrap(), Some(3));
        window.events.iter().map(|event| event.at.0).collect()
    };
    assert_eq!(times(&[]), [1, 2, 3]);
    assert_eq!(times(&["workload_ended"]), [2, 3]);
    assert_eq!(times(&["note", "missed", "workload"]), [1]);
}

/// The window of a file, folded by column; `None` where that is not possible.
fn folded(file: &[u8]) -> Option<Window> {
    folded_without(file, &[])
}

/// The same without columns of a table.
fn folded_without(file: &[u8], unused: &[(&str, &[&str])]) -> Option<Window> {
    let mut window = Window::default();
    let mut decoder = Decoder::new(file).unwrap();
    let samples = decoder.fold_into(&mut window, u64::MAX, Unused { columns: unused, ..Unused::default() }).unwrap();
    assert!(decoder.next().is_none(), "it gives no records after a fold");
    let samples = samples?;
    assert_eq!(samples, window.samples);
    Some(window)
}

/// A window as text, without what only saves work.
fn told(window: &Window) -> String {
    format!("{window:?}").replace("is_settled: true", "is_settled: false")
}

/// Rows of the next sample: they come and go, gain and lose readings, and are reset.
fn table<R: Row>(dice: &mut Dice, rows: &mut Vec<(EntityId, R)>, first: u32, busy: u64) -> Table<R> {
    if dice.roll(8) == 0 {
        let id = EntityId(first + dice.roll(12) as u32);
        match rows.iter().position(|(known, _)| *known == id) {
            Some(at) => drop(rows.remove(at)),
            None => rows.push((id, R::default())),
        }
    }
    for (_, row) in rows.iter_mut() {
        if dice.roll(100) >= busy {
            continue;
        }
        for index in 0..R::METRICS.len() {
            let before = row.get(index);
            let now = match dice.roll(40) {
                0 => None,
                1 => Some(0),
                2 => Some(u64::MAX - dice.roll(5)),
                3..20 => before,
                20..30 => Some(before.unwrap_or(0).wrapping_add(dice.roll(1 << 20))),
                _ => before.map(|before| before.wrapping_add(4096 * dice.roll(64))),
            };
            row.set(index, now);
        }
    }
    // Not every table is read every time.
    if dice.roll(6) == 0 { Table::default() } else { Table::read(rows.clone()) }
}

/// A recording of two keyframes and more.
fn busy_host(dice: &mut Dice, busy: u64) -> Vec<Record> {
    let (mut wbs, mut cgroups, mut limits, mut io, mut processes) = (vec![], vec![], vec![], vec![], vec![]);
    let mut records = Vec::new();
    for at in 1..150 {
        if at == 1 || dice.roll(30) == 0 {
            records.extend((0..12).map(|wb| {
                let bdi = if dice.roll(2) == 0 { "8:0" } else { "8:16" };
                Record::Entity(EntityId(wb), Entity::Wb { bdi: bdi.into(), cgroup_ino: u64::from(wb) })
            }));
        }
        let time = SampleTime { monotonic: Nanos(at * 1_000_000_000), wall: Nanos(at * 1_000_000_000) };
        let mut sample = Sample { time, ..Sample::default() };
        sample.wbs = table(dice, &mut wbs, 0, busy);
        sample.cgroups = table(dice, &mut cgroups, 20, busy);
        sample.cgroup_limits = table(dice, &mut limits, 20, busy);
        sample.cgroup_io = table(dice, &mut io, 40, busy);
        sample.processes = table(dice, &mut processes, 60, busy);
        records.push(Record::Sample(Box::new(sample)));
    }
    records
}

/// Leaves the rows of a table and nothing else.
struct Forget;

impl TableVisitorMut for Forget {
    type Error = std::convert::Infallible;

    fn host(&mut self, _: &mut HostRow) -> Result<(), Self::Error> {
        Ok(())
    }

    fn table<R: Row + 'static>(&mut self, table: &mut Table<R>) -> Result<(), Self::Error> {
        if table.was_read() {
            *table = Table::read(table.rows().to_vec());
        }
        Ok(())
    }
}
