// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hosts shaped like those that people run: many idle cgroups, processes that come and go, devices that are never saturated,
//! and changes of every kind that a prediction takes. They were written down before the twin was read and changed, so that
//! their first score is that of hosts unseen. The effect of a change is measured by running the host before and after it.

use super::usual::with_usual;

/// One host and its change.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lifelike {
    pub(super) name: &'static str,
    pub(super) kernel: &'static str,
    /// `KEY=VALUE` of the change, as `predict --set` takes it.
    pub(super) change: &'static [&'static str],
    /// The same change in the words of a scenario. Empty if only the kernel changes.
    pub(super) really: &'static str,
    /// The scenario without its name and without what is usual.
    pub(super) scenario: &'static str,
}

/// The list. Recordings of neighbours in it have different shapes, so that changes of one kind stand apart.
pub(super) const LIFELIKE: &[Lifelike] = &[
    // Settings that help, and settings that harm.
    Lifelike {
        name: "pods-and-export",
        kernel: "6.12.117",
        change: &["vm.dirty_bytes=134217728", "vm.dirty_background_bytes=33554432"],
        really: r#"machine.sysctl.vm = { dirty_bytes = "128 MiB", dirty_background_bytes = "32 MiB" }
unset = ["machine.sysctl.vm.dirty_ratio", "machine.sysctl.vm.dirty_background_ratio"]"#,
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.devices.data = { size = "40 GiB", write_bandwidth = "60 MB/s", read_bandwidth = "60 MB/s" }
machine.mounts."/data" = { type = "ext4", device = "data" }
machine.cgroups."kubepods/pod{i}" = { instances = 90, memory_max = "256 MiB" }
machine.cgroups.export = { memory_max = "2 GiB" }
workload.seed = 101
workload.duration = "60s"
workload.tasks.sidecar = { cgroup = "kubepods/pod{i}", stagger = "150ms", steps = [{ repeat = { every = "23s", steps = [{ write = { file = "/data/pod{i}.log", order = "append", count = 1 } }] } }] }
workload.tasks.export = { cgroup = "export", steps = [{ repeat = { every = "20s", steps = [{ write = { file = "/data/export", block = "256 KiB", total = "500 MiB", truncate = true } }] } }] }
workload.tasks.consul = { steps = [{ repeat = { every = "600ms", steps = [{ write = { file = "/data/raft", order = "append", count = 1 } }, { fdatasync = { file = "/data/raft" } }] } }] }
"#,
    },
    Lifelike {
        name: "runners-come-and-go",
        kernel: "6.1.192",
        change: &["vm.dirty_ratio=5", "vm.dirty_background_ratio=1"],
        really: r#"machine.sysctl.vm = { dirty_ratio = 5, dirty_background_ratio = 1 }"#,
        scenario: r#"
machine.memory = "4 GiB"
machine.cpus = 4
machine.sysctl.vm = { dirty_ratio = 40, dirty_background_ratio = 20 }
machine.devices.data = { profile = "nvme-boot" }
machine.mounts."/data" = { type = "ext4", device = "data" }
machine.cgroups."runner{i}" = { instances = 10, memory_max = "1 GiB" }
workload.seed = 102
workload.duration = "70s"
workload.tasks.job = { cgroup = "runner{i}", stagger = "6s", steps = [{ create_files = { file = "/data/job{i}/{d}/{n}", files = 1500, files_per_dir = 100, size = "48 KiB", rate = "400/s" } }, { write = { file = "/data/job{i}.tar", block = "128 KiB", total = "180 MiB" } }, { fsync = { file = "/data/job{i}.tar" } }, "exit"] }
workload.tasks.agent = { steps = [{ repeat = { every = "1s", steps = [{ write = { file = "/data/agent.state", count = 1, truncate = true } }, { fsync = { file = "/data/agent.state" } }] } }] }
"#,
    },
    Lifelike {
        name: "metrics-kept-longer",
        kernel: "6.12.117",
        change: &["vm.dirty_expire_centisecs=6000"],
        really: r#"machine.sysctl.vm.dirty_expire_centisecs = 6000"#,
        scenario: r#"
machine.memory = "16 GiB"
machine.cpus = 4
machine.sysctl.vm = { dirty_ratio = 20, dirty_background_ratio = 10, dirty_expire_centisecs = 500 }
machine.devices.data = { profile = "sata-ssd" }
machine.mounts."/data" = { type = "xfs", device = "data" }
machine.cgroups."unit{i}" = { instances = 30 }
workload.seed = 103
workload.duration = "90s"
workload.tasks.unit = { cgroup = "unit{i}", steps = [{ sleep = { for = "300s" } }] }
workload.tasks.rrd = { cgroup = "unit0", steps = [{ write = { file = "/data/rrd", order = "random", size = "64 MiB", rate = "700/s" } }] }
workload.tasks.wal = { cgroup = "unit1", steps = [{ write = { file = "/data/wal", order = "append", block = "32 KiB", rate = "2 MB/s" } }] }
"#,
    },
    Lifelike {
        name: "checkpoints-get-room",
        kernel: "6.12.117",
        change: &["vm.dirty_ratio=60", "vm.dirty_background_ratio=50"],
        really: r#"machine.sysctl.vm = { dirty_ratio = 60, dirty_background_ratio = 50 }
unset = ["machine.sysctl.vm.dirty_bytes", "machine.sysctl.vm.dirty_background_bytes"]"#,
        scenario: r#"
machine.memory = "4 GiB"
machine.cpus = 2
machine.sysctl.vm = { dirty_bytes = "192 MiB", dirty_background_bytes = "16 MiB" }
machine.devices.data = { size = "40 GiB", write_bandwidth = "45 MB/s", read_bandwidth = "90 MB/s" }
machine.mounts."/data" = { type = "ext4", device = "data" }
workload.seed = 104
workload.duration = "75s"
workload.tasks.postgres = { steps = [{ repeat = { every = "30s", steps = [{ write = { file = "/data/base", order = "random", block = "8 KiB", size = "1 GiB", rate = "20 MB/s", for = "24s" } }, { fsync = { file = "/data/base" } }] } }] }
workload.tasks.walwriter = { steps = [{ write = { file = "/data/wal", order = "append", block = "8 KiB", rate = "10/s", sync = { call = "fdatasync", after = 1 } } }] }
"#,
    },
    Lifelike {
        name: "web-logs-without-flusher",
        kernel: "6.12.117",
        change: &["vm.dirty_writeback_centisecs=0"],
        really: r#"machine.sysctl.vm.dirty_writeback_centisecs = 0"#,
        scenario: r#"
machine.memory = "2 GiB"
machine.cpus = 2
machine.sysctl.vm = { dirty_ratio = 20, dirty_background_ratio = 10, dirty_expire_centisecs = 1000 }
machine.devices.data = { profile = "hdd-7200" }
machine.mounts."/data" = { type = "ext4", device = "data" }
machine.cgroups."site{i}" = { instances = 12, memory_max = "256 MiB" }
workload.seed = 105
workload.duration = "60s"
workload.tasks.nginx = { cgroup = "site{i}", preset.logger = { file = "/data/site{i}.log", lines = "400/s", line = "180 B" } }
"#,
    },
    // Other kernels.
    Lifelike {
        name: "registry-new-kernel",
        kernel: "5.10.223",
        change: &["kernel=6.12.117"],
        really: "",
        scenario: r#"
machine.memory = "4 GiB"
machine.cpus = 2
machine.devices.data = { size = "40 GiB", write_bandwidth = "50 MB/s", read_bandwidth = "100 MB/s" }
machine.mounts."/data" = { type = "xfs", device = "data" }
machine.cgroups.registry = { memory_max = "768 MiB" }
machine.cgroups."idle{i}" = { instances = 25 }
workload.seed = 106
workload.duration = "60s"
workload.tasks.wait = { cgroup = "idle{i}", steps = [{ sleep = { for = "300s" } }] }
workload.tasks.push = { cgroup = "registry", steps = [{ repeat = { every = "15s", steps = [{ write = { file = "/data/blob", block = "64 KiB", total = "250 MiB", rate = "35 MB/s", truncate = true } }, { fsync = { file = "/data/blob" } }] } }] }
"#,
    },
    Lifelike {
        name: "members-of-a-quorum",
        kernel: "6.1.192",
        change: &["kernel=7.2.13"],
        really: "",
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.devices.data = { profile = "nvme-512g" }
machine.mounts."/data" = { type = "xfs", device = "data" }
machine.cgroups."etcd{i}" = { instances = 3, memory_max = "512 MiB" }
workload.seed = 107
workload.duration = "60s"
workload.tasks.etcd = { cgroup = "etcd{i}", steps = [{ write = { file = "/data/etcd{i}/wal", order = "append", block = "4 KiB", rate = "60/s", sync = { call = "fdatasync", after = 1 } } }] }
workload.tasks.snapshot = { cgroup = "etcd0", steps = [{ repeat = { every = "25s", steps = [{ sleep = { for = "10s" } }, { write = { file = "/data/etcd0/snap", block = "1 MiB", total = "300 MiB", truncate = true } }, { fsync = { file = "/data/etcd0/snap" } }] } }] }
"#,
    },
    Lifelike {
        name: "mapped-rings-new-kernel",
        kernel: "6.1.192",
        change: &["kernel=6.12.117"],
        really: "",
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.sysctl.vm = { dirty_bytes = "100 MiB", dirty_background_bytes = "50 MiB" }
machine.devices.data = { size = "40 GiB", write_bandwidth = "150 MB/s", read_bandwidth = "150 MB/s" }
machine.mounts."/data" = { type = "xfs", device = "data" }
machine.cgroups."broker{i}" = { instances = 6, memory_max = "200 MiB" }
workload.seed = 108
workload.duration = "45s"
workload.settle = "6s"
workload.tasks.broker = { cgroup = "broker{i}", setup = [{ write = { file = "/data/ring{i}", block = "1 MiB", total = "8 MiB" } }, { fsync = { file = "/data/ring{i}" } }], steps = [{ mmap_store = { file = "/data/ring{i}", size = "8 MiB", pages = 6, rate = "25/s" } }] }
"#,
    },
    Lifelike {
        name: "stream-to-older-kernel",
        kernel: "7.2.13",
        change: &["kernel=6.1.192"],
        really: "",
        scenario: r#"
machine.memory = "2 GiB"
machine.cpus = 2
machine.devices.data = { size = "40 GiB", write_bandwidth = "25 MB/s", read_bandwidth = "25 MB/s" }
machine.mounts."/data" = { type = "xfs", device = "data" }
machine.cgroups.ingest = { memory_max = "400 MiB" }
workload.seed = 109
workload.duration = "60s"
workload.tasks.ingest = { cgroup = "ingest", steps = [{ write = { file = "/data/ingest", block = "64 KiB", rate = "32 MB/s" } }] }
workload.tasks.offsets = { steps = [{ repeat = { every = "1s", steps = [{ write = { file = "/data/offsets", order = "append", count = 1 } }, { fsync = { file = "/data/offsets" } }] } }] }
"#,
    },
    // Other cgroup modes.
    Lifelike {
        name: "sites-to-v2",
        kernel: "6.1.192",
        change: &["cgroup=v2"],
        really: r#"machine.cgroup_mode = "v2""#,
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.cgroup_mode = "v1"
machine.devices.data = { profile = "sata-ssd" }
machine.mounts."/data" = { type = "ext4", device = "data" }
machine.cgroups."site{i}" = { instances = 8, memory_max = "96 MiB" }
machine.cgroups."parked{i}" = { instances = 40, memory_max = "128 MiB" }
workload.seed = 110
workload.duration = "60s"
workload.tasks.parked = { cgroup = "parked{i}", steps = [{ repeat = { every = "17s", steps = [{ write = { file = "/data/parked{i}", order = "append", count = 1 } }] } }] }
workload.tasks.sessions = { cgroup = "site{i}", steps = [{ write = { file = "/data/site{i}/sessions", order = "random", size = "24 MiB", rate = "900/s" } }] }
"#,
    },
    Lifelike {
        name: "journals-to-v2-and-new-kernel",
        kernel: "5.10.223",
        change: &["cgroup=v2", "kernel=6.12.117"],
        really: r#"machine.cgroup_mode = "v2""#,
        scenario: r#"
machine.memory = "16 GiB"
machine.cpus = 4
machine.cgroup_mode = "v1"
machine.sysctl.vm = { dirty_bytes = "100 MiB", dirty_background_bytes = "50 MiB" }
machine.devices.data = { size = "40 GiB", write_bandwidth = "200 MB/s", read_bandwidth = "200 MB/s" }
machine.mounts."/data" = { type = "xfs", device = "data" }
machine.cgroups."machine.slice/box{i}" = { instances = 7, memory_max = "128 MiB" }
machine.cgroups."machine.slice/quiet{i}" = { instances = 30, memory_max = "128 MiB" }
workload.seed = 111
workload.duration = "50s"
workload.settle = "6s"
workload.tasks.quiet = { cgroup = "machine.slice/quiet{i}", steps = [{ sleep = { for = "300s" } }] }
workload.tasks.journal = { cgroup = "machine.slice/box{i}", preset.journald_like = { file = "/data/box{i}.journal", messages = "60/s", pages = 3 } }
"#,
    },
    Lifelike {
        name: "heap-dump-to-v2",
        kernel: "6.12.117",
        change: &["cgroup=v2"],
        really: r#"machine.cgroup_mode = "v2""#,
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.cgroup_mode = "v1"
machine.devices.data = { size = "40 GiB", write_bandwidth = "70 MB/s", read_bandwidth = "70 MB/s" }
machine.mounts."/data" = { type = "xfs", device = "data" }
machine.cgroups.java = { memory_max = "600 MiB" }
machine.cgroups.db = { memory_max = "1 GiB" }
workload.seed = 112
workload.duration = "60s"
workload.tasks.dump = { cgroup = "java", start = "15s", steps = [{ write = { file = "/data/heap.hprof", block = "512 KiB", total = "700 MiB" } }, "exit"] }
workload.tasks.db = { cgroup = "db", steps = [{ repeat = { every = "300ms", steps = [{ write = { file = "/data/log", order = "append", count = 2 } }, { fdatasync = { file = "/data/log" } }] } }] }
"#,
    },
    Lifelike {
        name: "agents-back-to-v1",
        kernel: "6.12.117",
        change: &["cgroup=v1"],
        really: r#"machine.cgroup_mode = "v1""#,
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.sysctl.vm = { dirty_bytes = "100 MiB", dirty_background_bytes = "50 MiB" }
machine.devices.data = { profile = "nvme-256g" }
machine.mounts."/data" = { type = "ext4", device = "data" }
machine.cgroups."agent{i}" = { instances = 10, memory_max = "100 MiB" }
workload.seed = 113
workload.duration = "50s"
workload.tasks.agent = { cgroup = "agent{i}", steps = [{ write = { file = "/data/agent{i}", order = "append", block = "8 KiB", rate = "600 kB/s" } }] }
workload.tasks.buffer = { cgroup = "agent{i}", steps = [{ write = { file = "/data/buffer{i}", order = "random", size = "2 MiB", rate = "150/s" } }] }
"#,
    },
    // Memory.
    Lifelike {
        name: "importer-gets-less-memory",
        kernel: "6.12.117",
        change: &["cgroup/importer/memory.max=134217728"],
        really: r#"machine.cgroups.importer.memory_max = "128 MiB""#,
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.devices.data = { size = "40 GiB", write_bandwidth = "60 MB/s", read_bandwidth = "60 MB/s" }
machine.mounts."/data" = { type = "ext4", device = "data" }
machine.cgroups.importer = { memory_max = "2 GiB" }
machine.cgroups."other{i}" = { instances = 20, memory_max = "512 MiB" }
workload.seed = 114
workload.duration = "60s"
workload.tasks.other = { cgroup = "other{i}", steps = [{ repeat = { every = "11s", steps = [{ write = { file = "/data/other{i}", order = "append", count = 2 } }] } }] }
workload.tasks.importer = { cgroup = "importer", steps = [{ repeat = { every = "12s", steps = [{ write = { file = "/data/import", block = "128 KiB", total = "240 MiB", rate = "80 MB/s", truncate = true } }] } }] }
"#,
    },
    Lifelike {
        name: "converter-without-high",
        kernel: "6.1.192",
        change: &["cgroup/convert/memory.high=max"],
        really: r#"machine.cgroups.convert.memory_high = "max""#,
        scenario: r#"
machine.memory = "4 GiB"
machine.cpus = 2
machine.devices.data = { size = "40 GiB", write_bandwidth = "80 MB/s", read_bandwidth = "80 MB/s" }
machine.mounts."/data" = { type = "xfs", device = "data" }
machine.cgroups.convert = { memory_max = "1 GiB", memory_high = "120 MiB" }
workload.seed = 115
workload.duration = "60s"
workload.tasks.convert = { cgroup = "convert", steps = [{ repeat = { every = "10s", steps = [{ write = { file = "/data/out", block = "128 KiB", total = "160 MiB", rate = "60 MB/s", truncate = true } }] } }] }
workload.tasks.beat = { steps = [{ repeat = { every = "1s", steps = [{ write = { file = "/data/beat", order = "append", count = 1 } }, { fsync = { file = "/data/beat" } }] } }] }
"#,
    },
    Lifelike {
        name: "host-with-a-quarter-of-memory",
        kernel: "6.12.117",
        change: &["memory=4G"],
        really: r#"machine.memory = "4 GiB""#,
        scenario: r#"
machine.memory = "16 GiB"
machine.cpus = 4
machine.devices.data = { size = "40 GiB", write_bandwidth = "50 MB/s", read_bandwidth = "50 MB/s" }
machine.mounts."/data" = { type = "xfs", device = "data" }
machine.cgroups.batch = {}
workload.seed = 116
workload.duration = "75s"
workload.tasks.batch = { cgroup = "batch", steps = [{ repeat = { every = "25s", steps = [{ write = { file = "/data/batch", block = "1 MiB", total = "900 MiB", truncate = true } }] } }] }
workload.tasks.api = { steps = [{ repeat = { every = "500ms", steps = [{ write = { file = "/data/api", order = "append", count = 1 } }, { fdatasync = { file = "/data/api" } }] } }] }
"#,
    },
    // Knobs of devices.
    Lifelike {
        name: "stick-gets-a-share",
        kernel: "6.12.117",
        change: &["bdi/254:0/max_ratio=1", "bdi/254:0/strict_limit=1"],
        really: r#"machine.devices.astick.bdi = { max_ratio = 1, strict_limit = true }"#,
        scenario: r#"
machine.memory = "4 GiB"
machine.cpus = 2
machine.devices.astick = { size = "60 GiB", write_bandwidth = "12 MB/s", read_bandwidth = "25 MB/s" }
machine.devices.data = { profile = "sata-ssd" }
machine.mounts."/stick" = { type = "ext4", device = "astick" }
machine.mounts."/data" = { type = "xfs", device = "data" }
workload.seed = 117
workload.duration = "60s"
workload.tasks.rsync = { steps = [{ repeat = { every = "14s", steps = [{ write = { file = "/stick/backup", order = "append", block = "256 KiB", total = "120 MiB" } }] } }] }
workload.tasks.app = { steps = [{ write = { file = "/data/app", order = "append", block = "16 KiB", rate = "20/s", sync = { call = "fdatasync", after = 4 } } }] }
"#,
    },
    Lifelike {
        name: "without-wbt",
        kernel: "6.1.192",
        change: &["queue/vda/wbt_lat_usec=0"],
        really: r#"machine.devices.data.queue.wbt_latency = "0s""#,
        scenario: r#"
machine.memory = "4 GiB"
machine.cpus = 2
machine.sysctl.vm = { dirty_bytes = "256 MiB", dirty_background_bytes = "64 MiB" }
machine.devices.data = { profile = "hdd-7200" }
machine.mounts."/data" = { type = "ext4", device = "data" }
workload.seed = 118
workload.duration = "60s"
workload.tasks.copy = { steps = [{ write = { file = "/data/copy", block = "128 KiB", rate = "70 MB/s" } }] }
workload.tasks.mail = { preset.mail = { dir = "/data/spool", messages = "3/s" } }
"#,
    },
    Lifelike {
        name: "device-keeps-less",
        kernel: "6.12.117",
        change: &["bdi/254:0/max_bytes=33554432"],
        really: r#"machine.devices.data.bdi.max_bytes = "32 MiB""#,
        scenario: r#"
machine.memory = "4 GiB"
machine.cpus = 2
machine.sysctl.vm = { dirty_ratio = 10, dirty_background_ratio = 5 }
machine.devices.data = { size = "40 GiB", write_bandwidth = "30 MB/s", read_bandwidth = "60 MB/s" }
machine.mounts."/data" = { type = "xfs", device = "data" }
workload.seed = 119
workload.duration = "60s"
workload.tasks.capture = { instances = 2, steps = [{ write = { file = "/data/capture{j}", order = "append", block = "64 KiB", rate = "20 MB/s" } }] }
workload.tasks.index = { steps = [{ repeat = { every = "2s", steps = [{ write = { file = "/data/index", order = "append", count = 2 } }, { fsync = { file = "/data/index" } }] } }] }
"#,
    },
    // Filesystems, loop devices, journals.
    Lifelike {
        name: "spool-commits-rarely",
        kernel: "6.12.117",
        change: &["mount/data/options=noatime,commit=60"],
        really: r#"machine.mounts."/data".options = ["noatime", "commit=60"]"#,
        scenario: r#"
machine.memory = "4 GiB"
machine.cpus = 2
machine.devices.data = { profile = "hdd-7200" }
machine.mounts."/data" = { type = "ext4", device = "data", options = ["noatime"] }
machine.cgroups."idle{i}" = { instances = 15 }
workload.seed = 120
workload.duration = "60s"
workload.tasks.idle = { cgroup = "idle{i}", steps = [{ sleep = { for = "300s" } }] }
workload.tasks.spool = { steps = [{ create_files = { file = "/data/spool/{d}/{n}", files_per_dir = 200, size = "8 KiB", rate = "40/s" } }] }
"#,
    },
    Lifelike {
        name: "image-reads-past-the-cache",
        kernel: "6.12.117",
        change: &["loop/loop0/direct_io=1"],
        really: r#"machine.devices.image.backing = { loop = { file = "/host/image", direct_io = true } }"#,
        scenario: r#"
machine.memory = "4 GiB"
machine.cpus = 2
machine.sysctl.vm = { dirty_ratio = 20, dirty_background_ratio = 10, dirty_expire_centisecs = 1500 }
machine.devices.disk = { size = "40 GiB", write_bandwidth = "50 MB/s", read_bandwidth = "50 MB/s" }
machine.devices.image = { size = "10 GiB", backing = { loop = { file = "/host/image" } } }
machine.mounts."/host" = { type = "ext4", device = "disk" }
machine.mounts."/guest" = { type = "xfs", device = "image" }
workload.seed = 121
workload.duration = "60s"
workload.tasks.load = { steps = [{ write = { file = "/guest/load", block = "128 KiB", rate = "9 MB/s" } }] }
workload.tasks.state = { steps = [{ repeat = { every = "800ms", steps = [{ write = { file = "/guest/state", order = "append", count = 1 } }, { fdatasync = { file = "/guest/state" } }] } }] }
"#,
    },
    Lifelike {
        name: "journal-into-memory",
        kernel: "6.12.117",
        change: &["journald/Storage=volatile"],
        really: r#"workload.tasks.systemd-journal.preset.journald_like.file = "/run/log/system.journal""#,
        scenario: r#"
machine.memory = "2 GiB"
machine.cpus = 2
machine.sysctl.vm = { dirty_ratio = 20, dirty_background_ratio = 10, dirty_expire_centisecs = 1500 }
machine.devices.data = { size = "20 GiB", write_iops = "60 IO/s", read_iops = "60 IO/s", rotational = true }
machine.mounts."/var" = { type = "ext4", device = "data" }
machine.cgroups."system.slice/systemd-journald.service" = {}
machine.cgroups."system.slice/unit{i}" = { instances = 20 }
workload.seed = 122
workload.duration = "60s"
workload.tasks.unit = { cgroup = "system.slice/unit{i}", steps = [{ sleep = { for = "300s" } }] }
workload.tasks.systemd-journal = { cgroup = "system.slice/systemd-journald.service", preset.journald_like = { file = "/var/log/system.journal", messages = "12/s", pages = 1 } }
workload.tasks.postfix = { preset.mail = { dir = "/var/spool", messages = "1/s" } }
"#,
    },
    // Devices that are never saturated, and settings that change little or nothing.
    Lifelike {
        name: "fast-disk-smaller-limits",
        kernel: "6.12.117",
        change: &["vm.dirty_bytes=67108864", "vm.dirty_background_bytes=16777216"],
        really: r#"machine.sysctl.vm = { dirty_bytes = "64 MiB", dirty_background_bytes = "16 MiB" }
unset = ["machine.sysctl.vm.dirty_ratio", "machine.sysctl.vm.dirty_background_ratio"]"#,
        scenario: r#"
machine.memory = "32 GiB"
machine.cpus = 8
machine.devices.data = { profile = "nvme-512g" }
machine.mounts."/data" = { type = "xfs", device = "data" }
machine.cgroups."pod{i}" = { instances = 50, memory_max = "1 GiB" }
workload.seed = 123
workload.duration = "60s"
workload.tasks.pod = { cgroup = "pod{i}", stagger = "300ms", steps = [{ repeat = { every = "9s", steps = [{ write = { file = "/data/pod{i}", order = "append", count = 4 } }] } }] }
workload.tasks.collector = { cgroup = "pod0", steps = [{ write = { file = "/data/collect", order = "append", block = "64 KiB", rate = "30 MB/s" } }] }
"#,
    },
    Lifelike {
        name: "desktop-background-early",
        kernel: "6.12.117",
        change: &["vm.dirty_background_bytes=16777216"],
        really: r#"machine.sysctl.vm.dirty_background_bytes = "16 MiB"
unset = ["machine.sysctl.vm.dirty_background_ratio"]"#,
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.devices.data = { size = "40 GiB", write_bandwidth = "40 MB/s", read_bandwidth = "80 MB/s" }
machine.mounts."/data" = { type = "ext4", device = "data" }
machine.cgroups."user.slice/app{i}" = { instances = 12 }
workload.seed = 124
workload.duration = "70s"
workload.tasks.app = { cgroup = "user.slice/app{i}", stagger = "1700ms", steps = [{ repeat = { every = "20s", steps = [{ write = { file = "/data/app{i}", count = 3, truncate = true } }, { fsync = { file = "/data/app{i}" } }] } }] }
workload.tasks.download = { start = "5s", steps = [{ write = { file = "/data/film", order = "append", block = "64 KiB", rate = "14 MB/s" } }] }
workload.tasks.unpack = { start = "25s", steps = [{ create_files = { file = "/data/src/{d}/{n}", files = 6000, files_per_dir = 60, size = "24 KiB", rate = "900/s" } }, "exit"] }
"#,
    },
];

impl Lifelike {
    /// The scenario, with the host as it is as variant `now` and the changed one as variant `then`.
    pub(super) fn text(&self) -> String {
        let head = "name = \"lifelike\"\nsummary = \"a host as people run them\"";
        format!("{head}\n{}[variants.now]\n[variants.then]\n{}\n", with_usual(self.scenario), self.really)
    }
}
