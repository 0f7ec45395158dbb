// SPDX-License-Identifier: MIT OR Apache-2.0
//! A twin as a scenario file: each key has a comment with its source, once for all steps of a task.

use crate::{Provenance, Twin, TwinError};
use floodline_record::name::harmless;
use floodline_scenario::Scenario;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The twin as a scenario file.
///
/// # Errors
///
/// Those of [`scenario_to_toml`].
pub fn to_toml(twin: &Twin) -> Result<String, TwinError> {
    scenario_to_toml(twin, &twin.scenario)
}

/// One of the scenarios of a twin as a file.
///
/// # Errors
///
/// The file is larger than a scenario may be. The scenario has no TOML form, which is a bug.
pub fn scenario_to_toml(twin: &Twin, scenario: &Scenario) -> Result<String, TwinError> {
    let plain = scenario.to_toml().map_err(|error| TwinError::Invalid(error.to_string()))?;
    let mut known: BTreeMap<String, &Provenance> = BTreeMap::new();
    for provenance in &twin.provenance {
        known.entry(normal(&provenance.key)).or_insert(provenance);
    }
    let mut text = format!(
        "# Made by floodline twin from a recording of {:.0} s.\n# Kernel of the host: {}. Run it with: floodline simulate FILE --kernel {}\n",
        twin.seconds, twin.kernel, twin.kernel
    );
    for said in &twin.unknown {
        let _ = writeln!(text, "# Not known: {}", harmless(said));
    }
    for said in &twin.simplified {
        let _ = writeln!(text, "# Simplified by the model: {}", harmless(said));
    }
    text.push('\n');
    let mut table = String::new();
    for line in plain.lines() {
        let key = match (line.strip_prefix('['), line.split_once(" = ")) {
            (Some(_), _) => {
                table = normal(line.trim_matches(['[', ']']));
                Some(table.clone())
            }
            (None, Some((key, _))) if !line.starts_with([' ', '#', '"', ']', '}']) => Some(join(&table, key)),
            _ => None,
        };
        if let Some(provenance) = key.and_then(|key| known.remove(&key)) {
            let _ = writeln!(text, "# {}: {}", provenance.origin.name(), harmless(&provenance.text));
        }
        let _ = writeln!(text, "{line}");
    }
    TwinError::fitting(text)
}

fn join(table: &str, key: &str) -> String {
    if table.is_empty() { normal(key) } else { format!("{table}.{}", normal(key)) }
}

/// A key without quotes and without the branches between a task and its steps, so that a note on all writes of a task
/// is found at each of them.
fn normal(key: &str) -> String {
    let plain: String = key.chars().filter(|c| *c != '"').collect();
    plain.replace("steps.parallel.branches", "steps")
}
