// SPDX-License-Identifier: MIT OR Apache-2.0
//! Severity of a change for a host: figures that people feel, before and after. The same measure applies to predictions
//! and to measurements after a move, so that both can be ordered by it.

use floodline_analysis::prediction::{LONGEST, LONGEST_WRITE, Seen, UNMOUNT, WAITS};
use floodline_analysis::report::Severity;
use floodline_analysis::rule_figures::is_of_waits;
use floodline_twin::shown::LONGEST_OTHER;
use std::collections::{BTreeMap, BTreeSet};

/// Task-seconds of waiting per second that are just noticeable.
pub(crate) const STALL: f64 = 0.1;
/// Longer wait of one call that is just noticeable, seconds.
pub(crate) const LONGEST_S: f64 = 1.0;
/// More bytes per second that are just noticeable where they are written to disks and dirtied again.
pub(crate) const WRITTEN: f64 = 2e6;
const DIRTIED: f64 = 5e6;
/// Growth below which a figure counts as the same.
const STALL_TIMES: f64 = 1.25;
pub(crate) const LONGEST_TIMES: f64 = 1.5;
pub(crate) const BYTES_TIMES: f64 = 1.5;

/// Figures of one run or recording that people feel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Felt {
    /// Length, seconds.
    pub seconds: f64,
    /// Time for which tasks waited, all together, seconds.
    pub stall_seconds: f64,
    /// Longest wait of a write or sync call, seconds.
    pub longest_wait_seconds: f64,
    /// Longest wait of another call that changes files, seconds: an unmount, a file that is emptied, removed or closed.
    pub longest_other_seconds: f64,
    /// Bytes written to disks.
    pub written_bytes: f64,
    /// Bytes dirtied.
    pub dirtied_bytes: f64,
    /// Rules with a critical finding.
    pub critical: BTreeSet<&'static str>,
}

impl Felt {
    /// Picks the figures out of those of a run ([`floodline_twin::shown::figures`]).
    pub fn of(figures: &BTreeMap<String, f64>, seen: &[Seen], seconds: f64) -> Felt {
        let get = |name: &str| figures.get(name).copied().unwrap_or(0.0);
        Felt {
            seconds,
            stall_seconds: get(WAITS),
            longest_wait_seconds: get(LONGEST).max(get(LONGEST_WRITE)),
            longest_other_seconds: get(UNMOUNT).max(get(LONGEST_OTHER)),
            written_bytes: get("devices.written_bytes"),
            dirtied_bytes: get("host.dirtied_bytes"),
            critical: seen.iter().filter(|seen| seen.severity == Severity::Critical).map(|seen| seen.rule).collect(),
        }
    }

    /// Leaves out the waits of tasks that stand for none of the recorded programs, and the longest syncs of all programs but `known` ones.
    /// `figures` are those of the run.
    pub(crate) fn without_syncs(self, figures: &BTreeMap<String, f64>, known: &[String]) -> Felt {
        let is_program = |name: &str| name.starts_with("program.") && name.ends_with(".waited_seconds");
        let of_programs = figures.iter().filter(|(name, _)| is_program(name)).map(|(_, seconds)| *seconds).sum::<f64>();
        let write = figures.get(LONGEST_WRITE).copied().unwrap_or(0.0);
        let longest_wait_seconds = known.iter().filter_map(|name| figures.get(name).copied()).fold(write, f64::max);
        let stall_seconds = self.stall_seconds.min(of_programs);
        Felt { stall_seconds, longest_wait_seconds, critical: BTreeSet::new(), ..self }
    }

    /// Adds the longest wait that only tasks of a run measure, where a recording has none: that of its twin before the change.
    pub(crate) fn with_other_of(&self, twin: &Felt) -> Felt {
        let is_measured = self.longest_other_seconds > 0.0;
        let longest_other_seconds = if is_measured { self.longest_other_seconds } else { twin.longest_other_seconds };
        Felt { longest_other_seconds, ..self.clone() }
    }

    /// Severity after a change: 1 is just noticeable, 10 is ten times that; 0 where nothing gets worse.
    pub fn worse(&self, then: &Felt) -> f64 {
        let rate = |bytes: f64, seconds: f64| bytes / seconds.max(1.0);
        let more = |now: f64, then: f64, times: f64, least: f64| match then > now * times {
            true => ((then - now) / least).max(0.0),
            false => 0.0,
        };
        let figures = [
            more(rate(self.stall_seconds, self.seconds), rate(then.stall_seconds, then.seconds), STALL_TIMES, STALL),
            more(self.longest_wait_seconds, then.longest_wait_seconds, LONGEST_TIMES, LONGEST_S),
            // A longer wait of one kind of call does not hide that of another.
            more(self.longest_other_seconds, then.longest_other_seconds, LONGEST_TIMES, LONGEST_S),
            // A larger limit lets more be dirtied, and a smaller one has more written early. Both together are
            // rewriting.
            more(rate(self.written_bytes, self.seconds), rate(then.written_bytes, then.seconds), BYTES_TIMES, WRITTEN)
                .min(more(
                    rate(self.dirtied_bytes, self.seconds),
                    rate(then.dirtied_bytes, then.seconds),
                    BYTES_TIMES,
                    DIRTIED,
                )),
        ];
        let worst = figures.into_iter().fold(0.0, f64::max);
        // A critical finding is measured harm, whatever the figures are. But if tasks wait noticeably less, a finding of waits only names
        // the waits that remain.
        let is_harm =
            |rule: &&'static str| !(self.critical.contains(*rule) || self.is_relieved(then) && is_of_waits(rule));
        let is_new = then.critical.iter().any(is_harm);
        if is_new && self.critical.is_empty() { worst.max(1.0) } else { worst }
    }

