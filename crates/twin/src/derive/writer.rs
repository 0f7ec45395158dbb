// SPDX-License-Identifier: MIT OR Apache-2.0
//! One program as a task: write calls, stores to mappings, direct writes, files that are dropped before they are
//! written, and reads. Each is a branch of its own with the recorded arrival times. `open` runs on a clock. `closed`
//! pauses between writes as long as the program did, and then writes again.

use super::bursts::{Branch, Burst, arrivals, before_syncs, bursts, size, steady};
use super::folios::InFolios;
use super::group::{Bin, Group, PAGE, Stored};
use super::machine::Place;
use super::reads::{self, Reads};
use super::rewrites::Rewritten;
use super::stores::{Amount, Cached, Mapped, PREPARED, mapped};
use super::syncing::{Syncing, end_of, sync_of};
use super::syncs::{Syncs, buffered_calls};
use super::temporary::{short_lived, temporary};
use super::{Fit, asked, left_dirty, mapped_files, rewrites, under_way};
use crate::Recorded;
use crate::provenance::{Notes, Origin};
use floodline_analysis::diagnose::device;
use floodline_record::units::{Bytes, Nanos};
use floodline_record::window::Window;
use floodline_scenario::{
    Barrier, ByteSize, CreateFiles, Frequency, Lasting, OnFile, Order, Pace, Parallel, Read, Step, Time, Write,
};

/// A task under construction.
pub(super) struct Writer {
    /// Number of copies that run.
    pub(super) copies: u64,
    /// Steps before it starts.
    pub(super) setup: Vec<Step>,
    pub(super) open: Vec<Step>,
    pub(super) closed: Vec<Step>,
    /// Files that must be read from the device, and their sizes: a mapped file, so that it is in large folios, and one that is read in order.
    pub(super) prepared: Vec<(String, u64)>,
    /// Bytes that it leaves dirty before it starts.
    pub(super) dirty_before: u64,
    /// Recorded result of its stores to a mapping. The rate of the stores is fitted to it by running the twin.
    pub(super) stored: Option<Stored>,
}

/// Busy share of a device that direct writes keep busy, and their part of its bytes.
const FILLED: f64 = 0.9;
const MOST_OF_DEVICE: f64 = 0.8;
/// Share of the time for which such writers wait or run, and of the samples that find them asleep.
const WAITING: f64 = 0.5;

/// Smallest block of a stream past the page cache, and size of a file that is written here and there, bytes.
const STREAM: f64 = 65_536.0;
const DIRECT_FILE: f64 = 67_108_864.0;

