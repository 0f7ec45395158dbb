// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arrival times: when an amount came in bursts and when it was steady, and the steps of a scenario that repeat that.

use super::group::Bin;
use super::held::is_held;
use super::pace::pace;
use crate::provenance::Notes;
use floodline_record::units::{Bytes, Nanos};
use floodline_scenario::{ByteSize, Frequency, Lasting, Repeat, Step, Time, Truncate, Until};
use std::ops::RangeInclusive;

/// A stretch of time with a steady rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Burst {
    pub(super) from: f64,
    pub(super) to: f64,
    pub(super) amount: f64,
    /// Seconds for which it lasts, where they are fewer.
    pub(super) lasts: Option<f64>,
    /// Whether it goes on with the one before, in which the program was held up: no rest is between them.
    pub(super) goes_on: bool,
}

impl Burst {
    /// A stretch of its own, at one rate for all of its time.
    pub(super) const fn new(from: f64, to: f64, amount: f64) -> Burst {
        Burst { from, to, amount, lasts: None, goes_on: false }
    }
}

/// Fewest bytes of a burst whose length within its interval matters.
pub(super) const BURST_MIN: f64 = 8_388_608.0;
/// Shortest burst, seconds.
const SHORTEST: f64 = 1e-3;

/// Part of an interval for which a program may wait that is not held up.
pub(super) const FREE: f64 = 0.05;

/// How long a burst lasts in one interval: a program that neither runs nor waits does not write. `None` where no time was counted, and of a
/// program that was held up: how long it would have taken without that is not known.
fn lasts(bin: &Bin, amount: f64) -> Option<f64> {
    let seconds = (bin.cpu + bin.waited) / bin.active.max(1) as f64;
    let is_free = bin.cpu > 0.0 && bin.waited < FREE * bin.length;
    (is_free && amount >= BURST_MIN && seconds < bin.length).then(|| seconds.max(SHORTEST))
}

/// Fewest intervals in which a writer was not held up that show its rate.
const FREE_MIN: usize = 6;
/// Shortest stretch of a steady writer, and most stretches of one.
const BURSTS_MAX: usize = 120;

/// The arrival times of an amount: one stretch if it is steady, else its bursts.
pub(super) fn arrivals(bins: &[Bin], amount: impl Fn(&Bin) -> f64, unit: f64) -> Vec<Burst> {
    let active: Vec<usize> = (0..bins.len()).filter(|at| amount(&bins[*at]) > 0.0).collect();
    let (Some(&first), Some(&last)) = (active.first(), active.last()) else { return Vec::new() };
    let begin = |at: usize| bins[at].end - bins[at].length;
    let span = &bins[first..=last];
    let total: f64 = span.iter().map(&amount).sum();
    let whole = Burst::new(begin(first), bins[last].end, total);
    if is_steady(span, &amount, unit) {
        // A writer that is there from the first to the last sample, but for what rounding hides.
        return vec![whole];
    }
    bursts(bins, amount)
}

/// The stretches in which an amount came, each at one rate.
pub(super) fn bursts(bins: &[Bin], amount: impl Fn(&Bin) -> f64) -> Vec<Burst> {
    let begin = |at: usize| bins[at].end - bins[at].length;
    let active = (0..bins.len()).filter(|at| amount(&bins[*at]) > 0.0);
    let pace = pace(bins, &amount);
    let mut bursts: Vec<Burst> = Vec::new();
    for at in active {
        let bin = Burst {
            from: begin(at),
            to: bins[at].end,
            amount: amount(&bins[at]),
            lasts: lasts(&bins[at], amount(&bins[at])),
            goes_on: false,
        };
        let bin = pace.map_or(bin, |pace| pace.part(bin, bins, at, &amount));
        match bursts.last_mut() {
            // Neighbours of about the same rate are one.
            Some(last) if bin.from - last.to < 1e-6 && alike(*last, bin, pace.is_some()) => {
                last.lasts = bin.lasts.filter(|_| pace.is_some()).map(|lasts| bin.from - last.from + lasts);
                last.to = bin.to;
                last.amount += bin.amount;
            }
            // A burst that goes on in the next interval, at another rate, lasts until then.
            Some(last) if bin.from - last.to < 1e-6 => {
                last.lasts = None;
                bursts.push(Burst { lasts: None, ..bin });
            }
            Some(last) if is_held(bins, last.to, bin.from) => {
                last.lasts = None;
                bursts.push(Burst { lasts: None, goes_on: true, ..bin });
            }
            _ => bursts.push(bin),
        }
    }
    while bursts.len() > BURSTS_MAX {
        bursts = bursts
            .chunks(2)
            .map(|pair| Burst {
                from: pair[0].from,
                to: pair[pair.len() - 1].to,
                amount: pair.iter().map(|burst| burst.amount).sum(),
                lasts: None,
                goes_on: pair[0].goes_on,
            })
            .collect();
    }
    bursts
}

