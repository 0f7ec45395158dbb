// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tables of the screens, with the source of every column: the file it is read from and the kernel function that
//! computes it or acts on it. Most important rows first.

use super::{Cell, Column, Row, Table, Weight};
use floodline_analysis::budget::{BudgetRow, Choice, Sort, budgets, rows};
use floodline_analysis::diagnose::{device, writer};
use floodline_analysis::ledger::ledger;
use floodline_record::human;
use floodline_record::id::Entity;
use floodline_record::units::Nanos;
use floodline_record::window::Window;

/// Rows of a table, at most.
const ROWS: usize = 2000;
/// Share of the time from which a disk is busy, and from which it is saturated.
const BUSY: f64 = 0.6;
const SATURATED: f64 = 0.95;

const fn column(head: &'static str, meaning: &'static str, source: &'static str, function: &'static str) -> Column {
    Column { head, meaning, source, function }
}

const CGROUPS: &[Column] = &[
    column("cgroup", "Cgroup, and the device where it has one", "cgroup directory, /proc/PID/cgroup", "cgroup_path()"),
    column("dirty", "Data that is not on its way to a disk yet", "memory.stat file_dirty", "folio_account_dirtied()"),
    column("writeb.", "Data on its way to a disk", "memory.stat file_writeback", "__folio_start_writeback()"),
    column(
        "freerun",
        "Below it no writer is paused",
        "computed from /proc/vmstat and memory.stat",
        "dirty_freerun_ceiling()",
    ),
    column(
        "limit",
        "Above it all writers are stopped",
        "computed from vm.dirty_* and memory.stat",
        "domain_dirty_limits()",
    ),
    column(
        "full",
        "Dirty and under writeback, as a part of the limit",
        "memory.stat, computed limit",
        "balance_dirty_pages()",
    ),
    column(
        "set by",
        "The setting that decides the limit",
        "/proc/sys/vm/dirty_*, memory.max, memory.high",
        "domain_dirty_limits()",
    ),
];

const DEVICES: &[Column] = &[
    column(
        "device or wb",
        "Disk, or a writeback structure: a device and the cgroup whose inodes it holds",
        "/proc/diskstats, debugfs bdi/NAME/wb_stats",
        "wb_init()",
    ),
    column("written/s", "Bytes written per second", "/proc/diskstats field 7", "blk_account_io_done()"),
    column(
        "a write",
        "Mean time of a write, queueing included",
        "/proc/diskstats field 8 / field 5",
        "blk_account_io_done()",
    ),
    column("busy", "Share of the time with a request in flight", "/proc/diskstats field 10", "update_io_ticks()"),
    column("dirty", "Dirty data of the wb", "debugfs bdi/NAME/wb_stats WbReclaimable", "wb_stat()"),
    column("writeb.", "Data of the wb on its way to the disk", "debugfs bdi/NAME/wb_stats WbWriteback", "wb_stat()"),
    column("limit", "The wb's share of the limit", "debugfs bdi/NAME/wb_stats WbDirtyThresh", "wb_calc_thresh()"),
    column(
        "inodes",
        "Inodes on the lists b_dirty, b_io and b_more_io",
        "debugfs bdi/NAME/wb_stats b_dirty, b_io, b_more_io",
        "queue_io()",
    ),
];

const WAITS: &[Column] = &[
    column("task", "The task that waits", "trace, /proc/PID/stat", "get_task_comm()"),
    column(
        "waits in",
        "The operation",
        "trace: fsync, sync, balance_dirty_pages; else /proc/PID/stat field 42",
        "vfs_fsync_range(), balance_dirty_pages()",
    ),
    column("times", "How often in the last minute", "trace", "balance_dirty_pages()"),
    column(
        "in all",
        "All of it together",
        "trace; else /proc/PID/stat field 42 since the last sample",
        "delayacct_blkio_end()",
    ),
    column("longest", "The longest", "trace", "io_schedule_timeout()"),
    column("on", "Where it waits: file, filesystem or device", "trace", "folio_wait_writeback()"),
];

