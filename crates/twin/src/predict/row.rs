// SPDX-License-Identifier: MIT OR Apache-2.0
//! One figure before and after a change: scaled to the recording, with an interval from the runs, the back-test and the
//! distance of real kernels from the model.

use super::{Measured, Run};
use crate::backtest;
use crate::noticed::least;
use crate::shown::{Figures, Shown};
use floodline_analysis::prediction::{
    Better, Doubt, LONGEST, LONGEST_WRITE, Limit, P90, P99, PEAK, Row, WAITS, WRITTEN, differ,
};

/// What a change adds to the waits that the kernel's counters leave out, such as those for the work of the flusher. It is a part of the
/// waits after the change. What the change takes from them is not, because the recorded waits do not have it.
fn added(name: &str, (now, then): (&Shown, &Shown)) -> f64 {
    let uncounted = |shown: &Shown| shown.figures.get(backtest::UNCOUNTED).copied().unwrap_or(0.0);
    if name == WAITS { (uncounted(then) - uncounted(now)).max(0.0) } else { 0.0 }
}

/// Values of a figure before and after the change. A changed run is compared with the run of the same twin as it is, else with the first one.
fn pairs(name: &str, results: &[(Run, Shown)]) -> Vec<(f64, f64)> {
    let value = |shown: &Shown| shown.figures.get(name).copied();
    let as_is = |demand: usize| results.iter().find(|(run, _)| !run.is_changed && run.demand == demand);
    results
        .iter()
        .filter(|(run, _)| run.is_changed && run.demand != Run::ON_USUAL_DISKS)
        .filter_map(|(run, then)| {
            let (_, now) = as_is(run.demand)?;
            Some((value(now)?, value(then)? + added(name, (now, then))))
        })
        .collect()
}

/// Factors of a figure on devices that are 20 % slower and faster, where no run tells.
const OTHER_SPEEDS: (f64, f64) = (1.0 / 0.8, 1.0 / 1.2);

/// Smallest error given with a prediction.
const ERROR_MIN: f64 = 0.05;

/// Distance of a real kernel beyond the runs and the back-test in nine of ten predictions, as a logarithm: from
/// `floodline-dev predict-truth --calibrate` on recordings of real kernels. `docs/predict.md` reports how well such
/// widths hold on other scenarios.
const SPREAD: &[(&str, f64)] = &[
    ("durable.longest_wait_seconds", 1.239),
    ("durable.p99_wait_seconds", 1.543),
    ("longest_write_wait_seconds", 3.261),
    ("host.unwritten_peak_bytes", 0.341),
    ("host.dirtied_bytes", 0.703),
    ("devices.written_bytes", 0.378),
    ("smallest_budget_bytes", 0.027),
];
/// Distance for figures that too few recordings of real kernels have: from all figures together.
const SPREAD_OF_OTHERS: f64 = 0.695;

/// Distance for waits that the recording does not have: the twin then assumes which programs sync, and when. It holds nine of
/// ten such waits of the generated hosts that `floodline-dev predict-truth --model` predicts.
const SPREAD_OF_UNMEASURED: &[(&str, f64)] =
    &[("durable.longest_wait_seconds", 3.0), ("durable.p99_wait_seconds", 3.0), ("durable.p90_wait_seconds", 3.0)];

/// Factor by which the interval of a figure is wider than its runs and its back-test, as a logarithm. `is_measured` tells
/// whether the recording has the figure.
pub fn spread(figure: &str, is_measured: bool) -> f64 {
    let of = |list: &[(&str, f64)]| list.iter().find(|(name, _)| *name == figure).map(|(_, spread)| *spread);
    let unmeasured = if is_measured { None } else { of(SPREAD_OF_UNMEASURED) };
    unmeasured.or_else(|| of(SPREAD)).unwrap_or(SPREAD_OF_OTHERS)
}

/// Least factor by which a wait that the recording does not have must change to be predicted. The twin then assumes which
/// programs sync, and when: smaller changes are within what these assumptions decide.
const UNMEASURED: f64 = 1.5;

/// Whether a figure is a wait that only tasks or a trace report.
fn is_hidden_wait(name: &str) -> bool {
    name == LONGEST_WRITE || SPREAD_OF_UNMEASURED.iter().any(|(known, _)| *known == name)
}

/// Factor up to which one bound of the demand hardly moves a figure, and that from which the other bound moves it much. Then the bounds
/// disagree.
const HARDLY: f64 = 1.1;
const MUCH: f64 = 1.5;

