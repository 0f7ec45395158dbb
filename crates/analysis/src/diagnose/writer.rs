// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writers, in three columns that differ in meaning: application bytes (handed to write calls, sockets and pipes
//! included), dirtied bytes (whole folios, again after each cleaning), device bytes (issued by kworkers; known per
//! cgroup and per disk, never per process). Bytes that the columns leave unattributed are a number of their own. Bytes
//! that a process inherited from its children belong to the children ([`heirs`]).

use super::derived::Derived;
use super::device::Device;
use super::dirty::{self, page_size};
use super::elsewhere::Elsewhere;
use super::heirs::{Inheritance, inheritances};
use super::{cgroup, device, placed};
use crate::observer;
use floodline_kernel::largest_folio;
use floodline_record::facts::Mount;
use floodline_record::id::{Entity, EntityId};
use floodline_record::name::Name;
use floodline_record::sample::ProcessRow;
use floodline_record::units::{Nanos, Quantity};
use floodline_record::window::{Span, Window};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Clock ticks per second in `/proc`, on every architecture Linux has.
const NANOS_PER_TICK: u64 = 10_000_000;

/// Bytes dirtied, in multiples of what a device wrote, from which a process writes mostly elsewhere.
const ELSEWHERE: f64 = 1.5;
/// The same in multiples of what it wrote and what is still unwritten for it, where both are known.
const FITS: f64 = 1.2;
/// Part of what a device wrote that the processes that fit it, and those that no sample saw, must leave for a process that dirtied
/// more than the device wrote to have written it: a journal writes several times what its filesystem's tasks dirty.
const LEFT: f64 = 0.9;
/// Part of all dirtied bytes by which the processes may exceed the machine's count: more are written past the page cache.
const COUNTED: f64 = 1.02;

/// Part of what was dirtied that left for disks, from which folios do not blow up the count of dirtied bytes.
const IN_PARTS: f64 = 0.5;

/// One process and the amounts it wrote.
#[derive(Clone, Copy)]
pub struct Writer<'a> {
    /// Its entity.
    pub id: EntityId,
    /// Process id.
    pub pid: u32,
    /// Its name.
    pub comm: &'a Name,
    /// Its cgroup.
    pub cgroup: Option<EntityId>,
    /// Whether it is a kernel thread.
    pub kthread: bool,
    /// Its readings, folded.
    pub span: &'a Span<ProcessRow>,
    /// Bytes handed to write calls.
    pub application_bytes: Option<u64>,
    /// Bytes dirtied or written directly. `cancelled_write_bytes` is not subtracted: it belongs to the process that
    /// truncates.
    pub dirtied_bytes: Option<u64>,
    /// Write calls.
    pub write_calls: Option<u64>,
    /// Dirty bytes that this process truncated or removed before they were written; any process may have dirtied them.
    pub cancelled_bytes: Option<u64>,
    /// Bytes read from disks.
    pub read_bytes: Option<u64>,
    /// Page faults, minor and major: each store to a page cleaned since is one. Before 6.0, a store that waited in
    /// `balance_dirty_pages` counts as major.
    pub faults: Option<u64>,
    /// Amounts inherited from children it waited for. Of the amounts above, only those are subtracted that the children
    /// had shown themselves. `None`: nothing inherited, or not known.
    pub inherited: Option<Inheritance>,
}

impl Writer<'_> {
    /// "redis-server[812]", or "children of bash[812]".
    pub fn label(&self) -> String {
        let of = if self.is_by_children() { "children of " } else { "" };
        format!("{of}{}[{}]", self.comm, self.pid)
    }

    /// Whether its remaining amounts likely come from children that no sample saw.
    pub fn is_by_children(&self) -> bool {
        self.inherited.is_some_and(|inherited| inherited.rest_is_childrens)
    }
}

/// What the amounts of [`Writers`] cover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Period {
    /// Growth within the window.
    Window,
    /// One sample only: everything since each process, or the machine, was started.
    SinceStart,
}

/// All processes with the amounts they wrote, and the machine's totals.
pub struct Writers<'a> {
    /// Processes, most dirtied first.
    pub processes: Vec<Writer<'a>>,
    /// What the amounts cover.
    pub period: Period,
    /// Bytes dirtied by the whole machine, direct writes not included.
    pub machine_dirtied_bytes: Option<u64>,
    /// Bytes written by all disks.
    pub disk_bytes: Option<u64>,
}

