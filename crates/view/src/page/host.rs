// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page of one recording: verdict, findings with evidence, curves over time, every cgroup's budget, devices, waits,
//! the ledger where it was traced, the plan, and what was not seen.

use super::Page;
use super::figure::{Axis, figure, marks, second, spark};
use super::model::{Block, Cell, Finding, Row, Section, Table, Verdict, class_of};
use super::packed::{Set, pack_all};
use super::waits::waits;
use crate::doctor::details::{change, host_line, lead_of_costs, shown, source};
use crate::doctor::words::{
    also_unseen, calm_verdict, help_beside, look_longer, readings, when, why_candidate, you_see,
};
use crate::doctor::{is_calm, missing, time};
use crate::layout::capital;
use floodline_analysis::budget::{BudgetReport, BudgetRow};
use floodline_analysis::diagnose::{device, writer};
use floodline_analysis::ledger::Ledger;
use floodline_analysis::report::{Evidence, Plan, Report, Severity, Step, When};
use floodline_analysis::timeline::{Mark, Plot, Timeline};
use floodline_analysis::told::told;
use floodline_record::human;
use floodline_record::window::Window;

/// Rows of a table that grows with the machine, at most; the rest is counted.
const ROWS: usize = 100;
/// Rows of budgets, at most.
const BUDGETS: usize = 600;

/// Everything that is known of a recording.
#[derive(Clone, Copy, Debug)]
pub struct Host<'a> {
    /// What the recording is called (escaped).
    pub label: &'a str,
    /// The diagnosis.
    pub report: &'a Report,
    /// The recording, folded.
    pub window: &'a Window,
    /// Its curves.
    pub timeline: &'a Timeline,
    /// Budgets at its end, every cgroup.
    pub budgets: &'a BudgetReport,
    /// Its ledger, where it was traced.
    pub ledger: Option<&'a Ledger>,
}

/// The page of a recording.
pub fn host(host: &Host<'_>) -> String {
    let report = host.report;
    let name = if report.host.hostname.is_empty() { host.label } else { &report.host.hostname };
    let mut page = Page::new(format!("Writeback on {name}"));
    let from = host.timeline.first.map(|first| format!(" Recorded from {}.", time(first.wall.0))).unwrap_or_default();
    page.about = vec![format!("{}{from} File: {}", host_line(report, false), host.label)];
    page.verdict = Some(verdict(report));
    let found = found(host);
    let axis = axis(host.timeline);
    let plots = host.timeline.plots(host.window);
    let of_findings: Vec<Mark> = found.iter().flatten().cloned().collect();
    let others = host.timeline.marks();
    let set = Set::new(axis, &plots, &of_findings, &others);
    page.sections = vec![
        findings(report, &found),
        timeline(axis, &plots, &of_findings, &others, ""),
        budgets(host, axis),
        devices(host.window),
        waits(host),
        writers(host.window),
        ledger(host.ledger),
        plan(report),
        not_seen(report),
    ];
    page.sections.retain(|section| !section.blocks.is_empty());
    if !plots.is_empty() {
        page.data = pack_all(&[set]);
    }
    page.html()
}

/// The axis of a recording.
pub(super) fn axis(timeline: &Timeline) -> Axis<'_> {
    Axis { stretches: timeline.stretches(), wall_ns: Some(timeline.first.map_or(0, |first| first.wall.0)), labels: &[] }
}

