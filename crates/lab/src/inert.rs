// SPDX-License-Identifier: MIT OR Apache-2.0
//! No scenario names a path of the host, a program of the host or an option of one. A strange text is put at every
//! place of the language where a text can be, names of tables included: either the file is refused, or the host does
//! nothing for the scenario that it would not do without that text.

use crate::qemu::{Accel, Disk, Throttle};
use crate::run::{disks, machine, wanted_modules, wanted_programs};
use crate::{programs, tool};
use floodline_scenario::{Scenario, ScenarioFile, schema};
use proptest::prelude::*;
use serde_json::Value as Json;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::LazyLock;
use toml::{Table, Value};

const BASE: &str = include_str!("inert.toml");

/// Texts that a path, an option or a line would be made of.
const STRANGE: &[&str] = &[
    "",
    "-F",
    "--help",
    "/",
    "/etc/shadow",
    "..",
    "../../etc/shadow",
    "/data/../etc/shadow",
    "a,file=/etc/shadow",
    "a\nb",
    "a\0b",
    "\u{1b}[2J",
];

/// Where a text is: a key of a table, or an item of a list.
#[derive(Clone, Debug)]
enum Part {
    Key(String),
    Item(usize),
}

/// A place of a text: the way to it, and whether it is the name of the last table instead of a value.
#[derive(Clone, Debug)]
struct Spot {
    way: Vec<Part>,
    is_name: bool,
}

fn spots(value: &Value, way: &mut Vec<Part>, found: &mut Vec<Spot>) {
    match value {
        Value::String(_) => found.push(Spot { way: way.clone(), is_name: false }),
        Value::Table(table) => {
            for (key, inner) in table {
                way.push(Part::Key(key.clone()));
                found.push(Spot { way: way.clone(), is_name: true });
                spots(inner, way, found);
                way.pop();
            }
        }
        Value::Array(items) => {
            for (index, inner) in items.iter().enumerate() {
                way.push(Part::Item(index));
                spots(inner, way, found);
                way.pop();
            }
        }
        _ => {}
    }
}

fn put(value: &mut Value, spot: &Spot, text: &str) -> Option<()> {
    let (last, above) = spot.way.split_last()?;
    let mut here = value;
    for part in above {
        here = match part {
            Part::Key(key) => here.get_mut(key)?,
            Part::Item(index) => here.get_mut(*index)?,
        };
    }
    match (last, here) {
        (Part::Key(key), Value::Table(table)) if spot.is_name => {
            let inner = table.remove(key)?;
            table.insert(text.to_owned(), inner);
        }
        (Part::Key(key), Value::Table(table)) => {
            table.insert(key.clone(), Value::String(text.to_owned()));
        }
        (Part::Item(index), Value::Array(items)) => *items.get_mut(*index)? = Value::String(text.to_owned()),
        _ => return None,
    }
    Some(())
}

/// All that the host makes of a scenario: QEMU's command line, programs and modules of the image, packages that
/// apt is asked for, and what a recording is called.
fn host_does(scenario: &Scenario, variant: &str) -> Vec<String> {
    let dir = Path::new("/run-of-the-lab");
    let (mut disks, serials) = disks(scenario, dir);
    let packages = programs::packages(scenario);
    disks.push(Disk { path: "/p".into(), serial: "programs".into(), throttle: Throttle::default(), read_only: true });
    let vm = machine(scenario, "vmlinuz".as_ref(), dir, disks, Accel::Tcg, None);
    let command = vm.command();
    let mut does: Vec<String> = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    does.push(format!("environment {:?}", command.get_envs().collect::<Vec<_>>()));
    does.extend(serials.into_values());
    does.extend(packages);
    does.extend(
        wanted_programs(scenario).into_iter().map(|program| format!("{program} {:?}", tool::path_of(&program))),
    );
    does.extend(wanted_modules(scenario, true).into_iter().map(str::to_owned));
    does.push(format!("{}.{variant}", scenario.name));
    does
}

fn parse(tree: &Value) -> Option<ScenarioFile> {
    let text = toml::to_string(tree).ok()?;
    ScenarioFile::parse(&text).ok()
}

fn all_does(file: &ScenarioFile) -> BTreeSet<String> {
    file.variants.iter().flat_map(|(variant, scenario)| host_does(scenario, variant)).collect()
}

struct Prepared {
    tree: Value,
    spots: Vec<Spot>,
    does: BTreeSet<String>,
}

fn prepared() -> Prepared {
    let tree = Value::Table(BASE.parse::<Table>().unwrap());
    let file = ScenarioFile::parse(BASE).unwrap_or_else(|error| panic!("{error}"));
    let mut found = Vec::new();
    spots(&tree, &mut Vec::new(), &mut found);
    Prepared { does: all_does(&file), spots: found, tree }
}

