// SPDX-License-Identifier: MIT OR Apache-2.0
//! Variants of scenarios that differ only in what a prediction can change. The scenario files tell which keys differ. The
//! values come from the twins of the recordings, which name cgroups and devices as the guest did.

use crate::input;
use crate::{Failure, note};
use floodline_analysis::prediction::Setting;
use floodline_scenario::{Machine, Scenario};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Variants by scenario and name.
#[derive(Debug, Default)]
pub(super) struct Variants(BTreeMap<(String, String), Scenario>);

/// Keys of the machine in which two recordings may differ, as [`knob`] names them.
pub(super) type Knobs = BTreeSet<String>;

impl Variants {
    /// Those of all scenario files of some folders. A folder that is missing is left out with a note.
    pub(super) fn of(folders: &[PathBuf]) -> Result<Variants, Failure> {
        let mut variants = Variants::default();
        for folder in folders {
            for path in scenarios(folder) {
                let file = input::scenario(&path)?;
                for (variant, scenario) in file.variants {
                    variants.0.insert((file.name.clone(), variant), scenario);
                }
            }
        }
        Ok(variants)
    }

    /// The keys in which two variants of a scenario differ. `None` if they differ in anything that no prediction changes,
    /// such as their tasks. Settings of `vm` and the cgroup mode are not among the keys: every recording has them.
    pub(super) fn differ(&self, scenario: &str, one: &str, other: &str) -> Option<Knobs> {
        if one == other {
            return Some(Knobs::new());
        }
        let find = |variant: &str| self.0.get(&(scenario.to_owned(), variant.to_owned()));
        let (one, other) = (find(one)?, find(other)?);
        if one.workload != other.workload {
            return None;
        }
        let (one, other) = (leaves(&one.machine), leaves(&other.machine));
        let paths: BTreeSet<&Vec<String>> = one.keys().chain(other.keys()).collect();
        let mut knobs = Knobs::new();
        for path in paths.into_iter().filter(|path| one.get(*path) != other.get(*path)) {
            let words: Vec<&str> = path.iter().map(String::as_str).collect();
            match words.as_slice() {
                ["cgroup_mode"] => {}
                ["sysctl", "vm", name] if name.starts_with("dirty_") => {}
                _ => drop(knobs.insert(knob(path)?)),
            }
        }
        Some(knobs)
    }

    /// Whether a task of a variant may be a journal, which advice can move into memory. No reading shows that it did.
    pub(super) fn has_journal(&self, scenario: &str, variant: &str) -> bool {
        let found = self.0.get(&(scenario.to_owned(), variant.to_owned()));
        found.is_none_or(|scenario| scenario.workload.tasks.keys().any(|task| task.contains("journal")))
    }
}

/// The scenario files of a folder, in order.
fn scenarios(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        note(&format!("{} is not a folder: its scenarios make no pairs of variants", input::shown(folder)));
        return Vec::new();
    };
    let paths = entries.flatten().map(|entry| entry.path());
    let mut paths: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|ending| ending == "toml")).collect();
    paths.sort();
    paths
}

/// Settings that lead from the machine of one twin to that of another; only keys in `knobs`, or all that a prediction
/// changes. `None` if a value cannot be taken back.
pub(super) fn settings(from: &Machine, to: &Machine, knobs: Option<&Knobs>) -> Option<Vec<Setting>> {
    let (from, to) = (leaves(from), leaves(to));
    let is_wanted = |path: &[String]| knob(path).is_some_and(|knob| knobs.is_none_or(|knobs| knobs.contains(&knob)));
    let paths: BTreeSet<&Vec<String>> = from.keys().chain(to.keys()).filter(|path| is_wanted(path)).collect();
    let changed = paths.into_iter().filter(|path| from.get(*path) != to.get(*path));
    changed.map(|path| setting(path, to.get(path))).collect()
}

/// One key in the words of `--set`.
fn setting(path: &[String], value: Option<&Value>) -> Option<Setting> {
    let last = path.last()?.as_str();
    if let ["mounts", mount, "options"] = path.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        let words: Vec<&str> =
            value.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
        let options = if words.is_empty() { "defaults".to_owned() } else { words.join(",") };
        return Some(Setting::new(format!("mount/{}/options", mount.trim_matches('/')), options));
    }
    let value = match value {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => match last {
            "memory_max" | "memory_high" => "max".to_owned(),
            "strict_limit" | "direct_io" => "false".to_owned(),
            "max_ratio" => "100".to_owned(),
            _ => return None,
        },
    };
    let is_bare = |word: &str| word.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    let words = path.iter().map(|word| if is_bare(word) { word.clone() } else { format!("{word:?}") });
    Some(Setting::new(format!("machine.{}", words.collect::<Vec<_>>().join(".")), value))
}

