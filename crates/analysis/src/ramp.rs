// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ramp of a change: how many steps lead from the old values to the new ones, how long the host is watched after
//! each, and what must hold before the next. A change of a short distance that costs nothing has one step. Pure.

use crate::advise::knob::knob;
use crate::change::{Bound, Change, Expected, IO_SOME_SHARE, Ramp, RampStep};
use crate::diagnose::dirty::{background_threshold, dirtyable_roughly, hard_threshold, unwritten_of};
use crate::prediction::PEAK;
use floodline_record::human;
use floodline_record::sample::{HostRow, SampleTime};
use floodline_record::units::Nanos;
use floodline_record::window::{Window, step};

/// Largest factor by which one step changes a value.
const FACTOR_MAX: f64 = 4.0;
/// Most steps.
pub const STEPS_MAX: usize = 5;
/// Shortest and longest watch after a step, seconds.
const WATCH_S: (f64, f64) = (10.0, 120.0);
/// Watch where dirty data never get too old or no flusher looks for them, seconds.
const WATCH_UNKNOWN_S: f64 = 60.0;
/// Part of the time in which tasks may wait for I/O, over the worst stretch of the recording: a factor and an addend.
const WORSE: (f64, f64) = (1.5, 0.1);
/// Fewest bytes that the kernel takes as a threshold.
const LEAST_BYTES: f64 = 8192.0;
const PAGE: u64 = 4096;

/// A knob that has values between the old and the new one.
struct Stretch<'a> {
    change: &'a Change,
    /// Old and new value, in the unit of `between`.
    from: f64,
    to: f64,
    /// Name of the knob for values in between.
    between: String,
}

impl Stretch<'_> {
    /// Factor between the old and the new value, at least 1.
    fn factor(&self) -> f64 {
        (self.to / self.from).max(self.from / self.to)
    }

    /// The value after a share of the way, by equal factors.
    fn at(&self, share: f64) -> String {
        let value = self.from * (self.to / self.from).powf(share);
        let is_bytes = self.between.ends_with("bytes") || self.between.starts_with("cgroup/");
        let value = value.round().max(if is_bytes { LEAST_BYTES } else { 1.0 }) as u64;
        let value = if is_bytes { value - value % PAGE } else { value };
        // Rounding leaves no way.
        value.clamp(self.from.min(self.to) as u64, self.from.max(self.to) as u64).to_string()
    }
}

/// The stretch of a change; `None` for a switch, and where a value is not a number above 0.
fn stretch<'a>(change: &'a Change, dirtyable: Option<f64>) -> Option<Stretch<'a>> {
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|value| *value > 0.0);
    let is_scale = change.knob.starts_with("vm.dirty")
        || (change.knob.starts_with("bdi/") && change.knob.ends_with("_bytes"))
        || ["/memory.high", "/memory.max"].iter().any(|end| change.knob.ends_with(end));
    let to = number(&change.new).filter(|_| is_scale)?;
    if let Some(from) = change.old.as_deref().and_then(number) {
        return Some(Stretch { change, from, to, between: change.knob.clone() });
    }
    // Of a pair, the other member is in force: both are compared in bytes.
    let (other, value) = change.in_force.as_deref()?.split_once('=')?;
    let bytes = |knob: &str, value: f64| match knob.ends_with("_ratio") {
        true => Some(value / 100.0 * dirtyable?).filter(|bytes| *bytes > 0.0),
        false => Some(value),
    };
    let between = if other.ends_with("_ratio") { &change.knob } else { other };
    let (from, to) = (bytes(other, number(value)?)?, bytes(&change.knob, to)?);
    Some(Stretch { change, from, to, between: between.to_owned() })
}

