// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads of a program that reach a device: all over a file and past the page cache, or a file in order, through the page cache and its
//! readahead.

use super::bursts::{Branch, arrivals, size};
use super::group::{Bin, Group, PAGE};
use super::machine::Place;
use crate::Recorded;
use crate::provenance::Notes;
use floodline_scenario::{Frequency, Order, Pace, Read, Step};

/// Fewest bytes read that are worth a step.
const LEAST: f64 = 262_144.0;
/// Part of the recording for which a program waits, from which its reads are worth a step, however few they are.
const WAITED: f64 = 0.01;
/// Sizes of a file that is read here and there, and largest call, bytes.
const FILE_MIN: f64 = 4_194_304.0;
const FILE_MAX: f64 = 67_108_864.0;
const CALL_MAX: f64 = 1_048_576.0;
/// Largest file that is read in order, bytes.
const STREAM_MAX: f64 = 8_589_934_592.0;
/// Bytes read from devices over bytes that read calls passed, where each byte is read from the device once.
const ONCE: std::ops::RangeInclusive<f64> = 0.8..=1.25;
/// Mean read of the device over mean call, at least, where readahead joins calls.
const JOINED: f64 = 2.0;

/// The reads of a program.
pub(super) struct Reads {
    pub(super) branch: Branch,
    /// Size of the file, bytes.
    pub(super) bytes: u64,
    /// Whether none of it may be in the page cache.
    pub(super) is_cold: bool,
}

/// What read calls did in the recording: bytes that they passed, and their number.
#[derive(Clone, Copy, Debug, Default)]
struct Called {
    bytes: f64,
    calls: f64,
}

impl Called {
    fn of(group: &Group, recorded: &Recorded) -> Called {
        let mut all = Called::default();
        for (_, span) in recorded.window.processes.iter().filter(|(id, _)| group.holds(recorded, id)) {
            all.bytes += span.growth.rchar.map_or(0.0, |bytes| bytes.0 as f64);
            all.calls += span.growth.syscr.map_or(0.0, |calls| calls.0 as f64);
        }
        all
    }

    /// Size of the calls of a program that reads files in order, bytes: all that they pass comes from the device, in larger requests.
    fn in_order(self, read: f64, mean_read: Option<f64>) -> Option<f64> {
        let call = self.bytes / self.calls.max(1.0);
        let is_joined = mean_read.is_some_and(|mean| mean >= JOINED * call);
        let is_it = call >= 512.0 && is_joined && ONCE.contains(&(read / self.bytes)) && read <= STREAM_MAX;
        is_it.then(|| ((call / PAGE).round().max(1.0) * PAGE).min(CALL_MAX))
    }
}

/// Whether the reads of a program are worth a step: they are many, or a program that mostly reads waits for them. On a slow disk behind a
/// full queue, a page may take a second.
fn are_worth(total: &Bin, seconds: f64) -> bool {
    let waits = total.waited >= WAITED * seconds && total.read >= PAGE.max(total.dirtied());
    total.read >= LEAST || waits
}

/// The reads of a program that reach a device; `None` where there are few, or where they are those of its mapping.
pub(super) fn reads(
    group: &Group,
    (place, recorded): (&Place, &Recorded),
    (file, copies): (String, u64),
    key: &str,
    notes: &mut Notes,
) -> Option<Reads> {
    let total = &group.total;
    let calls: f64 = group.bins.iter().filter(|bin| bin.read > 0.0).map(|bin| bin.reads).sum();
    // FIXME: faults of a mapping that is not cached read here and in the twin's mapping. Left out, they make the twin of
    // slow-disk-journal with its setup miss by 17 %: its only round of the flusher then falls into another wake-up.
    let is_for_mapping = total.mapped > 0.0 && total.read < total.mapped;
    if !are_worth(total, recorded.window.seconds()) || is_for_mapping {
        return None;
    }
    notes.derived(format!("{key}.steps.read.rate"), "bytes read from devices, over time");
    // The task that prepares the files does not know a separate copy of the task for each number.
    let in_order = Called::of(group, recorded).in_order(total.read, place.mean_read).filter(|_| copies == 1);
    let (block, bytes) = match in_order {
        Some(call) => {
            let text =
                "each byte is read from the device once, in larger requests than the calls: readahead joins them";
            notes.derived(format!("{key}.steps.read.block"), text);
            (call, total.read + CALL_MAX)
        }
        None => {
            notes.assumed(format!("{key}.steps.read.direct"), "each read that reached a device does so again");
            // Calls that the page cache served are counted too: use the device's mean read size instead.
            let mean = (total.read / calls.max(1.0)).max(place.mean_read.unwrap_or(PAGE));
            (((mean / PAGE).round().max(1.0) * PAGE).min(CALL_MAX), total.read.clamp(FILE_MIN, FILE_MAX))
        }
    };
    let is_cold = in_order.is_some();
    let step = move |count: u64, rate: Option<Frequency>| {
        let read = Read {
            file: file.clone(),
            order: if is_cold { Order::default() } else { Order::Random },
            block: size(block),
            rate: rate.map(Pace::Blocks),
            count: Some(count),
            direct: !is_cold,
            ..Read::default()
        };
        vec![Step::Read(read)]
    };
    let branch = Branch::new(arrivals(&group.bins, |bin| bin.read, block), block, step);
    Some(Reads { branch, bytes: (bytes / PAGE) as u64 * 4096, is_cold })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_reads_are_worth_a_step_where_a_program_waits_for_them() {
        let told = |read: f64, waited: f64, written: f64| {
            are_worth(&Bin { read, waited, by_calls: written, ..Bin::default() }, 60.0)
        };
        assert!(told(36.0 * PAGE, 12.0, 0.0), "36 scattered pages behind a full queue");
        assert!(!told(36.0 * PAGE, 0.3, 0.0), "36 pages that came at once");
        assert!(!told(0.0, 12.0, 0.0), "it waits for something else");
        assert!(!told(36.0 * PAGE, 12.0, 4e6), "it may wait for what it writes");
        assert!(told(LEAST, 0.0, 4e6));
    }

    #[test]
    fn calls_that_readahead_joins_read_a_file_in_order() {
        // 1,000 calls of 16 KiB.
        let told = |read: f64, mean_read: f64| {
            let called = Called { bytes: 16_384_000.0, calls: 1000.0 };
            called.in_order(read * 16_384_000.0, Some(mean_read))
        };
        assert_eq!(told(1.02, 1_048_576.0), Some(16_384.0));
        assert_eq!(told(1.0, 16_384.0), None, "each call is a request");
        assert_eq!(told(0.3, 1_048_576.0), None, "most of it is in the page cache");
        assert_eq!(told(6.0, 1_048_576.0), None, "most of what is read ahead is not used");
        assert_eq!(Called::default().in_order(1e6, Some(1e6)), None, "a mapping");
    }
}
