// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rule `overlay-umount-flush`: unmounting an overlay writes out everything that is dirty on the
//! filesystem below it, whoever dirtied it. Foretold from dirty bytes and device speed before anybody
//! unmounts; confirmed where `umount` is seen waiting. Not about unmounting the filesystem itself.
#![doc = include_str!("overlay_umount_flush.md")]

use crate::advise::{step::sysctls, threshold};
use crate::diagnose::burst::{self, Burst, Trigger};
use crate::diagnose::device::{self, Device, Interval, Speed};
use crate::diagnose::{Rule, Verdict, cgroup, dirty, missing};
use crate::facts::Mount;
use crate::gap::{Gap, Source};
use crate::human;
use crate::id::{DevId, Entity};
use crate::kernel::KernelVersion;
use crate::ledger;
use crate::ledger::blame::Blame;
use crate::name::Name;
use crate::record::What;
use crate::report::{Evidence, Finding, Severity, Step};
use crate::units::{Bytes, Count, Nanos, Pages};
use crate::window::{Span, Window};
use std::collections::{BTreeMap, BTreeSet};

/// See the manual page.
pub const RULE: Rule = Rule {
    name: "overlay-umount-flush",
    summary: "Unmounting an overlay will first write out the whole filesystem that carries it",
    manual: include_str!("overlay_umount_flush.md"),
    check,
};

/// A wait that people notice, seconds.
const NOTICED_S: f64 = 1.0;
/// A wait that breaks time limits of teardown, seconds.
const HURTS_S: f64 = 2.0;
/// Bytes that the slowest disk still sold writes in a second.
const LITTLE: u64 = 8 << 20;
/// Utilisation of the disk from which an unmount waits for it and for nothing else.
const BUSY: f64 = 0.7;
/// `D` as the state of a process is recorded.
const UNINTERRUPTIBLE: Count = Count(b'D' as u64);

/// A filesystem that carries the upper directories of overlays.
struct Upper<'a> {
    mount: &'a Mount,
    device: Device<'a>,
    overlays: u64,
    /// Dirty and under writeback, at least and at most, bytes.
    dirty: (u64, u64),
    speed: Option<Speed>,
}

impl Upper<'_> {
    /// Seconds that unmounting takes at most.
    fn at_most_s(&self) -> Option<f64> {
        match (self.dirty.1, self.speed) {
            (0, _) => Some(0.0),
            (most, speed) => speed.map(|speed| most as f64 / speed.value),
        }
    }
}

fn check(window: &Window) -> Verdict {
    let Some(facts) = window.facts.as_ref().filter(|facts| !facts.mounts.is_empty()) else {
        return missing::not_checked(window, Source::Mountinfo, "mounts");
    };
    let overlays = || facts.mounts.iter().filter_map(|mount| mount.overlay.as_ref());
    if overlays().next().is_none() {
        return Verdict::Clear("no overlay is mounted".to_owned());
    }
    // Without an upper directory nothing can be dirty.
    let synced: Vec<_> = overlays().filter(|overlay| !overlay.volatile && overlay.upperdir.is_some()).collect();
    if synced.is_empty() {
        return Verdict::Clear("every overlay is volatile or read-only".to_owned());
    }
    if let Some(kernel) = facts.kernel.filter(|kernel| !syncs_upper(*kernel)) {
        return Verdict::Clear(format!("kernel {kernel} does not write out the upper filesystem at unmount"));
    }
    if synced.iter().all(|overlay| overlay.upper_dev.is_none()) {
        return missing::not_checked(window, Source::Mountinfo, "the filesystem of an overlay's upper directory");
    }
    let uppers = uppers(window);
    if uppers.is_empty() {
        return Verdict::Clear("the upper filesystems are not on a block device".to_owned());
    }
    let findings: Vec<Finding> = uppers.iter().filter_map(|upper| finding(window, upper)).collect();
    if !findings.is_empty() {
        return Verdict::Found(findings);
    }
    let unknown: Vec<Gap> = uppers
        .iter()
        .filter(|upper| upper.dirty.1 >= LITTLE && upper.at_most_s().is_none_or(|seconds| seconds >= NOTICED_S))
        .map(|upper| gap(window, upper))
        .collect();
    match (unknown.is_empty(), uppers.iter().max_by_key(|upper| upper.dirty.1)) {
        (true, Some(most)) => Verdict::Clear(format!(
            "unmounting an overlay on {} would write {} at most{}",
            most.device.name,
            human::bytes(most.dirty.1 as f64),
            most.at_most_s().map(|seconds| format!(", {}", human::seconds(seconds))).unwrap_or_default()
        )),
        _ => Verdict::NotChecked(unknown),
    }
}

