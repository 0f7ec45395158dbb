// SPDX-License-Identifier: MIT OR Apache-2.0
//! Order of the figures of several runs by relevance, and choice of the best run. Waits for stable storage lead: users
//! of a host notice the longest one.

use super::RunReport;
use std::collections::BTreeSet;

/// Operations that end when data is on stable storage.
const SYNC: &[&str] = &["fsync", "fdatasync", "msync", "sync", "syncfs", "umount"];
/// Figures that differ by less, as a share of the larger one, are equal to people.
const EQUAL: f64 = 0.05;

/// Last parts of the names of figures that show the longest or nearly longest wait.
const LONGEST: &[&str] = &["max_seconds", "p99_seconds"];
/// Last parts of the names of the other figures of a wait.
const USUAL: &[&str] = &["p50_seconds", "p90_seconds", "p999_seconds"];

fn is_sync(name: &str, ends: &[&[&str]]) -> bool {
    let mut parts = name.rsplit('.');
    let is_wait = parts.next().is_some_and(|last| ends.iter().any(|ends| ends.contains(&last)));
    is_wait && parts.next().is_some_and(|operation| SYNC.contains(&operation))
}

/// Whether a figure is the longest or nearly longest wait for stable storage.
pub fn is_sync_wait(name: &str) -> bool {
    is_sync(name, &[LONGEST])
}

/// Whether a figure is a wait for stable storage, a usual one or the longest.
pub fn is_any_sync_wait(name: &str) -> bool {
    is_sync(name, &[LONGEST, USUAL])
}

/// Whether two values differ by more than people notice.
pub fn differs(unit: &str, one: f64, other: f64) -> bool {
    let least = match unit {
        "seconds" => 1e-3,
        "bytes" | "bytes_per_second" => 65_536.0,
        _ => 0.0,
    };
    let difference = (one - other).abs();
    difference > least && difference > EQUAL * one.abs().max(other.abs())
}

/// Ratio of the larger to the smaller of two values; infinite where one of them is 0.
pub fn factor(one: f64, other: f64) -> f64 {
    let (small, large) = (one.abs().min(other.abs()), one.abs().max(other.abs()));
    if small > 0.0 { large / small } else { f64::INFINITY }
}

/// Figures of several runs, those to look at first in front: longest waits for stable storage, then what differs
/// between the runs, most first. Of all other figures only those in `wanted` follow.
pub fn first(runs: &[&RunReport], wanted: &BTreeSet<String>) -> Vec<String> {
    let names: BTreeSet<&String> = runs.iter().flat_map(|run| run.figures.keys()).collect();
    let mut ranked: Vec<(u8, f64, &String)> = Vec::new();
    for name in names {
        let values: Vec<f64> = runs.iter().filter_map(|run| run.figures.get(name)).map(|figure| figure.value).collect();
        let unit = runs.iter().find_map(|run| run.figures.get(name)).map_or("", |figure| figure.unit);
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let is_longest = is_sync_wait(name) && name.ends_with("max_seconds");
        let is_wanted = wanted.contains(name);
        match (is_longest, is_wanted && differs(unit, low, high), is_wanted) {
            (true, ..) => ranked.push((0, 0.0, name)),
            (_, true, _) => ranked.push((1, -factor(low, high), name)),
            (_, _, true) => ranked.push((2, 0.0, name)),
            _ => {}
        }
    }
    ranked.sort_by(|a, b| a.0.cmp(&b.0).then_with(|| a.1.total_cmp(&b.1)).then_with(|| a.2.cmp(b.2)));
    ranked.into_iter().map(|(_, _, name)| name.clone()).collect()
}

/// The best of several runs: the mildest worst finding, then the shortest longest wait for stable storage, or for any
/// write where nothing waits for stable storage. `None` where no run stands out.
pub fn best(runs: &[Option<&RunReport>]) -> Option<usize> {
    let key = |run: &RunReport| {
        let severity = run.findings.iter().map(|finding| finding.severity).max();
        let longest = |is_it: &dyn Fn(&str) -> bool| {
            let waits = run.figures.iter().filter(|(name, _)| name.ends_with(".max_seconds") && is_it(name));
            waits.map(|(_, figure)| figure.value).reduce(f64::max)
        };
        let wait = longest(&is_sync_wait).or_else(|| longest(&|name| name.contains(".write.")));
        (severity, wait.unwrap_or(0.0))
    };
    let keys: Vec<(usize, _)> = runs.iter().enumerate().filter_map(|(at, run)| Some((at, key((*run)?)))).collect();
    let order = |a: &(usize, (_, f64)), b: &(usize, (_, f64))| {
        let ((_, (a_severity, a_wait)), (_, (b_severity, b_wait))) = (a, b);
        Ord::cmp(a_severity, b_severity).then_with(|| a_wait.total_cmp(b_wait))
    };
    let best = keys.iter().min_by(|a, b| order(a, b))?;
    let is_alike = |other: &&(usize, (_, f64))| other.1.0 == best.1.0 && !differs("seconds", other.1.1, best.1.1);
    (keys.iter().filter(is_alike).count() == 1 && keys.len() > 1).then_some(best.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_record::version::KernelVersion;
    use floodline_scenario::Figure;

    fn run(figures: &[(&str, f64, &'static str)]) -> RunReport {
        RunReport {
            schema: super::super::SCHEMA,
            executor: "simulator",
            scenario: "cliff".to_owned(),
            variant: "incident".to_owned(),
            kernel: "6.12".to_owned(),
            kernel_version: KernelVersion::new(6, 12, 0),
            samples: 2,
            seconds: 1.0,
            first_sample_seconds: None,
            beside_seconds: None,
            figures: figures
                .iter()
                .map(|(name, value, unit)| ((*name).to_owned(), Figure { value: *value, unit }))
                .collect(),
            findings: Vec::new(),
            plan: None,
            not_as_expected: Vec::new(),
            has_expectations: true,
            simplified: Vec::new(),
            recording: None,
        }
    }

    #[test]
    fn waits_for_stable_storage_lead_and_what_changes_follows() {
        let of = |fsync, peak| {
            run(&[
                ("db.fsync.max_seconds", fsync, "seconds"),
                ("host.dirtied_bytes", 1e9, "bytes"),
                ("host.dirty_peak_bytes", peak, "bytes"),
                ("mail.write.max_seconds", 0.5, "seconds"),
            ])
        };
        let (a, b) = (of(3.0, 4e8), of(0.2, 1e8));
        let wanted = ["host.dirtied_bytes", "host.dirty_peak_bytes"].map(str::to_owned).into();
        assert_eq!(first(&[&a, &b], &wanted), ["db.fsync.max_seconds", "host.dirty_peak_bytes", "host.dirtied_bytes"]);
        assert_eq!(best(&[Some(&a), None, Some(&b)]), Some(2));
        assert_eq!(best(&[Some(&b), Some(&b)]), None, "none stands out");
        assert_eq!(best(&[Some(&a)]), None);
        assert!(is_sync_wait("a.fdatasync.p99_seconds") && !is_sync_wait("a.fdatasync.count"));
        assert!(is_any_sync_wait("a.fdatasync.p90_seconds") && !is_sync_wait("a.fdatasync.p90_seconds"));
        assert!(!is_any_sync_wait("a.write.p90_seconds") && is_any_sync_wait("a.fsync.max_seconds"));
        assert!(!differs("seconds", 3e-6, 2e-4) && differs("count", 1.0, 2.0) && !differs("bytes", 0.0, 0.0));
    }
}