/// Time after which the effect of other thresholds shows: what was dirty before has then been written. Seconds.
fn watch_s(row: &HostRow, changes: &[Change]) -> f64 {
    let longest = |knob: &str, now: Option<u64>| {
        let new = changes.iter().find(|change| change.knob == knob).and_then(|change| change.new.trim().parse().ok());
        Some(now?.max(new.unwrap_or(0))).filter(|centisecs| *centisecs > 0).map(|centisecs| centisecs as f64 / 100.0)
    };
    let expire = longest("vm.dirty_expire_centisecs", row.dirty_expire_centisecs.map(|age| age.0));
    let period = longest("vm.dirty_writeback_centisecs", row.dirty_writeback_centisecs.map(|time| time.0));
    let both = expire.zip(period).map(|(expire, period)| expire + 2.0 * period);
    both.map_or(WATCH_UNKNOWN_S, |seconds| seconds.clamp(WATCH_S.0, WATCH_S.1))
}

/// The largest share of the time in which a task waited for I/O, over all stretches of at least `seconds`. `None` where the
/// kernel does not count it, and where the window is shorter: its mean hides its worst stretch.
fn worst_share(window: &Window, seconds: f64) -> Option<f64> {
    let of = |(at, row): &(SampleTime, HostRow)| Some((at.monotonic, row.psi_io_some?));
    let series: Vec<(Nanos, Nanos)> = window.host_series.iter().filter_map(of).collect();
    let share = |(from, before): (Nanos, Nanos), (to, after): (Nanos, Nanos)| {
        let seconds = Nanos(to.0.saturating_sub(from.0)).as_secs_f64();
        (seconds > 0.0).then(|| (Nanos(step(before.0, after.0)).as_secs_f64() / seconds).min(1.0))
    };
    let length = |from: Nanos, to: Nanos| Nanos(to.0.saturating_sub(from.0)).as_secs_f64();
    let (mut worst, mut end) = (None::<f64>, 0);
    for from in &series {
        while series.get(end).is_some_and(|to| length(from.0, to.0) < seconds) {
            end += 1;
        }
        let Some(to) = series.get(end) else { break };
        worst = worst.into_iter().chain(share(*from, *to)).reduce(f64::max);
    }
    worst
}

/// What is known of the price of a change. The default is that of a change that was not tried.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Price {
    /// Predicted figures.
    pub expected: Vec<Expected>,
    /// The most important figure that gets or may get worse, or a finding that appears, in words and without a full stop.
    pub cost: Option<String>,
    /// Whether a trial on a twin, without a reservation, shows that nothing gets worse.
    pub is_free: bool,
}

/// Whether a knob has two values only.
fn is_switch(knob: &str) -> bool {
    knob == crate::change::JOURNALD_STORAGE || ["/strict_limit", "/direct_io"].iter().any(|end| knob.ends_with(end))
}

