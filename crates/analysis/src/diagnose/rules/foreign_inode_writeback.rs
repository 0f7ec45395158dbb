// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rule `foreign-inode-writeback`: pages charged to one cgroup sit in inodes that another cgroup's flusher
//! writes, so the first is throttled for pages that its own flusher cannot clean. As far as files show
//! it: which inodes they are, only tracing does. Mirrors the split of `file_dirty` and a wb's counters.
#![doc = include_str!("foreign_inode_writeback.md")]

use crate::diagnose::derived::Derived;
use crate::diagnose::flow::{self, Flow};
use crate::diagnose::{Rule, Verdict, cgroup};
use crate::report::{Brief, Evidence, Finding, Severity};
use floodline_record::gap::{Cause, Gap, Source};
use floodline_record::human;
use floodline_record::id::{Entity, EntityId, Hierarchy};
use floodline_record::units::Bytes;
use std::collections::BTreeMap;

/// The rule and its manual page.
pub const RULE: Rule = Rule {
    name: "foreign-inode-writeback",
    summary: "Pages of one cgroup are in inodes that another cgroup's flusher writes",
    manual: include_str!("foreign_inode_writeback.md"),
    explains: &[],
    check,
};

/// Difference of two counts that no error explains, bytes.
const LEAST: u64 = 8 << 20;
/// Part of what the cgroup has dirty that has to be elsewhere.
const MOSTLY: f64 = 0.5;
/// Share of the window with a task of the cgroup waiting for I/O from which it hurts.
const HURTS_PRESSURE: f64 = 0.1;

/// What a cgroup has dirty by the charge of its pages, and by the inodes of its wbs.
struct Split {
    id: EntityId,
    /// `file_dirty + file_writeback`, everything below it included.
    charged: u64,
    /// What the wbs of it and of everything below it hold.
    in_own_inodes: u64,
    /// How far counts may be apart without meaning anything.
    tolerance: u64,
}

impl Split {
    /// Its pages in others' inodes.
    fn elsewhere(&self) -> Option<u64> {
        let more = self.charged.checked_sub(self.in_own_inodes)?;
        (more >= self.tolerance && more as f64 >= MOSTLY * self.charged as f64).then_some(more)
    }

    /// Others' pages in its inodes.
    fn hosted(&self) -> Option<u64> {
        let more = self.in_own_inodes.checked_sub(self.charged)?;
        (more >= self.tolerance && more as f64 >= MOSTLY * self.in_own_inodes as f64).then_some(more)
    }
}

fn check(derived: &Derived<'_>) -> Verdict {
    let Some(facts) = derived.window.facts.as_ref() else {
        return derived.not_checked(Source::CgroupV2, "cgroup set-up");
    };
    if facts.cgroups.v2_controllers_unread {
        return derived.not_checked(Source::CgroupControllers, "cgroup.controllers of the root");
    }
    if !facts.cgroups.has_unified_writeback() {
        return Verdict::Clear("no cgroup writeback here: every inode is the root's".to_owned());
    }
    if derived.window.cgroups.is_empty() {
        return derived.not_checked(Source::CgroupV2, "no cgroup");
    }
    let verdict = by_level(derived);
    match flow::largest(derived) {
        Some(flow) if !matches!(verdict, Verdict::Found(_)) => Verdict::Found(vec![written_by_another(derived, &flow)]),
        _ => verdict,
    }
}

