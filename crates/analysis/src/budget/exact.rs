// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks the arithmetic against the kernel: in every sample of a recording, the global thresholds against
//! `/proc/vmstat`, and the hard threshold of every wb against `wb_stats`. The inputs are counters only, never
//! thresholds printed by the kernel. A row is quiet when the cgroup did not change for as long as the kernel may use
//! old statistics of it, and its inputs are equal one sample before and one after. Both results must then be equal to
//! the page. A row whose inputs moved should lie between the results of its inputs.
//!
//! A wb's threshold is the domain's times its part of the domain's completions, which user space cannot see. Rows are
//! judged where that part is known independently: a cgroup that writes to one device has all of it, and one that never
//! wrote has none. The others must not be above their bound.

mod rows;

use self::rows::{Completions, Row, Still, rows};
use super::domain::computed_global;
use super::inputs::{Inputs, PageBound};
use super::throttled::{Throttles, Witness, share};
use floodline_record::id::EntityId;
use floodline_record::record::{Record, Sink};
use floodline_record::sample::Sample;
use floodline_record::units::Nanos;
use floodline_record::window::Window;
use std::collections::BTreeMap;
use std::convert::Infallible;

/// Completions lose half their weight in this time (VM_COMPLETIONS_PERIOD_LEN of mm/page-writeback.c).
const PERIOD: Nanos = Nanos(3 * Nanos::SECOND.0);
/// Largest age of the memcg statistics that the kernel computes with: it folds them every two seconds at the latest,
/// and since 6.9 ("mm: writeback: ratelimit stat flush from mem_cgroup_wb_stats") waits for that.
const SETTLED: Nanos = Nanos(4 * Nanos::SECOND.0);
/// Number of judged rows, and how many of them match the kernel to the page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exactness {
    /// Samples with global thresholds and everything they are computed from.
    pub global: u64,
    /// Those of them where both thresholds are exact.
    pub global_exact: u64,
    /// Quiet rows of wbs.
    pub quiet: u64,
    /// Quiet rows that are exact.
    pub quiet_exact: u64,
    /// Rows of wbs whose inputs moved between the samples around.
    pub moved: u64,
    /// Moved rows that lie between the results of their inputs.
    pub moved_within: u64,
    /// Rows that are only bounded: the wb's part of the completions cannot be seen from user space.
    pub unseen: u64,
    /// Settled rows among them.
    pub bounded: u64,
    /// Settled rows that are not above the bound.
    pub bounded_within: u64,
}

impl Exactness {
    /// Part of the global thresholds that is exact; `None` where there are none.
    pub fn global_share(&self) -> Option<f64> {
        share(self.global_exact, self.global)
    }

    /// Part of the quiet rows that is exact.
    pub fn quiet_share(&self) -> Option<f64> {
        share(self.quiet_exact, self.quiet)
    }

    /// Part of the settled rows without a known part that is not above the bound.
    pub fn bounded_share(&self) -> Option<f64> {
        share(self.bounded_within, self.bounded)
    }

    /// Part of the moved rows that is within.
    pub fn moved_share(&self) -> Option<f64> {
        share(self.moved_within, self.moved)
    }
}

/// A row that does not match the kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Miss {
    /// Time of the sample.
    pub at: Nanos,
    /// The row: a cgroup on a device, or the name of a global threshold.
    pub row: String,
    /// Value printed by the kernel, pages.
    pub printed: u64,
    /// Value computed from the readings of the sample, smallest and largest, pages.
    pub computed: (u64, u64),
}

/// Judges a recording, record by record.
#[derive(Debug, Default)]
pub struct Judge {
    window: Window,
    completions: Completions,
    /// Time since which nothing of a wb's cgroup moved.
    still: BTreeMap<EntityId, (Still, Nanos)>,
    last_at: Option<Nanos>,
    /// Rows of the two previous samples: they are judged by the samples after them.
    before: BTreeMap<EntityId, Row>,
    current: Option<(Nanos, BTreeMap<EntityId, Row>)>,
    found: Exactness,
    witness: Witness,
    misses: Vec<Miss>,
}

/// Misses that are kept. Further ones add no information.
const MISSES_MAX: usize = 1000;

impl Judge {
    /// Counts of the rows judged up to now.
    pub fn found(&self) -> Exactness {
        self.found
    }

    /// Results of comparing cgroups' domains with throttling events.
    pub fn throttles(&self) -> Throttles {
        self.witness.found
    }

    /// Rows that are neither exact nor explained by what moved, the first thousand.
    pub fn misses(&self) -> &[Miss] {
        &self.misses
    }

