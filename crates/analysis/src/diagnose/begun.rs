// SPDX-License-Identifier: MIT OR Apache-2.0
//! A sync that had begun before the first sample: its program wrote a file, and waits for these data from the first sample on. It
//! dirties nothing within the window, so only what it dirtied since its start shows whose data the disk writes.

use super::derived::Derived;
use super::device::Device;
use super::dirty;
use floodline_record::id::{Entity, EntityId};
use floodline_record::sample::ProcessRow;
use floodline_record::units::{Bytes, Nanos};
use floodline_record::window::Span;

/// Part of what is unwritten at first that a process must have dirtied since its start, and part of what the disk writes that must be
/// unwritten at first.
const MOSTLY: f64 = 0.5;
/// Age of a process up to which it dirtied lately what it dirtied at all: these come before older ones.
const YOUNG: Nanos = Nanos(600_000_000_000);
/// The same for an older one, as a multiple of what is unwritten: it did little else.
const LITTLE_ELSE: f64 = 8.0;
/// Fewest unwritten bytes that are worth a wait.
const LEAST: u64 = 8 << 20;
/// Most bytes that it may read meanwhile, such as metadata for where its data go. A task that reads more may wait for its reads.
const READ_MAX: u64 = 64 << 10;
/// Samples from the first on of which one must show it asleep.
const FIRST_SAMPLES: usize = 2;

/// Returns the process that waits for its own data from before the window on; `None` if there is none, or if it may be one of several.
pub(super) fn since_before(derived: &Derived<'_>, device: &Device<'_>) -> Option<u32> {
    let window = derived.window;
    let first = window.first_at?.monotonic;
    let unwritten = unwritten_at_first(derived, device)?;
    let written = device.span.growth.written?.0;
    if unwritten < LEAST || (unwritten as f64) < MOSTLY * written as f64 {
        return None;
    }
    let much = |(id, span): (&EntityId, &Span<ProcessRow>)| {
        let Some(Entity::Process { start_ticks, kthread: false, .. }) = window.entities.get(id) else { return None };
        let dirtied = span.first.write_bytes.filter(|_| span.first_at == first).map_or(0, |bytes| bytes.0) as f64;
        let is_young = first.0.saturating_sub(start_ticks.saturating_mul(10_000_000)) <= YOUNG.0;
        let is_much = dirtied >= MOSTLY * unwritten as f64;
        (is_much && (is_young || dirtied <= LITTLE_ELSE * unwritten as f64)).then_some((is_young, *id))
    };
    let all: Vec<(bool, EntityId)> = window.processes.iter().filter_map(much).collect();
    let is_any_young = all.iter().any(|(is_young, _)| *is_young);
    let mut owners = all.iter().filter(|(is_young, _)| *is_young == is_any_young).map(|(_, id)| id);
    let id = owners.next().filter(|_| owners.next().is_none())?;
    let span = window.processes.get(id)?;
    let early = window.host_series.get(..FIRST_SAMPLES)?.last()?.0.monotonic;
    let slept = window.asleep.get(id).and_then(|times| times.first()).is_some_and(|at| *at <= early);
    let has_dirtied_none = span.growth.write_bytes == Some(Bytes(0));
    let reads_little = span.growth.read_bytes.is_none_or(|bytes| bytes.0 <= READ_MAX);
    match window.entities.get(id) {
        Some(Entity::Process { pid, .. }) if slept && has_dirtied_none && reads_little => Some(*pid),
        _ => None,
    }
}

/// Bytes that are unwritten for a disk, or for what is built on it, in the first sample: those of its backing devices, and those that no
/// backing device counts. `None` where the backing devices were not read.
fn unwritten_at_first(derived: &Derived<'_>, device: &Device<'_>) -> Option<u64> {
    let of = |one: &Device<'_>| {
        let (_, first) = one.bdi_series()?.first()?;
        Some(first.reclaimable?.0.saturating_add(first.writeback?.0))
    };
    let is_its = |one: &&Device<'_>| one.id == device.id || one.stands_on(device) || device.stands_on(one);
    let own: u64 = derived.drains().iter().filter(is_its).map(of).sum::<Option<u64>>()?;
    let all: u64 = derived.drains().iter().filter_map(of).sum();
    let machine = dirty::unwritten_of(derived.window, &derived.window.host.first)?.0;
    Some(own.saturating_add(machine.saturating_sub(all)))
}

