// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tier 1 for older data: a change that lets data get older before the flusher writes it (`wb_check_old_data_flush` of
//! `fs/fs-writeback.c`). More of it piles up below the background threshold, and a sync or an unmount can wait for all of it.

use crate::change::Change;
use crate::cliff::{CLIFF_S, Cliff, SYNCS, by_share, severity};
use crate::harm::LONGEST_TIMES;
use crate::removed::removed_share;
use crate::row::Verdict;
use crate::waits;
use floodline_analysis::budget::Assumed;
use floodline_analysis::diagnose::derived::Derived;
use floodline_record::human;
use floodline_record::window::Window;

const EXPIRE: &str = "vm.dirty_expire_centisecs";
const INTERVAL: &str = "vm.dirty_writeback_centisecs";

/// Oldest that data gets before the flusher writes it, seconds: its age of expiry, and the time until the flusher looks again.
fn oldest(window: &Window, change: Option<&Change>) -> Option<f64> {
    let set = |key: &str| change.and_then(|change| change.settings.iter().find(|set| set.key == key));
    let of = |key: &str, now: u64| set(key).map_or(Some(now), |set| set.value.trim().parse().ok());
    let host = &window.host.last;
    let expire = of(EXPIRE, host.dirty_expire_centisecs?.0)?;
    let interval = of(INTERVAL, host.dirty_writeback_centisecs?.0)?;
    (interval > 0).then_some(expire.saturating_add(interval) as f64 / 100.0)
}

/// A pile of data that gets older under a change, and that the disk does not write in a few seconds.
pub(crate) fn aged(derived: &Derived<'_>, assumed: &Assumed<'_>, change: &Change) -> Option<Cliff> {
    let (now, then) = (oldest(derived.window, None)?, oldest(derived.window, Some(change))?);
    let speed = waits::speed(derived.drains().first()?).filter(|speed| *speed > 0.0)?;
    if then <= now {
        return None;
    }
    let peak = derived.dirty.unwritten_peak?.0 as f64;
    let kept = derived.dirty.dirtying_rate? * (1.0 - removed_share(derived.window));
    // The flusher also starts at a background threshold, of the machine or of a cgroup.
    let most = assumed.then.global.bg_thresh?.high.0 as f64;
    let writing = assumed.rows.iter().filter(|row| row.cgroup.is_some() && row.peak_bytes > Some(0));
    let of_cgroups: Option<u64> = writing.map(|row| row.then_bg_thresh_bytes).sum();
    let most = match of_cgroups.filter(|sum| *sum > 0 && assumed.then.scope.is_per_cgroup()) {
        Some(sum) => most.min(sum as f64),
        None => most,
    };
    let pile = most.min(kept * then);
    let more = (pile - peak) / speed;
    if more < CLIFF_S || pile < LONGEST_TIMES * peak {
        return None;
    }
    let told = format!(
        "Data gets up to {} old instead of {} before the flusher writes it. Unwritten data reached {}. After the change {} can pile up. \
         The disk writes that in {}, and a sync can wait for it.",
        human::seconds(then),
        human::seconds(now),
        human::bytes(peak),
        human::bytes(pile),
        human::seconds(pile / speed)
    );
    let by = by_share(derived);
    let syncs = derived.window.disks.values().filter_map(|span| span.growth.flushes).any(|flushes| flushes.0 >= SYNCS);
    Some(Cliff {
        verdict: if syncs { Verdict::Suffers } else { Verdict::Tight },
        severity: if syncs { severity(more, by) } else { 0.8 },
        is_firm: syncs,
        waits_for_pile: syncs && by.is_none(),
        syncs_rarely: by.is_none(),
        is_of_age: true,
        told,
    })
}

#[cfg(test)]
mod tests {
    use crate::arithmetic;
    use crate::change::Change;
    use crate::row::{Cause, Row, Verdict};
    use floodline_record::units::{Bytes, Count};
    use floodline_testkit::{Fixture, mib, mib_pages, secs};

    /// A host that writes 4 MB/s in a steady stream to a disk of 10 MB/s, with `flushes` each second. Data gets 35 s old.
    fn judged(flushes: f64, change: &[&str]) -> Row {
        let recording = Fixture::healthy()
            .settings((20, 0, 10, 0))
            .host(|t, row| {
                row.nr_dirty = Some(mib_pages(100.0));
                row.nr_dirtied = Some(mib_pages(4.0 * t));
                row.nr_written = Some(mib_pages(4.0 * t));
            })
            .disk("sda", move |t, row| {
                row.written = Some(Bytes(mib(4.0 * t)));
                row.io_time = Some(secs(mib(4.0 * t) as f64 / 10e6));
                row.flushes = Some(Count((flushes * t) as u64));
            });
        let change = Change::parse(change, None, None, None).unwrap();
        arithmetic::judge(&recording.window(), "a.flr", &change)
    }

    #[test]
    fn older_data_that_a_sync_can_wait_for_is_a_cliff() {
        let row = judged(2.0, &["vm.dirty_expire_centisecs=6000"]);
        assert_eq!((row.verdict, row.cause), (Verdict::Suffers, Cause::DirtyCliff), "{row:?}");
        assert!(row.finding.starts_with("Data gets up to 65 s old instead of 35 s"), "{}", row.finding);
        assert!(row.severity > 2.0 && row.is_firm, "{row:?}");
        assert_eq!(judged(0.0, &["vm.dirty_expire_centisecs=6000"]).verdict, Verdict::Tight, "no program syncs");
        let cause = |change: &str| judged(2.0, &[change]).cause;
        assert_eq!(cause("vm.dirty_writeback_centisecs=3000"), Cause::DirtyCliff, "a rare flusher");
        assert_eq!(cause("vm.dirty_expire_centisecs=3200"), Cause::NotSimulated, "148 MiB instead of 100 MiB");
        assert_eq!(cause("vm.dirty_expire_centisecs=500"), Cause::NotSimulated, "younger data");
    }
}
