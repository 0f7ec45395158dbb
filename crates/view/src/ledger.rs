// SPDX-License-Identifier: MIT OR Apache-2.0
//! The byte ledger as text or JSON: bytes written, dirtied and queued, by process, cgroup, file and disk, and tasks
//! that waited for data, with the processes that dirtied it. Computes nothing.

use crate::layout::{columns, hanging, shortened};
use floodline_analysis::ledger::balance::{Mismatch, Sum};
use floodline_analysis::ledger::blame::Blame;
use floodline_analysis::ledger::{
    CgroupLine, DiskLine, FileLine, Ledger, ProcessLine, SyncedLine, ThrottledLine, Totals,
};
use floodline_record::human;
use floodline_record::units::Nanos;
use std::fmt::Write;

/// How the tables are set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Columns; at least 60 are used.
    pub width: usize,
    /// Rows of a table; the rest is counted.
    pub rows: usize,
}

const WIDTH_MIN: usize = 60;
const WIDTH_MAX: usize = 120;
const UNKNOWN: &str = "?";
/// Columns of a number and the space before it.
const NUMBER: usize = 11;

/// The tables.
pub fn text(ledger: &Ledger, options: Options) -> String {
    let mut page = Page { out: String::new(), width: options.width.clamp(WIDTH_MIN, WIDTH_MAX), rows: options.rows };
    page.totals(&ledger.totals, ledger.window_s);
    page.incomplete(&ledger.mismatches, &ledger.gaps);
    page.table("disk", &["data", "metadata", "journal", "direct"], &ledger.disks, disk);
    page.table("process", &["application", "dirtied", "at disks"], &ledger.processes, process);
    page.table("cgroup", &["dirtied", "at disks", "charged"], &ledger.cgroups, cgroup);
    page.table("file", &["dirtied", "again", "at disks"], &ledger.files, file);
    page.table("waits for stable storage", &["times", "in all", "longest"], &ledger.synced, synced);
    page.table("paused in dirty throttling", &["times", "in all", "longest"], &ledger.throttled, throttled);
    page.waits(&ledger.waits);
    page.out
}

/// Renders the ledger as JSON.
///
/// # Errors
///
/// None for a ledger, whose parts all have a JSON form.
pub fn json(ledger: &Ledger) -> Result<String, serde_json::Error> {
    crate::json::line(ledger)
}

struct Page {
    out: String,
    width: usize,
    rows: usize,
}

impl Page {
    fn totals(&mut self, totals: &Totals, seconds: f64) {
        let queued = &totals.queued;
        let lines = [
            ("applications wrote", totals.application_bytes, "with write calls, to files and all else".to_owned()),
            ("became dirty", totals.dirtied_bytes, again(totals.redirtied_bytes, totals.dirtied_bytes)),
            ("dropped unwritten", totals.cancelled_bytes, String::new()),
            ("queued at disks", queued.total(), counted(totals)),
            ("  data of files", queued.data_bytes, nobodys(totals)),
            ("  journal", queued.journal_bytes, String::new()),
            ("  metadata", queued.metadata_bytes, String::new()),
            ("  past the cache", queued.direct_bytes, String::new()),
            ("  unattributed", queued.unknown_bytes, untold(queued.unknown_bytes)),
        ];
        let _ = writeln!(self.out, "Bytes within {}", human::seconds(seconds));
        for (name, bytes, remark) in lines {
            let line = format!("  {name:<20}{:>NUMBER$}  {remark}", amount(bytes));
            let _ = writeln!(self.out, "{}", line.trim_end());
        }
    }

    /// What the sums lack.
    fn incomplete(&mut self, mismatches: &[Mismatch], gaps: &[String]) {
        if mismatches.is_empty() && gaps.is_empty() {
            return;
        }
        self.out.push_str("\nThe trace is incomplete\n");
        for mismatch in mismatches {
            hanging(&mut self.out, "  ", &contradiction(mismatch), self.width);
        }
        for gap in gaps {
            hanging(&mut self.out, "  ", gap, self.width);
        }
    }

    /// A table: the name takes what the numbers leave.
    fn table<T>(&mut self, name: &str, headings: &[&str], rows: &[T], cells: impl Fn(&T) -> (String, Vec<String>)) {
        if rows.is_empty() {
            return;
        }
        let room = self.width.saturating_sub(headings.len() * (NUMBER + 1));
        self.out.push('\n');
        self.row(name, room, headings.iter().map(|heading| (*heading).to_owned()));
        for row in rows.iter().take(self.rows) {
            let (name, numbers) = cells(row);
            self.row(&shortened(&name, room), room, numbers.into_iter());
        }
        if let Some(more) = rows.len().checked_sub(self.rows).filter(|more| *more > 0) {
            let _ = writeln!(self.out, "  and {} more: --rows {}", more, rows.len());
        }
    }

    fn row(&mut self, name: &str, room: usize, numbers: impl Iterator<Item = String>) {
        let mut line = format!("{name}{}", " ".repeat(room.saturating_sub(columns(name))));
        for number in numbers {
            let _ = write!(line, " {}{number}", " ".repeat(NUMBER.saturating_sub(columns(&number))));
        }
        let _ = writeln!(self.out, "{}", line.trim_end());
    }

    fn waits(&mut self, waits: &[Blame]) {
        if waits.is_empty() {
            return;
        }
        self.out.push_str("\nlong waits, and for whose data\n");
        for wait in waits.iter().take(self.rows) {
            hanging(&mut self.out, "  ", &sentence(wait), self.width);
        }
        if let Some(more) = waits.len().checked_sub(self.rows).filter(|more| *more > 0) {
            let _ = writeln!(self.out, "  and {more} more: --rows {}", waits.len());
        }
    }
}

