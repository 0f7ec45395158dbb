// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waits on the page of one recording: those that a trace saw, each with whose data it was for, and those that the counters of
//! processes show.

use super::figure::second;
use super::host::{Host, shorten};
use super::model::{Block, Cell, Section, Table};
use floodline_analysis::diagnose::writer;
use floodline_analysis::ledger::blame::Blame;
use floodline_record::human;
use floodline_record::units::Nanos;
use std::fmt::Write;

fn span_of(ns: u64) -> String {
    human::seconds(Nanos(ns).as_secs_f64())
}

/// The section of waits.
pub(super) fn waits(host: &Host<'_>) -> Section {
    let mut blocks = Vec::new();
    if let Some(ledger) = host.ledger {
        let mut long = Table::new(
            "Long waits for stable storage, and for whose data",
            &["Process", "operation", "#waited", "#from second", "where", "queued meanwhile"],
        );
        for wait in &ledger.waits {
            let begin = Nanos(wait.at_ns.saturating_sub(wait.lasted_ns));
            long.push(vec![
                Cell::Name(wait.process.clone()),
                Cell::Text(wait.operation.name().to_owned()),
                Cell::Number(span_of(wait.lasted_ns)),
                Cell::Number(second(host.timeline.second_of(begin).max(0.0))),
                Cell::Text(wait.file.clone().or_else(|| wait.filesystem.clone()).unwrap_or_default()),
                Cell::Text(queued(wait)),
            ]);
        }
        let mut synced = Table::new(
            "All waits for stable storage",
            &["Process", "cgroup", "operation", "#times", "#in all", "#longest"],
        );
        for line in &ledger.synced {
            synced.push(vec![
                Cell::Name(line.process.clone()),
                Cell::Text(line.cgroup.clone()),
                Cell::Text(line.operation.name().to_owned()),
                Cell::Number(line.count.to_string()),
                Cell::Number(span_of(line.total_ns)),
                Cell::Number(span_of(line.longest_ns)),
            ]);
        }
        let mut throttled = Table::new(
            "Pauses in dirty throttling (balance_dirty_pages)",
            &["Process", "cgroup", "device", "held to", "#times", "#in all", "#longest"],
        );
        for line in &ledger.throttled {
            throttled.push(vec![
                Cell::Name(line.process.clone()),
                Cell::Text(line.cgroup.clone()),
                Cell::Text(line.bdi.clone()),
                Cell::Text(line.domain.name().to_owned()),
                Cell::Number(line.count.to_string()),
                Cell::Number(span_of(line.total_ns)),
                Cell::Number(span_of(line.longest_ns)),
            ]);
        }
        for mut table in [long, synced, throttled] {
            shorten(&mut table);
            if !table.rows.is_empty() {
                blocks.push(Block::Table(table));
            }
        }
    }
    let mut delayed: Vec<(u64, String)> = writer::writers(host.window)
        .processes
        .iter()
        .filter_map(|writer| {
            let waited = writer.span.growth.blkio_delay?.0;
            (waited > 0).then(|| (waited, format!("{}[{}]", writer.comm, writer.pid)))
        })
        .collect();
    delayed.sort_by_key(|(waited, _)| std::cmp::Reverse(*waited));
    let mut table = Table::new(
        "Time that processes waited for block I/O (/proc/PID/stat field 42, throttling included)",
        &["Process", "#waited"],
    );
    for (waited, name) in delayed {
        table.push(vec![Cell::Name(name), Cell::Number(span_of(waited))]);
    }
    shorten(&mut table);
    if !table.rows.is_empty() {
        blocks.push(Block::Table(table));
    }
    Section::new("waits", "Waits", blocks)
}

fn queued(wait: &Blame) -> String {
    let mut text = wait.queued_bytes.map(|bytes| human::bytes(bytes as f64)).unwrap_or_default();
    if !wait.cgroups.is_empty() {
        let _ = write!(text, ", {}", wait.whose());
    }
    text
}
