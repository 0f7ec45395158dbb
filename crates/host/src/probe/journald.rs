// SPDX-License-Identifier: MIT OR Apache-2.0
//! How the journal is stored: journald's configuration as systemd itself merges it (systemd's
//! documentation: systemd-system.conf(5), journald.conf(5)). The main file, then drop-ins in order of
//! their file names; of two drop-ins with one name the one in the folder of higher rank counts.

use super::Prober;
use floodline_record::facts::Journald;
use floodline_record::gap::{Cause, Source};
use floodline_record::name::Name;
use floodline_record::units::Nanos;

/// The main file is the first of these that exists.
const MAIN: [&[u8]; 4] = [
    b"/etc/systemd/journald.conf",
    b"/run/systemd/journald.conf",
    b"/usr/local/lib/systemd/journald.conf",
    b"/usr/lib/systemd/journald.conf",
];

/// Folders of drop-ins, from the lowest rank to the highest.
const DROP_INS: [&[u8]; 4] = [
    b"/usr/lib/systemd/journald.conf.d",
    b"/usr/local/lib/systemd/journald.conf.d",
    b"/run/systemd/journald.conf.d",
    b"/etc/systemd/journald.conf.d",
];

const PROGRAM: &[u8] = b"/usr/lib/systemd/systemd-journald";
/// Where a persistent journal is kept; with `Storage=auto` its existence decides.
const PERSISTENT: &[u8] = b"/var/log/journal";
const STORAGE_DEFAULT: &str = "auto";
const SYNC_INTERVAL_DEFAULT: Nanos = Nanos(300 * Nanos::SECOND.0);

pub(super) fn probe(prober: &mut Prober<'_>) {
    let main = MAIN.iter().find(|path| prober.root.exists(path) == Ok(true));
    if main.is_none() && prober.root.exists(PROGRAM) != Ok(true) {
        return;
    }
    let mut settings = Settings::default();
    let mut files = Vec::new();
    for path in main.map(|path| path.to_vec()).into_iter().chain(prober.drop_ins(Source::JournaldConf, &DROP_INS)) {
        if let Some(content) = prober.maybe(Source::JournaldConf, &path) {
            let flawed = settings.merge(&content);
            if let Some(what) = flawed {
                prober.gap(Source::JournaldConf, Cause::Malformed { what: what.into() }, &path);
            }
            files.push(Name::new(&path));
        }
    }
    let storage = settings.storage.unwrap_or_else(|| STORAGE_DEFAULT.to_owned());
    let persistent = match storage.as_str() {
        "persistent" => Some(true),
        "volatile" | "none" => Some(false),
        "auto" => prober.root.exists(PERSISTENT).ok(),
        _ => None,
    };
    let sync_interval = Some(settings.sync_interval.unwrap_or(SYNC_INTERVAL_DEFAULT));
    prober.facts.journald = Some(Journald { storage: storage.into(), persistent, sync_interval, files });
}

/// Settings merged from the files. A later file wins, and an empty value restores the default.
#[derive(Debug, Default, PartialEq)]
struct Settings {
    storage: Option<String>,
    sync_interval: Option<Nanos>,
}

impl Settings {
    /// Adds one file. Lines that systemd ignores with a warning are ignored, and reported.
    fn merge(&mut self, content: &[u8]) -> Option<String> {
        let mut flawed = None;
        let mut in_journal = false;
        for line in content.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii) {
            match line.first() {
                None | Some(b'#' | b';') => continue,
                Some(b'[') => {
                    in_journal = line == b"[Journal]";
                    continue;
                }
                Some(_) if !in_journal => continue,
                Some(_) => {}
            }
            let Some(at) = line.iter().position(|&byte| byte == b'=') else { continue };
            let (key, value) = (line[..at].trim_ascii(), line[at + 1..].trim_ascii());
            match (key, value) {
                (b"Storage", b"") => self.storage = None,
                (b"Storage", value) => match storage(value) {
                    Some(storage) => self.storage = Some(storage.to_owned()),
                    None => flawed = Some(format!("Storage={}", Name::new(value))),
                },
                (b"SyncIntervalSec", b"") => self.sync_interval = None,
                (b"SyncIntervalSec", value) => match time_span(value) {
                    Some(span) => self.sync_interval = Some(span),
                    None => flawed = Some(format!("SyncIntervalSec={}", Name::new(value))),
                },
                _ => {}
            }
        }
        flawed
    }
}

fn storage(value: &[u8]) -> Option<&'static str> {
    ["auto", "persistent", "volatile", "none"].into_iter().find(|known| known.as_bytes() == value)
}

