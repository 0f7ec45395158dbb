// SPDX-License-Identifier: MIT OR Apache-2.0
//! `floodline explain [RULE]`: the manual page of a rule, or the list of all.

use super::Run;
use crate::console::Console;
use crate::error::CliError;
use crate::exit::Exit;
use floodline_core::diagnose::rules::RULES;
use floodline_core::diagnose::{Rule, rule};
use floodline_view::doctor::Options;
use floodline_view::explain;

/// Print the manual page of a rule, or list the rules
#[derive(clap::Parser)]
#[command(name = "explain", after_help = "Example: floodline explain dirty-cliff")]
pub(crate) struct Explain {
    /// Rule, as a finding of floodline doctor names it
    rule: Option<String>,
}

impl Run for Explain {
    fn run(self, console: &mut Console) -> Result<Exit, CliError> {
        let options = Options { width: console.width(), color: console.is_colored() };
        let text = match self.rule {
            Some(name) => explain::page(named(&name)?, options),
            None => explain::list(RULES, options),
        };
        console.print(&text)?;
        Ok(Exit::Done)
    }
}

/// The rule of a name, or an error that says which was meant.
pub(super) fn named(name: &str) -> Result<&'static Rule, CliError> {
    rule(name).ok_or_else(|| {
        let error = CliError::usage(format!("there is no rule {:?}", floodline_core::name::Name::from(name)));
        match nearest(name) {
            Some(rule) => error.hint(format!("did you mean {}?", rule.name)),
            None => error.hint("floodline explain lists them"),
        }
    })
}

fn nearest(name: &str) -> Option<&'static Rule> {
    let distance = |rule: &&Rule| edits(name, rule.name);
    let part = RULES.iter().find(|rule| name.len() >= 4 && rule.name.contains(name));
    part.or_else(|| RULES.iter().min_by_key(distance).filter(|rule| distance(rule) <= rule.name.len() / 3))
}

/// Insertions, deletions and substitutions that make one word of another.
fn edits(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, byte) in one.bytes().enumerate().take(100) {
        let mut corner = std::mem::replace(&mut row[0], at + 1);
        for (column, wanted) in other.bytes().enumerate() {
            let replaced = corner + usize::from(byte != wanted);
            corner = row[column + 1];
            row[column + 1] = replaced.min(corner + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_counted() {
        let check = |one: &str, other: &str, expect: usize| assert_eq!(edits(one, other), expect, "{one} {other}");
        check("", "abc", 3);
        check("abc", "abc", 0);
        check("dirty-clif", "dirty-cliff", 1);
        check("kitten", "sitting", 3);
    }

    #[test]
    fn a_typo_finds_the_rule_that_was_meant() {
        let check =
            |name: &str, expect: Option<&str>| assert_eq!(nearest(name).map(|rule| rule.name), expect, "{name}");
        check("dirty-clif", Some("dirty-cliff"));
        check("cliff", Some("dirty-cliff"));
        check("qqqqqqq", None);
    }
}
