// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a host can do to its observer: garbage in files, hostile names, things that vanish, refuse or
//! block. Each becomes a gap with its cause and an unknown value; nothing becomes a panic or a zero.

#![allow(clippy::unwrap_used, reason = "tests")]

use crate::tree::HostTree;
use floodline_host::collect::Collector;
use floodline_host::plan::Plan;
use floodline_host::root::HostRoot;
use floodline_record::gap::{Cause, Gap, Source};
use floodline_record::id::{Entity, EntityId};
use floodline_record::metric::Row;
use floodline_record::record::Record;
use floodline_record::sample::{HostRow, ProcessRow};
use floodline_record::sample::{Sample, Table, TableVisitor};
use floodline_record::units::{Bytes, Count};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

fn plan() -> Plan {
    Plan::everything(&HostTree::facts())
}

fn gaps(out: &[Record]) -> Vec<&Gap> {
    out.iter()
        .filter_map(|record| match record {
            Record::Gap(gap) => Some(gap),
            _ => None,
        })
        .collect()
}

fn sample(out: &[Record]) -> &Sample {
    let Some(Record::Sample(sample)) = out.last() else { panic!("a sample comes last") };
    sample
}

/// The values of a sample that are known.
fn known(sample: &Sample) -> Vec<String> {
    struct Known(Vec<String>);
    impl Known {
        fn row<R: Row>(&mut self, row: &R) {
            for (index, metric) in R::METRICS.iter().enumerate() {
                self.0.extend(row.get(index).map(|value| format!("{}.{} {value}", R::TABLE, metric.name)));
            }
        }
    }
    impl TableVisitor for Known {
        fn host(&mut self, row: &HostRow) {
            self.row(row);
        }
        fn table<R: Row + 'static>(&mut self, table: &Table<R>) {
            for (_, row) in table.rows() {
                self.row(row);
            }
        }
    }
    let mut known = Known(Vec::new());
    sample.visit(&mut known);
    known.0
}

/// What must hold of every stream: ids are described before they are used and never twice.
#[derive(Default)]
struct Rules {
    described: BTreeSet<EntityId>,
    processes: BTreeSet<(u32, u64)>,
}

