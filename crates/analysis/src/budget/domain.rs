// SPDX-License-Identifier: MIT OR Apache-2.0
//! Thresholds of the global domain and of one memcg domain. Where an input lies between two numbers, both go through
//! the kernel's arithmetic, and the result lies between the two results.

use super::available::{available, noise};
use super::headroom::{Above, headroom};
use super::inputs::{Inputs, PageBound, gap};
use super::{Binding, Bound, CgroupBudget, DomainBudget, Headroom, MemoryBound, Outlook, Setting};
use crate::report::{Evidence, Value};
use floodline_kernel::{
    DirtyTunables, DomainLimits, MdtcAvailInput, TaskClass, domain_dirty_limits, freerun_ceiling, mdtc_calc_avail,
    memcg_units, uncorrected_limits,
};
use floodline_record::gap::{Gap, Source};
use floodline_record::id::EntityId;
use floodline_record::name::Name;
use floodline_record::units::Bytes;

/// The machine-wide domain, and the kernel's output that differs from the arithmetic.
pub(super) fn global(inputs: &Inputs) -> (DomainBudget, Vec<Evidence>) {
    let host = inputs.host();
    let mut missing = inputs.missing.clone();
    let mut disagreements = Vec::new();
    let kernel = match (host.nr_dirty_threshold, host.nr_dirty_background_threshold) {
        (Some(thresh), Some(bg_thresh)) => Some(DomainLimits { thresh: thresh.0, bg_thresh: bg_thresh.0 }),
        _ => None,
    };
    let available = available(inputs, kernel, &mut missing, &mut disagreements);
    let computed = inputs.tunables.zip(available).map(|(tunables, avail)| limits(inputs, &tunables, avail, None));
    if inputs.tunables.is_none() {
        missing.push(gap(inputs.window, Source::SysctlVm, "dirty_ratio, dirty_bytes and their background pair"));
    }
    let limits = match kernel {
        // The kernel's own numbers need none of the inputs.
        Some(kernel) => {
            missing.retain(|gap| gap.source == Source::KernelConfig);
            Some(LimitBounds {
                thresh: PageBound::exactly(kernel.thresh),
                bg_thresh: PageBound::exactly(kernel.bg_thresh),
            })
        }
        None => computed,
    };
    if let (Some(kernel), Some(computed)) = (kernel, computed) {
        let near = |ours: PageBound, theirs: u64| {
            ours.low.saturating_sub(noise(theirs)) <= theirs && theirs <= ours.high.saturating_add(noise(theirs))
        };
        for (name, ours, theirs) in [
            ("nr_dirty_threshold", computed.thresh, kernel.thresh),
            ("nr_dirty_background_threshold", computed.bg_thresh, kernel.bg_thresh),
        ] {
            if !near(ours, theirs) {
                disagreements.push(Evidence {
                    name: format!("{name} as the kernel prints it, against the arithmetic"),
                    value: Value::Integer(theirs),
                    unit: "pages",
                    threshold: Some(Value::Integer(ours.high)),
                    source: format!("/proc/vmstat {name}, domain_dirty_limits"),
                });
            }
        }
    }
    let binding = inputs.tunables.map(|tunables| Binding {
        setting: setting(&tunables, None),
        memory: MemoryBound::Machine,
        global_is_less: false,
    });
    let budget = DomainBudget {
        dirty: host.nr_dirty.map(|pages| inputs.bytes(pages.0)),
        writeback: host.nr_writeback.map(|pages| inputs.bytes(pages.0)),
        available: available.map(|pages| inputs.bound(pages)),
        computed_thresh: kernel.and(computed).map(|computed| inputs.bound(computed.thresh)),
        binding,
        missing,
        ..thresholds(inputs, limits)
    };
    (budget, disagreements)
}

/// Dirtyable memory of the machine and its hard and background threshold from counters alone, regardless of the
/// kernel's output.
pub(super) fn computed_global(inputs: &Inputs) -> Option<(PageBound, (PageBound, PageBound))> {
    let avail = available(inputs, None, &mut Vec::new(), &mut Vec::new())?;
    let limits = limits(inputs, &inputs.tunables?, avail, None);
    Some((avail, (limits.thresh, limits.bg_thresh)))
}

