// SPDX-License-Identifier: MIT OR Apache-2.0
//! What types cannot say: references, ranges, and what the kernel itself would refuse. All that is wrong
//! is collected, each with the path of its key.

mod machine;
mod workload;

use super::{Expect, Scenario, load};
use floodline_record::nearest::nearest;

/// Something wrong at a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Complaint {
    pub(super) key: Vec<String>,
    pub(super) message: String,
    pub(super) hint: Option<String>,
}

/// Collects complaints.
#[derive(Default)]
struct Complaints(Vec<Complaint>);

impl Complaints {
    fn add(&mut self, key: &[&str], message: impl Into<String>) {
        let key = key.iter().map(|&part| part.to_owned()).collect();
        self.0.push(Complaint { key, message: message.into(), hint: None });
    }

    fn hint(&mut self, key: &[&str], message: impl Into<String>, hint: impl Into<String>) {
        self.add(key, message);
        if let Some(last) = self.0.last_mut() {
            last.hint = Some(hint.into());
        }
    }

    /// Complains about a name that names nothing.
    fn unknown<'a>(&mut self, key: &[&str], what: &str, name: &str, known: impl Iterator<Item = &'a String> + Clone) {
        let hint = match nearest(name, known.clone().map(String::as_str)) {
            Some(near) => format!("did you mean {near:?}?"),
            None => {
                let known: Vec<&str> = known.map(String::as_str).collect();
                if known.is_empty() {
                    format!("this scenario has no {what}")
                } else {
                    format!("known: {}", known.join(", "))
                }
            }
        };
        self.hint(key, format!("no {what} is called {name:?}"), hint);
    }
}

/// Everything wrong with a scenario that has the right types.
pub(super) fn check(scenario: &Scenario) -> Vec<Complaint> {
    let mut complaints = Complaints::default();
    if !load::is_kebab(&scenario.name) {
        complaints.hint(&["name"], "names of scenarios are kebab case", "write lower-case words joined by hyphens");
    }
    if scenario.summary.is_empty() || scenario.summary.len() > 200 || scenario.summary.contains('\n') {
        complaints.add(&["summary"], "the summary is one line of at most 200 characters");
    }
    machine::check(&scenario.machine, &mut complaints);
    // The rest refers to the machine: with a wrong one it would only repeat the complaints.
    if complaints.0.is_empty() {
        workload::check(scenario, &mut complaints);
    }
    expect(&scenario.expect, &["expect"], &mut complaints);
    complaints.0
}

fn expect(expect: &Expect, at: &[&str], complaints: &mut Complaints) {
    for (name, bound) in &expect.figures {
        let key = [at, &["figures", name]].concat();
        match (bound.min, bound.max) {
            (None, None) => complaints.add(&key, "a bound has a min, a max, or both"),
            (Some(min), Some(max)) if min.0 > max.0 => complaints.add(&key, "min is above max: nothing is within"),
            _ => {}
        }
    }
    for name in expect.found.iter().flatten() {
        if expect.not_found.iter().flatten().any(|other| other == name) {
            complaints.add(&[at, &["found"]].concat(), format!("{name} must be found and must not"));
        }
    }
    for (kernels, inner) in &expect.kernels {
        let name = kernels.to_string();
        let key = [at, &["kernels", &name]].concat();
        if !inner.kernels.is_empty() {
            complaints.add(&key, "kernels within kernels");
        }
        if at.len() == 1 {
            self::expect(inner, &key, complaints);
        }
    }
}

/// Whether a path is absolute and says what it means: no empty, `.` or `..` parts.
fn is_plain_path(path: &str) -> bool {
    path.strip_prefix('/').is_some_and(|rest| {
        rest.is_empty() || rest.split('/').all(|part| !part.is_empty() && part != "." && part != "..")
    }) && path.len() < 4096
        && !path.contains('\0')
}

/// The letters in braces of a path; `None` where a brace is not part of one.
fn letters(text: &str) -> Option<Vec<char>> {
    let mut letters = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        let inner = rest.get(at..)?.strip_prefix('{')?;
        let letter = inner.chars().next()?;
        rest = inner.get(letter.len_utf8()..)?.strip_prefix('}')?;
        letters.push(letter);
    }
    Some(letters)
}
