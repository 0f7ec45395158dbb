// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bytes that processes handed to write calls, each once. The kernel adds the counters of a child to those of the
//! parent that waits for it. Bytes that an ended child had shown itself are subtracted from its parent
//! ([`crate::diagnose::heirs`]). Bytes of children in no sample stay in the machine's sum, and are shown for no
//! process.

use crate::diagnose::writer::{Period, writers};
use floodline_record::traced::Who;
use floodline_record::units::Nanos;
use floodline_record::window::Window;
use std::collections::BTreeMap;

/// Bytes that the processes of a window wrote.
#[derive(Clone, Debug, Default)]
pub(super) struct Applications {
    of_pid: BTreeMap<u32, Application>,
    /// Sum of all processes.
    pub(super) written: u64,
    /// Dirty bytes that were dropped before they were written.
    pub(super) cancelled: u64,
}

/// Bytes that the processes of one pid wrote.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Application {
    /// Bytes; `None` where most of them are likely those of children that were in no sample.
    pub(super) bytes: Option<u64>,
    /// Whether the process existed until the last sample. The last bytes of a process that ended earlier are not known.
    pub(super) is_whole: bool,
}

impl Applications {
    pub(super) fn of(window: &Window) -> Applications {
        let mut all = Applications::default();
        let writers = writers(window);
        if writers.period != Period::Window {
            return all;
        }
        let end = window.last_at.map_or(Nanos(0), |last| last.monotonic);
        for writer in &writers.processes {
            let written = writer.application_bytes.unwrap_or(0);
            all.written = all.written.saturating_add(written);
            all.cancelled = all.cancelled.saturating_add(writer.cancelled_bytes.unwrap_or(0));
            let own = writer.application_bytes.filter(|_| !writer.is_by_children());
            let is_whole = writer.span.last_at >= end;
            all.of_pid
                .entry(writer.pid)
                .and_modify(|one| {
                    let both = one.bytes.zip(own).map(|(one, other)| one.saturating_add(other));
                    *one = Application { bytes: both, is_whole: one.is_whole && is_whole };
                })
                .or_insert(Application { bytes: own, is_whole });
        }
        all
    }

    /// Bytes that a process wrote while it was seen; `None` bytes where no sample has them.
    pub(super) fn by(&self, who: &Who) -> Application {
        self.of_pid.get(&who.pid).copied().unwrap_or_default()
    }
}
