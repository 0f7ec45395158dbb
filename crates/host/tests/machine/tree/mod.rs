// SPDX-License-Identifier: MIT OR Apache-2.0
//! A host tree made up for tests and measurements: cgroups, processes and devices in the numbers one
//! asks for, with texts as long as those of a real 6.12. Not a captured tree: those are in `fixtures`.

#![allow(clippy::unwrap_used, reason = "tests and measurements")]

use floodline_record::facts::{CgroupMode, CgroupSetup, HostFacts};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A tree in a temporary directory.
pub(crate) struct HostTree {
    dir: TempDir,
}

const MEMORY_STAT: &str = include_str!("memory.stat");
const VMSTAT: &str = include_str!("vmstat");

/// What is in a version 2 cgroup.
pub(crate) const CGROUP: &[(&str, &str)] = &[
    ("memory.stat", MEMORY_STAT),
    ("memory.current", "805306368\n"),
    ("memory.events", "low 0\nhigh 3\nmax 1234567\noom 8\noom_kill 7\noom_group_kill 0\n"),
    (
        "memory.pressure",
        "some avg10=0.29 avg60=0.17 avg300=0.26 total=16327922\nfull avg10=0.14 avg60=0.12 avg300=0.24 total=15762293\n",
    ),
    (
        "io.pressure",
        "some avg10=6.64 avg60=2.06 avg300=0.77 total=15228239\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=42\n",
    ),
    ("cgroup.stat", "nr_descendants 0\nnr_subsys_memory 1\nnr_dying_descendants 3\nnr_dying_subsys_memory 1\n"),
    ("cgroup.events", "populated 1\nfrozen 0\n"),
    (
        "io.stat",
        "254:0 rbytes=90430464 wbytes=299008000 rios=8950 wios=1252 dbytes=0 dios=0\n\
         253:0 rbytes=1024 wbytes=4096 rios=2 wios=1 dbytes=0 dios=0\n",
    ),
    ("memory.max", "805306368\n"),
    ("memory.high", "max\n"),
    ("memory.min", "0\n"),
    ("memory.low", "0\n"),
    ("io.weight", "default 100\n"),
    ("io.max", "254:0 rbps=max wbps=1048576 riops=max wiops=max\n"),
    ("cgroup.controllers", "cpuset cpu io memory pids\n"),
    ("cgroup.subtree_control", "\n"),
];

const HOST: &[(&str, &str)] = &[
    ("proc/vmstat", VMSTAT),
    (
        "proc/meminfo",
        "MemTotal:        8147072 kB\nMemFree:         5474240 kB\nMemAvailable:    6894592 kB\n\
         Cached:          1166736 kB\nDirty:            141200 kB\nWriteback:             8 kB\n",
    ),
    (
        "proc/stat",
        "cpu  18921 3 9021 238440 811 7 224 132 0 0\ncpu0 9411 0 4502 119111 401 0 112 66 0 0\n\
         cpu1 9510 3 4519 119329 410 7 112 66 0 0\nctxt 7121337\nprocs_running 3\nprocs_blocked 0\n",
    ),
    ("proc/pressure/io", CGROUP[4].1),
    ("proc/pressure/memory", CGROUP[3].1),
    ("proc/pressure/cpu", "some avg10=6.64 avg60=2.06 avg300=0.77 total=15228239\n"),
    (
        "proc/diskstats",
        " 254       0 vda 23811 10211 1853322 7321 91022 87121 15304208 190022 3 61020 199931 12 0 4096 4 991 2584\n \
          253       0 dm-0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17\n",
    ),
    (
        "proc/zoneinfo",
        "Node 0, zone   Normal\n  pages free     1063219\n        boost    7\n        high     12843\n        \
         managed  1266271\n        protection: (0, 0)\n",
    ),
    ("proc/sys/vm/dirty_ratio", "20\n"),
    ("proc/sys/vm/dirty_bytes", "0\n"),
    ("proc/sys/vm/dirty_background_ratio", "10\n"),
    ("proc/sys/vm/dirty_background_bytes", "0\n"),
    ("proc/sys/vm/dirty_expire_centisecs", "3000\n"),
    ("proc/sys/vm/dirty_writeback_centisecs", "500\n"),
    ("proc/sys/vm/dirtytime_expire_seconds", "43200\n"),
    ("proc/sys/vm/laptop_mode", "0\n"),
    ("sys/class/bdi/254:0/min_ratio", "0\n"),
    ("sys/class/bdi/254:0/max_ratio", "100\n"),
    ("sys/class/bdi/254:0/min_ratio_fine", "0\n"),
    ("sys/class/bdi/254:0/max_ratio_fine", "1000000\n"),
    ("sys/class/bdi/254:0/min_bytes", "0\n"),
    ("sys/class/bdi/254:0/max_bytes", "1215373312\n"),
    ("sys/class/bdi/254:0/strict_limit", "0\n"),
    ("sys/class/bdi/254:0/read_ahead_kb", "128\n"),
    (
        "sys/kernel/debug/bdi/254:0/stats",
        "BdiWriteback:                8 kB\nBdiReclaimable:         141200 kB\nBdiDirtyThresh:         593444 kB\n\
         BdiDirtied:            8239780 kB\nBdiWritten:            7651988 kB\nBdiWriteBandwidth:      102400 kBps\n\
         b_dirty:                     3\nb_io:                        1\nb_more_io:                   0\n\
         b_dirty_time:                2\nstate:                       1\n",
    ),
    (
        "sys/kernel/debug/bdi/254:0/wb_stats",
        "WbCgIno:                     1\nWbWriteback:                 0 kB\nstate:                       5\n\n\
         WbCgIno:                  4091\nWbWriteback:               512 kB\nstate:                       f\n\n",
    ),
];

