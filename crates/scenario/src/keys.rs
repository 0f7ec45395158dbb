// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which keys a scenario uses, so that an executor can refuse by name what it cannot honour. The list is
//! made from the scenario itself: a key added to the types is refused everywhere until it is honoured.

use super::Scenario;
use serde::Serialize;
use toml::Value;

/// A key that a scenario uses.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct UsedKey {
    /// Where it is, e.g. `workload.tasks.db.steps[2].write.direct`.
    pub key: String,
    /// The same with names and numbers left out: `machine.devices.*.size`, `workload.tasks.*.preset.mail.dir`,
    /// and for steps, wherever they are, `step.write.direct`.
    pub pattern: String,
    /// Its value, where that is a word, a number or a flag.
    pub value: Option<String>,
}

impl Scenario {
    /// Every key that the scenario uses, in its order.
    pub fn used_keys(&self) -> Vec<UsedKey> {
        let mut keys = Vec::new();
        if let Ok(tree) = Value::try_from(self) {
            walk(&tree, "", "", &mut keys);
        }
        keys
    }

    /// The keys that an executor does not honour. `honoured` has one pattern a line, as in
    /// [`UsedKey::pattern`]; `PREFIX.**` stands for everything below; `PATTERN = a | b` honours only those
    /// values. What a scenario says of itself and expects is not for executors and always honoured.
    pub fn not_honoured(&self, honoured: &[&str]) -> Vec<UsedKey> {
        let is_honoured = |key: &UsedKey| honoured.iter().any(|line| honours(line, key));
        let is_ours = |key: &UsedKey| ["machine", "workload", "step"].iter().any(|part| key.pattern.starts_with(part));
        self.used_keys().into_iter().filter(|key| is_ours(key) && !is_honoured(key)).collect()
    }
}

fn honours(line: &str, key: &UsedKey) -> bool {
    let (pattern, values) = match line.split_once('=') {
        Some((pattern, values)) => (pattern.trim(), Some(values)),
        None => (line.trim(), None),
    };
    let is_same = match pattern.strip_suffix(".**") {
        Some(prefix) => key.pattern.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')),
        None => key.pattern == pattern,
    };
    let has_value = |values: &str| {
        key.value.as_deref().is_some_and(|value| values.split('|').any(|allowed| allowed.trim() == value))
    };
    is_same && values.is_none_or(has_value)
}

/// Tables whose keys are names that a person chose.
const NAMED: &[&str] = &[
    "machine.devices",
    "machine.mounts",
    "machine.cgroups",
    "machine.cgroups.*.io_max",
    "step.set_limits.limits.io_max",
    "workload.tasks",
    "machine.mounts.*.mkfs.features",
    "workload.tasks.*.program.env",
    "workload.tasks.*.program.files",
    "expect.figures",
    "expect.kernels",
];

fn walk(value: &Value, key: &str, pattern: &str, keys: &mut Vec<UsedKey>) {
    match value {
        Value::Table(table) => {
            for (name, inner) in table {
                let part = if NAMED.contains(&pattern) { "*" } else { name };
                let join = |prefix: &str, part: &str| {
                    if prefix.is_empty() { part.to_owned() } else { format!("{prefix}.{part}") }
                };
                // A step that is nothing but its name is a text and handled below.
                walk(inner, &join(key, name), &join(pattern, part), keys);
            }
        }
        Value::Array(items) if is_steps(pattern) => {
            for (index, item) in items.iter().enumerate() {
                let key = format!("{key}[{index}]");
                match item {
                    Value::String(verb) => {
                        keys.push(UsedKey { key, pattern: format!("step.{verb}"), value: None });
                    }
                    // Branches are lists of lists.
                    Value::Array(_) => walk(item, &key, pattern, keys),
                    item => walk(item, &key, "step", keys),
                }
            }
        }
        Value::Array(items) => {
            keys.push(UsedKey { key: key.to_owned(), pattern: pattern.to_owned(), value: None });
            for (index, item) in items.iter().enumerate().filter(|(_, item)| item.is_table()) {
                walk(item, &format!("{key}[{index}]"), pattern, keys);
            }
        }
        leaf => {
            let value = match leaf {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            keys.push(UsedKey { key: key.to_owned(), pattern: pattern.to_owned(), value: Some(value) });
        }
    }
}

fn is_steps(pattern: &str) -> bool {
    ["steps", "setup", "branches"].iter().any(|name| pattern.rsplit('.').next() == Some(name))
}
