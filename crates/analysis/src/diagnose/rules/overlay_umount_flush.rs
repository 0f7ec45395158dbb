// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rule `overlay-umount-flush`: unmounting an overlay writes out all dirty data of the filesystem below it, whichever
//! task dirtied it. Predicted from dirty bytes and device speed before an unmount; confirmed where `umount` is seen
//! waiting. Does not cover unmounting the filesystem itself.
#![doc = include_str!("overlay_umount_flush.md")]

mod remedy;

use self::remedy::{Remedy, remedy};
use crate::diagnose::burst::{self, Burst, NOTICED_S};
use crate::diagnose::derived::Derived;
use crate::diagnose::unmount::Unmount;
use crate::diagnose::unmount::upper::{self, Upper};
use crate::diagnose::{Rule, Verdict, waiting, writer};
use crate::report::{Brief, Evidence, Finding, Severity};
use floodline_record::gap::{Gap, Source};
use floodline_record::human;
use floodline_record::name::Name;

/// The rule and its manual page.
pub const RULE: Rule = Rule {
    name: "overlay-umount-flush",
    summary: "Unmounting an overlay will first write out the whole filesystem that carries it",
    manual: include_str!("overlay_umount_flush.md"),
    explains: &["dirty-cliff", "fsync-behind-writeback", "dirty-data-at-risk"],
    check,
};

/// Length of a wait that breaks time limits of teardown, seconds.
const HURTS_S: f64 = 2.0;
/// Bytes that the slowest disk still sold writes in a second.
const LITTLE: u64 = 8 << 20;

fn check(derived: &Derived<'_>) -> Verdict {
    let Some(facts) = derived.window.facts.as_ref().filter(|facts| !facts.mounts.is_empty()) else {
        return derived.not_checked(Source::Mountinfo, "mounts");
    };
    let unmounts = derived.unmounts();
    if !unmounts.noticed.is_empty() {
        return Verdict::Found(unmounts.noticed.iter().map(|unmount| finding(derived, unmount)).collect());
    }
    let overlays = || facts.mounts.iter().filter_map(|mount| mount.overlay.as_ref());
    if overlays().next().is_none() {
        return Verdict::Clear("no overlay is mounted".to_owned());
    }
    // Without an upper directory nothing can be dirty.
    let synced: Vec<_> = overlays().filter(|overlay| !overlay.volatile && overlay.upperdir.is_some()).collect();
    if synced.is_empty() {
        return Verdict::Clear("every overlay is volatile or read-only".to_owned());
    }
    if let Some(kernel) =
        facts.kernel.filter(|_| derived.behaviour.is_some_and(|kernel| !kernel.stack.overlay_syncs_upper))
    {
        return Verdict::Clear(format!("kernel {kernel} does not write out the upper filesystem at unmount"));
    }
    if synced.iter().all(|overlay| overlay.upper_dev.is_none()) {
        return derived.not_checked(Source::Mountinfo, "the filesystem of an overlay's upper directory");
    }
    let uppers = &unmounts.uppers;
    if uppers.is_empty() {
        return Verdict::Clear("the upper filesystems are not on a block device".to_owned());
    }
    let unknown: Vec<Gap> = uppers
        .iter()
        .filter(|upper| upper.dirty.1 >= LITTLE && upper.at_most_s().is_none_or(|seconds| seconds >= NOTICED_S))
        .map(|upper| upper::gap(derived, upper))
        .collect();
    match (unknown.is_empty(), uppers.iter().max_by_key(|upper| upper.dirty.1)) {
        (true, Some(most)) => Verdict::Clear(format!(
            "at the last sample, unmounting an overlay on {} would have written {} at most{}",
            most.device.name,
            human::bytes(most.dirty.1 as f64),
            most.at_most_s().map(|seconds| format!(", {}", human::seconds(seconds))).unwrap_or_default()
        )),
        _ => Verdict::NotChecked(unknown),
    }
}

