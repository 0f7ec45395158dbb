// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes of a scenario by the names that a host has for them, as `predict`, `apply` and a finding write them:
//! `memory`, `bdi/sda/strict_limit`, `queue/sda/wbt_lat_usec`, `loop/loop0/direct_io`, `cgroup/PATH/memory.max`,
//! `mount/PATH/options`. A scenario knows its devices by name only: a number such as `8:0` is refused with the key of the
//! file. A twin, which knows the numbers of its host, writes the name in their place first.

use super::change::NotAChange;
use super::{Backing, Scenario};
use floodline_record::nearest::nearest;

/// Devices, cgroups and mounts that an error lists.
const LISTED_MAX: usize = 8;

/// Keys of a device's bdi.
const BDI: [&str; 5] = ["min_ratio", "max_ratio", "max_bytes", "strict_limit", "read_ahead_kb"];
/// Keys of a device's queue.
const QUEUE: [&str; 3] = ["wbt_lat_usec", "scheduler", "nr_requests"];
/// Keys of a cgroup of a scenario: all but `io.max`, which has keys of its own for each device.
const CGROUP: &[&str] = CGROUP_OF_HOST.split_at(1).1;
/// Keys of a cgroup of a host.
const CGROUP_OF_HOST: [&str; 6] = ["io.max", "memory.max", "memory.high", "memory.low", "memory.min", "io.weight"];
/// Limits of a device in `io.max`.
const IO_MAX: [&str; 4] = ["rbps", "wbps", "riops", "wiops"];
/// Keys of a mount.
const MOUNT: [&str; 2] = ["type", "options"];

/// "expected type or options".
fn expected(keys: &[&str]) -> String {
    match keys.split_last() {
        Some((last, others)) if !others.is_empty() => format!("expected {} or {last}", others.join(", ")),
        _ => format!("expected {}", keys.concat()),
    }
}

/// Splits `KEY=VALUE`: behind the key of a cgroup or a mount, whose path may have an `=` of its own, else at the first `=`. `None`
/// if it has none.
pub fn split_setting(text: &str) -> Option<(&str, &str)> {
    let has_path = |key: &str| match key.trim().split('/').collect::<Vec<_>>().as_slice() {
        ["cgroup", _, .., "io.max", _, knob] => IO_MAX.contains(knob),
        ["cgroup", _, .., knob] => CGROUP_OF_HOST.contains(knob),
        ["mount", _, .., knob] => MOUNT.contains(knob),
        _ => false,
    };
    let behind_path = text.match_indices('=').map(|(at, _)| at).find(|at| text.get(..*at).is_some_and(has_path));
    match behind_path {
        Some(at) => Some((text.get(..at)?, text.get(at + 1..)?)),
        None => text.split_once('='),
    }
}

/// Returns why no host has this key, whatever its devices, cgroups and mounts are; `None` where a host may have it, or where the key is
/// not of this kind.
pub fn unknown_host_key(key: &str) -> Option<String> {
    let parts: Vec<&str> = key.split('/').collect();
    let (knob, keys): (&str, &[&str]) = match parts.as_slice() {
        ["bdi", _, knob] => (knob, &BDI),
        ["queue", _, knob] => (knob, &QUEUE),
        ["loop", _, knob] => (knob, &["direct_io"]),
        ["journald", knob] => (knob, &["Storage"]),
        ["cgroup", path @ .., "io.max", _, knob] if !path.is_empty() => (knob, &IO_MAX),
        ["cgroup", path @ .., knob] if !path.is_empty() => (knob, &CGROUP_OF_HOST),
        ["mount", path @ .., knob] if !path.is_empty() => (knob, &MOUNT),
        ["bdi" | "queue" | "loop" | "journald" | "mount", ..] => return Some(super::change::NO_SUCH_KEY.to_owned()),
        _ => return None,
    };
    (!keys.contains(&knob)).then(|| expected(keys))
}

