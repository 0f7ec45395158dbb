// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes of Linux 3.x that matter for later kernels.

use crate::change::{Area, Change, Weight, commit};
use floodline_record::version::Series;

pub(super) const CHANGES: &[Change] = &[
    Change {
        id: "workqueue-flushers",
        area: Area::Flusher,
        since: Series(3, 10),
        is_since_sure: true,
        commits: &[commit(
            "839a8e8660b6",
            "writeback: replace custom worker pool implementation with unbound workqueue",
        )],
        backports: &[],
        follows: None,
        weight: Weight::Detail,
        before: "Each bdi has a flusher thread named flush-MAJOR:MINOR.",
        after: "Flushers are kworkers of the workqueue writeback.",
        means: "Look for kworkers named flush-MAJOR:MINOR, and set their CPUs in \
                /sys/devices/virtual/workqueue/writeback.",
        set: None,
    },
    Change {
        id: "strictlimit",
        area: Area::Throttling,
        since: Series(3, 12),
        is_since_sure: true,
        commits: &[commit("5a53748568f7", "mm/page-writeback.c: add strictlimit feature")],
        backports: &[],
        follows: None,
        weight: Weight::Detail,
        before: "A bdi is held to its share only when the machine is near its global limit.",
        after: "A strictlimit bdi, as FUSE makes them, is held to its own share at any time.",
        means: "A slow FUSE filesystem can no longer fill the global budget.",
        set: Some(|kernel| kernel.arithmetic.strictlimit_nearly_empty = true),
    },
];
