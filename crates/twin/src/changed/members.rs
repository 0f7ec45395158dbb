// SPDX-License-Identifier: MIT OR Apache-2.0
//! A change of a disk below an array of md. The twin has the array as one device, as fast as it was seen to be. An array
//! completes a write when all its members have: it is as fast as its slowest member, times the number of members with different
//! content.

use super::names::named;
use super::{Changed, Host, NotChanged, set};
use floodline_analysis::diagnose::device;
use floodline_analysis::prediction::Setting;
use floodline_record::facts::Stack;
use floodline_record::id::DevId;
use floodline_record::units::BytesPerSecond;
use floodline_record::window::Window;
use floodline_scenario::{ByteRate, Scenario};

/// Knobs of a member that decide how fast its array writes.
const KNOWN: &str = "write_bandwidth of a member of raid0, raid1 or raid10, and write_iops of one of raid1";

/// A disk that is part of an array of the twin.
pub(super) struct Member<'a> {
    /// Name of the array in the scenario.
    array: String,
    knob: &'a str,
    /// Members of the array with different content; `None` of an array that is not as fast as its slowest member.
    sets: Option<u64>,
    is_mirror: bool,
    /// The other members.
    others: Vec<DevId>,
}

impl<'a> Member<'a> {
    /// Finds the member that `key` names, as `machine.devices.NAME.KNOB`. `None` of another key, and of a device of the twin.
    pub(super) fn of(scenario: &Scenario, key: &'a str, host: Host<'_>) -> Option<Member<'a>> {
        let (name, knob) = key.strip_prefix("machine.devices.")?.split_once('.')?;
        if scenario.machine.devices.contains_key(name) {
            return None;
        }
        let window = host.window;
        let devices = &window.facts.as_ref()?.devices;
        let disk = devices.iter().find(|device| named(device.name.as_bytes()) == name)?;
        let whole = |dev: &DevId| window.lookup().whole(window, *dev);
        // Its partitions may be parts of other things as well.
        let (above, level) = devices.iter().find_map(|device| match &device.stack {
            Stack::Md { level } if device.slaves.iter().any(|slave| whole(slave) == disk.dev) => Some((device, level)),
            _ => None,
        })?;
        let array = named(above.name.as_bytes());
        let members = above.slaves.len() as u64;
        let sets = match level.as_str() {
            "raid1" => Some(1),
            "raid0" => Some(members),
            "raid10" if members.is_multiple_of(2) => Some(members / 2),
            _ => None,
        };
        let others = above.slaves.iter().map(whole).filter(|dev| *dev != disk.dev).collect();
        let is_mirror = level.as_str() == "raid1";
        scenario.machine.devices.contains_key(&array).then_some(Member { array, knob, sets, is_mirror, others })
    }

    /// Makes the array as fast as its slowest member then is.
    pub(super) fn set(&self, changed: &mut Changed, setting: &Setting, window: &Window) -> Result<(), NotChanged> {
        let refused = || {
            let why = format!(
                "{}={}: a member of {}, which a twin has as one device",
                setting.key, setting.value, self.array
            );
            NotChanged::new(why, format!("a twin knows {KNOWN}; machine.devices.{} is the array", self.array))
        };
        let sets = self.sets.filter(|sets| *sets > 0).ok_or_else(refused)?;
        let key = format!("machine.devices.{}.{}", self.array, self.knob);
        let before = changed.scenario.machine.devices.get(&self.array).cloned();
        if self.knob != "write_bandwidth" && !(self.knob == "write_iops" && self.is_mirror) {
            return Err(refused());
        }
        set(changed, &key, &setting.value, setting)?;
        let (Some(now), Some(then)) = (before, changed.scenario.machine.devices.get_mut(&self.array)) else {
            return Ok(());
        };
        if let Some(ByteRate(wanted)) = then.write_bandwidth.filter(|_| self.knob == "write_bandwidth") {
            let others = now.write_bandwidth.map(|now| self.others_write(now.0.0 / sets, window));
            let slowest = wanted.0.min(others.unwrap_or(wanted.0)).max(1);
            then.write_bandwidth = Some(ByteRate(BytesPerSecond(slowest.saturating_mul(sets))));
        }
        // Requests of a mirror are as many on each member.
        then.write_iops = [now.write_iops, then.write_iops].into_iter().flatten().min();
        Ok(())
    }

    /// Bytes per second of the slowest other member: what it wrote while it was busy. Each wrote at least as fast as the array.
    fn others_write(&self, least: u64, window: &Window) -> u64 {
        let speed = |dev: &DevId| {
            let growth = &device::by_dev(window, *dev)?.span.growth;
            let (written, busy) = (growth.written?.0 as f64, growth.io_time?.as_secs_f64());
            (busy > 0.0).then_some((written / busy) as u64)
        };
        let slowest = self.others.iter().filter_map(speed).min();
        slowest.map_or(least, |slowest| slowest.max(least))
    }
}

