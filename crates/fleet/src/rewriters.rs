// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cgroups whose processes store into mapped files. While their pages are dirty no counter of bytes shows a store, and
//! only the faults of a long enough recording show the rate of the stores. Such cgroups need room for all pages that
//! they rewrite, below the background threshold, in units as large as the kernel's folios.

use floodline_analysis::budget::AsIfRow;
use floodline_analysis::diagnose::derived::Derived;
use floodline_kernel::{Behaviour, Folios};
use floodline_record::facts::Mount;
use floodline_record::id::Entity;
use floodline_record::window::Window;
use std::collections::BTreeMap;

/// Bytes dirtied per byte handed to write calls from which a process stores into mapped files.
const STORES: u64 = 4;
/// Dirtied bytes below which a process does not count.
const LEAST: u64 = 256 << 10;
/// Times that pages must have been dirtied for the counters to show the rate of the stores.
const SHOWN: u64 = 2;
/// Pages of the folio that readahead makes at its usual size of 128 KiB.
const FOLIO_PAGES: u64 = 32;

/// Fewest intervals that show whether pages become dirty all the time, the share of them in which that many become dirty, and how many that are
/// at least, over the mean.
const SPREAD_MIN: usize = 16;
const SPREAD: f64 = 0.75;
const SPREAD_LEAST: f64 = 0.25;

/// Rewriting cgroups by path, with the bytes that they need room for.
#[derive(Debug, Default)]
pub(crate) struct Rewriters {
    needs: BTreeMap<String, u64>,
    /// Whether their pages were dirtied about once each: stores into dirty pages are not counted, so their rate is unknown.
    pub(crate) hides_stores: bool,
    /// Whether pages became dirty all the time: most stores still find a clean page, so that the counters show their rate.
    pub(crate) shows_stores: bool,
    /// Whether the new kernel makes large folios where the old one does not.
    pub(crate) gets_folios: bool,
    /// Whether write calls of the new kernel make large folios on XFS where those of the old one do not.
    writes_folios: bool,
    /// Whether only read calls or only write calls get large folios with the new kernel.
    pub(crate) by_origin: bool,
    /// Whether it makes large folios at all: a store into a small page dirties no more than that.
    pub(crate) has_folios: bool,
}

impl Rewriters {
    /// Finds them. `then` is the window with the change.
    pub(crate) fn of(derived: &Derived<'_>, then: &Window) -> Rewriters {
        let window = derived.window;
        let (had_folios, has_folios) = (has_folios(window, window), has_folios(window, then));
        let gets_folios = has_folios && !had_folios;
        let mut needs: BTreeMap<String, u64> = BTreeMap::new();
        let (mut all_dirtied, mut all_peaks) = (0u64, 0u64);
        for writer in derived.writers().processes.iter().filter(|writer| !writer.kthread) {
            let (dirtied, written) = (writer.dirtied_bytes.unwrap_or(0), writer.application_bytes.unwrap_or(0));
            let stores = dirtied >= LEAST && dirtied >= written.saturating_mul(STORES);
            let Some(id) = writer.cgroup.filter(|_| stores) else { continue };
            let Some(Entity::Cgroup { path, .. }) = window.entities.get(&id) else { continue };
            let peak = window.unwritten_max.get(&id).copied().unwrap_or(0);
            let cached = window.cgroups.get(&id).and_then(|span| span.max.file).map_or(u64::MAX, |file| file.0);
            let need = if gets_folios { peak.saturating_mul(FOLIO_PAGES).min(cached).max(peak) } else { peak };
            all_dirtied = all_dirtied.saturating_add(dirtied);
            if needs.insert(path.to_string(), need).is_none() {
                all_peaks = all_peaks.saturating_add(peak);
            }
        }
        let hides_stores = all_dirtied < all_peaks.saturating_mul(SHOWN);
        let shows_stores = is_spread(window) && is_most_of_all(window, all_dirtied);
        let gets = |makes: fn(&Folios) -> bool| on_xfs(window, then, makes) && !on_xfs(window, window, makes);
        let writes_folios = gets(|folios| folios.xfs_by_write);
        // Where both get them, as on ext4, every file has them.
        let by_origin = writes_folios != gets(|folios| folios.xfs_by_readahead);
        Rewriters { needs, hides_stores, shows_stores, gets_folios, writes_folios, by_origin, has_folios }
    }

