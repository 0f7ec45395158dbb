// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an observation was too short to show. Rules judge what was seen, and a calm host is cleared only where nothing stands here.

use super::burst::NOTICED_S;
use super::cycle;
use super::derived::Derived;
use super::device::Device;
use crate::report::{RuledOut, Unseen};
use floodline_record::human;

/// A stall that comes twice a minute can hide from an observation that is shorter than this, seconds.
const OFTEN_S: f64 = 30.0;
/// Length of an observation from which a rule may tell by rates what the flusher has yet to write, seconds: a stall that comes every
/// half minute shows in it.
const LONG_S: f64 = 60.0;
/// The rule that tells whether data which are still dirty make a stall.
const OF_CYCLE: &str = "dirty-cliff";

/// Longest observation that is advised, seconds: more shows little that this does not.
const LONGEST_S: u64 = 600;
/// Bytes written back from which writeback was seen.
const SEEN: u64 = 16 << 20;
/// Part of the background threshold from which a sample shows that it was reached.
const REACHED: f64 = 0.95;

/// Returns what a longer observation would show, the most important first; empty if the observation was long enough.
pub fn unseen(derived: &Derived<'_>, ruled_out: &[RuledOut]) -> Vec<Unseen> {
    let watched = derived.seconds;
    if watched <= 0.0 {
        return vec![Unseen { what: "One sample shows no rates.".to_owned(), look_s: LONG_S as u64 }];
    }
    let is_ruled_out = ruled_out.iter().any(|one| one.rule == OF_CYCLE);
    let is_told = watched >= LONG_S && is_ruled_out;
    let cycle = cycle::seconds(derived).filter(|cycle| cycle.is_finite());
    let is_unseen = |cycle: &f64| watched < *cycle && !is_told && !was_written(derived);
    match cycle.filter(is_unseen).zip(derived.dirty.expiry_seconds) {
        Some((cycle, expiry)) => {
            // What is older than the expiry is written when the flusher wakes.
            let period = cycle - expiry;
            let when = match period > expiry {
                true => format!("every {} (vm.dirty_writeback_centisecs)", human::seconds(period)),
                false => format!("after {} (vm.dirty_expire_centisecs)", human::seconds(expiry)),
            };
            let what = format!("The kernel writes dirty data {when}: not seen.");
            // Where rates tell already, they also do after this time.
            let whole = if is_ruled_out { 0 } else { (cycle.ceil() as u64).saturating_add(1) };
            let look_s = whole.clamp(LONG_S as u64, LONGEST_S);
            let speed = speed(derived).map(|what| Unseen { what, look_s });
            std::iter::once(Unseen { what, look_s }).chain(speed).collect()
        }
        None if watched < OFTEN_S => {
            let what =
                format!("An observation of {} can miss a stall that comes twice a minute.", human::seconds(watched));
            vec![Unseen { what, look_s: LONG_S as u64 }]
        }
        None => Vec::new(),
    }
}

/// Whether the flusher was seen at work before the data were old enough: the background threshold was reached, or more was written
/// back than was dirty at any time.
fn was_written(derived: &Derived<'_>) -> bool {
    let dirty = &derived.dirty;
    let is_reached = dirty.peak.zip(dirty.background_threshold);
    let is_reached = is_reached.is_some_and(|(peak, least)| least.0 > 0 && peak.0 as f64 >= REACHED * least.0 as f64);
    let cleaned = derived.window.host.growth.nr_written.map_or(0, |pages| pages.bytes(derived.page_size).0);
    let least = dirty.unwritten_peak.map_or(u64::MAX, |peak| peak.0.max(SEEN));
    // Syncs of data that leave nothing dirty say nothing of the flusher.
    is_reached || (cleaned >= least && dirty.unwritten_peak.is_some_and(|peak| peak.0 >= SEEN))
}

/// Tells that the disk with most of the writes was not full, where the time that it takes for the data to come decides whether tasks
/// wait.
fn speed(derived: &Derived<'_>) -> Option<String> {
    let to_come = cycle::most(derived)?;
    // What is written as soon as it is dirty does not pile up.
    let (peak, expiry) = (derived.dirty.unwritten_peak?.0 as f64, derived.dirty.expiry_seconds?);
    let bytes = to_come.min(peak * (expiry / derived.seconds).max(1.0));
    let is_known = |device: &Device<'_>| device.write_bandwidth().is_some_and(|speed| speed.basis.is_known());
    let written = |device: &Device<'_>| device.span.growth.written.map_or(0, |written| written.0);
    let most = derived.drains().iter().filter(|device| written(device) > 0).max_by_key(|device| written(device));
    let unknown = most.filter(|device| !is_known(device))?;
    let may_stall = cycle::slowest_seconds(derived, bytes) >= NOTICED_S;
    may_stall.then(|| {
        let (name, amount) = (&unknown.name, human::bytes(bytes));
        format!("The write speed of {name} was not measured, so it is not known how long writing up to {amount} of dirty data takes.")
    })
}

#[cfg(test)]
mod tests {
    use crate::diagnose::diagnose;
    use floodline_record::units::{Bytes, Centisecs, Pages};
    use floodline_testkit::{Fixture, mib, mib_pages, secs};

