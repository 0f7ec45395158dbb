// SPDX-License-Identifier: MIT OR Apache-2.0
//! Takes what is wrong out of the tree of a scenario file, so that the rest can be read and all mistakes are told at once. What
//! is left is never used as a scenario.

use super::check::Complaint;
use std::borrow::Cow;
use std::collections::BTreeSet;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Stands for an item of a list that was taken out: a step. The items after it keep their numbers.
const STEP: &str = "sync";

/// Parts of the path to a device, a mount, a cgroup or a task.
const NAME: usize = 3;

/// Whether a message quotes the name of the device, mount, cgroup or task that a path leads to, or a path below the mount. A path
/// to one of its settings does not count, except to the number of its copies, without which they have no names.
pub(super) fn is_named(message: &str, path: &[String]) -> bool {
    let is_tables = |above: &String, table: &String| match table.as_str() {
        "devices" | "mounts" | "cgroups" => above == "machine",
        "tasks" => above == "workload",
        _ => false,
    };
    let [above, table, name, setting @ ..] = path else { return false };
    if !setting.is_empty() && setting != ["instances"] {
        return false;
    }
    let is_whole = message.contains(&format!("\"{name}\"")) || message.contains(&format!("\"{name}/"));
    // A group of cgroups is told by the name of one of them.
    let of_group = name.split_once('{').map(|(start, _)| start).filter(|start| !start.is_empty());
    is_tables(above, table) && (is_whole || of_group.is_some_and(|start| message.contains(&format!("\"{start}"))))
}

/// What was taken out, as paths.
#[derive(Debug, Default)]
pub(super) struct Out(BTreeSet<Vec<String>>);

impl Out {
    /// Whether an error at a place only says that a key is missing which was taken out.
    pub(super) fn is_lack_of_what_was_taken(&self, place: &[String], message: &str) -> bool {
        let Some(field) = message.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`')) else {
            return false;
        };
        self.0.contains(&[place, &[field.to_owned()]].concat())
    }

    /// Whether a complaint about the rest is one about something that was taken out: at its key, around it or within it, for
    /// lack of it, or with its name.
    pub(super) fn explains(&self, complaint: &Complaint) -> bool {
        let Complaint { key, message, lacks, .. } = complaint;
        self.0.iter().any(|taken| {
            let is_lack = lacks.as_ref().is_some_and(|lacks| lacks.starts_with(taken));
            taken.starts_with(key) || key.starts_with(taken) || is_lack || is_named(message, taken)
        })
    }

    /// Whether something with a name of its own was taken out whole.
    pub(super) fn has_named(&self) -> bool {
        self.0.iter().any(|taken| taken.len() == NAME)
    }

    /// Takes out what is at a place, and tables that are empty without it. Returns false if nothing was left to take.
    pub(super) fn take(&mut self, tree: &mut DeTable<'_>, mut place: Vec<String>) -> bool {
        // What stands for an item is wrong there too: the list goes.
        while !place.is_empty() && self.0.contains(&place) {
            place.pop();
        }
        while let Some((last, above)) = place.split_last() {
            let is_empty = match at(tree, above) {
                Some(At::Table(table)) => {
                    let _ = table.remove(last.as_str());
                    table.is_empty()
                }
                Some(At::List(items)) => {
                    let Some(item) = number(last).and_then(|index| items.get_mut(index)) else { return false };
                    let span = item.span();
                    *item = Spanned::new(span, DeValue::String(Cow::Borrowed(STEP)));
                    false
                }
                None => return false,
            };
            self.0.insert(place.clone());
            if !is_empty {
                return true;
            }
            place.pop();
        }
        false
    }
}

enum At<'a, 'i> {
    Table(&'a mut DeTable<'i>),
    List(&'a mut [Spanned<DeValue<'i>>]),
}

fn at<'a, 'i>(table: &'a mut DeTable<'i>, path: &[String]) -> Option<At<'a, 'i>> {
    let Some((first, rest)) = path.split_first() else { return Some(At::Table(table)) };
    within(table.get_mut(first.as_str())?.get_mut(), rest)
}

fn within<'a, 'i>(value: &'a mut DeValue<'i>, path: &[String]) -> Option<At<'a, 'i>> {
    match (value, path.split_first()) {
        (DeValue::Table(table), _) => at(table, path),
        (DeValue::Array(items), None) => Some(At::List(items)),
        (DeValue::Array(items), Some((first, rest))) => within(items.get_mut(number(first)?)?.get_mut(), rest),
        _ => None,
    }
}

/// The number of an item, as a path has it.
fn number(part: &str) -> Option<usize> {
    part.strip_prefix('[')?.strip_suffix(']')?.parse().ok()
}
