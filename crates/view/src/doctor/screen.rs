// SPDX-License-Identifier: MIT OR Apache-2.0
//! One screen of at most 25 lines for a person who has a sick host: what they see, because of what, what to type, what
//! that does and costs, and how to undo it. The verdict stands first and its count last. Plain words; the kernel's words
//! and every source are in the details.

use super::{BOLD, DIM, Page, color_of, is_calm, missing, rules, time};
use crate::layout::{command, wrap};
use anstyle::Style;
use floodline_analysis::report::{BusyDisk, Finding, Plan, Report, Severity, Symptom};
use floodline_record::human;

/// Columns of the labels at the left.
const LABEL: usize = 13;
/// A stall that comes twice a minute can hide from an observation that is shorter than this, seconds.
const SEES_MOST_S: f64 = 30.0;
/// Shorter than this, an observation says little, seconds.
const SHORT_S: f64 = 10.0;
/// Lines of a small terminal, one kept for the prompt.
const LINES: usize = 25;
/// Findings beside the first that get a line of their own.
const OTHERS: usize = 2;

/// The first screen of a report.
pub(super) fn render(report: &Report, width: usize, color: bool) -> String {
    let fits = |page: &Page| page.out.lines().count() <= LINES;
    let new = || Page { out: String::new(), width, color };
    let Some(first) = report.findings.first().filter(|_| !is_calm(report)) else {
        let mut page = new();
        page.calm(report);
        return page.out;
    };
    let mut page = new();
    for brevity in Brevity::ALL {
        page = new();
        page.sick(report, first, brevity);
        if fits(&page) {
            break;
        }
    }
    page.out
}

/// What is left to the details where a screen is full, step by step.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Brevity {
    /// Nothing.
    Whole,
    /// Sentences of other findings: their names stay.
    Others,
    /// The trace's sentence and the list of cgroups.
    Who,
    /// The command that keeps the change, or makes all of it under a guard.
    Keep,
}

impl Brevity {
    const ALL: [Brevity; 4] = [Brevity::Whole, Brevity::Others, Brevity::Who, Brevity::Keep];
}

impl Page {
    fn sick(&mut self, report: &Report, first: &Finding, brevity: Brevity) {
        let verdict = match report.host.hostname.as_str() {
            "" => format!("{}: ", first.severity.name().to_uppercase()),
            host => format!("{} on {host}: ", first.severity.name().to_uppercase()),
        };
        self.headline(&verdict, &first.summary, color_of(first.severity));
        self.out.push('\n');
        self.labelled("  You see", &you_see(&report.symptom), Style::new());
        self.labelled("  Because", &first.brief.because, Style::new());
        if brevity < Brevity::Who {
            self.labelled("  Seen", first.confirmed.as_deref().unwrap_or_default(), Style::new());
            self.labelled("  Who", &first.brief.who, Style::new());
        }
        self.labelled("  When", &when(report), Style::new());
        self.labelled("  Missing", &missing(&report.observation).join(" "), Style::new());
        self.others(report, brevity);
        self.out.push('\n');
        match &report.plan {
            Some(plan) => self.plan(plan, brevity),
            None => self.labelled("What helps", &first.brief.expect, Style::new()),
        }
        if report.plan.is_none() {
            self.labelled("  Note", &first.brief.costs, Style::new());
        }
        self.out.push('\n');
        self.closing(report, first);
    }

    fn headline(&mut self, verdict: &str, sentence: &str, style: Style) {
        let lines = wrap(&format!("{verdict}{sentence}"), self.width);
        for (at, line) in lines.iter().enumerate() {
            match line.strip_prefix(verdict.trim_end()).filter(|_| at == 0) {
                Some(rest) => {
                    self.styled(verdict.trim_end(), style);
                    self.styled(rest, BOLD);
                }
                None => self.styled(line, BOLD),
            }
            self.out.push('\n');
        }
    }

