// SPDX-License-Identifier: MIT OR Apache-2.0
//! What differs for writeback between kernels: as a page for people who upgrade or go back, as a list of releases, and as
//! one line of JSON. Every sentence comes from the table of changes.

use crate::layout::hanging;
use floodline_kernel::{
    Area, Backport, Change, Difference, Presence, Release, Series, Uncertain, Weight, changes, instead, newest_modelled,
};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write;

/// Schema of the JSON form.
const SCHEMA: &str = "floodline.kernels/1";

/// Which way a page reads a change.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Gained,
    Lost,
}

/// The page of what differs between two kernels; with `details`, small changes and commits too.
pub fn page(difference: &Difference, details: bool, width: usize) -> String {
    let Difference { from, to, gained, lost, uncertain } = difference;
    let mut out = format!("Writeback in Linux {} and {}\n", from.name(), to.name());
    for caution in cautions(from, to) {
        out.push('\n');
        hanging(&mut out, "Note: ", &caution, width);
    }
    if gained.is_empty() && lost.is_empty() && uncertain.is_empty() {
        out.push_str("\nNo known change of writeback lies between them.\n");
        return out;
    }
    for (way, changes) in [(Way::Gained, gained), (Way::Lost, lost)] {
        if !changes.is_empty() {
            section(&mut out, way, changes, difference, details, width);
        }
    }
    if !uncertain.is_empty() {
        out.push_str("\nUNCERTAIN: depends on the stable release\n\n");
        for one in uncertain.iter().filter(|one| details || one.change.weight == Weight::Noticed) {
            hanging(&mut out, "  ", &format!("{} {}", one.change.after, doubt(one, from, to)), width);
        }
    }
    if !details {
        let hidden = gained.iter().chain(lost).chain(uncertain.iter().map(|one| &one.change));
        let count = hidden.filter(|change| change.weight == Weight::Detail).count();
        if count > 0 {
            out.push('\n');
            let text = format!("{} that only measurements show, and all commits: --details", counted(count));
            hanging(&mut out, "", &text, width);
        }
    }
    out
}

/// What to know of both kernels, once.
fn cautions(from: &Release, to: &Release) -> Vec<String> {
    if from.is_series() && to.is_series() && from != to {
        let (from, to) = (from.name(), to.name());
        return vec![format!(
            "{from} and {to} name series. What only some of their stable releases have is uncertain."
        )];
    }
    [from, to].into_iter().filter_map(Release::caution).collect::<BTreeSet<String>>().into_iter().collect()
}

fn section(out: &mut String, way: Way, all: &[&Change], between: &Difference, details: bool, width: usize) {
    let (from, to) = (between.from.name(), between.to.name());
    let shown: Vec<&Change> =
        all.iter().copied().filter(|change| details || change.weight == Weight::Noticed).collect();
    let title = match way {
        Way::Gained => format!("NEW in {to}, not in {from}"),
        Way::Lost => format!("GONE in {to}, present in {from}"),
    };
    out.push('\n');
    hanging(out, "", &format!("{title} ({})", counted(all.len())), width);
    let labels = (between.from.label(), between.to.label());
    for area in Area::ALL {
        let here: Vec<&&Change> = shown.iter().filter(|change| change.area == *area).collect();
        if here.is_empty() {
            continue;
        }
        let _ = writeln!(out, "\n{}", area.title());
        for change in here {
            let (one, other) = match way {
                Way::Gained => (instead(change, &between.from), change.after),
                Way::Lost => (change.after, instead(change, &between.to)),
            };
            let sentences = [(&labels.0, one), (&labels.1, other)];
            entry(out, way, change, sentences, details, width);
        }
    }
}

fn entry(out: &mut String, way: Way, change: &Change, sentences: [(&String, &str); 2], details: bool, width: usize) {
    out.push('\n');
    for (kernel, sentence) in sentences {
        hanging(out, &format!("  {kernel}: "), sentence, width);
    }
    let means = if way == Way::Gained { "  So: " } else { "  No longer: " };
    hanging(out, means, change.means, width);
    let since = format!("{}{}", if change.is_since_sure { "Since " } else { "Since about " }, released(change));
    if !details {
        hanging(out, "  ", &since, width);
        return;
    }
    hanging(out, "  ", &format!("{since} [{}]", change.id), width);
    for commit in change.commits {
        let hash = commit.hash.map(|hash| format!("{hash} ")).unwrap_or_default();
        hanging(out, "  commit ", &format!("{hash}\"{}\"", commit.subject), width);
    }
}

fn counted(changes: usize) -> String {
    if changes == 1 { "1 change".to_owned() } else { format!("{changes} changes") }
}

/// The mainline release and the stable releases of a change.
fn released(change: &Change) -> String {
    let stable: Vec<String> = change.backports.iter().map(stable).collect();
    match stable.is_empty() {
        true => format!("{}.", change.since),
        false => format!("{}; also in {}.", change.since, stable.join(", ")),
    }
}

