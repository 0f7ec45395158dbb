// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page of a pre-flight: the headline, causes, and the hosts worst first. Computes no verdict.

use super::Page;
use super::model::{Block, Cell, Section, Table, Verdict as Shown};
use floodline_fleet::{Cause, Row, Summary, Verdict, thousands};
use floodline_record::human;

/// Hosts that a page lists; the table of `-o` has all of them.
const HOSTS: usize = 1000;

/// The page of a pre-flight.
pub fn fleet(summary: &Summary, rows: &[Row]) -> String {
    let mut page = Page::new(format!("Pre-flight: {}", summary.change));
    page.about = vec![format!(
        "{} files, {} hosts, {} of them simulated",
        thousands(summary.files),
        thousands(summary.hosts),
        thousands(summary.simulated)
    )];
    let (class, word) = match (summary.suffers, summary.not_known) {
        (0, 0) => ("ok", "FINE"),
        (0, _) => ("warning", "NOT KNOWN"),
        _ => ("critical", "SUFFERS"),
    };
    page.verdict = Some(Shown {
        class,
        word: word.to_owned(),
        sentence: summary.headline(),
        rows: vec![
            ("Suffer", thousands(summary.suffers)),
            ("Tight", thousands(summary.tight)),
            ("Fine", thousands(summary.fine)),
            ("Not known", thousands(summary.not_known)),
            ("Accepted", thousands(summary.accepted)),
            ("Sick before", sick_before(summary)),
        ],
        commands: Vec::new(),
    });
    page.sections = vec![
        Section::new("causes", "Causes", vec![Block::Table(causes(summary))]),
        Section::new("hosts", "Hosts", vec![Block::Table(hosts(rows))]),
    ];
    page.html()
}

/// Hosts that are sick before the change. They are counted by their answers as well, and not all of them have the cause
/// "sick before the change and no worse after it".
fn sick_before(summary: &Summary) -> String {
    let is_no_worse = |cause| matches!(cause, Cause::SickAlready | Cause::Cured | Cause::Helped);
    let no_worse: u64 = summary.groups.iter().filter(|group| is_no_worse(group.cause)).map(|group| group.hosts).sum();
    let others = summary.sick_already.saturating_sub(no_worse);
    match (summary.sick_already, others) {
        (0, _) => "0".to_owned(),
        (all, 0) => format!("{}, all of them no worse after the change", thousands(all)),
        (all, others) => format!(
            "{} of those above: {} no worse after the change, {} with another answer",
            thousands(all),
            thousands(no_worse),
            thousands(others)
        ),
    }
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Suffers => "suffers",
        Verdict::Tight => "tight",
        Verdict::Fine => "fine",
        Verdict::NotKnown => "not known",
    }
}

fn causes(summary: &Summary) -> Table {
    // A column of zeros takes room from the sentences.
    let has_accepted = summary.groups.iter().any(|group| group.accepted > 0);
    let accepted_head = if has_accepted { vec!["#Accepted"] } else { Vec::new() };
    let heads =
        [&["Cause", "Answer", "#Hosts"][..], &accepted_head[..], &["#Severity", "#Margin", "Worst host"][..]].concat();
    let mut table = Table::new("Hosts by cause, with their largest severity and smallest margin", &heads);
    for group in &summary.groups {
        let number = |number: Option<f64>| Cell::Number(number.map(human::number).unwrap_or_default());
        let hint = if group.hint.is_empty() { String::new() } else { format!(" Next: {}", group.hint) };
        let worst = group.examples.first().map(|host| format!("{host}: ")).unwrap_or_default();
        let mut cells = vec![
            Cell::Name(group.title.to_owned()),
            Cell::Text(word(group.verdict).to_owned()),
            Cell::Number(thousands(group.hosts)),
        ];
        cells.extend(has_accepted.then(|| Cell::Number(thousands(group.accepted))));
        cells.extend([
            number(Some(group.severity_max).filter(|severity| *severity > 0.0)),
            number(group.margin_min),
            Cell::Text(format!("{worst}{}{hint}", group.finding)),
        ]);
        table.push(cells);
    }
    table.notes.push(
        "Severity 1 is just noticeable, 10 is ten times that. Below a margin of 1, writers are slowed.".to_owned(),
    );
    table
}

