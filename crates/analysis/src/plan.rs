// SPDX-License-Identifier: MIT OR Apache-2.0
//! Merges the steps of all findings of a report into one plan: each setting changed once, immediate steps apart from
//! those that keep them, and the undo as a block of its own. Where two findings want different values of one setting,
//! the worse finding decides and the conflict is named. Decides nothing about the values themselves.

use crate::at_boot::line_in_force;
use crate::diagnose::dirty;
use crate::knob_of::knob_of;
use crate::report::{Candidate, Finding, Plan, Severity, Step, When};
use floodline_record::facts::SysctlLine;
use floodline_record::window::Window;

/// Pairs of settings in which writing one member zeroes the other: two steps for one pair are two steps for one
/// setting.
pub(crate) const PAIRS: [[&str; 2]; 2] =
    [["vm.dirty_ratio", "vm.dirty_bytes"], ["vm.dirty_background_ratio", "vm.dirty_background_bytes"]];
/// Settings of the age of dirty data.
const AGE: [&str; 2] = ["vm.dirty_expire_centisecs", "vm.dirty_writeback_centisecs"];
/// The rule whose thresholds must hold rewritten data.
const ROOM: &str = "starved-dirty-budget";
/// File that keeps sysctl settings, by hand and by `floodline apply`. Drop-ins are applied by name: this one comes
/// after `99-sysctl.conf`, which many distributions have.
pub const SYSCTL_DROP_IN: &str = "/etc/sysctl.d/99-zz-floodline.conf";
/// File that keeps the setting of journald, by hand and by `floodline apply`.
pub const JOURNALD_DROP_IN: &str = "/etc/systemd/journald.conf.d/99-zz-floodline.conf";

/// Merges the plans of findings about a machine, worst first. Findings that another one explains add nothing: their cause is handled.
pub fn merge_for(window: &Window, findings: &[Finding]) -> Option<Plan> {
    let in_force = [dirty::hard_threshold(window), dirty::background_threshold(window)];
    merged(findings, in_force.map(|bytes| bytes.map(|bytes| bytes.0)))
}

/// The same where the thresholds in force are not known.
pub fn merge(findings: &[Finding]) -> Option<Plan> {
    merged(findings, [None; 2])
}

fn merged(findings: &[Finding], in_force: [Option<u64>; 2]) -> Option<Plan> {
    let worst = findings.first()?.severity;
    // If a finding does harm, info findings change nothing.
    let least = worst.min(Severity::Warning);
    let mut merged = Merged { in_force, ..Merged::default() };
    let counts = |finding: &&Finding| finding.severity >= least && finding.explained_by.is_none();
    let mut counted: Vec<&Finding> = findings.iter().filter(counts).collect();
    // Starved cgroups rewrite all the time, pile-ups hurt now and then.
    counted.sort_by_key(|finding| (std::cmp::Reverse(finding.severity), finding.rule != ROOM));
    for finding in counted {
        merged.add(finding);
    }
    // A full disk stays full, whichever finding has the change. Another disk is not concerned.
    let rules = merged.plan.rules.clone();
    let is_of_plan = |finding: &&Finding| rules.contains(&finding.rule);
    let is_of_its_disks = |full: &Finding| {
        let mut of_plan = findings.iter().filter(is_of_plan);
        let is_shared = |other: &Finding| full.devices.iter().any(|device| other.devices.contains(device));
        full.devices.is_empty() || of_plan.any(|other| other.devices.is_empty() || is_shared(other))
    };
    merged.plan.is_outrun = findings.iter().any(|finding| finding.is_outrun && is_of_its_disks(finding));
    merged.finish()
}

