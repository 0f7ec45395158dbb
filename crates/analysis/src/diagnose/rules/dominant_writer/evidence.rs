// SPDX-License-Identifier: MIT OR Apache-2.0
//! The readings that a finding of a dominant writer rests on, row by row, and what a trace saw of its data.

use super::{Dominant, FELT_UTILISATION, NOTICED_S, STALL_AWAIT_S, Trouble, is_journald, name};
use crate::diagnose::cgroup;
use crate::diagnose::derived::Derived;
use crate::diagnose::dirtying::{self, Dirtying};
use crate::diagnose::writer::{self, Period, Writers};
use crate::ledger::{Ledger, ledger};
use crate::report::Evidence;
use floodline_record::facts::{CgroupMode, Journald};
use floodline_record::human;
use floodline_record::name::Name;
use floodline_record::traced::Who;

/// Share of its data dirtied again from which that is worth a word.
const FELT_AGAIN: f64 = 0.1;

/// Part of the bytes of a writer that a trace must have seen become dirty for them to go through the page cache.
const MOSTLY_CACHED: f64 = 0.5;

/// Whether a trace saw most bytes of the writer become dirty: then it does not write past the page cache.
pub(super) fn is_cached(derived: &Derived<'_>, dominant: &Dominant<'_, '_>) -> bool {
    dirtied_by(derived, dominant)
        .is_some_and(|its| its.bytes as f64 >= MOSTLY_CACHED * dominant.dirtied_bytes as f64 && its.bytes > 0)
}

/// What a trace saw the writer dirty.
fn dirtied_by<'a>(derived: &Derived<'a>, dominant: &Dominant<'_, '_>) -> Option<Dirtying<'a>> {
    let of_cgroup = dominant.cgroup.map(|id| cgroup::ino(derived.window, id));
    let is_its = |who: &Who| match of_cgroup {
        Some(ino) => Some(who.cgroup_ino) == ino,
        None => dominant.has_process(who.pid),
    };
    dirtying::dirtying(derived.window, |_, dirtied| is_its(&dirtied.who))
}

/// What a trace saw of the writer's data: how much of all it was, in which file, and what of it reached the
/// disks. `None` when it did not see most of it written by this one.
pub(super) fn traced(derived: &Derived<'_>, dominant: &Dominant<'_, '_>) -> Option<String> {
    let all = dirtying::dirtying(derived.window, |_, _| true)?;
    let its = dirtied_by(derived, dominant)?;
    let share = its.bytes as f64 / all.bytes.max(1) as f64;
    if dominant.is_children() || share < writer::DOMINANT_SHARE {
        return None;
    }
    let mut text = format!(
        "{} of the {} that became dirty is its own, the largest part in {}",
        human::percent(share),
        human::bytes(all.bytes as f64),
        its.most_in()?
    );
    let ledger = dominant.is_one().then(|| ledger(derived.window)).flatten();
    // Data that a layer compresses or encrypts reach the disks in pages that belong to no process.
    let of_process = |ledger: &Ledger| {
        let line = ledger.processes.iter().find(|line| line.pid == dominant.writer.pid)?;
        let is_told = line.device_bytes > 0 && line.device_bytes >= ledger.totals.unattributed_bytes;
        is_told.then_some(line.device_bytes)
    };
    if let Some(bytes) = ledger.as_ref().and_then(of_process) {
        // A mirror writes each page once for each of its disks.
        let amount = human::bytes(bytes as f64);
        text.push_str(&match bytes > its.bytes {
            true => format!("; the disks wrote {amount} for it, copies included"),
            false => format!("; {amount} of it reached the disks"),
        });
    }
    let is_felt = its.redirtied_share().is_some_and(|share| share >= FELT_AGAIN);
    if let Some(part) = its.redirtied_part().filter(|_| is_felt) {
        text.push_str(&format!("; {part} of it had been dirty before"));
    }
    Some(format!("{text}."))
}

