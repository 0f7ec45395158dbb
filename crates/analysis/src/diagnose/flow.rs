// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bytes that the programs of one cgroup dirtied and the flusher of another cgroup wrote, from totals of the window: `io.stat` counts
//! written bytes for the cgroup that owns the inode, `/proc/PID/io` counts dirtied bytes for the task. Needs no trace and no debugfs.
//! Does not show which inodes they are.

use super::derived::Derived;
use super::device::Device;
use super::limits::lacks_support;
use super::{cgroup, crowded, dirty};
use crate::budget::CgroupBudget;
use floodline_record::facts::Mount;
use floodline_record::id::{DevId, Entity, EntityId};
use floodline_record::name::Name;
use floodline_record::sample::{CgroupRow, HostRow};
use floodline_record::units::Pages;
use floodline_record::window::{IoLimit, LimitedReading, Span};
use std::collections::{BTreeMap, BTreeSet};

/// Difference of two sums that no error explains, bytes.
const LEAST: u64 = 8 << 20;
/// Part of what a cgroup dirtied that others have to write, and part of that which one other cgroup has to write beyond its own.
const MOSTLY: f64 = 0.5;
/// Bits of `controllers`: memory and io.
const BOTH: u64 = 0b11;

/// What one cgroup did in the window, without the cgroups below it that have both controllers.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    /// Bytes that its processes dirtied.
    dirtied: u64,
    /// Bytes written for its inodes.
    written: u64,
    /// Bytes charged to it that are unwritten at the end, and at the start.
    unwritten: u64,
    unwritten_before: u64,
}

impl Sums {
    /// Bytes that its processes dirtied and that were written by any flusher.
    fn cleaned(&self) -> u64 {
        self.dirtied.saturating_sub(self.unwritten.saturating_sub(self.unwritten_before))
    }
}

/// Bytes of one cgroup that the flusher of another one wrote.
pub struct Flow {
    /// The cgroup.
    pub owner: EntityId,
    /// Bytes that its processes dirtied and that were written.
    pub cleaned: u64,
    /// Bytes written for its own inodes.
    pub written: u64,
    /// The cgroup that wrote them, where it is known.
    pub host: Option<Host>,
    /// Dirty bytes that the machine removed. `Some` only if the finding rests on it.
    pub removed: Option<u64>,
}

/// The cgroup whose flusher wrote these bytes.
pub struct Host {
    /// The cgroup.
    pub id: EntityId,
    /// Bytes written for its inodes.
    pub written: u64,
    /// Bytes that its processes dirtied.
    pub dirtied: u64,
}

impl Flow {
    /// Bytes that its own flusher did not write.
    pub fn missing(&self) -> u64 {
        self.cleaned.saturating_sub(self.written)
    }
}

