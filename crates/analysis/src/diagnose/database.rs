// SPDX-License-Identifier: MIT OR Apache-2.0
//! Databases that wait for I/O caused by others. Recognised by their process names, and judged by the pressure of their
//! cgroup. Does not cover what they wait for.

use super::cgroup;
use super::derived::Derived;
use super::writer::{Writer, Writers};
use floodline_record::id::{Entity, EntityId};
use floodline_record::programs::DATABASES;

/// Share of the window with a task of its cgroup waiting for I/O from which a database is hurt.
pub const HURTS: f64 = 0.1;
/// Part of the dirtying done by a cgroup's own processes from which the cgroup waits for itself.
const OWN_FAULT: f64 = 0.5;

/// A database that waits for I/O.
#[derive(Clone, Debug, PartialEq)]
pub struct Database {
    /// Its process, as named in a sentence.
    pub label: String,
    /// Where it runs.
    pub cgroup: EntityId,
    /// Share of the window in which a task of its cgroup waited for I/O.
    pub pressure: f64,
}

/// Returns databases whose cgroup waited for I/O, the longest first, without those that wait for their own writing.
pub fn waiting(derived: &Derived<'_>) -> Vec<Database> {
    let writers = derived.writers();
    let total = writers.attributed_bytes().max(1) as f64;
    let own = |cgroup: EntityId| {
        let of = writers.processes.iter().filter(|writer| writer.cgroup == Some(cgroup));
        of.filter_map(|writer| writer.dirtied_bytes).fold(0, u64::saturating_add) as f64 / total
    };
    let mut databases: Vec<Database> = derived
        .window
        .processes
        .keys()
        .filter_map(|id| match derived.window.entities.get(id) {
            Some(entity @ Entity::Process { comm, cgroup: Some(cgroup), .. })
                if DATABASES.contains(&comm.as_bytes()) =>
            {
                let pressure = cgroup::io_pressure_some(derived.window.cgroups.get(cgroup)?)?;
                Some(Database { label: entity.label(), cgroup: *cgroup, pressure })
            }
            _ => None,
        })
        .filter(|database| database.pressure >= HURTS && own(database.cgroup) < OWN_FAULT)
        .collect();
    databases.sort_by(|one, other| other.pressure.total_cmp(&one.pressure));
    databases.dedup_by_key(|database| database.cgroup);
    databases
}

/// Whether a database that is not meant wrote in the window while nothing shows the waits of its threads: without a trace,
/// the kernel shows those of a program's first thread only, and databases sync in others.
pub fn may_wait_unseen(derived: &Derived<'_>, writers: &Writers<'_>, is_meant: impl Fn(&Writer<'_>) -> bool) -> bool {
    let wrote = |writer: &&Writer<'_>| {
        DATABASES.contains(&writer.comm.as_bytes()) && writer.dirtied_bytes.is_some_and(|bytes| bytes > 0)
    };
    !derived.window.traced.contains("bytes") && writers.processes.iter().filter(wrote).any(|writer| !is_meant(writer))
}
