// SPDX-License-Identifier: MIT OR Apache-2.0
//! Time in waits for stable storage (fsync and its like), as rules see it: waits caused by a slow disk, not by dirty
//! throttling. From the events of a tracer.

use crate::ledger;
use crate::ledger::blame::Blame;
use crate::report::Evidence;
use floodline_record::human;
use floodline_record::id::DevId;
use floodline_record::record::What;
use floodline_record::traced::Who;
use floodline_record::traced::waits::Operation;
use floodline_record::units::Nanos;
use floodline_record::window::Window;
use std::collections::{BTreeMap, BTreeSet};

/// Source of the numbers, as evidence names it.
pub const SOURCE: &str = "trace of fsync, fdatasync, msync, sync, syncfs";

/// Share of its waits that a process' own data must need at the disk for the process to wait for these data.
const OWN_SHARE: f64 = 0.75;

/// Bytes queued during a wait below which it was not for them that the task waited.
const LITTLE_QUEUED: u64 = 1 << 20;

/// Waits, added up.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Waits {
    /// Number of waits.
    pub count: u64,
    /// Total time: tasks that wait at the same time count each.
    pub total: Nanos,
    /// The longest wait, with its task and its operation.
    pub longest: Option<(Nanos, Who, Operation)>,
}

/// Returns all waits that ended in the window; `None` when they were not traced. A sync inside another one, as of the
/// filesystem below an overlay, is part of the outer one.
pub fn waits(window: &Window) -> Option<Waits> {
    let mut waits = Waits::default();
    for event in &window.events {
        let What::Synced(synced) = &event.what else { continue };
        if synced.operation == Operation::SyncFilesystem {
            continue;
        }
        waits.count = waits.count.saturating_add(synced.count);
        waits.total = Nanos(waits.total.0.saturating_add(synced.total.0));
        if waits.longest.as_ref().is_none_or(|(longest, ..)| synced.longest > *longest) {
            waits.longest = Some((synced.longest, synced.who.clone(), synced.operation));
        }
    }
    window.traced.contains("bytes").then_some(waits)
}

impl Waits {
    /// The sum and the longest, as evidence.
    pub fn evidence(&self) -> Vec<Evidence> {
        let mut rows =
            vec![Evidence::seconds("Waited in fsync and its like, all tasks", self.total.as_secs_f64(), SOURCE)];
        rows.extend(self.longest.as_ref().map(|(longest, who, operation)| {
            let name = format!("Longest: {}[{}] in {}", who.comm, who.pid, operation.name());
            Evidence::seconds(name, longest.as_secs_f64(), SOURCE)
        }));
        rows
    }
}

/// A task that asked for data and queued a part of them itself, as a trace saw it in some stretch of time.
#[derive(Clone, Debug, PartialEq)]
pub struct Asker {
    /// `name[pid]`.
    pub process: String,
    /// Operation in which it waited.
    pub operation: Operation,
    /// Bytes of the stretch that it queued itself.
    pub bytes: f64,
}

/// Tasks that queued data of these filesystems themselves while they waited for them, between two moments: the flusher did not
/// write these data. The one with most bytes stands first.
pub fn askers(window: &Window, filesystems: &[DevId], from: Nanos, to: Nanos) -> Vec<Asker> {
    let mut sums: BTreeMap<(u32, Operation), Asker> = BTreeMap::new();
    for event in &window.events {
        let What::SlowSync(wait) = &event.what else { continue };
        let began = Nanos(event.at.0.saturating_sub(wait.lasted.0));
        let common = event.at.0.min(to.0).saturating_sub(began.0.max(from.0));
        if common == 0 || !wait.device.is_some_and(|device| filesystems.contains(&device)) {
            continue;
        }
        let process = format!("{}[{}]", wait.who.comm, wait.who.pid);
        let sum = sums.entry((wait.who.pid, wait.operation)).or_insert(Asker {
            process,
            operation: wait.operation,
            bytes: 0.0,
        });
        sum.bytes += wait.own.0 as f64 * common as f64 / wait.lasted.0 as f64;
    }
    let mut askers: Vec<Asker> = sums.into_values().filter(|asker| asker.bytes > 0.0).collect();
    askers.sort_by(|one, other| other.bytes.total_cmp(&one.bytes));
    askers
}

