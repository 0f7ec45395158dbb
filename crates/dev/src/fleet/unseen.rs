// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hosts whose workloads and changes differ from those of [`super::kinds`]. They were written down before the twin was read
//! and changed, so that their first score is that of hosts unseen. The effect of a change is not written here: it is
//! measured by running the host before and after it.

use super::usual::with_usual;

/// One host and its change.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unseen {
    pub(super) name: &'static str,
    pub(super) kernel: &'static str,
    /// `KEY=VALUE` of the change.
    pub(super) change: &'static [&'static str],
    /// The scenario without its name and without what is usual.
    pub(super) scenario: &'static str,
}

/// The first list.
pub(super) const UNSEEN: &[Unseen] = &[
    // The move to version 2.
    Unseen {
        name: "mail-and-backup",
        kernel: "6.12.117",
        change: &["cgroup=v2"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 2
machine.cgroup_mode = "v1"
machine.devices.data = { size = "8 GiB", write_bandwidth = "80 MB/s", read_bandwidth = "80 MB/s" }
machine.mounts."/data" = { type = "ext4", device = "data" }
machine.cgroups.mail = { memory_max = "256 MiB" }
machine.cgroups.backup = { memory_max = "512 MiB" }
workload.seed = 11
workload.duration = "40s"
workload.tasks.mail = { cgroup = "mail", preset.mail = { dir = "/data/spool", messages = "15/s" } }
workload.tasks.backup = { cgroup = "backup", steps = [{ write = { file = "/data/tar", block = "128 KiB", rate = "16 MB/s" } }] }
"#,
    },
    Unseen {
        name: "caches-beside-a-writer",
        kernel: "6.1.192",
        change: &["cgroup=v2", "kernel=6.12.117"],
        scenario: r#"
machine.memory = "4 GiB"
machine.cpus = 2
machine.cgroup_mode = "v1"
machine.devices.data = { size = "8 GiB", write_bandwidth = "60 MB/s", read_bandwidth = "60 MB/s" }
machine.mounts."/data" = { type = "ext4", device = "data" }
machine.cgroups."cache{i}" = { instances = 5, memory_max = "128 MiB" }
machine.cgroups.import = { memory_max = "256 MiB" }
workload.seed = 12
workload.duration = "40s"
workload.tasks.cache = { cgroup = "cache{i}", preset.redis_aof = { file = "/data/cache{i}/aof", commands = "40/s" } }
workload.tasks.import = { cgroup = "import", steps = [{ write = { file = "/data/import", block = "256 KiB" } }] }
"#,
    },
    Unseen {
        name: "service-journals",
        kernel: "6.1.192",
        change: &["cgroup=v2"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 2
machine.cgroup_mode = "v1"
machine.sysctl.vm = { dirty_bytes = "100 MiB", dirty_background_bytes = "50 MiB" }
machine.devices.data = { size = "8 GiB", write_bandwidth = "120 MB/s", read_bandwidth = "120 MB/s" }
machine.mounts."/data" = { type = "xfs", device = "data" }
machine.cgroups."services/unit{i}" = { instances = 4, memory_max = "64 MiB" }
workload.seed = 13
workload.duration = "30s"
workload.settle = "5s"
workload.tasks.journal = { cgroup = "services/unit{i}", preset.journald_like = { file = "/data/unit{i}.journal", messages = "40/s", pages = 4 } }
"#,
    },
    Unseen {
        name: "buffered-databases",
        kernel: "6.1.192",
        change: &["cgroup=v2", "kernel=6.12.117"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 2
machine.cgroup_mode = "v1"
machine.devices.data = { size = "8 GiB", write_bandwidth = "150 MB/s", read_bandwidth = "150 MB/s" }
machine.mounts."/data" = { type = "xfs", device = "data" }
machine.cgroups."db{i}" = { instances = 2, memory_max = "1 GiB" }
workload.seed = 14
workload.duration = "30s"
workload.tasks.db = { cgroup = "db{i}", preset.database = { data = "/data/db{i}/tables", log = "/data/db{i}/wal", size = "256 MiB", reads = "60/s", commits = "25/s", flushes = "80/s", direct = false } }
workload.tasks.dump = { cgroup = "db0", steps = [{ write = { file = "/data/dump", block = "64 KiB", rate = "20 MB/s" } }] }
"#,
    },
    Unseen {
        name: "uploads-that-sync",
        kernel: "5.10.223",
        change: &["cgroup=v2", "kernel=6.12.117"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 2
machine.cgroup_mode = "v1"
machine.sysctl.vm = { dirty_bytes = "400 MiB", dirty_background_bytes = "200 MiB" }
machine.devices.data = { size = "8 GiB", write_bandwidth = "50 MB/s", read_bandwidth = "50 MB/s" }
machine.mounts."/data" = { type = "ext4", device = "data" }
machine.cgroups."site{i}" = { instances = 4, memory_max = "192 MiB" }
workload.seed = 15
workload.duration = "40s"
workload.tasks.upload = { cgroup = "site{i}", stagger = "2s", steps = [{ repeat = { every = "8s", steps = [{ write = { file = "/data/site{i}/upload", block = "256 KiB", total = "40 MiB", rate = "100 MB/s", truncate = true } }, { fsync = { file = "/data/site{i}/upload" } }] } }] }
"#,
    },
    // Back to version 1.
    Unseen {
        name: "backup-leaves-its-limit",
        kernel: "6.12.117",
        change: &["cgroup=v1"],
        scenario: r#"
machine.memory = "4 GiB"
machine.cpus = 2
machine.devices.data = { size = "8 GiB", write_bandwidth = "50 MB/s", read_bandwidth = "50 MB/s" }
machine.mounts."/data" = { type = "ext4", device = "data" }
machine.cgroups.backup = { memory_max = "256 MiB" }
workload.seed = 16
workload.duration = "40s"
workload.tasks.backup = { cgroup = "backup", steps = [{ write = { file = "/data/tar", block = "128 KiB", rate = "40 MB/s" } }] }
workload.tasks.app = { steps = [{ repeat = { every = "400ms", steps = [{ write = { file = "/data/app.log", order = "append", count = 2 } }, { fsync = { file = "/data/app.log" } }] } }] }
"#,
    },
    Unseen {
        name: "mapped-stores-leave-their-limit",
        kernel: "6.12.117",
        change: &["cgroup=v1", "kernel=6.1.192"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 2
machine.sysctl.vm = { dirty_bytes = "100 MiB", dirty_background_bytes = "50 MiB" }
machine.devices.data = { size = "8 GiB", write_bandwidth = "100 MB/s", read_bandwidth = "100 MB/s" }
machine.mounts."/data" = { type = "xfs", device = "data" }
machine.cgroups."tenant{i}" = { instances = 5, memory_max = "160 MiB" }
workload.seed = 17
workload.duration = "30s"
workload.settle = "6s"
workload.tasks.index = { cgroup = "tenant{i}", setup = [{ write = { file = "/data/index{i}", block = "1 MiB", total = "5 MiB" } }, { fsync = { file = "/data/index{i}" } }], steps = [{ mmap_store = { file = "/data/index{i}", size = "5 MiB", pages = 10, rate = "12/s" } }] }
"#,
    },
    // Another kernel.
    Unseen {
        name: "build-host",
        kernel: "6.1.192",
        change: &["kernel=6.12.117"],
        scenario: r#"
machine.memory = "4 GiB"
machine.cpus = 2
machine.devices.data = { size = "8 GiB", write_bandwidth = "100 MB/s", read_bandwidth = "100 MB/s" }
machine.mounts."/data" = { type = "ext4", device = "data" }
machine.cgroups.build = { memory_max = "1 GiB" }
workload.seed = 18
workload.duration = "40s"
workload.tasks.build = { cgroup = "build", steps = [{ repeat = { every = "10s", steps = [{ create_files = { file = "/data/obj/{d}/{n}", files = 800, files_per_dir = 100, size = "40 KiB", rate = "200/s" } }, { unlink = { file = "/data/obj/{d}/{n}", files = 800, files_per_dir = 100 } }, { write = { file = "/data/image", block = "1 MiB", total = "60 MiB", truncate = true } }] } }] }
workload.tasks.cache = { steps = [{ repeat = { every = "1s", steps = [{ write = { file = "/data/db", order = "append", count = 1 } }, { fdatasync = { file = "/data/db" } }] } }] }
"#,
    },
    Unseen {
        name: "mapped-database",
        kernel: "5.10.223",
        change: &["kernel=6.12.117"],
        scenario: r#"
machine.memory = "4 GiB"
machine.cpus = 2
machine.devices.data = { size = "8 GiB", write_bandwidth = "90 MB/s", read_bandwidth = "90 MB/s" }
machine.mounts."/data" = { type = "xfs", device = "data" }
machine.cgroups.lmdb = { memory_max = "512 MiB" }
workload.seed = 19
workload.duration = "40s"
workload.settle = "6s"
workload.tasks.lmdb = { cgroup = "lmdb", setup = [{ write = { file = "/data/lmdb", block = "1 MiB", total = "64 MiB" } }, { fsync = { file = "/data/lmdb" } }], steps = [{ mmap_store = { file = "/data/lmdb", size = "64 MiB", pages = 20, rate = "10/s", sync = { call = "msync", every = "5s" } } }] }
"#,
    },
    Unseen {
        name: "video-recorder",
        kernel: "6.12.117",
        change: &["kernel=7.2.13"],
        scenario: r#"
machine.memory = "2 GiB"
machine.cpus = 2
machine.devices.data = { size = "8 GiB", write_bandwidth = "40 MB/s", read_bandwidth = "40 MB/s" }
machine.mounts."/data" = { type = "xfs", device = "data" }
machine.cgroups."camera{i}" = { instances = 3, memory_max = "128 MiB" }
workload.seed = 20
workload.duration = "40s"
workload.tasks.camera = { cgroup = "camera{i}", steps = [{ write = { file = "/data/camera{i}", order = "append", block = "64 KiB", rate = "4 MB/s", sync = { call = "fdatasync", every = "2s" } } }] }
"#,
    },
    // Settings.
    Unseen {
        name: "etl-to-small",
        kernel: "6.12.117",
        change: &["vm.dirty_bytes=104857600", "vm.dirty_background_bytes=52428800"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 2
machine.devices.data = { size = "8 GiB", write_bandwidth = "70 MB/s", read_bandwidth = "140 MB/s" }
machine.mounts."/data" = { type = "xfs", device = "data" }
workload.seed = 21
workload.duration = "45s"
workload.settle = "2s"
workload.tasks.etl = { steps = [{ repeat = { every = "14s", steps = [{ write = { file = "/data/part", block = "512 KiB", total = "400 MiB", truncate = true } }, { fsync = { file = "/data/part" } }] } }] }
workload.tasks.app = { steps = [{ repeat = { every = "500ms", steps = [{ write = { file = "/data/app", order = "append", count = 1 } }, { fdatasync = { file = "/data/app" } }] } }] }
"#,
    },
    Unseen {
        name: "slow-stick-to-small",
        kernel: "6.12.117",
        change: &["vm.dirty_bytes=67108864", "vm.dirty_background_bytes=33554432"],
        scenario: r#"
machine.memory = "4 GiB"
machine.cpus = 2
machine.devices.stick = { size = "8 GiB", write_bandwidth = "8 MB/s", read_bandwidth = "20 MB/s" }
machine.devices.data = { size = "8 GiB", write_bandwidth = "200 MB/s", read_bandwidth = "200 MB/s" }
machine.mounts."/stick" = { type = "ext4", device = "stick" }
machine.mounts."/data" = { type = "xfs", device = "data" }
workload.seed = 22
workload.duration = "45s"
workload.tasks.copy = { steps = [{ write = { file = "/stick/film", block = "128 KiB", rate = "25 MB/s" } }] }
workload.tasks.app = { steps = [{ repeat = { every = "250ms", steps = [{ write = { file = "/data/app", order = "append", block = "64 KiB", count = 8 } }, { fdatasync = { file = "/data/app" } }] } }] }
"#,
    },
    Unseen {
        name: "shippers-to-large",
        kernel: "6.1.192",
        change: &["vm.dirty_ratio=50", "vm.dirty_background_ratio=30"],
        scenario: r#"
machine.memory = "2 GiB"
machine.cpus = 2
machine.cgroup_mode = "v1"
machine.sysctl.vm = { dirty_bytes = "64 MiB", dirty_background_bytes = "16 MiB" }
machine.devices.data = { size = "8 GiB", write_bandwidth = "30 MB/s", read_bandwidth = "30 MB/s" }
machine.mounts."/data" = { type = "ext4", device = "data" }
workload.seed = 23
workload.duration = "45s"
workload.tasks.ship = { instances = 3, steps = [{ write = { file = "/data/ship{j}", order = "append", block = "16 KiB", rate = "5 MB/s" } }] }
workload.tasks.index = { steps = [{ repeat = { every = "1s", steps = [{ write = { file = "/data/index", order = "append", count = 4 } }, { fsync = { file = "/data/index" } }] } }] }
"#,
    },
    Unseen {
        name: "exports-age-sooner",
        kernel: "6.12.117",
        change: &["vm.dirty_expire_centisecs=300", "vm.dirty_writeback_centisecs=100"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 2
machine.sysctl.vm = { dirty_ratio = 20, dirty_background_ratio = 10, dirty_expire_centisecs = 1500, dirty_writeback_centisecs = 500 }
machine.devices.data = { size = "8 GiB", write_bandwidth = "60 MB/s", read_bandwidth = "60 MB/s" }
machine.mounts."/data" = { type = "ext4", device = "data" }
workload.seed = 24
workload.duration = "60s"
workload.tasks.export = { steps = [{ write = { file = "/data/export", block = "64 KiB", rate = "9 MB/s" } }] }
workload.tasks.state = { steps = [{ repeat = { every = "700ms", steps = [{ write = { file = "/data/state", count = 1, truncate = true } }, { fsync = { file = "/data/state" } }] } }] }
"#,
    },
    Unseen {
        name: "scattered-writes-to-small",
        kernel: "6.1.192",
        change: &["vm.dirty_bytes=33554432", "vm.dirty_background_bytes=16777216"],
        scenario: r#"
machine.memory = "4 GiB"
machine.cpus = 2
machine.devices.data = { size = "8 GiB", write_bandwidth = "100 MB/s", read_bandwidth = "100 MB/s" }
machine.mounts."/data" = { type = "ext4", device = "data" }
workload.seed = 25
workload.duration = "40s"
workload.tasks.counter = { steps = [{ write = { file = "/data/counters", order = "random", size = "96 MiB", rate = "3000/s" } }] }
"#,
    },
    Unseen {
        name: "restores-to-ratios",
        kernel: "6.12.117",
        change: &["vm.dirty_ratio=20", "vm.dirty_background_ratio=10"],
        scenario: r#"
machine.memory = "2 GiB"
machine.cpus = 2
machine.sysctl.vm = { dirty_bytes = "16 MiB", dirty_background_bytes = "8 MiB" }
machine.devices.data = { size = "8 GiB", write_bandwidth = "80 MB/s", read_bandwidth = "80 MB/s" }
machine.mounts."/data" = { type = "xfs", device = "data" }
workload.seed = 26
workload.duration = "45s"
workload.settle = "2s"
workload.tasks.restore = { steps = [{ repeat = { every = "7s", steps = [{ write = { file = "/data/restore", order = "append", block = "256 KiB", total = "120 MiB" } }] } }] }
workload.tasks.notes = { steps = [{ repeat = { every = "2s", steps = [{ write = { file = "/data/notes", order = "append", count = 1 } }, { fsync = { file = "/data/notes" } }] } }] }
"#,
    },
    Unseen {
        name: "cron-syncs-early-background",
        kernel: "6.12.117",
        change: &["vm.dirty_background_bytes=8388608"],
        scenario: r#"
machine.memory = "4 GiB"
machine.cpus = 2
machine.sysctl.vm = { dirty_bytes = "800 MiB", dirty_background_bytes = "400 MiB" }
machine.devices.data = { size = "8 GiB", write_bandwidth = "40 MB/s", read_bandwidth = "40 MB/s" }
machine.mounts."/data" = { type = "ext4", device = "data" }
workload.seed = 27
workload.duration = "50s"
workload.tasks.writer = { steps = [{ write = { file = "/data/out", block = "64 KiB", rate = "10 MB/s" } }] }
workload.tasks.cron = { steps = [{ repeat = { every = "12s", steps = [{ sleep = { for = "11s" } }, "sync"] } }] }
"#,
    },
    // Limits of memory.
    Unseen {
        name: "burst-gets-more-memory",
        kernel: "6.12.117",
        change: &["machine.cgroups.batch.memory_max=2 GiB"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 2
machine.devices.data = { size = "8 GiB", write_bandwidth = "30 MB/s", read_bandwidth = "30 MB/s" }
machine.mounts."/data" = { type = "xfs", device = "data" }
machine.cgroups.batch = { memory_max = "128 MiB" }
workload.seed = 28
workload.duration = "40s"
workload.settle = "2s"
workload.tasks.batch = { cgroup = "batch", steps = [{ repeat = { every = "9s", steps = [{ write = { file = "/data/batch", block = "128 KiB", total = "90 MiB", rate = "60 MB/s" } }] } }] }
"#,
    },
    Unseen {
        name: "mapped-stores-get-less-memory",
        kernel: "6.12.117",
        change: &["machine.cgroups.index.memory_max=64 MiB"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 2
machine.sysctl.vm = { dirty_bytes = "100 MiB", dirty_background_bytes = "50 MiB" }
machine.devices.data = { size = "8 GiB", write_bandwidth = "120 MB/s", read_bandwidth = "120 MB/s" }
machine.mounts."/data" = { type = "xfs", device = "data" }
machine.cgroups.index = { memory_max = "3 GiB" }
workload.seed = 29
workload.duration = "30s"
workload.settle = "6s"
workload.tasks.index = { cgroup = "index", setup = [{ write = { file = "/data/index", block = "1 MiB", total = "6 MiB" } }, { fsync = { file = "/data/index" } }], steps = [{ mmap_store = { file = "/data/index", size = "6 MiB", pages = 16, rate = "10/s" } }] }
"#,
    },
    Unseen {
        name: "writer-gets-memory-high",
        kernel: "6.1.192",
        change: &["machine.cgroups.job.memory_high=160 MiB"],
        scenario: r#"
machine.memory = "4 GiB"
machine.cpus = 2
machine.devices.data = { size = "8 GiB", write_bandwidth = "40 MB/s", read_bandwidth = "40 MB/s" }
machine.mounts."/data" = { type = "ext4", device = "data" }
machine.cgroups.job = { memory_max = "2 GiB" }
workload.seed = 30
workload.duration = "40s"
workload.tasks.job = { cgroup = "job", steps = [{ write = { file = "/data/job", block = "128 KiB", rate = "50 MB/s" } }] }
workload.tasks.app = { steps = [{ repeat = { every = "500ms", steps = [{ write = { file = "/data/app", order = "append", count = 1 } }, { fdatasync = { file = "/data/app" } }] } }] }
"#,
    },
];

impl Unseen {
    /// The scenario with a name.
    pub(super) fn text(&self) -> String {
        format!("name = \"unseen\"\nsummary = \"a host of an unseen kind\"\n{}", with_usual(self.scenario))
    }

    /// The scenario of one host of a kind: each `<N>` is between 75 % and 130 % of N, and N itself on the first host.
    pub(super) fn text_of(&self, host: u64) -> String {
        let mut text = String::new();
        let whole = self.text();
        let mut parts = whole.split(['<', '>']);
        text.push_str(parts.next().unwrap_or_default());
        let mut by = 0;
        while let (Some(number), Some(rest)) = (parts.next(), parts.next()) {
            by += 1;
            let number = match number.parse::<u64>() {
                Ok(number) => super::kinds::vary(host, number, by),
                Err(_) => host,
            };
            text.push_str(&number.to_string());
            text.push_str(rest);
        }
        text
    }
}