/// What the first screen of `doctor` says.
pub(super) fn verdict(report: &Report) -> Verdict {
    let Some(first) = report.findings.first().filter(|_| !is_calm(report)) else {
        let (word, sentence) = calm_verdict(report);
        let class = if word == "OK" { "ok" } else { "info" };
        let mut rows = readings(report);
        let not_seen = [
            ("Not seen", also_unseen(report)),
            ("Missing", missing(report).join(" ")),
            ("Look longer", look_longer(report, false).unwrap_or_default()),
        ];
        rows.extend(not_seen.into_iter().filter(|(_, text)| !text.is_empty()));
        return Verdict { class, word: word.to_owned(), sentence: capital(&sentence), rows, commands: Vec::new() };
    };
    let explained: Vec<String> = report
        .findings
        .iter()
        .filter(|finding| finding.explained_by.is_some())
        .map(|finding| format!("{} ({})", finding.rule, finding.severity.name()))
        .collect();
    let mut rows = vec![
        ("You see", you_see(report)),
        ("Because", first.brief.because.clone()),
        ("Seen", first.confirmed.clone().unwrap_or_default()),
        ("Involved", first.brief.who.clone()),
        ("When", when(report)),
        ("Missing", missing(report).join(" ")),
        ("Also seen", explained.join(", ")),
    ];
    let mut commands = Vec::new();
    match &report.plan {
        Some(plan) => {
            let own = help_beside(plan, first);
            rows.push(("What helps", own.unwrap_or_default().to_owned()));
            rows.push(("Plan for", own.map(|_| plan.rules.join(", ")).unwrap_or_default()));
            commands.push(("Do now", plan.now.clone()));
            if let Some(candidate) = &plan.candidate {
                commands.push((heading_of_candidate(plan), candidate.commands.clone()));
                commands.push(("Measure it", candidate.measure.clone()));
                commands.push(("Undo", candidate.undo.clone()));
            }
            rows.push(("Later", plan.later.join(" ")));
            rows.push((expect(plan), plan.expect.first().cloned().unwrap_or_default()));
            let doubt = match (&plan.candidate, plan.is_tried_to_help()) {
                (Some(_), true) => "Doubt",
                (Some(_), false) => "Unchecked",
                (None, _) => "Untried",
            };
            rows.push((doubt, untried(plan)));
            rows.push(("Costs", plan.costs.first().cloned().unwrap_or_default()));
            commands.push(("Undo", plan.undo.clone()));
            commands.push(("Keep after a reboot", plan.keep.clone()));
            commands.push(("Undo what was kept", plan.undo_keep.clone()));
            commands.push(("Or under a guard", plan.guarded.clone()));
        }
        None => {
            rows.push(("What helps", first.brief.expect.clone()));
            rows.push(("Note", first.brief.costs.clone()));
        }
    }
    rows.retain(|(_, text)| !text.is_empty());
    commands.retain(|(_, commands)| !commands.is_empty());
    Verdict {
        class: class_of(first.severity),
        word: first.severity.name().to_owned(),
        sentence: first.summary.clone(),
        rows,
        commands,
    }
}

/// Where each finding shows most.
fn found(host: &Host<'_>) -> Vec<Option<Mark>> {
    host.report.findings.iter().map(|finding| host.timeline.mark_of(host.window, finding)).collect()
}

fn findings(report: &Report, found: &[Option<Mark>]) -> Section {
    let mut blocks: Vec<Block> = Vec::new();
    let report = told(report);
    for (number, (finding, mark)) in report.findings.iter().zip(found).enumerate() {
        let explained = finding.explained_by.map(|rule| format!("Explained by {rule}."));
        let mut texts: Vec<String> = finding.confirmed.iter().map(|text| format!("The trace: {text}")).collect();
        texts.push(finding.cause.clone());
        texts.extend(explained);
        let lead = lead_of_costs(finding);
        texts.retain(|text| !text.is_empty());
        let after = [
            (!finding.trade_off.is_empty()).then(|| format!("{lead}: {}", finding.trade_off)),
            Some(format!("Manual page: floodline explain {}", finding.rule)),
        ];
        let shown = Finding {
            id: format!("finding-{}", number + 1),
            class: class_of(finding.severity),
            word: finding.severity.name().to_owned(),
            summary: finding.summary.clone(),
            texts,
            at: mark.as_ref().map(|mark| (second(mark.second), mark.label.clone())),
            evidence: evidence(&finding.evidence),
            change: change(report.plan.as_ref(), finding),
            after: after.into_iter().flatten().collect(),
        };
        blocks.push(Block::Finding(Box::new(shown)));
    }
    Section::new("findings", "Findings and evidence", blocks)
}

