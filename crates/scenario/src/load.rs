// SPDX-License-Identifier: MIT OR Apache-2.0
//! From text to scenarios: parse, lay each variant over the base, deserialize, check. The tree keeps the
//! place of every key and value through the laying over, so that every problem has its line.

use super::check;
use super::problem::{self, Problem, ScenarioError};
use super::repair;
use super::text_bound::most_text;
use super::{Scenario, ScenarioFile, Task, Workload};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use toml::de::{DeTable, DeValue};
use toml::{Spanned, Table};

/// The variant of a file that names none.
pub const DEFAULT_VARIANT: &str = "default";

/// Largest file that is read, bytes. The twin of a minute of a host with 500 busy cgroups has 5 MB.
pub const TEXT_MAX: usize = 16 << 20;

/// Most bytes of text that are read for all variants of a file, each of which is the whole file laid over.
const VARIANTS_MAX: usize = 16 << 20;

/// Most bytes of text that are read again for all variants of a file to find what else is wrong, and most times that is done.
const AGAIN_MAX: usize = 8 << 20;
const TIMES_MAX: usize = 200;

/// Keys whose table is one of several kinds, named by its only key: another kind replaces it.
const ONE_OF: &[&str] = &["preset", "backing"];

impl ScenarioFile {
    /// Reads a file. Fails with everything that is wrong in it.
    pub fn parse(text: &str) -> Result<ScenarioFile, ScenarioError> {
        ScenarioFile::parse_with(text, &mut BTreeMap::new())
    }

    /// Reads a file as [`ScenarioFile::parse`] does. `wrong` receives the variants whose keys and values are all of the right types and
    /// that are wrong nevertheless: a caller can say what else it does not take. They are not to be run.
    pub fn parse_with(text: &str, wrong: &mut BTreeMap<String, Scenario>) -> Result<ScenarioFile, ScenarioError> {
        if text.len() > TEXT_MAX {
            let message = format!("{} bytes; a scenario has at most {TEXT_MAX}", text.len());
            return Err(one(Problem {
                line: 1,
                column: 1,
                key: String::new(),
                message,
                hint: None,
                variants: Vec::new(),
            }));
        }
        let mut root = DeTable::parse(text).map_err(|error| one(of_deserializer(text, None, &error)))?;
        let mut problems = Vec::new();
        let overrides = take_variants(text, root.get_mut(), &mut problems);
        let most = VARIANTS_MAX / text.len().max(1);
        if overrides.len() > most {
            let message = format!("{} variants of a file of {} bytes; at most {most}", overrides.len(), text.len());
            let hint = Some("split the file, or shorten what all variants share".to_owned());
            return Err(one(Problem {
                line: 1,
                column: 1,
                key: "variants".to_owned(),
                message,
                hint,
                variants: Vec::new(),
            }));
        }
        let steps = check::STEPS_MAX / overrides.len().max(1);
        let mut again = (AGAIN_MAX / text.len().max(1)).min(TIMES_MAX);
        let mut variants = BTreeMap::new();
        let (all, mut of_variants) = (overrides.len(), BTreeMap::<Problem, Vec<String>>::new());
        let last = overrides.len().saturating_sub(1);
        let mut root = Some(root);
        for (number, (name, over)) in overrides.into_iter().enumerate() {
            let tree = || {
                // A large tree takes more memory than its scenario: the last variant uses the tree up, and only what is wrong
                // needs it once more.
                let kept = if number == last { root.take() } else { root.clone() };
                let mut tree = kept.unwrap_or_else(|| without_variants(text));
                lay_over(text, tree.get_mut(), over.clone(), &mut problems);
                tree
            };
            let scenario = read(text, tree, steps, &mut again);
            match scenario {
                Ok(scenario) => {
                    variants.insert(name, scenario);
                }
                Err((found, scenario)) => {
                    wrong.extend(scenario.map(|scenario| (name.clone(), *scenario)));
                    let found: BTreeSet<Problem> = found.into_iter().collect();
                    found.into_iter().for_each(|problem| of_variants.entry(problem).or_default().push(name.clone()));
                }
            }
        }
        problems.extend(of_variants.into_iter().map(|(problem, names)| {
            let variants = if names.len() == all { Vec::new() } else { names };
            Problem { variants, ..problem }
        }));
        problems.sort();
        problems.dedup();
        let problems = problem::few_of_each(problems, check::COMPLAINTS_MAX);
        match variants.values().next().map(|any| (any.name.clone(), any.summary.clone())) {
            Some((name, summary)) if problems.is_empty() => Ok(ScenarioFile { name, summary, variants }),
            _ => Err(ScenarioError { problems }),
        }
    }
}