/// Factor between two values, the larger over the smaller. Small ones count as the least difference that people notice.
fn ratio(least: f64, one: f64, other: f64) -> f64 {
    let (one, other) = (one.max(0.0) + least, other.max(0.0) + least);
    (one / other).max(other / one)
}

/// A figure to predict.
pub(super) struct Of<'a> {
    pub(super) name: &'a str,
    pub(super) label: &'a str,
    pub(super) unit: &'static str,
    pub(super) better: Better,
    pub(super) least: f64,
}

/// The figure that is arithmetic: no run and no back-test decides it.
pub(super) const SMALLEST_BUDGET: &str = "smallest_budget_bytes";

/// The row of the smallest cgroup limit, from all cgroups of the recording.
pub(super) fn limits_row(of: &Of<'_>, Limit { now_bytes: now, then_bytes: then }: Limit) -> Row {
    let wider = spread(of.name, true).exp();
    let (low, high) = (then / wider, then * wider);
    Row {
        better: of.better,
        is_measured: true,
        low,
        high,
        least: of.least,
        ..Row::new(of.name, of.label, of.unit, now, then)
    }
}

/// Factor from a figure of the twin to that of its recording. Every command that shows a figure of a changed twin applies it.
pub(crate) fn scale(tested: Option<&backtest::Figure>, sim_now: f64, least: f64) -> f64 {
    match tested {
        // A value near zero is not a base for scaling.
        Some(figure)
            if figure.is_predictable() && sim_now > 0.0 && figure.real > least && figure.name != SMALLEST_BUDGET =>
        {
            figure.real / sim_now
        }
        _ => 1.0,
    }
}

/// A figure on disks of a usual speed before and after the change, where these runs are there.
fn on_usual_disks(name: &str, results: &[(Run, Shown)]) -> Option<(f64, f64)> {
    let value = |is_changed: bool| {
        let mut runs = results.iter().filter(|(run, _)| run.demand == Run::ON_USUAL_DISKS);
        runs.find(|(run, _)| run.is_changed == is_changed)?.1.figures.get(name).copied()
    };
    value(false).zip(value(true))
}

/// The row of a figure, and whether it is the one of disks of a usual speed; `None` where no run has it. A disk without a limit takes any
/// burst in a moment. Where the twin has such a disk, only a disk of a usual speed shows what more data cost. It counts where the change does
/// not move the figure on the twin's own disks, or makes it better there and worse here. And it counts only where the recording may have such
/// disks: before the change, they show no more.
pub(super) fn row(
    of: &Of<'_>,
    measured: &Measured,
    results: &[(Run, Shown)],
    closed: Option<(&Shown, &Shown)>,
) -> Option<(Row, bool)> {
    let &Of { name, label, unit, better, least } = of;
    let mut pairs = pairs(name, results);
    let &(sim_now, sim_then) = pairs.first()?;
    let worsens = |now: f64, then: f64| differ(least, now, then) && (then > now) == (better == Better::Less);
    let usual = on_usual_disks(name, results).filter(|(now, then)| {
        let is_unmoved = !differ(least, sim_now, sim_then) && differ(least, *now, *then);
        let is_hidden = is_unmoved || (!worsens(sim_now, sim_then) && worsens(*now, *then));
        is_hidden && !differ(least, sim_now, *now)
    });
    pairs.extend(usual);
    let (sim_now, sim_then) = usual.unwrap_or((sim_now, sim_then));
    if sim_now == 0.0 && sim_then == 0.0 {
        return None;
    }
    let tested = measured.back_test.iter().find(|figure| figure.name == name);
    // A limit is arithmetic: it does not scale with the error of a run.
    let is_arithmetic = name == SMALLEST_BUDGET;
    let scale = scale(tested, sim_now, least);
    let now = tested.map_or(sim_now, |figure| figure.real);
    let then = sim_then * scale;
    let all = || pairs.iter().map(|(_, then)| then * scale);
    let error = if is_arithmetic { 0.0 } else { tested.map_or(ERROR_MIN, |figure| figure.off_share).max(ERROR_MIN) };
    // Small values differ by an amount rather than by a share.
    let wider = spread(name, tested.is_some()).exp();
    // Without runs at other speeds, a figure may be as much larger or smaller as the device may be slower or faster.
    let is_varied = results.iter().any(|(run, _)| run.trial.device_percent != 100);
    let (slower, faster) = if is_varied || is_arithmetic { (1.0, 1.0) } else { OTHER_SPEEDS };
    let low = all().reduce(f64::min).unwrap_or(then) * faster / (1.0 + error);
    let low = ((low + least) / wider - least).max(0.0).min(low);
    let high = all().reduce(f64::max).unwrap_or(then) * slower * (1.0 + error);
    let high = (high + least) * wider - least;
    let differ = |one, other| differ(least, one, other);
    let of = |figures: &Figures| figures.get(name).copied();
    let disagree = closed.and_then(|(now, then)| of(&now.figures).zip(of(&then.figures))).is_some_and(|(now, then)| {
        let is_opposite = differ(sim_now, sim_then) && (sim_then > sim_now) != (then > now);
        let is_unmoved = !differ(sim_now, sim_then) || ratio(least, sim_now, sim_then) <= HARDLY;
        differ(now, then) && (is_opposite || (is_unmoved && ratio(least, now, then) >= MUCH))
    });
    let doubt = match tested {
        Some(figure) if !figure.is_predictable() => Some(Doubt::BackTest),
        _ if disagree => Some(Doubt::Demand),
        None if is_hidden_wait(name) && ratio(least, sim_now, sim_then) < UNMEASURED => Some(Doubt::Unmeasured),
        _ => None,
    };
    let (is_measured, off_share) = (tested.is_some(), tested.map(|figure| figure.off_share));
    // Of small values the factor says nothing.
    let by_factor = Some(now * sim_then / sim_now).filter(|_| now > least && sim_now > least);
    let by_factor = by_factor.filter(|_| doubt == Some(Doubt::BackTest));
    let roughly = by_factor.map(|by_factor| (by_factor.min(sim_then), by_factor.max(sim_then)));
    let row = Row {
        better,
        is_measured,
        low,
        high,
        off_share,
        roughly,
        least,
        doubt,
        ..Row::new(name, label, unit, now, then)
    };
    Some((row, usual.is_some()))
}

