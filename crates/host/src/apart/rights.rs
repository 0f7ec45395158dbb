// SPDX-License-Identifier: MIT OR Apache-2.0
//! The capabilities that each of the two processes keeps. Neither gains any that the program was not started with.

use rustix::io::Result;
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

/// Capabilities for loading and attaching BPF programs. `CAP_SYS_ADMIN` includes both of the others.
const LOADING: CapabilitySet = CapabilitySet::BPF.union(CapabilitySet::PERFMON).union(CapabilitySet::SYS_ADMIN);

/// Capabilities of the loader: also for the files of tracefs, and for locked memory on kernels before 5.11.
const OF_LOADER: CapabilitySet =
    LOADING.union(CapabilitySet::DAC_READ_SEARCH).union(CapabilitySet::IPC_LOCK).union(CapabilitySet::SYS_RESOURCE);

/// Capabilities of the observing process, which reads files of the host, writes the ring and answers scrapes.
const OF_OBSERVER: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::DAC_READ_SEARCH)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::IPC_LOCK)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::NET_BIND_SERVICE)
    .union(CapabilitySet::SYS_NICE)
    .union(CapabilitySet::SYS_PTRACE)
    .union(CapabilitySet::SYS_RESOURCE);

/// Returns whether this process has a capability that only the loader needs.
pub(super) fn may_load() -> bool {
    capabilities(None).is_ok_and(|sets| sets.effective.intersects(LOADING))
}

/// Drops the capabilities that the loader does not need.
pub(super) fn keep_those_of_loader() -> Result<()> {
    keep(OF_LOADER)
}

/// Drops the capabilities that the observing process does not need, for this thread and those that it starts later.
pub(super) fn keep_those_of_observer() -> Result<()> {
    keep(OF_OBSERVER)
}

fn keep(kept: CapabilitySet) -> Result<()> {
    let CapabilitySets { effective, permitted, inheritable } = capabilities(None)?;
    let sets = CapabilitySets {
        effective: effective.intersection(kept),
        permitted: permitted.intersection(kept),
        inheritable: inheritable.intersection(kept),
    };
    set_capabilities(None, sets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_observer_keeps_none_of_what_loads_programs() {
        assert_eq!(OF_OBSERVER.intersection(LOADING), CapabilitySet::empty());
        assert_eq!(OF_LOADER.intersection(CapabilitySet::SYS_PTRACE), CapabilitySet::empty());
    }

    #[test]
    fn what_is_given_up_is_gone() {
        // Capabilities belong to a thread: the other tests keep theirs.
        let after = std::thread::spawn(|| keep_those_of_observer().map(|()| may_load())).join().unwrap();
        assert_eq!(after, Ok(false));
    }
}
