// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tier 1 for larger thresholds. Data that a threshold holds back today piles up below a larger one, and a sync can wait for
//! all of it. Covers the thresholds of the machine and those of cgroups.

use crate::arithmetic::{SAME, SEVERITY_MAX, grows};
use crate::harm::LONGEST_TIMES;
use crate::row::Verdict;
use crate::waits;
use floodline_analysis::budget::{AsIfRow, Assumed, Bound, CgroupBudget};
use floodline_analysis::diagnose::derived::Derived;
use floodline_record::human;
use std::collections::BTreeMap;

/// Part of a limit in use from which the limit held the data back.
const HELD: f64 = 0.6;
/// Age at which dirty data is written where that was not read, seconds: the kernel's default.
const USUAL_EXPIRY_S: f64 = 30.0;
/// Time to write out all unwritten data from which a sync is a stall, seconds.
pub(crate) const CLIFF_S: f64 = 2.0;
/// Time to write a larger threshold from which arithmetic does not clear a host that the threshold held back, seconds.
const RAISED_S: f64 = 1.0;
/// Flushes of a disk from which programs are assumed to sync.
pub(crate) const SYNCS: u64 = 3;
/// Share of the time that a disk is busy from which writers outrun it.
const SATURATED: f64 = 0.9;
/// Severity of a cliff where writers always outrun the disk, so that each sync waits for a share of a full queue: a
/// multiple of the root of the time to write what is more.
const CLIFF_OUTRUN: f64 = 0.8;
/// The same where writers are slower than the disk and syncs are frequent: each writes little itself, and waits for a share of
/// a burst.
const CLIFF_SHARE: f64 = 1.5;
/// Time between two syncs from which one sync can find all that piled up, and time between two commits that a journal makes by
/// itself; seconds.
const RARE_S: f64 = 1.0;
const JOURNAL_S: f64 = 5.0;
/// Smallest noticeable growth of the wait of one call, seconds, where one sync waits for all that piled up.
const CLIFF_BURST_S: f64 = 1.0;

/// A threshold that held data back and grows to more than the disk writes in a few seconds.
pub(crate) fn cliff(derived: &Derived<'_>, assumed: &Assumed<'_>) -> Option<Cliff> {
    let high = |bound: Option<Bound>| bound.map(|bound| bound.high.0 as f64);
    let (now, then) = (&assumed.now.global, &assumed.then.global);
    let (bg_now, bg_then) = (high(now.bg_thresh)?, high(then.bg_thresh)?);
    let (freerun_now, freerun_then) = (high(now.freerun)?, high(then.freerun)?);
    let peak = derived.dirty.unwritten_peak?.0 as f64;
    let speed = waits::speed(derived.drains().first()?)?;
    if speed <= 0.0 {
        return None;
    }
    let more_than = |then: f64, now: f64| then > now * (1.0 + SAME);
    // Cgroups that lose their limits fill the machine's.
    let was_divided = assumed.now.scope.is_per_cgroup() && !assumed.then.scope.is_per_cgroup();
    let held = |row: &AsIfRow| {
        row.cgroup.is_some()
            && row.peak_bytes.zip(row.now_thresh_bytes).is_some_and(|(peak, now)| peak as f64 >= HELD * now as f64)
    };
    let cgroups_held = assumed.rows.iter().any(|row| grows(row) && held(row));
    let share = by_share(derived);
    let is_outrun = derived.is_outrun() || derived.drains().iter().any(|drain| drain.utilisation() > Some(SATURATED));
    let machine_held = peak >= HELD * freerun_now && more_than(freerun_then, freerun_now);
    let background_held = peak >= HELD * bg_now && more_than(bg_then, bg_now);
    let (pile, by) = if is_outrun && (machine_held || cgroups_held) {
        (freerun_then, Some(CLIFF_OUTRUN))
    } else if background_held || (was_divided && cgroups_held) {
        // A writer slower than the disk accumulates its writes until the data is old.
        let expiry = derived.dirty.expiry_seconds.filter(|seconds| seconds.is_finite()).unwrap_or(USUAL_EXPIRY_S);
        (bg_then.min(derived.dirty.dirtying_rate.unwrap_or(0.0) * expiry), share)
    } else {
        return None;
    };
    let more = (pile - peak) / speed;
    // The wait of a sync grows by the same factor as the pile. A small factor is not noticed.
    if more < CLIFF_S || pile < LONGEST_TIMES * peak {
        return None;
    }
    // A program that syncs is seen by the flushes of its disk; how long it waits is not recorded without a trace.
    let syncs = derived.window.disks.values().filter_map(|span| span.growth.flushes).any(|flushes| flushes.0 >= SYNCS);
    let told = format!(
        "Now a threshold holds unwritten data back at {}. After the change {} can pile up. The disk writes that in {}, \
         and a sync can wait for it.",
        human::bytes(peak),
        human::bytes(pile),
        human::seconds(pile / speed)
    );
    // Without its dirty limit a cgroup is still held by its memory limit: how much that leaves is not arithmetic.
    Some(match syncs && (machine_held || background_held || !cgroups_held) {
        true => Cliff {
            verdict: Verdict::Suffers,
            severity: severity(more, by),
            is_firm: true,
            waits_for_pile: by.is_none(),
            syncs_rarely: share.is_none(),
            is_of_age: false,
            told,
        },
        false => Cliff {
            verdict: Verdict::Tight,
            severity: 0.8,
            is_firm: false,
            waits_for_pile: false,
            syncs_rarely: share.is_none(),
            is_of_age: false,
            told,
        },
    })
}

