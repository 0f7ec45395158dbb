// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which keys a scenario uses, so that an executor can refuse by name what it cannot honour. The list is
//! made from the scenario itself: a key added to the types is refused everywhere until it is honoured.

use super::honoured::{self, Answer, Executor, Line};
use super::{Scenario, Workload};
use serde::Serialize;
use std::borrow::Cow;
use std::collections::BTreeMap;
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
        let all = self.each_key(|patterns, at, key| keys.push(key.used(patterns.text(at))));
        all.map_or_else(Vec::new, |()| keys)
    }

    /// The keys that an executor does not honour, in the order of the scenario. What a scenario says of itself and expects is
    /// not for executors and always honoured.
    pub fn not_honoured(&self, executor: Executor) -> Vec<UsedKey> {
        self.not_among(honoured::KEYS, executor)
    }

    /// Keys that an executor does not honour by the given list.
    pub(super) fn not_among(&self, lines: &[Line], executor: Executor) -> Vec<UsedKey> {
        let mut keys = Vec::new();
        // A large scenario uses few patterns, each of them many times.
        let mut answers: Vec<Option<Answer>> = Vec::new();
        let all = self.each_key(|patterns, at, key| {
            if answers.len() <= at {
                answers.resize_with(at + 1, || None);
            }
            let answer = answers[at].get_or_insert_with(|| Answer::of(patterns.text(at), executor, lines));
            if !key.is_honoured(answer) {
                keys.push(key.used(patterns.text(at)));
            }
        });
        all.map_or_else(Vec::new, |()| keys)
    }

    /// Visits every key in its order. Returns `None` where the scenario has no form as a tree.
    fn each_key(&self, mut visit: impl FnMut(&Patterns, usize, &Key<'_, '_>)) -> Option<()> {
        let Scenario { name, summary, about, machine, workload, expect } = self;
        let Workload { duration, settle, seed, tasks } = workload;
        // Tasks come last. Each has a tree of its own: that of a thousand is large, and slow to make and to free.
        let rest = Scenario {
            name: name.clone(),
            summary: summary.clone(),
            about: about.clone(),
            machine: machine.clone(),
            workload: Workload { duration: *duration, settle: *settle, seed: *seed, tasks: BTreeMap::new() },
            expect: expect.clone(),
        };
        let mut patterns = Patterns::default();
        patterns.add(String::new());
        walk(&Value::try_from(rest).ok()?, ROOT, &mut Vec::new(), &mut patterns, &mut visit);
        let of_workload = patterns.below(ROOT, "workload");
        let of_tasks = patterns.below(of_workload, "tasks");
        for (name, task) in tasks {
            let at = patterns.below(of_tasks, name);
            let mut path = ["workload", "tasks", name].map(Part::Name).to_vec();
            walk(&Value::try_from(task).ok()?, at, &mut path, &mut patterns, &mut visit);
        }
        Some(())
    }
}

/// A key in place: its path, and its value where it has one.
struct Key<'p, 't> {
    path: &'p [Part<'t>],
    leaf: Option<&'t Value>,
}

/// A part of the path to a key.
#[derive(Clone, Copy)]
enum Part<'t> {
    Name(&'t str),
    Index(usize),
}

impl<'t> Key<'_, 't> {
    fn value(&self) -> Option<Cow<'t, str>> {
        self.leaf.map(|leaf| match leaf {
            Value::String(text) => Cow::Borrowed(text.as_str()),
            other => Cow::Owned(other.to_string()),
        })
    }

    fn is_honoured(&self, answer: &Answer) -> bool {
        match answer {
            Answer::Honours => true,
            Answer::HonoursOnly(values) if values.is_empty() => false,
            Answer::HonoursOnly(values) => self.value().is_some_and(|value| values.contains(&value.as_ref())),
        }
    }

    fn used(&self, pattern: &str) -> UsedKey {
        let mut key = String::new();
        for part in self.path {
            match part {
                Part::Name(name) => key = join(&key, name),
                Part::Index(index) => key.push_str(&format!("[{index}]")),
            }
        }
        UsedKey { key, pattern: pattern.to_owned(), value: self.value().map(Cow::into_owned) }
    }
}

/// The pattern of the scenario itself.
const ROOT: usize = 0;

/// The patterns of a scenario, each once.
#[derive(Default)]
struct Patterns(Vec<Pattern>);

struct Pattern {
    text: String,
    /// Patterns that are one part longer.
    below: BTreeMap<String, usize>,
    /// Whether the keys of its table are names.
    is_named: bool,
    is_steps: bool,
}

impl Patterns {
    fn text(&self, at: usize) -> &str {
        &self.0[at].text
    }

    fn add(&mut self, text: String) -> usize {
        let is_named = NAMED.contains(&text.as_str());
        let is_steps = ["steps", "setup", "branches"].iter().any(|name| text.rsplit('.').next() == Some(name));
        self.0.push(Pattern { text, below: BTreeMap::new(), is_named, is_steps });
        self.0.len() - 1
    }

    /// The pattern of a key in a table.
    fn below(&mut self, at: usize, name: &str) -> usize {
        let part = if self.0[at].is_named { "*" } else { name };
        if let Some(known) = self.0[at].below.get(part) {
            return *known;
        }
        let new = self.add(join(&self.0[at].text, part));
        self.0[at].below.insert(part.to_owned(), new);
        new
    }
}

fn join(prefix: &str, part: &str) -> String {
    if prefix.is_empty() { part.to_owned() } else { format!("{prefix}.{part}") }
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

fn walk<'t>(
    value: &'t Value,
    at: usize,
    path: &mut Vec<Part<'t>>,
    patterns: &mut Patterns,
    visit: &mut impl FnMut(&Patterns, usize, &Key<'_, 't>),
) {
    match value {
        Value::Table(table) => {
            for (name, inner) in table {
                // A step that is nothing but its name is a text and handled below.
                let below = patterns.below(at, name);
                path.push(Part::Name(name));
                walk(inner, below, path, patterns, visit);
                path.pop();
            }
        }
        Value::Array(items) if patterns.0[at].is_steps => {
            for (index, item) in items.iter().enumerate() {
                path.push(Part::Index(index));
                match item {
                    Value::String(verb) => {
                        let step = patterns.below(ROOT, "step");
                        let verb = patterns.below(step, verb);
                        visit(patterns, verb, &Key { path, leaf: None });
                    }
                    // Branches are lists of lists.
                    Value::Array(_) => walk(item, at, path, patterns, visit),
                    item => {
                        let step = patterns.below(ROOT, "step");
                        walk(item, step, path, patterns, visit);
                    }
                }
                path.pop();
            }
        }
        Value::Array(items) => {
            visit(patterns, at, &Key { path, leaf: None });
            for (index, item) in items.iter().enumerate().filter(|(_, item)| item.is_table()) {
                path.push(Part::Index(index));
                walk(item, at, path, patterns, visit);
                path.pop();
            }
        }
        leaf => visit(patterns, at, &Key { path, leaf: Some(leaf) }),
    }
}
