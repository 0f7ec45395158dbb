// SPDX-License-Identifier: MIT OR Apache-2.0
//! Licences, sources and duplicates of the crates that we depend on, against the lists in `deny.toml`. These are the
//! checks of cargo-deny that need no network, without the minutes that building cargo-deny takes.

use crate::{expect_none, read, root};
use serde_json::Value;
use spdx::{Expression, Licensee, ParseMode};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;

/// The platform of the binary that people get.
pub(crate) const TARGET: &str = "x86_64-unknown-linux-gnu";

/// One crate of the dependency graph.
pub(crate) struct Package {
    /// Its name.
    pub(crate) name: String,
    /// Its version.
    pub(crate) version: String,
    /// Its licence, as it states it.
    pub(crate) licence: String,
    /// Its folder.
    pub(crate) folder: PathBuf,
    /// The library in C that it brings along.
    pub(crate) links: Option<String>,
    /// Where it comes from; `None` for crates of this repository.
    source: Option<String>,
}

/// Prints something with cargo, from the locked versions.
pub(crate) fn cargo(args: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO"));
    let output = command.args(args).arg("--locked").current_dir(root()).output().expect("cargo runs");
    assert!(output.status.success(), "cargo {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Every crate that is built for [`TARGET`], with what only tests and build scripts need.
pub(crate) fn packages() -> Vec<Package> {
    let metadata = cargo(&["metadata", "--format-version", "1", "--filter-platform", TARGET]);
    let metadata: Value = serde_json::from_str(&metadata).expect("JSON");
    let package = |package: &Value| {
        let text = |field: &str| package[field].as_str().map(str::to_owned);
        Package {
            name: text("name").expect("a name"),
            version: text("version").expect("a version"),
            licence: text("license").unwrap_or_default(),
            folder: PathBuf::from(text("manifest_path").expect("a path")).parent().expect("a folder").to_owned(),
            links: text("links"),
            source: text("source"),
        }
    };
    metadata["packages"].as_array().expect("packages").iter().map(package).collect()
}

/// `deny.toml`.
fn lists() -> toml::Table {
    read(&root().join("deny.toml")).parse().expect("valid TOML")
}

/// A list of texts in `deny.toml`.
fn list(section: &str, key: &str) -> Vec<String> {
    let lists = lists();
    let entries = lists[section][key].as_array().expect("a list").iter();
    let text = |entry: &toml::Value| entry.get("crate").unwrap_or(entry).as_str().expect("a text").to_owned();
    entries.map(text).collect()
}

/// Licences that we accept, the preferred ones first.
pub(crate) fn accepted() -> Vec<Licensee> {
    list("licenses", "allow").iter().map(|name| Licensee::parse(name).expect("a licence")).collect()
}

/// Parses the licence of a crate, in the older spelling too ("MIT/Apache-2.0").
pub(crate) fn expression(package: &Package) -> Result<Expression, String> {
    let complaint = |error| format!("{} {}: licence \"{}\": {error}", package.name, package.version, package.licence);
    Expression::parse_mode(&package.licence, ParseMode::LAX).map_err(complaint)
}

#[test]
fn every_licence_is_accepted_and_every_accepted_licence_is_there() {
    let accepted = accepted();
    let mut unused: BTreeSet<String> = accepted.iter().map(ToString::to_string).collect();
    let mut complaints = Vec::new();
    for package in packages() {
        match expression(&package).map(|expression| expression.minimized_requirements(&accepted)) {
            Ok(Ok(chosen)) => unused.retain(|name| !chosen.iter().any(|licence| licence.to_string() == *name)),
            Ok(Err(error)) => {
                complaints.push(format!("{} {}: {}: {error}", package.name, package.version, package.licence))
            }
            Err(complaint) => complaints.push(complaint),
        }
    }
    complaints.extend(unused.iter().map(|licence| format!("deny.toml: remove {licence} from licenses.allow")));
    expect_none(&complaints);
}

#[test]
fn every_crate_comes_from_the_registry() {
    let allowed: Vec<String> =
        list("sources", "allow-registry").iter().map(|registry| format!("registry+{registry}")).collect();
    let is_stranger = |source: &String| !allowed.contains(source);
    let strangers = packages().into_iter().filter_map(|package| {
        let source = package.source.filter(is_stranger)?;
        Some(format!("{} {}: {source} is not in sources.allow-registry of deny.toml", package.name, package.version))
    });
    expect_none(&strangers.collect::<Vec<_>>());
}

#[test]
fn no_crate_is_there_in_two_versions_but_those_listed() {
    let mut versions = BTreeMap::<String, Vec<String>>::new();
    for package in packages() {
        versions.entry(package.name).or_default().push(package.version);
    }
    let known: BTreeSet<String> = list("bans", "skip").into_iter().collect();
    let mut needed = BTreeSet::new();
    let mut complaints = Vec::new();
    for (name, versions) in versions.iter().filter(|(_, versions)| versions.len() > 1) {
        let entries: Vec<String> = versions.iter().map(|version| format!("{name}@{version}")).collect();
        let unlisted = entries.iter().filter(|entry| !known.contains(*entry)).count();
        if unlisted > 1 {
            complaints
                .push(format!("{}: use one version, or list the older in bans.skip of deny.toml", entries.join(", ")));
        }
        needed.extend(entries);
    }
    let stale = known.difference(&needed).map(|entry| format!("deny.toml: remove {entry} from bans.skip"));
    complaints.extend(stale);
    expect_none(&complaints);
}