/// The scenario with a key of a host changed; `None` where the key is not of this kind.
pub(super) fn changed(scenario: &Scenario, key: &str, value: &str) -> Option<Result<Scenario, String>> {
    let parts: Vec<&str> = key.split('/').collect();
    let made = match parts.as_slice() {
        ["memory"] => Ok(("machine.memory".to_owned(), size(value))),
        ["bdi", name, knob] => bdi(knob, value).and_then(|(knob, value)| {
            let device = device(scenario, name, &format!("bdi.{knob}"))?;
            Ok((format!("machine.devices.{device}.bdi.{knob}"), value))
        }),
        ["queue", name, knob] => {
            let turns = scenario.machine.devices.get(*name).is_some_and(|device| device.rotational);
            queue(knob, value, turns).and_then(|(knob, value)| {
                let device = device(scenario, name, &format!("queue.{knob}"))?;
                Ok((format!("machine.devices.{device}.queue.{knob}"), value))
            })
        }
        ["loop", name, "direct_io"] => flag(value).and_then(|value| {
            let device = device(scenario, name, "backing.loop.direct_io")?;
            let backing = scenario.machine.devices.get(device).map(|device| &device.backing);
            if !matches!(backing, Some(Backing::Loop { .. })) {
                return Err(format!("{device} is not a loop device"));
            }
            Ok((format!("machine.devices.{device}.backing.loop.direct_io"), value))
        }),
        ["cgroup", path @ .., file] if !path.is_empty() => cgroup(scenario, &path.join("/"), file, value),
        ["mount", path @ .., "options"] if !path.is_empty() => {
            return Some(options(scenario, &path.join("/"), value));
        }
        ["mount", path @ .., "type"] if !path.is_empty() => {
            mount(scenario, &path.join("/")).map(|point| (format!("machine.mounts.{point:?}.type"), value.to_owned()))
        }
        ["mount", path @ .., _] if !path.is_empty() => Err(expected(&MOUNT)),
        _ => return None,
    };
    let why = |error: NotAChange| error.why().to_owned();
    Some(made.and_then(|(key, value)| scenario.changed(&key, &value).map_err(why)))
}

fn bdi(knob: &str, value: &str) -> Result<(&'static str, String), String> {
    Ok(match knob {
        "min_ratio" => ("min_ratio", value.to_owned()),
        "max_ratio" => ("max_ratio", value.to_owned()),
        "max_bytes" => ("max_bytes", size(value)),
        "strict_limit" => ("strict_limit", flag(value)?),
        "read_ahead_kb" => ("read_ahead", format!("{value} KiB")),
        _ => return Err(expected(&BDI)),
    })
}

fn queue(knob: &str, value: &str, turns: bool) -> Result<(&'static str, String), String> {
    Ok(match (knob, value) {
        // The kernel's default: 2 ms, and 75 ms on rotating disks.
        ("wbt_lat_usec", "-1") => ("wbt_latency", if turns { "75ms" } else { "2ms" }.to_owned()),
        ("wbt_lat_usec", _) => {
            let latency: u32 = value.parse().map_err(|_| "expected microseconds, or -1".to_owned())?;
            ("wbt_latency", format!("{latency}us"))
        }
        ("scheduler", _) => ("scheduler", value.to_owned()),
        ("nr_requests", _) => ("nr_requests", value.to_owned()),
        _ => return Err(expected(&QUEUE)),
    })
}

fn cgroup(scenario: &Scenario, path: &str, file: &str, value: &str) -> Result<(String, String), String> {
    let (knob, value) = match file {
        "memory.max" => ("memory_max", size(value)),
        "memory.high" => ("memory_high", size(value)),
        "memory.low" => ("memory_low", size(value)),
        "memory.min" => ("memory_min", size(value)),
        "io.weight" => ("io_weight", value.to_owned()),
        _ => return Err(expected(CGROUP)),
    };
    let known = scenario.machine.cgroups.keys();
    let path = named("cgroup", path.trim_matches('/'), known.map(|known| (known.trim_matches('/'), known.as_str())))?;
    Ok((format!("machine.cgroups.{path:?}.{knob}"), value))
}

fn mount<'a>(scenario: &'a Scenario, path: &str) -> Result<&'a str, String> {
    let known = scenario.machine.mounts.keys();
    named("mount", path.trim_matches('/'), known.map(|known| (known.trim_matches('/'), known.as_str())))
}