const WRITERS: &[Column] = &[
    column(
        "process or file",
        "The process, or in a traced minute the file",
        "/proc/PID/comm, trace",
        "get_task_comm()",
    ),
    column("application", "Bytes per second handed to write calls", "/proc/PID/io wchar", "add_wchar()"),
    column(
        "dirtied",
        "Bytes per second that became dirty, whole folios",
        "/proc/PID/io write_bytes, trace",
        "task_io_account_write()",
    ),
    column(
        "device",
        "Bytes per second at the disks, credited to the task that dirtied them",
        "trace of block_rq_issue",
        "wbc_account_cgroup_owner()",
    ),
    column(
        "dropped",
        "Dirty bytes per second that were truncated before they were written",
        "/proc/PID/io cancelled_write_bytes",
        "task_io_account_cancelled_write()",
    ),
];

fn seconds(value: f64) -> String {
    human::seconds(value)
}

fn rate(value: f64) -> String {
    human::bytes_per_second(value)
}

fn bytes(value: Option<u64>) -> Cell {
    Cell::number(value.map(|bytes| bytes as f64), human::bytes)
}

fn table(columns: &[Column], mut rows: Vec<Row>, empty: &'static str) -> Table {
    rows.truncate(ROWS);
    Table { columns: columns.to_vec(), rows, empty }
}

/// Cgroups and the machine with their budgets, the fullest first.
pub(super) fn cgroups(now: &Window) -> Table {
    let report = rows(now, &budgets(now), Choice { all: true, sort: Sort::Over });
    // Cgroups without anything dirty stand behind the others: most of a machine's.
    let is_idle =
        |row: &&BudgetRow| row.cgroup.is_some() && row.dirty_bytes.unwrap_or(0) + row.writeback_bytes.unwrap_or(0) == 0;
    let (idle, used): (Vec<&BudgetRow>, Vec<&BudgetRow>) = report.rows.iter().partition(is_idle);
    table(CGROUPS, used.into_iter().chain(idle).map(budget).collect(), "No cgroup was read.")
}

fn budget(row: &BudgetRow) -> Row {
    let strict = row.of_strict_limit();
    let row = strict.as_ref().unwrap_or(row);
    let name = match (&row.container, &row.cgroup) {
        (Some(container), _) => container.clone(),
        (None, Some(cgroup)) => cgroup.clone(),
        (None, None) => "the whole machine".to_owned(),
    };
    let name = row.device.as_ref().map_or(name.clone(), |device| format!("{name} on {device}"));
    let bound = |exact: Option<u64>, most: Option<u64>| match (exact, most) {
        (Some(_), _) => bytes(exact),
        (None, Some(most)) if most < u64::MAX => {
            Cell { text: format!("≤{}", human::bytes(most as f64)), value: Some(most as f64) }
        }
        _ => bytes(None),
    };
    let used = row.dirty_bytes.unwrap_or(0).saturating_add(row.writeback_bytes.unwrap_or(0));
    let weight = match (row.over_ratio, row.freerun_bytes_max) {
        (Some(ratio), _) if ratio >= 1.0 => Weight::Over,
        (_, Some(freerun)) if used > freerun => Weight::Slowed,
        _ => Weight::Plain,
    };
    let cells = vec![
        Cell::text(name),
        bytes(row.dirty_bytes),
        bytes(row.writeback_bytes),
        bound(row.freerun_bytes, row.freerun_bytes_max),
        bound(row.thresh_bytes, row.thresh_bytes_max),
        Cell::number(row.over_ratio, human::percent),
        Cell::text(row.binding.clone()),
    ];
    Row { cells, weight }
}