impl Writer {
    pub(super) fn of(
        group: &Group,
        (syncs, rewritten, is_emptied): (Syncs, Option<Rewritten>, bool),
        place: &Place,
        task: &str,
        recorded: &Recorded,
        notes: &mut Notes,
        fit: &Fit,
    ) -> Writer {
        let key = format!("workload.tasks.{task}");
        let copies = group.concurrent();
        let number = if copies > 1 { "-{j}" } else { "" };
        let base = format!("{}/twin/{task}", place.point);
        let file = |what: &str| format!("{base}/{what}{number}");
        notes.derived(&key, format!("{} as its counters show it", group.shown));
        let mut writer = Writer {
            copies,
            setup: Vec::new(),
            open: Vec::new(),
            closed: Vec::new(),
            prepared: Vec::new(),
            dirty_before: 0,
            stored: None,
        };
        let mut branches = Vec::new();
        // Most of what it dirties comes through a mapping: that is what it syncs.
        let is_of_mapping = (syncs.origin == Origin::Measured || syncs.is_by_age)
            && syncs.call.is_some()
            && syncs.at_ends.is_none()
            && group.is_mostly_mapped();
        let (syncs, of_mapping) = match is_of_mapping {
            true => (Syncs { call: None, count: 0.0, ..syncs }, Some(syncs.count)),
            false => (syncs, None),
        };
        let (mut beside, mut left) = (Vec::new(), None);
        let in_folios = InFolios::of(group, &syncs, place, recorded);
        let several = under_way::durable(group, &syncs, place, &recorded.window, (&file("data"), &key), notes);
        // A program that syncs, or writes again in its file, has data that it keeps.
        let is_plain = syncs.call.is_none() && in_folios.is_none() && rewritten.is_none() && several.is_none();
        let dropped = short_lived(group, is_plain.then_some(&recorded.window));
        branches.extend(match (in_folios, rewritten) {
            _ if several.is_some() => several,
            (Some(it), _) => {
                writer.setup.extend(it.setup(&file("data")));
                let sync = sync_of(syncs, it.calls(), &key, notes);
                let end = end_of(group, syncs, &file("data"), &key, notes);
                Some(it.branch(group, (sync, end), file("data"), &key, notes))
            }
            (None, Some(it)) => {
                let n = copies as f64;
                let each = Rewritten { bytes: it.bytes / n, dirty: it.dirty / n, ..it };
                if it.is_there {
                    // The ring is rounded to whole calls.
                    let total = Some(size(each.bytes + group.total.wchar / group.total.calls.max(1.0)));
                    let block = ByteSize(Bytes(1 << 20));
                    writer.setup.push(Step::Write(Write { file: file("data"), block, total, ..Write::default() }));
                    writer.setup.push(Step::Fsync(OnFile { file: file("data") }));
                }
                left = Some((each, file("data")));
                Some(rewrites(group, syncs, file("data"), each, &key, notes))
            }
            (None, None) => calls(group, 1.0 - dropped, syncs, file("data"), &key, notes)
                .map(|branch| if is_emptied { branch.emptying(&file("data"), &key, notes) } else { branch }),
        });
        branches.extend(temporary(group, dropped, file("temporary"), &key, notes));
        if let Some(Mapped { branch, bytes, cached, block, before, stored }) = mapped(
            group,
            place,
            file("mapped"),
            recorded,
            &key,
            notes,
            Amount { factor: fit.factors.get(task).copied().unwrap_or(1.0), at_once: fit.stores, before: fit.before },
        ) {
            writer.stored = stored;
            let mut end = None;
            let path = file("mapped");
            // The task that prepares the files does not know a separate copy of the task for each number.
            if cached.is_read() && copies == 1 {
                writer.prepare(path.clone(), bytes);
                if cached == Cached::InFoliosOfReads {
                    writer.setup.push(Step::Read(Read { file: path, block, ..Read::default() }));
                }
            } else {
                let total = Some(ByteSize(Bytes(bytes)));
                writer.setup.push(Step::Write(Write { file: path.clone(), block, total, ..Write::default() }));
                writer.setup.push(Step::Fsync(OnFile { file: path }));
            }
            if let Some((stores, dirty)) = before {
                writer.leave_dirty(left.take(), fit.before, &recorded.window);
                writer.setup.push(Step::MmapStore(stores));
                writer.dirty_before = writer.dirty_before.saturating_add(dirty);
            }
            if let Some(count) = of_mapping {
                mapped_files::note(syncs.is_by_age, &key, notes);
                let count = count / copies as f64;
                let waited = group.total.waited / copies as f64;
                end = mapped_files::at_ends(file("mapped"), (count, waited), &branch.bursts);
                if end.is_none() {
                    beside = mapped_files::synced(file("mapped"), count, recorded.window.seconds());
                }
            }
            branches.push(Branch { end, ..branch });
        }
        branches.extend(direct(group, place, &recorded.window, file("direct"), &key, notes));
        if let Some(Reads { branch, bytes, is_cold }) =
            reads::reads(group, (place, recorded), (file("read"), copies), &key, notes)
        {
            if is_cold {
                writer.prepare(file("read"), bytes);
            } else {
                let total = Some(ByteSize(Bytes(bytes)));
                let block = ByteSize(Bytes(1 << 20));
                writer.setup.push(Step::Write(Write { file: file("read"), block, total, ..Write::default() }));
                writer.setup.push(Step::Fsync(OnFile { file: file("read") }));
            }
            branches.push(branch);
        }
        // What comes before may sync.
        writer.leave_dirty(left, 0.0, &recorded.window);
        let syncs_of_others = syncs_of_others(group, place, &key, notes);
        let n = copies as f64;
        let busy: f64 = group.bins.iter().filter(|bin| bin.is_active()).map(|bin| bin.length).sum();
        let held = if group.paused > 0.0 { group.paused } else { group.total.waited };
        let waited = (held / n / busy.max(1e-3)).max(asleep_share(group, &recorded.window)).clamp(0.0, 0.98);
        let is_held = waited >= 0.02;
        let with = |mut branches: Vec<Vec<Step>>| {
            branches.extend([beside.clone(), syncs_of_others.clone()]);
            joined(branches)
        };
        writer.open = with(branches.iter().map(|branch| branch.open(n)).collect());
        writer.closed = match is_held {
            true => with(branches.iter().map(|branch| branch.closed(n, waited)).collect()),
            false => writer.open.clone(),
        };
        writer
    }

