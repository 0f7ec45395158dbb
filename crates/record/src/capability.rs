// SPDX-License-Identifier: MIT OR Apache-2.0
//! What Floodline can see on one machine, source by source, and what it cannot say without each. Made
//! of the gaps of one look, and of what the kernel offers to a tracer. Not a diagnosis: a missing
//! source is no finding.

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
    /// What this kernel offers to a tracer, besides the traces among the sources.
    pub tracing: Vec<Capability>,
}

/// Schema of [`Capabilities`].
pub const SCHEMA: &str = "floodline.capabilities/1";

/// One source and its state here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Capability {
    /// Where it is, with capitals for the varying parts.
    pub name: String,
    /// Whether it works here.
    pub state: State,
    /// Why not, or not in full; one sentence each.
    pub reasons: Vec<String>,
    /// What cannot be said without it.
    pub lost_without: String,
}

/// Whether a source works on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// The whole source is not there.
    Missing,
    /// Some of it was not read.
    Partial,
    /// Another source has the same on this machine.
    NotUsed,
    /// Nothing was missed in one look.
    Available,
}

/// The state of every source, from what one look could not read. `not_used` lists the sources that the
/// look left alone because another hierarchy has their content.
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
