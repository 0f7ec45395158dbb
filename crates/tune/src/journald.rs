// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where journald keeps its journal: `Storage=` of its configuration, as `journald.conf(5)` describes the files. A change
//! that waits for its confirmation is a drop-in below `/run`, which a reboot removes. A confirmed one is below `/etc`.

use crate::host::Host;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

/// Name of the knob.
pub const KNOB: &str = floodline_analysis::change::JOURNALD_STORAGE;
/// File of a change that waits. Its name comes after that of [`KEPT`], so that it wins while it is there.
pub const NOW: &str = "run/systemd/journald.conf.d/99-zz-floodline.now.conf";
/// File of a confirmed change.
pub const KEPT: &str = floodline_analysis::plan::JOURNALD_DROP_IN.split_at(1).1;
/// Value of a file that sets nothing.
pub const UNSET: &str = "unset";
/// Values of `Storage=`, and [`UNSET`].
pub const VALUES: &[&str] = &["auto", "none", "persistent", "volatile", UNSET];

/// Folders of configuration below the root, the strongest first.
const FOLDERS: [&str; 5] = ["etc/systemd", "run/systemd", "usr/local/lib/systemd", "usr/lib/systemd", "lib/systemd"];
/// Time that systemd has to start journald again.
const START_MAX: Duration = Duration::from_secs(20);
/// Name of the process: the kernel keeps 15 bytes of it.
const COMM: &str = "systemd-journal";

/// A setting, and the file that decides it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Storage {
    /// Value.
    pub value: String,
    /// Path on the host; `None` for the default of journald.
    pub by: Option<String>,
}

/// Text of a drop-in that sets a value.
pub fn drop_in(value: &str) -> String {
    format!("[Journal]\nStorage={value}\n")
}

/// `Storage=` of a text, without taking memory. The last line counts.
pub fn storage_in(text: &[u8]) -> Option<&[u8]> {
    let mut is_journal = false;
    let mut found = None;
    for line in text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii) {
        if line.starts_with(b"[") {
            is_journal = line == b"[Journal]";
        } else if is_journal && let Some(rest) = line.strip_prefix(b"Storage") {
            found = rest.trim_ascii_start().strip_prefix(b"=").map(<[u8]>::trim_ascii).or(found);
        }
    }
    found
}

/// What journald reads when it starts, with further files (path and text). `at_boot` leaves out what is below `/run`.
pub fn storage(host: &Host, at_boot: bool, with: &[(&str, &str)]) -> Storage {
    let mut names: BTreeMap<String, (usize, String, String)> = BTreeMap::new();
    let mut take = |rank: usize, path: String, text: String| {
        let name = path.rsplit('/').next().unwrap_or_default().to_owned();
        if names.get(&name).is_none_or(|(known, _, _)| rank <= *known) {
            names.insert(name, (rank, path, text));
        }
    };
    let mut main = None;
    for (rank, folder) in FOLDERS.iter().enumerate() {
        if at_boot && folder.starts_with("run/") {
            continue;
        }
        let path = format!("{folder}/journald.conf");
        if let (None, Ok(text)) = (&main, host.read(&path)) {
            main = Some((path, text));
        }
        let folder = format!("{folder}/journald.conf.d");
        let entries = std::fs::read_dir(host.path(&folder)).into_iter().flatten().flatten();
        for name in entries.filter_map(|entry| entry.file_name().into_string().ok()) {
            if Path::new(&name).extension().is_some_and(|end| end == "conf") {
                let path = format!("{folder}/{name}");
                // A link to /dev/null reads as empty, and hides its name elsewhere.
                let text = host.read(&path).unwrap_or_default();
                take(rank, path, text);
            }
        }
        let ours = with.iter().filter(|(path, _)| path.rsplit_once('/').is_some_and(|(parent, _)| parent == folder));
        ours.for_each(|(path, text)| take(rank, (*path).to_owned(), (*text).to_owned()));
    }
    let mut storage = Storage { value: "auto".to_owned(), by: None };
    for (path, text) in main.into_iter().chain(names.into_values().map(|(_, path, text)| (path, text))) {
        if let Some(value) = storage_in(text.as_bytes()) {
            let value = String::from_utf8_lossy(value).into_owned();
            // An empty value is the default.
            storage = Storage { value: if value.is_empty() { "auto".to_owned() } else { value }, by: Some(path) };
        }
    }
    storage
}

