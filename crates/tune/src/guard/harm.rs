// SPDX-License-Identifier: MIT OR Apache-2.0
//! When a host suffers: share of time in which every task that could run waited for I/O (PSI `io`, `full`), against what it
//! was before the change: over ten seconds on a host that was calm, over a minute on one that stalled now and then. Such a
//! host stalls once more with what was dirty before its cure. Pure, and without memory of its own: the guard decides by it.

/// Seconds over which the share is taken where the host was calm before.
const CALM_SECONDS: usize = 10;
/// Seconds over which it is taken where it was not: stalls that come with expiry are half a minute apart.
const STALLING_SECONDS: usize = 60;
/// A baseline from which a host is not calm, in millionths.
const STALLING_PPM: u64 = 10_000;
/// Shares up to this are not harm, in millionths.
const ALWAYS_FINE_PPM: u64 = 200_000;
/// Shares up to this many times the baseline are not harm.
const TIMES: u64 = 3;

/// Readings of the last seconds.
#[derive(Clone, Copy, Debug)]
pub struct Harm {
    limit_ppm: u64,
    seconds: usize,
    /// Time and total of each sample, both in microseconds.
    samples: [(u64, u64); STALLING_SECONDS + 1],
    count: usize,
}

impl Harm {
    /// Judges against a baseline: the share before the change, in millionths.
    pub fn new(baseline_ppm: u64) -> Harm {
        let limit_ppm = (baseline_ppm * TIMES).clamp(ALWAYS_FINE_PPM, 1_000_000);
        let seconds = if baseline_ppm < STALLING_PPM { CALM_SECONDS } else { STALLING_SECONDS };
        Harm { limit_ppm, seconds, samples: [(0, 0); STALLING_SECONDS + 1], count: 0 }
    }

    /// Takes a sample, one per second. Returns true once the share is beyond the limit.
    pub fn sample(&mut self, now_us: u64, total_us: u64) -> bool {
        self.samples.rotate_right(1);
        self.samples[0] = (now_us, total_us);
        self.count = (self.count + 1).min(self.samples.len());
        if self.count <= self.seconds {
            return false;
        }
        let Some(&(first_at, first)) = self.samples.get(self.seconds) else { return false };
        let elapsed = now_us.saturating_sub(first_at);
        // A process that was stopped has samples of another time: it starts anew.
        if elapsed > 3 * self.seconds as u64 * 1_000_000 {
            self.count = 1;
            return false;
        }
        let stalled = total_us.saturating_sub(first);
        elapsed > 0 && stalled.saturating_mul(1_000_000) / elapsed > self.limit_ppm
    }
}

/// Total of the `full` line of a pressure file, in microseconds.
pub fn full_total(text: &[u8]) -> Option<u64> {
    number(field(text, b"full ", b"total=")?)
}

/// Total of the `some` line of a pressure file, in microseconds.
pub fn some_total(text: &[u8]) -> Option<u64> {
    number(field(text, b"some ", b"total=")?)
}

/// Share of the last ten seconds from the `some` line, in millionths.
pub fn some_avg10_ppm(text: &[u8]) -> Option<u64> {
    percent_ppm(field(text, b"some ", b"avg10=")?)
}

/// Share of the last minute or of the last five from the `full` line, the larger one, in millionths: the baseline.
pub fn baseline_ppm(text: &[u8]) -> Option<u64> {
    let share = |key| percent_ppm(field(text, b"full ", key)?);
    share(b"avg60=").max(share(b"avg300="))
}

/// A percentage with two decimals, in millionths.
fn percent_ppm(percent: &[u8]) -> Option<u64> {
    let mut parts = percent.split(|byte| *byte == b'.');
    let (whole, part) = (number(parts.next()?)?, parts.next().and_then(number).unwrap_or(0));
    Some(whole * 10_000 + part * 100)
}

fn field<'a>(text: &'a [u8], line: &[u8], key: &[u8]) -> Option<&'a [u8]> {
    let line = text.split(|byte| *byte == b'\n').find(|found| found.starts_with(line))?;
    line.split(|byte| *byte == b' ').find_map(|word| word.strip_prefix(key))
}

fn number(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seconds after which a constant share is harm, in a minute.
    fn check(baseline_ppm: u64, share_ppm: u64, expect: Option<u64>) {
        let mut harm = Harm::new(baseline_ppm);
        let found = (0..120).find(|second| harm.sample(second * 1_000_000, second * share_ppm));
        assert_eq!(found, expect, "baseline {baseline_ppm}, share {share_ppm}");
    }

    #[test]
    fn a_host_suffers_beyond_three_times_its_baseline_and_a_fifth() {
        check(0, 0, None);
        check(0, 200_000, None);
        check(0, 210_000, Some(10));
        check(100_000, 290_000, None);
        check(100_000, 310_000, Some(60));
        check(9_000, 310_000, Some(10));
        // On a host that always stalls, the stalls cannot be attributed to the change.
        check(500_000, 1_000_000, None);
    }

    #[test]
    fn a_host_that_stalled_every_half_minute_may_do_so_once_more() {
        // Ten seconds of thirty without any progress, as before the change.
        let total = |second: u64| second / 30 * 10_000_000 + (second % 30).min(10) * 1_000_000;
        let harmed = |baseline| {
            let mut harm = Harm::new(baseline);
            (0..300).find(|second| harm.sample(second * 1_000_000, total(*second)))
        };
        assert_eq!(harmed(330_000), None);
        assert_eq!(harmed(150_000), None);
        assert!(harmed(0).is_some());
    }

    #[test]
    fn a_short_stall_and_a_stopped_guard_are_not_harm() {
        let mut harm = Harm::new(0);
        for second in 0..40 {
            let total = if second < 20 { 0 } else { 1_500_000 };
            assert!(!harm.sample(second * 1_000_000, total));
        }
        // A minute without a sample: what happened meanwhile is not what happens now.
        assert!(!harm.sample(100_000_000, 60_000_000));
        assert!(!harm.sample(101_000_000, 60_000_000));
    }

    #[test]
    fn the_lines_are_read() {
        let text =
            b"some avg10=1.00 avg60=9.00 avg300=0.00 total=7\nfull avg10=0.00 avg60=1.25 avg300=0.00 total=12345\n";
        assert_eq!(full_total(text), Some(12_345));
        assert_eq!(baseline_ppm(text), Some(12_500));
        assert_eq!(baseline_ppm(b"full avg10=0.00 avg60=1.25 avg300=3.50 total=1"), Some(35_000));
        assert_eq!((some_total(text), some_avg10_ppm(text)), (Some(7), Some(10_000)));
        assert_eq!(full_total(b"some avg10=0"), None);
        assert_eq!(full_total(b""), None);
    }
}
