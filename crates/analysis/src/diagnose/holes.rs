// SPDX-License-Identifier: MIT OR Apache-2.0
//! Effect of holes in an observation: a rule that judges by single samples cannot rule a condition out where samples
//! are missing.

use super::Verdict;
use crate::report::{HoleLine, Observation};
use floodline_record::gap::{Cause, Gap, Source};
use floodline_record::holes::{Hole, Holes};
use floodline_record::human;
use floodline_record::units::Nanos;
use floodline_record::window::Window;

/// Most holes that a report lists, the longest first.
const LISTED: usize = 8;

/// Share of missed samples from which the observation is insufficient.
const MANY: f64 = 0.25;

/// Seconds of waiting within a hole from which the hole matters.
const WAITED_S: f64 = 0.5;

/// Rules that judge single samples or the intervals between them, and the source they read. The others judge by
/// settings, or by counters that continue while no sample is taken.
const BY_SAMPLES: &[(&str, Source)] = &[
    ("dirty-cliff", Source::Diskstats),
    ("fsync-behind-writeback", Source::Diskstats),
    ("overlay-umount-flush", Source::ProcessStat),
    ("starved-dirty-budget", Source::MemoryStat),
    ("dominant-writer", Source::ProcessIo),
];

/// Returns the verdict, or a gap where missing samples make it uncertain.
pub(super) fn judged(window: &Window, rule: &str, verdict: Verdict) -> Verdict {
    let Verdict::Clear(_) = verdict else { return verdict };
    let reads = BY_SAMPLES.iter().find(|(name, _)| *name == rule).map(|(_, source)| *source);
    match reads.filter(|_| hides(&window.holes)) {
        Some(source) => {
            let what = sentence(&window.holes).unwrap_or_default();
            Verdict::NotChecked(vec![Gap::new(source, Cause::SamplesMissing { what: what.into() })])
        }
        None => verdict,
    }
}

/// Whether the missing samples may hide a stall.
fn hides(holes: &Holes) -> bool {
    let share = holes.missing as f64 / holes.due().max(1) as f64;
    let waited = |hole: &Hole| hole.io_some.is_some_and(|some| some.as_secs_f64() >= WAITED_S);
    share >= MANY || holes.longest.iter().any(waited)
}

/// Number of missing samples and the longest hole; `None` if none is missing.
pub fn sentence(holes: &Holes) -> Option<String> {
    // A sample may be missing at the end, with no sample after it: then there is no hole.
    let hole = match holes.hole() {
        Some(hole) => format!(", the longest hole is {}", human::seconds(hole.length().as_secs_f64())),
        None => String::new(),
    };
    let verb = if holes.missing == 1 { "is" } else { "are" };
    (holes.missing > 0).then(|| format!("{} of {} samples {verb} missing{hole}", holes.missing, holes.due()))
}

/// What a damaged or cut recording lost, in words. `None` for a whole one.
pub fn damage(window: &Window) -> Option<String> {
    window.gaps.iter().find(|gap| gap.source == Source::Recording).map(|gap| gap.cause.to_string())
}

/// The holes, for the report.
pub(super) fn observation(holes: &Holes) -> Observation {
    let seconds = |time: Option<Nanos>| time.map(Nanos::as_secs_f64);
    let line = |hole: &Hole| HoleLine {
        from_wall_ns: hole.from.wall.0,
        length_s: hole.length().as_secs_f64(),
        missing_samples: hole.missing,
        io_pressure_some_s: seconds(hole.io_some),
        memory_pressure_some_s: seconds(hole.memory_some),
    };
    let mut longest: Vec<&Hole> = holes.longest.iter().collect();
    longest.sort_by_key(|hole| std::cmp::Reverse(hole.length()));
    longest.truncate(LISTED);
    longest.sort_by_key(|hole| hole.from.monotonic);
    Observation {
        samples: holes.taken,
        missing_samples: holes.missing,
        longest_hole_s: holes.hole().map_or(0.0, |hole| hole.length().as_secs_f64()),
        holes: longest.into_iter().map(line).collect(),
        may_hide_stall: hides(holes),
        samples_back_in_time: holes.backwards,
        wall_clock_jumps: holes.jumps,
        largest_wall_clock_jump_s: holes.largest_jump.map(|(_, ahead)| ahead as f64 / 1e9),
        largest_wall_clock_jump_wall_ns: holes.largest_jump.map(|(at, _)| at.wall.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::diagnose;
    use floodline_record::record::{Event, Record, What};
    use floodline_testkit::Fixture;

    /// A healthy host. `missing` samples are missing before the last one, while tasks waited for `waited_s` seconds.
    fn report(missing: u64, waited_s: u64) -> crate::report::Report {
        let mut records = Fixture::healthy().seconds(30).records();
        let last = records.len() - 1;
        if let Some(Record::Sample(sample)) = records.last_mut() {
            sample.time.monotonic.0 += missing * 1_000_000_000;
            sample.time.wall.0 += missing * 1_000_000_000;
            sample.host.psi_io_some.get_or_insert_default().0 += waited_s * 1_000_000_000;
        }
        let what = What::Missed { samples: missing };
        records.insert(last, Record::Event(Event { at: Nanos(0), what }));
        diagnose(&Window::from_records(&records), None)
    }

    fn checked(report: &crate::report::Report, rule: &str) -> bool {
        report.ruled_out.iter().any(|one| one.rule == rule)
    }

    #[test]
    fn a_rule_that_judges_by_samples_cannot_clear_what_a_hole_may_hide() {
        assert!(checked(&report(2, 0), "dirty-cliff"), "a short hole in which nothing waited hides nothing");
        for holed in [report(20, 0), report(2, 1)] {
            assert!(holed.observation.may_hide_stall);
            for (rule, _) in BY_SAMPLES {
                assert!(!checked(&holed, rule), "{rule}");
            }
            assert!(checked(&holed, "contradictory-dirty-settings"), "settings are there in every sample");
            let cliff = holed.not_checked.iter().find(|one| one.rule == "dirty-cliff").expect("not checked");
            assert!(cliff.gaps[0].cause.contains("samples are missing, the longest hole is"), "{:?}", cliff.gaps);
        }
    }

    #[test]
    fn every_rule_that_judges_by_samples_is_one() {
        for (name, _) in BY_SAMPLES {
            assert!(crate::diagnose::rule(name).is_some(), "{name}");
        }
    }

    #[test]
    fn the_report_lists_the_holes_with_what_the_kernel_counted_in_them() {
        let observation = report(3, 2).observation;
        assert_eq!((observation.samples, observation.missing_samples), (31, 3));
        assert_eq!(observation.holes.len(), 1);
        assert_eq!((observation.holes[0].length_s, observation.holes[0].missing_samples), (4.0, 3));
        assert!(observation.holes[0].io_pressure_some_s >= Some(2.0), "{observation:?}");
        assert_eq!(report(0, 0).observation.longest_hole_s, 0.0);
    }
}
