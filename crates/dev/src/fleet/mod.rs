// SPDX-License-Identifier: MIT OR Apache-2.0
//! A generated fleet with known results: every kind of host is run before and after its change. The pre-flight, which
//! sees only the recording before it, is compared with the measured effect.

mod hosts;
mod kinds;
mod lab;
mod made;
mod pairs;
mod usual;
mod written;

use crate::{Answer, Failure};
use clap::builder::PossibleValuesParser;
use floodline_fleet::{Change, Depth, Felt, Row, Verdict, preflight};
pub(crate) use hosts::Hosts;
use kinds::{KINDS, Kind};
pub(crate) use lab::FleetLab;
use made::Host;
pub(crate) use pairs::FleetPairs;
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use serde::Serialize;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use written::Written;

/// Hold the pre-flight against a generated fleet whose answers were measured
#[derive(clap::Parser)]
#[command(name = "fleet-truth")]
pub(crate) struct FleetTruth {
    /// Hosts of each kind
    #[arg(long, value_name = "N", default_value_t = 5)]
    hosts: u64,
    /// Only kinds whose name contains this
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Leave held-out kinds out: for choosing thresholds
    #[arg(long)]
    seen: bool,
    /// Run this group of `fleet/kinds` instead of the first kinds; may be repeated
    #[arg(long, value_name = "NAME", conflicts_with = "seen", value_parser = PossibleValuesParser::new(written::groups()))]
    group: Vec<String>,
    /// Run the kinds of this file, in the form of `fleet/kinds`, instead of the first kinds; may be repeated
    #[arg(long, value_name = "FILE", conflicts_with = "seen")]
    file: Vec<PathBuf>,
    /// Use arithmetic only
    #[arg(long)]
    arithmetic: bool,
    /// Print every host
    #[arg(long)]
    details: bool,
    /// Measure each host again with another seed: how well the truth agrees with itself
    #[arg(long)]
    again: bool,
    /// Write the recordings to this folder, and those after the change to its folder `after`
    #[arg(long, value_name = "DIR")]
    save: Option<PathBuf>,
    /// Form of the answer
    #[arg(long, value_enum, default_value_t)]
    format: crate::Format,
}

/// Verdict of the pre-flight on a host, and the measured effect.
#[derive(Debug, Serialize)]
struct Judged {
    kind: &'static str,
    host: String,
    held_out: bool,
    /// Measured severity.
    really: f64,
    /// Measured severity with another seed.
    #[serde(skip_serializing_if = "Option::is_none")]
    really_again: Option<f64>,
    row: Row,
    figures: String,
    /// The row by arithmetic alone.
    arithmetic: Row,
}