/// The filesystems on block devices that carry overlays which sync them.
fn uppers(window: &Window) -> Vec<Upper<'_>> {
    let mut by_upper: BTreeMap<DevId, u64> = BTreeMap::new();
    let overlays = window.facts.iter().flat_map(|facts| &facts.mounts).filter_map(|mount| mount.overlay.as_ref());
    for overlay in overlays.filter(|overlay| !overlay.volatile && overlay.upperdir.is_some()) {
        if let Some(dev) = overlay.upper_dev {
            *by_upper.entry(dev).or_default() += 1;
        }
    }
    by_upper.iter().filter_map(|(dev, overlays)| upper(window, *dev, *overlays)).collect()
}

/// Since commit e8d4bfe3a715 (overlay syncs the data of its upper filesystem), 4.16; also in 4.14.60.
fn syncs_upper(kernel: KernelVersion) -> bool {
    let in_stable = (kernel.major, kernel.minor) == (4, 14) && kernel.patch >= 60;
    kernel.at_least(4, 16) || in_stable
}

/// What the answer would take: the speed where only a bound is known, else the dirty bytes per device.
fn gap(window: &Window, upper: &Upper<'_>) -> Gap {
    match upper.speed.is_some_and(|speed| speed.basis.is_known()) {
        true => missing::gap(window, Source::DebugWbStats, "dirty bytes per device"),
        false => missing::gap(window, Source::DebugBdiStats, "BdiWriteBandwidth"),
    }
}

fn upper(window: &Window, dev: DevId, overlays: u64) -> Option<Upper<'_>> {
    let mounts = window.facts.iter().flat_map(|facts| &facts.mounts);
    let mount = mounts.clone().find(|mount| mount.dev == dev && mount.overlay.is_none())?;
    let device = device::of_mount(window, mount)?;
    let (dirty, _) = dirty_of(window, &device, Level::Now)?;
    Some(Upper { mount, device, overlays, dirty, speed: device.write_bandwidth() })
}

/// Which reading of a window is meant.
#[derive(Clone, Copy)]
enum Level {
    /// The last.
    Now,
    /// The largest.
    Most,
}

impl Level {
    fn of<R>(self, span: &Span<R>) -> &R {
        match self {
            Level::Now => &span.last,
            Level::Most => &span.max,
        }
    }
}

