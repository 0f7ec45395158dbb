// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recordings whose samples are too far apart for a twin of starved cgroups. Since 6.9, the kernel adds up the dirty counts of a
//! cgroup every 2 s, and writers are paused and freed in that rhythm. Samples further apart do not show the rhythm. This module
//! names the likely reason of an error and measures no error itself.

use crate::{Twin, backtest};
use floodline_analysis::prediction::Seen;
use floodline_kernel::FLUSH_TIME;
use floodline_kernel::{Behaviour, MemcgStats};
use floodline_record::human;
use floodline_record::units::Nanos;

/// The rule whose findings depend on the rhythm of the counts.
const RULE: &str = "starved-dirty-budget";

/// Time between two samples, if stalls may lie between them: a sample that is a little late is still one of every 2 s.
pub(crate) fn seconds(every: Nanos) -> Option<f64> {
    (every.0 > FLUSH_TIME.0 / 20 * 21).then(|| every.as_secs_f64())
}

/// Returns advice for a twin that misses its recording, if the time between two samples is the likely reason.
pub(crate) fn hint(twin: &Twin, seen: &[Seen], error: f64) -> Option<String> {
    let is_late = Behaviour::of(twin.kernel).arithmetic.memcg_stats == MemcgStats::RateLimited;
    let is_starved = seen.iter().any(|one| one.rule == RULE);
    let is_sparse = seconds(twin.every).is_some();
    (error > backtest::MISS_MAX && is_late && is_starved && is_sparse).then(|| {
        format!(
            "The likely reason for the error is the time between two samples, {}. This kernel frees paused writers of starved \
             cgroups every 2 s, which such samples do not show. Record again with --every 2s.",
            human::seconds(twin.every.as_secs_f64())
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Demand, Options};
    use floodline_record::severity::Severity;
    use floodline_record::version::KernelVersion;
    use floodline_testkit::incidents::starved_budget;

    #[test]
    fn samples_of_two_seconds_show_what_the_rules_look_for() {
        assert_eq!(seconds(Nanos(2_050_000_000)), None);
        assert_eq!(seconds(Nanos(5_000_000_000)), Some(5.0));
    }

    #[test]
    fn only_sparse_samples_of_starved_cgroups_are_a_reason() {
        let seen = |rule| vec![Seen { rule, severity: Severity::Critical }];
        let recorded = crate::Recorded::from_records(&starved_budget().records());
        let twin = crate::of(&recorded, &Options::default()).expect("a twin");
        let check = |seconds: f64, kernel, rule, error, expect: bool| {
            let every = Nanos((seconds * 1e9) as u64);
            let twin = Twin { every, kernel, demand: Demand::Free, ..twin.clone() };
            assert_eq!(hint(&twin, &seen(rule), error).is_some(), expect, "{seconds} {rule} {error}");
        };
        let (new, old) = (KernelVersion::new(6, 12, 0), KernelVersion::new(6, 1, 0));
        check(5.0, new, RULE, 0.67, true);
        check(2.05, new, RULE, 0.67, false);
        check(1.0, new, RULE, 0.67, false);
        check(5.0, old, RULE, 0.67, false);
        check(5.0, new, "dirty-cliff", 0.67, false);
        check(5.0, new, RULE, 0.2, false);
    }
}
