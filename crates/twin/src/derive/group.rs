// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processes of one name in one cgroup, as one writer: their activity in each interval, added up, and its parts by
//! write calls, by stores to mappings and past the page cache.

use super::calls::Stores;
use super::machine::Cgroups;
use super::{direct, held, made, repeats, spliced};
use crate::recorded::{Did, Recorded};
use floodline_record::id::{DevId, Entity, EntityId};
use floodline_record::record::What;
use floodline_record::traced::bytes::Class;
use floodline_record::traced::waits::Operation;
use std::collections::BTreeMap;

/// Bytes of a page.
pub(super) const PAGE: f64 = 4096.0;
/// Most processes of a group that are taken to work at the same time.
const CONCURRENT_MAX: u64 = 16;

/// Shortest wait of a program without writes that counts as a sync.
const WAIT_MIN: f64 = 0.1;

/// Path of the cgroup in the twin and name of the processes.
pub(super) type Key = (String, Vec<u8>);

/// One interval of a group.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bin {
    /// End, seconds since the recording began.
    pub(super) end: f64,
    /// Length, seconds.
    pub(super) length: f64,
    /// Bytes passed to write calls.
    pub(super) wchar: f64,
    /// Write calls.
    pub(super) calls: f64,
    /// Bytes dirtied by write calls.
    pub(super) by_calls: f64,
    /// Bytes dirtied by stores to mappings.
    pub(super) mapped: f64,
    /// Bytes written past the page cache.
    pub(super) direct: f64,
    /// Bytes read from devices, and read calls.
    pub(super) read: f64,
    pub(super) reads: f64,
    /// Bytes dropped before they were written.
    pub(super) cancelled: f64,
    /// Faults, and those of them that read from a device.
    pub(super) faults: f64,
    pub(super) major: f64,
    /// Seconds of waiting, all processes together.
    pub(super) waited: f64,
    /// Seconds on a CPU, all processes together.
    pub(super) cpu: f64,
    /// Bytes written by processes that reaped no children, for certain their own.
    pub(super) own: f64,
    /// Processes with activity.
    pub(super) active: u64,
    /// Bytes of the machine that are unwritten at its end. `None` where no sample has them, and where a limit on the memory of the cgroup was
    /// reached: reclaim also writes all of them.
    pub(super) unwritten: Option<f64>,
}

impl Bin {
    pub(super) fn dirtied(&self) -> f64 {
        self.by_calls + self.mapped + self.direct
    }

    /// Whether it wrote.
    pub(super) fn is_active(&self) -> bool {
        self.dirtied() > 0.0
    }
}

/// Effect of stores to mappings.
#[derive(Clone, Debug, Default)]
pub(super) struct Stored {
    /// Faults.
    pub(super) faults: f64,
    /// Bytes dirtied by the whole program.
    pub(super) dirtied: f64,
    /// Seconds that it waited for I/O.
    pub(super) waited: f64,
    /// End of each interval in seconds, and the three of the interval. Empty for a run.
    over_time: Vec<(f64, [f64; 3])>,
    /// Whether a fault dirties one page.
    is_of_single_pages: bool,
}

impl Stored {
    /// The same where a fault of a store dirties one page: the other faults are of other memory. While most of a file is dirty, many times
    /// as many stores cause hardly more faults, so that a few others would be taken for many stores.
    pub(super) fn of_single_pages(self) -> Stored {
        Stored { faults: self.faults.min(self.dirtied / PAGE), is_of_single_pages: true, ..self }
    }

    /// The same until some seconds after the begin.
    pub(super) fn until(&self, seconds: f64) -> Stored {
        let until = self.over_time.iter().take_while(|(end, _)| *end <= seconds + 1e-6);
        let [faults, dirtied, waited] =
            until.fold([0.0; 3], |sum, (_, of)| std::array::from_fn(|figure| sum[figure] + of[figure]));
        let part = Stored { faults, dirtied, waited, ..Stored::default() };
        if self.is_of_single_pages { part.of_single_pages() } else { part }
    }
}