/// The largest of such flows; `None` where there is none, or where the totals do not tell.
pub fn largest(derived: &Derived<'_>) -> Option<Flow> {
    let facts = derived.window.facts.as_ref()?;
    // Pages that are swapped out are written for a cgroup that did not dirty them.
    if derived.window.host.growth.pswpout.is_some_and(|pages| pages.0 > 0) {
        return None;
    }
    // A filesystem that compresses writes less than was dirtied.
    let is_compressed = |mount: &Mount| mount.options.to_string().split(',').any(|one| one.contains("compress"));
    let is_unknown = |mount: &Mount| dirty::is_beyond_disks(mount) || !mount.has_option("ro") && is_compressed(mount);
    if !derived.has_rates || facts.mounts.iter().any(is_unknown) {
        return None;
    }
    let sums = sums(derived)?;
    // Dirty pages of files that were truncated or removed: which cgroup dirtied them is not known.
    let cancelled =
        derived.writers().processes.iter().filter_map(|one| one.cancelled_bytes).fold(0, u64::saturating_add);
    let missing = |sums: &Sums| sums.cleaned().saturating_sub(sums.written).saturating_sub(cancelled);
    let is_foreign = |sums: &Sums| missing(sums) >= LEAST && missing(sums) as f64 >= MOSTLY * sums.cleaned() as f64;
    let (&owner, own) = sums.iter().filter(|(_, one)| is_foreign(one)).max_by_key(|(_, one)| missing(one))?;
    let path = |id: EntityId| cgroup::path(derived.window, id).map(Name::as_bytes);
    let is_below = |one: &[u8], above: &[u8]| one.starts_with(above) && one.get(above.len()) == Some(&b'/');
    // An inode of a removed cgroup belongs to its parent.
    let is_related = |other: EntityId| match (path(owner), path(other)) {
        (Some(one), Some(other)) => one == other || is_below(one, other) || is_below(other, one),
        _ => true,
    };
    let surplus = |sums: &Sums| {
        (sums.written.saturating_add(sums.unwritten)).saturating_sub(sums.dirtied.saturating_add(sums.unwritten_before))
    };
    let others = || sums.iter().filter(|(id, _)| !is_related(**id));
    let (host, removed) = match others().max_by_key(|(_, one)| surplus(one)) {
        Some((id, its)) if surplus(its) as f64 >= MOSTLY * missing(own) as f64 => {
            (Some(Host { id: *id, written: its.written, dirtied: its.dirtied }), None)
        }
        // No other cgroup has more written than it dirtied: a store dirties a whole folio, of which only a part may be written.
        _ => (None, Some(removed_instead(derived, owner, own, missing(own))?)),
    };
    Some(Flow { owner, cleaned: own.cleaned().saturating_sub(cancelled), written: own.written, host, removed })
}

/// Part of its freerun ceiling that a cgroup must have had unwritten for its writers to have been paused at it: samples miss the most of a
/// burst.
const NEAR: f64 = 0.75;

/// The cgroup whose writers were paused at its own dirty limit because the flusher of another cgroup had to write its pages: no disk and no
/// other program made them wait. `None` where programs may have synced on the device.
pub(super) fn paused_for_another(derived: &Derived<'_>, device: &Device<'_>) -> Option<EntityId> {
    let window = derived.window;
    let waiting: BTreeSet<EntityId> =
        derived.waiters().unwrap_or_default().iter().filter_map(|waiter| waiter.cgroup).collect();
    let is_at_limit = |id: &EntityId| {
        let budget = derived.budgets().cgroups.iter().find(|budget| budget.cgroup == *id);
        let is_own = |budget: &&CgroupBudget| !budget.domain.binding.as_ref().is_some_and(|one| one.global_is_less);
        let freerun = budget.filter(is_own).and_then(|budget| budget.domain.freerun);
        let peak = window.unwritten_max.get(id).copied().unwrap_or(0) as f64;
        freerun.is_some_and(|freerun| peak > 0.0 && peak >= NEAR * freerun.high.0 as f64)
    };
    let at_limit: BTreeSet<EntityId> = waiting.into_iter().filter(is_at_limit).collect();
    if at_limit.is_empty() || crowded::may_sync(derived, device) {
        return None;
    }
    largest(derived).map(|flow| flow.owner).filter(|owner| at_limit.contains(owner))
}

/// Pages of the largest folio.
const FOLIO_PAGES: u64 = 512;

/// Dirty bytes that the machine removed, where these are so few that a flusher of another cgroup wrote the missing ones. `None` where
/// they may be missing for another reason.
fn removed_instead(derived: &Derived<'_>, owner: EntityId, own: &Sums, missing: u64) -> Option<u64> {
    let window = derived.window;
    // Where small blocks of large folios are written, its own flusher writes at least one page of each folio.
    let writes_its_own = own.written.saturating_mul(FOLIO_PAGES) >= own.cleaned();
    // The counters of cgroups must be of the time of those of processes. What a removed cgroup wrote in the end is not known.
    let latest = window.processes.values().map(|span| span.last_at).max();
    let is_late = window.stat_reads.times.last().copied() < latest;
    // The root writes the pages of such a filesystem.
    let lacks = |mount: &Mount| window.facts.as_ref().is_some_and(|facts| lacks_support(facts, mount).is_some());
    let mounts = window.facts.iter().flat_map(|facts| &facts.mounts);
    if writes_its_own || is_late || !lives_on(derived, owner) || mounts.filter(|one| !one.has_option("ro")).any(lacks) {
        return None;
    }
    removed(derived).filter(|removed| *removed as f64 <= (1.0 - MOSTLY) * missing as f64)
}