fn stable(backport: &Backport) -> String {
    let Backport { series, patch, without } = backport;
    match without {
        Some(_) => format!("{series}.{patch}"),
        None => format!("{series}.{patch} or earlier"),
    }
}

/// Which of two kernels may have a change, and from which stable release on.
fn doubt(one: &Uncertain, from: &Release, to: &Release) -> String {
    let of = |release: &Release, presence: Presence| {
        let series = release.version.series();
        match presence {
            Presence::In => format!("{} has it", release.name()),
            Presence::Out => format!("{} lacks it", release.name()),
            Presence::Unsure => match one.change.backports.iter().find(|backport| backport.series == series) {
                Some(backport) => format!("{} has it from {} on", release.name(), stable(backport)),
                None => format!("{} may have it", release.name()),
            },
        }
    };
    format!("({}; {}.)", of(from, one.from), of(to, one.to))
}

/// The releases known, with what each brought; of one series where one is asked for.
pub fn list(only: Option<&Release>, details: bool, width: usize) -> String {
    let mut out = String::new();
    let series: BTreeSet<Series> = changes().map(|change| change.since).collect();
    match only {
        None => {
            for since in &series {
                let _ = writeln!(out, "{since}");
                for change in changes().filter(|change| change.since == *since) {
                    hanging(&mut out, "  ", change.after, width);
                }
            }
            let newest = newest_modelled();
            out.push('\n');
            let text = "floodline kernels 5.10 6.12 shows the changes between two kernels.";
            hanging(&mut out, "", &format!("Known up to {newest}. {text}"), width);
        }
        Some(release) => {
            let asked = release.version.series();
            let _ = writeln!(out, "Writeback in Linux {}", release.name());
            if let Some(caution) = release.caution() {
                out.push('\n');
                hanging(&mut out, "Note: ", &caution, width);
            }
            let new: Vec<&Change> = changes().filter(|change| change.since == asked).collect();
            let _ = writeln!(out, "\nNew in {asked} ({})", counted(new.len()));
            for change in new {
                out.push('\n');
                hanging(&mut out, "  Before: ", change.before, width);
                hanging(&mut out, "  Now: ", change.after, width);
                hanging(&mut out, "  So: ", change.means, width);
                commits(&mut out, change, details, width);
            }
            let mut later: Vec<(&Change, &Backport)> = changes()
                .filter_map(|change| Some((change, change.backports.iter().find(|backport| backport.series == asked)?)))
                .collect();
            later.sort_by_key(|(_, backport)| backport.patch);
            if !later.is_empty() {
                let _ = writeln!(out, "\nIn stable releases of {asked} ({})", counted(later.len()));
            }
            for (change, backport) in later {
                out.push('\n');
                hanging(&mut out, &format!("  {}: ", stable(backport)), change.after, width);
                hanging(&mut out, "  So: ", change.means, width);
                commits(&mut out, change, details, width);
            }
        }
    }
    out
}

fn commits(out: &mut String, change: &Change, details: bool, width: usize) {
    for commit in change.commits.iter().filter(|_| details) {
        let hash = commit.hash.map(|hash| format!("{hash} ")).unwrap_or_default();
        hanging(out, "  commit ", &format!("{hash}\"{}\"", commit.subject), width);
    }
}

/// What differs between two kernels as one line of JSON, ended by a newline.
pub fn json(difference: &Difference) -> Result<String, serde_json::Error> {
    let one = |uncertain: &Uncertain| {
        let mut value = change_json(uncertain.change);
        value["in_from"] = presence(uncertain.from);
        value["in_to"] = presence(uncertain.to);
        value
    };
    let without = |change: &Change, kernel: &Release| {
        let mut value = change_json(change);
        value["before"] = json!(instead(change, kernel));
        value
    };
    line(&json!({
        "schema": SCHEMA,
        "from": release_json(&difference.from),
        "to": release_json(&difference.to),
        "gained": difference.gained.iter().map(|change| without(change, &difference.from)).collect::<Vec<_>>(),
        "lost": difference.lost.iter().map(|change| without(change, &difference.to)).collect::<Vec<_>>(),
        "uncertain": difference.uncertain.iter().map(one).collect::<Vec<_>>(),
    }))
}

/// Every change known as one line of JSON, with whether one kernel has it where one is asked for.
pub fn list_json(only: Option<&Release>) -> Result<String, serde_json::Error> {
    let one = |change: &Change| {
        let mut value = change_json(change);
        if let Some(release) = only {
            value["present"] = presence(release.presence(change));
        }
        value
    };
    line(&json!({
        "schema": SCHEMA,
        "newest": newest_modelled().to_string(),
        "release": only.map(release_json),
        "changes": changes().map(one).collect::<Vec<_>>(),
    }))
}

fn line(value: &Value) -> Result<String, serde_json::Error> {
    let mut line = serde_json::to_string(value)?;
    line.push('\n');
    Ok(line)
}

