// SPDX-License-Identifier: MIT OR Apache-2.0
//! The answer for a fleet: rows counted by verdict and grouped by cause, worst group first. Holds counts and examples,
//! not rows, so that its size does not grow with the fleet.

use crate::row::{Cause, Row, Verdict};
use floodline_record::human;
pub use floodline_record::human::thousands;
use serde::Serialize;
use std::collections::BTreeMap;

/// Version of the JSON form.
pub const SUMMARY_SCHEMA: &str = "floodline.preflight/1";

/// Hosts of a group that are named.
const EXAMPLES: usize = 5;

/// Hosts with one verdict for one cause.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Group {
    /// The verdict.
    pub verdict: Verdict,
    /// The cause.
    pub cause: Cause,
    /// Its heading for people.
    pub title: &'static str,
    /// Hosts.
    pub hosts: u64,
    /// Of them, those whose finding was accepted.
    pub accepted: u64,
    /// Largest severity.
    pub severity_max: f64,
    /// Median severity.
    pub severity_median: f64,
    /// Smallest margin.
    pub margin_min: Option<f64>,
    /// Longest predicted waiting, all tasks of a host together, seconds.
    pub stall_then_max_seconds: Option<f64>,
    /// The worst hosts, worst first.
    pub examples: Vec<String>,
    /// The worst host's sentence.
    pub finding: String,
    /// What to type next; empty where nothing is to be done.
    pub hint: String,
}

/// The answer for a fleet.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// [`SUMMARY_SCHEMA`].
    pub schema: &'static str,
    /// The change (escaped).
    pub change: String,
    /// Files that were looked at.
    pub files: u64,
    /// Of them, files that could not be opened or read.
    pub unread: u64,
    /// Files whose end is missing, and of which the rest was judged.
    pub cut: u64,
    /// Files with damaged parts, of which the rest was judged.
    pub damaged: u64,
    /// Rows that a later recording of the same host replaces.
    pub superseded: u64,
    /// Hosts that count: files without those replaced.
    pub hosts: u64,
    /// Hosts that suffer and were not accepted.
    pub suffers: u64,
    /// Hosts with a small margin that were not accepted.
    pub tight: u64,
    /// Hosts that do not suffer.
    pub fine: u64,
    /// Hosts without an answer that were not accepted.
    pub not_known: u64,
    /// Hosts whose finding was accepted.
    pub accepted: u64,
    /// Hosts that are sick before the change.
    pub sick_already: u64,
    /// Hosts that were simulated.
    pub simulated: u64,
    /// Of them, controls: arithmetic found nothing there.
    pub controls: u64,
    /// Controls that the twin sees suffer.
    pub controls_suffer: u64,
    /// Whether not all files were looked at, because of an interrupt.
    pub is_interrupted: bool,
    /// Sufferers first, then tight, not known, fine; larger groups first.
    pub groups: Vec<Group>,
}

/// Marks all but the latest recording of each host. Hosts without a name of their own stay apart.
pub fn keep_latest(rows: &mut [Row]) {
    let mut latest: BTreeMap<&str, (Option<u64>, usize)> = BTreeMap::new();
    let mut replaced = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        if !row.is_named {
            continue;
        }
        match latest.get(row.host.as_str()) {
            Some((time, _)) if *time > row.recorded_wall_ns => replaced.push(at),
            Some((_, known)) => {
                replaced.push(*known);
                latest.insert(&row.host, (row.recorded_wall_ns, at));
            }
            None => drop(latest.insert(&row.host, (row.recorded_wall_ns, at))),
        }
    }
    for at in replaced {
        if let Some(row) = rows.get_mut(at) {
            row.superseded = true;
            row.notes.push("A later recording of the same host counts instead.".to_owned());
        }
    }
}

impl Summary {
    /// Counts and groups rows. The change's label comes from [`crate::Change::label`].
    pub fn of(rows: &[Row], change: String) -> Summary {
        let mut summary = Summary { schema: SUMMARY_SCHEMA, change, files: rows.len() as u64, ..Summary::default() };
        let mut groups: BTreeMap<(Verdict, Cause), Vec<&Row>> = BTreeMap::new();
        for row in rows {
            summary.unread += u64::from(row.cause.is_unread());
            summary.cut += u64::from(row.cut);
            summary.damaged += u64::from(row.damaged);
            if row.superseded {
                summary.superseded += 1;
                continue;
            }
            summary.hosts += 1;
            summary.sick_already += u64::from(row.sick_already.is_some());
            summary.simulated += u64::from(row.tier == 2);
            summary.controls += u64::from(row.control);
            summary.controls_suffer += u64::from(row.control && row.verdict == Verdict::Suffers);
            match row.verdict {
                Verdict::Fine => summary.fine += 1,
                _ if row.accepted => summary.accepted += 1,
                Verdict::Suffers => summary.suffers += 1,
                Verdict::Tight => summary.tight += 1,
                Verdict::NotKnown => summary.not_known += 1,
            }
            groups.entry((row.verdict, row.cause)).or_default().push(row);
        }
        summary.groups = groups.into_iter().map(|((verdict, cause), rows)| group(verdict, cause, rows)).collect();
        summary.groups.sort_by_key(|group| (order(group.verdict), std::cmp::Reverse(group.hosts), group.cause));
        summary
    }

