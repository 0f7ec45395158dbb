// SPDX-License-Identifier: MIT OR Apache-2.0
//! Effect of sampling on the host. A read of `memory.stat` or `io.stat` makes the kernel add up the counters that each CPU
//! keeps for a cgroup. Since 6.9, throttling reads the sums only, and the kernel adds them up by itself every 2 s
//! (mm/memcontrol.c, `FLUSH_TIME`). Samples that are closer together free paused writers earlier. In a storm, these writers
//! dirty the same pages again.

use floodline_kernel::{FLUSH_TIME, MemcgStats};
use floodline_record::facts::CgroupMode;
use floodline_record::human;
use floodline_record::units::Nanos;
use floodline_record::window::Window;

/// Median time between two samples; `None` with fewer than two.
pub fn distance(window: &Window) -> Option<Nanos> {
    let times: Vec<u64> = window.host_series.iter().map(|(time, _)| time.monotonic.0).collect();
    let mut between: Vec<u64> = times.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
    between.sort_unstable();
    between.get(between.len() / 2).copied().map(Nanos)
}

/// Whether throttling on this host reads sums that the kernel adds up every 2 s, and the samples read the same counters.
pub fn reads_what_throttles(window: &Window) -> bool {
    let is_unified = window.facts.as_ref().is_some_and(|facts| facts.cgroups.mode == CgroupMode::V2);
    let is_late =
        crate::shown::behaviour(window).is_some_and(|kernel| kernel.arithmetic.memcg_stats == MemcgStats::RateLimited);
    is_unified && is_late && window.cgroups.values().any(|span| span.last.file_dirty.is_some())
}

/// Returns the median time between two samples that read these counters if it raises storms of starved cgroups on this host,
/// `None` otherwise.
pub fn raises_storms(window: &Window) -> Option<Nanos> {
    window.stat_reads.distance().filter(|distance| *distance < FLUSH_TIME.nearly() && reads_what_throttles(window))
}

/// How a host was sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Watched {
    /// Time between two samples.
    every: Option<Nanos>,
    /// Time between two samples that read counters of cgroups, where closer ones raise storms of starved cgroups.
    reads: Option<Nanos>,
}

impl Watched {
    /// Derives it from a window of samples.
    pub fn of(window: &Window) -> Watched {
        let reads = window.stat_reads.distance().filter(|_| reads_what_throttles(window));
        Watched { every: distance(window), reads }
    }
}

/// Factor between two distances of samples from which their recordings show different things.
const APART: f64 = 1.25;

/// Returns a warning if the samples of one side, or their readings of counters of cgroups, are closer together than those of the
/// other. Each side is its name and its windows.
pub fn different(base: (&str, &[Watched]), other: (&str, &[Watched])) -> Option<String> {
    let samples = apart(base, other, |one| one.every);
    let reads = apart(base, other, |one| one.reads).filter(|(_, least)| *least < FLUSH_TIME.as_secs_f64());
    let storms = match &reads {
        Some(_) => " On this kernel, readings less than 2 s apart also make a storm of starved cgroups larger.",
        None => "",
    };
    match (samples, reads) {
        (Some((told, _)), _) => Some(format!(
            "The samples of {told}. Neither shows peaks and waits between two samples.{storms} Record both with the same --every."
        )),
        (None, Some((told, _))) => Some(format!(
            "The samples that read counters of cgroups: those of {told}.{storms} Record both with the same --stat-every."
        )),
        (None, None) => None,
    }
}

