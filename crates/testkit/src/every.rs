// SPDX-License-Identifier: MIT OR Apache-2.0
//! A record of every kind, with every field filled: each entity, event and cause of a gap there is. The matches below
//! have no arm for "the rest": a new kind does not compile until it is listed here.

use super::incidents::dirty_cliff;
use super::mount;
use floodline_record::facts::{
    BlockDevice, CgroupMode, CgroupSetup, HostFacts, Hz, Journald, Mount, Overlay, Stack, SysctlLine,
};
use floodline_record::gap::{Cause, Gap, Source};
use floodline_record::id::{DevId, Entity, EntityId, Hierarchy};
use floodline_record::name::Name;
use floodline_record::record::{Event, Latency, Record, TaskIo, TaskName, What};
use floodline_record::text::Text;
use floodline_record::traced::bytes::{Cancelled, Class, Dirtied, Submitted};
use floodline_record::traced::flusher::Flushed;
use floodline_record::traced::switches::{CgroupRemoved, ForeignDirtied, ForeignFlushed, InodesSwitched};
use floodline_record::traced::throttle::{Domain, ThrottleState, Throttled};
use floodline_record::traced::waits::{Operation, SlowSync, Synced};
use floodline_record::traced::{File, Who};
use floodline_record::units::{Bytes, Nanos, Pages};

/// Device of the machine.
const DEV: DevId = DevId { major: 8, minor: 0 };

/// An incident, and around its samples one record of every kind.
pub(super) fn every_record() -> Vec<Record> {
    let mut records = dirty_cliff().records();
    let first = records.iter().position(|record| matches!(record, Record::Sample(_))).unwrap_or_default();
    let at = records.iter().find_map(|record| match record {
        Record::Sample(sample) => Some(sample.time.monotonic),
        _ => None,
    });
    let at = at.unwrap_or_default();
    let mut more = vec![Record::Facts(Box::new(facts()))];
    more.extend((0u32..).zip(every(next_entity)).map(|(id, entity)| Record::Entity(EntityId(5000 + id), entity)));
    more.extend(every(next_event).into_iter().map(|what| Record::Event(Event { at, what })));
    more.extend(every(next_cause).into_iter().map(|cause| {
        Record::Gap(Gap {
            source: Source::CgroupV2,
            cause,
            entity: Some(EntityId(5000)),
            detail: Some("memory.stat".into()),
            times: 2,
        })
    }));
    records.splice(first..first, more);
    records
}

/// All values of a chain: `next` of nothing is the first, and nothing follows the last.
fn every<T: Clone>(next: impl Fn(Option<&T>) -> Option<T>) -> Vec<T> {
    std::iter::successors(next(None), |last| next(Some(last))).collect()
}

fn facts() -> HostFacts {
    let device = |minor, name: &str, stack| BlockDevice {
        dev: DevId { minor, ..DEV },
        name: Name::from(name),
        rotational: Some(false),
        scheduler: Some("mq-deadline".into()),
        nr_requests: Some(256),
        max_request: Some(Bytes(1 << 20)),
        wbt_lat: Some(Nanos(2_000_000)),
        write_back_cache: Some(true),
        size: Some(Bytes(1 << 40)),
        partition_of: Some(DEV),
        slaves: vec![DEV],
        stack,
    };
    let stacks = every(next_stack);
    HostFacts {
        hostname: Name::from("web-1"),
        kernel_release: "6.12.117-amd64".into(),
        kernel: "6.12.117".parse().ok(),
        cmdline: Name::from("quiet"),
        page_size: 4096,
        hz: Some(Hz { value: 250, assumed: true }),
        cpus_possible: Some(8),
        mem_total: Some(Bytes(16 << 30)),
        cgroups: CgroupSetup {
            mode: CgroupMode::Hybrid,
            v2_mount: Some(Name::from("/sys/fs/cgroup")),
            v2_controllers: vec!["memory".into()],
            v2_controllers_unread: false,
            v1_mounts: [("memory".into(), Name::from("/sys/fs/cgroup/memory"))].into(),
        },
        devices: (0..).zip(stacks).map(|(minor, stack)| device(minor, "sda", stack)).collect(),
        mounts: vec![
            mount("sda", "ext4", "/", "data=ordered"),
            Mount {
                overlay: Some(Overlay { upperdir: Some(Name::from("/upper")), upper_dev: Some(DEV), volatile: false }),
                ..mount("sda", "overlay", "/merged", "upperdir=/upper")
            },
        ],
        journald: Some(Journald {
            storage: "persistent".into(),
            persistent: Some(true),
            sync_interval: Some(Nanos::SECOND),
            files: vec![Name::from("/etc/systemd/journald.conf")],
        }),
        sysctl_lines: vec![SysctlLine {
            file: Name::from("/etc/sysctl.d/50-local.conf"),
            line: 3,
            key: "vm.dirty_ratio".into(),
            value: "20".into(),
        }],
        container_names: [("0123".into(), Name::from("web"))].into(),
        user_container_names: [(1000, [("4567".into(), Name::from("mine"))].into())].into(),
        privileged: Some(false),
        task_delayacct: Some(true),
        lru_gen: Some(false),
        boot_id: Some("3b1f0c52-9d0e-4a77-8a53-6a1d2f7c9e10".into()),
        debugfs: Some(true),
        bdis: [("8:0".into(), Some(DEV))].into(),
        io_cost_qos: [("8:0".into(), Text::from("enable=1"))].into(),
        cgroup_inodes: [("/system.slice".into(), 7)].into(),
    }
}