/// Mount options are a list in a file and words joined by commas on a host.
fn options(scenario: &Scenario, path: &str, value: &str) -> Result<Scenario, String> {
    let point = mount(scenario, path)?.to_owned();
    let mut changed = scenario.clone();
    if let Some(mount) = changed.machine.mounts.get_mut(&point) {
        let words = value.split(',').map(str::trim).filter(|word| !word.is_empty() && *word != "defaults");
        mount.options = words.map(str::to_owned).collect();
    }
    changed.checked()
}

/// The device of a name; `key` is what would be changed of it in the file.
fn device<'a>(scenario: &'a Scenario, name: &str, key: &str) -> Result<&'a str, String> {
    let devices = &scenario.machine.devices;
    if name.parse::<floodline_record::id::DevId>().is_ok() {
        let known: Vec<&str> = devices.keys().map(String::as_str).take(LISTED_MAX).collect();
        return Err(format!(
            "a scenario has no device numbers; write machine.devices.NAME.{key} (devices here: {})",
            known.join(", ")
        ));
    }
    named("device", name, devices.keys().map(|known| (known.as_str(), known.as_str())))
}

/// The key of a name, out of pairs of name and key.
fn named<'a>(
    what: &str,
    name: &str,
    known: impl Iterator<Item = (&'a str, &'a str)> + Clone,
) -> Result<&'a str, String> {
    if let Some((_, key)) = known.clone().find(|(known, _)| *known == name) {
        return Ok(key);
    }
    let listed: Vec<&str> = known.clone().map(|(_, key)| key).take(LISTED_MAX).collect();
    Err(match nearest(name, known.map(|(known, _)| known)) {
        Some(near) => format!("no {what} is called {name:?} (did you mean {near:?}?)"),
        None if listed.is_empty() => format!("no {what} is called {name:?}: this scenario has no {what}"),
        None => format!("no {what} is called {name:?} (known here: {})", listed.join(", ")),
    })
}

fn flag(value: &str) -> Result<String, String> {
    match value {
        "1" | "true" | "on" => Ok("true".to_owned()),
        "0" | "false" | "off" => Ok("false".to_owned()),
        _ => Err("expected 0 or 1".to_owned()),
    }
}

/// A number of a host's file is one of bytes.
fn size(value: &str) -> String {
    if value.parse::<u64>().is_ok() { format!("{value} B") } else { value.to_owned() }
}

#[cfg(test)]
mod tests {
    use crate::{ScenarioFile, split_setting, unknown_host_key};

    const BASE: &str = r#"
name = "base"
summary = "a disk, an image and a writer"
[machine]
memory = "2 GiB"
[machine.devices.sda]
size = "1 GiB"
rotational = true
[machine.devices.loop0]
size = "64 MiB"
backing = { loop = { file = "/srv/image" } }
[machine.mounts."/srv"]
type = "ext4"
device = "sda"
[machine.mounts."/srv/image-fs"]
type = "ext4"
device = "loop0"
[machine.cgroups."system.slice/db"]
[workload]
duration = "5s"
[workload.tasks.w]
steps = [{ write = { file = "/srv/x", total = "1 MiB" } }]
"#;

    fn check(change: &str, expect: Result<&str, &str>) {
        let scenario = ScenarioFile::parse(BASE).unwrap().variants.remove("default").unwrap();
        let (key, value) = change.split_once('=').unwrap();
        let told = scenario.changed(key, value).map_err(|error| error.to_string());
        match (told.map(|changed| changed.to_toml().unwrap()), expect) {
            (Ok(text), Ok(part)) => assert!(text.contains(part), "{change}: {text}"),
            (Err(error), Err(part)) => assert!(error.contains(part), "{change}: {error}"),
            (told, expect) => panic!("{change}: {told:?}, expected {expect:?}"),
        }
    }

