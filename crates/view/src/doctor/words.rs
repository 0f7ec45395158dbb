// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sentences of a report that more than one page prints: the verdict on a calm host, the symptoms, the key readings, and
//! the rules that were not checked. Lays nothing out.

use super::{rules, time};
use floodline_analysis::diagnose::coarse;
use floodline_analysis::report::{
    BusyDisk, Candidate, Finding, GapLine, NotChecked, Plan, Report, Severity, Unexplained,
};
use floodline_record::human;
use std::collections::BTreeSet;

/// Number of rules that were checked. A rule counts once, even if it has several findings.
pub(super) fn checked(report: &Report) -> usize {
    let found: BTreeSet<&str> = report.findings.iter().map(|finding| finding.rule).collect();
    report.ruled_out.len() + found.len()
}

/// What helps against the first finding, if the plan is all for other findings.
pub(crate) fn help_beside<'a>(plan: &Plan, first: &'a Finding) -> Option<&'a str> {
    let is_its_own = plan.rules.is_empty() || plan.rules.contains(&first.rule) || !first.plan.is_empty();
    (!is_its_own && !first.brief.expect.is_empty()).then_some(first.brief.expect.as_str())
}

/// "dirty-cliff (warning), dominant-writer (info; 2 findings)".
pub(super) fn names<'a>(findings: impl Iterator<Item = &'a Finding>) -> String {
    let mut named: Vec<(&str, Severity, u64)> = Vec::new();
    for finding in findings {
        match named.iter_mut().find(|(rule, severity, _)| (*rule, *severity) == (finding.rule, finding.severity)) {
            Some((_, _, count)) => *count += 1,
            None => named.push((finding.rule, finding.severity, 1)),
        }
    }
    let text = named.iter().map(|(rule, severity, count)| match count {
        1 => format!("{rule} ({})", severity.name()),
        _ => format!("{rule} ({}; {count} findings)", severity.name()),
    });
    text.collect::<Vec<_>>().join(", ")
}

/// The verdict on a host on which nothing hurts: its word with the host, and its sentence.
pub(super) fn calm_headline(report: &Report) -> (String, String) {
    let (verdict, sentence) = calm_verdict(report);
    let verdict = match (verdict, report.host.hostname.as_str()) {
        ("UNKNOWN", _) => "UNKNOWN: ".to_owned(),
        (verdict, "") => format!("{verdict} on this host: "),
        (verdict, host) => format!("{verdict} on {host}: "),
    };
    (verdict, sentence)
}

/// The verdict on a host on which nothing hurts: its word and its sentence. Where tasks waited for I/O nevertheless, it says for
/// what. Of an observation that was too short, it says what a longer one would show.
pub(crate) fn calm_verdict(report: &Report) -> (&'static str, String) {
    let (word, mut sentence) = verdict(report);
    if matches!(word, "OK" | "NOTHING SEEN") {
        let waits = waits(report);
        // Where a task waited, it is not true that nothing stalls.
        if waits.is_some() || report.findings.iter().any(|one| one.waited_s.is_some()) {
            sentence = sentence.replacen("no stall or storm found", "no rule found a harmful stall or storm", 1);
        }
        sentence.extend(waits.map(|waits| format!(" {waits}")));
    }
    if let Some(unseen) = report.unseen.first().filter(|_| word != "UNKNOWN" && report.window_s > 0.0) {
        sentence = format!("{sentence} {}", unseen.what);
    }
    (word, sentence)
}

/// What else the observation was too short to show, beside what the verdict says.
pub(crate) fn also_unseen(report: &Report) -> String {
    report.unseen.iter().skip(1).map(|unseen| unseen.what.as_str()).collect::<Vec<_>>().join(" ")
}

