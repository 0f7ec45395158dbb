// SPDX-License-Identifier: MIT OR Apache-2.0
//! A change of the ceiling of requests of a device. A recording tells either a ceiling of reads and writes together or one of each
//! kind, and the change may name the other form. The new ceiling replaces the one that was seen, which would hold the device back.

use floodline_scenario::Scenario;

/// Removes the ceiling that `key` replaces. `before` is the scenario before the change.
pub(super) fn replace(before: &Scenario, then: &mut Scenario, key: &str) {
    let Some((name, knob)) = key.strip_prefix("machine.devices.").and_then(|rest| rest.split_once('.')) else { return };
    let (Some(now), Some(device)) = (before.machine.devices.get(name), then.machine.devices.get_mut(name)) else {
        return;
    };
    match knob {
        "iops" if now.iops.is_none() => (device.read_iops, device.write_iops) = (None, None),
        "read_iops" if now.read_iops.is_none() && now.write_iops.is_none() => {
            (device.write_iops, device.iops) = (now.iops, None);
        }
        "write_iops" if now.read_iops.is_none() && now.write_iops.is_none() => {
            (device.read_iops, device.iops) = (now.iops, None);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_scenario::{Device, IoRate, RequestsPerSecond, ScenarioFile};

    /// Requests per second of a device: reads, writes, and both together.
    type Ceilings = [Option<u64>; 3];

    fn with([read, write, both]: Ceilings) -> Scenario {
        let text = "name = \"a\"\nsummary = \"A disk\"\n[machine]\nmemory = \"2 GiB\"\ncpus = 2\n\
             [machine.devices.sda]\nsize = \"8 GiB\"\n[machine.mounts.\"/data\"]\ntype = \"xfs\"\ndevice = \"sda\"\n\
             [workload]\nduration = \"9s\"\n[workload.tasks.a]\nsteps = [{ sleep = { for = \"1s\" } }]\n";
        let mut scenario = ScenarioFile::parse(text).unwrap().variants.into_values().next().unwrap();
        let rate = |value: Option<u64>| value.map(|value| IoRate(RequestsPerSecond(value)));
        let device: &mut Device = scenario.machine.devices.get_mut("sda").unwrap();
        (device.read_iops, device.write_iops, device.iops) = (rate(read), rate(write), rate(both));
        scenario
    }

    #[test]
    fn a_new_ceiling_replaces_the_one_that_was_seen() {
        let check = |seen: Ceilings, key: &str, expect: Ceilings| {
            let before = with(seen);
            let key = format!("machine.devices.sda.{key}");
            let mut then = before.changed(&key, "2500 IO/s").unwrap();
            replace(&before, &mut then, &key);
            let device = &then.machine.devices["sda"];
            let told = [device.read_iops, device.write_iops, device.iops].map(|rate| rate.map(|rate| rate.0.0));
            assert_eq!(told, expect, "{seen:?} {key}");
        };
        check([None, None, Some(90)], "write_iops", [Some(90), Some(2500), None]);
        check([None, None, Some(90)], "read_iops", [Some(2500), Some(90), None]);
        check([Some(90), Some(90), None], "iops", [None, None, Some(2500)]);
        check([Some(90), Some(90), None], "write_iops", [Some(90), Some(2500), None]);
        check([None, None, Some(90)], "iops", [None, None, Some(2500)]);
        check([Some(90), None, None], "write_iops", [Some(90), Some(2500), None]);
    }
}