    /// The sentence in front: `412 of 10,000 hosts suffer; one cause explains 398.`
    pub fn headline(&self) -> String {
        let all = format!("{} {}", thousands(self.hosts), if self.hosts == 1 { "host" } else { "hosts" });
        let of = |verdict| self.groups.iter().filter(move |group: &&Group| group.verdict == verdict);
        let bad: Vec<&Group> = of(Verdict::Suffers).filter(|group| group.hosts > group.accepted).collect();
        let told = match (self.suffers, bad.as_slice()) {
            (0, _) if self.hosts == 0 => "No host was judged.".to_owned(),
            (0, _) if self.not_known == self.hosts => format!("Nothing is known of {all}."),
            (0, _) if self.hosts == 1 && self.accepted == 0 => "The host does not suffer.".to_owned(),
            (0, _) if self.accepted > 0 => format!("No host of {all} suffers, beyond what was accepted."),
            (0, _) => format!("None of {all} suffers."),
            (suffer, [_]) if suffer > 1 => format!("{} of {all} suffer, all for one cause.", thousands(suffer)),
            (1, _) => format!("1 of {all} suffers."),
            (suffer, groups) if groups.len() as u64 == suffer => {
                format!("{} of {all} suffer, each for a different cause.", thousands(suffer))
            }
            (suffer, groups) => {
                let most = groups.iter().map(|group| group.hosts - group.accepted).max().unwrap_or(0);
                let rest = match groups.len() {
                    0..=2 => "another explains the rest".to_owned(),
                    many => format!("{} others explain the rest", many - 1),
                };
                format!("{} of {all} suffer; one cause explains {}, {rest}.", thousands(suffer), thousands(most))
            }
        };
        let accepted = of(Verdict::Suffers).map(|group| group.accepted).sum::<u64>();
        let told = match (self.suffers, accepted) {
            (0, _) | (_, 0) => told,
            (_, 1) => format!("{told} 1 more suffers and was accepted."),
            (_, more) => format!("{told} {} more suffer and were accepted.", thousands(more)),
        };
        let cured = self.groups.iter().filter(|group| group.cause == Cause::Cured).map(|group| group.hosts).sum();
        let told = match cured {
            0 => told,
            1 if self.hosts == 1 => format!("{told} The change cures it."),
            many => format!("{told} The change cures {}.", human::plural(many, "sick host", "sick hosts")),
        };
        match self.not_known {
            0 => told,
            all if all == self.hosts => told,
            1 => format!("{told} 1 is not known."),
            many => format!("{told} {} are not known.", thousands(many)),
        }
    }
}

fn order(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Suffers => 0,
        Verdict::Tight => 1,
        Verdict::NotKnown => 2,
        Verdict::Fine => 3,
    }
}

fn group(verdict: Verdict, cause: Cause, mut rows: Vec<&Row>) -> Group {
    rows.sort_by(|one, other| other.severity.total_cmp(&one.severity).then_with(|| one.host.cmp(&other.host)));
    let margins = rows.iter().filter_map(|row| row.margin);
    Group {
        verdict,
        cause,
        title: cause.title(),
        hosts: rows.len() as u64,
        accepted: rows.iter().filter(|row| row.accepted).count() as u64,
        severity_max: rows.first().map_or(0.0, |row| row.severity),
        severity_median: rows.get(rows.len() / 2).map_or(0.0, |row| row.severity),
        margin_min: margins.reduce(f64::min),
        stall_then_max_seconds: rows.iter().filter_map(|row| row.stall_then_seconds).reduce(f64::max),
        examples: rows.iter().take(EXAMPLES).map(|row| row.host.clone()).collect(),
        finding: rows.first().map(|row| row.finding.clone()).unwrap_or_default(),
        hint: hint_of(cause, &rows),
    }
}