/// Units of systemd's time spans (systemd.time(7)), nanoseconds each.
const UNITS: &[(&str, u64)] = &[
    ("", 1_000_000_000),
    ("us", 1_000),
    ("usec", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("msec", 1_000_000),
    ("s", 1_000_000_000),
    ("sec", 1_000_000_000),
    ("second", 1_000_000_000),
    ("seconds", 1_000_000_000),
    ("m", 60_000_000_000),
    ("min", 60_000_000_000),
    ("minute", 60_000_000_000),
    ("minutes", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("hr", 3_600_000_000_000),
    ("hour", 3_600_000_000_000),
    ("hours", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
    ("day", 86_400_000_000_000),
    ("days", 86_400_000_000_000),
    ("w", 604_800_000_000_000),
    ("week", 604_800_000_000_000),
    ("weeks", 604_800_000_000_000),
];

/// Parses a time span: "5min", "1h 30s", "300", "infinity".
fn time_span(value: &[u8]) -> Option<Nanos> {
    let mut rest = std::str::from_utf8(value).ok()?.trim();
    if rest == "infinity" {
        return Some(Nanos(u64::MAX));
    }
    let mut sum: u64 = 0;
    let mut parts = 0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let number: u64 = rest[..digits].parse().ok()?;
        rest = rest[digits..].trim_start();
        let letters = rest.find(|c: char| c.is_ascii_digit() || c.is_whitespace()).unwrap_or(rest.len());
        let (_, unit) = UNITS.iter().find(|(name, _)| *name == &rest[..letters])?;
        sum = sum.checked_add(number.checked_mul(*unit)?)?;
        rest = rest[letters..].trim_start();
        parts += 1;
    }
    (parts > 0).then_some(Nanos(sum))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root::HostRoot;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn probe_tree(files: &[(&str, &str)], links: &[(&str, &str)], folders: &[&str]) -> Option<Journald> {
        let tree = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let path = tree.path().join(path.trim_start_matches('/'));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        for (path, target) in links {
            let path = tree.path().join(path.trim_start_matches('/'));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            symlink(target, path).unwrap();
        }
        for folder in folders {
            fs::create_dir_all(tree.path().join(folder.trim_start_matches('/'))).unwrap();
        }
        let root = HostRoot::at(tree.path()).unwrap();
        let mut prober = Prober { root: &root, facts: Default::default(), gaps: Vec::new() };
        probe(&mut prober);
        prober.facts.journald
    }

    #[test]
    fn a_host_without_journald_has_no_journal() {
        assert_eq!(probe_tree(&[], &[], &[]), None);
    }

    #[test]
    fn by_default_the_folder_decides_whether_the_journal_is_kept() {
        let main = ("/etc/systemd/journald.conf", "[Journal]\n#Storage=volatile\n");
        assert_eq!(probe_tree(&[main], &[], &[]).unwrap().persistent, Some(false));
        let kept = probe_tree(&[main], &[], &["/var/log/journal"]).unwrap();
        assert_eq!((kept.storage.as_str(), kept.persistent), ("auto", Some(true)));
        assert_eq!(kept.sync_interval, Some(SYNC_INTERVAL_DEFAULT));
    }

    #[test]
    fn drop_ins_are_read_by_name_and_the_highest_folder_counts() {
        let journald = probe_tree(
            &[
                ("/etc/systemd/journald.conf", "[Journal]\nStorage=none\n"),
                ("/usr/lib/systemd/journald.conf.d/50-a.conf", "[Journal]\nStorage=persistent\n"),
                ("/etc/systemd/journald.conf.d/50-a.conf", "[Journal]\nSyncIntervalSec=1min 30s\n"),
                ("/run/systemd/journald.conf.d/10-b.conf", "[Journal]\nStorage=volatile\n"),
                ("/etc/systemd/journald.conf.d/notes.txt", "[Journal]\nStorage=persistent\n"),
            ],
            &[],
            &[],
        )
        .unwrap();
        assert_eq!((journald.storage.as_str(), journald.persistent), ("volatile", Some(false)));
        assert_eq!(journald.sync_interval, Some(Nanos(90 * Nanos::SECOND.0)));
        assert_eq!(journald.files.len(), 3);
    }

    #[test]
    fn a_link_to_dev_null_masks_a_drop_in() {
        let journald = probe_tree(
            &[
                ("/etc/systemd/journald.conf", ""),
                ("/usr/lib/systemd/journald.conf.d/a.conf", "[Journal]\nStorage=persistent\n"),
            ],
            &[("/etc/systemd/journald.conf.d/a.conf", "/dev/null")],
            &[],
        )
        .unwrap();
        assert_eq!(journald.storage, "auto");
    }

    #[test]
    fn later_assignments_win_and_an_empty_one_resets() {
        let check = |content: &str, storage: Option<&str>| {
            let mut settings = Settings::default();
            settings.merge(content.as_bytes());
            assert_eq!(settings.storage.as_deref(), storage, "{content}");
        };
        check("[Journal]\nStorage=none\nStorage = volatile\n", Some("volatile"));
        check("[Journal]\nStorage=none\nStorage=\n", None);
        check("Storage=none\n", None);
        check("[Other]\nStorage=none\n", None);
        check("[Journal]\nStorage=somewhere\n", None);
        check("[Journal]\n; Storage=none\n", None);
    }

    #[test]
    fn time_spans_are_read_as_systemd_reads_them() {
        let check = |text: &str, expect: Option<u64>| {
            assert_eq!(time_span(text.as_bytes()), expect.map(|s| Nanos(s * Nanos::SECOND.0)), "{text}");
        };
        check("300", Some(300));
        check("5min", Some(300));
        check("1h 30s", Some(3630));
        check("2 min", Some(120));
        check("1d", Some(86_400));
        check("", None);
        check("soon", None);
        check("5 parsecs", None);
        check("99999999999999999999", None);
    }

    #[test]
    fn any_bytes_are_survived() {
        bolero::check!().for_each(|bytes: &[u8]| {
            let mut settings = Settings::default();
            settings.merge(bytes);
            let _ = time_span(bytes);
        });
    }
}