    fn sample(&mut self, sample: &Sample) {
        let at = sample.time.monotonic;
        self.weigh(at);
        let inputs = Inputs::of(&self.window);
        let Some((avail, limits)) = computed_global(&inputs) else { return };
        let host = inputs.host();
        if let (Some(thresh), Some(bg_thresh)) = (host.nr_dirty_threshold, host.nr_dirty_background_threshold) {
            let rows =
                [("nr_dirty_threshold", thresh.0, limits.0), ("nr_dirty_background_threshold", bg_thresh.0, limits.1)];
            let wrong = rows.iter().filter(|(_, printed, computed)| PageBound::exactly(*printed) != *computed);
            let wrong: Vec<Miss> =
                wrong.map(|(name, printed, computed)| miss(at, (*name).to_owned(), *printed, *computed)).collect();
            self.found.global += 1;
            self.found.global_exact += u64::from(wrong.is_empty());
            self.misses.extend(wrong);
        }
        let off = self.witness.sample(at, &inputs, avail, limits);
        self.misses.extend(off.into_iter().map(|off| miss(off.at, off.cgroup, off.printed, off.computed)));
        let (mut rows, unseen) = rows(&inputs, avail, limits.0, &self.completions);
        for (id, (row, still)) in &mut rows {
            let since = self.still.entry(*id).or_insert((*still, at));
            if since.0 != *still {
                *since = (*still, at);
            }
            row.is_settled = at.0.saturating_sub(since.1.0) >= SETTLED.0;
        }
        let rows: BTreeMap<EntityId, Row> = rows.into_iter().map(|(id, (row, _))| (id, row)).collect();
        self.found.unseen += unseen;
        self.judge(&rows);
        self.before = self.current.replace((at, rows)).map(|(_, rows)| rows).unwrap_or_default();
        self.misses.truncate(MISSES_MAX);
    }

    /// Judges the sample before this one by the samples around it.
    fn judge(&mut self, after: &BTreeMap<EntityId, Row>) {
        let Some((at, rows)) = &self.current else { return };
        for (id, row) in rows {
            let (Some(before), Some(after)) = (self.before.get(id), after.get(id)) else { continue };
            let around = [before.computed, row.computed, after.computed];
            let low = around.iter().map(|bound| bound.low).min().unwrap_or(0);
            let high = around.iter().map(|bound| bound.high).max().unwrap_or(0);
            let is_within = (low..=high).contains(&row.printed);
            if !row.is_seen {
                self.found.unseen += 1;
                let is_settled = row.is_settled && after.is_settled;
                self.found.bounded += u64::from(is_settled);
                self.found.bounded_within += u64::from(is_settled && is_within);
                if is_settled && !is_within {
                    self.misses.push(miss(*at, row.label.clone(), row.printed, PageBound { low, high }));
                }
                continue;
            }
            if low == high && row.is_settled && after.is_settled {
                self.found.quiet += 1;
                self.found.quiet_exact += u64::from(is_within);
            } else {
                self.found.moved += 1;
                self.found.moved_within += u64::from(is_within);
            }
            if !is_within {
                self.misses.push(miss(*at, row.label.clone(), row.printed, PageBound { low, high }));
            }
        }
    }

    /// Updates the weight of completions to this sample.
    fn weigh(&mut self, at: Nanos) {
        let passed = self.last_at.map_or(0.0, |last| at.0.saturating_sub(last.0) as f64 / PERIOD.0 as f64);
        self.last_at = Some(at);
        let page_size = self.window.facts.as_ref().map_or(4096, |facts| facts.page_size.max(1));
        for (id, span) in &self.window.wbs {
            let Some(written) = span.last.written.map(|bytes| bytes.0 / page_size) else { continue };
            let (weight, last) = self.completions.entry(*id).or_insert((0.0, 0));
            *weight = *weight * 0.5f64.powf(passed) + written.saturating_sub(*last) as f64;
            *last = written;
        }
    }
}

fn miss(at: Nanos, row: String, printed: u64, computed: PageBound) -> Miss {
    Miss { at, row, printed, computed: (computed.low, computed.high) }
}

impl Sink for Judge {
    type Error = Infallible;

    fn record(&mut self, record: &Record) -> Result<(), Infallible> {
        self.window.record(record)?;
        if let Record::Event(event) = record {
            self.witness.event(event);
        }
        if let Record::Sample(sample) = record {
            self.sample(sample);
            // Only the last readings matter.
            self.window.host_series.clear();
            self.window.disk_series.clear();
            self.window.bdi_series.clear();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_parts_of_what_was_judged() {
        let found = Exactness {
            global: 10,
            global_exact: 9,
            quiet: 8,
            quiet_exact: 6,
            moved: 4,
            moved_within: 1,
            unseen: 7,
            bounded: 5,
            bounded_within: 1,
        };
        let shares = [found.global_share(), found.quiet_share(), found.moved_share(), found.bounded_share()];
        assert_eq!(shares, [Some(0.9), Some(0.75), Some(0.25), Some(0.2)]);
        let none = Exactness::default();
        assert_eq!([none.global_share(), none.quiet_share(), none.moved_share(), none.bounded_share()], [None; 4]);
    }
}