/// The command of an observation that shows what this one was too short for. A kept recording cannot be continued: then it is the command
/// of a new one.
pub(crate) fn look_longer(report: &Report, is_live: bool) -> Option<String> {
    let seconds = report.unseen.iter().map(|unseen| unseen.look_s).max().filter(|_| checked(report) > 0)?;
    let length = if seconds.is_multiple_of(60) { format!("{}m", seconds / 60) } else { format!("{seconds}s") };
    let sudo = if is_for(report, "permission_denied") { "sudo " } else { "" };
    Some(match is_live {
        true => format!("{sudo}floodline doctor --for {length}"),
        false => format!("{sudo}floodline record --for {length} -o host.flr"),
    })
}

/// "In the worst interval between two samples, tasks waited for I/O 82 % of the time, orders[139] longest: vda was busy mostly with reads."
fn waits(report: &Report) -> Option<String> {
    let symptom = &report.symptom;
    let most = symptom.io_some_share_max.filter(|_| symptom.waiting_s > 0.0)?;
    let who = symptom.waited_most.as_ref().map_or_else(String::new, |who| format!(", {who} longest"));
    let disk =
        symptom.busiest.as_ref().filter(|disk| Some(disk.busy_share) >= symptom.io_some_share.map(|some| some / 2.0));
    let why = match disk.map(|disk| (&disk.name, disk.load)) {
        // The notes below say what was seen of these waits.
        _ if report.findings.iter().any(|one| one.waited_s.is_some()) => String::new(),
        Some((disk, Some("reads"))) => format!(": {disk} was busy mostly with reads"),
        Some((disk, Some("writeback"))) if !report.unseen.is_empty() => format!(": writeback kept {disk} busy"),
        Some((disk, Some("writeback"))) => {
            format!(": writeback kept {disk} busy, and no other program waited long for it")
        }
        Some((disk, Some(_))) => format!(": {disk} was busy mostly with syncs and direct writes"),
        _ => ": no disk was busy meanwhile".to_owned(),
    };
    let most = human::percent(most);
    Some(format!("In the worst interval between two samples, tasks waited for I/O {most} of the time{who}{why}."))
}

fn verdict(report: &Report) -> (&'static str, String) {
    let checked = checked(report);
    let from = report.symptom.from_wall_ns.map_or_else(String::new, |at| format!(" from {}", clock(at)));
    let watched = human::seconds(report.window_s);
    if checked == 0 {
        let host = if report.host.hostname.is_empty() { "this host" } else { &report.host.hostname };
        let all = rules(report.not_checked.len());
        return ("UNKNOWN", format!("no verdict on {host}. None of {all} could check it."));
    }
    if report.rules_not_run > 0 {
        let asked: Vec<&str> = report.ruled_out.iter().map(|ruled_out| ruled_out.rule).collect();
        let seen = match asked.as_slice() {
            [] => "no finding that hurts".to_owned(),
            asked => asked.join(", "),
        };
        let seen = blind(report).map_or_else(|| seen.clone(), |blind| format!("{seen}, as far as {blind}"));
        let (others, were) = (rules(report.rules_not_run), if report.rules_not_run == 1 { "was" } else { "were" });
        return ("NOT FOUND", format!("{seen}. {others} {were} not run. {watched} watched{from}."));
    }
    if let Some(waits) = &report.unexplained {
        return ("NO CAUSE FOUND", format!("{} {watched} watched{from}.", unexplained(waits)));
    }
    if report.window_s <= 0.0 {
        return ("NOTHING SEEN", "nothing conspicuous in one sample. It shows no rates.".to_owned());
    }
    if let Some(gap) = report.not_checked.iter().flat_map(|rule| &rule.gaps).find(|gap| gap.kind == "too_coarse") {
        // "/proc/PID/stat (sda was busy for 1.23 s of the 5.00 s between two samples)".
        let source = gap.source.as_str();
        let what = source.split_once(" (").map_or(source, |(_, what)| what.trim_end_matches(')'));
        return (
            "NOTHING SEEN",
            format!("no stall or storm found in the samples of {watched}{from}. But {what}. That may hide a stall."),
        );
    }
    match (report.observation.may_hide_stall, blind(report)) {
        (true, _) => ("NOTHING SEEN", format!("no stall or storm found in the samples of {watched}{from}.")),
        (false, Some(blind)) => {
            ("NOTHING SEEN", format!("no stall or storm found in these {watched}{from}, as far as {blind}."))
        }
        (false, None) if !report.unseen.is_empty() => {
            ("NOTHING SEEN", format!("no stall or storm found in {watched}{from}."))
        }
        (false, None) => ("OK", format!("no stall or storm found. {watched} watched{from}.")),
    }
}