/// Dirty bytes of a device, at least and at most, and where the number is from.
fn dirty_of(window: &Window, device: &Device<'_>, level: Level) -> Option<((u64, u64), &'static str)> {
    let bdi = device.dev.to_string();
    let of_device =
        |id| matches!(window.entities.get(id), Some(Entity::Wb { bdi: name, .. }) if name.as_bytes() == bdi.as_bytes());
    let sum = |dirty: Option<Bytes>, writeback: Option<Bytes>| Some(dirty?.0.saturating_add(writeback?.0));
    // A wb that the last sample did not have is gone, and with it what it held.
    let latest = window.wbs.values().map(|span| span.last_at).max();
    let wbs: Vec<u64> = window
        .wbs
        .iter()
        .filter(|(id, span)| of_device(id) && Some(span.last_at) == latest)
        .filter_map(|(_, span)| sum(level.of(span).reclaimable, level.of(span).writeback))
        .collect();
    if !wbs.is_empty() {
        let dirty = wbs.into_iter().fold(0, u64::saturating_add);
        return Some(((dirty, dirty), "wb_stats WbReclaimable + WbWriteback"));
    }
    let root_wb = device.bdi().and_then(|span| sum(level.of(span).reclaimable, level.of(span).writeback));
    // Up to 6.9 the bdi's own numbers are those of its root wb: at least so much.
    let is_sum = window.facts.as_ref().and_then(|facts| facts.kernel).is_some_and(|kernel| kernel.at_least(6, 10));
    if let Some(dirty) = root_wb.filter(|_| is_sum) {
        return Some(((dirty, dirty), "bdi stats BdiReclaimable + BdiWriteback"));
    }
    let row = level.of(&window.host);
    let bytes = |pages: Option<Pages>| pages.map(|pages| pages.bytes(dirty::page_size(window)));
    let machine = sum(bytes(row.nr_dirty).or(row.mem_dirty), bytes(row.nr_writeback).or(row.mem_writeback))?;
    match device::drains(window).len() {
        1 => Some(((machine, machine), "/proc/vmstat nr_dirty + nr_writeback, one disk")),
        _ => Some(((root_wb.unwrap_or(0).min(machine), machine), "between its root wb and /proc/vmstat nr_dirty")),
    }
}

/// Programs that unmount, by the kernel's name of their process.
const UNMOUNTERS: &[&[u8]] = &[b"umount", b"runc", b"crun", b"podman", b"buildah", b"conmon", b"(sd-umount)"];

/// Unmounts that are seen waiting.
struct Waiting {
    count: u64,
    /// The longest of them, at least.
    seconds: f64,
    from: Nanos,
    to: Nanos,
    source: &'static str,
}

/// Processes that unmount and slept uninterruptibly in every sample that had them; else what the tasks
/// of a workload measured themselves.
fn waiting(window: &Window) -> Option<Waiting> {
    let waits = window.processes.iter().filter(|(id, span)| {
        let is_umount =
            matches!(window.entities.get(id), Some(Entity::Process { comm, .. }) if UNMOUNTERS.contains(&comm.as_bytes()));
        let asleep = span.min.state == Some(UNINTERRUPTIBLE) && span.max.state == Some(UNINTERRUPTIBLE);
        is_umount && asleep && span.seconds() >= NOTICED_S
    });
    let asleep: Vec<_> = waits.map(|(_, span)| (span.first_at, span.last_at)).collect();
    let measured = window.events.iter().filter_map(|event| match &event.what {
        What::TaskStall { operation, lasted, .. } if operation == "umount" => {
            Some((event.at, Nanos(event.at.0.saturating_add(lasted.0))))
        }
        _ => None,
    });
    let (source, spans) = match asleep.is_empty() {
        false => ("/proc/PID/stat state D", asleep),
        true => ("measured by the task", measured.collect()),
    };
    let seconds = |span: &(Nanos, Nanos)| Nanos(span.1.0.saturating_sub(span.0.0)).as_secs_f64();
    let spans: Vec<_> = spans.into_iter().filter(|span| seconds(span) >= NOTICED_S).collect();
    Some(Waiting {
        count: spans.len() as u64,
        seconds: spans.iter().map(seconds).fold(0.0, f64::max),
        from: spans.iter().map(|span| span.0).min()?,
        to: spans.iter().map(|span| span.1).max()?,
        source,
    })
}

