// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where journald keeps its files (`Storage=` of journald.conf).

use super::{Changed, Host, NotChanged};

/// Removes the tasks that stand for journald: a journal in memory writes nothing to a disk.
pub(super) fn journald(changed: &mut Changed, value: &str, host: Host<'_>) -> Result<(), NotChanged> {
    if !matches!(value, "volatile" | "none") {
        return Err(NotChanged::new(
            format!("journald/Storage={value}: a twin knows volatile and none"),
            "e.g. --set journald/Storage=volatile",
        ));
    }
    let tasks = &mut changed.scenario.workload.tasks;
    let before = tasks.len();
    tasks.retain(|name, _| !host.journald.contains(name));
    if tasks.len() == before {
        return Err(NotChanged::new(
            "journald/Storage: no journald wrote to a disk in this recording",
            "record while messages are logged: floodline record --for 1m -o host.flr",
        ));
    }
    if tasks.is_empty() {
        return Err(NotChanged::new(
            "journald/Storage: without journald nothing is written, so nothing is left to simulate",
            "record while other programs write: floodline record --for 1m -o host.flr",
        ));
    }
    Ok(())
}