    /// Whether tasks wait noticeably less after a change, in total or in their longest calls, and no such wait gets noticeably longer.
    fn is_relieved(&self, then: &Felt) -> bool {
        let waits_of =
            |felt: &Felt| Felt { written_bytes: 0.0, dirtied_bytes: 0.0, critical: BTreeSet::new(), ..felt.clone() };
        let (before, after) = (waits_of(self), waits_of(then));
        after.worse(&before) >= 1.0 && before.worse(&after) < 1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn felt(stall: f64, longest: f64, written: f64) -> Felt {
        Felt {
            seconds: 10.0,
            stall_seconds: stall,
            longest_wait_seconds: longest,
            written_bytes: written,
            ..Felt::default()
        }
    }

    #[test]
    fn the_worst_figure_counts_and_a_little_more_does_not() {
        let calm = felt(0.1, 0.02, 1e6);
        assert_eq!(calm.worse(&calm), 0.0);
        assert_eq!(felt(10.0, 2.0, 1e9).worse(&felt(12.0, 2.5, 1.3e9)), 0.0);
        assert!((calm.worse(&felt(5.1, 0.02, 1e6)) - 5.0).abs() < 1e-9);
        assert!((calm.worse(&felt(0.1, 3.02, 1e6)) - 3.0).abs() < 1e-9);
        let written = felt(0.1, 0.02, 401e6);
        assert_eq!(calm.worse(&written), 0.0, "written early, and not again");
        let rewritten = Felt { dirtied_bytes: 500e6, ..written };
        assert!((calm.worse(&rewritten) - 10.0).abs() < 1e-9);
        assert_eq!(felt(90.0, 3.0, 1e9).worse(&calm), 0.0);
        let figures = BTreeMap::from([
            ("program.snap.waited_seconds".to_owned(), 2.0),
            ("program.snap.longest_sync_seconds".to_owned(), 1.5),
            (LONGEST_WRITE.to_owned(), 0.2),
        ]);
        let known = ["program.snap.longest_sync_seconds".to_owned()];
        let without = |known: &[String]| {
            let left = felt(5.0, 3.0, 1e6).without_syncs(&figures, known);
            (left.stall_seconds, left.longest_wait_seconds)
        };
        assert_eq!((without(&known), without(&[])), ((2.0, 1.5), (2.0, 0.2)));
        let emptied = |seconds: f64| Felt { longest_other_seconds: seconds, ..felt(0.1, 2.0, 1e6) };
        assert!((emptied(0.1).worse(&emptied(4.3)) - 4.2).abs() < 1e-9, "a call that empties a file");
        assert!((emptied(2.0).worse(&felt(0.1, 5.0, 1e6)) - 3.0).abs() < 1e-9, "hides no longer write");
        // A recording of a host does not measure such a call.
        let recorded = emptied(0.0).with_other_of(&emptied(4.0));
        assert_eq!((recorded.worse(&emptied(4.3)), emptied(0.0).worse(&emptied(4.3))), (0.0, 4.3));
        assert_eq!(emptied(0.5).with_other_of(&emptied(4.0)), emptied(0.5));
        let critical = Felt { critical: BTreeSet::from(["inode-switch-storm"]), ..calm.clone() };
        assert_eq!((calm.worse(&critical), critical.worse(&calm)), (1.0, 0.0));
    }

    #[test]
    fn a_finding_of_waits_is_no_harm_where_tasks_wait_less() {
        let found = |rule, felt: Felt| Felt { critical: BTreeSet::from([rule]), ..felt };
        let waits = felt(9.0, 8.0, 1e6);
        assert_eq!(waits.worse(&found("dirty-cliff", felt(2.0, 2.7, 1e6))), 0.0);
        // Waits that stay, a longer call beside shorter ones, and pages that are written again and again.
        assert_eq!(waits.worse(&found("dirty-cliff", felt(9.0, 8.0, 1e6))), 1.0);
        assert!(felt(9.0, 2.0, 1e6).worse(&found("dirty-cliff", felt(2.0, 3.2, 1e6))) >= 1.0);
        assert_eq!(waits.worse(&found("starved-dirty-budget", felt(2.0, 2.7, 1e6))), 1.0);
    }
}
