// SPDX-License-Identifier: MIT OR Apache-2.0
//! `floodline explain [RULE]`: the manual page of a rule, or the list of all.

use super::Run;
use crate::console::Console;
use crate::error::CliError;
use crate::exit::Exit;
use floodline_analysis::diagnose::rules::RULES;
use floodline_analysis::diagnose::{Rule, rule};
use floodline_record::nearest::nearest;
use floodline_view::doctor::Options;
use floodline_view::explain;

/// Print the manual page of a rule, or list the rules
#[derive(clap::Parser)]
#[command(name = "explain", after_help = "Example: floodline explain dirty-cliff")]
pub(crate) struct Explain {
    /// Rule name, as in a finding of floodline doctor
    rule: Option<String>,
}

impl Run for Explain {
    fn run(self, console: &mut Console) -> Result<Exit, CliError> {
        let options = Options { width: console.width(), color: console.is_colored(), ..Options::default() };
        let text = match self.rule {
            Some(name) => explain::page(named(&name)?, options),
            None => explain::list(RULES, options),
        };
        console.print(&text)?;
        Ok(Exit::Done)
    }
}

/// Returns the rule of a name, or an error that suggests the closest one.
pub(super) fn named(name: &str) -> Result<&'static Rule, CliError> {
    rule(name).ok_or_else(|| {
        let error = CliError::usage(format!("unknown rule {:?}", floodline_record::name::Name::from(name)));
        match meant(name) {
            Some(rule) => error.hint(format!("did you mean {}?", rule.name)),
            None => error.hint("floodline explain lists the rules"),
        }
    })
}

/// The rule whose name has this in it, or is spelled almost like it.
fn meant(name: &str) -> Option<&'static Rule> {
    let part = RULES.iter().find(|rule| name.len() >= 4 && rule.name.contains(name));
    part.or_else(|| rule(nearest(name, RULES.iter().map(|rule| rule.name))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_finds_the_rule_that_was_meant() {
        let check = |name: &str, expect: Option<&str>| assert_eq!(meant(name).map(|rule| rule.name), expect, "{name}");
        check("dirty-clif", Some("dirty-cliff"));
        check("cliff", Some("dirty-cliff"));
        check("qqqqqqq", None);
    }
}