#[derive(Default)]
struct Merged {
    plan: Plan,
    /// Rule and value of each setting.
    settings: Vec<(String, String, &'static str)>,
    /// Thresholds in force, bytes, in the order of [`PAIRS`].
    in_force: [Option<u64>; 2],
}

impl Merged {
    fn add(&mut self, finding: &Finding) {
        let mut adds = false;
        for step in &finding.plan {
            // The merged plan writes this file itself, once.
            if step.write == SYSCTL_DROP_IN {
                continue;
            }
            if let Some(name) = step.sysctl() {
                if let Some(is_smaller) = self.joined(finding, &name, step) {
                    adds |= is_smaller;
                    continue;
                }
                let taken = self.settings.iter().find(|(other, _, _)| is_one_setting(other, &name));
                match taken.or_else(|| self.opposed(finding.rule, &name)) {
                    Some((other, value, _)) if *other == name && *value == step.value => continue,
                    Some((other, value, rule)) => {
                        self.plan.conflicts.push(format!(
                            "{} asks for {name}={}; {rule} needs {other}={value}, which is kept",
                            finding.rule, step.value
                        ));
                        continue;
                    }
                    None => self.settings.push((name, step.value.clone(), finding.rule)),
                }
            } else if self.plan.steps.iter().any(|known| known.command == step.command) {
                continue;
            }
            self.plan.steps.push(step.clone());
            adds = true;
        }
        if adds {
            if !self.plan.rules.contains(&finding.rule) {
                self.plan.rules.push(finding.rule);
            }
            self.plan.helps_in_part |= finding.helps_in_part;
            push_new(&mut self.plan.expect, &finding.brief.expect);
            let has = |when: When| finding.plan.iter().any(|step| step.when == when);
            if has(When::Later) && !has(When::Now) {
                push_new(&mut self.plan.expect_later, &finding.brief.expect);
            }
            push_new(&mut self.plan.costs, &finding.brief.costs);
        }
    }

    /// Joins the thresholds in bytes that one rule asks for on two devices. Where both are below the one in force, the smaller one serves
    /// both; where one is to be raised, it does not. Returns whether the new one is smaller, or `None` if they are not joined.
    fn joined(&mut self, finding: &Finding, name: &str, step: &Step) -> Option<bool> {
        let pair = PAIRS.iter().position(|pair| pair.contains(&name)).filter(|_| name.ends_with("_bytes"))?;
        let in_force = *self.in_force.get(pair)?;
        let is_known = |(other, _, by): &&mut (String, String, &str)| other == name && *by == finding.rule;
        let (_, value, _) = self.settings.iter_mut().find(is_known)?;
        let bytes = |text: &str| text.parse::<u64>().ok();
        let (new, known) = (bytes(&step.value)?, bytes(value)?);
        if new == known || in_force.is_none_or(|in_force| new.max(known) >= in_force) {
            return None;
        }
        let is_smaller = new < known;
        let on = if finding.devices.is_empty() { String::new() } else { format!(" on {}", finding.devices.join(", ")) };
        self.plan.conflicts.push(match is_smaller {
            true => format!("{}{on} needs {name}={new}, which is kept; {known} was asked for too", finding.rule),
            false => format!("{}{on} asks for {name}={new}; it needs {known} elsewhere, which is kept", finding.rule),
        });
        if is_smaller {
            value.clone_from(&step.value);
            let known =
                |known: &&mut Step| known.when == step.when && known.sysctl().is_some_and(|other| other == name);
            self.plan.steps.iter_mut().find(known)?.clone_from(step);
        }
        Some(is_smaller)
    }

    /// The setting of another rule that this setting would undo. A short age writes rewritten data as often as too
    /// small a threshold does, and thresholds are chosen together.
    fn opposed(&self, rule: &str, name: &str) -> Option<&(String, String, &'static str)> {
        let is_threshold = |name: &str| PAIRS.iter().any(|pair| pair.contains(&name));
        self.settings.iter().find(|(other, _, by)| {
            *by != rule && is_threshold(other) && (is_threshold(name) || (*by == ROOM && AGE.contains(&name)))
        })
    }