fn evidence(rows: &[Evidence]) -> Option<Table> {
    let mut table = Table::new("Evidence", &["Reading", "#measured", "#against", "from"]);
    for row in rows {
        let against = row.threshold.as_ref().map(|threshold| shown(threshold, row.unit)).unwrap_or_default();
        table.push(vec![
            Cell::Name(row.name.clone()),
            Cell::Number(shown(&row.value, row.unit)),
            Cell::Number(against),
            Cell::Text(row.source.clone()),
        ]);
    }
    (!table.rows.is_empty()).then_some(table)
}

/// The curves, the moments of findings marked in each.
pub(super) fn timeline(axis: Axis<'_>, plots: &[Plot], found: &[Mark], others: &[Mark], prefix: &str) -> Section {
    let all = marks(axis, found, others);
    let figures = plots.iter().enumerate().map(|(number, plot)| {
        let mut marked = all.clone();
        // An anchor is in the first plot only.
        if number > 0 || !prefix.is_empty() {
            marked.iter_mut().for_each(|mark| mark.id.clear());
        }
        figure(axis, plot, &format!("{prefix}plot-"), format!("0.{number}"), &marked)
    });
    let figures: Vec<super::model::Figure> = figures.collect();
    let blocks = if figures.is_empty() { Vec::new() } else { vec![Block::Plots(figures)] };
    let mut section = Section::new("timeline", "The machine over time", blocks);
    if !others.is_empty() && !section.blocks.is_empty() {
        let mut table = Table::new("Marked moments", &["Time", "#second", "what"]);
        for mark in others {
            table.push(vec![
                Cell::Text(axis.shown(mark.second)),
                Cell::Number(second(mark.second)),
                Cell::Text(mark.label.clone()),
            ]);
        }
        section.blocks.push(Block::Table(table));
    }
    section
}

fn amount(bytes: Option<u64>) -> String {
    bytes.map_or_else(|| "?".to_owned(), |bytes| human::bytes(bytes as f64))
}

fn bound(exact: Option<u64>, most: Option<u64>) -> String {
    match (exact, most) {
        (Some(exact), _) => human::bytes(exact as f64),
        (None, None | Some(u64::MAX)) => "?".to_owned(),
        (None, Some(most)) => format!("≤{}", human::bytes(most as f64)),
    }
}

fn budgets(host: &Host<'_>, axis: Axis<'_>) -> Section {
    let report = host.budgets;
    let curves = host.timeline.cgroup_curves(host.window);
    let mut table = Table::new(
        "Budgets at the end of the recording: what each cgroup may have unwritten, has, and what sets the limit",
        &[
            "Cgroup",
            "device",
            "#dirty",
            "#writeback",
            "#background",
            "#freerun",
            "#limit",
            "#full",
            "#share",
            "#most seen",
            "unwritten over time",
            "limit set by",
        ],
    );
    for row in report.rows.iter().take(BUDGETS) {
        let strict = row.of_strict_limit();
        let row = strict.as_ref().unwrap_or(row);
        let curve = row.cgroup.as_ref().and_then(|path| curves.get(path));
        let most = curve.map(|line| line.points.iter().map(|(_, extent)| extent.max).fold(0.0, f32::max));
        let full = row.over_ratio.map_or_else(|| "?".to_owned(), human::percent);
        table.rows.push(Row {
            class: class(row),
            cells: vec![
                Cell::Name(row_name(row)),
                Cell::Text(row.device.clone().unwrap_or_default()),
                Cell::Number(amount(row.dirty_bytes)),
                Cell::Number(amount(row.writeback_bytes)),
                Cell::Number(bound(row.bg_thresh_bytes, row.bg_thresh_bytes_max)),
                Cell::Number(bound(row.freerun_bytes, row.freerun_bytes_max)),
                Cell::Number(bound(row.thresh_bytes, row.thresh_bytes_max)),
                Cell::Number(full),
                Cell::Number(row.share.map(human::percent).unwrap_or_default()),
                Cell::Number(most.map(|most| human::bytes(f64::from(most))).unwrap_or_default()),
                Cell::Spark(curve.map(|line| spark(&line.points, axis.stretches)).unwrap_or_default()),
                Cell::Text(row.binding.clone()),
            ],
        });
    }
    table.notes.extend(report.notes.iter().cloned());
    if report.rows.iter().take(BUDGETS).any(|row| row.of_strict_limit().is_some()) {
        table.notes.push(
            "Numbers of a device with a strict limit are those of its part: only this part limits its writers."
                .to_owned(),
        );
    }
    let hidden = report.rows.len().saturating_sub(BUDGETS) as u64 + report.hidden;
    if hidden > 0 {
        table.notes.push(format!(
            "{} not shown: floodline budget --all lists them.",
            human::plural(hidden, "row is", "rows are")
        ));
    }
    table.notes.push(
        "? is not read. ≤ is an upper bound where an input is missing. Source: memory.stat, /proc/vmstat and \
         the arithmetic of domain_dirty_limits()."
            .to_owned(),
    );
    let blocks = if table.rows.is_empty() { Vec::new() } else { table.in_parts() };
    Section::new("cgroups", "Cgroups and their budgets", blocks)
}