    fn told(fixture: &Fixture) -> Vec<(String, u64)> {
        let report = diagnose(&fixture.window(), None);
        report.unseen.into_iter().map(|one| (one.what, one.look_s)).collect()
    }

    #[test]
    fn a_look_shorter_than_the_life_of_dirty_data_names_it() {
        for seconds in [6, 10, 20, 34] {
            let all = told(&Fixture::healthy().seconds(seconds));
            assert_eq!(all.len(), 1, "{seconds} s: {all:?}");
            assert!(all[0].0.contains("after 30 s (vm.dirty_expire_centisecs)") && all[0].1 == 60, "{all:?}");
        }
        assert_eq!(told(&Fixture::healthy().seconds(35)), []);
        // At an age of two minutes, a minute suffices where rates tell that next to nothing is dirty.
        let late = |seconds| {
            Fixture::healthy().seconds(seconds).host(|_, row| row.dirty_expire_centisecs = Some(Centisecs(12_000)))
        };
        assert_eq!(told(&late(40)).first().map(|one| one.1), Some(60));
        assert_eq!(told(&late(60)), []);
    }

    #[test]
    fn the_age_is_told_as_it_is_set_and_no_look_is_longer_than_ten_minutes() {
        let set = |expire, period| {
            // Too much is dirty to rule anything out.
            let host = Fixture::healthy().seconds(10).host(move |t, row| {
                row.dirty_expire_centisecs = Some(Centisecs(expire));
                row.dirty_writeback_centisecs = Some(Centisecs(period));
                (row.nr_dirty, row.nr_dirtied) = (Some(Pages(9_000 + 100 * t as u64)), Some(Pages(40_000_000)));
            });
            let all = told(&host.bdi("8:0", |_, row| row.write_bandwidth = None));
            all.first().cloned().unwrap_or_default()
        };
        let (what, look_s) = set(0, 6_000);
        assert!(what.contains("every 60 s (vm.dirty_writeback_centisecs)") && look_s == 61, "{what} {look_s}");
        assert_eq!(set(2_147_483_647, 500).1, 600);
    }

    #[test]
    fn writeback_that_was_seen_is_not_told_as_unseen() {
        let host = |dirty_mib: f64, written_mib: f64| {
            Fixture::healthy().seconds(10).host(move |t, row| {
                row.nr_dirty = Some(mib_pages(dirty_mib));
                row.nr_dirtied = Some(Pages(40_000_000 + mib_pages(written_mib * t).0));
                row.nr_written = Some(Pages(38_000_000 + mib_pages(written_mib * t).0));
            })
        };
        let is_by_age = |fixture: &Fixture| told(fixture)[0].0.starts_with("The kernel writes dirty data");
        assert!(!is_by_age(&host(200.0, 900.0)), "{:?}", told(&host(200.0, 900.0)));
        assert!(is_by_age(&host(200.0, 10.0)) && is_by_age(&host(0.0, 900.0)));
        // The background threshold was reached.
        let reached = host(200.0, 10.0).thresholds((0, 0, 400 << 20, 200 << 20), 102_400, 51_200);
        assert!(!is_by_age(&reached), "{:?}", told(&reached));
    }

    #[test]
    fn a_short_age_leaves_the_stall_that_comes_now_and_then() {
        let early = |seconds| {
            Fixture::healthy().seconds(seconds).host(|_, row| {
                (row.dirty_expire_centisecs, row.dirty_writeback_centisecs) =
                    (Some(Centisecs(300)), Some(Centisecs(100)));
            })
        };
        assert_eq!(
            told(&early(10)),
            [("An observation of 10 s can miss a stall that comes twice a minute.".to_owned(), 60)]
        );
        assert_eq!(told(&early(30)), []);
        assert_eq!(told(&Fixture::healthy().one_look()), [("One sample shows no rates.".to_owned(), 60)]);
    }

    #[test]
    fn a_disk_that_was_never_full_is_named_where_its_speed_decides() {
        let rising = |left: f64| {
            let host = Fixture::healthy().seconds(6).facts(|facts| facts.devices[0].rotational = Some(true));
            host.bdi("8:0", |_, row| row.write_bandwidth = None).host(move |t, row| {
                let dirtied = 2_000 + 2_000 * t as u64;
                row.nr_dirty = Some(Pages((left * dirtied as f64) as u64));
                row.nr_dirtied = Some(Pages(40_000_000 + dirtied));
            })
        };
        let is_named =
            |host: &Fixture| told(host).iter().any(|(what, _)| what.starts_with("The write speed of sda was"));
        assert!(is_named(&rising(1.0)), "{:?}", told(&rising(1.0)));
        // What was written at once does not pile up.
        assert!(!is_named(&rising(0.0)), "{:?}", told(&rising(0.0)));
        // Another disk takes most of the data, and its speed is known.
        let other = rising(1.0).disk("sdb", |t, row| {
            row.written = Some(Bytes(mib(100.0 * t)));
            (row.io_time, row.weighted_io_time) = (Some(secs(t)), Some(secs(9.0 * t)));
        });
        assert!(!is_named(&other), "{:?}", told(&other));
    }
}