pub(super) fn evidence(
    derived: &Derived<'_>,
    writers: &Writers<'_>,
    dominant: &Dominant<'_, '_>,
    trouble: Option<&Trouble<'_>>,
) -> Vec<Evidence> {
    let who = name(derived, dominant);
    let since = if writers.period == Period::SinceStart { ", since started" } else { "" };
    let mut rows = vec![
        Evidence::share(format!("Share of {who}{since}"), dominant.share, "its dirtied ÷ all dirtied")
            .against(writer::DOMINANT_SHARE),
    ];
    rows.push(Evidence::bytes("It dirtied", dominant.dirtied_bytes, "/proc/PID/io write_bytes"));
    rows.extend(
        dominant
            .application_bytes
            .map(|bytes| Evidence::bytes("It handed to write calls", bytes, "/proc/PID/io wchar")),
    );
    rows.extend(inheritance_rows(dominant));
    rows.extend(disk_rows(derived, dominant));
    let second = writers.processes.iter().find(|other| !dominant.has_process(other.pid) && dominant.cgroup.is_none());
    rows.extend(second.and_then(|second| {
        Some(Evidence::bytes(
            format!("Next, {} dirtied", second.label()),
            second.dirtied_bytes?,
            "/proc/PID/io write_bytes",
        ))
    }));
    let is_whole = derived.writers().disk_bytes == writers.disk_bytes;
    let all = match trouble.filter(|_| !is_whole) {
        Some(trouble) => format!("All on {} dirtied", trouble.device.name),
        None => "All processes dirtied".to_owned(),
    };
    rows.push(Evidence::bytes(all, writers.attributed_bytes(), "/proc/PID/io write_bytes"));
    rows.extend(
        writers
            .unattributed_bytes()
            .map(|bytes| Evidence::bytes("Dirtied by none of them", bytes, "/proc/vmstat nr_dirtied less the above")),
    );
    let wrote = if is_whole { "All disks wrote" } else { "Its disk wrote" };
    rows.extend(writers.disk_bytes.map(|bytes| Evidence::bytes(wrote, bytes, "/proc/diskstats written")));
    if writers.unreadable() > 0 {
        rows.push(Evidence::count("Processes not readable", writers.unreadable() as u64, "/proc/PID/io"));
    }
    rows.extend(trouble.iter().flat_map(|trouble| trouble_rows(trouble)));
    let journald = derived.window.facts.as_ref().and_then(|facts| facts.journald.as_ref());
    rows.extend(journald.filter(|_| is_journald(dominant.writer)).map(journal_row));
    rows
}

/// What reached the disks of it.
fn disk_rows(derived: &Derived<'_>, dominant: &Dominant<'_, '_>) -> Vec<Evidence> {
    let source = "io.stat wbytes";
    match dominant.by_device {
        Some((id, bytes, share)) => vec![
            Evidence::bytes(format!("{} sent to disks", derived.label(id)), bytes, source),
            Evidence::share("Of what all cgroups sent", share, source).against(writer::DOMINANT_SHARE),
        ],
        None => {
            // Version 1 counts writeback for the root: a zero there is no reading of this cgroup.
            let is_v1 = derived.window.facts.as_ref().is_some_and(|facts| facts.cgroups.mode == CgroupMode::V1);
            let of = dominant.cgroup.or(dominant.writer.cgroup).filter(|_| !is_v1);
            let bytes = of.and_then(|id| writer::cgroup_device_bytes(derived.window, id));
            bytes.map(|bytes| Evidence::bytes("Its cgroup sent to disks", bytes, source)).into_iter().collect()
        }
    }
}

/// What the disk that it writes to suffers.
fn trouble_rows(trouble: &Trouble<'_>) -> Vec<Evidence> {
    let disk = trouble.device.name;
    let of_writes = "/proc/diskstats write_time ÷ writes";
    let mean = trouble.device.mean_write().map(|bytes| {
        Evidence::bytes(format!("Mean write of {disk}"), bytes as u64, "/proc/diskstats written ÷ writes")
    });
    let busy = Evidence::share(format!("{disk} busy"), trouble.utilisation, "/proc/diskstats io_time");
    let small = Evidence::seconds("Saturated by small writes", trouble.small_saturated_s, "/proc/diskstats");
    let mut rows = vec![busy.against(FELT_UTILISATION)];
    rows.extend(mean);
    rows.push(Evidence::seconds("Write await, worst interval", trouble.await_max_s, of_writes).against(STALL_AWAIT_S));
    rows.push(small.against(NOTICED_S));
    rows
}

fn journal_row(journald: &Journald) -> Evidence {
    let storage = Name::new(&journald.storage).to_string();
    let stored = match journald.persistent {
        Some(true) => format!("{storage}, on disk"),
        Some(false) => format!("{storage}, in memory"),
        None => storage,
    };
    Evidence::text("Journal storage", stored, "journald.conf Storage=")
}

/// Evidence that children wrote, and their bytes that are left out because they are counted elsewhere.
fn inheritance_rows(dominant: &Dominant<'_, '_>) -> Vec<Evidence> {
    let Some(inherited) = dominant.writer.inherited.filter(|_| dominant.is_one()) else { return Vec::new() };
    let mut rows = Vec::new();
    if let Some((childrens, own)) = inherited.cpu_s.filter(|(childrens, _)| *childrens > 0.0) {
        rows.push(
            Evidence::seconds("CPU of children it waited for", childrens, "/proc/PID/stat cutime + cstime")
                .against_text(format!("itself {}", human::seconds(own))),
        );
    }
    if inherited.dirtied_bytes > 0 {
        let bytes = inherited.dirtied_bytes;
        rows.push(Evidence::bytes("Left out, inherited from known children", bytes, "/proc/PID/io write_bytes"));
    }
    rows
}
