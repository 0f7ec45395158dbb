// SPDX-License-Identifier: MIT OR Apache-2.0
//! Figures of the machine while a workload ran, or over the whole recording without one: levels of dirty pages
//! (`host.dirty_peak_bytes`, `host.dirty_mean_bytes`, and likewise of writeback), data at risk (`host.unwritten_peak_bytes`:
//! most that was dirty or under writeback in one sample), bytes dirtied and cleaned, CPU time in the kernel, and the work of the
//! disks (`devices.*`, and `devices.NAME.*` if there are several). Layers of stacked devices are never added.

use crate::diagnose::{device, dirty};
use floodline_record::record::What;
use floodline_record::sample::{DiskRow, HostRow};
use floodline_record::units::{Nanos, Pages};
use floodline_record::window::Window;
use floodline_scenario::Figure;
use std::collections::BTreeMap;

/// All figures of the machine.
pub(super) fn figures(window: &Window) -> BTreeMap<String, Figure> {
    let mut figures = BTreeMap::new();
    host(window, &mut figures);
    devices(window, &mut figures);
    figures
}

/// Start and end of the workload.
fn bounds(window: &Window) -> (Nanos, Nanos) {
    let mut bounds = (Nanos(0), Nanos(u64::MAX));
    for event in &window.events {
        match event.what {
            What::WorkloadStarted { .. } => bounds.0 = event.at,
            What::WorkloadEnded => bounds.1 = event.at,
            _ => {}
        }
    }
    bounds
}

/// Duration of the workload; `None` where it has not started or not ended.
pub fn workload_length(window: &Window) -> Option<Nanos> {
    let (from, to) = bounds(window);
    (from > Nanos(0) && to < Nanos(u64::MAX)).then(|| Nanos(to.0.saturating_sub(from.0)))
}

fn host(window: &Window, figures: &mut BTreeMap<String, Figure>) {
    let (from, to) = bounds(window);
    let within: Vec<&HostRow> = window
        .host_series
        .iter()
        .filter(|(time, _)| (from..=to).contains(&time.monotonic))
        .map(|(_, row)| row)
        .collect();
    let page_size = dirty::page_size(window);
    let mut put = |name: &str, unit, value: Option<f64>| {
        if let Some(value) = value {
            figures.insert(format!("host.{name}"), Figure { value, unit });
        }
    };
    let levels = |level: fn(&HostRow) -> Option<Pages>| -> Vec<f64> {
        within.iter().filter_map(|row| level(row)).map(|pages| pages.bytes(page_size).0 as f64).collect()
    };
    let peak = |levels: &[f64]| levels.iter().copied().reduce(f64::max);
    let mean = |levels: &[f64]| (!levels.is_empty()).then(|| levels.iter().sum::<f64>() / levels.len() as f64);
    let (nr_dirty, nr_writeback) = (levels(|row| row.nr_dirty), levels(|row| row.nr_writeback));
    put("dirty_peak_bytes", "bytes", peak(&nr_dirty));
    put("dirty_mean_bytes", "bytes", mean(&nr_dirty));
    put("writeback_peak_bytes", "bytes", peak(&nr_writeback));
    put("writeback_mean_bytes", "bytes", mean(&nr_writeback));
    // A power cut loses both. The two peaks can be at different times, so the sum of the peaks would be too large.
    put(
        "unwritten_peak_bytes",
        "bytes",
        peak(&levels(|row| Some(Pages(row.nr_dirty?.0.saturating_add(row.nr_writeback?.0))))),
    );
    let growth = |counter: fn(&HostRow) -> Option<u64>| -> Option<f64> {
        // One sample shows no growth.
        let [first, .., last] = within.as_slice() else { return None };
        Some(counter(last)?.saturating_sub(counter(first)?) as f64)
    };
    put("dirtied_bytes", "bytes", growth(|row| row.nr_dirtied.map(|pages| pages.0)).map(|n| n * page_size as f64));
    put("written_bytes", "bytes", growth(|row| row.nr_written.map(|pages| pages.0)).map(|n| n * page_size as f64));
    put("cpu_system_seconds", "seconds", growth(|row| row.cpu_system.map(|time| time.0)).map(|ns| ns / 1e9));
    put("io_pressure_seconds", "seconds", growth(|row| row.psi_io_some.map(|time| time.0)).map(|ns| ns / 1e9));
}

