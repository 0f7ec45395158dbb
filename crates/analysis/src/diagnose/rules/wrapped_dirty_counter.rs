// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rule `wrapped-dirty-counter`: a counter of dirty pages, or a threshold, has a value that cannot be:
//! below zero and therefore near 2^64, more than the machine's memory, or not what the settings say.
//! What the kernel decides by it is then wrong, and so is every other finding that uses it.
#![doc = include_str!("wrapped_dirty_counter.md")]

use crate::diagnose::derived::Derived;
use crate::diagnose::{Rule, Verdict};
use crate::report::{Brief, Evidence, Finding, Severity, Step, When};
use floodline_record::gap::{Cause, Gap, Source};
use floodline_record::human;
use floodline_record::id::Entity;
use floodline_record::units::{Bytes, Pages};

/// The rule and its manual page.
pub const RULE: Rule = Rule {
    name: "wrapped-dirty-counter",
    summary: "A counter of dirty pages or a threshold has an impossible value: a kernel bug",
    manual: include_str!("wrapped_dirty_counter.md"),
    explains: &["starved-dirty-budget", "dirty-cliff", "fsync-behind-writeback", "dirty-data-at-risk"],
    check,
};

/// Share of the window with a task waiting for I/O from which a wrong counter hurts.
const HURTS_PRESSURE: f64 = 0.2;
/// A reader of real-time priority sees thresholds raised by a quarter and by a part of the hard limit.
const RAISED: f64 = 1.35;
/// Evidence rows shown; one bug often spoils many counters.
const SHOWN: usize = 8;

/// An impossible value.
struct Impossible {
    name: String,
    /// As printed; `None` where it did not even fit into 64 bits once converted.
    value: Option<(u64, &'static str)>,
    /// The most it could be.
    most: Option<u64>,
    source: String,
}

fn check(derived: &Derived<'_>) -> Verdict {
    let facts = derived.window.facts.as_ref();
    let Some(memory) = facts.and_then(|facts| facts.mem_total).or(derived.window.host.last.mem_total) else {
        return derived.not_checked(Source::Meminfo, "MemTotal");
    };
    if derived.window.host.last.nr_dirty.is_none()
        && derived.window.host.last.mem_dirty.is_none()
        && !has_unfit(derived)
    {
        return derived.not_checked(Source::Vmstat, "nr_dirty");
    }
    let mut found = of_machine(derived, memory);
    found.extend(of_cgroups(derived, memory));
    found.extend(of_wbs(derived, memory));
    found.extend(of_threshold(derived, memory));
    found.extend(unfit(derived).map(|gap| Impossible {
        name: gap.detail.clone().map_or_else(|| format!("a counter of {}", gap.source), String::from),
        value: None,
        most: None,
        source: gap.source.to_string(),
    }));
    if found.is_empty() {
        return Verdict::Clear(format!(
            "every count of dirty pages is below the {} of memory, and the threshold is what the settings say",
            human::bytes(memory.0 as f64)
        ));
    }
    Verdict::Found(vec![finding(derived, &found)])
}

/// Numbers of the sources concerned that the parser could not hold.
fn unfit<'a>(derived: &Derived<'a>) -> impl Iterator<Item = &'a Gap> {
    let sources = [Source::Vmstat, Source::Meminfo, Source::MemoryStat, Source::DebugBdiStats, Source::DebugWbStats];
    derived.window.gaps.iter().filter(move |gap| {
        sources.contains(&gap.source)
            && matches!(&gap.cause, Cause::Malformed { what } if what.contains("fits 64 bits"))
    })
}

fn has_unfit(derived: &Derived<'_>) -> bool {
    unfit(derived).next().is_some()
}

