// SPDX-License-Identifier: MIT OR Apache-2.0
//! One change of the kernel that writeback feels: since which release, in which stable releases, by which commit, and
//! what it means. The list of all is in [`super::changes`]; [`super::Behaviour`] and `floodline kernels` are both made
//! from it.

use super::behaviour::Behaviour;
use floodline_record::version::{KernelVersion, Series};

/// One change. Sentences are written for operators: each names its subject and says one thing.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    /// Name of the change, unique, in kebab case. Stable: the JSON page and probes refer to it.
    pub id: &'static str,
    /// Part of the kernel.
    pub area: Area,
    /// First mainline release that has it.
    pub since: Series,
    /// Whether `since` is verified; else the release is known to within a few.
    pub is_since_sure: bool,
    /// Commits that made it, the most telling first.
    pub commits: &'static [Commit],
    /// Stable releases before `since` that have it.
    pub backports: &'static [Backport],
    /// The change that this one builds on: a kernel without both does what `before` says there.
    pub follows: Option<&'static str>,
    /// How much an operator notices of it.
    pub weight: Weight,
    /// What kernels without it do: one sentence.
    pub before: &'static str,
    /// What kernels with it do: one sentence.
    pub after: &'static str,
    /// What it means for an operator: one or two sentences.
    pub means: &'static str,
    /// How it changes the behaviour; `None` for what neither the model nor a rule reads.
    pub set: Option<fn(&mut Behaviour)>,
}

/// One commit.
#[derive(Clone, Copy, Debug)]
pub struct Commit {
    /// First twelve digits of the mainline hash; `None` where it is not known.
    pub hash: Option<&'static str>,
    /// Subject line.
    pub subject: &'static str,
}

/// A commit of mainline.
pub(super) const fn commit(hash: &'static str, subject: &'static str) -> Commit {
    Commit { hash: Some(hash), subject }
}

/// A commit whose hash is not known here.
pub(super) const fn titled(subject: &'static str) -> Commit {
    Commit { hash: None, subject }
}

/// A stable series that got a change.
#[derive(Clone, Copy, Debug)]
pub struct Backport {
    /// The series.
    pub series: Series,
    /// The first patch level known to have it.
    pub patch: u16,
    /// The last patch level known to be without it; `None` where only releases that have it were read.
    pub without: Option<u16>,
}

/// The stable release that brought a change, known exactly.
pub(super) const fn first(major: u16, minor: u16, patch: u16) -> Backport {
    Backport { series: Series(major, minor), patch, without: Some(patch.saturating_sub(1)) }
}

/// A stable release that has a change, which an earlier one may have brought.
pub(super) const fn seen(major: u16, minor: u16, patch: u16) -> Backport {
    Backport { series: Series(major, minor), patch, without: None }
}

/// Part of the kernel that a change is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Area {
    /// Thresholds, domains and throttling.
    Throttling,
    /// Flusher threads.
    Flusher,
    /// sync, syncfs, fsync and umount.
    Sync,
    /// Cgroup writeback and inode switching.
    Cgroups,
    /// Filesystems and journals.
    Filesystems,
    /// Large folios and the page cache.
    Folios,
    /// Loop devices, overlays and arrays.
    Stacks,
    /// The block layer.
    Block,
    /// Settings.
    Settings,
    /// Files and events.
    Files,
}

impl Area {
    /// Every area, in the order of the page.
    pub const ALL: &'static [Area] = &[
        Area::Throttling,
        Area::Flusher,
        Area::Sync,
        Area::Cgroups,
        Area::Filesystems,
        Area::Folios,
        Area::Stacks,
        Area::Block,
        Area::Settings,
        Area::Files,
    ];

    /// Its heading.
    pub const fn title(self) -> &'static str {
        match self {
            Area::Throttling => "Thresholds and throttling",
            Area::Flusher => "Flusher",
            Area::Sync => "sync, fsync and umount",
            Area::Cgroups => "Cgroups",
            Area::Filesystems => "Filesystems and journals",
            Area::Folios => "Large folios",
            Area::Stacks => "Overlays, loop devices and arrays",
            Area::Block => "Block layer",
            Area::Settings => "Settings",
            Area::Files => "Files and events",
        }
    }
}

/// How much an operator notices of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// Stalls, throughput, budgets or settings change.
    Noticed,
    /// Only measurements show it.
    Detail,
}

/// Whether a kernel has a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It has.
    In,
    /// It has not.
    Out,
    /// It is of a series that got the change, between a release without and one with it.
    Unsure,
}

impl Change {
    /// Whether a kernel has it, as mainline and the stable releases that were read tell.
    pub fn presence(&self, version: KernelVersion) -> Presence {
        let series = version.series();
        if series >= self.since {
            return Presence::In;
        }
        match self.backports.iter().find(|backport| backport.series == series) {
            Some(backport) if version.patch >= backport.patch => Presence::In,
            Some(backport) if backport.without.is_some_and(|without| version.patch > without) => Presence::Unsure,
            _ => Presence::Out,
        }
    }
}

/// The series that changes are stated against: nothing older is known.
pub const OLDEST_KNOWN: Series = Series(3, 2);

/// The oldest series that the simulator models.
pub const OLDEST_MODELLED: Series = Series(4, 4);

/// The newest series of which a change is known. What is newer is taken to behave like it.
pub fn newest_modelled() -> Series {
    changes().map(|change| change.since).max().unwrap_or(OLDEST_MODELLED)
}

/// Whether a kernel is as new as the oldest that changes are stated against.
pub fn is_known(version: KernelVersion) -> bool {
    version.series() >= OLDEST_KNOWN
}