/// One stretch from the first to the last activity.
pub(super) fn steady(bins: &[Bin], amount: impl Fn(&Bin) -> f64) -> Vec<Burst> {
    let is_active = |bin: &&Bin| amount(bin) > 0.0;
    let (Some(first), Some(last)) = (bins.iter().find(is_active), bins.iter().rfind(is_active)) else {
        return Vec::new();
    };
    vec![Burst::new(first.end - first.length, last.end, bins.iter().map(&amount).sum())]
}

fn alike(a: Burst, b: Burst, is_paced: bool) -> bool {
    // Of a program that paces its calls, the rate is known for as long as it writes.
    let lasts = |burst: Burst| burst.lasts.filter(|_| is_paced).unwrap_or(burst.to - burst.from).max(1e-3);
    let (a, b) = (a.amount / lasts(a), b.amount / lasts(b));
    (a - b).abs() <= 0.5 * a.max(b)
}

/// Whether an amount comes at one rate, apart from intervals in which the writer was held up and those after.
fn is_steady(bins: &[Bin], amount: &impl Fn(&Bin) -> f64, unit: f64) -> bool {
    let active = bins.iter().filter(|bin| amount(bin) > 0.0).count();
    if bins.len() < 4 || active < 4 {
        return false;
    }
    let free: Vec<&Bin> = bins.iter().filter(|bin| bin.waited < 0.05 * bin.length).collect();
    // A program that waits whenever it writes is free only while it writes nothing: that is no rate.
    let writes_freely = free.iter().filter(|bin| amount(bin) > 0.0).count();
    // The last interval is cut by the end.
    let chosen: Vec<&Bin> = if writes_freely >= FREE_MIN { free } else { bins.iter().collect() };
    let rates: Vec<f64> = chosen.iter().map(|bin| amount(bin) / bin.length).collect();
    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    let variance = rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / rates.len() as f64;
    // How many operations come in an interval: few of them are uneven by themselves.
    let length = chosen.iter().map(|bin| bin.length).sum::<f64>() / chosen.len() as f64;
    let count = (mean * length / unit.max(1e-9)).max(1e-3);
    let gaps = longest_gap(bins, amount);
    let usual = bins.len() as f64 / active as f64;
    let is_regular = gaps as f64 <= 4.0 * usual + 1.0;
    let held = bins.iter().map(|bin| bin.waited).sum::<f64>() > 0.2 * bins.iter().map(|bin| bin.length).sum::<f64>();
    variance.sqrt() / mean.max(1e-9) <= 0.35 + 1.2 / count.sqrt() && (is_regular || held)
}

fn longest_gap(bins: &[Bin], amount: &impl Fn(&Bin) -> f64) -> usize {
    let (mut longest, mut gap) = (0, 0);
    for bin in bins {
        gap = if amount(bin) > 0.0 { 0 } else { gap + 1 };
        longest = longest.max(gap);
    }
    longest
}

pub(super) fn size(bytes: f64) -> ByteSize {
    ByteSize(Bytes((bytes.max(1.0)) as u64))
}

pub(super) fn time(seconds: f64) -> Time {
    Time(Nanos((seconds.max(0.0) * 1e9) as u64))
}

/// A rate per second as a scenario writes it, rounded to three decimals.
pub(super) fn frequency(per_second: f64) -> Frequency {
    let mut value = per_second.clamp(1e-6, 1e6);
    let mut per = 1_000_000_000_u64;
    while value < 1000.0 && per < 1_000_000_000_000_000 {
        value *= 10.0;
        per *= 10;
    }
    let mut times = (value.round() as u32).max(1);
    while times.is_multiple_of(10) && per > 1_000_000_000 {
        times /= 10;
        per /= 10;
    }
    Frequency { times, per: Nanos(per) }
}

