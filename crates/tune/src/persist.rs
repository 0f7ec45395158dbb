// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files that set a confirmed change again at boot: one in `sysctl.d`, one udev rule, one drop-in of journald. They are made when a change is
//! confirmed and never before, so that a reboot while it waits starts with the old setting. A file is replaced as a
//! whole (new file, sync, rename), and taken back only if it is still as it was written.

use crate::boot::{self, Outcome, Tree};
use crate::host::Host;
use crate::journal::{Filed, Planned};
use crate::journald;
use crate::slot::Slot;
use floodline_analysis::plan::SYSCTL_DROP_IN;
use rustix::fs::{Access, access};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// File for `vm.*`.
pub const SYSCTL: &str = SYSCTL_DROP_IN.split_at(1).1;
/// File for attributes of devices.
pub const UDEV: &str = "etc/udev/rules.d/99-zz-floodline.rules";

const HEAD: &str = "# Written by floodline when a change was confirmed. floodline rollback takes it back.\n";

/// The files of a change, or why its settings cannot be kept over a reboot.
pub fn files(host: &Host, planned: &Planned) -> Result<Vec<Filed>, String> {
    checked(host, &planned.slots)
}

/// The files of settings, if every program that applies `sysctl.d` on this host would leave the wanted values with them.
/// Otherwise the line that wins.
pub fn checked(host: &Host, slots: &[Slot]) -> Result<Vec<Filed>, String> {
    let files = render(host, slots)?;
    let mut tree = Tree::read(host);
    for file in files.iter().filter(|file| file.path == SYSCTL) {
        tree = tree.with(SYSCTL, &file.after);
    }
    for slot in slots.iter().filter(|slot| slot.is_journald()) {
        let value = slot.writes.last().map(|write| write.value.as_str()).unwrap_or_default();
        if let Some(why) = journald::refusal(host, true, value) {
            return Err(why);
        }
    }
    for outcome in boot::outcomes(host, &tree) {
        for slot in slots {
            if let Some(why) = contradiction(&outcome, slot) {
                return Err(why);
            }
        }
    }
    Ok(files)
}

/// Why boot would leave another value than a slot wants.
pub fn contradiction(outcome: &Outcome, slot: &Slot) -> Option<String> {
    for (attribute, wanted) in slot.attributes.iter().zip(slot.wanted()?) {
        let key = format!("vm/{}", attribute.name.strip_prefix("vm.")?);
        let found = outcome.boot.value(&key);
        if found != wanted.parse().ok() {
            let by = outcome.boot.by(&key).unwrap_or("the kernel's default");
            let found = found.map_or_else(|| "another value".to_owned(), |found| found.to_string());
            return Some(format!(
                "at boot {} would set {}={found}, by {by}; wanted is {}",
                outcome.applier.name(),
                attribute.name,
                slot.new_shown()
            ));
        }
    }
    None
}

/// The files of settings.
pub fn render(host: &Host, slots: &[Slot]) -> Result<Vec<Filed>, String> {
    let (mut sysctls, mut rules, mut journal) = (Vec::new(), Vec::new(), Vec::new());
    for slot in slots {
        let Some(write) = slot.writes.last() else { continue };
        let name = slot.name(write);
        if name.starts_with("vm.") {
            let members: Vec<&str> = slot.attributes.iter().map(|attribute| attribute.name.as_str()).collect();
            sysctls.push((members, format!("{name} = {}", write.value)));
        } else if slot.is_journald() {
            let text = if write.value == journald::UNSET { String::new() } else { journald::drop_in(&write.value) };
            let before = host.read(journald::KEPT).ok();
            journal.push(Filed { path: journald::KEPT.to_owned(), before, after: format!("{HEAD}{text}") });
        } else {
            let (key, line) = rule(name, &write.value)?;
            rules.push((vec![key], line));
        }
    }
    let mut files = Vec::new();
    let sysctl_key = |line: &str| line.split_once('=').map(|(key, _)| key.trim().to_owned()).unwrap_or_default();
    if !sysctls.is_empty() {
        let is_of = |line: &str, members: &Vec<&str>| members.contains(&sysctl_key(line).as_str());
        files.push(merged(host, SYSCTL, &sysctls, is_of));
    }
    if !rules.is_empty() {
        files.push(merged(host, UDEV, &rules, |line, keys: &Vec<String>| {
            keys.iter().any(|key| line.contains(key.as_str()))
        }));
    }
    files.append(&mut journal);
    Ok(files)
}