/// Name of a key that a prediction changes, without the name of the device, mount or cgroup that has it.
fn knob(path: &[String]) -> Option<String> {
    let words: Vec<&str> = path.iter().map(String::as_str).collect();
    let is_one = match words.as_slice() {
        ["cgroups", _, key] => ["memory_max", "memory_high", "memory_low", "memory_min", "io_weight"].contains(key),
        ["devices", _, "bdi" | "queue", _] | ["devices", _, "backing", "loop", "direct_io"] => true,
        ["mounts", _, "type" | "options"] => true,
        _ => false,
    };
    let (table, rest) = words.split_first()?;
    is_one.then(|| format!("{table}.{}", rest.get(1..).unwrap_or_default().join(".")))
}

/// All keys of a machine that have a value. A list is one value.
fn leaves(machine: &Machine) -> BTreeMap<Vec<String>, Value> {
    let mut leaves = BTreeMap::new();
    let tree = serde_json::to_value(machine).unwrap_or_default();
    walk(&tree, &mut Vec::new(), &mut leaves);
    leaves
}

fn walk(value: &Value, path: &mut Vec<String>, into: &mut BTreeMap<Vec<String>, Value>) {
    match value {
        Value::Object(table) => {
            for (key, value) in table {
                path.push(key.clone());
                walk(value, path, into);
                path.pop();
            }
        }
        value => drop(into.insert(path.clone(), value.clone())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variants() -> Variants {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
        Variants::of(&[folder.join("blind"), folder]).expect("the folders of the tree")
    }

    #[test]
    fn variants_are_one_workload_if_only_settings_differ() {
        let variants = variants();
        let differ = |scenario: &str, one: &str, other: &str| {
            let knobs = variants.differ(scenario, one, other)?;
            Some(knobs.into_iter().collect::<Vec<_>>().join(" "))
        };
        assert_eq!(differ("cliff-v1", "incident", "cured").as_deref(), Some(""));
        assert_eq!(
            differ("strict-device", "incident", "cured").as_deref(),
            Some("devices.bdi.max_ratio devices.bdi.strict_limit")
        );
        assert_eq!(differ("rewritten-in-small-cgroups", "cured", "incident").as_deref(), Some("cgroups.memory_max"));
        // Other tasks, another device.
        assert_eq!(differ("outrun", "syncs-wait", "cured"), None);
        assert_eq!(differ("saturated-by-syncs", "hard-disk", "cured"), None);
        assert_eq!(differ("outrun", "syncs-wait", "nonsense"), None);
        assert!(variants.has_journal("slow-disk-journal", "incident"));
        assert!(!variants.has_journal("cliff-v1", "incident"));
    }

    #[test]
    fn settings_are_those_of_the_twins_in_words_that_a_prediction_reads() {
        let variants = variants();
        let of = |scenario: &str, variant: &str| &variants.0[&(scenario.to_owned(), variant.to_owned())].machine;
        let told = |scenario: &str, one: &str, other: &str, knobs: Option<&[&str]>| {
            let knobs = knobs.map(|knobs| knobs.iter().map(|knob| (*knob).to_owned()).collect());
            let settings = settings(of(scenario, one), of(scenario, other), knobs.as_ref())?;
            Some(settings.iter().map(|one| format!("{}={}", one.key, one.value)).collect::<Vec<_>>())
        };
        let strict = ["machine.devices.stick.bdi.max_ratio=100", "machine.devices.stick.bdi.strict_limit=false"];
        assert_eq!(told("strict-device", "incident", "cured", None).expect("known"), strict);
        let one = told("strict-device", "cured", "incident", Some(&["devices.bdi.max_ratio"]));
        assert_eq!(one.expect("known"), ["machine.devices.stick.bdi.max_ratio=1"]);
        let small = told("rewritten-in-small-cgroups", "incident", "cured", None).expect("known");
        assert_eq!(small, ["machine.cgroups.\"fn{i}\".memory_max=256 MiB"]);
        let options = told("inode-switch-storm", "incident", "relatime", None).expect("known");
        assert_eq!(options, ["mount/data/options=relatime"]);
        assert_eq!(told("strict-device", "incident", "incident", None).expect("known"), Vec::<String>::new());
    }
}
