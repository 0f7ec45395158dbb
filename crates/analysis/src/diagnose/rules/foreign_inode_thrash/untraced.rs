// SPDX-License-Identifier: MIT OR Apache-2.0
//! Inodes that move between cgroups, without a trace: the flusher of one cgroup writes data of another one, later that of the other one
//! does, and so on. That is what files show of cgroups that write one file in turn. Does not show the inodes.

use super::{RULE, cause, what_helps};
use crate::diagnose::cgroup;
use crate::diagnose::derived::Derived;
use crate::diagnose::device::Device;
use crate::report::{Brief, Evidence, Finding, Severity};
use floodline_record::human;
use floodline_record::id::{Entity, EntityId};
use floodline_record::window::Episode;
use std::collections::{BTreeMap, BTreeSet};

/// Times that a flusher must have taken over from another one: as many as three moves in each of two directions.
const TURNS: u64 = 5;
/// Cgroups whose flushers must have written data of others more than once.
const SEVERAL: usize = 2;
/// Cgroups that have rows of evidence.
const ROWS: usize = 3;
/// Filesystems that write each byte of a file once.
const WRITES_ONCE: [&str; 4] = ["ext2", "ext4", "xfs", "f2fs"];

/// Cgroups whose flushers write data of others in turn, on one device.
struct InTurn<'a> {
    device: Device<'a>,
    /// Times in which they did, by cgroup.
    by_cgroup: BTreeMap<EntityId, Vec<Episode>>,
    turns: u64,
}

impl InTurn<'_> {
    fn bytes(&self) -> u64 {
        self.by_cgroup.values().flatten().map(|one| one.bytes).fold(0, u64::saturating_add)
    }
}

/// The finding about the device with most such data; `None` if there is none, or if the counters do not show whose data they are.
pub(super) fn finding(derived: &Derived<'_>) -> Option<Finding> {
    let window = derived.window;
    // A page that is swapped out, or that a loop device writes to its image, is written for a cgroup whose processes did not dirty it.
    let swaps = window.host.growth.pswpout.is_some_and(|pages| pages.0 > 0);
    let writes = |device: &Device<'_>| device.span.growth.written.is_some_and(|bytes| bytes.0 > 0);
    if swaps || derived.devices().iter().any(|device| device.is_loop() && writes(device)) {
        return None;
    }
    let drains = derived.drains().iter().filter_map(|device| in_turn(derived, device));
    drains.max_by_key(InTurn::bytes).map(|found| of(derived, &found))
}

fn in_turn<'a>(derived: &Derived<'a>, device: &Device<'a>) -> Option<InTurn<'a>> {
    let mounts = device.mounts();
    if mounts.is_empty() || mounts.iter().any(|mount| !WRITES_ONCE.contains(&mount.fs_type.as_str())) {
        return None;
    }
    let window = derived.window;
    let paths = window.cgroups.keys().filter_map(|id| cgroup::path(window, *id));
    // Counters of a cgroup include those below it, whose processes are not its own.
    let parents: BTreeSet<&[u8]> = paths.filter_map(|path| cgroup::parent(path.as_bytes())).collect();
    let is_leaf = |id: EntityId| cgroup::path(window, id).is_some_and(|path| !parents.contains(path.as_bytes()));
    let mut by_cgroup: BTreeMap<EntityId, Vec<Episode>> = BTreeMap::new();
    for (id, its) in &window.foreign.by_flusher {
        match window.entities.get(id) {
            Some(Entity::CgroupIo { cgroup, dev }) if *dev == device.dev && is_leaf(*cgroup) => {
                let episodes: Vec<Episode> = its.episodes().copied().collect();
                by_cgroup.extend((!episodes.is_empty()).then_some((*cgroup, episodes)));
            }
            _ => {}
        }
    }
    let mut order: Vec<(Episode, EntityId)> =
        by_cgroup.iter().flat_map(|(id, its)| its.iter().map(|one| (*one, *id))).collect();
    order.sort_by_key(|(one, id)| (one.from, *id));
    let turns = order.windows(2).filter(|pair| pair[0].1 != pair[1].1).count() as u64;
    let several = by_cgroup.values().filter(|its| its.len() >= 2).count() >= SEVERAL;
    (several && turns >= TURNS).then_some(InTurn { device: *device, by_cgroup, turns })
}