/// Syncs of the upper filesystem that the sync of an overlay waited for, as the tracer saw them: how many took
/// long, and the longest.
fn traced(window: &Window, upper: &Upper<'_>) -> Option<(u64, Blame)> {
    let mounts = window.facts.iter().flat_map(|facts| &facts.mounts);
    let overlays: BTreeSet<DevId> = mounts.filter(|mount| mount.overlay.is_some()).map(|mount| mount.dev).collect();
    let is_of_overlay = |wait: &Blame| wait.device.is_some_and(|device| overlays.contains(&device));
    let is_of_upper =
        |wait: &Blame| wait.device == Some(upper.mount.dev) && Nanos(wait.lasted_ns).as_secs_f64() >= NOTICED_S;
    let syncs = ledger::waits(window)?.into_iter().filter(is_of_overlay).flat_map(|wait| wait.parts);
    let syncs: Vec<Blame> = syncs.filter(is_of_upper).collect();
    let count = syncs.len() as u64;
    Some((count, syncs.into_iter().max_by_key(|wait| wait.lasted_ns)?))
}

/// What confirms it: who waited for whose data.
fn confirmed(wait: &Blame) -> String {
    let waited = human::seconds(Nanos(wait.lasted_ns).as_secs_f64());
    let place = wait.filesystem.as_deref().unwrap_or("every filesystem");
    let queued = wait.queued_bytes.map_or_else(|| "data".to_owned(), |bytes| human::bytes(bytes as f64));
    let mut text =
        format!("{} unmounted an overlay and waited {waited} while {queued} of {place} were written", wait.process);
    if !wait.cgroups.is_empty() {
        text.push_str(&format!(": {}", wait.whose()));
    }
    if let Some(file) = wait.files.first() {
        text.push_str(&format!("; {} of it is {}", human::percent(file.share), file.name));
    }
    text.push('.');
    text
}

/// What the tracer saw of a wait: how much it was, and whose.
fn traced_rows(wait: &Blame) -> Vec<Evidence> {
    let source = "trace of sync_filesystem() and block_bio_queue";
    let seconds = Nanos(wait.lasted_ns).as_secs_f64();
    let mut rows = vec![
        Evidence::seconds(format!("Sync of the upper filesystem, {}", wait.process), seconds, source)
            .against(NOTICED_S),
    ];
    rows.extend(wait.queued_bytes.map(|bytes| Evidence::bytes("Queued there meanwhile", bytes, source)));
    if !wait.cgroups.is_empty() {
        rows.push(Evidence::text("Whose it was", wait.whose(), source));
    }
    rows.extend(wait.files.first().map(|file| Evidence::text("Most of it, file", file.name.clone(), source)));
    rows
}

/// Share of the wait in which a disk below the device had something to do. Requests in flight say so too: io_time is
/// counted when requests start and end, and falls short where few and long ones overlap.
fn busy(device: &Device<'_>, waiting: &Waiting) -> f64 {
    let of_disk = |disk: &Device<'_>| {
        let intervals = disk.intervals();
        let during = || intervals.iter().filter(|interval| interval.end > waiting.from && interval.end <= waiting.to);
        let seconds: f64 = during().map(|interval| interval.seconds).sum();
        let share = |interval: &Interval| Some(interval.utilisation?.max(interval.queue.unwrap_or(0.0).min(1.0)));
        let busy: f64 = during().filter_map(|interval| Some(share(interval)? * interval.seconds)).sum();
        if seconds > 0.0 { busy / seconds } else { 0.0 }
    };
    device.bottoms().iter().map(of_disk).fold(0.0, f64::max)
}

/// Whether a burst on a device is what this rule reports: umount is seen waiting for it, or it was asked
/// for on a device that carries overlays.
pub(super) fn claims(window: &Window, device: &Device<'_>, burst: &Burst) -> bool {
    let Verdict::Found(findings) = check(window) else { return false };
    let carries = || uppers(window).iter().any(|upper| upper.device.id == device.id);
    findings.iter().any(|one| one.severity == Severity::Critical) || (burst.trigger == Trigger::Asked && carries())
}