    fn finish(mut self) -> Option<Plan> {
        let plan = &mut self.plan;
        if plan.steps.is_empty() {
            return None;
        }
        let of = |when: When| plan.steps.iter().filter(move |step| step.when == when);
        let (sysctls, others): (Vec<&Step>, Vec<&Step>) = of(When::Now).partition(|step| step.sysctl().is_some());
        let assignments: Vec<String> = sysctls.iter().filter_map(|step| step.assignment()).collect();
        let mut now: Vec<String> = Vec::new();
        now.extend((!assignments.is_empty()).then(|| format!("sudo sysctl -w {}", assignments.join(" "))));
        now.extend(others.iter().flat_map(|step| as_root(&step.command)));
        // Undone in reverse order.
        let mut undo: Vec<String> = others.iter().rev().flat_map(|step| as_root(&step.undo)).collect();
        undo.extend(undo_sysctls(&sysctls));
        let mut keep: Vec<String> = of(When::Keep).flat_map(|step| as_root(&step.command)).collect();
        if !assignments.is_empty() {
            keep.push(format!("printf '%s\\n' {} | sudo tee -a {SYSCTL_DROP_IN}", assignments.join(" ")));
        }
        let removals: Vec<String> = assignments.iter().map(|line| removal(line)).collect();
        // `tee -a` makes one line of each. The file may hold lines of an earlier plan, which stay.
        let undo_keep = (!removals.is_empty()).then(|| format!("sudo sed -i {} {SYSCTL_DROP_IN}", removals.join(" ")));
        let guarded = guarded(of(When::Now));
        let later = of(When::Later).map(|step| step.command.trim_start_matches("# ").to_owned()).collect();
        (plan.now, plan.undo, plan.keep, plan.guarded, plan.later) = (now, undo, keep, guarded, later);
        plan.undo_keep = undo_keep.into_iter().collect();
        Some(self.plan)
    }
}

/// Names the file and the line that set each value of a plan at boot now, and which file wins at the next boot.
pub fn name_files(plan: &mut Plan, lines: &[SysctlLine]) {
    let settings = plan.steps.iter().filter(|step| step.when == When::Now).filter_map(Step::sysctl);
    let mut named: Vec<&SysctlLine> = Vec::new();
    for line in settings.filter_map(|name| line_in_force(lines, &name)) {
        if !named.contains(&line) {
            named.push(line);
        }
    }
    let base = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    plan.at_boot = named
        .into_iter()
        .filter(|line| line.file.as_bytes() != SYSCTL_DROP_IN.as_bytes())
        .map(|line| {
            let file = line.file.to_string();
            // Drop-ins are applied by name; sysctl.conf is applied behind them all.
            let wins = match file == "/etc/sysctl.conf" || base(&file) > base(SYSCTL_DROP_IN) {
                true => format!("It wins over {}: change that line.", base(SYSCTL_DROP_IN)),
                false => format!("{} is applied later and wins.", base(SYSCTL_DROP_IN)),
            };
            format!("{file} line {} sets {} = {} at boot. {wins}", line.line, line.key, line.value)
        })
        .collect();
}

fn push_new(lines: &mut Vec<String>, line: &str) {
    if !line.is_empty() && !lines.iter().any(|known| known == line) {
        lines.push(line.to_owned());
    }
}

/// Whether two names are one setting of the kernel: the same, or the two members of a bytes/ratio pair.
pub(crate) fn is_one_setting(one: &str, other: &str) -> bool {
    one == other || PAIRS.iter().any(|pair| pair.contains(&one) && pair.contains(&other))
}

/// Argument of `sed` that removes the line of a `NAME=VALUE` from a file in `sysctl.d`.
pub(crate) fn removal(assignment: &str) -> String {
    let (name, value) = assignment.split_once('=').unwrap_or((assignment, ""));
    format!("-e '/^{name} *= *{value}$/d'")
}

/// Whether a shell takes these bytes as one word, as they are.
pub(crate) fn is_shell_word(word: &[u8]) -> bool {
    !word.is_empty() && word.iter().all(|byte| byte.is_ascii_alphanumeric() || b"/._:=-".contains(byte))
}

/// The command of `floodline apply` that makes all of these steps; none if it cannot make one of them, or if a shell
/// would read the name of one differently.
fn guarded<'a>(steps: impl Iterator<Item = &'a Step>) -> Vec<String> {
    let command = |sets: &Vec<String>| format!("sudo floodline apply --set {} --persist --yes", sets.join(" --set "));
    let sets = settings(steps);
    Some(&sets).filter(|sets| !sets.is_empty()).map(command).into_iter().collect()
}

/// These steps as settings of `floodline apply`; none if it cannot make one of them, or if a shell would read the name of one
/// differently.
fn settings<'a>(steps: impl Iterator<Item = &'a Step>) -> Vec<String> {
    let sets: Option<Vec<String>> =
        steps.map(|step| knob_of(step).map(|(name, value)| format!("{name}={value}"))).collect();
    sets.filter(|sets| sets.iter().all(|set| is_shell_word(set.as_bytes()))).unwrap_or_default()
}

