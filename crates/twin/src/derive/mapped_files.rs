// SPDX-License-Identifier: MIT OR Apache-2.0
//! Steps around a mapped file: the task that makes it before the recording, and the calls that make it durable.

use super::bursts::{Burst, End, time};
use super::stores::PREPARED;
use crate::provenance::Notes;
use floodline_record::units::Bytes;
use floodline_scenario::{Barrier, ByteSize, Lasting, OnFile, Repeat, Step, Task, Time, Write};

/// The task that writes mapped files and drops them from the page cache, so that reading them back makes large folios. It closes
/// them, so that their inodes are dropped too: an inode that stays belongs to the cgroup of this task. It then rests until the
/// flusher has found nothing to do. So the first dirty page of the recording decides when the flusher wakes up.
pub(super) fn prepare(files: Vec<(String, u64)>, rest: Time) -> Task {
    let mut setup: Vec<Step> = files
        .into_iter()
        .flat_map(|(file, bytes)| {
            let total = Some(ByteSize(Bytes(bytes)));
            let write = Write { file: file.clone(), block: ByteSize(Bytes(1 << 20)), total, ..Write::default() };
            [Step::Write(write), Step::Close(OnFile { file })]
        })
        .collect();
    setup.extend([Step::Sync, Step::DropCaches, Step::Sleep(Lasting { lasting: rest })]);
    setup.push(Step::Barrier(Barrier { name: PREPARED.to_owned() }));
    Task { setup, ..Task::default() }
}

/// Steps that make a mapping durable `count` times in `seconds`. The stores between these calls are not counted.
pub(super) fn synced(file: String, count: f64, seconds: f64) -> Vec<Step> {
    let count = count.round().max(1.0);
    let every = time(seconds / count);
    let sync = Step::Fdatasync(OnFile { file });
    let repeat = Repeat { times: Some(count as u64), lasting: None, every: Some(every), steps: vec![sync] };
    vec![Step::Sleep(Lasting { lasting: every }), Step::Repeat(repeat)]
}

/// Largest relative difference between the numbers of syncs and of bursts, for one sync at the end of each burst.
const ONE_EACH: f64 = 0.25;

/// Returns the sync at the end of each burst of stores of a program that syncs `count` times and waits `waited` seconds in all. Bursts
/// without a pause between them count as one. `None` where there is one burst, or where the numbers of syncs and of bursts differ.
pub(super) fn at_ends(file: String, (count, waited): (f64, f64), bursts: &[Burst]) -> Option<End> {
    let is_last = |at: usize| bursts.get(at + 1).is_none_or(|next| next.from > bursts[at].to + 1e-3);
    let at: Vec<f64> = (0..bursts.len()).filter(|at| is_last(*at)).map(|at| bursts[at].to).collect();
    let is_it = at.len() > 1 && (count / at.len() as f64 - 1.0).abs() <= ONE_EACH;
    is_it.then(|| End { step: Step::Fdatasync(OnFile { file }), seconds: waited / at.len() as f64, at })
}

/// Notes where the syncs of a mapping come from.
pub(super) fn note(is_by_age: bool, key: &str, notes: &mut Notes) {
    let key = format!("{key}.steps.fdatasync");
    match is_by_age {
        true => notes.derived(key, "stored data stays dirty for a small part of the time that it would without a sync"),
        false => notes.measured(key, "calls for stable storage in the trace"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_record::units::Nanos;

    #[test]
    fn a_mapping_is_synced_as_often_as_the_trace_has_it() {
        let steps = synced("/data/state".to_owned(), 6.0, 42.0);
        let [Step::Sleep(first), Step::Repeat(repeat)] = steps.as_slice() else { panic!("{steps:?}") };
        assert_eq!((first.lasting, repeat.times, repeat.every), (repeat.every.expect("a time"), Some(6), repeat.every));
        assert_eq!(first.lasting, Time(Nanos(7_000_000_000)));
    }

    #[test]
    fn a_mapping_that_is_synced_as_often_as_it_is_stored_to_is_synced_after_the_stores() {
        let burst = |from: f64, to: f64| Burst::new(from, to, 1e5);
        let three = [burst(2.0, 3.0), burst(5.0, 6.0), burst(6.0, 7.0), burst(9.0, 10.0)];
        let end = |count: f64, bursts: &[Burst]| at_ends("/data/state".to_owned(), (count, 1.5), bursts);
        let ends = |count: f64, bursts: &[Burst]| end(count, bursts).map(|end| end.at);
        assert_eq!(ends(3.0, &three), Some(vec![3.0, 7.0, 10.0]));
        assert_eq!(end(3.0, &three).map(|end| end.seconds), Some(0.5), "the mean of its waits");
        assert_eq!(ends(9.0, &three), None, "several syncs for each burst");
        assert_eq!(ends(1.0, &three[..1]), None, "one stretch");
    }

    #[test]
    fn a_mapped_file_is_closed_before_the_caches_are_dropped() {
        let task = prepare(vec![("/data/mapped".to_owned(), 4096)], Time(Nanos(0)));
        let place = |is_it: fn(&Step) -> bool| task.setup.iter().position(is_it).expect("the step is there");
        let (close, drop) = (place(|step| matches!(step, Step::Close(_))), place(|step| *step == Step::DropCaches));
        assert!(close < drop, "{task:?}");
    }
}