fn class(row: &BudgetRow) -> &'static str {
    let used = row.dirty_bytes.unwrap_or(0).saturating_add(row.writeback_bytes.unwrap_or(0));
    match (row.over_ratio, row.freerun_bytes_max) {
        (Some(ratio), _) if ratio >= 1.0 => "over",
        (_, Some(freerun)) if used > freerun => "slowed",
        _ => "",
    }
}

fn row_name(row: &BudgetRow) -> String {
    match (&row.container, &row.cgroup) {
        (Some(container), Some(cgroup)) => format!("{container} ({cgroup})"),
        (_, Some(cgroup)) => cgroup.clone(),
        (_, None) => "the whole machine".to_owned(),
    }
}

fn devices(window: &Window) -> Section {
    let mut table = Table::new(
        "Devices over the whole recording (/proc/diskstats; bandwidth by debugfs bdi stats, or measured)",
        &["Device", "kind", "#written", "#writes", "#mean write", "#a write takes", "#busy", "#bandwidth", "known by"],
    );
    for disk in device::devices(window) {
        let rate = disk.write_rate().map_or_else(|| "?".to_owned(), human::bytes_per_second);
        let iops = disk.write_iops().map_or_else(|| "?".to_owned(), |rate| format!("{}/s", human::number(rate)));
        let speed = disk.write_bandwidth();
        table.push(vec![
            Cell::Name(disk.name.to_string()),
            Cell::Text(if disk.is_bottom() { "disk" } else { "layer" }.to_owned()),
            Cell::Number(rate),
            Cell::Number(iops),
            Cell::Number(disk.mean_write().map(human::bytes).unwrap_or_default()),
            Cell::Number(disk.write_await().map(human::seconds).unwrap_or_default()),
            Cell::Number(disk.utilisation().map_or_else(|| "?".to_owned(), human::percent)),
            Cell::Number(speed.map(|speed| human::bytes_per_second(speed.value)).unwrap_or_default()),
            Cell::Text(speed.map(|speed| speed.basis.source().to_owned()).unwrap_or_default()),
        ]);
    }
    shorten(&mut table);
    let blocks = if table.rows.is_empty() { Vec::new() } else { vec![Block::Table(table)] };
    Section::new("devices", "Devices", blocks)
}

/// Keeps the first rows and counts the others.
pub(super) fn shorten(table: &mut Table) {
    if let Some(more) = table.rows.len().checked_sub(ROWS).filter(|more| *more > 0) {
        table.rows.truncate(ROWS);
        table.notes.push(format!("{} not shown.", human::plural(more as u64, "row is", "rows are")));
    }
}

