// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares simulated runs with real ones, figure by figure: each must be within a tenth of the real mean, or within
//! twice the spread of repeated real runs. Several seeds show the model's own chance; a difference within it is
//! reported and is not agreement. Figures that depend on the speed of an emulated CPU are marked and do not count.
//! Independent of the source of the runs and of the output format.

use floodline_analysis::compare::Spread;
use floodline_record::record::What;
use floodline_record::sample::HostRow;
use floodline_record::units::Nanos;
use floodline_record::window::Window;
use floodline_scenario::{Figure, Machine};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of the JSON form.
pub(crate) const SCHEMA: &str = "floodline.validation/2";

/// Largest distance of a simulated figure from the real mean, as a share of it.
pub(crate) const SHARE: f64 = 0.1;
/// Or largest distance in multiples of the spread of the real runs.
const SPREADS: f64 = 2.0;
/// Fewest real runs with a meaningful spread.
const REPEATS: usize = 3;
/// Durations below this are mostly CPU time, and 10 to 30 times too long on an emulated one; seconds.
const CPU_BOUND_BELOW: f64 = 0.02;
/// Bytes, and bytes per second, below which a figure is negligible.
const NEGLIGIBLE_BYTES: f64 = 131_072.0;
const NEGLIGIBLE_RATE: f64 = 1024.0;
/// Figures that are CPU time whatever their value.
const CPU_BOUND: &[&str] = &[".anon.", ".burn.", "host.cpu_", ".open.", "remove_cgroup"];

/// Ends of the names of figures that are judged: throughput, finish times, usual and longest waits, those of the slowest
/// hundredth of the reads, levels, bytes.
const JUDGED: &[&str] =
    &["bytes_per_second", "finished_seconds", "p50_seconds", "max_seconds", "read.p99_seconds", "_bytes"];

/// Verdict on a simulated figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    /// Within the tolerance.
    Agrees,
    /// Outside the tolerance, but by no more than twice the spread of the model's seeds, such as the moment of a
    /// flusher check or the order of two events. With repeats of the real run, only their spread decides.
    Chance,
    /// Outside the tolerance.
    Misses,
    /// Inconclusive: the real figure depends on an emulated CPU.
    CpuBound,
    /// Inconclusive: negligible in both, some blocks of metadata more or less.
    Negligible,
}

/// One figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Row {
    /// Its name.
    pub(crate) figure: String,
    /// The real runs.
    pub(crate) real: Spread,
    /// The simulated ones, one for each seed.
    pub(crate) simulated: Spread,
    /// Distance of the means, as a part of the real mean.
    pub(crate) off_share: f64,
    /// Verdict on the figure.
    pub(crate) verdict: Verdict,
    /// Whether the speed of an emulated CPU determines it, however close the model is.
    pub(crate) is_cpu_bound: bool,
    /// Mean of the simulated runs without the recording's moments of slow disks and late CPUs.
    pub(crate) unreplayed: Option<f64>,
}

/// A variant of a scenario on a kernel.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Case {
    /// Name of the scenario.
    pub(crate) scenario: String,
    /// Name of the variant.
    pub(crate) variant: String,
    /// Kernel release as reported by the real kernel.
    pub(crate) kernel: String,
    /// Version of the real kernel.
    pub(crate) version: String,
    /// Number of recordings.
    pub(crate) recordings: usize,
    /// Properties of the machine passed to the model.
    pub(crate) told: Told,
    /// All figures that both have, or the reason why there was no simulated run.
    #[serde(flatten)]
    pub(crate) outcome: Outcome,
}

/// Properties of a machine passed to the model, from its recordings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Told {
    /// CPU time over that of the assumed machine, hundredths.
    pub(crate) slowdown_percent: u64,
    /// CPU time that the recorder takes per second.
    pub(crate) observer_ns: u64,
    /// Duration of the workload, if the scenario now states another.
    pub(crate) ran: Option<Nanos>,
}

/// Result of a case.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    /// Figures side by side.
    Figures(Vec<Row>),
    /// The model could not run it.
    NotSimulated(String),
}

