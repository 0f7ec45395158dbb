// SPDX-License-Identifier: MIT OR Apache-2.0
//! What shortens the queue before an fsync: smaller thresholds, and writeback throttling where the disk has room.

use super::{HAS_ROOM, Queue, is_always_full, is_outrun};
use crate::advise::{step, threshold};
use crate::diagnose::burst;
use crate::diagnose::derived::Derived;
use crate::report::Step;
use floodline_record::units::Nanos;

/// Returns the plan and what it trades.
pub(super) fn remedy(derived: &Derived<'_>, queue: &Queue<'_>) -> (Vec<Step>, String) {
    let outruns = is_always_full(derived, queue);
    let advice = threshold::choose(&threshold::Needs::of(derived, burst::speed(derived, &queue.device)))
        .filter(|advice| matches!(advice.pair, threshold::Pair::Bytes { .. }));
    // Where the disk is full either way, smaller batches change nothing.
    let is_known = advice.is_some();
    let advice = advice.filter(|_| !outruns);
    let lower = advice.as_ref().and_then(|advice| threshold::lowering(derived, advice));
    let mut plan: Vec<Step> = lower.iter().flat_map(|pair| derived.sysctls(&pair.changes())).collect();
    let is_off = queue.device.facts.and_then(|facts| facts.wbt_lat) == Some(Nanos(0));
    let has_room = queue.device.utilisation().is_some_and(|busy| busy < HAS_ROOM);
    if is_off && has_room {
        let name = queue.device.name.to_string();
        plan.extend(step::device_setting("/sys/block", &name, "queue/wbt_lat_usec", "0", "-1"));
    }
    let faster = match (outruns, plan.is_empty()) {
        (true, _) if is_outrun(derived, queue) => {
            "Programs dirty more than the disk writes. No setting cures that: the disk is full either way. Limit the writer \
             or give it another disk. "
        }
        (true, _) => {
            "The disk is full of writeback for most of the time, and smaller batches leave it as full. Limit the writer or \
             give it another disk. "
        }
        (false, true) if !is_known => {
            "No smaller threshold is known to fit: the disk's speed is not known, or a smaller threshold starves a cgroup. "
        }
        (false, true) => "No threshold helps: the one in force already starts the flusher early. ",
        (false, false) => "",
    };
    let smaller = match plan.iter().any(|step| step.write.starts_with("/proc/sys/vm/")) {
        true => "With smaller bursts, pages that change often are written more often. ",
        false => "",
    };
    let throttling = match is_off && !has_room {
        true => {
            "Writeback throttling of the disk is off (wbt_lat_usec = 0). On a disk this busy it would make writeback slower \
             and waits longer. "
        }
        false => "",
    };
    (
        plan,
        format!(
            "{faster}{smaller}{throttling}Another disk for synchronous data helps (Redis: dir of the append-only file; databases: \
             the log). A hard io.max for the writers is not advised: a capped writer that holds the filesystem's journal stops \
             the waiting programs as well."
        ),
    )
}