fn writers(window: &Window) -> Section {
    let writers = writer::writers(window);
    let mut table = Table::new(
        "Writers: bytes handed to write calls, and bytes dirtied (/proc/PID/io wchar and write_bytes, which counts what \
         became dirty, not what reached a device)",
        &["Process", "#application", "#dirtied", "#dropped unwritten", "#write calls"],
    );
    for writer in writers.processes.iter().filter(|writer| writer.dirtied_bytes.is_some_and(|bytes| bytes > 0)) {
        table.push(vec![
            Cell::Name(writer.label()),
            Cell::Number(amount(writer.application_bytes)),
            Cell::Number(amount(writer.dirtied_bytes)),
            Cell::Number(amount(writer.cancelled_bytes)),
            Cell::Number(writer.write_calls.map_or_else(|| "?".to_owned(), |calls| calls.to_string())),
        ]);
    }
    shorten(&mut table);
    let blocks = if table.rows.is_empty() { Vec::new() } else { vec![Block::Table(table)] };
    Section::new("writers", "Writers", blocks)
}

fn ledger(ledger: Option<&Ledger>) -> Section {
    let mut blocks = Vec::new();
    if let Some(ledger) = ledger {
        let totals = &ledger.totals;
        let mut sums = Table::new("Bytes of the machine", &["What", "#bytes"]);
        for (name, bytes) in [
            ("handed to write calls", totals.application_bytes),
            ("became dirty", totals.dirtied_bytes),
            ("of it, had been dirty before", totals.redirtied_bytes.min(totals.dirtied_bytes)),
            ("dropped unwritten", totals.cancelled_bytes),
            ("queued at disks", totals.queued.total()),
            ("of it, data of files", totals.queued.data_bytes),
            ("of it, journal", totals.queued.journal_bytes),
            ("of it, metadata", totals.queued.metadata_bytes),
            ("of it, past the cache", totals.queued.direct_bytes),
            ("of it, unattributed", totals.queued.unknown_bytes),
            ("credited to processes", totals.credited_bytes),
        ] {
            sums.push(vec![Cell::Name(name.to_owned()), Cell::Number(human::bytes(bytes as f64))]);
        }
        sums.notes.extend(ledger.gaps.iter().cloned());
        let number = |bytes: u64| Cell::Number(human::bytes(bytes as f64));
        let mut processes =
            Table::new("Processes", &["Process", "cgroup", "#application", "#dirtied", "#again", "#at disks"]);
        for line in &ledger.processes {
            processes.push(vec![
                Cell::Name(format!("{}[{}]", line.comm, line.pid)),
                Cell::Text(line.cgroup.clone()),
                Cell::Number(amount(line.application_bytes)),
                number(line.dirtied_bytes),
                number(line.redirtied_bytes),
                number(line.device_bytes),
            ]);
        }
        let mut cgroups = Table::new("Cgroups", &["Cgroup", "#dirtied", "#again", "#at disks", "#charged"]);
        for line in &ledger.cgroups {
            cgroups.push(vec![
                Cell::Name(line.cgroup.clone()),
                number(line.dirtied_bytes),
                number(line.redirtied_bytes),
                number(line.device_bytes),
                number(line.charged_bytes),
            ]);
        }
        let mut files = Table::new("Files", &["File", "#dirtied", "#again", "#at disks", "by"]);
        for line in &ledger.files {
            files.push(vec![
                Cell::Name(line.file.clone()),
                number(line.dirtied_bytes),
                number(line.redirtied_bytes),
                number(line.device_bytes),
                Cell::Text(line.by.join(", ")),
            ]);
        }
        for mut table in [sums, processes, cgroups, files] {
            shorten(&mut table);
            if !table.rows.is_empty() {
                blocks.push(Block::Table(table));
            }
        }
    }
    Section::new("ledger", "Ledger: where the bytes came from and went", blocks)
}

/// Why the change of a plan is a candidate, or rests on arithmetic; empty where the twin shows that it helps.
fn untried(plan: &Plan) -> String {
    match (&plan.candidate, &plan.arithmetic_only) {
        (Some(candidate), _) => format!("{} Measure it first.", why_candidate(candidate, plan.is_tried_to_help())),
        (None, Some(why)) => format!("By arithmetic only: {why}."),
        (None, None) => String::new(),
    }
}