/// The hint that all hosts of a group share, else that of their cause.
fn hint_of(cause: Cause, rows: &[&Row]) -> String {
    match rows {
        [first, rest @ ..] if rest.iter().all(|row| row.hint == first.hint) => first.hint.clone(),
        _ => cause.hint().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(host: &str, verdict: Verdict, cause: Cause, severity: f64, at: u64) -> Row {
        let mut row = Row { host: host.to_owned(), severity, recorded_wall_ns: Some(at), samples: 9, ..Row::default() };
        row.name_host(host.to_owned());
        row.decide(verdict, cause, format!("{host} says so."));
        row
    }

    #[test]
    fn causes_are_counted_and_not_hosts_listed() {
        let mut rows: Vec<Row> =
            (0..398).map(|n| row(&format!("a{n}"), Verdict::Suffers, Cause::CgroupLimit, f64::from(n), 1)).collect();
        rows.extend((0..14).map(|n| row(&format!("b{n}"), Verdict::Suffers, Cause::DirtyCliff, 2.0, 1)));
        rows.extend((0..9588).map(|n| row(&format!("c{n}"), Verdict::Fine, Cause::WideMargin, 0.0, 1)));
        let summary = Summary::of(&rows, "cgroup v2".to_owned());
        assert_eq!(
            summary.headline(),
            "412 of 10,000 hosts suffer; one cause explains 398, another explains the rest."
        );
        assert_eq!(summary.groups[0].examples, ["a397", "a396", "a395", "a394", "a393"]);
        assert_eq!((summary.groups.len(), summary.fine), (3, 9588));
        rows.iter_mut().filter(|row| row.is_named_by("cgroup-dirty-limit")).for_each(|row| row.accepted = true);
        let summary = Summary::of(&rows, String::new());
        assert_eq!((summary.suffers, summary.accepted), (14, 398));
        let told = "14 of 10,000 hosts suffer, all for one cause. 398 more suffer and were accepted.";
        assert_eq!(summary.headline(), told);
    }

    #[test]
    fn causes_that_differ_on_each_host_and_hosts_that_are_cured_are_said() {
        let two = |third| {
            let rows = [
                row("a", Verdict::Suffers, Cause::CgroupLimit, 1.0, 1),
                row("b", Verdict::Suffers, Cause::DirtyCliff, 1.0, 1),
                row("c", Verdict::Fine, third, 0.0, 1),
            ];
            Summary::of(&rows, String::new()).headline()
        };
        assert_eq!(two(Cause::WideMargin), "2 of 3 hosts suffer, each for a different cause.");
        assert_eq!(two(Cause::Cured), "2 of 3 hosts suffer, each for a different cause. The change cures 1 sick host.");
        let one = [row("a", Verdict::Fine, Cause::Cured, 0.0, 1)];
        assert_eq!(Summary::of(&one, String::new()).headline(), "The host does not suffer. The change cures it.");
    }

    #[test]
    fn a_hint_of_one_file_is_not_that_of_its_group() {
        let hinted = |host: &str, hint: &str| {
            let row = row(host, Verdict::NotKnown, Cause::NotARecording, 0.0, 1);
            Row { hint: hint.to_owned(), ..row }
        };
        let of = |rows: &[Row]| Summary::of(rows, String::new()).groups[0].hint.clone();
        assert_eq!(of(&[hinted("a", "tar"), hinted("b", "tar")]), "tar");
        assert_eq!(of(&[hinted("a", "tar"), hinted("b", "gunzip")]), Cause::NotARecording.hint());
    }

    #[test]
    fn of_two_recordings_of_a_host_the_later_counts() {
        let mut rows = vec![
            row("a", Verdict::Suffers, Cause::CgroupLimit, 1.0, 5),
            row("a", Verdict::Fine, Cause::WideMargin, 0.0, 9),
            row("a", Verdict::Tight, Cause::CgroupLimit, 0.5, 7),
            row("localhost", Verdict::Fine, Cause::WideMargin, 0.0, 1),
            row("localhost", Verdict::Fine, Cause::WideMargin, 0.0, 2),
            row("simulated", Verdict::Fine, Cause::WideMargin, 0.0, 3),
            row("simulated", Verdict::Fine, Cause::WideMargin, 0.0, 4),
        ];
        keep_latest(&mut rows);
        let kept: Vec<bool> = rows.iter().map(|row| !row.superseded).collect();
        assert_eq!(kept, [false, true, false, true, true, true, true]);
        let summary = Summary::of(&rows, String::new());
        assert_eq!((summary.files, summary.hosts, summary.superseded, summary.suffers), (7, 5, 2, 0));
        assert_eq!(Summary::of(&[], String::new()).headline(), "No host was judged.");
        let one = [row("a", Verdict::Fine, Cause::WideMargin, 0.0, 1)];
        assert_eq!(Summary::of(&one, String::new()).headline(), "The host does not suffer.");
    }
}