/// The ramp of a change on the host of a recording.
pub fn ramp(window: &Window, changes: &[Change], price: &Price) -> Ramp {
    let cost = price.cost.as_deref();
    // Setting one member of a pair zeroes the other.
    let is_zeroed = |change: &Change| {
        let pair = knob(&change.knob).and_then(|knob| knob.pair);
        change.new.trim() == "0" && changes.iter().any(|other| Some(other.knob.as_str()) == pair)
    };
    let changes: Vec<Change> = changes.iter().filter(|change| !is_zeroed(change)).cloned().collect();
    let changes = changes.as_slice();
    let dirtyable = dirtyable_roughly(window).map(|bytes| bytes.0 as f64);
    let mut stretches: Vec<Stretch<'_>> = changes.iter().filter_map(|change| stretch(change, dirtyable)).collect();
    // A background threshold at or above the limit is void, so the ramp begins at the threshold in force.
    let in_force = background_threshold(window).map_or(f64::INFINITY, |bytes| bytes.0 as f64);
    let limit = hard_threshold(window).map_or(f64::INFINITY, |bytes| bytes.0 as f64);
    let is_void = |one: &Stretch<'_>| one.between == "vm.dirty_background_bytes" && one.from >= limit;
    for one in stretches.iter_mut().filter(|one| is_void(one)) {
        one.from = one.from.min(in_force.max(LEAST_BYTES));
    }
    let farthest = stretches.iter().max_by(|one, other| one.factor().total_cmp(&other.factor()));
    let by_distance = farthest.map_or(1, |one| (one.factor().ln() / FACTOR_MAX.ln() - 1e-9).ceil().max(1.0) as usize);
    let has_way = farthest.is_some_and(|one| one.factor() > 1.0);
    let wanted = by_distance.clamp(if cost.is_some() && has_way { 2 } else { 1 }, STEPS_MAX);
    let watch_s = watch_s(&window.host.last, changes);
    let bounds = bounds(window, watch_s, &stretches, &price.expected);
    let mut steps: Vec<RampStep> = Vec::new();
    let mut last: Vec<String> = Vec::new();
    for number in 1..=wanted {
        let mut set = Vec::new();
        for change in changes {
            let way = stretches.iter().find(|one| one.change.knob == change.knob).filter(|_| number < wanted);
            let value = match way {
                Some(way) => format!("{}={}", way.between, way.at(number as f64 / wanted as f64)),
                None => format!("{}={}", change.knob, change.new),
            };
            // A ratio of few percent has few values in between.
            if !last.contains(&value) && !is_now(change, &value) {
                set.push(value);
            }
        }
        last.extend(set.iter().cloned());
        if !set.is_empty() {
            steps.push(RampStep { set, watch_s, go_on_if: bounds.clone() });
        }
    }
    let far = farthest.filter(|_| by_distance > 1).map(|one| {
        let factor = human::number(one.factor().round());
        format!("{} changes by a factor of {factor}", one.change.knob)
    });
    let is_near = has_way && stretches.len() == changes.len() && by_distance == 1;
    let mut why = match (steps.len() > 1, far, cost) {
        (true, Some(far), Some(cost)) => format!("Several steps: {far}. Cost: {cost}."),
        (true, Some(far), None) => format!("Several steps: {far}."),
        (true, None, cost) => format!("Several steps, because the change has a cost: {}.", cost.unwrap_or_default()),
        (false, _, Some(cost)) => format!("The change is made at once. Cost: {cost}."),
        (false, ..) if is_near && price.is_free => format!(
            "One step is enough: no value changes by more than a factor of {FACTOR_MAX}, and no predicted figure gets worse."
        ),
        (false, ..) if is_near => format!("One step: no value changes by more than a factor of {FACTOR_MAX}."),
        (false, ..) if !changes.is_empty() && changes.iter().all(|change| is_switch(&change.knob)) => {
            "One step: a switch has no value in between.".to_owned()
        }
        (false, ..) => "The change is made at once.".to_owned(),
    };
    if raises(&stretches) && !bounds.iter().any(|bound| bound.figure == PEAK) {
        why.push_str(" Data at risk have no bound: the recording does not show how many there were.");
    }
    Ramp { why, steps }
}

/// Whether a value is the one that is in force.
fn is_now(change: &Change, value: &str) -> bool {
    let old = change.old.as_ref().filter(|old| *old != "0").map(|old| format!("{}={old}", change.knob));
    change.in_force.as_deref().or(old.as_deref()) == Some(value)
}

