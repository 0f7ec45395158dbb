// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bytes of a recording → a window, and the causes for which a file has no answer. Stops after a bounded number of
//! samples: a file of any length is judged by its first part.

use crate::change::Change;
use crate::reread;
use crate::row::{Cause, Row};
use floodline_analysis::diagnose::unmount::wait::UMOUNT;
use floodline_record::human;
use floodline_record::record::{Record, Sink};
use floodline_record::recording::{DecodeError, Decoder, Unused, Why};
use floodline_record::window::Window;
use std::convert::Infallible;
use std::io::{self, Read};
use std::ops::ControlFlow;

/// Samples of a recording that are read: a day at one sample in 5 s.
pub const SAMPLES_MAX: u64 = 20_000;

/// Columns of large tables that neither budgets nor the rules of [`crate::rules`] read. They are passed over: a busy host
/// has as many readings of them as of the others.
pub(crate) const UNUSED: [(&str, &[&str]); 4] = [
    ("wb", &["b_dirty", "b_io", "b_more_io", "b_dirty_time"]),
    (
        "cgroup",
        &[
            "kernel",
            "shmem",
            "file_mapped",
            "pgfault",
            "pgmajfault",
            "workingset_refault_file",
            "events_high",
            "events_max",
            "events_oom_kill",
            "memory_some",
            "memory_full",
            "io_full",
            "nr_descendants",
        ],
    ),
    ("cgroup_io", &["dbytes", "dios", "cost_wait"]),
    ("process", &["rchar", "syscr"]),
];

/// The same for a change that leaves less memory: what programs read then counts.
const UNUSED_BESIDE_READS: [(&str, &[&str]); 3] = [UNUSED[0], UNUSED[1], UNUSED[2]];

/// Kinds of events that neither budgets nor those rules read: what a workload reports of its tasks. The model and the lab
/// record thousands of them.
const UNUSED_EVENTS: [&str; 5] = ["task_started", "task_ended", "task_operations", "task_io", "task_throttled"];

/// Operations whose stalls are read by the rules that the pre-flight runs.
const STALLS_OF: [&str; 1] = [UMOUNT];

/// A format in which recordings are packed: where its magic number is, the number, its name, and what unpacks it.
type Packed = (usize, &'static [u8], &'static str, &'static str);
const PACKED: [Packed; 6] = [
    (0, b"\x1f\x8b", "compressed by gzip", "unpack it: gunzip < FILE > HOST.flr"),
    (0, b"\x28\xb5\x2f\xfd", "compressed by zstd", "unpack it: zstd -dc FILE > HOST.flr"),
    (0, b"\xfd7zXZ\0", "compressed by xz", "unpack it: xz -dc FILE > HOST.flr"),
    (0, b"BZh", "compressed by bzip2", "unpack it: bzip2 -dc FILE > HOST.flr"),
    (0, b"PK\x03\x04", "a zip archive", "unpack it: unzip FILE; then name the recordings in it"),
    (257, b"ustar", "a tar archive", "unpack it: tar -xf FILE; then name the recordings in it"),
];
/// Bytes at the start of a file that show its format.
pub(crate) const START: u64 = 512;

/// Why a file has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// Stable word for it.
    pub cause: Cause,
    /// One sentence.
    pub why: String,
    /// What to type next, where that of the cause is not the right one.
    hint: Option<&'static str>,
}

impl Unreadable {
    fn new(cause: Cause, why: String) -> Unreadable {
        Unreadable { cause, why, hint: None }
    }

    /// Reports why a file could not be opened or read.
    pub fn of_io(error: &io::Error) -> Unreadable {
        if error.kind() == io::ErrorKind::NotFound {
            let hint = Some("correct the path; a path without / in front starts in the current folder");
            return Unreadable {
                hint,
                ..Unreadable::new(Cause::FileUnreadable, "The file does not exist.".to_owned())
            };
        }
        Unreadable::new(Cause::FileUnreadable, format!("The file cannot be read: {error}."))
    }

    /// Reports why an existing file is not opened.
    pub fn not_a_file(kind: &str) -> Unreadable {
        Unreadable::new(Cause::NotAFile, format!("It is {kind}, not a file."))
    }

