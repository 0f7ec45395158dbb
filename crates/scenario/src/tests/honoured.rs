// SPDX-License-Identifier: MIT OR Apache-2.0
//! The list of what executors honour, held against the keys that the language has.

use super::*;
use crate::honoured::{Answer, By, KEYS, Line};
use serde_json::Value;
use std::collections::BTreeSet;

#[test]
fn an_executor_refuses_by_name_what_it_does_not_honour() {
    let text = with_machine(
        "[machine.devices.b]\nsize = \"1 GiB\"\nrotational = true\n[machine.mounts.\"/b\"]\ntype = \"btrfs\"\ndevice = \"b\"",
    )
    .replace(
        "\"sync\"",
        "\"sync\", { repeat = { times = 1, steps = [{ write = { file = \"/data/x\", count = 1, direct = true } }] } }",
    );
    let scenario = &parsed(&text).variants[DEFAULT_VARIANT];
    let refused = |executor: Executor, lines: &[Line]| -> Vec<_> {
        scenario.not_among(lines, executor).into_iter().map(|used| (used.key, used.pattern)).collect()
    };
    let most = ["machine.memory", "machine.devices.*.size", "machine.mounts.*.device", "workload.**", "step.**"];
    let with = |more: &[&'static str]| {
        let lines: Vec<Line> = most.iter().chain(more).map(|pattern| (*pattern, By::Simulator)).collect();
        assert!(refused(Executor::Lab, &lines).len() > 8, "no line is for the lab");
        refused(Executor::Simulator, &lines)
    };
    let btrfs = ("machine.mounts./b.type".to_owned(), "machine.mounts.*.type".to_owned());
    let rotational = ("machine.devices.b.rotational".to_owned(), "machine.devices.*.rotational".to_owned());
    assert_eq!(with(&["machine.mounts.*.type = ext4 | xfs"]), [rotational, btrfs.clone()]);
    assert_eq!(with(&["machine.mounts.*.type", "machine.devices.*.rotational"]), []);
    // The longest pattern decides, wherever it stands.
    let rest = [("machine.**", By::Both), ("step.**", By::Both), ("workload.**", By::Both)];
    let direct = ("workload.tasks.w.steps[1].repeat.steps[0].write.direct".to_owned(), "step.write.direct".to_owned());
    let lines = [&[("step.write.direct", By::Lab)], &rest[..]].concat();
    assert_eq!((refused(Executor::Simulator, &lines), refused(Executor::Lab, &lines)), (vec![direct], vec![]));
    // Values of several lines add up.
    let kinds = [("machine.mounts.*.type = ext4", By::Both), ("machine.mounts.*.type = btrfs", By::Lab)];
    let lines = [&rest[..], &kinds].concat();
    assert_eq!((refused(Executor::Simulator, &lines), refused(Executor::Lab, &lines)), (vec![btrfs], vec![]));
}

/// The patterns of all keys below one, from the schema.
fn patterns(root: &Value, here: &Value, pattern: &str, above: &[&str], found: &mut BTreeSet<String>) {
    if let Some(target) = here.get("$ref").and_then(Value::as_str) {
        let pattern = if target == "#/$defs/Step" { "step" } else { pattern };
        // Steps are within steps.
        if !above.contains(&target) {
            let inner = root.pointer(&target[1..]).expect("it is defined");
            patterns(root, inner, pattern, &[above, &[target]].concat(), found);
        }
    }
    let kinds = ["properties", "additionalProperties", "items", "oneOf", "anyOf", "allOf", "$ref"];
    let is_leaf = !kinds.iter().any(|kind| here.get(kind).is_some_and(|inner| inner.is_object() || inner.is_array()))
        && here.get("$ref").is_none()
        && here.get("type").is_none_or(|kind| kind != "null");
    match here.get("enum").and_then(Value::as_array).filter(|_| pattern == "step") {
        Some(verbs) => found.extend(verbs.iter().filter_map(Value::as_str).map(|verb| format!("step.{verb}"))),
        None if is_leaf && pattern == "step" => {
            found.extend(here.get("const").and_then(Value::as_str).map(|verb| format!("step.{verb}")));
        }
        None if is_leaf => drop(found.insert(pattern.to_owned())),
        None => {}
    }
    for (key, inner) in here.as_object().into_iter().flatten() {
        let below = |name: &str| if pattern.is_empty() { name.to_owned() } else { format!("{pattern}.{name}") };
        match (key.as_str(), inner) {
            ("properties", Value::Object(properties)) => {
                properties.iter().for_each(|(name, inner)| patterns(root, inner, &below(name), above, found));
            }
            ("additionalProperties", Value::Object(_)) => patterns(root, inner, &below("*"), above, found),
            ("items", inner) => patterns(root, inner, pattern, above, found),
            ("oneOf" | "anyOf" | "allOf", Value::Array(several)) => {
                several.iter().for_each(|inner| patterns(root, inner, pattern, above, found));
            }
            _ => {}
        }
    }
}

/// The patterns of all keys that are for executors. A kernel may have any setting: the schema does not list them.
fn language() -> BTreeSet<String> {
    let schema = schema();
    let mut found = BTreeSet::new();
    patterns(&schema, &schema, "", &[], &mut found);
    found.retain(|pattern| ["machine.", "workload.", "step."].iter().any(|part| pattern.starts_with(part)));
    assert!(found.len() > 150, "{found:#?}");
    found
}

/// Whether an executor honours some value of a key.
fn honours(executor: Executor, pattern: &str) -> bool {
    match Answer::of(pattern, executor, KEYS) {
        Answer::Honours => true,
        Answer::HonoursOnly(values) => !values.is_empty(),
    }
}

#[test]
fn each_key_of_the_language_is_honoured_by_an_executor() {
    let is_refused =
        |pattern: &String| ![Executor::Simulator, Executor::Lab].iter().any(|executor| honours(*executor, pattern));
    let refused: Vec<String> = language().into_iter().filter(is_refused).collect();
    assert!(refused.is_empty(), "no executor honours these: add them to honoured.rs: {refused:#?}");
}

#[test]
fn each_line_of_what_is_honoured_is_a_key_of_the_language() {
    let language = language();
    let is_there = |line: &str| {
        let pattern = line.split(" = ").next().unwrap_or_default();
        let prefix = pattern.trim_end_matches(".**");
        language.iter().any(|key| {
            key.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('.') && pattern != prefix)
        })
    };
    let is_setting = |line: &str| line.starts_with("machine.sysctl.") || line.starts_with("step.set_sysctl.");
    let unknown: Vec<&str> =
        KEYS.iter().map(|(line, _)| *line).filter(|line| !is_setting(line) && !is_there(line)).collect();
    assert!(unknown.is_empty(), "the language has no such keys: {unknown:#?}");
    let lines: BTreeSet<&Line> = KEYS.iter().collect();
    assert_eq!(lines.len(), KEYS.len(), "a line is there twice");
}

#[test]
fn steps_are_honoured_unless_a_line_says_otherwise() {
    let verbs: BTreeSet<String> =
        language().iter().filter_map(|key| key.strip_prefix("step.")?.split('.').next().map(str::to_owned)).collect();
    let refused = |executor: Executor| -> Vec<&str> {
        let whole = |verb: &&String| !honours(executor, &format!("step.{verb}"));
        verbs.iter().filter(whole).map(String::as_str).collect()
    };
    assert_eq!(refused(Executor::Simulator), ["redis_set", "set_sysctl", "sql", "syslog"]);
    assert_eq!(refused(Executor::Lab), [""; 0]);
}
