// SPDX-License-Identifier: MIT OR Apache-2.0
//! Unmounts seen waiting for the filesystem below their overlay: asleep in every sample, or in the trace.

use super::upper::Upper;
use crate::diagnose::burst::NOTICED_S;
use crate::diagnose::derived::Derived;
use crate::diagnose::device::{Device, Interval};
use crate::ledger;
use crate::ledger::blame::Blame;
use crate::report::Evidence;
use floodline_record::human;
use floodline_record::id::{DevId, Entity};
use floodline_record::programs::UNMOUNTERS;
use floodline_record::record::What;
use floodline_record::units::{Count, Nanos};
use std::collections::BTreeSet;

/// The operation of a workload's task that unmounts. Rules read the stalls of no other operation.
pub const UMOUNT: &str = "umount";

/// Utilisation of the disk from which an unmount waits for the disk only.
const BUSY: f64 = 0.7;
/// `D` as the state of a process is recorded.
const UNINTERRUPTIBLE: Count = Count(b'D' as u64);

/// Unmounts seen waiting for a filesystem.
pub struct Seen {
    /// Number of unmounts.
    pub umounts: u64,
    /// Lower bound of the longest of them, seconds.
    pub seconds: f64,
    /// When each wait of a second or more began and ended, on the monotonic clock of the samples.
    pub waits: Vec<(Nanos, Nanos)>,
    /// Source of these numbers if it is not the tracer.
    source: Option<&'static str>,
    /// Share of the wait in which the device was busy.
    busy: f64,
    /// The same share of the rest of the time.
    busy_beside: f64,
    /// The longest sync of the filesystem that the tracer saw an overlay wait for.
    traced: Option<Blame>,
}

impl Seen {
    /// Finds the unmounts of one filesystem.
    pub fn of(derived: &Derived<'_>, upper: &Upper<'_>) -> Seen {
        let waiting = waiting(derived);
        let of_device = |is_wait: bool| waiting.as_ref().map_or(0.0, |waiting| busy(&upper.device, waiting, is_wait));
        let (busy, busy_beside) = (of_device(true), of_device(false));
        let (umounts, seconds) = waiting.as_ref().map_or((0, 0.0), |waiting| (waiting.count, waiting.seconds));
        let source = waiting.as_ref().map(|waiting| waiting.source);
        let waits = waiting.map_or_else(Vec::new, |waiting| waiting.waits);
        let mut traced = traced(derived, upper);
        let of_trace: Vec<(Nanos, Nanos)> = traced.iter().map(|wait| (wait.began(), Nanos(wait.at_ns))).collect();
        traced.sort_by_key(|wait| std::cmp::Reverse(wait.lasted_ns));
        let longest = traced.into_iter().next();
        Seen {
            umounts: umounts.max(of_trace.len() as u64),
            seconds: longest.as_ref().map_or(seconds, |wait| seconds.max(Nanos(wait.lasted_ns).as_secs_f64())),
            waits: if waits.len() < of_trace.len() { of_trace } else { waits },
            source,
            busy,
            busy_beside,
            traced: longest,
        }
    }

    /// Whether an unmount waits for this filesystem, and not for anything else.
    pub fn is_happening(&self) -> bool {
        self.busy >= BUSY || self.traced.is_some()
    }

    /// Whether unmounts waited for this filesystem one after another, and its device rests at other times. They are then hardly
    /// unmounts of the filesystem itself, nor of another one beside a device that is always busy.
    pub fn is_in_turn(&self) -> bool {
        let ends_before = |(_, to): &(Nanos, Nanos)| self.waits.iter().any(|(from, _)| from > to);
        let rests = self.busy_beside < BUSY / 2.0;
        self.is_happening() && rests && self.waits.iter().any(ends_before)
    }

    /// Traced confirmation: the waiting task and the owner of the data.
    pub fn confirmed(&self) -> Option<String> {
        self.traced.as_ref().map(confirmed)
    }