/// Whether a change lets more data be dirty.
fn raises(stretches: &[Stretch<'_>]) -> bool {
    stretches.iter().any(|one| one.to > one.from)
}

/// What must hold while a step is watched: tasks wait no longer than in the worst stretch of the recording. Where the change
/// lets data at risk grow, they stay within what is predicted of the whole change. Without a prediction, they grow at most by the
/// factor of the change; below the present background threshold they may grow in any case.
fn bounds(window: &Window, watch_s: f64, stretches: &[Stretch<'_>], expected: &[Expected]) -> Vec<Bound> {
    let mut bounds = Vec::new();
    let share = worst_share(window, watch_s).map(|worst| (worst * WORSE.0).max(worst + WORSE.1));
    if let Some(at_most) = share.filter(|share| *share < 1.0) {
        let at_most = (at_most * 100.0).ceil() / 100.0;
        bounds.push(Bound { figure: IO_SOME_SHARE.to_owned(), unit: "share".to_owned(), at_most });
    }
    let predicted = expected.iter().find(|one| one.figure == PEAK).map(|peak| peak.high.max(peak.now));
    let factor = stretches.iter().map(|one| one.to / one.from).fold(1.0, f64::max);
    let recorded = || {
        let peak = window.host_series.iter().filter_map(|(_, row)| unwritten_of(window, row)).max()?;
        let background = background_threshold(window).map_or(0, |bytes| bytes.0);
        Some((peak.0 as f64 * factor).max(background as f64))
    };
    let total = window.facts.as_ref().and_then(|facts| facts.mem_total).map_or(f64::MAX, |bytes| bytes.0 as f64);
    let peak = predicted.or_else(recorded).filter(|peak| *peak > 0.0);
    if let Some(peak) = peak.filter(|_| raises(stretches)) {
        let at_most = peak.ceil().min(total);
        bounds.push(Bound { figure: PEAK.to_owned(), unit: "bytes".to_owned(), at_most });
    }
    bounds
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_record::units::Centisecs;
    use floodline_testkit::{Fixture, secs};

    fn change(knob: &str, old: &str, new: &str) -> Change {
        Change { knob: knob.to_owned(), old: Some(old.to_owned()), new: new.to_owned(), in_force: None }
    }

    /// The ramp of a change with predicted figures and a cost. Without a cost it is one that was tried and costs nothing.
    fn ramp(window: &Window, changes: &[Change], expected: &[Expected], cost: Option<&str>) -> Ramp {
        let price = Price { expected: expected.to_vec(), cost: cost.map(str::to_owned), is_free: cost.is_none() };
        super::ramp(window, changes, &price)
    }

    /// A host whose tasks waited for I/O in a part of each second from second 4 to second 7.
    fn window(part: f64) -> Window {
        let waited = move |t: f64| secs(part * (t - 4.0).clamp(0.0, 3.0));
        Fixture::healthy().host(move |t, row| row.psi_io_some = Some(waited(t))).window()
    }

    fn sets(ramp: &Ramp) -> Vec<String> {
        ramp.steps.iter().map(|step| step.set.join(" ")).collect()
    }

    #[test]
    fn a_short_way_that_costs_nothing_has_one_step_and_says_that_it_is_safe() {
        let one = ramp(&window(0.1), &[change("vm.dirty_bytes", "268435456", "67108864")], &[], None);
        assert_eq!(sets(&one), ["vm.dirty_bytes=67108864"]);
        assert!(one.why.starts_with("One step is enough: "), "{}", one.why);
    }

    #[test]
    fn a_long_way_goes_in_steps_of_equal_factors() {
        let (hard, background) = (
            change("vm.dirty_bytes", "1073741824", "67108864"),
            change("vm.dirty_background_bytes", "536870912", "8388608"),
        );
        let ramp = ramp(&window(0.1), &[background, hard], &[], None);
        assert_eq!(
            sets(&ramp),
            [
                "vm.dirty_background_bytes=134217728 vm.dirty_bytes=426110976",
                "vm.dirty_background_bytes=33554432 vm.dirty_bytes=169103360",
                "vm.dirty_background_bytes=8388608 vm.dirty_bytes=67108864"
            ]
        );
        assert_eq!(ramp.why, "Several steps: vm.dirty_background_bytes changes by a factor of 64.");
    }

    #[test]
    fn a_ramp_does_not_begin_at_a_void_background_threshold() {
        // 30 % above a limit of 10 %: half of the limit is in force.
        let host = Fixture::healthy().settings((10, 0, 30, 0)).window();
        let in_force = background_threshold(&host).expect("it is read").0;
        let background = Change {
            in_force: Some("vm.dirty_background_ratio=30".to_owned()),
            ..change("vm.dirty_background_bytes", "0", "16777216")
        };
        let steps = sets(&ramp(&host, &[background], &[], Some("a cost")));
        let first: u64 = steps[0].rsplit('=').next().expect("a value").parse().expect("bytes");
        assert!(first < in_force, "{steps:?} and {in_force} in force");
    }

    #[test]
    fn a_ramp_begins_at_a_background_threshold_that_holds() {
        // In the last sample, programs use more memory than before.
        let host = Fixture::healthy().host(|_, row| {
            row.nr_dirty_background_threshold = Some(floodline_record::units::Pages(5_000));
            row.nr_dirty_threshold = Some(floodline_record::units::Pages(200_000));
        });
        let background = change("vm.dirty_background_bytes", "536870912", "8388608");
        let steps = sets(&ramp(&host.window(), &[background], &[], None));
        assert_eq!(steps[0], "vm.dirty_background_bytes=134217728", "{steps:?}");
    }

    #[test]
    fn a_rounded_value_stays_between_both() {
        let short = change("vm.dirty_bytes", "67109864", "67112000");
        let between = |from: &str, to: &str| {
            let change = Change { old: Some(from.to_owned()), new: to.to_owned(), ..short.clone() };
            let set = ramp(&window(0.1), &[change], &[], Some("a cost")).steps[0].set[0].clone();
            set.strip_prefix("vm.dirty_bytes=").expect("bytes").parse::<u64>().expect("a number")
        };
        assert!((67_109_864..=67_112_000).contains(&between("67109864", "67112000")));
        assert!((67_109_864..=67_112_000).contains(&between("67112000", "67109864")));
    }

    #[test]
    fn the_member_of_a_pair_that_is_in_force_is_where_the_way_begins() {
        let window = window(0.1);
        let dirtyable = dirtyable_roughly(&window).expect("it is read").0;
        let to_bytes = Change {
            in_force: Some("vm.dirty_ratio=20".to_owned()),
            ..change("vm.dirty_bytes", "0", &(dirtyable / 5 / 16).to_string())
        };
        let there = ramp(&window, &[to_bytes], &[], None);
        let middle: u64 =
            there.steps[0].set[0].strip_prefix("vm.dirty_bytes=").expect("in bytes").parse().expect("one");
        assert_eq!((there.steps.len(), middle), (2, dirtyable / 20 - dirtyable / 20 % PAGE));
        let to_ratio = Change {
            in_force: Some(format!("vm.dirty_bytes={}", dirtyable / 5 / 16)),
            ..change("vm.dirty_ratio", "0", "20")
        };
        let back = ramp(&window, &[to_ratio], &[], None);
        assert!(back.steps[0].set[0].starts_with("vm.dirty_bytes="), "{back:?}");
        assert_eq!(back.steps[1].set, ["vm.dirty_ratio=20"]);
    }

    #[test]
    fn what_costs_something_goes_halfway_first_and_is_bounded_by_its_prediction() {
        let (figure, unit) = (PEAK.to_owned(), "bytes".to_owned());
        let peak = Expected { figure, unit, now: 100e6, then: 200e6, low: 150e6, high: 300e6 };
        let cost = Some("peak data at risk 95.4 MiB → about 191 MiB");
        let changes = [change("vm.dirty_bytes", "104857600", "209715200"), change("bdi/8:0/strict_limit", "1", "0")];
        let ramp = ramp(&window(0.1), &changes, &[peak], cost);
        assert_eq!(
            sets(&ramp),
            ["vm.dirty_bytes=148287488 bdi/8:0/strict_limit=0", "vm.dirty_bytes=209715200"],
            "a switch is made first"
        );
        assert!(
            ramp.why.starts_with("Several steps, because the change has a cost: peak data at risk 95.4 "),
            "{}",
            ramp.why
        );
        let peak = ramp.steps[0].go_on_if.iter().find(|bound| bound.figure == PEAK).expect("it is bounded");
        assert_eq!(peak.at_most, 300e6);
        let price = Price { cost: cost.map(str::to_owned), ..Price::default() };
        let switch = super::ramp(&window(0.1), &changes[1..], &price);
        assert_eq!(switch.why, "The change is made at once. Cost: peak data at risk 95.4 MiB → about 191 MiB.");
    }

    #[test]
    fn a_step_is_watched_until_old_data_are_written_and_tasks_may_wait_as_in_the_recording() {
        let told = |expire: u64, new: u64, part: f64| {
            let fixture = Fixture::healthy().seconds(130).host(move |t, row| {
                row.dirty_expire_centisecs = Some(Centisecs(expire));
                row.dirty_writeback_centisecs = Some(Centisecs(500));
                row.psi_io_some = Some(secs(part * (t - 4.0).clamp(0.0, 3.0)));
            });
            let change = change("vm.dirty_expire_centisecs", &expire.to_string(), &new.to_string());
            let ramp = ramp(&fixture.window(), &[change], &[], None);
            let step = ramp.steps.first().expect("a step").clone();
            (step.watch_s, step.go_on_if.first().map(|bound| bound.at_most))
        };
        assert_eq!(told(3000, 1500, 0.0), (40.0, Some(0.1)));
        assert_eq!(told(1000, 3000, 0.0).0, 40.0);
        assert_eq!(told(60_000, 30_000, 0.0).0, 120.0);
        assert_eq!(told(0, 3000, 0.0).0, 40.0);
        let share = told(3000, 1500, 1.0).1.expect("it is bounded");
        assert!(share > 0.1 && share < 0.3, "{share}");
    }

    #[test]
    fn only_a_trial_without_a_reservation_says_that_nothing_gets_worse() {
        let of = |knob: &str, old: &str, new: &str, price: &Price| {
            super::ramp(&window(0.1), &[change(knob, old, new)], price).why
        };
        let (untried, free) = (Price::default(), Price { is_free: true, ..Price::default() });
        let near = |price: &Price| of("vm.dirty_bytes", "268435456", "67108864", price);
        assert_eq!(near(&untried), "One step: no value changes by more than a factor of 4.");
        assert!(near(&free).ends_with("and no predicted figure gets worse."));
        for (knob, old, new) in [
            ("cgroup/a/io.max/8:0/wbps", "1048576", "max"),
            ("bdi/8:0/max_ratio", "1", "100"),
            ("vm.dirty_writeback_centisecs", "0", "500"),
            ("cgroup/a/memory.high", "max", "1073741824"),
        ] {
            assert_eq!(of(knob, old, new, &free), "The change is made at once.", "{knob}");
        }
        assert_eq!(of("bdi/8:0/strict_limit", "1", "0", &free), "One step: a switch has no value in between.");
    }

    #[test]
    fn a_higher_threshold_that_was_not_tried_is_bounded_by_the_recording_or_says_that_it_is_not() {
        let higher = [change("vm.dirty_bytes", "67108864", "134217728")];
        let of = |pages: Option<u64>| {
            let window = Fixture::healthy().host(move |_, row| {
                row.nr_dirty = pages.map(floodline_record::units::Pages);
                row.mem_dirty = None;
            });
            super::ramp(&window.window(), &higher, &Price::default())
        };
        let peak = |ramp: &Ramp| ramp.steps[0].go_on_if.iter().find(|one| one.figure == PEAK).map(|one| one.at_most);
        let bounded = of(Some(4_000_000));
        assert!(peak(&bounded).is_some_and(|bytes| bytes >= 4e9), "{bounded:?}");
        let open = of(None);
        assert_eq!(peak(&open), None);
        assert!(open.why.ends_with("Data at risk have no bound: the recording does not show how many there were."));
    }

    #[test]
    fn the_worst_stretch_of_a_recording_counts() {
        let window = window(0.8);
        let of = |seconds| worst_share(&window, seconds).expect("it is counted");
        assert!((of(3.0) - 0.8).abs() < 0.01, "{}", of(3.0));
        assert!(of(6.0) < 0.5, "{}", of(6.0));
        assert_eq!(worst_share(&window, 3600.0), None, "it is shorter, and its mean hides the worst stretch");
        assert_eq!(worst_share(&Fixture::healthy().host(|_, row| row.psi_io_some = None).window(), 3.0), None);
    }
}
