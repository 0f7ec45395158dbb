// SPDX-License-Identifier: MIT OR Apache-2.0
//! Child I/O inside the counters of a process: the kernel adds a child's counters to its parent's when the parent waits
//! for it, so shells, init and container shims seem to write their children's data. Amounts that ended children had
//! shown themselves are subtracted again. The rest is attributed to the process or to unseen children, whichever is
//! likelier. Mirrors `wait_task_zombie` (kernel/exit.c), which adds CPU time, faults and I/O in one place.

use super::dirty::page_size;
use super::writer::{DOMINANT_LEAST, Period, counted};
use floodline_record::id::{Entity, EntityId};
use floodline_record::sample::ProcessRow;
use floodline_record::units::{Count, Nanos};
use floodline_record::window::{Span, Window};
use std::collections::BTreeMap;

/// Smallest CPU time at which two amounts can be compared: the kernel prints ticks of 10 ms.
const TICKS: Nanos = Nanos(20_000_000);
/// Bytes per second that no CPU exceeds when writing into the page cache.
const FASTEST_STORE: f64 = 8e9;
/// Most generations searched for an heir: processes of a recording may name each other as parents.
const GENERATIONS: usize = 32;

/// Amounts that a process inherited within the period.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Inheritance {
    /// Bytes dirtied by ended children that samples saw: they are counted there.
    pub dirtied_bytes: u64,
    /// Bytes those children handed to write calls.
    pub application_bytes: u64,
    /// Write calls of those children.
    pub write_calls: u64,
    /// Dirty bytes those children dropped before they were written.
    pub cancelled_bytes: u64,
    /// Bytes those children read from disks.
    pub read_bytes: u64,
    /// Whether children that no sample saw likely did most of the rest.
    pub rest_is_childrens: bool,
    /// CPU seconds of reaped children, and of the process itself; `None` in recordings without them.
    pub cpu_s: Option<(f64, f64)>,
}

/// Returns the amounts that each process inherited. Processes that inherited nothing are left out.
pub fn inheritances(window: &Window, period: Period) -> BTreeMap<EntityId, Inheritance> {
    let mut children: BTreeMap<EntityId, Vec<&Span<ProcessRow>>> = BTreeMap::new();
    if period == Period::Window {
        let ended = ended(window);
        if !ended.is_empty() {
            let by_pid = by_pid(window);
            for (id, span) in ended {
                let heir = match span.last.ppid {
                    Some(_) => heir(window, &by_pid, id, span),
                    None => likely_heir(window, id, span),
                };
                if let Some(heir) = heir {
                    children.entry(heir).or_default().push(span);
                }
            }
        }
    }
    let host = if period == Period::Window { &window.host.growth } else { &window.host.last };
    let cached = host.nr_dirtied.map(|pages| pages.bytes(page_size(window)).0);
    let inherited = |(id, span): (&EntityId, &Span<ProcessRow>)| {
        let row = counted(window, period, *id, span)?;
        let left = children.get(id).map(Vec::as_slice).unwrap_or_default();
        Some((*id, inheritance(row, left, cached)?))
    };
    window.processes.iter().filter_map(inherited).collect()
}

/// Processes missing from the last sample.
fn ended(window: &Window) -> Vec<(EntityId, &Span<ProcessRow>)> {
    let Some(last) = window.last_at else { return Vec::new() };
    window.processes.iter().filter(|(_, span)| span.last_at < last.monotonic).map(|(id, span)| (*id, span)).collect()
}

/// Processes by pid. Where a pid was used twice, the one seen last.
fn by_pid(window: &Window) -> BTreeMap<u32, (EntityId, &Span<ProcessRow>)> {
    let mut by_pid: BTreeMap<u32, (EntityId, &Span<ProcessRow>)> = BTreeMap::new();
    for (id, span) in &window.processes {
        if let Some(Entity::Process { pid, .. }) = window.entities.get(id) {
            let known = by_pid.entry(*pid).or_insert((*id, span));
            if span.last_at > known.1.last_at {
                *known = (*id, span);
            }
        }
    }
    by_pid
}

/// The nearest ancestor that was seen after a process had ended. An ancestor that ended in between passed on its
/// inherited amounts.
fn heir(
    window: &Window,
    by_pid: &BTreeMap<u32, (EntityId, &Span<ProcessRow>)>,
    id: EntityId,
    ended: &Span<ProcessRow>,
) -> Option<EntityId> {
    let mut at = (id, ended);
    for _ in 0..GENERATIONS {
        let parent = u32::try_from(at.1.last.ppid?.0).ok()?;
        at = *by_pid.get(&parent).filter(|(id, _)| window.entities.contains_key(id))?;
        if at.1.last_at > ended.last_at {
            return Some(at.0);
        }
    }
    None
}