/// Severity of a pile that the disk writes in `more` seconds. `by` is the share of syncs; without one, a sync waits for all of it.
pub(crate) fn severity(more: f64, by: Option<f64>) -> f64 {
    match by {
        None => more / CLIFF_BURST_S,
        Some(by) => by * (more / CLIFF_S).sqrt(),
    }
    .min(SEVERITY_MAX)
}

/// Factor for waits of frequent syncs behind a burst. `None` where syncs are so rare that one of them can write the whole burst.
pub(crate) fn by_share(derived: &Derived<'_>) -> Option<f64> {
    let flushes = derived.window.disks.values().filter_map(|span| span.growth.flushes).map(|flushes| flushes.0).max();
    let of_programs = flushes.unwrap_or(0) as f64 - derived.seconds / JOURNAL_S;
    (of_programs * RARE_S > derived.seconds).then_some(CLIFF_SHARE)
}

/// A threshold that held data back and grows to more than the disk writes in about a second: how much of it fills, only a
/// simulation tells. Rates of a recording are means, and a burst fills more.
pub(crate) fn raised(derived: &Derived<'_>, assumed: &Assumed<'_>) -> Option<String> {
    let Raised { held, from, to } = of_machine(derived, assumed).or_else(|| of_cgroups(assumed))?;
    let speed = waits::speed(derived.drains().first()?).filter(|speed| *speed > 0.0)?;
    let seconds = to / speed;
    (seconds >= RAISED_S).then(|| {
        format!(
            "Unwritten data reached {}, which a threshold of {} holds back. It becomes {}, which the disk writes in {}.",
            human::bytes(held),
            human::bytes(from),
            human::bytes(to),
            human::seconds(seconds)
        )
    })
}

/// A threshold that grows, and the data that it held back, bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Raised {
    held: f64,
    from: f64,
    to: f64,
}

impl Raised {
    fn of(held: f64, now: Option<Bound>, then: Option<Bound>) -> Option<Raised> {
        let (from, to) = Raised::grows(now, then)?;
        (held >= HELD * from).then_some(Raised { held, from, to })
    }