/// A udev rule: what it has in common with an older one for the same attribute, and all of it.
fn rule(name: &str, value: &str) -> Result<(String, String), String> {
    let parts: Vec<&str> = name.split('/').collect();
    match parts.as_slice() {
        ["bdi", bdi, attribute] => {
            let key = format!("SUBSYSTEM==\"bdi\", KERNEL==\"{bdi}\", ATTR{{{attribute}}}=");
            Ok((key.clone(), format!("ACTION==\"add|change\", {key}\"{value}\"")))
        }
        ["queue", device, attribute] => {
            let key = format!("SUBSYSTEM==\"block\", KERNEL==\"{device}\", ATTR{{queue/{attribute}}}=");
            Ok((key.clone(), format!("ACTION==\"add|change\", {key}\"{value}\"")))
        }
        ["cgroup", ..] => Err(format!(
            "{name} belongs to the unit or container of its cgroup: set it there (MemoryHigh=, MemoryMax=, \
             IOWriteBandwidthMax=)"
        )),
        _ => Err(format!(
            "{name} belongs to the program that makes the loop device: set it there (losetup --direct-io=on)"
        )),
    }
}

/// A file of ours with lines added; older lines for the same attributes go.
fn merged<K>(host: &Host, path: &str, lines: &[(K, String)], is_of: impl Fn(&str, &K) -> bool) -> Filed {
    let before = host.read(path).ok();
    let mut after = HEAD.to_owned();
    let kept = before.as_deref().unwrap_or_default().lines();
    let kept = kept.filter(|line| !line.starts_with('#') && !lines.iter().any(|(key, _)| is_of(line, key)));
    for line in kept.chain(lines.iter().map(|(_, line)| line.as_str())) {
        after.push_str(line);
        after.push('\n');
    }
    Filed { path: path.to_owned(), before, after }
}

/// Why files cannot be written below `/etc`; `None` if they can.
pub fn refusal(host: &Host) -> Option<String> {
    let etc = host.path("etc");
    access(&etc, Access::WRITE_OK).err().map(|errno| format!("cannot write below /etc: {}", io::Error::from(errno)))
}

/// Writes a file as a whole. Nothing is written if it is there already.
pub fn write(host: &Host, file: &Filed) -> io::Result<()> {
    if host.read(&file.path).is_ok_and(|text| text == file.after) {
        return Ok(());
    }
    replace(&host.path(&file.path), &file.after)
}

fn replace(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().ok_or(io::ErrorKind::NotFound)?;
    std::fs::create_dir_all(folder)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // Boot reads no file of such a name.
    let new = folder.join(format!(".{name}.new"));
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o644).open(&new)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&new, path)?;
    File::open(folder)?.sync_all()
}