    /// The readings that show it.
    pub fn evidence(&self, upper: &Upper<'_>) -> Vec<Evidence> {
        let mut rows: Vec<Evidence> = self.traced.iter().flat_map(traced_rows).collect();
        if let Some(source) = self.source {
            rows.push(Evidence::count("umount asleep in every sample", self.umounts, source));
            rows.push(Evidence::seconds("Longest of them, at least", self.seconds, "samples").against(NOTICED_S));
            let busy = Evidence::share(format!("{} busy", upper.device.name), self.busy, "/proc/diskstats io_time");
            rows.push(busy.against(BUSY));
        }
        rows
    }
}

/// Whether an unmount was seen to wait at all.
pub(super) fn is_seen(derived: &Derived<'_>) -> bool {
    waiting(derived).is_some()
}

/// Unmounts that slept in every sample, or whose duration the workload measured.
struct Waiting {
    count: u64,
    /// Lower bound of the longest of them.
    seconds: f64,
    waits: Vec<(Nanos, Nanos)>,
    source: &'static str,
}

/// Unmounting processes that slept uninterruptibly in every sample with them. Without any, the durations that the tasks
/// of a workload measured.
fn waiting(derived: &Derived<'_>) -> Option<Waiting> {
    let waits = derived.window.processes.iter().filter(|(id, span)| {
        let is_umount =
            matches!(derived.window.entities.get(id), Some(Entity::Process { comm, .. }) if UNMOUNTERS.contains(&comm.as_bytes()));
        let asleep = span.min.state == Some(UNINTERRUPTIBLE) && span.max.state == Some(UNINTERRUPTIBLE);
        is_umount && asleep && span.seconds() >= NOTICED_S
    });
    let asleep: Vec<_> = waits.map(|(_, span)| (span.first_at, span.last_at)).collect();
    let measured = derived.window.events.iter().filter_map(|event| match &event.what {
        What::TaskStall { operation, lasted, .. } if operation == UMOUNT => {
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
    let longest = spans.iter().map(seconds).reduce(f64::max)?;
    Some(Waiting { count: spans.len() as u64, seconds: longest, waits: spans, source })
}

/// Traced syncs of the upper filesystem that the sync of an overlay waited for long.
fn traced(derived: &Derived<'_>, upper: &Upper<'_>) -> Vec<Blame> {
    let mounts = derived.window.facts.iter().flat_map(|facts| &facts.mounts);
    let overlays: BTreeSet<DevId> = mounts.filter(|mount| mount.overlay.is_some()).map(|mount| mount.dev).collect();
    let is_of_overlay = |wait: &Blame| wait.device.is_some_and(|device| overlays.contains(&device));
    let is_of_upper =
        |wait: &Blame| wait.device == Some(upper.mount.dev) && Nanos(wait.lasted_ns).as_secs_f64() >= NOTICED_S;
    let waits = ledger::waits(derived.window).unwrap_or_default().into_iter();
    waits.filter(is_of_overlay).flat_map(|wait| wait.parts).filter(is_of_upper).collect()
}

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

/// Traced data of a wait: its amount and its owners.
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

/// Share of the waits, or of the rest of the time, in which a disk below the device was busy. The time between two unmounts is not counted. Requests in
/// flight count as well: io_time is counted when requests start and end, and falls short where few and long ones overlap.
fn busy(device: &Device<'_>, waiting: &Waiting, is_wait: bool) -> f64 {
    let of_disk = |disk: &Device<'_>| {
        let intervals = disk.intervals();
        let is_within = |end: Nanos| waiting.waits.iter().any(|(from, to)| end > *from && end <= *to);
        let during = || intervals.iter().filter(|interval| is_within(interval.end) == is_wait);
        let seconds: f64 = during().map(|interval| interval.seconds).sum();
        let share = |interval: &Interval| Some(interval.utilisation?.max(interval.queue.unwrap_or(0.0).min(1.0)));
        let busy: f64 = during().filter_map(|interval| Some(share(interval)? * interval.seconds)).sum();
        if seconds > 0.0 { busy / seconds } else { 0.0 }
    };
    device.bottoms().iter().map(of_disk).fold(0.0, f64::max)
}