    /// Findings beside the first: those that it explains by name, others with their sentence.
    fn others(&mut self, report: &Report, brevity: Brevity) {
        let rest = || report.findings.iter().skip(1);
        let explained: Vec<String> = rest()
            .filter(|finding| finding.explained_by.is_some())
            .map(|finding| format!("{} ({})", finding.rule, finding.severity.name()))
            .collect();
        self.labelled("  Also seen", &explained.join(", "), DIM);
        let own: Vec<&Finding> =
            rest().filter(|finding| finding.explained_by.is_none() && finding.severity >= Severity::Warning).collect();
        if brevity >= Brevity::Others {
            let named: Vec<String> =
                own.iter().map(|finding| format!("{} ({})", finding.rule, finding.severity.name())).collect();
            self.labelled("  Besides", &named.join(", "), Style::new());
            return;
        }
        for finding in own.iter().take(OTHERS) {
            self.labelled("  Besides", &format!("{}: {}", finding.severity.name(), finding.summary), Style::new());
        }
        if own.len() > OTHERS {
            let more = human::plural((own.len() - OTHERS) as u64, "finding", "findings");
            self.labelled("", &format!("and {more} more"), Style::new());
        }
    }

    fn plan(&mut self, plan: &Plan, brevity: Brevity) {
        // The guarded command keeps the change too; the details have the file.
        let kept = if plan.guarded.is_empty() { ("  Keep", &plan.keep, DIM) } else { ("  Safely", &plan.guarded, DIM) };
        let blocks = [("Do now", &plan.now, BOLD), ("  Undo", &plan.undo, DIM), kept];
        let (now, after) = blocks.split_at(1);
        for (label, commands, style) in now {
            self.commands(label, commands, *style);
        }
        self.labelled(if plan.now.is_empty() { "What helps" } else { "  Later" }, &plan.later.join(" "), Style::new());
        self.labelled("  Expect", plan.expect.first().map_or("", String::as_str), Style::new());
        if let Some(why) = &plan.arithmetic_only {
            self.labelled("  Untried", &format!("By arithmetic only: {why}."), DIM);
        }
        self.labelled("  Costs", plan.costs.first().map_or("", String::as_str), Style::new());
        for (label, commands, style) in after {
            match brevity {
                Brevity::Keep if *label == kept.0 && !commands.is_empty() => {
                    self.labelled(label, "shown by --details", DIM);
                }
                _ => self.commands(label, commands, *style),
            }
        }
        if let Some(conflict) = plan.conflicts.first() {
            self.labelled("  Left out", conflict, Style::new());
        }
    }

    fn closing(&mut self, report: &Report, first: &Finding) {
        let count = |severity: Severity| report.findings.iter().filter(|finding| finding.severity == severity).count();
        let counts: Vec<String> = [Severity::Critical, Severity::Warning, Severity::Info]
            .into_iter()
            .map(|severity| (count(severity), severity.name()))
            .filter(|(count, _)| *count > 0)
            .map(|(count, name)| format!("{count} {name}"))
            .collect();
        let ruled_out = match report.ruled_out.len() {
            0 => String::new(),
            many => format!(" {} ruled out.", human::plural(many as u64, "other cause", "other causes")),
        };
        self.text(&format!("{}.{ruled_out}{}", counts.join(", "), not_checked(report)), BOLD);
        let explain = format!("What it means: floodline explain {}", first.rule);
        match LABEL + 12 + explain.len() <= self.width {
            true => self.text(&format!("Evidence: add --details. {explain}"), DIM),
            false => self.text("Evidence: add --details", DIM),
        }
    }

    fn calm(&mut self, report: &Report) {
        let checked = report.ruled_out.len() + report.findings.len();
        let all = checked + report.not_checked.len();
        let watched = human::seconds(report.window_s);
        let (verdict, sentence) = calm_verdict(report);
        let verdict = match (verdict, report.host.hostname.as_str()) {
            ("UNKNOWN", _) => "UNKNOWN: ".to_owned(),
            (verdict, "") => format!("{verdict} on this host: "),
            (verdict, host) => format!("{verdict} on {host}: "),
        };
        self.headline(&verdict, &sentence, BOLD);
        let missing = missing(&report.observation).join(" ");
        let mut readings = readings(report);
        readings.extend((!missing.is_empty()).then_some(("Missing", missing)));
        if !readings.is_empty() {
            self.out.push('\n');
        }
        for (label, text) in readings {
            self.labelled_at(&format!("  {label}"), LABEL + 6, &text, Style::new());
        }
        if !report.findings.is_empty() {
            self.out.push('\n');
            for finding in report.findings.iter().take(OTHERS + 1) {
                self.labelled("Note", &finding.summary, Style::new());
            }
        }
        self.out.push('\n');
        let of = format!("{} of {all} causes ruled out.{}", report.ruled_out.len(), not_checked(report));
        self.text(&of, Style::new());
        if report.window_s < SEES_MOST_S && checked > 0 {
            let hidden = match report.window_s {
                0.0 => "Rates need a longer observation".to_owned(),
                _ => format!("A stall twice a minute can hide from {watched}"),
            };
            self.text(&format!("{hidden}: floodline doctor --for 1m"), Style::new());
        }
        self.text("Readings and sources: add --details", DIM);
    }

