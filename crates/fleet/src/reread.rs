// SPDX-License-Identifier: MIT OR Apache-2.0
//! Page cache that programs read again and again, and that no longer fits into less memory: the reads then go to the disk. No
//! dirty limit tells of it. The recording shows the active list, on which the kernel keeps what was read more than once, and the
//! bytes that read calls got without the disk. An active list that still grows does not bound what is read: reads are then spread
//! over the whole page cache.

use crate::change::Change;
use crate::harm::STALL;
use crate::removed::seconds_per_byte;
use crate::waits::Dirtying;
use floodline_analysis::budget::free_pages;
use floodline_analysis::diagnose::derived::Derived;
use floodline_record::human;
use floodline_record::id::{Entity, EntityId};
use floodline_record::name::Name;
use floodline_record::units::{Count, Pages};
use floodline_record::window::Window;

/// Times that the active list was read, at least, in a recording that shows it being read again.
const AGAIN: f64 = 2.0;
/// Least size of it that can be missed, bytes.
const LEAST: f64 = 8_388_608.0;
/// Time of a small read from a slow disk, seconds. It decides where the recording does not show the disk that is read.
const SLOW_READ_S: f64 = 0.005;
/// Reads of a disk from which its requests show how fast it reads.
const READS: u64 = 50;
/// Part of a stall from which reads that are certain to miss are worth a mention.
const LITTLE: f64 = 0.5;
/// The active list still grows if it grew by this part of itself while the host was recorded.
const GROWS: f64 = 0.5;

/// Reads that go to the disk after the change.
pub(crate) struct Reread {
    /// Task-seconds per second that programs wait for them.
    pub(crate) waits: f64,
    /// Whether the recording shows that the programs read all of this page cache. Otherwise they may read the same small part.
    pub(crate) is_certain: bool,
    pub(crate) told: String,
}

/// Memory that gets smaller: of a cgroup, or of the machine.
struct Less {
    /// `None` is the machine.
    path: Option<String>,
    /// Page cache that was read more than once, bytes, and what it was at the first sample.
    active: f64,
    active_before: f64,
    /// All page cache, bytes.
    cache: f64,
    /// What is left for page cache, bytes.
    room: f64,
}

impl Less {
    /// Whether reads are spread over all page cache: the part of it that was read more than once still grows.
    fn is_spread(&self) -> bool {
        let grown = self.active - self.active_before;
        grown >= LEAST && grown >= GROWS * self.active
    }

    /// Page cache that is read, bytes.
    fn read_bytes(&self) -> f64 {
        if self.is_spread() { self.cache } else { self.active }
    }
}

/// Read calls that the page cache answered.
#[derive(Clone, Copy, Debug, Default)]
struct Cached {
    bytes: f64,
    calls: f64,
}

/// Whether a change can have such an effect.
pub(crate) fn is_possible(change: &Change) -> bool {
    change.as_if.memory.is_some() || change.as_if.limits.iter().any(|(_, _, limit)| limit.is_some())
}

/// Finds such reads. `None` without any, and where programs may read a small part again that would hardly be missed.
pub(crate) fn reread(derived: &Derived<'_>, change: &Change) -> Option<Reread> {
    if !is_possible(change) {
        return None;
    }
    let window = derived.window;
    let disk = Disk::of(derived);
    let of_cgroups = change.as_if.limits.iter().filter_map(|(path, _, limit)| of_cgroup(window, path, (*limit)?));
    let less = of_cgroups.chain(change.as_if.memory.and_then(|memory| of_machine(window, memory)));
    let found = less.filter(|less| less.room < less.read_bytes()).filter_map(|less| missed(derived, less, disk));
    let order = |one: &Missed, other: &Missed| {
        one.is_certain.cmp(&other.is_certain).then(one.takes.unwrap_or(0.0).total_cmp(&other.takes.unwrap_or(0.0)))
    };
    let found = found.max_by(|one, other| order(one, other).then(one.to_disk.total_cmp(&other.to_disk)))?;
    Some(Reread { waits: found.waits(derived), is_certain: found.is_certain, told: found.told(derived) })
}

/// Speed of the disk that would be read.
#[derive(Clone, Copy, Debug)]
struct Disk {
    /// Time of a byte, seconds; `None` where the disk wrote nothing.
    per_byte: Option<f64>,
    /// Time of a small read, seconds.
    per_read: f64,
    /// Whether no disk was seen reading, so that a slow disk is assumed.
    is_assumed: bool,
}