fn finding(window: &Window, upper: &Upper<'_>) -> Option<Finding> {
    let waiting = waiting(window);
    let busy = waiting.as_ref().map_or(0.0, |waiting| busy(&upper.device, waiting));
    let traced = traced(window, upper);
    let happening = busy >= BUSY || traced.is_some();
    let asked = burst::longest(window, &upper.device).filter(|burst| burst.trigger == Trigger::Asked && !happening);
    let (umounts, waited_s, seen_by) =
        waiting.map_or((0, 0.0, ""), |waiting| (waiting.count, waiting.seconds, waiting.source));
    let (umounts, waited_s) = match &traced {
        Some((count, wait)) => (umounts.max(*count), waited_s.max(Nanos(wait.lasted_ns).as_secs_f64())),
        None => (umounts, waited_s),
    };
    let level = if happening { Level::Most } else { Level::Now };
    let ((dirty, _), source) = dirty_of(window, &upper.device, level)?;
    let foretold_s = match upper.speed.filter(|speed| speed.basis.is_known()) {
        Some(speed) => dirty as f64 / speed.value,
        None => 0.0,
    };
    if !happening && asked.is_none() && foretold_s < NOTICED_S {
        return None;
    }
    let hurt = asked.is_some_and(|burst| burst.stalled());
    let severity = match happening {
        true => Severity::Critical,
        false if foretold_s >= HURTS_S || hurt => Severity::Warning,
        false => Severity::Info,
    };
    let overlays = human::plural(upper.overlays, "overlay", "overlays");
    let summary = match happening {
        false if let Some(burst) = asked => format!(
            "Everything dirty on {}, {}, was written at once for {}: an unmount of one of {overlays}, or a sync, asked.",
            upper.device.name,
            human::bytes(burst.dirty_before as f64),
            human::seconds(burst.seconds)
        ),
        true => format!(
            "{} waited {} while everything dirty on {} is written out, not only their own overlay's data.",
            human::plural(umounts, "umount has", "umounts have"),
            human::seconds(waited_s),
            upper.device.name
        ),
        false => format!(
            "Unmounting any of {overlays} will take {}: it first writes out all {} that are dirty on {}.",
            human::seconds(foretold_s),
            human::bytes(dirty as f64),
            upper.device.name
        ),
    };
    let mut evidence = vec![
        Evidence::count(
            format!("Overlays on {} that are not volatile", upper.device.name),
            upper.overlays,
            "mountinfo",
        ),
        Evidence::bytes(if happening { "Dirty there, at most" } else { "Dirty there now" }, dirty, source),
    ];
    evidence.extend(upper.speed.map(|speed| {
        Evidence::rate(format!("Write bandwidth of {}", upper.device.name), speed.value, speed.basis.source())
    }));
    evidence.push(Evidence::seconds("Time to write it", foretold_s, "dirty ÷ bandwidth").against(NOTICED_S));
    evidence.extend(asked.iter().flat_map(asked_rows));
    evidence.extend(traced.iter().flat_map(|(_, wait)| traced_rows(wait)));
    if !seen_by.is_empty() {
        evidence.push(Evidence::count("umount asleep in every sample", umounts, seen_by));
        evidence.push(Evidence::seconds("Longest of them, at least", waited_s, "samples").against(NOTICED_S));
        evidence.push(
            Evidence::share(format!("{} busy", upper.device.name), busy, "/proc/diskstats io_time").against(BUSY),
        );
    }
    evidence.extend(owners(window, upper, level));
    let assumed = match window.facts.as_ref().and_then(|facts| facts.kernel) {
        Some(_) => "",
        None => " The kernel's version is not known: kernels since 4.16 and 4.14.60 do this.",
    };
    let (plan, trade_off) = remedy(window, upper);
    Some(Finding {
        rule: RULE.name,
        severity,
        summary,
        confirmed: traced.as_ref().map(|(_, wait)| confirmed(wait)),
        evidence,
        cause: format!(
            "Unmounting an overlay syncs the whole superblock that holds its upper directory ({} on {}), with what \
             all others have dirty there. Unmounts side by side all wait for the same data; one after another only \
             the first does.{assumed}",
            Name::new(&upper.mount.fs_type),
            upper.mount.mount_point
        ),
        plan,
        trade_off,
    })
}