    /// Has a file written and dropped from the page cache before the task begins.
    fn prepare(&mut self, file: String, bytes: u64) {
        if self.prepared.is_empty() {
            self.setup.push(Step::Barrier(Barrier { name: PREPARED.to_owned() }));
        }
        self.prepared.push((file, bytes));
    }

    /// Makes the pages of a rewritten file dirty that were dirty when the recording began. `stores` is how long it stores afterwards.
    fn leave_dirty(&mut self, left: Option<(Rewritten, String)>, stores: f64, window: &Window) {
        let Some((it, file)) = left.filter(|(it, _)| it.dirty >= PAGE) else { return };
        self.setup.extend(left_dirty::steps(it.dirty, file, stores, window));
        self.dirty_before = self.dirty_before.saturating_add(size(it.dirty).0.0);
    }
}

/// Share of the time for which a program waits, by the samples that find its processes asleep, where the kernel counts no delays. Few of
/// them are chance.
fn asleep_share(group: &Group, window: &Window) -> f64 {
    let counts_delays = window.facts.as_ref().is_some_and(|facts| facts.task_delayacct == Some(true));
    let samples = group.bins.iter().filter(|bin| bin.active > 0).count() as f64 * group.concurrent() as f64;
    let share = group.asleep as f64 / samples.max(1.0);
    if counts_delays || share < WAITING { 0.0 } else { share }
}

/// Steps of a program that waits and neither writes nor reads, as sync, syncfs and unmounting do.
fn syncs_of_others(group: &Group, place: &Place, key: &str, notes: &mut Notes) -> Vec<Step> {
    let steps = asked::steps(group.syncs_of_others().map(|(_, at, seconds)| (at, seconds, place)));
    if !steps.is_empty() {
        notes.assumed(
            format!("{key}.steps.syncfs"),
            "the program waited and neither wrote nor read: assumed to be a sync of the filesystem",
        );
    }
    steps
}

fn joined(mut branches: Vec<Vec<Step>>) -> Vec<Step> {
    branches.retain(|steps| !steps.is_empty());
    match branches.len() {
        0 => vec![Step::Sleep(Lasting { lasting: Time(Nanos(1_000_000)) })],
        1 => branches.remove(0),
        _ => vec![Step::Parallel(Parallel { branches })],
    }
}

