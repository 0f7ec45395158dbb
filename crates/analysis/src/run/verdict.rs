// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether the findings of a machine are right: the true cause first, no false alarm. Stricter than
//! [`misses`](super::misses), which holds a run against everything that its scenario expects.

use crate::report::{Finding, Severity};
use floodline_scenario::Expect;

/// Whether the machine is sick in any way.
pub fn is_sick(expect: &Expect) -> bool {
    expect.found.as_ref().is_some_and(|found| !found.is_empty())
}

/// Mistakes in the findings of a machine; empty if there are none. `or` is a rule that may come first as well as the
/// first one of `expect`.
pub fn wrong(expect: &Expect, or: Option<&str>, findings: &[Finding]) -> Vec<String> {
    let mut wrong = Vec::new();
    let found: Vec<&str> = expect.found.iter().flatten().map(String::as_str).collect();
    let place = |rule: &str| findings.iter().position(|finding| finding.rule == rule);
    let is_other_first = or.is_some_and(|or| findings.first().is_some_and(|finding| finding.rule == or));
    if let Some(first) = found.first().map(|first| or.filter(|_| is_other_first).unwrap_or(first)) {
        // A harmless condition may be found as an info; a disease needs a warning.
        let may_be_info = expect.quiet_from == Some(Severity::Warning);
        match place(first) {
            Some(0) if may_be_info || findings[0].severity >= Severity::Warning => {}
            Some(0) => wrong.push("only an info".to_owned()),
            Some(_) => wrong.push("not first".to_owned()),
            None => wrong.push("not found".to_owned()),
        }
    }
    wrong.extend(found.iter().skip(1).filter(|rule| place(rule).is_none()).map(|rule| format!("{rule} not found")));
    let loud = |finding: &&Finding| {
        let is_expected = found.contains(&finding.rule) || or == Some(finding.rule);
        let is_forbidden = expect.not_found.iter().flatten().any(|rule| rule == finding.rule);
        let limit = expect.quiet_from.unwrap_or(Severity::Critical);
        !is_expected
            && (is_forbidden && finding.severity >= Severity::Warning
                || expect.quiet_from.is_some() && finding.severity >= limit)
    };
    let alarms = findings.iter().filter(loud);
    wrong.extend(alarms.map(|finding| format!("false {} ({})", finding.rule, finding.severity.name())));
    wrong
}
