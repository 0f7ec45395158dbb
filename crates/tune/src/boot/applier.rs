// SPDX-License-Identifier: MIT OR Apache-2.0
//! The programs that apply `sysctl.d`, and the rules in which they differ. What decides for a bytes/ratio pair is the
//! order of the writes, and each program has another one for a key that is set twice:
//!
//! | program | a key that was set before |
//! | --- | --- |
//! | systemd-sysctl | same value: keeps its place; other value: goes to the end |
//! | `sysctl --system` | every line is a write |
//! | TuneD (`reapply_sysctl`) | keeps its first place, with the new value |

use super::line::{Line, lines, matches};
use super::tree::{File, Folder, Tree};

/// A program that applies settings at boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applier {
    /// `systemd-sysctl`.
    Systemd,
    /// `sysctl --system` of procps.
    Procps,
    /// TuneD, which applies the files of the host again after its profile.
    Tuned,
}

/// One write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// Key with slashes.
    pub key: String,
    /// Value.
    pub value: String,
    /// File and line, as `PATH:LINE`.
    pub by: String,
}

/// A line and the file it is in.
type Placed<'a> = (Line, &'a File);

/// Keys that a glob is held against, in the order of `glob(3)`.
const KEYS: [&str; 8] = [
    "vm/dirty_background_bytes",
    "vm/dirty_background_ratio",
    "vm/dirty_bytes",
    "vm/dirty_expire_centisecs",
    "vm/dirty_ratio",
    "vm/dirty_writeback_centisecs",
    "vm/dirtytime_expire_seconds",
    "vm/laptop_mode",
];

impl Applier {
    /// All.
    pub const ALL: [Applier; 3] = [Applier::Systemd, Applier::Procps, Applier::Tuned];

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Applier::Systemd => "systemd-sysctl",
            Applier::Procps => "sysctl --system",
            Applier::Tuned => "TuneD",
        }
    }

    /// Where it is installed.
    pub(super) fn programs(self) -> &'static [&'static str] {
        match self {
            Applier::Systemd => &["usr/lib/systemd/systemd-sysctl", "lib/systemd/systemd-sysctl"],
            Applier::Procps => &["usr/sbin/sysctl", "sbin/sysctl", "usr/bin/sysctl"],
            Applier::Tuned => &["usr/sbin/tuned", "usr/bin/tuned"],
        }
    }

    /// Its writes, in order.
    pub fn assignments(self, tree: &Tree) -> Vec<Assignment> {
        match self {
            Applier::Systemd => {
                let files = tree.ordered(&Folder::ALL);
                written(folded(placed(&files), |before, after| before != after))
            }
            Applier::Procps => {
                // Its last file is always /etc/sysctl.conf.
                let mut files = tree.ordered(&Folder::ALL);
                files.extend(tree.conf());
                written(placed(&files))
            }
            Applier::Tuned => {
                let mut files = tree.ordered(&[Folder::Run, Folder::Etc]);
                files.extend(tree.conf());
                // TuneD supports neither globs nor exceptions.
                let plain = placed(&files).into_iter().filter(|(line, _)| !line.is_glob() && line.value.is_some());
                written(folded(plain.collect(), |_, _| false))
            }
        }
    }
}

fn placed<'a>(files: &[&'a File]) -> Vec<Placed<'a>> {
    let of = |file: &&'a File| {
        let file: &'a File = file;
        lines(file.text.as_deref().unwrap_or_default()).into_iter().map(move |line| (line, file)).collect::<Vec<_>>()
    };
    files.iter().flat_map(of).collect()
}

/// Keeps one line per key. `moves` returns true if a key that is set again moves to the end.
fn folded(all: Vec<Placed<'_>>, moves: impl Fn(&Option<String>, &Option<String>) -> bool) -> Vec<Placed<'_>> {
    let mut folded: Vec<Placed<'_>> = Vec::new();
    for (line, file) in all {
        match folded.iter().position(|(known, _)| known.key == line.key) {
            None => folded.push((line, file)),
            Some(at) if moves(&folded[at].0.value, &line.value) => {
                folded.remove(at);
                folded.push((line, file));
            }
            Some(at) if folded[at].0.value != line.value => folded[at] = (line, file),
            Some(_) => {}
        }
    }
    folded
}

/// Lines as writes. A glob writes what matches and has no line of its own.
fn written(all: Vec<Placed<'_>>) -> Vec<Assignment> {
    let is_named = |key: &str| all.iter().any(|(line, _)| line.key == key);
    let mut writes = Vec::new();
    for (line, file) in &all {
        let Some(value) = &line.value else { continue };
        let by = format!("{}:{}", file.path(), line.number);
        let mut write =
            |key: &str| writes.push(Assignment { key: key.to_owned(), value: value.clone(), by: by.clone() });
        if line.is_glob() {
            KEYS.iter().filter(|key| matches(&line.key, key) && !is_named(key)).for_each(|key| write(key));
        } else {
            write(&line.key);
        }
    }
    writes
}