/// The verdict from what is dirty in the last sample.
fn by_level(derived: &Derived<'_>) -> Verdict {
    if !derived.window.wbs.values().any(|span| span.last.reclaimable.is_some()) {
        let gap = match derived.behaviour {
            Some(kernel) if !kernel.files.wb_stats => {
                Gap::new(Source::DebugWbStats, Cause::Unsupported { since: "since 6.10".into() })
            }
            _ => derived.gap(Source::DebugWbStats, "WbReclaimable"),
        };
        return Verdict::NotChecked(vec![gap]);
    }
    // The two sums must be of one moment. With few reads of memory.stat, the last one may be older than the wbs.
    let latest = derived.window.wbs.values().map(|span| span.last_at).max();
    if derived.window.stat_reads.times.last().copied() < latest {
        return derived.not_checked(Source::CgroupV2, "memory.stat of the last sample");
    }
    let Some(splits) = splits(derived) else {
        return derived.not_checked(Source::CgroupV2, "inode numbers of cgroups");
    };
    let deepest = |of: fn(&Split) -> Option<u64>| {
        let found = splits.iter().filter_map(|split| Some((of(split)?, split)));
        // A parent shows the difference of its child: the one with the longer path is meant.
        found.max_by_key(|(bytes, split)| {
            (*bytes, cgroup::path(derived.window, split.id).map(|path| path.as_bytes().len()))
        })
    };
    let Some((bytes, owner)) = deepest(Split::elsewhere) else {
        return Verdict::Clear(match splits.len() as u64 {
            0 => "no cgroup had dirty pages in the last sample".to_owned(),
            count => format!(
                "none of {} has more than half of its dirty pages, and at least {}, in inodes of other cgroups",
                human::plural(count, "cgroup", "cgroups"),
                human::bytes(LEAST as f64)
            ),
        });
    };
    Verdict::Found(vec![finding(derived, owner, bytes, deepest(Split::hosted))])
}

/// Every cgroup with dirty pages or wbs; `None` when no cgroup's inode number is known.
fn splits(derived: &Derived<'_>) -> Option<Vec<Split>> {
    let latest = derived.window.wbs.values().map(|span| span.last_at).max();
    let mut held: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for (id, span) in derived.window.wbs.iter().filter(|(_, span)| Some(span.last_at) == latest) {
        if let Some(Entity::Wb { cgroup_ino, .. }) = derived.window.entities.get(id) {
            let bytes = |bytes: Option<Bytes>| bytes.map_or(0, |bytes| bytes.0);
            let (sum, wbs) = held.entry(*cgroup_ino).or_default();
            *sum = sum.saturating_add(bytes(span.last.reclaimable)).saturating_add(bytes(span.last.writeback));
            *wbs += 1;
        }
    }
    let latest = derived.window.cgroups.values().map(|span| span.last_at).max();
    let mut held_below: BTreeMap<&[u8], (u64, u64)> = BTreeMap::new();
    let mut inos_known = false;
    for (id, span) in &derived.window.cgroups {
        let Some(Entity::Cgroup { path, hierarchy: Hierarchy::V2, ino: Some(ino) }) = derived.window.entities.get(id)
        else {
            continue;
        };
        inos_known |= path.as_bytes().len() > 1;
        let Some((bytes, wbs)) = held.get(ino).filter(|_| Some(span.last_at) == latest) else { continue };
        let mut at = Some(path.as_bytes());
        while let Some(path) = at {
            let (sum, all) = held_below.entry(path).or_default();
            *sum = sum.saturating_add(*bytes);
            *all += wbs;
            at = cgroup::parent(path);
        }
    }
    let error = wb_error(derived);
    let split = |(id, span): (&EntityId, &floodline_record::window::Span<floodline_record::sample::CgroupRow>)| {
        let path = cgroup::path(derived.window, *id)?.as_bytes();
        let charged = cgroup::dirty_and_writeback(&span.last).filter(|_| path.len() > 1)?;
        let (in_own_inodes, wbs) = held_below.get(path).copied().unwrap_or_default();
        (charged > 0 || wbs > 0).then(|| Split {
            id: *id,
            charged,
            in_own_inodes,
            tolerance: LEAST.saturating_add(error.saturating_mul(wbs)),
        })
    };
    inos_known.then(|| {
        derived.window.cgroups.iter().filter(|(_, span)| Some(span.last_at) == latest).filter_map(split).collect()
    })
}

/// How wrong a wb's approximate counter may be: one batch for each CPU that may exist.
fn wb_error(derived: &Derived<'_>) -> u64 {
    let cpus = derived.window.facts.as_ref().and_then(|facts| facts.cpus_possible).map_or(64, u64::from).max(1);
    cpus * 8 * u64::from(1 + cpus.ilog2()) * derived.page_size
}