/// Disks, busiest first, then their wbs, most dirty first.
pub(super) fn devices(now: &Window) -> Table {
    let mut disks: Vec<(f64, Row)> = device::devices(now)
        .iter()
        .map(|disk| {
            let busy = disk.utilisation();
            let bdi = disk.bdi().map(|span| &span.last);
            let inodes = bdi.and_then(|row| Some(row.b_dirty?.0 + row.b_io?.0 + row.b_more_io?.0));
            let weight = match busy {
                Some(busy) if busy >= SATURATED => Weight::Over,
                Some(busy) if busy >= BUSY => Weight::Slowed,
                _ => Weight::Plain,
            };
            let cells = vec![
                Cell::text(disk.name.to_string()),
                Cell::number(disk.write_rate(), rate),
                Cell::number(disk.write_await(), seconds),
                Cell::number(busy, human::percent),
                bytes(bdi.and_then(|row| row.reclaimable).map(|bytes| bytes.0)),
                bytes(bdi.and_then(|row| row.writeback).map(|bytes| bytes.0)),
                bytes(bdi.and_then(|row| row.dirty_thresh).map(|bytes| bytes.0)),
                Cell::number(inodes.map(|count| count as f64), human::number),
            ];
            (busy.unwrap_or(-1.0), Row { cells, weight })
        })
        .collect();
    disks.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let mut wbs: Vec<(u64, Row)> = now
        .wbs
        .iter()
        .filter_map(|(id, span)| {
            let Some(Entity::Wb { bdi, cgroup_ino }) = now.entities.get(id) else { return None };
            let row = &span.last;
            let dirty =
                row.reclaimable.map_or(0, |bytes| bytes.0).saturating_add(row.writeback.map_or(0, |bytes| bytes.0));
            let limit = row.dirty_thresh.map(|bytes| bytes.0);
            let weight =
                if dirty > 0 && limit.is_some_and(|limit| dirty > limit) { Weight::Over } else { Weight::Plain };
            let inodes = row.b_dirty.zip(row.b_io).zip(row.b_more_io).map(|((a, b), c)| (a.0 + b.0 + c.0) as f64);
            let passed = span.seconds();
            let written = span.growth.written.filter(|_| passed > 0.0).map(|bytes| bytes.0 as f64 / passed);
            let cells = vec![
                Cell::text(format!("  {}", wb_name(now, &bdi.to_string(), *cgroup_ino))),
                Cell::number(written, rate),
                Cell::text(""),
                Cell::text(""),
                bytes(row.reclaimable.map(|bytes| bytes.0)),
                bytes(row.writeback.map(|bytes| bytes.0)),
                bytes(limit),
                Cell::number(inodes, human::number),
            ];
            Some((dirty, Row { cells, weight }))
        })
        .collect();
    wbs.sort_by_key(|(dirty, _)| std::cmp::Reverse(*dirty));
    let rows = disks.into_iter().map(|(_, row)| row).chain(wbs.into_iter().map(|(_, row)| row)).collect();
    table(DEVICES, rows, "No device was read.")
}

/// "wb 8:0 of /system.slice".
fn wb_name(now: &Window, bdi: &str, cgroup_ino: u64) -> String {
    let of = now.entities.values().find_map(|entity| match entity {
        Entity::Cgroup { path, ino: Some(ino), .. } if *ino == cgroup_ino => Some(path.to_string()),
        _ => None,
    });
    match of {
        Some(path) => format!("wb {bdi} of {path}"),
        None => format!("wb {bdi} of cgroup {cgroup_ino}"),
    }
}