    #[test]
    fn a_key_of_a_host_changes_what_it_names() {
        check("bdi/sda/strict_limit=1", Ok("strict_limit = true"));
        check("bdi/sda/max_ratio=7", Ok("max_ratio = 7"));
        check("bdi/sda/max_bytes=16M", Ok("max_bytes = \"16 MiB\""));
        check("bdi/sda/read_ahead_kb=512", Ok("read_ahead = \"512 KiB\""));
        check("queue/sda/wbt_lat_usec=-1", Ok("wbt_latency = \"75 ms\""));
        check("queue/loop0/wbt_lat_usec=0", Ok("wbt_latency = \"0 ns\""));
        check("queue/sda/nr_requests=32", Ok("nr_requests = 32"));
        check("loop/loop0/direct_io=1", Ok("direct_io = true"));
        check("cgroup/system.slice/db/memory.max=67108864", Ok("memory_max = \"64 MiB\""));
        check("memory=4294967296", Ok("memory = \"4 GiB\""));
        check("memory=4G", Ok("memory = \"4 GiB\""));
        check("cgroup//system.slice/db/memory.max=max", Ok("memory_max = \"max\""));
        check("mount/srv/options=noatime,lazytime", Ok("options = [\"noatime\", \"lazytime\"]"));
        check("mount//srv/image-fs/type=xfs", Ok("type = \"xfs\""));
    }

    #[test]
    fn a_value_begins_behind_the_key_and_not_in_the_path() {
        let check = |text: &str, expect: Option<(&str, &str)>| assert_eq!(split_setting(text), expect, "{text}");
        check("cgroup/a=c,d/memory.max=64M", Some(("cgroup/a=c,d/memory.max", "64M")));
        check("cgroup/a=b/io.max/8:0/wbps=1M", Some(("cgroup/a=b/io.max/8:0/wbps", "1M")));
        check("mount/srv/a=b/options=noatime,data=ordered", Some(("mount/srv/a=b/options", "noatime,data=ordered")));
        check("vm.dirty_ratio=10", Some(("vm.dirty_ratio", "10")));
        check("cgroup=v2", Some(("cgroup", "v2")));
        check("cgroup/a/memory.mx=1=2", Some(("cgroup/a/memory.mx", "1=2")));
        check("vm.dirty_ratio", None);
    }

    #[test]
    fn a_key_that_a_host_may_have_is_known() {
        for key in ["io.max", "io.max/8:0/wbps", "io.max/254:16/riops", "memory.max", "io.weight"] {
            assert_eq!(unknown_host_key(&format!("cgroup/system.slice/db/{key}")), None, "{key}");
        }
        let told = |key: &str| unknown_host_key(key).unwrap_or_default();
        assert_eq!(told("cgroup/db/io.max/8:0/bps"), "expected rbps, wbps, riops or wiops");
        assert!(told("cgroup/db/io.mx").starts_with("expected io.max, memory.max"), "{}", told("cgroup/db/io.mx"));
    }

    #[test]
    fn what_a_scenario_does_not_have_is_refused_with_its_key() {
        check(
            "bdi/254:16/strict_limit=0",
            Err(
                "a scenario has no device numbers; write machine.devices.NAME.bdi.strict_limit (devices here: loop0, sda)",
            ),
        );
        check("loop/7:0/direct_io=1", Err("write machine.devices.NAME.backing.loop.direct_io"));
        check("bdi/sdb/max_ratio=7", Err("no device is called \"sdb\" (did you mean \"sda\"?)"));
        check("bdi/sda/colour=7", Err("expected min_ratio, max_ratio"));
        check("queue/sda/wbt_lat_usec=2ms", Err("expected microseconds, or -1"));
        check("mount/srv/colour=red", Err("expected type or options"));
        check("memory=none", Err("machine.memory"));
        check("bdi/sda/strict_limit=2", Err("expected 0 or 1"));
        check("bdi/sda/max_ratio=101", Err("the kernel refuses this (EINVAL)"));
        check("cgroup/web/memory.max=1G", Err("no cgroup is called \"web\" (known here: system.slice/db)"));
        check("mount/var/options=noatime", Err("no mount is called \"var\""));
        check("loop/sda/direct_io=1", Err("sda is not a loop device"));
        check("journald/Storage=auto", Err("no such key; write vm.dirty_bytes"));
    }
}