/// Shortest time in which a program stores to as many pages as its mapping has, seconds. Most further stores change nothing: the flusher
/// wakes up less often.
pub(super) const PASS: f64 = 2.0;

/// What one branch does with each of its bursts.
pub(super) struct Branch {
    pub(super) bursts: Vec<Burst>,
    /// Bytes or calls of one operation.
    pub(super) unit: f64,
    /// Steps that repeat the operation: a count and a rate, or once without a rate.
    pub(super) step: Box<dyn Fn(u64, Option<Frequency>) -> Vec<Step>>,
    /// What it does before stretches that follow no other at once, but for the first one.
    pub(super) begin: Option<Step>,
    /// What it does once after stretches that no other follows at once.
    pub(super) end: Option<End>,
    /// Whether only the device sets its pace.
    pub(super) is_unpaced: bool,
    /// Shortest work after an operation that waits for no clock, seconds.
    pub(super) least_work: f64,
    /// Operations from one sync to the next. `None` where it does not sync.
    pub(super) synced_after: Option<u64>,
    /// Files that it removes later, in order of time. Those that the recording does not see removed are the last.
    pub(super) removed: Vec<Removed>,
}

/// A file that a branch writes in some of its stretches and removes later.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Removed {
    pub(super) file: String,
    /// Numbers of the stretches.
    pub(super) stretches: RangeInclusive<usize>,
    /// When it is removed, seconds since the recording began. `None` where the recording ends before that.
    pub(super) at: Option<f64>,
}

/// A step after some stretches, and how long it took in the recording.
pub(super) struct End {
    pub(super) step: Step,
    pub(super) seconds: f64,
    /// Ends of the stretches, seconds since the recording began. That of the last one may lie behind the recording.
    pub(super) at: Vec<f64>,
}

/// Time from which the rests between stretches are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Clock {
    /// From the begin of the recording: a program that is late does not rest, so delays do not add up.
    Recorded,
    /// From the end of its last stretch: a program that was held up is late from then on.
    Own,
}

impl Clock {
    /// The step between two moments, in seconds since the recording began.
    fn rest(self, from: f64, to: f64) -> Step {
        match self {
            Clock::Recorded => Step::SleepUntil(Until { at: time(to) }),
            Clock::Own => Step::Sleep(Lasting { lasting: time(to - from) }),
        }
    }
}

impl End {
    /// Whether a stretch ends with it. The last one of a recording is cut: it does what the others do.
    fn is_after(&self, burst: &Burst, is_cut: bool) -> bool {
        is_cut || self.at.iter().any(|at| *at > burst.from && *at <= burst.to + 1e-3)
    }
}

/// Longest time in an interval for which a program neither runs nor waits, where its calls come at once: in a longer one, it may pace them.
const IDLE_MAX: f64 = 1.0;

/// Shortens the bursts that a sync follows. A program that waits in a burst of one interval, and for a sync after it, may wait for the sync in
/// both: its calls take the time for which it runs. A burst in which it is held up as well lasts longer in the twin too, by the twin's own
/// limits.
pub(super) fn before_syncs(bursts: &mut [Burst], bins: &[Bin], end: &End) {
    let is_apart = |one: &Burst, other: &Burst| other.from - one.to >= 1e-6 && !other.goes_on;
    let parts: Vec<bool> = (0..bursts.len())
        .map(|at| {
            let before = at.checked_sub(1).is_none_or(|last| is_apart(&bursts[last], &bursts[at]));
            before && bursts.get(at + 1).is_none_or(|next| is_apart(&bursts[at], next))
        })
        .collect();
    for (burst, is_alone) in bursts.iter_mut().zip(parts) {
        let bin = bins.iter().find(|bin| (bin.end - burst.to).abs() < 1e-6);
        let in_one = bin.filter(|bin| {
            let idle = bin.length - (bin.cpu + bin.waited) / bin.active.max(1) as f64;
            (bin.end - bin.length - burst.from).abs() < 1e-6 && bin.cpu > 0.0 && idle <= IDLE_MAX
        });
        let is_synced = is_alone && burst.lasts.is_none() && burst.amount >= BURST_MIN && end.is_after(burst, false);
        if let Some(bin) = in_one.filter(|_| is_synced) {
            burst.lasts = Some((bin.cpu / bin.active.max(1) as f64).max(SHORTEST)).filter(|lasts| *lasts < bin.length);
        }
    }
}