impl Disk {
    fn of(derived: &Derived<'_>) -> Disk {
        let per_byte = Dirtying::of(derived).map(|dirtying| seconds_per_byte(derived, &dirtying));
        let is_read = |reads: Option<Count>| reads.is_some_and(|reads| reads.0 >= READS);
        let mut disks = derived.disks().iter();
        let is_assumed = !disks.clone().any(|disk| is_read(disk.span.growth.reads))
            && disks.any(|disk| disk.facts.and_then(|facts| facts.rotational) != Some(false) || is_virtual(disk.name));
        let per_read = per_request(derived);
        Disk { per_byte, per_read: if is_assumed { per_read.max(SLOW_READ_S) } else { per_read }, is_assumed }
    }
}

/// Whether the name is one of a virtual machine's disk: it may be a volume across a network, whatever it says of itself.
fn is_virtual(name: &Name) -> bool {
    [&b"vd"[..], b"xvd"].iter().any(|prefix| name.as_bytes().starts_with(prefix))
}

/// Reads of one cgroup, or of the machine, that would miss the page cache.
struct Missed {
    less: Less,
    cached: Cached,
    is_certain: bool,
    /// Bytes that come from the disk.
    to_disk: f64,
    /// How long that takes, seconds; `None` where the disk's speed is not known.
    takes: Option<f64>,
    /// Whether it would take less on another disk than the slow one that is assumed.
    is_assumed: bool,
}

/// What of the cached reads misses. `None` where that is not noticed.
fn missed(derived: &Derived<'_>, less: Less, disk: Disk) -> Option<Missed> {
    let cached = read_from_cache(derived, less.path.as_deref());
    // With little of it, or without room for what stays, the page cache is not what is missing.
    if less.active < LEAST || less.room <= 0.0 || cached.bytes < LEAST {
        return None;
    }
    // Pages that are read at random are found in memory as often as there is room for them; those that are read in turn never.
    let part = 1.0 - (less.room / less.read_bytes()).max(0.0);
    let is_certain = cached.bytes >= AGAIN * less.active || less.is_spread();
    let to_disk = cached.bytes * part;
    // Small reads at random take a request each.
    let of_calls = if less.is_spread() || !is_certain { cached.calls * part * disk.per_read } else { 0.0 };
    let of_bytes = disk.per_byte.map_or(0.0, |per_byte| to_disk * per_byte);
    let is_known = disk.per_byte.is_some() || of_calls > 0.0;
    let takes = is_known.then(|| of_bytes.max(of_calls));
    let found = Missed { less, cached, is_certain, to_disk, takes, is_assumed: disk.is_assumed && of_calls > of_bytes };
    // What takes a moment only is not felt.
    let least = if is_certain { STALL * LITTLE } else { STALL };
    (found.takes.is_none() || found.waits(derived) >= least).then_some(found)
}

impl Missed {
    fn waits(&self, derived: &Derived<'_>) -> f64 {
        self.takes.unwrap_or(0.0) / derived.seconds.max(f64::MIN_POSITIVE)
    }

    fn told(&self, derived: &Derived<'_>) -> String {
        format!(
            "{} has {} of page cache that {}, and {} are left for it. Programs read {} in {} without the disk. {} {} of that will come from \
             the disk, {}.",
            self.less.path.as_deref().unwrap_or("The machine"),
            human::bytes(self.less.read_bytes()),
            match (self.less.is_spread(), self.is_certain) {
                (true, _) => "is read at random",
                (false, true) => "is read again and again",
                (false, false) => "was read more than once",
            },
            human::bytes(self.less.room.max(0.0)),
            human::bytes(self.cached.bytes),
            human::seconds(derived.seconds),
            if self.is_certain { "About" } else { "If the reads are random, about" },
            human::bytes(self.to_disk),
            match self.takes {
                Some(takes) if self.is_assumed =>
                    format!("which takes about {} at 5 ms a read, which is assumed", human::seconds(takes)),
                Some(takes) => format!("which takes about {}", human::seconds(takes)),
                None => "whose speed is not known".to_owned(),
            }
        )
    }
}

/// A cgroup whose limit gets smaller. Only its page cache can be taken away.
fn of_cgroup(window: &Window, path: &str, limit: u64) -> Option<Less> {
    let is_it = |id: &EntityId| matches!(window.entities.get(id), Some(Entity::Cgroup { path: known, .. }) if known.to_string() == path);
    let (_, span) = window.cgroups.iter().find(|(id, span)| is_it(id) && span.last.active_file.is_some())?;
    let row = &span.last;
    let cache = row.inactive_file?.0.saturating_add(row.active_file?.0);
    let stays = row.memory_current?.0.saturating_sub(cache);
    let active = row.active_file?.0 as f64;
    let active_before = span.first.active_file.map_or(active, |bytes| bytes.0 as f64);
    let room = limit as f64 - stays as f64;
    Some(Less { path: Some(path.to_owned()), active, active_before, cache: cache as f64, room })
}