/// The likely heir in a recording without parents: the process whose counters grew by the last readings of the ended
/// one, or little more. Considers only amounts that no two processes share by chance.
fn likely_heir(window: &Window, id: EntityId, ended: &Span<ProcessRow>) -> Option<EntityId> {
    let had = ended.last.write_bytes.filter(|bytes| bytes.0 >= DOMINANT_LEAST)?.0;
    let most = had.saturating_add(had / 8);
    let fits = |other: &Span<ProcessRow>| {
        let grown = other.growth.write_bytes?.0;
        (other.last_at > ended.last_at && (had..=most).contains(&grown)).then_some(grown)
    };
    let others = window.processes.iter().filter(|(other, _)| **other != id);
    others.filter_map(|(other, span)| Some((fits(span)?, *other))).min().map(|(_, other)| other)
}

/// `row` holds the amounts counted for a process, `cached` the bytes that the machine dirtied in its page cache. `None`: all of them are
/// its own.
fn inheritance(row: &ProcessRow, left: &[&Span<ProcessRow>], cached: Option<u64>) -> Option<Inheritance> {
    let dirtied = row.write_bytes?.0;
    if row.cminflt == Some(Count(0)) {
        return None;
    }
    let mut inherited = Inheritance::default();
    for child in left {
        let had = child.last.write_bytes.map_or(0, |bytes| bytes.0);
        // A child that was not reaped yet is not in the counters.
        if inherited.dirtied_bytes.saturating_add(had) <= dirtied {
            inherited.dirtied_bytes += had;
            inherited.application_bytes += child.last.wchar.map_or(0, |bytes| bytes.0);
            inherited.write_calls += child.last.syscw.map_or(0, |calls| calls.0);
            inherited.cancelled_bytes += child.last.cancelled_write_bytes.map_or(0, |bytes| bytes.0);
            inherited.read_bytes =
                inherited.read_bytes.saturating_add(child.last.read_bytes.map_or(0, |bytes| bytes.0));
        }
    }
    let rest = dirtied - inherited.dirtied_bytes;
    let own = Nanos(row.utime.unwrap_or_default().0.saturating_add(row.stime.unwrap_or_default().0));
    let childrens = row.children_time;
    inherited.cpu_s = childrens.map(|childrens| (childrens.as_secs_f64(), own.as_secs_f64()));
    let has_cpu = row.utime.is_some() && row.stime.is_some();
    inherited.rest_is_childrens = match (row.cminflt, childrens) {
        // The process did reap children: the busier of the two has likely written.
        (Some(faults), Some(time)) if time < TICKS && own < TICKS => Some(faults) > row.minflt,
        (Some(_), Some(time)) => time > own,
        // An older recording: the process cannot have copied more into the page cache than its own CPU time allows. A store
        // dirties a whole folio, and direct I/O copies nothing: neither needs that time.
        _ => {
            let called = row.wchar.map(|bytes| bytes.0.saturating_sub(inherited.application_bytes));
            let copied = rest.min(called.unwrap_or(0)).min(cached.unwrap_or(0));
            has_cpu && copied as f64 > FASTEST_STORE * (own.as_secs_f64() + TICKS.as_secs_f64())
        }
    };
    (inherited.rest_is_childrens || inherited.dirtied_bytes > 0 || row.cminflt.is_some()).then_some(inherited)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::writer::writers;
    use floodline_record::units::Bytes;
    use floodline_testkit::{Fixture, grows, mib, mib_pages, secs};

    /// Processes and their dirtied MiB, most first; only those with at least one MiB.
    fn check(fixture: &Fixture, expect: &str) {
        let window = fixture.window();
        let writers = writers(&window);
        let shown: Vec<String> = writers
            .processes
            .iter()
            .filter(|writer| writer.dirtied_bytes >= Some(mib(1.0)))
            .map(|writer| format!("{} {}", writer.label(), writer.dirtied_bytes.unwrap_or(0) / mib(1.0)))
            .collect();
        assert_eq!(shown.join(", "), expect);
    }

    /// A shell: its counters from second 8 on, and the faults and CPU time of it and its children meanwhile.
    fn shell(inherits_mib: f64, faults: u64, children_s: f64, own_s: f64) -> Fixture {
        Fixture::healthy().process("bash", 600, "/user.slice", move |t, row| {
            let waited = if t >= 8.0 { 1.0 } else { 0.0 };
            row.write_bytes = Some(Bytes(mib(inherits_mib * waited)));
            row.cminflt = Some(Count((faults as f64 * waited) as u64));
            row.children_time = Some(secs(children_s * waited));
            row.stime = Some(secs(2.0 + own_s * waited));
        })
    }

    /// A child of a process: it has already written 300 MiB when the recording begins, writes 50 more each second and
    /// is last seen at second 7.
    fn dd(fixture: Fixture, pid: u32, parent: u32) -> Fixture {
        fixture.process("dd", pid, "/user.slice", move |t, row| {
            row.write_bytes = grows(t, mib(300.0), 50.0 * 1_048_576.0);
            row.ppid = Some(Count(parent.into()));
            if t > 7.0 {
                *row = ProcessRow::default();
            }
        })
    }

    #[test]
    fn what_an_ended_child_was_seen_with_is_its_own() {
        // 350 in the window; the parent gets all 680, of which 30 were never seen.
        check(&dd(shell(680.0, 400, 3.0, 0.01), 601, 600), "dd[601] 350, children of bash[600] 30");
        // Not reaped yet: nothing to subtract, and all the shell wrote is its own.
        check(&dd(shell(5.0, 0, 0.0, 0.01), 601, 600), "dd[601] 350, bash[600] 5");
    }

    #[test]
    fn children_that_came_and_went_unseen_are_told_by_their_cpu_time() {
        check(&shell(500.0, 9_000, 2.0, 0.05), "children of bash[600] 500");
        check(&shell(500.0, 9_000, 0.05, 2.0), "bash[600] 500");
        check(&shell(500.0, 0, 0.0, 0.0), "bash[600] 500");
        // All too short for a tick: by their faults.
        check(&shell(2.0, 900, 0.0, 0.0), "children of bash[600] 2");
    }

    #[test]
    fn a_parent_that_ends_with_its_child_hands_it_on() {
        let gone = |t: f64, row: &mut ProcessRow| {
            row.ppid = Some(Count(600));
            if t > 7.0 {
                *row = ProcessRow::default();
            }
        };
        let fixture = shell(680.0, 400, 3.0, 0.01).process("sudo", 602, "/user.slice", gone);
        check(&dd(fixture, 601, 602), "dd[601] 350, children of bash[600] 28");
    }

    #[test]
    fn processes_that_name_each_other_as_parents_do_not_hang() {
        let gone = |parent: u64| {
            move |t: f64, row: &mut ProcessRow| {
                row.ppid = Some(Count(parent));
                if t > 7.0 {
                    *row = ProcessRow::default();
                }
            }
        };
        let fixture = Fixture::healthy().process("a", 700, "/", gone(701)).process("b", 701, "/", gone(700));
        check(&fixture, "");
    }

    #[test]
    fn in_an_older_recording_an_heir_is_told_by_the_amount() {
        let old = |inherits: f64| {
            dd(shell(inherits, 0, 0.0, 2.0), 601, 600)
                .process("bash", 600, "/user.slice", |_, row| {
                    (row.cminflt, row.children_time, row.ppid) = (None, None, None);
                })
                .process("dd", 601, "/user.slice", |_, row| row.ppid = None)
        };
        check(&old(680.0), "dd[601] 350, bash[600] 30");
        // Less than the child had: its own. Much more: unknown.
        check(&old(500.0), "bash[600] 500, dd[601] 350");
        check(&old(900.0), "bash[600] 900, dd[601] 350");
    }

    #[test]
    fn in_an_older_recording_only_the_impossible_is_not_the_parents_own() {
        let old = |mib: f64| {
            shell(mib, 0, 0.0, 0.01).process("bash", 600, "/user.slice", |_, row| {
                (row.cminflt, row.children_time, row.ppid) = (None, None, None);
            })
        };
        let mib_of = mib;
        let copied = |mib: f64, wchar_mib: f64, cached_mib: f64| {
            old(mib)
                .process("bash", 600, "/user.slice", move |t, row| {
                    row.wchar = Some(Bytes(if t >= 8.0 { mib_of(wchar_mib) } else { 0 }));
                })
                .host(move |t, row| row.nr_dirtied = Some(mib_pages(if t >= 8.0 { cached_mib } else { 0.0 })))
        };
        check(&copied(100.0, 100.0, 100.0), "bash[600] 100");
        check(&copied(9_000.0, 9_000.0, 9_000.0), "children of bash[600] 9000");
        // Large folios count whole for each small write or store, and direct I/O copies nothing.
        check(&copied(9_000.0, 8.0, 9_000.0), "bash[600] 9000");
        check(&old(9_000.0), "bash[600] 9000");
        check(&copied(9_000.0, 9_000.0, 1.0), "bash[600] 9000");
    }
}