/// Processes of one name in one cgroup.
#[derive(Clone, Debug, Default)]
pub(super) struct Group {
    /// Name of the processes, raw and escaped.
    pub(super) comm: Vec<u8>,
    pub(super) shown: String,
    /// Their cgroup.
    pub(super) cgroup: Option<EntityId>,
    /// Whether one of them reaped children: their counters are in its own.
    pub(super) is_parent: bool,
    /// Processes with activity.
    pub(super) processes: u64,
    /// One per sample interval of the recording, active or not.
    pub(super) bins: Vec<Bin>,
    /// Sums.
    pub(super) total: Bin,
    /// Calls of fsync and its like, by the trace: their number, and the number of data-only ones among them.
    pub(super) synced: Option<Synced>,
    /// Bytes that it dirtied in each superblock, and wrote past the page cache to each disk, by the trace.
    pub(super) written_to: BTreeMap<DevId, u64>,
    /// Seconds in dirty throttling, by the trace, all threads together.
    pub(super) paused: f64,
    /// Number of samples in which one of its processes slept uninterruptibly (state D). Not every kernel counts delays.
    pub(super) asleep: usize,
    /// Its part of the bytes that stores to mappings dirtied in its cgroup.
    pub(super) part_of_mapped: f64,
    /// The device, where it is the part of a program that works on this one.
    pub(super) part_on: Option<DevId>,
    /// Files that it made one after the other, by the trace.
    pub(super) made: Option<made::Made>,
    /// Bytes of the files to which one of its processes stored, by the pages that were dirtied again in the trace.
    pub(super) files: Option<f64>,
}

/// Waits for stable storage that a trace saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Synced {
    pub(super) fsyncs: u64,
    pub(super) fdatasyncs: u64,
    pub(super) ranges: u64,
    pub(super) whole: u64,
    /// Time of the calls of files together, nanoseconds.
    pub(super) waited: u64,
}

impl Synced {
    pub(super) fn all(self) -> u64 {
        self.fsyncs + self.fdatasyncs + self.ranges + self.whole
    }
}

impl Group {
    /// Whether a process of the recording is one of these.
    pub(super) fn holds(&self, recorded: &Recorded, id: &EntityId) -> bool {
        let entity = recorded.window.entities.get(id);
        matches!(entity, Some(Entity::Process { comm, .. }) if comm.as_bytes() == self.comm)
            && recorded.home(id) == self.cgroup
    }

    /// Whether its stores to mappings dirty more than its write calls.
    pub(super) fn is_mostly_mapped(&self) -> bool {
        self.total.mapped > self.total.by_calls
    }

    fn add_written(&mut self, device: DevId, bytes: u64) {
        let all = self.written_to.entry(device).or_default();
        *all = all.saturating_add(bytes);
    }

    /// The part of it that works on one device, by its share of what was written and of what was read.
    pub(super) fn part(&self, dev: DevId, written: f64, read: f64) -> Group {
        let bytes = self.total.dirtied() * written + self.total.read * read;
        let waits = bytes / (self.total.dirtied() + self.total.read).max(1.0);
        let of = |bin: &Bin| Bin {
            wchar: bin.wchar * written,
            calls: bin.calls * written,
            by_calls: bin.by_calls * written,
            direct: bin.direct * written,
            cancelled: bin.cancelled * written,
            own: bin.own * written,
            read: bin.read * read,
            reads: bin.reads * read,
            waited: bin.waited * waits,
            ..*bin
        };
        let counts = |count: u64| (count as f64 * written).round() as u64;
        let synced = self.synced.map(|synced| Synced {
            fsyncs: counts(synced.fsyncs),
            fdatasyncs: counts(synced.fdatasyncs),
            ranges: counts(synced.ranges),
            whole: counts(synced.whole),
            waited: counts(synced.waited),
        });
        let bins: Vec<Bin> = self.bins.iter().map(of).collect();
        let total = sum(&bins);
        Group { bins, total, synced, paused: self.paused * written, part_on: Some(dev), ..self.clone() }
    }

    /// Processes that work at the same time.
    pub(super) fn concurrent(&self) -> u64 {
        self.bins.iter().map(|bin| bin.active).max().unwrap_or(1).clamp(1, CONCURRENT_MAX)
    }