/// Returns why journald would ignore the value in floodline's drop-in; `None` if it would use it.
pub fn refusal(host: &Host, at_boot: bool, value: &str) -> Option<String> {
    if value == UNSET {
        return None;
    }
    let found = storage(host, at_boot, &[(if at_boot { KEPT } else { NOW }, &drop_in(value))]);
    (found.value != value).then(|| {
        let by = found.by.map_or_else(|| "the default of journald".to_owned(), |path| format!("/{path}"));
        let when = if at_boot { "at boot journald" } else { "journald" };
        format!("{when} would use Storage={}, by {by}; wanted is {KNOB}={value}", found.value)
    })
}

/// The journald of the host itself: a child of the first process. Those of containers are not.
pub fn process(host: &Host) -> Option<Pid> {
    let entries = std::fs::read_dir(host.path("proc")).ok()?.flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let is_it = |pid: &i32| {
        let stat = host.line(&format!("proc/{pid}/stat")).unwrap_or_default();
        let Some((head, tail)) = stat.rsplit_once(')') else { return false };
        head.ends_with(&format!("({COMM}")) && tail.split_whitespace().nth(1) == Some("1")
    };
    pids.filter(is_it).find_map(Pid::from_raw)
}

/// Ends journald, which systemd starts again at once with the configuration of now. It looks through `/proc` and takes a
/// little memory: so it comes after every other setting was put back. An imitated host has no journald.
pub fn restart(host: &Host) {
    if !host.is_imitated()
        && let Some(pid) = process(host)
    {
        let _ = kill_process(pid, Signal::TERM);
    }
}

/// Whether another journald than this one runs, or does so within some seconds.
pub fn is_replaced(host: &Host, before: Option<Pid>) -> bool {
    let started = Instant::now();
    while started.elapsed() < START_MAX {
        if process(host).is_some_and(|now| Some(now) != before) {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host() -> (tempfile::TempDir, Host) {
        let folder = tempfile::tempdir().unwrap();
        let host = Host::below(folder.path());
        (folder, host)
    }

    fn write(folder: &tempfile::TempDir, path: &str, text: &str) {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    #[test]
    fn the_last_drop_in_decides_and_a_stronger_folder_hides_a_name() {
        let (folder, host) = host();
        let check = |at_boot, value: &str, by: Option<&str>| {
            let expect = Storage { value: value.to_owned(), by: by.map(str::to_owned) };
            assert_eq!(storage(&host, at_boot, &[]), expect);
        };
        check(false, "auto", None);
        write(&folder, "etc/systemd/journald.conf", "[Journal]\n#Storage=none\nStorage=persistent\n");
        check(false, "persistent", Some("etc/systemd/journald.conf"));
        write(&folder, "usr/lib/systemd/journald.conf.d/50-a.conf", "[Journal]\nStorage = none\n");
        check(false, "none", Some("usr/lib/systemd/journald.conf.d/50-a.conf"));
        write(&folder, "etc/systemd/journald.conf.d/50-a.conf", "[Journal]\nSystemMaxUse=1G\n");
        check(false, "persistent", Some("etc/systemd/journald.conf"));
        write(&folder, NOW, &drop_in("volatile"));
        check(false, "volatile", Some(NOW));
        check(true, "persistent", Some("etc/systemd/journald.conf"));
        write(&folder, KEPT, &drop_in("auto"));
        check(false, "volatile", Some(NOW));
        check(true, "auto", Some(KEPT));
        // A file of ours that sets nothing any more.
        write(&folder, NOW, "");
        check(false, "auto", Some(KEPT));
    }

    #[test]
    fn a_drop_in_that_wins_over_ours_is_named() {
        let (folder, host) = host();
        assert_eq!(refusal(&host, true, "volatile"), None);
        write(&folder, "etc/systemd/journald.conf.d/zz-site.conf", "[Journal]\nStorage=persistent\n");
        for (at_boot, expect) in [(true, "at boot journald would use"), (false, "journald would use")] {
            let why = refusal(&host, at_boot, "volatile").unwrap();
            assert!(why.starts_with(expect) && why.contains("/etc/systemd/journald.conf.d/zz-site.conf"), "{why}");
        }
    }

    #[test]
    fn journald_of_the_host_is_a_child_of_the_first_process() {
        let (folder, host) = host();
        write(&folder, "proc/80/stat", "80 (systemd-journal) S 70 80 80\n");
        assert_eq!(process(&host), None);
        write(&folder, "proc/81/stat", "81 (systemd-journal) S 1 81 81\n");
        assert_eq!(process(&host), Pid::from_raw(81));
    }
}