/// Whether a cgroup was there at the last reading of cgroups.
fn lives_on(derived: &Derived<'_>, id: EntityId) -> bool {
    let cgroups = &derived.window.cgroups;
    let latest = cgroups.values().map(|span| span.last_at).max();
    cgroups.get(&id).map(|span| span.last_at) == latest
}

/// Bytes that became dirty and were neither written nor are dirty or under writeback at the end: files that were truncated or removed.
/// All three counts are of whole folios. `None` where one is missing.
fn removed(derived: &Derived<'_>) -> Option<u64> {
    let host = &derived.window.host;
    let unwritten = |row: &HostRow| Some(row.nr_dirty?.0.saturating_add(row.nr_writeback?.0));
    let cleaned =
        (host.growth.nr_dirtied?.0.saturating_add(unwritten(&host.first)?)).saturating_sub(unwritten(&host.last)?);
    Some(Pages(cleaned.saturating_sub(host.growth.nr_written?.0)).bytes(derived.page_size).0)
}

/// The sums of each cgroup with both controllers; `None` where a source is missing.
fn sums(derived: &Derived<'_>) -> Option<BTreeMap<EntityId, Sums>> {
    let window = derived.window;
    let has_both = |id: &EntityId| {
        let limits = window.cgroup_limits.get(id);
        limits.and_then(|span| span.last.controllers).is_some_and(|have| have.0 & BOTH == BOTH)
    };
    let path = |id: EntityId| cgroup::path(window, id).map(Name::as_bytes);
    let paths = || window.cgroups.keys().filter_map(|id| Some((path(*id)?, *id)));
    let units: BTreeMap<&[u8], EntityId> = paths().filter(|(path, id)| path.len() > 1 && has_both(id)).collect();
    let drains: BTreeSet<DevId> = derived.drains().iter().map(|drain| drain.dev).collect();
    let (mut written, mut is_counted): (BTreeMap<EntityId, u64>, BTreeSet<DevId>) = Default::default();
    let earliest = window.stat_reads.times.first().copied();
    for (id, span) in &window.cgroup_io {
        let Some(Entity::CgroupIo { cgroup, dev }) = window.entities.get(id) else { continue };
        if drains.contains(dev) {
            is_counted.insert(*dev);
            // A cgroup that is first counted later had written nothing there before. Its limit may have been read earlier.
            let limit_alone = |first: &LimitedReading| Some(first.at()) == earliest && !first.has(IoLimit::WriteBytes);
            let is_new = earliest.is_some_and(|earliest| span.first_at > earliest)
                || window.limited_io.get(id).and_then(|readings| readings.first()).is_some_and(limit_alone);
            let row = if is_new { &span.last } else { &span.growth };
            let sum = written.entry(*cgroup).or_default();
            *sum = sum.saturating_add(row.wbytes.map_or(0, |bytes| bytes.0));
        }
    }
    // A layer that counts for no cgroup hides what was written through it.
    let is_written = |dev: &DevId| {
        derived.drains().iter().any(|one| one.dev == *dev && one.span.growth.written.is_some_and(|bytes| bytes.0 > 0))
    };
    if units.len() < 2 || drains.iter().any(|dev| is_written(dev) && !is_counted.contains(dev)) {
        return None;
    }
    let of_last = |span: &Span<CgroupRow>| cgroup::dirty_and_writeback(&span.last);
    let of_first = |span: &Span<CgroupRow>| cgroup::dirty_and_writeback(&span.first);
    let mut sums: BTreeMap<EntityId, Sums> = units.values().map(|id| (*id, Sums::default())).collect();
    let mut add = |amounts: Vec<(EntityId, u64)>, column: fn(&mut Sums) -> &mut u64| {
        for (id, amount) in amounts {
            let unit = path(id).and_then(|path| cgroup::nearest(&units, path));
            if let Some(sums) = unit.and_then(|unit| sums.get_mut(&unit)) {
                let sum = column(sums);
                *sum = sum.saturating_add(amount);
            }
        }
    };
    add(cgroup::own_parts(window, &written), |sums| &mut sums.written);
    add(cgroup::own_amounts(window, of_last), |sums| &mut sums.unwritten);
    add(cgroup::own_amounts(window, of_first), |sums| &mut sums.unwritten_before);
    let writers = derived.writers().processes.iter().filter(|one| !one.kthread);
    add(writers.filter_map(|one| Some((one.cgroup?, one.dirtied_bytes?))).collect(), |sums| &mut sums.dirtied);
    // A cgroup that was removed and made again is two, and what each of them did is not known apart.
    let mut seen = BTreeSet::new();
    let again: BTreeSet<&[u8]> = paths().map(|(path, _)| path).filter(|path| !seen.insert(*path)).collect();
    sums.retain(|id, _| path(*id).is_some_and(|path| !again.contains(path)));
    Some(sums)
}