/// Whether the simulator models a kernel.
pub fn is_modelled(version: KernelVersion) -> bool {
    version.series() >= OLDEST_MODELLED
}

/// Whether a kernel is of a later series than any change known.
pub fn is_newer_than_modelled(version: KernelVersion) -> bool {
    version.series() > newest_modelled()
}

/// Every change, oldest release first.
pub fn changes() -> impl Iterator<Item = &'static Change> {
    super::changes::ALL.iter().flat_map(|series| series.iter())
}

/// The change of a name.
pub fn change(id: &str) -> Option<&'static Change> {
    changes().find(|change| change.id == id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn changes_are_in_order_of_release_and_have_unique_names() {
        let mut names = BTreeSet::new();
        let mut last = Series(0, 0);
        for change in changes() {
            assert!(names.insert(change.id), "{} is there twice", change.id);
            assert!(
                change.id.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'),
                "{}",
                change.id
            );
            assert!(change.since >= last, "{} belongs before {last}", change.id);
            last = change.since;
        }
    }

    #[test]
    fn every_change_says_what_it_is_in_whole_sentences() {
        for change in changes() {
            for sentence in [change.before, change.after, change.means] {
                assert!(sentence.ends_with('.') && sentence.len() > 15, "{}: {sentence}", change.id);
                assert!(sentence.chars().next().is_some_and(|c| !c.is_whitespace()), "{}: {sentence}", change.id);
                assert!(!sentence.contains("  ") && sentence.is_ascii(), "{}: {sentence}", change.id);
            }
            assert!(!change.commits.is_empty() || !change.is_since_sure, "{}: a sure release has a commit", change.id);
            for commit in change.commits {
                let is_hash = |hash: &str| hash.len() == 12 && hash.chars().all(|c| c.is_ascii_hexdigit());
                assert!(commit.hash.is_none_or(is_hash) && !commit.subject.is_empty(), "{}: {commit:?}", change.id);
            }
        }
    }

    #[test]
    fn a_change_follows_an_older_one() {
        for one in changes() {
            let follows = one.follows.map(|id| change(id).unwrap_or_else(|| panic!("{}: no change {id}", one.id)));
            assert!(follows.is_none_or(|older| older.since < one.since), "{}", one.id);
        }
    }

    #[test]
    fn backports_are_older_than_mainline_and_one_for_each_series() {
        for change in changes() {
            let series: BTreeSet<Series> = change.backports.iter().map(|backport| backport.series).collect();
            assert_eq!(series.len(), change.backports.len(), "{}", change.id);
            for backport in change.backports {
                assert!(backport.series < change.since, "{} {}", change.id, backport.series);
                assert!(backport.without.is_none_or(|without| without < backport.patch), "{}", change.id);
            }
        }
    }

    #[test]
    fn between_the_last_release_without_and_the_first_with_a_change_its_presence_is_unsure() {
        let backports: &'static [Backport] = &[Backport { series: Series(6, 1), patch: 10, without: Some(5) }];
        let since = Series(6, 9);
        let one = Change { since, backports, ..*changes().next().expect("a change") };
        let check = |major, minor, patch, expect| {
            assert_eq!(one.presence(KernelVersion::new(major, minor, patch)), expect, "{major}.{minor}.{patch}");
        };
        check(6, 1, 4, Presence::Out);
        check(6, 1, 5, Presence::Out);
        check(6, 1, 6, Presence::Unsure);
        check(6, 1, 9, Presence::Unsure);
        check(6, 1, 10, Presence::In);
        check(6, 2, 50, Presence::Out);
        check(6, 8, 50, Presence::Out);
        check(6, 9, 0, Presence::In);
        check(7, 0, 0, Presence::In);
    }

    #[test]
    fn a_backport_names_the_release_with_it_and_the_one_before() {
        let of = |backport: Backport| (backport.series, backport.patch, backport.without);
        assert_eq!(of(first(6, 12, 54)), (Series(6, 12), 54, Some(53)));
        assert_eq!(of(seen(6, 12, 54)), (Series(6, 12), 54, None));
    }

    #[test]
    fn the_known_and_the_modelled_kernels_have_their_ends() {
        let check = |major, minor, known, modelled, newer| {
            let version = KernelVersion::new(major, minor, 3);
            let found = (is_known(version), is_modelled(version), is_newer_than_modelled(version));
            assert_eq!(found, (known, modelled, newer), "{major}.{minor}");
        };
        let newest = newest_modelled();
        check(3, 1, false, false, false);
        check(3, 2, true, false, false);
        check(4, 3, true, false, false);
        check(4, 4, true, true, false);
        check(6, 12, true, true, false);
        check(newest.0, newest.1, true, true, false);
        check(newest.0, newest.1 + 1, true, true, true);
        check(newest.0 + 1, 0, true, true, true);
    }

    #[test]
    fn every_area_has_a_title_of_its_own() {
        let titles: BTreeSet<&str> = Area::ALL.iter().map(|area| area.title()).collect();
        assert_eq!(titles.len(), Area::ALL.len());
        assert!(titles.iter().all(|title| title.len() > 4), "{titles:?}");
        assert_eq!(Area::Sync.title(), "sync, fsync and umount");
    }

    #[test]
    fn every_change_of_a_field_changes_it() {
        let mut behaviour = Behaviour::composed(|_| false);
        for change in changes() {
            let before = behaviour;
            if let Some(set) = change.set {
                set(&mut behaviour);
                assert_ne!(behaviour, before, "{} sets what is set already", change.id);
            }
        }
        assert_eq!(behaviour, Behaviour::newest());
    }
}