impl Writers<'_> {
    /// Bytes dirtied by all processes that could be read.
    pub fn attributed_bytes(&self) -> u64 {
        self.processes.iter().filter_map(|writer| writer.dirtied_bytes).fold(0, u64::saturating_add)
    }

    /// Bytes handed to write calls by all processes that could be read.
    pub fn application_bytes(&self) -> u64 {
        self.processes.iter().filter_map(|writer| writer.application_bytes).fold(0, u64::saturating_add)
    }

    /// Bytes dirtied by the machine that no process accounts for: unreadable or ended processes, the kernel itself.
    /// `None` when the machine's total is unknown or covers less than the processes.
    pub fn unattributed_bytes(&self) -> Option<u64> {
        self.machine_dirtied_bytes?.checked_sub(self.attributed_bytes())
    }

    /// Processes whose counters could not be read.
    pub fn unreadable(&self) -> usize {
        self.processes.iter().filter(|writer| !writer.kthread && writer.dirtied_bytes.is_none()).count()
    }

    /// Whether the readable processes leave more than half of the dirtied bytes unexplained, while others were
    /// unreadable.
    pub fn unseen_could_dominate(&self) -> bool {
        let total = self.machine_dirtied_bytes.unwrap_or(0);
        let unseen = self.unattributed_bytes().unwrap_or(0);
        self.unreadable() > 0 && unseen >= DOMINANT_LEAST && unseen as f64 > DOMINANT_SHARE * total as f64
    }
}

/// Returns the amounts of each process: within the window, or with one sample since each process was started.
pub fn writers(window: &Window) -> Writers<'_> {
    let period = if super::missing::has_rates(window) { Period::Window } else { Period::SinceStart };
    let inherited = inheritances(window, period);
    let mut processes: Vec<Writer<'_>> = window
        .processes
        .iter()
        .filter_map(|(id, span)| writer(window, period, *id, span, inherited.get(id).copied()))
        .collect();
    processes.sort_by_key(|writer| (Reverse(writer.dirtied_bytes), writer.pid));
    let host = match period {
        Period::Window => &window.host.growth,
        Period::SinceStart => &window.host.last,
    };
    let written = |device: &device::Device<'_>| match period {
        Period::Window => device.span.growth.written,
        Period::SinceStart => device.span.last.written,
    };
    let disks: Vec<u64> = device::disks(window).iter().filter_map(written).map(|bytes| bytes.0).collect();
    Writers {
        processes,
        period,
        machine_dirtied_bytes: host.nr_dirtied.map(|pages| pages.bytes(page_size(window)).0),
        disk_bytes: (!disks.is_empty()).then(|| disks.into_iter().fold(0, u64::saturating_add)),
    }
}

/// A process dominates when its share of all bytes dirtied by processes is above this.
pub const DOMINANT_SHARE: f64 = 0.5;
/// Factor by which the dominant process must lead the next one.
const LEADS: f64 = 1.5;
/// Bytes that have to be dirtied for any process to dominate: an idle host has no dominant writer.
pub const DOMINANT_LEAST: u64 = 512 << 10;

/// Returns the process that dirtied more than half of all bytes, and its share; `None` when no process did.
pub fn dominant<'w, 'a>(writers: &'w Writers<'a>) -> Option<(&'w Writer<'a>, f64)> {
    let first = writers.processes.first()?;
    let bytes = first.dirtied_bytes?;
    // Of two processes that write about as much, neither stands out.
    let next = writers.processes.get(1).and_then(|next| next.dirtied_bytes).unwrap_or(0);
    let leads = bytes as f64 >= LEADS * next as f64;
    Some((first, dominant_share(writers, bytes).filter(|_| leads)?))
}

/// Processes of one program that run one after the other, such as the archives that a script makes.
pub struct InTurn<'w, 'a> {
    /// The one that dirtied most.
    pub most: &'w Writer<'a>,
    /// All of them, by process id.
    pub pids: Vec<u32>,
    /// Bytes dirtied by all of them.
    pub dirtied_bytes: u64,
    /// Bytes that all of them handed to write calls.
    pub application_bytes: u64,
    /// Their share of all bytes dirtied by processes.
    pub share: f64,
}

/// Fewest processes that are a program in turn, and the part of their bytes from which a process is one of them.
const TURNS_MIN: usize = 3;
const HARDLY: f64 = 0.01;

