// SPDX-License-Identifier: MIT OR Apache-2.0
//! Read plan of a sample, decided before anything is read: a pure function of the facts about the machine and of the
//! wanted tables. Sources that it leaves out, and those that this machine cannot have, are stated as gaps.

use floodline_record::facts::HostFacts;
use floodline_record::gap::{Cause, Gap, Source};
use floodline_record::id::Hierarchy;
use floodline_record::name::Name;
use floodline_record::text::Text;
use floodline_record::units::Nanos;
use std::collections::BTreeMap;

/// Tables that the caller wants. The machine-wide row is always read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// Memory zones.
    pub zones: bool,
    /// Block devices.
    pub disks: bool,
    /// Backing devices, knobs and state.
    pub bdis: bool,
    /// Writeback structures.
    pub wbs: bool,
    /// Cgroups.
    pub cgroups: bool,
    /// Limits of cgroups.
    pub cgroup_limits: bool,
    /// I/O by cgroup and device.
    pub cgroup_io: bool,
    /// Processes.
    pub processes: bool,
    /// Of cgroups only the files that their dirty limits depend on.
    pub budget_only: bool,
}

impl Needs {
    /// All tables.
    pub const ALL: Needs = Needs {
        zones: true,
        disks: true,
        bdis: true,
        wbs: true,
        cgroups: true,
        cgroup_limits: true,
        cgroup_io: true,
        processes: true,
        budget_only: false,
    };
    /// Tables that dirty limits depend on, for a single sample: no rates, no processes.
    pub const BUDGET: Needs = Needs { wbs: false, cgroup_io: false, processes: false, budget_only: true, ..Needs::ALL };
    /// The machine-wide row alone.
    pub const HOST: Needs = Needs {
        zones: false,
        disks: false,
        bdis: false,
        wbs: false,
        cgroups: false,
        cgroup_limits: false,
        cgroup_io: false,
        processes: false,
        budget_only: false,
    };
}

/// One hierarchy of cgroups to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    /// The hierarchy.
    pub hierarchy: Hierarchy,
    /// Its mount point.
    pub mount: Name,
}

/// What a sample reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Tables to be read.
    pub needs: Needs,
    /// Interval, in samples, at which zones, knobs and limits are read. They are also read when an entity is first
    /// seen.
    pub slow_every: u64,
    /// Least time between two samples that read the files for which the kernel adds up the counters of a cgroup
    /// (`memory.stat`, `io.stat`); 0 for each sample. They are also read when a cgroup is first seen.
    pub stat_every: Nanos,
    /// The hierarchy that has the memory controller.
    pub memory: Option<Tree>,
    /// The separate hierarchy for the I/O of cgroups (version 1).
    pub blkio: Option<Tree>,
    /// Original inode numbers of cgroups by path (escaped), if their directories are copies with other numbers.
    pub cgroup_inodes: BTreeMap<Text, u64>,
    /// Whether to try debugfs.
    pub debugfs: bool,
    /// Sources that will not be read, and why.
    pub gaps: Vec<Gap>,
}

/// Interval, in samples, at which values that hardly ever change are read.
const SLOW_EVERY: u64 = 10;

impl Plan {
    /// Reads the files for which the kernel adds up counters in samples that are at least this far apart. On Linux 6.9 and
    /// later, each read frees paused writers earlier than the kernel would, and a storm of starved cgroups grows.
    #[must_use]
    pub fn with_stat_every(self, stat_every: Nanos) -> Plan {
        Plan { stat_every, ..self }
    }

    /// Plans to read all that this machine has.
    pub fn everything(facts: &HostFacts) -> Plan {
        Plan::for_needs(facts, Needs::ALL)
    }