/// The machine, if it gets less memory.
fn of_machine(window: &Window, memory: u64) -> Option<Less> {
    let row = &window.host.last;
    let page = window.facts.as_ref().map_or(4096, |facts| facts.page_size.max(1));
    let total = window.facts.as_ref().and_then(|facts| facts.mem_total).or(row.mem_total)?.0;
    let bytes = |pages: Option<Pages>| pages.map(|pages| pages.0.saturating_mul(page));
    let active = bytes(row.nr_active_file)?;
    let active_before = bytes(window.host.first.nr_active_file).unwrap_or(active) as f64;
    let cache = bytes(row.nr_inactive_file)?.saturating_add(active);
    let stays = total.saturating_sub(bytes(free_pages(row, page))?.saturating_add(cache));
    let room = memory as f64 - stays as f64;
    (memory < total).then_some(Less { path: None, active: active as f64, active_before, cache: cache as f64, room })
}

/// Time of a request of the disk that wrote the most, seconds: its busy time over its requests.
fn per_request(derived: &Derived<'_>) -> f64 {
    let of = || {
        let growth = &derived.drains().first()?.span.growth;
        let requests = growth.reads.map_or(0, |count| count.0).saturating_add(growth.writes?.0);
        Some(growth.io_time?.as_secs_f64() / requests.max(1) as f64)
    };
    of().unwrap_or(0.0)
}