/// One cgroup's domain on a machine with that much dirtyable memory and that hard threshold.
pub(super) fn cgroup_of(
    inputs: &Inputs,
    avail: PageBound,
    thresh: PageBound,
    path: &Name,
    id: EntityId,
) -> Option<CgroupBudget> {
    let global = DomainBudget {
        available: Some(inputs.bound(avail)),
        thresh: Some(inputs.bound(thresh)),
        ..DomainBudget::default()
    };
    cgroup(inputs, &global, &mut Above::default(), path, id)
}

/// One cgroup's domain; `None` for a cgroup without a memory controller of its own and for the root.
/// `above` keeps what is known of the ancestors of the cgroup before.
pub(super) fn cgroup(
    inputs: &Inputs,
    global: &DomainBudget,
    above: &mut Above,
    path: &Name,
    id: EntityId,
) -> Option<CgroupBudget> {
    let row = inputs.cgroup(id)?;
    // Without the controller there is no memory.stat. The root memcg has no domain of its own; the root of
    // a cgroup namespace is an ordinary cgroup and has a limit to read.
    let has_memory = row.inactive_file.is_some() || row.file.is_some() || row.memory_current.is_some();
    let is_root = path.as_bytes() == b"/" && inputs.limits(id).is_none_or(|limits| limits.memory_max.is_none());
    if is_root || !has_memory {
        return None;
    }
    let mut missing = inputs.missing.clone();
    let room = headroom(inputs, above, (path, id), &mut missing);
    let pages = |bytes: Option<Bytes>| bytes.map(|bytes| inputs.pages(bytes));
    let file = match (pages(row.inactive_file), pages(row.active_file)) {
        (Some(inactive), Some(active)) => PageBound::exactly(inactive.saturating_add(active)),
        _ => {
            missing.push(gap(inputs.window, Source::MemoryStat, &format!("{path}: inactive_file, active_file")));
            // `file` counts shared memory and unevictable pages too.
            PageBound { low: 0, high: pages(row.file).unwrap_or(u64::MAX) }
        }
    };
    let dirty = match (pages(row.file_dirty), pages(row.file_writeback)) {
        (Some(dirty), Some(writeback)) => PageBound::exactly(dirty.saturating_add(writeback)),
        _ => {
            missing.push(gap(inputs.window, Source::MemoryStat, &format!("{path}: file_dirty, file_writeback")));
            ANY
        }
    };
    let headroom = room.as_ref().map_or(PageBound::exactly(u64::MAX), |room| room.pages);
    let global_avail =
        global.available.map(|bound| PageBound { low: inputs.pages(bound.low), high: inputs.pages(bound.high) });
    let available = global_avail.map(|global_avail| dirtyable(inputs, file, headroom, dirty, global_avail));
    let limits = match (inputs.tunables, available, global_avail) {
        (Some(tunables), Some(available), Some(global_avail)) => {
            Some(limits(inputs, &tunables, available, Some(global_avail)))
        }
        _ => None,
    };
    // A missing input of the global domain matters here only if it makes a difference.
    if limits.is_none_or(|limits| !(limits.thresh.is_exact() && limits.bg_thresh.is_exact())) {
        let lacking = available_gaps(inputs);
        missing.extend(lacking);
    }
    let memory = memory_bound(inputs, room.as_ref(), file, headroom, available);
    let global_is_less = match (limits, global.thresh) {
        (Some(limits), Some(global)) => global.high <= inputs.bytes(limits.thresh.low),
        _ => false,
    };
    let binding = inputs.tunables.map(|tunables| Binding {
        setting: setting(&tunables, global_avail.map(|global_avail| (inputs, global_avail))),
        memory,
        global_is_less,
    });
    let domain = DomainBudget {
        dirty: row.file_dirty,
        writeback: row.file_writeback,
        available: available.map(|pages| inputs.bound(pages)),
        binding,
        missing,
        ..thresholds(inputs, limits)
    };
    let headroom =
        room.map(|room| Headroom { bytes: inputs.bound(room.pages), of: room.of, path: room.path, limit: room.limit });
    Some(CgroupBudget {
        cgroup: id,
        path: path.clone(),
        domain,
        headroom,
        is_inner: false,
        wbs: Vec::new(),
        outlook: Outlook::default(),
    })
}

/// Any number of pages.
const ANY: PageBound = PageBound { low: 0, high: u64::MAX };

