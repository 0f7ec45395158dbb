// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long `doctor` waits for the trial of a plan: simulated events of one run, and CPU time of all of them. A sick host is
//! loaded: what other programs take of its CPUs does not change the answer. The program and the Python package share it;
//! each reads its own clocks.

use std::time::Duration;

/// Most simulated events of one run: about half a second, and the same on a fast and a slow machine.
pub(crate) const EVENTS_MAX: u64 = 2_000_000;
/// Most time of each CPU. A debug build simulates many times slower, and its tests run beside each other.
const CPU_MAX: Duration = Duration::from_millis(if cfg!(debug_assertions) { 60_000 } else { 1_500 });
/// Most time by the clock, even if other programs had the CPUs meanwhile.
const TIME_MAX: Duration = Duration::from_secs(if cfg!(debug_assertions) { 120 } else { 15 });

/// Readings of a process' clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Time by a clock that only goes forward.
    pub time: Duration,
    /// CPU time of all threads of the process.
    pub cpu: Duration,
}

/// When the trial of a plan ends.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    end: Spent,
}

impl Patience {
    /// Starts now, with runs on that number of CPUs.
    pub fn from(now: Spent, cpus: usize) -> Patience {
        let cpus = u32::try_from(cpus).unwrap_or(u32::MAX);
        let cpu = now.cpu.saturating_add(CPU_MAX.saturating_mul(cpus));
        Patience { end: Spent { time: now.time.saturating_add(TIME_MAX), cpu } }
    }

    /// Whether a run that handled that number of events may go on.
    pub fn lasts(&self, events: u64, now: Spent) -> bool {
        events < EVENTS_MAX && now.time < self.end.time && now.cpu < self.end.cpu
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_ends_with_its_events_its_cpu_time_or_its_time() {
        let start = Spent { time: Duration::from_secs(900), cpu: Duration::from_secs(300) };
        let check = |events, time, cpu, lasts| {
            let now = Spent { time: start.time + time, cpu: start.cpu + cpu };
            assert_eq!(Patience::from(start, 2).lasts(events, now), lasts, "{events} {time:?} {cpu:?}");
        };
        let short = Duration::from_millis(1);
        check(0, Duration::ZERO, Duration::ZERO, true);
        check(EVENTS_MAX - 1, short, short, true);
        check(EVENTS_MAX, short, short, false);
        // Other programs have the CPUs: much time has passed, and little CPU time was used.
        check(0, TIME_MAX - short, short, true);
        check(0, TIME_MAX, short, false);
        // Two CPUs have twice the time of one.
        check(0, short, CPU_MAX * 2 - short, true);
        check(0, short, CPU_MAX * 2, false);
    }
}
