// SPDX-License-Identifier: MIT OR Apache-2.0
//! A machine at one moment: a line of a table, a screenful, or a JSON object.

use crate::export::rfc3339;
use crate::layout::{columns, shortened};
use floodline_analysis::moment::Moment;
use floodline_record::human;
use floodline_record::units::Nanos;
use serde::Serialize;
use std::fmt::Write as _;

/// Version of the JSON form.
pub const SCHEMA: &str = "floodline.moment/1";

/// Rows of a list in the screenful.
const LIST_ROWS: usize = 10;

/// Minimum number of columns for a useful name.
const NAME_MIN: usize = 8;

/// What stands for a reading that is not there.
const UNKNOWN: &str = "?";

/// The heading of [`line`].
pub fn heading() -> String {
    let mut text = format!(
        "{:<8} {:>9} {:>9} {:>11} {:>11} {:>6} {:>6}  {}",
        "time UTC", "dirty", "writeback", "dirtying", "to disk", "iowait", "io psi", "top writer"
    );
    text.push('\n');
    text
}

/// One line, cut to `width` columns; above it a line for each thing that is missing since the moment before.
pub fn line(moment: &Moment, width: usize) -> String {
    let above: String = missing(moment).iter().map(|sentence| format!("{:<8} {sentence}\n", "--")).collect();
    above + &readings(moment, width)
}

/// What is missing since the moment before, a sentence each.
fn missing(moment: &Moment) -> Vec<String> {
    let mut sentences = Vec::new();
    if moment.missing_samples > 0 {
        let waited = match moment.missing_io_pressure_some_s {
            Some(seconds) if seconds > 0.0 => {
                format!("; tasks waited for I/O for {} meanwhile", human::seconds(seconds))
            }
            _ => String::new(),
        };
        let samples = human::plural(moment.missing_samples, "sample is", "samples are");
        sentences.push(format!("{samples} missing in {}{waited}", human::seconds(moment.interval_s)));
    }
    if moment.is_back_in_time {
        sentences.push("time stood still or ran backwards".to_owned());
    }
    sentences.extend(moment.wall_clock_jump_s.map(|by| {
        format!("the wall clock was set {} by {}", if by < 0.0 { "back" } else { "forward" }, human::seconds(by.abs()))
    }));
    sentences
}

fn readings(moment: &Moment, width: usize) -> String {
    let writer = moment.writers.first().map(|writer| writer.process.as_str()).unwrap_or_default();
    let mut text = format!(
        "{:<8} {:>9} {:>9} {:>11} {:>11} {:>6} {:>6}  ",
        clock(moment),
        amount(moment.dirty_bytes),
        amount(moment.writeback_bytes),
        rate(moment.dirtied_bytes_per_second),
        rate(moment.device_bytes_per_second),
        share(moment.iowait_share),
        share(moment.io_pressure_share),
    );
    text.push_str(&shortened(writer, width.saturating_sub(text.chars().count()).max(NAME_MIN)));
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

/// Everything about one moment; names give way to `width` columns.
pub fn screen(moment: &Moment, width: usize) -> String {
    let mut text = String::new();
    let time = rfc3339(Nanos(moment.wall_ns)).unwrap_or_else(|| UNKNOWN.to_owned());
    let _ = writeln!(text, "{time}  (rates over {})", human::seconds(moment.interval_s));
    for sentence in missing(moment) {
        let _ = writeln!(text, "{sentence}");
    }
    let _ = writeln!(text, "dirty {}, writeback {}", amount(moment.dirty_bytes), amount(moment.writeback_bytes));
    let _ = writeln!(
        text,
        "thresholds: background {}, hard {}",
        amount(moment.bg_thresh_bytes),
        amount(moment.thresh_bytes)
    );
    let _ = writeln!(
        text,
        "dirtying {}, to disk {}",
        rate(moment.dirtied_bytes_per_second),
        rate(moment.device_bytes_per_second)
    );
    let _ = writeln!(
        text,
        "iowait {}, io pressure {}, blocked tasks {}",
        share(moment.iowait_share),
        share(moment.io_pressure_share),
        moment.blocked_tasks.map_or(UNKNOWN.to_owned(), |tasks| tasks.to_string())
    );
    let _ = writeln!(text, "\n{:<16} {:>11} {:>8} {:>10} {:>6}", "disk", "written", "writes/s", "await", "busy");
    for disk in &moment.disks {
        let _ = writeln!(
            text,
            "{} {:>11} {:>8} {:>10} {:>6}",
            padded(&disk.name, 16),
            rate(disk.write_bytes_per_second),
            disk.writes_per_second.map_or(UNKNOWN.to_owned(), |writes| format!("{writes:.0}")),
            disk.write_await_s.map_or(UNKNOWN.to_owned(), human::seconds),
            share(disk.utilisation)
        );
    }
    list(&mut text, width, "dirty", "cgroup", moment.cgroups.len(), |at| {
        moment.cgroups.get(at).map(|cgroup| (amount(Some(cgroup.dirty_bytes)), cgroup.cgroup.clone()))
    });
    list(&mut text, width, "dirtying", "process", moment.writers.len(), |at| {
        moment.writers.get(at).map(|writer| (rate(Some(writer.dirtied_bytes_per_second)), writer.process.clone()))
    });
    text
}

/// A name in exactly so many columns.
fn padded(name: &str, width: usize) -> String {
    let mut name = shortened(name, width);
    name.push_str(&" ".repeat(width.saturating_sub(columns(&name))));
    name
}

fn list(
    text: &mut String,
    width: usize,
    value: &str,
    name: &str,
    rows: usize,
    row: impl Fn(usize) -> Option<(String, String)>,
) {
    if rows == 0 {
        return;
    }
    let _ = writeln!(text, "\n{value:>11}  {name}");
    for (value, name) in (0..rows.min(LIST_ROWS)).filter_map(row) {
        let name = shortened(&name, width.saturating_sub(13).max(NAME_MIN));
        let _ = writeln!(text, "{value:>11}  {name}");
    }
    if rows > LIST_ROWS {
        let _ = writeln!(text, "{:>11}  and {} more", "", rows - LIST_ROWS);
    }
}

/// One JSON object on one line.
pub fn json(moment: &Moment) -> String {
    #[derive(Serialize)]
    struct Line<'a> {
        schema: &'static str,
        time: Option<String>,
        #[serde(flatten)]
        moment: &'a Moment,
    }
    let line = Line { schema: SCHEMA, time: rfc3339(Nanos(moment.wall_ns)), moment };
    // A struct of numbers and strings always has a JSON form.
    crate::json::line(&line).unwrap_or_default()
}

