// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is shown of a guest while it runs: what it does and for how long, the clock of its workload, and how
//! much is dirty and under writeback.

use floodline_lab::job::Status;
use floodline_lab::run::Order;
use floodline_record::human;
use floodline_record::units::{Bytes, Nanos};
use std::time::{Duration, Instant};

/// What is shown of a guest while it runs.
pub(super) struct Live {
    name: String,
    stage: String,
    since: Instant,
    /// How long the workload takes, where that is known.
    length: Option<Nanos>,
    started: Option<Instant>,
    levels: Option<(Bytes, Bytes)>,
}

impl Live {
    pub(super) fn of(order: &Order<'_>) -> Live {
        let name = format!("{} ({}) on {}", order.scenario.name, order.variant, order.kernel.version);
        Live { length: order.scenario.workload.duration.map(|length| Nanos(length.nanos())), ..Live::named(name) }
    }

    pub(super) fn named(name: String) -> Live {
        let stage = "starting the guest".to_owned();
        Live { name, stage, since: Instant::now(), length: None, started: None, levels: None }
    }

    pub(super) fn take(&mut self, status: &Status) {
        let stage = match status {
            Status::Booted { release } => format!("booted {release}"),
            Status::Stage { stage } => stage.clone(),
            Status::Started => {
                self.started = Some(Instant::now());
                "running the workload".to_owned()
            }
            Status::Alive { dirty: Some(dirty), writeback: Some(writeback), .. } => {
                self.levels = Some((*dirty, *writeback));
                return;
            }
            _ => return,
        };
        (self.stage, self.since) = (stage, Instant::now());
    }

    /// What the guest does now.
    pub(super) fn stage(&self) -> &str {
        &self.stage
    }

    /// For a line of progress.
    pub(super) fn line(&self) -> String {
        let doing = match self.started {
            Some(started) => clock(started.elapsed(), self.length),
            None => format!("{} for {} s", self.stage, self.since.elapsed().as_secs()),
        };
        let of = |bytes: Bytes| human::bytes(bytes.0 as f64);
        let levels = self.levels.map(|(dirty, back)| format!("  dirty {}  writeback {}", of(dirty), of(back)));
        format!("{}: {doing}{}", self.name, levels.unwrap_or_default())
    }
}

/// Seconds of the workload, and of how many; past its end it is still ending.
fn clock(passed: Duration, length: Option<Nanos>) -> String {
    let passed = passed.as_secs();
    match length.map(|length| Duration::from_nanos(length.0).as_secs_f64().ceil() as u64) {
        None => format!("{passed} s"),
        Some(length) if passed <= length => format!("{passed}/{length} s"),
        Some(length) => format!("{length}/{length} s, ending for {} s", passed - length),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_of_a_workload_says_how_far_it_is() {
        let check = |passed: u64, length: Option<u64>, expect: &str| {
            let length = length.map(|millis| Nanos(millis * 1_000_000));
            assert_eq!(clock(Duration::from_secs(passed), length), expect);
        };
        check(12, Some(30_000), "12/30 s");
        check(2, Some(1500), "2/2 s");
        check(33, Some(30_000), "30/30 s, ending for 3 s");
        check(12, None, "12 s");
    }

    #[test]
    fn a_line_of_progress_has_the_clock_and_what_is_dirty() {
        let mut live = Live::named("s (v) on 6.12".to_owned());
        assert_eq!(live.line(), "s (v) on 6.12: starting the guest for 0 s");
        live.take(&Status::Started);
        live.take(&Status::Alive { uptime: Nanos(1), dirty: Some(Bytes(41 << 20)), writeback: Some(Bytes(0)) });
        assert_eq!(live.line(), "s (v) on 6.12: 0 s  dirty 41.0 MiB  writeback 0 B");
    }
}
