// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sources that Floodline can read on one machine, and the facts that are missing without each. Derived from the gaps
//! of one sample, and from what the kernel offers to a tracer. Not a diagnosis: a missing source is not a finding.

use crate::gap::{Gap, Source};
use serde::Serialize;

/// The stable form of the report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Capabilities {
    /// Name and version of this form.
    pub schema: &'static str,
    /// Kernel release, escaped; empty when unknown.
    pub kernel_release: String,
    /// Every source of readings.
    pub sources: Vec<Capability>,
    /// Features that this kernel offers to a tracer, besides the traces among the sources.
    pub tracing: Vec<Capability>,
}

/// Schema of [`Capabilities`].
pub const SCHEMA: &str = "floodline.capabilities/1";

/// One source and its state here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Capability {
    /// Its path, with capitals for the varying parts.
    pub name: String,
    /// Whether it works here.
    pub state: State,
    /// Reasons why it does not work, or not in full; one sentence each.
    pub reasons: Vec<String>,
    /// Facts that are missing without it.
    pub lost_without: String,
}

/// Whether a source works on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// The whole source is missing.
    Missing,
    /// Some of it was not read.
    Partial,
    /// Another source has the same content on this machine.
    NotUsed,
    /// One sample read it in full.
    Available,
}

/// Returns the state of every source, from the gaps of one sample. `not_used` lists the sources that were not read
/// because another hierarchy has their content.
pub fn of_sources(gaps: &[Gap], not_used: &[Source]) -> Vec<Capability> {
    Source::ALL.iter().map(|&source| of_source(source, gaps, not_used.contains(&source))).collect()
}

fn of_source(source: Source, gaps: &[Gap], not_used: bool) -> Capability {
    let gaps: Vec<&Gap> = gaps.iter().filter(|gap| gap.source == source).collect();
    let state = match gaps.as_slice() {
        [] if not_used => State::NotUsed,
        [] => State::Available,
        gaps if gaps.iter().any(|gap| gap.entity.is_none() && gap.detail.is_none()) => State::Missing,
        _ => State::Partial,
    };
    let mut reasons: Vec<String> = Vec::new();
    for gap in gaps {
        let reason = match &gap.detail {
            Some(detail) => format!("{detail}: {}", gap.cause),
            None => gap.cause.to_string(),
        };
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    Capability { name: source.path().into(), state, reasons, lost_without: source.lost_without().into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gap::Cause;
    use crate::id::EntityId;

    fn check(gaps: &[Gap], not_used: &[Source], source: Source, expect: State, reasons: &[&str]) {
        let found = of_sources(gaps, not_used);
        assert_eq!(found.len(), Source::ALL.len());
        let one = found.iter().find(|capability| capability.name == source.path()).unwrap();
        assert_eq!(one.state, expect);
        assert_eq!(one.reasons, reasons);
        assert_eq!(one.lost_without, source.lost_without());
    }

    #[test]
    fn a_source_is_as_good_as_its_gaps() {
        let whole = Gap::new(Source::Vmstat, Cause::NotFound);
        let piece = Gap::detailed(Source::Vmstat, Cause::Vanished, "nr_dirty");
        let of_one = Gap { entity: Some(EntityId(3)), ..Gap::new(Source::ProcessIo, Cause::Vanished) };
        check(&[], &[], Source::Vmstat, State::Available, &[]);
        check(std::slice::from_ref(&whole), &[], Source::Meminfo, State::Available, &[]);
        check(std::slice::from_ref(&whole), &[], Source::Vmstat, State::Missing, &["does not exist here"]);
        check(
            std::slice::from_ref(&piece),
            &[],
            Source::Vmstat,
            State::Partial,
            &["nr_dirty: removed before it was read"],
        );
        check(&[of_one.clone(), of_one], &[], Source::ProcessIo, State::Partial, &["removed before it was read"]);
    }

    #[test]
    fn a_source_that_another_stands_for_is_not_missing_and_a_gap_in_it_still_shows() {
        let gap = Gap::new(Source::CgroupV1Memory, Cause::NotMounted { fs_type: "cgroup".into() });
        check(&[], &[Source::CgroupV1Memory], Source::CgroupV1Memory, State::NotUsed, &[]);
        check(&[gap], &[Source::CgroupV1Memory], Source::CgroupV1Memory, State::Missing, &["cgroup is not mounted"]);
    }
}