/// Memory of a memcg domain that may become dirty, least where everything else is at its least and the machine's
/// dirty pages are at their most.
fn dirtyable(
    inputs: &Inputs,
    file: PageBound,
    headroom: PageBound,
    dirty: PageBound,
    global_avail: PageBound,
) -> PageBound {
    let global_dirty = inputs.global_dirty().map_or(ANY, PageBound::exactly);
    let at = |pick: fn(PageBound) -> u64, global_dirty: u64| {
        let (file, headroom) = (pick(file), pick(headroom));
        let (dirty, global_avail) = (pick(dirty), pick(global_avail));
        mdtc_calc_avail(&inputs.algorithm, &MdtcAvailInput { file, headroom, dirty, global_avail, global_dirty })
    };
    PageBound { low: at(|bound| bound.low, global_dirty.high), high: at(|bound| bound.high, global_dirty.low) }
}

/// Hard threshold of a memcg domain with that much dirtyable memory, which the machine has to have.
pub(super) fn thresh_at(inputs: &Inputs, global: &DomainBudget, avail: PageBound) -> Option<PageBound> {
    let global = global.available?;
    let global = PageBound { low: inputs.pages(global.low), high: inputs.pages(global.high) };
    let avail = PageBound { low: avail.low.min(global.low), high: avail.high.min(global.high) };
    Some(limits(inputs, &inputs.tunables?, avail, Some(global)).thresh)
}

/// Bytes by which a share may be larger than its threshold besides a tenth of it.
const NOISE: u64 = 256 << 10;

/// A share that the kernel prints cannot be larger than the threshold it is a part of.
pub(super) fn disagreement(budget: &CgroupBudget) -> Option<Evidence> {
    let thresh = budget.domain.thresh?.high;
    let (wb, printed) = budget
        .wbs
        .iter()
        .filter(|wb| wb.is_printed)
        .filter_map(|wb| Some((wb, wb.thresh?.high)))
        .max_by_key(|(_, thresh)| *thresh)?;
    // The readings are not of one instant, and the kernel's memcg counters are up to 2 s old.
    (printed.0 > thresh.0.saturating_add(thresh.0 / 10).saturating_add(NOISE)).then(|| Evidence {
        name: format!("share of {} on {} as the kernel prints it, against the threshold", budget.path, wb.bdi),
        value: Value::Integer(printed.0),
        unit: "bytes",
        threshold: Some(Value::Integer(thresh.0)),
        source: "debugfs wb_stats WbDirtyThresh, domain_dirty_limits".to_owned(),
    })
}

/// Inputs of machine-wide dirtyable memory that were not read.
fn available_gaps(inputs: &Inputs) -> Vec<Gap> {
    let mut missing = Vec::new();
    if inputs.tunables.is_none() {
        missing.push(gap(inputs.window, Source::SysctlVm, "dirty_ratio, dirty_bytes and their background pair"));
    }
    available(inputs, None, &mut missing, &mut Vec::new());
    if inputs.global_dirty().is_none() {
        missing.push(gap(inputs.window, Source::Vmstat, "nr_dirty, nr_writeback"));
    }
    missing
}

fn memory_bound(
    inputs: &Inputs,
    room: Option<&super::headroom::Room>,
    file: PageBound,
    headroom: PageBound,
    available: Option<PageBound>,
) -> MemoryBound {
    let Some(room) = room else { return MemoryBound::CleanElsewhere };
    if inputs.algorithm.mdtc_avail == floodline_kernel::MdtcAvail::WithinClean {
        return MemoryBound::Unknown;
    }
    let (of, limit) = (room.of, room.limit);
    if headroom.high == 0 {
        return MemoryBound::FilePages { of, limit };
    }
    match available {
        Some(available) if available.low >= file.low.saturating_add(headroom.high) => {
            MemoryBound::Headroom { of, limit }
        }
        Some(available) if available.high < file.low.saturating_add(headroom.low) => MemoryBound::CleanElsewhere,
        _ => MemoryBound::Unknown,
    }
}

fn setting(tunables: &DirtyTunables, memcg: Option<(&Inputs, PageBound)>) -> Setting {
    match tunables.dirty_bytes {
        0 => Setting::Ratio { percent: tunables.dirty_ratio },
        bytes => Setting::Bytes {
            bytes: Bytes(bytes),
            units: memcg.map(|(inputs, global_avail)| {
                let units = |avail| memcg_units(&inputs.algorithm, bytes, avail, inputs.page_size);
                (units(global_avail.high), units(global_avail.low))
            }),
        },
    }
}