fn finding(derived: &Derived<'_>, owner: &Split, bytes: u64, host: Option<(u64, &Split)>) -> Finding {
    let name = derived.label(owner.id);
    let pressure = derived.window.cgroups.get(&owner.id).and_then(cgroup::io_pressure_some);
    let hurts = pressure.is_some_and(|share| share >= HURTS_PRESSURE);
    let whose = match host {
        Some((_, host)) => format!("of {}", derived.label(host.id)),
        None => "that belong to other cgroups".to_owned(),
    };
    let mut evidence = vec![
        Evidence::bytes(format!("Dirty by charge, {name}"), owner.charged, "memory.stat file_dirty + file_writeback"),
        Evidence::bytes("Dirty in inodes of its own wbs", owner.in_own_inodes, "wb_stats WbReclaimable + WbWriteback")
            .against(owner.charged as f64),
        Evidence::bytes("Difference", bytes, "charge − own inodes").against(owner.tolerance as f64),
    ];
    if let Some((more, host)) = host {
        let host_name = derived.label(host.id);
        evidence.push(Evidence::bytes(
            format!("Dirty in inodes of {host_name}"),
            host.in_own_inodes,
            "wb_stats WbReclaimable + WbWriteback",
        ));
        evidence.push(Evidence::bytes("Of that not charged to it", more, "own inodes − charge"));
    }
    evidence.extend(pressure.map(|share| time_waited(&name, share)));
    finding_of(
        &name,
        hurts,
        format!(
            "{} of dirty data of {name} is in inodes {whose}: its own flusher cannot write it.",
            human::bytes(bytes as f64)
        ),
        evidence,
    )
}

/// The finding about bytes that the flusher of another cgroup wrote.
fn written_by_another(derived: &Derived<'_>, flow: &Flow) -> Finding {
    let name = derived.label(flow.owner);
    let pressure = derived.window.cgroups.get(&flow.owner).and_then(cgroup::io_pressure_some);
    let hurts = pressure.is_some_and(|share| share >= HURTS_PRESSURE);
    let mut evidence = vec![
        Evidence::bytes(
            format!("Dirtied in {name}, and written"),
            flow.cleaned,
            "/proc/PID/io write_bytes, memory.stat",
        ),
        Evidence::bytes(format!("Written for inodes of {name}"), flow.written, "io.stat wbytes")
            .against(flow.cleaned as f64),
    ];
    let mut whose = "another cgroup, which owns the inodes".to_owned();
    if let Some(host) = &flow.host {
        let name = derived.label(host.id);
        let written = Evidence::bytes(format!("Written for inodes of {name}"), host.written, "io.stat wbytes");
        evidence.push(written);
        evidence.push(Evidence::bytes(format!("Dirtied in {name}"), host.dirtied, "/proc/PID/io write_bytes"));
        whose = format!("another cgroup, probably {name}, which owns the inodes");
    }
    let from = "/proc/vmstat nr_dirtied − nr_written, less what is still dirty";
    evidence.extend(flow.removed.map(|bytes| Evidence::bytes("Dirty data that the machine removed", bytes, from)));
    evidence.extend(pressure.map(|share| time_waited(&name, share)));
    finding_of(
        &name,
        hurts,
        format!(
            "{} of what {name} dirtied was written by the flusher of {whose}.",
            human::bytes(flow.missing() as f64)
        ),
        evidence,
    )
}

fn time_waited(name: &str, share: f64) -> Evidence {
    Evidence::share(format!("Time {name} waited"), share, "io.pressure some").against(HURTS_PRESSURE)
}