/// Fewest samples asleep that show when a process works.
const ASLEEP_MIN: usize = 2;
/// Part of the window that the turns of such processes fill together.
const TURNS_SHARE: f64 = 0.5;

/// Returns the processes of one program in one cgroup that run one after the other and together dirtied more than half of all bytes.
/// Processes that run side by side are writers of their own.
pub fn dominant_in_turn<'w, 'a>(window: &Window, writers: &'w Writers<'a>) -> Option<InTurn<'w, 'a>> {
    let is_one = |writer: &&Writer<'_>| {
        !writer.kthread && !writer.is_by_children() && writer.dirtied_bytes.is_some_and(|bytes| bytes > 0)
    };
    // A program dirtied at most what its cgroup did. On most hosts no cgroup dirtied half.
    let mut of_cgroups: Vec<_> =
        writers.processes.iter().filter(is_one).map(|writer| (writer.cgroup, writer.dirtied_bytes)).collect();
    of_cgroups.sort_unstable_by_key(|(cgroup, _)| *cgroup);
    let sums = of_cgroups.chunk_by(|(one, _), (next, _)| one == next);
    let most = sums.map(|of| of.iter().filter_map(|(_, bytes)| *bytes).fold(0, u64::saturating_add)).max()?;
    dominant_share(writers, most)?;
    let mut programs: BTreeMap<(&Name, Option<EntityId>), Vec<&'w Writer<'a>>> = BTreeMap::new();
    for writer in writers.processes.iter().filter(is_one) {
        programs.entry((writer.comm, writer.cgroup)).or_default().push(writer);
    }
    let bytes = |of: &[&Writer<'_>]| of.iter().filter_map(|writer| writer.dirtied_bytes).fold(0, u64::saturating_add);
    let (name, mut members) = programs.into_iter().max_by_key(|(_, members)| bytes(members))?;
    // One that hardly writes, such as the parent of the others, is none of them.
    let least = HARDLY * bytes(&members) as f64;
    members.retain(|writer| writer.dirtied_bytes.is_some_and(|bytes| bytes as f64 >= least));
    let others = |writer: &&Writer<'_>| (writer.comm, writer.cgroup) != name;
    let next = writers.processes.iter().filter(others).filter_map(|writer| writer.dirtied_bytes).max().unwrap_or(0);
    let dirtied_bytes = bytes(&members);
    if members.len() < TURNS_MIN || (dirtied_bytes as f64) < LEADS * next as f64 || !are_in_turn(window, &members) {
        return None;
    }
    Some(InTurn {
        most: members.first()?,
        pids: members.iter().map(|writer| writer.pid).collect(),
        dirtied_bytes,
        application_bytes: members.iter().filter_map(|one| one.application_bytes).fold(0, u64::saturating_add),
        share: dominant_share(writers, dirtied_bytes)?,
    })
}

/// Whether each process started after the one before was seen for the last time, or, of processes that were there before, began to wait
/// for a device after the one before had waited.
fn are_in_turn(window: &Window, members: &[&Writer<'_>]) -> bool {
    let slept = |writer: &&Writer<'_>| {
        let times = window.asleep.get(&writer.id).filter(|times| times.len() >= ASLEEP_MIN)?;
        Some((*times.first()?, *times.last()?))
    };
    if let Some(mut waits) = members.iter().map(slept).collect::<Option<Vec<(Nanos, Nanos)>>>() {
        waits.sort();
        // Processes that write side by side may sync one after the other: their waits are short.
        let waited: f64 = waits.iter().map(|(first, last)| Nanos(last.0 - first.0).as_secs_f64()).sum();
        if waits.windows(2).all(|pair| pair[0].1 < pair[1].0) && waited >= TURNS_SHARE * window.seconds() {
            return true;
        }
    }
    let start = |writer| started(window, writer).unwrap_or_default();
    let mut lives: Vec<(Nanos, Nanos)> = members.iter().map(|one| (start(one), one.span.last_at)).collect();
    lives.sort();
    // A start is counted in ticks, rounded down.
    lives.windows(2).all(|pair| pair[0].1.0 <= pair[1].0.0.saturating_add(NANOS_PER_TICK))
}