fn amount(bytes: u64) -> String {
    human::bytes(bytes as f64)
}

fn share(part: u64, all: u64) -> Option<String> {
    (all > 0).then(|| human::part(part as f64 / all as f64))
}

fn again(redirtied: u64, dirtied: u64) -> String {
    share(redirtied, dirtied).map(|share| format!("{share} of it had been dirty before")).unwrap_or_default()
}

/// What the kernel counted at completion. More than was queued in the same time was under way before, or not traced.
fn counted(totals: &Totals) -> String {
    let Some(bytes) = totals.diskstats_bytes else { return String::new() };
    match bytes.saturating_sub(totals.queued.total()) {
        0 => format!("/proc/diskstats: {}", amount(bytes)),
        more => format!("/proc/diskstats: {}, {} queued before or unseen", amount(bytes), amount(more)),
    }
}

fn nobodys(totals: &Totals) -> String {
    match share(totals.credited_bytes, totals.queued.data_bytes) {
        Some(credited) => format!("{credited} credited to processes"),
        None => String::new(),
    }
}

/// What carries no page of a file and is none of the other classes.
fn untold(bytes: u64) -> String {
    if bytes > 0 { "such as compressed data; credited to no process".to_owned() } else { String::new() }
}

fn contradiction(mismatch: &Mismatch) -> String {
    let (traced, counted) = (amount(mismatch.traced_bytes), amount(mismatch.at_least_bytes));
    match mismatch.sum {
        Sum::Dirtied => format!("{traced} became dirty in the trace; the kernel counted {counted} (nr_dirtied)"),
        Sum::Queued => format!("{traced} were queued at disks in the trace; the disks wrote {counted}"),
        Sum::Left => format!("{counted} were written or dropped; only {traced} had been dirty"),
    }
}

fn disk(line: &DiskLine) -> (String, Vec<String>) {
    let queued = &line.queued;
    let numbers = [queued.data_bytes, queued.metadata_bytes, queued.journal_bytes, queued.direct_bytes].map(amount);
    let name = if line.is_bottom { line.disk.clone() } else { format!("{} (a layer)", line.disk) };
    (name, numbers.into())
}

fn process(line: &ProcessLine) -> (String, Vec<String>) {
    let factor = line.amplification.map(|factor| format!(" ×{}", human::number(factor))).unwrap_or_default();
    let application = line.application_bytes.map_or_else(|| UNKNOWN.to_owned(), amount);
    let numbers = vec![application, amount(line.dirtied_bytes), amount(line.device_bytes)];
    (format!("{}[{}]{factor} {}", line.comm, line.pid, line.cgroup), numbers)
}

fn cgroup(line: &CgroupLine) -> (String, Vec<String>) {
    (line.cgroup.clone(), [line.dirtied_bytes, line.device_bytes, line.charged_bytes].map(amount).into())
}

fn file(line: &FileLine) -> (String, Vec<String>) {
    let by = line.by.first().map(|by| format!(" by {by}")).unwrap_or_default();
    let again = share(line.redirtied_bytes, line.dirtied_bytes).unwrap_or_default();
    (format!("{}{by}", line.file), vec![amount(line.dirtied_bytes), again, amount(line.device_bytes)])
}

fn synced(line: &SyncedLine) -> (String, Vec<String>) {
    let time = |ns: u64| human::seconds(Nanos(ns).as_secs_f64());
    let numbers = vec![line.count.to_string(), time(line.total_ns), time(line.longest_ns)];
    (format!("{} of {}", line.operation.name(), line.process), numbers)
}

fn throttled(line: &ThrottledLine) -> (String, Vec<String>) {
    let time = |ns: u64| human::seconds(Nanos(ns).as_secs_f64());
    let numbers = vec![line.count.to_string(), time(line.total_ns), time(line.longest_ns)];
    (format!("{} on {}, {} {}", line.process, line.bdi, line.domain.name(), line.cgroup), numbers)
}

fn sentence(wait: &Blame) -> String {
    let mut text = format!(
        "{} in {} of {}",
        human::seconds(Nanos(wait.lasted_ns).as_secs_f64()),
        wait.operation.name(),
        wait.process
    );
    text.push_str(&place_and_data(wait));
    for part in &wait.parts {
        let lasted = human::seconds(Nanos(part.lasted_ns).as_secs_f64());
        let _ = write!(text, "; {lasted} of that{}", place_and_data(part));
    }
    text
}

/// Describes the place of a wait, and the amount and owners of the data.
fn place_and_data(wait: &Blame) -> String {
    let mut text = String::new();
    if let Some(place) = wait.file.as_ref().or(wait.filesystem.as_ref()) {
        let _ = write!(text, " on {place}");
    }
    // An overlay has no data of its own.
    if let Some(queued) = wait.queued_bytes.filter(|bytes| *bytes > 0 || wait.parts.is_empty()) {
        let _ = write!(text, ": {} were queued there", amount(queued));
    }
    if !wait.cgroups.is_empty() {
        let _ = write!(text, ", {}", wait.whose());
    }
    if let Some(file) = wait.files.first().filter(|file| file.share >= 0.1) {
        let _ = write!(text, "; {} of it {}", human::percent(file.share), file.name);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_part_is_more_than_the_whole() {
        assert_eq!(again(105, 100), "nearly all of it had been dirty before");
        assert_eq!(again(50, 100), "50 % of it had been dirty before");
        assert_eq!((again(5, 0), share(4, 4).as_deref()), (String::new(), Some("100 %")));
    }
}