/// Tasks that waited: of a traced minute by operation, else by the time that the kernel counted since the last sample.
pub(super) fn waits(now: &Window, minute: &Window) -> Table {
    let mut rows: Vec<(f64, Row)> = Vec::new();
    let span = |ns: u64| Some(Nanos(ns).as_secs_f64());
    let mut push = |task: String, operation: &str, times: Option<u64>, all: u64, longest: Option<u64>, on: String| {
        let weight = if longest.is_some_and(|ns| ns >= 1_000_000_000) { Weight::Slowed } else { Weight::Plain };
        let cells = vec![
            Cell::text(task),
            Cell::text(operation),
            Cell::number(times.map(|times| times as f64), human::number),
            Cell::number(span(all), seconds),
            Cell::number(longest.and_then(span), seconds),
            Cell::text(on),
        ];
        rows.push((all as f64, Row { cells, weight }));
    };
    if let Some(ledger) = ledger(minute) {
        for wait in &ledger.waits {
            let on = wait.file.clone().or_else(|| wait.filesystem.clone()).unwrap_or_default();
            push(wait.process.clone(), wait.operation.name(), Some(1), wait.lasted_ns, Some(wait.lasted_ns), on);
        }
        for line in &ledger.throttled {
            let on = format!("{}, {} {}", line.bdi, line.domain.name(), line.cgroup);
            push(line.process.clone(), "dirty throttling", Some(line.count), line.total_ns, Some(line.longest_ns), on);
        }
        for line in &ledger.synced {
            push(
                line.process.clone(),
                line.operation.name(),
                Some(line.count),
                line.total_ns,
                Some(line.longest_ns),
                line.cgroup.clone(),
            );
        }
    }
    for writer in &writer::writers(now).processes {
        let delayed = writer.span.growth.blkio_delay.map_or(0, |ns| ns.0);
        let is_asleep = writer.span.last.state.is_some_and(|state| state.0 == u64::from(b'D'));
        if delayed > 0 || is_asleep {
            let operation = if is_asleep { "block I/O, asleep now" } else { "block I/O" };
            push(format!("{}[{}]", writer.comm, writer.pid), operation, None, delayed, None, String::new());
        }
    }
    rows.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    table(WAITS, rows.into_iter().map(|(_, row)| row).collect(), "No task waits.")
}

/// Processes that write, and in a traced minute the files, most dirtied first.
pub(super) fn writers(now: &Window, minute: &Window) -> Table {
    let passed = now.seconds();
    let per_second = |value: Option<u64>| value.filter(|_| passed > 0.0).map(|bytes| bytes as f64 / passed);
    let traced = ledger(minute);
    let minute_s = minute.seconds();
    let per_minute = |bytes: u64| (minute_s > 0.0).then(|| bytes as f64 / minute_s);
    let mut rows: Vec<(f64, Row)> = Vec::new();
    for writer in &writer::writers(now).processes {
        let (application, dirtied) = (per_second(writer.application_bytes), per_second(writer.dirtied_bytes));
        let device = traced.as_ref().and_then(|ledger| {
            let line = ledger.processes.iter().find(|line| line.pid == writer.pid)?;
            per_minute(line.device_bytes)
        });
        let is_writing = application.unwrap_or(0.0) + dirtied.unwrap_or(0.0) + device.unwrap_or(0.0) > 0.0;
        if !is_writing {
            continue;
        }
        let cells = vec![
            Cell::text(writer.label()),
            Cell::number(application, rate),
            Cell::number(dirtied, rate),
            Cell::number(device, rate),
            Cell::number(per_second(writer.cancelled_bytes), rate),
        ];
        rows.push((dirtied.unwrap_or(0.0).max(device.unwrap_or(0.0)), Row { cells, weight: Weight::Plain }));
    }
    for line in traced.iter().flat_map(|ledger| &ledger.files) {
        let (dirtied, device) = (per_minute(line.dirtied_bytes), per_minute(line.device_bytes));
        let cells = vec![
            Cell::text(line.file.clone()),
            Cell::text(""),
            Cell::number(dirtied, rate),
            Cell::number(device, rate),
            Cell::text(""),
        ];
        rows.push((dirtied.unwrap_or(0.0).max(device.unwrap_or(0.0)), Row { cells, weight: Weight::Plain }));
    }
    rows.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    table(WRITERS, rows.into_iter().map(|(_, row)| row).collect(), "No process wrote since the last sample.")
}
