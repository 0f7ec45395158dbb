// SPDX-License-Identifier: MIT OR Apache-2.0
//! Type and options of mounts. An option that the filesystem of a mount does not have is refused, as `mount` refuses it.

use super::names::mount;
use super::{Changed, Host, KNOWN, NotChanged, Refusal, set};
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
    if what == "options" && overlays(path, host).next().is_some() {
        return of_overlays(changed, path, setting, host);
    }
    let path = mount(&changed.scenario, path, setting)?;
    set(changed, &format!("mount/{path}/{what}"), &setting.value, setting)
}

/// Options of overlays. A twin has as many overlays as the recording shows unmounts, without their names: an option of one is an option of
/// all.
fn of_overlays(changed: &mut Changed, path: &str, setting: &Setting, host: Host<'_>) -> Result<(), NotChanged> {
    let words = setting.value.split(',').map(str::trim).filter(|word| !word.is_empty() && *word != "defaults");
    let is_volatile = words.clone().any(|word| word == "volatile");
    let was_volatile = |mount: &Mount| mount.overlay.as_ref().is_some_and(|overlay| overlay.volatile);
    let text = format!("{}={}", setting.key, setting.value);
    let mut scenario = changed.scenario.clone();
    let mut of_twin = scenario.machine.mounts.values_mut().filter(|mount| mount.fs_type == FsType::Overlay).peekable();
    if overlays(path, host).all(|mount| was_volatile(mount) == is_volatile) {
        // Of the options of an overlay, the model has this one only.
        return match is_volatile || words.clone().next().is_none() {
            true => Err(NotChanged::new(
                format!("nothing changes: {text} is in force already"),
                "see /proc/mounts of the host",
            )
            .telling(Refusal::InForce)),
            false => Err(NotChanged::new(
                format!("{text}: volatile is the only option of an overlay that the model has"),
                "mount/overlay/options=volatile is for the overlays of the host",
            )),
        };
    }
    if !is_volatile {
        return Err(NotChanged::new(
            format!("{text}: a recording of a volatile overlay shows no syncs, so the twin cannot answer"),
            "remount the overlay without it on one host, and record that host",
        ));
    }
    if of_twin.peek().is_none() {
        return Err(NotChanged::new(
            format!("{text}: the twin has no overlay, as the recording shows no unmount of one"),
            "record while containers end: floodline record --for 5m --trace on -o host.flr",
        ));
    }
    of_twin.for_each(|mount| mount.options = words.clone().map(str::to_owned).collect());
    changed.scenario = scenario.checked().map_err(|why: String| NotChanged::new(format!("{text}: {why}"), KNOWN))?;
    Ok(())
}

/// The overlays of the recording that a path stands for: one of them, or all.
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

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_record::version::KernelVersion;
    use floodline_scenario::ScenarioFile;
    use floodline_testkit::{Fixture, incidents};

    #[test]
    fn a_volatile_overlay_is_changed_only_where_the_twin_has_what_changes() {
        let scenario = |overlay: &str| {
            let text = format!(
                "name = \"twin\"\nsummary = \"a twin\"\nmachine.memory = \"4 GiB\"\nmachine.cpus = 2\n\
                 machine.devices.vda = {{ size = \"20 GiB\" }}\nmachine.mounts.\"/data\" = {{ type = \"ext4\", device = \"vda\" }}\n\
                 {overlay}\nworkload.duration = \"5s\"\nworkload.tasks.w = {{ steps = [{{ sleep = {{ for = \"5s\" }} }}] }}\n"
            );
            ScenarioFile::parse(&text).expect("a scenario").variants.remove("default").expect("its variant")
        };
        let with = "machine.mounts.\"/merged\" = { type = \"overlay\", overlay = { lower = \"/data/l\", upper = \"/data/u\", work = \"/data/w\" } }";
        let told = |host: &Fixture, overlay: &str, options: &str| {
            let (window, kernel) = (host.window(), KernelVersion::new(6, 12, 0));
            let mut changed = Changed { scenario: scenario(overlay), kernel };
            let setting = Setting::new("mount/overlay/options", options);
            let made = mounted(&mut changed, ("overlay", "options"), &setting, Host { window: &window, journald: &[] });
            made.map(|()| changed.scenario.to_toml().expect("text")).map_err(|error| error.refusal)
        };
        let (volatile, plain) = (incidents::overlay_volatile(), incidents::overlay_before_teardown("6.12.117"));
        assert_eq!(told(&volatile, "", "volatile"), Err(Refusal::InForce));
        assert_eq!(told(&plain, with, "defaults"), Err(Refusal::InForce));
        assert_eq!(told(&volatile, with, "defaults"), Err(Refusal::Other), "the overlay of the twin is another one");
        assert_eq!(told(&plain, "", "volatile"), Err(Refusal::Other));
        assert!(told(&plain, with, "volatile").is_ok_and(|text| text.contains("volatile")));
    }
}