/// When a process started, on the clock of the samples.
fn started(window: &Window, writer: &Writer<'_>) -> Option<Nanos> {
    match window.entities.get(&writer.id)? {
        Entity::Process { start_ticks, .. } => Some(Nanos(start_ticks.saturating_mul(NANOS_PER_TICK))),
        _ => None,
    }
}

/// How long a process lived that started and ended within the window. It ended between the last sample that shows it and the next one:
/// halfway, as far as is known.
pub(super) fn lived(window: &Window, writer: &Writer<'_>) -> Option<Nanos> {
    let started = started(window, writer)?;
    let (first, last) = (window.first_at?.monotonic, window.last_at?.monotonic);
    let is_within = started > first && writer.span.last_at < last;
    let seen = writer.span.last_at.0.checked_sub(started.0)?;
    is_within.then(|| Nanos(seen.saturating_add(observer::distance(window).unwrap_or_default().0 / 2)))
}

/// Returns the cgroup whose own processes dirtied more than half of all bytes, those bytes, and its share. Bytes of
/// children that no sample saw have no known cgroup. The root cgroup does not count as one.
pub fn dominant_cgroup(window: &Window, writers: &Writers<'_>) -> Option<(EntityId, u64, f64)> {
    let is_root = |id| cgroup::path(window, id).is_some_and(|path| path.as_bytes() == b"/");
    let mut by_cgroup: BTreeMap<EntityId, u64> = BTreeMap::new();
    for writer in writers.processes.iter().filter(|writer| !writer.is_by_children()) {
        if let (Some(cgroup), Some(bytes)) = (writer.cgroup.filter(|id| !is_root(*id)), writer.dirtied_bytes) {
            let sum = by_cgroup.entry(cgroup).or_default();
            *sum = sum.saturating_add(bytes);
        }
    }
    let (cgroup, bytes) = by_cgroup.iter().map(|(id, bytes)| (*id, *bytes)).max_by_key(|(_, bytes)| *bytes)?;
    let next = by_cgroup.iter().filter(|(id, _)| **id != cgroup).map(|(_, bytes)| *bytes).max().unwrap_or(0);
    // Of two cgroups that write about as much, neither stands out.
    let leads = bytes as f64 >= LEADS * next as f64;
    Some((cgroup, bytes, dominant_share(writers, bytes).filter(|_| leads)?))
}

/// Returns the processes that may have written to a device. With one device, these are all processes. With several, a
/// process that dirtied much more than the device wrote is left out, because it writes mostly elsewhere, and so is one that
/// was seen to write elsewhere ([`Elsewhere`]), or whose amount fits another device only ([`placed`]). If all others dirtied next to
/// nothing, those that dirtied more than the device wrote are its writers as well: they write to several devices.
pub fn on_device<'a>(derived: &Derived<'a>, drain: &Device<'_>) -> Writers<'a> {
    let writers = derived.writers();
    let written = drain.span.growth.written.map_or(0, |bytes| bytes.0);
    let is_only = derived.drains().len() < 2;
    let left = derived.dirty.now.map_or(0, |bytes| bytes.0);
    let most = match unwritten_on(derived, drain) {
        Some(unwritten) => FITS * written.saturating_add(unwritten) as f64,
        // The bytes dirtied last may still be in memory, for all devices together.
        None => ELSEWHERE * written as f64 + left.min(written) as f64,
    };
    let most = (most * counted_for_each(derived, drain)) as u64;
    let elsewhere = (!is_only).then(|| Elsewhere::of(derived, drain));
    let is_elsewhere =
        |writer: &Writer<'_>| elsewhere.as_ref().is_some_and(|elsewhere| elsewhere.holds(derived, writer));
    let placed = placed::elsewhere(derived, drain);
    let may_be_here = |writer: &&Writer<'_>| is_only || !is_elsewhere(writer) && !placed.contains(&writer.pid);
    let fits = |writer: &Writer<'_>| is_only || writer.dirtied_bytes.is_none_or(|bytes| bytes <= most);
    let mut processes: Vec<Writer<'a>> = writers.processes.iter().filter(may_be_here).copied().collect();
    let fitting = processes.iter().filter(|writer| fits(writer)).filter_map(|writer| writer.dirtied_bytes);
    let is_mounted = !drain.mounts().is_empty();
    if !is_left_to_others(writers, fitting.fold(0, u64::saturating_add), written, is_mounted) {
        processes.retain(fits);
    }
    Writers {
        processes,
        period: writers.period,
        machine_dirtied_bytes: writers.machine_dirtied_bytes.filter(|_| is_only),
        disk_bytes: if is_only { writers.disk_bytes } else { Some(written) },
    }
}

