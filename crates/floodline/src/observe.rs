// SPDX-License-Identifier: MIT OR Apache-2.0
//! The loop that every observing command runs: look, hand on, wait for the next look. Keeps to its
//! schedule without drifting; a look that takes longer than the interval, or a machine that stands
//! still, costs the samples that were due, and how many is said as an event.

use crate::error::CliError;
use crate::interrupt::Interrupt;
use floodline_record::record::{Event, Record, What};
use floodline_record::units::Nanos;
use std::time::{Duration, Instant};

/// How long and how often to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Schedule {
    /// How long; zero is one look, `None` is until interrupted.
    pub(crate) length: Option<Duration>,
    /// Time between two looks.
    pub(crate) every: Duration,
}

impl Schedule {
    /// Whether the time is up before a second sample is due.
    pub(crate) fn is_one_sample(self) -> bool {
        self.length.is_some_and(|length| length < self.every)
    }

    /// The last turn within the time asked for.
    fn last(self) -> u64 {
        self.length.map_or(u64::MAX, |length| turns(length, self.every))
    }
}

/// Why observing ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The time was up.
    Complete,
    /// A signal asked to end.
    Interrupted,
}

/// Samples on schedule until the time is up or a signal arrives, which triggers a last sample. `look` appends the
/// records of one sample. `take` consumes them in order, and its error ends the loop.
pub(crate) fn observe(
    schedule: Schedule,
    interrupt: &Interrupt,
    mut look: impl FnMut(&mut Vec<Record>),
    mut take: impl FnMut(&Record) -> Result<(), CliError>,
) -> Result<Ended, CliError> {
    let start = now();
    let since = || Duration::from_nanos(now().0.saturating_sub(start.0));
    let mut records = Vec::new();
    let mut turn: u64 = 0;
    loop {
        // A machine that stood still, or that slept, did not wake this up in time: said before the late sample.
        turn += miss(turn, turns(since(), schedule.every).min(schedule.last()), &mut take)?;
        look(&mut records);
        for record in records.drain(..) {
            take(&record)?;
        }
        let passed = turns(since(), schedule.every).max(turn);
        miss(turn, passed.min(schedule.last()), &mut take)?;
        turn = passed.saturating_add(1);
        let due = schedule.every.saturating_mul(u32::try_from(turn).unwrap_or(u32::MAX));
        if schedule.length.is_some_and(|length| due > length) {
            return Ok(Ended::Complete);
        }
        if interrupt.sleep_until(Instant::now() + due.saturating_sub(since())) {
            // What happened since the last look, and in what a tracer added up, would be lost.
            look(&mut records);
            for record in records.drain(..) {
                take(&record)?;
            }
            return Ok(Ended::Interrupted);
        }
    }
}

/// Says how many samples were missed between two turns.
fn miss(turn: u64, passed: u64, take: &mut impl FnMut(&Record) -> Result<(), CliError>) -> Result<u64, CliError> {
    let samples = passed.saturating_sub(turn);
    if samples > 0 {
        take(&Record::Event(Event { at: now(), what: What::Missed { samples } }))?;
    }
    Ok(samples)
}

/// The clock of samples: it goes on while the machine sleeps.
fn now() -> Nanos {
    let at = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Nanos(at.tv_sec.cast_unsigned().saturating_mul(1_000_000_000).saturating_add(at.tv_nsec.cast_unsigned()))
}

/// Whole intervals in a length of time.
fn turns(length: Duration, every: Duration) -> u64 {
    u64::try_from(length.as_nanos() / every.as_nanos().max(1)).unwrap_or(u64::MAX)
}

/// Reads a length of time such as `10s`, `500ms` or `1m30s`.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("invalid duration {text:?}: expected a value such as 10s, 500ms or 1m30s");
    let parsed: jiff::SignedDuration = text.parse().map_err(|_| wrong())?;
    Duration::try_from(parsed).map_err(|_| wrong())
}

/// Reads the time between two looks: at least a millisecond, or the machine would do nothing else.
pub(crate) fn parse_interval(text: &str) -> Result<Duration, String> {
    match parse_duration(text)? {
        every if every < Duration::from_millis(1) => Err("interval too short: the minimum is 1ms".to_owned()),
        every => Ok(every),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the loop with a sampler that is slow at times, and returns its records: `s` for a sample, a number for
    /// samples that were missed.
    fn observed(length_ms: u64, slow: &[(u64, u64)]) -> String {
        let schedule = Schedule { length: Some(Duration::from_millis(length_ms)), every: Duration::from_millis(400) };
        let interrupt = Interrupt::watch().expect("signals can be watched");
        let (mut looks, mut said) = (0, String::new());
        let look = |records: &mut Vec<Record>| {
            let takes = slow.iter().find(|(look, _)| *look == looks).map_or(0, |(_, takes)| *takes);
            std::thread::sleep(Duration::from_millis(takes));
            looks += 1;
            records.push(Record::Sample(Box::default()));
        };
        let take = |record: &Record| {
            match record {
                Record::Event(Event { what: What::Missed { samples }, .. }) => said.push_str(&samples.to_string()),
                _ => said.push('s'),
            }
            Ok(())
        };
        assert_eq!(observe(schedule, &interrupt, look, take).expect("nothing fails"), Ended::Complete);
        said
    }

    #[test]
    fn a_slow_look_skips_turns_and_never_drifts() {
        assert_eq!(observed(0, &[]), "s");
        // The first sample takes until after the second turn; the third is in time.
        assert_eq!(observed(1300, &[(0, 1000)]), "s2s");
    }

    #[test]
    fn turns_beyond_the_time_asked_for_are_not_missed() {
        assert_eq!(observed(800, &[(0, 2000)]), "s2");
        assert_eq!(observed(0, &[(0, 500)]), "s");
    }

    #[test]
    fn one_sample_is_what_ends_before_the_second() {
        let schedule = |length| Schedule { length, every: Duration::from_secs(1) };
        assert!(schedule(Some(Duration::ZERO)).is_one_sample());
        assert!(schedule(Some(Duration::from_millis(999))).is_one_sample());
        assert!(!schedule(Some(Duration::from_secs(1))).is_one_sample());
        assert!(!schedule(None).is_one_sample());
    }

    #[test]
    fn lengths_of_time_are_read_as_people_write_them() {
        let check = |text: &str, expect: Option<u64>| {
            assert_eq!(parse_duration(text).ok().map(|d| d.as_millis() as u64), expect, "{text}");
        };
        check("10s", Some(10_000));
        check("0s", Some(0));
        check("500ms", Some(500));
        check("1m30s", Some(90_000));
        check("-1s", None);
        check("ten", None);
        check("", None);
        assert!(parse_interval("0s").is_err());
    }
}
