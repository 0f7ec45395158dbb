// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hosts and kinds of hosts from the files of `crates/dev/fleet`, each with its change. All hosts of a file were committed before any of
//! them was scored, so their first score is a score of unseen hosts. The files do not state the effect of a change. It is measured by
//! one run of the host before the change and one after it.

use super::made;
use super::usual::with_usual;
use crate::Failure;
use floodline_record::version::KernelVersion;
use floodline_scenario::Scenario;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

/// A host, or a kind of hosts, and its change.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Written {
    pub(super) name: String,
    /// Release of the kernel before the change.
    pub(super) kernel: String,
    /// `KEY=VALUE` of the change, as `predict --set` takes it.
    change: Vec<String>,
    /// The same change with keys of a scenario. Left out if `change` has these keys already.
    really: Option<String>,
    /// The scenario without its name and without what is usual. In that of a kind, numbers in `<>` differ between its hosts.
    scenario: String,
}

/// A file of `crates/dev/fleet`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(alias = "kind")]
    host: Vec<Written>,
}

/// Name and text of each of these files of a folder.
macro_rules! files {
    ($folder:literal: $($name:literal)*) => {
        &[$(($name, include_str!(concat!("../../fleet/", $folder, "/", $name, ".toml")))),*]
    };
}

/// Groups of kinds, oldest first.
const GROUPS: &[(&str, &str)] = files!["kinds":
    "third" "fourth" "fifth" "sixth" "seventh" "eighth" "ninth" "tenth"
    "eleventh" "twelfth" "thirteenth" "fourteenth" "fifteenth" "sixteenth" "seventeenth" "eighteenth"
    "nineteenth" "twentieth" "twentyfirst" "twentysecond" "twentythird" "twentyfourth"
    "twentyfifth" "twentysixth" "twentyseventh" "twentyeighth" "twentyninth" "thirtieth" "thirtyfirst"];

/// Lists of single hosts, oldest first.
const LISTS: &[(&str, &str)] = files!["hosts":
    "unseen" "lifelike" "second" "third" "fourth" "fifth" "sixth" "seventh"
    "eighth" "ninth" "tenth" "eleventh" "twelfth" "thirteenth" "fourteenth" "fifteenth" "sixteenth"
    "seventeenth" "eighteenth" "nineteenth" "twentieth" "twentyfirst" "twentysecond"
    "twentythird" "twentyfourth" "twentyfifth" "twentysixth" "twentyseventh" "twentyeighth" "twentyninth"];

type Read = BTreeMap<&'static str, Result<Vec<Written>, String>>;

/// What the files of the groups say.
static KINDS: LazyLock<Read> = LazyLock::new(|| read(GROUPS));
/// What the files of the lists say.
static HOSTS: LazyLock<Read> = LazyLock::new(|| read(LISTS));

fn read(files: &[(&'static str, &'static str)]) -> Read {
    let hosts = |text: &str| toml::from_str::<File>(text).map(|file| file.host).map_err(|error| error.to_string());
    files.iter().map(|(name, text)| (*name, hosts(text))).collect()
}

fn of(all: &'static Read, name: &str) -> Result<&'static [Written], Failure> {
    let read = all.get(name).ok_or_else(|| Failure::input(format!("{name}: unknown list of hosts")))?;
    read.as_deref().map_err(|error| Failure::input(format!("{name}: {error}")))
}

/// Names of the groups of kinds, oldest first.
pub(super) fn groups() -> impl Iterator<Item = &'static str> {
    GROUPS.iter().map(|(name, _)| *name)
}

/// Names of the lists of hosts, oldest first.
pub(super) fn lists() -> impl Iterator<Item = &'static str> {
    LISTS.iter().map(|(name, _)| *name)
}

/// The kinds of a group.
///
/// # Errors
/// The name is not one of [`groups`], or its file cannot be read or has a key of lists.
pub(super) fn kinds(group: &str) -> Result<&'static [Written], Failure> {
    let kinds = of(&KINDS, group)?;
    // Each host of a kind is changed by keys.
    match kinds.iter().find(|kind| kind.really.is_some()) {
        Some(kind) => Err(Failure::input(format!("{}: invalid key \"really\": a kind has none", kind.name))),
        None => Ok(kinds),
    }
}

/// Returns the kinds of a file outside the groups, such as a group that is being written. They stay in memory until the program ends.
///
/// # Errors
/// The file cannot be read, or has a key of lists.
pub(super) fn kinds_of_file(path: &Path) -> Result<&'static [Written], Failure> {
    let wrong = |why: &dyn std::fmt::Display| Failure::input(format!("{}: {why}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| wrong(&error))?;
    let kinds = toml::from_str::<File>(&text).map_err(|error| wrong(&error))?.host;
    match kinds.iter().find(|kind| kind.really.is_some()) {
        Some(kind) => Err(wrong(&format!("{}: invalid key \"really\": a kind has none", kind.name))),
        None => Ok(kinds.leak()),
    }
}

/// The hosts of a list.
///
/// # Errors
/// The name is not one of [`lists`], or its file cannot be read.
pub(super) fn hosts(list: &str) -> Result<&'static [Written], Failure> {
    of(&HOSTS, list)
}

impl Written {
    /// `KEY=VALUE` of the change.
    pub(super) fn change(&self) -> Vec<&str> {
        self.change.iter().map(String::as_str).collect()
    }

    /// The host as it is and after its change, each with its kernel.
    ///
    /// # Errors
    /// The scenario or the change cannot be read.
    pub(super) fn scenarios(&self) -> Result<[(Scenario, KernelVersion); 2], Failure> {
        let of = if self.really.is_some() { made::varied } else { made::changed };
        of(&self.text(), &self.kernel, &self.change(), &self.name)
    }

    /// The scenario with a name. If the change is in the words of a scenario, variant `now` is the host as it is, and `then` the changed one.
    pub(super) fn text(&self) -> String {
        let mut text =
            format!("name = \"written\"\nsummary = \"a host of the generated fleet\"\n{}", with_usual(&self.scenario));
        if let Some(really) = &self.really {
            text.push_str(&format!("[variants.now]\n[variants.then]\n{really}\n"));
        }
        text
    }

    /// The scenario of one host of a kind: each `<N>` is between 75 % and 130 % of N, and N itself on the first host.
    pub(super) fn text_of(&self, host: u64) -> String {
        let mut text = String::new();
        let whole = self.text();
        let mut parts = whole.split(['<', '>']);
        text.push_str(parts.next().unwrap_or_default());
        let mut by = 0;
        while let (Some(number), Some(rest)) = (parts.next(), parts.next()) {
            by += 1;
            let number = match number.parse::<u64>() {
                Ok(number) => super::kinds::vary(host, number, by),
                Err(_) => host,
            };
            text.push_str(&number.to_string());
            text.push_str(rest);
        }
        text
    }
}
