// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shares of the dirty threshold with which a recording begins. debugfs prints the threshold of each bdi and, since 6.10, of each
//! wb; a wb's part of the machine's threshold is its part of the pages that were written lately. Inverts
//! [`floodline_kernel::wb_calc_thresh`]. Reads the first sample only.

use floodline_kernel::{Algorithm, Behaviour};
use floodline_record::id::Entity;
use floodline_record::name::Name;
use floodline_record::sample::BdiRow;
use floodline_record::units::Nanos;
use floodline_record::window::Window;
use floodline_scenario::Share;
use std::collections::BTreeMap;

/// Inode number of the root cgroup.
const ROOT: u64 = 1;
/// Parts per million of a whole ratio.
const FULL: u64 = 1_000_000;
/// Largest number of pages of all wbs that is tried: 256 MiB of 3 s.
const PAGES_MAX: u64 = 65_536;
/// Time in which a domain that is halved every 3 s completes what it counts at most, at a steady pace.
const KEPT: Nanos = Nanos(6 * Nanos::SECOND.0);
/// Number of pages that is taken where none of these explains the thresholds.
const PAGES_ELSE: u64 = 4_096;
/// The kernel prints the threshold of a bdi some milliseconds after the machine's. Part of its change between two samples that it may have
/// changed by then.
const DRIFT: u64 = 8;

/// The shares of the wbs in a recording's first sample, all of the same number of pages. Wbs that are not recorded are missing: those of
/// cgroups before 6.10.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StartShares {
    shares: BTreeMap<(Name, u64), Share>,
    has_wbs: bool,
}

/// Threshold of a wb in the first sample, pages.
#[derive(Clone, Copy, Debug)]
enum Shown {
    /// As many as its share allows; at least this many.
    Share(u64),
    /// The memcg's threshold is smaller, so the share shows nowhere. Holds the pages that the wb has written since it exists.
    Hidden(u64),
}

impl StartShares {
    /// Reads the shares. `None` if the first sample has no threshold of a bdi.
    pub fn of(window: &Window) -> Option<StartShares> {
        let first = window.first_at?.monotonic;
        let facts = window.facts.as_ref()?;
        let page = facts.page_size.max(1);
        let algorithm = Behaviour::of(facts.kernel?).arithmetic;
        let thresh = window.host.first.nr_dirty_threshold?.0;
        let next = window.host_series.get(1).and_then(|(_, row)| row.nr_dirty_threshold).map_or(thresh, |next| next.0);
        let machine = Machine { algorithm, thresh, error: 1 + next.abs_diff(thresh) / DRIFT };
        let mut by_bdi: BTreeMap<&Name, Bdi> = BTreeMap::new();
        for (id, span) in window.bdis.iter().filter(|(_, span)| span.first_at == first) {
            let Some(Entity::Bdi { name }) = window.entities.get(id) else { continue };
            let Some(shown) = span.first.dirty_thresh else { continue };
            let written = span.first.written.map_or(0, |bytes| bytes.0 / page);
            by_bdi.insert(name, Bdi { shown: shown.0 / page, written, ..Bdi::of(&span.first) });
        }
        let min_ratio_sum = by_bdi.values().map(|bdi| bdi.min_ratio).fold(0, u64::saturating_add).min(FULL);
        let mut has_wbs = false;
        for (id, span) in window.wbs.iter().filter(|(_, span)| span.first_at == first) {
            let Some(Entity::Wb { bdi, cgroup_ino }) = window.entities.get(id) else { continue };
            let Some((bdi, shown)) = by_bdi.get_mut(bdi).zip(span.first.dirty_thresh) else { continue };
            has_wbs = true;
            let written = span.first.written.map_or(0, |bytes| bytes.0 / page);
            bdi.wbs.push((*cgroup_ino, shown.0 / page, written));
        }
        let kept = kept(by_bdi.values().map(|bdi| bdi.written).fold(0, u64::saturating_add), first);
        let shown: BTreeMap<(&Name, u64), Shown> = by_bdi
            .iter()
            .flat_map(|(name, bdi)| bdi.wbs(&machine).into_iter().map(|(ino, of)| ((*name, ino), of)))
            .collect();
        if shown.is_empty() {
            return None;
        }
        let thresh = part(thresh, FULL - min_ratio_sum);
        let (ids, shown): (Vec<_>, Vec<_>) = shown.into_iter().unzip();
        let (pages, of) = fraction(&filled(&shown, thresh), thresh, machine.error);
        let times = if tells_all(&pages, of, thresh, machine.error) { 1 } else { (kept / of).max(1) };
        let small = |pages: u64| u32::try_from(pages.saturating_mul(times)).unwrap_or(u32::MAX);
        let shares = pages.into_iter().map(|pages| Share { pages: small(pages), of: small(of) });
        let shares = ids.into_iter().map(|(name, ino)| (name.clone(), ino)).zip(shares).collect();
        Some(StartShares { shares, has_wbs })
    }