impl Rules {
    fn check(&mut self, out: &[Record]) {
        for record in out {
            match record {
                Record::Entity(id, Entity::Process { pid, start_ticks, .. }) => {
                    let again = !self.described.insert(*id);
                    assert!(self.processes.insert((*pid, *start_ticks)) || again, "described under two ids");
                }
                Record::Entity(id, entity) => {
                    assert!(self.described.insert(*id), "{entity:?} has an id that was used before");
                    if let Entity::CgroupIo { cgroup, .. } = entity {
                        assert!(self.described.contains(cgroup));
                    }
                }
                Record::Gap(gap) => assert!(gap.entity.is_none_or(|id| self.described.contains(&id))),
                Record::Sample(sample) => {
                    struct Ids<'a>(&'a BTreeSet<EntityId>);
                    impl TableVisitor for Ids<'_> {
                        fn host(&mut self, _: &HostRow) {}
                        fn table<R: Row + 'static>(&mut self, table: &Table<R>) {
                            assert!(table.rows().is_sorted_by(|a, b| a.0 < b.0), "{}: one row for each id", R::TABLE);
                            assert!(table.rows().iter().all(|(id, _)| self.0.contains(id)), "{}", R::TABLE);
                        }
                    }
                    sample.visit(&mut Ids(&self.described));
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn garbage_in_every_file_is_a_gap_and_never_a_value() {
    let garbage: [&[u8]; 6] =
        [b"", b"\xff\xfe\x00\x01\x02\x1b[31m", b"\n\n\n", b"0", &[b'9'; 40_000], b"(((\n:::\n=== 0 0 0\n"];
    for text in garbage {
        let tree = HostTree::new();
        tree.cgroup("/a");
        tree.process(7, 70, "x", "/a");
        let files = tree.files();
        for file in &files {
            tree.write(file, text);
        }
        let root = HostRoot::at(tree.path()).unwrap();
        let mut collector = Collector::new(&root, plan());
        let mut rules = Rules::default();
        for turn in 0..12 {
            let mut out = Vec::new();
            collector.collect(&mut out);
            rules.check(&out);
            // An empty list of controllers is what the kernel writes where there are none.
            let controllers = |value: &&String| !value.starts_with("cgroup_limits.");
            let values = known(sample(&out));
            assert_eq!(values.iter().filter(controllers).collect::<Vec<_>>(), [""; 0], "{text:?}");
            if turn == 0 {
                let malformed = gaps(&out).iter().filter(|gap| matches!(gap.cause, Cause::Malformed { .. })).count();
                assert!(malformed >= 20, "{malformed} gaps of {} files for {text:?}", files.len());
            } else {
                assert_eq!(gaps(&out), [] as [&Gap; 0], "said once");
            }
        }
    }
}

#[test]
fn counters_are_kept_as_they_are_even_when_they_wrap_or_go_back() {
    let tree = HostTree::new();
    tree.process(7, 70, "x", "/");
    let root = HostRoot::at(tree.path()).unwrap();
    let mut collector = Collector::new(&root, plan());
    let io = std::fs::read_to_string(tree.at("proc/7/io")).unwrap();
    let vmstat = std::fs::read_to_string(tree.at("proc/vmstat")).unwrap();
    let dirty = vmstat.lines().find(|line| line.starts_with("nr_dirty ")).unwrap();
    for (text, expect) in [
        ("18446744073709551615", Some(u64::MAX)),
        ("9223372036854775808", Some(1 << 63)),
        ("5", Some(5)),
        ("0", Some(0)),
        ("18446744073709551616", None),
        ("-3", None),
    ] {
        tree.write("proc/7/io", io.replace("write_bytes: 4096", &format!("write_bytes: {text}")));
        tree.write("proc/vmstat", vmstat.replace(dirty, &format!("nr_dirty {text}")));
        let mut out = Vec::new();
        collector.collect(&mut out);
        assert_eq!(sample(&out).host.nr_dirty.map(|pages| pages.0), expect, "{text}");
        let processes: Vec<&ProcessRow> = sample(&out).processes.rows().iter().map(|(_, row)| row).collect();
        assert_eq!(processes[0].write_bytes, expect.map(Bytes), "{text}");
        assert_eq!(processes[0].wchar, Some(Bytes(15)), "the rest of the file is known");
    }
}

#[test]
fn hostile_names_are_names() {
    let tree = HostTree::new();
    let long = "n".repeat(255);
    let mut deep = String::new();
    while deep.len() < 3500 {
        deep = format!("{deep}/{}", "d".repeat(250));
    }
    let names = ["/\x1b]0;owned\x07", "/a\nb", "/ (deleted)", "/\u{202e}evil", "/memory.stat2", &format!("/{long}")];
    for name in names {
        tree.cgroup(name);
    }
    tree.cgroup(&deep);
    tree.process(7, 70, "\x1b[31m) R 1 (\n", "/a\nb");
    let root = HostRoot::at(tree.path()).unwrap();
    let mut out = Vec::new();
    let mut rules = Rules::default();
    let mut collector = Collector::new(&root, plan());
    collector.collect(&mut out);
    rules.check(&out);
    let paths: BTreeSet<Vec<u8>> = out
        .iter()
        .filter_map(|record| match record {
            Record::Entity(_, Entity::Cgroup { path, .. }) => Some(path.as_bytes().to_vec()),
            _ => None,
        })
        .collect();
    for name in names {
        assert!(paths.contains(name.as_bytes()), "{name:?}");
    }
    assert!(paths.contains(deep.as_bytes()));
    let shown: Vec<String> = out
        .iter()
        .filter_map(|record| match record {
            Record::Entity(_, entity) => Some(entity.label()),
            Record::Gap(gap) => Some(gap.to_string()),
            _ => None,
        })
        .collect();
    assert!(shown.iter().all(|text| !text.chars().any(char::is_control)), "nothing raw is shown");
    assert!(shown.iter().any(|text| text == "\\x1b[31m) R 1 (\\x0a[7]"), "{shown:?}");
}

#[test]
fn what_is_not_a_file_is_not_read_and_nothing_blocks() {
    let tree = HostTree::new();
    tree.cgroup("/a");
    tree.process(7, 70, "x", "/a");
    tree.process(8, 80, "y", "/a");
    for (path, fifo) in [
        ("proc/vmstat", true),
        ("proc/meminfo", false),
        ("proc/7/io", true),
        ("proc/8/stat", true),
        ("sys/fs/cgroup/a/memory.stat", true),
        ("sys/fs/cgroup/a/io.stat", false),
        ("sys/fs/cgroup/a/memory.max", true),
        ("sys/class/bdi/254:0/max_bytes", false),
        ("sys/kernel/debug/bdi/254:0/wb_stats", true),
    ] {
        tree.remove(path);
        if fifo {
            let mode = rustix::fs::Mode::from_raw_mode(0o600);
            rustix::fs::mkfifoat(rustix::fs::CWD, tree.at(path), mode).unwrap();
        } else {
            std::fs::create_dir(tree.at(path)).unwrap();
        }
    }
    let root = HostRoot::at(tree.path()).unwrap();
    let mut collector = Collector::new(&root, plan());
    let mut out = Vec::new();
    collector.collect(&mut out);
    Rules::default().check(&out);
    let not_files: Vec<Source> = gaps(&out)
        .iter()
        .filter(|gap| gap.cause == Cause::Malformed { what: "a regular file".into() })
        .map(|gap| gap.source)
        .collect();
    let expect = [
        Source::Meminfo,
        Source::Vmstat,
        Source::ProcessIo,
        Source::ProcessStat,
        Source::SysBdi,
        Source::DebugWbStats,
        Source::MemoryStat,
        Source::MemoryLimits,
        Source::IoStat,
    ];
    assert_eq!(not_files.iter().collect::<BTreeSet<_>>(), expect.iter().collect::<BTreeSet<_>>());
    assert_eq!(sample(&out).host.nr_dirty, None);
    assert_eq!(sample(&out).processes.rows().len(), 1, "without stat nobody knows which process it is");
}

#[test]
fn what_vanishes_between_list_and_read_is_mentioned_once() {
    let tree = HostTree::new();
    tree.process(7, 70, "stays", "/");
    let root = HostRoot::at(tree.path()).unwrap();
    let mut collector = Collector::new(&root, plan());
    let mut reported = 0;
    for pid in 100..130 {
        // Listed, and gone when opened: a directory without files is what one sees then.
        std::fs::create_dir(tree.at(&format!("proc/{pid}"))).unwrap();
        let mut out = Vec::new();
        collector.collect(&mut out);
        assert_eq!(sample(&out).processes.rows().len(), 1);
        reported += gaps(&out).iter().filter(|gap| gap.cause == Cause::Vanished).count();
    }
    assert_eq!(reported, 1);
}

#[test]
fn a_machine_in_full_churn_is_sampled() {
    let tree = HostTree::sized(40, 40);
    let done = AtomicBool::new(false);
    let root = HostRoot::at(tree.path()).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut turn: u64 = 0;
            while !done.load(Ordering::Relaxed) {
                turn += 1;
                let (pid, cgroup) = (100 + (turn % 60) as u32, format!("/machine-{}.slice/c{}", turn % 3, turn % 7));
                let at = tree.at(&format!("proc/{pid}"));
                if at.is_dir() {
                    std::fs::remove_dir_all(at).unwrap();
                } else {
                    tree.process(pid, turn, "churn", &cgroup);
                }
                let at = tree.at(&format!("sys/fs/cgroup{cgroup}"));
                if at.is_dir() {
                    std::fs::remove_dir_all(at).unwrap();
                } else {
                    tree.cgroup(&cgroup);
                }
            }
        });
        let mut collector = Collector::new(&root, plan());
        let mut rules = Rules::default();
        let mut vanished = 0;
        for _ in 0..60 {
            let mut out = Vec::new();
            collector.collect(&mut out);
            vanished += gaps(&out).iter().filter(|gap| gap.cause == Cause::Vanished).count();
            for gap in gaps(&out) {
                // A file caught between being made and being written is not understood; that is all.
                let fine = matches!(gap.cause, Cause::Vanished | Cause::NotFound | Cause::Malformed { .. });
                assert!(fine, "{gap}");
            }
            // The made-up writer truncates and writes; the same id can then stand for a process whose
            // start time was read twice. Ids and order must hold all the same.
            rules.processes.clear();
            rules.check(&out);
            assert!(sample(&out).cgroups.rows().len() >= 30);
        }
        done.store(true, Ordering::Relaxed);
        assert!(vanished <= 2, "at most once for each source");
    });
}