impl Scenario {
    /// The scenario as a file of its own, without variants; reads back the same.
    pub fn to_toml(&self) -> Result<String, toml::ser::Error> {
        toml::to_string(self)
    }

    /// Most bytes that the text of the scenario may have. `None` if it cannot be written.
    pub fn most_text(&self) -> Option<usize> {
        most_text(self)
    }

    /// The scenario as its file would be read, without the text. `None` where something is wrong in it: reading the
    /// text tells what and where. Tasks are read one by one: the tree of thousands of them takes tens of MiB.
    pub fn reread(&self) -> Option<Scenario> {
        let task = |(name, task): (&String, &Task)| Some((name.clone(), Table::try_from(task).ok()?.try_into().ok()?));
        let mut read: Scenario = Table::try_from(self.without_tasks()).ok()?.try_into().ok()?;
        read.workload.tasks = self.workload.tasks.iter().map(task).collect::<Option<_>>()?;
        read.ready()
    }

    /// A copy without tasks.
    pub(super) fn without_tasks(&self) -> Scenario {
        let Scenario { name, summary, about, machine, workload, expect } = self;
        let Workload { duration, settle, seed, tasks: _ } = workload;
        let workload = Workload { duration: *duration, settle: *settle, seed: *seed, tasks: BTreeMap::new() };
        Scenario {
            name: name.clone(),
            summary: summary.clone(),
            about: about.clone(),
            machine: machine.clone(),
            workload,
            expect: expect.clone(),
        }
    }

    /// The scenario with its devices' profiles filled in, after all checks of a file. `None` where something is wrong in it.
    pub(super) fn ready(mut self) -> Option<Scenario> {
        self.machine.fill_in_profiles();
        check::check(&self, check::STEPS_MAX).is_empty().then_some(self)
    }
}

/// The scenario of a tree without variants, after all checks of a file. `None` where something is wrong in it.
pub(super) fn of_tree(tree: Table) -> Option<Scenario> {
    tree.try_into::<Scenario>().ok()?.ready()
}

fn one(problem: Problem) -> ScenarioError {
    ScenarioError { problems: vec![problem] }
}

/// What is wrong, and the scenario where all types are right.
type Wrong = (Vec<Problem>, Option<Box<Scenario>>);

/// `make` makes the tree: reading it uses it up, and only what is wrong needs it once more. `steps` is how much the check may compare,
/// `again` how often the tree may be read once more.
fn read<'i>(
    text: &str,
    mut make: impl FnMut() -> Spanned<DeTable<'i>>,
    steps: usize,
    again: &mut usize,
) -> Result<Scenario, Wrong> {
    let mut problems = Vec::new();
    let mut out = repair::Out::default();
    let mut kept: Option<Spanned<DeTable<'i>>> = None;
    let mut scenario = loop {
        let tree = kept.clone().unwrap_or_else(&mut make);
        let error = match Scenario::deserialize(toml::de::Deserializer::from(tree)) {
            Ok(scenario) => break scenario,
            Err(error) => error,
        };
        let tree = kept.get_or_insert_with(&mut make);
        let place = place_of(tree.get_ref(), &error);
        if !out.is_lack_of_what_was_taken(&place, error.message()) {
            problems.push(of_deserializer(text, Some(tree.get_ref()), &error));
        }
        // The rest is read without what is wrong: all of it is told at once.
        let is_left = again.checked_sub(1).map(|left| *again = left).is_some();
        if !is_left || !out.take(tree.get_mut(), place) {
            return Err((problems, None));
        }
    };
    scenario.machine.fill_in_profiles();
    let mut complaints = check::check(&scenario, steps);
    if problems.is_empty() && complaints.is_empty() {
        return Ok(scenario);
    }
    // What the rest lacks is not wrong with it.
    complaints.retain(|complaint| !out.explains(complaint));
    if out.has_named() {
        complaints.iter_mut().for_each(check::Complaint::without_list);
    }
    let tree = kept.unwrap_or_else(make);
    let locate = |complaint: check::Complaint| {
        let offset = offset_of(tree.get_ref(), &complaint.key).unwrap_or(0);
        let (line, column) = problem::position(text, offset);
        let check::Complaint { key, message, hint, lacks: _ } = complaint;
        Problem { line, column, key: dotted(&key), message, hint, variants: Vec::new() }
    };
    let is_typed = problems.is_empty();
    problems.extend(complaints.into_iter().map(locate));
    Err((problems, is_typed.then(|| Box::new(scenario))))
}