fn finding(derived: &Derived<'_>, unmount: &Unmount<'_>) -> Finding {
    let Unmount { upper, seen, asked, level, dirty, source, foretold_s } = unmount;
    let (dirty, foretold_s) = (*dirty, *foretold_s);
    let hurt = asked.is_some_and(|burst| burst.stalled());
    let severity = match seen.is_happening() {
        true => Severity::Critical,
        // The burst made other programs wait: that is as bad as a umount that waits.
        false if hurt && harms_others(derived, upper) => Severity::Critical,
        false if foretold_s >= HURTS_S || hurt => Severity::Warning,
        false => Severity::Info,
    };
    let device = upper.device.name;
    let dirty_name = if seen.is_happening() { "Dirty there, at most" } else { "Dirty there now" };
    let overlays = format!("Overlays on {device} that are not volatile");
    let mut evidence = vec![match upper.overlays {
        0 => Evidence::text(overlays, "none at any look", "mountinfo"),
        count => Evidence::count(overlays, count, "mountinfo"),
    }];
    evidence.push(Evidence::bytes(dirty_name, dirty, *source));
    evidence.extend(
        upper
            .speed
            .map(|speed| Evidence::rate(format!("Write bandwidth of {device}"), speed.value, speed.basis.source())),
    );
    let is_most = seen.is_happening() && source.starts_with("between");
    let time_name = if is_most { "Time to write it, at most" } else { "Time to write it" };
    evidence.push(Evidence::seconds(time_name, foretold_s, "dirty ÷ bandwidth").against(NOTICED_S));
    evidence.extend(asked.iter().flat_map(asked_rows));
    evidence.extend(seen.evidence(upper));
    evidence.extend(upper::owners(derived, upper, *level));
    let Remedy { plan, trade_off, expect, costs } = remedy(derived, upper);
    Finding {
        rule: RULE.name,
        severity,
        summary: summary(unmount),
        confirmed: seen.confirmed(),
        evidence,
        cause: cause(derived, upper),
        brief: Brief {
            because: format!(
                "Unmounting an overlay writes out the whole filesystem below it ({}), with the unwritten data of all \
                 other programs.",
                upper.mount.mount_point
            ),
            who: match upper.overlays {
                0 => format!("overlays on {device} that were mounted for a short time"),
                count => format!("{} on {device}", human::plural(count, "overlay", "overlays")),
            },
            expect,
            costs,
        },
        devices: vec![device.to_string()],
        plan,
        trade_off,
        ..Finding::default()
    }
}

/// Whether programs other than the one that writes most waited long for the device: by what was counted, or by the states in the samples,
/// which alone show a wait for a journal commit. A wait for this device ends when it has nothing to do.
fn harms_others(derived: &Derived<'_>, upper: &Upper<'_>) -> bool {
    let causers = writer::causers_on(derived, &upper.device);
    let others = waiting::others_on(derived, &upper.device, |waiter| causers.contains(&waiter.pid));
    let busy_s = upper.device.utilisation().unwrap_or(0.0) * derived.seconds;
    let in_all = |one: &waiting::Waiter| one.by_states().at_most(busy_s);
    others.is_some_and(|others| waiting::is_harm(derived, &others.iter().map(in_all).collect::<Vec<_>>()))
}

fn summary(unmount: &Unmount<'_>) -> String {
    let Unmount { upper, seen, asked, dirty, foretold_s, .. } = unmount;
    let device = upper.device.name;
    let overlays = human::plural(upper.overlays, "overlay", "overlays");
    match asked {
        Some(burst) => format!(
            "All dirty data of {device}, {}, was written in one burst of {}. An unmount of an overlay or a sync \
             triggered it.",
            human::bytes(burst.flushed() as f64),
            human::seconds(burst.seconds)
        ),
        None if seen.is_happening() => format!(
            "{} waited {} for all dirty data on {device}, not only for the overlays' own data.",
            human::plural(seen.umounts, "umount", "umounts"),
            human::seconds(seen.seconds)
        ),
        None => format!(
            "Unmounting any of {overlays} will take {}: it first writes out all {} that are dirty on {device}.",
            human::seconds(*foretold_s),
            human::bytes(*dirty as f64)
        ),
    }
}

fn cause(derived: &Derived<'_>, upper: &Upper<'_>) -> String {
    let assumed = match derived.window.facts.as_ref().and_then(|facts| facts.kernel) {
        Some(_) => "",
        None => " The kernel's version is not known: kernels since 4.16 and 4.14.60 do this.",
    };
    format!(
        "Unmounting an overlay syncs the whole superblock that holds its upper directory ({} on {}), with the dirty \
         data of all other programs there. Unmounts side by side all wait for the same data. Of unmounts one after \
         another, only the first waits.{assumed}",
        Name::new(&upper.mount.fs_type),
        upper.mount.mount_point
    )
}