fn presence(presence: Presence) -> Value {
    match presence {
        Presence::In => json!(true),
        Presence::Out => json!(false),
        Presence::Unsure => Value::Null,
    }
}

fn release_json(release: &Release) -> Value {
    json!({
        "name": release.name(),
        "version": release.version,
        "vendor": match release.vendor {
            floodline_kernel::Vendor::Unknown => Value::Null,
            vendor => json!(vendor.to_string()),
        },
        "caution": release.caution(),
    })
}

fn change_json(change: &Change) -> Value {
    let commits = change.commits.iter().map(|commit| json!({ "hash": commit.hash, "subject": commit.subject }));
    let stable = change.backports.iter().map(|backport| {
        json!({
            "release": format!("{}.{}", backport.series, backport.patch),
            "is_first": backport.without.is_some(),
        })
    });
    json!({
        "id": change.id,
        "area": change.area.title(),
        "since": change.since.to_string(),
        "since_is_verified": change.is_since_sure,
        "commits": commits.collect::<Vec<_>>(),
        "stable": stable.collect::<Vec<_>>(),
        "is_noticed": change.weight == Weight::Noticed,
        "before": change.before,
        "after": change.after,
        "means": change.means,
        "is_modelled": change.set.is_some(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::columns;
    use floodline_kernel::difference;

    fn between(from: &str, to: &str) -> Difference {
        difference(&Release::parse(from).expect(from), &Release::parse(to).expect(to))
    }

    #[test]
    fn an_upgrade_reads_as_before_after_and_so() {
        insta::assert_snapshot!(page(&between("6.12.43", "6.12.117"), true, 80));
    }

    #[test]
    fn the_way_back_reads_the_other_way_round() {
        let text = page(&between("6.12.117", "6.12.43"), false, 80);
        assert!(text.contains("GONE in 6.12.43, present in 6.12.117 (5 changes)"), "{text}");
        assert!(text.contains("No longer: Removing a cgroup with many files costs one CPU"), "{text}");
        let (new, old) =
            (text.find("  6.12.117: Moved dirty inodes are"), text.find("  6.12.43: Each moved dirty inode"));
        assert!(new.is_some() && new < old, "{text}");
    }

    #[test]
    fn no_page_is_wider_than_the_terminal() {
        for (from, to) in
            [("4.4", "7.3"), ("5.14.0-427.el9.x86_64", "6.12.0-55.el10"), ("6.8.0-49-generic", "6.1.0-28-amd64")]
        {
            for width in [60, 80] {
                let text = page(&between(from, to), true, width);
                let wide: Vec<&str> = text.lines().filter(|line| columns(line) > width).collect();
                assert!(wide.is_empty(), "{wide:?}");
            }
        }
        let one = Release::parse("6.1").expect("a release");
        for text in [list(None, true, 80), list(Some(&one), true, 80)] {
            assert!(text.lines().all(|line| columns(line) <= 80), "{text}");
        }
    }

    #[test]
    fn a_distribution_s_release_is_named_as_uncertain() {
        let text = page(&between("5.14.0-427.el9", "6.12"), false, 80);
        assert!(text.contains("Note: 5.14.0-427.el9 is a Red Hat kernel."), "{text}");
        assert!(text.contains("UNCERTAIN: depends on the stable release"), "{text}");
        assert!(text.contains("6.12 has it from 6.12.54 on"), "{text}");
        let same = page(&between("6.12.1", "6.12.2"), false, 80);
        assert!(same.ends_with("\nNo known change of writeback lies between them.\n"), "{same}");
    }

    #[test]
    fn json_has_every_change_whole() {
        let value: Value = serde_json::from_str(&json(&between("5.10.0", "6.12")).expect("JSON")).expect("JSON");
        assert_eq!(value["schema"], "floodline.kernels/1");
        assert_eq!((value["from"]["version"].as_str(), value["to"]["name"].as_str()), (Some("5.10.0"), Some("6.12")));
        let gained = value["gained"].as_array().expect("a list");
        let change = gained.iter().find(|change| change["id"] == "dying-wb-release").expect("the change of 5.14");
        assert_eq!(
            (change["since"].as_str(), change["commits"][0]["hash"].as_str()),
            (Some("5.14"), Some("c22d70a162d3"))
        );
        let uncertain = value["uncertain"].as_array().expect("a list");
        let fix = uncertain.iter().find(|change| change["id"] == "switch-without-sorting").expect("a backport");
        assert_eq!((&fix["in_from"], &fix["in_to"]), (&json!(false), &Value::Null));
        let list: Value =
            serde_json::from_str(&list_json(Some(&Release::parse("6.1.157").expect("one"))).expect("JSON"))
                .expect("JSON");
        let all = list["changes"].as_array().expect("a list");
        assert_eq!(all.len(), changes().count());
        assert!(all.iter().any(|change| change["id"] == "switch-without-sorting" && change["present"] == true));
    }
}