impl HostTree {
    /// A machine without cgroups and processes.
    pub(crate) fn new() -> HostTree {
        // In memory where possible, as /proc and cgroups are.
        let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let tree = HostTree { dir };
        for (path, text) in HOST {
            tree.write(path, text);
        }
        tree.cgroup("");
        tree
    }

    /// A machine with so many cgroups, twenty to a slice, and processes.
    pub(crate) fn sized(cgroups: usize, processes: usize) -> HostTree {
        let tree = HostTree::new();
        let path = |index: usize| match index % 20 {
            0 => format!("/machine-{}.slice", index / 20),
            _ => format!("/machine-{}.slice/docker-{:064x}.scope", index / 20, index),
        };
        for index in 1..cgroups {
            tree.cgroup(&path(index - 1));
        }
        for index in 0..processes {
            let cgroup = path(index % cgroups.saturating_sub(1).max(1));
            tree.process(100 + index as u32, 1000 + index as u64, "worker", &cgroup);
        }
        tree
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Where a file of it is.
    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.dir.path().join(path.trim_start_matches('/'))
    }

    /// Writes a file and the directories above it.
    pub(crate) fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Removes a file, or a directory and all in it.
    pub(crate) fn remove(&self, path: &str) {
        let path = self.at(path);
        if path.is_dir() { fs::remove_dir_all(path).unwrap() } else { fs::remove_file(path).unwrap() }
    }

    /// Makes a cgroup of the unified hierarchy.
    pub(crate) fn cgroup(&self, path: &str) {
        for (name, text) in CGROUP {
            self.write(&format!("sys/fs/cgroup{path}/{name}"), text);
        }
    }

    /// Makes a process.
    pub(crate) fn process(&self, pid: u32, start_ticks: u64, comm: &str, cgroup: &str) {
        let stat = format!(
            "{pid} ({comm}) S 1 {pid} {pid} 0 -1 4194304 100 0 7 0 21 34 0 0 20 0 1 0 {start_ticks} 2998272 383 \
             18446744073709551615 94642487361536 94642487385641 140728484920208 0 0 0 0 0 0 0 0 0 17 0 0 0 56 0 0 \
             94642487401488 94642487403104 94643195826176 140728484924086 140728484924114 140728484924114 \
             140728484925418 0\n"
        );
        let io = "rchar: 3012938\nwchar: 15\nsyscr: 1023\nsyscw: 3\nread_bytes: 8192\nwrite_bytes: 4096\n\
                  cancelled_write_bytes: 0\n";
        self.write(&format!("proc/{pid}/stat"), stat);
        self.write(&format!("proc/{pid}/io"), io);
        self.write(&format!("proc/{pid}/cgroup"), format!("0::{cgroup}\n"));
    }

    /// Every regular file of the tree, relative to it.
    pub(crate) fn files(&self) -> Vec<String> {
        let mut files = Vec::new();
        let mut dirs = vec![self.dir.path().to_owned()];
        while let Some(dir) = dirs.pop() {
            for entry in fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    dirs.push(path);
                } else {
                    files.push(path.strip_prefix(self.dir.path()).unwrap().to_str().unwrap().to_owned());
                }
            }
        }
        files.sort();
        files
    }

    /// What a probe would have found.
    pub(crate) fn facts() -> HostFacts {
        HostFacts {
            cgroups: CgroupSetup {
                mode: CgroupMode::V2,
                v2_mount: Some("/sys/fs/cgroup".into()),
                v2_controllers: ["cpu", "io", "memory"].map(floodline_record::text::Text::from).into(),
                ..CgroupSetup::default()
            },
            debugfs: Some(true),
            privileged: Some(true),
            ..HostFacts::default()
        }
    }
}