/// Whether the processes that fit a device, and those that no sample saw, dirtied too little to have written what it wrote.
fn is_left_to_others(writers: &Writers<'_>, fitting: u64, written: u64, is_mounted: bool) -> bool {
    let attributed = writers.attributed_bytes();
    // What is written to a disk without a filesystem, such as swap, no process dirtied.
    let Some(machine) = writers.machine_dirtied_bytes.filter(|_| is_mounted) else { return false };
    let unseen = machine.saturating_sub(attributed);
    let is_counted = attributed as f64 <= COUNTED * machine as f64;
    let rest = written.saturating_sub(fitting.saturating_add(unseen));
    is_counted && rest > 0 && rest as f64 >= LEFT * written as f64
}

/// Bytes that the kernel counted as dirtied for each byte that was written, or is left to be, on the machine. Some filesystems make large
/// folios and write only the changed blocks of one, and the kernel counts all of it. 1 where the filesystems of this device make none, or
/// where most of what was dirtied was written.
fn counted_for_each(derived: &Derived<'_>, drain: &Device<'_>) -> f64 {
    let makes_folios = |mount: &&Mount| {
        let folio = largest_folio(&mount.fs_type, derived.behaviour.as_ref(), None, derived.page_size);
        folio.is_some_and(|folio| folio.by_write.0 > derived.page_size)
    };
    let mut mounts = derived.window.facts.iter().flat_map(|facts| &facts.mounts);
    if !drain.mounts().iter().any(makes_folios) || mounts.any(dirty::is_beyond_disks) {
        return 1.0;
    }
    let writers = derived.writers();
    let cancelled = writers.processes.iter().filter_map(|one| one.cancelled_bytes).fold(0, u64::saturating_add);
    let dirtied = writers.attributed_bytes().max(writers.machine_dirtied_bytes.unwrap_or(0)).saturating_sub(cancelled);
    let left = derived.dirty.unwritten_peak.map_or(0, |bytes| bytes.0);
    let part = writers.disk_bytes.map_or(1.0, |written| written.saturating_add(left) as f64 / dirtied.max(1) as f64);
    if part < IN_PARTS { 1.0 / part.max(f64::MIN_POSITIVE) } else { 1.0 }
}

/// Bytes that may be unwritten for a device at the end of the window: those of its backing device, and those that no backing
/// device counts, such as data of cgroups up to 6.9. `None` where the backing devices were not read.
fn unwritten_on(derived: &Derived<'_>, drain: &Device<'_>) -> Option<u64> {
    let of = |device: &Device<'_>| {
        let last = &device.bdi()?.last;
        Some(last.reclaimable?.0.saturating_add(last.writeback?.0))
    };
    let all: Option<u64> = derived.drains().iter().map(of).sum();
    let machine = dirty::unwritten_of(derived.window, &derived.window.host.last)?.0;
    Some(of(drain)?.saturating_add(machine.saturating_sub(all?)))
}

/// Returns the processes that may have written to a disk or to what is built on it. Where several filesystems share the
/// disk by layers of their own, these are all processes.
pub fn on_disk<'a>(derived: &Derived<'a>, disk: &Device<'_>) -> Writers<'a> {
    let is_on_it =
        |drain: &&Device<'_>| drain.bottoms().iter().any(|bottom| bottom.id == disk.id) || drain.id == disk.id;
    let mut on_it = derived.drains().iter().filter(is_on_it);
    match (on_it.next(), on_it.next()) {
        (Some(drain), None) => on_device(derived, drain),
        _ => writers(derived.window),
    }
}

/// The processes that dirtied more than half of all bytes: one, or those of one program in turn. Empty where none did.
pub fn causers(window: &Window, writers: &Writers<'_>) -> Vec<u32> {
    match dominant(writers) {
        Some((writer, _)) => vec![writer.pid],
        None => dominant_in_turn(window, writers).map_or_else(Vec::new, |in_turn| in_turn.pids),
    }
}

/// The same of a disk or of a device that is built on disks.
pub fn causers_on(derived: &Derived<'_>, device: &Device<'_>) -> Vec<u32> {
    causers(derived.window, &on_disk(derived, device))
}