impl Removed {
    /// The steps that remove it, from a moment on.
    fn steps(&self, clock: Clock, now: &mut f64) -> Vec<Step> {
        let Some(at) = self.at else { return Vec::new() };
        let mut steps = Vec::new();
        if at > *now + 1e-3 {
            steps.push(clock.rest(*now, at));
            *now = at;
        }
        steps.push(Step::Truncate(Truncate { file: self.file.clone(), size: ByteSize(Bytes(0)) }));
        steps
    }
}

/// Lets steps write to another file.
fn rename(steps: &mut [Step], file: &str) {
    for step in steps {
        match step {
            Step::Write(write) => file.clone_into(&mut write.file),
            Step::Repeat(repeat) => rename(&mut repeat.steps, file),
            _ => {}
        }
    }
}

impl Branch {
    /// A branch that only repeats its operation, on a clock.
    pub(super) fn new(
        bursts: Vec<Burst>,
        unit: f64,
        step: impl Fn(u64, Option<Frequency>) -> Vec<Step> + 'static,
    ) -> Branch {
        Branch {
            bursts,
            unit,
            step: Box::new(step),
            begin: None,
            end: None,
            is_unpaced: false,
            least_work: 0.0,
            synced_after: None,
            removed: Vec::new(),
        }
    }

    /// Returns the branch with a file that is emptied before each later burst.
    pub(super) fn emptying(self, file: &str, key: &str, notes: &mut Notes) -> Branch {
        notes.derived(
            format!("{key}.steps.truncate"),
            "the page cache does not grow with its bursts, and shrinks first: each burst writes the same file again",
        );
        let empty = Truncate { file: file.to_owned(), size: ByteSize(Bytes(0)) };
        Branch { begin: Some(Step::Truncate(empty)), ..self }
    }

    /// The steps of a stretch, with the file that it writes.
    fn named(&self, number: usize, mut steps: Vec<Step>) -> Vec<Step> {
        if let Some(removed) = self.removed.iter().find(|removed| removed.stretches.contains(&number)) {
            rename(&mut steps, &removed.file);
        }
        steps
    }

    /// Each burst at its time: `of` makes its steps from the number of operations and the seconds. A burst has at least one operation,
    /// unless those before it had more than they should.
    pub(super) fn bursts(&self, copies: f64, clock: Clock, of: impl Fn(f64, f64) -> Vec<Step>) -> Vec<Step> {
        let mut steps = Vec::new();
        let (mut now, mut left) = (0.0, 0.0);
        let mut removed = self.removed.iter().peekable();
        for (at, burst) in self.bursts.iter().enumerate() {
            while let Some(one) = removed.next_if(|one| one.at.is_some_and(|at| at <= burst.from + 1e-3)) {
                steps.extend(one.steps(clock, &mut now));
            }
            if burst.from > now + 1e-3 && !burst.goes_on {
                steps.push(clock.rest(now, burst.from));
            }
            let before = at.checked_sub(1).and_then(|at| self.bursts.get(at));
            let is_first = !burst.goes_on && before.is_none_or(|last| burst.from > last.to + 1e-3);
            steps.extend(self.begin.clone().filter(|_| at > 0 && is_first));
            let wanted = burst.amount / self.unit / copies + left;
            let count = if wanted < 0.5 && left < 0.0 { 0.0 } else { wanted.round().max(1.0) };
            left = wanted - count;
            let next = self.bursts.get(at + 1);
            let is_last = next.is_none_or(|next| next.from > burst.to.max(now) + 1e-3 && !next.goes_on);
            let is_cut = at + 1 == self.bursts.len();
            let end = self.end.as_ref().filter(|end| is_last && end.is_after(burst, is_cut));
            // What ends a burst follows its last operation at once.
            let then = end.map(|end| end.step.clone());
            match count > 0.0 {
                true => {
                    let length = (burst.to - burst.from).max(1e-3);
                    let lasts = burst.lasts.filter(|lasts| *lasts < length).unwrap_or(length);
                    steps.extend(self.named(at, of(count, lasts)));
                    steps.extend(then);
                    // On the clock of the recording, the rest before the next stretch covers it. After the last one, the run goes on.
                    if lasts < length && (clock == Clock::Own || is_cut) {
                        steps.push(clock.rest(burst.to - length + lasts, burst.to));
                    }
                }
                false => {
                    steps.push(clock.rest(burst.from.max(now), burst.to));
                    steps.extend(then);
                }
            }
            now = burst.to.max(now);
            now += end.map_or(0.0, |end| if clock == Clock::Own { end.seconds } else { 0.0 });
        }
        removed.for_each(|one| steps.extend(one.steps(clock, &mut now)));
        steps
    }