#[test]
fn what_may_not_be_read_is_one_gap_with_a_number() {
    let tree = HostTree::sized(10, 20);
    // Written by whoever runs the tests, and refused to nobody.
    let refuse = |path: String| {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o000);
        std::fs::set_permissions(tree.at(&path), mode).unwrap();
    };
    (100..120).for_each(|pid| refuse(format!("proc/{pid}/io")));
    refuse("sys/kernel/debug/bdi/254:0/stats".into());
    refuse("sys/fs/cgroup/machine-0.slice/memory.stat".into());
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(tree.path(), open).unwrap();
    let run = || {
        // Credentials belong to a thread, as far as the kernel is concerned.
        let nobody = rustix::process::Uid::from_raw(65_534);
        if rustix::process::geteuid().is_root() {
            rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
        }
        let root = HostRoot::at(tree.path()).unwrap();
        let mut collector = Collector::new(&root, plan());
        let mut out = Vec::new();
        collector.collect(&mut out);
        let first: Vec<String> = gaps(&out).iter().map(|gap| gap.to_string()).collect();
        assert_eq!(sample(&out).processes.rows().len(), 20);
        let states = sample(&out).processes.rows().iter().filter(|(_, row)| row.state.is_some());
        assert_eq!(states.count(), 20, "what is open to all is still read");
        for _ in 0..20 {
            out.clear();
            collector.collect(&mut out);
            assert_eq!(gaps(&out), [] as [&Gap; 0]);
        }
        first
    };
    let first = std::thread::scope(|scope| scope.spawn(run).join().unwrap());
    let expect = [
        "/proc/PID/io: permission denied (needs CAP_SYS_PTRACE) (×20)",
        "/sys/kernel/debug/bdi/NAME/stats: permission denied (needs root)",
        "CGROUP/memory.stat (memory.stat): permission denied (needs CAP_DAC_READ_SEARCH)",
    ];
    assert_eq!(first, expect);
}