/// Write calls to a file that grows. `kept` is their part of the bytes.
fn calls(group: &Group, kept: f64, syncs: Syncs, file: String, key: &str, notes: &mut Notes) -> Option<Branch> {
    let total = &group.total;
    let bytes = total.by_calls * kept;
    if bytes < PAGE {
        return None;
    }
    if let Some((size, is_synced)) = group.made.and_then(|made| made.each(&syncs)) {
        let is_traced = group.made.is_some_and(|made| made.is_traced);
        let (origin, text) = match is_traced {
            true => (Origin::Derived, "files that the trace names, each written once"),
            false => {
                (Origin::Assumed, "a file for each write call: with one file that grows, the twin misses the recording")
            }
        };
        notes.put(origin, format!("{key}.steps.create_files"), text);
        notes.assumed(format!("{key}.steps.create_files.file"), "new files, which the recording does not show");
        let stretches = arrivals(&group.bins, |bin| bin.by_calls * kept, size);
        return Some(files(file, size, stretches, is_synced));
    }
    let calls = buffered_calls(group).max(1.0);
    // Bytes of a call: the bytes passed, without those that dirtied nothing.
    let passed = total.wchar * total.by_calls / (total.by_calls + total.direct).max(1.0);
    // Larger calls are several in the twin.
    let calls = calls.max((passed / CALL_MAX).ceil());
    let block = usual((passed / calls).max(1.0).round());
    let is_less = total.by_calls < 0.8 * passed;
    if is_less {
        let part = 100.0 * (1.0 - total.by_calls / passed.max(1.0));
        let text = format!(
            "{part:.0} % of the bytes passed to write calls dirtied nothing (pipes, sockets, pages that were dirty) and are left out"
        );
        notes.assumed(format!("{key}.steps"), text);
    }
    notes.derived(format!("{key}.steps.write.rate"), "write calls over time, bursts kept");
    let per_call = if is_less { block } else { total.by_calls / calls };
    // A program that is held up by its syncs calls later than it wants to: assume one rate.
    let is_habit = syncs.call.is_some() && syncs.origin == Origin::Assumed;
    let end = end_of(group, syncs, &file, key, notes);
    let mut stretches: Vec<Burst> = match is_habit {
        true => steady(&group.bins, |bin| bin.by_calls * kept),
        false if end.is_some() => bursts(&group.bins, |bin| bin.by_calls * kept),
        false => arrivals(&group.bins, |bin| bin.by_calls * kept, per_call),
    };
    if let Some(end) = end.as_ref().filter(|_| !is_habit) {
        before_syncs(&mut stretches, &group.bins, end);
    }
    // The bytes of each call are on the device before the next call: whole pages dirty the same number of bytes again.
    let is_whole = is_habit || (!is_less && in_whole_pages(&syncs, passed, total.by_calls));
    let (block, per_call) = match is_whole {
        true => ((per_call / PAGE).round().max(1.0) * PAGE, (per_call / PAGE).round().max(1.0) * PAGE),
        false => (block, per_call),
    };
    // Calls that pass a few bytes, to a pipe or a terminal, are counted with those to the file.
    let of_file = if is_whole && !is_habit { (total.by_calls / block).clamp(1.0, calls) } else { calls };
    let of_block = format!("{key}.steps.write.block");
    match of_file < calls {
        true => notes.derived(
            of_block,
            "what is passed between two syncs dirties no page twice: whole pages, without calls that pass little",
        ),
        false => notes.measured(of_block, "wchar divided by write calls"),
    }
    let sync = sync_of(syncs, of_file, key, notes);
    let is_any_synced = sync.is_some();
    let is_unpaced = is_any_synced && is_synced_each(group, syncs, &stretches);
    // Each call dirties a page of its own and none is made durable: one-block files.
    let is_small_files =
        !is_any_synced && end.is_none() && block <= 2048.0 && total.by_calls >= 0.9 * calls * PAGE && calls >= 16.0;
    if is_small_files {
        notes.assumed(
            format!("{key}.steps.create_files"),
            "each call dirtied a page of its own: assumed to be small files",
        );
        return Some(small_files(file, block, stretches, per_call));
    }
    let syncing = Syncing::new(sync);
    let synced_after = syncing.after();
    let step = move |count: u64, rate: Option<Frequency>| {
        let write = Write {
            file: file.clone(),
            order: Order::Append,
            block: size(block),
            rate: rate.map(Pace::Blocks),
            count: Some(count),
            ..Write::default()
        };
        syncing.steps(write, count)
    };
    Some(Branch { end, is_unpaced, synced_after, ..Branch::new(stretches, per_call, step) })
}

/// Largest call of a twin, bytes.
const CALL_MAX: f64 = 16_777_216.0;

/// Size of which large calls of programs usually are multiples, bytes, and the distance of a mean call from one that a last, shorter call of
/// each file explains.
const USUAL: f64 = 65_536.0;
const OF_LAST_CALL: f64 = 0.02;

/// The usual size of a call that is next to a mean size. Calls that are no whole pages make smaller folios and requests.
fn usual(mean: f64) -> f64 {
    let nearest = (mean / USUAL).round() * USUAL;
    if nearest >= mean && nearest - mean <= OF_LAST_CALL * mean { nearest } else { mean }
}

