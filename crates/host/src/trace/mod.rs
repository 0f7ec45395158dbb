// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tracing by BPF programs on the kernel's tracepoints, for facts that are in no file of /proc or /sys. `offer` lists
//! what a machine has for a tracer and attaches nothing. `part` lists the parts, each a C file of `bpf/` and a file
//! here.
//! `load` loads a part into the kernel. `tracer` is all parts as the collector uses them. Programs add up in the
//! kernel, in bounded tables that are read once per sample.

mod budget;
mod bytes;
mod drain;
mod excerpt;
mod flusher;
mod layout;
mod load;
mod missed;
mod offer;
mod part;
mod proved;
#[cfg(test)]
mod specimen;
mod switches;
mod table;
mod throttle;
mod tracefs;
mod tracepoint;
mod tracer;

pub use budget::Budget;
pub use offer::offer;
pub use proved::{PROVED, is_proved};
pub use tracepoint::{TRACEPOINTS, Tracepoint};
pub use tracer::{Tracer, Traces};

use crate::collect::now;
use crate::plan::Plan;
use floodline_record::capability::{Capabilities, SCHEMA, of_sources};
use floodline_record::gap::{Cause, Gap, Source};
use floodline_record::id::Hierarchy;
use floodline_record::name::Name;

/// Returns the state of every source of a machine, from the gaps of one sample under `plan`. Sources of the tracer are
/// not planned if `tracer` is `None`; otherwise its gaps state which are missing.
pub fn capabilities(
    root: &crate::HostRoot,
    release: &str,
    plan: &Plan,
    gaps: &[Gap],
    tracer: Option<&Tracer>,
) -> Capabilities {
    let (not_used, absent) = of_hierarchy(plan);
    let not_traced: Vec<Gap> = match tracer {
        Some(tracer) => tracer.gaps().to_vec(),
        None => Tracer::sources().map(|source| Gap::new(source, Cause::NotPlanned)).collect(),
    };
    let gaps: Vec<Gap> = gaps.iter().cloned().chain(absent).chain(not_traced).collect();
    Capabilities {
        schema: SCHEMA,
        kernel_release: Name::from(release).to_string(),
        sources: of_sources(&gaps, &not_used),
        tracing: offer(root),
    }
}

/// Returns the sources that are not used because another hierarchy has their content, and gaps for the sources that the
/// hierarchy in use lacks.
fn of_hierarchy(plan: &Plan) -> (Vec<Source>, Vec<Gap>) {
    let of_cgroups = || Source::ALL.iter().copied().filter(|source| source.path().starts_with("CGROUP/"));
    let Some(memory) = &plan.memory else {
        let cause = || Cause::NotMounted { fs_type: "cgroup2".into() };
        let absent = of_cgroups().chain([Source::CgroupV1Blkio, Source::BlkioLimits, Source::IoCost]);
        return (Vec::new(), absent.map(|source| Gap::new(source, cause())).collect());
    };
    if memory.hierarchy == Hierarchy::V2 {
        let version_1 = [Source::CgroupV1Memory, Source::CgroupV1Blkio, Source::BlkioLimits];
        let not_used = version_1.into_iter().filter(|&one| one == Source::CgroupV1Memory || plan.blkio.is_none());
        return (not_used.collect(), Vec::new());
    }
    // blkio has the content of io.stat and io.max. Version 1 has no source for the rest.
    let not_used = vec![Source::CgroupV2, Source::IoStat, Source::IoLimits];
    let read = [Source::MemoryStat, Source::MemoryCurrent, Source::MemoryLimits, Source::IoStat, Source::IoLimits];
    let absent = of_cgroups().chain([Source::IoCost]).filter(|source| !read.contains(source));
    let cause = || Cause::Unsupported { since: "in cgroup version 2 only".into() };
    (not_used, absent.map(|source| Gap::new(source, cause())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Needs, Tree};
    use floodline_record::facts::HostFacts;

    fn check(hierarchy: Option<Hierarchy>, not_used: &[Source], absent: &[Source], read: &[Source]) {
        let tree = |hierarchy| Tree { hierarchy, mount: "/m".into() };
        let plan = Plan {
            memory: hierarchy.map(tree),
            blkio: (hierarchy == Some(Hierarchy::V1Memory)).then(|| tree(Hierarchy::V1Blkio)),
            ..Plan::for_needs(&HostFacts::default(), Needs::ALL)
        };
        let (found, gaps) = of_hierarchy(&plan);
        assert_eq!(found, not_used);
        let lacks = |source: &Source| gaps.iter().any(|gap| gap.source == *source);
        assert!(absent.iter().all(lacks), "{gaps:?}");
        assert!(!read.iter().any(lacks), "{gaps:?}");
    }

    #[test]
    fn what_another_hierarchy_has_is_not_used_and_what_none_has_is_missing() {
        use Source::*;
        let of_version_1 = &[CgroupV1Memory, CgroupV1Blkio, BlkioLimits];
        check(Some(Hierarchy::V2), of_version_1, &[], &[CgroupV2, MemoryStat, IoStat, IoLimits]);
        let version_1 = &[CgroupV1Memory, CgroupV1Blkio, BlkioLimits, MemoryStat, IoStat, IoLimits];
        check(Some(Hierarchy::V1Memory), &[CgroupV2, IoStat, IoLimits], &[IoPressure, MemoryEvents, IoCost], version_1);
        check(None, &[], &[MemoryStat, IoStat, CgroupV1Blkio, BlkioLimits], &[Vmstat]);
    }
}