/// Compares simulated runs of several seeds with real ones, in which a task that only needed a CPU waited for it at
/// most `longest_delay`. Figures that are negligible in both are left out.
pub(crate) fn rows(
    real: &[BTreeMap<String, Figure>],
    simulated: &[BTreeMap<String, Figure>],
    longest_delay: Option<Nanos>,
) -> Vec<Row> {
    let longest_delay = longest_delay.map_or(0.0, Nanos::as_secs_f64);
    let runs = Runs { real: real.iter().collect(), simulated: simulated.iter().collect(), longest_delay };
    let is_judged = |name: &&str| JUDGED.iter().any(|end| name.ends_with(end));
    Spread::names(&runs.simulated).into_iter().filter(is_judged).filter_map(|name| runs.row(name)).collect()
}

/// Adds the means of runs without the recording's moments to the rows.
pub(crate) fn add_unreplayed(rows: &mut [Row], simulated: &[BTreeMap<String, Figure>]) {
    let simulated: Vec<_> = simulated.iter().collect();
    for row in rows {
        row.unreplayed = Spread::of(&simulated, &row.figure).map(|spread| spread.mean);
    }
}

/// Distance of a model's mean as a part of the real one. What is zero on a real kernel is missed entirely.
pub(crate) fn off_share(real: f64, model: f64) -> f64 {
    if real == 0.0 { 1.0 } else { (model - real).abs() / real.abs() }
}

fn is_negligible(unit: &str, value: f64) -> bool {
    match unit {
        "bytes" => value < NEGLIGIBLE_BYTES,
        "bytes_per_second" => value < NEGLIGIBLE_RATE,
        _ => false,
    }
}

struct Runs<'a> {
    real: Vec<&'a BTreeMap<String, Figure>>,
    simulated: Vec<&'a BTreeMap<String, Figure>>,
    /// Seconds.
    longest_delay: f64,
}

/// Largest delay of the recorder while the workload ran. It samples at regular moments, waits for no disk, and is one
/// more program that needs a CPU.
pub(crate) fn longest_delay(window: &Window) -> Option<Nanos> {
    let began = window.events.iter().find(|event| matches!(event.what, What::WorkloadStarted { .. }))?.at.0;
    let times: Vec<u64> = window.host_series.iter().map(|(time, _)| time.monotonic.0).collect();
    let mut gaps: Vec<u64> =
        times.windows(2).filter(|pair| pair[0] >= began).map(|pair| pair[1].saturating_sub(pair[0])).collect();
    gaps.sort_unstable();
    let (usual, longest) = (gaps.get(gaps.len() / 2)?, gaps.last()?);
    Some(Nanos(longest - usual))
}

impl Runs<'_> {
    fn row(&self, name: &str) -> Option<Row> {
        let real = Spread::of(&self.real, name)?;
        let simulated = Spread::of(&self.simulated, name)?;
        if real.mean == 0.0 && simulated.max == 0.0 {
            return None;
        }
        let off = (simulated.mean - real.mean).abs();
        let allowed = (SHARE * real.mean.abs()).max(SPREADS * (real.max - real.min));
        let is_short = real.unit == "seconds" && real.mean < CPU_BOUND_BELOW && simulated.mean < CPU_BOUND_BELOW;
        // A single real run is one of many that could have been; so is each seed.
        let is_chance = real.runs < REPEATS && off <= SPREADS * (simulated.max - simulated.min);
        let verdict = match () {
            () if off <= allowed => Verdict::Agrees,
            () if is_negligible(real.unit, real.mean.max(simulated.mean)) => Verdict::Negligible,
            () if is_short || CPU_BOUND.iter().any(|part| name.contains(part)) => Verdict::CpuBound,
            () if self.is_bound_by_cpu(name) => Verdict::CpuBound,
            () if self.is_late(name, &real, &simulated) => Verdict::CpuBound,
            () if is_chance => Verdict::Chance,
            () => Verdict::Misses,
        };
        let off_share = off_share(real.mean, simulated.mean);
        // The recorder waited for a CPU as long as this longest wait took: the CPU alone can explain it.
        let is_wait_for_cpu = name.ends_with("max_seconds") && real.mean <= self.longest_delay;
        let is_cpu_bound = verdict == Verdict::CpuBound
            || is_short
            || is_wait_for_cpu
            || CPU_BOUND.iter().any(|part| name.contains(part))
            || self.is_bound_by_cpu(name);
        Some(Row { figure: name.to_owned(), real, simulated, off_share, verdict, is_cpu_bound, unreplayed: None })
    }

    /// Whether a longest wait exceeds the model's by no more than the delay of a task that only needs a CPU. A shorter
    /// wait is not explained by that, nor is a usual one.
    fn is_late(&self, name: &str, real: &Spread, simulated: &Spread) -> bool {
        let longer = real.mean - simulated.mean;
        name.ends_with("max_seconds") && longer > 0.0 && longer <= self.longest_delay
    }

    /// Whether the CPU limits the speed of a task: one of its nearly instant operations is done more often in the
    /// model. For an operation's own rate that operation counts, for its task any.
    fn is_bound_by_cpu(&self, name: &str) -> bool {
        let task = name.split('.').next().unwrap_or_default();
        let is_of_task = name.ends_with("dirtied_bytes_per_second") || name.ends_with("finished_seconds");
        let own = name.strip_suffix(".bytes_per_second");
        Spread::names(&self.simulated).into_iter().any(|rate| {
            let Some(operation) = rate.strip_suffix(".per_second") else { return false };
            let counts = own == Some(operation) || is_of_task && operation.split('.').next() == Some(task);
            let usual = || Spread::of(&self.real, &format!("{operation}.p50_seconds"));
            let slower = || Some((Spread::of(&self.real, rate)?, Spread::of(&self.simulated, rate)?));
            counts
                && slower().is_some_and(|(real, simulated)| real.mean * (1.0 + SHARE) < simulated.mean)
                && usual().is_some_and(|usual| usual.mean < CPU_BOUND_BELOW)
        })
    }
}