/// "fsync and similar calls took long: worker[171] waited 18 s, at most 447 ms at a time. 9 more programs waited long, too.
/// No rule found the cause."
pub(super) fn unexplained(waits: &Unexplained) -> String {
    let more = match waits.more {
        0 => String::new(),
        more => format!(" {} waited long, too.", human::plural(more, "more program", "more programs")),
    };
    let waited = human::seconds(waits.waited_s);
    match (waits.io_some_share, waits.longest_s) {
        (Some(share), _) => {
            let most = match waits.who.as_str() {
                "" => String::new(),
                who => format!(" {who} waited {waited}.{more}"),
            };
            let share = human::percent(share);
            format!(
                "tasks waited for I/O {share} of the time, for longer than the disks were busy.{most} No rule found the cause."
            )
        }
        (None, longest) => {
            let at_most = longest.map(|longest| format!(", at most {} at a time", human::seconds(longest)));
            let (who, at_most) = (&waits.who, at_most.unwrap_or_default());
            format!("fsync and similar calls took long: {who} waited {waited}{at_most}.{more} No rule found the cause.")
        }
    }
}

/// Share of the observation with waiting tasks from which a figure of these seconds is given as one "of the time".
const MOST_OF_TIME: f64 = 0.8;

/// "Tasks wait for I/O 69 % of the time (CPU iowait 43 to 74 %). vda is 9 % busy and a write takes 2 ms."
pub(crate) fn you_see(report: &Report) -> String {
    let symptom = &report.symptom;
    let (mut sentences, mut meanwhile) = (Vec::new(), "");
    if let Some(share) = symptom.io_some_share.filter(|_| symptom.waiting_s > 0.0) {
        let iowait = match symptom.iowait_share {
            Some((least, most)) if most >= 0.01 => {
                let (least, most) = (format!("{:.0}", least * 100.0), format!("{:.0}", most * 100.0));
                match least == most {
                    true => format!(" (CPU iowait {most} %)"),
                    false => format!(" (CPU iowait {least} to {most} %)"),
                }
            }
            _ => String::new(),
        };
        // The share refers to the seconds in the line When, not to the whole observation.
        let lasts = symptom.waiting_s >= MOST_OF_TIME * report.window_s;
        let tasks = if lasts { "Tasks" } else { "During the stall, tasks" };
        sentences.push(format!("{tasks} wait for I/O {} of the time{iowait}.", human::percent(share)));
        // The disk's share refers to these seconds as well.
        meanwhile = if lasts { "" } else { "Meanwhile, " };
    }
    sentences.extend(symptom.busiest.as_ref().map(|disk| format!("{meanwhile}{}", busy(disk))));
    sentences.join(" ")
}

fn busy(disk: &BusyDisk) -> String {
    let takes = write_takes(disk).map_or_else(String::new, |takes| format!(" and {takes}"));
    format!("{} is {} busy{takes}.", disk.name, human::percent(disk.busy_share))
}

fn write_takes(disk: &BusyDisk) -> Option<String> {
    // Linux counts the time of writes in milliseconds: a few quick writes together take none.
    Some(match disk.write_await_s? {
        seconds if seconds <= 0.0 => "a write takes less than 1 ms".to_owned(),
        seconds => format!("a write takes {}", human::seconds(seconds)),
    })
}

