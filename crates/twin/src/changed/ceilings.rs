// SPDX-License-Identifier: MIT OR Apache-2.0
//! A change of a ceiling of a device, of bytes or of requests. A recording tells either a ceiling of reads and writes together or one of
//! each kind, and the change may name the other form. The new ceiling replaces the recorded one, which would hold the device back.

use floodline_scenario::Scenario;

/// Ceilings of one unit: of reads, of writes, and of both together.
struct Ceilings<'a, T> {
    read: &'a mut Option<T>,
    write: &'a mut Option<T>,
    both: &'a mut Option<T>,
}

impl<T> Ceilings<'_, T> {
    /// Removes what the change of `kind` replaces. `read`, `write` and `both` are the ceilings before the change.
    fn replace(self, kind: Kind, (read, write, both): (Option<T>, Option<T>, Option<T>)) {
        let is_each = read.is_some() || write.is_some();
        match kind {
            Kind::Both if both.is_none() => (*self.read, *self.write) = (None, None),
            Kind::Read if !is_each => (*self.write, *self.both) = (both, None),
            Kind::Write if !is_each => (*self.read, *self.both) = (both, None),
            _ => {}
        }
    }
}

/// What a ceiling counts.
#[derive(Clone, Copy)]
enum Kind {
    Read,
    Write,
    Both,
}

impl Kind {
    /// The kind of a key, and whether it counts bytes. `None` of another key.
    fn of(knob: &str) -> Option<(Kind, bool)> {
        Some(match knob {
            "iops" => (Kind::Both, false),
            "read_iops" => (Kind::Read, false),
            "write_iops" => (Kind::Write, false),
            "bandwidth" => (Kind::Both, true),
            "read_bandwidth" => (Kind::Read, true),
            "write_bandwidth" => (Kind::Write, true),
            _ => return None,
        })
    }
}

/// Removes the ceiling that `key` replaces. `before` is the scenario before the change.
pub(super) fn replace(before: &Scenario, then: &mut Scenario, key: &str) {
    let Some((name, knob)) = key.strip_prefix("machine.devices.").and_then(|rest| rest.split_once('.')) else { return };
    let (Some(now), Some(device)) = (before.machine.devices.get(name), then.machine.devices.get_mut(name)) else {
        return;
    };
    match Kind::of(knob) {
        Some((kind, true)) => Ceilings {
            read: &mut device.read_bandwidth,
            write: &mut device.write_bandwidth,
            both: &mut device.bandwidth,
        }
        .replace(kind, (now.read_bandwidth, now.write_bandwidth, now.bandwidth)),
        Some((kind, false)) => {
            Ceilings { read: &mut device.read_iops, write: &mut device.write_iops, both: &mut device.iops }
                .replace(kind, (now.read_iops, now.write_iops, now.iops));
        }
        None => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_record::units::BytesPerSecond;
    use floodline_scenario::{ByteRate, IoRate, RequestsPerSecond, ScenarioFile};

    /// Ceilings of a device: of reads, of writes, and of both together.
    type Seen = [Option<u64>; 3];

    /// A disk with the same numbers as ceilings of requests and of bytes per second.
    fn with([read, write, both]: Seen) -> Scenario {
        let text = "name = \"a\"\nsummary = \"A disk\"\n[machine]\nmemory = \"2 GiB\"\ncpus = 2\n\
             [machine.devices.sda]\nsize = \"8 GiB\"\n[machine.mounts.\"/data\"]\ntype = \"xfs\"\ndevice = \"sda\"\n\
             [workload]\nduration = \"9s\"\n[workload.tasks.a]\nsteps = [{ sleep = { for = \"1s\" } }]\n";
        let mut scenario = ScenarioFile::parse(text).unwrap().variants.into_values().next().unwrap();
        let requests = |value: Option<u64>| value.map(|value| IoRate(RequestsPerSecond(value)));
        let bytes = |value: Option<u64>| value.map(|value| ByteRate(BytesPerSecond(value)));
        let device = scenario.machine.devices.get_mut("sda").unwrap();
        (device.read_iops, device.write_iops, device.iops) = (requests(read), requests(write), requests(both));
        (device.read_bandwidth, device.write_bandwidth, device.bandwidth) = (bytes(read), bytes(write), bytes(both));
        scenario
    }

    /// The ceilings of requests and those of bytes after a change.
    fn changed(seen: Seen, knob: &str, value: &str) -> (Seen, Seen) {
        let before = with(seen);
        let key = format!("machine.devices.sda.{knob}");
        let mut then = before.changed(&key, value).unwrap();
        replace(&before, &mut then, &key);
        let device = &then.machine.devices["sda"];
        let requests = [device.read_iops, device.write_iops, device.iops];
        let bytes = [device.read_bandwidth, device.write_bandwidth, device.bandwidth];
        (requests.map(|rate| rate.map(|rate| rate.0.0)), bytes.map(|rate| rate.map(|rate| rate.0.0)))
    }

    #[test]
    fn a_new_ceiling_replaces_the_one_that_was_seen() {
        let check = |seen: Seen, kind: &str, expect: Seen| {
            let told = changed(seen, &format!("{kind}iops"), "2500 IO/s");
            assert_eq!(told, (expect, seen), "{seen:?} {kind}iops");
            let told = changed(seen, &format!("{kind}bandwidth"), "2500 B/s");
            assert_eq!(told, (seen, expect), "{seen:?} {kind}bandwidth");
        };
        check([None, None, Some(90)], "write_", [Some(90), Some(2500), None]);
        check([None, None, Some(90)], "read_", [Some(2500), Some(90), None]);
        check([Some(90), Some(90), None], "", [None, None, Some(2500)]);
        check([Some(90), Some(90), None], "write_", [Some(90), Some(2500), None]);
        check([None, None, Some(90)], "", [None, None, Some(2500)]);
        check([Some(90), None, None], "write_", [Some(90), Some(2500), None]);
    }
}