/// Whether a program that syncs writes whole pages, or each time a new file: `passed` to its write calls and `dirtied` by them,
/// bytes. An append that begins within a page dirties that page once more after each sync.
fn in_whole_pages(syncs: &Syncs, passed: f64, dirtied: f64) -> bool {
    let is_synced = syncs.call.is_some() && syncs.at_ends.is_none() && syncs.count >= SYNCS_MIN;
    let twice = syncs.count * PAGE;
    is_synced && twice >= SHOWS * passed && dirtied < passed + 0.5 * twice
}

/// Part of the bytes from which pages that are dirtied twice would show.
const SHOWS: f64 = 0.1;

/// Fewest syncs that show whether pages are dirtied twice.
const SYNCS_MIN: f64 = 4.0;

/// Write calls to a file of a size, to pages that may be dirty already: anywhere in it, or from its beginning again.
fn rewrites(group: &Group, syncs: Syncs, file: String, it: Rewritten, key: &str, notes: &mut Notes) -> Branch {
    let total = &group.total;
    let calls = buffered_calls(group).max(1.0);
    let of_call = (rewrites::passed(total) / calls / PAGE).round().clamp(1.0, 4096.0);
    // Calls to neighbouring pages are one call.
    let block = of_call.max(it.run.round()) * PAGE;
    let calls = (calls * of_call * PAGE / block).max(1.0);
    let bytes = ((it.bytes / block).round().max(1.0) * block) as u64;
    let of_block = format!("{key}.steps.write.block");
    match block > of_call * PAGE {
        true => notes.derived(of_block, "bytes of a request of the device, in whole pages"),
        false => notes.measured(of_block, "wchar divided by write calls, in whole pages"),
    }
    notes.derived(format!("{key}.steps.write.rate"), "write calls over time, bursts kept");
    notes.derived(format!("{key}.steps.write.size"), it.why);
    let end = end_of(group, syncs, &file, key, notes);
    let sync = sync_of(syncs, calls, key, notes);
    // Where hardly a call finds a dirty page, what becomes dirty leaves out calls to pipes.
    let is_all = total.by_calls >= (1.0 - rewrites::REPEATED_MIN) * rewrites::passed(total);
    let amount = if is_all { |bin: &Bin| bin.by_calls } else { rewrites::passed_in };
    let mut bursts = if end.is_some() { bursts(&group.bins, amount) } else { arrivals(&group.bins, amount, block) };
    if let Some(end) = &end {
        before_syncs(&mut bursts, &group.bins, end);
    }
    if it.is_ring {
        notes.derived(
            format!("{key}.steps.write.order"),
            "each call dirties pages until all of the file is dirty: a ring",
        );
    }
    let order = if it.is_ring { Order::Sequential } else { Order::Random };
    let is_unpaced = sync.is_some() && is_synced_each(group, syncs, &bursts);
    let syncing = Syncing::new(sync);
    let synced_after = syncing.after();
    let step = move |count: u64, rate: Option<Frequency>| {
        let write = Write {
            file: file.clone(),
            order,
            size: Some(ByteSize(Bytes(bytes))),
            block: size(block),
            rate: rate.map(Pace::Blocks),
            count: Some(count),
            ..Write::default()
        };
        syncing.steps(write, count)
    };
    Branch { end, is_unpaced, synced_after, ..Branch::new(bursts, block, step) }
}

/// Whether each burst is written and synced within one interval: the sync is in it too, so the calls are not spread over it.
fn is_synced_each(group: &Group, syncs: Syncs, bursts: &[Burst]) -> bool {
    let is_its =
        |bin: &Bin, burst: &Burst| (bin.end - burst.to).abs() < 1e-6 && burst.to - burst.from <= bin.length + 1e-6;
    let is_in_one = |burst: &Burst| group.bins.iter().any(|bin| is_its(bin, burst));
    let all = bursts.len() as f64 * group.concurrent() as f64;
    syncs.count == all && bursts.iter().all(is_in_one)
}