/// Processes whose waits for stable storage were mostly the time that a device of this speed needs for the bytes they queued
/// themselves on its filesystems: they wait for their own data, whichever program dirtied them before. A sync of everything does not
/// count.
pub fn for_own_data(window: &Window, filesystems: &[DevId], bytes_per_s: f64) -> BTreeSet<u32> {
    let mut sums: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
    for event in &window.events {
        let (pid, waited, own) = match &event.what {
            What::Synced(synced) if synced.operation != Operation::SyncFilesystem => {
                (synced.who.pid, synced.total.as_secs_f64(), 0.0)
            }
            What::SlowSync(wait)
                if wait.operation != Operation::SyncFilesystem
                    && wait.device.is_some_and(|device| filesystems.contains(&device)) =>
            {
                (wait.who.pid, 0.0, wait.own.0 as f64 / bytes_per_s.max(1.0))
            }
            _ => continue,
        };
        let sum = sums.entry(pid).or_default();
        (sum.0, sum.1) = (sum.0 + waited, sum.1 + own);
    }
    let is_for_own = |(waited, own): &(f64, f64)| *waited > 0.0 && *own >= OWN_SHARE * waited;
    sums.into_iter().filter(|(_, sums)| is_for_own(sums)).map(|(pid, _)| pid).collect()
}

