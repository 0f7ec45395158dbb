// SPDX-License-Identifier: MIT OR Apache-2.0
//! A fourth group of kinds, of shapes that the groups before it do not have: runners, brokers, dumps beside a doublewrite
//! file, limits of memory that shrink, hosts with less memory. They were written down and committed before any was scored.
//! The comment of each kind is what arithmetic says of its change; the effect is measured. A limit is the ratio of what can
//! be dirtied, writers are paused from the middle between both limits on. `<N>` is a number that differs from host to host.

use super::unseen::Unseen;

/// Every kind of the group.
pub(super) const FOURTH: &[Unseen] = &[
    // Suffer.
    Unseen {
        // 20 % of 128 MiB are 26 MiB. Three jobs write 82 MiB each: 8 s of the disk every 20 s.
        name: "fourth-runners-in-small-boxes",
        kernel: "6.1.192",
        change: &["cgroup=v2"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.cgroup_mode = "v1"
machine.devices.data = { size = "16 GiB", write_bandwidth = "<32> MB/s", read_bandwidth = "<32> MB/s" }
machine.mounts."/data" = { type = "ext4", device = "data" }
machine.cgroups."runner{i}" = { instances = 3, memory_max = "128 MiB" }
workload.seed = <seed>
workload.duration = "44s"
workload.tasks.job = { cgroup = "runner{i}", stagger = "1500ms", steps = [{ repeat = { every = "20s", steps = [{ create_files = { file = "/data/r{i}/{d}/{n}", files = <300>, files_per_dir = 50, size = "40 KiB" } }, { burn = { for = "1s" } }, { write = { file = "/data/r{i}.image", block = "256 KiB", total = "<70> MiB", truncate = true } }, { unlink = { file = "/data/r{i}/{d}/{n}", files = 200, files_per_dir = 50 } }] } }] }
"#,
    },
    Unseen {
        // 20 % of 96 MiB are 19 MiB. Four brokers catch up with 50 MiB each: 5 s of the disk every 13 s.
        name: "fourth-brokers-catch-up",
        kernel: "5.10.223",
        change: &["cgroup=v2", "kernel=6.12.117"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.cgroup_mode = "v1"
machine.devices.data = { size = "16 GiB", write_bandwidth = "<40> MB/s", read_bandwidth = "<40> MB/s" }
machine.mounts."/data" = { type = "xfs", device = "data" }
machine.cgroups."broker{i}" = { instances = 4, memory_max = "96 MiB" }
workload.seed = <seed>
workload.duration = "43s"
workload.tasks.broker = { cgroup = "broker{i}", stagger = "700ms", steps = [{ repeat = { every = "13s", steps = [{ write = { file = "/data/segment{i}", order = "append", block = "64 KiB", total = "<50> MiB", rate = "100 MB/s" } }, { write = { file = "/data/offset{i}", order = "append", count = 1 } }] } }] }
"#,
    },
    Unseen {
        // The limit falls from 400 MiB to 26 MiB. A load writes 190 MiB: 4.5 s of the disk every 15 s.
        name: "fourth-loads-lose-their-memory",
        kernel: "6.12.117",
        change: &["cgroup/etl/memory.max=128M"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 2
machine.devices.data = { size = "16 GiB", write_bandwidth = "<42> MB/s", read_bandwidth = "<42> MB/s" }
machine.mounts."/data" = { type = "xfs", device = "data" }
machine.cgroups.etl = { memory_max = "2 GiB" }
workload.seed = <seed>
workload.duration = "49s"
workload.tasks.etl = { cgroup = "etl", steps = [{ repeat = { every = "15s", steps = [{ write = { file = "/data/load", block = "512 KiB", total = "<190> MiB", rate = "200 MB/s", truncate = true } }] } }] }
"#,
    },
    Unseen {
        // 64 MiB of 16 GiB are 0.4 %: 0.8 MiB of 192 MiB. 120 pages a second of a file of 6 MiB are dirtied again.
        name: "fourth-stores-on-a-large-host",
        kernel: "6.12.117",
        change: &["cgroup=v2"],
        scenario: r#"
machine.memory = "16 GiB"
machine.cpus = 4
machine.cgroup_mode = "v1"
machine.sysctl.vm = { dirty_bytes = "64 MiB", dirty_background_bytes = "32 MiB" }
machine.devices.data = { size = "16 GiB", write_bandwidth = "<130> MB/s", read_bandwidth = "<130> MB/s" }
machine.mounts."/data" = { type = "xfs", device = "data" }
machine.cgroups."tenants/store{i}" = { instances = 4, memory_max = "192 MiB" }
workload.seed = <seed>
workload.duration = "32s"
workload.settle = "6s"
workload.tasks.store = { cgroup = "tenants/store{i}", setup = [{ write = { file = "/data/store{i}", block = "1 MiB", total = "6 MiB" } }, { fsync = { file = "/data/store{i}" } }], steps = [{ mmap_store = { file = "/data/store{i}", size = "6 MiB", pages = <12>, rate = "<10>/s" } }] }
workload.tasks.log = { cgroup = "tenants/store{i}", preset.logger = { file = "/data/log{i}", lines = "40/s" } }
"#,
    },
    Unseen {
        // The limit falls from 3 GiB to 0.2 GiB. A batch writes 480 MiB: 8 s of the disk beyond it every 24 s.
        name: "fourth-batches-on-a-smaller-host",
        kernel: "6.1.192",
        change: &["memory=1G"],
        scenario: r#"
machine.memory = "16 GiB"
machine.cpus = 2
machine.devices.data = { size = "16 GiB", write_bandwidth = "<36> MB/s", read_bandwidth = "<36> MB/s" }
machine.mounts."/data" = { type = "ext4", device = "data" }
workload.seed = <seed>
workload.duration = "52s"
workload.tasks.batch = { steps = [{ repeat = { every = "24s", steps = [{ write = { file = "/data/batch", block = "1 MiB", total = "<480> MiB", truncate = true } }] } }] }
"#,
    },
    Unseen {
        // The limit falls to 8 MiB. A dump writes 140 MiB: 3.5 s of the disk every 14 s.
        name: "fourth-dumps-beside-doublewrite",
        kernel: "5.10.223",
        change: &["vm.dirty_bytes=8388608", "vm.dirty_background_bytes=4194304"],
        scenario: r#"
machine.memory = "4 GiB"
machine.cpus = 2
machine.devices.data = { size = "16 GiB", write_bandwidth = "<40> MB/s", read_bandwidth = "<40> MB/s" }
machine.mounts."/data" = { type = "xfs", device = "data" }
workload.seed = <seed>
workload.duration = "46s"
workload.tasks.dump = { steps = [{ repeat = { every = "14s", steps = [{ write = { file = "/data/dump", block = "256 KiB", total = "<140> MiB", truncate = true } }] } }] }
workload.tasks.cleaner = { steps = [{ repeat = { every = "2s", steps = [{ write = { file = "/data/doublewrite", size = "1 MiB", block = "128 KiB", count = 4 } }, { fdatasync = { file = "/data/doublewrite" } }] } }] }
"#,
    },
    Unseen {
        // Before, a sync finds 8 MiB: 0.3 s. After, it finds what was written for 15 s: 12 MB/s, 7 s of the disk.
        name: "fourth-sync-before-a-snapshot",
        kernel: "6.1.192",
        change: &["vm.dirty_ratio=70", "vm.dirty_background_ratio=50"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 2
machine.sysctl.vm = { dirty_bytes = "32 MiB", dirty_background_bytes = "8 MiB" }
machine.devices.data = { size = "16 GiB", write_bandwidth = "<26> MB/s", read_bandwidth = "<26> MB/s" }
machine.mounts."/data" = { type = "xfs", device = "data" }
workload.seed = <seed>
workload.duration = "50s"
workload.tasks.load = { steps = [{ write = { file = "/data/load", order = "append", block = "64 KiB", rate = "<12> MB/s" } }] }
workload.tasks.snapshot = { steps = [{ repeat = { every = "15s", steps = [{ sleep = { for = "14s" } }, "sync"] } }] }
"#,
    },
    Unseen {
        // Five children share 160 MiB: at most 32 MiB are allowed, 6 MiB if the cache is full. 30 MiB each every 8 s.
        name: "fourth-pods-under-a-smaller-parent",
        kernel: "6.12.117",
        change: &["cgroup/pods/memory.max=160M"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.devices.data = { size = "16 GiB", write_bandwidth = "<38> MB/s", read_bandwidth = "<38> MB/s" }
machine.mounts."/data" = { type = "ext4", device = "data" }
machine.cgroups.pods = { memory_max = "4 GiB" }
machine.cgroups."pods/pod{i}" = { instances = 5, memory_max = "1 GiB" }
workload.seed = <seed>
workload.duration = "40s"
workload.tasks.upload = { cgroup = "pods/pod{i}", stagger = "900ms", steps = [{ repeat = { every = "8s", steps = [{ write = { file = "/data/pod{i}", block = "128 KiB", total = "<30> MiB", rate = "150 MB/s", truncate = true } }] } }] }
"#,
    },
    Unseen {
        // The limit falls to 24 MiB. The slow disk gets 190 MiB every 26 s: 11 s of it.
        name: "fourth-two-speeds-to-tiny",
        kernel: "7.2.13",
        change: &["vm.dirty_bytes=25165824", "vm.dirty_background_bytes=12582912"],
        scenario: r#"
machine.memory = "4 GiB"
machine.cpus = 2
machine.devices.fast = { size = "16 GiB", write_bandwidth = "<220> MB/s", read_bandwidth = "<220> MB/s" }
machine.devices.slow = { size = "16 GiB", write_bandwidth = "<17> MB/s", read_bandwidth = "<17> MB/s" }
machine.mounts."/fast" = { type = "xfs", device = "fast" }
machine.mounts."/slow" = { type = "ext4", device = "slow" }
workload.seed = <seed>
workload.duration = "56s"
workload.tasks.export = { steps = [{ repeat = { every = "26s", steps = [{ write = { file = "/slow/export", block = "256 KiB", total = "<190> MiB", truncate = true } }] } }] }
workload.tasks.index = { steps = [{ repeat = { every = "10s", steps = [{ write = { file = "/fast/index", block = "128 KiB", total = "<60> MiB", rate = "90 MB/s", truncate = true } }] } }] }
"#,
    },
    // Tight.
    Unseen {
        // 20 % and 10 % of 256 MiB: paused from 38 MiB on. 700 files of 48 KiB are 33 MiB.
        name: "fourth-homes-near-their-limit",
        kernel: "6.12.117",
        change: &["cgroup=v2"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 2
machine.cgroup_mode = "v1"
machine.devices.home = { size = "16 GiB", write_bandwidth = "<60> MB/s", read_bandwidth = "<60> MB/s" }
machine.mounts."/home" = { type = "ext4", device = "home" }
machine.cgroups."user{i}" = { instances = 3, memory_max = "256 MiB" }
workload.seed = <seed>
workload.duration = "44s"
workload.tasks.checkout = { cgroup = "user{i}", stagger = "4s", steps = [{ repeat = { every = "13s", steps = [{ create_files = { file = "/home/u{i}/{d}/{n}", files = <700>, files_per_dir = 70, size = "48 KiB", rate = "<900>/s" } }] } }] }
"#,
    },
    Unseen {
        // 20 % and 10 % of 512 MiB: paused from 77 MiB on. A checkpoint writes 70 MiB.
        name: "fourth-checkpoints-in-half-the-memory",
        kernel: "5.10.223",
        change: &["cgroup/db/memory.max=512M"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 2
machine.devices.base = { size = "16 GiB", write_bandwidth = "<50> MB/s", read_bandwidth = "<50> MB/s" }
machine.devices.wal = { size = "16 GiB", write_bandwidth = "<120> MB/s", read_bandwidth = "<120> MB/s" }
machine.mounts."/base" = { type = "xfs", device = "base" }
machine.mounts."/wal" = { type = "xfs", device = "wal" }
machine.cgroups.db = { memory_max = "1 GiB" }
workload.seed = <seed>
workload.duration = "48s"
workload.tasks.checkpoint = { cgroup = "db", steps = [{ repeat = { every = "15s", steps = [{ write = { file = "/base/heap", order = "random", size = "256 MiB", block = "8 KiB", total = "<70> MiB" } }] } }] }
workload.tasks.wal = { cgroup = "db", steps = [{ write = { file = "/wal/segment", order = "append", block = "8 KiB", rate = "<20>/s", sync = { call = "fdatasync", after = 1 } } }] }
"#,
    },
    Unseen {
        // 10 % and 5 % of 4 GiB: paused from about 285 MiB on. A report writes 270 MiB.
        name: "fourth-reports-on-half-a-host",
        kernel: "6.12.117",
        change: &["memory=4G"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 2
machine.sysctl.vm = { dirty_ratio = 10, dirty_background_ratio = 5 }
machine.devices.data = { size = "16 GiB", write_bandwidth = "<50> MB/s", read_bandwidth = "<50> MB/s" }
machine.mounts."/data" = { type = "xfs", device = "data" }
workload.seed = <seed>
workload.duration = "48s"
workload.tasks.report = { steps = [{ repeat = { every = "20s", steps = [{ write = { file = "/data/report", block = "1 MiB", total = "<270> MiB", truncate = true } }] } }] }
workload.tasks.session = { steps = [{ repeat = { every = "1s", steps = [{ write = { file = "/data/session", order = "append", count = 1 } }, { fdatasync = { file = "/data/session" } }] } }] }
"#,
    },
    Unseen {
        // 128 MiB and 64 MiB: paused from 96 MiB on. A shipper writes 90 MiB.
        name: "fourth-shippers-near-the-bytes",
        kernel: "6.1.192",
        change: &["vm.dirty_bytes=134217728", "vm.dirty_background_bytes=67108864"],
        scenario: r#"
machine.memory = "4 GiB"
machine.cpus = 2
machine.devices.data = { size = "16 GiB", write_bandwidth = "<45> MB/s", read_bandwidth = "<45> MB/s" }
machine.mounts."/data" = { type = "ext4", device = "data" }
machine.cgroups.ship = { memory_max = "2 GiB" }
workload.seed = <seed>
workload.duration = "42s"
workload.tasks.ship = { cgroup = "ship", steps = [{ repeat = { every = "12s", steps = [{ write = { file = "/data/spool", block = "64 KiB", total = "<90> MiB", rate = "180 MB/s", truncate = true } }] } }] }
workload.tasks.line = { preset.logger = { file = "/data/lines", lines = "<150>/s" } }
"#,
    },
    Unseen {
        // The disk is 80 % busy before and after. After, its writes come in turns, and a commit waits behind them.
        name: "fourth-commits-beside-a-stream",
        kernel: "5.10.223",
        change: &["vm.dirty_ratio=50", "vm.dirty_background_ratio=30"],
        scenario: r#"
machine.memory = "4 GiB"
machine.cpus = 2
machine.sysctl.vm = { dirty_bytes = "96 MiB", dirty_background_bytes = "32 MiB" }
machine.devices.data = { size = "16 GiB", write_bandwidth = "<50> MB/s", read_bandwidth = "<50> MB/s" }
machine.mounts."/data" = { type = "xfs", device = "data" }
workload.seed = <seed>
workload.duration = "60s"
workload.tasks.stream = { steps = [{ write = { file = "/data/stream", order = "append", block = "128 KiB", rate = "<40> MB/s" } }] }
workload.tasks.etcd = { steps = [{ write = { file = "/data/etcd", order = "append", block = "4 KiB", rate = "<15>/s", sync = { call = "fdatasync", after = 1 } } }] }
"#,
    },
    Unseen {
        // 256 MiB of 8 GiB are 3.2 %: 8 MiB of 256 MiB, paused from 6 MiB on. Whole folios of the file are 5 MiB.
        name: "fourth-heads-get-folios",
        kernel: "5.10.223",
        change: &["kernel=6.12.117"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 2
machine.sysctl.vm = { dirty_bytes = "256 MiB", dirty_background_bytes = "128 MiB" }
machine.devices.data = { size = "16 GiB", write_bandwidth = "<90> MB/s", read_bandwidth = "<90> MB/s" }
machine.mounts."/data" = { type = "xfs", device = "data" }
machine.cgroups."head{i}" = { instances = 3, memory_max = "256 MiB" }
workload.seed = <seed>
workload.duration = "32s"
workload.settle = "6s"
workload.tasks.head = { cgroup = "head{i}", setup = [{ write = { file = "/data/head{i}", block = "1 MiB", total = "<5> MiB" } }, { fsync = { file = "/data/head{i}" } }], steps = [{ mmap_store = { file = "/data/head{i}", size = "3 MiB", pages = <10>, rate = "<6>/s" } }] }
"#,
    },
    // Fine.
    Unseen {
        // 20 % of 512 MiB are 102 MiB. A container writes 2 MiB and ends.
        name: "fourth-short-containers",
        kernel: "5.10.223",
        change: &["cgroup=v2", "kernel=6.12.117"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 2
machine.cgroup_mode = "v1"
machine.devices.data = { size = "16 GiB", write_bandwidth = "<100> MB/s", read_bandwidth = "<100> MB/s" }
machine.mounts."/data" = { type = "ext4", device = "data" }
machine.cgroups."short{i}" = { instances = 25, memory_max = "512 MiB", remove_after = "2s" }
workload.seed = <seed>
workload.duration = "42s"
workload.tasks.short = { cgroup = "short{i}", stagger = "1400ms", steps = [{ write = { file = "/data/short{i}", block = "16 KiB", total = "<2> MiB" } }, { sleep = { for = "3s" } }, "exit"] }
"#,
    },
    Unseen {
        // The limit rises from 51 MiB to 400 MiB. A compaction of 40 MiB fits into both.
        name: "fourth-compactions-get-memory",
        kernel: "6.12.117",
        change: &["cgroup/monitoring/memory.max=2G"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 2
machine.devices.data = { size = "16 GiB", write_bandwidth = "<70> MB/s", read_bandwidth = "<70> MB/s" }
machine.mounts."/data" = { type = "ext4", device = "data" }
machine.cgroups.monitoring = { memory_max = "256 MiB" }
workload.seed = <seed>
workload.duration = "42s"
workload.tasks.wal = { cgroup = "monitoring", steps = [{ write = { file = "/data/wal", order = "append", block = "32 KiB", rate = "<1> MB/s" } }] }
workload.tasks.compact = { cgroup = "monitoring", steps = [{ repeat = { every = "14s", steps = [{ write = { file = "/data/block", block = "512 KiB", total = "<40> MiB", truncate = true } }, { fsync = { file = "/data/block" } }] } }] }
"#,
    },
    Unseen {
        // The pages pass the page cache, and the log is 100 kB/s on a disk of 300 MB/s.
        name: "fourth-direct-pages-new-kernel",
        kernel: "6.1.192",
        change: &["kernel=7.2.13"],
        scenario: r#"
machine.memory = "8 GiB"
machine.cpus = 4
machine.devices.data = { size = "16 GiB", write_bandwidth = "<300> MB/s", read_bandwidth = "<300> MB/s" }
machine.mounts."/data" = { type = "xfs", device = "data" }
machine.cgroups."db{i}" = { instances = 2, memory_max = "1 GiB" }
workload.seed = <seed>
workload.duration = "40s"
workload.tasks.db = { cgroup = "db{i}", preset.database = { data = "/data/db{i}/tables", log = "/data/db{i}/log", size = "192 MiB", reads = "<50>/s", commits = "<25>/s", flushes = "<40>/s", direct = true } }
"#,
    },
];
