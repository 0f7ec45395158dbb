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

/// Returns what a longer observation would show, the most important first; empty if the observation was long enough.
pub fn unseen(derived: &Derived<'_>, ruled_out: &[RuledOut]) -> Vec<Unseen> {
    let watched = derived.seconds;
    if watched <= 0.0 {
        return vec![Unseen { what: "One sample shows no rates.".to_owned(), look_s: LONG_S as u64 }];
    }
    let cycle = cycle::seconds(derived).filter(|cycle| cycle.is_finite());
    let is_told = || watched >= LONG_S && ruled_out.iter().any(|one| one.rule == OF_CYCLE);
    match cycle.zip(derived.dirty.expiry_seconds).filter(|(cycle, _)| watched < *cycle && !is_told()) {
        Some((cycle, expiry)) => {
            let expiry = human::seconds(expiry);
            let what = format!(
                "The kernel writes dirty data once it is {expiry} old (vm.dirty_expire_centisecs). The observation was too short to show this."
            );
            let look_s = (cycle.ceil() as u64).saturating_add(1).max(LONG_S as u64);
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

/// Tells that no disk was full, where the time that one takes for the data to come decides whether tasks wait.
fn speed(derived: &Derived<'_>) -> Option<String> {
    let bytes = cycle::most(derived)?;
    let is_known = |device: &Device<'_>| device.write_bandwidth().is_some_and(|speed| speed.basis.is_known());
    let is_written = |device: &&Device<'_>| device.span.growth.written.is_some_and(|written| written.0 > 0);
    let unknown = derived.drains().iter().filter(is_written).find(|device| !is_known(device))?;
    let may_stall = cycle::slowest_seconds(derived, bytes) >= NOTICED_S;
    may_stall.then(|| {
        let (name, amount) = (&unknown.name, human::bytes(bytes));
        format!("The write speed of {name} was not measured, so it is not known how long writing up to {amount} of dirty data takes.")
    })
}

#[cfg(test)]
mod tests {
    use crate::diagnose::diagnose;
    use floodline_record::units::{Centisecs, Pages};
    use floodline_testkit::Fixture;

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
        assert_eq!(told(&late(40)).first().map(|one| one.1), Some(126));
        assert_eq!(told(&late(60)), []);
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
        let rising =
            Fixture::healthy().seconds(6).facts(|facts| facts.devices[0].rotational = Some(true)).host(|t, row| {
                let dirty = 2_000 + 2_000 * t as u64;
                (row.nr_dirty, row.nr_dirtied) = (Some(Pages(dirty)), Some(Pages(40_000_000 + dirty)));
            });
        let all = told(&rising.bdi("8:0", |_, row| row.write_bandwidth = None));
        assert!(all.iter().any(|(what, _)| what.starts_with("The write speed of sda was not measured")), "{all:?}");
    }
}