/// Thresholds that lie between two each.
#[derive(Clone, Copy)]
struct LimitBounds {
    thresh: PageBound,
    bg_thresh: PageBound,
}

/// Thresholds of a domain whose dirtyable memory lies between two. More memory of its own makes them
/// larger, more memory of the machine smaller.
fn limits(inputs: &Inputs, tunables: &DirtyTunables, avail: PageBound, global_avail: Option<PageBound>) -> LimitBounds {
    let (algorithm, page_size) = (&inputs.algorithm, inputs.page_size);
    let (globally_high, globally_low) = (global_avail.map(|avail| avail.high), global_avail.map(|avail| avail.low));
    let at = |avail, global| domain_dirty_limits(algorithm, tunables, page_size, avail, global, TaskClass::Normal);
    let low = at(avail.low, globally_high);
    if avail.is_exact() && global_avail.is_none_or(PageBound::is_exact) {
        return LimitBounds { thresh: PageBound::exactly(low.thresh), bg_thresh: PageBound::exactly(low.bg_thresh) };
    }
    let high = at(avail.high, globally_low);
    let thresh = PageBound { low: low.thresh, high: high.thresh };
    let asked = |avail, global| uncorrected_limits(algorithm, tunables, page_size, avail, global).1;
    let (asked_low, asked_high) = (asked(avail.low, globally_high), asked(avail.high, globally_low));
    if thresh.is_exact() && (asked_low == asked_high || asked_low >= thresh.low) {
        return LimitBounds { thresh, bg_thresh: PageBound::exactly(low.bg_thresh) };
    }
    // Putting the background threshold below the other makes it jump: between the ends it is what was
    // asked for or half the hard threshold.
    let never_corrected = asked_high < low.thresh;
    let bg_thresh = PageBound {
        low: if never_corrected { asked_low } else { asked_low.min(low.thresh / 2) },
        high: asked_high.min(high.thresh.saturating_sub(1)).max(low.bg_thresh),
    };
    LimitBounds { thresh, bg_thresh }
}

fn thresholds(inputs: &Inputs, limits: Option<LimitBounds>) -> DomainBudget {
    let Some(LimitBounds { thresh, bg_thresh }) = limits else { return DomainBudget::default() };
    let freerun = PageBound {
        low: freerun_ceiling(thresh.low, bg_thresh.low),
        high: freerun_ceiling(thresh.high, bg_thresh.high),
    };
    let bound = |pages: PageBound| -> Option<Bound> { Some(inputs.bound(pages)) };
    DomainBudget {
        thresh: bound(thresh),
        bg_thresh: bound(bg_thresh),
        freerun: bound(freerun),
        ..DomainBudget::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::LimitKind;
    use crate::budget::headroom::Room;
    use floodline_record::id::EntityId;
    use floodline_record::name::Name;

    #[test]
    fn the_memory_of_a_cgroup_is_bounded_by_its_room_or_by_the_machine() {
        let window = floodline_testkit::Fixture::healthy().window();
        let inputs = Inputs::of(&window);
        let (of, limit) = (EntityId(7), LimitKind::Max);
        let room = Room { pages: PageBound::exactly(0), of, path: Name::from("/app"), limit };
        let bound = |low, high| PageBound { low, high };
        let check = |headroom, available, expect| {
            let found = memory_bound(&inputs, Some(&room), bound(10, 20), headroom, available);
            assert_eq!(found, expect, "{headroom:?} {available:?}");
        };
        let headroom = MemoryBound::Headroom { of, limit };
        check(bound(5, 7), Some(bound(17, 90)), headroom);
        check(bound(5, 7), Some(bound(16, 90)), MemoryBound::Unknown);
        check(bound(5, 7), Some(bound(1, 15)), MemoryBound::Unknown);
        check(bound(5, 7), Some(bound(1, 14)), MemoryBound::CleanElsewhere);
        check(bound(5, 7), None, MemoryBound::Unknown);
        check(bound(0, 0), Some(bound(1, 2)), MemoryBound::FilePages { of, limit });
        assert_eq!(memory_bound(&inputs, None, bound(10, 20), bound(5, 7), None), MemoryBound::CleanElsewhere);
    }
}