/// The files of `/box` that are told to be missing when it has these controllers and only `cgroup.*`.
fn missing_with(controllers: &str) -> BTreeSet<String> {
    let tree = HostTree::sized(0, 0);
    tree.cgroup("/box");
    for file in tree.files().iter().filter(|file| file.contains("/box/")) {
        let name = file.rsplit('/').next().unwrap_or_default();
        if name.starts_with("memory.") || name.starts_with("io.") {
            tree.remove(file);
        }
    }
    tree.write("sys/fs/cgroup/box/cgroup.controllers", controllers);
    let root = HostRoot::at(tree.path()).unwrap();
    let mut out = Vec::new();
    Collector::new(&root, plan()).collect(&mut out);
    let of_box = gaps(&out).into_iter().filter(|gap| gap.cause == Cause::NotFound && gap.entity.is_some());
    of_box.filter_map(|gap| gap.detail.clone()).map(String::from).filter(|name| !name.ends_with("pressure")).collect()
}

#[test]
fn a_cgroup_lacks_nothing_but_files_of_the_controllers_it_has() {
    let check = |controllers: &str, memory: bool, io: bool| {
        let missing = missing_with(controllers);
        let told = |name: &str| missing.contains(name);
        assert_eq!((told("memory.stat"), told("memory.max")), (memory, memory), "{controllers:?}: {missing:?}");
        assert_eq!((told("io.stat"), told("io.max")), (io, io), "{controllers:?}: {missing:?}");
    };
    check("cpu io memory\n", true, true);
    check("cpu memory\n", true, false);
    check("cpu io\n", false, true);
    check("", false, false);
    // Not understood: then every file is expected.
    check("\u{1b}[31m\n", true, true);
}

#[test]
fn a_tree_with_nothing_in_it_is_all_gaps() {
    let dir = tempfile::tempdir().unwrap();
    let root = HostRoot::at(dir.path()).unwrap();
    let mut out = Vec::new();
    Collector::new(&root, plan()).collect(&mut out);
    assert_eq!(known(sample(&out)), [""; 0]);
    let sources: BTreeSet<Source> = gaps(&out).iter().map(|gap| gap.source).collect();
    for source in [Source::Vmstat, Source::Processes, Source::CgroupV2, Source::SysBdi, Source::Pressure] {
        assert!(sources.contains(&source), "{source}");
    }
    assert!(gaps(&out).iter().all(|gap| gap.cause == Cause::NotFound));
    assert_eq!(sample(&out).host.procs_blocked, None::<Count>);
}
