// SPDX-License-Identifier: MIT OR Apache-2.0
//! The loop that every observing command runs: look, hand on, wait for the next look. Keeps to its
//! schedule without drifting; a look that takes longer than the interval skips what it missed and
//! says so as an event.

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

/// Why observing ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The time was up.
    Complete,
    /// Somebody asked to end.
    Interrupted,
}

/// Looks on schedule until the time is up or somebody asks to end, which takes a last look. `look` appends the records of one
/// look; `take` consumes them in order, and its error ends the loop.
pub(crate) fn observe(
    schedule: Schedule,
    interrupt: &Interrupt,
    mut look: impl FnMut(&mut Vec<Record>),
    mut take: impl FnMut(&Record) -> Result<(), CliError>,
) -> Result<Ended, CliError> {
    let start = Instant::now();
    let mut records = Vec::new();
    let mut turn: u64 = 0;
    loop {
        look(&mut records);
        for record in records.drain(..) {
            take(&record)?;
        }
        let next = next_turn(start.elapsed(), schedule.every, turn);
        let samples = missed(turn, next, schedule);
        if samples > 0 {
            let at = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
            let at = Nanos(
                at.tv_sec.cast_unsigned().saturating_mul(1_000_000_000).saturating_add(at.tv_nsec.cast_unsigned()),
            );
            take(&Record::Event(Event { at, what: What::Missed { samples } }))?;
        }
        turn = next;
        let due = schedule.every.saturating_mul(u32::try_from(turn).unwrap_or(u32::MAX));
        if schedule.length.is_some_and(|length| due > length) {
            return Ok(Ended::Complete);
        }
        if interrupt.sleep_until(start + due) {
            // What happened since the last look, and in what a tracer added up, would be lost.
            look(&mut records);
            for record in records.drain(..) {
                take(&record)?;
            }
            return Ok(Ended::Interrupted);
        }
    }
}

/// The first turn that is still to come.
fn next_turn(elapsed: Duration, every: Duration, turn: u64) -> u64 {
    let passed = elapsed.as_nanos() / every.as_nanos().max(1);
    u64::try_from(passed).unwrap_or(u64::MAX).max(turn).saturating_add(1)
}

/// Turns that were passed over, as far as they were within the time asked for.
fn missed(turn: u64, next: u64, schedule: Schedule) -> u64 {
    let last = schedule.length.map_or(u64::MAX, |length| {
        u64::try_from(length.as_nanos() / schedule.every.as_nanos().max(1)).unwrap_or(u64::MAX)
    });
    next.saturating_sub(1).min(last).saturating_sub(turn)
}

/// Reads a length of time such as `10s`, `500ms` or `1m30s`.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("not a length of time: {text:?}; write 10s, 500ms or 1m30s");
    let parsed: jiff::SignedDuration = text.parse().map_err(|_| wrong())?;
    Duration::try_from(parsed).map_err(|_| wrong())
}

/// Reads the time between two looks: at least a millisecond, or the machine would do nothing else.
pub(crate) fn parse_interval(text: &str) -> Result<Duration, String> {
    match parse_duration(text)? {
        every if every < Duration::from_millis(1) => Err("the shortest interval is 1ms".to_owned()),
        every => Ok(every),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_look_skips_turns_and_never_drifts() {
        let check = |elapsed_ms: u64, turn: u64, expect: u64| {
            assert_eq!(next_turn(Duration::from_millis(elapsed_ms), Duration::from_secs(1), turn), expect);
        };
        check(0, 0, 1);
        check(999, 0, 1);
        check(1000, 0, 2);
        check(3500, 0, 4);
        check(3500, 7, 8);
    }

    #[test]
    fn turns_beyond_the_time_asked_for_are_not_missed() {
        let check = |turn: u64, next: u64, length_ms: Option<u64>, expect: u64| {
            let schedule = Schedule { length: length_ms.map(Duration::from_millis), every: Duration::from_millis(50) };
            assert_eq!(missed(turn, next, schedule), expect, "{turn} {next} {length_ms:?}");
        };
        check(0, 1, None, 0);
        check(0, 4, None, 3);
        check(2, 6, Some(200), 2);
        check(4, 6, Some(200), 0);
        check(0, 3, Some(0), 0);
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