/// Parses a text again that was parsed before, and leaves out its variants.
fn without_variants(text: &str) -> Spanned<DeTable<'_>> {
    let mut root = DeTable::parse(text).unwrap_or_else(|_| Spanned::new(0..0, DeTable::new()));
    root.get_mut().remove("variants");
    root
}

/// Takes `variants` out of the root: name and overrides of each.
fn take_variants<'i>(
    text: &str,
    root: &mut DeTable<'i>,
    problems: &mut Vec<Problem>,
) -> Vec<(String, Option<DeTable<'i>>)> {
    let Some(variants) = root.remove("variants") else { return vec![(DEFAULT_VARIANT.to_owned(), None)] };
    let span = variants.span();
    let mut complain = |span: Range<usize>, key: String, message: &str| {
        let (line, column) = problem::position(text, span.start);
        problems.push(Problem { line, column, key, message: message.to_owned(), hint: None, variants: Vec::new() });
    };
    let DeValue::Table(variants) = variants.into_inner() else {
        complain(span, "variants".to_owned(), "variants are tables: [variants.incident]");
        return Vec::new();
    };
    if variants.is_empty() {
        complain(span, "variants".to_owned(), "no variant in it; leave it out, or name one");
    }
    let mut taken = Vec::new();
    for (name, over) in variants {
        let (key_span, span) = (name.span(), over.span());
        let name = name.into_inner().into_owned();
        if !is_kebab(&name) {
            complain(key_span, dotted(&["variants".to_owned(), name.clone()]), "names of variants are kebab case");
        }
        match over.into_inner() {
            DeValue::Table(over) => taken.push((name, Some(over))),
            _ => complain(span, dotted(&["variants".to_owned(), name]), "a variant is a table"),
        }
    }
    taken
}

/// Lower-case words joined by hyphens; numbers such as `6.12` are words. It becomes part of file names.
pub(super) fn is_kebab(name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    name.len() <= 64 && name.split(['-', '.']).all(|word| !word.is_empty() && word.bytes().all(is_letter))
}

fn lay_over<'i>(text: &str, base: &mut DeTable<'i>, over: Option<DeTable<'i>>, problems: &mut Vec<Problem>) {
    let Some(mut over) = over else { return };
    if let Some(unset) = over.remove("unset") {
        for (path, span) in texts(&unset) {
            let removed = path.as_deref().and_then(key_path).is_some_and(|path| remove(base, &path));
            if !removed {
                let (line, column) = problem::position(text, span.start);
                let message = "unset is a list of keys of the base, such as \"workload.tasks.noise\"; this is none";
                problems.push(Problem {
                    line,
                    column,
                    key: "unset".to_owned(),
                    message: message.to_owned(),
                    hint: None,
                    variants: Vec::new(),
                });
            }
        }
    }
    merge(base, over, false);
}

fn texts(list: &Spanned<DeValue<'_>>) -> Vec<(Option<String>, Range<usize>)> {
    match list.get_ref() {
        DeValue::Array(items) => {
            items.iter().map(|item| (item.get_ref().as_str().map(str::to_owned), item.span())).collect()
        }
        _ => vec![(None, list.span())],
    }
}

/// The parts of a dotted key, quoted or not, as TOML has it.
fn key_path(dotted: &str) -> Option<Vec<String>> {
    let line = format!("{dotted} = 0");
    let mut table = DeTable::parse(&line).ok()?.into_inner();
    let mut path = Vec::new();
    loop {
        if table.len() != 1 {
            return None;
        }
        let (key, value) = table.into_iter().next()?;
        path.push(key.into_inner().into_owned());
        match value.into_inner() {
            DeValue::Table(inner) => table = inner,
            DeValue::Integer(_) => return Some(path),
            _ => return None,
        }
    }
}

fn remove(table: &mut DeTable<'_>, path: &[String]) -> bool {
    match path {
        [] => false,
        [last] => table.remove(last.as_str()).is_some(),
        [first, rest @ ..] => match table.get_mut(first.as_str()).map(Spanned::get_mut) {
            Some(DeValue::Table(inner)) => remove(inner, rest),
            _ => false,
        },
    }
}