    /// Whether some store, and the new kernel makes large folios where the old one does not, be it of reads or of write calls. Which
    /// of them brought a mapped file into the page cache, only a simulation weighs.
    pub(crate) fn store_into_new_folios(&self) -> bool {
        (self.gets_folios || self.writes_folios) && !self.needs.is_empty()
    }

    /// The bytes that a cgroup rewrites, if it does.
    pub(crate) fn need(&self, row: &AsIfRow) -> Option<u64> {
        self.needs.get(row.cgroup.as_ref()?).copied().filter(|need| *need > 0)
    }
}

/// Whether pages of the machine became dirty at about the same rate all the time. Stores that meet dirty pages only dirty none for a while,
/// until the flusher has cleaned some.
fn is_spread(window: &Window) -> bool {
    let rows = || window.host_series.iter().filter_map(|(_, row)| row.nr_dirtied.map(|pages| pages.0));
    let grown: Vec<u64> = rows().zip(rows().skip(1)).map(|(one, next)| next.saturating_sub(one)).collect();
    let mean = grown.iter().sum::<u64>() as f64 / grown.len().max(1) as f64;
    let active = grown.iter().filter(|pages| **pages as f64 >= SPREAD_LEAST * mean).count();
    grown.len() >= SPREAD_MIN && active as f64 >= SPREAD * grown.len() as f64
}

/// Whether these bytes are most of what became dirty: other writers would hide when stores dirty nothing.
fn is_most_of_all(window: &Window, bytes: u64) -> bool {
    let page = window.facts.as_ref().map_or(4096, |facts| facts.page_size.max(1));
    window.host.growth.nr_dirtied.is_some_and(|pages| bytes.saturating_mul(2) >= pages.0.saturating_mul(page))
}

/// Whether some calls of the kernel of `of` make large folios on an XFS of the host that is written to.
fn on_xfs(window: &Window, of: &Window, makes: impl Fn(&Folios) -> bool) -> bool {
    written_to(window, of).any(|(folios, mount)| makes(&folios) && mount.fs_type.as_str() == "xfs")
}

/// Whether the kernel of `of` makes large folios on a filesystem of the host that is written to.
fn has_folios(window: &Window, of: &Window) -> bool {
    written_to(window, of).any(|(folios, mount)| match mount.fs_type.as_str() {
        "xfs" => folios.xfs_by_readahead || folios.xfs_by_write,
        "ext4" => folios.ext4,
        _ => false,
    })
}

/// Filesystems of the host that are written to, with the folios that the kernel of `of` makes; none without a known kernel.
fn written_to<'a>(window: &'a Window, of: &Window) -> impl Iterator<Item = (Folios, &'a Mount)> {
    let folios = of.facts.as_ref().and_then(|facts| facts.kernel).map(|kernel| Behaviour::of(kernel).folios);
    let mounts = window.facts.iter().flat_map(|facts| &facts.mounts).filter(|mount| !mount.has_option("ro"));
    folios.into_iter().flat_map(move |folios| mounts.clone().map(move |mount| (folios, mount)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_record::units::{Bytes, Pages};
    use floodline_testkit::Fixture;

    /// Whether the counters of a host show how often its program stores, where `dirtied` has the MiB that became dirty up to each second. `others`
    /// is what other programs dirtied, as a multiple.
    fn shown(dirtied: fn(f64) -> f64, others: f64) -> bool {
        let pages = move |t: f64| dirtied(t) * 256.0;
        let recording = Fixture::healthy()
            .seconds(40)
            .host(move |t, row| row.nr_dirtied = Some(Pages((pages(t) * (1.0 + others)) as u64)))
            .cgroup("/maps", |_, row| row.file = Some(Bytes(64 << 20)))
            .process("lmdb", 700, "/maps", move |t, row| {
                row.wchar = Some(Bytes(0));
                row.write_bytes = Some(Bytes((pages(t) * 4096.0) as u64));
            });
        let window = recording.window();
        Rewriters::of(&Derived::of(&window), &window).shows_stores
    }

    #[test]
    fn stores_that_find_clean_pages_all_the_time_show_their_rate() {
        assert!(shown(|t| t, 0.1));
        // Fewer pages are clean as time goes on.
        assert!(shown(|t| 40.0 * (1.0 - (-t / 25.0).exp()), 0.1));
        // All pages are dirty after a second, until the flusher has cleaned them.
        assert!(!shown(|t| 8.0 * (1.0 + (t / 30.0).floor()), 0.1));
        assert!(!shown(|t| t, 2.0), "others dirty more");
    }
}