/// Takes the change of now out of a plan, as a candidate that has to be measured first. The steps stay, so that a twin can
/// make them.
pub fn set_aside(plan: &mut Plan, why: String) {
    let commands = std::mem::take(&mut plan.now);
    if commands.is_empty() {
        return;
    }
    let settings = settings(plan.steps.iter().filter(|step| step.when == When::Now));
    let undo = std::mem::take(&mut plan.undo);
    for block in [&mut plan.keep, &mut plan.undo_keep, &mut plan.guarded, &mut plan.at_boot] {
        block.clear();
    }
    let measure = measure(&settings);
    plan.candidate = Some(Candidate { commands, undo, settings, why, measure });
}

/// How to find out if a change helps: make and undo it in turns under a guard, or else compare recordings before and after it.
fn measure(settings: &[String]) -> Vec<String> {
    if !settings.is_empty() {
        return vec![format!("sudo floodline apply --set {} --yes --switchback 6x10m", settings.join(" --set "))];
    }
    let record = |file| format!("sudo floodline record --for 2m --trace on -o {file}");
    let compare = "floodline compare before.flr after.flr".to_owned();
    vec![record("before.flr"), "# make the change".to_owned(), record("after.flr"), compare]
}

/// Undoes in one command what one command set, where each is a plain assignment.
fn undo_sysctls(steps: &[&Step]) -> Vec<String> {
    let mut plain = Vec::new();
    let mut rest = Vec::new();
    for step in steps.iter().rev() {
        match step.undo.strip_prefix("sysctl -w ").filter(|undo| !undo.contains(['&', ';', ' '])) {
            Some(assignment) => plain.push(assignment.to_owned()),
            None => rest.extend(as_root(&step.undo)),
        }
    }
    plain.reverse();
    let mut undo = rest;
    undo.extend((!plain.is_empty()).then(|| format!("sudo sysctl -w {}", plain.join(" "))));
    undo
}

