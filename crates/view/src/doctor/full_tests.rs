// SPDX-License-Identifier: MIT OR Apache-2.0
//! The screen of reports that are fuller than any rule makes them.

use super::{Options, render};
use floodline_analysis::diagnose::{diagnose, rules::RULES};
use floodline_analysis::prediction::{LONGEST, LONGEST_WRITE, Prediction, Row};
use floodline_analysis::report::{
    Brief, Candidate, Finding, HoleLine, Observation, Plan, Report, Severity, Stretch, TriedPlan,
};
use floodline_record::version::KernelVersion;
use floodline_testkit::incidents::starved_budget;

/// A report in which each text is `text`, with `findings` findings and a plan of `commands` commands in each block.
fn full(text: &str, findings: usize, commands: usize) -> Report {
    let mut report = diagnose(&starved_budget().window(), None);
    let text = || text.to_owned();
    let command = |number| format!("sudo sysctl -w vm.dirty_background_bytes={number} vm.dirty_bytes=134217728");
    let brief = Brief { because: text(), who: text(), expect: text(), costs: text() };
    let severities = [Severity::Critical, Severity::Warning, Severity::Info];
    let finding = |at: usize| Finding {
        rule: RULES[at % RULES.len()].name,
        severity: severities[at % 3],
        summary: text(),
        confirmed: Some(text()),
        brief: brief.clone(),
        explained_by: (at % 2 == 1).then_some("dirty-cliff"),
        ..Finding::default()
    };
    report.findings = (0..findings).map(finding).collect();
    report.host.hostname = text();
    report.plan = (commands > 0).then(|| Plan {
        now: (0..commands).map(command).collect(),
        undo: (0..commands).map(command).collect(),
        keep: (0..commands).map(command).collect(),
        guarded: (0..commands).map(command).collect(),
        expect: vec![text()],
        costs: vec![text()],
        later: vec![text(), text()],
        conflicts: vec![text()],
        at_boot: vec![text(), text()],
        arithmetic_only: Some(text()),
        // Where there are several findings, the commands are not for the first one.
        rules: vec![RULES[(findings - 1).min(2)].name],
        ..Plan::default()
    });
    let hole = HoleLine {
        from_wall_ns: 1_750_000_000_000_000_000,
        length_s: 1.5,
        missing_samples: 3,
        io_pressure_some_s: Some(1.25),
        memory_pressure_some_s: None,
    };
    report.observation = Observation {
        samples: 1_000_000,
        missing_samples: 999,
        longest_hole_s: 86_400.0,
        holes: vec![hole],
        samples_back_in_time: 12,
        wall_clock_jumps: 5,
        largest_wall_clock_jump_s: Some(-3_600.0),
        largest_wall_clock_jump_wall_ns: Some(1_750_000_000_000_000_000),
        ..Observation::default()
    };
    report.stretch =
        Some(Stretch { from_wall_ns: 0, to_wall_ns: 1, of_s: 86_400.0, of_stretches: 1_440, others: Vec::new() });
    report
}

#[test]
fn no_report_makes_the_screen_longer_than_the_terminal_or_25_lines() {
    let long = "The kernel writes nothing until the data are old enough, and then all of it. ".repeat(4);
    let texts = ["A word.".to_owned(), long, "no end of a sentence ".repeat(12), "/a界".repeat(100)];
    for text in &texts {
        for (findings, commands) in [(1, 0), (3, 2), (16, 4), (40, 30)] {
            let mut report = full(text, findings, commands);
            for width in [0, 80, 500] {
                for rows in [0, 23, 100] {
                    let most = rows.clamp(22, 25);
                    let screen = render(&report, Options { width, rows, ..Options::default() });
                    let lines = screen.lines().count();
                    assert!(lines <= most, "{lines} lines, {findings} findings, {commands} commands:\n{screen}");
                    assert!(screen.starts_with("CRITICAL on"), "{screen}");
                    assert!(screen.contains("--details"), "{screen}");
                    // A block of commands is whole or not there, so that no half of it is copied.
                    let shown = screen.replace(" \\\n", "").matches("sudo sysctl").count();
                    assert!(
                        commands == 0 || shown.is_multiple_of(commands),
                        "{shown} of {commands} commands:\n{screen}"
                    );
                }
            }
            report.findings.iter_mut().for_each(|finding| finding.severity = Severity::Info);
            let calm = render(&report, Options::default());
            assert!(calm.lines().count() <= 25 && calm.contains("--details"), "{calm}");
        }
    }
}