#[cfg(test)]
mod tests {
    use super::super::change;
    use super::*;
    use floodline_record::facts::{BlockDevice, HostFacts};
    use floodline_record::version::KernelVersion;
    use floodline_scenario::ScenarioFile;
    use floodline_testkit::Fixture;

    const DEV: fn(u32) -> DevId = |minor| DevId { major: 254, minor };

    /// A host whose array, of this level, was seen to write 60 MB/s.
    fn changed(level: &str, key: &str, value: &str) -> Result<Option<u64>, NotChanged> {
        let mut window = Fixture::healthy().window();
        let facts = window.facts.as_mut().unwrap();
        let like = facts.devices.first().unwrap().clone();
        let disk = |name: &str, minor| BlockDevice { name: name.into(), dev: DEV(minor), ..like.clone() };
        let stack = Stack::Md { level: level.into() };
        let slaves = vec![DEV(0), DEV(16)];
        let array =
            BlockDevice { name: "md0".into(), dev: DevId { major: 9, minor: 0 }, stack, slaves, ..like.clone() };
        let devices = vec![disk("vda", 0), disk("vdb", 16), disk("vdc", 32), array];
        *facts = HostFacts { devices, ..facts.clone() };
        let text = "name = \"t\"\nsummary = \"t\"\n[machine]\nmemory = \"4 GiB\"\n\
            devices.md0 = { size = \"8 GiB\", write_bandwidth = \"60 MB/s\" }\nmounts.\"/a\" = { type = \"ext4\", device = \"md0\" }\n\
            [workload]\nduration = \"5 s\"\ntasks.w.steps = [{ write = { file = \"/a/f\", total = \"1 MiB\" } }]\n";
        let scenario = ScenarioFile::parse(text).unwrap().variants.remove("default").unwrap();
        let host = Host { window: &window, journald: &[] };
        let made = change(&scenario, KernelVersion::new(6, 12, 0), &[Setting::new(key, value)], host)?;
        Ok(made.scenario.machine.devices["md0"].write_bandwidth.map(|rate| rate.0.0))
    }

    #[test]
    fn an_array_is_as_fast_as_its_slowest_member() {
        let slower = |level| changed(level, "machine.devices.vdb.write_bandwidth", "9 MB/s").map(Option::unwrap);
        assert_eq!(slower("raid1"), Ok(9_000_000));
        assert_eq!(slower("raid0"), Ok(18_000_000), "half of the bytes go to each");
        assert_eq!(slower("raid10"), Ok(9_000_000), "two members are a mirror");
        let told = |level, key| changed(level, key, "9 MB/s").unwrap_err().to_string();
        let key = "machine.devices.vdb.write_bandwidth";
        assert!(told("linear", key).contains("a member of md0"));
        assert!(told("raid1", "machine.devices.vdb.read_bandwidth").contains("a member of md0"));
        assert!(told("raid1", "machine.devices.vdc.write_bandwidth").contains("vdc"), "it is no member");
    }

    #[test]
    fn a_faster_member_does_not_make_the_others_faster() {
        let told = changed("raid1", "machine.devices.vda.write_bandwidth", "200 MB/s").unwrap_err();
        assert_eq!(told.refusal, super::super::Refusal::InForce);
    }
}