#[cfg(test)]
mod tests {
    use crate::diagnose::check_rule;
    use crate::diagnose::rules::foreign_inode_writeback::RULE;
    use floodline_record::units::{Bits, Bytes, Limit, Pages};
    use floodline_testkit::{Fixture, grows};

    /// A shop that dirties 3 MB/s and a collector that dirties 10 MB/s. The arguments are the MB/s written for the inodes of each.
    fn two(shop: f64, collector: f64) -> Fixture {
        let fixture = Fixture::healthy().disk("sda", move |t, row| row.written = grows(t, 0, (shop + collector) * 1e6));
        let of = |fixture: Fixture, (path, name, pid, dirtied, written): (&str, &'static str, u32, f64, f64)| {
            fixture
                .cgroup(path, |_, row| row.file_dirty = Some(Bytes(1 << 20)))
                .limits(path, |_, row| row.controllers = Some(Bits(super::BOTH)))
                .cgroup_io(path, "sda", move |t, row| row.wbytes = grows(t, 0, written * 1e6))
                .process(name, pid, path, move |t, row| row.write_bytes = grows(t, 0, dirtied * 1e6))
        };
        [("/shop", "shop", 71, 3.0, shop), ("/logs", "collect", 72, 10.0, collector)].into_iter().fold(fixture, of)
    }

    #[test]
    fn what_another_flusher_wrote_is_missing_in_one_cgroup_and_too_much_in_another() {
        let found = "info: 28.6 MiB of what /shop dirtied was written by the flusher of another cgroup, probably /logs";
        check_rule(&RULE, &two(0.0, 13.0), found);
        check_rule(&RULE, &two(3.0, 10.0), "clear:");
        // Nothing else was written instead: it may have been removed.
        let of_host = |dirtied: f64, written: f64| {
            two(0.0, 10.0).host(move |t, row| {
                row.nr_dirtied = Some(Pages((dirtied * t) as u64));
                row.nr_written = Some(Pages((written * t) as u64));
            })
        };
        check_rule(&RULE, &of_host(3200.0, 2450.0), "clear:");
        let unnamed =
            "info: 28.6 MiB of what /shop dirtied was written by the flusher of another cgroup, which owns the inodes.";
        check_rule(&RULE, &of_host(3200.0, 3200.0), unnamed);
        // On a filesystem without cgroup writeback, the root writes them.
        let vfat = of_host(3200.0, 3200.0).disk("sdb", |_, _| {}).mount("sdb", "vfat", "/stick", "rw");
        check_rule(&RULE, &vfat, "clear:");
    }