/// A burst that nothing but a request explains.
fn asked_rows(burst: &Burst) -> Vec<Evidence> {
    let mut rows = vec![
        Evidence::bytes("Dirty before the burst", burst.dirty_before, "/proc/vmstat nr_dirty + nr_writeback"),
        Evidence::seconds("Length of the burst", burst.seconds, "/proc/diskstats io_time").against(NOTICED_S),
        Evidence::text("What it was for", "neither amount nor age", "background threshold and expiry"),
    ];
    rows.extend(burst.pressure.map(|share| {
        Evidence::share("Time in it with a task waiting", share, "/proc/pressure/io some")
            .against(burst::STALL_PRESSURE)
    }));
    rows
}

/// The cgroups with the most dirty data, as far as they write to the device.
fn owners<'a>(window: &'a Window, upper: &'a Upper<'_>, level: Level) -> impl Iterator<Item = Evidence> + 'a {
    let owned = cgroup::own_amounts(window, |span| cgroup::dirty_and_writeback(level.of(span)));
    let written = cgroup::DevicesWritten::of(window);
    let writes_there = move |id| {
        let devices = written.devices(id);
        devices.is_empty() || devices.iter().any(|device| device.dev == upper.device.dev)
    };
    owned.into_iter().filter(move |(id, _)| writes_there(*id)).take(3).map(|(id, bytes)| {
        Evidence::bytes(
            format!("Of that, {}", cgroup::label(window, id)),
            bytes,
            "memory.stat file_dirty + file_writeback",
        )
    })
}

fn remedy(window: &Window, upper: &Upper<'_>) -> (Vec<Step>, String) {
    let place = shell_word(&upper.mount.mount_point).unwrap_or_else(|| "UPPER".to_owned());
    let mut plan = vec![Step {
        write: "the hook that tears containers down, before its umount".to_owned(),
        value: format!("sync -f {place}"),
        undo: "take the line out of the hook".to_owned(),
        command: format!("sync -f {place}"),
    }];
    let needs = threshold::Needs::of(window, upper.speed);
    let smaller = threshold::choose(&needs).filter(|advice| matches!(advice.pair, threshold::Pair::Bytes { .. }));
    plan.extend(smaller.iter().flat_map(|advice| sysctls(window, &advice.pair.changes())));
    let volatile = match window.facts.as_ref().and_then(|facts| facts.kernel) {
        // Commit c86243b090bc ("ovl: provide a mount option \"volatile\""), 5.10.
        Some(kernel) if !kernel.at_least(5, 10) => {
            "The mount option volatile, which skips this for containers whose data may be lost, needs kernel 5.10."
        }
        _ => {
            "Where a container's data may be lost with the machine, let its runtime mount the overlay with the option \
             volatile: then nothing is synced, and after a crash the upper directory has to be thrown away."
        }
    };
    let smaller = match smaller {
        Some(_) => {
            " The smaller thresholds keep less dirty at any time; pages that are rewritten often are written more often."
        }
        None => "",
    };
    (plan, format!("Syncing first takes as long, but holds no unmount and no lock meanwhile. {volatile}{smaller}"))
}