    /// Plans to read the wanted tables that this machine has.
    pub fn for_needs(facts: &HostFacts, needs: Needs) -> Plan {
        let any_cgroup = needs.cgroups || needs.cgroup_limits || needs.cgroup_io;
        let (memory, blkio) = if any_cgroup { trees(facts) } else { (None, None) };
        let blkio = blkio.filter(|_| needs.cgroup_io);
        let any_debugfs = needs.bdis || needs.wbs;
        let debugfs = any_debugfs && facts.debugfs != Some(false);

        let mut gaps = Vec::new();
        let mut gap = |source, cause| gaps.push(Gap::new(source, cause));
        let wanted = [
            (needs.zones, Source::Zoneinfo),
            (needs.disks, Source::Diskstats),
            (needs.bdis, Source::SysBdi),
            (needs.bdis, Source::DebugBdiStats),
            (needs.wbs, Source::DebugWbStats),
            (needs.cgroups, Source::MemoryStat),
            (needs.cgroup_limits, Source::MemoryLimits),
            (needs.cgroup_io, Source::IoStat),
            (needs.processes, Source::Processes),
        ];
        let left_out = [
            Source::MemoryEvents,
            Source::MemoryPressure,
            Source::IoPressure,
            Source::IoLimits,
            Source::CgroupStat,
            Source::CgroupEvents,
        ];
        let left_out = left_out.into_iter().map(|source| (!needs.budget_only, source));
        for (_, source) in wanted.into_iter().chain(left_out).filter(|(wanted, _)| !wanted) {
            gap(source, Cause::NotPlanned);
        }
        if any_debugfs && !debugfs {
            let cause = || match facts.mounts.iter().any(|mount| mount.fs_type == "debugfs") {
                true => Cause::PermissionDenied { need: "root".into() },
                false => Cause::NotMounted { fs_type: "debugfs".into() },
            };
            gap(Source::DebugBdiStats, cause());
            gap(Source::DebugWbStats, cause());
        }
        if any_cgroup && memory.is_none() {
            gap(Source::CgroupV2, Cause::NotMounted { fs_type: "cgroup2".into() });
            gap(Source::CgroupV1Memory, Cause::NotMounted { fs_type: "cgroup".into() });
        }
        let version_1 = memory.as_ref().is_some_and(|tree| tree.hierarchy == Hierarchy::V1Memory);
        if needs.cgroup_io && version_1 && blkio.is_none() {
            gap(Source::CgroupV1Blkio, Cause::NotMounted { fs_type: "cgroup".into() });
        }
        if needs.processes && facts.mounts.iter().any(hides_processes) && facts.privileged != Some(true) {
            let cause = Cause::PermissionDenied { need: "root, as /proc is mounted hidepid".into() };
            gap(Source::Processes, cause);
        }
        let cgroup_inodes = facts.cgroup_inodes.clone();
        Plan { needs, slow_every: SLOW_EVERY, stat_every: Nanos(0), memory, blkio, cgroup_inodes, debugfs, gaps }
    }
}

/// Returns the hierarchies with the memory and I/O controllers. In a hybrid set-up the unified hierarchy is mounted
/// without these controllers and only groups processes: then the version 1 hierarchies are read.
fn trees(facts: &HostFacts) -> (Option<Tree>, Option<Tree>) {
    let setup = &facts.cgroups;
    let unified = |controller: &str| setup.v2_controllers.iter().any(|have| have == controller);
    let v1 = |controller: &str, hierarchy| {
        setup.v1_mounts.get(controller).map(|mount| Tree { hierarchy, mount: mount.clone() })
    };
    let v2 = setup.v2_mount.as_ref().map(|mount| Tree { hierarchy: Hierarchy::V2, mount: mount.clone() });
    let memory = match v1("memory", Hierarchy::V1Memory) {
        Some(v1) if !unified("memory") => Some(v1),
        _ => v2,
    };
    let blkio = if unified("io") { None } else { v1("blkio", Hierarchy::V1Blkio) };
    (memory, blkio)
}