    /// A label at the left and a paragraph beside it; nothing for an empty text.
    fn labelled(&mut self, label: &str, text: &str, style: Style) {
        self.labelled_at(label, LABEL, text, style);
    }

    fn labelled_at(&mut self, label: &str, indent: usize, text: &str, style: Style) {
        if text.is_empty() {
            return;
        }
        for (at, line) in wrap(text, self.width.saturating_sub(indent)).iter().enumerate() {
            let lead = if at == 0 { label } else { "" };
            self.styled(&format!("{lead:indent$}"), if lead.starts_with(' ') { DIM } else { BOLD });
            self.styled(line, style);
            self.out.push('\n');
        }
    }

    /// Commands beside a label, each continued with a backslash, so that the block can be copied.
    fn commands(&mut self, label: &str, commands: &[String], style: Style) {
        for (at, text) in commands.iter().enumerate() {
            let mut lines = String::new();
            command(&mut lines, LABEL, text, self.width);
            for (number, line) in lines.lines().enumerate() {
                let lead = if at == 0 && number == 0 { label } else { "" };
                self.styled(&format!("{lead:LABEL$}"), if lead.starts_with(' ') { DIM } else { BOLD });
                self.styled(line.get(LABEL..).unwrap_or_default(), style);
                self.out.push('\n');
            }
        }
    }

    fn text(&mut self, text: &str, style: Style) {
        for line in wrap(text, self.width) {
            self.styled(&line, style);
            self.out.push('\n');
        }
    }
}

/// The verdict on a host on which nothing hurts: its word and its sentence.
pub(crate) fn calm_verdict(report: &Report) -> (&'static str, String) {
    let checked = report.ruled_out.len() + report.findings.len();
    let from = report.symptom.from_wall_ns.map_or_else(String::new, |at| format!(" from {}", clock(at)));
    let watched = human::seconds(report.window_s);
    if checked == 0 {
        let host = if report.host.hostname.is_empty() { "this host" } else { &report.host.hostname };
        let all = rules(report.not_checked.len());
        return ("UNKNOWN", format!("nothing can be said about {host}. None of {all} could check it."));
    }
    if report.window_s < SHORT_S {
        return match report.window_s {
            0.0 => ("NOTHING SEEN", "nothing conspicuous in one sample. It shows no rates.".to_owned()),
            _ => ("NOTHING SEEN", format!("nothing stalls or storms in these {watched}{from}.")),
        };
    }
    match (report.observation.may_hide_stall, blind(report)) {
        (true, _) => ("NOTHING SEEN", format!("nothing stalls or storms in the samples of {watched}{from}.")),
        (false, Some(blind)) => {
            ("NOTHING SEEN", format!("nothing stalls or storms in these {watched}{from}, as far as {blind}."))
        }
        (false, None) => ("OK", format!("nothing stalls or storms. {watched} watched{from}.")),
    }
}

/// "Tasks wait for I/O 69 % of the time (iowait 43 to 74 %). vda is 9 % busy, a write takes 2 ms."
pub(crate) fn you_see(symptom: &Symptom) -> String {
    let mut sentences = Vec::new();
    if let Some(share) = symptom.io_some_share.filter(|_| symptom.waiting_s > 0.0) {
        let iowait = match symptom.iowait_share {
            Some((least, most)) if most >= 0.01 => {
                let (least, most) = (format!("{:.0}", least * 100.0), format!("{:.0}", most * 100.0));
                match least == most {
                    true => format!(" (iowait {most} %)"),
                    false => format!(" (iowait {least} to {most} %)"),
                }
            }
            _ => String::new(),
        };
        sentences.push(format!("Tasks wait for I/O {} of the time{iowait}.", human::percent(share)));
    }
    sentences.extend(symptom.busiest.as_ref().map(busy));
    sentences.join(" ")
}

