// SPDX-License-Identifier: MIT OR Apache-2.0
//! The same on the model: hosts of kinds that no threshold was chosen on, each with a change. The recordings are made like
//! those of real hosts, which differ from those of guests: slow samples, holes, counters that step, processes of others
//! that the recorder may not read. The truth is the model, run with the change.

use super::pairs::{Move, One};
use super::score::{Judged, Noise, judge};
use super::why::{self, Real};
use super::{Pair, predict};
use crate::fleet::Hosts;
use crate::input::save as write;
use crate::{Failure, note};
use floodline_analysis::prediction::Setting;
use floodline_record::record::{Record, Sink};
use floodline_record::recording::Decoder;
use floodline_record::sample::{ProcessRow, Sample, Table};
use floodline_record::units::{Bytes, Pages};
use floodline_record::version::KernelVersion;
use floodline_record::window::Window;
use floodline_twin::predict::Measured;
use floodline_twin::{Options, Recorded};
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use std::path::Path;

/// How a recording differs from one of a guest.
type Shape = (&'static str, fn(Vec<Record>) -> Vec<Record>);

const SHAPES: [Shape; 5] = [
    ("samples of 1 s", |records| records),
    ("samples of 5 s", |records| thinned(records, |at| at % 5 == 0)),
    ("a hole of 8 s", |records| thinned(records, |at| !(10..18).contains(&at))),
    ("counters that step", |records| each_sample(records, stepped)),
    ("no root", without_root),
];

/// Those of the hosts that are shaped like real ones: several differences together.
const LIFELIKE: [Shape; 7] = [
    ("samples of 5 s", |records| thinned(records, |at| at % 5 == 0)),
    ("no root", without_root),
    ("a hole of 8 s", |records| thinned(records, |at| !(20..28).contains(&at))),
    ("counters that step", |records| each_sample(records, stepped)),
    ("samples of 5 s, no root", |records| without_root(thinned(records, |at| at % 5 == 0))),
    ("samples of 1 s", |records| records),
    ("two holes, counters that step", |records| {
        each_sample(thinned(records, |at| !(5..9).contains(&at) && !(30..42).contains(&at)), stepped)
    }),
];

fn shapes(hosts: Hosts) -> &'static [Shape] {
    if hosts.is_lifelike() { &LIFELIKE } else { &SHAPES }
}

/// Predicts the change of each of these hosts, or of those whose name contains a text. Writes their recordings to a folder.
///
/// # Errors
/// The list of hosts cannot be read.
pub(super) fn all(
    hosts: Hosts,
    only: Option<&str>,
    save: Option<&Path>,
    is_explained: bool,
) -> Result<Vec<Judged>, Failure> {
    let told = |at: usize| one(hosts, at, save, is_explained).inspect_err(|why| note(why)).ok();
    let names = hosts.names()?;
    let wanted: Vec<usize> = (0..names.len()).filter(|at| only.is_none_or(|only| names[*at].contains(only))).collect();
    let mut judged: Vec<Judged> = wanted.into_par_iter().filter_map(told).collect();
    judged.sort_by(|one, other| one.order().cmp(&other.order()));
    Ok(judged)
}