#[test]
fn a_screen_with_a_change_has_its_undo_and_the_guarded_command() {
    let long = "The kernel writes nothing until the data are old enough, and then all of it. ".repeat(4);
    for (text, findings) in [("A word.", 1), (long.as_str(), 1), (long.as_str(), 3), (long.as_str(), 40)] {
        let mut report = full(text, findings, 1);
        let plan = report.plan.as_mut().expect("a plan");
        plan.now = vec!["sudo sysctl -w vm.dirty_background_bytes=33554432 vm.dirty_bytes=134217728".to_owned()];
        plan.undo = vec!["sudo sysctl -w vm.dirty_background_ratio=10 vm.dirty_ratio=20".to_owned()];
        let set = "--set vm.dirty_background_bytes=33554432 --set vm.dirty_bytes=134217728";
        plan.guarded = vec![format!("sudo floodline apply {set} --persist --yes")];
        for rows in [22, 23, 25] {
            let screen = render(&report, Options { rows, ..Options::default() });
            assert!(screen.lines().count() <= rows, "{screen}");
            let whole = screen.replace(" \\\n", " ").split_whitespace().collect::<Vec<_>>().join(" ");
            let plan = report.plan.as_ref().expect("a plan");
            for command in [&plan.now, &plan.undo, &plan.guarded].into_iter().flatten() {
                assert!(whole.contains(command.as_str()), "{command} in {rows} lines of\n{screen}");
            }
        }
    }
    // Where the commands take too many lines, the change goes first: none is without its way back.
    for commands in 1..20 {
        let screen = render(&full(&long, 3, commands), Options::default());
        let has = |label: &str| {
            let line = screen.lines().find(|line| line.trim_start().starts_with(label)).unwrap_or_default();
            line.contains("sudo sysctl")
        };
        assert!(!has("Do now") || has("Undo"), "{commands} commands:\n{screen}");
    }
}

#[test]
fn a_candidate_is_no_command_of_now_and_fits_the_screen() {
    let long = "The kernel writes nothing until the data are old enough, and then all of it. ".repeat(4);
    for (text, findings, commands) in [("A word.", 1, 1), (long.as_str(), 3, 2), (long.as_str(), 40, 30)] {
        let mut report = full(text, findings, commands);
        let plan = report.plan.as_mut().expect("a plan");
        let candidate = Candidate {
            commands: std::mem::take(&mut plan.now),
            undo: std::mem::take(&mut plan.undo),
            why: text.to_owned(),
            measure: vec!["sudo floodline apply --set vm.dirty_bytes=134217728 --yes --switchback 6x10m".to_owned()],
            ..Candidate::default()
        };
        (plan.keep, plan.guarded, plan.at_boot, plan.candidate) = Default::default();
        plan.candidate = Some(candidate);
        for rows in [22, 25] {
            let screen = render(&report, Options { rows, ..Options::default() });
            assert!(screen.lines().count() <= rows, "{screen}");
            assert!(screen.contains("\nCandidate ") && !screen.contains("Do now"), "{screen}");
            assert!(screen.contains("Not known to help"), "{screen}");
        }
        let details = render(&report, Options { details: true, ..Options::default() });
        assert!(details.contains("Candidate, not checked") && details.contains("--switchback 6x10m"), "{details}");
        assert!(!details.contains("\n  Now\n"), "{details}");
    }
}

#[test]
fn the_doubt_of_a_candidate_names_the_wait_and_its_size() {
    let kernel = KernelVersion::new(6, 12, 0);
    let row = |figure, label, now, then| Row { least: 0.02, ..Row::new(figure, label, "seconds", now, then) };
    let rows = vec![row(LONGEST, "longest fsync", 4.3, 0.1), row(LONGEST_WRITE, "longest write call", 1.1, 5.6)];
    let why = Prediction { rows, ..Prediction::new(Vec::new(), kernel) }.reserve().expect("a wait gets longer");
    let long = "The kernel writes nothing until the data are old enough, and then all of it. ".repeat(4);
    let mut report = full(&long, 3, 2);
    let plan = report.plan.as_mut().expect("a plan");
    (plan.now, plan.undo, plan.keep, plan.guarded, plan.arithmetic_only) = Default::default();
    plan.tried = Some(TriedPlan { verdict: "helps", ..TriedPlan::default() });
    plan.candidate = Some(Candidate { why, ..Candidate::default() });
    for rows in [22, 25] {
        let screen = render(&report, Options { rows, width: 80, ..Options::default() });
        let doubt = screen.split_once("\n  Doubt ").expect("it has a doubt").1;
        let doubt = doubt.split('\n').take(2).map(str::trim).collect::<Vec<_>>().join(" ");
        assert!(doubt.contains("longest write call 1.10 s → about"), "{screen}");
    }
}