fn busy(disk: &BusyDisk) -> String {
    let takes = disk.write_await_s.map_or_else(String::new, |s| format!(", a write takes {}", human::seconds(s)));
    format!("{} is {} busy{takes}.", disk.name, human::percent(disk.busy_share))
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
            "{} of {} watched, from {}{stretch}",
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
                format!("; writing starts at {}, waiting at {}", amount(background), amount(ceiling))
            }
            _ => String::new(),
        };
        lines.push(("Unwritten data", format!("up to {}{limits}", amount(dirty))));
    }
    if let Some(share) = symptom.io_some_share_max {
        lines.push(("Waiting for I/O", format!("{} of the time at worst", human::percent(share))));
    }
    lines.extend(symptom.busiest.as_ref().map(|disk| {
        let sentence = busy(disk);
        ("Busiest disk", sentence.trim_end_matches('.').replacen(" is ", " ", 1).replacen(" busy", "", 1))
    }));
    lines.extend(symptom.tightest.as_ref().map(|tight| {
        ("Containers", format!("{}; the tightest may hold {} ({})", tight.of, amount(tight.thresh_bytes), tight.name))
    }));
    lines
}

/// What keeps a calm observation from being proof of health, beside a tracer that is not in use: as the end of "as far
/// as". `None` where nothing does.
fn blind(report: &Report) -> Option<&'static str> {
    let is_for = |kind: &str| {
        report.not_checked.iter().any(|rule| rule.gaps.iter().any(|gap| gap.kind == kind && !of_trace(gap)))
    };
    if is_for("permission_denied") {
        return Some("this user may see");
    }
    is_for("too_short").then_some("an observation this short shows")
}

fn of_trace(gap: &floodline_analysis::report::GapLine) -> bool {
    gap.source.starts_with("trace of ")
}