    #[test]
    fn a_program_that_writes_small_blocks_of_its_own_large_folios_is_its_own_writer() {
        let even = |fixture: Fixture| {
            fixture.host(|t, row| {
                row.nr_dirtied = Some(Pages((3200.0 * t) as u64));
                row.nr_written = Some(Pages((3200.0 * t) as u64));
            })
        };
        check_rule(&RULE, &even(two(3.0 / 200.0, 10.0)), "clear:");
        check_rule(&RULE, &even(two(3.0 / 600.0, 10.0)), "info: 28.6 MiB of what /shop dirtied");
    }

    #[test]
    fn a_cgroup_of_which_only_the_limit_was_known_at_first_had_written_nothing() {
        // All that the shop writes past the cache is written before the second sample.
        let of = |limit: u64| {
            two(0.0, 10.0)
                .host(|t, row| {
                    (row.nr_dirtied, row.nr_written) =
                        (Some(Pages((2450.0 * t) as u64)), Some(Pages((2450.0 * t) as u64)))
                })
                .cgroup_io("/shop", "sda", move |t, row| {
                    row.wbytes = (t > 0.5).then_some(Bytes(30_000_000));
                    row.wbps_max = Some(Limit(limit));
                })
                .process("shop", 71, "/shop", |t, row| {
                    row.write_bytes = Some(Bytes(if t > 0.5 { 30_000_000 } else { 0 }))
                })
        };
        check_rule(&RULE, &of(3_000_000), "clear:");
    }

    #[test]
    fn what_was_removed_before_it_was_written_is_not_foreign() {
        let removed = two(0.0, 13.0).process("shop", 71, "/shop", |t, row| {
            row.cancelled_write_bytes = grows(t, 0, 3e6);
        });
        check_rule(&RULE, &removed, "clear:");
    }

    #[test]
    fn a_writer_at_its_own_limit_does_not_wait_for_the_disk_where_another_flusher_has_its_pages() {
        use crate::diagnose::derived::Derived;
        use crate::diagnose::waiting::others_on;
        use floodline_record::units::Count;
        use floodline_testkit::{mib, secs};
        let waits = |written: f64, dirty_mib: f64, flushes: f64| {
            let host = two(written, 13.0 - written)
                .limits("/shop", |_, row| row.memory_max = Some(Limit(mib(96.0))))
                .cgroup("/shop", move |_, row| {
                    row.file = Some(Bytes(mib(80.0)));
                    row.file_dirty = Some(Bytes(mib(dirty_mib)));
                    row.file_writeback = Some(Bytes(0));
                })
                .process("shop", 71, "/shop", |t, row| row.blkio_delay = Some(secs(0.2 * t)))
                .facts(|facts| facts.devices.iter_mut().for_each(|device| device.write_back_cache = Some(true)))
                .disk("sda", move |t, row| row.flushes = Some(Count((flushes * t) as u64)));
            let window = host.window();
            let derived = Derived::of(&window);
            let disk = derived.disks().iter().find(|disk| disk.name.as_bytes() == b"sda").expect("sda");
            let others = others_on(&derived, disk, |_| false).expect("delays");
            others.iter().any(|waiter| waiter.pid == 71)
        };
        assert!(!waits(0.0, 14.0, 0.1));
        assert!(waits(3.0, 14.0, 0.1), "its own flusher writes its pages");
        assert!(waits(0.0, 2.0, 0.1), "far below its limit");
        assert!(waits(0.0, 14.0, 3.0), "programs sync");
    }

    #[test]
    fn swapped_pages_and_files_of_another_machine_tell_nothing() {
        check_rule(&RULE, &two(0.0, 13.0).host(|t, row| row.pswpout = Some(Pages((100.0 * t) as u64))), "clear:");
        check_rule(&RULE, &two(0.0, 13.0).mount("sda", "zfs", "/pool", "rw"), "clear:");
    }
}