/// A name from the host as a word of a command, where it needs no quoting.
fn shell_word(name: &Name) -> Option<String> {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-".contains(byte);
    (name.as_bytes().starts_with(b"/") && name.as_bytes().iter().all(plain)).then(|| name.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::check_rule;
    use crate::fixture::incidents::*;
    use crate::fixture::{Fixture, mib_pages, secs};
    use crate::gap::Cause;
    use crate::traced::Who;
    use crate::traced::waits::Operation;
    use crate::traced::waits::SlowSync;
    use crate::units::BytesPerSecond;

    #[test]
    fn waiting_umounts_are_critical() {
        check_rule(&RULE, &overlay_teardown(), "critical: 10 umounts have waited 9.00 s while everything dirty on sdb");
        check_rule(&RULE, &overlay_teardown_published(), "critical: 10 umounts have waited 9.00 s");
    }

    #[test]
    fn a_burst_that_nothing_else_explains_is_laid_to_an_unmount_or_a_sync() {
        // Dirty from second 3 on and written from second 6 on; who unmounts has a name of its own.
        let busy = |t: f64| (t - 6.0).clamp(0.0, 3.5);
        let written = overlay_synced()
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
            });
        let expect = "warning: Everything dirty on sdb, 105 MiB, was written at once for 4.00 s";
        check_rule(&RULE, &written, expect);
        let calm = written.host(|_, row| row.psi_io_some = Some(secs(900.0)));
        check_rule(&RULE, &calm, "info: Everything dirty on sdb");
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
        check_rule(&RULE, &asked, "critical: 1 umount has waited 3.00 s while everything dirty on sdb");
        // Somebody called syncfs, which is what he wanted.
        let plain = overlay_synced().traced(&["bytes"], vec![sync(dev(false))]);
        check_rule(&RULE, &plain, "clear: unmounting an overlay on sdb would write 0 B at most");
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
        check_rule(&RULE, &overlay_synced(), "clear: unmounting an overlay on sdb would write 0 B at most");
        check_rule(&RULE, &overlay_volatile(), "clear: every overlay is volatile or read-only");
        check_rule(&RULE, &Fixture::healthy(), "clear: no overlay is mounted");
    }

    #[test]
    fn up_to_6_9_the_dirty_bytes_of_one_of_several_disks_are_a_bound() {
        let old = overlay_before_teardown("6.1.0-40-amd64");
        check_rule(&RULE, &old, "warning: Unmounting any of 10 overlays will take 10 s");
        // The root wb has little, the machine much: it may be anywhere.
        let elsewhere = old.bdi("8:16", |_, row| row.reclaimable = Some(Bytes(4096)));
        check_rule(&RULE, &elsewhere, "not checked: /sys/kernel/debug/bdi/NAME/wb_stats");
    }

    #[test]
    fn a_bound_of_the_speed_clears_and_never_finds() {
        let unmounted = || Cause::NotMounted { fs_type: "debugfs".to_owned() };
        let unknown = overlay_before_teardown("6.1.0-40-amd64").without(Source::DebugBdiStats, unmounted());
        check_rule(&RULE, &unknown, "not checked: /sys/kernel/debug/bdi/NAME/stats: debugfs is not mounted");
        let little = unknown.host(|_, row| row.nr_dirty = Some(mib_pages(0.0)));
        check_rule(&RULE, &little, "clear: unmounting an overlay on sdb would write 0 B at most");
    }

    #[test]
    fn a_fast_disk_has_written_it_before_anybody_notices() {
        let fast = overlay_before_teardown("6.12.117").bdi("8:16", |_, row| {
            row.write_bandwidth = Some(BytesPerSecond(900_000_000));
        });
        check_rule(&RULE, &fast, "clear: unmounting an overlay on sdb would write 300 MiB at most, 350 ms");
    }

    #[test]
    fn without_mounts_it_says_so() {
        let blind = Fixture::healthy().facts(|facts| facts.mounts.clear());
        check_rule(&RULE, &blind, "not checked: /proc/self/mountinfo (mounts): not in the recording");
    }

    #[test]
    fn a_hostile_mount_point_never_becomes_a_command() {
        let check = |name: &str, expect: Option<&str>| assert_eq!(shell_word(&Name::from(name)).as_deref(), expect);
        check("/var/lib/docker", Some("/var/lib/docker"));
        check("/var/$(reboot)", None);
        check("/a b", None);
        check("-rf", None);
    }
}