    /// A threshold before and after, if it grows.
    fn grows(now: Option<Bound>, then: Option<Bound>) -> Option<(f64, f64)> {
        let high = |bound: Option<Bound>| bound.map(|bound| bound.high.0 as f64);
        high(now).zip(high(then)).filter(|(from, to)| *to > from * (1.0 + SAME))
    }
}

/// The threshold of the machine.
fn of_machine(derived: &Derived<'_>, assumed: &Assumed<'_>) -> Option<Raised> {
    let (now, then) = (&assumed.now.global, &assumed.then.global);
    let held = derived.dirty.unwritten_peak?.0 as f64;
    let of = |now, then| Raised::of(held, now, then);
    of(now.bg_thresh, then.bg_thresh).or_else(|| of(now.freerun, then.freerun))
}

/// The background thresholds of cgroups together. A cgroup that loses its threshold has that of the machine.
fn of_cgroups(assumed: &Assumed<'_>) -> Option<Raised> {
    let of_machine = assumed.then.global.bg_thresh;
    let afterwards: BTreeMap<_, _> =
        assumed.then.cgroups.iter().map(|then| (then.cgroup, then.domain.bg_thresh)).collect();
    let leaves = assumed.now.cgroups.iter().filter(|budget| !budget.is_inner);
    let then = |now: &CgroupBudget| afterwards.get(&now.cgroup).copied().flatten().or(of_machine);
    // Most changes raise none: then the peaks are not looked up.
    let grow =
        leaves.map(|now| (now, then(now))).filter(|(now, then)| Raised::grows(now.domain.bg_thresh, *then).is_some());
    let grow: Vec<_> = grow.collect();
    if grow.is_empty() {
        return None;
    }
    let peaks: BTreeMap<&str, u64> =
        assumed.rows.iter().filter_map(|row| Some((row.cgroup.as_deref()?, row.peak_bytes?))).collect();
    let raised = grow.into_iter().filter_map(|(now, then)| {
        let path = now.path.to_string();
        Raised::of(*peaks.get(path.as_str())? as f64, now.domain.bg_thresh, then)
    });
    let sum = raised.fold(Raised::default(), |sum, one| Raised {
        held: sum.held + one.held,
        from: sum.from + one.from,
        to: sum.to + one.to,
    });
    // Together they cannot exceed the machine's.
    let most = of_machine.map_or(f64::INFINITY, |bound| bound.high.0 as f64);
    let to = sum.to.min(most);
    (sum.from > 0.0 && to > sum.from * (1.0 + SAME)).then_some(Raised { to, ..sum })
}

/// Effect of a larger threshold.
pub(crate) struct Cliff {
    pub(crate) verdict: Verdict,
    pub(crate) severity: f64,
    /// Whether a twin cannot decide: the time and duration of a program's syncs are not recorded without a trace.
    pub(crate) is_firm: bool,
    /// Whether one sync waits for all that piled up, rather than each for its share of a full queue.
    pub(crate) waits_for_pile: bool,
    /// Whether the flushes of the disks are few, so that they may all come from a journal.
    pub(crate) syncs_rarely: bool,
    /// Whether data piles up because it gets older. A twin has the age of all data.
    pub(crate) is_of_age: bool,
    pub(crate) told: String,
}

#[cfg(test)]
mod tests {
    use crate::arithmetic;
    use crate::change::Change;
    use crate::row::{Cause, Row, Verdict};
    use floodline_record::units::{Bytes, Limit};
    use floodline_testkit::{Fixture, mib, mib_pages, secs};