/// The longest traced wait on these filesystems for one file while other files' data was queued, with the owner of that data:
/// of `first`, where it has one.
pub fn behind_others(window: &Window, filesystems: &[DevId], first: Option<u32>) -> Option<String> {
    let is_for_others = |wait: &&Blame| {
        let own = wait.file.as_ref().zip(wait.files.first()).is_some_and(|(own, most)| *own == most.name);
        let is_here = wait.device.is_some_and(|device| filesystems.contains(&device));
        wait.operation.is_of_file() && !own && is_here
    };
    // The longest stands first.
    let waits = ledger::waits(window)?;
    let its = waits.iter().filter(is_for_others).find(|wait| first == Some(wait.pid));
    let wait = its.or_else(|| waits.iter().find(is_for_others))?;
    let most = wait.files.first()?;
    let waited = format!(
        "{} waited {} in {} of {}",
        wait.process,
        human::seconds(Nanos(wait.lasted_ns).as_secs_f64()),
        wait.operation.name(),
        wait.file.as_deref().unwrap_or("a file"),
    );
    // The owners are those of whole intervals: next to nothing that was queued in the wait itself is not theirs.
    if let Some(bytes) = wait.queued_bytes.filter(|bytes| *bytes < LITTLE_QUEUED) {
        let little = human::bytes(bytes as f64);
        return Some(format!("{waited}. Only {little} of this filesystem were queued meanwhile."));
    }
    Some(format!(
        "{waited} while {} of {} were queued, {} of it {}.",
        wait.queued_bytes.map_or_else(|| "data".to_owned(), |bytes| human::bytes(bytes as f64)),
        wait.filesystem.as_deref().unwrap_or("all filesystems"),
        human::percent(most.share),
        most.name
    ))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use floodline_record::traced::File;
    use floodline_record::traced::waits::{SlowSync, Synced};
    use floodline_record::units::Bytes;
    use floodline_testkit::Fixture;

    /// Process, operation, count, milliseconds in all, longest, as a tracer records them.
    pub(crate) fn synced((pid, operation, count, ms, ms_max): (u32, Operation, u64, u64, u64)) -> What {
        What::Synced(Synced {
            since: Nanos(0),
            who: Who { pid, comm: "redis-server".into(), cgroup_ino: 1 },
            operation,
            count,
            total: Nanos::from_millis(ms),
            longest: Nanos::from_millis(ms_max),
        })
    }

    /// A tracer that records waits, and one long wait as it records it: process, operation, milliseconds, device.
    pub(crate) fn slow(
        (pid, operation, ms, device): (u32, Operation, u64, Option<DevId>),
    ) -> (&'static [&'static str], Vec<What>) {
        let lasted = Nanos::from_millis(ms);
        let who = Who { pid, comm: "redis-server".into(), cgroup_ino: 1 };
        let slow = SlowSync { who, tid: None, operation, lasted, device, file: None, queued: None, own: Bytes(0) };
        (&["throttle", "bytes"], vec![synced((pid, operation, 1, ms, ms)), What::SlowSync(slow)])
    }

    #[test]
    fn waits_are_added_up_and_the_longest_is_named() {
        let events = vec![
            synced((41, Operation::Fdatasync, 3, 600, 400)),
            synced((42, Operation::Fsync, 1, 900, 900)),
            synced((43, Operation::SyncFilesystem, 1, 5000, 5000)),
        ];
        let waits = waits(&Fixture::healthy().traced(&["bytes"], events).window()).unwrap();
        assert_eq!((waits.count, waits.total), (4, Nanos::from_millis(1500)));
        assert_eq!(waits.evidence()[1].name, "Longest: redis-server[42] in fsync");
    }

    /// A wait of `pid` on a device, for `file`, of which it queued `own` MiB itself.
    fn of_file(pid: u32, ms: u64, device: DevId, file: &str, own: u64) -> Vec<What> {
        let (_, mut events) = slow((pid, Operation::Fsync, ms, Some(device)));
        if let Some(What::SlowSync(wait)) = events.last_mut() {
            wait.file = Some(File { ino: u64::from(pid), generation: Some(0), path: Some(file.into()) });
            wait.own = Bytes(own << 20);
        }
        events
    }

    #[test]
    fn a_task_waits_for_its_own_data_where_the_disk_needs_that_time_for_them() {
        let (here, elsewhere) = (DevId { major: 8, minor: 0 }, DevId { major: 8, minor: 16 });
        let events = [
            of_file(41, 4000, here, "/a", 70),
            of_file(42, 4000, here, "/b", 30),
            of_file(43, 900, elsewhere, "/c", 80),
        ];
        let mut window = Fixture::healthy().traced(&["bytes", "throttle"], events.concat()).window();
        let own = |speed: f64| for_own_data(&window, &[here], speed * 1_048_576.0).into_iter().collect::<Vec<u32>>();
        assert_eq!((own(20.0), own(1000.0)), (vec![41], vec![]));
        window.events.iter_mut().for_each(|event| event.at = Nanos(10_000_000_000));
        // Half of each wait is in the stretch.
        let names = |to: u64| {
            let all = askers(&window, &[here], Nanos(0), Nanos(to));
            all.into_iter().map(|one| (one.process, one.bytes as u64 >> 20)).collect::<Vec<_>>()
        };
        let [one, other] = ["redis-server[41]".to_owned(), "redis-server[42]".to_owned()];
        assert_eq!(names(8_000_000_000), [(one, 35), (other, 15)]);
        assert_eq!(names(1_000_000_000), []);
    }

    #[test]
    fn the_wait_that_is_shown_is_on_this_disk_and_names_owners_of_what_was_queued_in_it() {
        use floodline_record::traced::bytes::{Class, Submitted};
        let (here, elsewhere) = (DevId { major: 8, minor: 0 }, DevId { major: 8, minor: 16 });
        let bulk = Submitted {
            since: Nanos(0),
            disk: here,
            class: Class::Data,
            device: Some(here),
            file: Some(File { ino: 7, generation: Some(0), path: Some("/bulk".into()) }),
            cgroup_ino: Some(1),
            who: None,
            bytes: Bytes(90 << 20),
            bios: 90,
        };
        let told = |queued: u64, first: Option<u32>| {
            let mut events = [of_file(41, 4000, here, "/a", 0), of_file(42, 3000, here, "/b", 0)].concat();
            events.extend(of_file(43, 9000, elsewhere, "/c", 0));
            events.push(What::Submitted(bulk.clone()));
            for event in &mut events {
                if let What::SlowSync(wait) = event {
                    wait.queued = Some(Bytes(queued));
                }
            }
            let mut window = Fixture::healthy().traced(&["bytes", "throttle"], events).window();
            window.events.iter_mut().for_each(|event| event.at = Nanos(10_000_000_000));
            behind_others(&window, &[here], first).unwrap()
        };
        assert!(
            told(80 << 20, None).starts_with("redis-server[41] waited 4.00 s in fsync of"),
            "{}",
            told(80 << 20, None)
        );
        assert!(told(80 << 20, None).contains("while 80.0 MiB of"), "{}", told(80 << 20, None));
        assert!(told(80 << 20, Some(42)).starts_with("redis-server[42] waited 3.00 s"));
        let little = told(4096, Some(42));
        assert!(little.ends_with("Only 4.00 KiB of this filesystem were queued meanwhile."), "{little}");
    }

    #[test]
    fn without_a_tracer_nothing_is_said_and_with_one_nothing_is_zero() {
        assert_eq!(waits(&Fixture::healthy().window()), None);
        assert_eq!(waits(&Fixture::healthy().traced(&["bytes"], vec![]).window()), Some(Waits::default()));
    }
}