fn dominant_share(writers: &Writers<'_>, bytes: u64) -> Option<f64> {
    // Where not every process was readable, the machine's total may cover more. Otherwise its excess is the
    // filesystems' own structures.
    let machine = writers.machine_dirtied_bytes.filter(|_| writers.unreadable() > 0);
    let total = writers.attributed_bytes().max(machine.unwrap_or(0));
    let share = bytes as f64 / total.max(1) as f64;
    (bytes >= DOMINANT_LEAST && share > DOMINANT_SHARE).then_some(share)
}

/// Amounts counted for a process in a period; `None` if the entity is not a process.
pub(super) fn counted<'a>(
    window: &Window,
    period: Period,
    id: EntityId,
    span: &'a Span<ProcessRow>,
) -> Option<&'a ProcessRow> {
    let Some(Entity::Process { start_ticks, .. }) = window.entities.get(&id) else { return None };
    // Everything a process started within the window ever did falls within the window.
    let started = Nanos(start_ticks.saturating_mul(NANOS_PER_TICK));
    let is_new = window.first_at.is_some_and(|first| started > first.monotonic);
    let counts_all = period == Period::SinceStart || is_new;
    Some(if counts_all { &span.last } else { &span.growth })
}

fn writer<'a>(
    window: &'a Window,
    period: Period,
    id: EntityId,
    span: &'a Span<ProcessRow>,
    inherited: Option<Inheritance>,
) -> Option<Writer<'a>> {
    let Some(Entity::Process { pid, comm, cgroup, kthread, .. }) = window.entities.get(&id) else {
        return None;
    };
    let row = counted(window, period, id, span)?;
    let others = inherited.unwrap_or_default();
    Some(Writer {
        id,
        pid: *pid,
        comm,
        cgroup: *cgroup,
        kthread: *kthread,
        span,
        application_bytes: raw(row.wchar).map(|bytes| bytes.saturating_sub(others.application_bytes)),
        dirtied_bytes: raw(row.write_bytes).map(|bytes| bytes.saturating_sub(others.dirtied_bytes)),
        write_calls: raw(row.syscw).map(|calls| calls.saturating_sub(others.write_calls)),
        cancelled_bytes: raw(row.cancelled_write_bytes).map(|bytes| bytes.saturating_sub(others.cancelled_bytes)),
        read_bytes: raw(row.read_bytes).map(|bytes| bytes.saturating_sub(others.read_bytes)),
        faults: raw(row.minflt).map(|minor| minor.saturating_add(raw(row.majflt).unwrap_or(0))),
        inherited,
    })
}

/// Device bytes that a cgroup and its descendants submitted within the window, on disks only.
pub fn cgroup_device_bytes(window: &Window, cgroup: EntityId) -> Option<u64> {
    device_bytes(window).get(&cgroup).copied()
}

/// Returns the cgroup that itself submitted more than half of the device bytes of all cgroups, those bytes, and its
/// share. It uses no counters of processes, so inheritance from children does not distort it.
pub fn dominant_by_device_bytes(window: &Window) -> Option<(EntityId, u64, f64)> {
    let bytes = device_bytes(window);
    let own = cgroup::own_parts(window, &bytes);
    let all = own.iter().map(|(_, bytes)| *bytes).fold(0, u64::saturating_add);
    let (cgroup, most) = own.first().copied()?;
    let share = most as f64 / all.max(1) as f64;
    (most >= DOMINANT_LEAST && share > DOMINANT_SHARE).then_some((cgroup, most, share))
}

/// Device bytes by cgroup, descendants included. `io.stat` counts each layer of a stack again, so layers are left out.
fn device_bytes(window: &Window) -> BTreeMap<EntityId, u64> {
    let disks: Vec<_> = device::disks(window).iter().map(|device| device.dev).collect();
    let mut bytes: BTreeMap<EntityId, u64> = BTreeMap::new();
    for (id, span) in &window.cgroup_io {
        if let Some(Entity::CgroupIo { cgroup, dev }) = window.entities.get(id)
            && disks.contains(dev)
            && let Some(written) = span.growth.wbytes
        {
            let sum = bytes.entry(*cgroup).or_default();
            *sum = sum.saturating_add(written.0);
        }
    }
    bytes
}

fn raw<Q: Quantity>(quantity: Option<Q>) -> Option<u64> {
    quantity.map(Quantity::raw)
}