    /// On a clock, unless the device sets the pace.
    pub(super) fn open(&self, copies: f64) -> Vec<Step> {
        let rate = |count: f64, length: f64| (!self.is_unpaced).then(|| frequency(count / length));
        self.bursts(copies, Clock::Recorded, |count, length| (self.step)(count as u64, rate(count, length)))
    }

    /// Write, then work for as long as the program did not wait, and again.
    pub(super) fn closed(&self, copies: f64, waited_share: f64) -> Vec<Step> {
        self.bursts(copies, Clock::Own, |count, length| {
            let apart = length / count;
            let work = (apart * (1.0 - waited_share)).max(self.least_work.min(apart));
            // Rounds shorter than a millisecond cost more than they say: several operations at a time.
            let at_once = (1e-3 / work.max(1e-7)).ceil().clamp(1.0, 256.0);
            // A sync comes after as many operations as on a clock.
            let (at_once, mut inner) = match self.synced_after {
                Some(_) if self.is_unpaced => (count, (self.step)(count as u64, None)),
                Some(after) => {
                    let at_once = at_once.max((after as f64).min(count));
                    (at_once, without_clock((self.step)(at_once as u64, Some(frequency(count / length)))))
                }
                None => (at_once, (self.step)(at_once as u64, None)),
            };
            inner.push(Step::Sleep(Lasting { lasting: time(work * at_once) }));
            let (times, lasting) = match self.bursts.len() {
                // A steady writer writes as often as it gets to.
                1 if count > 3.0 => (None, Some(time(length))),
                _ => (Some(((count / at_once).round() as u64).max(1)), None),
            };
            vec![Step::Repeat(Repeat { times, lasting, every: None, steps: inner })]
        })
    }
}

