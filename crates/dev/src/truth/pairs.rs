// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pairs of recordings of one workload that differ in settings, kernel or cgroup mode: what really happened before and
//! after a change.

use super::variants::{Knobs, Variants, settings};
use crate::input::Workload;
use floodline_analysis::prediction::Setting;
use floodline_record::facts::{CgroupMode, HostFacts};
use floodline_record::sample::HostRow;
use floodline_record::version::KernelVersion;
use floodline_scenario::Machine;
use floodline_sim::Speed;
use floodline_twin::Recorded;
use std::collections::BTreeSet;

/// A recording of a real run of a scenario.
pub(super) struct One {
    pub(super) scenario: String,
    /// Variant, without the mark of a run with other settings.
    pub(super) variant: String,
    /// Whether it ran with the changes that `doctor` printed.
    pub(super) is_advised: bool,
    pub(super) kernel: KernelVersion,
    /// When it began, nanoseconds on the wall clock.
    pub(super) began: u64,
    /// Slowdown of its CPUs, percent, where recorded: a guest is slower while its host has other work.
    pub(super) slowdown: Option<u64>,
    pub(super) recorded: Recorded,
}

/// Durations of runs of one workload differ by this share at most: a run ends when its last wait does.
const DURATION_SHARE: f64 = 0.15;
/// Memory of two guests of one size differs by what their kernels keep.
const MEMORY_SHARE: f64 = 0.03;

/// CPUs of two guests are equally fast if one is at most this many times as slow as the other.
const SLOWER_MAX: f64 = 1.5;

/// Whether the CPUs of two recordings were about equally fast.
pub(super) fn is_as_fast(one: &One, other: &One) -> bool {
    let (Some(one), Some(other)) = (one.slowdown, other.slowdown) else { return true };
    one.max(other) as f64 <= SLOWER_MAX * one.min(other) as f64
}

/// What differs between two recordings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Move {
    #[default]
    Settings,
    Kernel,
    Cgroups,
    /// Another kernel with another cgroup mode.
    Both,
}

/// Values of a recording, or the reason why it is left out.
pub(super) fn one(recorded: Recorded) -> Result<One, &'static str> {
    let window = &recorded.window;
    let Workload { scenario, variant, kernel, .. } = Workload::of(window)?;
    let (variant, is_advised) = match variant.strip_suffix(".advised") {
        Some(bare) => (bare.to_owned(), true),
        None => (variant, false),
    };
    let began = window.first_at.map_or(0, |first| first.wall.0);
    let slowdown = Speed::of(window).map(|speed| speed.slowdown.max(1));
    Ok(One { scenario, variant, is_advised, kernel, began, slowdown, recorded })
}

/// The change from one recording to another, if they are of the same workload on the same machine; empty if nothing
/// changed. `twin_of` makes the machine of a recording's twin.
pub(super) fn change(
    before: &One,
    after: &One,
    variants: &Variants,
    twin_of: impl Fn(&One) -> Option<Machine>,
) -> Option<(Move, Vec<Setting>)> {
    let (from, to) = (&before.recorded.window, &after.recorded.window);
    let (facts_from, facts_to) = (from.facts.as_ref()?, to.facts.as_ref()?);
    let is_near = |one: f64, other: f64, share: f64| (one - other).abs() <= share * one.max(other);
    let is_same = before.scenario == after.scenario
        && is_near(from.seconds(), to.seconds(), DURATION_SHARE)
        && is_near(memory(facts_from), memory(facts_to), MEMORY_SHARE);
    if !is_same {
        return None;
    }
    let knobs = variants.differ(&before.scenario, &before.variant, &after.variant)?;
    let is_advised = before.is_advised != after.is_advised;
    if is_advised && variants.has_journal(&before.scenario, &before.variant) {
        return None;
    }
    let is_other_type = knobs.contains("mounts.type");
    if !is_other_type && disks(facts_from) != disks(facts_to) {
        return None;
    }
    let mut changed = of_memory(&from.host.last, &to.host.last)?;
    if is_advised || !knobs.is_empty() {
        let wanted: Option<&Knobs> = (!is_advised).then_some(&knobs);
        let of_twins = settings(&twin_of(before)?, &twin_of(after)?, wanted)?;
        // The variants differ in a property that the twins lack.
        if of_twins.is_empty() && !knobs.is_empty() {
            return None;
        }
        changed.extend(of_twins);
    }
    let is_v2 = |facts: &HostFacts| facts.cgroups.mode == CgroupMode::V2;
    let (is_moved, is_other) = (before.kernel != after.kernel, is_v2(facts_from) != is_v2(facts_to));
    if is_other {
        changed.push(Setting::new("cgroup", if is_v2(facts_to) { "v2" } else { "v1" }));
    }
    if is_moved {
        changed.push(Setting::new("kernel", after.kernel));
    }
    let kind = match (is_moved, is_other) {
        (false, false) => Move::Settings,
        (true, false) => Move::Kernel,
        (false, true) => Move::Cgroups,
        (true, true) => Move::Both,
    };
    Some((kind, changed))
}

/// Whether a change is of one kind only: settings, or kernel and cgroup mode.
pub(super) fn is_of_one_kind(kind: Move, settings: &[Setting]) -> bool {
    let is_move = |setting: &Setting| matches!(setting.key.as_str(), "kernel" | "cgroup");
    kind == Move::Settings || settings.iter().all(is_move)
}

fn memory(facts: &HostFacts) -> f64 {
    facts.mem_total.map_or(0.0, |bytes| bytes.0 as f64)
}

/// Size of each device and type of each filesystem on one.
fn disks(facts: &HostFacts) -> (Vec<Option<u64>>, BTreeSet<String>) {
    let sizes = facts.devices.iter().map(|device| device.size.map(|size| size.0)).collect();
    let types = facts.mounts.iter().map(|mount| format!("{} {}", mount.mount_point, mount.fs_type));
    let is_disk = |text: &String| ["ext4", "xfs", "btrfs"].iter().any(|name| text.ends_with(name));
    (sizes, types.filter(is_disk).collect())
}

/// Settings of `vm` that differ; `None` where a recording lacks them.
fn of_memory(from: &HostRow, to: &HostRow) -> Option<Vec<Setting>> {
    let mut settings = Vec::new();
    let mut put = |name: &str, was: u64, is: u64| {
        if was != is {
            settings.push(Setting::new(format!("vm.{name}"), is));
        }
    };
    // Of a pair the kernel shows 0 for the member that is not in force.
    let background = (from.dirty_background_bytes?.0, to.dirty_background_bytes?.0);
    match background.1 {
        0 => put("dirty_background_ratio", from.dirty_background_ratio?.0, to.dirty_background_ratio?.0),
        bytes => put("dirty_background_bytes", background.0, bytes),
    }
    let hard = (from.dirty_bytes?.0, to.dirty_bytes?.0);
    match hard.1 {
        0 => put("dirty_ratio", from.dirty_ratio?.0, to.dirty_ratio?.0),
        bytes => put("dirty_bytes", hard.0, bytes),
    }
    let ages = [
        ("dirty_expire_centisecs", from.dirty_expire_centisecs, to.dirty_expire_centisecs),
        ("dirty_writeback_centisecs", from.dirty_writeback_centisecs, to.dirty_writeback_centisecs),
    ];
    for (name, was, is) in ages {
        put(name, was?.0, is?.0);
    }
    Some(settings)
}