/// Lays one table over another: tables are merged, everything else is replaced. `one_of` says that the
/// table's only key names its kind.
fn merge<'i>(base: &mut DeTable<'i>, over: DeTable<'i>, one_of: bool) {
    if one_of && !over.keys().all(|key| base.contains_key(key)) {
        *base = over;
        return;
    }
    for (key, value) in over {
        let kind = ONE_OF.contains(&key.get_ref().as_ref());
        match (base.get_mut(key.get_ref().as_ref()).map(Spanned::get_mut), value) {
            (Some(DeValue::Table(below)), value) if matches!(value.get_ref(), DeValue::Table(_)) => {
                if let DeValue::Table(above) = value.into_inner() {
                    merge(below, above, kind);
                }
            }
            (_, value) => {
                // The old key goes with its value: the place of both is the variant's.
                base.remove(key.get_ref().as_ref());
                base.insert(key, value);
            }
        }
    }
}

fn of_deserializer(text: &str, tree: Option<&DeTable<'_>>, error: &toml::de::Error) -> Problem {
    let span = error.span().unwrap_or(0..0);
    let (line, column) = problem::position(text, span.start);
    let key = tree.map(|tree| place_of(tree, error)).unwrap_or_default();
    let (message, hint) = problem::in_our_words(error.message());
    Problem { line, column, key: dotted(&key), message, hint, variants: Vec::new() }
}

/// The path to what an error is about.
fn place_of(tree: &DeTable<'_>, error: &toml::de::Error) -> Vec<String> {
    let mut key = Vec::new();
    path_to(tree, &error.span().unwrap_or(0..0), &mut Vec::new(), &mut key);
    key
}

/// The longest path to a key or value that contains a place.
fn path_to(table: &DeTable<'_>, place: &Range<usize>, path: &mut Vec<String>, best: &mut Vec<String>) {
    let covers = |span: Range<usize>| !place.is_empty() && span.start <= place.start && place.end <= span.end;
    for (key, value) in table {
        path.push(key.get_ref().to_string());
        if (covers(key.span()) || covers(value.span())) && path.len() > best.len() {
            best.clone_from(path);
        }
        within(value.get_ref(), place, path, best);
        path.pop();
    }
}

fn within(value: &DeValue<'_>, place: &Range<usize>, path: &mut Vec<String>, best: &mut Vec<String>) {
    match value {
        DeValue::Table(table) => path_to(table, place, path, best),
        DeValue::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                path.push(format!("[{index}]"));
                let span = item.span();
                if span.start <= place.start && place.end <= span.end && !place.is_empty() && path.len() > best.len() {
                    best.clone_from(path);
                }
                within(item.get_ref(), place, path, best);
                path.pop();
            }
        }
        _ => {}
    }
}

/// Where a key is, or the nearest table around it.
fn offset_of(table: &DeTable<'_>, path: &[String]) -> Option<usize> {
    let (first, rest) = path.split_first()?;
    let (key, value) = table.get_key_value(first.as_str())?;
    let deeper = if rest.is_empty() { Some(value.span().start) } else { in_value(value.get_ref(), rest) };
    Some(deeper.unwrap_or(key.span().start))
}

fn in_value(value: &DeValue<'_>, path: &[String]) -> Option<usize> {
    match value {
        DeValue::Table(table) => offset_of(table, path),
        DeValue::Array(items) => {
            let (first, rest) = path.split_first()?;
            let index: usize = first.strip_prefix('[')?.strip_suffix(']')?.parse().ok()?;
            let item = items.get(index)?;
            Some(in_value(item.get_ref(), rest).unwrap_or(item.span().start))
        }
        _ => None,
    }
}

/// A path as a person would write it.
fn dotted(path: &[String]) -> String {
    let mut text = String::new();
    for part in path {
        let is_bare = part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
        match part {
            index if index.starts_with('[') && index.ends_with(']') => text.push_str(index),
            bare if is_bare => {
                let dot = if text.is_empty() { "" } else { "." };
                text.push_str(&format!("{dot}{bare}"));
            }
            quoted => {
                let dot = if text.is_empty() { "" } else { "." };
                text.push_str(&format!("{dot}{quoted:?}"));
            }
        }
    }
    text
}