    /// Bytes moved by the group: decides which groups a twin has.
    pub(super) fn weight(&self) -> f64 {
        self.total.dirtied() + self.total.read
    }

    /// What its stores to mappings did, by its intervals. One that goes on while all is dirty has faults then, too:
    /// each page has its own, whatever the size of the folio.
    pub(super) fn stored(&self, bins: &[Bin], goes_on: bool) -> Stored {
        let first = bins.iter().position(|bin| bin.mapped > 0.0).unwrap_or(bins.len());
        let is_chosen = |bin: &Bin| bin.mapped > 0.0 || (goes_on && bin.active > 0);
        let faults = |bin: &Bin| if is_chosen(bin) { bin.faults } else { 0.0 };
        let of_bins = bins.iter().zip(&self.bins).enumerate().map(|(at, (bin, own))| {
            let faults = if at >= first { faults(bin) } else { 0.0 };
            (own.end, [faults, own.dirtied(), own.waited])
        });
        let over_time: Vec<(f64, [f64; 3])> = of_bins.collect();
        let faults = over_time.iter().map(|(_, [faults, ..])| faults).sum();
        let (dirtied, waited) = (self.total.dirtied(), self.total.waited);
        Stored { faults, dirtied, waited, over_time, is_of_single_pages: false }
    }

    /// Bin, start and length, in seconds, of waits during which it neither wrote nor read: it waited for data that others
    /// wrote.
    pub(super) fn syncs_of_others(&self) -> impl Iterator<Item = (usize, f64, f64)> {
        let is_idle = self.total.dirtied() + self.total.read <= 0.0;
        // The kernel counts a wait when it ends.
        let bins = self.bins.iter().enumerate().filter(move |(_, bin)| is_idle && bin.waited >= WAIT_MIN);
        bins.map(|(number, bin)| {
            let waited = bin.waited / bin.active.max(1) as f64;
            (number, (bin.end - waited).max(0.0), waited)
        })
    }

    /// Share of the intervals with writes in which it also waited.
    pub(super) fn waiting_share(&self) -> f64 {
        let active = self.bins.iter().filter(|bin| bin.is_active()).count();
        let waiting = self.bins.iter().filter(|bin| bin.is_active() && bin.waited > 1e-4).count();
        if active == 0 { 0.0 } else { waiting as f64 / active as f64 }
    }
}

/// All groups that did something, in the order in which the recording first has them: their names must not matter.
pub(super) fn groups(recorded: &Recorded, cgroups: &Cgroups) -> Vec<Group> {
    let window = &recorded.window;
    let start = window.first_at.map_or(0, |first| first.monotonic.0);
    let times: Vec<u64> = window.host_series.iter().map(|(time, _)| time.monotonic.0).collect();
    let page = window.facts.as_ref().map_or(4096, |facts| facts.page_size.max(1)) as f64;
    let mut found: BTreeMap<Key, Group> = BTreeMap::new();
    let mut of_pid: BTreeMap<u32, Key> = BTreeMap::new();
    let blank = || -> Vec<Bin> {
        let seconds = |nanos: u64| nanos.saturating_sub(start) as f64 / 1e9;
        times
            .windows(2)
            .map(|pair| Bin {
                end: seconds(pair[1]),
                length: (seconds(pair[1]) - seconds(pair[0])).max(1e-3),
                ..Bin::default()
            })
            .collect()
    };
    let mut order: BTreeMap<Key, EntityId> = BTreeMap::new();
    for (id, list) in &recorded.processes {
        let Some(Entity::Process { comm, kthread: false, pid, .. }) = window.entities.get(id) else { continue };
        let cgroup = recorded.home(id);
        if list.iter().all(Did::is_nothing) {
            continue;
        }
        let key = (cgroups.path(cgroup).to_owned(), comm.as_bytes().to_vec());
        order.entry(key.clone()).or_insert(*id);
        of_pid.insert(*pid, key.clone());
        let group = found.entry(key).or_insert_with(|| Group {
            comm: comm.as_bytes().to_vec(),
            shown: comm.to_string(),
            cgroup,
            bins: blank(),
            ..Group::default()
        });
        group.processes += 1;
        group.asleep += recorded.window.asleep.get(id).map_or(0, Vec::len);
        let is_parent = recorded.parents.contains(id);
        group.is_parent |= is_parent;
        let stores = Stores::of(list);
        for did in list {
            add(&mut group.bins, &times, did, Whose { stores, is_parent });
        }
    }
    let mut groups: Vec<(Key, Group)> = found.into_iter().collect();
    groups.sort_by_key(|(key, _)| order.get(key).copied());
    direct::take(&mut groups, recorded, &of_pid, &times);
    take_inherited(&mut groups, recorded, page);
    traced(&mut groups, recorded, &of_pid);
    made::count(&mut groups, &recorded.window, &of_pid);
    repeats::take(&mut groups, recorded, &of_pid);
    let mut groups: Vec<Group> = groups.into_iter().map(|(_, group)| group).collect();
    held::add_levels(&mut groups, window);
    spliced::take(&mut groups, recorded, page);
    let mut mapped: BTreeMap<Option<EntityId>, f64> = BTreeMap::new();
    for group in &mut groups {
        group.total = sum(&group.bins);
        *mapped.entry(group.cgroup).or_default() += group.total.mapped;
    }
    for group in &mut groups {
        let all = mapped.get(&group.cgroup).copied().unwrap_or(0.0);
        group.part_of_mapped = group.total.mapped / all.max(1.0);
    }
    groups
}