fn of(derived: &Derived<'_>, found: &InTurn<'_>) -> Finding {
    let sum = |its: &[Episode]| its.iter().map(|one| one.bytes).fold(0, u64::saturating_add);
    let mut all: Vec<(EntityId, u64)> = found.by_cgroup.iter().map(|(id, its)| (*id, sum(its))).collect();
    all.sort_by_key(|(id, bytes)| (std::cmp::Reverse(*bytes), *id));
    let from = "io.stat wbytes − /proc/PID/io write_bytes − memory.stat";
    let row = |(id, bytes): &(EntityId, u64)| {
        Evidence::bytes(format!("Written beyond its own data, {}", derived.label(*id)), *bytes, from)
    };
    let mut evidence: Vec<Evidence> = all.iter().take(ROWS).map(row).collect();
    evidence.push(Evidence::count("Times that another flusher took over", found.turns, from).against(TURNS as f64));
    let first = all.first().map(|(id, _)| derived.label(*id)).unwrap_or_default();
    let others = human::plural((all.len() as u64).saturating_sub(1), "other cgroup", "other cgroups");
    let disk = found.device.name;
    let summary = format!(
        "{first} and {others} write the same files on {disk} in turn: their flushers wrote {} of each other's data.",
        human::bytes(found.bytes() as f64)
    );
    let helps =
        format!("{} The inodes are in a trace: floodline record --trace on --for 1m -o host.flr.", what_helps());
    Finding {
        rule: RULE.name,
        severity: Severity::Warning,
        summary,
        evidence,
        brief: Brief {
            because:
                "The counters show that a flusher wrote data that its own cgroup had not dirtied, and later another \
                      one did. The kernel writes a file back for one cgroup at a time and moves it to the cgroup that \
                      writes it most."
                    .to_owned(),
            expect: helps.clone(),
            ..Brief::default()
        },
        cause: cause(),
        devices: vec![disk.to_string()],
        trade_off: helps,
        ..Finding::default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::RULE;
    use crate::diagnose::check_rule;
    use floodline_record::units::Bytes;
    use floodline_testkit::{Fixture, dev_of, mib, mount};

    /// Two schedulers that append to one log for 10 s each, in turn. For `late` seconds of a turn, the flusher of the other one writes.
    fn schedulers(late: f64) -> Fixture {
        let turn = |t: f64, nth: f64| (t / 20.0).floor() * 10.0 + (t % 20.0 - 10.0 * nth).clamp(0.0, 10.0);
        // Seconds of the turns of a scheduler in which the other one's flusher writes.
        let lent = move |t: f64, nth: f64| (t / 20.0).floor() * late + (t % 20.0 - 10.0 * nth).clamp(0.0, late);
        let host = Fixture::healthy().mount("sda", "ext4", "/events", "rw");
        [("/blue", "blue", 71, 0.0), ("/green", "green", 72, 1.0)].into_iter().fold(
            host,
            |host, (path, name, pid, nth)| {
                host.cgroup(path, |_, row| (row.file_dirty, row.file_writeback) = (Some(Bytes(0)), Some(Bytes(0))))
                    .process(name, pid, path, move |t, row| row.write_bytes = Some(Bytes(mib(20.0 * turn(t, nth)))))
                    .cgroup_io(path, "sda", move |t, row| {
                        let own = turn(t, nth) - lent(t, nth);
                        row.wbytes = Some(Bytes(mib(20.0 * (own + lent(t, 1.0 - nth)))));
                    })
            },
        )
    }

    #[test]
    fn flushers_that_write_each_others_data_in_turn_are_found_without_a_trace() {
        let expect = "warning: /green and 1 other cgroup write the same files on sda in turn: their flushers wrote";
        check_rule(&RULE, &schedulers(4.0).seconds(100), expect);
        check_rule(&RULE, &schedulers(0.0).seconds(100), "not checked: ");
        check_rule(&RULE, &schedulers(4.0).seconds(25), "not checked: ");
        // A btrfs may write each byte twice.
        let btrfs = schedulers(4.0).facts(|facts| {
            facts.mounts.retain(|one| one.dev != dev_of("sda"));
            facts.mounts.push(mount("sda", "btrfs", "/events", "rw"));
        });
        check_rule(&RULE, &btrfs.seconds(100), "not checked: ");
        let swaps =
            schedulers(4.0).host(|t, row| row.pswpout = Some(floodline_record::units::Pages((100.0 * t) as u64)));
        check_rule(&RULE, &swaps.seconds(100), "not checked: ");
    }
}
