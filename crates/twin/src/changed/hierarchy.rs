// SPDX-License-Identifier: MIT OR Apache-2.0
//! A move of a twin to version 1 of cgroups, which lacks settings of version 2. A cgroup has no wb of its own there
//! (`inode_cgwb_enabled`), so the pages that it wrote count for the bdi.

use super::changes_of_limits;
use floodline_scenario::{Scenario, Share};

/// Removes what version 1 of cgroups does not have. A host that moves back to it loses these.
pub(super) fn without_v2(scenario: &mut Scenario) {
    join_shares(scenario);
    for cgroup in scenario.machine.cgroups.values_mut() {
        (cgroup.memory_high, cgroup.memory_low, cgroup.memory_min) = (None, None, None);
        (cgroup.io_weight, cgroup.subtree_control) = (None, None);
        cgroup.share.clear();
    }
    for set in changes_of_limits(scenario) {
        (set.limits.memory_high, set.limits.memory_low, set.limits.memory_min) = (None, None, None);
    }
}

/// Adds the shares of cgroups to those of their devices. The wbs of cgroups completed these pages; on version 1, the wb of the bdi
/// would have.
fn join_shares(scenario: &mut Scenario) {
    let machine = &mut scenario.machine;
    let names: Vec<String> = machine.devices.keys().cloned().collect();
    for name in names {
        let of_cgroups = machine
            .cgroups
            .iter()
            .filter_map(|(path, cgroup)| cgroup.share.get(&name).map(|share| (*share, machine.copies_of_cgroup(path))));
        let mut all: Vec<(Share, u32)> = of_cgroups.collect();
        let Some(device) = machine.devices.get_mut(&name).filter(|_| !all.is_empty()) else { continue };
        all.extend(device.share.map(|share| (share, 1)));
        device.share = Some(joined(&all));
    }
}

/// The sum of shares. Its pages are rounded down where the shares need more pages than a share can name.
fn joined(all: &[(Share, u32)]) -> Share {
    let (pages, of) = Share::sum(all.iter().copied());
    let most = u128::from(u32::MAX);
    let pages = pages.min(of);
    let (pages, of) = if of <= most { (pages, of) } else { (pages / (of / most + 1), of / (of / most + 1)) };
    Share { pages: pages as u32, of: of as u32 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::changed::{Host, change, setting};
    use floodline_record::version::KernelVersion;
    use floodline_scenario::ScenarioFile;
    use floodline_testkit::Fixture;

    const BASE: &str = r#"
name = "twin"
summary = "cgroups with shares of their own"
[machine]
memory = "2 GiB"
[machine.devices.sda]
size = "4 GiB"
write_bandwidth = "50 MB/s"
share = "1/8"
[machine.devices.sdb]
size = "4 GiB"
write_bandwidth = "50 MB/s"
[machine.mounts."/data"]
type = "ext4"
device = "sda"
[machine.cgroups."app.slice"]
share.sda = "1/4"
[machine.cgroups."job-{i}"]
instances = 3
share = { sda = "1/16", sdb = "1/32" }
[workload]
duration = "5s"
[workload.tasks.w]
cgroup = "app.slice"
steps = [{ write = { file = "/data/x", total = "1 MiB" } }]
"#;

    #[test]
    fn shares_of_cgroups_join_those_of_their_devices_on_version_1() {
        let scenario = ScenarioFile::parse(BASE).unwrap().variants.remove("default").unwrap();
        let host = Host { window: &Fixture::healthy().window(), journald: &[] };
        let made = change(&scenario, KernelVersion::new(6, 12, 0), &[setting("cgroup=v1").unwrap()], host).unwrap();
        let machine = made.scenario.machine;
        assert!(machine.cgroups.values().all(|cgroup| cgroup.share.is_empty()));
        let share = |device: &str| machine.devices[device].share;
        assert_eq!(share("sda"), Some("9/16".parse().unwrap()));
        assert_eq!(share("sdb"), Some("3/32".parse().unwrap()));
    }

    #[test]
    fn a_sum_of_more_pages_than_a_share_names_is_rounded_down() {
        let all: Vec<(Share, u32)> =
            ["1/4294967291", "1/65537", "1/2"].into_iter().map(|text| (text.parse().unwrap(), 1)).collect();
        let sum = joined(&all);
        assert!(sum.pages > sum.of / 2 && sum.pages < sum.of / 2 + sum.of / 60_000, "{sum}");
    }
}