/// How many rules could not look, and what would let them.
pub(crate) fn not_checked(report: &Report) -> String {
    if report.not_checked.is_empty() {
        return String::new();
    }
    let needs_trace = |gaps: &[floodline_analysis::report::GapLine]| gaps.iter().all(of_trace);
    let (traced, others): (Vec<_>, Vec<_>) = report.not_checked.iter().partition(|rule| needs_trace(&rule.gaps));
    let is_short = |gaps: &[floodline_analysis::report::GapLine]| gaps.iter().all(|gap| gap.kind == "too_short");
    let (short, others): (Vec<_>, Vec<_>) = others.into_iter().partition(|rule| is_short(&rule.gaps));
    let mut parts = Vec::new();
    if !short.is_empty() {
        let gaps = || short.iter().flat_map(|rule| &rule.gaps);
        let longest = gaps().max_by_key(|gap| {
            gap.cause
                .bytes()
                .filter(u8::is_ascii_digit)
                .fold(0_u64, |number, digit| number.saturating_mul(10).saturating_add(u64::from(digit - b'0')))
        });
        let need = longest.and_then(|gap| gap.cause.split_once("(use ")?.1.strip_suffix(')')).unwrap_or("--for 1m");
        parts.push(format!("{} not checked ({need})", short.len()));
    }
    if !traced.is_empty() {
        parts.push(format!("{} not checked (--trace on)", traced.len()));
    }
    if !others.is_empty() {
        parts.push(format!("{} not checked (see --details)", others.len()));
    }
    format!(" {}.", parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::super::{Options, render};
    use floodline_analysis::diagnose::diagnose;
    use floodline_testkit::Fixture;
    use floodline_testkit::incidents::{INCIDENTS, dirty_cliff, starved_budget};

    fn page(fixture: &Fixture) -> String {
        render(&diagnose(&fixture.window(), None), Options::default())
    }

    #[test]
    fn an_observation_that_is_too_short_or_blind_is_not_called_healthy() {
        use floodline_record::gap::{Cause, Source};
        use floodline_record::units::Pages;
        let rising = || {
            let dirty = |t: f64| Pages(2_000 + 100 * t as u64);
            Fixture::healthy().seconds(12).facts(|facts| facts.devices[0].rotational = Some(true)).host(
                move |t, row| {
                    (row.nr_dirty, row.nr_dirtied) = (Some(dirty(t)), Some(Pages(40_000_000 + dirty(t).0)));
                },
            )
        };
        let short = page(&rising());
        assert!(short.starts_with("NOTHING SEEN on web-1:"), "{short}");
        assert!(short.contains("3 not checked (--for 36s)"), "{short}");
        let blind = Fixture::healthy()
            .seconds(40)
            .without(Source::ProcessIo, Cause::PermissionDenied { need: "CAP_SYS_PTRACE".into() });
        let blind = page(&blind);
        assert!(blind.starts_with("NOTHING SEEN on web-1:") && blind.contains("this user may see"), "{blind}");
        let whole = page(&rising().seconds(40));
        assert!(whole.starts_with("OK on web-1:"), "{whole}");
    }

    #[test]
    fn a_starved_host_says_what_to_type() {
        insta::assert_snapshot!(page(&starved_budget()));
    }

    #[test]
    fn a_cliff_says_what_to_type() {
        insta::assert_snapshot!(page(&dirty_cliff()));
    }

    #[test]
    fn a_healthy_host_says_so_with_its_key_readings() {
        insta::assert_snapshot!(page(&Fixture::healthy()));
    }

    #[test]
    fn every_incident_fits_a_terminal_of_25_lines_and_a_healthy_host_12() {
        for incident in INCIDENTS {
            let text = page(&(incident.make)());
            let most = if incident.rule.is_some() { 25 } else { 16 };
            assert!(text.lines().count() <= most, "{}: {} lines\n{text}", incident.name, text.lines().count());
            let verdict = ["CRITICAL", "WARNING", "OK", "NOTHING SEEN"];
            assert!(verdict.iter().any(|word| text.starts_with(word)), "{}:\n{text}", incident.name);
        }
        let healthy = page(&Fixture::healthy());
        assert!(healthy.lines().count() <= 12, "{healthy}");
    }

    #[test]
    fn no_line_is_wider_than_the_page() {
        for incident in INCIDENTS {
            let report = diagnose(&(incident.make)().window(), None);
            for width in [60, 80, 100] {
                for line in render(&report, Options { width, ..Options::default() }).lines() {
                    // A word of a command, such as a path, may be longer than a narrow page.
                    let is_command = width < 80 && (line.contains('\'') || line.contains("/etc/"));
                    assert!(crate::layout::columns(line) <= width || is_command, "{width}: {line}");
                }
            }
        }
    }

    #[test]
    fn what_is_missing_stands_on_the_first_screen() {
        use floodline_record::record::{Record, What};
        let holed = |fixture: Fixture, io: u64| {
            let mut records = fixture.records();
            let second = |record: &Record| matches!(record, Record::Sample(_));
            let at = records.iter().rposition(second).expect("samples");
            if let Record::Sample(sample) = &mut records[at] {
                let some = sample.host.psi_io_some.get_or_insert_default();
                some.0 += io;
                sample.time.monotonic.0 += 3_000_000_000;
                sample.time.wall.0 += 3_000_000_000;
            }
            let at_time = floodline_record::units::Nanos(0);
            let event = floodline_record::record::Event { at: at_time, what: What::Missed { samples: 3 } };
            records.insert(at, Record::Event(event));
            let window = floodline_record::window::Window::from_records(&records);
            render(&diagnose(&window, None), Options::default())
        };
        let quiet = holed(Fixture::healthy().seconds(30), 0);
        assert!(quiet.starts_with("OK on "), "{quiet}");
        assert!(quiet.contains("3 of 34 samples are missing, the longest hole is 4.0"), "{quiet}");
        let waited = holed(Fixture::healthy().seconds(30), 2_400_000_000);
        assert!(waited.starts_with("NOTHING SEEN on "), "{waited}");
        assert!(waited.contains("Tasks waited for I/O for 2.4"), "{waited}");
        assert!(waited.replace('\n', " ").contains("not checked (see --details)"), "{waited}");
        let sick = holed(dirty_cliff(), 0);
        assert!(sick.contains("3 of "), "{sick}");
        assert!(sick.lines().count() <= 25, "{sick}");
    }

    #[test]
    fn a_short_observation_does_not_say_that_all_is_well() {
        let short = page(&Fixture::healthy().seconds(6));
        assert!(short.starts_with("NOTHING SEEN"), "{short}");
        assert!(short.contains("--for 1m"), "{short}");
        let one = page(&Fixture::healthy().one_look());
        assert!(one.contains("It shows no rates"), "{one}");
        let nothing = render(&diagnose(&floodline_record::window::Window::default(), None), Options::default());
        assert!(nothing.starts_with("UNKNOWN"), "{nothing}");
    }
}