fn next_stack(last: Option<&Stack>) -> Option<Stack> {
    Some(match last {
        None => Stack::Bottom,
        Some(Stack::Bottom) => Stack::Loop { backing_file: Name::from("/image"), dio: Some(false) },
        Some(Stack::Loop { .. }) => Stack::Md { level: "raid1".into() },
        Some(Stack::Md { .. }) => Stack::Dm { name: Name::from("vg-root") },
        Some(Stack::Dm { .. }) => return None,
    })
}

fn next_entity(last: Option<&Entity>) -> Option<Entity> {
    Some(match last {
        None => Entity::Zone { node: 0, name: Name::from("Normal") },
        Some(Entity::Zone { .. }) => Entity::Disk { dev: DEV, name: Name::from("sda") },
        Some(Entity::Disk { .. }) => Entity::Bdi { name: Name::from("8:0") },
        Some(Entity::Bdi { .. }) => Entity::Wb { bdi: Name::from("8:0"), cgroup_ino: 7 },
        Some(Entity::Wb { .. }) => {
            Entity::Cgroup { path: Name::from("/system.slice"), hierarchy: Hierarchy::V2, ino: Some(7) }
        }
        Some(Entity::Cgroup { .. }) => Entity::CgroupIo { cgroup: EntityId(5004), dev: DEV },
        Some(Entity::CgroupIo { .. }) => Entity::Process {
            pid: 41,
            start_ticks: 1,
            comm: Name::from("dd"),
            cgroup: Some(EntityId(5004)),
            kthread: false,
        },
        Some(Entity::Process { .. }) => return None,
    })
}

fn next_cause(last: Option<&Cause>) -> Option<Cause> {
    Some(match last {
        None => Cause::NotFound,
        Some(Cause::NotFound) => Cause::PermissionDenied { need: "CAP_SYS_PTRACE".into() },
        Some(Cause::PermissionDenied { .. }) => Cause::NotMounted { fs_type: "debugfs".into() },
        Some(Cause::NotMounted { .. }) => Cause::Unsupported { since: "since 6.10".into() },
        Some(Cause::Unsupported { .. }) => Cause::Malformed { what: "a number".into() },
        Some(Cause::Malformed { .. }) => Cause::Vanished,
        Some(Cause::Vanished) => Cause::TooLarge { limit_bytes: 4096 },
        Some(Cause::TooLarge { .. }) => Cause::Io { errno: 5 },
        Some(Cause::Io { .. }) => Cause::Exhausted { what: "file descriptors".into() },
        Some(Cause::Exhausted { .. }) => Cause::Refused { why: "no BTF".into() },
        Some(Cause::Refused { .. }) => Cause::NotPlanned,
        Some(Cause::NotPlanned) => Cause::TooShort { need: "--for 10s".into() },
        Some(Cause::TooShort { .. }) => Cause::TooCoarse { need: "--every 1s".into() },
        Some(Cause::TooCoarse { .. }) => Cause::SamplesMissing { what: "2 of 3 samples are missing".into() },
        Some(Cause::SamplesMissing { .. }) => Cause::NotRecorded,
        Some(Cause::NotRecorded) => Cause::Unknown,
        Some(Cause::Unknown) => return None,
    })
}