/// Whether a text at a place is refused or changes nothing; what it would do, if not.
fn is_inert(prepared: &Prepared, spot: &Spot, text: &str) -> Result<(), String> {
    let mut tree = prepared.tree.clone();
    put(&mut tree, spot, text).unwrap();
    let Some(file) = parse(&tree) else { return Ok(()) };
    let does = all_does(&file);
    // A name that is one may be another; it still is none of the strange.
    let is_word = |text: &str| {
        text.starts_with(|first: char| first.is_ascii_alphanumeric())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
            && !text.contains("..")
    };
    // It may do less, where a text is needed for something and does not serve.
    match does.iter().find(|does| !prepared.does.contains(*does)) {
        Some(does) if !is_word(text) => Err(format!("{text:?} at {spot:?}: {does:?}")),
        _ => Ok(()),
    }
}

#[test]
fn no_strange_text_at_any_place_reaches_the_host() {
    let prepared = prepared();
    assert!(prepared.spots.len() > 300, "{}", prepared.spots.len());
    for spot in &prepared.spots {
        for text in STRANGE {
            is_inert(&prepared, spot, text).unwrap();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, ..ProptestConfig::default() })]
    #[test]
    fn no_text_at_any_place_reaches_the_host(
        at in any::<prop::sample::Index>(),
        text in "(-{0,2}|/|\\.\\./|/data/|\\n|\\x00)(\\PC|[-/.,= \\n\\x00]){0,12}",
    ) {
        static PREPARED: LazyLock<Prepared> = LazyLock::new(prepared);
        let prepared = &*PREPARED;
        let told = is_inert(prepared, at.get(&prepared.spots), &text);
        prop_assert!(told.is_ok(), "{told:?}");
    }
}

/// Patterns of the places where the language has texts and names: `machine.mounts.*.type`, `step.note.text`.
fn of_schema(root: &Json, here: &Json, pattern: &str, above: &[&str], found: &mut BTreeSet<String>) {
    let is_text =
        |kind: &Json| kind == "string" || kind.as_array().is_some_and(|kinds| kinds.contains(&"string".into()));
    if here.get("type").is_some_and(is_text) && here.get("enum").is_none() && here.get("const").is_none() {
        found.insert(pattern.to_owned());
    }
    if let Some(target) = here.get("$ref").and_then(Json::as_str) {
        let pattern = if target == "#/$defs/Step" { "step" } else { pattern };
        // Steps are within steps, and expectations within expectations.
        if !above.contains(&target) {
            of_schema(root, root.pointer(&target[1..]).unwrap(), pattern, &[above, &[target]].concat(), found);
        }
    }
    for (key, inner) in here.as_object().into_iter().flatten() {
        match (key.as_str(), inner) {
            ("properties", Json::Object(properties)) => {
                for (name, inner) in properties {
                    of_schema(root, inner, &format!("{pattern}.{name}"), above, found);
                }
            }
            ("additionalProperties", Json::Object(_)) => {
                found.insert(format!("{pattern}.*"));
                of_schema(root, inner, &format!("{pattern}.*"), above, found);
            }
            ("items", inner) => of_schema(root, inner, pattern, above, found),
            ("oneOf" | "anyOf" | "allOf", Json::Array(several)) => {
                several.iter().for_each(|inner| of_schema(root, inner, pattern, above, found));
            }
            _ => {}
        }
    }
}

/// The same of a file, as far as it has them.
fn of_file(value: &Value, pattern: &str, known: &BTreeSet<String>, found: &mut BTreeSet<String>) {
    match value {
        Value::Table(table) => {
            for (key, inner) in table {
                let named = format!("{pattern}.*");
                let is_name = known.contains(&named);
                if is_name {
                    found.insert(named.clone());
                }
                of_file(inner, &if is_name { named } else { format!("{pattern}.{key}") }, known, found);
            }
        }
        Value::Array(items) => {
            let is_steps = [".steps", ".setup", ".branches"].iter().any(|list| pattern.ends_with(list));
            items.iter().for_each(|inner| of_file(inner, if is_steps { "step" } else { pattern }, known, found));
        }
        Value::String(_) => {
            found.insert(pattern.to_owned());
        }
        _ => {}
    }
}

#[test]
fn the_file_of_this_test_has_every_text_of_the_language() {
    let schema = schema();
    let mut known = BTreeSet::new();
    of_schema(&schema, &schema, "", &[], &mut known);
    // Variants have the keys of the file, which are there.
    known.retain(|pattern| !pattern.starts_with(".variants.*."));
    let mut found = BTreeSet::new();
    of_file(&prepared().tree, "", &known, &mut found);
    // Below a kernel is an expectation once more, and a step's limits are those of a cgroup.
    let is_again =
        |pattern: &&String| pattern.starts_with(".expect.kernels.*.") || pattern.starts_with("step.set_limits.limits.");
    let missing: Vec<&String> = known.difference(&found).filter(|pattern| !is_again(pattern)).collect();
    assert!(known.len() > 100, "{}", known.len());
    assert!(missing.is_empty(), "add to inert.toml: {missing:#?}");
}
