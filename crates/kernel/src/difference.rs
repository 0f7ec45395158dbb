// SPDX-License-Identifier: MIT OR Apache-2.0
//! What differs for writeback between two kernels: changes that one has and the other has not. A change that a later one
//! undoes or replaces is left out where both lie between the two.

use crate::behaviour::Behaviour;
use crate::change::{Change, Presence, change, changes};
use crate::release::Release;

/// What differs between two kernels.
#[derive(Clone, Debug)]
pub struct Difference {
    /// The kernel that is left.
    pub from: Release,
    /// The kernel that comes instead.
    pub to: Release,
    /// Changes that only the second has, in order of release.
    pub gained: Vec<&'static Change>,
    /// Changes that only the first has, in order of release.
    pub lost: Vec<&'static Change>,
    /// Changes of which one kernel may have, and the versions do not say.
    pub uncertain: Vec<Uncertain>,
}

/// A change that the versions do not decide.
#[derive(Clone, Copy, Debug)]
pub struct Uncertain {
    /// The change.
    pub change: &'static Change,
    /// Whether the first kernel has it.
    pub from: Presence,
    /// Whether the second has it.
    pub to: Presence,
}

/// What differs between two kernels.
pub fn difference(from: &Release, to: &Release) -> Difference {
    let (mut gained, mut lost, mut uncertain) = (Vec::new(), Vec::new(), Vec::new());
    for change in changes() {
        match (from.presence(change), to.presence(change)) {
            (Presence::Out, Presence::In) => gained.push(change),
            (Presence::In, Presence::Out) => lost.push(change),
            (one, other) if one != other => uncertain.push(Uncertain { change, from: one, to: other }),
            _ => {}
        }
    }
    let has = |release: &Release, change: &Change| release.presence(change) == Presence::In;
    Difference {
        gained: lasting(gained, |change| has(from, change)),
        lost: lasting(lost, |change| has(to, change)),
        uncertain,
        from: from.clone(),
        to: to.clone(),
    }
}

/// What a kernel without a change does instead: where it also lacks the change that this one builds on, what it does
/// without that.
pub fn instead(one: &Change, kernel: &Release) -> &'static str {
    match one.follows.and_then(change).filter(|older| kernel.presence(older) == Presence::Out) {
        Some(older) => instead(older, kernel),
        None => one.before,
    }
}

/// Of the changes that come on top of a base, those that make a difference in the end.
fn lasting(mut new: Vec<&'static Change>, is_in_base: impl Fn(&Change) -> bool) -> Vec<&'static Change> {
    let behaviour = |new: &[&'static Change], without: Option<&str>| {
        Behaviour::composed(|change| {
            let is_new = new.iter().any(|known| known.id == change.id) && without != Some(change.id);
            is_new || is_in_base(change)
        })
    };
    for change in new.clone() {
        if change.set.is_some() && behaviour(&new, Some(change.id)) == behaviour(&new, None) {
            new.retain(|known| known.id != change.id);
        }
    }
    new
}

#[cfg(test)]
mod tests {
    use super::*;

    fn between(from: &str, to: &str) -> Difference {
        difference(&Release::parse(from).expect(from), &Release::parse(to).expect(to))
    }

    fn ids(changes: &[&'static Change]) -> Vec<&'static str> {
        changes.iter().map(|change| change.id).collect()
    }

    #[test]
    fn an_upgrade_gains_what_the_releases_between_brought() {
        let found = between("5.10", "6.12");
        let gained = ids(&found.gained);
        for id in ["dying-wb-release", "bandwidth-skips-idle", "wb-stats", "bdi-ratios-ppm", "task-delayacct"] {
            assert!(gained.contains(&id), "{id} is missing: {gained:?}");
        }
        for id in ["share-floor", "cgroup-writeback-xfs", "no-laptop-mode"] {
            assert!(!gained.contains(&id), "{id} is of another release");
        }
        assert!(found.lost.is_empty(), "{:?}", ids(&found.lost));
        let uncertain: Vec<&str> = found.uncertain.iter().map(|one| one.change.id).collect();
        assert!(
            uncertain.contains(&"switch-without-sorting") && uncertain.contains(&"limits-overflow"),
            "{uncertain:?}"
        );
    }

    #[test]
    fn a_downgrade_loses_what_the_upgrade_gains() {
        for (old, new) in [("5.10.0", "6.12.0"), ("4.4.0", "7.2.0"), ("6.1.192", "6.2.0"), ("6.1.0", "6.18.44")] {
            let (up, down) = (between(old, new), between(new, old));
            assert_eq!((ids(&up.gained), ids(&up.lost)), (ids(&down.lost), ids(&down.gained)), "{old} and {new}");
        }
    }

    #[test]
    fn a_stable_release_can_have_what_a_later_series_lacks() {
        let found = between("6.1.192", "6.2.0");
        assert!(ids(&found.gained).contains(&"bdi-ratios-ppm"));
        assert!(ids(&found.lost).contains(&"switch-without-sorting"));
        assert!(found.uncertain.is_empty());
    }

    #[test]
    fn what_a_later_change_undid_is_left_out() {
        let gained = between("5.10.0", "6.12.0").gained;
        for id in ["chunk-in-folios", "chunk-in-pages", "ioend-batch", "memcg-stats-flushed"] {
            assert!(!ids(&gained).contains(&id), "{id}: {:?}", ids(&gained));
        }
        assert!(ids(&between("5.10.0", "6.1.0").gained).contains(&"chunk-in-folios"));
        assert!(ids(&between("6.1.0", "6.12.0").gained).contains(&"chunk-in-pages"));
    }

    #[test]
    fn a_kernel_without_the_change_below_is_described_as_it_is() {
        let stats = change("memcg-stats-rate-limited").expect("a change");
        let on = |text: &str| instead(stats, &Release::parse(text).expect(text));
        assert_eq!(on("5.10"), "Throttling sums the counters of a cgroup over all CPUs.");
        assert_eq!(on("6.1"), "Throttling folds the counters of a cgroup when enough has changed.");
    }

    #[test]
    fn a_kernel_does_not_differ_from_itself() {
        for text in ["6.12", "6.1.192", "5.14.0-427.el9"] {
            let found = between(text, text);
            assert!(found.gained.is_empty() && found.lost.is_empty() && found.uncertain.is_empty(), "{text}");
        }
    }
}
