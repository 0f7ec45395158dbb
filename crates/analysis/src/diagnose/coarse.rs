// SPDX-License-Identifier: MIT OR Apache-2.0
//! Samples that are further apart than a stall lasts. The counters between two samples show for how long a disk was busy and
//! tasks waited, but not when: over five seconds, a burst of two seconds and a steady load of 40 % look the same. A rule that
//! judges single intervals then reports "not checked". Missing samples belong to [`super::holes`].

use super::Verdict;
use super::burst::NOTICED_S;
use super::derived::Derived;
use super::device::Interval;
use super::dirty::io_pressure_between;
use crate::budget::Scope;
use floodline_record::gap::{Cause, Gap, Source};
use floodline_record::human;
use floodline_record::name::Name;
use floodline_record::units::Nanos;

/// Time between two samples up to which a stall of [`NOTICED_S`] shows in one of them, seconds. The samples of `serve` are 2 s
/// apart, and a little late at times.
const FINE_S: f64 = 2.2;
/// Option with which no stall hides between two samples: the default of `doctor`.
pub const NEED: &str = "--every 1s";
/// Share of writes in the bytes of an interval from which the writes can be the stall.
const WRITES_SHARE: f64 = 0.25;

/// Rules that judge the intervals between samples, or levels that a burst has for a moment, and the source they read.
const BY_INTERVALS: &[(&str, Source)] = &[
    ("dirty-cliff", Source::Diskstats),
    ("fsync-behind-writeback", Source::Diskstats),
    ("overlay-umount-flush", Source::ProcessStat),
    ("starved-dirty-budget", Source::CgroupV2),
];

/// Interval that may hide the longest stall.
struct Hidden<'a> {
    disk: &'a Name,
    busy_s: f64,
    between_s: f64,
}

/// Returns the verdict, or a gap where a stall can be shorter than the time between two samples.
pub(super) fn judged(derived: &Derived<'_>, rule: &str, verdict: Verdict) -> Verdict {
    let Verdict::Clear(_) = verdict else { return verdict };
    if rule == "starved-dirty-budget" && !has_budgets(derived) {
        return verdict;
    }
    let reads = BY_INTERVALS.iter().find(|(name, _)| *name == rule).map(|(_, source)| *source);
    match reads.zip(hidden(derived)) {
        Some((source, hidden)) => {
            let Hidden { disk, busy_s, between_s } = hidden;
            let (busy, between) = (human::seconds(busy_s), human::seconds(between_s));
            let what = format!("{disk} was busy for {busy} of the {between} between two samples");
            Verdict::NotChecked(vec![Gap::detailed(source, Cause::TooCoarse { need: NEED.into() }, what)])
        }
        None => verdict,
    }
}

/// Whether a cgroup has a dirty budget of its own, which a burst could use up.
fn has_budgets(derived: &Derived<'_>) -> bool {
    let budgets = derived.budgets();
    budgets.scope == Scope::PerCgroup && !budgets.cgroups.is_empty()
}

/// Finds the interval with the longest busy time among those that are too long to tell a stall from a load.
fn hidden<'a>(derived: &Derived<'a>) -> Option<Hidden<'a>> {
    let mut most: Option<Hidden<'a>> = None;
    for disk in derived.drains() {
        for interval in disk.intervals().iter().filter(|interval| may_hide(derived, interval)) {
            let busy_s = busy(interval);
            if most.as_ref().is_none_or(|most| busy_s > most.busy_s) {
                most = Some(Hidden { disk: disk.name, busy_s, between_s: interval.seconds });
            }
        }
    }
    most
}

/// Whether tasks may have waited for a second behind writes within an interval.
fn may_hide(derived: &Derived<'_>, interval: &Interval) -> bool {
    let bytes = interval.written_bytes + interval.read_bytes;
    if interval.seconds <= FINE_S || busy(interval) < NOTICED_S || interval.written_bytes < WRITES_SHARE * bytes {
        return false;
    }
    let from = Nanos(interval.end.0.saturating_sub((interval.seconds * 1e9) as u64));
    // Where the kernel does not count waits, nothing shows that there were none.
    io_pressure_between(derived.window, from, interval.end).is_none_or(|share| share * interval.seconds >= NOTICED_S)
}

fn busy(interval: &Interval) -> f64 {
    interval.utilisation.unwrap_or(0.0) * interval.seconds
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::diagnose;
    use floodline_record::id::Hierarchy;
    use floodline_testkit::{Fixture, grows};

    /// A disk that is busy for `busy` of the time and for which tasks wait for `waited`, seen every `every` seconds.
    fn unknown(every: usize, busy: f64, waited: f64) -> Vec<&'static str> {
        unknown_of(Fixture::healthy(), every, busy, waited)
    }

    /// The same for a host.
    fn unknown_of(host: Fixture, every: usize, busy: f64, waited: f64) -> Vec<&'static str> {
        let mut fixture = host.seconds(60);
        fixture = fixture.host(move |t, row| row.psi_io_some = grows(t, 0, waited * 1e9)).disk("sda", move |t, row| {
            row.io_time = grows(t, 0, busy * 1e9);
            row.written = grows(t, 0, 4e6);
        });
        let records = fixture.records();
        let mut number = 0;
        let kept = records.into_iter().filter(|record| {
            let is_sample = matches!(record, floodline_record::record::Record::Sample(_));
            number += usize::from(is_sample);
            !is_sample || number % every == 1 || every == 1
        });
        let window = floodline_record::window::Window::from_records(&kept.collect::<Vec<_>>());
        let report = diagnose(&window, None);
        let is_coarse = |gaps: &[crate::report::GapLine]| gaps.iter().any(|gap| gap.kind == "too_coarse");
        report.not_checked.iter().filter(|rule| is_coarse(&rule.gaps)).map(|rule| rule.rule).collect()
    }

    #[test]
    fn what_fits_between_two_samples_is_not_ruled_out() {
        let all = ["starved-dirty-budget", "overlay-umount-flush", "dirty-cliff", "fsync-behind-writeback"];
        assert_eq!(unknown(5, 0.4, 0.4), all);
        assert_eq!(unknown(1, 0.4, 0.4), [""; 0], "a stall of a second shows in samples of a second");
        assert_eq!(unknown(5, 0.1, 0.4), [""; 0], "the disk was not busy for a second");
        assert_eq!(unknown(5, 0.4, 0.1), [""; 0], "no task waited for a second");
    }

    #[test]
    fn a_budget_that_cannot_exist_is_ruled_out() {
        let rest = ["overlay-umount-flush", "dirty-cliff", "fsync-behind-writeback"];
        assert_eq!(unknown_of(Fixture::healthy().hierarchy(Hierarchy::V1Memory), 5, 0.4, 0.4), rest);
    }

    #[test]
    fn every_rule_that_judges_by_intervals_is_one() {
        for (name, _) in BY_INTERVALS {
            assert!(crate::diagnose::rule(name).is_some(), "{name}");
        }
    }
}