/// Takes a file back to what it was. Returns false if another program changed it since: then it stays.
pub fn take_back(host: &Host, file: &Filed) -> io::Result<bool> {
    let path = host.path(&file.path);
    match (host.read(&file.path).ok(), &file.before) {
        (now, before) if now == *before => Ok(true),
        (Some(now), _) if now != file.after => Ok(false),
        (_, Some(before)) => replace(&path, before).map(|()| true),
        (_, None) => {
            std::fs::remove_file(&path)?;
            File::open(path.parent().ok_or(io::ErrorKind::NotFound)?)?.sync_all()?;
            Ok(true)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::knob::{Access, Attribute};
    use crate::slot::Write;

    fn slot(names: &[&str], at: usize, value: &str) -> Slot {
        let attribute = |name: &&str| Attribute { name: (*name).to_owned(), path: String::new(), access: Access::File };
        Slot {
            attributes: names.iter().map(attribute).collect(),
            state: names.len(),
            is_exact: true,
            old: vec!["0".to_owned(); names.len()],
            writes: vec![Write::new(at, value)],
            undo: Vec::new(),
            back: Vec::new(),
        }
    }

    const DIRTY: &[&str] = &["vm.dirty_bytes", "vm.dirty_ratio"];

    #[test]
    fn a_newer_change_replaces_both_members_of_a_pair_and_keeps_the_rest() {
        let folder = tempfile::tempdir().unwrap();
        let host = Host::below(folder.path());
        let first = render(&host, &[slot(DIRTY, 1, "20"), slot(&["vm.laptop_mode"], 0, "5")]).unwrap();
        write(&host, &first[0]).unwrap();
        let second = render(&host, &[slot(DIRTY, 0, "8388608"), slot(&["bdi/8:0/max_ratio"], 0, "5")]).unwrap();
        assert_eq!(second[0].after, format!("{HEAD}vm.laptop_mode = 5\nvm.dirty_bytes = 8388608\n"));
        assert_eq!(
            second[1].after,
            format!("{HEAD}ACTION==\"add|change\", SUBSYSTEM==\"bdi\", KERNEL==\"8:0\", ATTR{{max_ratio}}=\"5\"\n")
        );
        write(&host, &second[0]).unwrap();
        assert!(take_back(&host, &second[0]).unwrap());
        assert_eq!(host.read(SYSCTL).unwrap(), first[0].after);
        assert!(take_back(&host, &first[0]).unwrap());
        assert!(!host.path(SYSCTL).exists());
    }

    #[test]
    fn a_line_that_wins_over_ours_at_boot_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let host = Host::below(folder.path());
        assert!(checked(&host, &[slot(DIRTY, 0, "8388608")]).is_ok());
        // systemd-sysctl does not read it, and procps reads it last.
        replace(&host.path("etc/sysctl.conf"), "# local\nvm.dirty_ratio = 30\n").unwrap();
        let why = checked(&host, &[slot(DIRTY, 0, "8388608")]).unwrap_err();
        assert_eq!(
            why,
            "at boot sysctl --system would set vm.dirty_bytes=0, by /etc/sysctl.conf:2; wanted is vm.dirty_bytes=8388608"
        );
        // The pair trap: an equal value in an earlier file takes ours out of its place.
        std::fs::remove_file(host.path("etc/sysctl.conf")).unwrap();
        replace(&host.path("etc/sysctl.d/10-a.conf"), "vm.dirty_bytes = 8388608\nvm.dirty_ratio = 30\n").unwrap();
        let why = checked(&host, &[slot(DIRTY, 0, "8388608")]).unwrap_err();
        assert!(
            why.starts_with("at boot systemd-sysctl would set vm.dirty_bytes=0, by /etc/sysctl.d/10-a.conf:2"),
            "{why}"
        );
    }

    #[test]
    fn a_file_that_was_changed_stays() {
        let folder = tempfile::tempdir().unwrap();
        let host = Host::below(folder.path());
        let files = render(&host, &[slot(DIRTY, 1, "20")]).unwrap();
        write(&host, &files[0]).unwrap();
        std::fs::write(host.path(SYSCTL), "vm.dirty_ratio = 30\n").unwrap();
        assert!(!take_back(&host, &files[0]).unwrap());
        assert_eq!(host.read(SYSCTL).unwrap(), "vm.dirty_ratio = 30\n");
    }

    #[test]
    fn what_belongs_to_a_unit_is_not_kept_by_a_file_of_ours() {
        let host = Host::below(Path::new("/nonexistent"));
        let error = render(&host, &[slot(&["cgroup/a/memory.high"], 0, "max")]).unwrap_err();
        assert!(error.starts_with("cgroup/a/memory.high belongs to the unit"), "{error}");
    }
}