pub(crate) fn when(report: &Report) -> String {
    let symptom = &report.symptom;
    let stretch = match &report.stretch {
        Some(stretch) => {
            let others = match stretch.others.len() {
                0 => String::new(),
                many => format!("; {} at other times", human::plural(many as u64, "finding", "findings")),
            };
            format!(". This is the worst of {} stretches{others}", stretch.of_stretches)
        }
        None => String::new(),
    };
    match (symptom.waiting_from_wall_ns, symptom.from_wall_ns) {
        (Some(at), _) => format!(
            "{} of the {} watched, first at {}{stretch}",
            human::seconds(symptom.waiting_s),
            human::seconds(report.window_s),
            clock(at)
        ),
        (None, Some(at)) if report.window_s > 0.0 => {
            format!("{} watched from {}{stretch}", human::seconds(report.window_s), clock(at))
        }
        _ => String::new(),
    }
}

/// "03:12:04 UTC".
pub(crate) fn clock(wall_ns: u64) -> String {
    match time(wall_ns).get(11..19) {
        Some(clock) => format!("{clock} UTC"),
        None => "an unknown time".to_owned(),
    }
}

/// The key readings of a calm machine.
pub(crate) fn readings(report: &Report) -> Vec<(&'static str, String)> {
    let symptom = &report.symptom;
    let amount = |bytes: u64| human::bytes(bytes as f64);
    let mut lines = Vec::new();
    if let Some(dirty) = symptom.dirty_max_bytes {
        let limits = match (symptom.background_threshold_bytes, symptom.freerun_ceiling_bytes) {
            (Some(background), Some(ceiling)) => {
                format!("; the flusher starts at {}, writers are paused from {}", amount(background), amount(ceiling))
            }
            _ => String::new(),
        };
        // Both thresholds count dirty data only. Data under writeback are not on the disk either.
        let (dirty, all) = (amount(dirty), amount(symptom.unwritten_max_bytes.unwrap_or(dirty).max(dirty)));
        let part = if dirty == all { String::new() } else { format!(", dirty up to {dirty}") };
        lines.push(("Unwritten data", format!("up to {all}{part}{limits}")));
    }
    if let Some(share) = symptom.io_some_share_max {
        lines.push((
            "Waiting for I/O",
            format!("{} of the time in the worst interval between two samples", human::percent(share)),
        ));
    }
    lines.extend(symptom.busiest.as_ref().map(|disk| {
        let takes = write_takes(disk).map_or_else(String::new, |takes| format!(", {takes}"));
        // The share refers to the seconds in which tasks waited, where there were some.
        let is_part = symptom.waiting_s > 0.0 && symptom.waiting_s < MOST_OF_TIME * report.window_s;
        let waiting = || format!(" while tasks waited ({})", human::seconds(symptom.waiting_s));
        let of = if is_part { waiting() } else { String::new() };
        ("Busiest disk", format!("{} {}{of}{takes}", disk.name, human::percent(disk.busy_share)))
    }));
    lines.extend(symptom.tightest.as_ref().map(|tight| {
        (
            "Cgroups",
            format!("{}; the smallest dirty limit is {} ({})", tight.of, amount(tight.thresh_bytes), tight.name),
        )
    }));
    lines
}

/// What keeps a calm observation from being proof of health, beside a tracer that is not in use: as the end of "as far
/// as". `None` where nothing does.
fn blind(report: &Report) -> Option<&'static str> {
    if is_for(report, "permission_denied") {
        return Some("this user may see");
    }
    // A sentence about `unseen` follows, which already says what a short observation did not show.
    (report.unseen.is_empty() && is_for(report, "too_short")).then_some("an observation this short shows")
}

/// Whether a rule was not checked because of a gap of this kind, traces left out.
fn is_for(report: &Report, kind: &str) -> bool {
    report.not_checked.iter().any(|rule| rule.gaps.iter().any(|gap| gap.kind == kind && !of_trace(gap)))
}