/// What is known of all intervals of a process.
#[derive(Clone, Copy, Debug)]
struct Whose {
    /// Whether it stores to mappings.
    stores: Stores,
    /// Whether it reaped children: their bytes may be in its own.
    is_parent: bool,
}

/// Adds the activity of a process to the interval that ends with it. Activity over several samples is spread over them.
fn add(bins: &mut [Bin], times: &[u64], did: &Did, whose: Whose) {
    let first = times.partition_point(|time| *time <= did.from.0).saturating_sub(1);
    let last = times.partition_point(|time| *time < did.to.0).saturating_sub(1);
    let last = last.min(bins.len().saturating_sub(1));
    let first = first.min(last);
    let Some(bins) = bins.get_mut(first..=last) else { return };
    let part = 1.0 / bins.len().max(1) as f64;
    let by_calls = whose.stores.by_calls(did);
    let mapped = did.dirtied as f64 - by_calls;
    for bin in bins {
        bin.wchar += did.wchar as f64 * part;
        bin.calls += did.syscw as f64 * part;
        bin.by_calls += by_calls * part;
        bin.mapped += mapped * part;
        bin.read += did.read as f64 * part;
        bin.reads += did.syscr as f64 * part;
        bin.cancelled += did.cancelled as f64 * part;
        bin.faults += did.faults as f64 * part;
        bin.major += did.major as f64 * part;
        bin.waited += did.waited as f64 / 1e9 * part;
        bin.cpu += did.cpu as f64 / 1e9 * part;
        bin.own += if whose.is_parent { 0.0 } else { by_calls * part };
        bin.active += u64::from(!did.is_nothing());
    }
}

/// Bytes that parents inherited from children whose last activity no sample saw count twice. Their amount follows from
/// the machine's counter: it is subtracted from the parents.
fn take_inherited(groups: &mut [(Key, Group)], recorded: &Recorded, page: f64) {
    let host = recorded.window.host.growth.nr_dirtied.map(|pages| pages.0 as f64 * page);
    let Some(host) = host else { return };
    let buffered = |is_parent: Option<bool>| -> f64 {
        let chosen = groups.iter().filter(|(_, group)| is_parent.is_none_or(|wanted| group.is_parent == wanted));
        chosen.flat_map(|(_, group)| &group.bins).map(|bin| bin.by_calls + bin.mapped).sum()
    };
    let (all, parents) = (buffered(None), buffered(Some(true)));
    let surplus = all - host;
    if surplus < 0.05 * all || parents <= 0.0 {
        return;
    }
    let kept = (1.0 - surplus / parents).max(0.02);
    for (_, group) in groups.iter_mut().filter(|(_, group)| group.is_parent) {
        for bin in &mut group.bins {
            // Calls of direct writes are no part of the bytes that count twice.
            let dirty = (bin.by_calls + bin.mapped) / bin.dirtied().max(1.0);
            let kept_of_calls = if bin.direct > 0.0 { 1.0 - (1.0 - kept) * dirty } else { kept };
            for part in [&mut bin.by_calls, &mut bin.mapped, &mut bin.cancelled] {
                *part *= kept;
            }
            for part in [&mut bin.wchar, &mut bin.calls] {
                *part *= kept_of_calls;
            }
            for part in [&mut bin.read, &mut bin.reads] {
                *part *= kept;
            }
        }
    }
}

