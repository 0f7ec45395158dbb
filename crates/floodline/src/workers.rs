// SPDX-License-Identifier: MIT OR Apache-2.0
//! Work that several threads share, and how far it is.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Time after which a look is due although no item is done.
const LOOK: Duration = Duration::from_millis(200);

/// How far the work is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Done {
    /// Items that are done.
    pub(crate) items: usize,
    /// All of them.
    pub(crate) of: usize,
    since: Instant,
}

impl Done {
    /// How long the rest takes if it goes on like this, as text behind a count; empty while that is unknown.
    pub(crate) fn left(&self) -> String {
        if self.items == 0 {
            return String::new();
        }
        let rest = self.of.saturating_sub(self.items) as f64;
        format!(", about {:.0} s left", self.since.elapsed().as_secs_f64() / self.items as f64 * rest)
    }
}

/// Runs each item once on that many threads; results are in the order of the items. A thread whose `run` answers `None` takes
/// no further item. `look` is called on the caller's thread, after each result (with it) and every 200 ms (without).
pub(crate) fn each<T: Sync, R: Send>(
    items: &[T],
    jobs: usize,
    run: impl Fn(&T) -> Option<R> + Sync,
    mut look: impl FnMut(Done, Option<&R>),
) -> Vec<Option<R>> {
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::sync_channel(256);
    let mut results: Vec<Option<R>> = items.iter().map(|_| None).collect();
    let mut done = Done { items: 0, of: items.len(), since: Instant::now() };
    std::thread::scope(|scope| {
        for _ in 0..jobs.min(items.len()) {
            let (sender, next, run) = (sender.clone(), &next, &run);
            scope.spawn(move || {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(result) = items.get(at).and_then(run) else { break };
                    if sender.send((at, result)).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        loop {
            match receiver.recv_timeout(LOOK) {
                Ok((at, result)) => {
                    done.items += 1;
                    look(done, Some(&result));
                    if let Some(place) = results.get_mut(at) {
                        *place = Some(result);
                    }
                }
                Err(mpsc::RecvTimeoutError::Timeout) => look(done, None),
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
            }
        }
    });
    results
}

/// Reads the value of `--jobs`.
pub(crate) fn parse_jobs(text: &str) -> Result<NonZeroUsize, String> {
    text.parse().map_err(|_| "expected a number from 1; without --jobs, one per CPU".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_the_order_of_the_items() {
        let items: Vec<usize> = (0..1000).collect();
        for jobs in [1, 3, 2000] {
            let mut counts = Vec::new();
            let results = each(&items, jobs, |item| Some(item * 2), |done, _| counts.push(done.items));
            assert_eq!(
                results.into_iter().flatten().collect::<Vec<_>>(),
                items.iter().map(|item| item * 2).collect::<Vec<_>>()
            );
            assert_eq!(counts.last(), Some(&1000));
        }
        assert!(each(&[], 4, |(): &()| Some(()), |_, _| {}).is_empty());
    }

    #[test]
    fn a_thread_that_is_told_to_stop_takes_no_further_item() {
        let results = each(&[1, 2, 3, 4], 1, |item| (*item < 3).then_some(*item), |_, _| {});
        assert_eq!(results, [Some(1), Some(2), None, None]);
    }
}