fn hosts(rows: &[Row]) -> Table {
    let heads = ["Host", "Answer", "#Severity", "#Margin", "#Waiting", "Confidence", "Finding"];
    let mut table = Table::new("Hosts, worst first", &heads);
    let mut sorted: Vec<&Row> = rows.iter().filter(|row| !row.superseded).collect();
    sorted.sort_by(|one, other| {
        let rank = |row: &Row| match row.verdict {
            Verdict::Suffers => 0,
            Verdict::Tight => 1,
            Verdict::NotKnown => 2,
            Verdict::Fine => 3,
        };
        rank(one)
            .cmp(&rank(other))
            .then(other.severity.total_cmp(&one.severity))
            .then_with(|| one.file.cmp(&other.file))
    });
    for row in sorted.iter().take(HOSTS) {
        let waiting = row.stall_now_seconds.zip(row.stall_then_seconds);
        let waiting = waiting.map(|(now, then)| format!("{} → {}", human::seconds(now), human::seconds(then)));
        let accepted = if row.accepted { ", accepted" } else { "" };
        table.push(vec![
            Cell::Name(row.host.clone()),
            Cell::Text(format!("{}{accepted}", word(row.verdict))),
            Cell::Number(if row.severity > 0.0 { human::number(row.severity) } else { String::new() }),
            Cell::Number(row.margin.map(human::number).unwrap_or_default()),
            Cell::Number(waiting.unwrap_or_default()),
            Cell::Text(format!("{}{}", row.confidence.name(), if row.tier == 2 { ", simulated" } else { "" })),
            Cell::Text(format!(
                "{}{}{} [{}]",
                row.finding,
                row.notes.iter().map(|note| format!(" {note}")).collect::<String>(),
                row.boot.as_ref().map(|boot| format!(" Boot: {boot}.")).unwrap_or_default(),
                row.key
            )),
        ]);
    }
    if sorted.len() > HOSTS {
        let more = thousands((sorted.len() - HOSTS) as u64);
        table.notes.push(format!("{more} more hosts are in the table that -o writes."));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_fleet::Change;

    #[test]
    fn hosts_that_are_sick_before_are_counted_whatever_their_answer() {
        let change = Change::parse::<&str>(&[], None, Some("v2"), None).unwrap();
        let row = |host: &str, verdict, cause, is_sick: bool| {
            let mut row = Row::not_known(host, &change, Cause::Damaged, String::new());
            (row.verdict, row.cause) = (verdict, cause);
            row.sick_already = is_sick.then(|| "dirty-cliff".to_owned());
            row
        };
        let of = |rows: &[Row]| sick_before(&Summary::of(rows, change.label()));
        let no_worse = row("a", Verdict::Fine, Cause::SickAlready, true);
        let worse = row("b", Verdict::Suffers, Cause::CgroupLimit, true);
        let well = row("c", Verdict::Fine, Cause::WideMargin, false);
        assert_eq!(of(std::slice::from_ref(&well)), "0");
        assert_eq!(of(&[no_worse.clone(), well.clone()]), "1, all of them no worse after the change");
        let told = "2 of those above: 1 no worse after the change, 1 with another answer";
        assert_eq!(of(&[no_worse, worse, well]), told);
    }

    #[test]
    fn the_page_loads_nothing_and_a_host_is_no_script() {
        let change = Change::parse::<&str>(&[], None, Some("v2"), None).unwrap();
        let evil = "<script>alert(1)</script>";
        let rows: Vec<Row> = (0..HOSTS + 7)
            .map(|n| Row::not_known(&format!("{evil}{n}"), &change, Cause::Damaged, "It is damaged.".to_owned()))
            .collect();
        let html = fleet(&Summary::of(&rows, change.label()), &rows);
        assert!(!html.contains(evil) && html.contains("Nothing is known of 1,007 hosts."));
        assert!(html.contains("7 more hosts") && html.contains("copy the file again in binary mode"));
        for loads in ["src=\"http", "href=\"http", "url(", "@import"] {
            assert!(!html.contains(loads), "{loads}");
        }
    }
}