/// The first writeback setting of a machine that differs from the scenario: the recording then belongs to an older
/// scenario. Settings that a scenario omits have the kernel's default.
pub(crate) fn other_setting(machine: &Machine, row: &HostRow) -> Option<&'static str> {
    let set = |name: &str| machine.sysctl.number(&format!("vm.{name}"));
    let pair = |ratio: &str, bytes: &str, usual: u64| match (set(ratio), set(bytes)) {
        (_, Some(bytes)) => (0, bytes),
        (ratio, None) => (ratio.unwrap_or(usual), 0),
    };
    let (ratio, bytes) = pair("dirty_ratio", "dirty_bytes", 20);
    let (background_ratio, background_bytes) = pair("dirty_background_ratio", "dirty_background_bytes", 10);
    let settings = [
        ("vm.dirty_ratio", row.dirty_ratio.map(|value| value.0), ratio),
        ("vm.dirty_bytes", row.dirty_bytes.map(|value| value.0), bytes),
        ("vm.dirty_background_ratio", row.dirty_background_ratio.map(|value| value.0), background_ratio),
        ("vm.dirty_background_bytes", row.dirty_background_bytes.map(|value| value.0), background_bytes),
        (
            "vm.dirty_expire_centisecs",
            row.dirty_expire_centisecs.map(|value| value.0),
            set("dirty_expire_centisecs").unwrap_or(3000),
        ),
        (
            "vm.dirty_writeback_centisecs",
            row.dirty_writeback_centisecs.map(|value| value.0),
            set("dirty_writeback_centisecs").unwrap_or(500),
        ),
    ];
    settings.into_iter().find(|(_, had, has)| had.is_some_and(|had| had != *has)).map(|(name, ..)| name)
}

/// Totals over all figures of all cases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Summary {
    /// Figures that count.
    pub(crate) figures: usize,
    /// Counted figures that agree.
    pub(crate) agree: usize,
    /// Counted figures that disagree by no more than twice the spread of the model's own seeds.
    pub(crate) chance: usize,
    /// Other counted figures that disagree.
    pub(crate) misses: usize,
    /// Figures that depend on an emulated CPU.
    pub(crate) cpu_bound: usize,
    /// Figures that are negligible.
    pub(crate) negligible: usize,
    /// Median distance to the real mean.
    pub(crate) median_off_share: Option<f64>,
}

