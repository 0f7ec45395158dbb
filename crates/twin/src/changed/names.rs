// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names of a host as names of its twin: devices, cgroups and mounts. A name that the twin does not have gets an error with
//! those that it has.

use super::{Host, NotChanged};
use crate::derive::cgroup_paths;
use floodline_analysis::prediction::Setting;
use floodline_record::id::{DevId, Entity};
use floodline_record::nearest::nearest;
use floodline_scenario::Scenario;

/// The name of a device in a scenario.
pub(super) fn named(name: &[u8]) -> String {
    name.iter().map(|&byte| if byte.is_ascii_alphanumeric() { char::from(byte) } else { '_' }).collect()
}

/// Finds a device of the scenario by its name on the host, by its number, or by its own name.
pub(super) fn device(scenario: &Scenario, name: &str, host: Host<'_>, setting: &Setting) -> Result<String, NotChanged> {
    let devices = &scenario.machine.devices;
    let of_number = || {
        let dev: DevId = name.parse().ok()?;
        let facts = host.window.facts.as_ref();
        let lookup = host.window.lookup();
        let known = lookup.device(facts, dev).map(|device| &device.name).or_else(|| lookup.disk_name(dev))?;
        Some(named(known.as_bytes()))
    };
    let found = [Some(name.to_owned()), of_number(), Some(named(name.as_bytes()))]
        .into_iter()
        .flatten()
        .find(|name| devices.contains_key(name));
    found.ok_or_else(|| unknown("device", name, devices.keys().map(String::as_str), setting))
}

/// Finds a cgroup of the scenario by its path on the host.
pub(super) fn cgroup(scenario: &Scenario, path: &str, setting: &Setting, host: Host<'_>) -> Result<String, NotChanged> {
    let cgroups = &scenario.machine.cgroups;
    let bare = path.trim_matches('/');
    let whole = format!("/{bare}");
    let entities = || host.window.entities.iter();
    let is_exact =
        |entity: &Entity| matches!(entity, Entity::Cgroup { path, .. } if path.as_bytes() == whole.as_bytes());
    let is_meant = |entity: &Entity| matches!(entity, Entity::Cgroup { path, .. } if path.is_meant_by(&whole));
    let exact = entities().find(|(_, entity)| is_exact(entity));
    let id = exact.or_else(|| entities().find(|(_, entity)| is_meant(entity))).map(|(id, _)| *id);
    // A scenario has fewer letters for a path than a host.
    let of_host = || {
        let id = id?;
        let name = cgroup_paths(host.window).remove(&id)?.0;
        cgroups.keys().find(|known| known.trim_matches('/') == name)
    };
    let found = of_host().or_else(|| cgroups.keys().find(|known| known.trim_matches('/') == bare));
    if found.is_none() && id.is_some() {
        return Err(NotChanged::new(
            format!(
                "{}={}: nothing was written in cgroup {bare:?}, so the twin leaves it out",
                setting.key, setting.value
            ),
            format!("floodline budget --as-if cgroup/{bare}/memory.max=SIZE FILE shows its dirty limit"),
        ));
    }
    found.cloned().ok_or_else(|| unknown("cgroup", bare, cgroups.keys().map(String::as_str), setting))
}

/// Finds a mount of the scenario by its mount point on the host.
pub(super) fn mount(scenario: &Scenario, path: &str, setting: &Setting) -> Result<String, NotChanged> {
    let mounts = &scenario.machine.mounts;
    let bare = path.trim_matches('/');
    // The root filesystem has another name in a scenario, which mounts nothing at its root.
    let bare = if bare.is_empty() { "rootfs" } else { bare };
    let found = mounts.keys().find(|known| known.trim_matches('/') == bare);
    found.cloned().ok_or_else(|| unknown("mount", bare, mounts.keys().map(String::as_str), setting))
}

fn unknown<'a>(what: &str, name: &str, known: impl Iterator<Item = &'a str> + Clone, setting: &Setting) -> NotChanged {
    let hint = match nearest(name, known.clone()) {
        Some(near) => format!("did you mean {near:?}?"),
        None if known.clone().next().is_none() => format!(
            "nothing was written to any {what} in this recording: record \
                                                           while the load runs"
        ),
        None => format!("known here: {}", known.take(8).collect::<Vec<_>>().join(", ")),
    };
    NotChanged::new(
        format!("{}={}: the recording has no {what} {name:?} that was written to", setting.key, setting.value),
        hint,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cgroup_is_found_by_its_path_on_the_host() {
        let text = |path: &str| format!("{}[machine.cgroups.{path:?}]\n", ANY.replace("any", "twin"));
        let window = floodline_testkit::Fixture::healthy()
            .cgroup("/machine-qemu\\x2d1.scope", |_, _| {})
            .cgroup("/a=c,d", |_, _| {})
            .cgroup("/a_c_d", |_, _| {})
            .window();
        let host = Host { window: &window, journald: &[] };
        let found = |twin: &str, path: &str| {
            let scenario = floodline_scenario::ScenarioFile::parse(&text(twin)).unwrap().variants.remove("default");
            cgroup(&scenario.unwrap(), path, &Setting::new("x", "1"), host).map_err(|error| error.to_string())
        };
        let scope = "machine-qemu_x2d1.scope";
        for typed in ["machine-qemu\\x2d1.scope", "/machine-qemu\\\\x2d1.scope", scope] {
            assert_eq!(found(scope, typed).as_deref(), Ok(scope), "{typed}");
        }
        // Two paths that look alike in a scenario stay two.
        assert_eq!(found("a_c_d", "a=c,d").as_deref(), Ok("a_c_d"));
        assert_eq!(found("a_c_d_2", "a_c_d").as_deref(), Ok("a_c_d_2"));
        assert!(found("a_c_d_2", "a=c,d").unwrap_err().contains("nothing was written in cgroup"));
    }

    const ANY: &str =
        "name = \"any\"\nsummary = \"any\"\n[machine]\nmemory = \"1 GiB\"\n[workload.tasks.any]\nsteps = [\"sync\"]\n";

    #[test]
    fn an_unknown_name_is_answered_with_those_there_are() {
        let setting = Setting::new("cgroup/x/memory.max", "1G");
        let told = |known: &[&str]| unknown("cgroup", "x", known.iter().copied(), &setting).hint;
        assert_eq!(told(&[]), "nothing was written to any cgroup in this recording: record while the load runs");
        assert_eq!(told(&["/a", "/b"]), "known here: /a, /b");
    }
}
