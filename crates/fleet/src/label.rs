// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names that tell rows apart. A host without a name of its own is called by its file, and two files in two folders may
//! have one name. Does not change hosts that their recordings name.

use crate::row::Row;
use std::collections::{BTreeMap, BTreeSet};

/// Longest end of a path that is a name, in components.
const COMPONENTS_MAX: usize = 64;

/// The end of a file's path as the name of a host: `rack1/web` of `fleet/rack1/web.flr`.
fn end_of(file: &str, components: usize) -> String {
    let stem = file.strip_suffix(".flr").filter(|stem| !stem.is_empty() && !stem.ends_with('/')).unwrap_or(file);
    let parts: Vec<&str> = stem.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    let end = parts.get(parts.len().saturating_sub(components)..).unwrap_or_default();
    let names: Vec<&str> = end.iter().map(|part| part.strip_prefix("host=").unwrap_or(part)).collect();
    names.join("/")
}

/// Gives hosts that are called by their files longer ends of their paths, where two rows have one name. Rows that a later
/// recording of the same host replaces keep its name.
pub fn tell_apart(rows: &mut [Row]) {
    let mut by_name: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, row) in rows.iter().enumerate().filter(|(_, row)| !row.superseded) {
        by_name.entry(&row.host).or_default().push(at);
    }
    let mut left: Vec<usize> = by_name
        .values()
        .filter(|rows| rows.len() > 1)
        .flatten()
        .copied()
        .filter(|at| rows.get(*at).is_some_and(|row| !row.is_named))
        .collect();
    let mut taken: BTreeSet<String> = rows.iter().map(|row| row.host.clone()).collect();
    for components in 2..=COMPONENTS_MAX {
        if left.is_empty() {
            return;
        }
        let mut wanted: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for at in &left {
            wanted.entry(end_of(&rows[*at].file, components)).or_default().push(*at);
        }
        left.clear();
        for (name, at) in wanted {
            match at.as_slice() {
                [at] if !taken.contains(&name) => {
                    rows[*at].rename(name.clone());
                    taken.insert(name);
                }
                _ => left.extend(at),
            }
        }
    }
    left.sort_unstable();
    // Two paths may be shown as one: bytes that are no text are replaced.
    for at in left {
        let file = rows[at].file.clone();
        let numbered = (2_u64..).map(|number| format!("{file} ({number})"));
        if let Some(name) = std::iter::once(file.clone()).chain(numbered).find(|name| !taken.contains(name)) {
            rows[at].rename(name.clone());
            taken.insert(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::Change;
    use crate::row::Cause;
    use crate::summary::keep_latest;

    /// Names of rows, given their files and the names that their recordings have.
    fn check(files: &[(&str, &str)], expect: &[&str]) {
        let row = |(file, host): &(&str, &str)| {
            let mut row = Row::not_known(file, &Change::default(), Cause::NoFacts, "Why.".to_owned());
            row.name_host((*host).to_owned());
            row.rename(row.host.clone());
            row
        };
        let mut rows: Vec<Row> = files.iter().map(row).collect();
        keep_latest(&mut rows);
        tell_apart(&mut rows);
        let names: Vec<&str> = rows.iter().map(|row| row.host.as_str()).collect();
        assert_eq!(names, expect);
        assert!(rows.iter().all(|row| row.key == format!("no-facts@{}", row.host)), "{rows:?}");
    }

    #[test]
    fn no_two_rows_have_one_name() {
        check(&[("f/a.flr", ""), ("f/b.flr", "")], &["a", "b"]);
        check(&[("f/r1/a.flr", ""), ("f/r2/a.flr", "localhost"), ("f/b.flr", "")], &["r1/a", "r2/a", "b"]);
        // Files of one folder that names a host.
        check(&[("host=w/1.flr", ""), ("host=w/2.flr", "")], &["w/1", "w/2"]);
        // A name of a recording stays.
        check(&[("f/x.flr", "a"), ("f/a.flr", "")], &["a", "f/a"]);
        check(&[("x.flr", "f/a"), ("y.flr", "a"), ("q/f/a.flr", "")], &["f/a", "a", "q/f/a"]);
        // An older recording of the same host has its name.
        check(&[("f/x.flr", "a"), ("f/y.flr", "a")], &["a", "a"]);
        check(&[("a.flr", ""), ("./a.flr", ""), ("b/a.flr", "")], &["a.flr", "./a.flr", "b/a"]);
        check(&[("\u{fffd}/a.flr", ""), ("\u{fffd}/a.flr", "")], &["\u{fffd}/a.flr", "\u{fffd}/a.flr (2)"]);
    }
}