    /// The row of the file.
    pub fn row(&self, name: &str, change: &Change) -> Row {
        let mut row = Row::not_known(name, change, self.cause, self.why.clone());
        if let Some(hint) = self.hint {
            row.hint = hint.to_owned();
        }
        row
    }

    /// Names the format of a file that is not a recording, if it is a known one. `start` has its first bytes.
    pub(crate) fn named_by(self, start: &[u8]) -> Unreadable {
        let is_it = |(at, magic, ..): &&Packed| start.get(*at..).is_some_and(|rest| rest.starts_with(magic));
        match PACKED.iter().find(is_it).filter(|_| self.cause == Cause::NotARecording) {
            Some((.., kind, hint)) => Unreadable {
                hint: Some(*hint),
                ..Unreadable::new(self.cause, format!("It is {kind}, not a recording."))
            },
            None => self,
        }
    }

    fn of(error: DecodeError) -> Unreadable {
        let cause = match &error {
            DecodeError::Read(error) => return Unreadable::of_io(error),
            DecodeError::Empty => Cause::FileEmpty,
            DecodeError::NotARecording => Cause::NotARecording,
            DecodeError::NewerFormat { .. } => Cause::NewerFormat,
            DecodeError::NoHeader => Cause::Truncated,
            DecodeError::DamagedStart | DecodeError::DamagedHeader | DecodeError::TooMuch(_) => Cause::Damaged,
        };
        let text = error.to_string();
        let mut letters = text.chars();
        let first = letters.next().map(char::to_uppercase).into_iter().flatten().collect::<String>();
        Unreadable::new(cause, format!("{first}{}.", letters.as_str()))
    }
}

/// What was missing in a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    /// One sentence.
    pub(crate) text: String,
    /// Whether samples were lost between those that were read: what happened meanwhile is not known.
    pub(crate) has_holes: bool,
    /// Whether the end of the file is missing.
    pub(crate) is_cut: bool,
}