#[cfg(test)]
mod tests {
    use crate::diagnose::derived::Derived;
    use crate::diagnose::waiting;
    use floodline_record::id::Entity;
    use floodline_record::units::{Bytes, Count};
    use floodline_testkit::{Fixture, UPTIME, mib, mib_pages, secs};

    /// A disk that writes 60 MiB in 30 s, of 80 MiB that are unwritten at first. `flash` sleeps from the first sample on and dirties
    /// `dirties` bytes a second. It dirtied `dirtied` MiB before and started `age_s` ago.
    fn flashed(dirtied: f64, dirties: f64, age_s: f64) -> Vec<String> {
        flashed_and_read(dirtied, dirties, age_s, 0.0)
    }

    /// The same, and `flash` reads `reads` bytes a second.
    fn flashed_and_read(dirtied: f64, dirties: f64, age_s: f64, reads: f64) -> Vec<String> {
        let asleep = |row: &mut floodline_record::sample::ProcessRow| row.state = Some(Count(u64::from(b'D')));
        let host = Fixture::healthy()
            .host(|t, row| {
                row.nr_dirty = Some(mib_pages((80.0 - 2.0 * t).max(0.0)));
                row.psi_io_some = Some(secs(900.0 + t));
            })
            .bdi("8:0", |t, row| {
                row.reclaimable = Some(Bytes(mib((80.0 - 2.0 * t).max(0.0))));
                row.writeback = Some(Bytes(0));
            })
            .disk("sda", move |t, row| {
                row.written = Some(Bytes(mib(2.0 * t)));
                row.read = Some(Bytes((reads * t) as u64));
                row.io_time = Some(secs(600.0 + t));
            })
            .process("flash", 900, "/", move |t, row| {
                asleep(row);
                row.write_bytes = Some(Bytes(mib(dirtied) + (dirties * t) as u64));
                row.read_bytes = Some(Bytes((reads * t) as u64));
            })
            .process("till", 901, "/", move |t, row| {
                asleep(row);
                row.write_bytes = Some(Bytes(mib(900.0) + (1e3 * t) as u64));
            })
            .seconds(30);
        let mut window = host.window();
        for (wanted, age_s) in [(900, age_s), (901, 40_000.0)] {
            let is_it = |entity: &&Entity| matches!(entity, Entity::Process { pid, .. } if *pid == wanted);
            let id = *window.entities.iter().find(|(_, entity)| is_it(entity)).expect("it is there").0;
            let Some(Entity::Process { pid, comm, cgroup, kthread, .. }) = window.entities.get(&id).cloned() else {
                panic!("a process")
            };
            let start_ticks = (100.0 * (UPTIME - age_s)) as u64;
            window.entities.insert(id, Entity::Process { pid, start_ticks, comm, cgroup, kthread });
        }
        let derived = Derived::of(&window);
        let disk = derived.disks().iter().find(|disk| disk.name.as_bytes() == b"sda").expect("sda");
        let others = waiting::others_on(&derived, disk, |_| false).expect("states show it");
        others.iter().map(|waiter| waiter.comm.to_string()).collect()
    }

    #[test]
    fn a_sync_that_had_begun_waits_for_its_own_data() {
        assert_eq!(flashed(200.0, 0.0, 20.0), ["till"]);
        let both = ["flash", "till"];
        assert_eq!(flashed(20.0, 0.0, 20.0), both, "most of the data are of another program");
        assert_eq!(flashed(200.0, 1e5, 20.0), both, "it goes on writing");
        assert_eq!(flashed(2000.0, 0.0, 40_000.0), both, "it wrote other data before");
        assert_eq!(flashed(200.0, 0.0, 40_000.0), both, "it may be one of several");
        assert_eq!(flashed_and_read(200.0, 0.0, 20.0, 1e3), ["till"], "it reads a few blocks");
        assert_eq!(flashed_and_read(200.0, 0.0, 20.0, 1e6), both, "it may wait for its reads");
    }
}