    /// The share of a bdi's root wb.
    pub fn of_bdi(&self, bdi: &Name) -> Option<Share> {
        self.shares.get(&(bdi.clone(), ROOT)).copied()
    }

    /// The shares of cgroups: bdi, inode number of the cgroup, and share.
    pub fn of_cgroups(&self) -> impl Iterator<Item = (&Name, u64, Share)> {
        self.shares.iter().filter(|((_, ino), _)| *ino != ROOT).map(|((bdi, ino), share)| (bdi, *ino, *share))
    }

    /// Whether wbs are recorded one by one, as they are since 6.10: a cgroup that is missing then has written nothing yet.
    pub fn has_wbs(&self) -> bool {
        self.has_wbs
    }

    /// Parts per million that no wb of these has.
    pub fn rest_ppm(&self) -> u64 {
        let ppm = self.shares.values().map(|share| share.among(FULL)).fold(0, u64::saturating_add);
        FULL.saturating_sub(ppm)
    }

    /// Whether any wb has a share.
    pub fn is_any(&self) -> bool {
        self.shares.values().any(|share| share.pages > 0)
    }
}

/// What the first sample shows of the machine.
struct Machine {
    algorithm: Algorithm,
    /// Threshold, pages.
    thresh: u64,
    /// By how many pages a printed threshold may be off.
    error: u64,
}

/// What the first sample shows of a bdi: ratios in parts per million, and thresholds in pages.
#[derive(Default)]
struct Bdi {
    min_ratio: u64,
    is_strict: bool,
    shown: u64,
    /// Pages that it has written since it exists.
    written: u64,
    /// Inode of the cgroup, threshold and written pages of each wb.
    wbs: Vec<(u64, u64, u64)>,
}

impl Bdi {
    fn of(row: &BdiRow) -> Bdi {
        Bdi {
            min_ratio: row.min_ratio.map_or(0, |ratio| ratio.0),
            is_strict: row.strict_limit.is_some_and(|flag| flag.0 > 0),
            ..Bdi::default()
        }
    }

    /// Its wbs by the inodes of their cgroups. Up to 6.9 only that of the root is printed.
    fn wbs(&self, machine: &Machine) -> Vec<(u64, Shown)> {
        let Machine { algorithm, thresh, error } = machine;
        // The floor is a part of the pages that are not dirty. When most recordings begin, few pages are dirty.
        let floor = if algorithm.share_floor { thresh / if self.is_strict { 100 } else { 8 } } else { 0 };
        let without_minimum = |shown: u64| shown.saturating_sub(part(*thresh, self.min_ratio));
        let share =
            |shown: u64| if shown <= floor.saturating_add(*error) && floor > 0 { 0 } else { without_minimum(shown) };
        if self.wbs.is_empty() {
            return vec![(ROOT, Shown::Share(share(self.shown)))];
        }
        let printed = self.wbs.iter().map(|(_, shown, _)| *shown).fold(0, u64::saturating_add);
        // The row of the bdi adds up the shares in the machine's threshold, the row of a wb has the smaller one of its two.
        let is_hidden = self.shown > printed.saturating_add(error.saturating_mul(self.wbs.len() as u64));
        let of = |&(ino, shown, written): &(u64, u64, u64)| {
            let hides = is_hidden && ino != ROOT && shown > 0 && (floor == 0 || shown < floor);
            (ino, if hides { Shown::Hidden(written) } else { Shown::Share(share(shown)) })
        };
        self.wbs.iter().map(of).collect()
    }
}

/// A part of a number of pages, in parts per million.
fn part(pages: u64, ppm: u64) -> u64 {
    u64::try_from(u128::from(pages) * u128::from(ppm) / u128::from(FULL)).unwrap_or(u64::MAX)
}