impl Summary {
    /// Totals of some rows.
    pub(crate) fn of<'a>(rows: impl Iterator<Item = &'a Row>) -> Summary {
        let mut summary = Summary::default();
        let mut off = Vec::new();
        for row in rows {
            let counts = match row.verdict {
                Verdict::Agrees => &mut summary.agree,
                Verdict::Chance => &mut summary.chance,
                Verdict::Misses => &mut summary.misses,
                Verdict::CpuBound => &mut summary.cpu_bound,
                Verdict::Negligible => &mut summary.negligible,
            };
            *counts += 1;
            if !matches!(row.verdict, Verdict::CpuBound | Verdict::Negligible) {
                off.push(row.off_share);
            }
        }
        off.sort_unstable_by(f64::total_cmp);
        summary.figures = off.len();
        summary.median_off_share = off.get(off.len() / 2).copied();
        summary
    }
}

impl Case {
    /// Its rows; none where it was not simulated.
    pub(crate) fn rows(&self) -> &[Row] {
        match &self.outcome {
            Outcome::Figures(rows) => rows,
            Outcome::NotSimulated(_) => &[],
        }
    }
}

/// Adds up the totals.
pub(crate) fn summary(cases: &[Case]) -> Summary {
    Summary::of(cases.iter().flat_map(Case::rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_of_other_settings_is_told_by_the_first_that_differs() {
        use floodline_scenario::ScenarioFile;
        let text = "name = \"s\"\nsummary = \"s\"\n[machine]\nmemory = \"1 GiB\"\nsysctl.vm = { dirty_bytes = 16777216 }\n\
                    [workload.tasks.t]\nsteps = [\"sync\"]\n";
        let mut file = ScenarioFile::parse(text).expect("a scenario");
        let machine = file.variants.remove("default").expect("a variant").machine;
        let mut row = HostRow {
            dirty_bytes: Some(floodline_record::units::Bytes(16_777_216)),
            dirty_writeback_centisecs: Some(floodline_record::units::Centisecs(500)),
            ..HostRow::default()
        };
        assert_eq!(other_setting(&machine, &row), None);
        row.dirty_writeback_centisecs = Some(floodline_record::units::Centisecs(6000));
        assert_eq!(other_setting(&machine, &row), Some("vm.dirty_writeback_centisecs"));
        row.dirty_ratio = Some(floodline_record::units::Percent(20));
        assert_eq!(other_setting(&machine, &row), Some("vm.dirty_ratio"));
    }

    fn figures(value: f64) -> BTreeMap<String, Figure> {
        [("t.fsync.max_seconds".to_owned(), Figure { value, unit: "seconds" })].into()
    }

    fn check(real: &[f64], simulated: f64, expect: Verdict) {
        let real: Vec<_> = real.iter().map(|value| figures(*value)).collect();
        let rows = rows(&real, &[figures(simulated)], None);
        assert_eq!(rows.first().map(|row| row.verdict), Some(expect), "{rows:?}");
    }

    #[test]
    fn a_tenth_of_the_mean_or_twice_the_spread_is_close_enough() {
        check(&[2.0], 2.19, Verdict::Agrees);
        check(&[2.0], 2.21, Verdict::Misses);
        check(&[2.0, 2.4], 2.9, Verdict::Agrees);
        check(&[2.0, 2.4], 3.1, Verdict::Misses);
    }

    #[test]
    fn what_the_seeds_differ_by_is_chance_and_no_agreement() {
        let check = |real: &[f64], simulated: &[f64], expect| {
            let of = |values: &[f64]| values.iter().map(|value| figures(*value)).collect::<Vec<_>>();
            assert_eq!(rows(&of(real), &of(simulated), None)[0].verdict, expect, "{real:?} {simulated:?}");
        };
        check(&[2.0], &[1.9, 2.3], Verdict::Agrees);
        check(&[2.0], &[2.2, 3.0], Verdict::Chance);
        check(&[2.0], &[3.0, 3.2], Verdict::Misses);
        check(&[2.0, 2.0, 2.01], &[2.2, 3.0], Verdict::Misses);
    }

    #[test]
    fn the_cpu_decides_a_figure_however_close_the_model_is() {
        let check = |real: f64, simulated: f64, delay: u64, expect: bool| {
            let delay = Some(Nanos::from_millis(delay));
            let rows = rows(&[figures(real)], &[figures(simulated)], delay);
            assert_eq!(rows[0].is_cpu_bound, expect, "{rows:?}");
        };
        check(0.015, 0.015, 0, true);
        check(0.015, 0.5, 0, false);
        check(2.0, 2.0, 1999, false);
        check(2.0, 2.0, 2000, true);
        check(2.0, 1.9, 0, false);
    }

    #[test]
    fn what_takes_no_time_but_cpu_time_says_nothing() {
        check(&[0.015], 0.001, Verdict::CpuBound);
        check(&[0.015], 0.5, Verdict::Misses);
    }

    #[test]
    fn a_longest_wait_says_nothing_where_the_recorder_waited_as_long() {
        let check = |real: f64, simulated: f64, delay: u64, expect| {
            let rows = rows(&[figures(real)], &[figures(simulated)], Some(Nanos::from_millis(delay)));
            assert_eq!(rows[0].verdict, expect, "{real} {simulated} {delay}");
        };
        check(0.5, 0.1, 400, Verdict::CpuBound);
        check(0.5, 0.1, 300, Verdict::Misses);
        check(0.1, 0.5, 1000, Verdict::Misses);
    }

    #[test]
    fn the_recorder_is_as_late_as_its_longest_gap_is_longer_than_usual() {
        use floodline_record::record::Event;
        use floodline_record::sample::SampleTime;
        let at = |millis| (SampleTime { monotonic: Nanos::from_millis(millis), wall: Nanos(0) }, HostRow::default());
        let began = What::WorkloadStarted { scenario: "s".into(), variant: "v".into() };
        let mut window = Window {
            host_series: [0, 3000, 3500, 4000, 4500, 5700, 6000].map(at).to_vec(),
            events: vec![Event { at: Nanos::from_millis(2900), what: began }],
            ..Window::default()
        };
        assert_eq!(longest_delay(&window), Some(Nanos::from_millis(700)));
        window.events.clear();
        assert_eq!(longest_delay(&window), None, "nothing ran");
    }

    #[test]
    fn next_to_nothing_says_nothing() {
        let check = |unit, real, simulated, expect| {
            let figures = |value| BTreeMap::from([("devices.read_bytes".to_owned(), Figure { value, unit })]);
            assert_eq!(
                rows(&[figures(real)], &[figures(simulated)], None)[0].verdict,
                expect,
                "{real} {simulated} {unit}"
            );
        };
        check("bytes", 40_960.0, 0.0, Verdict::Negligible);
        check("bytes", 40_960.0, 1e6, Verdict::Misses);
        check("bytes_per_second", 700.0, 0.0, Verdict::Negligible);
        check("bytes_per_second", 7000.0, 0.0, Verdict::Misses);
        check("bytes_per_second", 700.0, 690.0, Verdict::Agrees);
    }

    #[test]
    fn a_task_that_its_cpu_bounds_says_nothing_of_throughput() {
        let run = |per_second: f64, p50: f64| -> BTreeMap<String, Figure> {
            let figure = |value, unit| Figure { value, unit };
            BTreeMap::from([
                ("t.create.per_second".to_owned(), figure(per_second, "per_second")),
                ("t.create.bytes_per_second".to_owned(), figure(per_second * 4096.0, "bytes_per_second")),
                ("t.create.p50_seconds".to_owned(), figure(p50, "seconds")),
                ("t.dirtied_bytes_per_second".to_owned(), figure(per_second * 4096.0, "bytes_per_second")),
            ])
        };
        let verdicts = |real, simulated| -> Vec<Verdict> {
            rows(&[real], &[simulated], None).into_iter().map(|row| row.verdict).collect()
        };
        assert_eq!(verdicts(run(300.0, 0.003), run(90_000.0, 0.001)), [Verdict::CpuBound; 3]);
        assert_eq!(verdicts(run(300.0, 0.5), run(900.0, 0.1)), [Verdict::Misses; 3]);
    }

    #[test]
    fn the_summary_counts_what_can_be_judged() {
        let case = |real: f64, simulated: f64| Case {
            scenario: "s".to_owned(),
            variant: "v".to_owned(),
            kernel: "6.12".to_owned(),
            version: "6.12.1".to_owned(),
            recordings: 1,
            told: Told::default(),
            outcome: Outcome::Figures(rows(&[figures(real)], &[figures(simulated)], None)),
        };
        let summary = summary(&[case(1.0, 1.05), case(1.0, 3.0), case(0.01, 0.001)]);
        assert_eq!((summary.figures, summary.agree, summary.cpu_bound), (2, 1, 1));
        assert_eq!(summary.median_off_share, Some(2.0));
    }
}