/// Returns a distance of both sides in words and the least of them in seconds, if those of one side are larger.
fn apart(
    base: (&str, &[Watched]),
    other: (&str, &[Watched]),
    of: impl Fn(&Watched) -> Option<Nanos>,
) -> Option<(String, f64)> {
    let seconds = |watched: &[Watched]| -> Vec<f64> {
        watched.iter().filter_map(|one| Some(of(one)?.as_secs_f64()).filter(|seconds| *seconds > 0.0)).collect()
    };
    let ends =
        |seconds: &[f64]| Some((seconds.iter().copied().reduce(f64::min)?, seconds.iter().copied().reduce(f64::max)?));
    let (ours, theirs) = (seconds(base.1), seconds(other.1));
    let (least, most) = ends(&[ours.clone(), theirs.clone()].concat())?;
    if most < APART * least {
        return None;
    }
    let told = |seconds: &[f64]| match ends(seconds) {
        None => "an unknown time".to_owned(),
        Some((least, most)) if most < APART * least => human::seconds(most),
        Some((least, most)) => format!("{} to {}", human::seconds(least), human::seconds(most)),
    };
    Some((format!("{} are {} apart, those of {} {}", base.0, told(&ours), other.0, told(&theirs)), least))
}

/// Sentences of a finding of starved cgroups about the samples that raise the storm.
pub fn sentence(distance: Nanos) -> String {
    format!(
        "Floodline adds to it. It read counters of cgroups every {}, and each read lets paused writers continue earlier. On \
         Linux 6.12, such a storm dirtied 1.7 times as much with reads 1 s apart as with reads 2 s apart, and 3.2 to 3.6 times \
         as much with reads 500 ms apart. With --every 2s or --stat-every 2s, the effect is small.",
        human::seconds(distance.as_secs_f64())
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_testkit::Fixture;
    use floodline_testkit::incidents::{starved_budget, starved_budget_6_1};
    use floodline_testkit::sparse::sparse;

    fn of(fixture: &Fixture) -> Option<f64> {
        raises_storms(&fixture.window()).map(Nanos::as_secs_f64)
    }

    #[test]
    fn close_samples_raise_a_storm_where_throttling_reads_late_sums() {
        assert_eq!(of(&starved_budget().every(1.0)), Some(1.0));
        assert_eq!(of(&starved_budget().every(0.5)), Some(0.5));
        assert_eq!(of(&starved_budget().every(2.0)), None);
        assert_eq!(of(&starved_budget().every(5.0)), None);
        assert_eq!(of(&starved_budget_6_1().every(0.5)), None, "its throttling adds the counters up itself");
    }

    #[test]
    fn samples_that_do_not_read_the_counters_raise_nothing() {
        let window = |each: usize| Window::from_records(&sparse(starved_budget().every(0.5).records(), each));
        let of = |each: usize| raises_storms(&window(each)).map(Nanos::as_secs_f64);
        assert_eq!([of(1), of(2), of(4)], [Some(0.5), Some(1.0), None]);
        assert_eq!(distance(&window(4)), Some(Nanos::from_millis(500)), "the other readings are as close as ever");
    }

    #[test]
    fn a_comparison_of_different_readings_is_not_one_of_loads() {
        let of = |seconds: f64, each: usize| {
            Watched::of(&Window::from_records(&sparse(starved_budget().every(seconds).records(), each)))
        };
        let told = |base: Watched, other: Watched| different(("A", &[base]), ("B", &[other]));
        assert_eq!(told(of(1.0, 2), of(1.0, 2)), None);
        assert_eq!(
            told(of(1.0, 1), of(1.0, 2)).expect("a warning"),
            "The samples that read counters of cgroups: those of A are 1.00 s apart, those of B 2.00 s. On this kernel, readings \
             less than 2 s apart also make a storm of starved cgroups larger. Record both with the same --stat-every."
        );
        let only_samples = told(of(0.5, 4), of(1.0, 2)).expect("a warning");
        assert!(only_samples.contains("A are 500 ms apart") && !only_samples.contains("storm"), "{only_samples}");
    }

    #[test]
    fn the_distance_is_the_usual_one() {
        assert_eq!(distance(&Window::default()), None);
        let mut window = Fixture::healthy().every(1.0).seconds(20).window();
        assert_eq!(distance(&window), Some(Nanos::SECOND));
        window.host_series.drain(4..8);
        assert_eq!(distance(&window), Some(Nanos::SECOND), "a hole changes nothing");
        window.host_series.truncate(1);
        assert_eq!(distance(&window), None);
    }
}