/// Returns whether a mount of proc shows only the reader's own processes (`hidepid`).
fn hides_processes(mount: &floodline_record::facts::Mount) -> bool {
    let hides = |options: &Name| {
        let mut options = options.as_bytes().split(|&b| b == b',');
        options.any(|option| option.strip_prefix(b"hidepid=").is_some_and(|value| value != b"0" && value != b"off"))
    };
    mount.fs_type == "proc" && (hides(&mount.options) || hides(&mount.super_options))
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_record::facts::{CgroupMode, CgroupSetup, Mount};
    use floodline_record::id::DevId;

    fn setup(v2: Option<&[&str]>, v1: &[&str]) -> HostFacts {
        let mode = match (v2, v1) {
            (Some(_), []) => CgroupMode::V2,
            (Some(_), _) => CgroupMode::Hybrid,
            (None, []) => CgroupMode::None,
            (None, _) => CgroupMode::V1,
        };
        let cgroups = CgroupSetup {
            mode,
            v2_mount: v2.map(|_| Name::from("/unified")),
            v2_controllers: v2.unwrap_or_default().iter().map(|&name| name.into()).collect(),
            v2_controllers_unread: false,
            v1_mounts: v1.iter().map(|&name| (name.into(), Name::new(format!("/v1/{name}")))).collect(),
        };
        HostFacts { cgroups, debugfs: Some(true), ..HostFacts::default() }
    }

    fn check(facts: &HostFacts, trees: &str, gaps: &[&str]) {
        let plan = Plan::everything(facts);
        let show = |tree: &Option<Tree>| tree.as_ref().map_or("-".into(), |tree| tree.mount.to_string());
        assert_eq!(format!("{} {}", show(&plan.memory), show(&plan.blkio)), trees);
        assert_eq!(plan.gaps.iter().map(Gap::to_string).collect::<Vec<_>>(), gaps);
    }

    #[test]
    fn the_hierarchy_with_the_controllers_is_read() {
        check(&setup(Some(&["memory", "io"]), &[]), "/unified -", &[]);
        check(&setup(Some(&[]), &["memory", "blkio", "cpu"]), "/v1/memory /v1/blkio", &[]);
        check(&setup(None, &["memory", "blkio"]), "/v1/memory /v1/blkio", &[]);
        check(&setup(Some(&["memory"]), &["blkio"]), "/unified /v1/blkio", &[]);
        check(&setup(Some(&["memory", "io"]), &["cpu"]), "/unified -", &[]);
        check(&setup(None, &["memory"]), "/v1/memory -", &["/sys/fs/cgroup/blkio: cgroup is not mounted"]);
        let gaps = ["/sys/fs/cgroup: cgroup2 is not mounted", "/sys/fs/cgroup/memory: cgroup is not mounted"];
        check(&setup(None, &[]), "- -", &gaps);
    }

    #[test]
    fn what_the_reader_may_not_see_is_stated_before_reading() {
        let proc = Mount {
            dev: DevId { major: 0, minor: 5 },
            root: "/".into(),
            mount_point: "/proc".into(),
            fs_type: "proc".into(),
            source: "proc".into(),
            options: "rw,nosuid".into(),
            super_options: "rw,hidepid=2".into(),
            overlay: None,
        };
        let debugfs = Mount { fs_type: "debugfs".into(), super_options: "rw".into(), ..proc.clone() };
        let facts = HostFacts { privileged: Some(false), debugfs: Some(false), ..setup(Some(&["memory", "io"]), &[]) };
        let stats = "/sys/kernel/debug/bdi/NAME/stats: ";
        let wb_stats = "/sys/kernel/debug/bdi/NAME/wb_stats: ";
        check(
            &facts,
            "/unified -",
            &[&format!("{stats}debugfs is not mounted"), &format!("{wb_stats}debugfs is not mounted")],
        );
        let facts = HostFacts { mounts: vec![proc.clone(), debugfs], ..facts };
        let gaps = [
            &format!("{stats}permission denied (needs root)"),
            &format!("{wb_stats}permission denied (needs root)"),
            "/proc/PID: permission denied (needs root, as /proc is mounted hidepid)",
        ];
        check(&facts, "/unified -", &gaps);
        let facts = HostFacts { privileged: Some(true), debugfs: None, mounts: vec![proc], ..facts };
        check(&facts, "/unified -", &[]);
    }

    #[test]
    fn what_nobody_wants_is_left_out_and_said() {
        let facts = setup(Some(&["memory", "io"]), &[]);
        let plan = Plan::for_needs(&facts, Needs { processes: false, cgroup_io: false, ..Needs::ALL });
        let gaps: Vec<_> = plan.gaps.iter().map(|gap| (gap.source, gap.cause.clone())).collect();
        assert_eq!(gaps, [(Source::IoStat, Cause::NotPlanned), (Source::Processes, Cause::NotPlanned)]);
        let plan = Plan::for_needs(&facts, Needs::HOST);
        assert_eq!((plan.memory, plan.blkio, plan.debugfs), (None, None, false));
    }
}