#[test]
fn commands_for_another_finding_do_not_hide_what_helps_against_the_first() {
    let mut report = full("A word.", 3, 1);
    report.findings[0].brief.expect = "Ask the owner of the limit.".to_owned();
    let (first, other) = (report.findings[0].rule, report.findings[2].rule);
    let of = |rule, report: &mut Report| {
        report.plan.as_mut().expect("a plan").rules = vec![rule];
        render(report, Options::default())
    };
    let beside = of(other, &mut report);
    let (helps, now) = (beside.find("What helps   Ask the owner of the limit."), beside.find("Do now "));
    assert!(helps.is_some() && helps < now, "{beside}");
    assert!(beside.contains(&format!("Expect     For {other}: A word.")), "{beside}");
    report.plan.as_mut().expect("a plan").expect = vec!["Predicted: longest fsync 3 s → about 1 s.".to_owned()];
    let predicted = of(other, &mut report);
    assert!(predicted.contains(&format!("For {other}, predicted: longest fsync")), "{predicted}");
    let own = of(first, &mut report);
    assert!(!own.contains("What helps") && !own.contains(&format!("For {first}")), "{own}");
}

#[test]
fn a_full_screen_names_what_it_leaves_to_the_details() {
    let sentence = "The kernel writes nothing until the data are old enough, and then all of it.";
    let text = format!("{sentence} They go to the disk in one piece, and every other write waits behind it.");
    let mut report = full(&text, 1, 1);
    report.host.hostname = "web-1".to_owned();
    report.findings[0].summary = "The disk is busy.".to_owned();
    report.findings[0].confirmed = None;
    let screen = render(&report, Options::default());
    insta::assert_snapshot!(screen);
    let details = render(&report, Options { details: true, ..Options::default() }).replace("\n    ", " ");
    for text in [sentence, "every other write waits behind it.", "999 of", "sudo sysctl -w", "Tasks wait for I/O"] {
        assert!(details.contains(text), "{text:?} in\n{details}");
    }
    report.plan = None;
    report.observation = Observation::default();
    let roomy = render(&report, Options::default());
    assert!(roomy.contains("Evidence: add --details") && !roomy.contains(" …"), "{roomy}");
}

#[test]
fn the_last_lines_count_findings_by_severity() {
    let counted = |findings: usize| {
        let screen = render(&full("A word.", findings, 1), Options::default());
        screen.lines().find(|line| line.contains("critical,")).unwrap_or_default().to_owned()
    };
    assert!(counted(3).starts_with("1 critical, 1 warning, 1 info."), "{}", counted(3));
    assert!(counted(6).starts_with("2 critical, 2 warnings, 2 info."), "{}", counted(6));
}

#[test]
fn a_rule_with_several_findings_counts_once() {
    let mut report = diagnose(&starved_budget().window(), None);
    let again = report.findings[0].clone();
    report.findings.push(again);
    report.findings.iter_mut().for_each(|finding| finding.severity = Severity::Info);
    let calm = render(&report, Options::default());
    assert!(calm.contains(&format!(" of {} causes ruled out", RULES.len())), "{calm}");
}

#[test]
fn unwritten_data_include_those_under_writeback() {
    use floodline_record::units::Pages;
    use floodline_testkit::Fixture;
    let with = |writeback: u64| {
        let host = Fixture::healthy().seconds(40).host(move |_, row| {
            (row.nr_dirty, row.nr_writeback) = (Some(Pages(2_048)), Some(Pages(writeback)));
        });
        render(&diagnose(&host.window(), None), Options::default())
    };
    assert!(with(6_144).contains("up to 32.0 MiB, dirty up to 8.00 MiB; the flusher starts at"), "{}", with(6_144));
    assert!(with(0).contains("up to 8.00 MiB; the flusher starts at"), "{}", with(0));
}

#[test]
fn the_share_of_the_busiest_disk_names_the_time_that_it_refers_to() {
    use floodline_testkit::Fixture;
    let with = |waiting_s: f64, write_await_s: f64| {
        let mut report = diagnose(&Fixture::healthy().seconds(40).window(), None);
        report.symptom.waiting_s = waiting_s;
        let disk = report.symptom.busiest.as_mut().expect("a disk");
        (disk.busy_share, disk.write_await_s) = (0.95, Some(write_await_s));
        render(&report, Options::default())
    };
    assert!(with(0.0, 0.01).contains("sda 95 %, a write takes 10.0 ms"), "{}", with(0.0, 0.01));
    let part = with(18.0, 0.01);
    assert!(part.contains("sda 95 % while tasks waited (18 s), a write takes"), "{part}");
    // The counter of a real host has whole milliseconds.
    assert!(with(0.0, 0.0).contains("sda 95 %, a write takes less than 1 ms"), "{}", with(0.0, 0.0));
}
