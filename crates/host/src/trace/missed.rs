// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events that the kernel ran no program for (`recursion_misses`, since 5.12): while a task is preempted within a
//! program, the kernel skips that program for other tasks of the CPU. Spare programs behind the first one handle such
//! events.

use libbpf_sys::{bpf_obj_get_info_by_fd, bpf_prog_info};
use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Events that were skipped since the programs were loaded, by program, and how many of them were reported as lost.
#[derive(Default)]
pub(super) struct Missed {
    programs: BTreeMap<String, u64>,
    lost: BTreeMap<String, u64>,
}

impl Missed {
    /// Returns the events lost since the last call, by the first program of those that share a tracepoint. `skipped`
    /// has the count of each attached program since it was loaded, `taken` the events that spares took.
    ///
    /// An event of a program with spares is lost if the first program was skipped and no spare took it. In one interval
    /// no more events can be lost than the smallest count of skips among these programs.
    pub(super) fn newly(&mut self, skipped: impl Iterator<Item = (String, u64)>, taken: u64) -> Vec<(String, u64)> {
        let mut least: BTreeMap<String, u64> = BTreeMap::new();
        for (name, count) in skipped {
            let before = self.programs.insert(name.clone(), count).unwrap_or(0);
            let group = least.entry(first_of(&name).to_owned()).or_insert(u64::MAX);
            *group = count.saturating_sub(before).min(*group);
        }
        let is_of = |first: &str, name: &String| is_spare(name) && first_of(name) == first;
        for (first, newly) in &mut least {
            let lost = self.lost.entry(first.clone()).or_default();
            if !self.programs.keys().any(|name| is_of(first, name)) {
                *lost += *newly;
                continue;
            }
            let all = self.programs.get(first).copied().unwrap_or(0).saturating_sub(taken);
            *newly = all.saturating_sub(*lost).min(*newly);
            *lost = all.max(*lost);
        }
        least.into_iter().filter(|(_, lost)| *lost > 0).collect()
    }
}

/// Returns whether a program is a spare, which handles events that another program was skipped for.
pub(super) fn is_spare(program: &str) -> bool {
    first_of(program) != program
}

/// Returns the program that a spare belongs to, or the program itself.
fn first_of(program: &str) -> &str {
    program.split_once("_spare").map_or(program, |(first, _)| first)
}

/// Returns how often the kernel skipped a program because it was already running.
#[allow(unsafe_code, reason = "libbpf-rs has no safe form for one field of a program")]
pub(super) fn skipped(program: BorrowedFd<'_>) -> Option<u64> {
    let mut info = bpf_prog_info::default();
    let mut size = u32::try_from(size_of_val(&info)).ok()?;
    // SAFETY: `info` is all zeroes, so that the kernel fills it alone and follows no pointer in it, and `size` is its
    // size; the call keeps neither.
    let result = unsafe { bpf_obj_get_info_by_fd(program.as_raw_fd(), (&raw mut info).cast(), &raw mut size) };
    (result == 0).then_some(info.recursion_misses)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts of programs, of events that spares took, and events that are newly lost.
    type Call<'a> = (&'a [(&'a str, u64)], u64, u64);

    fn check(calls: &[Call<'_>]) {
        let mut missed = Missed::default();
        for (skipped, taken, expect) in calls {
            let skipped = skipped.iter().map(|(name, count)| ((*name).to_owned(), *count));
            let lost: u64 = missed.newly(skipped, *taken).iter().map(|(_, lost)| lost).sum();
            assert_eq!(lost, *expect, "{calls:?}");
        }
    }

    #[test]
    fn an_event_is_lost_if_no_spare_took_it() {
        let with_spares = |a, b, c| [("queue", a), ("queue_spare1", b), ("queue_spare2", c)];
        // Each program was skipped for other events.
        check(&[(&with_spares(10, 12, 10), 10, 0)]);
        check(&[(&with_spares(10, 3, 2), 8, 2), (&with_spares(15, 4, 3), 12, 1), (&with_spares(15, 4, 3), 12, 0)]);
        // One that was under way is taken by the next call.
        check(&[(&with_spares(7, 1, 1), 6, 1), (&with_spares(9, 2, 2), 9, 0), (&with_spares(12, 3, 3), 10, 1)]);
        // A place that two tasks share lets a spare take an event twice.
        check(&[(&with_spares(5, 2, 2), 6, 0)]);
    }

    #[test]
    fn without_spares_every_skipped_event_is_lost() {
        check(&[(&[("dirty", 3)], 0, 3), (&[("dirty", 3)], 0, 0), (&[("dirty", 5)], 9, 2)]);
        // The spares come with the first one.
        check(&[(&[("queue", 4)], 0, 4), (&[("queue", 9), ("queue_spare1", 1), ("queue_spare2", 1)], 5, 0)]);
    }

    #[test]
    fn a_spare_is_named_after_the_program_before_it() {
        assert!(is_spare("on_block_bio_queue_spare2") && !is_spare("on_block_bio_queue"));
        assert_eq!(first_of("on_block_bio_queue_spare2"), "on_block_bio_queue");
    }
}