/// What a trace saw of each group.
fn traced(groups: &mut [(Key, Group)], recorded: &Recorded, of_pid: &BTreeMap<u32, Key>) {
    let window = &recorded.window;
    let has = |part: &str| window.traced.iter().any(|traced| traced.contains(part));
    let sees_waits = has("waits") || window.events.iter().any(|event| matches!(event.what, What::Synced(_)));
    let at = |groups: &[(Key, Group)], pid: u32| {
        let key = of_pid.get(&pid)?;
        groups.iter().position(|(known, _)| known == key)
    };
    if sees_waits {
        groups.iter_mut().for_each(|(_, group)| group.synced = Some(Synced::default()));
    }
    for event in &window.events {
        match &event.what {
            What::Synced(synced) => {
                let Some(at) = at(groups, synced.who.pid) else { continue };
                let counts = groups[at].1.synced.get_or_insert_default();
                if synced.operation.is_of_file() {
                    counts.waited = counts.waited.saturating_add(synced.total.0);
                }
                match synced.operation {
                    Operation::Fsync => counts.fsyncs += synced.count,
                    Operation::Fdatasync => counts.fdatasyncs += synced.count,
                    Operation::Range => counts.ranges += synced.count,
                    Operation::Sync | Operation::SyncFilesystem => counts.whole += synced.count,
                }
            }
            What::Dirtied(dirtied) => {
                let Some(at) = at(groups, dirtied.who.pid) else { continue };
                groups[at].1.add_written(dirtied.device, dirtied.bytes.0);
            }
            What::Submitted(submitted) if submitted.class == Class::Direct => {
                let Some(at) = submitted.who.as_ref().and_then(|who| at(groups, who.pid)) else { continue };
                groups[at].1.add_written(submitted.disk, submitted.bytes.0);
            }
            What::Throttled(throttled) => {
                let Some(at) = at(groups, throttled.who.pid) else { continue };
                groups[at].1.paused += throttled.lasted().as_secs_f64();
            }
            _ => {}
        }
    }
}

pub(super) fn sum(bins: &[Bin]) -> Bin {
    let mut total = Bin::default();
    for bin in bins {
        total.length += bin.length;
        total.wchar += bin.wchar;
        total.calls += bin.calls;
        total.by_calls += bin.by_calls;
        total.mapped += bin.mapped;
        total.direct += bin.direct;
        total.read += bin.read;
        total.reads += bin.reads;
        total.cancelled += bin.cancelled;
        total.faults += bin.faults;
        total.major += bin.major;
        total.waited += bin.waited;
        total.cpu += bin.cpu;
        total.own += bin.own;
        total.active = total.active.max(bin.active);
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_mostly_mapped_if_its_stores_dirty_more_than_its_write_calls() {
        let is_it = |mapped: f64, by_calls: f64, direct: f64| {
            Group { total: Bin { mapped, by_calls, direct, ..Bin::default() }, ..Group::default() }.is_mostly_mapped()
        };
        assert!(is_it(3.0 * PAGE, 2.0 * PAGE, 0.0) && !is_it(2.0 * PAGE, 3.0 * PAGE, 0.0));
        assert!(is_it(PAGE, 0.0, 9.0 * PAGE), "direct writes dirty nothing");
        assert!(!is_it(0.0, 0.0, 0.0));
    }

    #[test]
    fn faults_beyond_the_dirtied_pages_are_no_stores() {
        let of = |faults| Stored { faults, dirtied: 764.0 * PAGE, ..Stored::default() };
        let told = |faults| of(faults).of_single_pages().faults;
        assert_eq!((told(843.0), told(700.0)), (764.0, 700.0));
    }
}