/// Files of one block each.
fn small_files(file: String, block: f64, bursts: Vec<Burst>, unit: f64) -> Branch {
    // The work on folders and inodes takes longer than that on the pages, and waits for it are no waits for I/O.
    let bursts = bursts.into_iter().map(|burst| Burst { lasts: None, ..burst }).collect();
    Branch { unit, ..files(file, block, bursts, false) }
}

/// Files of `bytes` each, one after the other.
fn files(file: String, bytes: f64, bursts: Vec<Burst>, fsync: bool) -> Branch {
    let number = std::cell::Cell::new(0_u64);
    let step = move |count: u64, rate: Option<Frequency>| {
        // Each burst gets a folder of its own.
        number.set(number.get() + 1);
        vec![Step::CreateFiles(CreateFiles {
            file: format!("{file}-{}/{{d}}/{{n}}", number.get()),
            files: Some(count),
            files_per_dir: Some(500),
            size: size(bytes),
            rate,
            lasting: None,
            fsync,
        })]
    };
    Branch::new(bursts, bytes, step)
}

/// Writes past the page cache.
fn direct(group: &Group, place: &Place, window: &Window, file: String, key: &str, notes: &mut Notes) -> Option<Branch> {
    let total = &group.total;
    if total.direct < 4.0 * PAGE {
        return None;
    }
    let calls: f64 = group.bins.iter().filter(|bin| bin.direct > 0.0).map(|bin| bin.calls).sum();
    let passed: f64 = group.bins.iter().filter(|bin| bin.direct > 0.0).map(|bin| bin.direct + bin.by_calls).sum();
    let block = ((passed / calls.max(1.0) / PAGE).round().max(1.0) * PAGE).min(16_777_216.0);
    notes.derived(format!("{key}.steps.write.direct"), "bytes that processes wrote and that never were dirty");
    let bursts = arrivals(&group.bins, |bin| bin.direct, block);
    // A stream of large blocks goes on in its file; small ones are pages here and there. A page cache below it tells them apart.
    let (order, bytes) = match block >= STREAM {
        true => (Order::Sequential, (total.direct.max(DIRECT_FILE) / block).ceil() * block),
        false => (Order::Random, DIRECT_FILE),
    };
    notes
        .assumed(format!("{key}.steps.write.order"), "blocks of 64 KiB or more are contiguous, smaller blocks are not");
    let bytes = size(bytes);
    let is_unpaced = fills_device(group, |bin| bin.direct, place, window);
    if is_unpaced {
        let text = "the device was busy all the time and wrote little else: each call waits for the one before";
        notes.derived(format!("{key}.steps.write.rate"), text);
    }
    let step = move |count: u64, rate: Option<Frequency>| {
        let write = Write {
            file: file.clone(),
            block: size(block),
            rate: rate.map(Pace::Blocks),
            count: Some(count),
            direct: true,
            order,
            size: Some(bytes),
            ..Write::default()
        };
        vec![Step::Write(write)]
    };
    Some(Branch { is_unpaced, ..Branch::new(bursts, block, step) })
}