/// What read calls of the processes of a cgroup, and of those below it, got without a disk. `None` is the machine.
fn read_from_cache(derived: &Derived<'_>, path: Option<&str>) -> Cached {
    let window = derived.window;
    let is_in = |cgroup: Option<EntityId>| {
        let Some(path) = path else { return true };
        let Some(Entity::Cgroup { path: of, .. }) = cgroup.and_then(|id| window.entities.get(&id)) else {
            return false;
        };
        let of = of.to_string();
        of.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let writers = derived.writers();
    let own = writers.processes.iter().filter(|process| !process.kthread && is_in(process.cgroup));
    own.filter_map(|process| {
        let growth = &process.span.growth;
        let called = growth.rchar?.0;
        let bytes = called.saturating_sub(growth.read_bytes.map_or(0, |bytes| bytes.0)) as f64;
        let calls = growth.syscr.map_or(0, |count| count.0) as f64;
        Some(Cached { bytes, calls: calls * bytes / called.max(1) as f64 })
    })
    .fold(Cached::default(), |sum, one| Cached { bytes: sum.bytes + one.bytes, calls: sum.calls + one.calls })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arithmetic;
    use crate::row::{Cause, Row, Verdict};
    use floodline_record::units::Bytes;
    use floodline_testkit::{Fixture, secs};

    const MIB: u64 = 1 << 20;

    /// A host whose search reads in each second from an index of 300 MiB in the page cache.
    fn judged(mib_in_a_second: u64, change: &str) -> Row {
        judged_beside(mib_in_a_second, change, 5e6)
    }

    /// The same host, with a disk that writes `written` bytes in each second.
    fn judged_beside(mib_in_a_second: u64, change: &str, written: f64) -> Row {
        let recording = Fixture::healthy()
            .disk("sda", move |second, row| {
                row.written = Some(Bytes((second * written) as u64));
                row.io_time = Some(secs(second * 0.1));
            })
            .cgroup("/search", |_, row| {
                row.memory_current = Some(Bytes(310 * MIB));
                (row.inactive_file, row.active_file) = (Some(Bytes(0)), Some(Bytes(300 * MIB)));
            })
            .process("search", 900, "/search", move |second, row| {
                row.rchar = Some(Bytes(second as u64 * mib_in_a_second * MIB));
                row.read_bytes = Some(Bytes(0));
            });
        let change = Change::parse(&[change], None, None, None).unwrap();
        arithmetic::judge(&recording.window(), "a.flr", &change)
    }

    #[test]
    fn a_page_cache_that_is_read_again_has_to_fit() {
        let row = judged(60, "cgroup/search/memory.max=160M");
        assert_eq!((row.verdict, row.cause), (Verdict::Suffers, Cause::CacheTooSmall), "{row:?}");
        assert!(
            row.finding.contains("300 MiB of page cache") && row.finding.contains("150 MiB are left"),
            "{}",
            row.finding
        );
        // Without a speed of the disk it is not known how long that takes.
        let row = judged_beside(60, "cgroup/search/memory.max=160M", 0.0);
        assert_eq!((row.verdict, row.cause), (Verdict::Tight, Cause::CacheTooSmall), "{row:?}");
        assert!(row.finding.ends_with("the disk, whose speed is not known."), "{}", row.finding);
        // Without room for what stays, more than the page cache is missing.
        assert_ne!(judged(60, "cgroup/search/memory.max=8M").cause, Cause::CacheTooSmall);
        // It fits, or it is read once.
        assert_ne!(judged(60, "cgroup/search/memory.max=400M").cause, Cause::CacheTooSmall);
        assert_ne!(judged(5, "cgroup/search/memory.max=160M").cause, Cause::CacheTooSmall);
        assert_ne!(judged(60, "vm.dirty_ratio=10").cause, Cause::CacheTooSmall);
    }

    /// A host whose guests read their images of 600 MiB here and there, 2 MiB in each second. Its active list grows by `grows_mib`.
    fn spread(grows_mib: f64, change: &str) -> Row {
        let recording = Fixture::healthy()
            .facts(|facts| facts.mem_total = Some(Bytes(1024 * MIB)))
            .host(move |second, row| {
                row.mem_total = Some(Bytes(1024 * MIB));
                row.nr_free_pages = Some(Pages(300 * 256));
                let active = 60.0 + grows_mib * second / 10.0;
                row.nr_active_file = Some(Pages((active * 256.0) as u64));
                row.nr_inactive_file = Some(Pages(((600.0 - active) * 256.0) as u64));
            })
            .disk("sda", |second, row| {
                row.written = Some(Bytes((second * 1e6) as u64));
                row.writes = Some(Count((second * 20.0) as u64));
                row.io_time = Some(secs(second * 0.2));
            })
            .process("guest", 900, "/guest", |second, row| {
                row.rchar = Some(Bytes((second * 2.0 * MIB as f64) as u64));
                row.syscr = Some(Count((second * 128.0) as u64));
                row.read_bytes = Some(Bytes(0));
            });
        let change = Change::parse(&[change], None, None, None).unwrap();
        arithmetic::judge(&recording.window(), "a.flr", &change)
    }

    #[test]
    fn reads_that_may_be_of_a_small_part_leave_a_host_tight() {
        let read = |calls_in_a_second: f64, is_turning: bool| {
            let recording = Fixture::healthy()
                .facts(|facts| facts.devices.iter_mut().for_each(|one| one.rotational = Some(is_turning)))
                .cgroup("/catalogue", |_, row| {
                    row.memory_current = Some(Bytes(310 * MIB));
                    (row.inactive_file, row.active_file) = (Some(Bytes(0)), Some(Bytes(300 * MIB)));
                })
                .process("read", 900, "/catalogue", move |second, row| {
                    row.rchar = Some(Bytes((second * calls_in_a_second * 65_536.0) as u64));
                    row.syscr = Some(Count((second * calls_in_a_second) as u64));
                    row.read_bytes = Some(Bytes(0));
                });
            let change = Change::parse(&["cgroup/catalogue/memory.max=96M"], None, None, None).unwrap();
            arithmetic::judge(&recording.window(), "a.flr", &change)
        };
        // 60 reads in a second of 64 KiB do not read 300 MiB twice. Three of four would miss, 0.2 s in each second.
        let row = read(60.0, true);
        assert_eq!((row.verdict, row.cause), (Verdict::Tight, Cause::CacheTooSmall), "{row:?}");
        assert!(row.finding.contains("If the reads are random, about"), "{}", row.finding);
        assert!(row.finding.ends_with("at 5 ms a read, which is assumed."), "{}", row.finding);
        assert_ne!(read(20.0, true).cause, Cause::CacheTooSmall, "0.08 s in each second");
        assert_ne!(read(60.0, false).cause, Cause::CacheTooSmall, "a fast disk");
    }

    #[test]
    fn reads_are_spread_over_the_page_cache_while_its_active_part_grows() {
        // 376 MiB are left for 600 MiB: 37 % of 128 reads in a second take 10 ms each.
        let row = spread(300.0, "memory=500M");
        assert_eq!((row.verdict, row.cause), (Verdict::Suffers, Cause::CacheTooSmall), "{row:?}");
        assert!((4.0..6.0).contains(&row.severity), "{row:?}");
        assert!(row.finding.contains("600 MiB of page cache that is read at random"), "{}", row.finding);
        // What is read again stays within 60 MiB, which fit.
        assert_ne!(spread(2.0, "memory=500M").cause, Cause::CacheTooSmall);
        assert_ne!(spread(300.0, "memory=900M").cause, Cause::CacheTooSmall);
    }
}
