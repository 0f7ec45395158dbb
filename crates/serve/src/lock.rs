// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keeps this program's memory, its code included, from being given away: on a machine whose root disk hangs, a page that
//! has to be read back hangs too.

use rustix::mm::{MlockAllFlags, mlockall};
use rustix::process::{Resource, getrlimit};

/// Bit of CAP_IPC_LOCK.
const CAP_IPC_LOCK: u64 = 14;

/// What is allocated later is locked as it is touched.
const LATER: MlockAllFlags = MlockAllFlags::CURRENT.union(MlockAllFlags::FUTURE).union(MlockAllFlags::ONFAULT);

/// Reads all of the program into memory and locks it there; what is allocated later is locked as it is touched. Called before
/// threads start: their stacks would be taken as a whole. The reason where it cannot.
pub fn lock_memory() -> Result<(), String> {
    // Code that first runs in a storm, such as that of an incident, would otherwise be read from the disk that has it.
    lock(&[MlockAllFlags::CURRENT, LATER])
}

/// Locks what this process touches, for one that runs beside another that holds all of the program in memory. The reason where it
/// cannot.
pub fn lock_touched_memory() -> Result<(), String> {
    lock(&[LATER])
}

fn lock(steps: &[MlockAllFlags]) -> Result<(), String> {
    let is_unlimited = getrlimit(Resource::Memlock).current.is_none();
    if !is_unlimited && !has_capability(CAP_IPC_LOCK) {
        // With a limit, locking what comes later would make later allocations fail.
        return Err("memory is not locked (needs LimitMEMLOCK=infinity or CAP_IPC_LOCK)".to_owned());
    }
    let locked = steps.iter().try_for_each(|flags| mlockall(*flags));
    locked.map_err(|error| format!("memory is not locked: {error}"))
}

fn has_capability(number: u64) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = effective.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).unwrap_or(0);
    bits >> number & 1 == 1
}
