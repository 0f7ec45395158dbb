// SPDX-License-Identifier: MIT OR Apache-2.0
//! Facts about the machine: reads everything that hardly ever changes into plain [`HostFacts`]. Decides nothing. Every
//! file that could not be read is a named gap. Not the hot path: each file is read once, by its path.

mod bdi;
mod block;
mod cgroups;
mod journald;
mod kernel;
pub(crate) mod mounts;
mod names;
mod sysctl;

use crate::parse::Flaw;
use crate::root::{EntryKind, HostRoot, SMALL};
use floodline_record::facts::HostFacts;
use floodline_record::gap::{Cause, Gap, Source};
use floodline_record::name::Name;
use std::collections::BTreeMap;

/// The facts about a machine, and the gaps in them.
#[derive(Clone, Debug, Default)]
pub struct Probe {
    /// The machine.
    pub facts: HostFacts,
    /// What could not be read, and why.
    pub gaps: Vec<Gap>,
}

/// Probes a machine.
pub fn probe(root: &HostRoot) -> Probe {
    let mut prober = Prober { root, facts: HostFacts::default(), gaps: Vec::new() };
    kernel::probe(&mut prober);
    mounts::probe(&mut prober);
    cgroups::probe(&mut prober);
    block::probe(&mut prober);
    bdi::probe(&mut prober);
    journald::probe(&mut prober);
    sysctl::probe(&mut prober);
    names::probe(&mut prober);
    Probe { facts: prober.facts, gaps: prober.gaps }
}

/// Maximum number of gaps with the same source and cause. The last one counts the rest.
const GAPS_ALIKE: usize = 8;

/// State of a running probe.
struct Prober<'a> {
    root: &'a HostRoot,
    facts: HostFacts,
    gaps: Vec<Gap>,
}

impl Prober<'_> {
    /// Reads a file that should exist. A missing file is a gap.
    fn expect(&mut self, source: Source, path: &[u8], limit: usize) -> Option<Vec<u8>> {
        match self.root.read(path, limit) {
            Ok(content) => Some(content),
            Err(cause) => {
                self.gap(source, cause, path);
                None
            }
        }
    }

    /// Reads a file that may be absent on a healthy machine. Only an unreadable file is a gap.
    fn maybe(&mut self, source: Source, path: &[u8]) -> Option<Vec<u8>> {
        match self.root.read(path, SMALL) {
            Ok(content) => Some(content),
            Err(Cause::NotFound | Cause::Vanished) => None,
            // `wbt_lat_usec` of a queue without writeback throttling exists but is not readable.
            Err(Cause::Io { errno }) if errno == rustix::io::Errno::INVAL.raw_os_error() => None,
            Err(cause) => {
                self.gap(source, cause, path);
                None
            }
        }
    }

    /// Drop-ins of several folders, from the lowest rank to the highest, in the order in which they are read: by file
    /// name, and of two with one name the one of the higher rank. One that is a link to `/dev/null` masks those of
    /// lower rank and says nothing itself.
    fn drop_ins(&mut self, source: Source, folders: &[&[u8]]) -> Vec<Vec<u8>> {
        let mut by_name: BTreeMap<Box<[u8]>, Option<Vec<u8>>> = BTreeMap::new();
        for folder in folders {
            let entries = match self.root.list_dir(folder) {
                Ok(entries) => entries,
                Err(Cause::NotFound) => continue,
                Err(cause) => {
                    self.gap(source, cause, folder);
                    continue;
                }
            };
            for entry in entries.into_iter().filter(|entry| entry.name.ends_with(b".conf")) {
                let path = join(folder, &entry.name);
                let is_mask = entry.kind == EntryKind::Link
                    && self.root.read_link(&path).is_ok_and(|target| target == b"/dev/null");
                by_name.insert(entry.name, (!is_mask).then_some(path));
            }
        }
        by_name.into_values().flatten().collect()
    }

    /// One line of text from a file that may be absent.
    fn text(&mut self, source: Source, path: &[u8]) -> Option<Name> {
        self.maybe(source, path).map(|content| Name::new(first_line(&content)))
    }

    /// A value from a file that may be absent.
    fn value<T>(&mut self, source: Source, path: &[u8], parse: impl Fn(&[u8]) -> Result<T, Flaw>) -> Option<T> {
        let content = self.maybe(source, path)?;
        match parse(&content) {
            Ok(value) => Some(value),
            Err(flaw) => {
                self.gap(source, Cause::Malformed { what: flaw.0.into() }, path);
                None
            }
        }
    }

    fn gap(&mut self, source: Source, cause: Cause, path: &[u8]) {
        let like = |gap: &Gap| gap.source == source && gap.cause == cause;
        if self.gaps.iter().filter(|gap| like(gap)).count() >= GAPS_ALIKE
            && let Some(last) = self.gaps.iter_mut().rfind(|gap| like(gap))
        {
            last.times = last.times.saturating_add(1);
            return;
        }
        self.gaps.push(Gap::detailed(source, cause, Name::new(path).to_string()));
    }
}

/// The first line without its newline.
fn first_line(content: &[u8]) -> &[u8] {
    content.split(|&byte| byte == b'\n').next().unwrap_or_default()
}

/// Joins a folder and a name.
fn join(folder: &[u8], name: &[u8]) -> Vec<u8> {
    [folder, b"/", name].concat()
}