fn of_machine(derived: &Derived<'_>, memory: Bytes) -> Vec<Impossible> {
    let row = &derived.window.host.max;
    let pages = memory.0 / derived.page_size;
    let too_many = |name: &str, value: Option<Pages>| {
        let value = value.filter(|value| value.0 > pages)?;
        Some(Impossible {
            name: name.to_owned(),
            value: Some((value.0, "pages")),
            most: Some(pages),
            source: format!("/proc/vmstat {name}"),
        })
    };
    [
        too_many("nr_dirty", row.nr_dirty),
        too_many("nr_writeback", row.nr_writeback),
        too_many("nr_writeback_temp", row.nr_writeback_temp),
        too_many("nr_unstable", row.nr_unstable),
        too_much("Dirty", row.mem_dirty, memory, "/proc/meminfo Dirty"),
        too_much("Writeback", row.mem_writeback, memory, "/proc/meminfo Writeback"),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn too_much(name: &str, value: Option<Bytes>, memory: Bytes, source: &str) -> Option<Impossible> {
    let value = value.filter(|value| *value > memory)?;
    Some(Impossible {
        name: name.to_owned(),
        value: Some((value.0, "bytes")),
        most: Some(memory.0),
        source: source.to_owned(),
    })
}

fn of_cgroups(derived: &Derived<'_>, memory: Bytes) -> Vec<Impossible> {
    let of = |(id, span): (&_, &floodline_record::window::Span<floodline_record::sample::CgroupRow>)| {
        let label = derived.label(*id);
        let dirty = too_much(&format!("file_dirty of {label}"), span.max.file_dirty, memory, "memory.stat file_dirty");
        let writeback = too_much(
            &format!("file_writeback of {label}"),
            span.max.file_writeback,
            memory,
            "memory.stat file_writeback",
        );
        dirty.into_iter().chain(writeback)
    };
    derived.window.cgroups.iter().flat_map(of).collect()
}

fn of_wbs(derived: &Derived<'_>, memory: Bytes) -> Vec<Impossible> {
    let label =
        |id: &floodline_record::id::EntityId| derived.window.entities.get(id).map(Entity::label).unwrap_or_default();
    let bdis = derived.window.bdis.iter().map(|(id, span)| (id, span.max.reclaimable, span.max.writeback, "bdi stats"));
    let wbs = derived.window.wbs.iter().map(|(id, span)| (id, span.max.reclaimable, span.max.writeback, "wb_stats"));
    let of = |(id, reclaimable, writeback, source): (&floodline_record::id::EntityId, _, _, &str)| {
        let dirty = too_much(&format!("Reclaimable of {}", label(id)), reclaimable, memory, source);
        let writeback = too_much(&format!("Writeback of {}", label(id)), writeback, memory, source);
        dirty.into_iter().chain(writeback)
    };
    bdis.chain(wbs).flat_map(of).collect()
}

/// The hard threshold against the setting, where the setting alone bounds it and did not change meanwhile.
fn of_threshold(derived: &Derived<'_>, memory: Bytes) -> Option<Impossible> {
    let (first, row) = (&derived.window.host.first, &derived.window.host.last);
    if (first.dirty_bytes, first.dirty_ratio) != (row.dirty_bytes, row.dirty_ratio) {
        return None;
    }
    let page_size = derived.page_size;
    let (thresh, bytes, ratio) = (row.nr_dirty_threshold?.0, row.dirty_bytes?.0, row.dirty_ratio?.0);
    let most = match (bytes, ratio) {
        (0, ratio) => memory.0 / page_size * ratio.min(100) / 100,
        // Since 6.10 and its backports a threshold is cut to 32 bits.
        (bytes, _) => bytes.div_ceil(page_size),
    };
    let too_large = thresh as f64 > RAISED * most as f64 + 32.0;
    let too_small = bytes > 0 && thresh < most.min(u64::from(u32::MAX));
    (too_large || too_small).then(|| Impossible {
        name: "nr_dirty_threshold".to_owned(),
        value: Some((thresh, "pages")),
        most: Some(most),
        source: "/proc/vmstat nr_dirty_threshold, domain_dirty_limits()".to_owned(),
    })
}

fn finding(derived: &Derived<'_>, found: &[Impossible]) -> Finding {
    let pressure = derived.dirty.io_pressure_some;
    let hurts = pressure.is_some_and(|share| share >= HURTS_PRESSURE);
    let is_negative = |one: &Impossible| one.value.is_none_or(|(value, _)| value > u64::MAX / 2);
    let names: Vec<&str> = found.iter().take(3).map(|one| one.name.as_str()).collect();
    let more = match found.len().saturating_sub(names.len()) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let what = if found.iter().any(is_negative) { "wrapped below zero" } else { "impossible" };
    let mut evidence: Vec<Evidence> = found
        .iter()
        .take(SHOWN)
        .map(|one| {
            let row = match one.value {
                Some((value, "pages")) => Evidence::reading(one.name.clone(), Pages(value), one.source.clone()),
                Some((value, _)) => Evidence::bytes(one.name.clone(), value, one.source.clone()),
                None => Evidence::text(one.name.clone(), "does not fit into 64 bits", one.source.clone()),
            };
            match one.most {
                Some(most) => row.against(most as f64),
                None => row,
            }
        })
        .collect();
    evidence.extend(derived.dirty.io_pressure_row().map(|row| row.against(HURTS_PRESSURE)));
    let release =
        derived.window.facts.as_ref().map(|facts| floodline_record::name::Name::new(&facts.kernel_release).to_string());
    evidence.extend(release.map(|release| Evidence::text("Kernel", release, "uname -r")));
    Finding {
        rule: RULE.name,
        severity: if hurts { Severity::Critical } else { Severity::Warning },
        summary: format!("This kernel's count of dirty pages is {what}: {}{more}.", names.join(", ")),
        evidence,
        brief: Brief {
            because:
                "This kernel subtracted more pages than it had added. Writers then appear far over their limit and \
                 must wait. This is a bug of this kernel; no workload causes it."
                    .to_owned(),
            who: names.join(", "),
            costs:
                "No setting repairs the counter. Restarting the service, or unmounting, helps until it happens again."
                    .to_owned(),
            ..Brief::default()
        },
        cause: "The kernel subtracted a page once more than it had added it, or subtracted it from the wrong counter. \
         Read without a sign, the result is close to 2^64. With such a number, writers appear far over their limit \
         and are paused for as long as the kernel ever does, or the flusher never stops. No workload causes such a \
         value: it is a bug of this kernel."
            .to_owned(),
        plan: vec![Step {
            when: When::Later,
            write: "kernel".to_owned(),
            value: "the newest stable release of its series, or an older one without the bug".to_owned(),
            undo: "boot the old kernel".to_owned(),
            command: "# Install another kernel package and reboot.".to_owned(),
        }],
        trade_off: "No setting repairs a counter. A counter of a cgroup or a device goes away with it: restarting the \
                    service, or unmounting, helps until it happens again. Report it with this evidence. Do not trust \
                     other findings that use the counter."
            .to_owned(),
        ..Finding::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::check_rule;
    use floodline_testkit::{Fixture, secs};

    /// Five less than nothing.
    const WRAPPED: u64 = 0_u64.wrapping_sub(5);

    #[test]
    fn a_counter_below_zero_is_found_wherever_it_is() {
        let machine = Fixture::healthy().host(|_, row| row.nr_dirty = Some(Pages(WRAPPED)));
        check_rule(&RULE, &machine, "warning: This kernel's count of dirty pages is wrapped below zero: nr_dirty.");
        let stalls = machine.host(|t, row| row.psi_io_some = Some(secs(900.0 + 0.4 * t)));
        check_rule(&RULE, &stalls, "critical: This kernel's count of dirty pages is wrapped below zero: nr_dirty.");
        let cgroup = Fixture::healthy().cgroup("/box", |_, row| row.file_writeback = Some(Bytes(WRAPPED & !4095)));
        check_rule(
            &RULE,
            &cgroup,
            "warning: This kernel's count of dirty pages is wrapped below zero: file_writeback of /box",
        );
        let wb = Fixture::healthy().wb("8:0", 77, |_, row| row.reclaimable = Some(Bytes(WRAPPED & !4095)));
        check_rule(
            &RULE,
            &wb,
            "warning: This kernel's count of dirty pages is wrapped below zero: Reclaimable of 8:0 cgroup 77",
        );
    }

    #[test]
    fn a_wrapped_number_of_kilobytes_does_not_fit_and_is_found_by_its_gap() {
        let cause = Cause::Malformed { what: "a number that fits 64 bits".into() };
        let gap = Gap::detailed(Source::DebugWbStats, cause, "bdi/8:0/wb_stats");
        let fixture = Fixture::healthy().gap(gap);
        check_rule(
            &RULE,
            &fixture,
            "warning: This kernel's count of dirty pages is wrapped below zero: bdi/8:0/wb_stats",
        );
    }

    #[test]
    fn more_than_the_memory_is_impossible_and_all_of_it_is_not() {
        let of = |pages: u64| Fixture::healthy().host(move |_, row| row.nr_writeback = Some(Pages(pages)));
        let memory = 16 << 18;
        check_rule(&RULE, &of(memory + 1), "warning: This kernel's count of dirty pages is impossible: nr_writeback.");
        check_rule(&RULE, &of(memory), "clear:");
    }

    #[test]
    fn a_threshold_has_to_be_what_the_settings_say() {
        let bytes = |pages: u64| Fixture::healthy().thresholds((0, 100 << 20, 0, 50 << 20), pages, 12_800);
        check_rule(&RULE, &bytes(25_600), "clear:");
        // As a reader of real-time priority sees it.
        check_rule(&RULE, &bytes(32_800), "clear:");
        check_rule(
            &RULE,
            &bytes(25_599),
            "warning: This kernel's count of dirty pages is impossible: nr_dirty_threshold",
        );
        check_rule(
            &RULE,
            &bytes(90_000),
            "warning: This kernel's count of dirty pages is impossible: nr_dirty_threshold",
        );
        let ratio = |pages: u64| Fixture::healthy().thresholds((20, 0, 10, 0), pages, 360_000);
        check_rule(&RULE, &ratio(730_000), "clear:");
        check_rule(&RULE, &ratio(2_000_000), "warning: This kernel's count of dirty pages is impossible");
    }

    #[test]
    fn settings_that_change_meanwhile_prove_nothing() {
        let changing = Fixture::healthy().thresholds((0, 100 << 20, 0, 50 << 20), 90_000, 12_800).host(|t, row| {
            row.dirty_bytes = Some(Bytes(if t < 1.0 { 360 << 20 } else { 100 << 20 }));
        });
        check_rule(&RULE, &changing, "clear:");
    }

    #[test]
    fn without_its_inputs_it_says_so() {
        let blind =
            Fixture::healthy().without(Source::Vmstat, Cause::Vanished).without(Source::Meminfo, Cause::Vanished);
        check_rule(&RULE, &blind, "not checked: /proc/vmstat: removed before it was read");
    }
}