/// Predicts the change of one host from its recording.
pub(super) fn one(hosts: Hosts, at: usize, save: Option<&Path>, is_explained: bool) -> Result<Judged, String> {
    let held = hosts.host(at).map_err(|failure| failure.to_string())?;
    let shapes = shapes(hosts);
    let (shape, change) = shapes[at % shapes.len()];
    let wrong = |why: &dyn std::fmt::Display| format!("{}, {shape}: {why}; skipped", held.kind);
    let decoder = Decoder::new(held.recording.as_slice()).map_err(|error| wrong(&error))?;
    let records = decoder.collect::<Result<Vec<Record>, _>>().map_err(|error| wrong(&error))?;
    let records = change(records);
    let mut recorded = Recorded::default();
    for record in &records {
        let Ok(()) = recorded.record(record);
    }
    if let Some(folder) = save {
        write(&records, &folder.join(format!("{}.flr", held.kind))).map_err(|error| wrong(&error))?;
    }
    let settings: Vec<Setting> = held
        .change
        .iter()
        .filter_map(|part| part.split_once('='))
        .map(|(key, value)| Setting::new(key, value))
        .collect();
    let has = |key: &str| settings.iter().any(|one| one.key == key);
    let kind = match (has("kernel"), has("cgroup")) {
        (true, true) => Move::Both,
        (false, true) => Move::Cgroups,
        (true, false) => Move::Kernel,
        (false, false) => Move::Settings,
    };
    let twin = floodline_twin::of(&recorded, &Options::default()).map_err(|error| wrong(&error))?;
    let mut measured = Measured::of(&recorded.window);
    let before = told(held.kind, shape, held.kernel, recorded);
    let mut said = is_explained.then(Vec::new);
    let (prediction, runs) =
        predict(&before, &twin, &settings, &mut measured, &mut Vec::new(), &mut said).map_err(|error| wrong(&error))?;
    let truth = |window: Window| {
        let mut recorded = Recorded::default();
        recorded.window = window;
        told(held.kind, shape, held.kernel, recorded)
    };
    let all = [truth(held.before), truth(held.after)];
    let mut judged =
        judge(&prediction, &measured.said, (&Pair { kind, settings, before: 0, after: 1 }, &all), &Noise::new());
    if is_explained {
        judged.verdicts = Some(super::score::Explained::of(&prediction, runs, &measured, &all[1]));
    }
    if let Some(said) = &said {
        let real = Real { before: &before.recorded.window, after: &all[1].recorded.window };
        judged.why = why::why(&judged, &real, said);
    }
    Ok(judged)
}

fn told(kind: &str, shape: &str, kernel: KernelVersion, recorded: Recorded) -> One {
    let (scenario, variant) = (kind.to_owned(), format!("({shape})"));
    One { scenario, variant, is_advised: false, kernel, began: 0, slowdown: None, recorded }
}

/// Drops some samples. `is_kept` receives the number of samples before each.
fn thinned(records: Vec<Record>, is_kept: impl Fn(usize) -> bool) -> Vec<Record> {
    let mut at = 0;
    let is_left = |record: &Record| match record {
        Record::Sample(_) => {
            at += 1;
            is_kept(at - 1)
        }
        _ => true,
    };
    records.into_iter().filter(is_left).collect()
}

fn each_sample(records: Vec<Record>, change: fn(&mut Sample, usize)) -> Vec<Record> {
    let mut at = 0;
    let mut records = records;
    for record in &mut records {
        if let Record::Sample(sample) = record {
            change(sample, at);
            at += 1;
        }
    }
    records
}

/// From the twelfth sample on, the counters of devices and of the machine begin anew, as after a device was attached again.
fn stepped(sample: &mut Sample, at: usize) {
    const LESS: u64 = 1 << 20;
    if at < 12 {
        return;
    }
    let less = |pages: Option<Pages>| pages.map(|pages| Pages(pages.0 % LESS));
    (sample.host.nr_dirtied, sample.host.nr_written) = (less(sample.host.nr_dirtied), less(sample.host.nr_written));
    let mut rows = sample.disks.rows().to_vec();
    for (_, row) in &mut rows {
        row.written = row.written.map(|bytes| Bytes(bytes.0 % (LESS << 9)));
    }
    sample.disks = Table::read(rows);
}

/// Makes the I/O counters of every second process unreadable.
fn without_root(mut records: Vec<Record>) -> Vec<Record> {
    for record in &mut records {
        match record {
            Record::Facts(facts) => facts.privileged = Some(false),
            Record::Sample(sample) => {
                let mut rows = sample.processes.rows().to_vec();
                for (_, row) in rows.iter_mut().filter(|(id, _)| id.0 % 2 == 0) {
                    *row = ProcessRow {
                        rchar: None,
                        wchar: None,
                        syscr: None,
                        syscw: None,
                        read_bytes: None,
                        write_bytes: None,
                        cancelled_write_bytes: None,
                        ..row.clone()
                    };
                }
                sample.processes = Table::read(rows);
            }
            _ => {}
        }
    }
    records
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_least_twenty_held_out_hosts_are_recorded_in_every_shape_and_one_is_predicted() {
        let names = Hosts::HeldOut.names().expect("they are there");
        assert!(names.len() >= 20, "{}", names.len());
        let judged = one(Hosts::HeldOut, 0, None, false).expect("it has a twin");
        assert!(!judged.figures.is_empty() || judged.refused > 0, "{judged:?}");
    }
}