/// Figures of a disk.
#[derive(Clone, Copy, Default)]
struct Done {
    written: f64,
    read: f64,
    writes: f64,
    write_seconds: f64,
    busy_seconds: f64,
}

fn devices(window: &Window, figures: &mut BTreeMap<String, Figure>) {
    let (from, to) = bounds(window);
    let disks = device::disks(window);
    let mut all: Option<Done> = None;
    let several = disks.len() > 1;
    for disk in &disks {
        let Some(series) = window.disk_series.get(&disk.id) else { continue };
        let mut within = series.iter().filter(|(at, _)| (from..=to).contains(at)).map(|(_, row)| row.as_ref());
        let Some(first) = within.next() else { continue };
        let Some(last) = within.next_back() else { continue };
        let Some(done) = between(first, last) else { continue };
        if several {
            put(figures, &format!("devices.{}", disk.name), done);
        }
        let all = all.get_or_insert_default();
        all.written += done.written;
        all.read += done.read;
        all.writes += done.writes;
        all.write_seconds += done.write_seconds;
        all.busy_seconds = all.busy_seconds.max(done.busy_seconds);
    }
    if let Some(all) = all {
        put(figures, "devices", all);
    }
}

fn between(first: &DiskRow, last: &DiskRow) -> Option<Done> {
    let growth = |first: u64, last: u64| last.saturating_sub(first) as f64;
    Some(Done {
        written: growth(first.written?.0, last.written?.0),
        read: growth(first.read?.0, last.read?.0),
        writes: growth(first.writes?.0, last.writes?.0),
        write_seconds: growth(first.write_time?.0, last.write_time?.0) / 1e9,
        busy_seconds: growth(first.io_time?.0, last.io_time?.0) / 1e9,
    })
}

fn put(figures: &mut BTreeMap<String, Figure>, prefix: &str, done: Done) {
    let mut put = |name: &str, unit, value| {
        figures.insert(format!("{prefix}.{name}"), Figure { value, unit });
    };
    put("written_bytes", "bytes", done.written);
    put("read_bytes", "bytes", done.read);
    put("writes_count", "count", done.writes);
    put("busy_seconds", "seconds", done.busy_seconds);
    if done.writes > 0.0 {
        put("write_await_seconds", "seconds", done.write_seconds / done.writes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_testkit::{Fixture, mib, mib_pages};

    #[test]
    fn levels_and_growth_are_those_while_the_workload_ran() {
        let window = |events: &[(u64, What)]| {
            let mut window = Fixture::healthy()
                .host(|t, row| {
                    row.nr_dirty = Some(mib_pages(10.0 * t));
                    row.nr_dirtied = Some(mib_pages(100.0 * t));
                })
                .seconds(10)
                .window();
            let start = window.first_at.unwrap().monotonic;
            window.events = events
                .iter()
                .map(|(s, what)| floodline_record::record::Event {
                    at: Nanos(start.0 + s * Nanos::SECOND.0),
                    what: what.clone(),
                })
                .collect();
            window
        };
        let check = |window: &Window, name: &str, expect: u64| {
            assert_eq!(figures(window).get(name).map(|figure| figure.value as u64), Some(mib(expect as f64)), "{name}");
        };
        let all = window(&[]);
        check(&all, "host.dirty_peak_bytes", 100);
        check(&all, "host.dirtied_bytes", 1000);
        let started = What::WorkloadStarted { scenario: "s".into(), variant: "v".into() };
        let part = window(&[(2, started), (6, What::WorkloadEnded)]);
        check(&part, "host.dirty_peak_bytes", 60);
        check(&part, "host.dirty_mean_bytes", 40);
        check(&part, "host.dirtied_bytes", 400);
        let length = |window: &Window| workload_length(window).map(|length| length.0 / Nanos::SECOND.0);
        assert_eq!((length(&part), length(&all)), (Some(4), None));
    }

    #[test]
    fn what_was_not_read_has_no_figure() {
        assert!(figures(&Window::default()).is_empty());
        let window = Fixture::healthy().host(|_, row| row.nr_dirtied = None).seconds(2).window();
        assert!(!figures(&window).contains_key("host.dirtied_bytes"));
    }
}