/// A kind of host.
#[derive(Clone, Copy, Debug)]
enum Case {
    Kind(&'static Kind),
    Later(&'static Written),
}

/// Quality of the verdicts.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
struct Score {
    hosts: u64,
    sufferers: u64,
    /// Sufferers that were reported.
    found: u64,
    /// Reported hosts that do not suffer.
    false_alarms: u64,
    not_known: u64,
    recall: f64,
    false_alarm_share: f64,
    spearman: Option<f64>,
}

/// Targets for held-out kinds.
const RECALL: f64 = 0.95;
const FALSE_ALARMS: f64 = 0.05;
const SPEARMAN: f64 = 0.9;

impl FleetTruth {
    pub(crate) fn run(&self) -> Result<Answer, Failure> {
        let depth = if self.arithmetic { Depth::ARITHMETIC } else { Depth::WHOLE };
        let wanted = |name: &str| self.only.as_ref().is_none_or(|only| name.contains(only.as_str()));
        let is_left_out = |kind: &&Kind| {
            let is_other = !self.group.is_empty() || !self.file.is_empty();
            !wanted(kind.name) || is_other || (self.seen && kind.held_out)
        };
        let mut cases: Vec<Case> = KINDS.iter().filter(|kind| !is_left_out(kind)).map(Case::Kind).collect();
        for group in &self.group {
            cases.extend(written::kinds(group)?.iter().filter(|kind| wanted(&kind.name)).map(Case::Later));
        }
        for file in &self.file {
            cases.extend(written::kinds_of_file(file)?.iter().filter(|kind| wanted(&kind.name)).map(Case::Later));
        }
        let work: Vec<(Case, u64)> =
            (0..self.hosts).flat_map(|host| cases.iter().map(move |case| (*case, host))).collect();
        let judged = judge_all(&work, depth, self.again, self.save.as_deref())?;
        let (held, seen): (Vec<&Judged>, Vec<&Judged>) = judged.iter().partition(|one| one.held_out);
        let (held_score, seen_score) = (score(&held), score(&seen));
        let text = match self.format {
            crate::Format::Json => {
                serde_json::to_string(
                    &serde_json::json!({ "held_out": held_score, "others": seen_score, "hosts": judged }),
                )? + "\n"
            }
            crate::Format::Text => self.text(&judged, &held_score, &seen_score),
        };
        let is_as_expected = held.is_empty()
            || held_score.recall >= RECALL
                && held_score.false_alarm_share <= FALSE_ALARMS
                && held_score.spearman.is_none_or(|spearman| spearman >= SPEARMAN);
        Ok(Answer { text, is_as_expected: is_as_expected || self.arithmetic })
    }

    fn text(&self, judged: &[Judged], held: &Score, seen: &Score) -> String {
        let mut text = String::new();
        for one in judged {
            let suffers = one.really >= 1.0;
            let is_right = suffers == (one.row.verdict == Verdict::Suffers);
            if is_right && !self.details {
                continue;
            }
            let _ = writeln!(
                text,
                "{} {:<34} really {:>6.2}, said {:<9} {:>6.2} tier {} margin {} back-test {}\n      {}\n      {} [{}] {}",
                if is_right { "  " } else { "NO" },
                one.host,
                one.really,
                one.row.verdict.name(),
                one.row.severity,
                one.row.tier,
                one.row.margin.map_or("-".to_owned(), |margin| format!("{margin:.2}")),
                one.row.back_test_error.map_or("-".to_owned(), |error| format!("{:.0} %", error * 100.0)),
                one.figures,
                one.row.finding,
                one.row.cause.name(),
                one.row.notes.join(" ")
            );
        }
        for (name, score) in [("held-out kinds", held), ("other kinds", seen)] {
            let _ = writeln!(
                text,
                "{name}: {} hosts, {} suffer, {} of them named (recall {:.1} %), {} false alarms ({:.1} %), {} not known, \
                 order of severity {}",
                score.hosts,
                score.sufferers,
                score.found,
                score.recall * 100.0,
                score.false_alarms,
                score.false_alarm_share * 100.0,
                score.not_known,
                score.spearman.map_or("-".to_owned(), |rho| format!("{rho:.3}"))
            );
        }
        for (name, is_held) in [("held-out kinds", true), ("other kinds", false)] {
            if let Some(rho) = self_agreement(judged.iter().filter(|one| one.held_out == is_held)) {
                let _ = writeln!(text, "{name}: order of the truth with another seed {rho:.3}");
            }
        }
        text
    }
}

/// Agreement of the order of the truth with that of the same hosts with another seed: an upper bound for any
/// prediction.
fn self_agreement<'a>(judged: impl Iterator<Item = &'a Judged>) -> Option<f64> {
    let suffers = judged.filter(|one| one.really >= 1.0);
    spearman(&suffers.filter_map(|one| Some((one.really, one.really_again?))).collect::<Vec<_>>())
}

fn judge_all(work: &[(Case, u64)], depth: Depth, again: bool, save: Option<&Path>) -> Result<Vec<Judged>, Failure> {
    let one = |&(case, number): &(Case, u64)| match case {
        Case::Kind(kind) => judge(&Host::of(*kind, number, again)?, kind.held_out, depth, save),
        Case::Later(kind) => judge(&Host::later(kind, number, again)?, true, depth, save),
    };
    work.par_iter().map(one).collect()
}

fn judge(host: &Host, held_out: bool, depth: Depth, save: Option<&Path>) -> Result<Judged, Failure> {
    let change = Change::parse(&host.change, None, None, None)
        .map_err(|error| Failure::input(format!("{}: {error}", host.name)))?;
    let file = format!("{}.flr", host.name);
    if let Some(folder) = save {
        let after = folder.join("after");
        std::fs::create_dir_all(&after)
            .and_then(|()| std::fs::write(folder.join(&file), &host.recording))
            .and_then(|()| std::fs::write(after.join(&file), &host.recording_after))
            .map_err(|error| Failure::input(format!("cannot write {file} to {}: {error}", folder.display())))?;
    }
    let figures = figures(&host.before, &host.after);
    Ok(Judged {
        kind: host.kind,
        host: host.name.clone(),
        held_out,
        really: host.worse,
        really_again: host.worse_again,
        row: preflight(&host.recording, &file, &change, depth),
        arithmetic: preflight(&host.recording, &file, &change, Depth::ARITHMETIC),
        figures,
    })
}

/// What is felt of a host before and after its change, as text.
fn figures(before: &Felt, after: &Felt) -> String {
    format!(
        "waits {:.1} → {:.1} s, longest {:.2} → {:.2} s, written {:.0} → {:.0} MB, dirtied {:.0} → {:.0} MB in {:.0} s, new {:?}",
        before.stall_seconds,
        after.stall_seconds,
        before.longest_wait_seconds,
        after.longest_wait_seconds,
        before.written_bytes / 1e6,
        after.written_bytes / 1e6,
        before.dirtied_bytes / 1e6,
        after.dirtied_bytes / 1e6,
        before.seconds,
        after.critical.difference(&before.critical).collect::<Vec<_>>()
    )
}

fn score(judged: &[&Judged]) -> Score {
    score_of(judged.iter().map(|one| (one.really, &one.row)))
}

/// Compares rows with the measured severity of each host.
fn score_of<'a>(judged: impl Iterator<Item = (f64, &'a Row)>) -> Score {
    let judged: Vec<(f64, &Row)> = judged.collect();
    let suffers = |one: &&(f64, &Row)| one.0 >= 1.0;
    let named = |one: &&(f64, &Row)| one.1.verdict == Verdict::Suffers;
    let sufferers = judged.iter().filter(suffers).count() as u64;
    let found = judged.iter().filter(suffers).filter(named).count() as u64;
    let false_alarms = judged.iter().filter(|one| !suffers(one)).filter(named).count() as u64;
    let calm = judged.len() as u64 - sufferers;
    let share = |part: u64, all: u64| if all == 0 { 0.0 } else { part as f64 / all as f64 };
    // Only hosts that suffer are ordered: the others have no meaningful order.
    let order: Vec<(f64, f64)> = judged.iter().filter(suffers).map(|one| (one.0, one.1.severity)).collect();
    Score {
        hosts: judged.len() as u64,
        sufferers,
        found,
        false_alarms,
        not_known: judged.iter().filter(|one| one.1.verdict == Verdict::NotKnown).count() as u64,
        recall: if sufferers == 0 { 1.0 } else { share(found, sufferers) },
        false_alarm_share: share(false_alarms, calm),
        spearman: spearman(&order),
    }
}