/// Folds a recording. Returns what was missing in it.
pub(crate) fn fold<S: Sink<Error = Infallible> + Default>(reader: impl Read) -> Result<(S, Option<Note>), Unreadable> {
    let mut decoder = Decoder::new(reader).map_err(Unreadable::of)?;
    let mut folded = S::default();
    let mut samples = 0;
    let went = decoder.lend(|record| {
        samples += u64::from(matches!(record, Record::Sample(_)));
        let Ok(()) = folded.record(record);
        if samples < SAMPLES_MAX { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    went.map_err(Unreadable::of)?;
    Ok((folded, note(&decoder, samples)?))
}

/// Folds a recording into a window for the arithmetic, by column where that is possible. `open` is called once more where it is not.
pub(crate) fn window<R: Read>(
    open: impl Fn() -> Result<R, Unreadable>,
    change: &Change,
) -> Result<(Window, Option<Note>), Unreadable> {
    let columns: &[_] = if reread::is_possible(change) { &UNUSED_BESIDE_READS } else { &UNUSED };
    let unused = Unused { columns, events: &UNUSED_EVENTS, stalls_of: Some(&STALLS_OF) };
    let mut decoder = Decoder::new(open()?).map_err(Unreadable::of)?;
    let mut window = Window::default();
    match decoder.fold_into(&mut window, SAMPLES_MAX, unused).map_err(Unreadable::of)? {
        Some(samples) => Ok((window, note(&decoder, samples)?)),
        None => fold(open()?),
    }
}

/// What was missing in a recording of which a number of samples were read.
fn note<R: Read>(decoder: &Decoder<R>, samples: u64) -> Result<Option<Note>, Unreadable> {
    let cut = decoder.cuts().iter().find(|cut| cut.why != Why::NotClosed);
    if samples == 0 {
        return Err(match cut {
            Some(cut) => Unreadable::new(
                if cut.why == Why::Truncated { Cause::Truncated } else { Cause::Damaged },
                format!("No sample can be read: {cut}."),
            ),
            None => Unreadable::new(Cause::NoSample, "The recording contains no sample.".to_owned()),
        });
    }
    let has_holes = decoder.cuts().iter().any(|cut| matches!(cut.why, Why::Damaged | Why::Malformed));
    let is_cut = decoder.cuts().iter().any(|cut| cut.why == Why::Truncated);
    let text = match (cut, decoder.unknown_records()) {
        _ if samples >= SAMPLES_MAX => {
            Some(format!("Judged by the first {} only.", human::plural(samples, "sample", "samples")))
        }
        (Some(cut), _) => Some(format!("Judged by a part: {cut}.")),
        (None, unknown) if unknown > 0 => Some(format!(
            "Skipped {}.",
            human::plural(unknown, "record of a newer version", "records of a newer version")
        )),
        _ => None,
    };
    Ok(text.map(|text| Note { text, has_holes, is_cut }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arithmetic;
    use floodline_record::metric::Row as Columns;
    use floodline_record::record::{Event, What};
    use floodline_record::recording::{Encoder, Header};
    use floodline_record::sample::{HostRow, Sample, Table, TableVisitorMut};
    use floodline_record::units::Nanos;
    use floodline_scenario::ScenarioFile;
    use floodline_sim::{Options, simulate};
    use floodline_testkit::Dice;
    use std::collections::BTreeSet;

    const SCENARIOS: [(&str, &str, &str); 4] = [
        ("starved-budget", "6.1.192", include_str!("../../../scenarios/starved-budget.toml")),
        ("inode-switch-storm", "6.12.43", include_str!("../../../scenarios/inode-switch-storm.toml")),
        ("overlay-umount", "6.12.43", include_str!("../../../scenarios/overlay-umount.toml")),
        ("healthy-containers", "6.12.117", include_str!("../../../scenarios/healthy-containers.toml")),
    ];

    const CHANGES: [&[&str]; 6] = [
        &["cgroup=v2"],
        &["cgroup=v1", "kernel=6.1.192"],
        &["kernel=6.12.43"],
        &["kernel=7.2.13"],
        &["vm.dirty_bytes=16777216", "vm.dirty_background_bytes=4194304"],
        &["vm.dirty_ratio=60", "vm.dirty_background_ratio=40"],
    ];

    /// Writes any readings into the columns that are passed over.
    struct Scramble(Dice);

    impl TableVisitorMut for Scramble {
        type Error = Infallible;

        fn host(&mut self, _: &mut HostRow) -> Result<(), Infallible> {
            Ok(())
        }

        fn table<R: Columns + 'static>(&mut self, table: &mut Table<R>) -> Result<(), Infallible> {
            let Some((_, unused)) = UNUSED.iter().find(|(name, _)| *name == R::TABLE) else { return Ok(()) };
            if !table.was_read() {
                return Ok(());
            }
            let mut rows = table.rows().to_vec();
            for (_, row) in &mut rows {
                for (index, _) in R::METRICS.iter().enumerate().filter(|(_, metric)| unused.contains(&metric.name)) {
                    let value = (self.0.roll(8) > 0).then(|| self.0.roll(1 << 40));
                    row.set(index, value);
                }
            }
            *table = Table::read(rows);
            Ok(())
        }
    }

    fn event(record: &Record) -> Option<&Event> {
        if let Record::Event(event) = record { Some(event) } else { None }
    }

    /// The kind of an event as it is in a file.
    fn kind(event: &Event) -> String {
        serde_json::to_value(event).unwrap()["event"].as_str().unwrap().to_owned()
    }

    fn is_unused(event: &Event) -> bool {
        UNUSED_EVENTS.contains(&kind(event).as_str()) || is_stall_of(event, false)
    }

    /// Whether an event is the stall of an operation that has a use, or of one that has none.
    fn is_stall_of(event: &Event, with_use: bool) -> bool {
        let What::TaskStall { operation, .. } = &event.what else { return false };
        STALLS_OF.iter().any(|used| operation == used) == with_use
    }

    /// A stall of a write, as long as that of an operation that has a use.
    fn written_as_long(record: &Record) -> Option<Record> {
        let like = event(record).filter(|event| is_stall_of(event, true))?;
        let What::TaskStall { task, lasted, .. } = &like.what else { return None };
        let what = What::TaskStall { task: task.clone(), operation: "write".into(), lasted: *lasted };
        Some(Record::Event(Event { at: like.at, what }))
    }

    fn records(name: &str, kernel: &str, text: &str) -> Vec<Record> {
        let scenario = ScenarioFile::parse(text).unwrap().variants.into_values().next().unwrap();
        let scenario = scenario.changed("workload.settle", "1s").unwrap().changed("workload.duration", "6s").unwrap();
        let options = Options { every: Nanos::SECOND, ..Options::new(name, kernel.parse().unwrap()) };
        let mut records = Vec::new();
        let take = |record: Record| {
            records.push(record);
            Ok(())
        };
        simulate(&scenario, &options, take, |_| true).unwrap();
        records
    }

    fn encoded(records: &[Record]) -> Vec<u8> {
        let mut encoder = Encoder::new(Vec::new(), Header::new(Some(Nanos::SECOND))).unwrap();
        records.iter().for_each(|record| encoder.record(record).unwrap());
        encoder.finish().unwrap()
    }

    #[test]
    fn the_columns_that_are_passed_over_exist() {
        struct Known(usize);
        impl TableVisitorMut for Known {
            type Error = Infallible;
            fn host(&mut self, _: &mut HostRow) -> Result<(), Infallible> {
                Ok(())
            }
            fn table<R: Columns + 'static>(&mut self, _: &mut Table<R>) -> Result<(), Infallible> {
                let unused = UNUSED.iter().filter(|(name, _)| *name == R::TABLE).flat_map(|(_, names)| *names);
                self.0 += unused.filter(|name| R::METRICS.iter().any(|metric| metric.name == **name)).count();
                Ok(())
            }
        }
        let mut known = Known(0);
        let Ok(()) = Sample::default().visit_mut(&mut known);
        assert_eq!(known.0, UNUSED.iter().map(|(_, names)| names.len()).sum::<usize>());
    }

    #[test]
    fn columns_that_are_passed_over_change_no_answer() {
        let mut stalls = [0; 2];
        for (name, kernel, text) in SCENARIOS {
            // Beside each wait of an unmount one that has no use: in six seconds no task of these lists another.
            let plain: Vec<Record> = records(name, kernel, text)
                .into_iter()
                .flat_map(|record| [written_as_long(&record), Some(record)])
                .flatten()
                .collect();
            let mut scramble = Scramble(Dice(0x5eed_0fc0_1000));
            let mut scrambled = plain.clone();
            for record in &mut scrambled {
                if let Record::Sample(sample) = record {
                    let Ok(()) = sample.visit_mut(&mut scramble);
                }
            }
            let file = encoded(&scrambled);
            let kinds: BTreeSet<String> = plain.iter().filter_map(event).map(kind).collect();
            assert!(UNUSED_EVENTS.iter().all(|unused| kinds.contains(*unused)), "{kinds:?}");
            let count = |with_use| plain.iter().filter_map(event).filter(|event| is_stall_of(event, with_use)).count();
            stalls = [stalls[0] + count(false), stalls[1] + count(true)];
            for change in CHANGES {
                let change = Change::parse(change, None, None, None).unwrap();
                let (narrow, _) = window(|| Ok(&file[..]), &change).unwrap();
                assert_eq!(
                    narrow.events.iter().filter(|event| is_stall_of(event, true)).count(),
                    count(true),
                    "{name}"
                );
                assert!(narrow.events.iter().all(|event| !is_unused(event)), "{name}");
                let judged = |window: &Window| arithmetic::judge(window, "a.flr", &change);
                let expected = judged(&Window::from_records(&plain));
                assert_eq!(judged(&Window::from_records(&scrambled)), expected, "{name}");
                assert_eq!(judged(&narrow), expected, "{name}");
            }
        }
        assert!(stalls.iter().all(|count| *count > 0), "{stalls:?}");
    }

    #[test]
    fn a_recording_with_a_hole_has_a_low_confidence() {
        let (name, kernel, text) = SCENARIOS[3];
        let whole = encoded(&records(name, kernel, text));
        let change = Change::parse(&["vm.dirty_ratio=60"], None, None, None).unwrap();
        let judged = |file: &[u8]| crate::preflight(file, "a.flr", &change, crate::Depth::ARITHMETIC);
        assert_eq!(judged(&whole).confidence, crate::Confidence::Medium);
        let mut damaged = whole.clone();
        damaged[whole.len() * 4 / 5] ^= 0xff;
        let row = judged(&damaged);
        assert_eq!(row.confidence, crate::Confidence::Low, "{row:?}");
        assert!(row.samples > 0 && row.notes.iter().any(|note| note.contains("damaged")), "{:?}", row.notes);
    }
}
