// SPDX-License-Identifier: MIT OR Apache-2.0
//! Result of a rule whose input is missing: the gap recorded when the reading failed. Without one, a gap that names the
//! missing part of the recording.

use super::Verdict;
use floodline_record::gap::{Cause, Gap, Source};
use floodline_record::window::Window;

/// Returns the gap of a reading that a rule needed: the recorded one, or a new one. `what` names the file or field
/// where the source alone is not specific enough.
pub fn gap(window: &Window, source: Source, what: &str) -> Gap {
    let recorded = || window.gaps_of(source).filter(|gap| gap.entity.is_none());
    recorded()
        .find(|gap| gap.detail.as_deref() == Some(what))
        .or_else(|| recorded().next())
        .or_else(|| window.gaps_of(source).next())
        .cloned()
        .unwrap_or_else(|| Gap::detailed(source, Cause::NotRecorded, what))
}

/// [`Verdict::NotChecked`] for one missing reading.
pub fn not_checked(window: &Window, source: Source, what: &str) -> Verdict {
    Verdict::NotChecked(vec![gap(window, source, what)])
}

/// Whether counters can be turned into rates: two samples some time apart.
pub fn has_rates(window: &Window) -> bool {
    window.samples >= 2 && window.seconds() > 0.0
}

/// Returns the gap of a rule that needs more than one sample. `what` is the counter.
pub fn needs_time(source: Source, what: &str) -> Gap {
    Gap::detailed(source, Cause::TooShort { need: "--for 10s".into() }, what)
}

/// Returns the gap of a rule that needs an observation of some seconds. `what` is the counter.
pub fn needs_seconds(source: Source, seconds: f64, what: &str) -> Gap {
    let need = format!("--for {:.0}s", seconds.ceil());
    Gap::detailed(source, Cause::TooShort { need: need.into() }, what)
}

/// Returns the gap of a rate: a window that is too short, otherwise the missing reading.
pub fn rate_gap(window: &Window, source: Source, what: &str) -> Gap {
    if has_rates(window) { gap(window, source, what) } else { needs_time(source, what) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorded_gap_is_preferred_to_a_made_one() {
        let recorded = Gap::new(Source::DebugBdiStats, Cause::NotMounted { fs_type: "debugfs".into() });
        let window = Window { gaps: vec![recorded.clone()], ..Window::default() };
        assert_eq!(gap(&window, Source::DebugBdiStats, "BdiWriteBandwidth"), recorded);
        assert_eq!(gap(&window, Source::Vmstat, "nr_dirtied").cause, Cause::NotRecorded);
    }

    #[test]
    fn one_look_says_that_it_needs_time() {
        let gap = rate_gap(&Window::default(), Source::Vmstat, "nr_dirtied");
        assert_eq!(gap.to_string(), "/proc/vmstat (nr_dirtied): observation too short (use --for 10s)");
    }
}