/// Scores as a table in Markdown, under these heads of its first three columns.
fn scores_table(heads: [&str; 3], scores: &[(&str, Score)]) -> String {
    let [what, count, suffer] = heads;
    let mut text = format!(
        "\n| {what} | {count} | {suffer} | of these named | false alarms | order of severity (Spearman) |\n|---|---:|---:|---:|---|---:|\n"
    );
    for (of, score) in scores {
        let _ = writeln!(
            text,
            "| {of} | {} | {} | {} | {} of {} | {} |",
            score.hosts,
            score.sufferers,
            score.found,
            score.false_alarms,
            score.hosts - score.sufferers,
            score.spearman.map_or("-".to_owned(), |rho| format!("{rho:.2}")),
        );
    }
    text
}

/// Correlation of ranks; equal values share their mean rank. `None` with fewer than three pairs.
fn spearman(pairs: &[(f64, f64)]) -> Option<f64> {
    if pairs.len() < 3 {
        return None;
    }
    let ranks = |of: fn(&(f64, f64)) -> f64| -> Vec<f64> {
        let values: Vec<f64> = pairs.iter().map(of).collect();
        let rank = |value: &f64| {
            let less = values.iter().filter(|other| *other < value).count() as f64;
            let equal = values.iter().filter(|other| *other == value).count() as f64;
            less + (equal + 1.0) / 2.0
        };
        values.iter().map(rank).collect()
    };
    let (one, other) = (ranks(|pair| pair.0), ranks(|pair| pair.1));
    let mean = (pairs.len() as f64 + 1.0) / 2.0;
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>();
    let deviations = (product(&one, &one) * product(&other, &other)).sqrt();
    (deviations > 0.0).then(|| product(&one, &other) / deviations)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn there_are_forty_kinds_with_names_of_their_own_and_a_third_is_held_out() {
        let names: BTreeSet<&str> = KINDS.iter().map(|kind| kind.name).collect();
        assert_eq!(names.len(), KINDS.len());
        let held = KINDS.iter().filter(|kind| kind.held_out).count();
        assert!(KINDS.len() >= 40 && (KINDS.len() / 4..KINDS.len() / 2).contains(&held), "{held} of {}", KINDS.len());
    }

    #[test]
    fn each_later_group_has_names_of_its_own_and_scenarios_that_the_model_runs() {
        let mut known: BTreeSet<&str> = KINDS.iter().map(|kind| kind.name).collect();
        let before = known.len();
        for group in written::groups() {
            let kinds = written::kinds(group).unwrap_or_else(|why| panic!("{why}"));
            assert!(kinds.len() >= 10, "{group}: {}", kinds.len());
            for kind in kinds {
                let name = kind.name.as_str();
                assert!(known.insert(name), "{name} is there twice");
                Change::parse(&kind.change(), None, None, None).unwrap_or_else(|why| panic!("{name}: {why}"));
                for host in 0..3 {
                    let made = made::changed(&kind.text_of(host), &kind.kernel, &kind.change(), name);
                    let [now, then] = made.unwrap_or_else(|why| panic!("{why}"));
                    assert_ne!(now, then, "{name}");
                    runs_on_the_model(&now.0, name);
                    runs_on_the_model(&then.0, name);
                }
            }
        }
        assert!(known.len() - before >= 223, "{}", known.len() - before);
    }

    #[test]
    fn each_host_of_a_list_is_a_good_scenario_that_its_change_changes() {
        let groups = written::groups().flat_map(|group| written::kinds(group).expect("it can be read"));
        let mut known: BTreeSet<&str> =
            KINDS.iter().map(|kind| kind.name).chain(groups.map(|kind| kind.name.as_str())).collect();
        let before = known.len();
        for list in written::lists() {
            let hosts = written::hosts(list).unwrap_or_else(|why| panic!("{why}"));
            assert!(hosts.len() >= 8, "{list}: {}", hosts.len());
            for host in hosts {
                let (name, change) = (host.name.as_str(), host.change());
                assert!(known.insert(name), "{name} is there twice");
                Change::parse(&change, None, None, None).unwrap_or_else(|why| panic!("{name}: {why}"));
                let [now, then] = host.scenarios().unwrap_or_else(|why| panic!("{why}"));
                assert_ne!(now, then, "{name}");
                // The words of the scenario say what the keys say. Keys below /sys and of mounts have no key of a scenario.
                let is_of_device = |part: &&str| DEVICES.iter().any(|prefix| part.starts_with(prefix));
                if !change.iter().any(is_of_device) {
                    let by_keys = made::changed(&host.text(), &host.kernel, &change, name);
                    assert_eq!(by_keys.unwrap_or_else(|why| panic!("{why}"))[1], then, "{name}");
                }
                runs_on_the_model(&now.0, name);
                runs_on_the_model(&then.0, name);
            }
        }
        assert!(known.len() - before >= 188, "{}", known.len() - before);
    }

    /// Keys of a change that a scenario spells otherwise.
    const DEVICES: [&str; 5] = ["bdi/", "queue/", "loop/", "mount/", "journald/"];

    fn runs_on_the_model(scenario: &floodline_scenario::Scenario, name: &str) {
        floodline_sim::check(scenario).unwrap_or_else(|why| panic!("{name}: {why}"));
    }

    #[test]
    fn ranks_decide_and_not_values() {
        let check =
            |pairs: &[(f64, f64)], expect: f64| assert!((spearman(pairs).expect("it is there") - expect).abs() < 1e-9);
        check(&[(1.0, 1.0), (2.0, 50.0), (3.0, 51.0)], 1.0);
        check(&[(1.0, 3.0), (2.0, 2.0), (3.0, 1.0)], -1.0);
        assert_eq!(spearman(&[(1.0, 1.0)]), None);
    }

    #[test]
    fn a_sample_of_the_fleet_is_judged_as_it_turns_out() {
        let kinds = ["rewriters-small-bytes", "idle", "nothing-changes"];
        let kind = |name: &str| KINDS.iter().find(|kind| kind.name == name).expect("it is there");
        let work: Vec<(Case, u64)> = kinds.iter().map(|name| (Case::Kind(kind(name)), 0)).collect();
        let judged = judge_all(&work, Depth::ARITHMETIC, false, None).expect("it is there");
        let told: Vec<(bool, Verdict)> = judged.iter().map(|one| (one.really >= 1.0, one.row.verdict)).collect();
        assert_eq!(told, [(true, Verdict::Suffers), (false, Verdict::Fine), (false, Verdict::Fine)], "{judged:#?}");
    }
}