/// Whether some writes of a program keep their device busy while they last: direct ones, or durable ones. Such a writer is as fast as
/// the device. A loop device through the page cache is as fast as memory: what is written to it has a pace of its own.
pub(super) fn fills_device(group: &Group, bytes: fn(&Bin) -> f64, place: &Place, window: &Window) -> bool {
    if place.is_buffered {
        return false;
    }
    let start = window.first_at.map_or(0, |first| first.monotonic.0);
    let Some(device) = device::devices(window).into_iter().find(|device| device.dev == place.dev) else { return false };
    let (mut busy, mut seconds, mut written, mut wrote) = (0.0, 0.0, 0.0, 0.0);
    let (mut waited, mut intervals) = (0.0, 0u32);
    for interval in device.intervals() {
        let end = interval.end.0.saturating_sub(start) as f64 / 1e9;
        let is_then = |bin: &&Bin| bytes(bin) > 0.0 && (bin.end - end).abs() < 0.5 * bin.length;
        let Some(bin) = group.bins.iter().find(is_then) else { continue };
        busy += interval.utilisation.unwrap_or(0.0) * interval.seconds;
        seconds += interval.seconds;
        written += interval.written_bytes;
        wrote += bytes(bin);
        waited += bin.waited + bin.cpu;
        intervals += 1;
    }
    // A device can be busy with what others flush. Where the kernel counts no delays, samples find the writer asleep; where they find
    // no task asleep, they tell nothing.
    let counts_delays = window.facts.as_ref().is_some_and(|facts| facts.task_delayacct == Some(true));
    let asleep = group.asleep as f64 / group.processes.max(1) as f64;
    let is_asleep = asleep >= WAITING * f64::from(intervals) || window.asleep.is_empty();
    let in_syncs = group.synced.map_or(0.0, |synced| synced.waited as f64 / 1e9);
    let is_waiting = waited.max(in_syncs) >= WAITING * seconds || (!counts_delays && is_asleep);
    seconds > 0.0 && busy >= FILLED * seconds && wrote >= MOST_OF_DEVICE * written && is_waiting
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_scenario::SyncCall;

    #[test]
    fn large_calls_with_a_last_shorter_one_are_of_their_usual_size() {
        assert_eq!([130_435.0, 261_682.0, 131_072.0].map(usual), [131_072.0, 262_144.0, 131_072.0]);
        // Small calls may have any size, and so have calls that are larger than a multiple.
        assert_eq!([4040.0, 65_000.0, 132_000.0].map(usual), [4040.0, 65_536.0, 132_000.0]);
    }

    #[test]
    fn files_of_a_burst_are_made_in_a_folder_of_its_own() {
        let burst = |from: f64| Burst::new(from, from + 1.0, 10.0 * 65_536.0);
        let made = files("/data/f".to_owned(), 65_536.0, vec![burst(0.0), burst(5.0)], true).open(1.0);
        let told = |step: &Step| match step {
            Step::CreateFiles(it) => Some((it.file.clone(), it.files, it.size.bytes(), it.fsync)),
            _ => None,
        };
        let expect = |number: u32| (format!("/data/f-{number}/{{d}}/{{n}}"), Some(10), 65_536, true);
        assert_eq!(made.iter().filter_map(told).collect::<Vec<_>>(), [expect(1), expect(2)]);
    }

    #[test]
    fn samples_find_a_program_asleep_that_waits_most_of_the_time() {
        let share = |asleep: usize, counts_delays: bool| {
            let bin = Bin { length: 0.5, active: 2, ..Bin::default() };
            let group = Group { bins: vec![bin; 40], asleep, ..Group::default() };
            let mut window = floodline_testkit::Fixture::healthy().window();
            window.facts.as_mut().unwrap().task_delayacct = Some(counts_delays);
            asleep_share(&group, &window)
        };
        assert_eq!(share(72, false), 0.9);
        assert_eq!(share(30, false), 0.0, "by chance");
        assert_eq!(share(72, true), 0.0, "its delays are counted");
    }

    #[test]
    fn pages_that_are_dirtied_once_for_each_sync_are_written_whole() {
        let told = |count: f64, passed: f64, pages: f64| {
            let syncs = Syncs { count, call: Some(SyncCall::Fdatasync), ..Syncs::default() };
            in_whole_pages(&syncs, passed, pages * PAGE)
        };
        // 80 pages, each synced, and 36 calls that pass 20 bytes to a pipe.
        assert!(told(80.0, 80.0 * PAGE + 720.0, 79.0));
        // Appends of 3000 bytes begin within a page: each sync leaves one that is dirtied again.
        assert!(!told(100.0, 300e3, 173.0));
        // Lines of a log dirty the last page again and again.
        assert!(!told(100.0, 10e3, 102.0));
        assert!(!told(3.0, 3.0 * PAGE, 3.0), "three syncs are too few to tell");
        assert!(!told(20.0, 4000.0 * PAGE, 4000.0), "a page for each sync is too little to show");
        let at_ends = Syncs { count: 80.0, call: Some(SyncCall::Fsync), at_ends: Some(0.1), ..Syncs::default() };
        assert!(!in_whole_pages(&at_ends, 80.0 * PAGE, 80.0 * PAGE));
        assert!(!in_whole_pages(&Syncs::default(), 80.0 * PAGE, 80.0 * PAGE), "nothing is synced");
    }
}