/// The pages of the threshold that each wb has. What is left is that of the wbs whose shares are hidden, by what they have written.
/// Counters with few pages may show more than all pages: then each has its part of what all show.
fn filled(shown: &[Shown], thresh: u64) -> Vec<u64> {
    let of = |part: u64, whole: u64, pages: u64| {
        u64::try_from(u128::from(pages) * u128::from(part) / u128::from(whole.max(1))).unwrap_or(u64::MAX)
    };
    let known = |shown: &Shown| if let Shown::Share(pages) = shown { (*pages).min(thresh) } else { 0 };
    let written = |shown: &Shown| if let Shown::Hidden(written) = shown { *written } else { 0 };
    let sum = shown.iter().map(known).fold(0, u64::saturating_add);
    let rest = thresh.saturating_sub(sum);
    let all = shown.iter().map(written).fold(0, u64::saturating_add);
    shown.iter().map(|shown| of(thresh, sum.max(thresh), known(shown)) + of(written(shown), all, rest)).collect()
}

/// The smallest counts of pages that explain thresholds, and the count of all: a count of `n` pages of `of` gives a wb
/// `thresh × n / of`, rounded down.
fn fraction(shown: &[u64], thresh: u64, error: u64) -> (Vec<u64>, u64) {
    let mut counts = vec![0; shown.len()];
    let of = (1..=PAGES_MAX).find(|of| {
        let mut left = *of;
        shown.iter().zip(&mut counts).all(|(shown, count)| {
            *count = counted(*shown, thresh, error, *of);
            let got = (u128::from(thresh) * u128::from(*count) / u128::from(*of)) as u64;
            let fits = if *shown == 0 { *count == 0 } else { got.abs_diff(*shown) <= error };
            left = left.wrapping_sub(*count);
            fits && left <= *of
        })
    });
    if let Some(of) = of {
        return (counts, of);
    }
    let of = PAGES_ELSE;
    let mut left = of;
    let count = |shown: &u64| {
        let count = ((u128::from(*shown) * u128::from(of) / u128::from(thresh.max(1))) as u64).min(left);
        left -= count;
        count
    };
    (shown.iter().map(count).collect(), of)
}

/// Whether the count of all is that of the kernel: a fraction of few pages is none of another count by chance. That a wb has all
/// shows nothing of the count.
fn tells_all(pages: &[u64], of: u64, thresh: u64, error: u64) -> bool {
    // About of² / 3 fractions have as few pages. Together they explain this many of the thresholds.
    let explained = u128::from(of).pow(2).saturating_mul(u128::from(error) * 2 + 1);
    // Where all have none, these pages are no count of theirs.
    let (has_all, has_none) = (pages.contains(&of), pages.iter().all(|pages| *pages == 0));
    has_none || !has_all && explained.saturating_mul(4) < u128::from(thresh)
}

/// Pages that a domain counts at most if all wbs have written as many at a steady pace since the boot, up to [`PAGES_MAX`].
fn kept(written: u64, uptime: Nanos) -> u64 {
    let kept = u128::from(written) * u128::from(KEPT.0) / u128::from(uptime.0.max(KEPT.0));
    u64::try_from(kept).unwrap_or(u64::MAX).min(PAGES_MAX)
}