fn next_event(last: Option<&What>) -> Option<What> {
    let who = || Who { pid: 41, comm: Name::from("dd"), cgroup_ino: 7 };
    let file = || Some(File { ino: 131, generation: Some(7), path: Some(Name::from("/log")) });
    let task = || TaskName { task: "mail".into(), copy: 3 };
    let bdi = || Name::from("8:0");
    let (since, second) = (Nanos(0), Nanos::SECOND);
    Some(match last {
        None => What::Note { text: "by hand".into() },
        Some(What::Note { .. }) => What::Missed { samples: 3 },
        Some(What::Missed { .. }) => {
            What::WorkloadStarted { scenario: "slow-journal".into(), variant: "incident".into() }
        }
        Some(What::WorkloadStarted { .. }) => What::WorkloadEnded,
        Some(What::WorkloadEnded) => What::TaskStarted { task: task(), pid: Some(41) },
        Some(What::TaskStarted { .. }) => What::TaskEnded { task: task(), failure: Some("no space left".into()) },
        Some(What::TaskEnded { .. }) => {
            What::TaskStall { task: task(), operation: "fsync".into(), lasted: Nanos::SECOND }
        }
        Some(What::TaskStall { .. }) => What::TaskOperations {
            task: task(),
            operation: "fsync".into(),
            since,
            count: 2,
            bytes: 8192,
            latency: Latency { max: second, ..Latency::default() },
        },
        Some(What::TaskOperations { .. }) => {
            What::TaskIo { task: task(), since, io: TaskIo { wchar: Some(4096), ..TaskIo::default() } }
        }
        Some(What::TaskIo { .. }) => What::TaskThrottled { task: task(), since, slept: second },
        Some(What::TaskThrottled { .. }) => What::Dirtied(Dirtied {
            since,
            who: who(),
            device: DEV,
            file: file(),
            bytes: Bytes(69_632),
            folios: 2,
            redirtied: Bytes(4096),
        }),
        Some(What::Dirtied(_)) => {
            What::Cancelled(Cancelled { since, who: who(), device: DEV, file: file(), bytes: Bytes(4096) })
        }
        Some(What::Cancelled(_)) => What::Submitted(Submitted {
            since,
            disk: DEV,
            class: Class::Data,
            device: Some(DEV),
            file: file(),
            cgroup_ino: Some(7),
            who: Some(who()),
            bytes: Bytes(69_632),
            bios: 1,
        }),
        Some(What::Submitted(_)) => What::SlowSync(SlowSync {
            who: who(),
            tid: Some(42),
            operation: Operation::Fsync,
            lasted: second,
            device: Some(DEV),
            file: file(),
            queued: Some(Bytes(1 << 20)),
            own: Bytes(4096),
        }),
        Some(What::SlowSync(_)) => What::Synced(Synced {
            since,
            who: who(),
            operation: Operation::Fsync,
            count: 2,
            total: second,
            longest: second,
        }),
        Some(What::Synced(_)) => What::TraceStarted { parts: vec!["throttle".into(), "bytes".into()] },
        Some(What::TraceStarted { .. }) => What::Throttled(Box::new(Throttled {
            since,
            who: who(),
            tid: 42,
            bdi: bdi(),
            wb_cgroup_ino: 7,
            domain: Domain::Memcg,
            pauses: 5,
            pause_ns: second,
            pause_ns_max: second,
            slept_ns: Some(second),
            slept_ns_max: Some(second),
            unpaused: 1,
            longest: Some(ThrottleState::default()),
        })),
        Some(What::Throttled(_)) => What::Flushed(Box::new(Flushed {
            since,
            bdi: bdi(),
            wb_cgroup_ino: 7,
            reason: "background".into(),
            rounds: 3,
            sync_rounds: 1,
            pages: Pages(100),
            busy_ns: second,
            busy_ns_max: second,
        })),
        Some(What::Flushed(_)) => What::InodesSwitched(Box::new(InodesSwitched {
            since,
            bdi: bdi(),
            old_cgroup_ino: 7,
            new_cgroup_ino: 1,
            switched: 100,
            queued: Some(1),
            first_at: since,
            last_at: second,
        })),
        Some(What::InodesSwitched(_)) => What::ForeignDirtied(Box::new(ForeignDirtied {
            since,
            bdi: bdi(),
            wb_cgroup_ino: 7,
            page_cgroup_ino: 1,
            folios: 100,
            last_ino: 131,
        })),
        Some(What::ForeignDirtied(_)) => What::ForeignFlushed(Box::new(ForeignFlushed {
            since,
            bdi: bdi(),
            cgroup_ino: 7,
            frn_memcg_id: 3,
            flushes: 2,
        })),
        Some(What::ForeignFlushed(_)) => What::CgroupRemoved(CgroupRemoved { cgroup_ino: 7, path: Name::from("/box") }),
        Some(What::CgroupRemoved(_)) => What::Unknown,
        Some(What::Unknown) => return None,
    })
}