/// The same steps, whose writes take no longer than the machine needs.
fn without_clock(mut steps: Vec<Step>) -> Vec<Step> {
    for step in &mut steps {
        if let Step::Write(write) = step {
            write.rate = None;
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_scenario::{OnFile, Pace, Write};

    fn counts(amounts: &[f64]) -> (Vec<u64>, f64) {
        let bursts = (0..).zip(amounts).map(|(at, amount)| Burst::new(f64::from(at), f64::from(at) + 1.0, *amount));
        let step = |count, rate: Option<Frequency>| {
            vec![Step::Write(Write { count: Some(count), rate: rate.map(Pace::Blocks), ..Write::default() })]
        };
        let branch = Branch::new(bursts.collect(), 1.0, step);
        let steps = branch.open(1.0);
        // Each rests until the end of a burst of a second that has no operation.
        let seconds = steps.iter().filter(|step| matches!(step, Step::SleepUntil(_))).count() as f64;
        (
            steps.iter().filter_map(|step| if let Step::Write(write) = step { write.count } else { None }).collect(),
            seconds,
        )
    }

    #[test]
    fn a_burst_lasts_as_long_as_its_program_runs_and_waits() {
        let bin = |end: f64, by_calls: f64, cpu: f64| Bin { end, length: 1.0, by_calls, cpu, ..Bin::default() };
        let lasts = |bins: &[Bin]| -> Vec<Option<f64>> {
            bursts(bins, |bin| bin.by_calls).iter().map(|burst| burst.lasts).collect()
        };
        let idle = |end| bin(end, 0.0, 0.0);
        assert_eq!(lasts(&[bin(1.0, 64e6, 0.03), idle(2.0), bin(3.0, 64e6, 0.0)]), [Some(0.03), None]);
        assert_eq!(lasts(&[Bin { waited: 0.03125, ..bin(1.0, 64e6, 0.0625) }, idle(2.0)]), [Some(0.09375)]);
        assert_eq!(lasts(&[Bin { waited: 0.4, ..bin(1.0, 64e6, 0.1) }, idle(2.0)]), [None], "held up");
        assert_eq!(lasts(&[bin(1.0, 64e6, 0.03), bin(2.0, 9e6, 0.03)]), [None, None], "it goes on");
        assert_eq!(lasts(&[bin(1.0, 1e6, 0.03), idle(2.0)]), [None], "little");
    }

    #[test]
    fn a_program_that_is_held_up_goes_on_without_a_rest() {
        let bin = |end: f64, by_calls: f64, waited: f64| {
            let cpu = if by_calls > 0.0 { 0.03 } else { 0.0 };
            Bin { end, length: 1.0, by_calls, waited, cpu, active: 1, ..Bin::default() }
        };
        let bins =
            [bin(1.0, 60e6, 0.0), bin(2.0, 0.0, 1.0), bin(3.0, 60e6, 0.1), bin(4.0, 0.0, 0.0), bin(5.0, 60e6, 0.0)];
        let all = bursts(&bins, |bin| bin.by_calls);
        // A burst that goes on lasts until the program is held up.
        assert_eq!(
            all.iter().map(|one| (one.goes_on, one.lasts)).collect::<Vec<_>>(),
            [(false, None), (true, None), (false, Some(0.03))]
        );
        let step = |count, rate: Option<Frequency>| {
            vec![Step::Write(Write { count: Some(count), rate: rate.map(Pace::Blocks), ..Write::default() })]
        };
        let open = Branch::new(all, 1e6, step).open(1.0);
        let until = |step: &Step| if let Step::SleepUntil(until) = step { until.at.0.as_secs_f64() } else { 0.0 };
        // The rest before the last burst, and that after it: the recording goes on.
        assert_eq!(open.iter().map(until).collect::<Vec<_>>(), [0.0, 0.0, 4.0, 0.0, 5.0]);
    }

    #[test]
    fn a_burst_before_a_sync_lasts_as_long_as_its_program_runs() {
        let bin = |end: f64, by_calls: f64, waited: f64| {
            let cpu = if by_calls > 0.0 { 0.02 } else { 0.0 };
            Bin { end, length: 1.0, by_calls, cpu, waited, ..Bin::default() }
        };
        let bins = [
            bin(1.0, 20e6, 0.7),
            bin(2.0, 0.0, 1.0),
            bin(3.0, 0.0, 0.0),
            bin(4.0, 20e6, 0.7),
            bin(5.0, 20e6, 0.9),
            bin(6.0, 20e6, 0.7),
        ];
        let end = End { step: Step::Fsync(OnFile { file: "/a/f".to_owned() }), seconds: 1.0, at: vec![1.0] };
        let mut all = bursts(&bins, |bin| bin.by_calls);
        before_syncs(&mut all, &bins, &end);
        let lasts: Vec<Option<f64>> = all.iter().map(|burst| burst.lasts).collect();
        assert_eq!(lasts, [Some(0.02), None], "the second goes on for three intervals");
        let long = [Bin { length: 5.0, end: 5.0, ..bins[0] }, Bin { length: 5.0, ..bin(10.0, 0.0, 1.0) }];
        let mut paced = bursts(&long, |bin| bin.by_calls);
        before_syncs(&mut paced, &long, &End { at: vec![5.0], step: end.step.clone(), seconds: 1.0 });
        assert_eq!(paced[0].lasts, None, "it may pace its calls");
        // The sync follows the calls, and not the rest of the interval.
        let step = |count, rate: Option<Frequency>| {
            vec![Step::Write(Write { count: Some(count), rate: rate.map(Pace::Blocks), ..Write::default() })]
        };
        all.truncate(1);
        let branch = Branch { end: Some(end), ..Branch::new(all, 1e6, step) };
        let told = |step: &Step| match step {
            Step::Write(_) => "write",
            Step::Fsync(_) => "fsync",
            Step::Repeat(_) => "writes",
            Step::SleepUntil(_) | Step::Sleep(_) => "rest",
            _ => "other",
        };
        assert_eq!(branch.open(1.0).iter().map(told).collect::<Vec<_>>(), ["write", "fsync", "rest"]);
        assert_eq!(branch.closed(1.0, 0.7).iter().map(told).collect::<Vec<_>>(), ["writes", "fsync", "rest"]);
    }

    #[test]
    fn bursts_in_which_a_program_waits_are_no_steady_writer() {
        // 128 MiB in two seconds of each twenty, of which the program waits most.
        let bin = |at: usize| {
            let is_burst = at % 20 < 2;
            let (by_calls, waited) = if is_burst { (64e6, 0.6) } else { (0.0, 0.0) };
            Bin { end: at as f64 + 1.0, length: 1.0, by_calls, waited, ..Bin::default() }
        };
        let bins: Vec<Bin> = (0..60).map(bin).collect();
        assert_eq!(arrivals(&bins, |bin| bin.by_calls, 262_144.0).len(), 3);
        let steady: Vec<Bin> = bins.iter().map(|bin| Bin { by_calls: 64e6, waited: 0.6, ..*bin }).collect();
        assert_eq!(arrivals(&steady, |bin| bin.by_calls, 262_144.0).len(), 1);
    }

    #[test]
    fn a_file_that_is_removed_later_is_written_under_its_own_name() {
        let burst = |from: f64| Burst::new(from, from + 1.0, 4.0);
        let step = |count, rate: Option<Frequency>| {
            let write =
                Write { file: "/a/f".to_owned(), count: Some(count), rate: rate.map(Pace::Blocks), ..Write::default() };
            vec![Step::Write(write)]
        };
        let file = |number: usize, at| Removed { file: format!("/a/f-{number}"), stretches: number..=number, at };
        let removed = vec![file(0, Some(6.0)), file(2, None)];
        let branch = Branch { removed, ..Branch::new(vec![burst(0.0), burst(3.0), burst(9.0)], 1.0, step) };
        let told = |step: &Step| match step {
            Step::Write(write) => format!("write {}", write.file),
            Step::SleepUntil(until) => format!("until {}", until.at.0.as_secs_f64()),
            Step::Truncate(truncate) => format!("truncate {}", truncate.file),
            other => format!("{other:?}"),
        };
        let expect = ["write /a/f-0", "until 3", "write /a/f", "until 6", "truncate /a/f-0", "until 9", "write /a/f-2"];
        assert_eq!(branch.open(1.0).iter().map(told).collect::<Vec<_>>(), expect);
        // Writers that wait for their own writes do so within a step that repeats.
        let closed = branch.closed(1.0, 0.5);
        let named = |step: &Step| matches!(step, Step::Repeat(repeat) if told(&repeat.steps[0]) == "write /a/f-0");
        assert!(named(&closed[0]), "{closed:?}");
    }

    #[test]
    fn a_burst_without_a_rate_does_not_draw_the_later_ones_nearer() {
        let burst = |from: f64| Burst::new(from, from + 1.0, 4.0);
        let step = |count, rate: Option<Frequency>| {
            vec![Step::Write(Write { count: Some(count), rate: rate.map(Pace::Blocks), ..Write::default() })]
        };
        let bursts: Vec<Burst> = (0..4).map(|number| burst(f64::from(number) * 3.0)).collect();
        let branch = Branch { is_unpaced: true, ..Branch::new(bursts, 1.0, step) };
        let until =
            |step: &Step| if let Step::SleepUntil(until) = step { Some(until.at.0.as_secs_f64()) } else { None };
        assert_eq!(branch.open(1.0).iter().filter_map(until).collect::<Vec<_>>(), [3.0, 6.0, 9.0]);
    }

    #[test]
    fn parts_of_an_operation_add_up() {
        assert_eq!(counts(&[3.0, 2.0]), (vec![3, 2], 0.0));
        // Each burst has a quarter of an operation.
        assert_eq!(counts(&[0.25; 8]), (vec![1, 1], 6.0));
        assert_eq!(counts(&[0.6, 0.6, 0.6, 0.6, 0.6]), (vec![1, 1, 1], 2.0));
        // What is left over is made up.
        assert_eq!(counts(&[1.4, 1.4, 1.4]), (vec![1, 2, 1], 0.0));
    }
}