fn finding_of(name: &str, hurts: bool, summary: String, evidence: Vec<Evidence>) -> Finding {
    Finding {
        rule: RULE.name,
        severity: if hurts { Severity::Warning } else { Severity::Info },
        summary,
        evidence,
        brief: Brief {
            because: format!(
                "The kernel writes a file back for the cgroup that first wrote it. {name} writes files that belong to \
                 another cgroup, so its own flusher cannot write them."
            ),
            who: name.to_owned(),
            expect: "Let one cgroup write each file: give each service files of its own, or let one process write for \
                     both."
                .to_owned(),
            ..Brief::default()
        },
        cause: "A page is charged to the cgroup that first brought it into the cache. An inode belongs to the cgroup \
         that first dirtied it. The kernel throttles writers by the charge, but flushers work by inode. The kernel \
         moves an inode only after most of its recent writing was foreign. A file that two cgroups write in turn \
         moves back and forth. Meanwhile a throttled writer wakes the flushers of at most four other cgroups. Only a \
         trace shows the inodes: writeback:track_foreign_dirty and inode_switch_wbs."
            .to_owned(),
        trade_off: "Let one cgroup write each file: give each service a log file of its own, or pipe into the service \
         that writes it. A file that an installer created, or that a backup read first, changes its owner when it \
         leaves the cache."
            .to_owned(),
        ..Finding::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::check_rule;
    use floodline_testkit::{Fixture, mib, secs};

    /// Inode numbers of the fixture's cgroups, by their paths.
    fn ino(fixture: &Fixture, wanted: &str) -> u64 {
        let is_wanted =
            |entity: &&Entity| matches!(entity, Entity::Cgroup { path, .. } if path.as_bytes() == wanted.as_bytes());
        match fixture.window().entities.values().find(is_wanted) {
            Some(Entity::Cgroup { ino: Some(ino), .. }) => *ino,
            other => panic!("{other:?}"),
        }
    }

    /// A service that appends to a file that a log collector created: charges (service, collector) and
    /// what their wbs hold, MiB.
    fn two(charged: (f64, f64), held: (f64, f64)) -> Fixture {
        let fixture = Fixture::healthy()
            .cgroup("/app", move |_, row| row.file_dirty = Some(Bytes(mib(charged.0))))
            .cgroup("/logs", move |_, row| row.file_dirty = Some(Bytes(mib(charged.1))));
        let (app, logs) = (ino(&fixture, "/app"), ino(&fixture, "/logs"));
        fixture.wb("8:0", app, move |_, row| row.reclaimable = Some(Bytes(mib(held.0)))).wb(
            "8:0",
            logs,
            move |_, row| row.reclaimable = Some(Bytes(mib(held.1))),
        )
    }

    #[test]
    fn pages_in_anothers_inodes_are_found_and_both_are_named() {
        let fixture = two((60.0, 1.0), (2.0, 59.0));
        let expect = "58.0 MiB of dirty data of /app is in inodes of /logs: its own flusher cannot write it.";
        check_rule(&RULE, &fixture, &format!("info: {expect}"));
        let waits = fixture.cgroup("/app", |t, row| row.io_some = Some(secs(1.0 + 0.3 * t)));
        check_rule(&RULE, &waits, &format!("warning: {expect}"));
    }

    #[test]
    fn a_difference_that_errors_explain_is_none() {
        check_rule(&RULE, &two((60.0, 1.0), (55.0, 6.0)), "clear:");
        check_rule(&RULE, &two((8.0, 0.0), (0.5, 7.5)), "clear:");
        check_rule(&RULE, &Fixture::healthy(), "clear: no cgroup had dirty pages in the last sample");
    }

    #[test]
    fn what_children_hold_is_their_parents_too() {
        let fixture = Fixture::healthy()
            .cgroup("/app", |_, row| row.file_dirty = Some(Bytes(mib(60.0))))
            .cgroup("/app/worker", |_, row| row.file_dirty = Some(Bytes(mib(60.0))));
        let worker = ino(&fixture, "/app/worker");
        check_rule(&RULE, &fixture.wb("8:0", worker, |_, row| row.reclaimable = Some(Bytes(mib(60.0)))), "clear:");
    }

    #[test]
    fn without_its_inputs_it_says_so() {
        let blind = |release: &str| {
            Fixture::healthy()
                .kernel(release)
                .without(Source::DebugWbStats, Cause::NotMounted { fs_type: "debugfs".into() })
        };
        check_rule(
            &RULE,
            &blind("6.12.117"),
            "not checked: /sys/kernel/debug/bdi/NAME/wb_stats: debugfs is not mounted",
        );
        check_rule(
            &RULE,
            &blind("6.1.176"),
            "not checked: /sys/kernel/debug/bdi/NAME/wb_stats: not in this kernel (since 6.10)",
        );
        let v1 = Fixture::healthy().hierarchy(Hierarchy::V1Memory);
        check_rule(&RULE, &v1, "clear: no cgroup writeback here");
    }
}
