// SPDX-License-Identifier: MIT OR Apache-2.0
//! A storm that a change may bring, and that no run of the twin shows: the twin has no inodes of removed cgroups. The facts of the
//! recording decide whether it can come. Runs nothing.

use crate::changed::{Changed, is_unified};
use floodline_analysis::diagnose::cgroup::label;
use floodline_analysis::diagnose::moved_inodes::{self, Moves, has_times};
use floodline_analysis::diagnose::switches::Cost;
use floodline_analysis::prediction::{Doubtful, Reason, Seen};
use floodline_analysis::report::Severity;
use floodline_analysis::shown::behaviour_of;
use floodline_record::facts::Mount;
use floodline_record::window::Window;

/// A storm that a change may bring.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Storm {
    severity: Severity,
    /// What the recording shows of it.
    pub(crate) told: String,
}

impl Storm {
    /// The answer on its finding: it may come.
    pub(crate) fn doubt(&self) -> Doubtful {
        Doubtful::new(&Seen { rule: "inode-switch-storm", severity: self.severity }, false, Reason::Inodes, (0, 0))
    }
}

/// The storm that the change from one twin of a recording to the other may bring.
pub(crate) fn of(window: &Window, now: &Changed, then: &Changed) -> Option<Storm> {
    let mounts = || window.facts.iter().flat_map(|facts| &facts.mounts);
    let moves = Moves {
        cost: Cost::of(Some(behaviour_of(window, then.kernel))),
        is_unified: is_unified(&then.scenario),
        has_times: mounts().any(|mount| match new_options(mount, now, then) {
            Some(options) => has_times(|option| options.iter().any(|one| one == option)),
            None => has_times(|option| mount.has_option(option)),
        }),
    };
    let storm = moved_inodes::Storm::of(window, moves)?;
    let severity = if storm.is_certain() { Severity::Critical } else { Severity::Warning };
    Some(Storm { severity, told: storm.told(|cgroup| label(window, cgroup)) })
}

/// The options that a change gives a mount; `None` if it keeps those of the recording.
fn new_options<'a>(mount: &Mount, now: &Changed, then: &'a Changed) -> Option<&'a [String]> {
    let point = mount.mount_point.to_string();
    let (now, then) = (now.scenario.machine.mounts.get(&point)?, then.scenario.machine.mounts.get(&point)?);
    (now.options != then.options).then_some(then.options.as_slice())
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_record::sample::CgroupRow;
    use floodline_record::units::{Bytes, Count};
    use floodline_scenario::ScenarioFile;
    use floodline_testkit::{Fixture, mib};

    /// The twin of a host with one mount.
    fn twin(cgroups: &str, options: &str, kernel: &str) -> Changed {
        let text = format!(
            "name = \"twin\"\nsummary = \"a twin\"\nmachine.memory = \"4 GiB\"\nmachine.cpus = 2\nmachine.cgroup_mode = \"{cgroups}\"\n\
             machine.devices.sdb = {{ size = \"20 GiB\" }}\n\
             machine.mounts.\"/data\" = {{ type = \"xfs\", device = \"sdb\", options = [{options}] }}\n\
             workload.duration = \"5s\"\nworkload.tasks.w = {{ steps = [{{ sleep = {{ for = \"5s\" }} }}] }}\n"
        );
        let scenario = ScenarioFile::parse(&text).expect("a scenario").variants.remove("default").expect("its variant");
        Changed { scenario, kernel: kernel.parse().expect("a version") }
    }

    /// A host whose unit is removed after half of the time. Its files have this much slab.
    fn host(options: &str, slab_mib: f64) -> Window {
        let host = Fixture::healthy().kernel("5.10.223").mount("sdb", "xfs", "/data", options);
        host.cgroup("/", |_, row| row.nr_dying_descendants = Some(Count(1)))
            .cgroup("/unpack", move |t, row| {
                row.slab_reclaimable = Some(Bytes(mib(slab_mib)));
                if t > 5.0 {
                    *row = CgroupRow::default();
                }
            })
            .window()
    }

    const LAZY: &str = "\"lazytime\"";

    #[test]
    fn a_kernel_or_an_option_that_brings_a_storm_is_named() {
        let now = twin("v2", LAZY, "5.10.223");
        let told = |window: &Window, then: &Changed| of(window, &now, then).map(|storm| storm.doubt());
        let lazy = host("rw,lazytime", 27.8);
        let storm = told(&lazy, &twin("v2", LAZY, "6.12.43")).expect("a storm");
        assert_eq!((storm.rule, storm.severity, storm.is_likely), ("inode-switch-storm", Severity::Critical, false));
        assert!(told(&lazy, &twin("v2", LAZY, "6.12.117")).is_none(), "it has the fix");
        assert!(told(&lazy, &twin("v1", LAZY, "6.12.43")).is_none(), "inodes belong to no cgroup");
        assert!(told(&lazy, &twin("v2", "\"noatime\"", "6.12.43")).is_none(), "no time stamp gets dirty");
        let plain = host("rw", 27.8);
        let relaxed = twin("v2", "", "5.10.223");
        let then = twin("v2", LAZY, "6.12.43");
        assert!(of(&plain, &relaxed, &then).is_some(), "the change has the option");
        assert!(of(&plain, &relaxed, &twin("v2", "", "6.12.43")).is_none());
    }
}