/// Evidence of a burst that only a request explains.
fn asked_rows(burst: &Burst) -> Vec<Evidence> {
    let mut rows = vec![
        Evidence::bytes("Dirty before the burst", burst.dirty_before, burst.level_source),
        Evidence::seconds("Length of the burst", burst.seconds, "/proc/diskstats io_time").against(NOTICED_S),
        Evidence::text("What it was for", "neither amount nor age", "background threshold and expiry"),
    ];
    rows.extend(burst.pressure.map(|share| {
        Evidence::share("Time in it with a task waiting", share, "/proc/pressure/io some")
            .against(burst::STALL_PRESSURE)
    }));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::check_rule;
    use floodline_record::facts::Mount;
    use floodline_record::gap::Cause;
    use floodline_record::record::What;
    use floodline_record::sample::ProcessRow;
    use floodline_record::traced::Who;
    use floodline_record::traced::waits::{Operation, SlowSync};
    use floodline_record::units::{Bytes, BytesPerSecond, Count};
    use floodline_testkit::incidents::*;
    use floodline_testkit::{Fixture, mib_pages, secs};

    #[test]
    fn waiting_umounts_are_critical() {
        check_rule(&RULE, &overlay_teardown(), "critical: 10 umounts waited 9.00 s for all dirty data on sdb");
        check_rule(&RULE, &overlay_teardown_published(), "critical: 10 umounts waited 9.00 s");
    }

    #[test]
    fn unmounts_in_turn_wait_though_the_disk_rests_between_them() {
        let busy = |t: f64| (t - 3.0).clamp(0.0, 3.0) + (t - 20.0).clamp(0.0, 3.0);
        let flushed = || {
            overlay_before_teardown("6.12.117+deb13-amd64").seconds(26).disk("sdb", move |t, row| {
                row.written = Some(Bytes((31.46e6 * busy(t)) as u64));
                row.writes = Some(Count((60.0 * busy(t)) as u64));
                row.write_time = Some(secs(60.0 * busy(t)));
                row.io_time = Some(secs(busy(t)));
                row.weighted_io_time = Some(secs(30.0 * busy(t)));
            })
        };
        let unmounts = |fixture: Fixture, (pid, from): (u32, f64)| {
            fixture.process("umount", pid, "/system.slice/teardown.service", move |t, row| {
                match (from..=from + 3.0).contains(&t) {
                    true => row.state = Some(Count(u64::from(b'D'))),
                    false => *row = ProcessRow::default(),
                }
            })
        };
        let in_turn = [(3000, 3.0), (3001, 20.0)].into_iter().fold(flushed(), unmounts);
        check_rule(&RULE, &in_turn, "critical: 2 umounts waited 3.00 s for all dirty data on sdb");
        // Overlays that come and go between two looks at the mounts: the filesystem itself stays mounted.
        let unseen = |host: Fixture| host.facts(|facts| facts.mounts.retain(|mount| mount.overlay.is_none()));
        check_rule(&RULE, &unseen(in_turn), "critical: 2 umounts waited 3.00 s for all dirty data on sdb");
        // One unmount may be that of the filesystem.
        check_rule(&RULE, &unseen(unmounts(flushed(), (3000, 3.0))), "clear: no overlay is mounted");
    }

    #[test]
    fn a_burst_that_nothing_else_explains_is_laid_to_an_unmount_or_a_sync() {
        // Dirty from second 3 on and written from second 6 on. The unmounting task has a name of its own.
        let busy = |t: f64| (t - 6.0).clamp(0.0, 3.5);
        let written = || {
            overlay_synced()
                .seconds(12)
                .host(move |t, row| {
                    row.nr_dirty = Some(mib_pages(if t < 3.0 { 0.0 } else { 105.0 - 30.0 * busy(t) }));
                    row.psi_io_some = Some(secs(900.0 + 0.9 * busy(t)));
                })
                .disk("sdb", move |t, row| {
                    row.written = Some(Bytes((31.46e6 * busy(t)) as u64));
                    row.writes = Some(Count((60.0 * busy(t)) as u64));
                    row.write_time = Some(secs(60.0 * busy(t)));
                    row.io_time = Some(secs(busy(t)));
                    row.weighted_io_time = Some(secs(30.0 * busy(t)));
                })
        };
        let expect = "warning: All dirty data of sdb, 105 MiB, was written in one burst of 4.00 s";
        check_rule(&RULE, &written(), expect);
        // A wait for a journal commit is not counted, and shows in the states.
        let commits = |state: u8| {
            written().process("orders", 4100, "/system.slice/shop.service", move |t, row| {
                row.blkio_delay = Some(secs(0.0));
                let is_in_burst = (6.0..9.5).contains(&t);
                row.state = Some(Count(u64::from(if is_in_burst { state } else { b'S' })));
            })
        };
        check_rule(&RULE, &commits(b'S'), expect);
        check_rule(
            &RULE,
            &commits(b'D'),
            "critical: All dirty data of sdb, 105 MiB, was written in one burst of 4.00 s",
        );
        let calm = written().host(|_, row| row.psi_io_some = Some(secs(900.0)));
        check_rule(&RULE, &calm, "info: All dirty data of sdb");
    }

    #[test]
    fn a_traced_sync_of_the_upper_filesystem_confirms_it_only_when_an_overlay_asked() {
        let facts = overlay_synced().window().facts.unwrap();
        let dev = |is_overlay: bool| {
            let wanted = |mount: &&Mount| mount.overlay.is_some() == is_overlay && mount.mount_point != "/".into();
            facts.mounts.iter().find(wanted).unwrap().dev
        };
        let sync = |device| {
            let who = Who { pid: 40, comm: "containerd-shim".into(), cgroup_ino: 1 };
            let (operation, lasted) = (Operation::SyncFilesystem, secs(3.0));
            let queued = Some(Bytes(90_000_000));
            let own = Bytes(0);
            What::SlowSync(SlowSync {
                who,
                tid: None,
                operation,
                lasted,
                device: Some(device),
                file: None,
                queued,
                own,
            })
        };
        let asked = overlay_synced().traced(&["bytes"], vec![sync(dev(false)), sync(dev(true))]);
        check_rule(&RULE, &asked, "critical: 1 umount waited 3.00 s for all dirty data on sdb");
        // A task called syncfs, and the burst is its intended effect.
        let plain = overlay_synced().traced(&["bytes"], vec![sync(dev(false))]);
        check_rule(
            &RULE,
            &plain,
            "clear: at the last sample, unmounting an overlay on sdb would have written 0 B at most",
        );
    }

    #[test]
    fn the_wait_is_foretold_before_anybody_unmounts() {
        let expect = "warning: Unmounting any of 10 overlays will take 10 s: it first writes out all 300 MiB";
        check_rule(&RULE, &overlay_before_teardown("6.12.117+deb13-amd64"), expect);
        check_rule(&RULE, &overlay_before_teardown("6.12.117+deb13-amd64").one_look(), expect);
        check_rule(&RULE, &overlay_before_teardown("4.14.60"), expect);
    }

    #[test]
    fn kernels_that_do_not_sync_the_upper_filesystem_are_cleared() {
        let expect = "clear: kernel 4.14.59 does not write out";
        check_rule(&RULE, &overlay_before_teardown("4.14.59"), expect);
        check_rule(&RULE, &overlay_before_teardown("4.15.0-20-generic"), "clear: kernel 4.15.0 does not");
    }

    #[test]
    fn after_a_sync_and_with_volatile_there_is_nothing_to_wait_for() {
        check_rule(
            &RULE,
            &overlay_synced(),
            "clear: at the last sample, unmounting an overlay on sdb would have written 0 B at most",
        );
        check_rule(&RULE, &overlay_volatile(), "clear: every overlay is volatile or read-only");
        check_rule(&RULE, &Fixture::healthy(), "clear: no overlay is mounted");
    }

    #[test]
    fn up_to_6_9_the_dirty_bytes_of_one_of_several_disks_are_a_bound() {
        let old = overlay_before_teardown("6.1.0-40-amd64");
        check_rule(&RULE, &old, "warning: Unmounting any of 10 overlays will take 10 s");
        // The root wb has little, the machine much: the data may be on any filesystem.
        let elsewhere = old.bdi("8:16", |_, row| row.reclaimable = Some(Bytes(4096)));
        check_rule(&RULE, &elsewhere, "not checked: /sys/kernel/debug/bdi/NAME/wb_stats");
    }

    #[test]
    fn a_bound_of_the_speed_clears_and_never_finds() {
        let unmounted = || Cause::NotMounted { fs_type: "debugfs".into() };
        let unknown = overlay_before_teardown("6.1.0-40-amd64").without(Source::DebugBdiStats, unmounted());
        check_rule(&RULE, &unknown, "not checked: /sys/kernel/debug/bdi/NAME/stats: debugfs is not mounted");
        let little = unknown.host(|_, row| row.nr_dirty = Some(mib_pages(0.0)));
        check_rule(
            &RULE,
            &little,
            "clear: at the last sample, unmounting an overlay on sdb would have written 0 B at most",
        );
    }

    #[test]
    fn a_fast_disk_has_written_it_before_anybody_notices() {
        let fast = overlay_before_teardown("6.12.117").bdi("8:16", |_, row| {
            row.write_bandwidth = Some(BytesPerSecond(900_000_000));
        });
        check_rule(
            &RULE,
            &fast,
            "clear: at the last sample, unmounting an overlay on sdb would have written 300 MiB at most, 350 ms",
        );
    }

    #[test]
    fn without_mounts_it_says_so() {
        let blind = Fixture::healthy().facts(|facts| facts.mounts.clear());
        check_rule(&RULE, &blind, "not checked: /proc/self/mountinfo (mounts): not in the recording");
    }
}
