// SPDX-License-Identifier: MIT OR Apache-2.0
//! A line of `io.max` of a cgroup, as the kernel takes it: `8:0 wbps=1048576 wiops=max`. A limit that is left out keeps its value. One limit
//! has a key of its own, as `apply` has it: `cgroup/PATH/io.max/8:0/wbps`.

use super::names::device;
use super::{Changed, Host, NotChanged, changes_of_limits};
use floodline_analysis::prediction::Setting;
use floodline_record::units::BytesPerSecond;
use floodline_scenario::{ByteRate, IoMax, IoRate, RequestsPerSecond};

const USUAL: &str = "e.g. --set 'cgroup/app.slice/io.max=8:0 wbps=10485760'";

/// Sets the limits of the line. A device without a limit leaves the cgroup.
pub(super) fn set(
    changed: &mut Changed,
    path: &str,
    line: &str,
    setting: &Setting,
    host: Host<'_>,
) -> Result<(), NotChanged> {
    let refused = |why: String| NotChanged::new(format!("{}={}: {why}", setting.key, setting.value), USUAL);
    let mut words = line.split_whitespace();
    let name = words.next().unwrap_or_default();
    let device = device(&changed.scenario, name, host, setting)?;
    let limits: Vec<&str> = words.collect();
    if limits.is_empty() {
        return Err(refused("expected a device and rbps=, wbps=, riops= or wiops=".to_owned()));
    }
    let Some(cgroup) = changed.scenario.machine.cgroups.get_mut(path) else { return Ok(()) };
    let own = cgroup.io_max.entry(device.clone()).or_default();
    for limit in limits {
        let (key, value) = limit.split_once('=').unwrap_or((limit, ""));
        let number = match value {
            "max" => None,
            value => Some(value.parse::<u64>().ok().filter(|number| *number > 0).ok_or_else(|| {
                refused(format!("{key} takes a number from 1, in bytes or requests per second, or max"))
            })?),
        };
        let bytes = number.map(|bytes| ByteRate(BytesPerSecond(bytes)));
        let requests = number.map(|requests| IoRate(RequestsPerSecond(requests)));
        match key {
            "rbps" => own.read_bandwidth = bytes,
            "wbps" => own.write_bandwidth = bytes,
            "riops" => own.read_iops = requests,
            "wiops" => own.write_iops = requests,
            _ => return Err(refused(format!("unknown limit {key}: expected rbps, wbps, riops or wiops"))),
        }
    }
    if *own == IoMax::default() {
        cgroup.io_max.remove(&device);
    }
    // The limit stays as it is set.
    for set in changes_of_limits(&mut changed.scenario).filter(|set| set.cgroup == path) {
        set.limits.io_max.remove(&device);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{change, setting};
    use super::*;
    use floodline_record::version::KernelVersion;
    use floodline_scenario::ScenarioFile;
    use floodline_testkit::Fixture;

    const BASE: &str = r#"
name = "twin"
summary = "a cgroup with a limit of I/O"
[machine]
memory = "2 GiB"
[machine.devices.sda]
size = "4 GiB"
write_bandwidth = "50 MB/s"
[machine.mounts."/data"]
type = "ext4"
device = "sda"
[machine.cgroups."app.slice"]
io_max.sda = { write_bandwidth = "10 MB/s", write_iops = "100 IO/s" }
[workload]
duration = "5s"
[workload.tasks.w]
cgroup = "app.slice"
steps = [{ write = { file = "/data/x", total = "1 MiB" } }]
"#;

    /// Checks `rbps`, `wbps` and `wiops` after a line, or what its refusal contains.
    fn check(line: &str, expect: Result<[Option<u64>; 3], &str>) {
        let scenario = ScenarioFile::parse(BASE).unwrap().variants.remove("default").unwrap();
        let host = Host { window: &Fixture::healthy().window(), journald: &[] };
        let set = setting(&format!("cgroup/app.slice/io.max{line}")).unwrap();
        let made = change(&scenario, KernelVersion::new(6, 12, 0), &[set], host);
        let limits = |made: Changed| {
            let limit = made.scenario.machine.cgroups["app.slice"].io_max.get("sda").cloned().unwrap_or_default();
            let bytes = |rate: Option<ByteRate>| rate.map(|rate| rate.0.0);
            [bytes(limit.read_bandwidth), bytes(limit.write_bandwidth), limit.write_iops.map(|rate| rate.0.0)]
        };
        match (made.map(limits), expect) {
            (Ok(told), Ok(expect)) => assert_eq!(told, expect, "{line}"),
            (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{line}: {error}"),
            (told, expect) => panic!("{line}: {told:?}, expected {expect:?}"),
        }
    }

    #[test]
    fn a_line_of_io_max_is_taken_as_the_kernel_takes_it() {
        check("=8:0 wbps=2000000", Ok([None, Some(2_000_000), Some(100)]));
        check("=sda wbps=max rbps=1000000", Ok([Some(1_000_000), None, Some(100)]));
        check("=8:0 wbps=max wiops=max", Ok([None, None, None]));
        check("=8:99 wbps=1", Err("no device \"8:99\""));
        check("=8:0", Err("expected a device and rbps="));
        check("=8:0 bps=1", Err("unknown limit bps"));
        check("=8:0 wbps=0", Err("a number from 1"));
        check("/8:0/wbps=2000000", Ok([None, Some(2_000_000), Some(100)]));
        check("/8:0/wiops=max", Ok([None, Some(10_000_000), None]));
    }
}
