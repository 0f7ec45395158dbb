// SPDX-License-Identifier: MIT OR Apache-2.0
//! A process that waited for I/O, how long, and how that is known. Delay accounting (`delayacct_blkio_start`) counts sleeps in
//! `io_schedule` only. The states in the samples estimate the others as well.

use crate::report::Evidence;
use floodline_record::human;
use floodline_record::id::EntityId;
use floodline_record::name::Name;
use floodline_record::sample::ProcessRow;
use floodline_record::units::Nanos;
use floodline_record::window::{Span, Window};

/// Source of waits that delay accounting counted, as evidence names it.
pub(super) const DELAYS: &str = "/proc/PID/stat delayacct_blkio_ticks";
/// Source of waits by the states in samples, as evidence names it.
const BY_STATES: &str = "samples in state D of /proc/PID/stat × window";
/// Samples asleep from which the states of a process tell how long it waited.
const ASLEEP_MIN: usize = 4;
/// Standard deviations by which states must show more than was counted.
const BY_CHANCE: f64 = 2.0;

/// A process that waited.
#[derive(Clone, Debug, PartialEq)]
pub struct Waiter {
    /// Process id.
    pub pid: u32,
    /// Its name.
    pub comm: Name,
    /// Its cgroup.
    pub cgroup: Option<EntityId>,
    /// Seconds it waited in all; `None` where it was only seen asleep.
    pub seconds: Option<f64>,
    /// Its longest single wait, seconds, where a trace has it.
    pub longest_s: Option<f64>,
    /// Seconds by the states in the samples, where these show more than was counted: the kernel counts neither waits for a journal
    /// commit (`jbd2_log_wait_commit`) nor for a log force of XFS, which sleep without `io_schedule`.
    pub asleep_s: Option<f64>,
    /// Where the numbers come from.
    pub source: &'static str,
}

impl Waiter {
    /// The name with the process id, as `redis-server[812]`.
    pub fn label(&self) -> String {
        format!("{}[{}]", self.comm, self.pid)
    }

    /// Returns this waiter with at most `seconds` of waits here: it may have waited elsewhere as well.
    #[must_use]
    pub fn at_most(&self, seconds: f64) -> Waiter {
        let most = |waited: Option<f64>| waited.map(|waited| waited.min(seconds));
        Waiter { seconds: most(self.seconds), asleep_s: most(self.asleep_s), ..self.clone() }
    }

    /// Returns this waiter with its seconds by its states where these show more than was counted.
    #[must_use]
    pub fn by_states(&self) -> Waiter {
        Waiter { seconds: self.asleep_s.or(self.seconds), ..self.clone() }
    }

    /// How long it waited, as evidence: by what was counted, and by its states where these show more.
    pub fn evidence(&self) -> Vec<Evidence> {
        let counted = |seconds| Evidence::seconds(format!("Waited, {}", self.label()), seconds, self.source);
        let asleep = |seconds| Evidence::seconds(format!("Asleep, {}", self.label()), seconds, BY_STATES);
        self.seconds.map(counted).into_iter().chain(self.asleep_s.map(asleep)).collect()
    }

    /// How long it waited, in words: by its states where these show more than was counted. `None` where it was only seen asleep in a few samples.
    pub fn waited(&self) -> Option<String> {
        Some(match (self.seconds, self.asleep_s) {
            (_, Some(asleep)) => format!("about {}", human::seconds(asleep)),
            (Some(seconds), None) if self.source == DELAYS => format!("at least {}", human::seconds(seconds)),
            (seconds, None) => human::seconds(seconds?),
        })
    }
}

/// Seconds that a process slept uninterruptibly by the states in the samples with it, if that is more than `counted` beyond chance: its
/// part of the samples, of the time in which it was seen.
pub(super) fn asleep_s(window: &Window, id: EntityId, span: &Span<ProcessRow>, counted: f64) -> Option<f64> {
    let slept = window.asleep.get(&id).map_or(0, Vec::len);
    let readings = span.readings as usize;
    if slept < ASLEEP_MIN || readings < 2 {
        return None;
    }
    let lasted = Nanos(span.last_at.0.saturating_sub(span.first_at.0)).as_secs_f64();
    let share = (slept as f64 / readings as f64).min(1.0);
    let by_chance = BY_CHANCE * (share * (1.0 - share) / readings as f64).sqrt();
    ((share - by_chance) * lasted > counted).then_some(share * lasted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::waiting::waiters;
    use floodline_record::units::Count;
    use floodline_testkit::{Fixture, secs};

    /// A mail server that slept in a part of the samples, with a part of the time counted as delays.
    fn mail(asleep: f64, counted: f64) -> Waiter {
        let host = Fixture::healthy().seconds(40).process("smtpd", 900, "/", move |t, row| {
            let state = if (t as u64 % 10) < (10.0 * asleep) as u64 { b'D' } else { b'S' };
            (row.state, row.blkio_delay) = (Some(Count(u64::from(state))), Some(secs(counted * t)));
        });
        waiters(&host.window()).expect("delays and states").remove(0)
    }

    #[test]
    fn waits_that_are_not_counted_show_in_the_states() {
        assert_eq!(mail(0.0, 0.2).waited().as_deref(), Some("at least 8.00 s"));
        assert_eq!(mail(0.2, 0.2).waited().as_deref(), Some("at least 8.00 s"));
        let more = mail(0.6, 0.2);
        let (waited, rows) = (more.waited().expect("known"), more.evidence());
        assert_eq!(waited, "about 24 s");
        let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["Waited, smtpd[900]", "Asleep, smtpd[900]"]);
        assert_eq!(mail(0.6, 0.0).waited().as_deref(), Some("about 24 s"));
    }
}