fn clock(moment: &Moment) -> String {
    let time = rfc3339(Nanos(moment.wall_ns));
    time.as_deref().and_then(|time| time.get(11..19)).unwrap_or(UNKNOWN).to_owned()
}

fn amount(bytes: Option<u64>) -> String {
    bytes.map_or(UNKNOWN.to_owned(), |bytes| human::bytes(bytes as f64))
}

fn rate(bytes_per_second: Option<f64>) -> String {
    bytes_per_second.map_or(UNKNOWN.to_owned(), human::bytes_per_second)
}

fn share(share: Option<f64>) -> String {
    share.map_or(UNKNOWN.to_owned(), human::percent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_record::gap::{Cause, Source};
    use floodline_testkit::Fixture;

    fn moment(fixture: Fixture) -> Moment {
        Moment::of(&fixture.window()).unwrap()
    }

    #[test]
    fn a_line_fits_its_width_and_says_what_is_unknown() {
        let moment = moment(Fixture::healthy().without(Source::Vmstat, Cause::NotFound));
        let text = format!("{}{}", heading(), line(&moment, 80));
        insta::assert_snapshot!(text, @r"
        time UTC     dirty writeback    dirtying     to disk iowait io psi  top writer
        04:00:10  1.17 MiB         ?           ?  78.1 KiB/s 0.25 % 0.20 %  nginx[500]
        ");
        assert!(text.lines().all(|line| line.chars().count() <= 80));
    }

    #[test]
    fn a_screenful_lists_disks_cgroups_and_writers() {
        insta::assert_snapshot!(screen(&moment(Fixture::healthy()), 80), @"
        2026-10-03T04:00:10.000Z  (rates over 10 s)
        dirty 1.17 MiB, writeback 0 B
        thresholds: background 1.38 GiB, hard 2.77 GiB
        dirtying 80.0 KiB/s, to disk 78.1 KiB/s
        iowait 0.25 %, io pressure 0.20 %, blocked tasks 0

        disk                 written writes/s      await   busy
        sda               78.1 KiB/s        4    1.00 ms 0.30 %

           dirtying  process
         8.00 KiB/s  nginx[500]
            410 B/s  systemd-journal[300]
        ");
    }

    #[test]
    fn long_names_give_way() {
        let long = format!("/{}", "💩".repeat(60));
        let moment = moment(
            Fixture::healthy()
                .disk("a-disk-with-a-long-name", |_, _| {})
                .cgroup(&long, |_, row| row.file_dirty = Some(floodline_record::units::Bytes(1 << 20))),
        );
        for text in [screen(&moment, 80), line(&moment, 80)] {
            assert!(text.lines().all(|line| columns(line) <= 80), "{text}");
        }
        assert!(screen(&moment, 80).contains("1.00 MiB  /💩"), "{}", screen(&moment, 80));
    }

    #[test]
    fn json_is_one_line_that_names_its_schema() {
        let text = json(&moment(Fixture::healthy()));
        assert_eq!(text.matches('\n').count(), 1);
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["schema"], SCHEMA);
        assert!(value["dirty_bytes"].is_u64());
    }
}