/// The smallest count of `of` that gives a threshold of at least `shown` within the error.
fn counted(shown: u64, thresh: u64, error: u64, of: u64) -> u64 {
    if shown == 0 || thresh == 0 {
        return 0;
    }
    let least = u128::from(shown.saturating_sub(error).max(1));
    let count = (least * u128::from(of)).div_ceil(u128::from(thresh));
    u64::try_from(count).unwrap_or(u64::MAX).min(of)
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_record::sample::WbRow;
    use floodline_record::units::{Bytes, Flag, Pages, Ppm};
    use floodline_testkit::Fixture;

    const THRESH: u64 = 100_000;

    /// A machine with a threshold of 100,000 pages on a kernel, and its disks with theirs.
    fn machine(kernel: &str, disks: &[(&str, u64)]) -> Fixture {
        let host = |_: f64, row: &mut floodline_record::sample::HostRow| row.nr_dirty_threshold = Some(Pages(THRESH));
        let machine = Fixture::healthy().kernel(kernel).host(host);
        disks.iter().fold(machine, |machine, (disk, pages)| {
            let pages = *pages;
            let bdi = floodline_testkit::dev_of(disk).to_string();
            machine.disk(disk, |_, _| {}).bdi(&bdi, move |t, row| {
                // Only the first sample counts.
                row.dirty_thresh = Some(Bytes(4096 * if t > 0.0 { THRESH } else { pages }));
            })
        })
    }

    /// A disk that has written so much before the recording, pages.
    fn written(pages: u64) -> impl Fn(f64, &mut BdiRow) {
        move |_, row| row.written = Some(Bytes(4096 * pages))
    }

    fn shares(machine: Fixture) -> Vec<(String, u64, String)> {
        let start = StartShares::of(&machine.window()).expect("it has thresholds");
        start.shares.iter().map(|((bdi, ino), share)| (bdi.to_string(), *ino, share.to_string())).collect()
    }

    #[test]
    fn the_threshold_of_a_disk_shows_the_fewest_pages_that_explain_it() {
        let one = |kernel, pages| shares(machine(kernel, &[("sda", pages)]).bdi("8:0", written(0)))[0].2.clone();
        // Two thirds, rounded down; 16 pages of 33, as a guest showed; a disk alone after 2112 pages.
        assert_eq!(["6.12", "5.10"].map(|kernel| one(kernel, 66_666)), ["2/3", "2/3"]);
        assert_eq!([one("6.12", 48_484), one("6.12", THRESH), one("6.12", 0)], ["16/33", "1/1", "0/1"]);
        let (pages, of) = fraction(&[THRESH * 2112 / 2113], THRESH, 1);
        assert!((2000..2200).contains(&of) && pages == [of - 1], "{pages:?} of {of}");
        // More than the machine's threshold: that changed between the two readings.
        assert_eq!(one("6.12", THRESH + 700), "1/1");
    }

    #[test]
    fn a_fraction_that_shows_no_count_is_one_of_what_the_disks_have_written() {
        let uptime = floodline_testkit::UPTIME as u64;
        // Pages that all disks have written in 6 s, of which the second has one in ten.
        let of = |disks: &[(&str, u64)], pages: u64| {
            let host = machine("6.12", disks).bdi("8:0", written(pages * 9 * (uptime / 10) / 6));
            let host = if disks.len() > 1 { host.bdi("8:16", written(pages * (uptime / 10) / 6)) } else { host };
            shares(host).into_iter().map(|(.., share)| share).collect::<Vec<_>>()
        };
        assert_eq!(of(&[("sda", THRESH), ("sdb", 0)], 1_200), ["1200/1200", "0/1200"]);
        assert_eq!(of(&[("sda", THRESH), ("sdb", 0)], 1 << 24), ["65536/65536", "0/65536"]);
        assert_eq!(of(&[("sda", 0), ("sdb", 0)], 0), ["0/1", "0/1"]);
        // A threshold of two thirds is hardly that of other numbers; one of 43,301 pages may be.
        assert_eq!(of(&[("sda", 66_666), ("sdb", 33_333)], 1_200), ["2/3", "1/3"]);
        assert_eq!(of(&[("sda", 43_301)], 10_000), ["3892/8988"]);
        assert_eq!(
            [kept(500, Nanos::SECOND), kept(500, Nanos(60 * Nanos::SECOND.0)), kept(u64::MAX, Nanos(0))],
            [500, 50, 65_536]
        );
    }

    #[test]
    fn shares_of_disks_have_one_number_of_all_pages_and_add_up_to_it_at_most() {
        let of = |disks: &[(&str, u64)]| {
            shares(machine("6.12", disks)).into_iter().map(|(.., share)| share).collect::<Vec<_>>()
        };
        assert_eq!(of(&[("sda", 25_000), ("sdb", 33_333)]), ["3/12", "4/12"]);
        assert_eq!(
            of(&[("sda", THRESH), ("sdb", THRESH)]),
            ["1/2", "1/2"],
            "both have 1 of 1 where the CPUs hold pages back"
        );
        assert_eq!(of(&[("sda", THRESH), ("sdb", 500)])[0].split_once('/').map(|(pages, of)| pages != of), Some(true));
    }

    #[test]
    fn settings_and_the_floor_are_no_share() {
        // A minimum of a tenth for one disk: the other has half of the rest.
        let minimum = machine("6.12", &[("sda", 10_000), ("sdb", 45_000)])
            .bdi("8:0", |_, row| row.min_ratio = Some(Ppm(100_000)));
        assert_eq!(shares(minimum).into_iter().map(|(.., share)| share).collect::<Vec<_>>(), ["0/2", "1/2"]);
        // Since 6.14 a disk gets at least an eighth of the pages that are not dirty; with a strict limit, a hundredth.
        let of = |kernel, pages, is_strict: bool| {
            let bdi = move |_: f64, row: &mut BdiRow| row.strict_limit = Some(Flag(u64::from(is_strict)));
            shares(machine(kernel, &[("sda", pages)]).bdi("8:0", bdi))[0].2.clone()
        };
        assert_eq!(
            [of("6.13", 12_500, false), of("6.14", 12_500, false), of("6.14", 50_000, false)],
            ["1/8", "0/1", "1/2"]
        );
        assert_eq!([of("6.14", 12_500, true), of("6.14", 1_000, true)], ["1/8", "0/1"]);
    }

    #[test]
    fn a_share_that_a_small_cgroup_hides_is_what_others_leave() {
        let wb = |pages: u64, written: u64| {
            move |_: f64, row: &mut WbRow| {
                (row.dirty_thresh, row.written) = (Some(Bytes(4096 * pages)), Some(Bytes(4096 * written)));
            }
        };
        let host = || machine("6.12", &[("sda", THRESH)]).wb("8:0", 1, wb(25_000, 9));
        let of = |machine| shares(machine).into_iter().map(|(_, ino, share)| (ino, share)).collect::<Vec<_>>();
        let plain = host().wb("8:0", 70, wb(75_000, 9));
        assert_eq!(of(plain), [(1, "1/4".to_owned()), (70, "3/4".to_owned())]);
        // Two cgroups with thresholds of 1 MiB have three quarters of all pages.
        let hidden = host().wb("8:0", 70, wb(256, 1_000)).wb("8:0", 71, wb(256, 2_000)).wb("8:0", 72, wb(0, 500));
        let expect = [(1, "1/4"), (70, "1/4"), (71, "2/4"), (72, "0/4")].map(|(ino, share)| (ino, share.to_owned()));
        assert_eq!(of(hidden), expect);
    }

    #[test]
    fn wbs_are_recorded_where_one_has_a_threshold() {
        let has_wbs = |machine: Fixture| StartShares::of(&machine.window()).expect("it has thresholds").has_wbs();
        let wb = |thresh: Option<Bytes>| move |_: f64, row: &mut WbRow| row.dirty_thresh = thresh;
        let host = || machine("6.12", &[("sda", 0)]);
        let all = [host(), host().wb("8:0", 1, wb(None)), host().wb("8:0", 1, wb(Some(Bytes(0))))];
        assert_eq!(all.map(has_wbs), [false, false, true]);
    }

    #[test]
    fn a_recording_without_thresholds_shows_no_shares() {
        let of = |machine: Fixture| StartShares::of(&machine.window());
        let without = |_: f64, row: &mut floodline_record::sample::HostRow| row.nr_dirty_threshold = None;
        assert!(of(machine("6.12", &[("sda", 9)]).facts(|facts| facts.kernel = None)).is_none());
        assert_eq!(StartShares::of(&Window::default()), None);
        let mut window = machine("6.12", &[("sda", 9)]).window();
        without(0.0, &mut window.host.first);
        assert_eq!(StartShares::of(&window), None);
        // Values that no kernel prints.
        for (thresh, shown) in [(0, 0), (0, 7), (1, u64::MAX / 4096), (u64::MAX, 1), (u64::MAX, u64::MAX / 4096)] {
            let host =
                move |_: f64, row: &mut floodline_record::sample::HostRow| row.nr_dirty_threshold = Some(Pages(thresh));
            let found = shares(machine("6.12", &[("sda", shown)]).host(host));
            assert!(found[0].2.parse::<Share>().is_ok(), "{thresh} {shown}: {found:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn counts_give_back_the_thresholds_that_they_explain(counts in proptest::collection::vec(0_u64..200, 1..5), thresh in 20_000_u64..4_000_000) {
            let of = counts.iter().sum::<u64>() + 1;
            let shown: Vec<u64> = counts.iter().map(|count| thresh * count / of).collect();
            let (found, all) = fraction(&shown, thresh, 1);
            proptest::prop_assert!(found.iter().sum::<u64>() <= all);
            for (count, shown) in found.iter().zip(&shown) {
                let got = thresh * count / all;
                proptest::prop_assert!(got.abs_diff(*shown) <= 1, "{} of {}: {} instead of {}", count, all, got, shown);
            }
        }
    }
}
