// SPDX-License-Identifier: MIT OR Apache-2.0
//! Effect of sampling on the host. A read of `memory.stat` or `io.stat` makes the kernel add up the counters that each CPU
//! keeps for a cgroup. Since 6.9, throttling reads the sums only, and the kernel adds them up by itself every 2 s
//! (mm/memcontrol.c, `FLUSH_TIME`). Samples that are closer together free paused writers earlier. In a storm, these writers
//! dirty the same pages again.

use floodline_kernel::MemcgStats;
use floodline_record::facts::CgroupMode;
use floodline_record::human;
use floodline_record::units::Nanos;
use floodline_record::window::Window;

/// Period at which the kernel adds up the counters of memcgs (`FLUSH_TIME`).
pub const FOLD: Nanos = Nanos(2 * Nanos::SECOND.0);

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

/// Returns the median time between two samples if it raises storms of starved cgroups on this host, `None` otherwise.
pub fn raises_storms(window: &Window) -> Option<Nanos> {
    // A sample that is a little early is still one of every 2 s.
    let least = Nanos(FOLD.0 / 20 * 19);
    distance(window).filter(|distance| *distance < least && reads_what_throttles(window))
}

/// How a host was sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Watched {
    /// Time between two samples.
    every: Option<Nanos>,
    /// Whether samples raise storms of starved cgroups there if they are close together.
    raises: bool,
}

impl Watched {
    /// Derives it from a window of samples.
    pub fn of(window: &Window) -> Watched {
        Watched { every: distance(window), raises: reads_what_throttles(window) }
    }
}

/// Factor between two distances of samples from which their recordings show different things.
const APART: f64 = 1.25;

/// Returns a warning if the samples of one side are closer together than those of the other. Each side is its name and its windows.
pub fn different(base: (&str, &[Watched]), other: (&str, &[Watched])) -> Option<String> {
    let seconds = |watched: &[Watched]| -> Vec<f64> {
        watched.iter().filter_map(|one| Some(one.every?.as_secs_f64()).filter(|seconds| *seconds > 0.0)).collect()
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
    let is_close = least < FOLD.as_secs_f64() && base.1.iter().chain(other.1).any(|one| one.raises);
    let storms = match is_close {
        true => " On this kernel, samples less than 2 s apart also make a storm of starved cgroups larger.",
        false => "",
    };
    Some(format!(
        "The samples of {} are {} apart, those of {} {}. Neither shows peaks and waits between two samples.{storms} Record both \
         with the same --every.",
        base.0,
        told(&ours),
        other.0,
        told(&theirs)
    ))
}

/// Sentences of a finding of starved cgroups about the samples that raise the storm.
pub fn sentence(distance: Nanos) -> String {
    format!(
        "Floodline adds to it. Its samples, {} apart, read counters of cgroups, and each read lets paused writers continue \
         earlier. On Linux 6.12, such a storm dirtied 1.7 times as much with samples 1 s apart as with samples 2 s apart, and \
         3.2 to 3.6 times as much with samples 500 ms apart. With --every 2s, the effect is small.",
        human::seconds(distance.as_secs_f64())
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_testkit::Fixture;
    use floodline_testkit::incidents::{starved_budget, starved_budget_6_1};

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