    /// A host whose ingest has a limit of 96 MiB and holds `held` MiB of unwritten data, on a disk of 10 MB/s.
    fn judged(held: f64, change: &str) -> Row {
        let recording = Fixture::healthy()
            .settings((20, 0, 10, 0))
            .host(move |t, row| {
                row.nr_dirty = Some(mib_pages(held));
                row.nr_dirtied = Some(mib_pages(4.0 * t));
            })
            .disk("sda", |t, row| {
                row.written = Some(Bytes(mib(4.0 * t)));
                row.io_time = Some(secs(mib(4.0 * t) as f64 / 10e6));
            })
            .cgroup("/ingest", move |_, row| {
                row.memory_current = Some(Bytes(mib(90.0)));
                (row.inactive_file, row.active_file) = (Some(Bytes(mib(80.0))), Some(Bytes(0)));
                (row.file_dirty, row.file_writeback) = (Some(Bytes(mib(held))), Some(Bytes(0)));
            })
            .limits("/ingest", |_, row| row.memory_max = Some(Limit(mib(96.0))));
        let change = Change::parse(&[change], None, None, None).unwrap();
        arithmetic::judge(&recording.window(), "a.flr", &change)
    }

    #[test]
    fn a_cgroup_whose_larger_threshold_the_disk_writes_in_a_second_needs_a_simulation() {
        let row = judged(9.0, "cgroup/ingest/memory.max=1G");
        assert_eq!((row.verdict, row.cause), (Verdict::Tight, Cause::DirtyCliff), "{row:?}");
        assert!(row.finding.contains("reached 9.00 MiB, which a threshold of"), "{}", row.finding);
        // The threshold held nothing back, or hardly grows.
        assert_eq!(judged(2.0, "cgroup/ingest/memory.max=1G").verdict, Verdict::Fine);
        assert_eq!(judged(7.0, "cgroup/ingest/memory.max=100M").verdict, Verdict::Fine);
    }

    #[test]
    fn few_flushes_may_be_those_of_a_journal() {
        // The disk is busy all the time, and a threshold holds its writers back.
        let rarely = |flushes: f64| {
            let recording = Fixture::healthy()
                .settings((0, mib(64.0), 0, mib(32.0)))
                .host(move |t, row| {
                    row.nr_dirty = Some(mib_pages(46.0));
                    row.nr_dirtied = Some(mib_pages(10.0 * t));
                })
                .disk("sda", move |t, row| {
                    row.written = Some(Bytes(mib(10.0 * t)));
                    row.io_time = Some(secs(t));
                    row.flushes = Some(floodline_record::units::Count((flushes * t) as u64));
                });
            let change =
                Change::parse(&["vm.dirty_bytes=1G", "vm.dirty_background_bytes=500M"], None, None, None).unwrap();
            let row = arithmetic::judge(&recording.window(), "a.flr", &change);
            assert_eq!((row.cause, row.waits_for_pile), (Cause::DirtyCliff, false), "{row:?}");
            row.syncs_rarely
        };
        assert!(rarely(0.3));
        assert!(!rarely(8.0));
    }

    #[test]
    fn a_pile_that_hardly_grows_is_no_cliff() {
        // Written at 4 MB/s and held at the background threshold: 30 s of it pile up after the change.
        let held = |peak: f64| {
            let recording = Fixture::healthy()
                .settings((20, 0, 0, mib(64.0)))
                .host(move |t, row| {
                    row.nr_dirty = Some(mib_pages(peak));
                    row.nr_dirtied = Some(mib_pages(4.0 * t));
                })
                .disk("sda", |t, row| {
                    row.written = Some(Bytes(mib(4.0 * t)));
                    row.io_time = Some(secs(mib(4.0 * t) as f64 / 10e6));
                    row.flushes = Some(floodline_record::units::Count(t as u64));
                });
            let change = Change::parse(&["vm.dirty_background_bytes=1G"], None, None, None).unwrap();
            arithmetic::judge(&recording.window(), "a.flr", &change)
        };
        let row = held(60.0);
        assert_eq!((row.verdict, row.cause), (Verdict::Suffers, Cause::DirtyCliff), "{row:?}");
        assert_eq!(held(90.0).verdict, Verdict::Tight, "120 MiB instead of 90 MiB");
    }
}
