// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a journal holds, and what damage does to it.

use super::*;
use floodline_analysis::change::{Fingerprint, SCHEMA};

pub(crate) fn planned() -> Planned {
    Planned {
        id: 0,
        boot_id: Some("b".to_owned()),
        deadline_ns: 5,
        who: Who::default(),
        plan_sha256: sha256(b""),
        plan: ChangePlan {
            schema: SCHEMA.to_owned(),
            fingerprint: Fingerprint::default(),
            changes: Vec::new(),
            rules: Vec::new(),
            evidence: Vec::new(),
            expected: Vec::new(),
            arithmetic_only: None,
            longest_pause_s: 0.2,
            endpoint: "stall_seconds_per_hour".to_owned(),
            boot: Vec::new(),
            undo: Vec::new(),
            ramp: None,
        },
        slots: Vec::new(),
        persist: false,
        probe: None,
    }
}

fn store() -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    (folder, store)
}

/// A journal of three lines whose text is changed; what reading it answers.
fn check(change: impl FnOnce(Vec<u8>) -> Vec<u8>, expect: &str) {
    let (_folder, store) = store();
    let mut journal = store.create(planned()).unwrap();
    journal.append(Entry::Applied).unwrap();
    journal.append(Entry::Confirmed { who: Who::default() }).unwrap();
    let path = journal.path().to_owned();
    std::fs::write(&path, change(std::fs::read(&path).unwrap())).unwrap();
    let found = match store.read(1) {
        Ok(Some(journal)) => format!("{:?} {} {}", journal.phase(), journal.entries.len(), journal.is_cut),
        Ok(None) => "never started".to_owned(),
        Err(error) => error.to_string().replace(&path.display().to_string(), "J"),
    };
    assert_eq!(found, expect);
}

#[test]
fn damage_is_reported_and_a_cut_end_counts_as_never_written() {
    check(|bytes| bytes, "Confirmed 3 false");
    check(|bytes| [&bytes[..], b"\0\0\0"].concat(), "Confirmed 3 false");
    check(|bytes| bytes[..bytes.len() - 3].to_vec(), "Waiting 2 true");
    check(|_| Vec::new(), "never started");
    check(|bytes| bytes[..10].to_vec(), "never started");
    let replaced = |from: &'static str, to: &'static str| {
        move |bytes: Vec<u8>| String::from_utf8(bytes).unwrap().replacen(from, to, 1).into_bytes()
    };
    check(replaced("\"deadline_ns\":5", "\"deadline_ns\":6"), "J is damaged at line 1: its hash does not match");
    check(replaced("applied", "deplaid"), "J is damaged at line 2: its hash does not match");
    let without_second = |bytes: Vec<u8>| {
        let text = String::from_utf8(bytes).unwrap();
        text.lines()
            .enumerate()
            .filter(|(at, _)| *at != 1)
            .map(|(_, line)| format!("{line}\n"))
            .collect::<String>()
            .into_bytes()
    };
    check(without_second, "J is damaged at line 2: its hash does not match");
}

#[test]
fn why_a_step_was_undone_is_kept_and_an_old_journal_is_read() {
    let (_folder, store) = store();
    for why in [Why::BoundBroken, Why::ValueChanged, Why::WriteFailed] {
        let mut journal = store.create(planned()).unwrap();
        let id = journal.id;
        journal.append(Entry::PutBack { why: why.clone(), outcomes: Vec::new(), took_ns: None }).unwrap();
        assert_eq!(store.read(id).unwrap().unwrap().phase(), Phase::Ended(why));
    }
    // As versions before wrote a bound that did not hold.
    let old: Why = serde_json::from_str("\"write_failed\"").unwrap();
    assert_eq!(crate::rollback::because(&old), "a write failed");
}

#[test]
fn a_newer_version_is_named() {
    let (_folder, store) = store();
    let json = r#"{"version":2,"entry":"unheard_of"}"#;
    std::fs::write(store.path(1), format!("{} {json}\n", chained(START, json))).unwrap();
    let error = store.read(1).unwrap_err().to_string();
    assert!(error.ends_with("0001.journal has format version 2; this program reads version 1"), "{error}");
}

#[test]
fn an_entry_after_a_cut_line_continues_the_chain() {
    let (_folder, store) = store();
    let mut journal = store.create(planned()).unwrap();
    journal.append(Entry::Applied).unwrap();
    let bytes = std::fs::read(journal.path()).unwrap();
    std::fs::write(journal.path(), &bytes[..bytes.len() - 5]).unwrap();
    let mut journal = store.read(1).unwrap().unwrap();
    assert!(journal.is_cut);
    journal.append(Entry::Persisted).unwrap();
    assert_eq!(store.read(1).unwrap().unwrap().phase(), Phase::Persisted);
}

#[test]
fn one_process_at_a_time_changes_the_host() {
    let (_folder, store) = store();
    let lock = store.lock().unwrap();
    assert!(lock.is_some());
    assert!(store.lock().unwrap().is_none());
    drop(lock);
    assert!(store.lock().unwrap().is_some());
}

#[test]
fn numbers_go_on_from_the_last() {
    let (_folder, store) = store();
    assert_eq!(store.create(planned()).unwrap().id, 1);
    assert_eq!(store.create(planned()).unwrap().id, 2);
    assert_eq!(store.ids().unwrap(), [1, 2]);
}

#[test]
fn a_session_that_began_elsewhere_is_not_known() {
    assert_eq!(session_in("214 (floodline) R 213 200 199 0 -1 4194304"), Some(199));
    assert_eq!(session_in("214 (a) b) R 1 0 0 0 -1 4194304"), None);
    assert_eq!(session_in("214"), None);
    assert!(Who::here().session.is_none_or(|session| session > 0));
}