/// The rows of the waits on single disks that the recording has.
pub(super) fn on_devices(
    now: &Shown,
    measured: &Measured,
    results: &[(Run, Shown)],
    closed: Option<(&Shown, &Shown)>,
) -> Vec<Row> {
    let of_device = |name: &String| {
        let label = crate::on_devices::label(name)?;
        let of = Of { name, label: &label, unit: "seconds", better: Better::Less, least: least(name) };
        row(&of, measured, results, closed).map(|(row, _)| row).filter(|row| row.is_measured)
    };
    now.figures.keys().filter_map(of_device).collect()
}

/// Leaves percentiles of syncs open that get better while the longest sync gets worse. A few syncs then wait longer, and how many the others
/// are decides the percentile. The twin assumes that number where the recording does not show the syncs. Samples that are far apart hide the
/// short ones: there, the 90th percentile is left open wherever it gets better. Also leaves the written bytes open
/// where they hardly change in a twin that misses how much is unwritten at once.
pub(super) fn leave_open(rows: &mut [Row], is_sparse: bool) {
    let worsens = rows.iter().any(|row| row.figure == LONGEST && !row.is_measured && row.worsens());
    let is_percentile = |row: &Row| [P90, P99].contains(&row.figure.as_str()) && !row.is_measured;
    let is_hidden = |row: &Row| (worsens && is_percentile(row)) || (is_sparse && row.figure == P90 && !row.is_measured);
    for row in rows.iter_mut().filter(|row| is_hidden(row) && row.improves()) {
        row.doubt = Some(Doubt::Unmeasured);
    }
    let is_peak_missed = rows.iter().any(|row| row.figure == PEAK && row.doubt == Some(Doubt::BackTest));
    let is_unmoved = |row: &Row| !differ(row.least, row.now, row.then) || ratio(row.least, row.now, row.then) <= HARDLY;
    for row in rows.iter_mut().filter(|row| is_peak_missed && row.figure == WRITTEN && is_unmoved(row)) {
        row.doubt = row.doubt.or(Some(Doubt::Unwritten));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shown::Trial;

    /// The row of a figure: the twin shows `sim` before and after a change, and the recording has `real`.
    fn predicted(name: &str, real: f64, sim: (f64, f64)) -> Row {
        let named = crate::shown::figure(name).expect("it is one");
        let of =
            Of { name: named.name, label: named.label, unit: named.unit, better: named.better, least: named.least() };
        let shown = |value| Shown { figures: Figures::from([(name.to_owned(), value)]), ..Shown::default() };
        let run = |is_changed| Run { demand: 0, is_changed, trial: Trial::NOMINAL };
        let results = [(run(false), shown(sim.0)), (run(true), shown(sim.1))];
        let off_share = (sim.0 - real).abs() / real;
        let tested = backtest::Figure { name: name.to_owned(), unit: named.unit, real, simulated: sim.0, off_share };
        let measured = Measured { back_test: vec![tested], ..Measured::default() };
        super::row(&of, &measured, &results, None).expect("it is predicted").0
    }

    #[test]
    fn an_interval_is_as_wide_as_real_kernels_differ_from_the_model() {
        let row = predicted("host.unwritten_peak_bytes", 100e6, (100e6, 50e6));
        assert!(row.low < 50e6 / 1.3 && row.high > 50e6 * 1.3, "{row:?}");
        assert!(row.low > 50e6 / 2.0 && row.high < 50e6 * 2.0, "{row:?}");
        // A value near zero may turn out to be just noticeable, and no wait is negative.
        let row = predicted("durable.longest_wait_seconds", 1.0, (1.0, 0.001));
        assert!(row.low == 0.0 && row.high > 0.02 && row.high < 0.2, "{row:?}");
        // A limit is arithmetic, but memory changes from day to day.
        let row = predicted("smallest_budget_bytes", 64e6, (64e6, 32e6));
        assert!(row.low < 32e6 && row.high > 32e6 && row.high < 34e6, "{row:?}");
    }

    #[test]
    fn a_wait_that_the_recording_lacks_is_predicted_only_where_the_change_decides_it() {
        let of = |name: &'static str| Of { name, label: name, unit: "seconds", better: Better::Less, least: 0.02 };
        let told = |name: &'static str, now: f64, then: f64| {
            let shown = |value| Shown { figures: Figures::from([(name.to_owned(), value)]), ..Shown::default() };
            let run = |is_changed| Run { demand: 0, is_changed, trial: Trial::NOMINAL };
            let results = [(run(false), shown(now)), (run(true), shown(then))];
            super::row(&of(name), &Measured::default(), &results, None).expect("it has a value").0.doubt
        };
        assert_eq!(told("durable.longest_wait_seconds", 2.3, 2.4), Some(Doubt::Unmeasured));
        assert_eq!(told("durable.longest_wait_seconds", 0.001, 0.003), Some(Doubt::Unmeasured));
        assert_eq!(told("durable.longest_wait_seconds", 2.3, 0.4), None);
        assert_eq!(told("longest_write_wait_seconds", 2.3, 2.4), Some(Doubt::Unmeasured));
    }

    #[test]
    fn a_percentile_that_falls_while_the_longest_sync_grows_is_open() {
        let told = |longest: (f64, f64), percentile: (f64, f64), is_measured: bool| {
            let row =
                |name, (now, then)| Row { is_measured, least: 0.02, ..Row::new(name, name, "seconds", now, then) };
            let mut rows = [row(LONGEST, longest), row(P90, percentile)];
            leave_open(&mut rows, false);
            rows.map(|row| row.doubt)
        };
        let open = [None, Some(Doubt::Unmeasured)];
        assert_eq!(told((0.7, 2.2), (0.23, 0.02), false), open);
        assert_eq!(told((0.7, 2.2), (0.23, 0.02), true), [None; 2], "the recording has the syncs");
        assert_eq!(told((0.7, 2.2), (0.23, 0.9), false), [None; 2], "both grow");
        assert_eq!(told((4.2, 0.4), (0.01, 0.07), false), [None; 2], "many shorter ones");
    }

    #[test]
    fn a_90th_percentile_that_falls_is_open_where_samples_far_apart_hide_short_syncs() {
        let told = |(now, then): (f64, f64), is_measured: bool, is_sparse: bool| {
            let row = |name| Row { is_measured, least: 0.02, ..Row::new(name, name, "seconds", now, then) };
            let mut rows = [row(LONGEST), row(P90)];
            leave_open(&mut rows, is_sparse);
            rows.map(|row| row.doubt)
        };
        assert_eq!(told((1.4, 0.1), false, true), [None, Some(Doubt::Unmeasured)]);
        assert_eq!(told((1.4, 0.1), false, false), [None; 2], "the samples are close");
        assert_eq!(told((1.4, 0.1), true, true), [None; 2], "the recording has the syncs");
        assert_eq!(told((0.1, 1.4), false, true), [None; 2], "longer ones show");
    }

    #[test]
    fn written_bytes_that_stay_are_open_where_the_twin_misses_what_is_unwritten() {
        let told = |then: f64, doubt: Option<Doubt>| {
            let row = |name, then| Row { least: 1e6, ..Row::new(name, name, "bytes", 200e6, then) };
            let mut rows = [Row { doubt, ..row(PEAK, 300e6) }, row(WRITTEN, then)];
            leave_open(&mut rows, false);
            rows[1].doubt
        };
        assert_eq!(told(205e6, Some(Doubt::BackTest)), Some(Doubt::Unwritten));
        assert_eq!(told(205e6, None), None, "the twin has what is unwritten");
        assert_eq!(told(400e6, Some(Doubt::BackTest)), None, "the change decides it");
    }

    #[test]
    fn bounds_of_the_demand_disagree_where_only_one_moves_a_figure() {
        let name = "host.dirtied_bytes";
        let of = Of { name, label: name, unit: "bytes", better: Better::Less, least: 1e6 };
        let shown = |value| Shown { figures: Figures::from([(name.to_owned(), value)]), ..Shown::default() };
        let told = |open: f64, closed: f64| {
            let run = |is_changed| Run { demand: 0, is_changed, trial: Trial::NOMINAL };
            let results = [(run(false), shown(125e6)), (run(true), shown(open))];
            let (now, then) = (shown(125e6), shown(closed));
            super::row(&of, &Measured::default(), &results, Some((&now, &then))).expect("it has a value").0.doubt
        };
        assert_eq!(told(126e6, 798e6), Some(Doubt::Demand));
        assert_eq!(told(126e6, 140e6), None, "both hardly move it");
        assert_eq!(told(250e6, 798e6), None, "both move it up");
        assert_eq!(told(250e6, 60e6), Some(Doubt::Demand));
    }

    #[test]
    fn waits_that_no_counter_has_are_a_part_of_what_a_change_adds() {
        let told = |name: &'static str, uncounted: (f64, f64)| {
            let shown = |uncounted| Shown {
                figures: Figures::from([(name.to_owned(), 1.0), (backtest::UNCOUNTED.to_owned(), uncounted)]),
                ..Shown::default()
            };
            let run = |is_changed| Run { demand: 0, is_changed, trial: Trial::NOMINAL };
            pairs(name, &[(run(false), shown(uncounted.0)), (run(true), shown(uncounted.1))])
        };
        assert_eq!(told(WAITS, (0.5, 24.5)), [(1.0, 25.0)]);
        assert_eq!(told(WAITS, (24.5, 0.5)), [(1.0, 1.0)], "the recording does not have what ends");
        assert_eq!(told("longest_write_wait_seconds", (0.5, 24.5)), [(1.0, 1.0)]);
    }

    #[test]
    fn what_only_a_disk_of_a_usual_speed_shows_is_predicted_for_one() {
        let of = Of { name: "stall_seconds", label: "waits", unit: "seconds", better: Better::Less, least: 0.2 };
        let told = |own: (f64, f64), usual: (f64, f64)| {
            let result = |demand, is_changed, value| {
                let figures = Figures::from([("stall_seconds".to_owned(), value)]);
                (Run { demand, is_changed, trial: Trial::NOMINAL }, Shown { figures, ..Shown::default() })
            };
            let on = Run::ON_USUAL_DISKS;
            let results = [
                result(0, false, own.0),
                result(0, true, own.1),
                result(on, false, usual.0),
                result(on, true, usual.1),
            ];
            let (row, is_usual) = super::row(&of, &Measured::default(), &results, None).expect("it has a value");
            (row.then, row.low < 0.1, is_usual)
        };
        assert_eq!(told((0.02, 0.02), (0.03, 11.0)), (11.0, true, true));
        assert_eq!(told((0.4, 0.1), (0.4, 11.0)), (11.0, true, true), "the twin shows the opposite");
        assert_eq!(told((9.0, 0.1), (9.0, 2.0)).0, 0.1, "both get better");
        assert_eq!(told((0.02, 4.0), (0.03, 11.0)), (4.0, false, false), "the twin itself shows it");
        assert_eq!(told((0.02, 0.02), (5.0, 11.0)), (0.02, true, false), "a disk of such a speed would show now");
        assert_eq!(told((0.02, 0.02), (0.03, 0.04)), (0.02, true, false), "it shows nothing either");
    }

    #[test]
    fn what_is_next_to_nothing_now_is_no_measure_of_what_comes() {
        let now = 0.9 * crate::shown::figure("devices.written_bytes").expect("it is one").least();
        let row = predicted("devices.written_bytes", now, (now / 0.9, 300e6));
        assert_eq!((row.then, row.doubt), (300e6, None));
    }
}