/// The heading of a change that is to be measured first.
fn heading_of_candidate(plan: &Plan) -> &'static str {
    if plan.is_tried_to_help() { "Candidate, with a reservation" } else { "Candidate, not checked" }
}

/// The label of what a plan is for. Only a trial shows what to expect.
fn expect(plan: &Plan) -> &'static str {
    if plan.candidate.is_some() && !plan.is_tried_to_help() { "Intended" } else { "Expect" }
}

fn plan(report: &Report) -> Section {
    let mut blocks = Vec::new();
    if let Some(plan) = &report.plan {
        let steps = plan.steps.iter().filter(|step| step.when != When::Later).map(Step::named);
        blocks.extend((1..).zip(steps).map(|(place, step)| Block::Text(format!("Step {place}: {step}"))));
        let candidate = plan.candidate.clone().unwrap_or_default();
        let commands = [
            (heading_of_candidate(plan), &candidate.commands),
            ("Measure it", &candidate.measure),
            ("Undo the candidate", &candidate.undo),
            ("Now", &plan.now),
            ("Undo", &plan.undo),
            ("Keep after a reboot", &plan.keep),
            ("Undo what was kept", &plan.undo_keep),
            ("Or under a guard", &plan.guarded),
        ];
        for (label, commands) in commands {
            if !commands.is_empty() {
                blocks.push(Block::Commands(label.to_owned(), commands.clone()));
            }
        }
        let notes = [
            (expect(plan), &plan.expect),
            ("Costs", &plan.costs),
            ("At boot", &plan.at_boot),
            ("Later", &plan.later),
            ("Left out", &plan.conflicts),
        ];
        let untried = untried(plan);
        blocks.extend((!untried.is_empty()).then_some(Block::Text(untried)));
        for (label, lines) in notes {
            blocks.extend(lines.iter().map(|line| Block::Text(format!("{label}: {line}"))));
        }
    }
    Section::new("plan", "Plan for all findings", blocks)
}

fn not_seen(report: &Report) -> Section {
    let mut blocks: Vec<Block> = Vec::new();
    let sentences = missing(report);
    if !sentences.is_empty() {
        blocks.push(Block::Text(sentences.join(" ")));
    }
    let mut unchecked = Table::new("Causes that could not be checked", &["Rule", "for lack of"]);
    for rule in &report.not_checked {
        let gaps: Vec<String> = rule.gaps.iter().map(|gap| format!("{}: {}", source(gap), gap.cause)).collect();
        unchecked.push(vec![Cell::Name(rule.rule.to_owned()), Cell::Text(gaps.join("; "))]);
    }
    let mut out = Table::new("Causes ruled out", &["Rule", "because"]);
    for rule in &report.ruled_out {
        out.push(vec![Cell::Name(rule.rule.to_owned()), Cell::Text(rule.reason.clone())]);
    }
    let mut gaps = Table::new("Sources not read", &["Source", "why", "what cannot be said without it"]);
    for gap in &report.gaps {
        gaps.push(vec![
            Cell::Name(source(gap).to_owned()),
            Cell::Text(gap.cause.clone()),
            Cell::Text(gap.lost.clone()),
        ]);
    }
    let mut others = Table::new("Found at other times", &["Rule", "severity", "#stretches", "first from"]);
    for other in report.stretch.iter().flat_map(|stretch| &stretch.others) {
        others.push(vec![
            Cell::Name(other.rule.to_owned()),
            Cell::Text(other.severity.name().to_owned()),
            Cell::Number(other.stretches.to_string()),
            Cell::Text(time(other.first_wall_ns)),
        ]);
    }
    for mut table in [others, unchecked, gaps, out] {
        shorten(&mut table);
        if !table.rows.is_empty() {
            blocks.push(Block::Table(table));
        }
    }
    let worst = report.findings.iter().map(|finding| finding.severity).max();
    if worst.is_none_or(|worst| worst < Severity::Warning) && blocks.is_empty() {
        blocks.push(Block::Text("Nothing is missing.".to_owned()));
    }
    Section::new("not-seen", "Ruled out and not seen", blocks)
}
