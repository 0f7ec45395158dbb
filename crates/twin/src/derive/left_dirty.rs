// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pages of a rewritten file that were dirty when the recording began: the program writes to the same pages again, and dirties no others.

use super::bursts::size;
use super::workload::oldest;
use floodline_record::units::{Bytes, Nanos};
use floodline_record::window::Window;
use floodline_scenario::{ByteSize, Lasting, Step, Time, Write};

/// Steps that make `bytes` of a file dirty before the recording begins. `stores` is how long the task stores after them, seconds.
/// Together they last as long as the oldest page was dirty, as those of other dirty pages do.
pub(super) fn steps(bytes: f64, file: String, stores: f64, window: &Window) -> Vec<Step> {
    let oldest = oldest(window);
    let age = Nanos(oldest.0.min(most(window).0));
    let rest = Nanos(oldest.0 - age.0);
    let then = Nanos(age.0.saturating_sub((stores * 1e9) as u64));
    let sleep = |lasting| Step::Sleep(Lasting { lasting: Time(lasting) });
    let block = ByteSize(Bytes(1 << 16));
    let write = Step::Write(Write { file, block, total: Some(size(bytes)), ..Write::default() });
    let rest = (rest.0 > 0).then(|| sleep(rest));
    rest.into_iter().chain([write, sleep(then)]).collect()
}

/// Age of a page that the flusher has not found old in any of its rounds: one period less than that at which it is written, or half of
/// that where the period is longer.
fn most(window: &Window) -> Nanos {
    let host = &window.host.last;
    let expire = host.dirty_expire_centisecs.map_or(3000, |centisecs| centisecs.0);
    let every = host.dirty_writeback_centisecs.map_or(500, |centisecs| centisecs.0);
    Nanos(expire.saturating_sub(every).max(expire / 2).saturating_mul(10_000_000))
}

#[cfg(test)]
mod tests {
    use super::super::Fit;
    use super::super::group::{Bin, Group, sum};
    use super::super::machine::Place;
    use super::super::rewrites::Rewritten;
    use super::super::syncs::Syncs;
    use super::super::writer::Writer;
    use super::*;
    use crate::Recorded;
    use crate::provenance::Notes;
    use floodline_record::id::EntityId;
    use floodline_record::units::Centisecs;
    use floodline_testkit::Fixture;

    #[test]
    fn pages_that_were_dirty_are_not_old_before_the_recording_begins() {
        let told = |expire: u64, every: u64, stores: f64| {
            let window = Fixture::healthy()
                .host(move |t, row| {
                    row.dirty_expire_centisecs = Some(Centisecs(expire));
                    row.dirty_writeback_centisecs = Some(Centisecs(every));
                    row.nr_written = floodline_testkit::grows(t, 0, 10_000.0);
                })
                .window();
            let of = |step: &Step| match step {
                Step::Sleep(sleep) => Some(sleep.lasting.0.as_secs_f64()),
                _ => None,
            };
            steps(1e6, "/data/f".to_owned(), stores, &window).iter().map(of).collect::<Vec<_>>()
        };
        assert_eq!(told(3000, 500, 0.0), [Some(5.0), None, Some(25.0)]);
        assert_eq!(told(3000, 500, 4.0), [Some(5.0), None, Some(21.0)], "it stores for 4 s");
        assert_eq!(told(300, 500, 0.0), [Some(1.5), None, Some(1.5)]);
    }

    #[test]
    fn they_become_dirty_after_the_files_are_prepared_and_beside_what_stores_leave() {
        let bin = |at: u32| Bin {
            end: f64::from(at),
            length: 1.0,
            wchar: 1e6,
            by_calls: 1e6,
            calls: 16.0,
            mapped: 1e6,
            faults: 244.0,
            major: 244.0,
            read: 2e6,
            reads: 244.0,
            active: 1,
            ..Bin::default()
        };
        let bins: Vec<Bin> = (1..=9).map(bin).collect();
        let cgroup = Some(EntityId(7777));
        let group = Group { cgroup, part_of_mapped: 1.0, total: sum(&bins), bins, ..Group::default() };
        let mut recorded = Recorded::default();
        recorded.window = Fixture::healthy().window();
        let begin = recorded.window.first_at.expect("it has samples").monotonic;
        recorded.dirty.insert(EntityId(7777), vec![(begin, 3_000_000)]);
        let why = "a test";
        let ring = Rewritten { bytes: 5e6, is_ring: true, run: 1.0, is_there: false, dirty: 2_000_000.0, why };
        let (place, mut notes) = (Place::of_disk("sda"), Notes::default());
        let of = (Syncs::default(), Some(ring), false);
        let writer = Writer::of(&group, of, &place, "a", &recorded, &mut notes, &Fit::FIRST);
        let at = |is_it: &dyn Fn(&Step) -> bool| writer.setup.iter().position(is_it).expect("the step is there");
        let barrier = at(&|step| matches!(step, Step::Barrier(_)));
        let write = at(&|step| matches!(step, Step::Write(write) if write.file.ends_with("/data")));
        let stores = at(&|step| matches!(step, Step::MmapStore(_)));
        assert!(barrier < write && write < stores, "{:?}", writer.setup);
        assert_eq!(writer.dirty_before, 5_000_000);
    }
}
