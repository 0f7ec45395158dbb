// SPDX-License-Identifier: MIT OR Apache-2.0
//! Type and options of mounts. An option that the filesystem of a mount does not have is refused, as `mount` refuses it.

use super::names::mount;
use super::{Changed, Host, KNOWN, NotChanged, set};
use floodline_analysis::prediction::Setting;
use floodline_record::facts::Mount;
use floodline_scenario::{FsType, Scenario};

/// Type or options of a mount.
pub(super) fn mounted(
    changed: &mut Changed,
    (path, what): (&str, &str),
    setting: &Setting,
    host: Host<'_>,
) -> Result<(), NotChanged> {
    if what == "options" && is_overlay(path, host) {
        let words = setting.value.split(',').map(str::trim).filter(|word| !word.is_empty() && *word != "defaults");
        let mut scenario = changed.scenario.clone();
        let mut overlays =
            scenario.machine.mounts.values_mut().filter(|mount| mount.fs_type == FsType::Overlay).peekable();
        let refused = |why: String| NotChanged::new(format!("{}={}: {why}", setting.key, setting.value), KNOWN);
        // A twin has the overlays whose unmounts or syncs the recording shows.
        if overlays.peek().is_none() && words.clone().any(|word| word == "volatile") != is_volatile(path, host) {
            return Err(NotChanged::new(
                format!(
                    "{}={}: the twin has no overlay, as the recording shows no unmount of one",
                    setting.key, setting.value
                ),
                "record while containers end: floodline record --for 5m --trace on -o host.flr",
            ));
        }
        overlays.for_each(|mount| mount.options = words.clone().map(str::to_owned).collect());
        changed.scenario = scenario.checked().map_err(refused)?;
        return Ok(());
    }
    let path = mount(&changed.scenario, path, setting)?;
    set(changed, &format!("mount/{path}/{what}"), &setting.value, setting)
}

/// Whether a path is an overlay of the recording, or stands for all of them. A twin has as many overlays as the host, without
/// their names: an option of one is an option of all.
fn is_overlay(path: &str, host: Host<'_>) -> bool {
    overlays(path, host).next().is_some()
}

/// Whether the overlays of the recording that a path stands for are all volatile.
fn is_volatile(path: &str, host: Host<'_>) -> bool {
    overlays(path, host).all(|mount| mount.overlay.as_ref().is_some_and(|overlay| overlay.volatile))
}

fn overlays<'a>(path: &'a str, host: Host<'a>) -> impl Iterator<Item = &'a Mount> {
    let bare = path.trim_matches('/').as_bytes();
    let all =
        host.window.facts.iter().flat_map(|facts| &facts.mounts).filter(|mount| mount.fs_type.as_str() == "overlay");
    all.filter(move |mount| bare == b"overlay" || mount.mount_point.as_bytes().strip_prefix(b"/") == Some(bare))
}

/// Filesystems that have an option; `None` for an option of every filesystem.
fn filesystems(option: &str) -> Option<&'static [FsType]> {
    let name = option.split_once('=').map_or(option, |(name, _)| name);
    match name {
        "volatile" => Some(&[FsType::Overlay]),
        "data" | "auto_da_alloc" | "noauto_da_alloc" | "errors" => Some(&[FsType::Ext4]),
        "commit" => Some(&[FsType::Ext4, FsType::Btrfs]),
        "inode64" | "noquota" => Some(&[FsType::Xfs]),
        _ => None,
    }
}

/// Refuses options that a change adds to a mount whose filesystem does not have them.
///
/// # Errors
///
/// The first such option, with the filesystem that has it.
pub(super) fn fitting(before: &Scenario, after: &Scenario) -> Result<(), NotChanged> {
    for (path, mount) in &after.machine.mounts {
        let had = before.machine.mounts.get(path);
        let is_new = |option: &&String| !had.is_some_and(|had| had.options.contains(option));
        for option in mount.options.iter().filter(is_new) {
            let Some(types) = filesystems(option).filter(|types| !types.contains(&mount.fs_type)) else { continue };
            let types: Vec<&str> = types.iter().map(|one| one.name()).collect();
            let hint = match types.as_slice() {
                ["overlay"] => "mount/overlay/options=volatile is for the overlays of the host",
                _ => "leave the option out, or name a mount of such a filesystem",
            };
            return Err(NotChanged::new(
                format!("{option} is an option of {}, and {path} is {}", types.join(" and "), mount.fs_type.name()),
                hint,
            ));
        }
    }
    Ok(())
}