/// The commands for a shell that is not root's, one for each part of a chain. The shell of the caller would open a
/// redirection, so that `tee` writes the file.
pub fn as_root(command: &str) -> Vec<String> {
    if command.starts_with("# ") || command.starts_with("note ") || command == "none needed" {
        return vec![command.to_owned()];
    }
    let part = |part: &str| match (part.split_once(" >> "), part.split_once(" > ")) {
        (Some((words, file)), _) => format!("{words} | sudo tee -a {file}"),
        (None, Some((words, file))) => format!("{words} | sudo tee {file}"),
        (None, None) => format!("sudo {part}"),
    };
    command.split(" && ").map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advise::step::{journald_volatile, sysctls};
    use crate::report::Brief;
    use floodline_testkit::{Fixture, mib_pages};

    fn window() -> Window {
        Fixture::healthy().settings((20, 0, 10, 0)).one_look().window()
    }

    fn finding(rule: &'static str, severity: Severity, plan: Vec<Step>) -> Finding {
        let brief = Brief { expect: format!("{rule} goes."), ..Brief::default() };
        Finding { rule, severity, plan, brief, ..Finding::default() }
    }

    #[test]
    fn two_findings_write_each_setting_and_the_file_once() {
        let window = window();
        let one = finding("one", Severity::Critical, sysctls(&window, &[("vm.dirty_bytes", 1 << 27)]));
        let other = finding(
            "other",
            Severity::Warning,
            sysctls(&window, &[("vm.dirty_bytes", 1 << 27), ("vm.dirty_expire_centisecs", 500)]),
        );
        let plan = merge(&[one, other]).unwrap();
        assert_eq!(plan.now, ["sudo sysctl -w vm.dirty_bytes=134217728 vm.dirty_expire_centisecs=500"]);
        assert_eq!(plan.undo, ["sudo sysctl -w vm.dirty_ratio=20 vm.dirty_expire_centisecs=3000"]);
        assert_eq!(
            plan.keep,
            ["printf '%s\\n' vm.dirty_bytes=134217728 vm.dirty_expire_centisecs=500 | \
              sudo tee -a /etc/sysctl.d/99-zz-floodline.conf"]
        );
        assert_eq!(
            plan.undo_keep,
            ["sudo sed -i -e '/^vm.dirty_bytes *= *134217728$/d' -e '/^vm.dirty_expire_centisecs *= *500$/d' \
              /etc/sysctl.d/99-zz-floodline.conf"]
        );
        assert_eq!((plan.conflicts.len(), plan.rules.as_slice()), (0, ["one", "other"].as_slice()));
    }

    #[test]
    fn the_file_that_sets_a_value_at_boot_is_named_and_which_one_wins() {
        let window = window();
        let steps = sysctls(&window, &[("vm.dirty_bytes", 1 << 27), ("vm.dirty_background_bytes", 1 << 25)]);
        let mut plan = merge(&[finding("one", Severity::Critical, steps)]).unwrap();
        let line = |file: &str, line, key: &str, value: &str| SysctlLine {
            file: file.into(),
            line,
            key: key.into(),
            value: value.into(),
        };
        let lines = [
            line("/usr/lib/sysctl.d/10-a.conf", 1, "vm.dirty_ratio", "40"),
            line("/etc/sysctl.d/50-local.conf", 7, "vm.dirty_background_ratio", "5"),
            line("/etc/sysctl.d/99-sysctl.conf", 12, "vm.dirty_ratio", "20"),
            line("/etc/sysctl.d/99-sysctl.conf", 13, "vm.laptop_mode", "0"),
        ];
        let mut named = |lines: &[SysctlLine]| {
            name_files(&mut plan, lines);
            plan.at_boot.sort();
            plan.at_boot.clone()
        };
        let of_host = "/etc/sysctl.d/50-local.conf line 7 sets vm.dirty_background_ratio = 5 at boot. \
                       99-zz-floodline.conf is applied later and wins.";
        let of_distribution = "/etc/sysctl.d/99-sysctl.conf line 12 sets vm.dirty_ratio = 20 at boot. \
                               99-zz-floodline.conf is applied later and wins.";
        assert_eq!(named(&lines), [of_host, of_distribution]);
        let by_hand = "/etc/sysctl.conf line 3 sets vm.dirty_ratio = 20 at boot. It wins over 99-zz-floodline.conf: \
                       change that line.";
        assert_eq!(named(&[line("/etc/sysctl.conf", 3, "vm.dirty_ratio", "20")]), [by_hand]);
        let later = "/etc/sysctl.d/99-zzz.conf line 1 sets vm.dirty_bytes = 65536 at boot. It wins over \
                     99-zz-floodline.conf: change that line.";
        let in_later = |line_number, value| line("/etc/sysctl.d/99-zzz.conf", line_number, "vm.dirty_bytes", value);
        assert_eq!(named(&[in_later(1, "65536")]), [later]);
        assert_eq!(named(&[in_later(1, "65536"), in_later(2, "1")]), [later], "the kernel refuses a byte");
        name_files(&mut plan, &[line(SYSCTL_DROP_IN, 1, "vm.dirty_bytes", "134217728")]);
        assert!(plan.at_boot.is_empty(), "it is the file of the plan itself");
    }

    #[test]
    fn lower_thresholds_of_one_rule_for_two_disks_are_joined_into_the_one_that_serves_both() {
        let with = |hard: f64| {
            let host = Fixture::healthy().settings((20, 0, 10, 0)).host(move |_, row| {
                row.nr_dirty_threshold = Some(mib_pages(hard));
                row.nr_dirty_background_threshold = Some(mib_pages(hard / 2.0));
            });
            host.one_look().window()
        };
        let window = with(1024.0);
        let of = |(disk, background): (&str, u64)| {
            let pair = [("vm.dirty_background_bytes", background), ("vm.dirty_bytes", 4 * background)];
            let devices = vec![disk.to_owned()];
            Finding { devices, ..finding("dirty-cliff", Severity::Critical, sysctls(&window, &pair)) }
        };
        let (small, large) = (("sda", 1 << 25), ("sdb", 1 << 26));
        for ([one, other], told) in [
            (
                [small, large],
                "dirty-cliff on sdb asks for vm.dirty_bytes=268435456; it needs 134217728 elsewhere, which is kept",
            ),
            (
                [large, small],
                "dirty-cliff on sda needs vm.dirty_bytes=134217728, which is kept; 268435456 was asked for too",
            ),
        ] {
            let plan = merge_for(&window, &[of(one), of(other)]).unwrap();
            assert_eq!(plan.now, ["sudo sysctl -w vm.dirty_background_bytes=33554432 vm.dirty_bytes=134217728"]);
            assert_eq!((plan.conflicts.len(), plan.rules.as_slice()), (2, ["dirty-cliff"].as_slice()));
            assert_eq!(plan.conflicts[1], told);
            assert_eq!(plan.steps.iter().filter(|step| step.sysctl().is_some()).count(), 2);
        }
        // What is to be raised does not become smaller for a second disk.
        for window in [with(64.0), Window::default()] {
            let plan = merge_for(&window, &[of(large), of(small)]).unwrap();
            assert_eq!(plan.now, ["sudo sysctl -w vm.dirty_background_bytes=67108864 vm.dirty_bytes=268435456"]);
            assert_eq!(plan.conflicts.len(), 2, "{:?}", plan.conflicts);
        }
    }

    #[test]
    fn the_worse_finding_decides_and_the_conflict_is_named() {
        let window = window();
        let one = finding("one", Severity::Critical, sysctls(&window, &[("vm.dirty_ratio", 10)]));
        let other = finding("other", Severity::Warning, sysctls(&window, &[("vm.dirty_bytes", 1 << 26)]));
        let plan = merge(&[one, other]).unwrap();
        assert_eq!(plan.now, ["sudo sysctl -w vm.dirty_ratio=10"]);
        assert_eq!(
            plan.conflicts,
            ["other asks for vm.dirty_bytes=67108864; one needs vm.dirty_ratio=10, which is kept"]
        );
        assert_eq!(plan.expect, ["one goes."]);
    }

    #[test]
    fn a_change_that_is_set_aside_is_no_command_of_now_and_says_how_to_measure_it() {
        let steps = sysctls(&window(), &[("vm.dirty_bytes", 1 << 27)]);
        let mut plan = merge(&[finding("one", Severity::Critical, steps)]).unwrap();
        let before = plan.clone();
        set_aside(&mut plan, "it was not tried".to_owned());
        let blocks = [&plan.now, &plan.undo, &plan.keep, &plan.undo_keep, &plan.guarded, &plan.at_boot];
        assert!(blocks.into_iter().all(Vec::is_empty), "{plan:?}");
        assert_eq!(plan.steps, before.steps);
        let candidate = plan.candidate.clone().unwrap();
        assert_eq!((&candidate.commands, &candidate.undo), (&before.now, &before.undo));
        assert_eq!(candidate.settings, ["vm.dirty_bytes=134217728"]);
        let turns = "sudo floodline apply --set vm.dirty_bytes=134217728 --yes --switchback 6x10m";
        assert_eq!(candidate.measure, [turns]);
        // A second reason does not replace the first one.
        set_aside(&mut plan, "again".to_owned());
        assert_eq!(plan.candidate, Some(candidate));
    }

    #[test]
    fn a_change_that_apply_cannot_make_is_measured_by_recordings() {
        let told = measure(&[]);
        assert_eq!(told.last().map(String::as_str), Some("floodline compare before.flr after.flr"));
    }

    #[test]
    fn what_is_rewritten_gets_its_room_and_no_short_age_undoes_it() {
        let window = window();
        let cliff = finding("dirty-cliff", Severity::Critical, sysctls(&window, &[("vm.dirty_bytes", 1 << 27)]));
        let starved = finding(ROOM, Severity::Critical, sysctls(&window, &[("vm.dirty_ratio", 30)]));
        let age = finding("other", Severity::Warning, sysctls(&window, &[("vm.dirty_expire_centisecs", 300)]));
        let plan = merge(&[cliff, starved, age]).unwrap();
        assert_eq!(plan.now, ["sudo sysctl -w vm.dirty_ratio=30"]);
        assert_eq!(plan.conflicts.len(), 2, "{:?}", plan.conflicts);
    }

    #[test]
    fn no_plan_of_an_incident_has_a_value_that_is_in_force() {
        use crate::advise::knob::KNOBS;
        for incident in floodline_testkit::incidents::INCIDENTS {
            let window = (incident.make)().window();
            let Some(plan) = crate::diagnose::diagnose(&window, None).plan else { continue };
            for step in &plan.steps {
                let Some(knob) = KNOBS.iter().find(|knob| knob.path == step.write) else { continue };
                let present = knob.present(&window).map(|value| value.to_string());
                assert_ne!(present.as_deref(), Some(step.value.as_str()), "{}: {step:?}", incident.name);
            }
        }
    }

    #[test]
    fn what_another_finding_explains_or_does_not_hurt_adds_nothing() {
        let window = window();
        let cause = finding("cause", Severity::Warning, vec![journald_volatile()]);
        let mut symptom = finding("symptom", Severity::Warning, sysctls(&window, &[("vm.dirty_ratio", 5)]));
        symptom.explained_by = Some("cause");
        let aside = finding("aside", Severity::Info, sysctls(&window, &[("vm.dirty_expire_centisecs", 500)]));
        let plan = merge(&[cause, symptom, aside.clone()]).unwrap();
        assert_eq!(plan.rules, ["cause"]);
        assert_eq!(plan.now.len(), 3, "{plan:?}");
        assert_eq!(merge(&[aside]).map(|plan| plan.now.len()), Some(1), "alone it is a plan");
        assert_eq!(merge(&[]), None);
    }

    #[test]
    fn a_plan_that_apply_can_make_has_one_guarded_command() {
        let guarded = |steps: Vec<Step>| merge(&[finding("a", Severity::Critical, steps)]).unwrap().guarded;
        let window = window();
        let pair = sysctls(&window, &[("vm.dirty_background_bytes", 1 << 25), ("vm.dirty_bytes", 1 << 27)]);
        assert_eq!(
            guarded(pair.clone()),
            [
                "sudo floodline apply --set vm.dirty_background_bytes=33554432 --set vm.dirty_bytes=134217728 --persist --yes"
            ]
        );
        assert_eq!(
            guarded(vec![journald_volatile()]),
            ["sudo floodline apply --set journald/Storage=volatile --persist --yes"]
        );
        // The name of a container is untrusted.
        let hostile = Step {
            write: "/sys/fs/cgroup/a;reboot/memory.high".to_owned(),
            value: "max".to_owned(),
            ..journald_volatile()
        };
        assert!(guarded(vec![hostile]).is_empty());
        // Half a change would be a different change.
        let by_hand = Step { write: "/dev/x".to_owned(), ..journald_volatile() };
        assert!(guarded([pair, vec![by_hand]].concat()).is_empty());
    }

    #[test]
    fn a_disk_that_programs_outrun_is_known_to_the_plan_of_another_finding() {
        let steps = sysctls(&window(), &[("vm.dirty_bytes", 1 << 27)]);
        let full = Finding { is_outrun: true, ..finding("full", Severity::Critical, Vec::new()) };
        let cliff = finding("cliff", Severity::Warning, steps);
        assert!(merge(&[full.clone(), cliff.clone()]).unwrap().is_outrun);
        let on = |finding: &Finding, disk: &str| Finding { devices: vec![disk.to_owned()], ..finding.clone() };
        assert!(merge(&[on(&full, "sda"), on(&cliff, "sda")]).unwrap().is_outrun);
        assert!(!merge(&[on(&full, "sda"), on(&cliff, "sdb")]).unwrap().is_outrun, "another disk");
        assert!(!merge(&[cliff]).unwrap().is_outrun);
    }

    #[test]
    fn a_redirection_is_opened_by_root() {
        assert_eq!(as_root("sysctl -w a=1"), ["sudo sysctl -w a=1"]);
        assert_eq!(as_root("echo 0 > /sys/x"), ["echo 0 | sudo tee /sys/x"]);
        assert_eq!(as_root("echo a=0 >> /etc/x"), ["echo a=0 | sudo tee -a /etc/x"]);
        assert_eq!(as_root("rm /x && systemctl restart y"), ["sudo rm /x", "sudo systemctl restart y"]);
        assert_eq!(as_root("# reboot"), ["# reboot"]);
    }
}
