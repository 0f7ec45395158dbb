// SPDX-License-Identifier: MIT OR Apache-2.0
//! A rule to copy: the smallest that is whole. It is compiled and tested, and not in the catalogue. A real one has its
//! manual page in `rules/<name>.md` and two lines in `rules/mod.rs`.

use crate::diagnose::derived::Derived;
use crate::diagnose::{Rule, Verdict};
use crate::report::{Brief, Evidence, Finding, Severity};
use floodline_record::gap::Source;
use floodline_record::human;

/// The rule and its manual page.
const RULE: Rule = Rule {
    name: "blocked-tasks",
    summary: "Many tasks wait for I/O at the same moment",
    manual: "## What it means\n\n## Evidence\n\n## Why it happens\n\n## What to do\n\n## Kernel references\n",
    explains: &[],
    check,
};

/// Tasks in an uninterruptible sleep from which people notice.
const MANY: u64 = 10;

fn check(derived: &Derived<'_>) -> Verdict {
    // A reading that is missing is never zero: the rule says what it lacks.
    let Some(blocked) = derived.window.host.max.procs_blocked else {
        return derived.not_checked(Source::Stat, "procs_blocked");
    };
    if blocked.0 < MANY {
        let tasks = human::plural(blocked.0, "task", "tasks");
        // Half a sentence that is literally true of every sample.
        return Verdict::Clear(format!("at most {tasks} waited for I/O in a sample"));
    }
    Verdict::Found(vec![Finding {
        rule: RULE.name,
        severity: Severity::Info,
        summary: format!("{} tasks waited for I/O at the same moment.", blocked.0),
        evidence: vec![
            Evidence::count("Tasks blocked, most in a sample", blocked.0, "/proc/stat procs_blocked")
                .against(MANY as f64),
        ],
        cause: "More tasks ask for I/O than the disk serves.".to_owned(),
        brief: Brief {
            because: "More tasks ask for I/O than the disk serves.".to_owned(),
            who: String::new(),
            expect: "Let fewer tasks write at once.".to_owned(),
            costs: String::new(),
        },
        trade_off: String::new(),
        ..Finding::default()
    }])
}

mod tests {
    use super::RULE;
    use crate::diagnose::check_rule;
    use floodline_record::units::Count;
    use floodline_testkit::Fixture;

    #[test]
    fn it_fires_it_clears_a_near_miss_and_it_says_what_it_lacks() {
        let blocked = |tasks| Fixture::healthy().host(move |_, row| row.procs_blocked = tasks);
        check_rule(&RULE, &blocked(Some(Count(10))), "info: 10 tasks waited");
        check_rule(&RULE, &blocked(Some(Count(9))), "clear: at most 9 tasks waited");
        check_rule(&RULE, &blocked(None), "not checked: /proc/stat");
    }
}