fn of_trace(gap: &GapLine) -> bool {
    gap.source.starts_with("trace of ")
}

/// Whether the samples are too far apart for a rule.
fn is_coarse(gaps: &[GapLine]) -> bool {
    gaps.iter().any(|gap| gap.kind == "too_coarse")
}

/// Most rules that were not checked that are named.
const NAMED: usize = 2;

/// The rules that were not checked for reasons of which [`not_checked`] only says where they are; empty where they are many.
pub(super) fn for_other_reasons(report: &Report) -> Vec<&str> {
    let is_told = |gaps: &[GapLine]| {
        gaps.iter().all(of_trace) || gaps.iter().all(|gap| gap.kind == "too_short") || is_coarse(gaps)
    };
    let rules: Vec<&str> = report.not_checked.iter().filter(|one| !is_told(&one.gaps)).map(|one| one.rule).collect();
    if rules.len() > NAMED { Vec::new() } else { rules }
}

/// Number of rules that were not checked, and the remedy: a kept recording cannot be completed any more. `has_reasons`
/// adds which rules lack a source, and the source.
pub(super) fn not_checked(report: &Report, is_live: bool, has_reasons: bool) -> String {
    if report.not_checked.is_empty() {
        return String::new();
    }
    let needs_trace = |gaps: &[GapLine]| gaps.iter().all(of_trace);
    let (traced, others): (Vec<_>, Vec<_>) = report.not_checked.iter().partition(|rule| needs_trace(&rule.gaps));
    let is_short = |gaps: &[GapLine]| gaps.iter().all(|gap| gap.kind == "too_short");
    let (short, others): (Vec<_>, Vec<_>) = others.into_iter().partition(|rule| is_short(&rule.gaps));
    let (sparse, others): (Vec<_>, Vec<_>) = others.into_iter().partition(|rule| is_coarse(&rule.gaps));
    let mut parts = Vec::new();
    if !short.is_empty() {
        let longest = short.iter().flat_map(|rule| &rule.gaps).filter_map(|gap| gap.need_s).max();
        let need = longest.map_or_else(|| "1m".to_owned(), |seconds| format!("{seconds}s"));
        parts.push(format!("{} not checked (--for {need})", short.len()));
    }
    if !sparse.is_empty() {
        parts.push(format!("{} not checked ({})", sparse.len(), coarse::NEED));
    }
    if !traced.is_empty() {
        let why = if is_live { "--trace on" } else { "recorded without a trace" };
        parts.push(format!("{} not checked ({why})", traced.len()));
    }
    let has_reasons = has_reasons && others.len() <= NAMED;
    if !others.is_empty() && !has_reasons {
        let what = if parts.is_empty() { " not checked" } else { "" };
        parts.push(format!("{}{what} (see --details)", others.len()));
    }
    let named: String = others.iter().filter(|_| has_reasons).map(|rule| why_unchecked(rule)).collect();
    let counted = if parts.is_empty() { String::new() } else { format!(" {}.", parts.join(", ")) };
    format!("{counted}{named}")
}

/// Sentences on a rule that was not checked, with the first source that it lacks.
fn why_unchecked(rule: &NotChecked) -> String {
    let missing = rule.gaps.iter().find(|gap| !of_trace(gap)).or(rule.gaps.first());
    let why = missing.map(|gap| format!(" Reason: {}: {}.", gap.source, gap.cause)).unwrap_or_default();
    format!(" {} was not checked.{why}", rule.rule)
}

/// Why a change is only a candidate. `helps` if its trial shows that it helps.
pub(crate) fn why_candidate(candidate: &Candidate, helps: bool) -> String {
    let lead = if helps { "Helps on the twin, with a reservation" } else { "Not known to help" };
    format!("{lead}: {}.", candidate.why)
}
